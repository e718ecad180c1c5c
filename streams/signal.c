/*
 * Signals tell the scheduler that device work is complete (G1-G3; models m5_token, m5_bound). A signal is a
 * token with its sink, fired by a host callback (callback.c) or by the poller of the flags (poller.c).
 *
 * The life of a signal: it is taken from the free list and its token armed in one critical section, so that
 * its fields belong to that token. When it fires it pokes its entity and is pushed onto the fired list. Only
 * the loop (wr_system_collect) empties this list: it recycles the signal and then pokes as many refused
 * entities as the bound has free places, since a poked entity may no longer need to wait. If the poked ones
 * arm nothing, the watch finds those that are left. A signal by flag is never in the fired list: the poller
 * keeps it and recycles it.
 *
 * A signal keeps its slot of the slab until detach, so that detach knows all slots that may ever call back
 * (system.c). Signals are never freed before their system, so wr_signals_each needs no lock.
 */
#include "streams/signal.h"

#include "base/clock.h"
#include "base/memory.h"
#include "base/stack.h"
#include "base/status.h"
#include "streams/device.h"
#include "streams/signal_stream.h"
#include "streams/system.h"

const char *wr_signal_text(int kind)
{
	static const char *const texts[] = {"callback", "callback_inline", "flag"};

	return kind < (int)(sizeof texts / sizeof *texts) ? texts[kind] : NULL;
}

/* --- firing. Thread: device --- */

static void signal_push_fired(struct wr_signal *signal, struct wr_waker *waker)
{
	struct wr_signals *signals = &signal->system->signals;

	wr_fetch_sub(&signals->pending, 1);
	wr_stack_push(&signals->fired, signal, next);
	waker->kick(waker); /* after the push the signal may already be reused */
}

/*
 * A callback alone does not prove that the work succeeded. The signal stream's word does: it was written
 * after the waits and before the callback. Then the woken worker need not query the device, which would cost
 * as much as all the rest, because it contends with the thread that runs the callbacks. The word proves
 * nothing for fences of other devices: when a device is lost, waits for it on another one may be released.
 */
static void fences_note_complete(const struct wr_signal *signal)
{
	const struct wr_signal_stream *signal_stream = signal->signal_stream;

	if (!signal_stream || !signal->proven || wr_load(signal_stream->word) != signal_stream->flag_value)
		return;
	for (size_t i = 0; i < signal->count; i++) {
		weir_stream *stream;

		if (!wr_fence_find(signal->system, signal->fences[i], &stream) && stream &&
		    stream->spec.device == signal_stream->device)
			wr_stream_note_complete(stream, signal->fences[i].value);
	}
}

static void signal_fired(struct wr_sink *sink, wr_token token, bool stale)
{
	struct wr_signal *signal = (struct wr_signal *)sink; /* its first member */
	struct wr_waker *waker = signal->waker;

	fences_note_complete(signal);
	if (stale)
		wr_fetch_add(&signal->system->signals.stale, 1);
	else if (signal->entity != WR_NO_ENTITY)
		waker->poke(waker, signal->entity, token);
	if (signal->by_flag) /* after the store it may already be reused */
		wr_store(&signal->ended, token);
	else
		signal_push_fired(signal, waker);
}

/* --- making --- */

static weir_status signals_add_page_locked(struct wr_system *system)
{
	struct wr_signals *signals = &system->signals;
	struct wr_signals_page *page = wr_alloc(1, sizeof *page);

	if (!page)
		return WEIR_E_NOMEM;
	for (int i = 0; i < WR_SIGNALS; i++) {
		struct wr_signal *signal = &page->at[i];

		signal->sink.fired = signal_fired;
		signal->system = system;
		signal->slot = WR_NO_SLOT;
		signal->next = signals->free;
		signals->free = signal;
	}
	page->older = wr_load(&signals->pages);
	wr_store(&signals->pages, page);
	return WEIR_OK;
}

static weir_status signal_take_locked(struct wr_system *system, size_t n, struct wr_signal **out)
{
	struct wr_signals *signals = &system->signals;
	weir_status status = signals->free ? WEIR_OK : signals_add_page_locked(system);
	struct wr_signal *signal = signals->free;

	if (!status && signal->slot == WR_NO_SLOT)
		status = wr_slot_take(&signal->slot);
	if (!status)
		status = wr_grow(&signal->fences, &signal->room, n, sizeof *signal->fences);
	if (status)
		return status;
	signals->free = signal->next;
	*out = signal;
	return WEIR_OK;
}

weir_status wr_signal_make(struct wr_system *system, struct wr_waker *waker,
			   const struct wr_signal_request *request, struct wr_signal **out, wr_token *token)
{
	struct wr_signals *signals = &system->signals;
	struct wr_signal *signal;
	weir_status status;

	wr_mutex_lock(&signals->lock);
	status = signal_take_locked(system, request->count, &signal);
	if (!status) {
		signal->waker = waker;
		signal->entity = request->entity;
		signal->signal_stream = request->signal_stream;
		signal->stream = request->stream;
		signal->device = request->device;
		signal->bounded = request->bounded;
		signal->by_flag = request->by_flag;
		signal->proven = request->proven;
		signal->count = request->count;
		for (size_t i = 0; i < request->count; i++)
			signal->fences[i] = request->fences[i];
		signal->armed_at = wr_now();
		signal->complete_at = 0;
		wr_store(&signal->enqueued, 0);
		wr_store(&signal->ended, 0);
		wr_fetch_add(&signals->pending, 1);
		*token = wr_token_arm(signal->slot, &signal->sink);
		wr_store(&signal->token, *token);
		*out = signal;
	}
	wr_mutex_unlock(&signals->lock);
	/* Before the callback is enqueued: that call may block (F16), and the watch must see it. */
	if (!status)
		wr_watch_wake(system);
	return status;
}

