/*
 * Outside threads at bad moments: they take, push and read counts while a run begins, is cut short or ends.
 * On the build whose atomics are switching points.
 */

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/memory.h"
#include "sim/random.h"
#include "sim/simulation.h"
#include "base/thread.h"
#include "scheduler/graph.h"
#include "scheduler/pool.h"
#include "rig.h"
#include "scheduler/scheduler.h"
#include "streams/system.h"

enum { SEEDS = 3000 };

static void in_worlds(void (*body)(void))
{
	for (uint64_t seed = 1; seed <= SEEDS; seed++)
		rig_in_world(seed, body);
}

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
		status = weir_outlet_take(outsider->outlet, &message, 4 * US);
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

	assert_int_equal(weir_graph_outlet(rig->graph, "p.out", 4, 0, &outsider.outlet), WEIR_OK);
	rig_start(rig);
	weir_sleep(21 * US); /* the outlet is full, the workers are asleep */
	assert_int_equal(wr_thread_start(&outsider.thread, "taker", take_all, &outsider), WEIR_OK);
	weir_scheduler_stop(rig->scheduler, false);
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
	in_worlds(cut_short_beside_a_taker);
}

static void push_on(void *arg)
{
	struct outsider *outsider = arg;
	weir_message *message = NULL;
	weir_status status = WEIR_OK;

	while (status != WEIR_E_CLOSED) {
		if (weir_message_empty(&message, outsider->rig->graph))
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

	assert_int_equal(weir_graph_inlet(rig->graph, "end.in", &outsider.inlet), WEIR_OK);
	rig_start(rig);
	assert_int_equal(wr_thread_start(&outsider.thread, "pusher", push_on, &outsider), WEIR_OK);
	weir_sleep(21 * US);
	weir_scheduler_stop(rig->scheduler, false);
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
	in_worlds(cut_short_beside_a_pusher);
}

static void b02_e06_an_outlet_that_cannot_hold_one_tick_is_refused(void **state)
{
	struct rig *rig = rig_of("source ticks=2 emits=3 source.out max_emits=3");
	weir_outlet *outlet = NULL;

	(void)state;
	assert_int_equal(weir_graph_outlet(rig->graph, "source.out", 2, 0, &outlet), WEIR_E_INVALID);
	assert_non_null(strstr(weir_last_error(), "source.out: one tick may emit 3, but only 2 fit"));
	assert_int_equal(weir_graph_outlet(rig->graph, "source.out", 0, 0, &outlet), WEIR_E_INVALID);
	assert_null(outlet);
	assert_int_equal(weir_graph_outlet(rig->graph, "source.out", 3, 0, &outlet), WEIR_OK);
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
		for (size_t i = 0; weir_scheduler_queue_counts(look->rig->scheduler, i, &counts); i++)
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
	in_worlds(run_beside_a_looker);
	rig_on_host(run_beside_a_looker);
}

/* --- refused --- */

/* At most one token: one of three entities has it, two wait in the FIFO. A poked entity keeps its place. */
static void poke_while_in_the_fifo(void)
{
	struct rig *rig = rig_of("a:source ticks=1 work=1ms -> x:end gate=in; "
				 "b:source ticks=1 work=1ms -> y:end gate=in; "
				 "c:source ticks=1 work=1ms -> z:end gate=in");
	struct wr_signals *signals;
	uint32_t first;

	rig_make(rig);
	signals = &rig->graph->system->signals;
	signals->bound = 1;
	rig_start(rig);
	weir_sleep(500 * US);
	assert_non_null(signals->first);
	assert_non_null(signals->first->next);
	first = signals->first->entity;
	assert_int_equal(weir_entity_poke(&rig->graph->entities[first]), WEIR_OK);
	weir_sleep(100 * US);
	assert_int_equal(signals->first->entity, first);
	assert_int_equal(rig_wait(rig), WEIR_OK);
	rig_destroy(rig);
}

static void g02_a_poke_does_not_cost_a_refused_entity_its_turn(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 20; seed++)
		rig_in_world(seed, poke_while_in_the_fifo);
}

/* --- destructors --- */

static int nap(const void *arguments)
{
	(void)arguments;
	weir_sleep(1 * US);
	return 0;
}

