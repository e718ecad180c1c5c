/*
 * A worker pops entities, runs them, and sleeps. While it is awake it holds one live reference, which also
 * covers the entries of its own queue (S4).
 *
 * Polling flags is a role that one idle worker at a time has while flags are armed (G4, S9). The poller reads
 * the words that the device writes and runs at once what waited for them: no thread is woken between the end
 * of the device's work and compute. It sleeps until shortly before the next completion that streams/ expects,
 * with a timeout. An armed flag always has a worker that will poll it:
 *  - Arming increments `armed` and `version`, then looks at the role (wr_wake_poller). No poller and no
 *    spinner: it wakes one sleeper, or leaves that to its next pop or compute, if there is a lookout (S9):
 *    mostly it has nothing to run then, and polls itself. The poller sleeps: it wakes the poller, which
 *    computes its next sleep anew.
 *  - A worker that goes to sleep announces it, then looks at `armed` and the role. The poller announces its
 *    sleep, then looks at `version`.
 *  - A worker that stops idling because it has work or users' destructors to run, or that has polled in
 *    passing, gives the role up and then looks whether another worker must be woken for it; before a compute
 *    that is expected to be brief it may leave that to its next pop, if there is a lookout (S9).
 *  - Workers that never idle poll in passing, as often as they look at the injector first.
 * All of this is sequentially consistent, so of two threads at least one sees what the other did.
 */
#include "base/clock.h"
#include "base/status.h"
#include "scheduler/scheduler.h"
#include "scheduler/run.h"

/* --- sleeping --- */

/*
 * Returns true if a worker that has announced its sleep must stay awake: there is work, the run is closed, a
 * poller is wanted, or, if it is the poller, a flag was armed since it looked.
 */
static bool must_stay_awake(struct wr_worker *worker, const uint64_t *version, bool *left)
{
	weir_scheduler *scheduler = worker->scheduler;
	bool polling = version ? wr_flags_version(scheduler->graph->system) != *version
			       : wr_poller_wanted(scheduler);

	return polling || wr_ready_any_work(worker, left) || wr_live_closed(&scheduler->live);
}

#define LOOK_FIRST 100000 /* ns that the lookout sleeps; twice as long each time, at most: */
#define LOOK_MOST  1000000
#define LOOKS_MORE 8 /* looks after the last one that left something: a push meanwhile wakes no worker */

/* It leaves entries to their workers: some sleeper must look at them again (S9). */
static bool become_lookout(struct wr_worker *worker)
{
	unsigned seen = wr_load(&worker->scheduler->lookout);

	return (!seen || seen == WR_LOOP_LOOKS) &&
	       wr_cas(&worker->scheduler->lookout, &seen, worker->local.index + 1);
}

/* Called before it looks at the queues: so the look finds what a push left because of the role. */
static void end_lookout(struct wr_worker *worker, bool woken)
{
	wr_exchange(&worker->scheduler->lookout, 0);
	worker->look_after = woken ? LOOK_FIRST : 2 * worker->look_after;
	if (worker->look_after > LOOK_MOST)
		worker->look_after = LOOK_MOST;
}

#define LONG_NS 5000000 /* mostly the loop would look before a sleep of that length is over */

/*
 * The last worker to sleep takes the role from the loop, which need not wake before this worker's time then.
 * It has not looked at the queues yet, so it finds what a push left because of the role. Not if other threads
 * have ended its sleeps before their time: the loop's timer would be set twice for each of them.
 */
static bool relieve_loop(struct wr_worker *worker, int64_t until)
{
	weir_scheduler *scheduler = worker->scheduler;
	int64_t wake_at = worker->time < until ? worker->time : until;
	unsigned loop = WR_LOOP_LOOKS;

	return worker->time != INT64_MAX && wr_load(&scheduler->lookout) == loop &&
	       wr_load(&scheduler->sleepers) == scheduler->all_asleep &&
	       wr_worth_it(scheduler, worker->undisturbed > 1 && wake_at > wr_time_add(wr_now(), LONG_NS)) &&
	       wr_cas(&scheduler->lookout, &loop, 0);
}

#define AWAKE_LEAST 1000
#define AWAKE_MOST  50000 /* ns; a few times what it takes until a sleeping core runs */
#define AWAKE_PAUSE 63    /* sleeps at most until it waits awake again, after waits in vain */

/*
 * Waits for a wake-up, at first awake if the last sleeps were short: a core that sleeps is late by more than
 * the gap between two computes of a busy graph, and waking it costs its waker a system call. Awake for no
 * longer than the last compute took, so at most half of a worker's time is spent in this way; where workers
 * share cores, not at all. Where it shares one with the thread that would wake it, or with another program,
 * that thread runs only when the wait is over: after a wait in vain there are pauses, twice as long each
 * time.
 */
