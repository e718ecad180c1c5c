/*
 * Captures (T13). Work that an owner enqueues on its streams becomes an executable instead of being run.
 *
 * Each stream has a second handle, `queue`, on which its owner enqueues. It is the stream's native one, but
 * in a capture a private stream of the backend. So the operator keeps its streams, while other threads, which
 * read `native` alone (views, signals, waits), see nothing of the capture. A private stream has no fences and
 * no record; it belongs to the wr_capture, which keeps it for the next time.
 *
 * The first stream is the origin. The others of the owner's own native streams are put behind it at the
 * beginning, so that all work on them is captured; work that is not ordered before the origin's end again is
 * refused. Clocks tell: clocks[i] of a stream is the number of operations of stream i that are before its
 * next one. Streams that share another's queue are foreign: to use them is refused, but what was enqueued on
 * them goes to the origin's private stream, so that nothing of it is run.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/stack.h"
#include "base/status.h"
#include "streams/pool.h"
#include "streams/system.h"

enum { OWN_MAX = 16 }; /* the origin, and further streams of a capture */

struct private
{
	void *native;
	struct wr_stream_spec spec;
};

struct part {
	weir_stream *stream;
	bool own, dirty_before;
	uint64_t operations_before;
	uint64_t clocks[OWN_MAX];
};

struct wr_capture {
	struct wr_system *system;
	struct private privates[OWN_MAX];
	size_t private_count;
	struct part *parts; /* parts[i] of the first OWN_MAX has privates[i], if it is own */
	size_t count, room;
	void *native; /* the backend's capture; NULL: none is on */
	bool postponed;
	char refused[240];
};

struct wr_executable {
	struct wr_system *system;
	void *graph;
	size_t items;
	weir_fence last;            /* covers all launches, unless `unfenced` */
	bool unfenced;              /* a launch is not covered */
	struct wr_executable *next; /* in system->executables */
};

bool wr_system_captures(const struct wr_system *system)
{
	return wr_device_captures(system);
}

weir_status wr_capture_create(struct wr_system *system, struct wr_capture **out)
{
	struct wr_capture *capture = wr_alloc(1, sizeof *capture);

	if (!capture)
		return WEIR_E_NOMEM;
	capture->system = system;
	*out = capture;
	return WEIR_OK;
}

void wr_capture_destroy(struct wr_capture *capture)
{
	if (!capture)
		return;
	for (size_t i = 0; i < capture->private_count; i++)
		wr_device_stream_destroy(capture->system, capture->privates[i].native);
	wr_free(capture->parts);
	wr_free(capture);
}

/* --- refusing --- */

static void note_refusal(struct wr_capture *capture, const char *why)
{
	if (!*capture->refused)
		snprintf(capture->refused, sizeof capture->refused, "%s", why);
}

weir_status wr_capture_refuse(struct wr_capture *capture, const char *format, ...)
{
	char text[240];
	va_list list;

	va_start(list, format);
	vsnprintf(text, sizeof text, format, list);
	va_end(list);
	note_refusal(capture, text);
	return wr_fail(WEIR_E_UNSUPPORTED, "%s", text);
}

weir_status wr_capture_postpone(struct wr_capture *capture, const char *why)
{
	capture->postponed = true;
	return wr_capture_refuse(capture, "%s", why);
}

bool wr_capture_postponed(const struct wr_capture *capture)
{
	return capture->postponed;
}

/* --- private streams --- */

/* Private streams never block, since CUDA's default stream must not be ordered with a capture. */
static weir_status private_make(struct wr_capture *capture, size_t index, const struct wr_stream_spec *spec)
{
	struct private *private = &capture->privates[index];
	struct wr_stream_spec own = *spec;
	weir_status status;

	own.flags = 0;
	if (private->native && private->spec.device == own.device && private->spec.priority == own.priority &&
	    private->spec.partition == own.partition)
		return WEIR_OK;
	if (private->native)
		wr_device_stream_destroy(capture->system, private->native);
	private->native = NULL;
	private->spec = own;
	status = wr_device_stream_create(capture->system, &own, wr_partition_native(own.partition),
					 &private->native);
	if (!status && index >= capture->private_count)
		capture->private_count = index + 1;
	return status;
}

