/* An operator's stop function is called once for each start, also if the device works on
 * after the end of the run. */
#include <string.h>

#include "rig.h"
#include "tests/calls.h"

#define TEST(name) static void name(void **state_)

/* A kernel that is in flight until the test releases it, and for so long after that. */
struct held_work {
	_Atomic bool *released;
	int64_t ns;
};

static _Atomic bool launched, released;

static int work(const void *arguments)
{
	const struct held_work *held = arguments;

	while (!wr_load(held->released))
		weir_sleep(MS);
	weir_sleep(held->ns);
	return 0;
}

static const weir_kernel kernel = {sizeof(weir_kernel), "work", work, NULL};

static weir_status launch(struct rig *rig, weir_context *context)
{
	struct held_work held = {.released = &released, .ns = *(const int64_t *)rig->own};
	weir_status status = weir_stream_launch(current_stream(context), &kernel, &held, sizeof held);

	wr_store(&launched, true);
	return status;
}

static void until_launched(void)
{
	while (!wr_load(&launched))
		weir_sleep(MS);
}

static weir_status fail_later(struct rig *rig, weir_context *context)
{
	(void)rig;
	until_launched();
	return weir_context_fail(context, "meant");
}

/* The kernel must have ended, and streams must be available. */
static void stop(struct rig *rig, weir_context *context)
{
	weir_fence fence;

	HOLDS(rig, weir_stream_record(current_stream(context), &fence) == WEIR_OK);
	rig_note(rig, context, "stopped");
}

static weir_status note_start(struct rig *rig, weir_context *context)
{
	rig_note(rig, context, "started");
	return WEIR_OK;
}

static void hold(void)
{
	wr_store(&launched, false);
	wr_store(&released, false);
}

/* `good` has the kernel in flight when `bad` fails, and until it is released. */
static struct rig *cut_short(int64_t *kernel_ns)
{
	struct rig *rig = rig_of("good:call count=1; bad:call count=1");

	hold();
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
	int64_t ns = 10 * MS;
	struct rig *rig = cut_short(&ns);

	assert_string_equal(rig_text(rig, "good"), "started");
	wr_store(&released, true);
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
	int64_t ns = 10 * MS;
	struct rig *rig = cut_short(&ns);

	assert_string_equal(rig_text(rig, "good"), "started");
	rig_on(rig, "bad", NULL);
	wr_store(&released, true);
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
	int64_t ns = 10 * MS;
	struct rig *rig = rig_of("good:call count=1");

	hold();
	rig->own = &ns;
	rig->options.drain_ns = -1;
	rig_on(rig, "good", launch);
	rig_entity(rig, "good")->stop = stop;
	rig_start(rig);
	until_launched();
	weir_scheduler_stop(rig->scheduler, WEIR_STOP_DRAIN);
	assert_int_equal(rig_wait(rig), WEIR_E_ABANDONED);
	/* Whether its tick has ended by then is a matter of luck. */
	if (strcmp(rig->outcome.text, "the drain was given no time; left behind: good (its stream has work)"))
		assert_string_equal(rig->outcome.text,
				    "the drain was given no time; left behind: work on the device");
	assert_string_equal(rig_text(rig, "good"), "");
	wr_store(&released, true);
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

	wr_store(&released, true);
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
