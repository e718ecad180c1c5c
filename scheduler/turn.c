/*
 * The loop thread's side of a run. One turn does all that is due and arms the loop for the next one: POSIX
 * signals, stop requests, timers, fired tokens, the watch, quiescence. It never blocks, so the same
 * turn serves weir's own thread, a caller's libevent base and a caller's poll (B1).
 *
 * A run ends only here (S4). It is OPEN until it is quiescent or is cut short. It is CLOSING until all
 * workers have left, the references of what they left are dropped, the live count is 0 and the streams are
 * idle (waited for up to STREAMS_NS). Then it is ENDED.
 */
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/status.h"
#include "scheduler/holders.h"
#include "scheduler/inlet.h"
#include "scheduler/memory_pool.h"
#include "scheduler/ready.h"
#include "scheduler/run.h"
#include "scheduler/stuck.h"

#define STREAMS_NS    200000000 /* how long streams may take to become idle: `stop` may free their memory */
#define ENDED_SOON    1         /* of calling_ended: no thread has this stamp */
#define POLL_NS       1000000   /* between two looks while the run closes */
#define DRAIN_LOOK_NS 20000000  /* between two looks at the progress of a drain */
#define OUTSIDE_NS    10000000  /* virtual: a simulated loop polls, as outside threads cannot wake it */

/* --- stopping (S7) --- */

/* By ticks and from outlets. Each queue is counted by its receiver. */
static uint64_t count_taken(const weir_graph *graph)
{
	uint64_t taken = 0;

	for (size_t i = 0; i < graph->connection_count; i++)
		taken += wr_read(&graph->connections[i]->queue.counters.delivered);
	return taken;
}

static void begin_drain(weir_scheduler *scheduler, int64_t now)
{
	weir_graph *graph = scheduler->graph;

	if (scheduler->draining)
		return;
	wr_stuck_look_before_drain(scheduler, now);
	scheduler->draining = true;
	wr_fetch_or(&scheduler->stop_asked, WR_STOP_DRAIN);
	scheduler->drain_at = wr_time_add(now, scheduler->options.drain_ns);
	scheduler->drain_look_at = scheduler->options.drain_ns > 0 ? now : INT64_MAX;
	scheduler->drain_taken = count_taken(graph);
	wr_log(WEIR_LOG_INFO, "%s: draining", graph->plan->name);
	wr_system_drain(graph->system);
	for (weir_inlet *inlet = graph->inlets; inlet; inlet = inlet->next)
		weir_inlet_close(inlet);
	for (size_t i = 0; i < graph->entity_count; i++)
		wr_poke(&graph->entities[i]); /* sources, and entities that wait for a time only */
}

static void take_signals(weir_scheduler *scheduler, int64_t now)
{
	int number;

	while ((number = wr_loop_signal(&scheduler->loop))) {
		if (scheduler->posix_signal)
			_exit(128 + number); /* a second signal ends the process at once */
		scheduler->posix_signal = number;
		begin_drain(scheduler, now);
	}
}

static void close_run(weir_scheduler *scheduler, int64_t now, bool cut_short)
{
	scheduler->cut_short = cut_short;
	/* Reviews may have obeyed the bit before a turn has seen it. */
	scheduler->draining |= wr_load(&scheduler->stop_asked) & WR_STOP_DRAIN;
	if (cut_short)
		wr_live_close(&scheduler->live);
	wr_store(&scheduler->phase, WR_CLOSING);
	/* A drain that timed out has waited already. */
	scheduler->streams_until = scheduler->timed_out ? now : wr_time_add(now, STREAMS_NS);
	wr_wake_all(scheduler);
}

/*
 * Restarts the drain's time limit when a message was taken or device work of a tick has completed. Sources
 * and cycle roots tick no more, so what is taken descends from what was in flight, and a drain that is only
 * slow ends. Ticks that take nothing do not count, nor does their work: they could go on for ever.
 */
