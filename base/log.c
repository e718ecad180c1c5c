/*
 * One pointer is published, to a record of the program's function and its argument. A thread that logs
 * increments `telling` before it reads the pointer and decrements it afterwards, so a thread that replaces
 * the record can wait until the old one is not used any more.
 */
#include "base/log.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/atomic.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/status.h"
#include "base/thread.h"
#include "base/words.h"

struct listener {
	weir_log_fn *fn;
	void *arg;
};

static struct listener *_Atomic published;
static _Atomic unsigned telling; /* threads between the two counts */

weir_status weir_log_set(weir_log_fn *fn, void *arg)
{
	struct listener *listener = NULL, *old;

	if (fn) {
		listener = wr_alloc(1, sizeof(*listener));
		if (!listener)
			return wr_fail(WEIR_E_NOMEM, "out of memory");
		*listener = (struct listener){fn, arg};
	}
	old = wr_exchange(&published, listener);
	while (wr_load(&telling))
		wr_thread_yield();
	wr_free(old);
	return WEIR_OK;
}

bool wr_log_on(void)
{
	return wr_read(&published);
}

void wr_log_line(weir_log_level level, const char *format, ...)
{
	char text[WR_LOG_MAX], line[WR_LOG_MAX];
	const struct listener *listener;
	int error = errno; /* the caller may still read it after logging a failure */
	va_list list;

	assert(!wr_mutex_held()); /* the program's function may take locks and call weir */
	va_start(list, format);
	vsnprintf(text, sizeof(text), format, list);
	va_end(list);
	wr_shown_cut(line, sizeof(line), text);
	wr_fetch_add(&telling, 1);
	listener = wr_load(&published);
	if (listener)
		listener->fn(level, wr_now(), line, listener->arg);
	wr_fetch_sub(&telling, 1);
	errno = error;
}
