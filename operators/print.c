#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "operators/operators.h"
#include "operators/tensor.h"

enum { FIRST = 8, LINE = 4096, PARTS_LINE = 3900 };

struct print {
	uint64_t every, received;
	bool text;  /* bytes are printed as text */
	bool quiet; /* also set once stdout has no reader: the run then drains */
};

static const weir_parameter parameters[] = {
	{
		.size = sizeof(weir_parameter),
		.name = "every",
		.type = WEIR_TYPE_INT,
		.fallback = "1",
		.min = 1,
		.max = INT64_MAX,
		.help = "prints the first message and then every n-th",
	},
	{
		.size = sizeof(weir_parameter),
		.name = "as",
		.type = WEIR_TYPE_CHOICE,
		.fallback = "\"line\"",
		.choices = "line|text",
		.help = "text: of bytes, or of a part `text`, prints the text and no line of its own",
	},
	{
		.size = sizeof(weir_parameter),
		.name = "quiet",
		.type = WEIR_TYPE_BOOL,
		.fallback = "false",
		.help = "prints nothing",
	},
	{.name = NULL},
};

static const weir_port inputs[] = {
	{
		.size = sizeof(weir_port),
		.name = "in",
		.help = "anything",
	},
	{.name = NULL},
};

static weir_status print_start(weir_context *context, void *state, const weir_values *values)
{
	struct print *self = state;

	(void)context;
	self->every = (uint64_t)weir_values_int(values, "every");
	self->text = !strcmp(weir_values_string(values, "as"), "text");
	self->quiet = weir_values_bool(values, "quiet");
	return WEIR_OK;
}

/* FNV-1a: enough to see whether two lines show the same bytes. */
static uint32_t checksum(const unsigned char *data, size_t bytes)
{
	uint32_t sum = 2166136261u;

	for (size_t i = 0; i < bytes; i++)
		sum = (sum ^ data[i]) * 16777619u;
	return sum;
}

static void add_bytes(char *line, size_t room, const unsigned char *data, size_t bytes)
{
	size_t at = strlen(line);

	at += (size_t)snprintf(line + at, room - at, ", %zu bytes:", bytes);
	for (size_t i = 0; i < bytes && i < FIRST; i++)
		at += (size_t)snprintf(line + at, room - at, " %02x", data[i]);
	if (bytes > FIRST)
		snprintf(line + at, room - at, " ..., checksum %08" PRIx32, checksum(data, bytes));
}

/*
 * Returns true if the device may still write the message: then there is nothing to print, which is no
 * failure.
 */
static bool is_unfinished(weir_context *context, const weir_message *message)
{
	enum { ROOM = 16 };
	weir_fence fences[ROOM];
	size_t count = weir_message_fences(message, ROOM, fences);

	if (count > ROOM)
		return true;
	for (size_t i = 0; i < count; i++)
		if (weir_fence_query(weir_context_graph(context), fences[i]))
			return true;
	return false;
}

static void add_payload(weir_context *context, char *line, size_t room, const weir_message *message)
{
	const weir_tensor *tensor = weir_message_tensor(message);

	if (tensor && tensor->device != WEIR_DEVICE_HOST)
		return;
	if (is_unfinished(context, message))
		snprintf(line + strlen(line), room - strlen(line), ", not finished on the device");
	else
		add_bytes(line, room, weir_message_data(message), weir_message_size(message));
}

/* The kind of the message, a tensor's shape and where it is. */
static const char *kind_text(const weir_message *message, char text[WR_TENSOR_TEXT])
{
	const weir_tensor *tensor = weir_message_tensor(message);

	switch (weir_message_kind(message)) {
	case WEIR_KIND_BYTES:
		return "bytes";
	case WEIR_KIND_USER:
		return "user";
	case WEIR_KIND_PARTS:
		return "parts";
	default:
		return tensor ? wr_tensor_text(tensor, text) : "empty";
	}
}

/* ": image uint8 [512, 512, 3] on device 0; boxes float32 [7, 4] in host memory". */
static void add_parts(char *line, const weir_message *message)
{
	char text[WR_TENSOR_TEXT];
	const char *part;

	for (size_t i = 0; (part = weir_message_part_name(message, i)); i++) {
		size_t at = strlen(line);
		const weir_message *held = weir_message_part_at(message, i);
		if (at > PARTS_LINE - WR_TENSOR_TEXT - 6 * WEIR_PART_NAME_MAX) {
			snprintf(line + at, LINE - at, "; and %zu more", weir_message_parts(message) - i);
			return;
		}
		at += (size_t)snprintf(line + at, LINE - at, "%s", i ? "; " : ": ");
		at += weir_text_escape(&part, PARTS_LINE - at, line + at);
		snprintf(line + at, LINE - at, " %s", kind_text(held, text));
	}
}

