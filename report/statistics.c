/*
 * The statistics of a run as JSON text: what trace/statistics.c collects, and what the scheduler counts.
 */
#include <inttypes.h>
#include <stddef.h>
#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "base/text.h"
#include "graphs/show.h"
#include "report/paths.h"
#include "report/times.h"
#include "scheduler/ends.h"
#include "scheduler/instances.h"
#include "scheduler/memory.h"
#include "scheduler/scheduler.h"
#include "trace/statistics.h"

struct wr_text;

/* Adds the JSON text of all. Thread: any. */
void wr_statistics_text(weir_scheduler *scheduler, struct wr_statistics *statistics, struct wr_text *text);

/*
 * === statistics ===
 *
 * The public call about statistics. It reads what trace/statistics.c collects.
 */

weir_status weir_scheduler_print_statistics(weir_scheduler *scheduler, char **out)
{
	struct wr_statistics *statistics = wr_statistics_in(scheduler->trace);
	struct wr_text text = {0};

	if (!statistics)
		return wr_fail(WEIR_E_INVALID,
			       "graph %s: no statistics are collected: create the scheduler with "
			       "WEIR_OBSERVE_STATISTICS in options.observe",
			       scheduler->graph->plan->name);
	wr_statistics_text(scheduler, statistics, &text);
	if (text.status) {
		weir_status status = text.status;

		wr_text_finish(&text);
		return status;
	}
	*out = text.text;
	return WEIR_OK;
}

/*
 * === the JSON text ===
 *
 * The JSON text of statistics, version 1: docs/statistics.md. All times are integers in nanoseconds.
 */

enum { VERSION = 1 };

/* --- values --- */

static void add_name(struct wr_text *text, const char *before, const char *name)
{
	wr_text_add(text, "%s", before);
	if (name)
		wr_text_string(text, name);
	else
		wr_text_add(text, "null");
}

struct list {
	struct wr_text *text;
	bool begun;
};

static void add_comma(struct list *list, const char *between)
{
	if (list->begun)
		wr_text_add(list->text, "%s", between);
	list->begun = true;
}

static void add_bucket(const struct wr_bucket *bucket, void *arg)
{
	struct list *list = arg;

	add_comma(list, ",");
	wr_text_add(list->text, "[%" PRId64 ",%" PRId64 ",%" PRIu64 "]", bucket->from, bucket->to,
		    bucket->count);
}

/* `before` has the key. Nothing was counted: adds nothing. */
static void add_histogram(struct wr_text *text, const char *before, struct wr_histogram *histogram)
{
	struct wr_durations all = wr_histogram_summary(histogram);
	struct list list = {text, false};

	if (wr_read(&histogram->partial))
		text->status = WEIR_E_NOMEM;
	if (!all.count)
		return;
	wr_text_add(text,
		    "%s{\"count\":%" PRIu64 ",\"sum\":%" PRId64 ",\"min\":%" PRId64 ",\"max\":%" PRId64
		    ",\"p50\":%" PRId64 ",\"p90\":%" PRId64 ",\"p99\":%" PRId64 ",\"buckets\":[",
		    before, all.count, all.sum_ns, all.min_ns, all.max_ns, all.p50_ns, all.p90_ns,
		    all.p99_ns);
	wr_histogram_each(histogram, add_bucket, &list);
	wr_text_add(text, "]}");
}

/* --- entities --- */

struct waits {
	struct wr_statistics *statistics;
	struct wr_text *text; /* NULL: only `all` */
	struct list list;
	struct wr_histogram all, time;
};

static struct wr_wait_times *first_wait(const struct waits *waits, const weir_entity *part)
{
	return wr_load_acquire(&waits->statistics->entities[part->id].waits);
}

/*
 * Gives its time, and how long it is open. What instances wait for is one wait of all, told with the first
 * that there is: returns false for the others.
 */
