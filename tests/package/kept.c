/*
 * A plugin as it was built in the past: against the header of this ABI that abi/ keeps. It must load and run
 * as long as WEIR_ABI stays. It also has a function in view that no weir has yet, and falls back.
 *
 * `count_up` passes a number on, one larger; with "check" it fails unless the numbers that come are 1, 2, ...
 */
#include KEPT

#pragma weak weir_message_of_the_future
weir_status weir_message_of_the_future(weir_graph *graph, weir_message **out);

struct count_up {
	bool check;
	int64_t seen;
};

static const weir_parameter parameters[] = {
	{.size = sizeof(weir_parameter), .name = "check", .type = WEIR_TYPE_BOOL, .fallback = "false"},
	{.name = NULL},
};

static const weir_port inputs[] = {
	{.size = sizeof(weir_port), .name = "in", .kinds = WEIR_KIND_BYTES, .flags = WEIR_PORT_OPTIONAL},
	{.name = NULL},
};

static const weir_port outputs[] = {
	{.size = sizeof(weir_port), .name = "out", .kinds = WEIR_KIND_BYTES, .flags = WEIR_PORT_OPTIONAL},
	{.name = NULL},
};

static weir_status start(weir_context *context, void *state, const weir_values *values)
{
	struct count_up *self = state;

	self->check = weir_values_bool(values, "check");
	if (!weir_has("weir_message_create_bytes"))
		return weir_context_fail(context, "this weir makes no messages");
	return WEIR_OK;
}

static weir_status create(weir_graph *graph, weir_message **out)
{
	if (weir_has("weir_message_of_the_future"))
		return weir_message_of_the_future(graph, out);
	return weir_message_create_bytes(graph, sizeof(int64_t), out);
}

static weir_status compute(weir_context *context, void *state)
{
	struct count_up *self = state;
	weir_message *to = NULL;
	weir_status status;
	int64_t number = 0;

	if (weir_context_count(context, 0))
		number = *(const int64_t *)weir_message_data(weir_context_message(context, 0, 0));
	self->seen++;
	if (self->check && number != self->seen)
		return weir_context_fail(context, "%lld came, not %lld", (long long)number,
					 (long long)self->seen);
	status = create(weir_context_graph(context), &to);
	if (status)
		return status;
	*(int64_t *)weir_message_data(to) = self->check ? 0 : self->seen;
	return weir_context_emit(context, 0, to);
}

static const weir_operator count_up = {
	.size = sizeof(weir_operator),
	.name = "count_up",
	.help = "counts",
	.state_size = sizeof(struct count_up),
	.parameters = parameters,
	.inputs = inputs,
	.outputs = outputs,
	.start = start,
	.compute = compute,
};

static weir_status add(weir_registry *registry)
{
	return weir_registry_add_operator(registry, &count_up);
}

WEIR_PLUGIN(add);
