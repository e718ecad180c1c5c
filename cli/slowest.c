/*
 * Reads a trace once, event by event, in the order of time, and keeps one step per tick.
 *
 * A tick's slice lies on the row of its worker. An arrow that begins in it is a message that it sent, one
 * that ends in it a message that it took, so each step learns the step that its input came from; of several
 * the one with the oldest origin. The way of a frame is the chain from the step of a sink back to that of the
 * source.
 */
#include "cli/slowest.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/words.h"
#include "cli/cli.h"
#include "cli/report.h"

/* As the trace numbers its groups of rows. */
enum { GROUP_WORKERS = 1, GROUP_DEVICE = 2, GROUP_ENTITIES = 3 };
enum { VERSION = 1, ROWS_MAX = 1 << 21, WAITS_MAX = 1000, AROUND_MAX = 1200, CHAIN_MAX = 2000 };

#define NO_ENTITY_ID UINT32_MAX /* the program */

static const char no_memory[] = "out of memory";

struct arrow {
	uint64_t id;
	uint32_t step; /* index + 1; 0: an empty place */
};

/* Rows of workers: the step that is open, and slices within it. Rows of entities: the entity. */
struct row {
	uint32_t step; /* index + 1 */
	unsigned depth;
	uint32_t entity; /* index + 1 */
};

struct per_entity {
	struct cli_list steps; /* of uint32_t: its ticks in order */
	uint32_t wait;
};

struct reading {
	struct cli_json json;
	struct cli_frames_slowest *out;
	const struct cli_recorded *recorded;
	struct row *rows[2]; /* of workers, of entities */
	size_t row_room[2];
	struct per_entity *entities;
	struct arrow *arrows;
	size_t arrow_count, arrow_room;
	char *graph;
	int64_t version, duration;
	bool listed, stranger; /* stranger: an entity that the statistics lack */
};

struct event {
	char phase;
	int64_t group, row, at, duration, tick, ready;
	struct cli_slice name, id, named;
};

static struct cli_step *step_at(const struct cli_frames_slowest *frames, size_t i)
{
	return (struct cli_step *)frames->steps.items + i;
}

static bool fail(struct reading *reading)
{
	return cli_json_refuse(&reading->json, no_memory);
}

/* The row, which is made when it is first seen. NULL after a failure. */
static struct row *row_of(struct reading *reading, const struct event *event)
{
	int which = event->group == GROUP_ENTITIES;
	size_t index = (size_t)event->row, room = reading->row_room[which];

	if (event->row < 0 || event->row >= ROWS_MAX) {
		cli_json_refuse(&reading->json, "a row (tid) that no trace of weir has");
		return NULL;
	}
	if (index >= room) {
		size_t grown = 2 * index + 64;
		struct row *rows = reallocarray(reading->rows[which], grown, sizeof *rows);

		if (!rows) {
			fail(reading);
			return NULL;
		}
		memset(rows + room, 0, (grown - room) * sizeof *rows);
		reading->rows[which] = rows;
		reading->row_room[which] = grown;
	}
	return &reading->rows[which][index];
}

/* --- arrows --- */

static struct arrow *arrow_place(struct arrow *arrows, size_t room, uint64_t id)
{
	size_t at = (size_t)(id * 0x9e3779b97f4a7c15u >> 20) & (room - 1);

	while (arrows[at].step && arrows[at].id != id)
		at = (at + 1) & (room - 1);
	return &arrows[at];
}

static bool arrows_grow(struct reading *reading)
{
	size_t room = reading->arrow_room ? 2 * reading->arrow_room : 1024;
	struct arrow *arrows = calloc(room, sizeof *arrows);

	if (!arrows)
		return fail(reading);
	for (size_t i = 0; i < reading->arrow_room; i++)
		if (reading->arrows[i].step)
			*arrow_place(arrows, room, reading->arrows[i].id) = reading->arrows[i];
	free(reading->arrows);
	reading->arrows = arrows;
	reading->arrow_room = room;
	return true;
}

/* Returns 0 if the arrow has no id. */
static uint64_t arrow_id(const struct event *event)
{
	char digits[24];

	if (!event->id.length || event->id.length >= sizeof digits)
		return 0;
	memcpy(digits, event->id.text, event->id.length);
	digits[event->id.length] = '\0';
	return strtoull(digits, NULL, 0) + 1;
}

