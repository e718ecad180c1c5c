/* Which entity runs when: pokes, owners, room, ready queues, timers (S1 to S3, S9 to S11). */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/thread.h"
#include "rig.h"

static weir_status count_tick(struct rig *rig, weir_context *context)
{
	(void)context;
	wr_fetch_add(&rig->told, 1);
	return WEIR_OK;
}

/* --- S1, S2 --- */

struct poking {
	struct rig *rig;
	_Atomic bool over;
};

static void poke_all(void *arg)
{
	struct poking *poking = arg;

	while (!wr_load(&poking->over)) {
		for (size_t i = 0; i < poking->rig->entity_count; i++)
			weir_entity_poke(
				weir_graph_entity(poking->rig->graph, poking->rig->entities[i].name));
		weir_sleep(US);
	}
}

static void poke_a_run(void)
{
	struct poking poking = {
		.rig = rig_of("source ticks=300 -> p:pass -> end; p.out2 -> other:end capacity=3")};
	struct wr_thread threads[2] = {{0}};

	poking.rig->options.workers = 4;
	rig_start(poking.rig);
	for (int i = 0; i < 2; i++)
		assert_int_equal(wr_thread_start(&threads[i], "poker", poke_all, &poking), WEIR_OK);
	assert_int_equal(rig_wait(poking.rig), WEIR_OK); /* also: none ran twice at once */
	wr_store(&poking.over, true);
	for (int i = 0; i < 2; i++)
		wr_thread_join(&threads[i]);
	assert_int_equal(rig_ticks(poking.rig, "end"), 300);
	assert_int_equal(rig_ticks(poking.rig, "other"), 300);
	rig_destroy(poking.rig);
}

static void s01_s02_pokes_from_everywhere_change_no_count_and_run_no_entity_twice(void **state)
{
	(void)state;
	rig_everywhere(poke_a_run);
}

static weir_status poke_itself(struct rig *rig, weir_context *context)
{
	wr_fetch_add(&rig->told, 1);
	return weir_entity_poke(weir_context_entity(context));
}

static void s01_a_poke_of_oneself_is_one_more_review(void **state)
{
	struct rig *rig = rig_of("c:call count=20");

	(void)state;
	rig_on(rig, "c", poke_itself);
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_int_equal(wr_load(&rig->told), 20);
	rig_destroy(rig);
}

/* The order of ticks on one worker; `longest` is reset when all three have ticked. */
struct turns {
	char last;
	bool seen[3];
	unsigned in_a_row, longest, longest_at_first;
};

static weir_status note_turn(struct rig *rig, weir_context *context)
{
	struct turns *turns = rig->own;
	char name = *weir_entity_name(weir_context_entity(context));
	bool all = turns->seen[0] && turns->seen[1] && turns->seen[2];
	unsigned *longest = all ? &turns->longest : &turns->longest_at_first;

	turns->in_a_row = name == turns->last ? turns->in_a_row + 1 : 1;
	turns->last = name;
	turns->seen[name - 'a'] = true;
	*longest = turns->in_a_row > *longest ? turns->in_a_row : *longest;
	return weir_context_tick(context) == 1999 ? weir_context_fail(context, "enough") : WEIR_OK;
}

/* Eight ticks in a row within a worker's own queue; 61 such series until it looks at the injector. */
static void s02_s09_f31_every_ready_entity_runs_within_a_bound(void **state)
{
	struct rig *rig = rig_of("a:call; b:call; c:call");
	struct turns turns = {0};

	(void)state;
	rig->own = &turns;
	rig->options.workers = 1;
	rig_on(rig, "a", note_turn);
	rig_on(rig, "b", note_turn);
	rig_on(rig, "c", note_turn);
	assert_int_equal(rig_run(rig), WEIR_E_FAILED);
	assert_int_equal(turns.longest, 8);
	assert_in_range(turns.longest_at_first, 8, 61 * 8);
	rig_destroy(rig);
}

/* --- S3 --- */

static void s03_room_that_a_review_saw_is_there_at_the_tick(void **state)
{
	struct rig *rig = rig_of("source ticks=50 emits=3 max_emits=3 -> p:pass capacity=4 take=3 -> end "
				 "capacity=3; p.out max_emits=3; p.out2 max_emits=3");

	(void)state;
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_int_equal(rig_queue(rig, "end.in").delivered, 150);
	rig_destroy(rig);
}

