/*
 * Decides what an entity does next (S2). There is one function that decides, whoever asks for it, and it is
 * right to call at any time: at worst the answer is the same again.
 *
 * The way of the state: popped QUEUED -> RUNNING by exchange, before the first question. Poked meanwhile
 * (NOTIFIED): exchange to RUNNING again, then review again. To IDLE only by CAS after a review that did not
 * end in a tick; back to QUEUED after a row of ticks by exchange: after 8, when something is due, or where
 * the next one would lose a message. Each exchange acquires what the pokers published.
 */
#include "base/bug.h"
#include "base/status.h"
#include "scheduler/scheduler.h"

enum step { STEP_TICK, STEP_PARK, STEP_RETIRE, STEP_LEAVE };

static enum step refuse_to_spin(weir_scheduler *scheduler, weir_entity *entity)
{
	wr_fail_run(scheduler, entity,
		    wr_fail(WEIR_E_INVALID, "condition '%s' waits until a time that has come, twice in a row: "
			    "it must say READY when now >= that time", wr_load_relaxed(&entity->why_of)));
	return STEP_LEAVE;
}

static enum step review(struct wr_worker *worker, weir_entity *entity)
{
	weir_scheduler *scheduler = worker->scheduler;
	unsigned asked = wr_load_acquire(&scheduler->asked);
	enum wr_answer answer;

	if (asked & (WR_STOP_NOW | WR_STOP_FAILED))
		return STEP_LEAVE;	/* the loop closes the run and gives back what this entity holds */
	answer = wr_entity_ask(entity, asked);
	if (entity->verdict.failed) {
		wr_fail_run(scheduler, entity, wr_entity_verdict_failure(entity));
		return STEP_LEAVE;
	}
	switch (answer) {
	case WR_READY:
		wr_trace_ready(scheduler->trace, entity->id);
		return STEP_TICK;
	case WR_WAIT:
		if (entity->verdict.stands)
			return refuse_to_spin(scheduler, entity);
		if (wr_wait_armed(&entity->wait) || wr_verdict_arms(&entity->verdict))
			wr_wait_arm(worker, entity);
		return STEP_PARK;
	case WR_NEVER:
	case WR_SILENT:		/* of one condition alone: an entity's answer is one of the three */
	case WR_MISUSED:
		break;
	}
	return STEP_RETIRE;
}

/* Seeded bugs: leaving without the CAS. */
static bool leave_wrongly(weir_entity *entity)
{
	if (WR_BUG(BLIND_IDLE)) {
		wr_store(&entity->state, WR_IDLE);
		return true;
	}
	if (WR_BUG(CHECK_THEN_STORE) && wr_load(&entity->state) == WR_RUNNING) {
		wr_store(&entity->state, WR_IDLE);
		return true;
	}
	return false;
}

/* True: parked. False: poked meanwhile, and RUNNING again. */
static bool park(struct wr_worker *worker, weir_entity *entity)
{
	uint32_t running = WR_RUNNING;

	wr_trace_park(worker->scheduler->trace, entity->id, entity->verdict.why);
	if (leave_wrongly(entity))
		return true;
	if (wr_cas(&entity->state, &running, WR_IDLE))
		return true;
	wr_exchange(&entity->state, WR_RUNNING);
	return false;
}

static void requeue(struct wr_worker *worker, weir_entity *entity)
{
	wr_exchange(&entity->state, WR_POKED);	/* never a store: it would cut the pokers' release chain */
	wr_push_behind(worker, entity);
}

void wr_run_entity(struct wr_worker *worker, weir_entity *entity)
{
	wr_exchange(&entity->state, WR_RUNNING);
	worker->row = 0;
	worker->row_woke = NULL;
	worker->row_yields = false;
	while (!wr_live_closed(&worker->scheduler->live)) {
		switch (review(worker, entity)) {
		case STEP_TICK:
			if (wr_tick(worker, entity))
				return;		/* the run has failed: nobody asks this entity again in it */
			if (++worker->row >= WR_TICKS_MAX || wr_due_holds(worker->scheduler)) {
				requeue(worker, entity);
				return;
			}
			break;
		case STEP_PARK:
			if (park(worker, entity))
				return;
			break;
		case STEP_RETIRE:
			wr_entity_end(worker, entity);
			return;
		case STEP_LEAVE:
			return;
		}
	}
	if (WR_BUG(GIVEN_BACK_TO_CLOSED))
		wr_inject(worker->scheduler, entity);
}
