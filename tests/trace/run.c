/* A whole run as a profiler sees it. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "recorder.h"
#include "test.h"
#include "weir.h"

enum { TICKS = 20 };

static const char text[] =
	"{\"weir\": 1, \"scheduler\": {\"workers\": 2}, \"entities\": ["
	"{\"name\": \"source\", \"operator\": \"ping\", \"conditions\": [{\"type\": \"count\", \"count\": "
	"20}]},"
	"{\"name\": \"end\", \"operator\": \"helped\"}],"
	"\"connections\": [{\"from\": \"source.out\", \"to\": \"end.in\", \"initial_messages\": 1}]}";

static int work(const void *arguments)
{
	(void)arguments;
	return 0;
}
static const weir_kernel kernel = {.size = sizeof(weir_kernel), .name = "work", .host = work};

static weir_status enqueue(weir_context *context, weir_stream *stream, void *arg)
{
	int nothing = 0;

	(void)context, (void)arg;
	return weir_stream_launch(stream, &kernel, &nothing, sizeof nothing);
}

/* Replays its work. */
static weir_status compute(weir_context *context, void *state)
{
	(void)state;
	return weir_context_replay(context, "key", 3, enqueue, NULL);
}

static const weir_port inputs[] = {{.size = sizeof(weir_port), .name = "in"}, {.name = NULL}};
static const weir_operator helped = {.size = sizeof(weir_operator),
				     .name = "helped",
				     .flags = WEIR_OPERATOR_STREAM,
				     .inputs = inputs,
				     .compute = compute};

static int run_once(void **state)
{
	const weir_scheduler_options options = {.size = sizeof options, .backend = "host"};
	weir_description *description = NULL;
	weir_registry *registry = NULL;
	weir_scheduler *scheduler = NULL;
	weir_graph *graph = NULL;
	weir_status status = weir_registry_create(&registry);

	(void)state;
	if (!status)
		status = weir_registry_add_operator(registry, &helped);
	if (!status)
		status = weir_description_parse(text, strlen(text), NULL, NULL, &description);
	if (!status)
		status = weir_graph_create(registry, description, &graph);
	if (!status)
		status = weir_scheduler_create(graph, &options, &scheduler);
	if (!status)
		status = weir_scheduler_run(scheduler);
	weir_scheduler_destroy(scheduler);
	weir_graph_destroy(graph);
	weir_description_destroy(description);
	weir_registry_destroy(registry);
	return status;
}

/* Ranges: category 1 around compute, 9 on its helper thread. */
static size_t ranges_of(unsigned category, const char *entity, uint64_t id, uint64_t tick)
{
	char line[160];

	snprintf(line, sizeof line,
		 "{\"call\":\"push\",\"domain\":\"weir\",\"category\":%u,\"name\":\"%s\",\"payload\":%" PRIu64
		 "}",
		 category, entity, id << 40 | tick);
	return recorder_count(line);
}

static void every_tick_is_one_range_named_as_its_entity(void **state)
{
	(void)state;
	for (uint64_t tick = 0; tick < TICKS; tick++) {
		assert_int_equal(ranges_of(1, "source", 0, tick), 1);
		assert_int_equal(ranges_of(1, "end", 1, tick), 1);
	}
	assert_int_equal(ranges_of(1, "source", 0, TICKS), 0);
	assert_int_equal(ranges_of(1, "end", 1, TICKS), 1); /* of the initial message */
}

/* The first tick enqueues as usual, the second captures and launches, each later one launches. */
static void a_capture_and_each_launch_of_it_are_ranges(void **state)
{
	static const char push[] = "\"call\":\"push\",\"domain\":\"weir\",\"category\":6,\"name\":\"end ";
	char line[96];

	(void)state;
	snprintf(line, sizeof line, "%scapture\"", push);
	assert_int_equal(recorder_count(line), 1);
	snprintf(line, sizeof line, "%sreplay\"", push);
	assert_int_equal(recorder_count(line), TICKS);
}

static void every_range_is_closed(void **state)
{
	(void)state;
	assert_int_equal(recorder_count("\"call\":\"push\""), recorder_count("\"call\":\"pop\""));
}

static void the_run_is_a_range_that_ends(void **state)
{
	(void)state;
	assert_int_equal(
		recorder_count("\"call\":\"start\",\"domain\":\"weir\",\"category\":8,\"name\":\"run\""), 1);
	assert_int_equal(recorder_count("\"call\":\"start\""), recorder_count("\"call\":\"end\""));
}

static void what_an_entity_waits_for_is_marked(void **state)
{
	(void)state;
	assert_true(recorder_count(
			    "\"call\":\"mark\",\"domain\":\"weir\",\"category\":5,\"name\":\"source waits: "
			    "downstream_message_affordable: no room") > 0);
}

#if __has_include(<nvtx3/nvToolsExtCounters.h>)
/* The initial message is not delivered, but taken. */
static void a_queue_is_counted_from_its_first_message_to_its_last(void **state)
{
	static const char queue[] =
		"\"call\":\"sample\",\"domain\":\"weir\",\"name\":\"queue source.out -> end.in\"";
	const char *last = NULL;

	(void)state;
	for (size_t i = 0; recorder_line(i); i++)
		if (strstr(recorder_line(i), queue))
			last = recorder_line(i);
	assert_true(recorder_count(queue) > 2 * TICKS);
	assert_int_equal(recorder_count("\"value\":-"), 0);
	assert_non_null(strstr(last, "\"value\":0}"));
}
#endif

static void every_tick_was_ready_before(void **state)
{
	(void)state;
	assert_true(recorder_count("\"call\":\"mark\",\"domain\":\"weir\",\"category\":2,\"name\":\"end\"") >=
		    TICKS);
}

static void every_worker_has_a_name_that_it_gave_itself(void **state)
{
	(void)state;
	assert_int_equal(recorder_count("{\"call\":\"thread\",\"self\":true,\"name\":\"weir:0\"}"), 1);
	assert_int_equal(recorder_count("{\"call\":\"thread\",\"self\":true,\"name\":\"weir:1\"}"), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_tick_is_one_range_named_as_its_entity),
		cmocka_unit_test(a_capture_and_each_launch_of_it_are_ranges),
		cmocka_unit_test(every_range_is_closed),
		cmocka_unit_test(every_tick_was_ready_before),
		cmocka_unit_test(the_run_is_a_range_that_ends),
		cmocka_unit_test(what_an_entity_waits_for_is_marked),
#if __has_include(<nvtx3/nvToolsExtCounters.h>)
		cmocka_unit_test(a_queue_is_counted_from_its_first_message_to_its_last),
#endif
		cmocka_unit_test(every_worker_has_a_name_that_it_gave_itself),
	};

	return cmocka_run_group_tests(tests, run_once, NULL);
}
