/*
 * Shared by both programs: a graph with one entity of an operator of their own (int64 in, its square out).
 * Numbers are pushed through an inlet, squares taken from an outlet. One thread calls all of it, and never
 * blocks.
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
	int64_t count; /* numbers 0 ... count - 1 go in */
	int64_t pushed, taken;
	int64_t wrong; /* squares that were wrong */
};

/* Builds everything and starts the run. Returns weir's error on failure; call squares_close in any case. */
weir_status squares_open(struct squares *self, int64_t count, const weir_scheduler_options *options);
/*
 * Takes the results that are there and pushes while there is room. Returns false once no more results will
 * come.
 */
bool squares_step(struct squares *self);
/*
 * Waits for the end, prints the result on stdout or the error on stderr, destroys everything. Returns the
 * program's exit code.
 */
int squares_close(struct squares *self, weir_status status);

#endif
