/*
 * Finds what limits a run, and says it.
 *
 * An ending that is a failure goes first: what such a run waited for is its text. Dropped messages are a
 * finding in any case. Then one thing is found: the root of what the main sink waits for (cli/root.c). A
 * compute that is the root is none if most entities are as busy: then the graph is balanced.
 */
#include "cli/findings.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "base/words.h"
#include "cli/cli.h"
#include "cli/loads.h"
#include "cli/root.h"

#define BLOCKED_MOST 0.5  /* of the time in compute */
#define WAITS_MOST   0.75 /* likewise, in any call that waits */
#define WAITS_SOME   0.25 /* likewise, off the core */
#define WAITS_LOCK   0.2  /* likewise, of all that name a lock */
#define WALL_LEAST   1.3  /* of the run: what computes that take turns take together */
#define CORE_LEAST   0.4  /* of a core: what computes that take turns fill together */
#define CORE_MOST    1.15
#define CORE_NAMED   1.3
#define DROPS_MANY   0.01 /* of the messages pushed */
#define GAIN_LEAST   1.1  /* how much faster a run must become for instances to be proposed */
#define SPARE        1.05 /* what a computed duration is longer than what is needed */

enum {
	CAPACITY_MAX = 65536, /* as in a graph file */
	WORKERS_MAX = 64,
	TICKS_LEAST = 8, /* with fewer, only what takes most of the time is sure */
	NAMED_MOST = 3,
};

static const struct {
	const char *text, *title;
} causes[] = {
#define CLI_CAUSE_ROW(name, key, title) [name] = {key, title},
	CLI_CAUSE_TABLE(CLI_CAUSE_ROW)
#undef CLI_CAUSE_ROW
};

const char *cli_cause_text(enum cli_cause cause)
{
	return causes[cause].text;
}

const char *cli_cause_title(enum cli_cause cause)
{
	return causes[cause].title;
}

/* --- words --- */

static struct wr_shown name_of(const struct cli_recorded *recorded, size_t i)
{
	return i == CLI_NO_ENTITY ? wr_shown("the program")
				  : cli_recorded_name(cli_recorded_entity(recorded, i));
}

static struct wr_shown time_of(double ns)
{
	return wr_time_shown((int64_t)ns);
}

static int percent_of_all(double share)
{
	return !(share > 0) ? 0 : share < 1000 ? (int)(share * 100 + 0.5) : 100000;
}

static int percent(double share)
{
	return share > 1 ? 100 : percent_of_all(share);
}

static struct cli_finding *finding_add(struct cli_findings *out, enum cli_cause cause, size_t entity,
				       double share)
{
	struct cli_finding *finding =
		&out->list[out->count < CLI_FINDINGS_MAX ? out->count++ : CLI_FINDINGS_MAX - 1];

	*finding = (struct cli_finding){.cause = cause, .entity = entity, .share = share};
	return finding;
}

static struct wr_words words_of(struct cli_finding *finding)
{
	return wr_words_in(finding->text, sizeof finding->text);
}

/* (so 'write' waits 94 % of the run for 'stage3', that for 'stage2', that for 'read' by way of 4 others) */
static void add_way(struct wr_words *words, const struct cli_recorded *recorded, const struct cli_root *root)
{
	size_t last = root->legs.count - 1;

	if (!last)
		return;
	wr_words_add(words, " (so '%s' waits %d %% of the run for '%s'",
		     name_of(recorded, cli_root_leg(root, 0)->entity).text,
		     percent(cli_root_leg(root, 0)->share),
		     name_of(recorded, cli_root_leg(root, 1)->entity).text);
	for (size_t i = 2; i < last && i <= NAMED_MOST; i++)
		wr_words_add(words, ", that for '%s'", name_of(recorded, cli_root_leg(root, i)->entity).text);
	if (last > 1)
		wr_words_add(words, ", that for '%s'", name_of(recorded, cli_root_last(root)->entity).text);
	if (last > NAMED_MOST + 1)
		wr_words_add(words, " by way of %zu other%s", last - NAMED_MOST - 1,
			     last > NAMED_MOST + 2 ? "s" : "");
	wr_words_put(words, ")");
}

/* --- how it ended --- */

