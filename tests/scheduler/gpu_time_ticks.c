/* T15: which ticks are timed; and a timer that fails ends nothing but the timing. */
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/status.h"
#include "gpu_time_rig.h"

/* --- which ticks --- */

static void run_sampled(void)
{
	struct rig *rig = observed("a:call count=40 -> end", 8);

	ON("a", one_ms);
	run_and_destroy(rig);
	assert_int_equal(span_count("a"), 6);
	for (size_t i = 0; i < 6; i++) {
		assert_int_equal(span_of("a", i)->tick, i ? 8 * i - 1 : 3);
		assert_int_equal(length_of(span_of("a", i)), 1 * MS);
	}
	assert_int_equal(seen.completed[entity_number("a")], 6);
}

TEST(t15_one_tick_of_n_is_timed_and_the_4th_of_a_run_that_may_be_shorter)
{
	(void)state_;
	rig_in_world(1, run_sampled);
}

static void run_off(void)
{
	struct rig *rig = observed("a:call count=100 -> end", WEIR_NONE);

	ON("a", one_ms);
	run_and_destroy(rig);
	assert_int_equal(seen.count, 0);
}

TEST(t15_off_times_nothing)
{
	(void)state_;
	rig_in_world(1, run_off);
}

static void run_by_default(void)
{
	struct rig *rig = observed("a:call count=130 -> end", 0);

	ON("a", one_ms);
	run_and_destroy(rig);
	assert_int_equal(span_count("a"), 6);
	for (size_t i = 0; i < 6; i++)
		assert_int_equal(span_of("a", i)->tick, (4 << i) - 1);
}

TEST(t15_by_default_one_tick_of_64_is_timed)
{
	(void)state_;
	rig_in_world(1, run_by_default);
}

static weir_status take_it(struct rig *rig, weir_context *context)
{
	(void)rig;
	(void)context;
	return WEIR_OK;
}

static void run_far_ahead(void)
{
	struct rig *rig = observed("a:call count=40 in_flight=0 -> b:call", 1);
	weir_entity_counts counts;

	ON("a", one_ms);
	ON("b", take_it);
	assert_int_equal(rig_run(rig), WEIR_OK);
	counts = rig_counts(rig, "a");
	assert_int_equal(counts.ticks, 40);
	assert_true(span_count("a") >= 16 && span_count("a") < 40);
	for (size_t i = 0; i < span_count("a"); i++)
		assert_int_equal(length_of(span_of("a", i)), 1 * MS);
	rig_destroy(rig);
}

TEST(t15_ticks_beyond_the_bound_are_not_timed)
{
	(void)state_;
	rig_in_world(1, run_far_ahead);
}

static void run_twice(void)
{
	struct rig *rig = observed("a:call count=4 -> end", 1);

	ON("a", one_ms);
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_int_equal(span_count("a"), 4);
	run_and_destroy(rig);
	assert_int_equal(span_count("a"), 8);
	assert_int_equal(span_of("a", 4)->tick, 0);
}

TEST(t15_s08_the_next_run_is_timed_alike)
{
	(void)state_;
	rig_in_world(1, run_twice);
}

/* Ticks that enqueue nothing have nothing to be timed, and cost no bound. */
static weir_status every_second(struct rig *rig, weir_context *context)
{
	if (rig_tick(context) % 2)
		return one_ms(rig, context);
	return weir_context_emit(context, 0, rig_number(context, 0));
}

static void run_every_second(void)
{
	struct rig *rig = observed("a:call count=60 -> end", 1);

	ON("a", every_second);
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_true(span_count("a") > 0);
	for (size_t i = 0; i < span_count("a"); i++)
		assert_int_equal(span_of("a", i)->tick % 2, 1);
	rig_destroy(rig);
}

TEST(t15_a_tick_without_device_work_has_no_span)
{
	(void)state_;
	rig_in_world(1, run_every_second);
}

/* --- real threads --- */

static _Atomic unsigned completed, worked;

static weir_status counter_open(const struct wr_trace_options *options, void **self)
{
	(void)options;
	*self = &completed;
	return WEIR_OK;
}

static void count_complete(void *self, int64_t at, unsigned lane, uint32_t entity, uint64_t tick)
{
	(void)self;
	(void)at;
	(void)lane;
	(void)entity;
	(void)tick;
	wr_fetch_add(&completed, 1);
}

