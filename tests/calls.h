/* Calls of weir.h for tests, which need no status of them: NULL, or -1, if the call fails. */
#ifndef TESTS_CALLS_H
#define TESTS_CALLS_H

#include "weir.h"

static inline weir_status copy_bytes(weir_stream *stream, void *to, const void *from, size_t bytes)
{
	const weir_copy copy = {.size = sizeof copy, .to = to, .from = from, .row_bytes = bytes};

	return weir_stream_copies(stream, &copy, 1, 0, NULL);
}

static inline weir_stream *current_stream(weir_context *context)
{
	weir_stream *stream = NULL;

	return weir_context_stream(context, &stream) ? NULL : stream;
}

static inline weir_stream *device_stream(weir_context *context)
{
	weir_stream *stream = NULL;

	return weir_context_default_stream(context, &stream) ? NULL : stream;
}

/* This thread's last failure. */
static inline weir_error last_failure(void)
{
	weir_error error = {.size = sizeof error};

	weir_error_last(&error);
	return error;
}

static inline int scheduler_fd(weir_scheduler *scheduler)
{
	int fd = -1;

	return weir_scheduler_fd(scheduler, &fd) ? -1 : fd;
}

static inline int inlet_fd(weir_inlet *inlet)
{
	int fd = -1;

	return weir_inlet_fd(inlet, &fd) ? -1 : fd;
}

static inline int outlet_fd(weir_outlet *outlet)
{
	int fd = -1;

	return weir_outlet_fd(outlet, &fd) ? -1 : fd;
}

#endif
