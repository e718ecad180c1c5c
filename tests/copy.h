/* One copy of bytes, for tests. */
#ifndef TESTS_COPY_H
#define TESTS_COPY_H

#include "weir.h"

static inline weir_status copy_bytes(weir_stream *stream, void *to, const void *from, size_t bytes)
{
	const weir_copy copy = {.size = sizeof copy, .to = to, .from = from, .row_bytes = bytes};

	return weir_stream_copies(stream, &copy, 1, 0, NULL);
}

#endif