/* --- recycling --- */

static void signal_uncount_locked(struct wr_signals *signals, struct wr_signal *signal)
{
	if (signal->bounded)
		signals->outstanding[signal->device]--;
	if (signal->stream && !signal->signal_stream)
		wr_fetch_sub(&signal->stream->inline_callbacks, 1);
	signal->bounded = false;
}

struct wr_signal_stream *wr_signal_recycle(struct wr_signal *signal)
{
	struct wr_signals *signals = &signal->system->signals;
	struct wr_signal_stream *signal_stream = signal->signal_stream;

	wr_mutex_lock(&signals->lock);
	signal_uncount_locked(signals, signal);
	wr_store(&signal->token, 0);
	signal->signal_stream = NULL;
	signal->stream = NULL;
	signal->next = signals->free;
	signals->free = signal;
	wr_mutex_unlock(&signals->lock);
	return signal_stream;
}

struct wr_signal_stream *wr_signal_release(struct wr_signal *signal)
{
	wr_token_release(wr_load(&signal->token));
	return wr_signal_recycle(signal);
}

/* --- the FIFO of refused entities (G2) --- */

/* An entry holds a live reference, dropped when it is removed: by a poke, its entity, or the run's end. */
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

bool wr_refused_any(struct wr_system *system)
{
	wr_mutex_lock(&system->signals.lock);
	bool any = system->signals.first != NULL;
	wr_mutex_unlock(&system->signals.lock);
	return any;
}

void wr_signal_leave_fifo(struct wr_system *system, uint32_t entity)
{
	struct wr_waker *waker = wr_waker_enter(system);
	bool left;

	wr_mutex_lock(&system->signals.lock);
	left = wr_refused_leave_locked(&system->signals, entity);
	wr_mutex_unlock(&system->signals.lock);
	if (left && waker)
		waker->drop(waker);
	wr_waker_leave(system);
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
		waker->poke(waker, entity, 0);
		waker->drop(waker);
	}
}

void wr_refused_poke_bounded(struct wr_system *system, int device)
{
	struct wr_signals *signals = &system->signals;
	struct wr_waker *waker = wr_waker_enter(system);
	uint32_t free;

	wr_mutex_lock(&signals->lock);
	free = signals->bound > signals->outstanding[device] ? signals->bound - signals->outstanding[device]
							     : 0;
	wr_mutex_unlock(&signals->lock);
	if (waker)
		wr_refused_poke(system, waker, device, free);
	wr_waker_leave(system);
}

void wr_refused_drop_all_refs(struct wr_system *system, struct wr_waker *waker)
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

static void refused_free(struct wr_refused *entry)
{
	while (entry) {
		struct wr_refused *next = entry->next;

		wr_free(entry);
		entry = next;
	}
}

/* --- queries --- */

bool wr_signal_pending(wr_token token)
{
	return token && wr_token_pending(token);
}

void wr_signal_cancel(struct wr_system *system, wr_token token)
{
	(void)system;
	if (token)
		wr_token_cancel(token);
}

uint64_t wr_system_stale(const struct wr_system *system)
{
	return wr_load(&((struct wr_system *)system)->signals.stale) + wr_token_strays() -
	       system->signals.strays;
}

size_t wr_system_outstanding(const struct wr_system *system)
{
	return wr_load(&((struct wr_system *)system)->signals.pending);
}

void wr_signals_each(struct wr_system *system, void (*fn)(struct wr_signal *signal, void *arg), void *arg)
{
	for (struct wr_signals_page *page = wr_load(&system->signals.pages); page; page = page->older)
		for (int i = 0; i < WR_SIGNALS; i++)
			fn(&page->at[i], arg);
}

/* --- life --- */

weir_status wr_signals_init(struct wr_system *system)
{
	struct wr_signals *signals = &system->signals;

	signals->bound = WR_BOUND;
	signals->end = &signals->first;
	signals->strays = wr_token_strays();
	signals->outstanding = wr_alloc((size_t)system->devices, sizeof *signals->outstanding);
	return signals->outstanding ? wr_mutex_init(&signals->lock) : WEIR_E_NOMEM;
}

static void free_fences(struct wr_signal *signal, void *arg)
{
	(void)arg;
	wr_free(signal->fences);
}

void wr_signals_finish(struct wr_system *system)
{
	struct wr_signals *signals = &system->signals;
	struct wr_signals_page *page = wr_load(&signals->pages);

	if (!signals->outstanding)
		return;
	refused_free(signals->first);
	refused_free(signals->spare);
	wr_signals_each(system, free_fences, NULL);
	while (page) {
		struct wr_signals_page *older = page->older;

		wr_free(page);
		page = older;
	}
	wr_free(signals->outstanding);
	wr_mutex_finish(&signals->lock);
}
