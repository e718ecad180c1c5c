/* What the owner of a stream is told when a call cannot be done, and what stays as it was then. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/status.h"
#include "base/thread.h"
#include "rig.h"
#include "test.h"
#include "tests/calls.h"

#define MS     1000000
#define SECOND (1000 * (int64_t)MS)

/* Work without a cell: that of two streams may run at once. */
static void sleep_on(weir_stream *stream, int64_t ns)
{
	struct rig_work work = {.ns = ns};

	assert_int_equal(weir_stream_launch(stream, &rig_sleep, &work, sizeof work), WEIR_OK);
}

/* --- calls that are refused --- */

static void *call_without_stream(void *arg)
{
	char *said = arg;

	if (copy_bytes(NULL, NULL, NULL, 0) == WEIR_E_INVALID)
		snprintf(said, 128, "%s", weir_last_error());
	return NULL;
}

static void t01_a_call_without_a_stream_includes_the_last_error_of_its_thread(void **state)
{
	char said[128] = "";
	pthread_t thread;

	(void)state; /* a new thread has no error yet */
	assert_int_equal(pthread_create(&thread, NULL, call_without_stream, said), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_string_equal(said, "a stream is needed, NULL was given; this thread's last error: none");
	wr_fail(WEIR_E_NOMEM, "no stream is left");
	call_without_stream(said);
	assert_string_equal(
		said, "a stream is needed, NULL was given; this thread's last error: no stream is left");
}

static void a_backend_that_is_unknown_is_named_with_those_that_are_known(void **state)
{
	struct wr_system_options options = {.backend = "gpu"};
	struct wr_system *system = NULL;

	(void)state;
	assert_int_equal(wr_system_create(&system, &options), WEIR_E_INVALID);
	assert_string_equal(weir_last_error(), "backend 'gpu' is unknown: use auto, cuda, host or sim");
	assert_null(system);
}

RIG_BODY(t01_a_kernel_of_another_size_is_refused_and_leaves_the_stream_clean)
{
	const weir_kernel foreign = {.size = 8, .name = "foreign"};

	wr_stream_take_operations(rig->a);
	assert_int_equal(weir_stream_launch(rig->a, &foreign, NULL, 0), WEIR_E_INVALID);
	assert_string_equal(weir_last_error(), "weir_kernel: its size is 8: set .size = sizeof(weir_kernel)");
	assert_false(wr_stream_dirty(rig->a));
	assert_int_equal(wr_stream_take_operations(rig->a), 0);
}

RIG_BODY(t02_a_fence_that_was_never_recorded_is_named)
{
	uint64_t id = weir_stream_id(rig->a);
	weir_fence of_no_stream = {id & ~(UINT64_C(0xffffffff) << 16), 1}, future = {id, 1000};
	char expected[80];

	snprintf(expected, sizeof expected, "fence {%#llx, 1} was never recorded in this graph",
		 (unsigned long long)of_no_stream.stream);
	assert_int_equal(wr_fence_query(rig->system, of_no_stream), WEIR_E_INVALID);
	assert_string_equal(weir_last_error(), expected);
	assert_int_equal(wr_fence_query(rig->system, future), WEIR_E_INVALID);
	assert_string_equal(weir_last_error(), "timeline value 1000 of the stream of 'a' was never recorded");
}

/* cuda has the same handle for the default stream of a device in every system. */
RIG_BODY(t06_streams_of_two_systems_are_two_queues_whatever_their_handles)
{
	struct wr_system_options options = {.backend = "host"};
	struct wr_system *other;
	weir_stream *stream;
	void *native;

	if (!rig_is("host"))
		return;
	assert_int_equal(wr_system_create(&other, &options), WEIR_OK);
	assert_int_equal(wr_stream_open(other, &(struct wr_stream_spec){0}, "other", &stream), WEIR_OK);
	native = wr_load(&stream->native);
	wr_store(&stream->native, wr_load(&rig->a->native));
	assert_false(weir_stream_same(rig->a, stream));
	wr_store(&stream->native, native);
	wr_stream_close(stream);
	assert_int_equal(wr_system_destroy(other), WEIR_OK);
}

/* --- events --- */

static weir_status refusal; /* of a new event */
static int events_left;     /* that are still made */
static int events_made;     /* and not destroyed */

static weir_status create_event(void *self, int device, void **out)
{
	if (!events_left)
		return wr_fail(refusal, "no event is left");
	events_left--;
	events_made++;
	return (rig_is("sim") ? &wr_backend_sim : &wr_backend_host)->event_create(self, device, out);
}

static void destroy_event(void *self, void *event)
{
	events_made--;
	(rig_is("sim") ? &wr_backend_sim : &wr_backend_host)->event_destroy(self, event);
}

static void refuse_events(struct rig *rig, int after, weir_status status)
{
	struct wr_backend *backend = rig_own_backend(rig);

	backend->event_create = create_event;
	backend->event_destroy = destroy_event;
	refusal = status;
	events_left = after;
	events_made = 0;
}

static uint64_t ring_size(weir_stream *stream)
{
	return wr_load(&stream->ring)->size;
}

RIG_BODY(t02_a_stream_reserves_the_events_it_lacks_and_1024_at_most)
{
	weir_fence before = rig_record(rig->a);

	assert_int_equal(wr_stream_reserve(rig->a, 100), WEIR_OK);
	assert_int_equal(ring_size(rig->a), WR_EVENTS);
	assert_int_equal(wr_stream_reserve(rig->a, WR_EVENTS + 1), WEIR_OK);
	assert_int_equal(ring_size(rig->a), 2 * WR_EVENTS);
	assert_int_equal(wr_stream_reserve(rig->a, 1000000), WEIR_OK);
	assert_int_equal(ring_size(rig->a), 1024);
	rig_wait(rig, before); /* its event is in the oldest ring */
	assert_int_equal(rig_record(rig->a).value, before.value + 1);
	assert_int_equal(wr_load(&rig->a->ring)->first, before.value + 1);
}

RIG_BODY(f40_events_that_cannot_be_reserved_leave_the_stream_as_it_was)
{
	refuse_events(rig, 10, WEIR_E_NOMEM);
	assert_int_equal(wr_stream_reserve(rig->a, 300), WEIR_E_NOMEM);
	assert_int_equal(events_left, 0);
	assert_int_equal(events_made, 0);
	assert_int_equal(ring_size(rig->a), WR_EVENTS);
	assert_false(wr_system_failed(rig->system));
	rig_wait(rig, rig_record(rig->a));
}

RIG_BODY(e01_a_device_error_while_events_are_reserved_fails_the_system)
{
	assert_null(wr_system_accused(rig->system));
	refuse_events(rig, 0, WEIR_E_DEVICE);
	assert_int_equal(wr_stream_reserve(rig->a, 300), WEIR_E_DEVICE);
	assert_string_equal(weir_last_error(), "no event is left");
	assert_string_equal(wr_system_failure(rig->system), "no event is left");
	assert_null(wr_system_accused(rig->system));
}

/* Records as many values as the ring has events, behind work that takes ns; the last fence. */
static weir_fence fill_ring(weir_stream *stream, int64_t ns)
{
	weir_fence last = {0, 0};

	sleep_on(stream, ns);
	for (uint64_t n = ring_size(stream); n; n--)
		last = rig_record(stream);
	return last;
}

RIG_BODY(f40_a_record_without_an_event_is_refused_and_can_be_repeated)
{
	weir_fence last = fill_ring(rig->a, SECOND / 5), none = {0, 0};

	refuse_events(rig, 0, WEIR_E_NOMEM);
	assert_int_equal(weir_stream_record(rig->a, &none), WEIR_E_NOMEM);
	assert_int_equal(none.value, 0);
	assert_int_equal(wr_stream_submitted(rig->a), last.value);
	rig_wait(rig, last);
	assert_int_equal(rig_record(rig->a).value, last.value + 1);
	assert_int_equal(events_made, 0);
}

RIG_BODY(t05_a_stream_is_not_free_while_the_event_for_its_end_stands_for_pending_work)
{
	weir_fence last = fill_ring(rig->a, SECOND / 5);

	sleep_on(rig->a, 0);
	assert_false(wr_stream_may_free(rig->a));
	assert_int_equal(wr_stream_submitted(rig->a), last.value); /* no record over the pending one */
	assert_true(wr_stream_dirty(rig->a));
	rig_wait(rig, last);
	wr_stream_may_free(rig->a);
	assert_int_equal(wr_stream_submitted(rig->a), last.value + 1);
	assert_false(wr_stream_dirty(rig->a));
	rig_wait(rig, (weir_fence){last.stream, last.value + 1});
	assert_true(wr_stream_may_free(rig->a));
}

RIG_BODY(t02_the_age_of_work_whose_event_was_recorded_again_is_not_told)
{
	weir_stream *view = rig_share(rig->a);
	weir_fence first = rig_record(view), none = {0, 0};
	int64_t age = -1;

	rig_wait(rig, first);
	wr_thread_sleep(MS);
	assert_string_equal(wr_fence_producer(rig->system, first, &age), "view");
	assert_true(age >= MS);
	for (int i = 0; i < WR_EVENTS_SHARED; i++)
		rig_wait(rig, rig_record(view));
	wr_thread_sleep(MS);
	assert_string_equal(wr_fence_producer(rig->system, first, &age), "view");
	assert_int_equal(age, 0);
	assert_string_equal(wr_fence_producer(rig->system, none, NULL), "?");
	wr_stream_close(view);
}

/* --- native streams of the program --- */

static int waits;

static weir_status count_wait(void *self, int device, void *stream, void *event)
{
	(void)self;
	(void)device;
	(void)stream;
	(void)event;
	waits++;
	return WEIR_OK;
}

RIG_BODY(t02_a_native_stream_waits_for_pending_work_alone)
{
	const struct wr_backend *backend = rig->system->backend;
	struct wr_backend *native = rig_own_backend(rig);
	struct wr_event *event;
	weir_fence fence;

	native->native_streams = true;
	native->wait = count_wait;
	waits = 0;
	sleep_on(rig->a, SECOND / 5);
	fence = rig_record(rig->a);
	event = wr_stream_event(rig->a, fence.value);
	assert_int_equal(wr_fence_enqueue(rig->system, fence, 0, NULL), WEIR_OK);
	assert_int_equal(waits, 1);
	wr_store(&event->value, fence.value + WR_EVENTS); /* as if it was recorded again: only when over */
	assert_int_equal(wr_fence_enqueue(rig->system, fence, 0, NULL), WEIR_OK);
	assert_int_equal(waits, 1);
	wr_store(&event->value, fence.value);
	assert_int_equal(wr_fence_enqueue(rig->system, fence, -1, NULL), WEIR_E_INVALID);
	assert_string_equal(weir_last_error(), "device -1: this machine has 2");
	assert_int_equal(wr_fence_enqueue(rig->system, fence, 2, NULL), WEIR_E_INVALID);
	assert_string_equal(weir_last_error(), "device 2: this machine has 2");
	rig_wait(rig, fence);
	assert_int_equal(wr_fence_enqueue(rig->system, fence, 0, NULL), WEIR_OK);
	assert_int_equal(waits, 1);
	rig->system->backend = backend;
}

/* --- work that may still run --- */

RIG_BODY(t04_only_fences_of_this_system_are_known_to_be_complete)
{
	weir_fence none = {0, 0}, foreign = {UINT64_MAX, 1}, pending, recycled;
	weir_stream *stream = rig_stream(rig, "closed");

	recycled = rig_record(stream);
	rig_wait(rig, recycled);
	wr_stream_close(stream);
	stream = rig_stream(rig, "next");
	assert_int_not_equal(weir_stream_id(stream), recycled.stream);
	sleep_on(rig->a, SECOND / 20);
	pending = rig_record(rig->a);
	assert_true(wr_fence_known_complete(rig->system, none));
	assert_true(wr_fence_known_complete(rig->system, recycled));
	assert_false(wr_fence_known_complete(rig->system, foreign));
	assert_false(wr_fence_known_complete(rig->system, pending));
	rig_wait(rig, pending);
	assert_true(wr_fence_known_complete(rig->system, pending));
	wr_stream_close(stream);
}

RIG_BODY(e02_work_of_a_failed_system_keeps_its_memory_as_long_as_its_device_goes_on)
{
	int64_t deadline = wr_now() + 10 * SECOND;
	struct wr_event *event;
	weir_fence fence;

	sleep_on(rig->a, SECOND / 5);
	fence = rig_record(rig->a);
	event = wr_stream_event(rig->a, fence.value);
	wr_system_fail(rig->system, "a callback is lost");
	assert_int_equal(wr_fence_query(rig->system, fence), WEIR_E_DEVICE);
	assert_false(wr_fence_may_free(rig->system, fence));
	wr_store(&event->value, fence.value + WR_EVENTS); /* as if it was recorded again: only when over */
	assert_true(wr_fence_may_free(rig->system, fence));
	wr_store(&event->value, fence.value);
	assert_false(wr_fence_may_free(rig->system, fence));
	while (!wr_fence_may_free(rig->system, fence) && wr_now() < deadline)
		wr_thread_sleep(MS);
	assert_true(wr_fence_may_free(rig->system, fence));
	assert_int_equal(wr_fence_query(rig->system, fence), WEIR_E_DEVICE);
}

static struct rig *dropping;

static void release_and_drop_refs(struct wr_deferred_free *entry)
{
	rig_count_release(entry);
	wr_deferred_frees_drop_refs(dropping->system, &dropping->waker.waker);
}

/* When the references are dropped one entry is off the list as incomplete, one as it has a destructor. */
RIG_BODY(s04_references_that_are_dropped_while_entries_are_off_the_list_are_dropped_once)
{
	struct rig_payload pending, destroyed, done;
	int live = wr_load(&rig->waker.live);
	weir_fence fences[2];

	rig_meet(rig, rig->a, 2); /* ends when c meets it */
	fences[0] = rig_record(rig->a);
	sleep_on(rig->b, SECOND / 20);
	fences[1] = rig_record(rig->b);
	wr_thread_set_local(rig); /* as a worker, which alone takes references */
	assert_false(rig_defer(rig, &pending, fences[0], false));
	assert_false(rig_defer(rig, &destroyed, fences[1], true));
	assert_false(rig_defer(rig, &done, fences[1], false));
	wr_thread_set_local(NULL);
	assert_int_equal(wr_load(&rig->waker.live), live + 3);
	dropping = rig;
	done.retired.release = release_and_drop_refs;
	rig_wait(rig, fences[1]);
	wr_system_run_deferred_frees(rig->system, false);
	assert_int_equal(done.released, 1);
	assert_int_equal(destroyed.released, 0);
	assert_int_equal(pending.released, 0);
	assert_int_equal(wr_load(&rig->waker.live), live);
	rig_meet(rig, rig->c, 2);
	rig_wait(rig, fences[0]);
	wr_system_run_deferred_frees(rig->system, true);
	assert_int_equal(pending.released, 1);
	assert_int_equal(destroyed.released, 1);
	assert_int_equal(wr_load(&rig->waker.live), live);
}

/* --- the report of a failure --- */

static void fail_with_suspects(struct rig *rig, size_t length)
{
	static const char untouched[sizeof rig->system->accused];
	char what[2048];

	memset(what, 'x', length);
	what[length] = '\0';
	sleep_on(rig->a, SECOND / 20);
	rig_record(rig->a);
	sleep_on(rig->b, SECOND / 20);
	rig_record(rig->b);
	wr_system_fail(rig->system, what);
	assert_int_equal(strlen(wr_system_failure(rig->system)), sizeof rig->system->failure - 1);
	assert_memory_equal(rig->system->accused, untouched, sizeof untouched); /* it follows the report */
}

RIG_BODY(e03_of_many_suspects_the_oldest_are_named_and_the_others_counted)
{
	static const char *const names[] = {"s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9"};
	const char *text;

	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		weir_stream *stream = rig_stream(rig, names[i]);

		sleep_on(stream, SECOND / 10);
		rig_record(stream);
		wr_thread_sleep(10000);
	}
	wr_system_fail(rig->system, "the device is gone");
	text = wr_system_failure(rig->system);
	assert_non_null(strstr(text, "the device is gone; suspects, oldest first: s0 ("));
	assert_non_null(strstr(text, ", s7 ("));
	assert_null(strstr(text, "s8"));
	assert_string_equal(text + strlen(text) - strlen(" and 2 more"), " and 2 more");
}

