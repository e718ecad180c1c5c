/* An outlet gives complete messages, in order, within its capacity (B2). */
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "rig.h"
#include "tests/calls.h"

static const char *signal_kind;

static void take_what_kernels_write(void)
{
	struct rig *rig = rig_of("source ticks=20 work=200us -> end");
	weir_outlet *outlet = rig_outlet(rig, "source.out", 3, 0);

	rig->options.signal = signal_kind;
	for (int run = 0; run < 2; run++) {
		rig_start(rig);
		for (int i = 0; i < 20; i++)
			assert_int_equal(rig_take(outlet, 60 * SECOND), i);
		assert_int_equal(rig_take(outlet, 60 * SECOND), WEIR_E_CLOSED);
		assert_int_equal(rig_wait(rig), WEIR_OK);
		assert_int_equal(rig_queue(rig, "outlet").delivered, 20);
	}
	rig_destroy(rig);
}

static void xa03_an_outlet_gives_what_the_device_has_finished(void **state)
{
	static const char *const kinds[] = {"callback", "callback_inline", "flag"};

	(void)state;
	for (int i = 0; i < 3; i++) {
		signal_kind = kinds[i];
		rig_everywhere(take_what_kernels_write);
	}
}

/* --- order --- */

struct writing {
	int64_t *to, number;
};

static int write_number(const void *arguments)
{
	const struct writing *writing = arguments;

	weir_sleep(300 * US);
	*writing->to = writing->number;
	return 0;
}

static const weir_kernel writer = {sizeof(weir_kernel), "writer", write_number, NULL};

/* Every third message needs no device and would be complete before the one that was emitted earlier. */
static weir_status now_and_then(struct rig *rig, weir_context *context)
{
	static const int64_t one = 1;
	static const weir_tensor like = {sizeof(weir_tensor), NULL, 0, 1, &one, NULL, 0, 64, 1};
	int64_t tick = (int64_t)weir_context_tick(context);
	weir_message *message = NULL;
	struct writing writing = {NULL, tick};

	if (tick == 11)
		weir_context_finish(context);
	if (tick % 3 == 2)
		return weir_context_emit(context, 0, rig_number(context, tick));
	HOLDS(rig, !weir_context_create_tensor(context, &like, 0, &message));
	writing.to = weir_message_data(message);
	*writing.to = -1;
	HOLDS(rig, !weir_stream_launch(current_stream(context), &writer, &writing, sizeof writing));
	return weir_context_emit(context, 0, message);
}

static void take_in_order(void)
{
	struct rig *rig = rig_of("c:call");
	weir_outlet *outlet = rig_outlet(rig, "c.out", 4, 0);

	rig_on(rig, "c", now_and_then);
	rig_start(rig);
	for (int i = 0; i < 12; i++)
		assert_int_equal(rig_take(outlet, 60 * SECOND), i);
	assert_int_equal(rig_wait(rig), WEIR_OK);
	rig_destroy(rig);
}

static void xa03_what_needs_no_device_does_not_overtake_what_does(void **state)
{
	(void)state;
	rig_everywhere(take_in_order);
}

/* --- room, and other receivers --- */

static void xa03_an_outlets_capacity_counts_what_is_not_finished_too(void **state)
{
	struct rig *rig = rig_of("source ticks=9 work=1s -> end gated=false capacity=9");
	weir_outlet *outlet = rig_outlet(rig, "source.out", 3, 0);
	char *why = NULL;

	(void)state;
	rig_start(rig);
	assert_int_equal(weir_scheduler_wait(rig->scheduler, 500 * MS, NULL), WEIR_E_TIMEOUT);
	assert_int_equal(rig_ticks(rig, "source"), 3);
	assert_int_equal(rig_queue(rig, "outlet").queued, 3);
	assert_int_equal(weir_scheduler_explain_line(rig->scheduler, &why), WEIR_OK);
	assert_non_null(strstr(why, "outlet of 'source.out' waits: cuda_stream on in"));
	assert_null(strstr(why, "nothing takes"));
	weir_text_free(why);
	assert_int_equal(rig_take(outlet, 0), WEIR_E_TIMEOUT);
	assert_false(rig_readable(outlet));
	assert_int_equal(weir_scheduler_wait(rig->scheduler, 60 * SECOND, NULL), WEIR_E_TIMEOUT);
	assert_int_equal(rig_ticks(rig, "source"), 3);
	assert_true(rig_readable(outlet));
	for (int i = 0; i < 9; i++)
		assert_int_equal(rig_take(outlet, 60 * SECOND), i);
	assert_int_equal(rig_wait(rig), WEIR_OK);
	rig_destroy(rig);
}

