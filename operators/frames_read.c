/*
 * Reads frames of a fixed size. A tick reads what there is, at most to the end of one frame, which it emits;
 * then the entity sleeps until more has come (condition file_descriptor). A frame that is not complete stays
 * with the operator. Nothing is read ahead, so that a Y4M header and the pixels behind it need no buffer.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "operators/frames.h"
#include "operators/operators.h"

/* What comes next: the header of the stream, the line before a frame, the frame. */
enum stage { HEADER, LINE, PIXELS };

struct frames_read {
	struct wr_channel channel;
	const char *type;
	bool y4m, records, drop, over; /* over: no more is read */
	enum stage stage;
	int64_t width, height, channels; /* y4m: those of the graph file, 0: any, until the header was read */
	int64_t rows;                    /* of the tensor */
	uint8_t code, bits;
	size_t bytes; /* of a frame */
	weir_message *message;
	size_t got; /* bytes of it */
	uint64_t frames;
	size_t length; /* of the line */
	char line[WR_Y4M_LINE + 1];
};

static const weir_parameter parameters[] = {
	WR_FRAMES_PARAMETERS(READ, "a file, a FIFO or a device; \"-\": standard input"),
	{
		.size = sizeof(weir_parameter),
		.name = "width",
		.type = WEIR_TYPE_INT,
		.fallback = "0",
		.min = 0,
		.max = WR_FRAMES_SIDE_MAX,
		.help = "pixels of a row; 0: bytes says the size, or the header of y4m does",
	},
	{
		.size = sizeof(weir_parameter),
		.name = "height",
		.type = WEIR_TYPE_INT,
		.fallback = "0",
		.min = 0,
		.max = WR_FRAMES_SIDE_MAX,
		.help = "rows of a frame",
	},
	{
		.size = sizeof(weir_parameter),
		.name = "channels",
		.type = WEIR_TYPE_INT,
		.fallback = "3",
		.min = 1,
		.max = 16,
		.help = "values of a pixel; of raw frames",
	},
	{
		.size = sizeof(weir_parameter),
		.name = "type",
		.type = WEIR_TYPE_CHOICE,
		.fallback = "\"uint8\"",
		.choices = "uint8|uint16|int16|int32|float16|float32|float64|bfloat16",
		.help = "type of a value; of raw frames",
	},
	{
		.size = sizeof(weir_parameter),
		.name = "bytes",
		.type = WEIR_TYPE_SIZE,
		.fallback = "0",
		.min = 0,
		.max = WR_FRAMES_BYTES_MAX,
		.help = "emits records of so many bytes instead of tensors",
	},
	{
		.size = sizeof(weir_parameter),
		.name = "partial",
		.type = WEIR_TYPE_CHOICE,
		.fallback = "\"fail\"",
		.choices = "fail|drop",
		.help = "input that ends in the middle of a frame: the run fails, or the rest is dropped",
	},
	{.name = NULL},
};

static const weir_port outputs[] = {
	{
		.size = sizeof(weir_port),
		.name = "out",
		.kinds = WEIR_KIND_TENSOR | WEIR_KIND_BYTES,
		.help = "[height, width, channels] in pinned host memory (y4m: the planes one below the "
			"other, "
			"[rows, width, 1]), or records as bytes",
		.dtype = "uint8|uint16|int16|int32|float16|float32|float64|bfloat16",
		.place = "host",
		.shape = "[H, W, C]",
	},
	{.name = NULL},
};

static const char *const conditions[] = {WR_FRAMES_CONDITION, NULL};

static weir_status fail_io(weir_context *context, const struct frames_read *self, const char *why)
{
	weir_context_fail(context, "%s: %s", self->channel.name, why);
	return WEIR_E_IO;
}

/* There is no more to read; the frames before it are worked off. */
static weir_status fail_input(weir_context *context, struct frames_read *self, const char *why)
{
	self->over = true;
	return weir_context_fail_after_drain(context, WEIR_E_IO, "%s%s", self->channel.name, why);
}

/* --- the size of a frame --- */

static void set_type(struct frames_read *self, const char *type)
{
	self->type = type;
	self->code = type[0] == 'u' ? 1 : type[0] == 'f' ? 2 : type[0] == 'b' ? 4 : 0;
	self->bits = (uint8_t)atoi(type + strcspn(type, "0123456789"));
}

/* The rows are known. */
static weir_status set_size(weir_context *context, struct frames_read *self)
{
	int64_t bytes = self->rows * self->width * self->channels * self->bits / 8;

	if (bytes > WR_FRAMES_BYTES_MAX)
		return weir_context_fail(context, "a frame has %" PRId64 " bytes: at most 1 GiB is allowed",
					 bytes);
	self->bytes = (size_t)bytes;
	wr_channel_widen(&self->channel, self->bytes);
	return WEIR_OK;
}

