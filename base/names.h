/*
 * From names to indices: a sorted array. No text makes it slow: sorting n names takes n log n comparisons,
 * and a search log n (F89). Filled first, then sorted once; or kept sorted by wr_names_insert, which moves
 * what is behind the new name.
 */
#ifndef WR_BASE_NAMES_H
#define WR_BASE_NAMES_H

#include "weir.h"

#define WR_NO_INDEX SIZE_MAX

struct wr_names {
	struct wr_name *list; /* the names are borrowed */
	size_t count, room;
};

weir_status wr_names_add(struct wr_names *names, const char *name, size_t index); /* then sort */
void wr_names_sort(struct wr_names *names);
weir_status wr_names_insert(struct wr_names *names, const char *name, size_t index);
/* The lowest index that was added with that name, or WR_NO_INDEX. The names are sorted. */
size_t wr_names_find(const struct wr_names *names, const char *name);
/* The index of the name of that rank by strcmp, or WR_NO_INDEX. The names are sorted. */
size_t wr_names_at(const struct wr_names *names, size_t rank);
void wr_names_remove_from(struct wr_names *names, size_t index); /* the names of this and higher indices */
void wr_names_finish(struct wr_names *names);                    /* may be all zero */

#endif
