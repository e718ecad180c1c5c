/*
 * Each call of the device fails once, in each way that the backend's contract knows, at each of its calls of
 * a run: the run ends with its result, or with a failure that names the call; and everything that the backend
 * gave is given back. The table of the backend is replaced by one that counts the calls (--wrap).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "rig_inside.h"
#include "rig_streams.h"

#if defined WR_TSAN || defined WR_ASAN
#define WORLDS 2
#else
#define WORLDS 20
#endif
#define TEST(name) static void name(void **state_)

extern const struct wr_backend __real_wr_backend_host, __real_wr_backend_sim;
extern const struct wr_backend __wrap_wr_backend_host, __wrap_wr_backend_sim;

/* Calls that can fail. */
enum call {
	OPEN,
	STREAM_CREATE,
	STREAM_DEFAULT,
	EVENT_CREATE,
	RECORD,
	QUERY,
	WAIT,
	LAUNCH,
	COPY,
	COPY_ROWS,
	PAGEABLE,
	CALL,
	WRITE_FLAG,
	CAN_WRITE_FLAG,
	PARTITIONS_CREATE,
	ALLOC,
	CALLS
};

static const char *const call_names[CALLS] = {
	"open",     "stream_create", "stream_default", "event_create",   "record",
	"query",    "wait",          "launch",         "copy",           "copy_rows",
	"pageable", "call",          "write_flag",     "can_write_flag", "partitions_create",
	"alloc"};

/* NO_MEMORY and INVALID concern one call. A kernel FAULTs beside the call, which goes on; or the call itself
 * finds the device LOST. */
enum error { NO_MEMORY, INVALID, FAULT, LOST, ERRORS };

static struct {
	const struct wr_backend *real;
	enum call call;
	enum error error;
	unsigned nth; /* 0: never */
	_Atomic unsigned count;
	_Atomic bool hit;
	_Atomic(void *) broken; /* the stream of the kernel that faults */
	_Atomic int given;      /* streams, events, partitions, memory; and the backend itself */
} device;

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
		return wr_fail(WEIR_E_NOMEM, "injected: no memory for %s", call_names[call]);
	if (device.error == INVALID)
		return wr_fail(WEIR_E_FAILED, "injected: an invalid value for %s", call_names[call]);
	if (self)
		break_device(self);
	return device.error == LOST
		       ? wr_fail(WEIR_E_DEVICE, "injected: %s found the device lost", call_names[call])
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
	.partitions_create = device_partitions_create, .partition_destroy = device_partition_destroy,        \
	.alloc = device_alloc, .release = device_release, .stopped = device_stopped
const struct wr_backend __wrap_wr_backend_host = {.name = "host", .open = host_open, COUNTED};
const struct wr_backend __wrap_wr_backend_sim = {
	.name = "sim", .open = sim_open, COUNTED, .enter = device_enter};

/* --- runs --- */

enum { RECEIVED = 256 };

struct outcome {
	weir_status status;
	char text[1024];            /* of the failure */
	char received[2][RECEIVED]; /* by x, y */
};

static const struct plan {
	const char *text, *resources;
	rig_fn *compute; /* of c, NULL: there is none, nor a y */
} * plan;

static weir_status emit_copy(struct rig *rig, weir_context *context)
{
	static const int64_t numbers[] = {10, 20, 30};
	const int64_t *number = &numbers[rig_tick(context) % 3];
	weir_copy copies[2] = {{sizeof *copies, NULL, &numbers[1], 1, sizeof *numbers, 0, 0},
			       {sizeof *copies, NULL, number, 2, sizeof *numbers / 2, sizeof *numbers / 2,
				sizeof *numbers / 2}};
	weir_message *message = NULL;
	weir_status status = weir_context_create_tensor(context, &rig_one_number, false, &message);
	weir_stream *stream = weir_context_stream(context);
	weir_fence fence;

	(void)rig;
	if (!status) {
		copies[0].to = copies[1].to = weir_message_data(message);
		status = weir_stream_copies(stream, copies, 2, WEIR_COPY_ASYNC, &fence);
	}
	if (!status)
		return weir_context_emit(context, 0, message);
	weir_message_unref(message);
	return status;
}

static weir_status emit_sum_twice(struct rig *rig, weir_context *context)
{
	weir_status status = rig_emit_on_current(rig, context);

	return status ? status : rig_emit_sum(context, 1, weir_context_stream(context), 100, 10 * US);
}

static const struct plan plain = {"source ticks=3 work=10us -> p:pass -> x:end", NULL, NULL};
static const struct plan several_streams = {"a:source ticks=3 work=10us -> c:call capacity=4 -> x:end "
					    "gate=in; b:source ticks=3 work=30us -> c.in2; "
					    "c.out2 -> y:end gate=in,callback_inline",
					    NULL, emit_sum_twice};
static const struct plan signals_and_partitions = {
	"c:call count=3 pool=streams -> x:end gate=in,flag; b:source ticks=3 work=20us pool=default -> y:end "
	"gate=in,callback_inline",
	"{\"parts\": {\"type\": \"green_context_pool\", \"sms_per_partition\": [2, 3]},"
	"\"part\": {\"type\": \"green_context\", \"pool\": \"parts\", \"index\": 0},"
	"\"streams\": {\"type\": \"stream_pool\", \"green_context\": \"part\"}}",
	emit_copy};

static const struct plan all_stream_calls = {
	"a:source ticks=3 work=10us -> c:call pool=p -> x:end gate=in; c.out2 -> y:end gate=in", RIG_POOL(""),
	rig_emit_on_all};

