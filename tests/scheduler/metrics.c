/* The metrics of a run for Prometheus (report/metrics.c). What a client sees of them: tests/cli/metrics.py.
 */
#include <stdlib.h>
#include <string.h>

#include "rig.h"

#define TEST(name) static void name(void **state_)

/* The caller frees it. */
static char *metrics_of(struct rig *rig)
{
	char *text = NULL;

	assert_int_equal(weir_scheduler_print_metrics(rig->scheduler, &text), WEIR_OK);
	return text;
}

static void assert_all(struct rig *rig, const char *const *parts)
{
	char *text = metrics_of(rig);

	for (; *parts; parts++)
		assert_says(text, *parts);
	weir_text_free(text);
}

/* The length of a line, or of what a sample has before its value. */
static size_t named(const char *line)
{
	size_t length = strcspn(line, "\n");

	while (*line != '#' && line[length] != ' ')
		length--;
	return length;
}

static void assert_no_sample_twice(const char *text)
{
	for (const char *line = text; *line; line = strchr(line, '\n') + 1)
		for (const char *other = strchr(line, '\n') + 1; *other; other = strchr(other, '\n') + 1)
			assert_true(strncmp(other, line, named(line) + 1) != 0);
}

TEST(e05_a_run_that_nothing_observes_has_its_counters_and_no_times)
{
	static const char *const parts[] = {
		"weir_running 0\n",
		"weir_ticks_total{entity=\"p\"} 5\n",
		"weir_frames_total{entity=\"end\"} 5\n",
		"weir_queue_pushed_total{queue=\"1\",from=\"p.out\",to=\"end.in\"} 5\n",
		"weir_queue_messages{queue=\"0\",from=\"source.out\",to=\"p.in\"} 0\n",
		NULL};
	struct rig *rig = rig_of("source ticks=5 -> p:pass -> end");
	char *text;

	(void)state_;
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_all(rig, parts);
	text = metrics_of(rig);
	assert_null(strstr(text, "_seconds"));
	assert_no_sample_twice(text);
	weir_text_free(text);
	rig_destroy(rig);
}

TEST(t16_observed_ends_are_in_a_histogram_whose_last_bucket_has_all)
{
	static const char *const parts[] = {
		"weir_path_latency_seconds_bucket{path=\"source > p > end\",le=\"+Inf\"} 5\n",
		"weir_path_latency_seconds_count{path=\"source > p > end\"} 5\n",
		"weir_compute_seconds_bucket{entity=\"p\",le=\"34.359738368\"} 5\n",
		"weir_wait_seconds_total{entity=\"end\",cause=\"messages\",on=\"in\"} ", NULL};
	struct rig *rig = rig_observed("source ticks=5 period=10ms -> p:pass -> end");
	char *text;

	(void)state_;
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_all(rig, parts);
	text = metrics_of(rig);
	assert_no_sample_twice(text);
	weir_text_free(text);
	rig_destroy(rig);
}

/* On `sim` time is virtual and exact: the second message waits for 10 ms, the first does not.
 */
TEST(t16_a_value_is_in_the_buckets_above_it)
{
	static const char *const parts[] = {
		"weir_path_latency_seconds_bucket{path=\"source > end\",le=\"0.008388608\"} 1\n",
		"weir_path_latency_seconds_bucket{path=\"source > end\",le=\"0.016777216\"} 2\n", NULL};
	struct rig *rig = rig_observed("source ticks=2 -> end capacity=2 period=10ms");

	(void)state_;
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_all(rig, parts);
	rig_destroy(rig);
}

/* 40 s are above the last bound, and in the bucket without one. */
TEST(t16_a_value_above_all_bounds_is_in_the_last_bucket_alone)
{
	static const char *const parts[] = {
		"weir_path_latency_seconds_bucket{path=\"source > end\",le=\"34.359738368\"} 1\n",
		"weir_path_latency_seconds_bucket{path=\"source > end\",le=\"+Inf\"} 2\n", NULL};
	struct rig *rig = rig_observed("source ticks=2 -> end capacity=2 period=40s");

	(void)state_;
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_all(rig, parts);
	rig_destroy(rig);
}

