/* Runs with work on a device: payloads, fences, signals, the simulated device's settings (T1, T3, T4, G1 to
 * G3, B3). */
#include <stdlib.h>
#include <string.h>

#include "base/thread.h"
#include "rig_inside.h"
#include "tests/calls.h"

/* --- kernels of the tests --- */

struct sum {
	int64_t *to;
	const int64_t *from;
	int64_t ns;
};

static int add_one(const void *arguments)
{
	const struct sum *sum = arguments;

	weir_sleep(sum->ns);
	*sum->to = *sum->from + 1;
	return 0;
}

static const weir_kernel adder = {sizeof(weir_kernel), "add_one", add_one, NULL};
static const int64_t one = 1;
static const weir_tensor like = {sizeof(weir_tensor), NULL, 0, 1, &one, NULL, 0, 64, 1};

/* Emits the input plus one, by a kernel that takes 1 ms. The input need not be complete yet. */
static weir_status add_on_the_device(struct rig *rig, weir_context *context)
{
	struct sum sum = {NULL, weir_message_data(weir_context_message(context, 0, 0)), MS};
	weir_message *message = NULL;
	weir_stream *stream = current_stream(context);

	(void)rig;
	if (!stream || weir_context_create_tensor(context, &like, 0, &message))
		return WEIR_E_DEVICE;
	sum.to = weir_message_data(message);
	if (weir_stream_launch(stream, &adder, &sum, sizeof sum)) {
		weir_message_unref(message);
		return WEIR_E_DEVICE;
	}
	return weir_context_emit(context, 0, message);
}

/* --- T1, T3 --- */

static weir_status note_stream(struct rig *rig, weir_context *context)
{
	uint64_t *ids = rig->own, id = weir_stream_id(current_stream(context));
	uint64_t *place = &ids[*weir_entity_name(weir_context_entity(context)) - 'a'];

	if (*place && *place != id)
		rig_break(rig);
	*place = id;
	return WEIR_OK;
}

static void t01_a_stream_is_one_entitys_and_keeps_its_identity_in_a_run(void **state)
{
	struct rig *rig = rig_of("a:call count=3; b:call count=3");
	uint64_t ids[2] = {0, 0};

	(void)state;
	rig->own = ids;
	rig_on(rig, "a", note_stream);
	rig_on(rig, "b", note_stream);
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_int_not_equal(ids[0], ids[1]);
	rig_destroy(rig);
}

static void chain_on_the_device(void)
{
	for (int i = 0; i < 2; i++) {
		struct rig *rig =
			rig_of("source ticks=5 work=2ms -> c:call capacity=4 -> end capacity=4 gate=in");
		rig->options.signal = rig_signals[i];
		rig_on(rig, "c", add_on_the_device);
		assert_int_equal(rig_run(rig), WEIR_OK);
		assert_string_equal(rig_text(rig, "end"), "1 2 3 4 5");
		rig_destroy(rig);
	}
}

static void t03_g01_the_device_waits_for_the_inputs_and_the_gate_for_the_device(void **state)
{
	(void)state;
	rig_everywhere(chain_on_the_device);
}

/* --- T4, B3 --- */

static int write_late(const void *arguments)
{
	const struct sum *sum = arguments;

	weir_sleep(10 * MS);
	*sum->to = 7;
	return 0;
}

static const weir_kernel late = {sizeof(weir_kernel), "late", write_late, NULL};

/* The first tick drops a temporary while its kernel has 10 ms to
 * run; the second tick must get other memory. */
static weir_status use_a_temporary(struct rig *rig, weir_context *context)
{
	struct sum sum = {0};
	weir_message *message = NULL;
	weir_status status = weir_context_create_tensor(context, &like, 0, &message);

	if (status)
		return status;
	sum.to = weir_message_data(message);
	if (sum.to == (int64_t *)rig->own)
		rig_break(rig);
	rig->own = sum.to;
	if (!weir_context_tick(context))
		status = weir_stream_launch(current_stream(context), &late, &sum, sizeof sum);
	weir_message_unref(message);
	return status;
}

