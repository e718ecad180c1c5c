/*
 * Promises: fences that the program completes (T17; model m16_promise).
 *
 * A promise is a place that stands for one fence at a time: {mark, number of the place, generation}. It is
 * created open and completed once, by any thread; then the place may be given out again under the next
 * generation, so an old fence is complete for ever. It has no stream and no device: neither waits for it. All
 * that waits are entities (by a token each, as for a signal) and memory that was dropped.
 *
 * One that failed keeps its place, and its text, while a message names it or the run that it has ended is the
 * latest; then it is kept among the last WR_PROMISES_KEPT of its kind, for the program, which may still emit
 * it. Then it is forgotten: `lost` of the place is its generation, and handles up to that are stale. They are
 * refused, since nothing tells any more which of them failed. Messages that carry an older generation had it
 * completed: one that failed was not forgotten while a message named it.
 *
 * Completing is one critical section, which marks it and takes its list of waits; then each of these entities
 * is poked once. Arming is one, too: it adds to that list unless it finds the promise completed. So no
 * wake-up is lost, and nothing looks at promises from time to time. An entity that waits for several arms the
 * newest, and watches the others: their ends do not wake it, but a failure is seen at once. The thread that
 * completes is counted as a user of the waker from before it marks until its last touch of the system: detach
 * waits for it before a run's record goes, and destroy before the system does.
 *
 * One that is completed with a failure stays open for all that waits for it, so that no entity takes its
 * message, and the loop ends the run.
 */
#include "streams/promise.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/status.h"
#include "streams/signal.h"
#include "streams/system.h"

#define SWEEP_AT 16 /* from so many waits on cancelled ones are looked for */

/* --- lookup --- */

/* Returns the place of a fence of this system; NULL: of none. It may be of a later generation by now. */
static struct wr_promise *promise_of(struct wr_system *system, weir_fence fence)
{
	uint64_t index = fence.stream & UINT32_MAX;
	struct wr_promise *promise;

	if (fence.stream >> 48 != system->serial || !wr_fence_is_promise(fence) ||
	    index >= wr_load(&system->promises.count))
		return NULL;
	promise = &wr_load(&system->promises.pages[index / WR_PROMISES_PAGE])->at[index % WR_PROMISES_PAGE];
	return fence.value && fence.value <= wr_load(&promise->issued) ? promise : NULL;
}

static struct wr_promise *promise_at(struct wr_promises *promises, uint32_t i)
{
	return &wr_load(&promises->pages[i / WR_PROMISES_PAGE])->at[i % WR_PROMISES_PAGE];
}

static weir_status refuse_unknown(weir_fence fence)
{
	return wr_fail(WEIR_E_INVALID, "fence {%#llx, %llu} was never created in this graph",
		       (unsigned long long)fence.stream, (unsigned long long)fence.value);
}

static weir_status refuse_stale(weir_fence fence)
{
	return wr_fail(
		WEIR_E_INVALID,
		"fence {%#llx, %llu} is stale: a fence of its place has failed, and more than %d others "
		"since",
		(unsigned long long)fence.stream, (unsigned long long)fence.value, WR_PROMISES_KEPT);
}

/* Neither open nor failed. `lost` is written before `completed`. */
static bool is_past(struct wr_promise *promise, weir_fence fence)
{
	return fence.value <= wr_load(&promise->completed);
}

static bool is_stale(struct wr_promise *promise, weir_fence fence)
{
	return fence.value <= wr_load(&promise->lost);
}

/* Sets last_error to the failure of the place, as it is now; returns its status. */
static weir_status promise_failure(struct wr_promises *promises, const struct wr_promise *promise)
{
	char text[WR_ERROR_BYTES];
	const char *owner;
	weir_status status;

	wr_spin_lock(&promises->lock);
	status = promise->status;
	owner = promise->owner;
	snprintf(text, sizeof text, "%s%s", promise->text ? "" : "a fence was completed with the failure: ",
		 promise->text ? promise->text : weir_status_text(status));
	wr_spin_unlock(&promises->lock);
	return owner ? wr_fail_in(status, owner, "%s", text) : wr_fail(status, "%s", text);
}

