/*
 * Graphs. A launch performs each lane (what one stream captured) on a thread of its own: nothing but an edge
 * orders two lanes. The first lane's thread is the stream's.
 */
#include <stdlib.h>
#include <string.h>

#include "inside.h"

static void *zeroed(size_t bytes)
{
	void *memory = calloc(1, bytes ? bytes : 1);

	if (!memory)
		abort();
	return memory;
}

/* --- nodes --- */

struct fake_node *fake_nodes_add(struct fake_nodes *nodes, struct fake_operation *operation, unsigned lane)
{
	struct fake_node *node = zeroed(sizeof *node);

	if (nodes->count == nodes->room) {
		nodes->room = 2 * nodes->room + 8;
		nodes->items = realloc(nodes->items, nodes->room * sizeof(struct fake_node *));
		if (!nodes->items)
			abort();
	}
	node->operation = operation;
	node->lane = lane;
	nodes->items[nodes->count++] = node;
	return node;
}

void fake_nodes_free(struct fake_nodes *nodes)
{
	for (size_t i = 0; i < nodes->count; i++) {
		fake_operation_free(nodes->items[i]->operation);
		free(nodes->items[i]->before);
		free(nodes->items[i]);
	}
	free(nodes->items);
	free(nodes);
}

static struct fake_operation *operation_copy(const struct fake_operation *operation)
{
	struct fake_operation *copy = fake_operation_new(operation->work);

	*copy = *operation;
	for (int i = 0; copy->work == FAKE_KERNEL && i < FAKE_PARAMETERS && copy->run.parameters[i]; i++) {
		copy->run.parameters[i] = zeroed(copy->run.kernel->sizes[i]);
		memcpy(copy->run.parameters[i], operation->run.parameters[i], copy->run.kernel->sizes[i]);
	}
	return copy;
}

static struct fake_nodes *nodes_copy(const struct fake_nodes *nodes)
{
	struct fake_nodes *copies = zeroed(sizeof *copies);

	for (size_t i = 0; i < nodes->count; i++) {
		const struct fake_node *node = nodes->items[i];
		struct fake_node *copy = fake_nodes_add(copies, operation_copy(node->operation), node->lane);

		copy->count = node->count;
		copy->before = zeroed(node->count * sizeof *copy->before);
		if (node->count)
			memcpy(copy->before, node->before, node->count * sizeof *copy->before);
	}
	copies->lanes = nodes->lanes;
	return copies;
}

/* --- performing --- */

struct launch {
	const struct fake_nodes *nodes;
	const struct fake_place *place;
	_Atomic bool *done;            /* by node; released by its thread */
	_Atomic unsigned lanes, users; /* that are not through; that still touch it */
	struct fake_bell bell;
};

struct lane {
	struct launch *launch;
	unsigned number;
};

static void launch_leave(struct launch *launch)
{
	if (atomic_fetch_sub_explicit(&launch->users, 1, memory_order_acq_rel) > 1)
		return;
	free(launch->done);
	free(launch);
}

static void wait_for(struct launch *launch, size_t node)
{
	for (;;) {
		uint32_t seen = fake_get(&launch->bell.rung);

		atomic_signal_fence(memory_order_seq_cst);
		if (fake_lost() || atomic_load_explicit(&launch->done[node], memory_order_acquire))
			return;
		fake_listen(&launch->bell, seen);
	}
}

static void lane_perform(struct launch *launch, unsigned lane)
{
	for (size_t i = 0; i < launch->nodes->count && !fake_lost(); i++) {
		const struct fake_node *node = launch->nodes->items[i];

		if (node->lane != lane)
			continue;
		for (size_t k = 0; k < node->count; k++)
			wait_for(launch, node->before[k]);
		fake_be_late(i * 32 + lane, 4);
		if (!fake_lost())
			fake_perform(node->operation, launch->place);
		atomic_store_explicit(&launch->done[i], true, memory_order_release);
		fake_ring(&launch->bell);
	}
	atomic_fetch_sub_explicit(&launch->lanes, 1, memory_order_release);
	fake_ring(&launch->bell);
}

static void *lane_run(void *arg)
{
	struct lane lane = *(struct lane *)arg;

	free(arg);
	lane_perform(lane.launch, lane.number);
	launch_leave(lane.launch);
	return NULL;
}