static bool sum_wait(struct waits *waits, weir_entity *entity, uint32_t k, struct wr_wait_times *wait,
		     int64_t *open)
{
	weir_entity *part = wr_instances_part(entity, k);
	struct wr_histogram one = {0};

	*open = wr_statistics_waited(waits->statistics, part->id, wait, &waits->time);
	if (part->plan->role != WR_INSTANCE)
		return true;
	if (wr_wait_alike(first_wait(waits, part), &wait->what) != wait)
		return false;
	for (uint32_t i = 1; i < k; i++)
		if (wr_wait_alike(first_wait(waits, wr_instances_part(entity, i)), &wait->what))
			return false;
	for (uint32_t i = k; i <= entity->plan->instances; i++) {
		struct wr_wait_times *same = first_wait(waits, part = wr_instances_part(entity, i));

		while ((same = wr_wait_alike(same, &wait->what))) {
			if (same != wait) {
				*open += wr_statistics_waited(waits->statistics, part->id, same, &one);
				wr_histogram_merge(&waits->time, &one);
			}
			same = wr_load_acquire(&same->next);
		}
	}
	wr_histogram_finish(&one);
	return true;
}

static void add_wait(struct waits *waits, weir_entity *entity, uint32_t k, struct wr_wait_times *wait)
{
	const weir_entity *part = wr_instances_part(entity, k);
	const struct wr_wait_for *what = &wait->what;
	int64_t open;

	if (!wr_wait_is_shown(part, what) || !sum_wait(waits, entity, k, wait, &open) ||
	    !wr_read(&waits->time.count))
		return;
	wr_histogram_merge(&waits->all, &waits->time);
	if (!waits->text)
		return;
	add_comma(&waits->list, ",\n  ");
	add_name(waits->text, "{\"cause\":", weir_cause_text(what->cause));
	add_name(waits->text, ",\"on\":", wr_entity_subject(part, what->cause, what->on));
	add_name(waits->text, ",\"of\":", what->of);
	add_name(waits->text, ",\"why\":", what->why);
	if (part->plan->role == WR_INSTANCE)
		wr_text_add(waits->text, ",\"instances\":%" PRIu32, entity->plan->instances);
	if (open) /* it has not ended */
		wr_text_add(waits->text, ",\"open\":%" PRId64, open);
	add_histogram(waits->text, ",\"time\":", &waits->time);
	wr_text_add(waits->text, "}");
}

static void walk_waits(struct waits *waits, weir_entity *entity)
{
	weir_entity *part;

	for (uint32_t k = 0; (part = wr_instances_part(entity, k)); k++)
		for (struct wr_wait_times *wait = first_wait(waits, part); wait;
		     wait = wr_load_acquire(&wait->next))
			add_wait(waits, entity, k, wait);
}

/* All of them together, and each. */
static void add_waits(struct wr_text *text, weir_entity *entity, struct wr_statistics *statistics)
{
	struct waits waits = {.statistics = statistics, .list = {text, false}};

	if (entity->plan->role == WR_PLAIN)
		(void)wr_statistics_waited(statistics, entity->id, NULL, &waits.all);
	else
		walk_waits(&waits, entity);
	add_histogram(text, ",\n \"waited\":", &waits.all);
	wr_text_add(text, ",\n \"waits\":[");
	waits.text = text;
	walk_waits(&waits, entity);
	wr_text_add(text, "]");
	wr_histogram_finish(&waits.all);
	wr_histogram_finish(&waits.time);
}

