/*
 * One world: one or two graphs (B5), each with a scheduler, a fiber that starts it and waits for it, and
 * fibers of outsiders that poke, push, take, set conditions, ask for explanations, and stop. Everything is
 * drawn before the run, from generators that no schedule moves.
 *
 * Half of all worlds are tiny: one wrong step shows only in few orders, which are found only if there are few
 * orders.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "dst_world.h"
#include "certificate.h"
#include "rest.h"
#include "sim/simulation.h"
#include "tests/bugs/bug.h"

#define LIMIT 6000000 /* switching points of a world */

/* --- drawing --- */

static uint64_t draw(struct dst_run *run, uint64_t n)
{
	return wr_random_below(&run->dst.random, n);
}

static bool chance(struct dst_run *run, uint64_t one_in)
{
	return !draw(run, one_in);
}

static void draw_shape(struct dst_run *run, bool tiny)
{
	struct dst *dst = &run->dst;
	bool wide = !tiny && chance(run, 2);

	dst->tiny = tiny;
	dst->gather = wide && chance(run, 4);
	dst->plain = tiny || (!dst->gather && chance(run, 2));
	dst->cycle = wide && dst->plain && chance(run, 3);
	dst->knot = dst->cycle && chance(run, 3);
	dst->inlet = wide && !dst->cycle && (dst->plain || dst->gather) && chance(run, 3);
	dst->outlet = wide && !dst->cycle && chance(run, 3);
	if (wide && !dst->knot && chance(run, 3))
		dst->told = chance(run, 2) ? "asynchronous" : "boolean";
	run->pushes = (unsigned)draw(run, 6);
	run->explains = wide && chance(run, 3);
	run->early = run->seed % 4 == 0;
}

bool dst_signals_lost;

static void draw_mishaps(struct dst_run *run)
{
	struct dst *dst = &run->dst;
	bool some = !dst->tiny && !dst->knot && chance(run, 4);

	dst->fails_at = some && chance(run, 3) ? 1 + (uint32_t)draw(run, 4) : 0;
	dst->stops_at = some && chance(run, 3) ? 1 + (uint32_t)draw(run, 4) : 0;
	dst->bad_starts = some && chance(run, 4);
	if (!dst->tiny && !dst->knot && chance(run, 4))
		run->stop = chance(run, 2) ? DST_STOP_DRAIN : DST_STOP_AT_ONCE;
	if (dst->tiny && chance(run, 6))
		run->stop = chance(run, 2) ? DST_STOP_DRAIN : DST_STOP_AT_ONCE;
	run->stop_after = (int64_t)draw(run, dst->tiny ? 2 * DST_BEAT : 12 * US);
	run->knobs.fault = some && chance(run, 2) ? 100 : 0;
	run->knobs.after_fault = chance(run, 2);
	run->knobs.lost = some && chance(run, 4) ? 100 : 0;
	run->knobs.blocked = !dst->tiny && chance(run, 4) ? 50 : 0;
	if (dst_signals_lost) {
		run->knobs.fault = 0;
		run->knobs.lost = 100;
	}
}

static void draw_options(struct dst_run *run)
{
	weir_scheduler_options *options = &run->options;
	struct dst *dst = &run->dst;

	options->size = sizeof *options;
	options->backend = "sim";
	options->strict = WEIR_NONE; /* its computes look at device memory */
	options->seed = run->seed;
	options->workers = dst->tiny ? 2 - (unsigned)chance(run, 8) : 1 + (unsigned)draw(run, 3);
	options->drain_ns = 10 * INT64_C(1000) * MS;
	options->deadlock_grace_ns = chance(run, dst->tiny ? 20 : 4) ? 20 * US : 0;
	if (dst->told)
		options->deadlock_grace_ns = 100 * MS; /* disabled entities are enabled again before that */
	if (!dst->tiny && !dst->knot && chance(run, 10))
		options->max_duration_ns = 1 + (int64_t)draw(run, 12 * US);
	options->worker_spin_ns = chance(run, 8) ? 2 * US : 0;
	options->observe = run->seed % 8 == 3 ? WEIR_OBSERVE_TRACE : 0; /* none of the kept seeds */
	options->trace_events = 128;
}

static bool draw_scratch(uint64_t seed, unsigned number)
{
	struct wr_random random;

	wr_random_seed(&random, seed, 405 + number);
	return wr_random_below(&random, 2);
}

static void draw_parts(struct dst *dst, uint64_t seed, unsigned number)
{
	struct wr_random random;

	wr_random_seed(&random, seed, 505 + number);
	dst->packs = wr_random_below(&random, 2);
	dst->copies = !wr_random_below(&random, 3);
	dst->fenced = (unsigned)wr_random_below(&random, 2 * DST_ENTITIES);
	dst->fence_once = wr_random_below(&random, 2);
}

