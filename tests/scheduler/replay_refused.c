/* T13: what cannot be replayed is enqueued, with its reason; misuse. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "replay_rig.h"
#include "tests/calls.h"

static const char *const reasons[TROUBLES] = {
	NULL,
	"no fences",
	"a tensor was made in enqueue",
	"a message was emitted in enqueue",
	"cannot wait",
	"its stream and the entity's named ones",
	"was not joined",
	NULL, /* it may be allocated the next time */
	"its stream and the entity's named ones",
	"a replay within a replay",
	"not this time",
};

/* --- what cannot be captured --- */

static void refuse_each(void)
{
	for (enum trouble trouble = RECORDS; trouble < TROUBLES; trouble++) {
		struct rig *rig = rig_for(CHAIN " -> end; a.out2 -> other:end capacity=50");

		rig_on(rig, "a", replay_sum);
		work.trouble = trouble;
		assert_int_equal(rig_run(rig), WEIR_OK);
		assert_string_equal(rig_text(rig, "end"), sums());
		if (reasons[trouble]) {
			assert_true(rig_counts(rig, "a").replay_failures > 0);
			assert_int_equal(rig_counts(rig, "a").replay_hits, 0);
			assert_int_equal(said.lines, 1);
			assert_says(said.text, "a: replay FAILED: ");
			assert_null(strstr(said.text, "FAILED: a: "));
			assert_says(said.text, reasons[trouble]);
		}
		rig_destroy(rig);
	}
}

TEST(t13_what_a_capture_refuses_is_enqueued_and_said_once)
{
	(void)state_;
	rig_everywhere(refuse_each);
}

static weir_status enqueue_failure(weir_context *context, weir_stream *stream, void *arg)
{
	(void)stream;
	(void)arg;
	return weir_context_fail(context, "no weights");
}

static weir_status replay_failure(struct rig *rig, weir_context *context)
{
	int64_t tick = rig_tick(context);
	struct rig_sum sum = {&blocks[1][0], {NULL, NULL}, tick, 0};

	rig_refused(rig, weir_context_replay(context, "key", 3, enqueue_failure, NULL), WEIR_E_FAILED,
		    "no weights");
	HOLDS(rig, !enqueue_block(context, current_stream(context), &sum));
	return WEIR_OK;
}

static void fail_each_time(void)
{
	struct rig *rig = rig_for("a:call count=5");

	rig_on(rig, "a", replay_failure);
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_int_equal(blocks[1][0], 4);
	rig_destroy(rig);
}

TEST(t13_the_status_of_enqueue_is_returned_and_the_stream_stays_usable)
{
	(void)state_;
	rig_everywhere(fail_each_time);
}

static weir_status enqueue_nothing(weir_context *context, weir_stream *stream, void *arg)
{
	(void)context;
	(void)stream;
	(void)arg;
	work.calls++;
	return WEIR_OK;
}

static weir_status replay_nothing(struct rig *rig, weir_context *context)
{
	(void)rig;
	return weir_context_replay(context, "key", 3, enqueue_nothing, NULL);
}

static void replay_of_nothing(void)
{
	struct rig *rig = rig_for("a:call count=10");

	rig_on(rig, "a", replay_nothing);
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_int_equal(work.calls, 10);
	assert_int_equal(rig_counts(rig, "a").replay_failures, 1);
	assert_says(said.text, "put nothing on the streams");
	rig_destroy(rig);
}

TEST(t13_an_enqueue_of_nothing_is_said_and_called_once_a_tick)
{
	(void)state_;
	rig_everywhere(replay_of_nothing);
}

/* --- misuse --- */

static weir_status misuse(struct rig *rig, weir_context *context)
{
	static const char key[300] = "";

	rig_refused(rig, weir_context_replay(context, key, 0, enqueue_nothing, NULL), WEIR_E_INVALID,
		    "key of 0");
	rig_refused(rig, weir_context_replay(context, key, 257, enqueue_nothing, NULL), WEIR_E_INVALID,
		    "key of 257");
	rig_refused(rig, weir_context_replay(context, NULL, 8, enqueue_nothing, NULL), WEIR_E_INVALID,
		    "needs a key");
	rig_refused(rig, weir_context_replay(context, key, 8, NULL, NULL), WEIR_E_INVALID,
		    "needs a function");
	HOLDS(rig, !weir_context_replay(context, key, 256, enqueue_nothing, NULL));
	rig_refused(rig, weir_context_replay(context, key, 256, enqueue_nothing, NULL), WEIR_E_INVALID,
		    "in this tick already");
	return WEIR_OK;
}

static weir_status misuse_in_start(struct rig *rig, weir_context *context)
{
	rig_refused(rig, weir_context_replay(context, "k", 1, enqueue_nothing, NULL), WEIR_E_INVALID,
		    "for compute only");
	return WEIR_OK;
}

static void misuse_all(void)
{
	struct rig *rig = rig_for("a:call count=4");

	rig_on(rig, "a", misuse);
	rig_entity(rig, "a")->start = misuse_in_start;
	assert_int_equal(rig_run(rig), WEIR_OK);
	rig_destroy(rig);
}

TEST(t13_bad_keys_and_calls_outside_of_compute_are_refused)
{
	(void)state_;
	rig_everywhere(misuse_all);
}

