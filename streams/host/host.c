/* The host as a device: streams are in-order queues that a few threads run, device memory is host memory. */
#include <stdio.h>

#include "base/memory.h"
#include "base/status.h"
#include "streams/backend.h"
#include "streams/host/executor.h"

enum { THREADS = 4 };

static weir_status host_open(void **out, const struct wr_system_options *options, char *where, size_t room)
{
	unsigned threads = options->host_threads ? options->host_threads : THREADS;
	int devices = options->devices ? options->devices : 1;
	struct wr_executor *executor;
	weir_status status = wr_executor_create(&executor, devices, threads, options->strict, NULL, NULL);

	if (status)
		return status;
	if (devices > 1)
		snprintf(where, room, "host: %d devices", devices);
	else
		snprintf(where, room, "host");
	*out = executor;
	return WEIR_OK;
}

static void host_close(void *self)
{
	wr_executor_destroy(self);
}

static int host_devices(void *self)
{
	return wr_executor_devices(self);
}

static weir_status host_stream_create(void *self, int device, unsigned flags, int priority, void *partition,
				      void **out)
{
	(void)priority;
	return wr_host_stream_open(self, device, flags, partition, (struct wr_host_stream **)out);
}

static weir_status host_stream_default(void *self, int device, void **out)
{
	return wr_host_stream_open(self, device, WR_STREAM_BLOCKING, NULL, (struct wr_host_stream **)out);
}

static weir_status host_partitions_create(void *self, const struct wr_partitions_spec *spec, void **out,
					  uint32_t *sms)
{
	return wr_executor_partition(self, spec, out, sms);
}

/* The partition's workers end with the device. */
static void host_partition_destroy(void *self, void *partition)
{
	(void)self;
	(void)partition;
}

static void host_stream_destroy(void *self, void *stream)
{
	(void)self;
	wr_host_stream_destroy(stream);
}

static weir_status host_event_create(void *self, int device, void **out)
{
	(void)device;
	return wr_host_event_create(self, (struct wr_host_event **)out);
}

static void host_event_destroy(void *self, void *event)
{
	(void)self;
	wr_host_event_destroy(event);
}

static weir_status host_record(void *self, int device, void *stream, void *event)
{
	(void)device;
	(void)self;
	return wr_host_stream_record(stream, event);
}

static weir_status host_query(void *self, void *event)
{
	(void)self;
	return wr_host_event_query(event);
}

static weir_status host_wait(void *self, int device, void *stream, void *event)
{
	(void)device;
	(void)self;
	return wr_host_stream_wait(stream, event);
}

static weir_status host_launch(void *self, int device, void *stream, const weir_kernel *kernel,
			       const void *arguments, size_t bytes)
{
	(void)self;
	(void)device;
	return wr_host_stream_kernel(stream, kernel, arguments, bytes);
}

static weir_status host_copy(void *self, int device, void *stream, void *to, const void *from, size_t bytes)
{
	(void)self;
	(void)device;
	return wr_host_stream_copy(stream, to, from, bytes);
}

static weir_status host_copy_rows(void *self, int device, void *stream, const weir_copy *copy)
{
	(void)self;
	(void)device;
	return wr_host_stream_copy_rows(stream, copy);
}

static weir_status host_call(void *self, int device, void *stream, void (*fn)(void *arg), void *arg)
{
	(void)device;
	(void)self;
	return wr_host_stream_call(stream, fn, arg);
}

static weir_status host_write_flag(void *self, int device, void *stream, _Atomic uint32_t *word,
				   uint32_t value)
{
	(void)self;
	(void)device;
	return wr_host_stream_write_flag(stream, word, value);
}

static weir_status host_capture_begin(void *self, int device, void *stream, void **out)
{
	(void)self;
	(void)device;
	return wr_host_capture_begin(stream, (struct wr_host_capture **)out);
}

static weir_status host_capture_order(void *self, void *capture, void *before, void *after)
{
	(void)self;
	(void)before;
	return wr_host_capture_order(capture, after);
}

static weir_status host_capture_end(void *self, void *capture, void **out)
{
	(void)self;
	return wr_host_capture_end(capture, (struct wr_host_graph **)out);
}

static weir_status host_graph_launch(void *self, int device, void *stream, void *graph)
{
	(void)self;
	(void)device;
	return wr_host_graph_launch(stream, graph);
}

static weir_status host_timer_create(void *self, int device, void **out)
{
	(void)device;
	return wr_host_timer_create(self, (struct wr_host_event **)out);
}

static weir_status host_timer_read(void *self, int device, void *begin, void *end, int64_t *begun,
				   int64_t *ended)
{
	(void)self;
	(void)device;
	return wr_host_timer_read(begin, end, begun, ended);
}

static weir_status host_alloc(void *self, int device, size_t bytes, void **out)
{
	return wr_executor_alloc(self, device, bytes, out);
}

static void host_release(void *self, int device, void *memory)
{
	wr_executor_release(self, device, memory);
}

static bool host_is_closed(void *self, const void *address)
{
	return wr_executor_is_closed(self, address);
}

static bool host_stopped(void *self)
{
	return wr_executor_stopped(self);
}

const struct wr_backend wr_backend_host = {
	.name = "host",
	.kind = WEIR_BACKEND_HOST,
	.open = host_open,
	.close = host_close,
	.devices = host_devices,
	.stream_create = host_stream_create,
	.stream_destroy = host_stream_destroy,
	.stream_default = host_stream_default,
	.event_create = host_event_create,
	.event_destroy = host_event_destroy,
	.record = host_record,
	.query = host_query,
	.wait = host_wait,
	.launch = host_launch,
	.copy = host_copy,
	.copy_rows = host_copy_rows,
	.call = host_call,
	.timer_create = host_timer_create,
	.timer_destroy = host_event_destroy,
	.timer_record = host_record,
	.timer_read = host_timer_read,
	.capture_begin = host_capture_begin,
	.capture_order = host_capture_order,
	.capture_end = host_capture_end,
	.graph_items = wr_host_graph_items,
	.graph_launch = host_graph_launch,
	.graph_destroy = wr_host_graph_destroy,
	.graph_differs = wr_host_graph_differs,
	.write_flag = host_write_flag,
	.partitions_create = host_partitions_create,
	.partition_destroy = host_partition_destroy,
	.alloc = host_alloc,
	.release = host_release,
	.is_closed = host_is_closed,
	.stopped = host_stopped,
};
