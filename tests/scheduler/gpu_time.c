/* T15: whose GPU time it is, and how much. In a simulated world the device adds nothing, so figures are
 * exact. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/status.h"
#include "rig_inside.h"
#include "rig_streams.h"

#define TEST(name) static void name(void **state_)

/* --- what is observed --- */

enum { SPANS = 512, ENTITIES = 8 };

struct seen_span {
	uint32_t entity;
	uint64_t tick;
	const char *stream;
	int64_t begin, end;
};

static struct {
	char names[ENTITIES][16];
	struct seen_span spans[SPANS];
	size_t count;
	int64_t submitted_at, submit[ENTITIES], ready_at[ENTITIES]; /* of the last tick */
	uint64_t completed[ENTITIES];                               /* ticks */
	int64_t blocked;
	bool ended;
	unsigned late; /* rows after the end of the run, or a tick that is complete before its spans are known
			*/
} seen;

static weir_status observer_open(const struct wr_trace_options *options, void **self)
{
	(void)options;
	memset(&seen, 0, sizeof seen);
	*self = &seen;
	return WEIR_OK;
}

static void see_entity(void *self, uint32_t entity, const char *name)
{
	(void)self;
	if (entity < ENTITIES)
		snprintf(seen.names[entity], sizeof seen.names[entity], "%s", name);
}

static void see_begin(void *self, int64_t at, unsigned workers)
{
	(void)self;
	(void)at;
	(void)workers;
	seen.ended = false;
}

static void see_end(void *self, int64_t at, unsigned workers)
{
	(void)self;
	(void)at;
	(void)workers;
	seen.ended = true;
}

static void see_ready(void *self, int64_t at, unsigned lane, uint32_t entity)
{
	(void)self;
	(void)lane;
	seen.ready_at[entity] = at;
}

static void see_tick(void *self, int64_t at, unsigned lane, uint32_t entity, uint64_t tick)
{
	(void)self;
	(void)lane;
	(void)entity;
	(void)tick;
	seen.submitted_at = at;
}

static void see_tick_end(void *self, int64_t at, unsigned lane, uint32_t entity, uint64_t tick)
{
	(void)self;
	(void)lane;
	(void)tick;
	seen.submit[entity] = at - seen.submitted_at;
}

static void see_work(void *self, int64_t at, unsigned lane, uint32_t entity, uint64_t tick,
		     const char *stream, int64_t begin, int64_t end, enum wr_trace_source source)
{
	(void)self;
	(void)lane;
	seen.late += seen.ended || end > at || begin > end || source != WR_TRACE_TIMERS;
	assert_true(seen.count < SPANS);
	seen.spans[seen.count++] = (struct seen_span){entity, tick, stream, begin, end};
}

static void see_blocked(void *self, int64_t at, unsigned lane, uint32_t entity, uint64_t tick, int64_t spent)
{
	(void)self;
	(void)at;
	(void)lane;
	(void)entity;
	(void)tick;
	seen.blocked += spent;
}

static void see_complete(void *self, int64_t at, unsigned lane, uint32_t entity, uint64_t tick)
{
	(void)self;
	(void)at;
	(void)lane;
	seen.completed[entity]++;
	seen.late += !seen.count || seen.spans[seen.count - 1].entity != entity ||
		     seen.spans[seen.count - 1].tick != tick;
}

static const struct wr_observer observer = {
	.name = "test",
	.open = observer_open,
	.entity = see_entity,
	.run_begin = see_begin,
	.run_end = see_end,
	.ready = see_ready,
	.tick_begin = see_tick,
	.tick_end = see_tick_end,
	.device_work = see_work,
	.blocked = see_blocked,
	.complete = see_complete,
};

static uint32_t entity_number(const char *name)
{
	uint32_t i = 0;

	while (i < ENTITIES && strcmp(seen.names[i], name))
		i++;
	assert_true(i < ENTITIES);
	return i;
}