weir_status wr_promise_check(struct wr_system *system, weir_fence fence)
{
	struct wr_promise *promise = promise_of(system, fence);

	if (!promise)
		return refuse_unknown(fence);
	return is_stale(promise, fence) ? refuse_stale(fence) : WEIR_OK;
}

bool wr_promise_over(struct wr_system *system, weir_fence fence)
{
	struct wr_promise *promise = promise_of(system, fence);

	return !promise || is_past(promise, fence) || wr_load(&promise->failed);
}

weir_status wr_promise_query(struct wr_system *system, weir_fence fence)
{
	struct wr_promise *promise = promise_of(system, fence);
	bool failed;

	if (!promise)
		return refuse_unknown(fence);
	failed = wr_load(&promise->failed); /* perhaps of a later generation: then this one is past */
	if (!is_past(promise, fence) && !failed)
		return WEIR_E_BUSY;
	if (!is_past(promise, fence))
		(void)promise_failure(&system->promises, promise);
	if (!is_past(promise, fence))
		return WEIR_E_FAILED;
	return is_stale(promise, fence) ? refuse_stale(fence) : WEIR_OK;
}

weir_status wr_promise_refuse_device(struct wr_system *system, weir_fence fence)
{
	weir_status status = wr_promise_query(system, fence);

	if (status != WEIR_E_BUSY)
		return status;
	return wr_fail(WEIR_E_UNSUPPORTED, "a stream cannot wait for a fence that the program completes: let "
					   "a gate or a condition 'fence' wait");
}

const char *wr_promise_owner(struct wr_system *system, weir_fence fence, int64_t *age_ns)
{
	struct wr_promise *promise = promise_of(system, fence);
	int64_t now = wr_device_now(system);
	const char *owner = NULL;

	if (!promise)
		return "?";
	wr_spin_lock(&system->promises.lock);
	if (age_ns && wr_load(&promise->issued) == fence.value)
		*age_ns = now - promise->created_at;
	owner = promise->owner;
	wr_spin_unlock(&system->promises.lock);
	return owner ? owner : "the program";
}

bool wr_system_has_promises(const struct wr_system *system)
{
	return wr_load(&((struct wr_system *)system)->promises.count) != 0;
}

uint64_t wr_system_open_promises(const struct wr_system *system)
{
	return wr_load(&((struct wr_system *)system)->promises.open);
}

/* --- creating --- */

/* Of two threads that do so at once, each adds one. */
static weir_status add_page(struct wr_promises *promises)
{
	struct wr_promises_page *page = wr_alloc(1, sizeof *page);
	uint32_t count;

	if (!page)
		return WEIR_E_NOMEM;
	wr_spin_lock(&promises->lock);
	count = wr_load(&promises->count);
	if (count < WR_PROMISES_PAGES * WR_PROMISES_PAGE) {
		for (uint32_t i = 0; i < WR_PROMISES_PAGE; i++) {
			page->at[i].index = count + i;
			page->at[i].next = promises->free;
			promises->free = &page->at[i];
		}
		wr_store(&promises->pages[count / WR_PROMISES_PAGE], page);
		wr_store(&promises->count, count + WR_PROMISES_PAGE);
		page = NULL;
	}
	wr_spin_unlock(&promises->lock);
	wr_free(page);
	return page ? wr_fail(WEIR_E_NOMEM,
			      "more than %d fences are open, or failed and are carried by messages",
			      WR_PROMISES_PAGES * WR_PROMISES_PAGE)
		    : WEIR_OK;
}

