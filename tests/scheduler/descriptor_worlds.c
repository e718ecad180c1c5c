/*
 * Descriptors in simulated worlds whose atomics are switching points (C9): one fiber writes to a pipe,
 * another changes what is watched, and no readiness is overlooked.
 */
#include <fcntl.h>
#include <unistd.h>

#include "base/thread.h"
#include "rig.h"
#include "tests/bugs/bug.h"

#define TEST(name) static void name(void **state_)

enum { BYTES = 12, SEEDS = 600 };

static int ends[2];
static bool changes;
static unsigned overlooked; /* runs that had to be stopped */

static weir_status watch(weir_entity *entity, int fd)
{
	return weir_entity_watch(entity, "file_descriptor", fd, fd < 0 ? 0 : WEIR_WATCH_READ);
}

static weir_status watch_pipe(struct rig *rig, weir_context *context)
{
	(void)rig;
	return watch(weir_context_entity(context), ends[0]);
}

static weir_status read_byte(struct rig *rig, weir_context *context)
{
	char byte;
	ssize_t count = read(ends[0], &byte, 1);

	HOLDS(rig, count >= 0 || weir_context_tick(context));
	return count ? WEIR_OK : weir_context_finish(context);
}

/* Times that are near the loop's looks, which are 10 ms apart, and others. */
static void write_all(void *arg)
{
	(void)arg;
	for (int i = 0; i < BYTES; i++) {
		weir_sleep((i % 3) * 5 * MS);
		assert_int_equal(write(ends[1], "b", 1), 1);
	}
	close(ends[1]);
}

static void change_watch(void *entity)
{
	for (int i = 0; changes && i < 4; i++) {
		assert_int_equal(watch(entity, -1), WEIR_OK);
		weir_sleep(i * 3 * MS);
		assert_int_equal(watch(entity, ends[0]), WEIR_OK);
		weir_sleep(2 * MS);
	}
}

static void read_in_world(void)
{
	struct rig *rig = rig_of("z:call condition=file_descriptor");
	struct wr_thread writer, changer;

	assert_int_equal(pipe2(ends, O_NONBLOCK | O_CLOEXEC), 0);
	rig_on(rig, "z", read_byte);
	rig_entity(rig, "z")->start = watch_pipe;
	rig_start(rig);
	assert_int_equal(wr_thread_start(&writer, "writer", write_all, NULL), WEIR_OK);
	assert_int_equal(
		wr_thread_start(&changer, "changer", change_watch, weir_graph_entity(rig->graph, "z")),
		WEIR_OK);
	wr_thread_join(&writer);
	wr_thread_join(&changer);
	if (weir_scheduler_wait(rig->scheduler, SECOND, NULL) == WEIR_E_TIMEOUT) {
		overlooked++;
		weir_scheduler_stop(rig->scheduler, 0);
	} else {
		assert_int_equal(rig_ticks(rig, "z"), BYTES + 1);
	}
	assert_int_equal(rig_wait(rig), WEIR_OK);
	rig_destroy(rig);
	close(ends[0]);
}

static unsigned overlooked_with(enum wr_bug bug, bool changed)
{
	overlooked = 0;
	changes = changed;
	wr_bug_active = bug;
	rig_in_worlds(SEEDS, read_in_world);
	wr_bug_active = WR_BUG_NONE;
	return overlooked;
}

TEST(c09_no_readiness_is_overlooked)
{
	(void)state_;
	assert_int_equal(overlooked_with(WR_BUG_NONE, false), 0);
	assert_int_equal(overlooked_with(WR_BUG_NONE, true), 0);
}

TEST(c09_the_seeded_bugs_of_overlooked_readiness_are_found)
{
	(void)state_;
	assert_int_not_equal(overlooked_with(WR_BUG_DESCRIPTOR_POKE_FIRST, false), 0);
	assert_int_not_equal(overlooked_with(WR_BUG_DESCRIPTOR_SILENT, true), 0);
}

/* --- an end that comes while the conditions look --- */

static unsigned ended;

static weir_status beat(weir_context *context, void *state)
{
	(void)state;
	return weir_context_emit(context, 0, rig_number(context, 1));
}

static const weir_port out[] = {{.size = sizeof *out, .name = "out"}, {.name = NULL}};
static const weir_operator beats = {.size = sizeof beats, .name = "beats", .outputs = out, .compute = beat};

static weir_status watch_silence(weir_context *context, void *state, const weir_values *values)
{
	(void)state;
	(void)values;
	return weir_entity_watch(weir_context_entity(context), "end_or_news", ends[0], WEIR_WATCH_READ);
}

