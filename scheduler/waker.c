/*
 * The callbacks by which streams/ reports to the scheduler: a token has fired, the loop has something to
 * look at, work that holds the run open begins or ends. Thread: any, the driver's included, so nothing here
 * waits, allocates or calls CUDA.
 */
#include "scheduler/scheduler.h"

static weir_scheduler *scheduler_of(struct wr_waker *waker)
{
	return (weir_scheduler *)(void *)((char *)waker - offsetof(struct weir_scheduler, waker));
}

static void waker_kick(struct wr_waker *waker)
{
	wr_loop_kick(&scheduler_of(waker)->loop);
}

static void waker_take(struct wr_waker *waker)
{
	weir_scheduler *scheduler = scheduler_of(waker);

	wr_live_take(&scheduler->live);
	if (!wr_load(&scheduler->watching))
		wr_loop_kick(&scheduler->loop); /* the health watch must run again */
}

static void waker_drop(struct wr_waker *waker)
{
	wr_drop_live(scheduler_of(waker));
}

/* What a poller's own look fires goes to its own queue; every other poke may come from a foreign thread. */
static void waker_poke(struct wr_waker *waker, uint32_t entity)
{
	weir_scheduler *scheduler = scheduler_of(waker);
	weir_entity *woken = wr_graph_at(scheduler->graph, entity);
	struct wr_worker *worker = wr_worker_here(scheduler);

	if (!worker || !worker->polling)
		wr_poke_foreign(scheduler, woken);
	else if (wr_fetch_or(&woken->state, WR_POKED) == WR_IDLE)
		wr_push_fired(worker, woken);
}

void wr_waker_init(struct wr_waker *waker)
{
	*waker = (struct wr_waker){waker_poke, waker_kick, waker_take, waker_drop};
}
