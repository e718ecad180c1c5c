/*
 * The streams that an entity works on: its current stream, those that it allocated by name, and its shares
 * of streams that came with messages, from wrappers or as the device's default. An entity has one stream id
 * per native stream, so timeline values and live references have one owner.
 *
 * They are taken at first use and released when the operator has stopped. Thread, for all functions: the
 * entity's owner.
 */
#ifndef WR_SCHEDULER_WORK_H
#define WR_SCHEDULER_WORK_H

#include "scheduler/scratch.h"
#include "streams/streams.h"

struct wr_trace;

struct wr_entity_stream {
	weir_stream *stream;
	uint64_t shared_id; /* share: another owner's id that last led to it; 0: none */
	char *name;         /* of weir_context_allocate_stream; else NULL */
	bool used;          /* in this tick: it is fenced even if nothing was enqueued */
	bool ended;         /* the end of the last tick recorded `last` */
	weir_fence last;    /* later work on the stream is not fenced yet */
	struct wr_scratch scratch;
	struct wr_span *span; /* in a timed tick (T15); or NULL */
};

/* Messages of this output carry items[index]. */
struct wr_output_stream {
	size_t output, index;
};

/* emitted[place] of this output carries the fence, an earlier point of the tick than its end (T12). */
struct wr_early_message {
	size_t output, place;
	weir_fence fence;
};

struct wr_entity_streams {
	struct wr_entity_stream *items;
	size_t count, room;
	size_t named_count;    /* items[0..named_count) have a name in profilers */
	size_t current;        /* 1 + index of the current stream, entity->current_stream; 0: none yet */
	size_t default_stream; /* 1 + index of the device's default stream; 0: not requested */
	weir_fence last_end;   /* end of the last tick that had a current stream, on that stream */
	bool for_run;          /* the current stream stays for the run; else for this tick only */
	bool emits_carry;      /* emitted messages carry the current stream (T7) */
	bool current_ordered;  /* in this tick: the current stream waits for `last_end` */
	bool inputs_waited;    /* in this tick: some wr_input.waited is set */
	bool scratch_used;     /* in this tick: some stack is not empty */
	bool scratch_fixed;    /* requests that do not fit fail: wr_scratch_fix */
	struct wr_output_stream *sets;  /* of this tick: weir_context_set_stream */
	struct wr_early_message *early; /* of this tick: weir_context_emit_at */
	weir_status failure;            /* of a call that returns no status; the end of the tick returns it */
	size_t set_count, set_room;
	size_t early_count, early_room;
	weir_fence *promised; /* of this tick: promises that what it emits carries (T17) */
	size_t promised_count, promised_room;
	/* The end of a tick of many messages: those that it received or emits, sorted by address. */
	const weir_message **sorted;
	size_t sorted_count, sorted_room; /* count 0: not sorted */
	bool sort_due;                    /* this end of a tick has not searched so far */
};

/* --- taking: *out is an index into items --- */

/*
 * Takes the entity's current stream: the program's, if it gave one (T14), else one of its pool, or the
 * default stream of its device if the plan says so. With no pool or an exhausted one it returns OK and leaves
 * entity->current_stream NULL. Not for hot paths.
 */
weir_status wr_entity_take_stream(weir_entity *entity);

/* Queries the device; returns true if all recorded work on all streams is complete. */
bool wr_entity_streams_idle(weir_entity *entity);
void wr_entity_close_streams(weir_entity *entity);
void wr_entity_select_device(weir_entity *entity); /* makes its device the thread's current one */
/* Names to the trace the streams that the entity took since the last call. */
void wr_entity_trace_streams(weir_entity *entity, struct wr_trace *trace);

/*
 * === the fences of a tick ===
 *
 * The fences that a tick records on the streams of its entity. Thread, for all functions: the entity's owner.
 */

/* Returns true if the end of this tick would record a fence. Thread: owner. */
bool wr_entity_has_device_work(const weir_entity *entity);
bool wr_entity_took_message(const weir_entity *entity); /* in its tick */
/*
 * The end of a tick: records the used streams and adds the fences to all payloads (T4). *pending: it failed,
 * and no fence tells when some of the tick's work ends; call it again.
 */
weir_status wr_entity_fence_tick(weir_entity *entity, bool *pending);
/* Returns the entity's stream on which the running tick recorded this fence, or NULL. */
weir_stream *wr_entity_stream_recorded(weir_entity *entity, weir_fence fence);
/* Makes room for one more entry in `early`. Fails: WEIR_E_NOMEM. */
weir_status wr_entity_reserve_early(weir_entity *entity);
/* Notes that the message emitted last on the output carries the fence. Call after wr_entity_reserve_early. */
void wr_entity_add_early(weir_entity *entity, size_t output, weir_fence fence);
/* Makes room for one more entry in `promised`. Fails: WEIR_E_NOMEM. */
weir_status wr_entity_reserve_promise(weir_entity *entity);
/* Returns the entity's stream that recorded this fence at the end of its last tick, or NULL. */
weir_stream *wr_entity_stream_of(weir_entity *entity, weir_fence fence);

/*
 * === ticks in flight ===
 *
 * The ticks of an entity that used the device, and which of them are not known to be complete (T8). They are
 * numbered from 1 in each run. Thread, for all functions: the entity's owner.
 */

/* A fence that the end of a tick recorded; one per stream that the tick used. */
struct wr_flight_end {
	weir_fence fence;
	uint64_t tick;
};

struct wr_flight {
	size_t bound;               /* max_in_flight in this run; 0: no bound, `ends` stays empty */
	uint64_t ticks, completed;  /* number of the last tick; ticks 1..completed are known to be complete */
	struct wr_flight_end *ends; /* [first, first + count): ends of ticks after `completed`, in order */
	size_t first, count, room;
	bool promised;          /* some end was a promise, which has no stream */
	uint64_t operations;    /* that the largest recent tick enqueued */
	uint64_t largest_tick;  /* the number of that tick */
	uint64_t ask_at, pause; /* for the most in flight: the tick that asks the device next, ticks until the
				   one after */
};

void wr_flight_reset(struct wr_flight *flight, size_t bound);
void wr_flight_finish(struct wr_flight *flight);
/* The bound, lowered if ticks enqueue many operations: the driver's launch queue is finite. */
size_t wr_flight_limit(const struct wr_flight *flight);
/*
 * Call after the streams of a tick were fenced: notes the tick if it used any. If the in-flight condition
 * waits by completion flag, writes the flags at every (wr_flight_limit() / 2)th tick. Fails: WEIR_E_NOMEM.
 */
weir_status wr_flight_note_tick(weir_entity *entity);

#endif
