/* A backend that refuses single calls, or captures: the host backend with a few functions replaced. */
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/status.h"
#include "rig.h"
#include "sim/coroutine.h"
#include "test.h"

#ifdef WR_TSAN
#define STEP 97 /* of the sweep over allocations, which is slow under ThreadSanitizer */
#else
#define STEP 1
#endif

#define MS 1000000

static struct wr_backend troubled; /* the rig's system runs on it */
static bool in_capture;
static weir_status answer; /* what the refusing functions return */

#define BODY(name)                                                                                           \
	static void name##_body(struct rig *);                                                               \
	static void name(void **state)                                                                       \
	{                                                                                                    \
		(void)state;                                                                                 \
		troubled = wr_backend_host;                                                                  \
		rig_run(name##_body, 7);                                                                     \
	}                                                                                                    \
	static void name##_body(struct rig *rig)

/* --- capture --- */

static bool capturing(void *self, int device, void *stream)
{
	(void)device;
	(void)self;
	(void)stream;
	return in_capture;
}

BODY(g03_a_captured_stream_gives_no_fence)
{
	weir_fence before = rig_record(rig->a), fence = before;

	troubled.capturing = capturing;
	wr_store(&rig->a->native_given, true); /* its native handle was given out */
	rig->system->backend = &troubled;
	in_capture = true;
	assert_int_equal(weir_stream_record(rig->a, &fence), WEIR_E_UNSUPPORTED);
	assert_non_null(strstr(weir_last_error(), "the stream of 'a' is being captured: end the capture"));
	in_capture = false;
	assert_int_equal(rig_record(rig->a).value, before.value + 1);
}

BODY(g03_a_stream_that_is_closed_in_a_capture_is_not_given_out_again)
{
	weir_stream *captured = rig_stream(rig, "captured");

	troubled.capturing = capturing;
	wr_store(&captured->native_given, true); /* its native handle was given out */
	rig->system->backend = &troubled;
	rig_store(rig, captured, 1, 0);
	in_capture = true;
	wr_stream_close(captured);
	in_capture = false;
	captured = rig->c;
	rig->c = rig_stream(rig, "next");
	assert_int_equal(rig->system->count, 5);
	wr_stream_close(captured);
}

static int asked;

static bool count_question(void *self, int device, void *stream)
{
	(void)self;
	(void)device;
	(void)stream;
	asked++;
	return false;
}

/* After an unwrap the caller may have destroyed the native stream. */
BODY(g03_a_stream_whose_fence_is_complete_is_not_queried)
{
	weir_fence fences[2] = {rig_record(rig->a)};
	wr_token token;

	troubled.capturing = count_question;
	wr_store(&rig->a->native_given, true);
	rig_wait(rig, fences[0]);
	rig_store(rig, rig->b, 1, 5 * MS);
	fences[1] = rig_record(rig->b);
	rig->system->backend = &troubled;
	asked = 0;
	assert_int_equal(wr_signal_arm(rig->system, 1, fences, 2, &token), WEIR_OK);
	assert_int_equal(asked, 0);
	rig_until_poked(rig, 1);
}

/* --- queries that fail --- */

static weir_status refuse_query(void *self, void *event)
{
	(void)self;
	(void)event;
	return answer;
}

BODY(t04_work_is_over_only_when_the_device_says_so)
{
	static const weir_status odd[] = {WEIR_E_FAILED, WEIR_E_NOMEM, WEIR_E_UNSUPPORTED, WEIR_E_BUSY};
	weir_fence fence = rig_record(rig->b), foreign = {UINT64_MAX, 1};

	troubled.query = refuse_query;
	rig->system->backend = &troubled;
	for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
		answer = odd[i];
		assert_false(wr_fence_may_free(rig->system, fence));
	}
	assert_true(wr_fence_may_free(rig->system, foreign));
	rig->system->backend = &wr_backend_host;
	rig_wait(rig, fence);
	assert_true(wr_fence_may_free(rig->system, fence));
}

/* --- no device memory --- */

static weir_status refuse_alloc(void *self, int device, size_t bytes, void **out)
{
	(void)self;
	(void)device;
	(void)bytes;
	(void)out;
	return WEIR_E_NOMEM;
}

static void *alloc_and_free(struct rig *rig, size_t bytes)
{
	void *memory = NULL;

	assert_int_equal(wr_system_alloc(rig->system, 0, bytes, &memory), WEIR_OK);
	return memory;
}

