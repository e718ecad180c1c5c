/*
 * What a review finds without asking a condition is what the condition says (C2), in each of many small
 * states of the queues of inputs and outputs. What it should be is computed from the same numbers.
 */
#include "ask_rig.h"

/* --- what a state should give --- */

static enum wr_answer messages_due(const struct world *world, const struct states *states)
{
	bool each = !strcmp(world->shape.kind, "any"), ended = each ? false : world->shape.senders > 0;
	unsigned need = world->shape.take ? world->shape.take : 1, total = 0, least = UINT32_MAX;

	for (unsigned i = 0; i < world->shape.senders; i++) {
		const struct state *state = &states->inputs[i];
		total += state->count;
		least = state->count < least ? state->count : least;
		if (each)
			ended |= state->closed && state->count < need;
		else
			ended &= state->closed;
	}
	if ((each ? least : total) >= need)
		return WR_READY;
	return ended ? WR_NEVER : WR_WAIT;
}

static bool room_due(const struct world *world, const struct states *states)
{
	if (strcmp(world->shape.receivers_policy, "block") != 0)
		return true;
	for (unsigned i = 0; i < world->shape.receivers; i++)
		if (states->outputs[i].end == LIVE &&
		    states->outputs[i].count + world->shape.emits > world->shape.room)
			return false;
	return true;
}

static struct answer answer_due(const struct world *world, const struct states *states)
{
	enum wr_answer messages = messages_due(world, states);

	if (messages != WR_READY)
		return (struct answer){messages, WEIR_CAUSE_MESSAGES};
	if (!room_due(world, states))
		return (struct answer){WR_WAIT, WEIR_CAUSE_ROOM};
	return (struct answer){WR_READY, WEIR_CAUSE_NONE};
}

static void describe(const struct world *world, const struct states *states)
{
	const struct shape *shape = &world->shape;

	print_error("%s: capacity %u, take %u, %s; room %u, emits %u, %s\n", shape->kind, shape->capacity,
		    shape->take, shape->policy, shape->room, shape->emits, shape->receivers_policy);
	for (unsigned i = 0; i < shape->senders; i++)
		print_error("  in %u: %u messages%s%s\n", i, states->inputs[i].count,
			    states->inputs[i].closed ? ", closed" : "",
			    states->inputs[i].stale ? ", stale" : "");
	for (unsigned i = 0; i < shape->receivers; i++)
		print_error("  out %u: %u messages, end %d%s\n", i, states->outputs[i].count,
			    states->outputs[i].end, states->outputs[i].stale ? ", stale" : "");
}

/* Each way to ask is given the same state, since asking changes what the ends remember. */
#define ASSERT_SAYS(asked, due)                                                                              \
	do {                                                                                                 \
		struct answer says;                                                                          \
		set_states(world, states);                                                                   \
		says = (asked);                                                                              \
		if (same(says, due))                                                                         \
			break;                                                                               \
		describe(world, states);                                                                     \
		fail_msg("%s: answer %d, cause %d; due: answer %d, cause %d", #asked, says.answer,           \
			 says.cause, (due).answer, (due).cause);                                             \
	} while (0)

struct reason {
	const char *why, *of;
	uint64_t cause;
};

static struct reason reason_asked(const struct world *world, const struct states *states)
{
	set_states(world, states);
	assert_int_equal(ask(world).answer, WR_WAIT);
	return (struct reason){world->x->why, world->x->why_of, world->x->cause};
}

/* The reason of a wait is the same when a review gives it without asking, as the condition gave it before. */
static void check_reason(const struct world *world, const struct states *states)
{
	struct reason asked, known;

	for (size_t i = 0; i < world->x->condition_count; i++)
		world->x->conditions[i].poke_why = NULL;
	asked = reason_asked(world, states);
	known = reason_asked(world, states);
	assert_non_null(asked.why);
	assert_string_equal(known.why, asked.why);
	assert_string_equal(known.of, asked.of);
	assert_int_equal(known.cause, asked.cause);
}

static unsigned ready; /* states whose answer was READY */

static void check_state(const struct world *world, const struct states *states)
{
	struct answer due = answer_due(world, states);
	struct answer messages = {messages_due(world, states), WEIR_CAUSE_MESSAGES};
	struct answer room = {room_due(world, states) ? WR_READY : WR_WAIT, WEIR_CAUSE_ROOM};

	messages.cause = messages.answer == WR_READY ? WEIR_CAUSE_NONE : messages.cause;
	room.cause = room.answer == WR_READY ? WEIR_CAUSE_NONE : room.cause;
	ready += due.answer == WR_READY;
	ASSERT_SAYS(ask_kind(world, "message_available"), messages);
	ASSERT_SAYS(ask_content(world), messages);
	if (world->shape.receivers) {
		ASSERT_SAYS(ask_kind(world, "downstream_message_affordable"), room);
		set_states(world, states);
		assert_int_equal(wr_entity_lacks_room(world->x), room.answer != WR_READY);
	}
	ASSERT_SAYS(ask_each(world), due);
	ASSERT_SAYS(ask(world), due);
	if (due.answer == WR_WAIT)
		check_reason(world, states);
	if (due.answer == WR_READY) /* the front is closed now */
		assert_true(same(ask(world), due) && same(ask_each(world), due));
}

/* --- enumerating --- */

/* The next value of a digit; false: it was the last one, and is 0 again. */
static bool next(unsigned *digit, unsigned values)
{
	*digit = *digit + 1 < values ? *digit + 1 : 0;
	return *digit;
}

