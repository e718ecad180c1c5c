/*
 * Frames/s and latency of upload -> compute -> download: by weir, and by three programs in plain CUDA. Of
 * each, the rounds are interleaved; figures are medians over the rounds, then the best ones.
 *
 * usage: pipeline [--rounds N] [--frames N] [--ahead N] [--workers N] [--spin MS] [--signal NAME]
 *                 [--work NAME] [--forms NAME,...]
 *
 * work: "long" (2, 3, 2 ms), "short" (200, 300, 200 us), "upscale", or "all". forms: "sync", "three",
 * "graphs", "weir", "replay", or "all". spin: how long idle workers of weir spin; the poller does not sleep
 * meanwhile.
 */
#include "pipeline.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "program.h"

enum { ROUNDS_MAX = 32, FORMS = 5 };

static int rounds = 5, frames = 400, ahead = 4;
static struct pipeline_weir how = {.signal = "flag", .workers = 2};
static const char *work_name = "all", *forms = "all";

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
		return ((const struct pipeline_result *)output)->frame == (uint32_t)frame + 1;
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
	const struct pipeline_result *result = output;

	run->end[frame] = now();
	run->computed_from[frame] = work->height ? 0 : (int64_t)result->from;
	run->computed_to[frame] = work->height ? 0 : (int64_t)result->to;
	run->wrong += !result_is_right(frame, work, output);
}

/* --- one form --- */

static const char *const form_names[FORMS] = {
	"one stream, a wait after each step",
	"three streams, events, one thread",
	"a stream and a graph for each frame",
	"weir",
	"weir with replay",
};
static const char *const short_names[FORMS] = {"sync", "three", "graphs", "weir", "replay"};

static struct pipeline_figures run_form(int form, const struct pipeline_work *work)
{
	static int64_t times[4][PIPELINE_FRAMES_MAX];
	struct pipeline_run run = {.frames = frames,
				   .ahead = ahead,
				   .begin = times[0],
				   .end = times[1],
				   .computed_from = times[2],
				   .computed_to = times[3]};

	if (form == 0)
		check(pipeline_synchronous(work, &run), form_names[form]);
	else if (form == 1)
		check(pipeline_three_streams(work, &run), form_names[form]);
	else if (form == 2)
		check(pipeline_graphs(work, &run), form_names[form]);
	how.replay = form == 4;
	if (form > 2)
		pipeline_weir(work, &run, &how);
	if (run.wrong) {
		fprintf(stderr, "pipeline: %s: %d results are wrong\n", form_names[form], run.wrong);
		exit(1);
	}
	return pipeline_figures_of(&run);
}

/* --- all forms --- */

/* Returns true if `forms`, names with commas between them, has the form's. */
static bool is_measured(int form)
{
	size_t length = strlen(short_names[form]);

	for (const char *name = forms; name; name = strchr(name, ',') ? strchr(name, ',') + 1 : NULL)
		if (!strncmp(name, short_names[form], length) && (!name[length] || name[length] == ','))
			return true;
	return !strcmp(forms, "all");
}

typedef struct pipeline_figures by_round[ROUNDS_MAX];

/* The double at `offset` of a round's figures. */
static double value_at(const by_round all, int round, size_t offset)
{
	double value;

	memcpy(&value, (const char *)&all[round] + offset, sizeof value);
	return value;
}

/* The median over the rounds of the double at `offset`. */
static double median_of(const by_round all, size_t offset)
{
	double found[ROUNDS_MAX];

	for (int round = 0; round < rounds; round++)
		found[round] = value_at(all, round, offset);
	return pipeline_median(found, rounds);
}

#define MEDIAN(all, field) median_of(all, offsetof(struct pipeline_figures, field))

/*
 * The median over the rounds of one form's double to another's in the same round: what makes a round slow
 * makes both slow.
 */
static double median_beside(const by_round all, const by_round others, size_t offset)
{
	double found[ROUNDS_MAX];

	for (int round = 0; round < rounds; round++)
		found[round] = value_at(all, round, offset) / value_at(others, round, offset);
	return pipeline_median(found, rounds);
}

#define BESIDE(all, others, field) median_beside(all, others, offsetof(struct pipeline_figures, field))

/*
 * The least or the greatest of a double over the rounds. A stall of the machine makes a round worse, and none
 * better: if each form had one round without stalls, the best ones compare the forms alone.
 */
static double best_of(const by_round all, size_t offset, bool greatest)
{
	double best = value_at(all, 0, offset);

	for (int round = 1; round < rounds; round++) {
		double one = value_at(all, round, offset);

		if (greatest ? one > best : one < best)
			best = one;
	}
	return best;
}

#define MOST(all, field)  best_of(all, offsetof(struct pipeline_figures, field), true)
#define LEAST(all, field) best_of(all, offsetof(struct pipeline_figures, field), false)

