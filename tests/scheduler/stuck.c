/* A part of a graph that stands for ever beside another one that goes on (S6): it is told, and nothing else
 * is. */
#include <stdio.h>
#include <string.h>

#include "rig_streams.h"
#include "sim/random.h"

#define BLOCKS(name, n)                                                                                      \
	"{\"" name "\": {\"type\": \"memory_pool\", \"place\": \"host\", \"block_size\": 64, \"blocks\": " n \
	"}}"

/* --- what the log says --- */

static char said[2048];

static void note_errors(weir_log_level level, int64_t at, const char *line, void *arg)
{
	(void)at;
	(void)arg;
	if (level == WEIR_LOG_ERROR && strlen(said) + strlen(line) + 2 < sizeof said)
		strcat(strcat(said, line), "\n");
}

static weir_status emit_block(struct rig *rig, weir_context *context)
{
	weir_message *message = NULL;
	weir_status status = weir_context_create_tensor(context, &rig_one_number, WEIR_TENSOR_HOST, &message);

	(void)rig;
	if (status)
		return status;
	*(int64_t *)weir_message_data(message) = rig_tick(context);
	return weir_context_emit(context, 0, message);
}

/* One of four goes to output 1. */
static weir_status emit_block_mostly_first(struct rig *rig, weir_context *context)
{
	weir_message *message = NULL;

	HOLDS(rig, !weir_context_create_tensor(context, &rig_one_number, WEIR_TENSOR_HOST, &message));
	return weir_context_emit(context, rig_tick(context) == 3, message);
}

static weir_status emit_packed_block(struct rig *rig, weir_context *context)
{
	weir_part part = {sizeof part, "block", NULL};
	weir_message *pack = NULL;
	weir_status status =
		weir_context_create_tensor(context, &rig_one_number, WEIR_TENSOR_HOST, &part.message);

	if (status)
		return status;
	HOLDS(rig, !weir_message_pack(weir_context_graph(context), &part, 1, &pack));
	return weir_context_emit(context, 0, pack);
}

static struct rig *begin(const char *text)
{
	struct rig *rig;

	said[0] = 0;
	weir_log_set(note_errors, NULL);
	rig_resources = strstr(text, "pool=m")      ? BLOCKS("m", "2")
			: strstr(text, "pool=four") ? BLOCKS("four", "4")
						    : NULL;
	rig = rig_of(text);
	rig_resources = NULL;
	for (size_t i = 0; i < rig->entity_count; i++)
		if (strstr(rig->entities[i].name, "block"))
			rig_on(rig, rig->entities[i].name, emit_block);
	return rig;
}

static weir_status end(struct rig *rig)
{
	weir_status status;

	weir_scheduler_stop(rig->scheduler, WEIR_STOP_DRAIN);
	status = rig_wait(rig);
	weir_log_set(NULL, NULL);
	return status;
}

static void assert_told_of(struct rig *rig, const char *text)
{
	rig_start(rig);
	assert_int_equal(weir_scheduler_wait(rig->scheduler, 1010 * MS, NULL), WEIR_E_TIMEOUT);
	assert_says(said, "a part of the graph stands for ever while the rest goes on: ");
	assert_says(said, text);
	assert_int_equal(weir_scheduler_wait(rig->scheduler, 10 * SECOND, NULL), WEIR_E_TIMEOUT);
	assert_ptr_equal(strchr(said, '\n'), said + strlen(said) - 1); /* once */
	assert_int_equal(end(rig), WEIR_E_DEADLOCK);
	assert_non_null(rig->outcome.stuck);
	assert_string_equal(rig->outcome.text, rig->outcome.stuck);
}

static void assert_told(const char *graph, const char *text)
{
	struct rig *rig = begin(graph);

	assert_told_of(rig, text);
	rig_destroy(rig);
}

static void assert_not_told(struct rig *rig, int64_t during)
{
	rig_start(rig);
	assert_int_equal(weir_scheduler_wait(rig->scheduler, during, NULL), WEIR_E_TIMEOUT);
	assert_string_equal(said, "");
}

