/*
 * The poller of the flags (G4): what is armed with it, and looking. Who plays the role is decided in the
 * room of the scheduler.
 *
 * A signal that waits so goes from whoever armed it through the inbox, a stack without a lock, into the list
 * of who looks. From there only who looks takes it back, once its token has ended: he ends it himself when
 * the words have come past its points, or finds it superseded; or somebody else ended it, because the system
 * failed or the run is over, and has said, last of all, that he is through with it (`ended`). So a signal is
 * in one place at any time, and is given back once.
 *
 * There is no lock. `looking` is the right to look, taken and given back by an exchange, which hands the list
 * on from one who looks to the next; who finds it taken goes without. `armed` grows before the signal is in
 * the inbox, `version` after: who goes to sleep on what looking said, and reads the same version once more
 * after he has announced it, has missed nothing (all seq_cst).
 */
#include "streams/poller.h"

#include <assert.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/status.h"
#include "streams/signal.h"
#include "streams/system.h"

#define TAKEN          20000	/* when somebody else looks: again so much later */
#define NO_MEMORY      1000000
#define LEAST_MARGIN   20000
#define FIRST_MARGIN   60000
#define LARGEST_MARGIN 500000

/* One fence of a signal at a time. */
struct wr_armed_flag {
	_Atomic uint32_t *word;
	uint32_t target;
	uint32_t fence;			/* its number in the signal */
	weir_stream *stream;
	uint64_t point;
	struct wr_signal *signal;
	wr_token token;
	struct wr_waiting wait;
	int64_t made;			/* when the point was recorded, or 0: not known any more */
	int64_t pending_at;		/* when it was last known not to be complete, or 0 */
};

/* --- arming --- */

/* What was not rung is not armed here. Nothing is enqueued: so no capture is in the way. */
static weir_status check(struct wr_system *system, const weir_fence *fences, size_t n)
{
	weir_status status = WEIR_OK;

	for (size_t i = 0; i < n && !status; i++) {
		weir_stream *stream;

		status = wr_fence_find(system, fences[i], &stream);
		if (status || !stream || fences[i].point <= wr_load(&stream->completed))
			continue;
		status = wr_stream_has_flag(stream, fences[i].point) ? WEIR_OK : WEIR_E_UNSUPPORTED;
	}
	return status;
}

static void put(struct wr_poller *poller, struct wr_signal *signal)
{
	struct wr_signal *head = wr_load(&poller->inbox);

	do
		signal->next = head;
	while (!wr_cas(&poller->inbox, &head, signal));
}

/*
 * seq_cst, after the token was armed: either this sees the failure, or whoever fails the system sees the
 * token. Either way the poller takes the signal back.
 */
static weir_status check_failed(struct wr_system *system, struct wr_signal *signal, wr_token token)
{
	if (!wr_load(&system->failed))
		return WEIR_OK;
	if (wr_token_end(token) != WR_TOKEN_GONE)
		wr_store(&signal->ended, token);
	return wr_system_failure_status(system);
}

weir_status wr_flag_arm(struct wr_system *system, uint32_t entity, const weir_fence *fences, size_t n,
			wr_token *out)
{
	struct wr_poller *poller = &system->poller;
	struct wr_waker *waker = wr_load(&system->waker);
	struct wr_order order = {.entity = entity, .fences = fences, .count = n, .by_flag = true};
	struct wr_signal *signal;
	wr_token token;
	weir_status status;

	if (wr_system_failed(system))
		return wr_system_failure_status(system);
	if (!waker)
		return wr_fail(WEIR_E_CLOSED, "no run is on");
	status = check(system, fences, n);
	if (!status)
		status = wr_signal_make(system, waker, &order, &signal);
	if (status)
		return status;
	token = wr_load(&signal->token);
	wr_fetch_add(&poller->armed, 1);
	put(poller, signal); /* from here on it may fire, and be somebody else's */
	wr_fetch_add(&poller->version, 1);
	status = check_failed(system, signal, token);
	if (!status)
		*out = token;
	wr_signal_leave(system, entity); /* where it stood for a callback */
	wr_system_added(system);
	return status;
}

