/*
 * The ready queues (S9). An entity is in at most one of them, at most once.
 *
 * Each worker has a ring (the owner pushes at the tail; the owner and thieves take at the head by CAS) and,
 * in front of it, a `next` slot, so that the receiver of a message runs on the warm core. A thief may take
 * from the slot, too. An entity that waited for room goes to the end of the ring: when it is popped it often
 * has a message as well, which saves a review. What does not fit into the ring goes to the worker's *spill*,
 * a list behind a lock, which is popped when the ring is empty; thieves take there, too.
 *
 * Threads that are no workers, such as the driver's, push to the injector: an intrusive stack, one CAS, no
 * lock. A worker empties that stack by one exchange, reverses it and appends it to the backlog, a list behind
 * a lock that only workers take. What a timer has poked is in the due list, under the same lock; only the
 * loop thread pushes there. Each pop looks there first, except every WR_INJECTOR_EVERY-th, which begins with
 * the injector. Each entry of the injector and of the due list has a live reference of its own (S4).
 *
 * No wake-up is lost: a pusher pushes by a sequentially consistent store or read-modify-write and then looks
 * at the announced sleeps (wr_wake_one; a worker that pushes to itself: may_wake_for); a worker announces its
 * sleep in the same way and then looks at every queue (wr_ready_any_work). At least one of the two sees the
 * other. The worker that moves a batch from the stack to the backlog is awake meanwhile, and it looks at the
 * announced sleeps after appending.
 */
#include "scheduler/scheduler.h"

#include <string.h>

#include "base/clock.h"
#include "base/status.h"
#include "scheduler/run.h"
#include "sim/simulation.h"

/* --- waking a worker --- */

__attribute__((noinline)) static void trace_wake(weir_scheduler *scheduler, uint64_t bit)
{
	wr_trace_wake(scheduler->trace, wr_lane_here(scheduler), (unsigned)__builtin_ctzll(bit));
}

void wr_wake_one_of(weir_scheduler *scheduler, uint64_t sleepers)
{
	for (; sleepers; sleepers = wr_load(&scheduler->sleepers)) {
		unsigned poller = wr_load(&scheduler->poller);
		/* Rather not the poller, which sleeps with a timeout and has work after it. */
		uint64_t others = poller ? sleepers & ~(UINT64_C(1) << (poller - 1)) : sleepers;
		uint64_t bit = others ? others & -others : sleepers;
		if (wr_fetch_and(&scheduler->sleepers, ~bit) & bit) {
			if (scheduler->trace)
				trace_wake(scheduler, bit);
			wr_unpark(&scheduler->workers[__builtin_ctzll(bit)].parker);
			return;
		}
	}
}

void wr_wake_all(weir_scheduler *scheduler)
{
	wr_exchange(&scheduler->sleepers, 0);
	for (unsigned i = 0; i < scheduler->worker_count; i++)
		wr_unpark(&scheduler->workers[i].parker);
}

bool wr_poller_wanted(weir_scheduler *scheduler)
{
	struct wr_system *system = scheduler->graph->system;

	return wr_flags_armed(system) && !wr_load(&scheduler->poller);
}

void wr_wake_for_flags(weir_scheduler *scheduler)
{
	if (wr_poller_wanted(scheduler) && !wr_load(&scheduler->spinners))
		wr_wake_one(scheduler);
}

/*
 * --- is it worth it? ---
 *
 * A wake-up costs more than a short compute, and a compute costs more on another core than where its messages
 * are. So a worker wakes another for what it pushes to itself only if the entries gain more than two
 * wake-ups, or wait for the compute that it is in; and a worker without work leaves to another what gains too
 * little. This may be wrong: a compute that was short may take long. Hence the *lookout*: where a worker that
 * pushes, or one that goes to sleep, leaves entries to their worker, a sleeper or the loop has that role. A
 * sleeper sleeps for a time, and takes from a worker that has popped nothing since; the loop looks within 10
 * ms, and wakes a worker if there are entries. The role is given up before the look, so the look finds what a
 * push left because of the role (tests/models/m8_next.c: WORTH and LOOP_LOOKS, where any answer is right).
 */

#define WAKE_NS       5000      /* until a sleeping core runs */
#define MOVE_NS       600       /* what a tick costs more away from its data */
#define STEAL_NS      2000      /* gain that is worth a steal */
#define STUCK_NS      100000    /* so long a worker has popped nothing: others take from it */
#define BUSY_NS       100000000 /* so long after a pop the loop stays the lookout */
#define LOOK_AGAIN_NS 2000000   /* the loop looks no sooner than so long after its last look */
#define LOOKED        8         /* entries of a queue that stand for all */
#define STOLEN_MAX    32

