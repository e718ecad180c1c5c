#include "base/clock.h"

#include <time.h>

#include "base/fiber.h"

int64_t wr_now(void)
{
	struct wr_fiber *fiber = wr_fiber_here();
	struct timespec now;

	if (fiber)
		return wr_world()->now(fiber);
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

int64_t wr_time_add(int64_t at, int64_t ns)
{
	if (ns > 0 && at > INT64_MAX - ns)
		return INT64_MAX;
	if (ns < 0 && at < INT64_MIN - ns)
		return INT64_MIN;
	return at + ns;
}
