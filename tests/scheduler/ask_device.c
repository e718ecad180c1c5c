/*
 * What a review finds without asking a condition is what the condition says (C2): implied gates and
 * cuda_stream, with each set of fences in a front of two messages; ticks in flight and in_flight.
 */
#include "ask_rig.h"
#include "scheduler/graph.h"

/* --- gates, and cuda_stream --- */

static const struct shape gated = {.kind = "one",
				   .senders = 2,
				   .capacity = 2,
				   .take = 2,
				   .policy = "block",
				   .room = 1,
				   .emits = 1,
				   .receivers_policy = "block",
				   .conditions = "{\"type\": \"cuda_stream\", \"port\": \"in\"}"};

enum carried { NONE, COMPLETE, FIRST, SECOND, BOTH, SEVENTY, CARRIED };

/* Fences that were never recorded are not complete. */
static void add_unfinished(weir_message *message, unsigned from, unsigned to)
{
	for (unsigned i = from; i < to; i++)
		must(wr_message_add_fence(message, (weir_fence){UINT64_C(77) << 48 | (i + 1) << 16, 5},
					  WR_PRODUCED));
}

static weir_message *message_with(const struct world *world, enum carried carried, weir_fence complete)
{
	weir_message *message = NULL;

	must(wr_message_empty(world->graph->pool, &message));
	if (carried == COMPLETE || carried == SEVENTY)
		must(wr_message_add_fence(message, complete, WR_PRODUCED));
	if (carried == FIRST || carried == BOTH)
		add_unfinished(message, 0, 1);
	if (carried == SECOND || carried == BOTH)
		add_unfinished(message, 1, 2);
	if (carried == SEVENTY)
		add_unfinished(message, 0, 70);
	return message;
}

static size_t unfinished(enum carried a, enum carried b)
{
	bool first = a == FIRST || a == BOTH || b == FIRST || b == BOTH;
	bool second = a == SECOND || a == BOTH || b == SECOND || b == BOTH;

	return a == SEVENTY || b == SEVENTY ? 70 : (size_t)first + second;
}

/* A message in the front of each of the two connections. */
static void check_gate(const struct world *world, enum carried a, enum carried b, weir_fence complete)
{
	const weir_verdict *verdict = &world->x->verdict;
	struct wr_connection **connections = world->x->inputs[0].connections;
	size_t due = unfinished(a, b), waited = due < 64 ? due : 64;
	enum wr_answer answer = due ? WR_WAIT : WR_READY;
	weir_view view = {.entity = world->x};
	weir_message *taken[2];
	weir_fence fences[64];

	for (int i = 0; i < 2; i++) {
		wr_queue_push(&connections[i]->queue, message_with(world, i ? b : a, complete));
		wr_queue_close_front(&connections[i]->queue, 1);
	}
	world->x->inputs[0].gate = true;
	world->x->verdict.fence_count = 0;
	assert_int_equal(wr_gate_ask(&view, 0), due > 0);
	assert_int_equal(verdict->fence_count, waited);
	for (size_t i = 0; i < waited; i++)
		fences[i] = verdict->fences[i];
	assert_int_equal(weir_view_pending(&view, 0, 0, NULL), due);
	assert_int_equal(verdict->cause, due ? WEIR_CAUSE_DEVICE : WEIR_CAUSE_NONE);
	assert_true(same(ask_kind(world, "cuda_stream"),
			 (struct answer){answer, due ? WEIR_CAUSE_DEVICE : WEIR_CAUSE_NONE}));
	assert_int_equal(verdict->fence_count, waited);
	for (size_t i = 0; i < waited; i++)
		assert_true(fences[i].stream == verdict->fences[i].stream &&
			    fences[i].value == verdict->fences[i].value);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(wr_queue_take(&connections[i]->queue, &taken[0]), 1);
		weir_message_unref(taken[0]);
	}
}

/* A fence of real work, which has ended. */
static weir_fence complete_fence(const struct world *world, weir_stream **stream)
{
	weir_fence fence;

	must(weir_graph_add_stream(world->graph, 0, stream));
	must(weir_stream_record(*stream, &fence));
	must(weir_fence_wait(world->graph, fence, -1));
	return fence;
}

static void c08_a_gate_says_what_cuda_stream_says(void **state)
{
	struct world world = make_world(gated, true);
	weir_stream *stream;
	weir_fence complete = complete_fence(&world, &stream);

	(void)state;
	for (enum carried a = NONE; a < CARRIED; a++)
		for (enum carried b = NONE; b < CARRIED; b++)
			check_gate(&world, a, b, complete);
	destroy_world(&world);
}

/* --- ticks in flight --- */

/*
 * T8: N ticks are not known to be complete; those up to tick t = k - N + h - 1, rounded down to a multiple of
 * h = max(1, N / 2), are waited for, k being the next tick.
 */
static enum wr_answer flight_due(unsigned bound, unsigned ticks, unsigned known, unsigned complete)
{
	unsigned h = bound > 1 ? bound / 2 : 1, t;

	if (!bound || ticks - known < bound)
		return WR_READY;
	t = ticks + 1 - bound + h - 1;
	t -= t % h;
	return complete >= t ? WR_READY : WR_WAIT;
}

/* The entity's `ticks` ticks, of which the first are complete. */
static void check_flight(const struct world *world, unsigned bound, unsigned ticks, unsigned complete,
			 weir_stream *stream, weir_fence ended)
{
	weir_entity *x = world->x;
	struct wr_entity_stream item = {.stream = stream, .ended = true};
	enum wr_answer due;
	bool full;

	wr_flight_reset(&x->flight, bound);
	x->flight_full = false;
	x->streams.items = &item;
	x->streams.count = 1;
	for (unsigned i = 1; i <= ticks; i++) {
		item.last = i <= complete ? ended : (weir_fence){ended.stream, ended.value + 1000 + i};
		must(wr_flight_note_tick(x));
	}
	due = flight_due(bound, ticks, (unsigned)x->flight.completed, complete);
	full = x->flight_full;
	assert_int_equal(full, bound && ticks - x->flight.completed >= bound);
	assert_int_equal(ask(world).answer, due); /* asks in_flight only if it is full */
	x->flight_full = true;
	assert_int_equal(ask_each(world).answer, due);
	assert_int_equal(ask(world).answer, due);
	x->flight_full = full;
	assert_true(same(ask_kind(world, "in_flight"),
			 (struct answer){due, due ? WEIR_CAUSE_BOUND : WEIR_CAUSE_NONE}));
	x->streams.items = NULL;
	x->streams.count = 0;
}

static void t08_below_the_bound_in_flight_says_ready(void **state)
{
	struct world world = make_world((struct shape){.kind = "one",
						       .senders = 1,
						       .receivers = 1,
						       .capacity = 2,
						       .take = 1,
						       .policy = "block",
						       .room = 1,
						       .emits = 1,
						       .receivers_policy = "block"},
					true);
	struct states states;
	weir_stream *stream;
	weir_fence ended = complete_fence(&world, &stream);

	(void)state;
	memset(&states, 0, sizeof states);
	states.inputs[0].count = 1;
	for (unsigned bound = 0; bound <= 6; bound++)
		for (unsigned ticks = 0; ticks <= 2 * bound + 2; ticks++)
			for (unsigned complete = 0; complete <= ticks; complete++) {
				set_states(&world, &states);
				check_flight(&world, bound, ticks, complete, stream, ended);
			}
	clear_states(&world);
	destroy_world(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(c08_a_gate_says_what_cuda_stream_says),
		cmocka_unit_test(t08_below_the_bound_in_flight_says_ready),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
