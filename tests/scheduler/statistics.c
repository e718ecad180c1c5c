/* The calls about statistics: what they give, on any thread, during a run; two schedulers at once. */
#include <stdio.h>
#include <string.h>

#include "base/thread.h"
#include "rig_inside.h"
#include "rig_streams.h"
#include "tests/calls.h"

#define TEST(name) static void name(void **state_)

static struct rig_times times_of(struct rig *rig, size_t i)
{
	struct rig_times times;

	assert_true(rig_times(rig->scheduler, i, &times));
	return times;
}

TEST(without_the_bit_there_are_none)
{
	struct rig *rig = rig_of("source ticks=3 -> end");
	struct rig_times times;
	struct rig_path path;
	char *text = NULL;

	(void)state_;
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_false(rig_times(rig->scheduler, 0, &times));
	assert_false(rig_path(rig->scheduler, 0, &path));
	assert_int_equal(weir_scheduler_print_statistics(rig->scheduler, &text), WEIR_E_INVALID);
	assert_says(weir_last_error(), "WEIR_OBSERVE_STATISTICS");
	assert_null(text);
	rig_destroy(rig);
}

static void count_every_tick(void)
{
	struct rig *rig = rig_observed("source ticks=40 -> a:pass -> end; source -> other:end policy=pop");
	struct rig_path path;
	size_t paths = 0;

	rig->options.workers = 3;
	assert_int_equal(rig_run(rig), WEIR_OK);
	for (size_t i = 0; i < 4; i++) {
		struct rig_times times = times_of(rig, i);
		uint64_t ticks = rig_ticks(rig, times.entity);

		assert_int_equal(times.submit.count, ticks);
		assert_int_equal(times.ready_to_compute.count, ticks);
		assert_true(times.submit.min_ns >= 0 && times.submit.max_ns < SECOND * 10);
	}
	for (; rig_path(rig->scheduler, paths, &path); paths++) {
		const char *sink = path.entities[path.entity_count - 1];

		assert_string_equal(path.entities[0], "source");
		assert_int_equal(path.count, rig_ticks(rig, sink));
		assert_int_equal(path.latency.count, path.count);
		assert_true(path.latency.min_ns >= 0);
	}
	assert_int_equal(paths, 2);
	rig_destroy(rig);
}

TEST(t16_every_tick_is_counted_once)
{
	(void)state_;
	rig_everywhere(count_every_tick);
}

TEST(t16_a_path_leads_from_an_inlet_to_an_outlet)
{
	struct rig *rig;
	struct rig_path path;
	weir_outlet *outlet;
	weir_inlet *inlet = NULL;

	(void)state_;
	rig_backend = "host";
	rig = rig_observed("p:pass -> q:pass");
	outlet = rig_outlet(rig, "q.out", 4, 0);
	assert_int_equal(weir_graph_add_inlet(rig->graph, "p.in", &inlet), WEIR_OK);
	rig_start(rig);
	for (int64_t i = 0; i < 3; i++) {
		assert_int_equal(weir_inlet_push(inlet, rig_message(rig, i), 60 * SECOND), WEIR_OK);
		assert_int_equal(rig_take(outlet, SECOND * 10), i);
	}
	weir_inlet_close(inlet);
	assert_int_equal(rig_wait(rig), WEIR_OK);
	assert_true(rig_path(rig->scheduler, 0, &path));
	assert_int_equal(path.entity_count, 4);
	assert_string_equal(path.entities[0], "inlet:p.in");
	assert_string_equal(path.entities[1], "p");
	assert_string_equal(path.entities[3], "outlet:q.out");
	assert_int_equal(path.count, 3);
	assert_false(rig_path(rig->scheduler, 1, &path));
	rig_destroy(rig);
	rig_backend = "sim";
}

/* The sink's work on the device takes 5 ms. */
static weir_status work_for_5_ms(struct rig *rig, weir_context *context)
{
	(void)rig;
	return rig_emit_sum(context, 0, current_stream(context), 0, 5 * MS);
}

static struct rig *run_with_device_sink(int gpu_time)
{
	struct rig *rig = rig_observed("source ticks=3 -> a:call");

	rig->options.gpu_time = gpu_time;
	rig_on(rig, "a", work_for_5_ms);
	assert_int_equal(rig_run(rig), WEIR_OK);
	return rig;
}