/* Those that the file of the graph or the operator gave, with the parameters that are times. */
static void add_conditions(struct wr_text *text, const struct wr_plan_entity *plan)
{
	struct list list = {text, false};

	wr_text_add(text, ",\n \"conditions\":[");
	for (size_t i = 0; i < plan->condition_count; i++) {
		const struct wr_plan_condition *condition = &plan->conditions[i];
		const weir_parameter *parameter = condition->kind->parameters;
		struct list times = {text, false};

		if (condition->implied)
			continue;
		add_comma(&list, ",");
		add_name(text, "{\"type\":", condition->kind->name);
		add_name(text, ",\"name\":", condition->name);
		wr_text_add(text, ",\"times\":{");
		for (; parameter && parameter->name; parameter++) {
			if (parameter->type != WEIR_TYPE_DURATION)
				continue;
			add_comma(&times, ",");
			wr_text_string(text, parameter->name);
			wr_text_add(text, ":%" PRId64, weir_values_int(condition->values, parameter->name));
		}
		wr_text_add(text, "}}");
	}
	wr_text_add(text, "]");
}

/* Each instance has a stream. */
static void add_streams(struct wr_text *text, weir_entity *entity, struct wr_statistics *statistics)
{
	struct list list = {text, false};
	weir_entity *part;

	wr_text_add(text, ",\n \"streams\":[");
	for (uint32_t k = 0; (part = wr_instances_part(entity, k)); k++)
		for (struct wr_stream_use *use = wr_load_acquire(&statistics->entities[part->id].streams);
		     use; use = wr_load_acquire(&use->next)) {
			if (!wr_statistics_used(statistics, use))
				continue;
			add_comma(&list, ",");
			wr_text_add(text,
				    "{\"stream\":%" PRIu32 ",\"device\":%d,\"count\":%" PRIu64
				    ",\"time\":%" PRId64 "}",
				    use->queue, use->device, wr_read(&use->count), wr_read(&use->time));
		}
	wr_text_add(text, "]");
}

/* Of its instances, or itself. */
static void add_processor(struct wr_text *text, weir_entity *entity, struct wr_statistics *statistics)
{
	const char *lock = NULL;
	uint64_t ticks = 0, waits = 0, lock_waits = 0;
	int64_t time = 0, of = 0, lock_time = 0;
	weir_entity *part;

	for (uint32_t k = 0; (part = wr_instances_part(entity, k)); k++) {
		struct wr_entity_statistics *times = &statistics->entities[part->id];

		if (!wr_instances_operates(part))
			continue;
		lock = lock ? lock : wr_read(&times->lock);
		ticks += wr_read(&times->cpu_ticks);
		time += wr_read(&times->cpu_time);
		of += wr_read(&times->cpu_of);
		waits += wr_read(&times->cpu_waits);
		lock_waits += wr_read(&times->lock_waits);
		lock_time += wr_read(&times->lock_time);
	}
	if (ticks)
		wr_text_add(text,
			    ",\n \"cpu\":{\"count\":%" PRIu64 ",\"time\":%" PRId64 ",\"of\":%" PRId64
			    ",\"waits\":%" PRIu64 "}",
			    ticks, time, of, waits);
	if (!lock)
		return;
	add_name(text, ",\n \"lock\":{\"name\":", lock);
	wr_text_add(text, ",\"count\":%" PRIu64 ",\"time\":%" PRId64 "}", lock_waits, lock_time);
}

static void add_counts(struct wr_text *text, weir_entity *entity)
{
	int64_t own = entity->plan->max_in_flight; /* entity->flight has the same, and belongs to the run */
	weir_entity_counts counts;

	wr_instances_count(entity, &counts);
	wr_text_add(text,
		    ",\"ticks\":%" PRIu64 ",\"received\":%" PRIu64 ",\"emitted\":%" PRIu64
		    ",\"lost\":%" PRIu64 ",\"most_in_flight\":%" PRIu64 ",\"max_in_flight\":%zu",
		    counts.ticks, counts.received, counts.emitted, counts.lost, counts.most_in_flight,
		    own < 0 ? entity->graph->max_in_flight : (size_t)own);
	wr_text_add(text,
		    ",\"replay\":{\"hits\":%" PRIu64 ",\"captures\":%" PRIu64 ",\"evictions\":%" PRIu64
		    ",\"failures\":%" PRIu64 "}",
		    counts.replay_hits, counts.replay_captures, counts.replay_evictions,
		    counts.replay_failures);
	if (wr_instances_possible(entity->plan))
		wr_text_add(text, ",\"instances_max\":%d", WR_INSTANCES_MAX);
	if (counts.instances > 1)
		wr_text_add(text, ",\"instances\":%" PRIu32 ",\"unsent\":%" PRIu64, counts.instances,
			    counts.unsent);
}