static void xa03_the_taker_is_the_only_holder(void **state)
{
	struct rig *rig = rig_of("source ticks=5 work=1ms");
	weir_outlet *outlet = rig_outlet(rig, "source.out", 1, 0);
	weir_message *message = NULL;

	(void)state;
	rig_start(rig);
	for (int i = 0; i < 5; i++) {
		assert_int_equal(weir_outlet_take(outlet, 60 * SECOND, &message), WEIR_OK);
		assert_true(weir_message_unique(message));
		weir_message_unref(message);
	}
	assert_int_equal(rig_wait(rig), WEIR_OK);
	rig_destroy(rig);
}

/* --- outlets that give incomplete messages --- */

static void xa03_an_early_outlet_gives_at_once(void **state)
{
	struct rig *rig = rig_of("source ticks=1 work=1s -> end");
	weir_outlet *outlet = rig_outlet(rig, "source.out", 1, WEIR_OUTLET_EARLY), *none = NULL;
	weir_message *message = NULL;
	weir_fence fence;

	(void)state;
	assert_int_equal(weir_graph_add_outlet(rig->graph, "source.out", 1, 2, &none), WEIR_E_INVALID);
	rig_start(rig);
	assert_int_equal(weir_outlet_take(outlet, 100 * MS, &message), WEIR_OK);
	assert_int_equal(weir_message_fences(message, 1, &fence), 1);
	assert_int_equal(weir_fence_query(rig->graph, fence), WEIR_E_BUSY);
	assert_int_equal(weir_fence_wait(rig->graph, fence, 60 * SECOND), WEIR_OK);
	assert_int_equal(rig_value(message), 0);
	weir_message_unref(message);
	assert_int_equal(rig_wait(rig), WEIR_OK);
	rig_destroy(rig);
}

/* --- explanations and counts --- */

static void xa03_what_an_outlet_waits_for_is_explained(void **state)
{
	struct rig *rig = rig_of("source ticks=1 work=1s -> end");
	weir_outlet *outlet = rig_outlet(rig, "source.out", 1, 0);
	weir_entity_counts counts = {.size = sizeof counts};
	const char *text;

	(void)state;
	rig_start(rig);
	assert_int_equal(weir_scheduler_wait(rig->scheduler, 100 * MS, NULL), WEIR_E_TIMEOUT);
	text = rig_explain(rig);
	assert_non_null(strstr(text, "outlet of 'source.out': "));
	assert_non_null(strstr(text, "1 fence pending"));
	assert_non_null(strstr(text, "producer source"));
	assert_int_equal(weir_scheduler_entity_counts(rig->scheduler, 2, &counts),
			 WEIR_E_INVALID); /* only source and end */
	assert_int_equal(rig_take(outlet, 60 * SECOND), 0);
	assert_null(strstr(rig_explain(rig), "outlet of"));
	assert_int_equal(rig_wait(rig), WEIR_OK);
	assert_int_equal(rig->outcome.ticks, 2);
	rig_destroy(rig);
}

static void xa03_a_drain_names_the_outlet_that_it_left_behind(void **state)
{
	struct rig *rig = rig_of("source ticks=1 work=1200ms -> end gated=false");

	(void)state;
	rig_outlet(rig, "source.out", 1, 0);
	rig->options.drain_ns = SECOND; /* the device is idle soon after */
	rig_start(rig);
	assert_int_equal(weir_scheduler_wait(rig->scheduler, 100 * MS, NULL), WEIR_E_TIMEOUT);
	weir_scheduler_stop(rig->scheduler, WEIR_STOP_DRAIN);
	assert_int_equal(rig_wait(rig), WEIR_E_ABANDONED);
	assert_non_null(strstr(rig->outcome.text, "outlet of 'source.out' (1 message)"));
	assert_int_equal(rig->outcome.abandoned, 1);
	assert_int_equal(rig_queue(rig, "outlet").abandoned, 1);
	rig_destroy(rig);
}

static void xa03_what_a_failed_device_made_is_not_given(void **state)
{
	struct rig *rig = rig_of("source ticks=1 work=1ms fault=true -> end");
	weir_outlet *outlet = rig_outlet(rig, "source.out", 1, 0);

	(void)state;
	rig_start(rig);
	assert_int_equal(rig_take(outlet, 60 * SECOND), WEIR_E_CLOSED);
	assert_int_equal(rig_wait(rig), WEIR_E_DEVICE);
	assert_string_equal(rig->outcome.entity, "source");
	rig_destroy(rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(xa03_an_outlet_gives_what_the_device_has_finished),
		cmocka_unit_test(xa03_what_needs_no_device_does_not_overtake_what_does),
		cmocka_unit_test(xa03_an_outlets_capacity_counts_what_is_not_finished_too),
		cmocka_unit_test(xa03_the_taker_is_the_only_holder),
		cmocka_unit_test(xa03_an_early_outlet_gives_at_once),
		cmocka_unit_test(xa03_what_an_outlet_waits_for_is_explained),
		cmocka_unit_test(xa03_a_drain_names_the_outlet_that_it_left_behind),
		cmocka_unit_test(xa03_what_a_failed_device_made_is_not_given),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
