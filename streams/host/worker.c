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
#include "streams/host/host.h"

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
	return stream->first->work != WR_WORK_CALL || !stream->pool->calling || !stream->executor->rules;
}

/* Returns one of the streams that are due, or NULL; *until is when the next one will be due. */
static struct wr_host_stream *pool_take_by_rules_locked(struct wr_host_pool *pool, int64_t *until)
{
	struct wr_executor *executor = pool->executor;
	int64_t now = executor->rules->now(executor->arg);
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
	chosen = executor->rules->choose(executor->arg, due);
	for (struct wr_host_stream **at = &pool->ready;; at = &(*at)->next)
		if (may_run_locked(*at) && (*at)->due <= now && !chosen--)
			return wr_host_stream_unlink_locked(pool, at);
}

static bool after_fault(const struct wr_executor *executor)
{
	return executor->rules && executor->rules->after_fault(executor->arg);
}

/* Takes a stream for this worker: it is not destroyed while the lock is left. */
static struct wr_host_stream *pool_take_locked(struct wr_host_pool *pool, int64_t *until)
{
	struct wr_executor *executor = pool->executor;
	struct wr_host_stream *stream;

	*until = WR_FOREVER;
	if (!pool->ready || (wr_read(&executor->faulted) && !after_fault(executor)))
		return NULL;
	stream = executor->rules ? pool_take_by_rules_locked(pool, until)
				 : wr_host_stream_unlink_locked(pool, &pool->ready);
	if (stream) {
		stream->running = true;
		executor->running++;
	}
	return stream;
}

static void fault_locked(struct wr_executor *executor, const char *name, int code)
{
	if (wr_read(&executor->faulted))
		return;
	snprintf(executor->fault, sizeof executor->fault, "kernel '%s' failed with code %d", name, code);
	wr_store_release(&executor->faulted, true);
}

/* --- running --- */

/* *name: of the kernel that failed. */
static int task_execute(struct wr_task *task, const char **name)
{
	const weir_copy *copy = &task->copy;
	int code = 0;

	switch (task->work) {
	case WR_WORK_KERNEL:
		*name = task->kernel.name;
		return task->kernel.host(task->kernel.arguments);
	case WR_WORK_COPY:
		for (size_t i = 0; i < copy->rows; i++)
			memcpy((char *)copy->to + i * copy->to_stride,
			       (const char *)copy->from + i * copy->from_stride, copy->row_bytes);
		break;
	case WR_WORK_CALL:
		if (task->call.word)
			wr_store(task->call.word, task->call.value);
		task->call.fn(task->call.arg);
		break;
	case WR_WORK_FLAG:
		wr_store(task->flag.word, task->flag.value);
		break;
	case WR_WORK_GRAPH:
		for (struct wr_task *item = task->graph->items; item && !code; item = item->next)
			code = task_execute(item, name);
		break;
	case WR_WORK_RECORD:
	case WR_WORK_WAIT:
		break;
	}
	return code;
}

static void worker_main(void *arg);

weir_status wr_host_worker_start(struct wr_host_pool *pool, unsigned i)
{
	pool->workers[i].pool = pool;
	return wr_thread_start(&pool->workers[i].thread, "weir-stream", worker_main, &pool->workers[i]);
}

static void task_run_unlocked(struct wr_host_stream *stream, struct wr_task *task)
{
	struct wr_host_pool *pool = stream->pool;
	struct wr_executor *executor = stream->executor;
	/* A kernel may sleep in virtual time: another worker must run the other streams meanwhile. */
	bool sleeps = executor->rules && (task->work == WR_WORK_KERNEL || task->work == WR_WORK_GRAPH);
	unsigned another = sleeps && !pool->idle && pool->started < pool->room ? pool->started++ : 0;
	bool opens = executor->strict && task->work != WR_WORK_CALL;
	const char *name = "copy";
	int code;

	pool->calling |= task->work == WR_WORK_CALL;
	wr_spin_unlock(&executor->lock);
	if (another) /* the pool works without it, so a failure is ignored */
		(void)wr_host_worker_start(pool, another);
	if (opens)
		wr_closed_open(&executor->memory);
	code = task_execute(task, &name);
	if (opens)
		wr_closed_close(&executor->memory);
	wr_spin_lock(&executor->lock);
	if (task->work == WR_WORK_CALL)
		pool->calling = false;
	if (code)
		fault_locked(executor, name, code);
}

