/* The stream that an operator works on: received, current, default (T1, T3, T7, docs/streams.md). */
#include "rig_inside.h"
#include "rig_streams.h"
#include "tests/calls.h"

/* --- receive_stream --- */

static weir_status receive_both(struct rig *rig, weir_context *context)
{
	weir_stream *first = NULL, *second = NULL;
	weir_status status = weir_context_receive_stream(context, 0, 0, &first);

	if (!status)
		status = weir_context_receive_stream(context, 1, 0, &second);
	HOLDS(rig, first && first == second);
	HOLDS(rig, first == current_stream(context));
	return status ? status : rig_emit_sum(context, 0, first, 100, 100 * US);
}

static void two_sources_one_sum(void)
{
	for (int i = 0; i < 3; i++) {
		struct rig *rig = rig_of("a:call count=4 -> p:call capacity=2 -> end gate=in capacity=3; "
					 "b:call count=4 -> p.in2 capacity=3");

		rig->options.signal = rig_signals[i];
		rig_on(rig, "a", rig_emit_on_allocated);
		rig_on(rig, "b", rig_emit_on_allocated);
		rig_on(rig, "p", receive_both);
		assert_int_equal(rig_run(rig), WEIR_OK);
		assert_string_equal(rig_text(rig, "end"), "100 102 104 106");
		rig_destroy(rig);
	}
}

static void t03_g01_what_allocated_streams_made_is_received_on_the_internal_one(void **state)
{
	(void)state;
	rig_in_worlds(RIG_SEEDS, two_sources_one_sum);
	rig_on_host(two_sources_one_sum);
}

/* Only the received input is waited for: the second kernel ends long before the second input is complete. */
static weir_status receive_one(struct rig *rig, weir_context *context)
{
	weir_stream *stream = NULL, *again = NULL;
	weir_status status = weir_context_receive_stream(context, 0, 0, &stream);
	weir_message *message = NULL;

	(void)rig;
	if (!status)
		status = weir_context_receive_stream(context, 0, WEIR_RECEIVE_TAKE_NONE, &again);
	HOLDS(rig, stream == again);
	if (!status)
		status = weir_context_create_tensor(context, &rig_one_number, 0, &message);
	if (status)
		return status;
	struct rig_sum sum = {weir_message_data(message), {rig_data_of(context, 0), NULL}, 1, US};
	status = weir_stream_launch(stream, &rig_adder, &sum, sizeof sum);
	return status ? status : weir_context_emit(context, 0, message);
}

static weir_status slow(struct rig *rig, weir_context *context)
{
	(void)rig;
	return rig_emit_sum(context, 0, current_stream(context), 0, SECOND);
}

static void receiving_one_input(void)
{
	struct rig *rig = rig_of("a:call count=1 -> p:call -> end gate=in; b:call count=1 -> p.in2");
	weir_scheduler *scheduler;

	rig_on(rig, "a", rig_emit_on_current);
	rig_on(rig, "b", slow);
	rig_on(rig, "p", receive_one);
	rig_start(rig);
	scheduler = rig->scheduler;
	assert_int_equal(weir_scheduler_wait(scheduler, SECOND / 2, NULL), WEIR_E_TIMEOUT);
	assert_int_equal(rig_ticks(rig, "end"), 1);
	assert_int_equal(rig_wait(rig), WEIR_OK);
	assert_string_equal(rig_text(rig, "end"), "1");
	rig_destroy(rig);
}

static void t03_t07_receive_stream_waits_for_its_input_alone(void **state)
{
	(void)state;
	rig_in_worlds(20, receiving_one_input);
}

/* Nothing is enqueued on the current stream; the default one comes after it, and so after
 * what it received. */
static weir_status work_on_default(struct rig *rig, weir_context *context)
{
	weir_stream *default_stream = device_stream(context), *stream = NULL;
	weir_status status = weir_context_receive_stream(context, 0, WEIR_RECEIVE_SYNC_DEFAULT, &stream);

	HOLDS(rig, !status && default_stream && !weir_stream_same(default_stream, stream));
	if (!status)
		status = weir_context_set_stream(context, 0, default_stream);
	return status ? status : rig_emit_sum(context, 0, default_stream, 10, MS);
}

