/*
 * A stream of the program as the current one of an entity (T14, T6): the entity's work is in one queue with
 * what the program enqueues.
 */
#include <string.h>

#include "rig_inside.h"
#include "rig_streams.h"
#include "tests/calls.h"

static weir_stream *stream_of(struct rig *rig)
{
	weir_stream *stream = NULL;

	assert_int_equal(weir_graph_add_stream(rig->graph, 0, &stream), WEIR_OK);
	return stream;
}

static weir_status use(struct rig *rig, const char *entity, weir_stream *stream)
{
	return weir_entity_use_stream(weir_graph_entity(rig->graph, entity), stream);
}

static int64_t base; /* which a kernel of the program sets; the entity's kernel reads it */
static weir_stream *programs;

static void set_base(weir_stream *stream, int64_t number)
{
	struct rig_sum sum = {&base, {NULL, NULL}, number, 20 * MS};

	base = -1000;
	assert_int_equal(weir_stream_launch(stream, &rig_adder, &sum, sizeof sum), WEIR_OK);
}

/* Adds the tick's number to the base, without a wait: the order of the queue alone is right. */
static weir_status add_to_base(struct rig *rig, weir_context *context)
{
	weir_stream *stream = NULL;
	weir_message *message = NULL;
	struct rig_sum sum = {NULL, {&base, NULL}, rig_tick(context), MS};

	if (weir_context_count(context, 0))
		HOLDS(rig, !weir_context_receive_stream(context, 0, WEIR_RECEIVE_TAKE_NONE, &stream));
	else
		stream = current_stream(context);
	HOLDS(rig, weir_stream_same(stream, programs));
	HOLDS(rig, weir_stream_id(stream) != weir_stream_id(programs)); /* a view of its own (T6) */
	HOLDS(rig, !weir_context_create_tensor(context, &rig_one_number, 0, &message));
	sum.to = weir_message_data(message);
	HOLDS(rig, !weir_stream_launch(stream, &rig_adder, &sum, sizeof sum));
	return weir_context_emit(context, 0, message);
}

static weir_status is_carried(struct rig *rig, weir_context *context)
{
	weir_stream *carried = rig_carried(context, 0, 0);

	HOLDS(rig, carried && weir_stream_same(carried, programs));
	return WEIR_OK;
}

static const char *graph_text, *resources;

static void work_behind_the_program(void)
{
	struct rig *rig;

	rig_resources = resources;
	rig = rig_of(graph_text);
	rig_resources = NULL;
	rig_make(rig);
	programs = stream_of(rig);
	rig_on(rig, "a", add_to_base);
	rig_on(rig, "x", is_carried);
	assert_int_equal(use(rig, "a", programs), WEIR_OK);
	for (int run = 1; run <= 2; run++) { /* it stays until another is given */
		set_base(programs, 100 * run);
		assert_int_equal(rig_run(rig), WEIR_OK);
		assert_string_equal(rig_text(rig, "end"),
				    run == 1 ? "100 101 102" : "100 101 102 200 201 202");
	}
	rig_destroy(rig);
}

static void t14_t06_the_entity_works_behind_the_program_in_one_queue(void **state)
{
	(void)state;
	graph_text = "a:call count=3 -> end; a -> x:call";
	rig_everywhere(work_behind_the_program);
}

static void t14_it_goes_before_the_pool_and_the_default_stream(void **state)
{
	static const char *const texts[] = {"a:call count=3 pool=none -> end; a -> x:call",
					    "a:call count=3 pool=default -> end; a -> x:call",
					    "a:call count=3 pool=p -> end; a -> x:call"};

	(void)state;
	for (int i = 0; i < 3; i++) {
		graph_text = texts[i];
		resources = RIG_POOL("");
		rig_everywhere(work_behind_the_program);
	}
	resources = NULL;
}

