/*
 * The report of a failed system (E2, E3), and what the failure does to the run: every signal is ended, so
 * that every waiting entity is poked and sees it. device.c decides that a system failed.
 *
 * The report names the device's error and the suspects. After a fault even completed events return the error,
 * so every stream with work that was not seen complete before is a suspect; one is accused only if it is the
 * only one.
 */
#include "streams/failure.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "streams/device.h"
#include "streams/signal.h"
#include "streams/system.h"

/* --- the report --- */

enum { SUSPECTS = 8 }; /* named in the report */

struct suspect {
	const char *name;
	int64_t at;
};

struct suspect_list {
	struct suspect oldest[SUSPECTS];
	size_t count;
};

/*
 * When the oldest work that was not seen complete was recorded; INT64_MAX if there is only unrecorded work;
 * -1 if there is none.
 */
static int64_t busy_since(weir_stream *stream)
{
	uint64_t seen = wr_load(&stream->completed);

	if (wr_load(&stream->submitted) > seen)
		return wr_load_relaxed(&wr_stream_event(stream, seen + 1)->recorded_at);
	return wr_load(&stream->dirty) ? INT64_MAX : -1;
}

static void suspect_insert(struct suspect_list *suspects, struct suspect suspect)
{
	size_t i = suspects->count < SUSPECTS ? suspects->count : SUSPECTS;

	suspects->count++;
	for (; i > 0 && suspects->oldest[i - 1].at > suspect.at; i--)
		if (i < SUSPECTS)
			suspects->oldest[i] = suspects->oldest[i - 1];
	if (i < SUSPECTS)
		suspects->oldest[i] = suspect;
}

static size_t report_append_suspect(char *text, size_t room, const struct suspect *suspect, int64_t now,
				    bool first)
{
	int64_t age = suspect->at == INT64_MAX ? 0 : now - suspect->at;
	int n = snprintf(text, room, "%s%s (%.1f ms)", first ? "; suspects, oldest first: " : ", ",
			 suspect->name, (double)age / 1e6);

	return n < 0 ? 0 : (size_t)n < room ? (size_t)n : room - 1;
}

static void report_append_suspects(struct wr_system *system, const struct suspect_list *suspects, size_t at)
{
	int64_t now = wr_now();
	char *text = system->failure;
	size_t room = sizeof system->failure;

	if (suspects->count == 1) {
		snprintf(system->accused, sizeof system->accused, "%s", suspects->oldest[0].name);
		snprintf(text + at, room - at, "; the work of '%s' was not complete", system->accused);
		return;
	}
	for (size_t i = 0; i < suspects->count && i < SUSPECTS; i++)
		at += report_append_suspect(text + at, room - at, &suspects->oldest[i], now, i == 0);
	if (suspects->count > SUSPECTS)
		snprintf(text + at, room - at, " and %zu more", suspects->count - SUSPECTS);
}

static void report_write(struct wr_system *system, const char *what)
{
	struct suspect_list suspects = {.count = 0};

	snprintf(system->failure, sizeof system->failure, "%s", what);
	for (uint32_t i = 0; i < wr_load(&system->count); i++) {
		weir_stream *stream = wr_stream_at(system, i);
		struct suspect suspect = {wr_load(&stream->owner), busy_since(stream)};

		if (suspect.at >= 0)
			suspect_insert(&suspects, suspect);
	}
	report_append_suspects(system, &suspects, strlen(system->failure));
}

/* --- failing --- */

/* As its callback, which may still come; it finds the token gone then. */
static void signal_fail(struct wr_signal *signal, void *arg)
{
	wr_token token = wr_load(&signal->token);
	enum wr_token_end end = token ? wr_token_end(token) : WR_TOKEN_GONE;

	(void)arg;
	if (end != WR_TOKEN_GONE)
		signal->sink.fired(&signal->sink, token, end == WR_TOKEN_WAS_CANCELLED);
}

static void signals_fail(struct wr_system *system, struct wr_waker *waker)
{
	wr_signals_each(system, signal_fail, NULL);
	for (int device = 0; device < system->devices && waker; device++)
		wr_refused_poke(system, waker, device, UINT32_MAX);
}

void wr_failure_announce(struct wr_system *system, const char *what)
{
	struct wr_waker *waker;

	report_write(system, what);
	wr_store(&system->failed, true);
	waker = wr_waker_enter(system);
	signals_fail(system, waker);
	if (waker)
		waker->kick(waker);
	wr_waker_leave(system);
}

/* --- queries --- */

const char *wr_system_failure(struct wr_system *system)
{
	return wr_system_failed(system) ? system->failure : "";
}

const char *wr_system_accused(struct wr_system *system)
{
	return wr_system_failed(system) && *system->accused ? system->accused : NULL;
}

/*
 * After a fault a query of any event returns the device's error, even if the event
 * is complete. One event of each stream is queried, since they may differ in device.
 */
bool wr_system_check_device(struct wr_system *system)
{
	for (uint32_t i = 0; i < wr_load(&system->count) && !wr_system_failed(system); i++) {
		const struct wr_event_ring *ring = wr_load_acquire(&wr_stream_at(system, i)->ring);

		wr_device_query(system, ring->events[0].native);
	}
	return !wr_system_failed(system);
}