/* A sample counts as little more than what is known: its thread may have been preempted. */
void wr_cost_learn(weir_entity *entity, int64_t ns)
{
	uint32_t known = wr_load_relaxed(&entity->cost);
	int64_t most = known == WR_COST_UNKNOWN ? WR_COST_UNKNOWN - 1 : 2 * (int64_t)known + WAKE_NS;
	int64_t cost = ns < most ? ns : most;

	if (known != WR_COST_UNKNOWN)
		cost = (known + cost) / 2;
	wr_store_relaxed(&entity->cost, cost < WR_COST_UNKNOWN ? (uint32_t)cost : WR_COST_UNKNOWN - 1);
}

static int64_t entity_gain(const weir_entity *entity)
{
	uint32_t cost = entity ? wr_load_relaxed(&((weir_entity *)entity)->cost) : 0;

	return cost > MOVE_NS ? cost - MOVE_NS : 0;
}

/* Of the ring and the spill. */
static uint64_t entries_behind_next(struct wr_worker *worker)
{
	uint64_t head = wr_load(&worker->head); /* first: it never passes a tail that is read later */

	return wr_load(&worker->tail) - head + wr_load(&worker->spilled);
}

static bool worker_has_entries(struct wr_worker *worker)
{
	return wr_load(&worker->next) || entries_behind_next(worker);
}

/*
 * What the entries of the worker's own queue would gain elsewhere, in ns; the first of the ring stand for
 * all. A hint: they may move meanwhile.
 */
static int64_t queue_gain(struct wr_worker *worker)
{
	uint64_t head = wr_load(&worker->head), count = wr_load(&worker->tail) - head;
	uint64_t looked = count < LOOKED ? count : LOOKED;
	int64_t gain = 0;

	for (uint64_t i = 0; i < looked; i++)
		gain += entity_gain(wr_load_relaxed(&worker->ring[(head + i) % WR_RING]));
	if (looked)
		gain = gain * (int64_t)(count + wr_load(&worker->spilled)) / (int64_t)looked;
	return gain + entity_gain(wr_load_relaxed(&worker->next));
}

/* How long what is in its queue may wait for the compute that it is in. */
static int64_t waiting_behind(struct wr_worker *worker)
{
	return wr_load_relaxed(&worker->running_cost);
}

/* In a simulated world half of what is not worth it is done, so that more orders are tried. */
bool wr_worth_it(const weir_scheduler *scheduler, bool worth)
{
	return worth || (scheduler->graph->owns_world && wr_random_below(wr_sim_random(scheduler->sim), 2));
}

/*
 * Entries are left to their worker, and there is no lookout. Where workers keep time the loop becomes it: it
 * looks within 10 ms, and costs the worker nothing if it has the role already.
 */
static void have_looked(weir_scheduler *scheduler)
{
	unsigned none = 0;

	if (!scheduler->workers_keep_time)
		wr_wake_one(scheduler);
	else if (wr_cas(&scheduler->lookout, &none, WR_LOOP_LOOKS))
		wr_timers_have_loop_look(scheduler, wr_now());
}

/* Workers have popped something in the last 100 ms. */
static bool is_busy(weir_scheduler *scheduler, int64_t now)
{
	uint32_t pops = 0;

	for (unsigned i = 0; i < scheduler->worker_count; i++)
		pops += wr_load_relaxed(&scheduler->workers[i].pops);
	if (pops != scheduler->looked_pops)
		scheduler->busy_until = wr_time_add(now, BUSY_NS);
	scheduler->looked_pops = pops;
	return now < scheduler->busy_until;
}

int64_t wr_ready_looked_at(const weir_scheduler *scheduler, int64_t now)
{
	return now < wr_time_add(scheduler->looked_at, LOOK_AGAIN_NS) ? scheduler->looked_at : now;
}

/*
 * The role is given up before the look, which therefore finds each entry that was left because of it. Not in
 * each turn that a kick brings: mostly a worker is about to take what is queued. The loop takes it again
 * while the graph is busy: else the next push sets the loop's timer, which is a call of the system, often
 * before a compute.
 */
