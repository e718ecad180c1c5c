/* weir report in one process: its JSON reader, what it finds, what it writes into the page. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../base/test.h"
#include "cli/report.h"

/* The page of the tests. */
extern const char wr_page_html[], wr_page_style[], wr_page_script[];
const char wr_page_html[] = "<script>\n@run\n</script>\n@findings\n@frames\n@style\n@script\n@other\n";
const char wr_page_style[] = "style";
const char wr_page_script[] = "script";

struct text {
	char *bytes;
	size_t length;
};

static struct text file_text(const char *path)
{
	struct text text = {calloc(1, 1 << 20), 0};
	FILE *file = fopen(path, "rb");

	assert_non_null(file);
	assert_non_null(text.bytes);
	text.length = fread(text.bytes, 1, (1 << 20) - 1, file);
	fclose(file);
	return text;
}

/* A copy that ends where the memory does, so that a sanitizer sees each byte read beyond it. */
static struct text copy_of(const char *bytes, size_t length)
{
	struct text text = {malloc(length + 1), length};

	assert_non_null(text.bytes);
	memcpy(text.bytes, bytes, length);
	text.bytes[length] = '\0';
	return text;
}

/* --- JSON --- */

static bool is_json(const char *bytes, size_t length)
{
	struct text text = copy_of(bytes, length);
	struct cli_json json = cli_json_of(text.bytes, text.length);
	bool good = cli_json_skip(&json) && cli_json_finish(&json);
	unsigned line, column;

	if (!good) {
		assert_non_null(json.fault);
		cli_json_place(&json, &line, &column);
		assert_true(line >= 1 && column >= 1);
	}
	free(text.bytes);
	return good;
}

/* JSONTestSuite: y_ is JSON, n_ is not; U+0000 in a string is refused. */
static void json_is_what_the_suite_says(void **state)
{
	DIR *folder = opendir("../graphs/json_suite");
	unsigned count = 0;

	(void)state;
	assert_non_null(folder);
	for (struct dirent *entry; (entry = readdir(folder)); count++) {
		char path[300];
		struct text text;
		bool good;

		snprintf(path, sizeof path, "../graphs/json_suite/%s", entry->d_name);
		if (!strstr(entry->d_name, ".json"))
			continue;
		text = file_text(path);
		good = is_json(text.bytes, text.length);
		if (entry->d_name[0] != 'i' && good != (entry->d_name[0] == 'y') &&
		    !strstr(entry->d_name, "null"))
			fail_msg("%s: %d", entry->d_name, good);
		free(text.bytes);
	}
	closedir(folder);
	assert_true(count > 300);
}

static void json_strings_are_decoded(void **state)
{
	static const char bytes[] = "\"a\\u00e9\\ud83d\\ude00\\n\\\"\\\\\\/\"";
	struct cli_json json = cli_json_of(bytes, strlen(bytes));
	struct cli_slice slice;
	char *text;

	(void)state;
	assert_true(cli_json_string(&json, &slice));
	text = cli_slice_decoded(slice);
	assert_string_equal(text, "a\xc3\xa9\xf0\x9f\x98\x80\n\"\\/");
	free(text);
}

static void json_that_is_cut_says_so(void **state)
{
	static const char bytes[] = "{\"a\": [1, -2.5e3, true, \"\\u00e9x\", {}], \"b\": null}";

	(void)state;
	for (size_t length = 0; length < strlen(bytes); length++) {
		struct text text = copy_of(bytes, length);
		struct cli_json json = cli_json_of(text.bytes, length);

		assert_false(cli_json_skip(&json));
		assert_true(json.cut);
		free(text.bytes);
	}
}

/* --- the page --- */

static char *printed_json(const char *bytes)
{
	static char out[4096];
	FILE *to = fmemopen(out, sizeof out, "w");

	cli_page_json(to, bytes, strlen(bytes));
	fclose(to);
	return out;
}

