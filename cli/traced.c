/*
 * Reads a trace once, event by event, in the order of time.
 *
 * A tick's slice lies on the row of its worker. An arrow that begins in it is a message that it sent, one
 * that ends in it a message that it took, so each step learns the step that its input came from; of several
 * the one with the oldest origin.
 */
#include "cli/traced.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "base/words.h"
#include "cli/cli.h"
#include "cli/event.h"

enum { VERSION = 1, ROWS_MAX = 1 << 21, WAITS_MAX = 1000 };

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
	struct cli_traced *out;
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

static bool fail(struct reading *reading)
{
	return cli_json_refuse(&reading->json, cli_json_no_memory);
}

/* The row, which is made when it is first seen. NULL after a failure. */
static struct row *row_of(struct reading *reading, const struct cli_event *event)
{
	int which = event->group == CLI_GROUP_ENTITIES;
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

static bool add_step(struct reading *reading, struct cli_step step)
{
	struct cli_step *made = cli_list_add(&reading->out->steps, sizeof step);

	if (!made)
		return fail(reading);
	*made = step;
	return true;
}

/* A message begins. On the row of other threads it comes from the program: a step of its own. */
static bool arrow_begins(struct reading *reading, const struct cli_event *event)
{
	struct row *row = row_of(reading, event);
	uint64_t id = cli_event_id(event);
	struct arrow *place;

	if (!row || !id)
		return row;
	if (!row->step && !add_step(reading, (struct cli_step){.entity = CLI_PROGRAM,
							       .origin = event->at,
							       .ready = event->at,
							       .begin = event->at,
							       .end = event->at,
							       .device_begin = CLI_TIME_NONE,
							       .device_end = CLI_TIME_NONE}))
		return false;
	if (row->step)
		cli_traced_step(reading->out, row->step - 1)->gave = true;
	if (2 * reading->arrow_count >= reading->arrow_room && !arrows_grow(reading))
		return false;
	place = arrow_place(reading->arrows, reading->arrow_room, id);
	reading->arrow_count += !place->step;
	*place = (struct arrow){id, row->step ? row->step : (uint32_t)reading->out->steps.count};
	return true;
}

static bool arrow_ends(struct reading *reading, const struct cli_event *event)
{
	struct row *row = row_of(reading, event);
	uint64_t id = cli_event_id(event);
	struct cli_step *step, *from;
	struct arrow *place;

	if (row && id && row->step)
		cli_traced_step(reading->out, row->step - 1)->took = true;
	if (!row || !id || !row->step || !reading->arrow_room)
		return row;
	place = arrow_place(reading->arrows, reading->arrow_room, id);
	if (!place->step || place->step >= row->step)
		return true; /* sent before the trace begins */
	step = cli_traced_step(reading->out, row->step - 1);
	from = cli_traced_step(reading->out, place->step - 1);
	if (from->inside && from->entity == step->entity && from->wait)
		step->wait = from->wait;
	if (!step->via || from->origin < step->origin) {
		step->via = from->inside ? from->via : place->step;
		step->origin = from->origin;
	}
	return true;
}

/* --- slices --- */

static bool tick_begins(struct reading *reading, const struct cli_event *event, struct row *row)
{
	bool inside = event->of.length;
	size_t entity = cli_recorded_find(reading->recorded, inside ? event->of : event->name);
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
					.inside = inside,
					.wait = of->wait}))
		return false;
	of->wait = 0;
	row->step = (uint32_t)reading->out->steps.count;
	if (inside)
		return true;
	number = cli_list_add(&of->steps, sizeof *number);
	if (!number)
		return fail(reading);
	*number = row->step;
	return true;
}

/* Ticks are the slices that say which one they are; others are sleeps, captures, pushes. */
static bool worker_slice(struct reading *reading, const struct cli_event *event)
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
		cli_traced_step(reading->out, row->step - 1)->end = event->at;
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
		return fail(reading);
	for (size_t i = 0; i < waits->count; i++)
		if (!strcmp(((char **)waits->items)[i], text)) {
			free(text);
			return (uint32_t)i + 1;
		}
	made = waits->count < WAITS_MAX ? cli_list_add(waits, sizeof text) : NULL;
	if (!made) {
		free(text);
		return waits->count < WAITS_MAX && fail(reading);
	}
	*made = text;
	return (uint32_t)waits->count;
}

static bool entity_slice(struct reading *reading, const struct cli_event *event)
{
	struct row *row = row_of(reading, event);

	if (row && row->entity && event->phase == 'B')
		reading->entities[row->entity - 1].wait = wait_of(reading, event->name);
	return row;
}

static bool entity_row(struct reading *reading, const struct cli_event *event)
{
	struct row *row = row_of(reading, event);
	size_t entity = cli_recorded_find(reading->recorded, event->named);

	if (row && entity != CLI_NO_ENTITY)
		row->entity = (uint32_t)entity + 1;
	return row;
}

/* The step of that tick. Those of instances begin in the order of their ticks but for as many as there are.
 */
static struct cli_step *step_of(struct reading *reading, size_t entity, int64_t tick)
{
	const struct cli_list *steps = &reading->entities[entity].steps;
	const uint32_t *numbers = steps->items;
	int64_t around = cli_recorded_lanes(cli_recorded_entity(reading->recorded, entity)) - 1, first;