static bool promise_give_out(struct wr_system *system, weir_fence *out)
{
	struct wr_promises *promises = &system->promises;
	int64_t now = wr_device_now(system);
	struct wr_promise *promise;

	wr_spin_lock(&promises->lock);
	promise = promises->free;
	if (promise) {
		promises->free = promise->next;
		promise->carried = promise->live = promise->counts = promise->kick = false;
		promise->entity = WR_NO_ENTITY;
		promise->owner = NULL;
		promise->named = 0;
		promise->created_at = now;
		promise->order = ++promises->issued;
		promise->sweep_at = SWEEP_AT;
		wr_fetch_add(&promises->open, 1);
		wr_store(&promise->issued, wr_load(&promise->issued) + 1);
		*out = (weir_fence){system->serial << 48 | WR_PROMISE_MARK | promise->index,
				    wr_load(&promise->issued)};
	}
	wr_spin_unlock(&promises->lock);
	return promise;
}

weir_status wr_promise_create(struct wr_system *system, weir_fence *out)
{
	weir_status status = WEIR_OK;

	while (!status && !promise_give_out(system, out))
		status = add_page(&system->promises);
	return status;
}

/* --- what failed --- */

/* Its place can be given out again. */
static void promise_release_locked(struct wr_promises *promises, struct wr_promise *promise)
{
	wr_store(&promise->completed, wr_load(&promise->issued));
	promise->next = promises->free;
	promises->free = promise;
}

/*
 * Keeps a failed one that nothing names, and forgets the oldest if there are too many. One that a message
 * names by now is taken off the list: it comes back when that is freed. Returns a text to free, or NULL.
 */
static char *promise_keep_locked(struct wr_promises *promises, struct wr_promise *promise)
{
	char *text = NULL;

	if (!wr_load(&promise->failed) || promise->named || promise->kept ||
	    wr_load(&promises->failed) == promise)
		return NULL;
	promise->kept = true;
	promise->next = NULL;
	if (promises->kept_last)
		promises->kept_last->next = promise;
	else
		promises->kept_first = promise;
	promises->kept_last = promise;
	promises->kept_count++;
	while (promises->kept_count > WR_PROMISES_KEPT && !text) {
		struct wr_promise *oldest = promises->kept_first;

		promises->kept_first = oldest->next;
		promises->kept_count--;
		oldest->kept = false;
		if (oldest->named)
			continue;
		text = oldest->text;
		oldest->text = NULL;
		wr_store(&oldest->lost, wr_load(&oldest->issued));
		promise_release_locked(promises, oldest);
		wr_store(&oldest->failed, false);
	}
	return text;
}

weir_status wr_promise_name(struct wr_system *system, weir_fence fence, bool *named)
{
	struct wr_promise *promise = promise_of(system, fence);

	*named = false;
	if (!promise)
		return refuse_unknown(fence);
	wr_spin_lock(&system->promises.lock);
	*named = !is_past(promise, fence);
	promise->named += *named;
	wr_spin_unlock(&system->promises.lock);
	return !*named && is_stale(promise, fence) ? refuse_stale(fence) : WEIR_OK;
}

void wr_promise_unname(struct wr_system *system, weir_fence fence)
{
	struct wr_promise *promise = promise_of(system, fence);
	char *text = NULL;

	if (!promise || is_past(promise, fence))
		return;
	wr_spin_lock(&system->promises.lock);
	if (!is_past(promise, fence) && !--promise->named)
		text = promise_keep_locked(&system->promises, promise);
	wr_spin_unlock(&system->promises.lock);
	wr_free(text);
}

/* --- carrying --- */

