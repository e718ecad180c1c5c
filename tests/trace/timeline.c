/* The rows of a timeline's file. Events are told to the observer with times of the test's own. */
#include "trace/timeline.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/memory.h"
#include "test.h"

#define TOLD wr_timeline

enum { BEGIN = 1000000, OUTSIDE = 64 };
static char text[1 << 16];

static void *open_with(size_t events)
{
	const struct wr_trace_options options = {
		.workers = 2, .observe = WEIR_OBSERVE_TRACE, .events = events};
	void *self = NULL;

	assert_int_equal(TOLD.open(&options, &self), WEIR_OK);
	TOLD.entity(self, 0, "read");
	TOLD.entity(self, 1, "blur");
	TOLD.queue(self, 0, 0, 1, "read.out", "blur.in", 4);
	TOLD.pool(self, 0, "images", 8, "blocks");
	TOLD.run_begin(self, BEGIN, 2);
	return self;
}

static int open_timeline(void **state)
{
	*state = open_with(0);
	return 0;
}

static int close_timeline(void **state)
{
	TOLD.close(*state);
	return 0;
}

static uint64_t write_text(void *self)
{
	const struct wr_timeline_about about = {.version = "9", .graph = "g", .where = "host"};
	struct wr_timeline_written written;
	int fd = memfd_create("timeline", MFD_CLOEXEC);
	ssize_t length;

	TOLD.run_end(self, BEGIN + 90000, 2);
	assert_int_equal(wr_timeline_write(self, &about, fd, &written), WEIR_OK);
	length = pread(fd, text, sizeof text - 1, 0);
	assert_true(length > 0 && length < (ssize_t)sizeof text - 1);
	text[length] = '\0';
	close(fd);
	return written.dropped;
}

static size_t count_of(const char *part)
{
	size_t count = 0;

	for (const char *at = text; (at = strstr(at, part)); at++)
		count++;
	return count;
}

/* The events but for metadata, in their order. */
static void expect(void *self, const char *wanted)
{
	const char *events;

	write_text(self);
	events = strstr(text, "{\"ph\":\"M\"");
	for (const char *next = events; next; next = strstr(next + 1, "{\"ph\":\"M\""))
		events = next;
	events = strchr(events, '\n') ? strchr(events, '\n') + 1 : "";
	assert_string_equal(events, wanted);
}

#define WORKER(phase, thread, time) "{\"ph\":\"" phase "\",\"pid\":1,\"tid\":" thread ",\"ts\":" time
#define ENTITY(phase, thread, time) "{\"ph\":\"" phase "\",\"pid\":3,\"tid\":" thread ",\"ts\":" time
#define ARROW(phase, thread, time)                                                                           \
	WORKER(phase, thread, time) ",\"name\":\"read.out -> blur.in\",\"cat\":\"message\",\"id\":\"0x0\""
#define DEPTH(time, depth)                                                                                   \
	"{\"ph\":\"C\",\"pid\":4,\"tid\":0,\"ts\":" time                                                     \
	",\"name\":\"read.out -> blur.in\",\"args\":{\"messages\":" depth "}}"

static void a_run_without_ticks_is_a_whole_file(void **state)
{
	write_text(*state);
	assert_memory_equal(text, "{\"displayTimeUnit\":\"ns\",\"otherData\":{\"weir_trace\":1,", 52);
	assert_int_equal(count_of("\"ph\":\"M\""), count_of("\"ph\":"));
	assert_string_equal(text + strlen(text) - 4, "\n]}\n");
}

