/* The device fails, has no memory, or is not there (E2, E3, E4). */
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "rig_inside.h"
#include "tests/calls.h"

/* --- E2, E3: the device fails --- */

static void fail_run(const char *text, const char *signal)
{
	struct rig *rig = rig_of(text);

	rig->options.signal = signal;
	assert_int_equal(rig_run(rig), WEIR_E_DEVICE);
	assert_non_null(rig->outcome.entity);
	assert_string_equal(rig->outcome.entity, "source");
	assert_says(rig->outcome.text, "source");
	assert_true(rig->outcome.duration_ns < 2 * SECOND);
	rig_destroy(rig);
}

static void faults(void)
{
	for (int i = 0; i < 2; i++) {
		fail_run("source ticks=1 work=1ms fault=true -> end gate=in", rig_signals[i]);
		fail_run("source ticks=1 work=1ms fault=true -> end",
			 rig_signals[i]); /* ungated, in the last tick */
		fail_run("source work=1ms fault=true -> p:pass -> end gate=in", rig_signals[i]);
	}
}

static void e02_e03_f10_f60_a_kernel_that_faults_ends_the_run_and_is_named(void **state)
{
	(void)state;
	rig_everywhere(faults);
}

static void e03_of_two_suspects_none_is_accused(void **state)
{
	struct rig *rig = rig_of("a:source ticks=1 work=10ms -> x:end gate=in; b:source ticks=1 work=5ms "
				 "fault=true -> y:end gate=in");

	(void)state;
	assert_int_equal(rig_run(rig), WEIR_E_DEVICE);
	assert_null(rig->outcome.entity);
	assert_says(rig->outcome.text, "a");
	assert_says(strstr(rig->outcome.text, "a"), "b");
	rig_destroy(rig);
}

/* Takes a message at once and waits for its work, which fails. The message is the caller's. */
static weir_message *ask_about_the_work_of(struct rig *rig, const char *port)
{
	weir_outlet *outlet = rig_outlet(rig, port, 1, WEIR_OUTLET_EARLY);
	weir_message *message = NULL;
	weir_fence fence;

	rig_start(rig);
	assert_int_equal(weir_outlet_take(outlet, 60 * SECOND, &message), WEIR_OK);
	assert_int_equal(weir_message_fences(message, 1, &fence), 1);
	assert_int_equal(weir_fence_wait(rig->graph, fence, 60 * SECOND), WEIR_E_DEVICE);
	wr_fail(WEIR_E_FAILED, "another failure");
	assert_int_equal(weir_fence_query(rig->graph, fence), WEIR_E_DEVICE);
	return message;
}

static void ask_about_failed_work(void)
{
	struct rig *rig = rig_of("source ticks=1 work=1ms fault=true -> end gate=in");
	weir_message *message = ask_about_the_work_of(rig, "source.out");
	weir_error error = {.size = sizeof error};

	assert_int_equal(weir_error_last(&error), WEIR_OK);
	assert_int_equal(error.status, WEIR_E_DEVICE);
	assert_int_equal(error.cause, WEIR_CAUSE_DEVICE);
	assert_string_equal(error.entity, "source");
	assert_says(error.text, "the work of 'source' was not complete");
	weir_message_unref(message);
	assert_int_equal(rig_wait(rig), WEIR_E_DEVICE);
	rig_destroy(rig);
}

static void e03_who_asks_about_a_fence_learns_whose_work_failed(void **state)
{
	(void)state;
	rig_everywhere(ask_about_failed_work);
}

