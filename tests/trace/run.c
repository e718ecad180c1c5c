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
	"{\"name\": \"end\", \"operator\": \"delay\", \"parameters\": {\"duration\": \"1us\"}}],"
	"\"connections\": [{\"from\": \"source.out\", \"to\": \"end.in\", \"initial_messages\": 1}]}";

static int run_once(void **state)
{
	const weir_scheduler_options options = {.size = sizeof options, .backend = "host"};
	weir_description *description = NULL;
	weir_scheduler *scheduler = NULL;
	weir_graph *graph = NULL;
	weir_status status = weir_description_parse(text, strlen(text), NULL, NULL, &description);

	(void)state;
	if (!status)
		status = weir_graph_create(NULL, description, &graph);
	if (!status)
		status = weir_scheduler_create(graph, &options, &scheduler);
	if (!status)
		status = weir_scheduler_run(scheduler);
	weir_scheduler_destroy(scheduler);
	weir_graph_destroy(graph);
	weir_description_destroy(description);
	return status;
}

static size_t ticks_of(const char *entity, uint64_t id, uint64_t tick)
{
	char line[160];

	snprintf(line, sizeof line,
		 "{\"call\":\"push\",\"domain\":\"weir\",\"category\":1,\"name\":\"%s\",\"payload\":%" PRIu64
		 "}",
		 entity, id << 40 | tick);
	return recorder_count(line);
}

static void every_tick_is_one_range_named_as_its_entity(void **state)
{
	(void)state;
	for (uint64_t tick = 0; tick < TICKS; tick++) {
		assert_int_equal(ticks_of("source", 0, tick), 1);
		assert_int_equal(ticks_of("end", 1, tick), 1);
	}
	assert_int_equal(ticks_of("source", 0, TICKS), 0);
	assert_int_equal(ticks_of("end", 1, TICKS), 1); /* of the initial message */
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
	assert_true(recorder_count("\"category\":5,\"name\":\"end waits: message_available: ") > 0);
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
	assert_int_equal(recorder_count(queue), 2 * TICKS + 1);
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