static weir_status take_end(weir_context *context, void *state)
{
	(void)state;
	if (!weir_context_ended(context, 0))
		return WEIR_OK;
	ended++;
	return weir_context_finish(context);
}

static const weir_port in[] = {{.size = sizeof *in, .name = "in"}, {.name = NULL}};
static const weir_operator takes_end = {.size = sizeof takes_end,
					.name = "takes_end",
					.inputs = in,
					.start = watch_silence,
					.compute = take_end};

/* As a sink does that has to tell the end to another process. */
static void end_or_news_ask(const void *state, weir_view *view, weir_verdict *verdict)
{
	(void)state;
	if (weir_view_closed(view, 0) || weir_view_count(view, 0) ||
	    weir_view_watched(view) == WEIR_WATCHED_READY) {
		weir_verdict_ready(verdict);
		return;
	}
	weir_verdict_wait(verdict, "neither a message nor the end");
	weir_verdict_watched(verdict);
}

static const weir_parameter of_port[] = {
	{.size = sizeof *of_port, .name = "port", .type = WEIR_TYPE_INPUT, .help = "the input"},
	{.name = NULL}};
static const weir_condition end_or_news = {.size = sizeof end_or_news,
					   .name = "end_or_news",
					   .parameters = of_port,
					   .ask = end_or_news_ask,
					   .flags = WEIR_CONDITION_TIMELESS};

static void drain_in_world(void)
{
	struct rig *rig;

	assert_int_equal(pipe2(ends, O_NONBLOCK | O_CLOEXEC), 0);
	rig = rig_of_json(
		"{\"weir\": 1, \"entities\": [{\"name\": \"a\", \"operator\": \"beats\", \"conditions\": ["
		"{\"type\": \"periodic\", \"period\": \"1ms\"}]},"
		"{\"name\": \"z\", \"operator\": \"takes_end\", \"conditions\": ["
		"{\"type\": \"end_or_news\", \"port\": \"in\"}]}],"
		"\"connections\": [[\"a.out\", \"z.in\"]]}",
		(const weir_operator *const[]){&beats, &takes_end, NULL});
	rig->options.workers = 2;
	rig_start(rig);
	weir_sleep(3 * MS);
	weir_scheduler_stop(rig->scheduler, WEIR_STOP_DRAIN);
	assert_int_equal(rig_wait(rig), WEIR_OK);
	rig_destroy(rig);
	close(ends[0]);
	close(ends[1]);
}

static unsigned not_ended_with(enum wr_bug bug)
{
	ended = 0;
	wr_bug_active = bug;
	rig_in_worlds(SEEDS, drain_in_world);
	wr_bug_active = WR_BUG_NONE;
	return SEEDS - ended;
}

TEST(s07_an_entity_is_told_of_the_end_that_comes_while_it_is_reviewed)
{
	(void)state_;
	rig_conditions = (const weir_condition *[]){&end_or_news, NULL};
	assert_int_equal(not_ended_with(WR_BUG_NONE), 0);
	assert_int_not_equal(not_ended_with(WR_BUG_DRAIN_ENDS_UNSEEN), 0);
	rig_conditions = NULL;
}

/* --- a descriptor that is watched while the run goes on --- */

static weir_status watch_meanwhile(weir_context *context, void *state, const weir_values *values)
{
	(void)state;
	(void)values;
	return weir_entity_watch(weir_context_entity(context), "meanwhile", ends[0], WEIR_WATCH_READ);
}

static weir_status take_byte(weir_context *context, void *state)
{
	char byte;

	(void)context;
	(void)state;
	ended += read(ends[0], &byte, 1) == 1;
	return WEIR_OK;
}

static weir_status rest(weir_context *context, void *state)
{
	(void)context;
	(void)state;
	return WEIR_OK;
}

static const weir_operator rests = {.size = sizeof rests, .name = "rests", .compute = rest};
static const weir_operator takes_bytes = {
	.size = sizeof takes_bytes, .name = "takes_bytes", .start = watch_meanwhile, .compute = take_byte};

static void meanwhile_ask(const void *state, weir_view *view, weir_verdict *verdict)
{
	(void)state;
	if (weir_view_watched(view) == WEIR_WATCHED_READY) {
		weir_verdict_ready(verdict);
		return;
	}
	weir_verdict_wait(verdict, "no byte");
	weir_verdict_watched_meanwhile(verdict);
}

static const weir_condition meanwhile = {.size = sizeof meanwhile,
					 .name = "meanwhile",
					 .ask = meanwhile_ask,
					 .flags = WEIR_CONDITION_TIMELESS};