static const weir_kernel napping = {sizeof(weir_kernel), "nap", nap, NULL};

static void count_up(void *counter)
{
	wr_fetch_add((_Atomic uint64_t *)counter, 1);
}

/*
 * A message that its reader drops while the device still works on it, so its destructor runs later, on a
 * worker.
 */
static weir_status make_counted(struct rig *rig, weir_context *context)
{
	weir_stream *stream = weir_context_stream(context);
	weir_message *message = NULL;
	weir_status status = stream ? weir_stream_launch(stream, &napping, "", 1) : WEIR_E_DEVICE;

	if (!status)
		status = weir_message_user(&message, weir_context_graph(context), &rig->told, count_up);
	weir_sleep(1 * US);
	if (weir_context_tick(context) == 999999 || wr_load(&rig->told) > 10)
		weir_context_finish(context);
	return status ? status : weir_context_emit(context, 0, message);
}

static void run_without_a_pause(void)
{
	struct rig *rig = rig_of("a:call -> end");

	rig->options.workers = 1;
	rig->options.max_duration_ns = 20 * SECOND;
	rig_on(rig, "a", make_counted);
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_in_range(rig_ticks(rig, "a"), 1, 999999);
	assert_in_range(rig->outcome.duration_ns, 1, 10 * SECOND);
	assert_int_equal(wr_load(&rig->told), rig_ticks(rig, "a"));
	rig_destroy(rig);
}

static void b03_t04_destructors_run_although_the_workers_are_never_idle(void **state)
{
	(void)state;
	rig_in_world(1, run_without_a_pause);
}

/* --- S11 --- */

struct bomb {
	struct rig *rig;
	weir_inlet *inlet;
	unsigned more; /* how many more its destructor pushes */
	_Atomic uint64_t gone;
	_Atomic bool early; /* destroyed before the device had read it */
};

static void go_off(void *arg);

static weir_status push_bomb(struct bomb *bomb)
{
	weir_message *message = NULL;
	weir_status status = weir_message_user(&message, bomb->rig->graph, bomb, go_off);

	assert_int_equal(status, WEIR_OK);
	status = weir_inlet_push(bomb->inlet, message, 0);
	if (status)
		weir_message_unref(message);
	return status;
}

static void go_off(void *arg)
{
	struct bomb *bomb = arg;

	if (wr_mutex_held())
		rig_break(bomb->rig);
	wr_fetch_add(&bomb->gone, 1);
	if (!bomb->more)
		return;
	bomb->more--;
	push_bomb(bomb);
}

static void push_into_full(const char *policy)
{
	char text[60];
	struct bomb bomb = {.more = 0};

	snprintf(text, sizeof text, "end capacity=1 enabled=false policy=%s", policy);
	bomb.rig = rig_of(text);
	assert_int_equal(weir_graph_inlet(bomb.rig->graph, "end.in", &bomb.inlet), WEIR_OK);
	rig_start(bomb.rig);
	assert_int_equal(push_bomb(&bomb), WEIR_OK);
	bomb.more = 2;
	assert_int_equal(push_bomb(&bomb), WEIR_OK);
	assert_int_equal(wr_load(&bomb.gone), 3);
	assert_int_equal(rig_queue(bomb.rig, "end.in").dropped, 3);
	weir_scheduler_stop(bomb.rig->scheduler, false);
	assert_int_equal(rig_wait(bomb.rig), WEIR_OK);
	assert_int_equal(wr_load(&bomb.gone), 4);
	rig_destroy(bomb.rig);
}

static void push_where_destructors_push(void)
{
	push_into_full("pop");
	push_into_full("reject");
}

static void s11_b02_what_an_inlet_drops_may_push_into_it_again(void **state)
{
	(void)state;
	rig_everywhere(push_where_destructors_push);
}

static weir_status emit_bombs(struct rig *rig, weir_context *context)
{
	weir_message *message = NULL;

	if (weir_message_user(&message, weir_context_graph(context), rig->own, go_off))
		return WEIR_E_NOMEM;
	return weir_context_emit(context, 0, message);
}

