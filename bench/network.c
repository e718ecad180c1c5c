/*
 * Frames/s of weir and of a loop written by hand (network.h), which alternate in one process.
 *
 *     network MODEL PLUGIN [--frames N] [--requests N] [--size WIDTHxHEIGHT] [--rounds N] [--properties TEXT]
 *             [--pipe N]
 *
 * MODEL: an ONNX file of float32 [1, 3, 224, 224]. PLUGIN: libnetwork.so of examples/network. --pipe: the
 * loop alone, on N pictures of standard input, as bench/video.py runs it beside examples/network/video.json.
 */
#include <string.h>

#include "network.h"
#include "program.h"

static int64_t cpu_time(void)
{
	struct timespec time;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
	return time.tv_sec * 1000000000 + time.tv_nsec;
}

void network_begin(struct network_run *run)
{
	run->cpu_ns = -cpu_time();
	run->ns = -now();
}

void network_end(struct network_run *run)
{
	run->ns += now();
	run->cpu_ns += cpu_time();
}

void network_camera(const struct network_work *work, int frame, uint8_t *to)
{
	size_t bytes = (size_t)work->width * work->height * 3;

	if (!work->pipe) {
		memcpy(to, work->pictures[frame % NETWORK_PICTURES], bytes);
	} else if (fread(to, bytes, 1, stdin) != 1) {
		fprintf(stderr, "network: standard input ends in frame %d\n", frame);
		exit(1);
	}
}

void network_top(const float *values, size_t count, int32_t top[NETWORK_TOP])
{
	int found = 0;

	for (size_t i = 0; i < count; i++) {
		int at = found;
		while (at && values[i] > values[top[at - 1]])
			at--;
		if (at == NETWORK_TOP)
			continue;
		found += found < NETWORK_TOP;
		memmove(top + at + 1, top + at, (size_t)(found - at - 1) * sizeof *top);
		top[at] = (int32_t)i;
	}
}

void network_result(const struct network_work *work, int frame, const float *values, size_t count,
		    struct network_run *run)
{
	if (!work->pipe)
		network_top(values, count, run->top[frame]);
	else if (fwrite(values, sizeof *values, count, stdout) != count)
		exit(1);
}

/* Noise around a colour, each picture another. */
static void make_pictures(struct network_work *work)
{
	size_t bytes = (size_t)work->width * work->height * 3;
	uint32_t random = 1;

	for (int i = 0; i < NETWORK_PICTURES; i++) {
		work->pictures[i] = network_allocate(bytes);
		for (size_t at = 0; at < bytes; at++) {
			random = random * 1664525 + 1013904223;
			work->pictures[i][at] = (uint8_t)((random >> 26) + 24 * (size_t)i * (at % 3 + 1) / 3);
		}
	}
}

static int compare(const void *a, const void *b)
{
	double left = *(const double *)a, right = *(const double *)b;

	return (left > right) - (left < right);
}

/* What a round found. */
enum { LOOP, WEIR, RATIO, LOOP_CPU, WEIR_CPU, CPU_RATIO, FIGURES };

static void add_figures(double *figures[FIGURES], int round, const struct network_work *work,
			const struct network_run *plain, const struct network_run *weir)
{
	figures[LOOP][round] = work->frames * 1e9 / (double)plain->ns;
	figures[WEIR][round] = work->frames * 1e9 / (double)weir->ns;
	figures[RATIO][round] = figures[WEIR][round] / figures[LOOP][round];
	figures[LOOP_CPU][round] = (double)plain->cpu_ns / 1e6 / work->frames;
	figures[WEIR_CPU][round] = (double)weir->cpu_ns / 1e6 / work->frames;
	figures[CPU_RATIO][round] = figures[LOOP_CPU][round] / figures[WEIR_CPU][round];
}

static int differences(const struct network_work *work, const struct network_run *a,
		       const struct network_run *b)
{
	int differ = 0;

	for (int frame = 0; frame < work->frames; frame++)
		differ += memcmp(a->top[frame], b->top[frame], sizeof *a->top) != 0;
	return differ;
}

/* Returns the number of results that differ. */
static int measure(const struct network_work *work, int rounds)
{
	size_t bytes = (size_t)work->frames * sizeof(int32_t[NETWORK_TOP]);
	struct network_run plain = {.top = network_allocate(bytes)}, weir = {.top = network_allocate(bytes)};
	double *figures[FIGURES];
	int differ = 0;

	for (int i = 0; i < FIGURES; i++)
		figures[i] = network_allocate((size_t)rounds * sizeof **figures);
	for (int i = 0; i < rounds; i++) {
		network_plain(work, &plain);
		network_weir(work, &weir);
		differ += differences(work, &plain, &weir);
		add_figures(figures, i, work, &plain, &weir);
	}
	printf("%d frames of %d x %d, %d requests, medians of %d rounds; %d results differ\n", work->frames,
	       work->width, work->height, work->requests, rounds, differ);
	for (int i = 0; i < FIGURES; i++)
		qsort(figures[i], (size_t)rounds, sizeof **figures, compare);
	printf("  frames/s: loop %.1f, weir %.1f, ratio %.3f\n", figures[LOOP][rounds / 2],
	       figures[WEIR][rounds / 2], figures[RATIO][rounds / 2]);
	printf("  CPU time of a frame: loop %.3f ms, weir %.3f ms, ratio %.3f\n",
	       figures[LOOP_CPU][rounds / 2], figures[WEIR_CPU][rounds / 2], figures[CPU_RATIO][rounds / 2]);
	for (int i = 0; i < FIGURES; i++)
		free(figures[i]);
	free(plain.top);
	free(weir.top);
	return differ;
}

static int positive(const char *text)
{
	int value = text ? atoi(text) : 0;

	if (value > 0)
		return value;
	fprintf(stderr, "network: '%s' is no number above 0\n", text ? text : "");
	exit(2);
}

int main(int count, char **arguments)
{
	struct network_work work = {
		.frames = 1000, .requests = 2, .width = 640, .height = 480, .properties = ""};
	int rounds = 5, differ;

	if (count < 3 || count % 2 == 0) {
		fprintf(stderr,
			"usage: network MODEL PLUGIN [--frames N] [--requests N] [--size WIDTHxHEIGHT] "
			"[--rounds N] [--properties TEXT] [--pipe N]\n");
		return 2;
	}
	work.model = arguments[1];
	work.plugin = arguments[2];
	for (int i = 3; i < count; i += 2)
		if (!strcmp(arguments[i], "--frames"))
			work.frames = positive(arguments[i + 1]);
		else if (!strcmp(arguments[i], "--requests"))
			work.requests = positive(arguments[i + 1]);
		else if (!strcmp(arguments[i], "--rounds"))
			rounds = positive(arguments[i + 1]);
		else if (!strcmp(arguments[i], "--properties"))
			work.properties = arguments[i + 1];
		else if (!strcmp(arguments[i], "--pipe"))
			work.pipe = (work.frames = positive(arguments[i + 1])) > 0;
		else if (strcmp(arguments[i], "--size") ||
			 sscanf(arguments[i + 1], "%dx%d", &work.width, &work.height) != 2)
			positive(arguments[i]);
	if (work.pipe) {
		network_plain(&work, &(struct network_run){0});
		return fflush(stdout) ? 1 : 0;
	}
	make_pictures(&work);
	differ = measure(&work, rounds);
	for (int i = 0; i < NETWORK_PICTURES; i++)
		free(work.pictures[i]);
	return differ != 0;
}