static void count_work(void *self, int64_t at, unsigned lane, uint32_t entity, uint64_t tick,
		       const char *stream, uint32_t queue, int64_t begin, int64_t end,
		       enum wr_trace_source source)
{
	rig_ignore_work(self, at, lane, entity, tick, stream, queue, begin, end, source);
	wr_fetch_add(&worked, 1);
}

static const struct wr_observer counter = {
	.name = "counter", .open = counter_open, .device_work = count_work, .complete = count_complete};

static weir_status work_a_little(struct rig *rig, weir_context *context)
{
	(void)rig;
	return kernel(context, 20 * US);
}

static void run_on_threads(void)
{
	struct rig *rig = rig_of("a:call count=100 -> b:call -> end gate=in; c:call count=100 -> d:end");

	rig->options.gpu_time = 1;
	rig_make(rig);
	assert_int_equal(rig_observe(rig, &counter), WEIR_OK);
	wr_store(&completed, 0);
	wr_store(&worked, 0);
	ON("a", work_a_little);
	ON("b", work_a_little);
	ON("c", work_a_little);
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_true(wr_load(&completed) > 0);
	assert_int_equal(wr_load(&completed), wr_load(&worked)); /* one stream a tick */
	rig_destroy(rig);
}

TEST(t15_every_timed_tick_is_complete_before_the_run_is_over)
{
	(void)state_;
	rig_everywhere(run_on_threads);
}

/* --- what fails --- */

static struct {
	_Atomic unsigned lines;
	char text[200];
} said;

static void note_said(weir_log_level level, int64_t at, const char *line, void *arg)
{
	(void)at;
	(void)arg;
	if (level > WEIR_LOG_WARN)
		return;
	wr_fetch_add(&said.lines, 1);
	snprintf(said.text, sizeof said.text, "%s", line);
}

static unsigned refuse_from; /* the number of calls that succeed */

static weir_status refuse(void)
{
	return refuse_from-- ? WEIR_OK : wr_fail(WEIR_E_FAILED, "no timer today");
}

static struct rig *refusing;

static weir_status create_refused(void *self, int device, void **out)
{
	weir_status status = refuse();

	return status ? status : rig_real_backend(refusing)->timer_create(self, device, out);
}

static weir_status record_refused(void *self, int device, void *stream, void *timer)
{
	weir_status status = refuse();

	return status ? status : rig_real_backend(refusing)->timer_record(self, device, stream, timer);
}

static weir_status read_refused(void *self, int device, void *begin, void *end, int64_t *begun,
				int64_t *ended)
{
	weir_status status = refuse();

	return status ? status
		      : rig_real_backend(refusing)->timer_read(self, device, begin, end, begun, ended);
}

static int refused_call;

static void run_refused(void)
{
	struct rig *rig = refusing = observed("a:call count=10 -> end; b:call count=10 -> x:end", 1);
	struct wr_backend *own = rig_own_backend(rig);

	refuse_from = 5;
	wr_store(&said.lines, 0);
	weir_log_set(note_said, NULL);
	if (refused_call == 0)
		own->timer_create = create_refused;
	else if (refused_call == 1)
		own->timer_record = record_refused;
	else
		own->timer_read = read_refused;
	ON("a", one_ms);
	ON("b", one_ms);
	assert_int_equal(rig_run(rig), WEIR_OK);
	weir_log_set(NULL, NULL);
	assert_int_equal(rig_ticks(rig, "end"), 10);
	assert_in_range(wr_load(&said.lines), 1, 2); /* once for each entity */
	assert_says(said.text, ": its GPU time is not measured any more in this run: no timer today");
	assert_true(seen.count < 20);
	rig_restore_backend(rig);
	rig_destroy(rig);
}

TEST(t15_e01_a_timer_that_fails_ends_the_timing_and_not_the_run)
{
	(void)state_;
	for (refused_call = 0; refused_call < 3; refused_call++)
		rig_in_world(1, run_refused);
}

static unsigned creates;

