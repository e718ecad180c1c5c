#include "operators/operators.h"

struct ping {
	size_t bytes;
	bool stamp;
};

static const weir_parameter parameters[] = {
	{
		.size = sizeof(weir_parameter),
		.name = "bytes",
		.type = WEIR_TYPE_SIZE,
		.fallback = "0",
		.max = INT64_C(1) << 40,
		.help = "size of each message; 0: empty messages",
	},
	{
		.size = sizeof(weir_parameter),
		.name = "stamp",
		.type = WEIR_TYPE_BOOL,
		.fallback = "false",
		.help = "stamps each message with the time and, as its tag, the number of the tick",
	},
	{.name = NULL},
};

static const weir_port outputs[] = {
	{
		.size = sizeof(weir_port),
		.name = "out",
		.kinds = WEIR_KIND_EMPTY | WEIR_KIND_BYTES,
		.help = "one message a tick",
	},
	{.name = NULL},
};

static weir_status ping_start(weir_context *context, void *state, const weir_values *values)
{
	struct ping *self = state;

	(void)context;
	self->bytes = (size_t)weir_values_int(values, "bytes");
	self->stamp = weir_values_bool(values, "stamp");
	return WEIR_OK;
}

/* Byte i is tick + i. */
static void ping_fill(unsigned char *data, size_t bytes, uint64_t tick)
{
	for (size_t i = 0; i < bytes; i++)
		data[i] = (unsigned char)(tick + i);
}

static weir_status ping_compute(weir_context *context, void *state)
{
	const struct ping *self = state;
	weir_graph *graph = weir_context_graph(context);
	weir_message *message = NULL;
	weir_status status = self->bytes ? weir_message_create_bytes(graph, self->bytes, &message)
					 : weir_message_create_empty(graph, &message);

	if (status)
		return status;
	if (self->stamp)
		weir_context_set_stamp(context,
				       (weir_stamp){weir_context_now(context), weir_context_tick(context)});
	if (self->bytes)
		ping_fill(weir_message_data(message), self->bytes, weir_context_tick(context));
	return weir_context_emit(context, 0, message);
}

const weir_operator wr_ping = {
	.size = sizeof(weir_operator),
	.name = "ping",
	.help = "emits a message every tick; the conditions `count` and `periodic` set how many and how "
		"often",
	.state_size = sizeof(struct ping),
	.parameters = parameters,
	.outputs = outputs,
	.start = ping_start,
	.compute = ping_compute,
};
