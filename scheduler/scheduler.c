/*
 * Schedulers: their options and files, how they are created and destroyed, and the caller's calls on a run.
 * In a simulated run the locks, threads and the loop belong to the simulated world, so they are created and
 * ended inside it. Destroy takes a half-built scheduler, too.
 */
#include "scheduler/scheduler.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/output.h"
#include "base/status.h"
#include "base/struct.h"
#include "base/text.h"
#include "base/units.h"
#include "base/words.h"
#include "scheduler/instances.h"
#include "scheduler/memory.h"
#include "scheduler/run.h"
#include "trace/timeline.h"

/*
 * === options ===
 *
 * The caller's override the description's, which override the defaults. Opens the
 * folder of the option `root`.
 */

#define DRAIN_NS 5000000000
#define GPU_TIME 64

static weir_status pick_signal(weir_scheduler *scheduler)
{
	const char *name = scheduler->options.signal;
	int planned = scheduler->graph->plan->scheduler.signal;

	scheduler->signal = planned < 0 ? WR_SIGNAL_AUTO : planned;
	if (!name)
		return WEIR_OK;
	for (int kind = 0; wr_signal_text(kind); kind++) {
		if (!strcmp(name, wr_signal_text(kind))) {
			scheduler->signal = kind;
			return WEIR_OK;
		}
	}
	return wr_fail(WEIR_E_INVALID, "signal '%s': use 'auto', 'callback', 'callback_inline' or 'flag'",
		       name);
}

/* 0: not given, so the planned value. WEIR_NONE: zero. */
static int64_t pick(int64_t asked, int64_t planned)
{
	return asked < 0 ? 0 : asked ? asked : planned;
}

weir_status wr_options_resolve(weir_scheduler *scheduler, const weir_scheduler_options *options)
{
	const struct wr_plan_scheduler *plan = &scheduler->graph->plan->scheduler;
	weir_scheduler_options *own = &scheduler->options;
	weir_status status = WEIR_OK;

	if (options)
		status = wr_struct_read(own, sizeof *own, options, "weir_scheduler_options");
	if (status)
		return status;
	if (!own->backend)
		own->backend = plan->backend ? plan->backend : "auto";
	if (!own->seed)
		own->seed = plan->seed;
	else if (own->seed == (uint64_t)WEIR_NONE)
		own->seed = 0;
	own->drain_ns = pick(own->drain_ns, plan->has_drain ? plan->drain_ns : DRAIN_NS);
	own->deadlock_grace_ns = pick(own->deadlock_grace_ns, plan->deadlock_grace_ns);
	if (own->deadlock_grace_ns == INT64_MAX)
		own->deadlock_grace_ns = -1; /* as in a graph file: for ever */
	own->max_duration_ns = pick(own->max_duration_ns, plan->max_duration_ns);
	own->worker_spin_ns = pick(own->worker_spin_ns, plan->worker_spin_ns);
	if (own->max_in_flight > WR_IN_FLIGHT_MAX)
		return wr_fail(WEIR_E_INVALID, "max_in_flight %d: use at most %d", own->max_in_flight,
			       WR_IN_FLIGHT_MAX);
	if (own->trace_events > WR_TIMELINE_EVENTS_MAX)
		return wr_fail(WEIR_E_INVALID, "trace_events %zu: use at most %zu", own->trace_events,
			       WR_TIMELINE_EVENTS_MAX);
	if (own->strict < WEIR_NONE || own->strict > 1)
		return wr_fail(WEIR_E_INVALID, "strict %d: use 1, WEIR_NONE or 0", own->strict);
	if (own->observe & ~(unsigned)(WEIR_OBSERVE_STATISTICS | WEIR_OBSERVE_TRACE | WEIR_OBSERVE_COMPUTE))
		return wr_fail(WEIR_E_INVALID, "observe %#x: use WEIR_OBSERVE_... bits", own->observe);
	scheduler->graph->max_in_flight = (size_t)pick(
		own->max_in_flight, plan->max_in_flight < 0 ? WR_IN_FLIGHT : plan->max_in_flight);
	scheduler->worker_asked = own->workers ? own->workers : plan->workers;
	if (!scheduler->worker_asked) {
		unsigned cores = wr_cores();
		scheduler->worker_asked = cores < WR_WORKERS_MAX ? cores : WR_WORKERS_MAX;
	}
	if (scheduler->worker_asked > WR_WORKERS_MAX)
		return wr_fail(WEIR_E_INVALID, "%u workers: use at most %d", scheduler->worker_asked,
			       WR_WORKERS_MAX);
	if (own->gpu_time < WEIR_NONE || own->gpu_time > WR_SAMPLING_MAX)
		return wr_fail(WEIR_E_INVALID, "gpu_time %d: use one tick of at most %d, or WEIR_NONE",
			       own->gpu_time, WR_SAMPLING_MAX);
	scheduler->gpu_time = (int)pick(own->gpu_time, plan->gpu_time < 0 ? GPU_TIME : plan->gpu_time);
	return pick_signal(scheduler);
}

