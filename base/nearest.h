/* "Did you mean": the nearest of some names or, if none is near, a list of them. */
#ifndef WR_BASE_NEAREST_H
#define WR_BASE_NEAREST_H

#include "base/words.h"

struct wr_nearest {
	const char *wanted, *best; /* best: NULL while none is near */
	unsigned distance;
	size_t seen;
};

void wr_nearest_try(struct wr_nearest *nearest, const char *candidate); /* NULL is ignored */
/*
 * " (did you mean 'blur'?)", or "". For a Holoscan or GXF term: the name that it has here, or why there is
 * none.
 */
struct wr_shown wr_nearest_hint(const struct wr_nearest *nearest);

/* The valid names: " (keys: type, device)", cut if there are many, or " (it has no keys)"; `what` is "key".
 */
struct wr_offer {
	const char *what;
	char text[240];
	size_t length;
};

void wr_offer_add(struct wr_offer *offer, const char *name);
/* The hint of `nearest` if it has one, else the list. Call once. */
const char *wr_offer_hint(struct wr_offer *offer, const struct wr_nearest *nearest);

#endif
