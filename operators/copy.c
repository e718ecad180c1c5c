/*
 * The copy of a tensor to or from the device. The copy is dense. A strided tensor is copied in rows: the
 * inner dimensions whose elements lie one after another are a row, the longest of the others counts the rows
 * of one copy, and each position in the remaining ones is a copy of its own.
 */
#include "operators/tensor.h"

enum {
	BATCH = 32,
	COPIES_MAX = 512, /* of a message: the driver holds 1,021 operations, then blocks the thread */
};

static weir_status check_copy(weir_context *context, const weir_tensor *tensor, bool to_host)
{
	char text[WR_TENSOR_TEXT];

	if (!tensor)
		return weir_context_fail(context, "input 'in' expects a tensor, got a message without one");
	if (!to_host || tensor->device == weir_context_device(context))
		return WEIR_OK;
	if (tensor->device == WEIR_DEVICE_HOST)
		return weir_context_fail(context,
					 "input 'in' is %s already: connect its receivers to its producer",
					 wr_tensor_text(tensor, text));
	return weir_context_fail(context,
				 "input 'in' is %s, but device %d works here: "
				 "give it a stream pool of device %d",
				 wr_tensor_text(tensor, text), weir_context_device(context), tensor->device);
}

/* --- the rows of a tensor --- */

struct rows {
	size_t row_bytes;
	size_t to[WEIR_DIMENSIONS_MAX], from[WEIR_DIMENSIONS_MAX]; /* strides in bytes */
	size_t extent[WEIR_DIMENSIONS_MAX];
	int32_t outer;  /* dimensions 0 to outer - 1 are not part of a row */
	int32_t counts; /* the one that counts the rows of a copy; -1: none */
	size_t copies;  /* at most COPIES_MAX + 1 */
};

/* CUDA takes strides from the bytes of a row to 2 GiB. */
static bool counts_rows(const struct rows *rows, int32_t i)
{
	return rows->from[i] >= rows->row_bytes && rows->from[i] <= INT32_MAX && rows->to[i] <= INT32_MAX;
}

static void choose_rows(struct rows *rows)
{
	rows->counts = -1;
	for (int32_t i = 0; i < rows->outer; i++)
		if (counts_rows(rows, i) &&
		    (rows->counts < 0 || rows->extent[i] > rows->extent[rows->counts]))
			rows->counts = i;
	rows->copies = 1;
	for (int32_t i = 0; i < rows->outer; i++) {
		if (i == rows->counts)
			continue;
		if (rows->extent[i] > COPIES_MAX / rows->copies) {
			rows->copies = COPIES_MAX + 1;
			return;
		}
		rows->copies *= rows->extent[i];
	}
}

/* The tensor is not empty. */
static struct rows rows_of(const weir_tensor *tensor)
{
	size_t element = (size_t)tensor->bits / 8 * (tensor->lanes ? tensor->lanes : 1), dense = element;
	struct rows rows = {.row_bytes = element};

	for (int32_t i = tensor->dimensions; i-- > 0; dense *= rows.extent[i]) {
		rows.extent[i] = (size_t)tensor->shape[i];
		rows.to[i] = dense;
		rows.from[i] = tensor->strides ? (size_t)tensor->strides[i] * element : dense;
		if (!rows.outer && (rows.extent[i] == 1 || rows.from[i] == dense))
			rows.row_bytes *= rows.extent[i];
		else if (!rows.outer)
			rows.outer = i + 1;
	}
	choose_rows(&rows);
	return rows;
}

static weir_copy nth_copy(const struct rows *rows, size_t n, char *to, const char *from)
{
	weir_copy copy = {.size = sizeof copy, .to = to, .from = from, .row_bytes = rows->row_bytes};

	for (int32_t i = rows->outer; i-- > 0;) {
		if (i == rows->counts)
			continue;
		copy.to = (char *)copy.to + n % rows->extent[i] * rows->to[i];
		copy.from = (const char *)copy.from + n % rows->extent[i] * rows->from[i];
		n /= rows->extent[i];
	}
	if (rows->counts >= 0) {
		copy.rows = rows->extent[rows->counts];
		copy.to_stride = rows->to[rows->counts];
		copy.from_stride = rows->from[rows->counts];
	}
	return copy;
}

/* --- copying --- */

static weir_status enqueue_rows(weir_stream *stream, const struct rows *rows, char *to, const char *from,
				unsigned flags)
{
	weir_copy copies[BATCH];
	weir_status status = WEIR_OK;

	for (size_t done = 0; done < rows->copies && !status; done += BATCH) {
		size_t count = 0;

		while (count < BATCH && done + count < rows->copies) {
			copies[count] = nth_copy(rows, done + count, to, from);
			count++;
		}
		status = weir_stream_copies(stream, copies, count, flags, NULL);
	}
	return status;
}

/* What the program has put into host memory may be pageable; all else is weir's, or the device's. */
static weir_status enqueue_copy(weir_context *context, weir_stream *stream, weir_message *to,
				const weir_message *from)
{
	const weir_tensor *tensor = weir_message_tensor(from);
	unsigned flags = tensor->device == WEIR_DEVICE_HOST ? 0 : WEIR_COPY_ASYNC;
	char text[WR_TENSOR_TEXT];
	struct rows rows;

	if (!weir_message_size(from))
		return WEIR_OK;
	rows = rows_of(tensor);
	if (rows.copies > COPIES_MAX)
		return weir_context_fail(context,
					 "input 'in' is %s, with strides that take more than %d copies: "
					 "make it dense by a kernel",
					 wr_tensor_text(tensor, text), COPIES_MAX);
	return enqueue_rows(stream, &rows, weir_message_data(to), weir_message_data(from), flags);
}

static weir_status copy_or_pass(weir_context *context, size_t i, bool to_host)
{
	const weir_message *from = weir_context_message(context, 0, i);
	const weir_tensor *tensor = weir_message_tensor(from);
	weir_message *copy = NULL;
	weir_stream *stream;
	weir_status status = check_copy(context, tensor, to_host);

	if (status)
		return status;
	if (!to_host && tensor->device == weir_context_device(context))
		return weir_context_forward(context, 0, i, 0);
	status = weir_context_stream(context, &stream);
	if (!status)
		status = weir_context_create_tensor(context, tensor, to_host ? WEIR_TENSOR_HOST : 0, &copy);
	if (status)
		return status;
	return wr_message_written(context, copy, enqueue_copy(context, stream, copy, from));
}

weir_status wr_tensors_copy(weir_context *context, bool to_host)
{
	size_t count = weir_context_count(context, 0);
	weir_status status = WEIR_OK;

	for (size_t i = 0; i < count && !status; i++)
		status = copy_or_pass(context, i, to_host);
	return status;
}
