/* F40: when one allocation fails, or all from one on, there is a status, no leak and nothing half-built. */
#include <dirent.h>

#include "base/clock.h"
#include "base/memory.h"
#include "rig.h"
#include "sim/simulation.h"
#include "test.h"

enum { MOST = 5000 };

struct attempt {
	struct rig_waker waker;
	struct wr_system *system;
	weir_stream *stream;
};

/* An inline signal, or OK if the fence is complete by now. */
static weir_status inline_or_not(struct attempt *attempt, const weir_fence *fence, wr_token *token)
{
	weir_status status = wr_signal_inline(attempt->system, 1, fence, 1, token);

	return status == WEIR_E_UNSUPPORTED ? WEIR_OK : status;
}

/* Calls everything that allocates, until a call fails. */
static weir_status use(struct attempt *attempt)
{
	weir_fence fence;
	wr_token token;
	void *memory;
	weir_status status =
		wr_stream_open(attempt->system, &(struct wr_stream_spec){0}, "s", &attempt->stream);

	if (!status)
		status = wr_system_alloc(attempt->system, 0, 100, &memory);
	if (!status)
		status = weir_stream_record(attempt->stream, &fence);
	if (!status)
		status = inline_or_not(attempt, &fence, &token);
	if (!status)
		status = wr_signal_arm(attempt->system, 1, &fence, 1, &token);
	if (!status)
		status = wr_fence_wait(attempt->system, fence, wr_now() + 1000000000);
	return status;
}

static weir_status attempt_all(void)
{
	struct wr_system_options options = {.backend = "host", .host_threads = 1};
	struct attempt attempt = {0};
	weir_status status = wr_system_create(&attempt.system, &options);

	if (status)
		return status;
	rig_fill_waker(&attempt.waker);
	wr_system_attach(attempt.system, &attempt.waker.waker);
	status = use(&attempt);
	wr_memory_fail_at(-1, false);
	wr_system_detach(attempt.system);
	wr_stream_close(attempt.stream);
	assert_int_equal(wr_system_destroy(attempt.system), WEIR_OK);
	return status;
}

static void fail_each(bool all)
{
	weir_status status = WEIR_E_NOMEM;
	int64_t needed = wr_memory_count();
	int64_t n = 0;

	assert_int_equal(attempt_all(), WEIR_OK);
	needed = wr_memory_count() - needed;
	assert_in_range(needed, 1, MOST);
	needed += 8; /* how many operations lie in a queue at a time is the threads' affair */
	for (; n <= needed; n += n < 40 || n > 256 ? 1 : 37) { /* the many events in between are alike */
		wr_memory_fail_at(n, all);
		status = attempt_all();
		wr_memory_fail_at(-1, false);
		assert_true(status == WEIR_E_NOMEM || status == WEIR_OK);
	}
	assert_int_equal(status, WEIR_OK);
}

static void f40_any_one_allocation_fails(void **state)
{
	(void)state;
	fail_each(false);
}

static void f40_all_allocations_fail_from_one_on(void **state)
{
	(void)state;
	fail_each(true);
}

static void alloc_strictly(void *arg)
{
	struct wr_system_options options = {.backend = "sim", .sim = arg, .strict = true};
	struct wr_system *system = NULL;
	void *device = NULL, *host = NULL;

	assert_int_equal(wr_system_create(&system, &options), WEIR_OK);
	assert_int_equal(wr_system_alloc(system, 0, 100, &device), WEIR_OK);
	assert_int_equal(wr_system_alloc(system, WEIR_DEVICE_HOST, 100, &host), WEIR_OK);
	assert_true(wr_system_is_closed(system, device));
	assert_false(wr_system_is_closed(system, host));
	wr_system_free(system, 0, device, 100);
	wr_system_free(system, WEIR_DEVICE_HOST, host, 100);
	assert_int_equal(wr_system_destroy(system), WEIR_OK);
}

static void xb56_only_device_memory_is_closed(void **state)
{
	struct wr_sim *sim;

	(void)state;
	assert_int_equal(wr_sim_create(&sim, 1, WR_SIM_BY_SEED), WEIR_OK);
	assert_int_equal(wr_sim_call(sim, alloc_strictly, sim), WEIR_OK);
	wr_sim_destroy(sim);
}

/* --- simulated workers --- */

static size_t count_threads(void)
{
	DIR *tasks = opendir("/proc/self/task");
	size_t count = 0;

	assert_non_null(tasks);
	while (readdir(tasks))
		count++;
	closedir(tasks);
	return count;
}

/* Opens a stream of the last device where there is no fiber. Returns false if the system was not made without
 * that memory. */
static bool open_outside(int64_t without)
{
	struct wr_system_options options = {.backend = "sim", .devices = 2};
	struct wr_stream_spec spec = {.device = 1};
	struct wr_system *system = NULL;
	weir_stream *stream = NULL;
	weir_status status;
	size_t threads;

	assert_int_equal(wr_sim_create(&options.sim, 1, WR_SIM_BY_SEED), WEIR_OK);
	wr_memory_fail_at(without, false);
	status = wr_system_create(&system, &options);
	wr_memory_fail_at(-1, false);
	if (!status) {
		threads = count_threads();
		assert_int_equal(wr_stream_open(system, &spec, "s", &stream), WEIR_OK);
		assert_true(count_threads() <= threads); /* one that was joined may still be going */
		wr_stream_close(stream);
		assert_int_equal(wr_system_destroy(system), WEIR_OK);
	}
	wr_sim_destroy(options.sim);
	return !status;
}

/* A thread that runs streams of a simulation would be none of its fibers. */
static void f40_a_simulated_device_with_too_few_workers_gets_no_thread(void **state)
{
	int made = 0;

	(void)state;
	for (int64_t n = 0; n < 30; n++)
		made += open_outside(n);
	assert_in_range(made, 1, 29);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(f40_any_one_allocation_fails),
		cmocka_unit_test(f40_all_allocations_fail_from_one_on),
		cmocka_unit_test(xb56_only_device_memory_is_closed),
		cmocka_unit_test(f40_a_simulated_device_with_too_few_workers_gets_no_thread),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
