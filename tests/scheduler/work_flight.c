/* T8: how many ticks of an entity may be on the device at once. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rig_inside.h"
#include "tests/calls.h"

static const char *const signals[] = {"callback", "callback_inline", "flag"};
enum { SIGNALS = 3, TICKS = 200 };

/* --- the entity: each tick works on the device and checks how many ticks before it still do --- */

static struct {
	int64_t ns, side_ns; /* of the tick's kernel; of a second one on another stream, or 0 */
	int launches;
	size_t bound, most; /* the bound; the most that was seen */
	weir_fence ends[TICKS][2];
} work;

static int nap(const void *arguments)
{
	weir_sleep(*(const int64_t *)arguments);
	return 0;
}

static const weir_kernel napping = {sizeof(weir_kernel), "nap", nap, NULL};

static weir_status launch(weir_stream *stream, int64_t ns, weir_fence *end)
{
	weir_status status = stream ? weir_stream_launch(stream, &napping, &ns, sizeof ns) : WEIR_E_DEVICE;

	return status ? status : weir_stream_record(stream, end);
}

static bool is_over(weir_graph *graph, uint64_t tick)
{
	return weir_fence_query(graph, work.ends[tick][0]) == WEIR_OK &&
	       weir_fence_query(graph, work.ends[tick][1]) == WEIR_OK;
}

static weir_status tick(struct rig *rig, weir_context *context)
{
	uint64_t number = weir_context_tick(context);
	weir_graph *graph = weir_context_graph(context);
	weir_stream *side = NULL;
	size_t on_device = 0;
	weir_status status = WEIR_OK;

	for (uint64_t i = 0; i < number; i++)
		on_device += !is_over(graph, i);
	work.most = on_device + 1 > work.most ? on_device + 1 : work.most;
	HOLDS(rig, !work.bound || on_device < work.bound);
	memset(work.ends[number], 0, sizeof work.ends[number]);
	for (int i = 0; !status && i < work.launches; i++)
		status = launch(current_stream(context), work.ns, &work.ends[number][0]);
	if (!status && work.side_ns)
		status = weir_context_allocate_stream(context, "side", &side);
	if (!status && side)
		status = launch(side, work.side_ns, &work.ends[number][1]);
	return status ? status : weir_context_emit(context, 0, rig_number(context, (int64_t)number));
}

static struct rig *rig_for(const char *text, size_t bound, int64_t ns)
{
	struct rig *rig = rig_of(text);

	memset(&work, 0, sizeof work);
	work.bound = bound;
	work.ns = ns;
	work.launches = 1;
	rig_on(rig, "a", tick);
	return rig;
}

/* --- the bound --- */

static void hold_the_bound(size_t bound, const char *signal, int64_t side_ns)
{
	char text[100];
	struct rig *rig;

	snprintf(text, sizeof text, "a:call count=40 in_flight=%zu -> end gated=false", bound);
	rig = rig_for(text, bound, 20 * US);
	work.side_ns = side_ns;
	rig->options.signal = signal;
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_int_equal(rig_ticks(rig, "end"), 40);
	rig_destroy(rig);
}

static void hold_all_bounds(void)
{
	for (size_t bound = 1; bound <= 6; bound++)
		for (int i = 0; i < SIGNALS; i++)
			hold_the_bound(bound, signals[i], bound % 2 ? 0 : 50 * US);
}

static void t08_a_tick_begins_when_the_one_so_many_before_it_is_complete(void **state)
{
	(void)state;
	rig_everywhere(hold_all_bounds);
}

static void run_ahead(void)
{
	struct rig *rig = rig_for("a:call count=200 -> end gated=false", 64, 50 * US);

	assert_int_equal(rig_run(rig), WEIR_OK);
	/* Real threads may be as slow as the device. */
	assert_in_range(work.most, strcmp(rig_backend, "sim") ? 1 : 32, 64);
	assert_in_range(rig_counts(rig, "a").most_in_flight, work.most < 8 ? 1 : work.most / 2, 64);
	rig_destroy(rig);
}

static void xa05_t08_without_a_word_64_ticks_are_on_the_device_at_most(void **state)
{
	(void)state;
	rig_everywhere(run_ahead);
}

static void t08_without_a_bound_it_runs_ahead(void **state)
{
	struct rig *rig = rig_for("a:call count=200 -> end gated=false", 0, 10 * MS);

	(void)state;
	rig->options.max_in_flight = -1;
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_true(work.most > 150);
	assert_int_equal(rig_counts(rig, "a").most_in_flight, 0);
	rig_destroy(rig);
}

static void t08_the_entity_goes_before_the_options(void **state)
{
	struct rig *rig = rig_for("a:call count=50 in_flight=2 -> end gated=false", 2, 1 * MS);

	(void)state;
	rig->options.max_in_flight = 30;
	assert_int_equal(rig_run(rig), WEIR_OK);
	rig_destroy(rig);
	rig = rig_for("a:call count=50 -> end gated=false", 3, 1 * MS);
	rig->options.max_in_flight = 3;
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_int_equal(work.most, 3);
	rig_destroy(rig);
}