/* The default stream also comes after work enqueued on the current one, but only before the call. */
static weir_status work_on_both(struct rig *rig, weir_context *context)
{
	int64_t *places = rig->own;
	struct rig_sum first = {&places[0], {NULL, NULL}, 5, 20 * MS},
		       second = {&places[1], {&places[0], NULL}, 1, 0};
	weir_stream *stream = current_stream(context);
	weir_status status = weir_stream_launch(stream, &rig_adder, &first, sizeof first);

	if (!status)
		status = weir_context_receive_stream(context, 0, WEIR_RECEIVE_SYNC_DEFAULT, &stream);
	return status ? status
		      : weir_stream_launch(device_stream(context), &rig_adder, &second, sizeof second);
}

static void syncing_to_default(void)
{
	struct rig *rig = rig_of("a:call count=3 -> p:call -> end gate=in; source ticks=1 -> q:call");
	int64_t places[2] = {-1, -1};

	rig->own = places;
	rig_on(rig, "a", rig_emit_on_current);
	rig_on(rig, "p", work_on_default);
	rig_on(rig, "q", work_on_both);
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_string_equal(rig_text(rig, "end"), "10 11 12");
	assert_int_equal(places[1], 6);
	rig_destroy(rig);
}

static void t07_sync_to_default_has_the_default_stream_come_after(void **state)
{
	(void)state;
	rig_everywhere(syncing_to_default);
}

/* What libraries enqueue on its native handle cannot be seen. */
static weir_status sync_and_enqueue_unseen(struct rig *rig, weir_context *context)
{
	weir_stream *stream = NULL;

	HOLDS(rig, !weir_context_receive_stream(context, 0, WEIR_RECEIVE_SYNC_DEFAULT, &stream));
	return weir_context_emit(context, 0, rig_number(context, 1));
}

static weir_status ask_and_enqueue_unseen(struct rig *rig, weir_context *context)
{
	HOLDS(rig, current_stream(context) && device_stream(context));
	return weir_context_emit(context, 0, rig_number(context, 1));
}

static weir_status has_two_fences(struct rig *rig, weir_context *context)
{
	HOLDS(rig, weir_message_fences(weir_context_message(context, 0, 0), 0, NULL) == 2);
	return WEIR_OK;
}

static void fencing_the_default_stream(void)
{
	struct rig *rig = rig_of("a:call count=3 -> p:call -> c:call; a -> q:call -> d:call");

	rig_on(rig, "a", rig_emit_on_current);
	rig_on(rig, "p", sync_and_enqueue_unseen);
	rig_on(rig, "q", ask_and_enqueue_unseen);
	rig_on(rig, "c", has_two_fences);
	rig_on(rig, "d", has_two_fences);
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_int_equal(rig_ticks(rig, "c") + rig_ticks(rig, "d"), 6);
	rig_destroy(rig);
}

static void t04_t07_the_default_stream_is_fenced_once_it_was_given_or_synchronized(void **state)
{
	(void)state;
	rig_everywhere(fencing_the_default_stream);
}

/* --- the current stream when the pool gives none --- */

static weir_status share_the_first(struct rig *rig, weir_context *context)
{
	weir_stream *stream = current_stream(context), *found = rig_carried(context, 0, 0);

	HOLDS(rig, stream && found && stream == found);
	HOLDS(rig, weir_stream_id(stream) != (uint64_t)wr_load(&rig->told));
	return rig_emit_sum(context, 0, stream, 10, MS);
}

static weir_status note_own(struct rig *rig, weir_context *context)
{
	wr_store(&rig->told, weir_stream_id(current_stream(context)));
	HOLDS(rig, rig_taken(rig, 0) == 1);
	return rig_emit_on_current(rig, context);
}

