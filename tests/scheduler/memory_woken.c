/*
 * An entity that was refused memory is woken when the device is done with that memory: at the fence of its
 * last reader, by each kind of signal, and not when something else makes the loop look (S3, T4). The readers
 * of the blocks are queued on a stream behind each other, so the end of that stream comes much later.
 */
#include <string.h>

#include "base/clock.h"
#include "rig_streams.h"
#include "tests/calls.h"

enum { TICKS = 12, READERS = 2 };

/* Longer than a callback or a blocked call of a simulated device takes, shorter than a reader. */
#define LATE MS

static struct {
	_Atomic int64_t ended[READERS][TICKS]; /* when the kernel that reads the block of a tick ended */
	_Atomic int64_t latest;                /* from there to the begin of the tick that got the block */
	int blocks;
} seen;

struct reading {
	int reader, tick;
	int64_t ns;
};

static int read_block(const void *arguments)
{
	const struct reading *reading = arguments;

	weir_sleep(reading->ns);
	wr_store(&seen.ended[reading->reader][reading->tick], wr_now());
	return 0;
}

static const weir_kernel reader = {sizeof(weir_kernel), "reader", read_block, NULL};

static weir_status read_for(weir_context *context, int number, int64_t ns)
{
	const struct reading reading = {number, (int)rig_tick(context), ns};

	return weir_stream_launch(current_stream(context), &reader, &reading, sizeof reading);
}

static weir_status read_long(struct rig *rig, weir_context *context)
{
	(void)rig;
	return read_for(context, 0, 10 * MS);
}

static weir_status read_shortly(struct rig *rig, weir_context *context)
{
	(void)rig;
	return read_for(context, 1, 6 * MS);
}

/* When the blocks of the tick `blocks` before this one were free. */
static int64_t free_since(int64_t tick)
{
	int64_t last = 0;

	for (int i = 0; i < READERS; i++) {
		int64_t ended = wr_load(&seen.ended[i][tick - seen.blocks]);

		last = ended > last ? ended : last;
	}
	return last;
}

static weir_status emit_block(struct rig *rig, weir_context *context)
{
	const int64_t tick = rig_tick(context);
	weir_message *message = NULL;
	weir_status status = weir_context_create_tensor(context, &rig_one_number, 0, &message);

	if (status)
		return status;
	if (tick >= seen.blocks) {
		int64_t late = wr_now() - free_since(tick);

		HOLDS(rig, free_since(tick) && late >= 0);
		if (late > wr_load(&seen.latest))
			wr_store(&seen.latest, late);
	}
	return weir_context_emit(context, 0, message);
}

static const char *graph_text, *signal_kind, *pool_text;

static void run_over_few_blocks(void)
{
	struct rig *rig;

	for (int i = 0; i < READERS * TICKS; i++)
		wr_store(&seen.ended[i / TICKS][i % TICKS], 0);
	wr_store(&seen.latest, 0);
	rig_resources = pool_text;
	rig = rig_of(graph_text);
	rig_resources = NULL;
	rig->options.signal = signal_kind;
	rig_on(rig, "a", emit_block);
	rig_on(rig, "b", read_long);
	if (strstr(graph_text, "c:call"))
		rig_on(rig, "c", read_shortly);
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_int_equal(rig_ticks(rig, "a"), TICKS);
	if (!strcmp(rig_backend, "sim"))
		assert_in_range(wr_load(&seen.latest), 0, LATE - 1);
	rig_destroy(rig);
}

#define POOL(blocks) "{\"m\": {\"type\": \"memory_pool\", \"block_size\": 64, \"blocks\": " #blocks "}}"

static void under_all_signals(int blocks, const char *pool, const char *text)
{
	seen.blocks = blocks;
	pool_text = pool;
	graph_text = text;
	for (int i = 0; i < 3; i++) {
		signal_kind = rig_signals[i];
		rig_in_worlds(RIG_SEEDS / 100, run_over_few_blocks);
		rig_on_host(run_over_few_blocks);
	}
}

static void s03_t04_one_block_wakes_at_its_readers_end(void **state)
{
	(void)state;
	under_all_signals(1, POOL(1), "a:call pool=m count=12 -> b:call");
}

static void s03_t04_blocks_behind_each_other_wake_one_by_one(void **state)
{
	(void)state;
	under_all_signals(4, POOL(4), "a:call pool=m count=12 -> b:call capacity=4");
}

static void s03_t04_the_last_of_two_readers_wakes(void **state)
{
	(void)state;
	under_all_signals(3, POOL(3), "a:call pool=m count=12 -> b:call capacity=4; a -> c:call capacity=4");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(s03_t04_one_block_wakes_at_its_readers_end),
		cmocka_unit_test(s03_t04_blocks_behind_each_other_wake_one_by_one),
		cmocka_unit_test(s03_t04_the_last_of_two_readers_wakes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
