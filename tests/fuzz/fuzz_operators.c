/*
 * The operators: receive, check (on the host, or by a kernel), pass on, produce, keep, tell themselves,
 * stop, fail.
 */
#include <stdlib.h>

#include "fuzz_api.h"
#include "tests/calls.h"

enum { FENCES = 16 * FZ_PARTS };

struct node {
	struct fz_entity *entity;
};

static weir_status start(weir_context *context, void *state, const weir_values *values)
{
	struct fz *fz = fz_of(weir_values_int(values, "slot"));
	struct fz_entity *entity = &fz->entities[weir_values_int(values, "id")];

	((struct node *)state)->entity = entity;
	if (atomic_exchange(&entity->started, 1))
		fz_break(fz, "%s is started twice", entity->name);
	if (!entity->start_fails)
		return WEIR_OK;
	atomic_store(&entity->started, 0);
	entity->start_fails = false; /* the next start succeeds */
	return weir_context_fail(context, "start was told to fail" FZ_STRANGE);
}

static void let_go(struct fz_entity *entity)
{
	for (unsigned i = 0; i < FZ_KEPT; i++) {
		weir_message_unref(entity->kept[i]);
		entity->kept[i] = NULL;
	}
}

static void stop(weir_context *context, void *state)
{
	struct fz_entity *entity = ((struct node *)state)->entity;

	(void)context;
	if (!atomic_exchange(&entity->started, 0))
		fz_break(entity->fz, "%s is stopped, but was not started", entity->name);
	let_go(entity);
}

/* --- receiving --- */

static bool complete(struct fz_entity *entity, const weir_message *message)
{
	weir_fence fences[FENCES];
	size_t n = weir_message_fences(message, FENCES, fences);

	for (size_t i = 0; i < n && i < FENCES; i++)
		if (weir_fence_query(entity->fz->graph, fences[i])) /* BUSY, or the device failed */
			return false;
	return true;
}

/* On the host: messages of a gated port must be finished, and every host port is gated. */
static void check_on_host(struct fz_entity *entity, const weir_message *message,
			  const struct fz_connection *connection)
{
	struct fz_seen *seen = &entity->seen[connection->port][connection->index];
	bool gated = entity->ports[connection->port].gated, finished = complete(entity, message);

	if (gated && !finished && !atomic_load(&entity->fz->faulted))
		fz_break(entity->fz, "%s: a gate let through what is not finished", entity->name);
	if (!weir_message_data(message))
		return;
	if ((gated && !atomic_load(&entity->fz->faulted)) || finished) {
		fz_check(entity, fz_received(message), connection, seen, "on the host");
		return;
	}
	for (unsigned i = 0; i < FZ_ORIGINS; i++)
		seen->unsure[i] = true;
}

/*
 * On the device: the stream waits for what the message carries. Order is checked if one stream has all
 * kernels.
 */
static weir_status check_by_kernel(struct fz_entity *entity, weir_context *context, weir_message *message,
				   const struct fz_connection *connection)
{
	struct fz_work arguments = {.entity = entity,
				    .received = fz_received(message),
				    .connection = connection,
				    .ns = entity->work};
	weir_stream *stream = fz_stream(entity, context);

	if (entity->way == FZ_INTERNAL && !entity->uses[0])
		arguments.seen = &entity->seen[connection->port][connection->index];
	return fz_launch(stream, &arguments);
}

static weir_status see_payload(struct fz_entity *entity, weir_context *context, weir_message *message,
			       const struct fz_connection *connection)
{
	bool gated = entity->ports[connection->port].gated;

	if (!entity->device) {
		check_on_host(entity, message, connection);
		return WEIR_OK;
	}
	if (gated && !complete(entity, message) && !atomic_load(&entity->fz->faulted))
		fz_break(entity->fz, "%s: a gate let through what is not finished", entity->name);
	return check_by_kernel(entity, context, message, connection);
}

