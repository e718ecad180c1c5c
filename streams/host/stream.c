/*
 * Host streams and events: enqueueing, and parking streams that wait. The workers that run them: worker.c.
 *
 * An event counts its records: `recorded` when one is enqueued, `reached` when it has run. Query and wait
 * refer to `recorded` at the time of the call, as with CUDA events.
 *
 * A stream that has nothing to do but wait is parked by the thread that enqueues the wait: no worker is woken
 * for it. Simulated streams are not, since each of their operations begins after a delay of its own.
 *
 * A failed kernel is sticky, as on CUDA: from then on no task is run and no host callback is made.
 */
#include "streams/host/host.h"

#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/status.h"

/* --- ready and parked streams --- */

void wr_host_stream_ready_locked(struct wr_host_stream *stream)
{
	struct wr_host_pool *pool = stream->pool;
	const struct wr_executor_rules *rules = stream->executor->rules;
	void *arg = stream->executor->arg;

	stream->due = rules ? wr_time_add(rules->now(arg), rules->delay(arg, stream->first->work)) : 0;
	stream->next = NULL;
	stream->busy = true;
	*pool->ready_end = stream;
	pool->ready_end = &stream->next;
}

struct wr_host_stream *wr_host_stream_unlink_locked(struct wr_host_pool *pool, struct wr_host_stream **at)
{
	struct wr_host_stream *stream = *at;

	*at = stream->next;
	if (!*at)
		pool->ready_end = at;
	return stream;
}

static void event_unpark_locked(struct wr_host_event *event, uint64_t reached,
				const struct wr_host_pool *here)
{
	struct wr_host_stream **at = &event->parked, *stream;

	while ((stream = *at) != NULL) {
		if (stream->first->count > reached) {
			at = &stream->next;
			continue;
		}
		*at = stream->next;
		wr_host_stream_ready_locked(stream);
		/* The worker that made a stream of another pool ready wakes that pool once it has left the
		 * lock. */
		if (stream->pool != here && !stream->pool->to_wake) {
			stream->pool->to_wake = true;
			stream->executor->pools_to_wake++;
		}
	}
}

bool wr_host_stream_park_locked(struct wr_host_stream *stream)
{
	struct wr_host_event *event = stream->first->event;

	if (!event || wr_read(&event->reached) >= stream->first->count)
		return false;
	stream->next = event->parked;
	event->parked = stream;
	return true;
}

void wr_host_stream_reach_locked(struct wr_host_stream *stream)
{
	struct wr_host_event *event = stream->first->event;
	const struct wr_executor *executor = stream->executor;
	uint64_t reached = wr_read(&event->reached);

	if (reached < stream->first->count)
		reached = stream->first->count;
	if (event->timer)
		event->reached_at = executor->rules ? executor->rules->now(executor->arg) : wr_now();
	event_unpark_locked(event, reached, stream->pool);
	wr_store_release(&event->reached, reached); /* last: a thread that sees it may destroy the event */
}

/* --- tasks --- */

struct wr_task *wr_task_locked(struct wr_executor *executor)
{
	struct wr_task *task = executor->spare;

	if (task)
		executor->spare = task->next;
	else
		task = wr_alloc(1, sizeof *task);
	if (task)
		task->next = NULL;
	return task;
}

void wr_host_stream_pop_locked(struct wr_host_stream *stream)
{
	struct wr_task *task = stream->first;

	stream->first = task->next;
	task->next = stream->executor->spare;
	stream->executor->spare = task;
}

void wr_tasks_free(struct wr_task *task)
{
	while (task) {
		struct wr_task *next = task->next;

		wr_free(task);
		task = next;
	}
}

/* --- streams and events --- */

weir_status wr_host_stream_create(void *self, int device, unsigned flags, int priority, void *partition,
				  void **out)
{
	const struct wr_executor *executor = self;
	struct wr_host_pool *pool = partition ? partition : executor->device[device];
	struct wr_host_stream *stream = &pool->default_stream;
	weir_status status;

	(void)priority;
	if (partition && flags & WR_STREAM_BLOCKING)
		return wr_fail(
			WEIR_E_INVALID,
			"the streams of a green context are always non-blocking: remove flag 'blocking'");
	status = wr_host_pool_start(pool);
	if (status)
		return status;
	if (!(flags & WR_STREAM_BLOCKING)) {
		stream = wr_alloc(1, sizeof *stream);
		if (!stream)
			return WEIR_E_NOMEM;
		stream->executor = pool->executor;
		stream->pool = pool;
	}
	*out = stream;
	return WEIR_OK;
}

weir_status wr_host_stream_default(void *self, int device, void **out)
{
	return wr_host_stream_create(self, device, WR_STREAM_BLOCKING, 0, NULL, out);
}

