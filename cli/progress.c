/*
 * What `weir run` prints while a run goes on: the progress line, on a terminal only; and why the run makes no
 * progress, on SIGUSR1 and after a time without a tick.
 */
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>

#include "cli/cli.h"

#include "base/units.h"

/* Of all entities. */
static uint64_t count_ticks(weir_scheduler *scheduler)
{
	weir_entity_counts counts = {.size = sizeof counts};
	uint64_t ticks = 0;

	for (size_t i = 0; !weir_scheduler_entity_counts(scheduler, i, &counts); i++)
		ticks += counts.ticks;
	return ticks;
}

void cli_progress_show(struct cli_progress *progress, weir_scheduler *scheduler)
{
	weir_frames frames = {.size = sizeof frames};
	uint64_t ticks = count_ticks(scheduler);
	double seconds;
	char rate[32];

	progress->elapsed_ns += CLI_PROGRESS_NS;
	if (!progress->on)
		return;
	seconds = (double)progress->elapsed_ns / 1e9;
	if (!weir_scheduler_frames(scheduler, &frames))
		fprintf(stderr, CLI_CLEAR_LINE "%.1f s  %" PRIu64 " ticks  %" PRIu64 " frames  %s frames/s",
			seconds, ticks, frames.frames, cli_rate(rate, (double)frames.frames / seconds));
	else
		fprintf(stderr, CLI_CLEAR_LINE "%.1f s  %" PRIu64 " ticks", seconds, ticks);
	fflush(stderr);
	cli_log_over_progress(true);
}

void cli_progress_clear(const struct cli_progress *progress)
{
	cli_log_over_progress(false);
	if (progress->on && progress->elapsed_ns)
		fputs(CLI_CLEAR_LINE, stderr);
}

/* --- standing still --- */

/* While the run drains or is aborted, explain without being asked: this names a compute that hangs. */
#define DRAIN_PATIENCE_NS 5000000000

static volatile sig_atomic_t asked;

static void on_request(int number)
{
	(void)number;
	asked = 1;
}

void cli_standstill_listen(void)
{
	struct sigaction action = {.sa_handler = on_request, .sa_flags = SA_RESTART};

	sigemptyset(&action.sa_mask);
	sigaction(SIGUSR1, &action, NULL);
}

/* Returns true once per standstill. */
static bool stood_too_long(struct cli_standstill *standstill, weir_scheduler *scheduler, int64_t turn_ns)
{
	int64_t after = standstill->after_ns;
	bool stopping = weir_scheduler_stopping(scheduler);
	uint64_t ticks = count_ticks(scheduler);
	/* Without --explain-after, the time also restarts when draining begins. */
	bool restart = ticks != standstill->ticks || (stopping && !standstill->stopping && !after);

	standstill->ticks = ticks;
	standstill->stopping = stopping;
	if (!after && stopping)
		after = DRAIN_PATIENCE_NS;
	if (restart) {
		standstill->stood_ns = 0; /* the last tick may have ended just now */
		standstill->told = false;
		return false;
	}
	standstill->stood_ns += turn_ns;
	return after && !standstill->told && standstill->stood_ns >= after;
}

/* Returns the longest time for which a queue has held messages and none was taken, and that queue. */
static int64_t longest_stand(struct cli_standstill *standstill, weir_scheduler *scheduler, int64_t turn_ns,
			     weir_queue_counts *longest)
{
	weir_queue_counts counts = {.size = sizeof counts};
	int64_t most = 0;
	size_t count = 0;

	while (!weir_scheduler_queue_counts(scheduler, count, &counts))
		count++;
	if (!standstill->queues)
		standstill->queues = calloc(count + 1, sizeof *standstill->queues);
	for (size_t i = 0; standstill->queues && i < count; i++) {
		struct cli_queue_stands *queue = &standstill->queues[i];

		weir_scheduler_queue_counts(scheduler, i, &counts);
		queue->stood_ns =
			counts.queued && counts.delivered == queue->delivered ? queue->stood_ns + turn_ns : 0;
		queue->delivered = counts.delivered;
		if (queue->stood_ns <= most)
			continue;
		most = queue->stood_ns;
		*longest = counts;
	}
	return most;
}

/* A part of the graph may stand while another one ticks. Returns true once per such standstill. */
static bool part_stood_too_long(struct cli_standstill *standstill, weir_scheduler *scheduler, int64_t turn_ns,
				weir_queue_counts *queue)
{
	bool stands = standstill->after_ns &&
		      longest_stand(standstill, scheduler, turn_ns, queue) >= standstill->after_ns;
	bool ticks = standstill->stood_ns < standstill->after_ns / 2; /* else the whole graph stands */
	bool tell = stands && ticks && !standstill->part_told;

	standstill->part_told = stands && (standstill->part_told || tell);
	return tell;
}

void cli_standstill_finish(struct cli_standstill *standstill)
{
	free(standstill->queues);
	standstill->queues = NULL;
}

void cli_standstill_look(struct cli_standstill *standstill, weir_scheduler *scheduler, int64_t turn_ns)
{
	bool question = asked;
	char since[440] = "", *text = NULL;
	weir_queue_counts queue = {.size = sizeof queue};

	asked = 0;
	if (stood_too_long(standstill, scheduler, turn_ns)) {
		snprintf(since, sizeof since, "no tick for %s: ", wr_time_shown(standstill->stood_ns).text);
		standstill->told = question = true;
	}
	if (part_stood_too_long(standstill, scheduler, turn_ns, &queue)) {
		snprintf(since, sizeof since, "nothing taken from %.150s -> %.150s for %s: ", queue.from,
			 queue.to, wr_time_shown(standstill->after_ns).text);
		question = true;
	}
	if (!question)
		return;
	if (weir_scheduler_explain_line(scheduler, &text))
		cli_say("%s", weir_last_error());
	else
		cli_say("%s%s", since, *text ? text : "nothing waits");
	weir_text_free(text);
}
