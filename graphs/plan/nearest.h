/* "Did you mean": the nearest of some names. */
#ifndef WR_GRAPHS_PLAN_NEAREST_H
#define WR_GRAPHS_PLAN_NEAREST_H

#include "graphs/plan/text.h"

struct wr_nearest {
	const char *wanted, *best; /* best: NULL while none is near */
	unsigned distance;
	size_t seen;
};

void wr_nearest_try(struct wr_nearest *nearest, const char *candidate); /* NULL is none */
struct wr_shown wr_nearest_hint(const struct wr_nearest *nearest);      /* " (did you mean 'blur'?)" or "" */

#endif
