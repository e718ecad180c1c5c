/*
 * A plugin for planted bottlenecks. `stage` takes time as it is told: of the host in compute, then of the
 * device. `feed` writes a pipe that `tap` waits for, and `spill` writes one that `drain` reads.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include "weir.h"
#include "../calls.h"

struct stage {
	int64_t host, device, burst;
	bool works; /* on the host; else it sleeps there */
	bool locks; /* takes a lock of all such stages meanwhile; not on `sim` */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int sleep_on_device(const void *arguments)
{
	weir_sleep(*(const int64_t *)arguments);
	return 0;
}

static const weir_kernel kernel = {.size = sizeof kernel, .name = "stage", .host = sleep_on_device};

static const weir_parameter parameters[] = {
	{.size = sizeof(weir_parameter), .name = "host", .type = WEIR_TYPE_DURATION, .fallback = "\"0s\""},
	{.size = sizeof(weir_parameter), .name = "device", .type = WEIR_TYPE_DURATION, .fallback = "\"0s\""},
	{.size = sizeof(weir_parameter), .name = "burst", .type = WEIR_TYPE_INT, .fallback = "1"},
	{.size = sizeof(weir_parameter), .name = "works", .type = WEIR_TYPE_BOOL, .fallback = "false"},
	{.size = sizeof(weir_parameter), .name = "locks", .type = WEIR_TYPE_BOOL, .fallback = "false"},
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
	self->burst = weir_values_int(values, "burst");
	self->works = weir_values_bool(values, "works");
	self->locks = weir_values_bool(values, "locks");
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

/* Of a burst the first tick takes the time of all. */
static void take_time(const struct stage *self, weir_context *context)
{
	uint64_t tick = weir_context_tick(context);
	int64_t host = tick % (uint64_t)self->burst ? 0 : varied(self->host * self->burst, tick);
	int64_t asked = weir_context_now(context);

	if (self->locks) {
		pthread_mutex_lock(&lock);
		weir_context_count_lock(context, "turns", weir_context_now(context) - asked);
	}
	if (self->works)
		work(host);
	else if (host)
		weir_sleep(host);
	if (self->locks)
		pthread_mutex_unlock(&lock);
}

static weir_status emit_tensor(weir_context *context, int64_t device)
{
	static const int64_t shape[] = {8};
	static const weir_tensor like = {
		.size = sizeof(weir_tensor), .dimensions = 1, .shape = shape, .code = 1, .bits = 64};
	weir_message *out = NULL;
	weir_stream *stream;
	weir_status status = weir_context_create_tensor(context, &like, 0, &out);

	if (!status && device) {
		stream = current_stream(context);
		status = stream ? weir_stream_launch(stream, &kernel, &device, sizeof device) : WEIR_E_DEVICE;
	}
	if (status) {
		weir_message_unref(out);
		return status;
	}
	return weir_context_emit(context, 0, out);
}

static weir_status stage_compute(weir_context *context, void *state)
{
	const struct stage *self = state;
	uint64_t tick = weir_context_tick(context);

	take_time(self, context);
	return emit_tensor(context, varied(self->device, tick + 7));
}

/* --- two ends of a pipe that are entities of one graph --- */

enum { CHUNK = 4096 };

static int ends[2];
static bool is_open;

/* Of the first of the two entities that starts: starts are in sequence. */
static weir_status open_pipe(void)
{
	if (!is_open && (pipe2(ends, O_NONBLOCK | O_CLOEXEC) || fcntl(ends[1], F_SETPIPE_SZ, CHUNK) < 0))
		return WEIR_E_IO;
	is_open = true;
	return WEIR_OK;
}

static weir_status feed_start(weir_context *context, void *state, const weir_values *values)
{
	*(int64_t *)state = weir_values_int(values, "count");
	(void)context;
	return open_pipe();
}

static weir_status feed_compute(weir_context *context, void *state)
{
	int64_t count = *(int64_t *)state;

	if (write(ends[1], "", 1) != 1)
		return WEIR_E_IO;
	if ((int64_t)weir_context_tick(context) + 1 < count)
		return WEIR_OK;
	close(ends[1]);
	return weir_context_finish(context);
}

static weir_status tap_start(weir_context *context, void *state, const weir_values *values)
{
	weir_status status = open_pipe();

	(void)state;
	(void)values;
	return status ? status
		      : weir_entity_watch(weir_context_entity(context), "file_descriptor", ends[0],
					  WEIR_WATCH_READ);
}

static weir_status tap_compute(weir_context *context, void *state)
{
	char byte;
	ssize_t got = read(ends[0], &byte, 1);

	(void)state;
	return got > 0 ? emit_tensor(context, 0) : got == 0 ? weir_context_finish(context) : WEIR_OK;
}

static weir_status spill_start(weir_context *context, void *state, const weir_values *values)
{
	weir_status status = open_pipe();

	(void)state;
	(void)values;
	return status ? status
		      : weir_entity_watch(weir_context_entity(context), "file_descriptor", ends[1],
					  WEIR_WATCH_WRITE);
}

static weir_status spill_compute(weir_context *context, void *state)
{
	static const char chunk[CHUNK];

	(void)context;
	(void)state;
	return write(ends[1], chunk, CHUNK) == CHUNK ? WEIR_OK : WEIR_E_IO;
}

static weir_status drain_compute(weir_context *context, void *state)
{
	static char chunk[CHUNK];
	ssize_t got = read(ends[0], chunk, CHUNK);

	if (got > 0)
		--*(int64_t *)state;
	else if (got < 0 && errno != EAGAIN)
		return WEIR_E_IO;
	return *(int64_t *)state ? WEIR_OK : weir_context_finish(context);
}

static const weir_parameter feed_parameters[] = {
	{.size = sizeof(weir_parameter), .name = "count", .type = WEIR_TYPE_INT, .fallback = "1"},
	{.name = NULL},
};

static const char *const watches[] = {"{\"type\": \"file_descriptor\"}", NULL};

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

static const weir_operator others[] = {
	{
		.size = sizeof(weir_operator),
		.name = "feed",
		.help = "writes a byte into the pipe",
		.flags = WEIR_OPERATOR_EFFECTS,
		.state_size = sizeof(int64_t),
		.parameters = feed_parameters,
		.start = feed_start,
		.compute = feed_compute,
	},
	{
		.size = sizeof(weir_operator),
		.name = "tap",
		.help = "emits a message for each byte of the pipe",
		.outputs = outputs,
		.start = tap_start,
		.compute = tap_compute,
		.conditions = watches,
	},
	{
		.size = sizeof(weir_operator),
		.name = "spill",
		.help = "fills the pipe for each message",
		.flags = WEIR_OPERATOR_EFFECTS,
		.inputs = inputs,
		.start = spill_start,
		.compute = spill_compute,
		.conditions = watches,
	},
	{
		.size = sizeof(weir_operator),
		.name = "drain",
		.help = "empties the pipe, some times",
		.flags = WEIR_OPERATOR_EFFECTS,
		.state_size = sizeof(int64_t),
		.parameters = feed_parameters,
		.start = feed_start,
		.compute = drain_compute,
	},
};

static weir_status add(weir_registry *registry)
{
	weir_status status = weir_registry_add_operator(registry, &stage);

	for (size_t i = 0; !status && i < sizeof others / sizeof *others; i++)
		status = weir_registry_add_operator(registry, &others[i]);
	return status;
}

WEIR_PLUGIN(add);
