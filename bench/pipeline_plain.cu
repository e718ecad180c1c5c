/* The forms of bench/pipeline in plain CUDA; pipeline.h says what each is. */
#include <cuda_runtime.h>
#include <stdio.h>

#include "../examples/upscale/upscale.h"
#include "pipeline.h"

enum { AHEAD_MAX = 16 };

#define TRY(call)                                                                                            \
	do {                                                                                                 \
		cudaError_t error_ = (cudaError_t)(call);                                                    \
		if (error_)                                                                                  \
			return error_;                                                                       \
	} while (0)

static unsigned multiprocessors, shared_bytes; /* of the device; the most that a block may have */

const char *pipeline_text(int error)
{
	return cudaGetErrorString((cudaError_t)error);
}

/* --- compute --- */

/*
 * Works for a while on the whole device: its blocks ask for so much shared memory that each has a
 * multiprocessor for itself, so two frames cannot be computed at once.
 */
static __global__ void synthetic(int64_t ns, const uint32_t *from, struct pipeline_result *to)
{
	uint64_t begin, time;

	asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
	do
		asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(time));
	while (time - begin < (uint64_t)ns);
	if (blockIdx.x)
		return;
	to->frame = *from + 1;
	to->from = begin;
	to->to = time;
}

int pipeline_open(char *name, size_t room)
{
	struct cudaDeviceProp device;

	TRY(cudaSetDevice(0));
	TRY(cudaGetDeviceProperties(&device, 0));
	snprintf(name, room, "%s", device.name);
	multiprocessors = (unsigned)device.multiProcessorCount;
	shared_bytes = (unsigned)device.sharedMemPerBlockOptin;
	return cudaFuncSetAttribute(synthetic, cudaFuncAttributeMaxDynamicSharedMemorySize,
				    (int)shared_bytes);
}

static int upscale(cudaStream_t stream, const struct pipeline_work *work,
		   const struct pipeline_buffers *buffers)
{
	int8_t *one = (int8_t *)buffers->hidden, *two = one + work->hidden / 2;
	int8_t *frame = (int8_t *)buffers->device_input;
	struct layer first = {frame, one, work->height, work->width, 1};
	struct layer second = {one, two, work->height, work->width, 2};
	struct last_layer last = {two, frame, (uint8_t *)buffers->device_output, work->height, work->width};

	TRY(layer_on_cuda(stream, &first));
	TRY(layer_on_cuda(stream, &second));
	return last_layer_on_cuda(stream, &last);
}

int pipeline_compute(void *stream, const struct pipeline_work *work, const struct pipeline_buffers *buffers)
{
	if (work->height)
		return upscale((cudaStream_t)stream, work, buffers);
	synthetic<<<multiprocessors, 1, shared_bytes, (cudaStream_t)stream>>>(
		work->compute_ns, (const uint32_t *)buffers->device_input,
		(struct pipeline_result *)buffers->device_output);
	return cudaPeekAtLastError();
}

/* --- memory and steps --- */

static int create_buffers(const struct pipeline_work *work, struct pipeline_buffers *out)
{
	TRY(cudaMallocHost(&out->input, work->input));
	TRY(cudaMallocHost(&out->output, work->output));
	TRY(cudaMalloc(&out->device_input, work->input));
	TRY(cudaMalloc(&out->device_output, work->output));
	return cudaMalloc(&out->hidden, work->hidden ? work->hidden : 1);
}

static void free_buffers(struct pipeline_buffers *buffers)
{
	cudaFreeHost(buffers->input);
	cudaFreeHost(buffers->output);
	cudaFree(buffers->device_input);
	cudaFree(buffers->device_output);
	cudaFree(buffers->hidden);
}

static int upload(cudaStream_t stream, const struct pipeline_work *work,
		  const struct pipeline_buffers *buffers)
{
	return cudaMemcpyAsync(buffers->device_input, buffers->input, work->input, cudaMemcpyHostToDevice,
			       stream);
}

static int download(cudaStream_t stream, const struct pipeline_work *work,
		    const struct pipeline_buffers *buffers)
{
	return cudaMemcpyAsync(buffers->output, buffers->device_output, work->output, cudaMemcpyDeviceToHost,
			       stream);
}

