#include "scheduler/world.h"

weir_status wr_in_world(weir_scheduler *scheduler, void (*fn)(void *arg), void *arg)
{
	if (scheduler->sim && wr_sim_current() != scheduler->sim)
		return wr_sim_call(scheduler->sim, fn, arg);
	fn(arg);
	return WEIR_OK;
}