static void lane_start(struct launch *launch, unsigned number)
{
	struct lane *lane = zeroed(sizeof *lane);

	*lane = (struct lane){launch, number};
	fake_thread_start(lane_run, lane);
}

static void wait_for_lanes(struct launch *launch)
{
	for (;;) {
		uint32_t seen = fake_get(&launch->bell.rung);

		atomic_signal_fence(memory_order_seq_cst);
		if (!atomic_load_explicit(&launch->lanes, memory_order_acquire))
			return;
		fake_listen(&launch->bell, seen);
	}
}

static void exec_leave(struct fake_exec *exec)
{
	if (atomic_fetch_sub_explicit(&exec->users, 1, memory_order_acq_rel) > 1)
		return;
	fake_nodes_free(fake_get(&exec->nodes));
	fake_set(&exec->object.state, FAKE_GONE);
}

void fake_exec_run(struct fake_exec *exec, const struct fake_place *place)
{
	const struct fake_nodes *nodes = fake_get(&exec->nodes);
	unsigned lanes = nodes->lanes ? nodes->lanes : 1;
	struct launch *launch = zeroed(sizeof *launch);

	launch->nodes = nodes;
	launch->place = place;
	launch->done = zeroed(nodes->count * sizeof *launch->done);
	fake_set(&launch->lanes, lanes);
	fake_set(&launch->users, lanes);
	for (unsigned i = 1; i < lanes; i++)
		lane_start(launch, i);
	lane_perform(launch, 0);
	wait_for_lanes(launch);
	launch_leave(launch);
	exec_leave(exec);
}

/* --- the calls --- */

cudaGraph_t fake_graph_new(struct fake_nodes *nodes)
{
	struct fake_graph *graph = fake_object_new(FAKE_GRAPH);

	if (!graph) {
		fake_nodes_free(nodes);
		return NULL;
	}
	fake_set(&graph->nodes, nodes);
	return fake_handle_of(FAKE_GRAPH, graph);
}

static cudaError_t graph_destroy(cudaGraph_t handle)
{
	struct fake_graph *graph = fake_object_of(FAKE_GRAPH, handle);

	if (!graph)
		return cudaErrorInvalidResourceHandle;
	fake_nodes_free(fake_get(&graph->nodes));
	fake_object_end(&graph->object, FAKE_GONE);
	return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t handle)
{
	cudaError_t error = fake_begin(FAKE_ENDS);

	return fake_end(error ? error : graph_destroy(handle));
}

static cudaError_t get_nodes(cudaGraph_t handle, cudaGraphNode_t *out, size_t *count)
{
	struct fake_graph *graph = fake_object_of(FAKE_GRAPH, handle);
	const struct fake_nodes *nodes = graph ? fake_get(&graph->nodes) : NULL;

	if (!graph)
		return cudaErrorInvalidResourceHandle;
	for (size_t i = 0; out && i < nodes->count && i < *count; i++)
		out[i] = (cudaGraphNode_t)nodes->items[i];
	if (!out || *count > nodes->count)
		*count = nodes->count;
	return cudaSuccess;
}

cudaError_t cudaGraphGetNodes(cudaGraph_t handle, cudaGraphNode_t *out, size_t *count)
{
	cudaError_t error = fake_begin(FAKE_PLAIN);

	return fake_end(error ? error : get_nodes(handle, out, count));
}

static cudaError_t instantiate(cudaGraphExec_t *out, cudaGraph_t handle)
{
	struct fake_graph *graph = fake_object_of(FAKE_GRAPH, handle);
	struct fake_exec *exec = graph ? fake_object_new(FAKE_EXEC) : NULL;

	if (!exec)
		return graph ? cudaErrorMemoryAllocation : cudaErrorInvalidResourceHandle;
	fake_set(&exec->nodes, nodes_copy(fake_get(&graph->nodes)));
	fake_set(&exec->users, 1);
	fake_set(&exec->stream, NULL);
	*out = fake_handle_of(FAKE_EXEC, exec);
	return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *out, cudaGraph_t handle, unsigned long long flags)
{
	cudaError_t error = fake_begin(FAKE_PLAIN);

	(void)flags;
	return fake_end(error ? error : instantiate(out, handle));
}

