/*
 * The paths of a run as texts show them: paths through different instances of an entity are one row.
 */
#ifndef WR_REPORT_PATHS_H
#define WR_REPORT_PATHS_H

#include "base/text.h"
#include "scheduler/scheduler.h"
#include "trace/statistics.h"

struct wr_path_row {
	struct wr_text names; /* one after another, each with its NUL: source to sink */
	bool other;
	uint64_t count, measured;
	struct wr_histogram latency;
};

struct wr_path_rows {
	struct wr_path_row *at;
	size_t count, room;
};

/* What it fills must be finished, also if it fails. Thread: any. Fails: WEIR_E_NOMEM: rows are missing. */
weir_status wr_path_rows_read(const weir_graph *graph, struct wr_statistics *statistics,
			      struct wr_path_rows *out);
void wr_path_rows_finish(struct wr_path_rows *rows);
/* names.text is the first one. Returns NULL after the last one. */
const char *wr_path_name_after(const struct wr_path_row *row, const char *name);

#endif
