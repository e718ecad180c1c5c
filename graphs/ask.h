/* Asking one condition: what a review does (ask.c) and who explains it afterwards (explain.c). */
#ifndef WR_GRAPHS_ASK_H
#define WR_GRAPHS_ASK_H

#include "graphs/graph.h"

/* Fences that were noted stay: they are counted, and cut off, by whoever asks. */
static inline void wr_verdict_clear(weir_verdict *verdict)
{
	verdict->answer = WR_SILENT;
	verdict->why = NULL;
	verdict->external = false;
	verdict->at = INT64_MAX;
	verdict->fences_from = verdict->fence_count;
}

/* Misuse of a view or a verdict; `fault` is a literal. The first is kept; the review fails the run. */
static inline void wr_view_fault(const weir_view *view, const char *fault)
{
	weir_verdict *verdict = &view->entity->verdict;

	if (verdict->failed)
		return;
	verdict->failed = WEIR_E_INVALID;
	verdict->fault = fault;
	verdict->fault_of = view->condition ? view->condition->plan->name : "?";
}

/* The answer stays in the entity's verdict. */
static inline void wr_condition_ask(weir_view *view, const struct wr_condition *condition)
{
	wr_verdict_clear(&view->entity->verdict);
	view->condition = condition;
	view->counted = false;
	condition->ask(condition->state, view, &view->entity->verdict);
}

/* The implied gate of the port (C8): true: its front is not finished, and the verdict says so. */
bool wr_gate_ask(weir_view *view, unsigned input);
/* No gate of a port that the condition names is shut; one that names no port may look at any of them. */
bool wr_gate_lets_ask(const weir_entity *entity, const struct wr_condition *condition);

/*
 * Notes a fence in the list, one per stream, the latest. Returns the new length; what does not fit any more
 * waits for the next review.
 */
size_t wr_note_fence(weir_fence *out, size_t count, size_t room, weir_fence fence);

/* What a content condition finds at a port (C4); of an any-size port each connection has as many. */
static inline size_t wr_view_held(const weir_view *view, unsigned input)
{
	return weir_view_any_size(view, input) ? weir_view_least(view, input) : weir_view_count(view, input);
}

#endif
