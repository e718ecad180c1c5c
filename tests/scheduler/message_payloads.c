/* Destructors that call the library, and payloads for whose fences there is no memory (S11, B3, T4, F40). */
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "sim/random.h"
#include "sim/simulation.h"
#include "base/thread.h"
#include "rig_inside.h"
#include "tests/calls.h"

enum { SEEDS = 3000 };

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
	weir_stream *stream = current_stream(context);
	weir_message *message = NULL;
	weir_status status = stream ? weir_stream_launch(stream, &napping, "", 1) : WEIR_E_DEVICE;

	if (!status)
		status = weir_message_wrap_user(weir_context_graph(context), &rig->told, count_up, &message);
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
	weir_status status = weir_message_wrap_user(bomb->rig->graph, bomb, go_off, &message);

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
	assert_int_equal(weir_graph_add_inlet(bomb.rig->graph, "end.in", &bomb.inlet), WEIR_OK);
	rig_start(bomb.rig);
	assert_int_equal(push_bomb(&bomb), WEIR_OK);
	bomb.more = 2;
	assert_int_equal(push_bomb(&bomb), WEIR_OK);
	assert_int_equal(wr_load(&bomb.gone), 3);
	assert_int_equal(rig_queue(bomb.rig, "end.in").dropped, 3);
	weir_scheduler_stop(bomb.rig->scheduler, 0);
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

/* --- the tick that made a message --- */

static weir_status emit_tensor(struct rig *rig, weir_context *context)
{
	static const int64_t one = 1;
	static const weir_tensor like = {sizeof(weir_tensor), NULL, 0, 1, &one, NULL, 0, 64, 1};
	weir_message *message = NULL;
	weir_status status = weir_context_create_tensor(context, &like, WEIR_TENSOR_HOST, &message);

	(void)rig;
	return status ? status : weir_context_emit(context, 0, message);
}

static weir_status receive_alone(struct rig *rig, weir_context *context)
{
	HOLDS(rig, weir_message_unique(weir_context_message(context, 0, 0)));
	return WEIR_OK;
}

static void two_workers_hand_over(void)
{
	struct rig *rig = rig_of("a:call count=4 -> b:host capacity=4");

	rig->options.workers = 2;
	rig_on(rig, "a", emit_tensor);
	rig_on(rig, "b", receive_alone);
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_int_equal(rig_ticks(rig, "b"), 4);
	rig_destroy(rig);
}

/* No entity uses a stream. */
static void t04_a_single_receiver_is_the_only_holder_of_what_a_tick_made(void **state)
{
	(void)state;
	rig_in_worlds(SEEDS, two_workers_hand_over);
}

static weir_status emit_bombs(struct rig *rig, weir_context *context)
{
	weir_message *message = NULL;

	if (weir_message_wrap_user(weir_context_graph(context), rig->own, go_off, &message))
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
	assert_int_equal(weir_graph_add_outlet(rig->graph, "c.out", 3, 0, &outlet), WEIR_OK);
	rig_start(rig);
	while (rig_queue(rig, "outlet").pushed < 3)
		weir_sleep(10 * US);
	weir_scheduler_stop(rig->scheduler, 0);
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

	assert_int_equal(weir_graph_add_inlet(rig->graph, "end.in", &bomb.inlet), WEIR_OK);
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
	rig_in_worlds(SEEDS, push_beside_done);
}

static void t04_memory_of_held_messages_is_not_replaced_with_their_device(void **state)
{
	struct rig *rig = rig_of("source ticks=1 work=1us");
	weir_message *message = NULL;
	weir_outlet *outlet = NULL;

	(void)state;
	assert_int_equal(weir_graph_add_outlet(rig->graph, "source.out", 1, 0, &outlet), WEIR_OK);
	rig->options.backend = "host";
	rig_start(rig);
	assert_int_equal(weir_outlet_take(outlet, SECOND, &message), WEIR_OK);
	assert_int_equal(rig_wait(rig), WEIR_OK);
	assert_int_equal(weir_scheduler_destroy(rig->scheduler), WEIR_OK);
	rig->scheduler = NULL;
	rig->options.backend = "sim";
	assert_int_equal(weir_scheduler_create(rig->graph, &rig->options, &rig->scheduler), WEIR_E_STATE);
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
	weir_stream *stream = current_stream(context);
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
	rig_in_worlds(20, run_out_of_fences);
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
	assert_in_range(rig_messages_made(rig), 40, 33000);
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
		status = weir_graph_add_outlet(rig->graph, "source.out", 1, 0, &outlet);
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

/* --- streams in stop --- */

static void use_stream_at_stop(struct rig *rig, weir_context *context)
{
	static const int64_t one = 1;
	static const weir_tensor like = {sizeof(weir_tensor), NULL, 0, 1, &one, NULL, 0, 64, 1};
	weir_message *message = NULL;
	weir_stream *stream = current_stream(context);

	if (!stream || weir_context_create_tensor(context, &like, 0, &message) ||
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
		assert_true(rig_uses_no_stream(rig, "a")); /* released; its work will be waited for */
	}
	rig_destroy(rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(b03_t04_destructors_run_although_the_workers_are_never_idle),
		cmocka_unit_test(s11_b02_what_an_inlet_drops_may_push_into_it_again),
		cmocka_unit_test(s11_b02_no_lock_is_held_while_an_outlet_is_abandoned),
		cmocka_unit_test(s05_s11_what_was_pushed_as_the_receiver_ended_is_taken_back_without_locks),
		cmocka_unit_test(t04_a_single_receiver_is_the_only_holder_of_what_a_tick_made),
		cmocka_unit_test(t04_memory_of_held_messages_is_not_replaced_with_their_device),
		cmocka_unit_test(t04_f40_without_memory_for_a_fence_payloads_are_kept),
		cmocka_unit_test(f40_deep_queues_do_not_cost_memory_before_they_are_filled),
		cmocka_unit_test(s05_f40_an_outlet_that_memory_refused_leaves_no_trace),
		cmocka_unit_test(t03_t04_what_stop_enqueues_is_fenced_and_the_next_run_begins_anew),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