BODY(f40_when_memory_is_used_up_larger_blocks_serve_and_stay_what_they_are)
{
	void *large = alloc_and_free(rig, 8 << 20), *larger = alloc_and_free(rig, 16 << 20), *other;

	troubled.alloc = refuse_alloc;
	rig->system->backend = &troubled;
	wr_system_free(rig->system, 0, large, 8 << 20);
	wr_system_free(rig->system, 0, larger, 16 << 20);
	for (size_t bytes = 5 << 20; bytes <= 8 << 20; bytes += 1 << 20) {
		assert_ptr_equal(alloc_and_free(rig, bytes), large);
		assert_ptr_equal(alloc_and_free(rig, bytes), larger);
		assert_int_equal(wr_system_alloc(rig->system, 0, bytes, &other), WEIR_E_NOMEM);
		wr_system_free(rig->system, 0, large, bytes);
		wr_system_free(rig->system, 0, larger, bytes);
	}
	assert_ptr_equal(alloc_and_free(rig, 16 << 20), larger); /* a large block stays large */
	assert_int_equal(wr_system_alloc(rig->system, 0, 16 << 20, &other), WEIR_E_NOMEM);
	assert_ptr_equal(alloc_and_free(rig, 5 << 20), large);
}

/* --- signals that cannot be armed --- */

static weir_status refuse_call(void *self, int device, void *stream, void (*fn)(void *arg), void *arg)
{
	(void)device;
	(void)self;
	(void)stream;
	(void)fn;
	(void)arg;
	return WEIR_E_FAILED;
}

static weir_status refuse_record(void *self, int device, void *stream, void *event)
{
	(void)device;
	(void)self;
	(void)stream;
	(void)event;
	return WEIR_E_FAILED;
}

static weir_fence store_and_record(struct rig *rig, weir_stream *stream, int64_t ns)
{
	rig_store(rig, stream, 1, ns);
	return rig_record(stream);
}

/* The waits are enqueued, the callback is not. */
static void fail_to_arm(struct rig *rig, weir_fence fence)
{
	wr_token token;

	troubled.call = refuse_call;
	troubled.signal = NULL;
	rig->system->backend = &troubled;
	assert_int_equal(wr_signal_arm(rig->system, 1, &fence, 1, &token), WEIR_E_FAILED);
	rig->system->backend = &wr_backend_host;
	assert_int_equal(wr_system_outstanding(rig->system), 0);
}

BODY(g01_a_signal_that_could_not_be_enqueued_delays_no_other)
{
	weir_fence slow = store_and_record(rig, rig->a, 150 * MS), fast;
	wr_token token;

	assert_int_equal(wr_signals_reserve(rig->system, 0, 1), WEIR_OK);
	fail_to_arm(rig, slow);
	fast = rig_record(rig->b);
	assert_int_equal(wr_signal_arm(rig->system, 2, &fast, 1, &token), WEIR_OK);
	rig_until_poked(rig, 2);
	assert_int_equal(wr_fence_query(rig->system, slow), WEIR_E_BUSY);
}

BODY(g01_a_signal_stream_whose_record_was_refused_is_not_taken_for_empty)
{
	weir_fence slow = store_and_record(rig, rig->a, 100 * MS);
	struct wr_signal_stream *other = NULL, *busy;

	troubled.record = refuse_record;
	fail_to_arm(rig, slow);
	busy = rig->system->signals.draining;
	assert_non_null(busy);
	assert_int_equal(wr_signal_stream_make(rig->system, 0, &other), WEIR_OK);
	assert_ptr_not_equal(other, busy);
	wr_signal_stream_push(&rig->system->signals, &rig->system->signals.signal_streams, other);
}

BODY(g01_all_draining_signal_streams_are_looked_at)
{
	weir_fence fast = store_and_record(rig, rig->a, 0), slow;
	struct wr_signals *signals = &rig->system->signals;
	struct wr_signal_stream *through, *other = NULL;

	rig_wait(rig, fast); /* both write the same cell */
	slow = store_and_record(rig, rig->b, 150 * MS);
	fail_to_arm(rig, fast);
	through = signals->draining;
	while (rig->system->backend->query(rig->system->native, through->event))
		wr_thread_sleep(MS);
	signals->draining = NULL; /* or it would be reused at once */
	fail_to_arm(rig, slow);
	signals->draining->next = through;
	assert_int_equal(wr_signal_stream_make(rig->system, 0, &other), WEIR_OK);
	assert_ptr_equal(other, through);
	assert_non_null(signals->draining); /* the slow one is draining again */
	wr_signal_stream_push(signals, &signals->signal_streams, other);
}

