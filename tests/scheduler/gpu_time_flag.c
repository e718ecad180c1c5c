/*
 * T15 without timers: what the poller of completion flags learns. The kernels note themselves when they ran,
 * so each span that is told can be compared with the truth that must lie within it.
 */
#include <string.h>

#include "base/clock.h"
#include "gpu_time_rig.h"
#include "tests/calls.h"

enum { TICKS = 40 };

static struct truth {
	int64_t began_at, ended_at;
} truths[ENTITIES][TICKS];

static struct told {
	int64_t begin, end;
	enum wr_trace_source source;
	unsigned spans, completions;
} tolds[ENTITIES][TICKS];

/* --- the observer. The events of an entity come one after the other, so it may be told by several threads
 * --- */

static weir_status teller_open(const struct wr_trace_options *options, void **self)
{
	(void)options;
	memset(tolds, 0, sizeof tolds);
	*self = tolds;
	return WEIR_OK;
}

static void tell_work(void *self, int64_t at, unsigned lane, uint32_t entity, uint64_t tick,
		      const char *stream, uint32_t queue, int64_t begin, int64_t end,
		      enum wr_trace_source source)
{
	struct told *told = &tolds[entity][tick];

	(void)self, (void)at, (void)lane, (void)stream, (void)queue;
	*told = (struct told){begin, end, source, told->spans + 1, told->completions};
}

static void tell_complete(void *self, int64_t at, unsigned lane, uint32_t entity, uint64_t tick)
{
	(void)self, (void)at, (void)lane;
	tolds[entity][tick].completions++;
}

static const struct wr_observer teller = {
	.name = "teller", .open = teller_open, .device_work = tell_work, .complete = tell_complete};

/* --- entities --- */

struct noted {
	struct truth *truth;
	int64_t ns;
};

static int note_times(const void *arguments)
{
	const struct noted *noted = arguments;

	noted->truth->began_at = wr_now();
	weir_sleep(noted->ns);
	noted->truth->ended_at = wr_now();
	return 0;
}

static const weir_kernel noting = {sizeof(weir_kernel), "note_times", note_times, NULL};

static weir_status work(struct rig *rig, weir_context *context, uint32_t entity, int64_t ns)
{
	struct noted noted = {&truths[entity][rig_tick(context)], ns};
	weir_stream *stream = current_stream(context);

	(void)rig;
	if (weir_stream_launch(stream, &noting, &noted, sizeof noted))
		return WEIR_E_DEVICE;
	return rig_emit_sum(context, 0, stream, 0, 0);
}

static weir_status work_as_first(struct rig *rig, weir_context *context)
{
	return work(rig, context, 0, 1 * MS);
}

static weir_status work_as_second(struct rig *rig, weir_context *context)
{
	return work(rig, context, 1, 1 * MS);
}

static weir_status sleep_then_work(struct rig *rig, weir_context *context)
{
	weir_stream *stream = current_stream(context);

	HOLDS(rig, stream != NULL);
	weir_sleep(3 * MS);
	return work(rig, context, 0, 1 * MS);
}

/* In a simulated world: the device begins its work without a delay, and enqueueing takes no time. */
static bool prompt;

static struct rig *told_of(const char *text, const char *signal, int gpu_time)
{
	struct rig *rig = rig_of(text);

	rig->options.signal = signal;
	rig->options.gpu_time = gpu_time;
	if (prompt)
		rig_with_knobs(rig, signal, (struct wr_sim_knobs){0});
	else
		rig_make(rig);
	assert_int_equal(rig_observe(rig, &teller), WEIR_OK);
	return rig;
}

/* How many ticks of the entity were told, each once, and with the truth within its span. */
static unsigned count_told(uint32_t entity, enum wr_trace_source source)
{
	unsigned count = 0;

	for (size_t i = 0; i < TICKS; i++) {
		const struct told *told = &tolds[entity][i];

		assert_true(told->spans <= 1 && told->completions == told->spans);
		if (!told->spans || told->source != source)
			continue;
		assert_true(told->begin <= truths[entity][i].began_at);
		assert_true(told->end >= truths[entity][i].ended_at);
		count++;
	}
	return count;
}

static int64_t longest_told(uint32_t entity)
{
	int64_t longest = 0;

	for (size_t i = 0; i < TICKS; i++)
		if (tolds[entity][i].end - tolds[entity][i].begin > longest)
			longest = tolds[entity][i].end - tolds[entity][i].begin;
	return longest;
}

