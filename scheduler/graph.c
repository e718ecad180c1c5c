/*
 * The graph: makes the entities and connections of a plan.
 */
#include "scheduler/graph.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/status.h"
#include "graphs/description.h"
#include "scheduler/finisher.h"
#include "scheduler/inlet.h"
#include "scheduler/memory_pool.h"
#include "scheduler/outlet.h"

weir_entity *wr_graph_entity_at(const weir_graph *graph, size_t id)
{
	return id < graph->entity_count ? &graph->entities[id]
					: &graph->finishers[id - graph->entity_count]->entity;
}

weir_entity *weir_graph_entity(weir_graph *graph, const char *name)
{
	size_t i = wr_names_find(&graph->plan->names, name);

	return i == WR_NO_INDEX ? NULL : &graph->entities[i];
}

/* --- create, destroy --- */

static weir_status make_entities(weir_graph *graph)
{
	weir_status status = WEIR_OK;

	graph->entities = wr_alloc_aligned(64, sizeof *graph->entities * (graph->plan->entity_count + 1));
	if (!graph->entities)
		return WEIR_E_NOMEM;
	for (size_t i = 0; !status && i < graph->plan->entity_count; i++) {
		graph->entity_count = i + 1;
		status = wr_entity_make(graph, (uint32_t)i);
	}
	return status;
}

static weir_status make_connections(weir_graph *graph)
{
	weir_status status = WEIR_OK;

	for (size_t i = 0; !status && i < graph->plan->connection_count; i++) {
		const struct wr_plan_connection *plan = &graph->plan->connections[i];
		weir_entity *sender = &graph->entities[plan->from], *receiver = &graph->entities[plan->to];
		uint32_t capacity = receiver->inputs[plan->input].plan->capacity;
		struct wr_connection *connection = NULL;
		status = wr_graph_connect(graph, sender, plan->output, receiver, plan->input, capacity,
					  &connection);
		if (!status)
			connection->initial_messages = plan->initial_messages;
	}
	return status;
}

weir_status weir_graph_create(const weir_registry *registry, const weir_description *description,
			      weir_graph **out)
{
	weir_graph *graph = wr_alloc(1, sizeof *graph);
	weir_status status;

	if (!graph)
		return WEIR_E_NOMEM;
	graph->registry = registry;
	status = wr_description_plan(&graph->plan, registry, description);
	if (!status)
		status = wr_pool_create(&graph->pool);
	if (!status)
		status = wr_memory_pools_make(graph);
	if (!status)
		status = make_entities(graph);
	if (!status)
		status = make_connections(graph);
	if (status) {
		weir_graph_destroy(graph); /* takes a half-built graph */
		return status;
	}
	*out = graph;
	return WEIR_OK;
}

weir_status weir_graph_open(const char *path, weir_graph **out)
{
	weir_description *description = NULL;
	weir_status status = weir_description_read(path, 0, NULL, NULL, &description);

	if (!status)
		status = weir_graph_create(NULL, description, out);
	weir_description_destroy(description);
	return status;
}

static void free_inlets(weir_inlet *inlet)
{
	for (weir_inlet *next; inlet; inlet = next) {
		next = inlet->next;
		wr_cond_finish(&inlet->changed);
		wr_mutex_finish(&inlet->lock);
		wr_free(inlet);
	}
}

static void free_outlets(weir_outlet *outlet)
{
	for (weir_outlet *next; outlet; outlet = next) {
		next = outlet->next;
		wr_cond_finish(&outlet->changed);
		wr_mutex_finish(&outlet->lock);
		if (outlet->fd >= 0)
			close(outlet->fd);
		wr_free(outlet);
	}
}

static void destroy_connections(weir_graph *graph)
{
	for (size_t i = 0; i < graph->connection_count; i++)
		wr_connection_destroy(graph->connections[i]);
	wr_free(graph->connections);
	free_inlets(graph->inlets);
	free_outlets(graph->outlets);
	for (size_t i = 0; i < graph->finisher_count; i++)
		wr_finisher_destroy(graph->finishers[i]);
	wr_free(graph->finishers);
}

static void free_kept_memory(weir_graph *graph)
{
	for (struct wr_kept *kept = graph->kept, *next; kept; kept = next) {
		next = kept->next;
		wr_free(kept->memory);
	}
}

static void free_descriptors(weir_graph *graph)
{
	for (struct wr_descriptor *descriptor = wr_load(&graph->descriptors), *next; descriptor;
	     descriptor = next) {
		next = descriptor->next;
		wr_free(descriptor);
	}
}

weir_status weir_graph_destroy(weir_graph *graph)
{
	weir_status status;

	if (!graph)
		return WEIR_OK;
	if (graph->scheduler)
		return wr_fail(WEIR_E_STATE, "graph %s: destroy its scheduler first", graph->plan->name);
	status = wr_graph_check_released(graph);
	if (status)
		return status;
	status = wr_graph_destroy_system(graph);
	destroy_connections(graph);
	free_descriptors(graph);
	free_kept_memory(graph);
	for (size_t i = 0; i < graph->entity_count; i++)
		wr_entity_finish(&graph->entities[i]);
	if (!status && !graph->leaks)
		wr_pool_destroy(graph->pool); /* else leaked, with what the GPU may touch (E4) */
	wr_memory_pools_destroy(graph);
	wr_free(graph->entities);
	wr_free(graph->backend);
	wr_plan_destroy(graph->plan);
	wr_free(graph);
	return status;
}

