/* The end of a classifier: the best classes of each row of scores. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "operators/labels.h"
#include "operators/operators.h"
#include "operators/tensor.h"

enum { BEST_MAX = 256, LINE = WR_LABEL_MAX + 64 };

struct top {
	int32_t k;
	bool softmax;
	struct wr_labels labels;
};

static const weir_parameter parameters[] = {
	{
		.size = sizeof(weir_parameter),
		.name = "k",
		.type = WEIR_TYPE_INT,
		.fallback = "5",
		.min = 1,
		.max = BEST_MAX,
		.help = "how many classes of each row, at most all",
	},
	{
		.size = sizeof(weir_parameter),
		.name = "labels",
		.type = WEIR_TYPE_READ_FILE,
		.fallback = "\"\"",
		.help = "a text file with the name of a class in each line, from class 0 on; empty: no names",
	},
	{
		.size = sizeof(weir_parameter),
		.name = "softmax",
		.type = WEIR_TYPE_BOOL,
		.fallback = "false",
		.help = "makes probabilities of the scores of a row first",
	},
	{.name = NULL},
};

static const weir_port inputs[] = {
	{
		.size = sizeof(weir_port),
		.name = "in",
		.kinds = WEIR_KIND_TENSOR,
		.help = "scores in host memory: float32, float16 or bfloat16 [classes] or [rows, classes]",
		.dtype = "float32|float16|bfloat16",
		.place = "host",
	},
	{.name = NULL},
};

static const weir_port outputs[] = {
	{
		.size = sizeof(weir_port),
		.name = "out",
		.kinds = WEIR_KIND_PARTS,
		.help = "parts `index` int32 [rows, k], `value` float32 [rows, k], `text` bytes: a line for "
			"each",
	},
	{.name = NULL},
};

static weir_status top_start(weir_context *context, void *state, const weir_values *values)
{
	struct top *self = state;

	self->k = (int32_t)weir_values_int(values, "k");
	self->softmax = weir_values_bool(values, "softmax");
	return wr_labels_read(context, weir_values_string(values, "labels"), &self->labels);
}

static void top_stop(weir_context *context, void *state)
{
	struct top *self = state;

	(void)context;
	wr_labels_finish(&self->labels);
}

/* --- scores --- */

struct scores {
	const void *data;
	uint8_t code, bits; /* 2 and 32 or 16, or 4 and 16: bfloat16 */
	int64_t rows, classes;
};

static weir_status scores_read(weir_context *context, const weir_message *message, struct scores *out)
{
	const weir_tensor *tensor = weir_message_tensor(message);
	char text[WR_TENSOR_TEXT];
	int64_t classes = 1;
	bool floats;

	if (!tensor)
		return weir_context_fail(context,
					 "input 'in' expects scores, got a message without a tensor");
	for (int32_t i = tensor->dimensions > 1; i < tensor->dimensions; i++)
		classes *= tensor->shape[i];
	out->data = weir_message_data(message);
	out->code = tensor->code;
	out->bits = tensor->bits;
	out->rows = tensor->dimensions > 1 ? tensor->shape[0] : 1;
	out->classes = classes;
	floats = tensor->bits == 16 ? tensor->code == 2 || tensor->code == 4
				    : tensor->bits == 32 && tensor->code == 2;
	if (!floats || tensor->lanes > 1 || !wr_tensor_is_dense(tensor) || !tensor->dimensions ||
	    classes < 1 || out->rows < 1 || classes > INT32_MAX)
		return weir_context_fail(context,
					 "input 'in' expects dense float32, float16 or bfloat16 "
					 "[classes] or [rows, classes], got %s",
					 wr_tensor_text(tensor, text));
	return wr_tensor_on_host(context, tensor);
}

static float half_value(uint16_t bits)
{
	int exponent = bits >> 10 & 31, mantissa = bits & 1023;
	float size =
		exponent ? ldexpf((float)(1024 + mantissa), exponent - 25) : ldexpf((float)mantissa, -24);

	if (exponent == 31)
		size = mantissa ? NAN : INFINITY;
	return bits & 0x8000 ? -size : size;
}

static float score_at(const struct scores *scores, int64_t i)
{
	const uint16_t *shorts = scores->data;
	uint32_t bits;
	float value;

	if (scores->bits == 32)
		return ((const float *)scores->data)[i];
	if (scores->code == 2)
		return half_value(shorts[i]);
	bits = (uint32_t)shorts[i] << 16; /* a bfloat16 has the upper bits of a float32 */
	memcpy(&value, &bits, sizeof value);
	return value;
}

/* --- the best --- */

struct best {
	int32_t count;
	int32_t index[BEST_MAX];
	float value[BEST_MAX];
};

/* What is not a number comes last. */
static bool is_better(float a, float b)
{
	return a > b || (isnan(b) && !isnan(a));
}

/* Of equal scores the first class comes first. */
static void best_add(struct best *best, int32_t k, int32_t index, float value)
{
	int32_t at = best->count;

	if (at == k && !is_better(value, best->value[k - 1]))
		return;
	if (at < k)
		best->count++;
	else
		at--;
	for (; at && is_better(value, best->value[at - 1]); at--) {
		best->value[at] = best->value[at - 1];
		best->index[at] = best->index[at - 1];
	}
	best->value[at] = value;
	best->index[at] = index;
}

