/* What a program pushes into inlets and takes from outlets (B2). */
#include <string.h>

#include "base/clock.h"
#include "base/thread.h"
#include "rig.h"

/* --- B2: inlets --- */

static weir_inlet *inlet_of(struct rig *rig, const char *port)
{
	weir_inlet *inlet = NULL;

	assert_int_equal(weir_graph_add_inlet(rig->graph, port, &inlet), WEIR_OK);
	return inlet;
}

static weir_status push(struct rig *rig, weir_inlet *inlet, int64_t number, int64_t timeout_ns)
{
	weir_message *message = rig_message(rig, number);
	weir_status status = weir_inlet_push(inlet, message, timeout_ns);

	if (status)
		weir_message_unref(message);
	return status;
}

static void push_some(void)
{
	struct rig *rig = rig_of("end");
	weir_inlet *inlet = inlet_of(rig, "end.in");

	rig_start(rig);
	for (int i = 0; i < 5; i++)
		assert_int_equal(push(rig, inlet, i, 60 * SECOND), WEIR_OK); /* blocks: the capacity is 1 */
	assert_int_equal(weir_scheduler_wait(rig->scheduler, 10 * MS, NULL),
			 WEIR_E_TIMEOUT); /* the inlet holds the run open */
	weir_inlet_close(inlet);
	weir_inlet_close(inlet);
	assert_int_equal(rig_wait(rig), WEIR_OK);
	assert_string_equal(rig_text(rig, "end"), "0 1 2 3 4");
	assert_true(rig_done(rig, "end"));
	assert_string_equal(rig_queue(rig, "end.in").from, "inlet");
	rig_destroy(rig);
}

static void b02_what_is_pushed_arrives_in_order_until_the_inlet_is_closed(void **state)
{
	(void)state;
	rig_everywhere(push_some);
}

static void b02_a_full_queue_pushes_back(void **state)
{
	struct rig *rig = rig_of("end enabled=false capacity=2");
	weir_inlet *inlet = inlet_of(rig, "end.in");

	(void)state;
	rig_start(rig);
	assert_int_equal(push(rig, inlet, 0, 0), WEIR_OK);
	assert_int_equal(push(rig, inlet, 1, 0), WEIR_OK);
	assert_int_equal(push(rig, inlet, 2, 0), WEIR_E_BUSY);
	assert_int_equal(push(rig, inlet, 2, MS), WEIR_E_TIMEOUT);
	rig_tell(rig, "end", WEIR_TOLD_READY);
	assert_int_equal(push(rig, inlet, 2, 60 * SECOND), WEIR_OK);
	weir_inlet_close(inlet);
	assert_int_equal(push(rig, inlet, 3, 0), WEIR_E_CLOSED);
	assert_int_equal(rig_wait(rig), WEIR_OK);
	assert_string_equal(rig_text(rig, "end"), "0 1 2");
	rig_destroy(rig);
}

/* At once, whatever the timeout. */
static void b02_a_full_queue_with_the_policy_fault_refuses_a_push(void **state)
{
	struct rig *rig = rig_of("end enabled=false policy=fault");
	weir_inlet *inlet = inlet_of(rig, "end.in");
	int64_t began;

	(void)state;
	rig_start(rig);
	assert_int_equal(push(rig, inlet, 0, SECOND), WEIR_OK);
	began = wr_now();
	assert_int_equal(push(rig, inlet, 1, 60 * SECOND), WEIR_E_BUSY);
	assert_true(wr_now() - began < SECOND);
	rig_tell(rig, "end", WEIR_TOLD_READY);
	weir_inlet_close(inlet);
	assert_int_equal(rig_wait(rig), WEIR_OK);
	assert_string_equal(rig_text(rig, "end"), "0");
	rig_destroy(rig);
}

static void b02_a_push_is_refused_outside_a_run_in_a_drain_and_when_the_receiver_is_done(void **state)
{
	struct rig *rig = rig_of("end count=1");
	weir_inlet *inlet = inlet_of(rig, "end.in");

	(void)state;
	assert_int_equal(push(rig, inlet, 0, 0), WEIR_E_CLOSED);
	rig_make(rig);
	assert_int_equal(push(rig, inlet, 0, 60 * SECOND), WEIR_E_CLOSED);
	assert_says(weir_last_error(), "no run is on: push after the start");
	rig_start(rig);
	assert_int_equal(push(rig, inlet, 0, 60 * SECOND), WEIR_OK);
	assert_int_equal(rig_wait(rig),
			 WEIR_OK); /* its only receiver is DONE: the inlet does not hold the run */
	assert_int_equal(push(rig, inlet, 1, 60 * SECOND), WEIR_E_CLOSED);
	assert_says(weir_last_error(), "no run is on");
	rig_destroy(rig);
}

