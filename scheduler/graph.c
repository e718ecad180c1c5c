/*
 * The graph: makes the entities and connections of a plan. Then the backend that it runs on, and the
 * finishers of its outlets.
 */
#include "scheduler/graph.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/status.h"
#include "base/thread.h"
#include "graphs/description.h"
#include "graphs/parameter.h"
#include "graphs/registry.h"
#include "scheduler/ends.h"
#include "scheduler/instances.h"
#include "scheduler/memory.h"
#include "sim/simulation.h"

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
	status = wr_mutex_init(&graph->record_lock);
	if (status) {
		wr_free(graph);
		return status;
	}
	graph->registry = registry;
	status = wr_description_plan(&graph->plan, registry, description);
	if (!status)
		status = wr_plan_expand(graph->plan, &wr_instances_condition);
	if (!status)
		status = wr_pool_create(&graph->pool);
	if (!status)
		status = wr_memory_pools_make(graph);
	if (!status) {
		graph->entities =
			wr_alloc_aligned(64, sizeof *graph->entities * (graph->plan->entity_count + 1));
		status = graph->entities ? WEIR_OK : WEIR_E_NOMEM;
	}
	for (size_t i = 0; !status && i < graph->plan->entity_count; i++) {
		graph->entity_count = i + 1;
		status = wr_entity_make(graph, (uint32_t)i);
	}
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

static void destroy_connections(weir_graph *graph)
{
	for (size_t i = 0; i < graph->connection_count; i++)
		wr_connection_destroy(graph->connections[i]);
	wr_free(graph->connections);
	for (weir_inlet *inlet = graph->inlets, *next; inlet; inlet = next) {
		next = inlet->next;
		wr_cond_finish(&inlet->changed);
		wr_mutex_finish(&inlet->lock);
		if (inlet->fd >= 0)
			close(inlet->fd);
		wr_free(inlet);
	}
	for (weir_outlet *outlet = graph->outlets, *next; outlet; outlet = next) {
		next = outlet->next;
		wr_cond_finish(&outlet->changed);
		wr_mutex_finish(&outlet->lock);
		if (outlet->fd >= 0)
			close(outlet->fd);
		wr_free(outlet);
	}
	for (size_t i = 0; i < graph->finisher_count; i++)
		wr_finisher_destroy(graph->finishers[i]);
	wr_free(graph->finishers);
}

static weir_status graph_destroy_system(weir_graph *graph);

static weir_status graph_check_released(weir_graph *graph);

