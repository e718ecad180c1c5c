#include "trace/statistics.h"

#include "base/memory.h"
#include "base/thread.h"
#include "trace/statistics_queues.h"

/* --- open, close --- */

static void entity_finish(struct wr_entity_statistics *entity)
{
	struct wr_wait_times *wait = wr_read(&entity->waits);
	struct wr_stream_use *use = wr_read(&entity->streams);

	while (wait) {
		struct wr_wait_times *next = wr_read(&wait->next);

		wr_histogram_finish(&wait->time);
		wr_free(wait);
		wait = next;
	}
	while (use) {
		struct wr_stream_use *next = wr_read(&use->next);

		wr_free(use);
		use = next;
	}
	for (size_t i = 0; i < WR_SIGNALS_TRACED; i++) {
		struct wr_histogram *latency = wr_read(&entity->signals[i]);

		if (latency)
			wr_histogram_finish(latency);
		wr_free(latency);
	}
	wr_histogram_finish(&entity->submit);
	wr_histogram_finish(&entity->blocked);
	wr_histogram_finish(&entity->queued);
	wr_histogram_finish(&entity->waited);
	wr_histogram_finish(&entity->gpu_span);
	wr_histogram_finish(&entity->done_latency);
}

static void statistics_close(void *self)
{
	struct wr_statistics *statistics = self;

	for (size_t i = 0; statistics->entities && i < statistics->entity_count; i++)
		entity_finish(&statistics->entities[i]);
	wr_free(statistics->entities);
	wr_free(statistics->queues);
	wr_free(statistics->workers);
	wr_paths_finish(&statistics->paths);
	wr_free(statistics);
}

static weir_status statistics_make(const struct wr_trace_options *options, void **self)
{
	struct wr_statistics *statistics;

	statistics = wr_alloc(1, sizeof *statistics);
	if (!statistics)
		return WEIR_E_NOMEM;
	statistics->skip = options->skip;
	statistics->simulated = options->simulated;
	statistics->entity_count = options->entities;
	statistics->queue_count = options->queues;
	statistics->worker_count = options->workers;
	statistics->entities = wr_alloc(options->entities + 1, sizeof *statistics->entities);
	statistics->queues = wr_alloc_aligned(64, (options->queues + 1) * sizeof *statistics->queues);
	statistics->workers = wr_alloc_aligned(64, (options->workers + 1) * sizeof *statistics->workers);
	if (!statistics->entities || !statistics->queues || !statistics->workers ||
	    wr_paths_init(&statistics->paths, options->entities - options->hidden, options->queues)) {
		statistics_close(statistics);
		return WEIR_E_NOMEM;
	}
	*self = statistics;
	return WEIR_OK;
}

static weir_status statistics_open(const struct wr_trace_options *options, void **self)
{
	return options->observe & WEIR_OBSERVE_STATISTICS ? statistics_make(options, self) : WEIR_OK;
}

static weir_status compute_times_open(const struct wr_trace_options *options, void **self)
{
	unsigned both = options->observe & (WEIR_OBSERVE_STATISTICS | WEIR_OBSERVE_COMPUTE);

	return both == WEIR_OBSERVE_COMPUTE ? statistics_make(options, self) : WEIR_OK;
}

/* --- a run --- */

/* A reader that meets the owner's changes of a wait reads again: wr_statistics_waited. */
static void wait_change_begin(struct wr_entity_statistics *entity)
{
	wr_exchange(&entity->wait_changes, wr_read(&entity->wait_changes) + 1); /* before the changes */
}

static void wait_change_end(struct wr_entity_statistics *entity)
{
	wr_store_release(&entity->wait_changes, wr_read(&entity->wait_changes) + 1);
}

static void clear_waits(struct wr_entity_statistics *entity)
{
	entity->waiting = NULL;
	wr_note(&entity->open, NULL);
	for (struct wr_wait_times *wait = wr_read(&entity->waits); wait; wait = wr_read(&wait->next)) {
		wr_histogram_clear(&wait->time);
		wr_note(&wait->left, 0);
	}
	wr_histogram_clear(&entity->waited);
}

