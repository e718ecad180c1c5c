/*
 * Asks trees of conditions: any_of, whose alternatives are conditions or all_of (C11).
 *
 * All alternatives are asked, since what each of them says decides which inputs the tick takes. If none
 * holds, the wait is for the first that could: the earliest time, what is told from outside, and the fences
 * of each alternative, in groups (WR_ALTERNATIVES), each of which gets a signal of its own. One signal for
 * all of them would fire with the last one. An alternative whose inputs are held says nothing.
 *
 * The conditions inside trees are in the entity's list behind all that a review asks, in the order of the
 * text: all_of is followed by its own.
 */
#include <string.h>

#include "base/memory.h"
#include "scheduler/entity.h"

/* The answer of one alternative. Its fences are the last ones of the verdict. */
struct said {
	enum wr_answer answer;
	bool neutral; /* its inputs are held */
	enum wr_rank rank;
	int64_t at;
	uint8_t external;
	size_t fences;
	weir_cause cause;
	uint32_t on;
	size_t needed;
	const char *why;
};

static bool inputs_are_held(const weir_view *view, const struct wr_condition *condition)
{
	const weir_entity *entity = view->entity;
	bool held = false;

	for (unsigned i = 0; i < entity->input_count; i++) {
		if (!wr_condition_names(condition->plan, i, true))
			continue;
		if (entity->inputs[i].take)
			return false;
		held = true;
	}
	return held;
}

static struct said ask_one(weir_view *view, struct wr_condition *condition)
{
	weir_verdict *verdict = &view->entity->verdict;

	if (inputs_are_held(view, condition))
		return (struct said){.answer = WR_READY, .neutral = true};
	wr_condition_ask(view, condition);
	if (verdict->answer >= WR_SILENT) {
		wr_verdict_refuse(view);
		verdict->answer = WR_NEVER; /* the run fails */
	}
	if (verdict->answer != WR_READY)
		wr_verdict_check_cause(view, condition);
	if (verdict->answer != WR_WAIT)
		verdict->fence_count = verdict->fences_from;
	return (struct said){.answer = verdict->answer,
			     .rank = verdict->answer == WR_WAIT ? wr_verdict_rank(verdict) : WR_RANK_READY,
			     .at = verdict->at,
			     .external = verdict->external,
			     .fences = verdict->fence_count - verdict->fences_from,
			     .cause = verdict->cause,
			     .on = verdict->on,
			     .needed = verdict->needed,
			     .why = verdict->why};
}

/* As in a review, what one unmet condition waits for is enough. */
static struct said ask_all_of(weir_view *view, struct wr_condition *all_of)
{
	weir_verdict *verdict = &view->entity->verdict;
	size_t from = verdict->fence_count;
	struct said chosen = {.answer = WR_READY, .neutral = true};

	for (size_t i = 1; i <= all_of->plan->span; i++) {
		struct said said = ask_one(view, &all_of[i]);
		chosen.neutral &= said.neutral;
		if (said.answer == WR_NEVER) {
			verdict->fence_count = from;
			return said;
		}
		if (said.rank > chosen.rank ||
		    (said.rank == WR_RANK_TIME && chosen.rank == WR_RANK_TIME && said.at > chosen.at)) {
			if (said.fences && chosen.fences)
				memmove(verdict->fences + from, verdict->fences + from + chosen.fences,
					said.fences * sizeof *verdict->fences);
			chosen = said;
		}
		verdict->fence_count = from + chosen.fences;
	}
	return chosen;
}

/* The reason is that of the first alternative that waits. Behind the fences of each one stands {0, 0}. */
static struct said ask_alternatives(weir_view *view, struct wr_condition *tree)
{
	weir_verdict *verdict = &view->entity->verdict;
	struct wr_condition *end = tree->inside + tree->plan->span;
	struct said any = {.answer = WR_NEVER};
	int64_t at_first = INT64_MAX;
	uint8_t external = 0;
	bool ready = false, neutral = false;
	size_t from = verdict->fence_count, groups = 0;

	for (struct wr_condition *at = tree->inside; at < end; at += 1 + at->plan->span) {
		struct said said = at->plan->span ? ask_all_of(view, at) : ask_one(view, at);
		at->held = said.answer == WR_READY && !said.neutral;
		for (size_t i = 1; i <= at->plan->span; i++)
			at[i].held = at->held;
		ready |= at->held;
		neutral |= said.neutral;
		if (said.answer == WR_NEVER && any.answer == WR_NEVER && !any.why)
			any = said;
		if (said.answer != WR_WAIT)
			continue;
		at_first = said.at < at_first ? said.at : at_first;
		external |= said.external;
		any = any.answer == WR_WAIT ? any : said;
		if (!said.fences)
			continue;
		if (wr_grow(&verdict->fences, &verdict->fence_room, verdict->fence_count + 1,
			    sizeof *verdict->fences))
			verdict->failed = WEIR_E_NOMEM;
		else
			verdict->fences[verdict->fence_count++] = (weir_fence){0, 0};
		groups++;
	}
	if (ready || (any.answer == WR_NEVER && neutral))
		any.answer = WR_READY;
	if (any.answer != WR_WAIT)
		verdict->fence_count = from;
	else if (groups)
		verdict->fence_count--;
	any.at = at_first;
	any.external = external;
	any.external |= groups > 1 ? WR_ALTERNATIVES : 0;
	return any;
}

void wr_view_ask_any_of(weir_view *view, weir_verdict *verdict)
{
	const weir_entity *entity = view->entity;
	struct wr_condition *tree = view->condition;
	size_t from = verdict->fence_count;
	struct said any = ask_alternatives(view, tree);

	view->condition = tree;
	wr_verdict_clear(verdict);
	verdict->fences_from = from;
	/* An alternative that looks at no sender would let it tick for ever. */
	if (any.answer != WR_NEVER && !entity->root && wr_view_inputs_over(view)) {
		verdict->fence_count = from;
		weir_verdict_never(verdict, "all inputs are closed and empty");
		wr_verdict_give_cause(verdict, WEIR_CAUSE_MESSAGES, WR_NO_SUBJECT);
		return;
	}
	verdict->answer = any.answer;
	if (any.answer == WR_READY)
		return;
	verdict->why = any.why;
	verdict->cause = any.cause;
	verdict->on = any.on;
	verdict->needed = any.needed;
	if (any.answer == WR_WAIT) {
		verdict->at = any.at;
		verdict->external = any.external;
	}
}

void wr_view_any_of_ticked(weir_view *view)
{
	struct wr_condition *tree = view->condition;

	for (size_t i = 0; i < tree->plan->span; i++) {
		struct wr_condition *condition = &tree->inside[i];
		const weir_condition *kind = condition->plan->kind;
		view->condition = condition;
		if (condition->held && kind->ticked)
			kind->ticked(condition->state, view);
	}
	view->condition = tree;
}
