/*
 * Memory that a program holds when nothing else goes on: the run is not over, and no deadlock, until the
 * program has dropped it and nobody waits for it any more. On real threads what is looked for lies between
 * two steps of one of them: the build with delays (CONTRIBUTING.md) finds at once what this one hardly ever
 * sees. Seeded schedules: dst_held.c.
 */
#include <string.h>

#include "base/thread.h"
#include "rig_streams.h"

enum { ROUNDS = 100, TICKS = 20, THREADS = 3 };

struct program {
	struct rig *rig;
	weir_outlet *outlet;
	_Atomic bool over;
};

/* Function of `call`: both blocks of the pool, a message each. */
static weir_status emit_two(struct rig *rig, weir_context *context)
{
	weir_status status = WEIR_OK;

	(void)rig;
	for (int i = 0; i < 2 && !status; i++) {
		weir_message *message = NULL;

		status = weir_context_create_tensor(context, &rig_one_number, WEIR_TENSOR_HOST, &message);
		if (!status)
			status = weir_context_emit(context, 0, message);
	}
	return status;
}

static void take_and_drop(void *arg)
{
	struct program *program = arg;

	while (rig_take(program->outlet, -1) != WEIR_E_CLOSED)
		continue;
}

/* Of an entity that has nothing to do with the memory: the loop looks whether the run is over, and no more.
 */
static void poke_another(void *arg)
{
	struct program *program = arg;
	weir_entity *other = weir_graph_entity(program->rig->graph, "other");

	while (!wr_load(&program->over)) {
		weir_entity_poke(other);
		weir_sleep(1 * US);
	}
}

static void run_beside(struct program *program, unsigned takers, unsigned pokers)
{
	struct wr_thread threads[THREADS];

	wr_store(&program->over, false);
	rig_start(program->rig);
	for (unsigned i = 0; i < takers + pokers; i++)
		assert_int_equal(wr_thread_start(&threads[i], "program",
						 i < takers ? take_and_drop : poke_another, program),
				 WEIR_OK);
	assert_int_equal(rig_wait(program->rig), WEIR_OK);
	wr_store(&program->over, true);
	for (unsigned i = 0; i < takers + pokers; i++)
		wr_thread_join(&threads[i]);
	assert_int_equal(program->rig->outcome.ticks, TICKS);
}

static void run_rounds(unsigned takers, unsigned pokers)
{
	struct program program = {.over = false};

	rig_resources = "{\"m\": {\"type\": \"memory_pool\", \"place\": \"host\", \"block_size\": 64, "
			"\"blocks\": 2}}";
	program.rig = rig_of("a:call pool=m blocks=2 count=20 a.out max_emits=2; other:call enabled=false");
	rig_resources = NULL;
	rig_on(program.rig, "a", emit_two);
	program.outlet = rig_outlet(program.rig, "a.out", 2, 0);
	for (int i = 0; i < ROUNDS; i++)
		run_beside(&program, takers, pokers);
	rig_destroy(program.rig);
}

static void take_by_two(void)
{
	run_rounds(2, 0);
}

static void s04_b02_a_run_is_not_over_while_one_of_two_takers_holds_what_the_source_waits_for(void **state)
{
	(void)state;
	rig_on_host(take_by_two);
	rig_in_worlds(5, take_by_two);
}

static void take_beside_pokes(void)
{
	run_rounds(1, 1);
}

static void s03_s04_a_run_is_not_over_before_an_entity_that_was_offered_memory_is_poked(void **state)
{
	(void)state;
	rig_on_host(take_beside_pokes);
	rig_in_worlds(5, take_beside_pokes);
}

/* Function of `call`: one block of the pool. */
static weir_status emit_one(struct rig *rig, weir_context *context)
{
	weir_message *message = NULL;
	weir_status status = weir_context_create_tensor(context, &rig_one_number, WEIR_TENSOR_HOST, &message);

	(void)rig;
	return status ? status : weir_context_emit(context, 0, message);
}

/* Its own queue holds one of the two blocks, the program the other one, which it may let go of. */
static void explain_beside_program(void)
{
	struct rig *rig;
	weir_outlet *outlet;
	weir_message *message;
	char *line;

	rig_resources = "{\"m\": {\"type\": \"memory_pool\", \"place\": \"host\", \"block_size\": 64, "
			"\"blocks\": 2}}";
	rig = rig_of("a:call enabled=false pool=m blocks=1 -> b:call pool=m blocks=1; c:call pool=m blocks=1 "
		     "count=1");
	rig_resources = NULL;
	rig_on(rig, "a", emit_one);
	rig_on(rig, "c", emit_one);
	outlet = rig_outlet(rig, "c.out", 1, 0);
	rig_start(rig);
	assert_int_equal(weir_outlet_take(outlet, -1, &message), WEIR_OK);
	weir_entity_tell(weir_graph_entity(rig->graph, "a"), "boolean", WEIR_TOLD_READY);
	weir_sleep(10 * MS);
	assert_int_equal(weir_scheduler_explain_line(rig->scheduler, &line), WEIR_OK);
	assert_non_null(strstr(line, "1 in a.out -> b.in, 1 held by the program or an operator"));
	assert_null(strstr(line, "circular"));
	weir_text_free(line);
	weir_scheduler_stop(rig->scheduler, WEIR_STOP_DRAIN); /* before b can go on */
	weir_message_unref(message);
	assert_int_equal(rig_wait(rig), WEIR_OK);
	rig_destroy(rig);
}

