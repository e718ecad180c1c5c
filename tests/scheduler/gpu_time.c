/* T15: whose GPU time it is, and how much. In a simulated world the device adds nothing, so figures are
 * exact. */
#include <string.h>

#include "gpu_time_rig.h"
#include "tests/calls.h"

/* --- the truths --- */

static weir_status three_us_then_5_ms(struct rig *rig, weir_context *context)
{
	(void)rig;
	weir_sleep(3 * US);
	return kernel(context, 5 * MS);
}

static void run_async(void)
{
	struct rig *rig = observed("a:call count=1 -> end", 1);

	ON("a", three_us_then_5_ms);
	run_and_destroy(rig);
	assert_int_equal(span_count("a"), 1);
	assert_int_equal(length_of(span_of("a", 0)), 5 * MS);
	assert_int_equal(seen.submit[entity_number("a")], 3 * US);
	assert_int_equal(span_of("a", 0)->end - seen.ready_at[entity_number("a")], 5 * MS + 3 * US);
	assert_int_equal(seen.blocked, 0);
	assert_int_equal(span_count("end"), 0);
}

TEST(t15_compute_returns_long_before_its_kernel_ends)
{
	(void)state_;
	rig_in_world(1, run_async);
}

static weir_status cpu_then_kernel(struct rig *rig, weir_context *context)
{
	weir_stream *stream = current_stream(context);

	(void)rig;
	weir_sleep(3 * MS);
	return rig_emit_sum(context, 0, stream, 0, 1 * MS);
}

static void run_cpu_then_kernel(void)
{
	struct rig *rig = observed("a:call count=3 -> end", 1);

	ON("a", cpu_then_kernel);
	run_and_destroy(rig);
	assert_int_equal(span_count("a"), 3);
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(length_of(span_of("a", i)), 1 * MS);
	assert_int_equal(seen.submit[entity_number("a")], 3 * MS);
}

TEST(t15_what_compute_does_before_its_first_kernel_is_no_gpu_time)
{
	(void)state_;
	rig_in_world(1, run_cpu_then_kernel);
}

static weir_status four_ms(struct rig *rig, weir_context *context)
{
	(void)rig;
	return kernel(context, 4 * MS);
}

static weir_status six_ms(struct rig *rig, weir_context *context)
{
	(void)rig;
	return kernel(context, 6 * MS);
}

static void run_consumer(void)
{
	struct rig *rig = observed("a:call count=3 -> b:call -> end", 1);

	ON("a", four_ms);
	ON("b", one_ms);
	run_and_destroy(rig);
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(length_of(span_of("a", i)), 4 * MS);
		assert_int_equal(length_of(span_of("b", i)), 1 * MS);
		assert_true(span_of("b", i)->begin >= span_of("a", i)->end);
	}
}

TEST(t15_t03_a_consumer_is_not_charged_for_its_producer)
{
	(void)state_;
	rig_in_world(1, run_consumer);
}

static weir_status receive_then_one_ms(struct rig *rig, weir_context *context)
{
	weir_stream *stream = NULL;

	HOLDS(rig, !weir_context_receive_stream(context, 0, 0, &stream));
	HOLDS(rig, !weir_context_receive_stream(context, 1, 0, &stream));
	return rig_emit_sum(context, 0, stream, 0, 1 * MS);
}

static void run_fan_in(void)
{
	struct rig *rig = observed("a:call count=1 -> c:call -> end; b:call count=1 -> c.in2", 1);

	ON("a", four_ms);
	ON("b", six_ms);
	ON("c", receive_then_one_ms);
	run_and_destroy(rig);
	assert_int_equal(length_of(span_of("a", 0)), 4 * MS);
	assert_int_equal(length_of(span_of("b", 0)), 6 * MS);
	assert_int_equal(length_of(span_of("c", 0)), 1 * MS);
	assert_true(span_of("c", 0)->begin >= span_of("b", 0)->end);
}

TEST(t15_t03_waits_for_several_inputs_are_no_gpu_time)
{
	(void)state_;
	rig_in_world(1, run_fan_in);
}

static weir_status wait_late(struct rig *rig, weir_context *context)
{
	weir_stream *stream = NULL;
	weir_message *first = NULL;

	HOLDS(rig, !weir_context_receive_stream(context, 0, 0, &stream));
	HOLDS(rig, !rig_add(context, stream, 0, 1 * MS, &first)); /* begins at 4 ms, ends at 5 ms */
	HOLDS(rig, !weir_context_receive_stream(context, 1, 0, &stream));
	weir_message_unref(first);
	return rig_emit_sum(context, 0, stream, 0, 1 * MS); /* from 6 ms to 7 ms */
}

