/*
 * Tables say what each object has: the key, what its value is, and where it goes. Keys that no table has are
 * skipped, so that a later version may add some.
 */
#include "cli/recorded.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/words.h"

enum { VERSION = 1 };
#define STATUS_ABSENT ((weir_status)1) /* while it is read: the file does not say */

enum kind { COUNT, INTEGER, REAL, FLAG, TEXT, CAUSE, STATUS, OBJECT, LIST, TEXTS };

struct shape;
struct field {
	const char *key;
	enum kind kind;
	size_t offset;
	const struct shape *shape; /* of an object, or of each item of a list */
	bool required;
};

struct shape {
	size_t size;
	const struct field *fields; /* ends with a NULL key */
};

#define FIELD(type, kind, member)                                                                            \
	{                                                                                                    \
#member, kind, offsetof(struct type, member), NULL, false                                    \
	}
#define NEEDED(type, kind, member)                                                                           \
	{                                                                                                    \
#member, kind, offsetof(struct type, member), NULL, true                                     \
	}
#define SHAPED(type, kind, member, shape)                                                                    \
	{                                                                                                    \
#member, kind, offsetof(struct type, member), &shape, false                                  \
	}
#define SHAPE(type, fields)                                                                                  \
	{                                                                                                    \
		sizeof(struct type), fields                                                                  \
	}

static const struct field histogram_fields[] = {
	FIELD(cli_histogram, COUNT, count), FIELD(cli_histogram, COUNT, sum),
	FIELD(cli_histogram, COUNT, min),   FIELD(cli_histogram, COUNT, max),
	FIELD(cli_histogram, COUNT, p50),   FIELD(cli_histogram, COUNT, p90),
	FIELD(cli_histogram, COUNT, p99),   {0},
};
static const struct shape histogram = SHAPE(cli_histogram, histogram_fields);

static const struct field wait_fields[] = {
	FIELD(cli_wait, CAUSE, cause),
	FIELD(cli_wait, TEXT, on),
	NEEDED(cli_wait, TEXT, of),
	FIELD(cli_wait, TEXT, why),
	FIELD(cli_wait, COUNT, open),
	FIELD(cli_wait, COUNT, instances),
	SHAPED(cli_wait, OBJECT, time, histogram),
	{0},
};
static const struct shape wait = SHAPE(cli_wait, wait_fields);

static const struct field cpu_fields[] = {
	FIELD(cli_cpu, COUNT, count),
	FIELD(cli_cpu, COUNT, time),
	FIELD(cli_cpu, COUNT, of),
	FIELD(cli_cpu, COUNT, waits),
	{0},
};
static const struct shape cpu = SHAPE(cli_cpu, cpu_fields);

static const struct field times_fields[] = {FIELD(cli_times, INTEGER, period), {0}};
static const struct shape times = SHAPE(cli_times, times_fields);

static const struct field condition_fields[] = {
	NEEDED(cli_condition, TEXT, type),
	FIELD(cli_condition, TEXT, name),
	SHAPED(cli_condition, OBJECT, times, times),
	{0},
};
static const struct shape condition = SHAPE(cli_condition, condition_fields);

static const struct field use_fields[] = {
	NEEDED(cli_use, COUNT, stream),
	FIELD(cli_use, COUNT, device),
	FIELD(cli_use, COUNT, count),
	FIELD(cli_use, COUNT, time),
	{0},
};
static const struct shape use = SHAPE(cli_use, use_fields);

static const struct field lock_fields[] = {
	NEEDED(cli_lock, TEXT, name),
	FIELD(cli_lock, COUNT, count),
	FIELD(cli_lock, COUNT, time),
	{0},
};
static const struct shape lock = SHAPE(cli_lock, lock_fields);

static const struct field stamped_fields[] = {
	FIELD(cli_stamped, COUNT, count),
	FIELD(cli_stamped, COUNT, sum),
	FIELD(cli_stamped, COUNT, max),
	{0},
};
static const struct shape stamped = SHAPE(cli_stamped, stamped_fields);

