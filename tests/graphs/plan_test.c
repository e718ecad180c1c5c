/* The plan of a valid graph: defaults, resolved names, typed values. */
#include <string.h>

#include "base/memory.h"
#include "base/nearest.h"
#include "base/text.h"
#include "base/units.h"
#include "graphs/description.h"
#include "graphs/parameter.h"
#include "graphs/plan.h"
#include "kinds.h"
#include "streams/streams.h"

static int set_up(void **state)
{
	*state = kinds_plan(good_graph, false);
	return 0;
}

static int tear_down(void **state)
{
	wr_plan_destroy(*state);
	return 0;
}

static void settings_of_the_scheduler_are_taken_over(void **state)
{
	const struct wr_plan_scheduler *scheduler = &((struct wr_plan *)*state)->scheduler;

	assert_int_equal(scheduler->workers, 4);
	assert_int_equal(scheduler->signal, WR_SIGNAL_INLINE);
	assert_string_equal(scheduler->backend, "sim");
	assert_true(scheduler->has_seed && scheduler->seed == 7);
	assert_true(scheduler->has_drain && scheduler->drain_ns == 3000000000);
	assert_true(scheduler->has_grace && scheduler->deadlock_grace_ns == -1);
	assert_true(scheduler->has_duration && scheduler->max_duration_ns == 60000000000);
	assert_true(scheduler->has_spin && scheduler->worker_spin_ns == 20000);
	assert_true(scheduler->device_memory == 1 << 30 && scheduler->host_memory == 0);
}

static void what_the_scheduler_is_not_told_stays_open(void **state)
{
	struct wr_plan *plan = kinds_plan("{\"weir\": 1, \"entities\": []}", false);

	(void)state;
	assert_string_equal(plan->name, "graph");
	assert_int_equal(plan->scheduler.workers, 0);
	assert_int_equal(plan->scheduler.signal, -1);
	assert_null(plan->scheduler.backend);
	assert_false(plan->scheduler.has_drain || plan->scheduler.has_grace || plan->scheduler.has_seed);
	assert_int_equal(plan->scheduler.device_memory, 64 << 20);
	wr_plan_destroy(plan);
}

static void ports_have_the_sizes_of_the_table_or_of_the_text(void **state)
{
	const struct wr_plan *plan = *state;
	const struct wr_plan_entity *blur = &plan->entities[1], *ring = &plan->entities[4];

	assert_int_equal(blur->inputs[0].capacity, 4);
	assert_int_equal(blur->inputs[0].take, 2);
	assert_int_equal(blur->inputs[0].policy, WEIR_POLICY_POP);
	assert_int_equal(ring->inputs[1].capacity, 4);
	assert_int_equal(ring->inputs[1].take, 2);
	assert_int_equal(ring->inputs[1].policy, WEIR_POLICY_BLOCK);
	assert_int_equal(ring->outputs[0].max_emits, 1);
	assert_true(plan->entities[3].inputs[0].take == WEIR_TAKE_ALL);
	assert_int_equal(plan->entities[3].inputs[0].connections, 2);
}

static void connections_stay_in_the_order_of_the_text(void **state)
{
	static const struct wr_plan_connection expected[] = {{0, 0, 1, 0, 0}, {1, 0, 2, 0, 0},
							     {1, 0, 3, 0, 0}, {4, 0, 5, 0, 1},
							     {5, 0, 4, 0, 0}, {5, 1, 3, 0, 0}};
	const struct wr_plan *plan = *state;

	assert_int_equal(plan->connection_count, 6);
	assert_memory_equal(plan->connections, expected, sizeof(expected));
}

static void xb10_a_value_of_another_type_is_zero_and_remembered(void **state)
{
	struct wr_plan *plan = kinds_plan(good_graph, false);
	const weir_values *blur = plan->entities[1].values;

	(void)state;
	assert_int_equal(wr_values_check(blur), WEIR_OK);
	assert_string_equal(weir_values_string(blur, "radius"), "");
	assert_int_equal(weir_values_int(blur, "edge"), 0); /* only the first one is remembered */
	assert_int_equal(wr_values_check(blur), WEIR_E_INVALID);
	assert_non_null(strstr(weir_last_error(), "'radius' as another type: use weir_values_int"));
	assert_int_equal(weir_values_at(blur, "radius", 0), 0);
	assert_int_equal(wr_values_check(blur), WEIR_E_INVALID);
	assert_int_equal(wr_values_check(blur), WEIR_OK);
	wr_plan_destroy(plan);
}

