/*
 * The metrics of a run in the text format of Prometheus, version 0.0.4: docs/metrics.md. One table, in whose
 * order they are written: first what is always counted, then what an observer collects.
 */
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>

#include "base/status.h"
#include "base/text.h"
#include "report/paths.h"
#include "report/times.h"
#include "scheduler/ends.h"
#include "scheduler/instances.h"
#include "scheduler/memory.h"
#include "scheduler/scheduler.h"

struct metrics {
	struct wr_text text;
	weir_scheduler *scheduler;
	weir_graph *graph;
	struct wr_statistics *statistics; /* NULL: none are collected */
	struct wr_path_rows paths;
};

struct family {
	const char *name, *type, *help;
	void (*add)(struct metrics *metrics, const struct family *family);
	size_t offset; /* of the value in what the function reads */
};

/* --- samples --- */

/* `before` has what stands before the label's name, and that. No value has a character that JSON escapes in
 * another way. */
static void add_label(struct metrics *metrics, const char *before, const char *value)
{
	wr_text_add(&metrics->text, "%s=", before);
	wr_text_string(&metrics->text, value ? value : "");
}

static void add_number(struct metrics *metrics, uint64_t number)
{
	wr_text_add(&metrics->text, "} %" PRIu64 "\n", number);
}

/* A time in seconds, exactly and in any locale. */
#define SECONDS   "%" PRId64 ".%09" PRId64
#define OF_NS(ns) (ns) / 1000000000, (ns) % 1000000000

static void add_seconds(struct metrics *metrics, int64_t ns)
{
	wr_text_add(&metrics->text, "} " SECONDS "\n", OF_NS(ns));
}

/* A value of the run as a whole. */
static void add_plain(struct metrics *metrics, const struct family *family, uint64_t number)
{
	wr_text_add(&metrics->text, "%s %" PRIu64 "\n", family->name, number);
}

/* --- histograms: values below a power of two of nanoseconds, 1 us to 34 s --- */

enum { FIRST_BOUND = 10, BOUNDS = 26 };

struct counted {
	uint64_t below[BOUNDS], all; /* below: not yet added up */
};

static void count_bucket(const struct wr_bucket *bucket, void *arg)
{
	struct counted *counted = arg;
	int bound = 0;

	while (bound < BOUNDS && bucket->to > INT64_C(1) << (FIRST_BOUND + bound))
		bound++;
	if (bound < BOUNDS)
		counted->below[bound] += bucket->count;
	counted->all += bucket->count;
}

/* labels: that each sample has; nothing was counted: adds nothing. */
static void add_histogram(struct metrics *metrics, const struct family *family, const char *labels,
			  struct wr_histogram *histogram)
{
	struct wr_text *text = &metrics->text;
	struct counted counted = {{0}, 0};
	uint64_t below = 0;

	if (wr_read(&histogram->partial))
		text->status = WEIR_E_NOMEM;
	wr_histogram_each(histogram, count_bucket, &counted);
	if (!counted.all)
		return;
	for (int bound = 0; bound < BOUNDS; bound++) {
		int64_t ns = INT64_C(1) << (FIRST_BOUND + bound);

		below += counted.below[bound];
		wr_text_add(text, "%s_bucket{%s,le=\"" SECONDS "\"} %" PRIu64 "\n", family->name, labels,
			    OF_NS(ns), below);
	}
	wr_text_add(text,
		    "%s_bucket{%s,le=\"+Inf\"} %" PRIu64 "\n%s_sum{%s} " SECONDS "\n%s_count{%s} %" PRIu64
		    "\n",
		    family->name, labels, counted.all, family->name, labels,
		    OF_NS((int64_t)wr_read(&histogram->sum)), family->name, labels, counted.all);
}

/* --- the run --- */

static void add_info(struct metrics *metrics, const struct family *family)
{
	wr_text_add(&metrics->text, "%s", family->name);
	add_label(metrics, "{version", weir_version());
	add_label(metrics, ",graph", metrics->graph->plan->name);
	add_label(metrics, ",backend", wr_system_backend_name(metrics->graph->system));
	add_label(metrics, ",where", weir_scheduler_where(metrics->scheduler));
	add_label(metrics, ",signal", wr_signal_text(metrics->scheduler->signal));
	add_number(metrics, 1);
}

