/*
 * The files of a run: what a program's run refuses at its start and what an operator may not open; how a run
 * fails after its drain.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rig.h"

static char folder[64], one[80], two[80];

static void write_file(const char *path, const char *text)
{
	FILE *stream = fopen(path, "w");

	assert_non_null(stream);
	assert_true(fputs(text, stream) >= 0);
	assert_int_equal(fclose(stream), 0);
}

static off_t size_of(const char *path)
{
	struct stat about;

	assert_int_equal(stat(path, &about), 0);
	return about.st_size;
}

static int make_files(void **state)
{
	(void)state;
	snprintf(folder, sizeof folder, "/tmp/weir_files_XXXXXX");
	if (!mkdtemp(folder))
		return -1;
	snprintf(one, sizeof one, "%s/one", folder);
	snprintf(two, sizeof two, "%s/two", folder);
	write_file(one, "twelve bytes");
	write_file(two, "twelve bytes");
	return 0;
}

static int remove_files(void **state)
{
	(void)state;
	return unlink(one) || unlink(two) || rmdir(folder);
}

/* --- at the start --- */

/* The outcome of a run that copies records from one file to the other; its error is the last one. */
static weir_status copying(const char *from, const char *to, const weir_file *files, size_t count)
{
	const weir_scheduler_options options = {
		.size = sizeof options, .backend = "host", .files = files, .file_count = count};
	weir_description *description = NULL;
	weir_scheduler *scheduler = NULL;
	weir_graph *graph = NULL;
	weir_status status;
	char text[640];
	int length = snprintf(
		text, sizeof text,
		"{\"weir\": 1, \"entities\": [{\"name\": \"r\", \"operator\": \"frames_read\", "
		"\"parameters\": "
		"{\"path\": \"%s\", \"bytes\": 4}}, {\"name\": \"w\", \"operator\": \"frames_write\", "
		"\"parameters\": {\"path\": \"%s\"}}], \"connections\": [[\"r.out\", \"w.in\"]]}",
		from, to);

	assert_int_equal(weir_description_parse(text, (size_t)length, NULL, NULL, &description), WEIR_OK);
	assert_int_equal(weir_graph_create(NULL, description, &graph), WEIR_OK);
	weir_description_destroy(description);
	assert_int_equal(weir_scheduler_create(graph, &options, &scheduler), WEIR_OK);
	status = weir_scheduler_run(scheduler);
	assert_int_equal(weir_scheduler_destroy(scheduler), WEIR_OK);
	assert_int_equal(weir_graph_destroy(graph), WEIR_OK);
	return status;
}

static void e07_f96_a_program_s_run_does_not_write_what_it_reads(void **state)
{
	(void)state;
	assert_int_equal(copying(one, one, NULL, 0), WEIR_E_INVALID);
	assert_says(weir_last_error(), "/entities/1/parameters/path: ");
	assert_says(weir_last_error(), "is also read by 'r' (/entities/0/parameters/path): name another one");
	assert_int_equal(size_of(one), 12);
}

static void f96_nor_what_the_program_says_that_it_reads_or_writes(void **state)
{
	const weir_file files[] = {{sizeof(weir_file), "the log", two, true}};

	(void)state;
	assert_int_equal(copying(one, two, files, 1), WEIR_E_INVALID);
	assert_says(weir_last_error(), "the log: ");
	assert_says(weir_last_error(), "is also written by 'w' (/entities/1/parameters/path)");
	assert_int_equal(copying(two, "/dev/null", files, 1), WEIR_E_INVALID);
	assert_int_equal(size_of(two), 12);
	assert_int_equal(copying(one, "/dev/null", files, 1), WEIR_OK);
}

static void f96_nor_what_its_standard_output_is(void **state)
{
	const weir_file files[] = {{sizeof(weir_file), "the log", "-", 1}};
	int kept = dup(STDOUT_FILENO), fd = open(two, O_WRONLY);
	weir_status status;

	(void)state;
	fflush(stdout);
	dup2(fd, STDOUT_FILENO);
	status = copying(one, two, files, 1);
	fflush(stdout);
	dup2(kept, STDOUT_FILENO);
	close(kept);
	close(fd);
	assert_int_equal(status, WEIR_E_INVALID);
	assert_says(weir_last_error(), "the log: standard output is the same as '");
	assert_says(weir_last_error(), "which is written by 'w' (/entities/1/parameters/path)");
	assert_int_equal(size_of(two), 12);
}

