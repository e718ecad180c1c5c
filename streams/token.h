/*
 * Tokens of signals (G1): the process-wide slab. A slot is a word {generation, state}, a count of callbacks
 * that are inside, and the sink that is told of a firing. A callback carries the value {slot, generation};
 * what it named may be gone, the slot never is.
 */
#ifndef WR_STREAMS_TOKEN_H
#define WR_STREAMS_TOKEN_H

#include "streams/streams.h"

#define WR_NO_SLOT UINT32_MAX

/*
 * Told once per token that fires, while its slot counts the
 * callback as inside. stale: it was superseded. Thread: device.
 */
struct wr_sink {
	void (*fired)(struct wr_sink *sink, bool stale);
};

enum wr_token_end { WR_TOKEN_GONE, WR_TOKEN_WAS_PENDING, WR_TOKEN_WAS_CANCELLED };

weir_status wr_slot_take(uint32_t *out);	/* a FREE slot. Fails: WEIR_E_NOMEM */
void wr_slot_give(uint32_t slot);		/* back; it is FREE and nobody is inside */
bool wr_slot_inside(uint32_t slot);

/* FREE -> PENDING; sink must live until released or orphaned. */
wr_token wr_token_arm(uint32_t slot, struct wr_sink *sink);
void wr_token_cancel(wr_token token);			/* PENDING -> CANCELLED, else nothing */
/* -> FIRED without its callback; unless GONE the caller is its sink now. */
enum wr_token_end wr_token_end(wr_token token);
void wr_token_release(wr_token token);				/* FIRED -> FREE of the next generation */
/*
 * PENDING, CANCELLED -> DETACHED: its callback touches the
 * slot alone and gives it back. False: it has fired.
 */
bool wr_token_detach(wr_token token);
bool wr_token_outstanding(wr_token token);			/* PENDING or CANCELLED */
bool wr_token_pending(wr_token token);

static inline void *wr_token_argument(wr_token token)
{
	return (void *)(uintptr_t)token;
}
void wr_token_fire(void *argument);		/* the body of every host callback. Thread: device */
uint64_t wr_token_strays(void);			/* firings of a generation that is over, in this process */

#ifdef WR_SEAM
void wr_tokens_forget(void);
#endif

#endif
