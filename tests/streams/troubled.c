/* A backend that refuses single calls, or captures: what this room makes of it. The host's, with a few functions of its own. */
#include <string.h>

#include "base/clock.h"
#include "rig.h"
#include "streams/signal.h"
#include "test.h"

#define MS 1000000

static struct wr_backend troubled; /* the rig's system runs on it */
static bool in_capture;
static weir_status answer; /* of what refuses */

#define BODY(name)                                                                                           \
	static void name##_body(struct rig *);                                                               \
	static void name(void **state)                                                                       \
	{                                                                                                    \
		(void)state;                                                                                 \
		troubled = wr_backend_host;                                                                  \
		rig_run(name##_body, 7);                                                                     \
	}                                                                                                    \
	static void name##_body(struct rig *rig)

/* --- capture --- */

static bool capturing(void *self, void *stream)
{
	(void)self;
	(void)stream;
	return in_capture;
}

BODY(g03_a_captured_stream_gives_no_fence)
{
	weir_fence before = rig_record(rig->a), fence = before;

	troubled.capturing = capturing;
	rig->system->backend = &troubled;
	in_capture = true;
	assert_int_equal(weir_stream_record(rig->a, &fence), WEIR_E_UNSUPPORTED);
	assert_non_null(strstr(weir_last_error(), "the stream of 'a' is being captured: end the capture"));
	in_capture = false;
	assert_int_equal(rig_record(rig->a).point, before.point + 1);
}

BODY(g03_a_stream_that_is_closed_in_a_capture_is_not_given_out_again)
{
	weir_stream *captured = rig_stream(rig, "captured");

	troubled.capturing = capturing;
	rig->system->backend = &troubled;
	rig_store(rig, captured, 1, 0);
	in_capture = true;
	wr_stream_close(captured);
	in_capture = false;
	captured = rig->c;
	rig->c = rig_stream(rig, "next");
	assert_int_equal(rig->system->count, 5);
	wr_stream_close(captured);
}

/* --- questions without an answer --- */

static weir_status refuse_query(void *self, void *event)
{
	(void)self;
	(void)event;
	return answer;
}

BODY(t04_work_is_over_only_when_the_device_says_so)
{
	static const weir_status odd[] = {WEIR_E_FAILED, WEIR_E_NOMEM, WEIR_E_UNSUPPORTED, WEIR_E_BUSY};
	weir_fence fence = rig_record(rig->b), foreign = {UINT64_MAX, 1};

	troubled.query = refuse_query;
	rig->system->backend = &troubled;
	for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
		answer = odd[i];
		assert_false(wr_fence_over(rig->system, fence));
	}
	assert_true(wr_fence_over(rig->system, foreign));
	rig->system->backend = &wr_backend_host;
	rig_wait(rig, fence);
	assert_true(wr_fence_over(rig->system, fence));
}

/* --- memory that is used up --- */

static weir_status refuse_alloc(void *self, int device, size_t bytes, void **out)
{
	(void)self;
	(void)device;
	(void)bytes;
	(void)out;
	return WEIR_E_NOMEM;
}

static void *block(struct rig *rig, size_t bytes)
{
	void *memory = NULL;

	assert_int_equal(wr_system_alloc(rig->system, 0, bytes, &memory), WEIR_OK);
	return memory;
}

BODY(f40_when_memory_is_used_up_larger_blocks_serve_and_stay_what_they_are)
{
	void *large = block(rig, 8 << 20), *larger = block(rig, 16 << 20), *other;

	troubled.alloc = refuse_alloc;
	rig->system->backend = &troubled;
	wr_system_free(rig->system, 0, large, 8 << 20);
	wr_system_free(rig->system, 0, larger, 16 << 20);
	for (size_t bytes = 5 << 20; bytes <= 8 << 20; bytes += 1 << 20) {
		assert_ptr_equal(block(rig, bytes), large);
		assert_ptr_equal(block(rig, bytes), larger);
		assert_int_equal(wr_system_alloc(rig->system, 0, bytes, &other), WEIR_E_NOMEM);
		wr_system_free(rig->system, 0, large, bytes);
		wr_system_free(rig->system, 0, larger, bytes);
	}
	assert_ptr_equal(block(rig, 16 << 20), larger); /* it has not become a small one */
	assert_int_equal(wr_system_alloc(rig->system, 0, 16 << 20, &other), WEIR_E_NOMEM);
	assert_ptr_equal(block(rig, 5 << 20), large);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(g03_a_captured_stream_gives_no_fence),
		cmocka_unit_test(g03_a_stream_that_is_closed_in_a_capture_is_not_given_out_again),
		cmocka_unit_test(f40_when_memory_is_used_up_larger_blocks_serve_and_stay_what_they_are),
		cmocka_unit_test(t04_work_is_over_only_when_the_device_says_so),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
