/*
 * Captures and graphs of CUDA. A capture is in mode THREAD_LOCAL and so is its thread, which otherwise is
 * RELAXED: calls of the user that a capture cannot contain (allocations, synchronizations) fail and
 * invalidate the capture, while other threads go on. weir's own calls on the thread are made in RELAXED mode
 * (cuda.c).
 *
 * Streams are ordered by one event of the capture; each wait stands for its latest record.
 */
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "streams/cuda/cuda.h"

struct capture {
	cudaStream_t stream;
	cudaEvent_t event;
	int device;
	struct wr_cuda_mode before;
};

struct graph {
	cudaGraph_t graph; /* kept to be compared */
	cudaGraphExec_t exec;
	size_t items;
};

/* --- capturing --- */

static weir_status capture_start(struct wr_cuda *cuda, struct capture *capture)
{
	weir_status status =
		wr_cuda_check(cuda, cudaEventCreateWithFlags(&capture->event, cudaEventDisableTiming),
			      "cudaEventCreateWithFlags");

	if (status)
		return status;
	status =
		wr_cuda_check(cuda, cudaStreamBeginCapture(capture->stream, cudaStreamCaptureModeThreadLocal),
			      "cudaStreamBeginCapture");
	if (status && !wr_cuda_lost(cuda))
		cudaEventDestroy(capture->event);
	return status;
}

weir_status wr_cuda_capture_begin(void *self, int device, void *stream, void **out)
{
	struct capture *capture = wr_alloc(1, sizeof *capture);
	struct wr_cuda_scope scope;
	weir_status status;

	if (!capture)
		return WEIR_E_NOMEM;
	capture->stream = stream;
	capture->device = device;
	scope = wr_cuda_enter(self, device);
	status = capture_start(self, capture);
	wr_cuda_leave(scope);
	if (status) {
		wr_free(capture);
		return status;
	}
	capture->before = wr_cuda_begin_capture_mode();
	*out = capture;
	return WEIR_OK;
}

weir_status wr_cuda_capture_order(void *self, void *capture, void *before, void *after)
{
	const struct capture *own = capture;
	struct wr_cuda_scope scope = wr_cuda_enter(self, own->device);
	weir_status status = wr_cuda_check(self, cudaEventRecord(own->event, before), "cudaEventRecord");

	if (!status)
		status =
			wr_cuda_check(self, cudaStreamWaitEvent(after, own->event, 0), "cudaStreamWaitEvent");
	wr_cuda_leave(scope);
	return status;
}

static weir_status graph_make(struct wr_cuda *cuda, cudaGraph_t native, struct graph **out)
{
	struct graph *graph = wr_alloc(1, sizeof *graph);
	weir_status status;

	if (!graph)
		return WEIR_E_NOMEM;
	graph->graph = native;
	status = wr_cuda_check(cuda, cudaGraphGetNodes(native, NULL, &graph->items), "cudaGraphGetNodes");
	if (!status && graph->items)
		status = wr_cuda_check(cuda, cudaGraphInstantiate(&graph->exec, native, 0),
				       "cudaGraphInstantiate");
	if (status || !graph->items) {
		wr_free(graph);
		graph = NULL;
	}
	*out = graph;
	return status;
}

/* The native graph of a capture that is kept belongs to *out. */
static weir_status capture_finish(struct wr_cuda *cuda, struct capture *capture, struct graph **out)
{
	cudaGraph_t native = NULL;
	struct graph *graph = NULL;
	weir_status status;

	if (wr_cuda_lost(cuda))
		return wr_fail(WEIR_E_DEVICE, "CUDA: the device was lost in a capture");
	status = wr_cuda_check(cuda, cudaStreamEndCapture(capture->stream, &native), "cudaStreamEndCapture");
	if (!status && out && native)
		status = graph_make(cuda, native, &graph);
	if (wr_cuda_lost(cuda))
		return status;
	if (native && !graph)
		cudaGraphDestroy(native);
	cudaEventDestroy(capture->event);
	if (!status && out)
		*out = graph;
	return status;
}

