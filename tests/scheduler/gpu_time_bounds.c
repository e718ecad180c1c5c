/* T15: what bounds the spans of ticks without timers: unread ones, and values that their stream forgets. */
#include "gpu_time_rig.h"
#include "tests/calls.h"

enum { UNREAD = 64, RECORDS = 300, WORLDS = 20 };

static void run_far_ahead(void)
{
	struct rig *rig =
		observed("a:call count=200 in_flight=0 -> b:end gate=in,flag capacity=200", WEIR_NONE);

	ON("a", one_ms);
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_int_equal(rig_ticks(rig, "b"), 200);
	assert_in_range(span_count("a"), 1, UNREAD);
	rig_destroy(rig);
}

TEST(t15_g04_ticks_behind_many_unread_spans_have_none)
{
	(void)state_;
	rig_in_world(1, run_far_ahead);
}

/*
 * Each tick begins behind the work of the one before. The second records more fences than the stream
 * remembers: the device reaches each before the next one, since a stream remembers all that are pending, in
 * whatever order the world runs. So the end of the first tick, where the second begins, is forgotten. No
 * thread but the poller's asks for the others' ends (in_flight=0): one that another thread finds complete may
 * have no time.
 */
static weir_status record_often(struct rig *rig, weir_context *context)
{
	weir_stream *stream = current_stream(context);
	bool records = rig_tick(context) == 1;
	weir_message *first = NULL;
	weir_status status = rig_add(context, stream, 0, 1 * MS, &first);

	(void)rig;
	weir_message_unref(first);
	if (records)
		weir_sleep(10 * MS);
	for (int i = 0; !status && records && i < RECORDS; i++) {
		weir_fence fence;

		status = weir_stream_record(stream, &fence);
		weir_sleep(1000);
	}
	return status ? status : kernel(context, 5 * MS);
}

static void run_with_records(void)
{
	struct rig *rig = observed("a:call count=4 in_flight=0 -> b:end gate=in,flag capacity=4", WEIR_NONE);

	ON("a", record_often);
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_int_equal(rig_ticks(rig, "b"), 4);
	assert_int_equal(span_count("a"), 2);
	assert_int_equal(span_of("a", 0)->tick, 2);
	assert_int_equal(span_of("a", 1)->tick, 3);
	rig_destroy(rig);
}

TEST(t15_g04_a_tick_whose_begin_or_end_is_forgotten_has_no_span)
{
	(void)state_;
	rig_in_worlds(WORLDS, run_with_records);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(t15_g04_ticks_behind_many_unread_spans_have_none),
		cmocka_unit_test(t15_g04_a_tick_whose_begin_or_end_is_forgotten_has_no_span),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
