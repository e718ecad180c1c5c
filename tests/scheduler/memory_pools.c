/* Memory pools in runs: what waits, what comes back and from where, what is reported. */
#include <stdlib.h>
#include <string.h>

#include "rig_streams.h"
#include "tests/calls.h"

#define FRAMES(settings) "{\"m\": {\"type\": \"memory_pool\", \"place\": \"host\", " settings "}}"
#define BLOCKS(n)        FRAMES("\"block_size\": 64, \"blocks\": " n)

static struct rig *with(const char *resources, const char *text)
{
	struct rig *rig;

	rig_resources = resources;
	rig = rig_of(text);
	rig_resources = NULL;
	return rig;
}

static weir_pool_counts counts_of(struct rig *rig)
{
	weir_pool_counts counts = {.size = sizeof counts}, none = counts;

	assert_int_equal(weir_scheduler_pool_counts(rig->scheduler, 0, &counts), WEIR_OK);
	assert_int_equal(weir_scheduler_pool_counts(rig->scheduler, 1, &none), WEIR_E_INVALID);
	return counts;
}

/* Function of `call`: emits the tick's number in a tensor of the host's pool, so often as `told` says. */
static weir_status emit_number(struct rig *rig, weir_context *context)
{
	weir_message *message = NULL;
	weir_status status = weir_context_create_tensor(context, &rig_one_number, WEIR_TENSOR_HOST, &message);

	if (status)
		return status;
	*(int64_t *)weir_message_data(message) = rig_tick(context);
	if ((uint64_t)rig_tick(context) + 1 == wr_load(&rig->told))
		weir_context_finish(context);
	return weir_context_emit(context, 0, message);
}

/* --- one block --- */

static void one_block_serves_all(void)
{
	struct rig *rig = with(BLOCKS("1"), "a:call pool=m -> b:end capacity=4");
	weir_pool_counts counts;

	rig_on(rig, "a", emit_number);
	wr_store(&rig->told, 1000);
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_int_equal(rig_ticks(rig, "b"), 1000);
	counts = counts_of(rig);
	assert_int_equal(counts.most_used, 1);
	assert_int_equal(counts.allocations, 1000);
	assert_int_equal(counts.used, 0);
	rig_destroy(rig);
}

static void s03_a_thousand_allocations_over_one_block_wait_for_each_other(void **state)
{
	(void)state;
	rig_on_host(one_block_serves_all);
	rig_in_worlds(20, one_block_serves_all);
}

static weir_status look_at_pool(struct rig *rig, weir_context *context)
{
	HOLDS(rig, counts_of(rig).used == 1);
	return emit_number(rig, context);
}

static void counted_by_a_worker(void)
{
	struct rig *rig = with(BLOCKS("1"), "a:call pool=m -> b:end capacity=4");

	rig_on(rig, "a", look_at_pool); /* its claim is the used one */
	wr_store(&rig->told, 3);
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_int_equal(rig_ticks(rig, "b"), 3);
	rig_destroy(rig);
}

static void e05_an_operator_may_ask_for_the_counts_of_a_pool(void **state)
{
	(void)state;
	rig_everywhere(counted_by_a_worker);
}

/* --- freed out of order --- */

static weir_status free_the_newer_first(struct rig *rig, weir_context *context)
{
	weir_message **kept = rig->own;
	weir_message *message = weir_message_ref(weir_context_message(context, 0, 0));

	if (!*kept) {
		*kept = message;
		return WEIR_OK;
	}
	weir_message_unref(message);
	if (rig_tick(context) % 3 == 2) {
		weir_message_unref(*kept);
		*kept = NULL;
	}
	return WEIR_OK;
}

static void freed_in_another_order(void)
{
	struct rig *rig = with(BLOCKS("2"), "a:call pool=m -> b:host capacity=2");
	weir_message *kept = NULL;

	rig->own = &kept;
	rig_on(rig, "a", emit_number);
	rig_on(rig, "b", free_the_newer_first);
	wr_store(&rig->told, 60);
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_int_equal(rig_ticks(rig, "b"), 60);
	weir_message_unref(kept);
	assert_int_equal(counts_of(rig).used, 0);
	rig_destroy(rig);
}

static void s03_blocks_that_are_freed_out_of_order_are_taken_again(void **state)
{
	(void)state;
	rig_everywhere(freed_in_another_order);
}

/* --- the program holds a message --- */

static weir_message *take_one(weir_outlet *outlet)
{
	weir_message *message = NULL;

	assert_int_equal(weir_outlet_take(outlet, SECOND, &message), WEIR_OK);
	return message;
}

