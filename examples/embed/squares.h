/*
 * What both programs share: a graph with one entity of an operator of their own (int64 in, its square out),
 * numbers pushed in through an inlet and squares taken out of an outlet. All of it is called by one thread,
 * which never waits.
 */
#ifndef SQUARES_H
#define SQUARES_H

#include <weir.h>

/* int64 in, its square out. */
extern const weir_operator square;

struct squares {
	weir_registry *registry;
	weir_graph *graph;
	weir_scheduler *scheduler;
	weir_inlet *in;
	weir_outlet *out;
	int64_t count;		/* numbers 0 ... count - 1 go in */
	int64_t pushed, taken;
	int64_t wrong;		/* squares that were not what they should be */
};

/* Makes all of it and starts the run. Fails: as weir says; close it in any case. */
weir_status squares_open(struct squares *self, int64_t count, const weir_scheduler_options *options);
/* Takes what is there and pushes what there is room for. False: there is nothing more to come. */
bool squares_step(struct squares *self);
/*
 * Waits for the end, tells what came of it on stdout or stderr, destroys everything. Returns the program's
 * exit code.
 */
int squares_close(struct squares *self, weir_status status);

#endif
