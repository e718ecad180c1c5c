#include "rig_scratch.h"

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
	return weir_stream_launch(stream ? stream : weir_context_stream(context), &rig_keeping, &pattern,
				  sizeof pattern);
}

/* --- runs --- */

struct rig *rig_run_scratch(const char *text, rig_fn *compute)
{
	struct rig *rig;

	wr_store(&rig_overwritten, 0);
	rig_resources = RIG_POOL("");
	rig = rig_of(text);
	rig_resources = NULL;
	rig_on(rig, "a", compute);
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
