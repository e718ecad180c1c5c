/*
 * The finisher of an outlet (B2): an entity that nobody wrote. It has one input and no output; what comes there
 * is what the outlet got while work on the device was still making it, in the same order. Its only condition
 * is a cuda_stream, so gates, tokens, failure and explaining are those of every entity; its tick tells the
 * outlet that the oldest of them is finished.
 *
 * It stands behind the plan's entities: its id is larger than theirs, it has no name to be found by and is in
 * no list of counts. Its connection is in none either: its sender is the outlet's, which is not its sender,
 * since room and endings are the outlet's affair.
 */
#ifndef WR_GRAPHS_FINISHER_H
#define WR_GRAPHS_FINISHER_H

#include "graphs/graph.h"

struct wr_finisher {
	weir_entity entity;		/* must be first: compute finds the finisher by its context's entity */
	weir_outlet *outlet;
	struct wr_connection *connection;
	struct wr_plan_entity plan;
	struct wr_plan_input input;
	struct wr_plan_condition condition;
};

/*
 * For an outlet of that port ("blur.out") that holds so many messages; compute is the scheduler's. The graph
 * has room for it, but does not run it before it was given it. Fails: WEIR_E_NOMEM.
 */
weir_status wr_finisher_make(struct wr_finisher **out, weir_graph *graph, const char *port, uint32_t capacity,
			     weir_status (*compute)(weir_context *context, void *state));
/* Cannot fail. The last one that was made. */
void wr_finisher_give(struct wr_finisher *finisher, weir_outlet *outlet);
void wr_finisher_destroy(struct wr_finisher *finisher);		/* NULL is fine; one that was not given */

#endif
