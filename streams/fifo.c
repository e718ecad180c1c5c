/*
 * Queues and events: what is enqueued, and who waits for whom. Who runs it: runners.c.
 *
 * A mark counts: `recorded` when a record is enqueued, `reached` when it has run. Query and wait are about
 * `recorded` as it was when they were called, as with CUDA's events.
 *
 * A kernel's failure is sticky: `fault` is set, nothing more is run and no call is made, until everything is
 * destroyed.
 */
#include "streams/fifo.h"

#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/status.h"
#include "streams/runners.h"

/* --- who is ready --- */

void wr_host_stream_ready_locked(struct wr_host_stream *line)
{
	struct wr_host_pool *group = line->group;
	const struct wr_fifo_rules *rules = line->fifo->rules;
	void *arg = line->fifo->arg;

	line->due = rules ? wr_time_add(rules->now(arg), rules->delay(arg, line->first->work)) : 0;
	line->next = NULL;
	line->busy = true;
	*group->ready_end = line;
	group->ready_end = &line->next;
}

struct wr_host_stream *wr_host_stream_unlink_locked(struct wr_host_pool *group, struct wr_host_stream **at)
{
	struct wr_host_stream *line = *at;

	*at = line->next;
	if (!*at)
		group->ready_end = at;
	return line;
}

/* Its runners are told by whoever made it so, once he has left the lock. */
static void stir_locked(struct wr_host_pool *group)
{
	if (group->stirred)
		return;
	group->stirred = true;
	group->fifo->stirred++;
}

static void release_parked_locked(struct wr_host_event *mark, const struct wr_host_pool *here)
{
	struct wr_host_stream **at = &mark->parked, *line;

	while ((line = *at) != NULL) {
		if (line->first->mark.count > mark->reached) {
			at = &line->next;
			continue;
		}
		*at = line->next;
		wr_host_stream_ready_locked(line);
		if (line->group != here)
			stir_locked(line->group);
	}
}

bool wr_host_stream_park_locked(struct wr_host_stream *line)
{
	struct wr_host_event *mark = line->first->mark.mark;

	if (mark->reached >= line->first->mark.count)
		return false;
	line->next = mark->parked;
	mark->parked = line;
	return true;
}

void wr_host_stream_reach_locked(struct wr_host_stream *line)
{
	struct wr_host_event *mark = line->first->mark.mark;

	if (mark->reached < line->first->mark.count)
		mark->reached = line->first->mark.count;
	release_parked_locked(mark, line->group);
}

/* --- tasks --- */

struct wr_task *wr_task_locked(struct wr_fifo *fifo)
{
	struct wr_task *task = fifo->spare;

	if (task)
		fifo->spare = task->next;
	else
		task = wr_alloc(1, sizeof *task);
	if (task)
		task->next = NULL;
	return task;
}

static void append_locked(struct wr_host_stream *line, struct wr_task *task)
{
	if (line->first)
		line->last->next = task;
	else
		line->first = task;
	line->last = task;
	if (!line->busy)
		wr_host_stream_ready_locked(line);
}

void wr_host_stream_pop_locked(struct wr_host_stream *line)
{
	struct wr_task *task = line->first;

	line->first = task->next;
	task->next = line->fifo->spare;
	line->fifo->spare = task;
}

void wr_tasks_free(struct wr_task *task)
{
	while (task) {
		struct wr_task *next = task->next;

		wr_free(task);
		task = next;
	}
}

/* --- lines and marks --- */

static weir_status make(struct wr_host_pool *group, struct wr_host_stream **out)
{
	struct wr_host_stream *line = wr_alloc(1, sizeof *line);

	if (!line)
		return WEIR_E_NOMEM;
	line->fifo = group->fifo;
	line->group = group;
	*out = line;
	return WEIR_OK;
}

weir_status wr_host_stream_open(struct wr_fifo *fifo, int device, unsigned flags, void *partition,
			 struct wr_host_stream **out)
{
	struct wr_host_pool *group = partition ? partition : fifo->device[device];
	weir_status status;

	if (partition && flags & WEIR_STREAM_BLOCKING)
		return wr_fail(WEIR_E_INVALID,
			       "the streams of a green context are non-blocking: it takes no blocking ones");
	status = wr_host_pool_start(group);
	if (status)
		return status;
	if (!(flags & WEIR_STREAM_BLOCKING))
		return make(group, out);
	*out = &group->standing;
	return WEIR_OK;
}

/*
 * After a fault the line may still stand in the ready list. A runner may still be on its way back from a
 * call, though all that the call was to tell is known: its last touch of the line is waited for.
 */
