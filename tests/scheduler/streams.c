/* The streams of an operator: pools, the calls of a context, streams of messages (T1, T3,
 * T4, docs/streams.md). */
#include <stdio.h>
#include <string.h>

#include "sim/coroutine.h"
#include "base/memory.h"
#include "scheduler/graph.h"
#include "scheduler/pool.h"
#include "rig.h"
#include "scheduler/scheduler.h"
#include "streams/system.h"

#ifdef WR_TSAN
#define SEEDS 10 /* ThreadSanitizer: worlds are single-threaded, and their fibers slow */
#elif defined WR_ASAN
#define SEEDS 200
#define STEP  5 /* of the failing allocations: a world is slow there */
#else
#define SEEDS 1500
#endif
#ifndef STEP
#define STEP 1
#endif
#define POOL(settings) "{\"p\": {\"type\": \"stream_pool\"" settings "}}"

static const char *const signals[] = {"callback", "callback_inline", "flag"};

static void assert_says(const char *text, const char *part)
{
	if (!text || !strstr(text, part))
		fail_msg("'%s' does not say '%s'", text ? text : "(nothing)", part);
}

static void refused(struct rig *rig, weir_status status, weir_status expected, const char *text)
{
	HOLDS(rig, status == expected);
	HOLDS(rig, strstr(weir_last_error(), text));
	if (!strstr(weir_last_error(), text))
		print_error("got: %s\n", weir_last_error());
}

static size_t taken(struct rig *rig, size_t pool)
{
	return wr_stream_pool_taken(rig->graph->pools[pool]);
}

/* --- kernels --- */

struct sum {
	int64_t *to;
	const int64_t *from[2];
	int64_t plus, ns;
};

/* Reads its inputs when it begins: work that does not wait for them reads -1. */
static int add_up(const void *arguments)
{
	const struct sum *sum = arguments;
	int64_t value = sum->plus;

	for (int i = 0; i < 2; i++)
		value += sum->from[i] ? *sum->from[i] : 0;
	weir_sleep(sum->ns);
	*sum->to = value;
	return 0;
}

static const weir_kernel adder = {sizeof(weir_kernel), "add_up", add_up, NULL};
static const int64_t one = 1;
static const weir_tensor like = {sizeof(weir_tensor), NULL, 0, 1, &one, NULL, 0, 64, 1};

static const int64_t *data(weir_context *context, unsigned input)
{
	return weir_context_count(context, input) ? weir_message_data(weir_context_message(context, input, 0))
						  : NULL;
}

/* A new tensor, written by a kernel on the stream: the sum of input 0, input 1 and a number. */
static weir_status add(weir_context *context, weir_stream *stream, int64_t number, int64_t ns,
		       weir_message **out)
{
	struct sum sum = {NULL, {data(context, 0), data(context, 1)}, number, ns};
	weir_status status = stream ? weir_context_alloc(context, &like, false, out) : WEIR_E_DEVICE;

	if (status)
		return status;
	sum.to = weir_message_data(*out);
	*sum.to = -1;
	status = weir_stream_launch(stream, &adder, &sum, sizeof sum);
	if (status)
		weir_message_unref(*out);
	return status;
}

static weir_status emit_sum(weir_context *context, unsigned output, weir_stream *stream, int64_t number,
			    int64_t ns)
{
	weir_message *message = NULL;
	weir_status status = add(context, stream, number, ns, &message);

	return status ? status : weir_context_emit(context, output, message);
}

static int64_t tick_of(weir_context *context)
{
	return (int64_t)weir_context_tick(context);
}

static weir_status on_internal(struct rig *rig, weir_context *context)
{
	(void)rig;
	return emit_sum(context, 0, weir_context_stream(context),
			weir_context_count(context, 0) ? 0 : tick_of(context), MS);
}

/* On a named stream of its own, which the message then carries. */
static weir_status on_allocated(struct rig *rig, weir_context *context)
{
	weir_stream *stream = NULL;
	weir_status status = weir_context_allocate_stream(context, "work", &stream);

	(void)rig;
	if (!status)
		status = weir_context_set_stream(context, 0, stream);
	return status ? status : emit_sum(context, 0, stream, tick_of(context), MS);
}

static weir_stream *carried(weir_context *context, unsigned input, size_t i)
{
	weir_stream *streams[4];

	return weir_context_receive_streams(context, input, i, streams, 4) ? streams[0] : NULL;
}

/* --- receive_stream --- */

static weir_status receive_both(struct rig *rig, weir_context *context)
{
	weir_stream *first = NULL, *second = NULL;
	weir_status status = weir_context_receive_stream(context, 0, true, false, &first);

	if (!status)
		status = weir_context_receive_stream(context, 1, true, false, &second);
	HOLDS(rig, first && first == second);
	HOLDS(rig, first == weir_context_stream(context));
	return status ? status : emit_sum(context, 0, first, 100, 100 * US);
}

static void two_sources_one_sum(void)
{
	for (int i = 0; i < 3; i++) {
		struct rig *rig = rig_of("a:call count=4 -> p:call capacity=2 -> end gate=in capacity=3; "
					 "b:call count=4 -> p.in2 capacity=3");

		rig->options.signal = signals[i];
		rig_on(rig, "a", on_allocated);
		rig_on(rig, "b", on_allocated);
		rig_on(rig, "p", receive_both);
		assert_int_equal(rig_run(rig), WEIR_OK);
		assert_string_equal(rig_text(rig, "end"), "100 102 104 106");
		rig_destroy(rig);
	}
}

static void t03_g01_what_allocated_streams_made_is_received_on_the_internal_one(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= SEEDS; seed++)
		rig_in_world(seed, two_sources_one_sum);
	rig_on_host(two_sources_one_sum);
}

/* Only the received input is waited for: the second kernel ends long before the second input is complete. */
static weir_status receive_one(struct rig *rig, weir_context *context)
{
	weir_stream *stream = NULL, *again = NULL;
	weir_status status = weir_context_receive_stream(context, 0, true, false, &stream);
	weir_message *message = NULL;

	(void)rig;
	if (!status)
		status = weir_context_receive_stream(context, 0, false, false, &again);
	HOLDS(rig, stream == again);
	if (!status)
		status = weir_context_alloc(context, &like, false, &message);
	if (status)
		return status;
	struct sum sum = {weir_message_data(message), {data(context, 0), NULL}, 1, US};
	status = weir_stream_launch(stream, &adder, &sum, sizeof sum);
	return status ? status : weir_context_emit(context, 0, message);
}

static weir_status slow(struct rig *rig, weir_context *context)
{
	(void)rig;
	return emit_sum(context, 0, weir_context_stream(context), 0, SECOND);
}

static void receiving_one_input(void)
{
	struct rig *rig = rig_of("a:call count=1 -> p:call -> end gate=in; b:call count=1 -> p.in2");
	weir_scheduler *scheduler;

	rig_on(rig, "a", on_internal);
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
	for (uint64_t seed = 1; seed <= 20; seed++)
		rig_in_world(seed, receiving_one_input);
}

/* Nothing is enqueued on the current stream; the default one comes after it, and so after
 * what it received. */
