/*
 * Status and the last error: the text of a failure is written
 * once, by the lowest level that knows the cause.
 */
#ifndef WR_BASE_STATUS_H
#define WR_BASE_STATUS_H

#include <stdarg.h>

#include "base/words.h"
#include "weir.h"

/*
 * Sets this thread's last error (one line, lower case, names the thing; escaped by base/words.h) and returns
 * status. Thread: any.
 */
weir_status wr_fail(weir_status status, const char *format, ...) __attribute__((format(printf, 2, 3)));
weir_status wr_vfail(weir_status status, const char *format, va_list list)
	__attribute__((format(printf, 2, 0)));

/* Likewise, of an entity: the line is "ENTITY: TEXT". */
weir_status wr_fail_in(weir_status status, const char *entity, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* Likewise, of a port of it: the line, and the text, is "ENTITY.PORT: ..." . */
weir_status wr_fail_port(weir_status status, const char *entity, const char *port, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
/* Sets "NAME: TEXT". May be called by a POSIX signal handler, since it formats nothing. */
weir_status wr_fail_in_handler(weir_status status, const char *name, const char *text);

#define WR_ERROR_BYTES 2048 /* a longer line is cut and ends with "..." */

/* The last error of a thread, or of a fiber. */
struct wr_last_error {
	char line[WR_ERROR_BYTES];    /* "" if there was none */
	char entity[WR_NAME_MAX + 1]; /* of a line: the entity that it is about; "": none */
	char on[WR_NAME_MAX + 1];     /* its port, or a pool; "": not known */
	weir_status status;
	weir_cause cause;
	uint16_t text; /* where in the line that begins which needs no name before it */
};
struct wr_last_error *wr_error_here(void);
/*
 * A caller of an operator's or condition's function clears it before the call, so that a text found
 * afterwards is that function's.
 */
static inline void wr_error_clear(struct wr_last_error *error)
{
	*error->line = 0;
}
/* The line without the entity's name, if wr_fail_in put it there. */
const char *wr_error_text(const struct wr_last_error *error);
/* This thread's last error is about the entity: puts its name before the line unless it is so already. */
weir_status wr_error_blame(weir_status status, const char *entity);
/* Says what this thread's last error, with that status, comes from; on NULL: not known. */
void wr_error_cause(weir_cause cause, const char *on);
/* Likewise, but the line names the entity. */
weir_status wr_error_about(weir_status status, const char *entity);
/*
 * Called with the status, not OK, that an operator's or condition's function returned; `what` names the
 * function ("compute"). Writes a text if it left none. A positive value is no status: WEIR_E_INVALID.
 */
weir_status wr_failure_explain(weir_status status, const char *what);

#endif