/* --- before and after a run --- */

static bool port_lacks_connection(size_t connections, const weir_port *port)
{
	return !connections && !(port->flags & WEIR_PORT_OPTIONAL);
}

static weir_status check_connected(const weir_entity *entity)
{
	const char *name = entity->plan->name;

	for (size_t i = 0; i < entity->input_count; i++) {
		const weir_port *port = entity->inputs[i].plan->port;
		if (port_lacks_connection(entity->inputs[i].count, port))
			return wr_fail_port(WEIR_E_INVALID, name, port->name,
					    "nothing is connected to this input; "
					    "connect it or give it an inlet");
	}
	for (size_t i = 0; i < entity->output_count; i++) {
		const weir_port *port = entity->outputs[i].plan->port;
		if (port_lacks_connection(entity->outputs[i].count, port))
			return wr_fail_port(WEIR_E_INVALID, name, port->name,
					    "this output is connected to nothing; "
					    "connect it or give it an outlet");
	}
	return WEIR_OK;
}

static bool has_inlet(const weir_graph *graph, const struct wr_plan_end *end)
{
	for (const weir_inlet *inlet = graph->inlets; inlet; inlet = inlet->next)
		if (inlet->connection->receiver == &graph->entities[end->entity] &&
		    inlet->connection->input == end->port)
			return true;
	return false;
}

static bool has_outlet(const weir_graph *graph, const struct wr_plan_end *end)
{
	for (const weir_outlet *outlet = graph->outlets; outlet; outlet = outlet->next)
		if (outlet->connection->sender == &graph->entities[end->entity] &&
		    outlet->connection->output == end->port)
			return true;
	return false;
}

static weir_status refuse_end(weir_graph *graph, const struct wr_plan_end *end, const char *port,
			      const char *what, const char *remedy)
{
	const weir_entity *entity = &graph->entities[end->entity];

	wr_fail(WEIR_E_INVALID, "%s.%s is an %s of this graph: a program must %s", entity->plan->name, port,
		what, remedy);
	return wr_error_about(WEIR_E_INVALID, entity->plan->name);
}

/*
 * The program must make the inlets and outlets that the plan names, or the run would never end or lose its
 * results.
 */
static weir_status check_named(weir_graph *graph)
{
	const struct wr_plan *plan = graph->plan;

	for (size_t i = 0; i < plan->inlet_count; i++)
		if (!has_inlet(graph, &plan->inlets[i]))
			return refuse_end(graph, &plan->inlets[i], wr_plan_inlet(plan, i)->port->name,
					  "inlet", "feed it (weir_graph_add_inlet)");
	for (size_t i = 0; i < plan->outlet_count; i++)
		if (!has_outlet(graph, &plan->outlets[i]))
			return refuse_end(graph, &plan->outlets[i], wr_plan_outlet(plan, i)->port->name,
					  "outlet", "take from it (weir_graph_add_outlet)");
	return WEIR_OK;
}

weir_status wr_graph_check_ports(weir_graph *graph)
{
	weir_status status = check_named(graph);

	for (size_t i = 0; !status && i < graph->entity_count; i++)
		status = check_connected(&graph->entities[i]);
	return status;
}

void wr_graph_forget_queued(weir_graph *graph)
{
	for (size_t i = 0; i < graph->entity_count; i++)
		for (size_t k = 0; k < graph->entities[i].input_count; k++)
			if (graph->entities[i].inputs[k].set)
				wr_fan_in_forget(graph->entities[i].inputs[k].set);
}

weir_status wr_graph_reset(weir_graph *graph, size_t *discarded)
{
	weir_status status = WEIR_OK;

	wr_graph_forget_queued(graph);
	for (size_t i = 0; i < graph->entity_count; i++) /* before the first message of the run */
		wr_store(&graph->entities[i].front_checks, 0);
	for (size_t i = 0; !status && i < graph->connection_count; i++)
		status = wr_connection_reset(graph->connections[i], graph->pool, discarded);
	for (size_t i = 0; !status && i < graph->finisher_count; i++) /* the outlet's queue counts these */
		status = wr_connection_reset(graph->finishers[i]->connection, graph->pool, &(size_t){0});
	for (size_t i = 0; !status && i < wr_graph_count_all(graph); i++) {
		status = wr_entity_reset(wr_graph_entity_at(graph, i));
		if (status)
			wr_error_blame(status, wr_graph_entity_at(graph, i)->plan->name);
	}
	wr_memory_pools_reset(graph);
	return status;
}

void wr_graph_close_streams(weir_graph *graph)
{
	for (size_t i = 0; i < graph->entity_count; i++)
		if (!graph->entities[i].fences_pending && !graph->entities[i].stop_owed)
			wr_entity_close_streams(&graph->entities[i]);
}

