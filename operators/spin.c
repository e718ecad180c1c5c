#include "operators/operators.h"
#include "operators/tensor.h"

struct spin {
	int64_t duration;
	bool fault;
};

/* On the host the kernel sleeps on the run's clock: on `sim` it takes no real time. */
static int spin_on_host(const void *arguments)
{
	const struct wr_spin_arguments *work = arguments;

	weir_sleep(work->duration);
	if (work->fault)
		return 1;
	work->to[0] = work->tick;
	work->to[1] = (uint64_t)work->duration;
	return 0;
}

static const weir_kernel kernel = {
	.size = sizeof(weir_kernel),
	.name = "spin",
	.host = spin_on_host,
	.cuda = WR_CUDA_FORM(wr_spin_cuda),
};

static const weir_parameter parameters[] = {
	{
		.size = sizeof(weir_parameter),
		.name = "duration",
		.type = WEIR_TYPE_DURATION,
		.fallback = "\"1ms\"",
		.help = "duration of the device work of each tick",
	},
	{
		.size = sizeof(weir_parameter),
		.name = "fault",
		.type = WEIR_TYPE_BOOL,
		.fallback = "false",
		.help = "the device faults at the end of the work",
	},
	{.name = NULL},
};

static const weir_port inputs[] = {
	{
		.size = sizeof(weir_port),
		.name = "in",
		.flags = WEIR_PORT_OPTIONAL,
		.help = "anything; the work is ordered after its producer",
	},
	{.name = NULL},
};

static const weir_port outputs[] = {
	{
		.size = sizeof(weir_port),
		.name = "out",
		.flags = WEIR_PORT_OPTIONAL,
		.kinds = WEIR_KIND_TENSOR,
		.help = "uint64 [2] on the device, written by the work: the tick, the duration",
		.dtype = "uint64",
		.place = "device",
		.shape = "[2]",
	},
	{.name = NULL},
};

static weir_status spin_start(weir_context *context, void *state, const weir_values *values)
{
	struct spin *self = state;

	(void)context;
	self->duration = weir_values_int(values, "duration");
	self->fault = weir_values_bool(values, "fault");
	return WEIR_OK;
}

/*
 * Emits a new message even if it received one: that one may be shared with other receivers, which need not
 * wait for this work.
 */
static weir_status spin_compute(weir_context *context, void *state)
{
	static const int64_t shape[] = {2};
	static const weir_tensor like = {
		.size = sizeof(weir_tensor),
		.dimensions = 1,
		.shape = shape,
		.code = 1,
		.bits = 64,
	};
	const struct spin *self = state;
	weir_stream *stream = NULL;
	weir_message *out = NULL;
	struct wr_spin_arguments work = {
		.tick = weir_context_tick(context),
		.duration = self->duration,
		.fault = self->fault,
	};
	weir_status status = weir_context_stream(context, &stream);

	if (!status)
		status = weir_context_create_tensor(context, &like, 0, &out);
	if (status)
		return status;
	work.to = weir_message_data(out);
	status = weir_stream_launch(stream, &kernel, &work, sizeof work);
	return wr_message_written(context, out, status);
}

const weir_operator wr_spin = {
	.size = sizeof(weir_operator),
	.name = "spin",
	.help = "device work of a given duration, for tests and measurements; source or filter",
	.flags = WEIR_OPERATOR_STREAM | WEIR_OPERATOR_INSTANCES,
	.state_size = sizeof(struct spin),
	.parameters = parameters,
	.inputs = inputs,
	.outputs = outputs,
	.start = spin_start,
	.compute = spin_compute,
};
