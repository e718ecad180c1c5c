/* A plugin whose operator `crash` ends the process inside compute, in one of several ways. */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "weir.h"

static const weir_parameter parameters[] = {
	{.size = sizeof(weir_parameter),
	 .name = "way",
	 .type = WEIR_TYPE_CHOICE,
	 .choices = "read|abort|divide|overflow|late|exit|thread|cancel",
	 .help = "how it ends"},
	{.name = NULL},
};

struct crash {
	const char *way;
};

static weir_status start(weir_context *context, void *state, const weir_values *values)
{
	(void)context;
	((struct crash *)state)->way = weir_values_string(values, "way");
	return WEIR_OK;
}

/* The byte pointed to is never 2, which the compiler does not know. */
static int overflow(volatile char *below)
{
	volatile char room[4096];

	room[0] = below ? *below : 1;
	return below && *below == 2 ? 0 : overflow(room) + room[0];
}

static weir_status compute(weir_context *context, void *state)
{
	const struct crash *self = state;
	volatile int *nowhere = NULL;

	if (!strcmp(self->way, "abort"))
		abort();
	if (!strcmp(self->way, "divide"))
		raise(SIGFPE);
	if (!strcmp(self->way, "overflow"))
		return (weir_status)overflow(NULL);
	if (!strcmp(self->way, "read"))
		return (weir_status)*nowhere;
	if (!strcmp(self->way, "exit"))
		exit(0);
	if (!strcmp(self->way, "thread"))
		pthread_exit(NULL);
	if (!strcmp(self->way, "cancel")) {
		pthread_cancel(pthread_self());
		pthread_testcancel();
	}
	return weir_context_finish(context);
}

/* Mode `late`: crashes outside of compute. */
static void stop(weir_context *context, void *state)
{
	(void)context;
	if (!strcmp(((struct crash *)state)->way, "late"))
		raise(SIGSEGV);
}

static const weir_operator crash = {
	.size = sizeof(weir_operator),
	.name = "crash",
	.help = "ends the process",
	.state_size = sizeof(struct crash),
	.parameters = parameters,
	.start = start,
	.compute = compute,
	.stop = stop,
};

/* --- memory of the device, touched on the host --- */

static weir_status make(weir_context *context, bool on_host, weir_message **out)
{
	const int64_t one = 1;
	const weir_tensor like = {sizeof like, NULL, 0, 1, &one, NULL, 0, 64, 1};
	weir_status status = weir_context_create_tensor(context, &like, on_host ? WEIR_TENSOR_HOST : 0, out);

	if (!status)
		*(volatile int64_t *)weir_message_data(*out) = 1;
	return status;
}

static weir_status number_compute(weir_context *context, void *state)
{
	weir_message *message;
	weir_status status = make(context, true, &message);

	(void)state;
	return status ? status : weir_context_emit(context, 0, message);
}

static weir_status scribble_compute(weir_context *context, void *state)
{
	weir_message *message;
	weir_status status = make(context, false, &message);

	(void)state;
	if (status)
		return status;
	weir_message_unref(message);
	return weir_context_finish(context);
}

static weir_status peek_compute(weir_context *context, void *state)
{
	(void)state;
	(void)*(const volatile char *)weir_message_data(weir_context_message(context, 0, 0));
	return WEIR_OK;
}

static const weir_port peek_inputs[] = {{.size = sizeof(weir_port), .name = "in", .help = "a tensor"},
					{.name = NULL}};
static const weir_port number_outputs[] = {{.size = sizeof(weir_port), .name = "out", .help = "a tensor"},
					   {.name = NULL}};
static const weir_operator number = {.size = sizeof(weir_operator),
				     .name = "number",
				     .help = "makes a tensor on the host",
				     .outputs = number_outputs,
				     .compute = number_compute};
static const weir_operator scribble = {.size = sizeof(weir_operator),
				       .name = "scribble",
				       .help = "writes a tensor of the device on the host",
				       .compute = scribble_compute};
static const weir_operator peek = {.size = sizeof(weir_operator),
				   .name = "peek",
				   .help = "reads its input on the host",
				   .inputs = peek_inputs,
				   .compute = peek_compute};

static weir_status add(weir_registry *registry)
{
	weir_status status = weir_registry_add_operator(registry, &crash);

	if (!status)
		status = weir_registry_add_operator(registry, &number);
	if (!status)
		status = weir_registry_add_operator(registry, &peek);
	return status ? status : weir_registry_add_operator(registry, &scribble);
}

WEIR_PLUGIN(add);
