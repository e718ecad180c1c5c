/* Calls about streams by threads that no fiber of their simulated world are. */
#ifndef WR_STREAMS_OUTSIDE_H
#define WR_STREAMS_OUTSIDE_H

#include "streams/streams.h"

/* The system stands in a simulated world, and the caller does not. Never so on real devices. */
bool wr_system_outside(const struct wr_system *system);
/* The public calls of those names, in the world. Fails: as they do; WEIR_E_DEADLOCK: the world is broken. */
weir_status wr_outside_launch(weir_stream *stream, const weir_kernel *kernel, const void *arguments,
			      size_t bytes);
weir_status wr_outside_copy(weir_stream *stream, void *to, const void *from, size_t bytes);
weir_status wr_outside_record(weir_stream *stream, weir_fence *out);
weir_status wr_outside_wait(weir_stream *stream, weir_fence fence);

weir_status wr_stream_missing(void);	/* who passes on at once what a call gave it, NULL, wants ticked why */

#endif