static void measure_to_the_end_of_device_work(void)
{
	struct rig *rig = run_with_device_sink(1);
	struct rig_path path;
	struct rig_times times = times_of(rig, 1);

	assert_true(rig_path(rig->scheduler, 0, &path));
	assert_int_equal(path.count, 3);
	assert_int_equal(path.latency.count, 3);
	assert_true(path.latency.min_ns >= 5 * MS);
	assert_int_equal(times.gpu_span.count, 3);
	assert_true(times.gpu_span.min_ns >= 5 * MS && times.gpu_span.max_ns < 6 * MS);
	assert_true(times.done_latency.min_ns >= 5 * MS);
	assert_int_equal(times.blocked.count, 3);
	rig_destroy(rig);
}

TEST(t16_a_path_ends_with_the_device_work_of_its_sink)
{
	(void)state_;
	rig_in_world(1, measure_to_the_end_of_device_work);
}

static void leave_out_what_is_not_measured(void)
{
	struct rig *rig = run_with_device_sink(WEIR_NONE);
	struct rig_path path;
	char *text = NULL;

	assert_true(rig_path(rig->scheduler, 0, &path));
	assert_int_equal(path.count, 3);
	assert_int_equal(path.latency.count, 0);
	assert_int_equal(weir_scheduler_print_statistics(rig->scheduler, &text), WEIR_OK);
	assert_says(text, "3 of 3 ends of paths have device work");
	weir_text_free(text);
	rig_destroy(rig);
}

TEST(t16_an_end_that_is_not_measured_is_counted)
{
	(void)state_;
	rig_in_world(1, leave_out_what_is_not_measured);
}

static void know_by_flag(void)
{
	struct rig *rig = rig_observed("a:call count=10 -> end");
	struct rig_times times;
	char *text = NULL;

	rig->options.signal = "flag";
	rig->options.gpu_time = WEIR_NONE;
	rig_on(rig, "a", work_for_5_ms);
	assert_int_equal(rig_run(rig), WEIR_OK);
	times = times_of(rig, 0);
	assert_true(times.gpu_span.count > 0 && times.gpu_span.min_ns >= 5 * MS);
	assert_int_equal(times.done_latency.count, times.gpu_span.count);
	assert_true(times.done_latency.min_ns >= 5 * MS);
	assert_string_equal(times.done_source, "flag");
	assert_int_equal(weir_scheduler_print_statistics(rig->scheduler, &text), WEIR_OK);
	assert_says(text, "\"done_source\":\"flag\"");
	weir_text_free(text);
	rig_destroy(rig);
}

TEST(t15_g04_the_source_of_device_times_is_said)
{
	(void)state_;
	rig_in_world(1, know_by_flag);
	rig_on_host(know_by_flag);
}

/* --- frames --- */

static weir_status eat(struct rig *rig, weir_context *context)
{
	(void)rig;
	(void)context;
	return WEIR_OK;
}

static weir_frames frames_of(struct rig *rig)
{
	weir_frames frames = {.size = sizeof frames};

	assert_false(weir_scheduler_frames(rig->scheduler, &frames));
	return frames;
}

/* What `end` takes in one tick, it takes as 4 messages. */
static const char beside_a_heartbeat[] =
	"source ticks=12 -> a:pass -> end capacity=4 take=4; beat:source ticks=30 -> say:end";

TEST(xb60_frames_are_messages_at_the_end_of_the_longest_way)
{
	struct rig *rig = rig_of(beside_a_heartbeat);

	(void)state_;
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_int_equal(rig_ticks(rig, "end"), 3);
	assert_string_equal(frames_of(rig).entity, "end");
	assert_int_equal(frames_of(rig).frames, 12);
	rig_destroy(rig);
}

TEST(xb60_of_equal_ways_the_one_that_brought_most)
{
	struct rig *rig = rig_of("beat:source ticks=3 -> say:end; source ticks=9 -> end; source -> also:end");

	(void)state_;
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_string_equal(frames_of(rig).entity, "end");
	assert_int_equal(frames_of(rig).frames, 9);
	rig_destroy(rig);
}

