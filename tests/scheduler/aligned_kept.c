/* What keeps a message that `aligned` gives again ("reuse"), for how long, and that it is given back once,
 * however a run ends. */
#include <stdio.h>
#include <string.h>

#include "films.h"
#ifdef WR_SEAM
#include "tests/bugs/bug.h"
#endif

/* --- for how long it lives --- */

static void let_go(void)
{
	struct rig *rig = begin();

	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_string_equal(seen, now.sets);
	check_given_back();
	rig_destroy(rig);
}

static weir_status let_go_compute(weir_context *context, void *state)
{
	weir_status status = see_compute(context, state);
	int kept = wr_load(&frames[1][0].state);

	if (kept != (weir_context_tick(context) < 2 ? ALIVE : GIVEN_BACK))
		wr_fetch_add(&wrong, 1);
	return status;
}

static const weir_operator watch = {.size = sizeof(weir_operator),
				    .name = "watch",
				    .help = "looks when the other port's message is freed",
				    .inputs = see_inputs,
				    .compute = let_go_compute};

static void let_go_in_time(void)
{
	struct rig *rig;

	fill(0, "10 20 30 40");
	fill(1, "10");
	length = 0;
	rig = rig_of_json(
		"{\"weir\": 1, \"entities\": ["
		"{\"name\": \"l\", \"operator\": \"film\", \"parameters\": {\"list\": 0}},"
		"{\"name\": \"r\", \"operator\": \"film\", \"parameters\": {\"list\": 1}},"
		"{\"name\": \"p\", \"operator\": \"watch\", \"conditions\": [{\"type\": \"aligned\", " BOTH
		", \"max_age\": \"15ms\"}]}],"
		"\"connections\": [[\"l.out\", \"p.a\"], [\"r.out\", \"p.b\"]]}",
		(const weir_operator *[]){&film, &watch, NULL});
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_string_equal(seen, "10,10 20,10+ 30,- 40,-");
	check_given_back();
	rig_destroy(rig);
}

static void c12_a_set_lets_go_of_what_is_too_old_for_it(void **state)
{
	(void)state;
	rig_in_worlds(20, let_go_in_time);
}

/* --- holds --- */

/* b is held for the second and third tick, and gives nothing then; its messages wait. */
static void c12_c04_a_held_port_gives_nothing_again(void **state)
{
	(void)state;
	holds_at = 1;
	now.graph = PLAIN;
	now.capacity = 4;
	now.condition = BOTH;
	now.a = "10 20 30 40";
	now.b = "10";
	now.sets = "10,10 20,- 30,- 40,10+";
	rig_in_worlds(20, let_go);
	holds_at = 0;
}

/* b is left out of the first set, whose tick holds it: the set's end does not end the hold. */
static void c12_c04_a_port_that_a_set_lacks_is_held_by_its_tick(void **state)
{
	(void)state;
	holds_at = 1;
	now.graph = PLAIN;
	now.capacity = 4;
	now.condition = BOTH;
	now.a = "10 20 30 40";
	now.b = "20";
	now.sets = "10,- 20,- 30,- 30+,20 40,20+";
	rig_in_worlds(20, let_go);
	holds_at = 0;
}

/* --- device work --- */

#define WORKING                                                                                              \
	"{\"weir\": 1, \"entities\": ["                                                                      \
	"{\"name\": \"l\", \"operator\": \"camera\", \"parameters\": {\"list\": 0}},"                        \
	"{\"name\": \"r\", \"operator\": \"camera\", \"parameters\": {\"list\": 1}},"                        \
	"{\"name\": \"s\", \"operator\": \"spin\", \"parameters\": {\"duration\": \"300us\"}},"              \
	"{\"name\": \"p\", \"operator\": \"see\", " PORTS "\"conditions\": [{\"type\": \"aligned\", %s}]}]," \
	"\"connections\": [[\"l.out\", \"p.a\"], [\"r.out\", \"s.in\"], [\"s.out\", \"p.b\"]]}"

static void c12_c08_what_is_given_again_is_finished(void **state)
{
	(void)state;
	now.graph = WORKING;
	now.capacity = 4;
	now.condition = BOTH;
	now.a = "10 20 30 40";
	now.b = "10 30";
	now.sets = "10,10 20,10+ 30,30 40,30+";
	rig_in_worlds(50, let_go);
	rig_on_host(let_go);
}

/* --- pools --- */

#define POOLED(blocks)                                                                                       \
	"{\"weir\": 1, \"resources\": {\"pool\": {\"type\": \"memory_pool\", \"block_size\": 64, "           \
	"\"blocks\": " blocks "}}, \"entities\": ["                                                          \
	"{\"name\": \"l\", \"operator\": \"film\", \"parameters\": {\"list\": 0}},"                          \
	"{\"name\": \"r\", \"operator\": \"block\", \"parameters\": {\"list\": 1}, "                         \
	"\"resources\": [\"pool\"]},"                                                                        \
	"{\"name\": \"p\", \"operator\": \"see\", " PORTS "\"conditions\": [{\"type\": \"aligned\", %s}]}]," \
	"\"connections\": [[\"l.out\", \"p.a\"], [\"r.out\", \"p.b\"]]}"

static uint64_t used_of_pool(struct rig *rig)
{
	weir_pool_counts counts = {.size = sizeof counts};

	assert_int_equal(weir_scheduler_pool_counts(rig->scheduler, 0, &counts), WEIR_OK);
	return counts.used;
}

