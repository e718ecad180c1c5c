/*
 * Host workers: threads (or fibers) that take a ready stream and execute its first task, over and over.
 *
 * With rules (sim), a pool makes one callback at a time, as CUDA's driver does. A kernel that sleeps in
 * virtual time occupies a worker, so a device starts another worker when its last idle one begins a kernel. A
 * partition does not: its size is its number of workers.
 *
 * The lock is left in three places: while a task is executed, while another worker is woken or started, and
 * in sleep. The stream that a worker has taken is `running` meanwhile, so that it is not destroyed.
 */
#include "streams/host/runners.h"

#include <stdio.h>
#include <string.h>

/* --- choosing a stream; all with the lock held --- */

struct wr_host_worker *wr_host_pool_wake_locked(struct wr_host_pool *pool)
{
	struct wr_host_worker *worker = pool->idle;

	if (worker) {
		pool->idle = worker->next;
		worker->idle = false;
	}
	return worker;
}

static bool may_run_locked(const struct wr_host_stream *stream)
{
	return stream->first->work != WR_WORK_CALL || !stream->group->calling || !stream->fifo->rules;
}

/* Returns one of the streams that are due, or NULL; *until is when the next one will be due. */
static struct wr_host_stream *pool_take_by_rules_locked(struct wr_host_pool *pool, int64_t *until)
{
	struct wr_fifo *fifo = pool->fifo;
	int64_t now = fifo->rules->now(fifo->arg);
	size_t due = 0, chosen;

	for (struct wr_host_stream *stream = pool->ready; stream; stream = stream->next) {
		if (!may_run_locked(stream))
			continue;
		if (stream->due <= now)
			due++;
		else if (stream->due < *until)
			*until = stream->due;
	}
	if (!due)
		return NULL;
	chosen = fifo->rules->choose(fifo->arg, due);
	for (struct wr_host_stream **at = &pool->ready;; at = &(*at)->next)
		if (may_run_locked(*at) && (*at)->due <= now && !chosen--)
			return wr_host_stream_unlink_locked(pool, at);
}

static bool after_fault(const struct wr_fifo *fifo)
{
	return fifo->rules && fifo->rules->after_fault(fifo->arg);
}

static struct wr_host_stream *pool_take_locked(struct wr_host_pool *pool, int64_t *until)
{
	const struct wr_fifo *fifo = pool->fifo;

	*until = WR_FOREVER;
	if (!pool->ready || (fifo->faulted && !after_fault(fifo)))
		return NULL;
	return fifo->rules ? pool_take_by_rules_locked(pool, until)
			   : wr_host_stream_unlink_locked(pool, &pool->ready);
}

static void fault_locked(struct wr_fifo *fifo, const char *name, int code)
{
	if (fifo->faulted)
		return;
	fifo->faulted = true;
	snprintf(fifo->fault, sizeof fifo->fault, "kernel '%s' failed with code %d", name, code);
}

/* --- running --- */

static int task_execute(struct wr_task *task)
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

/* A kernel may sleep in virtual time: another worker must run the other streams meanwhile. */
static bool needs_another_locked(const struct wr_host_pool *pool, const struct wr_task *task)
{
	return pool->fifo->rules && task->work == WR_WORK_KERNEL && !pool->idle && pool->started < pool->room;
}

static void worker_main(void *arg);

weir_status wr_host_worker_start(struct wr_host_pool *pool, unsigned i)
{
	pool->runners[i].group = pool;
	return wr_thread_start(&pool->runners[i].thread, "weir-stream", worker_main, &pool->runners[i]);
}

static void task_run_unlocked(struct wr_host_stream *stream, struct wr_task *task)
{
	struct wr_host_pool *pool = stream->group;
	struct wr_fifo *fifo = stream->fifo;
	unsigned another = needs_another_locked(pool, task) ? pool->started++ : 0;
	int code;

	pool->calling |= task->work == WR_WORK_CALL;
	wr_mutex_unlock(&fifo->lock);
	if (another) /* the pool works without it, so a failure is ignored */
		(void)wr_host_worker_start(pool, another);
	code = task_execute(task);
	wr_mutex_lock(&fifo->lock);
	if (task->work == WR_WORK_CALL)
		pool->calling = false;
	if (code)
		fault_locked(fifo, task->kernel.name, code);
}

/* Enqueues the same callback a second time, behind all that is enqueued by now (F06). */
static void task_repeat_locked(struct wr_host_stream *stream)
{
	struct wr_task *again = wr_task_locked(stream->fifo);

	if (!again)
		return;
	*again = *stream->first;
	again->next = NULL;
	again->again = true;
	stream->last->next = again;
	stream->last = again;
}