static void a_message_goes_from_the_end_of_a_tick_to_the_begin_of_the_next(void **state)
{
	TOLD.ready(*state, BEGIN + 1000, 0, 0);
	TOLD.tick_begin(*state, BEGIN + 1001, 0, 0, 7);
	TOLD.tick_end(*state, BEGIN + 2000, 0, 0, 7);
	TOLD.deliver(*state, BEGIN + 2100, 0, 0, 0);
	TOLD.take(*state, BEGIN + 2200, 1, 0, 0);
	TOLD.tick_begin(*state, BEGIN + 2300, 1, 1, 0);
	TOLD.tick_end(*state, BEGIN + 3000, 1, 1, 0);
	expect(*state,
	       WORKER("B", "1", "1.001") ",\"name\":\"read\",\"args\":{\"tick\":7,\"ready\":1.000}},\n" ARROW("s", "1", "2.000") "},\n" DEPTH(
		       "2.100",
		       "1") ",\n" DEPTH("2.200",
					"0") ",\n" WORKER("B", "2",
							  "2.300") ",\"name\":\"blur\",\"args\":{\"tick\":0}}"
								   ",\n" ARROW(
									   "f", "2",
									   "2.300") ",\"bp\":\"e\"},"
										    "\n" WORKER("E", "1", "2.000") "},\n" WORKER(
											    "E", "2",
											    "3.000") "}\n]}"
												     "\n");
}

static void what_a_receiver_leaves_is_no_longer_in_its_queue(void **state)
{
	TOLD.deliver(*state, BEGIN + 1000, OUTSIDE, 0, 0);
	TOLD.deliver(*state, BEGIN + 2000, OUTSIDE, 0, 1);
	TOLD.entity_done(*state, BEGIN + 3000, 1, 1);
	TOLD.deliver(*state, BEGIN + 4000, OUTSIDE, 0, 2);
	write_text(*state);
	assert_non_null(strstr(text, DEPTH("2.000", "2")));
	assert_non_null(strstr(text, DEPTH("3.000", "0")));
	assert_non_null(strstr(text, DEPTH("4.000", "0")));
}

static void a_thread_that_is_no_worker_has_slices_without_length(void **state)
{
	TOLD.deliver(*state, BEGIN + 2000, OUTSIDE, 0, 0);
	TOLD.take(*state, BEGIN + 3000, OUTSIDE, 0, 0);
	expect(*state,
	       WORKER("B", "3", "2.000") ",\"name\":\"push\"},\n" ARROW("s", "3", "2.000") "},\n" WORKER("E", "3", "2.000") "},\n" DEPTH(
		       "2.000",
		       "1") ",\n" DEPTH("3.000",
					"0") ",\n" WORKER("B", "3",
							  "3.000") ",\"name\":\"take\"},"
								   "\n" ARROW(
									   "f", "3",
									   "3.000") ",\"bp\""
										    ":\"e\"}"
										    ","
										    "\n" WORKER(
											    "E", "3",
											    "3.000") "}\n]}"
												     "\n");
}

#define WAIT_OF(at, name, cause)                                                                             \
	ENTITY("B", "1001", at) ",\"name\":\"" name "\",\"args\":{\"cause\":\"" cause "\"}},\n"

static void a_wait_lasts_from_the_park_to_the_next_ready(void **state)
{
	static const char in[] = "in", few[] = "too few messages", room[] = "no room";

	TOLD.wait(*state, BEGIN + 1000, 0, 1, WEIR_CAUSE_MESSAGES, 0, in, few);
	TOLD.wait(*state, BEGIN + 2000, 1, 1, WEIR_CAUSE_MESSAGES, 0, in,
		  few); /* reviewed again, and still too few */
	TOLD.wait(*state, BEGIN + 3000, 1, 1, WEIR_CAUSE_ROOM, 0, in, room);
	TOLD.ready(*state, BEGIN + 4000, 0, 1);
	TOLD.wait(*state, BEGIN + 5000, 0, 1, WEIR_CAUSE_MESSAGES, 0, in, few);
	expect(*state, WAIT_OF("1.000", "in: too few messages", "messages")
			       ENTITY("E", "1001", "3.000") "},\n" WAIT_OF("3.000", "in: no room", "room")
				       ENTITY("E", "1001", "4.000") "},\n" WAIT_OF(
					       "5.000", "in: too few messages", "messages")
					       ENTITY("E", "1001", "90.000") "}\n]}\n");
}

