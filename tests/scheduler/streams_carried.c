/* The streams that messages carry: set, passed on, written in place; gates wait for all of them (T3, T4, T7,
 * G1 to G3). */
#include <string.h>

#include "rig_inside.h"
#include "rig_streams.h"
#include "tests/calls.h"

/* --- set_stream, receive_streams --- */

static weir_status set_on_one_output(struct rig *rig, weir_context *context)
{
	weir_stream *internal = current_stream(context), *other = NULL;
	weir_status status = weir_context_allocate_stream(context, "other", &other);

	HOLDS(rig, internal && other && internal != other);
	if (!status && rig_tick(context) == 0) /* for this tick only */
		status = weir_context_set_stream(context, 1, other);
	if (!status)
		status = rig_emit_sum(context, 0, internal, 1, MS);
	if (!status)
		status = rig_emit_sum(context, 1, rig_tick(context) ? internal : other, 2, 20 * MS);
	if (rig_tick(context) == 0) /* before it receives anything */
		memcpy(rig->own, (uint64_t[]){weir_stream_id(internal), weir_stream_id(other)},
		       2 * sizeof(uint64_t));
	return status;
}

/* One stream is carried; on the output without a set stream the fence of the other one too. */
static weir_status note_producer(struct rig *rig, weir_context *context)
{
	bool set = weir_entity_name(weir_context_entity(context))[0] == 'y' && rig_tick(context) == 0;
	uint64_t *ids = rig->own;
	weir_fence fences[2] = {{0, 0}, {0, 0}};
	const weir_message *message = weir_context_message(context, 0, 0);

	HOLDS(rig, weir_message_fences(message, 2, fences) == (set ? 1 : 2));
	HOLDS(rig, fences[0].stream == ids[set]);
	HOLDS(rig, rig_carried_fences(message, fences, 2) == 1 && fences[0].stream == ids[set]);
	HOLDS(rig, weir_context_receive_streams(context, 0, 0, 0, NULL) == 1);
	return WEIR_OK;
}

static void one_of_two_outputs(void)
{
	for (int i = 0; i < 3; i++) {
		struct rig *rig = rig_of("a:call count=2 -> x:call gate=in; a.out2 -> y:call gate=in; a -> "
					 "u:end gate=in; a.out2 -> v:end gate=in");
		uint64_t ids[2] = {0, 0};

		rig->options.signal = rig_signals[i];
		rig->own = ids;
		rig_on(rig, "a", set_on_one_output);
		rig_on(rig, "x", note_producer);
		rig_on(rig, "y", note_producer);
		assert_int_equal(rig_run(rig), WEIR_OK);
		assert_string_equal(rig_text(rig, "u"), "1 1");
		assert_string_equal(rig_text(rig, "v"), "2 2");
		rig_destroy(rig);
	}
}

static void t07_set_stream_is_of_one_output_and_one_tick(void **state)
{
	(void)state;
	rig_everywhere(one_of_two_outputs);
}

/* Two kernels on two streams write the halves of one message. */
static weir_status write_halves(struct rig *rig, weir_context *context)
{
	static const int64_t two = 2;
	static const weir_tensor pair = {sizeof(weir_tensor), NULL, 0, 1, &two, NULL, 0, 64, 1};
	weir_stream *streams[2] = {NULL, NULL};
	weir_message *message = NULL;
	weir_status status = weir_context_create_tensor(context, &pair, 0, &message);

	(void)rig;
	for (int i = 0; !status && i < 2; i++) {
		struct rig_sum sum = {
			(int64_t *)weir_message_data(message) + i, {NULL, NULL}, 3 + i, (1 + i) * MS};
		*sum.to = -1;
		status = weir_context_allocate_stream(context, i ? "left" : "right", &streams[i]);
		if (!status)
			status = weir_stream_launch(streams[i], &rig_adder, &sum, sizeof sum);
		if (!status)
			status = weir_context_set_stream(context, 0, streams[i]);
	}
	return status ? status : weir_context_emit(context, 0, message);
}