static void clear_streams(struct wr_entity_statistics *entity)
{
	for (struct wr_stream_use *use = wr_read(&entity->streams); use; use = wr_read(&use->next)) {
		wr_note(&use->count, 0);
		wr_note(&use->time, 0);
	}
}

static void entity_begin(struct wr_entity_statistics *entity, int64_t at)
{
	wr_note(&entity->poked_at, at); /* all begin in a ready queue */
	for (size_t i = 0; i < WR_FIRED; i++)
		wr_note(&entity->fired[i].token, 0);
	wr_note(&entity->source, 0);
	wr_note(&entity->cpu_ticks, 0);
	wr_note(&entity->cpu_waits, 0);
	wr_note(&entity->cpu_time, 0);
	wr_note(&entity->cpu_of, 0);
	wr_note(&entity->lock, NULL);
	wr_note(&entity->lock_waits, 0);
	wr_note(&entity->lock_time, 0);
	entity->ticks = entity->device_tick = entity->armed_token = 0;
	entity->ready_at = entity->begun_at = entity->ended_at = 0;
	for (size_t i = 0; i < WR_TICKS_REMEMBERED; i++)
		entity->ready[i].tick = UINT64_MAX;
	wait_change_begin(entity);
	clear_waits(entity);
	wait_change_end(entity);
	clear_streams(entity);
	for (size_t i = 0; i < WR_SIGNALS_TRACED; i++)
		if (wr_read(&entity->signals[i]))
			wr_histogram_clear(wr_read(&entity->signals[i]));
	wr_histogram_clear(&entity->submit);
	wr_histogram_clear(&entity->blocked);
	wr_histogram_clear(&entity->queued);
	wr_histogram_clear(&entity->gpu_span);
	wr_histogram_clear(&entity->done_latency);
}

static void worker_begin(struct wr_worker_statistics *worker, int64_t at)
{
	wr_note(&worker->ticks, 0);
	wr_note(&worker->steals, 0);
	wr_note(&worker->wakes, 0);
	wr_note(&worker->busy, 0);
	wr_note(&worker->asleep, 0);
	wr_note(&worker->asleep_since, 0);
	wr_note(&worker->last_at, at);
	worker->begun_at = 0;
}

static void on_run_begin(void *self, int64_t at, unsigned workers)
{
	struct wr_statistics *statistics = self;

	for (size_t i = 0; i < statistics->entity_count; i++)
		entity_begin(&statistics->entities[i], at);
	wr_statistics_begin_queues(statistics);
	wr_paths_on_run_begin(&statistics->paths);
	for (size_t i = 0; i < statistics->worker_count; i++)
		worker_begin(&statistics->workers[i], at);
	wr_note(&statistics->workers_running, workers);
	wr_note(&statistics->ended_at, 0);
	wr_note(&statistics->begun_at, at);
}

/* --- workers --- */

/* Returns NULL for other threads. */
static struct wr_worker_statistics *worker_of(struct wr_statistics *statistics, unsigned lane, int64_t at)
{
	struct wr_worker_statistics *worker;

	if (lane >= statistics->worker_count)
		return NULL;
	worker = &statistics->workers[lane];
	wr_note(&worker->last_at, at);
	return worker;
}

static void on_sleep_begin(void *self, int64_t at, unsigned lane)
{
	struct wr_worker_statistics *worker = worker_of(self, lane, at);

	if (worker)
		wr_note(&worker->asleep_since, at);
}

static void on_sleep_end(void *self, int64_t at, unsigned lane)
{
	struct wr_worker_statistics *worker = worker_of(self, lane, at);
	int64_t since = worker ? wr_read(&worker->asleep_since) : 0;

	if (!since)
		return;
	wr_count(&worker->asleep, at - since);
	wr_note(&worker->asleep_since, 0);
}

