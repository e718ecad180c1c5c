/*
 * Frames/s and latency of upload -> compute -> download: by weir, and by three programs in plain CUDA. Of
 * each, the rounds are interleaved; figures are medians over the rounds.
 *
 * usage: pipeline [--rounds N] [--frames N] [--ahead N] [--workers N] [--signal NAME] [--work NAME]
 *                 [--forms weir|replay|all]
 *
 * work: "long" (2, 3, 2 ms), "short" (200, 300, 200 us), "upscale", or "all".
 */
#include "pipeline.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "program.h"

enum { ROUNDS_MAX = 32, WARM_UP = 50, FORMS = 5 };

static int rounds = 5, frames = 400, ahead = 4;
static unsigned workers = 2;
static const char *signal_name = "flag", *work_name = "all", *forms = "all";

int64_t pipeline_now(void)
{
	return now();
}

static void check(int error, const char *what)
{
	if (!error)
		return;
	fprintf(stderr, "pipeline: %s: %s\n", what, pipeline_text(error));
	exit(1);
}

/* --- a frame's two ends --- */

/* A picture for upscale: the same at each call. */
static const uint8_t *picture(size_t bytes)
{
	static uint8_t *bytes_of;

	if (bytes_of)
		return bytes_of;
	bytes_of = malloc(bytes);
	if (!bytes_of)
		must(WEIR_E_NOMEM, "picture");
	for (size_t i = 0; i < bytes; i++)
		bytes_of[i] = (uint8_t)(i % 4 == 3 ? 0 : i / 4 * 37 % 256);
	return bytes_of;
}

void pipeline_begin(struct pipeline_run *run, int frame, const struct pipeline_work *work, void *input)
{
	run->begin[frame] = now();
	if (work->height)
		memcpy(input, picture(work->input), work->input);
	*(volatile uint32_t *)input = (uint32_t)frame;
}

/* The first result of upscale must equal all others; the inputs differ in one word near a corner. */
static bool result_is_right(int frame, const struct pipeline_work *work, const void *output)
{
	static uint8_t *wanted;
	size_t row = (size_t)work->width * 6, rest = row * 32; /* beyond what the word can reach */

	if (!work->height)
		return *(const uint32_t *)output == (uint32_t)frame + 1;
	if (!wanted) {
		wanted = malloc(work->output);
		if (wanted)
			memcpy(wanted, output, work->output);
		return wanted;
	}
	return !memcmp(wanted + rest, (const uint8_t *)output + rest,
		       frame % 16 ? 4096 : work->output - rest);
}

void pipeline_end(struct pipeline_run *run, int frame, const struct pipeline_work *work, const void *output)
{
	run->end[frame] = now();
	run->wrong += !result_is_right(frame, work, output);
}

/* --- one form --- */

struct figures {
	double rate, half, most; /* frames/s; p50 and p99 of the latency, ms */
};

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Frames after the warm-up count. */
static struct figures figures_of(const struct pipeline_run *run)
{
	static double latency[PIPELINE_FRAMES_MAX];
	int count = run->frames - WARM_UP;
	int64_t time = run->end[run->frames - 1] - run->end[WARM_UP - 1];

	for (int i = 0; i < count; i++)
		latency[i] = (double)(run->end[WARM_UP + i] - run->begin[WARM_UP + i]) / 1e6;
	qsort(latency, (size_t)count, sizeof *latency, by_value);
	return (struct figures){count * 1e9 / (double)time, latency[count / 2], latency[count * 99 / 100]};
}

static const char *const form_names[FORMS] = {
	"one stream, a wait after each step",
	"three streams, events, one thread",
	"a stream and a graph for each frame",
	"weir",
	"weir with replay",
};

static struct figures run_form(int form, const struct pipeline_work *work)
{
	static int64_t begin[PIPELINE_FRAMES_MAX], end[PIPELINE_FRAMES_MAX];
	struct pipeline_run run = {.frames = frames, .ahead = ahead, .begin = begin, .end = end};

	if (form == 0)
		check(pipeline_synchronous(work, &run), form_names[form]);
	else if (form == 1)
		check(pipeline_three_streams(work, &run), form_names[form]);
	else if (form == 2)
		check(pipeline_graphs(work, &run), form_names[form]);
	else
		pipeline_weir(work, &run, signal_name, form == 4, workers);
	if (run.wrong) {
		fprintf(stderr, "pipeline: %s: %d results are wrong\n", form_names[form], run.wrong);
		exit(1);
	}
	return figures_of(&run);
}

/* --- all forms --- */

