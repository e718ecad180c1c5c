/*
 * Completion flags (G4): the device writes a fence's timeline value into a word of the stream, at most once
 * per value. First the words, which are given to streams, and the writes; then the poller, which reads them.
 *
 * Words are compared by their signed 32-bit difference. They are in pages of pinned memory that are freed
 * with the system. A recycled stream keeps its word, and its values go on counting. A word that was not
 * written for a long time (WR_WORD_SPAN) is caught up before the next write.
 *
 * A word has one writer at a time: the thread that gives it out, before others see it; then the device, in
 * stream order; and the stream's owner when it catches the word up, while no write is pending. The device
 * writes it once all earlier work of the stream is visible to the host, so a thread that reads the value also
 * sees the results of that work.
 */
#include "streams/flag.h"

#include <assert.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/stack.h"
#include "base/status.h"
#include "streams/signal.h"
#include "streams/system.h"

/* --- words --- */

static weir_status words_add_page(struct wr_system *system)
{
	struct wr_flag_words *words = &system->flag_words;
	struct wr_words_page *page = wr_alloc(1, sizeof *page);
	void *memory = NULL;
	weir_status status;

	if (!page)
		return WEIR_E_NOMEM;
	status = wr_device_alloc(system, WEIR_DEVICE_HOST, WR_WORDS * sizeof *page->at, &memory);
	if (status) {
		wr_free(page);
		return status;
	}
	page->at = memory;
	wr_mutex_lock(&words->lock);
	page->older = words->pages;
	words->pages = page;
	words->used = 0;
	wr_mutex_unlock(&words->lock);
	return WEIR_OK;
}

static _Atomic uint32_t *word_next(struct wr_flag_words *words)
{
	_Atomic uint32_t *word = NULL;

	wr_mutex_lock(&words->lock);
	if (words->pages && words->used < WR_WORDS)
		word = &words->pages->at[words->used++].value;
	wr_mutex_unlock(&words->lock);
	return word;
}

static weir_status word_take(struct wr_system *system, _Atomic uint32_t **out)
{
	_Atomic uint32_t *word = word_next(&system->flag_words);

	while (!word) {
		weir_status status = words_add_page(system);

		if (status)
			return status;
		word = word_next(&system->flag_words);
	}
	*out = word;
	return WEIR_OK;
}

static weir_status stream_give_word(weir_stream *stream)
{
	_Atomic uint32_t *word;
	weir_status status = word_take(stream->system, &word);

	if (status)
		return status;
	stream->flag_missed.value = wr_load(&stream->completed); /* read by the watch only after the word */
	wr_store(word, (uint32_t)stream->flag_missed.value);
	wr_store(&stream->word, word);
	return WEIR_OK;
}

weir_status wr_flag_give_word(weir_stream *stream)
{
	weir_status status = wr_device_can_write_flag(stream->system, stream->spec.device);

	return status == WEIR_E_UNSUPPORTED ? WEIR_OK : status ? status : stream_give_word(stream);
}

void wr_flag_catch_up(weir_stream *stream)
{
	if (wr_load(&stream->word) &&
	    (int32_t)(wr_load(wr_load(&stream->word)) - (uint32_t)wr_load(&stream->completed)) < 0)
		wr_store(wr_load(&stream->word), (uint32_t)wr_load(&stream->completed));
}

weir_status wr_flag_word(struct wr_system *system, int device, _Atomic uint32_t **out)
{
	weir_status status = wr_device_can_write_flag(system, device);

	*out = NULL;
	if (!status)
		status = word_take(system, out);
	if (!status)
		wr_store(*out, 0);
	return status == WEIR_E_DEVICE ? status : WEIR_OK; /* without a word the device is queried */
}

bool wr_system_flags(const struct wr_system *system)
{
	return wr_load(&((struct wr_system *)system)->flag_words.on);
}

bool wr_system_prefers_flags(const struct wr_system *system)
{
	return system->backend->write_flag && system->poller.spins;
}

weir_status wr_flags_use(struct wr_system *system, enum wr_flagging flagging)
{
	weir_status status = WEIR_OK;

	if (flagging == WR_FLAGS_NONE)
		return WEIR_OK;
	/* With AUTO a device is asked when a stream of it is made: the graph may use one of eight. */
	for (int device = 0; flagging == WR_FLAGS_ALL && device < system->devices && !status; device++)
		status = wr_device_can_write_flag(system, device);
	if (status || wr_exchange(&system->flag_words.on, true))
		return status;
	status = words_add_page(system);
	if (status && flagging == WR_FLAGS_AUTO)
		wr_store(&system->flag_words.on, false);
	return flagging == WR_FLAGS_ALL || status == WEIR_E_DEVICE ? status : WEIR_OK;
}