/* Returns true if nothing else is to be said: its entities stood still. */
static bool find_ending(struct cli_findings *out, const struct cli_recorded *recorded)
{
	const char *text = recorded->text ? recorded->text : recorded->stuck;
	struct cli_finding *finding;
	struct wr_words words;

	if (!recorded->has_outcome || !recorded->status)
		return false;
	finding = finding_add(out, CLI_CAUSE_ENDING, recorded->cause_at, 1);
	finding->what = recorded->cause_on;
	words = words_of(finding);
	wr_words_add(&words, "the run ended after %s: %s", time_of((double)recorded->duration).text,
		     wr_shown(recorded->ending ? recorded->ending : weir_status_text(recorded->status)).text);
	if (text) {
		char shown[512];

		wr_shown_cut(shown, sizeof shown, text);
		wr_words_add(&words, ": %s", shown);
	}
	if (recorded->cause == WEIR_CAUSE_TOLD) /* the other texts have their remedy */
		wr_words_put(&words, "; tell it to go on (weir_entity_tell), or leave the "
				     "condition out");
	return recorded->cause != WEIR_CAUSE_DRAIN;
}

/* --- messages that were dropped --- */

/* What holds the receiver up: itself, or what it waits for. */
static void say_drops(struct cli_finding *finding, const struct cli_recorded *recorded,
		      const struct cli_queue *queue, const struct cli_root *root)
{
	const struct cli_leg *first = root->legs.count ? cli_root_leg(root, 0) : NULL;
	struct wr_shown name = name_of(recorded, queue->receiver_at);
	struct wr_words words = words_of(finding);

	wr_words_add(&words,
		     "the queue %s -> %s dropped %" PRId64 " of %" PRId64
		     " messages (policy %s, capacity %" PRId64 "): ",
		     wr_shown(queue->from).text, wr_shown(queue->to).text, queue->dropped, queue->pushed,
		     wr_shown(queue->policy ? queue->policy : "?").text, queue->capacity);
	if (first && first->cause == WEIR_CAUSE_ROOM && first->share >= WAIT_LONG)
		wr_words_add(&words,
			     "'%s' waits %d %% of the run for room: what follows it is too slow; make that "
			     "faster, send less",
			     name.text, percent(first->share));
	else if (first && first->cause != WEIR_CAUSE_COMPUTE && first->cause != WEIR_CAUSE_MESSAGES &&
		 first->share >= LOAD_BUSY) {
		wr_words_add(&words, "'%s' waits %d %% of the run (%s: %s); let it go on, or send less",
			     name.text, percent(first->share),
			     wr_shown(first->of ? first->of : "worker").text,
			     wr_shown(first->why ? first->why : "all are busy").text);
		return;
	} else
		wr_words_add(&words, "'%s' takes them too slowly; make it faster, send less", name.text);
	wr_words_put(&words, ", or raise \"capacity\" if they come in bursts");
}

static void find_drops(struct cli_findings *out, const struct cli_recorded *recorded)
{
	const struct cli_queue *queues = recorded->queues.items, *worst = NULL;
	struct cli_finding *finding;
	struct cli_root root = {0};

	for (size_t i = 0; i < recorded->queues.count; i++)
		if (queues[i].dropped && (double)queues[i].dropped >= DROPS_MANY * (double)queues[i].pushed &&
		    (!worst || queues[i].dropped > worst->dropped))
			worst = &queues[i];
	if (!worst)
		return;
	if (worst->receiver_at != CLI_NO_ENTITY)
		cli_root_find(&root, recorded, worst->receiver_at);
	finding = finding_add(out, CLI_CAUSE_DROPS, worst->receiver_at,
			      (double)worst->dropped / (double)worst->pushed);
	finding->what = worst->to;
	say_drops(finding, recorded, worst, &root);
	out->no_memory |= root.no_memory;
	cli_root_finish(&root);
}

/* --- computes that take turns --- */

struct group {
	size_t named[NAMED_MOST], count;
	double wall, core; /* of all: shares of the run in compute, and on a core */
	const char *lock;  /* its name, if computes said it */
};

/* How much of its time in compute it waits, off the core, in every second tick or more: not if it was
 * preempted only. */
static double off_core(const struct cli_entity *entity)
{
	const struct cli_cpu *cpu = &entity->cpu;

	return cpu->of && 2 * cpu->waits >= cpu->count ? 1 - (double)cpu->time / (double)cpu->of : 0;
}

/* Likewise, of one that names a lock: it may lose it and wait for it again within compute, as Python does. */
static double lock_wait(const struct cli_entity *entity)
{
	const struct cli_cpu *cpu = &entity->cpu;
	double told = entity->submit.sum ? (double)entity->lock.time / (double)entity->submit.sum : 0;
	double off = cpu->of ? 1 - (double)cpu->time / (double)cpu->of : 0;

	return told > off ? told < 1 ? told : 1 : off;
}

static void group_add(struct group *group, const struct cli_recorded *recorded, size_t i, double waits)
{
	double wall = cli_host_sum(recorded, i);

	if (group->count < NAMED_MOST)
		group->named[group->count] = i;
	group->count++;
	group->wall += wall;
	group->core += wall * (1 - waits);
}