/*
 * === files ===
 *
 * What a run reads and writes is known before it begins, and compared once more with what
 * operators open (weir.h, "The files of a run"). The table grows while the operators start, on one thread;
 * computes only look at it.
 */

static int open_to_look(const void *scheduler, const char *path, int flags)
{
	return wr_root_open_file(&((const weir_scheduler *)scheduler)->root, path, flags, 0);
}

/* --- at the start of a run --- */

static weir_status add_given(weir_scheduler *scheduler)
{
	const weir_scheduler_options *options = &scheduler->options;
	weir_status status = WEIR_OK;

	for (size_t i = 0; !status && i < options->file_count; i++) {
		const weir_file *given = &options->files[i];
		bool standard = given->size == sizeof *given && !strcmp(given->path, "-");
		const struct wr_file file = {.path = standard ? NULL : given->path,
					     .fd = standard ? given->write : -1,
					     .entity = SIZE_MAX,
					     .use = given->write ? WR_FILE_WRITE : WR_FILE_READ};

		status = given->size == sizeof *given
				 ? wr_files_add(&scheduler->files, &file, given->name)
				 : wr_fail(WEIR_E_INVALID, "files: set .size = sizeof(weir_file)");
	}
	return status;
}

/* Fails if there is a reason why the i-th file cannot be used beside those before it, or at all. */
static weir_status check_file(const weir_scheduler *scheduler, size_t i)
{
	const struct wr_file *file = &scheduler->files.list[i];
	const struct wr_file *other = wr_files_clash(&scheduler->files, i);
	const char *foreign = wr_files_foreign(&scheduler->files, i);
	char text[WR_FILE_TEXT];

	if (foreign)
		return wr_fail(WEIR_E_INVALID, "%s: descriptor %d %s", file->place, file->fd, foreign);
	if (!other)
		return WEIR_OK;
	wr_file_clash_text(text, file, other);
	return wr_fail(WEIR_E_INVALID, "%s: %s", file->place, text);
}

weir_status wr_scheduler_check_files(weir_scheduler *scheduler)
{
	weir_graph *graph = scheduler->graph;
	weir_status status;

	wr_files_finish(&scheduler->files);
	scheduler->files = (struct wr_files){.open = open_to_look, .arg = scheduler, .live = true};
	status = wr_files_add_plan(&scheduler->files, graph->plan, graph->registry);
	if (!status)
		status = add_given(scheduler);
	for (size_t i = 0; !status && i < scheduler->files.count; i++) {
		size_t entity = scheduler->files.list[i].entity;

		status = check_file(scheduler, i);
		if (status && entity != SIZE_MAX)
			wr_error_about(status, graph->entities[entity].plan->name);
	}
	return status;
}

/* --- what operators open --- */

static weir_status keep_opened(weir_scheduler *scheduler, struct wr_file file)
{
	char *path = wr_strdup(file.path);
	weir_status status = path ? WEIR_OK : WEIR_E_NOMEM;

	file.path = path;
	file.owned = true;
	if (!status)
		status = wr_files_keep(&scheduler->files, &file);
	if (status)
		wr_free(path);
	return status;
}

/* Returns false, with errno, if another user of the file stands against it. */
static bool may_use(weir_scheduler *scheduler, const struct wr_file *file, bool starting)
{
	char text[WR_FILE_TEXT];

	for (size_t i = 0; i < scheduler->files.count; i++) {
		const struct wr_file *other = &scheduler->files.list[i];

		if (other->entity == file->entity || !wr_file_clashes(file, other, open_to_look, scheduler))
			continue;
		wr_file_clash_text(text, file, other);
		wr_fail(WEIR_E_INVALID, "%s", text);
		errno = EBUSY;
		return false;
	}
	if (!starting || !keep_opened(scheduler, *file))
		return true;
	errno = ENOMEM;
	return false;
}