/* How old messages with a stamp were where they ended. */
static void add_stamped(struct wr_text *text, struct wr_latencies *latencies)
{
	if (wr_read(&latencies->count))
		wr_text_add(text,
			    ",\"stamped\":{\"count\":%" PRIu64 ",\"sum\":%" PRId64 ",\"max\":%" PRId64 "}",
			    wr_read(&latencies->count), wr_read(&latencies->sum), wr_read(&latencies->max));
}

/* Of all instances together. */
static void add_times(struct wr_text *text, const char *before, const weir_entity *entity,
		      struct wr_statistics *statistics, size_t offset)
{
	struct wr_histogram all = {0};

	wr_entity_times(entity, statistics, offset, &all);
	add_histogram(text, before, &all);
	wr_histogram_finish(&all);
}

static void add_entity(struct wr_text *text, weir_entity *entity, struct wr_statistics *statistics)
{
	weir_entity *instance = wr_instance_at(entity, 0);
	struct wr_latencies stamped = {0}; /* of the instances of a sink */
	uint64_t gpu_ticks = 0;
	char *record = NULL; /* what the operator knows */
	struct wr_entity_statistics *times = &statistics->entities[entity->id];
	const char *source = wr_statistics_source(instance ? &statistics->entities[instance->id] : times);

	for (uint32_t k = 0; (instance = wr_instance_at(entity, k)); k++) {
		struct wr_latencies *own = &instance->counters.latencies;
		int64_t max = wr_read(&own->max);

		wr_count(&stamped.count, wr_read(&own->count));
		wr_count(&stamped.sum, wr_read(&own->sum));
		wr_note(&stamped.max, max > wr_read(&stamped.max) ? max : wr_read(&stamped.max));
		gpu_ticks += wr_read(&statistics->entities[instance->id].gpu_span.count);
	}
	instance = wr_instance_at(entity, 0);
	gpu_ticks += instance ? 0 : wr_read(&times->gpu_span.count);
	add_name(text, "{\"name\":", entity->plan->name);
	add_name(text, ",\"operator\":", entity->plan->kind->name);
	add_name(text, ",\"resource\":", wr_plan_used_resource(entity->graph->plan, entity->plan));
	add_counts(text, entity);
	add_stamped(text, instance ? &stamped : &entity->counters.latencies);
	add_times(text, ",\n \"submit\":", entity, statistics, offsetof(struct wr_entity_statistics, submit));
	add_times(text, ",\n \"blocked\":", entity, statistics,
		  offsetof(struct wr_entity_statistics, blocked));
	add_processor(text, entity, statistics);
	add_times(text, ",\n \"gpu_span\":", entity, statistics,
		  offsetof(struct wr_entity_statistics, gpu_span));
	add_times(text, ",\n \"done_latency\":", entity, statistics,
		  offsetof(struct wr_entity_statistics, done_latency));
	if (source)
		add_name(text, ",\"done_source\":", source);
	wr_text_add(text, ",\"gpu_ticks\":%" PRIu64, gpu_ticks);
	add_times(text, ",\n \"ready_to_compute\":", entity, statistics,
		  offsetof(struct wr_entity_statistics, queued));
	add_waits(text, entity, statistics);
	add_conditions(text, entity->plan);
	add_streams(text, entity, statistics);
	if (wr_entity_copy_record(entity, &record) && !text->status)
		text->status = WEIR_E_NOMEM;
	if (record)
		wr_text_add(text, ",\n \"record\":%s", record);
	wr_free(record);
	wr_text_add(text, "}");
}

