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

#include "base/bug.h"
#include "base/clock.h"
#include "sim/simulation.h"
#include "base/thread.h"
#include "dst.h"
#include "rest.h"
#include "scheduler/scheduler.h"
#include "streams/sim.h"
#include "streams/system.h"
#include "streams/token.h"

#define US    1000
#define MS    1000000
#define LIMIT 6000000 /* switching points of a world */

enum { POKERS = 4, OUTSIDERS_MAX = 10 };
enum stop { STOP_NONE, STOP_DRAIN, STOP_AT_ONCE };

struct run {
	struct dst dst;
	struct world *world;
	weir_graph *graph;
	weir_scheduler *scheduler;
	weir_inlet *inlet;
	weir_outlet *outlet;
	weir_scheduler_options options;
	struct wr_sim_knobs knobs;
	uint64_t seed;
	unsigned runs, pokers, pushes;
	enum stop stop;
	int64_t stop_after;
	bool explains;
	bool early;                /* the outlet gives messages that are not complete */
	_Atomic bool opened, over; /* the current run */
};

struct world {
	struct run runs[DST_GRAPHS];
	unsigned graphs;
	weir_registry *registry;
	bool spins;
};

/* --- drawing --- */

static uint64_t draw(struct run *run, uint64_t n)
{
	return wr_random_below(&run->dst.random, n);
}

static bool chance(struct run *run, uint64_t one_in)
{
	return !draw(run, one_in);
}

static void draw_shape(struct run *run, bool tiny)
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

static void draw_mishaps(struct run *run)
{
	struct dst *dst = &run->dst;
	bool some = !dst->tiny && !dst->knot && chance(run, 4);

	dst->fails_at = some && chance(run, 3) ? 1 + (uint32_t)draw(run, 4) : 0;
	dst->stops_at = some && chance(run, 3) ? 1 + (uint32_t)draw(run, 4) : 0;
	dst->bad_starts = some && chance(run, 4);
	if (!dst->tiny && !dst->knot && chance(run, 4))
		run->stop = chance(run, 2) ? STOP_DRAIN : STOP_AT_ONCE;
	if (dst->tiny && chance(run, 6))
		run->stop = chance(run, 2) ? STOP_DRAIN : STOP_AT_ONCE;
	run->stop_after = (int64_t)draw(run, dst->tiny ? 2 * DST_BEAT : 12 * US);
	run->knobs.fault = some && chance(run, 2) ? 100 : 0;
	run->knobs.after_fault = chance(run, 2);
	run->knobs.lost = some && chance(run, 4) ? 100 : 0;
	run->knobs.blocked = !dst->tiny && chance(run, 4) ? 50 : 0;
}

static void draw_options(struct run *run)
{
	weir_scheduler_options *options = &run->options;
	struct dst *dst = &run->dst;

	options->size = sizeof *options;
	options->backend = "sim";
	options->seed = run->seed;
	options->workers = dst->tiny ? 2 - (unsigned)chance(run, 8) : 1 + (unsigned)draw(run, 3);
	options->drain_ns = 10 * INT64_C(1000) * MS;
	options->deadlock_grace_ns = chance(run, dst->tiny ? 20 : 4) ? 20 * US : 0;
	if (dst->told)
		options->deadlock_grace_ns = 100 * MS; /* disabled entities are enabled again before that */
	if (!dst->tiny && !dst->knot && chance(run, 10))
		options->max_duration_ns = 1 + (int64_t)draw(run, 12 * US);
	options->spin_ns = chance(run, 8) ? 2 * US : 0;
}

static void draw_run(struct run *run, struct world *world, uint64_t seed, unsigned number, bool tiny)
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
	dst_use(&run->dst, number);
	draw_shape(run, tiny);
	draw_mishaps(run);
	draw_options(run);
	run->pokers =
		tiny ? (unsigned)draw(run, 4) ? 1 + (unsigned)draw(run, POKERS) : 0 : (unsigned)draw(run, 2);
	run->runs = tiny ? 8 + (unsigned)draw(run, 17) : 1 + (unsigned)draw(run, 2); /* tiny runs are cheap */
}

static void draw_world(struct world *world, uint64_t seed)
{
	struct wr_random random;

	wr_random_seed(&random, seed, 4);
	bool tiny = wr_random_below(&random, 2);
	world->graphs = tiny || wr_random_below(&random, 8) ? 1 : 2;
	for (unsigned i = 0; i < world->graphs; i++)
		draw_run(&world->runs[i], world, seed, i, i ? true : tiny);
}