weir_status wr_cuda_capture_end(void *self, void *capture, void **out)
{
	struct capture *own = capture;
	struct wr_cuda_scope scope;
	weir_status status;

	wr_cuda_end_capture_mode(own->before);
	scope = wr_cuda_enter(self, own->device);
	status = capture_finish(self, own, (struct graph **)out);
	wr_cuda_leave(scope);
	wr_free(own);
	return status;
}

/* --- graphs --- */

size_t wr_cuda_graph_items(const void *graph)
{
	return ((const struct graph *)graph)->items;
}

weir_status wr_cuda_graph_launch(void *self, int device, void *stream, void *graph)
{
	struct wr_cuda_scope scope = wr_cuda_enter(self, device);
	weir_status status = wr_cuda_check(self, cudaGraphLaunch(((struct graph *)graph)->exec, stream),
					   "cudaGraphLaunch");

	wr_cuda_leave(scope);
	return status;
}

void wr_cuda_graph_destroy(void *self, void *graph)
{
	struct graph *own = graph;

	if (!wr_cuda_lost(self)) {
		struct wr_cuda_scope scope = wr_cuda_enter(self, -1);
		cudaGraphExecDestroy(own->exec);
		cudaGraphDestroy(own->graph);
		wr_cuda_leave(scope);
	}
	wr_free(own);
}

/* --- comparing --- */

struct comparison {
	const struct wr_cuda_driver *driver;
	char *what;
	size_t room, node;
};

static bool differs(const struct comparison *self, const char *part)
{
	snprintf(self->what, self->room, "node %zu: %s", self->node, part);
	return true;
}

/* Sizes of a kernel's parameters are known from CUDA 12.4 on; without them addresses are not compared. */
static bool parameter_size(const struct wr_cuda_driver *driver, const CUDA_KERNEL_NODE_PARAMS_v2 *kernel,
			   size_t index, size_t *size)
{
	size_t offset;

	if (kernel->func)
		return driver->function_parameter &&
		       !driver->function_parameter(kernel->func, index, &offset, size);
	return driver->kernel_parameter && !driver->kernel_parameter(kernel->kern, index, &offset, size);
}

static const char *kernel_name(const struct wr_cuda_driver *driver, const CUDA_KERNEL_NODE_PARAMS_v2 *kernel)
{
	const char *name = NULL;

	if (kernel->func && driver->function_name && !driver->function_name(&name, kernel->func) && name)
		return name;
	if (kernel->kern && driver->kernel_name && !driver->kernel_name(&name, kernel->kern) && name)
		return name;
	return "?";
}

/* The first byte that differs; `size` if none does. */
static size_t first_difference(const void *one, const void *two, size_t size)
{
	const unsigned char *bytes = one, *others = two;
	size_t i = 0;

	while (i < size && bytes[i] == others[i])
		i++;
	return i;
}

static bool kernel_parameters_differ(const struct comparison *self, const CUDA_KERNEL_NODE_PARAMS_v2 *one,
				     const CUDA_KERNEL_NODE_PARAMS_v2 *two)
{
	size_t size;

	for (size_t i = 0;
	     one->kernelParams && two->kernelParams && parameter_size(self->driver, one, i, &size); i++) {
		const unsigned char *bytes = one->kernelParams[i], *others = two->kernelParams[i];
		size_t at = first_difference(bytes, others, size);

		if (at == size)
			continue;
		snprintf(self->what, self->room,
			 "node %zu: parameter %zu of kernel '%s' differs: byte %zu of %zu is 0x%02x, then "
			 "0x%02x",
			 self->node, i, kernel_name(self->driver, one), at, size, bytes[at], others[at]);
		return true;
	}
	return false;
}

static bool kernels_differ(const struct comparison *self, cudaGraphNode_t node, cudaGraphNode_t other)
{
	CUDA_KERNEL_NODE_PARAMS_v2 one = {0}, two = {0};

	if (!self->driver->kernel_node || self->driver->kernel_node((CUgraphNode)node, &one) ||
	    self->driver->kernel_node((CUgraphNode)other, &two))
		return false;
	if (one.func != two.func || one.kern != two.kern)
		return differs(self, "another kernel");
	if (one.gridDimX != two.gridDimX || one.gridDimY != two.gridDimY || one.gridDimZ != two.gridDimZ ||
	    one.blockDimX != two.blockDimX || one.blockDimY != two.blockDimY ||
	    one.blockDimZ != two.blockDimZ || one.sharedMemBytes != two.sharedMemBytes)
		return differs(self, "the size of the grid, a block or shared memory differs");
	return kernel_parameters_differ(self, &one, &two);
}