static void add_stamp(char *line, weir_stamp stamp)
{
	size_t at = strlen(line);

	if (stamp.time)
		at += (size_t)snprintf(line + at, LINE - at, ", time %.6f s", (double)stamp.time / 1e9);
	if (stamp.time || stamp.tag)
		snprintf(line + at, LINE - at, ", tag %" PRIu64, stamp.tag);
}

static void print_payload_kind(weir_context *context, char line[LINE], const weir_message *message)
{
	char text[WR_TENSOR_TEXT];
	unsigned kind = weir_message_kind(message);

	snprintf(line, LINE, "%s: tick %" PRIu64 ": %s", weir_entity_name(weir_context_entity(context)),
		 weir_context_tick(context), kind_text(message, text));
	if (kind & (WEIR_KIND_TENSOR | WEIR_KIND_BYTES))
		add_payload(context, line, LINE, message);
	add_parts(line, message);
	add_stamp(line, weir_message_stamp(message));
}

/* Of what does not fit into a line the whole characters that do. */
static size_t cut_length(const char *at, size_t length)
{
	size_t most = LINE - 1;

	if (length <= most)
		return length;
	for (size_t back = 0; back < 4; back++)
		if (((unsigned char)at[most - back] & 0xc0) != 0x80)
			return most - back;
	return most;
}

/* Returns false if stdout fails. */
static bool print_escaped(const char *at, size_t length)
{
	char piece[LINE], shown[FIRST * 32];
	bool written = true;

	while (length && written) {
		size_t n = strnlen(at, cut_length(at, length));
		const char *rest = piece;

		memcpy(piece, at, n);
		piece[n] = 0;
		while (*rest && written) {
			weir_text_escape(&rest, sizeof shown, shown);
			written = printf("%s", shown) >= 0;
		}
		if (written && n < length && !at[n])
			written = printf("\\x00") >= 0;
		n += n < length && !at[n];
		at += n;
		length -= n;
	}
	return written;
}

/* Each line on a line of its own. Returns false if stdout fails. */
static bool print_body(const char *before, const char *at, size_t length)
{
	bool written = true;

	if (!length)
		return true; /* `at` may be NULL */
	for (const char *end = at + length; at < end && written;) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));
		const char *stop = newline ? newline : end;

		written = printf("%s", before) >= 0 && print_escaped(at, (size_t)(stop - at)) &&
			  printf("\n") >= 0;
		at = stop + 1;
	}
	return written;
}

/* The bytes of a message, or its part `text`, as `top` emits it; NULL: neither, or not finished. */
static const weir_message *text_of(weir_context *context, const weir_message *message)
{
	const weir_message *text =
		weir_message_kind(message) == WEIR_KIND_PARTS ? weir_message_part(message, "text") : message;

	if (!text || weir_message_kind(text) != WEIR_KIND_BYTES || is_unfinished(context, text))
		return NULL;
	return text;
}

/* The lines of a part `text` below the line of the message; what is too long is cut. */
static bool print_part(weir_context *context, const weir_message *message)
{
	const weir_message *text = text_of(context, message);
	size_t size = text && text != message ? weir_message_size(text) : 0;
	size_t shown = size ? cut_length(weir_message_data(text), size) : 0;

	return !size || (print_body("  ", weir_message_data(text), shown) &&
			 (shown == size || printf("  ...\n") >= 0));
}

static bool print_lines(weir_context *context, const struct print *self, const weir_message *message)
{
	const weir_message *text = self->text ? text_of(context, message) : NULL;
	char line[LINE];
	bool written;

	if (!text)
		print_payload_kind(context, line, message);
	flockfile(stdout);
	if (text)
		written = print_body("", weir_message_data(text), weir_message_size(text));
	else
		written = printf("%s\n", line) >= 0 && print_part(context, message);
	written = written && !fflush(stdout);
	funlockfile(stdout);
	return written;
}

static weir_status print_message(weir_context *context, void *state, weir_message *message)
{
	struct print *self = state;

	if (self->received++ % self->every || self->quiet)
		return WEIR_OK;
	if (print_lines(context, self, message))
		return WEIR_OK;
	if (errno != EPIPE)
		return weir_context_fail(context, "stdout: %s", strerror(errno));
	self->quiet = true;
	weir_context_drain(context, NULL);
	return WEIR_OK;
}

static weir_status print_compute(weir_context *context, void *state)
{
	return wr_messages_each(context, state, print_message);
}

const weir_operator wr_print = {
	.size = sizeof(weir_operator),
	.name = "print",
	.help = "prints a line for each message: its kind, shape and first bytes, its parts and its stamp; "
		"lines of a part `text` follow; or text alone",
	.flags = WEIR_OPERATOR_EFFECTS | WEIR_OPERATOR_PRINTS,
	.state_size = sizeof(struct print),
	.parameters = parameters,
	.inputs = inputs,
	.start = print_start,
	.compute = print_compute,
};
