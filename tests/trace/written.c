/* weir_scheduler_write_trace: when it may be called, and what is in the file. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "test.h"
#include "weir.h"

#define SOURCE(name, count)                                                                                  \
	"{\"name\": \"" name                                                                                 \
	"\", \"operator\": \"ping\", \"conditions\": [{\"type\": \"count\", \"count\": " count "}]}"
static const char two[] = "{\"weir\": 1, \"scheduler\": {\"workers\": 2}, \"entities\": [" SOURCE(
	"source", "20") ", {\"name\": \"end\", \"operator\": \"sink\"}], \"connections\": [[\"source.out\", "
			"\"end.in\"]]}";
static const char fed[] =
	"{\"weir\": 1, \"scheduler\": {\"workers\": 1}, \"entities\": [{\"name\": \"pass\", \"operator\": "
	"\"delay\", \"parameters\": {\"duration\": \"1us\"}}], \"connections\": []}";

struct run {
	weir_description *description;
	weir_graph *graph;
	weir_scheduler *scheduler;
	char path[40];
	char text[1 << 16];
};

static void make(struct run *run, const char *json, unsigned observe)
{
	const weir_scheduler_options options = {
		.size = sizeof options, .backend = "host", .observe = observe, .trace_events = 4096};
	int fd;

	memset(run, 0, sizeof *run);
	strcpy(run->path, "/tmp/weir-trace-XXXXXX");
	fd = mkstemp(run->path);
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(weir_description_parse(json, strlen(json), NULL, NULL, &run->description), WEIR_OK);
	assert_int_equal(weir_graph_create(NULL, run->description, &run->graph), WEIR_OK);
	if (json == two)
		assert_int_equal(weir_scheduler_create(run->graph, &options, &run->scheduler), WEIR_OK);
}

static void destroy(struct run *run)
{
	weir_scheduler_destroy(run->scheduler);
	weir_graph_destroy(run->graph);
	weir_description_destroy(run->description);
	unlink(run->path);
}

static void write_and_read(struct run *run)
{
	FILE *file;

	assert_int_equal(weir_scheduler_write_trace(run->scheduler, run->path, NULL), WEIR_OK);
	file = fopen(run->path, "r");
	assert_non_null(file);
	run->text[fread(run->text, 1, sizeof run->text - 1, file)] = '\0';
	fclose(file);
	assert_string_equal(run->text + strlen(run->text) - 4, "\n]}\n");
}

static size_t count_of(const struct run *run, const char *part)
{
	size_t count = 0;

	for (const char *at = run->text; (at = strstr(at, part)); at++)
		count++;
	return count;
}

static size_t ticks_of(const struct run *run, const char *entity)
{
	char part[80];

	snprintf(part, sizeof part, "\"name\":\"%s\",\"args\":{\"tick\":", entity);
	return count_of(run, part);
}

static void before_the_first_run_the_file_has_no_events(void **state)
{
	struct run run;

	(void)state;
	make(&run, two, WEIR_OBSERVE_TRACE);
	write_and_read(&run);
	assert_int_equal(count_of(&run, "\"ph\":\"B\""), 0);
	destroy(&run);
}

static void the_last_run_is_written_and_as_often_as_it_is_asked_for(void **state)
{
	struct run run;

	(void)state;
	make(&run, two, WEIR_OBSERVE_TRACE);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(weir_scheduler_run(run.scheduler), WEIR_OK);
		for (int k = 0; k < 2; k++) {
			write_and_read(&run);
			assert_int_equal(ticks_of(&run, "source"), 20);
			assert_int_equal(ticks_of(&run, "end"), 20);
		}
	}
	destroy(&run);
}

static void without_the_option_there_is_no_trace(void **state)
{
	struct run run;
	uint64_t dropped = 7;

	(void)state;
	make(&run, two, WEIR_OBSERVE_STATISTICS);
	assert_int_equal(weir_scheduler_run(run.scheduler), WEIR_OK);
	assert_int_equal(weir_scheduler_write_trace(run.scheduler, run.path, &dropped), WEIR_E_INVALID);
	assert_non_null(strstr(weir_last_error(), "WEIR_OBSERVE_TRACE"));
	assert_int_equal(dropped, 7);
	destroy(&run);
}

static void too_many_records_are_refused(void **state)
{
	const weir_scheduler_options options = {.size = sizeof options,
						.backend = "host",
						.observe = WEIR_OBSERVE_TRACE,
						.trace_events = ((size_t)1 << 28) + 1};
	struct run run;

	(void)state;
	make(&run, fed, 0);
	assert_int_equal(weir_scheduler_create(run.graph, &options, &run.scheduler), WEIR_E_INVALID);
	assert_non_null(strstr(weir_last_error(), "trace_events 268435457: use at most 268435456"));
	destroy(&run);
}

/* A program pushes and takes; while the run is on nothing is written. */
static void what_a_program_pushes_and_takes_has_arrows(void **state)
{
	const weir_scheduler_options options = {.size = sizeof options,
						.backend = "host",
						.observe = WEIR_OBSERVE_TRACE,
						.trace_events = 4096};
	weir_inlet *inlet = NULL;
	weir_outlet *outlet = NULL;
	weir_message *message = NULL;
	struct run run;

	(void)state;
	make(&run, fed, 0);
	assert_int_equal(weir_graph_add_inlet(run.graph, "pass.in", &inlet), WEIR_OK);
	assert_int_equal(weir_graph_add_outlet(run.graph, "pass.out", 4, 0, &outlet), WEIR_OK);
	assert_int_equal(weir_scheduler_create(run.graph, &options, &run.scheduler), WEIR_OK);
	assert_int_equal(weir_scheduler_start(run.scheduler), WEIR_OK);
	assert_int_equal(weir_scheduler_write_trace(run.scheduler, run.path, NULL), WEIR_E_STATE);
	assert_int_equal(weir_message_create_empty(run.graph, &message), WEIR_OK);
	assert_int_equal(weir_inlet_push(inlet, message, -1), WEIR_OK);
	message = NULL;
	assert_int_equal(weir_outlet_take(outlet, -1, &message), WEIR_OK);
	weir_message_unref(message);
	weir_inlet_close(inlet);
	assert_int_equal(weir_scheduler_wait(run.scheduler, -1, NULL), WEIR_OK);
	write_and_read(&run);
	assert_int_equal(count_of(&run, ",\"name\":\"push\"}"), 1);
	assert_int_equal(count_of(&run, ",\"name\":\"take\"}"), 1);
	assert_int_equal(count_of(&run, "\"ph\":\"s\""), 2);
	assert_int_equal(count_of(&run, "\"ph\":\"f\""), 2);
	destroy(&run);
}

