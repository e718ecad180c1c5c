/*
 * Signals by host callback (G2, G3). `callback` uses a signal stream, a native stream that waits for the
 * fences and carries one signal at a time; `callback_inline` uses the stream on which all the fences were
 * recorded. wr_signal_arm_kick arms one for the loop.
 *
 * The steps: (1) check the fences; (2) claim a place within the bound, or enter the FIFO of refused entities;
 * (3) make the signal stream wait for the fences; (4) arm the token; (5) enqueue the callback. A system that
 * fails may end the token from (4) on, and the callback may run before the call that enqueues it has returned
 * (F05). Then the signal may already be armed again, so after (4) only the token, a value, is used. A failure
 * undoes the earlier steps; a signal stream that may already wait for a fence goes to the draining list.
 *
 * The body of the callback is wr_token_fire (token.c); it pokes the entity by signal_fired (signal.c).
 *
 * An inline callback must not be captured into a user's CUDA graph (G3). It is therefore enqueued only on a
 * stream whose native handle was never given out: the arming thread increments `arming_inline`, then reads
 * `native_given`; the call that gives the handle out sets `native_given`, then waits for `arming_inline` to
 * be 0 (all seq_cst).
 *
 * No lock is held in a call of the backend; signals->lock guards the claim alone. If enqueueing fails while
 * the system fails, the thread that ends the token owns the signal.
 */
#include "base/status.h"
#include "streams/device.h"
#include "streams/signal.h"
#include "streams/signal_stream.h"
#include "streams/system.h"

/* --- enqueueing --- */

/* Undoes the arming. If the failure of the system ended the token first, the loop releases the signal. */
static void signal_disarm(struct wr_signal *signal, wr_token token)
{
	struct wr_system *system = signal->system;

	if (wr_token_end(token) == WR_TOKEN_GONE)
		return;
	wr_fetch_sub(&system->signals.pending, 1);
	wr_signal_stream_detach(system, wr_signal_release(signal));
}

/* Keeps the maximum: the signal may be armed with a later token by now. */
static void note_enqueued(struct wr_signal *signal, wr_token token)
{
	wr_token known = wr_load(&signal->enqueued);

	while (known < token && !wr_cas(&signal->enqueued, &known, token))
		;
}

/*
 * The last step: the callback may run before this returns (F05). The device and the token are passed, not
 * read from the signal, which may belong to another token by then.
 */
static weir_status callback_enqueue(struct wr_system *system, int device, void *native,
				    struct wr_signal *signal, wr_token token, wr_token *out)
{
	/*
	 * seq_cst, after the token was armed: either this load sees the failure, or the thread that fails the
	 * system sees the token.
	 */
	weir_status status = wr_load(&system->failed) ? wr_system_failure_status(system) : WEIR_OK;

	if (!status)
		status = wr_device_call(system, device, native, wr_token_fire, wr_token_argument(token));
	if (status)
		signal_disarm(signal, token);
	else
		note_enqueued(signal, token);
	if (!status)
		*out = token;
	return status;
}

/*
 * Returns WEIR_OK if all fences were recorded in this system; *device is that of the first. A stream that is
 * being captured is fine: its fences were recorded before, so the signal stream may wait for their events.
 */
static weir_status fences_check(struct wr_system *system, const weir_fence *fences, size_t n, int *device)
{
	weir_status status = WEIR_OK;

	*device = 0;
	for (size_t i = n; i-- > 0 && !status;) {
		weir_stream *stream;

		status = wr_fence_find(system, fences[i], &stream);
		if (!status && stream)
			*device = stream->spec.device;
	}
	return status;
}

static weir_status signal_stream_wait(struct wr_system *system, const struct wr_signal_stream *signal_stream,
				      const weir_fence *fences, size_t n)
{
	weir_status status = WEIR_OK;

	for (size_t i = 0; i < n && !status; i++) {
		weir_stream *stream;

		status = wr_fence_find(system, fences[i], &stream);
		if (!status && stream && fences[i].value > wr_load(&stream->completed))
			status = wr_device_wait(system, signal_stream->device, signal_stream->native,
						wr_stream_event(stream, fences[i].value)->native);
	}
	return status;
}

/* Returns true if the signal stream's flag will show that its waits are over. */
static bool signal_stream_write_flag(struct wr_system *system, struct wr_signal_stream *signal_stream)
{
	if (!signal_stream->word)
		return false;
	signal_stream->flag_value++;
	return !wr_device_write_flag(system, signal_stream->device, signal_stream->native,
				     signal_stream->word, signal_stream->flag_value);
}

static void place_release(struct wr_signals *signals, const struct wr_signal_request *request)
{
	wr_mutex_lock(&signals->lock);
	if (request->bounded)
		signals->outstanding[request->device]--;
	wr_mutex_unlock(&signals->lock);
}

static weir_status arm_on_signal_stream(struct wr_system *system, struct wr_waker *waker,
					struct wr_signal_request *request, wr_token *out)
{
	struct wr_signals *signals = &system->signals;
	struct wr_signal *signal;
	wr_token token;
	weir_status status = WEIR_OK;