static weir_status see(struct fz_entity *entity, weir_context *context, weir_message *message,
		       const struct fz_connection *connection)
{
	weir_status status = WEIR_OK;

	entity->received[connection->port]++;
	if (entity->keeps) {
		unsigned i = fz_below(&entity->random, FZ_KEPT);
		weir_message_unref(entity->kept[i]);
		entity->kept[i] =
			weir_message_ref(fz_chance(&entity->random, 2) ? message : fz_payload(message, 0));
	}
	for (size_t i = 0; !status && i < fz_payloads(message); i++)
		status = see_payload(entity, context, fz_payload(message, i), connection);
	return status;
}

static weir_status see_port(struct fz_entity *entity, weir_context *context, unsigned port)
{
	weir_status status = WEIR_OK;
	size_t i = 0;

	for (size_t k = 0; !status && k < entity->ports[port].connections; k++) {
		const struct fz_connection *connection = fz_connection_into(entity->fz, entity->id, port, k);
		for (size_t n = weir_context_queue_count(context, port, k); !status && n; n--)
			status = see(entity, context, weir_context_message(context, port, i++), connection);
	}
	if (!status && i != weir_context_count(context, port))
		fz_break(entity->fz, "%s: %zu of %zu messages are of a connection", entity->name, i,
			 weir_context_count(context, port));
	return status;
}

/* --- emitting --- */

static void unwrap(void *pointer)
{
	struct fz *fz = *(struct fz **)pointer;

	atomic_fetch_add(&fz->unwrapped, 1);
	free(pointer);
}

/* User memory: a pointer to its graph, for the destructor, followed by the payload. */
static weir_status wrap(struct fz *fz, weir_graph *graph, size_t size, weir_message **out)
{
	int64_t shape = (int64_t)size;
	weir_tensor tensor = {.size = sizeof tensor,
			      .device = WEIR_DEVICE_HOST,
			      .dimensions = 1,
			      .shape = &shape,
			      .code = 1,
			      .bits = 8};
	struct fz **memory = malloc(sizeof *memory + size);
	weir_status status;

	if (!memory)
		return WEIR_E_NOMEM;
	*memory = fz;
	tensor.data = memory + 1;
	status = weir_message_wrap_tensor(graph, &tensor, unwrap, memory, out);
	if (status)
		free(memory);
	else
		atomic_fetch_add(&fz->wrapped, 1);
	return status;
}

/* Written by the host: bytes, a tensor of weir's, or user memory. */
weir_status fz_produce(struct fz_entity *entity, weir_graph *graph, size_t size, weir_message **out)
{
	int64_t shape = (int64_t)size;
	weir_tensor like = {.size = sizeof like,
			    .device = WEIR_DEVICE_HOST,
			    .dimensions = 1,
			    .shape = &shape,
			    .code = 1,
			    .bits = 8};

	if (entity->wraps)
		return wrap(entity->fz, graph, size, out);
	if (fz_chance(&entity->random, 3))
		return weir_message_create_tensor(graph, &like, out);
	return weir_message_create_bytes(graph, size, out);
}

static weir_status produce_here(struct fz_entity *entity, weir_context *context, size_t size,
				weir_message **out)
{
	weir_status status = fz_produce(entity, weir_context_graph(context), size, out);

	if (!status)
		fz_write(entity->fz, weir_message_data(*out), size,
			 (struct fz_made){entity->id, entity->number++, fz_stamp(entity, *out)}, 0);
	return status;
}

static weir_status produce_later(struct fz_entity *entity, weir_context *context, size_t size,
				 weir_message **out)
{
	int64_t shape = (int64_t)size;
	weir_tensor like = {.size = sizeof like, .dimensions = 1, .shape = &shape, .code = 1, .bits = 8};
	struct fz_work arguments = {.entity = entity, .to_size = size, .ns = entity->work};
	weir_status status = weir_context_create_tensor(context, &like, 0, out);

	if (status)
		return status;
	arguments.made = (struct fz_made){entity->id, entity->number++, fz_stamp(entity, *out)};
	arguments.to = weir_message_data(*out);
	arguments.fault = entity->faults_at && weir_context_tick(context) + 1 == entity->faults_at;
	if (arguments.fault)
		atomic_store(&entity->fz->faulted, true);
	fz_spoil(arguments.to, size);
	return fz_launch(fz_stream(entity, context), &arguments);
}