static void cut_short_with_a_full_outlet(void)
{
	struct rig *rig = rig_of("c:call");
	struct bomb bomb = {.rig = rig};
	weir_outlet *outlet = NULL;

	rig->own = &bomb;
	rig_on(rig, "c", emit_bombs);
	assert_int_equal(weir_graph_outlet(rig->graph, "c.out", 3, 0, &outlet), WEIR_OK);
	rig_start(rig);
	while (rig_queue(rig, "outlet").pushed < 3)
		weir_sleep(10 * US);
	weir_scheduler_stop(rig->scheduler, false);
	assert_int_equal(rig_wait(rig), WEIR_OK);
	assert_int_equal(rig_queue(rig, "outlet").abandoned, 3);
	assert_int_equal(wr_load(&bomb.gone), 3);
	rig_destroy(rig);
}

static void s11_b02_no_lock_is_held_while_an_outlet_is_abandoned(void **state)
{
	(void)state;
	rig_everywhere(cut_short_with_a_full_outlet);
}

static void push_beside_done(void)
{
	struct rig *rig = rig_of("end count=2 capacity=4 policy=pop");
	struct bomb bomb = {.rig = rig};
	uint64_t pushed = 0;

	assert_int_equal(weir_graph_inlet(rig->graph, "end.in", &bomb.inlet), WEIR_OK);
	rig_start(rig);
	for (; !push_bomb(&bomb); pushed++)
		weir_sleep(wr_random_below(wr_sim_random(wr_sim_current()), 3) * US / 4);
	assert_int_equal(rig_wait(rig), WEIR_OK);
	assert_int_equal(rig_queue(rig, "end.in").pushed, pushed);
	assert_int_equal(wr_load(&bomb.gone), pushed + 1);
	assert_int_equal(rig_queue(rig, "end.in").queued, 0);
	rig_destroy(rig);
}

static void s05_s11_what_was_pushed_as_the_receiver_ended_is_taken_back_without_locks(void **state)
{
	(void)state;
	in_worlds(push_beside_done);
}

static void t04_memory_of_held_messages_is_not_replaced_with_their_device(void **state)
{
	struct rig *rig = rig_of("source ticks=1 work=1us");
	weir_message *message = NULL;
	weir_outlet *outlet = NULL;

	(void)state;
	assert_int_equal(weir_graph_outlet(rig->graph, "source.out", 1, 0, &outlet), WEIR_OK);
	rig->options.backend = "host";
	rig_start(rig);
	assert_int_equal(weir_outlet_take(outlet, &message, SECOND), WEIR_OK);
	assert_int_equal(rig_wait(rig), WEIR_OK);
	assert_int_equal(weir_scheduler_destroy(rig->scheduler), WEIR_OK);
	rig->scheduler = NULL;
	rig->options.backend = "sim";
	assert_int_equal(weir_scheduler_create(&rig->scheduler, rig->graph, &rig->options), WEIR_E_BUSY);
	assert_non_null(strstr(weir_last_error(), "1 messages of its run on host are still held"));
	assert_int_equal(rig_value(message), 0);
	weir_message_unref(message);
	rig_make(rig);
	rig_destroy(rig);
}

/* --- no memory for a fence --- */

static int read_slowly(const void *arguments)
{
	struct bomb *bomb = *(struct bomb *const *)arguments;

	weir_sleep(100 * US);
	if (wr_load(&bomb->gone))
		wr_store(&bomb->early, true);
	return 0;
}

static const weir_kernel reading = {sizeof(weir_kernel), "read", read_slowly, NULL};

/* Its stream reads the payload when there is neither room nor memory for one more fence. */
static weir_status use_without_memory(struct rig *rig, weir_context *context)
{
	weir_stream *stream = weir_context_stream(context);
	weir_fence fence;

	if (!stream || weir_stream_launch(stream, &reading, &rig->own, sizeof rig->own))
		return WEIR_E_DEVICE;
	wr_memory_fail_at(0, true);
	while (!weir_stream_record(stream, &fence))
		;
	return weir_stream_launch(stream, &napping, "", 1);
}

