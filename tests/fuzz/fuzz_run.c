/*
 * Runs a graph, on `host` beside interfering threads, and checks how it ended, the counts, and the
 * messages.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fuzz_api.h"
#include "shown.h"
#include "sim/simulation.h"
#include "tests/scheduler/certificate.h"

static const int64_t patience = 40 * 1000 * FZ_MS;

/* --- checks --- */

static const struct fz_connection *connection_named(const struct fz *fz, const weir_queue_counts *counts)
{
	static const char *const outs[] = {"out", "out2"}, *const ins[] = {"in", "in2", "any"};
	char from[24], to[24];

	for (unsigned i = 0; i < fz->connection_count; i++) {
		const struct fz_connection *one = &fz->connections[i];
		snprintf(from, sizeof from, "%s.%s", fz->entities[one->from].name, outs[one->output]);
		snprintf(to, sizeof to, "%s.%s", fz->entities[one->to].name, ins[one->port]);
		if (!strcmp(to, counts->to) && !strcmp(one->from == FZ_INLET ? "inlet" : from, counts->from))
			return one;
	}
	return NULL;
}

/* E5; and compute received as many messages as were counted, unless a tick failed half-way. */
static void check_queues(struct fz *fz, bool exact)
{
	weir_queue_counts counts = {.size = sizeof counts};
	uint64_t delivered[FZ_ENTITIES + 1][FZ_PORTS] = {0};

	for (size_t i = 0; !weir_scheduler_queue_counts(fz->scheduler, i, &counts); i++) {
		const struct fz_connection *one = connection_named(fz, &counts);
		uint64_t due = one ? fz->entities[one->from].emitted[one->output] + one->initial_messages : 0;
		if (counts.pushed !=
		    counts.delivered + counts.dropped + counts.closed + counts.queued + counts.abandoned)
			fz_break(fz,
				 "%s to %s: %llu pushed, %llu delivered, %llu dropped, %llu closed, %llu "
				 "queued, %llu abandoned",
				 counts.from, counts.to, (unsigned long long)counts.pushed,
				 (unsigned long long)counts.delivered, (unsigned long long)counts.dropped,
				 (unsigned long long)counts.closed, (unsigned long long)counts.queued,
				 (unsigned long long)counts.abandoned);
		if (!one)
			continue;
		delivered[one->to][one->port] += counts.delivered;
		if (exact && one->from != FZ_INLET && counts.pushed != due)
			fz_break(fz, "%s to %s: %llu pushed, but %llu emitted", counts.from, counts.to,
				 (unsigned long long)counts.pushed, (unsigned long long)due);
	}
	for (unsigned id = 0; exact && id < fz->entity_count; id++)
		for (unsigned port = 0; port < FZ_PORTS; port++)
			if (fz->entities[id].received[port] != delivered[id][port])
				fz_break(fz, "e%02u, port %u: %llu delivered, but compute saw %llu", id, port,
					 (unsigned long long)delivered[id][port],
					 (unsigned long long)fz->entities[id].received[port]);
}

/*
 * Everything that was started was stopped: at the end of the run or, if it was aborted, when the scheduler
 * was destroyed.
 */
static void check_stopped(struct fz *fz)
{
	for (unsigned id = 0; id < fz->entity_count; id++)
		if (atomic_load(&fz->entities[id].started))
			fz_break(fz, "e%02u was started, but not stopped", id);
}

/* The bound of ticks in flight holds, unless it is narrowed for entities that enqueue much. */
static void check_bound(struct fz *fz, const weir_entity_counts *counts, const struct fz_entity *entity)
{
	unsigned bound = entity->max_in_flight < 0 ? fz->bound : (unsigned)entity->max_in_flight;

	if (bound && counts->most_in_flight > bound)
		fz_break(fz, "%s had %llu ticks in flight, its bound is %u", counts->entity,
			 (unsigned long long)counts->most_in_flight, bound);
}

static void check_entities(struct fz *fz, bool all_done, bool cut)
{
	weir_entity_counts counts = {.size = sizeof counts};

	for (size_t i = 0; !weir_scheduler_entity_counts(fz->scheduler, i, &counts); i++) {
		fz->ticks += counts.ticks;
		if (all_done && !counts.done)
			fz_break(fz, "%s is not done, though the run has finished", counts.entity);
		if (i < fz->entity_count)
			check_bound(fz, &counts, &fz->entities[i]);
	}
	if (!cut)
		check_stopped(fz);
}