/* Those that named a lock that they wait for, or else those that are off the core in compute; if together
 * they fill hardly more than one core. */
static struct group find_group(const struct cli_recorded *recorded)
{
	struct group named = {.count = 0}, other = {.count = 0};

	for (size_t i = 0; i < recorded->entities.count; i++) {
		const struct cli_entity *entity = cli_recorded_entity(recorded, i);

		if (cli_host_load(recorded, i) < WAIT_LONG)
			continue;
		if (entity->lock.name) {
			group_add(&named, recorded, i, lock_wait(entity));
			named.lock = entity->lock.name;
		}
		if (off_core(entity) >= WAITS_SOME)
			group_add(&other, recorded, i, off_core(entity));
	}
	if (named.count > 1 && named.wall >= WALL_LEAST && named.core <= CORE_NAMED &&
	    named.core <= (1 - WAITS_LOCK) * named.wall)
		return named;
	if (other.count < 2 || other.wall < WALL_LEAST || other.core < CORE_LEAST || other.core > CORE_MOST)
		other.count = 0;
	return other;
}

/* Returns false if there are none, or `entity` is not of them; CLI_NO_ENTITY: any. */
static bool find_lock(struct cli_findings *out, const struct cli_recorded *recorded, size_t entity)
{
	struct group group = find_group(recorded);
	struct cli_finding *finding;
	struct wr_words words;
	bool among = entity == CLI_NO_ENTITY;

	for (size_t i = 0; i < group.count && i < NAMED_MOST; i++)
		among |= group.named[i] == entity;
	if (!group.count || (!among && group.count <= NAMED_MOST))
		return false;
	finding = finding_add(out, CLI_CAUSE_LOCK, entity == CLI_NO_ENTITY ? group.named[0] : entity,
			      group.wall);
	finding->what = group.lock;
	words = words_of(finding);
	for (size_t i = 0; i < group.count && i < NAMED_MOST; i++)
		wr_words_add(&words, "%s'%s'", i ? i + 1 == group.count ? " and " : ", " : "",
			     name_of(recorded, group.named[i]).text);
	if (group.count > NAMED_MOST)
		wr_words_add(&words, " and %zu more", group.count - NAMED_MOST);
	wr_words_add(&words,
		     " take turns: together they are in compute %.1f times as long as the run, and on a core "
		     "%.1f times, waiting there for ",
		     group.wall, group.core);
	if (group.lock)
		wr_words_add(&words, "the lock '%s'", wr_shown(group.lock).text);
	else
		wr_words_put(&words, "each other (a lock that they share)");
	wr_words_put(&words, "; more workers do not help: hold it for less of compute (in Python: calls that "
			     "release the GIL, an interpreter without one, processes)");
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
		if (cli_any_load(recorded, i) < like)
			loads[count++] = cli_any_load(recorded, i);
	if (count) {
		qsort(loads, count, sizeof *loads, compare_reals);
		median = loads[count / 2];
	}
	free(loads);
	return median;
}

static void say_blocks(struct wr_words *words, const struct cli_recorded *recorded, size_t i, double blocked)
{
	wr_words_add(
		words,
		"'%s' is in compute for %d %% of the run (%s a tick), and %d %% of that it waits there and "
		"keeps a worker; let compute enqueue and return, and a condition (a gate, cuda_stream, "
		"asynchronous, file_descriptor, periodic) wait",
		name_of(recorded, i).text, percent(cli_host_load(recorded, i)),
		time_of(cli_mean(&cli_recorded_entity(recorded, i)->submit)).text, percent(blocked));
}

/*
 * With how many instances the entity is no longer what limits the run: another one is, `next`, or all workers
 * are busy (CLI_NO_ENTITY). 0: more would not help, or it may have none.
 */
static int64_t enough_instances(const struct cli_recorded *recorded, size_t i, size_t *next)
{
	const struct cli_entity *entity = cli_recorded_entity(recorded, i);
	double lanes = (double)cli_recorded_lanes(entity), all = 0, most = 0, gain, needed;

	*next = CLI_NO_ENTITY;
	for (size_t k = 0; k < recorded->entities.count; k++) {
		all += cli_host_sum(recorded, k);
		if (k != i && cli_any_load(recorded, k) > most)
			most = cli_any_load(recorded, *next = k);
	}
	gain = all > 0 ? (double)recorded->workers.count / all : 0;
	if (most > 0 && cli_host_load(recorded, i) / most < gain)
		gain = cli_host_load(recorded, i) / most;
	else
		*next = CLI_NO_ENTITY;
	needed = lanes * gain + 0.9;
	if (needed > (double)recorded->workers.count)
		needed = (double)recorded->workers.count;
	if (gain < GAIN_LEAST || needed < lanes + 1 || needed > (double)entity->instances_max)
		return 0;
	return (int64_t)needed;
}

