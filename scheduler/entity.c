/*
 * Makes an entity from its part of the plan: ports, conditions, memory for the states of its operator and its
 * conditions.
 *
 * A reset before each run makes all runs begin alike (S8): states are zeroed, conditions are started,
 * counters are 0. It also finds the ports that no condition names, since inlets and outlets are made after
 * the graph. Thread: the one that starts the run; no worker runs.
 */
#include <limits.h>
#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "graphs/parameter.h"
#include "scheduler/align.h"
#include "scheduler/gpu_time.h"
#include "scheduler/graph.h"
#include "scheduler/instances.h"
#include "scheduler/memory.h"

void wr_input_hold(struct wr_input *input, bool hold)
{
	bool all = input->plan->take == WEIR_TAKE_ALL;

	input->take = all ? SIZE_MAX : input->plan->take;
	input->need = all ? 1 : input->plan->take;
	if (input->limit && input->take > input->limit)
		input->take = input->limit;
	if (input->limit && input->need > input->limit)
		input->need = input->limit;
	input->held = hold;
	if (hold)
		input->take = input->need = 0;
	if (input->count && input->plan->policy == WEIR_POLICY_LATEST)
		input->connections[0]->queue.held = hold;
}

static weir_status make_inputs(weir_entity *entity, const struct wr_plan_entity *plan)
{
	entity->inputs = wr_alloc(plan->input_count ? plan->input_count : 1, sizeof *entity->inputs);
	if (!entity->inputs)
		return WEIR_E_NOMEM;
	entity->input_count = plan->input_count;
	entity->shown_inputs = plan->input_count - (plan->role == WR_INSTANCE);
	for (size_t i = 0; i < plan->input_count; i++) {
		struct wr_input *input = &entity->inputs[i];
		input->plan = &plan->inputs[i];
		wr_input_hold(input, false);
		input->gate = plan->inputs[i].gate;
		input->any_size = plan->inputs[i].port->flags & WEIR_PORT_ANY_SIZE;
	}
	return WEIR_OK;
}

static weir_status make_outputs(weir_entity *entity, const struct wr_plan_entity *plan)
{
	entity->outputs = wr_alloc(plan->output_count ? plan->output_count : 1, sizeof *entity->outputs);
	if (!entity->outputs)
		return WEIR_E_NOMEM;
	entity->output_count = plan->output_count;
	for (size_t i = 0; i < plan->output_count; i++) {
		struct wr_output *output = &entity->outputs[i];
		output->plan = &plan->outputs[i];
		output->max_emits = output->plan->max_emits;
		output->needs = wr_plan_output_needs(output->plan);
		output->may_be_full = output->plan->port->flags & WEIR_PORT_FULL;
		output->emitted = wr_alloc(output->plan->max_emits, sizeof *output->emitted);
		if (!output->emitted)
			return WEIR_E_NOMEM;
	}
	return WEIR_OK;
}

/* NULL for no bytes: what uses the state of a table without a size fails at its first access. */
static weir_status make_state(void **out, size_t bytes)
{
	*out = bytes ? wr_alloc_aligned(64, bytes) : NULL;
	return bytes && !*out ? WEIR_E_NOMEM : WEIR_OK;
}

static void clear_state(void *state, size_t bytes)
{
	if (bytes)
		memset(state, 0, bytes);
}

static weir_status add_condition(weir_entity *entity, const struct wr_plan_condition *plan)
{
	struct wr_condition *condition = &entity->conditions[entity->condition_count];

	condition->plan = plan;
	condition->ask = plan->kind->ask;
	condition->cause_checked = UINT64_MAX; /* none */
	condition->poke_why = NULL;
	if (make_state(&condition->state, plan->kind->state_size))
		return WEIR_E_NOMEM;
	entity->condition_count++;
	if (!strcmp(plan->kind->name, "aligned") && wr_align_create(&condition->align, entity, plan))
		return WEIR_E_NOMEM;
	entity->wants_ticked |= plan->kind->ticked != NULL;
	entity->has_trees |= plan->span;
	entity->timed |= plan->kind->ticked && !(plan->kind->flags & WEIR_CONDITION_TIMELESS);
	if (plan->inner)
		return WEIR_OK; /* asked by its tree */
	if (plan->kind->phase == WEIR_PHASE_GATHERING) {
		entity->gathering_count++;
	} else {
		entity->has_content = true;
		/* The ports that it names: each must hold `need` messages before it is asked (C4). */
		for (unsigned i = 0; i < entity->input_count; i++)
			entity->inputs[i].content |=
				!entity->inputs[i].aligned && wr_condition_names(plan, i, true);
	}
	return WEIR_OK;
}

