/*
 * The graph: a plan becomes wired entities. Building is a list of steps; destroy takes whatever is there.
 */
#include "graphs/graph.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/status.h"

struct wr_pool *wr_graph_pool(weir_graph *graph)
{
	return graph->pool;
}

weir_entity *weir_graph_entity(weir_graph *graph, const char *name)
{
	size_t i = wr_names_find(&graph->names, name);

	return i == WR_NO_INDEX ? NULL : &graph->entities[i];
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

/* --- entities --- */

static weir_status make_inputs(weir_entity *entity, const struct wr_plan_entity *plan)
{
	entity->inputs = wr_alloc(plan->input_count ? plan->input_count : 1, sizeof *entity->inputs);
	if (!entity->inputs)
		return WEIR_E_NOMEM;
	entity->input_count = plan->input_count;
	for (size_t i = 0; i < plan->input_count; i++) {
		struct wr_input *input = &entity->inputs[i];
		bool all = plan->inputs[i].take == WEIR_ALL;
		input->plan = &plan->inputs[i];
		input->take = all ? SIZE_MAX : plan->inputs[i].take;
		input->need = all ? 1 : plan->inputs[i].take;
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
		output->emitted = wr_alloc(output->plan->max_emits, sizeof *output->emitted);
		if (!output->emitted)
			return WEIR_E_NOMEM;
	}
	return WEIR_OK;
}

static void mark_content(weir_entity *entity, const struct wr_plan_condition *condition)
{
	for (const weir_parameter *parameter = condition->kind->parameters; parameter && parameter->name; parameter++) {
		if (parameter->type == WEIR_INPUT)
			entity->inputs[weir_values_int(condition->values, parameter->name)].content = true;
		if (parameter->type != WEIR_INPUTS)
			continue;
		for (size_t k = 0; k < weir_values_count(condition->values, parameter->name); k++)
			entity->inputs[weir_values_at(condition->values, parameter->name, k)].content = true;
	}
}

static weir_status add_condition(weir_entity *entity, const struct wr_plan_condition *plan)
{
	struct wr_condition *condition = &entity->conditions[entity->condition_count];

	condition->plan = plan;
	condition->ask = plan->kind->ask;
	condition->state = wr_alloc(1, plan->kind->state_size + 1);
	if (!condition->state)
		return WEIR_E_NOMEM;
	entity->condition_count++;
	entity->hears |= plan->kind->ticked != NULL;
	if (plan->kind->phase == WEIR_GATHERING) {
		entity->gathering_count++;
	} else {
		entity->contentful = true;
		mark_content(entity, plan);
	}
	return WEIR_OK;
}

static weir_status make_conditions(weir_entity *entity, const struct wr_plan_entity *plan)
{
	weir_status status = WEIR_OK;

	entity->conditions = wr_alloc(plan->condition_count ? plan->condition_count : 1, sizeof *entity->conditions);
	if (!entity->conditions)
		return WEIR_E_NOMEM;
	for (int phase = WEIR_GATHERING; phase <= WEIR_CONTENT; phase++)
		for (size_t i = 0; !status && i < plan->condition_count; i++)
			if ((int)plan->conditions[i].kind->phase == phase)
				status = add_condition(entity, &plan->conditions[i]);
	return status;
}

static weir_status make_entity(weir_graph *graph, uint32_t id)
{
	weir_entity *entity = &graph->entities[id];
	const struct wr_plan_entity *plan = &graph->plan->entities[id];
	weir_status status;

	entity->id = id;
	entity->graph = graph;
	entity->plan = plan;
	entity->context.entity = entity;
	entity->selects = graph->plan->devices > 1;
	entity->compute = plan->kind->compute;
	entity->operator_state = wr_alloc_aligned(64, plan->kind->state_size + 1);
	if (!entity->operator_state)
		return WEIR_E_NOMEM;
	status = wr_names_add(&graph->names, plan->name, id);
	if (!status)
		status = make_inputs(entity, plan);
	if (!status)
		status = make_outputs(entity, plan);
	return status ? status : make_conditions(entity, plan);
}

static weir_status make_entities(weir_graph *graph)
{
	weir_status status = WEIR_OK;

	graph->entities = wr_alloc_aligned(64, sizeof *graph->entities * (graph->plan->entity_count + 1));
	if (!graph->entities)
		return WEIR_E_NOMEM;
	for (size_t i = 0; !status && i < graph->plan->entity_count; i++) {
		graph->entity_count = i + 1;
		status = make_entity(graph, (uint32_t)i);
	}
	return status;
}

/* --- connections --- */

static weir_status append(struct wr_connection ***list, size_t *count, struct wr_connection *connection)
{
	size_t room = *count;	/* grown by one: connections are made once, before the run */
	weir_status status = wr_grow(list, &room, *count + 1, sizeof **list);

	if (!status)
		(*list)[(*count)++] = connection;
	return status;
}

/* To the lists of both ends, or to none. */
static weir_status attach(struct wr_connection *connection)
{
	weir_entity *sender = connection->sender, *receiver = connection->receiver;
	struct wr_output *output = sender ? &sender->outputs[connection->output] : NULL;
	struct wr_input *input = receiver ? &receiver->inputs[connection->input] : NULL;
	weir_status status = WEIR_OK;

	if (input)
		status = append(&input->connections, &input->count, connection);
	if (status || !output)
		return status;
	status = append(&output->connections, &output->count, connection);
	if (!status)
		sender->receivers++;
	else if (input)
		input->count--;
	return status;
}

static void free_connection(struct wr_connection *connection)
{
	wr_queue_finish(&connection->queue);
	wr_free(connection->from);
	wr_free(connection->to);
	wr_free(connection);
}

weir_status wr_graph_connect(weir_graph *graph, weir_entity *sender, uint32_t output, weir_entity *receiver, uint32_t input,
			     uint32_t capacity, struct wr_connection **out)
{
	struct wr_connection *connection = wr_alloc_aligned(64, sizeof *connection);
	weir_policy policy = receiver ? receiver->inputs[input].plan->policy : WEIR_BLOCK;
	weir_status status;

	if (!connection)
		return WEIR_E_NOMEM;
	status = wr_queue_init(&connection->queue, (uint32_t)graph->connection_count, capacity, policy);
	if (!status)
		status = wr_grow(&graph->connections, &graph->connection_room, graph->connection_count + 1, sizeof connection);
	connection->sender = sender;
	connection->receiver = receiver;
	connection->output = output;
	connection->input = input;
	connection->from = sender ? wr_format("%s.%s", sender->plan->name, sender->outputs[output].plan->port->name)
				  : wr_strdup("inlet");
	connection->to = receiver ? wr_format("%s.%s", receiver->plan->name, receiver->inputs[input].plan->port->name)
				  : wr_strdup("outlet");
	if (!status && (!connection->from || !connection->to))
		status = WEIR_E_NOMEM;
	if (!status)
		status = attach(connection);
	if (status) {
		free_connection(connection);
		return status;
	}
	graph->connections[graph->connection_count++] = connection;
	*out = connection;
	return WEIR_OK;
}

static weir_status make_connections(weir_graph *graph)
{
	weir_status status = WEIR_OK;

	for (size_t i = 0; !status && i < graph->plan->connection_count; i++) {
		const struct wr_plan_connection *plan = &graph->plan->connections[i];
		weir_entity *receiver = &graph->entities[plan->to];
		struct wr_connection *connection = NULL;
		status = wr_graph_connect(graph, &graph->entities[plan->from], plan->output, receiver, plan->input,
					  receiver->inputs[plan->input].plan->capacity, &connection);
		if (!status)
			connection->initial = plan->initial;
	}
	return status;
}

/* --- create, destroy --- */

weir_status weir_graph_create(weir_graph **out, const weir_registry *registry, const weir_description *description)
{
	weir_graph *graph = wr_alloc(1, sizeof *graph);
	weir_status status;

	if (!graph)
		return WEIR_E_NOMEM;
	status = wr_plan_create(&graph->plan, registry, description, true, NULL, NULL);
	if (!status)
		status = wr_pool_create(&graph->pool);
	if (!status)
		status = make_entities(graph);
	if (!status)
		status = make_connections(graph);
	if (status) {
		weir_graph_destroy(graph); /* takes any half-built graph */
		return status;
	}
	*out = graph;
	return WEIR_OK;
}

weir_status weir_graph_open(weir_graph **out, const char *path)
{
	weir_description *description = NULL;
	weir_status status = weir_description_read(&description, path, NULL, NULL);

	if (!status)
		status = weir_graph_create(out, NULL, description);
	weir_description_destroy(description);
	return status;
}

static void finish_entity(weir_entity *entity)
{
	for (size_t i = 0; i < entity->input_count; i++) {
		wr_free(entity->inputs[i].connections);
		wr_free(entity->inputs[i].taken);
		wr_free(entity->inputs[i].taken_by);
	}
	for (size_t i = 0; i < entity->output_count; i++) {
		wr_free(entity->outputs[i].connections);
		wr_free(entity->outputs[i].emitted);
	}
	for (size_t i = 0; i < entity->condition_count; i++)
		wr_free(entity->conditions[i].state);
	wr_free(entity->inputs);
	wr_free(entity->outputs);
	wr_free(entity->conditions);
	wr_free(entity->operator_state);
	wr_free(entity->verdict.fences);
	wr_free(entity->scratch);
	wr_free(entity->wait.fences);
	wr_free(entity->context.made);
	wr_free(entity->own.items);
	wr_free(entity->own.sets);
}

static void finish_connections(weir_graph *graph)
{
	for (size_t i = 0; i < graph->connection_count; i++)
		free_connection(graph->connections[i]);
	wr_free(graph->connections);
	for (weir_inlet *inlet = graph->inlets; inlet;) {
		weir_inlet *next = inlet->next;
		wr_cond_finish(&inlet->changed);
		wr_mutex_finish(&inlet->lock);
		wr_free(inlet);
		inlet = next;
	}
	for (weir_outlet *outlet = graph->outlets; outlet;) {
		weir_outlet *next = outlet->next;
		wr_cond_finish(&outlet->changed);
		wr_mutex_finish(&outlet->lock);
		wr_free(outlet);
		outlet = next;
	}
}

static void free_kept(weir_graph *graph)
{
	for (struct wr_kept *kept = graph->kept, *next; kept; kept = next) {
		next = kept->next;
		wr_free(kept->memory);
	}
}

weir_status weir_graph_destroy(weir_graph *graph)
{
	weir_status status;

	if (!graph)
		return WEIR_OK;
	if (graph->scheduler)
		return wr_fail(WEIR_E_BUSY, "graph %s: destroy its scheduler first", graph->plan->name);
	status = wr_graph_displace(graph);
	finish_connections(graph);
	free_kept(graph);
	for (size_t i = 0; i < graph->entity_count; i++)
		finish_entity(&graph->entities[i]);
	if (!status && !graph->leaks)
		wr_pool_destroy(graph->pool);	/* else leaked with what the GPU may touch (E4) */
	wr_free(graph->entities);
	wr_names_finish(&graph->names);
	wr_free(graph->backend);
	wr_plan_destroy(graph->plan);
	wr_free(graph);
	return status;
}

/* --- before a run --- */

weir_status wr_graph_ready(const weir_graph *graph)
{
	for (size_t i = 0; i < graph->entity_count; i++) {
		const weir_entity *entity = &graph->entities[i];
		for (size_t k = 0; k < entity->input_count; k++)
			if (!entity->inputs[k].count && !(entity->inputs[k].plan->port->flags & WEIR_PORT_OPTIONAL))
				return wr_fail(WEIR_E_INVALID, "%s.%s: nothing is connected to this input; connect it or give it an inlet",
					       entity->plan->name, entity->inputs[k].plan->port->name);
		for (size_t k = 0; k < entity->output_count; k++)
			if (!entity->outputs[k].count && !(entity->outputs[k].plan->port->flags & WEIR_PORT_OPTIONAL))
				return wr_fail(WEIR_E_INVALID, "%s.%s: this output is connected to nothing; connect it or give it an outlet",
					       entity->plan->name, entity->outputs[k].plan->port->name);
	}
	return WEIR_OK;
}

/* The largest front: one take, or, per connection, all that fits into it (a `pop` queue may hold one more). */
static weir_status size_taken(struct wr_input *input)
{
	size_t need = 0;

	for (size_t i = 0; i < input->count; i++)
		need += input->connections[i]->queue.capacity + 1;
	wr_free(input->taken);
	wr_free(input->taken_by);
	input->taken = wr_alloc(need ? need : 1, sizeof *input->taken);
	input->taken_by = wr_alloc(input->count ? input->count : 1, sizeof *input->taken_by);
	return input->taken && input->taken_by ? WEIR_OK : WEIR_E_NOMEM;
}

static weir_status reset_conditions(weir_entity *entity)
{
	weir_status status = WEIR_OK;

	for (size_t i = 0; !status && i < entity->condition_count; i++) {
		const struct wr_condition *condition = &entity->conditions[i];
		memset(condition->state, 0, condition->plan->kind->state_size);
		if (condition->plan->kind->start)
			status = condition->plan->kind->start(condition->state, condition->plan->values);
	}
	return status;
}

/* Is there a default condition (one that nobody wrote) for this port? */
static bool has_default(const weir_entity *entity, weir_parameter_type type, uint32_t port)
{
	for (size_t i = 0; i < entity->condition_count; i++) {
		const struct wr_plan_condition *plan = entity->conditions[i].plan;
		for (const weir_parameter *parameter = plan->kind->parameters; plan->implied && parameter->name; parameter++)
			if (parameter->type == type && weir_values_int(plan->values, parameter->name) == port)
				return true;
	}
	return false;
}

static bool is_named(const weir_entity *entity, weir_parameter_type one, weir_parameter_type many, uint32_t port)
{
	for (size_t i = 0; i < entity->condition_count; i++) {
		const struct wr_plan_condition *plan = entity->conditions[i].plan;
		const weir_parameter *parameter = plan->kind->parameters;
		for (; parameter && parameter->name; parameter++) {
			if (parameter->type == one && weir_values_int(plan->values, parameter->name) == port)
				return true;
			for (size_t k = 0; parameter->type == many && k < weir_values_count(plan->values, parameter->name); k++)
				if (weir_values_at(plan->values, parameter->name, k) == port)
					return true;
		}
	}
	return false;
}

/* Inlets, outlets and conditions of the user's own: what the plan's defaults do not cover is asked for all the same. */
static void guard_ports(weir_entity *entity)
{
	entity->unguarded = false;
	for (uint32_t i = 0; i < entity->output_count; i++)
		entity->unguarded |= entity->outputs[i].count && !has_default(entity, WEIR_OUTPUT, i);
	for (uint32_t i = 0; i < entity->input_count; i++) {
		if (!entity->inputs[i].count || is_named(entity, WEIR_INPUT, WEIR_INPUTS, i))
			continue;
		entity->inputs[i].content = true;
		entity->contentful = true;
	}
}

/* One by one: onlookers may be reading them. */
static void reset_counters(struct wr_entity_counters *counters)
{
	wr_store_relaxed(&counters->ticks, 0);
	wr_store_relaxed(&counters->received, 0);
	wr_store_relaxed(&counters->emitted, 0);
	wr_store_relaxed(&counters->unconnected, 0);
	wr_store_relaxed(&counters->compute_ns, 0);
}

static weir_status reset_entity(weir_entity *entity)
{
	bool fed = false, rooted = false;
	weir_status status = entity->withheld ? wr_entity_settle(entity) : WEIR_OK;

	if (status)
		return status;

	for (size_t i = 0; !status && i < entity->input_count; i++) {
		struct wr_input *input = &entity->inputs[i];
		input->turn = 0;
		fed |= input->count > 0;
		for (size_t k = 0; k < input->count; k++)
			rooted |= input->connections[k]->initial > 0;
		status = size_taken(input);
	}
	for (size_t i = 0; i < entity->output_count; i++)
		entity->outputs[i].total = 0;
	guard_ports(entity);
	entity->root = !fed || rooted;
	wr_store(&entity->listeners, entity->receivers);
	entity->finished = entity->fronts_closed = entity->started = false;
	entity->timer_place = 0;
	entity->context.tick = 0;
	reset_counters(&entity->counters);
	memset(entity->operator_state, 0, entity->plan->kind->state_size);
	return status ? status : reset_conditions(entity);
}

static weir_status reset_connection(weir_graph *graph, struct wr_connection *connection, size_t *discarded)
{
	weir_status status = WEIR_OK;

	*discarded += wr_queue_reset(&connection->queue);
	connection->taken_over = false;
	wr_store(&connection->gone, false);
	for (uint32_t i = 0; !status && i < connection->initial; i++) {
		weir_message *message = NULL;
		status = wr_message_empty(&message, graph->pool);
		if (!status)
			wr_queue_push(&connection->queue, message, false);
	}
	return status;
}

weir_status wr_graph_reset(weir_graph *graph, size_t *discarded)
{
	weir_status status = WEIR_OK;

	for (size_t i = 0; !status && i < graph->connection_count; i++)
		status = reset_connection(graph, graph->connections[i], discarded);
	for (size_t i = 0; !status && i < graph->entity_count; i++)
		status = reset_entity(&graph->entities[i]);
	return status;
}

void wr_graph_close_streams(weir_graph *graph)
{
	for (size_t i = 0; i < graph->entity_count; i++)
		if (!graph->entities[i].withheld)
			wr_entity_close_streams(&graph->entities[i]);
}

void wr_graph_forget_told(weir_graph *graph)
{
	for (size_t i = 0; i < graph->entity_count; i++)
		for (size_t k = 0; k < graph->entities[i].condition_count; k++)
			wr_store(&graph->entities[i].conditions[k].told, WEIR_TOLD_NOTHING);
}

static void bind_ports(weir_entity *entity, const struct wr_plan_condition *condition, int signal)
{
	for (const weir_parameter *parameter = condition->kind->parameters; parameter && parameter->name; parameter++) {
		if (parameter->type != WEIR_INPUTS)
			continue;
		for (size_t k = 0; k < weir_values_count(condition->values, parameter->name); k++) {
			struct wr_input *input = &entity->inputs[weir_values_at(condition->values, parameter->name, k)];
			for (size_t c = 0; c < input->count; c++) {
				input->connections[c]->inlined |= signal == WR_SIGNAL_INLINE;
				input->connections[c]->belled |= signal == WR_SIGNAL_DOORBELL;
			}
		}
	}
}

void wr_graph_bind(weir_graph *graph, int signal)
{
	for (size_t i = 0; i < graph->connection_count; i++)
		graph->connections[i]->inlined = graph->connections[i]->belled = false;
	for (size_t i = 0; i < graph->entity_count; i++) {
		weir_entity *entity = &graph->entities[i];
		entity->belled = false;
		for (size_t k = 0; k < entity->condition_count; k++) {
			const struct wr_plan_condition *condition = entity->conditions[k].plan;
			int own = condition->signal < 0 ? signal : condition->signal;
			if (condition->kind->phase != WEIR_CONTENT || own == WR_SIGNAL_CALLBACK)
				continue;
			entity->belled |= own == WR_SIGNAL_DOORBELL;
			bind_ports(entity, condition, own);
		}
	}
}

/* --- "name.port" --- */

static weir_status find(weir_graph *graph, const char *text, weir_entity **entity, const char **port)
{
	const char *dot = strchr(text, '.');
	char name[80];

	if (!dot || (size_t)(dot - text) >= sizeof name)
		return wr_fail(WEIR_E_INVALID, "'%s' is no port: write entity.port", text);
	snprintf(name, sizeof name, "%.*s", (int)(dot - text), text);
	*entity = weir_graph_entity(graph, name);
	if (!*entity)
		return wr_fail(WEIR_E_INVALID, "'%s': there is no entity '%s'", text, name);
	*port = dot + 1;
	return WEIR_OK;
}

weir_status wr_graph_find_input(weir_graph *graph, const char *text, weir_entity **entity, uint32_t *input)
{
	const char *port;
	weir_status status = find(graph, text, entity, &port);

	if (status)
		return status;
	for (uint32_t i = 0; i < (*entity)->input_count; i++) {
		if (!strcmp((*entity)->inputs[i].plan->port->name, port)) {
			*input = i;
			return WEIR_OK;
		}
	}
	return wr_fail(WEIR_E_INVALID, "'%s': operator %s has no input '%s'", text, (*entity)->plan->kind->name, port);
}

weir_status wr_graph_find_output(weir_graph *graph, const char *text, weir_entity **entity, uint32_t *output)
{
	const char *port;
	weir_status status = find(graph, text, entity, &port);

	if (status)
		return status;
	for (uint32_t i = 0; i < (*entity)->output_count; i++) {
		if (!strcmp((*entity)->outputs[i].plan->port->name, port)) {
			*output = i;
			return WEIR_OK;
		}
	}
	return wr_fail(WEIR_E_INVALID, "'%s': operator %s has no output '%s'", text, (*entity)->plan->kind->name, port);
}