static void t04_a_temporary_outlives_the_kernel_that_uses_it(void **state)
{
	struct rig *rig = rig_of("c:call count=2");

	(void)state;
	rig_on(rig, "c", use_a_temporary);
	assert_int_equal(rig_run(rig), WEIR_OK);
	rig_destroy(rig);
}

/* What the destructor of a wrapped message saw. */
struct wrapped {
	struct rig *rig;
	int64_t value;
	_Atomic unsigned destroyed, elsewhere, unfinished;
};

static void destroy_wrapped(void *arg)
{
	struct wrapped *wrapped = arg;

	wr_fetch_add(&wrapped->destroyed, 1);
	if (!wr_thread_local())
		wr_fetch_add(&wrapped->elsewhere, 1);
	if (wrapped->value != 7)
		wr_fetch_add(&wrapped->unfinished, 1);
}

static weir_status emit_wrapped(struct rig *rig, weir_context *context)
{
	struct wrapped *wrapped = rig->own;
	weir_tensor tensor = like;
	struct sum sum = {.to = &wrapped->value};
	weir_message *message = NULL;
	weir_status status;

	tensor.data = &wrapped->value;
	status = weir_message_wrap_tensor(weir_context_graph(context), &tensor, destroy_wrapped, wrapped,
					  &message);
	if (!status)
		status = weir_stream_launch(current_stream(context), &late, &sum, sizeof sum);
	return status ? status : weir_context_emit(context, 0, message);
}

static void wrap_and_run(void)
{
	struct rig *rig = rig_of("c:call count=1 -> a:end; c -> b:end");
	struct wrapped wrapped = {.rig = rig};

	rig->own = &wrapped;
	rig_on(rig, "c", emit_wrapped);
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_int_equal(wr_load(&wrapped.destroyed), 1);
	assert_int_equal(wr_load(&wrapped.unfinished), 0);
	assert_int_equal(wr_load(&wrapped.elsewhere), 0);
	rig_destroy(rig);
	assert_int_equal(wr_load(&wrapped.destroyed), 1);
}

static void t04_b03_f14_a_destructor_runs_once_on_a_worker_after_the_device_is_done(void **state)
{
	(void)state;
	rig_everywhere(wrap_and_run);
}

static void t04_a_run_that_is_cut_short_keeps_payloads_until_the_device_is_done(void **state)
{
	struct rig *rig = rig_of("c:call count=1 -> end");
	struct wrapped wrapped = {.rig = rig};

	(void)state;
	rig->own = &wrapped;
	rig_on(rig, "c", emit_wrapped);
	rig_start(rig);
	weir_scheduler_wait(rig->scheduler, MS, NULL);
	weir_scheduler_stop(rig->scheduler, 0);
	assert_int_equal(rig_wait(rig), WEIR_OK);
	rig_destroy(rig);
	assert_int_equal(wr_load(&wrapped.destroyed), 1);
	assert_int_equal(wr_load(&wrapped.unfinished), 0);
}

/* --- G1 to G3 --- */

static void destroy_at_any_time(void)
{
	for (int64_t at = 0; at < 12; at++) {
		struct rig *rig = rig_of(
			"a:source work=2ms -> x:end gate=in; b:source work=3ms -> y:end gate=in capacity=2");
		rig->options.signal = rig_signals[at & 1];
		rig_start(rig);
		weir_scheduler_wait(rig->scheduler, at * MS / 2, NULL);
		rig_destroy(rig);
	}
}

static void g01_f07_f08_callbacks_of_a_graph_that_is_gone_are_dropped(void **state)
{
	(void)state;
	rig_everywhere(destroy_at_any_time);
}