static off_t size_of(const struct run *run)
{
	struct stat about;

	return stat(run->path, &about) ? -1 : about.st_size;
}

/* old: the size of the file that is there, -1: none. */
static void assert_stays_without_memory(off_t old)
{
	weir_status status = WEIR_E_NOMEM;
	struct run run;

	make(&run, two, WEIR_OBSERVE_TRACE); /* makes an empty file */
	if (old < 0)
		unlink(run.path);
	assert_int_equal(weir_scheduler_run(run.scheduler), WEIR_OK);
	for (int64_t n = 0; status == WEIR_E_NOMEM; n++) {
		wr_memory_fail_at(n, false);
		status = weir_scheduler_write_trace(run.scheduler, run.path, NULL);
		wr_memory_fail_at(-1, false);
		assert_true(status ? size_of(&run) == old : size_of(&run) > 0);
	}
	assert_int_equal(status, WEIR_OK);
	write_and_read(&run);
	assert_int_equal(ticks_of(&run, "end"), 20);
	destroy(&run);
}

static void f40_if_memory_runs_out_the_old_file_stays_or_none_is_left(void **state)
{
	(void)state;
	assert_stays_without_memory(-1);
	assert_stays_without_memory(0);
}

static void write_at_the_end(weir_scheduler *scheduler, void *arg)
{
	*(weir_status *)arg = weir_scheduler_write_trace(scheduler, "/dev/null", NULL);
}

static void inside_ended_nothing_is_written(void **state)
{
	weir_status status = WEIR_OK;
	const weir_scheduler_options options = {.size = sizeof options,
						.backend = "host",
						.observe = WEIR_OBSERVE_TRACE,
						.ended = write_at_the_end,
						.ended_arg = &status};
	struct run run;

	(void)state;
	make(&run, two, WEIR_OBSERVE_TRACE);
	weir_scheduler_destroy(run.scheduler);
	assert_int_equal(weir_scheduler_create(run.graph, &options, &run.scheduler), WEIR_OK);
	assert_int_equal(weir_scheduler_run(run.scheduler), WEIR_OK);
	weir_scheduler_destroy(run.scheduler); /* waits for `ended` */
	run.scheduler = NULL;
	assert_int_equal(status, WEIR_E_STATE);
	destroy(&run);
}

static void *run_one(void *arg)
{
	struct run *run = arg;

	for (int i = 0; i < 5; i++)
		if (weir_scheduler_run(run->scheduler))
			return run;
	return weir_scheduler_write_trace(run->scheduler, run->path, NULL) ? run : NULL;
}

static void two_schedulers_at_once_write_two_files(void **state)
{
	static struct run runs[2];
	pthread_t threads[2];

	(void)state;
	for (int i = 0; i < 2; i++) {
		make(&runs[i], two, WEIR_OBSERVE_TRACE);
		assert_int_equal(pthread_create(&threads[i], NULL, run_one, &runs[i]), 0);
	}
	for (int i = 0; i < 2; i++) {
		void *failed;

		pthread_join(threads[i], &failed);
		assert_null(failed);
		write_and_read(&runs[i]);
		assert_int_equal(ticks_of(&runs[i], "source"), 20);
		assert_int_equal(count_of(&runs[i], "\"ph\":\"s\""), 20);
		destroy(&runs[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(before_the_first_run_the_file_has_no_events),
		cmocka_unit_test(the_last_run_is_written_and_as_often_as_it_is_asked_for),
		cmocka_unit_test(without_the_option_there_is_no_trace),
		cmocka_unit_test(too_many_records_are_refused),
		cmocka_unit_test(what_a_program_pushes_and_takes_has_arrows),
		cmocka_unit_test(f40_if_memory_runs_out_the_old_file_stays_or_none_is_left),
		cmocka_unit_test(inside_ended_nothing_is_written),
		cmocka_unit_test(two_schedulers_at_once_write_two_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
