#include "operators/operators.h"

static const weir_port inputs[] = {
	{
		.size = sizeof(weir_port),
		.name = "in",
		.flags = WEIR_PORT_DEVICE, /* no host code reads the messages */
		.help = "anything",
	},
	{.name = NULL},
};

/* No compute: what a tick receives is dropped when it ends. */
const weir_operator wr_sink = {
	.size = sizeof(weir_operator),
	.name = "sink",
	.help = "receives messages and drops them",
	.inputs = inputs,
};
