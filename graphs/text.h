/* Growing text, escaping of untrusted names, and reading a file. */
#ifndef WR_GRAPHS_PLAN_TEXT_H
#define WR_GRAPHS_PLAN_TEXT_H

#include <stdarg.h>

#include "weir.h"

#define WR_TEXT_MAX ((size_t)256 << 20) /* bytes of a graph file */

struct wr_text {
	char *text; /* NUL-terminated; NULL until something is added */
	size_t length, room;
	weir_status status; /* the first failure; adding is then a no-op */
};

void wr_text_add(struct wr_text *text, const char *format, ...) WEIR_PRINTF(2, 3);
void wr_text_vadd(struct wr_text *text, const char *format, va_list list) WEIR_PRINTF(2, 0);
void wr_text_bytes(struct wr_text *text, const char *bytes, size_t length);
void wr_text_string(struct wr_text *text, const char *string); /* as a JSON string, with its quotes */
void wr_text_shown(struct wr_text *text, const char *string);  /* escaped by weir_text_shown */
void wr_text_real(struct wr_text *text, double real);          /* as JSON, whatever the locale */
void wr_text_finish(struct wr_text *text);

/* Untrusted text made fit for one line: control characters are escaped, a long text is cut. */
struct wr_shown {
	char text[88];
};
struct wr_shown wr_shown(const char *string);
bool wr_name_ok(const char *name); /* [A-Za-z_][A-Za-z0-9_-]{0,63} */
/* Format of the error; argument: the name. */
#define WR_NAME_WRONG "'%s' is not a valid name: write a letter or _, then at most 63 letters, digits, _ or -"

/*
 * Gives the text of a file or pipe. If it is larger than WR_TEXT_MAX, so is `length`, and the text is
 * incomplete or NULL. Fails: WEIR_E_IO, WEIR_E_NOMEM.
 */
weir_status wr_text_read(struct wr_text *out, const char *path);

#endif
