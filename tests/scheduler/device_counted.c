/* The table of a backend that counts (device_counted.h). */
#include "device_counted.h"

#include <string.h>

#include "base/status.h"

extern const struct wr_backend __real_wr_backend_host, __real_wr_backend_sim;
extern const struct wr_backend __wrap_wr_backend_host, __wrap_wr_backend_sim;

struct counted_device device;

const char *const device_call_names[CALLS] = {
	"open",          "stream_create", "stream_default", "event_create",   "record",
	"query",         "wait",          "launch",         "copy",           "copy_rows",
	"pageable",      "call",          "write_flag",     "can_write_flag", "partitions_create",
	"capture_begin", "capture_order", "capture_end",    "graph_launch",   "alloc",
	"timer_create",  "timer_record",  "timer_read"};

static int fault(const void *arguments)
{
	(void)arguments;
	return 1;
}

static const weir_kernel faulty = {sizeof(weir_kernel), "injected fault", fault, NULL};

static void break_device(void *self)
{
	void *stream = NULL;

	assert_int_equal(device.real->stream_create(self, 0, 0, 0, NULL, &stream), WEIR_OK);
	(void)device.real->launch(self, 0, stream, &faulty, "", 0);
	wr_store(&device.broken, stream);
}

/* Before each call. */
static weir_status may_fail(void *self, enum call call)
{
	if (call != device.call || !device.nth || wr_fetch_add(&device.count, 1) + 1 != device.nth)
		return WEIR_OK;
	wr_store(&device.hit, true);
	if (device.error == NO_MEMORY)
		return wr_fail(WEIR_E_NOMEM, "injected: no memory for %s", device_call_names[call]);
	if (device.error == INVALID)
		return wr_fail(WEIR_E_FAILED, "injected: an invalid value for %s", device_call_names[call]);
	if (self && !device.goes_on)
		break_device(self);
	return device.error == LOST
		       ? wr_fail(WEIR_E_DEVICE, "injected: %s found the device lost", device_call_names[call])
		       : WEIR_OK;
}

static weir_status given(weir_status status)
{
	wr_fetch_add(&device.given, !status);
	return status;
}

static weir_status device_open(const struct wr_backend *real, void **out,
			       const struct wr_system_options *options, char *where, size_t room)
{
	weir_status status;

	device.real = real;
	wr_store(&device.broken, NULL);
	status = may_fail(NULL, OPEN);
	return given(status ? status : real->open(out, options, where, room));
}

static weir_status host_open(void **out, const struct wr_system_options *options, char *where, size_t room)
{
	return device_open(&__real_wr_backend_host, out, options, where, room);
}

static weir_status sim_open(void **out, const struct wr_system_options *options, char *where, size_t room)
{
	return device_open(&__real_wr_backend_sim, out, options, where, room);
}

static void device_close(void *self)
{
	if (wr_load(&device.broken))
		device.real->stream_destroy(self, wr_load(&device.broken));
	device.real->close(self);
	wr_fetch_sub(&device.given, 1);
}

static int device_devices(void *self)
{
	return device.real->devices(self);
}

static weir_status device_stream_create(void *self, int number, unsigned flags, int priority, void *partition,
					void **out)
{
	weir_status status = may_fail(self, STREAM_CREATE);

	return given(status ? status
			    : device.real->stream_create(self, number, flags, priority, partition, out));
}

static void device_stream_destroy(void *self, void *stream)
{
	device.real->stream_destroy(self, stream);
	wr_fetch_sub(&device.given, 1);
}

static weir_status device_stream_default(void *self, int number, void **out)
{
	weir_status status = may_fail(self, STREAM_DEFAULT);

	return status ? status : device.real->stream_default(self, number, out);
}

static weir_status device_event_create(void *self, int number, void **out)
{
	weir_status status = may_fail(self, EVENT_CREATE);

	return given(status ? status : device.real->event_create(self, number, out));
}

static void device_event_destroy(void *self, void *event)
{
	device.real->event_destroy(self, event);
	wr_fetch_sub(&device.given, 1);
}

static weir_status device_record(void *self, int number, void *stream, void *event)
{
	weir_status status = may_fail(self, RECORD);

	return status ? status : device.real->record(self, number, stream, event);
}

static weir_status device_query(void *self, void *event)
{
	weir_status status = may_fail(self, QUERY);

	return status ? status : device.real->query(self, event);
}

static weir_status device_wait(void *self, int number, void *stream, void *event)
{
	weir_status status = may_fail(self, WAIT);

	return status ? status : device.real->wait(self, number, stream, event);
}

static weir_status device_launch(void *self, int number, void *stream, const weir_kernel *kernel,
				 const void *arguments, size_t bytes)
{
	weir_status status = may_fail(self, LAUNCH);

	return status ? status : device.real->launch(self, number, stream, kernel, arguments, bytes);
}

static weir_status device_copy(void *self, int number, void *stream, void *to, const void *from, size_t bytes)
{
	weir_status status = may_fail(self, COPY);

	return status ? status : device.real->copy(self, number, stream, to, from, bytes);
}

static weir_status device_copy_rows(void *self, int number, void *stream, const weir_copy *copy)
{
	weir_status status = may_fail(self, COPY_ROWS);

	return status ? status : device.real->copy_rows(self, number, stream, copy);
}

static weir_status device_pageable(void *self, const void *memory, bool *out)
{
	(void)memory;
	(void)out;
	return may_fail(self, PAGEABLE);
}