/* --- beginning --- */

static weir_status part_add(struct wr_capture *capture, weir_stream *stream)
{
	bool own_queue = wr_load(&stream->root) == stream && !stream->wrapped;
	struct part *part = &capture->parts[capture->count];
	weir_status status = WEIR_OK;

	memset(part, 0, sizeof *part);
	part->stream = stream;
	part->own = !capture->count || (capture->count < OWN_MAX && own_queue); /* the first: the origin */
	part->dirty_before = wr_load(&stream->dirty);
	part->operations_before = stream->operations;
	if (part->own)
		status = private_make(capture, capture->count, &stream->spec);
	if (!status)
		capture->count++;
	return status;
}

static void *part_queue(const struct wr_capture *capture, size_t index)
{
	return capture->privates[capture->parts[index].own ? index : 0].native;
}

static void parts_enter(struct wr_capture *capture)
{
	for (size_t i = 0; i < capture->count; i++) {
		weir_stream *stream = capture->parts[i].stream;

		stream->queue = part_queue(capture, i);
		stream->capture = capture;
		stream->operations = 0;
		stream->queue_given = false;
		stream->refused = NULL;
	}
}

static void parts_leave(struct wr_capture *capture)
{
	for (size_t i = 0; i < capture->count; i++) {
		const struct part *part = &capture->parts[i];
		weir_stream *stream = part->stream;

		stream->queue = wr_load(&stream->native);
		stream->capture = NULL;
		stream->operations = part->operations_before;
		wr_store(&stream->dirty, part->dirty_before);
	}
	capture->count = 0;
}

weir_status wr_capture_begin(struct wr_capture *capture, weir_stream *const *streams, size_t count)
{
	struct wr_system *system = capture->system;
	weir_status status = wr_grow(&capture->parts, &capture->room, count, sizeof *capture->parts);

	capture->count = 0;
	capture->postponed = false;
	*capture->refused = '\0';
	for (size_t i = 0; !status && i < count; i++)
		status = part_add(capture, streams[i]);
	if (!status)
		status = wr_device_capture_begin(system, streams[0]->spec.device, part_queue(capture, 0),
						 &capture->native);
	if (status)
		return status;
	for (size_t i = 1; !status && i < count; i++)
		if (capture->parts[i].own)
			status = wr_device_capture_order(system, capture->native, part_queue(capture, 0),
							 part_queue(capture, i));
	if (!status) {
		parts_enter(capture);
		return WEIR_OK;
	}
	(void)wr_device_capture_end(system, capture->native, NULL);
	capture->native = NULL;
	return status;
}

/* --- within --- */

static size_t part_index(const struct wr_capture *capture, const weir_stream *stream)
{
	size_t i = 0;

	while (capture->parts[i].stream != stream)
		i++;
	return i;
}

weir_status wr_capture_order(struct wr_capture *capture, weir_stream *before, weir_stream *after)
{
	struct part *part;
	size_t from, to;

	if (before->capture != capture || after->capture != capture)
		return wr_capture_refuse(capture, "streams from outside cannot be ordered with a capture");
	from = part_index(capture, before);
	to = part_index(capture, after);
	if (!capture->parts[from].own || !capture->parts[to].own)
		return wr_capture_refuse(capture, "a capture has the entity's own streams alone");
	if (from == to)
		return WEIR_OK;
	part = &capture->parts[from];
	part->clocks[from] = before->operations;
	for (size_t i = 0; i < OWN_MAX; i++)
		if (capture->parts[to].clocks[i] < part->clocks[i])
			capture->parts[to].clocks[i] = part->clocks[i];
	return wr_device_capture_order(capture->system, capture->native, part_queue(capture, from),
				       part_queue(capture, to));
}

/* --- the end --- */

static bool part_used(const struct part *part)
{
	return part->stream->operations || part->stream->queue_given;
}

/*
 * What was enqueued on native handles is not counted: if it was not joined the backend's capture_end fails. A
 * stream without any work is joined here, since the backend would miss that.
 */
