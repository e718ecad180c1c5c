/*
 * The poller: a role that one idle worker at a time plays while flags are armed (G2, S9). It watches the
 * words that the device writes, and runs at once what has rung: no thread is woken between the end of the
 * device's work and compute. Until shortly before the next completion that streams/ expects it sleeps like
 * every other worker, but for a time.
 *
 * There is always somebody who will look. Arming counts (`armed`, `version`), then looks at the role: nobody
 * plays it: one sleeper is woken, unless somebody spins; the poller sleeps: it is woken and plans anew. Who
 * goes to sleep announces it, then looks at `armed` and the role; the poller announces its sleep, then looks
 * at `version`. Who leaves idleness with work in its hands, or with users' destructors to run, or has looked
 * in passing, looks, after it has given the role up, whether the next one must be woken. All of it is
 * sequentially consistent, so of two one sees the other. Workers that never idle look, too, as often as at
 * the injector.
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

static bool take_role(struct wr_worker *worker)
{
	unsigned nobody = 0;

	return wr_poll_wanted(worker->scheduler) &&
	       wr_cas(&worker->scheduler->poller, &nobody, worker->local.index + 1);
}

/* One look, by whoever has the role. What fires is pushed to this worker's own queue (wr_poke_by_id). */
static int64_t look(struct wr_worker *worker, int64_t now)
{
	int64_t next;

	worker->polling = true;
	next = wr_flags_poll(worker->scheduler->graph->system, now);
	worker->polling = false;
	return next;
}

/*
 * How it was asked to wait: by spinning, or by a sleep. `spin_until`: sleeps are not wanted before (the
 * scheduler's `spin`).
 */
static void wait_until(struct wr_worker *worker, int64_t next, int64_t spin_until, uint64_t version)
{
	weir_scheduler *scheduler = worker->scheduler;
	int64_t now = wr_now();

	if (next <= now || now < spin_until) {
		wr_thread_relax();
		return;
	}
	wr_fetch_sub(&scheduler->spinners, 1);	/* before it announces its sleep and looks at every queue */
	if (!wr_worker_sleep(worker, next, &version))
		wr_flags_overslept(scheduler->graph->system, wr_now() - next);
	wr_fetch_add(&scheduler->spinners, 1);
}

static void play(struct wr_worker *worker)
{
	weir_scheduler *scheduler = worker->scheduler;
	int64_t spin_ns = scheduler->options.spin_ns, begin = wr_now(), since = 0;
	int64_t spin_until = spin_ns > 0 ? wr_time_add(begin, spin_ns) : INT64_MIN;

	for (;;) {
		uint64_t version = wr_flags_version(scheduler->graph->system);
		int64_t now = wr_now(), next = look(worker, now);

		if (next == INT64_MAX || wr_live_closed(&scheduler->live) ||
		    wr_spinner_has_work(worker, now, &since))
			return;
		/* What lies there (`since`) is its owner's a moment longer. */
		wait_until(worker, since ? now : next, spin_until, version);
	}
}

bool wr_poll(struct wr_worker *worker)
{
	weir_scheduler *scheduler = worker->scheduler;

	if (!take_role(worker))
		return false;
	worker->wakes_skipped = true;
	wr_fetch_add(&scheduler->spinners, 1);
	play(worker);
	wr_fetch_sub(&scheduler->spinners, 1);
	wr_exchange(&scheduler->poller, 0);
	return true;
}

void wr_poll_in_passing(struct wr_worker *worker)
{
	if (!take_role(worker))
		return;
	look(worker, wr_now());
	wr_exchange(&worker->scheduler->poller, 0);
	wr_poll_hand_over(worker->scheduler);	/* who went to sleep meanwhile took us for the poller */
}
