/*
 * The caller's calls on a run: start, wait, turn, and its counters. In a simulated run they enter the
 * scheduler's world (run.h), since they wait on its fibers.
 */
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/output.h"
#include "base/status.h"
#include "base/struct.h"
#include "scheduler/memory_pool.h"
#include "scheduler/run.h"
#include "trace/timeline.h"

bool wr_scheduler_driven_by_caller(const weir_scheduler *scheduler)
{
	return scheduler->options.own_loop || scheduler->options.event_base;
}

weir_status wr_scheduler_check_call(weir_scheduler *scheduler, const char *what)
{
	if (scheduler->process != (int)getpid())
		return wr_fail(WEIR_E_INVALID,
			       "graph %s: its scheduler was created before a fork, which its "
			       "threads did not survive: create graph and scheduler after the fork",
			       scheduler->graph->plan->name);
	if (wr_load(&scheduler->calling_ended) != wr_thread_self())
		return WEIR_OK;
	return wr_fail(WEIR_E_STATE, "graph %s: the 'ended' callback is running: call %s after it returns",
		       scheduler->graph->plan->name, what);
}

static weir_status start_run(weir_scheduler *scheduler, void *unused)
{
	(void)unused;
	return wr_run_start(scheduler);
}

weir_status weir_scheduler_start(weir_scheduler *scheduler)
{
	weir_status status = wr_scheduler_check_call(scheduler, "start");

	if (status)
		return status;
	if (wr_exchange(&scheduler->entering, true))
		return wr_fail(WEIR_E_STATE, "graph %s is being started", scheduler->graph->plan->name);
	if (!wr_run_ended(scheduler))
		status = wr_fail(WEIR_E_STATE, "graph %s is running", scheduler->graph->plan->name);
	else
		status = wr_world_call(scheduler, start_run, NULL);
	wr_store(&scheduler->entering, false);
	return status;
}

/* Waits for the end of a run whose loop is the calling thread. */
static weir_status drive_loop(weir_scheduler *scheduler, int64_t until)
{
	struct pollfd fd = {.fd = scheduler->loop.set, .events = POLLIN};

	for (wr_run_turn(scheduler); !wr_run_ended(scheduler); wr_run_turn(scheduler)) {
		int64_t left = until == WR_FOREVER ? -1 : (until - wr_now() + 999999) / 1000000;
		if (until != WR_FOREVER && left <= 0)
			return WEIR_E_TIMEOUT;
		poll(&fd, 1, left > INT_MAX ? INT_MAX : (int)left);
	}
	return WEIR_OK;
}

/*
 * A simulated loop runs only while a caller waits, so the wait must also last until options.ended has
 * returned.
 */
static bool run_is_over(weir_scheduler *scheduler)
{
	return wr_run_ended(scheduler) && !(scheduler->sim && wr_load(&scheduler->calling_ended));
}

weir_status wr_run_wait(weir_scheduler *scheduler, int64_t until)
{
	weir_status status = WEIR_OK;

	if (wr_scheduler_driven_by_caller(scheduler))
		return drive_loop(scheduler, until);
	wr_mutex_lock(&scheduler->lock);
	while (!status && !run_is_over(scheduler))
		if (!wr_cond_wait(&scheduler->changed, &scheduler->lock, until))
			status = WEIR_E_TIMEOUT;
	wr_mutex_unlock(&scheduler->lock);
	return status;
}

static weir_status wait_for_run(weir_scheduler *scheduler, void *timeout_ns)
{
	int64_t timeout = *(int64_t *)timeout_ns;
	int64_t until = timeout < 0 ? WR_FOREVER : wr_time_add(wr_now(), timeout);

	if (!wr_run_wait(scheduler, until))
		return WEIR_OK;
	return wr_fail(WEIR_E_TIMEOUT, "graph %s is still running", scheduler->graph->plan->name);
}

