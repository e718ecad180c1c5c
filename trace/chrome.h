/*
 * The text of Chrome's trace event format: one JSON object whose array "traceEvents" has one object a line.
 * It is written to a file piece by piece, so memory stays bounded. Source: "Trace Event Format", the document
 * that chrome://tracing and Perfetto read by.
 */
#ifndef WR_TRACE_CHROME_H
#define WR_TRACE_CHROME_H

#include "base/text.h"

/* A row of the viewer: a process groups rows. The number of a thread is unique in the file. */
struct wr_track {
	unsigned process;
	uint32_t thread;
};

struct wr_chrome {
	struct wr_text text; /* not yet written; text.status: memory ran out */
	int fd;
	int error;      /* errno of the first write that failed; nothing is written after it */
	int64_t origin; /* the time that is shown as 0 */
	unsigned depth; /* objects that are open */
	bool follows;   /* a comma must separate what comes next */
};

/* Writes the head: other data (key by key) goes in until wr_chrome_events. Borrows the descriptor. */
void wr_chrome_begin(struct wr_chrome *chrome, int fd, int64_t origin);
void wr_chrome_events(struct wr_chrome *chrome); /* now the events begin */
/* Ends the text. Fails: WEIR_E_IO (chrome->error), WEIR_E_NOMEM. */
weir_status wr_chrome_finish(struct wr_chrome *chrome);

/* One event: event, then keys of its own, then args and keys of these, then end. */
void wr_chrome_event(struct wr_chrome *chrome, char phase, struct wr_track track, int64_t at,
		     const char *name);
void wr_chrome_args(struct wr_chrome *chrome);
void wr_chrome_text(struct wr_chrome *chrome, const char *key, const char *text);
void wr_chrome_count(struct wr_chrome *chrome, const char *key, uint64_t count);
void wr_chrome_hex(struct wr_chrome *chrome, const char *key, uint64_t value);
void wr_chrome_time(struct wr_chrome *chrome, const char *key, int64_t ns); /* us with three digits */
void wr_chrome_end(struct wr_chrome *chrome);

/* A slice of a row: its ends, in order, with what lies between them. */
void wr_chrome_slice_begin(struct wr_chrome *chrome, struct wr_track track, int64_t at, const char *name);
void wr_chrome_slice_end(struct wr_chrome *chrome, struct wr_track track, int64_t at);
/* An event without length; args may follow, then wr_chrome_end. */
void wr_chrome_instant(struct wr_chrome *chrome, struct wr_track track, int64_t at, const char *name);
void wr_chrome_counter(struct wr_chrome *chrome, unsigned process, int64_t at, const char *name,
		       const char *unit, uint64_t value);
/* The begin ('s') or the end ('f') of an arrow, in the slice that the row has where this is written. */
void wr_chrome_arrow(struct wr_chrome *chrome, char phase, struct wr_track track, int64_t at,
		     const char *name, uint64_t id);

/* Metadata: the name and the place of a row, or of the group `track.process`. */
void wr_chrome_name_track(struct wr_chrome *chrome, struct wr_track track, const char *name, uint64_t place);
void wr_chrome_name_group(struct wr_chrome *chrome, unsigned process, const char *name);

#endif
