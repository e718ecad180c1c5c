/*
 * Signals tell the scheduler that device work is complete (G1-G3; models m5_token, m5_bound). A signal is a
 * token (token.c) with its sink, fired by a host callback or by the poller of the flags (flag.c). In order:
 * the native streams of signals, the life of a signal, signals by host callback.
 *
 * The life of a signal: the thread that takes it from the free list fills it and then arms its token. It is
 * given back under the lock, which clears `token`: so with the lock, what a signal with a token says belongs
 * to that token. When it fires it pokes its entity and is pushed onto the fired list. Only
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
#include "streams/flag.h"
#include "streams/system.h"

/*
 * === signal streams ===
 *
 * The native streams that signals use (G3). One is in the list of those that are ready, belongs to a signal,
 * or is in the draining list: a signal was detached from it, so waits and a callback may be left on it. Its
 * event, recorded behind them, tells when it may carry another signal.
 *
 * signals->lock guards the two lists; no call of the backend is made under it.
 */

/* --- lists --- */

/* Takes a signal stream of the device from a list. Returns NULL if it has none. */
static struct wr_signal_stream *signal_stream_pop_locked(struct wr_signal_stream **list, int device)
{
	for (; *list; list = &(*list)->next) {
		struct wr_signal_stream *signal_stream = *list;

		if (signal_stream->device != device)
			continue;
		*list = signal_stream->next;
		return signal_stream;
	}
	return NULL;
}

void wr_signal_stream_push(struct wr_signals *signals, struct wr_signal_stream **list,
			   struct wr_signal_stream *signal_stream)
{
	if (!signal_stream)
		return;
	wr_spin_lock(&signals->lock);
	signal_stream->next = *list;
	*list = signal_stream;
	wr_spin_unlock(&signals->lock);
}

/* --- one signal stream --- */

static void signal_stream_free(struct wr_system *system, struct wr_signal_stream *signal_stream)
{
	if (signal_stream->native)
		wr_device_stream_destroy(system, signal_stream->native);
	if (signal_stream->event) /* after the stream, which may still hold a record of it (the watch) */
		wr_device_event_destroy(system, signal_stream->event);
	wr_free(signal_stream);
}

static weir_status signal_stream_create(struct wr_system *system, int device, struct wr_signal_stream **out)
{
	struct wr_signal_stream *signal_stream = wr_alloc(1, sizeof *signal_stream);
	weir_status status;

	if (!signal_stream)
		return WEIR_E_NOMEM;
	signal_stream->device = device;
	status = wr_device_stream_create(system, &(struct wr_stream_spec){.device = device}, NULL,
					 &signal_stream->native);
	if (!status)
		status = wr_device_event_create(system, device, &signal_stream->event);
	if (status)
		signal_stream_free(system, signal_stream);
	else
		*out = signal_stream;
	return status;
}

/* If the record fails, the event still stands for older work and must not be queried until it is recorded. */
void wr_signal_stream_record(struct wr_system *system, struct wr_signal_stream *signal_stream)
{
	weir_status status =
		wr_device_record(system, signal_stream->device, signal_stream->native, signal_stream->event);

	signal_stream->unrecorded = status != WEIR_OK;
}

/* Of one in the draining list. Returns WEIR_E_BUSY while something is left on it. */
static weir_status signal_stream_query(struct wr_system *system, struct wr_signal_stream *signal_stream)
{
	if (!signal_stream->unrecorded)
		return wr_device_query(system, signal_stream->event);
	wr_signal_stream_record(system, signal_stream);
	return WEIR_E_BUSY;
}

static struct wr_signal_stream *draining_pop(struct wr_signals *signals, int device)
{
	struct wr_signal_stream *signal_stream;

	wr_spin_lock(&signals->lock);
	signal_stream = signal_stream_pop_locked(&signals->draining, device);
	wr_spin_unlock(&signals->lock);
	return signal_stream;
}

weir_status wr_signal_stream_make(struct wr_system *system, int device, struct wr_signal_stream **out)
{
	struct wr_signals *signals = &system->signals;
	struct wr_signal_stream *busy = NULL, *signal_stream;

	while ((signal_stream = draining_pop(signals, device)) &&
	       signal_stream_query(system, signal_stream)) {
		signal_stream->next = busy;
		busy = signal_stream;
	}
	while (busy) {
		struct wr_signal_stream *next = busy->next;

		wr_signal_stream_push(signals, &signals->draining, busy);
		busy = next;
	}
	if (!signal_stream)
		return wr_system_failed(system) ? wr_system_failure_status(system)
						: signal_stream_create(system, device, out);
	*out = signal_stream;
	return WEIR_OK;
}