TEST(xb60_the_description_names_the_main_sink)
{
	weir_description *description;
	struct rig *rig = rig_described(beside_a_heartbeat, &description);

	(void)state_;
	assert_int_equal(weir_description_put(description, "/entities/4/main", "true"), WEIR_OK);
	assert_int_equal(weir_graph_create(rig->registry, description, &rig->graph), WEIR_OK);
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_string_equal(frames_of(rig).entity, "say");
	assert_int_equal(frames_of(rig).frames, 30);
	weir_description_destroy(description);
	rig_destroy(rig);
}

TEST(xb60_what_only_eats_or_feeds_the_program_is_no_sink)
{
	struct rig *rig = rig_of("source ticks=5 -> a:call -> end; source -> b:pass -> c:pass -> d:pass");
	weir_frames frames = {.size = sizeof frames};
	weir_outlet *outlet = rig_outlet(rig, "d.out", 8, 0);

	(void)state_;
	(void)outlet;
	rig_on(rig, "a", eat);
	rig_start(rig);
	assert_false(weir_scheduler_frames(rig->scheduler, &frames));
	assert_string_equal(frames.entity, "end");
	for (int64_t i = 0; i < 5; i++)
		assert_int_equal(rig_take(outlet, SECOND), i);
	assert_int_equal(rig_wait(rig), WEIR_OK);
	assert_int_equal(frames_of(rig).frames, 0);
	rig_destroy(rig);
}

/* --- waits that have not ended --- */

/* `end` is disabled, and the heartbeat goes on for 3 s. */
static void stand_for_3_s(void)
{
	struct rig *rig =
		rig_observed("source ticks=1 -> end enabled=false; beat:source count=4 period=1s -> say:end");
	char *text = NULL;

	rig->options.skip = 0;
	rig_start(rig);
	assert_int_equal(weir_scheduler_wait(rig->scheduler, 2500 * MS, NULL), WEIR_E_TIMEOUT);
	assert_int_equal(times_of(rig, 1).waited.count, 1);
	assert_true(times_of(rig, 1).waited.sum_ns >= 1990 * MS &&
		    times_of(rig, 1).waited.sum_ns <= 2500 * MS);
	assert_int_equal(weir_scheduler_wait(rig->scheduler, -1, NULL), WEIR_E_DEADLOCK);
	assert_int_equal(times_of(rig, 1).waited.count, 1);
	assert_true(times_of(rig, 1).waited.sum_ns >= 2990 * MS);
	assert_int_equal(weir_scheduler_print_statistics(rig->scheduler, &text), WEIR_OK);
	assert_says(text,
		    "\"cause\":\"told\",\"on\":null,\"of\":\"boolean\",\"why\":\"disabled\",\"open\":3");
	assert_says(text, "\"status\":\"deadlock\",\"cause\":\"told\",\"cause_entity\":\"end\"");
	assert_says(text, "\"text\":\"end waits: boolean: disabled");
	weir_text_free(text);
	rig_destroy(rig);
}

TEST(xb61_xb62_a_wait_that_stands_counts_until_now_and_until_the_end)
{
	(void)state_;
	rig_in_worlds(5, stand_for_3_s);
}

/* --- what an operator records --- */

static weir_status record_each_tick(struct rig *rig, weir_context *context)
{
	char text[32];

	(void)rig;
	assert_int_equal(weir_context_set_record(context, "[1]"), WEIR_E_INVALID);
	assert_int_equal(weir_context_set_record(context, "{\"a\": 1} x"), WEIR_E_INVALID);
	assert_says(weir_last_error(), "what 'a' records is no object of JSON");
	snprintf(text, sizeof text, "{\"ticks\": %d}", (int)weir_context_tick(context) + 1);
	return weir_context_set_record(context, text);
}

static weir_status wait_for_lock(struct rig *rig, weir_context *context)
{
	(void)rig;
	weir_context_count_lock(context, "the model", 2 * MS);
	return WEIR_OK;
}

static void wait_while_stopping(struct rig *rig, weir_context *context)
{
	(void)wait_for_lock(rig, context);
}

static void count_locks(void)
{
	struct rig *rig = rig_observed("source ticks=3 -> a:call");
	char *text = NULL;

	rig_on(rig, "a", wait_for_lock);
	rig_entity(rig, "a")->start = wait_for_lock;
	rig_entity(rig, "a")->stop = wait_while_stopping;
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_int_equal(weir_scheduler_print_statistics(rig->scheduler, &text), WEIR_OK);
	assert_says(text, "\"lock\":{\"name\":\"the model\",\"count\":3,\"time\":6000000}");
	weir_text_free(text);
	rig_destroy(rig);
	rig = rig_of("source ticks=3 -> a:call");
	rig_on(rig, "a", wait_for_lock);
	assert_int_equal(rig_run(rig), WEIR_OK);
	rig_destroy(rig);
}

