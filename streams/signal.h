/*
 * Signals from the inside: signal.c (their way), callback.c (arming), shut_down.c (ends without a callback),
 * signal stream.c, refused.c, lost.c; poller.c arms some, too.
 *
 * One lock, signals->lock, guards the lists, the counts and what is written in a signal. It is never held in
 * a call of the backend nor while a waker pokes or drops; only `take` is called under it. ..._locked: it is
 * held. Everybody else holds no lock of this room's. What is `_Atomic` is seq_cst.
 */
#ifndef WR_STREAMS_SIGNAL_H
#define WR_STREAMS_SIGNAL_H

#include "base/thread.h"
#include "streams/token.h"

#define WR_BOUND 256	/* outstanding tokens a device, G2 */

/*
 * A native stream that carries one signal at a time, so that
 * none waits for another's producer. Its holder's alone.
 */
struct wr_signal_stream {
	struct wr_signal_stream *next;
	void *native, *event;	/* the event: recorded when the signal was given up, to see its end */
	int device;
	bool unrecorded;		/* given up, and the record of the event was refused */
	/*
	 * Told to count the signals, before the callback; NULL:
	 * the device cannot, or it was made in mid-run.
	 */
	_Atomic uint32_t *word;
	uint32_t flag_value;
};

/*
 * One armed signal. Fields but `next`, `token` are written while it
 * is free or under signals.lock, before the token is armed.
 */
struct wr_signal {
	struct wr_sink sink;
	struct wr_signal *next;		/* free list (signals.lock), fired list, the poller's inbox */
	struct wr_system *system;
	struct wr_waker *waker;
	uint32_t slot, entity;
	_Atomic uint64_t token;		/* 0: not armed */
	struct wr_signal_stream *signal_stream;	/* NULL: inline */
	weir_stream *stream;	/* inline: on which; expected: who is looked at when it has fired */
	int device;
	bool bounded;			/* counts against a bound */
	bool proven;	/* when its callback comes the signal stream's word is proof that the fences are complete */
	weir_fence *fences;		/* what it waits for; guarded by signals.lock */
	size_t count, room;
	int64_t armed_at, complete_at;	/* guarded by signals.lock */
	_Atomic wr_token enqueued;	/* the latest whose enqueueing has returned */
	bool by_flag;			/* it is in the poller's hands until it has ended */
	_Atomic wr_token ended;		/* a flag's: who else ends its token says so, last of all */
	wr_token probed, late;	/* the signal stream's event was recorded behind it, or `behind` read; told that it is late */
	uint64_t behind;	/* inline: points of its stream beyond this one were recorded behind it. Loop thread */
};

#define WR_SIGNALS 64
struct wr_signals_page {
	struct wr_signals_page *older;
	struct wr_signal at[WR_SIGNALS];
};

struct wr_refused {
	struct wr_refused *next;
	uint32_t entity;
	int device;
};

struct wr_signals {
	struct wr_mutex lock;
	uint32_t bound;				/* WR_BOUND; tests lower it */
	_Atomic(struct wr_signals_page *) pages;
	struct wr_signal *free;			/* guarded by lock, like the rest unless it is atomic */
	struct wr_signal_stream *signal_streams, *draining;	/* ready; given up with a signal that has not fired */
	uint32_t *outstanding;			/* per device, against the bound */
	struct wr_refused *first, **end, *spare;	/* the FIFO */
	_Atomic(struct wr_signal *) fired;	/* a stack that the loop empties */
	_Atomic uint64_t pending;		/* armed and not fired */
	_Atomic uint64_t stale;
	uint64_t strays;			/* of the process when the system was made */
};

/* --- signal.c --- */
weir_status wr_signals_init(struct wr_system *system);
void wr_signals_finish(struct wr_system *system);
/* Calls fn for every signal that there is, armed or not, without the lock. */
void wr_signals_each(struct wr_system *system, void (*fn)(struct wr_signal *signal, void *arg), void *arg);

/* What is to be armed, and how; then nothing is enqueued yet. */
struct wr_order {
	uint32_t entity;
	const weir_fence *fences;
	size_t count;
	int device;
	struct wr_signal_stream *signal_stream;	/* NULL: inline, or a flag */
	weir_stream *stream;
	bool bounded, by_flag, proven, inlined;
};
/*
 * Takes the order's signal stream if it succeeds. The token is armed: the
 * failure of the system may end it at once. Fails: WEIR_E_NOMEM.
 */
weir_status wr_signal_make(struct wr_system *system, struct wr_waker *waker, const struct wr_order *order,
			   struct wr_signal **out);
/*
 * The token has ended and the caller is the only one who has the
 * signal. Returns what carried it: the caller's now.
 */
struct wr_signal_stream *wr_signal_release(struct wr_signal *signal);
/* Likewise, but its token is an orphan, which its callback releases. */
struct wr_signal_stream *wr_signal_recycle(struct wr_signal *signal);

/* --- callback.c --- */
/* Kick only; once for its last point. Thread: the loop. */
weir_status wr_signal_expect(weir_stream *stream);

/* --- shut_down.c --- */
/* Ends all tokens. Thread: who fails the system. */
void wr_signals_fail(struct wr_system *system, struct wr_waker *waker);
/* In this order, by who detaches: */
void wr_signals_shut_down(struct wr_system *system);
/* Somebody is inside a callback; asked until nobody is. */
bool wr_signals_inside(struct wr_system *system);
void wr_signals_release_all(struct wr_system *system);

/* --- signal stream.c. Thread: any --- */
struct wr_signal_stream *wr_signal_stream_pop_locked(struct wr_signal_stream **list, int device);	/* NULL: there is none */
/* NULL is fine, here and below. */
void wr_signal_stream_push(struct wr_signals *signals, struct wr_signal_stream **list, struct wr_signal_stream *signal_stream);
/* When none is ready. */
weir_status wr_signal_stream_make(struct wr_system *system, int device, struct wr_signal_stream **out);
/* Records its event behind all that is on it. */
void wr_signal_stream_record(struct wr_system *system, struct wr_signal_stream *signal_stream);
/* To draining, behind a record. */
void wr_signal_stream_detach(struct wr_system *system, struct wr_signal_stream *signal_stream);
void wr_signal_streams_free(struct wr_system *system, struct wr_signal_stream *signal_stream);
/* Nothing is left on those in draining. Nobody arms any more. */
bool wr_signals_drained(struct wr_system *system);

/* --- refused.c. Thread: any --- */
/* BUSY: it stands there now, or (*entered false) stood there already. Fails: WEIR_E_NOMEM. */
weir_status wr_refused_enter_locked(struct wr_signals *signals, uint32_t entity, int device, bool *entered);
/* True: its reference is the caller's to drop. */
bool wr_refused_leave_locked(struct wr_signals *signals, uint32_t entity);
/* The oldest, so many at most. */
void wr_refused_poke(struct wr_system *system, struct wr_waker *waker, int device, uint32_t most);
void wr_refused_free(struct wr_refused *entry);
/* Pokes refused ones, as many as there are places. */
void wr_signals_offer(struct wr_system *system, int device);
bool wr_signals_refuse(struct wr_system *system);	/* somebody stands in the FIFO */
/* Empties it, and drops the references. */
void wr_signals_drop_all_refs(struct wr_system *system, struct wr_waker *waker);

/* --- lost.c. Thread: the loop --- */
weir_status wr_signals_look(struct wr_system *system, int64_t now);	/* finds lost callbacks */
weir_status wr_flags_find_lost(struct wr_system *system, int64_t now);	/* finds lost rings */

#endif
