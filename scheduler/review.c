/*
 * Decides what an entity does next (S2). A review may be made at any time: at worst its answer is the same
 * again.
 *
 * The entity's state: a popped entity goes from QUEUED to RUNNING by exchange, before its conditions are
 * asked. If it was poked meanwhile (NOTIFIED), it is exchanged to RUNNING and reviewed again. It goes to
 * IDLE only by CAS, after a review that did not end in a tick. It goes back to QUEUED by exchange after a
 * row of ticks: after 8, when a timer is due, or when the next tick would drop a message. Each exchange
 * acquires what the pokers published.
 *
 * What a parked entity waits for, beside pokes: a time, a signal for its fences, something from outside.
 * While its verdict names any of these, the entity holds one live reference for its current wait (S4). Only
 * its owner sets and clears it, here. A cancelled timer or signal holds no reference: if it fires, the poke
 * is useless.
 */
#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "scheduler/gpu_time.h"
#include "scheduler/memory.h"
#include "scheduler/ready.h"
#include "scheduler/run.h"

/* --- the wait of a parked entity --- */

static void wait_set_live(weir_scheduler *scheduler, struct wr_wait *wait, bool hold)
{
	if (hold && !wait->holds_live) /* the worker has its own, so the count is not 0 */
		wr_live_take(&scheduler->live);
	if (!hold)
		wr_run_drop_live(scheduler);
	wait->holds_live = hold;
}

/*
 * Returns true if the armed token fires when the last of the verdict's fences completes: it covers all of
 * them, and its other fences are complete. So a new token is armed when the set gains a fence, not each time
 * one of many completes (G2). A token that has fired is of no use, even if a fence is not yet seen complete:
 * it will not fire again.
 */
static bool token_covers_verdict(struct wr_system *system, const struct wr_wait *wait,
				 const weir_verdict *verdict)
{
	size_t found = 0;

	if (!wr_signal_pending(wait->token))
		return false;
	for (size_t i = 0; i < wait->fence_count; i++) {
		weir_fence fence = wait->fences[i];

		if (found < verdict->fence_count && fence.stream == verdict->fences[found].stream &&
		    fence.value == verdict->fences[found].value)
			found++; /* both sets are in the order of the fronts */
		else if (!wr_fence_known_complete(system, fence))
			return false;
	}
	return found == verdict->fence_count;
}

static void cancel_token(weir_scheduler *scheduler, struct wr_wait *wait)
{
	if (wait->token)
		wr_signal_cancel(scheduler->graph->system, wait->token);
	wait->token = 0;
	wait->fence_count = 0;
}

static void cancel_signal(weir_scheduler *scheduler, weir_entity *entity)
{
	cancel_token(scheduler, &entity->wait);
	if (entity->wait.in_fifo)
		wr_signal_leave_fifo(scheduler->graph->system, entity->id);
	entity->wait.in_fifo = false;
}

/*
 * Of fences that the program completes arms the newest open one alone (T17): the review that follows arms the
 * rest. Else arms every fence of the verdict: by flag if a flag write was enqueued for each of them, or by a
 * callback on their common stream (callback_inline). What these two do not support is armed by callback,
 * which takes any fence.
 */
static weir_status arm_by_kind(weir_scheduler *scheduler, weir_entity *entity)
{
	struct wr_system *system = scheduler->graph->system;
	const weir_verdict *verdict = &entity->verdict;
	const weir_fence *fences = verdict->fences;
	size_t count = verdict->fence_count;
	wr_token *token = &entity->wait.token;
	weir_status status = WEIR_E_UNSUPPORTED;

	if (wr_system_has_promises(system)) {
		status = wr_promise_arm(system, entity->id, fences, count, token);
		entity->wait.promised = !status;
		if (!status && entity->wait.in_fifo)
			wr_signal_leave_fifo(system, entity->id);
		if (status != WEIR_E_UNSUPPORTED)
			return status;
	}
	if (verdict->signal == WR_SIGNAL_FLAG)
		status = wr_flag_arm(system, entity->id, fences, count, token);
	else if (verdict->signal == WR_SIGNAL_INLINE)
		status = wr_signal_inline(system, entity->id, fences, count, token);
	if (!status && verdict->signal == WR_SIGNAL_FLAG)
		wr_wake_poller(scheduler);
	if (status == WEIR_E_UNSUPPORTED)
		status = wr_signal_arm(system, entity->id, fences, count, token);
	return status;
}

