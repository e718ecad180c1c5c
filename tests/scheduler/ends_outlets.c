/* Outlets in a program's own loop: the descriptor, the callback, the end of a run (B1, B2). */
#include <event2/event.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "base/thread.h"
#include "rig_inside.h"
#include "tests/calls.h"

static weir_status go_on(struct rig *rig, int64_t ns)
{
	return weir_scheduler_wait(rig->scheduler, ns, NULL);
}

/* --- the descriptor --- */

static void xb05_the_descriptor_says_whether_a_take_would_answer_at_once(void **state)
{
	struct rig *rig = rig_of("source period=1s count=2 -> end");
	weir_outlet *outlet = rig_outlet(rig, "source.out", 1, 0);

	(void)state;
	assert_false(rig_readable(outlet));
	for (int i = 0; i < 2; i++) {
		rig_start(rig);
		assert_false(rig_readable(outlet)); /* not readable from the previous run */
		assert_int_equal(go_on(rig, 100 * MS), WEIR_E_TIMEOUT);
		assert_true(rig_readable(outlet));
		assert_int_equal(rig_take(outlet, 0), 0);
		assert_false(rig_readable(outlet));
		assert_int_equal(go_on(rig, SECOND), WEIR_E_TIMEOUT);
		assert_int_equal(rig_take(outlet, 0), 1);
		assert_int_equal(rig_wait(rig), WEIR_OK);
		assert_true(rig_readable(outlet));
		assert_int_equal(rig_take(outlet, 0), WEIR_E_CLOSED);
		assert_true(rig_readable(outlet));
	}
	rig_destroy(rig);
}

static void xb05_a_descriptor_that_is_asked_for_late_shows_what_is_there(void **state)
{
	struct rig *rig = rig_of("source ticks=1 -> end");
	weir_outlet *outlet = rig_outlet(rig, "source.out", 1, 0);

	(void)state;
	rig_start(rig);
	assert_int_equal(go_on(rig, SECOND), WEIR_E_TIMEOUT);
	assert_true(rig_readable(outlet));
	assert_int_equal(outlet_fd(outlet), outlet_fd(outlet));
	assert_int_equal(rig_take(outlet, 0), 0);
	assert_true(rig_readable(outlet)); /* the sender is DONE */
	assert_int_equal(rig_wait(rig), WEIR_OK);
	rig_destroy(rig);
}

static void xb05_what_a_cut_has_left_reads_as_the_end(void **state)
{
	struct rig *rig = rig_of("source ticks=1 -> end; other:source period=1s -> more:end");
	weir_outlet *outlet = rig_outlet(rig, "source.out", 1, 0),
		    *other = rig_outlet(rig, "other.out", 1, 0);

	(void)state;
	rig_start(rig);
	assert_int_equal(go_on(rig, 100 * MS), WEIR_E_TIMEOUT);
	assert_int_equal(rig_take(other, 0), 0);
	assert_false(rig_readable(other));
	weir_scheduler_stop(rig->scheduler, 0);
	assert_int_equal(rig_wait(rig), WEIR_OK);
	assert_true(rig_readable(outlet));
	assert_true(rig_readable(other));
	assert_int_equal(rig_take(outlet, 0), WEIR_E_CLOSED);
	rig_destroy(rig);
}

/* Several threads that poll and take without blocking: nothing is lost, and all see the end. */
struct pollers {
	weir_outlet *outlet;
	_Atomic unsigned taken;
};

static void poll_and_take(void *arg)
{
	struct pollers *pollers = arg;
	struct pollfd fd = {.fd = outlet_fd(pollers->outlet), .events = POLLIN};
	weir_status status = WEIR_E_TIMEOUT;

	while (status != WEIR_E_CLOSED && poll(&fd, 1, 20000) == 1) {
		weir_message *message = NULL;
		status = weir_outlet_take(pollers->outlet, 0, &message);
		if (!status)
			wr_fetch_add(&pollers->taken, 1);
		weir_message_unref(message);
	}
}