RIG_BODY(e03_a_report_without_room_for_its_suspects_is_cut)
{
	fail_with_suspects(rig, 2000);
	assert_null(strstr(wr_system_failure(rig->system), ";"));
}

RIG_BODY(e03_a_report_is_cut_within_a_suspect)
{
	fail_with_suspects(rig, sizeof rig->system->failure - 13);
	assert_string_equal(strchr(wr_system_failure(rig->system), ';'), "; suspects, ");
}

RIG_BODY(e02_a_failure_kicks_the_loop_at_once)
{
	int kicked = wr_load(&rig->waker.kicked);

	wr_system_fail(rig->system, "lost");
	assert_int_equal(wr_load(&rig->waker.kicked), kicked + 1);
}

/* --- events of the device --- */

/* An older record on a busy stream is reached after the latest one. */
RIG_BODY(t02_an_event_is_in_the_state_of_its_latest_record)
{
	struct wr_system *system = rig->system;
	const struct wr_backend *backend = system->backend;
	void *event = NULL;

	assert_int_equal(backend->event_create(system->native, 0, &event), WEIR_OK);
	sleep_on(rig->a, 20 * MS);
	assert_int_equal(wr_device_record(system, 0, wr_load(&rig->a->native), event), WEIR_OK);
	assert_int_equal(wr_device_record(system, 0, wr_load(&rig->b->native), event), WEIR_OK);
	rig_wait(rig, rig_record(rig->b));
	assert_int_equal(wr_device_query(system, event), WEIR_OK);
	rig_wait(rig, rig_record(rig->a));
	assert_int_equal(wr_device_query(system, event), WEIR_OK);
	backend->event_destroy(system->native, event);
}

