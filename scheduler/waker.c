/*
 * What streams/ tells the scheduler: that a token has fired, that there is something to look at, that work
 * begins or ends that holds the run open. Any thread, the driver's among them: so nothing here waits,
 * allocates or calls CUDA.
 */
#include "scheduler/scheduler.h"

static weir_scheduler *of(struct wr_waker *waker)
{
	return (weir_scheduler *)(void *)((char *)waker - offsetof(struct weir_scheduler, waker));
}

static void kick(struct wr_waker *waker)
{
	wr_loop_kick(&of(waker)->loop);
}

static void take(struct wr_waker *waker)
{
	weir_scheduler *scheduler = of(waker);

	wr_live_take(&scheduler->live);
	if (!wr_load(&scheduler->watching))
		wr_loop_kick(&scheduler->loop);	/* the health watch has something to look at again */
}

static void drop(struct wr_waker *waker)
{
	wr_drop_live(of(waker));
}

/* The poller runs what fires under its own eyes; whatever else fires comes from outside. */
static void poke(struct wr_waker *waker, uint32_t entity)
{
	weir_scheduler *scheduler = of(waker);
	weir_entity *woken = wr_graph_at(scheduler->graph, entity);
	struct wr_worker *worker = wr_worker_here(scheduler);

	if (!worker || !worker->polling)
		wr_poke_foreign(scheduler, woken);
	else if (wr_fetch_or(&woken->state, WR_POKED) == WR_IDLE)
		wr_push_fired(worker, woken);
}

void wr_waker_init(struct wr_waker *waker)
{
	*waker = (struct wr_waker){poke, kick, take, drop};
}
