/*
 * Estimates durations from samples, with a smoothed mean and mean deviation as TCP does for round trips
 * (RFC 6298), and derives when a poller should check next so that it is neither late nor burns a core. Pure
 * functions.
 */
#ifndef WR_STREAMS_ESTIMATE_H
#define WR_STREAMS_ESTIMATE_H

#include <stdbool.h>
#include <stdint.h>

#define WR_ESTIMATE_MOST INT64_C(10000000000) /* samples are clamped to [0, 10 s] */

struct wr_estimate {
	int64_t mean, deviation;
	bool known;
};

void wr_estimate_learn(struct wr_estimate *estimate, int64_t sample);
/* For a sample known only as a range: uses the value of the range that is closest to the mean. */
void wr_estimate_learn_between(struct wr_estimate *estimate, int64_t least, int64_t most);
/* Completion is unlikely before this: mean - 2 deviations, at least half the mean. */
int64_t wr_estimate_early(const struct wr_estimate *estimate);
/* Completion is unlikely after this: mean + 2 deviations. */
int64_t wr_estimate_late(const struct wr_estimate *estimate);

/* A wait for one completion. */
struct wr_waiting {
	int64_t since;             /* when the work began */
	int64_t asked;             /* when the wait began */
	bool known;                /* the estimates below are valid */
	int64_t early, mean, late; /* estimated duration of the work */
};

/*
 * Returns when to check again for work that was not complete at `now`; `now` means at once. spins: polling
 * without a pause is worth a core when completion is near. margin: by how much a sleep may overrun.
 */
int64_t wr_wait_next(const struct wr_waiting *wait, int64_t now, bool spins, int64_t margin);

#endif
