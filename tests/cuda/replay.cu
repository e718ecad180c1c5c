/* The kernels of replay.c, CUDA's calls that a capture refuses, and a graph launched by hand. */
#include "replay.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static __global__ void add(struct replay_add work)
{
	int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;

	if (i >= work.count)
		return;
	if (work.faults_at && work.from && work.from[0] == work.faults_at)
		*(volatile int64_t *)nullptr = 1;
	work.to[i] = (work.from ? work.from[i] : 0) + work.plus;
}

static __global__ void nothing(void)
{
}

extern "C" int replay_add_cuda(void *native, const void *arguments)
{
	const struct replay_add *work = (const struct replay_add *)arguments;

	add<<<(unsigned)((work->count + 255) / 256), 256, 0, (cudaStream_t)native>>>(*work);
	return cudaGetLastError();
}

extern "C" int replay_nothing_cuda(void *native, const void *arguments)
{
	(void)arguments;
	nothing<<<1, 1, 0, (cudaStream_t)native>>>();
	return cudaGetLastError();
}

extern "C" int replay_allocate(void)
{
	void *memory = NULL;
	int error = cudaMalloc(&memory, 1 << 20);

	if (memory)
		cudaFree(memory);
	cudaGetLastError(); /* or the next launch would return it */
	return error;
}

extern "C" int replay_synchronize(void *native)
{
	int error = cudaStreamSynchronize((cudaStream_t)native);

	cudaGetLastError();
	return error;
}

extern "C" int replay_capture_begin(void *native)
{
	return cudaStreamBeginCapture((cudaStream_t)native, cudaStreamCaptureModeThreadLocal);
}

extern "C" int replay_capture_end(void *native)
{
	cudaGraph_t graph = NULL;
	int error = cudaStreamEndCapture((cudaStream_t)native, &graph);

	if (graph)
		cudaGraphDestroy(graph);
	cudaGetLastError();
	return error;
}

extern "C" void replay_memory(struct replay_memory *out)
{
	FILE *file = fopen("/proc/self/statm", "r");
	size_t all = 0, resident = 0, free = 0, total = 0;

	if (file && fscanf(file, "%zu %zu", &all, &resident) != 2)
		resident = 0;
	if (file)
		fclose(file);
	cudaMemGetInfo(&free, &total);
	out->host = resident * (size_t)sysconf(_SC_PAGESIZE);
	out->device = total - free;
}

/* --- by hand --- */

enum { BURST = 32, BURSTS = 400 };

static int64_t now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

static int compare(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

static cudaError_t make_graph(cudaStream_t stream, int kernels, cudaGraphExec_t *exec)
{
	cudaGraph_t graph = NULL;
	cudaError_t error = cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);

	for (int i = 0; !error && i < kernels; i++)
		error = (cudaError_t)replay_nothing_cuda(stream, NULL);
	if (!error)
		error = cudaStreamEndCapture(stream, &graph);
	if (!error)
		error = cudaGraphInstantiate(exec, graph, 0);
	if (graph)
		cudaGraphDestroy(graph);
	return error;
}

struct replay_hand {
	cudaStream_t stream;
	cudaEvent_t event;
	cudaGraphExec_t exec;
	int64_t spent[BURST * BURSTS];
	int count;
};

/* What a failed call leaves is freed with the process, which then ends. */
extern "C" struct replay_hand *replay_hand_open(int kernels)
{
	struct replay_hand *hand = (struct replay_hand *)calloc(1, sizeof *hand);
	cudaError_t error = hand ? cudaStreamCreateWithFlags(&hand->stream, cudaStreamNonBlocking)
				 : cudaErrorMemoryAllocation;

	if (!error)
		error = cudaEventCreateWithFlags(&hand->event, cudaEventDisableTiming);
	if (!error)
		error = (cudaError_t)replay_nothing_cuda(hand->stream, NULL);
	if (!error)
		error = make_graph(hand->stream, kernels, &hand->exec);
	if (!error)
		error = cudaStreamSynchronize(hand->stream);
	if (!error)
		return hand;
	free(hand);
	return NULL;
}

extern "C" bool replay_hand_burst(struct replay_hand *hand)
{
	cudaError_t error = cudaSuccess;

	for (int i = 0; !error && i < BURST && hand->count < BURST * BURSTS; i++) {
		int64_t begin = now();
		error = cudaGraphLaunch(hand->exec, hand->stream);
		if (!error)
			error = cudaEventRecord(hand->event, hand->stream);
		hand->spent[hand->count++] = now() - begin;
	}
	return !error && !cudaStreamSynchronize(hand->stream);
}

extern "C" double replay_hand_close(struct replay_hand *hand)
{
	double median;

	qsort(hand->spent, (size_t)hand->count, sizeof *hand->spent, compare);
	median = (double)hand->spent[hand->count / 2];
	cudaGraphExecDestroy(hand->exec);
	cudaEventDestroy(hand->event);
	cudaStreamDestroy(hand->stream);
	free(hand);
	return median;
}
