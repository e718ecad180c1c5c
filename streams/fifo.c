/*
 * A line is ready, due at a time, when its first operation could run; parked when that is a wait for a mark
 * that was not reached; running while a runner is in its first operation; idle when it is empty. Only a ready
 * line is in the list, so a line is run by one runner at a time and its order is kept.
 *
 * A mark counts: `recorded` when a record is enqueued, `reached` when it has run. Query and wait are about
 * `recorded` as it was when they were called, as with CUDA's events.
 *
 * A kernel's failure is sticky: `fault` is set, nothing more is run and no call is made, until everything is
 * destroyed.
 *
 * Calls are made one at a time, as CUDA's driver does, where there are rules; kernels that sleep in a
 * simulated world occupy a runner, so there another one is started when the last idle one begins one.
 */
#include "streams/fifo.h"

#include <assert.h>
#include <stdalign.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/status.h"

enum { RUNNERS_MAX = 64 };

struct task {
	struct task *next;
	enum wr_work work;
	bool again; /* it was made once already */
	union {
		struct {
			int (*host)(const void *arguments);
			const char *name;
			alignas(16) unsigned char arguments[WEIR_ARGUMENTS_MAX];
		} kernel;
		struct {
			void *to;
			const void *from;
			size_t bytes;
		} copy;
		struct {
			void (*fn)(void *arg);
			void *arg;
		} call;
		struct {
			struct wr_mark *mark;
			uint64_t count;
		} mark;
	};
};

struct wr_mark {
	struct wr_fifo *fifo;
	uint64_t recorded, reached; /* guarded by fifo->lock */
	struct wr_line *parked;     /* linked by next; guarded by fifo->lock */
};

struct wr_line {
	struct wr_fifo *fifo;
	struct task *first, *last; /* these and the rest: guarded by fifo->lock */
	struct wr_line *next;      /* in the ready list, or among those parked on a mark */
	int64_t due;
	bool busy;    /* ready, parked or running: whoever adds a task leaves it alone */
	bool running; /* a runner has left the lock for its first task, and comes back to it */
};

struct runner {
	struct wr_fifo *fifo;
	struct wr_thread thread;
	struct wr_parker parker;
	struct runner *next; /* idle; guarded by fifo->lock */
	bool idle;
};

struct wr_fifo {
	struct wr_mutex lock;
	const struct wr_fifo_rules *rules;
	void *arg;
	struct runner runners[RUNNERS_MAX];
	unsigned started; /* this and the rest: guarded by lock */
	struct runner *idle;
	struct wr_line *ready, **ready_end;
	struct task *spare;
	unsigned running;
	bool calling, stopping, faulted;
	unsigned leaving;        /* threads that wait on `returned` */
	struct wr_cond returned; /* a runner is back from a task */
	char fault[160];
};

/* --- who is ready; all with the lock held --- */

static struct runner *wake_locked(struct wr_fifo *fifo)
{
	struct runner *runner = fifo->idle;

	if (runner) {
		fifo->idle = runner->next;
		runner->idle = false;
	}
	return runner;
}

static void make_ready_locked(struct wr_line *line)
{
	struct wr_fifo *fifo = line->fifo;
	const struct wr_fifo_rules *rules = fifo->rules;

	line->due =
		rules ? wr_time_add(rules->now(fifo->arg), rules->delay(fifo->arg, line->first->work)) : 0;
	line->next = NULL;
	line->busy = true;
	*fifo->ready_end = line;
	fifo->ready_end = &line->next;
}

static struct wr_line *unlink_locked(struct wr_fifo *fifo, struct wr_line **at)
{
	struct wr_line *line = *at;

	*at = line->next;
	if (!*at)
		fifo->ready_end = at;
	return line;
}

static bool may_run_locked(const struct wr_fifo *fifo, const struct wr_line *line)
{
	return line->first->work != WR_WORK_CALL || !fifo->calling || !fifo->rules;
}

/* One of those that are due, or NULL, and when the next one will be. */
static struct wr_line *take_by_rules_locked(struct wr_fifo *fifo, int64_t *until)
{
	int64_t now = fifo->rules->now(fifo->arg);
	size_t due = 0, chosen;

	for (struct wr_line *line = fifo->ready; line; line = line->next) {
		if (!may_run_locked(fifo, line))
			continue;
		if (line->due <= now)
			due++;
		else if (line->due < *until)
			*until = line->due;
	}
	if (!due)
		return NULL;
	chosen = fifo->rules->choose(fifo->arg, due);
	for (struct wr_line **at = &fifo->ready;; at = &(*at)->next)
		if (may_run_locked(fifo, *at) && (*at)->due <= now && !chosen--)
			return unlink_locked(fifo, at);
}