static void b02_a_drain_closes_inlets(void **state)
{
	struct rig *rig = rig_of("end delay=5ms capacity=3");
	weir_inlet *inlet = inlet_of(rig, "end.in");

	(void)state;
	rig_start(rig);
	for (int i = 0; i < 3; i++)
		assert_int_equal(push(rig, inlet, i, 0), WEIR_OK);
	weir_scheduler_stop(rig->scheduler, WEIR_STOP_DRAIN);
	weir_scheduler_wait(rig->scheduler, MS, NULL);
	assert_int_equal(push(rig, inlet, 3, 60 * SECOND), WEIR_E_CLOSED);
	assert_int_equal(rig_wait(rig), WEIR_OK);
	assert_string_equal(rig_text(rig, "end"), "0 1 2");
	rig_destroy(rig);
}

static weir_status push_from_a_worker(struct rig *rig, weir_context *context)
{
	weir_message *message = rig_number(context, 5);

	if (weir_inlet_push(rig->own, message, MS) != WEIR_E_INVALID || !strstr(weir_last_error(), "worker"))
		rig_break(rig);
	if (weir_inlet_push(rig->own, message, 0) != WEIR_OK)
		rig_break(rig);
	weir_inlet_close(rig->own);
	return WEIR_OK;
}

static void b02_a_worker_may_push_but_never_wait(void **state)
{
	struct rig *rig = rig_of("c:call count=1; end");

	(void)state;
	rig->own = inlet_of(rig, "end.in");
	rig_on(rig, "c", push_from_a_worker);
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_string_equal(rig_text(rig, "end"), "5");
	rig_destroy(rig);
}

/* Four threads, one inlet: one sender at a time, nothing lost, also when the run is stopped meanwhile. */
struct pushers {
	struct rig *rig;
	weir_inlet *inlet;
	_Atomic unsigned pushed;
};

static void push_many(void *arg)
{
	struct pushers *pushers = arg;

	for (int i = 0; i < 200; i++) {
		weir_message *message = NULL;
		weir_status status = weir_message_create_bytes(pushers->rig->graph, 8, &message);
		if (!status)
			status = weir_inlet_push(pushers->inlet, message, 10 * SECOND);
		if (status) {
			weir_message_unref(message);
			return;
		}
		wr_fetch_add(&pushers->pushed, 1);
	}
}

static void push_together(bool stop)
{
	struct pushers pushers = {.rig = rig_of("p:pass capacity=2 -> end")};
	struct wr_thread threads[4] = {{0}};

	pushers.inlet = inlet_of(pushers.rig, "p.in");
	rig_start(pushers.rig);
	for (int i = 0; i < 4; i++)
		assert_int_equal(wr_thread_start(&threads[i], "pusher", push_many, &pushers), WEIR_OK);
	if (stop)
		weir_scheduler_stop(pushers.rig->scheduler, WEIR_STOP_DRAIN);
	for (int i = 0; i < 4; i++)
		wr_thread_join(&threads[i]);
	weir_inlet_close(pushers.inlet);
	assert_int_equal(rig_wait(pushers.rig), WEIR_OK);
	assert_int_equal(rig_queue(pushers.rig, "p.in").pushed, wr_load(&pushers.pushed));
	assert_int_equal(rig_ticks(pushers.rig, "end") + rig_queue(pushers.rig, "p.in").closed,
			 wr_load(&pushers.pushed));
	rig_destroy(pushers.rig);
}

static void push_to_the_end(void)
{
	push_together(false);
}

static void push_until_stopped(void)
{
	push_together(true);
}

static void b02_many_threads_push_into_one_inlet(void **state)
{
	(void)state;
	rig_everywhere(push_to_the_end);
	rig_everywhere(push_until_stopped);
}

