#include "conditions/conditions.h"
#include "scheduler/view.h"

/*
 * Bounds the work on the device (T8): at most max_in_flight of the entity's device ticks are not known to be
 * complete. At the bound it waits until half of them are complete, so that one wake-up serves many ticks and
 * the device still has the other half to do. A review in between gives the same answer, so the armed signal
 * stays valid.
 */
enum { FENCES = 16 }; /* streams in one wait; further ones wait for the next review */

static void in_flight_ask(const void *state, weir_view *view, weir_verdict *verdict)
{
	weir_fence fences[FENCES];
	size_t pending = wr_view_flight_pending(view, FENCES, fences);

	(void)state;
	if (!pending) {
		weir_verdict_ready(verdict);
		return;
	}
	weir_verdict_wait(verdict, "max_in_flight of its ticks are on the device");
	weir_verdict_set_cause(verdict, WEIR_CAUSE_BOUND, -1, 0);
	for (size_t i = 0; i < pending && i < FENCES; i++)
		weir_verdict_fence(verdict, fences[i]);
}

const weir_condition wr_in_flight = {
	.size = sizeof(weir_condition),
	.name = "in_flight",
	.help = "fewer than max_in_flight of its ticks are on the device; the default of each entity",
	.phase = WEIR_PHASE_GATHERING,
	.ask = in_flight_ask,
};