static weir_status make_payload(struct fz_entity *entity, weir_context *context, weir_message **out)
{
	size_t size =
		FZ_PAYLOAD_LEAST + fz_below(&entity->random, fz_chance(&entity->random, 8) ? 3000 : 200);

	return entity->device ? produce_later(entity, context, size, out)
			      : produce_here(entity, context, size, out);
}

static weir_status produce(struct fz_entity *entity, weir_context *context, unsigned output)
{
	weir_message *message = NULL;
	weir_status status = fz_make_whole(entity, context, make_payload, &message);

	if (status) {
		weir_message_unref(message);
		return status;
	}
	return weir_context_emit(context, output, message);
}

/* Emits what arrived at `in`, or what is made of it. */
static weir_status pass_on(struct fz_entity *entity, weir_context *context, unsigned output,
			   uint64_t *emitted)
{
	weir_status status = WEIR_OK;

	for (size_t i = 0; !status && i < weir_context_count(context, 0); i++, ++*emitted) {
		weir_message *message = NULL;
		status = fz_pass(entity, context, weir_context_message(context, 0, i), &message);
		if (!status)
			status = weir_context_emit(context, output, message);
	}
	return status;
}

static weir_status emit(struct fz_entity *entity, weir_context *context, uint64_t emitted[FZ_OUTPUTS])
{
	weir_status status = WEIR_OK;

	for (unsigned output = 0; output < FZ_OUTPUTS; output++) {
		bool produces = entity->send[output] == FZ_PRODUCE &&
				(entity->source || !fz_chance(&entity->random, 8));
		uint32_t n = produces ? 1 + fz_below(&entity->random, entity->max_emits[output]) : 0;

		if (entity->send[output] == FZ_PASS)
			status = pass_on(entity, context, output, &emitted[output]);
		for (; !status && n; n--, emitted[output]++)
			status = produce(entity, context, output);
	}
	return status;
}

/* --- a tick --- */

/* Tells itself to wait, and has a kernel tell it to go on. */
static weir_status tell_oneself(struct fz_entity *entity, weir_context *context)
{
	struct fz_work arguments = {.entity = entity, .tells = true, .ns = entity->work};
	weir_stream *stream = current_stream(context);

	if (!stream)
		return WEIR_E_DEVICE;
	if (entity->asynchronous)
		weir_entity_tell(entity->handle, "asynchronous", WEIR_TOLD_EVENT_WAITING);
	if (entity->boolean)
		weir_entity_tell(entity->handle, "boolean", WEIR_TOLD_WAIT);
	return fz_launch(stream, &arguments);
}

static weir_status mishap(struct fz_entity *entity, weir_context *context)
{
	uint64_t tick = weir_context_tick(context) + 1;

	if (tick == entity->stops_at) {
		atomic_store(&entity->fz->stopped, true);
		weir_scheduler_stop(entity->fz->scheduler,
				    !fz_chance(&entity->random, 3) ? WEIR_STOP_DRAIN : 0);
	}
	if (tick != entity->fails_at)
		return WEIR_OK;
	atomic_store(&entity->fz->failed, true);
	return weir_context_fail(context, "compute was told to fail" FZ_STRANGE);
}

/* The entity alone told the fence, in its last tick: this one was let through by it. */
static void check_told(const struct fz_entity *entity)
{
	struct fz *fz = entity->fz;

	if (entity->told_fence && !atomic_load(&fz->fences_told) &&
	    weir_fence_query(fz->graph, entity->told) == WEIR_E_BUSY)
		fz_break(fz, "%s: the work before the told fence is not finished", entity->name);
}

