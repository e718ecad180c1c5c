/*
 * A world: fibers of one thread, of which one runs; the others are ready or blocked.
 *
 * At a switching point the world's strategy chooses the next fiber, and the current one switches straight to
 * it. The thread that drives the world is one more coroutine (`driver`). It is switched to when fn has
 * returned, when no fiber can ever run (deadlock) or after too many switching points (livelock); after the
 * latter two the world is broken and can only be destroyed.
 *
 * A fiber blocks on the address of what it waits for. A fiber that changes the object wakes all that wait for
 * it, and they check again: the strategy, not the order of arrival, decides which one gets it. All fibers run
 * in one thread, so there are no locks and no atomics, and no other fiber runs between two switching points.
 *
 * Strategies, drawn from the seed, since no single one finds everything:
 *   uniform      any ready fiber, but the current one stays with a probability drawn per world: short and
 *                long stretches between switches
 *   PCT          the fiber of the highest random priority runs; at up to three points drawn per world its
 *                priority drops below all others (Burckhardt et al., A randomized scheduler with
 *                probabilistic guarantees of finding bugs, 2010)
 *   round robin  in turn, after a number of points drawn per world
 *
 * With WR_SIM_PAUSES, at up to 512 points of a world a fiber also sleeps for a random time, as if it had been
 * preempted. All others go on as far as they can, and time passes, which no priority achieves: some bugs show
 * only if one thread stops between two steps while a whole run goes by.
 *
 * A fiber that yields waits for others: PCT lowers its priority, the other strategies leave it if they can.
 * If for a while all ready fibers only yield, they wait for time, and it advances as if they all slept.
 */
#include "base/sim.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/bug.h"
#include "base/clock.h"
#include "base/coroutine.h"
#include "base/fiber.h"
#include "base/memory.h"

enum {
	NAME_BYTES = 16,
	PCT_DEPTH = 3,
	PCT_PATIENCE = 2000, /* points in a row after which a fiber is taken to spin without yielding */
	IDLE_YIELDS = 16,    /* of every ready fiber, until time advances */
	SPIN_POINTS = 64,    /* a fiber that passes more points between two yields does not just spin */
	PAUSES_LOG = 10,     /* at most 512 pauses per world */
	PAUSE_ROLES = 5,
	SPURIOUS_IN = 16, /* one of so many waits on a condition variable wakes up spuriously */
};
#define START_TIME    1000000000 /* not 0, which often means "never" */
#define IDLE_STEP     1000       /* ns, if all fibers yield and none sleeps */
#define DEFAULT_LIMIT 10000000

/* Independent random numbers of one seed. */
enum { STREAM_SCHEDULE, STREAM_WORLD, STREAM_PAUSES };

enum waits_for { FOR_NOTHING, FOR_TIME, FOR_MUTEX, FOR_COND, FOR_TOKEN, FOR_END };

struct wr_fiber {
	struct wr_coroutine coroutine;
	struct wr_here here; /* while it is suspended */
	struct wr_sim *sim;
	size_t place;   /* in sim->fibers */
	uint64_t index; /* number in the order of creation; hashed */
	void (*fn)(void *arg);
	void *arg;
	enum waits_for what;
	const void *object; /* what it waits for; NULL while it is ready */
	int64_t until;
	bool ready, done;
	bool late;               /* it was woken by its time-out */
	uint64_t epoch;          /* the world's epoch in which the next two were counted */
	unsigned yields, points; /* yields in this epoch; points since the last one */
	uint64_t priority;       /* PCT */
	char name[NAME_BYTES];
	uint64_t role; /* a hash of its name: equal for fibers that do the same */
	char error[WR_ERROR_BYTES];
};

enum manner { GOES_ON, YIELDS, BLOCKS };

typedef struct wr_fiber *strategy_next(struct wr_sim *sim, struct wr_fiber *self, enum manner manner);