static void extend_drain(weir_scheduler *scheduler, int64_t now)
{
	uint64_t taken;

	if (!scheduler->draining || (now < scheduler->drain_look_at && now < scheduler->drain_at))
		return;
	taken = count_taken(scheduler->graph);
	if (wr_system_progressed(scheduler->graph->system) || taken != scheduler->drain_taken)
		scheduler->drain_at = wr_time_add(now, scheduler->options.drain_ns);
	scheduler->drain_taken = taken;
	scheduler->drain_look_at = wr_time_add(now, DRAIN_LOOK_NS);
}

/* Returns true if the run was cut short. */
static bool obey_stops(weir_scheduler *scheduler, int64_t now)
{
	unsigned asked = wr_load(&scheduler->stop_asked);

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
 * Returns true if all workers sleep, no timer is set and no signal is outstanding: only streams that still
 * have work hold the run open.
 */
static bool only_streams_work(weir_scheduler *scheduler)
{
	return wr_load(&scheduler->sleepers) == scheduler->all_asleep && !scheduler->heap_count &&
	       !wr_system_outstanding(scheduler->graph->system);
}

/* Returns when to look again. */
static int64_t watch_streams(weir_scheduler *scheduler, int64_t now)
{
	struct wr_system *system = scheduler->graph->system;
	weir_status status = WEIR_OK;
	bool only_streams;

	wr_system_collect(system);
	if (now >= scheduler->watch_at || !wr_load(&scheduler->watching)) {
		wr_store(&scheduler->watching, false); /* first: a stream that becomes busy meanwhile kicks */
		if (wr_system_watch(system, now, &scheduler->watch_at)) {
			wr_run_fail(scheduler, NULL, WEIR_CAUSE_DEVICE, WEIR_E_DEVICE);
			return now;
		}
		wr_store(&scheduler->watching, scheduler->watch_at != INT64_MAX);
	}
	if (wr_system_deferred_frees_ready(system))
		wr_wake_one(scheduler);
	only_streams = !wr_load(&scheduler->not_done) || only_streams_work(scheduler);
	if (only_streams || wr_memory_pools_refuse(scheduler->graph))
		status = wr_system_arm_kicks(system, only_streams);
	if (status) {
		wr_run_fail(scheduler, NULL, WEIR_CAUSE_DEVICE, status);
		return now;
	}
	return scheduler->watch_at;
}

/* --- quiescence (S4, S6) --- */

/*
 * Closes the run if its live count is 0 and no entity has ticked for the grace time. A poke alone does not
 * begin this time anew: a program that pokes in vain would put off the verdict for ever. Returns when to look
 * again.
 */
static int64_t close_if_quiescent(weir_scheduler *scheduler, int64_t now)
{
	uint64_t word = wr_load(&scheduler->live), ticks;
	int64_t grace = scheduler->options.deadlock_grace_ns;

	if (word & WR_LIVE_COUNT)
		return INT64_MAX; /* the thread that drops the last reference kicks */
	if (wr_holders_program_may_go_on(scheduler, &word))
		return INT64_MAX; /* the thread that lets go of what the program holds kicks */
	if (scheduler->draining || !wr_load(&scheduler->not_done))
		grace = 0;
	if (grace < 0)
		return INT64_MAX;
	/* Each thread drops its reference after its ticks, so this sum belongs to `word`. */
	ticks = wr_graph_count_ticks(scheduler->graph);
	if (ticks != scheduler->idle_ticks) {
		scheduler->idle_ticks = ticks;
		scheduler->idle_since = now;
	}
	if (now < wr_time_add(scheduler->idle_since, grace))
		return wr_time_add(scheduler->idle_since, grace);
	if (!wr_live_close_idle(&scheduler->live, word))
		return now;
	/* If a stop was asked for since this turn looked, workers may have left entities unreviewed. */
	close_run(scheduler, now, wr_load(&scheduler->stop_asked) & (WR_STOP_NOW | WR_STOP_FAILED));
	return now;
}

static int64_t turn_open(weir_scheduler *scheduler, int64_t now)
{
	int64_t next, watch_at, close_at, descriptors_at, stuck_at;

	wr_timers_take(scheduler);
	if (obey_stops(scheduler, now))
		return now;
	next = wr_timers_fire(scheduler, now);
	watch_at = watch_streams(scheduler, now);
	descriptors_at = wr_descriptors_check(scheduler, now);
	stuck_at = wr_stuck_look(scheduler, now);
	close_at = close_if_quiescent(scheduler, now);
	next = watch_at < next ? watch_at : next;
	next = descriptors_at < next ? descriptors_at : next;
	next = stuck_at < next ? stuck_at : next;
	next = close_at < next ? close_at : next;
	next = scheduler->ends_at < next && !scheduler->draining ? scheduler->ends_at : next;
	if (scheduler->draining && scheduler->drain_at < next)
		next = scheduler->drain_at;
	return scheduler->draining && scheduler->drain_look_at < next ? scheduler->drain_look_at : next;
}

/* --- closing --- */

static bool streams_idle(weir_scheduler *scheduler)
{
	weir_graph *graph = scheduler->graph;

	if (wr_system_failed(graph->system))
		return true;
	for (size_t i = 0; i < graph->entity_count; i++)
		if (!wr_entity_streams_idle(&graph->entities[i]))
			return false;
	return true;
}

static int64_t turn_closing(weir_scheduler *scheduler, int64_t now)
{
	if (wr_load(&scheduler->workers_ended) < scheduler->worker_count)
		return INT64_MAX; /* the last one kicks */
	for (unsigned i = 0; i < scheduler->worker_count; i++)
		wr_thread_join(&scheduler->workers[i].thread);
	wr_system_collect(scheduler->graph->system);
	if (scheduler->cut_short)
		wr_run_release_leftovers(scheduler);
	if (wr_live_count(&scheduler->live))
		return wr_time_add(now, POLL_NS); /* a poke is still being refused */
	if (now < scheduler->streams_until && !streams_idle(scheduler))
		return wr_time_add(now, POLL_NS);
	wr_store(&scheduler->calling_ended, ENDED_SOON);
	wr_run_end(scheduler);
	return INT64_MAX;
}

/*
 * Comes last: weir_scheduler_wait() may have returned already, and its caller may have started another run.
 * Removes the event from the caller's base, so that it no longer keeps the base's dispatch running.
 */
static void call_ended(weir_scheduler *scheduler)
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

void wr_run_turn(weir_scheduler *scheduler)
{
	int64_t now = wr_now(), next = INT64_MAX;

	wr_loop_clear(&scheduler->loop);
	wr_descriptors_poke(scheduler);
	if (wr_load(&scheduler->phase) != WR_ENDED)
		take_signals(scheduler, now); /* between two runs they stay pending */
	if (wr_load(&scheduler->phase) == WR_OPEN)
		next = turn_open(scheduler, now);
	if (wr_load(&scheduler->phase) == WR_CLOSING)
		next = turn_closing(scheduler, now);
	if (scheduler->graph->owns_world && wr_load(&scheduler->phase) == WR_OPEN) {
		/* Threads outside a simulated world push entries but cannot wake its workers. */
		if (wr_ready_injector_holds(scheduler))
			wr_wake_one(scheduler);
		next = next > now + OUTSIDE_NS ? now + OUTSIDE_NS : next;
	}
	wr_loop_listen(&scheduler->loop, wr_load(&scheduler->phase) != WR_ENDED);
	wr_loop_arm(&scheduler->loop, next);
	/* A timer request that was listed after this turn took the list and before the loop was armed. */
	if (wr_load(&scheduler->phase) == WR_OPEN && wr_load(&scheduler->timers_listed))
		wr_loop_kick(&scheduler->loop);
	if (wr_load(&scheduler->calling_ended) == ENDED_SOON)
		call_ended(scheduler);
}