static weir_status work(struct fz_entity *entity, weir_context *context)
{
	uint64_t emitted[FZ_OUTPUTS] = {0};
	weir_status status = mishap(entity, context);

	check_told(entity);
	if (entity->delay || entity->fz->inside) /* where a tick by itself takes no time */
		weir_sleep(entity->delay + 1 + fz_below(&entity->random, 5000));
	for (unsigned port = 0; !status && !entity->source && port < FZ_PORTS; port++)
		status = see_port(entity, context, port);
	fz_begin_stamps(entity, context);
	if (!status)
		status = emit(entity, context, emitted);
	if (!status && entity->tells)
		status = tell_oneself(entity, context);
	if (!status && entity->drags_at && weir_context_tick(context) + 1 == entity->drags_at)
		status = fz_drag(entity, context);
	if (!status && entity->own_fence)
		status = fz_own_fence(entity, context);
	if (!status && entity->told_fence)
		status = fz_tell_fence(entity, context);
	for (unsigned output = 0; !status && output < FZ_OUTPUTS; output++)
		entity->emitted[output] += emitted[output];
	if (entity->source && entity->ticks && weir_context_tick(context) + 1 == entity->ticks)
		weir_context_finish(context);
	return status;
}

static weir_status compute(weir_context *context, void *state)
{
	struct fz_entity *entity = ((struct node *)state)->entity;
	weir_status status;

	if (entity->busy)
		fz_break(entity->fz, "%s runs twice at once", entity->name);
	entity->busy = true;
	status = work(entity, context);
	if (status && !atomic_load(&entity->fz->failed) && !atomic_load(&entity->fz->faulted))
		fz_break(entity->fz, "%s: compute: %s: %s", entity->name, weir_status_text(status),
			 weir_last_error());
	entity->busy = false;
	return status;
}

/* --- the tables --- */

#define PORT .size = sizeof(weir_port)

static const weir_parameter parameters[] = {
	{.size = sizeof(weir_parameter),
	 .name = "slot",
	 .type = WEIR_TYPE_INT,
	 .fallback = "0",
	 .help = "the graph's"},
	{.size = sizeof(weir_parameter), .name = "id", .type = WEIR_TYPE_INT, .help = "the entity's"},
	{.name = NULL}};
static const weir_port outputs[] = {{PORT, .name = "out", .flags = WEIR_PORT_OPTIONAL},
				    {PORT, .name = "out2", .flags = WEIR_PORT_OPTIONAL},
				    {.name = NULL}};
static const weir_port inputs[] = {{PORT, .name = "in", .flags = WEIR_PORT_OPTIONAL},
				   {PORT, .name = "in2", .flags = WEIR_PORT_OPTIONAL},
				   {PORT, .name = "any", .flags = WEIR_PORT_OPTIONAL | WEIR_PORT_ANY_SIZE},
				   {.name = NULL}};

/* Kernels read these, host code does not: the stream is ordered by itself. */
static const weir_port device_inputs[] = {
	{PORT, .name = "in", .flags = WEIR_PORT_OPTIONAL | WEIR_PORT_DEVICE},
	{PORT, .name = "in2", .flags = WEIR_PORT_OPTIONAL | WEIR_PORT_DEVICE},
	{PORT, .name = "any", .flags = WEIR_PORT_OPTIONAL | WEIR_PORT_ANY_SIZE | WEIR_PORT_DEVICE},
	{.name = NULL}};

#define KIND                                                                                                 \
	.size = sizeof(weir_operator), .help = "of the fuzzer", .state_size = sizeof(struct node),           \
	.parameters = parameters, .start = start, .compute = compute, .stop = stop, .outputs = outputs

static const weir_operator operators[] = {
	{KIND, .name = "fz_source"},
	{KIND, .name = "fz_node", .inputs = inputs},
	{KIND, .name = "fz_device", .inputs = device_inputs},
};

weir_status fz_add_operators(weir_registry *registry)
{
	weir_status status = WEIR_OK;

	for (size_t i = 0; !status && i < sizeof operators / sizeof *operators; i++)
		status = weir_registry_add_operator(registry, &operators[i]);
	return status;
}