static struct wr_line *take_locked(struct wr_fifo *fifo, int64_t *until)
{
	*until = WR_FOREVER;
	if (!fifo->ready || (fifo->faulted && !(fifo->rules && fifo->rules->after_fault(fifo->arg))))
		return NULL;
	return fifo->rules ? take_by_rules_locked(fifo, until) : unlink_locked(fifo, &fifo->ready);
}

static void fault_locked(struct wr_fifo *fifo, const char *name, int code)
{
	if (fifo->faulted)
		return;
	fifo->faulted = true;
	snprintf(fifo->fault, sizeof fifo->fault, "kernel '%s' failed with code %d", name, code);
}

/* --- tasks --- */

static struct task *task_locked(struct wr_fifo *fifo)
{
	struct task *task = fifo->spare;

	if (task)
		fifo->spare = task->next;
	else
		task = wr_alloc(1, sizeof *task);
	if (task)
		task->next = NULL;
	return task;
}

static void append_locked(struct wr_line *line, struct task *task)
{
	if (line->first)
		line->last->next = task;
	else
		line->first = task;
	line->last = task;
	if (!line->busy)
		make_ready_locked(line);
}

static void pop_locked(struct wr_line *line)
{
	struct task *task = line->first;

	line->first = task->next;
	task->next = line->fifo->spare;
	line->fifo->spare = task;
}

static void release_parked_locked(struct wr_mark *mark)
{
	struct wr_line **at = &mark->parked, *line;

	while ((line = *at) != NULL) {
		if (line->first->mark.count > mark->reached) {
			at = &line->next;
			continue;
		}
		*at = line->next;
		make_ready_locked(line);
	}
}

/* True if the line waits on: it is parked then. */
static bool park_locked(struct wr_line *line)
{
	struct wr_mark *mark = line->first->mark.mark;

	if (mark->reached >= line->first->mark.count)
		return false;
	line->next = mark->parked;
	mark->parked = line;
	return true;
}

static void reach_locked(struct task *task)
{
	struct wr_mark *mark = task->mark.mark;

	if (mark->reached < task->mark.count)
		mark->reached = task->mark.count;
	release_parked_locked(mark);
}

/* --- running --- */

static int execute(struct task *task)
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
	case WR_WORK_RECORD:
	case WR_WORK_WAIT:
		break;
	}
	return 0;
}

/* A kernel may sleep in virtual time: somebody else must be there for the other lines meanwhile. */
static bool needs_another_locked(const struct wr_fifo *fifo, const struct task *task)
{
	return fifo->rules && task->work == WR_WORK_KERNEL && !fifo->idle && fifo->started < RUNNERS_MAX;
}

static void run_fifo(void *arg);

/*
 * Called without the lock, by a runner. One more is only a convenience: that there is no memory for it is no
 * failure.
 */
static void start_another(struct wr_fifo *fifo, unsigned i)
{
	fifo->runners[i].fifo = fifo;
	wr_thread_start(&fifo->runners[i].thread, "weir-stream", run_fifo, &fifo->runners[i]);
}

static void run_unlocked(struct wr_line *line, struct task *task)
{
	struct wr_fifo *fifo = line->fifo;
	unsigned another = needs_another_locked(fifo, task) ? fifo->started++ : 0;
	int code;

	fifo->running++;
	line->running = true;
	fifo->calling |= task->work == WR_WORK_CALL;
	wr_mutex_unlock(&fifo->lock);
	if (another)
		start_another(fifo, another);
	code = execute(task);
	wr_mutex_lock(&fifo->lock);
	fifo->running--;
	line->running = false;
	if (task->work == WR_WORK_CALL)
		fifo->calling = false;
	if (fifo->leaving)
		wr_cond_broadcast(&fifo->returned);
	if (code)
		fault_locked(fifo, task->kernel.name, code);
}

/* The same call once more, behind what is enqueued by now (F06). */
static void repeat_locked(struct wr_line *line)
{
	struct task *again = task_locked(line->fifo);

	if (!again)
		return;
	*again = *line->first;
	again->next = NULL;
	again->again = true;
	line->last->next = again;
	line->last = again;
}