/* The key is the operator's; that the second call finds other scratch memory in use does not matter. */
static weir_status repeat_key(struct rig *rig, weir_context *context)
{
	void *memory = NULL;

	HOLDS(rig, !weir_context_replay(context, "a", 1, enqueue_nothing, NULL));
	HOLDS(rig, !weir_context_scratch(context, NULL, 512, &memory));
	rig_refused(rig, weir_context_replay(context, "a", 1, enqueue_nothing, NULL), WEIR_E_INVALID,
		    "in this tick already");
	HOLDS(rig, !weir_context_replay(context, "b", 1, enqueue_nothing, NULL));
	HOLDS(rig, !weir_context_scratch(context, NULL, 512, &memory));
	rig_refused(rig, weir_context_replay(context, "a", 1, enqueue_nothing, NULL), WEIR_E_INVALID,
		    "in this tick already");
	return WEIR_OK;
}

static void repeat_keys(void)
{
	struct rig *rig = rig_for("a:call count=6");

	rig_on(rig, "a", repeat_key);
	assert_int_equal(rig_run(rig), WEIR_OK);
	rig_destroy(rig);
}

TEST(t13_t11_a_key_is_refused_twice_in_a_tick_also_with_scratch_memory_in_between)
{
	(void)state_;
	rig_everywhere(repeat_keys);
}

/* Scratch memory on as many streams as `told` says, then a replay. */
static weir_status use_many_stacks(struct rig *rig, weir_context *context)
{
	struct rig_sum sum = {&blocks[1][0], {NULL, NULL}, rig_tick(context), 0};
	weir_status status = WEIR_OK;

	for (unsigned i = 0; !status && i < wr_load(&rig->told); i++) {
		char name[8];
		weir_stream *stream = NULL;
		void *memory = NULL;

		snprintf(name, sizeof name, "s%u", i);
		status = weir_context_allocate_stream(context, name, &stream);
		if (!status)
			status = weir_context_scratch(context, stream, 64, &memory);
	}
	work.calls = 0;
	return status ? status : weir_context_replay(context, "key", 3, enqueue_block, &sum);
}

static void stacks_beyond_the_most(void)
{
	for (unsigned stacks = 8; stacks <= 9; stacks++) {
		struct rig *rig = rig_for("a:call count=10");

		wr_store(&rig->told, stacks);
		rig_on(rig, "a", use_many_stacks);
		assert_int_equal(rig_run(rig), WEIR_OK);
		assert_int_equal(rig_counts(rig, "a").replay_failures, stacks - 8);
		assert_int_equal(rig_counts(rig, "a").replay_hits > 0, stacks == 8);
		assert_int_equal(said.lines, stacks - 8);
		if (stacks > 8)
			assert_says(said.text,
				    "a: replay FAILED: it has scratch memory on more than 8 streams");
		rig_destroy(rig);
	}
}

TEST(t13_t11_scratch_memory_on_too_many_streams_is_said_and_counted_once)
{
	(void)state_;
	rig_everywhere(stacks_beyond_the_most);
}

static bool captured(void *self, int device, void *stream)
{
	(void)self;
	(void)device;
	(void)stream;
	return true;
}

static weir_status replay_captured(struct rig *rig, weir_context *context)
{
	const struct wr_backend *real = rig_real_backend(rig);

	rig_give_native(current_stream(context));
	rig->own_backend->capturing = captured;
	rig_refused(rig, weir_context_replay(context, "key", 3, enqueue_nothing, NULL), WEIR_E_UNSUPPORTED,
		    "is being captured");
	rig->own_backend->capturing = real->capturing;
	return WEIR_OK;
}

static void replay_on_captured(void)
{
	struct rig *rig = rig_for("a:call count=3");

	rig_on(rig, "a", replay_captured);
	rig_make(rig);
	(void)rig_own_backend(rig);
	assert_int_equal(rig_run(rig), WEIR_OK);
	rig_restore_backend(rig);
	rig_destroy(rig);
}

TEST(t13_a_stream_that_the_program_captures_is_refused)
{
	(void)state_;
	rig_everywhere(replay_on_captured);
}

static void without_graphs(void)
{
	struct rig *rig = rig_for(CHAIN " -> end");

	rig_make(rig);
	rig_own_backend(rig)->capture_begin = NULL;
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_string_equal(rig_text(rig, "end"), sums());
	assert_int_equal(work.calls, TICKS);
	assert_int_equal(said.lines, 1);
	assert_says(said.text, "has no graphs");
	rig_restore_backend(rig);
	rig_destroy(rig);
}

TEST(t13_a_device_without_graphs_is_said_once)
{
	(void)state_;
	rig_everywhere(without_graphs);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(t13_what_a_capture_refuses_is_enqueued_and_said_once),
		cmocka_unit_test(t13_the_status_of_enqueue_is_returned_and_the_stream_stays_usable),
		cmocka_unit_test(t13_an_enqueue_of_nothing_is_said_and_called_once_a_tick),
		cmocka_unit_test(t13_bad_keys_and_calls_outside_of_compute_are_refused),
		cmocka_unit_test(
			t13_t11_a_key_is_refused_twice_in_a_tick_also_with_scratch_memory_in_between),
		cmocka_unit_test(t13_t11_scratch_memory_on_too_many_streams_is_said_and_counted_once),
		cmocka_unit_test(t13_a_stream_that_the_program_captures_is_refused),
		cmocka_unit_test(t13_a_device_without_graphs_is_said_once),
	};

	weir_log_set(note_line, NULL);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
