/* The tables of --stats: after the summary, on stdout. */
#include <inttypes.h>
#include <string.h>

#include "cli/cli.h"

enum { LISTED = 64, NAME_WIDTH = 24, PATHS_LISTED = 32 };

/* --- numbers --- */

/* "-" where nothing was measured. */
static void print_time(bool measured, int64_t ns)
{
	char text[24];

	printf("  %8s", measured ? cli_duration(text, ns) : "-");
}

static void print_times(const weir_durations *times)
{
	print_time(times->count, times->p50_ns);
	print_time(times->count, times->p99_ns);
	print_time(times->count, times->max_ns);
}

/* Names are padded as they are; longer ones move the columns of their line. */
static int widest(int width, const char *name)
{
	int length = (int)strlen(name);

	return length <= width ? width : length < NAME_WIDTH ? length : NAME_WIDTH;
}

/* --- entities --- */

static bool has_gpu_times(weir_scheduler *scheduler)
{
	weir_entity_times times = {.size = sizeof times};

	for (size_t i = 0; weir_scheduler_entity_times(scheduler, i, &times); i++)
		if (times.gpu_span.count)
			return true;
	return false;
}

static int entity_width(weir_scheduler *scheduler)
{
	weir_entity_times times = {.size = sizeof times};
	int width = (int)strlen("entity");

	for (size_t i = 0; i < LISTED && weir_scheduler_entity_times(scheduler, i, &times); i++)
		width = widest(width, times.entity);
	return width;
}

static void print_entity(int width, bool gpu, const weir_entity_times *times)
{
	printf("  %-*s", width, times->entity);
	print_times(&times->submit);
	print_time(times->waited.count, times->waited.p50_ns);
	print_time(times->waited.count, times->waited.p99_ns);
	print_time(times->ready_to_compute.count, times->ready_to_compute.p50_ns);
	print_time(times->ready_to_compute.count, times->ready_to_compute.p99_ns);
	if (gpu)
		print_times(&times->gpu_span);
	puts(gpu && times->done_source && !strcmp(times->done_source, "flag") ? "  by flag" : "");
}

static void print_entities(weir_scheduler *scheduler)
{
	weir_entity_times times = {.size = sizeof times};
	int width = entity_width(scheduler);
	bool gpu = has_gpu_times(scheduler);
	size_t i = 0;

	printf("\n  %-*s  %-28s  %-18s  %s\n", width, "", "in compute", "waited",
	       gpu ? "waited for worker   on the GPU" : "waited for worker");
	printf("  %-*s  %8s  %8s  %8s  %8s  %8s  %8s  %8s", width, "entity", "p50", "p99", "max", "p50",
	       "p99", "p50", "p99");
	printf(gpu ? "  %8s  %8s  %8s\n" : "\n", "p50", "p99", "max");
	for (; weir_scheduler_entity_times(scheduler, i, &times); i++)
		if (i < LISTED)
			print_entity(width, gpu, &times);
	if (i > LISTED)
		printf("  and %zu more\n", i - LISTED);
}

/* --- paths --- */

/* "read > blur > 3 more > write": the first two and the last, if there are many. */
static void print_way(const weir_path_latency *path)
{
	size_t many = path->entity_count > 6 ? path->entity_count - 4 : 0;

	for (size_t i = 0; i < path->entity_count; i++) {
		if (many && i == 2) {
			printf(" > %zu more", many);
			i += many;
		}
		printf("%s%s", i ? " > " : "", path->entities[i]);
	}
	printf("%s\n", path->other ? " (all other paths to it)" : "");
}

static void print_path(const weir_path_latency *path)
{
	const weir_durations *latency = &path->latency;
	bool measured = latency->count;

	printf("  %9" PRIu64, path->count);
	print_time(measured, latency->min_ns);
	print_time(measured, measured ? latency->sum_ns / (int64_t)latency->count : 0);
	print_times(latency);
	printf("  ");
	print_way(path);
	if (measured && latency->count < path->count)
		printf("  %9s  of %" PRIu64 " of them, whose GPU time was measured\n", "", latency->count);
}

/* Paths that no message went are left out. */
static void print_paths(weir_scheduler *scheduler)
{
	weir_path_latency path = {.size = sizeof path};
	size_t listed = 0;

	for (size_t i = 0; weir_scheduler_path_latency(scheduler, i, &path); i++) {
		if (!path.count)
			continue;
		if (!listed)
			printf("\n  %9s  %8s  %8s  %8s  %8s  %8s  path\n", "messages", "min", "mean", "p50",
			       "p99", "max");
		if (listed++ < PATHS_LISTED)
			print_path(&path);
	}
	if (listed > PATHS_LISTED)
		printf("  and %zu more paths\n", listed - PATHS_LISTED);
}

void cli_statistics(weir_scheduler *scheduler)
{
	print_entities(scheduler);
	print_paths(scheduler);
}
