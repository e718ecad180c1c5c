/* The fibers of a world: which are ready, the switch between them, the passing of time, start and end. */
#include "sim/fiber.h"

#include <assert.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/memory.h"

enum {
	IDLE_YIELDS = 16, /* of every ready fiber, until time advances */
	SPIN_POINTS = 64, /* a fiber that passes more points between two yields does not just spin */
};
#define IDLE_STEP 1000 /* ns, if all fibers yield and none sleeps */

/* --------------------------------------------------------------------------------------- ready fibers -- */

void wr_fiber_make_ready(struct wr_fiber *fiber)
{
	struct wr_sim *sim = fiber->sim;

	assert(!fiber->ready);
	fiber->ready = true;
	fiber->object = NULL;
	fiber->what = WR_FOR_NOTHING;
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

void wr_fiber_wake_all(struct wr_sim *sim, const void *object)
{
	for (size_t i = 0; i < sim->fiber_count; i++)
		if (sim->fibers[i]->object == object)
			wr_fiber_make_ready(sim->fibers[i]);
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
			wr_fiber_make_ready(fiber);
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

static struct wr_fiber *choose_fiber(struct wr_fiber *self, enum wr_manner manner)
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
	wr_fiber_block(self, WR_FOR_TIME, self->sim, wr_time_add(self->sim->now, ns));
	self->sim->paused--;
}

/* A switching point of a fiber that could go on. */
void wr_fiber_point(struct wr_fiber *self)
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
	next = choose_fiber(self, WR_GOES_ON);
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
void wr_fiber_leave(struct wr_fiber *self)
{
	struct wr_sim *sim = self->sim;
	struct wr_fiber *next;

	while (!sim->ready_count) {
		call_at_rest(sim);
		if (!pass_time(sim))
			break_world(self, WEIR_E_DEADLOCK);
	}
	next = choose_fiber(self, WR_BLOCKS);
	if (next != self)
		fiber_switch(self, next);
}

/* Waits until a fiber wakes those that wait for the object; returns false if `until` has passed first. */
bool wr_fiber_block(struct wr_fiber *self, enum wr_waits_for what, const void *object, int64_t until)
{
	assert(!WR_HERE.pinned); /* nothing may block in wr_global_lock */
	count_switch(self);
	self->what = what;
	self->object = object;
	self->until = until;
	self->late = false;
	fiber_make_unready(self);
	wr_fiber_leave(self);
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
	next = choose_fiber(self, WR_YIELDS);
	if (next != self)
		fiber_switch(self, next);
}

/* ---------------------------------------------------------------------------------------------- fibers -- */

static void fiber_main(void *arg)
{
	struct wr_fiber *self = arg;
	struct wr_sim *sim = self->sim;

	clear_ended(sim);
	self->fn(self->arg);
	self->done = true;
	fiber_make_unready(self);
	wr_fiber_wake_all(sim, self);
	sim->ended = self;
	if (self == sim->main)
		fiber_switch(self, &sim->driver);
	else
		wr_fiber_leave(self);
}

/* For one more fiber, and for main, which may be added later. */
weir_status wr_fiber_reserve(struct wr_sim *sim)
{
	size_t need = sim->fiber_count + 2;
	weir_status status = wr_grow(&sim->fibers, &sim->fiber_room, need, sizeof(*sim->fibers));

	return status ? status : wr_grow(&sim->ready, &sim->ready_room, need, sizeof(*sim->ready));
}

static weir_status fiber_enter(struct wr_sim *sim, struct wr_fiber *fiber)
{
	weir_status status = fiber == &sim->visitor ? WEIR_OK : wr_fiber_reserve(sim);

	if (!status)
		status = wr_coroutine_init(&fiber->coroutine, fiber_main, fiber);
	if (status)
		return status;
	fiber->place = sim->fiber_count;
	sim->fibers[sim->fiber_count++] = fiber;
	wr_fiber_make_ready(fiber);
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

static weir_status fiber_add(struct wr_sim *sim, struct wr_fiber **out, const char *name,
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

weir_status wr_fiber_add_main(struct wr_sim *sim, void (*fn)(void *arg), void *arg)
{
	weir_status status;

	sim->visitor = (struct wr_fiber){0};
	status = init_fiber(sim, &sim->visitor, "main", fn, arg);
	if (!status)
		sim->main = &sim->visitor;
	return status;
}

/* The fiber has ended, or its world is destroyed. */
void wr_fiber_remove(struct wr_fiber *fiber)
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

weir_status wr_fiber_start(struct wr_fiber **out, const char *name, void (*fn)(void *arg), void *arg)
{
	struct wr_fiber *self = WR_HERE.fiber;
	weir_status status = fiber_add(self->sim, out, name, fn, arg);

	if (!status)
		wr_fiber_point(self);
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
	wr_fiber_point(self);
	while (!fiber->done)
		wr_fiber_block(self, WR_FOR_END, fiber, WR_FOREVER);
	wr_fiber_remove(fiber);
}

void wr_fiber_sleep(int64_t ns)
{
	struct wr_fiber *self = WR_HERE.fiber;

	if (ns > 0)
		wr_fiber_block(self, WR_FOR_TIME, self->sim, wr_time_add(self->sim->now, ns));
	else
		wr_fiber_point(self);
}