weir_status wr_promise_carry(struct wr_system *system, weir_fence fence, uint32_t entity, const char *owner,
			     bool took_message)
{
	struct wr_promises *promises = &system->promises;
	struct wr_promise *promise = promise_of(system, fence);
	struct wr_waker *waker = wr_load(&system->waker);
	bool failed;

	if (!promise)
		return refuse_unknown(fence);
	wr_spin_lock(&promises->lock);
	failed = wr_load(&promise->failed) && !is_past(promise, fence);
	if (!is_past(promise, fence)) {
		if (!promise->carried || promise->run != promises->run) {
			promise->entity = entity;
			promise->owner = owner;
			promise->run = promises->run;
		}
		promise->carried = true;
		promise->counts |= took_message || !wr_load_relaxed(&system->draining);
		if (!failed && !promise->live && waker) {
			promise->live = true;
			waker->hold(waker);
		}
	}
	wr_spin_unlock(&promises->lock);
	if (failed)
		return promise_failure(promises, promise);
	return is_stale(promise, fence) ? refuse_stale(fence) : WEIR_OK;
}

/* --- arming --- */

static struct wr_promise_wait *wait_take(struct wr_promises *promises)
{
	struct wr_promise_wait *wait;

	wr_spin_lock(&promises->lock);
	wait = promises->spare;
	if (wait)
		promises->spare = wait->next;
	wr_spin_unlock(&promises->lock);
	return wait ? wait : wr_alloc(1, sizeof *wait);
}

/*
 * Ends the tokens of a list and keeps its records. Each entity whose token was not cancelled is poked, if
 * there is a waker.
 */
static void waits_end(struct wr_promises *promises, struct wr_promise_wait *list, struct wr_waker *waker)
{
	struct wr_promise_wait *last = NULL;

	for (struct wr_promise_wait *wait = list; wait; wait = wait->next) {
		last = wait;
		if (wait->watches)
			continue;
		if (wr_token_end(wait->token) == WR_TOKEN_WAS_PENDING && waker)
			waker->poke(waker, wait->entity, 0);
		wr_token_close(wait->token);
	}
	if (!last)
		return;
	wr_spin_lock(&promises->lock);
	last->next = promises->spare;
	promises->spare = list;
	wr_spin_unlock(&promises->lock);
}

/*
 * Takes the cancelled waits off the list, so that an entity that arms again and again does not fill it. Adds
 * them to `swept`.
 */
static struct wr_promise_wait *waits_sweep_locked(struct wr_promise *promise, struct wr_promise_wait *swept)
{
	struct wr_promise_wait **at = &promise->waits;

	if (promise->wait_count < promise->sweep_at)
		return swept;
	while (*at) {
		struct wr_promise_wait *wait = *at;

		if (wr_token_pending(wait->token)) {
			at = &wait->next;
			continue;
		}
		*at = wait->next;
		wait->next = swept;
		swept = wait;
		promise->wait_count--;
	}
	promise->sweep_at = 2 * promise->wait_count > SWEEP_AT ? 2 * promise->wait_count : SWEEP_AT;
	return swept;
}

/* The first failure that concerns a run ends it; the loop does that. */
static void end_run_locked(struct wr_promises *promises, struct wr_promise *promise, uint32_t waits)
{
	bool emitted = promise->carried && promise->run == promises->run;

	if (wr_load(&promises->failed) || (!emitted && waits == WR_NO_ENTITY))
		return;
	promises->failed_entity = emitted ? promise->entity : waits;
	wr_store(&promises->failed, promise);
}

/* Its place if it is a promise that is open, or that failed; else NULL. */
static struct wr_promise *unfinished(struct wr_system *system, weir_fence fence)
{
	struct wr_promise *promise = wr_fence_is_promise(fence) ? promise_of(system, fence) : NULL;

	return promise && !is_past(promise, fence) ? promise : NULL;
}

/*
 * Of those fences that are open, the one that was created last: mostly the others end before it. Or one that
 * failed, if there is one.
 */
static struct wr_promise *newest_open_locked(struct wr_system *system, const weir_fence *fences, size_t n)
{
	struct wr_promise *newest = NULL;

	for (size_t i = 0; i < n; i++) {
		struct wr_promise *promise = unfinished(system, fences[i]);

		if (promise && wr_load(&promise->failed))
			return promise;
		if (promise && (!newest || promise->order > newest->order))
			newest = promise;
	}
	return newest;
}

