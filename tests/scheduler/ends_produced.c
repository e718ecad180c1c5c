/* A program names the work that produces what it pushes; its streams outside of ticks. */
#include <string.h>

#include "base/thread.h"
#include "rig.h"
#include "tests/calls.h"

static const int64_t one = 1;
static const weir_tensor number_like = {sizeof(weir_tensor), NULL, 0, 1, &one, NULL, 0, 64, 1};

struct writing {
	int64_t *to, number, ns;
};

static int write_number(const void *arguments)
{
	const struct writing *writing = arguments;

	weir_sleep(writing->ns);
	*writing->to = writing->number;
	return 0;
}

static const weir_kernel writer = {sizeof(weir_kernel), "writer", write_number, NULL};

static weir_inlet *inlet_of(struct rig *rig, const char *port)
{
	weir_inlet *inlet = NULL;

	assert_int_equal(weir_graph_add_inlet(rig->graph, port, &inlet), WEIR_OK);
	return inlet;
}

static weir_stream *stream_of(struct rig *rig)
{
	weir_stream *stream = NULL;

	assert_int_equal(weir_graph_add_stream(rig->graph, 0, &stream), WEIR_OK);
	return stream;
}

/* -1 until the kernel has written it. */
static weir_message *tensor_of(struct rig *rig)
{
	weir_message *message = NULL;

	assert_int_equal(weir_message_create_tensor(rig->graph, &number_like, &message), WEIR_OK);
	*(int64_t *)weir_message_data(message) = -1;
	return message;
}

static weir_fence enqueue_to(weir_stream *stream, int64_t *to, int64_t number, int64_t ns)
{
	struct writing writing = {to, number, ns};
	weir_fence fence = {0, 0};

	assert_int_equal(weir_stream_launch(stream, &writer, &writing, sizeof writing), WEIR_OK);
	assert_int_equal(weir_stream_record(stream, &fence), WEIR_OK);
	return fence;
}

static weir_fence enqueue(weir_stream *stream, weir_message *message, int64_t number, int64_t ns)
{
	return enqueue_to(stream, weir_message_data(message), number, ns);
}

static void push_what_a_kernel_writes(struct rig *rig, weir_inlet *inlet, weir_stream *stream, int64_t number)
{
	weir_message *message = tensor_of(rig);
	weir_fence fence = enqueue(stream, message, number, 500 * US), told;

	assert_int_equal(weir_message_add_producer(message, fence), WEIR_OK);
	if (weir_message_fences(message, 1, &told)) /* none if it is complete by now */
		assert_true(told.stream == fence.stream && told.value == fence.value);
	assert_int_equal(weir_inlet_push(inlet, message, 60 * SECOND), WEIR_OK);
}

/* --- receivers --- */

static const char *graph_text;

static void push_some(void)
{
	struct rig *rig = rig_of(graph_text);
	weir_inlet *inlet = inlet_of(rig, strstr(graph_text, "p:pass") ? "p.in" : "end.in");
	weir_stream *stream;

	rig_make(rig);
	stream = stream_of(rig);
	rig_start(rig);
	for (int i = 0; i < 5; i++)
		push_what_a_kernel_writes(rig, inlet, stream, i);
	weir_inlet_close(inlet);
	assert_int_equal(rig_wait(rig), WEIR_OK);
	assert_string_equal(rig_text(rig, "end"), "0 1 2 3 4");
	rig_destroy(rig);
}

static void xb24_a_gate_waits_for_what_a_program_says_produced_it(void **state)
{
	(void)state;
	graph_text = "end gate=in";
	rig_everywhere(push_some);
	push_some(); /* on `sim` each call enters the world from outside */
}

static void xb24_the_device_waits_for_what_a_program_says_produced_it(void **state)
{
	(void)state;
	graph_text = "p:pass work=100us -> end gate=in";
	rig_everywhere(push_some);
	push_some();
}

static void push_what_is_copied(struct rig *rig, weir_inlet *inlet, weir_stream *stream,
				const int64_t *number)
{
	weir_message *message = tensor_of(rig);
	char *to = weir_message_data(message);
	const weir_copy halves[] = {{sizeof *halves, to, (const char *)number + 4, 1, 4, 0, 0},
				    {sizeof *halves, to, number, 2, 4, 4, 4}};
	weir_fence fence = {0, 0};

	assert_int_equal(weir_stream_copies(stream, halves, 2, WEIR_COPY_ASYNC, &fence), WEIR_OK);
	assert_int_equal(weir_message_add_producer(message, fence), WEIR_OK);
	assert_int_equal(weir_inlet_push(inlet, message, 60 * SECOND), WEIR_OK);
}

