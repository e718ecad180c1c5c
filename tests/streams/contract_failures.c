/* The contract of a device that is lost, and of what `sim` can lose (E1 to E4, F10 to F13, F60, F61). */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/status.h"
#include "contract.h"
#include "tests/calls.h"

#define MS     1000000
#define SECOND (1000 * (int64_t)MS)

/* --- failure: loses the device --- */

static void fail_device(struct rig *rig)
{
	int64_t deadline = wr_now() + 20 * SECOND;
	weir_fence fence;
	weir_status status;

	assert_int_equal(weir_stream_launch(rig->b, &rig_broken, NULL, 0), WEIR_OK);
	if (weir_stream_record(rig->b, &fence))
		return; /* the fault was found first */
	while ((status = wr_fence_query(rig->system, fence)) == WEIR_E_BUSY && wr_now() < deadline)
		wr_thread_sleep(100000);
	assert_int_equal(status, WEIR_E_DEVICE);
}

RIG_BODY(f60_a_fault_is_a_named_failure)
{
	weir_fence done = rig_record(rig->a), fence;
	void *memory;

	rig_wait(rig, done);
	assert_string_equal(wr_system_failure(rig->system), "");
	fail_device(rig);
	assert_true(wr_system_failed(rig->system));
	assert_non_null(strstr(wr_system_failure(rig->system), rig_is("cuda") ? "CUDA" : "broken"));
	assert_string_equal(wr_system_accused(rig->system), "b");
	assert_int_equal(wr_fence_query(rig->system, done), WEIR_OK); /* the result is remembered */
	assert_int_equal(weir_stream_record(rig->a, &fence), WEIR_E_DEVICE);
	assert_int_equal(copy_bytes(rig->a, rig->copy, rig->cell, 1), WEIR_E_DEVICE);
	assert_int_equal(wr_system_alloc(rig->system, 0, 1, &memory), WEIR_E_DEVICE);
	assert_string_equal(weir_last_error(), wr_system_failure(rig->system));
}

RIG_BODY(f60_t13_a_fault_in_a_replayed_kernel_names_its_stream)
{
	struct wr_capture *capture = NULL;
	struct wr_executable *executable = NULL;
	int64_t deadline = wr_now() + 20 * SECOND;
	weir_fence fence;

	assert_int_equal(wr_capture_create(rig->system, &capture), WEIR_OK);
	assert_int_equal(wr_capture_begin(capture, &rig->b, 1), WEIR_OK);
	assert_int_equal(weir_stream_launch(rig->b, &rig_broken, NULL, 0), WEIR_OK);
	assert_int_equal(wr_capture_end(capture, &executable), WEIR_OK);
	assert_int_equal(wr_executable_launch(executable, rig->b), WEIR_OK);
	if (!weir_stream_record(rig->b, &fence))
		while (wr_fence_query(rig->system, fence) == WEIR_E_BUSY && wr_now() < deadline)
			wr_thread_sleep(100000);
	assert_true(wr_system_failed(rig->system));
	assert_non_null(strstr(wr_system_failure(rig->system), rig_is("cuda") ? "CUDA" : "broken"));
	assert_string_equal(wr_system_accused(rig->system), "b");
	wr_executable_drop(executable);
	wr_capture_destroy(capture);
}

RIG_BODY(e3_two_suspects_are_named_and_none_accused)
{
	rig_store(rig, rig->a, 1, 10 * MS);
	rig_record(rig->a);
	fail_device(rig);
	assert_null(wr_system_accused(rig->system));
	assert_non_null(strstr(wr_system_failure(rig->system), "suspects, oldest first: a ("));
	assert_non_null(strstr(wr_system_failure(rig->system), ", b ("));
}

RIG_BODY(e1_a_caller_whose_own_call_failed_queries_the_device)
{
	int64_t until = wr_now() + 2 * SECOND;

	rig_store(rig, rig->a, 1, 0);
	rig_wait(rig, rig_record(rig->a));
	assert_true(wr_system_check_device(rig->system));
	assert_int_equal(weir_stream_launch(rig->b, &rig_broken, NULL, 0), WEIR_OK);
	while (wr_system_check_device(rig->system) && wr_now() < until)
		wr_thread_sleep(MS);
	assert_true(wr_system_failed(rig->system));
	assert_string_equal(wr_system_accused(rig->system), "b");
}