static void add_running(struct metrics *metrics, const struct family *family)
{
	add_plain(metrics, family, weir_scheduler_running(metrics->scheduler));
}

static void add_late(struct metrics *metrics, const struct family *family)
{
	add_plain(metrics, family, wr_signals_late(metrics->graph->system));
}

static void add_frames(struct metrics *metrics, const struct family *family)
{
	uint64_t frames;
	const weir_entity *sink = wr_graph_main(metrics->graph, &frames);

	if (!sink)
		return;
	wr_text_add(&metrics->text, "%s", family->name);
	add_label(metrics, "{entity", sink->plan->name);
	add_number(metrics, frames);
}

/* --- entities --- */

/* Of a number in weir_entity_counts. */
static void add_entity_counts(struct metrics *metrics, const struct family *family)
{
	for (size_t i = 0; i < metrics->graph->plan->shown_count; i++) {
		weir_entity_counts counts = {.size = sizeof counts};

		wr_instances_count(&metrics->graph->entities[i], &counts);
		wr_text_add(&metrics->text, "%s", family->name);
		add_label(metrics, "{entity", metrics->graph->entities[i].plan->name);
		add_number(metrics, *(const uint64_t *)((const char *)&counts + family->offset));
	}
}

/* Of a histogram in struct wr_entity_statistics. */
static void add_entity_times(struct metrics *metrics, const struct family *family)
{
	for (size_t i = 0; metrics->statistics && i < metrics->graph->plan->shown_count; i++) {
		const weir_entity *entity = &metrics->graph->entities[i];
		struct wr_histogram all = {0};
		char labels[96]; /* names have 64 characters at most */

		snprintf(labels, sizeof labels, "entity=\"%s\"", entity->plan->name);
		wr_entity_times(entity, metrics->statistics, family->offset, &all);
		add_histogram(metrics, family, labels, &all);
		wr_histogram_finish(&all);
	}
}

/* What it waited for, for one cause and one port or pool; `wait` is the first one of these in the list. */
static void add_wait(struct metrics *metrics, const struct family *family, const weir_entity *entity,
		     struct wr_wait_times *wait)
{
	const struct wr_wait_for *what = &wait->what;
	struct wr_histogram time = {0};
	int64_t sum = 0;

	for (struct wr_wait_times *at = wait; at; at = wr_wait_alike(wr_load_acquire(&at->next), what)) {
		(void)wr_statistics_waited(metrics->statistics, entity->id, at, &time);
		sum += (int64_t)wr_read(&time.sum);
	}
	wr_histogram_finish(&time);
	wr_text_add(&metrics->text, "%s", family->name);
	add_label(metrics, "{entity", entity->plan->name);
	add_label(metrics, ",cause", weir_cause_text(what->cause));
	add_label(metrics, ",on", wr_entity_subject(entity, what->cause, what->on));
	add_seconds(metrics, sum);
}

static void add_waits(struct metrics *metrics, const struct family *family)
{
	for (size_t i = 0; metrics->statistics && i < metrics->graph->plan->shown_count; i++) {
		const weir_entity *entity = &metrics->graph->entities[i];
		struct wr_wait_times *first =
			wr_load_acquire(&metrics->statistics->entities[entity->id].waits);

		for (struct wr_wait_times *wait = first; wait; wait = wr_load_acquire(&wait->next))
			if (wr_wait_alike(first, &wait->what) == wait &&
			    wr_wait_is_shown(entity, &wait->what))
				add_wait(metrics, family, entity, wait);
	}
}

/* --- connections, pools --- */

/* Of a number in weir_queue_counts, 32 or 64 bits wide. The queue's number tells apart two inlets of one
 * port. */
