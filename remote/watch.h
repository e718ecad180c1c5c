/*
 * The one descriptor that an entity sleeps on (R4): a set of its link's and of a timer. Times are real, also
 * on `sim`: the other process has no other.
 */
#ifndef REMOTE_WATCH_H
#define REMOTE_WATCH_H

#include <stdbool.h>
#include <stdint.h>

struct watch {
	int set, timer;
	bool timing; /* the timer was set, and has not fired */
	int64_t due; /* it does not fire before, ns */
};

/* On failure errno says why, and nothing is left open. The link adds what it has to `set`. */
bool watch_open(struct watch *watch);
/* The timer fires in so many ns, once; 0: it is off. */
void watch_time(struct watch *watch, int64_t ns);
/* The same of a timer (timerfd_create) of the caller's. */
void watch_timer(int timer, int64_t ns);
/* Whether the timer has fired since the last call. */
bool watch_timed(struct watch *watch);
/* Of one that is zeroed, nothing. */
void watch_close(struct watch *watch);
/* ns of CLOCK_MONOTONIC. */
int64_t watch_now(void);

#endif