static bool add_step(struct reading *reading, struct cli_step step)
{
	struct cli_step *made = cli_list_add(&reading->out->steps, sizeof step);

	if (!made)
		return fail(reading);
	*made = step;
	return true;
}

/* A message begins. On the row of other threads it comes from the program: a step of its own. */
static bool arrow_begins(struct reading *reading, const struct event *event)
{
	struct row *row = row_of(reading, event);
	uint64_t id = arrow_id(event);
	struct arrow *place;

	if (!row || !id)
		return row;
	if (!row->step && !add_step(reading, (struct cli_step){.entity = NO_ENTITY_ID,
							       .origin = event->at,
							       .ready = event->at,
							       .begin = event->at,
							       .end = event->at,
							       .device_begin = CLI_TIME_NONE,
							       .device_end = CLI_TIME_NONE}))
		return false;
	if (2 * reading->arrow_count >= reading->arrow_room && !arrows_grow(reading))
		return false;
	place = arrow_place(reading->arrows, reading->arrow_room, id);
	reading->arrow_count += !place->step;
	*place = (struct arrow){id, row->step ? row->step : (uint32_t)reading->out->steps.count};
	return true;
}

static bool arrow_ends(struct reading *reading, const struct event *event)
{
	struct row *row = row_of(reading, event);
	uint64_t id = arrow_id(event);
	struct cli_step *step, *from;
	struct arrow *place;

	if (!row || !id || !row->step || !reading->arrow_room)
		return row;
	place = arrow_place(reading->arrows, reading->arrow_room, id);
	if (!place->step || place->step >= row->step)
		return true; /* sent before the trace begins */
	step = step_at(reading->out, row->step - 1);
	from = step_at(reading->out, place->step - 1);
	if (!step->via || from->origin < step->origin) {
		step->via = place->step;
		step->origin = from->origin;
	}
	return true;
}

/* --- slices --- */

static bool tick_begins(struct reading *reading, const struct event *event, struct row *row)
{
	size_t entity = cli_recorded_find(reading->recorded, event->name);
	struct per_entity *of = entity == CLI_NO_ENTITY ? NULL : &reading->entities[entity];
	uint32_t *number;

	if (!of) {
		reading->stranger = true;
		return true;
	}
	if (reading->out->steps.count >= UINT32_MAX - 1)
		return cli_json_refuse(&reading->json, "more ticks than this command reads");
	if (!add_step(reading,
		      (struct cli_step){.entity = (uint32_t)entity,
					.tick = event->tick,
					.origin = event->at,
					.ready = event->ready == CLI_TIME_NONE ? event->at : event->ready,
					.begin = event->at,
					.end = event->at,
					.device_begin = CLI_TIME_NONE,
					.device_end = CLI_TIME_NONE,
					.wait = of->wait}))
		return false;
	of->wait = 0;
	row->step = (uint32_t)reading->out->steps.count;
	number = cli_list_add(&of->steps, sizeof *number);
	if (!number)
		return fail(reading);
	*number = row->step;
	return true;
}

/* Ticks are the slices that say which one they are; others are sleeps, captures, pushes. */
static bool worker_slice(struct reading *reading, const struct event *event)
{
	struct row *row = row_of(reading, event);

	if (!row)
		return false;
	if (event->phase == 'B') {
		if (!row->depth++ && event->tick != CLI_TIME_NONE)
			return tick_begins(reading, event, row);
		return true;
	}
	if (row->depth && !--row->depth && row->step) {
		step_at(reading->out, row->step - 1)->end = event->at;
		row->step = 0;
	}
	return true;
}

/* The index + 1 of a wait's text; 0 if there are too many. */
static uint32_t wait_of(struct reading *reading, struct cli_slice name)
{
	struct cli_list *waits = &reading->out->waits;
	char *text = cli_slice_decoded(name), **made;

	if (!text)
		return 0;
	for (size_t i = 0; i < waits->count; i++)
		if (!strcmp(((char **)waits->items)[i], text)) {
			free(text);
			return (uint32_t)i + 1;
		}
	made = waits->count < WAITS_MAX ? cli_list_add(waits, sizeof text) : NULL;
	if (!made) {
		free(text);
		return 0;
	}
	*made = text;
	return (uint32_t)waits->count;
}

