/*
 * Where a graph runs: its system, and, for `sim`, the world that the system lives in. Made for the first
 * scheduler; kept for the next one if that asks for the same (streams and memory stay warm), else replaced;
 * gone with the graph.
 */
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/sim.h"
#include "base/status.h"
#include "base/thread.h"
#include "graphs/finisher.h"

struct placing {
	weir_graph *graph;
	struct wr_system_options options;
	weir_status status;
};

static void create_inside(void *arg)
{
	struct placing *placing = arg;

	weir_graph *graph = placing->graph;

	placing->status = wr_system_create(&graph->system, &placing->options);
	if (placing->status)
		return;
	placing->status = wr_resources_make(graph);
	if (!placing->status)
		return;
	wr_resources_forget(graph);
	(void)wr_system_destroy(graph->system);	/* nothing has run on it; last_error says already why */
	graph->system = NULL;
}

static void destroy_inside(void *arg)
{
	struct placing *placing = arg;

	wr_system_run_deferred_frees(placing->graph->system, true);
	placing->status = wr_system_destroy(placing->graph->system);
}

static weir_status in_world(weir_graph *graph, void (*fn)(void *arg), struct placing *placing)
{
	weir_status status = WEIR_OK;

	if (graph->world && wr_sim_current() != graph->world)
		status = wr_sim_call(graph->world, fn, placing);
	else
		fn(placing);
	return status ? status : placing->status;
}

/* Whatever the graph itself holds of the system's memory and streams. */
static void settle_inside(void *arg)
{
	weir_graph *graph = ((struct placing *)arg)->graph;

	for (size_t i = 0; i < graph->entity_count; i++)
		if (graph->entities[i].fences_pending && wr_entity_settle(&graph->entities[i]) == WEIR_E_NOMEM)
			graph->leaks = true;
}

/*
 * After this nothing of the graph's own needs the system: a device that still works on a payload keeps it
 * on the retire list.
 */
static void let_go(weir_graph *graph)
{
	struct placing placing = {.graph = graph};

	in_world(graph, settle_inside, &placing);
	for (size_t i = 0; i < graph->connection_count; i++)
		wr_queue_reset(&graph->connections[i]->queue);
	for (size_t i = 0; i < graph->hidden_count; i++)
		wr_queue_reset(&graph->hidden[i]->connection->queue);
	for (size_t i = 0; i < graph->entity_count; i++)
		wr_entity_close_streams(&graph->entities[i]);
}