static void draw_run(struct dst_run *run, struct dst_world *world, uint64_t seed, unsigned number, bool tiny)
{
	run->world = world;
	run->seed = seed;
	run->knobs = (struct wr_sim_knobs){.work_min = 1,
					   .work_max = 4000,
					   .call_min = 1,
					   .call_max = 3000,
					   .inside = 100,
					   .twice = 100};
	wr_random_seed(&run->dst.random, seed, 5 + number);
	wr_random_seed(&run->dst.streams, seed, 105 + number);
	wr_random_seed(&run->dst.gates, seed, 305 + number);
	wr_random_seed(&run->dst.joins, seed, 605 + number);
	run->dst.scratch = draw_scratch(seed, number);
	draw_parts(&run->dst, seed, number);
	dst_use(&run->dst, number);
	draw_shape(run, tiny);
	draw_mishaps(run);
	draw_options(run);
	run->pokers = tiny ? (unsigned)draw(run, 4) ? 1 + (unsigned)draw(run, DST_POKERS) : 0
			   : (unsigned)draw(run, 2);
	run->runs = tiny ? 8 + (unsigned)draw(run, 17) : 1 + (unsigned)draw(run, 2); /* tiny runs are cheap */
}

static void draw_world(struct dst_world *world, uint64_t seed)
{
	struct wr_random random;

	wr_random_seed(&random, seed, 4);
	bool tiny = wr_random_below(&random, 2);
	world->graphs = tiny || wr_random_below(&random, 8) ? 1 : 2;
	for (unsigned i = 0; i < world->graphs; i++)
		draw_run(&world->runs[i], world, seed, i, i ? true : tiny);
}

/* --- promises --- */

static bool cut(const struct dst_run *run)
{
	return run->stop || run->dst.stopped || run->options.max_duration_ns;
}

/* The status that a run must end with. A run that is stopped may end before a failure. */
static void check_status(struct dst_run *run, weir_status status, const char *text)
{
	bool lost = wr_system_failed(run->graph->system);
	weir_status due = run->dst.knot ? WEIR_E_DEADLOCK : WEIR_OK;

	/* With `auto` a signal that is lost fails nothing (E2). */
	if (lost && !run->knobs.fault && (!run->knobs.lost || run->scheduler->signal == WR_SIGNAL_AUTO))
		dst_break(&run->dst, "the device failed by itself: %s",
			  wr_system_failure(run->graph->system));
	if (run->dst.failed && status == WEIR_E_FAILED)
		return;
	if (lost && status == WEIR_E_DEVICE)
		return;
	if ((lost || run->dst.failed) && !cut(run))
		dst_break(&run->dst, "a failure was not told: %s", weir_status_text(status));
	if (status != due)
		dst_break(&run->dst, "%s: %s", weir_status_text(status), text);
}

static void check_counts(struct dst_run *run, bool whole)
{
	weir_queue_counts counts = {.size = sizeof counts};
	struct dst *dst = &run->dst;

	for (size_t i = 0; !weir_scheduler_queue_counts(run->scheduler, i, &counts); i++) {
		if (counts.pushed != counts.delivered + counts.dropped + counts.unmatched + counts.closed +
					     counts.queued + counts.abandoned)
			dst_break(dst, "%s -> %s: messages were lost", counts.from, counts.to);
		if (whole && (counts.pushed != dst->beats || counts.delivered != counts.pushed))
			dst_break(dst, "%s -> %s: %llu of %u came, %llu were delivered", counts.from,
				  counts.to, (unsigned long long)counts.pushed, dst->beats,
				  (unsigned long long)counts.delivered);
	}
}

/* S4, S6: unless it was stopped or has failed. */
static void check_over(struct dst_run *run)
{
	const weir_entity *entity = certificate_refuted_by(run->scheduler);

	if (entity)
		dst_break(&run->dst, "the run is over, and %s could go on", weir_entity_name(entity));
}

/* S5: an entity that is DONE has dropped its messages, also those that arrived meanwhile. */
static void check_dropped(struct dst_run *run)
{
	for (size_t i = 0; i < run->graph->connection_count; i++) {
		const struct wr_connection *connection = run->graph->connections[i];
		const struct wr_queue *queue = &connection->queue;
		bool left = connection->receiver && (wr_load(&connection->receiver->state) & WR_DONE);
		if (left && wr_read(&queue->tail) != wr_read(&queue->head))
			dst_break(&run->dst, "%s is done and its queue from %s is not empty", connection->to,
				  connection->from);
	}
}

/* S5: exhausted sources and closed inlets make everything behind them DONE. */
static void check_done(struct dst_run *run)
{
	weir_entity_counts counts = {.size = sizeof counts};

	for (size_t i = 0; !weir_scheduler_entity_counts(run->scheduler, i, &counts); i++)
		if (!counts.done)
			dst_break(&run->dst, "%s is not done after a run that has finished", counts.entity);
}