	if (!steps->count)
		return NULL;
	first = tick - cli_traced_step(reading->out, numbers[0] - 1)->tick - around;
	for (int64_t i = first < 0 ? 0 : first; i <= first + 2 * around && i < (int64_t)steps->count; i++)
		if (cli_traced_step(reading->out, numbers[i] - 1)->tick == tick)
			return cli_traced_step(reading->out, numbers[i] - 1);
	return NULL;
}

/* Several streams of one tick count from the first begin to the last end. */
static void device_slice(struct reading *reading, const struct cli_event *event)
{
	size_t entity = cli_recorded_find(reading->recorded, event->name);
	struct cli_step *step = NULL;

	if (entity != CLI_NO_ENTITY && event->tick != CLI_TIME_NONE)
		step = step_of(reading, entity, event->tick);
	if (!step)
		return;
	if (step->device_begin == CLI_TIME_NONE || event->at < step->device_begin)
		step->device_begin = event->at;
	if (step->device_end == CLI_TIME_NONE || event->at + event->duration > step->device_end)
		step->device_end = event->at + event->duration;
}

static bool take_event(struct reading *reading, const struct cli_event *event)
{
	reading->out->events++;
	if (event->group == CLI_GROUP_WORKERS && (event->phase == 'B' || event->phase == 'E'))
		return worker_slice(reading, event);
	if (event->group == CLI_GROUP_WORKERS && event->phase == 's')
		return arrow_begins(reading, event);
	if (event->group == CLI_GROUP_WORKERS && event->phase == 'f')
		return arrow_ends(reading, event);
	if (event->group == CLI_GROUP_ENTITIES && event->phase == 'M' &&
	    cli_slice_is(event->name, "thread_name"))
		return entity_row(reading, event);
	if (event->group == CLI_GROUP_ENTITIES && (event->phase == 'B' || event->phase == 'E'))
		return entity_slice(reading, event);
	if (event->group == CLI_GROUP_DEVICE && event->phase == 'X')
		device_slice(reading, event);
	return true;
}

/* --- the text --- */

static void read_events(struct reading *reading)
{
	struct cli_json *json = &reading->json;

	reading->listed = true;
	for (cli_json_list(json); cli_json_item(json);) {
		struct cli_event event;

		if (cli_event_read(json, &event))
			take_event(reading, &event);
	}
}

static void read_other(struct reading *reading)
{
	struct cli_json *json = &reading->json;
	struct cli_slice key, graph;

	for (cli_json_object(json); cli_json_member(json, &key);)
		if (cli_slice_is(key, "weir_trace"))
			cli_json_count(json, &reading->version);
		else if (cli_slice_is(key, "duration_ns"))
			cli_json_count(json, &reading->duration);
		else if (cli_slice_is(key, "begun_ns"))
			cli_json_count(json, &reading->out->begun);
		else if (cli_slice_is(key, "dropped_records"))
			cli_json_count(json, &reading->out->dropped);
		else if (cli_slice_is(key, "graph") && cli_json_next(json) == CLI_JSON_STRING) {
			cli_json_string(json, &graph);
			free(reading->graph);
			reading->graph = json->fault ? NULL : cli_slice_decoded(graph);
			if (!json->fault && !reading->graph)
				fail(reading);
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
	snprintf(fault, 512, "%s", text == cli_json_no_memory ? "" : text);
	return false;
}

/*
 * Both files have the duration of the run to the nanosecond, which no other run on a machine has. A program
 * may also write statistics during the run; the trace is of its end.
 */
static bool is_other_run(const struct reading *reading)
{
	const struct cli_recorded *recorded = reading->recorded;
	bool another = reading->graph && recorded->graph && strcmp(reading->graph, recorded->graph);
	bool running = !recorded->cause; /* or the file does not say */

	return another || reading->stranger ||
	       (reading->duration &&
		(running ? reading->duration < recorded->duration : reading->duration != recorded->duration));
}

static bool say_other_run(const struct reading *reading, char fault[512])
{
	snprintf(fault, 512,
		 "the trace of another run (%s, %s) than the statistics (%s, %s): give those of one run, "
		 "weir run --trace FILE --stats-file FILE",
		 wr_shown(reading->graph ? reading->graph : "?").text, wr_time_shown(reading->duration).text,
		 wr_shown(reading->recorded->graph ? reading->recorded->graph : "?").text,
		 wr_time_shown(reading->recorded->duration).text);
	return false;
}

static bool check(const struct reading *reading, char fault[512])
{
	const struct cli_json *json = &reading->json;
	unsigned line, column;

	if (json->fault == cli_json_no_memory)
		return say(fault, json->fault);
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

/* --- all --- */

bool cli_traced_read(struct cli_traced *out, const struct cli_recorded *recorded, const char *text,
		     size_t length, char fault[512])
{
	struct reading reading = {.json = cli_json_of(text, length), .out = out, .recorded = recorded};
	bool good;

	*out = (struct cli_traced){0};
	reading.entities = calloc(recorded->entities.count + 1, sizeof *reading.entities);
	if (!reading.entities)
		return say(fault, cli_json_no_memory);
	read_whole(&reading);
	good = check(&reading, fault);
	for (size_t i = 0; i < recorded->entities.count; i++)
		free(reading.entities[i].steps.items);
	free(reading.entities);
	free(reading.rows[0]);
	free(reading.rows[1]);
	free(reading.arrows);
	free(reading.graph);
	return good;
}

void cli_traced_finish(struct cli_traced *traced)
{
	for (size_t i = 0; i < traced->waits.count; i++)
		free(((char **)traced->waits.items)[i]);
	free(traced->waits.items);
	free(traced->steps.items);
	*traced = (struct cli_traced){0};
}