static weir_status work_on_default(struct rig *rig, weir_context *context)
{
	weir_stream *default_stream = weir_context_default_stream(context), *stream = NULL;
	weir_status status = weir_context_receive_stream(context, 0, true, true, &stream);

	HOLDS(rig, !status && default_stream && !weir_stream_same(default_stream, stream));
	if (!status)
		status = weir_context_set_stream(context, 0, default_stream);
	return status ? status : emit_sum(context, 0, default_stream, 10, MS);
}

/* The default stream also comes after work enqueued on the current one, but only before the call. */
static weir_status work_on_both(struct rig *rig, weir_context *context)
{
	int64_t *places = rig->own;
	struct sum first = {&places[0], {NULL, NULL}, 5, 20 * MS},
		   second = {&places[1], {&places[0], NULL}, 1, 0};
	weir_stream *stream = weir_context_stream(context);
	weir_status status = weir_stream_launch(stream, &adder, &first, sizeof first);

	if (!status)
		status = weir_context_receive_stream(context, 0, true, true, &stream);
	return status ? status
		      : weir_stream_launch(weir_context_default_stream(context), &adder, &second,
					   sizeof second);
}

static void syncing_to_default(void)
{
	struct rig *rig = rig_of("a:call count=3 -> p:call -> end gate=in; source ticks=1 -> q:call");
	int64_t places[2] = {-1, -1};

	rig->own = places;
	rig_on(rig, "a", on_internal);
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

/* --- the current stream when the pool gives none --- */

static weir_status share_the_first(struct rig *rig, weir_context *context)
{
	weir_stream *stream = weir_context_stream(context), *found = carried(context, 0, 0);

	HOLDS(rig, stream && found && stream == found);
	HOLDS(rig, weir_stream_id(stream) != (uint64_t)wr_load(&rig->told));
	return emit_sum(context, 0, stream, 10, MS);
}

static weir_status note_own(struct rig *rig, weir_context *context)
{
	wr_store(&rig->told, weir_stream_id(weir_context_stream(context)));
	HOLDS(rig, taken(rig, 0) == 1);
	return on_internal(rig, context);
}

static void one_stream_for_three(void)
{
	for (int i = 0; i < 3; i++) {
		rig_resources = POOL(", \"max_size\": 1, \"default\": true");
		struct rig *rig =
			rig_of("a:call count=4 -> b:call -> c:call capacity=2 -> end gate=in capacity=2");

		rig_resources = NULL;
		rig->options.signal = signals[i];
		rig_on(rig, "a", note_own);
		rig_on(rig, "b", share_the_first);
		rig_on(rig, "c", share_the_first);
		assert_int_equal(rig_run(rig), WEIR_OK);
		assert_string_equal(rig_text(rig, "end"), "20 21 22 23");
		assert_int_equal(taken(rig, 0), 0);
		rig_destroy(rig);
	}
}

static void t01_t07_an_exhausted_pool_leaves_the_stream_of_the_messages(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= SEEDS / 5; seed++)
		rig_in_world(seed, one_stream_for_three);
	rig_on_host(one_stream_for_three);
}

/* Two inputs, no pool: the first stream found is used and waits for the other, whichever
 * is asked for first. */
static weir_status receive_without_a_pool(struct rig *rig, weir_context *context)
{
	weir_stream *one_way = NULL, *other = NULL;
	weir_status status = weir_context_receive_stream(context, 1, true, false, &one_way);

	if (!status)
		status = weir_context_receive_stream(context, 0, true, false, &other);
	HOLDS(rig,
	      one_way == other && one_way == carried(context, 1, 0) && one_way != carried(context, 0, 0));
	return status ? status : emit_sum(context, 0, one_way, 100, MS);
}

static void no_pool_but_messages(void)
{
	struct rig *rig =
		rig_of("a:call count=3 -> p:call pool=none -> end gate=in; b:call count=3 -> p.in2");

	rig_on(rig, "a", on_internal);
	rig_on(rig, "b", on_allocated);
	rig_on(rig, "p", receive_without_a_pool);
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_string_equal(rig_text(rig, "end"), "100 102 104");
	rig_destroy(rig);
}

static void t07_without_a_pool_the_first_stream_found_serves(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 50; seed++)
		rig_in_world(seed, no_pool_but_messages);
	rig_on_host(no_pool_but_messages);
}

static weir_status do_not_allocate_at_first(struct rig *rig, weir_context *context)
{
	weir_stream *stream = NULL, *found = carried(context, 0, 0);
	bool allocate = tick_of(context) == 1;
	weir_status status = weir_context_receive_stream(context, 0, allocate, false, &stream);

	HOLDS(rig, found && stream);
	HOLDS(rig, tick_of(context) ? stream != found : stream == found);
	return status ? status : emit_sum(context, 0, stream, 100, MS);
}

static void not_allocating(void)
{
	struct rig *rig = rig_of("a:call count=3 -> p:call -> end gate=in");

	rig_on(rig, "a", on_internal);
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
	weir_stream *stream = weir_context_stream(context);

	HOLDS(rig, stream && weir_stream_same(stream, weir_context_default_stream(context)));
	return emit_sum(context, 0, stream, 7, 10 * MS);
}