static void values_are_typed_and_defaults_filled_in(void **state)
{
	const struct wr_plan *plan = *state;
	const weir_values *read = plan->entities[0].values, *blur = plan->entities[1].values;

	assert_string_equal(weir_values_string(read, "path"), "a \"b\" \xc3\xa9\n");
	assert_int_equal(weir_values_int(read, "repeat"), 3);
	assert_false(weir_values_bool(read, "loop"));
	assert_true(weir_values_number(blur, "gain") == 1e-3);
	assert_int_equal(weir_values_int(blur, "delay"), 10000000);
	assert_int_equal(weir_values_int(blur, "memory"), 4096);
	assert_string_equal(weir_values_string(blur, "edge"), "clamp");
	assert_int_equal(weir_values_count(blur, "weights"), 2);
	assert_true(weir_values_number_at(blur, "weights", 0) == 1);
	assert_true(weir_values_number_at(blur, "weights", 1) == 0.5);
	assert_true(weir_values_number_at(blur, "weights", 2) == 0);
}

static void a_condition_that_names_a_port_replaces_its_default(void **state)
{
	const struct wr_plan *plan = *state;
	const struct wr_plan_entity *write = &plan->entities[2];

	assert_int_equal(write->condition_count, 1);
	assert_string_equal(write->conditions[0].kind->name, "cuda_stream");
	assert_false(write->conditions[0].implied);
	assert_int_equal(write->conditions[0].signal, WR_SIGNAL_CALLBACK);
	assert_int_equal(weir_values_count(write->conditions[0].values, "port"), 1);
	assert_int_equal(weir_values_at(write->conditions[0].values, "port", 0), 0);
}

static void implied_conditions_come_last_inputs_before_outputs(void **state)
{
	const struct wr_plan *plan = *state;
	const struct wr_plan_entity *ring = &plan->entities[4];

	assert_int_equal(ring->condition_count, 3); /* none for the optional ports, which are not connected */
	assert_string_equal(ring->conditions[0].name, "count");
	assert_string_equal(ring->conditions[1].name, "message_available");
	assert_string_equal(ring->conditions[2].name, "downstream_message_affordable");
	assert_true(!ring->conditions[0].implied && ring->conditions[1].implied &&
		    ring->conditions[2].implied);
	assert_int_equal(weir_values_int(ring->conditions[1].values, "min_size"), 0);
	assert_int_equal(ring->conditions[1].signal, -1);
}

static void an_optional_port_has_a_default_once_it_is_connected(void **state)
{
	const struct wr_plan *plan = *state;
	const struct wr_plan_entity *back = &plan->entities[5];

	assert_int_equal(back->condition_count, 3); /* in, out, extra */
	assert_int_equal(weir_values_int(back->conditions[2].values, "port"), 1);
}

static void a_condition_has_the_name_it_was_given(void **state)
{
	const struct wr_plan *plan = *state;

	assert_string_equal(plan->entities[0].conditions[0].name, "frames");
	assert_string_equal(plan->entities[0].conditions[1].name, "periodic");
	assert_int_equal(weir_values_int(plan->entities[0].conditions[1].values, "period"), 16666667);
}

static void open_ports_are_allowed_when_inlets_may_come(void **state)
{
	struct wr_plan *plan =
		kinds_plan("{\"weir\": 1, \"entities\": [{\"name\": \"a\", \"operator\": \"relay\"}]}", true);

	(void)state;
	assert_int_equal(plan->entities[0].condition_count, 2); /* the defaults of its required ports */
	wr_plan_destroy(plan);
}

static void warned(const weir_diagnostic *report, void *arg)
{
	assert_true(report->warning);
	++*(int *)arg;
}