static weir_status set_raw_size(weir_context *context, struct frames_read *self, size_t bytes)
{
	self->records = bytes > 0;
	self->stage = PIXELS;
	self->rows = self->height;
	if (self->records && (self->width || self->height))
		return weir_context_fail(context,
					 "bytes is for records without width and height: leave out one");
	if (!self->records && (!self->width || !self->height))
		return weir_context_fail(context,
					 "raw frames have no header: set width and height, or bytes");
	if (!self->records)
		return set_size(context, self);
	self->bytes = bytes;
	wr_channel_widen(&self->channel, bytes);
	return WEIR_OK;
}

/* A file of another length was written with another size, most often. */
static weir_status check_length(weir_context *context, const struct frames_read *self)
{
	int64_t left = wr_channel_left(&self->channel);

	if (left < 0 || self->drop || left % (int64_t)self->bytes == 0)
		return WEIR_OK;
	weir_context_fail(context,
			  "%s has %" PRId64
			  " bytes, no multiple of a frame of %zu: correct the size, or set partial "
			  "to drop",
			  self->channel.name, left, self->bytes);
	return WEIR_E_IO;
}

/* --- start and stop --- */

static void frames_read_stop(weir_context *context, void *state)
{
	struct frames_read *self = state;

	weir_message_unref(self->message);
	self->message = NULL;
	wr_channel_close(context, &self->channel);
}

/* For the line about a writer that stalls. */
static void frames_read_progress(const void *state, size_t room, char *out)
{
	const struct frames_read *self = state;
	int length = snprintf(out, room, "nothing comes from %s: ", self->channel.name);

	out += length, room -= (size_t)length;
	if (self->stage == HEADER)
		snprintf(out, room, "its Y4M header is not complete");
	else if (self->length)
		snprintf(out, room, "the Y4M line of frame %" PRIu64 " is not complete", self->frames);
	else if (self->got)
		snprintf(out, room, "frame %" PRIu64 " has %zu of %zu bytes", self->frames, self->got,
			 self->bytes);
	else
		snprintf(out, room, "%" PRIu64 " frames came", self->frames);
}

static weir_status frames_read_start(weir_context *context, void *state, const weir_values *values)
{
	struct frames_read *self = state;
	weir_status status = wr_channel_open(context, &self->channel, values, false);

	self->y4m = !strcmp(weir_values_string(values, "format"), "y4m");
	self->drop = !strcmp(weir_values_string(values, "partial"), "drop");
	self->width = weir_values_int(values, "width");
	self->height = weir_values_int(values, "height");
	self->channels = self->y4m ? 1 : weir_values_int(values, "channels");
	set_type(self, self->y4m ? "uint8" : weir_values_string(values, "type"));
	if (!status && !self->y4m)
		status = set_raw_size(context, self, (size_t)weir_values_int(values, "bytes"));
	if (!status && !self->y4m)
		status = check_length(context, self);
	if (status)
		frames_read_stop(context, state);
	return status;
}

/* --- lines of Y4M --- */

/* The value of the header's word that begins with this letter; "" if there is none. Ends at the next word. */
static const char *header_word(const struct frames_read *self, char letter)
{
	const char *at = self->line;

	while ((at = strchr(at, ' ')))
		if (*++at == letter)
			return at + 1;
	return "";
}

/* The number of the header's word that begins with this letter, which has digits alone; else -1. */
static int64_t header_number(const struct frames_read *self, char letter)
{
	const char *word = header_word(self, letter);
	size_t digits = strspn(word, "0123456789");

	return digits && (!word[digits] || word[digits] == ' ') ? strtoll(word, NULL, 10) : -1;
}

static bool word_is(const char *word, const char *wanted)
{
	size_t length = strlen(wanted);

	return !strncmp(word, wanted, length) && (!word[length] || word[length] == ' ');
}

/* NULL: not one that is supported. The kinds of 420 differ in where a chroma sample lies. */
static const char *header_planes(const char *word)
{
	static const struct {
		const char *word, *planes;
	} known[] = {{"", "420"},         {"420", "420"}, {"420jpeg", "420"}, {"420mpeg2", "420"},
		     {"420paldv", "420"}, {"422", "422"}, {"444", "444"},     {"mono", "mono"}};

	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		if (word_is(word, known[i].word))
			return known[i].planes;
	return NULL;
}

static weir_status take_header(weir_context *context, struct frames_read *self)
{
	int64_t width = header_number(self, 'W'), height = header_number(self, 'H');
	const char *word = header_word(self, 'C'), *planes = header_planes(word);

	if (!word_is(self->line, WR_Y4M_MAGIC))
		return fail_io(context, self, "has no Y4M header: it begins with " WR_Y4M_MAGIC);
	if (width < 1 || width > WR_FRAMES_SIDE_MAX || height < 1 || height > WR_FRAMES_SIDE_MAX)
		return fail_io(context, self, "the Y4M header needs W and H from 1 to 32768");
	if (!planes)
		return weir_context_fail(
			context,
			"%s: the Y4M colour space '%.*s' is not supported: 420, 422, 444 and "
			"mono of uint8 are",
			self->channel.name, (int)strcspn(word, " "), word);
	if ((self->width && self->width != width) || (self->height && self->height != height))
		return weir_context_fail(
			context, "%s: the Y4M header says %" PRId64 " x %" PRId64 ", the graph another size",
			self->channel.name, width, height);
	self->rows = wr_y4m_rows(planes, width, height);
	if (!self->rows)
		return fail_io(context, self,
			       "subsampled planes need an even width, those of 420 an even height, too");
	self->width = width;
	self->height = height;
	self->stage = LINE;
	return set_size(context, self);
}

