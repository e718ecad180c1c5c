/*
 * The slab of tokens (G1; tests/models/m5_token.c).
 *
 * The state of a slot is one word {generation, state}. It is changed only by read-modify-writes, so a thread
 * that succeeds has acquired what the others wrote before. The sink is written before the word becomes
 * PENDING and never cleared; it is read only after a successful change from PENDING or CANCELLED, and is not
 * freed before the slot's count of callbacks inside is 0. Chunks are never freed.
 *
 *   FREE(g) -> PENDING(g) -> FIRED(g) -> FREE(g + 1)
 *              PENDING(g) -> CANCELLED(g) -> FIRED(g)		(stale)
 *              PENDING(g), CANCELLED(g) -> DETACHED(g) -> FREE(g + 1)	(by its callback, or never)
 */
#include "base/atomic.h"
#include "base/memory.h"
#include "base/status.h"
#include "streams/signal.h"

enum state { FREE, PENDING, FIRED, CANCELLED, DETACHED };

enum { CHUNK = 256, CHUNKS = 16384, SLOT_BITS = 24 };

struct slot {
	_Atomic uint64_t word; /* generation << 3 | state */
	_Atomic(struct wr_sink *) sink;
	_Atomic uint32_t inside;
	_Atomic uint32_t next; /* in the free list: slot + 1, 0 = last */
};

struct chunk {
	struct slot slots[CHUNK];
};

static _Atomic(struct chunk *) chunks[CHUNKS];
static _Atomic uint64_t free_slots; /* a stack: change count << 32 | slot + 1. The count prevents ABA (F33) */
static _Atomic uint64_t strays;

static struct slot *slot_at(uint32_t index)
{
	return &wr_load_acquire(&chunks[index / CHUNK])->slots[index % CHUNK];
}

static uint64_t word_of(uint64_t generation, enum state state)
{
	return generation << 3 | state;
}

static uint32_t slot_of(wr_token token)
{
	return (uint32_t)token & ((1u << SLOT_BITS) - 1);
}

static uint64_t generation_of(wr_token token)
{
	return token >> SLOT_BITS;
}

/* --- the free list --- */

void wr_slot_give(uint32_t index)
{
	struct slot *slot = slot_at(index);
	uint64_t head = wr_load(&free_slots), mine;

	do {
		wr_store(&slot->next, (uint32_t)head);
		mine = ((head >> 32) + 1) << 32 | (index + 1);
	} while (!wr_cas(&free_slots, &head, mine));
}

static uint32_t slot_pop(void)
{
	uint64_t head = wr_load(&free_slots), rest;

	do {
		if (!(uint32_t)head)
			return WR_NO_SLOT;
		rest = ((head >> 32) + 1) << 32 | wr_load(&slot_at((uint32_t)head - 1)->next);
	} while (!wr_cas(&free_slots, &head, rest));
	return (uint32_t)head - 1;
}

/* Adds a chunk. Of two threads that do so at once, one gets the next place. */
static weir_status slab_grow(void)
{
	struct chunk *chunk = wr_alloc(1, sizeof *chunk);

	if (!chunk)
		return WEIR_E_NOMEM;
	for (uint32_t i = 0; i < CHUNK; i++)
		wr_store_relaxed(&chunk->slots[i].word, word_of(1, FREE));
	for (uint32_t at = 0; at < CHUNKS; at++) {
		struct chunk *none = NULL;

		if (!wr_cas(&chunks[at], &none, chunk))
			continue;
		for (uint32_t i = 0; i < CHUNK; i++)
			wr_slot_give(at * CHUNK + i);
		return WEIR_OK;
	}
	wr_free(chunk);
	return wr_fail(WEIR_E_NOMEM, "more than %d signals wait in this process", CHUNKS * CHUNK);
}

weir_status wr_slot_take(uint32_t *out)
{
	uint32_t index;

	while ((index = slot_pop()) == WR_NO_SLOT) {
		weir_status status = slab_grow();

		if (status)
			return status;
	}
	*out = index;
	return WEIR_OK;
}

bool wr_slot_inside(uint32_t slot)
{
	return wr_load(&slot_at(slot)->inside) != 0;
}