/* The outcomes that are possible for this graph. */
static void check_end(struct fz *fz, weir_status status, const weir_outcome *outcome, bool cut)
{
	bool failed = atomic_load(&fz->failed), faulted = atomic_load(&fz->faulted);
	const char *text = outcome->text ? outcome->text : "";

	fz_expect_harmless(fz, text, "the outcome");
	fz_expect_harmless(fz, outcome->waiting ? outcome->waiting : "", "what waits");
	if (status == WEIR_OK && !(failed && !cut))
		return; /* a fault after the last check may go unnoticed only if the run was aborted */
	if (status == WEIR_E_DEADLOCK && !fz->tame && text[0])
		return;
	if ((status == WEIR_E_FAILED && (failed || fz->overflows) && outcome->entity) ||
	    (status == WEIR_E_DEVICE && faulted))
		return;
	fz_break(fz, "the run ended with %s: %s (%s)", weir_status_text(status), text,
		 outcome->entity ? outcome->entity : "no entity");
}

/* The graph may have been stopped neither by an entity nor by a thread. */
static void check_over(struct fz *fz)
{
	const weir_entity *entity = certificate_refuted_by(fz->scheduler);

	if (entity)
		fz_break(fz, "the run is over, and %s could go on", weir_entity_name(entity));
}

/* --- a run --- */

static void prepare(struct fz *fz)
{
	fz->salt = fz_next(&fz->random) | 1;
	atomic_store(&fz->failed, false);
	atomic_store(&fz->stopped, false);
	atomic_store(&fz->over, false);
	atomic_store(&fz->fences_told, !fz_alone(fz) && fz_chance(&fz->random, 3));
	for (unsigned id = 0; id < fz->entity_count; id++) {
		struct fz_entity *entity = &fz->entities[id];
		entity->random = (struct fz_random){fz_next(&fz->random)};
		entity->busy = false;
		entity->number = 0;
		entity->own = entity->told = (weir_fence){0, 0};
		memset(entity->received, 0, sizeof entity->received);
		memset(entity->emitted, 0, sizeof entity->emitted);
		memset(entity->seen, 0, sizeof entity->seen);
	}
}

static void shout(const weir_unmet *unmet, void *arg)
{
	(void)arg;
	fprintf(stderr, "  %s: %s: %s: %s\n", unmet->entity, unmet->condition, unmet->verdict, unmet->detail);
}

static uint64_t ticks_so_far(struct fz *fz)
{
	weir_entity_counts counts = {.size = sizeof counts};
	uint64_t ticks = 0;

	for (size_t i = 0; !weir_scheduler_entity_counts(fz->scheduler, i, &counts); i++)
		ticks += counts.ticks;
	return ticks;
}

/* On a busy machine a run may be slow, which is no fault while it makes progress. */
static weir_status wait_for_end(struct fz *fz, weir_outcome *outcome)
{
	uint64_t before, now = 0;
	weir_status status;

	do {
		before = now;
		alarm(100);
		status = weir_scheduler_wait(fz->scheduler, patience, outcome);
		now = ticks_so_far(fz);
	} while (status == WEIR_E_TIMEOUT && weir_scheduler_running(fz->scheduler) && now > before);
	if (status == WEIR_E_TIMEOUT && weir_scheduler_running(fz->scheduler)) {
		weir_scheduler_explain(fz->scheduler, shout, NULL);
		fz_break(fz, "the run hangs");
	}
	return status;
}

/* After an aborted run it may have to wait until the device work of stop functions completes. */
static weir_status start(struct fz *fz)
{
	weir_status status;

	for (unsigned id = 0; id < fz->entity_count; id++)
		if (fz->entities[id].told_fence)
			fz_expect_ok(
				fz,
				weir_entity_tell_fence(fz->entities[id].handle, "fence", (weir_fence){0, 0}),
				"a fence for the first tick");
	status = weir_scheduler_start(fz->scheduler);

	for (int64_t waited = 0; status == WEIR_E_BUSY && waited < patience; waited += FZ_MS) {
		weir_sleep(FZ_MS);
		status = weir_scheduler_start(fz->scheduler);
	}
	return status;
}

static void run_once(struct fz *fz)
{
	struct fz_meddler meddlers[FZ_MEDDLERS];
	weir_outcome outcome = {.size = sizeof outcome};
	bool stops = !fz_alone(fz) && fz_chance(&fz->random, 8), cut;
	weir_status status;
	unsigned n;

	prepare(fz);
	status = start(fz);
	if (status == WEIR_E_FAILED) {
		fz_expect_harmless(fz, weir_last_error(), "the last error");
		return; /* a start was made to fail, once */
	}
	fz_expect_ok(fz, status, "start");
	n = fz_send(meddlers, fz, stops);
	status = wait_for_end(fz, &outcome);
	fz_join(fz, meddlers, n);
	cut = stops || atomic_load(&fz->stopped) || fz->scheduler_options.max_duration_ns;
	check_end(fz, status, &outcome, cut);
	if (!cut && (!status || status == WEIR_E_DEADLOCK))
		check_over(fz);
	check_queues(fz, !status || status == WEIR_E_DEADLOCK);
	check_entities(fz, !status && !cut && fz->tame, cut || status);
	fz->ends[!status ? 0 : status == WEIR_E_DEADLOCK ? 1 : 2]++;
}

