/*
 * Operators that sleep until a descriptor is ready: `udp` emits the datagrams that come, `beat` one empty
 * message whenever its timerfd has expired, and `count` prints at each beat what came since the last. No
 * thread waits for a descriptor: weir's loop does, since the two sources bring the condition
 * `file_descriptor`.
 */
#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "socket.h"

enum { DATAGRAM = 65536, PER_TICK = 16 };

static const char *const waits[] = {"{\"type\": \"file_descriptor\"}", NULL};

struct source {
	int fd;
};

static weir_status watch(weir_context *context, int fd)
{
	return weir_entity_watch(weir_context_entity(context), "file_descriptor", fd, WEIR_WATCH_READ);
}

/* Of both sources. The watch has ended before, with the run. */
static void source_stop(weir_context *context, void *state)
{
	const struct source *self = state;

	(void)context;
	if (self->fd >= 0)
		close(self->fd);
}

/* --- udp --- */

static const weir_parameter udp_parameters[] = {
	{
		.size = sizeof(weir_parameter),
		.name = "port",
		.type = WEIR_TYPE_INT,
		.fallback = "9000",
		.min = 1,
		.max = 65535,
		.help = "port of 127.0.0.1 that datagrams are sent to",
	},
	{.name = NULL},
};
static const weir_port udp_outputs[] = {
	{
		.size = sizeof(weir_port),
		.name = "out",
		.kinds = WEIR_KIND_BYTES,
		.max_emits = PER_TICK,
		.help = "one message a datagram",
	},
	{.name = NULL},
};

/* weir calls stop only if start succeeded. */
static weir_status udp_start(weir_context *context, void *state, const weir_values *values)
{
	struct source *self = state;
	struct sockaddr_in address = {.sin_family = AF_INET};

	address.sin_port = htons((uint16_t)weir_values_int(values, "port"));
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	self->fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (self->fd >= 0 && !bind(self->fd, (struct sockaddr *)&address, sizeof address))
		return watch(context, self->fd);
	weir_context_fail(context, "port %d: %s", (int)weir_values_int(values, "port"), strerror(errno));
	source_stop(context, state);
	return WEIR_E_IO;
}

static weir_status emit_datagram(weir_context *context, const char *bytes, size_t count)
{
	weir_message *message = NULL;
	weir_status status = weir_message_create_bytes(weir_context_graph(context), count, &message);

	if (status)
		return status;
	memcpy(weir_message_data(message), bytes, count);
	return weir_context_emit(context, 0, message);
}

/*
 * Takes up to PER_TICK datagrams. What is left makes the entity ready again at once. The datagram "end"
 * drains the run.
 */
static weir_status udp_compute(weir_context *context, void *state)
{
	const struct source *self = state;
	char bytes[DATAGRAM];
	weir_status status = WEIR_OK;

	for (int i = 0; i < PER_TICK && !status; i++) {
		ssize_t count = recv(self->fd, bytes, sizeof bytes, 0);
		if (count < 0)
			return errno == EAGAIN ? WEIR_OK : weir_context_fail(context, "%s", strerror(errno));
		if (count == 3 && !memcmp(bytes, "end", 3)) {
			weir_context_drain(context, NULL);
			break;
		}
		status = emit_datagram(context, bytes, (size_t)count);
	}
	return status;
}

static const weir_operator udp = {
	.size = sizeof(weir_operator),
	.name = "udp",
	.help = "emits the datagrams that come to a port; \"end\" ends the run",
	.state_size = sizeof(struct source),
	.parameters = udp_parameters,
	.outputs = udp_outputs,
	.start = udp_start,
	.compute = udp_compute,
	.stop = source_stop,
	.conditions = waits,
};

/* --- beat: what the condition `periodic` does without a descriptor --- */

static const weir_parameter beat_parameters[] = {
	{
		.size = sizeof(weir_parameter),
		.name = "period",
		.type = WEIR_TYPE_DURATION,
		.fallback = "\"100ms\"",
		.min = 1000,
		.max = INT64_MAX,
		.help = "time between two beats",
	},
	{.name = NULL},
};
static const weir_port beat_outputs[] = {
	{.size = sizeof(weir_port), .name = "out", .kinds = WEIR_KIND_EMPTY, .help = "one message a beat"},
	{.name = NULL},
};

static weir_status beat_start(weir_context *context, void *state, const weir_values *values)
{
	struct source *self = state;
	int64_t period = weir_values_int(values, "period");
	struct timespec time = {period / 1000000000, period % 1000000000};
	struct itimerspec every = {time, time};

	self->fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	if (self->fd >= 0 && !timerfd_settime(self->fd, 0, &every, NULL))
		return watch(context, self->fd);
	weir_context_fail(context, "timerfd: %s", strerror(errno));
	source_stop(context, state);
	return WEIR_E_IO;
}

static weir_status beat_compute(weir_context *context, void *state)
{
	const struct source *self = state;
	weir_message *message = NULL;
	uint64_t beats;
	weir_status status;

	if (read(self->fd, &beats, sizeof beats) != sizeof beats)
		return WEIR_OK;
	status = weir_message_create_empty(weir_context_graph(context), &message);
	return status ? status : weir_context_emit(context, 0, message);
}

static const weir_operator beat = {
	.size = sizeof(weir_operator),
	.name = "beat",
	.help = "emits an empty message whenever a timerfd has expired",
	.state_size = sizeof(struct source),
	.parameters = beat_parameters,
	.outputs = beat_outputs,
	.start = beat_start,
	.compute = beat_compute,
	.stop = source_stop,
	.conditions = waits,
};

/* --- count --- */

struct count {
	uint64_t datagrams, bytes, new_ones;
};

static const weir_port count_inputs[] = {
	{
		.size = sizeof(weir_port),
		.name = "in",
		.kinds = WEIR_KIND_BYTES | WEIR_KIND_EMPTY,
		.capacity = 64,
		.take = WEIR_TAKE_ALL,
		.help = "datagrams and beats",
	},
	{.name = NULL},
};

static weir_status count_compute(weir_context *context, void *state)
{
	struct count *self = state;

	for (size_t i = 0; i < weir_context_count(context, 0); i++) {
		const weir_message *message = weir_context_message(context, 0, i);
		bool datagram = weir_message_kind(message) == WEIR_KIND_BYTES;
		self->datagrams += datagram;
		self->new_ones += datagram;
		self->bytes += weir_message_size(message);
		if (!datagram && self->new_ones) {
			printf("%" PRIu64 " datagrams\n", self->new_ones);
			self->new_ones = 0;
		}
	}
	return WEIR_OK;
}

static void count_stop(weir_context *context, void *state)
{
	const struct count *self = state;

	(void)context;
	printf("%" PRIu64 " datagrams, %" PRIu64 " bytes in all\n", self->datagrams, self->bytes);
}

static const weir_operator count = {
	.size = sizeof(weir_operator),
	.name = "count",
	.help = "prints at each beat how many datagrams came, and at the end how many in all",
	.flags = WEIR_OPERATOR_EFFECTS,
	.state_size = sizeof(struct count),
	.inputs = count_inputs,
	.compute = count_compute,
	.stop = count_stop,
};

weir_status socket_add(weir_registry *registry)
{
	weir_status status = weir_registry_add_operator(registry, &udp);

	if (!status)
		status = weir_registry_add_operator(registry, &beat);
	return status ? status : weir_registry_add_operator(registry, &count);
}

WEIR_PLUGIN(socket_add);
