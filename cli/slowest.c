/*
 * The slowest frames of a trace. The way of a frame is the chain from the step of a sink back to that of the
 * source.
 */
#include "cli/slowest.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/report.h"

enum { AROUND_MAX = 1200, CHAIN_MAX = 2000 };

static struct cli_step *step_at(const struct cli_frames_slowest *frames, size_t i)
{
	return cli_traced_step(&frames->traced, i);
}

/* --- the slowest --- */

static int64_t step_end(const struct cli_step *step)
{
	return step->device_end > step->end ? step->device_end : step->end;
}

static int64_t latency_of(const struct cli_frames_slowest *frames, size_t i)
{
	return step_end(step_at(frames, i)) - step_at(frames, i)->origin;
}

/* Marks where frames end: at the main entity; if there is none, at each that sends to no other one. */
static bool *find_sinks(const struct cli_recorded *recorded)
{
	const struct cli_queue *queues = recorded->queues.items;
	bool *sinks = calloc(recorded->entities.count + 1, sizeof *sinks);
	bool all = recorded->main_at == CLI_NO_ENTITY;

	for (size_t i = 0; sinks && i < recorded->entities.count; i++)
		sinks[i] = all || i == recorded->main_at;
	for (size_t i = 0; sinks && all && i < recorded->queues.count; i++)
		if (queues[i].sender_at != CLI_NO_ENTITY && queues[i].receiver_at != CLI_NO_ENTITY)
			sinks[queues[i].sender_at] = false;
	return sinks;
}

/* Keeps the list of the slowest in order. */
static void consider(struct cli_frames_slowest *frames, size_t i)
{
	size_t at = frames->count < CLI_SLOWEST_MAX - 1 ? frames->count++ : CLI_SLOWEST_MAX - 1;

	for (; at && latency_of(frames, frames->frames[at - 1]) < latency_of(frames, i); at--)
		if (at < CLI_SLOWEST_MAX - 1)
			frames->frames[at] = frames->frames[at - 1];
	if (at < CLI_SLOWEST_MAX - 1)
		frames->frames[at] = i;
}

static int compare_times(const void *a, const void *b)
{
	int64_t one = *(const int64_t *)a, other = *(const int64_t *)b;

	return (one > other) - (one < other);
}

/* Adds a frame whose latency is the median of those of the slowest one's sink. Returns false if memory ran
 * out. */
static bool add_typical(struct cli_frames_slowest *frames, const struct cli_list *sinks)
{
	const uint32_t *steps = sinks->items;
	uint32_t sink = step_at(frames, frames->frames[0])->entity;
	int64_t *latencies = calloc(sinks->count + 1, sizeof *latencies), median;
	size_t count = 0;

	if (!latencies)
		return false;
	for (size_t i = 0; i < sinks->count; i++)
		if (step_at(frames, steps[i])->entity == sink)
			latencies[count++] = latency_of(frames, steps[i]);
	qsort(latencies, count, sizeof *latencies, compare_times);
	median = latencies[count / 2];
	free(latencies);
	for (size_t i = 0; i < sinks->count; i++)
		if (step_at(frames, steps[i])->entity == sink && latency_of(frames, steps[i]) == median) {
			frames->frames[frames->count++] = steps[i];
			break;
		}
	return true;
}

static bool choose(struct cli_frames_slowest *frames, const struct cli_recorded *recorded)
{
	bool *is_sink = find_sinks(recorded), good = is_sink, main = recorded->main_at != CLI_NO_ENTITY;
	struct cli_list sinks = {NULL, 0, 0};

	for (size_t i = 0; good && i < frames->traced.steps.count; i++) {
		const struct cli_step *step = step_at(frames, i);
		uint32_t *sink;

		/* A tick of the main entity that receives nothing goes on with a frame, or ends one. */
		if (step->entity == CLI_PROGRAM || step->inside || !is_sink[step->entity] ||
		    (main && !step->via))
			continue;
		sink = cli_list_add(&sinks, sizeof *sink);
		good = sink;
		if (!sink)
			break;
		*sink = (uint32_t)i;
		consider(frames, i);
	}
	frames->frame_count = (int64_t)sinks.count;
	if (good && sinks.count > CLI_SLOWEST_MAX)
		good = add_typical(frames, &sinks);
	free(sinks.items);
	free(is_sink);
	return good;
}

