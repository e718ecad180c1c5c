/*
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
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/status.h"
#include "base/words.h"
#include "scheduler/ask.h"
#include "scheduler/ready.h"
#include "scheduler/run.h"

#define LOOK_NS    250000000 /* between two looks for closed descriptors */
#define VIRTUAL_NS 10000000  /* between two looks of a simulated loop */
#define REAL_MS    1         /* how long each of these waits */

enum { WAIT_TEXT = 256 }; /* what is logged of a wait */

static void descriptor_lock(struct wr_descriptor *descriptor)
{
	while (wr_exchange(&descriptor->lock, 1))
		wr_thread_yield();
}

static void descriptor_unlock(struct wr_descriptor *descriptor)
{
	wr_store(&descriptor->lock, 0);
}

static weir_status fail_closed(const struct wr_descriptor *descriptor, int fd)
{
	return wr_fail_in(
		WEIR_E_INVALID, descriptor->entity->plan->name,
		"condition '%s' watches descriptor %d, which was closed: call weir_entity_watch with -1 "
		"before you close it",
		descriptor->condition, fd);
}

/* --- the watch --- */

/* The condition's descriptor; made once, also if several threads are the first. */
static struct wr_descriptor *condition_descriptor(weir_entity *entity, struct wr_condition *condition)
{
	struct wr_descriptor *found = wr_load(&condition->descriptor), *made, *top;
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
	top = wr_load(&graph->descriptors);
	do
		made->next = top;
	while (!wr_cas(&graph->descriptors, &top, made));
	return made;
}

/* Takes it out of the set. The lock is held. */
static void remove_locked(struct wr_descriptor *descriptor)
{
	if (descriptor->in_set >= 0)
		wr_loop_remove_descriptor(&descriptor->entity->graph->scheduler->loop, descriptor->in_set);
	if (descriptor->in_set >= 0 && descriptor->in_set != descriptor->fd)
		close(descriptor->in_set);
	descriptor->in_set = -1;
	descriptor->armed = false;
	descriptor->since = 0;
	descriptor->late = descriptor->warned = false;
}

