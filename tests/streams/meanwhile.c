/* Races with a thread that is inside a call of the host backend: the call does what the
 * other thread would. */
#include <string.h>

#include "base/clock.h"
#include "base/thread.h"
#include "rig.h"
#include "test.h"

#define MS     1000000
#define SECOND 1000000000

static struct wr_backend slow; /* the rig's system runs on it */
static struct rig *meanwhile;
static weir_fence queried;

#define BODY(name)                                                                                           \
	static void name##_body(struct rig *);                                                               \
	static void name(void **state)                                                                       \
	{                                                                                                    \
		(void)state;                                                                                 \
		slow = wr_backend_host;                                                                      \
		rig_run(name##_body, 7);                                                                     \
	}                                                                                                    \
	static void name##_body(struct rig *rig)

/* --- a query whose answer is out of date --- */

static void replace_point(void)
{
	struct wr_event *place = wr_stream_event(wr_stream_at(meanwhile->system, 0), queried.value);

	wr_store(&place->value,
		 queried.value + 1000); /* seen complete by another thread, and recorded anew */
}

static weir_status answer_late(void *self, void *event)
{
	(void)self;
	(void)event;
	replace_point();
	return WEIR_E_BUSY;
}

/* The event is busy with a later point; the point that the query is about is complete. */
BODY(t02_a_point_whose_event_is_recorded_anew_while_it_is_asked_is_complete)
{
	meanwhile = rig;
	queried = rig_record(rig->a);
	slow.query = answer_late;
	rig->system->backend = &slow;
	assert_int_equal(wr_fence_query(rig->system, queried), WEIR_OK);
	rig->system->backend = &wr_backend_host;
	rig_wait(rig, rig_record(rig->a)); /* complete it before its event is destroyed */
}

/* --- the watch runs while a worker has taken the list of deferred frees --- */

static void let_watch_rest(void)
{
	int64_t next;

	rig_wait(meanwhile, queried);
	assert_int_equal(wr_system_watch(meanwhile->system, wr_now(), &next), WEIR_OK);
	assert_true(next == WR_FOREVER);
	assert_true(wr_load(&meanwhile->system->watch_sleeps));
}

static weir_status answer_before_watch(void *self, void *event)
{
	(void)self;
	(void)event;
	meanwhile->system->backend = &wr_backend_host;
	let_watch_rest();
	return WEIR_E_BUSY;
}

static unsigned released;

static void release(struct wr_deferred_free *retired)
{
	(void)retired;
	released++;
}

BODY(t04_e02_what_is_put_back_into_the_retire_list_wakes_the_watch)
{
	struct wr_deferred_free entry = {.fences = &queried, .count = 1, .release = release, .foreign = true};
	int kicked;

	meanwhile = rig;
	released = 0;
	rig_store(rig, rig->a, 1, 20 * MS);
	queried = rig_record(rig->a);
	assert_false(wr_defer_free(rig->system, &entry));
	slow.query = answer_before_watch;
	rig->system->backend = &slow;
	kicked = wr_load(&rig->waker.kicked);
	wr_system_run_deferred_frees(rig->system, true);
	assert_int_equal(released, 0);
	assert_int_equal(wr_load(&rig->waker.kicked), kicked + 1);
	assert_false(wr_load(&rig->system->watch_sleeps));
	wr_system_run_deferred_frees(rig->system, true);
	assert_int_equal(released, 1);
}

/* --- another pass puts an older one back, and a newer one is listed, while a pass has one --- */

static struct wr_deferred_free ordered[3];
static int order[3], order_count;

static void release_ordered(struct wr_deferred_free *entry)
{
	order[order_count++] = (int)(entry - ordered);
}

static void list_numbered(struct rig *rig, int number)
{
	ordered[number] = (struct wr_deferred_free){
		.fences = &queried, .count = 1, .release = release_ordered, .foreign = true};
	rig->system->deferred_frees.numbers = (uint32_t)number;
	assert_false(wr_defer_free(rig->system, &ordered[number]));
}

static weir_status list_older_and_newer(void *self, void *event)
{
	(void)self;
	(void)event;
	meanwhile->system->backend = &wr_backend_host;
	list_numbered(meanwhile, 0);
	list_numbered(meanwhile, 2);
	return WEIR_E_BUSY;
}

BODY(t04_what_is_put_back_is_freed_in_the_order_in_which_it_was_listed)
{
	meanwhile = rig;
	order_count = 0;
	rig_store(rig, rig->a, 1, 20 * MS);
	queried = rig_record(rig->a);
	list_numbered(rig, 1);
	slow.query = list_older_and_newer;
	rig->system->backend = &slow;
	wr_system_run_deferred_frees(rig->system, false);
	rig_wait(rig, queried);
	wr_system_run_deferred_frees(rig->system, false);
	assert_int_equal(order_count, 3);
	for (int i = 0; i < 3; i++)
		assert_int_equal(order[i], i);
}

/* --- wanted memory becomes free while the loop looks which fences to arm --- */

static weir_status answer_before_completion(void *self, void *event)
{
	(void)self;
	(void)event;
	meanwhile->system->backend = &wr_backend_host;
	rig_wait(meanwhile, queried);
	return WEIR_E_BUSY;
}

/* The loop's own query came too early, and a thread that asked since knows better: no fence is left to arm.
 */
BODY(t04_s03_wanted_memory_whose_fence_is_seen_complete_meanwhile_kicks_the_loop)
{
	_Atomic size_t refused = 1;
	struct wr_deferred_free entry = {
		.fences = &queried, .count = 1, .release = release, .refused = &refused, .foreign = true};
	int kicked;

	meanwhile = rig;
	released = 0;
	rig_store(rig, rig->a, 1, 20 * MS);
	queried = rig_record(rig->a);
	assert_false(wr_defer_free(rig->system, &entry));
	slow.query = answer_before_completion;
	rig->system->backend = &slow;
	kicked = wr_load(&rig->waker.kicked);
	assert_int_equal(wr_system_arm_kicks(rig->system, false, false), WEIR_OK);
	assert_int_equal(released, 0);
	assert_int_equal(wr_load(&rig->waker.kicked), kicked + 1);
	assert_int_equal(wr_system_arm_kicks(rig->system, false, false), WEIR_OK); /* the loop's next turn */
	assert_int_equal(released, 1);
}

/* The same of memory that nothing wants and that alone holds the run open. */
BODY(t04_s04_memory_whose_fence_is_seen_complete_meanwhile_kicks_the_loop_of_a_run_that_is_over)
{
	struct wr_deferred_free entry = {.fences = &queried, .count = 1, .release = release, .foreign = true};
	int kicked;

	meanwhile = rig;
	released = 0;
	rig_store(rig, rig->a, 1, 20 * MS);
	queried = rig_record(rig->a);
	assert_false(wr_defer_free(rig->system, &entry));
	slow.query = answer_before_completion;
	rig->system->backend = &slow;
	kicked = wr_load(&rig->waker.kicked);
	assert_int_equal(wr_system_arm_kicks(rig->system, true, true), WEIR_OK);
	assert_int_equal(released, 0);
	assert_int_equal(wr_load(&rig->waker.kicked), kicked + 1);
	assert_int_equal(wr_system_arm_kicks(rig->system, true, true), WEIR_OK); /* the loop's next turn */
	assert_int_equal(released, 1);
}

/* --- a stream that the watch has passed gets work while it looks at another --- */

static weir_fence begun;

/* The answer is the true one: an event that is said to be complete is destroyed. */
static weir_status begin_before_answer(void *self, void *event)
{
	weir_status status;

	meanwhile->system->backend = &wr_backend_host;
	wr_stream_begin_tick(meanwhile->a);
	rig_store(meanwhile, meanwhile->a, 1, 0);
	begun = rig_record(meanwhile->a);
	while ((status = wr_backend_host.query(self, event)) == WEIR_E_BUSY)
		wr_thread_sleep(10000);
	return status;
}

BODY(e02_work_that_begins_while_the_watch_looks_kicks_the_loop)
{
	struct wr_event *place;
	int64_t next;
	int kicked;

	meanwhile = rig;
	queried = rig_record(rig->b);
	place = wr_stream_event(rig->b, queried.value);
	wr_store_relaxed(&place->recorded_at, wr_now() - SECOND); /* so old that the watch queries it */
	slow.query = begin_before_answer;
	rig->system->backend = &slow;
	kicked = wr_load(&rig->waker.kicked);
	assert_int_equal(wr_system_watch(rig->system, wr_now(), &next), WEIR_OK);
	assert_true(next == WR_FOREVER);
	assert_int_equal(wr_load(&rig->waker.kicked), kicked + 1);
	rig_wait(rig, begun);
}

/* --- the system fails while a signal is armed --- */

static weir_status fail_meanwhile(void *self, int device, void *stream, void *event)
{
	wr_system_fail(meanwhile->system, "lost meanwhile");
	return wr_backend_host.wait(self, device, stream, event);
}

static unsigned calls;

static weir_status count_call(void *self, int device, void *stream, void (*fn)(void *arg), void *arg)
{
	calls++;
	return wr_backend_host.call(self, device, stream, fn, arg);
}

/* The failure fired all armed tokens; this one is armed after it, so nothing else would fire it. */
BODY(e02_g01_no_callback_is_enqueued_on_a_system_that_failed_meanwhile)
{
	wr_token token;

	meanwhile = rig;
	calls = 0;
	rig_store(rig, rig->a, 1, 20 * MS);
	queried = rig_record(rig->a);
	slow.wait = fail_meanwhile;
	slow.call = count_call;
	slow.signal = NULL;
	rig->system->backend = &slow;
	assert_int_equal(wr_signal_arm(rig->system, 1, &queried, 1, &token), WEIR_E_DEVICE);
	rig->system->backend = &wr_backend_host;
	assert_int_equal(calls, 0);
	assert_int_equal(wr_system_outstanding(rig->system), 0);
}

/* --- the call that enqueues a callback blocks --- */

static int kicked_before;

static weir_status watched_in_call(void *self, int device, void *stream, void (*fn)(void *arg), void *arg)
{
	calls++;
	assert_false(wr_load(&meanwhile->system->watch_sleeps));
	assert_int_equal(wr_load(&meanwhile->waker.kicked), kicked_before + 1);
	return wr_backend_host.call(self, device, stream, fn, arg);
}

/* The fence completed since the entity was reviewed: no other work keeps the watch awake. */
BODY(e02_f16_the_watch_is_awake_while_a_callback_is_enqueued)
{
	wr_token token;

	meanwhile = rig;
	calls = 0;
	queried = rig_record(rig->a);
	let_watch_rest();
	slow.call = watched_in_call;
	slow.signal = NULL;
	rig->system->backend = &slow;
	kicked_before = wr_load(&rig->waker.kicked);
	assert_int_equal(wr_signal_arm(rig->system, 1, &queried, 1, &token), WEIR_OK);
	rig->system->backend = &wr_backend_host;
	assert_int_equal(calls, 1);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(t02_a_point_whose_event_is_recorded_anew_while_it_is_asked_is_complete),
		cmocka_unit_test(t04_e02_what_is_put_back_into_the_retire_list_wakes_the_watch),
		cmocka_unit_test(t04_what_is_put_back_is_freed_in_the_order_in_which_it_was_listed),
		cmocka_unit_test(t04_s03_wanted_memory_whose_fence_is_seen_complete_meanwhile_kicks_the_loop),
		cmocka_unit_test(
			t04_s04_memory_whose_fence_is_seen_complete_meanwhile_kicks_the_loop_of_a_run_that_is_over),
		cmocka_unit_test(e02_work_that_begins_while_the_watch_looks_kicks_the_loop),
		cmocka_unit_test(e02_g01_no_callback_is_enqueued_on_a_system_that_failed_meanwhile),
		cmocka_unit_test(e02_f16_the_watch_is_awake_while_a_callback_is_enqueued),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
