/*
 * A worker: pops, runs, sleeps. It holds one live reference while it is awake, which also covers its own
 * queue (S4).
 */
#include "base/clock.h"
#include "base/status.h"
#include "scheduler/scheduler.h"

/* User destructors of payloads that the GPU is done with run here (B3). */
static void look_at_deferred_frees(struct wr_worker *worker)
{
	struct wr_system *system = worker->scheduler->graph->system;

	if (!system || !wr_system_deferred_frees_ready(system))
		return;
	wr_poll_hand_over(worker->scheduler);	/* users' functions may take long */
	wr_wake_if_more(worker);
	wr_system_run_deferred_frees(system, true);
}

#define QUIET 50000	/* ns: who spins does not lie down as soon as the last signal has come */

static bool spin_alone(struct wr_worker *worker)
{
	weir_scheduler *scheduler = worker->scheduler;
	int64_t now = wr_now(), since = 0;
	int64_t until = wr_time_add(now, scheduler->options.spin_ns), quiet = wr_time_add(now, QUIET);

	for (; now < until && now < quiet && !wr_live_closed(&scheduler->live); now = wr_now()) {
		if (wr_poll_wanted(scheduler) || wr_spinner_has_work(worker, now, &since))
			return true;
		if (wr_system_outstanding(scheduler->graph->system))
			quiet = wr_time_add(now, QUIET);
		wr_thread_relax();
	}
	return false;
}

/*
 * One worker may stay awake while signals are outstanding: waking a sleeping core costs more than the GPU's
 * own latency (S9).
 */
static bool spin(struct wr_worker *worker)
{
	weir_scheduler *scheduler = worker->scheduler;
	struct wr_system *system = scheduler->graph->system;
	bool found;

	if (scheduler->options.spin_ns <= 0 || !system || !wr_system_outstanding(system) ||
	    wr_exchange(&scheduler->standby, true))
		return false;
	worker->wakes_skipped = true;
	wr_fetch_add(&scheduler->spinners, 1);
	found = spin_alone(worker);
	wr_fetch_sub(&scheduler->spinners, 1);
	wr_exchange(&scheduler->standby, false);
	return found;
}

/*
 * The last one to lie down: nobody may be left who asks the streams that still have work. With a signal
 * outstanding or a timer set there is somebody (E2). Where the watch rests no stream has work, or the kick of
 * the one that has it is on its way: the loop's turn marks the watch, then looks who sleeps; here it is the
 * other way round.
 */
static void last_one(weir_scheduler *scheduler)
{
	if (wr_load(&scheduler->sleepers) == scheduler->all_asleep && wr_load(&scheduler->watching) &&
	    !wr_system_outstanding(scheduler->graph->system))
		wr_loop_kick(&scheduler->loop);
}

/*
 * What a worker that has announced its sleep must not sleep through; for the poller: that something else was
 * armed.
 */
static bool called_for(weir_scheduler *scheduler, const uint64_t *version)
{
	bool polling = version ? wr_flags_version(scheduler->graph->system) != *version
			       : wr_poll_wanted(scheduler);

	return polling || wr_any_work(scheduler) || wr_live_closed(&scheduler->live);
}

/*
 * Announce, look at everything again, give the reference back, wait; woken: take a reference before anything
 * else (S9).
 */
bool wr_worker_sleep(struct wr_worker *worker, int64_t until, const uint64_t *version)
{
	weir_scheduler *scheduler = worker->scheduler;
	uint64_t bit = UINT64_C(1) << worker->local.index;
	bool woken;

	wr_fetch_or(&scheduler->sleepers, bit);
	if (called_for(scheduler, version)) {
		/*
		 * Taken already: somebody chose us for his entry. Passed on, for what we found may be
		 * another.
		 */
		if (!(wr_fetch_and(&scheduler->sleepers, ~bit) & bit))
			wr_wake_one(scheduler);
		return true;
	}
	last_one(scheduler);
	wr_drop_live(scheduler);
	wr_trace_sleep_begin(scheduler->trace, worker->local.index);
	woken = wr_park(&worker->parker, until);
	wr_trace_sleep_end(scheduler->trace, worker->local.index);
	wr_live_take(&scheduler->live);		/* CLOSED: seen by the caller, who gives it back on leaving */
	worker->wakes_skipped = true;		/* one wake-up may stand for several pushes */
	wr_fetch_and(&scheduler->sleepers, ~bit);
	return woken;
}

/* Workers that never idle run destructors and look at flags, too. */
static void look_in_passing(struct wr_worker *worker)
{
	look_at_deferred_frees(worker);
	wr_poll_in_passing(worker);
}

/* With work in its hands: whoever relied on it is told that it looks no more. */
static void leave_idleness(struct wr_worker *worker)
{
	wr_poll_hand_over(worker->scheduler);
	wr_wake_if_more(worker);
}

static void leave(struct wr_worker *worker)
{
	weir_scheduler *scheduler = worker->scheduler;

	wr_thread_set_local(NULL);
	wr_drop_live(scheduler);
	wr_fetch_add(&scheduler->left, 1);
	wr_loop_kick(&scheduler->loop);
}

void wr_worker_died(void *arg)
{
	struct wr_worker *worker = arg;
	weir_context *context = worker->local.context;
	weir_entity *entity = context ? context->entity : NULL;

	wr_fail_run(worker->scheduler, entity,
		    wr_fail(WEIR_E_FAILED, "%s ended its thread (pthread_exit or pthread_cancel): a worker's "
			    "thread is weir's, compute returns", entity ? "compute" : "something"));
	worker->local.context = NULL;
	if (context) {
		context->computing = false;
		wr_entity_settle(entity);	/* as after every compute that fails */
	}
	leave(worker);
}

void wr_worker_main(void *arg)
{
	struct wr_worker *worker = arg;
	weir_scheduler *scheduler = worker->scheduler;
	bool idle = true;

	worker->wakes_skipped = false;
	worker->error = wr_error_here();
	wr_thread_set_local(worker);
	while (wr_load(&scheduler->phase) == WR_ENDED)	/* a wake-up may be left over from the run before */
		wr_park(&worker->parker, WR_FOREVER);
	wr_trace_worker(scheduler->trace, worker->local.index);
	while (!wr_live_closed(&scheduler->live)) {
		weir_entity *entity = wr_pop(worker);
		if (entity) {
			if (idle)
				leave_idleness(worker);
			idle = false;
			wr_run_entity(worker, entity);
			if (worker->pops % WR_INJECTOR_EVERY == 0)
				look_in_passing(worker);
			continue;
		}
		idle = true;
		look_at_deferred_frees(worker);
		if (!wr_poll(worker) && !spin(worker))
			wr_worker_sleep(worker, WR_FOREVER, NULL);
	}
	leave(worker);
}