/* --- signals --- */

static weir_status refuse_wait(void *self, int device, void *stream, void *event)
{
	(void)self;
	(void)device;
	(void)stream;
	(void)event;
	return WEIR_E_NOMEM;
}

RIG_BODY(g02_a_signal_that_could_not_be_armed_leaves_its_place)
{
	struct wr_backend *backend = rig_own_backend(rig);
	weir_status (*wait)(void *, int, void *, void *) = backend->wait;
	weir_fence fence;
	wr_token token;

	rig->system->signals.bound = 1;
	sleep_on(rig->a, 10 * MS);
	fence = rig_record(rig->a);
	backend->signal = NULL;
	backend->wait = refuse_wait;
	assert_int_equal(wr_signal_arm(rig->system, 1, &fence, 1, &token), WEIR_E_NOMEM);
	backend->wait = wait;
	assert_int_equal(wr_signal_arm(rig->system, 1, &fence, 1, &token), WEIR_OK);
	rig_until_none_outstanding(rig);
}

static weir_status lose_wait(void *self, int device, void *stream, void *event)
{
	(void)self;
	(void)device;
	(void)stream;
	(void)event;
	return WEIR_OK;
}

static weir_status lose_flag(void *self, int device, void *stream, _Atomic uint32_t *word, uint32_t value)
{
	(void)self;
	(void)device;
	(void)stream;
	(void)word;
	(void)value;
	return WEIR_OK;
}