static weir_status add_halves(struct rig *rig, weir_context *context)
{
	weir_stream *streams[4] = {NULL};
	const int64_t *halves = rig_data_of(context, 0);
	weir_message *message = NULL;
	weir_status status;

	HOLDS(rig, weir_context_receive_streams(context, 0, 0, 4, streams) == 2);
	HOLDS(rig, weir_context_receive_streams(context, 0, 0, 1, streams) == 2);
	HOLDS(rig, weir_context_receive_streams(context, 0, 1, 4, streams) == 0);
	HOLDS(rig, streams[0] != streams[1] && !weir_stream_same(streams[0], streams[1]));
	status = weir_context_create_tensor(context, &rig_one_number, 0, &message);
	if (!status)
		status = weir_context_synchronize_streams(context, streams, 3, streams[1]); /* target, NULL */
	if (status)
		return status;
	struct rig_sum sum = {weir_message_data(message), {&halves[0], &halves[1]}, 0, 0};
	status = weir_stream_launch(streams[1], &rig_adder, &sum, sizeof sum);
	if (!status)
		status = weir_context_set_stream(context, 0, streams[1]);
	return status ? status : weir_context_emit(context, 0, message);
}

static void two_streams_in_one_message(void)
{
	for (int i = 0; i < 3; i++) {
		struct rig *rig =
			rig_of("a:call count=3 -> p:call capacity=2 -> end gate=in; a -> q:call gate=in");

		rig->options.signal = rig_signals[i];
		rig_on(rig, "a", write_halves);
		rig_on(rig, "p", add_halves);
		assert_int_equal(rig_run(rig), WEIR_OK);
		assert_string_equal(rig_text(rig, "end"), "7 7 7");
		rig_destroy(rig);
	}
}

static void g03_t07_a_message_carries_several_streams_and_the_gate_waits_for_all(void **state)
{
	(void)state;
	rig_in_worlds(RIG_SEEDS / 5, two_streams_in_one_message);
	rig_on_host(two_streams_in_one_message);
}

/* A message that is only passed on carries what it carried, also if a stream is set: other holders must not
 * wait for this entity. */
static weir_status pass_on(struct rig *rig, weir_context *context)
{
	weir_stream *stream = current_stream(context);
	weir_status status = stream ? WEIR_OK : WEIR_E_DEVICE;
	unsigned output = rig_tick(context) ? 1 : 0;

	(void)rig;
	if (!status && output)
		status = weir_context_set_stream(context, 1, stream);
	return status ? status
		      : weir_context_emit(context, output,
					  weir_message_ref(weir_context_message(context, 0, 0)));
}

static weir_status count_producers(struct rig *rig, weir_context *context)
{
	bool alone = weir_entity_name(weir_context_entity(context))[0] == 'z';

	HOLDS(rig, weir_message_fences(weir_context_message(context, 0, 0), 0, NULL) == (alone ? 2 : 1));
	return WEIR_OK;
}

/* Entity `keep` holds what it received until the others are done. */
static void run_beside_keep(struct rig *rig)
{
	weir_entity_tell(weir_graph_entity(rig->graph, "keep"), "asynchronous", WEIR_TOLD_EVENT_WAITING);
	rig_start(rig);
	weir_scheduler_wait(rig->scheduler, SECOND, NULL);
	weir_entity_tell(weir_graph_entity(rig->graph, "keep"), "asynchronous", WEIR_TOLD_EVENT_DONE);
	assert_int_equal(rig_wait(rig), WEIR_OK);
}

static void passing_on(void)
{
	struct rig *rig = rig_of("a:call count=2 -> p:call capacity=2 -> x:call; p.out2 -> y:call; a -> "
				 "keep:call asynchronous=1 capacity=2; "
				 "b:call count=2 -> q:call capacity=2 -> z:call; q.out2 -> zz:call");

	rig_on(rig, "a", rig_emit_on_current);
	rig_on(rig, "p", pass_on);
	rig_on(rig, "x", count_producers);
	rig_on(rig, "y", count_producers);
	rig_on(rig, "b", rig_emit_on_current);
	rig_on(rig, "q", pass_on);
	rig_on(rig, "z", count_producers);
	rig_on(rig, "zz", count_producers);
	run_beside_keep(rig);
	assert_int_equal(rig_ticks(rig, "x") + rig_ticks(rig, "y"), 2);
	rig_destroy(rig);
}

