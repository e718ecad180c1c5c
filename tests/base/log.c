/* Log lines go to the program's function, or are dropped. */
#include "base/log.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/atomic.h"
#include "base/thread.h"
#include "test.h"

struct told {
	unsigned lines;
	weir_log_level level;
	char last[2048];
};

static void note(weir_log_level level, int64_t at, const char *line, void *arg)
{
	struct told *told = arg;

	assert_true(at > 0);
	told->lines++;
	told->level = level;
	snprintf(told->last, sizeof told->last, "%s", line);
	errno = 0;
}

static void b04_nothing_is_logged_by_default(void **state)
{
	(void)state;
	assert_false(wr_log_on());
	wr_log(WEIR_LOG_ERROR, "%s", "into the air");
}

static void b04_the_function_is_told_until_another_is(void **state)
{
	struct told first = {0}, second = {0};

	(void)state;
	assert_int_equal(weir_log_set(note, &first), WEIR_OK);
	wr_log(WEIR_LOG_WARN, "slow callback of '%s'", "blur");
	assert_int_equal(weir_log_set(note, &second), WEIR_OK);
	wr_log(WEIR_LOG_INFO, "draining");
	assert_int_equal(weir_log_set(NULL, NULL), WEIR_OK);
	wr_log(WEIR_LOG_ERROR, "dropped");
	assert_int_equal(first.lines, 1);
	assert_int_equal(first.level, WEIR_LOG_WARN);
	assert_string_equal(first.last, "slow callback of 'blur'");
	assert_int_equal(second.lines, 1);
	assert_string_equal(second.last, "draining");
}

static void a_line_is_one_line_without_control_characters(void **state)
{
	struct told told = {0};

	(void)state;
	weir_log_set(note, &told);
	errno = 12345;
	wr_log(WEIR_LOG_ERROR, "a\nb\033[m");
	assert_int_equal(errno, 12345);
	assert_string_equal(told.last, "a\\nb\\u001b[m");
	wr_log(WEIR_LOG_ERROR, "%03000d", 1);
	assert_in_range(strlen(told.last), 1000, 1023);
	weir_log_set(NULL, NULL);
}

/* --- another thread logs while the function is replaced --- */

struct talker {
	_Atomic bool stop;
	_Atomic unsigned lines;
	_Atomic bool gone, late;
};

static void count(weir_log_level level, int64_t at, const char *line, void *arg)
{
	struct talker *talker = arg;

	(void)level;
	(void)at;
	(void)line;
	wr_fetch_add(&talker->lines, 1);
	if (wr_load(&talker->gone))
		wr_store(&talker->late, true);
	wr_thread_yield();
	if (wr_load(&talker->gone))
		wr_store(&talker->late, true);
}

static void talk(void *arg)
{
	struct talker *talker = arg;

	while (!wr_load(&talker->stop))
		wr_log(WEIR_LOG_INFO, "a line");
}

static void b04_what_was_replaced_is_not_called_any_more(void **state)
{
	struct talker talkers[64] = {0}, other = {0};
	struct wr_thread thread;

	(void)state;
	assert_int_equal(wr_thread_start(&thread, "talker", talk, &other), WEIR_OK);
	for (size_t i = 0; i < 64; i++) {
		assert_int_equal(weir_log_set(count, &talkers[i]), WEIR_OK);
		while (!wr_load(&talkers[i].lines))
			wr_thread_yield();
		assert_int_equal(weir_log_set(NULL, NULL), WEIR_OK);
		wr_store(&talkers[i].gone, true);
	}
	wr_store(&other.stop, true);
	wr_thread_join(&thread);
	for (size_t i = 0; i < 64; i++)
		assert_false(wr_load(&talkers[i].late));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(b04_nothing_is_logged_by_default),
		cmocka_unit_test(b04_the_function_is_told_until_another_is),
		cmocka_unit_test(a_line_is_one_line_without_control_characters),
		cmocka_unit_test(b04_what_was_replaced_is_not_called_any_more),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
