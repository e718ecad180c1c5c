/*
 * Entities: the nodes of a graph while it runs.
 *
 * Thread rule: `state` and the other fields under "any thread" are atomics. All other fields of an entity
 * belong to its owner: the worker that set `state` to RUNNING (S2), or, before and after a run, the thread
 * that starts or ends the run.
 *
 * Files: entity.c makes, resets and frees an entity, ask.c asks its conditions, standstill.c reports why
 * they do not hold, tick.c decides what it does next and ticks it, context.c and work.c have the calls
 * that its operator makes, work.c fences the work of a tick and counts its ticks in flight.
 */
#ifndef WR_SCHEDULER_ENTITY_H
#define WR_SCHEDULER_ENTITY_H

#include "base/atomic.h"
#include "base/thread.h"
#include "graphs/plan.h"
#include "scheduler/message.h"
#include "scheduler/queue.h"
#include "scheduler/replay.h"
#include "scheduler/view.h"
#include "scheduler/work.h"

/* Bits: QUEUED = POKED, NOTIFIED = RUNNING | POKED (S1). */
enum wr_state { WR_IDLE = 0, WR_POKED = 1, WR_RUNNING = 2, WR_DONE = 4 };

/*
 * What a review asks after it closed the fronts. GATES: in this run a message with fences was sent to a gated
 * port; set before its push (C8). CONTENT: same as has_content. TREES: a review closes some fronts only. All
 * are in one word, so that an entity with none costs one load.
 */
enum wr_front_check { WR_CHECK_CONTENT = 1, WR_CHECK_GATES = 2, WR_CHECK_LATEST = 4, WR_CHECK_TREES = 8 };

struct wr_claim;

/*
 * Bits of weir_verdict.external. ALTERNATIVES: the fences are in groups, of which the first that is complete
 * ends the wait: those of the first any_of of the entity that has some (wr_condition.ends). MEANWHILE: a
 * descriptor whose wait does not hold the run (S4).
 */
enum { WR_OUTSIDE = 1, WR_DESCRIPTOR = 2, WR_ALTERNATIVES = 4, WR_MEANWHILE = 8 };

#define WR_NO_SUBJECT UINT32_MAX
/*
 * A cause and its subject in one word, for other threads. The subject of MEMORY is the resource's id
 * (wr_shared), that of ROOM an output, that of every other cause an input, by index.
 */
static inline uint64_t wr_cause_word(weir_cause cause, uint32_t on)
{
	return (uint64_t)on << 32 | (uint32_t)cause;
}
static inline weir_cause wr_cause_of_word(uint64_t word)
{
	return (weir_cause)(uint32_t)word;
}
static inline uint32_t wr_subject_of_word(uint64_t word)
{
	return (uint32_t)(word >> 32);
}

struct weir_verdict {
	enum wr_answer answer;
	weir_cause cause; /* of WAIT and NEVER */
	uint32_t on;      /* what it is about, as in wr_cause_word; or WR_NO_SUBJECT */
	size_t needed;    /* messages or room that the port must have; 0: what a tick takes or emits */
	const char *why;
	uint8_t external;   /* waits for something outside; DESCRIPTOR: for a watched descriptor */
	int64_t at;         /* INT64_MAX: no time was named */
	weir_fence *fences; /* grows; kept with the entity */
	size_t fence_count, fence_room;
	size_t fences_from;             /* index of the first fence of the condition being asked */
	weir_status failed;             /* the review fails the run: no memory for a fence, or misuse */
	const char *misuse, *misuse_of; /* literals: the misuse and its condition; NULL: no misuse */
	int signal;                     /* enum wr_signal_kind: how the fences are armed */
	bool repeats_past;              /* a past time was named in two reviews in a row: the run fails */
};

/* A fence that a program told a condition, and when. */
struct wr_told_fence {
	weir_fence fence;
	int64_t at;
	uint64_t number; /* counts the calls; 0: no fence */
};

