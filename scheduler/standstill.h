/*
 * Why a run stands still: what each entity that is not DONE waits for, and whom that blames. Taken once, it is told in
 * one line (the deadlock's, weir_scheduler_why) or call by call (weir_scheduler_explain): root causes first.
 */
#ifndef WR_SCHEDULER_STANDSTILL_H
#define WR_SCHEDULER_STANDSTILL_H

#include "graphs/plan/text.h"
#include "scheduler/scheduler.h"

/* One thing that an entity waits for. */
struct wr_cause {
	uint32_t entity;
	uint32_t blames;		/* the entity that could change it, or WR_NO_ENTITY: it is a root cause */
	const char *verdict;		/* literal */
	char *condition, *detail;	/* detail: without the numbers */
	struct wr_connection *connection;	/* the queue that is full, or empty; NULL: neither */
	bool full, inlet;		/* inlet: an open one could fill it */
	size_t held, wanted;		/* messages in it, and how many of what */
};
#define WR_NO_ENTITY UINT32_MAX

struct wr_standstill {
	weir_graph *graph;
	struct wr_cause *list;		/* entity by entity */
	size_t count, room;
	size_t *first;			/* of each entity; one more at the end */
	uint8_t *marks;			/* of each entity: enum wr_host_event */
	weir_status status;		/* the first failure: no memory */
};
enum wr_host_event { WR_UNSEEN, WR_WALKED, WR_BEHIND, WR_ROOT };

/*
 * Who may be asked is asked: while a run is on each entity as it can be had (C5); else all, by their only owner.
 * Thread: any but a worker of the run.
 */
void wr_standstill_take(struct wr_standstill *standstill, weir_scheduler *scheduler, bool running);
/* --- explain.c: between two runs nothing else asks meanwhile --- */
void wr_explain_take(struct wr_standstill *out, weir_scheduler *scheduler);

void wr_standstill_finish(struct wr_standstill *standstill);
/*
 * One line: root causes and circles, as many as are worth it, then how many wait behind them. Of those alone from
 * which `from` says yes (NULL: all). "" if none waits. Adds to `text`, which notes a failure.
 */
void wr_standstill_text(struct wr_standstill *standstill, bool (*from)(weir_entity *entity), struct wr_text *text);
void wr_standstill_tell(struct wr_standstill *standstill, weir_explain_fn *fn, void *arg);
/* An inlet that is open keeps a run open that would else end: names one or more, adds nothing if there is none. */
void wr_open_inlets_text(weir_graph *graph, struct wr_text *text);

#endif