RIG_BODY(f61_nothing_succeeds_after_a_fault)
{
	weir_fence complete, fence;

	rig_store(rig, rig->a, 1, 0);
	complete = rig_record(rig->a);
	wr_thread_sleep(100 * MS); /* complete, but not queried yet */
	assert_int_equal(weir_stream_launch(rig->b, &rig_broken, NULL, 0), WEIR_OK);
	(void)weir_stream_record(rig->b, &fence);
	wr_thread_sleep(500 * MS);
	assert_int_equal(wr_fence_query(rig->system, complete), WEIR_E_DEVICE);
	assert_null(wr_system_accused(rig->system));
}

RIG_BODY(f10_a_failure_pokes_each_waiting_entity_once)
{
	weir_fence fence;
	wr_token token;
	int64_t next;

	rig->system->signals.bound = 2;
	rig_store(rig, rig->a, 1, 50 * MS);
	fence = rig_record(rig->a);
	rig_arm(rig, 1, fence);
	wr_signal_cancel(rig->system, rig_arm(rig, 2, fence));
	assert_int_equal(wr_signal_arm(rig->system, 3, &fence, 1, &token), WEIR_E_BUSY);
	assert_int_equal(rig->waker.live, 1);
	fail_device(rig);
	while (!wr_system_watch(rig->system, wr_now() + SECOND, &next))
		wr_thread_sleep(MS);
	assert_int_equal(rig->waker.poked[1], 1);
	assert_int_equal(rig->waker.poked[2], 0);
	assert_int_equal(rig->waker.poked[3], 1);
	assert_int_equal(rig->waker.live, 0);
	assert_int_equal(wr_system_outstanding(rig->system), 0);
	wr_system_collect(rig->system);
	assert_int_equal(wr_signal_arm(rig->system, 1, &fence, 1, &token), WEIR_E_DEVICE);
}

RIG_BODY(t4_payloads_come_back_after_a_failure)
{
	struct rig_payload payload;
	weir_fence fence;

	rig_store(rig, rig->a, 1, 10 * MS);
	fence = rig_record(rig->a);
	assert_false(rig_defer(rig, &payload, fence, true));
	fail_device(rig);
	wr_thread_sleep(50 * MS); /* the host backend finishes other streams' kernels */
	wr_system_run_deferred_frees(rig->system, true);
	assert_int_equal(payload.released, 1);
}

/* --- sim only --- */

RIG_BODY(f12_a_callback_that_does_not_come_is_found)
{
	struct wr_sim_knobs knobs = {.lost = 1000};
	int64_t next, begun = wr_now();
	weir_fence fence;

	if (!rig_is("sim"))
		return;
	wr_system_set_knobs(rig->system, &knobs);
	rig_store(rig, rig->a, 1, MS);
	fence = rig_record(rig->a);
	rig_arm(rig, 1, fence);
	while (!wr_system_watch(rig->system, wr_now(), &next))
		wr_thread_sleep(next - wr_now());
	assert_true(wr_now() - begun < 3 * SECOND);
	assert_non_null(strstr(wr_system_failure(rig->system), "callback lost"));
	assert_non_null(strstr(wr_system_failure(rig->system), "'a'"));
	assert_int_equal(rig->waker.poked[1], 1);
}

static void *refused_event;

static weir_status record_unless_refused(void *self, int device, void *stream, void *event)
{
	return event == refused_event ? wr_fail(WEIR_E_FAILED, "refused")
				      : wr_backend_sim.record(self, device, stream, event);
}

static void refuse_records_of_the_first(struct wr_signal *signal, void *arg)
{
	(void)arg;
	if (wr_load(&signal->token) && signal->entity == 1)
		refused_event = signal->signal_stream->event;
}

/* The signal of 'b' is examined before that of 'a'. */
RIG_BODY(f12_a_lost_callback_is_named_whatever_fails_after_it)
{
	struct wr_sim_knobs knobs = {.lost = 1000};
	struct wr_backend refusing = wr_backend_sim;
	int64_t next;

	if (!rig_is("sim"))
		return;
	refusing.record = record_unless_refused;
	wr_system_set_knobs(rig->system, &knobs);
	rig_arm(rig, 1, rig_record(rig->a));
	rig_arm(rig, 2, rig_record(rig->b));
	wr_signals_each(rig->system, refuse_records_of_the_first, NULL);
	rig->system->backend = &refusing;
	while (!wr_system_watch(rig->system, wr_now(), &next))
		wr_thread_sleep(next - wr_now());
	rig->system->backend = &wr_backend_sim;
	assert_non_null(strstr(wr_system_failure(rig->system), "callback lost: the work of 'b'"));
}

