/* Which thread waits for the earliest time (S10, scheduler/timers.c). */
#include <string.h>

#include "base/clock.h"
#include "base/thread.h"
#include "rig_inside.h"

#define SEEDS 100

/* --- a worker that sleeps --- */

static int64_t first_at;

static weir_status note_first(struct rig *rig, weir_context *context)
{
	(void)context;
	if (!wr_fetch_add(&rig->told, 1))
		first_at = wr_now();
	return WEIR_OK;
}

static void look_between_ticks(void)
{
	struct rig *rig = rig_of("c:call period=10ms count=3");

	rig_on(rig, "c", note_first);
	rig_start(rig);
	wr_thread_sleep(15 * MS); /* after the first timer that was due: the loop may have seen to it */
	assert_int_equal(rig_kept_until(rig), first_at + 20 * MS);
	assert_true(rig_loop_until(rig) > first_at + 20 * MS);
	assert_int_equal(rig_wait(rig), WEIR_OK);
	rig_destroy(rig);
}

static void s10_a_worker_that_sleeps_keeps_the_time_and_the_loop_does_not(void **state)
{
	(void)state;
	rig_in_worlds(SEEDS, look_between_ticks);
}

/* What is asleep, with its messages taken, is the worker that keeps the time of the source. */
static weir_status note_and_send(struct rig *rig, weir_context *context)
{
	note_first(rig, context);
	return weir_context_emit(context, 0, rig_number(context, 0));
}

static weir_status take_long(struct rig *rig, weir_context *context)
{
	(void)rig;
	(void)context;
	wr_thread_sleep(20 * MS);
	return WEIR_OK;
}

static void look_behind(struct rig *rig)
{
	rig_start(rig);
	for (int i = 0; i < 5; i++) {
		wr_thread_sleep(i ? 40 * MS : 35 * MS);
		assert_int_equal(rig_kept_until(rig), first_at + (i + 1) * 40 * MS);
	}
	assert_int_equal(rig_wait(rig), WEIR_OK);
	rig_destroy(rig);
}

/* The other worker reviews the source, once it has room. */
static void look_behind_a_full_queue(void)
{
	struct rig *rig = rig_of("c:call period=40ms count=6 -> d:call capacity=1");

	rig_on(rig, "c", note_and_send);
	rig_on(rig, "d", take_long);
	rig->options.workers = 2;
	look_behind(rig);
}

/* The worker keeps the time while it polls, then hands over to run what it saw. */
static void look_behind_a_gate(void)
{
	struct rig *rig = rig_of("c:call period=40ms count=6 -> p:pass work=3ms -> d:call gate=in");

	rig_on(rig, "c", note_and_send);
	rig_on(rig, "d", take_long);
	rig->options.workers = 1;
	rig->options.signal = "flag";
	rig_make(rig);
	rig_poller_sleeps(rig);
	look_behind(rig);
}

static void s10_a_time_that_was_handed_over_is_kept_by_the_worker_once_it_sleeps(void **state)
{
	(void)state;
	rig_in_worlds(SEEDS, look_behind_a_gate);
}

static void s10_s09_a_time_that_comes_after_the_loops_look_is_kept_by_a_worker(void **state)
{
	(void)state;
	rig_in_worlds(SEEDS, look_behind_a_full_queue);
}

/* --- a worker that runs something long --- */

static int64_t latest; /* how late c was in the worst of its ticks */
static uint64_t long_tick;
static int64_t mostly_for;
static _Atomic uint64_t other_ticks;

static weir_status note_lateness(struct rig *rig, weir_context *context)
{
	uint64_t tick = wr_fetch_add(&rig->told, 1);
	int64_t late;

	(void)context;
	if (!tick)
		first_at = wr_now();
	late = wr_now() - first_at - (int64_t)tick * MS;
	latest = late > latest ? late : latest;
	return WEIR_OK;
}

static weir_status be_long_once(struct rig *rig, weir_context *context)
{
	(void)rig;
	(void)context;
	wr_thread_sleep(wr_fetch_add(&other_ticks, 1) == long_tick ? 50 * MS : mostly_for);
	return WEIR_OK;
}

static void tick_beside_a_long_one(void)
{
	struct rig *rig = rig_of("c:call period=1ms count=250; d:call period=700us");

	rig_on(rig, "c", note_lateness);
	rig_on(rig, "d", be_long_once);
	rig->options.max_duration_ns = 300 * MS;
	latest = 0;
	wr_store(&other_ticks, 0);
	assert_int_equal(rig_run(rig), WEIR_OK);
	rig_destroy(rig);
}