static void data_cannot_end_its_element(void **state)
{
	(void)state;
	assert_string_equal(printed_json("{\"</script><!--\": 1}"), "{\"\\u003c/script>\\u003c!--\": 1}");
	assert_string_equal(printed_json("\"\xe2\x80\xa8\xe2\x80\xa9\xe2\x82\xac\""),
			    "\"\\u2028\\u2029\xe2\x82\xac\"");
	assert_string_equal(printed_json("\"\xe2\xc2\x9b\x7f"), "\"\\xe2\\u009b\\u007f");
}

static void strings_are_json_strings(void **state)
{
	char out[256];
	FILE *to = fmemopen(out, sizeof out, "w");

	(void)state;
	cli_page_string(to, "a\"b\\c\n</script>\x01\xc3\xa9\xc2\x9b\xe2\x80\xae\x7f");
	fclose(to);
	assert_string_equal(out, "\"a\\\"b\\\\c\\n\\u003c/script>\\u0001\xc3\xa9\\u009b\\u202e\\u007f\"");
	assert_true(is_json(out, strlen(out)));
}

static void page_has_the_data_in_their_places(void **state)
{
	struct cli_recorded recorded = {0};
	struct cli_findings findings = {0};
	char out[512];
	FILE *to = fmemopen(out, sizeof out, "w");

	(void)state;
	cli_page_write(to, "{\"a\": \"<\"}", 10, &recorded, &findings, NULL);
	fclose(to);
	assert_string_equal(
		out, "<script>\n{\"a\": \"\\u003c\"}\n</script>\n{\"findings\": []}\n\nnull\nstyle\nscript\n"
		     "@other\n");
}

/* --- findings --- */

static struct cli_findings findings_of(const char *bytes)
{
	struct cli_recorded recorded;
	struct cli_findings findings;
	char fault[512];

	if (!cli_recorded_read(&recorded, bytes, strlen(bytes), fault))
		fail_msg("%s", fault);
	cli_findings_make(&findings, &recorded);
	cli_recorded_finish(&recorded);
	for (size_t i = 0; i < findings.count; i++)
		findings.list[i].what = NULL; /* was the record's */
	return findings;
}

#define RUN(entities, more)                                                                                  \
	"{\"weir_statistics\": 1, \"duration\": 1000000, \"entities\": [" entities "]" more "}"
#define ENTITY(name, ticks, submit, more)                                                                    \
	"{\"name\": \"" name "\", \"ticks\": " #ticks ", \"submit\": {\"count\": " #ticks                    \
	", \"sum\": " #submit "}" more "}"
#define WAIT(cause, sum)                                                                                     \
	"{\"cause\": \"" cause                                                                               \
	"\", \"of\": \"of\", \"why\": \"why\", \"time\": {\"count\": 9, \"sum\": " #sum "}}"
#define WAITS(waits) ", \"waits\": [" waits "]"
#define QUEUE(sender, receiver, capacity, more)                                                              \
	"{\"from\": \"" sender ".out\", \"to\": \"" receiver ".in\", \"sender\": \"" sender                  \
	"\", \"receiver\": \"" receiver "\", \"capacity\": " #capacity more "}"

static void one_finding(const char *bytes, enum cli_cause cause, size_t entity, const char *part)
{
	struct cli_findings findings = findings_of(bytes);

	assert_int_equal(findings.count, 1);
	assert_string_equal(cli_cause_text(findings.list[0].cause), cli_cause_text(cause));
	assert_int_equal(findings.list[0].entity, entity);
	if (!strstr(findings.list[0].text, part))
		fail_msg("%s", findings.list[0].text);
}

static void slow_compute_is_found(void **state)
{
	(void)state;
	one_finding(RUN(ENTITY("a", 100, 240000, "") "," ENTITY("b", 100, 970000, "") "," ENTITY("c", 100,
												 250000, ""),
			""),
		    CLI_CAUSE_COMPUTE, 1,
		    "'b' is in compute for 97 % of the run (9.7 us a tick), others for 25 %");
}

static void compute_that_waits_is_found(void **state)
{
	(void)state;
	one_finding(RUN(ENTITY("a", 100, 240000, "") "," ENTITY(
				"b", 100, 970000, ", \"blocked\": {\"count\": 100, \"sum\": 900000}"),
			""),
		    CLI_CAUSE_BLOCKS, 1, "93 % of that it waits there");
}

