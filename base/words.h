/*
 * Short texts: appending to a buffer of fixed size, and foreign text (of files, plugins, command lines) made
 * fit for a line of output. Nothing here allocates or fails, and only libc is needed: the command compiles
 * it, too.
 */
#ifndef WR_BASE_WORDS_H
#define WR_BASE_WORDS_H

#include <stdbool.h>
#include <stddef.h>

#include "weir.h"

/* A text that is put together in the caller's buffer, always NUL-terminated. What does not fit is cut. */
struct wr_words {
	char *text;
	size_t room, length; /* room is at least 1 */
};

struct wr_words wr_words_in(char *buffer, size_t room); /* empties the buffer */
void wr_words_add(struct wr_words *words, const char *format, ...) WEIR_PRINTF(2, 3);
/* Formats nothing: a POSIX signal handler may call it. */
void wr_words_put(struct wr_words *words, const char *text);

/*
 * Escapes the next character of *text, which is not at its end, and advances
 * *text past it. Returns the number of bytes written to out, at most 6.
 */
size_t wr_shown_step(char out[8], const char **text);
/* weir_text_escape. */
size_t wr_shown_part(char *out, size_t room, const char **text);
/* Escapes all of text, or as much as fits followed by "...". room is at least 16. */
void wr_shown_cut(char *out, size_t room, const char *text);

/* A text escaped and, if it is long, cut: for one argument of a message. */
struct wr_shown {
	char text[88];
};
struct wr_shown wr_shown(const char *string);

#define WR_NAME_MAX 64
/* The words for an errno, with the remedy where descriptors are short. */
const char *wr_errno_words(int error);

bool wr_name_ok(const char *name); /* [A-Za-z_][A-Za-z0-9_-]{0,63} */
/* Format of the error; argument: the name. */
#define WR_NAME_WRONG "'%s' is not a valid name: write a letter or _, then at most 63 letters, digits, _ or -"

#endif