static void run_out_of_fences(void)
{
	struct rig *rig = rig_of("c:call count=1 -> user:call");
	struct bomb bomb = {.rig = rig};

	rig->own = &bomb;
	rig_on(rig, "c", emit_bombs);
	rig_on(rig, "user", use_without_memory);
	rig_start(rig);
	assert_int_equal(rig_wait(rig), WEIR_E_NOMEM);
	wr_memory_fail_at(-1, false);
	rig_destroy(rig);
	assert_false(wr_load(&bomb.early));
	assert_int_equal(wr_load(&bomb.gone), 1);
}

static void t04_f40_without_memory_for_a_fence_payloads_are_kept(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 20; seed++)
		rig_in_world(seed, run_out_of_fences);
}

/* --- large graphs --- */

static void f40_deep_queues_do_not_cost_memory_before_they_are_filled(void **state)
{
	char text[4000] = "end";
	size_t length = strlen(text);
	struct rig *rig;

	(void)state;
	for (int i = 0; i < 40; i++)
		length += (size_t)snprintf(text + length, sizeof text - length,
					   "; s%d:source ticks=1 -> end.any", i);
	snprintf(text + length, sizeof text - length, " capacity=65536");
	rig = rig_of(text);
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_int_equal(rig_queue(rig, "end.any").capacity, 65536);
	assert_in_range(rig->graph->pool->total, 40, 33000);
	rig_destroy(rig);
}

/* An outlet whose creation failed does not exist: no run waits for it. */
static void s05_f40_an_outlet_that_memory_refused_leaves_no_trace(void **state)
{
	weir_status status = WEIR_E_NOMEM;

	(void)state;
	for (int64_t n = 0; status; n++) {
		struct rig *rig = rig_of("source -> end count=2");
		weir_outlet *outlet = NULL;
		wr_memory_fail_at(n, false);
		status = weir_graph_outlet(rig->graph, "source.out", 1, 0, &outlet);
		wr_memory_fail_at(-1, false);
		rig->options.max_duration_ns = 10 * SECOND;
		if (status) {
			assert_int_equal(rig_run(rig), WEIR_OK);
			assert_int_equal(rig_ticks(rig, "end"), 2);
			assert_in_range(rig->outcome.duration_ns, 0, SECOND);
		}
		rig_destroy(rig);
	}
}

/* --- the line of a failed run --- */

static weir_status wait_for_oneself(struct rig *rig, weir_context *context)
{
	(void)context;
	if (weir_scheduler_wait(rig->scheduler, -1, NULL) != WEIR_E_INVALID)
		rig_break(rig);
	return weir_scheduler_destroy(rig->scheduler);
}

static void e01_a_worker_that_waits_for_its_own_run_is_refused(void **state)
{
	struct rig *rig = rig_of("a:call");

	(void)state;
	rig->options.backend = "host";
	rig_on(rig, "a", wait_for_oneself);
	assert_int_equal(rig_run(rig), WEIR_E_INVALID);
	assert_string_equal(rig->outcome.text, "a worker must not destroy its own scheduler");
	rig_destroy(rig);
}

static weir_status do_not_start(struct rig *rig, weir_context *context)
{
	(void)rig;
	return weir_context_fail(context, "no camera");
}

static void e01_a_wait_for_a_run_that_did_not_begin_says_why(void **state)
{
	struct rig *rig = rig_of("a:call");

	(void)state;
	rig_entity(rig, "a")->start = do_not_start;
	rig_make(rig);
	rig_here(rig);
	assert_int_equal(weir_scheduler_start(rig->scheduler), WEIR_E_FAILED);
	assert_int_equal(rig_wait(rig), WEIR_E_FAILED);
	assert_string_equal(rig->outcome.text, "a: no camera");
	rig_destroy(rig);
}

static void e06_a_wait_for_a_run_of_an_unconnected_graph_names_the_port(void **state)
{
	struct rig *rig = rig_of("source");

	(void)state;
	rig_make(rig);
	assert_int_equal(weir_scheduler_start(rig->scheduler), WEIR_E_INVALID);
	assert_int_equal(rig_wait(rig), WEIR_E_INVALID);
	assert_non_null(strstr(rig->outcome.text, "source.out"));
	rig_destroy(rig);
}

