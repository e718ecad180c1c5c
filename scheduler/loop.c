/*
 * The loop's descriptors. The only file that calls libevent, and only for a base of the program's: making a
 * base ends the process if descriptors are short, by exit(1), whatever its callbacks do, and what they are is
 * the program's affair.
 */
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

#include "base/status.h"
#include "base/words.h"
#include "sim/simulation.h"

#define KICKED 1u /* bit of `kicked` */
#define WRITES 2u /* one thread about to write to `wake` */

#define REFUSED_NS 1000000 /* between two turns while the system refuses to wait */

static weir_status epoll_add(struct wr_loop *loop, int fd, const char *what)
{
	struct epoll_event event = {.events = fd == loop->signals ? 0 : EPOLLIN};

	if (fd < 0 || epoll_ctl(loop->set, EPOLL_CTL_ADD, fd, &event))
		return wr_fail(WEIR_E_IO, "the loop's %s: %s", what, wr_errno_words(errno));
	return WEIR_OK;
}

/* Its address identifies the thread. wr_thread_self() may name a fiber; signal masks are per thread. */
static _Thread_local char this_thread;

static int open_signals(struct wr_loop *loop)
{
	sigset_t set, before;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	loop->unblocked = set;
	/* weir's threads block all signals; the caller must block these two in its other threads (weir.h). */
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
		return wr_fail(WEIR_E_IO, "the loop's epoll set: %s", wr_errno_words(errno));
	loop->wake = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	status = epoll_add(loop, loop->wake, "eventfd");
	if (!status) {
		loop->timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
		status = epoll_add(loop, loop->timer, "timerfd");
	}
	if (!status && handle_signals)
		status = epoll_add(loop, loop->signals, "signalfd");
	return status;
}

static void fd_close(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/*
 * From now on every kick finds the bit set and returns. Waits for the kicks that are about to write: the
 * descriptor must not be closed, and its number reused, before they have written.
 */
static void stop_kicks(struct wr_loop *loop)
{
	wr_fetch_or(&loop->kicked, KICKED);
	while (!loop->simulated && wr_load(&loop->kicked) != KICKED)
		wr_thread_yield();
}

void wr_loop_close(struct wr_loop *loop)
{
	if (loop->event)
		event_free(loop->event);
	loop->event = NULL;
	stop_kicks(loop);
	if (loop->blocked_by == &this_thread)
		pthread_sigmask(SIG_UNBLOCK, &loop->unblocked, NULL);
	loop->blocked_by = NULL;
	fd_close(&loop->signals);
	fd_close(&loop->timer);
	fd_close(&loop->wake);
	fd_close(&loop->set);
}

void wr_loop_kick(struct wr_loop *loop)
{
	uint32_t before = wr_load(&loop->kicked);
	uint64_t one = 1;

	if (loop->simulated && !wr_sim_current())
		return; /* from outside its world: the simulated loop polls (turn.c) */
	/* A read-modify-write in either case, so that clearing the bit acquires what came before the kick. */
	while (!wr_cas(&loop->kicked, &before, before & KICKED ? before : before + KICKED + WRITES))
		;
	if (before & KICKED)
		return;    /* an earlier kick is still pending; the loop will look at everything */
	int saved = errno; /* signal handlers kick, too */
	if (loop->simulated)
		wr_unpark(&loop->parker);
	else
		while (write(loop->wake, &one, sizeof one) < 0 && errno == EINTR)
			; /* EAGAIN: the counter is full, so it is readable (F43) */
	errno = saved;
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
	wr_store(&loop->until, INT64_MIN); /* awake: a timer request need not kick */
	wr_fetch_and(&loop->kicked, ~KICKED);
}

void wr_loop_arm(struct wr_loop *loop, int64_t until)
{
	struct itimerspec spec = {{0, 0}, {0, 0}};

	wr_store(&loop->until, until);
	if (loop->simulated)
		return;
	if (until != INT64_MAX) {
		until = until > 0 ? until : 1; /* 0 would disarm the timerfd */
		spec.it_value.tv_sec = until / 1000000000;
		spec.it_value.tv_nsec = until % 1000000000;
	}
	timerfd_settime(loop->timer, TFD_TIMER_ABSTIME, &spec, NULL);
}

int wr_loop_arm_descriptor(struct wr_loop *loop, int fd, uint32_t events, void *data, bool add)
{
	struct epoll_event event = {.events = events | EPOLLONESHOT, .data.ptr = data};

	return epoll_ctl(loop->set, add ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, fd, &event) ? errno : 0;
}

void wr_loop_remove_descriptor(struct wr_loop *loop, int fd)
{
	epoll_ctl(loop->set, EPOLL_CTL_DEL, fd, NULL);
}

size_t wr_loop_reported(struct wr_loop *loop, size_t room, void **out)
{
	struct epoll_event events[64];
	int count = epoll_wait(loop->set, events, sizeof events / sizeof *events, 0);
	size_t reported = 0;

	for (int i = 0; i < count && reported < room; i++)
		if (events[i].data.ptr) /* those of the loop itself have none */
			out[reported++] = events[i].data.ptr;
	return reported;
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

/* --- the caller's libevent base --- */

static void on_readable(evutil_socket_t fd, short what, void *arg)
{
	struct wr_loop *loop = arg;

	(void)fd;
	(void)what;
	loop->turn(loop->turn_arg);
}

weir_status wr_loop_watch(struct wr_loop *loop, void *event_base, void (*turn)(void *arg), void *arg)
{
	loop->turn = turn;
	loop->turn_arg = arg;
	if (loop->simulated || !event_base)
		return WEIR_OK;
	loop->event = event_new(event_base, loop->set, EV_READ | EV_PERSIST, on_readable, loop);
	return loop->event ? WEIR_OK : wr_fail(WEIR_E_NOMEM, "out of memory");
}

weir_status wr_loop_activate(struct wr_loop *loop, bool on)
{
	if (!loop->event)
		return WEIR_OK;
	if (!on)
		event_del(loop->event);
	else if (event_add(loop->event, NULL))
		return wr_fail(WEIR_E_IO, "event_base: libevent did not accept the loop's descriptor");
	return WEIR_OK;
}

/* --- weir's own thread --- */

/* Waits not by epoll_wait on the set, which would take the reports that the turn looks for. */
void wr_loop_run(struct wr_loop *loop)
{
	struct pollfd fd = {.fd = loop->set, .events = POLLIN};

	loop->turn(loop->turn_arg);
	while (!loop->broken) {
		if (loop->simulated)
			wr_park(&loop->parker, wr_load(&loop->until));
		else if (poll(&fd, 1, -1) < 0 && errno != EINTR)
			wr_thread_sleep(REFUSED_NS); /* the program has set its limit of descriptors to 0 */
		loop->turn(loop->turn_arg);
	}
}

void wr_loop_break(struct wr_loop *loop)
{
	loop->broken = true;
}