static void s05_a_warning_is_no_error(void **state)
{
	static const char text[] = "{\"weir\": 1, \"entities\": [{\"name\": \"a\", \"operator\": \"relay\"},"
				   "{\"name\": \"b\", \"operator\": \"relay\"}, {\"name\": \"c\", "
				   "\"operator\": \"sink\"}], \"connections\":"
				   "[{\"from\": \"a.out\", \"to\": [\"b.in\", \"c.in\"]}, {\"from\": "
				   "\"b.out\", \"to\": \"a.in\", \"initial_messages\": 1}]}";
	weir_description *description = NULL;
	int warnings = 0;

	(void)state;
	assert_int_equal(weir_description_parse(text, strlen(text), NULL, NULL, &description), WEIR_OK);
	assert_int_equal(weir_description_check(description, NULL, warned, &warnings), WEIR_OK);
	assert_int_equal(warnings, 1);
	weir_description_destroy(description);
}

static void s05_a_cycle_that_a_count_ends_is_no_matter_for_a_warning(void **state)
{
	weir_description *description = NULL;
	int warnings = 0;

	(void)state;
	assert_int_equal(weir_description_parse(good_graph, strlen(good_graph), NULL, NULL, &description),
			 WEIR_OK);
	assert_int_equal(weir_description_check(description, NULL, warned, &warnings), WEIR_OK);
	assert_int_equal(warnings, 0);
	weir_description_destroy(description);
}

/* No hint is better than one that has nothing in common with the word. */
static void hints_are_near(void **state)
{
	static const char *const cases[][3] = {{"blr", "blur", "blur"},     {"x", "in", NULL},
					       {"Blur", "blur", "blur"},    {"ab", "cd", NULL},
					       {"write", "white", "white"}, {"", "in", NULL}};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct wr_nearest nearest = {.wanted = cases[i][0]};
		wr_nearest_try(&nearest, cases[i][1]);
		assert_true(cases[i][2] ? nearest.best && !strcmp(nearest.best, cases[i][2]) : !nearest.best);
	}
}

/* --- resources --- */

/* fast, far, rest are declared; then the contexts left, even and usual imply one each. */
enum { FAST, FAR, REST, OF_LEFT, OF_USUAL, OF_EVEN, POOLS };

static void stream_pools_have_what_the_text_or_the_default_says(void **state)
{
	struct wr_plan *plan = kinds_plan(resource_graph, false);
	const struct wr_plan_stream_pool *fast = &plan->stream_pools[FAST], *far = &plan->stream_pools[FAR];

	(void)state;
	assert_int_equal(plan->stream_pool_count, POOLS);
	assert_string_equal(fast->name, "fast");
	assert_int_equal(fast->priority, -3);
	assert_int_equal(fast->flags, 0);
	assert_true(fast->reserved_size == 0 && fast->max_size == 4);
	assert_int_equal(fast->device, 1); /* its context's */
	assert_string_equal(plan->green_contexts[fast->green_context].name, "left");
	assert_int_equal(far->flags, WR_STREAM_BLOCKING);
	assert_true(far->reserved_size == 1 && far->max_size == 0 && far->green_context == WR_NO_CONTEXT);
	assert_int_equal(far->device, 2);
	assert_true(far->is_default && !fast->is_default && !far->implied);
	assert_int_equal(plan->devices, 3);
	wr_plan_destroy(plan);
}

static void green_contexts_know_their_partition(void **state)
{
	struct wr_plan *plan = kinds_plan(resource_graph, false);
	const struct wr_plan_green_context_pool *even = &plan->green_context_pools[1];
	const struct wr_plan_green_context *contexts = plan->green_contexts;

	(void)state;
	assert_int_equal(plan->green_context_pool_count, 2);
	assert_int_equal(plan->green_context_pools[0].sizes[1], 16);
	assert_int_equal(plan->green_context_pools[0].default_index, -1);
	assert_int_equal(plan->green_context_pools[0].min_sm_size, 2);
	assert_int_equal(even->count, 3);
	assert_true(even->sizes[0] == 4 && even->sizes[2] == 4 && even->default_index == 1);
	assert_int_equal(plan->green_context_count, 4);
	assert_true(contexts[0].index == 0 && contexts[0].pool == 0 && !contexts[0].implied);
	assert_true(contexts[1].index == 1 && contexts[1].pool == 1 && !contexts[1].implied);
	assert_true(contexts[2].index == -1 && contexts[2].pool == 0 && contexts[2].implied);
	assert_true(contexts[3].index == 1 && contexts[3].pool == 1 && contexts[3].implied);
	assert_string_equal(contexts[2].name, "parts");
	wr_plan_destroy(plan);
}