struct wr_sim {
	strategy_next *next;
	/* started and not joined; `ready` has room for as many */
	struct wr_fiber **fibers;
	struct wr_fiber **ready;
	size_t fiber_count, fiber_room, ready_count, ready_room;
	struct wr_fiber driver;
	struct wr_fiber *main; /* runs the fn of wr_sim_call; NULL outside of it */
	/* main's record; embedded, so that wr_sim_call needs no memory: objects are also freed in it */
	struct wr_fiber visitor;
	struct wr_fiber *ended; /* it has ended, but its stack is not released yet */
	weir_status broken;
	struct wr_fiber *broken_by; /* the fiber that reached the limit */
	int64_t now;
	uint64_t next_index, switches, begun, allowance, hash; /* begun: switches when the call began */
	uint64_t epoch; /* grows when a fiber becomes ready or not ready */
	struct wr_random schedule, world;
	unsigned stay;               /* uniform: chance of 256 */
	uint64_t quantum, turn;      /* round robin: points per fiber, and left for this one */
	uint64_t floor, streak;      /* PCT: the lowest priority; points in a row of one fiber */
	uint64_t changes[PCT_DEPTH]; /* PCT: numbers of the choices at which a priority drops */
	uint64_t choices;
	struct wr_random pausing;
	unsigned pauses;   /* left */
	uint64_t pause_in; /* a pause comes at one of so many points */
	uint64_t pause_ns; /* at most */
	/* fibers with role % pause_of == pause_role are paused: all, or some that do the same */
	uint64_t pause_of, pause_role;
	unsigned paused;            /* number of fibers paused now */
	void (*at_rest)(void *arg); /* wr_sim_at_rest; NULL: none */
	void *at_rest_arg;
};

#ifdef WR_SEAM
enum wr_bug wr_bug_active = WR_BUG_NONE;
bool wr_nets = true;
#endif

/* ------------------------------------------------------------------------------------------ strategies -- */

static struct wr_fiber *any_but(struct wr_sim *sim, const struct wr_fiber *self)
{
	uint64_t r = wr_random_next(&sim->schedule) >> 32;
	size_t others = sim->ready_count - (self ? 1 : 0);
	size_t i = (size_t)(r * others >> 32);

	/* The last one takes the place of self. */
	return sim->ready[i] == self ? sim->ready[others] : sim->ready[i];
}

static struct wr_fiber *next_uniform(struct wr_sim *sim, struct wr_fiber *self, enum manner manner)
{
	if (manner == GOES_ON && (wr_random_next(&sim->schedule) & 255) < sim->stay)
		return self;
	return any_but(sim, manner == YIELDS ? self : NULL);
}

static struct wr_fiber *next_round_robin(struct wr_sim *sim, struct wr_fiber *self, enum manner manner)
{
	struct wr_fiber *after = NULL, *first = NULL;

	if (manner == GOES_ON && sim->turn > 0) {
		sim->turn--;
		return self;
	}
	sim->turn = sim->quantum;
	for (size_t i = 0; i < sim->ready_count; i++) {
		struct wr_fiber *fiber = sim->ready[i];

		if (!first || fiber->index < first->index)
			first = fiber;
		if (fiber->index > self->index && (!after || fiber->index < after->index))
			after = fiber;
	}
	return after ? after : first;
}

static bool pct_drops(struct wr_sim *sim, enum manner manner)
{
	bool drops = manner == YIELDS || ++sim->streak > PCT_PATIENCE;

	for (int i = 0; i < PCT_DEPTH; i++)
		drops |= sim->changes[i] == sim->choices;
	return drops;
}

static struct wr_fiber *next_pct(struct wr_sim *sim, struct wr_fiber *self, enum manner manner)
{
	struct wr_fiber *best = NULL;

	sim->choices++;
	if (pct_drops(sim, manner))
		self->priority = --sim->floor;
	for (size_t i = 0; i < sim->ready_count; i++)
		if (!best || sim->ready[i]->priority > best->priority)
			best = sim->ready[i];
	if (best != self)
		sim->streak = 0;
	return best;
}

static enum wr_sim_strategy drawn_strategy(struct wr_sim *sim)
{
	uint64_t r = wr_random_below(&sim->schedule, 10);

	return r < 5 ? WR_SIM_UNIFORM : r < 9 ? WR_SIM_PCT : WR_SIM_ROUND_ROBIN;
}

/*
 * The length of the run is not known beforehand, so the change
 * points are drawn for a random length of 16 to 16384 choices.
 */
static void draw_changes(struct wr_sim *sim)
{
	uint64_t length = (uint64_t)16 << wr_random_below(&sim->schedule, 11);
	uint64_t depth = wr_random_below(&sim->schedule, PCT_DEPTH + 1);

	for (uint64_t i = 0; i < depth; i++)
		sim->changes[i] = 1 + wr_random_below(&sim->schedule, length);
	sim->floor = (uint64_t)1 << 62;
}