static void a_tick_whose_thread_was_ended_ends_with_the_run(void **state)
{
	TOLD.tick_begin(*state, BEGIN + 1000, 0, 0, 0);
	expect(*state, WORKER("B", "1", "1.000") ",\"name\":\"read\",\"args\":{\"tick\":0}},\n" WORKER(
			       "E", "1", "90.000") "}\n]}\n");
}

static void a_sleep_ends_the_slice_of_the_tick_before(void **state)
{
	TOLD.tick_begin(*state, BEGIN + 1000, 0, 0, 0);
	TOLD.tick_end(*state, BEGIN + 2000, 0, 0, 0);
	TOLD.sleep_begin(*state, BEGIN + 3000, 0);
	TOLD.sleep_end(*state, BEGIN + 4000, 0);
	expect(*state,
	       WORKER("B", "1", "1.000") ",\"name\":\"read\",\"args\":{\"tick\":0}},\n" WORKER(
		       "E", "1",
		       "2.000") "},\n" WORKER("B", "1",
					      "3.000") ",\"name\":\"sleep\"},\n" WORKER("E", "1",
											"4.000") "}\n]}\n");
}

static void work_of_a_stream_does_not_overlap_and_says_what_was_measured(void **state)
{
	TOLD.device_work(*state, BEGIN + 9000, 0, 1, 0, "blur", 0, BEGIN + 1000, BEGIN + 3000,
			 WR_TRACE_TIMERS);
	TOLD.device_work(*state, BEGIN + 9100, 1, 1, 1, "blur", 0, BEGIN + 2900, BEGIN + 5000,
			 WR_TRACE_POLLER);
	TOLD.device_work(*state, BEGIN + 9200, 1, 1, 1, "copy", 0, BEGIN + 2900, BEGIN + 5000,
			 WR_TRACE_POLLER);
	write_text(*state);
	assert_non_null(strstr(text,
			       "{\"ph\":\"X\",\"pid\":2,\"tid\":1002,\"ts\":1.000,\"name\":\"blur\",\"dur\":"
			       "2.000,\"args\":{\"tick\":0,\"ns\":2000,\"source\":\"timers\"}}"));
	assert_non_null(strstr(text,
			       "\"ts\":3.000,\"name\":\"blur\",\"dur\":2.000,\"args\":{\"tick\":1,\"ns\":"
			       "2100,\"source\":\"flag\"}}"));
	assert_non_null(strstr(text, "\"tid\":1003,\"ts\":2.900"));
	assert_non_null(strstr(text, "\"args\":{\"name\":\"blur: copy\"}"));
	assert_int_equal(count_of("\"args\":{\"name\":\"blur\"}"), 2); /* the entity, and its stream */
}

static void counters_signals_and_drops_are_there(void **state)
{
	TOLD.flight(*state, BEGIN + 1000, 0, 1, 3);
	TOLD.pool_used(*state, BEGIN + 2000, 0, 0, 5);
	TOLD.arm(*state, BEGIN + 3000, 0, 1, 77, WR_TRACE_FLAG);
	TOLD.fire(*state, BEGIN + 4000, OUTSIDE, 1, 77);
	TOLD.complete(*state, BEGIN + 5000, 0, 1, 12);
	TOLD.entity_done(*state, BEGIN + 6000, 0, 1);
	TOLD.steal(*state, BEGIN + 7000, 1, 1);
	write_text(*state);
	assert_non_null(strstr(text, "\"ts\":1.000,\"name\":\"blur\",\"args\":{\"ticks\":3}}"));
	assert_non_null(strstr(text, "\"ts\":2.000,\"name\":\"images\",\"args\":{\"blocks\":5}}"));
	assert_non_null(strstr(text,
			       ENTITY("i", "1001", "3.000") ",\"name\":\"signal armed\",\"s\":\"t\",\"args\":"
							    "{\"kind\":\"flag\",\"token\":77}}"));
	assert_non_null(strstr(
		text, ENTITY("i", "1001",
			     "4.000") ",\"name\":\"signal fired\",\"s\":\"t\",\"args\":{\"token\":77}}"));
	assert_non_null(strstr(text, ",\"name\":\"complete\",\"s\":\"t\",\"args\":{\"tick\":12}}"));
	assert_non_null(strstr(text, ",\"name\":\"done\""));
	assert_non_null(strstr(text, WORKER("i", "2", "7.000") ",\"name\":\"steal\",\"s\":\"t\",\"args\":"
							       "{\"entity\":\"blur\"}}"));
}

