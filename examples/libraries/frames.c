#include "frames.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* 0 to 7, so that a float holds every product and sum below exactly. */
static int64_t element(int64_t tick, int64_t row, int64_t column)
{
	return (tick + 3 * row + 5 * column + row * column) % 8;
}

/* --- shared by both libraries' operators --- */

weir_status frames_check(weir_context *context, const weir_tensor *tensor, int device)
{
	if (!tensor || tensor->code != 2 || tensor->bits != 32 || tensor->dimensions != 2 ||
	    tensor->shape[0] != tensor->shape[1])
		return weir_context_fail(context, "input 'in' expects a square matrix of float32");
	if (tensor->device != device)
		return weir_context_fail(context, "input 'in' is not on device %d", device);
	return WEIR_OK;
}

weir_status frames_native(weir_context *context, weir_stream *stream, void **out)
{
	/* weir assumes that work follows, and fences it when the tick ends. */
	*out = weir_stream_native(stream);
	if (*out)
		return WEIR_OK;
	return weir_context_fail(context, "'%s' calls a CUDA library: it needs a GPU and --backend cuda",
				 weir_entity_name(weir_context_entity(context)));
}

/* --- frames: the source --- */

struct frames {
	int64_t side;
};

static const weir_parameter frames_parameters[] = {
	{
		.size = sizeof(weir_parameter),
		.name = "side",
		.type = WEIR_TYPE_INT,
		.fallback = "128",
		.min = 1,
		.max = 1024,
		.help = "rows and columns",
	},
	{.name = NULL},
};

static const weir_port frames_outputs[] = {
	{.size = sizeof(weir_port),
	 .name = "out",
	 .kinds = WEIR_KIND_TENSOR,
	 .help = "float32 [side, side] in host memory"},
	{.name = NULL},
};

static weir_status frames_start(weir_context *context, void *state, const weir_values *values)
{
	struct frames *self = state;

	(void)context;
	self->side = weir_values_int(values, "side");
	return WEIR_OK;
}

static weir_status frames_compute(weir_context *context, void *state)
{
	const struct frames *self = state;
	const int64_t shape[] = {self->side, self->side};
	const weir_tensor like = {
		.size = sizeof like,
		.dimensions = 2,
		.shape = shape,
		.code = 2, /* float */
		.bits = 32,
	};
	weir_message *out = NULL;
	weir_status status = weir_context_create_tensor(context, &like, WEIR_TENSOR_HOST, &out);
	float *to;

	if (status)
		return status;
	to = weir_message_data(out);
	for (int64_t row = 0; row < self->side; row++)
		for (int64_t column = 0; column < self->side; column++)
			to[row * self->side + column] =
				(float)element((int64_t)weir_context_tick(context), row, column);
	return weir_context_emit(context, 0, out);
}

const weir_operator frames = {
	.size = sizeof(weir_operator),
	.name = "frames",
	.help = "square matrices of small integers, as float32",
	.state_size = sizeof(struct frames),
	.parameters = frames_parameters,
	.outputs = frames_outputs,
	.start = frames_start,
	.compute = frames_compute,
};

/* --- compare: the sink --- */

struct compare {
	bool square;
	int64_t constant;
	uint64_t frames, numbers; /* compared so far */
};

static const weir_parameter compare_parameters[] = {
	{
		.size = sizeof(weir_parameter),
		.name = "expect",
		.type = WEIR_TYPE_CHOICE,
		.choices = "square|sum",
		.help = "the matrix times itself, or the matrix plus a constant",
	},
	{.size = sizeof(weir_parameter),
	 .name = "constant",
	 .type = WEIR_TYPE_INT,
	 .fallback = "0",
	 .help = "the constant that was added"},
	{.name = NULL},
};

static const weir_port compare_inputs[] = {
	{
		.size = sizeof(weir_port),
		.name = "in",
		.kinds = WEIR_KIND_TENSOR,
		.help = "in host memory",
	},
	{.name = NULL},
};

static weir_status compare_start(weir_context *context, void *state, const weir_values *values)
{
	struct compare *self = state;

	(void)context;
	*self = (struct compare){
		.square = !strcmp(weir_values_string(values, "expect"), "square"),
		.constant = weir_values_int(values, "constant"),
	};
	return WEIR_OK;
}

/* Computed in integers from the definition, independently of the libraries. */
static int64_t expected(const struct compare *self, int64_t tick, int64_t side, int64_t row, int64_t column)
{
	int64_t sum = 0;

	if (!self->square)
		return element(tick, row, column) + self->constant;
	for (int64_t k = 0; k < side; k++)
		sum += element(tick, row, k) * element(tick, k, column);
	return sum;
}

static weir_status compare_compute(weir_context *context, void *state)
{
	struct compare *self = state;
	const weir_message *in = weir_context_message(context, 0, 0);
	const float *found = weir_message_data(in);
	int64_t tick = (int64_t)weir_context_tick(context), side;
	weir_status status = frames_check(context, weir_message_tensor(in), WEIR_DEVICE_HOST);

	if (status)
		return status;
	side = weir_message_tensor(in)->shape[0];
	for (int64_t row = 0; row < side; row++)
		for (int64_t column = 0; column < side; column++) {
			int64_t right = expected(self, tick, side, row, column);

			if (found[row * side + column] != (float)right)
				return weir_context_fail(context,
							 "frame %" PRId64 ", row %" PRId64 ", column %" PRId64
							 ": %.9g instead of %" PRId64,
							 tick, row, column,
							 (double)found[row * side + column], right);
		}
	self->frames++;
	self->numbers += (uint64_t)(side * side);
	return WEIR_OK;
}

static void compare_stop(weir_context *context, void *state)
{
	const struct compare *self = state;

	printf("%s: %" PRIu64 " frames, %" PRIu64 " numbers are right\n",
	       weir_entity_name(weir_context_entity(context)), self->frames, self->numbers);
}

const weir_operator compare = {
	.size = sizeof(weir_operator),
	.name = "compare",
	.help = "compares every number with plain C's; ends the run at the first wrong one",
	.state_size = sizeof(struct compare),
	.parameters = compare_parameters,
	.inputs = compare_inputs,
	.start = compare_start,
	.compute = compare_compute,
	.stop = compare_stop,
};

weir_status frames_add(weir_registry *registry, const weir_operator *around)
{
	weir_status status = weir_registry_add_operator(registry, &frames);

	if (!status)
		status = weir_registry_add_operator(registry, around);
	if (!status)
		status = weir_registry_add_operator(registry, &compare);
	return status;
}