/* Another thread destroys the graph during the run. */
static void destroy_during_run(void *arg)
{
	struct fz *fz = arg;

	weir_sleep(fz_below(&fz->random, 2000) * FZ_US);
	fz_expect_ok(fz, weir_scheduler_destroy(fz->scheduler), "destroy of a scheduler that runs");
}

static void run_destroyed(struct fz *fz)
{
	struct wr_thread thread;

	prepare(fz);
	if (fz->inlet || fz->outlet || start(fz)) {
		fz_expect_ok(fz, weir_scheduler_destroy(fz->scheduler), "destroy");
		return;
	}
	fz_expect_ok(fz, wr_thread_start(&thread, "destroyer", destroy_during_run, fz), "a thread");
	wr_thread_join(&thread);
}

/* --- a graph --- */

static void hear_report(const weir_diagnostic *report, void *arg)
{
	fz_expect_harmless(arg, report->text, "a report");
	if (!report->warning)
		fz_break(arg, "W%03d: %s: %s", report->number, report->pointer, report->text);
}

static void make(struct fz *fz)
{
	weir_description *description = NULL;

	fz_expect_ok(fz, weir_registry_create(&fz->registry), "registry");
	fz_expect_ok(fz, fz_add_operators(fz->registry), "operators");
	fz_expect_ok(fz, fz_add_conditions(fz->registry), "conditions");
	fz_expect_ok(fz, weir_description_parse(fz->text, strlen(fz->text), hear_report, fz, &description),
		     "parse");
	fz_expect_ok(fz, weir_description_check(description, fz->registry, hear_report, fz), "check");
	fz_expect_ok(fz, weir_graph_create(fz->registry, description, &fz->graph), "graph");
	weir_description_destroy(description);
	for (unsigned id = 0; id < fz->entity_count; id++)
		fz->entities[id].handle = weir_graph_entity(fz->graph, fz->entities[id].name);
}

static void make_doors(struct fz *fz)
{
	char port[24];

	snprintf(port, sizeof port, "%s.in", fz->entities[fz->inlet_to].name);
	if (fz->inlet)
		fz_expect_ok(fz, weir_graph_add_inlet(fz->graph, port, &fz->inlet_handle), "inlet");
	snprintf(port, sizeof port, "%s.out", fz->entities[fz->outlet_from].name);
	if (fz->outlet)
		fz_expect_ok(fz,
			     weir_graph_add_outlet(fz->graph, port, fz->outlet_capacity,
						   fz->early ? WEIR_OUTLET_EARLY : 0, &fz->outlet_handle),
			     "outlet");
}

static void unmake(struct fz *fz)
{
	fz_expect_ok(fz, weir_graph_destroy(fz->graph), "destroy of the graph");
	weir_registry_destroy(fz->registry);
	if (atomic_load(&fz->wrapped) != atomic_load(&fz->unwrapped))
		fz_break(fz, "%u pieces of memory were given, %u destructors were called",
			 atomic_load(&fz->wrapped), atomic_load(&fz->unwrapped));
}

static void run_graph(void *arg)
{
	struct fz *fz = arg;

	make(fz);
	make_doors(fz);
	for (unsigned schedulers = 1 + fz_chance(&fz->random, 4); schedulers && !atomic_load(&fz->faulted);
	     schedulers--) {
		bool destroyed = strcmp(fz->backend, "sim") && fz_chance(&fz->random, 6);

		fz_expect_ok(fz, weir_scheduler_create(fz->graph, &fz->scheduler_options, &fz->scheduler),
			     "scheduler");
		if (fz->inlet)
			fz_expect_ok(fz, weir_graph_add_stream(fz->graph, 0, &fz->stream),
				     "a stream of the program's");
		for (unsigned i = 0; i < fz->runs && !atomic_load(&fz->faulted); i++)
			run_once(fz);
		if (destroyed && !atomic_load(&fz->faulted))
			run_destroyed(fz);
		else
			fz_expect_ok(fz, weir_scheduler_destroy(fz->scheduler), "destroy");
		check_stopped(fz);
	}
	unmake(fz);
}

void fz_run(struct fz *fz)
{
	struct wr_sim *sim = NULL;

	if (!fz->inside) {
		run_graph(fz);
		return;
	}
	fz_expect_ok(fz, wr_sim_create(&sim, fz->seed, WR_SIM_PAUSES), "a world");
	fz_expect_ok(fz, wr_sim_call(sim, run_graph, fz), "a run in a world");
	wr_sim_destroy(sim);
}