int pipeline_calibrate(int64_t ns, bool to_host, size_t *out)
{
	const size_t bytes = (size_t)256 << 20;
	struct pipeline_work work = {};
	struct pipeline_buffers buffers = {};
	cudaStream_t stream;
	int64_t begin = 0;

	work.input = work.output = bytes;
	TRY(create_buffers(&work, &buffers));
	TRY(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	for (int i = 0; i < 3; i++) {
		begin = pipeline_now();
		TRY(to_host ? download(stream, &work, &buffers) : upload(stream, &work, &buffers));
		TRY(cudaStreamSynchronize(stream));
	}
	*out = (size_t)((double)bytes * (double)ns / (double)(pipeline_now() - begin)) & ~(size_t)255;
	cudaStreamDestroy(stream);
	free_buffers(&buffers);
	return 0;
}

enum { COPIES = 50 };

static int copy_at_once(const struct pipeline_work *work, const struct pipeline_buffers *buffers,
			const cudaStream_t streams[2], const cudaEvent_t events[4])
{
	for (int i = 0; i < 2; i++)
		TRY(cudaEventRecord(events[2 * i], streams[i]));
	for (int i = 0; i < COPIES; i++) {
		TRY(upload(streams[0], work, buffers));
		TRY(download(streams[1], work, buffers));
	}
	for (int i = 0; i < 2; i++)
		TRY(cudaEventRecord(events[2 * i + 1], streams[i]));
	return cudaDeviceSynchronize();
}

int pipeline_copies_at_once(const struct pipeline_work *work, int64_t out[2])
{
	struct pipeline_buffers buffers = {};
	cudaStream_t streams[2];
	cudaEvent_t events[4];

	TRY(create_buffers(work, &buffers));
	for (int i = 0; i < 2; i++)
		TRY(cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking));
	for (int i = 0; i < 4; i++)
		TRY(cudaEventCreate(&events[i]));
	TRY(copy_at_once(work, &buffers, streams, events));
	for (int i = 0; i < 2; i++) {
		float ms = 0;

		TRY(cudaEventElapsedTime(&ms, events[2 * i], events[2 * i + 1]));
		out[i] = (int64_t)(ms * 1e6 / COPIES);
		cudaStreamDestroy(streams[i]);
	}
	for (int i = 0; i < 4; i++)
		cudaEventDestroy(events[i]);
	free_buffers(&buffers);
	return 0;
}

/* --- one stream --- */