/* Launches that are not complete go on. */
static cudaError_t exec_destroy(cudaGraphExec_t handle)
{
	struct fake_exec *exec = fake_object_of(FAKE_EXEC, handle);

	if (!exec)
		return cudaErrorInvalidResourceHandle;
	fake_object_end(&exec->object, FAKE_LEAVING);
	exec_leave(exec);
	return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t handle)
{
	cudaError_t error = fake_begin(FAKE_ENDS);

	return fake_end(error ? error : exec_destroy(handle));
}

static cudaError_t launch(cudaGraphExec_t handle, struct fake_stream *stream)
{
	struct fake_exec *exec = fake_object_of(FAKE_EXEC, handle);
	struct fake_operation *operation;
	cudaError_t error;

	if (!exec || !stream)
		return cudaErrorInvalidResourceHandle;
	if (fake_stream_captured(stream)) {
		fake_problem("the fake has no graphs in graphs");
		return cudaErrorNotSupported;
	}
	operation = fake_operation_new(FAKE_LAUNCH);
	operation->exec = exec;
	if (fake_get(&exec->stream))
		operation->points[operation->points_count++] =
			(struct fake_point){fake_get(&exec->stream), fake_get(&exec->number)};
	fake_add(&exec->users, 1);
	error = fake_enqueue(stream, operation);
	if (error) {
		exec_leave(exec);
		return error;
	}
	fake_set(&exec->number, fake_stream_end(stream).number);
	fake_set(&exec->stream, stream);
	return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t handle, cudaStream_t stream)
{
	cudaError_t error = fake_begin(FAKE_PLAIN);

	return fake_end(error ? error : launch(handle, fake_stream_of(stream)));
}

/* --- the parameters of nodes: a node is asked about while its graph lives --- */

static const struct fake_operation *operation_of(cudaGraphNode_t node)
{
	return ((const struct fake_node *)node)->operation;
}

cudaError_t cudaGraphNodeGetType(cudaGraphNode_t node, enum cudaGraphNodeType *type)
{
	cudaError_t error = fake_begin(FAKE_PLAIN);

	if (error)
		return fake_end(error);
	switch (operation_of(node)->work) {
	case FAKE_KERNEL:
		*type = cudaGraphNodeTypeKernel;
		break;
	case FAKE_COPY:
		*type = cudaGraphNodeTypeMemcpy;
		break;
	case FAKE_FILL:
		*type = cudaGraphNodeTypeMemset;
		break;
	case FAKE_CALL:
		*type = cudaGraphNodeTypeHost;
		break;
	default:
		*type = cudaGraphNodeTypeEmpty;
		break;
	}
	return fake_end(cudaSuccess);
}

cudaError_t cudaGraphMemcpyNodeGetParams(cudaGraphNode_t node, struct cudaMemcpy3DParms *out)
{
	cudaError_t error = fake_begin(FAKE_PLAIN);
	const struct fake_copy *copy = &operation_of(node)->copy;

	if (!error && operation_of(node)->work != FAKE_COPY)
		error = cudaErrorInvalidValue;
	if (error)
		return fake_end(error);
	memset(out, 0, sizeof *out);
	out->dstPtr = (struct cudaPitchedPtr){copy->to, copy->to_stride, copy->bytes, copy->rows};
	out->srcPtr = (struct cudaPitchedPtr){(void *)(uintptr_t)copy->from, copy->from_stride, copy->bytes,
					      copy->rows};
	out->extent = (struct cudaExtent){copy->bytes, copy->rows, 1};
	return fake_end(cudaSuccess);
}

cudaError_t cudaGraphMemsetNodeGetParams(cudaGraphNode_t node, struct cudaMemsetParams *out)
{
	cudaError_t error = fake_begin(FAKE_PLAIN);
	const struct fake_fill *fill = &operation_of(node)->fill;

	if (!error && operation_of(node)->work != FAKE_FILL)
		error = cudaErrorInvalidValue;
	if (error)
		return fake_end(error);
	*out = (struct cudaMemsetParams){.dst = fill->to,
					 .elementSize = 1,
					 .height = 1,
					 .value = (unsigned)fill->value,
					 .width = fill->bytes};
	return fake_end(cudaSuccess);
}
