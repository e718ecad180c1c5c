/*
 * A system of which a test decides when its fences are complete: what graphs/message.c needs of streams/,
 * and no more. Host memory is its only device.
 */
#ifndef TESTS_GRAPHS_SYSTEM_H
#define TESTS_GRAPHS_SYSTEM_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/thread.h"
#include "graphs/message.h"

#define COUNT(array) (sizeof(array) / sizeof(*(array)))
#define UNKNOWN_STREAM 99	/* no stream has this id */

struct wr_system {
	bool complete;			/* all fences are */
	struct wr_deferred_free *retired;	/* the retire list, newest first */
	size_t listed, allocations;	/* on the list now; blocks that are out */
};

/* Becomes the worker `index` of that pool until it is told NULL. */
void work_for(struct wr_local *local, unsigned index, const struct wr_pool *pool);
void be_foreign(void);
/* All fences are complete from now on: releases what is listed, as a worker would. */
void complete(struct wr_system *system);
/* The graph whose pool wr_graph_pool gives. */
weir_graph *graph_of(struct wr_pool *pool);

#endif
