/* Statistics of graphs and runs of many forms: outlets, folded paths, pools, failures, other observers
 * before. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "rig_inside.h"
#include "rig_streams.h"
#include "tests/calls.h"

#define TEST(name) static void name(void **state_)

static struct rig_path path_of(struct rig *rig, size_t i)
{
	struct rig_path path;

	assert_true(rig_path(rig->scheduler, i, &path));
	return path;
}

static char *text_of(struct rig *rig)
{
	char *text = NULL;

	assert_int_equal(weir_scheduler_print_statistics(rig->scheduler, &text), WEIR_OK);
	return text;
}

static void assert_text_says(struct rig *rig, const char *const *parts)
{
	char *text = text_of(rig);

	for (; *parts; parts++)
		assert_says(text, *parts);
	weir_text_free(text);
}

static void assert_metrics_say(struct rig *rig, const char *part)
{
	char *text = NULL;

	assert_int_equal(weir_scheduler_print_metrics(rig->scheduler, &text), WEIR_OK);
	assert_says(text, part);
	weir_text_free(text);
}

/* --- ends --- */

/* One in four goes to the second output. */
static weir_status emit_to_one_of_two(struct rig *rig, weir_context *context)
{
	(void)rig;
	return weir_context_emit(context, rig_tick(context) % 4 == 3, rig_number(context, rig_tick(context)));
}

TEST(t16_a_path_ends_at_the_outlets_that_the_tick_emitted_to)
{
	static const char *const parts[] = {"\"outlet:a.out\"", "\"outlet:a.out2\"", "\"receiver\":null",
					    "\"sender\":\"a\"", NULL};
	struct rig *rig;
	weir_outlet *first, *second;

	(void)state_;
	rig_backend = "host";
	rig = rig_observed("a:call count=8");
	first = rig_outlet(rig, "a.out", 8, 0);
	second = rig_outlet(rig, "a.out2", 8, 0);
	rig_on(rig, "a", emit_to_one_of_two);
	rig_start(rig);
	for (int64_t i = 0; i < 8; i++)
		assert_int_equal(rig_take(i % 4 == 3 ? second : first, SECOND * 10), i);
	assert_int_equal(rig_wait(rig), WEIR_OK);
	assert_string_equal(path_of(rig, 0).entities[1], "outlet:a.out");
	assert_int_equal(path_of(rig, 0).count, 6);
	assert_int_equal(path_of(rig, 0).latency.count, 6);
	assert_string_equal(path_of(rig, 1).entities[1], "outlet:a.out2");
	assert_int_equal(path_of(rig, 1).count, 2);
	assert_int_equal(path_of(rig, 1).latency.count, 2);
	assert_text_says(rig, parts);
	rig_destroy(rig);
	rig_backend = "sim";
}

/* The outlet's finisher waits for the device, and is on no path. */
TEST(t16_a_path_to_an_outlet_ends_with_the_work_of_its_last_entity)
{
	struct rig_path path;
	struct rig *rig;
	weir_outlet *outlet;

	(void)state_;
	rig_backend = "host";
	rig = rig_observed("a:call count=3");
	rig->options.gpu_time = 1;
	outlet = rig_outlet(rig, "a.out", 4, 0);
	rig_on(rig, "a", rig_emit_on_current);
	rig_start(rig);
	for (int64_t i = 0; i < 3; i++)
		assert_int_equal(rig_take(outlet, SECOND * 10), i);
	assert_int_equal(rig_wait(rig), WEIR_OK);
	path = path_of(rig, 0);
	assert_int_equal(path.entity_count, 2);
	assert_int_equal(path.count, 3);
	assert_int_equal(path.latency.count, 3);
	rig_destroy(rig);
	rig_backend = "sim";
}

static weir_status fail_at_tick_2(struct rig *rig, weir_context *context)
{
	(void)rig;
	return rig_tick(context) == 2 ? weir_context_fail(context, "enough") : WEIR_OK;
}

static void fail_the_sink(void)
{
	static const char *const parts[] = {"\"ending\":\"operator failed\"", NULL};
	struct rig *rig = rig_observed("source ticks=9 -> a:call");

	rig_on(rig, "a", fail_at_tick_2);
	assert_int_equal(rig_run(rig), WEIR_E_FAILED);
	assert_int_equal(path_of(rig, 0).count, 2);
	assert_text_says(rig, parts);
	rig_destroy(rig);
}

TEST(t16_e01_a_tick_that_fails_ends_no_path)
{
	(void)state_;
	rig_in_world(1, fail_the_sink);
}

