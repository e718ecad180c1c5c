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

/* --- when to look --- */

#define AT_ONCE    (20 * US)	/* no sleep is worth less */
#define SPIN       (100 * US)	/* this long a core may be burnt, or: */
#define SPIN_PART  16		/* such a part of what it takes */
#define LOOKS      16		/* in the time in which it may end, where that is too long to spin */

static int64_t larger(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

/* So that looking costs little against what was waited already. */
static int64_t later(int64_t since, int64_t now)
{
	return now + clamp((now - since) / LOOKS, 5 * US, 1000 * US);
}

/*
 * Before it can have ended: asleep. While it may end: spinning if that is
 * short, else looking now and then. After it: ever less often.
 */
static int64_t by_estimate(const struct wr_waiting *wait, int64_t now, int64_t margin)
{
	int64_t begin = wait->since + wait->early, end = wait->since + wait->late, window = end - begin;
	bool short_enough = window <= larger(SPIN, wait->mean / SPIN_PART);

	if (begin - now > margin + AT_ONCE)
		return begin - margin;
	if (now > end + 50 * US)
		return later(wait->since, now);
	return short_enough ? now : now + clamp(window / LOOKS, AT_ONCE, 1000 * US);
}

int64_t wr_wait_next(const struct wr_waiting *wait, int64_t now, bool spins, int64_t margin)
{
	if (!spins)
		return later(wait->asked, now);
	if (!wait->known)
		return now - wait->asked <= 50 * US ? now : later(wait->asked, now);
	return by_estimate(wait, now, margin);
}
