/*
 * Each call of the device fails once, in each way that the backend's contract knows, at each of its calls of
 * a run: the run ends with its result, or with a failure that names the call; no kernel reads what is not
 * written yet, and everything that the backend gave is given back. The table of the backend is replaced by
 * one that counts the calls (--wrap).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "device_counted.h"
#include "rig_scratch.h"
#include "tests/calls.h"

#if defined WR_TSAN
#define WORLDS 1
#elif defined WR_ASAN
#define WORLDS 2
#else
#define WORLDS 20
#endif
#define TEST(name) static void name(void **state_)

/* --- runs --- */

enum { RECEIVED = 256 };

struct outcome {
	weir_status status;
	char text[1024];            /* of the failure */
	char received[2][RECEIVED]; /* by x, y */
};

static const struct plan {
	const char *text, *resources;
	rig_fn *compute; /* of c, NULL: there is none, nor a y */
	bool timed;      /* the GPU time of each tick is measured */
} * plan;

static weir_status observe(const struct wr_trace_options *options, void **self)
{
	(void)options;
	*self = &plan;
	return WEIR_OK;
}

static const struct wr_observer observer = {.name = "test", .open = observe, .device_work = rig_ignore_work};

static weir_status emit_copy(struct rig *rig, weir_context *context)
{
	static const int64_t numbers[] = {10, 20, 30};
	const int64_t *number = &numbers[rig_tick(context) % 3];
	weir_copy copies[2] = {{sizeof *copies, NULL, &numbers[1], 1, sizeof *numbers, 0, 0},
			       {sizeof *copies, NULL, number, 2, sizeof *numbers / 2, sizeof *numbers / 2,
				sizeof *numbers / 2}};
	weir_message *message = NULL;
	weir_status status = weir_context_create_tensor(context, &rig_one_number, 0, &message);
	weir_stream *stream = current_stream(context);
	weir_fence fence;

	(void)rig;
	if (!status) {
		copies[0].to = copies[1].to = weir_message_data(message);
		status = weir_stream_copies(stream, copies, 2, WEIR_COPY_ASYNC, &fence);
	}
	if (!status)
		return weir_context_emit(context, 0, message);
	weir_message_unref(message);
	return status;
}

static weir_status emit_sum_twice(struct rig *rig, weir_context *context)
{
	weir_status status = rig_emit_on_current(rig, context);

	return status ? status : rig_emit_sum(context, 1, current_stream(context), 100, 10 * US);
}

/* Work that must run once in each tick, on two streams. */
static int64_t cells[2];

static weir_status add_to_cell(weir_stream *stream, size_t to, size_t from, int64_t plus)
{
	struct rig_sum sum = {&cells[to], {&cells[from], NULL}, plus, 5 * US};

	return weir_stream_launch(stream, &rig_adder, &sum, sizeof sum);
}

static weir_status enqueue_cells(weir_context *context, weir_stream *stream, void *arg)
{
	weir_stream *side = NULL;
	weir_status status = weir_context_allocate_stream(context, "side", &side);

	(void)arg;
	if (!status)
		status = add_to_cell(stream, 0, 0, 1);
	if (!status)
		status = weir_context_synchronize_streams(context, &stream, 1, side);
	if (!status)
		status = add_to_cell(side, 1, 0, 100);
	return status ? status : weir_context_synchronize_streams(context, &side, 1, stream);
}

static weir_status emit_replayed(struct rig *rig, weir_context *context)
{
	weir_message *message = NULL;
	weir_status status = weir_context_create_tensor(context, &rig_one_number, 0, &message);
	struct rig_sum sum = {.from = {&cells[1], NULL}};

	(void)rig;
	if (!rig_tick(context))
		cells[0] = 0;
	if (!status)
		status = weir_context_replay(context, "key", 3, enqueue_cells, NULL);
	if (status) {
		weir_message_unref(message);
		return status;
	}
	sum.to = weir_message_data(message);
	status = weir_stream_launch(current_stream(context), &rig_adder, &sum, sizeof sum);
	if (!status)
		return weir_context_emit(context, 0, message);
	weir_message_unref(message);
	return status;
}

static const struct plan replayed = {"c:call count=5 -> x:end gate=in; c.out2 -> y:end", NULL, emit_replayed,
				     true};