/* Its flag write may still be enqueued. */
BODY(t05_a_stream_that_wrote_its_flag_but_could_not_record_is_not_reused)
{
	weir_stream *flag_seen = rig_stream(rig, "written"), *next;

	rig_wait(rig, rig_record(flag_seen));
	wr_store(&flag_seen->flag_after_record, true);
	troubled.record = refuse_record;
	rig->system->backend = &troubled;
	wr_stream_close(flag_seen);
	rig->system->backend = &wr_backend_host;
	next = rig_stream(rig, "next");
	assert_ptr_not_equal(next, flag_seen);
	wr_stream_close(next);
}

BODY(f65_a_record_that_was_refused_keeps_its_place)
{
	struct wr_event_ring *ring = wr_load(&rig->a->ring);
	weir_fence fence;

	troubled.record = refuse_record;
	rig->system->backend = &troubled;
	assert_int_equal(weir_stream_record(rig->a, &fence), WEIR_E_FAILED);
	rig->system->backend = &wr_backend_host;
	rig_wait(rig, rig_record(rig->a));
	assert_ptr_equal(wr_load(&rig->a->ring), ring);
}

static weir_status lost_when_tried(void *self, int device)
{
	(void)self;
	return wr_fail(WEIR_E_DEVICE, "device %d is lost", device);
}

BODY(e02_a_device_that_is_lost_when_its_flag_is_tried_ends_the_run)
{
	troubled.can_write_flag = lost_when_tried;
	rig->system->backend = &troubled;
	assert_int_equal(wr_flags_use(rig->system, WR_FLAGS_ALL), WEIR_E_DEVICE);
	assert_true(wr_system_failed(rig->system));
	rig->system->backend = &wr_backend_host;
}

/* A lost flag write or callback fails the system, but streams whose work goes on must not be destroyed. */
BODY(t05_a_signal_stream_in_use_when_the_system_fails_is_waited_for)
{
	weir_fence slow = store_and_record(rig, rig->a, 20 * MS);
	struct wr_signals *signals = &rig->system->signals;
	wr_token token;

	assert_int_equal(wr_signal_arm(rig->system, 1, &slow, 1, &token), WEIR_OK);
	wr_system_fail(rig->system, "a flag was lost");
	wr_system_collect(rig->system);
	assert_int_equal(wr_load(&rig->waker.poked[1]), 1);
	assert_null(signals->signal_streams);
	assert_non_null(signals->draining);
	assert_false(wr_signals_drained(rig->system));
}

/* --- any allocation fails --- */

static struct {
	int64_t n;
	bool all, through;
} sweep;

static weir_status open_all(struct rig *rig, weir_stream *streams[3])
{
	struct wr_stream_pool_spec spec = {.name = "pool", .streams = {.device = 1}, .reserved = 2, .max = 2};
	struct wr_stream_pool *pool;
	weir_status status = wr_flags_use(rig->system, WR_FLAGS_ALL);

	if (!status)
		status = wr_stream_pool_create(rig->system, &spec, &pool);
	if (!status)
		status = wr_stream_pool_take(pool, "taker", &streams[0]);
	if (!status)
		status = wr_stream_share(streams[0], "view", &streams[1]);
	if (!status)
		status = wr_stream_default(rig->system, 1, "default", &streams[2]);
	return status;
}

static weir_status split(struct rig *rig, weir_stream **out)
{
	static const uint32_t sizes[] = {1, 2};
	struct wr_partitions_spec spec = {.name = "parts", .sizes = sizes, .count = 2};
	struct wr_stream_spec of_part = {0};
	struct wr_partition *parts[3];
	uint32_t sms[3];
	weir_status status = wr_partitions_create(rig->system, &spec, parts, sms);

	of_part.partition = status ? NULL : parts[1];
	return status ? status : wr_stream_open(rig->system, &of_part, "of a part", out);
}

static weir_status signal_all(struct rig *rig, weir_stream *const streams[4])
{
	weir_fence fences[4];
	weir_status status = WEIR_OK;
	wr_token token;

	for (int i = 0; i < 4 && !status; i++) {
		wr_stream_begin_tick(streams[i]);
		status = weir_stream_record(streams[i], &fences[i]);
		if (!status)
			status = wr_flag_write(streams[i], WR_FLAGS_ALL);
	}
	if (!status)
		status = wr_signal_inline(rig->system, 3, &fences[1], 1, &token);
	if (!status)
		status = wr_signal_arm(rig->system, 1, fences, 4, &token);
	if (!status)
		status = wr_flag_arm(rig->system, 2, fences, 4, &token);
	wr_flags_poll(rig->system, wr_now());
	wr_system_collect(rig->system);
	return status == WEIR_E_UNSUPPORTED ? WEIR_E_NOMEM : status; /* no word, so no flag was written */
}