static void f96_a_file_of_the_program_needs_its_size(void **state)
{
	const weir_file files[] = {{.name = "the log", .path = two, .write = true}};

	(void)state;
	assert_int_equal(copying(one, "/dev/null", files, 1), WEIR_E_INVALID);
	assert_says(weir_last_error(), "set .size = sizeof(weir_file)");
}

static void f99_a_descriptor_that_is_close_on_exec_is_no_graph_s(void **state)
{
	int fd = open(one, O_RDONLY | O_CLOEXEC);
	char text[300];
	weir_graph *graph = NULL;
	weir_description *description = NULL;
	weir_scheduler *scheduler = NULL;
	int length = snprintf(text, sizeof text,
			      "{\"weir\": 1, \"entities\": [{\"name\": \"r\", \"operator\": \"frames_read\", "
			      "\"parameters\": {\"descriptor\": %d, \"bytes\": 4}}, {\"name\": \"e\", "
			      "\"operator\": \"sink\"}], \"connections\": [[\"r.out\", \"e.in\"]]}",
			      fd);

	(void)state;
	assert_int_equal(weir_description_parse(text, (size_t)length, NULL, NULL, &description), WEIR_OK);
	assert_int_equal(weir_graph_create(NULL, description, &graph), WEIR_OK);
	assert_int_equal(weir_scheduler_create(graph, NULL, &scheduler), WEIR_OK);
	assert_int_equal(weir_scheduler_run(scheduler), WEIR_E_INVALID);
	assert_says(weir_last_error(), "/entities/0/parameters/descriptor: descriptor ");
	assert_says(weir_last_error(), "close-on-exec");
	assert_int_equal(fcntl(fd, F_SETFD, 0), 0); /* the program hands it over */
	assert_int_equal(weir_scheduler_run(scheduler), WEIR_OK);
	assert_int_equal(weir_scheduler_destroy(scheduler), WEIR_OK);
	assert_int_equal(weir_graph_destroy(graph), WEIR_OK);
	weir_description_destroy(description);
	close(fd);
}

/* --- what operators open --- */

static int flags_of[2], opened[2], error_of; /* of a and b */
static char text_of[300];

static void open_one(struct rig *rig, weir_context *context)
{
	int i = !strcmp(weir_entity_name(weir_context_entity(context)), "b");

	(void)rig;
	opened[i] = -1;
	if (!weir_context_open(context, one, flags_of[i], 0666, &opened[i]))
		return;
	error_of = errno;
	snprintf(text_of, sizeof text_of, "%s", weir_last_error());
}

static weir_status open_at_start(struct rig *rig, weir_context *context)
{
	open_one(rig, context);
	return WEIR_OK;
}

static weir_status open_in_compute(struct rig *rig, weir_context *context)
{
	open_one(rig, context);
	return weir_context_finish(context);
}

static weir_status finish(struct rig *rig, weir_context *context)
{
	(void)rig;
	return weir_context_finish(context);
}

/* Returns 0, or the errno of the open that b was refused. */
static int opening(int first, int second, rig_fn *compute)
{
	struct rig *rig = rig_of("a:call; b:call");

	flags_of[0] = first;
	flags_of[1] = second;
	error_of = 0;
	opened[0] = opened[1] = -1;
	rig_entity(rig, "a")->start = open_at_start;
	rig_entity(rig, "b")->start = compute ? NULL : open_at_start;
	rig_on(rig, "a", finish);
	rig_on(rig, "b", compute ? compute : finish);
	assert_int_equal(rig_run(rig), WEIR_OK);
	rig_destroy(rig);
	assert_true(opened[0] >= 0);
	close(opened[0]);
	if (opened[1] >= 0)
		close(opened[1]);
	return error_of;
}

static void f96_an_operator_cannot_empty_what_another_reads(void **state)
{
	(void)state;
	assert_int_equal(opening(O_RDONLY, O_WRONLY | O_TRUNC, NULL), EBUSY);
	assert_says(text_of, "/one' is also read by 'a': name another one");
	assert_int_equal(opening(O_RDONLY, O_WRONLY | O_CREAT | O_TRUNC, open_in_compute), EBUSY);
	assert_int_equal(opening(O_WRONLY, O_RDONLY, open_in_compute), EBUSY);
	assert_says(text_of, "is also written by 'a'");
	assert_int_equal(opening(O_WRONLY, O_RDWR, NULL), EBUSY);
	assert_int_equal(size_of(one), 12);
}