static bool park(struct wr_worker *worker, int64_t until)
{
	int64_t begin = wr_now(), most = wr_load_relaxed(&worker->running_cost), took;
	bool woken = false;

	if (most > AWAKE_MOST)
		most = AWAKE_MOST;
	if (most >= AWAKE_LEAST && worker->slept < AWAKE_MOST && worker->scheduler->own_cores &&
	    !worker->awake_left--) {
		woken = wr_park_awake(&worker->parker, begin + most < until ? begin + most : until);
		worker->awake_pause = woken ? 0 : 2 * worker->awake_pause + 1;
		if (worker->awake_pause > AWAKE_PAUSE)
			worker->awake_pause = AWAKE_PAUSE;
		worker->awake_left = worker->awake_pause;
	}
	if (!woken)
		woken = wr_park(&worker->parker, until);
	took = wr_now() - begin;
	worker->slept = (3 * worker->slept + (took < 4 * AWAKE_MOST ? took : 4 * AWAKE_MOST)) / 4;
	worker->undisturbed = woken ? 0 : worker->undisturbed + (took > LONG_NS);
	return woken;
}

/*
 * Announces the sleep, looks at everything again, drops its live reference and waits. Once woken it first
 * takes a reference again (S9). version: that of the flags if the worker is the poller, else NULL. Returns
 * false if `until` passed without a wake-up.
 */
static bool worker_sleep(struct wr_worker *worker, int64_t until, const uint64_t *version)
{
	weir_scheduler *scheduler = worker->scheduler;
	uint64_t bit = UINT64_C(1) << worker->local.index;
	bool woken, left = false, looks_out, relieved;
	int64_t wake_at, until_look = until;

	wr_fetch_or(&scheduler->sleepers, bit);
	relieved = relieve_loop(worker, until);
	if (must_stay_awake(worker, version, &left)) {
		worker->wakes_skipped |= relieved; /* its look ended at the first entry */
		/*
		 * The bit is cleared already: a pusher has woken this worker for its entry. What this worker
		 * has found may be another entry, so it passes the wake-up on.
		 */
		if (!(wr_fetch_and(&scheduler->sleepers, ~bit) & bit))
			wr_wake_one(scheduler);
		wr_stuck_wake(scheduler);
		return true;
	}
	/*
	 * The last worker to sleep kicks the loop: with no signal outstanding, only the loop's watch would
	 * notice that the streams have finished (E2). While `watching` is false no kick is needed: no stream
	 * has work, or the stream that became busy kicks. The loop's turn sets `watching` and then reads
	 * `sleepers`; the worker does it in the other order, so one of the two sees the other. While a time
	 * is set for entities that are not DONE, streams are not all that holds the run open: the thread that
	 * sees to it looks again.
	 */
	if (wr_load(&scheduler->sleepers) == scheduler->all_asleep && wr_load(&scheduler->watching) &&
	    !wr_system_outstanding(scheduler->graph->system) &&
	    (!wr_load(&scheduler->not_done) || !wr_timers_any(scheduler)))
		wr_loop_kick(&scheduler->loop);
	if (left && !worker->more_looks)
		worker->look_after = LOOK_FIRST;
	if (left)
		worker->more_looks = LOOKS_MORE;
	looks_out = worker->more_looks && become_lookout(worker);
	if (looks_out) {
		worker->more_looks -= !left;
		until_look = wr_now() + worker->look_after;
		until_look = until_look < until ? until_look : until;
	}
	wr_run_drop_live(scheduler);
	wr_trace_sleep_begin(scheduler->trace, worker->local.index);
	wake_at = worker->time == INT64_MAX && !worker->will_keep ? until_look
								  : wr_timers_keep(worker, until_look);
	woken = park(worker, wake_at);
	wr_trace_sleep_end(scheduler->trace, worker->local.index);
	wr_store_relaxed(&worker->looked_since, INT64_MAX); /* a sleep is not slowness */
	wr_live_take(&scheduler->live);                     /* also if CLOSED: worker_leave() drops it */
	wr_timers_woken(worker);
	/*
	 * One wake-up may stand for several pushes. One that its time has ended stands for none, unless it
	 * was the lookout: others rely on what it finds.
	 */
	if (!(wr_fetch_and(&scheduler->sleepers, ~bit) & bit) || woken || looks_out)
		worker->wakes_skipped = true;
	if (looks_out)
		end_lookout(worker, woken);
	wr_stuck_wake(scheduler);
	return woken || wake_at < until;
}

