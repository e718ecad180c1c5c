/* Streams at the start and the end of runs, and in the next one (S7, S8, E4). */
#include "rig_inside.h"
#include "rig_streams.h"
#include "tests/calls.h"

/* --- start, stop, runs --- */

static weir_status begin(struct rig *rig, weir_context *context)
{
	weir_stream *stream = NULL, *target = current_stream(context);
	weir_message *message = NULL;
	weir_status status = weir_context_allocate_stream(context, "tables", &stream);

	rig_refused(rig, weir_context_receive_stream(context, 0, 0, &stream), WEIR_E_INVALID,
		    "p: streams are received in compute: its messages are taken when it begins");
	rig_refused(rig, weir_context_set_stream(context, 0, stream), WEIR_E_INVALID,
		    "p: a stream is set in compute");
	HOLDS(rig, weir_context_receive_streams(context, 0, 0, 1, &stream) == 0);
	if (!status)
		status = rig_add(context, stream, 1, 10 * MS, &message);
	if (!status)
		status = weir_context_synchronize_streams(context, &stream, 1, target);
	if (!status)
		status = weir_stream_launch(
			target, &rig_adder,
			&(struct rig_sum){rig->own, {weir_message_data(message), NULL}, 1, 0},
			sizeof(struct rig_sum));
	weir_message_unref(message);
	return status;
}

static void end(struct rig *rig, weir_context *context)
{
	weir_stream *stream = NULL;

	HOLDS(rig, *(int64_t *)rig->own == 12);
	HOLDS(rig, weir_context_allocate_stream(context, "tables", &stream) == WEIR_OK);
	rig_refused(rig, weir_context_receive_stream(context, 0, 0, &stream), WEIR_E_INVALID,
		    "received in compute");
}

/* Its last work is on a stream that is not the current one. */
static weir_status work_late(struct rig *rig, weir_context *context)
{
	weir_stream *stream = NULL, *internal = current_stream(context);
	weir_status status = weir_context_allocate_stream(context, "tables", &stream);

	if (!status)
		status = weir_context_synchronize_streams(context, &internal, 1, stream);
	return status ? status
		      : weir_stream_launch(stream, &rig_adder,
					   &(struct rig_sum){rig->own, {rig->own, NULL}, 10, 30 * MS},
					   sizeof(struct rig_sum));
}

static void starting_and_stopping(void)
{
	struct rig *rig = rig_of("source ticks=1 -> p:call");
	int64_t place = -1;

	rig->own = &place;
	rig_on(rig, "p", work_late);
	rig_entity(rig, "p")->start = begin;
	rig_entity(rig, "p")->stop = end;
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_int_equal(rig_run(rig), WEIR_OK);
	rig_destroy(rig);
}

static void s07_start_may_use_streams_and_stop_comes_after_all_of_them(void **state)
{
	(void)state;
	rig_everywhere(starting_and_stopping);
}

/* Its only work is on a stream that is not the current one, and goes on while the run is cut short. */
static weir_status work_beside_and_cut(struct rig *rig, weir_context *context)
{
	weir_stream *stream = NULL;
	weir_status status = weir_context_allocate_stream(context, "tables", &stream);

	if (!status)
		status = weir_stream_launch(stream, &rig_adder,
					    &(struct rig_sum){rig->own, {NULL, NULL}, 5, 20 * MS},
					    sizeof(struct rig_sum));
	weir_scheduler_stop(rig->scheduler, 0);
	return status;
}

static void end_after_all(struct rig *rig, weir_context *context)
{
	(void)context;
	HOLDS(rig, *(int64_t *)rig->own == 5);
}

static void cutting_short(void)
{
	struct rig *rig = rig_of("p:call count=1");
	int64_t place = -1;

	rig->own = &place;
	rig_on(rig, "p", work_beside_and_cut);
	rig_entity(rig, "p")->stop = end_after_all;
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_int_equal(wr_load(&rig->stopped), 1);
	rig_destroy(rig);
}

static void s07_stop_waits_a_while_for_all_streams_of_a_run_that_was_cut_short(void **state)
{
	(void)state;
	rig_everywhere(cutting_short);
}

static weir_status begin_long(struct rig *rig, weir_context *context)
{
	return weir_stream_launch(current_stream(context), &rig_adder,
				  &(struct rig_sum){rig->own, {rig->own, NULL}, 5, 30 * MS},
				  sizeof(struct rig_sum));
}

static weir_status begin_badly(struct rig *rig, weir_context *context)
{
	(void)rig;
	return weir_context_fail(context, "no");
}

static void end_after(struct rig *rig, weir_context *context)
{
	(void)context;
	HOLDS(rig, *(int64_t *)rig->own == 5);
}

