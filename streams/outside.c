/*
 * Stream calls of a program outside of ticks. On real threads they are the same as in a tick. A simulated
 * world runs its fibers in its own order, so a call from outside is run as a fiber of the world, whose time
 * goes on meanwhile.
 *
 * Native events and streams of the program exist with the cuda backend only.
 */
#include "sim/simulation.h"
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

/* A broken world does not run the call, and has set the error text. */
static weir_status call_in_world(struct call *call, void (*fn)(void *arg))
{
	struct wr_system *system = call->stream->system;

	call->status = WEIR_E_DEADLOCK;
	system->backend->enter(system->native, fn, call);
	return call->status;
}

static void launch_in_world(void *arg)
{
	struct call *call = arg;

	call->status = weir_stream_launch(call->stream, call->kernel, call->from, call->bytes);
}

weir_status wr_outside_launch(weir_stream *stream, const weir_kernel *kernel, const void *arguments,
			      size_t bytes)
{
	struct call call = {.stream = stream, .kernel = kernel, .from = arguments, .bytes = bytes};

	return call_in_world(&call, launch_in_world);
}

static void copy_in_world(void *arg)
{
	struct call *call = arg;

	call->status = weir_stream_copy(call->stream, call->to, call->from, call->bytes);
}

weir_status wr_outside_copy(weir_stream *stream, void *to, const void *from, size_t bytes)
{
	struct call call = {.stream = stream, .to = to, .from = from, .bytes = bytes};

	return call_in_world(&call, copy_in_world);
}

static void record_in_world(void *arg)
{
	struct call *call = arg;

	call->status = weir_stream_record(call->stream, call->out);
}

weir_status wr_outside_record(weir_stream *stream, weir_fence *out)
{
	struct call call = {.stream = stream, .out = out};

	return call_in_world(&call, record_in_world);
}

static void wait_in_world(void *arg)
{
	struct call *call = arg;

	call->status = weir_stream_wait(call->stream, call->fence);
}

weir_status wr_outside_wait(weir_stream *stream, weir_fence fence)
{
	struct call call = {.stream = stream, .fence = fence};

	return call_in_world(&call, wait_in_world);
}

/* --- native events and streams --- */

static weir_status check_native(const struct wr_system *system, const char *what)
{
	if (system->backend->native_streams)
		return WEIR_OK;
	return wr_fail(WEIR_E_UNSUPPORTED, "the %s backend has no native %s: use the cuda backend",
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
	status = check_native(system, "events");
	if (status)
		return status;
	if (!event)
		return wr_fail(WEIR_E_INVALID, "an event is needed, NULL was given");
	wr_store(&stream->dirty, true); /* the last point does not cover this wait */
	return wr_system_check(system, system->backend->wait(system->native, stream->spec.device,
							     wr_load(&stream->native), event));
}

weir_status wr_fence_enqueue(struct wr_system *system, weir_fence fence, int device, void *native)
{
	struct wr_point *place;
	weir_stream *stream;
	weir_status status = check_native(system, "streams");

	if (!status && wr_system_failed(system))
		status = wr_system_failure_status(system);
	if (!status && (device < 0 || device >= system->devices))
		status = wr_fail(WEIR_E_INVALID, "device %d: this machine has %d", device, system->devices);
	if (!status)
		status = wr_fence_find(system, fence, &stream);
	if (status || !stream || fence.point <= wr_load(&stream->completed))
		return status;
	place = wr_stream_point(stream, fence.point);
	/*
	 * If the event was recorded again the point was seen complete. If
	 * that happens after this check, the wait also covers later work.
	 */
	if (wr_load(&place->point) != fence.point)
		return WEIR_OK;
	return wr_system_check(system, system->backend->wait(system->native, device, native, place->event));
}
