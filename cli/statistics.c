/* The statistics of the run that has ended, and the tables of --stats: after the summary, on stdout. */
#include <inttypes.h>
#include <string.h>

#include "cli/cli.h"
#include "base/units.h"
#include "cli/recorded.h"

enum { LISTED = 64, NAME_WIDTH = 24, PATHS_LISTED = 32 };

/* --- numbers --- */

/* "-" where nothing was measured. */
static void print_time(bool measured, int64_t ns)
{
	printf("  %8s", measured ? wr_time_shown(ns).text : "-");
}

static void print_times(const struct cli_histogram *times)
{
	print_time(times->count, times->p50);
	print_time(times->count, times->p99);
	print_time(times->count, times->max);
}

/* --- entities --- */

static void print_entity(int width, bool gpu, const struct cli_entity *entity)
{
	printf("  %-*s", width, cli_recorded_name(entity).text);
	print_times(&entity->submit);
	print_time(entity->waited.count, entity->waited.p50);
	print_time(entity->waited.count, entity->waited.p99);
	print_time(entity->ready_to_compute.count, entity->ready_to_compute.p50);
	print_time(entity->ready_to_compute.count, entity->ready_to_compute.p99);
	if (gpu)
		print_times(&entity->gpu_span);
	puts(gpu && entity->done_source && !strcmp(entity->done_source, "flag") ? "  by flag" : "");
}

static void print_entities(const struct cli_recorded *recorded)
{
	size_t count = recorded->entities.count, listed = count < LISTED ? count : LISTED;
	int width = (int)strlen("entity");
	bool gpu = false;

	/* Names are padded as they are; longer ones move the columns of their line. */
	for (size_t i = 0; i < count; i++) {
		int length = i < listed
				     ? (int)strlen(cli_recorded_name(cli_recorded_entity(recorded, i)).text)
				     : 0;

		length = length < NAME_WIDTH ? length : NAME_WIDTH;
		width = length > width ? length : width;
		gpu |= cli_recorded_entity(recorded, i)->gpu_span.count > 0;
	}
	printf("\n  %-*s  %-28s  %-18s  %s\n", width, "", "in compute", "waited",
	       gpu ? "waited for worker   on the GPU" : "waited for worker");
	printf("  %-*s  %8s  %8s  %8s  %8s  %8s  %8s  %8s", width, "entity", "p50", "p99", "max", "p50",
	       "p99", "p50", "p99");
	printf(gpu ? "  %8s  %8s  %8s\n" : "\n", "p50", "p99", "max");
	for (size_t i = 0; i < listed; i++)
		print_entity(width, gpu, cli_recorded_entity(recorded, i));
	if (count > listed)
		printf("  and %zu more\n", count - listed);
}

/* --- paths --- */

/* "read > blur > 3 more > write": the first two and the last, if there are many. */
static void print_way(const struct cli_path *path)
{
	char *const *names = path->entities.items;
	size_t count = path->entities.count, many = count > 6 ? count - 4 : 0;

	for (size_t i = 0; i < count; i++) {
		if (many && i == 2) {
			printf(" > %zu more", many);
			i += many;
		}
		printf("%s%s", i ? " > " : "", names[i]);
	}
	printf("%s\n", path->other ? " (all other paths to it)" : "");
}

static void print_path(const struct cli_path *path)
{
	const struct cli_histogram *latency = &path->latency;
	bool measured = latency->count;

	printf("  %9" PRId64, path->count);
	print_time(measured, latency->min);
	print_time(measured, measured ? latency->sum / latency->count : 0);
	print_times(latency);
	printf("  ");
	print_way(path);
	if (measured && latency->count < path->count)
		printf("  %9s  of %" PRId64 " of them, whose GPU time was measured\n", "", latency->count);
}

/* Paths that no message went are left out. */
static void print_paths(const struct cli_recorded *recorded)
{
	const struct cli_path *paths = recorded->paths.items;
	size_t listed = 0;

	for (size_t i = 0; i < recorded->paths.count; i++) {
		if (!paths[i].count)
			continue;
		if (!listed)
			printf("\n  %9s  %8s  %8s  %8s  %8s  %8s  path\n", "messages", "min", "mean", "p50",
			       "p99", "max");
		if (listed++ < PATHS_LISTED)
			print_path(&paths[i]);
	}
	if (listed > PATHS_LISTED)
		printf("  and %zu more paths\n", listed - PATHS_LISTED);
}

void cli_statistics(const struct cli_recorded *recorded)
{
	print_entities(recorded);
	print_paths(recorded);
}

bool cli_statistics_read(weir_scheduler *scheduler, struct cli_recorded *out)
{
	char fault[512], *text = NULL;
	bool read = !weir_scheduler_print_statistics(scheduler, &text);

	*out = (struct cli_recorded){0};
	if (!read)
		return false;
	read = cli_recorded_read(out, text, strlen(text), fault);
	weir_text_free(text);
	return read;
}
