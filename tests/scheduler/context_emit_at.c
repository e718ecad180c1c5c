/*
 * A message that is emitted at an earlier point of its tick (T12): its receivers go on at that point, while a
 * later kernel of the same tick still runs. That kernel waits, for a second at most, until as many receivers
 * have begun as it was told.
 */
#include <string.h>

#include "base/clock.h"
#include "rig_inside.h"
#include "rig_streams.h"
#include "tests/calls.h"

enum { TICKS = 3 };

/* What the kernels and the receivers of a run tell each other. */
static struct {
	_Atomic unsigned begun;              /* receivers that began */
	_Atomic unsigned too_late;           /* second kernels that ended before enough of them had */
	_Atomic int64_t first_ended, latest; /* latest: from there to a receiver's begin */
	_Atomic int64_t second_ended, freed;
	unsigned receivers;   /* of one early message */
	bool flagged, behind; /* emit_at follows the second launch */
	bool packed;          /* the early message is a part of another */
} seen;

static void clear_seen(unsigned receivers)
{
	wr_store(&seen.begun, 0);
	wr_store(&seen.too_late, 0);
	wr_store(&seen.latest, 0);
	wr_store(&seen.first_ended, 0);
	wr_store(&seen.second_ended, 0);
	wr_store(&seen.freed, 0);
	seen.receivers = receivers;
	seen.flagged = seen.behind = seen.packed = false;
}

struct writing {
	int64_t *to, number;
	unsigned wanted; /* of `begun` */
};

static int write_first(const void *arguments)
{
	const struct writing *writing = arguments;

	weir_sleep(MS);
	*writing->to = writing->number;
	wr_store(&seen.first_ended, wr_now());
	return 0;
}

static int write_second(const void *arguments)
{
	const struct writing *writing = arguments;

	for (int i = 0; i < 1000 && wr_load(&seen.begun) < writing->wanted; i++)
		weir_sleep(MS);
	if (wr_load(&seen.begun) < writing->wanted)
		wr_fetch_add(&seen.too_late, 1);
	weir_sleep(5 * MS);
	*writing->to = writing->number;
	wr_store(&seen.second_ended, wr_now());
	return 0;
}

static const weir_kernel first = {sizeof(weir_kernel), "first", write_first, NULL};
static const weir_kernel second = {sizeof(weir_kernel), "second", write_second, NULL};

static void receiver_begins(void)
{
	int64_t after = wr_now() - wr_load(&seen.first_ended);

	if (after > wr_load(&seen.latest))
		wr_store(&seen.latest, after);
	wr_fetch_add(&seen.begun, 1);
}

static weir_status begin_and_note(struct rig *rig, weir_context *context)
{
	const weir_message *message = weir_context_message(context, 0, 0);
	const weir_message *part = weir_message_part(message, "first");

	HOLDS(rig, rig_value(part ? part : message) == 10 + rig_tick(context));
	receiver_begins();
	return WEIR_OK;
}

/* --- the sender --- */

static weir_status launch_on(weir_context *context, weir_stream *stream, const weir_kernel *kernel,
			     int64_t number, weir_message **out)
{
	struct writing writing = {.number = number,
				  .wanted = seen.receivers * (unsigned)(rig_tick(context) + 1)};
	weir_status status =
		stream ? weir_context_create_tensor(context, &rig_one_number, 0, out) : WEIR_E_DEVICE;

	if (status)
		return status;
	writing.to = weir_message_data(*out);
	*writing.to = -1;
	return weir_stream_launch(stream, kernel, &writing, sizeof writing);
}

static weir_status emit_first_at(struct rig *rig, weir_context *context, weir_stream *stream,
				 weir_message *message, weir_fence fence)
{
	const weir_part part = {sizeof part, "first", message};
	weir_status status;

	if (seen.packed)
		HOLDS(rig, !weir_message_pack(rig->graph, &part, 1, &message));
	status = weir_context_emit_at(context, 0, message, fence);
	HOLDS(rig, rig_has_flag(stream, fence) == (seen.flagged && !seen.behind));
	return status;
}

