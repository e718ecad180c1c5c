/*
 * The poller: a role that one idle worker at a time has while flags are armed (G2, S9). It polls the words
 * that the device writes and runs at once what waited for them: no thread is woken between the end of the
 * device's work and compute. It sleeps until shortly before the next completion that streams/ expects, with
 * a timeout.
 *
 * An armed flag always has a worker that will poll it:
 *  - Arming increments `armed` and `version`, then looks at the role. No poller and no spinner: it wakes one
 *    sleeper. The poller sleeps: it wakes the poller, which computes its next sleep anew.
 *  - A worker that goes to sleep announces it, then looks at `armed` and the role. The poller announces its
 *    sleep, then looks at `version`.
 *  - A worker that stops idling because it has work or users' destructors to run, or that has polled in
 *    passing, gives the role up and then looks whether another worker must be woken for it.
 *  - Workers that never idle poll in passing, as often as they look at the injector first.
 * All of this is sequentially consistent, so of two threads at least one sees what the other did.
 */
#include "base/clock.h"
#include "scheduler/scheduler.h"

bool wr_poll_wanted(weir_scheduler *scheduler)
{
	struct wr_system *system = scheduler->graph->system;

	return system && wr_flags_armed(system) && !wr_load(&scheduler->poller);
}

void wr_poll_hand_over(weir_scheduler *scheduler)
{
	if (wr_poll_wanted(scheduler) && !wr_load(&scheduler->spinners))
		wr_wake_one(scheduler);
}

void wr_poll_armed(weir_scheduler *scheduler)
{
	unsigned poller = wr_load(&scheduler->poller);
	uint64_t bit = poller ? UINT64_C(1) << (poller - 1) : 0;

	if (!poller)
		wr_poll_hand_over(scheduler);
	else if (wr_load(&scheduler->sleepers) & bit && wr_fetch_and(&scheduler->sleepers, ~bit) & bit)
		wr_unpark(&scheduler->workers[poller - 1].parker);
}

static bool take_poller_role(struct wr_worker *worker)
{
	unsigned none = 0;

	return wr_poll_wanted(worker->scheduler) &&
	       wr_cas(&worker->scheduler->poller, &none, worker->local.index + 1);
}

/*
 * Polls all armed flags once; what fires goes to this worker's own queue (waker.c). Returns when to poll
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

/* Waits until `next`: spins before `spin_until` (the option `spin`), sleeps after it. */
static void poller_wait(struct wr_worker *worker, int64_t next, int64_t spin_until, uint64_t version)
{
	weir_scheduler *scheduler = worker->scheduler;
	int64_t now = wr_now();

	if (next <= now || now < spin_until) {
		wr_thread_relax();
		return;
	}
	wr_fetch_sub(&scheduler->spinners, 1); /* before the sleep is announced and every queue looked at */
	if (!wr_worker_sleep(worker, next, &version))
		wr_flags_overslept(scheduler->graph->system, wr_now() - next);
	wr_fetch_add(&scheduler->spinners, 1);
}

static void poll_until_work(struct wr_worker *worker)
{
	weir_scheduler *scheduler = worker->scheduler;
	int64_t spin_ns = scheduler->options.spin_ns, begin = wr_now(), since = 0;
	int64_t spin_until = spin_ns > 0 ? wr_time_add(begin, spin_ns) : INT64_MIN;

	for (;;) {
		uint64_t version = wr_flags_version(scheduler->graph->system);
		int64_t now = wr_now(), next = poll_flags(worker, now);

		if (next == INT64_MAX || wr_live_closed(&scheduler->live) ||
		    wr_spinner_has_work(worker, now, &since))
			return;
		/* `since`: another worker's queue has work, which is stolen if it stays there. */
		poller_wait(worker, since ? now : next, spin_until, version);
	}
}

bool wr_poll(struct wr_worker *worker)
{
	weir_scheduler *scheduler = worker->scheduler;

	if (!take_poller_role(worker))
		return false;
	worker->wakes_skipped = true;
	wr_fetch_add(&scheduler->spinners, 1);
	poll_until_work(worker);
	wr_fetch_sub(&scheduler->spinners, 1);
	wr_exchange(&scheduler->poller, 0);
	return true;
}

void wr_poll_in_passing(struct wr_worker *worker)
{
	if (!take_poller_role(worker))
		return;
	poll_flags(worker, wr_now());
	wr_exchange(&worker->scheduler->poller, 0);
	wr_poll_hand_over(worker->scheduler); /* a worker that went to sleep meanwhile saw a poller */
}
