/* "Did you mean": the nearest of some names; or, where none is near, all of them. */
#ifndef WR_GRAPHS_PLAN_NEAREST_H
#define WR_GRAPHS_PLAN_NEAREST_H

#include "graphs/plan/text.h"

struct wr_nearest {
	const char *wanted, *best; /* best: NULL while none is near */
	unsigned distance;
	size_t seen;
};

void wr_nearest_try(struct wr_nearest *nearest, const char *candidate); /* NULL is none */
/* " (did you mean 'blur'?)" or ""; of a word of Holoscan's what it is called here, or that there is no such thing. */
struct wr_shown wr_nearest_hint(const struct wr_nearest *nearest);

/* What there is instead: "key" lists " (keys: type, device)", cut when there are many, or " (it has no
 * keys)". */
struct wr_offer {
	const char *what;
	char text[240];
	size_t length;
};

void wr_offer_add(struct wr_offer *offer, const char *name);
/* The nearest alone, where there is one. To be asked once. */
const char *wr_offer_hint(struct wr_offer *offer, const struct wr_nearest *nearest);

#endif
