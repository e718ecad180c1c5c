/* Names of classes from a file: line i, from 0, is the name of class i. */
#ifndef WR_OPERATORS_LABELS_H
#define WR_OPERATORS_LABELS_H

#include "weir.h"

enum { WR_LABEL_MAX = 255 }; /* bytes */

struct wr_labels {
	char *text;   /* the file, each line ended by a NUL */
	char **lines; /* `count` of them */
	size_t count;
};

/*
 * Reads a file; an empty path gives no labels. A last line without a newline counts. Fails: as
 * weir_context_fail, with nothing to free; WEIR_E_NOMEM.
 */
weir_status wr_labels_read(weir_context *context, const char *path, struct wr_labels *out);
void wr_labels_finish(struct wr_labels *labels);
/* NULL: the class has no name, or an empty one. */
const char *wr_labels_name(const struct wr_labels *labels, int64_t number);

#endif