RIG_BODY(f13_a_slow_callback_is_not_lost)
{
	struct wr_sim_knobs knobs = {.call_min = 900 * MS, .call_max = 900 * MS};
	int64_t next;

	if (!rig_is("sim"))
		return;
	wr_system_set_knobs(rig->system, &knobs);
	rig_store(rig, rig->a, 1, 3 * SECOND); /* long work is no failure */
	rig_arm(rig, 1, rig_record(rig->a));
	while (!wr_load(&rig->waker.poked[1])) {
		assert_int_equal(wr_system_watch(rig->system, wr_now(), &next), WEIR_OK);
		wr_thread_sleep(10 * MS);
	}
}

/* With every host worker busy, or a slow callback, complete work must not be reported as lost. */
RIG_BODY(f13_f36_a_late_callback_is_not_lost_and_its_entity_is_poked)
{
	struct wr_sim_knobs knobs = {.call_min = 9 * SECOND, .call_max = 9 * SECOND};
	int64_t next, until;

	if (!rig_is("sim"))
		return;
	wr_system_set_knobs(rig->system, &knobs);
	rig_store(rig, rig->a, 1, MS);
	rig_arm(rig, 1, rig_record(rig->a));
	for (until = wr_now() + 8 * SECOND; wr_now() < until; wr_thread_sleep(20 * MS))
		assert_int_equal(wr_system_watch(rig->system, wr_now(), &next), WEIR_OK);
	assert_int_equal(rig->waker.poked[1], 1);
	assert_int_equal(wr_system_outstanding(rig->system), 1);
	wr_thread_sleep(2 * SECOND);
	assert_int_equal(wr_system_outstanding(rig->system), 0);
}

RIG_BODY(f12_an_inline_callback_that_does_not_come_is_found_by_later_work)
{
	struct wr_sim_knobs knobs = {.lost = 1000};
	int64_t next, begun = wr_now();

	if (!rig_is("sim"))
		return;
	wr_system_set_knobs(rig->system, &knobs);
	rig_store(rig, rig->a, 1, MS);
	assert_int_equal(rig_arm_inline(rig, 1, rig_record(rig->a)), WEIR_OK);
	while (!wr_system_watch(rig->system, wr_now(), &next)) {
		rig_record(rig->a);
		wr_thread_sleep(next - wr_now());
		assert_true(wr_now() - begun < 3 * SECOND);
	}
}

RIG_BODY(f12_an_inline_callback_behind_later_work_is_not_lost)
{
	int64_t next, begun = wr_now();

	if (!rig_is("sim"))
		return;
	rig_store(rig, rig->a, 1, MS);
	weir_fence fence = rig_record(rig->a);
	rig_store(rig, rig->a, 2, 4 * SECOND);
	assert_int_equal(rig_arm_inline(rig, 1, fence), WEIR_OK);
	for (int i = 0; i < 4; i++)
		rig_record(rig->a);
	while (wr_now() - begun < 3 * SECOND) {
		assert_int_equal(wr_system_watch(rig->system, wr_now(), &next), WEIR_OK);
		wr_thread_sleep(next - wr_now());
	}
	assert_int_equal(rig->waker.poked[1], 1); /* the query found it complete */
	rig_wait(rig, rig_record(rig->a));
}

RIG_BODY(f11_a_callback_after_a_fault_is_stale)
{
	struct wr_sim_knobs knobs = {.call_min = 50 * MS, .call_max = 50 * MS, .after_fault = true};

	if (!rig_is("sim"))
		return;
	wr_system_set_knobs(rig->system, &knobs);
	rig_store(rig, rig->a, 1, MS);
	rig_arm(rig, 1, rig_record(rig->a));
	wr_thread_sleep(10 * MS);
	fail_device(rig);
	assert_int_equal(rig->waker.poked[1], 1);
	wr_thread_sleep(100 * MS);
	assert_int_equal(rig->waker.poked[1], 1);
	assert_int_equal(wr_system_stale(rig->system), 1);
}