TEST(xb60_a_graph_without_a_sink_has_no_frames)
{
	struct rig *rig = rig_of("s:spin count=2");
	char *text;

	(void)state_;
	assert_int_equal(rig_run(rig), WEIR_OK);
	text = metrics_of(rig);
	assert_null(strstr(text, "weir_frames_total"));
	weir_text_free(text);
	rig_destroy(rig);
}

TEST(e05_two_inlets_of_a_port_are_told_apart)
{
	static const char *const parts[] = {"delivered_total{queue=\"0\",from=\"inlet\",to=\"end.in\"} 1\n",
					    "delivered_total{queue=\"1\",from=\"inlet\",to=\"end.in\"} 0\n",
					    NULL};
	weir_message *message;
	weir_inlet *inlets[2];
	struct rig *rig;

	(void)state_;
	rig_backend = "host";
	rig = rig_of("end");
	rig_backend = "sim";
	for (int i = 0; i < 2; i++)
		assert_int_equal(weir_graph_add_inlet(rig->graph, "end.in", &inlets[i]), WEIR_OK);
	rig_start(rig);
	assert_int_equal(weir_message_create_empty(rig->graph, &message), WEIR_OK);
	assert_int_equal(weir_inlet_push(inlets[0], message, 0), WEIR_OK);
	for (int i = 0; i < 2; i++)
		weir_inlet_close(inlets[i]);
	assert_int_equal(rig_wait(rig), WEIR_OK);
	assert_all(rig, parts);
	rig_destroy(rig);
}

TEST(s03_pools_are_told_in_blocks)
{
	static const char *const parts[] = {"weir_pool_capacity{pool=\"m\",unit=\"blocks\"} 4\n",
					    "weir_pool_used{pool=\"m\",unit=\"blocks\"} 0\n",
					    "weir_pool_waits_total{pool=\"m\",unit=\"blocks\"} 0\n", NULL};
	struct rig *rig;

	(void)state_;
	rig_resources = "{\"m\": {\"type\": \"memory_pool\", \"block_size\": 64, \"blocks\": 4}}";
	rig = rig_of("source ticks=2 pool=m -> end");
	rig_resources = NULL;
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_all(rig, parts);
	rig_destroy(rig);
}

/* --- waits --- */

static struct rig *run_observed(const char *json, const weir_operator *kind)
{
	const weir_operator *const operators[] = {kind, NULL};
	struct rig *rig = rig_of_json(json, operators);

	rig->options.observe = WEIR_OBSERVE_STATISTICS;
	assert_int_equal(rig_run(rig), WEIR_OK);
	return rig;
}

static const weir_port outputs[] = {{.size = sizeof(weir_port), .name = "out"}, {.name = NULL}};

/* Only `a` waits for memory: `c` is slow, and has room. */
static const char two_pools[] =
	"{\"weir\":1,\"resources\":{\"m\":{\"type\":\"memory_pool\",\"place\":\"host\",\"block_size\":64,"
	"\"blocks\":1},\"n\":{\"type\":\"memory_pool\",\"place\":\"host\",\"block_size\":64,\"blocks\":8}},"
	"\"entities\":[{\"name\":\"a\",\"operator\":\"blocks\",\"resources\":[\"m\"],\"conditions\":[{"
	"\"type\":"
	"\"count\",\"count\":3}]},{\"name\":\"b\",\"operator\":\"blocks\",\"resources\":[\"n\"],"
	"\"conditions\":"
	"[{\"type\":\"count\",\"count\":3}]},{\"name\":\"c\",\"operator\":\"sink\",\"ports\":{\"in\":"
	"{\"capacity\":4}},\"conditions\":[{\"type\":\"periodic\",\"period\":\"10ms\"}]},{\"name\":\"d\","
	"\"operator\":\"sink\"}],\"connections\":[[\"a.out\",\"c.in\"],[\"b.out\",\"d.in\"]]}";

static weir_status emit_a_block(weir_context *context, void *state)
{
	static const int64_t shape[] = {8};
	const weir_tensor tensor = {.size = sizeof tensor,
				    .dimensions = 1,
				    .shape = shape,
				    .code = 1,
				    .bits = 8,
				    .lanes = 1,
				    .device = WEIR_DEVICE_HOST};
	weir_message *message = NULL;
	weir_status status = weir_context_create_tensor(context, &tensor, WEIR_TENSOR_HOST, &message);

	(void)state;
	return status ? status : weir_context_emit(context, 0, message);
}

