/* T13: what is replayed is what would be enqueued. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "replay_rig.h"
#include "tests/calls.h"

/* --- replays --- */

static void replay_all(bool on_side)
{
	struct rig *rig = rig_for(CHAIN " -> end");
	weir_entity_counts counts;

	work.on_side = on_side;
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_string_equal(rig_text(rig, "end"), sums());
	counts = rig_counts(rig, "a");
	assert_int_equal(counts.replay_failures, 0);
	assert_int_equal(counts.replay_evictions, 0);
	assert_true(counts.replay_captures > 0 && counts.replay_hits > 0);
	assert_int_equal(counts.replay_hits + work.calls, TICKS); /* a capture is a tick that calls it */
	rig_destroy(rig);
}

static void replay_on_one_stream(void)
{
	replay_all(false);
}

static void replay_on_two_streams(void)
{
	replay_all(true);
}

TEST(t13_a_replayed_tick_gives_what_an_enqueued_one_gives)
{
	(void)state_;
	rig_everywhere(replay_on_one_stream);
}

TEST(t13_named_streams_that_are_joined_again_are_replayed)
{
	(void)state_;
	rig_everywhere(replay_on_two_streams);
}

static void run_twice(void)
{
	struct rig *rig = rig_for(CHAIN " -> end");
	weir_entity_counts first, second;

	assert_int_equal(rig_run(rig), WEIR_OK);
	first = rig_counts(rig, "a");
	assert_int_equal(rig_run(rig), WEIR_OK);
	second = rig_counts(rig, "a");
	assert_true(first.replay_captures && second.replay_captures);
	assert_int_equal(second.replay_failures, 0);
	rig_destroy(rig);
}

TEST(t13_s08_the_next_run_begins_cold)
{
	(void)state_;
	rig_everywhere(run_twice);
}

/* --- scratch memory --- */

struct scratch_step {
	int64_t *to;
	const int64_t *from;
	size_t bytes; /* of scratch memory */
};

/* to = from + 7, by way of scratch memory. */
static weir_status enqueue_by_scratch(weir_context *context, weir_stream *stream, void *arg)
{
	const struct scratch_step *step = arg;
	struct rig_sum sum = {NULL, {step->from, NULL}, 3, 2 * US};
	void *memory = NULL;
	weir_status status = weir_context_scratch(context, NULL, step->bytes, &memory);

	work.calls++;
	if (status)
		return status;
	sum.to = (int64_t *)((char *)memory + step->bytes) - 1;
	status = weir_stream_launch(stream, &rig_adder, &sum, sizeof sum);
	sum = (struct rig_sum){step->to, {sum.to, NULL}, 4, 0};
	return status ? status : weir_stream_launch(stream, &rig_adder, &sum, sizeof sum);
}

/* The stack grows in tick 20. What compute requests behind the replay is filled with other numbers. */
static weir_status replay_by_scratch(struct rig *rig, weir_context *context)
{
	weir_message *message = NULL;
	weir_status status = weir_context_create_tensor(context, &rig_one_number, 0, &message);
	struct scratch_step step = {status ? NULL : weir_message_data(message), rig_data_of(context, 0),
				    rig_tick(context) < TICKS / 2 ? 1000 : 100000};
	struct rig_sum poison = {.plus = -1};
	void *memory = NULL;

	(void)rig;
	if (status)
		return status;
	status = weir_context_replay(context, &step, sizeof step, enqueue_by_scratch, &step);
	if (!status)
		status = weir_context_scratch(context, NULL, 512, &memory);
	poison.to = memory;
	if (!status)
		status = weir_stream_launch(current_stream(context), &rig_adder, &poison, sizeof poison);
	if (!status)
		return weir_context_emit(context, 0, message);
	weir_message_unref(message);
	return status;
}