static void add_queues(struct metrics *metrics, const struct family *family, bool wide)
{
	weir_queue_counts counts = {.size = sizeof counts};
	const char *number = (const char *)&counts + family->offset;

	for (size_t i = 0; !weir_scheduler_queue_counts(metrics->scheduler, i, &counts); i++) {
		wr_text_add(&metrics->text, "%s{queue=\"%zu\"", family->name, i);
		add_label(metrics, ",from", counts.from);
		add_label(metrics, ",to", counts.to);
		add_number(metrics, wide ? *(const uint64_t *)number : *(const uint32_t *)number);
	}
}

static void add_queue_counts(struct metrics *metrics, const struct family *family)
{
	add_queues(metrics, family, true);
}

static void add_capacity(struct metrics *metrics, const struct family *family)
{
	add_queues(metrics, family, false);
}

/* Of a number in weir_pool_counts. */
static void add_pool_counts(struct metrics *metrics, const struct family *family)
{
	for (size_t i = 0; i < metrics->graph->memory_pool_count; i++) {
		weir_pool_counts counts = {.size = sizeof counts};

		wr_memory_pool_count(&metrics->graph->memory_pools[i], &counts);
		wr_text_add(&metrics->text, "%s", family->name);
		add_label(metrics, "{pool", counts.pool);
		add_label(metrics, ",unit", counts.block_size ? "blocks" : "bytes");
		add_number(metrics, *(const uint64_t *)((const char *)&counts + family->offset));
	}
}

/* --- what statistics have --- */

static void add_duration(struct metrics *metrics, const struct family *family)
{
	int64_t begun_at = metrics->statistics ? wr_read(&metrics->statistics->begun_at) : 0;

	if (begun_at)
		wr_text_add(&metrics->text, "%s " SECONDS "\n", family->name,
			    OF_NS(wr_statistics_now(metrics->statistics) - begun_at));
}

static size_t worker_count(const struct metrics *metrics)
{
	return metrics->statistics ? wr_read(&metrics->statistics->workers_running) : 0;
}

static void add_busy(struct metrics *metrics, const struct family *family)
{
	for (size_t i = 0; i < worker_count(metrics); i++) {
		wr_text_add(&metrics->text, "%s{worker=\"%zu\"", family->name, i);
		add_seconds(metrics, wr_read(&metrics->statistics->workers[i].busy));
	}
}

static void add_asleep(struct metrics *metrics, const struct family *family)
{
	for (size_t i = 0; i < worker_count(metrics); i++) {
		wr_text_add(&metrics->text, "%s{worker=\"%zu\"", family->name, i);
		add_seconds(metrics, wr_statistics_asleep(metrics->statistics, i));
	}
}

static void add_paths(struct metrics *metrics, const struct family *family)
{
	for (size_t i = 0; i < metrics->paths.count; i++) {
		struct wr_path_row *row = &metrics->paths.at[i];
		struct wr_text labels = {0};

		wr_text_add(&labels, "path=\"%s", row->other ? "other > " : "");
		for (const char *name = row->names.text; name; name = wr_path_name_after(row, name))
			wr_text_add(&labels, "%s%s", name == row->names.text ? "" : " > ", name);
		wr_text_add(&labels, "\"");
		if (labels.status)
			metrics->text.status = labels.status;
		else
			add_histogram(metrics, family, labels.text, &row->latency);
		wr_text_finish(&labels);
	}
}

/* --- the table --- */

#define OF_ENTITY(field) add_entity_counts, offsetof(weir_entity_counts, field)
#define TIMES(field)     add_entity_times, offsetof(struct wr_entity_statistics, field)
#define OF_QUEUE(field)  add_queue_counts, offsetof(weir_queue_counts, field)
#define OF_POOL(field)   add_pool_counts, offsetof(weir_pool_counts, field)

