/*
 * What a program does with streams outside of ticks. On real threads that is what a tick does. A simulated
 * world has its own order, so who comes from outside of it goes in as a fiber for each call; meanwhile the
 * world's time goes on.
 *
 * Native events and streams of the program's are named by the cuda backend alone.
 */
#include "base/sim.h"
#include "base/status.h"
#include "streams/outside.h"
#include "streams/system.h"

struct call {
	weir_stream *stream;
	const weir_kernel *kernel;
	const void *from;
	void *to;
	size_t bytes;
	weir_fence fence, *out;
	weir_status status;
};

bool wr_system_outside(const struct wr_system *system)
{
	return system->backend->enter && !wr_sim_current();
}

/* A world that is broken runs nothing: the error is its own. */
static weir_status go_in(struct call *call, void (*fn)(void *arg))
{
	struct wr_system *system = call->stream->system;

	call->status = WEIR_E_DEADLOCK;
	system->backend->enter(system->native, fn, call);
	return call->status;
}

static void launch(void *arg)
{
	struct call *call = arg;

	call->status = weir_stream_launch(call->stream, call->kernel, call->from, call->bytes);
}

weir_status wr_outside_launch(weir_stream *stream, const weir_kernel *kernel, const void *arguments,
			      size_t bytes)
{
	struct call call = {.stream = stream, .kernel = kernel, .from = arguments, .bytes = bytes};

	return go_in(&call, launch);
}

static void copy(void *arg)
{
	struct call *call = arg;

	call->status = weir_stream_copy(call->stream, call->to, call->from, call->bytes);
}

weir_status wr_outside_copy(weir_stream *stream, void *to, const void *from, size_t bytes)
{
	struct call call = {.stream = stream, .to = to, .from = from, .bytes = bytes};

	return go_in(&call, copy);
}

static void record(void *arg)
{
	struct call *call = arg;

	call->status = weir_stream_record(call->stream, call->out);
}

weir_status wr_outside_record(weir_stream *stream, weir_fence *out)
{
	struct call call = {.stream = stream, .out = out};

	return go_in(&call, record);
}

static void wait(void *arg)
{
	struct call *call = arg;

	call->status = weir_stream_wait(call->stream, call->fence);
}

weir_status wr_outside_wait(weir_stream *stream, weir_fence fence)
{
	struct call call = {.stream = stream, .fence = fence};

	return go_in(&call, wait);
}

/* --- native events and streams --- */

static weir_status natives(const struct wr_system *system, const char *what)
{
	if (system->backend->native_streams)
		return WEIR_OK;
	return wr_fail(WEIR_E_UNSUPPORTED, "the %s backend has no %s of a program's own: cuda has",
		       system->backend->name, what);
}

weir_status weir_stream_wait_native(weir_stream *stream, void *event)
{
	struct wr_system *system;
	weir_status status;

	if (!stream)
		return wr_stream_missing();
	system = stream->system;
	if (wr_system_failed(system))
		return wr_system_failure_status(system);
	status = natives(system, "events");
	if (status)
		return status;
	if (!event)
		return wr_fail(WEIR_E_INVALID, "an event is needed, NULL was given");
	wr_store(&stream->dirty, true);	/* what is recorded next means more than what was recorded last */
	return wr_system_check(system, system->backend->wait(system->native, stream->spec.device,
							    wr_load(&stream->native), event));
}

weir_status wr_fence_enqueue(struct wr_system *system, weir_fence fence, int device, void *native)
{
	struct wr_point *place;
	weir_stream *stream;
	weir_status status = natives(system, "streams");

	if (!status && wr_system_failed(system))
		status = wr_system_failure_status(system);
	if (!status && (device < 0 || device >= system->devices))
		status = wr_fail(WEIR_E_INVALID, "device %d: this machine has %d", device, system->devices);
	if (!status)
		status = wr_fence_find(system, fence, &stream);
	if (status || !stream || fence.point <= wr_load(&stream->completed))
		return status;
	place = wr_stream_point(stream, fence.point);
	/* Recorded again: the point was seen complete. Should that come now, the wait is for later work, too. */
	if (wr_load(&place->point) != fence.point)
		return WEIR_OK;
	return wr_system_check(system, system->backend->wait(system->native, device, native, place->event));
}