static void the_program_holds_the_only_block(void)
{
	struct rig *rig = with(BLOCKS("1"), "a:call pool=m");
	weir_outlet *outlet = rig_outlet(rig, "a.out", 2, 0);
	weir_message *held;

	rig_on(rig, "a", emit_number);
	wr_store(&rig->told, 3);
	rig_start(rig);
	for (int64_t i = 0; i < 3; i++) {
		held = take_one(outlet);
		assert_int_equal(rig_value(held), i);
		assert_int_equal(counts_of(rig).outside, 1);
		if (i < 2)
			assert_int_equal(rig_take(outlet, 5 * MS), WEIR_E_TIMEOUT); /* and no deadlock */
		weir_message_unref(held);
	}
	assert_int_equal(rig_take(outlet, 60 * SECOND), WEIR_E_CLOSED);
	assert_int_equal(rig_wait(rig), WEIR_OK);
	assert_int_equal(counts_of(rig).outside, 0);
	rig_destroy(rig);
}

static void s03_s04_an_entity_waits_for_memory_that_the_program_holds(void **state)
{
	(void)state;
	rig_everywhere(the_program_holds_the_only_block);
}

/* Function of `call`: the same, as a part of a message. */
static weir_status emit_part(struct rig *rig, weir_context *context)
{
	weir_part part = {sizeof part, "number", NULL};
	weir_message *pack = NULL;
	weir_status status =
		weir_context_create_tensor(context, &rig_one_number, WEIR_TENSOR_HOST, &part.message);

	if (status)
		return status;
	if ((uint64_t)rig_tick(context) + 1 == wr_load(&rig->told))
		weir_context_finish(context);
	HOLDS(rig, !weir_message_pack(weir_context_graph(context), &part, 1, &pack));
	return weir_context_emit(context, 0, pack);
}

static void the_program_holds_the_only_part(void)
{
	struct rig *rig = with(BLOCKS("1"), "a:call pool=m");
	weir_outlet *outlet = rig_outlet(rig, "a.out", 2, 0);

	rig_on(rig, "a", emit_part);
	wr_store(&rig->told, 3);
	rig_start(rig);
	for (int i = 0; i < 3; i++) {
		weir_message *held = take_one(outlet);
		assert_int_equal(counts_of(rig).outside, 1);
		assert_int_equal(rig_take(outlet, 5 * MS), i < 2 ? WEIR_E_TIMEOUT : WEIR_E_CLOSED);
		weir_message_unref(held);
	}
	assert_int_equal(rig_wait(rig), WEIR_OK);
	assert_int_equal(counts_of(rig).outside, 0);
	rig_destroy(rig);
}

static void t09_s04_an_entity_waits_for_memory_of_parts_that_the_program_holds(void **state)
{
	(void)state;
	rig_everywhere(the_program_holds_the_only_part);
}

static void stopped_while_refused(void)
{
	struct rig *rig = with(BLOCKS("1"), "a:call pool=m");
	weir_outlet *outlet = rig_outlet(rig, "a.out", 2, 0);
	weir_message *held;

	rig_on(rig, "a", emit_number);
	rig_start(rig);
	held = take_one(outlet);
	assert_says(rig_explain(rig), "");
	weir_scheduler_stop(rig->scheduler, WEIR_STOP_DRAIN);
	assert_int_equal(rig_wait(rig), WEIR_OK);
	assert_true(rig_done(rig, "a"));
	assert_int_equal(counts_of(rig).used, 1);
	weir_message_unref(held);
	assert_int_equal(counts_of(rig).used, 0);
	rig_destroy(rig);
}

static void s03_s07_a_refused_source_ends_with_the_drain(void **state)
{
	(void)state;
	rig_everywhere(stopped_while_refused);
}

/* --- the device holds it --- */

static weir_status work_on_it(struct rig *rig, weir_context *context)
{
	weir_message *message = NULL;
	weir_status status = rig_add(context, current_stream(context), 1, 2 * MS, &message);

	(void)rig;
	if (!status && rig_tick(context) == 19)
		weir_context_finish(context);
	return status ? status : weir_context_emit(context, 0, message);
}

static void the_device_holds_the_blocks(void)
{
	struct rig *rig = with("{\"m\": {\"type\": \"memory_pool\", \"block_size\": 64, \"blocks\": 2}}",
			       "a:call pool=m -> b:end");

	rig_on(rig, "a", work_on_it);
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_int_equal(rig_ticks(rig, "b"), 20);
	assert_true(counts_of(rig).most_used <= 2);
	rig_destroy(rig);
}

static void s03_t04_memory_that_the_device_frees_wakes_the_entity(void **state)
{
	(void)state;
	rig_everywhere(the_device_holds_the_blocks);
}

