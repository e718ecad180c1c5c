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

static weir_status add(weir_registry *registry)
{
	return weir_registry_add_operator(registry, &crash);
}

WEIR_PLUGIN(add);
