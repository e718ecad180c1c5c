/*
 * Scratch memory of an entity (T11): for each of its streams a stack of device memory, which a tick fills
 * from the bottom and the tick's end empties. The next tick uses it at once, since the stream orders its work
 * after that of the tick before; nothing is waited for, and no call of the device is made.
 *
 * Other streams of the entity may use it, too, once they were told to wait for the first one (T2): in the
 * next tick that one then waits for them, on the device, before its scratch memory is used again.
 *
 * A request that does not fit gets a block of its own for this tick. The next tick begins with a stack that
 * is large enough. Blocks that are not needed any more go to the deferred frees (T4).
 *
 * Thread, for all functions: the entity's owner.
 */
#ifndef WR_SCHEDULER_SCRATCH_H
#define WR_SCHEDULER_SCRATCH_H

#include "streams/streams.h"

struct wr_entity_stream;
struct wr_scratch_block;

/* Of one stream. Sizes are multiples of 256 bytes. */
struct wr_scratch {
	struct wr_scratch_block *stack; /* NULL: none yet */
	struct wr_scratch_block *own;   /* this tick's blocks of requests that did not fit */
	size_t used;                    /* bytes of the stack, in this tick */
	size_t asked;                   /* bytes of all requests of this tick */
	size_t wanted;                  /* the height that the next tick begins with, unless it has more */
	size_t refused;                 /* for this height there was no memory: not tried again */
	bool lent; /* another stream of the entity may still use what the last tick requested */
};

/*
 * A place in a stack: what work that is enqueued again and again (a capture) depends on. Two equal ones mean
 * that the same requests get the same addresses.
 */
struct wr_scratch_place {
	void *base; /* NULL: there is no stack yet */
	size_t height, used, asked;
};

/* The place of items[index] of the entity's streams. */
struct wr_scratch_place wr_scratch_place(const weir_entity *entity, size_t index);
/* Takes back what was requested since `place`, and did fit: the requests come again in this tick. */
void wr_scratch_return_to(weir_entity *entity, size_t index, struct wr_scratch_place place);
/*
 * Call in each tick before the first work that uses the stack, unless it calls wr_scratch_take. If in an
 * earlier tick another stream of the entity waited for this one, and so may have used its scratch memory,
 * this one now waits for the others. Fails: as weir_stream_wait.
 */
weir_status wr_scratch_begin_tick(weir_entity *entity, size_t index);
/*
 * While fixed, a request that does not fit fails with WEIR_E_BUSY: its address would be of this tick only.
 * The next tick begins with a stack that is large enough for it.
 */
void wr_scratch_fix(weir_entity *entity, bool fixed);

/* Gives `bytes` of the stack of items[index]; 0: lets it grow, if this is the first request. Fails:
 * WEIR_E_NOMEM; WEIR_E_BUSY: fixed. */
weir_status wr_scratch_take(weir_entity *entity, size_t index, size_t bytes, void **out);

/* After the streams of a tick were fenced: empties the stacks. */
void wr_scratch_end_tick(weir_entity *entity);
/* Frees the stack and all blocks of a stream that is about to be closed. */
void wr_scratch_free(struct wr_entity_stream *item);

#endif