static void set_descriptor(struct wr_descriptor *descriptor, int fd, unsigned events)
{
	descriptor_lock(descriptor);
	remove_locked(descriptor);
	descriptor->fd = fd;
	descriptor->events = events;
	descriptor_unlock(descriptor);
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
static void write_wait(char *text, size_t room, int64_t waited, int fd, unsigned events)
{
	static const char *const words[] = {"none", "readable", "writable", "readable or writable"};

	snprintf(text, room, "has waited %.1f %s for descriptor %d (%s)",
		 (double)waited / (waited < 1000000000 ? 1e6 : 1e9), waited < 1000000000 ? "ms" : "s", fd,
		 words[events]);
}

/* Returns poll's events of the descriptor, 0 if it is not ready. The lock is held. */
static short poll_locked(const struct wr_descriptor *descriptor, int timeout_ms)
{
	struct pollfd about = {.fd = descriptor->fd};

	about.events = (short)((descriptor->events & WEIR_WATCH_READ ? POLLIN | POLLRDHUP : 0) |
			       (descriptor->events & WEIR_WATCH_WRITE ? POLLOUT : 0));
	return poll(&about, 1, timeout_ms) > 0 ? about.revents : 0;
}

/* Writes what is logged of a stall that ends; "" if none was logged. */
static void end_wait_locked(struct wr_descriptor *descriptor, char *text, size_t room)
{
	*text = 0;
	if (descriptor->warned)
		write_wait(text, room, wr_now() - descriptor->since, descriptor->fd, descriptor->events);
	descriptor->since = 0;
	descriptor->late = descriptor->warned = false;
}

weir_watched wr_view_watched(weir_view *view, int64_t warn_after)
{
	struct wr_descriptor *descriptor = wr_load(&view->condition->descriptor);
	weir_watched watched = WEIR_WATCHED_NOTHING;
	char waited[WAIT_TEXT];
	short ready = 0;

	if (!descriptor)
		return watched;
	*waited = 0;
	descriptor_lock(descriptor);
	descriptor->warn_after = warn_after;
	if (descriptor->fd >= 0) {
		ready = poll_locked(descriptor, 0);
		watched = ready ? WEIR_WATCHED_READY : WEIR_WATCHED_WAITING;
		if (ready)
			end_wait_locked(descriptor, waited, sizeof waited);
		else if (!descriptor->since)
			descriptor->since = wr_now();
	}
	descriptor_unlock(descriptor);
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
	int error = wr_loop_arm_descriptor(loop, descriptor->fd, events, descriptor, true), copy;

	if (!error)
		descriptor->in_set = descriptor->fd;
	if (error != EEXIST)
		return error;
	copy = fcntl(descriptor->fd, F_DUPFD_CLOEXEC, 0);
	if (copy < 0)
		return errno;
	error = wr_loop_arm_descriptor(loop, copy, events, descriptor, true);
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
	return wr_loop_arm_descriptor(loop, descriptor->in_set, epoll_events(descriptor->events), descriptor,
				      false);
}

static weir_status fail_arming(const struct wr_descriptor *descriptor, int fd, int error)
{
	if (error == EBADF || error == ENOENT)
		return fail_closed(descriptor, fd);
	return wr_fail_in(WEIR_E_IO, descriptor->entity->plan->name,
			  "condition '%s' cannot watch descriptor %d: %s", descriptor->condition, fd,
			  wr_errno_words(error));
}

/* Writes what is logged of a descriptor that stalls; "": nothing. */
static void take_stall_locked(struct wr_descriptor *descriptor, char *waited, size_t room)
{
	*waited = 0;
	if (!descriptor->late)
		return;
	descriptor->late = false;
	descriptor->warned = true;
	write_wait(waited, room, wr_now() - descriptor->since, descriptor->fd, descriptor->events);
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
	char waited[WAIT_TEXT];
	bool first = false;
	int error = 0, fd;

	descriptor_lock(descriptor);
	fd = descriptor->fd;
	take_stall_locked(descriptor, waited, sizeof waited);
	if (fd >= 0 && descriptor->since && !descriptor->armed) {
		first = descriptor->in_set < 0;
		error = arm_locked(&scheduler->loop, descriptor);
		descriptor->armed = !error;
	}
	descriptor_unlock(descriptor);
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
	int64_t since = 0;
	unsigned events = 0;
	int fd = -1;

	if (descriptor) {
		descriptor_lock(descriptor);
		fd = descriptor->fd;
		events = descriptor->events;
		since = descriptor->since;
		descriptor_unlock(descriptor);
	}
	if (fd < 0 || !since)
		return false;
	write_wait(text, room, wr_now() - since, fd, events);
	return true;
}

/* --- the loop --- */

static void report_descriptor(struct wr_descriptor *descriptor)
{
	descriptor_lock(descriptor);
	descriptor->armed = false; /* first: the review that follows the poke may arm it again */
	descriptor_unlock(descriptor);
	wr_poke(descriptor->entity);
}

void wr_descriptors_poke(weir_scheduler *scheduler)
{
	enum { ROOM = 64 }; /* more of them end the next wait at once */
	void *reported[ROOM];
	size_t count = 0;

	if (wr_load(&scheduler->graph->descriptors) && !scheduler->loop.simulated)
		count = wr_loop_reported(&scheduler->loop, ROOM, reported);
	for (size_t i = 0; i < count; i++)
		report_descriptor(reported[i]);
}

/* Pokes the entity once for each stall. It is none while the entity waits for something else (not armed). */
static void check_stalled(struct wr_descriptor *descriptor, int64_t now)
{
	bool late;

	descriptor_lock(descriptor);
	late = descriptor->warn_after && descriptor->armed && descriptor->since && !descriptor->late &&
	       !descriptor->warned && now - descriptor->since >= descriptor->warn_after;
	if (late)
		descriptor->late = true;
	descriptor_unlock(descriptor);
	if (late)
		wr_poke(descriptor->entity);
}

/* Arming it anew fails if it was closed, even if its number is that of another file now. */
static void check_closed(weir_scheduler *scheduler, struct wr_descriptor *descriptor)
{
	int error = 0, fd;

	descriptor_lock(descriptor);
	fd = descriptor->fd;
	if (descriptor->armed)
		error = fcntl(fd, F_GETFD) < 0 ? EBADF : arm_locked(&scheduler->loop, descriptor);
	descriptor_unlock(descriptor);
	if (error)
		wr_run_fail(scheduler, descriptor->entity, WEIR_CAUSE_DESCRIPTOR,
			    fail_arming(descriptor, fd, error));
}

/* Returns true if it is armed and not ready. */
static bool simulate_report(struct wr_descriptor *descriptor, int timeout_ms)
{
	bool armed, ready;

	descriptor_lock(descriptor);
	armed = descriptor->armed;
	ready = armed && poll_locked(descriptor, timeout_ms);
	descriptor_unlock(descriptor);
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

int64_t wr_descriptors_check(weir_scheduler *scheduler, int64_t now)
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