static const struct plan plain = {"source ticks=3 work=10us -> p:pass -> x:end", NULL, NULL, true};
static const struct plan several_streams = {"a:source ticks=3 work=10us -> c:call capacity=4 -> x:end "
					    "gate=in; b:source ticks=3 work=30us -> c.in2; "
					    "c.out2 -> y:end gate=in,callback_inline",
					    NULL, emit_sum_twice, false};
static const struct plan signals_and_partitions = {
	"c:call count=3 pool=streams -> x:end gate=in,flag; b:source ticks=3 work=20us pool=default -> y:end "
	"gate=in,callback_inline",
	"{\"parts\": {\"type\": \"green_context_pool\", \"sms_per_partition\": [2, 3]},"
	"\"part\": {\"type\": \"green_context\", \"pool\": \"parts\", \"index\": 0},"
	"\"streams\": {\"type\": \"stream_pool\", \"green_context\": \"part\"}}",
	emit_copy, false};

static const struct plan all_stream_calls = {
	"a:source ticks=3 work=10us -> c:call pool=p -> x:end gate=in; c.out2 -> y:end gate=in", RIG_POOL(""),
	rig_emit_on_all, false};

#ifndef WR_TSAN
static const struct plan all_means = {
	"c:call count=9 pool=p pool=m pool=h replay=1 -> x:end gate=in; c.out2 -> y:end", rig_means_resources,
	rig_emit_by_all_means, false};
#endif

static weir_status run_to_end(struct rig *rig)
{
	weir_status status = WEIR_OK;

	if (!rig->scheduler) {
		rig->options.gpu_time = 1;
		status = weir_scheduler_create(rig->graph, &rig->options, &rig->scheduler);
		if (!status && plan->timed)
			status = rig_observe(rig, &observer);
	}
	if (status)
		return status;
	rig_here(rig);
	status = weir_scheduler_start(rig->scheduler);
	return status ? status : rig_wait(rig);
}

static struct rig *make_rig(void)
{
	struct rig *rig;

	rig_resources = plan->resources;
	rig = rig_of(plan->text);
	rig_resources = NULL;
	if (plan->compute)
		rig_on(rig, "c", plan->compute);
	return rig;
}

static void take_text(struct rig *rig, const char *name, char out[RECEIVED])
{
	struct rig_entity *entity = rig_entity(rig, name);

	snprintf(out, RECEIVED, "%.255s", entity->text);
	entity->length = 0;
	entity->text[0] = 0;
}

static struct outcome run_once(struct rig *rig)
{
	struct outcome outcome = {.status = run_to_end(rig)};

	if (outcome.status)
		snprintf(outcome.text, sizeof outcome.text, "%s",
			 rig->outcome.status ? rig->outcome.text : weir_last_error());
	take_text(rig, "x", outcome.received[0]);
	if (plan->compute)
		take_text(rig, "y", outcome.received[1]);
	return outcome;
}

static void destroy_rig(struct rig *rig)
{
	rig_destroy(rig);
	assert_int_equal(wr_load(&device.given), 0);
	assert_int_equal(wr_load(&rig_read_early), 0);
}

/* --- the sweep --- */

static struct outcome untouched;
static unsigned runs, failed_runs, reached[CALLS];

static void say(const struct outcome *outcome, const char *run)
{
	fail_msg("%s: %s, error %d of call %u of %s: %s '%s', x got '%s' not '%s', y '%s' not '%s'",
		 plan->text, run, device.error, device.nth, device_call_names[device.call],
		 weir_status_text(outcome->status), outcome->text, outcome->received[0],
		 untouched.received[0], outcome->received[1], untouched.received[1]);
}

static bool is_right(const struct outcome *outcome)
{
	return !outcome->status && !strcmp(outcome->received[0], untouched.received[0]) &&
	       !strcmp(outcome->received[1], untouched.received[1]);
}

/* A pool whose memory the device has not says so in its own words. */
static bool is_named(const struct outcome *outcome)
{
	return strstr(outcome->text, "injected") ||
	       (device.call == ALLOC && strstr(outcome->text, "memory pool '"));
}

