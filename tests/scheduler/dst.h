/*
 * The simulation's own header. dst.c is the command; dst_world.c draws and runs one world of one or two
 * graphs; dst_outsiders.c is the threads that meddle with it; dst_graph.c draws a graph; dst_operators.c is
 * what its entities do and check.
 */
#ifndef TESTS_SCHEDULER_DST_H
#define TESTS_SCHEDULER_DST_H

#include "scheduler/graph.h"
#include "sim/random.h"
#include "weir.h"

#define DST_ENTITIES 5
#define DST_INLET    (DST_ENTITIES - 1) /* source number of an inlet: above all entities */
#define DST_GRAPHS   2                  /* at most, in one world */
#define DST_BEAT     500                /* ns, virtual */
#define DST_WAYS     7                  /* ways to get the stream of a tick: dst_streams.c */

/* One graph: how it was drawn, and what its run showed. */
struct dst {
	struct wr_random random;  /* draws the graph; the schedule has its own numbers */
	struct wr_random streams; /* draws what its entities do with streams */
	struct wr_random gates;   /* draws which entities wait for the device, and by which gate */
	struct wr_random joins;   /* draws which second inputs are `latest` */
	bool scratch;             /* their kernels use scratch memory */
	bool packs, copies;       /* dst_parts.c */
	char broken[512];         /* the first broken promise */
	unsigned graph;           /* its number in the world */

	/* its shape */
	bool tiny;          /* few entities and messages, no device: each order is likelier */
	bool plain;         /* a chain */
	bool gather;        /* a diamond whose paths end in one any-size port */
	bool cycle;         /* the first node waits for the chain's last entity: `initial_messages` */
	bool knot;          /* a cycle with too few messages: the run must end in a deadlock */
	bool inlet, outlet; /* in place of the first source; after the last entity */
	unsigned fenced;    /* the entity with the condition `fence`; none if there is no such one */
	bool fence_once;    /* it tells itself the next one; else outsiders do */
	const char *told;   /* a condition of the last entity that outsiders set, or NULL */
	uint32_t fails_at, stops_at; /* the last entity's tick that fails, or stops the run; 0: none */
	uint32_t bad_starts;         /* how many more starts of the last entity fail */

	/* what was promised, and what was seen */
	bool strict; /* nothing is dropped: every message arrives at every entity */
	unsigned entities;
	uint32_t beats;                /* messages of the first source, or pushed by the inlet in this run */
	bool failed, stopped;          /* by compute, in this run */
	bool stamps[DST_ENTITIES];     /* this source stamps what it makes */
	weir_fence fence;              /* told to the entity `fenced` last */
	weir_fence work[DST_ENTITIES]; /* the last work of entities that note it: for `dst_own_work` */
	weir_message *kept[DST_ENTITIES]; /* passed on last, and kept until the run has ended */
	weir_scheduler *scheduler;
	char text[4096]; /* for the replay */
};

/* The last number of each source that arrived by one connection. */
struct dst_seen {
	uint32_t next[DST_ENTITIES];
	bool gaps;  /* some were not read: they had fences, and no gate */
	bool again; /* the last one may come again */
};

struct dst_payload {
	uint32_t source, number;
	uint64_t mark;
};

void dst_break(struct dst *dst, const char *format, ...) WEIR_PRINTF(2, 3);

/* dst_operators.c */
weir_status dst_register(weir_registry *registry);
void dst_drop_kept(struct dst *dst);            /* drops the messages that entities kept; between runs */
void dst_use(struct dst *dst, unsigned number); /* graph `number` of a world: its operators report to `dst` */
struct dst_payload dst_payload_of(uint32_t source, uint32_t number);
weir_status dst_tell_fence(struct dst *dst, weir_entity *entity, weir_fence fence);
void dst_check(struct dst *dst, const struct dst_payload *payload, struct dst_seen *seen, const char *reader);

/* dst_parts.c */
weir_message *dst_part(weir_message *message); /* the message with the payload: a part, or itself */
weir_status dst_emit(struct dst *dst, weir_context *context, weir_message *message, const weir_fence *at);
weir_status dst_stamp(struct dst *dst, weir_context *context, uint32_t source, uint32_t number);
void dst_check_stamp(struct dst *dst, const weir_message *message, const char *reader);
weir_status dst_copy(weir_context *context, weir_stream *stream, const weir_message *message,
		     weir_message **out);

/* dst_streams.c: the stream of this tick, by that way; its messages carry it. NULL: see weir_last_error(). */
weir_stream *dst_stream(struct dst *dst, weir_context *context, unsigned way);

/* dst_graph.c: draws the shape and the graph. */
weir_status dst_graph(struct dst *dst, weir_registry *registry, weir_graph **out);

/* dst_world.c: true if every promise held. A broken world may
 * hang, so it is abandoned and its memory leaks. */
struct dst_report {
	uint64_t hash, switches;
	char broken[512], text[8192];
};
extern bool dst_signals_lost; /* each may be, and flags are those of `auto` */
bool dst_world(uint64_t seed, struct dst_report *report);

#endif