static void run_late_wait(void)
{
	struct rig *rig = observed("a:call count=1 -> c:call -> end; b:call count=1 -> c.in2", 1);

	ON("a", four_ms);
	ON("b", six_ms);
	ON("c", wait_late);
	run_and_destroy(rig);
	assert_int_equal(length_of(span_of("c", 0)), 3 * MS);
}

TEST(t15_a_wait_behind_the_first_kernel_lies_within_the_span)
{
	(void)state_;
	rig_in_world(1, run_late_wait);
}

static weir_status a_hundred_short_ones(struct rig *rig, weir_context *context)
{
	weir_stream *stream = current_stream(context);
	static int64_t cell;
	struct rig_sum sum = {&cell, {NULL, NULL}, 1, 2 * US};

	for (int i = 0; i < 99; i++) {
		HOLDS(rig, !weir_stream_launch(stream, &rig_adder, &sum, sizeof sum));
		weir_sleep(50 * US);
	}
	return rig_emit_sum(context, 0, stream, 0, 2 * US);
}

static void run_short_ones(void)
{
	struct rig *rig = observed("a:call count=1 -> end", 1);

	ON("a", a_hundred_short_ones);
	run_and_destroy(rig);
	assert_int_equal(length_of(span_of("a", 0)), 99 * 50 * US + 2 * US);
}

TEST(t15_a_span_is_not_how_long_the_device_was_busy)
{
	(void)state_;
	rig_in_world(1, run_short_ones);
}

static void run_two_entities(void)
{
	struct rig *rig = observed("a:call count=4 -> x:end; b:call count=4 -> y:end", 1);

	ON("a", four_ms);
	ON("b", one_ms);
	assert_int_equal(rig_run(rig), WEIR_OK);
	for (size_t i = 0; i < 4; i++) {
		assert_int_equal(length_of(span_of("a", i)), 4 * MS);
		assert_int_equal(length_of(span_of("b", i)), 1 * MS);
		assert_int_equal(span_of("a", i)->tick, i);
		assert_string_equal(span_of("a", i)->stream, "a");
	}
	rig_destroy(rig);
}

TEST(t15_each_entity_is_charged_for_its_own_work)
{
	(void)state_;
	rig_in_world(1, run_two_entities);
}

/* --- replay --- */

static int64_t replayed;

static weir_status enqueue_two_ms(weir_context *context, weir_stream *stream, void *arg)
{
	struct rig_sum sum = {&replayed, {NULL, NULL}, 1, 1 * MS};
	weir_status status = weir_stream_launch(stream, &rig_adder, &sum, sizeof sum);

	(void)context;
	(void)arg;
	return status ? status : weir_stream_launch(stream, &rig_adder, &sum, sizeof sum);
}

static weir_status replay_two_ms(struct rig *rig, weir_context *context)
{
	weir_status status;

	(void)rig;
	weir_sleep(1 * MS);
	status = weir_context_replay(context, "k", 1, enqueue_two_ms, NULL);
	return status ? status : weir_context_emit(context, 0, rig_number(context, 0));
}

static void run_replay(void)
{
	struct rig *rig = observed("p:call count=8 -> a:call -> end", 1);

	ON("p", four_ms);
	ON("a", replay_two_ms);
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_true(rig_counts(rig, "a").replay_hits > 0);
	rig_destroy(rig);
	assert_int_equal(span_count("a"), 8); /* enqueued, captured and launched, launched */
	for (size_t i = 0; i < 8; i++) {
		assert_int_equal(length_of(span_of("a", i)), 2 * MS);
		assert_true(span_of("a", i)->begin >= span_of("p", i)->end);
	}
}

TEST(t15_t13_a_replayed_tick_has_the_span_of_an_enqueued_one)
{
	(void)state_;
	rig_in_world(1, run_replay);
}