/* At most one token: the other gated entities wait in the FIFO until it has fired. */
static void g02_refused_entities_are_served_in_turn(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++) {
		struct rig *rig = rig_of("a:source ticks=5 work=1ms -> x:end gate=in; b:source ticks=5 "
					 "work=1ms -> y:end gate=in; "
					 "c:source ticks=5 work=1ms -> z:end gate=in");
		rig->options.signal = rig_signals[i];
		rig_make(rig);
		rig_bound_signals(rig, 1);
		assert_int_equal(rig_run(rig), WEIR_OK);
		assert_string_equal(rig_text(rig, "x"), "0 1 2 3 4");
		assert_string_equal(rig_text(rig, "y"), "0 1 2 3 4");
		assert_string_equal(rig_text(rig, "z"), "0 1 2 3 4");
		rig_destroy(rig);
	}
}

static void g03_many_fences_are_one_signal(void **state)
{
	struct rig *rig = rig_of("a:source ticks=1 work=10ms -> end gate=in capacity=2 take=2; b:source "
				 "ticks=1 first=10 work=20ms -> end");

	(void)state;
	rig_start(rig);
	weir_scheduler_wait(rig->scheduler, 5 * MS, NULL);
	assert_int_equal(rig_outstanding(rig), 1);
	assert_says(rig_explain(rig), "2 fences pending");
	assert_int_equal(rig_wait(rig), WEIR_OK);
	assert_string_equal(rig_text(rig, "end"), "0,10");
	assert_in_range(rig->outcome.duration_ns, 20 * MS, 21 * MS);
	rig_destroy(rig);
}

static void g03_nothing_pending_is_ready_at_once(void **state)
{
	struct rig *rig = rig_of("source ticks=3 -> end gate=in");

	(void)state;
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_string_equal(rig_text(rig, "end"), "0 1 2");
	assert_true(rig->outcome.duration_ns < MS);
	rig_destroy(rig);
}

/* --- many settings of the simulated device: counts must be the same --- */

static void run_with_knobs(struct wr_sim_knobs knobs)
{
	for (int i = 0; i < 2; i++) {
		struct rig *rig = rig_of("source count=30 work=10us -> p:pass capacity=2 work=5us -> end "
					 "gate=in; p.out2 -> other:end gate=in");

		rig_with_knobs(rig, rig_signals[i], knobs);
		assert_int_equal(rig_run(rig), WEIR_OK);
		assert_int_equal(rig_ticks(rig, "end"), 30);
		assert_null(strpbrk(rig_text(rig, "end"), "-?")); /* no incomplete message was read */
		rig_destroy(rig);
	}
}

static void f04_f05_completions_before_enqueueing_returns_lose_nothing(void **state)
{
	(void)state;
	run_with_knobs((struct wr_sim_knobs){.work_max = 5 * US, .call_max = 5 * US, .inside = 1000});
}

static void f06_callbacks_that_come_twice_do_nothing_the_second_time(void **state)
{
	(void)state;
	run_with_knobs((struct wr_sim_knobs){.call_max = 50 * US, .twice = 1000});
}

static void f22_late_callbacks_end_the_run_all_the_same(void **state)
{
	(void)state;
	run_with_knobs((struct wr_sim_knobs){.call_min = 3 * MS, .call_max = 5 * MS});
}

/* Enqueueing takes long on one worker; another entity keeps its period. */
static void f16_an_enqueue_that_blocks_stalls_its_worker_alone(void **state)
{
	struct rig *rig = rig_of("source count=5 work=100us -> end gate=in; beat:call period=1ms");

	rig_with_knobs(rig, "callback", (struct wr_sim_knobs){.work_max = 5 * MS, .blocked = 1000});
	(void)state;
	rig->options.max_duration_ns = 0;
	rig_start(rig);
	weir_scheduler_wait(rig->scheduler, 50 * MS, NULL);
	assert_in_range(rig_ticks(rig, "beat"), 49, 51);
	weir_scheduler_stop(rig->scheduler, WEIR_STOP_DRAIN);
	assert_int_equal(rig_wait(rig), WEIR_OK);
	rig_destroy(rig);
}