size_t wr_flags_armed(const struct wr_system *system)
{
	return wr_load(&((struct wr_system *)system)->poller.armed);
}

uint64_t wr_flags_version(const struct wr_system *system)
{
	return wr_load(&((struct wr_system *)system)->poller.version);
}

/* --- what is watched --- */

/*
 * No stream: all was complete when it was looked at first. The word is proof that the point is complete: the
 * stream came past it, and after a fault it comes past nothing any more. So nobody has to ask the device
 * again.
 */
static bool has_come(const struct wr_armed_flag *flag)
{
	if (!flag->stream || wr_load(&flag->stream->completed) >= flag->point)
		return true;
	if ((int32_t)(wr_load(flag->word) - flag->target) < 0)
		return false;
	wr_stream_saw(flag->stream, flag->point);
	return true;
}

/* The work of a point begins when the one before it on the stream has ended. */
static void expect(struct wr_armed_flag *flag)
{
	weir_stream *stream = flag->stream;
	bool behind;

	if (!stream)
		return;
	behind = stream->flag_seen.point < flag->point && stream->flag_seen.at > flag->made;
	flag->wait.asked = flag->signal->armed_at;
	flag->wait.since = behind ? stream->flag_seen.at : flag->made;
	flag->wait.known = flag->made && stream->flag_seen.work.known;
	flag->wait.early = wr_estimate_early(&stream->flag_seen.work);
	flag->wait.mean = stream->flag_seen.work.mean;
	flag->wait.late = wr_estimate_late(&stream->flag_seen.work);
}

/* Its place may be another point's by now: then it was seen complete. */
static int64_t made_at(weir_stream *stream, uint64_t point)
{
	struct wr_point *place = wr_stream_point(stream, point);
	int64_t at = wr_load_relaxed(&place->at);

	return wr_load(&place->point) == point ? at : 0;
}

/* The next fence that is not known to be complete, if there is one. */
static bool watch_from(struct wr_armed_flag *flag, uint32_t first, int64_t pending_at)
{
	const struct wr_signal *signal = flag->signal;

	for (uint32_t i = first; i < signal->count; i++) {
		weir_fence fence = signal->fences[i];
		weir_stream *stream;

		if (wr_fence_find(signal->system, fence, &stream) || !stream ||
		    fence.point <= wr_load(&stream->completed))
			continue;
		flag->fence = i;
		flag->stream = stream;
		flag->word = wr_load(&stream->word);
		flag->point = fence.point;
		flag->target = (uint32_t)fence.point;
		flag->made = made_at(stream, fence.point);
		flag->pending_at = pending_at;
		expect(flag);
		return true;
	}
	return false;
}

/*
 * When it ended is known no better than from when it was last looked at until now. A sleep that was too long
 * teaches nothing about the work but that it was not longer. What ended in the same gap as the one before it
 * says nothing.
 */
static bool learn(struct wr_armed_flag *flag, int64_t now)
{
	weir_stream *stream = flag->stream;
	int64_t since;

	if (!stream || flag->point <= stream->flag_seen.point)
		return false;
	expect(flag); /* the one before may have ended just now */
	since = flag->wait.since;
	if (flag->made && flag->pending_at >= since)
		wr_estimate_learn_between(&stream->flag_seen.work, flag->pending_at - since, now - since);
	stream->flag_seen.point = flag->point;
	stream->flag_seen.at = flag->pending_at ? flag->pending_at + (now - flag->pending_at) / 2 : now;
	return true;
}

/* The token has ended, or ends here. False: who ended it is not through yet. */
static bool take_back(struct wr_signal *signal, wr_token token)
{
	struct wr_system *system = signal->system;
	enum wr_token_end end = wr_token_end(token);

	if (end == WR_TOKEN_GONE && wr_load(&signal->ended) != token)
		return false;
	if (end == WR_TOKEN_WAS_PENDING && signal->entity != WR_NO_ENTITY)
		signal->waker->poke(signal->waker, signal->entity);
	wr_signal_release(signal); /* nothing carried it */
	wr_fetch_sub(&system->signals.pending, 1);
	wr_fetch_sub(&system->poller.armed, 1);
	return true;
}

/* --- looking --- */

