/*
 * What a parked entity waits for, beside pokes: a time, a signal for its fences, something from outside.
 * While it names any, it holds one live reference, its current wait (S4), set and cleared only here, by its
 * owner's review: a superseded timer or signal holds none, and its firing is a useless poke.
 */
#include <string.h>

#include "base/bug.h"
#include "base/memory.h"
#include "base/status.h"
#include "scheduler/scheduler.h"

static void hold(weir_scheduler *scheduler, struct wr_wait *wait, bool held)
{
	if (held && !wait->held)	/* the worker has its own, so the count is not 0 */
		wr_live_take(&scheduler->live);
	if (!held && wait->held)
		wr_drop_live(scheduler);
	wait->held = held;
}

static bool same_fence(weir_fence a, weir_fence b)
{
	return a.stream == b.stream && a.point == b.point;
}

/*
 * Whether the token that is armed fires when the last of the verdict's fences completes: these are all among
 * the token's, and the others of the token's are complete. So a new token is armed when a set gains a fence,
 * not each time one of many completes (G2). One that has fired, though a fence still seems pending to who
 * asks (a word comes a moment after its point), will not do it again.
 */
static bool still_right(struct wr_system *system, const struct wr_wait *wait, const weir_verdict *verdict)
{
	size_t found = 0;

	if (!wr_signal_pending(wait->token))
		return false;
	for (size_t i = 0; i < wait->fence_count; i++) {
		if (found < verdict->fence_count && same_fence(wait->fences[i], verdict->fences[found]))
			found++;	/* both in the order of the fronts */
		else if (!wr_fence_seen(system, wait->fences[i]))
			return false;
	}
	return found == verdict->fence_count;
}

static void drop_token(weir_scheduler *scheduler, struct wr_wait *wait)
{
	if (wait->token)
		wr_signal_cancel(scheduler->graph->system, wait->token);
	wait->token = 0;
	wait->fence_count = 0;
}

static void supersede(weir_scheduler *scheduler, weir_entity *entity)
{
	drop_token(scheduler, &entity->wait);
	if (entity->wait.refused)
		wr_signal_leave(scheduler->graph->system, entity->id);
	entity->wait.refused = false;
}

/*
 * Every fence of the verdict is armed, whoever named it: by a flag that was rung for all of them, by a
 * callback on the stream that they all lie on, or else by callback, which takes any.
 */
static weir_status arm_by_kind(weir_scheduler *scheduler, weir_entity *entity)
{
	struct wr_system *system = scheduler->graph->system;
	const weir_verdict *verdict = &entity->verdict;
	const weir_fence *fences = verdict->fences;
	size_t count = verdict->fence_count;
	wr_token *token = &entity->wait.token;
	weir_status status = WEIR_E_UNSUPPORTED;

	if (verdict->signal == WR_SIGNAL_FLAG)
		status = wr_flag_arm(system, entity->id, fences, count, token);
	else if (verdict->signal == WR_SIGNAL_INLINE)
		status = wr_signal_inline(system, entity->id, fences, count, token);
	if (!status && verdict->signal == WR_SIGNAL_FLAG)
		wr_poll_armed(scheduler);
	return status == WEIR_E_UNSUPPORTED ? wr_signal_arm(system, entity->id, fences, count, token) : status;
}

static weir_status arm_signal(weir_scheduler *scheduler, weir_entity *entity)
{
	struct wr_wait *wait = &entity->wait;
	const weir_verdict *verdict = &entity->verdict;
	weir_status status;

	if (still_right(scheduler->graph->system, wait, verdict))
		return WEIR_OK;
	/* A place among the refused is kept until there is a token: pokes must not cost it (G2). */
	drop_token(scheduler, wait);
	if (WR_BUG(OWN_FENCE_NOT_ARMED) && !entity->fronts_closed)
		return WEIR_OK;
	status = wr_grow(&wait->fences, &wait->fence_room, verdict->fence_count, sizeof *wait->fences);
	if (status)
		return status;
	status = arm_by_kind(scheduler, entity);
	if (status == WEIR_E_INVALID)
		return wr_entity_refuse_fence(entity);
	if (status == WEIR_E_BUSY) {
		wait->refused = true;
		return WEIR_OK;
	}
	if (status)
		return status;
	wait->refused = false;
	memcpy(wait->fences, verdict->fences, sizeof *wait->fences * verdict->fence_count);
	wait->fence_count = verdict->fence_count;
	wr_trace_arm(scheduler->trace, entity->id, wait->token);
	return WEIR_OK;
}

void wr_wait_arm(struct wr_worker *worker, weir_entity *entity)
{
	weir_scheduler *scheduler = worker->scheduler;
	const weir_verdict *verdict = &entity->verdict;
	weir_status status = WEIR_OK;

	hold(scheduler, &entity->wait, verdict->external || verdict->fence_count || verdict->at != INT64_MAX);
	if (verdict->fence_count)
		status = arm_signal(scheduler, entity);
	else if (entity->wait.token || entity->wait.refused)
		supersede(scheduler, entity);
	if (verdict->at != INT64_MAX)
		wr_timers_request(scheduler, entity, verdict->at);
	if (status)
		wr_fail_run(scheduler, entity, status);
}

void wr_wait_disarm(struct wr_worker *worker, weir_entity *entity)
{
	if (entity->wait.token || entity->wait.refused)
		supersede(worker->scheduler, entity);
	if (entity->wait.held)
		hold(worker->scheduler, &entity->wait, false);
}