static void say_instances(struct cli_finding *finding, struct wr_words *words,
			  const struct cli_recorded *recorded, size_t i)
{
	size_t next;
	int64_t instances = enough_instances(recorded, i, &next);

	if (!instances)
		return;
	finding->set = "instances";
	finding->to = instances;
	wr_words_add(words,
		     "; or let several of its ticks compute at once: set \"instances\" of it, to %" PRId64
		     " for a start",
		     instances);
	if (next == CLI_NO_ENTITY)
		wr_words_put(words, ", as many as the workers can compute");
	else
		wr_words_add(words, ", as fast as '%s' is, the next", name_of(recorded, next).text);
}

static struct wr_words say_stage(struct cli_findings *out, const struct cli_recorded *recorded, size_t i,
				 double others)
{
	const struct cli_entity *entity = cli_recorded_entity(recorded, i);
	double host = cli_host_load(recorded, i), off = off_core(entity);
	double called = entity->submit.sum ? (double)entity->blocked.sum / (double)entity->submit.sum : 0;
	/* how much of its time in compute the entity waits, in calls of weir or of others */
	double blocked = called >= BLOCKED_MOST ? called : off >= WAITS_MOST ? off : 0;
	struct cli_finding *finding =
		finding_add(out, blocked > 0 ? CLI_CAUSE_BLOCKS : CLI_CAUSE_COMPUTE, i, host);
	struct wr_words words = words_of(finding);

	if (blocked > 0)
		say_blocks(&words, recorded, i, blocked);
	else
		wr_words_add(
			&words,
			"'%s' is in compute for %d %% of the run (%s a tick%s), others for %d %%; make its "
			"compute shorter, move its work to the device, or divide it between two entities",
			name_of(recorded, i).text, percent(host), time_of(cli_mean(&entity->submit)).text,
			off >= WAITS_SOME
				? ", a good part of it not on a core: a lock, a read, or a busy machine"
				: "",
			percent(others));
	say_instances(finding, &words, recorded, i);
	return words;
}

/* The root, and what is as busy, unless that is most of all. */
static void find_stages(struct cli_findings *out, const struct cli_recorded *recorded,
			const struct cli_root *root)
{
	size_t count = recorded->entities.count, at = cli_root_last(root)->entity, alike = 0, named = 1;
	double like = LOAD_LIKE * cli_host_load(recorded, at);
	double others = median_of_others(out, recorded, like);
	struct wr_words words;

	if (find_lock(out, recorded, at))
		return;
	for (size_t i = 0; i < count; i++)
		alike += cli_any_load(recorded, i) >= like;
	out->balanced = alike > 1 && 2 * alike > count;
	if (out->balanced)
		return;
	words = say_stage(out, recorded, at, others);
	add_way(&words, recorded, root);
	for (size_t i = 0; i < count && named < NAMED_MOST; i++)
		if (i != at && cli_host_load(recorded, i) >= like) {
			say_stage(out, recorded, i, others);
			named++;
		}
}

/* --- device work --- */

static void say_stream(struct cli_findings *out, const struct cli_recorded *recorded,
		       const struct cli_root *root)
{
	const struct cli_leg *leg = cli_root_last(root);
	struct cli_finding *finding = finding_add(out, CLI_CAUSE_STREAM, leg->entity, leg->share);
	struct wr_words words = words_of(finding);
	size_t named = 0;

	wr_words_put(&words, "the device work of ");
	for (size_t i = 0; i < recorded->entities.count; i++) {
		double load = cli_stream_load(recorded, i, root->stream);

		if (load > 0 && named++ < NAMED_MOST)
			wr_words_add(&words, "%s'%s' (%d %%)", named > 1 ? ", " : "",
				     name_of(recorded, i).text, percent(load));
	}
	if (named > NAMED_MOST)
		wr_words_add(&words, " and %zu more", named - NAMED_MOST);
	wr_words_add(
		&words,
		" shares one stream, which is busy %d %% of the run: one after the other, though the device "
		"could do them side by side; give each a stream of its own (a larger \"max_size\" of the "
		"stream pool, or none), or shorten this work",
		percent(leg->share));
	add_way(&words, recorded, root);
}

/* What others do on the device of the entity. */
static double beside(const struct cli_recorded *recorded, size_t entity)
{
	const struct cli_entity *self = cli_recorded_entity(recorded, entity);
	double load = 0;

	for (size_t i = 0; i < recorded->entities.count; i++)
		if (i != entity && cli_same_device(cli_recorded_entity(recorded, i), self))
			load += cli_device_load(recorded, i);
	return load;
}