static void push_copies(void)
{
	static const int64_t numbers[] = {7, INT64_C(1) << 40, 9};
	struct rig *rig = rig_of("end gate=in");
	weir_inlet *inlet = inlet_of(rig, "end.in");
	weir_stream *stream;

	rig_make(rig);
	stream = stream_of(rig);
	rig_start(rig);
	for (int i = 0; i < 3; i++)
		push_what_is_copied(rig, inlet, stream, &numbers[i]);
	weir_inlet_close(inlet);
	assert_int_equal(rig_wait(rig), WEIR_OK);
	assert_string_equal(rig_text(rig, "end"), "7 1099511627776 9");
	rig_destroy(rig);
}

static void t01_a_program_copies_a_list_and_passes_on_its_fence(void **state)
{
	(void)state;
	rig_everywhere(push_copies);
	push_copies();
}

/* --- what is refused --- */

static void xb24_it_is_said_before_the_push(void **state)
{
	struct rig *rig = rig_of("p:pass");
	weir_inlet *inlet = inlet_of(rig, "p.in");
	weir_outlet *outlet = NULL;
	weir_message *message, *same = NULL;
	weir_stream *stream;
	weir_fence fence;

	(void)state;
	assert_int_equal(weir_graph_add_outlet(rig->graph, "p.out", 1, 0, &outlet), WEIR_OK);
	rig_make(rig);
	stream = stream_of(rig);
	rig_start(rig);
	message = tensor_of(rig);
	fence = enqueue(stream, message, 1, SECOND);
	assert_int_equal(weir_inlet_push(inlet, weir_message_ref(message), 0), WEIR_OK);
	assert_int_equal(weir_message_add_producer(message, fence), WEIR_E_INVALID);
	assert_non_null(strstr(weir_last_error(), "before it is pushed"));
	weir_message_unref(message);
	assert_int_equal(weir_outlet_take(outlet, 60 * SECOND, &same), WEIR_OK);
	assert_ptr_equal(same, message);
	assert_int_equal(weir_fence_wait(rig->graph, fence, -1), WEIR_OK);
	assert_true(weir_message_unique(same)); /* the program owns it again */
	fence = enqueue(stream, same, 2, SECOND);
	assert_int_equal(weir_message_add_producer(same, fence), WEIR_OK);
	assert_int_equal(weir_inlet_push(inlet, same, 0), WEIR_OK);
	weir_inlet_close(inlet);
	assert_int_equal(weir_outlet_take(outlet, 60 * SECOND, &same), WEIR_OK);
	assert_int_equal(rig_value(same), 2);
	weir_message_unref(same);
	assert_int_equal(rig_wait(rig), WEIR_OK);
	rig_destroy(rig);
}

/* A full queue with policy `fault` refuses the message, which counts as not pushed. */
static void xb24_what_was_refused_is_not_pushed(void **state)
{
	struct rig *rig = rig_of("end enabled=false capacity=1 policy=fault");
	weir_inlet *inlet = inlet_of(rig, "end.in");
	weir_message *message;
	weir_stream *stream;

	(void)state;
	rig_make(rig);
	stream = stream_of(rig);
	rig_start(rig);
	assert_int_equal(weir_inlet_push(inlet, tensor_of(rig), 0), WEIR_OK);
	message = tensor_of(rig);
	assert_int_equal(weir_inlet_push(inlet, message, 0), WEIR_E_BUSY);
	assert_string_equal(weir_last_error(), "end.in: the queue is full");
	assert_int_equal(weir_message_add_producer(message, enqueue(stream, message, 1, SECOND)), WEIR_OK);
	assert_int_equal(weir_message_fences(message, 0, NULL), 1);
	weir_message_unref(message);
	weir_scheduler_stop(rig->scheduler, 0);
	(void)rig_wait(rig);
	rig_destroy(rig);
}

