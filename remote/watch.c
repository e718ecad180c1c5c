#include "remote/watch.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

static bool add(struct watch *watch, int descriptor)
{
	struct epoll_event event = {.events = EPOLLIN};

	return descriptor >= 0 && !epoll_ctl(watch->set, EPOLL_CTL_ADD, descriptor, &event);
}

bool watch_open(struct watch *watch)
{
	int error;

	watch->set = epoll_create1(EPOLL_CLOEXEC);
	watch->timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	if (watch->set >= 0 && add(watch, watch->timer))
		return true;
	error = errno;
	watch_close(watch);
	errno = error;
	return false;
}

void watch_timer(int timer, int64_t ns)
{
	const struct itimerspec when = {
		.it_value = {.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000},
	};

	timerfd_settime(timer, 0, &when, NULL);
}

void watch_time(struct watch *watch, int64_t ns)
{
	watch->due = watch_now() + ns;
	watch_timer(watch->timer, ns);
	watch->timing = ns > 0;
}

bool watch_timed(struct watch *watch)
{
	uint64_t times;
	bool fired = watch->timing && watch_now() >= watch->due &&
		     read(watch->timer, &times, sizeof times) == sizeof times;

	watch->timing &= !fired;
	return fired;
}

void watch_close(struct watch *watch)
{
	int *all[] = {&watch->set, &watch->timer};

	for (unsigned i = 0; i < sizeof all / sizeof all[0]; i++) {
		if (*all[i] > 0)
			close(*all[i]);
		*all[i] = 0;
	}
	watch->timing = false;
}

int64_t watch_now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}
