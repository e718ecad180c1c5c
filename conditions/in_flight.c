#include "conditions/conditions.h"

/*
 * Nothing runs away (T8): of the entity's own ticks that used the device at most max_in_flight are on their
 * way. Once so many are not known to be complete it waits until half of them are, so that one wake-up pays
 * for many ticks: the device has the other half meanwhile. Poked earlier it answers the same, so the signal
 * that is armed stays the right one.
 *
 * It waits for a multiple of that half, because only there the device is told to write its flag.
 */
enum { FENCES = 16 }; /* streams in one wait; if there are more, their turn comes when these are done */

static void ask(const void *state, const weir_view *view, weir_verdict *verdict)
{
	size_t most = weir_view_max_in_flight(view), half = most > 1 ? most / 2 : 1, pending;
	weir_fence fences[FENCES];
	uint64_t tick;

	(void)state;
	if (!most || weir_view_in_flight(view) < most) {
		weir_verdict_ready(verdict);
		return;
	}
	tick = weir_view_device_ticks(view) - most + half;
	tick -= tick % half;
	pending = weir_view_tick_pending(view, tick, fences, FENCES);
	if (!pending) {
		weir_verdict_ready(verdict);
		return;
	}
	weir_verdict_wait(verdict, "as many of its ticks as may be are on the device");
	for (size_t i = 0; i < pending && i < FENCES; i++)
		weir_verdict_fence(verdict, fences[i]);
}

const weir_condition wr_in_flight = {
	.size = sizeof(weir_condition),
	.name = "in_flight",
	.help = "fewer than max_in_flight of its ticks are on the device; the default of each entity",
	.phase = WEIR_GATHERING,
	.ask = ask,
};