/* --- writing --- */

/* Also where a write was refused, or did not come: such a stream is signalled by callbacks for good. */
static bool stream_takes_flags(const weir_stream *stream)
{
	const weir_stream *root = wr_load(&((weir_stream *)stream)->root);

	return !root->wrapped && !wr_load(&((weir_stream *)root)->users) &&
	       !wr_load_relaxed(&((weir_stream *)stream)->flagless);
}

/*
 * ALL: right after a record the stream cannot be in a capture; once it is dirty again it may be. AUTO: nor
 * may another thread that was given the handle have begun one since.
 */
static bool may_write(weir_stream *stream, enum wr_flagging flagging)
{
	bool automatic = flagging == WR_FLAGS_AUTO;

	if (!stream->system->backend->write_flag || (automatic && !stream_takes_flags(stream)))
		return false;
	return !(automatic || wr_load(&stream->dirty)) || !wr_stream_capturing(stream);
}

weir_status wr_flag_write(weir_stream *stream, enum wr_flagging flagging)
{
	struct wr_system *system = stream->system;
	uint64_t value = wr_load(&stream->submitted), flag_value = wr_load(&stream->flag_value), seen;
	weir_status status;

	if (flag_value >= value)
		return WEIR_OK;
	if (wr_system_failed(system))
		return wr_system_failure_status(system);
	if (!may_write(stream, flagging))
		return WEIR_OK;
	if (!wr_load(&stream->word) && wr_flag_give_word(stream))
		return WEIR_OK;
	if (!wr_load(&stream->word)) { /* its device cannot write flags */
		wr_store_relaxed(&stream->flagless, true);
		return WEIR_OK;
	}
	/*
	 * Catches the word up if its last write was long ago. A later record is complete, so that write has
	 * been made and none is pending.
	 */
	seen = wr_load(&stream->completed);
	if (value - flag_value > WR_WORD_SPAN && seen > flag_value)
		wr_store(wr_load(&stream->word), (uint32_t)seen);
	wr_store(&stream->flag_after_record, true);
	status = wr_device_write_flag(system, stream->spec.device, wr_load(&stream->native),
				      wr_load(&stream->word), (uint32_t)value);
	if (!status) {
		struct wr_event *event = wr_stream_event(stream, value);

		wr_store(&event->marks, wr_load(&event->marks) | WR_EVENT_FLAG);
		wr_store(&stream->flag_value, value);
	} else if (status == WEIR_E_UNSUPPORTED) {
		wr_store_relaxed(&stream->flagless, true);
	}
	return status == WEIR_E_DEVICE ? status : WEIR_OK;
}

/* --- life --- */

weir_status wr_flag_words_init(struct wr_system *system)
{
	return wr_mutex_init(&system->flag_words.lock);
}

void wr_flag_words_finish(struct wr_system *system)
{
	struct wr_flag_words *words = &system->flag_words;

	while (words->pages) {
		struct wr_words_page *older = words->pages->older;

		wr_device_release(system, WEIR_DEVICE_HOST, words->pages->at);
		wr_free(words->pages);
		words->pages = older;
	}
	wr_mutex_finish(&words->lock);
}

/*
 * === the poller ===
 *
 * Arming and polling (G4). The scheduler decides which worker is the poller, and how
 * it sleeps (poller_sleep in scheduler/worker.c).
 *
 * The thread that arms a signal pushes it onto the inbox, a lock-free stack; the poller moves it into its
 * list. Only the poller recycles it, once its token has ended: the poller itself ends the token when the
 * flags of all its fences are written, or if it was cancelled; or another thread ends it, because the system
 * failed or the run is over, and as its last step stores it in `ended`. So a signal is in one event at any
 * time, and is recycled once.
 *
 * There is no lock. `polling` is the right to poll, taken and returned by exchanges, which pass the list from
 * one poller to the next; a thread that finds it taken returns. `armed` grows before the signal is in the
 * inbox, `version` after. So a worker that polls, announces its sleep, and then reads the same version as
 * before the poll has missed no arming (all seq_cst).
 *
 * When to poll again is estimated from how long the work of each stream took, with a smoothed mean and mean
 * deviation as TCP does for round trips (RFC 6298).
 */

/* --- estimates --- */

#define US INT64_C(1000)