static void replay_with_scratch(void)
{
	struct rig *rig = rig_for(CHAIN " -> end");

	rig_on(rig, "a", replay_by_scratch);
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_string_equal(rig_text(rig, "end"), sums());
	assert_int_equal(rig_counts(rig, "a").replay_failures, 0);
	assert_true(rig_counts(rig, "a").replay_hits > 0);
	assert_true(rig_counts(rig, "a").most_scratch >= 100000 + 512);
	rig_destroy(rig);
}

TEST(t13_t11_scratch_memory_is_captured_with_its_place)
{
	(void)state_;
	rig_everywhere(replay_with_scratch);
}

/* One key all the time. In tick 10 compute requests more behind the replay, so the stack moves. */
static weir_status move_stack(struct rig *rig, weir_context *context)
{
	struct scratch_step step = {&blocks[1][0], &blocks[0][1], 1000};
	void *memory = NULL;
	weir_status status = weir_context_replay(context, "same", 4, enqueue_by_scratch, &step);

	(void)rig;
	return status ? status
		      : weir_context_scratch(context, NULL, rig_tick(context) < 10 ? 512 : 100000, &memory);
}

static void replay_while_the_stack_moves(void)
{
	struct rig *rig = alternating("a:call count=40");

	rig_on(rig, "a", move_stack);
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_int_equal(rig_counts(rig, "a").replay_captures, 2); /* of the stack of each place */
	assert_int_equal(rig_counts(rig, "a").replay_failures, 0);
	assert_int_equal(blocks[1][0], 1007);
	rig_destroy(rig);
}

TEST(t13_t11_a_stack_that_moved_is_another_key)
{
	(void)state_;
	rig_everywhere(replay_while_the_stack_moves);
}

/* One key all the time. The tick that would capture requests more than there is. */
static weir_status request_more(struct rig *rig, weir_context *context)
{
	struct scratch_step step = {&blocks[1][0], &blocks[0][1], rig_tick(context) < 2 ? 1000 : 100000};

	(void)rig;
	return weir_context_replay(context, "same", 4, enqueue_by_scratch, &step);
}

static void capture_a_tick_later(void)
{
	struct rig *rig = alternating("a:call count=40");

	rig_on(rig, "a", request_more);
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_int_equal(rig_counts(rig, "a").replay_failures, 0);
	assert_in_range(rig_counts(rig, "a").replay_hits, 30, 38);
	assert_int_equal(wr_load(&said.lines), 0);
	rig_destroy(rig);
}

TEST(t13_t11_a_capture_that_met_too_small_a_stack_is_made_a_tick_later)
{
	(void)state_;
	rig_everywhere(capture_a_tick_later);
}

static void warm_up_3(void)
{
	struct rig *rig = rig_for(CHAIN " replay=16,3 -> end");

	work.key_from = "same";
	work.key_bytes = 4;
	rig_on(rig, "a", take_turns);
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_int_equal(work.calls, 3 * 4);
	rig_destroy(rig);
}

TEST(t13_a_key_is_warm_after_so_many_ticks)
{
	(void)state_;
	rig_everywhere(warm_up_3);
}

static void switched_off(void)
{
	struct rig *rig = rig_for(CHAIN " replay=off -> end");

	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_string_equal(rig_text(rig, "end"), sums());
	assert_int_equal(work.calls, TICKS);
	assert_int_equal(rig_counts(rig, "a").replay_captures, 0);
	rig_destroy(rig);
}

TEST(t13_without_replay_the_work_is_enqueued_in_each_tick)
{
	(void)state_;
	rig_everywhere(switched_off);
}

/* --- WEIR_DEBUG_REPLAY --- */

static weir_status leave_out(struct rig *rig, weir_context *context)
{
	int64_t tick = rig_tick(context);
	struct rig_sum sum = {&blocks[1][tick % SIDE], {NULL, NULL}, 5, 0};

	(void)rig;
	return weir_context_replay(context, "all", 3, enqueue_block, &sum);
}

static void find_left_out(void)
{
	struct rig *rig = rig_for("a:call count=200");

	rig_on(rig, "a", leave_out);
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_int_equal(rig_counts(rig, "a").replay_failures, 1);
	assert_int_equal(said.lines, 1);
	assert_says(said.text, "a: replay FAILED: its key leaves out");
	assert_says(said.text, "arguments of kernel 'add_up' differs");
	rig_destroy(rig);
}