#define BEAT "; beat:source period=100ms -> live:end"
#define JOIN "s:source -> j:pass take=2 min=2 capacity=2 -> e:end; s -> j.in2"
#define POOL "ablock:call pool=m -> bblock:call pool=m capacity=2 -> e:end"
#define KNOT "a:pass -> b:pass -> a take=2 min=2 capacity=2 initial_messages=1; b -> e:end"

/* --- what stands --- */

static void s06_a_join_that_stands_beside_a_heartbeat_is_told(void **state)
{
	(void)state;
	assert_told(JOIN BEAT, "circular wait: ");
	assert_told(JOIN BEAT, "s.out -> j.in2 is full (1 of 1)");
}

static void s06_a_pool_that_is_too_small_is_told_beside_a_heartbeat(void **state)
{
	(void)state;
	assert_told(POOL BEAT, "raise the size of pool 'm'");
}

static void s06_a_cycle_that_cannot_move_is_told_beside_a_heartbeat(void **state)
{
	(void)state;
	assert_told(KNOT BEAT, "a.in has 1 of 2 messages from b.out");
}

/* It pokes a member each time, for ever. */
static void s06_a_heartbeat_that_pushes_into_what_stands_does_not_hide_it(void **state)
{
	(void)state;
	assert_told("s:source -> x:pass -> j:pass take=2 min=2 capacity=2 -> e:end; x -> j.in2; "
		    "beat:source period=1ms -> x.in2 policy=pop",
		    "x.out -> j.in2 is full (1 of 1)");
}

/* A member may wait for a time as well. */
static void s06_a_period_does_not_hide_what_stands(void **state)
{
	(void)state;
	assert_told("s:source -> j:pass take=2 min=2 capacity=2 period=40s -> e:end; s -> j.in2" BEAT,
		    "s.out -> j.in2 is full (1 of 1)");
}

static void s06_memory_in_parts_of_a_pack_is_kept_as_well(void **state)
{
	struct rig *rig = begin(POOL BEAT);

	(void)state;
	rig_on(rig, "ablock", emit_packed_block);
	assert_told_of(rig, "raise the size of pool 'm'");
	rig_destroy(rig);
}

static void s06_the_entity_that_keeps_most_of_the_memory_is_told(void **state)
{
	struct rig *rig = begin("a:call pool=four blocks=1 -> b:host capacity=4 take=4; "
				"a.out2 -> c:host capacity=2 take=2" BEAT);

	(void)state;
	rig_on(rig, "a", emit_block_mostly_first);
	assert_told_of(rig, "b.in has 3 of 4 messages from a.out; raise");
	rig_destroy(rig);
}

/* Its receivers cannot end what has effects. */
static void s06_an_entity_with_effects_stands_whatever_its_receivers_wait_for(void **state)
{
	(void)state;
	assert_told("s:source -> j:pass take=2 min=2 capacity=2 effects=true -> e:end asynchronous=; "
		    "s -> j.in2" BEAT,
		    "s.out -> j.in2 is full (1 of 1)");
}

static void s06_what_stands_is_told_in_each_run(void **state)
{
	struct rig *rig = begin(JOIN BEAT);

	(void)state;
	assert_told_of(rig, "s.out -> j.in2 is full (1 of 1)");
	said[0] = 0;
	weir_log_set(note_errors, NULL);
	assert_told_of(rig, "s.out -> j.in2 is full (1 of 1)");
	rig_destroy(rig);
}

static weir_status fail_late(struct rig *rig, weir_context *context)
{
	(void)rig;
	return rig_tick(context) < 20 ? WEIR_OK : weir_context_fail(context, "it fails");
}

static void s06_a_failure_is_told_before_what_stood(void **state)
{
	struct rig *rig = begin(JOIN "; beat:call period=100ms");

	(void)state;
	rig_on(rig, "beat", fail_late);
	rig_start(rig);
	assert_int_equal(rig_wait(rig), WEIR_E_FAILED);
	weir_log_set(NULL, NULL);
	assert_says(said, "stands for ever");
	assert_non_null(rig->outcome.stuck);
	assert_string_equal(rig->outcome.cause_entity, "beat");
	rig_destroy(rig);
}

