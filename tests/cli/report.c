/* weir report in one process: its JSON reader, what it finds, what it writes into the page. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../base/test.h"
#include "cli/report.h"

/* The page of the tests. */
extern const char wr_page_html[], wr_page_style[], wr_page_script[];
const char wr_page_html[] =
	"<script>\n@run\n</script>\n@findings\n@loads\n@frames\n@style\n@script\n@other\n";
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
		out,
		"<script>\n{\"a\": \"\\u003c\"}\n</script>\n{\"findings\": [],\n \"title\": \"nothing stands "
		"out\", \"text\": \"\", \"balanced\": false}\n\n[]\nnull\nstyle\nscript\n@other\n");
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
		cmocka_unit_test(latency_of_a_frame_is_the_sum_of_its_way),
		cmocka_unit_test(files_cut_short_or_changed_are_read_or_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