static void xb24_a_fence_that_was_never_recorded_is_refused(void **state)
{
	struct rig *rig = rig_of("end");
	weir_inlet *inlet = inlet_of(rig, "end.in");
	weir_message *message;
	weir_fence fence;

	(void)state;
	(void)inlet;
	rig_make(rig);
	message = tensor_of(rig);
	fence = enqueue(stream_of(rig), message, 1, MS);
	assert_int_equal(weir_message_add_producer(message, (weir_fence){fence.stream, fence.value + 1}),
			 WEIR_E_INVALID);
	assert_int_equal(weir_message_add_producer(message, (weir_fence){77, 1}), WEIR_E_INVALID);
	assert_int_equal(weir_message_fences(message, 0, NULL), 0);
	assert_int_equal(weir_message_add_producer(message, (weir_fence){0, 0}), WEIR_OK);
	assert_int_equal(weir_message_fences(message, 0, NULL), 0);
	assert_int_equal(weir_message_add_producer(message, fence), WEIR_OK);
	assert_int_equal(weir_message_fences(message, 0, NULL), 1);
	weir_message_unref(message);
	rig_destroy(rig);
}

static weir_status ask_in_a_tick(struct rig *rig, weir_context *context)
{
	weir_stream *stream = NULL;

	HOLDS(rig, weir_graph_add_stream(weir_context_graph(context), 0, &stream) == WEIR_E_INVALID);
	HOLDS(rig, strstr(weir_last_error(), "weir_context_allocate_stream"));
	HOLDS(rig, !stream);
	return weir_context_finish(context);
}

static void xb24_a_programs_stream_is_made_after_a_scheduler_and_outside_of_ticks(void **state)
{
	struct rig *rig = rig_of("c:call");
	weir_stream *stream = NULL;

	(void)state;
	assert_int_equal(weir_graph_add_stream(rig->graph, 0, &stream), WEIR_E_INVALID);
	rig_on(rig, "c", ask_in_a_tick);
	rig_make(rig);
	assert_int_equal(weir_graph_add_stream(rig->graph, 9, &stream), WEIR_E_INVALID);
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_null(stream);
	rig_destroy(rig);
}

static void refuse_natives(void)
{
	struct rig *rig = rig_of("end");
	weir_inlet *inlet = inlet_of(rig, "end.in");
	weir_stream *stream;
	weir_message *message;
	weir_fence fence;

	(void)inlet;
	rig_make(rig);
	stream = stream_of(rig);
	message = tensor_of(rig);
	fence = enqueue(stream, message, 1, MS);
	assert_int_equal(weir_fence_enqueue(rig->graph, fence, 0, NULL), WEIR_E_UNSUPPORTED);
	assert_int_equal(weir_fence_wait(rig->graph, fence, -1), WEIR_OK);
	weir_message_unref(message);
	rig_destroy(rig);
}

static void xb24_native_handles_are_those_of_cuda(void **state)
{
	(void)state;
	rig_everywhere(refuse_natives);
}

/* --- outside of a run --- */

static void wait_outside(void)
{
	struct rig *rig = rig_of("end");
	weir_inlet *inlet = inlet_of(rig, "end.in");
	weir_stream *stream, *other;
	weir_message *message;
	weir_fence fence;
	int64_t copied = 0;

	(void)inlet;
	rig_make(rig);
	stream = stream_of(rig);
	other = stream_of(rig);
	message = tensor_of(rig);
	fence = enqueue(stream, message, 5, 50 * MS);
	assert_int_equal(weir_stream_wait(other, fence), WEIR_OK);
	assert_int_equal(copy_bytes(other, &copied, weir_message_data(message), sizeof copied), WEIR_OK);
	assert_int_equal(weir_stream_record(other, &fence), WEIR_OK);
	assert_int_equal(weir_fence_wait(rig->graph, fence, -1), WEIR_OK);
	assert_int_equal(copied, 5);
	weir_message_unref(message);
	rig_destroy(rig);
}

static void xb24_streams_of_a_program_work_outside_of_a_run(void **state)
{
	(void)state;
	rig_everywhere(wait_outside);
	wait_outside();
}

/* --- many fences, complete ones, and such as are none --- */

enum { MANY = 70 }; /* more than a gate names in one wait, and than an outlet looks at */