static void f96_readers_stand_beside_readers_and_appenders_beside_appenders(void **state)
{
	(void)state;
	assert_int_equal(opening(O_RDONLY, O_RDONLY, NULL), 0);
	assert_int_equal(opening(O_WRONLY | O_APPEND, O_WRONLY | O_APPEND, NULL), 0);
	assert_int_equal(opening(O_WRONLY | O_APPEND, O_WRONLY, NULL), EBUSY);
	assert_int_equal(opening(O_RDONLY | O_PATH, O_WRONLY, NULL), 0);
}

static void f97_what_an_operator_may_write_it_may_empty(void **state)
{
	struct rig *rig = rig_of("a:call");

	(void)state;
	flags_of[0] = O_WRONLY | O_TRUNC;
	rig_on(rig, "a", open_in_compute);
	assert_int_equal(rig_run(rig), WEIR_OK);
	rig_destroy(rig);
	close(opened[0]);
	assert_int_equal(size_of(one), 0);
	write_file(one, "twelve bytes");
}

static weir_status open_device(struct rig *rig, weir_context *context)
{
	int fd = -1;

	HOLDS(rig, !weir_context_open(context, "/dev/null", O_WRONLY | O_TRUNC, 0, &fd));
	close(fd);
	return weir_context_finish(context);
}

static void f97_what_is_no_file_is_opened_and_not_emptied(void **state)
{
	struct rig *rig = rig_of("a:call");

	(void)state;
	rig_on(rig, "a", open_device);
	assert_int_equal(rig_run(rig), WEIR_OK);
	rig_destroy(rig);
}

/* --- a failure after the drain --- */

static weir_status emit_then_fail(struct rig *rig, weir_context *context)
{
	weir_status status =
		weir_context_emit(context, 0, rig_number(context, (int64_t)weir_context_tick(context)));

	(void)rig;
	if (status || weir_context_tick(context) < 3)
		return status;
	return weir_context_fail_after_drain(context, WEIR_E_IO, "frame %d is broken", 4);
}

static bool seen_stopping;
static char seen_failure[100]; /* "": none */

static void look_at_stop(struct rig *rig, weir_context *context)
{
	const char *failure = weir_context_failure(context);

	(void)rig;
	seen_stopping = weir_context_stopping(context);
	snprintf(seen_failure, sizeof seen_failure, "%s", failure ? failure : "");
}

static void fails_after_the_drain(void)
{
	struct rig *rig =
		rig_of("a:call -> b:pass capacity=4 -> end capacity=4; source work=1ms -> other:end");

	rig_on(rig, "a", emit_then_fail);
	assert_int_equal(rig_run(rig), WEIR_E_IO);
	assert_string_equal(rig_text(rig, "end"), "0 1 2 3");
	assert_string_equal(rig->outcome.text, "frame 4 is broken");
	assert_string_equal(rig->outcome.entity, "a");
	assert_int_equal(rig->outcome.abandoned, 0);
	assert_int_equal(rig_ticks(rig, "a"), 4);
	rig_destroy(rig);
}

static void f98_a_failure_after_the_drain_loses_nothing(void **state)
{
	(void)state;
	rig_everywhere(fails_after_the_drain);
}

static weir_status fail_at_once(struct rig *rig, weir_context *context)
{
	(void)rig;
	return weir_context_fail(context, "cannot go on");
}

static void f98_the_first_failure_is_kept(void **state)
{
	struct rig *rig = rig_of("a:call -> b:call");

	(void)state;
	rig_on(rig, "a", emit_then_fail);
	rig_on(rig, "b", fail_at_once);
	assert_int_equal(rig_run(rig), WEIR_E_FAILED);
	assert_string_equal(rig->outcome.entity, "b");
	rig_destroy(rig);
}

static weir_status misuse(struct rig *rig, weir_context *context)
{
	HOLDS(rig, weir_context_fail_after_drain(context, WEIR_OK, "no") == WEIR_E_INVALID);
	return weir_context_finish(context);
}

static weir_status misuse_at_start(struct rig *rig, weir_context *context)
{
	HOLDS(rig, weir_context_fail_after_drain(context, WEIR_E_IO, "no") == WEIR_E_INVALID);
	return WEIR_OK;
}

