/* An operator's stop function is called once for each start, also if the device works on
 * after the end of the run. */
#include <string.h>

#include "rig.h"

#define TEST(name) static void name(void **state_)

static int work(const void *arguments)
{
	weir_sleep(*(const int64_t *)arguments);
	return 0;
}

static const weir_kernel kernel = {sizeof(weir_kernel), "work", work, NULL};

static weir_status launch(struct rig *rig, weir_context *context)
{
	return weir_stream_launch(weir_context_stream(context), &kernel, rig->own, sizeof(int64_t));
}

static weir_status fail_later(struct rig *rig, weir_context *context)
{
	(void)rig;
	weir_sleep(20 * MS);
	return weir_context_fail(context, "meant");
}

/* The kernel must have ended, and streams must be available. */
static void stop(struct rig *rig, weir_context *context)
{
	weir_fence fence;

	HOLDS(rig, weir_stream_record(weir_context_stream(context), &fence) == WEIR_OK);
	rig_note(rig, context, "stopped");
}

static weir_status note_start(struct rig *rig, weir_context *context)
{
	rig_note(rig, context, "started");
	return WEIR_OK;
}

/* `good` has a kernel of this length in flight when `bad` fails. */
static struct rig *cut_short(int64_t *kernel_ns)
{
	struct rig *rig = rig_of("good:call count=1; bad:call count=1");

	rig->own = kernel_ns;
	rig_on(rig, "good", launch);
	rig_entity(rig, "good")->start = note_start;
	rig_entity(rig, "good")->stop = stop;
	rig_on(rig, "bad", fail_later);
	assert_int_equal(rig_run(rig), WEIR_E_FAILED);
	return rig;
}

static void destroy_scheduler(struct rig *rig)
{
	assert_int_equal(weir_scheduler_destroy(rig->scheduler), WEIR_OK);
	rig->scheduler = NULL;
}

static void stopped_by_destroy(void)
{
	int64_t ns = 400 * MS;
	struct rig *rig = cut_short(&ns);

	assert_string_equal(rig_text(rig, "good"), "started");
	destroy_scheduler(rig);
	assert_string_equal(rig_text(rig, "good"), "started stopped");
	rig_destroy(rig);
}

TEST(xb17_an_entity_that_works_on_after_a_failure_is_stopped_by_destroy)
{
	(void)state_;
	rig_everywhere(stopped_by_destroy);
}

static void stopped_by_the_next_start(void)
{
	int64_t ns = 400 * MS;
	struct rig *rig = cut_short(&ns);

	rig_on(rig, "bad", NULL);
	ns = MS;
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_string_equal(rig_text(rig, "good"), "started stopped started stopped");
	rig_destroy(rig);
}

TEST(xb17_an_entity_that_works_on_after_a_failure_is_stopped_by_the_next_start)
{
	(void)state_;
	rig_everywhere(stopped_by_the_next_start);
}

static void no_time_to_drain(void)
{
	int64_t ns = 400 * MS;
	struct rig *rig = rig_of("good:call count=1");

	rig->own = &ns;
	rig->options.drain_ns = -1;
	rig_on(rig, "good", launch);
	rig_entity(rig, "good")->stop = stop;
	rig_start(rig);
	weir_scheduler_wait(rig->scheduler, 10 * MS, NULL);
	weir_scheduler_stop(rig->scheduler, true);
	assert_int_equal(rig_wait(rig), WEIR_E_ABANDONED);
	destroy_scheduler(rig);
	assert_string_equal(rig_text(rig, "good"), "stopped");
	rig_destroy(rig);
}

TEST(xb17_a_drain_without_time_leaves_the_stop_to_destroy)
{
	(void)state_;
	rig_everywhere(no_time_to_drain);
}

/* 10 s: longer than destroy waits. The next start is refused and names the entity. */
static void hangs(void)
{
	int64_t ns = 10 * SECOND;
	struct rig *rig = cut_short(&ns);

	rig->options.drain_ns = SECOND;
	assert_int_equal(weir_scheduler_start(rig->scheduler), WEIR_E_BUSY);
	assert_non_null(strstr(weir_last_error(), "good: the device still works for the run before"));
	destroy_scheduler(rig);
	assert_string_equal(rig_text(rig, "good"), "started");
	weir_sleep(10 * SECOND);
	rig_destroy(rig);
}

TEST(xb17_a_device_that_hangs_is_not_waited_for)
{
	(void)state_;
	rig_in_world(1, hangs);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(xb17_an_entity_that_works_on_after_a_failure_is_stopped_by_destroy),
		cmocka_unit_test(xb17_an_entity_that_works_on_after_a_failure_is_stopped_by_the_next_start),
		cmocka_unit_test(xb17_a_drain_without_time_leaves_the_stop_to_destroy),
		cmocka_unit_test(xb17_a_device_that_hangs_is_not_waited_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