/* --- the word --- */

wr_token wr_token_arm(uint32_t index, struct wr_sink *sink)
{
	struct slot *slot = slot_at(index);
	uint64_t generation = wr_load(&slot->word) >> 3;

	wr_store_relaxed(&slot->sink, sink); /* released by the exchange */
	wr_exchange(&slot->word, word_of(generation, PENDING));
	return generation << SLOT_BITS | index;
}

static bool word_change(wr_token token, enum state from, enum state to)
{
	uint64_t was = word_of(generation_of(token), from);

	return wr_cas(&slot_at(slot_of(token))->word, &was, word_of(generation_of(token), to));
}

enum wr_token_end wr_token_end(wr_token token)
{
	if (word_change(token, PENDING, FIRED))
		return WR_TOKEN_WAS_PENDING;
	return word_change(token, CANCELLED, FIRED) ? WR_TOKEN_WAS_CANCELLED : WR_TOKEN_GONE;
}

bool wr_token_detach(wr_token token)
{
	return word_change(token, PENDING, DETACHED) || word_change(token, CANCELLED, DETACHED);
}

weir_status wr_token_open(wr_token *out)
{
	uint32_t slot;
	weir_status status = wr_slot_take(&slot);

	if (!status)
		*out = wr_token_arm(slot, NULL);
	return status;
}

/* An exchange: a store would break the release sequence of the callback (m5 REVOKE_STORE). */
void wr_token_release(wr_token token)
{
	wr_exchange(&slot_at(slot_of(token))->word, word_of(generation_of(token) + 1, FREE));
}

void wr_token_close(wr_token token)
{
	wr_token_release(token);
	wr_slot_give(slot_of(token));
}

void wr_token_cancel(wr_token token)
{
	if (wr_token_pending(token)) /* mostly it has fired */
		word_change(token, PENDING, CANCELLED);
}

uint64_t wr_token_strays(void)
{
	return wr_load(&strays);
}

bool wr_token_outstanding(wr_token token)
{
	uint64_t word = wr_load(&slot_at(slot_of(token))->word);

	return word == word_of(generation_of(token), PENDING) ||
	       word == word_of(generation_of(token), CANCELLED);
}

bool wr_token_pending(wr_token token)
{
	return wr_load(&slot_at(slot_of(token))->word) == word_of(generation_of(token), PENDING);
}

/* --- the callback --- */

static void sink_call(struct slot *slot, wr_token token, bool stale)
{
	struct wr_sink *sink = wr_load_relaxed(&slot->sink); /* acquired with the word */

	sink->fired(sink, token, stale);
}

void wr_token_fire(void *argument)
{
	wr_token token = (uintptr_t)argument;
	struct slot *slot = slot_at(slot_of(token));
	uint64_t was = word_of(generation_of(token), DETACHED);
	bool detached = false;

	wr_fetch_add(&slot->inside, 1);
	switch (wr_token_end(token)) {
	case WR_TOKEN_WAS_PENDING:
		sink_call(slot, token, false);
		break;
	case WR_TOKEN_WAS_CANCELLED:
		sink_call(slot, token, true);
		break;
	case WR_TOKEN_GONE: /* if it was detached its slot becomes FREE, and no sink is called */
		detached = wr_cas(&slot->word, &was, word_of(generation_of(token) + 1, FREE));
		wr_fetch_add(&strays, detached ? 0 : 1);
		break;
	}
	wr_fetch_sub(&slot->inside, 1); /* the last access to what the token named */
	if (detached)
		wr_slot_give(slot_of(token));
}

#ifdef WR_SEAM
/*
 * For tests, between two worlds, so that the first does not affect the schedule of the next. No token may be
 * in use.
 */
void wr_tokens_forget(void)
{
	for (uint32_t at = 0; at < CHUNKS && wr_load_relaxed(&chunks[at]); at++) {
		wr_free(wr_load_relaxed(&chunks[at]));
		wr_store_relaxed(&chunks[at], NULL);
	}
	wr_store_relaxed(&free_slots, 0);
	wr_store_relaxed(&strays, 0);
}
#endif