/* An any_of in the list, and each condition inside it behind the list. Of n alternatives all may name fences.
 */
static weir_status make_trees(weir_entity *entity, const struct wr_plan_entity *plan)
{
	weir_status status = WEIR_OK;

	for (size_t i = 0; !status && i < plan->condition_count; i++) {
		for (size_t k = 0; plan->conditions[i].span && k < entity->asked_count; k++) {
			struct wr_condition *tree = &entity->conditions[k];
			if (tree->plan != &plan->conditions[i])
				continue;
			tree->inside = &entity->conditions[entity->condition_count];
			tree->ends = wr_alloc(tree->plan->span, sizeof *tree->ends);
			status = tree->ends ? WEIR_OK : WEIR_E_NOMEM;
		}
		if (!status && plan->conditions[i].inner)
			status = add_condition(entity, &plan->conditions[i]);
	}
	if (status)
		return status;
	for (unsigned i = 0; i < entity->input_count; i++) {
		bool by[2] = {false, false}; /* a condition outside trees, or inside, names it */
		for (size_t k = 0; k < entity->condition_count; k++)
			by[k >= entity->asked_count] |=
				wr_condition_names(entity->conditions[k].plan, i, true);
		entity->inputs[i].chosen = by[1] && !by[0];
	}
	entity->wait.others =
		wr_alloc(entity->condition_count - entity->asked_count, sizeof *entity->wait.others);
	if (!entity->wait.others)
		return WEIR_E_NOMEM;
	entity->wait.other_count = entity->condition_count - entity->asked_count;
	return WEIR_OK;
}

static weir_status make_conditions(weir_entity *entity, const struct wr_plan_entity *plan)
{
	size_t count = plan->condition_count;
	weir_status status = WEIR_OK;

	entity->conditions = wr_alloc(count + 1, sizeof *entity->conditions);
	if (!entity->conditions)
		return WEIR_E_NOMEM;
	if (entity->graph->plan->in_flight.kind) {
		status = add_condition(entity, &entity->graph->plan->in_flight);
		entity->in_flight = entity->condition_count ? &entity->conditions[0] : NULL;
	}
	for (int phase = WEIR_PHASE_GATHERING; phase <= WEIR_PHASE_CONTENT; phase++)
		for (size_t i = 0; !status && i < count; i++)
			if ((int)plan->conditions[i].kind->phase == phase && !plan->conditions[i].claims &&
			    !plan->conditions[i].inner)
				status = add_condition(entity, &plan->conditions[i]);
	entity->asked_count = entity->condition_count;
	return status || !entity->has_trees ? status : make_trees(entity, plan);
}

/* A `memory_available` is not asked: it is a claim, made when all other conditions hold (S3). */
static weir_status make_claims(weir_entity *entity, const struct wr_plan_entity *plan)
{
	if (!plan->memory_count)
		return WEIR_OK;
	entity->claims = wr_alloc(plan->memory_count, sizeof *entity->claims);
	if (!entity->claims)
		return WEIR_E_NOMEM;
	for (; entity->claim_count < plan->memory_count; entity->claim_count++) {
		const struct wr_plan_memory *memory = &plan->memory[entity->claim_count];

		entity->claims[entity->claim_count] = (struct wr_claim){
			.from = &entity->graph->memory_pools[memory->pool].shared,
			.entity = entity,
			.units = memory->units,
			.ahead = memory->ahead,
		};
	}
	return WEIR_OK;
}

/* Of an operator without compute. */
static weir_status compute_nothing(weir_context *context, void *state)
{
	(void)context, (void)state;
	return WEIR_OK;
}

