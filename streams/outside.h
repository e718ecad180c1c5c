/* Stream calls by threads that are not fibers of the stream's simulated world. */
#ifndef WR_STREAMS_OUTSIDE_H
#define WR_STREAMS_OUTSIDE_H

#include "streams/streams.h"

/* Returns true if the system is in a simulated world and the caller is not. Always false on real devices. */
bool wr_system_outside(const struct wr_system *system);
/* Run the public calls of these names in the world. Fail as they do; WEIR_E_DEADLOCK: the world is broken. */
weir_status wr_outside_launch(weir_stream *stream, const weir_kernel *kernel, const void *arguments,
			      size_t bytes);
weir_status wr_outside_copy(weir_stream *stream, void *to, const void *from, size_t bytes);
weir_status wr_outside_record(weir_stream *stream, weir_fence *out);
weir_status wr_outside_wait(weir_stream *stream, weir_fence fence);

/* WEIR_E_INVALID: the stream is NULL; includes this thread's last error */
weir_status wr_stream_missing(void);

#endif