	if (!request->signal_stream)
		status = wr_signal_stream_make(system, request->device, &request->signal_stream);
	if (!status)
		status = signal_stream_wait(system, request->signal_stream, request->fences, request->count);
	if (!status)
		request->proven = signal_stream_write_flag(system, request->signal_stream);
	if (!status)
		status = wr_signal_make(system, waker, request, &signal, &token);
	if (!status)
		return callback_enqueue(system, request->device, request->signal_stream->native, signal,
					token, out);
	wr_signal_stream_detach(system, request->signal_stream);
	place_release(signals, request);
	return status;
}

/*
 * Claims a place within the bound and a ready signal stream, or enters the FIFO of refused entities
 * (WEIR_E_BUSY). Sets *dropped if the entity left the FIFO: the caller must drop the reference held there.
 */
static weir_status place_claim(struct wr_signals *signals, struct wr_signal_request *request,
			       struct wr_waker *waker, bool *dropped)
{
	weir_status status = WEIR_OK;
	bool entered = false;

	wr_mutex_lock(&signals->lock);
	if (request->bounded && signals->outstanding[request->device] >= signals->bound) {
		status = wr_refused_enter_locked(signals, request->entity, request->device, &entered);
	} else {
		signals->outstanding[request->device] += request->bounded;
		if (!request->is_inline)
			request->signal_stream =
				wr_signal_stream_pop_locked(&signals->signal_streams, request->device);
		*dropped = request->bounded && wr_refused_leave_locked(signals, request->entity);
	}
	if (entered && status == WEIR_E_BUSY)
		waker->take(waker); /* under the lock: another thread may drop it right after */
	wr_mutex_unlock(&signals->lock);
	return status;
}

/* place_claim, and drops the reference of an entry that left the FIFO. */
static weir_status place_claim_for_run(struct wr_system *system, struct wr_waker *waker,
				       struct wr_signal_request *request)
{
	bool dropped = false;
	weir_status status = place_claim(&system->signals, request, waker, &dropped);

	if (status == WEIR_E_BUSY)
		wr_watch_wake(system);
	if (!status && dropped)
		waker->drop(waker);
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

	if (!status)
		status = fences_check(system, fences, n, &request.device);
	if (!status)
		status = place_claim_for_run(system, waker, &request);
	return status ? status : arm_on_signal_stream(system, waker, &request, out);
}

/* --- on the stream itself --- */

/*
 * *out: the stream on whose native stream all pending fences were recorded; NULL if there are several, no
 * fence is pending, or one was emitted at in the middle of a tick: the rest of that tick is behind it (T12).
 */
static weir_status find_common_stream(struct wr_system *system, const weir_fence *fences, size_t n,
				      weir_stream **out)
{
	weir_status status = WEIR_OK;

	*out = NULL;
	for (size_t i = 0; i < n && !status; i++) {
		weir_stream *stream;

		status = wr_fence_find(system, fences[i], &stream);
		if (status || !stream || fences[i].value <= wr_load(&stream->completed))
			continue;
		if ((*out && !weir_stream_same(*out, stream)) ||
		    wr_stream_is_early(stream, fences[i].value)) {
			*out = NULL;
			return WEIR_OK;
		}
		*out = stream;
	}
	return status;
}

/*
 * While the callback is outstanding `inline_callbacks` keeps the stream's id from being recycled: watch.c
 * queries later fences of that id.
 */
static weir_status arm_on_stream(struct wr_system *system, struct wr_waker *waker,
				 struct wr_signal_request *request, wr_token *out)
{
	weir_stream *stream = request->stream;
	struct wr_signal *signal;
	wr_token token;
	weir_status status;

	wr_fetch_add(&stream->inline_callbacks, 1);
	status = wr_signal_make(system, waker, request, &signal, &token);
	if (!status)
		return callback_enqueue(system, request->device, wr_load(&stream->native), signal, token,
					out);
	wr_fetch_sub(&stream->inline_callbacks, 1);
	place_release(&system->signals, request);
	return status;
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
		status = find_common_stream(system, fences, n, &request.stream);
	if (status || !request.stream)
		return status ? status : WEIR_E_UNSUPPORTED;
	request.device = request.stream->spec.device;
	root = wr_load(&request.stream->root);
	wr_fetch_add(&root->arming_inline, 1);
	status = wr_load(&root->native_given) ? WEIR_E_UNSUPPORTED
					      : place_claim_for_run(system, waker, &request);
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
	struct wr_signal_request request = {.entity = WR_NO_ENTITY,
					    .fences = &fence,
					    .count = 1,
					    .device = stream->spec.device,
					    .stream = stream};
	bool dropped = false;
	wr_token token;
	weir_status status;

	if (!waker || stream->kick_value == fence.value)
		return WEIR_OK;
	status = place_claim(&system->signals, &request, waker, &dropped);
	if (!status)
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
		weir_stream *stream = signal->entity == WR_NO_ENTITY ? signal->stream : NULL;
		int device = signal->device;

		list = signal->next;
		wr_signal_stream_return(system, wr_signal_release(signal));
		wr_refused_poke_bounded(system, device);
		if (stream)
			wr_stream_idle(stream);
		any_kick |= stream != NULL;
	}
	if (any_kick)
		wr_deferred_frees_process(system);
}