static void device_work_is_found(void **state)
{
	(void)state;
	one_finding(RUN(ENTITY("a", 100, 240000, "") "," ENTITY(
				"b", 100, 10000, ", \"gpu_span\": {\"count\": 2, \"sum\": 19000}"),
			""),
		    CLI_CAUSE_DEVICE, 1, "takes 9.5 us a tick and goes on for 95 % of the run");
}

static void equally_busy_stages_are_balanced(void **state)
{
	(void)state;
	assert_int_equal(findings_of(RUN(ENTITY("a", 100, 940000, "") "," ENTITY(
						 "b", 100, 970000, "") "," ENTITY("c", 100, 850000, ""),
					 ""))
				 .count,
			 0);
}

static void stages_with_little_to_do_are_balanced(void **state)
{
	(void)state;
	assert_int_equal(findings_of(RUN(ENTITY("a", 100, 1000, WAITS(WAIT("time", 900000))) "," ENTITY(
						 "b", 100, 300000, WAITS(WAIT("messages", 700000))),
					 ""))
				 .count,
			 0);
}

static void full_queue_before_an_idle_receiver_is_found(void **state)
{
	(void)state;
	one_finding(RUN(ENTITY("a", 100, 240000, WAITS(WAIT("room", 700000))) "," ENTITY(
				"b", 100, 250000, WAITS(WAIT("messages", 700000))),
			", \"queues\": [" QUEUE("a", "b", 1,
						", \"depth\": {\"mean\": 0.8, \"full_time\": 800000}") "]"),
		    CLI_CAUSE_QUEUE, 1, "the queue a.out -> b.in of 1 is full 80 % of the run");
}

static const char of_two[] =
	", \"queues\": [" QUEUE("a", "b", 1, ", \"depth\": {\"mean\": 0.8, \"full_time\": 800000}") "]";

static void words_of_a_reason_turn_no_finding(void **state)
{
	char text[1024];

	(void)state;
	snprintf(
		text, sizeof text, "%s%s}",
		"{\"weir_statistics\": 1, \"duration\": 1000000, \"entities\": [" ENTITY(
			"a", 100, 240000,
			WAITS(WAIT(
				"room",
				700000))) "," ENTITY("b", 100, 250000,
						     WAITS("{\"cause\": \"own\", \"of\": \"warm\", \"why\": "
							   "\"the device: too few messages\", "
							   "\"time\": {\"count\": 9, \"sum\": 700000}}")) "]",
		of_two);
	assert_int_equal(findings_of(text).count, 0);
}

static bool lacks_causes(const char *wait)
{
	struct cli_recorded recorded;
	char text[512], fault[512];
	bool lacks;

	snprintf(text, sizeof text,
		 "{\"weir_statistics\": 1, \"duration\": 9, \"entities\": [{\"name\": \"a\", \"ticks\": 1, "
		 "\"waits\": [{%s\"of\": \"in\", \"why\": \"too few messages\"}]}]}",
		 wait);
	assert_true(cli_recorded_read(&recorded, text, strlen(text), fault));
	lacks = cli_recorded_lacks_causes(&recorded);
	cli_recorded_finish(&recorded);
	return lacks;
}

static void waits_of_another_version_have_no_cause(void **state)
{
	(void)state;
	assert_false(lacks_causes("\"cause\": \"messages\", \"on\": \"in\", "));
	assert_true(lacks_causes(""));
	assert_true(lacks_causes("\"cause\": null, "));
	assert_true(lacks_causes("\"cause\": \"gravity\", \"on\": null, "));
}

/* The queue passes on that its receiver is slow. */
static void full_queue_before_a_busy_receiver_is_none(void **state)
{
	(void)state;
	one_finding(
		RUN(ENTITY("a", 100, 240000, WAITS(WAIT("room", 700000))) "," ENTITY("b", 100, 980000, ""),
		    ", \"queues\": [" QUEUE("a", "b", 1,
					    ", \"depth\": {\"mean\": 0.8, \"full_time\": 800000}") "]"),
		CLI_CAUSE_COMPUTE, 1, "'b'");
}

