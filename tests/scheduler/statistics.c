/* The calls about statistics: what they give, on any thread, during a run; two schedulers at once. */
#include <string.h>

#include "base/thread.h"
#include "rig_streams.h"

#define TEST(name) static void name(void **state_)

static weir_entity_times times_of(struct rig *rig, size_t i)
{
	weir_entity_times times = {.size = sizeof times};

	assert_true(weir_scheduler_entity_times(rig->scheduler, i, &times));
	return times;
}

TEST(without_the_bit_there_are_none)
{
	struct rig *rig = rig_of("source ticks=3 -> end");
	weir_entity_times times = {.size = sizeof times};
	weir_path_latency path = {.size = sizeof path};
	char *text = NULL;

	(void)state_;
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_false(weir_scheduler_entity_times(rig->scheduler, 0, &times));
	assert_false(weir_scheduler_path_latency(rig->scheduler, 0, &path));
	assert_int_equal(weir_scheduler_print_statistics(rig->scheduler, &text), WEIR_E_INVALID);
	assert_says(weir_last_error(), "WEIR_OBSERVE_STATISTICS");
	assert_null(text);
	rig_destroy(rig);
}

static void count_every_tick(void)
{
	struct rig *rig = rig_observed("source ticks=40 -> a:pass -> end; source -> other:end policy=pop");
	weir_path_latency path = {.size = sizeof path};
	size_t paths = 0;

	rig->options.workers = 3;
	assert_int_equal(rig_run(rig), WEIR_OK);
	for (size_t i = 0; i < 4; i++) {
		weir_entity_times times = times_of(rig, i);
		uint64_t ticks = rig_ticks(rig, times.entity);

		assert_int_equal(times.submit.count, ticks);
		assert_int_equal(times.ready_to_compute.count, ticks);
		assert_true(times.submit.min_ns >= 0 && times.submit.max_ns < SECOND * 10);
	}
	for (; weir_scheduler_path_latency(rig->scheduler, paths, &path); paths++) {
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
	weir_path_latency path = {.size = sizeof path};
	weir_outlet *outlet;
	weir_inlet *inlet = NULL;

	(void)state_;
	rig_backend = "host";
	rig = rig_observed("p:pass -> q:pass");
	outlet = rig_outlet(rig, "q.out", 4, 0);
	assert_int_equal(weir_graph_add_inlet(rig->graph, "p.in", &inlet), WEIR_OK);
	rig_start(rig);
	for (int64_t i = 0; i < 3; i++) {
		assert_int_equal(weir_inlet_push(inlet, rig_message(rig, i), SECOND), WEIR_OK);
		assert_int_equal(rig_take(outlet, SECOND * 10), i);
	}
	weir_inlet_close(inlet);
	assert_int_equal(rig_wait(rig), WEIR_OK);
	assert_true(weir_scheduler_path_latency(rig->scheduler, 0, &path));
	assert_int_equal(path.entity_count, 4);
	assert_string_equal(path.entities[0], "inlet:p.in");
	assert_string_equal(path.entities[1], "p");
	assert_string_equal(path.entities[3], "outlet:q.out");
	assert_int_equal(path.count, 3);
	assert_false(weir_scheduler_path_latency(rig->scheduler, 1, &path));
	rig_destroy(rig);
	rig_backend = "sim";
}

/* The sink's work on the device takes 5 ms. */
static weir_status work_for_5_ms(struct rig *rig, weir_context *context)
{
	(void)rig;
	return rig_emit_sum(context, 0, weir_context_stream(context), 0, 5 * MS);
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
	struct rig *rig = run_with_device_sink(WEIR_GPU_TIME_ALL);
	weir_path_latency path = {.size = sizeof path};
	weir_entity_times times = times_of(rig, 1);

	assert_true(weir_scheduler_path_latency(rig->scheduler, 0, &path));
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
	struct rig *rig = run_with_device_sink(WEIR_GPU_TIME_OFF);
	weir_path_latency path = {.size = sizeof path};
	char *text = NULL;

	assert_true(weir_scheduler_path_latency(rig->scheduler, 0, &path));
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
	weir_entity_times times;
	char *text = NULL;

	rig->options.signal = "flag";
	rig->options.gpu_time = WEIR_GPU_TIME_OFF;
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

struct reader {
	weir_scheduler *scheduler;
	struct wr_thread thread;
	_Atomic bool over, broken;
};

static void read_all(void *arg)
{
	struct reader *reader = arg;
	weir_entity_times times = {.size = sizeof times};
	weir_path_latency path = {.size = sizeof path};

	while (!wr_load(&reader->over)) {
		char *text = NULL;
		bool good = !weir_scheduler_print_statistics(reader->scheduler, &text) &&
			    !strncmp(text, "{\"weir_statistics\":1", 20);

		for (size_t i = 0; weir_scheduler_entity_times(reader->scheduler, i, &times); i++)
			good &= times.submit.p50_ns <= times.submit.max_ns;
		for (size_t i = 0; weir_scheduler_path_latency(reader->scheduler, i, &path); i++)
			good &= path.latency.p99_ns <= path.latency.max_ns;
		weir_text_free(text);
		if (!good)
			wr_store(&reader->broken, true);
		wr_thread_yield();
	}
}

TEST(b05_two_schedulers_are_read_while_they_run)
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
		cmocka_unit_test(b05_two_schedulers_are_read_while_they_run),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
