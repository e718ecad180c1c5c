/* What a memory pool gives and counts: sizes at their bounds, alignment, what is left after a failure, each
 * run anew. */
#include <string.h>

#include "rig_inside.h"
#include "rig_streams.h"

#define POOL(settings) "{\"m\": {\"type\": \"memory_pool\", \"place\": \"host\", " settings "}}"

enum { ALIGNMENT = 256 }; /* docs/graph-format.md */

static struct rig *with(const char *resources, const char *text, rig_fn *compute)
{
	struct rig *rig;

	rig_resources = resources;
	rig = rig_of(text);
	rig_resources = NULL;
	rig_on(rig, "a", compute);
	return rig;
}

static weir_pool_counts counts_of(struct rig *rig)
{
	weir_pool_counts counts = {.size = sizeof counts};

	assert_false(weir_scheduler_pool_counts(rig->scheduler, 0, &counts));
	return counts;
}

/* Bytes of the host's pool. */
static weir_status take_bytes(weir_context *context, int64_t bytes, weir_message **out)
{
	const weir_tensor like = {sizeof like, NULL, 0, 1, &bytes, NULL, 1, 8, 1};

	return weir_context_create_tensor(context, &like, WEIR_TENSOR_HOST, out);
}

/* --- a block --- */

static weir_status emit_a_whole_block(struct rig *rig, weir_context *context)
{
	weir_message *message = NULL;
	weir_status status = take_bytes(context, 100, &message);

	if (status)
		return status;
	HOLDS(rig, (uintptr_t)weir_message_data(message) % ALIGNMENT == 0);
	memset(weir_message_data(message), 1, 100);
	return weir_context_emit(context, 0, message);
}

static void s03_a_tensor_as_large_as_a_block_fits_into_it(void **state)
{
	struct rig *rig = with(POOL("\"block_size\": 100, \"blocks\": 1"), "a:call pool=m count=3 -> b:host",
			       emit_a_whole_block);

	(void)state;
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_int_equal(counts_of(rig).allocations, 3);
	rig_destroy(rig);
}

static void s03_each_block_is_aligned_whatever_its_size(void **state)
{
	struct rig *rig = with(POOL("\"block_size\": 100, \"blocks\": 3"),
			       "a:call pool=m count=3 -> b:host capacity=3 take=3", emit_a_whole_block);

	(void)state;
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_int_equal(counts_of(rig).most_used, 3);
	rig_destroy(rig);
}

/* --- each run counts anew --- */

static weir_status take_two(struct rig *rig, weir_context *context)
{
	weir_message *first = NULL, *second = NULL;

	HOLDS(rig, take_bytes(context, 8, &first) == WEIR_OK);
	rig_refused(rig, take_bytes(context, 8, &second), WEIR_E_BUSY, "no block is left");
	return weir_context_emit(context, 0, first);
}

static void s03_s08_what_a_pool_counts_begins_anew_with_each_run(void **state)
{
	struct rig *rig =
		with(POOL("\"block_size\": 8, \"blocks\": 1"), "a:call pool=m count=5 -> b:host", take_two);

	(void)state;
	for (int run = 0; run < 2; run++) {
		assert_int_equal(rig_run(rig), WEIR_OK);
		assert_int_equal(counts_of(rig).allocations, 5);
		assert_int_equal(counts_of(rig).busy, 5);
	}
	rig_destroy(rig);
}

/* --- what the program holds --- */

static weir_status emit_small(struct rig *rig, weir_context *context)
{
	weir_message *message = NULL;
	weir_status status = take_bytes(context, 8, &message);

	(void)rig;
	return status ? status : weir_context_emit(context, 0, message);
}

