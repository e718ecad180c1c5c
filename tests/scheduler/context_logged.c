/* Lines that an operator writes into the log. */
#include <stdio.h>
#include <string.h>

#include "rig.h"

#define TEST(name) static void name(void **state_)

static char said[256];
static int64_t said_at;
static weir_log_level said_level;
static unsigned said_count;

static void note_said(weir_log_level level, int64_t at, const char *line, void *arg)
{
	(void)arg;
	if (level == WEIR_LOG_DEBUG) /* the library's own */
		return;
	snprintf(said, sizeof said, "%s", line);
	said_at = at;
	said_level = level;
	said_count++;
}

static weir_status say(struct rig *rig, weir_context *context)
{
	(void)rig;
	weir_context_log(context, WEIR_LOG_INFO, "%d boxes%c", 7, 27);
	return WEIR_OK;
}

static void say_once(void)
{
	struct rig *rig = rig_of("source ticks=1 -> looks:call");

	said_count = 0;
	rig_on(rig, "looks", say);
	assert_int_equal(weir_log_set(note_said, NULL), WEIR_OK);
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_int_equal(weir_log_set(NULL, NULL), WEIR_OK);
	assert_int_equal(said_count, 1);
	assert_int_equal(rig_run(rig), WEIR_OK); /* without a log it says nothing */
	assert_int_equal(said_count, 1);
	assert_string_equal(said, "looks: 7 boxes\\u001b");
	assert_int_equal(said_level, WEIR_LOG_INFO);
	assert_true(said_at <= weir_scheduler_now(rig->scheduler));
	rig_destroy(rig);
}

TEST(xb55_an_operators_line_has_its_entitys_name_and_time)
{
	(void)state_;
	rig_on_host(say_once);
	rig_in_world(1, say_once);
}

static weir_status say_strangely(struct rig *rig, weir_context *context)
{
	weir_context_log(context, (weir_log_level)-5, "first");
	HOLDS(rig, said_level == WEIR_LOG_ERROR);
	weir_context_log(context, (weir_log_level)99, "second");
	return WEIR_OK;
}

TEST(xb55_a_level_that_is_none_is_the_nearest)
{
	struct rig *rig = rig_of("source ticks=1 -> looks:call");

	(void)state_;
	rig_on(rig, "looks", say_strangely);
	assert_int_equal(weir_log_set(note_said, NULL), WEIR_OK);
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_int_equal(weir_log_set(NULL, NULL), WEIR_OK);
	assert_string_equal(said, "looks: first");
	rig_destroy(rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(xb55_an_operators_line_has_its_entitys_name_and_time),
		cmocka_unit_test(xb55_a_level_that_is_none_is_the_nearest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
