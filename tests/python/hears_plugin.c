/* A plugin whose operator hears in its stop why the run has ended, as remote_send does, which tells another
 * process. */
#include <stdio.h>

#include "weir.h"

WEIR_API char heard[1024];
char heard[1024]; /* "": its stop was not called */

static weir_status compute(weir_context *context, void *state)
{
	(void)context, (void)state;
	return WEIR_OK;
}

static void stop(weir_context *context, void *state)
{
	const char *why = weir_context_failure(context);

	(void)state;
	snprintf(heard, sizeof heard, "%s", why ? why : "it was stopped");
}

static const char *const conditions[] = {"{\"type\": \"periodic\", \"period\": \"1ms\"}", NULL};
static const weir_operator hears = {.size = sizeof hears,
				    .name = "hears",
				    .help = "ticks until the run ends",
				    .flags = WEIR_OPERATOR_EFFECTS,
				    .compute = compute,
				    .stop = stop,
				    .conditions = conditions};

static weir_status add(weir_registry *registry)
{
	return weir_registry_add_operator(registry, &hears);
}

WEIR_PLUGIN(add);
