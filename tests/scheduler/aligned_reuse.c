/*
 * Runs in which `aligned` gives the last message of a port again ("reuse"): which one, for how long, who
 * holds it, and that it is given back once, however the run ends.
 */
#include <stdio.h>
#include <string.h>

#include "cameras.h"
#include "rig.h"
#ifdef WR_SEAM
#include "tests/bugs/bug.h"
#endif

/* --- operators --- */

enum { FREE, ALIVE, GIVEN_BACK };
struct frame {
	_Atomic int state;
	weir_message *message;
};
static struct frame frames[LISTS][MOST];
static _Atomic unsigned twice; /* given back */

static void give_back(void *pointer)
{
	struct frame *frame = pointer;

	if (wr_exchange(&frame->state, GIVEN_BACK) != ALIVE)
		wr_fetch_add(&twice, 1);
}

/* Messages that tell when they are freed. */
static weir_status film_compute(weir_context *context, void *state)
{
	struct camera *self = state;
	struct frame *frame = &frames[self->list][self->next];
	weir_stamp stamp = lists[self->list][self->next++];
	weir_message *message = NULL;
	weir_status status;

	if (!stamp.time)
		return weir_context_finish(context);
	wr_store(&frame->state, ALIVE);
	status = weir_message_wrap_user(weir_context_graph(context), frame, give_back, &message);
	frame->message = message;
	if (!status)
		status = weir_message_set_stamp(message, stamp);
	return status ? status : weir_context_emit(context, 0, message);
}

/* Blocks of its pool. */
static weir_status block_compute(weir_context *context, void *state)
{
	static const int64_t one = 1;
	static const weir_tensor like = {
		.size = sizeof like, .dimensions = 1, .shape = &one, .code = 1, .bits = 32};
	struct camera *self = state;
	weir_stamp stamp = lists[self->list][self->next++];
	weir_message *message = NULL;
	weir_status status;

	if (!stamp.time)
		return weir_context_finish(context);
	status = weir_context_create_tensor(context, &like, 0, &message);
	if (!status)
		status = weir_message_set_stamp(message, stamp);
	return status ? status : weir_context_emit(context, 0, message);
}

static char seen[4000];
static size_t length;
static uint64_t fails_at, drains_at, holds_at; /* ticks; 0: at none */
static _Atomic unsigned wrong;                 /* what a tick must never see */

static void check_message(weir_context *context, unsigned input)
{
	weir_message *message = weir_context_message(context, input, 0);
	const struct frame *frame =
		weir_message_kind(message) == WEIR_KIND_USER ? weir_message_data(message) : NULL;
	bool freed = frame && wr_load(&((struct frame *)frame)->state) != ALIVE;
	weir_fence fences[4];
	size_t count = weir_message_fences(message, 4, fences);
	bool unfinished = false;

	for (size_t i = 0; i < count; i++) /* C8 */
		unfinished |= weir_fence_query(weir_context_graph(context), fences[i]) != WEIR_OK;
	if (freed || unfinished || weir_message_unique(message))
		wr_fetch_add(&wrong, 1);
}

/* "10,20+": the times of what it receives, in ms; +: again. */
static weir_status see_compute(weir_context *context, void *state)
{
	uint64_t tick = weir_context_tick(context) + 1;

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		size_t count = weir_context_count(context, i);
		const char *before = i ? "," : length ? " " : "";
		int64_t age = weir_context_age(context, i);

		if (i == 2 && !count)
			break;
		if (count)
			check_message(context, i);
		if (count > 1 || (!count && age != -1) || age < -1)
			wr_fetch_add(&wrong, 1);
		length +=
			count ? (size_t)snprintf(
					seen + length, sizeof seen - length, "%s%g%s", before,
					(double)weir_message_stamp(weir_context_message(context, i, 0)).time /
						1e6,
					age >= 0 ? "+" : "")
			      : (size_t)snprintf(seen + length, sizeof seen - length, "%s-", before);
	}
	if (holds_at && (tick == holds_at || tick == holds_at + 2))
		weir_context_hold(context, 1, tick == holds_at ? 0 : WEIR_HOLD_END);
	if (tick == drains_at)
		weir_context_drain(context, NULL);
	return tick == fails_at ? weir_context_fail(context, "as told") : WEIR_OK;
}

static const weir_port see_inputs[] = {{.size = sizeof(weir_port), .name = "a"},
				       {.size = sizeof(weir_port), .name = "b"},
				       {.size = sizeof(weir_port), .name = "c", .flags = WEIR_PORT_OPTIONAL},
				       {.name = NULL}};
