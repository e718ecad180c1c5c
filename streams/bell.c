/*
 * Doorbells (G4): the device writes the number of a point into a word of the stream's, and a poller watches the words.
 *
 * A signal that waits so goes from whoever armed it through the inbox, a stack without a lock, into the list of who
 * looks. From there only who looks takes it back, once its token has ended: he ends it himself when the words have
 * come past its points, or finds it superseded; or somebody else ended it, because the system failed or the run is
 * over, and has said, last of all, that he is through with it (`ended`). So a signal is in one place at any time, and is
 * given back once. `looking` is the right to look; who finds it taken goes without.
 *
 * Words are compared by the signed difference of 32 bits. They are given out for good: a stream that is opened again
 * counts on. A word that a stream did not use for long (WR_WORD_SPAN) is brought up to date first.
 */
#include <assert.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/status.h"
#include "streams/signal.h"

#define TAKEN          20000	/* when somebody else looks: again so much later */
#define NO_MEMORY      1000000
#define LEAST_MARGIN   20000
#define FIRST_MARGIN   60000
#define LARGEST_MARGIN 500000

/* --- words --- */

static weir_status add_words(struct wr_system *system)
{
	struct wr_bells *bells = &system->bells;
	struct wr_words *words = wr_alloc(1, sizeof *words);
	void *memory = NULL;
	weir_status status;

	if (!words)
		return WEIR_E_NOMEM;
	status = wr_system_note(system, system->backend->alloc(system->native, WEIR_HOST, WR_WORDS * sizeof *words->at, &memory));
	if (status) {
		wr_free(words);
		return status;
	}
	words->at = memory;
	wr_mutex_lock(&bells->lock);
	words->older = bells->words;
	bells->words = words;
	bells->used = 0;
	wr_mutex_unlock(&bells->lock);
	return WEIR_OK;
}

static _Atomic uint32_t *next_word(struct wr_bells *bells)
{
	_Atomic uint32_t *word = NULL;

	wr_mutex_lock(&bells->lock);
	if (bells->words && bells->used < WR_WORDS)
		word = &bells->words->at[bells->used++].value;
	wr_mutex_unlock(&bells->lock);
	return word;
}

static weir_status take_word(struct wr_system *system, _Atomic uint32_t **out)
{
	_Atomic uint32_t *word = next_word(&system->bells);

	while (!word) {
		weir_status status = add_words(system);

		if (status)
			return status;
		word = next_word(&system->bells);
	}
	*out = word;
	return WEIR_OK;
}

static weir_status give_word(weir_stream *stream)
{
	_Atomic uint32_t *word;
	weir_status status = take_word(stream->system, &word);

	if (status)
		return status;
	stream->missed.point = wr_load(&stream->seen); /* nobody looks before there is a word */
	wr_store(word, (uint32_t)stream->missed.point);
	wr_store(&stream->word, word);
	return WEIR_OK;
}

weir_status wr_bell_open(weir_stream *stream)
{
	return wr_load(&stream->system->bells.on) ? give_word(stream) : WEIR_OK;
}

static weir_status check_device(struct wr_system *system, int device)
{
	const struct wr_backend *backend = system->backend;

	if (!backend->ring)
		return wr_fail(WEIR_E_UNSUPPORTED, "signal 'doorbell': the %s backend has none: use 'callback'", backend->name);
	return backend->can_ring ? wr_system_note(system, backend->can_ring(system->native, device)) : WEIR_OK;
}

weir_status wr_bell_word(struct wr_system *system, int device, _Atomic uint32_t **out)
{
	weir_status status = check_device(system, device);

	*out = NULL;
	if (!status)
		status = take_word(system, out);
	if (!status)
		wr_store(*out, 0);
	return status == WEIR_E_DEVICE ? status : WEIR_OK;	/* without one the device is asked */
}

weir_status wr_bell_check(struct wr_system *system)
{
	weir_status status = WEIR_OK;

	for (int device = 0; device < system->devices && !status; device++)
		status = check_device(system, device);
	if (!status && !wr_exchange(&system->bells.on, true))
		status = add_words(system);
	return status;
}

