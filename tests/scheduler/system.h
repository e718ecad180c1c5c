/*
 * A system whose fences complete when the test says so: the part of streams/ that scheduler/message.c needs.
 * Host memory is its only device.
 */
#ifndef TESTS_GRAPHS_SYSTEM_H
#define TESTS_GRAPHS_SYSTEM_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/thread.h"
#include "scheduler/message.h"

#define COUNT(array)   (sizeof(array) / sizeof(*(array)))
#define UNKNOWN_STREAM 99 /* no stream has this id */

struct wr_system {
	bool complete;                     /* of all fences */
	struct wr_deferred_free *deferred; /* the deferred-free list, newest first */
	size_t listed, allocations;        /* entries of the list; live blocks */
};

/* Makes the thread the worker `index` of that pool, until called with NULL. */
void work_for(struct wr_local *local, unsigned index, const struct wr_pool *pool);
void be_foreign(void);
/* Completes all fences from now on, and releases the entries of the list, as a worker would. */
void complete(struct wr_system *system);
/* A graph whose pool is this one. The same graph in every call. */
weir_graph *graph_of(struct wr_pool *pool);

#endif
