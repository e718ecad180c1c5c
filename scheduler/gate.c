/*
 * Implied gates (C8): messages of a host port reach compute only when they are finished. A gate belongs to
 * its port. It requires no number of messages and is asked after the front was closed, before content
 * conditions. If no message with fences was pushed in this run, no gate is asked (weir_entity.looks).
 */
#include "scheduler/ask.h"

enum { FENCES = 64 }; /* of one port in one wait; further fences are waited for when these are complete */

bool wr_gate_ask(weir_view *view, unsigned input)
{
	weir_verdict *verdict = &view->entity->verdict;
	weir_fence fences[FENCES];
	size_t pending = weir_view_pending(view, input, fences, FENCES);

	wr_verdict_clear(verdict);
	if (pending)
		weir_verdict_wait(verdict, "waits for device work");
	for (size_t i = 0; i < pending && i < FENCES; i++)
		weir_verdict_fence(verdict, fences[i]);
	return pending;
}

bool wr_gate_lets_ask(const weir_entity *entity, const struct wr_condition *condition)
{
	bool names = false, waits = false;

	for (unsigned i = 0; i < entity->input_count; i++) {
		bool here = wr_condition_names(condition->plan, i, true);
		names |= here;
		waits |= here && entity->inputs[i].gate_waits;
	}
	return names && !waits;
}