/* --- ringing --- */

/* The last write was long ago: a later record is complete, so it has been made, and nothing else writes there now. */
static void bring_up_to_date(weir_stream *stream, uint64_t point)
{
	uint64_t rung = wr_load(&stream->rung), seen = wr_load(&stream->seen);

	if (point - rung > WR_WORD_SPAN && seen > rung)
		wr_store(wr_load(&stream->word), (uint32_t)seen);
}

/* Right after a record the stream cannot be in a capture; later somebody may have begun one. */
static bool may_ring(weir_stream *stream)
{
	if (!stream->system->backend->ring || (wr_load(&stream->dirty) && wr_stream_capturing(stream)))
		return false;
	return wr_load(&stream->word) || !give_word(stream);
}

weir_status wr_bell_ring(weir_stream *stream)
{
	struct wr_system *system = stream->system;
	uint64_t point = wr_load(&stream->recorded);
	weir_status status;

	if (wr_load(&stream->rung) >= point)
		return WEIR_OK;
	if (wr_system_failed(system))
		return wr_system_dead(system);
	if (!may_ring(stream))
		return WEIR_OK;
	bring_up_to_date(stream, point);
	wr_store(&stream->trailing, true);
	status = wr_system_note(system, system->backend->ring(system->native, stream->device, wr_load(&stream->native),
							      wr_load(&stream->word), (uint32_t)point));
	if (!status) {
		wr_store(&wr_stream_point(stream, point)->rung, true);
		wr_store(&stream->rung, point);
	}
	return status == WEIR_E_DEVICE ? status : WEIR_OK;
}

/* --- arming --- */

static weir_status check_rung(struct wr_system *system, const weir_fence *fences, size_t n)
{
	weir_status status = WEIR_OK;

	for (size_t i = 0; i < n && !status; i++) {
		weir_stream *stream;

		status = wr_fence_find(system, fences[i], &stream);
		if (!status && stream && fences[i].point > wr_load(&stream->seen) && !wr_stream_rung(stream, fences[i].point))
			status = WEIR_E_UNSUPPORTED;
	}
	return status;
}

static void put(struct wr_bells *bells, struct wr_signal *signal)
{
	struct wr_signal *head = wr_load(&bells->inbox);

	do
		signal->next = head;
	while (!wr_cas(&bells->inbox, &head, signal));
}

/*
 * seq_cst, after the token was armed: either this sees the failure, or whoever fails the system sees the token. Either way
 * the poller takes the signal back.
 */
static weir_status check_failed(struct wr_system *system, struct wr_signal *signal, wr_token token)
{
	if (!wr_load(&system->failed))
		return WEIR_OK;
	if (wr_token_end(token) != WR_TOKEN_GONE)
		wr_store(&signal->ended, token);
	return wr_system_dead(system);
}

weir_status wr_bell_arm(struct wr_system *system, uint32_t entity, const weir_fence *fences, size_t n, wr_token *out)
{
	struct wr_bells *bells = &system->bells;
	struct wr_waker *waker = wr_load(&system->waker);
	struct wr_order order = {.entity = entity, .fences = fences, .count = n, .doorbell = true};
	struct wr_signal *signal;
	wr_token token;
	weir_status status;

	if (wr_system_failed(system))
		return wr_system_dead(system);
	if (!waker)
		return wr_fail(WEIR_E_CLOSED, "no run is on");
	status = check_rung(system, fences, n);
	if (!status)
		status = wr_signal_check(system, fences, n, &order.device);
	if (!status)
		status = wr_signal_make(system, waker, &order, &signal);
	if (status)
		return status;
	token = wr_load(&signal->token);
	wr_fetch_add(&bells->armed, 1);
	put(bells, signal); /* from here on it may fire, and be somebody else's */
	wr_fetch_add(&bells->version, 1);
	status = check_failed(system, signal, token);
	if (!status)
		*out = token;
	wr_signal_leave(system, entity); /* where it stood for a callback */
	wr_system_added(system);
	return status;
}

