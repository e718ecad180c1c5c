/*
 * Bytes as floats, channel by channel, as networks want them. There are 256 levels: a table of their values
 * is made at the start, and again by each block on CUDA, by the same arithmetic (normalize.h).
 */
#include "operators/normalize.h"

#include "operators/host_form.h"
#include "operators/operators.h"
#include "operators/tensor.h"

enum { LEVELS = 256 };

struct normalize {
	struct wr_per_channel mean, std;
	double range;
	enum wr_float_type type;
	union {
		float floats[WR_CHANNELS_MAX][LEVELS];
		uint16_t shorts[WR_CHANNELS_MAX][LEVELS];
	} table;
};

/* --- the host form: a look-up for each value; inlined with a constant number of channels --- */

enum { FOUR = 4 }; /* values of a channel that one store writes */

WR_INLINED void write_floats(const struct wr_normalize_arguments *job, int32_t channels)
{
	int64_t count = (int64_t)job->image.height * job->image.width, i = 0;
	const float *table = job->table;
	const uint8_t *from = job->from;
	float *restrict to = job->to;

	for (; i + FOUR <= count; i += FOUR)
		for (int32_t c = 0; c < channels; c++) {
			const uint8_t *at = from + i * channels + c;
			const float *values = table + c * LEVELS;
			const float four[FOUR] = {values[at[0]], values[at[channels]],
						  values[at[2 * channels]], values[at[3 * channels]]};

			wr_bytes_copy(to + c * count + i, four, sizeof four);
		}
	for (; i < count; i++)
		for (int32_t c = 0; c < channels; c++)
			to[c * count + i] = table[c * LEVELS + from[i * channels + c]];
}

WR_INLINED void write_shorts(const struct wr_normalize_arguments *job, int32_t channels)
{
	int64_t count = (int64_t)job->image.height * job->image.width, i = 0;
	const uint16_t *table = job->table;
	const uint8_t *from = job->from;
	uint16_t *restrict to = job->to;

	for (; i + FOUR <= count; i += FOUR)
		for (int32_t c = 0; c < channels; c++) {
			const uint8_t *at = from + i * channels + c;
			const uint16_t *values = table + c * LEVELS;
			const uint16_t four[FOUR] = {values[at[0]], values[at[channels]],
						     values[at[2 * channels]], values[at[3 * channels]]};

			wr_bytes_copy(to + c * count + i, four, sizeof four);
		}
	for (; i < count; i++)
		for (int32_t c = 0; c < channels; c++)
			to[c * count + i] = table[c * LEVELS + from[i * channels + c]];
}

WR_INLINED void write_values(const struct wr_normalize_arguments *job, int32_t channels)
{
	if (job->type != WR_FLOAT32)
		write_shorts(job, channels);
	else
		write_floats(job, channels);
}

static int normalize_on_host(const void *arguments)
{
	const struct wr_normalize_arguments *job = arguments;

	switch (job->image.channels) {
	case 1:
		write_values(job, 1);
		break;
	case 2:
		write_values(job, 2);
		break;
	case 3:
		write_values(job, 3);
		break;
	case 4:
		write_values(job, 4);
		break;
	}
	return 0;
}

static const weir_kernel kernel = {
	.size = sizeof(weir_kernel),
	.name = "normalize",
	.host = normalize_on_host,
	.cuda = WR_CUDA_FORM(wr_normalize_cuda),
};

/* --- the operator --- */

static const weir_parameter parameters[] = {
	{
		.size = sizeof(weir_parameter),
		.name = "range",
		.type = WEIR_TYPE_NUMBER,
		.fallback = "255",
		.help = "the level that becomes 1 before mean and std are applied",
	},
	{
		.size = sizeof(weir_parameter),
		.name = "mean",
		.type = WEIR_TYPE_NUMBERS,
		.fallback = "[0]",
		.min = 1,
		.max = WR_CHANNELS_MAX,
		.help = "subtracted: a number for all channels, or one per channel",
	},
	{
		.size = sizeof(weir_parameter),
		.name = "std",
		.type = WEIR_TYPE_NUMBERS,
		.fallback = "[1]",
		.min = 1,
		.max = WR_CHANNELS_MAX,
		.help = "divides the difference: a number for all channels, or one per channel; not 0",
	},
	{
		.size = sizeof(weir_parameter),
		.name = "type",
		.type = WEIR_TYPE_CHOICE,
		.fallback = "\"float32\"",
		.choices = "float32|float16|bfloat16",
		.help = "type of the result",
	},
	{.name = NULL},
};

