/* A plugin whose operator `stage` takes time as it is told: of the host in compute, then of the device. */
#include <time.h>

#include "weir.h"

struct stage {
	int64_t host, device;
	bool works; /* on the host; else it sleeps there */
};

static int sleep_on_device(const void *arguments)
{
	weir_sleep(*(const int64_t *)arguments);
	return 0;
}

static const weir_kernel kernel = {.size = sizeof kernel, .name = "stage", .host = sleep_on_device};

static const weir_parameter parameters[] = {
	{.size = sizeof(weir_parameter), .name = "host", .type = WEIR_TYPE_DURATION, .fallback = "\"0s\""},
	{.size = sizeof(weir_parameter), .name = "device", .type = WEIR_TYPE_DURATION, .fallback = "\"0s\""},
	{.size = sizeof(weir_parameter), .name = "works", .type = WEIR_TYPE_BOOL, .fallback = "false"},
	{.name = NULL},
};

static const weir_port inputs[] = {
	{.size = sizeof(weir_port), .name = "in", .flags = WEIR_PORT_OPTIONAL | WEIR_PORT_HOST},
	{.size = sizeof(weir_port), .name = "also", .flags = WEIR_PORT_OPTIONAL | WEIR_PORT_HOST},
	{.name = NULL},
};

static const weir_port outputs[] = {
	{.size = sizeof(weir_port), .name = "out", .flags = WEIR_PORT_OPTIONAL, .kinds = WEIR_KIND_TENSOR},
	{.name = NULL},
};

static weir_status stage_start(weir_context *context, void *state, const weir_values *values)
{
	struct stage *self = state;

	(void)context;
	self->host = weir_values_int(values, "host");
	self->device = weir_values_int(values, "device");
	self->works = weir_values_bool(values, "works");
	return WEIR_OK;
}

/* Within 5 % of the duration, another one in each tick. */
static int64_t varied(int64_t duration, uint64_t tick)
{
	uint64_t drawn = (tick + 1) * 0x9e3779b97f4a7c15u >> 40;

	return duration - duration / 20 + (int64_t)((uint64_t)duration / 10 * drawn >> 24);
}

/* As long on a core, however busy the machine is. */
static void work(int64_t ns)
{
	struct timespec begin, now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
	do
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	while ((now.tv_sec - begin.tv_sec) * 1000000000 + now.tv_nsec - begin.tv_nsec < ns);
}

static weir_status stage_compute(weir_context *context, void *state)
{
	static const int64_t shape[] = {8};
	static const weir_tensor like = {
		.size = sizeof(weir_tensor), .dimensions = 1, .shape = shape, .code = 1, .bits = 64};
	const struct stage *self = state;
	uint64_t tick = weir_context_tick(context);
	int64_t device = varied(self->device, tick + 7);
	weir_message *out = NULL;
	weir_stream *stream;
	weir_status status = weir_context_create_tensor(context, &like, false, &out);

	if (self->works)
		work(varied(self->host, tick));
	else
		weir_sleep(varied(self->host, tick));
	if (!status && self->device) {
		stream = weir_context_stream(context);
		status = stream ? weir_stream_launch(stream, &kernel, &device, sizeof device) : WEIR_E_DEVICE;
	}
	if (status) {
		weir_message_unref(out);
		return status;
	}
	return weir_context_emit(context, 0, out);
}

static const weir_operator stage = {
	.size = sizeof stage,
	.name = "stage",
	.help = "takes time",
	.state_size = sizeof(struct stage),
	.parameters = parameters,
	.inputs = inputs,
	.outputs = outputs,
	.start = stage_start,
	.compute = stage_compute,
};

static weir_status add(weir_registry *registry)
{
	return weir_registry_add_operator(registry, &stage);
}

WEIR_PLUGIN(add);
