/*
 * What the loop thread waits on: kicks from any thread, one deadline, SIGINT and SIGTERM, and descriptors of
 * the program. All of it is behind one descriptor: an epoll set of an eventfd, a timerfd, a signalfd and
 * those. Weir's own thread or the caller polls that descriptor, or the caller's libevent base watches it
 * (B1). A simulated loop has no descriptor: it waits on a parker, in virtual time.
 *
 * The deadline and the POSIX signals are in the set, not events of the base: libevent has no descriptor that
 * a caller could poll, and its handling of POSIX signals is global to the process, with one base at a time.
 */
#ifndef WR_SCHEDULER_LOOP_H
#define WR_SCHEDULER_LOOP_H

#include <signal.h>

#include "base/thread.h"

struct wr_loop {
	int set, wake, timer, signals; /* descriptors, -1 = none */
	bool simulated, listening;
	struct wr_parker parker;
	_Atomic uint32_t kicked; /* bit 0: kicked; above: number of threads about to write to `wake` */
	int64_t timer_at;        /* when the timer ends; INT64_MAX: it is off. Under timers_lock */
	_Atomic int64_t until;   /* end of the wait; INT64_MIN while the loop thread is awake (timers.c) */
	struct event *event;     /* of `set`, in the caller's libevent base; NULL: none */
	void (*turn)(void *arg); /* called on the loop's thread when there is something to do */
	void *turn_arg;
	bool broken;            /* loop thread: wr_loop_break() was called */
	const void *blocked_by; /* the thread that blocked SIGINT and SIGTERM; NULL: none */
	sigset_t unblocked;     /* those of the two that this thread had not blocked before */
};

void wr_loop_init(struct wr_loop *loop); /* opens nothing; then kick and close may be called */
weir_status wr_loop_open(struct wr_loop *loop, bool simulated, bool handle_signals); /* Fails: WEIR_E_IO */
/* Takes a half-opened loop. Later kicks do nothing, as long as the memory of the loop stays. */
void wr_loop_close(struct wr_loop *loop);
void wr_loop_kick(struct wr_loop *loop); /* Thread: any; device callbacks, signal handlers */
/* Sets the timerfd, unless it is set so. A simulated loop has none and waits until `until`. Under
 * timers_lock. */
void wr_loop_set_timer(struct wr_loop *loop, int64_t at);
/*
 * From now on turn(arg) is called when the loop has something to do: by the caller's event_base on its
 * thread, while the loop is active, or (event_base NULL) by wr_loop_run(). Fails: WEIR_E_IO, WEIR_E_NOMEM.
 */
weir_status wr_loop_watch(struct wr_loop *loop, void *event_base, void (*turn)(void *arg), void *arg);
/*
 * Adds the event to the caller's base or removes it, since an event keeps the base's dispatch running; no
 * such base: does nothing. Thread: the base's. Fails: WEIR_E_IO.
 */
weir_status wr_loop_activate(struct wr_loop *loop, bool on);
/* Calls turn(arg) once and then whenever there is something to do, until wr_loop_break(). Thread: weir's own.
 */
void wr_loop_run(struct wr_loop *loop);
void wr_loop_break(struct wr_loop *loop); /* inside turn(arg): wr_loop_run() returns after it */

#endif
