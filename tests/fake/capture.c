/*
 * Captures. What a capture has is touched by the threads that capture alone, as in CUDA, and therefore plain;
 * what other threads ask about is in the table of captures.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "inside.h"

/* What later work has to follow: nodes of the capture of this number. */
struct fake_frontier {
	uint64_t capture;
	size_t count, *nodes;
};

struct lane {
	struct fake_stream *stream;
	struct fake_frontier frontier;
};

struct inside {
	struct fake_nodes *nodes;
	struct lane *lanes;
	size_t count;
};

struct fake_capture {
	_Atomic(struct fake_stream *) origin; /* NULL: no capture */
	_Atomic uint64_t number;
	_Atomic int mode;
	_Atomic pid_t thread;
	_Atomic bool invalid, blocking;
	_Atomic(struct inside *) inside;
};

enum { CAPTURES = 64 };
static struct fake_capture captures[CAPTURES];
static _Atomic uint64_t numbers;
static _Thread_local enum cudaStreamCaptureMode thread_mode = cudaStreamCaptureModeGlobal;

static struct inside *inside_of(struct fake_capture *capture)
{
	return fake_get(&capture->inside);
}

/* --- what others may do meanwhile --- */

bool fake_capture_prohibits(void)
{
	bool prohibited = false;

	if (thread_mode == cudaStreamCaptureModeRelaxed)
		return false;
	for (int i = 0; i < CAPTURES; i++) {
		int mode = fake_get(&captures[i].mode);
		bool own = fake_get(&captures[i].thread) == gettid();

		if (!fake_get(&captures[i].origin) || mode == cudaStreamCaptureModeRelaxed ||
		    !(own ||
		      (thread_mode == cudaStreamCaptureModeGlobal && mode == cudaStreamCaptureModeGlobal)))
			continue;
		fake_set(&captures[i].invalid, true);
		prohibited = true;
	}
	return prohibited;
}

bool fake_stream_captured(struct fake_stream *stream)
{
	return fake_get(&stream->capture);
}

void fake_capture_spoil(struct fake_stream *stream)
{
	fake_set(&fake_get(&stream->capture)->invalid, true);
}

bool fake_capture_implicit(struct fake_stream *stream)
{
	bool any = false;

	for (int i = 0; i < CAPTURES && fake_get(&stream->legacy); i++)
		any |= fake_get(&captures[i].origin) && fake_get(&captures[i].blocking);
	return any;
}

cudaError_t cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode *mode)
{
	cudaError_t error = fake_begin(FAKE_NO_CONTEXT);
	enum cudaStreamCaptureMode before = thread_mode;

	if (error)
		return fake_end(error);
	thread_mode = *mode;
	*mode = before;
	return fake_end(cudaSuccess);
}

/* --- frontiers --- */

static void *more(void *memory, size_t bytes)
{
	void *grown = realloc(memory, bytes);

	if (!grown)
		abort();
	return grown;
}

static void frontier_add(struct fake_frontier *frontier, size_t node)
{
	for (size_t i = 0; i < frontier->count; i++)
		if (frontier->nodes[i] == node)
			return;
	frontier->nodes = more(frontier->nodes, (frontier->count + 1) * sizeof *frontier->nodes);
	frontier->nodes[frontier->count++] = node;
}

static struct lane *lane_of(struct inside *inside, struct fake_stream *stream)
{
	for (size_t i = 0; i < inside->count; i++)
		if (inside->lanes[i].stream == stream)
			return &inside->lanes[i];
	inside->lanes = more(inside->lanes, (inside->count + 1) * sizeof *inside->lanes);
	inside->lanes[inside->count] = (struct lane){.stream = stream};
	return &inside->lanes[inside->count++];
}

/* --- what is captured --- */

static cudaError_t validity(struct fake_stream *stream)
{
	return fake_get(&fake_get(&stream->capture)->invalid) ? cudaErrorStreamCaptureInvalidated
							      : cudaSuccess;
}

cudaError_t fake_capture_add(struct fake_stream *stream, struct fake_operation *operation)
{
	cudaError_t error = validity(stream);
	struct inside *inside = inside_of(fake_get(&stream->capture));
	struct lane *lane;
	struct fake_node *node;

	if (error) {
		fake_operation_free(operation);
		return error;
	}
	lane = lane_of(inside, stream);
	node = fake_nodes_add(inside->nodes, operation, (unsigned)(lane - inside->lanes));
	inside->nodes->lanes = (unsigned)inside->count;
	node->count = lane->frontier.count;
	node->before = lane->frontier.nodes;
	lane->frontier.count = 0;
	lane->frontier.nodes = NULL;
	frontier_add(&lane->frontier, inside->nodes->count - 1);
	return cudaSuccess;
}

