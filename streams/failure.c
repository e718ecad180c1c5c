/*
 * The report of a lost device (E3): the device's error and the suspects. After a fault even completed events
 * return the error, so suspects are all streams with work that was not seen complete before; one is accused
 * only if it is the only one.
 */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "streams/system.h"

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
	uint64_t seen = wr_load(&stream->seen);

	if (wr_load(&stream->recorded) > seen)
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

void wr_failure_describe(struct wr_system *system, const char *what)
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