/* --- what a span is --- */

static void run_truths(void)
{
	struct rig *rig = told_of("a:call count=40 -> end capacity=1", "flag", WEIR_NONE);

	ON("a", work_as_first);
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_true(count_told(0, WR_TRACE_POLLER) > 0);
	rig_destroy(rig);
}

TEST(t15_g04_what_the_poller_saw_contains_the_work)
{
	(void)state_;
	rig_in_worlds(20, run_truths);
	rig_on_host(run_truths);
}

static void run_ahead(void)
{
	struct rig *rig = told_of("a:call count=40 -> end capacity=4", "flag", WEIR_NONE);

	ON("a", work_as_first);
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_true(count_told(0, WR_TRACE_POLLER) > 0);
	rig_destroy(rig);
}

/* Of work that waits behind that of the tick before, the wait is not part. */
static void run_ahead_alone(void)
{
	run_ahead();
	assert_in_range(longest_told(0), 1 * MS, 1300 * US);
}

TEST(t15_g04_a_span_begins_behind_what_the_stream_had_before)
{
	(void)state_;
	rig_in_worlds(20, run_ahead);
	rig_on_host(run_ahead);
	prompt = true;
	rig_in_world(1, run_ahead_alone);
	prompt = false;
}

static void run_late_kernel(void)
{
	struct rig *rig = told_of("a:call count=10 -> end", "flag", WEIR_NONE);

	ON("a", sleep_then_work);
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_true(count_told(0, WR_TRACE_POLLER) > 0);
	assert_in_range(longest_told(0), 1 * MS, 1300 * US);
	rig_destroy(rig);
}

TEST(t15_g04_what_compute_does_before_its_first_kernel_is_not_in_it)
{
	(void)state_;
	prompt = true;
	rig_in_world(1, run_late_kernel);
	prompt = false;
}

static void run_behind_a_producer(void)
{
	struct rig *rig = told_of("a:call count=10 -> b:call -> end", "flag", WEIR_NONE);

	ON("a", work_as_first);
	ON("b", work_as_second);
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_int_equal(count_told(0, WR_TRACE_POLLER), 0); /* no entity waits for its fence */
	assert_true(count_told(1, WR_TRACE_POLLER) > 0);
	assert_true(longest_told(1) > 3 * MS / 2); /* the wait for the input is in it */
	rig_destroy(rig);
}

TEST(t15_g04_a_wait_for_inputs_on_the_device_is_in_it)
{
	(void)state_;
	rig_in_world(1, run_behind_a_producer);
}

/* --- and timers --- */

static void run_sampled(void)
{
	struct rig *rig = told_of("a:call count=40 -> end", "flag", 8);

	ON("a", work_as_first);
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_int_equal(count_told(0, WR_TRACE_TIMERS), 6);
	assert_int_equal(tolds[0][3].source, WR_TRACE_TIMERS);
	for (size_t i = 7; i < TICKS; i += 8)
		assert_int_equal(tolds[0][i].source, WR_TRACE_TIMERS);
	assert_true(count_told(0, WR_TRACE_POLLER) > 0);
	rig_destroy(rig);
}

TEST(t15_g04_ticks_that_are_not_timed_are_seen_by_the_poller)
{
	(void)state_;
	rig_in_world(1, run_sampled);
	rig_on_host(run_sampled);
}

static void run_by_callback(void)
{
	struct rig *rig = told_of("a:call count=40 -> end", "callback", WEIR_NONE);

	ON("a", work_as_first);
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_int_equal(count_told(0, WR_TRACE_POLLER), 0);
	rig_destroy(rig);
}

TEST(t15_without_flags_and_timers_nothing_is_known)
{
	(void)state_;
	rig_in_world(1, run_by_callback);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(t15_g04_what_the_poller_saw_contains_the_work),
		cmocka_unit_test(t15_g04_a_span_begins_behind_what_the_stream_had_before),
		cmocka_unit_test(t15_g04_what_compute_does_before_its_first_kernel_is_not_in_it),
		cmocka_unit_test(t15_g04_a_wait_for_inputs_on_the_device_is_in_it),
		cmocka_unit_test(t15_g04_ticks_that_are_not_timed_are_seen_by_the_poller),
		cmocka_unit_test(t15_without_flags_and_timers_nothing_is_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