/* After an error of one call the graph runs again as if nothing had been; a lost device stays lost. */
static bool run_with_failure(void)
{
	struct rig *rig = make_rig();
	struct outcome outcome;

	wr_store(&device.count, 0);
	wr_store(&device.hit, false);
	outcome = run_once(rig);
	if (outcome.status ? !is_named(&outcome) : !is_right(&outcome))
		say(&outcome, "the run");
	runs++;
	failed_runs += outcome.status != WEIR_OK;
	reached[device.call] += wr_load(&device.hit);
	if (device.error < FAULT && wr_load(&device.hit)) {
		outcome = run_once(rig);
		if (!is_right(&outcome))
			say(&outcome, "the next run");
	}
	destroy_rig(rig);
	return wr_load(&device.hit);
}

/* By contract a query fails only if the device is lost, and before open there is no device to fault. */
static bool possible(enum call call, enum error error)
{
	return !(call == QUERY && error < FAULT) && !(call == OPEN && error == FAULT);
}

static void sweep_call(enum call call)
{
	unsigned step = call == EVENT_CREATE ? 61 : 1; /* a stream creates 256 */

	device.call = call;
	for (int error = 0; error < ERRORS; error++) {
		device.error = error;
		device.nth = 1;
		while (possible(call, error) && run_with_failure())
			device.nth += step;
	}
}

static void sweep(void)
{
	struct rig *rig = make_rig();

	device.nth = 0;
	untouched = run_once(rig);
	destroy_rig(rig);
	if (untouched.status)
		fail_msg("%s: %s", plan->text, untouched.text);
	for (int call = 0; call < CALLS; call++)
		sweep_call(call);
}

static void sweep_everywhere(const struct plan *of, uint64_t worlds)
{
	plan = of;
	runs = failed_runs = 0;
	rig_in_worlds(worlds, sweep);
	print_message("sim: %u runs, %u failed\n", runs, failed_runs);
	assert_true(failed_runs > 0 && failed_runs < runs);
	runs = failed_runs = 0;
	rig_on_host(sweep);
	print_message("host: %u runs, %u failed\n", runs, failed_runs);
	assert_true(failed_runs > 0 && failed_runs < runs);
}

TEST(f65_e02_whatever_call_fails_a_plain_run_ends_right_or_names_it)
{
	(void)state_;
	sweep_everywhere(&plain, WORLDS);
}

TEST(f65_e02_whatever_call_fails_a_run_of_several_streams_ends_right_or_names_it)
{
	(void)state_;
	sweep_everywhere(&several_streams, WORLDS);
}

TEST(f65_e02_whatever_call_fails_a_run_with_flags_and_partitions_ends_right_or_names_it)
{
	(void)state_;
	sweep_everywhere(&signals_and_partitions, WORLDS);
}

TEST(f65_t13_whatever_call_fails_a_replay_ends_right_or_names_it)
{
	(void)state_;
	sweep_everywhere(&replayed, WORLDS);
}

TEST(f65_e02_whatever_call_fails_a_run_that_uses_every_call_on_streams_ends_right_or_names_it)
{
	(void)state_;
	sweep_everywhere(&all_stream_calls, WORLDS);
}

#ifndef WR_TSAN
TEST(f65_t11_s03_whatever_call_fails_scratch_memory_and_pools_serve_the_next_run)
{
	(void)state_;
	sweep_everywhere(&all_means, 2);
}
#endif

TEST(f65_every_call_was_reached)
{
	(void)state_;
	for (int call = 0; call < CALLS; call++)
		if (!reached[call])
			fail_msg("%s was never called", device_call_names[call]);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(f65_e02_whatever_call_fails_a_plain_run_ends_right_or_names_it),
		cmocka_unit_test(f65_e02_whatever_call_fails_a_run_of_several_streams_ends_right_or_names_it),
		cmocka_unit_test(
			f65_e02_whatever_call_fails_a_run_with_flags_and_partitions_ends_right_or_names_it),
		cmocka_unit_test(f65_t13_whatever_call_fails_a_replay_ends_right_or_names_it),
		cmocka_unit_test(
			f65_e02_whatever_call_fails_a_run_that_uses_every_call_on_streams_ends_right_or_names_it),
#ifndef WR_TSAN /* too long: the other plans have the same threads */
		cmocka_unit_test(f65_t11_s03_whatever_call_fails_scratch_memory_and_pools_serve_the_next_run),
#endif
		cmocka_unit_test(f65_every_call_was_reached),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
