#include "remote/beat.h"

#include <sys/timerfd.h>
#include <unistd.h>

#include "remote/watch.h"

/* However often the other side wants to hear: no peer makes this one busy. */
#define NS_LEAST INT64_C(10000000)
#define SIGNS    4

bool beat_open(struct beat *beat, int64_t keepalive)
{
	*beat = (struct beat){
		.timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC),
		.keepalive = keepalive,
	};
	return beat->timer >= 0;
}

static void arm(const struct beat *beat, int64_t now)
{
	int64_t at = INT64_MAX;

	if (beat->every)
		at = beat->said + beat->every;
	if (beat->keepalive && beat->keepalive < at - beat->heard)
		at = beat->heard + beat->keepalive;
	watch_timer(beat->timer, at == INT64_MAX ? 0 : at > now ? at - now : 1);
}

void beat_begin(struct beat *beat, int64_t theirs, int64_t now)
{
	int64_t every = theirs / SIGNS;

	beat->every = theirs <= 0 ? 0 : every > NS_LEAST ? every : NS_LEAST;
	beat->heard = beat->said = now;
	arm(beat, now);
}

void beat_hear(struct beat *beat, int64_t now)
{
	beat->heard = now;
}

bool beat_look(struct beat *beat, int64_t now)
{
	bool due = beat->every && now >= beat->said + beat->every;

	if (due)
		beat->said = now;
	arm(beat, now);
	return due;
}

bool beat_is_silent(const struct beat *beat, int64_t now)
{
	return beat->keepalive && now - beat->heard >= beat->keepalive;
}

void beat_end(struct beat *beat)
{
	if (beat->timer >= 0)
		watch_timer(beat->timer, 0);
}

void beat_close(struct beat *beat)
{
	if (beat->timer >= 0)
		close(beat->timer);
	beat->timer = -1;
}