/* The kernel's reason: as a text, and in errno for an operator that acts on it. */
static weir_status fail_open(const char *path, int error)
{
	wr_fail(WEIR_E_IO, "'%s': %s", path, strerror(error));
	errno = error;
	return WEIR_E_IO;
}

/* What was opened without O_TRUNC is emptied once it is known that it may be. */
static weir_status accept_opened(weir_context *context, int fd, const char *path, int flags)
{
	weir_entity *entity = weir_context_entity(context);
	weir_scheduler *scheduler = wr_load_acquire(&entity->scheduler);
	struct wr_file file = {.user = entity->plan->name, .path = path, .fd = -1, .entity = entity->id};
	struct stat about;
	int error;

	if ((flags & O_ACCMODE) != O_RDONLY)
		file.use = flags & O_APPEND ? WR_FILE_LINES : WR_FILE_WRITE;
	if (!fstat(fd, &about)) {
		wr_file_seen(&file, &about);
		if ((file.kind != WR_FILE_PLAIN && file.kind != WR_FILE_PIPE) ||
		    may_use(scheduler, &file, wr_load(&scheduler->phase) == WR_ENDED))
			if (!(flags & O_TRUNC) || !S_ISREG(about.st_mode) || !ftruncate(fd, 0))
				return WEIR_OK;
	}
	error = errno;
	close(fd);
	errno = error;
	return error == EBUSY ? WEIR_E_INVALID : fail_open(path, error);
}

weir_status weir_context_open(weir_context *context, const char *path, int flags, unsigned mode, int *out)
{
	const weir_scheduler *scheduler = wr_load_acquire(&weir_context_entity(context)->scheduler);
	int fd = wr_root_open_file(&scheduler->root, path, flags & ~O_TRUNC, mode);
	weir_status status = fd < 0 ? fail_open(path, errno) : WEIR_OK;

	if (!status && !(flags & O_PATH))
		status = accept_opened(context, fd, path, flags);
	if (!status)
		*out = fd;
	return status;
}

/* === life === */

/* --- create --- */

static weir_status create_workers(weir_scheduler *scheduler)
{
	scheduler->workers = wr_alloc_aligned(64, scheduler->worker_asked * sizeof *scheduler->workers);
	scheduler->heap = wr_alloc(wr_graph_count_all(scheduler->graph) + 1, sizeof *scheduler->heap);
	if (!scheduler->workers || !scheduler->heap)
		return WEIR_E_NOMEM;
	for (unsigned i = 0; i < scheduler->worker_asked; i++) {
		struct wr_worker *worker = &scheduler->workers[i];
		worker->local.index = i;
		worker->local.pool = scheduler->graph->pool;
		worker->scheduler = scheduler;
		snprintf(worker->name, sizeof worker->name, "weir:%u", i);
	}
	return WEIR_OK;
}

static void graph_set_scheduler(weir_scheduler *scheduler, weir_scheduler *owner)
{
	weir_graph *graph = scheduler->graph;

	graph->scheduler = owner;
	for (size_t i = 0; i < wr_graph_count_all(graph); i++)
		wr_store(&wr_graph_entity_at(graph, i)->scheduler, owner);
}

static void run_loop(void *arg)
{
	weir_scheduler *scheduler = arg;

	wr_loop_run(&scheduler->loop);
}

static weir_status open_trace(weir_scheduler *scheduler)
{
	struct wr_trace_options options = {
		.workers = scheduler->worker_asked,
		.simulated = scheduler->sim,
		.observe = scheduler->options.observe,
		.entities = wr_graph_count_all(scheduler->graph),
		.queues = scheduler->graph->connection_count,
		.events = scheduler->options.trace_events,
		.skip = scheduler->options.skip,
		.hidden = wr_graph_count_all(scheduler->graph) - scheduler->graph->entity_count,
	};

	return wr_trace_open(&options, &scheduler->trace);
}

static bool scheduler_driven_by_caller(const weir_scheduler *scheduler);

static weir_status scheduler_init(weir_scheduler *scheduler, void *unused)
{
	weir_status status = wr_mutex_init(&scheduler->lock);

	(void)unused;
	if (!status)
		status = wr_cond_init(&scheduler->changed);
	if (!status)
		status = wr_mutex_init(&scheduler->backlog_lock);
	if (!status)
		status = wr_mutex_init(&scheduler->timers_lock);
	if (!status)
		status = wr_loop_open(&scheduler->loop, scheduler->sim, scheduler->options.handle_signals);
	if (!status && !scheduler->options.own_loop)
		status = wr_loop_watch(&scheduler->loop, scheduler->options.event_base, wr_run_on_turn,
				       scheduler);
	if (!status)
		status = create_workers(scheduler);
	if (!status)
		status = open_trace(scheduler);
	if (!status && !scheduler_driven_by_caller(scheduler))
		status = wr_thread_start(&scheduler->loop_thread, "weir:loop", run_loop, scheduler);
	return status;
}