/* S4: no reference is left after the end; a poke that was under way may take a moment to drop its own. */
static void check_references(struct dst_run *run)
{
	weir_sleep(MS);
	if (wr_live_count(&run->scheduler->live))
		dst_break(&run->dst, "%llu references are left after the run",
			  (unsigned long long)wr_live_count(&run->scheduler->live));
}

/* --- the runs of one graph --- */

static void say(const weir_unmet *unmet, void *arg)
{
	(void)arg;
	fprintf(stderr, "%s: %s: %s: %s\n", unmet->entity, unmet->condition, unmet->verdict, unmet->detail);
}

static weir_status start(struct dst_run *run)
{
	bool bad = run->dst.bad_starts;
	weir_status status = WEIR_OK;

	if (run->dst.fenced < run->dst.entities && run->dst.fence_once)
		status =
			dst_tell_fence(&run->dst, &run->graph->entities[run->dst.fenced], (weir_fence){0, 0});
	if (status)
		dst_break(&run->dst, "the fence of the first tick: %s", weir_last_error());
	status = weir_scheduler_start(run->scheduler);
	if (status != (bad ? WEIR_E_FAILED : WEIR_OK))
		dst_break(&run->dst, "start: %s: %s", weir_status_text(status), weir_last_error());
	return status;
}

static void run_once(struct dst_run *run)
{
	struct dst_outsider outsiders[DST_OUTSIDERS];
	weir_outcome outcome = {.size = sizeof outcome};
	weir_status status = WEIR_OK;
	unsigned n;

	run->dst.failed = run->dst.stopped = false;
	run->dst.beats = run->inlet ? 0 : run->dst.beats;
	wr_store(&run->over, false);
	wr_store(&run->opened, false);
	n = dst_send_outsiders(outsiders, run);
	if (!start(run)) {
		wr_store(&run->opened, true);
		status = weir_scheduler_wait(run->scheduler, 20 * INT64_C(1000) * MS, &outcome);
		if (status == WEIR_E_TIMEOUT)
			weir_scheduler_explain(run->scheduler, say, NULL);
		check_status(run, status, weir_last_error());
		if ((!status || status == WEIR_E_DEADLOCK) && !cut(run))
			check_over(run);
	}
	wr_store(&run->over, true);
	for (unsigned i = 0; i < n && !run->dst.broken[0]; i++)
		wr_thread_join(&outsiders[i].thread);
	if (run->dst.broken[0])
		return;
	dst_drop_kept(&run->dst);
	bool whole = wr_load(&run->opened) && !status && !cut(run);
	if (whole)
		check_done(run);
	check_counts(run, whole && run->dst.strict);
	if (whole)
		check_dropped(run);
	check_references(run);
}

/* --- GPU time (T15): in one world of 16 ticks are timed, which must not change what holds --- */

static _Thread_local struct dst_run *observed;

static weir_status observer_open(const struct wr_trace_options *options, void **self)
{
	(void)options;
	*self = observed;
	return WEIR_OK;
}

static void check_work(void *self, int64_t at, unsigned lane, uint32_t entity, uint64_t tick,
		       const char *stream, uint32_t queue, int64_t begin, int64_t end,
		       enum wr_trace_source source)
{
	struct dst_run *run = self;

	(void)lane;
	(void)queue;
	(void)source;
	if (begin > end || end > at || !*stream)
		dst_break(&run->dst, "tick %llu of entity %u had device work from %lld to %lld, told at %lld",
			  (unsigned long long)tick, entity, (long long)begin, (long long)end, (long long)at);
}

static const struct wr_observer gpu_time = {.name = "dst", .open = observer_open, .device_work = check_work};

static weir_status time_ticks(struct dst_run *run)
{
	const struct wr_observer *list[] = {&gpu_time};
	struct wr_trace_options options = {.workers = run->scheduler->worker_asked};

	if (run->seed % 16 != 9)
		return WEIR_OK;
	observed = run;
	run->scheduler->gpu_time = 1 + (int)(run->seed / 16 % 3);
	return wr_trace_open_with(&options, list, 1, &run->scheduler->trace);
}