static void xb05_threads_that_poll_lose_nothing_and_see_the_end(void **state)
{
	struct pollers pollers = {0};
	struct wr_thread threads[3] = {{0}};
	struct rig *rig = rig_of("source ticks=2000 -> end");

	(void)state;
	rig->options.backend = "host";
	pollers.outlet = rig_outlet(rig, "source.out", 2, 0);
	rig_start(rig);
	for (int i = 0; i < 3; i++)
		assert_int_equal(wr_thread_start(&threads[i], "poller", poll_and_take, &pollers), WEIR_OK);
	for (int i = 0; i < 3; i++)
		wr_thread_join(&threads[i]);
	assert_int_equal(rig_wait(rig), WEIR_OK);
	assert_int_equal(wr_load(&pollers.taken), 2000);
	rig_destroy(rig);
}

/* --- an inlet's descriptor --- */

static bool has_room(weir_inlet *inlet)
{
	struct pollfd fd = {.fd = inlet_fd(inlet), .events = POLLIN};

	return poll(&fd, 1, 0) == 1;
}

static weir_status push(struct rig *rig, weir_inlet *inlet)
{
	weir_message *message = rig_message(rig, 1);
	weir_status status = weir_inlet_push(inlet, message, 0);

	if (status)
		weir_message_unref(message);
	return status;
}

static void refuse_and_push_again(const char *text)
{
	struct rig *rig = rig_of(text);
	weir_inlet *inlet = NULL;

	assert_int_equal(weir_graph_add_inlet(rig->graph, "end.in", &inlet), WEIR_OK);
	assert_true(has_room(inlet)); /* nothing was refused */
	for (int i = 0; i < 2; i++) {
		rig_start(rig);
		rig_tell(rig, "end", WEIR_TOLD_WAIT);
		assert_int_equal(push(rig, inlet), WEIR_OK);
		assert_true(has_room(inlet));
		assert_int_equal(push(rig, inlet), WEIR_E_BUSY);
		assert_false(has_room(inlet));
		assert_int_equal(push(rig, inlet), WEIR_E_BUSY);
		rig_tell(rig, "end", WEIR_TOLD_READY);
		assert_int_equal(go_on(rig, SECOND), WEIR_E_TIMEOUT);
		assert_true(has_room(inlet));
		rig_tell(rig, "end", WEIR_TOLD_WAIT);
		assert_int_equal(push(rig, inlet), WEIR_OK);
		assert_int_equal(push(rig, inlet), WEIR_E_BUSY);
		weir_inlet_close(inlet);
		assert_true(has_room(inlet)); /* push, to hear that it is closed */
		assert_int_equal(push(rig, inlet), WEIR_E_CLOSED);
		weir_scheduler_stop(rig->scheduler, 0);
		assert_int_equal(rig_wait(rig), WEIR_OK);
	}
	rig_destroy(rig);
}

static void b02_an_inlets_descriptor_says_that_a_refused_push_may_come_again(void **state)
{
	(void)state;
	refuse_and_push_again("end enabled=false");
	refuse_and_push_again("end enabled=false policy=fault");
}

struct feeder {
	struct rig *rig;
	weir_inlet *inlet;
	struct wr_thread thread;
};

static void poll_and_push(void *arg)
{
	struct feeder *feeder = arg;
	struct pollfd fd = {.fd = inlet_fd(feeder->inlet), .events = POLLIN};

	for (int pushed = 0; pushed < 2000;) {
		weir_status status = push(feeder->rig, feeder->inlet);

		pushed += !status;
		if (status)
			assert_int_equal(poll(&fd, 1, 20000), 1);
	}
}

static void poll_for_room(const char *text)
{
	struct rig *rig = rig_of(text);
	struct feeder feeders[3];
	weir_inlet *inlet = NULL;

	rig->options.backend = "host";
	assert_int_equal(weir_graph_add_inlet(rig->graph, "end.in", &inlet), WEIR_OK);
	assert_true(inlet_fd(inlet) >= 0);
	rig_start(rig);
	for (int i = 0; i < 3; i++) {
		feeders[i] = (struct feeder){.rig = rig, .inlet = inlet};
		assert_int_equal(wr_thread_start(&feeders[i].thread, "feeder", poll_and_push, &feeders[i]),
				 WEIR_OK);
	}
	for (int i = 0; i < 3; i++)
		wr_thread_join(&feeders[i].thread);
	weir_inlet_close(inlet);
	assert_int_equal(rig_wait(rig), WEIR_OK);
	assert_int_equal(rig_ticks(rig, "end"), 6000);
	rig_destroy(rig);
}

static void b02_threads_that_poll_miss_no_room(void **state)
{
	(void)state;
	poll_for_room("end capacity=1");
	poll_for_room("end capacity=1 policy=fault");
}