static void task_run_by_fate(struct wr_host_stream *stream)
{
	struct wr_fifo *fifo = stream->fifo;
	struct wr_task *task = stream->first;
	enum wr_fate fate = fifo->rules ? fifo->rules->fate(fifo->arg, task->work) : WR_FATE_RUN;

	if (fifo->faulted && task->work != WR_WORK_CALL)
		return;
	if (fate == WR_FATE_FAULT)
		fault_locked(fifo, task->work == WR_WORK_KERNEL ? task->kernel.name : "copy", 1);
	else if (fate != WR_FATE_LOSE)
		task_run_unlocked(stream, task);
	if (fate == WR_FATE_TWICE && !task->again)
		task_repeat_locked(stream);
}

/* Called with the lock held, which is left while a task is executed. */
static void stream_step(struct wr_host_stream *stream)
{
	struct wr_fifo *fifo = stream->fifo;

	switch (stream->first->work) {
	case WR_WORK_WAIT:
		if (!fifo->faulted && wr_host_stream_park_locked(stream))
			return;
		break;
	case WR_WORK_RECORD:
		if (!fifo->faulted)
			wr_host_stream_reach_locked(stream);
		break;
	case WR_WORK_KERNEL:
	case WR_WORK_COPY:
	case WR_WORK_CALL:
	case WR_WORK_FLAG:
		task_run_by_fate(stream);
		break;
	}
	wr_host_stream_pop_locked(stream);
	if (stream->first)
		wr_host_stream_ready_locked(stream);
	else
		stream->busy = false;
}

static void worker_sleep(struct wr_host_worker *worker, int64_t until)
{
	struct wr_host_pool *pool = worker->group;
	struct wr_fifo *fifo = pool->fifo;

	worker->next = pool->idle;
	worker->idle = true;
	pool->idle = worker;
	wr_mutex_unlock(&fifo->lock);
	wr_park(&worker->parker, until);
	wr_mutex_lock(&fifo->lock);
	for (struct wr_host_worker **at = &pool->idle; worker->idle; at = &(*at)->next)
		if (*at == worker) {
			*at = worker->next;
			worker->idle = false;
			break;
		}
}

static void worker_unpark_unlocked(struct wr_fifo *fifo, struct wr_host_worker *worker)
{
	wr_mutex_unlock(&fifo->lock);
	wr_unpark(&worker->parker);
	wr_mutex_lock(&fifo->lock);
}

/* Wakes another worker if more streams are ready. */
static void wake_another(struct wr_host_pool *pool)
{
	struct wr_host_worker *other = pool->ready ? wr_host_pool_wake_locked(pool) : NULL;

	if (other)
		worker_unpark_unlocked(pool->fifo, other);
}

static struct wr_host_worker *pool_stirred_locked(struct wr_fifo *fifo)
{
	struct wr_host_pool *pool = fifo->groups;

	while (!pool->stirred)
		pool = pool->next;
	pool->stirred = false;
	fifo->stirred--;
	return pool->ready ? wr_host_pool_wake_locked(pool) : NULL;
}

/* A record may have made streams of other pools ready: wakes a worker in each. */
static void wake_stirred_pools(struct wr_fifo *fifo)
{
	while (fifo->stirred) {
		struct wr_host_worker *worker = pool_stirred_locked(fifo);

		if (worker)
			worker_unpark_unlocked(fifo, worker);
	}
}

/* Takes a stream for this worker: it is not destroyed while the lock is left. */
static struct wr_host_stream *pool_hold_stream_locked(struct wr_host_pool *pool, int64_t *until)
{
	struct wr_host_stream *stream = pool_take_locked(pool, until);

	if (stream) {
		stream->running = true;
		pool->fifo->running++;
	}
	return stream;
}

static void stream_release_locked(struct wr_host_stream *stream)
{
	struct wr_fifo *fifo = stream->fifo;

	stream->running = false;
	fifo->running--;
	if (fifo->leaving)
		wr_cond_broadcast(&fifo->returned);
}

static void worker_main(void *arg)
{
	struct wr_host_worker *self = arg;
	struct wr_host_pool *pool = self->group;
	struct wr_fifo *fifo = pool->fifo;
	int64_t until;

	wr_mutex_lock(&fifo->lock);
	while (!fifo->stopping) {
		struct wr_host_stream *stream = pool_hold_stream_locked(pool, &until);

		if (!stream) {
			worker_sleep(self, until);
			continue;
		}
		wake_another(pool);
		stream_step(stream);
		stream_release_locked(stream);
		wake_stirred_pools(fifo);
	}
	wr_mutex_unlock(&fifo->lock);
}

bool wr_fifo_quiet(struct wr_fifo *fifo)
{
	bool quiet, more = false;

	wr_mutex_lock(&fifo->lock);
	for (const struct wr_host_pool *pool = fifo->groups; pool; pool = pool->next)
		more |= pool->ready && after_fault(fifo);
	quiet = fifo->faulted && !fifo->running && !more;
	wr_mutex_unlock(&fifo->lock);
	return quiet;
}