static const struct field way_fields[] = {
	FIELD(cli_way, COUNT, count), FIELD(cli_way, INTEGER, min), FIELD(cli_way, INTEGER, p50),
	FIELD(cli_way, INTEGER, p99), FIELD(cli_way, INTEGER, max), {0},
};
static const struct shape way = SHAPE(cli_way, way_fields);

static const struct field numbers_fields[] = {
	NEEDED(cli_numbers, COUNT, emitted),
	NEEDED(cli_numbers, COUNT, number),
	{0},
};
static const struct shape numbers = SHAPE(cli_numbers, numbers_fields);

static const struct field remote_fields[] = {
	FIELD(cli_remote, TEXT, to),
	FIELD(cli_remote, TEXT, listen),
	NEEDED(cli_remote, TEXT, session),
	NEEDED(cli_remote, TEXT, peer),
	FIELD(cli_remote, COUNT, count),
	FIELD(cli_remote, COUNT, lost),
	FIELD(cli_remote, COUNT, exchanges),
	FIELD(cli_remote, INTEGER, offset),
	FIELD(cli_remote, COUNT, error),
	FIELD(cli_remote, COUNT, emitted),
	SHAPED(cli_remote, OBJECT, way, way),
	FIELD(cli_remote, FLAG, all_numbers),
	SHAPED(cli_remote, LIST, numbers, numbers),
	{0},
};
static const struct shape remote = SHAPE(cli_remote, remote_fields);

/* An operator records what it wants: of other ones nothing is known. */
static const struct field record_fields[] = {SHAPED(cli_record, OBJECT, weir_remote, remote), {0}};
static const struct shape record = SHAPE(cli_record, record_fields);

static const struct field entity_fields[] = {
	NEEDED(cli_entity, TEXT, name),
	FIELD(cli_entity, TEXT, operator),
	FIELD(cli_entity, TEXT, resource),
	NEEDED(cli_entity, COUNT, ticks),
	FIELD(cli_entity, COUNT, received),
	FIELD(cli_entity, COUNT, emitted),
	FIELD(cli_entity, COUNT, lost),
	FIELD(cli_entity, COUNT, most_in_flight),
	FIELD(cli_entity, COUNT, max_in_flight),
	FIELD(cli_entity, COUNT, instances),
	FIELD(cli_entity, COUNT, instances_max),
	SHAPED(cli_entity, OBJECT, stamped, stamped),
	SHAPED(cli_entity, OBJECT, submit, histogram),
	SHAPED(cli_entity, OBJECT, blocked, histogram),
	SHAPED(cli_entity, OBJECT, cpu, cpu),
	SHAPED(cli_entity, OBJECT, gpu_span, histogram),
	SHAPED(cli_entity, OBJECT, done_latency, histogram),
	SHAPED(cli_entity, OBJECT, ready_to_compute, histogram),
	SHAPED(cli_entity, OBJECT, waited, histogram),
	SHAPED(cli_entity, OBJECT, lock, lock),
	SHAPED(cli_entity, LIST, waits, wait),
	SHAPED(cli_entity, LIST, conditions, condition),
	SHAPED(cli_entity, LIST, streams, use),
	SHAPED(cli_entity, OBJECT, record, record),
	FIELD(cli_entity, COUNT, gpu_ticks),
	FIELD(cli_entity, TEXT, done_source),
	{0},
};
static const struct shape entity = SHAPE(cli_entity, entity_fields);

static const struct field depth_fields[] = {
	FIELD(cli_depth, REAL, mean),
	FIELD(cli_depth, COUNT, max),
	FIELD(cli_depth, COUNT, full_time),
	{0},
};
static const struct shape depth = SHAPE(cli_depth, depth_fields);