static bool entity_slice(struct reading *reading, const struct event *event)
{
	struct row *row = row_of(reading, event);

	if (row && row->entity && event->phase == 'B')
		reading->entities[row->entity - 1].wait = wait_of(reading, event->name);
	return row;
}

static bool entity_row(struct reading *reading, const struct event *event)
{
	struct row *row = row_of(reading, event);
	size_t entity = cli_recorded_find(reading->recorded, event->named);

	if (row && entity != CLI_NO_ENTITY)
		row->entity = (uint32_t)entity + 1;
	return row;
}

/* Several streams of one tick count from the first begin to the last end. */
static void device_slice(struct reading *reading, const struct event *event)
{
	size_t entity = cli_recorded_find(reading->recorded, event->name);
	const struct cli_list *steps = entity == CLI_NO_ENTITY ? NULL : &reading->entities[entity].steps;
	const uint32_t *numbers = steps ? steps->items : NULL;
	struct cli_step *step;
	int64_t index;

	if (!steps || !steps->count)
		return;
	index = event->tick - step_at(reading->out, numbers[0] - 1)->tick;
	if (index < 0 || index >= (int64_t)steps->count)
		return;
	step = step_at(reading->out, numbers[index] - 1);
	if (step->device_begin == CLI_TIME_NONE || event->at < step->device_begin)
		step->device_begin = event->at;
	if (step->device_end == CLI_TIME_NONE || event->at + event->duration > step->device_end)
		step->device_end = event->at + event->duration;
}

static bool take_event(struct reading *reading, const struct event *event)
{
	reading->out->events++;
	if (event->group == GROUP_WORKERS && (event->phase == 'B' || event->phase == 'E'))
		return worker_slice(reading, event);
	if (event->group == GROUP_WORKERS && event->phase == 's')
		return arrow_begins(reading, event);
	if (event->group == GROUP_WORKERS && event->phase == 'f')
		return arrow_ends(reading, event);
	if (event->group == GROUP_ENTITIES && event->phase == 'M' && cli_slice_is(event->name, "thread_name"))
		return entity_row(reading, event);
	if (event->group == GROUP_ENTITIES && (event->phase == 'B' || event->phase == 'E'))
		return entity_slice(reading, event);
	if (event->group == GROUP_DEVICE && event->phase == 'X')
		device_slice(reading, event);
	return true;
}

/* --- the text --- */

static void read_count(struct cli_json *json, int64_t *out)
{
	if (cli_json_integer(json, out) && *out < 0)
		cli_json_refuse(json, "a number below 0");
}

/* Microseconds with a fraction. */
static void read_time(struct cli_json *json, int64_t *out)
{
	double us;

	if (!cli_json_real(json, &us))
		return;
	if (us > -1e15 && us < 1e15)
		*out = (int64_t)(us * 1000 + (us < 0 ? -0.5 : 0.5));
	else
		cli_json_refuse(json, "a time of more than 30 years");
}

static void read_arguments(struct cli_json *json, struct event *event)
{
	struct cli_slice key;

	for (cli_json_object(json); cli_json_member(json, &key);)
		if (cli_slice_is(key, "tick"))
			read_count(json, &event->tick);
		else if (cli_slice_is(key, "ready"))
			read_time(json, &event->ready);
		else if (cli_slice_is(key, "name"))
			cli_json_string(json, &event->named);
		else
			cli_json_skip(json);
}

static void read_event(struct cli_json *json, struct event *event)
{
	struct cli_slice key, phase = {NULL, 0};

	for (cli_json_object(json); cli_json_member(json, &key);)
		if (cli_slice_is(key, "ph"))
			cli_json_string(json, &phase);
		else if (cli_slice_is(key, "pid"))
			cli_json_integer(json, &event->group);
		else if (cli_slice_is(key, "tid"))
			cli_json_integer(json, &event->row);
		else if (cli_slice_is(key, "ts"))
			read_time(json, &event->at);
		else if (cli_slice_is(key, "dur"))
			read_time(json, &event->duration);
		else if (cli_slice_is(key, "name"))
			cli_json_string(json, &event->name);
		else if (cli_slice_is(key, "id") && cli_json_next(json) == CLI_JSON_STRING)
			cli_json_string(json, &event->id);
		else if (cli_slice_is(key, "args") && cli_json_next(json) == CLI_JSON_OBJECT)
			read_arguments(json, event);
		else
			cli_json_skip(json);
	event->phase = phase.length == 1 ? *phase.text : '\0';
}