static weir_status run_to_end(struct rig *rig)
{
	weir_status status = WEIR_OK;

	if (!rig->scheduler)
		status = weir_scheduler_create(rig->graph, &rig->options, &rig->scheduler);
	if (status)
		return status;
	rig_here(rig);
	status = weir_scheduler_start(rig->scheduler);
	return status ? status : rig_wait(rig);
}

static struct rig *make_rig(void)
{
	struct rig *rig;

	rig_resources = plan->resources;
	rig = rig_of(plan->text);
	rig_resources = NULL;
	if (plan->compute)
		rig_on(rig, "c", plan->compute);
	return rig;
}

static void take_text(struct rig *rig, const char *name, char out[RECEIVED])
{
	struct rig_entity *entity = rig_entity(rig, name);

	snprintf(out, RECEIVED, "%.255s", entity->text);
	entity->length = 0;
	entity->text[0] = 0;
}

static struct outcome run_once(struct rig *rig)
{
	struct outcome outcome = {.status = run_to_end(rig)};

	if (outcome.status)
		snprintf(outcome.text, sizeof outcome.text, "%s",
			 rig->outcome.status ? rig->outcome.text : weir_last_error());
	take_text(rig, "x", outcome.received[0]);
	if (plan->compute)
		take_text(rig, "y", outcome.received[1]);
	return outcome;
}

static void destroy_rig(struct rig *rig)
{
	rig_destroy(rig);
	assert_int_equal(wr_load(&device.given), 0);
}

/* --- the sweep --- */

static struct outcome untouched;
static unsigned runs, failed_runs, reached[CALLS];

static void say(const struct outcome *outcome, const char *run)
{
	fail_msg("%s: %s, error %d of call %u of %s: %s '%s', x got '%s' not '%s', y '%s' not '%s'",
		 plan->text, run, device.error, device.nth, call_names[device.call],
		 weir_status_text(outcome->status), outcome->text, outcome->received[0],
		 untouched.received[0], outcome->received[1], untouched.received[1]);
}

static bool is_right(const struct outcome *outcome)
{
	return !outcome->status && !strcmp(outcome->received[0], untouched.received[0]) &&
	       !strcmp(outcome->received[1], untouched.received[1]);
}

/* After an error of one call the graph runs again as if nothing had been; a lost device stays lost. */
static bool run_with_failure(void)
{
	struct rig *rig = make_rig();
	struct outcome outcome;

	wr_store(&device.count, 0);
	wr_store(&device.hit, false);
	outcome = run_once(rig);
	if (outcome.status ? !strstr(outcome.text, "injected") : !is_right(&outcome))
		say(&outcome, "the run");
	runs++;
	failed_runs += outcome.status != WEIR_OK;
	reached[device.call] += wr_load(&device.hit);
	if (device.error < FAULT && wr_load(&device.hit)) {
		outcome = run_once(rig);
		if (!is_right(&outcome))
			say(&outcome, "the next run");
	}
	destroy_rig(rig);
	return wr_load(&device.hit);
}

/* By contract a query fails only if the device is lost, and before open there is no device to fault. */
static bool possible(enum call call, enum error error)
{
	return !(call == QUERY && error < FAULT) && !(call == OPEN && error == FAULT);
}

static void sweep_call(enum call call)
{
	unsigned step = call == EVENT_CREATE ? 61 : 1; /* a stream creates 256 */

	device.call = call;
	for (int error = 0; error < ERRORS; error++) {
		device.error = error;
		device.nth = 1;
		while (possible(call, error) && run_with_failure())
			device.nth += step;
	}
}

static void sweep(void)
{
	struct rig *rig = make_rig();

	device.nth = 0;
	untouched = run_once(rig);
	destroy_rig(rig);
	if (untouched.status)
		fail_msg("%s: %s", plan->text, untouched.text);
	for (int call = 0; call < CALLS; call++)
		sweep_call(call);
}

static void sweep_everywhere(const struct plan *of)
{
	plan = of;
	runs = failed_runs = 0;
	rig_in_worlds(WORLDS, sweep);
	print_message("sim: %u runs, %u failed\n", runs, failed_runs);
	assert_true(failed_runs > 0 && failed_runs < runs);
	runs = failed_runs = 0;
	rig_on_host(sweep);
	print_message("host: %u runs, %u failed\n", runs, failed_runs);
	assert_true(failed_runs > 0 && failed_runs < runs);
}

TEST(f65_e02_whatever_call_fails_a_plain_run_ends_right_or_names_it)
{
	(void)state_;
	sweep_everywhere(&plain);
}

TEST(f65_e02_whatever_call_fails_a_run_of_several_streams_ends_right_or_names_it)
{
	(void)state_;
	sweep_everywhere(&several_streams);
}

TEST(f65_e02_whatever_call_fails_a_run_with_flags_and_partitions_ends_right_or_names_it)
{
	(void)state_;
	sweep_everywhere(&signals_and_partitions);
}

TEST(f65_e02_whatever_call_fails_a_run_that_uses_every_call_on_streams_ends_right_or_names_it)
{
	(void)state_;
	sweep_everywhere(&all_stream_calls);
}

TEST(f65_every_call_was_reached)
{
	(void)state_;
	for (int call = 0; call < CALLS; call++)
		if (!reached[call])
			fail_msg("%s was never called", call_names[call]);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(f65_e02_whatever_call_fails_a_plain_run_ends_right_or_names_it),
		cmocka_unit_test(f65_e02_whatever_call_fails_a_run_of_several_streams_ends_right_or_names_it),
		cmocka_unit_test(
			f65_e02_whatever_call_fails_a_run_with_flags_and_partitions_ends_right_or_names_it),
		cmocka_unit_test(
			f65_e02_whatever_call_fails_a_run_that_uses_every_call_on_streams_ends_right_or_names_it),
		cmocka_unit_test(f65_every_call_was_reached),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