static void on_steal(void *self, int64_t at, unsigned lane, uint32_t entity)
{
	struct wr_worker_statistics *worker = worker_of(self, lane, at);

	(void)entity;
	if (worker)
		wr_count(&worker->steals, 1);
}

static void on_wake(void *self, int64_t at, unsigned lane, unsigned worker)
{
	struct wr_statistics *statistics = self;

	(void)at, (void)lane;
	if (worker < statistics->worker_count)
		wr_add_relaxed(&statistics->workers[worker].wakes, 1); /* any thread wakes it */
}

/* --- an entity's waits --- */

static struct wr_entity_statistics *entity_of(struct wr_statistics *statistics, uint32_t entity)
{
	return entity < statistics->entity_count ? &statistics->entities[entity] : NULL;
}

/* Returns false for a tick that is left out. */
static bool tick_counts(const struct wr_statistics *statistics, uint64_t tick)
{
	return tick >= statistics->skip;
}

/* Release: a reader that sees the entry sees its names. */
static struct wr_wait_times *waits_add(struct wr_entity_statistics *entity, const struct wr_wait_for *what)
{
	struct wr_wait_times *wait;

	if (entity->waits_listed == WR_WAITS_LISTED)
		return NULL;
	wait = wr_alloc(1, sizeof *wait);
	if (!wait)
		return NULL;
	wait->what = *what;
	wr_note(&wait->next, wr_read(&entity->waits));
	wr_store_release(&entity->waits, wait);
	entity->waits_listed++;
	return wait;
}

/* The texts live as long as the graph, so that pointers tell them apart. */
static bool same_wait(const struct wr_wait_for *a, const struct wr_wait_for *b)
{
	return a->cause == b->cause && a->on == b->on && a->of == b->of && a->why == b->why;
}

static struct wr_wait_times *waits_find(struct wr_entity_statistics *entity, const struct wr_wait_for *what)
{
	struct wr_wait_times *wait = wr_read(&entity->waits);

	while (wait && !same_wait(&wait->what, what))
		wait = wr_read(&wait->next);
	return wait ? wait : waits_add(entity, what);
}

/* Ends the open wait, if there is one; `next` begins then, NULL: none. */
static void wait_change(struct wr_statistics *statistics, struct wr_entity_statistics *entity,
			struct wr_wait_times *next, int64_t at)
{
	struct wr_wait_times *open = wr_read(&entity->open);
	int64_t waited = at - wr_read(&entity->waits_since);

	wait_change_begin(entity);
	if (open) {
		wr_histogram_add(&open->time, waited);
		wr_histogram_add(&entity->waited, waited);
	}
	entity->waiting = next;
	wr_note(&entity->open, tick_counts(statistics, entity->ticks) ? next : NULL);
	wr_note(&entity->waits_since, at);
	wait_change_end(entity);
}

/* When the wait ended: a poke since its begin put the entity into a ready queue, where it waits for a worker.
 */
static int64_t wait_ended_at(struct wr_entity_statistics *entity, int64_t at)
{
	int64_t poked_at = wr_read(&entity->poked_at);

	if (poked_at < entity->ended_at || poked_at > at ||
	    (entity->waiting && poked_at < wr_read(&entity->waits_since)))
		return at;
	return poked_at;
}

/* Made by the first signal of a kind. */
static struct wr_histogram *signal_latency(struct wr_entity_statistics *entity, enum wr_trace_signal kind)
{
	struct wr_histogram *latency = wr_read(&entity->signals[kind]);

	if (latency)
		return latency;
	latency = wr_alloc(1, sizeof *latency);
	if (latency)
		wr_store_release(&entity->signals[kind], latency); /* a reader sees it zeroed */
	return latency;
}

/* When the armed signal fired; 0: it has not, or its firing was not told so far. */
static int64_t fired_at(const struct wr_entity_statistics *entity)
{
	for (size_t i = 0; i < WR_FIRED; i++)
		if (wr_load_acquire(&entity->fired[i].token) == entity->armed_token)
			return wr_read(&entity->fired[i].at);
	return 0;
}