/* The largest score is there; the sums are in double. */
static void best_to_probabilities(struct best *best, const struct scores *scores, int64_t row)
{
	double most = best->value[0], sum = 0;

	for (int64_t i = 0; i < scores->classes; i++)
		sum += exp(score_at(scores, row * scores->classes + i) - most);
	for (int32_t i = 0; i < best->count; i++)
		best->value[i] = (float)(exp(best->value[i] - most) / sum);
}

static void best_find(struct best *best, const struct top *self, const struct scores *scores, int64_t row)
{
	best->count = 0;
	for (int64_t i = 0; i < scores->classes; i++)
		best_add(best, self->k, (int32_t)i, score_at(scores, row * scores->classes + i));
	if (self->softmax)
		best_to_probabilities(best, scores, row);
}

/* --- the result --- */

/* "tabby cat 0.8312", without a name the number of the class; several rows begin with theirs. */
static size_t best_line(char line[LINE], const struct top *self, const struct scores *scores, int64_t row,
			int32_t index, float value)
{
	const char *name = wr_labels_name(&self->labels, index);
	int at = 0;

	if (scores->rows > 1)
		at = snprintf(line, LINE, "%lld: ", (long long)row);
	if (name)
		at += snprintf(line + at, (size_t)(LINE - at), "%s %.4g\n", name, (double)value);
	else
		at += snprintf(line + at, (size_t)(LINE - at), "%d %.4g\n", index, (double)value);
	return (size_t)at;
}

struct result {
	weir_message *index, *value, *text;
	int32_t k;
};

static weir_status result_create(weir_context *context, const struct scores *scores, int32_t k,
				 struct result *result)
{
	const int64_t shape[] = {scores->rows, k};
	weir_tensor like = {
		.size = sizeof(weir_tensor),
		.device = WEIR_DEVICE_HOST,
		.dimensions = 2,
		.shape = shape,
		.code = 0,
		.bits = 32,
	};
	weir_status status = weir_message_create_tensor(weir_context_graph(context), &like, &result->index);

	like.code = 2;
	if (!status)
		status = weir_message_create_tensor(weir_context_graph(context), &like, &result->value);
	return status;
}

static void result_fill(const struct result *result, const struct top *self, const struct scores *scores)
{
	int32_t *index = weir_message_data(result->index);
	float *value = weir_message_data(result->value);

	for (int64_t row = 0; row < scores->rows; row++) {
		struct best best;

		best_find(&best, self, scores, row);
		memcpy(index + row * result->k, best.index, (size_t)result->k * sizeof *index);
		memcpy(value + row * result->k, best.value, (size_t)result->k * sizeof *value);
	}
}

/* Twice: without `to` for the length. */
static size_t result_text(const struct result *result, const struct top *self, const struct scores *scores,
			  char *to)
{
	const int32_t *index = weir_message_data(result->index);
	const float *value = weir_message_data(result->value);
	char line[LINE];
	size_t at = 0;

	for (int64_t i = 0; i < scores->rows * result->k; i++) {
		size_t length = best_line(line, self, scores, i / result->k, index[i], value[i]);

		if (to)
			memcpy(to + at, line, length);
		at += length;
	}
	return at;
}

static weir_status result_pack(weir_context *context, const struct result *result, weir_message **out)
{
	const weir_part parts[] = {
		{sizeof(weir_part), "index", result->index},
		{sizeof(weir_part), "value", result->value},
		{sizeof(weir_part), "text", result->text},
	};

	return weir_message_pack(weir_context_graph(context), parts, 3, out);
}

static weir_status top_message(weir_context *context, void *state, weir_message *message)
{
	const struct top *self = state;
	struct result result = {0};
	struct scores scores;
	weir_message *out = NULL;
	weir_status status = scores_read(context, message, &scores);

	if (!status)
		status = wr_message_finished(context, message);
	if (status)
		return status;
	result.k = self->k < scores.classes ? self->k : (int32_t)scores.classes;
	status = result_create(context, &scores, result.k, &result);
	if (!status) {
		result_fill(&result, self, &scores);
		status = weir_message_create_bytes(weir_context_graph(context),
						   result_text(&result, self, &scores, NULL), &result.text);
	}
	if (!status) {
		result_text(&result, self, &scores, weir_message_data(result.text));
		status = result_pack(context, &result, &out);
	}
	if (!status)
		return weir_context_emit(context, 0, out);
	weir_message_unref(result.index);
	weir_message_unref(result.value);
	weir_message_unref(result.text);
	return status;
}

static weir_status top_compute(weir_context *context, void *state)
{
	return wr_messages_each(context, state, top_message);
}

const weir_operator wr_top = {
	.size = sizeof(weir_operator),
	.name = "top",
	.help = "the best classes of a classifier's scores, with their numbers, scores and names; on the "
		"host",
	.state_size = sizeof(struct top),
	.parameters = parameters,
	.inputs = inputs,
	.outputs = outputs,
	.start = top_start,
	.compute = top_compute,
	.stop = top_stop,
};
