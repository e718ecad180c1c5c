/*
 * Signals that end without their callbacks: because the device was lost, which calls nobody back, or because
 * the run is over and its waker goes.
 *
 * Failing ends every token as its callback would have: each entity that waits is poked once, whoever is
 * first. Revoking (G1) makes an orphan of what has not fired: its callback, should it ever come, touches the
 * slot alone and gives it back. Then the caller waits until nobody is inside any slot, collects what has
 * fired, and takes the rest back here; the slots that are free go to the slab. The signal stream of an orphan is in
 * draining until its last event is complete.
 *
 * Thread: fail: any; the others: who detaches, when no worker and no loop is left.
 */
#include "streams/signal.h"
#include "streams/system.h"

/* As if its callback had come, which it may still do: then it finds the token gone. */
static void fail_one(struct wr_signal *signal, void *arg)
{
	wr_token token = wr_load(&signal->token);
	enum wr_token_end end = token ? wr_token_end(token) : WR_TOKEN_GONE;

	(void)arg;
	if (end != WR_TOKEN_GONE)
		signal->sink.fired(&signal->sink, end == WR_TOKEN_WAS_CANCELLED);
}

void wr_signals_fail(struct wr_system *system, struct wr_waker *waker)
{
	wr_signals_each(system, fail_one, NULL);
	for (int device = 0; device < system->devices && waker; device++)
		wr_refused_poke(system, waker, device, UINT32_MAX);
}

/* The callback of an orphan gives the slot back, or never comes. */
static void shut_down_one(struct wr_signal *signal, void *arg)
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

/* Separate from giving back, because the slot of an orphan is asked for those inside, too. */
void wr_signals_shut_down(struct wr_system *system)
{
	wr_signals_each(system, shut_down_one, system);
}

static void look_inside(struct wr_signal *signal, void *arg)
{
	bool *inside = arg;

	*inside |= signal->slot != WR_NO_SLOT && wr_slot_inside(signal->slot);
}

bool wr_signals_inside(struct wr_system *system)
{
	bool inside = false;

	wr_signals_each(system, look_inside, &inside);
	return inside;
}

/* Nobody is inside and the fired list was collected: what is still armed is an orphan. */
static void give_back_one(struct wr_signal *signal, void *arg)
{
	struct wr_signals *signals = arg;
	bool orphan = wr_load(&signal->token) != 0;

	if (!orphan && signal->slot != WR_NO_SLOT)
		wr_slot_give(signal->slot);
	signal->slot = WR_NO_SLOT;
	if (orphan)
		wr_signal_stream_push(signals, &signals->draining, wr_signal_recycle(signal));
}

void wr_signals_release_all(struct wr_system *system)
{
	wr_signals_each(system, give_back_one, &system->signals);
}