/* Its signal fired on any thread; the owner counts it, at its next review. */
static void count_fired(struct wr_statistics *statistics, struct wr_entity_statistics *entity)
{
	int64_t at = entity->armed_token ? fired_at(entity) : 0;
	struct wr_histogram *latency;

	if (!at)
		return;
	entity->armed_token = 0;
	latency = tick_counts(statistics, entity->ticks) ? signal_latency(entity, entity->armed_kind) : NULL;
	if (latency) /* it may fire before its arming is told */
		wr_histogram_add(latency, at > entity->armed_at ? at - entity->armed_at : 0);
}

static void on_wait(void *self, int64_t at, unsigned lane, uint32_t id, weir_cause cause, uint32_t on,
		    const char *of, const char *why)
{
	struct wr_entity_statistics *entity = entity_of(self, id);
	struct wr_wait_for what = {cause, on, of, why};

	(void)lane;
	if (!entity)
		return;
	count_fired(self, entity);
	if (entity->waiting && same_wait(&entity->waiting->what, &what))
		return; /* a poke that changed nothing */
	wait_change(self, entity, waits_find(entity, &what), at);
}

static void on_ready(void *self, int64_t at, unsigned lane, uint32_t id)
{
	struct wr_entity_statistics *entity = entity_of(self, id);

	(void)lane;
	if (!entity)
		return;
	count_fired(self, entity);
	entity->ready_at = wait_ended_at(entity, at);
	if (entity->waiting)
		wait_change(self, entity, NULL, entity->ready_at);
}

static void on_poke(void *self, int64_t at, unsigned lane, uint32_t id)
{
	struct wr_entity_statistics *entity = entity_of(self, id);

	(void)lane;
	if (entity)
		wr_note(&entity->poked_at, at);
}

/* What it waited for last, it got: it is DONE because of that. */
static void on_entity_done(void *self, int64_t at, unsigned lane, uint32_t id)
{
	struct wr_entity_statistics *entity = entity_of(self, id);

	wr_statistics_on_entity_done(self, at, lane, id);
	if (entity && entity->waiting)
		wait_change(self, entity, NULL, wait_ended_at(entity, at));
}

/* No worker runs: the waits that are open end with the run. */
static void on_run_end(void *self, int64_t at, unsigned workers)
{
	struct wr_statistics *statistics = self;

	(void)workers;
	for (size_t i = 0; i < statistics->entity_count; i++) {
		struct wr_entity_statistics *entity = &statistics->entities[i];
		struct wr_wait_times *open = wr_read(&entity->open);

		if (!entity->waiting)
			continue;
		if (open)
			wr_note(&open->left, at - wr_read(&entity->waits_since));
		wait_change(statistics, entity, NULL, at);
	}
	wr_count(&statistics->run, 1);
	wr_note(&statistics->ended_at, at);
}

/* --- ticks --- */

/* Asking the system takes as long as ten events, so of short ticks only some are measured. */
static bool use_is_measured(const struct wr_statistics *statistics, const struct wr_entity_statistics *entity,
			    uint64_t tick)
{
	return !statistics->simulated && tick_counts(statistics, tick) &&
	       (tick % WR_USE_SAMPLED == 0 || entity->ended_at - entity->begun_at >= WR_USE_LONG);
}

/* It may only be called by the thread that called compute. */
static void count_use(struct wr_entity_statistics *entity, int64_t at)
{
	struct wr_thread_use now = wr_thread_use();

	wr_count(&entity->cpu_ticks, 1);
	wr_count(&entity->cpu_waits, now.waits - entity->used.waits);
	wr_count(&entity->cpu_time, now.cpu - entity->used.cpu);
	wr_count(&entity->cpu_of, at - entity->begun_at);
}