weir_status wr_entity_fill(weir_entity *entity, weir_graph *graph, uint32_t id,
			   const struct wr_plan_entity *plan)
{
	weir_status status;

	entity->id = id;
	entity->graph = graph;
	wr_store_relaxed(&entity->cost, WR_COST_UNKNOWN);
	wr_note(&entity->run_most, WR_RUN_UNKNOWN);
	entity->plan = plan;
	entity->context.entity = entity;
	entity->selects_device = graph->plan->devices > 1;
	entity->compute = wr_instances_compute(plan->role);
	if (!entity->compute)
		entity->compute = plan->kind->compute ? plan->kind->compute : compute_nothing;
	status = make_state(&entity->operator_state, plan->kind->state_size);
	if (!status)
		status = make_inputs(entity, plan);
	if (!status)
		status = make_outputs(entity, plan);
	if (!status)
		status = make_claims(entity, plan);
	if (!status && plan->role == WR_INSTANCE) {
		entity->dealt = wr_alloc(1, sizeof *entity->dealt +
						    2 * plan->input_count * sizeof entity->dealt->numbers[0]);
		status = entity->dealt ? WEIR_OK : WEIR_E_NOMEM;
	}
	return status ? status : make_conditions(entity, plan);
}

weir_status wr_entity_make(weir_graph *graph, uint32_t id)
{
	const struct wr_plan_entity *plan = &graph->plan->entities[id];

	return wr_entity_fill(&graph->entities[id], graph, id, plan);
}

void wr_entity_finish(weir_entity *entity)
{
	for (size_t i = 0; i < entity->input_count; i++) {
		wr_free(entity->inputs[i].connections);
		wr_free(entity->inputs[i].taken);
		wr_free(entity->inputs[i].taken_by);
		wr_fan_in_destroy(entity->inputs[i].set);
	}
	for (size_t i = 0; i < entity->output_count; i++) {
		wr_free(entity->outputs[i].connections);
		wr_free(entity->outputs[i].emitted);
	}
	for (size_t i = 0; i < entity->condition_count; i++) {
		wr_free(entity->conditions[i].state);
		wr_free(entity->conditions[i].ends);
		wr_align_destroy(entity->conditions[i].align);
	}
	wr_free(entity->inputs);
	wr_free(entity->outputs);
	wr_free(entity->claims);
	wr_free(entity->conditions);
	wr_free(entity->operator_state);
	wr_free(entity->record);
	wr_free(entity->dealt);
	wr_free(entity->verdict.fences);
	wr_free(entity->fetched);
	wr_free(entity->wait.armed.fences);
	for (size_t i = 0; i < entity->wait.other_count; i++)
		wr_free(entity->wait.others[i].fences);
	wr_free(entity->wait.others);
	wr_free(entity->context.made);
	wr_flight_finish(&entity->flight);
	wr_gpu_time_finish(entity->gpu_time);
	wr_free(entity->streams.items);
	wr_free(entity->streams.sets);
	wr_free(entity->streams.early);
	wr_free(entity->streams.promised);
	wr_free(entity->streams.sorted);
}

/* --- reset before a run --- */

static weir_status reset_input(struct wr_input *input)
{
	size_t need = 0; /* the largest front fills the queues; a `pop` queue may hold one more */

	input->next_served = input->limit = 0;
	wr_input_hold(input, false);
	for (size_t i = 0; i < input->count; i++)
		need += input->connections[i]->queue.capacity + 1;
	wr_free(input->taken);
	wr_free(input->taken_by);
	need = need ? need : 1;
	input->taken = wr_alloc(need, sizeof *input->taken + sizeof *input->forwarded);
	input->taken_by = wr_alloc(input->count ? input->count : 1, sizeof *input->taken_by);
	if (!input->taken || !input->taken_by)
		return WEIR_E_NOMEM;
	input->forwarded = (bool *)(input->taken + need);
	/* The set may have to grow: inlets may have been made since the last run. */
	if (input->set && input->set->count != input->count) {
		wr_fan_in_destroy(input->set);
		input->set = NULL;
	}
	input->latest = input->count && input->plan->policy == WEIR_POLICY_LATEST;
	if (!input->set && input->count > WR_FAN_IN_FEW && !input->latest && !input->chosen &&
	    !input->aligned) {
		input->set = wr_fan_in_make(input->count);
		if (!input->set)
			return WEIR_E_NOMEM;
	}
	if (input->set)
		wr_fan_in_reset(input->set, input->connections, input->any_size);
	/* Test builds have sets of one connection: the front gets only what the set knows of. */
	input->lone = input->count == 1 && !input->set && !input->connections[0]->queue.locked;
	return WEIR_OK;
}