static weir_status emit_two_on(struct rig *rig, weir_context *context, weir_stream *stream)
{
	weir_message *early = NULL, *late = NULL;
	weir_fence fence = {0, 0};
	weir_status status = launch_on(context, stream, &first, 10 + rig_tick(context), &early);

	if (!status)
		status = weir_stream_record(stream, &fence);
	if (!status && !seen.behind)
		status = emit_first_at(rig, context, stream, early, fence);
	if (!status)
		status = launch_on(context, stream, &second, 20 + rig_tick(context), &late);
	if (!status && seen.behind)
		status = emit_first_at(rig, context, stream, early, fence);
	return status ? status : weir_context_emit(context, 1, late);
}

static weir_status emit_two(struct rig *rig, weir_context *context)
{
	return emit_two_on(rig, context, current_stream(context));
}

/* --- receivers begin at the point --- */

static const char *graph_text, *signal_kind;
static unsigned receivers;
static bool emitted_behind, emitted_packed;
static rig_fn *sending;

static void run_two_outputs(void)
{
	struct rig *rig = rig_of(graph_text);

	clear_seen(receivers);
	rig->options.signal = signal_kind;
	seen.flagged = !strcmp(signal_kind, "flag");
	seen.behind = emitted_behind;
	seen.packed = emitted_packed;
	rig_on(rig, "a", sending);
	rig_on(rig, "x", begin_and_note);
	if (receivers > 1)
		rig_on(rig, "z", begin_and_note);
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_int_equal(wr_load(&seen.too_late), 0);
	assert_int_equal(wr_load(&seen.begun), receivers * TICKS);
	assert_string_equal(rig_text(rig, "y"), "20 21 22");
	if (!strcmp(rig_backend, "sim"))
		assert_in_range(wr_load(&seen.latest), 0, 5 * MS - 1);
	rig_destroy(rig);
}

static void under_all_signals(void (*body)(void))
{
	for (int i = 0; i < 3; i++) {
		signal_kind = rig_signals[i];
		rig_in_worlds(RIG_SEEDS / 50, body);
		rig_on_host(body);
	}
}

static void t12_a_reader_begins_at_the_point_and_not_at_the_end(void **state)
{
	(void)state;
	sending = emit_two;
	receivers = 1;
	emitted_behind = false;
	graph_text = "a:call count=3 -> x:host; a.out2 -> y:end";
	under_all_signals(run_two_outputs);
}

/* Two readers of the early message; neither waits for the other nor for the end. */
static void t12_all_receivers_of_a_fan_out_begin_at_the_point(void **state)
{
	(void)state;
	sending = emit_two;
	receivers = 2;
	emitted_behind = false;
	graph_text = "a:call count=3 -> x:host; a -> z:host; a.out2 -> y:end";
	under_all_signals(run_two_outputs);
}

static void t12_t09_a_message_of_parts_is_complete_at_the_point(void **state)
{
	(void)state;
	sending = emit_two;
	receivers = 2;
	emitted_behind = false;
	emitted_packed = true;
	graph_text = "a:call count=3 -> x:host; a -> z:host; a.out2 -> y:end";
	under_all_signals(run_two_outputs);
	emitted_packed = false;
}

/* The flag would be written behind the second kernel: so none is, and a callback waits for the fence alone.
 */
static void t12_g04_a_point_that_is_not_the_last_on_its_stream_gets_no_flag(void **state)
{
	(void)state;
	sending = emit_two;
	receivers = 1;
	emitted_behind = true;
	graph_text = "a:call count=3 -> x:host; a.out2 -> y:end";
	under_all_signals(run_two_outputs);
}

/* The point may be on any stream of the entity; output 0 has another one set, which the message ignores. */
static weir_status emit_on_named_stream(struct rig *rig, weir_context *context)
{
	weir_stream *side = NULL;
	weir_status status = weir_context_allocate_stream(context, "side", &side);

	if (!status)
		status = weir_context_set_stream(context, 0, current_stream(context));
	return status ? status : emit_two_on(rig, context, side);
}

static void t12_t07_the_point_is_on_any_stream_of_the_entity(void **state)
{
	(void)state;
	sending = emit_on_named_stream;
	receivers = 1;
	emitted_behind = false;
	graph_text = "a:call count=3 -> x:host; a.out2 -> y:end";
	under_all_signals(run_two_outputs);
}

/* --- device ports and outlets --- */

static int begin_on_device(const void *arguments)
{
	int64_t *const *from = arguments;

	if (**from >= 10)
		receiver_begins();
	return 0;
}