size_t wr_bells_armed(const struct wr_system *system)
{
	return wr_load(&((struct wr_system *)system)->bells.armed);
}

uint64_t wr_bells_version(const struct wr_system *system)
{
	return wr_load(&((struct wr_system *)system)->bells.version);
}

/* --- what is watched --- */

/*
 * No stream: all was complete when it was looked at first. The word is proof that the point is complete: the stream came past it, and
 * after a fault it comes past nothing any more. So nobody has to ask the device again.
 */
static bool has_come(const struct wr_bell *bell)
{
	if (!bell->stream || wr_load(&bell->stream->seen) >= bell->point)
		return true;
	if ((int32_t)(wr_load(bell->word) - bell->target) < 0)
		return false;
	wr_stream_saw(bell->stream, bell->point);
	return true;
}

/* The work of a point begins when the one before it on the stream has ended. */
static void expect(struct wr_bell *bell)
{
	weir_stream *stream = bell->stream;
	bool behind;

	if (!stream)
		return;
	behind = stream->rang.point < bell->point && stream->rang.at > bell->made;
	bell->wait.asked = bell->signal->armed_at;
	bell->wait.since = behind ? stream->rang.at : bell->made;
	bell->wait.known = bell->made && stream->rang.work.known;
	bell->wait.early = wr_estimate_early(&stream->rang.work);
	bell->wait.mean = stream->rang.work.mean;
	bell->wait.late = wr_estimate_late(&stream->rang.work);
}

/* Its place may be another point's by now: then it was seen complete. */
static int64_t made_at(weir_stream *stream, uint64_t point)
{
	struct wr_point *place = wr_stream_point(stream, point);
	int64_t at = wr_load_relaxed(&place->at);

	return wr_load(&place->point) == point ? at : 0;
}

/* The next fence that is not known to be complete, if there is one. */
static bool watch_from(struct wr_bell *bell, uint32_t first, int64_t pending_at)
{
	const struct wr_signal *signal = bell->signal;

	for (uint32_t i = first; i < signal->count; i++) {
		weir_fence fence = signal->fences[i];
		weir_stream *stream;

		if (wr_fence_find(signal->system, fence, &stream) || !stream || fence.point <= wr_load(&stream->seen))
			continue;
		bell->fence = i;
		bell->stream = stream;
		bell->word = wr_load(&stream->word);
		bell->point = fence.point;
		bell->target = (uint32_t)fence.point;
		bell->made = made_at(stream, fence.point);
		bell->pending_at = pending_at;
		expect(bell);
		return true;
	}
	return false;
}

/*
 * When it ended is known no better than from when it was last looked at until now. A sleep that was too long teaches nothing about the
 * work but that it was not longer. What ended in the same gap as the one before it says nothing.
 */
static bool learn(struct wr_bell *bell, int64_t now)
{
	weir_stream *stream = bell->stream;
	int64_t since;

	if (!stream || bell->point <= stream->rang.point)
		return false;
	expect(bell); /* the one before may have ended just now */
	since = bell->wait.since;
	if (bell->made && bell->pending_at >= since)
		wr_estimate_learn_between(&stream->rang.work, bell->pending_at - since, now - since);
	stream->rang.point = bell->point;
	stream->rang.at = bell->pending_at ? bell->pending_at + (now - bell->pending_at) / 2 : now;
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
	wr_signal_give_back(signal); /* nothing carried it */
	wr_fetch_sub(&system->signals.pending, 1);
	wr_fetch_sub(&system->bells.armed, 1);
	return true;
}

/* --- looking --- */

/* True: it is out of the list. */
static bool settle(struct wr_bell *bell, int64_t now, bool *learned)
{
	if (!wr_token_pending(bell->token))
		return take_back(bell->signal, bell->token);
	while (has_come(bell)) {
		*learned |= learn(bell, now);
		if (!watch_from(bell, bell->fence + 1, 0))
			return take_back(bell->signal, bell->token);
	}
	bell->pending_at = now;
	return false;
}