static void t08_s08_a_run_begins_with_none_in_flight(void **state)
{
	struct rig *rig = rig_for("a:call count=20 in_flight=4 -> end gated=false", 4, 1 * MS);

	(void)state;
	for (int run = 0; run < 3; run++) {
		assert_int_equal(rig_run(rig), WEIR_OK);
		assert_int_equal(rig_flight_ticks(rig, "a"), 20);
	}
	rig_destroy(rig);
}

static void t08_of_ticks_that_enqueue_much_fewer_are_in_flight(void **state)
{
	struct rig *rig = rig_for("a:call count=30 -> end gated=false", 6, 100 * US);

	(void)state;
	work.launches = 50; /* with as many fences and one at the end: 512 / 101 */
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_in_range(work.most, 2, 6);
	rig_destroy(rig);
}

static void t08_of_ticks_that_enqueue_very_much_two_are_in_flight(void **state)
{
	struct rig *rig = rig_for("a:call count=8 -> end gated=false", 2, 100 * US);

	(void)state;
	work.launches = 400; /* more than half of what may be in flight */
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_int_equal(work.most, 2);
	rig_destroy(rig);
}

static weir_status begin_with_much(struct rig *rig, weir_context *context)
{
	work.launches = weir_context_tick(context) ? 1 : 100;
	return tick(rig, context);
}

static void t08_one_large_tick_lowers_the_bound_until_it_is_complete(void **state)
{
	struct rig *rig = rig_for("a:call count=150 -> end gated=false", 64, 100 * US);

	(void)state;
	rig_on(rig, "a", begin_with_much);
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_in_range(work.most, 32, 64);
	rig_destroy(rig);
}

/* --- calls per tick --- */

static unsigned calls, flag_writes;

static weir_status count_call(void *self, int device, void *stream, void (*fn)(void *arg), void *arg)
{
	calls++;
	return wr_backend_sim.call(self, device, stream, fn, arg);
}

static weir_status count_flag(void *self, int device, void *stream, _Atomic uint32_t *word, uint32_t value)
{
	flag_writes++;
	return wr_backend_sim.write_flag(self, device, stream, word, value);
}

static void count_of(const char *signal)
{
	struct rig *rig = rig_for("a:call count=200 in_flight=40 -> end gated=false", 40, 50 * US);
	struct wr_backend *counting;

	rig->options.signal = signal;
	rig_make(rig);
	counting = rig_own_backend(rig);
	counting->call = count_call;
	counting->write_flag = count_flag;
	calls = flag_writes = 0;
	assert_int_equal(rig_run(rig), WEIR_OK);
	rig_destroy(rig);
}

static void t08_one_signal_pays_for_half_of_the_bound(void **state)
{
	(void)state;
	count_of("callback");
	assert_in_range(calls, 5, 12);
	count_of("callback_inline");
	assert_in_range(calls, 5, 12);
	count_of("flag");
	assert_in_range(flag_writes, 10, 13); /* every 20th of 200, and the signals of the run's end */
	assert_in_range(calls, 0, 2);
}

static void t08_it_never_waits_inline(void **state)
{
	struct rig *rig = rig_for("a:call count=20 in_flight=4 -> end gated=false", 4, 10 * MS);

	(void)state;
	rig->options.signal = "callback_inline";
	rig_start(rig);
	weir_scheduler_wait(rig->scheduler, 5 * MS, NULL);
	assert_int_equal(rig_outstanding(rig), 1);
	assert_int_equal(rig_armed(rig).inlined, 0);
	assert_int_equal(rig_wait(rig), WEIR_OK);
	rig_destroy(rig);
}

static void t08_c05_it_says_how_many_are_in_flight(void **state)
{
	struct rig *rig = rig_for("a:call count=20 in_flight=4 -> end gated=false", 4, 10 * MS);

	(void)state;
	rig_start(rig);
	weir_scheduler_wait(rig->scheduler, 5 * MS, NULL);
	assert_non_null(
		strstr(rig_explain(rig), "a: in_flight: WAIT_EVENT (4 of 4 ticks in flight, oldest "));
	assert_non_null(strstr(rig_explain(rig), " ms, on stream of 'a')"));
	assert_int_equal(rig_wait(rig), WEIR_OK);
	rig_destroy(rig);
}

/* --- a drain --- */

static struct rig *drain(int64_t ns, weir_status due)
{
	struct rig *rig = rig_for("a:call -> end gated=false", 64, ns);

	rig->options.drain_ns = SECOND;
	rig_start(rig);
	weir_scheduler_wait(rig->scheduler, 10 * MS, NULL);
	weir_scheduler_stop(rig->scheduler, WEIR_STOP_DRAIN);
	assert_int_equal(rig_wait(rig), due);
	return rig;
}