/* Enqueues the same callback a second time, behind all that is enqueued by now (F06). */
static void task_repeat_locked(struct wr_host_stream *stream)
{
	struct wr_task *again = wr_task_locked(stream->executor);

	if (!again)
		return;
	*again = *stream->first;
	again->next = NULL;
	again->again = true;
	stream->last->next = again;
	stream->last = again;
}

static const char *task_name(const struct wr_task *task)
{
	if (task->work == WR_WORK_GRAPH)
		return task_name(task->graph->items);
	return task->work == WR_WORK_KERNEL ? task->kernel.name : "copy";
}

static void task_run_by_fate(struct wr_host_stream *stream)
{
	struct wr_executor *executor = stream->executor;
	struct wr_task *task = stream->first;
	enum wr_fate fate = executor->rules ? executor->rules->fate(executor->arg, task->work) : WR_FATE_RUN;

	if (wr_read(&executor->faulted) && task->work != WR_WORK_CALL)
		return;
	if (fate == WR_FATE_FAULT)
		fault_locked(executor, task_name(task), 1);
	else if (fate != WR_FATE_LOSE)
		task_run_unlocked(stream, task);
	if (fate == WR_FATE_TWICE && !task->again)
		task_repeat_locked(stream);
}

/* Called with the lock held, which is left while a task is executed. */
static void stream_step(struct wr_host_stream *stream)
{
	struct wr_executor *executor = stream->executor;

	switch (stream->first->work) {
	case WR_WORK_WAIT:
		if (!wr_read(&executor->faulted) && wr_host_stream_park_locked(stream))
			return;
		break;
	case WR_WORK_RECORD:
		if (!wr_read(&executor->faulted))
			wr_host_stream_reach_locked(stream);
		break;
	case WR_WORK_CALL:
		if (!wr_read(&executor->faulted) && wr_host_stream_park_locked(stream))
			return;
		task_run_by_fate(stream);
		break;
	case WR_WORK_KERNEL:
	case WR_WORK_COPY:
	case WR_WORK_FLAG:
	case WR_WORK_GRAPH:
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
	struct wr_host_pool *pool = worker->pool;
	struct wr_executor *executor = pool->executor;

	worker->next = pool->idle;
	worker->idle = true;
	pool->idle = worker;
	wr_spin_unlock(&executor->lock);
	wr_park(&worker->parker, until);
	wr_spin_lock(&executor->lock);
	for (struct wr_host_worker **at = &pool->idle; worker->idle; at = &(*at)->next)
		if (*at == worker) {
			*at = worker->next;
			worker->idle = false;
			break;
		}
}

/* Wakes a worker if a stream is ready; leaves the lock meanwhile. */
static void wake_worker(struct wr_host_pool *pool)
{
	struct wr_host_worker *worker = pool->ready ? wr_host_pool_wake_locked(pool) : NULL;

	if (!worker)
		return;
	wr_spin_unlock(&pool->executor->lock);
	wr_unpark(&worker->parker);
	wr_spin_lock(&pool->executor->lock);
}

/* A record may have made streams of other pools ready: wakes a worker in each. */
static void wake_other_pools(struct wr_executor *executor)
{
	while (executor->pools_to_wake) {
		struct wr_host_pool *pool = executor->pools;

		while (!pool->to_wake)
			pool = pool->next;
		pool->to_wake = false;
		executor->pools_to_wake--;
		wake_worker(pool);
	}
}

static void worker_main(void *arg)
{
	struct wr_host_worker *self = arg;
	struct wr_host_pool *pool = self->pool;
	struct wr_executor *executor = pool->executor;
	int64_t until;

	if (executor->strict)
		wr_closed_open_thread(&executor->memory);
	wr_spin_lock(&executor->lock);
	while (!executor->stopping) {
		struct wr_host_stream *stream = pool_take_locked(pool, &until);

		if (!stream) {
			worker_sleep(self, until);
			continue;
		}
		wake_worker(pool); /* another one, for the rest */
		stream_step(stream);
		stream->running = false;
		executor->running--;
		if (stream->returned) /* the stream is destroyed as soon as this thread leaves the lock */
			wr_unpark(stream->returned);
		wake_other_pools(executor);
	}
	wr_spin_unlock(&executor->lock);
}

bool wr_host_stopped(void *self)
{
	struct wr_executor *executor = self;
	bool quiet, more = false;

	wr_spin_lock(&executor->lock);
	for (const struct wr_host_pool *pool = executor->pools; pool; pool = pool->next)
		more |= pool->ready && after_fault(executor);
	quiet = wr_read(&executor->faulted) && !executor->running && !more;
	wr_spin_unlock(&executor->lock);
	return quiet;
}
