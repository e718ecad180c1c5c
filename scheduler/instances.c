/*
 * The dealer passes the set that it took to one instance, in turn; the joiner passes on what one instance
 * emitted, in the same turn. A message of `turn`, the last port of each, comes behind a set and says that all
 * of it is there: its push releases what was pushed before, and its queue has one place, so there is room for
 * a set if there is for it.
 *
 * The joiner holds (C4) the ports of the other instances: a review closes the fronts of all ports, and would
 * take parts of sets whose turn it is not.
 */
#include "scheduler/instances.h"

#include "scheduler/graph.h"

/* The ports of the turn are [first, last]; last is `turn`. */
struct turn {
	size_t first, last;
};

static struct turn turn_of(const weir_entity *entity, size_t ports)
{
	size_t each = ports / entity->plan->instances;
	size_t first = entity->context.tick % entity->plan->instances * each;

	return (struct turn){first, first + each - 1};
}

/* --- the condition --- */

/* Looks at the room once: after a second look, which may find some, the set would not be asked about. */
static bool waits_for_room(weir_view *view, size_t output, weir_verdict *verdict)
{
	if (wr_view_has_room(view, (unsigned)output, 1))
		return false;
	weir_verdict_wait(verdict, "the instance whose turn it is has a set before it");
	weir_verdict_set_cause(verdict, WEIR_CAUSE_ROOM, (int)output, 1);
	return true;
}

static void ask_set(weir_view *view, size_t input, weir_verdict *verdict)
{
	enum wr_answer answer = wr_view_messages(view, (unsigned)input, 1);

	if (answer == WR_READY) {
		weir_verdict_ready(verdict);
		return;
	}
	if (answer == WR_NEVER)
		weir_verdict_never(verdict, "no more sets come");
	else
		weir_verdict_wait(verdict, "no set is complete");
	weir_verdict_set_cause(verdict, WEIR_CAUSE_MESSAGES, (int)input, 1);
}

static void instances_ask(const void *state, weir_view *view, weir_verdict *verdict)
{
	const weir_entity *entity = view->entity;

	(void)state;
	switch (entity->plan->role) {
	case WR_DEALER:
		if (!waits_for_room(view, turn_of(entity, entity->output_count).last, verdict))
			weir_verdict_ready(verdict);
		break;
	case WR_JOINER:
		ask_set(view, turn_of(entity, entity->input_count).last, verdict);
		break;
	case WR_INSTANCE:
		if (!entity->output_count || !waits_for_room(view, entity->output_count - 1, verdict))
			ask_set(view, entity->input_count - 1, verdict);
		break;
	case WR_PLAIN:
		break;
	}
}

const weir_condition wr_instances_condition = {
	.size = sizeof(weir_condition),
	.name = "order of its instances",
	.help = "it is the turn of an instance",
	.phase = WEIR_PHASE_GATHERING,
	.ask = instances_ask,
};

/* --- the computes --- */

static weir_status emit_turn(weir_context *context, size_t output)
{
	weir_message *message = NULL;
	weir_status status = weir_message_create_empty(context->entity->graph, &message);

	return status ? status : weir_context_emit(context, (unsigned)output, message);
}

static weir_status forward_all(weir_context *context, size_t input, size_t output)
{
	weir_status status = WEIR_OK;

	for (size_t i = 0; !status && i < context->entity->inputs[input].taken_count; i++)
		status = weir_context_forward(context, (unsigned)input, i, (unsigned)output);
	return status;
}

static uint64_t received_before(const struct wr_input *input)
{
	uint64_t count = 0;

	for (size_t i = 0; i < input->count; i++)
		count += wr_read(&input->connections[i]->queue.counters.delivered);
	return count - input->taken_count;
}

/*
 * Numbers of two sets: the instance may compute one while the next is dealt. Its owner reads them after it
 * took `turn`, and `turn` has room when the instance has computed the set before the one that it took.
 */
static uint64_t *dealt_to(const weir_entity *instance, uint64_t tick)
{
	return instance->dealt->numbers + tick % 2 * (instance->input_count - 1);
}

static weir_status deal(weir_context *context, void *state)
{
	const weir_entity *entity = context->entity;
	const struct wr_plan_entity *plan = entity->plan;
	struct turn turn = turn_of(entity, entity->output_count);
	const weir_entity *instance = &entity->graph->entities[plan->first + context->tick % plan->instances];
	uint64_t *dealt = dealt_to(instance, context->tick / plan->instances);
	weir_status status = WEIR_OK;

	(void)state;
	for (size_t i = 0; !status && i < entity->input_count; i++) {
		dealt[i] = received_before(&entity->inputs[i]);
		status = forward_all(context, i, turn.first + i);
	}
	return status ? status : emit_turn(context, turn.last);
}

