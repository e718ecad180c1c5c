/* The progress line, shown on a terminal only. */
#include <inttypes.h>

#include "cli/cli.h"

static bool is_sink(const weir_entity_counts *counts)
{
	return counts->received && !counts->emitted && !counts->unconnected;
}

bool cli_frames(weir_scheduler *scheduler, uint64_t *ticks, uint64_t *frames)
{
	weir_entity_counts counts = {.size = sizeof counts};
	bool found = false;

	*ticks = *frames = 0;
	for (size_t i = 0; weir_scheduler_entity_counts(scheduler, i, &counts); i++) {
		*ticks += counts.ticks;
		if (is_sink(&counts) && (!found || counts.ticks < *frames)) {
			*frames = counts.ticks;
			found = true;
		}
	}
	return found;
}

void cli_progress_show(struct cli_progress *progress, weir_scheduler *scheduler)
{
	uint64_t ticks, frames;
	double seconds;
	char rate[32];

	progress->elapsed_ns += CLI_PROGRESS_NS;
	if (!progress->on)
		return;
	seconds = (double)progress->elapsed_ns / 1e9;
	if (cli_frames(scheduler, &ticks, &frames))
		fprintf(stderr, "\r\033[K%.1f s  %" PRIu64 " ticks  %" PRIu64 " frames  %s frames/s", seconds,
			ticks, frames, cli_rate(rate, (double)frames / seconds));
	else
		fprintf(stderr, "\r\033[K%.1f s  %" PRIu64 " ticks", seconds, ticks);
	fflush(stderr);
}

void cli_progress_clear(const struct cli_progress *progress)
{
	if (progress->on && progress->elapsed_ns)
		fputs("\r\033[K", stderr);
}