static void find_nothing(void)
{
	struct rig *rig = alternating("a:call count=3000 -> end");

	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_int_equal(rig_counts(rig, "a").replay_failures, 0);
	assert_true(rig_counts(rig, "a").replay_captures > KEYS);
	assert_last_blocks();
	rig_destroy(rig);
}

TEST(t13_debugging_finds_an_address_that_the_key_leaves_out)
{
	(void)state_;
	setenv("WEIR_DEBUG_REPLAY", "1", 1);
	rig_everywhere(find_left_out);
	rig_everywhere(find_nothing);
	unsetenv("WEIR_DEBUG_REPLAY");
}

/* A structure with bytes that are never written, as padding is not. */
struct with_padding {
	struct rig_sum sum;
	unsigned char padding[64];
};

static weir_status enqueue_with_padding(weir_context *context, weir_stream *stream, void *arg)
{
	struct with_padding all;

	(void)context;
	all.sum = *(const struct rig_sum *)arg;
	return weir_stream_launch(stream, &rig_adder, &all, sizeof all);
}

/* Leaves other bytes on the stack in each tick. */
static __attribute__((noinline)) void write_stack(int64_t tick)
{
	volatile unsigned char stack[1 << 14];

	for (size_t i = 0; i < sizeof stack; i++)
		stack[i] = (unsigned char)tick;
}

static weir_status replay_with_padding(struct rig *rig, weir_context *context)
{
	struct rig_sum sum = {&blocks[1][0], {NULL, NULL}, 5, 0};

	(void)rig;
	write_stack(rig_tick(context));
	return weir_context_replay(context, "all", 3, enqueue_with_padding, &sum);
}

static void check_padding(void)
{
	struct rig *rig = rig_for("a:call count=200");

	rig_on(rig, "a", replay_with_padding);
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_int_equal(rig_counts(rig, "a").replay_failures, 0);
	assert_int_equal(rig_counts(rig, "a").replay_captures, 4); /* one, and 3 checks */
	rig_destroy(rig);
}

/* ThreadSanitizer's own calls, at the beginning of each function, write where the next frame will be. */
#ifdef __has_feature
#define FILLS !__has_feature(thread_sanitizer)
#elif defined(__SANITIZE_THREAD__)
#define FILLS false
#else
#define FILLS true
#endif

TEST(t13_debugging_does_not_compare_what_the_stack_held_before)
{
	(void)state_;
	if (!FILLS)
		skip();
	setenv("WEIR_DEBUG_REPLAY", "1", 1);
	rig_everywhere(check_padding);
	unsetenv("WEIR_DEBUG_REPLAY");
}

/* What enqueue does when it is called for the third time: after the warm-up and the capture, by the check. */
enum { ENQUEUES_NOTHING, FAILS, TAKES_A_STREAM };

static int third;

static weir_status enqueue_otherwise(weir_context *context, weir_stream *stream, void *arg)
{
	weir_stream *side = NULL;

	if (++work.calls != 3)
		return weir_stream_launch(stream, &rig_adder, arg, sizeof(struct rig_sum));
	switch (third) {
	case ENQUEUES_NOTHING:
		return WEIR_OK;
	case FAILS:
		return weir_context_fail(context, "not again");
	}
	return weir_context_allocate_stream(context, "side", &side);
}

static weir_status replay_otherwise(struct rig *rig, weir_context *context)
{
	struct rig_sum sum = {&blocks[1][0], {NULL, NULL}, 5, 0};

	(void)rig;
	return weir_context_replay(context, "all", 3, enqueue_otherwise, &sum);
}

