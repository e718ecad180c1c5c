/*
 * Status and the last error: a failure is put into words
 * once, by the lowest level that knows, and handed up.
 */
#ifndef WR_BASE_STATUS_H
#define WR_BASE_STATUS_H

#include <stdarg.h>

#include "weir.h"

/* Sets this thread's last error (one line, lower case, names the thing; shown by base/shown.h) and returns
 * status. Thread: any. */
weir_status wr_fail(weir_status status, const char *format, ...) __attribute__((format(printf, 2, 3)));
weir_status wr_vfail(weir_status status, const char *format,
		     va_list list) __attribute__((format(printf, 2, 0)));

/* "NAME: TEXT", by a POSIX signal handler, too: nothing is formatted. */
weir_status wr_fail_plainly(weir_status status, const char *name, const char *text);
/*
 * Where this thread's (or fiber's) last error stands. Whoever calls a function of a kind's empties it before,
 * so that what stands there afterwards is that function's own.
 */
char *wr_error_here(void);
/*
 * A kind's function has returned a status that is not OK; `what` names it ("compute"). Gives plain words to
 * one that said nothing, and refuses what is no status.
 */
weir_status wr_settle_failure(weir_status status, const char *what);

#define WR_ERROR_BYTES 2048	/* a longer text is cut and ends with "..." */

#endif