/* The device works in every second tick. */
static weir_status work_in_odd_ticks(struct rig *rig, weir_context *context)
{
	(void)rig;
	return rig_tick(context) % 2 ? rig_emit_sum(context, 0, current_stream(context), 0, 1 * MS) : WEIR_OK;
}

static void leave_the_stream_idle(void)
{
	struct rig *rig = rig_observed("source ticks=6 -> a:call");

	rig->options.gpu_time = WEIR_NONE;
	rig_on(rig, "a", work_in_odd_ticks);
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_int_equal(path_of(rig, 0).count, 6);
	assert_int_equal(path_of(rig, 0).latency.count, 3);
	rig_destroy(rig);
}

TEST(t16_a_tick_that_leaves_its_stream_idle_ends_its_path_itself)
{
	(void)state_;
	rig_in_world(1, leave_the_stream_idle);
}

static void skip_two_ticks(void)
{
	struct rig *rig = rig_observed("source ticks=6 -> a:call");

	rig->options.gpu_time = 1;
	rig->options.skip = 2;
	rig_on(rig, "a", rig_emit_on_current);
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_int_equal(path_of(rig, 0).count, 4);
	assert_int_equal(path_of(rig, 0).latency.count, 4);
	rig_destroy(rig);
}

TEST(t16_device_work_of_ticks_that_are_left_out_ends_no_path)
{
	(void)state_;
	rig_in_world(1, skip_two_ticks);
}

/* --- signals --- */

static void refuse_signals(void)
{
	static const char *const parts[] = {"\"kind\":\"callback\"", NULL};
	struct rig *rig = rig_observed("a:source ticks=5 work=1ms -> x:end gate=in; "
				       "b:source ticks=5 work=1ms -> y:end gate=in; "
				       "c:source ticks=5 work=1ms -> z:end gate=in");

	rig_with_knobs(rig, "callback", (struct wr_sim_knobs){0});
	rig_bound_signals(rig, 1);
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_string_equal(rig_text(rig, "x"), "0 1 2 3 4");
	assert_string_equal(rig_text(rig, "z"), "0 1 2 3 4");
	assert_text_says(rig, parts);
	rig_destroy(rig);
}

TEST(g02_an_offer_of_a_signal_wakes_an_observed_entity_as_others)
{
	(void)state_;
	rig_in_world(1, refuse_signals);
}

/* --- more ways than are named --- */

enum { STEPS = 7, TICKS = 5 };

/* Each step has two ways to the next: 2^7 paths. */
static void ladder_text(char *text, size_t room)
{
	size_t at = (size_t)snprintf(text, room, "m0:source ticks=%d", TICKS);

	for (int i = 0; i < STEPS; i++)
		at += (size_t)snprintf(text + at, room - at,
				       "; m%d -> l%d:pass -> m%d:pass; m%d -> r%d:pass -> m%d.in2", i, i,
				       i + 1, i, i, i + 1);
	snprintf(text + at, room - at, "; m%d -> end", STEPS);
}

static void run_a_ladder(void)
{
	static const char *const parts[] = {
		"\"entities\":[\"end\"],\"other\":true",
		"paths beyond 64 of an entity and 4096 in all are one path 'other' of each sink", NULL};
	char text[1024];
	struct rig *rig;
	struct rig_path path;
	size_t paths = 0, others = 0;

	ladder_text(text, sizeof text);
	rig = rig_observed(text);
	assert_int_equal(rig_run(rig), WEIR_OK);
	for (; rig_path(rig->scheduler, paths, &path); paths++) {
		assert_int_equal(path.count, TICKS);
		assert_int_equal(path.latency.count, TICKS);
		assert_int_equal(path.entity_count, path.other ? 1 : 2 * STEPS + 2);
		others += path.other;
	}
	assert_int_equal(paths, 65);
	assert_int_equal(others, 1);
	assert_text_says(rig, parts);
	assert_metrics_say(rig, "weir_path_latency_seconds_count{path=\"other > end\"} 5\n");
	rig_destroy(rig);
}

TEST(t16_paths_beyond_the_bound_are_counted_as_one)
{
	(void)state_;
	rig_in_world(1, run_a_ladder);
}

/* --- what the text has --- */

TEST(before_the_first_run_nothing_was_measured)
{
	static const char *const parts[] = {"\"ending\":\"not started\"", "\"workers\":[]", "\"paths\":[]",
					    NULL};
	struct rig *rig = rig_observed("source ticks=1 -> end");

	(void)state_;
	rig_make(rig);
	assert_text_says(rig, parts);
	rig_destroy(rig);
}

