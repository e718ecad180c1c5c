/* Wrong calls, partitions, devices, observers of streams, and streams without memory (E6, T7, F40, F68). */
#include <stdio.h>
#include <string.h>

#include "sim/coroutine.h"
#include "base/memory.h"
#include "rig_inside.h"
#include "rig_streams.h"
#include "tests/calls.h"

#ifdef WR_ASAN
#define STEP 5 /* of the failing allocations: a world is slow there */
#else
#define STEP 1
#endif

/* --- observers of streams --- */

static struct {
	char text[256];
} observed;

static void note_stream_owner(void *self, void *native, const char *owner)
{
	size_t length = strlen(observed.text);

	(void)self;
	assert_null(native); /* host and sim have no native streams */
	snprintf(observed.text + length, sizeof observed.text - length, "%s%s", length ? " " : "", owner);
}

static weir_status open_observer(const struct wr_trace_options *options, void **self)
{
	(void)options;
	*self = &observed;
	return WEIR_OK;
}

/* "tables" in start, its current stream in the first tick, "late" in the second; the
 * default stream has no owner. */
static weir_status allocate_late(struct rig *rig, weir_context *context)
{
	weir_stream *stream = NULL, *default_stream = device_stream(context);

	HOLDS(rig, default_stream && current_stream(context));
	return rig_tick(context) == 1 ? weir_context_allocate_stream(context, "late", &stream) : WEIR_OK;
}

static weir_status allocate_at_start(struct rig *rig, weir_context *context)
{
	weir_stream *stream = NULL;

	(void)rig;
	return weir_context_allocate_stream(context, "tables", &stream);
}

static void observing_streams(void)
{
	static const struct wr_observer observer = {
		.name = "test", .open = open_observer, .stream = note_stream_owner};
	struct rig *rig = rig_of("source ticks=3 -> p:call");

	rig_on(rig, "p", allocate_late);
	rig_entity(rig, "p")->start = allocate_at_start;
	rig_make(rig);
	assert_int_equal(rig_observe(rig, &observer), WEIR_OK);
	observed.text[0] = '\0';
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_string_equal(observed.text, "p.tables p p.late");
	assert_int_equal(rig_run(rig), WEIR_OK); /* each run names its streams anew */
	assert_string_equal(observed.text, "p.tables p p.late p.tables p p.late");
	rig_destroy(rig);
}

static void profilers_hear_of_each_stream_once_a_run_by_whose_it_is(void **state)
{
	(void)state;
	rig_everywhere(observing_streams);
}

/* --- what is refused --- */

static weir_status ask_wrongly(struct rig *rig, weir_context *context)
{
	weir_stream *stream = current_stream(context), *none = NULL;

	rig_refused(rig, weir_context_receive_stream(context, 9, 0, &none), WEIR_E_INVALID,
		    "p: a stream is received on input 9 of 3");
	rig_refused(rig, weir_context_receive_stream(context, 0, 4, &none), WEIR_E_INVALID,
		    "weir_context_receive_stream: flags 0x4 are unknown, it has 0x3");
	rig_refused(rig, weir_context_set_stream(context, 2, stream), WEIR_E_INVALID,
		    "p: a stream is set on output 2 of 2");
	rig_refused(rig, weir_context_set_stream(context, 0, NULL), WEIR_E_INVALID, "p: the stream is NULL");
	rig_refused(rig, weir_context_synchronize_streams(context, &stream, 1, NULL), WEIR_E_INVALID,
		    "p: the stream is NULL");
	rig_refused(rig, weir_context_allocate_stream(context, "", &none), WEIR_E_INVALID,
		    "p: a stream is allocated by a name");
	rig_refused(rig, weir_context_allocate_stream(context, "second", &none), WEIR_E_BUSY,
		    "p: no stream for 'second': stream pool 'p' is exhausted");
	rig_refused(
		rig, weir_stream_launch(none, &rig_adder, NULL, 0), WEIR_E_INVALID,
		"a stream is needed, NULL was given; this thread's last error: p: no stream for 'second'");
	rig_refused(rig, copy_bytes(none, NULL, NULL, 0), WEIR_E_INVALID, "a stream is needed");
	rig_refused(rig, weir_stream_wait(none, (weir_fence){0, 0}), WEIR_E_INVALID, "a stream is needed");
	rig_refused(rig, weir_stream_record(none, NULL), WEIR_E_INVALID, "a stream is needed");
	HOLDS(rig, !none);
	HOLDS(rig, weir_context_receive_streams(context, 9, 0, 1, &none) == 0);
	HOLDS(rig, weir_context_device(context) == 0);
	HOLDS(rig, weir_context_backend(context) == weir_scheduler_backend(rig->scheduler));
	return WEIR_OK;
}