/* Those of one condition: ask.c. Guarded by the lock, which is held for a few stores. */
struct wr_told_fences {
	struct wr_spin lock;
	uint64_t count;                  /* of the calls */
	struct wr_told_fence next, last; /* the oldest that no tick has used; the last */
	/* Owner only: what its last review was given, and the number of the first; 0: none. */
	weir_fence next_seen, last_seen;
	uint64_t seen;
};

/*
 * The descriptor that a condition waits for: loop.c. Made by the first watch, freed with the graph. The
 * lock guards what follows it, and is held for a few stores and one system call.
 */
struct wr_descriptor {
	weir_entity *entity;
	const char *condition;      /* its name */
	struct wr_descriptor *next; /* of the graph's list */
	struct wr_spin lock;
	int fd;          /* -1: none is watched */
	unsigned events; /* WEIR_WATCH_... */
	int in_set;      /* fd, or a duplicate of it, in the loop's epoll set; -1: none */
	bool armed;      /* it will be reported once */
	int64_t since;   /* when a review first found it not ready; 0: it was ready */

	/* a line about a descriptor that stalls */
	int64_t warn_after; /* ns of a wait, after which it is logged; 0: never */
	bool late;          /* the loop has found that it is due; the entity's owner logs it */
	bool warned;        /* it was logged */
};

struct wr_condition {
	void (*ask)(const void *state, weir_view *view, weir_verdict *verdict); /* of the kind */
	void *state;
	const struct wr_plan_condition *plan;
	uint64_t cause_checked; /* wr_cause_word: a cause that it gave and that is right as it is; owner */
	struct wr_align *align; /* of an `aligned`; or NULL */
	const char *poke_why;   /* why it waits for a poke, as it said with that cause; NULL: not said so far;
				   owner */
	int signal;             /* enum wr_signal_kind: how its fences wake the entity */
	_Atomic int told;       /* any thread: weir_told */
	struct wr_told_fences fences;
	struct wr_descriptor *_Atomic descriptor; /* NULL: none was watched so far */
	struct wr_condition *inside;              /* of any_of: the first of its conditions */
	/* owner: of any_of: behind the fences of each alternative that waits for some, from its first one on
	 */
	size_t *ends;
	size_t groups;
	/* owner: as a part of an alternative: what that said in the last review */
	bool held, never;
	bool closed; /* and whether it held when fronts were closed last */
};

/* Of 96 bytes, since a tick multiplies by that. The bits are constant in a run. */
struct wr_input {
	const struct wr_plan_input *plan;
	struct wr_connection **connections; /* in connection order; inlets last */
	size_t count;
	weir_message **taken;         /* what the tick received; room for the largest front */
	bool *forwarded;              /* of each: its reference is that of an output now; memory of `taken` */
	size_t *taken_by;             /* their number per connection; with a set: in the set */
	struct wr_fan_in *set;        /* NULL: few connections */
	struct wr_condition *implied; /* of a default_only entity: the default condition of this port */
	size_t taken_count;
	size_t take;          /* the most messages that a tick receives; SIZE_MAX: all; 0: held */
	size_t need;          /* least for a content condition: take; 1 for all; 0: held */
	uint32_t next_served; /* connection that the rotation serves first next time (C4) */
	uint32_t limit;       /* of take and need, by a compute (weir_context_limit); 0: none */
	bool any_size : 1;    /* `take` counts per connection */
	bool content : 1;     /* a content condition names it */
	bool lone : 1;        /* one connection, no set, and its queue is read without a lock */
	bool gate : 1;        /* compute receives only finished messages from it (C8) */
	bool chosen : 1;      /* only trees name it: it is taken if an alternative that holds says so */
	bool aligned : 1;     /* a condition `aligned` names it: its owner may drop what is queued */
	bool by_tag : 1;      /* aligned: its keys are tags, not times */
	bool latest : 1;      /* its queue gives the newest finished message again and again */
	bool held;            /* by a compute (weir_context_hold); no bit, for senders read those above */
	bool gate_waits;      /* result of its gate in this review */
	bool untaken;         /* no alternative that holds names it: the tick leaves its front (C11) */
	bool waited;          /* the current stream waits for this input already (T3) */
};