static void t07_what_is_passed_on_carries_what_it_carried_unless_it_has_no_other_holder(void **state)
{
	(void)state;
	rig_in_worlds(20, passing_on);
}

enum { BATCH = 40 }; /* so many that their references are not counted by searching for each */

static weir_status emit_batch(struct rig *rig, weir_context *context)
{
	weir_status status = current_stream(context) ? WEIR_OK : WEIR_E_DEVICE;

	(void)rig;
	for (int i = 0; i < BATCH && !status; i++) {
		weir_message *message = NULL;
		status = weir_message_create_bytes(weir_context_graph(context), 8, &message);
		status = status ? status : weir_context_emit(context, 0, message);
	}
	return status;
}

/* The last message is emitted twice. */
static weir_status pass_batch_on(struct rig *rig, weir_context *context)
{
	weir_status status = current_stream(context) ? WEIR_OK : WEIR_E_DEVICE;

	HOLDS(rig, weir_context_count(context, 0) == BATCH);
	for (size_t i = 0; i <= BATCH && !status; i++)
		status = weir_context_emit(
			context, 0,
			weir_message_ref(weir_context_message(context, 0, i < BATCH ? i : BATCH - 1)));
	return status;
}

static weir_status count_producers_of_batch(struct rig *rig, weir_context *context)
{
	bool alone = weir_entity_name(weir_context_entity(context))[0] == 'z';

	HOLDS(rig, weir_context_count(context, 0) == BATCH + 1);
	for (size_t i = 0; i <= BATCH; i++)
		HOLDS(rig,
		      weir_message_fences(weir_context_message(context, 0, i), 0, NULL) == (alone ? 2 : 1));
	return WEIR_OK;
}

static void passing_a_batch_on(void)
{
	struct rig *rig =
		rig_of("a:call count=1 max_emits=40 -> p:call capacity=41 min=40 take=all max_emits=41 -> "
		       "x:call capacity=41 min=41 "
		       "take=all; a -> keep:call asynchronous=1 capacity=41; "
		       "b:call count=1 max_emits=40 -> q:call capacity=41 min=40 take=all max_emits=41 -> "
		       "z:call capacity=41 min=41 "
		       "take=all");

	rig_on(rig, "a", emit_batch);
	rig_on(rig, "p", pass_batch_on);
	rig_on(rig, "x", count_producers_of_batch);
	rig_on(rig, "b", emit_batch);
	rig_on(rig, "q", pass_batch_on);
	rig_on(rig, "z", count_producers_of_batch);
	run_beside_keep(rig);
	assert_int_equal(rig_ticks(rig, "x") + rig_ticks(rig, "z"), 2);
	rig_destroy(rig);
}

static void t07_each_message_of_a_batch_that_is_passed_on_carries_what_it_carried(void **state)
{
	(void)state;
	rig_in_worlds(5, passing_a_batch_on);
}

/* Two entities on one queue wrote it: it counts as one stream, with any number of fences and any room. */
static weir_status count_queues(struct rig *rig, weir_context *context)
{
	weir_stream *found[4] = {NULL};

	HOLDS(rig, weir_message_fences(weir_context_message(context, 0, 0), 0, NULL) == 2);
	for (size_t room = 0; room <= 4; room++)
		HOLDS(rig, weir_context_receive_streams(context, 0, 0, room, found) == 1);
	HOLDS(rig, found[0] && !found[1]);
	return WEIR_OK;
}

static weir_status pass_in_place(struct rig *rig, weir_context *context)
{
	(void)rig;
	return current_stream(context)
		       ? weir_context_emit(context, 0, weir_message_ref(weir_context_message(context, 0, 0)))
		       : WEIR_E_DEVICE;
}