static void draw_pauses(struct wr_sim *sim, uint64_t seed)
{
	struct wr_random *random = &sim->pausing;

	wr_random_seed(random, seed, STREAM_PAUSES);
	sim->pauses = 1u << wr_random_below(random, PAUSES_LOG);
	sim->pause_in = (uint64_t)4 << wr_random_below(random, 6);
	sim->pause_ns = (uint64_t)512 << wr_random_below(random, 7);
	sim->pause_of = wr_random_below(random, 3) ? PAUSE_ROLES : 1;
	sim->pause_role = wr_random_below(random, sim->pause_of);
}

static void draw_strategy(struct wr_sim *sim, enum wr_sim_strategy strategy)
{
	static const unsigned stays[] = {0, 128, 192, 224};

	/* drawn in any case, so that a world by seed equals one with the same strategy by name */
	enum wr_sim_strategy drawn = drawn_strategy(sim);

	if (strategy == WR_SIM_BY_SEED || strategy == WR_SIM_PAUSES)
		strategy = drawn;
	switch (strategy) {
	case WR_SIM_BY_SEED:
	case WR_SIM_PAUSES:
	case WR_SIM_UNIFORM:
		sim->next = next_uniform;
		sim->stay = stays[wr_random_below(&sim->schedule, 4)];
		break;
	case WR_SIM_PCT:
		sim->next = next_pct;
		draw_changes(sim);
		break;
	case WR_SIM_ROUND_ROBIN:
		sim->next = next_round_robin;
		sim->quantum = wr_random_below(&sim->schedule, 8);
		break;
	}
}

/* --------------------------------------------------------------------------------------- ready fibers -- */

static void fiber_make_ready(struct wr_fiber *fiber)
{
	struct wr_sim *sim = fiber->sim;

	assert(!fiber->ready);
	fiber->ready = true;
	fiber->object = NULL;
	fiber->what = FOR_NOTHING;
	sim->ready[sim->ready_count++] = fiber;
	sim->epoch++;
}

static void fiber_make_unready(struct wr_fiber *fiber)
{
	struct wr_sim *sim = fiber->sim;
	size_t i = 0;

	while (sim->ready[i] != fiber)
		i++;
	sim->ready[i] = sim->ready[--sim->ready_count];
	fiber->ready = false;
	sim->epoch++;
}

static void wake_all(struct wr_sim *sim, const void *object)
{
	for (size_t i = 0; i < sim->fiber_count; i++)
		if (sim->fibers[i]->object == object)
			fiber_make_ready(sim->fibers[i]);
}

static int64_t earliest_time(const struct wr_sim *sim)
{
	int64_t at = WR_FOREVER;

	for (size_t i = 0; i < sim->fiber_count; i++)
		if (sim->fibers[i]->object && sim->fibers[i]->until < at)
			at = sim->fibers[i]->until;
	return at;
}

/* Advances time to the earliest time that a fiber waits for. Returns false if there is none. */
static bool pass_time(struct wr_sim *sim)
{
	int64_t at = earliest_time(sim);

	if (at == WR_FOREVER)
		return false;
	if (at > sim->now)
		sim->now = at;
	for (size_t i = 0; i < sim->fiber_count; i++) {
		struct wr_fiber *fiber = sim->fibers[i];

		if (fiber->object && fiber->until <= sim->now) {
			fiber->late = true;
			fiber_make_ready(fiber);
		}
	}
	return true;
}

/* -------------------------------------------------------------------------------------------- switches -- */

/* The stack of an ended fiber is released by the fiber that runs next, on another stack. */
static void clear_ended(struct wr_sim *sim)
{
	if (!sim->ended)
		return;
	wr_coroutine_finish(&sim->ended->coroutine);
	sim->ended = NULL;
}

/*
 * Thread-local state is accessed only before the switch: after
 * it this may be another thread, and the address stale.
 */
static void fiber_switch(struct wr_fiber *from, struct wr_fiber *to)
{
	struct wr_here *here = &WR_HERE;

	from->here = *here;
	*here = to->here;
	wr_coroutine_switch(&from->coroutine, &to->coroutine, from->done);
	clear_ended(from->sim);
}

static void break_world(struct wr_fiber *self, weir_status status)
{
	self->sim->broken = status;
	self->sim->broken_by = self;
	fiber_switch(self, &self->sim->driver);
}

