/*
 * The loop thread's side of a run. One turn does all that is due and arms the loop for the next: POSIX
 * signals, stop requests, timers, fired tokens, the health watch, quiescence. It never blocks, so the same
 * turn serves weir's own thread, a caller's base and a caller's poll (B1).
 *
 * Only here does a run end (S4): OPEN until it is quiescent, or is cut short; CLOSING until all workers have
 * left, what was left has given back its references, the count is 0 and the streams have drained; then ENDED.
 */
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/status.h"
#include "scheduler/scheduler.h"

#define STREAMS_NS 200000000	/* so long who cuts a run short waits for streams: `stop` may free theirs */
#define ENDED_SOON 1		/* no stamp of a thread is that */
#define POLL_NS 1000000		/* between two looks while it closes */
#define DRAIN_LOOK_NS 20000000	/* between two looks at how far the device has come in a drain */
#define OUTSIDE_NS 10000000	/* virtual: nobody outside wakes a simulated loop, it looks by itself */

/*
 * Whoever stumbles over a failed device is not its culprit: the report names the suspects, and one only if
 * there is one (E3).
 */
static weir_status blame_device(weir_scheduler *scheduler, const weir_entity **entity)
{
	struct wr_system *system = scheduler->graph->system;
	const char *accused = wr_system_accused(system);

	*entity = accused ? weir_graph_entity(scheduler->graph, accused) : NULL;
	return wr_fail(WEIR_E_DEVICE, "%s", wr_system_failure(system));
}

void wr_fail_run(weir_scheduler *scheduler, const weir_entity *entity, weir_status status)
{
	struct wr_system *system = scheduler->graph->system;

	if (system && !wr_system_check_health(system))
		status = blame_device(scheduler, &entity);
	const char *text = weir_last_error();
	char *culprit = entity ? wr_strdup(entity->plan->name) : NULL;
	char *copy = wr_strdup(*text ? text : weir_status_text(status));

	wr_mutex_lock(&scheduler->lock);
	if (!scheduler->failure) {	/* the first is kept (E1) */
		scheduler->failure = status;
		char *old = scheduler->text;
		scheduler->text = copy;
		copy = old;
		old = scheduler->culprit;
		scheduler->culprit = culprit;
		culprit = old;
	}
	wr_mutex_unlock(&scheduler->lock);
	wr_free(copy);
	wr_free(culprit);
	wr_fetch_or(&scheduler->asked, WR_STOP_FAILED);
	wr_loop_kick(&scheduler->loop);
}

/* --- stopping (S7) --- */

static void begin_drain(weir_scheduler *scheduler, int64_t now)
{
	weir_graph *graph = scheduler->graph;

	if (scheduler->draining)
		return;
	scheduler->draining = true;
	wr_fetch_or(&scheduler->asked, WR_STOP_DRAIN);
	scheduler->drain_at = wr_time_add(now, scheduler->options.drain_ns);
	wr_log(WEIR_LOG_INFO, "%s: draining", graph->plan->name);
	if (graph->system)
		wr_system_drain(graph->system);
	for (weir_inlet *inlet = graph->inlets; inlet; inlet = inlet->next)
		wr_inlet_end(inlet);
	for (size_t i = 0; i < graph->entity_count; i++)
		wr_poke(&graph->entities[i]);	/* roots; and who waits for a time with nothing left to receive */
}

static void take_signals(weir_scheduler *scheduler, int64_t now)
{
	int number;

	while ((number = wr_loop_signal(&scheduler->loop))) {
		if (scheduler->posix_signal)
			_exit(128 + number);	/* the second one: at once */
		scheduler->posix_signal = number;
		begin_drain(scheduler, now);
	}
}

static void close_run(weir_scheduler *scheduler, int64_t now, bool cut_short)
{
	scheduler->cut_short = cut_short;
	/* Reviews may have obeyed before a turn did. */
	scheduler->draining |= wr_load(&scheduler->asked) & WR_STOP_DRAIN;
	if (cut_short)
		wr_live_close(&scheduler->live);
	wr_store(&scheduler->phase, WR_CLOSING);
	/* A drain that took too long has waited already. */
	scheduler->streams_until = scheduler->timed_out ? now : wr_time_add(now, STREAMS_NS);
	wr_wake_all(scheduler);
}

