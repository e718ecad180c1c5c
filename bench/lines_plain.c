/*
 * Each thread sends the first frame of its lines (three kernels, or one CUDA graph of them, and a write of
 * the frame's number into the line's word), then polls their words and sends a line's next frame when the
 * one before has come back.
 */
#include "lines_plain.h"

#include <cuda_runtime_api.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "program.h"

struct word { /* one cache line each */
	_Alignas(64) volatile uint32_t value;
};

static struct line {
	void *stream;
	cudaGraphExec_t graph;
	uint32_t sent; /* of this run; the line's thread only, as next: */
	uint32_t word; /* what its last write writes; goes on counting from run to run */
} all[LINES_MAX];
static struct word *words; /* pinned */

static void check(const char *what, int error)
{
	if (!error)
		return;
	fprintf(stderr, "lines: plain: %s: %s\n", what, ready_gpu_text(error));
	exit(1);
}

bool lines_plain_open(unsigned lines)
{
	struct ready_gpu gpu;
	void *memory;

	if (ready_gpu_open(&gpu) || !gpu.can_write)
		return false;
	check("pinned memory", ready_gpu_pinned(&memory, LINES_MAX * sizeof *words));
	words = memory;
	for (unsigned i = 0; i < lines; i++)
		check("a stream", ready_gpu_stream(&all[i].stream));
	return true;
}

static void enqueue(const struct line *line, const struct ready_work *work)
{
	for (int i = 0; i < LINES_STAGES; i++)
		check("a kernel", ready_gpu_launch(line->stream, work));
}

static void capture(struct line *line, const struct ready_work *work)
{
	cudaStream_t stream = line->stream;
	cudaGraph_t graph;

	check("a capture", cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
	enqueue(line, work);
	check("a capture", cudaStreamEndCapture(stream, &graph));
	check("a graph", cudaGraphInstantiate(&line->graph, graph, 0));
	check("a graph", cudaGraphDestroy(graph));
	check("a graph", cudaGraphLaunch(line->graph, stream)); /* the first brings it to the device */
	check("a graph", ready_gpu_wait(stream));
}

/* --- a thread's lines --- */

struct share {
	const struct lines_plain *how;
	unsigned from, to;
	pthread_t thread;
};

static void send(unsigned i, const struct lines_plain *how)
{
	struct line *line = &all[i];

	if (how->replays)
		check("a graph", cudaGraphLaunch(line->graph, line->stream));
	else
		enqueue(line, &how->work);
	line->sent++;
	check("a write", ready_gpu_write(line->stream, (uint32_t *)&words[i].value, ++line->word));
}

static void *serve(void *arg)
{
	const struct share *share = arg;
	unsigned under_way = share->to - share->from;

	check("the device", cudaSetDevice(0));
	for (unsigned i = share->from; i < share->to; i++)
		send(i, share->how);
	while (under_way) {
		under_way = 0;
		for (unsigned i = share->from; i < share->to; i++) {
			bool back = words[i].value == all[i].word;

			if (back && all[i].sent < share->how->frames)
				send(i, share->how);
			else if (back)
				continue;
			under_way++;
		}
	}
	return NULL;
}

double lines_plain_run(const struct lines_plain *how)
{
	struct share shares[LINES_MAX];
	unsigned threads = how->threads < how->lines ? how->threads : how->lines;
	int64_t begin;

	for (unsigned i = 0; i < how->lines; i++) {
		all[i].sent = 0;
		if (how->replays)
			capture(&all[i], &how->work);
	}
	begin = now();
	for (unsigned i = 0; i < threads; i++) {
		shares[i] = (struct share){
			.how = how, .from = how->lines * i / threads, .to = how->lines * (i + 1) / threads};
		if (i)
			check("a thread", pthread_create(&shares[i].thread, NULL, serve, &shares[i]));
	}
	serve(&shares[0]);
	for (unsigned i = 1; i < threads; i++)
		pthread_join(shares[i].thread, NULL);
	begin = now() - begin;
	for (unsigned i = 0; how->replays && i < how->lines; i++)
		check("a graph", cudaGraphExecDestroy(all[i].graph));
	return (double)how->lines * how->frames * 1e9 / (double)begin;
}
