/*
 * What any thread may do to a run: fail it, ask it to stop, look at its phase. These calls only set what the
 * loop's next turn obeys (turn.c) and kick the loop. And how a call from outside enters a simulated run.
 */
#include <stdarg.h>
#include <stdio.h>

#include "base/memory.h"
#include "base/status.h"
#include "base/text.h"
#include "base/words.h"
#include "scheduler/ready.h"
#include "scheduler/run.h"

/*
 * The entity that met the error of a failed device need not have caused it: the text lists the suspects, and
 * an entity is accused only if there is just one (E3).
 */
static weir_status blame_device(weir_scheduler *scheduler)
{
	struct wr_system *system = scheduler->graph->system;
	const char *accused = wr_system_accused(system);

	wr_fail(WEIR_E_DEVICE, "%s", wr_system_failure(system));
	return accused && weir_graph_entity(scheduler->graph, accused)
		       ? wr_error_blame(WEIR_E_DEVICE, accused)
		       : WEIR_E_DEVICE;
}

/* Keeps this thread's last error as the failure of the run, unless there is one. */
static void keep_failure(weir_scheduler *scheduler, const weir_entity *entity, weir_cause cause,
			 weir_status status)
{
	bool lost = !wr_system_check_device(scheduler->graph->system);

	if (!*weir_last_error())
		wr_fail(status, "%s", weir_status_text(status));
	if (lost)
		status = blame_device(scheduler);
	else if (entity)
		wr_error_blame(status, entity->plan->name);
	wr_mutex_lock(&scheduler->lock);
	if (!scheduler->failure) {
		scheduler->failure = status;
		scheduler->cause = lost ? WEIR_CAUSE_DEVICE : cause;
		scheduler->error = *wr_error_here();
	}
	wr_mutex_unlock(&scheduler->lock);
}

void wr_run_fail(weir_scheduler *scheduler, const weir_entity *entity, weir_cause cause, weir_status status)
{
	keep_failure(scheduler, entity, cause, status);
	wr_fetch_or(&scheduler->stop_asked, WR_STOP_FAILED);
	wr_loop_kick(&scheduler->loop);
}

void weir_scheduler_stop(weir_scheduler *scheduler, unsigned flags)
{
	wr_fetch_or(&scheduler->stop_asked, flags & WEIR_STOP_DRAIN ? WR_STOP_DRAIN : WR_STOP_NOW);
	if (scheduler->graph->owns_world)
		return; /* may be a signal handler, and the loop polls `stop_asked` (turn.c) */
	wr_loop_kick(&scheduler->loop);
}

/* The scheduler's text is the failure's, if there is one. */
static void keep_reason(weir_scheduler *scheduler, char *reason)
{
	wr_mutex_lock(&scheduler->lock);
	if (!scheduler->failure && !scheduler->text) {
		scheduler->text = reason;
		reason = NULL;
	}
	wr_mutex_unlock(&scheduler->lock);
	wr_free(reason);
}

static void drain_because(weir_scheduler *scheduler, const weir_entity *entity, const char *format,
			  va_list list)
{
	struct wr_text text = {0};
	char given[400], shown[sizeof given];

	vsnprintf(given, sizeof given, format, list);
	wr_shown_cut(shown, sizeof shown, given);
	wr_text_add(&text, "%s: %s", entity->plan->name, shown);
	if (!text.status)
		keep_reason(scheduler, wr_strdup(text.text));
	wr_text_finish(&text);
}

void weir_context_drain(weir_context *context, const char *format, ...)
{
	weir_entity *entity = weir_context_entity(context);
	weir_scheduler *scheduler = wr_load_acquire(&entity->scheduler);
	va_list list;

	va_start(list, format);
	if (format)
		drain_because(scheduler, entity, format, list);
	va_end(list);
	weir_scheduler_stop(scheduler, WEIR_STOP_DRAIN);
}

weir_status weir_context_fail_after_drain(weir_context *context, weir_status failure, const char *format, ...)
{
	weir_entity *entity = weir_context_entity(context);
	va_list list;

	if (!context->computing || failure >= WEIR_OK)
		return wr_fail(WEIR_E_INVALID, "%s: fail_after_drain is for compute, with a failure",
			       entity->plan->name);
	va_start(list, format);
	wr_vfail(failure, format, list);
	va_end(list);
	keep_failure(wr_load_acquire(&entity->scheduler), entity, WEIR_CAUSE_COMPUTE, failure);
	weir_context_drain(context, NULL);
	return weir_context_finish(context);
}

bool weir_scheduler_running(const weir_scheduler *scheduler)
{
	return !wr_run_ended((weir_scheduler *)scheduler);
}

bool weir_scheduler_stopping(const weir_scheduler *scheduler)
{
	weir_scheduler *self = (weir_scheduler *)scheduler;

	return !wr_run_ended(self) && wr_load(&self->stop_asked);
}

/* --- simulated runs --- */

struct visit {
	weir_scheduler *scheduler;
	wr_world_fn *fn;
	void *arg;
	weir_status status;
};

/* Wakes a worker for entries that were pushed from outside, as the loop does now and then (turn.c). */
static void enter_world(void *arg)
{
	struct visit *visit = arg;

	if (wr_ready_injector_holds(visit->scheduler))
		wr_wake_one(visit->scheduler);
	visit->status = visit->fn(visit->scheduler, visit->arg);
}

weir_status wr_world_call(weir_scheduler *scheduler, wr_world_fn *fn, void *arg)
{
	struct visit visit = {scheduler, fn, arg, WEIR_OK};
	weir_status status;

	if (!scheduler->sim || wr_sim_current() == scheduler->sim)
		return fn(scheduler, arg);
	status = wr_sim_call(scheduler->sim, enter_world, &visit);
	return status ? status : visit.status;
}