static void one_queue_twice(void)
{
	struct rig *rig = rig_of("a:call count=2 -> b:call pool=none -> c:call");

	rig_on(rig, "a", rig_emit_on_current);
	rig_on(rig, "b", pass_in_place);
	rig_on(rig, "c", count_queues);
	assert_int_equal(rig_run(rig), WEIR_OK);
	rig_destroy(rig);
}

static void t07_two_owners_of_one_queue_are_one_stream(void **state)
{
	(void)state;
	rig_everywhere(one_queue_twice);
}

/* --- gates over many streams --- */

static void many_streams_in_one_queue(void)
{
	for (int i = 0; i < 3; i++) {
		struct rig *rig = rig_of(
			"a:call count=9 -> x:end gate=in capacity=4; a -> y:end gate=in capacity=4 take=3");

		rig->options.signal = rig_signals[i];
		rig_on(rig, "a", rig_emit_on_one_of_four);
		assert_int_equal(rig_run(rig), WEIR_OK);
		assert_string_equal(rig_text(rig, "x"), "0 1 2 3 4 5 6 7 8");
		assert_string_equal(rig_text(rig, "y"), "0,1,2 3,4,5 6,7,8");
		rig_destroy(rig);
	}
}

static void g01_a_queue_holds_messages_of_different_streams(void **state)
{
	(void)state;
	rig_in_worlds(RIG_SEEDS / 5, many_streams_in_one_queue);
	rig_on_host(many_streams_in_one_queue);
}

static void any_size_receiver(void)
{
	for (int i = 0; i < 3; i++) {
		struct rig *rig =
			rig_of("a:call count=4 -> end.any gate=any capacity=2; b:call count=4 -> end.any; "
			       "c:source ticks=4 first=50 -> end.any");

		rig->options.signal = rig_signals[i];
		rig_on(rig, "a", rig_emit_on_allocated);
		rig_on(rig, "b", rig_emit_on_one_of_four);
		assert_int_equal(rig_run(rig), WEIR_OK);
		assert_string_equal(rig_text(rig, "end"), "|0,0,50 |1,1,51 |2,2,52 |3,3,53");
		rig_destroy(rig);
	}
}

static void c04_g03_an_any_size_port_is_gated_on_all_its_streams(void **state)
{
	(void)state;
	rig_in_worlds(100, any_size_receiver);
	rig_on_host(any_size_receiver);
}

/* The only holder of a received message writes in place; all receivers wait for that, and
 * it may keep the message. */
static weir_status write_in_place(struct rig *rig, weir_context *context, weir_message **out)
{
	weir_message *message = weir_context_message(context, 0, 0);
	weir_stream *stream = current_stream(context);
	int64_t *place = weir_message_data(message);

	HOLDS(rig, weir_message_unique(message));
	*out = message;
	return weir_stream_launch(stream, &rig_adder, &(struct rig_sum){place, {place, NULL}, 10, 5 * MS},
				  sizeof(struct rig_sum));
}

static weir_status in_place_to_two(struct rig *rig, weir_context *context)
{
	weir_message *message = NULL;
	weir_status status = write_in_place(rig, context, &message);

	if (!status)
		status = weir_context_emit(context, 0, weir_message_ref(message));
	return status ? status : weir_context_emit(context, 1, weir_message_ref(message));
}

static weir_status in_place_and_kept(struct rig *rig, weir_context *context)
{
	weir_message *message = NULL, **kept = rig->own;
	weir_status status = write_in_place(rig, context, &message);

	weir_message_unref(*kept);
	*kept = weir_message_ref(message);
	return status ? status : weir_context_emit(context, 0, weir_message_ref(message));
}

static void writing_in_place(void)
{
	for (int i = 0; i < 3; i++) {
		struct rig *rig =
			rig_of("a:call count=3 -> p:call -> u:end gate=in; p.out2 -> v:end gate=in; "
			       "b:call count=3 -> q:call -> w:end gate=in");
		weir_message *kept = NULL;

		rig->options.signal = rig_signals[i];
		rig->own = &kept;
		rig_on(rig, "a", rig_emit_on_current);
		rig_on(rig, "b", rig_emit_on_current);
		rig_on(rig, "p", in_place_to_two);
		rig_on(rig, "q", in_place_and_kept);
		assert_int_equal(rig_run(rig), WEIR_OK);
		assert_string_equal(rig_text(rig, "u"), "10 11 12");
		assert_string_equal(rig_text(rig, "v"), "10 11 12");
		assert_string_equal(rig_text(rig, "w"), "10 11 12");
		weir_message_unref(kept);
		rig_destroy(rig);
	}
}