static void print_best(int form, by_round found[FORMS], int64_t slowest_ns)
{
	double rate = MOST(found[form], rate), tail = LEAST(found[form], most);

	printf("    best of the rounds: %.1f frames/s, p99 %.3f ms", rate, tail);
	if (slowest_ns)
		printf(", %.3f of the slowest stage", rate * (double)slowest_ns / 1e9);
	if (form > 2 && is_measured(1))
		printf("; beside three streams %.3f, p99 %.3f", rate / MOST(found[1], rate),
		       tail / LEAST(found[1], most));
	if (form > 2 && is_measured(2))
		printf("; beside graphs %.3f", rate / MOST(found[2], rate));
	printf("\n");
}

static void print_form(int form, by_round found[FORMS], int64_t slowest_ns)
{
	double rate = MEDIAN(found[form], rate);

	printf("  %-36s %9.1f frames/s, latency p50 %8.3f ms, p99 %8.3f ms", form_names[form], rate,
	       MEDIAN(found[form], half), MEDIAN(found[form], most));
	if (slowest_ns)
		printf(", %.3f of the slowest stage", rate * (double)slowest_ns / 1e9);
	if (form > 2 && is_measured(1))
		printf("; beside three streams %.3f, p99 %.3f", BESIDE(found[form], found[1], rate),
		       BESIDE(found[form], found[1], most));
	if (form > 2 && is_measured(2))
		printf("; beside graphs %.3f", BESIDE(found[form], found[2], rate));
	printf("\n");
}

/* Of the round with the median rate, as sums of different rounds mean nothing. */
static void print_reasons(const by_round all)
{
	double rate = MEDIAN(all, rate);
	int round = 0;

	while (round + 1 < rounds && all[round].rate != rate)
		round++;
	printf("    a frame each %.3f ms (p50); %d came late, %.1f ms in all, the longest interval %.1f ms",
	       all[round].interval, all[round].late_count, all[round].late, all[round].longest);
	if (all[round].kernel > 0)
		printf("; kernel %.1f us, %.1f us between two (p50), idle %.3f of the time",
		       all[round].kernel, all[round].between, all[round].idle);
	if (all[round].captures)
		printf("; %llu replayed, %llu captured", (unsigned long long)all[round].hits,
		       (unsigned long long)all[round].captures);
	printf("\n");
	fflush(stdout);
}

static void print_copies(const struct pipeline_work *work, const char *when)
{
	int64_t copies[2];

	check(pipeline_copies_at_once(work, copies), "copies");
	printf("    copies in both directions at once, %s: %.3f ms up, %.3f ms down\n", when,
	       (double)copies[0] / 1e6, (double)copies[1] / 1e6);
}

/* `slowest_ns`: the slowest stage's time, 0 if unknown. */
static void compare(const struct pipeline_work *work, int64_t slowest_ns)
{
	static by_round found[FORMS];

	printf("%s: %d rounds of %d frames, %d in flight, %.1f MB up, %.1f MB down\n", work->name, rounds,
	       frames, ahead, (double)work->input / 1e6, (double)work->output / 1e6);
	print_copies(work, "before");
	for (int round = 0; round < rounds; round++)
		for (int form = 0; form < FORMS; form++)
			if (is_measured(form))
				found[form][round] = run_form(form, work);
	for (int form = 0; form < FORMS; form++)
		if (is_measured(form)) {
			print_form(form, found, slowest_ns);
			print_best(form, found, slowest_ns);
			print_reasons(found[form]);
		}
	print_copies(work, "after");
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
			how.workers = (unsigned)atoi(arguments[i + 1]);
		else if (!strcmp(arguments[i], "--spin"))
			how.worker_spin_ns = atoi(arguments[i + 1]) * INT64_C(1000000);
		else if (!strcmp(arguments[i], "--signal"))
			how.signal = arguments[i + 1];
		else if (!strcmp(arguments[i], "--work"))
			work_name = arguments[i + 1];
		else if (!strcmp(arguments[i], "--forms"))
			forms = arguments[i + 1];
	}
	if (rounds < 1 || rounds > ROUNDS_MAX || frames <= PIPELINE_WARM_UP || frames > PIPELINE_FRAMES_MAX ||
	    ahead < 1) {
		fprintf(stderr, "pipeline: --rounds 1 to %d, --frames %d to %d\n", ROUNDS_MAX,
			PIPELINE_WARM_UP + 1, PIPELINE_FRAMES_MAX);
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
	printf("%s; %u workers, signal %s\n", name, how.workers, how.signal);
	if (is_wanted("long"))
		compare_synthetic("2 ms up, 3 ms compute, 2 ms down", 2000000, 3000000);
	if (is_wanted("short"))
		compare_synthetic("200 us up, 300 us compute, 200 us down", 200000, 300000);
	if (is_wanted("upscale"))
		compare_upscale();
	return 0;
}
