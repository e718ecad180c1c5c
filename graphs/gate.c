/*
 * Implied gates (C8): what a host port gives to compute is finished. A gate belongs to its port: it asks for no
 * number of messages, and is asked when the front is closed, before content conditions look at it. Where
 * no message with fences was pushed no gate is asked: weir_entity.looks.
 */
#include "graphs/ask.h"

enum { FENCES = 64 };	/* of one port in one wait: the turn of more comes when these are done */

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
	bool names = false, shut = false;

	for (unsigned i = 0; i < entity->input_count; i++) {
		bool here = wr_condition_names(condition->plan, i, true);
		names |= here;
		shut |= here && entity->inputs[i].shut;
	}
	return names && !shut;
}