static void wait_add_locked(struct wr_promise *promise, struct wr_promise_wait *wait)
{
	wait->next = promise->waits;
	promise->waits = wait;
	promise->wait_count++;
}

/*
 * Adds one of the records to each open promise: the token's own to the newest. What is left of the list is to
 * be ended. If one has failed, the run ends, and the token with it.
 */
static struct wr_promise *arm_locked(struct wr_system *system, const weir_fence *fences, size_t n,
				     struct wr_promise_wait **records, struct wr_promise_wait **swept)
{
	struct wr_promises *promises = &system->promises;
	struct wr_promise *newest = newest_open_locked(system, fences, n), *promise;
	struct wr_promise_wait *own = *records;

	if (!newest)
		return NULL;
	*records = own->next;
	if (wr_load(&newest->failed)) {
		end_run_locked(promises, newest, own->entity);
		own->next = promises->doomed;
		promises->doomed = own;
		return newest;
	}
	for (size_t i = 0; i < n && *records; i++) {
		struct wr_promise_wait *watch = *records;

		promise = unfinished(system, fences[i]);
		if (!promise || promise == newest)
			continue;
		*swept = waits_sweep_locked(promise, *swept);
		*records = watch->next;
		wait_add_locked(promise, watch);
	}
	*swept = waits_sweep_locked(newest, *swept);
	wait_add_locked(newest, own);
	return newest;
}

/* One for the token, and a watch for each but one of the fences that are unfinished. */
static weir_status records_take(struct wr_system *system, uint32_t entity, const weir_fence *fences, size_t n,
				struct wr_promise_wait **out)
{
	struct wr_promise_wait *list = NULL, *own = wait_take(&system->promises);
	weir_status status = own ? wr_token_open(&own->token) : WEIR_E_NOMEM;
	bool first = true;

	if (status) {
		wr_free(own);
		return status;
	}
	own->watches = false;
	own->entity = entity;
	for (size_t i = 0; i < n && !status; i++) {
		struct wr_promise_wait *watch;

		if (!unfinished(system, fences[i]))
			continue;
		watch = first ? NULL : wait_take(&system->promises);
		if (watch) {
			*watch = (struct wr_promise_wait){list, own->token, entity, true};
			list = watch;
		}
		status = first || watch ? WEIR_OK : WEIR_E_NOMEM;
		first = false;
	}
	own->next = list;
	if (status)
		waits_end(&system->promises, own, NULL);
	else
		*out = own;
	return status;
}

weir_status wr_promise_arm(struct wr_system *system, uint32_t entity, const weir_fence *fences, size_t n,
			   wr_token *out)
{
	struct wr_promises *promises = &system->promises;
	struct wr_promise_wait *records = NULL, *swept = NULL;
	struct wr_promise *promise;
	weir_status status = WEIR_E_UNSUPPORTED, one;

	for (size_t i = 0; i < n && status == WEIR_E_UNSUPPORTED; i++) {
		one = wr_fence_is_promise(fences[i]) ? wr_promise_query(system, fences[i]) : WEIR_OK;
		if (one == WEIR_E_INVALID)
			return one;
		status = one ? WEIR_OK : status;
	}
	if (status)
		return status;
	status = records_take(system, entity, fences, n, &records);
	if (status)
		return status;
	*out = records->token;
	wr_spin_lock(&promises->lock);
	promise = arm_locked(system, fences, n, &records, &swept);
	wr_spin_unlock(&promises->lock);
	waits_end(promises, swept, NULL);
	/* All have ended since the review asked: the entity, which runs now, is reviewed once more. */
	waits_end(promises, records, wr_load(&system->waker));
	if (promise && wr_load(&promise->failed))
		wr_load(&system->waker)->kick(wr_load(&system->waker)); /* a worker calls: a run is on */
	return WEIR_OK;
}

/* --- completing --- */

/* What a completion takes off a promise. */
struct taken {
	struct wr_promise_wait *waits;
	struct wr_waker *waker;
	bool live, kick;
	char *text; /* of one that is forgotten for it */
};

