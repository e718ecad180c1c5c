#ifndef WR_GRAPHS_DESCRIPTION_H
#define WR_GRAPHS_DESCRIPTION_H

#include "graphs/value.h"

/* A graph as data: the tree, and the file that it was read from. */
struct weir_description {
	struct wr_value root;
	char *file; /* NULL: not from a file */
};

/* The index of the entity of that name. Fails: WEIR_E_INVALID, naming the nearest. */
weir_status wr_description_entity(const weir_description *description, const char *name, size_t *out);

#endif
