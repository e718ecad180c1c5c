/*
 * The FIFO of refused entities (G2). An entry holds a live reference, which is dropped when the entry is
 * removed: by a poke, by its entity, or at the end of the run.
 */
#include "base/memory.h"
#include "streams/signal.h"
#include "streams/system.h"

static struct wr_refused **refused_find_locked(struct wr_signals *signals, uint32_t entity)
{
	struct wr_refused **at = &signals->first;

	while (*at && (*at)->entity != entity)
		at = &(*at)->next;
	return at;
}

static void refused_unlink_locked(struct wr_signals *signals, struct wr_refused **at)
{
	struct wr_refused *gone = *at;

	*at = gone->next;
	if (!*at)
		signals->end = at;
	gone->next = signals->spare;
	signals->spare = gone;
}

bool wr_refused_leave_locked(struct wr_signals *signals, uint32_t entity)
{
	struct wr_refused **at = refused_find_locked(signals, entity);

	if (!*at)
		return false;
	refused_unlink_locked(signals, at);
	return true;
}

weir_status wr_refused_enter_locked(struct wr_signals *signals, uint32_t entity, int device, bool *entered)
{
	struct wr_refused *entry = signals->spare;

	*entered = !*refused_find_locked(signals, entity);
	if (!*entered)
		return WEIR_E_BUSY;
	if (entry)
		signals->spare = entry->next;
	else
		entry = wr_alloc(1, sizeof *entry);
	if (!entry)
		return WEIR_E_NOMEM;
	*entry = (struct wr_refused){.entity = entity, .device = device};
	*signals->end = entry;
	signals->end = &entry->next;
	return WEIR_E_BUSY;
}

bool wr_signals_refuse(struct wr_system *system)
{
	wr_mutex_lock(&system->signals.lock);
	bool any = system->signals.first != NULL;
	wr_mutex_unlock(&system->signals.lock);
	return any;
}

void wr_signal_leave(struct wr_system *system, uint32_t entity)
{
	struct wr_waker *waker = wr_system_enter(system);
	bool left;

	wr_mutex_lock(&system->signals.lock);
	left = wr_refused_leave_locked(&system->signals, entity);
	wr_mutex_unlock(&system->signals.lock);
	if (left && waker)
		waker->drop(waker);
	wr_system_leave(system);
}

static bool refused_take_locked(struct wr_signals *signals, int device, uint32_t *entity)
{
	for (struct wr_refused **at = &signals->first; *at; at = &(*at)->next)
		if ((*at)->device == device) {
			*entity = (*at)->entity;
			refused_unlink_locked(signals, at);
			return true;
		}
	return false;
}

static bool refused_take(struct wr_signals *signals, int device, uint32_t *entity)
{
	bool found;

	wr_mutex_lock(&signals->lock);
	found = refused_take_locked(signals, device, entity);
	wr_mutex_unlock(&signals->lock);
	return found;
}

void wr_refused_poke(struct wr_system *system, struct wr_waker *waker, int device, uint32_t most)
{
	uint32_t entity;

	while (most-- && refused_take(&system->signals, device, &entity)) {
		waker->poke(waker, entity);
		waker->drop(waker);
	}
}

void wr_signals_offer(struct wr_system *system, int device)
{
	struct wr_signals *signals = &system->signals;
	struct wr_waker *waker = wr_system_enter(system);
	uint32_t free;

	wr_mutex_lock(&signals->lock);
	free = signals->bound > signals->outstanding[device] ? signals->bound - signals->outstanding[device]
							     : 0;
	wr_mutex_unlock(&signals->lock);
	if (waker)
		wr_refused_poke(system, waker, device, free);
	wr_system_leave(system);
}

void wr_signals_drop_all_refs(struct wr_system *system, struct wr_waker *waker)
{
	struct wr_signals *signals = &system->signals;
	size_t n = 0;

	wr_mutex_lock(&signals->lock);
	for (; signals->first; n++)
		refused_unlink_locked(signals, &signals->first);
	wr_mutex_unlock(&signals->lock);
	while (n--)
		waker->drop(waker);
}

void wr_refused_free(struct wr_refused *entry)
{
	while (entry) {
		struct wr_refused *next = entry->next;

		wr_free(entry);
		entry = next;
	}
}