RIG_BODY(f06_a_second_callback_of_the_same_token_is_stale)
{
	struct wr_sim_knobs knobs = {.twice = 1000};

	if (!rig_is("sim"))
		return;
	wr_system_set_knobs(rig->system, &knobs);
	rig_arm(rig, 1, rig_record(rig->a));
	rig_until_poked(rig, 1);
	wr_thread_sleep(MS);
	assert_int_equal(rig->waker.poked[1], 1);
	assert_true(wr_system_stale(rig->system) >= 1);
	knobs.twice = 0;
	wr_system_set_knobs(rig->system, &knobs);
}

RIG_BODY(e4_hung_work_is_abandoned_and_left_alone)
{
	if (!rig_is("sim"))
		return;
	rig_store(rig, rig->a, 1, 3600 * SECOND);
	rig_record(rig->a);
	wr_system_detach(rig->system);
	assert_int_equal(wr_system_destroy(rig->system), WEIR_E_ABANDONED);
	rig->system = NULL;
}

static _Atomic unsigned stores;

static int store_late(const void *arguments)
{
	weir_sleep(*(const int64_t *)arguments);
	wr_fetch_add(&stores, 1);
	return 0;
}

static weir_status refuse_record(void *self, int device, void *stream, void *event)
{
	(void)self;
	(void)device;
	(void)stream;
	(void)event;
	return wr_fail(WEIR_E_FAILED, "refused");
}

RIG_BODY(t05_e04_work_whose_record_was_refused_has_ended_when_the_system_is_destroyed)
{
	static const weir_kernel late = {.size = sizeof late, .name = "late", .host = store_late};
	const struct wr_backend *backend = rig->system->backend;
	struct wr_backend refusing = *backend;
	int64_t ns = 10 * MS;

	if (rig_is("cuda"))
		return;
	wr_store(&stores, 0);
	for (int i = 0; i < 2; i++)
		assert_int_equal(weir_stream_launch(rig->a, &late, &ns, sizeof ns), WEIR_OK);
	refusing.record = refuse_record;
	rig->system->backend = &refusing;
	wr_stream_close(rig->a);
	rig->system->backend = backend;
	wr_system_detach(rig->system);
	assert_int_equal(wr_system_destroy(rig->system), WEIR_OK);
	rig->system = NULL;
	assert_int_equal(wr_load(&stores), 2);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(t05_e04_work_whose_record_was_refused_has_ended_when_the_system_is_destroyed),
	cmocka_unit_test(f12_a_callback_that_does_not_come_is_found),
	cmocka_unit_test(f12_a_lost_callback_is_named_whatever_fails_after_it),
	cmocka_unit_test(f13_a_slow_callback_is_not_lost),
	cmocka_unit_test(f13_f36_a_late_callback_is_not_lost_and_its_entity_is_poked),
	cmocka_unit_test(f12_an_inline_callback_that_does_not_come_is_found_by_later_work),
	cmocka_unit_test(f12_an_inline_callback_behind_later_work_is_not_lost),
	cmocka_unit_test(f11_a_callback_after_a_fault_is_stale),
	cmocka_unit_test(f06_a_second_callback_of_the_same_token_is_stale),
	cmocka_unit_test(e4_hung_work_is_abandoned_and_left_alone),
};

const struct contract_part contract_losses = {tests, sizeof tests / sizeof *tests};

/* On cuda each test needs a process of its own: the device stays lost for the process. */
static const struct CMUnitTest failures[] = {
	cmocka_unit_test(f60_a_fault_is_a_named_failure),
	cmocka_unit_test(f60_t13_a_fault_in_a_replayed_kernel_names_its_stream),
	cmocka_unit_test(e3_two_suspects_are_named_and_none_accused),
	cmocka_unit_test(e1_a_caller_whose_own_call_failed_queries_the_device),
	cmocka_unit_test(f61_nothing_succeeds_after_a_fault),
	cmocka_unit_test(f10_a_failure_pokes_each_waiting_entity_once),
	cmocka_unit_test(t4_payloads_come_back_after_a_failure),
};

const struct contract_part contract_failures = {failures, sizeof failures / sizeof *failures};