static weir_status ask_for_more(struct rig *rig, weir_context *context)
{
	weir_stream *none = NULL;

	rig_refused(rig, weir_context_allocate_stream(context, "one", &none), WEIR_E_UNSUPPORTED,
		    "q: no stream for 'one': it has no stream pool");
	return none ? WEIR_E_INVALID : WEIR_OK;
}

static void asking_wrongly(void)
{
	rig_resources = RIG_POOL(", \"max_size\": 1");
	struct rig *rig = rig_of("source ticks=1 -> p:call pool=p; q:call count=1 pool=none");

	rig_resources = NULL;
	rig_on(rig, "p", ask_wrongly);
	rig_on(rig, "q", ask_for_more);
	assert_int_equal(rig_run(rig), WEIR_OK);
	rig_destroy(rig);
}

static void e06_wrong_calls_get_a_line_with_the_remedy(void **state)
{
	(void)state;
	rig_everywhere(asking_wrongly);
}

static weir_status unwrap_now(struct rig *rig, weir_context *context)
{
	rig_refused(rig, weir_stream_unwrap(current_stream(context)), WEIR_E_STATE, "a run is on");
	HOLDS(rig, weir_stream_unwrap(NULL) == WEIR_OK);
	return WEIR_OK;
}

static void unwrapping(void)
{
	struct rig *rig = rig_of("p:call count=1");
	weir_stream *none = NULL;

	rig_on(rig, "p", unwrap_now);
	assert_int_equal(weir_stream_wrap(rig->graph, 0, NULL, &none), WEIR_E_INVALID);
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_int_equal(weir_stream_wrap(rig->graph, 0, NULL, &none), WEIR_E_UNSUPPORTED);
	assert_null(none);
	rig_destroy(rig);
}

static void f68_nothing_is_unwrapped_while_a_run_is_on(void **state)
{
	(void)state;
	rig_everywhere(unwrapping);
}

/* Nothing half-built stays: the same error again, and the graph can be destroyed. */
static void e06_a_resource_that_cannot_be_had_is_named(void **state)
{
	(void)state;
	rig_resources = "{\"g\": {\"type\": \"green_context_pool\", \"sms_per_partition\": [2, 5000]},"
			"\"s\": {\"type\": \"stream_pool\", \"green_context\": \"g\"}}";
	for (int i = 0; i < 2; i++) {
		rig_backend = i ? "host" : "sim";
		struct rig *rig = rig_of("p:call pool=s");
		for (int again = 0; again < 2; again++) {
			assert_int_equal(weir_scheduler_create(rig->graph, &rig->options, &rig->scheduler),
					 WEIR_E_INVALID);
			assert_says(weir_last_error(), "green_context_pool 'g'");
			assert_true(rig_has_no_system(rig));
		}
		rig_destroy(rig);
	}
	rig_backend = "sim";
	rig_resources = NULL;
}

static weir_status on_a_partition(struct rig *rig, weir_context *context)
{
	HOLDS(rig, rig_partition(current_stream(context)));
	return rig_emit_on_current(rig, context);
}

static void partitions(void)
{
	rig_resources = "{\"g\": {\"type\": \"green_context_pool\", \"sms_per_partition\": [2, 2]},"
			"\"second\": {\"type\": \"green_context\", \"pool\": \"g\", \"index\": 1},"
			"\"s\": {\"type\": \"stream_pool\", \"green_context\": \"second\"}}";
	struct rig *rig = rig_of("a:call count=3 pool=s -> b:call pool=g -> end gate=in");

	rig_resources = NULL;
	rig_on(rig, "a", on_a_partition);
	rig_on(rig, "b", on_a_partition);
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_string_equal(rig_text(rig, "end"), "0 1 2");
	rig_destroy(rig);
}

static void streams_of_partitions_work_and_wait_for_each_other(void **state)
{
	(void)state;
	rig_everywhere(partitions);
}

/* --- several devices --- */

static weir_status on_the_second(struct rig *rig, weir_context *context)
{
	weir_stream *stream = current_stream(context);

	HOLDS(rig, weir_context_device(context) == 1 && weir_stream_device(stream) == 1);
	if (weir_context_count(context, 0))
		HOLDS(rig, weir_message_tensor(weir_context_message(context, 0, 0))->device == 1);
	return rig_emit_on_current(rig, context);
}

static void two_devices(void)
{
	rig_resources = "{\"p\": {\"type\": \"stream_pool\", \"device\": 1}}";
	struct rig *rig = rig_of("a:call count=3 -> up:upload pool=p -> same:upload pool=p -> b:call pool=p "
				 "-> down:download pool=p "
				 "-> end gate=in");

	rig_resources = NULL;
	rig_on(rig, "a", rig_emit_on_current);
	rig_on(rig, "b", on_the_second);
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_string_equal(rig_text(rig, "end"), "0 1 2");
	rig_destroy(rig);
}