static size_t span_count(const char *name)
{
	size_t count = 0;

	for (size_t i = 0; i < seen.count; i++)
		count += seen.spans[i].entity == entity_number(name);
	return count;
}

/* The n-th span of the entity. */
static const struct seen_span *span_of(const char *name, size_t n)
{
	for (size_t i = 0; i < seen.count; i++)
		if (seen.spans[i].entity == entity_number(name) && !n--)
			return &seen.spans[i];
	fail_msg("%s has too few spans", name);
	return NULL;
}

static int64_t length_of(const struct seen_span *span)
{
	return span->end - span->begin;
}

/* --- a run --- */

/* The simulated device begins its work without a delay, and enqueueing takes no time. */
static struct rig *observed(const char *text, int gpu_time)
{
	struct rig *rig = rig_of(text);

	rig->options.gpu_time = gpu_time;
	rig_with_knobs(rig, NULL, (struct wr_sim_knobs){0});
	assert_int_equal(rig_observe(rig, &observer), WEIR_OK);
	return rig;
}

static void run_and_destroy(struct rig *rig)
{
	assert_int_equal(rig_run(rig), WEIR_OK);
	rig_destroy(rig);
	assert_int_equal(seen.late, 0);
}

#define ON(entity, function) rig_on(rig, entity, function)

static weir_status kernel(weir_context *context, int64_t ns)
{
	return rig_emit_sum(context, 0, weir_context_stream(context), 0, ns);
}

static void cpu(int64_t ns)
{
	weir_sleep(ns);
}

/* --- the truths --- */

static weir_status three_us_then_5_ms(struct rig *rig, weir_context *context)
{
	(void)rig;
	cpu(3 * US);
	return kernel(context, 5 * MS);
}

static void run_async(void)
{
	struct rig *rig = observed("a:call count=1 -> end", WEIR_GPU_TIME_ALL);

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
	weir_stream *stream = weir_context_stream(context);

	(void)rig;
	cpu(3 * MS);
	return rig_emit_sum(context, 0, stream, 0, 1 * MS);
}

