/*
 * Timers (S10): one binary heap of absolute times in nanoseconds, with at most one entry per entity, under a
 * lock. Workers add requests through a lock-free list, which the next thread that looks at the heap takes. An
 * entity is in the list at most once, and its time is read after it has left the list, so the latest request
 * counts. The heap's array has room for all entities, so adding an entry never fails.
 *
 * The thread that waits for the earliest time is the one that can run what is due: a worker that goes to
 * sleep. It is the *keeper* until it wakes, and sleeps until that time (`kept_until`). The loop wakes for it
 * only while no worker does: `loop.until` is then not later than the earliest time. So each time that is
 * requested is seen to in one of these ways:
 *  - the keeper's, or the loop's, wait ends at it or before;
 *  - the loop is awake: it looks at the heap and the list before it waits;
 *  - the worker that has requested it, or has taken earlier ones out of the heap, is awake and knows it
 *    (`worker->time`): before it runs an entity, or users' destructors, it sees to it that the loop's wait
 * ends in time (hand_over), before it sleeps it becomes the keeper. A thread that lets one of these waits end
 * later than before looks at the list after that: a request was listed before its worker looked at them.
 *
 * Where the program turns the loop, no worker keeps time: no timer fires without a turn (B1).
 */
#include "base/clock.h"
#include "base/stack.h"
#include "scheduler/run.h"

/*
 * The loop's wait does not end earlier than so long after a worker was about to run an entity: mostly the
 * worker is back before, and sees to what is due itself.
 */
#define SLACK_NS 50000

#define BRIEF_NS   10000    /* a run of an entity is brief if it is shorter, */
#define BRIEF_RUNS 64       /* and is expected to be so after so many brief ones in a row */
#define BRIEF_MAX  8        /* so many that are due and brief need no other worker */
#define BESIDE_MAX 64       /* expected brief runs before the loop sees to the times all the same */
#define SHORT_NS   200000   /* a run that takes less is not handed over for, if the time is far */
#define WATCH_NS   10000000 /* so soon the loop looks if a run was brief in vain */

/* --- the heap --- */

static void heap_put(weir_scheduler *scheduler, size_t place, weir_entity *entity)
{
	scheduler->heap[place] = entity;
	entity->timer_place = place + 1;
}

static void heap_rise(weir_scheduler *scheduler, size_t place)
{
	weir_entity *entity = scheduler->heap[place];

	while (place && scheduler->heap[(place - 1) / 2]->timer_due > entity->timer_due) {
		heap_put(scheduler, place, scheduler->heap[(place - 1) / 2]);
		place = (place - 1) / 2;
	}
	heap_put(scheduler, place, entity);
}

static void heap_sink(weir_scheduler *scheduler, size_t place)
{
	weir_entity *entity = scheduler->heap[place];

	for (size_t child = 2 * place + 1; child < scheduler->heap_count; child = 2 * place + 1) {
		if (child + 1 < scheduler->heap_count &&
		    scheduler->heap[child + 1]->timer_due < scheduler->heap[child]->timer_due)
			child++;
		if (scheduler->heap[child]->timer_due >= entity->timer_due)
			break;
		heap_put(scheduler, place, scheduler->heap[child]);
		place = child;
	}
	heap_put(scheduler, place, entity);
}

/* Moves the listed requests into the heap. */
static void take_listed_locked(weir_scheduler *scheduler)
{
	weir_entity *entity = NULL;

	if (wr_load(&scheduler->timers_listed))
		entity = wr_exchange(&scheduler->timers_listed, NULL);
	while (entity) {
		weir_entity *next = entity->timer_next;
		wr_exchange(&entity->timer_listed, false); /* from here on a new request lists it again */
		entity->timer_due = wr_load(&entity->timer_at);
		if (!entity->timer_place)
			heap_put(scheduler, scheduler->heap_count++, entity);
		heap_rise(scheduler, entity->timer_place - 1);
		heap_sink(scheduler, entity->timer_place - 1);
		entity = next;
	}
}

static int64_t earliest_locked(const weir_scheduler *scheduler)
{
	return scheduler->heap_count ? scheduler->heap[0]->timer_due : INT64_MAX;
}