/* Returns true if the tick's k-th message is this one and its reference has not gone on to an output. */
static inline bool wr_input_refers(const struct wr_input *input, size_t k, const weir_message *message)
{
	return input->taken[k] == message && !input->forwarded[k];
}

struct wr_output {
	const struct wr_plan_output *plan;
	struct wr_connection **connections;
	size_t count;
	weir_message **emitted; /* by the running compute; room for max_emits */
	size_t emitted_count, max_emits;
	size_t needs;                 /* room that a tick waits for if it does: max_emits, or 1 */
	bool may_be_full;             /* a tick begins without room (S3) */
	struct wr_condition *implied; /* as in wr_input; NULL: it has none */
	size_t fullest;               /* index of the connection at which a check for room begins */
	unsigned kinds;  /* message kinds that the port and all its receivers accept, whatever they hold */
	unsigned looked; /* and those that they accept if their types do */
	struct wr_passed passed;
	uint64_t total; /* emitted in this run while connected (E5) */
};

/* One token, and what it is armed for. */
struct wr_armed {
	wr_token token;
	bool promised; /* it is of a promise (T17) */
	weir_fence *fences;
	size_t fence_count, fence_room;
};

/* The armed wait of a parked entity. */
struct wr_wait {
	bool holds_live; /* one live reference (S4) */
	bool meanwhile;  /* it counts as DONE for the end of the run (S4) */
	bool watches;    /* a descriptor */
	int64_t at;      /* when its timer is due; INT64_MAX: it has none */
	bool in_fifo;    /* queued in a signal's FIFO (G2) */
	bool more;       /* some of `others` may be armed */
	struct wr_armed armed;
	struct wr_armed *others; /* of an entity with trees: the alternatives after the first (C11) */
	size_t other_count;
};

struct weir_context {
	weir_entity *entity;
	bool computing;    /* emit is allowed */
	bool stream_used;  /* the current stream already waits for all inputs (T3) */
	bool stamp_set;    /* by the operator, for what this tick emits */
	bool stopping;     /* within stop: the run's outcome is known */
	size_t references; /* of the tick: received, made, emitted */
	size_t forwarded;  /* messages that are both received and emitted, with one reference */
	int64_t kept; /* of a counted run: references that its computes took beyond those and have not dropped
		       */
	uint64_t tick;
	struct wr_capture *capture; /* of the enqueue that is captured now (T13), or NULL */
	bool replaying;             /* within weir_context_replay */
	/* Allocated in this tick; kept until its fence is recorded, so that temporaries outlive kernels. */
	weir_message **made;
	size_t made_count, made_room;
	weir_stamp stamp; /* if stamp_set */
};

#define WR_COST_UNKNOWN UINT32_MAX /* counts as long */
#define WR_RUN_UNKNOWN  20000000   /* comes down with each run */

struct weir_entity {
	/* any thread */
	_Alignas(64) _Atomic uint32_t state;
	weir_entity *_Atomic next_ready; /* injector list; written by the thread that owns the entry */
	_Atomic int64_t timer_at;        /* S10: read when it has left the timer list */
	_Atomic bool timer_listed;
	weir_entity *timer_next;         /* written by the thread that listed it */
	_Atomic(const char *) why;       /* the last published verdict (C5): the reason */
	_Atomic(const char *) why_of;    /* and the name of the condition */
	_Atomic uint64_t cause;          /* and wr_cause_word */
	_Atomic unsigned brief_runs;     /* so many in a row, a hint: timers.c */
	_Atomic uint32_t run_most;       /* ns that a run took at the most of late, a hint: timers.c */
	_Atomic int64_t computing_since; /* start of the running compute; 0: none; 1: not measured */

