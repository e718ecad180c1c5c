/*
 * Status and the last error: the text of a failure is written
 * once, by the lowest level that knows the cause.
 */
#ifndef WR_BASE_STATUS_H
#define WR_BASE_STATUS_H

#include <stdarg.h>

#include "weir.h"

/*
 * Sets this thread's last error (one line, lower case, names the thing; escaped by base/words.h) and returns
 * status. Thread: any.
 */
weir_status wr_fail(weir_status status, const char *format, ...) __attribute__((format(printf, 2, 3)));
weir_status wr_vfail(weir_status status, const char *format, va_list list)
	__attribute__((format(printf, 2, 0)));

/* Sets "NAME: TEXT". May be called by a POSIX signal handler, since it formats nothing. */
weir_status wr_fail_in_handler(weir_status status, const char *name, const char *text);
/*
 * The buffer of this thread's (or fiber's) last error. A caller of an operator's or condition's function
 * empties it before the call, so that a text found afterwards is that function's.
 */
char *wr_error_here(void);
/*
 * Called with the status, not OK, that an operator's or condition's function returned; `what` names the
 * function ("compute"). Writes a text if it left none. A positive value is no status: WEIR_E_INVALID.
 */
weir_status wr_failure_explain(weir_status status, const char *what);

#define WR_ERROR_BYTES 2048 /* a longer text is cut and ends with "..." */

#endif