static void read_events(struct reading *reading)
{
	struct cli_json *json = &reading->json;

	reading->listed = true;
	for (cli_json_list(json); cli_json_item(json);) {
		struct event event = {
			.tick = CLI_TIME_NONE, .ready = CLI_TIME_NONE, .name = {"", 0}, .named = {"", 0}};

		read_event(json, &event);
		if (!json->fault)
			take_event(reading, &event);
	}
}

static void read_other(struct reading *reading)
{
	struct cli_json *json = &reading->json;
	struct cli_slice key, graph;

	for (cli_json_object(json); cli_json_member(json, &key);)
		if (cli_slice_is(key, "weir_trace"))
			read_count(json, &reading->version);
		else if (cli_slice_is(key, "duration_ns"))
			read_count(json, &reading->duration);
		else if (cli_slice_is(key, "dropped_records"))
			read_count(json, &reading->out->dropped);
		else if (cli_slice_is(key, "graph") && cli_json_next(json) == CLI_JSON_STRING) {
			cli_json_string(json, &graph);
			free(reading->graph);
			reading->graph = json->fault ? NULL : cli_slice_decoded(graph);
		} else {
			cli_json_skip(json);
		}
}

static void read_whole(struct reading *reading)
{
	struct cli_json *json = &reading->json;
	struct cli_slice key;

	for (cli_json_object(json); cli_json_member(json, &key);)
		if (cli_slice_is(key, "traceEvents"))
			read_events(reading);
		else if (cli_slice_is(key, "otherData"))
			read_other(reading);
		else
			cli_json_skip(json);
	cli_json_finish(json);
}

/* --- what is wrong --- */

static bool say(char fault[512], const char *text)
{
	snprintf(fault, 512, "%s", text);
	return false;
}

static bool is_other_run(const struct reading *reading)
{
	int64_t wanted = reading->recorded->duration, apart = reading->duration - wanted;
	bool another = reading->graph && reading->recorded->graph &&
		       strcmp(reading->graph, reading->recorded->graph);

	return another || reading->stranger ||
	       (reading->duration && (apart > wanted / 20 + 10000000 || -apart > wanted / 20 + 10000000));
}

static bool say_other_run(const struct reading *reading, char fault[512])
{
	char trace[24], run[24];

	snprintf(fault, 512,
		 "the trace of another run (%s, %s) than the statistics (%s, %s): give those of one run, "
		 "weir run --trace FILE --stats-file FILE",
		 wr_shown(reading->graph ? reading->graph : "?").text, cli_duration(trace, reading->duration),
		 wr_shown(reading->recorded->graph ? reading->recorded->graph : "?").text,
		 cli_duration(run, reading->recorded->duration));
	return false;
}