static const struct field queue_fields[] = {
	NEEDED(cli_queue, TEXT, from),
	NEEDED(cli_queue, TEXT, to),
	FIELD(cli_queue, TEXT, sender),
	FIELD(cli_queue, TEXT, receiver),
	FIELD(cli_queue, TEXT, policy),
	NEEDED(cli_queue, COUNT, capacity),
	FIELD(cli_queue, COUNT, pushed),
	FIELD(cli_queue, COUNT, delivered),
	FIELD(cli_queue, COUNT, dropped),
	SHAPED(cli_queue, OBJECT, depth, depth),
	{0},
};
static const struct shape queue = SHAPE(cli_queue, queue_fields);

static const struct field pool_fields[] = {
	NEEDED(cli_pool, TEXT, name),
	FIELD(cli_pool, TEXT, unit),
	NEEDED(cli_pool, COUNT, capacity),
	FIELD(cli_pool, COUNT, most_used),
	FIELD(cli_pool, COUNT, allocations),
	FIELD(cli_pool, COUNT, waits),
	SHAPED(cli_pool, OBJECT, wait_time, histogram),
	{0},
};
static const struct shape pool = SHAPE(cli_pool, pool_fields);

static const struct field worker_fields[] = {
	FIELD(cli_worker, COUNT, ticks),
	FIELD(cli_worker, COUNT, busy),
	FIELD(cli_worker, COUNT, asleep),
	{0},
};
static const struct shape worker = SHAPE(cli_worker, worker_fields);

static const struct field path_fields[] = {
	FIELD(cli_path, TEXTS, entities),
	FIELD(cli_path, FLAG, other),
	FIELD(cli_path, COUNT, count),
	SHAPED(cli_path, OBJECT, latency, histogram),
	{0},
};
static const struct shape path = SHAPE(cli_path, path_fields);

static const struct field run_fields[] = {
	{"weir_statistics", COUNT, offsetof(struct cli_recorded, format), NULL, true},
	FIELD(cli_recorded, TEXT, version),
	FIELD(cli_recorded, TEXT, graph),
	FIELD(cli_recorded, TEXT, where),
	FIELD(cli_recorded, TEXT, backend),
	FIELD(cli_recorded, TEXT, gpu_time),
	FIELD(cli_recorded, TEXT, ending),
	FIELD(cli_recorded, STATUS, status),
	FIELD(cli_recorded, CAUSE, cause),
	FIELD(cli_recorded, TEXT, cause_entity),
	FIELD(cli_recorded, TEXT, cause_on),
	FIELD(cli_recorded, TEXT, text),
	FIELD(cli_recorded, TEXT, stuck),
	FIELD(cli_recorded, FLAG, drained),
	FIELD(cli_recorded, COUNT, posix_signal),
	FIELD(cli_recorded, COUNT, leftover),
	FIELD(cli_recorded, COUNT, abandoned),
	FIELD(cli_recorded, TEXT, main),
	FIELD(cli_recorded, COUNT, frames),
	NEEDED(cli_recorded, COUNT, duration),
	FIELD(cli_recorded, COUNT, workers_count),
	{"entities", LIST, offsetof(struct cli_recorded, entities), &entity, true},
	SHAPED(cli_recorded, LIST, queues, queue),
	SHAPED(cli_recorded, LIST, pools, pool),
	SHAPED(cli_recorded, LIST, workers, worker),
	SHAPED(cli_recorded, LIST, paths, path),
	{0},
};
static const struct shape run = SHAPE(cli_recorded, run_fields);

static bool read_object(struct cli_json *json, const struct shape *shape, void *out);

static bool read_text(struct cli_json *json, char **out, bool required)
{
	struct cli_slice slice;

	if (!required && cli_json_next(json) == CLI_JSON_SCALAR) /* null: absent */
		return cli_json_skip(json);
	if (!cli_json_string(json, &slice))
		return false;
	free(*out);
	*out = cli_slice_decoded(slice);
	return *out || cli_json_refuse(json, cli_json_no_memory);
}

