/*
 * How long something takes, learned from how long it took: a smoothed mean and mean deviation, as TCP keeps
 * them of round trips (RFC 6298). And when to look whether it is done, for a poller that shall neither be
 * late nor burn a core. Pure functions.
 */
#ifndef WR_STREAMS_ESTIMATE_H
#define WR_STREAMS_ESTIMATE_H

#include <stdbool.h>
#include <stdint.h>

#define WR_ESTIMATE_MOST INT64_C(10000000000)	/* samples are bounded to [0, 10 s] */

struct wr_estimate {
	int64_t mean, deviation;
	bool known;
};

void wr_estimate_learn(struct wr_estimate *estimate, int64_t sample);
/* The sample is not known better than this: what was expected is believed as far as it can be. */
void wr_estimate_learn_between(struct wr_estimate *estimate, int64_t least, int64_t most);
/* Hardly ever done before: mean - 2 deviations, at least half the mean. */
int64_t wr_estimate_early(const struct wr_estimate *estimate);
/* Hardly ever done after: mean + 2 deviations. */
int64_t wr_estimate_late(const struct wr_estimate *estimate);

/* Somebody who waits. */
struct wr_waiting {
	int64_t since;			/* when what he waits for began */
	int64_t asked;			/* when he began to wait */
	bool known;			/* whether the two below are */
	int64_t early, mean, late;	/* how long it takes, as learned */
};

/*
 * When to look again at what was not done at `now`: `now` is at once. spins: looking all the time is worth it
 * when the end is near. margin: how late a sleep may end.
 */
int64_t wr_wait_next(const struct wr_waiting *wait, int64_t now, bool spins, int64_t margin);

#endif