static void say_device(struct cli_findings *out, const struct cli_recorded *recorded,
		       const struct cli_root *root)
{
	const struct cli_leg *leg = cli_root_last(root);
	const struct cli_entity *entity = cli_recorded_entity(recorded, leg->entity);
	struct cli_finding *finding = finding_add(out, CLI_CAUSE_DEVICE, leg->entity, leg->share);
	double others = beside(recorded, leg->entity);
	struct wr_words words = words_of(finding);

	if (!cli_device_known(entity))
		wr_words_add(
			&words,
			"'%s' is waited for %d %% of the run for its work on the device, of which too few "
			"ticks were timed; --gpu-time all tells how long it takes; make its kernels shorter, "
			"or divide its work between two entities",
			name_of(recorded, leg->entity).text, percent(leg->share));
	else
		wr_words_add(
			&words,
			"the device work of '%s' takes %s a tick and goes on for %d %% of the run, that of "
			"others for %d %% (its compute takes %s); make its kernels shorter%s",
			name_of(recorded, leg->entity).text, time_of(cli_mean(&entity->gpu_span)).text,
			percent(leg->share), percent_of_all(others), time_of(cli_mean(&entity->submit)).text,
			others >= LOAD_BUSY ? ", or those of others: they share the device, and what one "
					      "leaves another gets"
					    : ", or divide its work between two entities");
	add_way(&words, recorded, root);
}

/* --- what keeps entities apart --- */

static int64_t up(double value)
{
	double most = value < 1e15 ? value : 1e15;

	return (int64_t)most + (most > (double)(int64_t)most);
}

/* So that what is waited for so much of the time suffices. */
static int64_t enough(int64_t now, double share)
{
	int64_t more = up((double)now / (share < 0.9 ? 1 - share : 0.1));

	return more > now ? more : now + 1;
}

static void say_workers(struct cli_findings *out, const struct cli_recorded *recorded)
{
	double busy = cli_workers_busy(recorded), ready = 0, longest = 0, more;
	size_t entity = CLI_NO_ENTITY, workers = recorded->workers.count;
	const char *lock = NULL;
	struct cli_finding *finding;
	struct wr_words words;

	for (size_t i = 0; i < recorded->entities.count; i++) {
		double waits = cli_worker_share(recorded, i);

		ready += waits * (double)cli_recorded_lanes(cli_recorded_entity(recorded, i));
		if (waits > longest)
			longest = waits, entity = i;
		if (cli_recorded_entity(recorded, i)->lock.name)
			lock = cli_recorded_entity(recorded, i)->lock.name;
	}
	if (entity == CLI_NO_ENTITY)
		return;
	more = (double)workers + ready + 0.999;
	finding = finding_add(out, CLI_CAUSE_WORKERS, entity, busy);
	finding->set = "workers";
	finding->to = more < WORKERS_MAX ? (int64_t)more : WORKERS_MAX;
	words = words_of(finding);
	wr_words_add(
		&words,
		"%s busy %d %% of the run, and on average %.1f READY entities wait for one, '%s' longest (%s "
		"a tick); use more workers (--workers %" PRId64
		") if there are cores for them, or make the computes shorter",
		workers == 1 ? "the only worker is" : "all workers are", percent(busy), ready,
		name_of(recorded, entity).text,
		time_of(cli_mean(&cli_recorded_entity(recorded, entity)->ready_to_compute)).text,
		finding->to);
	if (lock)
		wr_words_add(&words,
			     "; they share the lock '%s', so more workers help only where it is released",
			     wr_shown(lock).text);
}

static const struct cli_pool *pool_of(const struct cli_recorded *recorded, const char *name)
{
	const struct cli_pool *pools = recorded->pools.items;

	for (size_t i = 0; i < recorded->pools.count; i++)
		if (recorded->pools.count == 1 || (name && !strcmp(pools[i].name, name)))
			return &pools[i];
	return NULL;
}

static void say_pool(struct cli_findings *out, const struct cli_recorded *recorded,
		     const struct cli_root *root)
{
	const struct cli_leg *leg = cli_root_last(root);
	const struct cli_pool *pool = pool_of(recorded, leg->on);
	struct cli_finding *finding = finding_add(out, CLI_CAUSE_POOL, leg->entity, leg->share);
	struct wr_words words = words_of(finding);
	bool bytes = pool && pool->unit && !strcmp(pool->unit, "bytes");

	wr_words_add(&words, "'%s' waits %d %% of the run for memory of the pool '%s'",
		     name_of(recorded, leg->entity).text, percent(leg->share),
		     wr_shown(pool ? pool->name : "?").text);
	if (pool) {
		finding->what = pool->name;
		finding->set = bytes ? "max_size" : "blocks";
		finding->to = enough(pool->capacity, leg->share);
		wr_words_add(&words,
			     ", which has %" PRId64 " %s; raise \"%s\" of the pool, to %" PRId64
			     " for a start",
			     pool->capacity,
			     bytes                 ? "bytes"
			     : pool->capacity == 1 ? "block"
						   : "blocks",
			     finding->set, finding->to);
	}
	add_way(&words, recorded, root);
}