static void t07_what_was_written_in_place_carries_its_writer_wherever_it_goes(void **state)
{
	(void)state;
	rig_everywhere(writing_in_place);
}

/* A former holder still reads it on the device; a writer would not wait for that. */
static weir_status read_slowly(struct rig *rig, weir_context *context)
{
	static int64_t nowhere;

	(void)rig;
	return weir_stream_launch(current_stream(context), &rig_adder,
				  &(struct rig_sum){&nowhere, {rig_data_of(context, 0), NULL}, 0, 20 * MS},
				  sizeof(struct rig_sum));
}

static weir_status may_not_write(struct rig *rig, weir_context *context)
{
	weir_message *message = weir_context_message(context, 0, 0);

	HOLDS(rig, rig_references(message) == 1 && !weir_message_unique(message));
	return WEIR_OK;
}

static void only_holder_of_what_is_read(void)
{
	struct rig *rig = rig_of("a:call count=1 -> x:call; a -> p:call asynchronous=1");

	rig_on(rig, "a", rig_emit_on_current);
	rig_on(rig, "x", read_slowly);
	rig_on(rig, "p", may_not_write);
	weir_entity_tell(weir_graph_entity(rig->graph, "p"), "asynchronous", WEIR_TOLD_EVENT_WAITING);
	rig_start(rig);
	assert_int_equal(weir_scheduler_wait(rig->scheduler, 5 * MS, NULL), WEIR_E_TIMEOUT);
	weir_entity_tell(weir_graph_entity(rig->graph, "p"), "asynchronous", WEIR_TOLD_EVENT_DONE);
	assert_int_equal(rig_wait(rig), WEIR_OK);
	assert_int_equal(rig_ticks(rig, "p"), 1);
	rig_destroy(rig);
}

static void t04_a_message_that_is_still_read_is_not_written_in_place(void **state)
{
	(void)state;
	rig_in_worlds(20, only_holder_of_what_is_read);
}

/* Passed on a tick later: others hold it by then, and have waited for what it carried. */
static weir_status pass_on_later(struct rig *rig, weir_context *context)
{
	weir_message **kept = rig->own;
	weir_stream *stream = current_stream(context);

	if (!*kept) {
		*kept = weir_message_ref(weir_context_message(context, 0, 0));
		return WEIR_OK;
	}
	static int64_t place;
	weir_status status =
		weir_stream_launch(stream, &rig_adder, &(struct rig_sum){&place, {NULL, NULL}, 1, 100 * MS},
				   sizeof(struct rig_sum));
	return status ? status : weir_context_emit(context, 0, weir_message_ref(*kept));
}

static weir_status has_one_stream(struct rig *rig, weir_context *context)
{
	HOLDS(rig, weir_message_fences(weir_context_message(context, 0, 0), 0, NULL) == 1);
	weir_entity_tell(weir_graph_entity(rig->graph, "x"), "asynchronous", WEIR_TOLD_EVENT_DONE);
	return WEIR_OK;
}

static void passing_on_later(void)
{
	for (int i = 0; i < 3; i++) {
		struct rig *rig = rig_of(
			"a:call count=2 -> p:call -> y:call; a -> x:end gate=in capacity=2 asynchronous=1");
		weir_message *kept = NULL;

		rig->options.signal = rig_signals[i];
		rig->own = &kept;
		rig_on(rig, "a", rig_emit_on_current);
		rig_on(rig, "p", pass_on_later);
		rig_on(rig, "y", has_one_stream);
		weir_entity_tell(weir_graph_entity(rig->graph, "x"), "asynchronous", WEIR_TOLD_EVENT_WAITING);
		assert_int_equal(rig_run(rig), WEIR_OK);
		assert_string_equal(rig_text(rig, "x"), "0 1");
		weir_message_unref(kept);
		rig_destroy(rig);
	}
}

