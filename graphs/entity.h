/*
 * Entities: what a graph is made of while it runs.
 *
 * Who touches what. `state` and what stands under "any thread" are atomics. Everything else of an entity
 * belongs to its owner: the worker that brought `state` to RUNNING (S2), or, before and after a run, the
 * thread that starts or ends it.
 *
 * Where it is done: entity.c makes an entity and frees it, reset.c sets it anew before a run, ask.c asks
 * its conditions through view.c, explain.c says why they do not hold, context.c and context_streams.c are
 * what compute calls, tick_end.c fences what it did. Pokes and ticks are the scheduler's.
 */
#ifndef WR_GRAPHS_ENTITY_H
#define WR_GRAPHS_ENTITY_H

#include "base/atomic.h"
#include "graphs/connection.h"
#include "graphs/fan_in.h"
#include "graphs/flight.h"
#include "graphs/message.h"
#include "graphs/own_streams.h"
#include "graphs/plan/plan.h"

/* Bits: QUEUED = POKED, NOTIFIED = RUNNING | POKED (S1). */
enum wr_state { WR_IDLE = 0, WR_POKED = 1, WR_RUNNING = 2, WR_DONE = 4 };
/* SILENT: nothing was said yet. MISUSED: READY or NEVER was said beside another verdict. */
enum wr_answer { WR_READY, WR_WAIT, WR_NEVER, WR_SILENT, WR_MISUSED };

/*
 * FENCED: a port with a gate was sent a message with fences in this run; said before its push (C8). CONTENT:
 * `has content`. One word, so that who has neither pays for one look.
 */
enum wr_looks { WR_LOOKS_CONTENT = 1, WR_LOOKS_FENCED = 2 };

struct weir_verdict {
	enum wr_answer answer;
	const char *why;
	bool external;
	int64_t at;			/* INT64_MAX: no time is named */
	weir_fence *fences;		/* grows; kept with the entity */
	size_t fence_count, fence_room;
	size_t fences_from;		/* where those of the condition that is being asked begin */
	weir_status failed;		/* the review fails the run: no memory for a fence, or misuse */
	const char *fault, *fault_of;	/* literals: what was wrong, and whose it was; NULL: no misuse */
	int signal;			/* enum wr_signal_kind: by which the fences are armed */
	bool stands;			/* a time that has come was named twice: the review fails the run */
};

struct wr_condition {
	void (*ask)(const void *state, const weir_view *view, weir_verdict *verdict);	/* the kind's */
	void *state;
	const struct wr_plan_condition *plan;
	int signal;			/* enum wr_signal_kind: how its fences wake the entity */
	_Atomic int told;		/* any thread: weir_told */
};

struct wr_input {
	const struct wr_plan_input *plan;
	struct wr_connection **connections;	/* in connection order; inlets last */
	size_t count;
	struct wr_slot *taken;			/* what the tick received, room for the largest front */
	size_t *taken_by;			/* per connection, how many; of a port with a set: the set knows */
	struct wr_fan_in *set;			/* NULL: few connections */
	size_t taken_count;
	size_t take;				/* most that a tick receives; SIZE_MAX: all */
	size_t need;				/* what a content condition implies: take, 1 for all */
	size_t turn;				/* whom the rotation serves first next time (C4) */
	bool any_size;				/* `take` counts per connection */
	bool content;				/* a content condition names it */
	bool gate;				/* what compute takes from it is finished (C8) */
	bool shut;				/* in this review its gate waits */
	bool waited;				/* by the internal stream, which does not wait for all (T3) */
};

struct wr_output {
	const struct wr_plan_output *plan;
	struct wr_connection **connections;
	size_t count;
	weir_message **emitted;			/* by the running compute; max_emits places */
	size_t emitted_count, max_emits;
	size_t fullest;				/* the connection that a look for room begins with */
	unsigned kinds;				/* of messages that it and all its receivers take */
	uint64_t total;				/* emitted in this run while connected (E5) */
};

/* What a parked entity waits for, beside pokes (S4: one live reference while `held`). */
struct wr_wait {
	bool held;
	bool refused;			/* stands in a signal's FIFO (G2) */
	wr_token token;
	weir_fence *fences;		/* of the token */
	size_t fence_count, fence_room;
};

struct weir_context {
	weir_entity *entity;
	bool computing;			/* emit is allowed */
	bool stream_used;		/* the internal stream waits for all inputs already (T3) */
	bool stopping;			/* a drain is on */
	size_t held;			/* references that the tick holds: received, made, emitted */
	uint64_t tick;
	/* Allocated in this tick: held until its fence is recorded, so that temporaries outlive kernels. */
	weir_message **made;
	size_t made_count, made_room;
};

struct weir_entity {
	/* any thread */
	_Alignas(64) _Atomic uint32_t state;
	weir_entity *_Atomic next_ready;	/* of the injector's list, by whoever holds the entry */
	_Atomic int64_t timer_at;		/* S10: for the loop thread, by way of the timer list */
	_Atomic bool timer_listed;
	weir_entity *timer_next;		/* by whoever listed it */
	_Atomic(const char *) why;		/* the last published verdict (C5): the reason */
	_Atomic(const char *) why_of;		/* and the condition's name */
	_Atomic int64_t computes_since;		/* 0: it does not; 1: it does, and nobody measures */