static void promise_take_locked(struct wr_promise *promise, struct taken *taken)
{
	taken->waits = promise->waits;
	taken->live = promise->live;
	taken->kick = promise->kick;
	promise->waits = NULL;
	promise->wait_count = 0;
	promise->live = promise->kick = false;
}

/* Ends the run if a tick of it emitted the promise, or if some entity waits for it, or watches it. */
static void promise_fail_locked(struct wr_promises *promises, struct wr_promise *promise, weir_status status,
				char *text)
{
	const struct wr_promise_wait *wait = promise->waits;

	promise->status = status;
	promise->text = text;
	wr_store(&promise->failed, true);
	while (wait && !wr_token_pending(wait->token)) /* cancelled */
		wait = wait->next;
	end_run_locked(promises, promise, wait ? wait->entity : WR_NO_ENTITY);
}

/* Returns WEIR_OK; WEIR_E_INVALID: there is no such fence; WEIR_E_BUSY: it was completed before. No text. */
static weir_status complete(struct wr_system *system, weir_fence fence, weir_status status, char *text,
			    struct taken *taken)
{
	struct wr_promises *promises = &system->promises;
	struct wr_promise *promise = promise_of(system, fence);
	weir_status refused = promise ? WEIR_OK : WEIR_E_INVALID;

	if (refused)
		return refused;
	wr_spin_lock(&promises->lock);
	if (fence.value <= wr_load(&promise->completed) || wr_load(&promise->failed)) {
		refused = WEIR_E_BUSY;
	} else {
		wr_fetch_sub(&promises->open, 1);
		wr_fetch_add(&promises->ended, 1);
		if (promise->counts)
			wr_fetch_add(&promises->counts, 1);
		if (status)
			promise_fail_locked(promises, promise, status, text);
		else
			promise_release_locked(promises, promise);
		promise_take_locked(promise, taken);
		taken->text = promise_keep_locked(promises, promise);
		/* Here, not before: a run that began meanwhile may have armed what is taken. */
		taken->waker = wr_load(&system->waker);
	}
	wr_spin_unlock(&promises->lock);
	return refused;
}

weir_status wr_promise_complete(struct wr_system *system, weir_fence fence, weir_status status,
				const char *text)
{
	char *copy = status && text && *text ? wr_strdup(text) : NULL;
	struct taken taken = {0};
	weir_status refused;

	(void)wr_waker_enter(system); /* whichever is attached by then stays until the last touch */
	refused = complete(system, fence, status, copy, &taken);
	if (refused)
		wr_free(copy);
	wr_free(taken.text);
	waits_end(&system->promises, taken.waits, status ? NULL : taken.waker);
	if (taken.waker && (taken.kick || status))
		taken.waker->kick(taken.waker);
	if (taken.waker && taken.live)
		taken.waker->drop(taken.waker);
	wr_waker_leave(system); /* the last touch */
	if (refused == WEIR_E_INVALID)
		return refuse_unknown(fence);
	if (refused)
		return wr_fail(WEIR_E_INVALID, "the fence was completed before: it is completed once");
	return WEIR_OK;
}

/* --- a run --- */

weir_status wr_system_promise_failure(struct wr_system *system, uint32_t *entity)
{
	const struct wr_promise *promise = wr_load(&system->promises.failed);

	if (!promise)
		return WEIR_OK;
	*entity = system->promises.failed_entity;
	return promise_failure(&system->promises, promise);
}

void wr_promises_begin_run(struct wr_system *system)
{
	struct wr_promises *promises = &system->promises;
	struct wr_promise *failed;
	char *text;

	wr_spin_lock(&promises->lock);
	promises->run++;
	failed = wr_load(&promises->failed);
	wr_store(&promises->failed, NULL);
	text = failed ? promise_keep_locked(promises, failed) : NULL;
	wr_spin_unlock(&promises->lock);
	wr_free(text);
}

