/* What workers leave to each other, entries and flags, and the worker that looks at it again (S9, G4). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "rig_inside.h"
#include "tests/bugs/bug.h"
#include "tests/calls.h"

enum { SHORT = 12 };

static int64_t long_since, sent_at;

/* What is not worth it is not done: nothing is shared by chance. */
static void in_worlds_without_chance(uint64_t seeds, void (*check)(void))
{
	wr_worth_drawn = false;
	for (uint64_t seed = 1; seed <= seeds; seed++)
		rig_in_world(seed, check);
	wr_worth_drawn = true;
}

/* Its first computes teach that it is short; then one is long, behind which the source waits, whose room it
 * freed. */
static weir_status long_for_once(struct rig *rig, weir_context *context)
{
	(void)rig;
	if (weir_context_tick(context) != SHORT)
		return WEIR_OK;
	long_since = wr_now();
	weir_sleep(300 * MS);
	return WEIR_OK;
}

static weir_status send(struct rig *rig, weir_context *context)
{
	(void)rig;
	if (weir_context_tick(context) == SHORT + 1)
		sent_at = wr_now();
	return weir_context_emit(context, 0, rig_number(context, (int64_t)weir_context_tick(context)));
}

static void check_once(void)
{
	struct rig *rig = rig_of("s:call count=20 -> e:call capacity=1");

	rig_on(rig, "s", send);
	rig_on(rig, "e", long_for_once);
	rig->options.workers = 3;
	long_since = sent_at = 0;
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_int_equal(rig_ticks(rig, "e"), 20);
	assert_true(long_since > 0);
	assert_true(sent_at - long_since < 12 * MS); /* the loop looks, then a worker twice */
	rig_destroy(rig);
}

static void s09_what_waits_behind_a_compute_that_is_long_for_once_is_taken(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 300; seed++)
		rig_in_world(seed, check_once);
}

/* Two stand behind one long compute: who takes the first wakes one for the second. */
static void check_several(void)
{
	struct rig *rig = rig_of(
		"s:source ticks=20 -> a:call capacity=2; s -> b:call capacity=2; s -> c:call capacity=2");

	rig_on(rig, "a", long_for_once);
	rig_on(rig, "b", long_for_once);
	rig_on(rig, "c", long_for_once);
	rig->options.workers = 4;
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_in_range(rig->outcome.duration_ns, 300 * MS, 324 * MS); /* at once, but for two waits of S9 */
	rig_destroy(rig);
}

static void s09_several_that_wait_behind_a_long_compute_get_a_worker_each(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 300; seed++)
		rig_in_world(seed, check_several);
}

enum { RECEIVERS = 16, TICKS = 400, HEAVY_US = 300, EVERY = 8 };

/* Short on the whole, and long so often that each receiver's messages take a long time together. */
static weir_status long_now_and_then(struct rig *rig, weir_context *context)
{
	(void)rig;
	if (weir_context_tick(context) % EVERY == EVERY - 1)
		weir_sleep(HEAVY_US * US);
	return WEIR_OK;
}

static void check_slow_queue(void)
{
	char text[RECEIVERS * 48], name[16];
	size_t at = (size_t)snprintf(text, sizeof text, "s:source ticks=%d", TICKS);
	struct rig *rig;

	for (int i = 0; i < RECEIVERS; i++)
		at += (size_t)snprintf(text + at, sizeof text - at, "; s -> r%d:call capacity=1", i);
	rig = rig_of(text);
	for (int i = 0; i < RECEIVERS; i++) {
		snprintf(name, sizeof name, "r%d", i);
		rig_on(rig, name, long_now_and_then);
	}
	rig->options.workers = 4;
	assert_int_equal(rig_run(rig), WEIR_OK);
	/* One after the other they take 240 ms. */
	assert_in_range(rig->outcome.duration_ns, 0, RECEIVERS * (TICKS / EVERY) * HEAVY_US * US * 2 / 3);
	rig_destroy(rig);
}

static void s09_a_queue_that_is_slow_on_the_whole_is_shared(void **state)
{
	(void)state;
	in_worlds_without_chance(10, check_slow_queue);
}

static uint64_t computes, woken_before;

static weir_status be_short(struct rig *rig, weir_context *context)
{
	if (weir_context_tick(context) >= SHORT) {
		computes++;
		woken_before += !rig_one_asleep(rig->scheduler);
	}
	return WEIR_OK;
}

static weir_status send_after_a_while(struct rig *rig, weir_context *context)
{
	weir_sleep(20 * US);
	return send(rig, context);
}

static void check_room(void)
{
	struct rig *rig = rig_of("s:call count=200 -> e:call capacity=1");

	rig_on(rig, "s", send_after_a_while);
	rig_on(rig, "e", be_short);
	rig->options.workers = 2;
	computes = woken_before = 0;
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_int_equal(computes, 200 - SHORT);
	assert_in_range(woken_before, 0, 10);
	rig_destroy(rig);
}

