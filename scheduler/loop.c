/* The loop's descriptors, and the one door to libevent. */
#include "scheduler/loop.h"

#include <errno.h>
#include <event2/event.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/sim.h"
#include "base/status.h"

#define KICKED 1u	/* of `kicked` */
#define WRITES 2u

static weir_status add(struct wr_loop *loop, int fd, const char *what)
{
	struct epoll_event event = {.events = fd == loop->signals ? 0 : EPOLLIN};

	if (fd < 0 || epoll_ctl(loop->set, EPOLL_CTL_ADD, fd, &event))
		return wr_fail(WEIR_E_IO, "the loop's %s: %s", what, strerror(errno));
	return WEIR_OK;
}

/* Its address names the thread; a fiber's stamp would not do: masks are the thread's. */
static _Thread_local char this_thread;

static int open_signals(struct wr_loop *loop)
{
	sigset_t set, before;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	loop->unblocked = set;
	/* weir's threads block all; the caller's other threads must, too (weir.h). */
	pthread_sigmask(SIG_BLOCK, &set, &before);
	if (sigismember(&before, SIGINT))
		sigdelset(&loop->unblocked, SIGINT);
	if (sigismember(&before, SIGTERM))
		sigdelset(&loop->unblocked, SIGTERM);
	loop->blocked_by = &this_thread;
	return signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
}

void wr_loop_init(struct wr_loop *loop)
{
	*loop = (struct wr_loop){.set = -1, .wake = -1, .timer = -1, .signals = -1};
}

weir_status wr_loop_open(struct wr_loop *loop, bool simulated, bool handle_signals)
{
	weir_status status = WEIR_OK;

	loop->simulated = simulated;
	if (handle_signals)
		loop->signals = open_signals(loop);
	if (simulated)
		return WEIR_OK;
	loop->set = epoll_create1(EPOLL_CLOEXEC);
	if (loop->set < 0)
		return wr_fail(WEIR_E_IO, "the loop's epoll set: %s", strerror(errno));
	loop->wake = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	status = add(loop, loop->wake, "eventfd");
	if (!status) {
		loop->timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
		status = add(loop, loop->timer, "timerfd");
	}
	if (!status && handle_signals)
		status = add(loop, loop->signals, "signalfd");
	return status;
}

static void close_one(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/*
 * From now on everybody finds it kicked already; those who did not are awaited: their descriptor must not be
 * another's by then.
 */
static void silence(struct wr_loop *loop)
{
	wr_fetch_or(&loop->kicked, KICKED);
	while (!loop->simulated && wr_load(&loop->kicked) != KICKED)
		wr_thread_yield();
}

void wr_loop_close(struct wr_loop *loop)
{
	wr_loop_unwatch(loop);
	silence(loop);
	if (loop->blocked_by == &this_thread)
		pthread_sigmask(SIG_UNBLOCK, &loop->unblocked, NULL);
	loop->blocked_by = NULL;
	close_one(&loop->signals);
	close_one(&loop->timer);
	close_one(&loop->wake);
	close_one(&loop->set);
}

void wr_loop_kick(struct wr_loop *loop)
{
	uint32_t before = wr_load(&loop->kicked);
	uint64_t one = 1;

	if (loop->simulated && !wr_sim_current())
		return;		/* from outside its world: the simulated loop looks by itself (run.c) */
	/* A read-modify-write in either case: who clears it afterwards sees what the kick is about. */
	while (!wr_cas(&loop->kicked, &before, before & KICKED ? before : before + KICKED + WRITES))
		;
	if (before & KICKED)
		return;		/* somebody's kick is not seen yet, and whoever sees it looks at everything */
	int kept = errno;	/* signal handlers kick, too */
	if (loop->simulated)
		wr_unpark(&loop->parker);
	else
		while (write(loop->wake, &one, sizeof one) < 0 && errno == EINTR)
			;	/* EAGAIN: the counter is full, so it is readable (F43) */
	errno = kept;
	wr_fetch_sub(&loop->kicked, WRITES);
}

void wr_loop_clear(struct wr_loop *loop)
{
	uint64_t count;

	if (!loop->simulated) {
		while (read(loop->wake, &count, sizeof count) < 0 && errno == EINTR)
			;
		while (read(loop->timer, &count, sizeof count) < 0 && errno == EINTR)
			;
	}
	wr_store(&loop->until, INT64_MIN);	/* awake: a timer that is listed need not kick */
	wr_fetch_and(&loop->kicked, ~KICKED);
}

void wr_loop_arm(struct wr_loop *loop, int64_t until)
{
	struct itimerspec spec = {{0, 0}, {0, 0}};

	wr_store(&loop->until, until);
	if (loop->simulated)
		return;
	if (until != INT64_MAX) {
		until = until > 0 ? until : 1;	/* a zero would disarm */
		spec.it_value.tv_sec = until / 1000000000;
		spec.it_value.tv_nsec = until % 1000000000;
	}
	timerfd_settime(loop->timer, TFD_TIMER_ABSTIME, &spec, NULL);
}

void wr_loop_wait(struct wr_loop *loop)
{
	struct pollfd fd = {.fd = loop->set, .events = POLLIN};

	if (loop->simulated)
		wr_park(&loop->parker, wr_load(&loop->until));
	else
		poll(&fd, 1, -1);	/* EINTR: the caller looks, and comes back */
}

void wr_loop_listen(struct wr_loop *loop, bool on)
{
	struct epoll_event event = {.events = on ? EPOLLIN : 0};

	if (loop->signals < 0 || loop->set < 0 || loop->listening == on)
		return;
	loop->listening = on;
	epoll_ctl(loop->set, EPOLL_CTL_MOD, loop->signals, &event);
}

int wr_loop_signal(struct wr_loop *loop)
{
	struct signalfd_siginfo info;

	if (loop->signals < 0 || read(loop->signals, &info, sizeof info) != sizeof info)
		return 0;
	return (int)info.ssi_signo;
}

/* --- libevent: a caller's base --- */

struct watch {
	void (*fn)(void *arg);
	void *arg;
	struct event *event;
};

static void on_readable(evutil_socket_t fd, short what, void *arg)
{
	struct watch *watch = arg;

	(void)fd;
	(void)what;
	watch->fn(watch->arg);
}

static weir_status refused(void)
{
	return wr_fail(WEIR_E_IO, "libevent refused the loop's descriptor");
}

weir_status wr_loop_watch(struct wr_loop *loop, void *event_base, void (*fn)(void *arg), void *arg)
{
	struct watch *watch = wr_alloc(1, sizeof *watch);

	if (!watch)
		return WEIR_E_NOMEM;
	*watch = (struct watch){.fn = fn, .arg = arg};
	watch->event = event_new(event_base, loop->set, EV_READ | EV_PERSIST, on_readable, watch);
	if (!watch->event) {
		wr_free(watch);
		return refused();
	}
	loop->event = watch;
	return WEIR_OK;
}

weir_status wr_loop_activate(struct wr_loop *loop, bool on)
{
	struct watch *watch = loop->event;

	if (!watch)
		return WEIR_OK;
	if (!on)
		event_del(watch->event);
	else if (event_add(watch->event, NULL))
		return refused();
	return WEIR_OK;
}

void wr_loop_unwatch(struct wr_loop *loop)
{
	struct watch *watch = loop->event;

	if (!watch)
		return;
	event_free(watch->event);
	wr_free(watch);
	loop->event = NULL;
}