static weir_status reset_conditions(weir_entity *entity)
{
	weir_status status = WEIR_OK;

	entity->askable = false;
	for (size_t i = 0; !status && i < entity->condition_count; i++) {
		struct wr_condition *condition = &entity->conditions[i];
		const struct wr_plan_condition *plan = condition->plan;
		condition->held = condition->never = condition->closed = false;
		clear_state(condition->state, plan->kind->state_size);
		if (condition->align)
			status = wr_align_reset(condition->align, entity);
		if (status)
			return status;
		if (plan->kind->start) {
			wr_error_clear(wr_error_here());
			status = plan->kind->start(condition->state, plan->values);
		}
		if (status) {
			status = wr_failure_explain(status, "start");
			return wr_fail_in(status, entity->plan->name, "condition '%s': %s", plan->name,
					  weir_last_error());
		}
		status = wr_values_check(plan->values);
	}
	entity->askable = !status;
	return status;
}

/*
 * Returns true if a condition names the port; of an output a default one, not in the description. The review
 * itself checks the ports without one (inlets, outlets, user's conditions).
 */
static bool port_is_named(const weir_entity *entity, unsigned port, bool input)
{
	if (wr_instances_watch(entity->plan->role, input))
		return true;
	for (size_t i = 0; i < entity->condition_count; i++) {
		const struct wr_plan_condition *plan = entity->conditions[i].plan;
		if ((input || plan->implied) && wr_condition_names(plan, port, input))
			return true;
	}
	return false;
}

/*
 * Returns true if ask.c can decide the gathering conditions, if there are any, by reading the queues, without
 * their locks. An implied condition, other than the in-flight bound, says that a port has what a tick takes
 * or may emit. Notes, too, whether its content conditions are gates.
 */
static bool has_default_conditions_only(weir_entity *entity)
{
	size_t first = entity->in_flight ? 1 : 0;
	unsigned port;
	bool input;

	entity->gates_only = false;
	for (size_t i = 0; i < entity->input_count; i++)
		if (entity->inputs[i].count && !entity->inputs[i].lone)
			return false;
	for (size_t i = first; i < entity->gathering_count; i++) {
		struct wr_condition *condition = &entity->conditions[i];
		if (!condition->plan->implied)
			return false;
		if (wr_condition_port(condition->plan, &port, &input))
			*(input ? &entity->inputs[port].implied : &entity->outputs[port].implied) = condition;
	}
	entity->gates_only = true;
	for (size_t i = entity->gathering_count; i < entity->asked_count; i++)
		entity->gates_only &= !strcmp(entity->conditions[i].plan->kind->name, "cuda_stream");
	return true;
}

/*
 * Whether the sender of its only queue may review the entity (S2): if that has room whenever it is sent to,
 * and nothing but a gate of the port, of the entity's own or implied, can be between a message and its tick.
 */
static void note_reviewed(weir_entity *entity)
{
	size_t gates = entity->asked_count - entity->gathering_count;
	struct wr_connection *connection;

	if (entity->input_count != 1 || !entity->inputs[0].count)
		return;
	connection = entity->inputs[0].connections[0];
	entity->gate = gates ? &entity->conditions[entity->gathering_count] : NULL;
	connection->reviewed = entity->default_only && entity->gates_only && connection->sender &&
			       connection->queue.policy == WEIR_POLICY_BLOCK && !entity->claim_count &&
			       !entity->root && (entity->inputs[0].gate ? !gates : gates == 1);
}

/* A tensor is looked at if the port or a receiver has a type. */
static void intersect_kinds(struct wr_output *output)
{
	bool typed = wr_port_type_says(&output->plan->type);

	output->kinds = output->plan->kinds;
	for (size_t i = 0; i < output->count; i++) {
		const struct wr_connection *connection = output->connections[i];
		const weir_entity *receiver = connection->receiver;
		const struct wr_plan_input *to = receiver ? receiver->inputs[connection->input].plan : NULL;

		output->kinds &= to ? to->kinds : UINT_MAX;
		typed |= to && wr_port_type_says(&to->type);
	}
	output->looked = typed ? output->kinds & WEIR_KIND_TENSOR : 0;
	output->kinds &= ~output->looked;
	output->passed = (struct wr_passed){0};
}

/* One by one, since other threads may read them. */
static void reset_counters(struct wr_entity_counters *counters)
{
#define CLEAR(name) wr_note(&counters->name, 0);
	WR_ENTITY_COUNTERS(CLEAR)
#undef CLEAR
	wr_latencies_clear(&counters->latencies);
}