static void s06_f40_a_deadlock_without_memory_for_words_is_one(void **state)
{
	struct rig *rig = rig_of("source ticks=1 -> end enabled=false");

	(void)state;
	rig->options.backend = "host";
	rig->options.own_loop = true;
	rig->options.deadlock_grace_ns = 200 * MS;
	rig_start(rig);
	assert_int_equal(weir_scheduler_wait(rig->scheduler, 5 * MS, NULL), WEIR_E_TIMEOUT);
	wr_memory_fail_at(0, true);
	assert_int_equal(rig_wait(rig), WEIR_E_DEADLOCK);
	wr_memory_fail_at(-1, false);
	assert_int_equal(rig->outcome.leftover, 1);
	rig_destroy(rig);
}

/* --- streams in stop --- */

static void use_stream_at_stop(struct rig *rig, weir_context *context)
{
	static const int64_t one = 1;
	static const weir_tensor like = {sizeof(weir_tensor), NULL, 0, 1, &one, NULL, 0, 64, 1};
	weir_message *message = NULL;
	weir_stream *stream = weir_context_stream(context);

	if (!stream || weir_context_alloc(context, &like, false, &message) ||
	    weir_stream_launch(stream, &napping, "", 1))
		rig_break(rig);
	weir_message_unref(message);
}

static void t03_t04_what_stop_enqueues_is_fenced_and_the_next_run_begins_anew(void **state)
{
	struct rig *rig = rig_of("a:call");

	(void)state;
	rig_entity(rig, "a")->stop = use_stream_at_stop;
	rig->options.max_duration_ns = MS;
	for (int i = 0; i < 2; i++) {
		assert_int_equal(rig_run(rig), WEIR_OK);
		assert_false(weir_graph_entity(rig->graph, "a")->context.stream_used);
		/* Released; its work will be waited for. */
		assert_null(weir_graph_entity(rig->graph, "a")->stream);
	}
	rig_destroy(rig);
}

/* --- timeouts --- */

static void push_for_ever(void *arg)
{
	struct outsider *outsider = arg;
	weir_message *message = NULL;

	assert_int_equal(weir_message_empty(&message, outsider->rig->graph), WEIR_OK);
	if (weir_inlet_push(outsider->inlet, message, -1))
		weir_message_unref(message);
	else
		outsider->count++;
}

static void take_for_ever(void *arg)
{
	struct outsider *outsider = arg;
	weir_message *message = NULL;

	if (weir_outlet_take(outsider->outlet, &message, -5))
		return;
	outsider->count++;
	weir_message_unref(message);
}

/* Room for one message, full at first; pushed messages go on to the outlet. */
static void wait_for_ever(void)
{
	struct rig *rig = rig_of("p:pass capacity=1 enabled=false");
	struct outsider pusher = {.rig = rig}, taker = {.rig = rig};

	assert_int_equal(weir_graph_inlet(rig->graph, "p.in", &pusher.inlet), WEIR_OK);
	assert_int_equal(weir_graph_outlet(rig->graph, "p.out", 4, 0, &taker.outlet), WEIR_OK);
	rig_start(rig);
	push_for_ever(&pusher);
	assert_int_equal(wr_thread_start(&pusher.thread, "pusher", push_for_ever, &pusher), WEIR_OK);
	assert_int_equal(wr_thread_start(&taker.thread, "taker", take_for_ever, &taker), WEIR_OK);
	weir_sleep(2 * MS);
	assert_int_equal(pusher.count, 1);
	assert_int_equal(weir_entity_enable(weir_graph_entity(rig->graph, "p"), true), WEIR_OK);
	wr_thread_join(&pusher.thread);
	wr_thread_join(&taker.thread);
	assert_int_equal(pusher.count, 2);
	assert_int_equal(taker.count, 1);
	weir_scheduler_stop(rig->scheduler, false);
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
	rig->options.deadlock_grace_ns = -1;
	rig->options.max_duration_ns = 1 * MS;
	assert_int_equal(rig_run(rig), WEIR_E_ABANDONED);
	assert_string_equal(rig->outcome.text, "the drain was given no time; left behind: end (1 message)");
	rig_destroy(rig);
}

