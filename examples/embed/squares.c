#include "squares.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* --- the operator --- */

static const weir_port inputs[] = {
	{.size = sizeof(weir_port),
	 .name = "in",
	 .kinds = WEIR_KIND_BYTES,
	 .capacity = 4,
	 .help = "an int64"},
	{.name = NULL},
};
static const weir_port outputs[] = {
	{.size = sizeof(weir_port), .name = "out", .kinds = WEIR_KIND_BYTES, .help = "its square, an int64"},
	{.name = NULL},
};

static weir_status compute(weir_context *context, void *state)
{
	weir_message *from = weir_context_message(context, 0, 0), *to = NULL;
	weir_status status;
	int64_t n;

	(void)state;
	if (weir_message_size(from) != sizeof n)
		return weir_context_fail(context, "%zu bytes are no int64", weir_message_size(from));
	memcpy(&n, weir_message_data(from), sizeof n);
	n *= n;
	status = weir_message_create_bytes(weir_context_graph(context), sizeof n, &to);
	if (status)
		return status;
	memcpy(weir_message_data(to), &n, sizeof n);
	return weir_context_emit(context, 0, to); /* takes `to` */
}

const weir_operator square = {
	.size = sizeof(weir_operator),
	.name = "square",
	.help = "n in, n * n out",
	.inputs = inputs,
	.outputs = outputs,
	.compute = compute,
};

/* --- the graph --- */

static weir_status make_graph(struct squares *self)
{
	static const char json[] =
		"{\"weir\": 1, \"name\": \"squares\","
		" \"entities\": [{\"name\": \"square\", \"operator\": \"square\"}], \"connections\": []}";
	weir_description *description = NULL;
	weir_status status = weir_registry_create(&self->registry);

	if (!status)
		status = weir_registry_add_operator(self->registry, &square);
	if (!status)
		status = weir_description_parse(json, strlen(json), NULL, NULL, &description);
	if (!status)
		status = weir_graph_create(self->registry, description, &self->graph);
	weir_description_destroy(description); /* the graph keeps nothing of it */
	if (!status)
		status = weir_graph_add_inlet(self->graph, "square.in", &self->in);
	if (!status)
		status = weir_graph_add_outlet(self->graph, "square.out", 4, 0, &self->out);
	return status;
}

weir_status squares_open(struct squares *self, int64_t count, const weir_scheduler_options *options)
{
	weir_status status;

	*self = (struct squares){.count = count};
	status = make_graph(self);
	if (!status)
		status = weir_scheduler_create(self->graph, options, &self->scheduler);
	return status ? status : weir_scheduler_start(self->scheduler);
}

/* --- numbers in, squares out --- */

/* Returns false if there is no room now, or the inlet is closed. */
static bool push(struct squares *self)
{
	weir_message *message = NULL;

	if (self->pushed == self->count ||
	    weir_message_create_bytes(self->graph, sizeof self->pushed, &message))
		return false;
	memcpy(weir_message_data(message), &self->pushed, sizeof self->pushed);
	if (weir_inlet_push(self->in, message, 0)) { /* takes the message only on success */
		weir_message_unref(message);
		return false;
	}
	if (++self->pushed == self->count)
		weir_inlet_close(self->in);
	return true;
}

static weir_status take(struct squares *self)
{
	weir_message *message = NULL;
	weir_status status = weir_outlet_take(self->out, 0, &message);
	int64_t n;

	if (status)
		return status;
	memcpy(&n, weir_message_data(message), sizeof n);
	self->wrong += n != self->taken * self->taken;
	self->taken++;
	weir_message_unref(message);
	return WEIR_OK;
}

bool squares_step(struct squares *self)
{
	weir_status status = WEIR_OK;

	while (!status)
		status = take(self);
	while (push(self)) /* after taking: those may have been the only ones under way */
		;
	return status == WEIR_E_TIMEOUT; /* WEIR_E_CLOSED: no more results */
}

int squares_close(struct squares *self, weir_status status)
{
	weir_outcome outcome = {.size = sizeof outcome};

	if (!status)
		status = weir_scheduler_wait(self->scheduler, -1, &outcome);
	if (status)
		fprintf(stderr, "%s: %s\n", weir_status_text(status), weir_last_error());
	else
		printf("%" PRId64 " squares, %" PRId64 " wrong, %" PRIu64 " ticks\n", self->taken,
		       self->wrong, outcome.ticks);
	weir_scheduler_destroy(self->scheduler);
	weir_graph_destroy(self->graph); /* also destroys the inlet and the outlet */
	weir_registry_destroy(self->registry);
	return status || self->wrong || self->taken != self->count;
}