static const weir_operator see = {.size = sizeof(weir_operator),
				  .name = "see",
				  .help = "notes what it receives",
				  .inputs = see_inputs,
				  .compute = see_compute};
static const weir_operator film = {.size = sizeof(weir_operator),
				   .name = "film",
				   .help = "emits what a list says",
				   .state_size = sizeof(struct camera),
				   .parameters = camera_parameters,
				   .outputs = camera_outputs,
				   .start = camera_start,
				   .compute = film_compute};
static const weir_operator block = {.size = sizeof(weir_operator),
				    .name = "block",
				    .help = "emits blocks of a pool, as a list says",
				    .state_size = sizeof(struct camera),
				    .parameters = camera_parameters,
				    .outputs = camera_outputs,
				    .start = camera_start,
				    .compute = block_compute};

/* --- graphs --- */

#define BOTH  "\"ports\": [\"a\", \"b\"], \"by\": \"time\", \"missing\": \"reuse\""
#define PORTS "\"ports\": {\"a\": {\"capacity\": %u}, \"b\": {\"capacity\": %u}}, "
#define PLAIN                                                                                                \
	"{\"weir\": 1, \"entities\": ["                                                                      \
	"{\"name\": \"l\", \"operator\": \"film\", \"parameters\": {\"list\": 0}},"                          \
	"{\"name\": \"r\", \"operator\": \"film\", \"parameters\": {\"list\": 1}},"                          \
	"{\"name\": \"p\", \"operator\": \"see\", " PORTS "\"conditions\": [{\"type\": \"aligned\", %s}]}]," \
	"\"connections\": [[\"l.out\", \"p.a\"], [\"r.out\", \"p.b\"]]}"

static struct {
	const char *graph, *condition, *a, *b, *sets;
	unsigned capacity;
	uint64_t reused; /* at both ports */
} now;

static struct rig *begin(void)
{
	char json[2000];

	length = 0;
	seen[0] = 0;
	wr_store(&wrong, 0);
	wr_store(&twice, 0);
	for (size_t i = 0; i < LISTS; i++)
		for (size_t k = 0; k < MOST; k++)
			wr_store(&frames[i][k].state, FREE);
	fill(0, now.a);
	fill(1, now.b);
	snprintf(json, sizeof json, now.graph, now.capacity, now.capacity, now.condition);
	return rig_of_json(json, (const weir_operator *[]){&film, &block, &see, &camera, NULL});
}

static void check_given_back(void)
{
	assert_int_equal(wr_load(&wrong), 0);
	assert_int_equal(wr_load(&twice), 0);
	for (size_t i = 0; i < LISTS; i++)
		for (size_t k = 0; k < MOST; k++)
			assert_int_not_equal(wr_load(&frames[i][k].state), ALIVE);
}

static void check_counts(struct rig *rig)
{
	weir_queue_counts a = rig_queue(rig, "p.a"), b = rig_queue(rig, "p.b");
	weir_frames sink = {.size = sizeof(sink)};

	assert_int_equal(weir_scheduler_frames(rig->scheduler, &sink), WEIR_OK);
	assert_int_equal(sink.frames, rig_counts(rig, "p").ticks); /* no port gives each frame once */
	assert_int_equal(a.reused + b.reused, now.reused);
	assert_int_equal(a.pushed, a.delivered + a.unmatched + a.closed);
	assert_int_equal(b.pushed, b.delivered + b.unmatched + b.closed);
	assert_int_equal(rig_counts(rig, "p").received, a.delivered + b.delivered + now.reused);
	assert_int_equal(rig->outcome.held, 0);
	assert_int_equal(rig->outcome.leftover, 0);
}

/* A second run begins with nothing kept. */
static void run_twice(void)
{
	struct rig *rig = begin();

	for (int i = 0; i < 2; i++) {
		length = 0;
		assert_int_equal(rig_run(rig), WEIR_OK);
		assert_string_equal(seen, now.sets);
		check_counts(rig);
		check_given_back();
		assert_true(rig_done(rig, "p")); /* what is kept is none that it waits with (S5) */
	}
	rig_destroy(rig);
}

static void expect(unsigned capacity, const char *condition, const char *a, const char *b, const char *sets,
		   uint64_t reused)
{
	now.graph = PLAIN;
	now.capacity = capacity;
	now.condition = condition;
	now.a = a;
	now.b = b;
	now.sets = sets;
	now.reused = reused;
	rig_in_worlds(30, run_twice);
	rig_on_host(run_twice);
}