void wr_ready_look_out(weir_scheduler *scheduler, int64_t now)
{
	unsigned loop = WR_LOOP_LOOKS, none = 0;
	bool left;

	if (now < wr_time_add(scheduler->looked_at, LOOK_AGAIN_NS) || wr_load(&scheduler->lookout) != loop ||
	    !wr_cas(&scheduler->lookout, &loop, 0))
		return;
	scheduler->looked_at = now;
	left = wr_poller_wanted(scheduler); /* by a worker that is still in its compute */
	for (unsigned i = 0; i < scheduler->worker_count && !left; i++)
		left = worker_has_entries(&scheduler->workers[i]);
	if (left)
		wr_wake_one(scheduler); /* it takes entries at once or becomes the lookout; or it polls */
	else if (is_busy(scheduler, now))
		wr_cas(&scheduler->lookout, &none, WR_LOOP_LOOKS);
}

/* Wakes a sleeper for entries with that gain if it is worth it; has them looked at if not. */
__attribute__((noinline)) static void wake_if_worth(struct wr_worker *worker, int64_t gain)
{
	weir_scheduler *scheduler = worker->scheduler;
	uint64_t sleepers = wr_load(&scheduler->sleepers);

	if (!sleepers || wr_load(&scheduler->spinners))
		return;
	if (wr_worth_it(scheduler, waiting_behind(worker) > 2 * WAKE_NS || gain > 2 * WAKE_NS))
		wr_wake_one_of(scheduler, sleepers);
	else if (!wr_load(&scheduler->lookout))
		have_looked(scheduler);
}

/*
 * The worker has pushed this entity to its own queue. Mostly no worker sleeps, or computes are short and
 * there is a lookout.
 */
static inline bool may_wake_for(struct wr_worker *worker, const weir_entity *pushed)
{
	weir_scheduler *scheduler = worker->scheduler;

	if (!wr_load(&scheduler->sleepers))
		return false;
	return waiting_behind(worker) > 2 * WAKE_NS || entity_gain(pushed) || !wr_load(&scheduler->lookout) ||
	       scheduler->graph->owns_world;
}

/*
 * A wake-up is a call of the system, and what is pushed waits for nothing but the next compute. So if that is
 * not begun yet, or is brief, whether to wake another worker is decided before the one that follows: mostly
 * this worker takes the entity itself before. It needs a lookout, since this may be wrong.
 */
static bool decide_later(struct wr_worker *worker, bool waits_for_nothing)
{
	weir_scheduler *scheduler = worker->scheduler;

	if (!waits_for_nothing || !scheduler->workers_keep_time)
		return false;
	if (!wr_load(&scheduler->lookout))
		have_looked(scheduler);
	worker->local.undecided |= WR_UNDECIDED_ENTRIES;
	return true;
}

void wr_ready_decide(struct wr_worker *worker)
{
	if (worker->local.undecided & WR_UNDECIDED_FLAGS)
		wr_wake_for_flags(worker->scheduler);
	worker->local.undecided = 0;
	if (worker_has_entries(worker))
		wake_if_worth(worker, queue_gain(worker));
}

/*
 * Another worker is wanted to poll, or this one, if it has nothing to run at its next pop: mostly so, and a
 * wake-up is a call of the system. Leaving it needs a lookout, since what is expected may be wrong.
 */
static void wake_or_leave_flags(struct wr_worker *worker, bool leave, uint8_t undecided)
{
	weir_scheduler *scheduler = worker->scheduler;

	if (!wr_poller_wanted(scheduler) || !wr_load(&scheduler->sleepers) || wr_load(&scheduler->spinners))
		return;
	if (wr_worth_it(scheduler, !leave)) {
		wr_wake_one(scheduler);
		return;
	}
	if (!wr_load(&scheduler->lookout))
		have_looked(scheduler);
	worker->local.undecided |= undecided;
}

/* The wake-up would come before the compute that the flag was for: left if that is expected to be brief. */
void wr_ready_hand_over(struct wr_worker *worker, weir_entity *entity)
{
	bool brief = worker->scheduler->workers_keep_time && wr_load_relaxed(&entity->cost) <= WAKE_NS;

	wake_or_leave_flags(worker, brief, WR_UNDECIDED_FLAGS);
}

/* Left to the next pop, but not past another compute of the row. */
void wr_wake_poller(struct wr_worker *worker)
{
	weir_scheduler *scheduler = worker->scheduler;
	unsigned poller = wr_load(&scheduler->poller);
	uint64_t bit = poller ? UINT64_C(1) << (poller - 1) : 0;

	if (!poller)
		wake_or_leave_flags(worker, scheduler->workers_keep_time,
				    WR_UNDECIDED_FLAGS | WR_UNDECIDED_ENTRIES);
	else if (wr_load(&scheduler->sleepers) & bit && wr_fetch_and(&scheduler->sleepers, ~bit) & bit)
		wr_unpark(&scheduler->workers[poller - 1].parker);
}

