/*
 * The files of a run: its graph file and plugins, those of the program, and those that parameters name
 * (WEIR_TYPE_READ_FILE and its like). base/files.h says which exclude each other.
 */
#ifndef WR_GRAPHS_FILES_H
#define WR_GRAPHS_FILES_H

#include "base/files.h"
#include "graphs/plan.h"

struct wr_files {
	struct wr_file *list;
	size_t count, room;
	/* How paths of entities are opened, and whether descriptors are those of the run: else nothing is
	 * known but their numbers. */
	wr_file_opener *open;
	const void *arg;
	bool live;
};

weir_status wr_files_keep(struct wr_files *files, const struct wr_file *file); /* fails: WEIR_E_NOMEM */
/*
 * Adds a use, and looks at what it names; at a descriptor only if the table is live, or its kind is known.
 * Copies `place`, borrows the other texts. Fails: WEIR_E_NOMEM.
 */
weir_status wr_files_add(struct wr_files *files, const struct wr_file *file, const char *place);
/* Adds what the plan and the registry (may be NULL) name; borrows their texts. Fails: WEIR_E_NOMEM. */
weir_status wr_files_add_plan(struct wr_files *files, const struct wr_plan *plan,
			      const weir_registry *registry);
/* An earlier use that the i-th cannot stand beside; NULL: none. */
const struct wr_file *wr_files_clash(const struct wr_files *files, size_t i);
/* Why the i-th, a descriptor, cannot be used; NULL: it can. */
const char *wr_files_foreign(const struct wr_files *files, size_t i);
void wr_files_finish(struct wr_files *files);

#endif