static weir_status place_graph(weir_scheduler *scheduler)
{
	weir_graph *graph = scheduler->graph;
	weir_status status;

	if (!strcmp(scheduler->options.backend, "sim") && scheduler_driven_by_caller(scheduler))
		return wr_fail(WEIR_E_INVALID,
			       "backend 'sim' runs a loop of its own: leave out event_base and own_loop");
	status = wr_graph_place(graph, scheduler->options.backend, scheduler->options.seed,
				scheduler->options.strict);
	if (status)
		return status;
	scheduler->sim = graph->world;
	wr_system_attach(graph->system, &scheduler->waker);
	wr_signals_forgive(graph->system, scheduler->signal == WR_SIGNAL_AUTO);
	return wr_flags_use(graph->system, wr_graph_bind_signals(graph, scheduler->signal));
}

weir_status weir_scheduler_create(weir_graph *graph, const weir_scheduler_options *options,
				  weir_scheduler **out)
{
	weir_scheduler *scheduler;
	weir_status status;

	if (graph->scheduler)
		return wr_fail(WEIR_E_STATE, "graph %s has a scheduler already", graph->plan->name);
	scheduler = wr_alloc_aligned(64, sizeof *scheduler);
	if (!scheduler)
		return WEIR_E_NOMEM;
	scheduler->graph = graph;
	scheduler->process = (int)getpid();
	wr_waker_init(&scheduler->waker);
	wr_store(&scheduler->live, WR_LIVE_CLOSED);
	wr_loop_init(&scheduler->loop);
	graph_set_scheduler(scheduler, scheduler);
	status = wr_options_resolve(scheduler, options);
	scheduler->workers_keep_time = !scheduler_driven_by_caller(scheduler);
	wr_stuck_init(scheduler);
	if (!status && scheduler->options.root)
		status = wr_root_open(&scheduler->root, scheduler->options.root);
	if (!status)
		status = place_graph(scheduler);
	if (!status)
		status = wr_world_call(scheduler, scheduler_init, NULL);
	if (status) {
		weir_scheduler_destroy(scheduler);
		return status;
	}
	*out = scheduler;
	return WEIR_OK;
}

static weir_status run_wait(weir_scheduler *scheduler, int64_t until);

/* --- destroy --- */

static weir_status end_threads(weir_scheduler *scheduler, void *unused)
{
	(void)unused;
	if (!wr_run_ended(scheduler)) {
		weir_scheduler_stop(scheduler, 0);
		run_wait(scheduler, WR_FOREVER);
	}
	wr_operators_stop_before_destroy(scheduler);
	wr_store(&scheduler->destroying, true);
	wr_loop_kick(&scheduler->loop);
	wr_thread_join(&scheduler->loop_thread);
	if (scheduler->graph->system)
		wr_system_detach(scheduler->graph->system);
	while (wr_live_count(&scheduler->live))
		wr_thread_yield(); /* a poke is still being refused */
	return WEIR_OK;
}

static weir_status scheduler_check_call(weir_scheduler *scheduler, const char *what);

weir_status weir_scheduler_destroy(weir_scheduler *scheduler)
{
	weir_graph *graph;
	weir_status status;

	if (!scheduler)
		return WEIR_OK;
	if (wr_worker_here(scheduler))
		return wr_fail(WEIR_E_INVALID, "a worker must not destroy its own scheduler");
	status = scheduler_check_call(scheduler, "destroy");
	if (status)
		return status;
	graph = scheduler->graph;
	status = wr_world_call(scheduler, end_threads, NULL);
	wr_loop_close(&scheduler->loop);
	wr_memory_pools_watch(graph, NULL);
	wr_trace_close(scheduler->trace);
	graph_set_scheduler(scheduler, NULL);
	wr_cond_finish(&scheduler->changed);
	wr_mutex_finish(&scheduler->lock);
	wr_mutex_finish(&scheduler->backlog_lock);
	wr_mutex_finish(&scheduler->timers_lock);
	wr_free(scheduler->workers);
	wr_free(scheduler->heap);
	wr_free(scheduler->text);
	wr_free(scheduler->waiting);
	wr_free(scheduler->stuck);
	wr_root_close(&scheduler->root);
	wr_files_finish(&scheduler->files);
	scheduler->workers = NULL;
	scheduler->heap = NULL;
	scheduler->trace = NULL;
	scheduler->text = scheduler->waiting = NULL;
	/*
	 * Leaves the memory to the graph: a late thread may have read entity->scheduler and not yet taken a
	 * live reference, or dropped one and not yet kicked. It finds a closed counter and a loop that
	 * ignores kicks.
	 */
	scheduler->kept = (struct wr_kept){graph->kept, scheduler};
	graph->kept = &scheduler->kept;
	return status;
}