__attribute__((noinline)) static void trace_arm(struct wr_worker *worker, weir_entity *entity)
{
	int signal = entity->verdict.signal;

	wr_trace_arm(worker->scheduler->trace, worker->local.index, entity->id, entity->wait.token,
		     signal == WR_SIGNAL_FLAG     ? WR_TRACE_FLAG
		     : signal == WR_SIGNAL_INLINE ? WR_TRACE_INLINE
						  : WR_TRACE_CALLBACK);
}

static weir_status arm_signal(struct wr_worker *worker, weir_entity *entity)
{
	weir_scheduler *scheduler = worker->scheduler;
	struct wr_wait *wait = &entity->wait;
	const weir_verdict *verdict = &entity->verdict;
	weir_status status;

	if (token_covers_verdict(scheduler->graph->system, wait, verdict))
		return WEIR_OK;
	/* A refused entity keeps its place in the FIFO until it has a token: a poke must not cost it (G2). */
	cancel_token(scheduler, wait);
	status = wr_grow(&wait->fences, &wait->fence_room, verdict->fence_count, sizeof *wait->fences);
	if (status)
		return status;
	status = arm_by_kind(scheduler, entity);
	if (status == WEIR_E_INVALID)
		return wr_entity_refuse_fence(entity);
	if (status == WEIR_E_BUSY) {
		wait->in_fifo = true;
		return WEIR_OK;
	}
	if (status)
		return status;
	wait->in_fifo = false;
	memcpy(wait->fences, verdict->fences, sizeof *wait->fences * verdict->fence_count);
	wait->fence_count = verdict->fence_count;
	if (scheduler->trace && !wait->promised) /* no signal of the device */
		trace_arm(worker, entity);
	return WEIR_OK;
}

static inline bool verdict_arms(const weir_verdict *verdict)
{
	return verdict->external || verdict->fence_count || verdict->at != INT64_MAX;
}

/* Arms what the verdict names. */
static void wait_arm(struct wr_worker *worker, weir_entity *entity)
{
	weir_scheduler *scheduler = worker->scheduler;
	const weir_verdict *verdict = &entity->verdict;
	weir_status status = WEIR_OK;

	wait_set_live(scheduler, &entity->wait, verdict_arms(verdict));
	entity->wait.at = verdict->at;
	entity->wait.watches = verdict->external & WR_DESCRIPTOR;
	if (verdict->fence_count)
		status = arm_signal(worker, entity);
	else
		cancel_signal(scheduler, entity);
	if (verdict->at != INT64_MAX)
		wr_timers_request(scheduler, entity, verdict->at);
	if (!status && verdict->external & WR_DESCRIPTOR)
		status = wr_descriptors_arm(scheduler, entity);
	if (status)
		wr_run_fail(scheduler, entity, verdict->cause, status);
}

/* Whatever is armed holds the run open. */
static inline bool wait_armed(const struct wr_wait *wait)
{
	return wait->holds_live;
}

void wr_wait_disarm(weir_scheduler *scheduler, weir_entity *entity)
{
	if (!wait_armed(&entity->wait))
		return;
	cancel_signal(scheduler, entity);
	entity->wait.at = INT64_MAX;
	entity->wait.watches = false;
	wait_set_live(scheduler, &entity->wait, false);
}

/* --- the review --- */

enum step { STEP_TICK, STEP_PARK, STEP_DONE, STEP_LEAVE };

/* The condition would be asked again at once, for ever. */
static enum step fail_past_time(weir_scheduler *scheduler, weir_entity *entity)
{
	wr_run_fail(scheduler, entity, entity->verdict.cause,
		    wr_fail(WEIR_E_INVALID,
			    "condition '%s' waits until a time that has come, twice in a row: "
			    "it must say READY when now >= that time",
			    wr_load_relaxed(&entity->why_of)));
	return STEP_LEAVE;
}

static inline enum step review_entity(struct wr_worker *worker, weir_scheduler *scheduler,
				      weir_entity *entity)
{
	unsigned asked = wr_load_acquire(&scheduler->stop_asked);
	enum wr_answer answer;

	if (asked & (WR_STOP_NOW | WR_STOP_FAILED))
		return STEP_LEAVE; /* the loop closes the run and drops this entity's references */
	answer = wr_entity_ask(entity, asked);
	if (entity->verdict.failed) {
		wr_run_fail(scheduler, entity, WEIR_CAUSE_OWN, wr_entity_verdict_failure(entity));
		return STEP_LEAVE;
	}
	switch (answer) {
	case WR_READY:
		return STEP_TICK;
	case WR_WAIT:
		if (entity->verdict.repeats_past)
			return fail_past_time(scheduler, entity);
		if (wait_armed(&entity->wait) || verdict_arms(&entity->verdict))
			wait_arm(worker, entity);
		return STEP_PARK;
	case WR_NEVER:
	case WR_SILENT: /* answers of a single condition, never of an entity */
	case WR_MISUSED:
		break;
	}
	return STEP_DONE;
}