/* The name of a weir_cause. One that this weir does not know is as none. */
static bool read_cause(struct cli_json *json, weir_cause *out)
{
	struct cli_slice slice;

	if (cli_json_next(json) == CLI_JSON_SCALAR) /* null: absent */
		return cli_json_skip(json);
	if (!cli_json_string(json, &slice))
		return false;
	*out = WEIR_CAUSE_NONE;
#define CAUSE_IF(name, value, text)                                                                          \
	if (cli_slice_is(slice, text))                                                                       \
		*out = name;
	WEIR_CAUSE_TABLE(CAUSE_IF)
#undef CAUSE_IF
	return true;
}

/* The text of a weir_status. One that this weir does not know is a failure like others. */
static bool read_status(struct cli_json *json, weir_status *out)
{
	struct cli_slice slice;

	if (cli_json_next(json) == CLI_JSON_SCALAR) { /* null: it had not ended */
		*out = STATUS_ABSENT;
		return cli_json_skip(json);
	}
	if (!cli_json_string(json, &slice))
		return false;
	*out = WEIR_E_FAILED;
#define STATUS_IF(name, value, text)                                                                         \
	if (cli_slice_is(slice, text))                                                                       \
		*out = name;
	WEIR_STATUS_TABLE(STATUS_IF)
#undef STATUS_IF
	return true;
}

void *cli_list_add(struct cli_list *list, size_t size)
{
	if (list->count == list->room) {
		size_t room = list->room ? 2 * list->room : 8;
		void *items = reallocarray(list->items, room, size);

		if (!items)
			return NULL;
		list->items = items;
		list->room = room;
	}
	return memset((char *)list->items + size * list->count++, 0, size);
}

static bool read_list(struct cli_json *json, const struct shape *shape, struct cli_list *list)
{
	if (list->count)
		return cli_json_refuse(json, "the list stands twice in its object");
	if (cli_json_list(json))
		while (cli_json_item(json)) {
			void *item = cli_list_add(list, shape->size);

			if (!item)
				return cli_json_refuse(json, cli_json_no_memory);
			if (!read_object(json, shape, item))
				return false;
		}
	return !json->fault;
}

static bool read_texts(struct cli_json *json, struct cli_list *list)
{
	if (list->count)
		return cli_json_refuse(json, "the list stands twice in its object");
	if (cli_json_list(json))
		while (cli_json_item(json)) {
			char **item = cli_list_add(list, sizeof *item);

			if (!item)
				return cli_json_refuse(json, cli_json_no_memory);
			if (!read_text(json, item, true))
				return false;
		}
	return !json->fault;
}

static bool read_field(struct cli_json *json, const struct field *field, char *out)
{
	switch (field->kind) {
	case COUNT:
		return cli_json_count(json, (int64_t *)(void *)out);
	case INTEGER:
		return cli_json_integer(json, (int64_t *)(void *)out);
	case FLAG:
		return cli_json_bool(json, (bool *)(void *)out);
	case REAL:
		return cli_json_real(json, (double *)(void *)out);
	case TEXT:
		return read_text(json, (char **)(void *)out, field->required);
	case CAUSE:
		return read_cause(json, (weir_cause *)(void *)out);
	case STATUS:
		return read_status(json, (weir_status *)(void *)out);
	case OBJECT:
		return read_object(json, field->shape, out);
	case LIST:
		return read_list(json, field->shape, (struct cli_list *)(void *)out);
	case TEXTS:
		return read_texts(json, (struct cli_list *)(void *)out);
	}
	return false;
}

static bool refuse_missing(struct cli_json *json, const struct shape *shape, uint64_t seen)
{
	static _Thread_local char text[64];

	for (unsigned i = 0; shape->fields[i].key; i++)
		if (shape->fields[i].required && !(seen >> i & 1)) {
			snprintf(text, sizeof text, "the object lacks \"%s\"", shape->fields[i].key);
			return cli_json_refuse(json, text);
		}
	return !json->fault;
}