/*
 * Puts a signal stream, if any, into the draining list: it may still wait for the fences of a signal that was
 * not armed; the next signal must not.
 */
static void signal_stream_detach(struct wr_system *system, struct wr_signal_stream *signal_stream)
{
	if (!signal_stream)
		return;
	signal_stream->unrecorded = true;
	if (!wr_system_failed(system))
		wr_signal_stream_record(system, signal_stream);
	wr_signal_stream_push(&system->signals, &system->signals.draining, signal_stream);
}

/* --- all of a system --- */

weir_status wr_signals_reserve(struct wr_system *system, int device, size_t count)
{
	struct wr_signals *signals = &system->signals;
	size_t ready = 0;
	weir_status status = WEIR_OK;

	wr_spin_lock(&signals->lock);
	for (struct wr_signal_stream *at = signals->signal_streams; at; at = at->next)
		ready += at->device == device;
	wr_spin_unlock(&signals->lock);
	for (; !status && ready < count; ready++) {
		struct wr_signal_stream *signal_stream = NULL;

		/* reuses drained ones, or runs that are cut short would add up */
		status = wr_signal_stream_make(system, device, &signal_stream);
		/* only here: allocating the word may wait for a busy device */
		if (!status && !signal_stream->word)
			status = wr_flag_word(system, device, &signal_stream->word);
		wr_signal_stream_push(signals, &signals->signal_streams, signal_stream);
	}
	return status;
}

bool wr_signals_drained(struct wr_system *system)
{
	for (struct wr_signal_stream *at = system->signals.draining; at; at = at->next)
		if (!wr_device_lost(system) && signal_stream_query(system, at) == WEIR_E_BUSY)
			return false;
	return true;
}

static void signal_streams_free(struct wr_system *system, struct wr_signal_stream *signal_stream)
{
	while (signal_stream) {
		struct wr_signal_stream *next = signal_stream->next;

		signal_stream_free(system, signal_stream);
		signal_stream = next;
	}
}

void wr_signal_streams_finish(struct wr_system *system)
{
	signal_streams_free(system, system->signals.signal_streams);
	signal_streams_free(system, system->signals.draining);
}

/* === the life of a signal === */

const char *wr_signal_text(int kind)
{
	static const char *const texts[] = {"auto", "callback", "callback_inline", "flag"};

	return kind < (int)(sizeof texts / sizeof *texts) ? texts[kind] : NULL;
}

/* --- firing. Thread: device --- */

/*
 * A callback alone does not prove that the work succeeded. The signal stream's word does: it was written
 * after the waits and before the callback. Then the woken worker need not query the device, which would cost
 * as much as all the rest, because it contends with the thread that runs the callbacks. The word proves
 * nothing for fences of other devices: when a device is lost, waits for it on another one may be released.
 */
