/*
 * The options of a run: the caller's override the description's, which override the defaults. Opens the
 * folder of the option `root`.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/status.h"
#include "base/struct.h"
#include "base/text.h"
#include "base/units.h"
#include "base/words.h"
#include "scheduler/scheduler.h"
#include "trace/timeline.h"

#define DRAIN_NS 5000000000
#define GPU_TIME 64

static weir_status pick_signal(weir_scheduler *scheduler)
{
	const char *name = scheduler->options.signal;
	int planned = scheduler->graph->plan->scheduler.signal;

	scheduler->signal = planned < 0 ? WR_SIGNAL_CALLBACK : planned;
	if (!name)
		return WEIR_OK;
	for (int kind = 0; wr_signal_text(kind); kind++) {
		if (!strcmp(name, wr_signal_text(kind))) {
			scheduler->signal = kind;
			return WEIR_OK;
		}
	}
	return wr_fail(WEIR_E_INVALID, "signal '%s': use 'callback', 'callback_inline' or 'flag'", name);
}

static unsigned one_per_core(void)
{
	long cores = sysconf(_SC_NPROCESSORS_ONLN);

	return cores < 1 ? 1 : cores > WR_WORKERS_MAX ? WR_WORKERS_MAX : (unsigned)cores;
}

/* 0: not given, so the planned value. WEIR_NONE: zero. */
static int64_t pick(int64_t asked, int64_t planned)
{
	return asked < 0 ? 0 : asked ? asked : planned;
}

static weir_status pick_gpu_time(weir_scheduler *scheduler)
{
	int asked = scheduler->options.gpu_time, planned = scheduler->graph->plan->scheduler.gpu_time;

	if (asked < WEIR_NONE || asked > WR_SAMPLING_MAX)
		return wr_fail(WEIR_E_INVALID, "gpu_time %d: use one tick of at most %d, or WEIR_NONE", asked,
			       WR_SAMPLING_MAX);
	scheduler->gpu_time = (int)pick(asked, planned < 0 ? GPU_TIME : planned);
	return WEIR_OK;
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
	if (!scheduler->worker_asked)
		scheduler->worker_asked = one_per_core();
	if (scheduler->worker_asked > WR_WORKERS_MAX)
		return wr_fail(WEIR_E_INVALID, "%u workers: use at most %d", scheduler->worker_asked,
			       WR_WORKERS_MAX);
	status = pick_gpu_time(scheduler);
	return status ? status : pick_signal(scheduler);
}

/* --- root: the folder that the built-in operators are confined to --- */

static weir_status fail_root(const char *path)
{
	return wr_fail(WEIR_E_IO, "root '%s': %s", wr_shown(path).text,
		       errno == ENOSYS ? "this kernel cannot confine paths: use Linux 5.6 or newer"
				       : wr_errno_words(errno));
}

weir_status wr_root_open(weir_scheduler *scheduler)
{
	const char *path = scheduler->options.root;
	char *whole;
	int probe;

	if (!path)
		return WEIR_OK;
	whole = realpath(path, NULL);
	if (!whole)
		return fail_root(path);
	scheduler->root_path = wr_strdup(whole);
	wr_free(whole);
	if (!scheduler->root_path)
		return WEIR_E_NOMEM;
	scheduler->root = open(scheduler->root_path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	probe = scheduler->root < 0 ? -1 : wr_file_open_beneath(scheduler->root, ".", O_PATH | O_CLOEXEC, 0);
	if (probe < 0)
		return fail_root(path);
	close(probe);
	return WEIR_OK;
}

void wr_root_close(weir_scheduler *scheduler)
{
	if (scheduler->root_path && scheduler->root >= 0)
		close(scheduler->root);
	wr_free(scheduler->root_path);
	scheduler->root_path = NULL;
}