/* --- outsiders: threads of the program --- */

struct outsider {
	struct run *run;
	unsigned number;
	struct wr_thread thread;
};

/* In a tiny graph mostly until the source's next beat: what happens at one instant happens in any order. */
static void idle_about(struct run *run, struct wr_random *random)
{
	int64_t beat = DST_BEAT - wr_now() % DST_BEAT;

	if (run->dst.tiny)
		weir_sleep(wr_random_below(random, 3) ? beat
						      : 1 + (int64_t)wr_random_below(random, DST_BEAT));
	else if (wr_random_below(random, 3))
		wr_thread_yield();
	else
		weir_sleep((int64_t)wr_random_below(random, 900));
}

/*
 * Useless pokes, also before and after runs. In a tiny graph only few, mostly to the receiver: every poke
 * repairs a wake-up that was lost before it.
 */
static void poke(void *arg)
{
	struct outsider *self = arg;
	struct run *run = self->run;
	struct wr_random random;

	wr_random_seed(&random, run->seed, 77 + self->number);
	for (uint64_t i = 0, n = 1 + wr_random_below(&random, run->dst.tiny ? 5 : 20);
	     i < n && !wr_load(&run->over); i++) {
		if (i || wr_random_below(&random, 4))
			idle_about(run, &random);
		uint64_t target = wr_random_below(&random, run->dst.tiny ? 4 : run->graph->entity_count);
		weir_entity_poke(&run->graph->entities[run->dst.tiny ? target > 0 : target]);
	}
}

static void stop(void *arg)
{
	struct run *run = ((struct outsider *)arg)->run;

	weir_sleep(run->stop_after);
	weir_scheduler_stop(run->scheduler, run->stop == STOP_DRAIN);
}

static bool wait_for_opening(struct run *run)
{
	while (!wr_load(&run->opened) && !wr_load(&run->over))
		weir_sleep(100);
	return wr_load(&run->opened);
}

static weir_status push_one(struct run *run)
{
	weir_message *message = NULL;
	weir_status status = weir_message_bytes(&message, run->graph, sizeof(struct dst_payload));

	if (status)
		return status;
	*(struct dst_payload *)weir_message_data(message) = dst_payload_of(DST_INLET, run->dst.beats);
	status = WEIR_E_TIMEOUT;
	for (int64_t patience = 3 * US; status == WEIR_E_TIMEOUT; patience *= 2) /* a lost callback: 1 s */
		status = weir_inlet_push(run->inlet, message, patience);
	if (status)
		weir_message_unref(message);
	else
		run->dst.beats++;
	return status;
}

static void push(void *arg)
{
	struct run *run = ((struct outsider *)arg)->run;
	weir_status status = WEIR_OK;

	if (!wait_for_opening(run))
		return;
	for (unsigned i = 0; i < run->pushes && !status; i++)
		status = push_one(run);
	if (status && status != WEIR_E_CLOSED)
		dst_break(&run->dst, "push: %s", weir_last_error());
	weir_inlet_close(run->inlet);
}

/* Host code may read what the device wrote once its fences are complete. */
static bool readable(struct run *run, const weir_message *message)
{
	weir_fence fences[DST_ENTITIES];
	size_t n = weir_message_fences(message, fences, DST_ENTITIES);
	bool complete = true;

	for (size_t i = 0; i < n && i < DST_ENTITIES; i++)
		complete = complete && !weir_fence_wait(run->graph, fences[i], MS);
	return complete;
}

/* True if no device work on the message is pending. On a lost device this is unknown. */
static bool is_complete(struct run *run, weir_message *message)
{
	weir_fence fences[DST_ENTITIES];
	size_t n = weir_message_fences(message, fences, DST_ENTITIES);
	bool pending = false;

	for (size_t i = 0; i < n && i < DST_ENTITIES; i++)
		pending = pending || weir_fence_query(run->graph, fences[i]) == WEIR_E_BUSY;
	return !pending;
}

