/*
 * Threads of the program at bad moments: they take, push, poke and read counts while a run begins, is cut
 * short or ends. On the build whose atomics are switching points.
 */
#include <signal.h>
#include <string.h>

#include "base/thread.h"
#include "rig_inside.h"

enum { SEEDS = 3000 };

/* --- a run that is cut short --- */

struct outsider {
	struct rig *rig;
	weir_inlet *inlet;
	weir_outlet *outlet;
	struct wr_thread thread;
	uint64_t count;
};

static void take_all(void *arg)
{
	struct outsider *outsider = arg;
	weir_message *message = NULL;
	weir_status status;

	do {
		status = weir_outlet_take(outsider->outlet, 4 * US, &message);
		if (status)
			continue;
		outsider->count++;
		weir_message_unref(message);
	} while (status != WEIR_E_CLOSED);
}

static void cut_short_beside_a_taker(void)
{
	struct rig *rig = rig_of("source delay=1us -> p:pass");
	struct outsider outsider = {.rig = rig};
	weir_queue_counts counts = {.size = sizeof counts};

	assert_int_equal(weir_graph_add_outlet(rig->graph, "p.out", 4, 0, &outsider.outlet), WEIR_OK);
	rig_start(rig);
	weir_sleep(21 * US); /* the outlet is full, the workers are asleep */
	assert_int_equal(wr_thread_start(&outsider.thread, "taker", take_all, &outsider), WEIR_OK);
	weir_scheduler_stop(rig->scheduler, 0);
	assert_int_equal(rig_wait(rig), WEIR_OK);
	wr_thread_join(&outsider.thread);
	counts = rig_queue(rig, "outlet");
	assert_int_equal(counts.delivered, outsider.count);
	assert_int_equal(counts.pushed, counts.delivered + counts.abandoned);
	rig_destroy(rig);
}

static void b02_e05_what_a_cut_left_in_an_outlet_is_abandoned_or_taken_never_both(void **state)
{
	(void)state;
	rig_in_worlds(SEEDS, cut_short_beside_a_taker);
}

static void push_on(void *arg)
{
	struct outsider *outsider = arg;
	weir_message *message = NULL;
	weir_status status = WEIR_OK;

	while (status != WEIR_E_CLOSED) {
		if (weir_message_create_empty(outsider->rig->graph, &message))
			return;
		status = weir_inlet_push(outsider->inlet, message, 5 * US);
		if (status)
			weir_message_unref(message);
		else
			outsider->count++;
		weir_sleep(1 * US);
	}
}

static void cut_short_beside_a_pusher(void)
{
	struct rig *rig = rig_of("end capacity=4 take=2 delay=1us");
	struct outsider outsider = {.rig = rig};
	weir_queue_counts counts = {.size = sizeof counts};

	assert_int_equal(weir_graph_add_inlet(rig->graph, "end.in", &outsider.inlet), WEIR_OK);
	rig_start(rig);
	assert_int_equal(wr_thread_start(&outsider.thread, "pusher", push_on, &outsider), WEIR_OK);
	weir_sleep(21 * US);
	weir_scheduler_stop(rig->scheduler, 0);
	assert_int_equal(rig_wait(rig), WEIR_OK);
	wr_thread_join(&outsider.thread);
	counts = rig_queue(rig, "end.in");
	assert_int_equal(counts.pushed, outsider.count);
	assert_int_equal(counts.closed, 0); /* what the receiver was about to take was not withdrawn */
	rig_destroy(rig);
}

static void b02_c04_a_push_beside_a_cut_does_not_empty_the_receivers_queue(void **state)
{
	(void)state;
	rig_in_worlds(SEEDS, cut_short_beside_a_pusher);
}