static void c05_an_entity_that_waits_for_memory_of_the_program_stands_in_no_circle(void **state)
{
	(void)state;
	rig_in_worlds(5, explain_beside_program);
}

/* --- messages that are made ahead --- */

static bool has_ticked;

static weir_status reserve_one(weir_context *context, void *state)
{
	(void)state;
	has_ticked = true;
	if (weir_context_reserve(context, 1)) /* the holder has all blocks */
		return weir_context_fail(context, "there was memory");
	return WEIR_OK;
}

static weir_status hold_one(weir_context *context, void *state)
{
	weir_message *message = NULL;
	weir_status status = weir_context_create_tensor(context, &rig_one_number, WEIR_TENSOR_HOST, &message);

	(void)state;
	return status ? status : weir_context_emit(context, 0, message);
}

static void ask_reserved(const void *state, weir_view *view, weir_verdict *verdict)
{
	(void)state;
	if (!has_ticked || weir_view_reserved(view)) {
		weir_verdict_ready(verdict);
		return;
	}
	weir_verdict_wait(verdict, "no memory for one more");
	weir_verdict_set_cause(verdict, WEIR_CAUSE_MEMORY, -1, 0);
}

static const weir_condition reserved = {
	.size = sizeof reserved, .name = "reserved", .help = "memory for one more", .ask = ask_reserved};
static const weir_port ahead[] = {
	{.size = sizeof(weir_port), .name = "out", .kinds = WEIR_KIND_TENSOR, .place = "host", .ahead = 1},
	{.name = NULL}};
static const weir_port one_block[] = {
	{.size = sizeof(weir_port), .name = "out", .kinds = WEIR_KIND_TENSOR, .place = "host"},
	{.name = NULL}};
static const weir_operator keeping = {.size = sizeof keeping,
				      .name = "keeping",
				      .help = "makes messages ahead",
				      .outputs = ahead,
				      .compute = reserve_one};
static const weir_operator holding = {.size = sizeof holding,
				      .name = "holding",
				      .help = "emits blocks",
				      .outputs = one_block,
				      .compute = hold_one};

/* The program holds all blocks. */
static void explain_one_that_keeps(void)
{
	struct rig *rig = rig_of_json(
		"{\"weir\": 1, \"resources\": {\"m\": {\"type\": \"memory_pool\", \"place\": \"host\", "
		"\"block_size\": 64, \"blocks\": 4}}, \"entities\": [{\"name\": \"h\", \"operator\": "
		"\"holding\", "
		"\"resources\": [\"m\"], \"conditions\": [{\"type\": \"count\", \"count\": 4}]}, "
		"{\"name\": \"hs\", \"operator\": \"sink\"}, {\"name\": \"k\", \"operator\": \"keeping\", "
		"\"resources\": [\"m\"], \"conditions\": [{\"type\": \"periodic\", \"period\": \"10ms\", "
		"\"offset\": \"10ms\"}, {\"type\": \"reserved\"}]}, {\"name\": \"ks\", \"operator\": "
		"\"sink\"}], "
		"\"connections\": [[\"h.out\", \"hs.in\"], [\"k.out\", \"ks.in\"]]}",
		(const weir_operator *[]){&keeping, &holding, NULL});
	weir_outlet *outlet = rig_outlet(rig, "h.out", 1, 0);
	weir_message *held[4];

	has_ticked = false;
	rig_start(rig);
	for (int i = 0; i < 4; i++)
		assert_int_equal(weir_outlet_take(outlet, SECOND, &held[i]), WEIR_OK);
	weir_scheduler_wait(rig->scheduler, 50 * MS, NULL);
	assert_says(rig_explain(rig),
		    "k: memory_available: WAIT (0 of 4 blocks of pool 'm' are free, a message "
		    "needs 1: 4 held by the program");
	weir_scheduler_stop(rig->scheduler, 0);
	for (int i = 0; i < 4; i++)
		weir_message_unref(held[i]);
	assert_int_equal(rig_wait(rig), WEIR_OK);
	rig_destroy(rig);
}

static void s03_c05_an_entity_that_lacks_memory_for_messages_made_ahead_says_so(void **state)
{
	(void)state;
	rig_conditions = (const weir_condition *[]){&reserved, NULL};
	rig_in_worlds(4, explain_one_that_keeps);
	rig_conditions = NULL;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			s04_b02_a_run_is_not_over_while_one_of_two_takers_holds_what_the_source_waits_for),
		cmocka_unit_test(c05_an_entity_that_waits_for_memory_of_the_program_stands_in_no_circle),
		cmocka_unit_test(s03_s04_a_run_is_not_over_before_an_entity_that_was_offered_memory_is_poked),
		cmocka_unit_test(s03_c05_an_entity_that_lacks_memory_for_messages_made_ahead_says_so),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
