/* A text that grows; short texts in a buffer: base/words.h. */
#ifndef WR_BASE_TEXT_H
#define WR_BASE_TEXT_H

#include <stdarg.h>

#include "base/words.h"

struct wr_text {
	char *text; /* NUL-terminated; NULL until something is added */
	size_t length, room;
	weir_status status; /* the first failure; adding is then a no-op */
};

void wr_text_add(struct wr_text *text, const char *format, ...) WEIR_PRINTF(2, 3);
void wr_text_vadd(struct wr_text *text, const char *format, va_list list) WEIR_PRINTF(2, 0);
void wr_text_bytes(struct wr_text *text, const char *bytes, size_t length);
void wr_text_string(struct wr_text *text, const char *string);  /* as a JSON string, with its quotes */
void wr_text_escaped(struct wr_text *text, const char *string); /* as weir_text_escape does */
void wr_text_real(struct wr_text *text, double real);           /* as JSON, whatever the locale */
/* Makes room for `more` bytes and a NUL. Returns false if the text has failed. */
bool wr_text_reserve(struct wr_text *text, size_t more);
void wr_text_finish(struct wr_text *text);

#endif