/* The spans of the beginning (one for each entity) are made, and every third later one. */
static weir_status create_busy(void *self, int device, void **out)
{
	unsigned n = creates++;

	return n < 4 || n % 3 == 0 ? rig_real_backend(refusing)->timer_create(self, device, out)
				   : WEIR_E_BUSY;
}

static void run_busy(void)
{
	struct rig *rig = refusing = observed("a:call count=20 in_flight=0 -> b:call", 1);

	rig_own_backend(rig)->timer_create = create_busy;
	creates = 0;
	wr_store(&said.lines, 0);
	weir_log_set(note_said, NULL);
	ON("a", one_ms);
	ON("b", take_it);
	assert_int_equal(rig_run(rig), WEIR_OK);
	weir_log_set(NULL, NULL);
	assert_int_equal(rig_ticks(rig, "a"), 20);
	assert_int_equal(wr_load(&said.lines), 0);
	assert_in_range(span_count("a"), 1, 19);
	for (size_t i = 0; i < span_count("a"); i++)
		assert_int_equal(length_of(span_of("a", i)), 1 * MS);
	rig_restore_backend(rig);
	rig_destroy(rig);
}

TEST(t15_a_tick_is_not_timed_on_a_device_whose_timers_another_thread_measures)
{
	(void)state_;
	rig_in_world(1, run_busy);
}

static void run_without_timers(void)
{
	struct rig *rig = observed("a:call count=10 -> end", 1);

	rig_own_backend(rig)->timer_create = NULL;
	ON("a", one_ms);
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_int_equal(seen.count, 0);
	rig_restore_backend(rig);
	rig_destroy(rig);
}

TEST(t15_a_device_without_timers_runs)
{
	(void)state_;
	rig_in_world(1, run_without_timers);
}

static void refuse_option(int gpu_time)
{
	struct rig *rig = rig_of("source ticks=1 -> end");

	rig->options.gpu_time = gpu_time;
	rig->options.backend = "sim";
	assert_int_equal(weir_scheduler_create(rig->graph, &rig->options, &rig->scheduler), WEIR_E_INVALID);
	assert_says(weir_last_error(), "use one tick of at most 1000000, or WEIR_NONE");
	rig_destroy(rig);
}

static void refuse_options(void)
{
	refuse_option(-2);
	refuse_option(1000001);
}

TEST(t15_e06_a_wrong_option_is_refused)
{
	(void)state_;
	rig_in_world(1, refuse_options);
}

/* --- a run that is cut short while timed work is on the device --- */

static weir_status a_long_one(struct rig *rig, weir_context *context)
{
	(void)rig;
	if (rig_tick(context) == 3)
		return weir_context_fail(context, "it is enough");
	return kernel(context, 100 * MS);
}

static void run_cut_short(void)
{
	struct rig *rig = observed("a:call count=10 -> end", 1);

	ON("a", a_long_one);
	assert_int_equal(rig_run(rig), WEIR_E_FAILED);
	assert_true(span_count("a") < 4);
	rig_destroy(rig);
	assert_int_equal(seen.late, 0);
}

TEST(t15_e04_spans_of_a_run_that_was_cut_short_are_kept_until_their_work_has_ended)
{
	(void)state_;
	rig_in_world(1, run_cut_short);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(t15_one_tick_of_n_is_timed_and_the_4th_of_a_run_that_may_be_shorter),
		cmocka_unit_test(t15_off_times_nothing),
		cmocka_unit_test(t15_by_default_one_tick_of_64_is_timed),
		cmocka_unit_test(t15_ticks_beyond_the_bound_are_not_timed),
		cmocka_unit_test(t15_s08_the_next_run_is_timed_alike),
		cmocka_unit_test(t15_a_tick_without_device_work_has_no_span),
		cmocka_unit_test(t15_every_timed_tick_is_complete_before_the_run_is_over),
		cmocka_unit_test(t15_e01_a_timer_that_fails_ends_the_timing_and_not_the_run),
		cmocka_unit_test(t15_a_tick_is_not_timed_on_a_device_whose_timers_another_thread_measures),
		cmocka_unit_test(t15_a_device_without_timers_runs),
		cmocka_unit_test(t15_e06_a_wrong_option_is_refused),
		cmocka_unit_test(
			t15_e04_spans_of_a_run_that_was_cut_short_are_kept_until_their_work_has_ended),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