static void drain_with_callbacks(void)
{
	for (int i = 0; i < 2; i++) {
		struct rig *rig = rig_of("source delay=100us work=1ms -> end gate=in capacity=8");
		rig->options.signal = rig_signals[i];
		rig_start(rig);
		weir_scheduler_wait(rig->scheduler, 5 * MS, NULL);
		weir_scheduler_stop(rig->scheduler, WEIR_STOP_DRAIN);
		assert_int_equal(rig_wait(rig), WEIR_OK);
		assert_int_equal(rig_queue(rig, "end.in").delivered, rig_ticks(rig, "source"));
		rig_destroy(rig);
	}
}

static void f09_callbacks_during_a_drain_are_waited_for(void **state)
{
	(void)state;
	rig_everywhere(drain_with_callbacks);
}

/* --- F15: a backend that checks for held locks before each call --- */

static const struct wr_backend *under;
static _Atomic unsigned calls, locked;

static void check_locks(void)
{
	wr_fetch_add(&calls, 1);
	if (wr_mutex_held())
		wr_fetch_add(&locked, 1);
}

static weir_status record(void *self, int device, void *stream, void *event)
{
	check_locks();
	return under->record(self, device, stream, event);
}

static weir_status query(void *self, void *event)
{
	check_locks();
	return under->query(self, event);
}

static weir_status wait(void *self, int device, void *stream, void *event)
{
	check_locks();
	return under->wait(self, device, stream, event);
}

static weir_status launch(void *self, int device, void *stream, const weir_kernel *kernel,
			  const void *arguments, size_t bytes)
{
	check_locks();
	return under->launch(self, device, stream, kernel, arguments, bytes);
}

static weir_status call(void *self, int device, void *stream, void (*fn)(void *arg), void *arg)
{
	check_locks();
	return under->call(self, device, stream, fn, arg);
}

static weir_status alloc(void *self, int device, size_t bytes, void **out)
{
	check_locks();
	return under->alloc(self, device, bytes, out);
}

static void s11_f15_no_lock_is_held_across_a_call_of_the_backend(void **state)
{
	struct wr_backend *looking;
	struct rig *rig = rig_of("source count=20 work=10us -> c:call -> end gate=in; p:source count=20 "
				 "work=10us -> q:end gate=in");

	(void)state;
	wr_store(&calls, 0);
	rig_on(rig, "c", add_on_the_device);
	rig_make(rig);
	looking = rig_own_backend(rig);
	under = rig_real_backend(rig);
	looking->record = record, looking->query = query, looking->wait = wait;
	looking->launch = launch, looking->call = call, looking->alloc = alloc;
	assert_int_equal(rig_run(rig), WEIR_OK);
	rig_restore_backend(rig);
	assert_true(wr_load(&calls) > 100);
	assert_int_equal(wr_load(&locked), 0);
	rig_destroy(rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(t01_a_stream_is_one_entitys_and_keeps_its_identity_in_a_run),
		cmocka_unit_test(t03_g01_the_device_waits_for_the_inputs_and_the_gate_for_the_device),
		cmocka_unit_test(t04_a_temporary_outlives_the_kernel_that_uses_it),
		cmocka_unit_test(t04_b03_f14_a_destructor_runs_once_on_a_worker_after_the_device_is_done),
		cmocka_unit_test(t04_a_run_that_is_cut_short_keeps_payloads_until_the_device_is_done),
		cmocka_unit_test(g01_f07_f08_callbacks_of_a_graph_that_is_gone_are_dropped),
		cmocka_unit_test(g02_refused_entities_are_served_in_turn),
		cmocka_unit_test(g03_many_fences_are_one_signal),
		cmocka_unit_test(g03_nothing_pending_is_ready_at_once),
		cmocka_unit_test(f04_f05_completions_before_enqueueing_returns_lose_nothing),
		cmocka_unit_test(f06_callbacks_that_come_twice_do_nothing_the_second_time),
		cmocka_unit_test(f22_late_callbacks_end_the_run_all_the_same),
		cmocka_unit_test(f16_an_enqueue_that_blocks_stalls_its_worker_alone),
		cmocka_unit_test(f09_callbacks_during_a_drain_are_waited_for),
		cmocka_unit_test(s11_f15_no_lock_is_held_across_a_call_of_the_backend),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
