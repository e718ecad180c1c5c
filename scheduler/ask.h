/* Asking one condition: used by reviews (ask.c) and by explanations (explain.c). */
#ifndef WR_SCHEDULER_ASK_H
#define WR_SCHEDULER_ASK_H

#include "scheduler/graph.h"

/* Keeps the fences of earlier conditions in the list; the caller counts and removes them. */
static inline void wr_verdict_clear(weir_verdict *verdict)
{
	verdict->answer = WR_SILENT;
	verdict->cause = WEIR_CAUSE_NONE;
	verdict->why = NULL;
	verdict->external = 0;
	verdict->at = INT64_MAX;
	verdict->fences_from = verdict->fence_count;
}

/* Notes misuse of a view or a verdict, which fails the run. `misuse` is a literal; the first one is kept. */
static inline void wr_view_misuse(const weir_view *view, const char *misuse)
{
	weir_verdict *verdict = &view->entity->verdict;

	if (verdict->failed)
		return;
	verdict->failed = WEIR_E_INVALID;
	verdict->misuse = misuse;
	verdict->misuse_of = view->condition ? view->condition->plan->name : "?";
}

/* The answer is in entity->verdict. */
static inline void wr_condition_ask(weir_view *view, const struct wr_condition *condition)
{
	wr_verdict_clear(&view->entity->verdict);
	view->condition = condition;
	condition->ask(condition->state, view, &view->entity->verdict);
}

/* A wait or NEVER of the scheduler's own. */
static inline void wr_verdict_give_cause(weir_verdict *verdict, weir_cause cause, uint32_t on)
{
	verdict->cause = cause;
	verdict->on = on;
	verdict->needed = 0;
}

void wr_verdict_check_new_cause(weir_view *view, struct wr_condition *condition);
/* Completes and checks the cause of the condition that was asked last and does not hold. */
static inline void wr_verdict_check_cause(weir_view *view, struct wr_condition *condition)
{
	const weir_verdict *verdict = &view->entity->verdict;

	if (wr_cause_word(verdict->cause, verdict->on) != condition->cause_checked)
		wr_verdict_check_new_cause(view, condition);
}

/* Asks the implied gate of the port (C8). Returns true, with a WAIT verdict, if its front is not finished. */
bool wr_gate_ask(weir_view *view, unsigned input);

/* Messages that a content condition finds at a port (C4); any-size port: in the emptiest connection. */
static inline size_t wr_view_count_or_least(const weir_view *view, unsigned input)
{
	return weir_view_any_size(view, input) ? weir_view_least(view, input) : weir_view_count(view, input);
}

#endif