static weir_status check_joined(struct wr_capture *capture)
{
	const struct part *origin = &capture->parts[0];
	weir_status status = WEIR_OK;

	for (size_t i = 1; !status && i < capture->count; i++) {
		const struct part *part = &capture->parts[i];

		if (!part->own)
			continue;
		if (!part_used(part))
			status = wr_device_capture_order(capture->system, capture->native,
							 part_queue(capture, i), part_queue(capture, 0));
		if (!status && origin->clocks[i] < part->stream->operations)
			status = wr_capture_refuse(
				capture, "a stream was not joined: order the first stream behind it by "
					 "weir_context_synchronize_streams");
	}
	return status;
}

static weir_status executable_make(struct wr_system *system, void *graph, struct wr_executable **out)
{
	struct wr_executable *executable = wr_alloc(1, sizeof *executable);

	if (!executable) {
		wr_device_graph_destroy(system, graph);
		return WEIR_E_NOMEM;
	}
	executable->system = system;
	executable->graph = graph;
	executable->items = wr_device_graph_items(system, graph);
	*out = executable;
	return WEIR_OK;
}

weir_status wr_capture_end(struct wr_capture *capture, struct wr_executable **out)
{
	struct wr_system *system = capture->system;
	void *graph = NULL;
	weir_status status, ended;

	for (size_t i = 0; i < capture->count; i++)
		if (capture->parts[i].stream->refused)
			note_refusal(capture, capture->parts[i].stream->refused);
	for (size_t i = 1; i < capture->count; i++)
		if (!capture->parts[i].own && part_used(&capture->parts[i]))
			(void)wr_capture_refuse(capture,
						"enqueue used a stream that is not one of the entity's "
						"own (one of a message, the default stream, or the "
						"17th)");
	status = *capture->refused ? WEIR_E_UNSUPPORTED : check_joined(capture);
	parts_leave(capture);
	ended = wr_device_capture_end(system, capture->native, status ? NULL : &graph);
	capture->native = NULL;
	if (wr_system_failed(system)) {
		if (graph)
			wr_device_graph_destroy(system, graph);
		return wr_system_failure_status(system);
	}
	if (*capture->refused)
		return wr_fail(WEIR_E_UNSUPPORTED, "%s", capture->refused);
	status = status ? status : ended;
	*out = NULL;
	return status || !graph ? status : executable_make(system, graph, out);
}

/* --- executables --- */

weir_status wr_executable_launch(struct wr_executable *executable, weir_stream *stream)
{
	struct wr_system *system = executable->system;
	int64_t since = 0;
	weir_status status;

	if (wr_system_failed(system))
		return wr_system_failure_status(system);
	wr_store(&stream->dirty, true);
	stream->operations++;
	executable->unfenced = true;
	if (stream->span)
		since = wr_span_enter(stream);
	status = wr_device_graph_launch(system, stream->spec.device, wr_load(&stream->native),
					executable->graph);
	if (stream->span)
		wr_span_leave(stream, since);
	return status;
}

void wr_executable_note_fence(struct wr_executable *executable, weir_fence fence)
{
	if (executable->unfenced)
		executable->last = fence;
	executable->unfenced = false;
}

static void executable_free(struct wr_executable *executable)
{
	wr_device_graph_destroy(executable->system, executable->graph);
	wr_free(executable);
}

bool wr_executable_try_destroy(struct wr_executable *executable)
{
	if (executable->unfenced || !wr_fence_may_free(executable->system, executable->last))
		return false;
	executable_free(executable);
	return true;
}

void wr_executable_drop(struct wr_executable *executable)
{
	if (!wr_executable_try_destroy(executable))
		wr_stack_push(&executable->system->executables, executable, next);
}

void wr_executables_finish(struct wr_system *system)
{
	struct wr_executable *executable = wr_load(&system->executables);

	while (executable) {
		struct wr_executable *next = executable->next;

		executable_free(executable);
		executable = next;
	}
}

bool wr_executable_differs(const struct wr_executable *executable, const struct wr_executable *other,
			   char *what, size_t room)
{
	return wr_device_graph_differs(executable->system, executable->graph, other->graph, what, room);
}
