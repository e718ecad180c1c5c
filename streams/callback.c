/*
 * Signals by host callback (G2, G3): `callback`, on a signal stream, a native stream of its own that waits for the
 * fences; `callback_inline`, on the stream that all of them lie on; and the loop's own for the end of a
 * stream.
 *
 * In this order: what could refuse is asked while nothing is enqueued; a place within the bound is claimed,
 * or one in the FIFO of refused entities is taken; the signal stream is made to wait; the token is armed; the
 * callback is enqueued. From then on it may come, also before its enqueueing has returned (F05), and the
 * signal may be somebody else's: only the token, a value, is touched after that. What fails on the way undoes
 * the steps before; a signal stream that may wait for something goes to draining.
 *
 * A callback on the stream itself must not fall into a capture of the user's (G3). Only a stream whose native
 * handle was never given out carries one, and the first call that gives it out waits until nobody is on the
 * way to enqueue there: who enqueues counts in (`entering`), then looks at `exposed`; who gives out sets
 * `exposed`, then looks at the count; all seq_cst.
 *
 * No lock is held in a call of the backend; signals->lock guards the claim alone. A signal that fails to be
 * enqueued and one that the failure of the system ends are told apart by the token's end: whoever ends it has
 * the signal.
 */
#include "base/status.h"
#include "streams/signal.h"
#include "streams/system.h"

/* --- enqueueing --- */

/* Nothing was enqueued. If somebody else ended the token (the system failed), the loop gives it back. */
static void disarm(struct wr_signal *signal, wr_token token)
{
	struct wr_system *system = signal->system;

	if (wr_token_end(token) == WR_TOKEN_GONE)
		return;
	wr_fetch_sub(&system->signals.pending, 1);
	wr_signal_stream_detach(system, wr_signal_release(signal));
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
	weir_status status = wr_load(&system->failed) ? wr_system_failure_status(system) : WEIR_OK;

	if (!status)
		status = wr_system_check(system,
					system->backend->call(system->native, signal->device, native,
							      wr_token_fire, wr_token_argument(token)));
	if (status)
		disarm(signal, token);
	else
		note_enqueued(signal, token);
	if (!status)
		*out = token;
	wr_system_added(system);
	return status;
}

/*
 * All of them were recorded here. A stream that is in a capture by now refuses none: its points were recorded
 * before, so the signal stream may wait for their events. *device: of the first.
 */
static weir_status check(struct wr_system *system, const weir_fence *fences, size_t n, int *device)
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

static weir_status wait_for(struct wr_system *system, const struct wr_signal_stream *signal_stream,
			    const weir_fence *fences, size_t n)
{
	weir_status status = WEIR_OK;

	for (size_t i = 0; i < n && !status; i++) {
		weir_stream *stream;

		status = wr_fence_find(system, fences[i], &stream);
		if (!status && stream && fences[i].point > wr_load(&stream->completed))
			status = wr_system_check(
				system,
				system->backend->wait(system->native, signal_stream->device, signal_stream->native,
						      wr_stream_point(stream, fences[i].point)->event));
	}
	return status;
}

/* Whether the word will tell. */
static bool write_flag(struct wr_system *system, struct wr_signal_stream *signal_stream)
{
	const struct wr_backend *backend = system->backend;

	if (!signal_stream->word)
		return false;
	signal_stream->flag_value++;
	return !wr_system_check(system, backend->write_flag(system->native, signal_stream->device, signal_stream->native,
						     signal_stream->word, signal_stream->flag_value));
}

static void unclaim(struct wr_signals *signals, const struct wr_order *order)
{
	wr_mutex_lock(&signals->lock);
	if (order->bounded)
		signals->outstanding[order->device]--;
	wr_mutex_unlock(&signals->lock);
}

static weir_status arm_on_signal_stream(struct wr_system *system, struct wr_waker *waker, struct wr_order *order,
				  wr_token *out)
{
	struct wr_signals *signals = &system->signals;
	struct wr_signal *signal;
	weir_status status = WEIR_OK;

	if (!order->signal_stream)
		status = wr_signal_stream_make(system, order->device, &order->signal_stream);
	if (!status)
		status = wait_for(system, order->signal_stream, order->fences, order->count);
	if (!status)
		order->proven = write_flag(system, order->signal_stream);
	if (!status)
		status = wr_signal_make(system, waker, order, &signal);
	if (!status)
		return enqueue(system, order->signal_stream->native, signal, out);
	wr_signal_stream_detach(system, order->signal_stream);
	unclaim(signals, order);
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
		if (!order->inlined)
			order->signal_stream = wr_signal_stream_pop_locked(&signals->signal_streams, order->device);
		*dropped = order->bounded && wr_refused_leave_locked(signals, order->entity);
	}
	if (entered && status == WEIR_E_BUSY)
		waker->take(waker); /* under the lock: before anybody can find the entry and drop it */
	wr_mutex_unlock(&signals->lock);
	return status;
}

