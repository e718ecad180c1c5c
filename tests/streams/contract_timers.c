/* The contract of timers, by the spans over them (T15). */
#include "base/clock.h"
#include "base/status.h"
#include "contract.h"

#define MS 1000000
#define US 1000

/* How far a device's clock may be from the host's: nothing where the host's clock is read. */
static int64_t tolerance(void)
{
	return rig_is("cuda") ? 50 * US : 0;
}

static struct wr_span *span_on(struct rig *rig, weir_stream *stream)
{
	struct wr_span *span = NULL;

	assert_int_equal(wr_span_create(rig->system, 0, &span), WEIR_OK);
	assert_int_equal(wr_span_device(span), 0);
	wr_span_arm(span, stream);
	return span;
}

/* Ends the span, waits for its work, and drops it. */
static struct wr_span_times times_of(struct rig *rig, struct wr_span *span, weir_stream *stream)
{
	struct wr_span_times times = {0, 0, 0};

	assert_true(wr_span_end(span));
	rig_wait(rig, rig_record(stream));
	assert_int_equal(wr_span_read(span, &times), WEIR_OK);
	wr_span_drop(span);
	return times;
}

static void without_delays(struct rig *rig)
{
	if (rig_is("sim"))
		wr_system_set_knobs(rig->system, &(struct wr_sim_knobs){0});
}

RIG_BODY(t15_a_span_is_as_long_as_its_work)
{
	int64_t before = wr_now();
	struct wr_span *span = span_on(rig, rig->a);
	struct wr_span_times times;
	int64_t length;

	without_delays(rig);
	rig_store(rig, rig->a, 1, 5 * MS);
	rig_add(rig, rig->a, 1, 3 * MS);
	times = times_of(rig, span, rig->a);
	length = times.end - times.begin;
	assert_true(times.begin >= before - tolerance());
	assert_true(times.end <= wr_now() + tolerance());
	assert_true(rig_is("sim") ? length == 8 * MS : length >= 8 * MS - 8 * MS / 20);
}

RIG_BODY(t15_a_wait_before_the_first_work_is_not_part_of_the_span)
{
	struct wr_span *first = span_on(rig, rig->b), *second = span_on(rig, rig->a);
	struct wr_span_times before, after;

	without_delays(rig);
	rig_store(rig, rig->b, 1, 20 * MS);
	assert_int_equal(weir_stream_wait(rig->a, rig_record(rig->b)), WEIR_OK);
	rig_add(rig, rig->a, 1, 2 * MS);
	after = times_of(rig, second, rig->a);
	before = times_of(rig, first, rig->b);
	assert_true(after.begin >= before.begin + 20 * MS - MS);
	if (rig_is("sim"))
		assert_int_equal(after.end - after.begin, 2 * MS);
}

RIG_BODY(t15_a_wait_behind_the_first_work_is_part_of_the_span)
{
	struct wr_span *span = span_on(rig, rig->a);
	struct wr_span_times times;

	rig_store(rig, rig->b, 1, 10 * MS);
	rig_add(rig, rig->a, 1, 0);
	assert_int_equal(weir_stream_wait(rig->a, rig_record(rig->b)), WEIR_OK);
	times = times_of(rig, span, rig->a);
	assert_true(times.end - times.begin >= 9 * MS);
}

RIG_BODY(t15_a_copy_begins_a_span)
{
	struct wr_span *span = span_on(rig, rig->a);
	struct wr_span_times times;

	assert_int_equal(weir_stream_copy(rig->a, rig->copy, rig->cell, sizeof *rig->copy), WEIR_OK);
	times = times_of(rig, span, rig->a);
	assert_true(times.end >= times.begin);
}

RIG_BODY(t15_without_work_a_span_does_not_begin)
{
	struct wr_span *span = span_on(rig, rig->a);

	(void)rig_record(rig->a);
	assert_int_equal(weir_stream_wait(rig->a, rig_record(rig->b)), WEIR_OK);
	assert_false(wr_span_end(span));
	wr_span_arm(span, rig->b);
	assert_false(wr_span_end(span));
	wr_span_drop(span);
}

