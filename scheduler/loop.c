/*
 * The loop thread: what it waits on, one turn of its work, and the descriptors that conditions
 * wait for.
 *
 * The only file that calls libevent, and only for a base of the program's: making a
 * base ends the process if descriptors are short, by exit(1), whatever its callbacks do, and what they are is
 * the program's affair.
 */
#include "scheduler/loop.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/stack.h"
#include "base/status.h"
#include "base/units.h"
#include "base/words.h"
#include "scheduler/entity.h"
#include "scheduler/ends.h"
#include "scheduler/holders.h"
#include "scheduler/memory.h"
#include "scheduler/scheduler.h"
#include "scheduler/run.h"
#include "sim/simulation.h"

/* === the loop's descriptors === */

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
		loop->timer_at = INT64_MAX;
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

void wr_loop_close(struct wr_loop *loop)
{
	if (loop->event)
		event_free(loop->event);
	loop->event = NULL;
	wr_fetch_or(&loop->kicked, KICKED); /* from now on every kick finds the bit set and returns */
	/* The descriptor must not be closed, and its number reused, before the kicks have written. */
	while (!loop->simulated && wr_load(&loop->kicked) != KICKED)
		wr_thread_yield();
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
		return; /* from outside its world: the simulated loop polls */
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

/* Clears the kicks. The caller must look at its lists after this. */
static void loop_clear(struct wr_loop *loop)
{
	uint64_t count;

	while (!loop->simulated && read(loop->wake, &count, sizeof count) < 0 && errno == EINTR)
		; /* the timerfd is set anew before the next wait, so it is not readable then */
	wr_store(&loop->until, INT64_MIN); /* awake: a timer request need not kick */
	wr_fetch_and(&loop->kicked, ~KICKED);
}

/* INT64_MAX: never. */
void wr_loop_set_timer(struct wr_loop *loop, int64_t at)
{
	int64_t ns = at > 0 ? at : 1; /* 0 would disarm it */
	struct itimerspec spec = {{0, 0}, {0, 0}};

	if (at != INT64_MAX)
		spec.it_value = (struct timespec){.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};
	if (!loop->simulated && at != loop->timer_at)
		timerfd_settime(loop->timer, TFD_TIMER_ABSTIME, &spec, NULL);
	loop->timer_at = at;
}

/*
 * Whether a pending SIGINT or SIGTERM ends the wait: one that is not read would end every wait at once.
 */
static void loop_listen(struct wr_loop *loop, bool listen)
{
	struct epoll_event event = {.events = listen ? EPOLLIN : 0};

	if (loop->simulated || loop->signals < 0 || loop->listening == listen)
		return;
	loop->listening = listen;
	epoll_ctl(loop->set, EPOLL_CTL_MOD, loop->signals, &event);
}

/*
 * Has the set report the descriptor once (EPOLLONESHOT): one that stays ready ends only one wait. `data` is
 * what the report brings. Returns 0 or an errno: EEXIST, ENOENT, EBADF, ... Not of a simulated loop.
 */
static int epoll_arm(struct wr_loop *loop, int fd, uint32_t events, void *data, bool add)
{
	struct epoll_event event = {.events = events | EPOLLONESHOT, .data.ptr = data};

	return epoll_ctl(loop->set, add ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, fd, &event) ? errno : 0;
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

/*
 * === descriptors of conditions ===
 *
 * Descriptors that entities wait for (weir_entity_watch).
 *
 * A review asks the system whether the descriptor is ready (one poll without a wait), so a READY answer is as
 * fresh as any. If it is not ready, the review arms it in the loop's epoll set for one report. An event
 * between the two is not lost: arming looks at the descriptor again. When the loop gets the report, it clears
 * `armed`, then pokes the entity; the next review that finds the descriptor not ready arms it again. So a
 * descriptor that stays ready, while the entity waits for something else, wakes nothing.
 *
 * The set knows a file by its number, so two conditions that wait for the same descriptor need two numbers:
 * the second one is a duplicate. A descriptor that is closed disappears from the set without a report; the
 * loop looks for that four times a second, as long as some descriptor is armed.
 *
 * In the same looks it finds the descriptors that stall (`warn_after`). It marks them as late and
 * pokes the entity; the review that follows logs the line, since only the entity's owner may call what tells
 * how far the work with it is.
 *
 * A simulated loop has no epoll set: it asks the armed descriptors every 10 ms of virtual time. They take
 * real time, so if threads outside of the world may make them ready, it waits for that meanwhile.
 */

#define LOOK_NS    250000000 /* between two looks for closed descriptors */
#define VIRTUAL_NS 10000000  /* between two looks of a simulated loop */
#define REAL_MS    1         /* how long each of these waits */

enum { WAIT_TEXT = 256 }; /* what is logged of a wait */

/* --- the watch --- */

/* The condition's descriptor; made once, also if several threads are the first. */
static struct wr_descriptor *condition_descriptor(weir_entity *entity, struct wr_condition *condition)
{
	struct wr_descriptor *found = wr_load(&condition->descriptor), *made;
	weir_graph *graph = entity->graph;

	if (found)
		return found;
	made = wr_alloc(1, sizeof *made);
	if (!made)
		return NULL;
	*made = (struct wr_descriptor){
		.entity = entity, .condition = condition->plan->name, .fd = -1, .in_set = -1};
	if (!wr_cas(&condition->descriptor, &found, made)) {
		wr_free(made);
		return found;
	}
	wr_stack_push(&graph->descriptors, made, next);
	return made;
}

static void set_descriptor(struct wr_descriptor *descriptor, int fd, unsigned events)
{
	wr_spin_lock(&descriptor->lock);
	if (descriptor->in_set >= 0) /* it may be closed already */
		epoll_ctl(descriptor->entity->graph->scheduler->loop.set, EPOLL_CTL_DEL, descriptor->in_set,
			  NULL);
	if (descriptor->in_set >= 0 && descriptor->in_set != descriptor->fd)
		close(descriptor->in_set);
	descriptor->in_set = -1;
	descriptor->armed = descriptor->late = descriptor->warned = false;
	descriptor->since = 0;
	descriptor->fd = fd;
	descriptor->events = events;
	wr_spin_unlock(&descriptor->lock);
}

static weir_status check_watch(const weir_entity *entity, int fd, unsigned events)
{
	const char *name = entity->plan->name;

	if (fd < -1 || events & ~(unsigned)(WEIR_WATCH_READ | WEIR_WATCH_WRITE) || (fd < 0) != !events)
		return wr_fail_in(WEIR_E_INVALID, name,
				  "descriptor %d with events %u cannot be watched: the events are "
				  "WEIR_WATCH_READ, WEIR_WATCH_WRITE or both; 0 with -1",
				  fd, events);
	if (fd >= 0 && fcntl(fd, F_GETFD) < 0)
		return wr_fail_in(WEIR_E_INVALID, name, "descriptor %d cannot be watched: it is not open",
				  fd);
	return WEIR_OK;
}

weir_status weir_entity_watch(weir_entity *entity, const char *condition, int fd, unsigned events)
{
	struct wr_condition *found = NULL;
	weir_status status = wr_condition_find(entity, condition, &found);
	struct wr_descriptor *descriptor;

	if (!status)
		status = check_watch(entity, fd, events);
	if (status)
		return status;
	descriptor = condition_descriptor(entity, found);
	if (!descriptor)
		return wr_fail(WEIR_E_NOMEM, "out of memory");
	set_descriptor(descriptor, fd, events);
	wr_poke(entity); /* refused between runs: it is watched in the next run */
	return WEIR_OK;
}

/* --- the review --- */

/* "has waited 12.3 s for descriptor 0 (readable)" */
static void write_wait_locked(const struct wr_descriptor *descriptor, char *text, size_t room)
{
	static const char *const words[] = {"none", "readable", "writable", "readable or writable"};

	snprintf(text, room, "has waited %s for descriptor %d (%s)",
		 wr_time_shown(wr_now() - descriptor->since).text, descriptor->fd, words[descriptor->events]);
}

/* Returns poll's events of the descriptor, 0 if it is not ready. The lock is held. */
static short poll_locked(const struct wr_descriptor *descriptor, int timeout_ms)
{
	struct pollfd about = {.fd = descriptor->fd};

	about.events = (short)((descriptor->events & WEIR_WATCH_READ ? POLLIN | POLLRDHUP : 0) |
			       (descriptor->events & WEIR_WATCH_WRITE ? POLLOUT : 0));
	return poll(&about, 1, timeout_ms) > 0 ? about.revents : 0;
}

weir_watched wr_view_watched(weir_view *view, int64_t warn_after)
{
	struct wr_descriptor *descriptor = wr_load(&view->condition->descriptor);
	weir_watched watched = WEIR_WATCHED_NOTHING;
	char waited[WAIT_TEXT] = "";
	short ready = 0;

	if (!descriptor)
		return watched;
	wr_spin_lock(&descriptor->lock);
	descriptor->warn_after = warn_after;
	if (descriptor->fd >= 0) {
		ready = poll_locked(descriptor, 0);
		watched = ready ? WEIR_WATCHED_READY : WEIR_WATCHED_WAITING;
		if (ready && descriptor->warned)
			write_wait_locked(descriptor, waited, sizeof waited);
		if (ready)
			descriptor->late = descriptor->warned = false;
		descriptor->since = ready ? 0 : descriptor->since ? descriptor->since : wr_now();
	}
	wr_spin_unlock(&descriptor->lock);
	if (*waited)
		wr_log(WEIR_LOG_WARN, "%s: goes on: %s", descriptor->entity->plan->name, waited);
	if (ready & POLLNVAL)
		wr_view_misuse(view,
			       "watches a descriptor that was closed: call weir_entity_watch with -1 before "
			       "you close it");
	return watched;
}

weir_watched weir_view_watched(weir_view *view)
{
	return wr_view_watched(view, 0);
}

static uint32_t epoll_events(unsigned events)
{
	return (events & WEIR_WATCH_READ ? EPOLLIN | EPOLLRDHUP : 0u) |
	       (events & WEIR_WATCH_WRITE ? EPOLLOUT : 0u);
}

/* A file of that number may be in the set already, for another condition. */
static int add_locked(struct wr_loop *loop, struct wr_descriptor *descriptor)
{
	uint32_t events = epoll_events(descriptor->events);
	int error = epoll_arm(loop, descriptor->fd, events, descriptor, true), copy;

	if (!error)
		descriptor->in_set = descriptor->fd;
	if (error != EEXIST)
		return error;
	copy = fcntl(descriptor->fd, F_DUPFD_CLOEXEC, 0);
	if (copy < 0)
		return errno;
	error = epoll_arm(loop, copy, events, descriptor, true);
	if (error)
		close(copy);
	else
		descriptor->in_set = copy;
	return error;
}

/* Lets the set report it once. */
static int arm_locked(struct wr_loop *loop, struct wr_descriptor *descriptor)
{
	if (loop->simulated)
		return 0;
	if (descriptor->in_set < 0)
		return add_locked(loop, descriptor);
	return epoll_arm(loop, descriptor->in_set, epoll_events(descriptor->events), descriptor, false);
}

static weir_status fail_arming(const struct wr_descriptor *descriptor, int fd, int error)
{
	if (error == EBADF || error == ENOENT)
		return wr_fail_in(WEIR_E_INVALID, descriptor->entity->plan->name,
				  "condition '%s' watches descriptor %d, which was closed: call "
				  "weir_entity_watch with -1 before you close it",
				  descriptor->condition, fd);
	return wr_fail_in(WEIR_E_IO, descriptor->entity->plan->name,
			  "condition '%s' cannot watch descriptor %d: %s", descriptor->condition, fd,
			  wr_errno_words(error));
}

/* The entity's owner calls this without a lock; the operator's state is not in use. */
static void log_stall(const weir_entity *entity, const char *waited)
{
	const weir_operator *kind = entity->plan->kind;
	char text[WAIT_TEXT] = "";

	if (wr_log_on() && kind->size > offsetof(weir_operator, progress) && kind->progress)
		kind->progress(entity->operator_state, sizeof text, text);
	wr_log(WEIR_LOG_WARN, "%s: %s%s%s", entity->plan->name, waited, *text ? ": " : "", text);
}

/*
 * Arms the descriptor if a review has found it not ready. A thread that watches another one meanwhile pokes
 * the entity afterwards.
 */
static weir_status arm_descriptor(weir_scheduler *scheduler, struct wr_descriptor *descriptor)
{
	char waited[WAIT_TEXT] = "";
	bool first = false;
	int error = 0, fd;

	wr_spin_lock(&descriptor->lock);
	fd = descriptor->fd;
	if (descriptor->late) {
		descriptor->late = false;
		descriptor->warned = true;
		write_wait_locked(descriptor, waited, sizeof waited);
	}
	if (fd >= 0 && descriptor->since && !descriptor->armed) {
		first = descriptor->in_set < 0;
		error = arm_locked(&scheduler->loop, descriptor);
		descriptor->armed = !error;
	}
	wr_spin_unlock(&descriptor->lock);
	if (*waited)
		log_stall(descriptor->entity, waited);
	if (first)
		wr_loop_kick(&scheduler->loop); /* so that it looks for closed descriptors from now on */
	return error ? fail_arming(descriptor, fd, error) : WEIR_OK;
}

weir_status wr_descriptors_arm(weir_scheduler *scheduler, weir_entity *entity)
{
	weir_status status = WEIR_OK;

	for (size_t i = 0; i < entity->condition_count && !status; i++) {
		struct wr_descriptor *descriptor = wr_load(&entity->conditions[i].descriptor);
		if (descriptor)
			status = arm_descriptor(scheduler, descriptor);
	}
	return status;
}

bool wr_descriptor_describe(struct wr_condition *condition, char *text, size_t room)
{
	struct wr_descriptor *descriptor = wr_load(&condition->descriptor);
	bool waits;

	if (!descriptor)
		return false;
	wr_spin_lock(&descriptor->lock);
	waits = descriptor->fd >= 0 && descriptor->since;
	if (waits)
		write_wait_locked(descriptor, text, room);
	wr_spin_unlock(&descriptor->lock);
	return waits;
}

/* --- the loop --- */

static void report_descriptor(struct wr_descriptor *descriptor)
{
	wr_spin_lock(&descriptor->lock);
	descriptor->armed = false; /* first: the review that follows the poke may arm it again */
	wr_spin_unlock(&descriptor->lock);
	wr_poke(descriptor->entity);
}

/* Pokes the entities of those that are ready. */
static void poke_reported(weir_scheduler *scheduler)
{
	struct epoll_event events[64]; /* more of them end the next wait at once */
	int count = 0;

	if (wr_load(&scheduler->graph->descriptors) && !scheduler->loop.simulated)
		count = epoll_wait(scheduler->loop.set, events, sizeof events / sizeof *events, 0);
	for (int i = 0; i < count; i++)
		if (events[i].data.ptr) /* those of the loop itself have none */
			report_descriptor(events[i].data.ptr);
}

/* Pokes the entity once for each stall. It is none while the entity waits for something else (not armed). */
static void check_stalled(struct wr_descriptor *descriptor, int64_t now)
{
	bool late;

	wr_spin_lock(&descriptor->lock);
	late = descriptor->warn_after && descriptor->armed && descriptor->since && !descriptor->late &&
	       !descriptor->warned && now - descriptor->since >= descriptor->warn_after;
	if (late)
		descriptor->late = true;
	wr_spin_unlock(&descriptor->lock);
	if (late)
		wr_poke(descriptor->entity);
}

/* Arming it anew fails if it was closed, even if its number is that of another file now. */
static void check_closed(weir_scheduler *scheduler, struct wr_descriptor *descriptor)
{
	int error = 0, fd;

	wr_spin_lock(&descriptor->lock);
	fd = descriptor->fd;
	if (descriptor->armed)
		error = fcntl(fd, F_GETFD) < 0 ? EBADF : arm_locked(&scheduler->loop, descriptor);
	wr_spin_unlock(&descriptor->lock);
	if (error)
		wr_run_fail(scheduler, descriptor->entity, WEIR_CAUSE_DESCRIPTOR,
			    fail_arming(descriptor, fd, error));
}

/* Returns true if it is armed and not ready. */
static bool simulate_report(struct wr_descriptor *descriptor, int timeout_ms)
{
	bool armed, ready;

	wr_spin_lock(&descriptor->lock);
	armed = descriptor->armed;
	ready = armed && poll_locked(descriptor, timeout_ms);
	wr_spin_unlock(&descriptor->lock);
	if (ready)
		report_descriptor(descriptor);
	return armed && !ready;
}

/* Returns true if some are armed. */
static bool simulate_reports(weir_scheduler *scheduler, int64_t now)
{
	struct wr_descriptor *waits = NULL, *descriptor = wr_load(&scheduler->graph->descriptors);

	for (; descriptor; descriptor = descriptor->next) {
		if (simulate_report(descriptor, 0))
			waits = descriptor;
		check_stalled(descriptor, now);
	}
	if (waits && scheduler->graph->owns_world)
		simulate_report(waits, REAL_MS);
	return waits;
}

/*
 * Fails the run if an armed descriptor was closed. On `sim` also pokes the entities of ready ones. Returns
 * when to look again.
 */
static int64_t check_descriptors(weir_scheduler *scheduler, int64_t now)
{
	struct wr_descriptor *descriptor = wr_load(&scheduler->graph->descriptors);

	if (!descriptor)
		return INT64_MAX;
	if (scheduler->loop.simulated)
		return simulate_reports(scheduler, now) ? wr_time_add(now, VIRTUAL_NS) : INT64_MAX;
	if (now < scheduler->descriptors_at)
		return scheduler->descriptors_at;
	for (; descriptor; descriptor = descriptor->next) {
		check_closed(scheduler, descriptor);
		check_stalled(descriptor, now);
	}
	scheduler->descriptors_at = wr_time_add(now, LOOK_NS);
	return scheduler->descriptors_at;
}

/* --- the end --- */

void wr_descriptors_forget(weir_scheduler *scheduler)
{
	struct wr_descriptor *descriptor = wr_load(&scheduler->graph->descriptors);

	for (; descriptor; descriptor = descriptor->next)
		set_descriptor(descriptor, -1, 0);
}

/*
 * === one turn ===
 *
 * The loop thread's side of a run. One turn does all that is due and arms the loop for the next one: POSIX
 * signals, stop requests, timers, fired tokens, the watch, quiescence. It never blocks, so the same
 * turn serves weir's own thread, a caller's libevent base and a caller's poll (B1).
 *
 * A run ends only here (S4). It is OPEN until it is quiescent or is cut short. It is CLOSING until all
 * workers have left, the references of what they left are dropped, the live count is 0 and the streams are
 * idle (waited for up to STREAMS_NS). Then it is ENDED.
 */

#define STREAMS_NS    200000000 /* how long streams may take to become idle: `stop` may free their memory */
#define ENDED_SOON    1         /* of calling_ended: no thread has this stamp */
#define POLL_NS       1000000   /* between two looks while the run closes */
#define DRAIN_LOOK_NS 20000000  /* between two looks at the progress of a drain */
#define OUTSIDE_NS    10000000  /* virtual: a simulated loop polls, as outside threads cannot wake it */

/* --- stopping (S7) --- */

/* By ticks and from outlets. Each queue is counted by its receiver. */
static uint64_t count_taken(const weir_graph *graph)
{
	uint64_t taken = 0;

	for (size_t i = 0; i < graph->connection_count; i++)
		taken += wr_read(&graph->connections[i]->queue.counters.delivered);
	return taken;
}

static void begin_drain(weir_scheduler *scheduler, int64_t now)
{
	weir_graph *graph = scheduler->graph;

	if (scheduler->draining)
		return;
	wr_stuck_look_before_drain(scheduler, now);
	scheduler->draining = true;
	wr_fetch_or(&scheduler->stop_asked, WR_STOP_DRAIN);
	scheduler->drain_at = wr_time_add(now, scheduler->options.drain_ns);
	scheduler->drain_look_at = scheduler->options.drain_ns > 0 ? now : INT64_MAX;
	scheduler->drain_taken = count_taken(graph);
	wr_log(WEIR_LOG_INFO, "%s: draining", graph->plan->name);
	wr_system_drain(graph->system);
	for (weir_inlet *inlet = graph->inlets; inlet; inlet = inlet->next)
		weir_inlet_close(inlet);
	for (size_t i = 0; i < graph->entity_count; i++)
		wr_poke(&graph->entities[i]); /* sources, and entities that wait for a time only */
}

static void take_signals(weir_scheduler *scheduler, int64_t now)
{
	struct signalfd_siginfo info;
	int fd = scheduler->loop.signals;

	while (fd >= 0 && read(fd, &info, sizeof info) == sizeof info) {
		if (scheduler->posix_signal)
			_exit(128 + (int)info.ssi_signo); /* a second signal ends the process at once */
		scheduler->posix_signal = (int)info.ssi_signo;
		begin_drain(scheduler, now);
	}
}

static void close_run(weir_scheduler *scheduler, int64_t now, bool cut_short)
{
	scheduler->cut_short = cut_short;
	/* Reviews may have obeyed the bit before a turn has seen it. */
	scheduler->draining |= wr_load(&scheduler->stop_asked) & WR_STOP_DRAIN;
	if (cut_short)
		wr_live_close(&scheduler->live);
	wr_store(&scheduler->phase, WR_CLOSING);
	/* A drain that timed out has waited already. */
	scheduler->streams_until = scheduler->timed_out ? now : wr_time_add(now, STREAMS_NS);
	wr_wake_all(scheduler);
}

/*
 * Restarts the drain's time limit when a message was taken or device work of a tick has completed. Sources
 * and cycle roots tick no more, so what is taken descends from what was in flight, and a drain that is only
 * slow ends. Ticks that take nothing do not count, nor does their work: they could go on for ever.
 */
static void extend_drain(weir_scheduler *scheduler, int64_t now)
{
	uint64_t taken;

	if (!scheduler->draining || (now < scheduler->drain_look_at && now < scheduler->drain_at))
		return;
	taken = count_taken(scheduler->graph);
	if (wr_system_progressed(scheduler->graph->system) || taken != scheduler->drain_taken)
		scheduler->drain_at = wr_time_add(now, scheduler->options.drain_ns);
	scheduler->drain_taken = taken;
	scheduler->drain_look_at = wr_time_add(now, DRAIN_LOOK_NS);
}

/* Returns true if the run was cut short. */
static bool obey_stops(weir_scheduler *scheduler, int64_t now)
{
	unsigned asked = wr_load(&scheduler->stop_asked);

	if (asked & WR_STOP_DRAIN || (scheduler->ends_at != INT64_MAX && now >= scheduler->ends_at))
		begin_drain(scheduler, now);
	extend_drain(scheduler, now);
	if (scheduler->draining && now >= scheduler->drain_at) {
		scheduler->timed_out = true;
		asked |= WR_STOP_NOW;
	}
	if (!(asked & (WR_STOP_NOW | WR_STOP_FAILED)))
		return false;
	close_run(scheduler, now, true);
	return true;
}

/* --- the device (E2) --- */

/* Returns when to look again. */
static int64_t watch_streams(weir_scheduler *scheduler, int64_t now)
{
	struct wr_system *system = scheduler->graph->system;
	weir_status status = WEIR_OK;
	uint32_t promised;
	bool only_streams;

	wr_system_collect(system);
	status = wr_system_promise_failure(system, &promised);
	if (status) {
		wr_run_fail(scheduler,
			    promised == WR_NO_ENTITY ? NULL : wr_graph_entity_at(scheduler->graph, promised),
			    WEIR_CAUSE_COMPUTE, status);
		return now;
	}
	if (now >= scheduler->watch_at || !wr_load(&scheduler->watching)) {
		wr_store(&scheduler->watching, false); /* first: a stream that becomes busy meanwhile kicks */
		if (wr_system_watch(system, now, &scheduler->watch_at)) {
			wr_run_fail(scheduler, NULL, WEIR_CAUSE_DEVICE, WEIR_E_DEVICE);
			return now;
		}
		wr_store(&scheduler->watching, scheduler->watch_at != INT64_MAX);
	}
	if (wr_system_deferred_frees_ready(system))
		wr_wake_one(scheduler);
	/* Workers asleep, no timer set, no signal outstanding: streams with work alone hold the run open. */
	only_streams = !wr_load(&scheduler->not_done) ||
		       (wr_load(&scheduler->sleepers) == scheduler->all_asleep && !wr_timers_any(scheduler) &&
			!wr_system_outstanding(system));
	if (only_streams || wr_memory_pools_refuse(scheduler->graph))
		status = wr_system_arm_kicks(system, only_streams, !wr_load(&scheduler->not_done));
	if (status) {
		wr_run_fail(scheduler, NULL, WEIR_CAUSE_DEVICE, status);
		return now;
	}
	return scheduler->watch_at;
}

/* --- quiescence (S4, S6) --- */

/*
 * Closes the run if its live count is 0 and no entity has ticked for the grace time. A poke alone does not
 * begin this time anew: a program that pokes in vain would put off the verdict for ever. Returns when to look
 * again.
 */
static int64_t close_if_quiescent(weir_scheduler *scheduler, int64_t now)
{
	uint64_t word = wr_load(&scheduler->live), ticks;
	uint32_t promised;
	int64_t grace = scheduler->options.deadlock_grace_ns;

	if (word & WR_LIVE_COUNT)
		return INT64_MAX; /* the thread that drops the last reference kicks */
	/* Again, after the count: it was noted before the promise dropped its reference. */
	if (wr_system_promise_failure(scheduler->graph->system, &promised))
		return now;
	if (wr_holders_program_may_go_on(scheduler, &word))
		return INT64_MAX; /* the thread that lets go of what the program holds kicks */
	if (scheduler->draining || !wr_load(&scheduler->not_done))
		grace = 0;
	if (grace < 0)
		return INT64_MAX;
	/* Each thread drops its reference after its ticks, so this sum belongs to `word`. */
	ticks = wr_graph_count_ticks(scheduler->graph);
	if (ticks != scheduler->idle_ticks) {
		scheduler->idle_ticks = ticks;
		scheduler->idle_since = now;
	}
	if (now < wr_time_add(scheduler->idle_since, grace))
		return wr_time_add(scheduler->idle_since, grace);
	if (!wr_live_close_idle(&scheduler->live, word))
		return now;
	/* If a stop was asked for since this turn looked, workers may have left entities unreviewed. */
	close_run(scheduler, now, wr_load(&scheduler->stop_asked) & (WR_STOP_NOW | WR_STOP_FAILED));
	return now;
}

static int64_t turn_open(weir_scheduler *scheduler, int64_t now)
{
	int64_t next, watch_at, close_at, descriptors_at, stuck_at;

	if (obey_stops(scheduler, now))
		return now;
	wr_timers_fire_loop(scheduler, now);
	watch_at = watch_streams(scheduler, now);
	descriptors_at = check_descriptors(scheduler, now);
	stuck_at = now < scheduler->stuck_at ? scheduler->stuck_at : wr_stuck_look(scheduler, now);
	close_at = close_if_quiescent(scheduler, now);
	next = watch_at;
	next = descriptors_at < next ? descriptors_at : next;
	next = stuck_at < next ? stuck_at : next;
	next = close_at < next ? close_at : next;
	next = scheduler->ends_at < next && !scheduler->draining ? scheduler->ends_at : next;
	if (scheduler->draining && scheduler->drain_at < next)
		next = scheduler->drain_at;
	return scheduler->draining && scheduler->drain_look_at < next ? scheduler->drain_look_at : next;
}

/* --- closing --- */

static bool streams_idle(weir_scheduler *scheduler)
{
	weir_graph *graph = scheduler->graph;

	if (wr_system_failed(graph->system))
		return true;
	for (size_t i = 0; i < graph->entity_count; i++)
		if (!wr_entity_streams_idle(&graph->entities[i]))
			return false;
	return true;
}

static int64_t turn_closing(weir_scheduler *scheduler, int64_t now)
{
	if (wr_load(&scheduler->workers_ended) < scheduler->worker_count)
		return INT64_MAX; /* the last one kicks */
	for (unsigned i = 0; i < scheduler->worker_count; i++)
		wr_thread_join(&scheduler->workers[i].thread);
	wr_system_collect(scheduler->graph->system);
	if (scheduler->cut_short)
		wr_run_release_leftovers(scheduler);
	if (wr_live_count(&scheduler->live))
		return wr_time_add(now, POLL_NS); /* a poke is still being refused */
	if (now < scheduler->streams_until && !streams_idle(scheduler))
		return wr_time_add(now, POLL_NS);
	wr_store(&scheduler->calling_ended, ENDED_SOON);
	wr_run_end(scheduler);
	return INT64_MAX;
}

/*
 * Comes last: weir_scheduler_wait() may have returned already, and its caller may have started another run.
 * Removes the event from the caller's base, so that it no longer keeps the base's dispatch running.
 */
static void call_ended(weir_scheduler *scheduler)
{
	wr_loop_activate(&scheduler->loop, false);
	if (scheduler->options.ended) {
		wr_store(&scheduler->calling_ended, wr_thread_self());
		scheduler->options.ended(scheduler, scheduler->options.ended_arg);
	}
	wr_mutex_lock(&scheduler->lock);
	wr_store(&scheduler->calling_ended, 0);
	wr_cond_broadcast(&scheduler->changed);
	wr_mutex_unlock(&scheduler->lock);
}

/* What completes promises from outside is in no hurry of the simulated world's: once every 10 ms of that. */
static void give_real_time(weir_scheduler *scheduler, int64_t now)
{
	if (now < scheduler->outside_at || !wr_system_open_promises(scheduler->graph->system))
		return;
	scheduler->outside_at = now + OUTSIDE_NS;
	poll(NULL, 0, REAL_MS);
}

void wr_run_turn(weir_scheduler *scheduler)
{
	int64_t now = wr_now(), next = INT64_MAX;

	loop_clear(&scheduler->loop);
	if (scheduler->graph->owns_world)
		wr_system_note_now(scheduler->graph->system, now);
	poke_reported(scheduler);
	if (wr_load(&scheduler->phase) != WR_ENDED)
		take_signals(scheduler, now); /* between two runs they stay pending */
	if (wr_load(&scheduler->phase) == WR_OPEN)
		next = turn_open(scheduler, now);
	if (wr_load(&scheduler->phase) == WR_CLOSING)
		next = turn_closing(scheduler, now);
	if (scheduler->graph->owns_world && wr_load(&scheduler->phase) == WR_OPEN) {
		/* Threads outside a simulated world push entries but cannot wake its workers. */
		if (wr_ready_injector_holds(scheduler))
			wr_wake_one(scheduler);
		next = next > now + OUTSIDE_NS ? now + OUTSIDE_NS : next;
		give_real_time(scheduler, now);
	}
	wr_timers_arm_loop(scheduler, now, next);
	loop_listen(&scheduler->loop, wr_load(&scheduler->phase) != WR_ENDED);
	if (wr_load(&scheduler->calling_ended) == ENDED_SOON)
		call_ended(scheduler);
}

void wr_run_on_turn(void *arg)
{
	weir_scheduler *scheduler = arg;

	wr_run_turn(scheduler);
	if (wr_load(&scheduler->destroying)) /* read after the turn, which clears the kicks */
		wr_loop_break(&scheduler->loop);
}