/* receive_stream with allocate = false, and inputs that carry other streams. */
static void t14_t07_it_is_current_whatever_the_messages_carry(void **state)
{
	(void)state;
	graph_text = "source ticks=3 work=100us -> a:call -> end; a -> x:call";
	rig_everywhere(work_behind_the_program);
}

/* --- several entities, and back to the pool --- */

static weir_status note_same(struct rig *rig, weir_context *context)
{
	rig_note(rig, context, weir_stream_same(current_stream(context), programs) ? "same" : "own");
	return WEIR_OK;
}

static void share_and_return(void)
{
	struct rig *rig = rig_of("a:call count=1; b:call count=1; c:call count=1");

	rig_make(rig);
	programs = stream_of(rig);
	rig_on(rig, "a", note_same);
	rig_on(rig, "b", note_same);
	rig_on(rig, "c", note_same);
	assert_int_equal(use(rig, "a", programs), WEIR_OK);
	assert_int_equal(use(rig, "b", programs), WEIR_OK);
	assert_int_equal(use(rig, "b", programs), WEIR_OK);
	assert_int_equal(use(rig, "c", NULL), WEIR_OK);
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_int_equal(use(rig, "a", NULL), WEIR_OK);
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_string_equal(rig_text(rig, "a"), "same own");
	assert_string_equal(rig_text(rig, "b"), "same same");
	assert_string_equal(rig_text(rig, "c"), "own own");
	rig_destroy(rig);
}

static void t14_several_entities_may_use_it_and_go_back_to_their_pool(void **state)
{
	(void)state;
	rig_everywhere(share_and_return);
}

/* --- what is refused --- */

static void refused(weir_status status, weir_status expected, const char *text)
{
	assert_int_equal(status, expected);
	assert_says(weir_last_error(), text);
}

static weir_status use_in_tick(struct rig *rig, weir_context *context)
{
	rig_refused(rig, weir_entity_use_stream(weir_context_entity(context), programs), WEIR_E_STATE,
		    "a run is on");
	return WEIR_OK;
}

static void refuse_streams(void)
{
	struct rig *rig, *other = rig_of("a:call");
	weir_stream *taken, *far = NULL;

	rig_resources =
		"{\"p\": {\"type\": \"stream_pool\"}, \"q\": {\"type\": \"stream_pool\", \"device\": 1}}";
	rig = rig_of("a:call count=1 pool=p; b:call count=1 pool=q");
	rig_resources = NULL;
	rig_on(rig, "a", use_in_tick);
	rig_on(rig, "b", use_in_tick);
	refused(use(rig, "a", NULL), WEIR_E_INVALID, "create a scheduler");
	rig_make(rig);
	rig_make(other);
	programs = stream_of(rig);
	refused(use(rig, "a", stream_of(other)), WEIR_E_INVALID, "belongs to another graph");
	assert_int_equal(weir_graph_add_stream(rig->graph, 1, &far), WEIR_OK);
	refused(use(rig, "a", far), WEIR_E_INVALID, "a works on device 0, the stream is on device 1");
	taken = rig_pool_take(rig, 0);
	refused(use(rig, "a", taken), WEIR_E_INVALID, "weir_stream_wrap or weir_graph_add_stream");
	rig_put_back(taken);
	assert_int_equal(rig_run(rig), WEIR_OK);
	rig_destroy(rig);
	rig_destroy(other);
}

static void t14_only_a_stream_of_the_program_is_used_and_only_between_runs(void **state)
{
	(void)state;
	rig_everywhere(refuse_streams);
}

/* --- wrapped streams: the host's own, as if its backend had native ones --- */