/*
 * === the caller's calls ===
 *
 * Start, wait, turn, and its counters. In a simulated run they enter the
 * scheduler's world (run.h), since they wait on its fibers.
 */

/* Returns true if the caller's thread runs the loop. */
static bool scheduler_driven_by_caller(const weir_scheduler *scheduler)
{
	return scheduler->options.own_loop || scheduler->options.event_base;
}

/* Fails: WEIR_E_STATE inside options.ended, WEIR_E_INVALID after a fork. `what` names the call. */
static weir_status scheduler_check_call(weir_scheduler *scheduler, const char *what)
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
	weir_status status = scheduler_check_call(scheduler, "start");

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

/* Call it in the scheduler's world. Returns WEIR_E_TIMEOUT if the run is not over by `until`. */
static weir_status run_wait(weir_scheduler *scheduler, int64_t until)
{
	weir_status status = WEIR_OK;

	if (scheduler_driven_by_caller(scheduler))
		return drive_loop(scheduler, until);
	wr_mutex_lock(&scheduler->lock);
	/* A simulated loop runs only while a caller waits: until options.ended has returned. */
	while (!status &&
	       (!wr_run_ended(scheduler) || (scheduler->sim && wr_load(&scheduler->calling_ended))))
		if (!wr_cond_wait(&scheduler->changed, &scheduler->lock, until))
			status = WEIR_E_TIMEOUT;
	wr_mutex_unlock(&scheduler->lock);
	return status;
}

static weir_status wait_for_run(weir_scheduler *scheduler, void *timeout_ns)
{
	int64_t timeout = *(int64_t *)timeout_ns;
	int64_t until = timeout < 0 ? WR_FOREVER : wr_time_add(wr_now(), timeout);

	if (!run_wait(scheduler, until))
		return WEIR_OK;
	return wr_fail(WEIR_E_TIMEOUT, "graph %s is still running", scheduler->graph->plan->name);
}

/* Sets this thread's last error from the run's. */
static weir_status fail_with_outcome(const weir_scheduler *scheduler)
{
	const weir_outcome *outcome = &scheduler->outcome;

	if (!outcome->status)
		return WEIR_OK;
	if (*scheduler->error.line) {
		*wr_error_here() = scheduler->error;
		wr_error_here()->status = outcome->status;
	} else { /* a deadlock, or a drain that took too long: no call has failed */
		wr_fail(outcome->status, "%s", outcome->text ? outcome->text : "");
		if (outcome->cause_entity)
			wr_error_about(outcome->status, outcome->cause_entity);
	}
	wr_error_cause(outcome->cause, outcome->cause_on);
	return outcome->status;
}

weir_status weir_scheduler_wait(weir_scheduler *scheduler, int64_t timeout_ns, weir_outcome *outcome)
{
	weir_status status = scheduler_check_call(scheduler, "wait");

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
	status = scheduler_check_call(scheduler, "turn");
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
	weir_entity_counts counts;

	if (i >= scheduler->graph->plan->shown_count)
		return WEIR_E_INVALID;
	wr_instances_count(&scheduler->graph->entities[i], &counts);
	return wr_struct_fill(out, &counts, sizeof counts, "weir_entity_counts");
}

weir_status weir_scheduler_queue_counts(weir_scheduler *scheduler, size_t i, weir_queue_counts *out)
{
	weir_queue_counts counts;

	i = wr_graph_shown_connection(scheduler->graph, i);
	if (i >= scheduler->graph->connection_count)
		return WEIR_E_INVALID;
	wr_instances_count_queue(scheduler->graph->connections[i], &counts);
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
	weir_status status = scheduler_check_call(scheduler, "write_trace");
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
