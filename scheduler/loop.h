/*
 * What the loop thread waits on: kicks from any thread, one deadline, SIGINT and SIGTERM. All of it is behind
 * one descriptor (an epoll set of an eventfd, a timerfd and a signalfd), so the three ways of embedding (B1)
 * are one: weir's own thread waits on it, a caller polls it, or a caller's libevent base watches it. On a
 * fiber there is no descriptor: a parker and virtual time.
 */
#ifndef WR_SCHEDULER_LOOP_H
#define WR_SCHEDULER_LOOP_H

#include <signal.h>

#include "base/thread.h"

struct wr_loop {
	int set, wake, timer, signals;	/* descriptors, -1 = none */
	bool simulated, listening;
	struct wr_parker parker;
	_Atomic uint32_t kicked;	/* bit 0: kicked; above: how many are about to write to `wake` */
	_Atomic int64_t until;		/* when the waiter wakes by itself; INT64_MIN while it is awake */
	void *event;			/* struct event of the caller's base */
	const void *blocked_by;		/* the thread in which SIGINT and SIGTERM were blocked; NULL: none */
	sigset_t unblocked;		/* those of the two that were not blocked there before */
};

void wr_loop_init(struct wr_loop *loop);		/* nothing is open; kicks and closing are fine */
weir_status wr_loop_open(struct wr_loop *loop, bool simulated, bool handle_signals);
/*
 * A half-opened one is fine. Kicks that come later are fine, too, as long as the memory stays: they write
 * nowhere.
 */
void wr_loop_close(struct wr_loop *loop);
void wr_loop_kick(struct wr_loop *loop);		/* any thread, the device's, and signal handlers */
/* Sets the deadline; the caller looks at its lists after it (loop.until). */
void wr_loop_arm(struct wr_loop *loop, int64_t until);
void wr_loop_wait(struct wr_loop *loop);		/* until a kick, the deadline or a POSIX signal */
/* Forgets kicks that were seen: before the caller looks at its lists. */
void wr_loop_clear(struct wr_loop *loop);
/*
 * Does a pending SIGINT or SIGTERM end the wait? At first not: while nobody takes it, it would end every wait
 * at once.
 */
void wr_loop_listen(struct wr_loop *loop, bool on);
int wr_loop_signal(struct wr_loop *loop);		/* the next pending SIGINT or SIGTERM, or 0 */
/*
 * Makes the event that calls fn(arg) on the base's thread whenever there is something. Nothing is in the base
 * yet: it is held open while a run is on, and not longer. Fails: WEIR_E_IO.
 */
weir_status wr_loop_watch(struct wr_loop *loop, void *event_base, void (*fn)(void *arg), void *arg);
/* Into the base, out of it; nothing without one. Thread: the base's. Fails: WEIR_E_IO. */
weir_status wr_loop_hold(struct wr_loop *loop, bool on);
void wr_loop_unwatch(struct wr_loop *loop);

#endif