/* --- waiting entities, and what is left --- */

static void s06_c05_an_entity_that_waits_for_an_outside_condition_is_listed(void **state)
{
	struct rig *rig = rig_of("a:source ticks=1 -> x:end; b:source enabled=false -> y:end; "
				 "c:source enabled=false -> z:end");

	(void)state;
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_string_equal(rig->outcome.waiting, "b (boolean: disabled), c (boolean: disabled)");
	rig_destroy(rig);
	rig = rig_of("source ticks=1 -> end");
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_null(rig->outcome.waiting);
	rig_destroy(rig);
}

static void s06_s08_a_deadlock_names_the_entity_to_blame_and_leftovers_are_counted(void **state)
{
	struct rig *rig = rig_of("a:source ticks=1 -> p:pass; b:source enabled=false -> p.in2; p -> end");

	(void)state;
	for (uint64_t before = 0; before < 2; before++) {
		assert_int_equal(rig_run(rig), WEIR_E_DEADLOCK);
		assert_string_equal(rig->outcome.waiting, "b (boolean: disabled)");
		assert_string_equal(rig->outcome.text,
				    "b waits: boolean: disabled (WAIT); 1 other waits behind it");
		assert_int_equal(rig->outcome.discarded, before);
	}
	rig_destroy(rig);
}

/* --- after the end --- */

/* What a poke does that has read entity->scheduler just before the scheduler was destroyed. */
static void s04_s08_a_late_poke_finds_a_closed_scheduler_and_writes_nowhere(void **state)
{
	struct rig *rig = rig_of("source ticks=1 -> end");
	weir_scheduler *late;
	struct pollfd fds[8];

	(void)state;
	rig->options.backend = "host";
	assert_int_equal(rig_run(rig), WEIR_OK);
	late = rig->scheduler;
	assert_int_equal(weir_scheduler_destroy(late), WEIR_OK);
	for (int i = 0; i < 8; i++) /* they get the descriptor numbers that the loop had */
		fds[i] = (struct pollfd){.fd = eventfd(0, EFD_NONBLOCK), .events = POLLIN};
	late->waker.poke(&late->waker, 0);
	late->loop.wake = fds[0].fd;
	wr_loop_kick(&late->loop);
	assert_int_equal(poll(fds, 8, 0), 0);
	assert_int_equal(wr_live_count(&late->live), 0);
	assert_int_equal(weir_entity_poke(weir_graph_entity(rig->graph, "end")), WEIR_E_CLOSED);
	for (int i = 0; i < 8; i++)
		close(fds[i].fd);
	rig->scheduler = NULL;
	assert_int_equal(rig_run(rig), WEIR_OK);
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

	assert_int_equal(weir_graph_outlet(rig->graph, "source.out", 3, 0, &taker.outlet), WEIR_OK);
	rig->options.workers = 1;
	rig_make(rig);
	/* The start waits for this lock; its worker exists, the run is not open yet. */
	wr_mutex_lock(&taker.outlet->lock);
	assert_int_equal(wr_thread_start(&starter, "starter", start_run, rig), WEIR_OK);
	weir_sleep(10 * US);
	wr_unpark(&rig->scheduler->workers[0].parker);
	weir_sleep(10 * US);
	wr_mutex_unlock(&taker.outlet->lock);
	wr_thread_join(&starter);
	take_all(&taker);
	assert_int_equal(taker.count, 3);
	assert_int_equal(rig_wait(rig), WEIR_OK);
	rig_destroy(rig);
}

static void s08_s09_a_wake_up_left_over_from_the_last_run_lets_no_worker_in_early(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 20; seed++)
		rig_in_world(seed, wake_too_late);
}

/* --- POSIX signals --- */

static bool blocked(int number)
{
	sigset_t now;

	pthread_sigmask(SIG_BLOCK, NULL, &now);
	return sigismember(&now, number);
}