/* --- signals of conditions and gates --- */

static void mark_port_flagged(struct wr_input *input)
{
	for (size_t i = 0; i < input->count; i++)
		input->connections[i]->flagged = true;
}

static void mark_ports_flagged(weir_entity *entity, const struct wr_plan_condition *condition)
{
	const weir_parameter *parameter = condition->kind->parameters;
	const weir_values *values = condition->values;

	for (; parameter && parameter->name; parameter++) {
		if (parameter->type != WEIR_TYPE_INPUTS)
			continue;
		for (size_t i = 0; i < weir_values_count(values, parameter->name); i++)
			mark_port_flagged(&entity->inputs[weir_values_at(values, parameter->name, i)]);
	}
}

/* Implied gates use the signal of a `cuda_stream` that names none (C8). */
static void bind_gates(weir_entity *entity, int signal)
{
	entity->gate_signal = signal;
	for (size_t i = 0; signal == WR_SIGNAL_FLAG && i < entity->input_count; i++) {
		if (!entity->inputs[i].gate)
			continue;
		entity->flagged = true;
		mark_port_flagged(&entity->inputs[i]);
	}
}

static void bind_entity(weir_entity *entity, int signal)
{
	entity->flagged = false;
	bind_gates(entity, signal);
	for (size_t k = 0; k < entity->condition_count; k++) {
		struct wr_condition *condition = &entity->conditions[k];
		condition->signal = condition->plan->signal < 0 ? signal : condition->plan->signal;
		/* Never inline: the callback would be enqueued behind all ticks in flight: too late. */
		if (condition == entity->in_flight && signal == WR_SIGNAL_INLINE)
			condition->signal = WR_SIGNAL_CALLBACK;
		if (condition->plan->kind->phase != WEIR_PHASE_CONTENT || condition->signal != WR_SIGNAL_FLAG)
			continue;
		entity->flagged = true;
		mark_ports_flagged(entity, condition->plan);
	}
}

void wr_graph_bind_signals(weir_graph *graph, int signal)
{
	for (size_t i = 0; i < graph->connection_count; i++)
		graph->connections[i]->flagged = false;
	for (size_t i = 0; i < graph->finisher_count; i++)
		graph->finishers[i]->connection->flagged = false;
	for (size_t i = 0; i < wr_graph_count_all(graph); i++)
		bind_entity(wr_graph_entity_at(graph, i), signal);
}

/* --- "name.port" --- */

static weir_status find_entity(weir_graph *graph, const char *text, weir_entity **entity, const char **port)
{
	const char *dot = strchr(text, '.');
	char name[80];

	if (!dot || (size_t)(dot - text) >= sizeof name)
		return wr_fail(WEIR_E_INVALID, "'%s' does not name a port: write entity.port", text);
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
	weir_status status = find_entity(graph, text, entity, &port);

	if (status)
		return status;
	for (uint32_t i = 0; i < (*entity)->input_count; i++) {
		if (!strcmp((*entity)->inputs[i].plan->port->name, port)) {
			*input = i;
			return WEIR_OK;
		}
	}
	return wr_fail(WEIR_E_INVALID, "'%s': operator %s has no input '%s'", text,
		       (*entity)->plan->kind->name, port);
}

weir_status wr_graph_find_output(weir_graph *graph, const char *text, weir_entity **entity, uint32_t *output)
{
	const char *port;
	weir_status status = find_entity(graph, text, entity, &port);

	if (status)
		return status;
	for (uint32_t i = 0; i < (*entity)->output_count; i++) {
		if (!strcmp((*entity)->outputs[i].plan->port->name, port)) {
			*output = i;
			return WEIR_OK;
		}
	}
	return wr_fail(WEIR_E_INVALID, "'%s': operator %s has no output '%s'", text,
		       (*entity)->plan->kind->name, port);
}

/* --- the main sink --- */

/* Those of its first connected input. Returns false if the entity is no sink. */
static bool count_frames(const weir_entity *entity, uint64_t *frames)
{
	const struct wr_input *input = NULL;

	for (size_t i = entity->input_count; i--;)
		if (entity->inputs[i].count)
			input = &entity->inputs[i];
	if (!input || entity->receivers)
		return false;
	*frames = 0;
	for (size_t i = 0; i < input->count; i++)
		*frames += wr_read(&input->connections[i]->queue.counters.delivered);
	return true;
}

const weir_entity *wr_graph_main(const weir_graph *graph, uint64_t *frames)
{
	const weir_entity *found = NULL;
	uint64_t count;

	*frames = 0;
	for (size_t i = 0; i < graph->entity_count && !(found && found->plan->main); i++) {
		const weir_entity *entity = &graph->entities[i];
		uint32_t depth = entity->plan->depth, most = found ? found->plan->depth : 0;

		if (!count_frames(entity, &count))
			continue;
		if (!found || entity->plan->main || depth > most || (depth == most && count > *frames)) {
			found = entity;
			*frames = count;
		}
	}
	return found;
}
