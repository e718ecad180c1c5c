/*
 * The records of signals, for signal.c (their life, and signals by host callback), flag.c (signals by flag)
 * and system.c, which ends them: of a failed system, lost ones, at the end of a run.
 *
 * One lock, signals->lock, guards the lists, the counts and the fields of signals. It is not held in a call
 * of the backend, nor while a waker pokes or drops; only `take` is called under it. Functions named
 * ..._locked need it held; callers of all others hold no lock of this room. `_Atomic` fields are seq_cst.
 */
#ifndef WR_STREAMS_SIGNAL_H
#define WR_STREAMS_SIGNAL_H

#include "base/thread.h"
#include "streams/streams.h"

/*
 * === tokens ===
 *
 * Tokens of signals (G1), in a process-wide slab. A slot is a word {generation, state}, a count of callbacks
 * inside, and the sink that is called when the token fires. A callback's argument is the value {slot,
 * generation}: what it named may be gone, but the slot is never freed.
 */

#define WR_NO_SLOT UINT32_MAX

/*
 * Called once per token that fires, while its slot counts the
 * callback as inside. stale: the token was cancelled. Thread: device.
 */
struct wr_sink {
	void (*fired)(struct wr_sink *sink, wr_token token, bool stale);
};

enum wr_token_end { WR_TOKEN_GONE, WR_TOKEN_WAS_PENDING, WR_TOKEN_WAS_CANCELLED };

weir_status wr_slot_take(uint32_t *out); /* a FREE one. Fails: WEIR_E_NOMEM */
/* FREE -> PENDING. The sink must live until the token is released or detached. */
wr_token wr_token_arm(uint32_t slot, struct wr_sink *sink);
void wr_token_cancel(wr_token token);  /* PENDING -> CANCELLED */
void wr_token_release(wr_token token); /* FIRED -> FREE of the next generation */
uint64_t wr_token_strays(void);        /* callbacks so far, of the process, that found their token gone */
/* A token without a sink, which its owner ends, once, and then closes. Fails: WEIR_E_NOMEM. */
weir_status wr_token_open(wr_token *out);
void wr_token_close(wr_token token);

void wr_slot_give(uint32_t slot);   /* it must be FREE, with no callback inside */
bool wr_slot_inside(uint32_t slot); /* a callback is inside */

/* -> FIRED without its callback. Unless it returns GONE, the caller must do what the sink would have done. */
enum wr_token_end wr_token_end(wr_token token);
/*
 * PENDING, CANCELLED -> DETACHED: its callback only
 * frees the slot. Returns false if it has fired.
 */
bool wr_token_detach(wr_token token);
bool wr_token_outstanding(wr_token token); /* PENDING or CANCELLED */
bool wr_token_pending(wr_token token);

static inline void *wr_token_argument(wr_token token)
{
	return (void *)(uintptr_t)token;
}
void wr_token_fire(void *argument); /* the body of every host callback. Thread: device */

#ifdef WR_SEAM
void wr_tokens_forget(void);
#endif

/* === the life of a signal === */

#define WR_BOUND 256 /* outstanding tokens per device (G2) */

/*
 * One signal. All fields but `next` and `token` are written while it is free, or by the thread that has taken
 * it, before the token is armed. Others read them once they have ended the token, or with signals.lock while
 * `token` is not 0.
 */
struct wr_signal {
	struct wr_sink sink;
	struct wr_signal *next; /* free list (signals.lock), fired list, the poller's inbox */
	struct wr_system *system;
	struct wr_waker *waker;
	uint32_t slot, entity;
	_Atomic uint64_t token;                 /* 0: not armed */
	struct wr_signal_stream *signal_stream; /* NULL: inline */
	/* inline: carries the callback; wr_signal_arm_kick: queried after it has fired */
	weir_stream *stream;
	int device;
	bool bounded;       /* counts against the device's bound */
	weir_fence *fences; /* that it waits for */
	size_t count, room;
	int64_t armed_at;    /* as in its request */
	int64_t complete_at; /* when the loop first saw the fences complete, or 0. Of the loop while armed */
	_Atomic wr_token enqueued; /* the latest token whose enqueueing has returned */
	bool by_flag;              /* belongs to the poller until it has ended */
	/* by flag: set to the token, as the last step, by a thread other than the poller that ends it */
	_Atomic wr_token ended;
	wr_token probe_token; /* a value behind it is known: its signal stream's event, or `behind_value` */
	wr_token late_token;  /* a warning was logged that it is late */
	/* inline: values of its stream after this one were recorded behind it. Loop thread */
	uint64_t behind_value;
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
	struct wr_spin lock; /* held for a few stores, rarely for an allocation */
	uint32_t bound;      /* WR_BOUND; tests lower it */
	_Atomic(struct wr_signals_page *) pages;
	struct wr_signal *free;                  /* guarded by lock, like the rest unless it is atomic */
	struct wr_signal_stream *signal_streams; /* ready for use */
	struct wr_signal_stream *draining;       /* detached with a signal that has not fired */
	uint32_t *outstanding;                   /* per device, against the bound */
	struct wr_refused *first, **end, *spare; /* the FIFO of refused entities */
	_Atomic(struct wr_signal *) fired;       /* a stack that the loop empties */
	_Atomic uint64_t pending;                /* armed and not fired */
	_Atomic uint64_t stale;
	_Atomic uint64_t late; /* in this run: a second after their work, or lost. Written by the watch */
	bool forgives; /* what does not come fires nevertheless; else the system fails (E2); set between runs
			*/
	uint64_t strays; /* of this process when the system was created */
};