static bool read_object(struct cli_json *json, const struct shape *shape, void *out)
{
	struct cli_slice key;
	uint64_t seen = 0;

	if (cli_json_object(json))
		while (cli_json_member(json, &key)) {
			unsigned i = 0;

			while (shape->fields[i].key && !cli_slice_is(key, shape->fields[i].key))
				i++;
			seen |= UINT64_C(1) << i;
			if (shape->fields[i].key)
				read_field(json, &shape->fields[i], (char *)out + shape->fields[i].offset);
			else
				cli_json_skip(json);
		}
	return refuse_missing(json, shape, seen);
}

static void finish_object(const struct shape *shape, void *object)
{
	for (const struct field *field = shape->fields; field->key; field++) {
		char *at = (char *)object + field->offset;
		struct cli_list *list = (void *)at;

		if (field->kind == TEXT)
			free(*(char **)(void *)at);
		if (field->kind == OBJECT)
			finish_object(field->shape, at);
		if (field->kind != LIST && field->kind != TEXTS)
			continue;
		for (size_t i = 0; i < list->count; i++)
			if (field->kind == LIST)
				finish_object(field->shape, (char *)list->items + i * field->shape->size);
			else
				free(((char **)list->items)[i]);
		free(list->items);
	}
}

void cli_recorded_finish(struct cli_recorded *recorded)
{
	finish_object(&run, recorded);
	free(recorded->names);
	*recorded = (struct cli_recorded){0};
}

const struct cli_entity *cli_recorded_entity(const struct cli_recorded *recorded, size_t i)
{
	const struct cli_entity *entities = recorded->entities.items;

	return i < recorded->entities.count ? &entities[i] : NULL;
}

bool cli_recorded_lacks_causes(const struct cli_recorded *recorded)
{
	for (size_t i = 0; i < recorded->entities.count; i++) {
		const struct cli_entity *owner = cli_recorded_entity(recorded, i);
		const struct cli_wait *waits = owner->waits.items;

		for (size_t k = 0; k < owner->waits.count; k++)
			if (!waits[k].cause)
				return true;
	}
	return false;
}

int64_t cli_recorded_lanes(const struct cli_entity *of)
{
	return of->instances > 1 ? of->instances : 1;
}

struct wr_shown cli_recorded_name(const struct cli_entity *of)
{
	struct wr_shown shown = wr_shown(of->name);
	size_t length = strlen(shown.text);

	if (of->instances > 1)
		snprintf(shown.text + length, sizeof shown.text - length, " x%" PRId64, of->instances);
	return shown;
}

size_t cli_recorded_sharers(const struct cli_recorded *recorded, int64_t stream)
{
	size_t sharers = 0;

	for (size_t i = 0; i < recorded->entities.count; i++) {
		const struct cli_list *list = &cli_recorded_entity(recorded, i)->streams;
		const struct cli_use *uses = list->items;

		size_t k = 0;

		while (k < list->count && uses[k].stream != stream)
			k++;
		sharers += k < list->count;
	}
	return sharers;
}

/* --- names to indices --- */

struct cli_name {
	struct cli_slice name;
	size_t at;
};

static int compare_names(const void *a, const void *b)
{
	const struct cli_slice *one = &((const struct cli_name *)a)->name,
			       *other = &((const struct cli_name *)b)->name;
	int differs =
		memcmp(one->text, other->text, one->length < other->length ? one->length : other->length);

	return differs ? differs : (one->length > other->length) - (one->length < other->length);
}

size_t cli_recorded_find(const struct cli_recorded *recorded, struct cli_slice name)
{
	struct cli_name key = {name, 0};
	const struct cli_name *found =
		bsearch(&key, recorded->names, recorded->entities.count, sizeof key, compare_names);

	return found ? found->at : CLI_NO_ENTITY;
}

