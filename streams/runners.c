/*
 * Runners: threads (or fibers) that take a line that is ready and do its first task, over and over.
 *
 * Where there are rules, calls are made one at a time a group, as CUDA's driver does, and kernels that sleep
 * in simulated time occupy a runner, so a device gets another one when its last idle one begins a kernel. A
 * partition does not: so many runners are what it is.
 *
 * The lock is left in three places: while a task is executed, while another runner is woken or started, and
 * in sleep. Meanwhile the line that a runner has taken is `running`, which keeps it from being destroyed.
 */
#include "streams/runners.h"

#include <stdio.h>
#include <string.h>


/* --- what is next; all with the lock held --- */

struct wr_host_worker *wr_host_pool_wake_locked(struct wr_host_pool *group)
{
	struct wr_host_worker *runner = group->idle;

	if (runner) {
		group->idle = runner->next;
		runner->idle = false;
	}
	return runner;
}

static bool may_run_locked(const struct wr_host_stream *line)
{
	return line->first->work != WR_WORK_CALL || !line->group->calling || !line->fifo->rules;
}

/* One of those that are due, or NULL, and when the next one will be. */
static struct wr_host_stream *take_by_rules_locked(struct wr_host_pool *group, int64_t *until)
{
	struct wr_fifo *fifo = group->fifo;
	int64_t now = fifo->rules->now(fifo->arg);
	size_t due = 0, chosen;

	for (struct wr_host_stream *line = group->ready; line; line = line->next) {
		if (!may_run_locked(line))
			continue;
		if (line->due <= now)
			due++;
		else if (line->due < *until)
			*until = line->due;
	}
	if (!due)
		return NULL;
	chosen = fifo->rules->choose(fifo->arg, due);
	for (struct wr_host_stream **at = &group->ready;; at = &(*at)->next)
		if (may_run_locked(*at) && (*at)->due <= now && !chosen--)
			return wr_host_stream_unlink_locked(group, at);
}

static bool after_fault(const struct wr_fifo *fifo)
{
	return fifo->rules && fifo->rules->after_fault(fifo->arg);
}

static struct wr_host_stream *take_locked(struct wr_host_pool *group, int64_t *until)
{
	const struct wr_fifo *fifo = group->fifo;

	*until = WR_FOREVER;
	if (!group->ready || (fifo->faulted && !after_fault(fifo)))
		return NULL;
	return fifo->rules ? take_by_rules_locked(group, until) : wr_host_stream_unlink_locked(group, &group->ready);
}

static void fault_locked(struct wr_fifo *fifo, const char *name, int code)
{
	if (fifo->faulted)
		return;
	fifo->faulted = true;
	snprintf(fifo->fault, sizeof fifo->fault, "kernel '%s' failed with code %d", name, code);
}

/* --- running --- */

static int execute(struct wr_task *task)
{
	switch (task->work) {
	case WR_WORK_KERNEL:
		return task->kernel.host(task->kernel.arguments);
	case WR_WORK_COPY:
		memcpy(task->copy.to, task->copy.from, task->copy.bytes);
		break;
	case WR_WORK_CALL:
		task->call.fn(task->call.arg);
		break;
	case WR_WORK_FLAG:
		wr_store(task->flag.word, task->flag.value);
		break;
	case WR_WORK_RECORD:
	case WR_WORK_WAIT:
		break;
	}
	return 0;
}

/* A kernel may sleep in virtual time: somebody else must be there for the other lines meanwhile. */
static bool needs_another_locked(const struct wr_host_pool *group, const struct wr_task *task)
{
	return group->fifo->rules && task->work == WR_WORK_KERNEL && !group->idle &&
	       group->started < group->room;
}

static void run(void *arg);

weir_status wr_host_worker_start(struct wr_host_pool *group, unsigned i)
{
	group->runners[i].group = group;
	return wr_thread_start(&group->runners[i].thread, "weir-stream", run, &group->runners[i]);
}

static void run_unlocked(struct wr_host_stream *line, struct wr_task *task)
{
	struct wr_host_pool *group = line->group;
	struct wr_fifo *fifo = line->fifo;
	unsigned another = needs_another_locked(group, task) ? group->started++ : 0;
	int code;

	group->calling |= task->work == WR_WORK_CALL;
	wr_mutex_unlock(&fifo->lock);
	if (another) /* a convenience: that there is no memory for it is no failure */
		(void)wr_host_worker_start(group, another);
	code = execute(task);
	wr_mutex_lock(&fifo->lock);
	if (task->work == WR_WORK_CALL)
		group->calling = false;
	if (code)
		fault_locked(fifo, task->kernel.name, code);
}

/* The same call once more, behind what is enqueued by now (F06). */
static void repeat_locked(struct wr_host_stream *line)
{
	struct wr_task *again = wr_task_locked(line->fifo);

	if (!again)
		return;
	*again = *line->first;
	again->next = NULL;
	again->again = true;
	line->last->next = again;
	line->last = again;
}

