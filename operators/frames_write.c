/*
 * Writes frames to a descriptor. A message that the other end does not take at once stays with the operator,
 * which meanwhile holds its input (weir_context_hold) and sleeps until more can be written (condition
 * file_descriptor). So a reader that stalls holds the senders back, and no worker waits for it.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "operators/frames.h"
#include "operators/operators.h"
#include "operators/tensor.h"

struct frames_write {
	struct wr_channel channel;
	const char *path, *planes, *rate;
	bool y4m;
	weir_message *message; /* that is being written */
	size_t written;        /* of head and payload */
	uint64_t frames;
	char shape[WR_TENSOR_TEXT]; /* of the first frame */
	size_t head_length;
	char head[256]; /* header of the stream, line of the frame */
};

static const weir_parameter parameters[] = {
	WR_FRAMES_PARAMETERS(WRITE,
			     "a file, which is replaced, or a FIFO that is read; \"-\": standard output"),
	{
		.size = sizeof(weir_parameter),
		.name = "planes",
		.type = WEIR_TYPE_CHOICE,
		.fallback = "\"420\"",
		.choices = WR_Y4M_PLANES,
		.help = "y4m: the planes of an image, one below the other",
	},
	{
		.size = sizeof(weir_parameter),
		.name = "rate",
		.type = WEIR_TYPE_STRING,
		.fallback = "\"25:1\"",
		.help = "y4m: frames per second, as a fraction",
	},
	{.name = NULL},
};

static const weir_port inputs[] = {
	{
		.size = sizeof(weir_port),
		.name = "in",
		.kinds = WEIR_KIND_TENSOR | WEIR_KIND_BYTES,
		.help = "dense tensors of one shape in host memory, or bytes",
		.place = "host",
	},
	{.name = NULL},
};

static const char *const conditions[] = {WR_FRAMES_CONDITION, NULL};

static void frames_write_stop(weir_context *context, void *state)
{
	struct frames_write *self = state;

	weir_message_unref(self->message);
	self->message = NULL;
	wr_channel_end(context, &self->channel, self->path);
	wr_channel_close(context, &self->channel);
}

static bool is_rate(const char *text)
{
	int a = 0, b = 0, end = 0;

	return sscanf(text, "%9d:%9d%n", &a, &b, &end) == 2 && a > 0 && b > 0 && !text[end];
}

/* For the line about a reader that stalls. */
static void frames_write_progress(const void *state, size_t room, char *out)
{
	const struct frames_write *self = state;
	int length = snprintf(out, room, "%s takes nothing: ", self->channel.name);

	out += length, room -= (size_t)length;
	if (self->message)
		snprintf(out, room, "%zu of %zu bytes of frame %" PRIu64 " are written", self->written,
			 self->head_length + weir_message_size(self->message), self->frames - 1);
	else
		snprintf(out, room, "%" PRIu64 " frames are written", self->frames);
}

static weir_status frames_write_start(weir_context *context, void *state, const weir_values *values)
{
	struct frames_write *self = state;

	self->channel.fd = -1;
	self->y4m = !strcmp(weir_values_string(values, "format"), "y4m");
	self->path = weir_values_string(values, "path");
	self->planes = weir_values_string(values, "planes");
	self->rate = weir_values_string(values, "rate");
	if (!is_rate(self->rate))
		return weir_context_fail(context, "rate '%.40s': write a fraction, as 30:1 or 30000:1001",
					 self->rate);
	return wr_channel_open(context, &self->channel, values, true);
}

/* --- the next message --- */

static weir_status check_shape(weir_context *context, struct frames_write *self, const weir_tensor *tensor)
{
	char shape[WR_TENSOR_TEXT];

	wr_tensor_text(tensor, shape);
	if (!self->frames)
		memcpy(self->shape, shape, sizeof shape);
	if (!strcmp(self->shape, shape))
		return WEIR_OK;
	return weir_context_fail(context, "frame %" PRIu64 " is %s, the first was %s: all must be alike",
				 self->frames, shape, self->shape);
}

