/*
 * Finds what limits a run.
 *
 * A stage that is busy nearly all the time limits its run, unless most stages are: then the graph is
 * balanced. If no stage is busy, something keeps the stages apart: too few workers (READY entities wait for
 * one while all are busy), a memory pool that is used up, max_in_flight, or a queue that is full while its
 * receiver waits (for other messages, or for the device). A wait that merely passes on the slowness of a
 * later entity (a full queue before a busy receiver) is no finding. Dropped messages are a finding in any
 * case, and the first.
 */
#include "cli/findings.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/words.h"
#include "cli/cli.h"

/* Shares of the run's duration, unless another whole is named. */
#define LOAD_BUSY    0.7  /* a stage that may limit */
#define LOAD_FULL    0.9  /* one that does, whatever waits there are */
#define LOAD_LIKE    0.8  /* of the busiest one's load: as busy as it */
#define LOAD_IDLE    0.8  /* below it a receiver, or a device, has time left */
#define WORKERS_BUSY 0.85 /* of the workers' time */
#define READY_WAIT   0.25 /* READY entities that wait for a worker, on average */
#define WAIT_LONG    0.15
#define BLOCKED_MOST 0.5  /* of the time in compute */
#define WAITS_MOST   0.75 /* likewise, in any call that waits */
#define DROPS_MANY   0.01 /* of the messages pushed */

enum { CAPACITY_MAX = 65536, WORKERS_MAX = 64 }; /* as in a graph file */

static const char *const cause_texts[] = {
	[CLI_CAUSE_COMPUTE] = "compute",     [CLI_CAUSE_BLOCKS] = "blocks",   [CLI_CAUSE_DEVICE] = "device",
	[CLI_CAUSE_QUEUE] = "queue",         [CLI_CAUSE_WORKERS] = "workers", [CLI_CAUSE_POOL] = "pool",
	[CLI_CAUSE_IN_FLIGHT] = "in_flight", [CLI_CAUSE_DROPS] = "drops",
};

const char *cli_cause_text(enum cli_cause cause)
{
	return cause_texts[cause];
}

/* --- figures --- */

static double mean_of(const struct cli_histogram *times)
{
	return times->count ? (double)times->sum / (double)times->count : 0;
}

/* What all ticks took, although only some were measured, as a share of the run. */
static double load_of(const struct cli_recorded *recorded, size_t i, const struct cli_histogram *times)
{
	double ticks = (double)cli_recorded_entity(recorded, i)->ticks;

	return recorded->duration ? mean_of(times) * ticks / (double)recorded->duration : 0;
}

double cli_host_load(const struct cli_recorded *recorded, size_t i)
{
	return load_of(recorded, i, &cli_recorded_entity(recorded, i)->submit);
}

/* Spans that the poller of flags saw may contain the work of entities before it: they prove nothing. */
static bool device_is_timed(const struct cli_entity *entity)
{
	return entity->gpu_span.count && !(entity->done_source && !strcmp(entity->done_source, "flag"));
}

double cli_device_load(const struct cli_recorded *recorded, size_t i)
{
	const struct cli_entity *entity = cli_recorded_entity(recorded, i);

	return device_is_timed(entity) ? load_of(recorded, i, &entity->gpu_span) : 0;
}

static double load_at(const struct cli_recorded *recorded, size_t i)
{
	double host = cli_host_load(recorded, i), device = cli_device_load(recorded, i);

	return host > device ? host : device;
}

/* How long an entity waited for this, as a share of the run. */
static double wait_share(const struct cli_recorded *recorded, size_t i, weir_cause cause)
{
	const struct cli_entity *entity = cli_recorded_entity(recorded, i);
	const struct cli_wait *waits = entity->waits.items;
	double sum = 0;

	for (size_t k = 0; k < entity->waits.count; k++)
		if (waits[k].cause == cause)
			sum += (double)waits[k].time.sum;
	return recorded->duration ? sum / (double)recorded->duration : 0;
}

