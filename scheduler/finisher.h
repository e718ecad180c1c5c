/*
 * The finisher of an outlet (B2): a hidden entity with one input and no output. It receives the messages that
 * the outlet got while the device was still working on them, in the same order. Its only condition is a
 * cuda_stream, so it uses the gates, tokens, failures and explanations of any entity. Its tick tells the
 * outlet that the oldest of these messages is finished.
 *
 * Its id is larger than those of the plan's entities. It cannot be found by name and is in no list of
 * counters; nor is its connection, which has no sender, since room and closing belong to the outlet.
 */
#ifndef WR_SCHEDULER_FINISHER_H
#define WR_SCHEDULER_FINISHER_H

#include "scheduler/graph.h"

struct wr_finisher {
	weir_entity entity; /* must be first: compute casts its entity to the finisher */
	weir_outlet *outlet;
	struct wr_connection *connection;
	struct wr_plan_entity plan;
	struct wr_plan_input input;
	struct wr_plan_condition condition;
};

/*
 * For an outlet of `port` ("blur.out") that holds up to `capacity` messages; `compute` is the scheduler's.
 * Makes room for it in the graph, which runs it only after wr_finisher_give. Fails: WEIR_E_NOMEM.
 */
weir_status wr_finisher_make(weir_graph *graph, const char *port, uint32_t capacity,
			     weir_status (*compute)(weir_context *context, void *state),
			     struct wr_finisher **out);
/* Gives the finisher that was made last to the outlet's graph. Cannot fail. */
void wr_finisher_give(struct wr_finisher *finisher, weir_outlet *outlet);
void wr_finisher_destroy(struct wr_finisher *finisher); /* takes NULL */

#endif