static weir_entity *take_due_locked(weir_scheduler *scheduler, int64_t now)
{
	weir_entity *entity = scheduler->heap_count ? scheduler->heap[0] : NULL;

	if (!entity || entity->timer_due > now)
		return NULL;
	entity->timer_place = 0;
	if (--scheduler->heap_count) {
		heap_put(scheduler, 0, scheduler->heap[scheduler->heap_count]);
		heap_sink(scheduler, 0);
	}
	return entity;
}

/* --- the loop's wait --- */

static int64_t with_slack(const weir_scheduler *scheduler, int64_t at, int64_t now)
{
	int64_t least = wr_time_add(now, SLACK_NS);

	if (!scheduler->workers_keep_time || scheduler->loop.simulated)
		return at;
	return at > least ? at : least;
}

/* Its wait ends at `until`, also if it waits already; the loop was seen to wait until `seen`. */
static void set_loop_locked(weir_scheduler *scheduler, int64_t seen, int64_t until)
{
	if (wr_cas(&scheduler->loop.until, &seen, until)) /* else it has woken: it looks before it waits */
		wr_loop_set_timer(&scheduler->loop, until);
}

/* A worker sees to the times now. `until` is not later than what the loop itself waits for. */
static void put_off_loop_locked(weir_scheduler *scheduler, int64_t soon, int64_t until)
{
	int64_t seen = wr_load(&scheduler->loop.until);

	until = until < scheduler->loop_until ? until : scheduler->loop_until;
	if (seen != INT64_MIN && seen <= soon && seen < until)
		set_loop_locked(scheduler, seen, until);
}

/* What a worker has left in a queue: the loop must look within 10 ms. */
static bool relied_on(weir_scheduler *scheduler)
{
	return scheduler->workers_keep_time &&
	       (wr_load(&scheduler->lookout) == WR_LOOP_LOOKS ||
		(wr_ready_due_holds(scheduler) && wr_load(&scheduler->sleepers)));
}

void wr_timers_arm_loop(weir_scheduler *scheduler, int64_t now, int64_t until)
{
	struct wr_loop *loop = &scheduler->loop;
	int64_t looks_at = wr_time_add(wr_ready_looked_at(scheduler, now), WATCH_NS);
	int64_t earliest, at;

	wr_mutex_lock(&scheduler->timers_lock);
	scheduler->loop_until = until;
	scheduler->look_by = looks_at;
	do {
		take_listed_locked(scheduler);
		earliest = earliest_locked(scheduler);
		at = until;
		if (wr_load(&scheduler->phase) == WR_OPEN && earliest < until &&
		    earliest < wr_load(&scheduler->kept_until)) {
			at = with_slack(scheduler, earliest, now);
			at = at < until ? at : until;
		}
		wr_store(&loop->until, at);
	} while (wr_load(&scheduler->timers_listed));
	if (relied_on(scheduler) && at > looks_at) {
		bool is_set = loop->timer_at < looks_at && loop->timer_at > wr_time_add(now, WATCH_NS / 2);
		at = is_set ? loop->timer_at : looks_at; /* a kick has woken the loop */
		wr_store(&loop->until, at);
	}
	wr_loop_set_timer(loop, at);
	wr_mutex_unlock(&scheduler->timers_lock);
}

/* --- requests --- */

void wr_timers_request(struct wr_worker *worker, weir_entity *entity, int64_t at)
{
	weir_scheduler *scheduler = worker->scheduler;

	wr_store(&entity->timer_at, at);
	if (!wr_exchange(&entity->timer_listed, true))
		wr_stack_push(&scheduler->timers_listed, entity, timer_next);
	/* If the loop's wait ends before, the loop would wake a worker when the time comes. */
	if (at >= wr_load(&scheduler->loop.until))
		worker->will_keep = scheduler->workers_keep_time;
	else if (!scheduler->workers_keep_time)
		wr_loop_kick(&scheduler->loop);
	else if (at < worker->time)
		worker->time = at;
}

/* The loop's wait ends at `at` or before. */
static void bring_loop_locked(weir_scheduler *scheduler, int64_t at)
{
	int64_t until = wr_load(&scheduler->loop.until);

	if (until <= at)
		return;
	set_loop_locked(scheduler, until, at);
	if (scheduler->loop.simulated)
		wr_loop_kick(&scheduler->loop); /* it waits until the time that it has read */
}

/* The worker is about to run something that may take long: the loop sees to the times, unless a keeper does.
 */