/*
 * It has popped nothing for a while, or so slowly that its last entry waits for a while; found by looks that
 * are some time apart, between which it did not sleep. Entries that wait no longer than it takes to move them
 * stay.
 */
static bool is_stuck(struct wr_worker *worker)
{
	uint32_t pops = wr_load_relaxed(&worker->pops);
	int64_t now = wr_now(), since = wr_load_relaxed(&worker->looked_since), took = now - since;
	uint32_t popped = pops - wr_load_relaxed(&worker->looked_pops);
	int64_t waiting = (int64_t)entries_behind_next(worker) + 1, moved = waiting * MOVE_NS;
	int64_t long_enough = moved > STUCK_NS ? moved : STUCK_NS;

	if (since != INT64_MAX && (!popped || took < STUCK_NS))
		return !popped && took >= long_enough;
	wr_store_relaxed(&worker->looked_since, now);
	wr_store_relaxed(&worker->looked_pops, pops);
	return since != INT64_MAX && took / popped * waiting >= long_enough;
}

/* least: the gain for which something is done. */
static bool worth_taking(struct wr_worker *from, int64_t least)
{
	return is_stuck(from) ||
	       wr_worth_it(from->scheduler, waiting_behind(from) > least || queue_gain(from) > least);
}

/* --- the injector, and the due list --- */

void wr_ready_inject_no_wake(weir_scheduler *scheduler, weir_entity *entity)
{
	weir_entity *top = wr_load_relaxed(&scheduler->injected);

	do
		wr_store_relaxed(&entity->next_ready, top); /* published by the CAS */
	while (!wr_cas(&scheduler->injected, &top, entity));
}

void wr_ready_inject(weir_scheduler *scheduler, weir_entity *entity)
{
	wr_ready_inject_no_wake(scheduler, entity);
	/* A call from outside a simulated world must not wake its fibers: its loop polls the injector
	 * (loop.c). */
	if (!scheduler->graph->owns_world || wr_sim_current() == scheduler->sim)
		wr_wake_one(scheduler);
}

/* From first to last they are linked. */
static void list_append_locked(struct wr_ready_list *list, weir_entity *first, weir_entity *last)
{
	if (list->last)
		wr_store_relaxed(&list->last->next_ready, first);
	else
		list->first = first;
	list->last = last;
}

static weir_entity *list_shift_locked(struct wr_ready_list *list, _Atomic uint64_t *count)
{
	weir_entity *entity = list->first;

	if (!entity)
		return NULL;
	list->first = wr_load_relaxed(&entity->next_ready);
	if (!list->first)
		list->last = NULL;
	wr_fetch_sub(count, 1);
	return entity;
}

/* Appends what the stack held, whose top is the newest entry, to the backlog, oldest first. */
static void backlog_append_locked(weir_scheduler *scheduler, weir_entity *newest)
{
	weir_entity *first = NULL, *older;
	uint64_t count = 0;

	for (weir_entity *entity = newest; entity; entity = older, count++) {
		older = wr_load_relaxed(&entity->next_ready);
		wr_store_relaxed(&entity->next_ready, first);
		first = entity;
	}
	if (!newest)
		return;
	list_append_locked(&scheduler->backlog, first, newest);
	wr_fetch_add(&scheduler->backlog_count, count);
}

bool wr_ready_injector_holds(weir_scheduler *scheduler)
{
	return wr_load(&scheduler->injected) || wr_load(&scheduler->backlog_count) ||
	       wr_ready_due_holds(scheduler);
}

/*
 * Takes the oldest entry and drops its reference: the worker has its own. The lock is for the backlog: one
 * entry alone needs none.
 */
__attribute__((noinline)) static weir_entity *injector_take_oldest(weir_scheduler *scheduler, bool some,
								   uint64_t before)
{
	weir_entity *newest = some ? wr_exchange(&scheduler->injected, NULL) : NULL, *entity;
	uint64_t left;

	if (newest && !before && !wr_load_relaxed(&newest->next_ready)) {
		wr_run_drop_live(scheduler);
		return newest;
	}
	wr_mutex_lock(&scheduler->backlog_lock);
	backlog_append_locked(scheduler, newest);
	entity = list_shift_locked(&scheduler->backlog, &scheduler->backlog_count);
	left = wr_load(&scheduler->backlog_count);
	wr_mutex_unlock(&scheduler->backlog_lock);
	if (left)
		wr_wake_one(scheduler);
	if (entity)
		wr_run_drop_live(scheduler);
	return entity;
}