/*
 * Waits until no worker uses the stream: one may still be returning from a host callback whose effect is
 * already known. After a fault the stream may still be in the ready list.
 */
void wr_host_stream_destroy(void *self, void *handle)
{
	struct wr_executor *executor = self;
	struct wr_host_stream *stream = handle;
	struct wr_parker returned = {0};

	if (stream == &stream->pool->default_stream)
		return;
	wr_spin_lock(&executor->lock);
	while (stream->running) {
		stream->returned = &returned;
		wr_spin_unlock(&executor->lock);
		wr_park(&returned, WR_FOREVER);
		wr_spin_lock(&executor->lock); /* so the thread that unparked is done with the parker */
	}
	for (struct wr_host_stream **at = &stream->pool->ready; *at; at = &(*at)->next)
		if (*at == stream) {
			wr_host_stream_unlink_locked(stream->pool, at);
			break;
		}
	wr_spin_unlock(&executor->lock);
	wr_tasks_free(stream->first);
	wr_free(stream);
}

weir_status wr_host_event_create(void *self, int device, void **out)
{
	struct wr_host_event *event = wr_alloc(1, sizeof *event);

	(void)device;
	if (!event)
		return WEIR_E_NOMEM;
	event->executor = self;
	*out = event;
	return WEIR_OK;
}

void wr_host_event_destroy(void *self, void *event)
{
	(void)self;
	wr_free(event);
}

weir_status wr_host_timer_create(void *self, int device, void **out)
{
	weir_status status = wr_host_event_create(self, device, out);

	if (!status)
		((struct wr_host_event *)*out)->timer = true;
	return status;
}

weir_status wr_host_timer_read(void *self, int device, void *begin, void *end, int64_t *begun, int64_t *ended)
{
	struct wr_executor *executor = self;
	weir_status status = wr_host_query(self, begin);

	(void)device;
	if (!status)
		status = wr_host_query(self, end);
	if (status)
		return status;
	wr_spin_lock(&executor->lock);
	*begun = ((const struct wr_host_event *)begin)->reached_at;
	*ended = ((const struct wr_host_event *)end)->reached_at;
	wr_spin_unlock(&executor->lock);
	return WEIR_OK;
}

/* --- enqueueing --- */

static weir_status enqueue_failure(const struct wr_executor *executor, bool faulted, bool refused)
{
	if (faulted)
		return wr_fail(WEIR_E_DEVICE, "%s", executor->fault);
	return refused ? wr_fail(WEIR_E_FAILED, "the stream is being captured: kernels and copies alone go")
		       : WEIR_E_NOMEM;
}

/*
 * Returns a task to fill, with the lock held; on failure NULL, without it. Inlined, with enqueue_end, where a
 * gated tick enqueues.
 */
__attribute__((always_inline)) static inline struct wr_task *enqueue_begin(void *handle, enum wr_work work,
									   weir_status *status)
{
	const struct wr_host_stream *stream = handle;
	struct wr_executor *executor = stream->executor;
	struct wr_task *task;
	bool faulted, refused;

	wr_spin_lock(&executor->lock);
	faulted = wr_read(&executor->faulted);
	refused = stream->capture && work != WR_WORK_KERNEL && work != WR_WORK_COPY;
	task = faulted || refused ? NULL : wr_task_locked(executor);
	if (!task) {
		wr_spin_unlock(&executor->lock);
		*status = enqueue_failure(executor, faulted, refused);
		return NULL;
	}
	task->work = work;
	task->again = false;
	task->event = NULL;
	return task;
}

static void task_wait_locked(struct wr_task *task, struct wr_host_event *event)
{
	task->event = event;
	task->count = wr_read(&event->recorded);
}

static void task_append_locked(struct wr_host_stream *stream, struct wr_task *task)
{
	if (stream->first)
		stream->last->next = task;
	else
		stream->first = task;
	stream->last = task;
}

/* An idle stream begins its first task. Returns a worker to wake for it, or NULL. */
__attribute__((always_inline)) static inline struct wr_host_worker *
stream_begin_locked(struct wr_host_stream *stream)
{
	if (!stream->executor->rules && stream->first->work != WR_WORK_RECORD &&
	    wr_host_stream_park_locked(stream)) {
		stream->busy = true;
		return NULL;
	}
	wr_host_stream_ready_locked(stream);
	return wr_host_pool_wake_locked(stream->pool);
}