static void b02_e06_an_outlet_that_cannot_hold_one_tick_is_refused(void **state)
{
	struct rig *rig = rig_of("source ticks=2 emits=3 source.out max_emits=3");
	weir_outlet *outlet = NULL;

	(void)state;
	assert_int_equal(weir_graph_add_outlet(rig->graph, "source.out", 2, 0, &outlet), WEIR_E_INVALID);
	assert_non_null(strstr(weir_last_error(), "source.out: one tick may emit 3, but only 2 fit"));
	assert_int_equal(weir_graph_add_outlet(rig->graph, "source.out", 0, 0, &outlet), WEIR_E_INVALID);
	assert_null(outlet);
	assert_int_equal(weir_graph_add_outlet(rig->graph, "source.out", 3, 0, &outlet), WEIR_OK);
	rig_destroy(rig);
}

/* --- counts --- */

struct look {
	struct rig *rig;
	struct wr_thread thread;
	_Atomic bool over;
};

static void look_at_counts(void *arg)
{
	struct look *look = arg;
	weir_queue_counts counts = {.size = sizeof counts};

	while (!wr_load(&look->over)) {
		for (size_t i = 0; !weir_scheduler_queue_counts(look->rig->scheduler, i, &counts); i++)
			if (counts.queued > counts.capacity + 1u)
				rig_break(look->rig);
		weir_sleep(1);
	}
}

static void run_beside_a_looker(void)
{
	struct rig *rig = rig_of("source ticks=40 -> p:pass -> end; p.out2 -> other:end policy=pop");
	struct look look = {.rig = rig};

	rig_start(rig);
	assert_int_equal(wr_thread_start(&look.thread, "looker", look_at_counts, &look), WEIR_OK);
	assert_int_equal(rig_wait(rig), WEIR_OK);
	wr_store(&look.over, true);
	wr_thread_join(&look.thread);
	rig_destroy(rig);
}

static void e05_counts_of_a_running_queue_stay_within_its_capacity(void **state)
{
	(void)state;
	rig_in_worlds(SEEDS, run_beside_a_looker);
	rig_on_host(run_beside_a_looker);
}

/* --- refused --- */

/* At most one token: one of three entities has it, two wait in the FIFO. A poked entity keeps its place. */
static void poke_while_in_the_fifo(void)
{
	struct rig *rig = rig_of("a:source ticks=1 work=1ms -> x:end gate=in; "
				 "b:source ticks=1 work=1ms -> y:end gate=in; "
				 "c:source ticks=1 work=1ms -> z:end gate=in");
	weir_entity *first;

	rig_make(rig);
	rig_bound_signals(rig, 1);
	rig_start(rig);
	weir_sleep(500 * US);
	first = rig_first_refused(rig, 2);
	assert_int_equal(weir_entity_poke(first), WEIR_OK);
	weir_sleep(100 * US);
	assert_ptr_equal(rig_first_refused(rig, 1), first);
	assert_int_equal(rig_wait(rig), WEIR_OK);
	rig_destroy(rig);
}

static void g02_a_poke_does_not_cost_a_refused_entity_its_turn(void **state)
{
	(void)state;
	rig_in_worlds(20, poke_while_in_the_fifo);
}

/* --- timeouts --- */

static void push_for_ever(void *arg)
{
	struct outsider *outsider = arg;
	weir_message *message = NULL;

	assert_int_equal(weir_message_create_empty(outsider->rig->graph, &message), WEIR_OK);
	if (weir_inlet_push(outsider->inlet, message, -1))
		weir_message_unref(message);
	else
		outsider->count++;
}

static void take_for_ever(void *arg)
{
	struct outsider *outsider = arg;
	weir_message *message = NULL;

	if (weir_outlet_take(outsider->outlet, -5, &message))
		return;
	outsider->count++;
	weir_message_unref(message);
}