static void sweep_body(struct rig *rig)
{
	weir_stream *streams[4] = {NULL};
	weir_status status;

	wr_memory_fail_at(sweep.n, sweep.all);
	status = open_all(rig, streams);
	if (!status)
		status = split(rig, &streams[3]);
	if (!status)
		status = signal_all(rig, streams);
	wr_memory_fail_at(-1, false);
	assert_true(!status || status == WEIR_E_NOMEM);
	sweep.through = !status;
	for (int i = 0; i < 4 && !status; i++) {
		wr_stream_close(streams[i]);
		while (!wr_stream_idle(streams[i]))
			wr_thread_yield();
	}
	for (int64_t end = wr_now() + 10000 * (int64_t)MS; wr_flags_armed(rig->system) && wr_now() < end;)
		wr_flags_poll(rig->system, wr_now());
	assert_int_equal(wr_flags_armed(rig->system), 0);
}

static void f40_whatever_allocation_fails_nothing_is_lost(void **state)
{
	(void)state;
	for (int all = 0; all < 2; all++) {
		sweep.through = false;
		for (sweep.n = 0; !sweep.through && sweep.n < 3000; sweep.n += STEP) {
			sweep.all = all;
			rig_run(sweep_body, 7);
		}
		assert_true(sweep.through);
	}
}

/* --- any call of the backend is refused --- */

static struct {
	int n, calls; /* call number n is refused */
	bool lost;    /* the call is not refused; the device is lost before it */
	weir_stream *stream;
} refusal;

static void lose_device(void *self)
{
	weir_stream *stream = refusal.stream;
	void *event = wr_load(&stream->ring)->events[0].native;

	assert_int_equal(wr_backend_host.launch(self, 0, wr_load(&stream->native), &rig_broken, NULL, 0),
			 WEIR_OK);
	while (wr_backend_host.query(self, event) != WEIR_E_DEVICE)
		wr_thread_yield();
}

static bool is_refused(void *self)
{
	if (refusal.calls++ != refusal.n)
		return false;
	if (refusal.lost)
		lose_device(self);
	return !refusal.lost;
}

static weir_status refusal_text(void)
{
	return wr_fail(WEIR_E_FAILED, "call %d is refused", refusal.n);
}

#define REFUSABLE(name, parameters, arguments)                                                               \
	static weir_status may_##name parameters                                                             \
	{                                                                                                    \
		return is_refused(self) ? refusal_text() : wr_backend_host.name arguments;                   \
	}

REFUSABLE(stream_create, (void *self, int device, unsigned flags, int priority, void *partition, void **out),
	  (self, device, flags, priority, partition, out))
REFUSABLE(event_create, (void *self, int device, void **out), (self, device, out))
REFUSABLE(record, (void *self, int device, void *stream, void *event), (self, device, stream, event))
REFUSABLE(wait, (void *self, int device, void *stream, void *event), (self, device, stream, event))
REFUSABLE(query, (void *self, void *event), (self, event))
REFUSABLE(call, (void *self, int device, void *stream, void (*fn)(void *arg), void *arg),
	  (self, device, stream, fn, arg))
REFUSABLE(write_flag, (void *self, int device, void *stream, _Atomic uint32_t *word, uint32_t value),
	  (self, device, stream, word, value))
REFUSABLE(alloc, (void *self, int device, size_t bytes, void **out), (self, device, bytes, out))

static void refuse_at_n(void)
{
	troubled = wr_backend_host;
	troubled.stream_create = may_stream_create;
	troubled.event_create = may_event_create;
	troubled.record = may_record;
	troubled.wait = may_wait;
	troubled.query = may_query;
	troubled.call = may_call;
	troubled.write_flag = may_write_flag;
	troubled.alloc = may_alloc;
}

static weir_status work_and_signal(struct rig *rig, weir_stream *view)
{
	weir_stream *streams[4] = {rig->a, view, rig->b, rig->c};
	weir_status status = WEIR_OK;
	weir_fence fence;

	for (int round = 0; round < 2 && !status; round++) {
		status = signal_all(rig, streams);
		if (!status)
			status = weir_stream_record(rig->b, &fence);
		if (!status)
			status = weir_stream_wait(view, fence);
	}
	return status == WEIR_E_NOMEM ? WEIR_OK : status; /* armed without a flag */
}