TEST(xb62_what_ticks_wait_for_a_lock_is_counted_in_compute_alone)
{
	(void)state_;
	rig_on_host(count_locks);
}

/* --- how the run ended --- */

static weir_status find_no_film(struct rig *rig, weir_context *context)
{
	(void)rig;
	return weir_context_fail(context, "no film");
}

static void assert_recorded(struct rig *rig, const char *part)
{
	char *text = NULL;

	assert_int_equal(weir_scheduler_print_statistics(rig->scheduler, &text), WEIR_OK);
	assert_says(text, part);
	weir_text_free(text);
}

static void keep_the_last_record(void)
{
	struct rig *rig = rig_observed("source ticks=3 -> a:call -> end");
	char *text = NULL;

	rig_on(rig, "a", record_each_tick);
	rig_make(rig);
	assert_int_equal(weir_scheduler_print_statistics(rig->scheduler, &text), WEIR_OK);
	assert_null(strstr(text, "\"record\""));
	weir_text_free(text);
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_recorded(rig, "\"record\":{\"ticks\": 3}}");
	rig_destroy(rig);
}

TEST(xb62_what_an_operator_has_recorded_last_stands_there)
{
	(void)state_;
	rig_everywhere(keep_the_last_record);
}

static void end_by_failure(void)
{
	struct rig *rig = rig_observed("source ticks=3 -> a:call -> end");

	rig_on(rig, "a", find_no_film);
	rig_make(rig);
	assert_recorded(rig, "\"ending\":\"not started\",\n\"status\":null,\"cause\":\"none\"");
	assert_int_equal(rig_run(rig), WEIR_E_FAILED);
	assert_recorded(rig, "\"ending\":\"operator failed\",\n\"status\":\"operator failed\"");
	assert_recorded(rig, "\"cause_entity\":\"a\"");
	assert_recorded(rig, "no film\",\n\"stuck\":null");
	rig_destroy(rig);
}

TEST(xb62_a_run_that_failed_says_where_and_why)
{
	(void)state_;
	rig_everywhere(end_by_failure);
}

static void end_by_drain(void)
{
	struct rig *rig = rig_observed("source count=9 period=1s -> end");

	rig_start(rig);
	assert_int_equal(weir_scheduler_wait(rig->scheduler, 2500 * MS, NULL), WEIR_E_TIMEOUT);
	assert_recorded(rig, "\"ending\":\"running\",\n\"status\":null,\"cause\":\"none\"");
	weir_scheduler_stop(rig->scheduler, WEIR_STOP_DRAIN);
	assert_int_equal(rig_wait(rig), WEIR_OK);
	assert_recorded(rig, "\"ending\":\"finished\",\n\"status\":\"ok\",\"cause\":\"drain\"");
	assert_recorded(rig, "\"drained\":true,\"posix_signal\":0,\"leftover\":0,\"abandoned\":0");
	rig_destroy(rig);
}

TEST(xb62_a_run_that_was_drained_says_so)
{
	(void)state_;
	rig_in_worlds(3, end_by_drain);
}

/* --- streams --- */

/* The number of its only stream, in the text. */
static int stream_of(const char *text, const char *name)
{
	char key[40];
	const char *at;
	int number = -1;

	snprintf(key, sizeof key, "{\"name\":\"%s\",\"operator\"", name);
	at = strstr(text, key);
	at = at ? strstr(at, "\"streams\":[") : NULL;
	assert_non_null(at);
	assert_int_equal(sscanf(at, "\"streams\":[{\"stream\":%d,", &number), 1);
	return number;
}

static void share_a_stream(void)
{
	struct rig *rig = rig_observed("a:call count=3 pool=default -> b:call pool=default -> c:call -> end");
	char *text = NULL;

	rig->options.gpu_time = 1;
	rig_on(rig, "a", work_for_5_ms);
	rig_on(rig, "b", work_for_5_ms);
	rig_on(rig, "c", work_for_5_ms);
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_int_equal(weir_scheduler_print_statistics(rig->scheduler, &text), WEIR_OK);
	assert_int_equal(stream_of(text, "a"), stream_of(text, "b"));
	assert_int_not_equal(stream_of(text, "a"), stream_of(text, "c"));
	assert_says(text, "\"device\":0,\"count\":3,\"time\":15");
	weir_text_free(text);
	rig_destroy(rig);
}

