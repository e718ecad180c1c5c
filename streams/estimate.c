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
		*estimate = (struct wr_estimate){.mean = sample, .deviation = sample / 2, .known = true};
		return;
	}
	error = sample - estimate->mean;
	estimate->mean = clamp(estimate->mean + error / 8, 0, WR_ESTIMATE_MOST);
	estimate->deviation += ((error < 0 ? -error : error) - estimate->deviation) / 4;
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

/* So that looking costs little against what was waited already. */
static int64_t later(int64_t since, int64_t now)
{
	return now + clamp((now - since) / 8, 5 * US, 1000 * US);
}

static int64_t larger(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

int64_t wr_wait_next(const struct wr_waiting *wait, int64_t now, bool spins, int64_t margin)
{
	if (!spins)
		return later(wait->asked, now);
	if (!wait->known)
		return now - wait->asked <= 50 * US ? now : later(wait->asked, now);
	if (wait->since + wait->early - now > margin + 20 * US)
		return wait->since + wait->early - margin;
	if (now <= wait->since + wait->mean + larger(50 * US, wait->mean / 8))
		return now;
	return later(wait->since, now);
}