/* --- an outlet that is closed --- */

static void b02_a_closed_outlet_drops_what_it_has_and_what_comes(void **state)
{
	struct rig *rig = rig_of("source ticks=20 -> end");
	weir_outlet *outlet = rig_outlet(rig, "source.out", 2, 0);

	(void)state;
	for (int i = 0; i < 2; i++) { /* the next run opens it */
		rig_start(rig);
		assert_int_equal(go_on(rig, SECOND), WEIR_E_TIMEOUT);
		assert_int_equal(rig_take(outlet, 0), 0);
		assert_int_equal(go_on(rig, SECOND), WEIR_E_TIMEOUT);
		assert_true(rig_ticks(rig, "end") < 5);
		weir_outlet_close(outlet);
		assert_true(rig_readable(outlet));
		assert_int_equal(rig_take(outlet, 0), WEIR_E_CLOSED);
		assert_int_equal(rig_wait(rig), WEIR_OK);
		assert_int_equal(rig_ticks(rig, "end"), 20);
		assert_int_equal(rig_take(outlet, 0), WEIR_E_CLOSED);
	}
	rig_destroy(rig);
}

static weir_status close_it(struct rig *rig, weir_context *context)
{
	(void)context;
	weir_outlet_close(rig->own);
	return WEIR_OK;
}

/* Without a scheduler there is nothing to drop; a worker must not wait for the lock. */
static void b02_a_close_outside_of_runs_or_by_a_worker_keeps_the_outlet_open(void **state)
{
	struct rig *rig = rig_of("source ticks=3 -> end; c:call count=1");
	weir_outlet *outlet = rig_outlet(rig, "source.out", 3, 0);

	(void)state;
	rig->own = outlet;
	rig_on(rig, "c", close_it);
	weir_outlet_close(outlet);
	rig_make(rig);
	weir_outlet_close(outlet);
	rig_start(rig);
	assert_int_equal(go_on(rig, SECOND), WEIR_E_TIMEOUT);
	for (int i = 0; i < 3; i++)
		assert_int_equal(rig_take(outlet, 0), i);
	assert_int_equal(rig_wait(rig), WEIR_OK);
	rig_destroy(rig);
}

/* --- without descriptors --- */

static void b02_an_end_whose_descriptor_cannot_be_made_says_so_and_can_be_asked_again(void **state)
{
	struct rig *rig = rig_of("source ticks=1 -> end; e:end");
	weir_outlet *outlet = rig_outlet(rig, "source.out", 1, 0);
	weir_inlet *inlet = NULL;
	struct rlimit all, none;
	int fd = -7;

	(void)state;
	assert_int_equal(weir_graph_add_inlet(rig->graph, "e.in", &inlet), WEIR_OK);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &all), 0);
	none = all;
	none.rlim_cur = 0;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	assert_int_equal(weir_outlet_fd(outlet, &fd), WEIR_E_IO);
	assert_says(weir_last_error(), "the descriptor of the outlet of source.out: ");
	assert_int_equal(weir_inlet_fd(inlet, &fd), WEIR_E_IO);
	assert_says(weir_last_error(), "the descriptor of the inlet of e.in: ");
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &all), 0);
	assert_int_equal(fd, -7);
	assert_int_equal(weir_inlet_fd(inlet, &fd), WEIR_OK);
	assert_int_equal(weir_outlet_fd(outlet, &fd), WEIR_OK);
	assert_true(fd >= 0);
	rig_destroy(rig);
}

/* --- what observers are told --- */

static struct told {
	unsigned delivered, dropped, taken;
} told[2]; /* by queue */

static weir_status open_told(const struct wr_trace_options *options, void **self)
{
	(void)options;
	*self = told;
	return WEIR_OK;
}

static void on_deliver(void *self, int64_t at, unsigned lane, uint32_t queue, uint64_t number)
{
	(void)self, (void)at, (void)lane, (void)number;
	told[queue].delivered++;
}

static void on_drop(void *self, int64_t at, unsigned lane, uint32_t queue, uint64_t number)
{
	(void)self, (void)at, (void)lane, (void)number;
	told[queue].dropped++;
}

static void on_take(void *self, int64_t at, unsigned lane, uint32_t queue, uint64_t number)
{
	(void)self, (void)at, (void)lane, (void)number;
	told[queue].taken++;
}

