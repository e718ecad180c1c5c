/*
 * The line about a descriptor that stalls (C9, `warn_after`). `z` reads what is there; nothing
 * comes for longer than it may wait without a line.
 */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "rig.h"

#define TEST(name) static void name(void **state_)

static int ends[2];         /* of the pipe: z reads from the first */
static bool computing, met; /* met: the text was asked for while z computed */
static int asked;           /* for the text */
static int came;            /* bytes */
static char said[4096];
static pthread_mutex_t said_lock = PTHREAD_MUTEX_INITIALIZER;

static void note_line(weir_log_level level, int64_t at, const char *line, void *arg)
{
	(void)at;
	(void)arg;
	pthread_mutex_lock(&said_lock);
	if (level == WEIR_LOG_WARN)
		snprintf(said + strlen(said), sizeof said - strlen(said), "%s\n", line);
	pthread_mutex_unlock(&said_lock);
}

static bool was_said(const char *part)
{
	bool found;

	pthread_mutex_lock(&said_lock);
	found = strstr(said, part);
	pthread_mutex_unlock(&said_lock);
	return found;
}

static void write_progress(size_t room, char *out)
{
	met |= computing;
	asked++;
	snprintf(out, room, "%d bytes came", came);
}

static weir_status watch_pipe(struct rig *rig, weir_context *context)
{
	(void)rig;
	return weir_entity_watch(weir_context_entity(context), "file_descriptor", ends[0], WEIR_WATCH_READ);
}

static weir_status read_bytes(struct rig *rig, weir_context *context)
{
	char bytes[16];
	ssize_t count;

	computing = true;
	count = read(ends[0], bytes, sizeof bytes);
	HOLDS(rig, count >= 0);
	came += count > 0 ? (int)count : 0;
	computing = false;
	return count ? WEIR_OK : weir_context_finish(context);
}

static struct rig *rig_reading(const char *graph)
{
	struct rig *rig = rig_of(graph);

	said[0] = 0;
	came = asked = 0;
	met = false;
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(weir_log_set(note_line, NULL), WEIR_OK);
	rig_on(rig, "z", read_bytes);
	rig_entity(rig, "z")->start = watch_pipe;
	rig_entity(rig, "z")->progress = write_progress;
	return rig;
}

static void pass(struct rig *rig, int64_t time)
{
	assert_int_equal(weir_scheduler_wait(rig->scheduler, time, NULL), WEIR_E_TIMEOUT);
}

static void put(const char *bytes)
{
	assert_int_equal(write(ends[1], bytes, strlen(bytes)), (ssize_t)strlen(bytes));
}

static void end_run(struct rig *rig)
{
	close(ends[1]);
	assert_int_equal(rig_wait(rig), WEIR_OK);
	assert_int_equal(weir_log_set(NULL, NULL), WEIR_OK);
	assert_false(met);
	rig_destroy(rig);
	close(ends[0]);
}

/* The descriptor's number, as it stands in the lines. */
static const char *line(const char *format)
{
	static char text[256];

	snprintf(text, sizeof text, format, ends[0]);
	return text;
}

static void stall_twice(void)
{
	struct rig *rig = rig_reading("z:call descriptor=10s");

	rig_start(rig);
	put("abc");
	pass(rig, 9 * SECOND);
	assert_string_equal(said, "");
	pass(rig, 60 * SECOND);
	assert_string_equal(said, line("z: has waited 10 s for descriptor %d (readable): 3 bytes came\n"));
	said[0] = 0;
	put("de");
	pass(rig, 5 * SECOND);
	assert_string_equal(said, line("z: goes on: has waited 69 s for descriptor %d (readable)\n"));
	said[0] = 0;
	pass(rig, 6 * SECOND);
	assert_string_equal(said, line("z: has waited 10 s for descriptor %d (readable): 5 bytes came\n"));
	assert_int_equal(rig_ticks(rig, "z"), 2); /* no tick because of a line */
	end_run(rig);
}

TEST(c09_a_stall_is_one_line_and_one_when_it_goes_on)
{
	(void)state_;
	rig_in_worlds(20, stall_twice);
}

static void stall_without_text(void)
{
	struct rig *rig = rig_reading("z:call descriptor=10s");

	rig_entity(rig, "z")->progress = NULL;
	rig_start(rig);
	pass(rig, 60 * SECOND);
	assert_string_equal(said, line("z: has waited 10 s for descriptor %d (readable)\n"));
	end_run(rig);
}