static void g02_t07_what_was_kept_and_is_passed_on_later_carries_what_it_carried(void **state)
{
	(void)state;
	rig_everywhere(passing_on_later);
}

/* Written in one tick, emitted in the next, which uses no stream. */
static weir_status emit_the_last_one(struct rig *rig, weir_context *context)
{
	weir_message **kept = rig->own;
	weir_status status = WEIR_OK;

	if (rig_tick(context) % 2 == 0)
		return rig_add(context, current_stream(context), rig_tick(context), 20 * MS, kept);
	status = weir_context_emit(context, 0, *kept);
	*kept = NULL;
	return status;
}

static void emitting_later(void)
{
	for (int i = 0; i < 3; i++) {
		struct rig *rig = rig_of("a:call count=4 -> end gate=in");
		weir_message *kept = NULL;

		rig->options.signal = rig_signals[i];
		rig->own = &kept;
		rig_on(rig, "a", emit_the_last_one);
		assert_int_equal(rig_run(rig), WEIR_OK);
		assert_string_equal(rig_text(rig, "end"), "0 2");
		rig_destroy(rig);
	}
}

static void t03_t07_what_is_emitted_a_tick_later_carries_its_writer(void **state)
{
	(void)state;
	rig_everywhere(emitting_later);
}

/* A stream is set and later received, which makes it the current one: the ticks are still in order. */
static weir_status set_then_receive(struct rig *rig, weir_context *context)
{
	weir_stream *stream = rig_carried(context, 0, 0);
	int64_t *place = rig->own;
	weir_status status = weir_context_set_stream(context, 0, stream);

	if (!status)
		status = weir_context_receive_stream(context, 0, WEIR_RECEIVE_TAKE_NONE, &stream);
	return status ? status
		      : weir_stream_launch(stream, &rig_adder,
					   &(struct rig_sum){place, {place, NULL}, 1, 20 * MS},
					   sizeof(struct rig_sum));
}

static void changing_streams(void)
{
	struct rig *rig = rig_of("a:call count=4 -> p:call pool=none");
	int64_t place = 0;

	rig->own = &place;
	rig_on(rig, "a", rig_emit_on_one_of_four);
	rig_on(rig, "p", set_then_receive);
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_int_equal(place, 4);
	rig_destroy(rig);
}

static void t03_t07_ticks_are_in_order_also_if_the_internal_stream_was_in_use_already(void **state)
{
	(void)state;
	rig_everywhere(changing_streams);
}

int main(int count, char **arguments)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(t07_set_stream_is_of_one_output_and_one_tick),
		cmocka_unit_test(g03_t07_a_message_carries_several_streams_and_the_gate_waits_for_all),
		cmocka_unit_test(t07_what_is_passed_on_carries_what_it_carried_unless_it_has_no_other_holder),
		cmocka_unit_test(g01_a_queue_holds_messages_of_different_streams),
		cmocka_unit_test(c04_g03_an_any_size_port_is_gated_on_all_its_streams),
		cmocka_unit_test(t04_a_message_that_is_still_read_is_not_written_in_place),
		cmocka_unit_test(t07_each_message_of_a_batch_that_is_passed_on_carries_what_it_carried),
		cmocka_unit_test(t07_two_owners_of_one_queue_are_one_stream),
		cmocka_unit_test(t03_t07_ticks_are_in_order_also_if_the_internal_stream_was_in_use_already),
		cmocka_unit_test(t03_t07_what_is_emitted_a_tick_later_carries_its_writer),
		cmocka_unit_test(g02_t07_what_was_kept_and_is_passed_on_later_carries_what_it_carried),
		cmocka_unit_test(t07_what_was_written_in_place_carries_its_writer_wherever_it_goes),
	};

	if (count > 1)
		cmocka_set_test_filter(arguments[1]);
	return cmocka_run_group_tests_name("scheduler/streams_carried", tests, NULL, NULL);
}
