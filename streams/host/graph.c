/*
 * Captures on host streams. A captured stream is idle: its work goes to the capture's list instead of its
 * own. The items of all streams of a capture are in one list, in the order in which they were enqueued: an
 * item comes after all that its stream was ordered behind.
 *
 * Streams not ordered before the end of the first are not refused here, since one list has all items:
 * capture.c refuses them on every backend.
 */
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "streams/host/host.h"

/* --- capturing --- */

static void capture_add(struct wr_host_capture *capture, struct wr_host_stream *stream)
{
	wr_spin_lock(&stream->executor->lock);
	if (!stream->capture) {
		stream->capture = capture;
		stream->next = capture->streams;
		capture->streams = stream;
	}
	wr_spin_unlock(&stream->executor->lock);
}

weir_status wr_host_capture_begin(void *self, int device, void *stream, void **out)
{
	struct wr_host_capture *capture = wr_alloc(1, sizeof *capture);

	(void)self;
	(void)device;
	if (capture)
		capture->graph = wr_alloc(1, sizeof *capture->graph);
	if (!capture || !capture->graph) {
		wr_free(capture);
		return WEIR_E_NOMEM;
	}
	capture->end = &capture->graph->items;
	capture_add(capture, stream);
	*out = capture;
	return WEIR_OK;
}

weir_status wr_host_capture_order(void *self, void *capture, void *before, void *after)
{
	(void)self;
	(void)before;
	capture_add(capture, after);
	return WEIR_OK;
}

void wr_host_capture_append_locked(struct wr_host_capture *capture, struct wr_task *task)
{
	*capture->end = task;
	capture->end = &task->next;
	capture->graph->count++;
}

static void capture_release_streams(struct wr_host_capture *capture)
{
	struct wr_executor *executor = capture->streams->executor;

	wr_spin_lock(&executor->lock);
	while (capture->streams) {
		struct wr_host_stream *stream = capture->streams;

		capture->streams = stream->next;
		stream->next = NULL;
		stream->capture = NULL;
	}
	wr_spin_unlock(&executor->lock);
}

weir_status wr_host_capture_end(void *self, void *handle, void **out)
{
	struct wr_host_capture *capture = handle;
	struct wr_host_graph *graph = capture->graph;

	capture_release_streams(capture);
	wr_free(capture);
	if (out && graph->count) {
		*out = graph;
		return WEIR_OK;
	}
	wr_host_graph_destroy(self, graph);
	if (out)
		*out = NULL;
	return WEIR_OK;
}

/* --- graphs --- */

weir_status wr_host_graph_launch(void *self, int device, void *stream, void *graph)
{
	weir_status status;
	struct wr_task *task = wr_host_enqueue_begin(stream, WR_WORK_GRAPH, &status);

	(void)self;
	(void)device;
	if (!task)
		return status;
	task->graph = graph;
	return wr_host_enqueue_end(stream, task);
}

size_t wr_host_graph_items(const void *graph)
{
	return ((const struct wr_host_graph *)graph)->count;
}

void wr_host_graph_destroy(void *self, void *graph)
{
	(void)self;
	wr_tasks_free(((struct wr_host_graph *)graph)->items);
	wr_free(graph);
}

static bool kernel_differs(const struct wr_task *item, const struct wr_task *other, char *what, size_t room)
{
	if (item->kernel.host != other->kernel.host) {
		snprintf(what, room, "is kernel '%s', then kernel '%s'", item->kernel.name,
			 other->kernel.name);
		return true;
	}
	if (item->kernel.bytes != other->kernel.bytes) {
		snprintf(what, room, "kernel '%s' has %zu bytes of arguments, then %zu", item->kernel.name,
			 item->kernel.bytes, other->kernel.bytes);
		return true;
	}
	for (size_t i = 0; i < item->kernel.bytes; i++) {
		if (item->kernel.arguments[i] == other->kernel.arguments[i])
			continue;
		snprintf(what, room, "byte %zu of the arguments of kernel '%s' differs", i,
			 item->kernel.name);
		return true;
	}
	return false;
}

static bool copy_differs(const weir_copy *copy, const weir_copy *other, char *what, size_t room)
{
	const char *part = copy->to != other->to || copy->to_stride != other->to_stride ? "destination"
			   : copy->from != other->from || copy->from_stride != other->from_stride ? "source"
			   : copy->rows != other->rows || copy->row_bytes != other->row_bytes     ? "size"
												  : NULL;

	if (part)
		snprintf(what, room, "the %s of the copy differs", part);
	return part != NULL;
}

static bool item_differs(const struct wr_task *item, const struct wr_task *other, char *what, size_t room)
{
	if (item->work == other->work)
		return item->work == WR_WORK_KERNEL ? kernel_differs(item, other, what, room)
						    : copy_differs(&item->copy, &other->copy, what, room);
	snprintf(what, room, "one is a kernel, the other a copy");
	return true;
}

bool wr_host_graph_differs(void *self, const void *graph, const void *other, char *what, size_t room)
{
	const struct wr_host_graph *one = graph, *two = other;
	const struct wr_task *item = one->items, *with = two->items;
	char text[160];

	(void)self;
	if (one->count != two->count) {
		snprintf(what, room, "%zu items, then %zu", one->count, two->count);
		return true;
	}
	for (size_t i = 0; item; i++, item = item->next, with = with->next) {
		if (!item_differs(item, with, text, sizeof text))
			continue;
		snprintf(what, room, "item %zu: %s", i, text);
		return true;
	}
	return false;
}