static void say_in_flight(struct cli_findings *out, const struct cli_recorded *recorded,
			  const struct cli_root *root)
{
	const struct cli_leg *leg = cli_root_last(root);
	const struct cli_entity *entity = cli_recorded_entity(recorded, leg->entity);
	struct cli_finding *finding = finding_add(out, CLI_CAUSE_IN_FLIGHT, leg->entity, leg->share);
	struct wr_words words = words_of(finding);

	finding->set = "max_in_flight";
	finding->to = 2 * enough(entity->max_in_flight, leg->share); /* it is woken when half are complete */
	wr_words_add(&words,
		     "'%s' waits %d %% of the run because max_in_flight (%" PRId64
		     ") of its ticks are on the device",
		     name_of(recorded, leg->entity).text, percent(leg->share), entity->max_in_flight);
	if (cli_device_known(entity))
		wr_words_add(&words, ", whose work for it goes on for %d %% only",
			     percent(cli_device_load(recorded, leg->entity)));
	wr_words_add(&words, "; raise \"max_in_flight\" of the entity, to %" PRId64 " for a start",
		     finding->to);
	add_way(&words, recorded, root);
}

/* What the receiver could take while it waits for its sender, and what the queue holds now. */
static int64_t capacity_for(const struct cli_recorded *recorded, const struct cli_queue *queue)
{
	const struct cli_entity *receiver = cli_recorded_entity(recorded, queue->receiver_at);
	const struct cli_wait *waits = receiver->waits.items;
	double tick = cli_mean(&receiver->submit), longest = 0;
	int64_t more;

	for (size_t i = 0; i < receiver->waits.count; i++)
		if ((waits[i].cause == WEIR_CAUSE_MESSAGES || waits[i].cause == WEIR_CAUSE_DEVICE) &&
		    (double)waits[i].time.p90 > longest)
			longest = (double)waits[i].time.p90;
	more = queue->capacity + (tick > 0 && longest / tick < CAPACITY_MAX ? up(longest / tick) : 1);
	return more < CAPACITY_MAX ? more : CAPACITY_MAX;
}

static void say_queue(struct cli_findings *out, const struct cli_recorded *recorded,
		      const struct cli_root *root)
{
	const struct cli_queue *queue = root->queue;
	double full = (double)queue->depth.full_time / (double)recorded->duration;
	struct cli_finding *finding = finding_add(out, CLI_CAUSE_QUEUE, queue->receiver_at, full);
	struct wr_words words = words_of(finding);

	finding->what = queue->to;
	finding->set = "capacity";
	finding->to = capacity_for(recorded, queue);
	wr_words_add(&words,
		     "the queue %s -> %s of %" PRId64
		     " is full %d %% of the run: '%s' waits for room although '%s' "
		     "is busy for %d %% only, and waits for what comes behind; raise \"capacity\" of %s, to "
		     "%" PRId64 " for a start",
		     wr_shown(queue->from).text, wr_shown(queue->to).text, queue->capacity, percent(full),
		     name_of(recorded, queue->sender_at).text, name_of(recorded, queue->receiver_at).text,
		     percent(cli_any_load(recorded, queue->receiver_at)), wr_shown(queue->to).text,
		     finding->to);
}

static void say_circle(struct cli_findings *out, const struct cli_recorded *recorded,
		       const struct cli_root *root)
{
	const struct cli_leg *leg = cli_root_last(root);
	struct cli_finding *finding = finding_add(out, CLI_CAUSE_CIRCLE, leg->entity, leg->share);
	struct wr_words words = words_of(finding);

	wr_words_add(
		&words,
		"'%s' waits %d %% of the run in a circle of entities that wait for each other's messages, "
		"and "
		"none of them is busy; put more messages into the circle (\"initial_messages\"), or make its "
		"computes shorter",
		name_of(recorded, leg->entity).text, percent(leg->share));
	add_way(&words, recorded, root);
}

/* --- what comes from outside --- */

static int64_t period_of(const struct cli_entity *entity)
{
	const struct cli_condition *conditions = entity->conditions.items;

	for (size_t i = 0; i < entity->conditions.count; i++)
		if (conditions[i].times.period > 0)
			return conditions[i].times.period;
	return 0;
}