/* The order is claimed or refused; what the claim gave back is dropped. */
static weir_status claim_for_run(struct wr_system *system, struct wr_waker *waker, struct wr_order *order)
{
	bool dropped = false;
	weir_status status = claim(&system->signals, order, waker, &dropped);

	if (status == WEIR_E_BUSY)
		wr_system_added(system);
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
	struct wr_order order = {.entity = entity, .fences = fences, .count = n, .bounded = true};
	struct wr_waker *waker;
	weir_status status = find_waker(system, &waker);

	if (!status)
		status = check(system, fences, n, &order.device);
	if (!status)
		status = claim_for_run(system, waker, &order);
	return status ? status : arm_on_signal_stream(system, waker, &order, out);
}

/* --- on the stream itself --- */

/*
 * The stream that all pending ones of the fences lie on, whatever their identities; NULL: there are several,
 * or none is pending.
 */
static weir_status find_only(struct wr_system *system, const weir_fence *fences, size_t n, weir_stream **out)
{
	weir_status status = WEIR_OK;

	*out = NULL;
	for (size_t i = 0; i < n && !status; i++) {
		weir_stream *stream;

		status = wr_fence_find(system, fences[i], &stream);
		if (status || !stream || fences[i].point <= wr_load(&stream->completed))
			continue;
		if (*out && !weir_stream_same(*out, stream)) {
			*out = NULL;
			return WEIR_OK;
		}
		*out = stream;
	}
	return status;
}

/*
 * `inlined` keeps the identity from being given on while its callback is outstanding, since lost.c looks at
 * its later points.
 */
static weir_status arm_on_stream(struct wr_system *system, struct wr_waker *waker, struct wr_order *order,
				 wr_token *out)
{
	weir_stream *stream = order->stream;
	struct wr_signal *signal;
	weir_status status;

	wr_fetch_add(&stream->inlined, 1);
	status = wr_signal_make(system, waker, order, &signal);
	if (!status)
		return enqueue(system, wr_load(&stream->native), signal, out);
	wr_fetch_sub(&stream->inlined, 1);
	unclaim(&system->signals, order);
	return status;
}

weir_status wr_signal_inline(struct wr_system *system, uint32_t entity, const weir_fence *fences, size_t n,
			     wr_token *out)
{
	struct wr_order order = {
		.entity = entity, .fences = fences, .count = n, .bounded = true, .inlined = true};
	struct wr_waker *waker;
	weir_stream *root;
	weir_status status = find_waker(system, &waker);

	if (!status)
		status = find_only(system, fences, n, &order.stream);
	if (status || !order.stream)
		return status ? status : WEIR_E_UNSUPPORTED;
	order.device = order.stream->spec.device;
	root = wr_load(&order.stream->root);
	wr_fetch_add(&root->entering, 1);
	status = wr_load(&root->exposed) ? WEIR_E_UNSUPPORTED : claim_for_run(system, waker, &order);
	if (!status)
		status = arm_on_stream(system, waker, &order, out);
	wr_fetch_sub(&root->entering, 1);
	return status;
}

/* Outside of the bound: at most one for each point that a stream ended with. */
weir_status wr_signal_expect(weir_stream *stream)
{
	struct wr_system *system = stream->system;
	struct wr_waker *waker = wr_load(&system->waker);
	weir_fence fence = {wr_load(&stream->id), wr_load(&stream->submitted)};
	struct wr_order order = {.entity = WR_NO_ENTITY,
			      .fences = &fence,
			      .count = 1,
			      .device = stream->spec.device,
			      .stream = stream};
	bool dropped = false;
	wr_token token;
	weir_status status;

	if (!waker || stream->expected == fence.point)
		return WEIR_OK;
	claim(&system->signals, &order, waker, &dropped);
	status = arm_on_signal_stream(system, waker, &order, &token);
	if (!status)
		stream->expected = fence.point;
	return status;
}
