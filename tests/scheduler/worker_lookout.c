/* What workers leave to each other, and the worker that looks at it again (S9). */
#include <stdio.h>

#include "base/clock.h"
#include "rig_inside.h"
#include "tests/bugs/bug.h"
#include "tests/calls.h"

enum { SHORT = 12 };

static int64_t long_since, sent_at;

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
	assert_true(sent_at - long_since < 3 * MS);
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
	assert_in_range(rig->outcome.duration_ns, 300 * MS, 320 * MS); /* the three at once */
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
	assert_in_range(rig->outcome.duration_ns, 0, RECEIVERS * (TICKS / EVERY) * HEAVY_US * US / 2);
	rig_destroy(rig);
}

static void s09_a_queue_that_is_slow_on_the_whole_is_shared(void **state)
{
	(void)state;
	wr_worth_drawn = false; /* nothing is shared by chance */
	for (uint64_t seed = 1; seed <= 10; seed++)
		rig_in_world(seed, check_slow_queue);
	wr_worth_drawn = true;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(s09_what_waits_behind_a_compute_that_is_long_for_once_is_taken),
		cmocka_unit_test(s09_a_queue_that_is_slow_on_the_whole_is_shared),
		cmocka_unit_test(s09_several_that_wait_behind_a_long_compute_get_a_worker_each),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