static struct wr_fiber *choose_fiber(struct wr_fiber *self, enum manner manner)
{
	struct wr_sim *sim = self->sim;
	struct wr_fiber *next;

	if (sim->ready_count == 1)
		return sim->ready[0];
	next = sim->next(sim, self, manner);
	sim->hash = (sim->hash ^ next->index) * 0x100000001b3u;
	sim->hash ^= sim->hash >> 29;
	return next;
}

static void count_switch(struct wr_fiber *self)
{
	struct wr_sim *sim = self->sim;

	if (++sim->switches - sim->begun > sim->allowance)
		break_world(self, WEIR_E_TIMEOUT);
}

static bool fiber_block(struct wr_fiber *self, enum waits_for what, const void *object, int64_t until);

static bool pauses_here(struct wr_fiber *self)
{
	struct wr_sim *sim = self->sim;

	if (!sim->pauses || self->role % sim->pause_of != sim->pause_role ||
	    wr_random_below(&sim->pausing, sim->pause_in))
		return false;
	sim->pauses--;
	return true;
}

static void pause_here(struct wr_fiber *self)
{
	int64_t ns = 1 + (int64_t)wr_random_below(&self->sim->pausing, self->sim->pause_ns);

	self->sim->paused++;
	fiber_block(self, FOR_TIME, self->sim, wr_time_add(self->sim->now, ns));
	self->sim->paused--;
}

/* A switching point of a fiber that could go on. */
static void switching_point(struct wr_fiber *self)
{
	struct wr_fiber *next;

	if (WR_HERE.pinned)
		return;
	if (pauses_here(self)) {
		pause_here(self);
		return;
	}
	count_switch(self);
	if (++self->points > SPIN_POINTS)
		self->yields = 0;
	next = choose_fiber(self, GOES_ON);
	if (next != self)
		fiber_switch(self, next);
}

static void call_at_rest(struct wr_sim *sim)
{
	if (!sim->at_rest || sim->paused)
		return;
	WR_HERE.pinned++;
	sim->at_rest(sim->at_rest_arg);
	WR_HERE.pinned--;
}

/*
 * Switches to another fiber; returns when this one is chosen again. The driver calls it to start the world.
 */
static void fiber_leave(struct wr_fiber *self)
{
	struct wr_sim *sim = self->sim;
	struct wr_fiber *next;

	while (!sim->ready_count) {
		call_at_rest(sim);
		if (!pass_time(sim))
			break_world(self, WEIR_E_DEADLOCK);
	}
	next = choose_fiber(self, BLOCKS);
	if (next != self)
		fiber_switch(self, next);
}

/* Waits until a fiber wakes those that wait for the object; returns false if `until` has passed first. */
static bool fiber_block(struct wr_fiber *self, enum waits_for what, const void *object, int64_t until)
{
	assert(!WR_HERE.pinned); /* nothing may block in wr_global_lock */
	count_switch(self);
	self->what = what;
	self->object = object;
	self->until = until;
	self->late = false;
	fiber_make_unready(self);
	fiber_leave(self);
	return !self->late;
}

static void count_yield(struct wr_fiber *self)
{
	if (self->epoch != self->sim->epoch)
		self->yields = 0;
	self->epoch = self->sim->epoch;
	self->yields++;
	self->points = 0;
}

/* Returns true if all ready fibers have only yielded for a while. */
static bool all_idle(const struct wr_sim *sim)
{
	for (size_t i = 0; i < sim->ready_count; i++)
		if (sim->ready[i]->epoch != sim->epoch || sim->ready[i]->yields < IDLE_YIELDS)
			return false;
	return true;
}

void wr_fiber_yield(void)
{
	struct wr_fiber *self = WR_HERE.fiber, *next;
	struct wr_sim *sim = self->sim;

	assert(!WR_HERE.pinned);
	count_switch(self);
	count_yield(self);
	if (all_idle(sim) && !pass_time(sim)) {
		sim->now = wr_time_add(sim->now, IDLE_STEP);
		sim->epoch++;
	}
	next = choose_fiber(self, YIELDS);
	if (next != self)
		fiber_switch(self, next);
}

#ifdef WR_SEAM
void wr_switch(void)
{
	struct wr_fiber *self = WR_HERE.fiber;

	if (self)
		switching_point(self);
}
#endif

