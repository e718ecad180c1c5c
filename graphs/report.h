/* Reports: errors and warnings about a description, collected first, then delivered in the order of the text.
 */
#ifndef WR_GRAPHS_REPORT_H
#define WR_GRAPHS_REPORT_H

#include "graphs/errors.h"
#include "graphs/value.h"

#define WR_REPORTS_MAX 1000 /* of one text; a last one says that there are more */

/* A place in the tree: a chain on the stack, turned into a JSON pointer only for a report. NULL is the root.
 */
struct wr_at {
	const struct wr_at *up;
	const char *key; /* NULL: `index` of a list */
	size_t index;
};

struct wr_reports {
	struct wr_report *list;
	size_t count, room, errors;
	weir_status status; /* WEIR_E_NOMEM: a report was lost because memory ran out */
	const char *file;   /* borrowed; NULL: none */
};

void wr_report(struct wr_reports *reports, enum wr_error error, const struct wr_at *at, struct wr_place place,
	       const char *format, ...) WEIR_PRINTF(5, 6);

/*
 * Passes all reports to fn (may be NULL), sorted by place, and frees them. Returns WEIR_E_INVALID if there
 * was an error (last_error has the first one), WEIR_E_NOMEM if memory ran out, else WEIR_OK.
 */
weir_status wr_reports_deliver(struct wr_reports *reports, weir_diagnostic_fn *fn, void *arg);

#endif