/* --- queues --- */

static void add_queue(struct wr_text *text, struct wr_connection *connection,
		      struct wr_statistics *statistics)
{
	struct wr_depth depth = wr_statistics_depth(statistics, connection->queue.id);
	weir_queue_counts counts;

	wr_instances_count_queue(connection, &counts);
	add_name(text, "{\"from\":", connection->from);
	add_name(text, ",\"to\":", connection->to);
	add_name(text, ",\"sender\":", connection->sender ? connection->sender->plan->name : NULL);
	add_name(text, ",\"receiver\":", connection->receiver ? connection->receiver->plan->name : NULL);
	wr_text_add(text, ",\"capacity\":%u", connection->queue.capacity);
	add_name(text, ",\"policy\":", wr_policy_text(connection->queue.policy));
	wr_text_add(text,
		    ",\"pushed\":%" PRIu64 ",\"delivered\":%" PRIu64 ",\"dropped\":%" PRIu64
		    ",\"unmatched\":%" PRIu64 ",\"reused\":%" PRIu64 ",\"closed\":%" PRIu64
		    ",\"queued\":%" PRIu64 ",\"abandoned\":%" PRIu64,
		    counts.pushed, counts.delivered, counts.dropped, counts.unmatched, counts.reused,
		    counts.closed, counts.queued, counts.abandoned);
	if (connection->outlet)
		add_stamped(text, &connection->outlet->latencies);
	wr_text_add(text, ",\"depth\":{\"mean\":");
	wr_text_real(text, depth.mean);
	wr_text_add(text, ",\"max\":%" PRIu64 ",\"full_time\":%" PRId64 "}}", depth.most, depth.full_time);
}

/* --- pools, workers, signals --- */

/* Of all entities together. */
static void add_pool_waits(struct wr_text *text, struct wr_statistics *statistics, uint32_t pool)
{
	struct wr_histogram all = {0}, time = {0};

	for (size_t i = 0; i < statistics->entity_count; i++)
		for (struct wr_wait_times *wait = wr_load_acquire(&statistics->entities[i].waits); wait;
		     wait = wr_load_acquire(&wait->next)) {
			if (wait->what.cause != WEIR_CAUSE_MEMORY || wait->what.on != pool)
				continue;
			(void)wr_statistics_waited(statistics, i, wait, &time);
			wr_histogram_merge(&all, &time);
		}
	add_histogram(text, ",\"wait_time\":", &all);
	wr_histogram_finish(&all);
	wr_histogram_finish(&time);
}

static void add_pools(struct wr_text *text, weir_graph *graph, struct wr_statistics *statistics)
{
	struct list list = {text, false};

	wr_text_add(text, ",\n\"pools\":[");
	for (size_t i = 0; i < graph->memory_pool_count; i++) {
		weir_pool_counts counts = {.size = sizeof counts};

		wr_memory_pool_count(&graph->memory_pools[i], &counts);
		add_comma(&list, ",\n");
		add_name(text, "{\"name\":", counts.pool);
		add_name(text, ",\"unit\":", counts.block_size ? "blocks" : "bytes");
		wr_text_add(text,
			    ",\"capacity\":%" PRIu64 ",\"most_used\":%" PRIu64 ",\"allocations\":%" PRIu64
			    ",\"waits\":%" PRIu64 ",\"busy\":%" PRIu64,
			    counts.capacity, counts.most_used, counts.allocations, counts.refused,
			    counts.busy);
		add_pool_waits(text, statistics, (uint32_t)i);
		wr_text_add(text, "}");
	}
	wr_text_add(text, "]");
}

