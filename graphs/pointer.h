/* JSON pointers (RFC 6901): "/entities/2/parameters/path". */
#ifndef WR_GRAPHS_POINTER_H
#define WR_GRAPHS_POINTER_H

#include "graphs/value.h"

struct wr_pointer {
	const char *text; /* as given, for errors */
	char *copy;
	char *keys[WR_DEPTH_MAX];
	size_t count;
};

/* Fails: WEIR_E_INVALID, WEIR_E_NOMEM. Call wr_pointer_finish also after a failure. */
weir_status wr_pointer_read(struct wr_pointer *out, const char *text);
void wr_pointer_finish(struct wr_pointer *pointer);
/*
 * Puts the value there; objects and lists on the way are made. Takes the value only if it returns WEIR_OK,
 * and changes nothing otherwise. Fails: WEIR_E_INVALID, WEIR_E_NOMEM.
 */
weir_status wr_pointer_put(struct wr_value *root, const struct wr_pointer *pointer, struct wr_value *value);

#endif