/* A pool without blocks, of which a tick takes as many bytes as its condition says. */
static struct rig *observed_with_pools(void)
{
	weir_description *description = NULL;
	struct rig *rig;

	rig_resources = "{\"m\": {\"type\": \"memory_pool\", \"block_size\": 64, \"blocks\": 4}, "
			"\"n\": {\"type\": \"memory_pool\", \"place\": \"host\", \"max_size\": 4096}}";
	rig = rig_described("source ticks=2 pool=m -> p:pass pool=n -> end", &description);
	rig_resources = NULL;
	rig->options.observe = WEIR_OBSERVE_STATISTICS;
	assert_int_equal(weir_description_put(description, "/entities/1/conditions/-",
					      "{\"type\": \"memory_available\", \"min_bytes\": 8}"),
			 WEIR_OK);
	assert_int_equal(weir_graph_create(rig->registry, description, &rig->graph), WEIR_OK);
	weir_description_destroy(description);
	return rig;
}

TEST(s03_the_pools_are_told_in_blocks_or_in_bytes)
{
	static const char *const parts[] = {"{\"name\":\"m\",\"unit\":\"blocks\",\"capacity\":4,",
					    "{\"name\":\"n\",\"unit\":\"bytes\",\"capacity\":4096,", NULL};
	struct rig *rig = observed_with_pools();

	(void)state_;
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_text_says(rig, parts);
	assert_metrics_say(rig, "weir_pool_capacity{pool=\"n\",unit=\"bytes\"} 4096\n");
	rig_destroy(rig);
}

TEST(t15_the_graph_says_how_many_ticks_are_timed_unless_the_program_does)
{
	static const char *const parts[][2] = {{"\"gpu_time\":\"sample:8\"", NULL},
					       {"\"gpu_time\":\"all\"", NULL}};

	(void)state_;
	for (int given = 0; given < 2; given++) {
		weir_description *description = NULL;
		struct rig *rig = rig_described("source ticks=1 -> end", &description);

		rig->options.observe = WEIR_OBSERVE_STATISTICS;
		rig->options.gpu_time = given ? 1 : 0;
		assert_int_equal(weir_description_put(description, "/scheduler/gpu_time", "\"sample:8\""),
				 WEIR_OK);
		assert_int_equal(weir_graph_create(rig->registry, description, &rig->graph), WEIR_OK);
		weir_description_destroy(description);
		assert_int_equal(rig_run(rig), WEIR_OK);
		assert_text_says(rig, parts[given]);
		rig_destroy(rig);
	}
}

/* --- instances; without memory --- */

/* Instances that wait for their bound and for the device, a pool, signals, a wait that stands. */
static const char one_of_each[] =
	"{\"weir\":1,\"resources\":{\"m\":{\"type\":\"memory_pool\",\"place\":\"host\",\"block_size\":64,"
	"\"blocks\":8}},"
	"\"entities\":[{\"name\":\"a\",\"operator\":\"ping\",\"parameters\":{\"stamp\":true},\"resources\":["
	"\"m\"],"
	"\"conditions\":[{\"type\":\"count\",\"count\":12}]},"
	"{\"name\":\"x\",\"operator\":\"spin\",\"instances\":2,\"max_in_flight\":2},"
	"{\"name\":\"y\",\"operator\":\"delay\",\"instances\":3,\"parameters\":{\"duration\":\"2ms\"}},"
	"{\"name\":\"b\",\"operator\":\"sink\"},{\"name\":\"e\",\"operator\":\"sink\"},"
	"{\"name\":\"c\",\"operator\":\"sink\",\"conditions\":[{\"type\":\"boolean\",\"enable_tick\":false}]}"
	","
	"{\"name\":\"d\",\"operator\":\"recording\",\"conditions\":[{\"type\":\"count\",\"count\":1}]}],"
	"\"connections\":[[\"a.out\",\"x.in\"],[\"x.out\",\"y.in\"],[\"y.out\",\"b.in\"],[\"y.out\",\"e.in\"]"
	",[\"d.out\",\"c.in\"]"
	"]}";

typedef weir_status text_fn(weir_scheduler *scheduler, char **out);

/* Returns true if there were at most n allocations. */
static bool text_with_failure(struct rig *rig, text_fn *print, const char *whole, int64_t n)
{
	int64_t before = wr_memory_count();
	char *text = NULL;
	weir_status status;

	wr_memory_fail_at(n, false);
	status = print(rig->scheduler, &text);
	wr_memory_fail_at(-1, false);
	if (status) {
		assert_int_equal(status, WEIR_E_NOMEM);
		assert_null(text);
	} else {
		assert_string_equal(text, whole);
	}
	weir_text_free(text);
	return wr_memory_count() - before <= n;
}

