#include "operators/operators.h"

static const weir_port inputs[] = {
	{
		.size = sizeof(weir_port),
		.name = "in",
		.flags = WEIR_PORT_DEVICE,	/* nobody looks at what is let go */
		.help = "anything",
	},
	{.name = NULL},
};

/* Receiving is all there is to do: what a tick has received is let go when it ends. */
const weir_operator wr_sink = {
	.size = sizeof(weir_operator),
	.name = "sink",
	.help = "receives messages and lets them go",
	.inputs = inputs,
};