static void push_while_starting(void *arg)
{
	struct pushers *pushers = arg;
	int64_t until = wr_now() + 5 * SECOND;

	while (wr_now() < until) {
		weir_message *message = NULL;
		if (weir_message_create_bytes(pushers->rig->graph, 8, &message))
			return;
		*(int64_t *)weir_message_data(message) = 3;
		if (!weir_inlet_push(pushers->inlet, message, 0)) {
			weir_inlet_close(pushers->inlet);
			return;
		}
		weir_message_unref(message);
		wr_thread_yield();
	}
}

/* A message that an inlet accepts while the run begins is delivered in that run. */
static void push_as_it_starts(void)
{
	struct pushers pushers = {.rig = rig_of("end")};

	pushers.inlet = inlet_of(pushers.rig, "end.in");
	rig_make(pushers.rig);
	for (int i = 0; i < 100; i++) {
		struct wr_thread thread = {0};
		assert_int_equal(wr_thread_start(&thread, "pusher", push_while_starting, &pushers), WEIR_OK);
		rig_start(pushers.rig);
		assert_int_equal(rig_wait(pushers.rig), WEIR_OK);
		wr_thread_join(&thread);
		assert_int_equal(rig_queue(pushers.rig, "end.in").delivered, 1);
	}
	rig_destroy(pushers.rig);
}

static void b02_the_first_push_of_a_run_may_come_while_it_starts(void **state)
{
	(void)state;
	rig_everywhere(push_as_it_starts);
}

static void b02_inlets_and_outlets_are_made_before_the_scheduler(void **state)
{
	struct rig *rig = rig_of("source ticks=1 -> end");
	weir_inlet *inlet = NULL;
	weir_outlet *outlet = NULL;

	(void)state;
	assert_int_equal(weir_graph_add_inlet(rig->graph, "end.out", &inlet), WEIR_E_INVALID);
	assert_int_equal(weir_graph_add_inlet(rig->graph, "and.in", &inlet), WEIR_E_INVALID);
	assert_says(weir_last_error(), "and");
	assert_int_equal(weir_graph_add_outlet(rig->graph, "source", 1, 0, &outlet), WEIR_E_INVALID);
	assert_int_equal(weir_graph_add_outlet(rig->graph, "source.out", 65537, 0, &outlet), WEIR_E_INVALID);
	rig_make(rig);
	assert_int_equal(weir_graph_add_inlet(rig->graph, "end.in", &inlet), WEIR_E_STATE);
	assert_int_equal(weir_graph_add_outlet(rig->graph, "source.out", 1, 0, &outlet), WEIR_E_STATE);
	rig_destroy(rig);
}

static void c04_b02_a_latest_port_has_one_sender(void **state)
{
	struct rig *rig = rig_of("f:source ticks=1 -> e:end policy=latest; e2:end policy=latest period=1ms");
	weir_inlet *inlet = NULL;

	(void)state;
	assert_int_equal(weir_graph_add_inlet(rig->graph, "e.in", &inlet), WEIR_E_INVALID);
	assert_string_equal(weir_last_error(),
			    "e.in: the port has a sender, and 'latest' gives what came last by one");
	assert_int_equal(weir_graph_add_inlet(rig->graph, "e2.in", &inlet), WEIR_OK);
	assert_int_equal(weir_graph_add_inlet(rig->graph, "e2.in", &inlet), WEIR_E_INVALID);
	rig_destroy(rig);
}

/* --- B2: outlets --- */

static void take_all(void)
{
	struct rig *rig = rig_of("source ticks=5 -> end");
	weir_outlet *outlet = rig_outlet(rig, "source.out", 2, 0);

	rig_start(rig);
	for (int i = 0; i < 5; i++)
		assert_int_equal(rig_take(outlet, 60 * SECOND), i);
	assert_int_equal(rig_take(outlet, 60 * SECOND), WEIR_E_CLOSED); /* the sender is done */
	assert_int_equal(rig_wait(rig), WEIR_OK);
	assert_int_equal(rig_queue(rig, "outlet").delivered, 5);
	assert_int_equal(rig_take(outlet, 0), WEIR_E_CLOSED);
	rig_destroy(rig);
}

static void b02_an_outlet_gives_all_that_was_emitted(void **state)
{
	(void)state;
	rig_everywhere(take_all);
}