/* ---------------------------------------------------------------------------------------------- fibers -- */

static void fiber_main(void *arg)
{
	struct wr_fiber *self = arg;
	struct wr_sim *sim = self->sim;

	clear_ended(sim);
	self->fn(self->arg);
	self->done = true;
	fiber_make_unready(self);
	wake_all(sim, self);
	sim->ended = self;
	if (self == sim->main)
		fiber_switch(self, &sim->driver);
	else
		fiber_leave(self);
}

/* For one more fiber, and for main, which may be added later. */
static weir_status make_room(struct wr_sim *sim)
{
	size_t need = sim->fiber_count + 2;
	weir_status status = wr_grow(&sim->fibers, &sim->fiber_room, need, sizeof(*sim->fibers));

	return status ? status : wr_grow(&sim->ready, &sim->ready_room, need, sizeof(*sim->ready));
}

static weir_status fiber_enter(struct wr_sim *sim, struct wr_fiber *fiber)
{
	weir_status status = fiber == &sim->visitor ? WEIR_OK : make_room(sim);

	if (!status)
		status = wr_coroutine_init(&fiber->coroutine, fiber_main, fiber);
	if (status)
		return status;
	fiber->place = sim->fiber_count;
	sim->fibers[sim->fiber_count++] = fiber;
	fiber_make_ready(fiber);
	return WEIR_OK;
}

static uint64_t role_of(const char *name)
{
	uint64_t role = 5381;

	while (*name)
		role = role * 33 + (unsigned char)*name++;
	return role;
}

static weir_status init_fiber(struct wr_sim *sim, struct wr_fiber *fiber, const char *name,
			      void (*fn)(void *arg), void *arg)
{
	fiber->sim = sim;
	fiber->here.fiber = fiber;
	fiber->fn = fn;
	fiber->arg = arg;
	fiber->index = sim->next_index++;
	fiber->priority = (uint64_t)1 << 63 | wr_random_next(&sim->schedule) >> 1;
	snprintf(fiber->name, sizeof(fiber->name), "%s", name);
	fiber->role = role_of(fiber->name);
	return fiber_enter(sim, fiber);
}

static weir_status add_fiber(struct wr_sim *sim, struct wr_fiber **out, const char *name,
			     void (*fn)(void *arg), void *arg)
{
	struct wr_fiber *fiber = wr_alloc(1, sizeof(*fiber));
	weir_status status;

	if (!fiber)
		return WEIR_E_NOMEM;
	status = init_fiber(sim, fiber, name, fn, arg);
	if (status)
		wr_free(fiber);
	else
		*out = fiber;
	return status;
}

static weir_status add_main(struct wr_sim *sim, void (*fn)(void *arg), void *arg)
{
	weir_status status;

	sim->visitor = (struct wr_fiber){0};
	status = init_fiber(sim, &sim->visitor, "main", fn, arg);
	if (!status)
		sim->main = &sim->visitor;
	return status;
}

/* The fiber has ended, or its world is destroyed. */
static void remove_fiber(struct wr_fiber *fiber)
{
	struct wr_sim *sim = fiber->sim;
	struct wr_fiber *last = sim->fibers[--sim->fiber_count];

	if (fiber->ready)
		fiber_make_unready(fiber);
	sim->fibers[fiber->place] = last;
	last->place = fiber->place;
	if (sim->ended == fiber)
		sim->ended = NULL;
	wr_coroutine_finish(&fiber->coroutine);
	if (fiber != &sim->visitor)
		wr_free(fiber);
}

char *wr_fiber_error(struct wr_fiber *fiber)
{
	return fiber->error;
}

int64_t wr_fiber_now(const struct wr_fiber *fiber)
{
	return fiber->sim->now;
}

weir_status wr_fiber_start(struct wr_fiber **out, const char *name, void (*fn)(void *arg), void *arg)
{
	struct wr_fiber *self = WR_HERE.fiber;
	weir_status status = add_fiber(self->sim, out, name, fn, arg);

	if (!status)
		switching_point(self);
	return status;
}

static void join_in_world(void *arg)
{
	wr_fiber_join(arg);
}

void wr_fiber_join(struct wr_fiber *fiber)
{
	struct wr_fiber *self = WR_HERE.fiber;

	if (!self) {
		wr_sim_call(fiber->sim, join_in_world, fiber);
		return;
	}
	assert(self->sim == fiber->sim);
	switching_point(self);
	while (!fiber->done)
		fiber_block(self, FOR_END, fiber, WR_FOREVER);
	remove_fiber(fiber);
}

