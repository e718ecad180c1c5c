/* What a run reports of itself: a broken law of conservation (E5), and the lines of the log (B4). */
#include <stdio.h>
#include <string.h>

#include "rig_inside.h"

/* --- E5 --- */

static weir_status lose_one(struct rig *rig, weir_context *context)
{
	(void)context;
	if (rig->own)
		rig_lose_message(rig, rig->own);
	else
		rig_lose_emission(rig, "p");
	return WEIR_OK;
}

/* The library has no such bug; the test changes a counter, and the run must tell. */
static void assert_told(const char *end, const char *text)
{
	struct rig *rig = rig_of("source ticks=3 -> p:pass -> end; c:call count=1");
	weir_outlet *outlet = rig_outlet(rig, "p.out2", 4, 0);
	weir_status status;

	rig->own = (void *)end;
	rig_on(rig, "c", lose_one);
	rig_start(rig);
	for (int i = 0; i < 3; i++)
		assert_int_equal(rig_take(outlet, SECOND), i);
	status = weir_scheduler_wait(rig->scheduler, 60 * SECOND, &rig->outcome);
	assert_int_equal(status, WEIR_E_FAILED);
	assert_says(rig->outcome.text, text);
	rig_destroy(rig);
}

static void e05_a_message_that_is_lost_fails_the_run_and_names_its_connection(void **state)
{
	(void)state;
	assert_told("end.in", "messages were lost on connection");
	assert_told("end.in", "into end (pushed 4, delivered 3)");
	assert_told("outlet", "into an outlet (pushed 4, delivered 3)");
	assert_told(NULL, "p.out: emitted 4 to 1 connections, pushed 3");
}

/* --- the log --- */

static char said[4096];

static void note_line(weir_log_level level, int64_t at, const char *line, void *arg)
{
	(void)level;
	(void)at;
	(void)arg;
	if (strlen(said) + strlen(line) + 2 < sizeof said) {
		strcat(said, line);
		strcat(said, "\n");
	}
}

static void listen_to(void (*body)(void))
{
	said[0] = 0;
	assert_int_equal(weir_log_set(note_line, NULL), WEIR_OK);
	body();
	assert_int_equal(weir_log_set(NULL, NULL), WEIR_OK);
}

static void drain(void)
{
	struct rig *rig = rig_of("source period=1ms -> end");

	rig_start(rig);
	weir_scheduler_wait(rig->scheduler, 5 * MS, NULL);
	weir_scheduler_stop(rig->scheduler, WEIR_STOP_DRAIN);
	assert_int_equal(rig_wait(rig), WEIR_OK);
	rig_destroy(rig);
}

static void b04_a_drain_is_told_to_the_log(void **state)
{
	(void)state;
	listen_to(drain);
	assert_says(said, ": draining\n");
}

/* Work that outlasts the run by more than a stop function waits for it. */
static void end_before_the_work(void)
{
	struct rig *rig = rig_of("source ticks=1 work=4s -> end gate=in");

	rig_start(rig);
	weir_scheduler_wait(rig->scheduler, 5 * MS, NULL);
	weir_scheduler_stop(rig->scheduler, 0);
	rig_wait(rig);
	assert_int_equal(wr_load(&rig->stopped), 1); /* that of `end` */
	weir_scheduler_destroy(rig->scheduler);
	rig->scheduler = NULL;
	rig_destroy(rig);
}

static void b04_s07_a_stop_function_that_has_to_wait_is_told_to_the_log(void **state)
{
	(void)state;
	listen_to(end_before_the_work);
	assert_says(said, "source: its streams still have work; its stop function is called later\n");
	assert_says(said, "source: its work on the device does not end; its stop function is not called\n");
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(e05_a_message_that_is_lost_fails_the_run_and_names_its_connection),
		cmocka_unit_test(b04_a_drain_is_told_to_the_log),
		cmocka_unit_test(b04_s07_a_stop_function_that_has_to_wait_is_told_to_the_log),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