RIG_BODY(t15_a_span_is_read_when_its_work_is_complete_and_used_again)
{
	struct wr_span *span = span_on(rig, rig->a);
	struct wr_span_times first, second;

	rig_store(rig, rig->a, 1, 300 * MS);
	assert_true(wr_span_end(span));
	assert_int_equal(wr_span_read(span, &first), WEIR_E_BUSY);
	rig_wait(rig, rig_record(rig->a));
	assert_int_equal(wr_span_read(span, &first), WEIR_OK);
	wr_span_arm(span, rig->a);
	rig_store(rig, rig->a, 1, 0);
	second = times_of(rig, span, rig->a);
	assert_true(second.begin >= first.end - tolerance());
}

RIG_BODY(t15_a_span_may_be_dropped_while_its_work_runs)
{
	struct wr_span *ended = span_on(rig, rig->a), *begun = span_on(rig, rig->b),
		       *armed = span_on(rig, rig->c);

	rig_store(rig, rig->a, 1, 5 * MS);
	rig_add(rig, rig->b, 1, 5 * MS);
	assert_true(wr_span_end(ended));
	wr_span_drop(ended);
	wr_span_drop(begun);
	wr_span_drop(armed);
	wr_span_drop(NULL);
	rig_add(rig, rig->c, 1, 0); /* no span is left on it */
	rig_wait(rig, rig_record(rig->b));
}

/* An enqueueing that waits is a part of compute in which nothing is computed. */
RIG_BODY(t15_enqueueing_that_takes_long_counts_as_blocked)
{
	struct wr_sim_knobs slow = {.work_max = MS, .blocked = 1000};
	struct wr_span *span = span_on(rig, rig->a);
	struct wr_span_times times;

	if (!rig_is("sim")) {
		wr_span_drop(span);
		return;
	}
	wr_system_set_knobs(rig->system, &slow);
	rig_store(rig, rig->a, 1, 0);
	without_delays(rig);
	rig_add(rig, rig->a, 1, 0);
	times = times_of(rig, span, rig->a);
	assert_int_equal(times.blocked, 4 * MS + 1);
}

static weir_status refuse_timer(void *self, int device, void *stream, void *timer)
{
	(void)self;
	(void)device;
	(void)stream;
	(void)timer;
	return wr_fail(WEIR_E_FAILED, "no timer today");
}

RIG_BODY(t15_a_timer_that_was_not_recorded_is_told_when_the_span_is_read)
{
	struct wr_span *span = span_on(rig, rig->a);
	struct wr_span_times times;

	rig_own_backend(rig)->timer_record = refuse_timer;
	rig_store(rig, rig->a, 1, 0);
	assert_true(wr_span_end(span));
	assert_int_equal(wr_span_read(span, &times), WEIR_E_FAILED);
	assert_string_equal(weir_last_error(), "no timer today");
	wr_span_drop(span);
	assert_int_equal(rig_read(rig, rig->a), 1); /* the work is not affected */
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(t15_a_span_is_as_long_as_its_work),
	cmocka_unit_test(t15_a_wait_before_the_first_work_is_not_part_of_the_span),
	cmocka_unit_test(t15_a_wait_behind_the_first_work_is_part_of_the_span),
	cmocka_unit_test(t15_a_copy_begins_a_span),
	cmocka_unit_test(t15_without_work_a_span_does_not_begin),
	cmocka_unit_test(t15_a_span_is_read_when_its_work_is_complete_and_used_again),
	cmocka_unit_test(t15_a_span_may_be_dropped_while_its_work_runs),
	cmocka_unit_test(t15_enqueueing_that_takes_long_counts_as_blocked),
	cmocka_unit_test(t15_a_timer_that_was_not_recorded_is_told_when_the_span_is_read),
};

const struct contract_part contract_timers = {tests, sizeof tests / sizeof *tests};
