/*
 * How long messages were on the way, by the clocks of both sides: the offset of these is in it. A sample of
 * all of them, each of which is as likely to be in it, gives the percentiles.
 */
#ifndef REMOTE_WAY_H
#define REMOTE_WAY_H

#include <stdint.h>

enum { WAY_SAMPLE = 1024 };

struct way {
	uint64_t count, drawn; /* drawn: the state of the numbers that choose */
	int64_t least, most;
	int64_t sample[WAY_SAMPLE];
};

void way_add(struct way *way, int64_t ns);
/* The nearest of the sample; 0 of none. Sorts it: nothing may be added any more. */
int64_t way_percentile(struct way *way, unsigned percent);

#endif