static void failing_start(void)
{
	struct rig *rig = rig_of("p:call count=1; q:call count=1");
	int64_t place = 0;

	rig->own = &place;
	rig_make(rig);
	rig_here(rig);
	rig_entity(rig, "p")->start = begin_long;
	rig_entity(rig, "p")->stop = end_after;
	rig_entity(rig, "q")->start = begin_badly;
	assert_int_equal(weir_scheduler_start(rig->scheduler), WEIR_E_FAILED);
	assert_string_equal(weir_last_error(), "q: no");
	assert_int_equal(wr_load(&rig->broken), 0);
	assert_int_equal(wr_load(&rig->stopped), 1);
	rig_destroy(rig);
}

static void s07_stop_comes_after_the_streams_also_when_another_did_not_start(void **state)
{
	(void)state;
	rig_everywhere(failing_start);
	failing_start();
}

/* --- a drain that ran out of time --- */

/* The first run does nothing; the second is cut short while the device works for longer
 * than the wait after a drain. */
static weir_status work_in_the_second_run(struct rig *rig, weir_context *context)
{
	weir_stream *stream = current_stream(context);

	if (!wr_load(&rig->told))
		return WEIR_OK;
	weir_scheduler_stop(rig->scheduler, 0);
	return weir_stream_launch(stream, &rig_adder, &(struct rig_sum){rig->own, {NULL, NULL}, 5, SECOND},
				  sizeof(struct rig_sum));
}

static void running_again(void)
{
	struct rig *rig = rig_of("p:call count=1; idle:call enabled=false");
	int64_t place = -1;

	rig->own = &place;
	rig->options.drain_ns = -1;
	rig->options.deadlock_grace_ns = INT64_MAX;
	rig->options.max_duration_ns = MS;
	rig_on(rig, "p", work_in_the_second_run);
	assert_int_equal(rig_run(rig), WEIR_E_ABANDONED);
	wr_store(&rig->told, 1);
	assert_int_equal(rig_run(rig), WEIR_OK);
	rig_destroy(rig);
	assert_int_equal(place, 5);
}

static void e04_s08_a_drain_that_took_too_long_does_not_hurry_the_end_of_later_runs(void **state)
{
	(void)state;
	rig_in_world(1, running_again);
}

/* --- a start that failed --- */

static bool in_capture;

static bool is_in_capture(void *self, int device, void *stream)
{
	(void)self;
	(void)device;
	(void)stream;
	return in_capture;
}

static void end_capture(void *self, int device, void *stream)
{
	(void)self;
	(void)device;
	(void)stream;
	in_capture = false;
}

/* It has the native handle, and leaves a capture open. */
static weir_status begin_in_capture(struct rig *rig, weir_context *context)
{
	weir_stream *stream = current_stream(context);

	HOLDS(rig, stream);
	rig_give_native(stream);
	return weir_stream_launch(stream, &rig_adder, &(struct rig_sum){rig->own, {NULL, NULL}, 5, MS},
				  sizeof(struct rig_sum));
}

static void start_again(bool ends)
{
	struct rig *rig = rig_of("p:call count=1");
	int64_t place = -1;

	rig->own = &place;
	rig_entity(rig, "p")->start = begin_in_capture;
	rig_make(rig);
	rig_here(rig);
	rig_own_backend(rig)->capturing = is_in_capture;
	rig->own_backend->end_capture = ends ? end_capture : NULL;
	in_capture = true;
	assert_int_equal(weir_scheduler_start(rig->scheduler), WEIR_E_UNSUPPORTED);
	assert_int_equal(in_capture, !ends);
	in_capture = false;
	if (ends)
		assert_int_equal(rig_live(rig->scheduler), 0);
	assert_int_equal(weir_scheduler_start(rig->scheduler), WEIR_OK);
	assert_int_equal(weir_scheduler_wait(rig->scheduler, 10 * SECOND, NULL), WEIR_OK);
	rig_restore_backend(rig);
	rig_destroy(rig);
}

/* The capture is ended for it, or its work is fenced by the next start. */
static void starting_again(void)
{
	start_again(true);
	start_again(false);
}

static void s08_e02_a_stream_that_a_failed_start_left_holds_no_later_run_open(void **state)
{
	(void)state;
	rig_in_world(1, starting_again);
}

/* Notes the highest index in the table of streams. */
static void note_highest_index(struct rig *rig, weir_context *context)
{
	uint64_t place = rig_highest_index(context), last = wr_load(&rig->told);

	while (place > last && !wr_cas(&rig->told, &last, place))
		;
}

static weir_status many_noted(struct rig *rig, weir_context *context)
{
	weir_status status = rig_emit_on_one_of_four(rig, context);

	note_highest_index(rig, context);
	return status;
}

static weir_status internal_noted(struct rig *rig, weir_context *context)
{
	weir_status status = rig_emit_on_current(rig, context);

	(void)rig_carried(context, 0, 0);
	note_highest_index(rig, context);
	return status;
}

