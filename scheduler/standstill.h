/*
 * Why a run stands still: what each entity that is not DONE waits for, and which entity could change that.
 * Collected once, then printed as one line (deadlock, weir_scheduler_explain_line) or reported call by call
 * (weir_scheduler_explain), root causes first.
 */
#ifndef WR_SCHEDULER_STANDSTILL_H
#define WR_SCHEDULER_STANDSTILL_H

#include "base/text.h"
#include "scheduler/scheduler.h"

/* One thing that an entity waits for. */
struct wr_cause {
	uint32_t entity;
	uint32_t blames; /* the entity that could change it; WR_NO_ENTITY: a root cause */
	enum wr_says says;
	weir_cause cause;
	uint32_t on;                      /* its subject, as in wr_cause_word */
	char *condition, *detail;         /* detail: without the counts of the queue */
	const struct wr_claim *claim;     /* the claim that was refused; NULL: none */
	struct wr_connection *connection; /* the full or empty queue; NULL: no queue is the cause */
	bool full, inlet;                 /* inlet: an open inlet could fill the queue */
	size_t held, wanted;              /* messages in the queue; its capacity if full, else the need */
};
#define WR_NO_ENTITY UINT32_MAX

struct wr_standstill {
	weir_graph *graph;
	struct wr_cause *list; /* ordered by entity */
	size_t count, room;
	bool at_end;        /* the caller is the only thread that looks at queues */
	size_t *first;      /* per entity: index of its first cause; one more at the end */
	uint8_t *marks;     /* per entity: enum wr_walk_mark */
	weir_status status; /* WEIR_E_NOMEM once an allocation has failed */
};
/* "WAIT_TIME": the verdict, for weir_unmet. */
const char *wr_says_text(enum wr_says says);
enum wr_walk_mark { WR_UNSEEN, WR_WALKED, WR_BEHIND, WR_ROOT };

/*
 * Asks the conditions of every entity. While a run is on it takes ownership of one entity after the other
 * (C5); a busy one gives its last published verdict. Thread: any but a worker of the run; between two runs
 * the others wait.
 */
void wr_standstill_collect(struct wr_standstill *standstill, weir_scheduler *scheduler);
/* The same at the end of a run, on the loop's thread, which owns every entity then. */
void wr_standstill_collect_at_end(struct wr_standstill *standstill, weir_scheduler *scheduler);
/*
 * One entity at a time, in the order of their ids: the caller fills in `first`, and owns the entity whose
 * waits it adds. Without memory `status` is set. Thread: any.
 */
void wr_standstill_init(struct wr_standstill *standstill, weir_graph *graph);
void wr_standstill_add_owned(struct wr_standstill *standstill, weir_entity *entity, bool draining);
void wr_standstill_finish(struct wr_standstill *standstill);
/*
 * Adds one line to `text`: the first root causes and circular waits, then how many entities wait behind
 * them. Starts only at entities for which from() returns true (NULL: at all). Adds "" if none waits. A
 * failure is kept in `text`.
 */
void wr_standstill_text(struct wr_standstill *standstill, bool (*from)(weir_entity *entity),
			struct wr_text *text);

/* Adds "queue of ... full (4 of 4)": the counts of a cause that is a queue. */
void wr_cause_print_queue(const struct wr_cause *cause, struct wr_text *text);
/* Of what wr_standstill_text began with: a root cause, or one of a circular wait; NULL: there is none. */
const struct wr_cause *wr_standstill_root(const struct wr_standstill *standstill);

#endif