static void a_dropped_message_leaves_the_queue(void **state)
{
	TOLD.tick_begin(*state, BEGIN + 1000, 0, 0, 0);
	TOLD.deliver(*state, BEGIN + 1100, 0, 0, 0);
	TOLD.drop(*state, BEGIN + 1100, 0, 0, 0);
	write_text(*state);
	assert_non_null(strstr(text, DEPTH("1.100", "1") ",\n" DEPTH("1.100", "0")));
	assert_non_null(strstr(text, "\"name\":\"drop\",\"s\":\"t\",\"args\":{\"queue\":\"read.out -> "
				     "blur.in\",\"sequence\":0}}"));
}

static void a_replay_after_compute_lies_in_the_slice_of_its_tick(void **state)
{
	TOLD.tick_begin(*state, BEGIN + 1000, 0, 0, 0);
	TOLD.tick_end(*state, BEGIN + 2000, 0, 0, 0);
	TOLD.replay_begin(*state, BEGIN + 2100, 0, 0, false);
	TOLD.replay_end(*state, BEGIN + 2500, 0, 0);
	expect(*state,
	       WORKER("B", "1", "1.000") ",\"name\":\"read\",\"args\":{\"tick\":0}},\n" WORKER(
		       "B", "1",
		       "2.100") ",\"name\":\"replay\"},\n" WORKER("E", "1",
								  "2.500") "},\n" WORKER("E", "1",
											 "2.500") "}\n]}\n");
}

/* Of 12 messages the ring of worker 0 has the last ones; the receiver's ring has all. */
static void a_file_that_begins_late_has_no_half_messages(void **state)
{
	void *self = open_with(8);

	(void)state;
	for (uint64_t i = 0; i < 12; i++) {
		int64_t at = BEGIN + (int64_t)i * 1000;

		TOLD.tick_begin(self, at, 0, 0, i);
		TOLD.tick_end(self, at + 100, 0, 0, i);
		TOLD.deliver(self, at + 110, 0, 0, i);
		if (i % 4 == 3) { /* the last four at once, of them two from before */
			for (uint64_t k = i - 3; k <= i; k++)
				TOLD.take(self, at + 200, 1, 0, k);
			TOLD.tick_begin(self, at + 300, 1, 1, i / 4);
			TOLD.tick_end(self, at + 400, 1, 1, i / 4);
		}
	}
	assert_true(write_text(self) > 0);
	assert_int_equal(count_of("\"ph\":\"s\""), 3);
	assert_int_equal(count_of("\"ph\":\"f\""), 3);
	assert_int_equal(count_of("\"ph\":\"B\""), count_of("\"ph\":\"E\""));
	assert_null(strstr(text, "\"messages\":18446744073709551615"));
	assert_null(strstr(text, "\"dropped_records\":0"));
	TOLD.close(self);
}

static void what_was_not_declared_is_left_out(void **state)
{
	TOLD.tick_begin(*state, BEGIN, 0, 9, 0);
	TOLD.deliver(*state, BEGIN, 0, 9, 0);
	TOLD.pool_used(*state, BEGIN, 0, 9, 1);
	expect(*state, "]}\n");
}