static void fences_note_complete(const struct wr_signal *signal)
{
	const struct wr_signal_stream *signal_stream = signal->signal_stream;

	if (!signal_stream || !signal_stream->word ||
	    wr_load(signal_stream->word) != signal_stream->flag_value)
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
	struct wr_signals *signals = &signal->system->signals;
	struct wr_waker *waker = signal->waker;

	fences_note_complete(signal);
	if (stale)
		wr_fetch_add(&signals->stale, 1);
	else if (signal->entity != WR_NO_ENTITY)
		waker->poke(waker, signal->entity, token);
	if (signal->by_flag) { /* after the store it may already be reused */
		wr_store(&signal->ended, token);
		return;
	}
	wr_fetch_sub(&signals->pending, 1);
	wr_stack_push(&signals->fired, signal, next);
	waker->kick(waker); /* after the push the signal may already be reused */
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

__attribute__((always_inline)) static inline weir_status signal_take_locked(struct wr_system *system,
									    size_t n, struct wr_signal **out)
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

/* Fills the signal, which the caller has taken, and arms its token. */
__attribute__((always_inline)) static inline wr_token signal_arm(struct wr_system *system,
								 struct wr_waker *waker,
								 const struct wr_signal_request *request,
								 struct wr_signal *signal)
{
	wr_token token;

	signal->waker = waker;
	signal->entity = request->entity;
	signal->signal_stream = request->signal_stream;
	signal->stream = request->stream;
	signal->device = request->device;
	signal->bounded = request->bounded;
	signal->by_flag = request->by_flag;
	signal->count = request->count;
	for (size_t i = 0; i < request->count; i++)
		signal->fences[i] = request->fences[i];
	signal->armed_at = request->armed_at ? request->armed_at : wr_now();
	signal->complete_at = 0;
	wr_store_relaxed(&signal->enqueued, 0); /* published by the token, like the rest */
	wr_store_relaxed(&signal->ended, 0);
	wr_fetch_add(&system->signals.pending, 1);
	token = wr_token_arm(signal->slot, &signal->sink);
	wr_store(&signal->token, token);
	/* Before the callback is enqueued: that call may block (F16), and the watch must see it. */
	wr_watch_wake(system);
	return token;
}

weir_status wr_signal_make(struct wr_system *system, struct wr_waker *waker,
			   const struct wr_signal_request *request, struct wr_signal **out, wr_token *token)
{
	struct wr_signals *signals = &system->signals;
	weir_status status;

	wr_spin_lock(&signals->lock);
	status = signal_take_locked(system, request->count, out);
	wr_spin_unlock(&signals->lock);
	if (!status)
		*token = signal_arm(system, waker, request, *out);
	return status;
}

/* --- recycling --- */

struct wr_signal_stream *wr_signal_recycle(struct wr_signal *signal)
{
	struct wr_signals *signals = &signal->system->signals;
	struct wr_signal_stream *signal_stream = signal->signal_stream;

	wr_spin_lock(&signals->lock);
	if (signal->bounded)
		signals->outstanding[signal->device]--;
	if (signal->stream && !signal->signal_stream)
		wr_fetch_sub(&signal->stream->inline_callbacks, 1);
	signal->bounded = false;
	wr_store(&signal->token, 0);
	signal->signal_stream = NULL;
	signal->stream = NULL;
	signal->next = signals->free;
	signals->free = signal;
	wr_spin_unlock(&signals->lock);
	return signal_stream;
}

struct wr_signal_stream *wr_signal_release(struct wr_signal *signal)
{
	wr_token token = wr_load(&signal->token);

	wr_token_release(token);
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

/* Returns true if it was in the FIFO; the caller must drop its live reference then. */
static bool refused_leave_locked(struct wr_signals *signals, uint32_t entity)
{
	struct wr_refused **at = refused_find_locked(signals, entity);

	if (!*at)
		return false;
	refused_unlink_locked(signals, at);
	return true;
}

/* Returns WEIR_E_BUSY: the entity is in the FIFO (*entered false: it was already). Fails: WEIR_E_NOMEM. */
static weir_status refused_enter_locked(struct wr_signals *signals, uint32_t entity, int device,
					bool *entered)
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
	wr_spin_lock(&system->signals.lock);
	bool any = system->signals.first != NULL;
	wr_spin_unlock(&system->signals.lock);
	return any;
}

void wr_signal_leave_fifo(struct wr_system *system, uint32_t entity)
{
	struct wr_waker *waker = wr_waker_enter(system);
	bool left;

	wr_spin_lock(&system->signals.lock);
	left = refused_leave_locked(&system->signals, entity);
	wr_spin_unlock(&system->signals.lock);
	if (left && waker)
		waker->drop(waker);
	wr_waker_leave(system);
}

/* Takes the oldest of the device out of the FIFO, if there is one. */
static bool refused_take(struct wr_signals *signals, int device, uint32_t *entity)
{
	struct wr_refused **at = &signals->first;
	bool found;

	wr_spin_lock(&signals->lock);
	while (*at && (*at)->device != device)
		at = &(*at)->next;
	found = *at != NULL;
	if (found) {
		*entity = (*at)->entity;
		refused_unlink_locked(signals, at);
	}
	wr_spin_unlock(&signals->lock);
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

	wr_spin_lock(&signals->lock);
	free = signals->bound > signals->outstanding[device] ? signals->bound - signals->outstanding[device]
							     : 0;
	wr_spin_unlock(&signals->lock);
	if (waker)
		wr_refused_poke(system, waker, device, free);
	wr_waker_leave(system);
}

void wr_refused_drop_all_refs(struct wr_system *system, struct wr_waker *waker)
{
	struct wr_signals *signals = &system->signals;
	size_t n = 0;

	wr_spin_lock(&signals->lock);
	for (; signals->first; n++)
		refused_unlink_locked(signals, &signals->first);
	wr_spin_unlock(&signals->lock);
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

void wr_signals_forgive(struct wr_system *system, bool forgives)
{
	system->signals.forgives = forgives;
}

uint64_t wr_signals_late(const struct wr_system *system)
{
	return wr_read(&((struct wr_system *)system)->signals.late);
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
	return signals->outstanding ? WEIR_OK : WEIR_E_NOMEM;
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
}

/*
 * === signals by host callback ===
 *
 * `callback` (G2, G3) uses a signal stream, a native stream that waits for the
 * fences and carries one signal at a time; `callback_inline` uses the stream on which all the fences were
 * recorded. wr_signal_arm_kick arms one for the loop.
 *
 * The steps: (1) check the fences; (2) claim a place within the bound and a signal, or enter the FIFO of
 * refused entities; (3) make the signal stream wait for the fences, or leave that to (5); (4) arm the token;
 * (5) enqueue the callback. A system that fails may end the token from (4) on, and the callback may run
 * before the call that enqueues it has returned (F05). Then the signal may already be armed again, so after
 * (4) only values are used. A failure undoes the earlier steps; a signal stream that may already wait for a
 * fence goes to the draining list.
 *
 * The body of the callback is wr_token_fire; it pokes the entity by signal_fired.
 *
 * An inline callback must not be captured into a user's CUDA graph (G3). It is therefore enqueued only on a
 * stream whose native handle was never given out: the arming thread increments `arming_inline`, then reads
 * `native_given`; the call that gives the handle out sets `native_given`, then waits for `arming_inline` to
 * be 0 (all seq_cst).
 *
 * No lock is held in a call of the backend; signals->lock guards the claim alone. If enqueueing fails while
 * the system fails, the thread that ends the token owns the signal.
 */

/* --- enqueueing --- */

/* Where and what to enqueue. Values: the signal may belong to another token by then. */
struct enqueueing {
	int device;
	void *native;
	struct wr_firing firing;
};

/*
 * Makes the signal stream wait for the fences, and write its flag behind them. What the device does in one
 * call with the callback is left to that.
 */
static weir_status signal_stream_prepare(struct wr_system *system, const struct wr_signal_request *request,
					 struct enqueueing *on)
{
	weir_status status = WEIR_OK;

	on->firing.event = request->event;
	for (size_t i = 1; i < request->count && !status; i++) {
		weir_stream *stream;

		status = wr_fence_find(system, request->fences[i], &stream);
		if (!status && stream && request->fences[i].value > wr_load(&stream->completed))
			status = wr_device_wait(system, on->device, on->native,
						wr_stream_event(stream, request->fences[i].value)->native);
	}
	return status ? status : wr_device_prepare(system, on->device, on->native, &on->firing);
}

/* The last step: the callback may run before this returns (F05). */
__attribute__((always_inline)) static inline weir_status callback_enqueue(struct wr_system *system,
									  struct enqueueing *on,
									  struct wr_signal *signal,
									  wr_token token, wr_token *out)
{
	/*
	 * seq_cst, after the token was armed: either this load sees the failure, or the thread that fails the
	 * system sees the token.
	 */
	weir_status status = wr_load(&system->failed) ? wr_system_failure_status(system) : WEIR_OK;
	wr_token known;

	on->firing.fn = wr_token_fire;
	on->firing.arg = wr_token_argument(token);
	if (!status)
		status = wr_device_signal(system, on->device, on->native, &on->firing);
	if (!status) {
		/* Keeps the maximum: the signal may be armed with a later token by now. */
		known = wr_load(&signal->enqueued);
		while (known < token && !wr_cas(&signal->enqueued, &known, token))
			;
		*out = token;
		return WEIR_OK;
	}
	/* Undoes the arming. If the failure of the system ended the token first, the loop releases the
	 * signal. */
	if (wr_token_end(token) != WR_TOKEN_GONE) {
		wr_fetch_sub(&system->signals.pending, 1);
		signal_stream_detach(system, wr_signal_release(signal));
	}
	return status;
}

/*
 * Returns WEIR_OK if all fences were recorded in this system; notes the device and the event of the first,
 * and the time of a record. A stream that is being captured is fine: its fences were recorded before, so the
 * signal stream may wait for their events.
 */
static weir_status fences_check(struct wr_system *system, struct wr_signal_request *request)
{
	weir_status status = WEIR_OK;

	request->device = 0;
	for (size_t i = request->count; i-- > 0 && !status;) {
		weir_fence fence = request->fences[i];
		struct wr_event *event;
		weir_stream *stream;

		request->event = NULL;
		status = wr_fence_find(system, fence, &stream);
		if (status || !stream)
			continue;
		request->device = stream->spec.device;
		if (fence.value <= wr_load(&stream->completed))
			continue;
		event = wr_stream_event(stream, fence.value);
		request->event = event->native;
		request->armed_at = wr_load_relaxed(&event->recorded_at);
	}
	return status;
}

static void place_release(struct wr_signals *signals, const struct wr_signal_request *request)
{
	wr_spin_lock(&signals->lock);
	if (request->bounded)
		signals->outstanding[request->device]--;
	request->signal->next = signals->free;
	signals->free = request->signal;
	wr_spin_unlock(&signals->lock);
}

/*
 * Claims a place within the bound, a signal and a ready signal stream, or enters the FIFO of refused entities
 * (WEIR_E_BUSY). Drops the reference of an entry that left the FIFO.
 */
__attribute__((always_inline)) static inline weir_status
place_claim(struct wr_system *system, struct wr_waker *waker, struct wr_signal_request *request)
{
	struct wr_signals *signals = &system->signals;
	weir_status status = WEIR_OK;
	bool entered = false, left = false;

	wr_spin_lock(&signals->lock);
	if (request->bounded && signals->outstanding[request->device] >= signals->bound)
		status = refused_enter_locked(signals, request->entity, request->device, &entered);
	else
		status = signal_take_locked(system, request->count, &request->signal);
	if (!status) {
		signals->outstanding[request->device] += request->bounded;
		if (!request->is_inline)
			request->signal_stream =
				signal_stream_pop_locked(&signals->signal_streams, request->device);
		left = request->bounded && refused_leave_locked(signals, request->entity);
	}
	if (entered && status == WEIR_E_BUSY)
		waker->take(waker); /* under the lock: another thread may drop it right after */
	wr_spin_unlock(&signals->lock);
	if (status == WEIR_E_BUSY)
		wr_watch_wake(system);
	if (left)
		waker->drop(waker);
	return status;
}

/* All steps, on a signal stream. */
static weir_status arm_on_signal_stream(struct wr_system *system, struct wr_waker *waker,
					struct wr_signal_request *request, wr_token *out)
{
	struct wr_signal_stream *stream;
	struct enqueueing on;
	weir_status status = fences_check(system, request);

	if (!status)
		status = place_claim(system, waker, request);
	if (status)
		return status;
	on.device = request->device;
	if (!request->signal_stream)
		status = wr_signal_stream_make(system, request->device, &request->signal_stream);
	stream = request->signal_stream;
	if (!status) {
		on.native = stream->native;
		on.firing.word = stream->word; /* it will show that the waits are over */
		on.firing.value = ++stream->flag_value;
		status = signal_stream_prepare(system, request, &on);
	}
	if (!status)
		return callback_enqueue(system, &on, request->signal,
					signal_arm(system, waker, request, request->signal), out);
	signal_stream_detach(system, stream);
	place_release(&system->signals, request);
	return status;
}

static weir_status find_waker(struct wr_system *system, struct wr_waker **out)
{
	if (wr_system_failed(system))
		return wr_system_failure_status(system);
	*out = wr_load(&system->waker);
	return *out ? WEIR_OK : wr_fail(WEIR_E_CLOSED, "no run is on");
}

weir_status wr_signal_arm(struct wr_system *system, uint32_t entity, const weir_fence *fences, size_t n,
			  wr_token *out)
{
	struct wr_signal_request request = {.entity = entity, .fences = fences, .count = n, .bounded = true};
	struct wr_waker *waker;
	weir_status status = find_waker(system, &waker);

	return status ? status : arm_on_signal_stream(system, waker, &request, out);
}

/* --- on the stream itself --- */

/*
 * Of the fences that are pending *common becomes a stream on whose native stream all were recorded. Refuses
 * several, and a fence that was emitted at in the middle of a tick: the rest of that tick is behind it (T12).
 */
static weir_status find_common_stream(weir_stream *stream, uint64_t value, void *common)
{
	weir_stream **out = common;

	if ((*out && !weir_stream_same(*out, stream)) || wr_stream_is_early(stream, value))
		return WEIR_E_UNSUPPORTED;
	*out = stream;
	return WEIR_OK;
}

/*
 * While the callback is outstanding `inline_callbacks` keeps the stream's id from being recycled: the watch
 * queries later fences of that id.
 */
static weir_status arm_on_stream(struct wr_system *system, struct wr_waker *waker,
				 struct wr_signal_request *request, wr_token *out)
{
	weir_stream *stream = request->stream;
	struct enqueueing on = {.device = request->device, .native = wr_load(&stream->native)};

	wr_fetch_add(&stream->inline_callbacks, 1);
	return callback_enqueue(system, &on, request->signal,
				signal_arm(system, waker, request, request->signal), out);
}

weir_status wr_signal_inline(struct wr_system *system, uint32_t entity, const weir_fence *fences, size_t n,
			     wr_token *out)
{
	struct wr_signal_request request = {
		.entity = entity, .fences = fences, .count = n, .bounded = true, .is_inline = true};
	struct wr_waker *waker;
	weir_stream *root;
	weir_status status = find_waker(system, &waker);

	if (!status)
		status = wr_fences_each_pending(system, fences, n, find_common_stream, &request.stream);
	if (status || !request.stream)
		return status ? status : WEIR_E_UNSUPPORTED;
	request.device = request.stream->spec.device;
	root = wr_load(&request.stream->root);
	wr_fetch_add(&root->arming_inline, 1);
	status = wr_load(&root->native_given) ? WEIR_E_UNSUPPORTED : place_claim(system, waker, &request);
	if (!status)
		status = arm_on_stream(system, waker, &request, out);
	wr_fetch_sub(&root->arming_inline, 1);
	return status;
}

/* --- for the loop --- */

/* Not counted against the bound: there are few for each stream. */
weir_status wr_signal_arm_kick(weir_stream *stream, weir_fence fence)
{
	struct wr_system *system = stream->system;
	struct wr_waker *waker = wr_load(&system->waker);
	struct wr_signal_request request = {
		.entity = WR_NO_ENTITY, .fences = &fence, .count = 1, .stream = stream};
	wr_token token;
	weir_status status;

	if (!waker || stream->kick_value == fence.value)
		return WEIR_OK;
	status = arm_on_signal_stream(system, waker, &request, &token);
	if (!status)
		stream->kick_value = fence.value;
	return status;
}

/* --- what has fired --- */

static struct wr_signal *signals_reverse(struct wr_signal *list)
{
	struct wr_signal *reversed = NULL;

	while (list) {
		struct wr_signal *next = list->next;

		list->next = reversed;
		reversed = list;
		list = next;
	}
	return reversed;
}

void wr_system_collect(struct wr_system *system)
{
	struct wr_signal *list = signals_reverse(wr_exchange(&system->signals.fired, NULL));
	bool any_kick = false;

	while (list) {
		struct wr_signal *signal = list;
		struct wr_signal_stream *signal_stream;
		weir_stream *stream = signal->entity == WR_NO_ENTITY ? signal->stream : NULL;
		int device = signal->device;

		list = signal->next;
		signal_stream = wr_signal_release(signal);
		/* If the system failed, another device may still be running the waits and the callback of
		 * this one. */
		if (wr_system_failed(system))
			signal_stream_detach(system, signal_stream);
		else
			wr_signal_stream_push(&system->signals, &system->signals.signal_streams,
					      signal_stream);
		wr_refused_poke_bounded(system, device);
		/* The callback may come before the flag of the same value, which a query then waits for: once
		 * more. */
		if (stream && !wr_stream_idle(stream))
			stream->kick_value = 0;
		any_kick |= stream != NULL;
	}
	if (any_kick)
		wr_deferred_frees_process(system);
}