/* The flag of the first signal says nothing of the second one, which a broken device fires early. */
RIG_BODY(g02_each_signal_is_proven_by_a_flag_of_its_own)
{
	struct wr_backend *backend = rig_own_backend(rig);
	weir_fence fence = rig_record(rig->a);

	assert_int_equal(wr_signals_reserve(rig->system, 0, 1), WEIR_OK);
	rig_arm(rig, 1, fence);
	rig_collect_until_poked(rig, 1);
	rig_until_none_outstanding(rig);
	sleep_on(rig->a, SECOND);
	fence = rig_record(rig->a);
	backend->signal = NULL;
	backend->wait = lose_wait;
	backend->write_flag = lose_flag;
	rig_arm(rig, 2, fence);
	rig_collect_until_poked(rig, 2);
	wr_system_collect(rig->system);
	assert_true(wr_load(&rig->a->completed) < fence.value);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(e02_a_failure_kicks_the_loop_at_once),
		cmocka_unit_test(t02_an_event_is_in_the_state_of_its_latest_record),
		cmocka_unit_test(g02_a_signal_that_could_not_be_armed_leaves_its_place),
		cmocka_unit_test(g02_each_signal_is_proven_by_a_flag_of_its_own),
		cmocka_unit_test(t01_a_call_without_a_stream_includes_the_last_error_of_its_thread),
		cmocka_unit_test(a_backend_that_is_unknown_is_named_with_those_that_are_known),
		cmocka_unit_test(t01_a_kernel_of_another_size_is_refused_and_leaves_the_stream_clean),
		cmocka_unit_test(t02_a_fence_that_was_never_recorded_is_named),
		cmocka_unit_test(t06_streams_of_two_systems_are_two_queues_whatever_their_handles),
		cmocka_unit_test(t02_a_stream_reserves_the_events_it_lacks_and_1024_at_most),
		cmocka_unit_test(f40_events_that_cannot_be_reserved_leave_the_stream_as_it_was),
		cmocka_unit_test(e01_a_device_error_while_events_are_reserved_fails_the_system),
		cmocka_unit_test(f40_a_record_without_an_event_is_refused_and_can_be_repeated),
		cmocka_unit_test(
			t05_a_stream_is_not_free_while_the_event_for_its_end_stands_for_pending_work),
		cmocka_unit_test(t02_the_age_of_work_whose_event_was_recorded_again_is_not_told),
		cmocka_unit_test(t02_a_native_stream_waits_for_pending_work_alone),
		cmocka_unit_test(t04_only_fences_of_this_system_are_known_to_be_complete),
		cmocka_unit_test(e02_work_of_a_failed_system_keeps_its_memory_as_long_as_its_device_goes_on),
		cmocka_unit_test(
			s04_references_that_are_dropped_while_entries_are_off_the_list_are_dropped_once),
		cmocka_unit_test(e03_of_many_suspects_the_oldest_are_named_and_the_others_counted),
		cmocka_unit_test(e03_a_report_without_room_for_its_suspects_is_cut),
		cmocka_unit_test(e03_a_report_is_cut_within_a_suspect),
	};

	rig_backend = argc > 1 ? argv[1] : "host";
	return cmocka_run_group_tests_name("streams/owner", tests, NULL, NULL);
}
