/*
 * Fences that the program completes (T17): on `sim`, where the threads that complete are fibers, and on
 * `host`. `a` makes numbers of which other threads write the values; what they have begun is in `jobs`.
 */
#include <string.h>

#include "base/clock.h"
#include "base/thread.h"
#include "rig_inside.h"
#include "tests/calls.h"

enum { JOBS = 40, LATE = -77 };

struct job {
	struct wr_thread thread;
	weir_graph *graph;
	weir_fence fence;
	int64_t *to, number, delay;
	weir_status status;
	const char *text;
};

static struct {
	struct job jobs[JOBS];
	size_t count;
	_Atomic unsigned open, most; /* begun and not completed */
	weir_status status;
	const char *text;
} own;

static void clear(void)
{
	memset(&own, 0, sizeof own);
}

static void work(void *arg)
{
	struct job *job = arg;

	wr_thread_sleep(job->delay);
	*job->to = job->number;
	wr_fetch_sub(&own.open, 1);
	if (weir_fence_complete(job->graph, job->fence, job->status, job->text))
		print_error("%s\n", weir_last_error());
}

/* A thread writes the number after a while, and completes the fence. */
static void begin_job(weir_context *context, int64_t *to, int64_t number, weir_fence fence)
{
	struct job *job = &own.jobs[own.count++];
	unsigned open = wr_fetch_add(&own.open, 1) + 1;

	if (open > wr_load(&own.most))
		wr_store(&own.most, open);
	*job = (struct job){.graph = weir_context_graph(context),
			    .fence = fence,
			    .to = to,
			    .number = number,
			    .delay = (int64_t)(number * 7 % 5) * 30 * US,
			    .status = number == 3 ? own.status : WEIR_OK,
			    .text = own.text};
	*job->to = LATE;
	wr_thread_start(&job->thread, "job", work, job);
}

static void join_jobs(void)
{
	for (size_t i = 0; i < own.count; i++)
		wr_thread_join(&own.jobs[i].thread);
}

static weir_status emit_job(struct rig *rig, weir_context *context)
{
	int64_t number = (int64_t)weir_context_tick(context);
	weir_message *message = rig_number(context, LATE);
	weir_fence fence = {0, 0};

	HOLDS(rig, !weir_graph_create_fence(rig->graph, &fence));
	HOLDS(rig, weir_fence_query(rig->graph, fence) == WEIR_E_BUSY);
	begin_job(context, weir_message_data(message), number, fence);
	return weir_context_emit_at(context, 0, message, fence);
}

static weir_status note_number(struct rig *rig, weir_context *context)
{
	weir_message *message = weir_context_message(context, 0, 0);

	HOLDS(rig, rig_value(message) == (int64_t)weir_context_tick(context));
	return WEIR_OK;
}

static weir_status emit_in_vain(struct rig *rig, weir_context *context)
{
	weir_message *message = rig_number(context, 1);
	weir_fence fence = {0, 0};

	HOLDS(rig, !weir_graph_create_fence(rig->graph, &fence));
	HOLDS(rig, weir_context_emit_at(context, 7, message, fence) == WEIR_E_INVALID);
	HOLDS(rig, !weir_fence_complete(rig->graph, fence, WEIR_E_IO, "nothing carries it"));
	return weir_context_emit(context, 0, rig_number(context, (int64_t)weir_context_tick(context)));
}

/* Nothing carries the fence then: its failure is nothing to the run. */
static void t17_a_message_with_a_fence_that_cannot_be_emitted_is_refused(void **state)
{
	struct rig *rig = rig_of("a:call count=2 -> end");

	(void)state;
	rig_on(rig, "a", emit_in_vain);
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_string_equal(rig_text(rig, "end"), "0 1");
	rig_destroy(rig);
}

/* --- a message waits for its fence --- */

static void wait_at(const char *text, const char *receiver)
{
	struct rig *rig = rig_of(text);

	clear();
	rig_on(rig, "a", emit_job);
	rig_on(rig, receiver, note_number);
	assert_int_equal(rig_run(rig), WEIR_OK);
	join_jobs();
	assert_int_equal(rig_ticks(rig, receiver), 20);
	rig_destroy(rig);
}

static void wait_at_all_ports(void)
{
	wait_at("a:call count=20 -> z:host capacity=8", "z");
	wait_at("a:call count=20 -> z:call capacity=8", "z"); /* a device port, without a gate */
	wait_at("a:call count=20 -> z:call capacity=8 gated=true", "z");
	wait_at("a:call count=20 -> z:host capacity=8 gate=in,flag", "z");
	wait_at("a:call count=20 -> z:host capacity=8; a -> y:end capacity=3", "z");
	wait_at("a:call count=20 -> z:host; a -> y:end gate=in,callback_inline", "z");
}

