#include "graphs/report.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/status.h"
#include "base/text.h"
#include "base/words.h"

struct wr_report {
	enum wr_error error;
	struct wr_place place;
	size_t sequence;
	char *pointer, *text;
};

static bool is_warning(enum wr_error error)
{
	return error == WR_W_ENDLESS_CYCLE || error == WR_W_UNUSED_RESOURCE || error == WR_W_FEW_STREAMS ||
	       error == WR_W_NO_STREAM || error == WR_W_EFFECTS_CYCLE || error == WR_W_NO_GATE ||
	       error == WR_W_DEVICE_PORT || error == WR_W_SMALL_POOL || error == WR_W_LOSSY_BRANCH ||
	       error == WR_W_STUCK_JOIN || error == WR_W_SHORT_BRANCH || error == WR_W_ONLY_LATEST;
}

/* Keys are escaped by RFC 6901, their control characters for terminals. */
static void add_pointer(struct wr_text *text, const struct wr_at *at)
{
	char shown[8];

	if (!at) {
		wr_text_bytes(text, "", 0); /* the root is "", not NULL */
		return;
	}
	add_pointer(text, at->up);
	wr_text_bytes(text, "/", 1);
	for (const char *key = at->key; key && *key;)
		if (*key == '~' || *key == '/')
			wr_text_add(text, "~%d", *key++ == '/');
		else
			wr_text_bytes(text, shown, wr_shown_step(shown, &key));
	if (!at->key)
		wr_text_add(text, "%zu", at->index);
}

static void keep_report(struct wr_reports *reports, enum wr_error error, const struct wr_at *at,
			struct wr_place place, const char *format, va_list list)
{
	struct wr_text pointer = {0}, raw = {0}, text = {0};

	add_pointer(&pointer, at);
	wr_text_vadd(&raw, format, list);
	wr_text_bytes(&text, "", 0);
	wr_text_escaped(&text, raw.text ? raw.text : "");
	text.status = text.status ? text.status : raw.status;
	wr_text_finish(&raw);
	if (!pointer.status && !text.status &&
	    !wr_grow(&reports->list, &reports->room, reports->count + 1, sizeof(*reports->list))) {
		reports->list[reports->count] =
			(struct wr_report){error, place, reports->count, pointer.text, text.text};
		reports->count++;
		return;
	}
	wr_text_finish(&pointer);
	wr_text_finish(&text);
	reports->status = WEIR_E_NOMEM;
}

/* Reports that there are more errors than are shown. Without a place it is sorted last. */
static void keep_limit(struct wr_reports *reports, const char *format, ...)
{
	va_list list;

	va_start(list, format);
	keep_report(reports, WR_W_TOO_MANY, NULL, (struct wr_place){0}, format, list);
	va_end(list);
}

void wr_report(struct wr_reports *reports, enum wr_error error, const struct wr_at *at, struct wr_place place,
	       const char *format, ...)
{
	va_list list;

	reports->errors += !is_warning(error);
	va_start(list, format);
	if (reports->count < WR_REPORTS_MAX)
		keep_report(reports, error, at, place, format, list);
	else if (reports->count == WR_REPORTS_MAX)
		keep_limit(reports, "more than %d errors: the rest is not shown; correct these first",
			   WR_REPORTS_MAX);
	va_end(list);
}

/* By place; reports without one (values made by calls) come last, in the order of the checks. */
static int by_place(const void *left, const void *right)
{
	const struct wr_report *a = left, *b = right;

	if (a->place.line != b->place.line)
		return a->place.line - 1 < b->place.line - 1 ? -1 : 1;
	if (a->place.column != b->place.column)
		return a->place.column < b->place.column ? -1 : 1;
	return a->sequence < b->sequence ? -1 : 1;
}

/* Allocates nothing: the error must get through. */
static weir_status fail_first_error(const struct wr_reports *reports)
{
	const struct wr_report *report = reports->list;
	const char *file = reports->file;
	char at[32] = ""; /* ":line:column: " after the file, as far as known */

	while (is_warning(report->error))
		report++;
	if (report->place.line)
		snprintf(at, sizeof(at), "%s%u:%u: ", file ? ":" : "", report->place.line,
			 report->place.column);
	return wr_fail(WEIR_E_INVALID, "%s%s%s%s%s (W%03d)", wr_shown(file ? file : "").text,
		       *at || !file ? at : ": ", report->pointer, *report->pointer ? ": " : "", report->text,
		       (int)report->error);
}

weir_status wr_reports_deliver(struct wr_reports *reports, weir_diagnostic_fn *fn, void *arg)
{
	weir_status status = reports->status;

	if (reports->count)
		qsort(reports->list, reports->count, sizeof(*reports->list), by_place);
	for (size_t i = 0; fn && i < reports->count; i++) {
		const struct wr_report *report = &reports->list[i];
		weir_diagnostic public = {sizeof(public),  (int)report->error,       reports->file,
					  report->pointer, report->place.line,       report->place.column,
					  report->text,    is_warning(report->error)};
		fn(&public, arg);
	}
	if (!status && reports->errors)
		status = fail_first_error(reports);
	for (size_t i = 0; i < reports->count; i++) {
		wr_free(reports->list[i].pointer);
		wr_free(reports->list[i].text);
	}
	wr_free(reports->list);
	*reports = (struct wr_reports){.file = reports->file};
	return status;
}
