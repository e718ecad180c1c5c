/*
 * The last error is kept per thread, or per fiber, so that a fiber does not see another's text after a
 * switch. Nothing here allocates, so that "out of memory" can be reported.
 */
#include "base/status.h"

#include <stdio.h>
#include <string.h>

#include "base/fiber.h"
#include "base/words.h"

static _Thread_local char of_thread[WR_ERROR_BYTES];

char *wr_error_here(void)
{
	struct wr_fiber *fiber = wr_fiber_here();

	return fiber ? wr_world()->error(fiber) : of_thread;
}

weir_status wr_vfail(weir_status status, const char *format, va_list list)
{
	/*
	 * a copy, since arguments may point into the last error; + 4, so that a character cut in two is not
	 * shown
	 */
	char text[WR_ERROR_BYTES + 4];
	int length = vsnprintf(text, sizeof(text), format, list);

	wr_shown_cut(wr_error_here(), WR_ERROR_BYTES, length < 0 ? weir_status_text(status) : text);
	return status;
}

weir_status wr_fail(weir_status status, const char *format, ...)
{
	va_list list;

	va_start(list, format);
	wr_vfail(status, format, list);
	va_end(list);
	return status;
}

const char *weir_last_error(void)
{
	return wr_error_here();
}

const char *weir_status_text(weir_status status)
{
	switch (status) {
#define STATUS_CASE(name, value, text)                                                                       \
	case name:                                                                                           \
		return text;
		WEIR_STATUS_TABLE(STATUS_CASE)
#undef STATUS_CASE
	}
	return "unknown status";
}

const char *weir_cause_text(weir_cause cause)
{
	switch (cause) {
#define CAUSE_CASE(name, value, text)                                                                        \
	case name:                                                                                           \
		return text;
		WEIR_CAUSE_TABLE(CAUSE_CASE)
#undef CAUSE_CASE
	}
	return "unknown";
}

weir_status wr_fail_in_handler(weir_status status, const char *name, const char *text)
{
	struct wr_words words = wr_words_in(wr_error_here(), WR_ERROR_BYTES);

	wr_words_put(&words, name);
	wr_words_put(&words, ": ");
	wr_words_put(&words, text);
	return status;
}

static const char *status_name(weir_status status)
{
	switch (status) {
#define NAME_CASE(name, value, text)                                                                         \
	case name:                                                                                           \
		return #name;
		WEIR_STATUS_TABLE(NAME_CASE)
#undef NAME_CASE
	}
	return "an unknown status";
}

weir_status wr_failure_explain(weir_status status, const char *what)
{
	if ((int)status > 0)
		return wr_fail(WEIR_E_INVALID,
			       "%s returned %d: a failure is a negative weir_status, and "
			       "statuses above 0 mean nothing",
			       what, (int)status);
	if (!*wr_error_here())
		wr_fail(status, "%s returned %s (%s) without saying why", what, status_name(status),
			weir_status_text(status));
	return status;
}

const char *weir_version(void)
{
	return WEIR_VERSION;
}