static void s03_f26_a_tick_waits_for_room_in_every_block_queue_of_its_fan_out(void **state)
{
	struct rig *rig = rig_of("source ticks=10 -> fast:end; source -> slow:end delay=1ms");

	(void)state;
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_int_equal(rig_queue(rig, "fast.in").delivered, 10);
	assert_int_equal(rig_queue(rig, "slow.in").delivered, 10);
	assert_in_range(rig->outcome.duration_ns, 10 * MS, 11 * MS);
	rig_destroy(rig);
}

static void s03_freed_room_wakes_the_sender(void **state)
{
	struct rig *rig = rig_of("source ticks=20 -> end delay=1ms");

	(void)state;
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_int_equal(rig_ticks(rig, "end"), 20);
	rig_destroy(rig);
}

/* --- S9 --- */

/* A source wakes four receivers that sleep 10 ms each; they overlap only if four workers find work. */
static void s09_sleeping_workers_find_what_one_of_them_pushed(void **state)
{
	struct rig *rig =
		rig_of("source period=100ms count=3 -> a:end delay=10ms; source -> b:end delay=10ms; "
		       "source -> c:end delay=10ms; source -> d:end delay=10ms");

	(void)state;
	rig->options.workers = 4;
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_in_range(rig->outcome.duration_ns, 210 * MS, 211 * MS);
	rig_destroy(rig);
}

static weir_status meet(struct rig *rig, weir_context *context)
{
	int64_t until = wr_now() + 20 * SECOND;

	(void)context;
	wr_fetch_add(&rig->told, 1);
	while (wr_load(&rig->told) < 4 && wr_now() < until)
		wr_thread_yield();
	return wr_load(&rig->told) == 4
		       ? WEIR_OK
		       : weir_context_fail(context, "a worker sleeps although there is work");
}

static void s09_f20_four_threads_run_four_entities_at_once(void **state)
{
	struct rig *rig = rig_of("a:call count=1; b:call count=1; c:call count=1; d:call count=1");

	(void)state;
	rig->options.backend = "host";
	rig->options.workers = 4;
	for (int i = 0; i < 4; i++)
		rig_on(rig, (const char *[]){"a", "b", "c", "d"}[i], meet);
	assert_int_equal(rig_run(rig), WEIR_OK);
	rig_destroy(rig);
}

/* --- S10, F36, F38 --- */

static void s10_f38_a_period_of_a_millisecond_gives_a_thousand_ticks_a_second(void **state)
{
	struct rig *rig = rig_of("c:call period=1ms");

	(void)state;
	rig_on(rig, "c", count_tick);
	rig->options.max_duration_ns = SECOND - 500 * US;
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_int_equal(wr_load(&rig->told), 1000);
	rig_destroy(rig);
}

static void s10_real_timers_are_never_early(void **state)
{
	struct rig *rig = rig_of("c:call period=1ms,min_time_between_ticks count=100");

	(void)state;
	rig->options.backend = "host";
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_true(rig->outcome.duration_ns >= 99 * MS);
	rig_destroy(rig);
}

static void run_late(const char *text, uint64_t ticks)
{
	struct rig *rig = rig_of(text);

	rig_on(rig, "c", count_tick);
	rig->options.workers = 1;
	rig->options.max_duration_ns = 605 * MS;
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_int_equal(wr_load(&rig->told), ticks);
	rig_destroy(rig);
}

/* The only worker is busy for 500 ms, as if the machine had been suspended. */
static void s10_f36_after_a_stall_the_policy_says_how_many_ticks_are_made_up_for(void **state)
{
	(void)state;
	run_late("c:call period=100ms; stall:source ticks=1 delay=500ms -> end", 7);
	run_late("c:call period=100ms,no_catch_up_missed_ticks; stall:source ticks=1 delay=500ms -> end", 3);
}

static int64_t moved_at;

static void ask_moved(const void *state, weir_view *view, weir_verdict *verdict)
{
	(void)state;
	if (weir_view_now(view) >= moved_at)
		weir_verdict_ready(verdict);
	else
		weir_verdict_until(verdict, moved_at);
}

static const weir_condition moved = {.size = sizeof moved, .name = "moved", .ask = ask_moved};
static const weir_condition *const conditions[] = {&moved, NULL};