/* The entity that waited longest for this; *share: how long. */
static size_t longest_wait(const struct cli_recorded *recorded, weir_cause cause, double *share)
{
	size_t longest = CLI_NO_ENTITY;

	*share = 0;
	for (size_t i = 0; i < recorded->entities.count; i++) {
		double waited = wait_share(recorded, i, cause);

		if (waited > *share)
			*share = waited, longest = i;
	}
	return longest;
}

static struct wr_shown name_of(const struct cli_recorded *recorded, size_t i)
{
	return wr_shown(i == CLI_NO_ENTITY ? "the program" : cli_recorded_entity(recorded, i)->name);
}

struct time_text {
	char text[24];
};

static struct time_text time_of(double ns)
{
	struct time_text text;

	cli_duration(text.text, (int64_t)ns);
	return text;
}

static int percent(double share)
{
	return share > 1 ? 100 : (int)(share * 100 + 0.5);
}

static struct cli_finding *finding_add(struct cli_findings *out, enum cli_cause cause, size_t entity,
				       double share)
{
	struct cli_finding *finding =
		&out->list[out->count < CLI_FINDINGS_MAX ? out->count++ : CLI_FINDINGS_MAX - 1];

	*finding = (struct cli_finding){.cause = cause, .entity = entity, .share = share};
	return finding;
}

static void finding_say(struct cli_finding *finding, const char *format, ...) WEIR_PRINTF(2, 3);
static void finding_say(struct cli_finding *finding, const char *format, ...)
{
	va_list list;

	va_start(list, format);
	vsnprintf(finding->text, sizeof finding->text, format, list);
	va_end(list);
}

/* --- messages that were dropped --- */

static bool is_dropping(const struct cli_queue *queue)
{
	return queue->dropped && (double)queue->dropped >= DROPS_MANY * (double)queue->pushed;
}

/* What holds the receiver up: itself, or what follows it. */
static void say_drops(struct cli_finding *finding, const struct cli_recorded *recorded,
		      const struct cli_queue *queue)
{
	size_t receiver = queue->receiver_at;
	double room = receiver == CLI_NO_ENTITY ? 0 : wait_share(recorded, receiver, WEIR_CAUSE_ROOM);
	struct wr_shown name = name_of(recorded, receiver);
	char why[256];

	if (room >= WAIT_LONG && load_at(recorded, receiver) < LOAD_IDLE)
		snprintf(
			why, sizeof why,
			"'%s' waits %d %% of the run for room: what follows it is too slow; make that faster",
			name.text, percent(room));
	else
		snprintf(why, sizeof why, "'%s' takes them too slowly; make it faster", name.text);
	finding_say(finding,
		    "the queue %s -> %s dropped %" PRId64 " of %" PRId64
		    " messages (policy %s, capacity %" PRId64
		    "): %s, send less, or raise \"capacity\" if they come in bursts",
		    wr_shown(queue->from).text, wr_shown(queue->to).text, queue->dropped, queue->pushed,
		    wr_shown(queue->policy ? queue->policy : "?").text, queue->capacity, why);
}

static void find_drops(struct cli_findings *out, const struct cli_recorded *recorded)
{
	const struct cli_queue *queues = recorded->queues.items, *worst = NULL;
	struct cli_finding *finding;

	for (size_t i = 0; i < recorded->queues.count; i++)
		if (is_dropping(&queues[i]) && (!worst || queues[i].dropped > worst->dropped))
			worst = &queues[i];
	if (!worst)
		return;
	finding = finding_add(out, CLI_CAUSE_DROPS, worst->receiver_at,
			      (double)worst->dropped / (double)worst->pushed);
	finding->what = worst->to;
	say_drops(finding, recorded, worst);
}

/* --- too few workers --- */

static double workers_busy(const struct cli_recorded *recorded)
{
	const struct cli_worker *workers = recorded->workers.items;
	double busy = 0;

	for (size_t i = 0; i < recorded->workers.count; i++)
		busy += (double)workers[i].busy;
	if (!recorded->workers.count || !recorded->duration)
		return 0;
	return busy / (double)recorded->duration / (double)recorded->workers.count;
}

