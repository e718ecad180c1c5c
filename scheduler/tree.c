/*
 * Asks trees of conditions: any_of, whose alternatives are conditions or all_of (C11).
 *
 * All alternatives are asked, since what each of them says decides which inputs the tick takes. If none
 * holds, the wait is for the first that could: the earliest time, what is told from outside, and the fences
 * of each alternative, in groups (WR_ALTERNATIVES), each of which gets a signal of its own. One signal for
 * all of them would fire with the last one.
 *
 * An alternative without messages says nothing: all connected inputs that it names are held, and the rest of
 * it holds; or it names inputs and none is connected. In a drain, neither does one that names no input, once
 * nothing but what is queued can come (S7): the tick that it asks for would take nothing.
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
	enum wr_rank rank;
	int64_t at;
	uint8_t external;
	size_t fences;
	weir_cause cause;
	uint32_t on;
	size_t needed;
	const char *why;
};

/* What names no port, and may say when a tick is due. */
static bool decides(const struct wr_plan_condition *plan)
{
	const char *kind = plan->kind->name;
	unsigned port;
	bool input;

	return !wr_condition_port(plan, &port, &input) && strcmp(kind, "in_flight") != 0 &&
	       strcmp(kind, "count") != 0 && strcmp(kind, "boolean") != 0 && strcmp(kind, "any_of") != 0 &&
	       strcmp(kind, "all_of") != 0;
}

/*
 * FREE: it names no input. HELD: a compute holds what it names, and nothing in it decides when to tick.
 * ABSENT: nothing that it names is connected.
 */
enum standing { ASKED, FREE, HELD, ABSENT };

static enum standing standing_of(const weir_entity *entity, const struct wr_condition *alternative)
{
	bool names = false, held = false, decided = false;

	for (size_t k = 0; k <= alternative->plan->span; k++) {
		decided |= decides(alternative[k].plan);
		for (unsigned i = 0; i < entity->input_count; i++) {
			const struct wr_input *input = &entity->inputs[i];
			if (!wr_condition_names(alternative[k].plan, i, true))
				continue;
			if (input->count && input->take)
				return ASKED;
			names = true;
			held |= input->count > 0;
		}
	}
	if (held)
		return decided ? ASKED : HELD;
	return names ? ABSENT : FREE;
}

/* As for an input that is held without a tree, what stands beside the trees decides then when to tick. */
static bool decided_elsewhere(const weir_entity *entity)
{
	for (size_t i = 0; i < entity->input_count; i++)
		if (entity->inputs[i].count && entity->inputs[i].take && !entity->inputs[i].chosen)
			return true;
	for (size_t i = 0; i < entity->asked_count; i++)
		if (decides(entity->conditions[i].plan))
			return true;
	return false;
}

static struct said ask_one(weir_view *view, struct wr_condition *condition)
{
	weir_verdict *verdict = &view->entity->verdict;

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
	struct said chosen = {.answer = WR_READY};

	for (size_t i = 1; i <= all_of->plan->span; i++) {
		struct said said = ask_one(view, &all_of[i]);
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

/* What all alternatives together say so far. */
struct any {
	struct said first; /* that waits; else that is NEVER */
	enum wr_rank rank; /* of all that wait, the lowest, for which no poke is needed */
	int64_t at;
	uint8_t external;
	bool ready, held, passed_over;
};

static struct any ask_alternatives(weir_view *view, struct wr_condition *tree)
{
	weir_verdict *verdict = &view->entity->verdict;
	struct wr_condition *end = tree->inside + tree->plan->span;
	struct any any = {.first = {.answer = WR_NEVER}, .rank = WR_RANK_POKE, .at = INT64_MAX};
	size_t from = verdict->fence_count;
	bool asked = false;
	/* Nothing comes any more, and all that is queued is in inputs that trees choose. */
	bool drained = view->draining && !view->entity->root && wr_view_inputs_over(view, true);

	tree->groups = 0;
	for (struct wr_condition *at = tree->inside; at < end; at += 1 + at->plan->span) {
		enum standing standing = standing_of(view->entity, at);
		struct said said = {.answer = WR_WAIT};
		bool holds;
		if (standing != ABSENT)
			said = at->plan->span ? ask_all_of(view, at) : ask_one(view, at);
		holds = said.answer == WR_READY;
		for (size_t i = 0; i <= at->plan->span; i++) {
			at[i].held = holds && standing != HELD;
			at[i].never = said.answer == WR_NEVER;
		}
		asked |= standing != ABSENT;
		any.held |= standing == HELD && holds;
		if (standing == ABSENT || (standing == HELD && holds))
			continue;
		if (standing == FREE && drained) {
			any.passed_over |= said.answer != WR_NEVER;
			verdict->fence_count -= said.fences;
			continue;
		}
		any.ready |= holds;
		if (said.answer == WR_NEVER && any.first.answer != WR_WAIT && !any.first.why)
			any.first = said;
		if (said.answer != WR_WAIT)
			continue;
		any.at = said.at < any.at ? said.at : any.at;
		any.external |= said.external;
		any.rank = said.rank < any.rank ? said.rank : any.rank;
		any.first = any.first.answer == WR_WAIT ? any.first : said;
		if (said.fences)
			tree->ends[tree->groups++] = verdict->fence_count - from;
	}
	any.ready |= !asked; /* as a condition of an input without a connection */
	return any;
}

/* The reason is that of the first alternative that waits. */
void wr_view_ask_any_of(weir_view *view, weir_verdict *verdict)
{
	const weir_entity *entity = view->entity;
	struct wr_condition *tree = view->condition;
	size_t from = verdict->fence_count;
	struct any any = ask_alternatives(view, tree);
	enum wr_answer answer = any.first.answer;

	/* A held input needs no message, so another condition decides; if there is none, an alternative. */
	if (any.ready || (any.held && (answer == WR_NEVER || decided_elsewhere(entity))))
		answer = WR_READY;
	/* What waits for a poke may wait for ever, while what was passed over would tick for ever. */
	else if (any.passed_over && any.rank == WR_RANK_POKE)
		answer = WR_NEVER;

	view->condition = tree;
	wr_verdict_clear(verdict);
	verdict->fences_from = from;
	if (answer != WR_WAIT) {
		verdict->fence_count = from;
		tree->groups = 0;
	}
	/* An alternative that looks at no sender would let it tick for ever. */
	if (answer != WR_NEVER && !entity->root && wr_view_inputs_over(view, false)) {
		verdict->fence_count = from;
		tree->groups = 0;
		weir_verdict_never(verdict,
				   "all inputs are closed, and no alternative can take what they hold");
		wr_verdict_give_cause(verdict, WEIR_CAUSE_MESSAGES, WR_NO_SUBJECT);
		return;
	}
	verdict->answer = answer;
	if (answer == WR_READY)
		return;
	if (answer == WR_NEVER && any.passed_over) {
		verdict->why = "draining, and no alternative takes what the inputs hold";
		wr_verdict_give_cause(verdict, WEIR_CAUSE_DRAIN, WR_NO_SUBJECT);
		return;
	}
	verdict->why = any.first.why;
	verdict->cause = any.first.cause;
	verdict->on = any.first.on;
	verdict->needed = any.first.needed;
	if (answer == WR_WAIT) {
		verdict->at = any.at;
		verdict->external = any.external;
		verdict->external |= tree->groups > 1 ? WR_ALTERNATIVES : 0;
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