static void s06_what_stands_is_told_after_the_grace_time(void **state)
{
	struct rig *rig = begin(JOIN BEAT);

	(void)state;
	rig->options.deadlock_grace_ns = 3 * SECOND;
	assert_not_told(rig, 3 * SECOND);
	assert_int_equal(weir_scheduler_wait(rig->scheduler, 1010 * MS, NULL), WEIR_E_TIMEOUT);
	assert_says(said, "stands for ever");
	end(rig);
	rig_destroy(rig);
}

/* --- at a drain --- */

static weir_status drain_after(struct rig *rig, int64_t ns)
{
	rig_start(rig);
	if (weir_scheduler_wait(rig->scheduler, ns, NULL) != WEIR_E_TIMEOUT)
		fail_msg("%s", weir_last_error());
	return end(rig);
}

static void assert_told_by_drain(const char *graph, weir_cause cause, const char *entity, const char *on)
{
	struct rig *rig = begin(graph);

	assert_int_equal(drain_after(rig, 15 * MS),
			 WEIR_E_DEADLOCK); /* a stop is seen 10 ms later, at the most */
	assert_string_equal(rig->outcome.text, rig->outcome.stuck);
	assert_int_equal(rig->outcome.cause, cause);
	assert_string_equal(rig->outcome.cause_entity, entity);
	assert_string_equal(rig->outcome.cause_on, on);
	rig_destroy(rig);
}

static void s06_what_stands_when_a_drain_begins_is_told(void **state)
{
	(void)state;
	assert_told_by_drain(JOIN BEAT, WEIR_CAUSE_ROOM, "s", "out");
	assert_says(said, "a part of the graph stands for ever while the rest goes on: ");
	assert_told_by_drain(KNOT BEAT, WEIR_CAUSE_MESSAGES, "a", "in");
}

/* At its begin half of the memory is free. */
static void s06_a_drain_that_comes_to_rest_on_what_stands_is_a_deadlock(void **state)
{
	(void)state;
	assert_told_by_drain(
		"s:source -> ablock:call pool=m period=30ms capacity=8 -> bblock:call pool=m take=2 "
		"min=2 capacity=2 -> e:end",
		WEIR_CAUSE_MEMORY, "bblock", "m");
	assert_says(said, "a part of the graph stands for ever: ");
}

/* `late` would have brought what j lacks. */
static void s06_what_the_drain_itself_cuts_off_is_abandoned(void **state)
{
	struct rig *rig =
		begin("s:source ticks=3 -> p:pass -> j:pass take=3 min=3 capacity=3 -> e:end; p -> j.in2; "
		      "late:source period=40s -> j");

	(void)state;
	assert_int_equal(drain_after(rig, SECOND), WEIR_OK);
	assert_null(rig->outcome.stuck);
	assert_in_range(rig->outcome.abandoned, 1, 9);
	rig_destroy(rig);
}

/* --- random graphs --- */

/* Parts of random lengths of a graph that stand in one of three ways, beside some that go on. */
static void write_graph(struct wr_random *random, char *text, size_t room)
{
	static const char *const stands[] = {JOIN, POOL, KNOT};
	size_t length = (size_t)snprintf(text, room, "%s", stands[wr_random_below(random, 3)]);
	size_t lives = 1 + wr_random_below(random, 3), behind = wr_random_below(random, 3);

	for (size_t i = 0; i < lives; i++) {
		length += (size_t)snprintf(text + length, room - length, "; beat%zu:source period=%dms", i,
					   1 + (int)wr_random_below(random, 400));
		for (uint64_t k = wr_random_below(random, 3); k; k--)
			length +=
				(size_t)snprintf(text + length, room - length, " -> l%zu_%d:pass", i, (int)k);
		length += (size_t)snprintf(text + length, room - length, " -> live%zu:end", i);
	}
	if (behind) /* a join of what stands and what lives */
		snprintf(text + length, room - length, "; %s -> meet:pass -> met:end; beat0 -> meet.in2 %s",
			 strstr(text, "bblock") ? "bblock"
			 : strstr(text, "j:")   ? "j"
						: "b",
			 behind == 1 ? "policy=pop" : "policy=reject");
}