static void run_cpu_then_kernel(void)
{
	struct rig *rig = observed("a:call count=3 -> end", WEIR_GPU_TIME_ALL);

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

static weir_status one_ms(struct rig *rig, weir_context *context)
{
	(void)rig;
	return kernel(context, 1 * MS);
}

static void run_consumer(void)
{
	struct rig *rig = observed("a:call count=3 -> b:call -> end", WEIR_GPU_TIME_ALL);

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

	HOLDS(rig, !weir_context_receive_stream(context, 0, true, false, &stream));
	HOLDS(rig, !weir_context_receive_stream(context, 1, true, false, &stream));
	return rig_emit_sum(context, 0, stream, 0, 1 * MS);
}

static void run_fan_in(void)
{
	struct rig *rig =
		observed("a:call count=1 -> c:call -> end; b:call count=1 -> c.in2", WEIR_GPU_TIME_ALL);

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

	HOLDS(rig, !weir_context_receive_stream(context, 0, true, false, &stream));
	HOLDS(rig, !rig_add(context, stream, 0, 1 * MS, &first)); /* begins at 4 ms, ends at 5 ms */
	HOLDS(rig, !weir_context_receive_stream(context, 1, true, false, &stream));
	weir_message_unref(first);
	return rig_emit_sum(context, 0, stream, 0, 1 * MS); /* from 6 ms to 7 ms */
}

static void run_late_wait(void)
{
	struct rig *rig =
		observed("a:call count=1 -> c:call -> end; b:call count=1 -> c.in2", WEIR_GPU_TIME_ALL);

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
	weir_stream *stream = weir_context_stream(context);
	static int64_t cell;
	struct rig_sum sum = {&cell, {NULL, NULL}, 1, 2 * US};

	for (int i = 0; i < 99; i++) {
		HOLDS(rig, !weir_stream_launch(stream, &rig_adder, &sum, sizeof sum));
		cpu(50 * US);
	}
	return rig_emit_sum(context, 0, stream, 0, 2 * US);
}

static void run_short_ones(void)
{
	struct rig *rig = observed("a:call count=1 -> end", WEIR_GPU_TIME_ALL);

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
	struct rig *rig = observed("a:call count=4 -> x:end; b:call count=4 -> y:end", WEIR_GPU_TIME_ALL);

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
	cpu(1 * MS);
	status = weir_context_replay(context, "k", 1, enqueue_two_ms, NULL);
	return status ? status : weir_context_emit(context, 0, rig_number(context, 0));
}

static void run_replay(void)
{
	struct rig *rig = observed("p:call count=8 -> a:call -> end", WEIR_GPU_TIME_ALL);

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

/* --- several streams of an entity --- */

static weir_status on_two_streams(struct rig *rig, weir_context *context)
{
	weir_stream *current = weir_context_stream(context), *other = NULL;
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
	struct rig *rig = observed("a:call count=3 -> end", WEIR_GPU_TIME_ALL);

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

/* --- which ticks --- */

static void run_sampled(void)
{
	struct rig *rig = observed("a:call count=40 -> end", 8);

	ON("a", one_ms);
	run_and_destroy(rig);
	assert_int_equal(span_count("a"), 5);
	for (size_t i = 0; i < 5; i++) {
		assert_int_equal(span_of("a", i)->tick, 8 * i + 7);
		assert_int_equal(length_of(span_of("a", i)), 1 * MS);
	}
	assert_int_equal(seen.completed[entity_number("a")], 5);
}

TEST(t15_one_tick_of_n_is_timed)
{
	(void)state_;
	rig_in_world(1, run_sampled);
}

static void run_off(void)
{
	struct rig *rig = observed("a:call count=100 -> end", WEIR_GPU_TIME_OFF);

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
	struct rig *rig = observed("a:call count=130 -> end", WEIR_GPU_TIME_DEFAULT);

	ON("a", one_ms);
	run_and_destroy(rig);
	assert_int_equal(span_count("a"), 2);
	assert_int_equal(span_of("a", 1)->tick, 127);
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
	struct rig *rig = observed("a:call count=40 in_flight=0 -> b:call", WEIR_GPU_TIME_ALL);
	weir_entity_counts counts;

	ON("a", one_ms);
	ON("b", take_it);
	assert_int_equal(rig_run(rig), WEIR_OK);
	counts = rig_counts(rig, "a");
	assert_int_equal(counts.ticks, 40);
	assert_true(span_count("a") >= 16 && span_count("a") < 40);
	for (size_t i = 0; i < span_count("a"); i++)
		assert_int_equal(length_of(span_of("a", i)), 1 * MS);
	assert_int_equal(rig_gpu_ticks(rig, "a", false), span_count("a"));
	assert_int_equal(rig_gpu_ticks(rig, "a", true), 40 - span_count("a"));
	rig_destroy(rig);
}

TEST(t15_ticks_beyond_the_bound_are_not_timed_and_counted)
{
	(void)state_;
	rig_in_world(1, run_far_ahead);
}

static void run_twice(void)
{
	struct rig *rig = observed("a:call count=4 -> end", WEIR_GPU_TIME_ALL);

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
	struct rig *rig = observed("a:call count=60 -> end", WEIR_GPU_TIME_ALL);

	ON("a", every_second);
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_true(span_count("a") > 0);
	for (size_t i = 0; i < span_count("a"); i++)
		assert_int_equal(span_of("a", i)->tick % 2, 1);
	assert_int_equal(rig_gpu_ticks(rig, "a", false), span_count("a"));
	rig_destroy(rig);
}

TEST(t15_a_tick_without_device_work_has_no_span)
{
	(void)state_;
	rig_in_world(1, run_every_second);
}

/* --- real threads --- */

static _Atomic unsigned completed;

static void count_complete(void *self, int64_t at, unsigned lane, uint32_t entity, uint64_t tick)
{
	(void)self;
	(void)at;
	(void)lane;
	(void)entity;
	(void)tick;
	wr_fetch_add(&completed, 1);
}

static void ignore_work(void *self, int64_t at, unsigned lane, uint32_t entity, uint64_t tick,
			const char *stream, int64_t begin, int64_t end, enum wr_trace_source source)
{
	(void)self;
	(void)at;
	(void)lane;
	(void)entity;
	(void)tick;
	(void)stream;
	(void)begin;
	(void)end;
	(void)source;
}

static const struct wr_observer counter = {
	.name = "counter", .open = observer_open, .device_work = ignore_work, .complete = count_complete};

static weir_status work_a_little(struct rig *rig, weir_context *context)
{
	(void)rig;
	return kernel(context, 20 * US);
}

static void run_on_threads(void)
{
	struct rig *rig = rig_of("a:call count=100 -> b:call -> end gate=in; c:call count=100 -> d:end");

	rig->options.gpu_time = WEIR_GPU_TIME_ALL;
	rig_make(rig);
	assert_int_equal(rig_observe(rig, &counter), WEIR_OK);
	wr_store(&completed, 0);
	ON("a", work_a_little);
	ON("b", work_a_little);
	ON("c", work_a_little);
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_int_equal(wr_load(&completed), rig_gpu_ticks(rig, "a", false) +
						      rig_gpu_ticks(rig, "b", false) +
						      rig_gpu_ticks(rig, "c", false));
	assert_int_equal(rig_gpu_ticks(rig, "a", false) + rig_gpu_ticks(rig, "a", true), 100);
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

static void run_without_timers(void)
{
	struct rig *rig = observed("a:call count=10 -> end", WEIR_GPU_TIME_ALL);

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
	assert_says(weir_last_error(), "use one tick of at most 1000000, or WEIR_GPU_TIME_OFF");
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
	struct rig *rig = observed("a:call count=10 -> end", WEIR_GPU_TIME_ALL);

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
		cmocka_unit_test(t15_compute_returns_long_before_its_kernel_ends),
		cmocka_unit_test(t15_what_compute_does_before_its_first_kernel_is_no_gpu_time),
		cmocka_unit_test(t15_t03_a_consumer_is_not_charged_for_its_producer),
		cmocka_unit_test(t15_t03_waits_for_several_inputs_are_no_gpu_time),
		cmocka_unit_test(t15_a_wait_behind_the_first_kernel_lies_within_the_span),
		cmocka_unit_test(t15_a_span_is_not_how_long_the_device_was_busy),
		cmocka_unit_test(t15_each_entity_is_charged_for_its_own_work),
		cmocka_unit_test(t15_t13_a_replayed_tick_has_the_span_of_an_enqueued_one),
		cmocka_unit_test(t15_each_stream_of_an_entity_has_a_span),
		cmocka_unit_test(t15_one_tick_of_n_is_timed),
		cmocka_unit_test(t15_off_times_nothing),
		cmocka_unit_test(t15_by_default_one_tick_of_64_is_timed),
		cmocka_unit_test(t15_ticks_beyond_the_bound_are_not_timed_and_counted),
		cmocka_unit_test(t15_s08_the_next_run_is_timed_alike),
		cmocka_unit_test(t15_a_tick_without_device_work_has_no_span),
		cmocka_unit_test(t15_every_timed_tick_is_complete_before_the_run_is_over),
		cmocka_unit_test(t15_e01_a_timer_that_fails_ends_the_timing_and_not_the_run),
		cmocka_unit_test(t15_a_device_without_timers_runs),
		cmocka_unit_test(t15_e06_a_wrong_option_is_refused),
		cmocka_unit_test(
			t15_e04_spans_of_a_run_that_was_cut_short_are_kept_until_their_work_has_ended),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