static void push_of_many_streams(void)
{
	struct rig *rig = rig_of("p:pass -> end");
	weir_inlet *inlet = inlet_of(rig, "p.in");
	weir_outlet *outlet = rig_outlet(rig, "p.out2", 1, 0);
	weir_message *message;
	int64_t elsewhere[MANY];

	rig_make(rig);
	message = tensor_of(rig);
	rig_start(rig);
	for (int i = 0; i < MANY; i++) {
		bool writes = i == MANY / 2; /* one stream writes the number, the last one to be complete */
		weir_fence fence =
			enqueue_to(stream_of(rig), writes ? weir_message_data(message) : &elsewhere[i], i,
				   writes ? 10 * MS : (1 + i % 7) * MS);

		assert_int_equal(weir_message_add_producer(message, fence), WEIR_OK);
	}
	assert_int_equal(weir_inlet_push(inlet, message, 60 * SECOND), WEIR_OK);
	weir_inlet_close(inlet);
	assert_int_equal(rig_take(outlet, 60 * SECOND), MANY / 2);
	assert_int_equal(rig_wait(rig), WEIR_OK);
	assert_null(strchr(rig_text(rig, "end"), '?'));
	assert_int_equal(rig_ticks(rig, "end"), 1);
	rig_destroy(rig);
}

static void xb24_c08_a_message_of_many_streams_is_finished_when_all_of_them_are(void **state)
{
	(void)state;
	rig_everywhere(push_of_many_streams);
}

static void add_complete(void)
{
	struct rig *rig = rig_of("end");
	weir_inlet *inlet = inlet_of(rig, "end.in");
	weir_message *message;
	weir_fence fence;

	(void)inlet;
	rig_make(rig);
	message = tensor_of(rig);
	fence = enqueue(stream_of(rig), message, 3, MS);
	assert_int_equal(weir_fence_wait(rig->graph, fence, -1), WEIR_OK);
	assert_int_equal(weir_message_add_producer(message, fence), WEIR_OK);
	assert_int_equal(weir_message_fences(message, 1, &fence), 0); /* none is needed */
	weir_message_unref(message);
	rig_destroy(rig);
}

static void xb24_a_complete_fence_is_not_kept(void **state)
{
	(void)state;
	rig_everywhere(add_complete);
}

static void xb28_a_value_without_a_stream_is_no_fence(void **state)
{
	const weir_fence none = {0, 0}, odd = {0, 5};
	struct rig *rig = rig_of("source ticks=1 -> end");

	(void)state;
	assert_int_equal(weir_fence_query(rig->graph, none), WEIR_OK);
	assert_int_equal(weir_fence_wait(rig->graph, none, 0), WEIR_OK);
	assert_int_equal(weir_fence_enqueue(rig->graph, none, 0, NULL), WEIR_OK);
	for (int made = 0; made < 2; made++) {
		assert_int_equal(weir_fence_query(rig->graph, odd), WEIR_E_INVALID);
		assert_int_equal(weir_fence_wait(rig->graph, odd, 0), WEIR_E_INVALID);
		assert_int_not_equal(weir_fence_enqueue(rig->graph, odd, 0, NULL), WEIR_OK);
		if (!made)
			rig_make(rig);
	}
	rig_destroy(rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(xb24_a_gate_waits_for_what_a_program_says_produced_it),
		cmocka_unit_test(xb24_the_device_waits_for_what_a_program_says_produced_it),
		cmocka_unit_test(t01_a_program_copies_a_list_and_passes_on_its_fence),
		cmocka_unit_test(xb24_it_is_said_before_the_push),
		cmocka_unit_test(xb24_what_was_refused_is_not_pushed),
		cmocka_unit_test(xb24_a_fence_that_was_never_recorded_is_refused),
		cmocka_unit_test(xb24_a_programs_stream_is_made_after_a_scheduler_and_outside_of_ticks),
		cmocka_unit_test(xb24_native_handles_are_those_of_cuda),
		cmocka_unit_test(xb24_streams_of_a_program_work_outside_of_a_run),
		cmocka_unit_test(xb24_c08_a_message_of_many_streams_is_finished_when_all_of_them_are),
		cmocka_unit_test(xb24_a_complete_fence_is_not_kept),
		cmocka_unit_test(xb28_a_value_without_a_stream_is_no_fence),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