static int64_t clamp(int64_t value, int64_t least, int64_t most)
{
	return value < least ? least : value > most ? most : value;
}

void wr_estimate_learn(struct wr_estimate *estimate, int64_t sample)
{
	int64_t error;

	sample = clamp(sample, 0, WR_ESTIMATE_MOST);
	if (!estimate->known) {
		*estimate = (struct wr_estimate){.mean = sample, .deviation = sample / 4, .known = true};
		return;
	}
	error = sample - estimate->mean;
	estimate->mean = clamp(estimate->mean + error / 8, 0, WR_ESTIMATE_MOST);
	estimate->deviation += ((error < 0 ? -error : error) - estimate->deviation) / 4;
}

void wr_estimate_learn_between(struct wr_estimate *estimate, int64_t least, int64_t most)
{
	wr_estimate_learn(estimate,
			  estimate->known ? clamp(estimate->mean, least, most) : least + (most - least) / 2);
}

int64_t wr_estimate_early(const struct wr_estimate *estimate)
{
	return clamp(estimate->mean - 2 * estimate->deviation, estimate->mean / 2, WR_ESTIMATE_MOST);
}

int64_t wr_estimate_late(const struct wr_estimate *estimate)
{
	return clamp(estimate->mean + 2 * estimate->deviation, 0, WR_ESTIMATE_MOST);
}

/* --- when to check --- */

#define MIN_SLEEP (20 * US)  /* shorter sleeps are not worth it */
#define SPIN      (100 * US) /* longest window to spin through, or */
#define SPIN_PART 16         /* this fraction of the mean, if longer */
#define CHECKS    16         /* spread over a window too long to spin through */

/* Backs off in proportion to the time waited so far. */
static int64_t backed_off(int64_t since, int64_t now)
{
	return now + clamp((now - since) / CHECKS, 5 * US, 1000 * US);
}

/*
 * With an estimate: sleeps until completion becomes likely; then spins if the window is short,
 * else checks at intervals; after the window it backs off.
 */
int64_t wr_wait_next(const struct wr_waiting *wait, int64_t now, bool spins, int64_t margin)
{
	int64_t begin = wait->since + wait->early, end = wait->since + wait->late, window = end - begin;

	if (!spins)
		return backed_off(wait->asked, now);
	if (!wait->known)
		return now - wait->asked <= 50 * US ? now : backed_off(wait->asked, now);
	if (begin - now > margin + MIN_SLEEP)
		return begin - margin;
	if (now > end + 50 * US)
		return backed_off(wait->since, now);
	if (window <= SPIN || window <= wait->mean / SPIN_PART)
		return now;
	return now + clamp(window / CHECKS, MIN_SLEEP, 1000 * US);
}

#define RETRY_TAKEN    20000 /* poll again after this time if another thread polls */
#define RETRY_NOMEM    1000000
#define LEAST_MARGIN   20000
#define FIRST_MARGIN   60000
#define LARGEST_MARGIN 500000

/* An armed signal, with the one fence of it that is watched now. */
struct wr_armed_flag {
	_Atomic uint32_t *word;
	uint32_t target;
	uint32_t fence; /* its index in the signal */
	weir_stream *stream;
	uint64_t value;
	bool early; /* it is in the middle of a tick */
	struct wr_signal *signal;
	wr_token token;
	struct wr_waiting wait;
	int64_t made;       /* when the value was recorded, or 0 if that is not known any more */
	int64_t pending_at; /* when the value was last seen not to be complete, or 0 */
};

/* --- arming --- */

/* Refuses a fence without a flag write. A capture does not matter here, since nothing is enqueued. */
static weir_status fence_check_flag(weir_stream *stream, uint64_t value, void *unused)
{
	(void)unused;
	return wr_stream_has_flag(stream, value) ? WEIR_OK : WEIR_E_UNSUPPORTED;
}