static void s04_b02_what_the_program_took_from_two_outlets_counts_once(void **state)
{
	struct rig *rig = with(POOL("\"block_size\": 8, \"blocks\": 2"), "a:call pool=m count=1", emit_small);
	weir_outlet *outlets[2];
	weir_message *taken[2];

	(void)state;
	for (int i = 0; i < 2; i++)
		outlets[i] = rig_outlet(rig, "a.out", 1, 0);
	rig_start(rig);
	for (int i = 0; i < 2; i++)
		assert_int_equal(weir_outlet_take(outlets[i], SECOND, &taken[i]), WEIR_OK);
	assert_ptr_equal(taken[0], taken[1]);
	assert_int_equal(counts_of(rig).outside, 1);
	assert_int_equal(rig_wait(rig), WEIR_OK);
	weir_message_unref(taken[0]);
	weir_message_unref(taken[1]);
	assert_int_equal(counts_of(rig).outside, 0);
	rig_destroy(rig);
}

/* --- the device has less than the pool promises --- */

enum { LARGE = 8 << 20 }; /* more than the arena has */

static weir_status alloc_little(void *self, int device, size_t bytes, void **out)
{
	return bytes < LARGE ? wr_backend_sim.alloc(self, device, bytes, out) : WEIR_E_NOMEM;
}

static weir_status take_what_is_not_there(struct rig *rig, weir_context *context)
{
	weir_message *message = NULL;

	HOLDS(rig, take_bytes(context, LARGE, &message) == WEIR_E_NOMEM);
	return WEIR_OK;
}

static void s03_e06_what_could_not_be_had_of_the_device_goes_back_to_the_pool(void **state)
{
	weir_description *description = NULL;
	struct rig *rig = rig_described("a:call count=3", &description);

	(void)state;
	assert_int_equal(weir_description_put(description, "/resources/m",
					      "{\"type\": \"memory_pool\", \"place\": \"host\", "
					      "\"max_size\": \"8MiB\"}"),
			 WEIR_OK);
	assert_int_equal(weir_description_use(description, "a", "m"), WEIR_OK);
	assert_int_equal(weir_description_put(description, "/entities/0/conditions/-",
					      "{\"type\": \"memory_available\", \"min_bytes\": 8}"),
			 WEIR_OK);
	assert_int_equal(weir_graph_create(rig->registry, description, &rig->graph), WEIR_OK);
	weir_description_destroy(description);
	rig_on(rig, "a", take_what_is_not_there);
	rig_make(rig);
	rig_own_backend(rig)->alloc = alloc_little;
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_int_equal(counts_of(rig).used, 0);
	rig_destroy(rig);
}

/* --- a deadlock --- */

/* One message of four goes to output 1. */
static weir_status emit_mostly_on_the_first(struct rig *rig, weir_context *context)
{
	weir_message *message = NULL;

	HOLDS(rig, take_bytes(context, 8, &message) == WEIR_OK);
	return weir_context_emit(context, weir_context_tick(context) == 3, message);
}

static void c05_a_deadlock_over_memory_follows_the_queue_that_holds_most_of_it(void **state)
{
	struct rig *rig =
		with(POOL("\"block_size\": 8, \"blocks\": 4"),
		     "a:call pool=m blocks=1 -> b:host capacity=4 take=4; a.out2 -> c:host capacity=2 take=2",
		     emit_mostly_on_the_first);

	(void)state;
	assert_int_equal(rig_run(rig), WEIR_E_DEADLOCK);
	assert_says(rig->outcome.text, "3 in a.out -> b.in, 1 in a.out2 -> c.in");
	assert_says(rig->outcome.text, "b.in has 3 of 4 messages from a.out; raise");
	rig_destroy(rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(s03_a_tensor_as_large_as_a_block_fits_into_it),
		cmocka_unit_test(s03_each_block_is_aligned_whatever_its_size),
		cmocka_unit_test(s03_s08_what_a_pool_counts_begins_anew_with_each_run),
		cmocka_unit_test(s03_e06_what_could_not_be_had_of_the_device_goes_back_to_the_pool),
		cmocka_unit_test(s04_b02_what_the_program_took_from_two_outlets_counts_once),
		cmocka_unit_test(c05_a_deadlock_over_memory_follows_the_queue_that_holds_most_of_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