void fake_event_forget(struct fake_event *event)
{
	struct fake_frontier *frontier = fake_get(&event->frontier);

	if (!frontier)
		return;
	fake_set(&event->frontier, NULL);
	free(frontier->nodes);
	free(frontier);
}

cudaError_t fake_capture_record(struct fake_stream *stream, struct fake_event *event)
{
	struct fake_capture *capture = fake_get(&stream->capture);
	struct lane *lane = lane_of(inside_of(capture), stream);
	struct fake_frontier *frontier;
	cudaError_t error = validity(stream);

	if (error)
		return error;
	fake_event_forget(event);
	frontier = more(NULL, sizeof *frontier);
	*frontier = (struct fake_frontier){.capture = fake_get(&capture->number)};
	for (size_t i = 0; i < lane->frontier.count; i++)
		frontier_add(frontier, lane->frontier.nodes[i]);
	fake_set(&event->frontier, frontier);
	return cudaSuccess;
}

static struct fake_capture *capture_of(uint64_t number)
{
	for (int i = 0; i < CAPTURES; i++)
		if (fake_get(&captures[i].origin) && fake_get(&captures[i].number) == number)
			return &captures[i];
	return NULL;
}

cudaError_t fake_capture_wait(struct fake_stream *stream, struct fake_event *event)
{
	struct fake_frontier *frontier = fake_get(&event->frontier);
	struct fake_capture *capture = frontier ? capture_of(frontier->capture) : NULL;
	struct lane *lane;

	if (!frontier || (fake_get(&stream->capture) && fake_get(&stream->capture) != capture)) {
		fake_capture_spoil(stream);
		return frontier ? cudaErrorStreamCaptureMerge : cudaErrorStreamCaptureIsolation;
	}
	if (!capture)
		return cudaErrorInvalidValue;
	if (fake_get(&capture->invalid))
		return cudaErrorStreamCaptureInvalidated;
	if (fake_get(&stream->legacy))
		return cudaErrorStreamCaptureImplicit;
	fake_set(&stream->capture, capture);
	lane = lane_of(inside_of(capture), stream);
	for (size_t i = 0; i < frontier->count; i++)
		frontier_add(&lane->frontier, frontier->nodes[i]);
	return cudaSuccess;
}

/* --- begin --- */

static struct fake_capture *take(struct fake_stream *stream)
{
	for (int i = 0; i < CAPTURES; i++) {
		struct fake_stream *none = NULL;

		if (atomic_compare_exchange_strong_explicit(&captures[i].origin, &none, stream,
							    memory_order_relaxed, memory_order_relaxed))
			return &captures[i];
	}
	fake_problem("more than %d captures at once", CAPTURES);
	return NULL;
}

static cudaError_t begin(struct fake_stream *stream, enum cudaStreamCaptureMode mode)
{
	struct fake_capture *capture;
	struct inside *inside;

	if (!stream)
		return cudaErrorInvalidResourceHandle;
	if (fake_get(&stream->legacy))
		return cudaErrorStreamCaptureUnsupported;
	if (fake_stream_captured(stream))
		return cudaErrorIllegalState;
	capture = take(stream);
	if (!capture)
		return cudaErrorMemoryAllocation;
	inside = more(NULL, sizeof *inside);
	*inside = (struct inside){.nodes = calloc(1, sizeof *inside->nodes)};
	fake_set(&capture->number, fake_add(&numbers, 1) + 1);
	fake_set(&capture->mode, (int)mode);
	fake_set(&capture->thread, gettid());
	fake_set(&capture->invalid, false);
	fake_set(&capture->blocking, fake_get(&stream->blocking));
	fake_set(&capture->inside, inside);
	lane_of(inside, stream);
	fake_set(&stream->capture, capture);
	return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t handle, enum cudaStreamCaptureMode mode)
{
	cudaError_t error = fake_begin(FAKE_PLAIN);

	return fake_end(error ? error : begin(fake_stream_of(handle), mode));
}

/* --- end --- */

static void mark_before(const struct fake_nodes *nodes, size_t node, bool *reached)
{
	if (reached[node])
		return;
	reached[node] = true;
	for (size_t i = 0; i < nodes->items[node]->count; i++)
		mark_before(nodes, nodes->items[node]->before[i], reached);
}

