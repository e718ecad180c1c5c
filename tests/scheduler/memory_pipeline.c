/*
 * A pipeline whose stages have as many blocks as frames are in flight: its slowest stage is always busy, and
 * blocks take turns, so that replay meets few pairs of addresses (S3, T4, T13).
 */
#include <string.h>

#include "base/clock.h"
#include "rig_streams.h"
#include "tests/calls.h"

enum { FRAMES = 60, IN_FLIGHT = 4, PAIRS = IN_FLIGHT * IN_FLIGHT };

#define COMPUTE (3 * MS)

static const char *signal_kind;
static bool uneven; /* the sink is sometimes late, so blocks become free together */

/* What the compute stage reads and writes. */
static struct pair {
	const void *from, *to;
} pairs[PAIRS];
static int pair_count;

static void note_pair(const weir_message *from, const weir_message *to)
{
	const struct pair pair = {weir_message_data((weir_message *)from),
				  weir_message_data((weir_message *)to)};

	for (int i = 0; i < pair_count; i++)
		if (pairs[i].from == pair.from && pairs[i].to == pair.to)
			return;
	if (pair_count < PAIRS)
		pairs[pair_count++] = pair;
}

static int sleep_for(const void *arguments)
{
	weir_sleep(*(const int64_t *)arguments);
	return 0;
}

static const weir_kernel work = {sizeof(weir_kernel), "work", sleep_for, NULL};

/* Emits a block of the entity's pool after `ns` of work. */
static weir_status emit_after(weir_context *context, bool on_host, int64_t ns)
{
	weir_message *message = NULL;
	weir_status status = weir_context_create_tensor(context, &rig_one_number,
							on_host ? WEIR_TENSOR_HOST : 0, &message);

	if (!status && ns)
		status = weir_stream_launch(current_stream(context), &work, &ns, sizeof ns);
	if (!status && ns == COMPUTE)
		note_pair(weir_context_message(context, 0, 0), message);
	if (!status)
		return weir_context_emit(context, 0, message);
	weir_message_unref(message);
	return status;
}

static weir_status make_input(struct rig *rig, weir_context *context)
{
	(void)rig;
	if (rig_tick(context) == FRAMES)
		return weir_context_finish(context);
	return emit_after(context, true, 0);
}

static weir_status upload(struct rig *rig, weir_context *context)
{
	(void)rig;
	return emit_after(context, false, 2 * MS);
}

static weir_status compute(struct rig *rig, weir_context *context)
{
	(void)rig;
	return emit_after(context, false, COMPUTE);
}

static weir_status download(struct rig *rig, weir_context *context)
{
	(void)rig;
	return emit_after(context, true, 2 * MS);
}

static weir_status send_credit(struct rig *rig, weir_context *context)
{
	(void)rig;
	if (uneven && rig_tick(context) % 5 == 2)
		weir_sleep(4 * COMPUTE);
	return weir_context_emit(context, 0, rig_number(context, 0));
}

#define HOST "\"place\": \"host\", "
#define BLOCKS(name, place, n)                                                                               \
	"\"" name "\": {\"type\": \"memory_pool\", " place "\"block_size\": 64, \"blocks\": " n "}"
#define POOLS(n)                                                                                             \
	"{" BLOCKS("i", HOST, n) ", " BLOCKS("u", "", n) ", " BLOCKS("c", "", n) ", " BLOCKS("o", HOST, n) "}"

static const char *pools = POOLS("4");
static uint64_t most_used; /* of any pool */

static void run_pipeline(void)
{
	weir_pool_counts counts = {.size = sizeof counts};
	struct rig *rig;

	pair_count = 0;
	rig_resources = pools;
	rig = rig_of(
		"s:call pool=i -> u:call capacity=4 pool=u -> c:call capacity=4 pool=c -> d:call "
		"capacity=4 pool=o -> e:host effects=true capacity=4 -> s.in initial_messages=4 capacity=4");
	rig_resources = NULL;
	rig->options.signal = signal_kind;
	rig_on(rig, "s", make_input);
	rig_on(rig, "u", upload);
	rig_on(rig, "c", compute);
	rig_on(rig, "d", download);
	rig_on(rig, "e", send_credit);
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_int_equal(rig_ticks(rig, "e"), FRAMES);
	if (!strcmp(rig_backend, "sim") && !uneven)
		assert_in_range(rig->outcome.duration_ns, FRAMES * COMPUTE, FRAMES * COMPUTE * 11 / 10);
	most_used = 0;
	for (size_t i = 0; !weir_scheduler_pool_counts(rig->scheduler, i, &counts); i++)
		most_used = counts.most_used > most_used ? counts.most_used : most_used;
	rig_destroy(rig);
}

static void under_signals(void (*run)(void))
{
	for (int i = 0; i < 3; i += 2) { /* callback_inline stalls the producer's stream */
		signal_kind = rig_signals[i];
		rig_in_worlds(5, run);
	}
}

static void s03_t04_a_pipeline_over_pools_keeps_its_slowest_stage_busy(void **state)
{
	(void)state;
	under_signals(run_pipeline);
}

static void run_and_count_pairs(void)
{
	run_pipeline();
	assert_int_equal(pair_count, IN_FLIGHT);
}

static void s03_t13_a_busy_pipeline_over_pools_meets_as_many_pairs_as_blocks(void **state)
{
	(void)state;
	uneven = true;
	under_signals(run_and_count_pairs);
	uneven = false;
}

/* What the device has left is taken before a block that was not in use lately. */
static void run_with_many_blocks(void)
{
	run_pipeline();
	assert_in_range(most_used, 1, 2 * IN_FLIGHT);
}

static void s03_t13_a_pipeline_over_large_pools_uses_few_blocks(void **state)
{
	(void)state;
	uneven = true;
	pools = POOLS("32");
	under_signals(run_with_many_blocks);
	pools = POOLS("4");
	uneven = false;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(s03_t04_a_pipeline_over_pools_keeps_its_slowest_stage_busy),
		cmocka_unit_test(s03_t13_a_busy_pipeline_over_pools_meets_as_many_pairs_as_blocks),
		cmocka_unit_test(s03_t13_a_pipeline_over_large_pools_uses_few_blocks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