	/* constant during a run, unless the comment says otherwise */
	uint32_t id;
	const struct wr_plan_entity *plan;
	weir_graph *graph;
	char *record; /* of the operator's, JSON; NULL: none; guarded by graph->record_lock */
	struct wr_input *inputs;
	struct wr_output *outputs;
	struct wr_condition *conditions;
	size_t input_count, output_count, condition_count;
	size_t shown_inputs;            /* those of the graph: not `turn` of an instance (C13) */
	size_t gathering_count;         /* gathering conditions; they precede the others */
	size_t asked_count;             /* conditions that a review asks; those inside trees follow them */
	struct wr_condition *in_flight; /* the implied in-flight bound (T8), conditions[0]; or NULL */
	struct wr_claim *claims;        /* of shared resources, in ascending order (S3) */
	uint8_t claim_count;
	size_t receivers;                /* outgoing connections */
	_Atomic size_t receivers_left;   /* those not DONE; a receiver counts down, then pokes */
	_Atomic uint32_t front_checks;   /* enum wr_front_check: what a review does with closed fronts */
	bool wants_ticked;               /* some condition has a `ticked` function */
	bool timed;                      /* and one of these reads when the tick began */
	bool root;                       /* source or cycle root: NEVER during a drain (S7) */
	bool has_content;                /* a content condition, or an input without any condition */
	bool output_unwatched;           /* has an output that no default condition watches */
	bool default_only;               /* its gathering conditions are those of its ports: ask.c */
	bool gates_only;                 /* and its content conditions are `cuda_stream` */
	const struct wr_condition *gate; /* the one of an entity that its sender may review; NULL: implied */
	int gate_signal;                 /* enum wr_signal_kind: how implied gates wake it */
	bool gated;                      /* owner: has_content, or asked a gate in this run */
	_Atomic uint32_t cost;           /* ns of a compute, from samples; WR_COST_UNKNOWN (S9). Relaxed */
	bool selects_device;             /* several devices: wr_entity_enter has work to do */
	weir_status (*compute)(weir_context *context, void *state); /* of the operator */
	void *operator_state;
	struct wr_dealt *dealt;            /* of an instance: instances.h; else NULL */
	weir_scheduler *_Atomic scheduler; /* its run accepts or refuses pokes; NULL: none */

	/* owner */
	bool finished, fronts_closed, started;
	bool has_trees;              /* any_of: reviews close the fronts that its alternatives name */
	bool only_latest;            /* all its connected inputs are such, and there is one */
	bool asks_ports;             /* has_content or only_latest */
	bool askable;                /* its conditions were started, in this run or the last one */
	bool stop_owed;              /* its stop function was not called yet; its streams stay */
	bool fences_pending;         /* of its last tick's work: its messages are kept */
	weir_stream *current_stream; /* of this tick, in `streams`; NULL: none yet */
	weir_stream *given_stream;   /* by weir_entity_use_stream; NULL: none. Changes between runs only */
	struct wr_entity_streams streams;
	struct wr_flight flight;
	struct wr_replays *replays;   /* NULL: nothing was replayed in this run (T13) */
	struct wr_gpu_time *gpu_time; /* NULL: no run of it was timed (T15) */
	bool flight_full;             /* in_flight may not hold: the review must ask it (T8) */
	bool awaits_fences;           /* if fences are armed: its tick waits for these alone: ask.c */
	weir_verdict verdict;
	weir_fence *fetched; /* fences of messages, while they are read */
	size_t fetched_room;
	struct wr_wait wait;
	weir_context context;
	struct wr_entity_counters counters;
	const char *past_of; /* the condition that named a past time in the last review; NULL: none */
	uint64_t past_tick;  /* context.tick at that review */
	int64_t ready_at;    /* `timed`: the time of the review that returned READY */

	/* under timers_lock */
	size_t timer_place; /* 1 + index in the heap; 0: not in it */
	int64_t timer_due;

	/* loop thread, stuck.c */
	bool stuck;            /* may belong, or belongs, to a part that stands for ever */
	uint64_t looked_ticks; /* at its last look */
	int64_t looked_at;     /* the look that first saw these */
};

struct weir_view {
	weir_entity *entity;
	struct wr_condition *condition;
	bool looks; /* no review: drops nothing, notes nothing (C12) */
	bool draining;
	int64_t now;
	bool has_now;
};

