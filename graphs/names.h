/* A hash table from names to indices. The hash is seeded: no text can make all its names collide (F89). */
#ifndef WR_GRAPHS_PLAN_NAMES_H
#define WR_GRAPHS_PLAN_NAMES_H

#include "weir.h"

#define WR_NO_INDEX SIZE_MAX

struct wr_names {
	struct wr_name_slot *slots; /* open addressing; the names are borrowed */
	size_t room, count;
};

weir_status wr_names_add(struct wr_names *names, const char *name,
			 size_t index); /* if the name is there, keeps its index */
size_t wr_names_find(const struct wr_names *names, const char *name); /* WR_NO_INDEX: not there */
void wr_names_finish(struct wr_names *names);                         /* may be all zero */

#endif