/* --- more than was claimed --- */

static weir_status take_two(struct rig *rig, weir_context *context)
{
	weir_message *first = NULL, *second = NULL;

	HOLDS(rig, weir_context_create_tensor(context, &rig_one_number, WEIR_TENSOR_HOST, &first) == WEIR_OK);
	rig_refused(rig, weir_context_create_tensor(context, &rig_one_number, WEIR_TENSOR_HOST, &second),
		    WEIR_E_BUSY,
		    "memory pool 'm': no block is left and the tick claimed 1: raise min_blocks");
	HOLDS(rig, !second);
	if (rig_tick(context) == 4)
		weir_context_finish(context);
	*(int64_t *)weir_message_data(first) = rig_tick(context);
	return weir_context_emit(context, 0, first);
}

static void s03_more_than_was_claimed_is_busy_and_the_run_goes_on(void **state)
{
	struct rig *rig = with(BLOCKS("1"), "a:call pool=m -> b:end");

	(void)state;
	rig_on(rig, "a", take_two);
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_string_equal(rig_text(rig, "b"), "0 1 2 3 4");
	assert_int_equal(counts_of(rig).busy, 5);
	rig_destroy(rig);
}

static weir_status take_what_is_too_large(struct rig *rig, weir_context *context)
{
	const int64_t nine = 9;
	weir_tensor like = rig_one_number;
	weir_message *message = NULL;

	like.dimensions = 1;
	like.shape = &nine;
	rig_refused(rig, weir_context_create_tensor(context, &like, WEIR_TENSOR_HOST, &message),
		    WEIR_E_INVALID, "memory pool 'm': 72 bytes do not fit into a block of 64 bytes");
	weir_context_finish(context);
	return WEIR_OK;
}

static void s03_a_tensor_larger_than_a_block_is_refused(void **state)
{
	struct rig *rig = with(BLOCKS("1"), "a:call pool=m -> b:end");

	(void)state;
	rig_on(rig, "a", take_what_is_too_large);
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_int_equal(counts_of(rig).used, 0);
	rig_destroy(rig);
}

/* --- a deadlock --- */

static void c05_a_deadlock_names_the_pool_and_where_its_blocks_are(void **state)
{
	struct rig *rig = with(BLOCKS("2"), "a:call pool=m -> b:end capacity=3 take=3");

	(void)state;
	rig_on(rig, "a", emit_number);
	assert_int_equal(rig_run(rig), WEIR_E_DEADLOCK);
	assert_says(rig->outcome.text,
		    "a waits: memory_available: 0 of 2 blocks of pool 'm' are free, a tick "
		    "needs 1: 2 in a.out -> b.in");
	assert_says(rig->outcome.text, "b.in has 2 of 3 messages");
	assert_says(rig->outcome.text, "raise the size of pool 'm'");
	rig_destroy(rig);
}

static weir_message *kept[2];

static weir_status keep(struct rig *rig, weir_context *context)
{
	(void)rig;
	kept[weir_context_tick(context)] = weir_message_ref(weir_context_message(context, 0, 0));
	return WEIR_OK;
}

static void c05_a_deadlock_names_blocks_that_operators_keep(void **state)
{
	struct rig *rig = with(BLOCKS("2"), "a:call pool=m -> b:call");

	(void)state;
	rig_on(rig, "a", emit_number);
	rig_on(rig, "b", keep);
	assert_int_equal(rig_run(rig), WEIR_E_DEADLOCK);
	assert_says(rig->outcome.text,
		    "0 of 2 blocks of pool 'm' are free, a tick needs 1: 2 kept by operators");
	weir_message_unref(kept[0]);
	weir_message_unref(kept[1]);
	rig_destroy(rig);
}

static weir_status emit_pack(struct rig *rig, weir_context *context)
{
	weir_message *message = NULL, *pack = NULL;

	HOLDS(rig,
	      weir_context_create_tensor(context, &rig_one_number, WEIR_TENSOR_HOST, &message) == WEIR_OK);
	HOLDS(rig, weir_message_pack(rig->graph, &(weir_part){sizeof(weir_part), "number", message}, 1,
				     &pack) == WEIR_OK);
	return weir_context_emit(context, 0, pack);
}

static void c05_t09_a_deadlock_names_blocks_in_parts(void **state)
{
	struct rig *rig = with(BLOCKS("2"), "a:call pool=m -> b:end capacity=3 take=3");

	(void)state;
	rig_on(rig, "a", emit_pack);
	assert_int_equal(rig_run(rig), WEIR_E_DEADLOCK);
	assert_says(rig->outcome.text, "a tick needs 1: 2 in a.out -> b.in (");
	rig_destroy(rig);
}

