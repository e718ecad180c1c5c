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

#include "program.h"
#include "watchdog.h"

#define MS INT64_C(1000000)

static struct {
	const char *program;
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
		int64_t at = now();
		if (at > watchdog.part_until || at > watchdog.point_until) {
			fprintf(stderr, "%s: part %s hangs%s%s\n", watchdog.program, watchdog.part,
				*watchdog.point ? " at: " : "", watchdog.point);
			_exit(3);
		}
		pthread_mutex_unlock(&watchdog.lock);
	}
	return NULL;
}

void watchdog_begin(const char *program)
{
	pthread_t thread;

	watchdog.program = program;
	if (pthread_create(&thread, NULL, watch, NULL)) {
		fprintf(stderr, "%s: no thread for the watchdog\n", program);
		exit(1);
	}
	pthread_detach(thread);
}

void watchdog_part(const char *part, double seconds)
{
	pthread_mutex_lock(&watchdog.lock);
	snprintf(watchdog.part, sizeof watchdog.part, "%s", part);
	*watchdog.point = '\0';
	watchdog.part_until = now() + (int64_t)(seconds * 1e9);
	watchdog.point_until = INT64_MAX;
	pthread_mutex_unlock(&watchdog.lock);
}

void watchdog_point(double seconds, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	pthread_mutex_lock(&watchdog.lock);
	vsnprintf(watchdog.point, sizeof watchdog.point, format, arguments);
	watchdog.point_until = now() + (int64_t)(seconds * 1e9);
	pthread_mutex_unlock(&watchdog.lock);
	va_end(arguments);
}