static void run_by_fate(struct wr_line *line)
{
	struct wr_fifo *fifo = line->fifo;
	struct task *task = line->first;
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
static void step(struct wr_line *line)
{
	struct wr_fifo *fifo = line->fifo;

	switch (line->first->work) {
	case WR_WORK_WAIT:
		if (!fifo->faulted && park_locked(line))
			return;
		break;
	case WR_WORK_RECORD:
		if (!fifo->faulted)
			reach_locked(line->first);
		break;
	case WR_WORK_KERNEL:
	case WR_WORK_COPY:
	case WR_WORK_CALL:
		run_by_fate(line);
		break;
	}
	pop_locked(line);
	if (line->first)
		make_ready_locked(line);
	else
		line->busy = false;
}

static void sleep_until(struct runner *runner, int64_t until)
{
	struct wr_fifo *fifo = runner->fifo;

	runner->next = fifo->idle;
	runner->idle = true;
	fifo->idle = runner;
	wr_mutex_unlock(&fifo->lock);
	wr_park(&runner->parker, until);
	wr_mutex_lock(&fifo->lock);
	for (struct runner **at = &fifo->idle; runner->idle; at = &(*at)->next)
		if (*at == runner) {
			*at = runner->next;
			runner->idle = false;
			break;
		}
}

/* What is ready beside the line that this runner has is work for another one. */
static void share(struct wr_fifo *fifo)
{
	struct runner *other = fifo->ready ? wake_locked(fifo) : NULL;

	if (!other)
		return;
	wr_mutex_unlock(&fifo->lock);
	wr_unpark(&other->parker);
	wr_mutex_lock(&fifo->lock);
}

static void run_fifo(void *arg)
{
	struct runner *self = arg;
	struct wr_fifo *fifo = self->fifo;
	int64_t until;

	wr_mutex_lock(&fifo->lock);
	while (!fifo->stopping) {
		struct wr_line *line = take_locked(fifo, &until);

		if (!line) {
			sleep_until(self, until);
			continue;
		}
		share(fifo);
		step(line);
	}
	wr_mutex_unlock(&fifo->lock);
}

/* --- life --- */

static weir_status start_runners(struct wr_fifo *fifo, unsigned runners)
{
	weir_status status = WEIR_OK;

	for (unsigned i = 0; i < runners && !status; i++) {
		fifo->runners[i].fifo = fifo;
		status =
			wr_thread_start(&fifo->runners[i].thread, "weir-stream", run_fifo, &fifo->runners[i]);
		fifo->started += !status;
	}
	return fifo->started ? WEIR_OK : status; /* fewer are enough */
}

weir_status wr_fifo_create(struct wr_fifo **out, unsigned runners, const struct wr_fifo_rules *rules,
			   void *arg)
{
	struct wr_fifo *fifo = wr_alloc(1, sizeof *fifo);
	weir_status status;

	if (!fifo)
		return WEIR_E_NOMEM;
	fifo->rules = rules;
	fifo->arg = arg;
	fifo->ready_end = &fifo->ready;
	status = wr_mutex_init(&fifo->lock);
	if (!status)
		status = wr_cond_init(&fifo->returned);
	if (status) {
		wr_mutex_finish(&fifo->lock);
		wr_free(fifo);
		return status;
	}
	status = start_runners(fifo, runners < RUNNERS_MAX ? runners : RUNNERS_MAX);
	if (status) {
		wr_fifo_destroy(fifo);
		return status;
	}
	*out = fifo;
	return WEIR_OK;
}

static void free_tasks(struct task *task)
{
	while (task) {
		struct task *next = task->next;

		wr_free(task);
		task = next;
	}
}

void wr_fifo_destroy(struct wr_fifo *fifo)
{
	if (!fifo)
		return;
	wr_mutex_lock(&fifo->lock);
	fifo->stopping = true;
	wr_mutex_unlock(&fifo->lock);
	for (unsigned i = 0; i < fifo->started; i++)
		wr_unpark(&fifo->runners[i].parker);
	for (unsigned i = 0; i < fifo->started; i++)
		wr_thread_join(&fifo->runners[i].thread);
	free_tasks(fifo->spare);
	wr_cond_finish(&fifo->returned);
	wr_mutex_finish(&fifo->lock);
	wr_free(fifo);
}

bool wr_fifo_quiet(struct wr_fifo *fifo)
{
	wr_mutex_lock(&fifo->lock);
	bool more = fifo->ready && fifo->rules && fifo->rules->after_fault(fifo->arg);
	bool quiet = fifo->faulted && !fifo->running && !more;
	wr_mutex_unlock(&fifo->lock);
	return quiet;
}

weir_status wr_line_create(struct wr_fifo *fifo, struct wr_line **out)
{
	struct wr_line *line = wr_alloc(1, sizeof *line);

	if (!line)
		return WEIR_E_NOMEM;
	line->fifo = fifo;
	*out = line;
	return WEIR_OK;
}

/*
 * After a fault the line may still stand in the ready list. A runner may still be on its way back from a
 * call, though all that the call was to tell is known: its last touch of the line is waited for.
 */
void wr_line_destroy(struct wr_line *line)
{
	struct wr_fifo *fifo = line->fifo;

	wr_mutex_lock(&fifo->lock);
	fifo->leaving++;
	while (line->running)
		wr_cond_wait(&fifo->returned, &fifo->lock, WR_FOREVER);
	fifo->leaving--;
	for (struct wr_line **at = &fifo->ready; *at; at = &(*at)->next)
		if (*at == line) {
			unlink_locked(fifo, at);
			break;
		}
	wr_mutex_unlock(&fifo->lock);
	free_tasks(line->first);
	wr_free(line);
}

weir_status wr_mark_create(struct wr_fifo *fifo, struct wr_mark **out)
{
	struct wr_mark *mark = wr_alloc(1, sizeof *mark);

	if (!mark)
		return WEIR_E_NOMEM;
	mark->fifo = fifo;
	*out = mark;
	return WEIR_OK;
}

void wr_mark_destroy(struct wr_mark *mark)
{
	wr_free(mark);
}

/* --- enqueueing --- */

/* Gives a task to fill, with the lock held; NULL: it is not held. */
static struct task *begin(struct wr_line *line, enum wr_work work, weir_status *status)
{
	struct wr_fifo *fifo = line->fifo;
	struct task *task;
	bool faulted;

	wr_mutex_lock(&fifo->lock);
	faulted = fifo->faulted;
	task = faulted ? NULL : task_locked(fifo);
	if (!task) {
		wr_mutex_unlock(&fifo->lock);
		*status = faulted ? wr_fail(WEIR_E_DEVICE, "%s", fifo->fault) : WEIR_E_NOMEM;
		return NULL;
	}
	task->work = work;
	task->again = false;
	return task;
}

static void end(struct wr_line *line, struct task *task)
{
	struct wr_fifo *fifo = line->fifo;
	bool was_busy = line->busy;
	struct runner *runner;

	append_locked(line, task);
	runner = was_busy ? NULL : wake_locked(fifo);
	wr_mutex_unlock(&fifo->lock);
	if (runner)
		wr_unpark(&runner->parker);
}

weir_status wr_line_kernel(struct wr_line *line, const weir_kernel *kernel, const void *arguments,
			   size_t bytes)
{
	weir_status status;
	struct task *task;

	if (!kernel->host)
		return wr_fail(WEIR_E_UNSUPPORTED, "kernel '%s' has no form for the host", kernel->name);
	task = begin(line, WR_WORK_KERNEL, &status);
	if (!task)
		return status;
	task->kernel.host = kernel->host;
	task->kernel.name = kernel->name;
	if (bytes)
		memcpy(task->kernel.arguments, arguments, bytes);
	end(line, task);
	return WEIR_OK;
}

weir_status wr_line_copy(struct wr_line *line, void *to, const void *from, size_t bytes)
{
	weir_status status;
	struct task *task = begin(line, WR_WORK_COPY, &status);

	if (!task)
		return status;
	task->copy.to = to;
	task->copy.from = from;
	task->copy.bytes = bytes;
	end(line, task);
	return WEIR_OK;
}

weir_status wr_line_call(struct wr_line *line, void (*fn)(void *), void *arg)
{
	weir_status status;
	struct task *task = begin(line, WR_WORK_CALL, &status);

	if (!task)
		return status;
	task->call.fn = fn;
	task->call.arg = arg;
	end(line, task);
	return WEIR_OK;
}

weir_status wr_line_record(struct wr_line *line, struct wr_mark *mark)
{
	weir_status status;
	struct task *task = begin(line, WR_WORK_RECORD, &status);

	if (!task)
		return status;
	task->mark.mark = mark;
	task->mark.count = ++mark->recorded;
	end(line, task);
	return WEIR_OK;
}

weir_status wr_line_wait(struct wr_line *line, struct wr_mark *mark)
{
	weir_status status;
	struct task *task = begin(line, WR_WORK_WAIT, &status);

	if (!task)
		return status;
	task->mark.mark = mark;
	task->mark.count = mark->recorded;
	end(line, task);
	return WEIR_OK;
}

weir_status wr_mark_query(struct wr_mark *mark)
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