static void run_of_pool(void)
{
	struct rig *rig = begin();

	for (int i = 0; i < 3; i++) {
		length = 0;
		assert_int_equal(rig_run(rig), WEIR_OK);
		assert_string_equal(seen, now.sets);
		assert_int_equal(used_of_pool(rig), 0);
	}
	rig_destroy(rig);
}

/* One block in the queue, one that is kept, one that is claimed: what `weir check` asks for. */
static void c12_s03_a_pool_of_the_least_size_does_not_stall(void **state)
{
	(void)state;
	now.graph = POOLED("3");
	now.capacity = 1;
	now.condition = BOTH;
	now.a = "10 20 30 40 50 60 70";
	now.b = "10 30 50 51 52 80 90";
	now.sets = "10,10 20,10+ 30,30 40,30+ 50,50 50+,51 50+,52 60,52+ 70,52+ 70+,80 70+,90";
	rig_in_worlds(50, run_of_pool);
	rig_on_host(run_of_pool);
}

static void stand(void)
{
	struct rig *rig = begin();

	assert_int_equal(rig_run(rig), WEIR_E_DEADLOCK);
	assert_string_equal(seen, "10,10");
	assert_non_null(strstr(rig->outcome.text, now.sets));
	rig_destroy(rig);
}

/* `weir check` warns of it; and the line says where the block is. */
static void c12_s03_a_pool_whose_only_block_is_kept_is_told(void **state)
{
	(void)state;
	now.graph = POOLED("1");
	now.a = "10 20 30";
	now.b = "10 30";
	now.sets = "1 in r.out -> p.b";
	rig_in_worlds(10, stand);
}

/* --- ends --- */

static int end; /* of enum */
enum { STOPPED, DRAINED, FAILED, ENDS };

static void end_in_between(void)
{
	static const weir_status expected[ENDS] = {WEIR_OK, WEIR_OK, WEIR_E_FAILED};
	struct rig *rig = begin();

	for (int i = 0; i < 2; i++) {
		length = 0;
		rig_start(rig);
		if (end == STOPPED) {
			weir_sleep(100 * US);
			weir_scheduler_stop(rig->scheduler, 0);
		}
		assert_int_equal(rig_wait(rig), expected[end]);
		assert_int_equal(rig->outcome.held, 0);
		if (end != DRAINED)
			continue;
		check_given_back();
		assert_int_equal(strncmp(seen, "10,10 20,10+ 30,10+", 19), 0);
	}
	rig_destroy(rig);
	check_given_back();
}

static void c12_s07_e01_what_is_kept_is_given_back_at_each_end(void **state)
{
	(void)state;
	now.graph = PLAIN;
	now.capacity = 2;
	now.condition = BOTH;
	now.a = "10 20 30 40 50 60 70 80 90 100 110 120 130 140 150 160 170 180 190 200 210 220 230 240";
	now.b = "10";
	for (end = STOPPED; end < ENDS; end++) {
		fails_at = end == FAILED ? 3 : 0;
		drains_at = end == DRAINED ? 3 : 0;
		rig_in_worlds(50, end_in_between);
		rig_on_host(end_in_between);
	}
	fails_at = drains_at = 0;
}

/* --- the seeded bugs --- */

#ifdef WR_SEAM
static bool done;
static unsigned lost;

static void run_with_bug(void)
{
	struct rig *rig = begin();

	rig_run(rig);
	done = rig_done(rig, "p");
	lost = 0;
	for (size_t i = 0; i < LISTS; i++)
		for (size_t k = 0; k < MOST; k++)
			if (wr_load(&frames[i][k].state) == ALIVE) {
				lost++;
				weir_message_unref(frames[i][k].message);
			}
	rig_destroy(rig);
}

static void find_bug(unsigned bug)
{
	wr_bug_active = bug;
	rig_in_world(1, run_with_bug);
	wr_bug_active = WR_BUG_NONE;
}

static void c12_the_seeded_bugs_are_found(void **state)
{
	(void)state;
	(void)state;
	now.graph = PLAIN;
	now.capacity = 4;
	now.condition = BOTH ", \"max_age\": \"15ms\"";
	now.a = "10 20 25 26";
	now.b = "10";
	find_bug(WR_BUG_NONE);
	assert_string_equal(seen, "10,10 20,10+ 25,10+ 26,-");
	assert_int_equal(lost, 0);
	assert_true(done);
	find_bug(WR_BUG_REUSED_AGE_REVERSED);
	assert_string_equal(seen, "10,10 20,- 25,- 26,-");
	find_bug(WR_BUG_REUSED_HOLDS_OPEN);
	assert_string_equal(seen, "10,10 20,10+ 25,10+ 26,-");
	assert_false(done);
	find_bug(WR_BUG_REUSED_NOT_GIVEN_BACK);
	assert_int_equal(lost, 3);
	find_bug(WR_BUG_REUSED_UNOWNED);
	assert_true(wr_load(&wrong) > 0);
}
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(c12_a_set_lets_go_of_what_is_too_old_for_it),
		cmocka_unit_test(c12_c04_a_held_port_gives_nothing_again),
		cmocka_unit_test(c12_c04_a_port_that_a_set_lacks_is_held_by_its_tick),
		cmocka_unit_test(c12_c08_what_is_given_again_is_finished),
		cmocka_unit_test(c12_s03_a_pool_of_the_least_size_does_not_stall),
		cmocka_unit_test(c12_s03_a_pool_whose_only_block_is_kept_is_told),
		cmocka_unit_test(c12_s07_e01_what_is_kept_is_given_back_at_each_end),
#ifdef WR_SEAM
		cmocka_unit_test(c12_the_seeded_bugs_are_found),
#endif
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