static const struct family families[] = {
	{"weir_info", "gauge", "The run: always 1", add_info, 0},
	{"weir_running", "gauge", "1 while the run is on", add_running, 0},
	{"weir_run_seconds", "gauge", "How long the run has been on, or was", add_duration, 0},
	{"weir_frames_total", "counter", "Messages that the main sink took", add_frames, 0},
	{"weir_late_signals_total", "counter",
	 "Signals that came a second after their device work, or not at all", add_late, 0},
	{"weir_ticks_total", "counter", "Ticks of an entity", OF_ENTITY(ticks)},
	{"weir_received_messages_total", "counter", "Messages that an entity took", OF_ENTITY(received)},
	{"weir_emitted_messages_total", "counter", "Messages that an entity emitted", OF_ENTITY(emitted)},
	{"weir_lost_ticks_total", "counter", "Periods in which an entity did not tick", OF_ENTITY(lost)},
	{"weir_replay_hits_total", "counter", "Ticks whose captured device work was launched again",
	 OF_ENTITY(replay_hits)},
	{"weir_queue_messages", "gauge", "Messages in a queue", OF_QUEUE(queued)},
	{"weir_queue_capacity", "gauge", "Messages that a queue has room for", add_capacity,
	 offsetof(weir_queue_counts, capacity)},
	{"weir_queue_pushed_total", "counter", "Messages that were put into a queue", OF_QUEUE(pushed)},
	{"weir_queue_delivered_total", "counter", "Messages that the receiver took", OF_QUEUE(delivered)},
	{"weir_queue_dropped_total", "counter", "Messages dropped by the policy of a queue",
	 OF_QUEUE(dropped)},
	{"weir_queue_unmatched_total", "counter", "Messages that belonged to no other (condition aligned)",
	 OF_QUEUE(unmatched)},
	{"weir_pool_used", "gauge", "Blocks, or bytes, of a memory pool that are in use", OF_POOL(used)},
	{"weir_pool_capacity", "gauge", "Blocks, or bytes, of a memory pool", OF_POOL(capacity)},
	{"weir_pool_allocations_total", "counter", "Tensors made in a memory pool", OF_POOL(allocations)},
	{"weir_pool_waits_total", "counter", "Claims that found too little in a memory pool",
	 OF_POOL(refused)},
	{"weir_compute_seconds", "histogram", "Inside compute, on the host", TIMES(submit)},
	{"weir_gpu_seconds", "histogram", "From the first device work of a tick to the last",
	 TIMES(gpu_span)},
	{"weir_ready_seconds", "histogram", "From READY to compute: waiting for a worker", TIMES(queued)},
	{"weir_wait_seconds_total", "counter", "How long an entity waited, by cause and by port or pool",
	 add_waits, 0},
	{"weir_worker_busy_seconds_total", "counter", "How long a worker was inside compute", add_busy, 0},
	{"weir_worker_asleep_seconds_total", "counter", "How long a worker slept", add_asleep, 0},
	{"weir_path_latency_seconds", "histogram",
	 "From a source to a sink, with the device work of its tick", add_paths, 0},
};

/* The head of a family of which there is no sample would say nothing. */
static void add_family(struct metrics *metrics, const struct family *family)
{
	struct wr_text *text = &metrics->text;
	size_t before = text->length, head;

	wr_text_add(text, "# HELP %s %s.\n# TYPE %s %s\n", family->name, family->help, family->name,
		    family->type);
	head = text->length;
	family->add(metrics, family);
	if (text->length != head || text->status)
		return;
	text->length = before;
	text->text[before] = '\0';
}

weir_status weir_scheduler_print_metrics(weir_scheduler *scheduler, char **out)
{
	struct metrics metrics = {.scheduler = scheduler,
				  .graph = scheduler->graph,
				  .statistics = wr_statistics_in(scheduler->trace)};
	weir_status status;

	if (metrics.statistics && wr_path_rows_read(metrics.graph, metrics.statistics, &metrics.paths))
		metrics.text.status = WEIR_E_NOMEM;
	for (size_t i = 0; i < sizeof families / sizeof *families; i++)
		add_family(&metrics, &families[i]);
	wr_path_rows_finish(&metrics.paths);
	status = metrics.text.status;
	if (status)
		wr_text_finish(&metrics.text);
	else
		*out = metrics.text.text;
	return status;
}