static void tick_beside_an_unknown_one(void)
{
	long_tick = 3;
	mostly_for = 0;
	tick_beside_a_long_one();
	assert_in_range(latest, 0, 100 * US);
}

static void s10_beside_a_run_that_may_be_long_another_thread_sees_to_the_times(void **state)
{
	(void)state;
	rig_in_worlds(SEEDS, tick_beside_an_unknown_one);
}

static void tick_beside_a_brief_one(void)
{
	long_tick = 201; /* not at a time of c */
	mostly_for = 0;
	tick_beside_a_long_one();
	assert_in_range(latest, 0, 11 * MS);
}

static void tick_beside_a_short_one(void)
{
	long_tick = 201;
	mostly_for = 50 * US;
	tick_beside_a_long_one();
	assert_in_range(latest, 0, 11 * MS);
}

static void s10_beside_a_run_that_was_short_the_loop_looks_after_a_while(void **state)
{
	(void)state;
	rig_in_worlds(SEEDS, tick_beside_a_brief_one);
	rig_in_worlds(SEEDS, tick_beside_a_short_one);
}

/* --- the program's loop --- */

static void s10_b01_without_a_turn_no_timer_fires_again(void **state)
{
	struct rig *rig = rig_of("c:call period=1ms; d:call period=3ms");
	uint64_t ticks;
	char *text = NULL;

	(void)state;
	rig_on(rig, "c", note_first);
	rig_on(rig, "d", note_first);
	rig->options.backend = "host";
	rig->options.own_loop = true;
	rig_start(rig);
	while (wr_load(&rig->told) < 30)
		assert_int_equal(weir_scheduler_turn(rig->scheduler), WEIR_OK);
	ticks = wr_load(&rig->told);
	do {
		weir_text_free(text);
		assert_int_equal(weir_scheduler_explain_line(rig->scheduler, &text), WEIR_OK);
	} while (!strstr(text, "timer has been due for ") || !strstr(text, " ms: weir_scheduler_turn"));
	assert_in_range(wr_load(&rig->told), ticks,
			ticks + 2); /* each may have been poked by the last turn */
	weir_text_free(text);
	rig_destroy(rig);
}

/* --- a worker that runs a destructor --- */

static void destroy_slowly(void *payload)
{
	(void)payload;
	wr_thread_sleep(100 * MS);
}

static int nap(const void *arguments)
{
	(void)arguments;
	weir_sleep(3300 * US);
	return 0;
}

/* Its payload is freed when the device's work is done, by a worker. */
static weir_status emit_work(struct rig *rig, weir_context *context)
{
	static const weir_kernel napping = {sizeof(weir_kernel), "nap", nap, NULL};
	static int payload;
	weir_stream *stream = NULL;
	weir_message *message = NULL;

	HOLDS(rig, !weir_context_stream(context, &stream));
	HOLDS(rig, !weir_stream_launch(stream, &napping, "", 1));
	HOLDS(rig, !weir_message_wrap_user(rig->graph, &payload, destroy_slowly, &message));
	return weir_context_emit(context, 0, message);
}

static weir_status compute_nothing(struct rig *rig, weir_context *context)
{
	(void)rig;
	(void)context;
	return WEIR_OK;
}

static void run_destructor(void)
{
	struct rig *rig =
		rig_of("c:call period=1ms count=150; g:call period=21300us count=1 pool=default -> e:call");

	rig_on(rig, "c", note_lateness);
	rig_on(rig, "g", emit_work);
	rig_on(rig, "e", compute_nothing);
	rig->options.workers = 3;
	latest = 0;
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_in_range(latest, 0, 2 * MS);
	rig_destroy(rig);
}

static void s10_b03_beside_a_destructor_that_is_long_another_thread_sees_to_the_times(void **state)
{
	(void)state;
	rig_in_worlds(2 * SEEDS, run_destructor);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(s10_a_worker_that_sleeps_keeps_the_time_and_the_loop_does_not),
		cmocka_unit_test(s10_a_time_that_was_handed_over_is_kept_by_the_worker_once_it_sleeps),
		cmocka_unit_test(s10_s09_a_time_that_comes_after_the_loops_look_is_kept_by_a_worker),
		cmocka_unit_test(s10_beside_a_run_that_may_be_long_another_thread_sees_to_the_times),
		cmocka_unit_test(s10_beside_a_run_that_was_short_the_loop_looks_after_a_while),
		cmocka_unit_test(s10_b03_beside_a_destructor_that_is_long_another_thread_sees_to_the_times),
		cmocka_unit_test(s10_b01_without_a_turn_no_timer_fires_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
