/*
 * Two operators that show where kernels run. `note` launches a kernel with many more blocks than a GPU has
 * multiprocessors; each block writes the number of the one that it runs on. `compare` is host code, gated:
 * it collects the numbers of each input and fails the run if a partition used more than it may, or if two
 * of them share one. The operators know nothing of green contexts: the graph assigns entities to
 * partitions.
 */
#include "green.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <weir.h>

/* --- note --- */

/* The host has no multiprocessors: writes NOWHERE and takes no time. */
static int note_on_host(const void *arguments)
{
	const struct note *work = arguments;

	for (int64_t i = 0; i < work->blocks; i++)
		work->to[i] = NOWHERE;
	return 0;
}

static const weir_kernel kernel = {
	.size = sizeof(weir_kernel),
	.name = "note",
	.host = note_on_host,
#ifdef GREEN_WITH_CUDA
	.cuda = note_on_cuda,
#endif
};

struct note_state {
	int64_t blocks, duration;
};

static const weir_parameter note_parameters[] = {
	{
		.size = sizeof(weir_parameter),
		.name = "blocks",
		.type = WEIR_TYPE_INT,
		.fallback = "4096",
		.min = 1,
		.max = 1 << 20,
		.help = "blocks of 256 threads",
	},
	{
		.size = sizeof(weir_parameter),
		.name = "duration",
		.type = WEIR_TYPE_DURATION,
		.fallback = "\"20us\"",
		.help = "how long each block runs",
	},
	{.name = NULL},
};

static const weir_port note_outputs[] = {
	{
		.size = sizeof(weir_port),
		.name = "out",
		.kinds = WEIR_KIND_TENSOR,
		.help = "uint32 [blocks] in host memory, written by the device: the multiprocessor of each "
			"block",
	},
	{.name = NULL},
};

static weir_status note_start(weir_context *context, void *state, const weir_values *values)
{
	struct note_state *self = state;

	(void)context;
	self->blocks = weir_values_int(values, "blocks");
	self->duration = weir_values_int(values, "duration");
	return WEIR_OK;
}

static weir_status note_compute(weir_context *context, void *state)
{
	const struct note_state *self = state;
	const weir_tensor like = {
		.size = sizeof like,
		.dimensions = 1,
		.shape = &self->blocks,
		.code = 1, /* unsigned */
		.bits = 32,
	};
	struct note work = {.blocks = self->blocks, .duration = self->duration};
	weir_stream *stream;
	weir_message *out = NULL;
	/* From the entity's pool, and so in its green context. */
	weir_status status = weir_context_stream(context, &stream);

	if (!status)
		status = weir_context_create_tensor(context, &like, WEIR_TENSOR_HOST, &out);
	if (status)
		return status;
	work.to = weir_message_data(out);
	status = weir_stream_launch(stream, &kernel, &work, sizeof work);
	if (!status)
		return weir_context_emit(context, 0, out);
	weir_message_unref(out);
	return status;
}

static const weir_operator note = {
	.size = sizeof(weir_operator),
	.name = "note",
	.help = "a kernel whose blocks write which multiprocessor they ran on",
	.flags = WEIR_OPERATOR_STREAM,
	.state_size = sizeof(struct note_state),
	.parameters = note_parameters,
	.outputs = note_outputs,
	.start = note_start,
	.compute = note_compute,
};

/* --- compare --- */

enum { LEFT, RIGHT, REST, INPUTS, NUMBERS = 1024 };
static const char *const input_names[] = {"left", "right", "rest"};

struct compare {
	int64_t most;
	uint64_t frames;
	bool failed;
	bool nowhere;               /* the host form wrote the numbers */
	bool seen[INPUTS][NUMBERS]; /* in any frame */
};

static const weir_parameter compare_parameters[] = {
	{
		.size = sizeof(weir_parameter),
		.name = "most",
		.type = WEIR_TYPE_INT,
		.fallback = "8",
		.min = 1,
		.max = NUMBERS,
		.help = "most multiprocessors that left and right may each use",
	},
	{.name = NULL},
};

