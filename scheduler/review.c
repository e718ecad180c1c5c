/*
 * Decides what an entity does next (S2). A review may be made at any time: at worst its answer is the same
 * again.
 *
 * The entity's state: a popped entity goes from QUEUED to RUNNING by exchange, before its conditions are
 * asked. If it was poked meanwhile (NOTIFIED), it is exchanged to RUNNING and reviewed again. It goes to
 * IDLE only by CAS, after a review that did not end in a tick. It goes back to QUEUED by exchange after a
 * row of ticks: after 8, when a timer is due, or when the next tick would drop a message. Each exchange
 * acquires what the pokers published.
 */
#include "base/bug.h"
#include "base/status.h"
#include "scheduler/scheduler.h"

enum step { STEP_TICK, STEP_PARK, STEP_DONE, STEP_LEAVE };

/* The condition would be asked again at once, for ever. */
static enum step fail_past_time(weir_scheduler *scheduler, weir_entity *entity)
{
	wr_fail_run(scheduler, entity,
		    wr_fail(WEIR_E_INVALID,
			    "condition '%s' waits until a time that has come, twice in a row: "
			    "it must say READY when now >= that time",
			    wr_load_relaxed(&entity->why_of)));
	return STEP_LEAVE;
}

static enum step review_entity(struct wr_worker *worker, weir_entity *entity)
{
	weir_scheduler *scheduler = worker->scheduler;
	unsigned asked = wr_load_acquire(&scheduler->asked);
	enum wr_answer answer;

	if (asked & (WR_STOP_NOW | WR_STOP_FAILED))
		return STEP_LEAVE; /* the loop closes the run and drops this entity's references */
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
			return fail_past_time(scheduler, entity);
		if (wr_wait_armed(&entity->wait) || wr_verdict_arms(&entity->verdict))
			wr_wait_arm(worker, entity);
		return STEP_PARK;
	case WR_NEVER:
	case WR_SILENT: /* answers of a single condition, never of an entity */
	case WR_MISUSED:
		break;
	}
	return STEP_DONE;
}

/* Seeded bugs: to IDLE without the CAS. */
static bool park_wrongly(weir_entity *entity)
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

/* Returns true if the entity is parked now; false if it was poked meanwhile and is RUNNING again. */
static bool park_entity(struct wr_worker *worker, weir_entity *entity)
{
	uint32_t running = WR_RUNNING;

	wr_trace_park(worker->scheduler->trace, entity->id, entity->verdict.why);
	if (park_wrongly(entity))
		return true;
	if (wr_cas(&entity->state, &running, WR_IDLE))
		return true;
	wr_exchange(&entity->state, WR_RUNNING);
	return false;
}

static void requeue_entity(struct wr_worker *worker, weir_entity *entity)
{
	wr_exchange(&entity->state, WR_POKED); /* a store would break the release sequence of the pokers */
	wr_push_behind(worker, entity);
}

void wr_run_entity(struct wr_worker *worker, weir_entity *entity)
{
	wr_exchange(&entity->state, WR_RUNNING);
	worker->row = 0;
	worker->row_woke = NULL;
	worker->row_yields = false;
	while (!wr_live_closed(&worker->scheduler->live)) {
		switch (review_entity(worker, entity)) {
		case STEP_TICK:
			if (wr_tick(worker, entity))
				return; /* the run has failed: this entity is not reviewed again */
			if (++worker->row >= WR_TICKS_MAX || wr_due_holds(worker->scheduler)) {
				requeue_entity(worker, entity);
				return;
			}
			break;
		case STEP_PARK:
			if (park_entity(worker, entity))
				return;
			break;
		case STEP_DONE:
			wr_entity_end(worker, entity);
			return;
		case STEP_LEAVE:
			return;
		}
	}
	if (WR_BUG(GIVEN_BACK_TO_CLOSED))
		wr_inject(worker->scheduler, entity);
}