/* Takes longer than a run that was cut short waits. */
static weir_status work_long_elsewhere(struct rig *rig, weir_context *context)
{
	weir_stream *stream = NULL;
	weir_status status = weir_context_allocate_stream(context, "tables", &stream);

	HOLDS(rig, current_stream(context));
	return status ? status
		      : weir_stream_launch(stream, &rig_adder,
					   &(struct rig_sum){rig->own, {rig->own, NULL}, 10, SECOND},
					   sizeof(struct rig_sum));
}

static void cut_short(void)
{
	struct rig *rig = rig_of("p:call count=1");
	int64_t place = 2;

	rig->own = &place;
	rig_on(rig, "p", work_long_elsewhere);
	rig_start(rig);
	assert_int_equal(weir_scheduler_wait(rig->scheduler, 5 * MS, NULL), WEIR_E_TIMEOUT);
	weir_scheduler_stop(rig->scheduler, 0);
	rig_wait(rig);
	assert_int_equal(wr_load(&rig->stopped), 0);
	rig_destroy(rig);
	assert_int_equal(place, 12);
}

static void s07_stop_is_not_called_while_any_of_the_streams_works(void **state)
{
	(void)state;
	rig_in_worlds(5, cut_short);
}

static void three_runs(void)
{
	rig_resources = RIG_POOL(", \"reserved_size\": 2, \"default\": true");
	struct rig *rig = rig_of(
		"a:call count=4 -> b:call -> end gate=in; c:call count=3 pool=none -> q:call pool=none");
	uint64_t last = 0;

	rig_resources = NULL;
	rig_on(rig, "a", many_noted);
	rig_on(rig, "b", internal_noted);
	rig_on(rig, "c", internal_noted);
	rig_on(rig, "q", internal_noted);
	for (int run = 0; run < 3; run++) {
		assert_int_equal(rig_run(rig), WEIR_OK);
		assert_int_equal(rig_taken(rig, 0), 0);
		if (run)
			assert_int_equal(wr_load(&rig->told), last);
		last = wr_load(&rig->told);
	}
	rig_destroy(rig);
}

static void s08_runs_one_after_another_need_no_more_streams(void **state)
{
	(void)state;
	rig_everywhere(three_runs);
}

/* Another backend for each scheduler: each has its own pools, partitions and streams. */
static void s08_schedulers_of_other_backends_have_streams_of_their_own(void **state)
{
	static const char *const backends[] = {"host", "sim", "host", "host", "sim", "sim"};

	(void)state;
	rig_resources =
		"{\"g\": {\"type\": \"green_context_pool\", \"sms_per_partition\": [2, 2]},"
		"\"p\": {\"type\": \"stream_pool\", \"device\": 1, \"reserved_size\": 3, \"max_size\": 3}}";
	struct rig *rig = rig_of("a:call count=3 pool=g -> b:call pool=p -> end gate=in capacity=2; c:call "
				 "count=2 pool=none -> d:call pool=default");

	rig_resources = NULL;
	rig_on(rig, "a", rig_emit_on_allocated);
	rig_on(rig, "b", rig_emit_by_hand);
	rig_on(rig, "c", rig_emit_on_current);
	rig_on(rig, "d", rig_emit_on_current);
	for (size_t i = 0; i < sizeof backends / sizeof *backends; i++) {
		rig->options.backend = backends[i];
		rig_entity(rig, "end")->length = 0;
		rig_make(rig);
		assert_int_equal(rig_run(rig), WEIR_OK);
		assert_int_equal(rig_run(rig), WEIR_OK);
		assert_string_equal(rig_text(rig, "end"), "0 1 2 0 1 2");
		assert_int_equal(rig_taken(rig, 0), 0);
		assert_int_equal(weir_scheduler_destroy(rig->scheduler), WEIR_OK);
		rig->scheduler = NULL;
	}
	rig_destroy(rig);
}

int main(int count, char **arguments)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(s07_stop_comes_after_the_streams_also_when_another_did_not_start),
		cmocka_unit_test(s07_start_may_use_streams_and_stop_comes_after_all_of_them),
		cmocka_unit_test(s07_stop_waits_a_while_for_all_streams_of_a_run_that_was_cut_short),
		cmocka_unit_test(s07_stop_is_not_called_while_any_of_the_streams_works),
		cmocka_unit_test(e04_s08_a_drain_that_took_too_long_does_not_hurry_the_end_of_later_runs),
		cmocka_unit_test(s08_e02_a_stream_that_a_failed_start_left_holds_no_later_run_open),
		cmocka_unit_test(s08_runs_one_after_another_need_no_more_streams),
		cmocka_unit_test(s08_schedulers_of_other_backends_have_streams_of_their_own),
	};

	if (count > 1)
		cmocka_set_test_filter(arguments[1]);
	return cmocka_run_group_tests_name("scheduler/streams_runs", tests, NULL, NULL);
}
