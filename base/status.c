/*
 * The last error is kept per thread, or per fiber, so that a fiber does not see another's text after a
 * switch. Nothing here allocates, so that "out of memory" can be reported.
 */
#include "base/status.h"

#include <stdio.h>
#include <string.h>

#include "base/fiber.h"
#include "base/words.h"

static _Thread_local struct wr_last_error of_thread;

struct wr_last_error *wr_error_here(void)
{
	struct wr_fiber *fiber = wr_fiber_here();

	return fiber ? wr_world()->error(fiber) : &of_thread;
}

const char *wr_error_text(const struct wr_last_error *error)
{
	return error->line + error->text;
}

weir_status wr_error_about(weir_status status, const char *entity)
{
	struct wr_last_error *error = wr_error_here();

	snprintf(error->entity, sizeof error->entity, "%s", entity);
	error->status = status;
	return status;
}

void wr_error_cause(weir_cause cause, const char *on)
{
	struct wr_last_error *error = wr_error_here();

	error->cause = cause;
	snprintf(error->on, sizeof error->on, "%s", on ? on : "");
}

weir_status wr_error_blame(weir_status status, const char *entity)
{
	struct wr_last_error *error = wr_error_here();

	if (*error->line && !strncmp(error->entity, entity, WR_NAME_MAX))
		return status;
	return wr_fail_in(status, entity, "%s", error->line);
}

static void begin_error(struct wr_last_error *error, weir_status status, size_t from)
{
	*error->entity = *error->on = 0;
	error->status = status;
	error->cause = WEIR_CAUSE_NONE;
	error->text = (uint16_t)from;
}

/* The line is escaped, and begins with `from` bytes that need not be. */
static weir_status set_error(weir_status status, size_t from, const char *line)
{
	struct wr_last_error *error = wr_error_here();

	wr_shown_cut(error->line, WR_ERROR_BYTES, line);
	begin_error(error, status, from);
	return status;
}

/*
 * A copy, since arguments may point into the last error; + 4, so that a character cut in two is not shown.
 */
#define COPY_BYTES (WR_ERROR_BYTES + 4)

weir_status wr_vfail(weir_status status, const char *format, va_list list)
{
	char line[COPY_BYTES];
	int length = vsnprintf(line, sizeof line, format, list);

	return set_error(status, 0, length < 0 ? weir_status_text(status) : line);
}

weir_status wr_fail(weir_status status, const char *format, ...)
{
	va_list list;

	va_start(list, format);
	wr_vfail(status, format, list);
	va_end(list);
	return status;
}

weir_status wr_fail_in(weir_status status, const char *entity, const char *format, ...)
{
	char line[COPY_BYTES], name[WR_NAME_MAX + 1];
	size_t from = (size_t)snprintf(line, WR_NAME_MAX + 3, "%.*s: ", WR_NAME_MAX, entity);
	va_list list;

	snprintf(name, sizeof name, "%s", entity); /* it may point into the last error, too */
	va_start(list, format);
	if (vsnprintf(line + from, sizeof line - from, format, list) < 0)
		snprintf(line + from, sizeof line - from, "%s", weir_status_text(status));
	va_end(list);
	set_error(status, from, line);
	return wr_error_about(status, name);
}

weir_status wr_fail_port(weir_status status, const char *entity, const char *port, const char *format, ...)
{
	char text[COPY_BYTES];
	va_list list;

	va_start(list, format);
	vsnprintf(text, sizeof text, format, list);
	va_end(list);
	wr_fail(status, "%s.%s: %s", entity, port, text);
	wr_error_cause(WEIR_CAUSE_NONE, port);
	return wr_error_about(status, entity);
}

const char *weir_last_error(void)
{
	return wr_error_here()->line;
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
	struct wr_last_error *error = wr_error_here();
	struct wr_words words = wr_words_in(error->line, WR_ERROR_BYTES);

	begin_error(error, status, 0);
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
	if (!*wr_error_here()->line)
		wr_fail(status, "%s returned %s (%s) without saying why", what, status_name(status),
			weir_status_text(status));
	return status;
}

const char *weir_version(void)
{
	return WEIR_VERSION;
}
