/* Counts needless wake-ups: the linker wraps the library's writes to its eventfds. */
#include <sched.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/thread.h"
#include "rig_inside.h"
#include "rig_streams.h"

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

/* No worker is awake and no signal outstanding, but a time is set: it holds the run open, not the streams. */
static void sleep_beside_a_time(void)
{
	struct rig *rig = rig_of("s:source ticks=100 period=2ms work=50us -> c:end gate=in");
	unsigned before = wr_load(&eventfd_writes);

	rig->options.signal = "flag"; /* a callback that fires kicks the loop, too */
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_int_equal(rig_ticks(rig, "c"), 100);
	assert_in_range(wr_load(&eventfd_writes) - before, 0, 60);
	rig_destroy(rig);
}

TEST(xb26_e02_while_a_time_is_set_the_last_worker_to_sleep_does_not_kick_the_loop)
{
	(void)state_;
	rig_on_host(sleep_beside_a_time);
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

/* --- what is left to the device while an entity waits for it --- */

static _Thread_local unsigned kicks; /* of the loop, by this thread */

void __real_wr_system_kick(struct wr_system *system);
void __wrap_wr_system_kick(struct wr_system *system);
void __wrap_wr_system_kick(struct wr_system *system)
{
	kicks++;
	__real_wr_system_kick(system);
}

static int rest(const void *arguments)
{
	weir_sleep(*(const int64_t *)arguments);
	return 0;
}

static const weir_kernel resting = {sizeof(weir_kernel), "rest", rest, NULL};

/* Returns the fence of work on a stream of the program's. */
static weir_fence work_for(weir_graph *graph, int64_t ns)
{
	weir_stream *stream = NULL;
	weir_fence fence = {0, 0};

	assert_int_equal(weir_graph_add_stream(graph, 0, &stream), WEIR_OK);
	assert_int_equal(weir_stream_launch(stream, &resting, &ns, sizeof ns), WEIR_OK);
	assert_int_equal(weir_stream_record(stream, &fence), WEIR_OK);
	return fence;
}

static weir_status emit_block(struct rig *rig, weir_context *context)
{
	weir_message *message = NULL;
	weir_status status = weir_context_create_tensor(context, &rig_one_number, WEIR_TENSOR_HOST, &message);

	(void)rig;
	return status ? status : weir_context_emit(context, 0, message);
}

static bool is_refused(struct rig *rig)
{
	weir_pool_counts counts = {.size = sizeof counts};

	return !weir_scheduler_pool_counts(rig->scheduler, 0, &counts) && counts.refused;
}

/* Other work keeps the watch awake, which would be woken otherwise. */
static void drop_what_is_waited_for(void)
{
	weir_message *message = NULL;
	weir_outlet *outlet;
	struct rig *rig;

	rig_resources = "{\"m\": {\"type\": \"memory_pool\", \"place\": \"host\", \"block_size\": 8, "
			"\"blocks\": 1}}";
	rig = rig_of("a:call pool=m count=2; source ticks=1 work=200ms -> c:call");
	rig_resources = NULL;
	rig_on(rig, "a", emit_block);
	outlet = rig_outlet(rig, "a.out", 1, 0);
	rig_start(rig);
	assert_int_equal(weir_outlet_take(outlet, SECOND, &message), WEIR_OK);
	while (!is_refused(rig) || !rig_ticks(rig, "c"))
		weir_sleep(MS);
	assert_int_equal(weir_message_add_reader(message, work_for(rig->graph, 20 * MS)), WEIR_OK);
	kicks = 0;
	weir_message_unref(message);
	assert_true(kicks > 0);
	assert_true(rig_take(outlet, SECOND) != WEIR_E_TIMEOUT);
	assert_int_equal(rig_wait(rig), WEIR_OK);
	rig_destroy(rig);
}

TEST(s03_t04_what_is_left_to_the_device_kicks_the_loop_if_an_entity_waits_for_it)
{
	(void)state_;
	rig_in_world(1, drop_what_is_waited_for);
}

/* --- a worker that polls the flags in passing, while another one goes to sleep --- */

/* A worker polls in passing at each 61st pop, and a pop is up to 8 ticks (scheduler/scheduler.h). */
enum { MOST_TICKS = 61 * 8, LEAST_TICKS = MOST_TICKS - 100 };

static struct {
	enum { BEFORE, LAST_TICK, POLLING, POLLED } state;
	unsigned by_workers; /* polls since then */
	int64_t ticks;       /* of `a` */
} passing;

int64_t __real_wr_flags_poll(struct wr_system *system, int64_t now);
int64_t __wrap_wr_flags_poll(struct wr_system *system, int64_t now);
int64_t __wrap_wr_flags_poll(struct wr_system *system, int64_t now)
{
	if (passing.state == POLLED && wr_thread_local())
		passing.by_workers++; /* in worlds alone: not written where threads are real */
	if (passing.state == LAST_TICK && wr_thread_local()) {
		passing.state = POLLING;
		weir_sleep(10 * MS); /* the other one ends its tick, finds a poller, sleeps */
		passing.state = POLLED;
		now = wr_now();
	}
	return __real_wr_flags_poll(system, now);
}

static weir_status tick_until_polling(struct rig *rig, weir_context *context)
{
	(void)rig;
	(void)context;
	while (passing.state < POLLING)
		weir_sleep(10 * US);
	return WEIR_OK;
}

static weir_status tick_on(struct rig *rig, weir_context *context)
{
	(void)rig;
	weir_sleep(US);
	if (rig_tick(context) + 1 < passing.ticks)
		return WEIR_OK;
	passing.state = LAST_TICK;
	return weir_context_finish(context);
}

/* What the poll finds keeps its worker busy for long: another one must poll for `late`. */
static weir_status tick_for_long(struct rig *rig, weir_context *context)
{
	(void)context;
	weir_sleep(30 * MS);
	HOLDS(rig, passing.by_workers > 0);
	return WEIR_OK;
}

/* After its last tick `a` leaves nothing to do, so that the other worker may sleep. */
static void poll_in_passing(void)
{
	for (int64_t ticks = LEAST_TICKS; ticks <= MOST_TICKS; ticks++) {
		struct rig *rig = rig_of("soon:source ticks=1 work=5ms -> x:host gate=in,flag; "
					 "late:source ticks=1 work=100ms -> end gate=in,flag; "
					 "b:call count=1; a:call");

		memset(&passing, 0, sizeof passing);
		passing.ticks = ticks;
		rig_on(rig, "b", tick_until_polling);
		rig_on(rig, "a", tick_on);
		rig_on(rig, "x", tick_for_long);
		assert_int_equal(rig_run(rig), WEIR_OK);
		assert_int_equal(passing.state, POLLED);
		rig_destroy(rig);
	}
	memset(&passing, 0, sizeof passing);
}

TEST(g04_s09_a_worker_that_polled_in_passing_wakes_another_one_for_it)
{
	(void)state_;
	rig_in_world(1, poll_in_passing);
}

/*
 * At its bound of ticks in flight the entity has the device write a flag behind the fence, for which nothing
 * waits: the callback of the kick comes before that write. Without another kick the watch would find it.
 */
static void flag_behind_the_kick(void)
{
	struct rig *rig = rig_of("source ticks=1 work=1ms in_flight=1 -> end gated=false");

	rig_with_knobs(
		rig, "flag",
		(struct wr_sim_knobs){
			.call_min = 1 * MS, .call_max = 1 * MS, .flag_min = 10 * MS, .flag_max = 10 * MS});
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_in_range(rig->outcome.duration_ns, 10 * MS, 20 * MS);
	rig_destroy(rig);
}

TEST(s04_g04_a_kick_that_comes_before_the_flag_comes_again)
{
	(void)state_;
	rig_in_world(1, flag_behind_the_kick);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(xb26_pushes_into_a_sleeping_run_without_device_work_do_not_kick_the_loop),
		cmocka_unit_test(
			xb26_e02_while_a_time_is_set_the_last_worker_to_sleep_does_not_kick_the_loop),
		cmocka_unit_test(xb26_the_last_worker_to_sleep_has_streams_with_work_queried),
		cmocka_unit_test(s03_t04_what_is_left_to_the_device_kicks_the_loop_if_an_entity_waits_for_it),
		cmocka_unit_test(g04_s09_a_worker_that_polled_in_passing_wakes_another_one_for_it),
		cmocka_unit_test(s04_g04_a_kick_that_comes_before_the_flag_comes_again),
		cmocka_unit_test(s04_e02_a_run_ends_when_its_last_payload_is_free),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
