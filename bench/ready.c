/*
 * How fast the scheduler reacts to the GPU, beside what the machine needs without it. Prints tables, then
 * the aims; nothing passes or fails. README.md describes each part.
 *
 * usage: ready [--part a,b,...] [--seconds S] [--signal NAME,...] [--workers N] [--backend cuda|host]
 * exit: 0; 1 a point could not be measured; 2 usage; 3 something hangs; 77 no GPU
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ready.h"

enum { SIGNALS = 4 };

struct ready_settings ready_settings = {.backend = "cuda", .gpu = true, .seconds = 0.2, .workers = 4};
const int64_t ready_gaps[READY_GAPS] = {0, 100 * US, MS, 16 * MS};
const char *const ready_gap_names[READY_GAPS] = {"0", "0.1 ms", "1 ms", "16 ms"};
static const char *const signals[SIGNALS] = {"auto", "callback", "callback_inline", "flag"};
static const char *available[SIGNALS + 1];
static const char *wanted_parts = "a,b,c,d,e,f", *wanted_signals = "auto,callback,flag";

int64_t ready_point_ns(void)
{
	return (int64_t)(ready_settings.seconds * 1e9);
}

const char *ready_signal(size_t i)
{
	return available[i];
}

void ready_fail(const char *what, int error)
{
	fprintf(stderr, "ready: %s failed%s%s\n", what, error ? ": " : "",
		error ? ready_gpu_text(error) : "");
	exit(1);
}

/* --- options --- */

/* Returns true if the word is in the comma-separated list. */
static bool list_has(const char *list, const char *word)
{
	size_t length = strlen(word);

	for (const char *at = list; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
		if (!strncmp(at, word, length) && (!at[length] || at[length] == ','))
			return true;
	return false;
}

static bool take_option(const char *name, const char *value)
{
	if (!strcmp(name, "--part"))
		wanted_parts = value;
	else if (!strcmp(name, "--signal"))
		wanted_signals = value;
	else if (!strcmp(name, "--backend"))
		ready_settings.backend = value;
	else if (!strcmp(name, "--seconds"))
		ready_settings.seconds = atof(value);
	else if (!strcmp(name, "--workers"))
		ready_settings.workers = (unsigned)atoi(value);
	else
		return false;
	return true;
}

static bool take_options(char **argv)
{
	for (; argv[0] && argv[1]; argv += 2)
		if (!take_option(argv[0], argv[1]))
			return false;
	ready_settings.gpu = !strcmp(ready_settings.backend, "cuda");
	return !argv[0] && (ready_settings.gpu || !strcmp(ready_settings.backend, "host")) &&
	       ready_settings.seconds > 0 && ready_settings.seconds <= 60 && ready_settings.workers > 0 &&
	       ready_settings.workers <= 64;
}

/* --- the machine --- */

static void print_environment(void)
{
	const struct ready_gpu *gpu = &ready_settings.device;

	printf("weir %s, %d cores, %.2f s a point", weir_version(), ready_settings.cores,
	       ready_settings.seconds);
	printf(", CUDA_DEVICE_MAX_CONNECTIONS=%s\n", getenv("CUDA_DEVICE_MAX_CONNECTIONS"));
	if (ready_settings.gpu)
		printf("%s, %d multiprocessors, driver %d.%d, runtime %d.%d\n", gpu->name, gpu->processors,
		       gpu->driver / 1000, gpu->driver % 1000 / 10, gpu->runtime / 1000,
		       gpu->runtime % 1000 / 10);
	else
		printf("backend host: kernels sleep on threads of the CPU. "
		       "This tries the program; its numbers mean little\n");
}

/* Prints the first line of the file, which has the driver's own version, if it exists. */
static void print_driver(void)
{
	char line[160];
	FILE *file = fopen("/proc/driver/nvidia/version", "r");

	if (!file)
		return;
	if (fgets(line, sizeof line, file))
		printf("%s", line);
	fclose(file);
}

static void open_device(void)
{
	int error;

	ready_settings.cores = (int)sysconf(_SC_NPROCESSORS_ONLN);
	ready_settings.crowded = ready_settings.cores < 8;
	if (!ready_settings.gpu)
		return;
	error = ready_gpu_open(&ready_settings.device);
	if (error) {
		fprintf(stderr, "ready: no GPU: %s; --backend host tries the program without\n",
			ready_gpu_text(error));
		exit(77);
	}
}

static bool has_signal(const char *signal)
{
	const struct ready_run run = {.signal = signal, .workers = 1};
	struct ready_rig rig;
	bool opened;

	ready_rig_begin(&rig);
	ready_rig_add(&rig, "p0", "ready_source", -1, 0);
	ready_rig_add(&rig, "g0", "ready_gated", -1, 0);
	ready_rig_gate(&rig);
	ready_rig_connect(&rig, "p0.out", "g0.in", 0);
	opened = ready_rig_open(&rig, &run);
	if (!opened)
		printf("signal %s: not available: %s\n", signal, rig.why);
	rig.status = WEIR_OK;
	ready_rig_close(&rig);
	return opened;
}

static void find_signals(void)
{
	size_t count = 0;

	watchdog_point(30, "signals");
	for (size_t i = 0; i < SIGNALS; i++)
		if (list_has(wanted_signals, signals[i]) && has_signal(signals[i]))
			available[count++] = signals[i];
}

/* --- the parts --- */

static const struct part {
	const char *name;
	void (*run)(void);
} parts[] = {
	{"a", ready_part_floors},  {"b", ready_part_latency}, {"c", ready_part_producer},
	{"d", ready_part_waiting}, {"e", ready_part_stages},  {"f", ready_part_beside},
};

static void run_parts(void)
{
	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
		if (!list_has(wanted_parts, parts[i].name))
			continue;
		watchdog_part(parts[i].name, 120 + 480 * ready_settings.seconds);
		parts[i].run();
	}
	watchdog_part("end", 30);
}

int main(int argc, char **argv)
{
	if (argc < 1 || !take_options(argv + 1)) {
		fprintf(stderr,
			"usage: ready [--part a,b,...] [--seconds S] [--signal NAME,...] [--workers N] "
			"[--backend cuda|host]\n");
		return 2;
	}
	setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0); /* otherwise busy streams share a hardware queue */
	setvbuf(stdout, NULL, _IOLBF, 0);
	int64_t begin = ready_now();
	watchdog_begin("ready");
	watchdog_part("start", 60);
	open_device();
	print_environment();
	print_driver();
	find_signals();
	run_parts();
	ready_aims_print();
	printf("\n%.0f s\n", (double)(ready_now() - begin) / 1e9);
	if (ready_rig_failures()) {
		fprintf(stderr, "ready: %u points could not be measured\n", ready_rig_failures());
		return 1;
	}
	return 0;
}