static bool same_pointer(struct cudaPitchedPtr one, struct cudaPitchedPtr two)
{
	return one.ptr == two.ptr && one.pitch == two.pitch;
}

static bool copies_differ(const struct comparison *self, cudaGraphNode_t node, cudaGraphNode_t other)
{
	struct cudaMemcpy3DParms one = {0}, two = {0};

	if (cudaGraphMemcpyNodeGetParams(node, &one) || cudaGraphMemcpyNodeGetParams(other, &two))
		return false;
	if (!same_pointer(one.dstPtr, two.dstPtr) || one.dstArray != two.dstArray)
		return differs(self, "the destination of the copy differs");
	if (!same_pointer(one.srcPtr, two.srcPtr) || one.srcArray != two.srcArray)
		return differs(self, "the source of the copy differs");
	if (memcmp(&one.extent, &two.extent, sizeof one.extent) ||
	    memcmp(&one.srcPos, &two.srcPos, sizeof one.srcPos) ||
	    memcmp(&one.dstPos, &two.dstPos, sizeof one.dstPos))
		return differs(self, "the size of the copy differs");
	return false;
}

static bool fills_differ(const struct comparison *self, cudaGraphNode_t node, cudaGraphNode_t other)
{
	struct cudaMemsetParams one = {0}, two = {0};

	if (cudaGraphMemsetNodeGetParams(node, &one) || cudaGraphMemsetNodeGetParams(other, &two))
		return false;
	if (one.dst != two.dst)
		return differs(self, "the destination of the memset differs");
	if (one.value != two.value || one.width != two.width || one.height != two.height ||
	    one.elementSize != two.elementSize || one.pitch != two.pitch)
		return differs(self, "the value or size of the memset differs");
	return false;
}

static bool nodes_differ(const struct comparison *self, cudaGraphNode_t node, cudaGraphNode_t other)
{
	enum cudaGraphNodeType type, type_of_other;

	if (cudaGraphNodeGetType(node, &type) || cudaGraphNodeGetType(other, &type_of_other))
		return false;
	if (type != type_of_other)
		return differs(self, "another type of node");
	if (type == cudaGraphNodeTypeKernel)
		return kernels_differ(self, node, other);
	if (type == cudaGraphNodeTypeMemcpy)
		return copies_differ(self, node, other);
	return type == cudaGraphNodeTypeMemset && fills_differ(self, node, other);
}

static bool all_nodes_differ(struct comparison *self, const struct graph *graph, const struct graph *other)
{
	cudaGraphNode_t *nodes = wr_alloc(2 * graph->items, sizeof(*nodes));
	size_t count = graph->items, count_of_other = graph->items;
	bool found = false;

	if (nodes && !cudaGraphGetNodes(graph->graph, nodes, &count) &&
	    !cudaGraphGetNodes(other->graph, nodes + graph->items, &count_of_other))
		for (; self->node < count && !found; self->node++)
			found = nodes_differ(self, nodes[self->node], nodes[graph->items + self->node]);
	wr_free(nodes);
	return found;
}

/* What cannot be compared counts as the same. */
bool wr_cuda_graph_differs(void *self, const void *graph, const void *other, char *what, size_t room)
{
	struct wr_cuda *cuda = self;
	const struct graph *one = graph, *two = other;
	struct comparison comparison = {.driver = &cuda->driver, .what = what, .room = room};
	struct wr_cuda_scope scope;
	bool found;

	if (one->items != two->items) {
		snprintf(what, room, "%zu nodes, then %zu", one->items, two->items);
		return true;
	}
	scope = wr_cuda_enter(cuda, -1);
	found = all_nodes_differ(&comparison, one, two);
	cudaGetLastError();
	wr_cuda_leave(scope);
	return found;
}
