#include "streams/estimate.h"

#define US INT64_C(1000)

static int64_t clamp(int64_t value, int64_t least, int64_t most)
{
	return value < least ? least : value > most ? most : value;
}

void wr_estimate_learn(struct wr_estimate *estimate, int64_t sample)
{
	int64_t error;

	sample = clamp(sample, 0, WR_ESTIMATE_MOST);
	if (!estimate->known) {
		*estimate = (struct wr_estimate){.mean = sample, .deviation = sample / 4, .known = true};
		return;
	}
	error = sample - estimate->mean;
	estimate->mean = clamp(estimate->mean + error / 8, 0, WR_ESTIMATE_MOST);
	estimate->deviation += ((error < 0 ? -error : error) - estimate->deviation) / 4;
}

void wr_estimate_learn_between(struct wr_estimate *estimate, int64_t least, int64_t most)
{
	wr_estimate_learn(estimate,
			  estimate->known ? clamp(estimate->mean, least, most) : least + (most - least) / 2);
}

int64_t wr_estimate_early(const struct wr_estimate *estimate)
{
	return clamp(estimate->mean - 2 * estimate->deviation, estimate->mean / 2, WR_ESTIMATE_MOST);
}

int64_t wr_estimate_late(const struct wr_estimate *estimate)
{
	return clamp(estimate->mean + 2 * estimate->deviation, 0, WR_ESTIMATE_MOST);
}

/* --- when to check --- */

#define MIN_SLEEP (20 * US)  /* shorter sleeps are not worth it */
#define SPIN      (100 * US) /* longest window to spin through, or */
#define SPIN_PART 16         /* this fraction of the mean, if longer */
#define CHECKS    16         /* spread over a window too long to spin through */

static int64_t larger_of(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

/* Backs off in proportion to the time waited so far. */
static int64_t backed_off(int64_t since, int64_t now)
{
	return now + clamp((now - since) / CHECKS, 5 * US, 1000 * US);
}

/*
 * Sleeps until completion becomes likely; then spins if the window is short,
 * else checks at intervals; after the window it backs off.
 */
static int64_t next_by_estimate(const struct wr_waiting *wait, int64_t now, int64_t margin)
{
	int64_t begin = wait->since + wait->early, end = wait->since + wait->late, window = end - begin;
	bool short_enough = window <= larger_of(SPIN, wait->mean / SPIN_PART);

	if (begin - now > margin + MIN_SLEEP)
		return begin - margin;
	if (now > end + 50 * US)
		return backed_off(wait->since, now);
	return short_enough ? now : now + clamp(window / CHECKS, MIN_SLEEP, 1000 * US);
}

int64_t wr_wait_next(const struct wr_waiting *wait, int64_t now, bool spins, int64_t margin)
{
	if (!spins)
		return backed_off(wait->asked, now);
	if (!wait->known)
		return now - wait->asked <= 50 * US ? now : backed_off(wait->asked, now);
	return next_by_estimate(wait, now, margin);
}