/* Nothing listens to the log. */
static void stall_unheard(void)
{
	struct rig *rig = rig_reading("z:call descriptor=10s");

	assert_int_equal(weir_log_set(NULL, NULL), WEIR_OK);
	rig_start(rig);
	pass(rig, 60 * SECOND);
	put("abc");
	pass(rig, SECOND);
	assert_int_equal(came, 3);
	assert_int_equal(asked, 0);
	end_run(rig);
}

TEST(c09_a_stall_without_a_text_or_a_log)
{
	(void)state_;
	rig_in_worlds(5, stall_without_text);
	rig_in_worlds(5, stall_unheard);
}

static void stall_for_less(void)
{
	struct rig *rig = rig_reading("z:call descriptor=10s");

	rig_start(rig);
	for (int i = 0; i < 5; i++) {
		pass(rig, 9 * SECOND);
		put("x");
	}
	pass(rig, MS);
	assert_string_equal(said, "");
	end_run(rig);
}

static void stall_without_a_line(void)
{
	struct rig *rig = rig_reading("z:call condition=file_descriptor");

	rig_start(rig);
	pass(rig, 100 * SECOND);
	assert_string_equal(said, "");
	end_run(rig);
}

TEST(c09_no_line_about_shorter_waits_or_if_none_is_wanted)
{
	(void)state_;
	rig_in_worlds(5, stall_for_less);
	rig_in_worlds(5, stall_without_a_line);
}

static void wait_beside_another(void)
{
	struct rig *rig = rig_reading(
		"z:call descriptor=10s condition=boolean; y:call condition=file_descriptor"); /* y keeps the
												 run open */

	rig_start(rig);
	rig_tell(rig, "z", WEIR_TOLD_WAIT);
	put("a"); /* the descriptor is ready, and the entity is not */
	pass(rig, 100 * SECOND);
	assert_string_equal(said, "");
	weir_scheduler_stop(rig->scheduler, WEIR_STOP_DRAIN);
	end_run(rig);
}

TEST(c09_no_line_while_the_entity_waits_for_something_else)
{
	(void)state_;
	rig_in_worlds(5, wait_beside_another);
}

static void wait_until_said(struct rig *rig, const char *part)
{
	for (int i = 0; i < 20000 && !was_said(part); i++)
		pass(rig, MS);
	assert_true(was_said(part));
}

static void stall_on_the_host(void)
{
	struct rig *rig = rig_reading("z:call descriptor=10ms");

	rig_start(rig);
	wait_until_said(rig, "(readable): 0 bytes came\n");
	put("a");
	wait_until_said(rig, "z: goes on: has waited ");
	end_run(rig);
}

TEST(c09_the_loop_of_a_real_run_finds_a_stall)
{
	(void)state_;
	rig_on_host(stall_on_the_host);
}

TEST(c09_a_warning_that_cannot_be_is_refused)
{
	static const char text[] =
		"{\"weir\":1,\"entities\":[{\"name\":\"y\",\"operator\":\"ping\"},{\"name\":\"z\","
		"\"operator\":"
		"\"sink\",\"conditions\":[{\"type\":\"file_descriptor\",\"warn_after\":\"-1s\"}]}],"
		"\"connections\":[[\"y.out\",\"z.in\"]]}";
	weir_description *description = NULL;

	(void)state_;
	assert_int_equal(weir_description_parse(text, strlen(text), NULL, NULL, &description), WEIR_OK);
	assert_int_equal(weir_description_check(description, NULL, NULL, NULL), WEIR_E_INVALID);
	assert_says(weir_last_error(), "/entities/1/conditions/0/warn_after: '-1s' must begin with a digit");
	weir_description_destroy(description);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(c09_a_stall_is_one_line_and_one_when_it_goes_on),
		cmocka_unit_test(c09_a_stall_without_a_text_or_a_log),
		cmocka_unit_test(c09_no_line_about_shorter_waits_or_if_none_is_wanted),
		cmocka_unit_test(c09_no_line_while_the_entity_waits_for_something_else),
		cmocka_unit_test(c09_the_loop_of_a_real_run_finds_a_stall),
		cmocka_unit_test(c09_a_warning_that_cannot_be_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