static void on_tick_begin(void *self, int64_t at, unsigned lane, uint32_t id, uint64_t tick)
{
	struct wr_statistics *statistics = self;
	struct wr_entity_statistics *entity = entity_of(self, id);
	struct wr_worker_statistics *worker = worker_of(self, lane, at);

	if (worker)
		worker->begun_at = at;
	if (!entity)
		return;
	entity->use_measured = use_is_measured(self, entity, tick);
	entity->begun_at = at;
	wr_paths_on_tick_begin(&statistics->paths, id, at);
	entity->ready[tick % WR_TICKS_REMEMBERED] = (struct wr_ready_tick){tick, entity->ready_at};
	if (tick_counts(self, tick))
		wr_histogram_add(&entity->queued, at - entity->ready_at);
	if (entity->use_measured)
		entity->used = wr_thread_use();
}

static void on_tick_end(void *self, int64_t at, unsigned lane, uint32_t id, uint64_t tick)
{
	struct wr_entity_statistics *entity = entity_of(self, id);
	struct wr_worker_statistics *worker = worker_of(self, lane, at);

	if (worker) {
		wr_count(&worker->ticks, 1);
		wr_count(&worker->busy, at - worker->begun_at);
	}
	if (!entity)
		return;
	if (entity->use_measured)
		count_use(entity, at);
	entity->ended_at = at;
	entity->ticks = tick + 1;
	if (tick_counts(self, tick))
		wr_histogram_add(&entity->submit, at - entity->begun_at);
}

/* --- signals and device work --- */

static void on_arm(void *self, int64_t at, unsigned lane, uint32_t id, uint64_t token,
		   enum wr_trace_signal kind)
{
	struct wr_entity_statistics *entity = entity_of(self, id);

	(void)lane;
	if (!entity)
		return;
	count_fired(self, entity);
	entity->armed_token = token;
	entity->armed_at = at;
	entity->armed_kind = kind;
}

static void on_fire(void *self, int64_t at, unsigned lane, uint32_t id, uint64_t token)
{
	struct wr_entity_statistics *entity = entity_of(self, id);
	struct wr_fired *fired;

	(void)lane;
	if (!entity)
		return;
	fired = &entity->fired[wr_add_relaxed(&entity->fired_count, 1) % WR_FIRED];
	wr_note(&fired->at, at);
	wr_store_release(&fired->token, token);
}

/* The times of an entity have one source: timers, once a tick was timed. */
static void device_source_note(struct wr_entity_statistics *entity, enum wr_trace_source source)
{
	unsigned known = wr_read(&entity->source);

	if (known && (known == 1u + source || source != WR_TRACE_TIMERS))
		return;
	wr_histogram_clear(&entity->gpu_span);
	wr_histogram_clear(&entity->done_latency);
	clear_streams(entity);
	wr_note(&entity->source, 1u + source);
}

static struct wr_stream_use *stream_find(struct wr_entity_statistics *entity, uint32_t queue)
{
	struct wr_stream_use *use = wr_read(&entity->streams);

	while (use && use->queue != queue)
		use = wr_read(&use->next);
	return use;
}

static void on_uses(void *self, uint32_t id, uint32_t queue, int device)
{
	struct wr_statistics *statistics = self;
	struct wr_entity_statistics *entity = entity_of(self, id);
	struct wr_stream_use *use = entity ? stream_find(entity, queue) : NULL;

	if (use)
		wr_note(&use->run, wr_read(&statistics->run));
	if (use || !entity || entity->streams_listed == WR_STREAMS_LISTED)
		return;
	use = wr_alloc(1, sizeof *use);
	if (!use)
		return;
	use->queue = queue;
	wr_note(&use->run, wr_read(&statistics->run));
	use->device = device;
	wr_note(&use->next, wr_read(&entity->streams));
	wr_store_release(&entity->streams, use); /* a reader sees it filled */
	entity->streams_listed++;
}

