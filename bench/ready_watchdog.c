/*
 * A thread that ends the process with status 3, and a line that names the point, if a point takes much too
 * long.
 */
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "ready.h"

static struct {
	pthread_mutex_t lock;
	char part[64], point[128]; /* guarded by lock, like these: */
	int64_t part_until, point_until;
} watchdog = {.lock = PTHREAD_MUTEX_INITIALIZER,
	      .part = "start",
	      .part_until = INT64_MAX,
	      .point_until = INT64_MAX};

static void *watch(void *arg)
{
	const struct timespec pause = {.tv_nsec = 200 * MS};

	(void)arg;
	for (;;) {
		nanosleep(&pause, NULL);
		pthread_mutex_lock(&watchdog.lock);
		int64_t now = ready_now();
		if (now > watchdog.part_until || now > watchdog.point_until) {
			fprintf(stderr, "ready: part %s hangs%s%s\n", watchdog.part,
				*watchdog.point ? " at: " : "", watchdog.point);
			_exit(3);
		}
		pthread_mutex_unlock(&watchdog.lock);
	}
	return NULL;
}

void ready_watchdog_begin(void)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, watch, NULL))
		ready_fail("a thread", 0);
	pthread_detach(thread);
}

void ready_watch_part(const char *part, double seconds)
{
	pthread_mutex_lock(&watchdog.lock);
	snprintf(watchdog.part, sizeof watchdog.part, "%s", part);
	*watchdog.point = '\0';
	watchdog.part_until = ready_now() + (int64_t)(seconds * 1e9);
	watchdog.point_until = INT64_MAX;
	pthread_mutex_unlock(&watchdog.lock);
}

void ready_watch(double seconds, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	pthread_mutex_lock(&watchdog.lock);
	vsnprintf(watchdog.point, sizeof watchdog.point, format, arguments);
	watchdog.point_until = ready_now() + (int64_t)(seconds * 1e9);
	pthread_mutex_unlock(&watchdog.lock);
	va_end(arguments);
}
