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
#include "streams/host/executor.h"
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
	struct wr_executor *executor;
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

static const struct wr_executor_rules rules = {
	.now = sim_now,
	.delay = sim_delay,
	.fate = sim_fate,
	.choose = sim_choose,
	.after_fault = sim_after_fault,
};

/* Enqueueing may take so long that the operation has run by then. Only a fiber can let virtual time pass. */
static void random_enqueue_delay(struct machine *machine)
{
	int64_t longest = machine->knobs.work_max + machine->knobs.call_max;

	if (wr_sim_current() != machine->sim)
		return;
	if (drawn(machine, machine->knobs.inside))
		wr_thread_sleep(random_time(machine, 1, longest + 1));
	else if (drawn(machine, machine->knobs.blocked))
		wr_thread_sleep(longest * PATIENCE + 1);
}

/* --- life --- */

struct opening {
	struct machine *machine;
	int devices;
	bool strict;
};

static weir_status executor_create_in_world(void *arg)
{
	const struct opening *opening = arg;
	struct machine *machine = opening->machine;

	return wr_executor_create(&machine->executor, opening->devices, WORKERS, opening->strict, &rules,
				  machine);
}

static void sim_enter(void *self, void (*fn)(void *arg), void *arg)
{
	struct machine *machine = self;

	wr_sim_call(machine->sim, fn, arg);
}

static weir_status sim_open(void **out, const struct wr_system_options *options, char *where, size_t room)
{
	struct opening opening = {NULL, options->devices ? options->devices : 1, options->strict};
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
	*out = opening.machine;
	return WEIR_OK;
}

/* Called by a fiber of the world: system.c closes the backend where it may block. */
static void sim_close(void *self)
{
	struct machine *machine = self;

	wr_executor_destroy(machine->executor);
	wr_free(machine);
}

static int sim_devices(void *self)
{
	return wr_executor_devices(((struct machine *)self)->executor);
}

void wr_system_set_knobs(struct wr_system *system, const struct wr_sim_knobs *knobs)
{
	((struct machine *)system->native)->knobs = *knobs;
}

/* --- the table --- */

static weir_status sim_stream_create(void *self, int number, unsigned flags, int priority, void *partition,
				     void **out)
{
	struct machine *machine = self;

	(void)priority;
	return wr_host_stream_open(machine->executor, number, flags, partition,
				   (struct wr_host_stream **)out);
}

static weir_status sim_stream_default(void *self, int number, void **out)
{
	return sim_stream_create(self, number, WR_STREAM_BLOCKING, 0, NULL, out);
}

static void sim_stream_destroy(void *self, void *stream)
{
	(void)self;
	wr_host_stream_destroy(stream);
}

static weir_status sim_event_create(void *self, int number, void **out)
{
	struct machine *machine = self;

	(void)number;
	return wr_host_event_create(machine->executor, (struct wr_host_event **)out);
}

static void sim_event_destroy(void *self, void *event)
{
	(void)self;
	wr_host_event_destroy(event);
}

static weir_status with_enqueue_delay(void *self, weir_status status)
{
	random_enqueue_delay(self);
	return status;
}

static weir_status sim_record(void *self, int number, void *stream, void *event)
{
	(void)number;
	return with_enqueue_delay(self, wr_host_stream_record(stream, event));
}

static weir_status sim_query(void *self, void *event)
{
	(void)self;
	return wr_host_event_query(event);
}

static weir_status sim_wait(void *self, int number, void *stream, void *event)
{
	(void)number;
	return with_enqueue_delay(self, wr_host_stream_wait(stream, event));
}

static weir_status sim_launch(void *self, int number, void *stream, const weir_kernel *kernel,
			      const void *arguments, size_t bytes)
{
	(void)number;
	return with_enqueue_delay(self, wr_host_stream_kernel(stream, kernel, arguments, bytes));
}

static weir_status sim_copy(void *self, int number, void *stream, void *to, const void *from, size_t bytes)
{
	(void)number;
	return with_enqueue_delay(self, wr_host_stream_copy(stream, to, from, bytes));
}

static weir_status sim_copy_rows(void *self, int number, void *stream, const weir_copy *copy)
{
	(void)number;
	return with_enqueue_delay(self, wr_host_stream_copy_rows(stream, copy));
}

