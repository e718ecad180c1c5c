/* The summary of a run: a short table on stdout. */
#include <inttypes.h>
#include <signal.h>
#include <string.h>

#include "cli/cli.h"
#include "base/units.h"
#include "cli/recorded.h"

/* --- numbers: three or four digits, never an exponent --- */

const char *cli_rate(char text[32], double rate)
{
	char digits[24], *to = text;

	if (rate < 999.5) {
		snprintf(text, 32, rate < 0.001 ? "%.6f" : "%.4g", rate);
		return text;
	}
	snprintf(digits, sizeof digits, "%.0f", rate < 1e18 ? rate : 1e18);
	for (size_t left = strlen(digits), i = 0; left; left--) {
		*to++ = digits[i++];
		if (left > 1 && left % 3 == 1)
			*to++ = ',';
	}
	*to = '\0';
	return text;
}

/* --- the table --- */

enum { LISTED = 64 }; /* most entities listed */

static const char *ending(const weir_outcome *outcome)
{
	if (outcome->posix_signal)
		return outcome->posix_signal == SIGINT   ? "stopped by SIGINT"
		       : outcome->posix_signal == SIGHUP ? "stopped by SIGHUP"
							 : "stopped by SIGTERM";
	return outcome->status ? weir_status_text(outcome->status) : "finished";
}

static void print_headline(const char *path, weir_scheduler *scheduler, const weir_outcome *outcome)
{
	char rate[32];
	const char *where = weir_scheduler_where(scheduler);
	weir_frames frames = {.size = sizeof frames};

	cli_print_escaped(stdout, path);
	printf(": %s after %s on %s", ending(outcome), wr_time_shown(outcome->duration_ns).text, where);
	if (!weir_scheduler_frames(scheduler, &frames) && frames.frames && outcome->duration_ns > 0)
		printf(", %s frames/s",
		       cli_rate(rate, (double)frames.frames * 1e9 / (double)outcome->duration_ns));
	putchar('\n');
}

/* "blur", or "blur x4" of one with instances. */
static struct wr_shown name_of(const weir_entity_counts *counts)
{
	return cli_recorded_name(
		&(struct cli_entity){.name = (char *)counts->entity, .instances = counts->instances});
}

/* entity: the statistics of it, or NULL. */
static void print_entity(int width, bool device, const weir_entity_counts *counts,
			 const struct cli_entity *entity)
{
	printf("  %-*s  %10" PRIu64 "  %10" PRIu64 "  %10" PRIu64 "  %12s", width, name_of(counts).text,
	       counts->ticks, counts->received, counts->emitted,
	       wr_time_shown(entity ? entity->submit.sum : 0).text);
	if (device)
		printf("  %14" PRIu64, counts->most_in_flight);
	putchar('\n');
	if (counts->unconnected)
		printf("  %-*s  %10" PRIu64 " emitted on an output that is not connected\n", width, "",
		       counts->unconnected);
	if (counts->unsent)
		printf("  %-*s  %10" PRIu64 " of its instances were not sent: their turn had not come\n",
		       width, "", counts->unsent);
	if (counts->lost)
		printf("  %-*s  %10" PRIu64 " beats lost\n", width, "", counts->lost);
	if (counts->most_scratch)
		printf("  %-*s  %10" PRIu64 " bytes of scratch memory at most\n", width, "",
		       counts->most_scratch);
	if (counts->replay_hits | counts->replay_captures | counts->replay_evictions |
	    counts->replay_failures)
		printf("  %-*s  %10" PRIu64 " replayed, %" PRIu64 " captured, %" PRIu64 " evicted, %" PRIu64
		       " failed\n",
		       width, "", counts->replay_hits, counts->replay_captures, counts->replay_evictions,
		       counts->replay_failures);
}

/* "  latency: mean 3.1 ms, max 9.8 ms at 'show'" */
static void print_latencies(const struct cli_recorded *recorded)
{
	for (size_t i = 0; i < LISTED && i < recorded->entities.count; i++) {
		const struct cli_entity *entity = cli_recorded_entity(recorded, i);
		const struct cli_stamped *age = &entity->stamped;

		if (age->count)
			printf("  latency: mean %s, max %s at '%s'\n",
			       wr_time_shown(age->sum / age->count).text, wr_time_shown(age->max).text,
			       entity->name);
	}
}

