/*
 * Carriers: native streams of which each carries one signal at a time. One whose signal was given up is in
 * draining until its last event is complete.
 */
#include "base/memory.h"
#include "streams/signal.h"
#include "streams/system.h"

static void free_signal_stream(struct wr_system *system, struct wr_signal_stream *signal_stream)
{
	if (signal_stream->native)
		system->backend->stream_destroy(system->native, signal_stream->native);
	if (signal_stream->event) /* a record of it may have been on the stream (lost.c) */
		system->backend->event_destroy(system->native, signal_stream->event);
	wr_free(signal_stream);
}

static weir_status make_signal_stream(struct wr_system *system, int device, struct wr_signal_stream **out)
{
	struct wr_signal_stream *signal_stream = wr_alloc(1, sizeof *signal_stream);
	weir_status status;

	if (!signal_stream)
		return WEIR_E_NOMEM;
	signal_stream->device = device;
	status = wr_system_check(
		system, system->backend->stream_create(system->native, device, 0, 0, NULL, &signal_stream->native));
	if (!status)
		status = wr_system_check(
			system, system->backend->event_create(system->native, device, &signal_stream->event));
	if (status)
		free_signal_stream(system, signal_stream);
	else
		*out = signal_stream;
	return status;
}

struct wr_signal_stream *wr_signal_stream_pop_locked(struct wr_signal_stream **list, int device)
{
	for (; *list; list = &(*list)->next) {
		struct wr_signal_stream *signal_stream = *list;

		if (signal_stream->device != device)
			continue;
		*list = signal_stream->next;
		return signal_stream;
	}
	return NULL;
}

void wr_signal_stream_push(struct wr_signals *signals, struct wr_signal_stream **list, struct wr_signal_stream *signal_stream)
{
	if (!signal_stream)
		return;
	wr_mutex_lock(&signals->lock);
	signal_stream->next = *list;
	*list = signal_stream;
	wr_mutex_unlock(&signals->lock);
}

/* Where that is refused the event stands for something older, and says nothing until it is recorded. */
void wr_signal_stream_record(struct wr_system *system, struct wr_signal_stream *signal_stream)
{
	signal_stream->unrecorded =
		wr_system_check(system, system->backend->record(system->native, signal_stream->device,
							       signal_stream->native, signal_stream->event)) != WEIR_OK;
}

/* Of one in draining: whether nothing is left on it. */
static weir_status ask_signal_stream(struct wr_system *system, struct wr_signal_stream *signal_stream)
{
	if (!signal_stream->unrecorded)
		return wr_system_check(system, system->backend->query(system->native, signal_stream->event));
	wr_signal_stream_record(system, signal_stream);
	return WEIR_E_BUSY;
}

/* It may still wait for the fences of a signal that did not come about: the next one must not. */
void wr_signal_stream_detach(struct wr_system *system, struct wr_signal_stream *signal_stream)
{
	if (!signal_stream)
		return;
	signal_stream->unrecorded = true;
	if (!wr_system_failed(system))
		wr_signal_stream_record(system, signal_stream);
	wr_signal_stream_push(&system->signals, &system->signals.draining, signal_stream);
}

static struct wr_signal_stream *pop_draining(struct wr_signals *signals, int device)
{
	struct wr_signal_stream *signal_stream;

	wr_mutex_lock(&signals->lock);
	signal_stream = wr_signal_stream_pop_locked(&signals->draining, device);
	wr_mutex_unlock(&signals->lock);
	return signal_stream;
}

/* One that was given up and is through by now, or a new one. */
weir_status wr_signal_stream_make(struct wr_system *system, int device, struct wr_signal_stream **out)
{
	struct wr_signals *signals = &system->signals;
	struct wr_signal_stream *busy = NULL, *signal_stream;

	while ((signal_stream = pop_draining(signals, device)) && ask_signal_stream(system, signal_stream)) {
		signal_stream->next = busy;
		busy = signal_stream;
	}
	while (busy) {
		struct wr_signal_stream *next = busy->next;

		wr_signal_stream_push(signals, &signals->draining, busy);
		busy = next;
	}
	if (!signal_stream)
		return wr_system_failed(system) ? wr_system_failure_status(system) : make_signal_stream(system, device, out);
	*out = signal_stream;
	return WEIR_OK;
}

static bool through(struct wr_system *system, struct wr_signal_stream *signal_stream)
{
	return wr_system_lost(system) || ask_signal_stream(system, signal_stream) != WEIR_E_BUSY;
}

bool wr_signals_drained(struct wr_system *system)
{
	for (struct wr_signal_stream *signal_stream = system->signals.draining; signal_stream; signal_stream = signal_stream->next)
		if (!through(system, signal_stream))
			return false;
	return true;
}

void wr_signal_streams_free(struct wr_system *system, struct wr_signal_stream *signal_stream)
{
	while (signal_stream) {
		struct wr_signal_stream *next = signal_stream->next;

		free_signal_stream(system, signal_stream);
		signal_stream = next;
	}
}

weir_status wr_signals_reserve(struct wr_system *system, int device, size_t count)
{
	struct wr_signals *signals = &system->signals;
	size_t ready = 0;
	weir_status status = WEIR_OK;

	wr_mutex_lock(&signals->lock);
	for (struct wr_signal_stream *signal_stream = signals->signal_streams; signal_stream; signal_stream = signal_stream->next)
		ready += signal_stream->device == device;
	wr_mutex_unlock(&signals->lock);
	for (; !status && ready < count; ready++) {
		struct wr_signal_stream *signal_stream = NULL;

		status = wr_signal_stream_make(system, device, &signal_stream); /* or runs that are cut short add up */
		/* here alone: memory for it may have to wait for a busy device */
		if (!status && !signal_stream->word)
			status = wr_flag_word(system, device, &signal_stream->word);
		wr_signal_stream_push(signals, &signals->signal_streams, signal_stream);
	}
	return status;
}