static void s09_for_the_room_that_a_short_compute_frees_nobody_is_woken_before_it(void **state)
{
	(void)state;
	in_worlds_without_chance(50, check_room);
}

/* The receiver would wait behind the next compute of its sender: another worker is woken for it before. */

enum { SENT = 200, REST = 8 };

static int64_t sent[SENT];
static uint64_t late;
static bool rests; /* the sender, each REST ticks */

static weir_status send_timed(struct rig *rig, weir_context *context)
{
	uint64_t tick = weir_context_tick(context);

	(void)rig;
	weir_sleep(rests && tick % REST == 0 ? 3 * MS : 20 * US); /* the other worker goes to sleep */
	sent[tick] = wr_now();
	return weir_context_emit(context, 0, rig_number(context, (int64_t)tick));
}

static weir_status note_late(struct rig *rig, weir_context *context)
{
	uint64_t tick = weir_context_tick(context);

	(void)rig;
	late += tick >= SHORT && wr_now() - sent[tick] > 50 * US;
	return WEIR_OK;
}

static void check_row(void)
{
	struct rig *rig = rig_of("s:call count=200 -> e:call capacity=4");

	rig_on(rig, "s", send_timed);
	rig_on(rig, "e", note_late);
	rig->options.workers = 2;
	rests = true;
	late = 0;
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_in_range(late, 0, 2);
	rig_destroy(rig);
}

static void s09_what_would_wait_for_the_senders_next_compute_is_taken_by_another_worker(void **state)
{
	(void)state;
	in_worlds_without_chance(50, check_row);
}

static void look_between_runs(void)
{
	struct rig *rig = rig_of("s:call count=200 -> e:call capacity=4");

	rig_on(rig, "s", send_timed);
	rig_on(rig, "e", note_late);
	rig->options.workers = 2;
	rests = true;
	for (int run = 0; run < 2; run++) {
		rig_start(rig);
		assert_int_equal(rig_wait(rig), WEIR_OK);
		weir_sleep(50 * MS);
		assert_true(rig_loop_until(rig) > wr_now() + SECOND);
	}
	rig_destroy(rig);
}

static void s09_b01_between_two_runs_the_loop_looks_for_nothing(void **state)
{
	(void)state;
	rig_in_worlds(20, look_between_runs);
}

/* Before a long sleep the worker that keeps the time takes the role from the loop, and puts it off past that.
 */

static unsigned put_off;

static weir_status note_loop_and_send(struct rig *rig, weir_context *context)
{
	put_off += rig_loop_until(rig) >= wr_now() + 9 * MS;
	return send(rig, context);
}

static void run_paced(const char *graph)
{
	struct rig *rig = rig_of(graph);

	rig_on(rig, "s", note_loop_and_send);
	rig->options.workers = 2;
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_int_equal(rig_ticks(rig, "e"), 60);
	rig_destroy(rig);
}

static void sleep_long(void)
{
	run_paced("s:call period=17ms count=60 -> e:call");
}

static void sleep_briefly(void)
{
	run_paced("s:call period=3ms count=60 -> e:call");
}

static void s10_s09_before_a_long_sleep_the_loop_is_put_off_past_its_end(void **state)
{
	(void)state;
	put_off = 0;
	in_worlds_without_chance(20, sleep_long);
	assert_in_range(put_off, 20 * 45, 20 * 60);
	put_off = 0;
	in_worlds_without_chance(20, sleep_briefly);
	assert_in_range(put_off, 0, 20 * 30);
}

/* After the emission its tick frees what it received, and that takes long. */

static void free_slowly(void *payload)
{
	(void)payload;
	weir_sleep(3 * MS);
}

static weir_status send_what_is_freed_slowly(struct rig *rig, weir_context *context)
{
	static int payload;
	weir_message *message = NULL;

	HOLDS(rig, !weir_message_wrap_user(rig->graph, &payload, free_slowly, &message));
	return weir_context_emit(context, 0, message);
}

static void check_destructor(void)
{
	struct rig *rig = rig_of("a:call period=10ms count=100 -> s:call -> e:call");

	rig_on(rig, "a", send_what_is_freed_slowly);
	rig_on(rig, "s", send_timed);
	rig_on(rig, "e", note_late);
	rig->options.workers = 2;
	rests = false;
	late = 0;
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_in_range(late, 0, 2);
	rig_destroy(rig);
}

static void s09_b03_what_would_wait_for_a_destructor_is_taken_by_another_worker(void **state)
{
	(void)state;
	in_worlds_without_chance(50, check_destructor);
}

/* --- flags: no worker is woken for them before a compute that is expected to be brief --- */

static int64_t seen_at;