static bool find_workers(struct cli_findings *out, const struct cli_recorded *recorded)
{
	double busy = workers_busy(recorded), ready = 0, longest = 0, more;
	size_t entity = CLI_NO_ENTITY, workers = recorded->workers.count;
	struct cli_finding *finding;

	for (size_t i = 0; i < recorded->entities.count; i++) {
		double waits = load_of(recorded, i, &cli_recorded_entity(recorded, i)->ready_to_compute);

		ready += waits;
		if (waits > longest)
			longest = waits, entity = i;
	}
	if (busy < WORKERS_BUSY || ready < READY_WAIT || entity == CLI_NO_ENTITY)
		return false;
	more = (double)workers + ready + 0.999;
	finding = finding_add(out, CLI_CAUSE_WORKERS, entity, busy);
	finding_say(finding,
		    "%s busy %d %% of the run, and on average %.1f READY entities wait for one, "
		    "'%s' longest (%s a tick); use more workers (--workers %d) if there are cores for them, "
		    "or make the "
		    "computes shorter",
		    workers == 1 ? "the only worker is" : "all workers are", percent(busy), ready,
		    name_of(recorded, entity).text,
		    time_of(mean_of(&cli_recorded_entity(recorded, entity)->ready_to_compute)).text,
		    more < WORKERS_MAX ? (int)more : WORKERS_MAX);
	return true;
}

/* --- a stage that is slower than the others --- */

static int compare_reals(const void *a, const void *b)
{
	double one = *(const double *)a, other = *(const double *)b;

	return (one > other) - (one < other);
}

/* The median load of the entities that are less busy than `like`. */
static double median_of_others(struct cli_findings *out, const struct cli_recorded *recorded, double like)
{
	double *loads = calloc(recorded->entities.count, sizeof *loads), median = 0;
	size_t count = 0;

	out->no_memory |= !loads;
	for (size_t i = 0; loads && i < recorded->entities.count; i++)
		if (load_at(recorded, i) < like)
			loads[count++] = load_at(recorded, i);
	if (count) {
		qsort(loads, count, sizeof *loads, compare_reals);
		median = loads[count / 2];
	}
	free(loads);
	return median;
}

/*
 * How much of its time in compute the entity waits, in calls of weir or of others. A tick that was preempted
 * waits for nothing, though it is not on a core.
 */
static double waits_of(const struct cli_entity *entity)
{
	const struct cli_cpu *cpu = &entity->cpu;
	double blocked = entity->submit.sum ? (double)entity->blocked.sum / (double)entity->submit.sum : 0;
	double off = cpu->of && cpu->waits >= cpu->count ? 1 - (double)cpu->time / (double)cpu->of : 0;

	return blocked >= BLOCKED_MOST ? blocked : off >= WAITS_MOST ? off : 0;
}

static void say_stage(struct cli_findings *out, const struct cli_recorded *recorded, size_t i, double others)
{
	const struct cli_entity *entity = cli_recorded_entity(recorded, i);
	double host = cli_host_load(recorded, i), device = cli_device_load(recorded, i);
	double blocked = waits_of(entity);
	struct cli_finding *finding;

	if (device > host) {
		finding = finding_add(out, CLI_CAUSE_DEVICE, i, device);
		finding_say(finding,
			    "the device work of '%s' takes %s a tick and goes on for %d %% of the run, that "
			    "of others "
			    "for %d %% (its compute takes %s); make its kernels shorter, or divide its work "
			    "between "
			    "two entities",
			    wr_shown(entity->name).text, time_of(mean_of(&entity->gpu_span)).text,
			    percent(device), percent(others), time_of(mean_of(&entity->submit)).text);
	} else if (blocked > 0) {
		finding = finding_add(out, CLI_CAUSE_BLOCKS, i, host);
		finding_say(finding,
			    "'%s' is in compute for %d %% of the run (%s a tick), and %d %% of that it waits "
			    "there and "
			    "keeps a worker; let compute enqueue and return, and a condition (a gate, "
			    "cuda_stream, "
			    "asynchronous, file_descriptor) wait",
			    wr_shown(entity->name).text, percent(host),
			    time_of(mean_of(&entity->submit)).text, percent(blocked));
	} else {
		finding = finding_add(out, CLI_CAUSE_COMPUTE, i, host);
		finding_say(finding,
			    "'%s' is in compute for %d %% of the run (%s a tick), others for %d %%; make its "
			    "compute "
			    "shorter, move its work to the device, or divide it between two entities",
			    wr_shown(entity->name).text, percent(host),
			    time_of(mean_of(&entity->submit)).text, percent(others));
	}
}

