/*
 * Copies on a stream. A list of copies is checked as a whole before its first copy is enqueued, so only the
 * device can refuse one in the middle.
 *
 * A simulated world runs its fibers in its own order, so a call from outside of it is run as a fiber of the
 * world (see stream.c).
 */
#include "base/status.h"
#include "base/struct.h"
#include "streams/device.h"
#include "streams/system.h"

/* --- calls from outside of a simulated world --- */

struct outside_copies {
	weir_stream *stream;
	const weir_copy *copies;
	size_t count;
	unsigned flags;
	weir_fence *out;
};

static weir_status copies_in_world(void *arg)
{
	const struct outside_copies *call = arg;

	return weir_stream_copies(call->stream, call->copies, call->count, call->flags, call->out);
}

static weir_status copies_from_outside(struct outside_copies call)
{
	return wr_device_enter_call(call.stream->system, copies_in_world, &call);
}

/* --- enqueueing --- */

static weir_status device_copy(weir_stream *stream, const weir_copy *copy)
{
	struct wr_system *system = stream->system;

	return copy->rows > 1 ? wr_device_copy_rows(system, stream->spec.device, stream->queue, copy)
			      : wr_device_copy(system, stream->spec.device, stream->queue, copy->to,
					       copy->from, copy->row_bytes);
}

/* Not inlined: a stream without a span pays one branch. */
__attribute__((noinline)) static weir_status copy_in_span(weir_stream *stream, const weir_copy *copy)
{
	int64_t since = wr_span_enter(stream);
	weir_status status = device_copy(stream, copy);

	wr_span_leave(stream, since);
	return status;
}

/* --- the check of a list --- */

/* From the first to the last byte of a side; 0 if that does not fit in the address space. */
static size_t span_of(const weir_copy *copy, const void *memory, size_t stride)
{
	size_t steps = copy->rows > 1 ? copy->rows - 1 : 0, left = UINTPTR_MAX - (uintptr_t)memory;

	if (copy->row_bytes > left || (steps && stride > (left - copy->row_bytes) / steps))
		return 0;
	return steps * stride + copy->row_bytes;
}

/* The rows of one side lie `distance` bytes before those of the other, which have the same stride. */
static bool rows_overlap(const weir_copy *copy, size_t distance)
{
	size_t stride = copy->to_stride, shift = distance / stride, rest = distance % stride;

	return (rest < copy->row_bytes && shift < copy->rows) ||
	       (stride - rest < copy->row_bytes && shift + 1 < copy->rows);
}

/* May miss an overlap if the strides differ. */
static bool sides_overlap(const weir_copy *copy, size_t to_span, size_t from_span)
{
	uintptr_t to = (uintptr_t)copy->to, from = (uintptr_t)copy->from;
	size_t distance = to > from ? to - from : from - to;

	if (distance >= (to > from ? from_span : to_span))
		return false;
	return copy->rows <= 1 || (copy->to_stride == copy->from_stride && rows_overlap(copy, distance));
}

static weir_status check_side(const weir_copy *copy, size_t i, const char *side, const void *memory,
			      size_t stride)
{
	if (!memory)
		return wr_fail(WEIR_E_INVALID, "copies[%zu].%s is NULL for rows of %zu bytes", i, side,
			       copy->row_bytes);
	if (copy->rows > 1 && stride < copy->row_bytes)
		return wr_fail(WEIR_E_INVALID, "copies[%zu].%s_stride is %zu, less than a row of %zu bytes",
			       i, side, stride, copy->row_bytes);
	if (copy->rows > 1 && stride > WR_STRIDE_MAX)
		return wr_fail(WEIR_E_INVALID,
			       "copies[%zu].%s_stride is %zu, at most %d go: copy such rows one by one", i,
			       side, stride, WR_STRIDE_MAX);
	if (!span_of(copy, memory, stride))
		return wr_fail(WEIR_E_INVALID, "copies[%zu].%s: %zu rows end beyond the address space", i,
			       side, copy->rows);
	return WEIR_OK;
}

static weir_status check_pageable(struct wr_system *system, size_t i, const char *side, const void *memory)
{
	bool pageable;
	weir_status status = wr_device_pageable(system, memory, &pageable);

	if (status || !pageable)
		return status;
	return wr_fail(WEIR_E_UNSUPPORTED,
		       "copies[%zu].%s is pageable memory: use weir_context_create_tensor(on_host) or "
		       "cudaHostRegister",
		       i, side);
}

static weir_status check_copy(struct wr_system *system, const weir_copy *copy, size_t i, unsigned flags)
{
	weir_status status = wr_struct_check("weir_copy", copy->size, sizeof *copy);

	if (status || !copy->row_bytes)
		return status;
	status = check_side(copy, i, "to", copy->to, copy->to_stride);
	if (!status)
		status = check_side(copy, i, "from", copy->from, copy->from_stride);
	if (status)
		return status;
	if (sides_overlap(copy, span_of(copy, copy->to, copy->to_stride),
			  span_of(copy, copy->from, copy->from_stride)))
		return wr_fail(WEIR_E_INVALID, "copies[%zu]: the bytes written are among those read", i);
	if (flags & WEIR_COPY_ASYNC)
		status = check_pageable(system, i, "to", copy->to);
	if (!status && flags & WEIR_COPY_ASYNC)
		status = check_pageable(system, i, "from", copy->from);
	return status;
}

static weir_status check_copies(struct wr_system *system, const weir_copy *copies, size_t count,
				unsigned flags)
{
	weir_status status = WEIR_OK;

	if (flags & ~(unsigned)WEIR_COPY_ASYNC)
		return wr_fail(WEIR_E_INVALID, "copies: flags 0x%x are unknown: use WEIR_COPY_ASYNC or 0",
			       flags);
	if (count && !copies)
		return wr_fail(WEIR_E_INVALID, "copies: the list is NULL for %zu copies", count);
	for (size_t i = 0; i < count && !status; i++)
		status = check_copy(system, &copies[i], i, flags);
	return status;
}

/* --- the list --- */

static weir_status enqueue_copy(weir_stream *stream, const weir_copy *copy)
{
	if (!copy->row_bytes)
		return WEIR_OK;
	wr_store(&stream->dirty, true);
	stream->operations++;
	return stream->span ? copy_in_span(stream, copy) : device_copy(stream, copy);
}

weir_status weir_stream_copies(weir_stream *stream, const weir_copy *copies, size_t count, unsigned flags,
			       weir_fence *out)
{
	struct wr_system *system;
	weir_status status;

	if (!stream)
		return wr_stream_fail_null();
	system = stream->system;
	if (wr_device_outside(system))
		return copies_from_outside((struct outside_copies){stream, copies, count, flags, out});
	if (wr_system_failed(system))
		return wr_system_failure_status(system);
	status = check_copies(system, copies, count, flags);
	if (status)
		return status;
	for (size_t i = 0; i < count; i++) {
		status = enqueue_copy(stream, &copies[i]);
		if (status)
			return wr_fail(status, "copies[%zu]: %s", i, weir_last_error());
	}
	return out ? weir_stream_record(stream, out) : WEIR_OK;
}