/* The line is complete, without its end. */
static weir_status take_line(weir_context *context, struct frames_read *self)
{
	self->line[self->length] = 0;
	self->length = 0;
	if (self->stage == HEADER)
		return take_header(context, self);
	if (!word_is(self->line, "FRAME"))
		return fail_input(context, self,
				  ": a frame of Y4M does not begin with FRAME: the header has another size");
	self->stage = PIXELS;
	return WEIR_OK;
}

/* Bytes that the rest of the line has at least. */
static size_t line_wants(const struct frames_read *self)
{
	enum { SHORTEST = sizeof "FRAME\n" - 1 };

	return self->stage == LINE && self->length < SHORTEST ? SHORTEST - self->length : 1;
}

/* --- a tick --- */

static weir_status make_message(weir_context *context, struct frames_read *self)
{
	const int64_t shape[] = {self->rows, self->width, self->channels};
	const weir_tensor like = {.size = sizeof like,
				  .device = WEIR_DEVICE_HOST,
				  .dimensions = 3,
				  .shape = shape,
				  .code = self->code,
				  .bits = self->bits};

	if (self->records)
		return weir_message_create_bytes(weir_context_graph(context), self->bytes, &self->message);
	return weir_context_create_tensor(context, &like, WEIR_TENSOR_HOST, &self->message);
}

static weir_status emit_frame(weir_context *context, struct frames_read *self)
{
	weir_message *message = self->message;

	self->message = NULL;
	self->got = 0;
	self->stage = self->y4m ? LINE : PIXELS;
	weir_context_set_stamp(context, (weir_stamp){weir_context_now(context), self->frames++});
	return weir_context_emit(context, 0, message);
}

/* The input has ended. */
static weir_status end_input(weir_context *context, struct frames_read *self)
{
	bool whole = self->y4m ? self->stage == LINE && !self->length : !self->got;
	char why[WR_FRAMES_TEXT];

	if (whole || self->drop)
		return weir_context_finish(context);
	if (self->stage != PIXELS)
		return fail_input(context, self, " ends in the middle of a Y4M header");
	snprintf(why, sizeof why, " ends in the middle of frame %" PRIu64 ": %zu of %zu bytes", self->frames,
		 self->got, self->bytes);
	return fail_input(context, self, why);
}

/* Sets *count to what came; 0: nothing now, or the end, which is dealt with. */
static weir_status read_some(weir_context *context, struct frames_read *self, void *to, size_t bytes,
			     size_t *count)
{
	ssize_t got = wr_channel_read(&self->channel, to, bytes);
	char why[WR_FRAMES_TEXT];

	*count = got > 0 ? (size_t)got : 0;
	if (got > 0 || (got < 0 && errno == EAGAIN))
		return WEIR_OK;
	if (!got)
		return end_input(context, self);
	snprintf(why, sizeof why, ": %s", strerror(errno));
	return fail_input(context, self, why);
}

static weir_status read_line(weir_context *context, struct frames_read *self, size_t *count)
{
	weir_status status = read_some(context, self, self->line + self->length, line_wants(self), count);

	self->length += *count;
	if (status || !*count)
		return status;
	if (self->line[self->length - 1] == '\n') {
		self->length--;
		return take_line(context, self);
	}
	return self->length < WR_Y4M_LINE
		       ? WEIR_OK
		       : fail_input(context, self, ": a header of Y4M has no end: is it one?");
}

static weir_status read_pixels(weir_context *context, struct frames_read *self, size_t *count)
{
	weir_status status = self->message ? WEIR_OK : make_message(context, self);

	*count = 0;
	if (!status)
		status = read_some(context, self, (char *)weir_message_data(self->message) + self->got,
				   self->bytes - self->got, count);
	self->got += *count;
	return status;
}

static weir_status frames_read_compute(weir_context *context, void *state)
{
	struct frames_read *self = state;
	weir_status status = WEIR_OK;
	size_t count = 1;

	while (!status && count && !self->over) {
		if (self->stage == PIXELS)
			status = read_pixels(context, self, &count);
		else
			status = read_line(context, self, &count);
		if (!status && self->stage == PIXELS && self->bytes && self->got == self->bytes)
			return emit_frame(context, self);
	}
	return status;
}

const weir_operator wr_frames_read = {
	.size = sizeof(weir_operator),
	.name = "frames_read",
	.help = "reads raw video, or any records of a fixed size, from a pipe, a file or standard input; "
		"sleeps "
		"while nothing comes, ends with the input",
	.state_size = sizeof(struct frames_read),
	.parameters = parameters,
	.outputs = outputs,
	.start = frames_read_start,
	.compute = frames_read_compute,
	.stop = frames_read_stop,
	.progress = frames_read_progress,
	.conditions = conditions,
};