void wr_fiber_sleep(int64_t ns)
{
	struct wr_fiber *self = WR_HERE.fiber;

	if (ns > 0)
		fiber_block(self, FOR_TIME, self->sim, wr_time_add(self->sim->now, ns));
	else
		switching_point(self);
}

/*
 * -------------------------------------------------------------------------- mutexes, conditions, parkers --
 */

static void lock_and_unlock(void *arg)
{
	wr_fiber_lock(arg);
	wr_fiber_unlock(arg);
}

void wr_fiber_lock(struct wr_mutex *mutex)
{
	struct wr_fiber *self = WR_HERE.fiber;

	while (!self && mutex->owner) /* by a suspended fiber, which must run to unlock it */
		if (wr_sim_call(mutex->owner->sim, lock_and_unlock, mutex))
			return;
	if (!self)
		return;
	switching_point(self);
	while (mutex->owner) {
		assert(mutex->owner != self);
		fiber_block(self, FOR_MUTEX, mutex, WR_FOREVER);
	}
	mutex->owner = self;
}

static void mutex_release(struct wr_fiber *self, struct wr_mutex *mutex)
{
	assert(mutex->owner == self);
	mutex->owner = NULL;
	wake_all(self->sim, mutex);
}

void wr_fiber_unlock(struct wr_mutex *mutex)
{
	struct wr_fiber *self = WR_HERE.fiber;

	mutex_release(self, mutex);
	switching_point(self);
}

static bool spurious_wakeup(struct wr_sim *sim)
{
	return wr_random_below(&sim->schedule, SPURIOUS_IN) == 0;
}

bool wr_fiber_wait(struct wr_cond *cond, struct wr_mutex *mutex, int64_t until)
{
	struct wr_fiber *self = WR_HERE.fiber;
	bool in_time = true;

	assert(mutex->owner == self);
	cond->sim = self->sim;
	mutex_release(self, mutex);
	if (until <= self->sim->now)
		in_time = false;
	else if (!spurious_wakeup(self->sim))
		in_time = fiber_block(self, FOR_COND, cond, until);
	wr_fiber_lock(mutex);
	return in_time;
}

void wr_fiber_broadcast(struct wr_cond *cond)
{
	struct wr_fiber *self = WR_HERE.fiber;

	if (self)
		switching_point(self);
	if (cond->sim)
		wake_all(cond->sim, cond);
}

bool wr_fiber_park(struct wr_parker *parker, int64_t until)
{
	struct wr_fiber *self = WR_HERE.fiber;
	bool token;

	switching_point(self);
	assert(!parker->waiter); /* a parker has one owner */
	if (!wr_read(&parker->word) && until > self->sim->now) {
		parker->waiter = self;
		fiber_block(self, FOR_TOKEN, parker, until);
		parker->waiter = NULL;
	}
	token = wr_read(&parker->word);
	atomic_store_explicit(&parker->word, 0, memory_order_relaxed);
	return token;
}

void wr_fiber_unpark(struct wr_parker *parker)
{
	struct wr_fiber *self = WR_HERE.fiber;

	if (self)
		switching_point(self);
	atomic_store_explicit(&parker->word, 1, memory_order_relaxed);
	if (parker->waiter && parker->waiter->object == parker)
		fiber_make_ready(parker->waiter);
}

/* ------------------------------------------------------------------------------------------- the world -- */

weir_status wr_sim_create(struct wr_sim **out, uint64_t seed, enum wr_sim_strategy strategy)
{
	struct wr_sim *sim = wr_alloc(1, sizeof(*sim));
	weir_status status;

	if (!sim)
		return WEIR_E_NOMEM;
	wr_random_seed(&sim->schedule, seed, STREAM_SCHEDULE);
	wr_random_seed(&sim->world, seed, STREAM_WORLD);
	sim->driver.sim = sim;
	sim->driver.index = UINT64_MAX;
	sim->now = START_TIME;
	sim->epoch = 1;
	sim->hash = 0xcbf29ce484222325u;
	sim->allowance = DEFAULT_LIMIT;
	draw_strategy(sim, strategy);
	if (strategy == WR_SIM_PAUSES)
		draw_pauses(sim, seed);
	wr_fetch_add(&wr_worlds, 1);
	status = make_room(sim);
	if (status)
		wr_sim_destroy(sim);
	else
		*out = sim;
	return status;
}

