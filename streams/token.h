/*
 * Tokens of signals (G1), in a process-wide slab. A slot is a word {generation, state}, a count of callbacks
 * inside, and the sink that is called when the token fires. A callback's argument is the value {slot,
 * generation}: what it named may be gone, but the slot is never freed.
 */
#ifndef WR_STREAMS_TOKEN_H
#define WR_STREAMS_TOKEN_H

#include "streams/streams.h"

#define WR_NO_SLOT UINT32_MAX

/*
 * Called once per token that fires, while its slot counts the
 * callback as inside. stale: the token was cancelled. Thread: device.
 */
struct wr_sink {
	void (*fired)(struct wr_sink *sink, wr_token token, bool stale);
};

enum wr_token_end { WR_TOKEN_GONE, WR_TOKEN_WAS_PENDING, WR_TOKEN_WAS_CANCELLED };

weir_status wr_slot_take(uint32_t *out); /* a FREE slot. Fails: WEIR_E_NOMEM */
void wr_slot_give(uint32_t slot);        /* it must be FREE, with no callback inside */
bool wr_slot_inside(uint32_t slot);      /* a callback is inside */

/* FREE -> PENDING. The sink must live until the token is released or detached. */
wr_token wr_token_arm(uint32_t slot, struct wr_sink *sink);
void wr_token_cancel(wr_token token); /* PENDING -> CANCELLED, else nothing */
/* -> FIRED without its callback. Unless it returns GONE, the caller must do what the sink would have done. */
enum wr_token_end wr_token_end(wr_token token);
void wr_token_release(wr_token token); /* FIRED -> FREE of the next generation */
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
uint64_t wr_token_strays(void);     /* callbacks of an earlier generation, in this process */

#ifdef WR_SEAM
void wr_tokens_forget(void);
#endif

#endif