/* The origin has to be behind all that was captured. */
static bool joined(const struct inside *inside)
{
	bool *reached = calloc(inside->nodes->count + 1, sizeof *reached), all = true;

	for (size_t i = 0; i < inside->lanes[0].frontier.count; i++)
		mark_before(inside->nodes, inside->lanes[0].frontier.nodes[i], reached);
	for (size_t i = 0; i < inside->nodes->count; i++)
		all &= reached[i];
	free(reached);
	return all;
}

/* Gives its nodes, which the caller takes. */
static struct fake_nodes *finish(struct fake_capture *capture)
{
	struct inside *inside = inside_of(capture);
	struct fake_nodes *nodes = inside->nodes;

	for (size_t i = 0; i < inside->count; i++) {
		if (fake_get(&inside->lanes[i].stream->capture) ==
		    capture) /* or it was destroyed meanwhile */
			fake_set(&inside->lanes[i].stream->capture, NULL);
		free(inside->lanes[i].frontier.nodes);
	}
	free(inside->lanes);
	free(inside);
	fake_set(&capture->origin, NULL);
	return nodes;
}

/* As measured: the capture of an origin ends without a graph, another stream is not joined. */
void fake_capture_leave(struct fake_stream *stream)
{
	struct fake_capture *capture = fake_get(&stream->capture);

	if (capture && fake_get(&capture->origin) == stream)
		fake_nodes_free(finish(capture));
	fake_set(&stream->capture, NULL);
}

static cudaError_t end(struct fake_stream *stream, cudaGraph_t *out)
{
	struct fake_capture *capture = stream ? fake_get(&stream->capture) : NULL;
	struct fake_nodes *nodes;
	cudaError_t error = cudaSuccess;

	*out = NULL;
	if (!stream)
		return cudaErrorInvalidResourceHandle;
	if (!capture)
		return cudaErrorIllegalState;
	if (fake_get(&capture->origin) != stream)
		return cudaErrorStreamCaptureUnmatched;
	if (fake_get(&capture->mode) != cudaStreamCaptureModeRelaxed &&
	    fake_get(&capture->thread) != gettid())
		return cudaErrorStreamCaptureWrongThread;
	if (fake_get(&capture->invalid))
		error = cudaErrorStreamCaptureInvalidated;
	else if (!joined(inside_of(capture)))
		error = cudaErrorStreamCaptureUnjoined;
	nodes = finish(capture);
	if (!error)
		*out = fake_graph_new(nodes);
	else
		fake_nodes_free(nodes);
	return error || *out ? error : cudaErrorMemoryAllocation;
}

/* A call that is to fail ends the capture all the same. */
cudaError_t cudaStreamEndCapture(cudaStream_t handle, cudaGraph_t *out)
{
	cudaError_t error = fake_begin(FAKE_PLAIN);
	struct fake_stream *stream = error && fake_lost() ? NULL : fake_stream_of(handle);

	if (error && stream && fake_stream_captured(stream))
		fake_capture_spoil(stream);
	if (!error || stream) {
		cudaError_t ended = end(stream, out);

		error = error ? error : ended;
	}
	return fake_end(error);
}

cudaError_t cudaStreamIsCapturing(cudaStream_t handle, enum cudaStreamCaptureStatus *out)
{
	cudaError_t error = fake_begin(FAKE_PLAIN);
	struct fake_stream *stream = error ? NULL : fake_stream_of(handle);

	if (error || !stream)
		return fake_end(error ? error : cudaErrorInvalidResourceHandle);
	*out = cudaStreamCaptureStatusNone;
	if (fake_capture_implicit(stream))
		return fake_end(cudaErrorStreamCaptureImplicit);
	if (fake_stream_captured(stream))
		*out = validity(stream) ? cudaStreamCaptureStatusInvalidated : cudaStreamCaptureStatusActive;
	return fake_end(cudaSuccess);
}

/* As of most calls that ask about a stream: a capture does not allow it. */
cudaError_t cudaStreamGetFlags(cudaStream_t handle, unsigned *out)
{
	cudaError_t error = fake_begin(FAKE_PLAIN);
	struct fake_stream *stream = error ? NULL : fake_stream_of(handle);

	if (error || !stream)
		return fake_end(error ? error : cudaErrorInvalidResourceHandle);
	if (fake_stream_captured(stream)) {
		fake_capture_spoil(stream);
		return fake_end(cudaErrorStreamCaptureUnsupported);
	}
	*out = fake_get(&stream->blocking) || fake_get(&stream->legacy) ? cudaStreamDefault
									: cudaStreamNonBlocking;
	return fake_end(cudaSuccess);
}