/*
 * What was enqueued before a drain and completes is progress: its time runs anew. Work that comes after it
 * began is none, or who enqueues for ever would drain for ever.
 */
static void extend_drain(weir_scheduler *scheduler, int64_t now)
{
	struct wr_system *system = scheduler->graph->system;
	bool left = false;

	scheduler->drain_look_at = INT64_MAX;
	if (!system || scheduler->options.drain_ns <= 0 || !scheduler->draining)
		return;
	if (wr_system_progressed(system, &left))
		scheduler->drain_at = wr_time_add(now, scheduler->options.drain_ns);
	if (left)
		scheduler->drain_look_at = wr_time_add(now, DRAIN_LOOK_NS);
}

/* True: cut short. */
static bool obey(weir_scheduler *scheduler, int64_t now)
{
	unsigned asked = wr_load(&scheduler->asked);

	if (asked & WR_STOP_DRAIN || (scheduler->ends_at != INT64_MAX && now >= scheduler->ends_at))
		begin_drain(scheduler, now);
	extend_drain(scheduler, now);
	if (scheduler->draining && now >= scheduler->drain_at) {
		scheduler->timed_out = true;
		asked |= WR_STOP_NOW;
	}
	if (!(asked & (WR_STOP_NOW | WR_STOP_FAILED)))
		return false;
	close_run(scheduler, now, true);
	return true;
}

/* --- the device (E2) --- */

/*
 * All asleep, no timer set, no signal outstanding: streams that still have work are all that holds the run
 * open.
 */
static bool nobody_comes(weir_scheduler *scheduler)
{
	return wr_load(&scheduler->sleepers) == scheduler->all_asleep && !scheduler->heap_count &&
	       !wr_system_outstanding(scheduler->graph->system);
}

static int64_t watch(weir_scheduler *scheduler, int64_t now)
{
	struct wr_system *system = scheduler->graph->system;
	weir_status status = WEIR_OK;

	wr_system_collect(system);
	if (now >= scheduler->watch_at || !wr_load(&scheduler->watching)) {
		wr_store(&scheduler->watching, false); /* first: a stream that becomes busy meanwhile kicks */
		if (wr_system_watch(system, now, &scheduler->watch_at)) {
			wr_fail_run(scheduler, NULL, WEIR_E_DEVICE);
			return now;
		}
		wr_store(&scheduler->watching, scheduler->watch_at != INT64_MAX);
	}
	if (wr_system_deferred_frees_ready(system))
		wr_wake_one(scheduler);
	if (!wr_load(&scheduler->undone) || nobody_comes(scheduler))
		status = wr_system_expect(system);
	if (status) {
		wr_fail_run(scheduler, NULL, status);
		return now;
	}
	return scheduler->watch_at;
}

/* --- quiescence (S4, S6) --- */

/* Closes at a count of 0, after the grace time. Returns when to look again. */
static int64_t settle_if_quiet(weir_scheduler *scheduler, int64_t now)
{
	uint64_t word = wr_load(&scheduler->live);
	int64_t grace = scheduler->options.deadlock_grace_ns;

	if (word & WR_LIVE_COUNT)
		return INT64_MAX;	/* whoever brings it to 0 kicks */
	if (scheduler->draining || !wr_load(&scheduler->undone))
		grace = 0;
	if (grace < 0)
		return INT64_MAX;
	if (word != scheduler->idle_word) {
		scheduler->idle_word = word;
		scheduler->idle_since = now;
	}
	if (now < wr_time_add(scheduler->idle_since, grace))
		return wr_time_add(scheduler->idle_since, grace);
	if (!wr_live_close_idle(&scheduler->live, word))
		return now;
	/* Told to stop since this turn looked, workers may have left entities as they were. */
	close_run(scheduler, now, wr_load(&scheduler->asked) & (WR_STOP_NOW | WR_STOP_FAILED));
	return now;
}