void wr_sim_destroy(struct wr_sim *sim)
{
	if (!sim)
		return;
	assert(!sim->main || sim->broken); /* not by one of its own fibers */
	while (sim->fiber_count)
		remove_fiber(sim->fibers[sim->fiber_count - 1]);
	wr_free(sim->fibers);
	wr_free(sim->ready);
	wr_free(sim);
	wr_fetch_sub(&wr_worlds, 1);
}

static size_t text_put(char *text, size_t at, const char *format, const char *a, const char *b)
{
	int length = at < WR_ERROR_BYTES ? snprintf(text + at, WR_ERROR_BYTES - at, format, a, b) : 0;

	return at + (length > 0 ? (size_t)length : 0);
}

static size_t text_put_fiber(char *text, size_t at, const struct wr_fiber *fiber)
{
	const struct wr_fiber *other;

	switch (fiber->what) {
	case FOR_NOTHING:
		return text_put(text, at, "; %s can run%s", fiber->name, "");
	case FOR_TIME:
		return text_put(text, at, "; %s sleeps%s", fiber->name,
				fiber->until == WR_FOREVER ? " for ever" : "");
	case FOR_MUTEX:
		other = ((const struct wr_mutex *)fiber->object)->owner;
		return text_put(text, at, "; %s waits for a mutex held by %s", fiber->name,
				other ? other->name : "no fiber");
	case FOR_COND:
		return text_put(text, at, "; %s waits on a condition variable%s", fiber->name, "");
	case FOR_TOKEN:
		return text_put(text, at, "; %s is parked%s", fiber->name, "");
	case FOR_END:
		other = fiber->object;
		return text_put(text, at, "; %s waits for the end of %s", fiber->name, other->name);
	}
	return at;
}

static weir_status fail_broken(const struct wr_sim *sim)
{
	char text[WR_ERROR_BYTES] = "";
	size_t at = 0;

	for (size_t i = 0; i < sim->fiber_count; i++)
		if (!sim->fibers[i]->done)
			at = text_put_fiber(text, at, sim->fibers[i]);
	if (sim->broken == WEIR_E_DEADLOCK)
		return wr_fail(sim->broken, "no fiber can ever run again%s", text);
	return wr_fail(sim->broken, "%s still runs after %" PRIu64 " switching points%s",
		       sim->broken_by->name, sim->allowance, text);
}

/* The last error of fn becomes the caller's. */
static void end_call(struct wr_sim *sim)
{
	if (*sim->main->error)
		wr_fail(WEIR_OK, "%s", sim->main->error);
	remove_fiber(sim->main);
	sim->main = NULL;
}

weir_status wr_sim_call(struct wr_sim *sim, void (*fn)(void *arg), void *arg)
{
	weir_status status;

	if (wr_sim_current() == sim) {
		fn(arg);
		return WEIR_OK;
	}
	if (sim->broken)
		return fail_broken(sim);
	assert(!sim->main); /* one thread drives a world at a time */
	status = add_main(sim, fn, arg);
	if (status)
		return status;
	wr_coroutine_here(&sim->driver.coroutine);
	sim->begun = sim->switches;
	fiber_leave(&sim->driver);
	if (sim->broken)
		return fail_broken(sim);
	end_call(sim);
	return WEIR_OK;
}

void wr_sim_set_limit(struct wr_sim *sim, uint64_t switches)
{
	sim->allowance = switches;
}

void wr_sim_at_rest(struct wr_sim *sim, void (*fn)(void *arg), void *arg)
{
	sim->at_rest = fn;
	sim->at_rest_arg = arg;
}

/* --------------------------------------------------------------------------------------------- getters -- */

struct wr_sim *wr_sim_current(void)
{
	struct wr_fiber *fiber = WR_HERE.fiber;

	return fiber ? fiber->sim : NULL;
}

int64_t wr_sim_now(const struct wr_sim *sim)
{
	return sim->now;
}

uint64_t wr_sim_hash(const struct wr_sim *sim)
{
	return sim->hash;
}

uint64_t wr_sim_switches(const struct wr_sim *sim)
{
	return sim->switches;
}

struct wr_random *wr_sim_random(struct wr_sim *sim)
{
	return &sim->world;
}