/* One call per stream of the tick: the span is from the first to the last. */
static void on_device_work(void *self, int64_t at, unsigned lane, uint32_t id, uint64_t tick,
			   const char *stream, uint32_t queue, int64_t begin, int64_t end,
			   enum wr_trace_source source)
{
	struct wr_entity_statistics *entity = entity_of(self, id);
	struct wr_stream_use *use;

	(void)at, (void)lane, (void)stream;
	if (!entity)
		return;
	device_source_note(entity, source);
	use = stream_find(entity, queue);
	if (use && tick_counts(self, tick) && wr_read(&entity->source) == 1u + source) {
		wr_count(&use->count, 1);
		wr_count(&use->time, end - begin);
	}
	if (entity->device_tick != tick + 1) {
		entity->device_tick = tick + 1;
		entity->device_begin = begin;
		entity->device_end = end;
	}
	entity->device_begin = begin < entity->device_begin ? begin : entity->device_begin;
	entity->device_end = end > entity->device_end ? end : entity->device_end;
	entity->device_source = source;
}

/* Not on `sim`, where a lock takes no virtual time. */
static void on_lock(void *self, int64_t at, unsigned lane, uint32_t id, const char *lock, int64_t waited)
{
	struct wr_statistics *statistics = self;
	struct wr_entity_statistics *entity = entity_of(self, id);

	(void)at, (void)lane;
	if (!entity || statistics->simulated || !tick_counts(statistics, entity->ticks))
		return;
	wr_note(&entity->lock, lock);
	wr_count(&entity->lock_waits, 1);
	wr_count(&entity->lock_time, waited);
}

static void on_blocked(void *self, int64_t at, unsigned lane, uint32_t id, uint64_t tick, int64_t spent)
{
	struct wr_entity_statistics *entity = entity_of(self, id);

	(void)at, (void)lane;
	if (entity && tick_counts(self, tick))
		wr_histogram_add(&entity->blocked, spent);
}

static void on_complete(void *self, int64_t at, unsigned lane, uint32_t id, uint64_t tick)
{
	struct wr_statistics *statistics = self;
	struct wr_entity_statistics *entity = entity_of(self, id);
	const struct wr_ready_tick *ready;

	(void)at, (void)lane;
	if (!entity || entity->device_tick != tick + 1)
		return;
	entity->device_tick = 0;
	ready = &entity->ready[tick % WR_TICKS_REMEMBERED];
	if (tick_counts(statistics, tick) && wr_read(&entity->source) == 1u + entity->device_source) {
		wr_histogram_add(&entity->gpu_span, entity->device_end - entity->device_begin);
		if (ready->tick == tick)
			wr_histogram_add(&entity->done_latency, entity->device_end - ready->ready_at);
	}
	wr_paths_on_complete(&statistics->paths, id, tick, entity->device_end);
}

/* --- all --- */

const struct wr_observer wr_statistics = {
	.name = "statistics",
	.open = statistics_open,
	.close = statistics_close,
	.queue = wr_statistics_on_queue,
	.front = wr_paths_on_front,
	.computed = wr_paths_on_computed,
	.uses = on_uses,
	.run_begin = on_run_begin,
	.run_end = on_run_end,
	.tick_begin = on_tick_begin,
	.tick_end = on_tick_end,
	.ready = on_ready,
	.wait = on_wait,
	.poke = on_poke,
	.entity_done = on_entity_done,
	.deliver = wr_statistics_on_deliver,
	.drop = wr_statistics_on_drop,
	.unmatched = wr_statistics_on_unmatched,
	.take = wr_statistics_on_take,
	.arm = on_arm,
	.fire = on_fire,
	.blocked = on_blocked,
	.lock = on_lock,
	.complete = on_complete,
	.device_work = on_device_work,
	.sleep_begin = on_sleep_begin,
	.sleep_end = on_sleep_end,
	.steal = on_steal,
	.wake = on_wake,
};

/* --- the times in compute alone --- */

static void on_compute_begin(void *self, int64_t at, unsigned lane, uint32_t id, uint64_t tick)
{
	struct wr_entity_statistics *entity = entity_of(self, id);

	(void)lane, (void)tick;
	if (entity)
		entity->begun_at = at;
}