weir_status weir_graph_destroy(weir_graph *graph)
{
	weir_status status;

	if (!graph)
		return WEIR_OK;
	if (graph->scheduler)
		return wr_fail(WEIR_E_STATE, "graph %s: destroy its scheduler first", graph->plan->name);
	status = graph_check_released(graph);
	if (status)
		return status;
	status = graph_destroy_system(graph);
	destroy_connections(graph);
	for (struct wr_descriptor *one = wr_load(&graph->descriptors), *next; one; one = next) {
		next = one->next;
		wr_free(one);
	}
	for (struct wr_kept *kept = graph->kept, *next; kept; kept = next) {
		next = kept->next;
		wr_free(kept->memory);
	}
	for (size_t i = 0; i < graph->entity_count; i++)
		wr_entity_finish(&graph->entities[i]);
	if (!status && !graph->leaks)
		wr_pool_destroy(graph->pool); /* else leaked, with what the GPU may touch (E4) */
	wr_memory_pools_destroy(graph);
	wr_free(graph->entities);
	wr_free(graph->backend);
	wr_plan_destroy(graph->plan);
	wr_mutex_finish(&graph->record_lock);
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
		if (entity->plan->role == WR_DEALER && entity->inputs[i].count > 1)
			return wr_fail_port(WEIR_E_INVALID, name, port->name,
					    "an input of instances has one connection: give it one inlet, or "
					    "leave \"instances\" out");
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

/*
 * The program must make the inlets and outlets that the plan names, or the run would never end or lose its
 * results.
 */
static weir_status check_made(const weir_graph *graph, const struct wr_plan_end *end, bool inlet)
{
	const weir_entity *entity = &graph->entities[end->entity];

	for (size_t i = 0; i < graph->connection_count; i++) {
		const struct wr_connection *connection = graph->connections[i];
		if (inlet ? connection->inlet && connection->receiver == entity &&
				    connection->input == end->port
			  : connection->outlet && connection->sender == entity &&
				    connection->output == end->port)
			return WEIR_OK;
	}
	wr_fail(WEIR_E_INVALID, "%s.%s is an %s of this graph: a program must %s", entity->plan->name,
		inlet ? entity->inputs[end->port].plan->port->name
		      : entity->outputs[end->port].plan->port->name,
		inlet ? "inlet" : "outlet",
		inlet ? "feed it (weir_graph_add_inlet)" : "take from it (weir_graph_add_outlet)");
	return wr_error_about(WEIR_E_INVALID, entity->plan->name);
}

weir_status wr_graph_check_ports(weir_graph *graph)
{
	const struct wr_plan *plan = graph->plan;
	weir_status status = WEIR_OK;

	for (size_t i = 0; !status && i < plan->inlet_count; i++)
		status = check_made(graph, &plan->inlets[i], true);
	for (size_t i = 0; !status && i < plan->outlet_count; i++)
		status = check_made(graph, &plan->outlets[i], false);
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

static void mark_port_flagged(struct wr_input *input, int signal)
{
	for (size_t i = 0; i < input->count; i++)
		if (input->connections[i]->flagged < wr_flagging_of(signal))
			input->connections[i]->flagged = wr_flagging_of(signal);
}

static void mark_ports_flagged(weir_entity *entity, const struct wr_condition *condition)
{
	const weir_parameter *parameter = condition->plan->kind->parameters;
	const weir_values *values = condition->plan->values;

	for (; parameter && parameter->name; parameter++) {
		if (parameter->type != WEIR_TYPE_INPUTS)
			continue;
		for (size_t i = 0; i < weir_values_count(values, parameter->name); i++)
			mark_port_flagged(&entity->inputs[weir_values_at(values, parameter->name, i)],
					  condition->signal);
	}
}

/* What `auto` means on this graph's backend. */
static int signal_here(const weir_graph *graph, int signal)
{
	return signal == WR_SIGNAL_AUTO && !wr_system_prefers_flags(graph->system) ? WR_SIGNAL_CALLBACK
										   : signal;
}

static void bind_entity(weir_graph *graph, weir_entity *entity, int signal)
{
	entity->gate_signal = signal_here(graph, signal); /* that of a `cuda_stream` that names none (C8) */
	for (size_t i = 0; i < entity->input_count; i++)
		if (entity->inputs[i].gate)
			mark_port_flagged(&entity->inputs[i], entity->gate_signal);
	for (size_t k = 0; k < entity->condition_count; k++) {
		struct wr_condition *condition = &entity->conditions[k];
		int named = condition->plan->signal < 0 ? signal : condition->plan->signal;
		/* Never inline: the callback would be enqueued behind all ticks in flight: too late. */
		bool too_late = condition == entity->in_flight && signal == WR_SIGNAL_INLINE;

		condition->signal = too_late ? WR_SIGNAL_CALLBACK : signal_here(graph, named);
		if (condition->plan->kind->phase == WEIR_PHASE_CONTENT)
			mark_ports_flagged(entity, condition);
	}
}

enum wr_flagging wr_graph_bind_signals(weir_graph *graph, int signal)
{
	enum wr_flagging most = WR_FLAGS_NONE;

	for (size_t i = 0; i < graph->connection_count; i++)
		graph->connections[i]->flagged = WR_FLAGS_NONE;
	for (size_t i = 0; i < graph->finisher_count; i++)
		graph->finishers[i]->connection->flagged = WR_FLAGS_NONE;
	for (size_t i = 0; i < wr_graph_count_all(graph); i++)
		bind_entity(graph, wr_graph_entity_at(graph, i), signal);
	for (size_t i = 0; i < graph->connection_count; i++)
		most = graph->connections[i]->flagged > most ? graph->connections[i]->flagged : most;
	for (size_t i = 0; i < graph->finisher_count; i++)
		most = graph->finishers[i]->connection->flagged > most
			       ? graph->finishers[i]->connection->flagged
			       : most;
	return most;
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
	*entity = wr_instances_sender(*entity);
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

/* A port that gives one message to several ticks. */
static bool gives_again(const struct wr_input *input)
{
	return input->plan->policy == WEIR_POLICY_LATEST || input->plan->reused;
}

/*
 * Those of its first connected input that gives each message once, else its ticks. Returns false if the
 * entity is no sink.
 */
static bool count_frames(const weir_entity *entity, uint64_t *frames)
{
	const struct wr_input *input = NULL;

	for (size_t i = entity->input_count; i--;)
		if (entity->inputs[i].count && (!input || !gives_again(&entity->inputs[i])))
			input = &entity->inputs[i];
	if (!input || wr_instances_receivers(entity))
		return false;
	*frames = wr_read(&entity->counters.ticks);
	if (gives_again(input))
		return true;
	*frames = 0;
	for (size_t i = 0; i < input->count; i++) {
		weir_queue_counts counts;

		wr_instances_count_queue(input->connections[i], &counts);
		*frames += counts.delivered;
	}
	return true;
}

const weir_entity *wr_graph_main(const weir_graph *graph, uint64_t *frames)
{
	const weir_entity *found = NULL;
	uint64_t count;

	*frames = 0;
	for (size_t i = 0; i < graph->plan->shown_count && !(found && found->plan->main); i++) {
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

/*
 * === the backend that it runs on ===
 *
 * The system of a graph and, for `sim`, the simulated world of that system. Created for the first scheduler;
 * kept for the next one if it asks for the same backend, so that streams and memory stay warm; else replaced.
 *
 * Its resources are the partitions of its devices and its stream pools, as in the plan. The system owns them;
 * the graph keeps pointers to the pools, in plan order.
 */

/* --- resources --- */

/* The partitions of one green context pool, then the remainder. */
struct pool_partitions {
	struct wr_partition **partitions;
	uint32_t *sms;
};

static weir_status create_all_partitions(weir_graph *graph, struct pool_partitions **out)
{
	const struct wr_plan *plan = graph->plan;
	weir_status status = WEIR_OK;

	*out = wr_alloc(plan->green_context_pool_count + 1, sizeof **out);
	if (!*out)
		return WEIR_E_NOMEM;
	for (size_t i = 0; !status && i < plan->green_context_pool_count; i++) {
		const struct wr_plan_green_context_pool *pool = &plan->green_context_pools[i];
		const struct wr_partitions_spec spec = {pool->name, pool->device, pool->sizes, pool->count,
							pool->min_sm_size};
		struct pool_partitions *parts = &(*out)[i];

		parts->partitions = wr_alloc(pool->count + 1, sizeof *parts->partitions);
		parts->sms = wr_alloc(pool->count + 1, sizeof *parts->sms);
		if (!parts->partitions || !parts->sms)
			return WEIR_E_NOMEM;
		status = wr_partitions_create(graph->system, &spec, parts->partitions, parts->sms);
	}
	return status;
}

/* Index -1 is the remainder, or the last partition if nothing remains. */
static struct wr_partition *partition_of(const struct wr_plan *plan, uint32_t context,
					 const struct pool_partitions *parts)
{
	if (context == WR_NO_CONTEXT)
		return NULL;
	const struct wr_plan_green_context *own = &plan->green_contexts[context];
	struct wr_partition **partitions = parts[own->pool].partitions;
	size_t count = plan->green_context_pools[own->pool].count;

	if (own->index >= 0)
		return partitions[own->index];
	return partitions[count] ? partitions[count] : partitions[count - 1];
}

static weir_status make_stream_pool(weir_graph *graph, size_t i, const struct pool_partitions *parts)
{
	const struct wr_plan_stream_pool *plan = &graph->plan->stream_pools[i];
	const struct wr_stream_pool_spec spec = {
		.name = plan->name,
		.streams = {.device = plan->device,
			    .flags = plan->flags,
			    .priority = plan->priority,
			    .partition = partition_of(graph->plan, plan->green_context, parts)},
		.reserved = plan->reserved_size,
		.max = plan->max_size,
	};
	weir_status status = wr_stream_pool_create(graph->system, &spec, &graph->pools[i]);

	if (!status || status == WEIR_E_NOMEM)
		return status;
	return wr_fail(status, "stream pool '%s': %s", plan->name, weir_last_error());
}

/*
 * Creates the stream pools and partitions of the plan in the graph's system. Fails as their creators do,
 * naming the resource; the caller then destroys the system.
 */
static weir_status resources_make(weir_graph *graph)
{
	struct pool_partitions *parts = NULL;
	weir_status status = create_all_partitions(graph, &parts);

	if (!status) {
		graph->pools = wr_alloc(graph->plan->stream_pool_count + 1, sizeof(struct wr_stream_pool *));
		status = graph->pools ? WEIR_OK : WEIR_E_NOMEM;
	}
	for (size_t i = 0; !status && i < graph->plan->stream_pool_count; i++)
		status = make_stream_pool(graph, i, parts);
	for (size_t i = 0; parts && i < graph->plan->green_context_pool_count; i++) {
		wr_free(parts[i].partitions);
		wr_free(parts[i].sms);
	}
	wr_free(parts);
	return status ? status : wr_memory_pools_open(graph);
}

static void resources_forget(weir_graph *graph)
{
	wr_memory_pools_close(graph);
	wr_free(graph->pools);
	graph->pools = NULL;
}

/* --- the system --- */

struct making {
	weir_graph *graph;
	struct wr_system_options options;
};

static weir_status create_system_in_world(void *arg)
{
	const struct making *making = arg;
	weir_graph *graph = making->graph;
	weir_status status = wr_system_create(&graph->system, &making->options);

	if (status)
		return status;
	status = resources_make(graph);
	if (!status)
		return WEIR_OK;
	resources_forget(graph);
	(void)wr_system_destroy(graph->system); /* nothing ran on it; the last error is set already */
	graph->system = NULL;
	return status;
}

static weir_status destroy_system_in_world(void *arg)
{
	const weir_graph *graph = arg;

	wr_system_run_deferred_frees(graph->system, true);
	return wr_system_destroy(graph->system);
}

/* Tries again to fence what entities kept. Returns true if none does any more. */
static bool fence_pending(void *arg)
{
	weir_graph *graph = arg;
	bool pending = false;

	for (size_t i = 0; i < graph->entity_count; i++) {
		if (graph->entities[i].fences_pending)
			(void)wr_entity_drop_tick(&graph->entities[i]);
		pending |= graph->entities[i].fences_pending;
	}
	return !pending;
}

/* A device that failed may stop soon, and nothing else brings memory for a fence back. */
static weir_status fence_pending_in_world(void *arg)
{
	weir_graph *graph = arg;

	if (!fence_pending(graph) && wr_system_failed(graph->system) && !graph->leaks)
		wr_system_wait(graph->system, fence_pending, graph);
	graph->leaks = !fence_pending(graph);
	return WEIR_OK;
}

/*
 * Drops all messages and streams that the graph itself holds. Payloads that the device still uses go to the
 * deferred-free list.
 */
static void drop_messages_and_streams(weir_graph *graph)
{
	wr_sim_try(graph->world, fence_pending_in_world, graph);
	for (size_t i = 0; i < graph->connection_count; i++)
		wr_queue_reset(&graph->connections[i]->queue);
	for (size_t i = 0; i < graph->finisher_count; i++)
		wr_queue_reset(&graph->finishers[i]->connection->queue);
	for (size_t i = 0; i < graph->entity_count; i++)
		if (!graph->entities[i].fences_pending) /* else they may still be fenced */
			wr_entity_close_streams(&graph->entities[i]);
}

/* Destroys the system. Fails with WEIR_E_ABANDONED if a GPU hangs: what it may touch is leaked (E4). */
static weir_status graph_destroy_system(weir_graph *graph)
{
	weir_status status = WEIR_OK;

	if (graph->system) {
		drop_messages_and_streams(graph);
		for (size_t i = 0; i < graph->entity_count; i++) { /* messages that are still pending leak */
			wr_entity_close_streams(&graph->entities[i]);
			graph->entities[i].fences_pending = false;
			graph->entities[i].given_stream = NULL;
		}
		status = wr_sim_try(graph->world, destroy_system_in_world, graph);
		if (!status) {
			wr_pool_bind(graph->pool, NULL);
			graph->leaks = wr_pool_live(graph->pool) > 0;
		}
		resources_forget(graph);
		graph->system = NULL;
	}
	if (graph->owns_world)
		wr_sim_destroy(graph->world);
	graph->world = NULL;
	graph->owns_world = false;
	return status;
}

#define SIM_STEP_NS INT64_C(10000000)
enum { SIM_STEPS = 1000 };

/*
 * Simulated time stands still between runs, so payloads in use by the simulated device would stay for ever:
 * this lets some simulated time pass.
 */
static weir_status run_deferred_frees_in_world(void *arg)
{
	const weir_graph *graph = arg;

	wr_system_run_deferred_frees(graph->system, true);
	for (int i = 0; graph->world && wr_pool_live(graph->pool) && i < SIM_STEPS; i++) {
		wr_thread_sleep(SIM_STEP_NS);
		wr_system_run_deferred_frees(graph->system, true);
	}
	return WEIR_OK;
}

/* The thread that completes one must find the system. */
static weir_status refuse_open_fences(const weir_graph *graph, const char *before)
{
	return wr_fail(WEIR_E_STATE, "graph %s: %llu of its fences are not completed: complete them %s",
		       graph->plan->name, (unsigned long long)wr_system_open_promises(graph->system), before);
}

/*
 * Payloads are in the system's memory, so the system must not be replaced while the program holds messages or
 * the device uses them. Fails: WEIR_E_STATE.
 */
static weir_status check_no_messages(weir_graph *graph)
{
	uint64_t held;

	if (!graph->system)
		return WEIR_OK;
	if (wr_system_open_promises(graph->system))
		return refuse_open_fences(graph, "before it runs elsewhere");
	drop_messages_and_streams(graph);
	wr_sim_try(graph->world, run_deferred_frees_in_world, graph);
	held = wr_pool_live(graph->pool);
	if (!held)
		return WEIR_OK;
	return wr_fail(WEIR_E_STATE,
		       "graph %s: %llu messages of its run on %s are still held: "
		       "drop them before it runs elsewhere",
		       graph->plan->name, (unsigned long long)held, wr_system_where(graph->system));
}

/*
 * Discards leftovers of the last run. Fails with WEIR_E_STATE if the program still holds messages of the
 * graph.
 */
static weir_status graph_check_released(weir_graph *graph)
{
	uint64_t held, deferred;

	if (!graph->pool)
		return WEIR_OK; /* half built: there was no message yet */
	if (graph->system && wr_system_open_promises(graph->system))
		return refuse_open_fences(graph, "before it is destroyed");
	drop_messages_and_streams(graph);
	if (graph->leaks)
		return WEIR_OK;
	deferred = graph->system ? wr_system_deferred_frees(graph->system) : 0;
	held = wr_pool_live(graph->pool);
	if (held <= deferred)
		return WEIR_OK;
	return wr_fail(WEIR_E_STATE,
		       "graph %s: %llu of its messages are still held: unref them, then destroy it",
		       graph->plan->name, (unsigned long long)(held - deferred));
}

static weir_status make_sim_world(weir_graph *graph, uint64_t seed)
{
	graph->world = wr_sim_current();
	if (graph->world)
		return WEIR_OK;
	graph->owns_world = true;
	weir_status status = wr_sim_create(&graph->world, seed, WR_SIM_BY_SEED);
	if (!status) /* no limit: a run may be long, and it reaches its deadlines, since ticks take time */
		wr_sim_set_limit(graph->world, UINT64_MAX);
	return status;
}

weir_status wr_graph_place(weir_graph *graph, const char *backend, uint64_t seed, int strict)
{
	struct making making = {
		.graph = graph,
		.options = {.backend = backend, .seed = seed, .devices = graph->plan->devices},
	};
	bool simulated = !strcmp(backend, "sim");
	weir_status status;

	making.options.strict = strict ? strict > 0 : simulated;
	/* One in a simulated world is used once. */
	if (graph->system && graph->backend && !graph->world && !wr_system_failed(graph->system) &&
	    !strcmp(graph->backend, backend) && graph->strict == making.options.strict)
		return WEIR_OK;
	status = check_no_messages(graph);
	if (!status)
		status = graph_destroy_system(graph);
	if (!status && simulated)
		status = make_sim_world(graph, seed);
	if (status)
		return status;
	making.options.sim = graph->world;
	status = wr_sim_try(graph->world, create_system_in_world, &making);
	if (status)
		return status;
	wr_free(graph->backend);
	graph->backend = wr_strdup(backend);
	graph->strict = making.options.strict;
	wr_pool_bind(graph->pool, graph->system);
	return graph->backend ? WEIR_OK : WEIR_E_NOMEM;
}

/* --- public calls on the system of a graph --- */

static weir_status refuse_fence(const weir_graph *graph)
{
	return wr_fail(WEIR_E_INVALID, "graph %s: there are no fences of it before a scheduler is created",
		       graph->plan->name);
}

/*
 * The first to ask has the device's error alone: the report has the suspects, too. It is about an entity only
 * if no other one had unfinished work (E3).
 */
static weir_status report_lost_device(weir_graph *graph)
{
	const char *accused = wr_system_accused(graph->system);

	wr_fail(WEIR_E_DEVICE, "%s", wr_system_failure(graph->system));
	wr_error_cause(WEIR_CAUSE_DEVICE, NULL);
	return accused && weir_graph_entity(graph, accused) ? wr_error_about(WEIR_E_DEVICE, accused)
							    : WEIR_E_DEVICE;
}

weir_status weir_fence_query(weir_graph *graph, weir_fence fence)
{
	weir_status status;

	if (!fence.stream && !fence.value)
		return WEIR_OK;
	if (!graph->system)
		return refuse_fence(graph);
	status = wr_fence_query(graph->system, fence);
	if (status == WEIR_E_DEVICE)
		return report_lost_device(graph);
	if (!status)
		wr_system_collect_between_runs(graph->system);
	return status;
}

weir_status weir_fence_wait(weir_graph *graph, weir_fence fence, int64_t timeout_ns)
{
	int64_t until = timeout_ns < 0 ? INT64_MAX : wr_time_add(wr_now(), timeout_ns);
	weir_status status;

	if (wr_thread_local())
		return wr_fail(WEIR_E_INVALID,
			       "a worker must not wait for a fence: let a gate or a condition "
			       "'fence' wait");
	if (!fence.stream && !fence.value)
		return WEIR_OK;
	if (!graph->system)
		return refuse_fence(graph);
	status = wr_fence_wait(graph->system, fence, until);
	if (status == WEIR_E_DEVICE)
		return report_lost_device(graph);
	if (!status)
		wr_system_collect_between_runs(graph->system);
	return status;
}

/* --- fences that the program completes --- */

weir_status weir_graph_create_fence(weir_graph *graph, weir_fence *out)
{
	if (!graph->system)
		return wr_fail(WEIR_E_INVALID, "graph %s: create a scheduler before a fence",
			       graph->plan->name);
	return wr_promise_create(graph->system, out);
}

weir_status weir_fence_complete(weir_graph *graph, weir_fence fence, weir_status status, const char *text)
{
	if ((int)status > 0)
		return wr_fail(WEIR_E_INVALID, "a fence is completed with WEIR_OK or a failure, not with %d",
			       (int)status);
	if (!graph->system || !wr_fence_is_promise(fence))
		return wr_fail(WEIR_E_INVALID,
			       "graph %s: only a fence of weir_graph_create_fence is completed",
			       graph->plan->name);
	return wr_promise_complete(graph->system, fence, status, text);
}

weir_status weir_graph_collect(weir_graph *graph, int64_t timeout_ns)
{
	int64_t until = timeout_ns < 0 ? INT64_MAX : wr_time_add(wr_now(), timeout_ns);

	if (wr_thread_local())
		return wr_fail(WEIR_E_INVALID, "graph %s: its workers collect by themselves",
			       graph->plan->name);
	if (!graph->system)
		return WEIR_OK;
	if (wr_system_running(graph->system))
		return wr_fail(WEIR_E_STATE,
			       "graph %s: a run is on, its workers collect: call it between runs",
			       graph->plan->name);
	if (wr_system_wait_deferred_frees(graph->system, until))
		return WEIR_OK;
	return wr_fail(WEIR_E_TIMEOUT, "graph %s: the device still uses %llu messages that were dropped",
		       graph->plan->name, (unsigned long long)wr_system_deferred_frees(graph->system));
}

weir_status weir_stream_wrap(weir_graph *graph, int device, void *native, weir_stream **out)
{
	if (!graph->system)
		return wr_fail(WEIR_E_INVALID, "graph %s: create a scheduler before wrapping a stream",
			       graph->plan->name);
	return wr_stream_wrap(graph->system, device, native, out);
}

weir_status weir_fence_enqueue(weir_graph *graph, weir_fence fence, int device, void *native)
{
	if (!fence.stream && !fence.value)
		return WEIR_OK;
	if (!graph->system)
		return refuse_fence(graph);
	return wr_fence_enqueue(graph->system, fence, device, native);
}

/* --- a stream for the program --- */

struct opening {
	weir_graph *graph;
	int device;
	weir_stream **out;
};

static weir_status open_stream_in_world(void *arg)
{
	const struct opening *opening = arg;
	const struct wr_stream_spec spec = {.device = opening->device};

	return wr_stream_open(opening->graph->system, &spec, "the program", opening->out);
}

weir_status weir_graph_add_stream(weir_graph *graph, int device, weir_stream **out)
{
	struct opening opening = {graph, device, out};

	if (wr_thread_local())
		return wr_fail(WEIR_E_INVALID, "weir_graph_add_stream must not be called on a worker: "
					       "call weir_context_allocate_stream");
	if (!graph->system)
		return wr_fail(WEIR_E_INVALID, "graph %s: create a scheduler before asking for a stream",
			       graph->plan->name);
	return wr_sim_try(graph->world, open_stream_in_world, &opening);
}

/* --- a stream of the program as an entity's current one (T14) --- */

static weir_status check_given_stream(const weir_entity *entity, const weir_stream *stream)
{
	struct wr_system *system = entity->graph->system;
	const char *name = entity->plan->name;

	if (!system)
		return wr_fail_in(WEIR_E_INVALID, name, "create a scheduler before giving it a stream");
	if (wr_system_running(system))
		return wr_fail_in(WEIR_E_STATE, name, "a run is on: give it a stream between runs");
	if (stream && entity->plan->role != WR_PLAIN)
		return wr_fail_in(
			WEIR_E_INVALID, name,
			"each of its instances has a stream: leave \"instances\" out to give it one");
	if (!stream)
		return WEIR_OK;
	if (wr_stream_find(system, weir_stream_id(stream)) != stream)
		return wr_fail_in(WEIR_E_INVALID, name,
				  "the stream belongs to another graph, or was unwrapped");
	if (!wr_stream_is_programs(stream))
		return wr_fail_in(WEIR_E_INVALID, name,
				  "the stream belongs to an entity: give one that weir_stream_wrap or "
				  "weir_graph_add_stream made");
	if (weir_stream_device(stream) != entity->plan->device)
		return wr_fail(WEIR_E_INVALID, "%s works on device %d, the stream is on device %d", name,
			       entity->plan->device, weir_stream_device(stream));
	return WEIR_OK;
}

weir_status weir_entity_use_stream(weir_entity *entity, weir_stream *stream)
{
	weir_status status = entity ? check_given_stream(entity, stream) : wr_entity_refuse_null();

	if (status)
		return status;
	if (stream)
		wr_stream_count_user(stream, true);
	if (entity->given_stream)
		wr_stream_count_user(entity->given_stream, false);
	entity->given_stream = stream;
	return WEIR_OK;
}