weir_status wr_graph_displace(weir_graph *graph)
{
	struct placing placing = {.graph = graph};
	weir_status status = WEIR_OK;

	if (graph->system) {
		let_go(graph);
		status = in_world(graph, destroy_inside, &placing);
		if (!status)
			wr_pool_bind(graph->pool, NULL);
		wr_resources_forget(graph);
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
 * In a simulated world time stands still between runs: what its device still works on would be held for ever.
 * There it gets some of its time.
 */
static void look_inside(void *arg)
{
	weir_graph *graph = ((struct placing *)arg)->graph;

	wr_system_run_deferred_frees(graph->system, true);
	for (int i = 0; graph->world && wr_pool_live(graph->pool) && i < SIM_STEPS; i++) {
		wr_thread_sleep(SIM_STEP_NS);
		wr_system_run_deferred_frees(graph->system, true);
	}
}

/*
 * Payloads lie in the system's memory: it is not replaced under those that somebody holds or that a device
 * still works on.
 */
static weir_status nobody_holds(weir_graph *graph)
{
	struct placing placing = {.graph = graph};
	uint64_t held;

	if (!graph->system)
		return WEIR_OK;
	let_go(graph);
	in_world(graph, look_inside, &placing);
	held = wr_pool_live(graph->pool);
	if (!held)
		return WEIR_OK;
	return wr_fail(WEIR_E_BUSY, "graph %s: %llu messages of its run on %s are still held: "
		       "drop them before it runs elsewhere",
		       graph->plan->name, (unsigned long long)held, wr_system_where(graph->system));
}

weir_status wr_graph_released(weir_graph *graph)
{
	uint64_t held, retired;

	if (!graph->pool)
		return WEIR_OK;	/* half built: nobody has had a message */
	let_go(graph);
	if (graph->leaks)
		return WEIR_OK;
	retired = graph->system ? wr_system_deferred_frees(graph->system) : 0;
	held = wr_pool_live(graph->pool);
	if (held <= retired)
		return WEIR_OK;
	return wr_fail(WEIR_E_BUSY, "graph %s: %llu of its messages are still held: unref them, then destroy it",
		       graph->plan->name, (unsigned long long)(held - retired));
}

static weir_status make_world(weir_graph *graph, uint64_t seed)
{
	graph->world = wr_sim_current();
	if (graph->world)
		return WEIR_OK;
	graph->owns_world = true;
	weir_status status = wr_sim_create(&graph->world, seed, WR_SIM_BY_SEED);
	if (!status)	/* a run may be long: its ticks take time, so deadlines come */
		wr_sim_set_limit(graph->world, UINT64_MAX);
	return status;
}

/* Its system is what is asked for and still works. One in a simulated world is used once. */
static bool lies_on(const weir_graph *graph, const char *backend)
{
	return graph->system && graph->backend && !graph->world && !wr_system_failed(graph->system) &&
	       !strcmp(graph->backend, backend);
}

weir_status wr_graph_place(weir_graph *graph, const char *backend, uint64_t seed)
{
	struct placing placing = {
		.graph = graph,
		.options = {.backend = backend, .seed = seed, .devices = graph->plan->devices},
	};
	bool simulated = !strcmp(backend, "sim");
	weir_status status;

	if (!simulated && lies_on(graph, backend))
		return WEIR_OK;
	status = nobody_holds(graph);
	if (!status)
		status = wr_graph_displace(graph);
	if (!status && simulated)
		status = make_world(graph, seed);
	if (status)
		return status;
	placing.options.sim = graph->world;
	status = in_world(graph, create_inside, &placing);
	if (status)
		return status;
	wr_free(graph->backend);
	graph->backend = wr_strdup(backend);
	wr_pool_bind(graph->pool, graph->system);
	return graph->backend ? WEIR_OK : WEIR_E_NOMEM;
}

/* --- public calls that name the graph and mean its system --- */

static weir_status no_fence_yet(const weir_graph *graph)
{
	return wr_fail(WEIR_E_INVALID, "graph %s: no fence is its own before it has a scheduler",
		       graph->plan->name);
}

weir_status weir_fence_query(weir_graph *graph, weir_fence fence)
{
	if (!fence.stream && !fence.point)
		return WEIR_OK;
	if (!graph->system)
		return no_fence_yet(graph);
	return wr_fence_query(graph->system, fence);
}

weir_status weir_fence_wait(weir_graph *graph, weir_fence fence, int64_t timeout_ns)
{
	int64_t until = timeout_ns < 0 ? INT64_MAX : wr_time_add(wr_now(), timeout_ns);

	if (wr_thread_local())
		return wr_fail(WEIR_E_INVALID,
			       "a worker must not wait for a fence; gate the entity with cuda_stream");
	if (!fence.stream && !fence.point)
		return WEIR_OK;
	if (!graph->system)
		return no_fence_yet(graph);
	return wr_fence_wait(graph->system, fence, until);
}

weir_status weir_stream_wrap(weir_stream **out, weir_graph *graph, int device, void *native)
{
	if (!graph->system)
		return wr_fail(WEIR_E_INVALID, "graph %s: streams are wrapped after a scheduler was made",
			       graph->plan->name);
	return wr_stream_wrap(graph->system, device, native, out);
}

weir_status weir_fence_enqueue(weir_graph *graph, weir_fence fence, int device, void *native)
{
	if (!fence.stream && !fence.point)
		return WEIR_OK;
	if (!graph->system)
		return no_fence_yet(graph);
	return wr_fence_enqueue(graph->system, fence, device, native);
}

/* --- a stream for the program --- */

struct opening {
	weir_graph *graph;
	int device;
	weir_stream **out;
	weir_status status;
};

static void open_inside(void *arg)
{
	struct opening *opening = arg;
	const struct wr_stream_spec spec = {.device = opening->device};

	opening->status = wr_stream_open(opening->graph->system, &spec, "the program", opening->out);
}

weir_status weir_graph_stream(weir_graph *graph, int device, weir_stream **out)
{
	struct opening opening = {graph, device, out, WEIR_OK};
	weir_status status = WEIR_OK;

	if (wr_thread_local())
		return wr_fail(WEIR_E_INVALID, "a worker asks weir_context_allocate_stream for one more stream: "
					       "weir_graph_stream is for a program outside of ticks");
	if (!graph->system)
		return wr_fail(WEIR_E_INVALID, "graph %s: a program's stream is made after a scheduler was made",
			       graph->plan->name);
	if (graph->world && wr_sim_current() != graph->world)
		status = wr_sim_call(graph->world, open_inside, &opening);
	else
		open_inside(&opening);
	return status ? status : opening.status;
}
