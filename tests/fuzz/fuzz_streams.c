/* Chooses the stream that an entity works on, and launches the kernels there. */
#include "fuzz_api.h"
#include "tests/calls.h"

static int work(const void *arguments)
{
	const struct fz_work *self = arguments;
	struct fz_entity *entity = self->entity;

	if (self->ns)
		weir_sleep(self->ns);
	if (self->received.from)
		fz_check(entity, self->received, self->connection, self->seen, "on the device");
	if (self->to)
		fz_write(entity->fz, self->to, self->to_size, self->made, self->ns / 2);
	if (self->tells && entity->asynchronous)
		weir_entity_tell(entity->handle, "asynchronous", WEIR_TOLD_EVENT_DONE);
	if (self->tells && entity->boolean)
		weir_entity_tell(entity->handle, "boolean", WEIR_TOLD_READY);
	return self->fault;
}

static const weir_kernel kernel = {sizeof(weir_kernel), "fuzz", work, NULL};

weir_status fz_launch(weir_stream *stream, const struct fz_work *arguments)
{
	return stream ? weir_stream_launch(stream, &kernel, arguments, sizeof *arguments) : WEIR_E_DEVICE;
}

/*
 * Orders later work on `target` after everything that the messages of this tick wait for: the internal
 * stream waits for it, also for work on streams that no message carries, and `target` waits for the
 * internal stream.
 */
static weir_status after_inputs(struct fz_entity *entity, weir_context *context, weir_stream *target)
{
	weir_stream *internal = entity->source ? target : current_stream(context);

	if (!internal)
		return WEIR_E_DEVICE;
	return weir_context_synchronize_streams(context, &internal, 1, target);
}

static weir_status receive_each(weir_context *context, bool allocate, bool to_default, weir_stream **out)
{
	weir_status status = WEIR_OK;

	for (unsigned port = 0; !status && port < FZ_PORTS; port++)
		status = weir_context_receive_stream(context, port,
						     (allocate ? 0 : WEIR_RECEIVE_TAKE_NONE) |
							     (to_default ? WEIR_RECEIVE_SYNC_DEFAULT : 0),
						     out);
	return status;
}

static weir_status internal(weir_context *context, weir_stream **out)
{
	*out = current_stream(context);
	return *out ? WEIR_OK : WEIR_E_DEVICE;
}

static weir_status by_way(struct fz_entity *entity, weir_context *context, weir_stream **out)
{
	weir_status status;

	switch (entity->way) {
	case FZ_INTERNAL:
		return internal(context, out);
	case FZ_EACH:
	case FZ_ONLY:
	case FZ_AFTER_DEFAULT:
		if (entity->source)
			return internal(context, out);
		return receive_each(context, entity->way != FZ_ONLY, entity->way == FZ_AFTER_DEFAULT, out);
	case FZ_NAMED:
		status = weir_context_allocate_stream(context, "side", out);
		if (status == WEIR_E_BUSY || status == WEIR_E_UNSUPPORTED)
			return internal(context, out);
		return status ? status : after_inputs(entity, context, *out);
	case FZ_DEFAULT:
		*out = device_stream(context);
		return *out ? after_inputs(entity, context, *out) : WEIR_E_DEVICE;
	case FZ_WAYS:
		break;
	}
	return WEIR_E_INVALID;
}

weir_stream *fz_stream(struct fz_entity *entity, weir_context *context)
{
	weir_stream *stream = NULL;

	bool failed = by_way(entity, context, &stream) || !stream;

	if (failed && atomic_load(&entity->fz->faulted))
		return NULL;
	if (failed)
		fz_break(entity->fz, "e%u: no stream: %s", entity->id, weir_last_error());
	for (unsigned output = 0; entity->attaches && output < FZ_OUTPUTS; output++)
		if (weir_context_set_stream(context, output, stream) && !atomic_load(&entity->fz->faulted))
			fz_break(entity->fz, "e%u: set_stream: %s", entity->id, weir_last_error());
	return stream;
}

/* Runs longer than an aborted run waits. Nothing follows it, and nothing is emitted. */
weir_status fz_drag(struct fz_entity *entity, weir_context *context)
{
	struct fz_work arguments = {.entity = entity, .ns = 400 * FZ_MS};
	weir_stream *stream = NULL;
	weir_status status = weir_context_allocate_stream(context, "drag", &stream);

	if (status == WEIR_E_BUSY || status == WEIR_E_UNSUPPORTED)
		return WEIR_OK;
	return status ? status : fz_launch(stream, &arguments);
}

/* Work that no message carries, and the fence behind it; without a stream {0, 0}. */
static weir_status work_beside(struct fz_entity *entity, weir_context *context, const char *name,
			       weir_fence *out)
{
	struct fz_work arguments = {.entity = entity, .ns = entity->work};
	weir_stream *stream = NULL;
	weir_status status = weir_context_allocate_stream(context, name, &stream);

	if (status == WEIR_E_BUSY || status == WEIR_E_UNSUPPORTED) {
		*out = (weir_fence){0, 0};
		return WEIR_OK;
	}
	if (!status)
		status = fz_launch(stream, &arguments);
	return status ? status : weir_stream_record(stream, out);
}

/* The next tick waits for it by a condition of the fuzzer's. */
weir_status fz_own_fence(struct fz_entity *entity, weir_context *context)
{
	return work_beside(entity, context, "own", &entity->own);
}

weir_status fz_tell_fence(struct fz_entity *entity, weir_context *context)
{
	weir_status status = work_beside(entity, context, "told", &entity->told);

	return status ? status : weir_entity_tell_fence(entity->handle, "fence", entity->told);
}
