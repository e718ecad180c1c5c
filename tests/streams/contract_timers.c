/* The contract of timers, by the spans over them (T15). */
#include "base/clock.h"
#include "base/status.h"
#include "base/thread.h"
#include "contract.h"
#include "tests/calls.h"

#define MS 1000000
#define US 1000

/*
 * How far a device's clock may be from the host's: nothing where the host's clock is read. The threads of a
 * fake device reach an anchor when a busy machine lets them.
 */
static int64_t tolerance(void)
{
	if (!rig_is("cuda"))
		return 0;
	return rig_on_gpu() ? 50 * US : 1000 * (int64_t)MS;
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
	struct wr_span_times times = {0};

	assert_true(wr_span_end(span));
	rig_wait(rig, rig_record(stream));
	assert_int_equal(wr_span_read(span, &times), WEIR_OK);
	wr_span_drop(span);
	return times;
}

/* Work on cell 1 or 2, beside that of the other streams. */
static void work_beside(struct rig *rig, weir_stream *stream, int cell, int64_t ns)
{
	rig->cell += cell;
	rig_store(rig, stream, 1, ns);
	rig->cell -= cell;
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
	assert_true(after.end - after.begin >= 2 * MS - 2 * MS / 20);
	if (rig_is("sim"))
		assert_int_equal(after.end - after.begin, 2 * MS);
}

RIG_BODY(t15_a_wait_behind_the_first_work_is_part_of_the_span)
{
	struct wr_span *span = span_on(rig, rig->a);
	struct wr_span_times times;

	rig_add(rig, rig->a, 1, 0);
	assert_int_equal(weir_stream_wait(rig->b, rig_record(rig->a)), WEIR_OK);
	rig_store(rig, rig->b, 1, 10 * MS);
	assert_int_equal(weir_stream_wait(rig->a, rig_record(rig->b)), WEIR_OK);
	times = times_of(rig, span, rig->a);
	assert_true(times.end - times.begin >= 9 * MS);
}

/* --- truths: exact in a simulated world, within 5 % and a launch on a GPU, not too short on a busy host ---
 */

static void assert_length_and(const struct wr_span_times *times, int64_t ns, int64_t enqueueing)
{
	int64_t length = times->end - times->begin, tolerated = ns / 20 + 10 * US;

	if (rig_is("sim"))
		assert_int_equal(length, ns);
	assert_true(length >= ns - tolerated);
	if (rig_on_gpu())
		assert_true(length <= ns + tolerated + enqueueing);
}

static void assert_length(const struct wr_span_times *times, int64_t ns)
{
	assert_length_and(times, ns, 0);
}

/*
 * Work on a stream that is idle: it reaches the beginning of the span while the host still enqueues the work,
 * which takes 5 us, or 100 us after a pause. *enqueueing is how long.
 */
static struct wr_span *work_from_idle(struct rig *rig, int64_t ns, int64_t *enqueueing)
{
	struct wr_span *span = span_on(rig, rig->a);
	int64_t begun = wr_now();

	rig_store(rig, rig->a, 1, ns);
	*enqueueing = wr_now() - begun;
	return span;
}

/* A kernel is loaded at its first launch, which the span would include. */
static void warm(struct rig *rig)
{
	without_delays(rig);
	rig_store(rig, rig->a, 0, 0);
	rig_add(rig, rig->a, 0, 0);
	rig_wait(rig, rig_record(rig->a));
}

RIG_BODY(t15_truth_the_host_is_done_long_before_a_kernel_of_5_ms)
{
	struct wr_span *span;
	struct wr_span_times times;
	int64_t enqueueing;

	warm(rig);
	span = work_from_idle(rig, 5 * MS, &enqueueing);
	times = times_of(rig, span, rig->a);
	assert_length_and(&times, 5 * MS, enqueueing);
}

RIG_BODY(t15_truth_3_ms_on_the_host_and_a_kernel_of_1_ms)
{
	struct wr_span *span;
	struct wr_span_times times;
	int64_t enqueueing, begun;

	warm(rig);
	span = span_on(rig, rig->a);
	wr_thread_sleep(3 * MS);
	begun = wr_now();
	rig_store(rig, rig->a, 1, 1 * MS);
	enqueueing = wr_now() - begun;
	times = times_of(rig, span, rig->a);
	assert_length_and(&times, 1 * MS, enqueueing);
}

RIG_BODY(t15_truth_1_ms_behind_producers_of_4_and_6_ms)
{
	struct wr_span *producers[2], *span;
	struct wr_span_times times, before[2];

	warm(rig);
	producers[0] = span_on(rig, rig->b);
	producers[1] = span_on(rig, rig->c);
	span = span_on(rig, rig->a);
	work_beside(rig, rig->b, 1, 4 * MS);
	work_beside(rig, rig->c, 2, 6 * MS);
	assert_int_equal(weir_stream_wait(rig->a, rig_record(rig->b)), WEIR_OK);
	assert_int_equal(weir_stream_wait(rig->a, rig_record(rig->c)), WEIR_OK);
	rig_add(rig, rig->a, 1, 1 * MS);
	times = times_of(rig, span, rig->a);
	before[0] = times_of(rig, producers[0], rig->b);
	before[1] = times_of(rig, producers[1], rig->c);
	assert_length(&times, 1 * MS);
	assert_true(times.begin >= before[1].begin + 6 * MS - 6 * MS / 20);
}

