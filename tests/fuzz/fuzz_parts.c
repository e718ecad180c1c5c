/*
 * Packs, stamps and copies. A pack has payloads as its parts, numbered in order, so a receiver that reads all
 * parts in order checks it like messages sent one by one. What is passed on goes as it is, as its first part
 * alone, as a new pack of the same parts, or as a copy made on the device. A payload holds the tag of the
 * stamp that its message must have.
 */
#include <stdio.h>

#include "fuzz_api.h"

size_t fz_payloads(const weir_message *message)
{
	return weir_message_parts(message) ? weir_message_parts(message) : 1;
}

weir_message *fz_payload(weir_message *message, size_t i)
{
	return weir_message_parts(message) ? weir_message_part_at(message, i) : message;
}

/* --- packs --- */

struct bundle {
	weir_part parts[FZ_PARTS];
	char names[FZ_PARTS][8];
	size_t count;
};

static void bundle_add(struct bundle *bundle, weir_message *message)
{
	size_t i = bundle->count++;

	snprintf(bundle->names[i], sizeof bundle->names[i], "p%zu", i);
	bundle->parts[i] = (weir_part){sizeof(weir_part), bundle->names[i], message};
}

/* Takes the references of the bundle, also if it fails. */
static weir_status bundle_pack(struct fz_entity *entity, struct bundle *bundle, weir_status status,
			       weir_message **out)
{
	if (!status)
		status = weir_message_pack(entity->fz->graph, bundle->parts, bundle->count, out);
	for (size_t i = 0; status && i < bundle->count; i++)
		weir_message_unref(bundle->parts[i].message);
	return status;
}

weir_status fz_make_whole(struct fz_entity *entity, weir_context *context, fz_make *make, weir_message **out)
{
	unsigned parts = entity->parts ? fz_below(&entity->random, entity->parts + 1) : 0;
	struct bundle bundle = {.count = 0};
	weir_status status = WEIR_OK;

	if (!parts)
		return make(entity, context, out);
	for (unsigned i = 0; !status && i < parts; i++) {
		weir_message *message = NULL;
		status = make(entity, context, &message);
		if (message)
			bundle_add(&bundle, message);
	}
	return bundle_pack(entity, &bundle, status, out);
}

/* --- passing on --- */

/* The bytes in one to three copies of rows and of what is left. */
static weir_status copy_bytes(weir_stream *stream, char *to, const char *from, size_t size, size_t rows)
{
	size_t width = size / rows, whole = width * rows;
	const weir_copy copies[] = {
		{.size = sizeof *copies,
		 .to = to,
		 .from = from,
		 .rows = rows,
		 .row_bytes = width,
		 .to_stride = width,
		 .from_stride = width},
		{.size = sizeof *copies, .to = to + whole, .from = from + whole, .row_bytes = size - whole},
	};

	return weir_stream_copies(stream, copies, 2, 0, NULL);
}

static weir_status copy_payload(struct fz_entity *entity, weir_context *context, weir_message *message,
				weir_message **out)
{
	int64_t shape = (int64_t)weir_message_size(message);
	weir_tensor like = {.size = sizeof like, .dimensions = 1, .shape = &shape, .code = 1, .bits = 8};
	weir_stamp stamp = weir_message_stamp(message);
	weir_stream *stream;
	weir_status status;

	if (!weir_message_data(message)) {
		*out = weir_message_ref(message);
		return WEIR_OK;
	}
	status = weir_context_create_tensor(context, &like, 0, out);
	if (status)
		return status;
	fz_spoil(weir_message_data(*out), (size_t)shape);
	stream = fz_stream(entity, context);
	status = stream ? copy_bytes(stream, weir_message_data(*out), weir_message_data(message),
				     (size_t)shape, 1 + fz_below(&entity->random, 5))
			: WEIR_E_DEVICE;
	if (!status)
		status = weir_message_set_stamp(*out, (weir_stamp){stamp.time | 1, stamp.tag});
	return status;
}

static weir_status copy_whole(struct fz_entity *entity, weir_context *context, weir_message *message,
			      weir_message **out)
{
	struct bundle bundle = {.count = 0};
	weir_status status = WEIR_OK;

	for (size_t i = 0; !status && i < fz_payloads(message); i++) {
		weir_message *copy = NULL;
		status = copy_payload(entity, context, fz_payload(message, i), &copy);
		if (copy)
			bundle_add(&bundle, copy);
	}
	if (!status && !weir_message_parts(message)) {
		*out = bundle.parts[0].message;
		return WEIR_OK;
	}
	return bundle_pack(entity, &bundle, status, out);
}

static weir_status repack(struct fz_entity *entity, weir_message *message, weir_message **out)
{
	struct bundle bundle = {.count = 0};

	for (size_t i = 0; i < fz_payloads(message); i++)
		bundle_add(&bundle, weir_message_ref(fz_payload(message, i)));
	return bundle_pack(entity, &bundle, WEIR_OK, out);
}

weir_status fz_pass(struct fz_entity *entity, weir_context *context, weir_message *message,
		    weir_message **out)
{
	switch (entity->passes) {
	case FZ_FIRST_PART:
		*out = weir_message_ref(fz_payload(message, 0));
		return WEIR_OK;
	case FZ_REPACKED:
		return repack(entity, message, out);
	case FZ_COPIED:
		return copy_whole(entity, context, message, out);
	case FZ_AS_IT_IS:
	case FZ_SHAPES:
		break;
	}
	*out = weir_message_ref(message);
	return WEIR_OK;
}

/* --- stamps --- */

static weir_stamp draw_stamp(struct fz_entity *entity)
{
	return (weir_stamp){1 + fz_below(&entity->random, 1000), fz_next(&entity->random)};
}

static weir_stamp stamp_of_inputs(const struct fz_entity *entity, weir_context *context)
{
	for (unsigned port = 0; !entity->source && port < FZ_PORTS; port++)
		if (weir_context_count(context, port))
			return weir_message_stamp(weir_context_message(context, port, 0));
	return (weir_stamp){0, 0};
}

void fz_begin_stamps(struct fz_entity *entity, weir_context *context)
{
	if (entity->stamps == FZ_INHERITED) {
		entity->stamp = stamp_of_inputs(entity, context);
		return;
	}
	entity->stamp = draw_stamp(entity);
	if (weir_context_set_stamp(context, entity->stamp))
		fz_break(entity->fz, "%s: the tick's stamp: %s", entity->name, weir_last_error());
}

uint64_t fz_stamp(struct fz_entity *entity, weir_message *message)
{
	weir_stamp stamp = entity->stamp;

	if (entity->stamps != FZ_OF_MESSAGE)
		return stamp.tag;
	stamp = draw_stamp(entity);
	if (weir_message_set_stamp(message, stamp))
		fz_break(entity->fz, "e%u: the stamp of a message: %s", entity->id, weir_last_error());
	return stamp.tag;
}