static void take(void *arg)
{
	struct run *run = ((struct outsider *)arg)->run;
	struct dst_seen seen = {.gaps = false};
	bool all = true; /* all messages before were read */
	weir_message *message;
	weir_status status = WEIR_OK;

	if (!wait_for_opening(run))
		return;
	for (int64_t patience = 2 * US; status != WEIR_E_CLOSED; patience += patience) {
		status = weir_outlet_take(run->outlet, &message, patience);
		if (status == WEIR_E_TIMEOUT || status == WEIR_E_CLOSED)
			continue;
		if (status) {
			dst_break(&run->dst, "take: %s", weir_last_error());
			return;
		}
		if (!run->early && !is_complete(run, message))
			dst_break(&run->dst, "the outlet gave what is not finished");
		all = all && readable(run, message);
		if (all && weir_message_data(message))
			dst_check(&run->dst, weir_message_data(message), &seen, "the outlet");
		weir_message_unref(message);
	}
}

/* A condition that is set to wait is always set to go on soon after. */
static void tell(void *arg)
{
	struct run *run = ((struct outsider *)arg)->run;
	bool event = !strcmp(run->dst.told, "asynchronous");
	weir_entity *entity = &run->graph->entities[run->dst.entities - 1];
	struct wr_random random;

	wr_random_seed(&random, run->seed, 76);
	for (int i = 0; i < 6 && !wr_load(&run->over); i++) {
		weir_entity_tell(entity, run->dst.told, event ? WEIR_TOLD_EVENT_WAITING : WEIR_TOLD_WAIT);
		weir_sleep((int64_t)wr_random_below(&random, 2 * US));
		weir_entity_tell(entity, run->dst.told, event ? WEIR_TOLD_EVENT_DONE : WEIR_TOLD_READY);
		weir_sleep((int64_t)wr_random_below(&random, 2 * US));
	}
}

static void hear(const char *entity, const char *condition, const char *verdict, const char *detail,
		 void *arg)
{
	struct run *run = arg;

	if (!*entity || !*condition || !*verdict || !*detail)
		dst_break(&run->dst, "%s: explained without words", entity);
}

static void say(const char *entity, const char *condition, const char *verdict, const char *detail, void *arg)
{
	(void)arg;
	fprintf(stderr, "%s: %s: %s: %s\n", entity, condition, verdict, detail);
}

static void explain(void *arg)
{
	struct run *run = ((struct outsider *)arg)->run;

	for (int i = 0; i < 6 && !wr_load(&run->over); i++) {
		weir_scheduler_explain(run->scheduler, hear, run);
		weir_sleep(i * 700);
	}
}

static unsigned send(struct outsider *outsiders, unsigned n, struct run *run, void (*fn)(void *arg), bool is)
{
	if (!is)
		return n;
	outsiders[n] = (struct outsider){.run = run, .number = n};
	wr_thread_start(&outsiders[n].thread, "outsider", fn, &outsiders[n]);
	return n + 1;
}

static unsigned send_outsiders(struct outsider *outsiders, struct run *run)
{
	unsigned n = 0;

	for (unsigned i = 0; i < run->pokers; i++)
		n = send(outsiders, n, run, poke, true);
	n = send(outsiders, n, run, stop, run->stop);
	n = send(outsiders, n, run, push, run->inlet);
	n = send(outsiders, n, run, take, run->outlet);
	n = send(outsiders, n, run, tell, run->dst.told);
	return send(outsiders, n, run, explain, run->explains);
}

/* --- promises --- */

static bool cut(const struct run *run)
{
	return run->stop || run->dst.stopped || run->options.max_duration_ns;
}