void wr_host_stream_destroy(struct wr_host_stream *line)
{
	struct wr_fifo *fifo = line->fifo;

	if (line == &line->group->standing)
		return;
	wr_mutex_lock(&fifo->lock);
	fifo->leaving++;
	while (line->running)
		wr_cond_wait(&fifo->returned, &fifo->lock, WR_FOREVER);
	fifo->leaving--;
	for (struct wr_host_stream **at = &line->group->ready; *at; at = &(*at)->next)
		if (*at == line) {
			wr_host_stream_unlink_locked(line->group, at);
			break;
		}
	wr_mutex_unlock(&fifo->lock);
	wr_tasks_free(line->first);
	wr_free(line);
}

weir_status wr_host_event_create(struct wr_fifo *fifo, struct wr_host_event **out)
{
	struct wr_host_event *mark = wr_alloc(1, sizeof *mark);

	if (!mark)
		return WEIR_E_NOMEM;
	mark->fifo = fifo;
	*out = mark;
	return WEIR_OK;
}

void wr_host_event_destroy(struct wr_host_event *mark)
{
	wr_free(mark);
}

/* --- enqueueing --- */

/* Gives a task to fill, with the lock held; NULL: it is not held. */
static struct wr_task *begin(struct wr_host_stream *line, enum wr_work work, weir_status *status)
{
	struct wr_fifo *fifo = line->fifo;
	struct wr_task *task;
	bool faulted;

	wr_mutex_lock(&fifo->lock);
	faulted = fifo->faulted;
	task = faulted ? NULL : wr_task_locked(fifo);
	if (!task) {
		wr_mutex_unlock(&fifo->lock);
		*status = faulted ? wr_fail(WEIR_E_DEVICE, "%s", fifo->fault) : WEIR_E_NOMEM;
		return NULL;
	}
	task->work = work;
	task->again = false;
	return task;
}

static weir_status end(struct wr_host_stream *line, struct wr_task *task)
{
	struct wr_fifo *fifo = line->fifo;
	bool was_busy = line->busy;
	struct wr_host_worker *runner;

	append_locked(line, task);
	runner = was_busy ? NULL : wr_host_pool_wake_locked(line->group);
	wr_mutex_unlock(&fifo->lock);
	if (runner)
		wr_unpark(&runner->parker);
	return WEIR_OK;
}

weir_status wr_host_stream_kernel(struct wr_host_stream *line, const weir_kernel *kernel, const void *arguments,
			   size_t bytes)
{
	weir_status status;
	struct wr_task *task;

	if (!kernel->host)
		return wr_fail(WEIR_E_UNSUPPORTED, "kernel '%s' has no form for the host", kernel->name);
	task = begin(line, WR_WORK_KERNEL, &status);
	if (!task)
		return status;
	task->kernel.host = kernel->host;
	task->kernel.name = kernel->name;
	if (bytes)
		memcpy(task->kernel.arguments, arguments, bytes);
	return end(line, task);
}

weir_status wr_host_stream_copy(struct wr_host_stream *line, void *to, const void *from, size_t bytes)
{
	weir_status status;
	struct wr_task *task = begin(line, WR_WORK_COPY, &status);

	if (!task)
		return status;
	task->copy.to = to;
	task->copy.from = from;
	task->copy.bytes = bytes;
	return end(line, task);
}

weir_status wr_host_stream_call(struct wr_host_stream *line, void (*fn)(void *), void *arg)
{
	weir_status status;
	struct wr_task *task = begin(line, WR_WORK_CALL, &status);

	if (!task)
		return status;
	task->call.fn = fn;
	task->call.arg = arg;
	return end(line, task);
}

weir_status wr_host_stream_write_flag(struct wr_host_stream *line, _Atomic uint32_t *word, uint32_t value)
{
	weir_status status;
	struct wr_task *task = begin(line, WR_WORK_FLAG, &status);

	if (!task)
		return status;
	task->flag.word = word;
	task->flag.value = value;
	return end(line, task);
}

weir_status wr_host_stream_record(struct wr_host_stream *line, struct wr_host_event *mark)
{
	weir_status status;
	struct wr_task *task = begin(line, WR_WORK_RECORD, &status);

	if (!task)
		return status;
	task->mark.mark = mark;
	task->mark.count = ++mark->recorded;
	return end(line, task);
}

weir_status wr_host_stream_wait(struct wr_host_stream *line, struct wr_host_event *mark)
{
	weir_status status;
	struct wr_task *task = begin(line, WR_WORK_WAIT, &status);

	if (!task)
		return status;
	task->mark.mark = mark;
	task->mark.count = mark->recorded;
	return end(line, task);
}

weir_status wr_host_event_query(struct wr_host_event *mark)
{
	struct wr_fifo *fifo = mark->fifo;
	bool reached, faulted;

	wr_mutex_lock(&fifo->lock);
	reached = mark->reached >= mark->recorded;
	faulted = fifo->faulted;
	wr_mutex_unlock(&fifo->lock);
	if (faulted)
		return wr_fail(WEIR_E_DEVICE, "%s", fifo->fault); /* sticky, also for what is complete (E3) */
	return reached ? WEIR_OK : WEIR_E_BUSY;
}
