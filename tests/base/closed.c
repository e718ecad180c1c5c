/* Memory that is closed but where it is opened. */
#include "base/closed.h"

#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/memory.h"
#include "test.h"

enum { BYTES = 10000 };

/* In a process of its own: returns the POSIX signal that ended it, or 0. */
static int touch(char *data, size_t at)
{
	int status;
	pid_t child = fork();

	if (!child) {
		signal(SIGSEGV, SIG_DFL); /* without a report of a sanitizer */
		((volatile char *)data)[at] += 1;
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static void xb56_closed_memory_is_open_while_it_is_opened(void **state)
{
	struct wr_closed_memory memory = WR_CLOSED_MEMORY;
	void *first, *second;

	(void)state;
	assert_int_equal(wr_closed_alloc(&memory, BYTES, &first), WEIR_OK);
	assert_int_equal(touch(first, 0), SIGSEGV);
	assert_int_equal(touch(first, BYTES - 1), SIGSEGV);
	wr_closed_open(&memory);
	wr_closed_open(&memory);
	assert_int_equal(wr_closed_alloc(&memory, 1, &second), WEIR_OK); /* open as the others */
	assert_int_equal(*(char *)second, 0);
	memset(first, 7, BYTES);
	wr_closed_close(&memory);
	assert_int_equal(touch(second, 0), 0);
	wr_closed_close(&memory);
	assert_int_equal(touch(first, 0), SIGSEGV);
	assert_int_equal(touch(second, 0), SIGSEGV);
	wr_closed_open(&memory);
	assert_int_equal(((char *)first)[BYTES - 1], 7); /* kept */
	wr_closed_close(&memory);
	wr_closed_free(&memory, second);
	wr_closed_free(&memory, first);
	wr_closed_finish(&memory);
}

/* Behind whole pages, and at least a byte behind what was asked for. */
static size_t memory_end(size_t bytes)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	return (bytes / page + 1) * page;
}

static void xb56_what_is_closed_is_known_by_its_address(void **state)
{
	struct wr_closed_memory memory = WR_CLOSED_MEMORY;
	void *data;
	char other;

	(void)state;
	assert_int_equal(wr_closed_alloc(&memory, BYTES, &data), WEIR_OK);
	assert_true(wr_closed_holds(&memory, data));
	assert_true(wr_closed_holds(&memory, (char *)data + BYTES - 1));
	assert_false(wr_closed_holds(&memory, (char *)data - 1));
	assert_false(wr_closed_holds(&memory, (char *)data + memory_end(BYTES)));
	assert_false(wr_closed_holds(&memory, &other));
	wr_closed_free(&memory, data);
	assert_false(wr_closed_holds(&memory, data));
}

static void f40_closed_memory_that_cannot_be_had_leaves_nothing(void **state)
{
	struct wr_closed_memory memory = WR_CLOSED_MEMORY;
	void *data = NULL;

	(void)state;
	for (int n = 0; n < 2; n++) {
		wr_memory_fail_at(n, false);
		assert_int_equal(wr_closed_alloc(&memory, BYTES, &data), WEIR_E_NOMEM);
	}
	wr_memory_fail_at(-1, false);
	assert_int_equal(wr_closed_alloc(&memory, SIZE_MAX - 1, &data), WEIR_E_NOMEM);
	assert_null(data);
	assert_null(memory.regions);
}

/* Only the thread that opened it may touch it. A processor without protection keys says so. */
static void xb56_memory_is_opened_by_thread_where_there_are_protection_keys(void **state)
{
	struct wr_closed_memory memory;
	void *data;

	(void)state;
	if (wr_closed_init_by_thread(&memory)) {
		assert_non_null(strstr(weir_last_error(), "no protection keys"));
		return;
	}
	assert_int_equal(wr_closed_alloc(&memory, BYTES, &data), WEIR_OK);
	wr_closed_open(&memory); /* for no thread */
	assert_int_equal(touch(data, 0), SIGSEGV);
	wr_closed_close(&memory);
	wr_closed_open_thread(&memory);
	assert_int_equal(touch(data, 0), 0);
	wr_closed_free(&memory, data);
	wr_closed_finish(&memory);
}

/* A processor has about 15 of them. */
static void xb56_protection_keys_are_given_back(void **state)
{
	struct wr_closed_memory memory;

	(void)state;
	for (int i = 0; i < 100; i++) {
		if (wr_closed_init_by_thread(&memory)) {
			assert_int_equal(i, 0);
			return;
		}
		wr_closed_finish(&memory);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(xb56_closed_memory_is_open_while_it_is_opened),
		cmocka_unit_test(xb56_what_is_closed_is_known_by_its_address),
		cmocka_unit_test(f40_closed_memory_that_cannot_be_had_leaves_nothing),
		cmocka_unit_test(xb56_memory_is_opened_by_thread_where_there_are_protection_keys),
		cmocka_unit_test(xb56_protection_keys_are_given_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
