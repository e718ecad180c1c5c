/*
 * A signal: how the end of device work reaches the scheduler (G1-G3; the models m5_token, m5_bound). It is a
 * token, the token's sink, and what carries it there: a host callback (callback.c) or the poller of the
 * flags (poller.c).
 *
 * Its way: from the free list it is made, with its token armed in the same critical section, so that what is
 * written in it and what is armed are one; a firing pokes its entity and pushes it onto the fired list; only
 * the loop (collect) takes it from there, gives it back, and then pokes refused entities: as many as there
 * are free places, since one that is poked may find that it need not wait any more. One that is left over,
 * because those who were poked armed nothing, is found by the watch. A flag's signal never lies in the
 * fired list: the poller has it, and gives it back.
 *
 * A signal keeps its slot of the slab until detach, so that detach knows all slots that may ever call back
 * (shut_down.c). Signals are never freed before their system: who walks over them (each) needs no lock.
 */
#include "base/clock.h"
#include "base/memory.h"
#include "base/status.h"
#include "streams/signal.h"
#include "streams/system.h"

const char *wr_signal_text(int kind)
{
	static const char *const texts[] = {"callback", "callback_inline", "flag"};

	return kind < (int)(sizeof texts / sizeof *texts) ? texts[kind] : NULL;
}

/* --- firing. Thread: device --- */

static void hand_back(struct wr_signal *signal, struct wr_waker *waker)
{
	struct wr_signals *signals = &signal->system->signals;
	struct wr_signal *head = wr_load(&signals->fired);

	wr_fetch_sub(&signals->pending, 1);
	do
		signal->next = head;
	while (!wr_cas(&signals->fired, &head, signal));
	waker->kick(waker); /* from the push on the signal may be somebody else's */
}

/*
 * A callback alone is no proof that all went well; the word is, which the signal stream wrote behind the waits and
 * before the call. So who is woken need not ask the device, which costs him as much as all the rest: the
 * thread that makes the calls is in its way. Of other devices it proves nothing: one that is lost may let go
 * who waits for it elsewhere.
 */
static void note_complete(const struct wr_signal *signal)
{
	const struct wr_signal_stream *signal_stream = signal->signal_stream;

	if (!signal_stream || !signal->proven || wr_load(signal_stream->word) != signal_stream->flag_value)
		return;
	for (size_t i = 0; i < signal->count; i++) {
		weir_stream *stream;

		if (!wr_fence_find(signal->system, signal->fences[i], &stream) && stream &&
		    stream->spec.device == signal_stream->device)
			wr_stream_saw(stream, signal->fences[i].point);
	}
}

static void fired(struct wr_sink *sink, bool stale)
{
	struct wr_signal *signal = (struct wr_signal *)sink; /* its first member */
	struct wr_waker *waker = signal->waker;

	note_complete(signal);
	if (stale)
		wr_fetch_add(&signal->system->signals.stale, 1);
	else if (signal->entity != WR_NO_ENTITY)
		waker->poke(waker, signal->entity);
	if (signal->by_flag) /* from here on it may be somebody else's */
		wr_store(&signal->ended, wr_load(&signal->token));
	else
		hand_back(signal, waker);
}

/* --- making --- */

static weir_status add_page_locked(struct wr_system *system)
{
	struct wr_signals *signals = &system->signals;
	struct wr_signals_page *page = wr_alloc(1, sizeof *page);

	if (!page)
		return WEIR_E_NOMEM;
	for (int i = 0; i < WR_SIGNALS; i++) {
		struct wr_signal *signal = &page->at[i];

		signal->sink.fired = fired;
		signal->system = system;
		signal->slot = WR_NO_SLOT;
		signal->next = signals->free;
		signals->free = signal;
	}
	page->older = wr_load(&signals->pages);
	wr_store(&signals->pages, page);
	return WEIR_OK;
}

static weir_status take_signal_locked(struct wr_system *system, size_t n, struct wr_signal **out)
{
	struct wr_signals *signals = &system->signals;
	weir_status status = signals->free ? WEIR_OK : add_page_locked(system);
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

weir_status wr_signal_make(struct wr_system *system, struct wr_waker *waker, const struct wr_order *order,
			   struct wr_signal **out)
{
	struct wr_signals *signals = &system->signals;
	struct wr_signal *signal;
	weir_status status;

	wr_mutex_lock(&signals->lock);
	status = take_signal_locked(system, order->count, &signal);
	if (!status) {
		signal->waker = waker;
		signal->entity = order->entity;
		signal->signal_stream = order->signal_stream;
		signal->stream = order->stream;
		signal->device = order->device;
		signal->bounded = order->bounded;
		signal->by_flag = order->by_flag;
		signal->proven = order->proven;
		signal->count = order->count;
		for (size_t i = 0; i < order->count; i++)
			signal->fences[i] = order->fences[i];
		signal->armed_at = wr_now();
		signal->complete_at = 0;
		wr_store(&signal->enqueued, 0);
		wr_store(&signal->ended, 0);
		wr_fetch_add(&signals->pending, 1);
		wr_store(&signal->token, wr_token_arm(signal->slot, &signal->sink));
		*out = signal;
	}
	wr_mutex_unlock(&signals->lock);
	return status;
}

/* --- giving back --- */

static void uncount_locked(struct wr_signals *signals, struct wr_signal *signal)
{
	if (signal->bounded)
		signals->outstanding[signal->device]--;
	if (signal->stream && !signal->signal_stream)
		wr_fetch_sub(&signal->stream->inlined, 1);
	signal->bounded = false;
}

struct wr_signal_stream *wr_signal_recycle(struct wr_signal *signal)
{
	struct wr_signals *signals = &signal->system->signals;
	struct wr_signal_stream *signal_stream = signal->signal_stream;

	wr_mutex_lock(&signals->lock);
	uncount_locked(signals, signal);
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

static struct wr_signal *oldest_first(struct wr_signal *list)
{
	struct wr_signal *turned = NULL;

	while (list) {
		struct wr_signal *next = list->next;

		list->next = turned;
		turned = list;
		list = next;
	}
	return turned;
}

/* One whose signal the failure ended may have all of it before it still, on a device that goes on. */
static void take_signal_stream_back(struct wr_system *system, struct wr_signal_stream *signal_stream)
{
	if (wr_system_failed(system))
		wr_signal_stream_detach(system, signal_stream);
	else
		wr_signal_stream_push(&system->signals, &system->signals.signal_streams, signal_stream);
}

void wr_system_collect(struct wr_system *system)
{
	struct wr_signal *list = oldest_first(wr_exchange(&system->signals.fired, NULL));
	bool expected = false;

	while (list) {
		struct wr_signal *signal = list;
		weir_stream *stream = signal->entity == WR_NO_ENTITY ? signal->stream : NULL;
		int device = signal->device;

		list = signal->next;
		take_signal_stream_back(system, wr_signal_release(signal));
		wr_signals_offer(system, device);
		if (stream)
			wr_stream_idle(stream);
		expected |= stream != NULL;
	}
	if (expected)
		wr_system_run_deferred_frees(system, false);
}

/* --- asking --- */

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
	wr_signal_streams_free(system, signals->signal_streams);
	wr_signal_streams_free(system, signals->draining);
	wr_refused_free(signals->first);
	wr_refused_free(signals->spare);
	wr_signals_each(system, free_fences, NULL);
	while (page) {
		struct wr_signals_page *older = page->older;

		wr_free(page);
		page = older;
	}
	wr_free(signals->outstanding);
	wr_mutex_finish(&signals->lock);
}