static const struct wr_observer teller = {
	.name = "told", .open = open_told, .deliver = on_deliver, .drop = on_drop, .take = on_take};

static void e05_observers_are_told_of_what_a_closed_outlet_drops(void **state)
{
	struct rig *rig = rig_of("source ticks=20 -> end");
	weir_outlet *outlet = rig_outlet(rig, "source.out", 2, 0);

	(void)state;
	rig_make(rig);
	assert_int_equal(rig_observe(rig, &teller), WEIR_OK);
	memset(told, 0, sizeof told);
	rig_start(rig);
	assert_int_equal(go_on(rig, SECOND), WEIR_E_TIMEOUT);
	assert_int_equal(told[1].delivered, 2);
	weir_outlet_close(outlet);
	assert_int_equal(told[1].taken, 2);
	assert_int_equal(rig_wait(rig), WEIR_OK);
	assert_int_equal(told[1].delivered, 20);
	rig_destroy(rig);
}

static void e05_observers_are_told_of_what_a_push_of_the_program_drops(void **state)
{
	struct rig *rig = rig_of("end policy=pop enabled=false");
	weir_inlet *inlet = NULL;

	(void)state;
	assert_int_equal(weir_graph_add_inlet(rig->graph, "end.in", &inlet), WEIR_OK);
	rig_make(rig);
	assert_int_equal(rig_observe(rig, &teller), WEIR_OK);
	memset(told, 0, sizeof told);
	rig_start(rig);
	for (int i = 0; i < 3; i++)
		assert_int_equal(weir_inlet_push(inlet, rig_message(rig, i), 0), WEIR_OK);
	assert_int_equal(told[0].delivered, 3);
	assert_int_equal(told[0].dropped, 2);
	rig_tell(rig, "end", WEIR_TOLD_READY);
	weir_inlet_close(inlet);
	assert_int_equal(rig_wait(rig), WEIR_OK);
	assert_string_equal(rig_text(rig, "end"), "2");
	rig_destroy(rig);
}

/* --- the end of a run --- */

struct ending {
	unsigned told;
	weir_status start, wait, destroy;
	bool running;
};

static void on_end(weir_scheduler *scheduler, void *arg)
{
	struct ending *ending = arg;

	ending->told++;
	ending->running = weir_scheduler_running(scheduler);
	ending->start = weir_scheduler_start(scheduler);
	ending->wait = weir_scheduler_wait(scheduler, 0, NULL);
	ending->destroy = weir_scheduler_destroy(scheduler);
}

static void assert_told(const struct ending *ending, unsigned times)
{
	assert_int_equal(ending->told, times);
	assert_false(ending->running);
	assert_int_equal(ending->start, WEIR_E_STATE);
	assert_int_equal(ending->wait, WEIR_E_STATE);
	assert_int_equal(ending->destroy, WEIR_E_STATE);
}

static struct rig *rig_with_end(const char *text, struct ending *ending)
{
	struct rig *rig = rig_of(text);

	rig->options.ended = on_end;
	rig->options.ended_arg = ending;
	return rig;
}

static void xb05_the_end_of_each_run_is_told_once(void **state)
{
	struct ending ending = {0};
	struct rig *rig = rig_with_end("source ticks=3 -> end", &ending);

	(void)state;
	for (unsigned i = 1; i <= 3; i++) {
		assert_int_equal(rig_run(rig), WEIR_OK);
		assert_told(&ending, i);
	}
	rig_destroy(rig);
	assert_int_equal(ending.told, 3);
}

static void xb05_on_threads_the_end_is_told_by_the_time_of_destroy(void **state)
{
	struct ending ending = {0};
	struct rig *rig = rig_with_end("source ticks=3 -> end", &ending);

	(void)state;
	rig->options.backend = "host";
	assert_int_equal(rig_run(rig), WEIR_OK);
	rig_destroy(rig);
	assert_told(&ending, 1);
}

static void xb05_a_run_that_destroy_cuts_short_is_told_of_too(void **state)
{
	struct ending ending = {0};
	struct rig *rig = rig_with_end("source period=1s -> end", &ending);

	(void)state;
	rig->options.backend = "host";
	rig->options.own_loop = true;
	rig_start(rig);
	rig_destroy(rig);
	assert_told(&ending, 1);
}

static weir_status refuse(struct rig *rig, weir_context *context)
{
	(void)rig;
	return weir_context_fail(context, "no");
}