/* How long the busiest entity, or the workers, need for each tick of this one. */
static double need_of(const struct cli_recorded *recorded, size_t entity)
{
	double most = 0, all = 0, ticks = (double)cli_recorded_entity(recorded, entity)->ticks;

	for (size_t i = 0; i < recorded->entities.count; i++) {
		double load = cli_any_load(recorded, i);

		all += cli_host_sum(recorded, i);
		most = load > most ? load : most;
	}
	if (recorded->workers.count && all / (double)recorded->workers.count > most)
		most = all / (double)recorded->workers.count;
	return ticks > 0 ? most * (double)recorded->duration / ticks : 0;
}

static void say_period(struct cli_findings *out, const struct cli_recorded *recorded,
		       const struct cli_root *root)
{
	const struct cli_leg *leg = cli_root_last(root);
	struct cli_finding *finding = finding_add(out, CLI_CAUSE_PERIOD, leg->entity, leg->share);
	int64_t period = period_of(cli_recorded_entity(recorded, leg->entity));
	double need = SPARE * need_of(recorded, leg->entity);
	struct wr_words words = words_of(finding);

	wr_words_add(&words, "'%s' waits %d %% of the run for its time", name_of(recorded, leg->entity).text,
		     percent(leg->share));
	if (period)
		wr_words_add(&words, " (a period of %s)", time_of((double)period).text);
	wr_words_put(&words, ": it sets the pace, and the others keep up");
	if (period && need > 0 && need < LOAD_FULL * (double)period) {
		finding->set = "period";
		finding->to = up(need > (double)period / 10 ? need : (double)period / 10);
		wr_words_add(&words,
			     "; if the graph is to be faster, set \"period\", to %s for a start: the busiest "
			     "of the "
			     "others needs %s for what a tick makes",
			     time_of((double)finding->to).text, time_of(need / SPARE).text);
	}
	add_way(&words, recorded, root);
}

static void say_descriptor(struct cli_findings *out, const struct cli_recorded *recorded,
			   const struct cli_root *root)
{
	const struct cli_leg *leg = cli_root_last(root);
	bool writes = cli_recorded_entity(recorded, leg->entity)->received > 0;
	struct cli_finding *finding = finding_add(out, CLI_CAUSE_DESCRIPTOR, leg->entity, leg->share);
	struct wr_words words = words_of(finding);

	wr_words_add(&words,
		     "'%s' waits %d %% of the run for its descriptor: what %s (a pipe, a socket, a camera) "
		     "sets the "
		     "pace, and the others keep up; make that faster",
		     name_of(recorded, leg->entity).text, percent(leg->share),
		     writes ? "reads the other end" : "writes the other end");
	add_way(&words, recorded, root);
}

static void say_told(struct cli_findings *out, const struct cli_recorded *recorded,
		     const struct cli_root *root)
{
	const struct cli_leg *leg = cli_root_last(root);
	bool own = leg->cause == WEIR_CAUSE_OWN;
	struct cli_finding *finding =
		finding_add(out, own ? CLI_CAUSE_CONDITION : CLI_CAUSE_TOLD, leg->entity, leg->share);
	struct wr_words words = words_of(finding);

	finding->what = leg->of;
	wr_words_add(&words, "'%s' waits %d %% of the run for its condition '%s' (%s)",
		     name_of(recorded, leg->entity).text, percent(leg->share), wr_shown(leg->of).text,
		     wr_shown(leg->why ? leg->why : "not ready").text);
	wr_words_put(&words, own ? ", which is the program's or a plugin's own; let it hold sooner"
				 : ", which the program decides; let it tell the entity sooner to go on "
				   "(weir_entity_tell), complete the fence sooner (weir_fence_complete), or "
				   "leave the condition out");
	add_way(&words, recorded, root);
}

static void say_program(struct cli_findings *out, const struct cli_recorded *recorded,
			const struct cli_root *root)
{
	const struct cli_leg *leg = cli_root_last(root);
	struct cli_finding *finding = finding_add(out, CLI_CAUSE_PROGRAM, leg->entity, leg->share);
	struct wr_words words = words_of(finding);

	finding->what = leg->on;
	wr_words_add(
		&words, "'%s' waits %d %% of the run for the program, which %s",
		name_of(recorded, leg->entity).text, percent(leg->share),
		leg->cause == WEIR_CAUSE_ROOM
			? "takes too slowly from an outlet; take faster, or raise \"capacity\" of the outlet"
			: "pushes too slowly into an inlet; push faster, or from several threads");
	add_way(&words, recorded, root);
}