static void one_stream_for_three(void)
{
	for (int i = 0; i < 3; i++) {
		rig_resources = RIG_POOL(", \"max_size\": 1, \"default\": true");
		struct rig *rig =
			rig_of("a:call count=4 -> b:call -> c:call capacity=2 -> end gate=in capacity=2");

		rig_resources = NULL;
		rig->options.signal = rig_signals[i];
		rig_on(rig, "a", note_own);
		rig_on(rig, "b", share_the_first);
		rig_on(rig, "c", share_the_first);
		assert_int_equal(rig_run(rig), WEIR_OK);
		assert_string_equal(rig_text(rig, "end"), "20 21 22 23");
		assert_int_equal(rig_taken(rig, 0), 0);
		rig_destroy(rig);
	}
}

static void t01_t07_an_exhausted_pool_leaves_the_stream_of_the_messages(void **state)
{
	(void)state;
	rig_in_worlds(RIG_SEEDS / 5, one_stream_for_three);
	rig_on_host(one_stream_for_three);
}

/* Two inputs, no pool: the first stream found is used and waits for the other, whichever
 * is asked for first. */
static weir_status receive_without_a_pool(struct rig *rig, weir_context *context)
{
	weir_stream *one_way = NULL, *other = NULL;
	weir_status status = weir_context_receive_stream(context, 1, 0, &one_way);

	if (!status)
		status = weir_context_receive_stream(context, 0, 0, &other);
	HOLDS(rig, one_way == other && one_way == rig_carried(context, 1, 0) &&
			   one_way != rig_carried(context, 0, 0));
	return status ? status : rig_emit_sum(context, 0, one_way, 100, MS);
}

static void no_pool_but_messages(void)
{
	struct rig *rig =
		rig_of("a:call count=3 -> p:call pool=none -> end gate=in; b:call count=3 -> p.in2");

	rig_on(rig, "a", rig_emit_on_current);
	rig_on(rig, "b", rig_emit_on_allocated);
	rig_on(rig, "p", receive_without_a_pool);
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_string_equal(rig_text(rig, "end"), "100 102 104");
	rig_destroy(rig);
}

static void t07_without_a_pool_the_first_stream_found_serves(void **state)
{
	(void)state;
	rig_in_worlds(50, no_pool_but_messages);
	rig_on_host(no_pool_but_messages);
}

/* Input 0 carries none. */
static weir_status receive_the_other(struct rig *rig, weir_context *context)
{
	weir_stream *stream = NULL;

	HOLDS(rig, !rig_carried(context, 0, 0) && rig_carried(context, 1, 0));
	HOLDS(rig, !weir_context_receive_stream(context, 0, 0, &stream));
	HOLDS(rig, stream == rig_carried(context, 1, 0));
	return WEIR_OK;
}

static void one_input_carries(void)
{
	struct rig *rig = rig_of("source ticks=3 -> p:call pool=none; b:call count=3 -> p.in2");

	rig_on(rig, "b", rig_emit_on_allocated);
	rig_on(rig, "p", receive_the_other);
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_int_equal(rig_ticks(rig, "p"), 3);
	rig_destroy(rig);
}

static void t07_without_a_pool_the_stream_of_another_input_serves(void **state)
{
	(void)state;
	rig_everywhere(one_input_carries);
}

static weir_status do_not_allocate_at_first(struct rig *rig, weir_context *context)
{
	weir_stream *stream = NULL, *found = rig_carried(context, 0, 0);
	bool allocate = rig_tick(context) == 1;
	weir_status status =
		weir_context_receive_stream(context, 0, allocate ? 0 : WEIR_RECEIVE_TAKE_NONE, &stream);

	HOLDS(rig, found && stream);
	HOLDS(rig, rig_tick(context) ? stream != found : stream == found);
	return status ? status : rig_emit_sum(context, 0, stream, 100, MS);
}

static void not_allocating(void)
{
	struct rig *rig = rig_of("a:call count=3 -> p:call -> end gate=in");

	rig_on(rig, "a", rig_emit_on_current);
	rig_on(rig, "p", do_not_allocate_at_first);
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_string_equal(rig_text(rig, "end"), "100 101 102");
	rig_destroy(rig);
}