/* Returns true if the port of the cause is what would end it. A condition's own cause may be about anything.
 */
static inline bool wr_cause_is_of_queue(weir_cause cause)
{
	return cause == WEIR_CAUSE_MESSAGES || cause == WEIR_CAUSE_ROOM || cause == WEIR_CAUSE_OWN;
}

/* What one that does not hold says; PARKED: all hold, but the entity was not woken. */
enum wr_says {
	WR_SAYS_WAIT, /* until a poke */
	WR_SAYS_TIME,
	WR_SAYS_EVENT,
	WR_SAYS_NEVER,
	WR_SAYS_BUSY,
	WR_SAYS_PARKED,
	WR_SAYS_NOTHING, /* misuse: no verdict */
	WR_SAYS_TWO      /* misuse: two verdicts */
};

/* What keeps an entity from being READY. The strings are lent until the function that gets them returns. */
struct wr_unmet {
	const char *condition; /* "message_available on in", "gate on in", "in", "drain" */
	enum wr_says says;
	weir_cause cause;
	uint32_t on;   /* its subject, as in wr_cause_word */
	size_t needed; /* as in weir_verdict */
	const char *detail;
	const struct wr_plan_condition *plan; /* NULL: a gate, a port that lacks messages, a drain */
	struct wr_condition *asked;           /* of that plan, or NULL */
	const struct wr_input *input;         /* the port that it names: one of these, or neither */
	const struct wr_output *output;
	const struct wr_claim *claim; /* the claim that was refused; NULL: none */
};
typedef void wr_unmet_fn(const struct wr_unmet *unmet, void *arg);

/*
 * Makes entity `id` of the plan in graph->entities and adds its name. wr_entity_finish takes a half-made one.
 */
weir_status wr_entity_make(weir_graph *graph, uint32_t id);
/* Makes an entity in zeroed memory, without adding its name. */
weir_status wr_entity_fill(weir_entity *entity, weir_graph *graph, uint32_t id,
			   const struct wr_plan_entity *plan);
void wr_entity_finish(weir_entity *entity);
/* Takes the text over; NULL: none. */
void wr_entity_set_record(weir_entity *entity, char *json);
/* Gives a copy, or leaves *out. Thread: any. Fails: WEIR_E_NOMEM. */
weir_status wr_entity_copy_record(weir_entity *entity, char **out);
/* Before a run, see entity.c. Fails: WEIR_E_NOMEM, what a condition's start returns. */
weir_status wr_entity_reset(weir_entity *entity);

/*
 * Asks all conditions (C2, C4) and closes the fronts when all gathering ones hold. The answer stays in
 * entity->verdict. `draining`: roots answer NEVER. May be called at any time. Thread: owner.
 */
enum wr_answer wr_entity_ask(weir_entity *entity, bool draining);
/*
 * The same for an entity whose sender may review it, and has pushed this message with fences. Returns true if
 * it waits for fences alone; *arms: for that of the message, which is not armed. Else the entity needs a
 * review. Thread: owner.
 */
bool wr_entity_ask_pushed(weir_entity *entity, const weir_message *message, bool *arms);
/* Returns verdict.failed and sets the last error to its text. Thread: owner. */
weir_status wr_entity_verdict_failure(const weir_entity *entity);
/* Calls fn once for each condition that is not READY. Changes nothing. Thread: owner. */
void wr_entity_explain(weir_entity *entity, bool draining, wr_unmet_fn *fn, void *arg);
/*
 * Returns true if an unmet condition names neither a source nor a port, so that only the program can change
 * it. Gives its name and reason. Thread: owner.
 */
bool wr_entity_waits_outside(weir_entity *entity, const char **condition, const char **why);
/*
 * Fails with WEIR_E_INVALID, naming the condition that waits for a fence which was never recorded in this
 * graph. OK: none does any more, and the entity is reviewed once more. Thread: owner.
 */