static void device_that_is_behind_is_found_without_its_times(void **state)
{
	(void)state;
	one_finding(RUN(ENTITY("a", 100, 1000, WAITS(WAIT("room", 900000))) "," ENTITY(
				"b", 100, 250000, WAITS(WAIT("device", 700000))),
			", \"queues\": [" QUEUE("a", "b", 8,
						", \"depth\": {\"mean\": 7.5, \"full_time\": 800000}") "]"),
		    CLI_CAUSE_DEVICE, 0,
		    "waits 70 % of the run for the device work behind the messages of 'a', of which 7.5 lie");
}

static void too_few_workers_are_found(void **state)
{
	(void)state;
	one_finding(
		RUN(ENTITY("a", 100, 490000,
			   ", \"ready_to_compute\": {\"count\": 100, \"sum\": 500000}") "," ENTITY("b", 100,
												   490000,
												   ", "
												   "\"ready_"
												   "to_"
												   "compute\""
												   ": "
												   "{\"count"
												   "\": 100, "
												   "\"sum\": "
												   "400000}"),
		    ", \"workers\": [{\"busy\": 990000}]"),
		CLI_CAUSE_WORKERS, 0, "the only worker is busy 99 % of the run");
}

static void used_up_pool_is_found(void **state)
{
	(void)state;
	one_finding(
		RUN(ENTITY("a", 100, 490000, WAITS(WAIT("memory", 500000))) "," ENTITY("b", 100, 480000, ""),
		    ", \"pools\": [{\"name\": \"frames\", \"capacity\": 1, \"unit\": \"blocks\", "
		    "\"waits\": 99}]"),
		CLI_CAUSE_POOL, 0, "memory of the pool 'frames', which has 1 block;");
}

static void bound_of_ticks_in_flight_is_found(void **state)
{
	(void)state;
	one_finding(
		RUN(ENTITY("a", 100, 490000,
			   ", \"max_in_flight\": 2, \"gpu_span\": {\"count\": 100, \"sum\": 400000}" WAITS(
				   WAIT("bound", 450000))) "," ENTITY("b", 100, 480000, ""),
		    ""),
		CLI_CAUSE_IN_FLIGHT, 0, "max_in_flight (2)");
}

static void dropped_messages_are_found(void **state)
{
	(void)state;
	one_finding(RUN(ENTITY("a", 100, 490000, "") "," ENTITY("b", 100, 480000, ""),
			", \"queues\": [" QUEUE(
				"a", "b", 1, ", \"policy\": \"pop\", \"pushed\": 100, \"dropped\": 40") "]"),
		    CLI_CAUSE_DROPS, 1, "dropped 40 of 100 messages (policy pop, capacity 1): 'b'");
}

/* --- files --- */

static void read_both(const struct text *run, const struct text *trace)
{
	struct cli_recorded recorded;
	struct cli_findings findings;
	struct cli_frames_slowest frames = {0};
	FILE *to = fopen("/dev/null", "w");
	char fault[512] = "";

	if (cli_recorded_read(&recorded, run->bytes, run->length, fault) &&
	    cli_slowest_read(&frames, &recorded, trace->bytes, trace->length, fault)) {
		cli_findings_make(&findings, &recorded);
		cli_page_write(to, run->bytes, run->length, &recorded, &findings, &frames);
	} else {
		assert_true(*fault);
	}
	cli_slowest_finish(&frames);
	cli_recorded_finish(&recorded);
	fclose(to);
}

/* The way of a frame has no gap: what a step waited, was queued and computed begins where the one before it
 * ended. */
static void way_is_whole(const struct cli_step *steps, const struct cli_step *last, unsigned length)
{
	int64_t sum = 0, end = last->device_end > last->end ? last->device_end : last->end;
	const struct cli_step *step = last;

	for (; step->via; length--, step = &steps[step->via - 1]) {
		const struct cli_step *from = &steps[step->via - 1];

		assert_int_equal(from->tick, step->tick); /* a chain: frame n is tick n of each */
		assert_true(from->end <= step->ready && step->ready <= step->begin &&
			    step->begin <= step->end);
		sum += (step->ready - from->end) + (step->begin - step->ready) + (step->end - step->begin);
	}
	assert_int_equal(length, 1);
	assert_int_equal(step->begin, last->origin);
	assert_int_equal(sum + step->end - step->begin + end - last->end, end - last->origin);
}

