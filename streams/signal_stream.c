/*
 * The native streams that signals use (G3). One is in the list of those that are ready, belongs to a signal,
 * or is in the draining list: a signal was detached from it, so waits and a callback may be left on it. Its
 * event, recorded behind them, tells when it may carry another signal.
 *
 * signals->lock guards the two lists; no call of the backend is made under it.
 */
#include "streams/signal_stream.h"

#include "base/memory.h"
#include "base/status.h"
#include "streams/device.h"
#include "streams/flag.h"
#include "streams/system.h"

/* --- lists --- */

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

void wr_signal_stream_push(struct wr_signals *signals, struct wr_signal_stream **list,
			   struct wr_signal_stream *signal_stream)
{
	if (!signal_stream)
		return;
	wr_mutex_lock(&signals->lock);
	signal_stream->next = *list;
	*list = signal_stream;
	wr_mutex_unlock(&signals->lock);
}

/* --- one signal stream --- */

static void signal_stream_free(struct wr_system *system, struct wr_signal_stream *signal_stream)
{
	if (signal_stream->native)
		wr_device_stream_destroy(system, signal_stream->native);
	if (signal_stream->event) /* after the stream, which may still hold a record of it (watch.c) */
		wr_device_event_destroy(system, signal_stream->event);
	wr_free(signal_stream);
}

static weir_status signal_stream_create(struct wr_system *system, int device, struct wr_signal_stream **out)
{
	struct wr_signal_stream *signal_stream = wr_alloc(1, sizeof *signal_stream);
	weir_status status;

	if (!signal_stream)
		return WEIR_E_NOMEM;
	signal_stream->device = device;
	status = wr_device_stream_create(system, &(struct wr_stream_spec){.device = device}, NULL,
					 &signal_stream->native);
	if (!status)
		status = wr_device_event_create(system, device, &signal_stream->event);
	if (status)
		signal_stream_free(system, signal_stream);
	else
		*out = signal_stream;
	return status;
}

/* If the record fails, the event still stands for older work and must not be queried until it is recorded. */
void wr_signal_stream_record(struct wr_system *system, struct wr_signal_stream *signal_stream)
{
	weir_status status =
		wr_device_record(system, signal_stream->device, signal_stream->native, signal_stream->event);

	signal_stream->unrecorded = status != WEIR_OK;
}

/* Of one in the draining list. Returns WEIR_E_BUSY while something is left on it. */
static weir_status signal_stream_query(struct wr_system *system, struct wr_signal_stream *signal_stream)
{
	if (!signal_stream->unrecorded)
		return wr_device_query(system, signal_stream->event);
	wr_signal_stream_record(system, signal_stream);
	return WEIR_E_BUSY;
}

static struct wr_signal_stream *draining_pop(struct wr_signals *signals, int device)
{
	struct wr_signal_stream *signal_stream;

	wr_mutex_lock(&signals->lock);
	signal_stream = wr_signal_stream_pop_locked(&signals->draining, device);
	wr_mutex_unlock(&signals->lock);
	return signal_stream;
}

weir_status wr_signal_stream_make(struct wr_system *system, int device, struct wr_signal_stream **out)
{
	struct wr_signals *signals = &system->signals;
	struct wr_signal_stream *busy = NULL, *signal_stream;

	while ((signal_stream = draining_pop(signals, device)) &&
	       signal_stream_query(system, signal_stream)) {
		signal_stream->next = busy;
		busy = signal_stream;
	}
	while (busy) {
		struct wr_signal_stream *next = busy->next;

		wr_signal_stream_push(signals, &signals->draining, busy);
		busy = next;
	}
	if (!signal_stream)
		return wr_system_failed(system) ? wr_system_failure_status(system)
						: signal_stream_create(system, device, out);
	*out = signal_stream;
	return WEIR_OK;
}

void wr_signal_stream_detach(struct wr_system *system, struct wr_signal_stream *signal_stream)
{
	if (!signal_stream)
		return;
	signal_stream->unrecorded = true;
	if (!wr_system_failed(system))
		wr_signal_stream_record(system, signal_stream);
	wr_signal_stream_push(&system->signals, &system->signals.draining, signal_stream);
}

void wr_signal_stream_return(struct wr_system *system, struct wr_signal_stream *signal_stream)
{
	if (wr_system_failed(system))
		wr_signal_stream_detach(system, signal_stream);
	else
		wr_signal_stream_push(&system->signals, &system->signals.signal_streams, signal_stream);
}

/* --- all of a system --- */

weir_status wr_signals_reserve(struct wr_system *system, int device, size_t count)
{
	struct wr_signals *signals = &system->signals;
	size_t ready = 0;
	weir_status status = WEIR_OK;

	wr_mutex_lock(&signals->lock);
	for (struct wr_signal_stream *at = signals->signal_streams; at; at = at->next)
		ready += at->device == device;
	wr_mutex_unlock(&signals->lock);
	for (; !status && ready < count; ready++) {
		struct wr_signal_stream *signal_stream = NULL;

		/* reuses drained ones, or runs that are cut short would add up */
		status = wr_signal_stream_make(system, device, &signal_stream);
		/* only here: allocating the word may wait for a busy device */
		if (!status && !signal_stream->word)
			status = wr_flag_word(system, device, &signal_stream->word);
		wr_signal_stream_push(signals, &signals->signal_streams, signal_stream);
	}
	return status;
}

static bool signal_stream_drained(struct wr_system *system, struct wr_signal_stream *signal_stream)
{
	return wr_device_lost(system) || signal_stream_query(system, signal_stream) != WEIR_E_BUSY;
}

bool wr_signals_drained(struct wr_system *system)
{
	for (struct wr_signal_stream *at = system->signals.draining; at; at = at->next)
		if (!signal_stream_drained(system, at))
			return false;
	return true;
}

static void signal_streams_free(struct wr_system *system, struct wr_signal_stream *signal_stream)
{
	while (signal_stream) {
		struct wr_signal_stream *next = signal_stream->next;

		signal_stream_free(system, signal_stream);
		signal_stream = next;
	}
}

void wr_signal_streams_finish(struct wr_system *system)
{
	signal_streams_free(system, system->signals.signal_streams);
	signal_streams_free(system, system->signals.draining);
}