weir_status wr_entity_refuse_fence(weir_entity *entity);
/* Sets the last error of a call whose entity is NULL; returns WEIR_E_INVALID. */
weir_status wr_entity_refuse_null(void);
/* The condition of that name. Fails: WEIR_E_INVALID: there is none, or the entity is NULL. Thread: any. */
weir_status wr_condition_find(weir_entity *entity, const char *name, struct wr_condition **out);
/* When the program told the condition this fence; 0: it did not. Thread: any. */
int64_t wr_told_fence_at(struct wr_condition *condition, weir_fence fence);
/* The name of the subject of a cause (wr_cause_word): a port or a pool; NULL: there is none that the graph
 * has. Thread: any. */
const char *wr_entity_subject(const weir_entity *entity, weir_cause cause, uint32_t on);
/* Messages in its inboxes and fronts: those of the graph (`shown`), or what a tick is owed to: not what waits
 * in `latest` ports, but the turns of instances. */
size_t wr_entity_queued(weir_entity *entity, bool shown);
/* Returns true if some `block` queue of its outputs has less room than a tick may emit. */
bool wr_entity_lacks_room(weir_entity *entity);

/* The next tick takes nothing from the input and needs nothing there; or as its plan says. Thread: owner. */
void wr_input_hold(struct wr_input *input, bool hold);

/* --- the messages of a tick; Thread: owner --- */

/* Returns true if the operator holds no reference to the message beside those of the tick. */
bool wr_context_holds_all(const weir_context *context, const weir_message *message);
void wr_context_unref_made(weir_context *context); /* drops the tick's references to what it allocated */
void wr_entity_unref_inputs(weir_entity *entity);  /* drops those to what it took */
/* Forgets which of the inputs were forwarded, and these inputs: from now on the outputs alone have them. */
void wr_entity_leave_forwarded(weir_entity *entity);
/*
 * Ends a tick without delivery: fences the streams, then drops all messages of the tick. If a fence fails (no
 * memory; a device that failed and still works) it keeps the messages (fences_pending); call it again later.
 */
weir_status wr_entity_drop_tick(weir_entity *entity);

/* Call before each call of its operator: CUDA calls of the operator then go to the entity's device. */
static inline void wr_entity_enter(weir_entity *entity)
{
	if (entity->selects_device)
		wr_entity_select_device(entity);
}

/* === asking one condition: for reviews and explanations (ask.c, standstill.c) === */

/* Keeps the fences of earlier conditions in the list; the caller counts and removes them. */
static inline void wr_verdict_clear(weir_verdict *verdict)
{
	verdict->answer = WR_SILENT;
	verdict->cause = WEIR_CAUSE_NONE;
	verdict->why = NULL;
	verdict->external = 0;
	verdict->at = INT64_MAX;
	verdict->fences_from = verdict->fence_count;
}

/* Notes misuse of a view or a verdict, which fails the run. `misuse` is a literal; the first one is kept. */
static inline void wr_view_misuse(weir_view *view, const char *misuse)
{
	weir_verdict *verdict = &view->entity->verdict;

	if (verdict->failed)
		return;
	verdict->failed = WEIR_E_INVALID;
	verdict->misuse = misuse;
	verdict->misuse_of = view->condition ? view->condition->plan->name : "?";
}

/* The answer is in entity->verdict. */
static inline void wr_condition_ask(weir_view *view, struct wr_condition *condition)
{
	wr_verdict_clear(&view->entity->verdict);
	view->condition = condition;
	condition->ask(condition->state, view, &view->entity->verdict);
}

/* A wait or NEVER of the scheduler's own. */
static inline void wr_verdict_give_cause(weir_verdict *verdict, weir_cause cause, uint32_t on)
{
	verdict->cause = cause;
	verdict->on = on;
	verdict->needed = 0;
}

/* In the order of preference, of which an AND chooses one: ask.c. */
enum wr_rank { WR_RANK_READY, WR_RANK_TIME, WR_RANK_FENCES, WR_RANK_EXTERNAL, WR_RANK_POKE };
/* Of a WAIT. */
static inline enum wr_rank wr_verdict_rank(const weir_verdict *verdict)
{
	if (verdict->external)
		return WR_RANK_EXTERNAL;
	if (verdict->fence_count > verdict->fences_from)
		return WR_RANK_FENCES;
	return verdict->at == INT64_MAX ? WR_RANK_POKE : WR_RANK_TIME;
}