static weir_status enqueue_on_two_streams(weir_context *context, weir_stream *stream, void *arg)
{
	struct rig_sum sum = {&replayed, {NULL, NULL}, 1, 2 * MS};
	weir_stream *side = NULL;
	weir_status status = weir_context_allocate_stream(context, "side", &side);

	(void)arg;
	if (!status)
		status = weir_stream_launch(stream, &rig_adder, &sum, sizeof sum);
	if (!status)
		status = weir_context_synchronize_streams(context, &stream, 1, side);
	sum.ns = 3 * MS;
	if (!status)
		status = weir_stream_launch(side, &rig_adder, &sum, sizeof sum);
	return status ? status : weir_context_synchronize_streams(context, &side, 1, stream);
}

static weir_status replay_two_streams(struct rig *rig, weir_context *context)
{
	weir_status status = weir_context_replay(context, "k", 1, enqueue_on_two_streams, NULL);

	(void)rig;
	return status ? status : weir_context_emit(context, 0, rig_number(context, 0));
}

/* Two entities replay at once: what one launch does is one entity's, and has one span. */
static void run_two_replays(void)
{
	struct rig *rig = observed("a:call count=8 -> x:end; b:call count=8 -> y:end", 1);
	size_t launched = 0;

	ON("a", replay_two_streams);
	ON("b", replay_two_ms);
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_true(rig_counts(rig, "a").replay_hits > 0 && rig_counts(rig, "b").replay_hits > 0);
	for (size_t i = 0; i < span_count("a"); i++)
		launched += !strcmp(span_of("a", i)->stream, "a") && length_of(span_of("a", i)) == 5 * MS;
	assert_true(launched >= rig_counts(rig, "a").replay_hits);
	assert_int_equal(span_count("b"), 8);
	for (size_t i = 0; i < 8; i++)
		assert_int_equal(length_of(span_of("b", i)), 2 * MS);
	rig_destroy(rig);
}

TEST(t15_t13_replayed_work_of_two_streams_is_one_span_of_its_entity)
{
	(void)state_;
	rig_resources = RIG_POOL("");
	rig_in_world(1, run_two_replays);
	rig_resources = NULL;
}

/* --- several streams of an entity --- */

static weir_status on_two_streams(struct rig *rig, weir_context *context)
{
	weir_stream *current = current_stream(context), *other = NULL;
	weir_message *first = NULL, *second = NULL;

	HOLDS(rig, !weir_context_allocate_stream(context, "side", &other));
	HOLDS(rig, !rig_add(context, current, 0, 2 * MS, &first));
	HOLDS(rig, !weir_context_synchronize_streams(context, &current, 1, other));
	HOLDS(rig, !rig_add(context, other, 0, 3 * MS, &second));
	weir_message_unref(second);
	return weir_context_emit(context, 0, first);
}

static void run_two_streams(void)
{
	struct rig *rig = observed("a:call count=3 -> end", 1);

	ON("a", on_two_streams);
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_int_equal(span_count("a"), 6);
	assert_int_equal(seen.completed[entity_number("a")], 3);
	for (size_t i = 0; i < 6; i += 2) {
		assert_string_equal(span_of("a", i)->stream, "a");
		assert_int_equal(length_of(span_of("a", i)), 2 * MS);
		assert_string_equal(span_of("a", i + 1)->stream, "a.side");
		assert_int_equal(length_of(span_of("a", i + 1)), 3 * MS);
		assert_true(span_of("a", i + 1)->begin >= span_of("a", i)->end);
	}
	rig_destroy(rig);
}

TEST(t15_each_stream_of_an_entity_has_a_span)
{
	(void)state_;
	rig_resources = RIG_POOL("");
	rig_in_world(1, run_two_streams);
	rig_resources = NULL;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(t15_compute_returns_long_before_its_kernel_ends),
		cmocka_unit_test(t15_what_compute_does_before_its_first_kernel_is_no_gpu_time),
		cmocka_unit_test(t15_t03_a_consumer_is_not_charged_for_its_producer),
		cmocka_unit_test(t15_t03_waits_for_several_inputs_are_no_gpu_time),
		cmocka_unit_test(t15_a_wait_behind_the_first_kernel_lies_within_the_span),
		cmocka_unit_test(t15_a_span_is_not_how_long_the_device_was_busy),
		cmocka_unit_test(t15_each_entity_is_charged_for_its_own_work),
		cmocka_unit_test(t15_t13_a_replayed_tick_has_the_span_of_an_enqueued_one),
		cmocka_unit_test(t15_t13_replayed_work_of_two_streams_is_one_span_of_its_entity),
		cmocka_unit_test(t15_each_stream_of_an_entity_has_a_span),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