static void hand_over(struct wr_worker *worker, int64_t now)
{
	weir_scheduler *scheduler = worker->scheduler;
	int64_t at = worker->time;

	worker->time = INT64_MAX;
	worker->will_keep = true; /* if it sleeps before that */
	if (wr_load(&scheduler->loop.until) <= at || wr_load(&scheduler->kept_until) <= at)
		return;
	wr_mutex_lock(&scheduler->timers_lock);
	take_listed_locked(scheduler);
	at = earliest_locked(scheduler);
	if (at < wr_load(&scheduler->kept_until))
		bring_loop_locked(scheduler, with_slack(scheduler, at, now));
	wr_mutex_unlock(&scheduler->timers_lock);
}

void wr_timers_hand_over(struct wr_worker *worker)
{
	if (worker->time != INT64_MAX)
		hand_over(worker, wr_now());
}

/* It will be back soon. If not, as its compute takes long for once, the loop looks. */
void wr_timers_have_loop_look(weir_scheduler *scheduler, int64_t now)
{
	if (wr_load(&scheduler->loop.until) <= wr_time_add(now, WATCH_NS))
		return;
	wr_mutex_lock(&scheduler->timers_lock);
	bring_loop_locked(scheduler, wr_time_add(now, WATCH_NS));
	wr_mutex_unlock(&scheduler->timers_lock);
}

/* --- what is due --- */

struct fired {
	size_t count, brief; /* those that are expected to be brief */
};

/* Pokes what is due. worker: NULL, or the one that sees to the times from now on. */
static struct fired fire(weir_scheduler *scheduler, struct wr_worker *worker, int64_t now)
{
	enum { BATCH = 64 };
	weir_entity *due[BATCH];
	struct fired fired = {0, 0};
	int64_t until;
	size_t count;

	do {
		wr_mutex_lock(&scheduler->timers_lock);
		if (worker) {
			until = wr_time_add(now, WATCH_NS);
			if (relied_on(scheduler) && scheduler->look_by < until)
				until = scheduler->look_by; /* this worker has not looked */
			put_off_loop_locked(scheduler, wr_time_add(now, SLACK_NS), until);
		}
		take_listed_locked(scheduler);
		for (count = 0; count < BATCH && (due[count] = take_due_locked(scheduler, now)); count++)
			fired.brief += wr_read(&due[count]->brief_runs) >= BRIEF_RUNS;
		if (worker)
			worker->time = earliest_locked(scheduler);
		wr_mutex_unlock(&scheduler->timers_lock);
		fired.count += wr_poke_due(scheduler, due, count);
	} while (count == BATCH);
	return fired;
}

/* The worker is going to run one of these; the others wait. A few that are brief need no other worker. */
static void wake_others(struct wr_worker *worker, int64_t now, struct fired fired)
{
	size_t wanted = fired.count > fired.brief ? fired.count - 1 : fired.count > BRIEF_MAX;

	if (!wanted && fired.count > 1)
		wr_timers_have_loop_look(worker->scheduler, now);
	for (size_t i = 0; i < wanted; i++)
		wr_wake_one(worker->scheduler);
}

void wr_timers_fire_loop(weir_scheduler *scheduler, int64_t now)
{
	size_t count = fire(scheduler, NULL, now).count;

	for (size_t i = 0; i < count; i++)
		wr_wake_one(scheduler);
	if (!count && wr_ready_due_holds(scheduler))
		wr_wake_one(scheduler); /* it may wait for a run that was expected to be brief */
	wr_ready_look_out(scheduler, now);
}

bool wr_timers_fire(struct wr_worker *worker)
{
	int64_t now = wr_now();
	struct fired fired = fire(worker->scheduler, worker, now);

	worker->beside = 0;
	wake_others(worker, now, fired);
	return fired.count;
}

/* --- beside what is to come --- */

static void fire_beside(struct wr_worker *worker, int64_t now, bool brief)
{
	struct fired fired = fire(worker->scheduler, worker, now);

	fired.count++; /* what it is going to run */
	fired.brief += brief;
	wake_others(worker, now, fired);
}

/* What it takes at the most comes down slowly: it is not known before some 30 runs. */
static void learn_run(weir_entity *entity, unsigned brief_runs, int64_t took)
{
	int64_t most = wr_read(&entity->run_most);

	most = took > most ? took : most - (most - took) / 8;
	wr_note(&entity->run_most, (uint32_t)(most < UINT32_MAX ? most : UINT32_MAX));
	if (took < BRIEF_NS)
		brief_runs += brief_runs < 2 * BRIEF_RUNS;
	else
		brief_runs -= brief_runs < BRIEF_RUNS ? brief_runs : BRIEF_RUNS;
	wr_note(&entity->brief_runs, brief_runs);
}