/* The entity that follows `last` in the order of load; CLI_NO_ENTITY: the busiest. There is one. */
static size_t next_busiest(const struct cli_recorded *recorded, size_t last)
{
	double below = last == CLI_NO_ENTITY ? 0 : load_at(recorded, last);
	size_t next = CLI_NO_ENTITY;

	for (size_t i = 0; i < recorded->entities.count; i++) {
		double load = load_at(recorded, i);
		bool follows = last == CLI_NO_ENTITY || load < below || (load <= below && i > last);

		if (follows && (next == CLI_NO_ENTITY || load > load_at(recorded, next)))
			next = i;
	}
	return next;
}

/* Names the busiest stages, at most three, unless more than half of all are as busy. */
static void find_stages(struct cli_findings *out, const struct cli_recorded *recorded, double top)
{
	size_t count = recorded->entities.count, alike = 0;
	double others = median_of_others(out, recorded, LOAD_LIKE * top);

	for (size_t i = 0; i < count; i++)
		alike += load_at(recorded, i) >= LOAD_LIKE * top;
	if (2 * alike > count)
		return;
	for (size_t named = 0, last = CLI_NO_ENTITY; named < 3 && named < alike; named++) {
		last = next_busiest(recorded, last);
		say_stage(out, recorded, last, others);
	}
}

/* --- stages that wait, though none is busy --- */

static const struct cli_pool *fullest_pool(const struct cli_recorded *recorded)
{
	const struct cli_pool *pools = recorded->pools.items, *fullest = NULL;

	for (size_t i = 0; i < recorded->pools.count; i++)
		if (pools[i].waits &&
		    (!fullest || pools[i].wait_time.sum > fullest->wait_time.sum ||
		     (pools[i].wait_time.sum == fullest->wait_time.sum && pools[i].waits > fullest->waits)))
			fullest = &pools[i];
	return fullest;
}

static bool find_pool(struct cli_findings *out, const struct cli_recorded *recorded)
{
	const struct cli_pool *pool = fullest_pool(recorded);
	struct cli_finding *finding;
	double share;
	size_t entity = longest_wait(recorded, WEIR_CAUSE_MEMORY, &share);
	const char *unit = pool && pool->unit ? pool->unit : "blocks";

	if (share < WAIT_LONG || !pool)
		return false;
	finding = finding_add(out, CLI_CAUSE_POOL, entity, share);
	finding->what = pool->name;
	finding_say(finding,
		    "'%s' waits %d %% of the run for memory of the pool '%s', which has %" PRId64
		    " %s; raise \"%s\" of the pool",
		    name_of(recorded, entity).text, percent(share), wr_shown(pool->name).text, pool->capacity,
		    pool->capacity == 1 && !strcmp(unit, "blocks") ? "block" : wr_shown(unit).text,
		    strcmp(unit, "bytes") ? "blocks" : "max_size");
	return true;
}

static bool find_in_flight(struct cli_findings *out, const struct cli_recorded *recorded)
{
	struct cli_finding *finding;
	double share;
	size_t entity = longest_wait(recorded, WEIR_CAUSE_BOUND, &share);
	int64_t bound;

	if (share < WAIT_LONG || cli_device_load(recorded, entity) >= LOAD_IDLE)
		return false;
	bound = cli_recorded_entity(recorded, entity)->max_in_flight;
	finding = finding_add(out, CLI_CAUSE_IN_FLIGHT, entity, share);
	finding_say(finding,
		    "'%s' waits %d %% of the run because max_in_flight (%" PRId64
		    ") of its ticks are on the device, "
		    "whose work for it goes on for %d %% only; raise \"max_in_flight\" of the entity",
		    name_of(recorded, entity).text, percent(share), bound,
		    percent(cli_device_load(recorded, entity)));
	return true;
}

/* How long the queue kept two entities apart that had time: full, its sender waits for room, its receiver
 * waits, too. */