static int64_t turn_open(weir_scheduler *scheduler, int64_t now)
{
	int64_t next, watch_at = INT64_MAX, quiet_at;

	wr_timers_take(scheduler);
	if (obey(scheduler, now))
		return now;
	next = wr_timers_fire(scheduler, now);
	if (scheduler->graph->system)
		watch_at = watch(scheduler, now);
	quiet_at = settle_if_quiet(scheduler, now);
	next = watch_at < next ? watch_at : next;
	next = quiet_at < next ? quiet_at : next;
	next = scheduler->ends_at < next && !scheduler->draining ? scheduler->ends_at : next;
	if (scheduler->draining && scheduler->drain_at < next)
		next = scheduler->drain_at;
	return scheduler->drain_look_at < next ? scheduler->drain_look_at : next;
}

/* --- closing --- */

static bool streams_idle(weir_scheduler *scheduler)
{
	weir_graph *graph = scheduler->graph;

	if (!graph->system || wr_system_failed(graph->system))
		return true;
	for (size_t i = 0; i < graph->entity_count; i++)
		if (!wr_entity_idle(&graph->entities[i]))
			return false;
	return true;
}

static int64_t turn_closing(weir_scheduler *scheduler, int64_t now)
{
	if (wr_load(&scheduler->left) < scheduler->worker_count)
		return INT64_MAX;	/* the last one kicks */
	for (unsigned i = 0; i < scheduler->worker_count; i++)
		wr_thread_join(&scheduler->workers[i].thread);
	if (scheduler->graph->system)
		wr_system_collect(scheduler->graph->system);
	if (scheduler->cut_short)
		wr_release_leftovers(scheduler);
	if (wr_live_count(&scheduler->live))
		return wr_time_add(now, POLL_NS);	/* a poke on its way */
	if (now < scheduler->streams_until && !streams_idle(scheduler))
		return wr_time_add(now, POLL_NS);
	wr_store(&scheduler->calling_ended, ENDED_SOON);
	wr_finish_run(scheduler);
	return INT64_MAX;
}

/*
 * The last thing of a run, when whoever waits may know of its end already, and may have begun another one. A
 * base of the caller's is held open no longer.
 */
static void tell_end(weir_scheduler *scheduler)
{
	wr_loop_activate(&scheduler->loop, false);
	if (scheduler->options.ended) {
		wr_store(&scheduler->calling_ended, wr_thread_self());
		scheduler->options.ended(scheduler, scheduler->options.ended_arg);
	}
	wr_mutex_lock(&scheduler->lock);
	wr_store(&scheduler->calling_ended, 0);
	wr_cond_broadcast(&scheduler->changed);
	wr_mutex_unlock(&scheduler->lock);
}

/* What threads outside of a simulated world have left, who can wake nobody in it. Returns when to look again. */
static int64_t look_outside(weir_scheduler *scheduler, int64_t now, int64_t next)
{
	if (wr_injector_holds(scheduler))
		wr_wake_one(scheduler);
	return next > now + OUTSIDE_NS ? now + OUTSIDE_NS : next;
}

void wr_turn(weir_scheduler *scheduler)
{
	int64_t now = wr_now(), next = INT64_MAX;

	wr_loop_clear(&scheduler->loop);
	if (wr_load(&scheduler->phase) != WR_ENDED)
		take_signals(scheduler, now);	/* between two runs they stay pending */
	if (wr_load(&scheduler->phase) == WR_OPEN)
		next = turn_open(scheduler, now);
	if (wr_load(&scheduler->phase) == WR_CLOSING)
		next = turn_closing(scheduler, now);
	if (scheduler->graph->owns_world && wr_load(&scheduler->phase) == WR_OPEN)
		next = look_outside(scheduler, now, next);
	wr_loop_listen(&scheduler->loop, wr_load(&scheduler->phase) != WR_ENDED);
	wr_loop_arm(&scheduler->loop, next);
	/* Listed after this turn took the list and before the loop was armed. */
	if (wr_load(&scheduler->phase) == WR_OPEN && wr_load(&scheduler->timers_listed))
		wr_loop_kick(&scheduler->loop);
	if (wr_load(&scheduler->calling_ended) == ENDED_SOON)
		tell_end(scheduler);
}

void wr_loop_main(void *arg)
{
	weir_scheduler *scheduler = arg;

	/* Asked after the turn, which forgets the kicks that it has seen. */
	for (wr_turn(scheduler); !wr_load(&scheduler->quit); wr_turn(scheduler))
		wr_loop_wait(&scheduler->loop);
}