static void every_entity_knows_its_pool_and_device(void **state)
{
	static const uint32_t pools[] = {WR_NO_POOL, FAST, OF_LEFT, OF_USUAL, OF_EVEN, OF_LEFT, REST, FAR};
	static const int devices[] = {0, 1, 1, 0, 0, 1, 1, 2};
	static const bool on_default[] = {true, false, false, true, true, true, true, true};
	struct wr_plan *plan = kinds_plan(resource_graph, false);

	(void)state;
	for (size_t i = 0; i < plan->entity_count; i++) {
		assert_true(plan->entities[i].stream_pool == pools[i]);
		assert_int_equal(plan->entities[i].device, devices[i]);
		assert_int_equal(plan->entities[i].use_default_stream, on_default[i]);
	}
	assert_int_equal(plan->stream_pools[OF_LEFT].users, 2);
	assert_int_equal(plan->stream_pools[FAR].users, 1);
	wr_plan_destroy(plan);
}

static void a_context_that_is_named_implies_one_pool(void **state)
{
	struct wr_plan *plan = kinds_plan(resource_graph, false);
	const struct wr_plan_stream_pool *pool = &plan->stream_pools[OF_LEFT];

	(void)state;
	assert_string_equal(pool->name, "default of left");
	assert_true(pool->implied && pool->device == 1 && pool->max_size == 0);
	assert_int_equal(pool->green_context, 0);
	assert_int_equal(plan->stream_pools[OF_EVEN].green_context, 3);
	assert_string_equal(plan->stream_pools[OF_EVEN].name, "default of even");
	wr_plan_destroy(plan);
}

static void who_names_nothing_shares_an_implied_pool(void **state)
{
	const struct wr_plan *plan = *state;

	assert_int_equal(plan->stream_pool_count, 1);
	assert_string_equal(plan->stream_pools[0].name, "default");
	assert_true(plan->stream_pools[0].implied && plan->stream_pools[0].green_context == WR_NO_CONTEXT);
	assert_int_equal(plan->stream_pools[0].users, plan->entity_count);
	assert_int_equal(plan->entities[3].stream_pool, 0);
	assert_int_equal(plan->devices, 1);
}

static void a_green_context_pool_may_be_the_default(void **state)
{
	struct wr_plan *plan = kinds_plan(
		"{\"weir\": 1, \"resources\": {\"parts\": {\"type\": \"green_context_pool\", \"device\": 1, "
		"\"sms_per_partition\": [8], \"default_context_index\": 0, \"default\": true}},"
		"\"entities\": [{\"name\": \"a\", \"operator\": \"source\"}, {\"name\": \"b\", "
		"\"operator\": \"sink\"}], \"connections\": [[\"a.out\", \"b.in\"]]}",
		false);

	(void)state;
	assert_true(plan->green_context_pools[0].is_default);
	assert_int_equal(plan->stream_pool_count, 1);
	assert_int_equal(plan->stream_pools[0].users, 2);
	assert_int_equal(plan->green_contexts[plan->stream_pools[0].green_context].index, 0);
	assert_int_equal(plan->entities[1].device, 1);
	wr_plan_destroy(plan);
}

#define SOURCE_AND_SINK                                                                                      \
	"\"entities\": [{\"name\": \"a\", \"operator\": \"source\"}, "                                       \
	"{\"name\": \"b\", \"operator\": \"sink\"}], \"connections\": [[\"a.out\", \"b.in\"]]}"

static void the_device_of_a_green_context_may_be_said_again(void **state)
{
	struct wr_plan *plan = kinds_plan(
		"{\"weir\": 1, \"resources\": {\"parts\": {\"type\": \"green_context_pool\", \"device\": 1, "
		"\"sms_per_partition\": [8]}, \"fast\": {\"type\": \"stream_pool\", \"device\": 1, "
		"\"green_context\": \"parts\", \"default\": true}}," SOURCE_AND_SINK,
		false);

	(void)state;
	assert_int_equal(plan->stream_pools[0].device, 1);
	wr_plan_destroy(plan);
}

