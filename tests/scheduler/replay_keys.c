/* Replay (T13): which keys are kept, and how long what was captured for them lives. */
#include "replay_rig.h"

static void alternate_16(void)
{
	struct rig *rig = alternating("a:call count=2000 -> end");

	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_int_equal(rig_counts(rig, "a").replay_captures, KEYS);
	assert_int_equal(rig_counts(rig, "a").replay_hits, 2000 - 2 * KEYS);
	assert_int_equal(rig_counts(rig, "a").replay_evictions, 0);
	assert_last_blocks();
	rig_destroy(rig);
}

TEST(t13_sixteen_alternating_keys_are_captured_once_each)
{
	(void)state_;
	rig_everywhere(alternate_16);
}

static void alternate_8(void)
{
	struct rig *rig = alternating("a:call count=160 replay=8 -> end");

	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_int_equal(rig_counts(rig, "a").replay_evictions, 160 - 8);
	assert_int_equal(work.calls, 160); /* each key is evicted before it comes again */
	assert_last_blocks();
	rig_destroy(rig);
}

TEST(t13_the_least_recently_used_key_goes)
{
	(void)state_;
	rig_everywhere(alternate_8);
}

static void evict_in_flight(void)
{
	struct rig *rig = alternating("a:call count=96 replay=1");

	rig_on(rig, "a", take_turns);
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_int_equal(rig_counts(rig, "a").replay_captures, 12);
	assert_int_equal(rig_counts(rig, "a").replay_evictions, 11);
	for (int i = 0; i < 3; i++)
		assert_int_equal(blocks[1][i], 32);
	rig_destroy(rig);
}

TEST(t13_an_evicted_key_whose_work_is_in_flight_is_destroyed_later)
{
	(void)state_;
	rig_everywhere(evict_in_flight);
}

/* Ticks by key: a b a c a. */
static weir_status come_again(struct rig *rig, weir_context *context)
{
	char key = "abaca"[rig_tick(context)];
	struct rig_sum sum = {&blocks[1][0], {&blocks[0][0], NULL}, 1, US};

	(void)rig;
	return weir_context_replay(context, &key, 1, enqueue_block, &sum);
}

static void use_one_again(void)
{
	struct rig *rig = alternating("a:call count=5 replay=2");

	rig_on(rig, "a", come_again);
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_int_equal(rig_counts(rig, "a").replay_captures, 1); /* of a, in its second tick */
	assert_int_equal(rig_counts(rig, "a").replay_hits, 1);
	rig_destroy(rig);
}

TEST(t13_a_key_that_comes_again_stays_though_it_was_made_first)
{
	(void)state_;
	rig_everywhere(use_one_again);
}

/* --- how long captured work lives --- */

static const struct wr_backend *real;
static _Atomic int captured, most_captured;

static weir_status count_captured(void *self, void *capture, void **graph)
{
	weir_status status = real->capture_end(self, capture, graph);
	int now = wr_fetch_add(&captured, !status && *graph) + 1;

	if (now > wr_load(&most_captured))
		wr_store(&most_captured, now);
	return status;
}

static void count_destroyed(void *self, void *graph)
{
	wr_fetch_sub(&captured, 1);
	real->graph_destroy(self, graph);
}

static void assert_captured_at_most(const char *text, rig_fn *compute, int most)
{
	struct rig *rig = alternating(text);
	struct wr_backend *own;

	rig_on(rig, "a", compute);
	rig_make(rig);
	own = rig_own_backend(rig);
	real = rig_real_backend(rig);
	own->capture_end = count_captured;
	own->graph_destroy = count_destroyed;
	wr_store(&most_captured, 0);
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_in_range(wr_load(&most_captured), 2, most);
	assert_int_equal(wr_load(&captured), 0);
	rig_restore_backend(rig);
	rig_destroy(rig);
}

static weir_status replay_block(weir_context *context, int64_t key, int64_t ns)
{
	struct rig_sum sum = {&blocks[1][0], {&blocks[0][0], NULL}, 1, ns};

	return weir_context_replay(context, &key, sizeof key, enqueue_block, &sum);
}

static weir_status replay_two(struct rig *rig, weir_context *context)
{
	weir_status status = replay_block(context, 1, US);

	(void)rig;
	return status ? status : replay_block(context, 2, US);
}

static void end_with_two_keys(void)
{
	assert_captured_at_most("a:call count=10", replay_two, 2);
}

TEST(t13_what_several_keys_of_a_tick_captured_is_destroyed_with_the_run)
{
	(void)state_;
	rig_everywhere(end_with_two_keys);
}

/* In each second tick a key is launched for the first time, and another one takes its place. The device takes
 * longer than a capture, also on a busy machine. */
static weir_status launch_and_evict(struct rig *rig, weir_context *context)
{
	int64_t tick = rig_tick(context), key = tick / 2;
	weir_status status = replay_block(context, key, MS);

	(void)rig;
	return status || tick % 2 == 0 ? status : replay_block(context, -1 - key, MS);
}

static void evict_what_is_launched(void)
{
	assert_captured_at_most("a:call count=200 replay=1 in_flight=2", launch_and_evict, 8);
}

TEST(t13_what_is_evicted_in_the_tick_that_launched_it_is_destroyed_behind_that_tick)
{
	(void)state_;
	rig_everywhere(evict_what_is_launched);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(t13_sixteen_alternating_keys_are_captured_once_each),
		cmocka_unit_test(t13_the_least_recently_used_key_goes),
		cmocka_unit_test(t13_an_evicted_key_whose_work_is_in_flight_is_destroyed_later),
		cmocka_unit_test(t13_a_key_that_comes_again_stays_though_it_was_made_first),
		cmocka_unit_test(t13_what_several_keys_of_a_tick_captured_is_destroyed_with_the_run),
		cmocka_unit_test(
			t13_what_is_evicted_in_the_tick_that_launched_it_is_destroyed_behind_that_tick),
	};

	weir_log_set(note_line, NULL);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
