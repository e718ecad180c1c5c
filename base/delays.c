#include "base/delays.h"

#include <errno.h>
#include <sched.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#include "base/fiber.h"

enum { SLEEP_IN = 8, SLEEP_NS = 100000 }; /* one delay of so many is a sleep, the others yield */

static uint64_t random_next(void)
{
	static _Thread_local uint64_t state;

	if (!state) {
		const char *seed = getenv("WEIR_DELAYS_SEED");

		state = (wr_thread_self() ^ (seed ? strtoull(seed, NULL, 0) : 1)) | 1;
	}
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state * 0x2545f4914f6cdd1du >> 32;
}

void wr_delays_here(unsigned in)
{
	uint64_t r = wr_fiber_here() ? 1 : random_next();
	int error = errno;

	if (r % in)
		return;
	if (r / in % SLEEP_IN)
		sched_yield();
	else
		nanosleep(&(struct timespec){.tv_nsec = (long)(random_next() % SLEEP_NS)}, NULL);
	errno = error;
}