static void add_workers(struct wr_text *text, struct wr_statistics *statistics)
{
	struct list list = {text, false};

	wr_text_add(text, ",\n\"workers\":[");
	for (size_t i = 0; i < wr_read(&statistics->workers_running); i++) {
		struct wr_worker_statistics *worker = &statistics->workers[i];

		add_comma(&list, ",\n");
		wr_text_add(text,
			    "{\"ticks\":%" PRIu64 ",\"busy\":%" PRId64 ",\"asleep\":%" PRId64
			    ",\"steals\":%" PRIu64 ",\"wakes\":%" PRIu64 "}",
			    wr_read(&worker->ticks), wr_read(&worker->busy),
			    wr_statistics_asleep(statistics, i), wr_read(&worker->steals),
			    wr_read(&worker->wakes));
	}
	wr_text_add(text, "]");
}

/* Of all entities together. */
static void add_signals(struct wr_text *text, struct wr_statistics *statistics)
{
	static const char *const names[] = {"callback", "callback_inline", "flag"};
	struct list list = {text, false};

	wr_text_add(text, ",\n\"signals\":[");
	for (int kind = 0; kind < WR_SIGNALS_TRACED; kind++) {
		struct wr_histogram all = {0}, *latency;

		for (size_t i = 0; i < statistics->entity_count; i++) {
			latency = wr_load_acquire(&statistics->entities[i].signals[kind]);
			if (latency)
				wr_histogram_merge(&all, latency);
		}
		if (wr_read(&all.count)) {
			add_comma(&list, ",\n");
			wr_text_add(text, "{\"kind\":\"%s\",\"count\":%" PRIu64, names[kind],
				    wr_read(&all.count));
			add_histogram(text, ",\"latency\":", &all);
			wr_text_add(text, "}");
		}
		wr_histogram_finish(&all);
	}
	wr_text_add(text, "]");
}

/* --- paths, notes --- */

static void add_path(struct wr_text *text, struct wr_path_row *row)
{
	struct list names = {text, false};

	wr_text_add(text, "{\"entities\":[");
	for (const char *name = row->names.text; name; name = wr_path_name_after(row, name)) {
		add_comma(&names, ",");
		wr_text_string(text, name);
	}
	wr_text_add(text, "]%s,\"count\":%" PRIu64 ",\"measured\":%" PRIu64,
		    row->other ? ",\"other\":true" : "", row->count, row->measured);
	add_histogram(text, ",\"latency\":", &row->latency);
	wr_text_add(text, "}");
}

static void add_paths(struct wr_text *text, const struct wr_path_rows *paths)
{
	struct list list = {text, false};

	wr_text_add(text, ",\n\"paths\":[");
	for (size_t i = 0; i < paths->count; i++) {
		add_comma(&list, ",\n");
		add_path(text, &paths->at[i]);
	}
	wr_text_add(text, "]");
}

static void add_notes(struct wr_text *text, struct wr_statistics *statistics,
		      const struct wr_path_rows *paths, uint64_t late)
{
	struct list list = {text, false};
	uint64_t count = 0, measured = 0;

	for (size_t i = 0; i < paths->count; i++) {
		count += paths->at[i].count;
		measured += paths->at[i].measured;
	}

	wr_text_add(text, ",\n\"notes\":[");
	if (wr_read(&statistics->paths.folded)) {
		add_comma(&list, ",");
		wr_text_add(
			text,
			"\"paths beyond %d of an entity and %d in all are one path 'other' of each sink\"",
			WR_PREFIXES, WR_PREFIXES_ALL);
	}
	if (measured < count) {
		add_comma(&list, ",");
		wr_text_add(text,
			    "\"%" PRIu64 " of %" PRIu64
			    " ends of paths have device work whose end was not measured "
			    "(gpu_time)\"",
			    count - measured, count);
	}
	if (late) {
		add_comma(&list, ",");
		wr_text_add(
			text,
			"\"%" PRIu64
			" signals came a second after their device work or not at all (the log names them)\"",
			late);
	}
	if (statistics->skip) {
		add_comma(&list, ",");
		wr_text_add(text, "\"the first %" PRIu64 " ticks of each entity are left out of its times\"",
			    statistics->skip);
	}
	wr_text_add(text, "]");
}