/* True: it is out of the list. */
static bool settle(struct wr_armed_flag *flag, int64_t now, bool *learned)
{
	if (!wr_token_pending(flag->token))
		return take_back(flag->signal, flag->token);
	while (has_come(flag)) {
		*learned |= learn(flag, now);
		if (!watch_from(flag, flag->fence + 1, 0))
			return take_back(flag->signal, flag->token);
	}
	flag->pending_at = now;
	return false;
}

static bool enlist(struct wr_poller *poller, struct wr_signal *signal)
{
	struct wr_armed_flag *flag;

	if (wr_grow(&poller->list, &poller->room, poller->count + 1, sizeof *poller->list))
		return false;
	flag = &poller->list[poller->count++];
	*flag = (struct wr_armed_flag){.signal = signal, .token = wr_load(&signal->token)};
	if (!watch_from(flag, 0, signal->armed_at))
		flag->fence = (uint32_t)signal->count;
	return true;
}

/* Without memory what was armed stays in the inbox. */
static void empty_inbox(struct wr_poller *poller)
{
	struct wr_signal *signal = wr_load(&poller->inbox) ? wr_exchange(&poller->inbox, NULL) : NULL;

	while (signal) {
		struct wr_signal *next = signal->next;
		wr_token token = wr_load(&signal->token);

		if ((wr_token_pending(token) || !take_back(signal, token)) && !enlist(poller, signal))
			put(poller, signal);
		signal = next;
	}
}

static void settle_all(struct wr_poller *poller, int64_t now)
{
	bool learned = false;

	empty_inbox(poller);
	for (size_t i = 0; i < poller->count;)
		if (settle(&poller->list[i], now, &learned))
			poller->list[i] = poller->list[--poller->count];
		else
			i++;
	for (size_t i = 0; i < poller->count && learned; i++)
		expect(&poller->list[i]);
}

/*
 * What is armed and not listed is on its way here (its arming
 * then changes `version`), or there was no memory for it.
 */
static int64_t when_next(struct wr_system *system, int64_t now)
{
	struct wr_poller *poller = &system->poller;
	int64_t margin = wr_load(&poller->margin), next = INT64_MAX;

	if (wr_load(&poller->armed) > poller->count)
		next = now + (wr_load(&poller->inbox) ? NO_MEMORY : TAKEN);
	for (size_t i = 0; i < poller->count && next > now; i++) {
		int64_t wanted = wr_wait_next(&poller->list[i].wait, now, poller->spins, margin);

		next = wanted < next ? wanted : next;
	}
	return next;
}

int64_t wr_flags_poll(struct wr_system *system, int64_t now)
{
	struct wr_poller *poller = &system->poller;
	int64_t next;

	if (!wr_load(&poller->armed))
		return INT64_MAX;
	if (wr_exchange(&poller->looking, true))
		return now + TAKEN;
	settle_all(poller, now);
	next = when_next(system, now);
	wr_exchange(&poller->looking, false);
	return next;
}

void wr_flags_overslept(struct wr_system *system, int64_t late_ns)
{
	struct wr_poller *poller = &system->poller;
	int64_t margin;

	wr_estimate_learn(&poller->lateness, late_ns);
	margin = wr_estimate_late(&poller->lateness);
	margin = margin < LEAST_MARGIN ? LEAST_MARGIN : margin > LARGEST_MARGIN ? LARGEST_MARGIN : margin;
	wr_store(&poller->margin, margin);
}

/* --- life --- */

void wr_flags_reap(struct wr_system *system)
{
	struct wr_poller *poller = &system->poller;

	while (wr_exchange(&poller->looking, true))
		wr_thread_yield();
	settle_all(poller, wr_now());
	assert(!poller->count && !wr_load(&poller->armed));
	wr_exchange(&poller->looking, false);
}

void wr_poller_init(struct wr_poller *poller, bool spins)
{
	poller->spins = spins;
	poller->lateness = (struct wr_estimate){.mean = FIRST_MARGIN, .known = true};
	wr_store(&poller->margin, FIRST_MARGIN);
}

void wr_poller_finish(struct wr_poller *poller)
{
	wr_free(poller->list);
}