/* A deadlock, or a drain that took too long: no call has failed. */
static weir_status fail_without_error(const weir_outcome *outcome)
{
	wr_fail(outcome->status, "%s", outcome->text ? outcome->text : "");
	if (outcome->cause_entity)
		wr_error_about(outcome->status, outcome->cause_entity);
	wr_error_cause(outcome->cause, outcome->cause_on);
	return outcome->status;
}

/* Sets this thread's last error from the run's. */
static weir_status fail_with_outcome(const weir_scheduler *scheduler)
{
	const weir_outcome *outcome = &scheduler->outcome;

	if (!outcome->status)
		return WEIR_OK;
	if (!*scheduler->error.line)
		return fail_without_error(outcome);
	*wr_error_here() = scheduler->error;
	wr_error_here()->status = outcome->status;
	wr_error_cause(outcome->cause, outcome->cause_on);
	return outcome->status;
}

weir_status weir_scheduler_wait(weir_scheduler *scheduler, int64_t timeout_ns, weir_outcome *outcome)
{
	weir_status status = wr_scheduler_check_call(scheduler, "wait");

	if (status)
		return status;
	if (wr_worker_here(scheduler))
		return wr_fail(WEIR_E_INVALID, "a worker must not wait for the end of its own run");
	if (outcome && wr_struct_check("weir_outcome", outcome->size, 2 * sizeof(size_t)))
		return WEIR_E_INVALID;
	status = wr_world_call(scheduler, wait_for_run, &timeout_ns);
	if (status)
		return status;
	if (outcome)
		(void)wr_struct_fill(outcome, &scheduler->outcome, sizeof *outcome, "weir_outcome");
	return fail_with_outcome(scheduler);
}

weir_status weir_scheduler_run(weir_scheduler *scheduler)
{
	weir_status status = weir_scheduler_start(scheduler);

	return status ? status : weir_scheduler_wait(scheduler, -1, NULL);
}

static weir_status refuse_loop(const char *call)
{
	return wr_fail(WEIR_E_INVALID, "%s: the scheduler was created without own_loop and runs its own loop",
		       call);
}

weir_status weir_scheduler_fd(weir_scheduler *scheduler, int *out)
{
	if (!scheduler->options.own_loop)
		return refuse_loop("fd");
	*out = scheduler->loop.set;
	return WEIR_OK;
}

weir_status weir_scheduler_turn(weir_scheduler *scheduler)
{
	weir_status status;

	if (!scheduler->options.own_loop)
		return refuse_loop("turn");
	status = wr_scheduler_check_call(scheduler, "turn");
	if (status)
		return status;
	wr_run_turn(scheduler);
	return WEIR_OK;
}

static weir_status read_clock(weir_scheduler *scheduler, void *out)
{
	(void)scheduler;
	*(int64_t *)out = wr_now();
	return WEIR_OK;
}

int64_t weir_scheduler_now(weir_scheduler *scheduler)
{
	int64_t now = 0;

	(void)wr_world_call(scheduler, read_clock, &now);
	return now;
}

const char *weir_scheduler_where(const weir_scheduler *scheduler)
{
	return wr_system_where(scheduler->graph->system);
}

weir_backend weir_scheduler_backend(const weir_scheduler *scheduler)
{
	return wr_system_backend(scheduler->graph->system);
}

/* --- counters (E5) --- */

weir_status weir_scheduler_entity_counts(weir_scheduler *scheduler, size_t i, weir_entity_counts *out)
{
	weir_entity *entity;
	weir_entity_counts counts;

	if (i >= scheduler->graph->entity_count)
		return WEIR_E_INVALID;
	entity = &scheduler->graph->entities[i];
	counts = (weir_entity_counts){
		.size = sizeof counts,
		.entity = entity->plan->name,
		.done = wr_load(&entity->state) & WR_DONE,
	};
#define COPY(name) counts.name = wr_read(&entity->counters.name);
	WR_ENTITY_COUNTERS(COPY)
#undef COPY
	return wr_struct_fill(out, &counts, sizeof counts, "weir_entity_counts");
}

