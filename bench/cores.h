/* What bench/cores shares: graphs as plain data, which both schedulers build; a compute of a known length;
 * runs. */
#ifndef BENCH_CORES_H
#define BENCH_CORES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- graphs (cores_shape.c) --- */

enum { CORES_INPUTS_MOST = 2, CORES_NO_SOURCE = -1 };

/* A tick takes one message of each input (one of any connection, if an input has several). */
struct cores_node {
	unsigned inputs; /* 0: a source */
	bool emits, works;
	long source;    /* of a sink: the node whose messages it takes; else CORES_NO_SOURCE */
	uint64_t share; /* of a sink: messages for each one of its source */
};

struct cores_edge {
	size_t from, to;
	unsigned input;
};

struct cores_shape {
	char name[32];
	size_t nodes, edges;
	struct cores_node *node;
	struct cores_edge *edge;
	unsigned capacity; /* of a queue */
	uint64_t bound;    /* messages between a source and its sink: the sum of the capacities of a path */
	bool cyclic;       /* each connection has an initial message, and a count ends the run */
};

/* A chain has 8 nodes, all of which work. */
struct cores_shape cores_chains(size_t count);
/* 1 -> width -> 1; the ends do no work. */
struct cores_shape cores_fan(size_t width);
/* `depth` layers of `width` nodes, each of which feeds one or two of the next layer. */
struct cores_shape cores_layers(size_t depth, size_t width);
/* Each node takes a message of either neighbour; its own step before is over, since ticks of one do not
 * overlap. */
struct cores_shape cores_ring(size_t width);
void cores_shape_free(struct cores_shape *shape);

/* --- computes (cores_work.c) --- */

/* What each compute of the next run does. */
extern uint64_t cores_iterations;
void cores_work(uint64_t iterations);
/* Returns ns per iteration while so many threads work at once. */
double cores_work_ns(unsigned threads);

/* --- runs (cores_weir.c, cores_tbb.cpp) --- */

struct cores_run {
	int64_t wall, cpu; /* ns, of the whole process */
	uint64_t ticks;
};

/* In ns, of all threads of the process. */
int64_t cores_cpu(void);

struct cores_weir;
/* messages: of each source in a run; of a cyclic graph, the ticks of each node. Ends the program if it fails.
 */
struct cores_weir *cores_weir_open(const struct cores_shape *shape, unsigned workers, uint64_t messages,
				   bool observe);
struct cores_run cores_weir_run(struct cores_weir *self, uint64_t messages);
/* Of the last run, by all workers together. */
void cores_weir_moves(struct cores_weir *self, uint64_t *wakes, uint64_t *steals);
void cores_weir_close(struct cores_weir *self);

/* The same in oneTBB, of a graph without a cycle. Returns NULL if memory ran out. */
void *cores_tbb_open(const struct cores_shape *shape);
struct cores_run cores_tbb_run(void *graph, unsigned threads, uint64_t messages);
void cores_tbb_close(void *graph);

#ifdef __cplusplus
}
#endif

#endif