static void on_compute_end(void *self, int64_t at, unsigned lane, uint32_t id, uint64_t tick)
{
	struct wr_entity_statistics *entity = entity_of(self, id);

	(void)lane;
	if (entity && tick_counts(self, tick))
		wr_histogram_add(&entity->submit, at - entity->begun_at);
}

const struct wr_observer wr_compute_times = {
	.name = "compute times",
	.open = compute_times_open,
	.close = statistics_close,
	.run_begin = on_run_begin,
	.run_end = on_run_end,
	.tick_begin = on_compute_begin,
	.tick_end = on_compute_end,
};

/* --- readers --- */

struct wr_statistics *wr_statistics_in(const struct wr_trace *trace)
{
	struct wr_statistics *all = wr_trace_self(trace, &wr_statistics);

	return all ? all : wr_trace_self(trace, &wr_compute_times);
}

const char *wr_statistics_source(struct wr_entity_statistics *entity)
{
	static const char *const names[] = {NULL, [1 + WR_TRACE_TIMERS] = "timers",
					    [1 + WR_TRACE_POLLER] = "flag"};

	return names[wr_read(&entity->source)];
}

int64_t wr_statistics_now(struct wr_statistics *statistics)
{
	int64_t now = wr_read(&statistics->ended_at);

	if (now)
		return now;
	now = wr_read(&statistics->begun_at);
	if (now && !statistics->simulated)
		return wr_now();
	for (size_t i = 0; i < statistics->worker_count; i++) {
		int64_t at = wr_read(&statistics->workers[i].last_at);

		now = at > now ? at : now;
	}
	return now;
}

bool wr_statistics_used(struct wr_statistics *statistics, struct wr_stream_use *use)
{
	return wr_read(&use->run) == wr_read(&statistics->run) - (wr_read(&statistics->ended_at) != 0);
}

/* Returns how long `open` is so far; NULL: there is none. */
static int64_t waited_read(struct wr_statistics *statistics, struct wr_entity_statistics *entity,
			   struct wr_wait_times *wait, struct wr_wait_times *open, struct wr_histogram *into)
{
	int64_t since = wr_read(&entity->waits_since), now;
	uint64_t homeless;

	wr_histogram_clear(into);
	wr_histogram_merge(into, wait ? &wait->time : &entity->waited);
	if (!open || (wait && open != wait))
		return wait ? wr_read(&wait->left) : 0;
	now = wr_statistics_now(statistics);
	now = now > since ? now : since;
	homeless = wr_read(&into->homeless);
	wr_histogram_add(into, now - since);
	if (wr_read(&into->homeless) > homeless)
		wr_note(&into->partial, true);
	return now - since;
}

/*
 * The owner changes waits for some nanoseconds at each park, so readings that meet it are rare; but it may
 * lose its core just then. If it does not come back the open wait is left out: it may be counted already.
 */
int64_t wr_statistics_waited(struct wr_statistics *statistics, size_t i, struct wr_wait_times *wait,
			     struct wr_histogram *into)
{
	struct wr_entity_statistics *entity = &statistics->entities[i];
	uint64_t before;
	int64_t open;

	for (int tries = 0; tries < WR_READINGS; tries++) {
		before = wr_load_acquire(&entity->wait_changes);
		open = waited_read(statistics, entity, wait, wr_read(&entity->open), into);
		if (before % 2 == 0 && wr_fetch_add(&entity->wait_changes, 0) == before)
			return open;
		wr_thread_yield();
	}
	return waited_read(statistics, entity, wait, NULL, into);
}

int64_t wr_statistics_asleep(struct wr_statistics *statistics, size_t i)
{
	struct wr_worker_statistics *worker = &statistics->workers[i];
	int64_t since = wr_read(&worker->asleep_since), now = wr_statistics_now(statistics);

	return wr_read(&worker->asleep) + (since && now > since ? now - since : 0);
}