weir_status wr_flag_arm(struct wr_system *system, uint32_t entity, const weir_fence *fences, size_t n,
			wr_token *out)
{
	struct wr_poller *poller = &system->poller;
	struct wr_waker *waker = wr_load(&system->waker);
	/* Until then the fences were pending: a span may begin there (T15), so the clock is read before the
	 * look. */
	struct wr_signal_request request = {
		.entity = entity, .fences = fences, .count = n, .by_flag = true, .armed_at = wr_now()};
	struct wr_signal *signal;
	wr_token token;
	weir_status status;

	if (wr_system_failed(system))
		return wr_system_failure_status(system);
	if (!waker)
		return wr_fail(WEIR_E_CLOSED, "no run is on");
	status = wr_fences_each_pending(system, fences, n, fence_check_flag, NULL);
	if (!status)
		status = wr_signal_make(system, waker, &request, &signal, &token);
	if (status)
		return status;
	wr_fetch_add(&poller->armed, 1);
	wr_stack_push(&poller->inbox, signal, next); /* from here on it may fire and be reused */
	wr_fetch_add(&poller->version, 1);
	/*
	 * seq_cst, after the token was armed: either this sees the failure, or the thread that fails the
	 * system sees the token. Either way the poller recycles the signal.
	 */
	if (!wr_load(&system->failed)) {
		*out = token;
	} else {
		if (wr_token_end(token) != WR_TOKEN_GONE)
			wr_store(&signal->ended, token);
		status = wr_system_failure_status(system);
	}
	wr_signal_leave_fifo(system, entity); /* it may be in the FIFO from an earlier wait by callback */
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

/* --- one armed signal --- */

/*
 * For spans without timers. If another thread noted the value as complete before, the event may be
 * recorded again at any moment: the time is then less than that of the record.
 */
static void note_seen(const struct wr_armed_flag *flag)
{
	struct wr_event *event = wr_stream_event(flag->stream, flag->value);
	int64_t since = flag->pending_at ? flag->pending_at : flag->made, now;

	if (!wr_load_relaxed(&flag->stream->system->poller.notes) || wr_load(&event->value) != flag->value)
		return;
	now = wr_now(); /* the poll began before the flag was written */
	wr_store_relaxed(&event->seen_late, (uint32_t)clamp(now - since, 0, UINT32_MAX));
	wr_store_relaxed(&event->seen_at, now);
}

/*
 * Returns true if the watched fence is complete. Without a stream, all fences were complete from the start.
 * The flag proves that the value is complete, since a device writes no flags after a fault; so the device
 * need not be queried.
 */
static bool watched_fence_complete(const struct wr_armed_flag *flag)
{
	if (!flag->stream)
		return true;
	if (wr_load(&flag->stream->completed) >= flag->value) {
		note_seen(flag);
		return true;
	}
	if ((int32_t)(wr_load(flag->word) - flag->target) < 0)
		return false;
	note_seen(flag);
	wr_stream_note_complete(flag->stream, flag->value);
	return true;
}

/* Points in the middle of ticks come after other times than their ends (T12). */
static struct wr_estimate *work_estimate(struct wr_armed_flag *flag)
{
	return flag->early ? &flag->stream->flag_seen.early_work : &flag->stream->flag_seen.work;
}

/*
 * Sets when completion is expected. The work of a value begins when the value before it on the stream has
 * ended.
 */
static void expect_completion(struct wr_armed_flag *flag)
{
	weir_stream *stream = flag->stream;
	struct wr_estimate *work;
	bool behind;

	if (!stream)
		return;
	work = work_estimate(flag);
	behind = stream->flag_seen.value < flag->value && stream->flag_seen.at > flag->made;
	flag->wait.asked = flag->signal->armed_at;
	flag->wait.since = behind ? stream->flag_seen.at : flag->made;
	flag->wait.known = flag->made && work->known;
	flag->wait.early = wr_estimate_early(work);
	flag->wait.mean = work->mean;
	flag->wait.late = wr_estimate_late(work);
}

/* Watches the next fence that is not known to be complete. Returns false if there is none. */
static bool watch_next_fence(struct wr_armed_flag *flag, uint32_t first, int64_t pending_at)
{
	const struct wr_signal *signal = flag->signal;

	for (uint32_t i = first; i < signal->count; i++) {
		weir_fence fence = signal->fences[i];
		struct wr_event *event;
		weir_stream *stream;

		if (wr_fence_find(signal->system, fence, &stream) || !stream ||
		    fence.value <= wr_load(&stream->completed))
			continue;
		flag->fence = i;
		flag->stream = stream;
		flag->word = wr_load(&stream->word);
		flag->value = fence.value;
		flag->target = (uint32_t)fence.value;
		event = wr_stream_event(stream, fence.value);
		flag->made = wr_load_acquire(&event->recorded_at); /* before `value` */
		if (wr_load(&event->value) != fence.value)
			flag->made = 0; /* recorded again: for that it must have been seen complete */
		flag->early = wr_stream_is_early(stream, fence.value);
		flag->pending_at = pending_at;
		expect_completion(flag);
		return true;
	}
	return false;
}

/*
 * Updates the estimate of the stream's work, whose end is only known to be between the last poll and now:
 * after a sleep that was too long only an upper bound is known. A value that ended in the same interval as
 * the one before it tells nothing.
 */
static bool work_learn(struct wr_armed_flag *flag, int64_t now)
{
	weir_stream *stream = flag->stream;
	int64_t since;

	if (!stream || flag->value <= stream->flag_seen.value)
		return false;
	expect_completion(flag); /* the value before may have ended just now */
	since = flag->wait.since;
	if (flag->made && flag->pending_at >= since)
		wr_estimate_learn_between(work_estimate(flag), flag->pending_at - since, now - since);
	stream->flag_seen.value = flag->value;
	stream->flag_seen.at = flag->pending_at ? flag->pending_at + (now - flag->pending_at) / 2 : now;
	return true;
}

/*
 * Ends the token if needed and recycles the signal. Returns false if the thread that ended it still uses it.
 */
static bool poller_recycle(struct wr_signal *signal, wr_token token)
{
	struct wr_system *system = signal->system;
	enum wr_token_end end = wr_token_end(token);

	if (end == WR_TOKEN_GONE && wr_load(&signal->ended) != token)
		return false;
	if (end == WR_TOKEN_WAS_PENDING && signal->entity != WR_NO_ENTITY)
		signal->waker->poke(signal->waker, signal->entity, token);
	wr_signal_release(signal); /* it has no signal stream */
	wr_fetch_sub(&system->signals.pending, 1);
	wr_fetch_sub(&system->poller.armed, 1);
	return true;
}

/* --- polling --- */

/* Returns true if the signal was recycled, so that its entry must leave the list. */
static bool poll_one(struct wr_armed_flag *flag, int64_t now, bool *learned)
{
	if (!wr_token_pending(flag->token))
		return poller_recycle(flag->signal, flag->token);
	while (watched_fence_complete(flag)) {
		*learned |= work_learn(flag, now);
		if (!watch_next_fence(flag, flag->fence + 1, 0))
			return poller_recycle(flag->signal, flag->token);
	}
	flag->pending_at = now;
	return false;
}

static bool list_add(struct wr_poller *poller, struct wr_signal *signal)
{
	struct wr_armed_flag *flag;

	if (wr_grow(&poller->list, &poller->room, poller->count + 1, sizeof *poller->list))
		return false;
	flag = &poller->list[poller->count++];
	*flag = (struct wr_armed_flag){.signal = signal, .token = wr_load(&signal->token)};
	if (!watch_next_fence(flag, 0, signal->armed_at))
		flag->fence = (uint32_t)signal->count;
	return true;
}

/* Without memory for the list, signals stay in the inbox. */
static void inbox_take_all(struct wr_poller *poller)
{
	struct wr_signal *signal = wr_load(&poller->inbox) ? wr_exchange(&poller->inbox, NULL) : NULL;

	while (signal) {
		struct wr_signal *next = signal->next;
		wr_token token = wr_load(&signal->token);

		if ((wr_token_pending(token) || !poller_recycle(signal, token)) && !list_add(poller, signal))
			wr_stack_push(&poller->inbox, signal, next);
		signal = next;
	}
}

static void poll_all(struct wr_poller *poller, int64_t now)
{
	bool learned = false;

	inbox_take_all(poller);
	for (size_t i = 0; i < poller->count;)
		if (poll_one(&poller->list[i], now, &learned))
			poller->list[i] = poller->list[--poller->count];
		else
			i++;
	for (size_t i = 0; i < poller->count && learned; i++)
		expect_completion(&poller->list[i]);
}

/*
 * A signal that is armed but not listed is about to be put into the inbox
 * (which changes `version`), or there was no memory to list it.
 */
static int64_t next_poll(struct wr_system *system, int64_t now)
{
	struct wr_poller *poller = &system->poller;
	int64_t margin = wr_load(&poller->margin), next = INT64_MAX;

	if (wr_load(&poller->armed) > poller->count)
		next = now + (wr_load(&poller->inbox) ? RETRY_NOMEM : RETRY_TAKEN);
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
	if (wr_exchange(&poller->polling, true))
		return now + RETRY_TAKEN;
	poll_all(poller, now);
	next = next_poll(system, now);
	wr_exchange(&poller->polling, false);
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

void wr_flags_recycle_all(struct wr_system *system)
{
	struct wr_poller *poller = &system->poller;

	while (wr_exchange(&poller->polling, true))
		wr_thread_yield();
	poll_all(poller, wr_now());
	assert(!poller->count && !wr_load(&poller->armed));
	wr_exchange(&poller->polling, false);
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