static weir_status join(weir_context *context, void *state)
{
	const weir_entity *entity = context->entity;
	size_t each = entity->input_count / entity->plan->instances;
	struct turn turn = turn_of(entity, entity->input_count);
	uint64_t tick = context->tick / entity->plan->instances;
	const weir_entity *instance =
		&entity->graph->entities[entity->plan->first + context->tick % entity->plan->instances];
	size_t next = (turn.first + each) % entity->input_count;
	weir_status status = WEIR_OK;

	(void)state;
	for (size_t i = 0; !status && i < entity->output_count; i++)
		status = forward_all(context, turn.first + i, i);
	for (size_t i = 0; i < each; i++)
		wr_input_hold(&entity->inputs[turn.first + i], true);
	for (size_t i = 0; i < each; i++)
		wr_input_hold(&entity->inputs[next + i], false);
	/* It may be in its next tick, which comes later. */
	if (wr_read(&instance->dealt->last) == tick + 1)
		context->entity->finished = true;
	return status;
}

void wr_instances_end(weir_context *context)
{
	wr_note(&context->entity->dealt->last, context->tick + 1); /* the push of `turn` releases it */
	context->entity->finished = true;
}

/* `turn` is none of the operator's ports: it cannot emit there. */
static weir_status compute_instance(weir_context *context, void *state)
{
	weir_entity *entity = context->entity;
	const weir_operator *kind = entity->plan->kind;
	weir_status status = kind->compute ? kind->compute(context, state) : WEIR_OK;
	size_t last = entity->output_count - 1;

	if (status || !entity->output_count)
		return status;
	entity->outputs[last].max_emits = 1;
	status = emit_turn(context, last);
	entity->outputs[last].max_emits = 0;
	return status;
}

weir_status (*wr_instances_compute(enum wr_role role))(weir_context *context, void *state)
{
	return role == WR_DEALER     ? deal
	       : role == WR_JOINER   ? join
	       : role == WR_INSTANCE ? compute_instance
				     : NULL;
}

/* --- around them --- */

uint64_t weir_context_received(const weir_context *context, unsigned input)
{
	const weir_entity *entity = context->entity;

	if (entity->plan->role == WR_INSTANCE)
		return input < entity->input_count - 1 ? dealt_to(entity, context->tick)[input] : 0;
	return input < entity->input_count ? received_before(&entity->inputs[input]) : 0;
}

weir_entity *wr_instances_sender(weir_entity *entity)
{
	const struct wr_plan_entity *plan = entity->plan;

	if (plan->role != WR_DEALER || plan->joiner == WR_NO_JOINER)
		return entity;
	return &entity->graph->entities[plan->joiner];
}

size_t wr_instances_receivers(const weir_entity *entity)
{
	const struct wr_plan_entity *plan = entity->plan;

	if (plan->role != WR_DEALER)
		return entity->receivers;
	return plan->joiner == WR_NO_JOINER ? 0 : entity->graph->entities[plan->joiner].receivers;
}

weir_entity *wr_instance_at(const weir_entity *entity, uint32_t k)
{
	const struct wr_plan_entity *plan = entity->plan;

	return plan->role == WR_DEALER && k < plan->instances ? &entity->graph->entities[plan->first + k]
							      : NULL;
}

weir_entity *wr_instances_part(weir_entity *entity, uint32_t k)
{
	weir_entity *sender = wr_instances_sender(entity);

	if (!k)
		return entity;
	if (entity->plan->role == WR_DEALER && k <= entity->plan->instances)
		return wr_instance_at(entity, k - 1);
	return sender != entity && k == entity->plan->instances + 1 ? sender : NULL;
}

/* What is in the queues between X's parts, or ended there. */
struct inside {
	uint64_t queued, closed, abandoned;
};

static void look_inside(struct inside *inside, const struct wr_input *input)
{
	struct wr_queue *queue = &input->connections[0]->queue;

	inside->queued += wr_queue_snapshot(queue);
	inside->closed += wr_read(&queue->counters.closed) + wr_read(&queue->counters.taken_back);
	inside->abandoned += wr_read(&queue->counters.abandoned);
}

/* Of the sets that were dealt: what came by that input of the dealer. */
static struct inside dealt_inside(const weir_entity *dealer, size_t input)
{
	struct inside inside = {0};
	const weir_entity *instance;

	for (uint32_t k = 0; (instance = wr_instance_at(dealer, k)); k++)
		look_inside(&inside, &instance->inputs[input]);
	return inside;
}