static bool next_input(struct state *state, unsigned capacity)
{
	if (next(&state->count, capacity + 1))
		return true;
	state->closed = !state->closed;
	if (state->closed)
		return true;
	state->stale = !state->stale;
	return state->stale;
}

static bool next_output(struct state *state, unsigned capacity)
{
	unsigned end = state->end;
	bool more = next(&state->count, capacity + 1) || next(&end, ENDS);

	state->end = (enum end)end;
	if (more)
		return true;
	state->stale = !state->stale;
	return state->stale;
}

static bool next_states(const struct shape *shape, struct states *states)
{
	for (unsigned i = 0; i < shape->receivers; i++)
		if (next_output(&states->outputs[i], shape->room))
			return true;
	for (unsigned i = 0; i < shape->senders; i++)
		if (next_input(&states->inputs[i], shape->capacity))
			return true;
	return false;
}

static void check_shape(struct shape shape)
{
	struct world world = make_world(shape, false);
	bool locked = !strcmp(shape.policy, "pop");
	struct states states;

	memset(&states, 0, sizeof states);
	assert_int_equal(world.x->default_only, shape.senders == 1 && !locked);
	ready = 0;
	do
		check_state(&world, &states);
	while (next_states(&shape, &states));
	assert_true(ready > 0);
	clear_states(&world);
	destroy_world(&world);
}

static const char *const policies[] = {"block", "pop", "reject", "fault"};

/* All takes at all capacities up to 3; outputs with room for one emission or two, or without need of it. */
static void check_shapes(struct shape shape, size_t policy_count)
{
	static const struct {
		unsigned room, emits;
		const char *policy;
	} outputs[] = {{1, 1, "block"}, {2, 1, "block"}, {2, 2, "block"}, {1, 1, "pop"}, {1, 1, "reject"}};

	for (size_t p = 0; p < policy_count; p++)
		for (shape.capacity = 1; shape.capacity <= 3; shape.capacity++)
			for (shape.take = 0; shape.take <= 2 && shape.take <= shape.capacity; shape.take++)
				for (size_t o = 0; o < sizeof outputs / sizeof *outputs; o++) {
					shape.policy = policies[p];
					shape.room = outputs[o].room;
					shape.emits = outputs[o].emits;
					shape.receivers_policy = outputs[o].policy;
					check_shape(shape);
				}
}

static void c02_one_queue_in_and_one_out(void **state)
{
	(void)state;
	check_shapes((struct shape){.kind = "one", .senders = 1, .receivers = 1}, 4);
	check_shapes((struct shape){.kind = "any", .senders = 1, .receivers = 1}, 4);
}

static void c02_one_queue_in_and_two_out(void **state)
{
	(void)state;
	check_shapes((struct shape){.kind = "one", .senders = 1, .receivers = 2}, 1);
}

static void c02_an_output_without_a_connection(void **state)
{
	(void)state;
	check_shapes((struct shape){.kind = "one", .senders = 1}, 4);
}

static void c02_two_queues_in(void **state)
{
	(void)state;
	check_shapes((struct shape){.kind = "one", .senders = 2, .receivers = 1}, 2);
	check_shapes((struct shape){.kind = "any", .senders = 2, .receivers = 1}, 2);
}

/* A set of queues: each holds a message or none; closed are none, all, the empty ones or the full ones. */
static void check_set(struct shape shape)
{
	struct world world = make_world(shape, false);
	struct states states;

	assert_non_null(world.x->inputs[0].set);
	ready = 0;
	for (unsigned mask = 0; mask < 1u << MANY; mask++)
		for (unsigned closed = 0; closed < 4; closed++)
			for (unsigned full = 0; full <= shape.room; full++) {
				memset(&states, 0, sizeof states);
				for (unsigned i = 0; i < MANY; i++) {
					states.inputs[i].count = mask >> i & 1;
					states.inputs[i].closed = closed >> (mask >> i & 1) & 1;
				}
				states.outputs[0].count = full;
				check_state(&world, &states);
			}
	assert_true(ready > 0);
	clear_states(&world);
	destroy_world(&world);
}

static void c02_a_set_of_queues(void **state)
{
	struct shape shape = {.senders = MANY,
			      .receivers = 1,
			      .capacity = 2,
			      .take = 1,
			      .policy = "block",
			      .room = 1,
			      .emits = 1,
			      .receivers_policy = "block"};

	(void)state;
	for (shape.take = 0; shape.take <= 2; shape.take++) {
		shape.kind = "one";
		check_set(shape);
		shape.kind = "any";
		if (shape.take < 2) /* two messages are in no queue */
			check_set(shape);
	}
}

static void s03_memory_is_claimed_and_no_condition_says_that_it_is_there(void **state)
{
	struct world world = make_world((struct shape){.kind = "one",
						       .senders = 1,
						       .receivers = 1,
						       .capacity = 1,
						       .take = 1,
						       .policy = "block",
						       .room = 1,
						       .emits = 1,
						       .receivers_policy = "block"},
					false);

	(void)state;
	assert_int_equal(world.x->claim_count, 1);
	for (size_t i = 0; i < world.x->condition_count; i++)
		assert_true(world.x->conditions[i].ask &&
			    strcmp(world.x->conditions[i].plan->kind->name, "memory_available") != 0);
	destroy_world(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(c02_one_queue_in_and_one_out),
		cmocka_unit_test(c02_one_queue_in_and_two_out),
		cmocka_unit_test(c02_an_output_without_a_connection),
		cmocka_unit_test(c02_two_queues_in),
		cmocka_unit_test(c02_a_set_of_queues),
		cmocka_unit_test(s03_memory_is_claimed_and_no_condition_says_that_it_is_there),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
