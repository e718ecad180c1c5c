/*
 * The rig of single reviews: an entity x between senders and receivers, in a graph that does not run. A test
 * writes numbers into its queues and asks its conditions, or the scheduler, which need not ask them.
 */
#ifndef TESTS_SCHEDULER_ASK_RIG_H
#define TESTS_SCHEDULER_ASK_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "scheduler/entity.h"

enum { MANY = 9, MOST = 10 };

/* Entities src0.. -> x -> end0..; take 0: all. */
struct shape {
	const char *kind; /* of x: one, any */
	unsigned senders, receivers;
	unsigned capacity, take;
	const char *policy;
	unsigned room, emits; /* room: capacity of the receivers */
	const char *receivers_policy, *conditions;
};

struct world {
	struct shape shape;
	weir_registry *registry;
	weir_graph *graph;
	weir_scheduler *scheduler; /* NULL: no device */
	weir_entity *x;
};

enum end { LIVE, DONE, OWNED, ENDS };

/* Of a connection: of x's input, or of its output. */
struct state {
	unsigned count;
	bool closed, stale; /* stale: each end remembers as little of the other one as it may */
	enum end end;
};

struct states {
	struct state inputs[MOST], outputs[MOST];
};

struct answer {
	enum wr_answer answer;
	weir_cause cause; /* of WAIT and NEVER */
};

void must(weir_status status);
void reset_graph(weir_graph *graph); /* as a start does */
/* On `host` with a device, else without a scheduler. */
struct world make_world(struct shape shape, bool device);
void destroy_world(struct world *world);

void set_states(const struct world *world, const struct states *states);
void clear_states(const struct world *world); /* before the end: the queues hold numbers and no messages */

struct answer ask(const struct world *world);                        /* a review */
struct answer ask_each(const struct world *world);                   /* all conditions one by one */
struct answer ask_kind(const struct world *world, const char *kind); /* the condition of that kind */
struct answer ask_content(const struct world *world); /* the port as one that a content condition names */
bool same(struct answer a, struct answer b);

#endif