static const weir_kernel beginning = {sizeof(weir_kernel), "beginning", begin_on_device, NULL};

static weir_status launch_behind_input(struct rig *rig, weir_context *context)
{
	const int64_t *from = rig_data_of(context, 0);

	(void)rig;
	return weir_stream_launch(current_stream(context), &beginning, &from, sizeof from);
}

static void run_to_device_port(void)
{
	struct rig *rig = rig_of("a:call count=3 -> x:call; a.out2 -> y:end");

	clear_seen(1);
	rig->options.signal = signal_kind;
	rig_on(rig, "a", emit_two);
	rig_on(rig, "x", launch_behind_input);
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_int_equal(wr_load(&seen.too_late), 0);
	assert_int_equal(wr_load(&seen.begun), TICKS);
	rig_destroy(rig);
}

static void t12_t03_the_work_of_a_device_port_waits_for_the_point_alone(void **state)
{
	(void)state;
	signal_kind = "callback";
	rig_in_worlds(RIG_SEEDS / 50, run_to_device_port);
	rig_on_host(run_to_device_port);
}

static void take_early(void)
{
	struct rig *rig = rig_of("a:call count=3; a.out2 -> y:end");
	weir_outlet *outlet = rig_outlet(rig, "a.out", 1, 0);

	clear_seen(1);
	rig->options.signal = signal_kind;
	seen.flagged = !strcmp(signal_kind, "flag");
	rig_on(rig, "a", emit_two);
	rig_start(rig);
	for (int i = 0; i < TICKS; i++) {
		assert_int_equal(rig_take(outlet, 60 * SECOND), 10 + i);
		receiver_begins();
	}
	assert_int_equal(rig_take(outlet, 60 * SECOND), WEIR_E_CLOSED);
	assert_int_equal(rig_wait(rig), WEIR_OK);
	assert_int_equal(wr_load(&seen.too_late), 0);
	assert_string_equal(rig_text(rig, "y"), "20 21 22");
	rig_destroy(rig);
}

static void t12_an_outlet_gives_the_message_at_the_point(void **state)
{
	(void)state;
	under_all_signals(take_early);
}

/* --- what the message carries --- */

static weir_status emit_same_twice(struct rig *rig, weir_context *context)
{
	weir_stream *stream = current_stream(context);
	weir_message *message = NULL;
	weir_fence fence = {0, 0};

	HOLDS(rig, !launch_on(context, stream, &first, 10, &message));
	HOLDS(rig, !weir_stream_record(stream, &fence));
	HOLDS(rig, !weir_context_emit_at(context, 0, weir_message_ref(message), fence));
	rig->own = (void *)(uintptr_t)fence.value;
	return weir_context_emit(context, 1, message);
}

static weir_status end_is_carried(struct rig *rig, weir_context *context)
{
	weir_fence fences[2] = {{0, 0}, {0, 0}};

	HOLDS(rig, weir_message_fences(weir_context_message(context, 0, 0), 2, fences) == 1);
	HOLDS(rig, fences[0].value == (uintptr_t)rig->own + 1);
	return WEIR_OK;
}

static void emit_twice(void)
{
	struct rig *rig = rig_of("a:call count=1 -> x:call; a.out2 -> y:call");

	clear_seen(0);
	rig_on(rig, "a", emit_same_twice);
	rig_on(rig, "x", end_is_carried);
	rig_on(rig, "y", end_is_carried);
	assert_int_equal(rig_run(rig), WEIR_OK);
	rig_destroy(rig);
}

static void t12_a_message_that_is_also_emitted_plainly_carries_the_end(void **state)
{
	(void)state;
	rig_everywhere(emit_twice);
}

/* What is passed on while others hold it was only read: the point protects it, and nothing waits for it. */
static weir_status pass_on_early(struct rig *rig, weir_context *context)
{
	weir_message *message = weir_context_message(context, 0, 0), *sum = NULL;
	weir_stream *stream = current_stream(context);
	weir_fence fence = {0, 0};

	HOLDS(rig, !rig_add(context, stream, 0, MS, &sum));
	HOLDS(rig, !weir_stream_record(stream, &fence));
	weir_message_unref(sum);
	return weir_context_emit_at(context, 0, weir_message_ref(message), fence);
}

