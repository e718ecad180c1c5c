#include "report/paths.h"

#include <string.h>

#include "base/memory.h"
#include "scheduler/ends.h"

/* --- the names of a path --- */

static void add_name(struct wr_text *names, const char *before, const char *name)
{
	wr_text_add(names, "%s", before);
	wr_text_bytes(names, name, strlen(name) + 1);
}

static void add_prefix(struct wr_text *names, const weir_graph *graph, const struct wr_prefix *prefix)
{
	if (prefix->before)
		add_prefix(names, graph, prefix->before);
	if (prefix->inlet != WR_NO_QUEUE)
		add_name(names, "inlet:", graph->connections[prefix->inlet]->to);
	if (prefix->before && graph->entities[prefix->entity].plan->role > WR_DEALER)
		return; /* the dealer is there */
	add_name(names, "", graph->entities[prefix->entity].plan->name);
}

const char *wr_path_name_after(const struct wr_path_row *row, const char *name)
{
	name += strlen(name) + 1;
	return name < row->names.text + row->names.length ? name : NULL;
}

/* --- the rows --- */

struct reading {
	const weir_graph *graph;
	struct wr_path_rows *rows;
	weir_status status;
};

/* Takes the names. NULL: no memory. */
static struct wr_path_row *row_of(struct reading *reading, struct wr_text *names, bool other)
{
	struct wr_path_rows *rows = reading->rows;
	/* Without instances no two paths have the same names. */
	bool plain = reading->graph->entity_count == reading->graph->plan->shown_count;

	for (size_t i = plain ? rows->count : 0; !names->status && i < rows->count; i++) {
		struct wr_path_row *row = &rows->at[i];

		if (row->other != other || row->names.length != names->length ||
		    memcmp(row->names.text, names->text, names->length) != 0)
			continue;
		wr_text_finish(names);
		return row;
	}
	if (names->status || wr_grow(&rows->at, &rows->room, rows->count + 1, sizeof *rows->at)) {
		wr_text_finish(names);
		reading->status = WEIR_E_NOMEM;
		return NULL;
	}
	rows->at[rows->count] = (struct wr_path_row){.names = *names, .other = other};
	return &rows->at[rows->count++];
}

static void read_path(const struct wr_prefix *prefix, struct wr_path *path, void *arg)
{
	struct reading *reading = arg;
	struct wr_text names = {0};
	struct wr_path_row *row;

	add_prefix(&names, reading->graph, prefix);
	if (path->outlet != WR_NO_QUEUE)
		add_name(&names, "outlet:", reading->graph->connections[path->outlet]->from);
	row = row_of(reading, &names, prefix->other);
	if (!row)
		return;
	row->count += wr_read(&path->count);
	row->measured += wr_read(&path->latency.count);
	wr_histogram_merge(&row->latency, &path->latency);
}

weir_status wr_path_rows_read(const weir_graph *graph, struct wr_statistics *statistics,
			      struct wr_path_rows *out)
{
	struct reading reading = {graph, out, WEIR_OK};

	*out = (struct wr_path_rows){0};
	wr_paths_each(&statistics->paths, read_path, &reading);
	return reading.status;
}

void wr_path_rows_finish(struct wr_path_rows *rows)
{
	for (size_t i = 0; i < rows->count; i++) {
		wr_histogram_finish(&rows->at[i].latency);
		wr_text_finish(&rows->at[i].names);
	}
	wr_free(rows->at);
}