/* The beats take 50 ms; what comes in that time is taken, and nothing holds the run open behind it. */
static void take_meanwhile_in_world(void)
{
	struct rig *rig;

	assert_int_equal(pipe2(ends, O_NONBLOCK | O_CLOEXEC), 0);
	rig = rig_of_json("{\"weir\": 1, \"entities\": [{\"name\": \"a\", \"operator\": \"rests\", "
			  "\"conditions\": [{\"type\": \"periodic\", \"period\": \"1ms\"}, "
			  "{\"type\": \"count\", \"count\": 51}]},"
			  "{\"name\": \"z\", \"operator\": \"takes_bytes\", \"conditions\": ["
			  "{\"type\": \"meanwhile\"}]}]}",
			  (const weir_operator *const[]){&rests, &takes_bytes, NULL});
	rig->options.workers = 2;
	rig->options.deadlock_grace_ns = INT64_MAX;
	rig_start(rig);
	for (int i = 0; i < 2; i++) {
		weir_sleep(15 * MS);
		assert_int_equal(write(ends[1], "b", 1), 1);
	}
	if (weir_scheduler_wait(rig->scheduler, SECOND, NULL) == WEIR_E_TIMEOUT) {
		ended = 0;
		weir_scheduler_stop(rig->scheduler, 0);
	}
	assert_int_equal(rig_wait(rig), WEIR_OK);
	rig_destroy(rig);
	close(ends[0]);
	close(ends[1]);
}

TEST(s04_c09_what_is_watched_meanwhile_wakes_and_holds_no_run_open)
{
	(void)state_;
	rig_conditions = (const weir_condition *[]){&meanwhile, NULL};
	ended = 0;
	rig_in_worlds(SEEDS, take_meanwhile_in_world);
	assert_int_equal(ended, 2 * SEEDS);
	rig_conditions = NULL;
}

static bool by_fence;
static weir_fence promise;

/* It waits for a time or a fence, too, and ends with it. */
static void bounded_ask(const void *state, weir_view *view, weir_verdict *verdict)
{
	bool over =
		by_fence ? weir_view_fence_complete(view, promise) : weir_view_now(view) >= SECOND + 50 * MS;

	(void)state;
	if (weir_view_watched(view) == WEIR_WATCHED_READY) {
		weir_verdict_ready(verdict);
		return;
	}
	if (over) {
		weir_verdict_never(verdict, "over");
		return;
	}
	weir_verdict_wait(verdict, "no byte");
	weir_verdict_watched_meanwhile(verdict);
	if (by_fence)
		weir_verdict_fence(verdict, promise);
	else
		weir_verdict_until(verdict, SECOND + 50 * MS);
}

static const weir_condition bounded = {.size = sizeof bounded, .name = "meanwhile", .ask = bounded_ask};

static void take_until_over_in_world(void)
{
	struct rig *rig;

	assert_int_equal(pipe2(ends, O_NONBLOCK | O_CLOEXEC), 0);
	rig = rig_of_json("{\"weir\": 1, \"entities\": [{\"name\": \"z\", \"operator\": \"takes_bytes\", "
			  "\"conditions\": [{\"type\": \"meanwhile\"}]}]}",
			  (const weir_operator *const[]){&takes_bytes, NULL});
	rig_make(rig);
	assert_int_equal(weir_graph_create_fence(rig->graph, &promise), WEIR_OK);
	rig_start(rig);
	(void)weir_scheduler_wait(rig->scheduler, 20 * MS, NULL);
	assert_int_equal(write(ends[1], "b", 1), 1);
	(void)weir_scheduler_wait(rig->scheduler, 20 * MS, NULL);
	assert_int_equal(weir_fence_complete(rig->graph, promise, WEIR_OK, NULL), WEIR_OK);
	assert_int_equal(rig_wait(rig), WEIR_OK);
	rig_destroy(rig);
	close(ends[0]);
	close(ends[1]);
}

TEST(s04_c09_what_is_awaited_beside_a_watched_descriptor_holds_the_run_open)
{
	(void)state_;
	rig_conditions = (const weir_condition *[]){&bounded, NULL};
	for (int i = 0; i < 2; i++) {
		by_fence = i;
		ended = 0;
		rig_in_worlds(10, take_until_over_in_world);
		assert_int_equal(ended, 10);
	}
	rig_conditions = NULL;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(s07_an_entity_is_told_of_the_end_that_comes_while_it_is_reviewed),
		cmocka_unit_test(s04_c09_what_is_watched_meanwhile_wakes_and_holds_no_run_open),
		cmocka_unit_test(s04_c09_what_is_awaited_beside_a_watched_descriptor_holds_the_run_open),
		cmocka_unit_test(c09_no_readiness_is_overlooked),
		cmocka_unit_test(c09_the_seeded_bugs_of_overlooked_readiness_are_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
