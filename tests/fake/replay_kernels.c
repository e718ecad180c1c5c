/* The kernels of tests/cuda/replay.cu for the fake, and CUDA's calls that a capture refuses. */
#include <cuda_runtime_api.h>
#include <stdlib.h>

#include "fake.h"
#include "tests/cuda/replay.h"

static int add(void *const *parameters, const struct fake_place *place)
{
	const struct replay_add *work = parameters[0];

	(void)place;
	if (work->faults_at && work->from && work->from[0] == work->faults_at)
		return cudaErrorIllegalAddress;
	for (int64_t i = 0; i < work->count; i++)
		work->to[i] = (work->from ? work->from[i] : 0) + work->plus;
	return 0;
}

static int nothing(void *const *parameters, const struct fake_place *place)
{
	(void)parameters, (void)place;
	return 0;
}

static const struct fake_kernel add_kernel = {"add", add, {sizeof(struct replay_add)}};
static const struct fake_kernel nothing_kernel = {"nothing", nothing, {0}};

int replay_add_cuda(void *native, const void *arguments)
{
	return fake_launch(native, &add_kernel, arguments);
}

int replay_nothing_cuda(void *native, const void *arguments)
{
	return fake_launch(native, &nothing_kernel, arguments);
}

int replay_allocate(void)
{
	void *memory = NULL;
	int error = cudaMalloc(&memory, 1 << 20);

	if (memory)
		cudaFree(memory);
	cudaGetLastError();
	return error;
}

int replay_synchronize(void *native)
{
	int error = cudaStreamSynchronize(native);

	cudaGetLastError();
	return error;
}

int replay_capture_begin(void *native)
{
	return cudaStreamBeginCapture(native, cudaStreamCaptureModeThreadLocal);
}

int replay_capture_end(void *native)
{
	cudaGraph_t graph = NULL;
	int error = cudaStreamEndCapture(native, &graph);

	if (graph)
		cudaGraphDestroy(graph);
	cudaGetLastError();
	return error;
}

/* What costs are measured on a GPU alone. */
void replay_memory(struct replay_memory *out)
{
	*out = (struct replay_memory){0, 0};
}

struct replay_hand *replay_hand_open(int kernels)
{
	(void)kernels;
	return NULL;
}

bool replay_hand_burst(struct replay_hand *hand)
{
	(void)hand;
	return false;
}

double replay_hand_close(struct replay_hand *hand)
{
	(void)hand;
	return 0;
}
