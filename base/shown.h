/* Escaping foreign text (of files, plugins, command lines) for a line of output; see weir_text_shown. */
#ifndef WR_BASE_SHOWN_H
#define WR_BASE_SHOWN_H

#include "weir.h"

/*
 * Escapes the next character of *text, which is not at its end, and advances
 * *text past it. Returns the number of bytes written to out, at most 6.
 */
size_t wr_shown_step(char out[8], const char **text);
/* Escapes all of text, or as much as fits followed by "...". room is at least 16. */
void wr_shown_cut(char *out, size_t room, const char *text);

#endif
