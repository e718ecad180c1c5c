/* Asking one condition: used by reviews and by explanations (standstill.c). */
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
static inline void wr_view_misuse(weir_view *view, const char *misuse)
{
	weir_verdict *verdict = &view->entity->verdict;

	if (verdict->failed)
		return;
	verdict->failed = WEIR_E_INVALID;
	verdict->misuse = misuse;
	verdict->misuse_of = view->condition ? view->condition->plan->name : "?";
}

/* The answer is in entity->verdict. */
static inline void wr_condition_ask(weir_view *view, struct wr_condition *condition)
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

/*
 * Asks the implied gate of the port (C8), and, without one, whether a promise is open (T17). Returns true,
 * with a WAIT verdict, if the front is not finished.
 */
bool wr_gate_ask(weir_view *view, unsigned input);

/* --- the ports: for conditions, and for reviews that ask none --- */

bool wr_input_holds_in_all(const struct wr_input *input, size_t needed);
/* Returns true if the port holds `needed` messages; any-size port: in each queue. */
static inline bool wr_input_holds(const struct wr_input *input, size_t needed)
{
	if (input->lone) /* nearly always */
		return wr_queue_holds(&input->connections[0]->queue, needed);
	return wr_input_holds_in_all(input, needed);
}

/* A wait is in the verdict, unless it returns READY. */
enum wr_answer wr_content_port_lacks(weir_view *view, unsigned input);
/*
 * What content conditions imply of a port that they name: it holds what a tick takes (C4). READY, else a wait
 * is in the verdict; NEVER: it never will.
 */
static inline enum wr_answer wr_content_port_ask(weir_view *view, unsigned input)
{
	const struct wr_input *port = &view->entity->inputs[input];

	if (!port->content || wr_input_holds(port, port->need))
		return WR_READY;
	return wr_content_port_lacks(view, input);
}

/* A connection whose receiver is DONE always has room (S5). */
static inline bool wr_connection_is_free(const struct wr_connection *connection)
{
	return connection->sender_owns || wr_load_acquire(&connection->receiver_done);
}

/* Returns true if the full connection `at` blocks the port; notes it. */
bool wr_output_is_blocked(struct wr_output *output, size_t at);
/*
 * Returns true if each connection of the port has room for `needed` messages. Begins with the one that was
 * full the last time. Each receiver that frees room pokes the sender; if the sender then checked all of its N
 * connections, one round of N receivers would cost N * N checks.
 */
static inline bool wr_output_has_room(struct wr_output *output, size_t needed)
{
	size_t at = output->fullest;

	for (size_t i = 0; i < output->count; i++, at++) {
		at = at < output->count ? at : 0;
		if (!wr_queue_has_room(&output->connections[at]->queue, needed) &&
		    wr_output_is_blocked(output, at))
			return false;
	}
	return true;
}

#endif
