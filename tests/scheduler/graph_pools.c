/* The system has the resources that the graph declares; work on streams that are not an entity's own. */
#include <string.h>

#include "rig_inside.h"
#include "tests/calls.h"

/* --- pools and partitions --- */

static void make_with(struct rig **rig, const char *resources, const char *text)
{
	rig_resources = resources;
	*rig = rig_of(text);
	rig_resources = NULL;
	rig_make(*rig);
}

static void a_pool_as_it_is_written(void)
{
	struct rig *rig;
	weir_stream *stream;

	make_with(&rig,
		  "{\"p\": {\"type\": \"stream_pool\", \"device\": 1, \"flags\": \"blocking\", "
		  "\"priority\": -2, \"reserved_size\": 3, \"max_size\": 4}}",
		  "a:call pool=p");
	assert_int_equal(rig_stream_count(rig), 3);
	stream = rig_pool_take(rig, 0);
	assert_int_equal(weir_stream_device(stream), 1);
	assert_int_equal(rig_stream_flags(stream), WR_STREAM_BLOCKING);
	assert_int_equal(rig_stream_priority(stream), -2);
	assert_int_equal(rig_stream_count(rig), 3);
	rig_put_back(stream);
	rig_destroy(rig);
}

static void t05_a_pool_is_made_as_the_graph_says(void **state)
{
	(void)state;
	rig_everywhere(a_pool_as_it_is_written);
}

static void partitions_as_they_are_written(void)
{
	const void *of[4];
	struct rig *rig;

	make_with(&rig,
		  "{\"g\": {\"type\": \"green_context_pool\", \"sms_per_partition\": [2, 3]},"
		  "\"first\": {\"type\": \"green_context\", \"pool\": \"g\", \"index\": 0},"
		  "\"second\": {\"type\": \"green_context\", \"pool\": \"g\", \"index\": 1},"
		  "\"a\": {\"type\": \"stream_pool\", \"green_context\": \"first\"},"
		  "\"b\": {\"type\": \"stream_pool\", \"green_context\": \"second\"},"
		  "\"c\": {\"type\": \"stream_pool\", \"green_context\": \"g\"},"
		  "\"d\": {\"type\": \"stream_pool\"}}",
		  "a:call pool=a; b:call pool=b; c:call pool=c; d:call pool=d");
	for (size_t i = 0; i < 4; i++) {
		weir_stream *stream = rig_pool_take(rig, i);

		of[i] = rig_partition(stream);
		rig_put_back(stream);
	}
	assert_true(of[0] && of[1] && of[2] && !of[3]); /* c: the remainder */
	assert_true(of[0] != of[1] && of[1] != of[2] && of[0] != of[2]);
	rig_destroy(rig);
}

static void t05_each_context_has_its_own_part_of_the_device(void **state)
{
	(void)state;
	rig_everywhere(partitions_as_they_are_written);
}

/* --- work on streams of received messages --- */

static int rest(const void *arguments)
{
	(void)arguments;
	weir_sleep(5 * MS);
	return 0;
}

static const weir_kernel resting = {sizeof(weir_kernel), "rest", rest, NULL};
static const int64_t one = 1;
static const weir_tensor like = {sizeof(weir_tensor), NULL, 0, 1, &one, NULL, 0, 64, 1};

static weir_status produce(struct rig *rig, weir_context *context)
{
	weir_stream *stream = current_stream(context);
	weir_message *message = NULL;
	weir_status status = weir_context_create_tensor(context, &like, 0, &message);

	(void)rig;
	if (!status)
		status = weir_stream_launch(stream, &resting, "", 1);
	return status ? status : weir_context_emit(context, 0, message);
}

/* An entity that has asked for a stream, or set it, may use it by a handle that it has kept. */
static weir_status ask_for_one(weir_context *context, weir_stream *received)
{
	weir_stream *stream = NULL;

	switch (weir_context_tick(context)) {
	case 4:
		return weir_context_allocate_stream(context, "work", &stream);
	case 5:
		return device_stream(context) ? WEIR_OK : WEIR_E_FAILED;
	case 6:
		return weir_context_set_stream(context, 0, received);
	}
	return WEIR_OK;
}

/* The kept handle is the only sign that the stream is used. */
static weir_status work_on_what_came(struct rig *rig, weir_context *context)
{
	weir_message *message = weir_context_message(context, 0, 0);
	weir_stream *stream = NULL;
	weir_status status = WEIR_OK;
	weir_fence fence;

	HOLDS(rig, weir_context_receive_streams(context, 0, 0, 1, &stream) == 1);
	if (weir_context_tick(context) < 3)
		status = weir_stream_launch(stream, &resting, "", 1);
	if (!status && weir_context_tick(context) == 1)
		status = weir_stream_record(stream, &fence);
	if (!status && weir_context_tick(context) == 2)
		status = weir_context_synchronize_streams(context, &stream, 1, device_stream(context));
	if (!status)
		status = ask_for_one(context, stream);
	weir_message_ref(message);
	return status ? status : weir_context_emit(context, 0, message);
}