static weir_status has_a_fence_and_no_stream(struct rig *rig, weir_context *context)
{
	weir_message *message = weir_context_message(context, 0, 0);

	HOLDS(rig, weir_message_fences(message, NULL, 0) == 1);
	HOLDS(rig, weir_context_receive_streams(context, 0, 0, NULL, 0) == 0);
	HOLDS(rig, message->uses.count == 1 && rig_value(message) == 7);
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
	weir_stream *default_stream = weir_context_default_stream(context);

	HOLDS(rig, default_stream && default_stream == carried(context, 0, 0)); /* one queue, one stream */
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

/* --- set_stream, receive_streams --- */

static weir_status set_on_one_output(struct rig *rig, weir_context *context)
{
	weir_stream *internal = weir_context_stream(context), *other = NULL;
	weir_status status = weir_context_allocate_stream(context, "other", &other);

	HOLDS(rig, internal && other && internal != other);
	if (!status && tick_of(context) == 0) /* for this tick only */
		status = weir_context_set_stream(context, 1, other);
	if (!status)
		status = emit_sum(context, 0, internal, 1, MS);
	if (!status)
		status = emit_sum(context, 1, tick_of(context) ? internal : other, 2, 20 * MS);
	if (tick_of(context) == 0) /* before it receives anything */
		memcpy(rig->own, (uint64_t[]){weir_stream_id(internal), weir_stream_id(other)},
		       2 * sizeof(uint64_t));
	return status;
}

/* One stream is carried; on the output without a set stream the fence of the other one too. */
static weir_status note_producer(struct rig *rig, weir_context *context)
{
	bool set = weir_entity_name(weir_context_entity(context))[0] == 'y' && tick_of(context) == 0;
	uint64_t *ids = rig->own;
	weir_fence fences[2] = {{0, 0}, {0, 0}};
	const weir_message *message = weir_context_message(context, 0, 0);

	HOLDS(rig, weir_message_fences(message, fences, 2) == (set ? 1 : 2));
	HOLDS(rig, fences[0].stream == ids[set]);
	HOLDS(rig, wr_message_carried(message, fences, 2) == 1 && fences[0].stream == ids[set]);
	HOLDS(rig, weir_context_receive_streams(context, 0, 0, NULL, 0) == 1);
	return WEIR_OK;
}

static void one_of_two_outputs(void)
{
	for (int i = 0; i < 3; i++) {
		struct rig *rig = rig_of("a:call count=2 -> x:call gate=in; a.out2 -> y:call gate=in; a -> "
					 "u:end gate=in; a.out2 -> v:end gate=in");
		uint64_t ids[2] = {0, 0};

		rig->options.signal = signals[i];
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
	weir_status status = weir_context_alloc(context, &pair, false, &message);

	(void)rig;
	for (int i = 0; !status && i < 2; i++) {
		struct sum sum = {
			(int64_t *)weir_message_data(message) + i, {NULL, NULL}, 3 + i, (1 + i) * MS};
		*sum.to = -1;
		status = weir_context_allocate_stream(context, i ? "left" : "right", &streams[i]);
		if (!status)
			status = weir_stream_launch(streams[i], &adder, &sum, sizeof sum);
		if (!status)
			status = weir_context_set_stream(context, 0, streams[i]);
	}
	return status ? status : weir_context_emit(context, 0, message);
}

static weir_status add_halves(struct rig *rig, weir_context *context)
{
	weir_stream *streams[4] = {NULL};
	const int64_t *halves = data(context, 0);
	weir_message *message = NULL;
	weir_status status;

	HOLDS(rig, weir_context_receive_streams(context, 0, 0, streams, 4) == 2);
	HOLDS(rig, weir_context_receive_streams(context, 0, 0, streams, 1) == 2);
	HOLDS(rig, weir_context_receive_streams(context, 0, 1, streams, 4) == 0);
	HOLDS(rig, streams[0] != streams[1] && !weir_stream_same(streams[0], streams[1]));
	status = weir_context_alloc(context, &like, false, &message);
	if (!status)
		status = weir_context_synchronize_streams(context, streams, 3, streams[1]); /* target, NULL */
	if (status)
		return status;
	struct sum sum = {weir_message_data(message), {&halves[0], &halves[1]}, 0, 0};
	status = weir_stream_launch(streams[1], &adder, &sum, sizeof sum);
	if (!status)
		status = weir_context_set_stream(context, 0, streams[1]);
	return status ? status : weir_context_emit(context, 0, message);
}

static void two_streams_in_one_message(void)
{
	for (int i = 0; i < 3; i++) {
		struct rig *rig =
			rig_of("a:call count=3 -> p:call capacity=2 -> end gate=in; a -> q:call gate=in");

		rig->options.signal = signals[i];
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
	for (uint64_t seed = 1; seed <= SEEDS / 5; seed++)
		rig_in_world(seed, two_streams_in_one_message);
	rig_on_host(two_streams_in_one_message);
}

/* A message that is only passed on carries what it carried, also if a stream is set: other holders must not
 * wait for this entity. */
static weir_status pass_on(struct rig *rig, weir_context *context)
{
	weir_stream *stream = weir_context_stream(context);
	weir_status status = stream ? WEIR_OK : WEIR_E_DEVICE;
	unsigned output = tick_of(context) ? 1 : 0;

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

	HOLDS(rig, weir_message_fences(weir_context_message(context, 0, 0), NULL, 0) == (alone ? 2 : 1));
	return WEIR_OK;
}

static void passing_on(void)
{
	struct rig *rig = rig_of("a:call count=2 -> p:call capacity=2 -> x:call; p.out2 -> y:call; a -> "
				 "keep:call asynchronous=1 capacity=2; "
				 "b:call count=2 -> q:call capacity=2 -> z:call; q.out2 -> zz:call");

	rig_on(rig, "a", on_internal);
	rig_on(rig, "p", pass_on);
	rig_on(rig, "x", count_producers);
	rig_on(rig, "y", count_producers);
	rig_on(rig, "b", on_internal);
	rig_on(rig, "q", pass_on);
	rig_on(rig, "z", count_producers);
	rig_on(rig, "zz", count_producers);
	weir_entity_tell(weir_graph_entity(rig->graph, "keep"), "asynchronous", WEIR_TOLD_EVENT_WAITING);
	rig_start(rig);
	weir_scheduler_wait(rig->scheduler, SECOND, NULL);
	weir_entity_tell(weir_graph_entity(rig->graph, "keep"), "asynchronous", WEIR_TOLD_EVENT_DONE);
	assert_int_equal(rig_wait(rig), WEIR_OK);
	assert_int_equal(rig_ticks(rig, "x") + rig_ticks(rig, "y"), 2);
	rig_destroy(rig);
}

static void t07_what_is_passed_on_carries_what_it_carried_unless_it_has_no_other_holder(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 20; seed++)
		rig_in_world(seed, passing_on);
}

/* Two entities on one queue wrote it: it counts as one stream, with any number of fences and any room. */
static weir_status count_queues(struct rig *rig, weir_context *context)
{
	weir_stream *found[4] = {NULL};

	HOLDS(rig, weir_message_fences(weir_context_message(context, 0, 0), NULL, 0) == 2);
	for (size_t room = 0; room <= 4; room++)
		HOLDS(rig, weir_context_receive_streams(context, 0, 0, found, room) == 1);
	HOLDS(rig, found[0] && !found[1]);
	return WEIR_OK;
}

static weir_status pass_in_place(struct rig *rig, weir_context *context)
{
	(void)rig;
	return weir_context_stream(context)
		       ? weir_context_emit(context, 0, weir_message_ref(weir_context_message(context, 0, 0)))
		       : WEIR_E_DEVICE;
}

static void one_queue_twice(void)
{
	struct rig *rig = rig_of("a:call count=2 -> b:call pool=none -> c:call");

	rig_on(rig, "a", on_internal);
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

static weir_status on_one_of_many(struct rig *rig, weir_context *context)
{
	char name[8];
	weir_stream *stream = NULL;
	weir_status status;

	(void)rig;
	snprintf(name, sizeof name, "s%d", (int)(tick_of(context) % 4));
	status = weir_context_allocate_stream(context, name, &stream);
	if (!status)
		status = weir_context_set_stream(context, 0, stream);
	return status ? status
		      : emit_sum(context, 0, stream, tick_of(context), (4 - tick_of(context) % 4) * MS);
}

static void many_streams_in_one_queue(void)
{
	for (int i = 0; i < 3; i++) {
		struct rig *rig = rig_of(
			"a:call count=9 -> x:end gate=in capacity=4; a -> y:end gate=in capacity=4 take=3");

		rig->options.signal = signals[i];
		rig_on(rig, "a", on_one_of_many);
		assert_int_equal(rig_run(rig), WEIR_OK);
		assert_string_equal(rig_text(rig, "x"), "0 1 2 3 4 5 6 7 8");
		assert_string_equal(rig_text(rig, "y"), "0,1,2 3,4,5 6,7,8");
		rig_destroy(rig);
	}
}

static void g01_a_queue_holds_messages_of_different_streams(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= SEEDS / 5; seed++)
		rig_in_world(seed, many_streams_in_one_queue);
	rig_on_host(many_streams_in_one_queue);
}

static void any_size_receiver(void)
{
	for (int i = 0; i < 3; i++) {
		struct rig *rig =
			rig_of("a:call count=4 -> end.any gate=any capacity=2; b:call count=4 -> end.any; "
			       "c:source ticks=4 first=50 -> end.any");

		rig->options.signal = signals[i];
		rig_on(rig, "a", on_allocated);
		rig_on(rig, "b", on_one_of_many);
		assert_int_equal(rig_run(rig), WEIR_OK);
		assert_string_equal(rig_text(rig, "end"), "|0,0,50 |1,1,51 |2,2,52 |3,3,53");
		rig_destroy(rig);
	}
}

static void c04_g03_an_any_size_port_is_gated_on_all_its_streams(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 100; seed++)
		rig_in_world(seed, any_size_receiver);
	rig_on_host(any_size_receiver);
}

/* The only holder of a received message writes in place; all receivers wait for that, and
 * it may keep the message. */
static weir_status write_in_place(struct rig *rig, weir_context *context, weir_message **out)
{
	weir_message *message = weir_context_message(context, 0, 0);
	weir_stream *stream = weir_context_stream(context);
	int64_t *place = weir_message_data(message);

	HOLDS(rig, weir_message_unique(message));
	*out = message;
	return weir_stream_launch(stream, &adder, &(struct sum){place, {place, NULL}, 10, 5 * MS},
				  sizeof(struct sum));
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

		rig->options.signal = signals[i];
		rig->own = &kept;
		rig_on(rig, "a", on_internal);
		rig_on(rig, "b", on_internal);
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
	return weir_stream_launch(weir_context_stream(context), &adder,
				  &(struct sum){&nowhere, {data(context, 0), NULL}, 0, 20 * MS},
				  sizeof(struct sum));
}

static weir_status may_not_write(struct rig *rig, weir_context *context)
{
	weir_message *message = weir_context_message(context, 0, 0);

	HOLDS(rig, wr_message_references(message) == 1 && !weir_message_unique(message));
	return WEIR_OK;
}

static void only_holder_of_what_is_read(void)
{
	struct rig *rig = rig_of("a:call count=1 -> x:call; a -> p:call asynchronous=1");

	rig_on(rig, "a", on_internal);
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
	for (uint64_t seed = 1; seed <= 20; seed++)
		rig_in_world(seed, only_holder_of_what_is_read);
}

/* Passed on a tick later: others hold it by then, and have waited for what it carried. */
static weir_status pass_on_later(struct rig *rig, weir_context *context)
{
	weir_message **kept = rig->own;
	weir_stream *stream = weir_context_stream(context);

	if (!*kept) {
		*kept = weir_message_ref(weir_context_message(context, 0, 0));
		return WEIR_OK;
	}
	static int64_t place;
	weir_status status = weir_stream_launch(
		stream, &adder, &(struct sum){&place, {NULL, NULL}, 1, 100 * MS}, sizeof(struct sum));
	return status ? status : weir_context_emit(context, 0, weir_message_ref(*kept));
}

static weir_status has_one_stream(struct rig *rig, weir_context *context)
{
	HOLDS(rig, weir_message_fences(weir_context_message(context, 0, 0), NULL, 0) == 1);
	weir_entity_tell(weir_graph_entity(rig->graph, "x"), "asynchronous", WEIR_TOLD_EVENT_DONE);
	return WEIR_OK;
}

static void passing_on_later(void)
{
	for (int i = 0; i < 3; i++) {
		struct rig *rig = rig_of(
			"a:call count=2 -> p:call -> y:call; a -> x:end gate=in capacity=2 asynchronous=1");
		weir_message *kept = NULL;

		rig->options.signal = signals[i];
		rig->own = &kept;
		rig_on(rig, "a", on_internal);
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

	if (tick_of(context) % 2 == 0)
		return add(context, weir_context_stream(context), tick_of(context), 20 * MS, kept);
	status = weir_context_emit(context, 0, *kept);
	*kept = NULL;
	return status;
}

static void emitting_later(void)
{
	for (int i = 0; i < 3; i++) {
		struct rig *rig = rig_of("a:call count=4 -> end gate=in");
		weir_message *kept = NULL;

		rig->options.signal = signals[i];
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
	weir_stream *stream = carried(context, 0, 0);
	int64_t *place = rig->own;
	weir_status status = weir_context_set_stream(context, 0, stream);

	if (!status)
		status = weir_context_receive_stream(context, 0, false, false, &stream);
	return status ? status
		      : weir_stream_launch(stream, &adder, &(struct sum){place, {place, NULL}, 1, 20 * MS},
					   sizeof(struct sum));
}

static void changing_streams(void)
{
	struct rig *rig = rig_of("a:call count=4 -> p:call pool=none");
	int64_t place = 0;

	rig->own = &place;
	rig_on(rig, "a", on_one_of_many);
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

static void a_message_without_a_stream_is_ready_at_once(void **state)
{
	struct rig *rig = rig_of("source ticks=3 -> p:pass -> end gate=in");

	(void)state;
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_string_equal(rig_text(rig, "end"), "0 1 2");
	assert_true(rig->outcome.duration_ns < MS);
	rig_destroy(rig);
}

/* --- start, stop, runs --- */

static weir_status begin(struct rig *rig, weir_context *context)
{
	weir_stream *stream = NULL, *target = weir_context_stream(context);
	weir_message *message = NULL;
	weir_status status = weir_context_allocate_stream(context, "tables", &stream);

	refused(rig, weir_context_receive_stream(context, 0, true, false, &stream), WEIR_E_INVALID,
		"p: streams are received in compute: its messages are taken when it begins");
	refused(rig, weir_context_set_stream(context, 0, stream), WEIR_E_INVALID,
		"p: a stream is set in compute");
	HOLDS(rig, weir_context_receive_streams(context, 0, 0, &stream, 1) == 0);
	if (!status)
		status = add(context, stream, 1, 10 * MS, &message);
	if (!status)
		status = weir_context_synchronize_streams(context, &stream, 1, target);
	if (!status)
		status = weir_stream_launch(target, &adder,
					    &(struct sum){rig->own, {weir_message_data(message), NULL}, 1, 0},
					    sizeof(struct sum));
	weir_message_unref(message);
	return status;
}

static void end(struct rig *rig, weir_context *context)
{
	weir_stream *stream = NULL;

	HOLDS(rig, *(int64_t *)rig->own == 12);
	HOLDS(rig, weir_context_allocate_stream(context, "tables", &stream) == WEIR_OK);
	refused(rig, weir_context_receive_stream(context, 0, true, false, &stream), WEIR_E_INVALID,
		"received in compute");
}

/* Its last work is on a stream that is not the current one. */
static weir_status work_late(struct rig *rig, weir_context *context)
{
	weir_stream *stream = NULL, *internal = weir_context_stream(context);
	weir_status status = weir_context_allocate_stream(context, "tables", &stream);

	if (!status)
		status = weir_context_synchronize_streams(context, &internal, 1, stream);
	return status ? status
		      : weir_stream_launch(stream, &adder,
					   &(struct sum){rig->own, {rig->own, NULL}, 10, 30 * MS},
					   sizeof(struct sum));
}

static void starting_and_stopping(void)
{
	struct rig *rig = rig_of("source ticks=1 -> p:call");
	int64_t place = -1;

	rig->own = &place;
	rig_on(rig, "p", work_late);
	rig_entity(rig, "p")->start = begin;
	rig_entity(rig, "p")->stop = end;
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_int_equal(rig_run(rig), WEIR_OK);
	rig_destroy(rig);
}

/* --- observers of streams --- */

static struct {
	char text[256];
} observed;

static void note_stream_owner(void *self, void *native, const char *owner)
{
	size_t length = strlen(observed.text);

	(void)self;
	assert_null(native); /* host and sim have no native streams */
	snprintf(observed.text + length, sizeof observed.text - length, "%s%s", length ? " " : "", owner);
}

static weir_status open_observer(void **self)
{
	*self = &observed;
	return WEIR_OK;
}

/* "tables" in start, its current stream in the first tick, "late" in the second; the
 * default stream has no owner. */
static weir_status allocate_late(struct rig *rig, weir_context *context)
{
	weir_stream *stream = NULL, *default_stream = weir_context_default_stream(context);

	HOLDS(rig, default_stream && weir_context_stream(context));
	return tick_of(context) == 1 ? weir_context_allocate_stream(context, "late", &stream) : WEIR_OK;
}

static weir_status allocate_at_start(struct rig *rig, weir_context *context)
{
	weir_stream *stream = NULL;

	(void)rig;
	return weir_context_allocate_stream(context, "tables", &stream);
}

static void observing_streams(void)
{
	static const struct wr_observer observer = {
		.name = "test", .open = open_observer, .stream = note_stream_owner};
	static const struct wr_observer *const observers[] = {&observer};
	struct rig *rig = rig_of("source ticks=3 -> p:call");

	rig_on(rig, "p", allocate_late);
	rig_entity(rig, "p")->start = allocate_at_start;
	rig_make(rig);
	assert_int_equal(wr_trace_open_with(&rig->scheduler->trace, observers, 1), WEIR_OK);
	observed.text[0] = '\0';
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_string_equal(observed.text, "p.tables p p.late");
	assert_int_equal(rig_run(rig), WEIR_OK); /* each run names its streams anew */
	assert_string_equal(observed.text, "p.tables p p.late p.tables p p.late");
	rig_destroy(rig);
}

static void profilers_hear_of_each_stream_once_a_run_by_whose_it_is(void **state)
{
	(void)state;
	rig_everywhere(observing_streams);
}

static void s07_start_may_use_streams_and_stop_comes_after_all_of_them(void **state)
{
	(void)state;
	rig_everywhere(starting_and_stopping);
}

/* Its only work is on a stream that is not the current one, and goes on while the run is cut short. */
static weir_status work_beside_and_cut(struct rig *rig, weir_context *context)
{
	weir_stream *stream = NULL;
	weir_status status = weir_context_allocate_stream(context, "tables", &stream);

	if (!status)
		status = weir_stream_launch(stream, &adder, &(struct sum){rig->own, {NULL, NULL}, 5, 20 * MS},
					    sizeof(struct sum));
	weir_scheduler_stop(rig->scheduler, false);
	return status;
}

static void end_after_all(struct rig *rig, weir_context *context)
{
	(void)context;
	HOLDS(rig, *(int64_t *)rig->own == 5);
}

static void cutting_short(void)
{
	struct rig *rig = rig_of("p:call count=1");
	int64_t place = -1;

	rig->own = &place;
	rig_on(rig, "p", work_beside_and_cut);
	rig_entity(rig, "p")->stop = end_after_all;
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_int_equal(wr_load(&rig->stopped), 1);
	rig_destroy(rig);
}

static void s07_stop_waits_a_while_for_all_streams_of_a_run_that_was_cut_short(void **state)
{
	(void)state;
	rig_everywhere(cutting_short);
}

static weir_status begin_long(struct rig *rig, weir_context *context)
{
	return weir_stream_launch(weir_context_stream(context), &adder,
				  &(struct sum){rig->own, {rig->own, NULL}, 5, 30 * MS}, sizeof(struct sum));
}

static weir_status begin_badly(struct rig *rig, weir_context *context)
{
	(void)rig;
	return weir_context_fail(context, "no");
}

static void end_after(struct rig *rig, weir_context *context)
{
	(void)context;
	HOLDS(rig, *(int64_t *)rig->own == 5);
}

static void failing_start(void)
{
	struct rig *rig = rig_of("p:call count=1; q:call count=1");
	int64_t place = 0;

	rig->own = &place;
	rig_make(rig);
	rig_here(rig);
	rig_entity(rig, "p")->start = begin_long;
	rig_entity(rig, "p")->stop = end_after;
	rig_entity(rig, "q")->start = begin_badly;
	assert_int_equal(weir_scheduler_start(rig->scheduler), WEIR_E_FAILED);
	assert_string_equal(weir_last_error(), "q: no");
	assert_int_equal(wr_load(&rig->broken), 0);
	assert_int_equal(wr_load(&rig->stopped), 1);
	rig_destroy(rig);
}

static void s07_stop_comes_after_the_streams_also_when_another_did_not_start(void **state)
{
	(void)state;
	rig_everywhere(failing_start);
	failing_start();
}

/* --- a drain that ran out of time --- */

/* The first run does nothing; the second is cut short while the device works for longer
 * than the wait after a drain. */
static weir_status work_in_the_second_run(struct rig *rig, weir_context *context)
{
	weir_stream *stream = weir_context_stream(context);

	if (!wr_load(&rig->told))
		return WEIR_OK;
	weir_scheduler_stop(rig->scheduler, false);
	return weir_stream_launch(stream, &adder, &(struct sum){rig->own, {NULL, NULL}, 5, SECOND},
				  sizeof(struct sum));
}

static void running_again(void)
{
	struct rig *rig = rig_of("p:call count=1; idle:call enabled=false");
	int64_t place = -1;

	rig->own = &place;
	rig->options.drain_ns = -1;
	rig->options.deadlock_grace_ns = -1;
	rig->options.max_duration_ns = MS;
	rig_on(rig, "p", work_in_the_second_run);
	assert_int_equal(rig_run(rig), WEIR_E_ABANDONED);
	wr_store(&rig->told, 1);
	assert_int_equal(rig_run(rig), WEIR_OK);
	rig_destroy(rig);
	assert_int_equal(place, 5);
}

static void e04_s08_a_drain_that_took_too_long_does_not_hurry_the_end_of_later_runs(void **state)
{
	(void)state;
	rig_in_world(1, running_again);
}

/* --- a start that failed --- */

static bool in_capture;

static bool is_in_capture(void *self, int device, void *stream)
{
	(void)self;
	(void)device;
	(void)stream;
	return in_capture;
}

/* It has the native handle, and leaves a capture open. */
static weir_status begin_in_capture(struct rig *rig, weir_context *context)
{
	weir_stream *stream = weir_context_stream(context);

	HOLDS(rig, stream);
	wr_store(&wr_load(&stream->root)->exposed, true);
	return weir_stream_launch(stream, &adder, &(struct sum){rig->own, {NULL, NULL}, 5, MS},
				  sizeof(struct sum));
}

static void starting_again(void)
{
	struct rig *rig = rig_of("p:call count=1");
	const struct wr_backend *before;
	struct wr_backend capturing;
	int64_t place = -1;

	rig->own = &place;
	rig_entity(rig, "p")->start = begin_in_capture;
	rig_make(rig);
	rig_here(rig);
	before = rig->graph->system->backend;
	capturing = *before;
	capturing.capturing = is_in_capture;
	rig->graph->system->backend = &capturing;
	in_capture = true;
	assert_int_equal(weir_scheduler_start(rig->scheduler), WEIR_E_UNSUPPORTED);
	in_capture = false;
	assert_int_equal(wr_live_count(&rig->scheduler->live), 0);
	assert_int_equal(weir_scheduler_start(rig->scheduler), WEIR_OK);
	assert_int_equal(weir_scheduler_wait(rig->scheduler, 10 * SECOND, NULL), WEIR_OK);
	rig->graph->system->backend = before;
	rig_destroy(rig);
}

static void s08_e02_a_stream_that_a_failed_start_left_holds_no_later_run_open(void **state)
{
	(void)state;
	rig_in_world(1, starting_again);
}

/* Notes the highest index in the table of streams, the lower 16 bits of an id. */
static void note_highest_index(struct rig *rig, weir_context *context)
{
	const struct wr_own_streams *own = &weir_context_entity(context)->own;

	for (size_t i = 0; i < own->count; i++) {
		uint64_t place = weir_stream_id(own->items[i].stream) & 0xffff, last = wr_load(&rig->told);
		while (place > last && !wr_cas(&rig->told, &last, place))
			;
	}
}

static weir_status many_noted(struct rig *rig, weir_context *context)
{
	weir_status status = on_one_of_many(rig, context);

	note_highest_index(rig, context);
	return status;
}

static weir_status internal_noted(struct rig *rig, weir_context *context)
{
	weir_status status = on_internal(rig, context);

	(void)carried(context, 0, 0);
	note_highest_index(rig, context);
	return status;
}

/* Takes longer than a run that was cut short waits. */
static weir_status work_long_elsewhere(struct rig *rig, weir_context *context)
{
	weir_stream *stream = NULL;
	weir_status status = weir_context_allocate_stream(context, "tables", &stream);

	HOLDS(rig, weir_context_stream(context));
	return status ? status
		      : weir_stream_launch(stream, &adder,
					   &(struct sum){rig->own, {rig->own, NULL}, 10, SECOND},
					   sizeof(struct sum));
}

static void cut_short(void)
{
	struct rig *rig = rig_of("p:call count=1");
	int64_t place = 2;

	rig->own = &place;
	rig_on(rig, "p", work_long_elsewhere);
	rig_start(rig);
	assert_int_equal(weir_scheduler_wait(rig->scheduler, 5 * MS, NULL), WEIR_E_TIMEOUT);
	weir_scheduler_stop(rig->scheduler, false);
	rig_wait(rig);
	assert_int_equal(wr_load(&rig->stopped), 0);
	rig_destroy(rig);
	assert_int_equal(place, 12);
}

static void s07_stop_is_not_called_while_any_of_the_streams_works(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 5; seed++)
		rig_in_world(seed, cut_short);
}

static void three_runs(void)
{
	rig_resources = POOL(", \"reserved_size\": 2, \"default\": true");
	struct rig *rig = rig_of(
		"a:call count=4 -> b:call -> end gate=in; c:call count=3 pool=none -> q:call pool=none");
	uint64_t last = 0;

	rig_resources = NULL;
	rig_on(rig, "a", many_noted);
	rig_on(rig, "b", internal_noted);
	rig_on(rig, "c", internal_noted);
	rig_on(rig, "q", internal_noted);
	for (int run = 0; run < 3; run++) {
		assert_int_equal(rig_run(rig), WEIR_OK);
		assert_int_equal(taken(rig, 0), 0);
		if (run)
			assert_int_equal(wr_load(&rig->told), last);
		last = wr_load(&rig->told);
	}
	rig_destroy(rig);
}

static void s08_runs_one_after_another_need_no_more_streams(void **state)
{
	(void)state;
	rig_everywhere(three_runs);
}

/* A stream that could not be received for lack of memory would not be waited for: so the tick fails. */
static weir_status by_hand(struct rig *rig, weir_context *context)
{
	weir_stream *found[4] = {NULL}, *target = NULL;
	size_t count = weir_context_receive_streams(context, 0, 0, found, 4);
	weir_status status = weir_context_allocate_stream(context, "hand", &target);

	(void)rig;
	if (!status)
		status = weir_context_synchronize_streams(context, found, count, target);
	if (!status)
		status = weir_context_set_stream(context, 0, target);
	return status ? status : emit_sum(context, 0, target, 0, MS);
}

/* Another backend for each scheduler: each has its own pools, partitions and streams. */
static void s08_schedulers_of_other_backends_have_streams_of_their_own(void **state)
{
	static const char *const backends[] = {"host", "sim", "host", "host", "sim", "sim"};

	(void)state;
	rig_resources =
		"{\"g\": {\"type\": \"green_context_pool\", \"sms_per_partition\": [2, 2]},"
		"\"p\": {\"type\": \"stream_pool\", \"device\": 1, \"reserved_size\": 3, \"max_size\": 3}}";
	struct rig *rig = rig_of("a:call count=3 pool=g -> b:call pool=p -> end gate=in capacity=2; c:call "
				 "count=2 pool=none -> d:call pool=default");

	rig_resources = NULL;
	rig_on(rig, "a", on_allocated);
	rig_on(rig, "b", by_hand);
	rig_on(rig, "c", on_internal);
	rig_on(rig, "d", on_internal);
	for (size_t i = 0; i < sizeof backends / sizeof *backends; i++) {
		rig->options.backend = backends[i];
		rig_entity(rig, "end")->length = 0;
		rig_make(rig);
		assert_int_equal(rig_run(rig), WEIR_OK);
		assert_int_equal(rig_run(rig), WEIR_OK);
		assert_string_equal(rig_text(rig, "end"), "0 1 2 0 1 2");
		assert_int_equal(taken(rig, 0), 0);
		assert_int_equal(weir_scheduler_destroy(rig->scheduler), WEIR_OK);
		rig->scheduler = NULL;
	}
	rig_destroy(rig);
}

/* --- what is refused --- */

static weir_status ask_wrongly(struct rig *rig, weir_context *context)
{
	weir_stream *stream = weir_context_stream(context), *none = NULL;
	int device = -1;

	refused(rig, weir_context_receive_stream(context, 9, true, false, &none), WEIR_E_INVALID,
		"p: a stream is received on input 9 of 3");
	refused(rig, weir_context_set_stream(context, 2, stream), WEIR_E_INVALID,
		"p: a stream is set on output 2 of 2");
	refused(rig, weir_context_set_stream(context, 0, NULL), WEIR_E_INVALID, "p: the stream is NULL");
	refused(rig, weir_context_synchronize_streams(context, &stream, 1, NULL), WEIR_E_INVALID,
		"p: the stream is NULL");
	refused(rig, weir_context_allocate_stream(context, "", &none), WEIR_E_INVALID,
		"p: a stream is allocated by a name");
	refused(rig, weir_context_allocate_stream(context, "second", &none), WEIR_E_BUSY,
		"p: no stream for 'second': stream pool 'p' is exhausted");
	refused(rig, weir_stream_launch(none, &adder, NULL, 0), WEIR_E_INVALID,
		"a stream is needed, NULL was given; this thread's last error: p: no stream for 'second'");
	refused(rig, weir_stream_copy(none, NULL, NULL, 0), WEIR_E_INVALID, "a stream is needed");
	refused(rig, weir_stream_wait(none, (weir_fence){0, 0}), WEIR_E_INVALID, "a stream is needed");
	refused(rig, weir_stream_record(none, NULL), WEIR_E_INVALID, "a stream is needed");
	refused(rig, weir_context_device_from_stream(context, &device, &device), WEIR_E_INVALID,
		"p: the native stream was not given to this entity");
	HOLDS(rig, !none && device == -1);
	HOLDS(rig, weir_context_receive_streams(context, 9, 0, &none, 1) == 0);
	HOLDS(rig, weir_context_device(context) == 0);
	return WEIR_OK;
}

static weir_status ask_for_more(struct rig *rig, weir_context *context)
{
	weir_stream *none = NULL;

	refused(rig, weir_context_allocate_stream(context, "one", &none), WEIR_E_UNSUPPORTED,
		"q: no stream for 'one': it has no stream pool");
	return none ? WEIR_E_INVALID : WEIR_OK;
}

static void asking_wrongly(void)
{
	rig_resources = POOL(", \"max_size\": 1");
	struct rig *rig = rig_of("source ticks=1 -> p:call pool=p; q:call count=1 pool=none");

	rig_resources = NULL;
	rig_on(rig, "p", ask_wrongly);
	rig_on(rig, "q", ask_for_more);
	assert_int_equal(rig_run(rig), WEIR_OK);
	rig_destroy(rig);
}

static void e06_wrong_calls_get_a_line_with_the_remedy(void **state)
{
	(void)state;
	rig_everywhere(asking_wrongly);
}

static weir_status unwrap_now(struct rig *rig, weir_context *context)
{
	refused(rig, weir_stream_unwrap(weir_context_stream(context)), WEIR_E_BUSY, "a run is on");
	HOLDS(rig, weir_stream_unwrap(NULL) == WEIR_OK);
	return WEIR_OK;
}

static void unwrapping(void)
{
	struct rig *rig = rig_of("p:call count=1");
	weir_stream *none = NULL;

	rig_on(rig, "p", unwrap_now);
	assert_int_equal(weir_stream_wrap(&none, rig->graph, 0, NULL), WEIR_E_INVALID);
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_int_equal(weir_stream_wrap(&none, rig->graph, 0, NULL), WEIR_E_UNSUPPORTED);
	assert_null(none);
	rig_destroy(rig);
}

static void f68_nothing_is_unwrapped_while_a_run_is_on(void **state)
{
	(void)state;
	rig_everywhere(unwrapping);
}

/* Nothing half-built stays: the same error again, and the graph can be destroyed. */
static void e06_a_resource_that_cannot_be_had_is_named(void **state)
{
	(void)state;
	rig_resources = "{\"g\": {\"type\": \"green_context_pool\", \"sms_per_partition\": [2, 5000]},"
			"\"s\": {\"type\": \"stream_pool\", \"green_context\": \"g\"}}";
	for (int i = 0; i < 2; i++) {
		rig_backend = i ? "host" : "sim";
		struct rig *rig = rig_of("p:call pool=s");
		for (int again = 0; again < 2; again++) {
			assert_int_equal(weir_scheduler_create(&rig->scheduler, rig->graph, &rig->options),
					 WEIR_E_INVALID);
			assert_says(weir_last_error(), "green_context_pool 'g'");
			assert_null(rig->graph->system);
			assert_null(rig->graph->pools);
		}
		rig_destroy(rig);
	}
	rig_backend = "sim";
	rig_resources = NULL;
}

static weir_status on_a_partition(struct rig *rig, weir_context *context)
{
	HOLDS(rig, weir_context_stream(context)->spec.partition);
	return on_internal(rig, context);
}

static void partitions(void)
{
	rig_resources = "{\"g\": {\"type\": \"green_context_pool\", \"sms_per_partition\": [2, 2]},"
			"\"second\": {\"type\": \"green_context\", \"pool\": \"g\", \"index\": 1},"
			"\"s\": {\"type\": \"stream_pool\", \"green_context\": \"second\"}}";
	struct rig *rig = rig_of("a:call count=3 pool=s -> b:call pool=g -> end gate=in");

	rig_resources = NULL;
	rig_on(rig, "a", on_a_partition);
	rig_on(rig, "b", on_a_partition);
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_string_equal(rig_text(rig, "end"), "0 1 2");
	rig_destroy(rig);
}

static void streams_of_partitions_work_and_wait_for_each_other(void **state)
{
	(void)state;
	rig_everywhere(partitions);
}

/* --- several devices --- */

static weir_status on_the_second(struct rig *rig, weir_context *context)
{
	weir_stream *stream = weir_context_stream(context);

	HOLDS(rig, weir_context_device(context) == 1 && weir_stream_device(stream) == 1);
	if (weir_context_count(context, 0))
		HOLDS(rig, weir_message_tensor(weir_context_message(context, 0, 0))->device == 1);
	return on_internal(rig, context);
}

static void two_devices(void)
{
	rig_resources = "{\"p\": {\"type\": \"stream_pool\", \"device\": 1}}";
	struct rig *rig = rig_of("a:call count=3 -> up:upload pool=p -> same:upload pool=p -> b:call pool=p "
				 "-> down:download pool=p "
				 "-> end gate=in");

	rig_resources = NULL;
	rig_on(rig, "a", on_internal);
	rig_on(rig, "b", on_the_second);
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_string_equal(rig_text(rig, "end"), "0 1 2");
	rig_destroy(rig);
}

static void a_tensor_goes_to_the_device_of_its_receiver(void **state)
{
	(void)state;
	rig_everywhere(two_devices);
}

/* A stream of another device is waited for but not used: the entity's memory is on its own device. */
static weir_status stay_at_home(struct rig *rig, weir_context *context)
{
	weir_stream *stream = weir_context_stream(context), *found = carried(context, 0, 0);

	HOLDS(rig, found && weir_stream_device(found) == 1);
	HOLDS(rig, stream && weir_stream_device(stream) == 0);
	return emit_sum(context, 0, stream, 0, 0);
}

static weir_status see_the_default(struct rig *rig, weir_context *context)
{
	HOLDS(rig, weir_message_fences(weir_context_message(context, 0, 0), NULL, 0) == 1);
	HOLDS(rig, !carried(context, 0, 0));
	return WEIR_OK;
}

static void another_device(void)
{
	rig_resources = "{\"p\": {\"type\": \"stream_pool\", \"device\": 1}}";
	struct rig *rig = rig_of("a:call pool=p count=2 -> b:call pool=none -> c:call");

	rig_resources = NULL;
	rig_on(rig, "a", on_the_second);
	rig_on(rig, "b", stay_at_home);
	rig_on(rig, "c", see_the_default);
	assert_int_equal(rig_run(rig), WEIR_OK);
	rig_destroy(rig);
}

static void t07_a_stream_of_another_device_is_waited_for_and_does_not_serve(void **state)
{
	(void)state;
	rig_everywhere(another_device);
}

/* --- F40 --- */

/* On a slow machine work may outlast the run that was cut short; `stop` is then called later. */
static bool may_keep_streams(struct rig *rig, const char *name)
{
	const weir_entity *entity = weir_graph_entity(rig->graph, name);

	return entity->fences_pending || entity->stop_owed;
}

/* Pool, share, default stream, set: allocation n fails, or all from n on. Returns true if
 * there were fewer. */
static bool run_with_failure(int64_t n, bool all)
{
	rig_resources = POOL(", \"max_size\": 2");
	struct rig *rig = rig_of("a:call pool=p count=2 -> b:call pool=none -> c:call pool=p -> h:call -> "
				 "end gate=in; d:call pool=none count=1 -> e:call");
	int64_t before = wr_memory_count();
	weir_status status;

	rig_resources = NULL;
	rig_on(rig, "a", on_allocated);
	rig_on(rig, "b", on_internal);
	rig_on(rig, "c", on_internal);
	rig_on(rig, "d", on_internal);
	rig_on(rig, "h", by_hand);
	wr_memory_fail_at(n, all);
	status = weir_scheduler_create(&rig->scheduler, rig->graph, &rig->options);
	if (!status) {
		rig_here(rig);
		status = weir_scheduler_run(rig->scheduler);
	}
	assert_true(status == WEIR_OK || status == WEIR_E_NOMEM || status == WEIR_E_FAILED ||
		    status == WEIR_E_DEVICE);
	wr_memory_fail_at(-1, false);
	for (size_t i = 0; rig->graph->pools && i < rig->graph->plan->stream_pool_count; i++)
		assert_true(taken(rig, i) == 0 || may_keep_streams(rig, "a") || may_keep_streams(rig, "c"));
	if (!status)
		assert_string_equal(rig_text(rig, "end"), "0 1");
	rig_destroy(rig);
	return wr_memory_count() - before <= n;
}

static void fail_everywhere(void)
{
	for (int all = 0; all < 2; all++) {
		int64_t n = 0;
		while (n < 3000 && !run_with_failure(n, all))
			n += STEP;
		assert_in_range(n, 20, 2999);
	}
}

static void f40_t04_without_memory_streams_are_given_back_and_payloads_kept(void **state)
{
	(void)state;
	if (SEEDS <= 10)
		return;
	rig_in_world(1, fail_everywhere);
	rig_on_host(fail_everywhere);
}

int main(int count, char **arguments)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(t03_g01_what_allocated_streams_made_is_received_on_the_internal_one),
		cmocka_unit_test(t03_t07_receive_stream_waits_for_its_input_alone),
		cmocka_unit_test(t07_sync_to_default_has_the_default_stream_come_after),
		cmocka_unit_test(t01_t07_an_exhausted_pool_leaves_the_stream_of_the_messages),
		cmocka_unit_test(t07_without_a_pool_the_first_stream_found_serves),
		cmocka_unit_test(t07_an_entity_without_a_stream_works_on_the_inputs_streams),
		cmocka_unit_test(t04_t07_the_default_stream_is_carried_by_nothing_and_keeps_payloads),
		cmocka_unit_test(t07_use_default_stream_makes_it_travel),
		cmocka_unit_test(t07_set_stream_is_of_one_output_and_one_tick),
		cmocka_unit_test(g03_t07_a_message_carries_several_streams_and_the_gate_waits_for_all),
		cmocka_unit_test(t07_what_is_passed_on_carries_what_it_carried_unless_it_has_no_other_holder),
		cmocka_unit_test(g01_a_queue_holds_messages_of_different_streams),
		cmocka_unit_test(c04_g03_an_any_size_port_is_gated_on_all_its_streams),
		cmocka_unit_test(a_message_without_a_stream_is_ready_at_once),
		cmocka_unit_test(t04_a_message_that_is_still_read_is_not_written_in_place),
		cmocka_unit_test(s07_stop_comes_after_the_streams_also_when_another_did_not_start),
		cmocka_unit_test(t07_two_owners_of_one_queue_are_one_stream),
		cmocka_unit_test(t03_t07_ticks_are_in_order_also_if_the_internal_stream_was_in_use_already),
		cmocka_unit_test(t03_t07_what_is_emitted_a_tick_later_carries_its_writer),
		cmocka_unit_test(g02_t07_what_was_kept_and_is_passed_on_later_carries_what_it_carried),
		cmocka_unit_test(t07_what_was_written_in_place_carries_its_writer_wherever_it_goes),
		cmocka_unit_test(profilers_hear_of_each_stream_once_a_run_by_whose_it_is),
		cmocka_unit_test(s07_start_may_use_streams_and_stop_comes_after_all_of_them),
		cmocka_unit_test(s07_stop_waits_a_while_for_all_streams_of_a_run_that_was_cut_short),
		cmocka_unit_test(s07_stop_is_not_called_while_any_of_the_streams_works),
		cmocka_unit_test(e04_s08_a_drain_that_took_too_long_does_not_hurry_the_end_of_later_runs),
		cmocka_unit_test(s08_e02_a_stream_that_a_failed_start_left_holds_no_later_run_open),
		cmocka_unit_test(s08_runs_one_after_another_need_no_more_streams),
		cmocka_unit_test(s08_schedulers_of_other_backends_have_streams_of_their_own),
		cmocka_unit_test(e06_wrong_calls_get_a_line_with_the_remedy),
		cmocka_unit_test(e06_a_resource_that_cannot_be_had_is_named),
		cmocka_unit_test(streams_of_partitions_work_and_wait_for_each_other),
		cmocka_unit_test(a_tensor_goes_to_the_device_of_its_receiver),
		cmocka_unit_test(f68_nothing_is_unwrapped_while_a_run_is_on),
		cmocka_unit_test(f40_t04_without_memory_streams_are_given_back_and_payloads_kept),
		cmocka_unit_test(t07_a_stream_of_another_device_is_waited_for_and_does_not_serve),
	};

	if (count > 1)
		cmocka_set_test_filter(arguments[1]);
	return cmocka_run_group_tests_name("scheduler/streams", tests, NULL, NULL);
}
