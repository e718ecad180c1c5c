/*
 * What the clock of the other side shows, by its answers (R8). A side says when it sent a head; the other one
 * says, in the next head that it sends anyway, when that came and when it answered. Of the exchanges the one
 * with the least time there and back counts: half of that time is how far the offset may be off.
 */
#ifndef REMOTE_CLOCKS_H
#define REMOTE_CLOCKS_H

#include <stdbool.h>
#include <stdint.h>

struct clocks {
	uint64_t exchanges;
	int64_t offset, error; /* ns; offset: the other clock less this one */
};

/* asked, now: by this clock; heard, said: by the other one. What cannot be is no exchange. */
void clocks_take(struct clocks *clocks, int64_t asked, int64_t heard, int64_t said, int64_t now);

#endif