static void s06_each_of_many_that_stand_is_told(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 200; seed++) {
		struct wr_random random;
		char text[1024] = "";
		struct rig *rig;

		wr_random_seed(&random, seed, 7);
		write_graph(&random, text, sizeof text);
		rig = begin(text);
		rig->options.seed = seed;
		rig->options.workers = 1 + (unsigned)wr_random_below(&random, 3);
		rig_start(rig);
		assert_int_equal(weir_scheduler_wait(rig->scheduler, 1510 * MS, NULL), WEIR_E_TIMEOUT);
		if (!strstr(said, "stands for ever"))
			fail_msg("seed %d: %s", (int)seed, text);
		assert_int_equal(end(rig), WEIR_E_DEADLOCK);
		rig_destroy(rig);
	}
}

/* --- what does not --- */

static void s06_what_waits_for_a_time_the_device_or_the_program_does_not_stand(void **state)
{
	static const char *const texts[] = {
		"s:source -> slow:pass period=40s capacity=4 -> e:end" BEAT,
		"s:source ticks=3 work=2300ms -> e:end gate=in capacity=1" BEAT,
		"s:source -> e:end enabled=false" BEAT,
		"s:source -> j:pass take=2 min=2 capacity=2 asynchronous= -> e:end; s -> j.in2" BEAT,
		"s:source period=40s -> j:pass -> e:end; beat:source period=100ms -> j.in2 policy=pop",
	};

	(void)state;
	for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
		struct rig *rig = begin(texts[i]);

		assert_not_told(rig, 5 * SECOND);
		weir_scheduler_stop(rig->scheduler, 0);
		assert_int_equal(end(rig), WEIR_OK);
		assert_null(rig->outcome.stuck);
		rig_destroy(rig);
	}
}

static void s06_a_negative_grace_time_tells_nothing(void **state)
{
	struct rig *rig = begin(JOIN BEAT);

	(void)state;
	rig->options.deadlock_grace_ns = INT64_MAX;
	assert_not_told(rig, 5 * SECOND);
	assert_int_equal(end(rig), WEIR_OK);
	assert_string_equal(said, "");
	rig_destroy(rig);
	rig = begin(POOL);
	rig->options.deadlock_grace_ns = INT64_MAX;
	assert_int_equal(drain_after(rig, SECOND), WEIR_OK);
	assert_string_equal(said, "");
	rig_destroy(rig);
}

/* An open inlet may bring what is missing; what an outlet's program holds may come back. */
static void s06_what_the_program_can_change_does_not_stand(void **state)
{
	struct rig *rig = begin("s:source -> j:pass take=2 min=2 capacity=2 -> e:end; s -> j.in2" BEAT);
	weir_inlet *inlet = NULL;
	weir_outlet *outlet;

	(void)state;
	assert_int_equal(weir_graph_add_inlet(rig->graph, "j.in", &inlet), WEIR_OK);
	assert_not_told(rig, 5 * SECOND);
	end(rig);
	rig_destroy(rig);
	rig = begin("ablock:call pool=m" BEAT);
	outlet = rig_outlet(rig, "ablock.out", 1, 0);
	rig_start(rig);
	assert_int_equal(rig_take(outlet, SECOND), 0);
	assert_int_equal(weir_scheduler_wait(rig->scheduler, 5 * SECOND, NULL), WEIR_E_TIMEOUT);
	assert_string_equal(said, "");
	weir_scheduler_stop(rig->scheduler, 0);
	end(rig);
	rig_destroy(rig);
}

/* The next message of `live` evicts a block. */
static void s06_memory_in_a_queue_that_drops_is_not_kept(void **state)
{
	struct rig *rig = begin("ablock:call pool=m -> p:pass -> bblock:call pool=m capacity=2 policy=pop -> "
				"e:end; live:source period=2s -> p");

	(void)state;
	assert_not_told(rig, 5 * SECOND);
	weir_scheduler_stop(rig->scheduler, 0);
	end(rig);
	rig_destroy(rig);
}