/* --- the poller --- */

static bool take_poller_role(struct wr_worker *worker)
{
	unsigned none = 0;

	return wr_poller_wanted(worker->scheduler) &&
	       wr_cas(&worker->scheduler->poller, &none, worker->local.index + 1);
}

/*
 * Polls all armed flags once; what fires goes to this worker's own queue (ready.c). Returns when to poll
 * again; INT64_MAX: no flag is armed. The worker must have the role.
 */
static int64_t poll_flags(struct wr_worker *worker, int64_t now)
{
	int64_t next;

	worker->polling = true;
	next = wr_flags_poll(worker->scheduler->graph->system, now);
	worker->polling = false;
	return next;
}

/* Until `next`: spins before `spin_until` (the option `worker_spin_ns`), sleeps after it. */
static void poller_sleep(struct wr_worker *worker, int64_t next, int64_t spin_until, uint64_t version)
{
	weir_scheduler *scheduler = worker->scheduler;
	int64_t now = wr_now();

	if (next <= now || now < spin_until) {
		wr_thread_relax();
		return;
	}
	wr_fetch_sub(&scheduler->spinners, 1); /* before the sleep is announced and every queue looked at */
	if (!worker_sleep(worker, next, &version))
		wr_flags_overslept(scheduler->graph->system, wr_now() - next);
	wr_fetch_add(&scheduler->spinners, 1);
}

static void poll_until_work(struct wr_worker *worker)
{
	weir_scheduler *scheduler = worker->scheduler;
	int64_t worker_spin_ns = scheduler->options.worker_spin_ns, begin = wr_now(), since = 0;
	int64_t spin_until = worker_spin_ns > 0 ? wr_time_add(begin, worker_spin_ns) : INT64_MIN;

	for (;;) {
		uint64_t version = wr_flags_version(scheduler->graph->system);
		int64_t now = wr_now(), next = poll_flags(worker, now);

		if (next == INT64_MAX || wr_live_closed(&scheduler->live) || now >= worker->time ||
		    wr_spinner_has_work(worker, now, &since))
			return;
		/* `since`: another worker's queue has work, which is stolen if it stays there. */
		poller_sleep(worker, since ? now : next, spin_until, version);
	}
}

/* By a worker that has the role and is counted as a spinner. */
static void poll_and_give_up_role(struct wr_worker *worker)
{
	weir_scheduler *scheduler = worker->scheduler;

	poll_until_work(worker);
	wr_fetch_sub(&scheduler->spinners, 1);
	wr_exchange(&scheduler->poller, 0);
}

/* Polls until there may be work. Returns false at once if no flag is armed or another worker polls. */
static bool worker_poll(struct wr_worker *worker)
{
	if (!take_poller_role(worker))
		return false;
	worker->wakes_skipped = true;
	wr_fetch_add(&worker->scheduler->spinners, 1);
	poll_and_give_up_role(worker);
	return true;
}

/* --- the spinner --- */

#define QUIET_NS 50000 /* a spinner goes on so long after the last signal has fired */
enum { LOOK_TURNS = 16 };

/*
 * *polls: it has taken the poller's role. What a worker writes that runs what it saw, as its queue, is read
 * in one of LOOK_TURNS turns (0.7 us): each look would take the cache line away from it.
 */
static bool spin_until_work(struct wr_worker *worker, bool *polls)
{
	weir_scheduler *scheduler = worker->scheduler;
	int64_t now = wr_now(), since = 0;
	int64_t until = wr_time_add(now, scheduler->options.worker_spin_ns);
	int64_t quiet_until = wr_time_add(now, QUIET_NS);

	for (unsigned turn = 0; now < until && now < quiet_until; now = wr_now(), turn++) {
		*polls = !wr_load(&scheduler->poller) && take_poller_role(worker);
		if (*polls || now >= worker->time)
			return true;
		wr_thread_relax();
		if (turn % LOOK_TURNS)
			continue;
		if (wr_live_closed(&scheduler->live))
			return false;
		if (wr_spinner_has_work(worker, now, &since))
			return true;
		if (wr_system_outstanding(scheduler->graph->system))
			quiet_until = wr_time_add(now, QUIET_NS);
	}
	return false;
}

/*
 * One worker may spin while signals are outstanding: waking a sleeping core takes longer than the GPU's own
 * latency (S9). It becomes the poller as soon as the last one leaves, and is counted all the while: the last
 * one finds the role filled or a spinner, so it wakes no sleeper before it runs what it saw. Returns true if
 * there may be work.
 */