/* "1": the fence of a alone; "2": and the point of p. The use set has both, and of p its end. */
static weir_status note_fences(struct rig *rig, weir_context *context)
{
	const weir_message *message = weir_context_message(context, 0, 0);

	HOLDS(rig, rig_uses(message) == 2);
	rig_note(rig, context, weir_message_fences(message, 0, NULL) == 1 ? "1" : "2");
	return WEIR_OK;
}

/* held: the outlet holds the message meanwhile. */
static void pass_on(bool held)
{
	struct rig *rig = rig_of("a:call count=1 -> p:call -> x:call");
	weir_outlet *outlet = held ? rig_outlet(rig, "a.out", 1, WEIR_OUTLET_EARLY) : NULL;
	weir_message *message = NULL;

	rig_on(rig, "a", rig_emit_on_current);
	rig_on(rig, "p", pass_on_early);
	rig_on(rig, "x", note_fences);
	rig_start(rig);
	(void)weir_scheduler_wait(rig->scheduler, SECOND, NULL);
	assert_string_equal(rig_text(rig, "x"), held ? "1" : "2");
	if (held)
		assert_int_equal(weir_outlet_take(outlet, 0, &message), WEIR_OK);
	weir_message_unref(message);
	assert_int_equal(rig_wait(rig), WEIR_OK);
	rig_destroy(rig);
}

static void pass_on_both_ways(void)
{
	pass_on(false);
	pass_on(true);
}

static void t12_what_others_hold_is_passed_on_with_what_it_carried(void **state)
{
	(void)state;
	rig_in_worlds(20, pass_on_both_ways);
}

/* --- the payload --- */

static int64_t wrapped_number;

static void note_freed(void *arg)
{
	(void)arg;
	wr_store(&seen.freed, wr_now());
}

/* The second kernel reads what was emitted; the receiver drops it long before. */
static weir_status emit_what_is_read_later(struct rig *rig, weir_context *context)
{
	const weir_tensor like = {sizeof like, &wrapped_number, 0, 1, rig_one_number.shape, NULL, 0, 64, 1};
	struct writing writing = {&wrapped_number, 10, 1};
	weir_stream *stream = current_stream(context);
	weir_message *message = NULL;
	weir_fence fence = {0, 0};

	HOLDS(rig, !weir_message_wrap_tensor(weir_context_graph(context), &like, note_freed, NULL, &message));
	HOLDS(rig, !weir_stream_launch(stream, &first, &writing, sizeof writing));
	HOLDS(rig, !weir_stream_record(stream, &fence));
	HOLDS(rig, !weir_context_emit_at(context, 0, message, fence));
	return weir_stream_launch(stream, &second, &writing, sizeof writing);
}

/* Writing in place would race with the second kernel. */
static weir_status drop_at_once(struct rig *rig, weir_context *context)
{
	HOLDS(rig, !weir_message_unique(weir_context_message(context, 0, 0)));
	return begin_and_note(rig, context);
}

static void free_late(void)
{
	struct rig *rig = rig_of("a:call count=1 -> x:host");

	clear_seen(1);
	rig_on(rig, "a", emit_what_is_read_later);
	rig_on(rig, "x", drop_at_once);
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_int_equal(wr_load(&seen.too_late), 0);
	assert_in_range(wr_load(&seen.freed), wr_load(&seen.second_ended), INT64_MAX);
	rig_destroy(rig);
}

static void t12_t04_the_payload_outlives_the_whole_tick(void **state)
{
	(void)state;
	rig_in_worlds(RIG_SEEDS / 20, free_late);
	rig_on_host(free_late);
}

/* --- what is refused --- */

static weir_fence earlier_tick, of_other;

static weir_status emit_at_nothing(struct rig *rig, weir_context *context, weir_fence fence)
{
	weir_message *message = rig_number(context, 1);
	weir_status status = weir_context_emit_at(context, 0, message, fence);

	rig_refused(rig, status, WEIR_E_INVALID, "a.out: emit_at needs a fence that this tick recorded");
	return status;
}