int pipeline_synchronous(const struct pipeline_work *work, struct pipeline_run *run)
{
	struct pipeline_buffers buffers;
	cudaStream_t stream;

	TRY(create_buffers(work, &buffers));
	TRY(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	for (int frame = 0; frame < run->frames; frame++) {
		pipeline_begin(run, frame, work, buffers.input);
		TRY(upload(stream, work, &buffers));
		TRY(cudaStreamSynchronize(stream));
		TRY(pipeline_compute(stream, work, &buffers));
		TRY(cudaStreamSynchronize(stream));
		TRY(download(stream, work, &buffers));
		TRY(cudaStreamSynchronize(stream));
		pipeline_end(run, frame, work, buffers.output);
	}
	cudaStreamDestroy(stream);
	free_buffers(&buffers);
	return 0;
}

/* --- three streams --- */

struct lane { /* one frame in flight */
	struct pipeline_buffers buffers;
	cudaEvent_t uploaded, computed, done;
	cudaStream_t stream; /* pipeline_graphs only, as the next */
	cudaGraphExec_t graph;
};

static int create_lane(const struct pipeline_work *work, struct lane *out)
{
	TRY(create_buffers(work, &out->buffers));
	TRY(cudaEventCreateWithFlags(&out->uploaded, cudaEventDisableTiming));
	TRY(cudaEventCreateWithFlags(&out->computed, cudaEventDisableTiming));
	TRY(cudaEventCreateWithFlags(&out->done, cudaEventDisableTiming));
	return cudaStreamCreateWithFlags(&out->stream, cudaStreamNonBlocking);
}

static void free_lane(struct lane *lane)
{
	free_buffers(&lane->buffers);
	cudaEventDestroy(lane->uploaded);
	cudaEventDestroy(lane->computed);
	cudaEventDestroy(lane->done);
	cudaStreamDestroy(lane->stream);
	if (lane->graph)
		cudaGraphExecDestroy(lane->graph);
}

static int enqueue_on_three(const struct pipeline_work *work, struct lane *lane,
			    const cudaStream_t streams[3])
{
	TRY(upload(streams[0], work, &lane->buffers));
	TRY(cudaEventRecord(lane->uploaded, streams[0]));
	TRY(cudaStreamWaitEvent(streams[1], lane->uploaded, 0));
	TRY(pipeline_compute(streams[1], work, &lane->buffers));
	TRY(cudaEventRecord(lane->computed, streams[1]));
	TRY(cudaStreamWaitEvent(streams[2], lane->computed, 0));
	TRY(download(streams[2], work, &lane->buffers));
	return cudaEventRecord(lane->done, streams[2]);
}

static int enqueue_graph(const struct pipeline_work *, struct lane *lane, const cudaStream_t *)
{
	TRY(cudaGraphLaunch(lane->graph, lane->stream));
	return cudaEventRecord(lane->done, lane->stream);
}

/* Frame i uses lane i % ahead, after the lane's last frame was seen complete. */
static int run_lanes(const struct pipeline_work *work, struct pipeline_run *run, struct lane *lanes,
		     const cudaStream_t *streams,
		     int (*enqueue)(const struct pipeline_work *, struct lane *, const cudaStream_t *))
{
	for (int frame = 0; frame < run->frames + run->ahead; frame++) {
		struct lane *lane = &lanes[frame % run->ahead];
		int before = frame - run->ahead;

		if (before >= 0) {
			TRY(cudaEventSynchronize(lane->done));
			pipeline_end(run, before, work, lane->buffers.output);
		}
		if (frame >= run->frames)
			continue;
		pipeline_begin(run, frame, work, lane->buffers.input);
		TRY(enqueue(work, lane, streams));
	}
	return 0;
}

int pipeline_three_streams(const struct pipeline_work *work, struct pipeline_run *run)
{
	struct lane lanes[AHEAD_MAX] = {};
	cudaStream_t streams[3];

	if (run->ahead > AHEAD_MAX)
		return cudaErrorInvalidValue;
	for (int i = 0; i < 3; i++)
		TRY(cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking));
	for (int i = 0; i < run->ahead; i++)
		TRY(create_lane(work, &lanes[i]));
	TRY(run_lanes(work, run, lanes, streams, enqueue_on_three));
	for (int i = 0; i < run->ahead; i++)
		free_lane(&lanes[i]);
	for (int i = 0; i < 3; i++)
		cudaStreamDestroy(streams[i]);
	return 0;
}

/* --- a stream, a set of buffers and a graph for each frame in flight --- */

static int capture(const struct pipeline_work *work, struct lane *lane)
{
	cudaGraph_t graph;

	TRY(pipeline_compute(lane->stream, work, &lane->buffers)); /* loads the kernels */
	TRY(cudaStreamSynchronize(lane->stream));
	TRY(cudaStreamBeginCapture(lane->stream, cudaStreamCaptureModeThreadLocal));
	TRY(upload(lane->stream, work, &lane->buffers));
	TRY(pipeline_compute(lane->stream, work, &lane->buffers));
	TRY(download(lane->stream, work, &lane->buffers));
	TRY(cudaStreamEndCapture(lane->stream, &graph));
	TRY(cudaGraphInstantiate(&lane->graph, graph, 0));
	return cudaGraphDestroy(graph);
}

int pipeline_graphs(const struct pipeline_work *work, struct pipeline_run *run)
{
	struct lane lanes[AHEAD_MAX] = {};

	if (run->ahead > AHEAD_MAX)
		return cudaErrorInvalidValue;
	for (int i = 0; i < run->ahead; i++) {
		TRY(create_lane(work, &lanes[i]));
		TRY(capture(work, &lanes[i]));
	}
	TRY(run_lanes(work, run, lanes, NULL, enqueue_graph));
	for (int i = 0; i < run->ahead; i++)
		free_lane(&lanes[i]);
	return 0;
}