static weir_status make_y4m_head(weir_context *context, struct frames_write *self, const weir_tensor *tensor)
{
	struct wr_image image;
	weir_status status = wr_tensor_image(context, tensor, &image);
	int64_t height = status ? 0 : wr_y4m_height(self->planes, image.width, image.height);

	if (status)
		return status;
	if (image.channels != 1 || !height)
		return weir_context_fail(
			context, "y4m %s needs the planes one below the other, [rows, width, 1], got %s",
			self->planes, self->shape);
	self->head_length = 0;
	if (!self->frames)
		self->head_length = (size_t)snprintf(self->head, sizeof self->head,
						     WR_Y4M_MAGIC " W%d H%" PRId64 " F%s Ip A1:1 C%s\n",
						     image.width, height, self->rate, self->planes);
	self->head_length += (size_t)snprintf(self->head + self->head_length,
					      sizeof self->head - self->head_length, "FRAME\n");
	return WEIR_OK;
}

static weir_status check_tensor(weir_context *context, struct frames_write *self, const weir_tensor *tensor)
{
	weir_status status = wr_tensor_on_host(context, tensor);

	if (!status && !wr_tensor_is_dense(tensor))
		return weir_context_fail(context, "input 'in' expects dense tensors, got one with strides");
	if (!status)
		status = check_shape(context, self, tensor);
	return !status && self->y4m ? make_y4m_head(context, self, tensor) : status;
}

static weir_status take_message(weir_context *context, struct frames_write *self, weir_message *message)
{
	const weir_tensor *tensor = weir_message_tensor(message);
	weir_status status = WEIR_OK;

	if (tensor)
		status = check_tensor(context, self, tensor);
	else if (self->y4m)
		status = weir_context_fail(context, "y4m needs images, got bytes");
	if (!status)
		status = wr_message_finished(context, message);
	if (status)
		return status;
	self->message = weir_message_ref(message);
	self->written = 0;
	self->frames++;
	wr_channel_widen(&self->channel, weir_message_size(message));
	return WEIR_OK;
}

/* --- writing --- */

/* A reader that has left ends the run, as in a pipe of commands. */
static weir_status end_output(weir_context *context, struct frames_write *self, int error)
{
	if (error != EPIPE && error != ECONNRESET) {
		weir_context_fail(context, "%s: %s", self->channel.name, strerror(error));
		return WEIR_E_IO;
	}
	weir_context_drain(context, "%s has no reader any more", self->channel.name);
	return weir_context_finish(context);
}

/* What comes next; NULL: all is written. */
static const char *next_bytes(const struct frames_write *self, size_t *bytes)
{
	size_t size = weir_message_size(self->message);

	if (self->written < self->head_length) {
		*bytes = self->head_length - self->written;
		return self->head + self->written;
	}
	*bytes = size - (self->written - self->head_length);
	return *bytes ? (const char *)weir_message_data(self->message) + (size - *bytes) : NULL;
}

static weir_status write_message(weir_context *context, struct frames_write *self)
{
	const char *from;
	size_t bytes;

	while ((from = next_bytes(self, &bytes))) {
		ssize_t written = wr_channel_write(&self->channel, from, bytes);
		if (written < 0 && errno == EAGAIN)
			return weir_context_hold(context, 0, 0);
		if (written < 0)
			return end_output(context, self, errno);
		self->written += (size_t)written;
	}
	weir_message_unref(self->message);
	self->message = NULL;
	return weir_context_hold(context, 0, WEIR_HOLD_END);
}

static weir_status frames_write_compute(weir_context *context, void *state)
{
	struct frames_write *self = state;
	size_t count = weir_context_count(context, 0);
	weir_status status = WEIR_OK;

	if (count > 1)
		return weir_context_fail(context,
					 "a tick writes one message: leave out \"take\" of port 'in'");
	if (count)
		status = take_message(context, self, weir_context_message(context, 0, 0));
	return status || !self->message ? status : write_message(context, self);
}

const weir_operator wr_frames_write = {
	.size = sizeof(weir_operator),
	.name = "frames_write",
	.help = "writes raw video, or any records, to a pipe, a file or standard output; sleeps while the "
		"reader is "
		"slow, drains the run when it leaves",
	.flags = WEIR_OPERATOR_EFFECTS,
	.state_size = sizeof(struct frames_write),
	.parameters = parameters,
	.inputs = inputs,
	.start = frames_write_start,
	.compute = frames_write_compute,
	.stop = frames_write_stop,
	.progress = frames_write_progress,
	.conditions = conditions,
};