/* Returns NULL, or what is wrong. */
static const char *sort_names(struct cli_recorded *recorded)
{
	size_t count = recorded->entities.count;
	struct cli_name *names = recorded->names = calloc(count + 1, sizeof *names);

	if (!names)
		return cli_json_no_memory;
	for (size_t i = 0; i < count; i++) {
		const char *name = cli_recorded_entity(recorded, i)->name;

		names[i] = (struct cli_name){{name, strlen(name)}, i};
	}
	qsort(names, count, sizeof *names, compare_names);
	for (size_t i = 1; i < count; i++)
		if (!compare_names(&names[i - 1], &names[i]))
			return "two entities have the same name";
	return NULL;
}

/* Finds the entity at an end of a queue. Returns false if it is not in the list. */
static bool link_end(const struct cli_recorded *recorded, const char *name, size_t *at)
{
	*at = name ? cli_recorded_find(recorded, (struct cli_slice){name, strlen(name)}) : CLI_NO_ENTITY;
	return !name || *at != CLI_NO_ENTITY;
}

/* What the outcome and the main entity name, and the numbers of texts. */
static const char *link_run(struct cli_recorded *recorded)
{
	recorded->has_outcome = recorded->cause && recorded->status != STATUS_ABSENT;
	if (!recorded->has_outcome)
		recorded->status = WEIR_OK;
	if (!recorded->gpu_time || !strcmp(recorded->gpu_time, "off"))
		recorded->gpu_every = 0;
	else if (sscanf(recorded->gpu_time, "sample:%" SCNd64, &recorded->gpu_every) != 1)
		recorded->gpu_every = !strcmp(recorded->gpu_time, "all");
	if (recorded->gpu_every < 0)
		recorded->gpu_every = 0;
	if (!link_end(recorded, recorded->cause_entity, &recorded->cause_at))
		return "the cause's entity is not in the list";
	return link_end(recorded, recorded->main, &recorded->main_at) ? NULL
								      : "the main entity is not in the list";
}

static const char *link_queues(struct cli_recorded *recorded)
{
	struct cli_queue *queues = recorded->queues.items;

	for (size_t i = 0; i < recorded->queues.count; i++)
		if (!link_end(recorded, queues[i].sender, &queues[i].sender_at) ||
		    !link_end(recorded, queues[i].receiver, &queues[i].receiver_at))
			return "a queue names an entity that is not in the list";
	return NULL;
}

/* --- figures --- */

/*
 * Figures of a run that has ended agree: its record was made when nothing moved any more. A figure that is 0
 * may be absent.
 */
static bool times_agree(const struct cli_histogram *of, int64_t most)
{
	if (of->sum > most || (!of->count && of->sum))
		return false;
	if (of->count && of->max && of->sum / of->count > of->max)
		return false;
	return !of->p50 ||
	       (of->min <= of->p50 && of->p50 <= of->p90 && of->p90 <= of->p99 && of->p99 <= of->max);
}

/*
 * So long waits of an entity, one after the other, cannot have been. One with instances may wait for messages
 * and for room at the same time, and each instance waits for itself.
 */
static bool waits_agree(const struct cli_entity *owner, int64_t most)
{
	const struct cli_wait *waits = owner->waits.items;
	int64_t at_once = owner->instances > 1 ? owner->instances + 2 : 1;
	int64_t left = most > INT64_MAX / at_once ? INT64_MAX : most * at_once;

	for (size_t k = 0; k < owner->waits.count; k++) {
		if (!times_agree(&waits[k].time, left) || waits[k].open > waits[k].time.sum)
			return false;
		left -= waits[k].time.sum;
	}
	return true;
}