static void refusal_body(struct rig *rig)
{
	weir_stream *own = NULL, *view = NULL;
	weir_status status;

	refuse_at_n();
	refusal.stream = rig->a;
	rig->system->backend = &troubled;
	status = wr_flags_use(rig->system, WR_FLAGS_ALL);
	if (!status)
		status = wr_stream_open(rig->system, &(struct wr_stream_spec){.priority = 1}, "own", &own);
	if (!status)
		status = wr_stream_share(own, "view", &view);
	if (!status)
		status = work_and_signal(rig, view);
	wr_stream_close(view);
	wr_stream_close(own);
	assert_true(refusal.lost || !wr_system_failed(rig->system));
	wr_system_detach(rig->system);
	assert_int_equal(wr_flags_armed(rig->system) + wr_system_outstanding(rig->system), 0);
	assert_int_equal(wr_load(&rig->waker.live), 0);
}

static void f65_whatever_call_is_refused_nothing_is_lost(void **state)
{
	(void)state;
	for (int lost = 0; lost < 2; lost++)
		for (int n = 0; n == 0 || refusal.calls > refusal.n; n += n < 4 || n > 250 ? STEP : 50) {
			refusal.n = n;
			refusal.calls = 0;
			refusal.lost = lost;
			rig_run(refusal_body, 7);
		}
}

/* --- streams are closed while host workers still run their work --- */

static int return_0(const void *arguments)
{
	(void)arguments;
	return 0;
}

static const weir_kernel idle_kernel = {.size = sizeof(weir_kernel), .name = "idle", .host = return_0};

static void break_and_leave(struct rig *rig)
{
	weir_stream *streams[3] = {rig->a, rig->b, rig->c};

	for (int i = 0; i < 9; i++)
		if (weir_stream_launch(streams[i % 3], i == 3 ? &rig_broken : &idle_kernel, NULL, 0))
			break; /* the device was lost before all of it was enqueued */
}

static void e02_a_stream_with_work_of_a_lost_device_is_closed_after_its_host_worker_has_left_it(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 300; seed++)
		rig_run(break_and_leave, seed);
}

/* --- auto --- */

static void e02_auto_takes_the_host_only_where_there_is_no_device(void **state)
{
	const struct wr_system_options options = {.backend = "auto", .host_threads = 1};
	struct wr_system system = {0};

	(void)state;
	assert_int_equal(wr_device_open_or_host(&system, WEIR_E_DEVICE, &options), WEIR_E_DEVICE);
	assert_int_equal(wr_device_open_or_host(&system, WEIR_E_NOMEM, &options), WEIR_E_NOMEM);
	assert_int_equal(wr_device_open_or_host(&system, WEIR_OK, &options), WEIR_OK);
	assert_null(system.native);
	assert_int_equal(wr_device_open_or_host(&system, WEIR_E_UNSUPPORTED, &options), WEIR_OK);
	assert_string_equal(system.where, "host");
	system.backend->close(system.native);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(g03_a_captured_stream_gives_no_fence),
		cmocka_unit_test(g03_a_stream_that_is_closed_in_a_capture_is_not_given_out_again),
		cmocka_unit_test(g03_a_stream_whose_fence_is_complete_is_not_queried),
		cmocka_unit_test(t05_a_stream_that_wrote_its_flag_but_could_not_record_is_not_reused),
		cmocka_unit_test(f65_a_record_that_was_refused_keeps_its_place),
		cmocka_unit_test(e02_a_device_that_is_lost_when_its_flag_is_tried_ends_the_run),
		cmocka_unit_test(f40_when_memory_is_used_up_larger_blocks_serve_and_stay_what_they_are),
		cmocka_unit_test(g01_a_signal_that_could_not_be_enqueued_delays_no_other),
		cmocka_unit_test(g01_a_signal_stream_whose_record_was_refused_is_not_taken_for_empty),
		cmocka_unit_test(g01_all_draining_signal_streams_are_looked_at),
		cmocka_unit_test(t05_a_signal_stream_in_use_when_the_system_fails_is_waited_for),
		cmocka_unit_test(f40_whatever_allocation_fails_nothing_is_lost),
		cmocka_unit_test(f65_whatever_call_is_refused_nothing_is_lost),
		cmocka_unit_test(
			e02_a_stream_with_work_of_a_lost_device_is_closed_after_its_host_worker_has_left_it),
		cmocka_unit_test(e02_auto_takes_the_host_only_where_there_is_no_device),
		cmocka_unit_test(t04_work_is_over_only_when_the_device_says_so),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
