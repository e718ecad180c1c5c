/*
 * The simulation's own header. dst.c is the command; dst_world.c draws and runs one world, of one or two graphs; dst_graph.c draws a graph;
 * dst_operators.c is what its entities do, and what they check.
 */
#ifndef TESTS_SCHEDULER_DST_H
#define TESTS_SCHEDULER_DST_H

#include "base/random.h"
#include "weir.h"

#define DST_ENTITIES 5
#define DST_INLET (DST_ENTITIES - 1)	/* the source's number of what comes by an inlet: graphs have fewer entities */
#define DST_GRAPHS 2			/* in one world, at most */
#define DST_BEAT 500			/* ns, virtual */
#define DST_WAYS 7			/* in which an entity comes to the stream that it works on: dst_streams.c */

/* One graph: how it was drawn, and what was found in it. */
struct dst {
	struct wr_random random;	/* draws the graph; the schedule has its own numbers */
	struct wr_random streams;	/* draws what its entities do with streams */
	struct wr_random gates;		/* draws who waits for the device, and by which gate */
	char broken[512];		/* the first broken promise */
	unsigned graph;			/* its number in the world */

	/* its shape */
	bool tiny;			/* two entities, no device, few messages: few switching points, so each order is likelier */
	bool plain;			/* a chain */
	bool gather;			/* a diamond whose paths end in one any-size port */
	bool cycle;			/* the chain's last entity gives the first node leave to go on: `initial` */
	bool knot;			/* such a cycle with too little in it: the run must end in a deadlock */
	bool inlet, outlet;		/* instead of the first source; behind the last entity */
	const char *told;		/* a condition of the last entity that is told from outside, or NULL */
	uint32_t fails_at, stops_at;	/* the tick of the last entity in which compute fails, or stops the run; 0: none */
	uint32_t bad_starts;		/* how often the last entity's start fails yet */

	/* what was promised and what was seen */
	bool strict;			/* nothing is dropped: every message arrives at every entity */
	unsigned entities;
	uint32_t beats;			/* messages of the first source, or pushed by the inlet in this run */
	bool failed, stopped;		/* compute did, in this run */
	weir_fence work[DST_ENTITIES];	/* what entities that note it enqueued last: for `dst_own_work` */
	weir_message *kept[DST_ENTITIES];	/* what entities passed on last and hold on to; until the run has ended */
	weir_scheduler *scheduler;
	char text[4096];		/* for the replay */
};

/* The last number of each source that came by one connection. */
struct dst_seen {
	uint32_t next[DST_ENTITIES];
	bool gaps;			/* some were not looked at: they had fences, and no gate */
};

struct dst_payload {
	uint32_t source, number;
	uint64_t mark;
};

void dst_break(struct dst *dst, const char *format, ...) WEIR_PRINTF(2, 3);

/* dst_operators.c */
weir_status dst_register(weir_registry *registry);
void dst_let_go(struct dst *dst);		/* of what entities kept; nobody runs */
void dst_use(struct dst *dst, unsigned number);	/* of the graphs of a world: its operators report to `dst` */
struct dst_payload dst_payload_of(uint32_t source, uint32_t number);
void dst_check(struct dst *dst, const struct dst_payload *payload, struct dst_seen *seen, const char *who);

/* dst_streams.c: the stream of this tick, come to by that way; what it makes carries it. NULL: last_error. */
weir_stream *dst_stream(struct dst *dst, weir_context *context, unsigned way);

/* dst_graph.c: draws the shape and the graph. */
weir_status dst_graph(struct dst *dst, weir_registry *registry, weir_graph **out);

/* dst_world.c: true: every promise held. A broken world is dropped as it stands: it may hang, and what it holds is lost. */
struct dst_report {
	uint64_t hash, switches;
	char broken[512], text[8192];
};
bool dst_world(uint64_t seed, struct dst_report *report);

#endif
