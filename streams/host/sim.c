/*
 * Simulated devices: the host backend's streams, but their workers are fibers of a world, in virtual time.
 * Each operation begins after a delay drawn from the seed; the seed also chooses among the operations that
 * are due. A kernel's host form runs on a worker; while it sleeps, in virtual time, other streams go on.
 */
#include "streams/host/sim.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/memory.h"
#include "sim/simulation.h"
#include "base/status.h"
#include "streams/host/host.h"
#include "streams/system.h"

#define US 1000
enum { WORKERS = 2, PATIENCE = 4 };
#define OF 1000

static const struct wr_sim_knobs default_knobs = {.work_min = 2 * US,
						  .work_max = 60 * US,
						  .call_min = 5 * US,
						  .call_max = 200 * US,
						  .flag_min = 1 * US,
						  .flag_max = 20 * US,
						  .inside = 50};

struct machine {
	struct wr_sim *sim;
	struct wr_random random;
	struct wr_sim_knobs knobs;
};

/* --- operations --- */

static int64_t sim_now(void *arg)
{
	return wr_sim_now(((struct machine *)arg)->sim);
}

static int64_t random_time(struct machine *machine, int64_t min, int64_t max)
{
	return max > min ? min + (int64_t)wr_random_below(&machine->random, (uint64_t)(max - min) + 1) : min;
}

static bool drawn(struct machine *machine, unsigned of_1000)
{
	return of_1000 && wr_random_below(&machine->random, OF) < of_1000;
}

static int64_t sim_delay(void *arg, enum wr_work work)
{
	struct machine *machine = arg;

	switch (work) {
	case WR_WORK_KERNEL:
	case WR_WORK_COPY:
	case WR_WORK_GRAPH:
		return random_time(machine, machine->knobs.work_min, machine->knobs.work_max);
	case WR_WORK_CALL:
		return random_time(machine, machine->knobs.call_min, machine->knobs.call_max);
	case WR_WORK_FLAG:
		return random_time(machine, machine->knobs.flag_min, machine->knobs.flag_max);
	case WR_WORK_RECORD:
	case WR_WORK_WAIT:
		break;
	}
	return 0;
}

/*
 * A flag is never written twice: the second write could come after a later value, and the word would go back.
 */
static enum wr_fate sim_fate(void *arg, enum wr_work work)
{
	struct machine *machine = arg;

	if (work != WR_WORK_CALL && work != WR_WORK_FLAG)
		return drawn(machine, machine->knobs.fault) ? WR_FATE_FAULT : WR_FATE_RUN;
	if (drawn(machine, machine->knobs.lost))
		return WR_FATE_LOSE;
	return work == WR_WORK_CALL && drawn(machine, machine->knobs.twice) ? WR_FATE_TWICE : WR_FATE_RUN;
}

static size_t sim_choose(void *arg, size_t n)
{
	return (size_t)wr_random_below(&((struct machine *)arg)->random, n);
}

static bool sim_after_fault(void *arg)
{
	return ((struct machine *)arg)->knobs.after_fault;
}

/* Enqueueing may take so long that the operation has run by then. Only a fiber can let virtual time pass. */
static void sim_enqueued(void *arg)
{
	struct machine *machine = arg;
	int64_t longest = machine->knobs.work_max + machine->knobs.call_max;

	if (wr_sim_current() != machine->sim)
		return;
	if (drawn(machine, machine->knobs.inside))
		wr_thread_sleep(random_time(machine, 1, longest + 1));
	else if (drawn(machine, machine->knobs.blocked))
		wr_thread_sleep(longest * PATIENCE + 1);
}

static const struct wr_executor_rules rules = {
	.now = sim_now,
	.delay = sim_delay,
	.fate = sim_fate,
	.choose = sim_choose,
	.after_fault = sim_after_fault,
	.enqueued = sim_enqueued,
};

/* --- life --- */

struct opening {
	struct machine *machine;
	int devices;
	bool strict;
	struct wr_executor *executor;
};

static weir_status executor_create_in_world(void *arg)
{
	struct opening *opening = arg;

	return wr_executor_create(&opening->executor, opening->devices, WORKERS, opening->strict, &rules,
				  opening->machine);
}

static struct machine *machine_of(void *self)
{
	return ((struct wr_executor *)self)->arg;
}

static void sim_enter(void *self, void (*fn)(void *arg), void *arg)
{
	wr_sim_call(machine_of(self)->sim, fn, arg);
}

static weir_status sim_open(void **out, const struct wr_system_options *options, char *where, size_t room)
{
	struct opening opening = {NULL, options->devices ? options->devices : 1, options->strict, NULL};
	weir_status status;

	if (!options->sim)
		return wr_fail(WEIR_E_INVALID, "backend 'sim': it needs a simulated world");
	opening.machine = wr_alloc(1, sizeof *opening.machine);
	if (!opening.machine)
		return WEIR_E_NOMEM;
	opening.machine->sim = options->sim;
	opening.machine->knobs = default_knobs;
	wr_random_seed(&opening.machine->random, options->seed ^ wr_random_next(wr_sim_random(options->sim)),
		       1);
	status = wr_sim_try(options->sim, executor_create_in_world, &opening);
	if (status) {
		wr_free(opening.machine);
		return status;
	}
	if (opening.devices > 1)
		snprintf(where, room, "sim: seed %" PRIu64 ", %d devices", options->seed, opening.devices);
	else
		snprintf(where, room, "sim: seed %" PRIu64, options->seed);
	*out = opening.executor;
	return WEIR_OK;
}

/* Called by a fiber of the world: system.c closes the backend where it may block. */
static void sim_close(void *self)
{
	struct machine *machine = machine_of(self);

	wr_executor_destroy(self);
	wr_free(machine);
}

void wr_system_set_knobs(struct wr_system *system, const struct wr_sim_knobs *knobs)
{
	machine_of(system->native)->knobs = *knobs;
}

/* --- the table --- */

struct splitting {
	struct wr_executor *executor;
	const struct wr_partitions_spec *spec;
	void **out;
	uint32_t *sms;
};

static weir_status executor_partition_in_world(void *arg)
{
	const struct splitting *self = arg;

	return wr_host_partitions_create(self->executor, self->spec, self->out, self->sms);
}

/* The workers are fibers, which must be started by a fiber of the world. */
static weir_status sim_partitions_create(void *self, const struct wr_partitions_spec *spec, void **out,
					 uint32_t *sms)
{
	struct splitting splitting = {self, spec, out, sms};

	return wr_sim_try(machine_of(self)->sim, executor_partition_in_world, &splitting);
}

const struct wr_backend wr_backend_sim = {
	.name = "sim",
	.kind = WEIR_BACKEND_SIM,
	.open = sim_open,
	.close = sim_close,
	.partitions_create = sim_partitions_create,
	.enter = sim_enter,
	WR_HOST_ENTRIES,
};