static weir_status device_call(void *self, int number, void *stream, void (*fn)(void *arg), void *arg)
{
	weir_status status = may_fail(self, CALL);

	return status ? status : device.real->call(self, number, stream, fn, arg);
}

static weir_status device_write_flag(void *self, int number, void *stream, _Atomic uint32_t *word,
				     uint32_t value)
{
	weir_status status = may_fail(self, WRITE_FLAG);

	return status ? status : device.real->write_flag(self, number, stream, word, value);
}

static weir_status device_can_write_flag(void *self, int number)
{
	(void)number;
	return may_fail(self, CAN_WRITE_FLAG);
}

static weir_status device_partitions_create(void *self, const struct wr_partitions_spec *spec, void **out,
					    uint32_t *sms)
{
	weir_status status = may_fail(self, PARTITIONS_CREATE);

	if (!status)
		status = device.real->partitions_create(self, spec, out, sms);
	for (size_t i = 0; i <= spec->count && !status; i++)
		wr_fetch_add(&device.given, out[i] != NULL);
	return status;
}

static void device_partition_destroy(void *self, void *partition)
{
	device.real->partition_destroy(self, partition);
	wr_fetch_sub(&device.given, 1);
}

static weir_status device_capture_begin(void *self, int number, void *stream, void **capture)
{
	weir_status status = may_fail(self, CAPTURE_BEGIN);

	return given(status ? status : device.real->capture_begin(self, number, stream, capture));
}

static weir_status device_capture_order(void *self, void *capture, void *before, void *after)
{
	weir_status status = may_fail(self, CAPTURE_ORDER);

	return status ? status : device.real->capture_order(self, capture, before, after);
}

/* Ends the capture also where it fails. */
static weir_status device_capture_end(void *self, void *capture, void **graph)
{
	weir_status failure = may_fail(self, CAPTURE_END);
	weir_status status = device.real->capture_end(self, capture, failure ? NULL : graph);

	wr_fetch_sub(&device.given, 1);
	status = failure ? failure : status;
	wr_fetch_add(&device.given, !status && graph && *graph);
	return status;
}

static size_t device_graph_items(const void *graph)
{
	return device.real->graph_items(graph);
}

static weir_status device_graph_launch(void *self, int number, void *stream, void *graph)
{
	weir_status status = may_fail(self, GRAPH_LAUNCH);

	return status ? status : device.real->graph_launch(self, number, stream, graph);
}

static void device_graph_destroy(void *self, void *graph)
{
	device.real->graph_destroy(self, graph);
	wr_fetch_sub(&device.given, 1);
}

static bool device_graph_differs(void *self, const void *graph, const void *other, char *what, size_t room)
{
	return device.real->graph_differs(self, graph, other, what, room);
}

static weir_status device_timer_create(void *self, int number, void **out)
{
	weir_status status = may_fail(self, TIMER_CREATE);

	return given(status ? status : device.real->timer_create(self, number, out));
}

static void device_timer_destroy(void *self, void *timer)
{
	device.real->timer_destroy(self, timer);
	wr_fetch_sub(&device.given, 1);
}

static weir_status device_timer_record(void *self, int number, void *stream, void *timer)
{
	weir_status status = may_fail(self, TIMER_RECORD);

	return status ? status : device.real->timer_record(self, number, stream, timer);
}

static weir_status device_timer_read(void *self, int number, void *begin, void *end, int64_t *begun,
				     int64_t *ended)
{
	weir_status status = may_fail(self, TIMER_READ);

	return status ? status : device.real->timer_read(self, number, begin, end, begun, ended);
}

static weir_status device_alloc(void *self, int number, size_t bytes, void **out)
{
	weir_status status = may_fail(self, ALLOC);

	return given(status ? status : device.real->alloc(self, number, bytes, out));
}

static void device_release(void *self, int number, void *memory)
{
	device.real->release(self, number, memory);
	wr_fetch_sub(&device.given, 1);
}

static bool device_stopped(void *self)
{
	return device.real->stopped(self);
}

static void device_enter(void *self, void (*fn)(void *arg), void *arg)
{
	device.real->enter(self, fn, arg);
}

#define COUNTED                                                                                              \
	.close = device_close, .devices = device_devices, .stream_create = device_stream_create,             \
	.stream_destroy = device_stream_destroy, .stream_default = device_stream_default,                    \
	.event_create = device_event_create, .event_destroy = device_event_destroy, .record = device_record, \
	.query = device_query, .wait = device_wait, .launch = device_launch, .copy = device_copy,            \
	.copy_rows = device_copy_rows, .pageable = device_pageable, .call = device_call,                     \
	.write_flag = device_write_flag, .can_write_flag = device_can_write_flag,                            \
	.capture_begin = device_capture_begin, .capture_order = device_capture_order,                        \
	.capture_end = device_capture_end, .graph_items = device_graph_items,                                \
	.graph_launch = device_graph_launch, .graph_destroy = device_graph_destroy,                          \
	.graph_differs = device_graph_differs, .partitions_create = device_partitions_create,                \
	.timer_create = device_timer_create, .timer_destroy = device_timer_destroy,                          \
	.timer_record = device_timer_record, .timer_read = device_timer_read,                                \
	.partition_destroy = device_partition_destroy, .alloc = device_alloc, .release = device_release,     \
	.stopped = device_stopped
const struct wr_backend __wrap_wr_backend_host = {
	.name = "host", .kind = WEIR_BACKEND_HOST, .open = host_open, COUNTED};
const struct wr_backend __wrap_wr_backend_sim = {
	.name = "sim", .kind = WEIR_BACKEND_SIM, .open = sim_open, COUNTED, .enter = device_enter};
