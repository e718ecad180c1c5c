/*
 * The streams that an entity works on: its internal one, those that it allocated by name, and its own
 * shares of streams that messages, wrappers or the device brought. One identity for each queue of the
 * device, so that points and live references stay one owner's.
 *
 * All of them are of one run: taken at first use, given back when the operator has stopped. Thread of
 * everything here: the entity's owner.
 */
#ifndef WR_GRAPHS_OWN_STREAMS_H
#define WR_GRAPHS_OWN_STREAMS_H

#include "streams/streams.h"

#define WR_NO_OWN SIZE_MAX

struct wr_own_stream {
	weir_stream *stream;
	uint64_t of;			/* by which id of another owner's it was found last; 0: by none */
	char *name;			/* of weir_context_allocate_stream; NULL */
	bool used;			/* in this tick: it is fenced, also if nothing was enqueued */
	bool ended;			/* was fenced at the end of the last tick: `last` */
	weir_fence last;		/* up to here it is fenced: whatever came later has to be */
};

struct wr_set_stream {
	size_t output, own;
};

struct wr_own_streams {
	struct wr_own_stream *items;
	size_t count, room;
	size_t named;			/* of the first so many the profilers know */
	size_t current;		/* 1 + the place of this tick's, entity->stream; 0: none yet */
	size_t default_stream;		/* 1 + the place of the device's default stream; 0: not asked for */
	weir_fence before;		/* where the internal one of the last tick that had one ended */
	bool for_run;			/* the internal one is the entity's for the run; else for this tick */
	bool carried;			/* what is emitted carries the internal one */
	bool entered;			/* in this tick: the internal one comes after the last tick's */
	bool partly;			/* some inputs were received: wr_input.waited */
	struct wr_set_stream *sets;	/* of this tick */
	weir_status failure;		/* of a call that could not say so: the tick's end does */
	size_t set_count, set_room;
};

/*
 * The entity's internal stream, if there is one to be had: from its pool, or its device's default one where
 * it wants that. OK without any (entity->stream is NULL): no pool, or an exhausted one. Not on hot paths.
 */
weir_status wr_own_take(weir_entity *entity);
/* One more of its pool, by a name. Fails: WEIR_E_BUSY, WEIR_E_UNSUPPORTED, with a text. */
weir_status wr_own_allocate(weir_entity *entity, const char *name, size_t *out);
weir_status wr_own_default(weir_entity *entity, size_t *out);		/* the default stream of its device */
/*
 * The entity's own identity of the queue that this id's stream is. Made once, then remembered. Fails:
 * WEIR_E_CLOSED (no text): given back.
 */
weir_status wr_own_share(weir_entity *entity, uint64_t id, size_t *out);
/* Makes one of them the internal one, of this tick or for the run. */
void wr_own_choose(weir_entity *entity, size_t own, bool for_run, bool carried);
/* There may be work on it that `last` does not cover. */
bool wr_own_touched(const struct wr_own_stream *own);
/* A fence for others to wait for; the tick's end does as without it. */
weir_status wr_own_record(struct wr_own_stream *own, weir_fence *out);
/* Everything recorded on any of them was seen complete (queries). */
bool wr_entity_idle(weir_entity *entity);
void wr_entity_close_streams(weir_entity *entity);	/* gives all back */

#endif