/* The condition asked last gave no answer, or two: that fails the run. */
void wr_verdict_refuse(weir_view *view);
/*
 * Returns true if all connected inputs are closed and hold nothing that a tick could take, and none is held
 * by a compute that has not finished with what it took. What only alternatives name that can never hold again
 * is not taken (C11). `but_chosen`: ports that trees choose may hold anything.
 */
bool wr_view_inputs_over(weir_view *view, bool but_chosen);

/* Of an entity with trees (C11). Closes the fronts that the next tick takes; the others become inboxes again.
 */
void wr_entity_close_chosen(weir_entity *entity);

void wr_verdict_check_new_cause(weir_view *view, struct wr_condition *condition);
/* Completes and checks the cause of the condition that was asked last and does not hold. */
static inline void wr_verdict_check_cause(weir_view *view, struct wr_condition *condition)
{
	const weir_verdict *verdict = &view->entity->verdict;

	if (wr_cause_word(verdict->cause, verdict->on) != condition->cause_checked)
		wr_verdict_check_new_cause(view, condition);
}

/*
 * Asks the implied gate of the port (C8), and, without one, whether a promise is open (T17). Returns true,
 * with a WAIT verdict, if the front is not finished.
 */
bool wr_gate_ask(weir_view *view, unsigned input);

/* --- the ports: for conditions, and for reviews that ask none --- */

bool wr_input_holds_in_all(const struct wr_input *input, size_t needed);
/* Returns true if the port can never again hold `needed` messages. */
bool wr_input_ended(const struct wr_input *port, size_t needed);
/* Returns true if the port holds `needed` messages; any-size port: in each queue. */
static inline bool wr_input_holds(const struct wr_input *input, size_t needed)
{
	if (input->lone) /* nearly always */
		return wr_queue_holds(&input->connections[0]->queue, needed);
	return wr_input_holds_in_all(input, needed);
}

/* A wait is in the verdict, unless it returns READY. */
enum wr_answer wr_content_port_lacks(weir_view *view, unsigned input);
/*
 * What content conditions imply of a port that they name: it holds what a tick takes (C4). READY, else a wait
 * is in the verdict; NEVER: it never will.
 */
static inline enum wr_answer wr_content_port_ask(weir_view *view, unsigned input)
{
	const struct wr_input *port = &view->entity->inputs[input];

	if (!port->content || wr_input_holds(port, port->need))
		return WR_READY;
	return wr_content_port_lacks(view, input);
}

/* A connection whose receiver is DONE always has room (S5). */
static inline bool wr_connection_is_free(const struct wr_connection *connection)
{
	return connection->sender_owns || wr_load_acquire(&connection->receiver_done);
}

/* The room without which no tick begins (S3). */
static inline size_t wr_output_needs(const struct wr_output *output)
{
	return output->may_be_full ? 0 : output->max_emits;
}

/* How many messages fit behind the port, which its owner asks; SIZE_MAX: any number. */
size_t wr_output_room(struct wr_output *output);
/* Returns true if the port has receivers, all of which are DONE. */
bool wr_output_receivers_done(const struct wr_output *output);
/* Returns true if the full connection `at` blocks the port; notes it. */
bool wr_output_is_blocked(struct wr_output *output, size_t at);
/*
 * Returns true if each connection of the port has room for `needed` messages. Begins with the one that was
 * full the last time. Each receiver that frees room pokes the sender; if the sender then checked all of its N
 * connections, one round of N receivers would cost N * N checks.
 */
static inline bool wr_output_has_room(struct wr_output *output, size_t needed)
{
	size_t at = output->fullest;

	for (size_t i = 0; i < output->count; i++, at++) {
		at = at < output->count ? at : 0;
		if (!wr_queue_has_room(&output->connections[at]->queue, needed) &&
		    wr_output_is_blocked(output, at))
			return false;
	}
	return true;
}

#endif