static void say_unknown(struct cli_findings *out, const struct cli_recorded *recorded,
			const struct cli_root *root)
{
	const struct cli_leg *leg = cli_root_last(root);
	struct cli_finding *finding = finding_add(out, CLI_CAUSE_UNKNOWN, CLI_NO_ENTITY, leg->share);
	struct wr_words words = words_of(finding);

	if (leg->cause == WEIR_CAUSE_NONE)
		wr_words_add(&words,
			     "most of the time '%s' neither computes nor waits, so it may be its work on the "
			     "device, "
			     "but that cannot be told",
			     name_of(recorded, leg->entity).text);
	else
		wr_words_add(&words,
			     "'%s' waits %d %% of the run for work on the device, but whose cannot be told",
			     name_of(recorded, leg->entity).text, percent(leg->share));
	wr_words_add(&words,
		     ": of some entities too few ticks were timed (gpu_time %s); run with --gpu-time all, or "
		     "longer",
		     wr_shown(recorded->gpu_time ? recorded->gpu_time : "unknown").text);
	add_way(&words, recorded, root);
}

/* --- all of it --- */

static void say_own(struct cli_findings *out, const struct cli_recorded *recorded,
		    const struct cli_root *root)
{
	switch (cli_root_last(root)->cause) {
	case WEIR_CAUSE_COMPUTE:
		find_stages(out, recorded, root);
		return;
	case WEIR_CAUSE_WORKER:
		if (!find_lock(out, recorded, CLI_NO_ENTITY))
			say_workers(out, recorded);
		return;
	case WEIR_CAUSE_MEMORY:
		say_pool(out, recorded, root);
		return;
	case WEIR_CAUSE_BOUND:
		say_in_flight(out, recorded, root);
		return;
	case WEIR_CAUSE_TIME:
		say_period(out, recorded, root);
		return;
	case WEIR_CAUSE_DESCRIPTOR:
		say_descriptor(out, recorded, root);
		return;
	case WEIR_CAUSE_TOLD:
	case WEIR_CAUSE_OWN:
		say_told(out, recorded, root);
		return;
	case WEIR_CAUSE_NONE:
	case WEIR_CAUSE_MESSAGES:
	case WEIR_CAUSE_ROOM:
	case WEIR_CAUSE_DEVICE:
	case WEIR_CAUSE_START:
	case WEIR_CAUSE_DRAIN:
	case WEIR_CAUSE_DONE:
		return;
	}
}

static void say_root(struct cli_findings *out, const struct cli_recorded *recorded,
		     const struct cli_root *root)
{
	static void (*const says[])(struct cli_findings *, const struct cli_recorded *,
				    const struct cli_root *) = {
		[CLI_ROOT_OWN] = say_own,         [CLI_ROOT_DEVICE] = say_device,
		[CLI_ROOT_STREAM] = say_stream,   [CLI_ROOT_QUEUE] = say_queue,
		[CLI_ROOT_CIRCLE] = say_circle,   [CLI_ROOT_PROGRAM] = say_program,
		[CLI_ROOT_UNKNOWN] = say_unknown,
	};

	if (root->kind != CLI_ROOT_NONE)
		says[root->kind](out, recorded, root);
}

/* With few ticks the begin and the end of the run are most of it; with none, what it waited for is all. */
static bool is_short(const struct cli_recorded *recorded, size_t sink, const struct cli_root *root)
{
	int64_t ticks = cli_recorded_entity(recorded, sink)->ticks;

	return ticks && ticks < TICKS_LEAST &&
	       (root->kind == CLI_ROOT_NONE || cli_root_last(root)->share < LOAD_BUSY);
}

static void find_root(struct cli_findings *out, const struct cli_recorded *recorded)
{
	size_t sink = cli_root_sink(recorded);
	struct cli_root root;
	struct wr_words words;

	if (sink == CLI_NO_ENTITY)
		return;
	cli_root_find(&root, recorded, sink);
	out->no_memory |= root.no_memory;
	if (!out->no_memory && is_short(recorded, sink, &root)) {
		words = words_of(finding_add(out, CLI_CAUSE_UNKNOWN, CLI_NO_ENTITY, 1));
		wr_words_add(&words,
			     "the run is too short to tell what limits it: '%s' had %" PRId64
			     " ticks; let it run longer",
			     name_of(recorded, sink).text, cli_recorded_entity(recorded, sink)->ticks);
	} else if (!out->no_memory) {
		say_root(out, recorded, &root);
	}
	cli_root_finish(&root);
}

void cli_findings_make(struct cli_findings *out, const struct cli_recorded *recorded)
{
	struct wr_words words;

	*out = (struct cli_findings){0};
	if (!recorded->duration || find_ending(out, recorded))
		return;
	find_drops(out, recorded);
	find_root(out, recorded);
	words = wr_words_in(out->none, sizeof out->none);
	wr_words_put(
		&words,
		out->balanced
			? "most stages are about equally busy, most of the time: no single one limits the run"
			: "no entity, queue, pool or number of workers takes most of the time: nothing "
			  "stands out");
}