static weir_status make(struct dst_run *run)
{
	char last[16];
	weir_status status = dst_graph(&run->dst, run->world->registry, &run->graph);

	snprintf(last, sizeof last, "e%u.out", run->dst.entities - 1);
	if (!status && run->dst.inlet)
		status = weir_graph_add_inlet(run->graph, "e0.in", &run->inlet);
	if (!status && run->dst.outlet)
		status = weir_graph_add_outlet(run->graph, last, 1 + (uint32_t)draw(run, 3),
					       run->early ? WEIR_OUTLET_EARLY : 0, &run->outlet);
	if (!status)
		status = weir_scheduler_create(run->graph, &run->options, &run->scheduler);
	if (!status)
		status = time_ticks(run);
	if (!status && run->seed % 4 == 1) /* none of the kept seeds */
		rest_look_often(run->scheduler, (1 + (int64_t)(run->seed / 4 % 10)) * 5 * US);
	run->dst.scheduler = run->scheduler;
	return status;
}

static void unmake(struct dst_run *run)
{
	run->dst.scheduler = NULL;
	if (run->options.observe && weir_scheduler_write_trace(run->scheduler, "/dev/null", NULL))
		dst_break(&run->dst, "the timeline: %s", weir_last_error());
	weir_scheduler_destroy(run->scheduler);
	if (weir_graph_destroy(run->graph))
		dst_break(&run->dst, "destroy: %s", weir_last_error());
}

static void run_graph(void *arg)
{
	struct dst_run *run = arg;

	if (make(run)) {
		dst_break(&run->dst, "setting up: %s", weir_last_error());
		return;
	}
	wr_system_set_knobs(run->graph->system, &run->knobs);
	run->graph->system->poller.spins = run->world->spins;
	if (wr_flags_use(run->graph->system, wr_graph_bind_signals(run->graph, run->scheduler->signal)))
		dst_break(&run->dst, "signals: %s", weir_last_error());
	for (unsigned i = 0; i < run->runs && !run->dst.broken[0]; i++)
		if (!wr_system_failed(run->graph->system))
			run_once(run);
	if (!run->dst.broken[0])
		unmake(run);
}

static void body(void *arg)
{
	struct dst_world *world = arg;
	struct wr_thread other = {0};

	if (weir_registry_create(&world->registry) || dst_register(world->registry)) {
		dst_break(&world->runs[0].dst, "setting up: %s", weir_last_error());
		return;
	}
	if (world->graphs > 1)
		wr_thread_start(&other, "other", run_graph, &world->runs[1]);
	run_graph(&world->runs[0]);
	if (world->runs[0].dst.broken[0])
		return; /* abandoned */
	wr_thread_join(&other);
	if (!world->runs[1].dst.broken[0])
		weir_registry_destroy(world->registry);
}

static bool report(const struct dst_world *world, struct dst_report *out)
{
	const struct dst *dst =
		&world->runs[world->runs[1].dst.broken[0] && !world->runs[0].dst.broken[0]].dst;

	snprintf(out->broken, sizeof out->broken, "%s", dst->broken);
	snprintf(out->text, sizeof out->text, "%s", dst->text);
	return !dst->broken[0];
}

/*
 * Half of the worlds run without the safety nets, such as the watch every 50 ms: a protocol that loses
 * something then hangs. Half of the worlds wait for flags as on a device.
 */
static void draw_poller(struct dst_world *world, uint64_t seed)
{
	struct wr_random random;

	wr_random_seed(&random, seed, 205);
	wr_nets = wr_random_below(&random, 2);
	world->spins = wr_random_below(&random, 2);
}

/* S9, G4: called whenever time passes. */
static void look_at_rest(void *arg)
{
	struct dst_world *world = arg;

	for (unsigned i = 0; i < world->graphs; i++) {
		weir_scheduler *scheduler = world->runs[i].dst.scheduler;
		const char *broken = scheduler ? rest_broken(scheduler) : NULL;
		if (broken)
			dst_break(&world->runs[i].dst, "%s", broken);
	}
}

/* In half of the worlds every port keeps a set of new connections; otherwise only large ports do. */
static void draw_sets(uint64_t seed)
{
	struct wr_random random;

	wr_random_seed(&random, seed, 207);
	wr_fan_in_few = wr_random_below(&random, 2) ? 0 : 8;
}

bool dst_world(uint64_t seed, struct dst_report *out)
{
	static struct dst_world world;
	struct wr_sim *sim = NULL;
	weir_status status;

	memset(&world, 0, sizeof world);
	draw_world(&world, seed);
	draw_poller(&world, seed);
	draw_sets(seed);
	if (wr_sim_create(&sim, seed, WR_SIM_PAUSES))
		abort();
	wr_sim_set_limit(sim, LIMIT);
	wr_sim_at_rest(sim, look_at_rest, &world);
	status = wr_sim_call(sim, body, &world);
	if (status)
		dst_break(&world.runs[0].dst, "%s: %s", weir_status_text(status), weir_last_error());
	out->hash = wr_sim_hash(sim);
	out->switches = wr_sim_switches(sim);
	wr_sim_destroy(sim);
	wr_tokens_forget();
	wr_nets = true;
	wr_fan_in_few = 8;
	return report(&world, out);
}