static const weir_port compare_inputs[] = {
	{
		.size = sizeof(weir_port),
		.name = "left",
		.kinds = WEIR_KIND_TENSOR,
		.help = "numbers from note",
	},
	{.size = sizeof(weir_port), .name = "right", .kinds = WEIR_KIND_TENSOR, .help = "likewise"},
	{.size = sizeof(weir_port), .name = "rest", .kinds = WEIR_KIND_TENSOR, .help = "likewise"},
	{.name = NULL},
};

static weir_status compare_start(weir_context *context, void *state, const weir_values *values)
{
	struct compare *self = state;

	(void)context;
	memset(self, 0, sizeof *self);
	self->most = weir_values_int(values, "most");
	return WEIR_OK;
}

/* Records the numbers of one input's message. */
static weir_status collect(weir_context *context, struct compare *self, unsigned input)
{
	const weir_message *message = weir_context_message(context, input, 0);
	const weir_tensor *tensor = weir_message_tensor(message);
	const uint32_t *numbers = weir_message_data(message);

	if (!tensor || tensor->device != WEIR_DEVICE_HOST || tensor->dimensions != 1 || tensor->code != 1 ||
	    tensor->bits != 32)
		return weir_context_fail(context, "input '%s' expects uint32 numbers in host memory",
					 input_names[input]);
	for (int64_t i = 0; i < tensor->shape[0]; i++) {
		if (numbers[i] == NOWHERE)
			self->nowhere = true;
		else if (numbers[i] < NUMBERS)
			self->seen[input][numbers[i]] = true;
		else
			return weir_context_fail(context, "'%s': %" PRIu32 " is not a multiprocessor",
						 input_names[input], numbers[i]);
	}
	return WEIR_OK;
}

static int count(const bool *seen)
{
	int found = 0;

	for (int i = 0; i < NUMBERS; i++)
		found += seen[i];
	return found;
}

static weir_status compare_sizes(weir_context *context, const struct compare *self)
{
	for (int input = LEFT; input <= RIGHT; input++)
		if (count(self->seen[input]) > self->most)
			return weir_context_fail(context,
						 "'%s' ran on %d multiprocessors; its partition has %" PRId64,
						 input_names[input], count(self->seen[input]), self->most);
	return WEIR_OK;
}

static weir_status compare_members(weir_context *context, const struct compare *self)
{
	for (int i = 0; i < NUMBERS; i++)
		for (int a = LEFT; a < REST; a++)
			for (int b = a + 1; b < INPUTS; b++)
				if (self->seen[a][i] && self->seen[b][i])
					return weir_context_fail(
						context, "'%s' and '%s' both ran on multiprocessor %d",
						input_names[a], input_names[b], i);
	return WEIR_OK;
}

static weir_status compare_compute(weir_context *context, void *state)
{
	struct compare *self = state;
	weir_status status = WEIR_OK;

	for (unsigned input = 0; input < INPUTS && !status; input++)
		status = collect(context, self, input);
	if (!status)
		status = compare_sizes(context, self);
	if (!status)
		status = compare_members(context, self);
	self->failed = status;
	self->frames += !status;
	return status;
}

static void compare_stop(weir_context *context, void *state)
{
	const struct compare *self = state;
	const char *name = weir_entity_name(weir_context_entity(context));

	if (self->failed)
		return; /* the run's error was printed already */
	if (self->nowhere)
		printf("%s: %" PRIu64 " frames; not checked: only a GPU has multiprocessors\n", name,
		       self->frames);
	else
		printf("%s: %" PRIu64
		       " frames; left ran on %d multiprocessors, right on %d, rest on %d; none is shared\n",
		       name, self->frames, count(self->seen[LEFT]), count(self->seen[RIGHT]),
		       count(self->seen[REST]));
}

static const weir_operator compare = {
	.size = sizeof(weir_operator),
	.name = "compare",
	.help = "fails the run if left, right and rest share a multiprocessor, or left or right have too "
		"many",
	.state_size = sizeof(struct compare),
	.parameters = compare_parameters,
	.inputs = compare_inputs,
	.start = compare_start,
	.compute = compare_compute,
	.stop = compare_stop,
};

/* --- the plugin --- */

static weir_status add(weir_registry *registry)
{
	weir_status status = weir_registry_add_operator(registry, &note);

	return status ? status : weir_registry_add_operator(registry, &compare);
}

WEIR_PLUGIN(add);
