/* Text of others (files, plugins, command lines) made fit for a line: weir_text_shown and what is built on it. */
#ifndef WR_BASE_SHOWN_H
#define WR_BASE_SHOWN_H

#include "weir.h"

/* One character of *text, which is not at its end, and past it; returns how many bytes it takes, at most 6. */
size_t wr_shown_step(char out[8], const char **text);
/* All of it, or as much as fits and "...". room: at least 16. */
void wr_shown_cut(char *out, size_t room, const char *text);

#endif