/* --- all --- */

/* As weir_outcome. */
static void add_outcome(struct wr_text *text, weir_scheduler *scheduler, struct wr_statistics *statistics)
{
	struct wr_ended ended;

	wr_global_lock();
	ended = scheduler->ended;
	wr_global_unlock();
	add_name(text, ",\"ending\":",
		 !wr_read(&statistics->begun_at) ? "not started"
		 : !ended.cause                  ? "running"
		 : ended.status                  ? weir_status_text(ended.status)
						 : "finished");
	add_name(text, ",\n\"status\":", ended.cause ? weir_status_text(ended.status) : NULL);
	add_name(text, ",\"cause\":", weir_cause_text(ended.cause));
	add_name(text, ",\"cause_entity\":", ended.entity);
	add_name(text, ",\"cause_on\":", ended.on);
	add_name(text, ",\n\"text\":", *ended.text ? ended.text : NULL);
	add_name(text, ",\n\"stuck\":", *ended.stuck ? ended.stuck : NULL);
	wr_text_add(text,
		    ",\n\"drained\":%s,\"posix_signal\":%d,\"leftover\":%" PRIu64 ",\"abandoned\":%" PRIu64,
		    ended.drained ? "true" : "false", ended.posix_signal, ended.leftover, ended.abandoned);
}

void wr_statistics_text(weir_scheduler *scheduler, struct wr_statistics *statistics, struct wr_text *text)
{
	weir_graph *graph = scheduler->graph;
	struct wr_path_rows paths;
	struct list entities = {text, false}, queues = {text, false};
	const weir_entity *sink;
	uint64_t frames;

	wr_text_add(text, "{\"weir_statistics\":%d", VERSION);
	add_name(text, ",\"version\":", weir_version());
	add_name(text, ",\n\"graph\":", graph->plan->name);
	add_name(text, ",\"where\":", weir_scheduler_where(scheduler));
	add_name(text, ",\"backend\":", wr_system_backend_name(graph->system));
	add_name(text, ",\"signal\":", wr_signal_text(scheduler->signal));
	if (scheduler->gpu_time > 1)
		wr_text_add(text, ",\"gpu_time\":\"sample:%d\"", scheduler->gpu_time);
	else
		add_name(text, ",\"gpu_time\":", scheduler->gpu_time ? "all" : "off");
	wr_text_add(text, ",\"skip\":%" PRIu64 ",\"workers_count\":%u,\"duration\":%" PRId64,
		    statistics->skip, wr_read(&statistics->workers_running),
		    wr_statistics_now(statistics) - wr_read(&statistics->begun_at));
	add_outcome(text, scheduler, statistics);
	sink = wr_graph_main(graph, &frames);
	add_name(text, ",\n\"main\":", sink ? sink->plan->name : NULL);
	wr_text_add(text, ",\"frames\":%" PRIu64 ",\n\"entities\":[\n", frames);
	for (size_t i = 0; i < graph->plan->shown_count; i++) {
		add_comma(&entities, ",\n");
		add_entity(text, &graph->entities[i], statistics);
	}
	wr_text_add(text, "],\n\"queues\":[\n");
	for (size_t i = 0, at; (at = wr_graph_shown_connection(graph, i)) < graph->connection_count; i++) {
		add_comma(&queues, ",\n");
		add_queue(text, graph->connections[at], statistics);
	}
	wr_text_add(text, "]");
	add_pools(text, graph, statistics);
	add_workers(text, statistics);
	add_signals(text, statistics);
	if (wr_path_rows_read(graph, statistics, &paths))
		text->status = WEIR_E_NOMEM;
	add_paths(text, &paths);
	add_notes(text, statistics, &paths, wr_signals_late(scheduler->graph->system));
	wr_path_rows_finish(&paths);
	wr_text_add(text, "}\n");
}