static void xb05_a_start_that_failed_has_no_end(void **state)
{
	struct ending ending = {0};
	struct rig *rig = rig_with_end("c:call", &ending);

	(void)state;
	rig_entity(rig, "c")->start = refuse;
	rig_make(rig);
	rig_here(rig);
	assert_int_equal(weir_scheduler_start(rig->scheduler), WEIR_E_FAILED);
	assert_int_equal(ending.told, 0);
	rig_destroy(rig);
}

/* --- the caller's event_base --- */

struct program {
	weir_outlet *outlet;
	struct event *event;
	unsigned taken;
};

static void on_outlet(evutil_socket_t fd, short what, void *arg)
{
	struct program *program = arg;
	weir_message *message = NULL;
	weir_status status;

	(void)fd;
	(void)what;
	while (!(status = weir_outlet_take(program->outlet, 0, &message))) {
		program->taken++;
		weir_message_unref(message);
	}
	if (status == WEIR_E_CLOSED)
		event_del(program->event);
}

static void xb05_the_dispatch_of_a_base_returns_after_the_run(void **state)
{
	struct ending ending = {0};
	struct event_base *base = event_base_new();
	struct rig *rig = rig_with_end("source ticks=100 -> end", &ending);
	struct program program = {.outlet = rig_outlet(rig, "source.out", 2, 0)};

	(void)state;
	rig->options.backend = "host";
	rig->options.event_base = base;
	program.event = event_new(base, outlet_fd(program.outlet), EV_READ | EV_PERSIST, on_outlet, &program);
	for (unsigned i = 1; i <= 3; i++) {
		assert_int_equal(event_base_dispatch(base), 1); /* it holds no event */
		rig_start(rig);
		event_add(program.event, NULL);
		assert_int_equal(event_base_dispatch(base), 1);
		assert_false(weir_scheduler_running(rig->scheduler));
		assert_told(&ending, i);
		assert_int_equal(program.taken, 100 * i);
		assert_int_equal(rig_wait(rig), WEIR_OK);
	}
	rig_destroy(rig);
	event_free(program.event);
	event_base_free(base);
}

static void xb05_a_start_that_failed_leaves_nothing_in_the_base(void **state)
{
	struct event_base *base = event_base_new();
	struct rig *rig = rig_of("c:call");

	(void)state;
	rig->options.backend = "host";
	rig->options.event_base = base;
	rig_entity(rig, "c")->start = refuse;
	rig_make(rig);
	rig_here(rig);
	assert_int_equal(weir_scheduler_start(rig->scheduler), WEIR_E_FAILED);
	assert_int_equal(event_base_dispatch(base), 1);
	rig_destroy(rig);
	event_base_free(base);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(xb05_the_descriptor_says_whether_a_take_would_answer_at_once),
		cmocka_unit_test(xb05_a_descriptor_that_is_asked_for_late_shows_what_is_there),
		cmocka_unit_test(xb05_what_a_cut_has_left_reads_as_the_end),
		cmocka_unit_test(xb05_threads_that_poll_lose_nothing_and_see_the_end),
		cmocka_unit_test(b02_an_inlets_descriptor_says_that_a_refused_push_may_come_again),
		cmocka_unit_test(b02_threads_that_poll_miss_no_room),
		cmocka_unit_test(b02_a_closed_outlet_drops_what_it_has_and_what_comes),
		cmocka_unit_test(b02_a_close_outside_of_runs_or_by_a_worker_keeps_the_outlet_open),
		cmocka_unit_test(b02_an_end_whose_descriptor_cannot_be_made_says_so_and_can_be_asked_again),
		cmocka_unit_test(e05_observers_are_told_of_what_a_closed_outlet_drops),
		cmocka_unit_test(e05_observers_are_told_of_what_a_push_of_the_program_drops),
		cmocka_unit_test(xb05_the_end_of_each_run_is_told_once),
		cmocka_unit_test(xb05_on_threads_the_end_is_told_by_the_time_of_destroy),
		cmocka_unit_test(xb05_a_run_that_destroy_cuts_short_is_told_of_too),
		cmocka_unit_test(xb05_a_start_that_failed_has_no_end),
		cmocka_unit_test(xb05_the_dispatch_of_a_base_returns_after_the_run),
		cmocka_unit_test(xb05_a_start_that_failed_leaves_nothing_in_the_base),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
