#include "rig_scratch.h"
#include "tests/calls.h"

/* --- kernels --- */

_Atomic unsigned rig_overwritten;

static int keep_pattern(const void *arguments)
{
	const struct rig_pattern *pattern = arguments;

	for (size_t i = 0; i < pattern->words && !pattern->written; i++)
		pattern->memory[i] = pattern->value + i;
	weir_sleep(pattern->ns);
	for (size_t i = 0; i < pattern->words; i++)
		if (pattern->memory[i] != pattern->value + i) {
			wr_fetch_add(&rig_overwritten, 1);
			break;
		}
	return 0;
}

const weir_kernel rig_keeping = {sizeof(weir_kernel), "keep_pattern", keep_pattern, NULL};

uint64_t rig_next_value(void)
{
	static _Atomic uint64_t values;

	return wr_fetch_add(&values, 1) << 32;
}

weir_status rig_use(weir_context *context, weir_stream *stream, size_t words, int64_t ns, void **out)
{
	struct rig_pattern pattern = {.words = words, .value = rig_next_value(), .ns = ns};
	weir_status status = weir_context_scratch(context, stream, words * sizeof *pattern.memory, out);

	if (status)
		return status;
	pattern.memory = *out;
	return weir_stream_launch(stream ? stream : current_stream(context), &rig_keeping, &pattern,
				  sizeof pattern);
}

/* --- all means --- */

static int64_t means_cell; /* each tick adds 3 */

/* By way of scratch memory of two streams: what is captured requests it, too. */
static weir_status enqueue_means(weir_context *context, weir_stream *stream, void *arg)
{
	struct rig_sum add = {.from = {&means_cell}, .plus = 1, .ns = US},
		       back = {&means_cell, {NULL}, 1, US};
	weir_stream *side = NULL;
	void *memory = NULL, *further = NULL;
	weir_status status = weir_context_allocate_stream(context, "side", &side);

	(void)arg;
	if (!status)
		status = weir_context_scratch(context, NULL, 20000, &memory);
	add.to = memory;
	if (!status)
		status = weir_stream_launch(stream, &rig_adder, &add, sizeof add);
	if (!status)
		status = weir_context_synchronize_streams(context, &stream, 1, side);
	if (!status)
		status = weir_context_scratch(context, side, 8, &further);
	add = (struct rig_sum){further, {memory}, 1, US};
	if (!status)
		status = weir_stream_launch(side, &rig_adder, &add, sizeof add);
	if (!status)
		status = weir_context_synchronize_streams(context, &side, 1, stream);
	back.from[0] = further;
	return status ? status : weir_stream_launch(stream, &rig_adder, &back, sizeof back);
}

/* Gives the sum to the message, and says from where on it is there. */
static weir_status write_means(weir_context *context, weir_message *message, weir_fence *out)
{
	struct rig_sum sum = {weir_message_data(message), {&means_cell}, 0, US};
	weir_stream *stream = current_stream(context);
	weir_status status = weir_stream_launch(stream, &rig_adder, &sum, sizeof sum);

	return status ? status : weir_stream_record(stream, out);
}

weir_status rig_emit_by_all_means(struct rig *rig, weir_context *context)
{
	int64_t tick = rig_tick(context), key = tick / 4;
	weir_message *message = NULL, *on_host = NULL;
	weir_fence fence;
	weir_status status = weir_context_create_tensor(context, &rig_one_number, 0, &message);

	(void)rig;
	if (!tick)
		means_cell = 0;
	if (!status)
		status = weir_context_create_tensor(context, &rig_one_number, WEIR_TENSOR_HOST, &on_host);
	if (!status)
		status = weir_context_replay(context, &key, sizeof key, enqueue_means, NULL);
	if (!status)
		status = write_means(context, message, &fence);
	if (status) {
		weir_message_unref(message);
		weir_message_unref(on_host);
		return status;
	}
	*(int64_t *)weir_message_data(on_host) = tick;
	status = weir_context_emit(context, 1, on_host);
	if (!status)
		return weir_context_emit_at(context, 0, message, fence);
	weir_message_unref(message);
	return status;
}

const char rig_means_resources[] = "{\"p\": {\"type\": \"stream_pool\"}, \"m\": {\"type\": \"memory_pool\", "
				   "\"block_size\": 64, \"blocks\": 4}, \"h\": {\"type\": \"memory_pool\", "
				   "\"place\": \"host\", \"block_size\": 64, \"blocks\": 4}}";

/* --- runs --- */

struct rig *rig_of_scratch(const char *text, rig_fn *compute)
{
	struct rig *rig;

	wr_store(&rig_overwritten, 0);
	rig_resources = RIG_POOL("");
	rig = rig_of(text);
	rig_resources = NULL;
	rig_on(rig, "a", compute);
	return rig;
}

struct rig *rig_run_scratch(const char *text, rig_fn *compute)
{
	struct rig *rig = rig_of_scratch(text, compute);

	assert_int_equal(rig_run(rig), WEIR_OK);
	return rig;
}

static const char *graph_text;
static rig_fn *graph_compute;
static size_t graph_ticks;

static void run_twice(void)
{
	struct rig *rig = rig_run_scratch(graph_text, graph_compute);

	assert_int_equal(rig_ticks(rig, "a"), graph_ticks);
	assert_int_equal(wr_load(&rig_overwritten), 0);
	assert_int_equal(rig_run(rig), WEIR_OK); /* and again: the streams and their stacks were released */
	assert_int_equal(wr_load(&rig_overwritten), 0);
	rig_destroy(rig);
}

void rig_scratch_everywhere(const char *text, size_t ticks, rig_fn *compute)
{
	graph_text = text;
	graph_compute = compute;
	graph_ticks = ticks;
	rig_everywhere(run_twice);
}