static inline weir_entity *injector_take(weir_scheduler *scheduler)
{
	bool some = wr_load(&scheduler->injected);
	uint64_t before = wr_load(&scheduler->backlog_count);

	return some || before ? injector_take_oldest(scheduler, some, before) : NULL;
}

/* --- the ring and the spill --- */

__attribute__((noinline)) static void spill_push(struct wr_worker *worker, weir_entity *entity)
{
	wr_store_relaxed(&entity->next_ready, NULL); /* published by the lock */
	wr_spin_lock(&worker->spill_lock);
	list_append_locked(&worker->spill, entity, entity);
	wr_fetch_add(&worker->spilled, 1);
	wr_spin_unlock(&worker->spill_lock);
}

__attribute__((noinline)) static weir_entity *spill_shift(struct wr_worker *worker)
{
	weir_entity *entity;

	wr_spin_lock(&worker->spill_lock);
	entity = list_shift_locked(&worker->spill, &worker->spilled);
	wr_spin_unlock(&worker->spill_lock);
	return entity;
}

/* A hint will do for `spilled`: a worker that goes to sleep looks again after its announcement. */
static inline weir_entity *spill_take(struct wr_worker *worker)
{
	return wr_load_relaxed(&worker->spilled) ? spill_shift(worker) : NULL;
}

static void ring_push(struct wr_worker *worker, weir_entity *entity)
{
	uint64_t tail = wr_load_relaxed(&worker->tail); /* only the owner writes it */

	if (tail - wr_load_acquire(&worker->head) == WR_RING) { /* acquire: thieves have read the slot */
		spill_push(worker, entity);
		return;
	}
	wr_store_relaxed(&worker->ring[tail % WR_RING], entity); /* published by the tail */
	wr_store(&worker->tail, tail + 1);
}

static weir_entity *ring_take(struct wr_worker *worker)
{
	uint64_t head = wr_load_acquire(&worker->head);

	for (;;) {
		if (head == wr_load_acquire(&worker->tail))
			return NULL;
		weir_entity *entity = wr_load_relaxed(&worker->ring[head % WR_RING]);
		if (wr_cas(&worker->head, &head, head + 1))
			return entity; /* the slot was not overwritten: the head had not moved */
	}
}

/* --- pushing --- */

void wr_ready_push_last(struct wr_worker *worker, weir_entity *entity)
{
	ring_push(worker, entity);
	if (may_wake_for(worker, entity))
		wake_if_worth(worker, queue_gain(worker));
}

void wr_ready_push_room(struct wr_worker *worker, weir_entity *entity)
{
	ring_push(worker, entity);
	if (may_wake_for(worker, entity) && !decide_later(worker, waiting_behind(worker) <= WAKE_NS))
		wake_if_worth(worker, queue_gain(worker));
}

/*
 * An entity in the `next` slot is popped before the ring, unless WR_NEXT_MAX is reached: then it is moved to
 * the ring, before `entity`. If the row yields, the receiver may be in the injector, which is popped after
 * the ring.
 */
void wr_ready_push_behind(struct wr_worker *worker, weir_entity *entity)
{
	weir_entity *woken = worker->nexts < WR_NEXT_MAX ? NULL : wr_exchange(&worker->next, NULL);

	if (woken)
		ring_push(worker, woken);
	if (!worker->row_yields) {
		wr_ready_push_last(worker, entity);
		return;
	}
	wr_live_take(&worker->scheduler->live); /* the reference of the injector's entry */
	wr_ready_inject(worker->scheduler, entity);
}

void wr_ready_push_next(struct wr_worker *worker, weir_entity *entity)
{
	weir_entity *before = wr_exchange(&worker->next, entity);
	const weir_context *context = worker->local.context;

	if (before)
		ring_push(worker, before);
	if (may_wake_for(worker, entity) &&
	    !decide_later(worker, !(context && context->computing) && !entries_behind_next(worker)))
		wake_if_worth(worker, queue_gain(worker));
}

/* The first one needs no wake-up: this worker pops it next, unless WR_NEXT_MAX is reached. */
void wr_ready_push_fired(struct wr_worker *worker, weir_entity *entity)
{
	weir_entity *before = wr_exchange(&worker->next, entity);

	if (before)
		ring_push(worker, before);
	else if (worker->nexts < WR_NEXT_MAX)
		return;
	wr_wake_one(worker->scheduler);
}

