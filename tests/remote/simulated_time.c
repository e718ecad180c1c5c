/* The system's timers, its clock and its random numbers in a world; outside of one they are what they are. */
#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "sim/simulation.h"
#include "simulated.h"

enum { TIMERS = 16 };

static struct {
	struct {
		int descriptor; /* 0: free */
		int64_t due;    /* INT64_MAX: it is off */
	} timers[TIMERS];
	struct wr_random random;
} times;

int __real_timerfd_create(int clock, int flags);
int __real_timerfd_settime(int timer, int flags, const struct itimerspec *when, struct itimerspec *before);
int __real_clock_gettime(clockid_t clock, struct timespec *out);
ssize_t __real_getrandom(void *out, size_t bytes, unsigned flags);
int __real_close(int descriptor);
int __wrap_timerfd_create(int clock, int flags);
int __wrap_timerfd_settime(int timer, int flags, const struct itimerspec *when, struct itimerspec *before);
int __wrap_clock_gettime(clockid_t clock, struct timespec *out);
ssize_t __wrap_getrandom(void *out, size_t bytes, unsigned flags);
int __wrap_close(int descriptor);

void simulated_time_begin(uint64_t seed)
{
	memset(&times, 0, sizeof times);
	wr_random_seed(&times.random, seed, 61);
}

int64_t simulated_time_next(void)
{
	int64_t next = INT64_MAX;

	for (unsigned i = 0; i < TIMERS; i++)
		if (times.timers[i].descriptor && times.timers[i].due < next)
			next = times.timers[i].due;
	return next;
}

void simulated_time_fire(int64_t now)
{
	for (unsigned i = 0; i < TIMERS; i++) {
		if (!times.timers[i].descriptor || times.timers[i].due > now)
			continue;
		times.timers[i].due = INT64_MAX;
		eventfd_write(times.timers[i].descriptor, 1);
	}
}

int __wrap_timerfd_create(int clock, int flags)
{
	int descriptor;

	if (!wr_sim_current())
		return __real_timerfd_create(clock, flags);
	descriptor = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	for (unsigned i = 0; i < TIMERS && descriptor >= 0; i++) {
		if (times.timers[i].descriptor)
			continue;
		times.timers[i].descriptor = descriptor;
		times.timers[i].due = INT64_MAX;
		return descriptor;
	}
	errno = EMFILE;
	return -1;
}

/* To set a timer takes back what it has told. */
int __wrap_timerfd_settime(int timer, int flags, const struct itimerspec *when, struct itimerspec *before)
{
	int64_t ns = when->it_value.tv_sec * INT64_C(1000000000) + when->it_value.tv_nsec;
	eventfd_t told;

	for (unsigned i = 0; i < TIMERS; i++) {
		if (!timer || times.timers[i].descriptor != timer)
			continue;
		eventfd_read(timer, &told);
		times.timers[i].due = ns ? wr_time_add(wr_now(), ns) : INT64_MAX;
		simulated_wake();
		return 0;
	}
	return __real_timerfd_settime(timer, flags, when, before);
}

int __wrap_close(int descriptor)
{
	for (unsigned i = 0; i < TIMERS; i++)
		if (descriptor && times.timers[i].descriptor == descriptor)
			times.timers[i].descriptor = 0;
	return __real_close(descriptor);
}

int __wrap_clock_gettime(clockid_t clock, struct timespec *out)
{
	struct wr_sim *sim = wr_sim_current();

	if (!sim)
		return __real_clock_gettime(clock, out);
	out->tv_sec = wr_sim_now(sim) / 1000000000;
	out->tv_nsec = wr_sim_now(sim) % 1000000000;
	return 0;
}

ssize_t __wrap_getrandom(void *out, size_t bytes, unsigned flags)
{
	uint64_t value;

	if (!wr_sim_current() || bytes != sizeof value)
		return __real_getrandom(out, bytes, flags);
	value = wr_random_next(&times.random);
	memcpy(out, &value, sizeof value);
	return sizeof value;
}