static bool is_measured(int form)
{
	return !strcmp(forms, "all") || (form == 3 && !strcmp(forms, "weir")) ||
	       (form == 4 && !strcmp(forms, "replay"));
}

static double median(double *values)
{
	qsort(values, (size_t)rounds, sizeof *values, by_value);
	return values[rounds / 2];
}

/* `slowest_ns`: the slowest stage's time, 0 if unknown. */
static void compare(const struct pipeline_work *work, int64_t slowest_ns)
{
	double rate[FORMS][ROUNDS_MAX], half[FORMS][ROUNDS_MAX], most[FORMS][ROUNDS_MAX];
	double rates[FORMS], tails[FORMS];

	for (int round = 0; round < rounds; round++)
		for (int form = 0; form < FORMS; form++) {
			struct figures found = {0};

			if (is_measured(form))
				found = run_form(form, work);
			rate[form][round] = found.rate;
			half[form][round] = found.half;
			most[form][round] = found.most;
		}
	printf("%s: %d rounds of %d frames, %d in flight, %.1f MB up, %.1f MB down\n", work->name, rounds,
	       frames, ahead, (double)work->input / 1e6, (double)work->output / 1e6);
	for (int form = 0; form < FORMS; form++) {
		rates[form] = median(rate[form]);
		tails[form] = median(most[form]);
		if (!is_measured(form))
			continue;
		printf("  %-36s %9.1f frames/s, latency p50 %8.3f ms, p99 %8.3f ms", form_names[form],
		       rates[form], median(half[form]), tails[form]);
		if (slowest_ns)
			printf(", %.3f of the slowest stage", rates[form] * (double)slowest_ns / 1e9);
		if (form > 2 && rates[1] > 0)
			printf("; beside three streams %.3f and %.3f", rates[form] / rates[1],
			       tails[form] / tails[1]);
		printf("\n");
		fflush(stdout);
	}
}

static void compare_synthetic(const char *name, int64_t copy_ns, int64_t compute_ns)
{
	struct pipeline_work work = {.name = name, .compute_ns = compute_ns};

	check(pipeline_calibrate(copy_ns, false, &work.input), "calibration");
	check(pipeline_calibrate(copy_ns, true, &work.output), "calibration");
	compare(&work, compute_ns);
}

static void compare_upscale(void)
{
	struct pipeline_work work = {.name = "upscale 608 x 512 by two", .height = 512, .width = 608};
	size_t pixels = (size_t)work.height * (size_t)work.width;

	work.input = pixels * 4;
	work.output = pixels * 12;
	work.hidden = pixels * 32;
	compare(&work, 0);
}

static void read_options(int count, char **arguments)
{
	for (int i = 1; i + 1 < count; i += 2) {
		if (!strcmp(arguments[i], "--rounds"))
			rounds = atoi(arguments[i + 1]);
		else if (!strcmp(arguments[i], "--frames"))
			frames = atoi(arguments[i + 1]);
		else if (!strcmp(arguments[i], "--ahead"))
			ahead = atoi(arguments[i + 1]);
		else if (!strcmp(arguments[i], "--workers"))
			workers = (unsigned)atoi(arguments[i + 1]);
		else if (!strcmp(arguments[i], "--signal"))
			signal_name = arguments[i + 1];
		else if (!strcmp(arguments[i], "--work"))
			work_name = arguments[i + 1];
		else if (!strcmp(arguments[i], "--forms"))
			forms = arguments[i + 1];
	}
	if (rounds < 1 || rounds > ROUNDS_MAX || frames <= WARM_UP || frames > PIPELINE_FRAMES_MAX ||
	    ahead < 1) {
		fprintf(stderr, "pipeline: --rounds 1 to %d, --frames %d to %d\n", ROUNDS_MAX, WARM_UP + 1,
			PIPELINE_FRAMES_MAX);
		exit(2);
	}
}

static bool is_wanted(const char *work)
{
	return !strcmp(work_name, "all") || !strcmp(work_name, work);
}

int main(int count, char **arguments)
{
	char name[256];

	read_options(count, arguments);
	check(pipeline_open(name, sizeof name), "no device");
	printf("%s; %u workers, signal %s\n", name, workers, signal_name);
	if (is_wanted("long"))
		compare_synthetic("2 ms up, 3 ms compute, 2 ms down", 2000000, 3000000);
	if (is_wanted("short"))
		compare_synthetic("200 us up, 300 us compute, 200 us down", 200000, 300000);
	if (is_wanted("upscale"))
		compare_upscale();
	return 0;
}