static void b04_destroy_unblocks_what_create_blocked(void **state)
{
	struct rig *rig = rig_of("source ticks=1 -> end");
	sigset_t interrupt;

	(void)state;
	sigemptyset(&interrupt);
	sigaddset(&interrupt, SIGINT);
	pthread_sigmask(SIG_BLOCK, &interrupt, NULL);
	assert_false(blocked(SIGTERM));
	rig->options.handle_signals = true;
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_true(blocked(SIGTERM));
	rig_destroy(rig);
	assert_false(blocked(SIGTERM));
	assert_true(blocked(SIGINT)); /* blocked by the caller itself */
	pthread_sigmask(SIG_UNBLOCK, &interrupt, NULL);
}

static bool readable(struct rig *rig)
{
	struct pollfd fd = {.fd = weir_scheduler_fd(rig->scheduler), .events = POLLIN};

	assert_int_equal(weir_scheduler_turn(rig->scheduler), WEIR_OK);
	return poll(&fd, 1, 0) > 0;
}

static void b01_b04_a_signal_between_runs_waits_and_keeps_no_thread_busy(void **state)
{
	struct rig *rig = rig_of("source period=1ms -> end");

	(void)state;
	rig->options.backend = "host";
	rig->options.own_loop = rig->options.handle_signals = true;
	rig_make(rig);
	kill(getpid(), SIGTERM); /* blocked here; the loop takes it */
	assert_false(readable(rig));
	rig_start(rig);
	assert_int_equal(rig_wait(rig), WEIR_OK);
	assert_int_equal(rig->outcome.posix_signal, SIGTERM);
	kill(getpid(), SIGTERM);
	assert_false(readable(rig));
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_int_equal(rig->outcome.posix_signal, SIGTERM);
	rig_destroy(rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(b02_e05_what_a_cut_left_in_an_outlet_is_abandoned_or_taken_never_both),
		cmocka_unit_test(b02_c04_a_push_beside_a_cut_does_not_empty_the_receivers_queue),
		cmocka_unit_test(b02_e06_an_outlet_that_cannot_hold_one_tick_is_refused),
		cmocka_unit_test(e05_counts_of_a_running_queue_stay_within_its_capacity),
		cmocka_unit_test(g02_a_poke_does_not_cost_a_refused_entity_its_turn),
		cmocka_unit_test(b03_t04_destructors_run_although_the_workers_are_never_idle),
		cmocka_unit_test(s11_b02_what_an_inlet_drops_may_push_into_it_again),
		cmocka_unit_test(s11_b02_no_lock_is_held_while_an_outlet_is_abandoned),
		cmocka_unit_test(s05_s11_what_was_pushed_as_the_receiver_ended_is_taken_back_without_locks),
		cmocka_unit_test(t04_memory_of_held_messages_is_not_replaced_with_their_device),
		cmocka_unit_test(t04_f40_without_memory_for_a_fence_payloads_are_kept),
		cmocka_unit_test(f40_deep_queues_do_not_cost_memory_before_they_are_filled),
		cmocka_unit_test(s05_f40_an_outlet_that_memory_refused_leaves_no_trace),
		cmocka_unit_test(e01_a_worker_that_waits_for_its_own_run_is_refused),
		cmocka_unit_test(e01_a_wait_for_a_run_that_did_not_begin_says_why),
		cmocka_unit_test(e06_a_wait_for_a_run_of_an_unconnected_graph_names_the_port),
		cmocka_unit_test(s06_f40_a_deadlock_without_memory_for_words_is_one),
		cmocka_unit_test(t03_t04_what_stop_enqueues_is_fenced_and_the_next_run_begins_anew),
		cmocka_unit_test(b02_e01_a_negative_timeout_is_for_ever),
		cmocka_unit_test(s07_a_negative_drain_ends_at_once),
		cmocka_unit_test(s06_c05_an_entity_that_waits_for_an_outside_condition_is_listed),
		cmocka_unit_test(s06_s08_a_deadlock_names_the_entity_to_blame_and_leftovers_are_counted),
		cmocka_unit_test(s04_s08_a_late_poke_finds_a_closed_scheduler_and_writes_nowhere),
		cmocka_unit_test(s08_s09_a_wake_up_left_over_from_the_last_run_lets_no_worker_in_early),
		cmocka_unit_test(b04_destroy_unblocks_what_create_blocked),
		cmocka_unit_test(b01_b04_a_signal_between_runs_waits_and_keeps_no_thread_busy),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