static weir_entity *next_take(struct wr_worker *worker)
{
	if (!wr_load_relaxed(&worker->next))
		return NULL; /* a push missed here is not lost: its pusher looks at the announced sleeps */
	return wr_exchange(&worker->next, NULL);
}

/* --- taking --- */

static weir_entity *ring_or_spill_take(struct wr_worker *worker)
{
	weir_entity *entity = ring_take(worker);

	return entity ? entity : spill_take(worker);
}

/* Takes half of what is left in the other's ring and spill, too. */
static void steal_more(struct wr_worker *worker, struct wr_worker *victim)
{
	uint64_t left = entries_behind_next(victim);

	for (uint64_t n = left / 2 < STOLEN_MAX ? left / 2 : STOLEN_MAX; n; n--) {
		weir_entity *entity = ring_or_spill_take(victim);
		if (!entity)
			return;
		wr_trace_steal(worker->scheduler->trace, worker->local.index, entity->id);
		wr_ready_push_last(worker, entity);
	}
}

/* Not inlined: a worker with work of its own does not steal. */
__attribute__((noinline)) static weir_entity *steal_entity(struct wr_worker *worker)
{
	weir_scheduler *scheduler = worker->scheduler;

	for (unsigned i = 1; i < scheduler->worker_count; i++) {
		unsigned other = (worker->local.index + i) % scheduler->worker_count;
		struct wr_worker *victim = &scheduler->workers[other];
		weir_entity *entity;
		if (!worker_has_entries(victim) || !worth_taking(victim, STEAL_NS))
			continue;
		entity = ring_or_spill_take(victim);
		if (entity)
			steal_more(worker, victim);
		else
			entity = next_take(victim);
		if (entity) {
			wr_trace_steal(scheduler->trace, worker->local.index, entity->id);
			return entity;
		}
	}
	return NULL;
}

/* If both the due list and `next` have an entry they alternate, so that neither starves. */
__attribute__((noinline)) static weir_entity *due_take_in_turn(struct wr_worker *worker)
{
	weir_scheduler *scheduler = worker->scheduler;
	weir_entity *entity = NULL;

	if (!worker->was_due || !wr_load_relaxed(&worker->next)) {
		wr_mutex_lock(&scheduler->backlog_lock);
		entity = list_shift_locked(&scheduler->due, &scheduler->due_count);
		wr_mutex_unlock(&scheduler->backlog_lock);
		if (entity) {
			worker->will_keep = scheduler->workers_keep_time;
			wr_run_drop_live(scheduler);
		}
	}
	worker->was_due = entity;
	return entity;
}

/* A hint will do for due_count: a worker that goes to sleep looks again after its announcement. */
static inline weir_entity *due_or_next_take(struct wr_worker *worker)
{
	weir_entity *entity = NULL;

	if (wr_load_relaxed(&worker->scheduler->due_count))
		entity = due_take_in_turn(worker);
	else
		worker->was_due = false;
	return entity ? entity : next_take(worker);
}

/* Of the worker's spill or the injector: the queues that may wait for the ring to be empty. */
static inline weir_entity *entry_of_last_queues(struct wr_worker *worker, bool spill_first)
{
	weir_entity *entity = spill_first ? spill_take(worker) : NULL;

	if (!entity)
		entity = injector_take(worker->scheduler);
	return entity || spill_first ? entity : spill_take(worker);
}

weir_entity *wr_ready_pop(struct wr_worker *worker)
{
	weir_entity *entity = NULL;

	uint32_t pops = wr_load_relaxed(&worker->pops) + 1;

	wr_store_relaxed(&worker->pops, pops);
	if (pops % WR_INJECTOR_EVERY == 0)
		entity = entry_of_last_queues(worker, pops / WR_INJECTOR_EVERY % 2);
	if (!entity && worker->nexts < WR_NEXT_MAX) {
		if ((entity = due_or_next_take(worker))) {
			worker->nexts++;
			return entity;
		}
		entity = ring_take(worker);
	} else if (!entity && !(entity = ring_take(worker))) {
		entity = due_or_next_take(worker);
	}
	worker->nexts = 0;
	if (!entity)
		entity = entry_of_last_queues(worker, true);
	return entity || worker->scheduler->worker_count == 1 ? entity : steal_entity(worker);
}

/* --- looking --- */

#define STEAL_AFTER 2000 /* ns that a spinner leaves another worker's entries to that worker */