static bool enlist(struct wr_bells *bells, struct wr_signal *signal)
{
	struct wr_bell *bell;

	if (wr_grow(&bells->list, &bells->room, bells->count + 1, sizeof *bells->list))
		return false;
	bell = &bells->list[bells->count++];
	*bell = (struct wr_bell){.signal = signal, .token = wr_load(&signal->token)};
	if (!watch_from(bell, 0, signal->armed_at))
		bell->fence = (uint32_t)signal->count;
	return true;
}

/* Without memory what was armed stays in the inbox. */
static void empty_inbox(struct wr_bells *bells)
{
	struct wr_signal *signal = wr_load(&bells->inbox) ? wr_exchange(&bells->inbox, NULL) : NULL;

	while (signal) {
		struct wr_signal *next = signal->next;
		wr_token token = wr_load(&signal->token);

		if ((wr_token_pending(token) || !take_back(signal, token)) && !enlist(bells, signal))
			put(bells, signal);
		signal = next;
	}
}

static void settle_all(struct wr_bells *bells, int64_t now)
{
	bool learned = false;

	empty_inbox(bells);
	for (size_t i = 0; i < bells->count;)
		if (settle(&bells->list[i], now, &learned))
			bells->list[i] = bells->list[--bells->count];
		else
			i++;
	for (size_t i = 0; i < bells->count && learned; i++)
		expect(&bells->list[i]);
}

/* What is armed and not listed is on its way here (its arming then changes `version`), or there was no memory for it. */
static int64_t when_next(struct wr_system *system, int64_t now)
{
	struct wr_bells *bells = &system->bells;
	int64_t margin = wr_load(&bells->margin), next = INT64_MAX;

	if (wr_load(&bells->armed) > bells->count)
		next = now + (wr_load(&bells->inbox) ? NO_MEMORY : TAKEN);
	for (size_t i = 0; i < bells->count && next > now; i++) {
		int64_t wanted = wr_wait_next(&bells->list[i].wait, now, system->backend->spins, margin);

		next = wanted < next ? wanted : next;
	}
	return next;
}

int64_t wr_bells_look(struct wr_system *system, int64_t now)
{
	struct wr_bells *bells = &system->bells;
	int64_t next;

	if (!wr_load(&bells->armed))
		return INT64_MAX;
	if (wr_exchange(&bells->looking, true))
		return now + TAKEN;
	settle_all(bells, now);
	next = when_next(system, now);
	wr_exchange(&bells->looking, false);
	return next;
}

void wr_bells_overslept(struct wr_system *system, int64_t late_ns)
{
	struct wr_bells *bells = &system->bells;
	int64_t margin;

	wr_estimate_learn(&bells->lateness, late_ns);
	margin = wr_estimate_late(&bells->lateness);
	margin = margin < LEAST_MARGIN ? LEAST_MARGIN : margin > LARGEST_MARGIN ? LARGEST_MARGIN : margin;
	wr_store(&bells->margin, margin);
}

/* --- life --- */

void wr_bells_reap(struct wr_system *system)
{
	struct wr_bells *bells = &system->bells;

	while (wr_exchange(&bells->looking, true))
		wr_thread_yield();
	settle_all(bells, wr_now());
	assert(!bells->count && !wr_load(&bells->armed));
	wr_exchange(&bells->looking, false);
}

weir_status wr_bells_init(struct wr_system *system)
{
	system->bells.lateness = (struct wr_estimate){.mean = FIRST_MARGIN, .known = true};
	wr_store(&system->bells.margin, FIRST_MARGIN);
	return wr_mutex_init(&system->bells.lock);
}

void wr_bells_finish(struct wr_system *system)
{
	struct wr_bells *bells = &system->bells;

	while (bells->words) {
		struct wr_words *older = bells->words->older;

		system->backend->release(system->native, WEIR_HOST, bells->words->at);
		wr_free(bells->words);
		bells->words = older;
	}
	wr_free(bells->list);
	wr_mutex_finish(&bells->lock);
}