/* It is created, so its device must exist. */
static void an_unused_green_context_pool_needs_its_device(void **state)
{
	struct wr_plan *plan =
		kinds_plan("{\"weir\": 1, \"resources\": {\"parts\": {\"type\": \"green_context_pool\", "
			   "\"device\": 3, \"sms_per_partition\": [8]}}," SOURCE_AND_SINK,
			   false);

	(void)state;
	assert_int_equal(plan->devices, 4);
	wr_plan_destroy(plan);
}

static void count_report(const weir_diagnostic *report, void *arg)
{
	if (report->warning)
		return; /* unused */
	assert_non_null(strstr(report->text, "lists 257 sizes: must be 1 to 256"));
	++*(int *)arg;
}

/* The last one is too small, which is not reported if there are too many. */
static char *of_many_partitions(size_t count, bool last_is_bad)
{
	struct wr_text text = {0};

	wr_text_add(&text, "{\"weir\": 1, \"resources\": {\"parts\": {\"type\": \"green_context_pool\", "
			   "\"sms_per_partition\": [");
	for (size_t i = 1; i < count; i++)
		wr_text_add(&text, "8, ");
	wr_text_add(&text, last_is_bad ? "0]}}, %s" : "8]}}, %s", SOURCE_AND_SINK);
	assert_int_equal(text.status, WEIR_OK);
	return text.text;
}

static void a_device_has_256_partitions_at_most(void **state)
{
	char *most = of_many_partitions(256, false), *more = of_many_partitions(257, true);
	struct wr_plan *plan = kinds_plan(most, false);
	weir_description *description = NULL;
	int reports = 0;

	(void)state;
	assert_int_equal(plan->green_context_pools[0].count, 256);
	assert_int_equal(weir_description_parse(more, strlen(more), NULL, NULL, &description), WEIR_OK);
	assert_int_equal(weir_description_check(description, NULL, count_report, &reports), WEIR_E_INVALID);
	assert_int_equal(reports, 1);
	weir_description_destroy(description);
	wr_plan_destroy(plan);
	wr_free(most);
	wr_free(more);
}

static void flag_is_a_signal(void **state)
{
	struct wr_plan *plan = kinds_plan(resource_graph, false);

	(void)state;
	assert_int_equal(plan->scheduler.signal, WR_SIGNAL_FLAG);
	assert_int_equal(plan->entities[7].conditions[0].signal, WR_SIGNAL_FLAG);
	wr_plan_destroy(plan);
}

/* --- units --- */

static void durations_are_exact(void **state)
{
	static const struct {
		const char *text;
		int64_t ns;
	} cases[] = {{"0ns", 0},
		     {"7ns", 7},
		     {"250us", 250000},
		     {"10ms", 10000000},
		     {"1.5s", 1500000000},
		     {"0.000000001s", 1},
		     {"2min", 120000000000},
		     {"1.25h", 4500000000000},
		     {"60Hz", 16666667},
		     {"29.97Hz", 33366700},
		     {"1kHz", 1000000},
		     {"1MHz", 1000},
		     {"1GHz", 1},
		     {"0.5Hz", 2000000000},
		     {"1.500ms", 1500000},
		     {"9223372036854775807ns", INT64_MAX}};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int64_t ns = -1;
		assert_null(wr_period_read(cases[i].text, &ns));
		assert_true(ns == cases[i].ns);
	}
}

static void sizes_are_exact(void **state)
{
	static const struct {
		const char *text;
		int64_t bytes;
	} cases[] = {{"0", 0},
		     {"7", 7},
		     {"512B", 512},
		     {"4k", 4096},
		     {"4K", 4096},
		     {"4KiB", 4096},
		     {"4kB", 4000},
		     {"16MiB", 16777216},
		     {"1.5G", 1610612736},
		     {"2MB", 2000000},
		     {"1TiB", (int64_t)1 << 40}};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int64_t bytes = -1;
		assert_null(wr_size_read(cases[i].text, &bytes));
		assert_true(bytes == cases[i].bytes);
	}
}

