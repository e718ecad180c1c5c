/*
 * A program that embeds weir and calls CUDA itself: streams of its own that weir wraps, the default stream,
 * native handles, green contexts, several devices, captures, and many short runs. handles.py runs each
 * check in a process.
 *
 *   handles [--backend B] [--signal S] [--frames N] [--runs N] --list | CHECK...
 *
 * Prints lines "ok NAME" or "FAILED NAME: ..."; exits with 0, 1, or 77 if there are too few devices.
 */
#include <cuda_runtime_api.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "handles.h"

struct handles_settings handles_settings = {"cuda", "callback", 200, 100, true, false};

static const char *running;
static unsigned failures;

bool handles_expect(bool right, const char *format, ...)
{
	va_list arguments;

	if (right)
		return true;
	failures++;
	printf("FAILED %s: ", running);
	va_start(arguments, format);
	vprintf(format, arguments);
	va_end(arguments);
	printf("\n");
	return false;
}

bool handles_expect_cuda(int error, const char *call)
{
	return handles_expect(!error, "%s: %s (%s)", call, cudaGetErrorString(error),
			      cudaGetErrorName(error));
}

void handles_print_note(const char *format, ...)
{
	va_list arguments;

	printf("told %s: ", running);
	va_start(arguments, format);
	vprintf(format, arguments);
	va_end(arguments);
	printf("\n");
}

/* --- which --- */

static const struct handles_check *const groups[] = {
	handles_wrapped, handles_default,  handles_destroyed,  handles_others, handles_devices,
	handles_stalls,  handles_programs, handles_first,      handles_early,  handles_promises,
	handles_copies,  handles_joins,    handles_allocations};
enum { GROUPS = sizeof groups / sizeof *groups };

static const struct handles_check *find(const char *name)
{
	for (size_t g = 0; g < GROUPS; g++)
		for (const struct handles_check *check = groups[g]; check->name; check++)
			if (!strcmp(check->name, name))
				return check;
	return NULL;
}

static void list(void)
{
	for (size_t g = 0; g < GROUPS; g++)
		for (const struct handles_check *check = groups[g]; check->name; check++)
			if (handles_settings.cuda || !(check->needs & HANDLES_CUDA))
				printf("%s%s%s%s\n", check->name, check->needs & HANDLES_TWO ? " two" : "",
				       check->needs & HANDLES_UNDEFINED ? " undefined" : "",
				       check->needs & HANDLES_RUNS ? " runs" : "");
}

/* --- running --- */

enum { SKIPPED = 77 };

static bool load_kernels(int devices)
{
	for (int device = devices; device--;) /* ends with the first one as the current device */
		if (!handles_expect_cuda(handles_load(device), "loading the kernels"))
			return false;
	return true;
}

/* Returns an exit status. */
static int run(const struct handles_check *check)
{
	int wanted = check->needs & HANDLES_TWO ? 2 : 1, devices = 0;

	running = check->name;
	if (handles_settings.cuda) {
		cudaError_t error = cudaGetDeviceCount(&devices);

		if (error || devices < wanted) {
			printf("skipped: %s: %d device%s: %s\n", check->name, devices,
			       devices == 1 ? "" : "s", cudaGetErrorString(error));
			return SKIPPED;
		}
		if (!load_kernels(wanted))
			return 1;
	} else if (check->needs & HANDLES_CUDA) {
		printf("skipped: %s needs CUDA\n", check->name);
		return SKIPPED;
	}
	check->run();
	if (!failures)
		printf("ok %s\n", check->name);
	return failures ? 1 : 0;
}

static char **take_options(char **argv)
{
	for (; argv[0] && argv[1] && !strncmp(argv[0], "--", 2) && strcmp(argv[0], "--list"); argv += 2)
		if (!strcmp(argv[0], "--backend"))
			handles_settings.backend = argv[1];
		else if (!strcmp(argv[0], "--signal"))
			handles_settings.signal = argv[1];
		else if (!strcmp(argv[0], "--frames"))
			handles_settings.frames = atoi(argv[1]);
		else if (!strcmp(argv[0], "--runs"))
			handles_settings.runs = (unsigned)atoi(argv[1]);
		else
			return NULL;
	handles_settings.cuda = !strcmp(handles_settings.backend, "cuda");
#ifndef WEIR_ON_FAKE_CUDA
	handles_settings.gpu = handles_settings.cuda;
#endif
	return argv;
}

static int usage(void)
{
	fprintf(stderr,
		"usage: handles [--backend B] [--signal S] [--frames N] [--runs N] --list | CHECK...\n");
	return 2;
}

int main(int argc, char **argv)
{
	char **names = argc > 1 ? take_options(argv + 1) : NULL;
	int worst = 0;

	setvbuf(stdout, NULL, _IOLBF, 0); /* keeps the output of a process that crashes */
	setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
	if (!names || !*names)
		return usage();
	if (!strcmp(*names, "--list")) {
		list();
		return 0;
	}
	for (; *names && !worst; names++) {
		const struct handles_check *check = find(*names);

		worst = check ? run(check) : usage();
	}
	return worst;
}
