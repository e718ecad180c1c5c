/*
 * Signals: how the end of device work reaches the scheduler (DESIGN G1-G3; models/m5_token.c, m5_bound.c).
 *
 * A signal is a token, its sink, and what carries its host callback: for `callback` a native stream of its
 * own that waits for the fences, for `callback_inline` the stream itself. A firing pushes the signal onto the
 * fired list and kicks; only the loop (collect) gives it back, and then pokes refused entities: as many as
 * there are free places, since one that is poked may find that it need not wait any more. One that is left
 * over, because those who were poked armed nothing, is found by the watch.
 *
 * A signal keeps its slot of the slab until detach, so that detach knows all slots that may ever call back:
 * it orphans what has not fired, waits until nobody is inside any of them, and returns the others to the
 * slab. A carrier whose signal was orphaned, or was not made because some call failed, is in limbo until its
 * last event is complete.
 */
#include "base/clock.h"
#include "base/memory.h"
#include "base/status.h"
#include "streams/signal.h"

const char *wr_signal_text(int kind)
{
	static const char *const texts[] = {"callback", "callback_inline", "doorbell"};

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
 * A callback alone is no proof that all went well; the word is, which the carrier wrote behind the waits and before the call. So who is woken
 * need not ask the device, which costs him as much as all the rest: the thread that makes the calls is in its way. Of other devices it
 * proves nothing: one that is lost may let go who waits for it elsewhere.
 */
static void note_complete(const struct wr_signal *signal)
{
	const struct wr_carrier *carrier = signal->carrier;

	if (!carrier || !signal->proven || wr_load(carrier->word) != carrier->rung)
		return;
	for (size_t i = 0; i < signal->count; i++) {
		weir_stream *stream;

		if (!wr_fence_find(signal->system, signal->fences[i], &stream) && stream && stream->device == carrier->device)
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
	if (signal->doorbell)
		wr_store(&signal->ended, wr_load(&signal->token)); /* from here on it may be somebody else's */
	else
		hand_back(signal, waker);
}

/* --- the free list --- */

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

/* --- giving back --- */

static void uncount_locked(struct wr_signals *signals, struct wr_signal *signal)
{
	if (signal->bounded && signal->carrier)
		signals->outstanding[signal->device]--;
	else if (signal->bounded)
		wr_fetch_sub(&signal->stream->inlined, 1);
	signal->bounded = false;
}

struct wr_carrier *wr_signal_give_back(struct wr_signal *signal)
{
	struct wr_signals *signals = &signal->system->signals;
	struct wr_carrier *carrier = signal->carrier;

	wr_token_release(wr_load(&signal->token));
	wr_mutex_lock(&signals->lock);
	uncount_locked(signals, signal);
	wr_store(&signal->token, 0);
	signal->carrier = NULL;
	signal->stream = NULL;
	signal->next = signals->free;
	signals->free = signal;
	wr_mutex_unlock(&signals->lock);
	return carrier;
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
static void take_carrier_back(struct wr_system *system, struct wr_carrier *carrier)
{
	if (wr_system_failed(system))
		wr_carrier_give_up(system, carrier);
	else
		wr_carrier_push(&system->signals, &system->signals.carriers, carrier);
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
		take_carrier_back(system, wr_signal_give_back(signal));
		wr_signals_offer(system, device);
		if (stream)
			wr_stream_idle(stream);
		expected |= stream != NULL;
	}
	if (expected)
		wr_system_retire_look(system, false);
}

/* --- arming --- */

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
		signal->carrier = order->carrier;
		signal->stream = order->stream;
		signal->device = order->device;
		signal->bounded = order->bounded;
		signal->doorbell = order->doorbell;
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

/* Nothing was enqueued. If somebody else ended the token (the system failed), the loop gives it back. */
static void disarm(struct wr_signal *signal, wr_token token)
{
	struct wr_system *system = signal->system;

	if (wr_token_end(token) == WR_TOKEN_GONE)
		return;
	wr_fetch_sub(&system->signals.pending, 1);
	wr_carrier_give_up(system, wr_signal_give_back(signal));
}

/* The signal may be armed anew by now: a later token stays. */
static void note_enqueued(struct wr_signal *signal, wr_token token)
{
	wr_token known = wr_load(&signal->enqueued);

	while (known < token && !wr_cas(&signal->enqueued, &known, token))
		;
}

/* The last step: from here on the callback may come, also before this returns (F05). */
static weir_status enqueue(struct wr_system *system, void *native, struct wr_signal *signal, wr_token *out)
{
	wr_token token = wr_load(&signal->token);
	/*
	 * seq_cst, after the token was armed: either this sees the failure, or whoever fails the system sees
	 * the token.
	 */
	weir_status status = wr_load(&system->failed) ? wr_system_dead(system) : WEIR_OK;

	if (!status)
		status = wr_system_note(system, system->backend->call(system->native, signal->device, native, wr_token_fire,
								      wr_token_argument(token)));
	if (status)
		disarm(signal, token);
	else
		note_enqueued(signal, token);
	if (!status)
		*out = token;
	wr_system_added(system);
	return status;
}

static weir_status capturing(weir_stream *stream)
{
	if (!wr_stream_capturing(stream))
		return WEIR_OK;
	return wr_fail(WEIR_E_UNSUPPORTED,
		       "the stream of '%s' is being captured: a signal in a graph would fire at every replay",
		       wr_load(&stream->owner));
}

/* The device waits for each of them that is not known to be complete; nobody asks for the others' streams. *device: of the first. */
weir_status wr_signal_check(struct wr_system *system, const weir_fence *fences, size_t n, int *device)
{
	weir_status status = WEIR_OK;

	*device = 0;
	for (size_t i = n; i-- > 0 && !status;) {
		weir_stream *stream;

		status = wr_fence_find(system, fences[i], &stream);
		if (status || !stream)
			continue;
		*device = stream->device;
		if (fences[i].point > wr_load(&stream->seen))
			status = capturing(stream);
	}
	return status;
}

static weir_status wait_for(struct wr_system *system, const struct wr_carrier *carrier, const weir_fence *fences, size_t n)
{
	weir_status status = WEIR_OK;

	for (size_t i = 0; i < n && !status; i++) {
		weir_stream *stream;

		status = wr_fence_find(system, fences[i], &stream);
		if (!status && stream && fences[i].point > wr_load(&stream->seen))
			status = wr_system_note(
				system,
				system->backend->wait(system->native, carrier->device, carrier->native,
						      wr_stream_point(stream, fences[i].point)->event));
	}
	return status;
}

/* Whether the word will tell. */
static bool ring(struct wr_system *system, struct wr_carrier *carrier)
{
	const struct wr_backend *backend = system->backend;

	if (!carrier->word)
		return false;
	carrier->rung++;
	return !wr_system_note(system, backend->ring(system->native, carrier->device, carrier->native, carrier->word, carrier->rung));
}

static weir_status arm_on_carrier(struct wr_system *system, struct wr_waker *waker, struct wr_order *order,
				  wr_token *out)
{
	struct wr_signals *signals = &system->signals;
	struct wr_signal *signal;
	weir_status status = WEIR_OK;

	if (!order->carrier)
		status = wr_carrier_other(system, order->device, &order->carrier);
	if (!status)
		status = wait_for(system, order->carrier, order->fences, order->count);
	if (!status)
		order->proven = ring(system, order->carrier);
	if (!status)
		status = wr_signal_make(system, waker, order, &signal);
	if (!status)
		return enqueue(system, order->carrier->native, signal, out);
	wr_carrier_give_up(system, order->carrier);
	wr_mutex_lock(&signals->lock);
	if (order->bounded)
		signals->outstanding[order->device]--;
	wr_mutex_unlock(&signals->lock);
	return status;
}

/*
 * Counts against the bound, or enters the FIFO. *dropped: an earlier place in it was given up; its reference
 * is the caller's.
 */
static weir_status claim(struct wr_signals *signals, struct wr_order *order, struct wr_waker *waker,
			 bool *dropped)
{
	weir_status status = WEIR_OK;
	bool entered = false;

	wr_mutex_lock(&signals->lock);
	if (order->bounded && signals->outstanding[order->device] >= signals->bound) {
		status = wr_refused_enter_locked(signals, order->entity, order->device, &entered);
	} else {
		signals->outstanding[order->device] += order->bounded;
		order->carrier = wr_carrier_pop_locked(&signals->carriers, order->device);
		*dropped = order->bounded && wr_refused_leave_locked(signals, order->entity);
	}
	if (entered && status == WEIR_E_BUSY)
		waker->take(waker); /* under the lock: before anybody can find the entry and drop it */
	wr_mutex_unlock(&signals->lock);
	return status;
}

weir_status wr_signal_arm(struct wr_system *system, uint32_t entity, const weir_fence *fences, size_t n,
			  wr_token *out)
{
	struct wr_waker *waker = wr_load(&system->waker);
	struct wr_order order = {.entity = entity, .fences = fences, .count = n, .bounded = true};
	bool dropped = false;
	weir_status status;

	if (wr_system_failed(system))
		return wr_system_dead(system);
	if (!waker)
		return wr_fail(WEIR_E_CLOSED, "no run is on");
	status = wr_signal_check(system, fences, n, &order.device);
	if (!status)
		status = claim(&system->signals, &order, waker, &dropped);
	if (status == WEIR_E_BUSY)
		wr_system_added(system);
	if (status)
		return status;
	if (dropped)
		waker->drop(waker);
	return arm_on_carrier(system, waker, &order, out);
}

weir_status wr_signal_inline(weir_stream *stream, uint32_t entity, wr_token *out)
{
	struct wr_system *system = stream->system;
	struct wr_waker *waker = wr_load(&system->waker);
	weir_fence fence = {wr_load(&stream->id), wr_load(&stream->recorded)};
	struct wr_order order = {.entity = entity,
			      .fences = &fence,
			      .count = 1,
			      .device = stream->device,
			      .stream = stream,
			      .bounded = true};
	struct wr_signal *signal;
	weir_status status;

	if (wr_system_failed(system))
		return wr_system_dead(system);
	if (!waker)
		return wr_fail(WEIR_E_CLOSED, "no run is on");
	if (!fence.point)
		return wr_fail(WEIR_E_INVALID, "nothing was recorded on the stream of '%s'",
			       wr_load(&stream->owner));
	status = capturing(stream);
	if (status)
		return status;
	if (wr_fetch_add(&stream->inlined, 1) >= system->signals.bound)
		status = WEIR_E_BUSY;
	if (!status)
		status = wr_signal_make(system, waker, &order, &signal);
	if (status) {
		wr_fetch_sub(&stream->inlined, 1);
		return status;
	}
	wr_store(&stream->trailing, true);
	return enqueue(system, wr_load(&stream->native), signal, out);
}

/* Outside of the bound: at most one for each point that a stream ended with. */
weir_status wr_signal_expect(weir_stream *stream)
{
	struct wr_system *system = stream->system;
	struct wr_waker *waker = wr_load(&system->waker);
	weir_fence fence = {wr_load(&stream->id), wr_load(&stream->recorded)};
	struct wr_order order = {.entity = WR_NO_ENTITY,
			      .fences = &fence,
			      .count = 1,
			      .device = stream->device,
			      .stream = stream};
	bool dropped;
	wr_token token;
	weir_status status;

	if (!waker || stream->expected == fence.point)
		return WEIR_OK;
	claim(&system->signals, &order, waker, &dropped);
	status = arm_on_carrier(system, waker, &order, &token);
	if (!status)
		stream->expected = fence.point;
	return status;
}

bool wr_signal_pending(wr_token token)
{
	return token && wr_token_pending(token);
}

void wr_signal_supersede(struct wr_system *system, wr_token token)
{
	(void)system;
	if (token)
		wr_token_supersede(token);
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

/* --- failure, the end of a run --- */

void wr_signals_each(struct wr_system *system, void (*fn)(struct wr_signal *signal, void *arg), void *arg)
{
	for (struct wr_signals_page *page = wr_load(&system->signals.pages); page; page = page->older)
		for (int i = 0; i < WR_SIGNALS; i++)
			fn(&page->at[i], arg);
}

/* As if its callback had come, which it may still do: then it finds the token gone. */
static void fail_one(struct wr_signal *signal, void *arg)
{
	wr_token token = wr_load(&signal->token);
	enum wr_token_end end = token ? wr_token_end(token) : WR_TOKEN_GONE;

	(void)arg;
	if (end != WR_TOKEN_GONE)
		fired(&signal->sink, end == WR_TOKEN_WAS_SUPERSEDED);
}

void wr_signals_fail(struct wr_system *system, struct wr_waker *waker)
{
	wr_signals_each(system, fail_one, NULL);
	for (int device = 0; device < system->devices && waker; device++)
		wr_refused_poke(system, waker, device, UINT32_MAX);
}

/* The callback of an orphan gives the slot back, or never comes. */
static void revoke_one(struct wr_signal *signal, void *arg)
{
	struct wr_system *system = arg;
	wr_token token = wr_load(&signal->token);

	if (token && signal->doorbell && wr_token_end(token) != WR_TOKEN_GONE)
		wr_store(&signal->ended, token);
	if (!token || signal->doorbell || !wr_token_orphan(token))
		return;
	wr_fetch_sub(&system->signals.pending, 1);
	if (signal->carrier && !wr_system_lost(system))
		wr_carrier_mark(system, signal->carrier);
}

/* Separate from giving back, because the slot of an orphan is asked for those inside, too. */
void wr_signals_revoke(struct wr_system *system)
{
	wr_signals_each(system, revoke_one, system);
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
	struct wr_carrier *carrier = signal->carrier;
	bool orphan = wr_load(&signal->token) != 0;

	if (!orphan && signal->slot != WR_NO_SLOT)
		wr_slot_give(signal->slot);
	signal->slot = WR_NO_SLOT;
	if (!orphan)
		return;
	wr_mutex_lock(&signals->lock);
	uncount_locked(signals, signal);
	wr_store(&signal->token, 0);
	signal->carrier = NULL;
	signal->next = signals->free;
	signals->free = signal;
	wr_mutex_unlock(&signals->lock);
	wr_carrier_push(signals, &signals->limbo, carrier);
}

void wr_signals_give_back(struct wr_system *system)
{
	wr_signals_each(system, give_back_one, &system->signals);
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
	wr_carriers_free(system, signals->carriers);
	wr_carriers_free(system, signals->limbo);
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