static double queue_share(const struct cli_recorded *recorded, const struct cli_queue *queue)
{
	double full, room, idle;

	if (queue->sender_at == CLI_NO_ENTITY || queue->receiver_at == CLI_NO_ENTITY || !recorded->duration ||
	    load_at(recorded, queue->receiver_at) >= LOAD_IDLE)
		return 0;
	full = (double)queue->depth.full_time / (double)recorded->duration;
	room = wait_share(recorded, queue->sender_at, WEIR_CAUSE_ROOM);
	idle = wait_share(recorded, queue->receiver_at, WEIR_CAUSE_MESSAGES) +
	       wait_share(recorded, queue->receiver_at, WEIR_CAUSE_DEVICE);
	room = room < full ? room : full;
	return room < idle ? room : idle;
}

/*
 * Without measured device time: several messages lie in the queue, and its receiver waits for the device, so
 * the device is behind, and not the queue too small.
 */
static bool is_device_behind(const struct cli_recorded *recorded, const struct cli_queue *queue)
{
	return queue->capacity > 1 && !device_is_timed(cli_recorded_entity(recorded, queue->sender_at)) &&
	       wait_share(recorded, queue->receiver_at, WEIR_CAUSE_DEVICE) >
		       wait_share(recorded, queue->receiver_at, WEIR_CAUSE_MESSAGES);
}

static void say_device_behind(struct cli_findings *out, const struct cli_recorded *recorded,
			      const struct cli_queue *queue)
{
	double share = wait_share(recorded, queue->receiver_at, WEIR_CAUSE_DEVICE);
	struct cli_finding *finding = finding_add(out, CLI_CAUSE_DEVICE, queue->sender_at, share);

	finding_say(finding,
		    "'%s' waits %d %% of the run for the device work behind the messages of '%s', of which "
		    "%.1f lie in "
		    "its queue on average; run with --gpu-time all to see whose work takes how long, and "
		    "make its "
		    "kernels shorter",
		    name_of(recorded, queue->receiver_at).text, percent(share),
		    name_of(recorded, queue->sender_at).text, queue->depth.mean);
}

static bool find_queue(struct cli_findings *out, const struct cli_recorded *recorded)
{
	const struct cli_queue *queues = recorded->queues.items, *worst = NULL;
	struct cli_finding *finding;
	double share = WAIT_LONG;

	for (size_t i = 0; i < recorded->queues.count; i++)
		if (queue_share(recorded, &queues[i]) > share)
			share = queue_share(recorded, worst = &queues[i]);
	if (!worst)
		return false;
	if (is_device_behind(recorded, worst)) {
		say_device_behind(out, recorded, worst);
		return true;
	}
	finding = finding_add(out, CLI_CAUSE_QUEUE, worst->receiver_at, share);
	finding->what = worst->to;
	finding_say(finding,
		    "the queue %s -> %s of %" PRId64
		    " is full %d %% of the run: '%s' waits for room although '%s' is "
		    "busy for %d %% only; raise \"capacity\" of %s, to %" PRId64 " for a start",
		    wr_shown(worst->from).text, wr_shown(worst->to).text, worst->capacity,
		    percent((double)worst->depth.full_time / (double)recorded->duration),
		    name_of(recorded, worst->sender_at).text, name_of(recorded, worst->receiver_at).text,
		    percent(load_at(recorded, worst->receiver_at)), wr_shown(worst->to).text,
		    worst->capacity < 4                  ? 4
		    : worst->capacity < CAPACITY_MAX / 2 ? 2 * worst->capacity
							 : (int64_t)CAPACITY_MAX);
	return true;
}

void cli_findings_make(struct cli_findings *out, const struct cli_recorded *recorded)
{
	double top = 0;

	*out = (struct cli_findings){0};
	find_drops(out, recorded);
	if (find_workers(out, recorded))
		return;
	for (size_t i = 0; i < recorded->entities.count; i++)
		top = load_at(recorded, i) > top ? load_at(recorded, i) : top;
	if (top < LOAD_FULL &&
	    (find_pool(out, recorded) || find_in_flight(out, recorded) || find_queue(out, recorded)))
		return;
	if (top >= LOAD_BUSY)
		find_stages(out, recorded, top);
}
