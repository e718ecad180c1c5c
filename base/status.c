/*
 * The last error lives in the thread, or in the fiber that calls: a switch of fibers must not show one the
 * other's words. Nothing here allocates: "out of memory" has to come through.
 */
#include "base/status.h"

#include <stdio.h>
#include <string.h>

#include "base/fiber.h"

static _Thread_local char of_thread[WR_ERROR_BYTES];

static char *last_error(void)
{
	struct wr_fiber *fiber = wr_here.fiber;

	return fiber ? wr_fiber_error(fiber) : of_thread;
}

void wr_one_line(char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < ' ' || *text == 0x7f)
			*text = ' ';
}

/* A cut text ends with "..." and not in the middle of a UTF-8 character. */
static void mark_cut(char *text, size_t bytes)
{
	size_t end = bytes - sizeof("...");

	while (end > 0 && ((unsigned char)text[end] & 0xc0) == 0x80)
		end--;
	memcpy(text + end, "...", sizeof("..."));
}

weir_status wr_vfail(weir_status status, const char *format, va_list list)
{
	char text[WR_ERROR_BYTES];	/* the arguments may point into the last error itself */
	int length = vsnprintf(text, sizeof(text), format, list);

	if (length < 0)
		snprintf(text, sizeof(text), "%s", weir_status_text(status));
	else if ((size_t)length >= sizeof(text))
		mark_cut(text, sizeof(text));
	wr_one_line(text);
	memcpy(last_error(), text, strlen(text) + 1);
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
	return last_error();
}

const char *weir_status_text(weir_status status)
{
	switch (status) {
#define STATUS_CASE(name, value, text) \
	case name:                     \
		return text;
		WEIR_STATUS_TABLE(STATUS_CASE)
#undef STATUS_CASE
	}
	return "unknown status";
}

const char *weir_version(void)
{
	return WEIR_VERSION;
}
