/*
 * The ways in which an entity of the simulation gets the stream that it works on: all the calls that an
 * operator has. In all of them its work comes after the inputs' producers, and what it emits carries the
 * stream; readers check both.
 */
#include "dst.h"
#include "tests/calls.h"

#include <stdio.h>

enum way { INTERNAL, RECEIVE_EACH, RECEIVE_ONLY, AFTER_DEFAULT, NAMED, BY_HAND, ON_DEFAULT };

_Static_assert(ON_DEFAULT + 1 == DST_WAYS, "one way more");

enum { FOUND = 8 };

static weir_status receive_each(weir_context *context, bool allocate, bool sync_to_default, weir_stream **out)
{
	weir_status status = WEIR_OK;

	for (unsigned input = 0; !status && (input == 0 || input < weir_context_entity(context)->input_count);
	     input++)
		status =
			weir_context_receive_stream(context, input,
						    (allocate ? 0 : WEIR_RECEIVE_TAKE_NONE) |
							    (sync_to_default ? WEIR_RECEIVE_SYNC_DEFAULT : 0),
						    out);
	return status;
}

/* Work enqueued on the target from now on comes after all streams that the messages of this tick carry. */
static weir_status after_inputs(struct dst *dst, weir_context *context, weir_stream *target)
{
	weir_stream *found[FOUND];
	weir_status status = WEIR_OK;

	for (unsigned input = 0; input < weir_context_entity(context)->input_count; input++)
		for (size_t i = 0; !status && i < weir_context_count(context, input); i++) {
			size_t n = weir_context_receive_streams(context, input, i, FOUND, found);
			if (n > FOUND)
				dst_break(dst, "a message carries %zu streams", n);
			status = weir_context_synchronize_streams(context, found, n, target);
		}
	return status;
}

/* A second own stream by name, or the internal one if the pool has no more. */
static weir_status named(struct dst *dst, weir_context *context, weir_stream **out)
{
	weir_status status = weir_context_allocate_stream(context, "own", out);

	if (status == WEIR_E_BUSY || status == WEIR_E_UNSUPPORTED) {
		*out = current_stream(context);
		return *out ? WEIR_OK : WEIR_E_DEVICE;
	}
	return status ? status : after_inputs(dst, context, *out);
}

static weir_status by_way(struct dst *dst, weir_context *context, unsigned way, weir_stream **out)
{
	weir_status status = WEIR_OK;

	*out = NULL;
	if (!weir_context_entity(context)->input_count && way != NAMED && way != ON_DEFAULT)
		way = INTERNAL; /* a source receives nothing */
	switch ((enum way)way) {
	case INTERNAL:
		*out = current_stream(context);
		return *out ? WEIR_OK : WEIR_E_DEVICE;
	case RECEIVE_EACH:
		return receive_each(context, true, false, out);
	case RECEIVE_ONLY:
		return receive_each(context, false, false, out);
	case AFTER_DEFAULT:
		return receive_each(context, true, true, out);
	case NAMED:
		return named(dst, context, out);
	case BY_HAND:
		*out = current_stream(context);
		status = *out ? WEIR_OK : WEIR_E_DEVICE;
		return status ? status : after_inputs(dst, context, *out);
	case ON_DEFAULT:
		*out = device_stream(context);
		return *out ? after_inputs(dst, context, *out) : WEIR_E_DEVICE;
	}
	return WEIR_E_INVALID;
}

/* Sets the stream on output 0, as the default stream and named
 * ones are set on none: the readers must wait for it. */
weir_stream *dst_stream(struct dst *dst, weir_context *context, unsigned way)
{
	const weir_entity *entity = weir_context_entity(context);
	weir_stream *stream;

	if (by_way(dst, context, way, &stream))
		return NULL;
	if (weir_stream_device(stream) != entity->plan->device && way != RECEIVE_ONLY &&
	    entity->plan->stream_pool != WR_NO_POOL)
		dst_break(dst, "%s is given a stream of device %d", entity->plan->name,
			  weir_stream_device(stream));
	return entity->output_count && weir_context_set_stream(context, 0, stream) ? NULL : stream;
}