static void e03_of_two_suspects_a_fence_names_both_and_accuses_none(void **state)
{
	struct rig *rig = rig_of("a:source ticks=1 work=10ms -> x:end gate=in; b:source ticks=1 work=5ms "
				 "fault=true -> y:end gate=in");
	weir_message *message = ask_about_the_work_of(rig, "b.out");
	weir_error error = {.size = sizeof error};

	(void)state;
	assert_int_equal(weir_error_last(&error), WEIR_OK);
	assert_int_equal(error.cause, WEIR_CAUSE_DEVICE);
	assert_null(error.entity);
	assert_says(error.text, "a (");
	assert_says(error.text, "b (");
	weir_message_unref(message);
	assert_int_equal(rig_wait(rig), WEIR_E_DEVICE);
	rig_destroy(rig);
}

static void e02_f11_after_a_fault_no_gated_compute_runs(void **state)
{
	struct rig *rig = rig_of("source ticks=3 work=1ms -> end gate=in");

	rig_with_knobs(rig, "callback", (struct wr_sim_knobs){.fault = 1000, .after_fault = true});
	(void)state;
	assert_int_equal(rig_run(rig), WEIR_E_DEVICE);
	assert_string_equal(rig_text(rig, "end"), "");
	assert_int_equal(rig_run(rig), WEIR_E_DEVICE); /* the device stays lost */
	assert_string_equal(rig_text(rig, "end"), "");
	rig_destroy(rig);
}

static void e02_f67_a_device_that_is_lost_at_any_moment_is_an_error_never_a_wait(void **state)
{
	unsigned lost = 0;

	(void)state;
	for (uint64_t seed = 1; seed <= 40; seed++) {
		struct rig *rig = rig_of(
			"source count=20 work=10us -> p:pass work=10us -> end gate=in; p.out2 -> other:end");
		weir_status status;
		rig->options.seed = seed;
		rig->options.signal = rig_signals[seed & 1];
		rig_make(rig);
		rig_set_knobs(rig,
			      (struct wr_sim_knobs){.fault = 25, .work_max = 10 * US, .call_max = 10 * US});
		status = rig_run(rig);
		lost += status == WEIR_E_DEVICE;
		assert_true(status == WEIR_OK || status == WEIR_E_DEVICE);
		assert_true(rig->outcome.duration_ns < 2 * SECOND);
		rig_destroy(rig);
	}
	assert_in_range(lost, 5, 40);
}

static void e02_f12_a_callback_that_never_comes_is_found(void **state)
{
	struct rig *rig = rig_of("source ticks=1 work=1ms -> end gate=in");

	rig_with_knobs(rig, "callback", (struct wr_sim_knobs){.lost = 1000});
	(void)state;
	assert_int_equal(rig_run(rig), WEIR_E_DEVICE);
	assert_says(rig->outcome.text, "callback");
	assert_true(rig->outcome.duration_ns < 3 * SECOND);
	rig_destroy(rig);
}

static void e04_f62_a_kernel_that_never_ends_is_abandoned(void **state)
{
	struct rig *rig = rig_of("source ticks=1 work=10h -> end gate=in");

	(void)state;
	rig->options.drain_ns = SECOND;
	rig->options.max_duration_ns = SECOND;
	assert_int_equal(rig_run(rig), WEIR_E_ABANDONED);
	assert_int_equal(rig->outcome.abandoned, 1);
	assert_in_range(rig->outcome.duration_ns, 2 * SECOND, 3 * SECOND);
	assert_int_equal(weir_scheduler_destroy(rig->scheduler), WEIR_OK);
	assert_int_equal(weir_graph_destroy(rig->graph),
			 WEIR_E_ABANDONED); /* what the kernel may touch is leaked */
	weir_registry_destroy(rig->registry);
	free(rig);
}

static weir_status launch_nothing(struct rig *rig, weir_context *context)
{
	static const weir_kernel none = {sizeof(weir_kernel), "none", NULL, NULL};

	(void)rig;
	return weir_stream_launch(current_stream(context), &none, "", 1);
}

