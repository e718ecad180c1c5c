/*
 * The system of a graph and, for `sim`, the simulated world of that system. Created for the first scheduler;
 * kept for the next one if it asks for the same backend, so that streams and memory stay warm; else replaced.
 *
 * Its resources are the partitions of its devices and its stream pools, as in the plan. The system owns them;
 * the graph keeps pointers to the pools, in plan order.
 */
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/status.h"
#include "base/thread.h"
#include "scheduler/finisher.h"
#include "scheduler/memory_pool.h"
#include "sim/simulation.h"

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

/* A function that runs in the graph's simulated world, if it has one, with what it takes and gives. */
struct world_call {
	weir_graph *graph;
	struct wr_system_options options; /* create_system_in_world */
	int device;                       /* open_stream_in_world */
	weir_stream **stream;             /* likewise */
	weir_status status;
};

static void create_system_in_world(void *arg)
{
	struct world_call *call = arg;
	weir_graph *graph = call->graph;

	call->status = wr_system_create(&graph->system, &call->options);
	if (call->status)
		return;
	call->status = resources_make(graph);
	if (!call->status)
		return;
	resources_forget(graph);
	(void)wr_system_destroy(graph->system); /* nothing ran on it; the last error is set already */
	graph->system = NULL;
}

static void destroy_system_in_world(void *arg)
{
	struct world_call *call = arg;

	wr_system_run_deferred_frees(call->graph->system, true);
	call->status = wr_system_destroy(call->graph->system);
}

static weir_status call_in_world(weir_graph *graph, void (*fn)(void *arg), struct world_call *call)
{
	weir_status status = WEIR_OK;

	if (graph->world && wr_sim_current() != graph->world)
		status = wr_sim_call(graph->world, fn, call);
	else
		fn(call);
	return status ? status : call->status;
}

/* Tries again to fence what entities kept for want of memory. */
static void fence_pending_in_world(void *arg)
{
	weir_graph *graph = ((struct world_call *)arg)->graph;

	for (size_t i = 0; i < graph->entity_count; i++)
		if (graph->entities[i].fences_pending &&
		    wr_entity_drop_tick(&graph->entities[i]) == WEIR_E_NOMEM)
			graph->leaks = true;
}

/*
 * Drops all messages and streams that the graph itself holds. Payloads that the device still uses go to the
 * deferred-free list.
 */
static void drop_messages_and_streams(weir_graph *graph)
{
	struct world_call call = {.graph = graph};

	call_in_world(graph, fence_pending_in_world, &call);
	for (size_t i = 0; i < graph->connection_count; i++)
		wr_queue_reset(&graph->connections[i]->queue);
	for (size_t i = 0; i < graph->finisher_count; i++)
		wr_queue_reset(&graph->finishers[i]->connection->queue);
	for (size_t i = 0; i < graph->entity_count; i++)
		wr_entity_close_streams(&graph->entities[i]);
}

weir_status wr_graph_destroy_system(weir_graph *graph)
{
	struct world_call call = {.graph = graph};
	weir_status status = WEIR_OK;

	if (graph->system) {
		drop_messages_and_streams(graph);
		for (size_t i = 0; i < graph->entity_count; i++)
			graph->entities[i].given_stream = NULL;
		status = call_in_world(graph, destroy_system_in_world, &call);
		if (!status)
			wr_pool_bind(graph->pool, NULL);
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
static void run_deferred_frees_in_world(void *arg)
{
	weir_graph *graph = ((struct world_call *)arg)->graph;

	wr_system_run_deferred_frees(graph->system, true);
	for (int i = 0; graph->world && wr_pool_live(graph->pool) && i < SIM_STEPS; i++) {
		wr_thread_sleep(SIM_STEP_NS);
		wr_system_run_deferred_frees(graph->system, true);
	}
}

/*
 * Payloads are in the system's memory, so the system must not be replaced while the program holds messages or
 * the device uses them. Fails: WEIR_E_STATE.
 */
static weir_status check_no_messages(weir_graph *graph)
{
	struct world_call call = {.graph = graph};
	uint64_t held;

	if (!graph->system)
		return WEIR_OK;
	drop_messages_and_streams(graph);
	call_in_world(graph, run_deferred_frees_in_world, &call);
	held = wr_pool_live(graph->pool);
	if (!held)
		return WEIR_OK;
	return wr_fail(WEIR_E_STATE,
		       "graph %s: %llu messages of its run on %s are still held: "
		       "drop them before it runs elsewhere",
		       graph->plan->name, (unsigned long long)held, wr_system_where(graph->system));
}

weir_status wr_graph_check_released(weir_graph *graph)
{
	uint64_t held, deferred;

	if (!graph->pool)
		return WEIR_OK; /* half built: there was no message yet */
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

/*
 * Returns true if the present system has this backend and has not failed. One in a simulated world is used
 * once.
 */
static bool can_keep_system(const weir_graph *graph, const char *backend, bool strict)
{
	return graph->system && graph->backend && !graph->world && !wr_system_failed(graph->system) &&
	       !strcmp(graph->backend, backend) && graph->strict == strict;
}

weir_status wr_graph_place(weir_graph *graph, const char *backend, uint64_t seed, int strict)
{
	struct world_call call = {
		.graph = graph,
		.options = {.backend = backend, .seed = seed, .devices = graph->plan->devices},
	};
	bool simulated = !strcmp(backend, "sim");
	weir_status status;

	call.options.strict = strict ? strict > 0 : simulated;
	if (!simulated && can_keep_system(graph, backend, call.options.strict))
		return WEIR_OK;
	status = check_no_messages(graph);
	if (!status)
		status = wr_graph_destroy_system(graph);
	if (!status && simulated)
		status = make_sim_world(graph, seed);
	if (status)
		return status;
	call.options.sim = graph->world;
	status = call_in_world(graph, create_system_in_world, &call);
	if (status)
		return status;
	wr_free(graph->backend);
	graph->backend = wr_strdup(backend);
	graph->strict = call.options.strict;
	wr_pool_bind(graph->pool, graph->system);
	return graph->backend ? WEIR_OK : WEIR_E_NOMEM;
}

/* --- public calls on the system of a graph --- */

static weir_status refuse_fence(const weir_graph *graph)
{
	return wr_fail(WEIR_E_INVALID, "graph %s: there are no fences of it before a scheduler is created",
		       graph->plan->name);
}

weir_status weir_fence_query(weir_graph *graph, weir_fence fence)
{
	weir_status status;

	if (!fence.stream && !fence.value)
		return WEIR_OK;
	if (!graph->system)
		return refuse_fence(graph);
	status = wr_fence_query(graph->system, fence);
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
	if (!status)
		wr_system_collect_between_runs(graph->system);
	return status;
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

static void open_stream_in_world(void *arg)
{
	struct world_call *call = arg;
	const struct wr_stream_spec spec = {.device = call->device};

	call->status = wr_stream_open(call->graph->system, &spec, "the program", call->stream);
}

weir_status weir_graph_add_stream(weir_graph *graph, int device, weir_stream **out)
{
	struct world_call call = {.graph = graph, .device = device, .stream = out};

	if (wr_thread_local())
		return wr_fail(WEIR_E_INVALID, "weir_graph_add_stream must not be called on a worker: "
					       "call weir_context_allocate_stream");
	if (!graph->system)
		return wr_fail(WEIR_E_INVALID, "graph %s: create a scheduler before asking for a stream",
			       graph->plan->name);
	return call_in_world(graph, open_stream_in_world, &call);
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