/* The status that a run must end with. A run that is stopped may end before a failure. */
static void check_status(struct run *run, weir_status status, const char *text)
{
	bool lost = wr_system_failed(run->graph->system);
	weir_status due = run->dst.knot ? WEIR_E_DEADLOCK : WEIR_OK;

	if (lost && !run->knobs.fault && !run->knobs.lost)
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

static void check_counts(struct run *run, bool whole)
{
	weir_queue_counts counts = {.size = sizeof counts};
	struct dst *dst = &run->dst;

	for (size_t i = 0; weir_scheduler_queue_counts(run->scheduler, i, &counts); i++) {
		if (counts.pushed !=
		    counts.delivered + counts.dropped + counts.closed + counts.queued + counts.abandoned)
			dst_break(dst, "%s -> %s: messages were lost", counts.from, counts.to);
		if (whole && (counts.pushed != dst->beats || counts.delivered != counts.pushed))
			dst_break(dst, "%s -> %s: %llu of %u came, %llu were delivered", counts.from,
				  counts.to, (unsigned long long)counts.pushed, dst->beats,
				  (unsigned long long)counts.delivered);
	}
}

/* S5: an entity that is DONE has dropped its messages, also those that arrived meanwhile. */
static void check_dropped(struct run *run)
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
static void check_done(struct run *run)
{
	weir_entity_counts counts = {.size = sizeof counts};

	for (size_t i = 0; weir_scheduler_entity_counts(run->scheduler, i, &counts); i++)
		if (!counts.done)
			dst_break(&run->dst, "%s is not done after a run that has finished", counts.entity);
}

/* S4: no reference is left after the end; a poke that was under way may take a moment to drop its own. */
static void check_references(struct run *run)
{
	weir_sleep(MS);
	if (wr_live_count(&run->scheduler->live))
		dst_break(&run->dst, "%llu references are left after the run",
			  (unsigned long long)wr_live_count(&run->scheduler->live));
}

/* --- the runs of one graph --- */

static weir_status start(struct run *run)
{
	bool bad = run->dst.bad_starts;
	weir_status status = weir_scheduler_start(run->scheduler);

	if (status != (bad ? WEIR_E_FAILED : WEIR_OK))
		dst_break(&run->dst, "start: %s: %s", weir_status_text(status), weir_last_error());
	return status;
}

static void run_once(struct run *run)
{
	struct outsider outsiders[OUTSIDERS_MAX];
	weir_outcome outcome = {.size = sizeof outcome};
	weir_status status = WEIR_OK;
	unsigned n;

	run->dst.failed = run->dst.stopped = false;
	run->dst.beats = run->inlet ? 0 : run->dst.beats;
	wr_store(&run->over, false);
	wr_store(&run->opened, false);
	n = send_outsiders(outsiders, run);
	if (!start(run)) {
		wr_store(&run->opened, true);
		status = weir_scheduler_wait(run->scheduler, 20 * INT64_C(1000) * MS, &outcome);
		if (status == WEIR_E_TIMEOUT)
			weir_scheduler_explain(run->scheduler, say, NULL);
		check_status(run, status, weir_last_error());
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

static weir_status make(struct run *run)
{
	char last[16];
	weir_status status = dst_graph(&run->dst, run->world->registry, &run->graph);

	snprintf(last, sizeof last, "e%u.out", run->dst.entities - 1);
	if (!status && run->dst.inlet)
		status = weir_graph_inlet(run->graph, "e0.in", &run->inlet);
	if (!status && run->dst.outlet)
		status = weir_graph_outlet(run->graph, last, 1 + (uint32_t)draw(run, 3),
					   run->early ? WEIR_OUTLET_EARLY : 0, &run->outlet);
	if (!status)
		status = weir_scheduler_create(&run->scheduler, run->graph, &run->options);
	run->dst.scheduler = run->scheduler;
	return status;
}

static void unmake(struct run *run)
{
	run->dst.scheduler = NULL;
	weir_scheduler_destroy(run->scheduler);
	if (weir_graph_destroy(run->graph))
		dst_break(&run->dst, "destroy: %s", weir_last_error());
}

static void run_graph(void *arg)
{
	struct run *run = arg;

	if (make(run)) {
		dst_break(&run->dst, "setting up: %s", weir_last_error());
		return;
	}
	wr_system_set_knobs(run->graph->system, &run->knobs);
	run->graph->system->poller.spins = run->world->spins;
	for (unsigned i = 0; i < run->runs && !run->dst.broken[0]; i++)
		if (!wr_system_failed(run->graph->system))
			run_once(run);
	if (!run->dst.broken[0])
		unmake(run);
}

static void body(void *arg)
{
	struct world *world = arg;
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

static bool report(const struct world *world, struct dst_report *out)
{
	const struct dst *dst =
		&world->runs[world->runs[1].dst.broken[0] && !world->runs[0].dst.broken[0]].dst;

	snprintf(out->broken, sizeof out->broken, "%s", dst->broken);
	snprintf(out->text, sizeof out->text, "%s", dst->text);
	return !dst->broken[0];
}

/*
 * Half of the worlds run without the safety nets, such as the health check every 50 ms: a protocol that loses
 * something then hangs. Half of the worlds wait for flags as on a device.
 */
static void draw_poller(struct world *world, uint64_t seed)
{
	struct wr_random random;

	wr_random_seed(&random, seed, 205);
	wr_nets = wr_random_below(&random, 2);
	world->spins = wr_random_below(&random, 2);
}

/* S9, G4: called whenever time passes. */
static void look_at_rest(void *arg)
{
	struct world *world = arg;

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
	static struct world world;
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