void wr_promises_forget_waits(struct wr_system *system)
{
	struct wr_promises *promises = &system->promises;
	struct wr_promise_wait *doomed;

	wr_spin_lock(&promises->lock);
	doomed = promises->doomed;
	promises->doomed = NULL;
	wr_spin_unlock(&promises->lock);
	waits_end(promises, doomed, NULL);
	for (uint32_t i = 0; i < wr_load(&promises->count); i++) {
		struct wr_promise *promise = promise_at(promises, i);
		struct wr_promise_wait *waits;

		wr_spin_lock(&promises->lock);
		waits = promise->waits;
		promise->waits = NULL;
		promise->wait_count = 0;
		wr_spin_unlock(&promises->lock);
		waits_end(promises, waits, NULL);
	}
}

void wr_promises_drop_refs(struct wr_system *system, struct wr_waker *waker)
{
	struct wr_promises *promises = &system->promises;

	for (uint32_t i = 0; i < wr_load(&promises->count); i++) {
		struct wr_promise *promise = promise_at(promises, i);
		bool live;

		wr_spin_lock(&promises->lock);
		live = promise->live;
		promise->live = false;
		wr_spin_unlock(&promises->lock);
		if (live)
			waker->drop(waker);
	}
}

void wr_promises_drain(struct wr_system *system)
{
	system->promises.counts_seen = wr_load(&system->promises.counts);
}

bool wr_promises_progressed(struct wr_system *system)
{
	uint64_t before = system->promises.counts_seen;

	system->promises.counts_seen = wr_load(&system->promises.counts);
	return system->promises.counts_seen != before;
}

size_t wr_system_promises_of_run(struct wr_system *system, const char **owner, int64_t *age_ns)
{
	struct wr_promises *promises = &system->promises;
	int64_t now = wr_device_now(system);
	size_t open = 0;

	*age_ns = 0;
	wr_spin_lock(&promises->lock);
	for (uint32_t i = 0; i < wr_load(&promises->count); i++) {
		const struct wr_promise *promise = promise_at(promises, i);

		if (wr_load(&promise->issued) == wr_load(&promise->completed) || wr_load(&promise->failed) ||
		    !promise->carried || promise->run != promises->run)
			continue;
		if (!open++ || now - promise->created_at > *age_ns) {
			*owner = promise->owner;
			*age_ns = now - promise->created_at;
		}
	}
	wr_spin_unlock(&promises->lock);
	return open;
}

/* --- memory that waits for promises --- */

bool wr_promise_kick_at(struct wr_system *system, weir_fence fence)
{
	struct wr_promise *promise = promise_of(system, fence);
	bool open = false;

	wr_spin_lock(&system->promises.lock);
	open = promise && fence.value > wr_load(&promise->completed) && !wr_load(&promise->failed);
	if (open)
		promise->kick = true;
	wr_spin_unlock(&system->promises.lock);
	return open;
}

void wr_promises_kick_all(struct wr_system *system)
{
	struct wr_promises *promises = &system->promises;

	wr_spin_lock(&promises->lock);
	for (uint32_t i = 0; i < wr_load(&promises->count); i++) {
		struct wr_promise *promise = promise_at(promises, i);

		promise->kick = wr_load(&promise->issued) > wr_load(&promise->completed);
	}
	wr_spin_unlock(&promises->lock);
}

/* --- the end --- */

void wr_promises_finish(struct wr_system *system)
{
	struct wr_promises *promises = &system->promises;

	for (uint32_t i = 0; i < wr_load(&promises->count); i++)
		wr_free(promise_at(promises, i)->text);
	for (uint32_t i = 0; i < WR_PROMISES_PAGES; i++)
		wr_free(wr_load(&promises->pages[i]));
	while (promises->spare) {
		struct wr_promise_wait *next = promises->spare->next;

		wr_free(promises->spare);
		promises->spare = next;
	}
}