/* While the run is on the numbers are of several times. */
static uint64_t without(uint64_t count, const struct inside *inside)
{
	uint64_t less = inside->queued + inside->closed + inside->abandoned;

	return count > less ? count - less : 0;
}

void wr_instances_count_queue(const struct wr_connection *connection, weir_queue_counts *out)
{
	const struct wr_queue_counters *counters = &connection->queue.counters;
	const weir_entity *receiver = connection->receiver;
	struct inside inside = {0};

	if (receiver && receiver->plan->role == WR_DEALER)
		inside = dealt_inside(receiver, connection->input);
	*out = (weir_queue_counts){
		.size = sizeof *out,
		.from = connection->from,
		.to = connection->to,
		.pushed = wr_read(&counters->pushed),
		.delivered = without(wr_read(&counters->delivered), &inside),
		.dropped = wr_read(&counters->dropped),
		.closed = wr_read(&counters->closed) + wr_read(&counters->taken_back) + inside.closed,
		.queued = wr_queue_snapshot((struct wr_queue *)&connection->queue) + inside.queued,
		.abandoned = wr_read(&counters->abandoned) + inside.abandoned,
		.capacity = connection->queue.capacity,
		.unmatched = wr_read(&counters->unmatched),
		.reused = wr_read(&counters->reused),
	};
}

/* What ticks do, the instances did; most_in_flight is then the most that there can have been. */
static void count_instances(const weir_entity *entity, weir_entity_counts *counts)
{
	weir_entity *instance;

	counts->ticks = 0;
	for (uint32_t k = 0; (instance = wr_instance_at(entity, k)); k++) {
		struct wr_entity_counters *own = &instance->counters;
		uint64_t scratch = wr_read(&own->most_scratch);

		counts->ticks += wr_read(&own->ticks);
		counts->most_in_flight += wr_read(&own->most_in_flight);
		counts->most_scratch = scratch > counts->most_scratch ? scratch : counts->most_scratch;
		counts->replay_hits += wr_read(&own->replay_hits);
		counts->replay_captures += wr_read(&own->replay_captures);
		counts->replay_evictions += wr_read(&own->replay_evictions);
		counts->replay_failures += wr_read(&own->replay_failures);
		counts->held += wr_read(&own->held);
		counts->done &= (wr_load(&instance->state) & WR_DONE) > 0;
	}
	for (size_t i = 0; i < entity->input_count; i++) {
		struct inside inside = dealt_inside(entity, i);

		counts->received = without(counts->received, &inside);
	}
}

/* What the joiner has of sets whose turn has not come. */
static uint64_t count_unsent(const weir_entity *joiner)
{
	struct inside inside = {0};

	for (size_t i = 0; i < joiner->input_count; i++)
		if (!wr_instances_turn(joiner, i))
			look_inside(&inside, &joiner->inputs[i]);
	return inside.queued + inside.closed + inside.abandoned;
}

void wr_instances_count(weir_entity *entity, weir_entity_counts *out)
{
	weir_entity *sender = wr_instances_sender(entity);

	*out = (weir_entity_counts){
		.size = sizeof *out,
		.entity = entity->plan->name,
		.done = wr_load(&entity->state) & WR_DONE,
		.instances = entity->plan->instances,
	};
#define COPY(name) out->name = wr_read(&entity->counters.name);
	WR_ENTITY_COUNTERS(COPY)
#undef COPY
	if (entity->plan->role != WR_DEALER)
		return;
	count_instances(entity, out);
	out->emitted = sender == entity ? 0 : wr_read(&sender->counters.emitted);
	out->unsent = sender == entity ? 0 : count_unsent(sender);
	out->unconnected = sender == entity ? 0 : wr_read(&sender->counters.unconnected);
	out->done &= (wr_load(&sender->state) & WR_DONE) > 0;
}

size_t wr_instances_bound(const weir_entity *entity)
{
	int64_t given = entity->plan->max_in_flight;
	size_t bound = given < 0 ? entity->graph->max_in_flight : (size_t)given;

	if (entity->plan->role != WR_INSTANCE || !bound)
		return bound;
	bound /= entity->plan->instances;
	return bound ? bound : 1;
}

void wr_instances_reset(weir_entity *entity)
{
	if (entity->plan->role == WR_INSTANCE)
		wr_note(&entity->dealt->last, 0);
	if (entity->plan->role == WR_INSTANCE && entity->output_count)
		entity->outputs[entity->output_count - 1].max_emits = 0;
	if (entity->plan->role != WR_JOINER)
		return;
	for (size_t i = entity->input_count / entity->plan->instances; i < entity->input_count; i++)
		wr_input_hold(&entity->inputs[i], true);
}