weir_status wr_entity_reset(weir_entity *entity)
{
	size_t in_flight = wr_instances_bound(entity);
	bool fed = false, rooted = false, only_latest = true;
	weir_status status = entity->fences_pending ? wr_entity_drop_tick(entity) : WEIR_OK;

	if (status)
		return status;

	for (size_t i = 0; !status && i < entity->input_count; i++) {
		struct wr_input *input = &entity->inputs[i];
		fed |= input->count > 0;
		for (size_t k = 0; k < input->count; k++)
			rooted |= input->connections[k]->initial_messages > 0;
		if (input->count && !port_is_named(entity, (unsigned)i, true))
			entity->has_content = input->content = true;
		input->untaken = false;
		status = reset_input(input);
		if (input->latest)
			wr_fetch_or(&entity->front_checks, WR_CHECK_LATEST);
		only_latest &= input->latest || !input->count;
	}
	entity->only_latest = fed && only_latest;
	entity->output_unwatched = false;
	for (size_t i = 0; i < entity->output_count; i++) {
		struct wr_output *output = &entity->outputs[i];
		output->total = 0;
		entity->output_unwatched |= output->count && !port_is_named(entity, (unsigned)i, false);
		intersect_kinds(output);
	}
	entity->default_only = has_default_conditions_only(entity);
	entity->gated = entity->has_content;
	entity->asks_ports = entity->has_content || entity->only_latest;
	wr_fetch_or(&entity->front_checks, entity->has_content ? WR_CHECK_CONTENT : 0);
	entity->root = !fed || rooted;
	note_reviewed(entity);
	wr_store(&entity->receivers_left, entity->receivers);
	entity->finished = entity->started = false;
	entity->fronts_closed = entity->has_trees; /* its reviews close one front or the other */
	wr_fetch_or(&entity->front_checks, entity->has_trees ? WR_CHECK_TREES : 0);
	entity->past_of = NULL;
	entity->wait.at = INT64_MAX;
	entity->wait.watches = false;
	entity->timer_place = 0;
	entity->verdict.failed = WEIR_OK;
	entity->verdict.misuse = NULL;
	entity->awaits_fences = false;
	entity->context.tick = 0;
	entity->context.stamp_set = false;
	entity->context.kept = 0;
	wr_flight_reset(&entity->flight, in_flight);
	entity->flight_full = false;
	wr_claims_reset(entity);
	reset_counters(&entity->counters);
	wr_entity_set_record(entity, NULL);
	clear_state(entity->operator_state, entity->plan->kind->state_size);
	wr_instances_reset(entity);
	return status ? status : reset_conditions(entity);
}

void wr_entity_set_record(weir_entity *entity, char *json)
{
	char *before;

	wr_mutex_lock(&entity->graph->record_lock);
	before = entity->record;
	entity->record = json;
	wr_mutex_unlock(&entity->graph->record_lock);
	wr_free(before);
}

weir_status wr_entity_copy_record(weir_entity *entity, char **out)
{
	weir_status status = WEIR_OK;

	wr_mutex_lock(&entity->graph->record_lock);
	if (entity->record) {
		*out = wr_strdup(entity->record);
		status = *out ? WEIR_OK : WEIR_E_NOMEM;
	}
	wr_mutex_unlock(&entity->graph->record_lock);
	return status;
}

/* --- getters --- */

const char *wr_entity_subject(const weir_entity *entity, weir_cause cause, uint32_t on)
{
	if (on == WR_NO_SUBJECT)
		return NULL;
	if (cause == WEIR_CAUSE_MEMORY)
		return entity->graph->memory_pools[on].plan->name;
	if (cause == WEIR_CAUSE_ROOM)
		return wr_instances_watch(entity->plan->role, false) ? NULL
								     : entity->outputs[on].plan->port->name;
	return wr_instances_turn(entity, on) ? NULL : entity->inputs[on].plan->port->name;
}

size_t wr_entity_queued(weir_entity *entity, bool shown)
{
	size_t held = 0;

	for (size_t i = 0; i < entity->input_count; i++)
		for (size_t k = 0; (shown ? !wr_instances_turn(entity, i) : !entity->inputs[i].latest) &&
				   k < entity->inputs[i].count;
		     k++)
			held += wr_queue_count(&entity->inputs[i].connections[k]->queue);
	return held;
}

const char *weir_entity_name(const weir_entity *entity)
{
	return entity->plan->name;
}

const weir_operator *weir_entity_operator(const weir_entity *entity)
{
	return entity->plan->kind;
}

const weir_values *weir_entity_values(const weir_entity *entity)
{
	return entity->plan->values;
}