static void check_otherwise(void)
{
	static const char *const reasons[] = {"it is enqueued no more", "what the work depends on: not again",
					      NULL};
	struct rig *rig = rig_for("a:call count=100");

	rig_on(rig, "a", replay_otherwise);
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_int_equal(rig_counts(rig, "a").replay_failures, reasons[third] != NULL);
	if (reasons[third])
		assert_says(said.text, reasons[third]);
	else
		assert_int_equal(rig_counts(rig, "a").replay_hits, 98); /* a check is no reason to fail */
	rig_destroy(rig);
}

TEST(t13_debugging_finds_work_that_is_enqueued_otherwise)
{
	(void)state_;
	setenv("WEIR_DEBUG_REPLAY", "1", 1);
	for (third = ENQUEUES_NOTHING; third <= TAKES_A_STREAM; third++) {
		rig_in_worlds(3, check_otherwise);
		rig_on_host(check_otherwise);
	}
	unsetenv("WEIR_DEBUG_REPLAY");
}

static void find_no_difference(void)
{
	struct rig *rig = rig_for("a:call count=200");

	rig_on(rig, "a", leave_out);
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_int_equal(rig_counts(rig, "a").replay_failures, 0);
	assert_int_equal(rig_counts(rig, "a").replay_captures, 1);
	rig_destroy(rig);
}

TEST(t13_debugging_is_off_for_0_and_an_empty_text)
{
	static const char *const texts[] = {"", "0"};

	(void)state_;
	for (size_t i = 0; i < 2; i++) {
		setenv("WEIR_DEBUG_REPLAY", texts[i], 1);
		rig_in_world(1, find_no_difference);
	}
	unsetenv("WEIR_DEBUG_REPLAY");
}

/* --- ends --- */

/* A drain, then a run that is cut short. */
static void stop_in_flight(void)
{
	struct rig *rig = alternating("a:call -> end");

	for (int run = 0; run < 2; run++) {
		rig_start(rig);
		if (strcmp(rig_backend, "sim"))
			weir_sleep(3 * MS);
		weir_scheduler_stop(rig->scheduler, run == 0 ? WEIR_STOP_DRAIN : 0);
		(void)rig_wait(rig);
	}
	rig_destroy(rig);
}

static void end_by_time(void)
{
	struct rig *rig = alternating("a:call -> end");

	rig->options.max_duration_ns = 5 * MS;
	rig->options.drain_ns = -1;
	rig_start(rig);
	(void)rig_wait(rig);
	rig_destroy(rig);
}

static void destroy_in_flight(void)
{
	struct rig *rig = alternating("a:call -> end");

	rig_start(rig);
	if (strcmp(rig_backend, "sim"))
		weir_sleep(3 * MS);
	rig_destroy(rig);
}

TEST(t13_s07_e04_runs_end_while_replays_are_in_flight)
{
	(void)state_;
	rig_everywhere(stop_in_flight);
	rig_everywhere(end_by_time);
	rig_everywhere(destroy_in_flight);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(t13_a_replayed_tick_gives_what_an_enqueued_one_gives),
		cmocka_unit_test(t13_named_streams_that_are_joined_again_are_replayed),
		cmocka_unit_test(t13_s08_the_next_run_begins_cold),
		cmocka_unit_test(t13_t11_a_capture_that_met_too_small_a_stack_is_made_a_tick_later),
		cmocka_unit_test(t13_t11_scratch_memory_is_captured_with_its_place),
		cmocka_unit_test(t13_t11_a_stack_that_moved_is_another_key),
		cmocka_unit_test(t13_a_key_is_warm_after_so_many_ticks),
		cmocka_unit_test(t13_without_replay_the_work_is_enqueued_in_each_tick),
		cmocka_unit_test(t13_debugging_finds_an_address_that_the_key_leaves_out),
		cmocka_unit_test(t13_debugging_does_not_compare_what_the_stack_held_before),
		cmocka_unit_test(t13_debugging_finds_work_that_is_enqueued_otherwise),
		cmocka_unit_test(t13_debugging_is_off_for_0_and_an_empty_text),
		cmocka_unit_test(t13_s07_e04_runs_end_while_replays_are_in_flight),
	};

	weir_log_set(note_line, NULL);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
