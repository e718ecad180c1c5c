/*
 * Descriptors in simulated worlds whose atomics are switching points (C9): one fiber writes to a pipe,
 * another changes what is watched, and no readiness is overlooked.
 */
#include <fcntl.h>
#include <unistd.h>

#include "base/thread.h"
#include "rig.h"
#include "tests/bugs/bug.h"

#define TEST(name) static void name(void **state_)

enum { BYTES = 12, SEEDS = 600 };

static int ends[2];
static bool changes;
static unsigned overlooked; /* runs that had to be stopped */

static weir_status watch(weir_entity *entity, int fd)
{
	return weir_entity_watch(entity, "file_descriptor", fd, fd < 0 ? 0 : WEIR_WATCH_READ);
}

static weir_status watch_pipe(struct rig *rig, weir_context *context)
{
	(void)rig;
	return watch(weir_context_entity(context), ends[0]);
}

static weir_status read_byte(struct rig *rig, weir_context *context)
{
	char byte;
	ssize_t count = read(ends[0], &byte, 1);

	HOLDS(rig, count >= 0 || weir_context_tick(context));
	return count ? WEIR_OK : weir_context_finish(context);
}

/* Times that are near the loop's looks, which are 10 ms apart, and others. */
static void write_all(void *arg)
{
	(void)arg;
	for (int i = 0; i < BYTES; i++) {
		weir_sleep((i % 3) * 5 * MS);
		assert_int_equal(write(ends[1], "b", 1), 1);
	}
	close(ends[1]);
}

static void change_watch(void *entity)
{
	for (int i = 0; changes && i < 4; i++) {
		assert_int_equal(watch(entity, -1), WEIR_OK);
		weir_sleep(i * 3 * MS);
		assert_int_equal(watch(entity, ends[0]), WEIR_OK);
		weir_sleep(2 * MS);
	}
}

static void read_in_world(void)
{
	struct rig *rig = rig_of("z:call condition=file_descriptor");
	struct wr_thread writer, changer;

	assert_int_equal(pipe2(ends, O_NONBLOCK | O_CLOEXEC), 0);
	rig_on(rig, "z", read_byte);
	rig_entity(rig, "z")->start = watch_pipe;
	rig_start(rig);
	assert_int_equal(wr_thread_start(&writer, "writer", write_all, NULL), WEIR_OK);
	assert_int_equal(
		wr_thread_start(&changer, "changer", change_watch, weir_graph_entity(rig->graph, "z")),
		WEIR_OK);
	wr_thread_join(&writer);
	wr_thread_join(&changer);
	if (weir_scheduler_wait(rig->scheduler, SECOND, NULL) == WEIR_E_TIMEOUT) {
		overlooked++;
		weir_scheduler_stop(rig->scheduler, 0);
	} else {
		assert_int_equal(rig_ticks(rig, "z"), BYTES + 1);
	}
	assert_int_equal(rig_wait(rig), WEIR_OK);
	rig_destroy(rig);
	close(ends[0]);
}

static unsigned overlooked_with(enum wr_bug bug, bool changed)
{
	overlooked = 0;
	changes = changed;
	wr_bug_active = bug;
	rig_in_worlds(SEEDS, read_in_world);
	wr_bug_active = WR_BUG_NONE;
	return overlooked;
}

TEST(c09_no_readiness_is_overlooked)
{
	(void)state_;
	assert_int_equal(overlooked_with(WR_BUG_NONE, false), 0);
	assert_int_equal(overlooked_with(WR_BUG_NONE, true), 0);
}

TEST(c09_the_seeded_bugs_of_overlooked_readiness_are_found)
{
	(void)state_;
	assert_int_not_equal(overlooked_with(WR_BUG_DESCRIPTOR_POKE_FIRST, false), 0);
	assert_int_not_equal(overlooked_with(WR_BUG_DESCRIPTOR_SILENT, true), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(c09_no_readiness_is_overlooked),
		cmocka_unit_test(c09_the_seeded_bugs_of_overlooked_readiness_are_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