bool wr_spinner_has_work(struct wr_worker *worker, int64_t now, int64_t *since)
{
	weir_scheduler *scheduler = worker->scheduler;

	bool left = false;

	if (worker_has_entries(worker) || wr_ready_injector_holds(scheduler))
		return true;
	if (!wr_ready_any_work(worker, &left))
		*since = 0;
	else if (!*since)
		*since = now;
	return *since && now - *since >= STEAL_AFTER;
}

/* *left: others have entries that gain less than `least`. Not inlined: a single worker has no others. */
__attribute__((noinline)) static bool others_have_entries(struct wr_worker *worker, int64_t least, bool *left)
{
	weir_scheduler *scheduler = worker->scheduler;

	for (unsigned i = 0; i < scheduler->worker_count; i++) {
		struct wr_worker *other = &scheduler->workers[i];
		if (other == worker || !worker_has_entries(other))
			continue;
		if (worth_taking(other, least))
			return true;
		*left = true;
	}
	return false;
}

static inline bool others_have_work(struct wr_worker *worker, int64_t least, bool *left)
{
	weir_scheduler *scheduler = worker->scheduler;

	return (scheduler->worker_count > 1 && others_have_entries(worker, least, left)) ||
	       wr_ready_injector_holds(scheduler) || wr_system_deferred_frees_ready(scheduler->graph->system);
}

/* Not inlined: mostly no worker sleeps. */
__attribute__((noinline)) static void wake_for_more(struct wr_worker *worker)
{
	bool left = false;

	if (others_have_work(worker, 2 * WAKE_NS, &left)) {
		wr_wake_one(worker->scheduler);
		return;
	}
	if (left && !wr_load(&worker->scheduler->lookout))
		have_looked(worker->scheduler);
	if (worker_has_entries(worker))
		wake_if_worth(worker, queue_gain(worker));
}

void wr_wake_if_more(struct wr_worker *worker)
{
	if (worker->local.undecided & WR_UNDECIDED_ENTRIES)
		wr_ready_decide(worker);
	if (!worker->wakes_skipped)
		return;
	worker->wakes_skipped = false;
	if (wr_load(&worker->scheduler->sleepers)) /* one that goes to sleep from now on looks itself */
		wake_for_more(worker);
}

bool wr_ready_any_work(struct wr_worker *worker, bool *left)
{
	return worker_has_entries(worker) || others_have_work(worker, STEAL_NS, left);
}

size_t wr_ready_clear(weir_scheduler *scheduler)
{
	size_t entries = 0; /* of the injector and the due list: each has a live reference */

	for (unsigned i = 0; i < scheduler->worker_count; i++) {
		struct wr_worker *worker = &scheduler->workers[i];
		wr_store(&worker->next, NULL);
		wr_store(&worker->head, 0);
		wr_store(&worker->tail, 0);
		wr_store(&worker->spilled, 0);
		worker->spill = (struct wr_ready_list){NULL, NULL};
	}
	entries += wr_exchange(&scheduler->backlog_count, 0) + wr_exchange(&scheduler->due_count, 0);
	for (weir_entity *entity = wr_exchange(&scheduler->injected, NULL); entity;
	     entity = wr_load_relaxed(&entity->next_ready))
		entries++;
	scheduler->backlog = scheduler->due = (struct wr_ready_list){NULL, NULL};
	wr_store(&scheduler->lookout, 0); /* else the loop would look on between two runs */
	return entries;
}

/*
 * === pokes ===
 *
 * The only way to wake an entity (S1): one fetch_or on its state, which is always executed. A thread that is
 * no worker first takes a live reference, so the run cannot be closed between the change of state and the
 * push. An entry that is pushed keeps this reference.
 */

/* By a thread that holds no live reference. Returns false if no run is on. */
static bool poke_foreign(weir_scheduler *scheduler, weir_entity *entity)
{
	if (!wr_live_take(&scheduler->live)) {
		wr_run_drop_live(scheduler);
		return false;
	}
	if (wr_fetch_or(&entity->state, WR_POKED) == WR_IDLE) {
		if (scheduler->trace)
			wr_trace_poke(scheduler->trace, wr_lane_here(scheduler), entity->id);
		wr_ready_inject(scheduler, entity);
	} else {
		wr_run_drop_live(scheduler);
	}
	return true;
}

