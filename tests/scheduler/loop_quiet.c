/* At the end of a run: pokes as it becomes quiescent, and pushers without a pause.
 * Atomics are switching points. */
#include "sim/simulation.h"
#include "base/thread.h"
#include "rig.h"

/* --- a poke as the run becomes quiescent --- */

static _Atomic bool wanted;

static void ask_wanted(const void *state, weir_view *view, weir_verdict *verdict)
{
	(void)state;
	(void)view;
	if (wr_load(&wanted))
		weir_verdict_ready(verdict);
	else
		weir_verdict_wait(verdict, "not wanted");
}

static const weir_condition when_wanted = {.size = sizeof when_wanted, .name = "wanted", .ask = ask_wanted};
static const weir_condition *const conditions[] = {&when_wanted, NULL};

static weir_status serve(struct rig *rig, weir_context *context)
{
	(void)rig;
	(void)context;
	wr_store(&wanted, false);
	return WEIR_OK;
}

struct poker {
	struct rig *rig;
	struct wr_thread thread;
	unsigned yields;
};

/* A poke that was accepted is followed by a review. */
static void want(void *arg)
{
	struct poker *poker = arg;
	weir_entity *entity = weir_graph_entity(poker->rig->graph, "c");

	for (unsigned i = 0; i < poker->yields; i++)
		wr_thread_yield();
	wr_store(&wanted, true);
	if (weir_entity_poke(entity))
		wr_store(&wanted, false); /* refused: the run has ended */
}

static unsigned yields;

static void poke_as_it_falls_quiet(void)
{
	struct rig *rig = rig_of("c:call condition=wanted");
	struct poker poker = {.rig = rig, .yields = yields};

	wr_store(&wanted, false);
	rig->options.workers = 1;
	rig_on(rig, "c", serve);
	rig_start(rig);
	assert_int_equal(wr_thread_start(&poker.thread, "poker", want, &poker), WEIR_OK);
	assert_int_equal(rig_wait(rig), WEIR_OK);
	wr_thread_join(&poker.thread);
	assert_false(wr_load(&wanted));
	rig_destroy(rig);
}

static void s01_s04_a_poke_that_is_taken_is_reviewed_however_late_it_comes(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 4000; seed++) {
		yields = (unsigned)(seed % 40);
		rig_in_world(seed, poke_as_it_falls_quiet);
	}
}

/* --- pushers without a pause --- */

enum { PUSHERS = 4 };

struct pusher {
	struct rig *rig;
	weir_inlet *inlet;
	struct wr_thread thread;
};

static void push_on(void *arg)
{
	struct pusher *pusher = arg;
	weir_status status = WEIR_OK;

	while (!status) {
		weir_message *message = rig_message(pusher->rig, 1);
		status = weir_inlet_push(pusher->inlet, message, 0);
		if (status)
			weir_message_unref(message);
		if (status == WEIR_E_BUSY)
			status = WEIR_OK;
	}
}

static void push_at_an_ending_entity(void)
{
	struct rig *rig = rig_of("source ticks=1 -> c:call count=2 capacity=2 policy=pop");
	struct pusher pushers[PUSHERS];

	for (unsigned i = 0; i < PUSHERS; i++) {
		pushers[i] = (struct pusher){.rig = rig};
		assert_int_equal(weir_graph_add_inlet(rig->graph, "c.in", &pushers[i].inlet), WEIR_OK);
	}
	rig_start(rig);
	for (unsigned i = 0; i < PUSHERS; i++)
		assert_int_equal(wr_thread_start(&pushers[i].thread, "pusher", push_on, &pushers[i]),
				 WEIR_OK);
	assert_int_equal(rig_wait(rig), WEIR_OK);
	for (unsigned i = 0; i < PUSHERS; i++)
		wr_thread_join(&pushers[i].thread);
	assert_int_equal(rig_ticks(rig, "c"), 2);
	assert_true(rig_done(rig, "c"));
	rig_destroy(rig);
}

static void s05_b02_an_entity_ends_under_pushers_without_a_pause(void **state)
{
	(void)state;
	rig_in_worlds(300, push_at_an_ending_entity);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(s01_s04_a_poke_that_is_taken_is_reviewed_however_late_it_comes),
		cmocka_unit_test(s05_b02_an_entity_ends_under_pushers_without_a_pause),
	};

	rig_conditions = conditions;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