__attribute__((always_inline)) static inline weir_status enqueue_end(void *handle, struct wr_task *task)
{
	struct wr_host_stream *stream = handle;
	struct wr_executor *executor = stream->executor;
	struct wr_host_worker *worker = NULL;

	if (stream->capture) {
		wr_host_capture_append_locked(stream->capture, task);
	} else {
		task_append_locked(stream, task);
		if (!stream->busy)
			worker = stream_begin_locked(stream);
	}
	wr_spin_unlock(&executor->lock);
	if (worker)
		wr_unpark(&worker->parker);
	if (executor->rules)
		executor->rules->enqueued(executor->arg);
	return WEIR_OK;
}

struct wr_task *wr_host_enqueue_begin(void *stream, enum wr_work work, weir_status *status)
{
	return enqueue_begin(stream, work, status);
}

weir_status wr_host_enqueue_end(void *stream, struct wr_task *task)
{
	return enqueue_end(stream, task);
}

weir_status wr_host_launch(void *self, int device, void *stream, const weir_kernel *kernel,
			   const void *arguments, size_t bytes)
{
	weir_status status;
	struct wr_task *task;

	(void)self;
	(void)device;
	if (!kernel->host)
		return wr_fail(WEIR_E_UNSUPPORTED,
			       "kernel '%s' has no form for the host: set weir_kernel.host", kernel->name);
	task = enqueue_begin(stream, WR_WORK_KERNEL, &status);
	if (!task)
		return status;
	task->kernel.host = kernel->host;
	task->kernel.name = kernel->name;
	task->kernel.bytes = bytes;
	if (bytes)
		memcpy(task->kernel.arguments, arguments, bytes);
	return enqueue_end(stream, task);
}

weir_status wr_host_copy_rows(void *self, int device, void *stream, const weir_copy *copy)
{
	weir_status status;
	struct wr_task *task = wr_host_enqueue_begin(stream, WR_WORK_COPY, &status);

	(void)self;
	(void)device;
	if (!task)
		return status;
	task->copy = *copy;
	return wr_host_enqueue_end(stream, task);
}

weir_status wr_host_copy(void *self, int device, void *stream, void *to, const void *from, size_t bytes)
{
	weir_copy copy = {sizeof copy, to, from, 1, bytes, 0, 0};

	return wr_host_copy_rows(self, device, stream, &copy);
}

/* One task: it waits, writes the flag and makes the call. */
weir_status wr_host_signal(void *self, int device, void *stream, const struct wr_firing *firing)
{
	weir_status status;
	struct wr_task *task = enqueue_begin(stream, WR_WORK_CALL, &status);

	(void)self;
	(void)device;
	if (!task)
		return status;
	if (firing->event)
		task_wait_locked(task, firing->event);
	task->call.fn = firing->fn;
	task->call.arg = firing->arg;
	task->call.word = firing->word;
	task->call.value = firing->value;
	return enqueue_end(stream, task);
}

weir_status wr_host_call(void *self, int device, void *stream, void (*fn)(void *arg), void *arg)
{
	return wr_host_signal(self, device, stream, &(struct wr_firing){.fn = fn, .arg = arg});
}

weir_status wr_host_write_flag(void *self, int device, void *stream, _Atomic uint32_t *word, uint32_t value)
{
	weir_status status;
	struct wr_task *task = wr_host_enqueue_begin(stream, WR_WORK_FLAG, &status);

	(void)self;
	(void)device;
	if (!task)
		return status;
	task->flag.word = word;
	task->flag.value = value;
	return wr_host_enqueue_end(stream, task);
}

weir_status wr_host_record(void *self, int device, void *stream, void *handle)
{
	struct wr_host_event *event = handle;
	weir_status status;
	struct wr_task *task = enqueue_begin(stream, WR_WORK_RECORD, &status);

	(void)self;
	(void)device;
	if (!task)
		return status;
	task->event = event;
	task->count = wr_read(&event->recorded) + 1;
	wr_store_release(&event->recorded, task->count); /* a query that sees it sees what came before */
	return enqueue_end(stream, task);
}

weir_status wr_host_wait(void *self, int device, void *stream, void *handle)
{
	weir_status status;
	struct wr_task *task = wr_host_enqueue_begin(stream, WR_WORK_WAIT, &status);

	(void)self;
	(void)device;
	if (!task)
		return status;
	task_wait_locked(task, handle);
	return wr_host_enqueue_end(stream, task);
}

weir_status wr_host_query(void *self, void *handle)
{
	struct wr_executor *executor = self;
	struct wr_host_event *event = handle;
	uint64_t recorded = wr_load_acquire(&event->recorded);
	bool reached = wr_load_acquire(&event->reached) >= recorded;

	if (wr_load_acquire(&executor->faulted))
		return wr_fail(WEIR_E_DEVICE, "%s", executor->fault); /* even if the record has run (E3) */
	return reached ? WEIR_OK : WEIR_E_BUSY;
}