/* Room for one message, full at first; pushed messages go on to the outlet. */
static void wait_for_ever(void)
{
	struct rig *rig = rig_of("p:pass capacity=1 enabled=false");
	struct outsider pusher = {.rig = rig}, taker = {.rig = rig};

	assert_int_equal(weir_graph_add_inlet(rig->graph, "p.in", &pusher.inlet), WEIR_OK);
	assert_int_equal(weir_graph_add_outlet(rig->graph, "p.out", 4, 0, &taker.outlet), WEIR_OK);
	rig_start(rig);
	push_for_ever(&pusher);
	assert_int_equal(wr_thread_start(&pusher.thread, "pusher", push_for_ever, &pusher), WEIR_OK);
	assert_int_equal(wr_thread_start(&taker.thread, "taker", take_for_ever, &taker), WEIR_OK);
	weir_sleep(2 * MS);
	assert_int_equal(pusher.count, 1);
	rig_tell(rig, "p", WEIR_TOLD_READY);
	wr_thread_join(&pusher.thread);
	wr_thread_join(&taker.thread);
	assert_int_equal(pusher.count, 2);
	assert_int_equal(taker.count, 1);
	weir_scheduler_stop(rig->scheduler, 0);
	assert_int_equal(weir_scheduler_wait(rig->scheduler, -7, NULL), WEIR_OK);
	rig_destroy(rig);
}

static void b02_e01_a_negative_timeout_is_for_ever(void **state)
{
	(void)state;
	rig_everywhere(wait_for_ever);
}

static void s07_a_negative_drain_ends_at_once(void **state)
{
	struct rig *rig = rig_of("source ticks=1 -> end enabled=false");

	(void)state;
	rig->options.drain_ns = -1;
	rig->options.deadlock_grace_ns = INT64_MAX;
	rig->options.max_duration_ns = 1 * MS;
	assert_int_equal(rig_run(rig), WEIR_E_ABANDONED);
	assert_string_equal(rig->outcome.text, "the drain was given no time; left behind: end (1 message)");
	rig_destroy(rig);
}

/* --- the next run --- */

static void start_run(void *arg)
{
	struct rig *rig = arg;

	rig_here(rig);
	if (weir_scheduler_start(rig->scheduler))
		rig_break(rig);
}

/* A thread that chose a sleeping worker in the last run, but wakes it only now. */
static void wake_too_late(void)
{
	struct rig *rig = rig_of("source ticks=3");
	struct outsider taker = {.rig = rig};
	struct wr_thread starter;

	assert_int_equal(weir_graph_add_outlet(rig->graph, "source.out", 3, 0, &taker.outlet), WEIR_OK);
	rig->options.workers = 1;
	rig_make(rig);
	/* The start waits for this lock; its worker exists, the run is not open yet. */
	rig_lock_outlet(taker.outlet, true);
	assert_int_equal(wr_thread_start(&starter, "starter", start_run, rig), WEIR_OK);
	weir_sleep(10 * US);
	rig_unpark(rig, 0);
	weir_sleep(10 * US);
	rig_lock_outlet(taker.outlet, false);
	wr_thread_join(&starter);
	take_all(&taker);
	assert_int_equal(taker.count, 3);
	assert_int_equal(rig_wait(rig), WEIR_OK);
	rig_destroy(rig);
}

static void s08_s09_a_wake_up_left_over_from_the_last_run_lets_no_worker_in_early(void **state)
{
	(void)state;
	rig_in_worlds(20, wake_too_late);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(b02_e05_what_a_cut_left_in_an_outlet_is_abandoned_or_taken_never_both),
		cmocka_unit_test(b02_c04_a_push_beside_a_cut_does_not_empty_the_receivers_queue),
		cmocka_unit_test(b02_e06_an_outlet_that_cannot_hold_one_tick_is_refused),
		cmocka_unit_test(e05_counts_of_a_running_queue_stay_within_its_capacity),
		cmocka_unit_test(g02_a_poke_does_not_cost_a_refused_entity_its_turn),
		cmocka_unit_test(b02_e01_a_negative_timeout_is_for_ever),
		cmocka_unit_test(s07_a_negative_drain_ends_at_once),
		cmocka_unit_test(s08_s09_a_wake_up_left_over_from_the_last_run_lets_no_worker_in_early),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