static void unwrap_used(void)
{
	struct rig *rig = rig_of("a:call count=3 -> end; a -> x:call");
	weir_stream *added, *wrapped = NULL;

	rig_on(rig, "a", add_to_base);
	rig_on(rig, "x", is_carried);
	rig_make(rig);
	added = stream_of(rig);
	rig_own_backend(rig)->native_streams = true;
	assert_int_equal(weir_stream_wrap(rig->graph, 0, weir_stream_native(added), &wrapped), WEIR_OK);
	programs = wrapped;
	assert_int_equal(use(rig, "a", wrapped), WEIR_OK);
	refused(weir_stream_unwrap(wrapped), WEIR_E_STATE, "weir_entity_use_stream(entity, NULL)");
	set_base(wrapped, 100);
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_string_equal(rig_text(rig, "end"), "100 101 102");
	refused(weir_stream_unwrap(wrapped), WEIR_E_STATE, "weir_entity_use_stream(entity, NULL)");
	assert_int_equal(use(rig, "a", NULL), WEIR_OK);
	assert_int_equal(weir_stream_unwrap(wrapped), WEIR_OK);
	rig_restore_backend(rig);
	rig_destroy(rig);
}

static void t14_a_wrapped_stream_that_is_used_is_not_unwrapped(void **state)
{
	(void)state;
	rig_on_host(unwrap_used);
}

/* --- another backend --- */

static void change_backend(void)
{
	struct rig *rig = rig_of("a:call count=1");

	rig_on(rig, "a", note_same);
	rig_make(rig);
	programs = stream_of(rig);
	assert_int_equal(use(rig, "a", programs), WEIR_OK);
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_int_equal(weir_scheduler_destroy(rig->scheduler), WEIR_OK);
	rig->scheduler = NULL;
	rig->options.backend = "sim";
	rig_make(rig);
	programs = stream_of(rig);
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_string_equal(rig_text(rig, "a"), "same own");
	rig_destroy(rig);
}

static void t14_it_is_forgotten_with_the_backend_that_it_is_of(void **state)
{
	(void)state;
	rig_on_host(change_backend);
}

/* --- an operator that gets a stream before its start --- */

static _Atomic unsigned others; /* ticks with another current stream */

static weir_status look_at_stream(weir_context *context, void *state)
{
	weir_stream *stream = NULL;

	(void)state;
	if (weir_context_stream(context, &stream) || !weir_stream_same(stream, programs))
		wr_fetch_add(&others, 1);
	return WEIR_OK;
}

static const weir_operator looking = {.size = sizeof looking,
				      .name = "looking",
				      .help = "looks at its stream",
				      .flags = WEIR_OPERATOR_STREAM,
				      .compute = look_at_stream};

static void t14_it_is_the_stream_that_an_operator_has_from_its_start(void **state)
{
	struct rig *rig =
		rig_of_json("{\"weir\": 1, \"entities\": [{\"name\": \"a\", \"operator\": \"looking\", "
			    "\"conditions\": [{\"type\": \"count\", \"count\": 3}]}]}",
			    (const weir_operator *[]){&looking, NULL});

	(void)state;
	wr_store(&others, 0);
	rig_make(rig);
	programs = stream_of(rig);
	assert_int_equal(use(rig, "a", programs), WEIR_OK);
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_int_equal(rig_ticks(rig, "a"), 3);
	assert_int_equal(wr_load(&others), 0);
	rig_destroy(rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(t14_t06_the_entity_works_behind_the_program_in_one_queue),
		cmocka_unit_test(t14_it_goes_before_the_pool_and_the_default_stream),
		cmocka_unit_test(t14_t07_it_is_current_whatever_the_messages_carry),
		cmocka_unit_test(t14_it_is_the_stream_that_an_operator_has_from_its_start),
		cmocka_unit_test(t14_several_entities_may_use_it_and_go_back_to_their_pool),
		cmocka_unit_test(t14_only_a_stream_of_the_program_is_used_and_only_between_runs),
		cmocka_unit_test(t14_a_wrapped_stream_that_is_used_is_not_unwrapped),
		cmocka_unit_test(t14_it_is_forgotten_with_the_backend_that_it_is_of),
	};

	return cmocka_run_group_tests_name("scheduler/used_streams", tests, NULL, NULL);
}