/* One block lies in two queues, one is the program's, two are free; the last entity needs three. */
static void s06_memory_that_two_queues_share_is_kept_once(void **state)
{
	struct rig *rig =
		begin("ablock:call pool=four count=1 -> b:pass -> e:end; ablock -> c:pass -> f:end; "
		      "oblock:call pool=four count=1; "
		      "xblock:call pool=four blocks=3 -> b.in2; xblock -> c.in2" BEAT);
	weir_outlet *outlet = rig_outlet(rig, "oblock.out", 1, 0);
	weir_inlet *inlet = NULL;
	weir_message *message = NULL;

	(void)state;
	assert_int_equal(weir_graph_add_inlet(rig->graph, "xblock.in", &inlet), WEIR_OK);
	rig_start(rig);
	assert_int_equal(weir_outlet_take(outlet, SECOND, &message), WEIR_OK);
	assert_int_equal(weir_inlet_push(inlet, rig_message(rig, 1), 0), WEIR_OK);
	assert_int_equal(weir_scheduler_wait(rig->scheduler, 5 * SECOND, NULL), WEIR_E_TIMEOUT);
	assert_string_equal(said, "");
	weir_message_unref(message);
	weir_scheduler_stop(rig->scheduler, 0);
	end(rig);
	rig_destroy(rig);
}

static weir_status emit_nothing(struct rig *rig, weir_context *context)
{
	(void)rig;
	(void)context;
	return WEIR_OK;
}

/* Nothing is queued in it: it has finished. */
static void s06_what_has_nothing_to_do_does_not_stand(void **state)
{
	struct rig *rig = begin("a:call -> b:pass -> a initial_messages=1" BEAT);

	(void)state;
	rig_on(rig, "a", emit_nothing);
	assert_not_told(rig, 5 * SECOND);
	assert_int_equal(end(rig), WEIR_OK);
	rig_destroy(rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(s06_a_join_that_stands_beside_a_heartbeat_is_told),
		cmocka_unit_test(s06_a_pool_that_is_too_small_is_told_beside_a_heartbeat),
		cmocka_unit_test(s06_a_cycle_that_cannot_move_is_told_beside_a_heartbeat),
		cmocka_unit_test(s06_a_heartbeat_that_pushes_into_what_stands_does_not_hide_it),
		cmocka_unit_test(s06_a_period_does_not_hide_what_stands),
		cmocka_unit_test(s06_memory_in_parts_of_a_pack_is_kept_as_well),
		cmocka_unit_test(s06_the_entity_that_keeps_most_of_the_memory_is_told),
		cmocka_unit_test(s06_an_entity_with_effects_stands_whatever_its_receivers_wait_for),
		cmocka_unit_test(s06_what_stands_is_told_in_each_run),
		cmocka_unit_test(s06_a_failure_is_told_before_what_stood),
		cmocka_unit_test(s06_what_stands_is_told_after_the_grace_time),
		cmocka_unit_test(s06_what_stands_when_a_drain_begins_is_told),
		cmocka_unit_test(s06_a_drain_that_comes_to_rest_on_what_stands_is_a_deadlock),
		cmocka_unit_test(s06_what_the_drain_itself_cuts_off_is_abandoned),
		cmocka_unit_test(s06_each_of_many_that_stand_is_told),
		cmocka_unit_test(s06_what_waits_for_a_time_the_device_or_the_program_does_not_stand),
		cmocka_unit_test(s06_a_negative_grace_time_tells_nothing),
		cmocka_unit_test(s06_what_the_program_can_change_does_not_stand),
		cmocka_unit_test(s06_memory_in_a_queue_that_drops_is_not_kept),
		cmocka_unit_test(s06_memory_that_two_queues_share_is_kept_once),
		cmocka_unit_test(s06_what_has_nothing_to_do_does_not_stand),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