/* A span is not how long the device was busy. */
RIG_BODY(t15_truth_100_kernels_of_2_us_one_every_50_us)
{
	struct wr_span *span;
	struct wr_span_times times;
	int64_t begun, host;

	warm(rig);
	span = span_on(rig, rig->a);
	begun = wr_now();
	for (int i = 0; i < 99; i++) {
		rig_add(rig, rig->a, 1, 2 * US);
		wr_thread_sleep(50 * US);
	}
	host = wr_now() - begun;
	rig_add(rig, rig->a, 1, 2 * US);
	times = times_of(rig, span, rig->a);
	if (rig_is("sim") || rig_on_gpu())
		assert_length(&times, host + 2 * US);
	else /* threads that stand for a device may begin late */
		assert_true(times.end - times.begin >= 100 * 2 * US);
}

/* Two spans on one stream do not overlap, and the second does not count the first. */
RIG_BODY(t15_truth_two_ticks_on_one_stream)
{
	struct wr_span *first, *second;
	struct wr_span_times times[2];
	int64_t enqueueing;

	warm(rig);
	first = work_from_idle(rig, 4 * MS, &enqueueing);
	assert_true(wr_span_end(first));
	second = span_on(rig, rig->a);
	rig_add(rig, rig->a, 1, 2 * MS);
	times[1] = times_of(rig, second, rig->a);
	times[0] = times_of(rig, first, rig->a);
	assert_length_and(&times[0], 4 * MS, enqueueing);
	assert_length(&times[1], 2 * MS);
	assert_true(times[1].begin >= times[0].end - tolerance());
}

/* The anchor of a device's clock is renewed while times are read. */
RIG_BODY(t15_truth_times_stay_on_the_clock_of_the_host)
{
	struct wr_span_times times;

	warm(rig);
	for (int i = 0; i < (rig_is("cuda") ? 30 : 2); i++) {
		int64_t before = wr_now(), enqueueing;
		struct wr_span *span = work_from_idle(rig, 1 * MS, &enqueueing);

		times = times_of(rig, span, rig->a);
		assert_true(times.begin >= before - tolerance() && times.end <= wr_now() + tolerance());
		assert_length_and(&times, 1 * MS, enqueueing);
		wr_thread_sleep(100 * MS);
	}
}

/* One launch of work that was captured from two streams: its span is on the stream of the launch (T13). */
RIG_BODY(t15_t13_truth_two_streams_in_one_executable)
{
	weir_stream *streams[] = {rig->a, rig->b};
	struct wr_capture *capture = NULL;
	struct wr_executable *executable = NULL;
	struct wr_span *span, *other;
	struct wr_span_times times;

	warm(rig);
	assert_int_equal(wr_capture_create(rig->system, &capture), WEIR_OK);
	assert_int_equal(wr_capture_begin(capture, streams, 2), WEIR_OK);
	rig_add(rig, rig->a, 1, 3 * MS);
	assert_int_equal(wr_capture_order(capture, rig->a, rig->b), WEIR_OK);
	work_beside(rig, rig->b, 1, 5 * MS);
	assert_int_equal(wr_capture_order(capture, rig->b, rig->a), WEIR_OK);
	assert_int_equal(wr_capture_end(capture, &executable), WEIR_OK);
	assert_int_equal(wr_executable_launch(executable, rig->a), WEIR_OK); /* the first one uploads it */
	rig_wait(rig, rig_record(rig->a));
	span = span_on(rig, rig->a);
	other = span_on(rig, rig->b);
	assert_int_equal(wr_executable_launch(executable, rig->a), WEIR_OK);
	times = times_of(rig, span, rig->a);
	assert_false(wr_span_end(other));
	wr_span_drop(other);
	assert_length(&times, 8 * MS);
	wr_executable_drop(executable);
	wr_capture_destroy(capture);
}

/* --- without timers: what the poller of the flags sees --- */

static void begin_untimed(struct rig *rig, struct wr_span **out)
{
	assert_int_equal(wr_span_create_untimed(rig->system, 0, out), WEIR_OK);
	assert_false(wr_span_timed(*out));
	wr_span_arm(*out, rig->a);
}

static weir_fence end_untimed(struct rig *rig, struct wr_span *span)
{
	weir_fence fence;

	assert_true(wr_span_end(span));
	fence = rig_record_flag(rig->a);
	wr_span_note_fence(span, rig->a);
	return fence;
}

