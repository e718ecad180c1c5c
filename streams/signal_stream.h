/*
 * A native stream of signals, and the two lists that have those without a signal. Functions named ..._locked
 * need signals->lock held; callers of all others hold no lock of this room.
 */
#ifndef WR_STREAMS_SIGNAL_STREAM_H
#define WR_STREAMS_SIGNAL_STREAM_H

#include "streams/signal.h"

/*
 * A native stream that carries one signal at a time, so that no signal
 * waits for another's producer. Used by one thread at a time.
 */
struct wr_signal_stream {
	struct wr_signal_stream *next;
	/* the event is recorded when the signal is detached, to see when it is drained */
	void *native, *event;
	int device;
	bool unrecorded; /* detached, but the event is not recorded yet */
	/*
	 * The device counts the signals in it, before each callback. NULL if
	 * the device cannot, or if the stream was created during a run.
	 */
	_Atomic uint32_t *word;
	uint32_t flag_value;
};

/* Takes a signal stream of the device from a list. Returns NULL if it has none. */
struct wr_signal_stream *wr_signal_stream_pop_locked(struct wr_signal_stream **list, int device);
/* Puts a signal stream, if any, into one of the lists. Thread: any. */
void wr_signal_stream_push(struct wr_signals *signals, struct wr_signal_stream **list,
			   struct wr_signal_stream *signal_stream);

/* For when none is ready: returns one that is drained, or a new one. Thread: any. */
weir_status wr_signal_stream_make(struct wr_system *system, int device, struct wr_signal_stream **out);
/* Records its event behind all that is on it. Thread: any. */
void wr_signal_stream_record(struct wr_system *system, struct wr_signal_stream *signal_stream);
/*
 * Puts a signal stream, if any, into the draining list: it may still wait for the fences of a signal that was
 * not armed; the next signal must not. Thread: any.
 */
void wr_signal_stream_detach(struct wr_system *system, struct wr_signal_stream *signal_stream);
/*
 * Of a signal that has fired: makes its signal stream ready for the next one. If the system failed, another
 * device may still be running the waits and the callback of this stream; it is then detached. Thread: the
 * loop.
 */
void wr_signal_stream_return(struct wr_system *system, struct wr_signal_stream *signal_stream);
/* Returns true if nothing is left on the draining list's streams. No thread may arm any more. */
bool wr_signals_drained(struct wr_system *system);
void wr_signal_streams_finish(struct wr_system *system);

#endif
