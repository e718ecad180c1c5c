/* Descriptors that cannot be watched (C9), and what explain says while none is. */
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/memory.h"
#include "rig.h"

#define TEST(name) static void name(void **state_)

static int ends[2]; /* of a pipe in which nothing comes */

static weir_status watch(weir_entity *entity, int fd, unsigned events)
{
	return weir_entity_watch(entity, "file_descriptor", fd, events);
}

static void assert_refused(weir_status status, const char *why)
{
	assert_int_equal(status, WEIR_E_INVALID);
	assert_says(weir_last_error(), why);
}

TEST(c09_what_cannot_be_watched_is_refused_at_the_call)
{
	struct rig *rig = rig_of("z:call condition=file_descriptor");
	weir_entity *z = weir_graph_entity(rig->graph, "z");

	(void)state_;
	assert_refused(weir_entity_watch(z, "other", 0, WEIR_WATCH_READ),
		       "z has no condition 'other': add it to \"conditions\" of the entity");
	assert_refused(watch(z, 1 << 20, WEIR_WATCH_READ),
		       "descriptor 1048576 cannot be watched: it is not open");
	assert_refused(watch(z, 0, 0), "WEIR_WATCH_READ, WEIR_WATCH_WRITE or both");
	assert_refused(watch(z, 0, 4), "descriptor 0 with events 4 cannot be watched");
	assert_refused(watch(z, -2, WEIR_WATCH_READ), "descriptor -2");
	assert_refused(watch(z, -1, WEIR_WATCH_READ), "0 with -1");
	assert_int_equal(watch(z, 0, WEIR_WATCH_READ), WEIR_OK);
	assert_int_equal(watch(z, -1, 0), WEIR_OK);
	rig_make(rig);
	rig_destroy(rig);
}

TEST(c09_f40_a_watch_without_memory_is_refused_and_the_next_one_is_made)
{
	struct rig *rig = rig_of("z:call condition=file_descriptor");
	weir_entity *z = weir_graph_entity(rig->graph, "z");

	(void)state_;
	wr_memory_fail_at(0, true);
	assert_int_equal(watch(z, 0, WEIR_WATCH_READ), WEIR_E_NOMEM);
	wr_memory_fail_at(-1, false);
	assert_int_equal(watch(z, 0, WEIR_WATCH_READ), WEIR_OK);
	rig_make(rig);
	rig_destroy(rig);
}

/* --- what is said --- */

static weir_status watch_pipe(struct rig *rig, weir_context *context)
{
	(void)rig;
	return watch(weir_context_entity(context), ends[0], WEIR_WATCH_READ);
}

static void wait_for_long(void)
{
	struct rig *rig = rig_of("z:call condition=file_descriptor; y:call condition=file_descriptor");

	assert_int_equal(pipe(ends), 0);
	rig_entity(rig, "z")->start = watch_pipe;
	rig_start(rig);
	assert_int_equal(weir_scheduler_wait(rig->scheduler, 3 * SECOND, NULL), WEIR_E_TIMEOUT);
	assert_says(rig_explain(rig), "z: file_descriptor: WAIT_EVENT (has waited 3 s for descriptor ");
	assert_says(rig_explain(rig), "y: file_descriptor: WAIT_EVENT (no descriptor is watched)");
	weir_scheduler_stop(rig->scheduler, WEIR_STOP_DRAIN);
	assert_int_equal(rig_wait(rig), WEIR_OK);
	rig_destroy(rig);
	close(ends[0]);
	close(ends[1]);
}

TEST(c09_explain_says_how_long_a_descriptor_was_waited_for_or_that_there_is_none)
{
	(void)state_;
	rig_in_world(1, wait_for_long);
}

/* --- the second number of a file --- */

static struct rlimit allowed;

static weir_status watch_pipe_with_no_descriptor_left(struct rig *rig, weir_context *context)
{
	struct rlimit none = {1, allowed.rlim_max};

	HOLDS(rig, !setrlimit(RLIMIT_NOFILE, &none)); /* what is open stays open */
	return watch_pipe(rig, context);
}

static void watch_twice(void)
{
	struct rig *rig = rig_of("z:call condition=file_descriptor; y:call condition=file_descriptor");

	assert_int_equal(pipe(ends), 0);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &allowed), 0);
	rig_entity(rig, "z")->start = watch_pipe;
	rig_entity(rig, "y")->start = watch_pipe_with_no_descriptor_left;
	rig_start(rig);
	assert_int_equal(rig_wait(rig), WEIR_E_IO);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &allowed), 0);
	assert_says(rig->outcome.text, "condition 'file_descriptor' cannot watch descriptor ");
	assert_says(rig->outcome.text, "Too many open files");
	rig_destroy(rig);
	close(ends[0]);
	close(ends[1]);
}

TEST(c09_a_second_watch_of_a_descriptor_that_needs_one_more_fails_the_run)
{
	(void)state_;
	rig_on_host(watch_twice);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(c09_what_cannot_be_watched_is_refused_at_the_call),
		cmocka_unit_test(c09_f40_a_watch_without_memory_is_refused_and_the_next_one_is_made),
		cmocka_unit_test(c09_explain_says_how_long_a_descriptor_was_waited_for_or_that_there_is_none),
		cmocka_unit_test(c09_a_second_watch_of_a_descriptor_that_needs_one_more_fails_the_run),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
