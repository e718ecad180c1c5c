/*
 * Signals that end without their callbacks, because the device was lost and makes no callbacks any more, or
 * because the run is over and its waker is cleared.
 *
 * wr_signals_fail ends every token as its callback would have; a callback that comes as well finds the token
 * ended, so each waiting entity is poked once. wr_signals_shut_down (G1) detaches tokens that have not fired:
 * a callback that still comes touches only the slot and frees it. Then the caller waits until no thread is
 * inside a slot and collects what has fired; wr_signals_release_all recycles the remaining signals and
 * returns their free slots to the slab. The signal stream of a detached token stays in the draining list
 * until its last event is complete.
 *
 * Thread: wr_signals_fail: any; the others: the one that detaches, when the workers and the loop have left.
 */
#include "streams/signal.h"
#include "streams/system.h"

/* As its callback, which may still come; it finds the token gone then. */
static void signal_fail(struct wr_signal *signal, void *arg)
{
	wr_token token = wr_load(&signal->token);
	enum wr_token_end end = token ? wr_token_end(token) : WR_TOKEN_GONE;

	(void)arg;
	if (end != WR_TOKEN_GONE)
		signal->sink.fired(&signal->sink, end == WR_TOKEN_WAS_CANCELLED);
}

void wr_signals_fail(struct wr_system *system, struct wr_waker *waker)
{
	wr_signals_each(system, signal_fail, NULL);
	for (int device = 0; device < system->devices && waker; device++)
		wr_refused_poke(system, waker, device, UINT32_MAX);
}

static void signal_shut_down(struct wr_signal *signal, void *arg)
{
	struct wr_system *system = arg;
	wr_token token = wr_load(&signal->token);

	if (token && signal->by_flag && wr_token_end(token) != WR_TOKEN_GONE)
		wr_store(&signal->ended, token);
	if (!token || signal->by_flag || !wr_token_detach(token))
		return;
	wr_fetch_sub(&system->signals.pending, 1);
	if (signal->signal_stream && !wr_system_lost(system))
		wr_signal_stream_record(system, signal->signal_stream);
}

/* Separate from release_all, since the slots of detached tokens are asked for callbacks inside in between. */
void wr_signals_shut_down(struct wr_system *system)
{
	wr_signals_each(system, signal_shut_down, system);
}

static void signal_is_inside(struct wr_signal *signal, void *arg)
{
	bool *inside = arg;

	*inside |= signal->slot != WR_NO_SLOT && wr_slot_inside(signal->slot);
}

bool wr_signals_inside(struct wr_system *system)
{
	bool inside = false;

	wr_signals_each(system, signal_is_inside, &inside);
	return inside;
}

/* No thread is inside and the fired list was collected, so a token that is left was detached. */
static void signal_recycle_at_end(struct wr_signal *signal, void *arg)
{
	struct wr_signals *signals = arg;
	bool detached = wr_load(&signal->token) != 0;

	if (!detached && signal->slot != WR_NO_SLOT)
		wr_slot_give(signal->slot);
	signal->slot = WR_NO_SLOT;
	if (detached)
		wr_signal_stream_push(signals, &signals->draining, wr_signal_recycle(signal));
}

void wr_signals_release_all(struct wr_system *system)
{
	wr_signals_each(system, signal_recycle_at_end, &system->signals);
}
