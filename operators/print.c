#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "operators/operators.h"
#include "operators/tensor.h"

enum { FIRST = 8, LINE = 4096, PARTS_LINE = 3900 };

struct print {
	uint64_t every, received;
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

/*
 * The lines of a part `text`, as `top` emits them, each on a line of its own; what is too long is cut.
 * Returns false if stdout fails.
 */
static bool print_text(weir_context *context, const weir_message *message)
{
	const weir_message *part = weir_message_parts(message) ? weir_message_part(message, "text") : NULL;
	size_t size = part && weir_message_kind(part) == WEIR_KIND_BYTES ? weir_message_size(part) : 0;
	char text[LINE], shown[FIRST * 32], *rest = text;
	bool cut = size >= LINE, written = true;

	if (!size || is_unfinished(context, part))
		return true;
	memcpy(text, weir_message_data(part), cut ? LINE - 1 : size);
	text[cut ? LINE - 1 : size] = 0;
	for (const char *line; written && (line = strsep(&rest, "\n")) && (*line || rest);) {
		written = printf("  ") >= 0;
		while (*line && written) {
			weir_text_escape(&line, sizeof shown, shown);
			written = printf("%s", shown) >= 0;
		}
		written = written && printf("\n") >= 0;
	}
	return written && (!cut || printf("  ...\n") >= 0);
}

static bool print_lines(weir_context *context, const char *line, const weir_message *message)
{
	bool written;

	flockfile(stdout);
	written = printf("%s\n", line) >= 0 && print_text(context, message) && !fflush(stdout);
	funlockfile(stdout);
	return written;
}

static weir_status print_message(weir_context *context, void *state, weir_message *message)
{
	struct print *self = state;
	char line[LINE];

	if (self->received++ % self->every || self->quiet)
		return WEIR_OK;
	print_payload_kind(context, line, message);
	if (print_lines(context, line, message))
		return WEIR_OK;
	if (errno != EPIPE)
		return weir_context_fail(context, "stdout: %s", strerror(errno));
	self->quiet = true;
	weir_context_drain(context);
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
		"lines of a part `text` follow",
	.flags = WEIR_OPERATOR_EFFECTS | WEIR_OPERATOR_PRINTS,
	.state_size = sizeof(struct print),
	.parameters = parameters,
	.inputs = inputs,
	.start = print_start,
	.compute = print_compute,
};
