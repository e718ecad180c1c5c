/*
 * Carriers: native streams of which each carries one signal at a time. One whose signal was given up is in
 * limbo until its last event is complete.
 */
#include "base/memory.h"
#include "streams/signal.h"
#include "streams/system.h"

static void free_carrier(struct wr_system *system, struct wr_carrier *carrier)
{
	if (carrier->native)
		system->backend->stream_destroy(system->native, carrier->native);
	if (carrier->event) /* a record of it may have been on the stream (lost.c) */
		system->backend->event_destroy(system->native, carrier->event);
	wr_free(carrier);
}

static weir_status make_carrier(struct wr_system *system, int device, struct wr_carrier **out)
{
	struct wr_carrier *carrier = wr_alloc(1, sizeof *carrier);
	weir_status status;

	if (!carrier)
		return WEIR_E_NOMEM;
	carrier->device = device;
	status = wr_system_note(
		system, system->backend->stream_create(system->native, device, 0, 0, NULL, &carrier->native));
	if (!status)
		status = wr_system_note(
			system, system->backend->event_create(system->native, device, &carrier->event));
	if (status)
		free_carrier(system, carrier);
	else
		*out = carrier;
	return status;
}

struct wr_carrier *wr_carrier_pop_locked(struct wr_carrier **list, int device)
{
	for (; *list; list = &(*list)->next) {
		struct wr_carrier *carrier = *list;

		if (carrier->device != device)
			continue;
		*list = carrier->next;
		return carrier;
	}
	return NULL;
}

void wr_carrier_push(struct wr_signals *signals, struct wr_carrier **list, struct wr_carrier *carrier)
{
	if (!carrier)
		return;
	wr_mutex_lock(&signals->lock);
	carrier->next = *list;
	*list = carrier;
	wr_mutex_unlock(&signals->lock);
}

/* Where that is refused the event stands for something older, and says nothing until it is recorded. */
void wr_carrier_mark(struct wr_system *system, struct wr_carrier *carrier)
{
	carrier->unmarked =
		wr_system_note(system, system->backend->record(system->native, carrier->device,
							       carrier->native, carrier->event)) != WEIR_OK;
}

/* Of one in limbo: whether nothing is left on it. */
static weir_status ask_carrier(struct wr_system *system, struct wr_carrier *carrier)
{
	if (!carrier->unmarked)
		return wr_system_note(system, system->backend->query(system->native, carrier->event));
	wr_carrier_mark(system, carrier);
	return WEIR_E_BUSY;
}

/* It may still wait for the fences of a signal that did not come about: the next one must not. */
void wr_carrier_give_up(struct wr_system *system, struct wr_carrier *carrier)
{
	if (!carrier)
		return;
	carrier->unmarked = true;
	if (!wr_system_failed(system))
		wr_carrier_mark(system, carrier);
	wr_carrier_push(&system->signals, &system->signals.limbo, carrier);
}

static struct wr_carrier *pop_limbo(struct wr_signals *signals, int device)
{
	struct wr_carrier *carrier;

	wr_mutex_lock(&signals->lock);
	carrier = wr_carrier_pop_locked(&signals->limbo, device);
	wr_mutex_unlock(&signals->lock);
	return carrier;
}

/* One that was given up and is through by now, or a new one. */
weir_status wr_carrier_other(struct wr_system *system, int device, struct wr_carrier **out)
{
	struct wr_signals *signals = &system->signals;
	struct wr_carrier *busy = NULL, *carrier;

	while ((carrier = pop_limbo(signals, device)) && ask_carrier(system, carrier)) {
		carrier->next = busy;
		busy = carrier;
	}
	while (busy) {
		struct wr_carrier *next = busy->next;

		wr_carrier_push(signals, &signals->limbo, busy);
		busy = next;
	}
	if (!carrier)
		return wr_system_failed(system) ? wr_system_dead(system) : make_carrier(system, device, out);
	*out = carrier;
	return WEIR_OK;
}

static bool through(struct wr_system *system, struct wr_carrier *carrier)
{
	return wr_system_lost(system) || ask_carrier(system, carrier) != WEIR_E_BUSY;
}

bool wr_signals_drained(struct wr_system *system)
{
	for (struct wr_carrier *carrier = system->signals.limbo; carrier; carrier = carrier->next)
		if (!through(system, carrier))
			return false;
	return true;
}

void wr_carriers_free(struct wr_system *system, struct wr_carrier *carrier)
{
	while (carrier) {
		struct wr_carrier *next = carrier->next;

		free_carrier(system, carrier);
		carrier = next;
	}
}

weir_status wr_signals_reserve(struct wr_system *system, int device, size_t count)
{
	struct wr_signals *signals = &system->signals;
	size_t ready = 0;
	weir_status status = WEIR_OK;

	wr_mutex_lock(&signals->lock);
	for (struct wr_carrier *carrier = signals->carriers; carrier; carrier = carrier->next)
		ready += carrier->device == device;
	wr_mutex_unlock(&signals->lock);
	for (; !status && ready < count; ready++) {
		struct wr_carrier *carrier = NULL;

		status = wr_carrier_other(system, device, &carrier); /* or runs that are cut short add up */
		/* here alone: memory for it may have to wait for a busy device */
		if (!status && !carrier->word)
			status = wr_bell_word(system, device, &carrier->word);
		wr_carrier_push(signals, &signals->carriers, carrier);
	}
	return status;
}