static void f98_it_needs_a_compute_and_a_failure(void **state)
{
	struct rig *rig = rig_of("a:call");

	(void)state;
	rig_on(rig, "a", misuse);
	rig_entity(rig, "a")->start = misuse_at_start;
	assert_int_equal(rig_run(rig), WEIR_OK);
	rig_destroy(rig);
}

/* --- what stop knows of the end --- */

static bool stopping_after(const char *text, rig_fn *compute, weir_status wanted)
{
	struct rig *rig = rig_of(text);

	rig_on(rig, "a", compute);
	rig_entity(rig, "a")->stop = look_at_stop;
	assert_int_equal(rig_run(rig), wanted);
	rig_destroy(rig);
	return seen_stopping;
}

static weir_status drain(struct rig *rig, weir_context *context)
{
	(void)rig;
	weir_context_drain(context, NULL);
	return WEIR_OK;
}

static void f97_stop_knows_whether_the_run_came_to_its_end(void **state)
{
	(void)state;
	assert_false(stopping_after("a:call", finish, WEIR_OK));
	assert_true(stopping_after("a:call", drain, WEIR_OK));
	assert_true(stopping_after("a:call", fail_at_once, WEIR_E_FAILED));
	assert_true(stopping_after("a:call; source ticks=1 -> end enabled=false", finish, WEIR_E_DEADLOCK));
}

static weir_status fail_later(struct rig *rig, weir_context *context)
{
	HOLDS(rig, !weir_context_failure(context)); /* it is no stop */
	return weir_context_fail(context, "cannot go on");
}

static void f97_stop_knows_why_the_run_has_failed(void **state)
{
	(void)state;
	stopping_after("a:call", fail_later, WEIR_E_FAILED);
	assert_string_equal(seen_failure, "a: cannot go on");
	stopping_after("a:call", finish, WEIR_OK);
	assert_string_equal(seen_failure, "");
	stopping_after("a:call", drain, WEIR_OK);
	assert_string_equal(seen_failure, "");
	stopping_after("a:call; source ticks=1 -> end enabled=false", finish, WEIR_E_DEADLOCK);
	assert_non_null(strstr(seen_failure, "end"));
}

static weir_status refuse_start(struct rig *rig, weir_context *context)
{
	(void)rig;
	return weir_context_fail(context, "not today");
}

static void f97_stop_knows_of_a_start_that_failed(void **state)
{
	struct rig *rig = rig_of("a:call; b:call");

	(void)state;
	seen_stopping = false;
	rig_entity(rig, "a")->stop = look_at_stop;
	rig_entity(rig, "b")->start = refuse_start;
	rig_make(rig);
	rig_here(rig);
	assert_int_equal(weir_scheduler_start(rig->scheduler), WEIR_E_FAILED);
	assert_true(seen_stopping);
	assert_string_equal(seen_failure, "b: not today");
	rig_destroy(rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(e07_f96_a_program_s_run_does_not_write_what_it_reads),
		cmocka_unit_test(f96_nor_what_the_program_says_that_it_reads_or_writes),
		cmocka_unit_test(f96_nor_what_its_standard_output_is),
		cmocka_unit_test(f96_a_file_of_the_program_needs_its_size),
		cmocka_unit_test(f99_a_descriptor_that_is_close_on_exec_is_no_graph_s),
		cmocka_unit_test(f96_an_operator_cannot_empty_what_another_reads),
		cmocka_unit_test(f96_readers_stand_beside_readers_and_appenders_beside_appenders),
		cmocka_unit_test(f97_what_an_operator_may_write_it_may_empty),
		cmocka_unit_test(f97_what_is_no_file_is_opened_and_not_emptied),
		cmocka_unit_test(f98_a_failure_after_the_drain_loses_nothing),
		cmocka_unit_test(f98_the_first_failure_is_kept),
		cmocka_unit_test(f98_it_needs_a_compute_and_a_failure),
		cmocka_unit_test(f97_stop_knows_whether_the_run_came_to_its_end),
		cmocka_unit_test(f97_stop_knows_why_the_run_has_failed),
		cmocka_unit_test(f97_stop_knows_of_a_start_that_failed),
	};

	return cmocka_run_group_tests(tests, make_files, remove_files);
}