weir_status wr_signals_init(struct wr_system *system);
void wr_signals_finish(struct wr_system *system);
/* Calls fn for every signal that there is, armed or not, without the lock. */
void wr_signals_each(struct wr_system *system, void (*fn)(struct wr_signal *signal, void *arg), void *arg);

/* What to arm, and how. */
struct wr_signal_request {
	uint32_t entity;
	const weir_fence *fences;
	size_t count;
	int device;
	struct wr_signal_stream *signal_stream; /* NULL: inline, or by flag */
	weir_stream *stream;
	bool bounded, by_flag, is_inline;
	/*
	 * By flag: before the look that found its fences pending. By callback: when a fence that it waits for
	 * was recorded; the watch looks at it, at the earliest, a second later. 0: now.
	 */
	int64_t armed_at;
	/* within this room: what was claimed with a place; of the first fence, NULL: it was complete */
	struct wr_signal *signal;
	void *event;
};
/*
 * Returns a signal whose token is armed, and wakes the watch; nothing is enqueued yet. If the system fails,
 * another thread may end the token at any time: a signal by callback may then be made again, with another
 * token, before this returns. Takes the request's signal stream on success. Fails: WEIR_E_NOMEM.
 */
weir_status wr_signal_make(struct wr_system *system, struct wr_waker *waker,
			   const struct wr_signal_request *request, struct wr_signal **out, wr_token *token);
/*
 * Releases the token, which has ended, and recycles the signal, which
 * no other thread uses. Returns its signal stream, now the caller's.
 */
struct wr_signal_stream *wr_signal_release(struct wr_signal *signal);
/* Likewise, but the token was detached, and is released by its callback. */
struct wr_signal_stream *wr_signal_recycle(struct wr_signal *signal);

/* Arms a signal that kicks the loop when the last value is complete; once per value. Thread: the loop. */
weir_status wr_signal_arm_kick(weir_stream *stream, weir_fence fence);

/* --- the FIFO of refused entities. Thread: any --- */
/* Removes and pokes the oldest `most` refused entities of the device. */
void wr_refused_poke(struct wr_system *system, struct wr_waker *waker, int device, uint32_t most);
/* Pokes as many refused entities as the bound has free places. */
void wr_refused_poke_bounded(struct wr_system *system, int device);
bool wr_refused_any(struct wr_system *system); /* the FIFO is not empty */
/* Empties the FIFO and drops its live references. */
void wr_refused_drop_all_refs(struct wr_system *system, struct wr_waker *waker);

/*
 * === signal streams ===
 *
 * A native stream of signals, and the two lists that have those without a signal. Functions named ..._locked
 * need signals->lock held; callers of all others hold no lock of this room.
 */

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

/* For when none is ready: returns one that is drained, or a new one. Thread: any. */
weir_status wr_signal_stream_make(struct wr_system *system, int device, struct wr_signal_stream **out);
/* Puts a signal stream, if any, into one of the lists. Thread: any. */
void wr_signal_stream_push(struct wr_signals *signals, struct wr_signal_stream **list,
			   struct wr_signal_stream *signal_stream);
/* Records its event behind all that is on it. Thread: any. */
void wr_signal_stream_record(struct wr_system *system, struct wr_signal_stream *signal_stream);
/* Returns true if nothing is left on the draining list's streams. No thread may arm any more. */
bool wr_signals_drained(struct wr_system *system);
void wr_signal_streams_finish(struct wr_system *system);

#endif