static void names_are_escaped(void **state)
{
	TOLD.wait(*state, BEGIN, 0, 0, WEIR_CAUSE_OWN, 0, "a\"b", "c\\d\n\x01");
	write_text(*state);
	assert_non_null(strstr(text, "\"name\":\"a\\\"b: c\\\\d\\n\\u0001\""));
}

static void a_second_run_forgets_the_first(void **state)
{
	TOLD.tick_begin(*state, BEGIN, 0, 0, 3);
	TOLD.run_end(*state, BEGIN, 2);
	TOLD.entity(*state, 0, "read"); /* declarations precede each run */
	TOLD.entity(*state, 1, "blur");
	TOLD.run_begin(*state, BEGIN, 2);
	write_text(*state);
	assert_int_equal(count_of("\"ph\":\"B\""), 0);
}

static void a_full_disk_is_reported(void **state)
{
	const struct wr_timeline_about about = {.version = "9", .graph = "g", .where = "host"};
	struct wr_timeline_written written;
	int fd = open("/dev/full", O_WRONLY | O_CLOEXEC);

	errno = 0;
	assert_int_equal(wr_timeline_write(*state, &about, fd, &written), WEIR_E_IO);
	assert_int_equal(errno, ENOSPC);
	close(fd);
}

static void f40_any_allocation_of_a_file_fails(void **state)
{
	const struct wr_timeline_about about = {.version = "9", .graph = "g", .where = "host"};
	struct wr_timeline_written written;
	int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
	weir_status status = WEIR_E_NOMEM;

	TOLD.device_work(*state, BEGIN, 0, 1, 0, "blur", 0, BEGIN, BEGIN + 1, WR_TRACE_TIMERS);
	for (int64_t n = 0; status == WEIR_E_NOMEM; n++) {
		assert_true(n < 64);
		wr_memory_fail_at(n, false);
		status = wr_timeline_write(*state, &about, fd, &written);
		wr_memory_fail_at(-1, false);
	}
	assert_int_equal(status, WEIR_OK);
	close(fd);
}

static void it_is_open_only_if_it_is_wanted(void **state)
{
	const struct wr_trace_options none = {.workers = 1},
				      one = {.workers = 1, .observe = WEIR_OBSERVE_TRACE};
	void *self = NULL;

	(void)state;
	assert_int_equal(TOLD.open(&none, &self), WEIR_OK);
	assert_null(self);
	wr_memory_fail_at(1, false);
	assert_int_equal(TOLD.open(&one, &self), WEIR_E_NOMEM);
	wr_memory_fail_at(-1, false);
	assert_null(self);
}

#define TIMELINE(test) cmocka_unit_test_setup_teardown(test, open_timeline, close_timeline)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TIMELINE(a_run_without_ticks_is_a_whole_file),
		TIMELINE(a_message_goes_from_the_end_of_a_tick_to_the_begin_of_the_next),
		TIMELINE(what_a_receiver_leaves_is_no_longer_in_its_queue),
		TIMELINE(a_thread_that_is_no_worker_has_slices_without_length),
		TIMELINE(a_wait_lasts_from_the_park_to_the_next_ready),
		TIMELINE(a_tick_whose_thread_was_ended_ends_with_the_run),
		TIMELINE(a_sleep_ends_the_slice_of_the_tick_before),
		TIMELINE(work_of_a_stream_does_not_overlap_and_says_what_was_measured),
		TIMELINE(counters_signals_and_drops_are_there),
		TIMELINE(a_dropped_message_leaves_the_queue),
		TIMELINE(a_replay_after_compute_lies_in_the_slice_of_its_tick),
		cmocka_unit_test(a_file_that_begins_late_has_no_half_messages),
		TIMELINE(what_was_not_declared_is_left_out),
		TIMELINE(names_are_escaped),
		TIMELINE(a_second_run_forgets_the_first),
		TIMELINE(a_full_disk_is_reported),
		TIMELINE(f40_any_allocation_of_a_file_fails),
		cmocka_unit_test(it_is_open_only_if_it_is_wanted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
