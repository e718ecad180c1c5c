/*
 * Why an entity of a run waited: a walk along causes, from an entity to the root of its waits.
 *
 * Messages lead to their sender, room to the receiver whose queue was full, unfinished device work to the
 * entity whose work it is. Each is judged by what most of its own time went to, until that is nothing of
 * another entity: its compute, its period, a descriptor, the program, a pool, the workers. A walk that
 * returns to where it was has found a circle: a queue that is full in it keeps two entities apart that both
 * have time.
 */
#ifndef CLI_ROOT_H
#define CLI_ROOT_H

#include "cli/recorded.h"

struct cli_leg {
	size_t entity;
	weir_cause
		cause; /* what most of its time went to; COMPUTE, DEVICE (its own device work), WORKER, ... */
	double share;  /* how long, of the run */
	const char *on;       /* the port or pool; NULL: unknown; borrowed */
	const char *of, *why; /* of a wait: for people; borrowed */
};

enum cli_root_kind {
	CLI_ROOT_NONE,    /* nothing took most of the time */
	CLI_ROOT_OWN,     /* the last leg's cause is no other entity's */
	CLI_ROOT_DEVICE,  /* the last leg's device work */
	CLI_ROOT_STREAM,  /* likewise, on `stream`, which others use, too */
	CLI_ROOT_QUEUE,   /* `queue` is full in a circle */
	CLI_ROOT_CIRCLE,  /* a circle without such a queue */
	CLI_ROOT_PROGRAM, /* the last leg waits for the program, at an inlet or an outlet */
	CLI_ROOT_UNKNOWN, /* some device work, of which too few ticks were timed */
};

struct cli_root {
	enum cli_root_kind kind;
	struct cli_list legs; /* of struct cli_leg: each waits for the next one, the last is the root */
	const struct cli_queue *queue;
	int64_t stream;
	bool no_memory;
};

/* cli_root_finish takes what it leaves. */
void cli_root_find(struct cli_root *out, const struct cli_recorded *recorded, size_t from);
void cli_root_finish(struct cli_root *root);
const struct cli_leg *cli_root_leg(const struct cli_root *root, size_t i);
const struct cli_leg *cli_root_last(const struct cli_root *root); /* there is one */
/* Where walks begin: the main entity, else the sink that receives most, without one (a circle) the busiest
 * entity. CLI_NO_ENTITY: there is none. */
size_t cli_root_sink(const struct cli_recorded *recorded);

#endif