static void f64_a_launch_that_fails_at_once_is_the_entitys_failure(void **state)
{
	struct rig *rig = rig_of("c:call -> end gate=in");

	(void)state;
	rig_on(rig, "c", launch_nothing);
	assert_int_not_equal(rig_run(rig), WEIR_OK);
	assert_string_equal(rig->outcome.entity, "c");
	assert_says(rig->outcome.text, "none");
	assert_int_equal(rig_outstanding(rig), 0);
	rig_destroy(rig);
}

/* A backend without memory, or one that refuses callbacks. */
static weir_status no_memory(void *self, int device, size_t bytes, void **out)
{
	(void)self;
	(void)device;
	(void)out;
	(void)bytes;
	return WEIR_E_NOMEM;
}

static weir_status no_call(void *self, int device, void *stream, void (*fn)(void *arg), void *arg)
{
	(void)self;
	(void)device;
	(void)stream;
	(void)fn;
	(void)arg;
	return WEIR_E_NOMEM;
}

static void without_memory(struct wr_backend *backend)
{
	backend->alloc = no_memory;
}

static void without_calls(struct wr_backend *backend)
{
	backend->call = no_call;
}

static void run_on_a_poor_backend(void (*spoil)(struct wr_backend *backend), const char *entity)
{
	struct rig *rig = rig_of("source ticks=3 work=1ms -> end gate=in");

	rig_make(rig);
	spoil(rig_own_backend(rig));
	assert_int_equal(rig_run(rig), WEIR_E_NOMEM);
	assert_string_equal(rig->outcome.entity, entity);
	rig_restore_backend(rig);
	rig_destroy(rig);
}

static void f63_device_memory_that_runs_out_is_the_entitys_failure(void **state)
{
	(void)state;
	run_on_a_poor_backend(without_memory, "source");
}

static void f65_a_signal_that_cannot_be_enqueued_is_the_entitys_failure(void **state)
{
	(void)state;
	run_on_a_poor_backend(without_calls, "end");
}

static void f66_auto_runs_where_it_can_and_cuda_without_a_device_is_refused(void **state)
{
	struct rig *rig = rig_of("source ticks=1 -> end");
	weir_scheduler *refused = NULL;

	(void)state;
	rig->options.backend = "auto";
	assert_int_equal(rig_run(rig), WEIR_OK);
	if (!strcmp(weir_scheduler_where(rig->scheduler), "host")) {
		assert_int_equal(weir_scheduler_destroy(rig->scheduler), WEIR_OK);
		rig->scheduler = NULL;
		rig->options.backend = "cuda";
		assert_int_not_equal(weir_scheduler_create(rig->graph, &rig->options, &refused), WEIR_OK);
		assert_null(refused);
		assert_says(weir_last_error(), "cuda");
	} else {
		assert_says(weir_scheduler_where(rig->scheduler), "cuda: ");
	}
	rig_destroy(rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(e02_e03_f10_f60_a_kernel_that_faults_ends_the_run_and_is_named),
		cmocka_unit_test(e03_of_two_suspects_none_is_accused),
		cmocka_unit_test(e03_who_asks_about_a_fence_learns_whose_work_failed),
		cmocka_unit_test(e03_of_two_suspects_a_fence_names_both_and_accuses_none),
		cmocka_unit_test(e02_f11_after_a_fault_no_gated_compute_runs),
		cmocka_unit_test(e02_f67_a_device_that_is_lost_at_any_moment_is_an_error_never_a_wait),
		cmocka_unit_test(e02_f12_a_callback_that_never_comes_is_found),
		cmocka_unit_test(f64_a_launch_that_fails_at_once_is_the_entitys_failure),
		cmocka_unit_test(f63_device_memory_that_runs_out_is_the_entitys_failure),
		cmocka_unit_test(f65_a_signal_that_cannot_be_enqueued_is_the_entitys_failure),
		cmocka_unit_test(f66_auto_runs_where_it_can_and_cuda_without_a_device_is_refused),
		cmocka_unit_test(e04_f62_a_kernel_that_never_ends_is_abandoned),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