static weir_status emit_and_record(weir_context *context, void *state)
{
	weir_message *message = NULL;
	weir_status status = weir_message_create_empty(weir_context_graph(context), &message);

	(void)state;
	status = status ? status : weir_context_emit(context, 0, message);
	return status ? status : weir_context_set_record(context, "{\"emitted\": 1}");
}

static const weir_port recording_out[] = {{.size = sizeof(weir_port), .name = "out"}, {.name = NULL}};
static const weir_operator recording = {.size = sizeof(weir_operator),
					.name = "recording",
					.help = "records what it emits",
					.outputs = recording_out,
					.compute = emit_and_record};

static struct rig *rig_of_each(void)
{
	static const weir_operator *const operators[] = {&recording, NULL};
	struct rig *rig = rig_of_json(one_of_each, operators);

	rig->options.observe = WEIR_OBSERVE_STATISTICS;
	rig->options.gpu_time = 1;
	assert_int_equal(rig_run(rig), WEIR_E_DEADLOCK);
	return rig;
}

TEST(c13_what_instances_wait_for_is_told_once_with_their_number)
{
	static const char *const parts[] = {
		"{\"cause\":\"bound\",\"on\":null,\"of\":\"in_flight\",", "\"instances\":2,\"time\"",
		"{\"cause\":\"device\",\"on\":\"in\",", "\"instances\":3,\"time\"", NULL};
	struct rig *rig = rig_of_each();
	char *text;
	int times = 0;

	(void)state_;
	assert_text_says(rig, parts);
	text = text_of(rig);
	for (const char *at = text; (at = strstr(at, parts[0])); at++)
		times++;
	assert_int_equal(times, 1);
	weir_text_free(text);
	rig_destroy(rig);
}

static weir_status wait_for_the_model(weir_context *context, void *state)
{
	(void)state;
	weir_context_count_lock(context, "the model", MS);
	return WEIR_OK;
}

static const weir_port ends_in[] = {{.size = sizeof(weir_port), .name = "in"}, {.name = NULL}};
static const weir_operator locking = {.size = sizeof(weir_operator),
				      .name = "locking",
				      .flags = WEIR_OPERATOR_INSTANCES,
				      .inputs = ends_in,
				      .compute = wait_for_the_model};
/* Three messages of one time end after 1, 2 and 3 ms in two instances in turns, and at once in another sink.
 */
static const char three_ends[] =
	"{\"weir\":1,\"entities\":[{\"name\":\"a\",\"operator\":\"ping\",\"parameters\":{\"stamp\":true},"
	"\"conditions\":[{\"type\":\"count\",\"count\":3}]},{\"name\":\"x\",\"operator\":\"spin\"},"
	"{\"name\":\"ends\",\"operator\":\"locking\",\"instances\":2},{\"name\":\"more\",\"operator\":"
	"\"sink\"},{\"name\":\"further\",\"operator\":\"sink\"}],\"connections\":[[\"a.out\",\"x.in\"],"
	"[\"x.out\",\"ends.in\"],[\"x.out\",\"more.in\"],[\"x.out\",\"further.in\"]]}";

static struct rig *run_three_ends(void)
{
	const weir_operator *const operators[] = {&locking, NULL};
	struct rig *rig = rig_of_json(three_ends, operators);

	rig->options.observe = WEIR_OBSERVE_STATISTICS;
	assert_int_equal(rig_run(rig), WEIR_OK);
	return rig;
}

TEST(c13_the_latency_of_an_entity_is_that_of_all_its_instances)
{
	static const char *const paths[] = {"[\"a\",\"x\",\"ends\"],\"count\":3,",
					    "[\"a\",\"x\",\"more\"],\"count\":3,",
					    "[\"a\",\"x\",\"further\"],\"count\":3,", NULL};
	struct rig *rig = run_three_ends();
	char *text = NULL, *at;

	(void)state_;
	assert_int_equal(weir_scheduler_print_statistics(rig->scheduler, &text), WEIR_OK);
	at = strstr(text, "\"instances\":2,\"unsent\":0,\"stamped\":{\"count\":3,");
	assert_non_null(at);
	at = strstr(at, "\"max\":");
	assert_in_range(strtoll(at + strlen("\"max\":"), NULL, 10), 2900 * 1000, 4 * MS);
	weir_text_free(text);
	assert_text_says(rig, paths);
	rig_destroy(rig);
}

