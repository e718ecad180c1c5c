/* What the rooms above read of a stream beside its work, and unwrapping by the user. */
#include "base/status.h"
#include "streams/system.h"

uint64_t wr_stream_recorded(const weir_stream *stream)
{
	return wr_load(&((weir_stream *)stream)->submitted);
}

uint64_t wr_stream_take_items(weir_stream *stream)
{
	uint64_t items = stream->items;

	stream->items = 0;
	return items;
}

void *wr_stream_handle(const weir_stream *stream)
{
	return stream->system->backend->native_streams ? wr_load(&((weir_stream *)stream)->native) : NULL;
}

void wr_system_run(struct wr_system *system, bool on)
{
	wr_store(&system->running, on);
	if (on)
		wr_store(&system->short_timeout, false); /* it belonged to the last run */
}

/* Refused during a run: an operator may use the stream at any moment. */
weir_status weir_stream_unwrap(weir_stream *stream)
{
	if (stream && wr_load(&stream->system->running))
		return wr_fail(WEIR_E_BUSY,
			       "a run is on and its operators may use the wrapped stream: end the run first");
	return wr_stream_unwrap(stream);
}