static int64_t run_moved(int64_t first, int64_t then)
{
	struct rig *rig = rig_of("c:call condition=moved count=1");
	int64_t duration;

	moved_at = SECOND + first;
	rig_start(rig);
	weir_scheduler_wait(rig->scheduler, MS, NULL);
	moved_at = SECOND + then;
	assert_int_equal(weir_entity_poke(weir_graph_entity(rig->graph, "c")), WEIR_OK);
	assert_int_equal(rig_wait(rig), WEIR_OK);
	duration = rig->outcome.duration_ns;
	rig_destroy(rig);
	return duration;
}

static void s10_the_latest_request_counts(void **state)
{
	(void)state;
	assert_in_range(run_moved(3600 * SECOND, 10 * MS), 9 * MS, 11 * MS);
	assert_in_range(run_moved(10 * MS, 50 * MS), 49 * MS, 51 * MS);
}

/* Six entities with periods that grow or shrink in the order of their timers: each second
 * tick comes in time. */
static void fire_in_order(const int periods_ms[6], const char *order)
{
	char text[600];
	size_t length = 0;
	struct rig *rig;

	for (int i = 0; i < 6; i++)
		length += (size_t)snprintf(text + length, sizeof text - length,
					   "s%d:source first=%d period=%dms count=2 -> end%s; ", i,
					   10 * periods_ms[i], periods_ms[i], i ? "" : " capacity=20");
	rig = rig_of(text);
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_non_null(strstr(rig_text(rig, "end"), order));
	rig_destroy(rig);
}

static void s10_many_timers_fire_in_order(void **state)
{
	(void)state;
	fire_in_order((const int[]){1, 2, 3, 4, 5, 6}, "11 21 31 41 51 61");
	fire_in_order((const int[]){6, 5, 4, 3, 2, 1}, "11 21 31 41 51 61");
	fire_in_order((const int[]){4, 1, 6, 3, 5, 2}, "11 21 31 41 51 61");
}

/* --- S11 --- */

static void look_for_locks(struct rig *rig)
{
	if (wr_mutex_held())
		rig_break(rig);
	wr_fetch_add(&rig->told, 1);
}

static void destroy_without_locks(void *arg)
{
	look_for_locks(arg);
}

static weir_status start_without_locks(struct rig *rig, weir_context *context)
{
	(void)context;
	look_for_locks(rig);
	return WEIR_OK;
}

static void stop_without_locks(struct rig *rig, weir_context *context)
{
	(void)context;
	look_for_locks(rig);
}

static weir_status compute_without_locks(struct rig *rig, weir_context *context)
{
	weir_message *message = NULL;

	look_for_locks(rig);
	if (weir_message_wrap_user(weir_context_graph(context), rig, destroy_without_locks, &message))
		return WEIR_E_NOMEM;
	return weir_context_emit(context, 0, message);
}

static void s11_no_lock_is_held_while_operators_and_destructors_run(void **state)
{
	struct rig *rig = rig_of("c:call count=3 -> end capacity=2 policy=pop");

	(void)state;
	rig_on(rig, "c", compute_without_locks);
	rig_entity(rig, "c")->start = start_without_locks;
	rig_entity(rig, "c")->stop = stop_without_locks;
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_int_equal(wr_load(&rig->told), 1 + 3 + 3 + 1);
	rig_destroy(rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(s01_s02_pokes_from_everywhere_change_no_count_and_run_no_entity_twice),
		cmocka_unit_test(s01_a_poke_of_oneself_is_one_more_review),
		cmocka_unit_test(s02_s09_f31_every_ready_entity_runs_within_a_bound),
		cmocka_unit_test(s03_room_that_a_review_saw_is_there_at_the_tick),
		cmocka_unit_test(s03_f26_a_tick_waits_for_room_in_every_block_queue_of_its_fan_out),
		cmocka_unit_test(s03_freed_room_wakes_the_sender),
		cmocka_unit_test(s09_sleeping_workers_find_what_one_of_them_pushed),
		cmocka_unit_test(s09_f20_four_threads_run_four_entities_at_once),
		cmocka_unit_test(s10_f38_a_period_of_a_millisecond_gives_a_thousand_ticks_a_second),
		cmocka_unit_test(s10_real_timers_are_never_early),
		cmocka_unit_test(s10_f36_after_a_stall_the_policy_says_how_many_ticks_are_made_up_for),
		cmocka_unit_test(s10_the_latest_request_counts),
		cmocka_unit_test(s10_many_timers_fire_in_order),
		cmocka_unit_test(s11_no_lock_is_held_while_operators_and_destructors_run),
	};

	rig_conditions = conditions;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