static void run_by_fate(struct wr_host_stream *line)
{
	struct wr_fifo *fifo = line->fifo;
	struct wr_task *task = line->first;
	enum wr_fate fate = fifo->rules ? fifo->rules->fate(fifo->arg, task->work) : WR_FATE_RUN;

	if (fifo->faulted && task->work != WR_WORK_CALL)
		return;
	if (fate == WR_FATE_FAULT)
		fault_locked(fifo, task->work == WR_WORK_KERNEL ? task->kernel.name : "copy", 1);
	else if (fate != WR_FATE_LOSE)
		run_unlocked(line, task);
	if (fate == WR_FATE_TWICE && !task->again)
		repeat_locked(line);
}

/* Called with the lock held, which is left while a task is executed. */
static void step(struct wr_host_stream *line)
{
	struct wr_fifo *fifo = line->fifo;

	switch (line->first->work) {
	case WR_WORK_WAIT:
		if (!fifo->faulted && wr_host_stream_park_locked(line))
			return;
		break;
	case WR_WORK_RECORD:
		if (!fifo->faulted)
			wr_host_stream_reach_locked(line);
		break;
	case WR_WORK_KERNEL:
	case WR_WORK_COPY:
	case WR_WORK_CALL:
	case WR_WORK_FLAG:
		run_by_fate(line);
		break;
	}
	wr_host_stream_pop_locked(line);
	if (line->first)
		wr_host_stream_ready_locked(line);
	else
		line->busy = false;
}

static void sleep_until(struct wr_host_worker *runner, int64_t until)
{
	struct wr_host_pool *group = runner->group;
	struct wr_fifo *fifo = group->fifo;

	runner->next = group->idle;
	runner->idle = true;
	group->idle = runner;
	wr_mutex_unlock(&fifo->lock);
	wr_park(&runner->parker, until);
	wr_mutex_lock(&fifo->lock);
	for (struct wr_host_worker **at = &group->idle; runner->idle; at = &(*at)->next)
		if (*at == runner) {
			*at = runner->next;
			runner->idle = false;
			break;
		}
}

static void unpark_unlocked(struct wr_fifo *fifo, struct wr_host_worker *runner)
{
	wr_mutex_unlock(&fifo->lock);
	wr_unpark(&runner->parker);
	wr_mutex_lock(&fifo->lock);
}

/* What is ready beside the line that this runner has is work for another one. */
static void share(struct wr_host_pool *group)
{
	struct wr_host_worker *other = group->ready ? wr_host_pool_wake_locked(group) : NULL;

	if (other)
		unpark_unlocked(group->fifo, other);
}

static struct wr_host_worker *stirred_locked(struct wr_fifo *fifo)
{
	struct wr_host_pool *group = fifo->groups;

	while (!group->stirred)
		group = group->next;
	group->stirred = false;
	fifo->stirred--;
	return group->ready ? wr_host_pool_wake_locked(group) : NULL;
}

/* A record has let lines of other groups go on. */
static void tell_others(struct wr_fifo *fifo)
{
	while (fifo->stirred) {
		struct wr_host_worker *runner = stirred_locked(fifo);

		if (runner)
			unpark_unlocked(fifo, runner);
	}
}

/* From here on the line is this runner's, also while the lock is left: nobody destroys it. */
static struct wr_host_stream *hold_locked(struct wr_host_pool *group, int64_t *until)
{
	struct wr_host_stream *line = take_locked(group, until);

	if (line) {
		line->running = true;
		group->fifo->running++;
	}
	return line;
}

static void release_locked(struct wr_host_stream *line)
{
	struct wr_fifo *fifo = line->fifo;

	line->running = false;
	fifo->running--;
	if (fifo->leaving)
		wr_cond_broadcast(&fifo->returned);
}

static void run(void *arg)
{
	struct wr_host_worker *self = arg;
	struct wr_host_pool *group = self->group;
	struct wr_fifo *fifo = group->fifo;
	int64_t until;

	wr_mutex_lock(&fifo->lock);
	while (!fifo->stopping) {
		struct wr_host_stream *line = hold_locked(group, &until);

		if (!line) {
			sleep_until(self, until);
			continue;
		}
		share(group);
		step(line);
		release_locked(line);
		tell_others(fifo);
	}
	wr_mutex_unlock(&fifo->lock);
}

bool wr_fifo_quiet(struct wr_fifo *fifo)
{
	bool quiet, more = false;

	wr_mutex_lock(&fifo->lock);
	for (const struct wr_host_pool *group = fifo->groups; group; group = group->next)
		more |= group->ready && after_fault(fifo);
	quiet = fifo->faulted && !fifo->running && !more;
	wr_mutex_unlock(&fifo->lock);
	return quiet;
}