static weir_status sim_call(void *self, int number, void *stream, void (*fn)(void *arg), void *arg)
{
	(void)number;
	return with_enqueue_delay(self, wr_host_stream_call(stream, fn, arg));
}

static weir_status sim_write_flag(void *self, int number, void *stream, _Atomic uint32_t *word,
				  uint32_t value)
{
	(void)number;
	return with_enqueue_delay(self, wr_host_stream_write_flag(stream, word, value));
}

static weir_status sim_timer_create(void *self, int number, void **out)
{
	struct machine *machine = self;

	(void)number;
	return wr_host_timer_create(machine->executor, (struct wr_host_event **)out);
}

static weir_status sim_timer_read(void *self, int number, void *begin, void *end, int64_t *begun,
				  int64_t *ended)
{
	(void)self;
	(void)number;
	return wr_host_timer_read(begin, end, begun, ended);
}

static weir_status sim_capture_begin(void *self, int number, void *stream, void **out)
{
	(void)self;
	(void)number;
	return wr_host_capture_begin(stream, (struct wr_host_capture **)out);
}

static weir_status sim_capture_order(void *self, void *capture, void *before, void *after)
{
	(void)self;
	(void)before;
	return wr_host_capture_order(capture, after);
}

static weir_status sim_capture_end(void *self, void *capture, void **out)
{
	(void)self;
	return wr_host_capture_end(capture, (struct wr_host_graph **)out);
}

static weir_status sim_graph_launch(void *self, int number, void *stream, void *graph)
{
	(void)number;
	return with_enqueue_delay(self, wr_host_graph_launch(stream, graph));
}

struct splitting {
	struct machine *machine;
	const struct wr_partitions_spec *spec;
	void **out;
	uint32_t *sms;
};

static weir_status executor_partition_in_world(void *arg)
{
	const struct splitting *self = arg;

	return wr_executor_partition(self->machine->executor, self->spec, self->out, self->sms);
}

/* The workers are fibers, which must be started by a fiber of the world. */
static weir_status sim_partitions_create(void *self, const struct wr_partitions_spec *spec, void **out,
					 uint32_t *sms)
{
	struct splitting splitting = {self, spec, out, sms};

	return wr_sim_try(splitting.machine->sim, executor_partition_in_world, &splitting);
}

static void sim_partition_destroy(void *self, void *partition)
{
	(void)self;
	(void)partition;
}

static weir_status sim_alloc(void *self, int number, size_t bytes, void **out)
{
	return wr_executor_alloc(((struct machine *)self)->executor, number, bytes, out);
}

static void sim_release(void *self, int number, void *memory)
{
	wr_executor_release(((struct machine *)self)->executor, number, memory);
}

static bool sim_is_closed(void *self, const void *address)
{
	return wr_executor_is_closed(((struct machine *)self)->executor, address);
}

static bool sim_stopped(void *self)
{
	return wr_executor_stopped(((struct machine *)self)->executor);
}

const struct wr_backend wr_backend_sim = {
	.name = "sim",
	.kind = WEIR_BACKEND_SIM,
	.open = sim_open,
	.close = sim_close,
	.devices = sim_devices,
	.stream_create = sim_stream_create,
	.stream_destroy = sim_stream_destroy,
	.stream_default = sim_stream_default,
	.event_create = sim_event_create,
	.event_destroy = sim_event_destroy,
	.record = sim_record,
	.query = sim_query,
	.wait = sim_wait,
	.launch = sim_launch,
	.copy = sim_copy,
	.copy_rows = sim_copy_rows,
	.call = sim_call,
	.timer_create = sim_timer_create,
	.timer_destroy = sim_event_destroy,
	.timer_record = sim_record,
	.timer_read = sim_timer_read,
	.capture_begin = sim_capture_begin,
	.capture_order = sim_capture_order,
	.capture_end = sim_capture_end,
	.graph_items = wr_host_graph_items,
	.graph_launch = sim_graph_launch,
	.graph_destroy = wr_host_graph_destroy,
	.graph_differs = wr_host_graph_differs,
	.write_flag = sim_write_flag,
	.partitions_create = sim_partitions_create,
	.partition_destroy = sim_partition_destroy,
	.alloc = sim_alloc,
	.release = sim_release,
	.is_closed = sim_is_closed,
	.stopped = sim_stopped,
	.enter = sim_enter,
};
