/* The options of a run: the caller's override the description's, which override the defaults. */
#include <string.h>
#include <unistd.h>

#include "base/status.h"
#include "base/struct.h"
#include "scheduler/scheduler.h"

#define DRAIN_NS 5000000000

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

/* Returns false if the caller gave the value: not 0, or a 0 that is marked in `given`. */
static bool not_given(const weir_scheduler_options *own, int64_t value, unsigned given)
{
	return !value && !(own->given & given);
}

static size_t max_in_flight(int asked, int64_t planned)
{
	if (asked)
		return asked < 0 ? 0 : (size_t)asked;
	return planned < 0 ? WR_IN_FLIGHT : (size_t)planned;
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
	if (not_given(own, own->seed != 0, WEIR_GIVEN_SEED) && plan->has_seed)
		own->seed = plan->seed;
	if (not_given(own, own->drain_ns, WEIR_GIVEN_DRAIN))
		own->drain_ns = plan->has_drain ? plan->drain_ns : DRAIN_NS;
	if (not_given(own, own->deadlock_grace_ns, WEIR_GIVEN_DEADLOCK_GRACE) && plan->has_grace)
		own->deadlock_grace_ns = plan->deadlock_grace_ns;
	if (not_given(own, own->max_duration_ns, WEIR_GIVEN_MAX_DURATION) && plan->has_duration)
		own->max_duration_ns = plan->max_duration_ns;
	if (not_given(own, own->spin_ns, WEIR_GIVEN_SPIN) && plan->has_spin)
		own->spin_ns = plan->spin_ns;
	if (own->max_in_flight > WR_IN_FLIGHT_MAX)
		return wr_fail(WEIR_E_INVALID, "max_in_flight %d: use at most %d", own->max_in_flight,
			       WR_IN_FLIGHT_MAX);
	scheduler->graph->max_in_flight = max_in_flight(own->max_in_flight, plan->max_in_flight);
	scheduler->worker_asked = own->workers ? own->workers : plan->workers;
	if (!scheduler->worker_asked)
		scheduler->worker_asked = one_per_core();
	if (scheduler->worker_asked > WR_WORKERS_MAX)
		return wr_fail(WEIR_E_INVALID, "%u workers: use at most %d", scheduler->worker_asked,
			       WR_WORKERS_MAX);
	return pick_signal(scheduler);
}