weir_status weir_scheduler_queue_counts(weir_scheduler *scheduler, size_t i, weir_queue_counts *out)
{
	struct wr_connection *connection;
	struct wr_queue_counters *counters;
	weir_queue_counts counts;

	if (i >= scheduler->graph->connection_count)
		return WEIR_E_INVALID;
	connection = scheduler->graph->connections[i];
	counters = &connection->queue.counters;
	counts = (weir_queue_counts){
		.size = sizeof counts,
		.from = connection->from,
		.to = connection->to,
		.pushed = wr_read(&counters->pushed),
		.delivered = wr_read(&counters->delivered),
		.dropped = wr_read(&counters->dropped),
		.closed = wr_read(&counters->closed) + wr_read(&counters->taken_back),
		.queued = wr_queue_snapshot(&connection->queue),
		.abandoned = wr_read(&counters->abandoned),
		.capacity = connection->queue.capacity,
	};
	return wr_struct_fill(out, &counts, sizeof counts, "weir_queue_counts");
}

weir_status weir_scheduler_pool_counts(weir_scheduler *scheduler, size_t i, weir_pool_counts *out)
{
	weir_pool_counts counts = {.size = sizeof counts};

	if (i >= scheduler->graph->memory_pool_count)
		return WEIR_E_INVALID;
	if (!wr_thread_local())
		wr_system_collect_between_runs(scheduler->graph->system);
	wr_memory_pool_count(&scheduler->graph->memory_pools[i], &counts);
	return wr_struct_fill(out, &counts, sizeof counts, "weir_pool_counts");
}

weir_status weir_scheduler_frames(weir_scheduler *scheduler, weir_frames *out)
{
	weir_frames frames = {.size = sizeof frames};
	const weir_entity *entity = wr_graph_main(scheduler->graph, &frames.frames);

	if (!entity)
		return wr_fail(WEIR_E_INVALID,
			       "there is no sink: no entity receives messages and sends none");
	frames.entity = entity->plan->name;
	return wr_struct_fill(out, &frames, sizeof frames, "weir_frames");
}

/* --- the timeline --- */

static weir_status write_timeline(weir_scheduler *scheduler, struct wr_timeline *timeline, int fd,
				  uint64_t *out)
{
	const struct wr_timeline_about about = {
		.version = weir_version(),
		.graph = scheduler->graph->plan->name,
		.where = weir_scheduler_where(scheduler),
	};
	struct wr_timeline_written written = {0};
	weir_status status = wr_timeline_write(timeline, &about, fd, &written);

	if (!status && out)
		*out = written.dropped;
	return status;
}

static weir_status fail_trace_file(const char *path)
{
	return wr_fail(WEIR_E_IO, "trace '%s': %s", wr_shown(path).text, wr_output_why(errno));
}

weir_status weir_scheduler_write_trace(weir_scheduler *scheduler, const char *path, uint64_t *out)
{
	struct wr_timeline *timeline = wr_trace_self(scheduler->trace, &wr_timeline);
	weir_status status = wr_scheduler_check_call(scheduler, "write_trace");
	struct wr_output_file output;

	if (status)
		return status;
	if (!timeline)
		return wr_fail(WEIR_E_INVALID,
			       "graph %s: no trace is recorded: set WEIR_OBSERVE_TRACE in the options",
			       scheduler->graph->plan->name);
	if (!wr_run_ended(scheduler))
		return wr_fail(WEIR_E_STATE, "graph %s is running: write its trace after the run",
			       scheduler->graph->plan->name);
	if (!wr_output_open(&output, path))
		return fail_trace_file(path);
	status = write_timeline(scheduler, timeline, output.fd, out);
	if (!wr_output_close(&output, !status) && status != WEIR_E_NOMEM)
		status = fail_trace_file(path);
	return status;
}