/* The producer's fence, and the reader's if it worked; in tick 2 the default stream's,
 * which waited for it. */
static weir_status count_uses(struct rig *rig, weir_context *context)
{
	static const size_t expected[] = {2, 2, 3, 1, 2, 2, 2};
	const weir_message *message = weir_context_message(context, 0, 0);

	HOLDS(rig, rig_uses(message) == expected[weir_context_tick(context)]);
	return WEIR_OK;
}

static void working_on_carried_streams(void)
{
	rig_resources = "{\"p\": {\"type\": \"stream_pool\"}}";
	struct rig *rig = rig_of("a:call count=7 -> b:call pool=p -> end:call");

	rig_resources = NULL;
	rig_on(rig, "a", produce);
	rig_on(rig, "b", work_on_what_came);
	rig_on(rig, "end", count_uses);
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_int_equal(rig_ticks(rig, "end"), 7);
	rig_destroy(rig);
}

static void t04_payloads_outlive_what_was_enqueued_on_streams_that_came_with_them(void **state)
{
	(void)state;
	rig_everywhere(working_on_carried_streams);
}

static weir_status produce_on_two(struct rig *rig, weir_context *context)
{
	weir_stream *stream = NULL;
	weir_status status = weir_context_allocate_stream(context, "other", &stream);

	if (!status)
		status = weir_context_set_stream(context, 0, stream);
	if (!status)
		status = weir_context_set_stream(context, 0, current_stream(context));
	return status ? status : produce(rig, context);
}

static weir_status receive_into_one_place(struct rig *rig, weir_context *context)
{
	weir_stream *streams[2] = {NULL, NULL};

	HOLDS(rig, weir_context_receive_streams(context, 0, 0, 1, streams) == 2);
	HOLDS(rig, streams[0] && !streams[1]);
	HOLDS(rig, weir_context_receive_streams(context, 0, 0, 2, streams) == 2);
	HOLDS(rig, streams[1] && streams[1] != streams[0]);
	return WEIR_OK;
}

static void two_streams_and_one_place(void)
{
	struct rig *rig = rig_of("a:call count=2 -> end:call");

	rig_on(rig, "a", produce_on_two);
	rig_on(rig, "end", receive_into_one_place);
	assert_int_equal(rig_run(rig), WEIR_OK);
	rig_destroy(rig);
}

static void t07_as_many_streams_are_received_as_there_is_room_for(void **state)
{
	(void)state;
	rig_everywhere(two_streams_and_one_place);
}

/* --- where a graph runs --- */

static weir_status wait_and_keep(struct rig *rig, weir_context *context)
{
	HOLDS(rig, weir_fence_wait(rig->graph, (weir_fence){0, 0}, 0) == WEIR_E_INVALID);
	HOLDS(rig, strstr(weir_last_error(), "a worker must not wait"));
	rig->own = weir_message_ref(weir_context_message(context, 0, 0));
	return WEIR_OK;
}

static void e06_fences_are_asked_of_a_graph_that_has_a_scheduler(void **state)
{
	struct rig *rig = rig_of("source ticks=1 -> end:call");
	const weir_fence none = {0, 0}, some = {1, 1};

	(void)state;
	assert_int_equal(weir_fence_query(rig->graph, none), WEIR_OK);
	assert_int_equal(weir_fence_wait(rig->graph, none, 0), WEIR_OK);
	assert_int_equal(weir_fence_query(rig->graph, some), WEIR_E_INVALID);
	assert_int_equal(weir_fence_wait(rig->graph, some, -1), WEIR_E_INVALID);
	rig_destroy(rig);
}

static void t04_a_graph_stays_where_messages_of_it_are_held(void **state)
{
	struct rig *rig = rig_of("source ticks=1 -> end:call");

	(void)state;
	rig_on(rig, "end", wait_and_keep);
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_int_equal(weir_scheduler_destroy(rig->scheduler), WEIR_OK);
	rig->scheduler = NULL;
	rig->options.backend = "host";
	assert_int_equal(weir_scheduler_create(rig->graph, &rig->options, &rig->scheduler), WEIR_E_STATE);
	assert_non_null(strstr(weir_last_error(), "1 messages of its run on "));
	weir_message_unref(rig->own);
	rig_make(rig);
	rig_destroy(rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(t05_a_pool_is_made_as_the_graph_says),
		cmocka_unit_test(t05_each_context_has_its_own_part_of_the_device),
		cmocka_unit_test(t04_payloads_outlive_what_was_enqueued_on_streams_that_came_with_them),
		cmocka_unit_test(t07_as_many_streams_are_received_as_there_is_room_for),
		cmocka_unit_test(e06_fences_are_asked_of_a_graph_that_has_a_scheduler),
		cmocka_unit_test(t04_a_graph_stays_where_messages_of_it_are_held),
	};

	return cmocka_run_group_tests_name("scheduler/pools", tests, NULL, NULL);
}