bool cli_slowest_read(struct cli_frames_slowest *out, const struct cli_recorded *recorded, const char *text,
		      size_t length, char fault[512])
{
	*out = (struct cli_frames_slowest){0};
	if (!cli_traced_read(&out->traced, recorded, text, length, fault))
		return false;
	if (choose(out, recorded))
		return true;
	*fault = '\0';
	return false;
}

void cli_slowest_finish(struct cli_frames_slowest *frames)
{
	cli_traced_finish(&frames->traced);
	*frames = (struct cli_frames_slowest){0};
}

/* --- printing --- */

static void print_time(FILE *to, int64_t time)
{
	if (time == CLI_TIME_NONE)
		fputs("null", to);
	else
		fprintf(to, "%" PRId64, time);
}

static void print_step(FILE *to, const struct cli_frames_slowest *frames, const struct cli_step *step)
{
	const struct cli_step *from = step->via ? step_at(frames, step->via - 1) : NULL;

	fprintf(to, "{\"entity\": %" PRId64 ", \"tick\": %" PRId64 ", \"arrived\": ",
		step->entity == CLI_PROGRAM ? -1 : (int64_t)step->entity, step->tick);
	print_time(to, from ? from->end : step->ready);
	fprintf(to, ", \"ready\": %" PRId64 ", \"begin\": %" PRId64 ", \"end\": %" PRId64 ", \"device\": [",
		step->ready, step->begin, step->end);
	print_time(to, step->device_begin);
	fputs(", ", to);
	print_time(to, step->device_end);
	fprintf(to, "], \"wait\": %" PRIu32 "}", step->wait);
}

/* From the source to the sink. */
static void print_way(FILE *to, const struct cli_frames_slowest *frames, size_t last)
{
	size_t way[CHAIN_MAX], count = 0;

	for (size_t at = last + 1; at && count < CHAIN_MAX; at = step_at(frames, at - 1)->via)
		way[count++] = at - 1;
	for (size_t i = count; i--;) {
		print_step(to, frames, step_at(frames, way[i]));
		fputs(i ? ",\n   " : "", to);
	}
}

static bool is_on_way(const struct cli_frames_slowest *frames, size_t frame, uint32_t entity)
{
	for (size_t at = frame + 1; at; at = step_at(frames, at - 1)->via)
		if (step_at(frames, at - 1)->entity == entity)
			return true;
	return false;
}

/*
 * What else the entities of its way did from the frame's begin to its end: [entity, tick, begin, end, device
 * begin, device end].
 */
static void print_around(FILE *to, const struct cli_frames_slowest *frames, size_t frame)
{
	int64_t begin = step_at(frames, frame)->origin, end = step_end(step_at(frames, frame));
	size_t printed = 0;

	for (size_t i = 0; i < frames->traced.steps.count && printed < AROUND_MAX; i++) {
		const struct cli_step *step = step_at(frames, i);

		if (step->begin > end || step_end(step) < begin || step->entity == CLI_PROGRAM ||
		    step->inside || !is_on_way(frames, frame, step->entity))
			continue;
		fprintf(to, "%s[%" PRIu32 ",%" PRId64 ",%" PRId64 ",%" PRId64 ",", printed++ ? "," : "",
			step->entity, step->tick, step->begin, step->end);
		print_time(to, step->device_begin);
		fputs(",", to);
		print_time(to, step->device_end);
		fputs("]", to);
	}
}

void cli_slowest_print(FILE *to, const struct cli_frames_slowest *frames)
{

	fprintf(to,
		"{\"events\": %" PRId64 ", \"dropped\": %" PRId64 ", \"frame_count\": %" PRId64
		",\n \"waits\": [",
		frames->traced.events, frames->traced.dropped, frames->frame_count);
	for (size_t i = 0; i < frames->traced.waits.count; i++) {
		fputs(i ? ", " : "", to);
		cli_page_string(to, ((char **)frames->traced.waits.items)[i]);
	}
	fputs("],\n \"frames\": [", to);
	for (size_t i = 0; i < frames->count; i++) {
		const struct cli_step *step = step_at(frames, frames->frames[i]);

		fprintf(to,
			"%s\n {\"latency\": %" PRId64 ", \"origin\": %" PRId64
			", \"typical\": %s, \"steps\": [",
			i ? "," : "", latency_of(frames, frames->frames[i]), step->origin,
			i == CLI_SLOWEST_MAX - 1 ? "true" : "false");
		print_way(to, frames, frames->frames[i]);
		fputs("],\n  \"around\": [", to);
		print_around(to, frames, frames->frames[i]);
		fputs("]}", to);
	}
	fputs("]}", to);
}