static const weir_port outputs[] = {
	{
		.size = sizeof(weir_port),
		.name = "out",
		.kinds = WEIR_KIND_TENSOR,
		.help = "floats [1, channels, height, width]: (level / range - mean) / std",
		.dtype = "float32|float16|bfloat16",
		.place = "device",
		.shape = "[1, 1..4, H, W]",
	},
	{.name = NULL},
};

static void table_fill(struct normalize *self)
{
	struct wr_normalize_arguments job = {.range = self->range};

	for (int32_t c = 0; c < WR_CHANNELS_MAX; c++) {
		job.mean[c] = wr_per_channel_at(&self->mean, c);
		job.std[c] = wr_per_channel_at(&self->std, c);
		for (int32_t level = 0; level < LEVELS; level++) {
			double value = wr_normalize_level(&job, level, c);

			if (self->type != WR_FLOAT32)
				self->table.shorts[c][level] = wr_normalize_short(value, self->type);
			else
				self->table.floats[c][level] = (float)value;
		}
	}
}

static weir_status normalize_start(weir_context *context, void *state, const weir_values *values)
{
	struct normalize *self = state;
	const char *type = weir_values_string(values, "type");

	self->mean = wr_per_channel_read(values, "mean");
	self->std = wr_per_channel_read(values, "std");
	self->range = weir_values_number(values, "range");
	self->type = !strcmp(type, "float16")    ? WR_FLOAT16
		     : !strcmp(type, "bfloat16") ? WR_BFLOAT16
						 : WR_FLOAT32;
	if (self->range == 0)
		return weir_context_fail(context, "range is 0: it divides, so it must be another number");
	for (int32_t i = 0; i < self->std.count; i++)
		if (self->std.values[i] == 0)
			return weir_context_fail(context,
						 "std has a 0: it divides, so it must be another number");
	table_fill(self);
	return WEIR_OK;
}

static weir_status create_floats(weir_context *context, struct wr_image image, enum wr_float_type type,
				 weir_message **out)
{
	const int64_t shape[] = {1, image.channels, image.height, image.width};
	const weir_tensor like = {
		.size = sizeof(weir_tensor),
		.dimensions = 4,
		.shape = shape,
		.code = type == WR_BFLOAT16 ? 4 : 2,
		.bits = type == WR_FLOAT32 ? 32 : 16,
	};

	return weir_context_create_tensor(context, &like, 0, out);
}

static weir_status normalize_message(weir_context *context, void *state, weir_message *message)
{
	const weir_tensor *tensor = weir_message_tensor(message);
	const struct normalize *self = state;
	struct wr_normalize_arguments job = {
		.range = self->range, .table = &self->table, .type = (int32_t)self->type};
	weir_message *out = NULL;
	weir_status status = wr_image_on_device(context, message, &job.image);

	if (!status)
		status = wr_per_channel_fit(context, &self->mean, tensor, job.image, job.mean);
	if (!status)
		status = wr_per_channel_fit(context, &self->std, tensor, job.image, job.std);
	if (!status)
		status = create_floats(context, job.image, self->type, &out);
	if (status)
		return status;
	job.from = weir_message_data(message);
	job.to = weir_message_data(out);
	status = wr_launch(context, &kernel, &job, sizeof job);
	return wr_message_written(context, out, status);
}

static weir_status normalize_compute(weir_context *context, void *state)
{
	return wr_messages_each(context, state, normalize_message);
}

const weir_operator wr_normalize = {
	.size = sizeof(weir_operator),
	.name = "normalize",
	.help = "makes floats of a uint8 image for a network, channel by channel: the same bits on every "
		"backend",
	.flags = WEIR_OPERATOR_STREAM | WEIR_OPERATOR_INSTANCES,
	.state_size = sizeof(struct normalize),
	.parameters = parameters,
	.inputs = wr_image_inputs,
	.outputs = outputs,
	.start = normalize_start,
	.compute = normalize_compute,
};