static bool fail_figures(char fault[512], const char *what, const char *name, int64_t duration)
{
	snprintf(fault, 512,
		 "%s '%s' has figures that cannot be, in a run of %" PRId64
		 " ns: the file was changed; let the run write it again",
		 what, wr_shown(name).text, duration);
	return false;
}

static bool check_figures(const struct cli_recorded *recorded, char fault[512])
{
	const struct cli_queue *queues = recorded->queues.items;
	int64_t most = recorded->duration;

	for (size_t i = 0; recorded->has_outcome && i < recorded->entities.count; i++) {
		const struct cli_entity *owner = cli_recorded_entity(recorded, i);
		int64_t instances = cli_recorded_lanes(owner);
		int64_t all = most > INT64_MAX / instances ? INT64_MAX : most * instances;

		if (!waits_agree(owner, most) || !times_agree(&owner->submit, all) ||
		    !times_agree(&owner->ready_to_compute, all) || !times_agree(&owner->blocked, all) ||
		    !times_agree(&owner->gpu_span, INT64_MAX) ||
		    !times_agree(&owner->done_latency, INT64_MAX))
			return fail_figures(fault, "entity", owner->name, most);
	}
	/* What a queue got is what it gave and still has: rule E5. */
	for (size_t i = 0; recorded->has_outcome && i < recorded->queues.count; i++)
		if (queues[i].delivered > queues[i].pushed ||
		    queues[i].dropped > queues[i].pushed - queues[i].delivered ||
		    queues[i].depth.full_time > most)
			return fail_figures(fault, "the queue into", queues[i].to, most);
	return true;
}

static bool fail(char fault[512], const char *text)
{
	snprintf(fault, 512, "%s", text == cli_json_no_memory ? "" : text);
	return false;
}

static bool fail_at(const struct cli_json *json, char fault[512])
{
	unsigned line, column;

	if (json->fault == cli_json_no_memory)
		return fail(fault, json->fault);
	cli_json_place(json, &line, &column);
	snprintf(fault, 512, "%u:%u: %s; %s", line, column, json->fault,
		 json->cut ? "let the run write it again"
			   : "weir run --stats-file FILE.json writes such files");
	return false;
}

/* The version is looked at first: another one may have other keys. */
static bool check_version(const char *text, size_t length, char fault[512])
{
	struct cli_json json = cli_json_of(text, length);
	int64_t version = -1;
	struct cli_slice key;

	if (cli_json_next(&json) != CLI_JSON_OBJECT)
		return true; /* the reading of the whole says what is wrong */
	for (cli_json_object(&json); cli_json_member(&json, &key);) {
		if (cli_slice_is(key, "traceEvents"))
			return fail(fault,
				    "a trace, not statistics; give the file of weir run --stats-file first, "
				    "then the trace");
		if (cli_slice_is(key, "weir_statistics")) {
			if (!cli_json_integer(&json, &version) || version == VERSION)
				return true;
			snprintf(fault, 512,
				 "statistics of version %" PRId64 ", this command reads version %d; use "
				 "the weir that wrote the file",
				 version, VERSION);
			return false;
		}
		cli_json_skip(&json);
	}
	if (json.fault)
		return true;
	return fail(fault, "JSON, but no statistics of a run: weir run --stats-file FILE.json writes them");
}

bool cli_recorded_read(struct cli_recorded *out, const char *text, size_t length, char fault[512])
{
	struct cli_json json = cli_json_of(text, length);
	const char *wrong;

	*out = (struct cli_recorded){.status = STATUS_ABSENT};
	if (!length)
		return fail(fault, "empty; weir run --stats-file FILE.json writes such files");
	if (!check_version(text, length, fault))
		return false;
	if (!read_object(&json, &run, out) || !cli_json_finish(&json))
		return fail_at(&json, fault);
	wrong = sort_names(out);
	if (!wrong)
		wrong = link_run(out);
	if (!wrong)
		wrong = link_queues(out);
	return wrong ? fail(fault, wrong) : check_figures(out, fault);
}