/* --- what is given --- */

static void c12_e05_s05_a_port_gives_its_last_message_again(void **state)
{
	(void)state;
	expect(4, BOTH, "10 20 30 40", "20", "10,- 20,20 30,20+ 40,20+", 2);
	expect(1, BOTH, "10 30 50", "20 40", "10,- 10+,20 30,20+ 30+,40 50,40+", 4);
	expect(4, BOTH ", \"within\": \"2ms\"", "10 20 30", "11 21.5 40", "10,11 20,21.5 30,21.5+ 30+,40", 2);
}

static void c12_what_is_too_old_is_not_given(void **state)
{
	(void)state;
	expect(4, BOTH ", \"max_age\": \"15ms\"", "10 20 25 26 60", "10 70",
	       "10,10 20,10+ 25,10+ 26,- 60,- 60+,70", 3);
	expect(4, BOTH ", \"max_age\": \"1ms\"", "10 20", "9 20", "-,9 10,9+ 20,20", 1);
}

/* by their numbers: lists number from 1 */
static void c12_ages_of_tags_count_tags(void **state)
{
	(void)state;
	expect(4, "\"ports\": [\"a\", \"b\"], \"by\": \"tag\", \"missing\": \"reuse\", \"max_age_tags\": 2",
	       "10 20 30 40 50", "5", "10,5 20,5+ 30,5+ 40,- 50,-", 2);
}

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

/* --- what is said of it --- */

#define FED                                                                                                  \
	"{\"weir\": 1, \"inlets\": [\"p.a\"], \"entities\": ["                                               \
	"{\"name\": \"r\", \"operator\": \"film\", \"parameters\": {\"list\": 1}},"                          \
	"{\"name\": \"p\", \"operator\": \"see\", " PORTS                                                    \
	"\"conditions\": [{\"type\": \"aligned\", %s}]}], \"connections\": [[\"r.out\", \"p.b\"]]}"

static void push(struct rig *rig, weir_inlet *inlet, int64_t ms)
{
	weir_message *message = NULL;

	assert_int_equal(weir_message_create_empty(rig->graph, &message), WEIR_OK);
	assert_int_equal(weir_message_set_stamp(message, (weir_stamp){ms * MS, 1}), WEIR_OK);
	assert_int_equal(weir_inlet_push(inlet, message, -1), WEIR_OK);
}

static void explain_what_is_kept(void)
{
	struct rig *rig = begin();
	weir_inlet *inlet = NULL;

	assert_int_equal(weir_graph_add_inlet(rig->graph, "p.a", &inlet), WEIR_OK);
	rig_start(rig);
	push(rig, inlet, 10);
	weir_sleep(20 * MS);
	push(rig, inlet, 20);
	weir_sleep(10 * MS);
	assert_string_equal(seen, now.sets);
	assert_says(rig_explain(rig), "p: aligned on a: WAIT (no messages that belong together, 'a' shows a "
				      "message of 10");
	assert_says(rig->explained, ", 'b' shows a message of 30");
	weir_inlet_close(inlet);
	assert_int_equal(rig_wait(rig), WEIR_OK);
	assert_int_equal(rig->outcome.held, 0);
	rig_destroy(rig);
	check_given_back();
}

static void c12_c05_it_is_explained_how_old_what_is_kept_is(void **state)
{
	(void)state;
	now.graph = FED;
	now.capacity = 4;
	now.condition = BOTH;
	now.a = "";
	now.b = "10";
	now.sets = "10,10 20,10+";
	rig_in_worlds(10, explain_what_is_kept);
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
		cmocka_unit_test(c12_e05_s05_a_port_gives_its_last_message_again),
		cmocka_unit_test(c12_what_is_too_old_is_not_given),
		cmocka_unit_test(c12_ages_of_tags_count_tags),
		cmocka_unit_test(c12_a_set_lets_go_of_what_is_too_old_for_it),
		cmocka_unit_test(c12_c04_a_held_port_gives_nothing_again),
		cmocka_unit_test(c12_c08_what_is_given_again_is_finished),
		cmocka_unit_test(c12_s03_a_pool_of_the_least_size_does_not_stall),
		cmocka_unit_test(c12_s03_a_pool_whose_only_block_is_kept_is_told),
		cmocka_unit_test(c12_s07_e01_what_is_kept_is_given_back_at_each_end),
		cmocka_unit_test(c12_c05_it_is_explained_how_old_what_is_kept_is),
#ifdef WR_SEAM
		cmocka_unit_test(c12_the_seeded_bugs_are_found),
#endif
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