static void t08_s07_device_work_from_before_a_drain_is_progress(void **state)
{
	(void)state;
	rig_destroy(drain(100 * MS, WEIR_OK)); /* 64 ticks in flight */
}

static void s07_a_drain_in_which_nothing_completes_is_abandoned(void **state)
{
	struct rig *rig = drain(3 * SECOND, WEIR_E_ABANDONED);

	(void)state;
	assert_in_range(rig->outcome.duration_ns, SECOND, 2 * SECOND);
	assert_int_equal(weir_scheduler_destroy(rig->scheduler), WEIR_OK);
	assert_int_equal(weir_graph_destroy(rig->graph), WEIR_E_ABANDONED);
	weir_registry_destroy(rig->registry);
	free(rig);
}

/* --- bad input --- */

static void assert_refused(const char *pointer, const char *value)
{
	static const char text[] =
		"{\"weir\":1,\"entities\":[{\"name\":\"a\",\"operator\":\"ping\"}],\"connections\":[]}";
	weir_description *description = NULL;
	weir_graph *graph = NULL;

	assert_int_equal(weir_description_parse(text, strlen(text), NULL, NULL, &description), WEIR_OK);
	assert_int_equal(weir_description_put(description, pointer, value), WEIR_OK);
	assert_int_equal(weir_graph_create(NULL, description, &graph), WEIR_E_INVALID);
	assert_non_null(strstr(weir_last_error(), "max_in_flight"));
	assert_null(strchr(weir_last_error(), '\n'));
	weir_description_destroy(description);
}

static void t08_e06_a_bound_that_cannot_be_is_refused(void **state)
{
	struct rig *rig = rig_of("source -> end");

	(void)state;
	assert_refused("/entities/0/max_in_flight", "-1");
	assert_refused("/entities/0/max_in_flight", "65537");
	assert_refused("/entities/0/max_in_flight", "\"many\"");
	assert_refused("/scheduler/max_in_flight", "-1");
	assert_refused("/scheduler/max_in_flight", "65537");
	rig->options.max_in_flight = 65537;
	assert_int_equal(weir_scheduler_create(rig->graph, &rig->options, &rig->scheduler), WEIR_E_INVALID);
	assert_string_equal(weir_last_error(), "max_in_flight 65537: use at most 65536");
	rig->scheduler = NULL;
	rig_destroy(rig);
}

/* --- a message that comes while the bound is reached --- */

/* Its sender could review it, as nothing but the gate of the message seems to be in the way. */
static void gated_at_the_bound(void)
{
	struct rig *rig = rig_of_json(
		"{\"weir\": 1, \"entities\": [{\"name\": \"a\", \"operator\": \"spin\", \"parameters\": "
		"{\"duration\": \"1ms\"}, \"conditions\": [{\"type\": \"periodic\", \"period\": \"10ms\"}, "
		"{\"type\": \"count\", \"count\": 4}]}, {\"name\": \"p\", \"operator\": \"spin\", "
		"\"parameters\": {\"duration\": \"50ms\"}, \"max_in_flight\": 1, \"ports\": {\"in\": "
		"{\"gate\": "
		"true}}}, {\"name\": \"e\", \"operator\": \"sink\"}], \"connections\": [[\"a.out\", "
		"\"p.in\"], "
		"[\"p.out\", \"e.in\"]]}",
		(const weir_operator *[]){NULL});

	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_int_equal(rig_ticks(rig, "p"), 4);
	assert_int_equal(rig_counts(rig, "p").most_in_flight, 1);
	rig_destroy(rig);
}

static void t08_s02_a_message_that_comes_at_the_bound_waits_for_it(void **state)
{
	(void)state;
	rig_in_worlds(10, gated_at_the_bound);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(t08_a_tick_begins_when_the_one_so_many_before_it_is_complete),
		cmocka_unit_test(xa05_t08_without_a_word_64_ticks_are_on_the_device_at_most),
		cmocka_unit_test(t08_without_a_bound_it_runs_ahead),
		cmocka_unit_test(t08_the_entity_goes_before_the_options),
		cmocka_unit_test(t08_s08_a_run_begins_with_none_in_flight),
		cmocka_unit_test(t08_of_ticks_that_enqueue_much_fewer_are_in_flight),
		cmocka_unit_test(t08_of_ticks_that_enqueue_very_much_two_are_in_flight),
		cmocka_unit_test(t08_one_large_tick_lowers_the_bound_until_it_is_complete),
		cmocka_unit_test(t08_one_signal_pays_for_half_of_the_bound),
		cmocka_unit_test(t08_it_never_waits_inline),
		cmocka_unit_test(t08_s02_a_message_that_comes_at_the_bound_waits_for_it),
		cmocka_unit_test(t08_c05_it_says_how_many_are_in_flight),
		cmocka_unit_test(t08_s07_device_work_from_before_a_drain_is_progress),
		cmocka_unit_test(s07_a_drain_in_which_nothing_completes_is_abandoned),
		cmocka_unit_test(t08_e06_a_bound_that_cannot_be_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