static bool worker_spin(struct wr_worker *worker)
{
	weir_scheduler *scheduler = worker->scheduler;
	struct wr_system *system = scheduler->graph->system;
	bool found, polls = false;

	if (scheduler->options.worker_spin_ns <= 0 || !wr_system_outstanding(system) ||
	    wr_exchange(&scheduler->standby, true))
		return false;
	worker->wakes_skipped = true;
	wr_fetch_add(&scheduler->spinners, 1);
	found = spin_until_work(worker, &polls);
	if (!polls)
		wr_fetch_sub(&scheduler->spinners, 1);
	wr_exchange(&scheduler->standby, false);
	if (polls)
		poll_and_give_up_role(worker);
	return found;
}

/* --- a worker's thread --- */

/* Runs the users' destructors of payloads that the GPU has finished with (B3). */
static void run_deferred_frees(struct wr_worker *worker)
{
	struct wr_system *system = worker->scheduler->graph->system;

	if (!wr_system_deferred_frees_ready(system))
		return;
	wr_wake_for_flags(worker->scheduler); /* destructors may take long */
	wr_wake_if_more(worker);
	wr_timers_hand_over(worker);
	wr_system_run_deferred_frees(system, true);
}

/* Workers that never idle run destructors and poll flags from time to time, too. */
static void run_idle_duties(struct wr_worker *worker)
{
	run_deferred_frees(worker);
	if (!take_poller_role(worker))
		return;
	poll_flags(worker, wr_now()); /* one look */
	wr_exchange(&worker->scheduler->poller, 0);
	wr_wake_for_flags(worker->scheduler); /* a worker that went to sleep meanwhile saw a poller */
}

static void worker_leave(struct wr_worker *worker)
{
	weir_scheduler *scheduler = worker->scheduler;

	wr_thread_set_local(NULL);
	wr_run_drop_live(scheduler);
	wr_fetch_add(&scheduler->workers_ended, 1);
	wr_loop_kick(&scheduler->loop);
}

/* A destructor that ends the thread in here leads here again, and to what is left. */
void wr_worker_died(void *arg)
{
	struct wr_worker *worker = arg;
	weir_context *context = worker->local.context;
	weir_entity *entity = context ? context->entity : NULL;

	wr_run_fail(worker->scheduler, entity, WEIR_CAUSE_COMPUTE,
		    wr_fail(WEIR_E_FAILED,
			    "%s ended its thread (pthread_exit or pthread_cancel): the thread "
			    "is a worker of weir, return from compute",
			    entity ? "compute" : "user code"));
	wr_message_finish_packs(&worker->local);
	worker->local.context = NULL;
	if (context) {
		context->computing = false;
		wr_entity_drop_tick(entity); /* as after every compute that fails */
	}
	worker_leave(worker);
}

void wr_worker_main(void *arg)
{
	struct wr_worker *worker = arg;
	weir_scheduler *scheduler = worker->scheduler;
	bool idle = true;

	worker->wakes_skipped = worker->will_keep = worker->was_keeper = false;
	worker->local.undecided = 0;
	worker->look_after = LOOK_FIRST;
	worker->slept = worker->undisturbed = worker->more_looks = 0;
	worker->awake_pause = worker->awake_left = 0;
	wr_store_relaxed(&worker->running_cost, 0);
	worker->time = INT64_MAX;
	worker->error = wr_error_here();
	wr_thread_set_local(worker);
	while (wr_load(&scheduler->phase) == WR_ENDED) /* a wake-up of the last run may be pending */
		wr_park(&worker->parker, WR_FOREVER);
	wr_trace_worker(scheduler->trace, worker->local.index);
	while (!wr_live_closed(&scheduler->live)) {
		weir_entity *entity = wr_ready_pop(worker);
		if (entity) {
			if (worker->local.undecided & WR_UNDECIDED_FLAGS)
				wr_ready_decide(worker);
			if (idle) { /* it stops looking at flags and queues: wakes others for these if needed
				     */
				wr_ready_hand_over(worker, entity);
				wr_wake_if_more(worker);
			}
			idle = false;
			if (worker->time == INT64_MAX)
				wr_run_entity(worker, entity);
			else
				wr_timers_run_entity(worker, entity);
			if (wr_load_relaxed(&worker->pops) % WR_INJECTOR_EVERY == 0)
				run_idle_duties(worker);
			continue;
		}
		idle = true;
		worker->local.undecided = 0; /* its queue is empty, and it looks at the flags itself */
		if ((worker->time != INT64_MAX || worker->will_keep) && wr_timers_fire(worker))
			continue;
		run_deferred_frees(worker);
		if (!worker_poll(worker) && !worker_spin(worker))
			worker_sleep(worker, WR_FOREVER, NULL);
	}
	worker_leave(worker);
}