/* The first that comes after the other's long compute has begun. */
static weir_status note_first(struct rig *rig, weir_context *context)
{
	(void)rig;
	(void)context;
	if (long_since && !seen_at)
		seen_at = wr_now();
	return WEIR_OK;
}

static weir_status end(struct rig *rig, weir_context *context)
{
	(void)rig;
	(void)context;
	return WEIR_OK;
}

/* Two workers; while b computes, a flag that a waits for is armed. No time is waited for. */
static void run_beside_flags(rig_fn *a, rig_fn *b, int ticks_of_b)
{
	char text[120];
	struct rig *rig;

	snprintf(text, sizeof text,
		 "far:source ticks=20 work=10ms -> a:call gate=in; near:source ticks=%d work=3ms -> b:call "
		 "gate=in",
		 ticks_of_b);
	rig = rig_of(text);
	rig->options.signal = "flag";
	rig->options.workers = 2;
	rig_on(rig, "a", a);
	rig_on(rig, "b", b);
	rig_make(rig);
	rig_poller_sleeps(rig);
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_int_equal(rig_ticks(rig, "b"), ticks_of_b);
	rig_destroy(rig);
}

static void check_flag_behind(void)
{
	long_since = seen_at = 0;
	run_beside_flags(note_first, long_for_once, SHORT + 1); /* its last: no entry waits behind it */
	assert_true(long_since && seen_at);
	assert_in_range(seen_at - long_since, 0, (11 + 12) * MS); /* its device work, then two looks of S9 */
}

static void g04_s09_a_flag_behind_a_compute_that_is_long_for_once_is_seen(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 100; seed++)
		rig_in_world(seed, check_flag_behind);
	in_worlds_without_chance(100, check_flag_behind);
}

static void check_flags(void)
{
	computes = woken_before = 0;
	run_beside_flags(end, be_short, 40);
	assert_int_equal(computes, 40 - SHORT);
	assert_in_range(woken_before, 0, 4); /* where the other one has just run */
}

static void g04_s09_for_other_flags_nobody_is_woken_before_a_short_compute(void **state)
{
	(void)state;
	in_worlds_without_chance(50, check_flags);
}

/* --- flags: the worker that arms one polls itself --- */

static uint64_t count_wakes(struct rig *rig)
{
	static const char key[] = "\"wakes\":";
	const char *at;
	char *text = NULL;
	uint64_t wakes = 0;

	assert_int_equal(weir_scheduler_print_statistics(rig->scheduler, &text), WEIR_OK);
	for (at = text; (at = strstr(at, key)); at += strlen(key))
		wakes += strtoull(at + strlen(key), NULL, 10);
	weir_text_free(text);
	return wakes;
}

static uint64_t woken;

/*
 * Its worker keeps the time, launches, polls and runs what waited for the flag; the other one sleeps. Its
 * sleeps are short: after a long one, before which it relieved the loop, a simulated loop is kicked to look.
 */
static void check_arming(void)
{
	struct rig *rig = rig_of("s:source ticks=40 period=7ms work=3ms -> b:call gate=in");

	rig->options.signal = "flag";
	rig->options.workers = 2;
	rig->options.observe = WEIR_OBSERVE_STATISTICS;
	rig_on(rig, "b", end);
	rig_make(rig);
	rig_poller_sleeps(rig);
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_int_equal(rig_ticks(rig, "b"), 40);
	woken += count_wakes(rig);
	rig_destroy(rig);
}

static void g04_s09_s10_for_a_frame_that_one_worker_can_see_to_no_other_is_woken(void **state)
{
	(void)state;
	woken = 0;
	in_worlds_without_chance(50, check_arming);
	assert_in_range(woken, 0,
			50 * 40 / 2); /* by the loop as the lookout, whose waits are not exact here */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(s09_what_waits_behind_a_compute_that_is_long_for_once_is_taken),
		cmocka_unit_test(s09_for_the_room_that_a_short_compute_frees_nobody_is_woken_before_it),
		cmocka_unit_test(s09_what_would_wait_for_the_senders_next_compute_is_taken_by_another_worker),
		cmocka_unit_test(s09_b01_between_two_runs_the_loop_looks_for_nothing),
		cmocka_unit_test(s09_b03_what_would_wait_for_a_destructor_is_taken_by_another_worker),
		cmocka_unit_test(s09_a_queue_that_is_slow_on_the_whole_is_shared),
		cmocka_unit_test(g04_s09_a_flag_behind_a_compute_that_is_long_for_once_is_seen),
		cmocka_unit_test(g04_s09_for_other_flags_nobody_is_woken_before_a_short_compute),
		cmocka_unit_test(g04_s09_s10_for_a_frame_that_one_worker_can_see_to_no_other_is_woken),
		cmocka_unit_test(s10_s09_before_a_long_sleep_the_loop_is_put_off_past_its_end),
		cmocka_unit_test(s09_several_that_wait_behind_a_long_compute_get_a_worker_each),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