TEST(xb62_entities_on_one_queue_of_the_device_name_the_same_stream)
{
	(void)state_;
	rig_in_world(1, share_a_stream);
}

struct reader {
	weir_scheduler *scheduler;
	struct wr_thread thread;
	int64_t began; /* before the run */
	_Atomic bool over, broken;
};

static void read_all(void *arg)
{
	struct reader *reader = arg;
	struct rig_times times;
	struct rig_path path;

	while (!wr_load(&reader->over)) {
		char *text = NULL;
		bool good = !weir_scheduler_print_statistics(reader->scheduler, &text) &&
			    !strncmp(text, "{\"weir_statistics\":1", 20);

		for (size_t i = 0; rig_times(reader->scheduler, i, &times); i++)
			good &= times.submit.p50_ns <= times.submit.max_ns &&
				times.waited.sum_ns <= weir_scheduler_now(reader->scheduler) - reader->began;
		for (size_t i = 0; rig_path(reader->scheduler, i, &path); i++)
			good &= path.latency.p99_ns <= path.latency.max_ns;
		weir_text_free(text);
		if (!good)
			wr_store(&reader->broken, true);
		wr_thread_yield();
	}
}

TEST(b05_xb61_two_schedulers_are_read_while_they_run)
{
	struct rig *rigs[2];
	struct reader readers[2] = {{0}};

	(void)state_;
	rig_backend = "host";
	for (size_t i = 0; i < 2; i++) {
		rigs[i] = rig_observed(
			i ? "source ticks=1500 -> end capacity=4"
			  : "source ticks=1500 -> a:pass -> b:pass capacity=2 -> end; source -> end.in");
		rig_make(rigs[i]);
		readers[i].scheduler = rigs[i]->scheduler;
		readers[i].began = weir_scheduler_now(rigs[i]->scheduler);
		assert_int_equal(wr_thread_start(&readers[i].thread, "reader", read_all, &readers[i]),
				 WEIR_OK);
	}
	for (size_t i = 0; i < 2; i++)
		rig_start(rigs[i]);
	for (size_t i = 0; i < 2; i++)
		assert_int_equal(rig_wait(rigs[i]), WEIR_OK);
	for (size_t i = 0; i < 2; i++) {
		wr_store(&readers[i].over, true);
		wr_thread_join(&readers[i].thread);
		assert_false(wr_load(&readers[i].broken));
		assert_int_equal(times_of(rigs[i], 0).submit.count, 1500);
		rig_destroy(rigs[i]);
	}
	rig_backend = "sim";
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_the_bit_there_are_none),
		cmocka_unit_test(t16_every_tick_is_counted_once),
		cmocka_unit_test(t16_a_path_leads_from_an_inlet_to_an_outlet),
		cmocka_unit_test(t16_a_path_ends_with_the_device_work_of_its_sink),
		cmocka_unit_test(t16_an_end_that_is_not_measured_is_counted),
		cmocka_unit_test(t15_g04_the_source_of_device_times_is_said),
		cmocka_unit_test(xb60_frames_are_messages_at_the_end_of_the_longest_way),
		cmocka_unit_test(xb60_of_equal_ways_the_one_that_brought_most),
		cmocka_unit_test(xb60_the_description_names_the_main_sink),
		cmocka_unit_test(xb60_what_only_eats_or_feeds_the_program_is_no_sink),
		cmocka_unit_test(xb61_xb62_a_wait_that_stands_counts_until_now_and_until_the_end),
		cmocka_unit_test(xb62_what_an_operator_has_recorded_last_stands_there),
		cmocka_unit_test(xb62_what_ticks_wait_for_a_lock_is_counted_in_compute_alone),
		cmocka_unit_test(xb62_a_run_that_failed_says_where_and_why),
		cmocka_unit_test(xb62_a_run_that_was_drained_says_so),
		cmocka_unit_test(xb62_entities_on_one_queue_of_the_device_name_the_same_stream),
		cmocka_unit_test(b05_xb61_two_schedulers_are_read_while_they_run),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