/* --- two pools --- */

/* Takes a block of each pool, emits that of the host. */
static weir_status take_of_both(struct rig *rig, weir_context *context)
{
	weir_message *message = NULL, *other = NULL;

	HOLDS(rig,
	      weir_context_create_tensor(context, &rig_one_number, WEIR_TENSOR_HOST, &message) == WEIR_OK);
	HOLDS(rig, weir_context_create_tensor(context, &rig_one_number, 0, &other) == WEIR_OK);
	weir_message_unref(other);
	if ((uint64_t)rig_tick(context) + 1 >= wr_load(&rig->told))
		weir_context_finish(context);
	*(int64_t *)weir_message_data(message) = 0;
	return weir_context_emit(context, 0, message);
}

static void put(weir_description *description, const char *pointer, const char *json)
{
	assert_int_equal(weir_description_put(description, pointer, json), WEIR_OK);
}

static void named_in_opposite_order(void)
{
	weir_description *description = NULL;
	struct rig *rig = rig_described("a:call -> end; b:call -> end2:end", &description);
	const char *ticks = getenv("WEIR_TICKS");

	put(description, "/resources/m",
	    "{\"type\": \"memory_pool\", \"place\": \"host\", \"block_size\": 64, \"blocks\": 1}");
	put(description, "/resources/d", "{\"type\": \"memory_pool\", \"block_size\": 64, \"blocks\": 1}");
	assert_int_equal(weir_description_use(description, "a", "m"), WEIR_OK);
	assert_int_equal(weir_description_use(description, "a", "d"), WEIR_OK);
	assert_int_equal(weir_description_use(description, "b", "d"), WEIR_OK);
	assert_int_equal(weir_description_use(description, "b", "m"), WEIR_OK);
	assert_int_equal(weir_graph_create(rig->registry, description, &rig->graph), WEIR_OK);
	weir_description_destroy(description);
	rig_on(rig, "a", take_of_both);
	rig_on(rig, "b", take_of_both);
	wr_store(&rig->told, ticks ? strtoull(ticks, NULL, 0) : 500);
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_int_equal(rig_ticks(rig, "b"), wr_load(&rig->told));
	assert_int_equal(rig_ticks(rig, "end"), wr_load(&rig->told));
	rig_destroy(rig);
}

/* By hand: WEIR_TICKS=1000000. */
static void s03_two_pools_that_are_named_in_opposite_order_never_stall(void **state)
{
	(void)state;
	rig_on_host(named_in_opposite_order);
	if (!getenv("WEIR_TICKS"))
		rig_in_worlds(20, named_in_opposite_order);
}

/* --- a reader of another graph --- */

static void unref(void *arg)
{
	weir_message_unref(arg);
}

static weir_status read_on_the_device(struct rig *rig, weir_context *context)
{
	weir_message *message = NULL;
	weir_status status = rig_add(context, current_stream(context), 1, MS, &message);

	(void)rig;
	weir_message_unref(message);
	return status;
}

/* Each message of the first graph is wrapped by one of the second, whose last reference drops it. */
static void another_graph_reads(void)
{
	struct rig *rig = with(BLOCKS("1"), "a:call pool=m"), *other = rig_of("b:call");
	weir_outlet *outlet = rig_outlet(rig, "a.out", 1, 0);
	weir_inlet *inlet = NULL;

	assert_int_equal(weir_graph_add_inlet(other->graph, "b.in", &inlet), WEIR_OK);
	rig_on(rig, "a", emit_number);
	rig_on(other, "b", read_on_the_device);
	wr_store(&rig->told, 5);
	rig_start(other);
	rig_start(rig);
	for (int64_t i = 0; i < 5; i++) {
		weir_message *message = take_one(outlet), *wrapped = NULL;
		weir_tensor tensor = rig_one_number;

		assert_int_equal(rig_value(message), i);
		tensor.device = WEIR_DEVICE_HOST;
		tensor.data = weir_message_data(message);
		assert_int_equal(weir_message_wrap_tensor(other->graph, &tensor, unref, message, &wrapped),
				 WEIR_OK);
		assert_int_equal(weir_inlet_push(inlet, wrapped, 60 * SECOND), WEIR_OK);
	}
	weir_inlet_close(inlet);
	assert_int_equal(rig_wait(rig), WEIR_OK);
	assert_int_equal(rig_wait(other), WEIR_OK);
	rig_destroy(other);
	assert_int_equal(counts_of(rig).used, 0);
	rig_destroy(rig);
}

