/* A world: what its fibers block on, creating it, calling into it, and the report of a broken one. */
#include "sim/simulation.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/memory.h"
#include "base/words.h"
#include "sim/fiber.h"

enum { SPURIOUS_IN = 16 };       /* one of so many waits on a condition variable wakes up spuriously */
#define START_TIME    1000000000 /* not 0, which often means "never" */
#define DEFAULT_LIMIT 10000000

/* Independent random numbers of one seed; a third one is for pauses (sim/strategy.c). */
enum { STREAM_SCHEDULE, STREAM_WORLD };

/* -------------------------------------------------------------------------- mutexes, conditions, parkers --
 */

static void lock_and_unlock(void *arg);

static void fiber_lock(struct wr_mutex *mutex)
{
	struct wr_fiber *self = WR_HERE.fiber;

	while (!self && mutex->owner) /* by a suspended fiber, which must run to unlock it */
		if (wr_sim_call(mutex->owner->sim, lock_and_unlock, mutex))
			return;
	if (!self)
		return;
	wr_fiber_point(self);
	while (mutex->owner) {
		assert(mutex->owner != self);
		wr_fiber_block(self, WR_FOR_MUTEX, mutex, WR_FOREVER);
	}
	mutex->owner = self;
}

static void mutex_release(struct wr_fiber *self, struct wr_mutex *mutex)
{
	assert(mutex->owner == self);
	mutex->owner = NULL;
	wr_fiber_wake_all(self->sim, mutex);
}

static void fiber_unlock(struct wr_mutex *mutex)
{
	struct wr_fiber *self = WR_HERE.fiber;

	mutex_release(self, mutex);
	wr_fiber_point(self);
}

static void lock_and_unlock(void *arg)
{
	fiber_lock(arg);
	fiber_unlock(arg);
}

static bool spurious_wakeup(struct wr_sim *sim)
{
	return wr_random_below(&sim->schedule, SPURIOUS_IN) == 0;
}

static bool fiber_wait(struct wr_cond *cond, struct wr_mutex *mutex, int64_t until)
{
	struct wr_fiber *self = WR_HERE.fiber;
	bool in_time = true;

	assert(mutex->owner == self);
	cond->sim = self->sim;
	mutex_release(self, mutex);
	if (until <= self->sim->now)
		in_time = false;
	else if (!spurious_wakeup(self->sim))
		in_time = wr_fiber_block(self, WR_FOR_COND, cond, until);
	fiber_lock(mutex);
	return in_time;
}

static void fiber_broadcast(struct wr_cond *cond)
{
	struct wr_fiber *self = WR_HERE.fiber;

	if (self)
		wr_fiber_point(self);
	if (cond->sim)
		wr_fiber_wake_all(cond->sim, cond);
}

static bool fiber_park(struct wr_parker *parker, int64_t until)
{
	struct wr_fiber *self = WR_HERE.fiber;
	bool token;

	wr_fiber_point(self);
	assert(!parker->waiter); /* a parker has one owner */
	if (!wr_read(&parker->word) && until > self->sim->now) {
		parker->waiter = self;
		wr_fiber_block(self, WR_FOR_TOKEN, parker, until);
		parker->waiter = NULL;
	}
	token = wr_read(&parker->word);
	atomic_store_explicit(&parker->word, 0, memory_order_relaxed);
	return token;
}

static void fiber_unpark(struct wr_parker *parker)
{
	struct wr_fiber *self = WR_HERE.fiber;

	if (self)
		wr_fiber_point(self);
	atomic_store_explicit(&parker->word, 1, memory_order_relaxed);
	if (parker->waiter && parker->waiter->object == parker)
		wr_fiber_make_ready(parker->waiter);
}

/* ------------------------------------------------------------------------------------------- the world -- */

static struct wr_last_error *fiber_error(struct wr_fiber *fiber)
{
	return &fiber->error;
}

static int64_t fiber_now(const struct wr_fiber *fiber)
{
	return fiber->sim->now;
}

static const struct wr_world_calls calls = {
	.error = fiber_error,
	.now = fiber_now,
	.point = wr_fiber_point,
	.start = wr_fiber_start,
	.join = wr_fiber_join,
	.yield = wr_fiber_yield,
	.sleep = wr_fiber_sleep,
	.lock = fiber_lock,
	.unlock = fiber_unlock,
	.wait = fiber_wait,
	.broadcast = fiber_broadcast,
	.park = fiber_park,
	.unpark = fiber_unpark,
};

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
	wr_strategy_draw(sim, strategy, seed);
	wr_world_open(&calls);
	status = wr_fiber_reserve(sim);
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
		wr_fiber_remove(sim->fibers[sim->fiber_count - 1]);
	wr_free(sim->fibers);
	wr_free(sim->ready);
	wr_free(sim);
	wr_world_close();
}

static void put_fiber(struct wr_words *words, const struct wr_fiber *fiber)
{
	const struct wr_fiber *other;

	switch (fiber->what) {
	case WR_FOR_NOTHING:
		wr_words_add(words, "; %s can run", fiber->name);
		break;
	case WR_FOR_TIME:
		wr_words_add(words, "; %s sleeps%s", fiber->name,
			     fiber->until == WR_FOREVER ? " for ever" : "");
		break;
	case WR_FOR_MUTEX:
		other = ((const struct wr_mutex *)fiber->object)->owner;
		wr_words_add(words, "; %s waits for a mutex held by %s", fiber->name,
			     other ? other->name : "no fiber");
		break;
	case WR_FOR_COND:
		wr_words_add(words, "; %s waits on a condition variable", fiber->name);
		break;
	case WR_FOR_TOKEN:
		wr_words_add(words, "; %s is parked", fiber->name);
		break;
	case WR_FOR_END:
		other = fiber->object;
		wr_words_add(words, "; %s waits for the end of %s", fiber->name, other->name);
		break;
	}
}

static weir_status fail_broken(const struct wr_sim *sim)
{
	char text[WR_ERROR_BYTES];
	struct wr_words words = wr_words_in(text, sizeof(text));

	for (size_t i = 0; i < sim->fiber_count; i++)
		if (!sim->fibers[i]->done)
			put_fiber(&words, sim->fibers[i]);
	if (sim->broken == WEIR_E_DEADLOCK)
		return wr_fail(sim->broken, "no fiber can ever run again%s", text);
	return wr_fail(sim->broken, "%s still runs after %" PRIu64 " switching points%s",
		       sim->broken_by->name, sim->allowance, text);
}

/* The last error of fn becomes the caller's. */
static void end_call(struct wr_sim *sim)
{
	if (*sim->main->error.line)
		*wr_error_here() = sim->main->error;
	wr_fiber_remove(sim->main);
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
	status = wr_fiber_add_main(sim, fn, arg);
	if (status)
		return status;
	wr_coroutine_here(&sim->driver.coroutine);
	sim->begun = sim->switches;
	wr_fiber_leave(&sim->driver);
	if (sim->broken)
		return fail_broken(sim);
	end_call(sim);
	return WEIR_OK;
}

struct attempt {
	weir_status (*fn)(void *arg);
	void *arg;
	weir_status status;
};

static void make_attempt(void *arg)
{
	struct attempt *attempt = arg;

	attempt->status = attempt->fn(attempt->arg);
}

weir_status wr_sim_try(struct wr_sim *sim, weir_status (*fn)(void *arg), void *arg)
{
	struct attempt attempt = {fn, arg, WEIR_OK};
	weir_status status;

	if (!sim)
		return fn(arg);
	status = wr_sim_call(sim, make_attempt, &attempt);
	return status ? status : attempt.status;
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
