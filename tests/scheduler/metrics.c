/* The metrics of a run for Prometheus (report/metrics.c). What a client sees of them: tests/cli/metrics.py.
 */
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
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