/*
 * Claims for a tick what its resources must give (S3). If one refuses, the entity parks with its fronts
 * closed and nothing armed: the poke that offers it what comes back wakes it. What the device is done with by
 * now comes back at once, and the poke finds this entity RUNNING; for the rest the loop is kicked (T4).
 */
static bool claim_for_tick(weir_scheduler *scheduler, weir_entity *entity)
{
	weir_verdict *verdict = &entity->verdict;
	struct wr_shared *lacks = wr_claims_take(entity);

	if (!lacks)
		return true;
	wr_wait_disarm(scheduler, entity);
	wr_system_run_deferred_frees(scheduler->graph->system, false);
	entity->past_of = NULL; /* all conditions held */
	verdict->answer = WR_WAIT;
	verdict->why = "too little is free of what it claims";
	verdict->cause = WEIR_CAUSE_MEMORY;
	verdict->on = lacks->id;
	wr_store_relaxed(&entity->why, verdict->why);
	wr_store_relaxed(&entity->why_of, "memory_available");
	wr_store_relaxed(&entity->cause, wr_cause_word(WEIR_CAUSE_MEMORY, lacks->id));
	return false;
}

/* Of an entity with claims. Not inlined: the others pay one branch for claims. */
__attribute__((noinline)) static enum step review_claims(struct wr_worker *worker, weir_scheduler *scheduler,
							 weir_entity *entity)
{
	enum step step;

	wr_claims_note_owed(entity);
	step = review_entity(worker, scheduler, entity);
	if (step == STEP_TICK && !claim_for_tick(scheduler, entity))
		step = STEP_PARK;
	if (step == STEP_PARK)
		wr_claims_pass_on(entity);
	return step;
}

/* Not inlined: a park that is not observed pays one branch. */
__attribute__((noinline)) static void trace_park(struct wr_worker *worker, weir_entity *entity)
{
	if (entity->gpu_time)
		wr_gpu_time_read(entity, worker->local.index);
	wr_trace_wait(worker->scheduler->trace, worker->local.index, entity->id, entity->verdict.cause,
		      entity->verdict.on, wr_load_relaxed(&entity->why_of), entity->verdict.why);
}

void wr_run_entity(struct wr_worker *worker, weir_entity *entity)
{
	weir_scheduler *scheduler = worker->scheduler; /* in a register over all ticks of the row */
	enum step step;
	uint32_t running;

	wr_exchange(&entity->state, WR_RUNNING);
	worker->row = 0;
	worker->row_woke = NULL;
	worker->row_yields = false;
	while (!wr_live_closed(&scheduler->live)) {
		step = entity->claim_count ? review_claims(worker, scheduler, entity)
					   : review_entity(worker, scheduler, entity);
		switch (step) {
		case STEP_TICK:
			wr_trace_ready(scheduler->trace, worker->local.index, entity->id);
			if (wait_armed(&entity->wait))
				wr_wait_disarm(scheduler, entity);
			if (wr_tick(worker, entity))
				return; /* the run has failed: this entity is not reviewed again */
			if (++worker->row >= WR_TICKS_MAX || wr_ready_due_holds(scheduler)) {
				/* A store would break the release sequence of the pokers. */
				wr_exchange(&entity->state, WR_POKED);
				wr_trace_poke(scheduler->trace, worker->local.index, entity->id);
				wr_ready_push_behind(worker, entity);
				return;
			}
			break;
		case STEP_PARK:
			running = WR_RUNNING;
			if (scheduler->trace)
				trace_park(worker, entity);
			if (wr_cas(&entity->state, &running, WR_IDLE))
				return;
			wr_exchange(&entity->state, WR_RUNNING); /* it was poked meanwhile */
			break;
		case STEP_DONE:
			wr_wait_disarm(scheduler, entity);
			wr_entity_end(worker, entity);
			return;
		case STEP_LEAVE:
			return;
		}
	}
}
