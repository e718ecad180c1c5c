#include "trace/chrome.h"

#include <errno.h>
#include <string.h>

#include "base/output.h"

enum { PIECE = 64 << 10 };

static void write_piece(struct wr_chrome *chrome)
{
	if (!chrome->error && !wr_output_write(chrome->fd, chrome->text.text, chrome->text.length))
		chrome->error = errno;
	chrome->text.length = 0;
}

static void put(struct wr_chrome *chrome, const char *literal)
{
	wr_text_bytes(&chrome->text, literal, strlen(literal));
}

/* At least `digits` digits. */
static void put_number(struct wr_chrome *chrome, uint64_t number, unsigned base, size_t digits)
{
	char reversed[24], text[24];
	size_t length = 0;

	for (; number || length < digits; number /= base)
		reversed[length++] = "0123456789abcdef"[number % base];
	for (size_t i = 0; i < length; i++)
		text[i] = reversed[length - 1 - i];
	wr_text_bytes(&chrome->text, text, length);
}

static void put_key(struct wr_chrome *chrome, const char *key)
{
	put(chrome, chrome->follows ? ",\"" : "\"");
	put(chrome, key);
	put(chrome, "\":");
	chrome->follows = true;
}

static void open_object(struct wr_chrome *chrome)
{
	put(chrome, "{");
	chrome->depth++;
	chrome->follows = false;
}

static void close_object(struct wr_chrome *chrome)
{
	put(chrome, "}");
	chrome->depth--;
	chrome->follows = true;
}

void wr_chrome_begin(struct wr_chrome *chrome, int fd, int64_t origin)
{
	*chrome = (struct wr_chrome){.fd = fd, .origin = origin};
	open_object(chrome);
	wr_chrome_text(chrome, "displayTimeUnit", "ns");
	put_key(chrome, "otherData");
	open_object(chrome);
}

void wr_chrome_events(struct wr_chrome *chrome)
{
	close_object(chrome);
	put_key(chrome, "traceEvents");
	put(chrome, "[");
	chrome->follows = false;
}

weir_status wr_chrome_finish(struct wr_chrome *chrome)
{
	weir_status status;

	put(chrome, "\n]}\n");
	status = chrome->text.status;
	if (!status) {
		write_piece(chrome);
		status = chrome->error ? WEIR_E_IO : WEIR_OK;
	}
	wr_text_finish(&chrome->text);
	return status;
}

void wr_chrome_event(struct wr_chrome *chrome, char phase, struct wr_track track, int64_t at,
		     const char *name)
{
	char phase_text[] = {phase, '\0'};

	put(chrome, chrome->follows ? ",\n" : "\n");
	open_object(chrome);
	wr_chrome_text(chrome, "ph", phase_text);
	wr_chrome_count(chrome, "pid", track.process);
	wr_chrome_count(chrome, "tid", track.thread);
	if (phase != 'M')
		wr_chrome_time(chrome, "ts", at - chrome->origin);
	if (name)
		wr_chrome_text(chrome, "name", name);
}

void wr_chrome_args(struct wr_chrome *chrome)
{
	put_key(chrome, "args");
	open_object(chrome);
}

void wr_chrome_text(struct wr_chrome *chrome, const char *key, const char *text)
{
	put_key(chrome, key);
	wr_text_string(&chrome->text, text);
}

void wr_chrome_count(struct wr_chrome *chrome, const char *key, uint64_t count)
{
	put_key(chrome, key);
	put_number(chrome, count, 10, 1);
}

void wr_chrome_hex(struct wr_chrome *chrome, const char *key, uint64_t value)
{
	put_key(chrome, key);
	put(chrome, "\"0x");
	put_number(chrome, value, 16, 1);
	put(chrome, "\"");
}

void wr_chrome_time(struct wr_chrome *chrome, const char *key, int64_t ns)
{
	uint64_t time = ns < 0 ? 0 : (uint64_t)ns;

	put_key(chrome, key);
	put_number(chrome, time / 1000, 10, 1);
	put(chrome, ".");
	put_number(chrome, time % 1000, 10, 3);
}

void wr_chrome_end(struct wr_chrome *chrome)
{
	while (chrome->depth > 1)
		close_object(chrome);
	if (chrome->text.length >= PIECE)
		write_piece(chrome);
}

static void add_metadata(struct wr_chrome *chrome, const char *kind, struct wr_track track, const char *name,
			 uint64_t place)
{
	wr_chrome_event(chrome, 'M', track, 0, kind);
	wr_chrome_args(chrome);
	if (name)
		wr_chrome_text(chrome, "name", name);
	else
		wr_chrome_count(chrome, "sort_index", place);
	wr_chrome_end(chrome);
}

void wr_chrome_name_track(struct wr_chrome *chrome, struct wr_track track, const char *name, uint64_t place)
{
	add_metadata(chrome, "thread_name", track, name, 0);
	add_metadata(chrome, "thread_sort_index", track, NULL, place);
}

void wr_chrome_name_group(struct wr_chrome *chrome, unsigned process, const char *name)
{
	struct wr_track track = {process, 0};

	add_metadata(chrome, "process_name", track, name, 0);
	add_metadata(chrome, "process_sort_index", track, NULL, process);
}

void wr_chrome_slice_begin(struct wr_chrome *chrome, struct wr_track track, int64_t at, const char *name)
{
	wr_chrome_event(chrome, 'B', track, at, name);
	wr_chrome_end(chrome);
}

void wr_chrome_slice_end(struct wr_chrome *chrome, struct wr_track track, int64_t at)
{
	wr_chrome_event(chrome, 'E', track, at, NULL);
	wr_chrome_end(chrome);
}

void wr_chrome_instant(struct wr_chrome *chrome, struct wr_track track, int64_t at, const char *name)
{
	wr_chrome_event(chrome, 'i', track, at, name);
	wr_chrome_text(chrome, "s", "t");
}

void wr_chrome_counter(struct wr_chrome *chrome, unsigned process, int64_t at, const char *name,
		       const char *unit, uint64_t value)
{
	wr_chrome_event(chrome, 'C', (struct wr_track){process, 0}, at, name);
	wr_chrome_args(chrome);
	wr_chrome_count(chrome, unit, value);
	wr_chrome_end(chrome);
}

void wr_chrome_arrow(struct wr_chrome *chrome, char phase, struct wr_track track, int64_t at,
		     const char *name, uint64_t id)
{
	wr_chrome_event(chrome, phase, track, at, name);
	wr_chrome_text(chrome, "cat", "message");
	wr_chrome_hex(chrome, "id", id);
	if (phase == 'f')
		wr_chrome_text(chrome, "bp", "e");
	wr_chrome_end(chrome);
}