static void t07_an_entity_without_a_stream_works_on_the_inputs_streams(void **state)
{
	(void)state;
	rig_everywhere(not_allocating);
}

/* Neither pool nor inputs: the default stream, which no message carries. Messages carry its fence, and live
 * until it is complete. */
static weir_status on_default(struct rig *rig, weir_context *context)
{
	weir_stream *stream = current_stream(context);

	HOLDS(rig, stream && weir_stream_same(stream, device_stream(context)));
	return rig_emit_sum(context, 0, stream, 7, 10 * MS);
}

static weir_status has_a_fence_and_no_stream(struct rig *rig, weir_context *context)
{
	weir_message *message = weir_context_message(context, 0, 0);

	HOLDS(rig, weir_message_fences(message, 0, NULL) == 1);
	HOLDS(rig, weir_context_receive_streams(context, 0, 0, 0, NULL) == 0);
	HOLDS(rig, rig_uses(message) == 1 && rig_value(message) == 7);
	return WEIR_OK;
}

static void nothing_at_all(void)
{
	struct rig *rig = rig_of("a:call pool=none count=2 -> p:call gate=in");

	rig_on(rig, "a", on_default);
	rig_on(rig, "p", has_a_fence_and_no_stream);
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_int_equal(rig_ticks(rig, "p"), 2);
	rig_destroy(rig);
}

static void t04_t07_the_default_stream_is_carried_by_nothing_and_keeps_payloads(void **state)
{
	(void)state;
	rig_everywhere(nothing_at_all);
}

static weir_status find_the_same(struct rig *rig, weir_context *context)
{
	weir_stream *default_stream = device_stream(context);

	HOLDS(rig,
	      default_stream && default_stream == rig_carried(context, 0, 0)); /* one queue, one stream */
	return WEIR_OK;
}

static void default_that_travels(void)
{
	struct rig *rig = rig_of("a:call pool=default count=3 -> end gate=in; a -> p:call");

	rig_on(rig, "a", on_default);
	rig_on(rig, "p", find_the_same);
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_string_equal(rig_text(rig, "end"), "7 7 7");
	rig_destroy(rig);
}

static void t07_use_default_stream_makes_it_travel(void **state)
{
	(void)state;
	rig_everywhere(default_that_travels);
}

static void a_message_without_a_stream_is_ready_at_once(void **state)
{
	struct rig *rig = rig_of("source ticks=3 -> p:pass -> end gate=in");

	(void)state;
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_string_equal(rig_text(rig, "end"), "0 1 2");
	assert_true(rig->outcome.duration_ns < MS);
	rig_destroy(rig);
}

int main(int count, char **arguments)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(t03_g01_what_allocated_streams_made_is_received_on_the_internal_one),
		cmocka_unit_test(t03_t07_receive_stream_waits_for_its_input_alone),
		cmocka_unit_test(t07_sync_to_default_has_the_default_stream_come_after),
		cmocka_unit_test(t04_t07_the_default_stream_is_fenced_once_it_was_given_or_synchronized),
		cmocka_unit_test(t01_t07_an_exhausted_pool_leaves_the_stream_of_the_messages),
		cmocka_unit_test(t07_without_a_pool_the_first_stream_found_serves),
		cmocka_unit_test(t07_without_a_pool_the_stream_of_another_input_serves),
		cmocka_unit_test(t07_an_entity_without_a_stream_works_on_the_inputs_streams),
		cmocka_unit_test(t04_t07_the_default_stream_is_carried_by_nothing_and_keeps_payloads),
		cmocka_unit_test(t07_use_default_stream_makes_it_travel),
		cmocka_unit_test(a_message_without_a_stream_is_ready_at_once),
	};

	if (count > 1)
		cmocka_set_test_filter(arguments[1]);
	return cmocka_run_group_tests_name("scheduler/streams_received", tests, NULL, NULL);
}