size_t wr_poke_due(weir_scheduler *scheduler, weir_entity *const *entities, size_t count)
{
	weir_entity *first = NULL, *last = NULL;
	size_t queued = 0;

	for (size_t i = 0; i < count; i++) {
		weir_entity *entity = entities[i];
		if (!wr_live_take(&scheduler->live) || wr_fetch_or(&entity->state, WR_POKED) != WR_IDLE) {
			wr_run_drop_live(scheduler);
			continue;
		}
		if (scheduler->trace)
			wr_trace_poke(scheduler->trace, wr_lane_here(scheduler), entity->id);
		wr_store_relaxed(&entity->next_ready, NULL);
		if (last)
			wr_store_relaxed(&last->next_ready, entity);
		else
			first = entity;
		last = entity;
		queued++; /* the entry takes over the live reference */
	}
	if (!queued)
		return 0;
	wr_mutex_lock(&scheduler->backlog_lock);
	list_append_locked(&scheduler->due, first, last);
	wr_fetch_add(&scheduler->due_count, queued);
	wr_mutex_unlock(&scheduler->backlog_lock);
	return queued;
}

bool wr_poke(weir_entity *entity)
{
	weir_scheduler *scheduler = wr_load_acquire(&entity->scheduler);
	struct wr_worker *worker;

	if (!scheduler)
		return false;
	worker = wr_worker_here(scheduler);
	if (!worker)
		return poke_foreign(scheduler, entity);
	wr_poke_by_worker(worker, entity);
	return true;
}

bool wr_entity_own_parked(weir_scheduler *scheduler, weir_entity *entity)
{
	uint32_t idle = WR_IDLE;

	if (wr_live_take(&scheduler->live) && wr_cas(&entity->state, &idle, WR_RUNNING))
		return true;
	wr_run_drop_live(scheduler);
	return false;
}

bool wr_entity_leave_parked(weir_scheduler *scheduler, weir_entity *entity)
{
	uint32_t running = WR_RUNNING;

	if (wr_cas(&entity->state, &running, WR_IDLE)) {
		wr_run_drop_live(scheduler);
		return true;
	}
	wr_exchange(&entity->state, WR_POKED); /* poked meanwhile: the entry takes over the reference */
	wr_ready_inject(scheduler, entity);
	return false;
}

weir_status weir_entity_poke(weir_entity *entity)
{
	if (!entity)
		return wr_fail_in_handler(WEIR_E_INVALID, "poke", "an entity is needed, NULL was given");
	if (wr_poke(entity))
		return WEIR_OK;
	return wr_fail_in_handler(WEIR_E_CLOSED, entity->plan->name, "no run is on: poke it after the start");
}

/*
 * The callbacks by which streams/ reports to the scheduler: a token has fired, the loop has something to
 * look at, work that holds the run open begins or ends. Thread: any, the driver's included, so nothing here
 * waits, allocates or calls CUDA.
 */

static weir_scheduler *scheduler_of(struct wr_waker *waker)
{
	return (weir_scheduler *)(void *)((char *)waker - offsetof(struct weir_scheduler, waker));
}

static void waker_kick(struct wr_waker *waker)
{
	wr_loop_kick(&scheduler_of(waker)->loop);
}

static void waker_take(struct wr_waker *waker)
{
	weir_scheduler *scheduler = scheduler_of(waker);

	wr_live_take(&scheduler->live);
	if (!wr_load(&scheduler->watching))
		wr_loop_kick(&scheduler->loop); /* the watch must run again */
}

static void waker_hold(struct wr_waker *waker)
{
	wr_live_take(&scheduler_of(waker)->live);
}

static void waker_drop(struct wr_waker *waker)
{
	wr_run_drop_live(scheduler_of(waker));
}

__attribute__((noinline)) static void trace_fire(weir_scheduler *scheduler, uint32_t entity, uint64_t token)
{
	wr_trace_fire(scheduler->trace, wr_lane_here(scheduler), entity, token);
}

/* What a poller's own look fires goes to its own queue; every other poke may come from a foreign thread. */
static void waker_poke(struct wr_waker *waker, uint32_t entity, uint64_t token)
{
	weir_scheduler *scheduler = scheduler_of(waker);
	weir_entity *woken = wr_graph_entity_at(scheduler->graph, entity);
	struct wr_worker *worker = wr_worker_here(scheduler);

	if (scheduler->trace && token)
		trace_fire(scheduler, entity, token);
	if (!worker || !worker->polling) {
		poke_foreign(scheduler, woken);
	} else if (wr_fetch_or(&woken->state, WR_POKED) == WR_IDLE) {
		wr_trace_poke(scheduler->trace, worker->local.index, entity);
		wr_ready_push_fired(worker, woken);
	}
}

void wr_waker_init(struct wr_waker *waker)
{
	*waker = (struct wr_waker){waker_poke, waker_kick, waker_take, waker_drop, waker_hold};
}
