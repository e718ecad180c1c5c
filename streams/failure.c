/*
 * The failure of a system (E2, E3): a device is lost, for good. Whoever meets it first writes the report,
 * then says so, then ends all signals, so that each entity that waits is poked and finds it out.
 *
 * The report: the device's error and the suspects. After a fault even completed events return the error, so
 * suspects are all streams with work that was not seen complete before; one is accused only if it is the only
 * one.
 *
 * Three words, each of which only grows: `failing` is won by one thread, which alone writes the report;
 * `failed` is set after that, seq_cst, so that who arms a token and reads it afterwards either sees it or is
 * seen by the one who ends all tokens; who sees it, by an acquiring load at least, may read the report, which
 * is never changed again.
 */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/status.h"
#include "streams/signal.h"
#include "streams/system.h"

/* --- the report --- */

enum { SUSPECTS = 8 }; /* named in the report */

struct suspect {
	const char *name;
	int64_t at;
};

struct line_up {
	struct suspect oldest[SUSPECTS];
	size_t count;
};

/*
 * Since when it has had work that was not seen complete; INT64_MAX: enqueued and not recorded yet; -1: it has
 * none.
 */
static int64_t busy_since(weir_stream *stream)
{
	uint64_t seen = wr_load(&stream->completed);

	if (wr_load(&stream->submitted) > seen)
		return wr_load_relaxed(&wr_stream_point(stream, seen + 1)->at);
	return wr_load(&stream->dirty) ? INT64_MAX : -1;
}

static void insert(struct line_up *line_up, struct suspect suspect)
{
	size_t i = line_up->count < SUSPECTS ? line_up->count : SUSPECTS;

	line_up->count++;
	for (; i > 0 && line_up->oldest[i - 1].at > suspect.at; i--)
		if (i < SUSPECTS)
			line_up->oldest[i] = line_up->oldest[i - 1];
	if (i < SUSPECTS)
		line_up->oldest[i] = suspect;
}

static size_t append_suspect(char *text, size_t room, const struct suspect *suspect, int64_t now, bool first)
{
	int64_t age = suspect->at == INT64_MAX ? 0 : now - suspect->at;
	int n = snprintf(text, room, "%s%s (%.1f ms)", first ? "; suspects, oldest first: " : ", ",
			 suspect->name, (double)age / 1e6);

	return n < 0 ? 0 : (size_t)n < room ? (size_t)n : room - 1;
}

static void write_suspects(struct wr_system *system, const struct line_up *line_up, size_t at)
{
	int64_t now = wr_now();
	char *text = system->failure;
	size_t room = sizeof system->failure;

	if (line_up->count == 1) {
		snprintf(system->accused, sizeof system->accused, "%s", line_up->oldest[0].name);
		snprintf(text + at, room - at, "; the work of '%s' was not complete", system->accused);
		return;
	}
	for (size_t i = 0; i < line_up->count && i < SUSPECTS; i++)
		at += append_suspect(text + at, room - at, &line_up->oldest[i], now, i == 0);
	if (line_up->count > SUSPECTS)
		snprintf(text + at, room - at, " and %zu more", line_up->count - SUSPECTS);
}

static void describe(struct wr_system *system, const char *what)
{
	struct line_up line_up = {.count = 0};

	snprintf(system->failure, sizeof system->failure, "%s", what);
	for (uint32_t i = 0; i < wr_load(&system->count); i++) {
		weir_stream *stream = wr_stream_at(system, i);
		struct suspect suspect = {wr_load(&stream->owner), busy_since(stream)};

		if (suspect.at >= 0)
			insert(&line_up, suspect);
	}
	write_suspects(system, &line_up, strlen(system->failure));
}

/* --- failing --- */

/*
 * Whoever comes second waits for the few stores of the first: returning before `failed` is set, he would go
 * on with what is not complete, or report the failure as his own.
 */
void wr_system_fail(struct wr_system *system, const char *what)
{
	struct wr_waker *waker;

	if (wr_exchange(&system->failing, true)) {
		while (!wr_load(&system->failed))
			wr_thread_yield();
		return;
	}
	describe(system, what);
	wr_store(&system->failed, true);
	waker = wr_system_enter(system);
	wr_signals_fail(system, waker);
	if (waker)
		waker->kick(waker);
	wr_system_leave(system);
}

weir_status wr_system_failure_status(struct wr_system *system)
{
	return wr_fail(WEIR_E_DEVICE, "%s", system->failure);
}

weir_status wr_system_check(struct wr_system *system, weir_status status)
{
	if (status == WEIR_E_DEVICE)
		wr_system_fail(system, weir_last_error());
	return status;
}

/* --- hearing of it --- */

/* Acquires the report: whoever wants ticked of the failure so may read it. */
bool wr_system_failed(const struct wr_system *system)
{
	return wr_load_acquire(&((struct wr_system *)system)->failed);
}

bool wr_system_wait_failed(struct wr_system *system)
{
	if (!wr_load(&system->failing))
		return false;
	while (!wr_load(&system->failed))
		wr_thread_yield();
	return true;
}

const char *wr_system_failure(struct wr_system *system)
{
	return wr_system_failed(system) ? system->failure : "";
}

const char *wr_system_accused(struct wr_system *system)
{
	return wr_system_failed(system) && *system->accused ? system->accused : NULL;
}

bool wr_system_lost(struct wr_system *system)
{
	return wr_system_failed(system) && system->backend->quiet(system->native);
}