static weir_status try_fences(struct rig *rig, weir_context *context)
{
	weir_stream *stream = current_stream(context);
	weir_fence fence = {0, 0};

	emit_at_nothing(rig, context, fence);
	if (rig_tick(context))
		emit_at_nothing(rig, context, earlier_tick);
	emit_at_nothing(rig, context, of_other);
	emit_at_nothing(rig, context, (weir_fence){77, 1});
	HOLDS(rig, !weir_stream_record(stream, &fence));
	emit_at_nothing(rig, context, (weir_fence){fence.stream, fence.value + 1});
	earlier_tick = fence;
	rig_refused(rig, weir_context_emit_at(context, 0, NULL, fence), WEIR_E_INVALID, "needs a message");
	rig_refused(rig, weir_context_emit_at(context, 9, rig_number(context, 1), fence), WEIR_E_INVALID,
		    "emitted on output 9");
	HOLDS(rig, !weir_context_emit_at(context, 0, rig_number(context, rig_tick(context)), fence));
	rig_refused(rig, weir_context_emit_at(context, 0, rig_number(context, 1), fence), WEIR_E_INVALID,
		    "more than max_emits");
	return WEIR_OK;
}

static weir_status emit_outside(struct rig *rig, weir_context *context)
{
	weir_stream *stream = NULL;
	weir_fence fence = {0, 0};

	HOLDS(rig, !weir_context_allocate_stream(context, "early", &stream));
	HOLDS(rig, !weir_stream_record(stream, &fence));
	rig_refused(rig, weir_context_emit_at(context, 0, rig_number(context, 1), fence), WEIR_E_INVALID,
		    "emit is for compute only");
	return WEIR_OK;
}

static void refuse_fences(void)
{
	struct rig *rig = rig_of("a:call count=2 -> x:end");
	weir_stream *stream = NULL;

	rig_on(rig, "a", try_fences);
	rig_entity(rig, "a")->start = emit_outside;
	rig_make(rig);
	assert_int_equal(weir_graph_add_stream(rig->graph, 0, &stream), WEIR_OK);
	assert_int_equal(weir_stream_record(stream, &of_other), WEIR_OK);
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_string_equal(rig_text(rig, "x"), "0 1");
	rig_destroy(rig);
}

static void t12_a_point_that_this_tick_did_not_record_is_refused(void **state)
{
	(void)state;
	rig_everywhere(refuse_fences);
}

/* A tick that fails after emit_at delivers nothing and loses nothing (E5, asserted by rig_wait). */
static weir_status emit_and_fail(struct rig *rig, weir_context *context)
{
	weir_status status = emit_two(rig, context);

	HOLDS(rig, !status);
	return rig_tick(context) ? weir_context_fail(context, "on purpose") : WEIR_OK;
}

static void fail_early(void)
{
	struct rig *rig = rig_of("a:call -> x:host; a.out2 -> y:end");

	clear_seen(1);
	rig_on(rig, "a", emit_and_fail);
	rig_on(rig, "x", begin_and_note);
	assert_int_equal(rig_run(rig), WEIR_E_FAILED);
	assert_string_equal(rig->outcome.entity, "a");
	rig_destroy(rig);
}

static void t12_e05_a_tick_that_fails_after_it_delivers_nothing(void **state)
{
	(void)state;
	rig_everywhere(fail_early);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(t12_a_reader_begins_at_the_point_and_not_at_the_end),
		cmocka_unit_test(t12_all_receivers_of_a_fan_out_begin_at_the_point),
		cmocka_unit_test(t12_t09_a_message_of_parts_is_complete_at_the_point),
		cmocka_unit_test(t12_g04_a_point_that_is_not_the_last_on_its_stream_gets_no_flag),
		cmocka_unit_test(t12_t07_the_point_is_on_any_stream_of_the_entity),
		cmocka_unit_test(t12_t03_the_work_of_a_device_port_waits_for_the_point_alone),
		cmocka_unit_test(t12_an_outlet_gives_the_message_at_the_point),
		cmocka_unit_test(t12_a_message_that_is_also_emitted_plainly_carries_the_end),
		cmocka_unit_test(t12_what_others_hold_is_passed_on_with_what_it_carried),
		cmocka_unit_test(t12_t04_the_payload_outlives_the_whole_tick),
		cmocka_unit_test(t12_a_point_that_this_tick_did_not_record_is_refused),
		cmocka_unit_test(t12_e05_a_tick_that_fails_after_it_delivers_nothing),
	};

	return cmocka_run_group_tests_name("scheduler/emit_at", tests, NULL, NULL);
}