static void s03_b05_memory_that_another_graph_frees_wakes_the_entity(void **state)
{
	(void)state;
	rig_on_host(another_graph_reads);
}

/* --- other forms --- */

static int64_t own_blocks[2][8];
static _Atomic unsigned seen_own;

static weir_status emit_from_own(struct rig *rig, weir_context *context)
{
	weir_message *message = NULL;
	weir_status status = weir_context_create_tensor(context, &rig_one_number, WEIR_TENSOR_HOST, &message);
	void *data = weir_message_data(message);

	HOLDS(rig, data == own_blocks[0] || data == own_blocks[1]);
	wr_fetch_or(&seen_own, data == own_blocks[0] ? 1 : 2);
	*(int64_t *)data = rig_tick(context);
	if (rig_tick(context) == 9)
		weir_context_finish(context);
	return status ? status : weir_context_emit(context, 0, message);
}

static void s03_a_pool_of_the_callers_blocks_gives_these(void **state)
{
	void *const blocks[] = {own_blocks[0], own_blocks[1]};
	weir_description *description = NULL;
	struct rig *rig = rig_described("a:call -> b:end capacity=2", &description);

	(void)state;
	put(description, "/resources/own",
	    "{\"type\": \"memory_pool\", \"place\": \"host\", \"block_size\": 64, \"blocks\": 2}");
	assert_int_equal(
		weir_description_set_pool_memory(description, "own", sizeof own_blocks[0], blocks, 2),
		WEIR_OK);
	assert_int_equal(weir_description_use(description, "a", "own"), WEIR_OK);
	assert_int_equal(weir_graph_create(rig->registry, description, &rig->graph), WEIR_OK);
	weir_description_destroy(description);
	rig_on(rig, "a", emit_from_own);
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_string_equal(rig_text(rig, "b"), "0 1 2 3 4 5 6 7 8 9");
	rig_destroy(rig);
}

static void a_bound_on_bytes(void)
{
	struct rig *rig;
	weir_description *description = NULL;

	rig = rig_described("a:call -> b:end capacity=4", &description);
	put(description, "/resources/m",
	    "{\"type\": \"memory_pool\", \"place\": \"host\", \"max_size\": 16}");
	assert_int_equal(weir_description_use(description, "a", "m"), WEIR_OK);
	assert_int_equal(weir_description_put(description, "/entities/0/conditions",
					      "[{\"type\": \"memory_available\", \"min_bytes\": 8}]"),
			 WEIR_OK);
	assert_int_equal(weir_graph_create(rig->registry, description, &rig->graph), WEIR_OK);
	weir_description_destroy(description);
	rig_on(rig, "a", emit_number);
	wr_store(&rig->told, 100);
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_int_equal(rig_ticks(rig, "b"), 100);
	assert_true(counts_of(rig).most_used <= 16);
	assert_int_equal(counts_of(rig).used, 0);
	rig_destroy(rig);
}

static void s03_a_pool_with_max_size_bounds_the_bytes_in_use(void **state)
{
	(void)state;
	rig_everywhere(a_bound_on_bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(s03_a_thousand_allocations_over_one_block_wait_for_each_other),
		cmocka_unit_test(e05_an_operator_may_ask_for_the_counts_of_a_pool),
		cmocka_unit_test(s03_blocks_that_are_freed_out_of_order_are_taken_again),
		cmocka_unit_test(s03_s04_an_entity_waits_for_memory_that_the_program_holds),
		cmocka_unit_test(t09_s04_an_entity_waits_for_memory_of_parts_that_the_program_holds),
		cmocka_unit_test(s03_s07_a_refused_source_ends_with_the_drain),
		cmocka_unit_test(s03_t04_memory_that_the_device_frees_wakes_the_entity),
		cmocka_unit_test(s03_more_than_was_claimed_is_busy_and_the_run_goes_on),
		cmocka_unit_test(s03_a_tensor_larger_than_a_block_is_refused),
		cmocka_unit_test(c05_a_deadlock_names_the_pool_and_where_its_blocks_are),
		cmocka_unit_test(c05_a_deadlock_names_blocks_that_operators_keep),
		cmocka_unit_test(c05_t09_a_deadlock_names_blocks_in_parts),
		cmocka_unit_test(s03_two_pools_that_are_named_in_opposite_order_never_stall),
		cmocka_unit_test(s03_b05_memory_that_another_graph_frees_wakes_the_entity),
		cmocka_unit_test(s03_a_pool_of_the_callers_blocks_gives_these),
		cmocka_unit_test(s03_a_pool_with_max_size_bounds_the_bytes_in_use),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