static bool check(const struct reading *reading, char fault[512])
{
	const struct cli_json *json = &reading->json;
	unsigned line, column;

	if (json->fault) {
		cli_json_place(json, &line, &column);
		snprintf(fault, 512, "%u:%u: %s; %s", line, column, json->fault,
			 json->cut ? "let the run write it again"
				   : "weir run --trace FILE.json writes such files");
		return false;
	}
	if (!reading->version || !reading->listed)
		return say(fault, "JSON, but no trace of weir: weir run --trace FILE.json writes them");
	if (reading->version != VERSION) {
		snprintf(fault, 512,
			 "a trace of version %" PRId64 ", this command reads version %d; use the weir that "
			 "wrote the file",
			 reading->version, VERSION);
		return false;
	}
	if (is_other_run(reading))
		return say_other_run(reading, fault);
	if (!reading->out->steps.count)
		return say(fault, "the trace has no tick; leave it out");
	return true;
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

/* Marks the entities that send to another one. */
static bool *find_senders(const struct cli_recorded *recorded)
{
	const struct cli_queue *queues = recorded->queues.items;
	bool *sends = calloc(recorded->entities.count + 1, sizeof *sends);

	for (size_t i = 0; sends && i < recorded->queues.count; i++)
		if (queues[i].sender_at != CLI_NO_ENTITY && queues[i].receiver_at != CLI_NO_ENTITY)
			sends[queues[i].sender_at] = true;
	return sends;
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

/* Adds a frame whose latency is the median of those of the slowest one's sink. */
static void add_typical(struct cli_frames_slowest *frames, const struct cli_list *sinks)
{
	const uint32_t *steps = sinks->items;
	uint32_t sink = step_at(frames, frames->frames[0])->entity;
	int64_t *latencies = calloc(sinks->count + 1, sizeof *latencies), median;
	size_t count = 0;

	if (!latencies)
		return;
	for (size_t i = 0; i < sinks->count; i++)
		if (step_at(frames, steps[i])->entity == sink)
			latencies[count++] = latency_of(frames, steps[i]);
	qsort(latencies, count, sizeof *latencies, compare_times);
	median = latencies[count / 2];
	free(latencies);
	for (size_t i = 0; i < sinks->count; i++)
		if (step_at(frames, steps[i])->entity == sink && latency_of(frames, steps[i]) == median) {
			frames->frames[frames->count++] = steps[i];
			return;
		}
}

static bool choose(struct cli_frames_slowest *frames, const struct cli_recorded *recorded)
{
	bool *sends = find_senders(recorded);
	struct cli_list sinks = {NULL, 0, 0};

	for (size_t i = 0; sends && i < frames->steps.count; i++) {
		const struct cli_step *step = step_at(frames, i);
		uint32_t *sink;

		if (step->entity == NO_ENTITY_ID || sends[step->entity])
			continue;
		sink = cli_list_add(&sinks, sizeof *sink);
		if (!sink)
			break;
		*sink = (uint32_t)i;
		consider(frames, i);
	}
	frames->frame_count = (int64_t)sinks.count;
	if (sinks.count > CLI_SLOWEST_MAX)
		add_typical(frames, &sinks);
	free(sinks.items);
	free(sends);
	return sends;
}

bool cli_slowest_read(struct cli_frames_slowest *out, const struct cli_recorded *recorded, const char *text,
		      size_t length, char fault[512])
{
	struct reading reading = {.json = cli_json_of(text, length), .out = out, .recorded = recorded};
	bool good;

	*out = (struct cli_frames_slowest){0};
	reading.entities = calloc(recorded->entities.count + 1, sizeof *reading.entities);
	if (!reading.entities)
		return say(fault, no_memory);
	read_whole(&reading);
	good = check(&reading, fault) && (choose(out, recorded) || say(fault, no_memory));
	for (size_t i = 0; i < recorded->entities.count; i++)
		free(reading.entities[i].steps.items);
	free(reading.entities);
	free(reading.rows[0]);
	free(reading.rows[1]);
	free(reading.arrows);
	free(reading.graph);
	return good;
}

void cli_slowest_finish(struct cli_frames_slowest *frames)
{
	for (size_t i = 0; i < frames->waits.count; i++)
		free(((char **)frames->waits.items)[i]);
	free(frames->waits.items);
	free(frames->steps.items);
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
		step->entity == NO_ENTITY_ID ? -1 : (int64_t)step->entity, step->tick);
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

/* What else ran from the frame's begin to its end: [entity, tick, begin, end, device begin, device end]. */
static void print_around(FILE *to, const struct cli_frames_slowest *frames, size_t frame)
{
	int64_t begin = step_at(frames, frame)->origin, end = step_end(step_at(frames, frame));
	size_t printed = 0;

	for (size_t i = 0; i < frames->steps.count && printed < AROUND_MAX; i++) {
		const struct cli_step *step = step_at(frames, i);

		if (step->begin > end || step_end(step) < begin || step->entity == NO_ENTITY_ID)
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
		frames->events, frames->dropped, frames->frame_count);
	for (size_t i = 0; i < frames->waits.count; i++) {
		fputs(i ? ", " : "", to);
		cli_page_string(to, ((char **)frames->waits.items)[i]);
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