	/* fixed while it runs, but for what says otherwise */
	uint32_t id;
	const struct wr_plan_entity *plan;
	weir_graph *graph;
	struct wr_input *inputs;
	struct wr_output *outputs;
	struct wr_condition *conditions;
	size_t input_count, output_count, condition_count;
	size_t gathering_count;			/* of the conditions: they come before the content ones */
	struct wr_condition *in_flight;		/* the implied one (T8), the first of all; or NULL */
	size_t receivers;			/* connections that leave */
	_Atomic size_t listeners;		/* whose receiver is not DONE: it counts down, then pokes */
	_Atomic uint32_t looks;			/* enum wr_looks: what a review does with closed fronts */
	uint32_t looked;			/* seeded bug GATE_BEFORE_FRONT alone: `looks` of the review before */
	bool wants_ticked;				/* has conditions that want to know of ticks */
	bool timed;				/* and when these began */
	bool flagged;				/* is gated by flag on some connection */
	bool root;				/* source or cycle root: NEVER during a drain (S7) */
	bool has_content;			/* needs messages for content conditions, or unasked */
	bool unguarded;				/* has an output that no default condition watches */
	bool plain;				/* its gathering conditions are the default ones: ask.c */
	int gate_signal;			/* enum wr_signal_kind: how implied gates wake it */
	bool gated;				/* owner: looks into messages, or has asked a gate in this run */
	bool fast_last_tick;				/* owner: gated, and so quick that waking others can wait */
	bool selects;				/* of several devices its own is made the thread's */
	weir_status (*compute)(weir_context *context, void *state);	/* the operator's */
	void *operator_state;
	weir_scheduler *_Atomic scheduler;	/* whose run pokes ask for; NULL: none */

	/* owner */
	bool finished, fronts_closed, started;
	bool askable;				/* its conditions were started, in this run or the last one */
	bool stop_owed;				/* its stop function is still to be called, and its streams stay */
	bool fences_pending;				/* what its last tick held is kept: no memory for the fence */
	weir_stream *stream;			/* the internal one of this tick, of `own`; NULL: none yet */
	struct wr_own_streams own;
	struct wr_flight flight;
	bool flight_full;			/* in_flight is asked: it may not hold (T8) */
	weir_verdict verdict;
	weir_fence *scratch;			/* of one message, while a view looks at it */
	size_t scratch_room;
	struct wr_wait wait;
	weir_context context;
	struct wr_entity_counters counters;
	int64_t past;				/* a time not after its review's own that was named, and */
	uint64_t past_tick;			/* before which tick; INT64_MAX: the last review named none */
	int64_t began;				/* `timed`: the time of the review that said READY */
	size_t timer_place;			/* loop thread: 1 + place in the heap, 0 = not there */
	int64_t timer_due;			/* loop thread */
};

struct weir_view {
	weir_entity *entity;
	const struct wr_condition *condition;
	int64_t now;
	bool has_now;
	size_t early_count;		/* seeded bug CLOSED_AFTER_COUNT alone: read before `closed` */
	bool counted;
};

/* As the plan says, known to the graph by its name. Finish takes a half-made one, too. */
weir_status wr_entity_make(weir_graph *graph, uint32_t id);
/* Into zeroed memory; one that is known by no name. */
weir_status wr_entity_fill(weir_entity *entity, weir_graph *graph, uint32_t id,
			   const struct wr_plan_entity *plan);
void wr_entity_finish(weir_entity *entity);

/*
 * Asks all conditions (C2, C4) and closes the fronts when all gathering ones hold. The answer stays in
 * entity->verdict. `draining`: roots answer NEVER. Right to call at any time. Thread: owner.
 */
enum wr_answer wr_entity_ask(weir_entity *entity, bool draining);
/* What `verdict.failed` means, put into words. Thread: owner. */
weir_status wr_entity_verdict_failure(const weir_entity *entity);
/* One call of fn per condition that is not READY, with its detail. Changes nothing. Thread: owner. */
void wr_entity_explain(weir_entity *entity, bool draining, weir_explain_fn *fn, void *arg);
/*
 * A condition without a source and without a port is unmet: only somebody outside can change that. Gives
 * its name and why. Thread: owner.
 */
bool wr_entity_waits_outside(weir_entity *entity, const char **condition, const char **why);
/*
 * Names the condition that waits for a fence which was never recorded in this graph: WEIR_E_INVALID. Thread:
 * owner.
 */
weir_status wr_entity_refuse_fence(weir_entity *entity);
size_t wr_entity_held(weir_entity *entity);		/* messages in its inboxes and fronts */
/* Some block queue behind it has less room than a tick may emit. */
bool wr_entity_lacks_room(weir_entity *entity);

/* The tick's parts that belong to the graph (scheduler/tick.c calls them in order). Thread: owner. */
void wr_entity_release(weir_entity *entity);		/* unrefs what was taken */
void wr_context_release_made(weir_context *context);	/* unrefs what it made: as soon as that is fenced */
void wr_entity_discard(weir_entity *entity);		/* unrefs what was emitted and not delivered */
void wr_entity_select(weir_entity *entity);		/* its device becomes the thread's current one */
/* Records the streams that were used, adds the fences to all payloads (T4). */
weir_status wr_entity_fence(weir_entity *entity);
/* Its own stream that recorded this fence at the end of the tick that is being delivered, or NULL. */
weir_stream *wr_entity_stream_of(weir_entity *entity, weir_fence fence);
/* Fences, then discards and releases; tries again what it had to withhold. */
weir_status wr_entity_settle(weir_entity *entity);

/* Before its operator is called: what that calls of CUDA himself goes to the entity's device. */
static inline void wr_entity_enter(weir_entity *entity)
{
	if (entity->selects)
		wr_entity_select(entity);
}

#endif