static void count_locks_of_instances(void)
{
	static const char *const parts[] = {"\"lock\":{\"name\":\"the model\",\"count\":3,\"time\":3000000}",
					    NULL};
	struct rig *rig = run_three_ends();

	assert_text_says(rig, parts);
	rig_destroy(rig);
}

TEST(c13_xb62_the_locks_of_instances_are_counted_together)
{
	(void)state_;
	rig_on_host(count_locks_of_instances);
}

TEST(f40_each_text_of_a_run_is_whole_or_out_of_memory)
{
	static text_fn *const texts[] = {weir_scheduler_print_statistics, weir_scheduler_print_metrics,
					 weir_scheduler_explain_line};
	struct rig *rig = rig_of_each();

	(void)state_;
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		char *whole = NULL;
		int64_t n = 0;

		assert_int_equal(texts[i](rig->scheduler, &whole), WEIR_OK);
		while (n < 500 && !text_with_failure(rig, texts[i], whole, n))
			n++;
		assert_in_range(n, 2, 499);
		weir_text_free(whole);
	}
	rig_destroy(rig);
}

/* --- other observers before, on the same graph --- */

static void run_with(struct rig *rig, unsigned observe)
{
	if (rig->scheduler)
		assert_int_equal(weir_scheduler_destroy(rig->scheduler), WEIR_OK);
	rig->scheduler = NULL;
	rig->options.observe = observe;
	assert_int_equal(rig_run(rig), WEIR_OK);
}

TEST(b05_each_scheduler_of_a_graph_observes_it_as_its_options_say)
{
	struct rig *rig = rig_of("source ticks=3 -> a:pass -> end");
	struct rig_path path;

	(void)state_;
	for (int i = 0; i < 2; i++) {
		run_with(rig, WEIR_OBSERVE_TRACE);
		assert_false(rig_path(rig->scheduler, 0, &path));
		run_with(rig, WEIR_OBSERVE_STATISTICS);
		assert_int_equal(path_of(rig, 0).count, 3);
		assert_int_equal(path_of(rig, 0).latency.count, 3);
		run_with(rig, 0);
		assert_false(rig_path(rig->scheduler, 0, &path));
	}
	rig_destroy(rig);
}

TEST(e06_an_option_that_is_none_is_refused_by_its_value)
{
	static const struct {
		unsigned observe;
		int strict;
		const char *why;
	} cases[] = {
		{64, 0, "observe 0x40: use WEIR_OBSERVE_... bits"},
		{0, 2, "strict 2: use 1, WEIR_NONE or 0"},
		{0, WEIR_NONE - 1, "strict -2: use 1, WEIR_NONE or 0"},
	};
	struct rig *rig = rig_of("source ticks=1 -> end");

	(void)state_;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		rig->options.observe = cases[i].observe;
		rig->options.strict = cases[i].strict;
		assert_int_equal(weir_scheduler_create(rig->graph, &rig->options, &rig->scheduler),
				 WEIR_E_INVALID);
		assert_string_equal(weir_last_error(), cases[i].why);
	}
	rig_destroy(rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(t16_a_path_ends_at_the_outlets_that_the_tick_emitted_to),
		cmocka_unit_test(t16_a_path_to_an_outlet_ends_with_the_work_of_its_last_entity),
		cmocka_unit_test(t16_e01_a_tick_that_fails_ends_no_path),
		cmocka_unit_test(t16_a_tick_that_leaves_its_stream_idle_ends_its_path_itself),
		cmocka_unit_test(t16_device_work_of_ticks_that_are_left_out_ends_no_path),
		cmocka_unit_test(g02_an_offer_of_a_signal_wakes_an_observed_entity_as_others),
		cmocka_unit_test(t16_paths_beyond_the_bound_are_counted_as_one),
		cmocka_unit_test(before_the_first_run_nothing_was_measured),
		cmocka_unit_test(s03_the_pools_are_told_in_blocks_or_in_bytes),
		cmocka_unit_test(t15_the_graph_says_how_many_ticks_are_timed_unless_the_program_does),
		cmocka_unit_test(c13_what_instances_wait_for_is_told_once_with_their_number),
		cmocka_unit_test(c13_the_latency_of_an_entity_is_that_of_all_its_instances),
		cmocka_unit_test(c13_xb62_the_locks_of_instances_are_counted_together),
		cmocka_unit_test(f40_each_text_of_a_run_is_whole_or_out_of_memory),
		cmocka_unit_test(b05_each_scheduler_of_a_graph_observes_it_as_its_options_say),
		cmocka_unit_test(e06_an_option_that_is_none_is_refused_by_its_value),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
