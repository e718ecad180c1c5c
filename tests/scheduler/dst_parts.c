/*
 * Messages of named parts, stamps and copies in the simulation. Where a world has packs, every second message
 * is a pack with one part, which is the payload; a receiver passes on the pack or the part alone. Each source
 * stamps its messages with what the payload says, and what comes of a message inherits its stamp. Where a
 * world has copies, entities that pass messages on emit a copy made on the device.
 */
#include "dst.h"

weir_message *dst_part(weir_message *message)
{
	return weir_message_parts(message) ? weir_message_part(message, "payload") : message;
}

static weir_status pack(struct dst *dst, weir_context *context, weir_message **message)
{
	const weir_part part = {sizeof part, "payload", *message};

	if (!dst->packs || weir_message_parts(*message) || weir_context_tick(context) % 2)
		return WEIR_OK;
	return weir_message_pack(weir_context_graph(context), &part, 1, message);
}

/* Takes the reference, also if it fails. */
weir_status dst_emit(struct dst *dst, weir_context *context, weir_message *message, const weir_fence *at)
{
	weir_status status = pack(dst, context, &message);

	if (status) {
		weir_message_unref(message);
		return status;
	}
	return at ? weir_context_emit_at(context, 0, message, *at) : weir_context_emit(context, 0, message);
}

weir_status dst_stamp(struct dst *dst, weir_context *context, uint32_t source, uint32_t number)
{
	if (!dst->packs)
		return WEIR_OK;
	dst->stamps[source] = true;
	return weir_context_set_stamp(context, (weir_stamp){1, dst_payload_of(source, number).mark});
}

/* On the host, at a message that is complete; `message`: the payload. */
void dst_check_stamp(struct dst *dst, const weir_message *message, const char *reader)
{
	const struct dst_payload *payload = weir_message_data(message);

	if (dst->packs && payload->source < DST_ENTITIES && dst->stamps[payload->source] &&
	    weir_message_stamp(message).tag != payload->mark)
		dst_break(dst, "%s: number %u of source %u has the stamp of another message", reader,
			  payload->number, payload->source);
}

/* A message that the stream copies from this one, which it is ordered behind. */
weir_status dst_copy(weir_context *context, weir_stream *stream, const weir_message *message,
		     weir_message **out)
{
	const int64_t bytes = sizeof(struct dst_payload);
	const weir_tensor like = {
		.size = sizeof like, .dimensions = 1, .shape = &bytes, .code = 1, .bits = 8};
	weir_copy copies[2] = {{.size = sizeof *copies, .row_bytes = 8},
			       {.size = sizeof *copies, .row_bytes = 8}};
	weir_status status = stream ? weir_context_create_tensor(context, &like, 0, out) : WEIR_E_DEVICE;

	if (status)
		return status;
	for (size_t i = 0; i < 2; i++) {
		copies[i].to = (char *)weir_message_data(*out) + 8 * i;
		copies[i].from = (const char *)weir_message_data((weir_message *)message) + 8 * i;
	}
	status = weir_stream_copies(stream, copies, 2, 0, NULL);
	if (!status && weir_message_stamp(message).time)
		status = weir_message_set_stamp(*out, weir_message_stamp(message));
	if (status)
		weir_message_unref(*out);
	return status;
}
