/*
 * A run that begins while a thread of the program completes a promise, or processes the deferred frees, under
 * many schedules: whatever that thread takes of the run, it wakes and gives back (T17, T4, S4).
 */
#include "rig.h"
#include "sim/simulation.h"
#include "test.h"
#include "tests/bugs/bug.h"

enum { SEEDS = 1000 };

static struct {
	struct rig *rig;
	weir_fence before, after; /* promises: of before the run, and of the run */
	struct rig_payload listed, added;
	weir_status armed;
	const char *found;
} world;

/* Both at once, in a system without a run. */
static void run_both(void (*program)(void *arg), void (*run)(void *arg))
{
	struct wr_thread threads[2];

	wr_system_detach(world.rig->system);
	rig_fill_waker(&world.rig->waker);
	assert_int_equal(wr_promise_create(world.rig->system, &world.before), WEIR_OK);
	assert_int_equal(wr_promise_create(world.rig->system, &world.after), WEIR_OK);
	wr_thread_start(&threads[0], "program", program, NULL);
	wr_thread_start(&threads[1], "run", run, NULL);
	wr_thread_join(&threads[0]);
	wr_thread_join(&threads[1]);
}

static void complete(weir_fence promise)
{
	assert_int_equal(wr_promise_complete(world.rig->system, promise, WEIR_OK, NULL), WEIR_OK);
}

/* --- a promise --- */

static void complete_before(void *arg)
{
	(void)arg;
	complete(world.before);
}

static void arm_in_run(void *arg)
{
	wr_token token;

	(void)arg;
	wr_system_attach(world.rig->system, &world.rig->waker.waker);
	world.armed = wr_promise_arm(world.rig->system, 5, &world.before, 1, &token);
}

static void wake(struct rig *rig)
{
	world.rig = rig;
	run_both(complete_before, arm_in_run);
	if (!world.armed && !wr_load(&rig->waker.poked[5]))
		world.found = "the entity was not woken";
	complete(world.after);
}

/* --- deferred frees --- */

static void process(void *arg)
{
	(void)arg;
	wr_system_run_deferred_frees(world.rig->system, true);
}

static void list_in_run(void *arg)
{
	(void)arg;
	wr_system_attach(world.rig->system, &world.rig->waker.waker);
	wr_thread_set_local(world.rig); /* marks this thread as a worker, which takes a live reference */
	rig_defer(world.rig, &world.added, world.after, false);
	wr_thread_set_local(NULL);
	complete(world.after);
}

static void give_back(struct rig *rig)
{
	world.rig = rig;
	assert_int_equal(wr_promise_create(rig->system, &world.before), WEIR_OK);
	rig_defer(rig, &world.listed, world.before, false);
	complete(world.before);
	run_both(process, list_in_run);
	complete(world.before);
	wr_system_run_deferred_frees(rig->system, true);
	if (world.listed.released + world.added.released != 2)
		world.found = "memory did not come back";
	if (wr_load(&rig->waker.live))
		world.found = "a live reference is left";
	wr_store(&rig->waker.live, 0);
}

/* A destructor, which the loop makes a worker run. */
static void list_destructor_in_run(void *arg)
{
	(void)arg;
	wr_system_attach(world.rig->system, &world.rig->waker.waker);
	if (wr_system_deferred_frees_ready(world.rig->system)) /* as the loop's first turn does */
		wr_fetch_add(&world.rig->waker.kicked, 1);
}

static void process_as_loop(void *arg)
{
	(void)arg;
	wr_deferred_frees_process(world.rig->system);
}

static void tell_loop(struct rig *rig)
{
	world.rig = rig;
	assert_int_equal(wr_promise_create(rig->system, &world.before), WEIR_OK);
	rig_defer(rig, &world.listed, world.before, true);
	complete(world.before);
	run_both(process_as_loop, list_destructor_in_run);
	if (!wr_load(&rig->waker.kicked))
		world.found = "the loop does not know of the destructor";
	complete(world.before);
	complete(world.after);
	wr_system_run_deferred_frees(rig->system, true);
}

/* --- all orders --- */

static uint64_t first_found(void (*body)(struct rig *rig))
{
	uint64_t seed = 1;

	for (; seed <= SEEDS; seed++) {
		wr_tokens_forget();
		world.found = NULL;
		rig_run(body, seed);
		if (world.found)
			break;
	}
	return seed;
}

static void holds(void (*body)(struct rig *rig))
{
	uint64_t seed = first_found(body);

	if (seed <= SEEDS)
		fail_msg("seed %llu: %s", (unsigned long long)seed, world.found);
}

static void finds(enum wr_bug bug, void (*body)(struct rig *rig))
{
	wr_bug_active = bug;
	assert_in_range(first_found(body), 1, SEEDS);
	wr_bug_active = WR_BUG_NONE;
}

static void t17_an_entity_of_a_run_that_begins_while_a_promise_is_completed_is_woken(void **state)
{
	(void)state;
	holds(wake);
	finds(WR_BUG_PROMISE_WAKER_EARLY, wake);
}

static void t04_s04_a_reference_of_a_run_that_begins_while_memory_comes_back_is_dropped(void **state)
{
	(void)state;
	holds(give_back);
	finds(WR_BUG_FREES_WAKER_EARLY, give_back);
}

static void t04_b03_a_run_that_begins_while_memory_comes_back_knows_of_destructors(void **state)
{
	(void)state;
	holds(tell_loop);
	finds(WR_BUG_FREES_KICK_EARLY, tell_loop);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(t17_an_entity_of_a_run_that_begins_while_a_promise_is_completed_is_woken),
		cmocka_unit_test(t04_s04_a_reference_of_a_run_that_begins_while_memory_comes_back_is_dropped),
		cmocka_unit_test(t04_b03_a_run_that_begins_while_memory_comes_back_knows_of_destructors),
	};

	rig_backend = "sim";
	return cmocka_run_group_tests(tests, NULL, NULL);
}
