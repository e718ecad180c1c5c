/* A link that follows a script, and what one side did over it. */
#ifndef TESTS_REMOTE_SCRIPTED_LINK_H
#define TESTS_REMOTE_SCRIPTED_LINK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "any_link.h"

struct link {
	struct link_events events;
	int woken;
	bool connecting, connected, lost;
};

/* What the other side, or the way, does at one moment. Returns true if it was done. */
typedef bool step(struct link *link);

/*
 * Runs the graph, one side, over the link. A step waits until it can be done; the link wakes its entity
 * meanwhile, but for the last one, which answers. The script is done when it returns.
 */
void scripted_run(const char *json, step *const *steps);

/* Of the other side: a head, with so many bytes behind it. False: there is no connection. */
bool scripted_arrives(struct link *link, const void *head, size_t head_bytes, size_t bytes);
bool scripted_says(struct link *link, struct wire wire);

/* Of this run so far. */
extern weir_graph *graph;     /* of the test's own messages, and of the run */
extern struct wire said;      /* last, by this side */
extern uint64_t hello, first; /* the numbers of the last hello and of the first message behind it */
extern unsigned drops, data, done, largest, asked_to_end; /* largest: messages of one head */
extern bool end_awake;                                    /* the end was sent before the link was armed */
extern atomic_uint made;                                  /* by the source */
extern atomic_bool enough;                                /* it ends */
extern char told[500];                                    /* of the log: the last line */
extern unsigned lost;                                     /* messages, as the sender counts */

#endif
