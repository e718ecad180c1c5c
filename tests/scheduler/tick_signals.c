/* Runs and their signals: what an entity arms and keeps, and what streams/ refuses (G2, G3). */
#include <string.h>

#include "rig_inside.h"
#include "tests/calls.h"

static int nap(const void *arguments)
{
	(void)arguments;
	weir_sleep(1 * US);
	return 0;
}

static const weir_kernel napping = {sizeof(weir_kernel), "nap", nap, NULL};

static _Atomic bool capturing;

static bool is_capturing(void *self, int device, void *stream)
{
	(void)self;
	(void)device;
	(void)stream;
	return wr_load(&capturing);
}

static void end_capture(void *self, int device, void *stream)
{
	(void)self;
	(void)device;
	(void)stream;
	wr_store(&capturing, false);
}

static weir_status leave_a_capture_open(struct rig *rig, weir_context *context)
{
	weir_stream *stream = current_stream(context);
	weir_status status = stream ? weir_stream_launch(stream, &napping, "", 1) : WEIR_E_DEVICE;

	(void)rig;
	if (stream)
		rig_give_native(stream);
	wr_store(&capturing, true);
	return status ? status : weir_context_emit(context, 0, rig_number(context, 1));
}

static void g03_a_capture_that_is_open_when_its_tick_ends_fails_the_run_by_name(void **state)
{
	struct rig *rig = rig_of("a:call -> end gate=in");

	(void)state;
	rig_on(rig, "a", leave_a_capture_open);
	rig_make(rig);
	rig_own_backend(rig)->capturing = is_capturing;
	rig->own_backend->end_capture = end_capture;
	assert_int_equal(rig_run(rig), WEIR_E_UNSUPPORTED);
	assert_string_equal(rig->outcome.entity, "a");
	assert_non_null(strstr(rig->outcome.text, "the stream of 'a' is being captured"));
	rig_destroy(rig);
}

/* --- fan-in --- */

static void poke_end(struct rig *rig)
{
	assert_int_equal(weir_entity_poke(weir_graph_entity(rig->graph, "end")), WEIR_OK);
	weir_scheduler_wait(rig->scheduler, 2 * MS, NULL);
}

static void g02_a_fan_in_that_shrinks_keeps_its_token(void **state)
{
	struct rig *rig = rig_of("a:source ticks=1 work=10ms -> end gate=in capacity=3 take=3; b:source "
				 "ticks=1 first=10 work=20ms -> end; "
				 "c:source ticks=1 first=20 work=30ms -> end");
	uint64_t token;

	(void)state;
	rig_start(rig);
	weir_scheduler_wait(rig->scheduler, 5 * MS, NULL);
	token = rig_token(rig, "end");
	assert_int_not_equal(token, 0);
	for (int i = 0; i < 2; i++) {
		weir_scheduler_wait(rig->scheduler, 8 * MS, NULL);
		poke_end(rig);
		assert_int_equal(rig_pending(rig, "end"), 2 - i);
		assert_true(rig_token(rig, "end") == token);
		assert_int_equal(rig_outstanding(rig), 1);
	}
	assert_int_equal(rig_wait(rig), WEIR_OK);
	assert_string_equal(rig_text(rig, "end"), "0,10,20");
	assert_in_range(rig->outcome.duration_ns, 30 * MS, 31 * MS);
	rig_destroy(rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(g03_a_capture_that_is_open_when_its_tick_ends_fails_the_run_by_name),
		cmocka_unit_test(g02_a_fan_in_that_shrinks_keeps_its_token),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
