/* A time that becomes earlier while the loop enters the previous
 * one into its heap; atomics are switching points. */
#include "base/clock.h"
#include "sim/simulation.h"
#include "base/thread.h"
#include "rig.h"

#define SEEDS 3000

/* Waits 10 ms, or 1 ms once this is set. */
static _Atomic bool short_timeout;
static int64_t began;

static void ask_for_time(const void *state, weir_view *view, weir_verdict *verdict)
{
	int64_t until = began + (wr_load(&short_timeout) ? MS : 10 * MS);

	(void)state;
	if (weir_view_now(view) >= until)
		weir_verdict_ready(verdict);
	else
		weir_verdict_until(verdict, until);
}

static const weir_condition in_time = {.size = sizeof in_time, .name = "in_time", .ask = ask_for_time};
static const weir_condition *const conditions[] = {&in_time, NULL};

static void set_short_timeout(void *arg)
{
	struct rig *rig = arg;

	wr_store(&short_timeout, true);
	weir_entity_poke(weir_graph_entity(rig->graph, "c"));
}

static void run_with_short_timeout(void)
{
	struct rig *rig = rig_of("c:call count=1 condition=in_time");
	struct wr_thread other = {0};

	wr_store(&short_timeout, false);
	rig_make(rig);
	began = wr_now();
	rig_start(rig);
	assert_int_equal(wr_thread_start(&other, "other", set_short_timeout, rig), WEIR_OK);
	assert_int_equal(rig_wait(rig), WEIR_OK);
	wr_thread_join(&other);
	assert_in_range(rig->outcome.duration_ns, MS, 2 * MS);
	rig_destroy(rig);
}

static void s10_a_time_that_becomes_earlier_is_kept(void **state)
{
	(void)state;
	rig_in_worlds(SEEDS, run_with_short_timeout);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(s10_a_time_that_becomes_earlier_is_kept),
	};

	rig_conditions = conditions;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
