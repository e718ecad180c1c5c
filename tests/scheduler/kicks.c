/* Counts needless wake-ups: the linker wraps the library's writes to its eventfds. */
#include <sched.h>
#include <unistd.h>

#include "rig_inside.h"

#define TEST(name) static void name(void **state_)

static _Atomic unsigned eventfd_writes;

ssize_t __real_write(int fd, const void *buffer, size_t size);
ssize_t __wrap_write(int fd, const void *buffer, size_t size);
ssize_t __wrap_write(int fd, const void *buffer, size_t size)
{
	if (size == sizeof(uint64_t))
		wr_fetch_add(&eventfd_writes, 1);
	return __real_write(fd, buffer, size);
}

static void until_all_sleep(weir_scheduler *scheduler)
{
	while (!rig_all_asleep(scheduler))
		sched_yield();
}

static void push_into_sleep(void)
{
	struct rig *rig = rig_of("p:pass -> end");
	weir_inlet *inlet;
	unsigned before;

	rig->options.workers = 1;
	assert_int_equal(weir_graph_add_inlet(rig->graph, "p.in", &inlet), WEIR_OK);
	rig_start(rig);
	until_all_sleep(rig->scheduler);
	before = wr_load(&eventfd_writes);
	for (int64_t i = 0; i < 200; i++) {
		until_all_sleep(rig->scheduler);
		assert_int_equal(weir_inlet_push(inlet, rig_message(rig, i), -1), WEIR_OK);
	}
	until_all_sleep(rig->scheduler);
	assert_in_range(wr_load(&eventfd_writes) - before, 0, 10);
	weir_inlet_close(inlet);
	assert_int_equal(rig_wait(rig), WEIR_OK);
	assert_int_equal(rig_ticks(rig, "end"), 200);
	rig_destroy(rig);
}

TEST(xb26_pushes_into_a_sleeping_run_without_device_work_do_not_kick_the_loop)
{
	(void)state_;
	rig_on_host(push_into_sleep);
}

/* Without that only the next periodic watch would query them. */
static void last_sleeper_asks(void)
{
	struct rig *rig = rig_of("source ticks=1 work=5ms -> c:call; other:source enabled=false -> late:end");

	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_in_range(rig->outcome.duration_ns, 5 * MS, 8 * MS);
	rig_destroy(rig);
}

TEST(xb26_the_last_worker_to_sleep_has_streams_with_work_queried)
{
	(void)state_;
	rig_in_worlds(20, last_sleeper_asks);
}

/* Device memory is freed when the last work on it is complete; nothing waits for the
 * periodic watch. */
static void end_with_payload(void)
{
	struct rig *rig = rig_of("source ticks=4 work=300us -> pass work=300us -> end");

	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_in_range(rig->outcome.duration_ns, 600 * US, 5 * MS);
	rig_destroy(rig);
}

TEST(s04_e02_a_run_ends_when_its_last_payload_is_free)
{
	(void)state_;
	rig_in_worlds(50, end_with_payload);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(xb26_pushes_into_a_sleeping_run_without_device_work_do_not_kick_the_loop),
		cmocka_unit_test(xb26_the_last_worker_to_sleep_has_streams_with_work_queried),
		cmocka_unit_test(s04_e02_a_run_ends_when_its_last_payload_is_free),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
