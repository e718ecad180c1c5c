/* What signal.c, carrier.c, refused.c and lost.c share. ..._locked: signals->lock is held. */
#ifndef WR_STREAMS_SIGNAL_H
#define WR_STREAMS_SIGNAL_H

#include "streams/system.h"

/* Calls fn for every signal that there is, armed or not. */
void wr_signals_each(struct wr_system *system, void (*fn)(struct wr_signal *signal, void *arg), void *arg);

/* signal.c: what is to be armed, and how; then nothing is enqueued yet. */
struct wr_order {
	uint32_t entity;
	const weir_fence *fences;
	size_t count;
	int device;
	struct wr_carrier *carrier;	/* NULL: inline, or a doorbell */
	weir_stream *stream;
	bool bounded, doorbell, proven;
};
weir_status wr_signal_make(struct wr_system *system, struct wr_waker *waker, const struct wr_order *order, struct wr_signal **out);
/* The token has ended and the caller is the only one who has the signal. Returns what carried it. */
struct wr_carrier *wr_signal_give_back(struct wr_signal *signal);
weir_status wr_signal_check(struct wr_system *system, const weir_fence *fences, size_t n, int *device);	/* may it wait for them? */

/* carrier.c */
struct wr_carrier *wr_carrier_pop_locked(struct wr_carrier **list, int device);		/* NULL: there is none */
void wr_carrier_push(struct wr_signals *signals, struct wr_carrier **list, struct wr_carrier *carrier);	/* NULL is fine */
weir_status wr_carrier_other(struct wr_system *system, int device, struct wr_carrier **out);	/* when none is ready */
void wr_carrier_mark(struct wr_system *system, struct wr_carrier *carrier);	/* records its event behind all that is on it */
void wr_carrier_give_up(struct wr_system *system, struct wr_carrier *carrier);	/* to limbo, behind a record; NULL is fine */
void wr_carriers_free(struct wr_system *system, struct wr_carrier *carrier);

/* refused.c */
/* BUSY: it stands there now, or (*entered false) stood there already. */
weir_status wr_refused_enter_locked(struct wr_signals *signals, uint32_t entity, int device, bool *entered);
bool wr_refused_leave_locked(struct wr_signals *signals, uint32_t entity);	/* true: its reference is the caller's to drop */
void wr_refused_poke(struct wr_system *system, struct wr_waker *waker, int device, uint32_t most);	/* the oldest */
void wr_refused_free(struct wr_refused *entry);

#endif
