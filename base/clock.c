#include "base/clock.h"

#include <sys/resource.h>
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

static int64_t ns_of(struct timeval time)
{
	return (int64_t)time.tv_sec * 1000000000 + (int64_t)time.tv_usec * 1000;
}

struct wr_thread_use wr_thread_use(void)
{
	struct rusage used;

	if (wr_fiber_here() || getrusage(RUSAGE_THREAD, &used))
		return (struct wr_thread_use){0};
	return (struct wr_thread_use){ns_of(used.ru_utime) + ns_of(used.ru_stime), (uint64_t)used.ru_nvcsw};
}

int64_t wr_time_add(int64_t at, int64_t ns)
{
	if (ns > 0 && at > INT64_MAX - ns)
		return INT64_MAX;
	if (ns < 0 && at < INT64_MIN - ns)
		return INT64_MIN;
	return at + ns;
}