static void print_entities(weir_scheduler *scheduler, const struct cli_recorded *recorded)
{
	weir_entity_counts counts = {.size = sizeof counts};
	int width = (int)strlen("entity");
	bool device = false; /* an entity used the device with a bound: the column for ticks in flight */
	size_t i = 0;

	for (; !weir_scheduler_entity_counts(scheduler, i, &counts); i++) {
		if (i < LISTED && (int)strlen(name_of(&counts).text) > width)
			width = (int)strlen(name_of(&counts).text);
		device |= counts.most_in_flight > 0;
	}
	printf("  %-*s  %10s  %10s  %10s  %12s%s\n", width, "entity", "ticks", "received", "emitted",
	       "in compute", device ? "  most in flight" : "");
	for (i = 0; !weir_scheduler_entity_counts(scheduler, i, &counts); i++)
		if (i < LISTED)
			print_entity(width, device, &counts, cli_recorded_entity(recorded, i));
	if (i > LISTED)
		printf("  and %zu more\n", i - LISTED);
}

static void print_count(const char **before, uint64_t count, const char *what)
{
	if (!count)
		return;
	printf("%s%" PRIu64 " %s", *before, count, what);
	*before = ", ";
}

/* Prints only queues with messages that did not reach a compute. */
static void print_queues(weir_scheduler *scheduler)
{
	weir_queue_counts counts = {.size = sizeof counts};

	for (size_t i = 0; !weir_scheduler_queue_counts(scheduler, i, &counts); i++) {
		const char *before = ": ";

		if (!(counts.dropped | counts.unmatched | counts.closed | counts.queued | counts.abandoned))
			continue;
		printf("  %s -> %s", counts.from, counts.to);
		print_count(&before, counts.dropped, "dropped");
		print_count(&before, counts.unmatched, "unmatched");
		print_count(&before, counts.closed, "closed");
		print_count(&before, counts.queued, "left over");
		print_count(&before, counts.abandoned, "abandoned");
		putchar('\n');
	}
}

/* Prints the high-water mark of each memory pool. */
static void print_pools(weir_scheduler *scheduler)
{
	weir_pool_counts counts = {.size = sizeof counts};

	for (size_t i = 0; !weir_scheduler_pool_counts(scheduler, i, &counts); i++) {
		const char *before = ", ";

		printf("  memory pool %s: at most %" PRIu64 " of %" PRIu64 " %s in use, %" PRIu64
		       " allocations",
		       counts.pool, counts.most_used, counts.capacity, counts.block_size ? "blocks" : "bytes",
		       counts.allocations);
		print_count(&before, counts.refused, "waits for memory");
		print_count(&before, counts.busy, "refused as busy");
		print_count(&before, counts.used, "still in use");
		putchar('\n');
	}
}

static bool writes_to_directory(const weir_operator *kind)
{
	for (const weir_parameter *parameter = kind->parameters; parameter && parameter->name; parameter++)
		if ((parameter->type == WEIR_TYPE_STRING || parameter->type == WEIR_TYPE_WRITE_FILE) &&
		    !strcmp(parameter->name, "directory"))
			return true;
	return false;
}

/* An operator with a parameter `directory` writes its files there. */
static void print_directories(weir_graph *graph, weir_scheduler *scheduler)
{
	weir_entity_counts counts = {.size = sizeof counts};

	for (size_t i = 0; i < LISTED && !weir_scheduler_entity_counts(scheduler, i, &counts); i++) {
		weir_entity *entity = weir_graph_entity(graph, counts.entity);

		if (!entity || !counts.ticks || !writes_to_directory(weir_entity_operator(entity)))
			continue;
		printf("  %s wrote to ", counts.entity);
		cli_print_escaped(stdout, weir_values_string(weir_entity_values(entity), "directory"));
		putchar('\n');
	}
}

/* References that an operator took and forgot keep memory for ever. */
static void print_held(weir_scheduler *scheduler, uint64_t held)
{
	weir_entity_counts counts = {.size = sizeof counts};

	for (size_t i = 0; held && !weir_scheduler_entity_counts(scheduler, i, &counts); i++) {
		if (!counts.held)
			continue;
		printf("  '%s' still holds %" PRIu64 " message%s\n", counts.entity, counts.held,
		       counts.held == 1 ? "" : "s");
		held -= counts.held < held ? counts.held : held;
	}
	if (held)
		printf("  %" PRIu64 " message%s still held\n", held, held == 1 ? " is" : "s are");
}

void cli_summary(const char *path, weir_graph *graph, weir_scheduler *scheduler, const weir_outcome *outcome,
		 const struct cli_recorded *recorded)
{
	print_headline(path, scheduler, outcome);
	print_entities(scheduler, recorded);
	print_queues(scheduler);
	print_latencies(recorded);
	print_pools(scheduler);
	print_held(scheduler, outcome->held);
	if (outcome->discarded)
		printf("  %" PRIu64 " left over by the run before were discarded\n", outcome->discarded);
	if (outcome->waiting)
		printf("  waiting for something from outside: %s\n", outcome->waiting);
	print_directories(graph, scheduler);
}
