/* Random small graphs for the simulation: what they are made of, and what must hold in them. */
#ifndef TESTS_SCHEDULER_DST_GRAPH_H
#define TESTS_SCHEDULER_DST_GRAPH_H

#include "base/random.h"
#include "weir.h"

#define DST_ENTITIES 5
#define DST_BEAT 500		/* ns, virtual */

/* One world's findings: the first broken promise is kept. */
struct dst {
	struct wr_random random;	/* draws the graph; the schedule has its own numbers */
	char broken[256];
	bool tiny;			/* two entities, no device, few messages: few switching points, so each order is likelier */
	bool plain;
	bool strict;			/* a chain of `block` queues that nobody stops: every message arrives */
	uint32_t beats;			/* ticks of the first source */
	char text[4096];		/* the graph, for the replay */
};

void dst_break(struct dst *dst, const char *format, ...) WEIR_PRINTF(2, 3);
/* Draws a graph. The operators' states borrow `dst` (one world at a time in a thread). */
weir_status dst_graph(struct dst *dst, weir_registry *registry, weir_graph **out);
weir_status dst_register(weir_registry *registry);

#endif