static void what_is_shown_reads_as_the_same(void **state)
{
	static const int64_t values[] = {0,       1,       999,         1000,          1024,
					 1500000, 1 << 20, 60000000000, 3600000000000, INT64_MAX};

	(void)state;
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		int64_t value = -1;
		assert_null(wr_duration_read(wr_duration_shown(values[i]).text, &value));
		assert_true(value == values[i]);
		assert_null(wr_size_read(wr_size_shown(values[i]).text, &value));
		assert_true(value == values[i]);
	}
}

static void measured_times_have_three_digits_and_no_exponent(void **state)
{
	static const struct {
		int64_t ns;
		const char *text;
	} times[] = {{0, "0 us"},
		     {1, "0.001 us"},
		     {999, "0.999 us"},
		     {12345, "12.3 us"},
		     {999499, "999 us"},
		     {999500, "1 ms"},
		     {123456789, "123 ms"},
		     {1234567890, "1.23 s"},
		     {90000000000, "90 s"},
		     {999499999999, "999 s"},
		     {7200000000000, "7200 s"},
		     {INT64_MAX, "9223372037 s"}};

	(void)state;
	for (size_t i = 0; i < sizeof times / sizeof times[0]; i++)
		assert_string_equal(wr_time_shown(times[i].ns).text, times[i].text);
}

static void t15_the_ticks_that_are_timed_are_read_and_shown(void **state)
{
	static const char *const good[] = {"off", "all", "sample:2", "sample:64", "sample:1000000"};
	static const char *const bad[] = {
		"",          "on",         "sample",     "sample:", "sample:0",       "sample:-1",
		"sample:1s", "sample:64 ", "sample:1.5", "all ",    "sample:1000001", "Sample:2"};
	int every = 7;

	(void)state;
	for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
		assert_null(wr_sampling_read(good[i], &every));
		assert_string_equal(wr_sampling_shown(every).text, good[i]);
	}
	assert_null(wr_sampling_read("sample:1", &every));
	assert_int_equal(every, 1);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		assert_non_null(wr_sampling_read(bad[i], &every));
		assert_int_equal(every, 1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(t15_the_ticks_that_are_timed_are_read_and_shown),
		cmocka_unit_test(settings_of_the_scheduler_are_taken_over),
		cmocka_unit_test(what_the_scheduler_is_not_told_stays_open),
		cmocka_unit_test(ports_have_the_sizes_of_the_table_or_of_the_text),
		cmocka_unit_test(connections_stay_in_the_order_of_the_text),
		cmocka_unit_test(xb10_a_value_of_another_type_is_zero_and_remembered),
		cmocka_unit_test(values_are_typed_and_defaults_filled_in),
		cmocka_unit_test(a_condition_that_names_a_port_replaces_its_default),
		cmocka_unit_test(implied_conditions_come_last_inputs_before_outputs),
		cmocka_unit_test(an_optional_port_has_a_default_once_it_is_connected),
		cmocka_unit_test(a_condition_has_the_name_it_was_given),
		cmocka_unit_test(open_ports_are_allowed_when_inlets_may_come),
		cmocka_unit_test(s05_a_warning_is_no_error),
		cmocka_unit_test(s05_a_cycle_that_a_count_ends_is_no_matter_for_a_warning),
		cmocka_unit_test(hints_are_near),
		cmocka_unit_test(stream_pools_have_what_the_text_or_the_default_says),
		cmocka_unit_test(green_contexts_know_their_partition),
		cmocka_unit_test(every_entity_knows_its_pool_and_device),
		cmocka_unit_test(a_context_that_is_named_implies_one_pool),
		cmocka_unit_test(who_names_nothing_shares_an_implied_pool),
		cmocka_unit_test(a_green_context_pool_may_be_the_default),
		cmocka_unit_test(the_device_of_a_green_context_may_be_said_again),
		cmocka_unit_test(an_unused_green_context_pool_needs_its_device),
		cmocka_unit_test(a_device_has_256_partitions_at_most),
		cmocka_unit_test(flag_is_a_signal),
		cmocka_unit_test(durations_are_exact),
		cmocka_unit_test(sizes_are_exact),
		cmocka_unit_test(what_is_shown_reads_as_the_same),
		cmocka_unit_test(measured_times_have_three_digits_and_no_exponent),
	};

	return cmocka_run_group_tests_name("plans", tests, set_up, tear_down);
}