static void a_tensor_goes_to_the_device_of_its_receiver(void **state)
{
	(void)state;
	rig_everywhere(two_devices);
}

/* A stream of another device is waited for but not used: the entity's memory is on its own device. */
static weir_status stay_at_home(struct rig *rig, weir_context *context)
{
	weir_stream *stream = current_stream(context), *found = rig_carried(context, 0, 0);

	HOLDS(rig, found && weir_stream_device(found) == 1);
	HOLDS(rig, stream && weir_stream_device(stream) == 0);
	return rig_emit_sum(context, 0, stream, 0, 0);
}

static weir_status see_the_default(struct rig *rig, weir_context *context)
{
	HOLDS(rig, weir_message_fences(weir_context_message(context, 0, 0), 0, NULL) == 1);
	HOLDS(rig, !rig_carried(context, 0, 0));
	return WEIR_OK;
}

static void another_device(void)
{
	rig_resources = "{\"p\": {\"type\": \"stream_pool\", \"device\": 1}}";
	struct rig *rig = rig_of("a:call pool=p count=2 -> b:call pool=none -> c:call");

	rig_resources = NULL;
	rig_on(rig, "a", on_the_second);
	rig_on(rig, "b", stay_at_home);
	rig_on(rig, "c", see_the_default);
	assert_int_equal(rig_run(rig), WEIR_OK);
	rig_destroy(rig);
}

static void t07_a_stream_of_another_device_is_waited_for_and_does_not_serve(void **state)
{
	(void)state;
	rig_everywhere(another_device);
}

/* --- F40 --- */

/* On a slow machine work may outlast the run that was cut short; `stop` is then called later. */
static bool some_keep_streams(struct rig *rig)
{
	for (const char *name = "abcdeh"; *name; name++)
		if (rig_keeps_streams(rig, (char[]){*name, '\0'}))
			return true;
	return false;
}

/* Pool, share, default stream, set: allocation n fails, or all from n on. Returns true if
 * there were fewer. */
static bool run_with_failure(int64_t n, bool all)
{
	rig_resources = RIG_POOL(", \"max_size\": 2");
	struct rig *rig = rig_of("a:call pool=p count=2 -> b:call pool=none -> c:call pool=p -> h:call -> "
				 "end gate=in; d:call pool=none count=1 -> e:call");
	int64_t before = wr_memory_count();
	weir_status status;

	rig_resources = NULL;
	rig_on(rig, "a", rig_emit_on_allocated);
	rig_on(rig, "b", rig_emit_on_current);
	rig_on(rig, "c", rig_emit_on_current);
	rig_on(rig, "d", rig_emit_on_current);
	rig_on(rig, "h", rig_emit_by_hand);
	wr_memory_fail_at(n, all);
	status = weir_scheduler_create(rig->graph, &rig->options, &rig->scheduler);
	if (!status) {
		rig_here(rig);
		status = weir_scheduler_run(rig->scheduler);
	}
	assert_true(status == WEIR_OK || status == WEIR_E_NOMEM || status == WEIR_E_FAILED ||
		    status == WEIR_E_DEVICE);
	wr_memory_fail_at(-1, false);
	for (size_t i = 0; i < rig_pool_count(rig); i++)
		assert_true(rig_taken(rig, i) == 0 || some_keep_streams(rig));
	if (!status)
		assert_string_equal(rig_text(rig, "end"), "0 1");
	rig_destroy(rig);
	return wr_memory_count() - before <= n;
}

static void fail_everywhere(void)
{
	for (int all = 0; all < 2; all++) {
		int64_t n = 0;
		while (n < 3000 && !run_with_failure(n, all))
			n += STEP;
		assert_in_range(n, 20, 2999);
	}
}

static void f40_t04_without_memory_streams_are_given_back_and_payloads_kept(void **state)
{
	(void)state;
	if (RIG_SEEDS <= 10)
		return;
	rig_in_world(1, fail_everywhere);
	rig_on_host(fail_everywhere);
}

int main(int count, char **arguments)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(profilers_hear_of_each_stream_once_a_run_by_whose_it_is),
		cmocka_unit_test(e06_wrong_calls_get_a_line_with_the_remedy),
		cmocka_unit_test(e06_a_resource_that_cannot_be_had_is_named),
		cmocka_unit_test(streams_of_partitions_work_and_wait_for_each_other),
		cmocka_unit_test(a_tensor_goes_to_the_device_of_its_receiver),
		cmocka_unit_test(f68_nothing_is_unwrapped_while_a_run_is_on),
		cmocka_unit_test(f40_t04_without_memory_streams_are_given_back_and_payloads_kept),
		cmocka_unit_test(t07_a_stream_of_another_device_is_waited_for_and_does_not_serve),
	};

	if (count > 1)
		cmocka_set_test_filter(arguments[1]);
	return cmocka_run_group_tests_name("scheduler/streams_resources", tests, NULL, NULL);
}