static void latency_of_a_frame_is_the_sum_of_its_way(void **state)
{
	struct text run = file_text("report/run.json"), trace = file_text("report/trace.json");
	struct cli_recorded recorded;
	struct cli_frames_slowest frames;
	const struct cli_step *steps;
	char fault[512];

	(void)state;
	assert_true(cli_recorded_read(&recorded, run.bytes, run.length, fault));
	assert_true(cli_slowest_read(&frames, &recorded, trace.bytes, trace.length, fault));
	assert_int_equal(frames.frame_count, 12);
	assert_int_equal(frames.count, CLI_SLOWEST_MAX);
	steps = frames.traced.steps.items;
	for (size_t i = 0; i < frames.count; i++)
		way_is_whole(steps, &steps[frames.frames[i]], 4);
	for (size_t i = 1; i < CLI_SLOWEST_MAX - 1; i++)
		assert_true(steps[frames.frames[i]].end - steps[frames.frames[i]].origin <=
			    steps[frames.frames[i - 1]].end - steps[frames.frames[i - 1]].origin);
	cli_slowest_finish(&frames);
	cli_recorded_finish(&recorded);
	free(run.bytes);
	free(trace.bytes);
}

static uint32_t drawn;
static uint32_t draw(uint32_t below)
{
	drawn = drawn * 1664525u + 1013904223u;
	return (uint32_t)((uint64_t)(drawn >> 8) * below >> 24);
}

static void change(struct text *text)
{
	static const char bytes[] = "{}[],:\"\\0129-.e \xe2tn<";

	for (uint32_t changes = 1 + draw(3); changes--;)
		text->bytes[draw((uint32_t)text->length)] = bytes[draw(sizeof bytes - 1)];
}

/* Under the sanitizers: nothing is read beyond the text, nothing leaks, and each refusal has a reason. */
static void files_cut_short_or_changed_are_read_or_refused(void **state)
{
	struct text run = file_text("report/run.json"), trace = file_text("report/trace.json");

	(void)state;
	for (unsigned round = 0; round < 400; round++) {
		bool second = round % 2, cut = round % 4 < 2;
		const struct text *of = second ? &trace : &run;
		struct text other = copy_of(of->bytes, cut ? draw((uint32_t)of->length) : of->length);

		if (!cut)
			change(&other);
		read_both(second ? &run : &other, second ? &other : &trace);
		free(other.bytes);
	}
	free(run.bytes);
	free(trace.bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(json_is_what_the_suite_says),
		cmocka_unit_test(json_strings_are_decoded),
		cmocka_unit_test(json_that_is_cut_says_so),
		cmocka_unit_test(data_cannot_end_its_element),
		cmocka_unit_test(strings_are_json_strings),
		cmocka_unit_test(page_has_the_data_in_their_places),
		cmocka_unit_test(slow_compute_is_found),
		cmocka_unit_test(compute_that_waits_is_found),
		cmocka_unit_test(device_work_is_found),
		cmocka_unit_test(equally_busy_stages_are_balanced),
		cmocka_unit_test(stages_with_little_to_do_are_balanced),
		cmocka_unit_test(full_queue_before_an_idle_receiver_is_found),
		cmocka_unit_test(full_queue_before_a_busy_receiver_is_none),
		cmocka_unit_test(device_that_is_behind_is_found_without_its_times),
		cmocka_unit_test(too_few_workers_are_found),
		cmocka_unit_test(used_up_pool_is_found),
		cmocka_unit_test(bound_of_ticks_in_flight_is_found),
		cmocka_unit_test(dropped_messages_are_found),
		cmocka_unit_test(words_of_a_reason_turn_no_finding),
		cmocka_unit_test(waits_of_another_version_have_no_cause),
		cmocka_unit_test(latency_of_a_frame_is_the_sum_of_its_way),
		cmocka_unit_test(files_cut_short_or_changed_are_read_or_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