static void t17_a_message_is_taken_when_its_fence_is_completed(void **state)
{
	(void)state;
	rig_everywhere(wait_at_all_ports);
}

/* --- beside device work --- */

static int write_slowly(const void *arguments)
{
	int64_t *const *to = arguments;

	weir_sleep(100 * US);
	(*to)[0] += 100;
	return 0;
}

static const weir_kernel adding = {sizeof(weir_kernel), "add", write_slowly, NULL};

/* The device adds 100, behind which a thread completes. */
static weir_status emit_both(struct rig *rig, weir_context *context)
{
	static const int64_t shape[] = {2};
	const weir_tensor like = {sizeof like, NULL, 0, 1, shape, NULL, 0, 64, 1};
	weir_message *message = NULL;
	weir_fence fence = {0, 0};
	int64_t *data;

	HOLDS(rig, !weir_graph_create_fence(rig->graph, &fence));
	if (weir_context_create_tensor(context, &like, 0, &message))
		return WEIR_E_NOMEM;
	data = weir_message_data(message);
	data[0] = 0;
	HOLDS(rig, !weir_stream_launch(current_stream(context), &adding, &data, sizeof data));
	begin_job(context, &data[1], (int64_t)weir_context_tick(context), fence);
	return weir_context_emit_at(context, 0, message, fence);
}

static weir_status look_at_both(struct rig *rig, weir_context *context)
{
	const int64_t *data = weir_message_data(weir_context_message(context, 0, 0));

	HOLDS(rig, data[0] == 100 && data[1] == (int64_t)weir_context_tick(context));
	return WEIR_OK;
}

static void wait_for_both(void)
{
	for (int i = 0; i < 3; i++) {
		struct rig *rig = rig_of("a:call count=10 -> z:host capacity=4");

		clear();
		rig->options.signal = rig_signals[i];
		rig->options.strict = WEIR_NONE;
		rig_on(rig, "a", emit_both);
		rig_on(rig, "z", look_at_both);
		assert_int_equal(rig_run(rig), WEIR_OK);
		join_jobs();
		assert_int_equal(rig_ticks(rig, "z"), 10);
		rig_destroy(rig);
	}
}

static void t17_a_message_with_device_work_waits_for_both(void **state)
{
	(void)state;
	rig_everywhere(wait_for_both);
}

/* --- in flight --- */

static void bound_jobs(void)
{
	struct rig *rig = rig_of("a:call count=20 in_flight=3 -> z:host capacity=16");

	clear();
	rig_on(rig, "a", emit_job);
	rig_on(rig, "z", note_number);
	assert_int_equal(rig_run(rig), WEIR_OK);
	join_jobs();
	assert_in_range(wr_load(&own.most), 2, 3);
	assert_int_equal(rig_ticks(rig, "z"), 20);
	rig_destroy(rig);
}

static void t17_t08_a_tick_is_in_flight_until_its_fence_is_completed(void **state)
{
	(void)state;
	rig_everywhere(bound_jobs);
}

/* --- failures --- */

static void fail_third(void)
{
	for (int texts = 0; texts < 2; texts++) {
		struct rig *rig = rig_of("a:call count=20 -> z:host capacity=8");

		clear();
		own.status = WEIR_E_IO;
		own.text = texts ? "the remote end has gone" : NULL;
		rig_on(rig, "a", emit_job);
		rig_on(rig, "z", note_number);
		rig_start(rig);
		assert_int_equal(weir_scheduler_wait(rig->scheduler, -1, &rig->outcome), WEIR_E_IO);
		join_jobs();
		assert_string_equal(rig->outcome.entity, "a");
		assert_int_equal(rig->outcome.cause, WEIR_CAUSE_COMPUTE);
		assert_string_equal(rig->outcome.text,
				    texts ? "the remote end has gone"
					  : "a fence was completed with the failure: input/output failed");
		assert_true(rig_ticks(rig, "z") <= 3);
		rig_destroy(rig);
	}
}

static void t17_a_failure_ends_the_run_by_the_name_of_its_entity(void **state)
{
	(void)state;
	rig_everywhere(fail_third);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(t17_a_message_with_a_fence_that_cannot_be_emitted_is_refused),
		cmocka_unit_test(t17_a_message_is_taken_when_its_fence_is_completed),
		cmocka_unit_test(t17_a_message_with_device_work_waits_for_both),
		cmocka_unit_test(t17_t08_a_tick_is_in_flight_until_its_fence_is_completed),
		cmocka_unit_test(t17_a_failure_ends_the_run_by_the_name_of_its_entity),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