void wr_timers_run_entity(struct wr_worker *worker, weir_entity *entity)
{
	unsigned runs = wr_read(&entity->brief_runs);
	bool brief = runs >= BRIEF_RUNS && worker->beside + 1 < BESIDE_MAX;
	int64_t began = wr_now(), most = wr_read(&entity->run_most);

	if (began >= worker->time)
		fire_beside(worker, began, brief);
	/* By its latest runs it ends before the time comes: no other thread need wait for that. */
	if ((brief || (most < SHORT_NS && wr_time_add(began, 2 * most) < worker->time)) &&
	    ++worker->beside < BESIDE_MAX) {
		if (wr_load(&worker->scheduler->loop.until) > worker->time)
			wr_timers_have_loop_look(worker->scheduler, began);
	} else {
		hand_over(worker, began);
		began = wr_now(); /* a call of the system may take longer than the run */
	}
	wr_run_entity(worker, entity);
	learn_run(entity, runs, wr_now() - began);
}

/* --- the keeper --- */

/*
 * A keeper sleeps until `wake_at`. No further than 10 ms after that: what it runs then may be brief in vain,
 * and the loop need not be told before that. Setting its timer is a call of the system: it must gain a while.
 */
static void put_off_for_keeper_locked(weir_scheduler *scheduler, int64_t wake_at)
{
	bool relied = relied_on(scheduler);
	int64_t until = wr_time_add(relied ? wr_now() : wake_at, WATCH_NS);
	int64_t soon = until - WATCH_NS / 2;

	if (relied)
		scheduler->look_by = until; /* the keeper has just looked */
	put_off_loop_locked(scheduler, wake_at < soon ? wake_at : soon, until);
}

int64_t wr_timers_keep(struct wr_worker *worker, int64_t until)
{
	weir_scheduler *scheduler = worker->scheduler;
	unsigned self = worker->local.index + 1;
	int64_t earliest, wake_at;

	if (worker->time == INT64_MAX && !worker->will_keep)
		return until;
	wr_mutex_lock(&scheduler->timers_lock);
	do {
		take_listed_locked(scheduler);
		earliest = earliest_locked(scheduler);
		wake_at = earliest < until ? earliest : until;
		if (scheduler->keeper == self || earliest < wr_load(&scheduler->kept_until)) {
			wr_store(&scheduler->kept_until, earliest);
			scheduler->keeper = self;
		}
		put_off_for_keeper_locked(scheduler, wake_at);
	} while (wr_load(&scheduler->timers_listed));
	if (relied_on(scheduler))
		bring_loop_locked(scheduler, wr_time_add(wr_now(), WATCH_NS));
	worker->was_keeper = scheduler->keeper == self;
	wr_mutex_unlock(&scheduler->timers_lock);
	worker->time = INT64_MAX;
	worker->will_keep = false;
	return worker->was_keeper && earliest < until ? earliest : until;
}

void wr_timers_woken(struct wr_worker *worker)
{
	weir_scheduler *scheduler = worker->scheduler;

	if (!worker->was_keeper)
		return;
	worker->was_keeper = false;
	wr_mutex_lock(&scheduler->timers_lock);
	if (scheduler->keeper == worker->local.index + 1) {
		scheduler->keeper = 0;
		wr_store(&scheduler->kept_until, INT64_MAX);
	}
	wr_mutex_unlock(&scheduler->timers_lock);
	wr_timers_fire(worker);
}

/* --- a run --- */

bool wr_timers_any(weir_scheduler *scheduler)
{
	bool any;

	wr_mutex_lock(&scheduler->timers_lock);
	take_listed_locked(scheduler);
	any = scheduler->heap_count;
	wr_mutex_unlock(&scheduler->timers_lock);
	return any;
}

void wr_timers_clear(weir_scheduler *scheduler)
{
	wr_mutex_lock(&scheduler->timers_lock);
	take_listed_locked(scheduler);
	while (scheduler->heap_count)
		scheduler->heap[--scheduler->heap_count]->timer_place = 0;
	scheduler->keeper = 0;
	wr_store(&scheduler->kept_until, INT64_MAX);
	wr_mutex_unlock(&scheduler->timers_lock);
}