/* The poller looks again after a sixteenth of the wait, and sleeps end late. */
static void assert_bounds(struct wr_span *span, int64_t ns)
{
	struct wr_span_times times = {0};
	int64_t length;

	assert_int_equal(wr_span_read(span, &times), WEIR_OK);
	assert_true(times.known);
	length = times.end - times.begin;
	assert_true(length >= ns - (rig_is("cuda") ? ns / 20 : 0));
	assert_true(!(rig_is("sim") || rig_on_gpu()) || length <= ns + ns / 2 + MS);
	wr_span_drop(span);
}

RIG_BODY(t15_g04_truth_by_flag_two_ticks_on_one_stream)
{
	struct wr_span *spans[2];
	struct wr_span_times times;
	weir_fence fences[2];

	if (wr_flags_use(rig->system, WR_FLAGS_ALL))
		return;
	warm(rig);
	begin_untimed(rig, &spans[0]);
	rig_store(rig, rig->a, 1, 8 * MS);
	fences[0] = end_untimed(rig, spans[0]);
	begin_untimed(rig, &spans[1]);
	rig_add(rig, rig->a, 1, 4 * MS);
	fences[1] = end_untimed(rig, spans[1]);
	assert_int_equal(wr_span_read(spans[1], &times), WEIR_E_BUSY);
	rig_arm_flag(rig, 1, fences[0]);
	rig_arm_flag(rig, 2, fences[1]);
	rig_poll_until_idle(rig);
	assert_bounds(spans[0], 8 * MS);
	assert_bounds(spans[1], 4 * MS); /* not of the first */
}

RIG_BODY(t15_g04_what_the_poller_did_not_see_is_not_known)
{
	struct wr_span_times times = {0};
	struct wr_span *span;

	if (wr_flags_use(rig->system, WR_FLAGS_ALL))
		return;
	begin_untimed(rig, &span);
	rig_store(rig, rig->a, 1, 1 * MS);
	rig_wait(rig, end_untimed(rig, span));
	assert_int_equal(wr_span_read(span, &times), WEIR_OK);
	assert_false(times.known);
	wr_span_drop(span);
}

/* As when the record failed. */
RIG_BODY(t15_g04_of_work_whose_end_was_not_recorded_nothing_is_known)
{
	struct wr_span_times times = {0};
	struct wr_span *span;

	begin_untimed(rig, &span);
	rig_store(rig, rig->a, 1, 0);
	assert_true(wr_span_end(span));
	wr_span_note_fence(span, rig->a);
	assert_int_equal(wr_span_read(span, &times), WEIR_OK);
	assert_false(times.known);
	wr_span_drop(span);
	rig_wait(rig, rig_record(rig->a));
}

/* --- what a span is --- */

RIG_BODY(t15_a_copy_begins_a_span)
{
	struct wr_span *span = span_on(rig, rig->a);
	struct wr_span_times times;

	assert_int_equal(copy_bytes(rig->a, rig->copy, rig->cell, sizeof *rig->copy), WEIR_OK);
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
	work_beside(rig, rig->b, 1, 5 * MS);
	assert_true(wr_span_end(ended));
	wr_span_drop(ended);
	wr_span_drop(begun);
	wr_span_drop(armed);
	wr_span_drop(NULL);
	work_beside(rig, rig->c, 2, 0); /* no span is left on it */
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
	cmocka_unit_test(t15_truth_the_host_is_done_long_before_a_kernel_of_5_ms),
	cmocka_unit_test(t15_truth_3_ms_on_the_host_and_a_kernel_of_1_ms),
	cmocka_unit_test(t15_truth_1_ms_behind_producers_of_4_and_6_ms),
	cmocka_unit_test(t15_truth_100_kernels_of_2_us_one_every_50_us),
	cmocka_unit_test(t15_truth_two_ticks_on_one_stream),
	cmocka_unit_test(t15_truth_times_stay_on_the_clock_of_the_host),
	cmocka_unit_test(t15_t13_truth_two_streams_in_one_executable),
	cmocka_unit_test(t15_g04_truth_by_flag_two_ticks_on_one_stream),
	cmocka_unit_test(t15_g04_what_the_poller_did_not_see_is_not_known),
	cmocka_unit_test(t15_g04_of_work_whose_end_was_not_recorded_nothing_is_known),
	cmocka_unit_test(t15_a_copy_begins_a_span),
	cmocka_unit_test(t15_without_work_a_span_does_not_begin),
	cmocka_unit_test(t15_a_span_is_read_when_its_work_is_complete_and_used_again),
	cmocka_unit_test(t15_a_span_may_be_dropped_while_its_work_runs),
	cmocka_unit_test(t15_enqueueing_that_takes_long_counts_as_blocked),
	cmocka_unit_test(t15_a_timer_that_was_not_recorded_is_told_when_the_span_is_read),
};

const struct contract_part contract_timers = {tests, sizeof tests / sizeof *tests};