TEST(s03_what_is_waited_for_a_pool_is_told_of_that_pool)
{
	static const weir_operator blocks = {
		.size = sizeof blocks, .name = "blocks", .outputs = outputs, .compute = emit_a_block};
	struct rig *rig = run_observed(two_pools, &blocks);
	char *text = NULL, *m, *n;

	(void)state_;
	assert_int_equal(weir_scheduler_print_statistics(rig->scheduler, &text), WEIR_OK);
	m = strstr(text, "{\"name\":\"m\",\"unit\"");
	n = strstr(text, "{\"name\":\"n\",\"unit\"");
	assert_non_null(m);
	assert_non_null(n);
	assert_says(strstr(m, "\"wait_time\":"), "\"wait_time\":{\"count\":2,");
	assert_null(strstr(n, "\"wait_time\":"));
	weir_text_free(text);
	rig_destroy(rig);
}

/* First its p lets `end` wait, then its q. */
static weir_status tell_in_turns(weir_context *context, void *state)
{
	weir_entity *end = weir_graph_entity(weir_context_graph(context), "end");
	uint64_t tick = weir_context_tick(context);
	weir_message *message = NULL;
	weir_status status = weir_message_create_empty(weir_context_graph(context), &message);

	(void)state;
	assert_int_equal(weir_entity_tell(end, "q", tick == 1 ? WEIR_TOLD_WAIT : WEIR_TOLD_READY), WEIR_OK);
	assert_int_equal(weir_entity_tell(end, "p", tick ? WEIR_TOLD_READY : WEIR_TOLD_WAIT), WEIR_OK);
	return status ? status : weir_context_emit(context, 0, message);
}

static void assert_one_sample(const char *text, const char *name, int least_us, int most_us)
{
	const char *at = strstr(text, name);

	assert_non_null(at);
	assert_in_range(strtod(at + strlen(name), NULL) * 1e6, least_us, most_us);
	assert_null(strstr(at + 1, name));
}

/* Two words for one cause are two waits, and one sample. */
TEST(t16_waits_for_one_cause_are_one_sample)
{
	static const char json[] =
		"{\"weir\":1,\"entities\":[{\"name\":\"a\",\"operator\":\"teller\",\"conditions\":[{\"type\":"
		"\"periodic\",\"period\":\"10ms\"},{\"type\":\"count\",\"count\":3}]},{\"name\":\"end\","
		"\"operator\":"
		"\"sink\",\"ports\":{\"in\":{\"capacity\":3}},\"conditions\":[{\"type\":\"boolean\",\"name\":"
		"\"p\","
		"\"enable_tick\":false},{\"type\":\"boolean\",\"name\":\"q\"}]}],"
		"\"connections\":[[\"a.out\",\"end.in\"]]}";
	static const weir_operator teller = {
		.size = sizeof teller, .name = "teller", .outputs = outputs, .compute = tell_in_turns};
	static const char one[] = "weir_wait_seconds_total{entity=\"end\",cause=\"told\",on=\"\"} ";
	struct rig *rig = run_observed(json, &teller);
	char *text = NULL;

	(void)state_;
	assert_int_equal(weir_scheduler_print_statistics(rig->scheduler, &text), WEIR_OK);
	assert_says(text, "\"of\":\"p\"");
	assert_says(text, "\"of\":\"q\"");
	weir_text_free(text);
	assert_int_equal(weir_scheduler_print_metrics(rig->scheduler, &text), WEIR_OK);
	assert_one_sample(text, one, 18000, 22000); /* both */
	weir_text_free(text);
	rig_destroy(rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(e05_a_run_that_nothing_observes_has_its_counters_and_no_times),
		cmocka_unit_test(t16_observed_ends_are_in_a_histogram_whose_last_bucket_has_all),
		cmocka_unit_test(t16_a_value_is_in_the_buckets_above_it),
		cmocka_unit_test(t16_a_value_above_all_bounds_is_in_the_last_bucket_alone),
		cmocka_unit_test(xb60_a_graph_without_a_sink_has_no_frames),
		cmocka_unit_test(e05_two_inlets_of_a_port_are_told_apart),
		cmocka_unit_test(s03_pools_are_told_in_blocks),
		cmocka_unit_test(s03_what_is_waited_for_a_pool_is_told_of_that_pool),
		cmocka_unit_test(t16_waits_for_one_cause_are_one_sample),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