static void b02_an_outlet_that_is_full_holds_its_sender_and_the_run(void **state)
{
	struct rig *rig = rig_of("source ticks=5 -> end");
	weir_outlet *outlet = rig_outlet(rig, "source.out", 3, 0);

	(void)state;
	rig_start(rig);
	assert_int_equal(weir_scheduler_wait(rig->scheduler, 60 * SECOND, NULL), WEIR_E_TIMEOUT);
	assert_int_equal(rig_ticks(rig, "source"), 3);
	for (int i = 0; i < 5; i++)
		assert_int_equal(rig_take(outlet, 60 * SECOND), i);
	assert_int_equal(rig_wait(rig), WEIR_OK);
	rig_destroy(rig);
}

static void b02_an_empty_outlet_times_out(void **state)
{
	struct rig *rig = rig_of("source period=1s count=2 -> end");
	weir_outlet *outlet = rig_outlet(rig, "source.out", 1, 0);

	(void)state;
	rig_start(rig);
	assert_int_equal(rig_take(outlet, MS), 0);
	assert_int_equal(rig_take(outlet, 0), WEIR_E_TIMEOUT);
	assert_int_equal(rig_take(outlet, 500 * MS), WEIR_E_TIMEOUT);
	assert_int_equal(rig_take(outlet, SECOND), 1);
	assert_int_equal(rig_wait(rig), WEIR_OK);
	rig_destroy(rig);
}

static weir_status take_on_a_worker(struct rig *rig, weir_context *context)
{
	weir_message *message = NULL;

	(void)context;
	if (weir_outlet_take(rig->own, 0, &message) != WEIR_E_INVALID)
		rig_break(rig);
	return WEIR_OK;
}

static void b02_a_worker_takes_from_no_outlet(void **state)
{
	struct rig *rig = rig_of("c:call count=1");

	(void)state;
	rig->own = rig_outlet(rig, "c.out", 1, 0);
	rig_on(rig, "c", take_on_a_worker);
	assert_int_equal(rig_run(rig), WEIR_OK);
	rig_destroy(rig);
}

/* A thread takes all the time, also while the run is cut short and begins again. */
struct taker {
	weir_outlet *outlet;
	_Atomic bool over;
};

static void keep_taking(void *arg)
{
	struct taker *taker = arg;

	while (!wr_load(&taker->over)) {
		rig_take(taker->outlet, 10 * US);
		wr_thread_yield();
	}
}

static void cut_short_under_a_taker(void)
{
	struct rig *rig = rig_of("source delay=1us -> end capacity=4");
	struct taker taker = {.outlet = rig_outlet(rig, "source.out", 8, 0)};
	struct wr_thread thread = {0};

	rig_make(rig);
	assert_int_equal(wr_thread_start(&thread, "taker", keep_taking, &taker), WEIR_OK);
	for (int i = 0; i < 100; i++) {
		rig_start(rig);
		weir_sleep(i % 7 * 30 * US);
		weir_scheduler_stop(rig->scheduler, 0);
		assert_int_equal(rig_wait(rig), WEIR_OK);
	}
	wr_store(&taker.over, true);
	wr_thread_join(&thread);
	rig_destroy(rig);
}

static void b02_e05_a_taker_and_the_end_of_a_run_do_not_meet_in_the_queue(void **state)
{
	(void)state;
	rig_everywhere(cut_short_under_a_taker);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(b02_what_is_pushed_arrives_in_order_until_the_inlet_is_closed),
		cmocka_unit_test(b02_a_full_queue_pushes_back),
		cmocka_unit_test(b02_a_full_queue_with_the_policy_fault_refuses_a_push),
		cmocka_unit_test(
			b02_a_push_is_refused_outside_a_run_in_a_drain_and_when_the_receiver_is_done),
		cmocka_unit_test(b02_a_drain_closes_inlets),
		cmocka_unit_test(b02_a_worker_may_push_but_never_wait),
		cmocka_unit_test(b02_many_threads_push_into_one_inlet),
		cmocka_unit_test(b02_the_first_push_of_a_run_may_come_while_it_starts),
		cmocka_unit_test(b02_inlets_and_outlets_are_made_before_the_scheduler),
		cmocka_unit_test(c04_b02_a_latest_port_has_one_sender),
		cmocka_unit_test(b02_an_outlet_gives_all_that_was_emitted),
		cmocka_unit_test(b02_an_outlet_that_is_full_holds_its_sender_and_the_run),
		cmocka_unit_test(b02_an_empty_outlet_times_out),
		cmocka_unit_test(b02_a_worker_takes_from_no_outlet),
		cmocka_unit_test(b02_e05_a_taker_and_the_end_of_a_run_do_not_meet_in_the_queue),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
