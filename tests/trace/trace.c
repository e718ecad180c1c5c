/* Observers that are open get every event, in order; the others get none. */
#include "trace/trace.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "test.h"

static const struct wr_trace_options four = {.workers = 4};
static char told[1024];
static weir_status opens_with;

static void note(const char *observer, const char *what, unsigned long long a, unsigned long long b)
{
	size_t at = strlen(told);

	snprintf(told + at, sizeof told - at, "%s.%s %llu %llu\n", observer, what, a, b);
}

static weir_status open_listener(const struct wr_trace_options *options, void **self)
{
	assert_int_equal(options->workers, 4);
	*self = "a";
	return opens_with;
}

static weir_status open_without_tool(const struct wr_trace_options *options, void **self)
{
	(void)options, (void)self;
	return WEIR_OK;
}

static void closed(void *self)
{
	note(self, "close", 0, 0);
}

static int64_t begun_at;

static void tick_begin(void *self, int64_t at, unsigned lane, uint32_t entity, uint64_t tick)
{
	begun_at = at;
	assert_int_equal(lane, 2);
	note(self, "tick_begin", entity, tick);
}

static void tick_end(void *self, int64_t at, unsigned lane, uint32_t entity, uint64_t tick)
{
	assert_true(at >= begun_at && begun_at);
	assert_int_equal(lane, 2);
	note(self, "tick_end", entity, tick);
}

static void deliver(void *self, int64_t at, unsigned lane, uint32_t queue, uint64_t sequence)
{
	(void)at, (void)lane;
	note(self, "deliver", queue, sequence);
}

static const struct wr_observer listener = {
	.name = "listener",
	.open = open_listener,
	.close = closed,
	.tick_begin = tick_begin,
	.tick_end = tick_end,
	.deliver = deliver,
};
static const struct wr_observer unused = {
	.name = "unused", .open = open_without_tool, .close = closed, .tick_begin = tick_begin};

static int clear(void **state)
{
	(void)state;
	told[0] = '\0';
	opens_with = WEIR_OK;
	return 0;
}

static void nobody_listens_costs_no_trace(void **state)
{
	const struct wr_observer *const observers[] = {&unused};
	struct wr_trace *trace = NULL;

	(void)state;
	assert_int_equal(wr_trace_open_with(&four, observers, 1, &trace), WEIR_OK);
	assert_null(trace);
	wr_trace_tick_begin(trace, 2, 1, 2);
	wr_trace_close(trace);
	assert_string_equal(told, "");
}

static void who_listens_is_told_in_order(void **state)
{
	const struct wr_observer *const observers[] = {&unused, &listener};
	struct wr_trace *trace = NULL;

	(void)state;
	assert_int_equal(wr_trace_open_with(&four, observers, 2, &trace), WEIR_OK);
	wr_trace_tick_begin(trace, 2, 3, 70);
	wr_trace_tick_end(trace, 2, 3, 70);
	wr_trace_deliver(trace, 2, 9, 3);
	wr_trace_close(trace);
	assert_string_equal(told, "a.tick_begin 3 70\na.tick_end 3 70\na.deliver 9 3\na.close 0 0\n");
}

static void a_row_that_is_null_is_not_called(void **state)
{
	const struct wr_observer *const observers[] = {&listener};
	struct wr_trace *trace = NULL;

	(void)state;
	assert_int_equal(wr_trace_open_with(&four, observers, 1, &trace), WEIR_OK);
	wr_trace_entity(trace, 0, "read");
	wr_trace_worker(trace, 0);
	wr_trace_stream(trace, NULL, "read");
	wr_trace_ready(trace, 2, 0);
	wr_trace_wait(trace, 2, 0, WEIR_CAUSE_MESSAGES, 0, "in", "too few messages");
	wr_trace_drop(trace, 2, 0, 1);
	wr_trace_arm(trace, 2, 0, 1, WR_TRACE_FLAG);
	wr_trace_entity_done(trace, 2, 0);
	wr_trace_sleep_begin(trace, 0);
	wr_trace_sleep_end(trace, 0);
	wr_trace_close(trace);
	assert_string_equal(told, "a.close 0 0\n");
}

static void an_open_observer_is_found(void **state)
{
	const struct wr_observer *const observers[] = {&unused, &listener};
	struct wr_trace *trace = NULL;

	(void)state;
	assert_null(wr_trace_self(NULL, &listener));
	assert_int_equal(wr_trace_open_with(&four, observers, 2, &trace), WEIR_OK);
	assert_string_equal(wr_trace_self(trace, &listener), "a");
	assert_null(wr_trace_self(trace, &unused));
	wr_trace_close(trace);
}

static void an_observer_that_fails_undoes_the_others(void **state)
{
	static const struct wr_observer first = {.name = "first", .open = open_listener, .close = closed};
	const struct wr_observer *const observers[] = {&first, &listener};
	struct wr_trace *trace = NULL;

	(void)state;
	opens_with = WEIR_E_IO;
	assert_int_equal(wr_trace_open_with(&four, observers, 2, &trace), WEIR_E_IO);
	assert_null(trace);
	assert_string_equal(told, "");
}

static void f40_any_malloc_fails(void **state)
{
	const struct wr_observer *const observers[] = {&listener};
	struct wr_trace *trace = NULL;

	(void)state;
	wr_memory_fail_at(0, false);
	assert_int_equal(wr_trace_open_with(&four, observers, 1, &trace), WEIR_E_NOMEM);
	wr_memory_fail_at(-1, false);
	assert_null(trace);
	assert_string_equal(told, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(nobody_listens_costs_no_trace, clear),
		cmocka_unit_test_setup(who_listens_is_told_in_order, clear),
		cmocka_unit_test_setup(a_row_that_is_null_is_not_called, clear),
		cmocka_unit_test_setup(an_open_observer_is_found, clear),
		cmocka_unit_test_setup(an_observer_that_fails_undoes_the_others, clear),
		cmocka_unit_test_setup(f40_any_malloc_fails, clear),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
