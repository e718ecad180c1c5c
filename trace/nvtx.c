/*
 * NVTX for profilers: one domain "weir".
 *
 * - Push/pop ranges, on the thread that they speak of: ticks, around compute, since tools project GPU work
 * onto such ranges only; captures and launches of replay inside of them; sleeps of workers.
 * - Process ranges, which any thread may end: a run; a signal, from its arming to its firing. One is open per
 *   entity at most, and the firing of another token leaves it alone. It ends at the latest when the entity
 *   ticks, arms anew or becomes DONE, so that a token that was cancelled leaves none behind.
 * - Marks: READY, steals, and what an entity waits for. A wait is no range: nearly all entities wait nearly
 * all the time, and a tool stacks ranges that overlap, one row each. It is marked once per reason between two
 * ticks.
 * - Counters, if the tool has them: messages per queue, ticks in flight, use of memory pools, sleeping
 * workers.
 *
 * Names are registered strings and say entities, never ticks, so that a tool's table has one line per entity.
 * The payload is (entity << 40) | tick.
 *
 * The domain is made once per process and never destroyed: its name must be unique, other schedulers may use
 * the handle, and the tool reads it after main has returned. It is made before the threads of a run start,
 * because the initialization in NVTX's header has a data race; so has that of its counters, which therefore
 * begins there, too. The handle shows whether a tool is present; nvtxDomainIsEnabled returns 0 under some
 * tools.
 */
#include "trace/trace.h"

#ifdef WEIR_WITH_NVTX

#include <nvtx3/nvToolsExt.h>
#ifdef WEIR_WITH_CUDA
#include <nvtx3/nvToolsExtCudaRt.h>
#endif
#if __has_include(<nvtx3/nvToolsExtCounters.h>)
#include <nvtx3/nvToolsExtCounters.h>
#define WITH_COUNTERS
#endif
#include <stdio.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/thread.h"

enum category {
	CATEGORY_TICK = 1,
	CATEGORY_READY,
	CATEGORY_SLEEP,
	CATEGORY_SIGNAL,
	CATEGORY_WAIT,
	CATEGORY_REPLAY,
	CATEGORY_STEAL,
	CATEGORY_RUN,
	CATEGORIES,
};
static const char *const category_names[CATEGORIES] = {
	[CATEGORY_TICK] = "tick",     [CATEGORY_READY] = "ready", [CATEGORY_SLEEP] = "sleep",
	[CATEGORY_SIGNAL] = "signal", [CATEGORY_WAIT] = "wait",   [CATEGORY_REPLAY] = "replay",
	[CATEGORY_STEAL] = "steal",   [CATEGORY_RUN] = "run",
};
enum { TICK_BITS = 40 };

/* A reason to wait, and the text that says so. */
struct reason {
	const char *of, *why;
	nvtxStringHandle_t text;
};

struct entity_marks {
	const char *name;
	nvtxStringHandle_t registered, signal, capture, replay;
	_Atomic uint64_t signal_range; /* open, or 0 */
	_Atomic uint64_t signal_token; /* whose it is. Written while no range is open */
	_Atomic uint64_t fired_token;  /* the last that was told */
	/* by the events of the entity, which come one after the other */
	struct reason *reasons;
	size_t reason_count, reason_room;
	size_t marked;      /* reasons[marked - 1] was marked last; 0: none since the last tick */
	uint64_t in_flight; /* counters; 0: none */
};

/* Its messages: pushes, minus those that left. */
struct queue_counter {
	uint64_t counter;
	uint32_t receiver;
	_Atomic uint64_t pushed, left;
	_Atomic bool closed; /* its receiver is DONE: what is pushed now is dropped */
};

struct nvtx {
	nvtxDomainHandle_t domain;
	nvtxStringHandle_t sleep, run;
	nvtxRangeId_t run_range;
	struct entity_marks *entities;
	struct queue_counter *queues;
	uint64_t *pools; /* their counters */
	size_t entity_room, queue_room, pool_room;
};

/* --- counters --- */

#ifdef WITH_COUNTERS
/* Returns 0 if the tool has no counters, or if `name` is NULL. Frees the name. */
static uint64_t counter_register(nvtxDomainHandle_t domain, char *name, const char *what)
{
	const nvtxCounterAttr_t attributes = {
		.structSize = sizeof attributes,
		.schemaId = NVTX_PAYLOAD_ENTRY_TYPE_INT64,
		.name = name,
		.description = what,
		.scopeId = NVTX_SCOPE_CURRENT_SW_PROCESS,
	};
	uint64_t counter = name ? nvtxCounterRegister(domain, &attributes) : NVTX_COUNTER_ID_NONE;

	wr_free(name);
	return counter;
}

static void counter_sample(nvtxDomainHandle_t domain, uint64_t counter, int64_t value)
{
	if (counter)
		nvtxCounterSampleInt64(domain, counter, value);
}
#else
static uint64_t counter_register(nvtxDomainHandle_t domain, char *name, const char *what)
{
	(void)domain, (void)what;
	wr_free(name);
	return 0;
}

static void counter_sample(nvtxDomainHandle_t domain, uint64_t counter, int64_t value)
{
	(void)domain, (void)counter, (void)value;
}
#endif

/* --- the domain, opening, closing --- */

/* Of all schedulers: made with the domain, so that the counters are initialized before threads start. */
static uint64_t sleepers_counter;
static _Atomic int64_t sleepers;

static nvtxDomainHandle_t make_domain(void)
{
	nvtxDomainHandle_t domain;

	nvtxInitialize(NULL);
	domain = nvtxDomainCreateA("weir");
	if (domain) {
		for (uint32_t category = 1; category < CATEGORIES; category++)
			nvtxDomainNameCategoryA(domain, category, category_names[category]);
		sleepers_counter = counter_register(domain, wr_strdup("workers asleep"), "workers");
	}
	return domain;
}

/* NULL if no tool is present. If two threads open their first scheduler at once, one makes it, the other
 * waits. */
static nvtxDomainHandle_t shared_domain(void)
{
	enum { NOT_MADE, BEING_MADE, MADE };
	static _Atomic uint32_t state;
	static nvtxDomainHandle_t domain;
	uint32_t expected = NOT_MADE;

	if (wr_cas(&state, &expected, BEING_MADE)) {
		domain = make_domain();
		wr_store(&state, MADE);
	}
	while (wr_load(&state) != MADE)
		wr_thread_yield();
	return domain;
}

static weir_status nvtx_open(const struct wr_trace_options *options, void **self)
{
	nvtxDomainHandle_t domain = shared_domain();
	struct nvtx *nvtx;

	(void)options;
	if (!domain)
		return WEIR_OK;
	nvtx = wr_alloc(1, sizeof *nvtx);
	if (!nvtx)
		return WEIR_E_NOMEM;
	nvtx->domain = domain;
	nvtx->sleep = nvtxDomainRegisterStringA(domain, "sleep");
	nvtx->run = nvtxDomainRegisterStringA(domain, "run");
	*self = nvtx;
	return WEIR_OK;
}

static void nvtx_close(void *self)
{
	struct nvtx *nvtx = self;

	for (size_t i = 0; i < nvtx->entity_room; i++)
		wr_free(nvtx->entities[i].reasons);
	wr_free(nvtx->entities);
	wr_free(nvtx->queues);
	wr_free(nvtx->pools);
	wr_free(nvtx);
}

/* --- what there is. If memory runs out, it has no name: a profile must not fail a run. --- */

/* Takes the text, which may be NULL. */
static nvtxStringHandle_t text_register(const struct nvtx *nvtx, char *text)
{
	nvtxStringHandle_t registered = text ? nvtxDomainRegisterStringA(nvtx->domain, text) : NULL;

	wr_free(text);
	return registered;
}

static void nvtx_entity(void *self, uint32_t entity, const char *name)
{
	struct nvtx *nvtx = self;
	struct entity_marks *marks;

	if (wr_grow(&nvtx->entities, &nvtx->entity_room, (size_t)entity + 1, sizeof nvtx->entities[0]))
		return;
	marks = &nvtx->entities[entity];
	marks->name = name;
	marks->registered = nvtxDomainRegisterStringA(nvtx->domain, name);
	marks->signal = text_register(nvtx, wr_format("%s signal", name));
	marks->capture = text_register(nvtx, wr_format("%s capture", name));
	marks->replay = text_register(nvtx, wr_format("%s replay", name));
}

/* An instance is its entity. */
static void nvtx_part(void *self, uint32_t entity, enum wr_trace_part part, uint32_t of, uint32_t number,
		      uint32_t instances)
{
	struct nvtx *nvtx = self;

	(void)of, (void)number, (void)instances;
	if (part != WR_PART_INSTANCE && entity < nvtx->entity_room)
		nvtx->entities[entity].registered =
			text_register(nvtx, wr_format(part == WR_PART_DEALS ? "%s: deal" : "%s: order",
						      nvtx->entities[entity].name));
}

static void nvtx_queue(void *self, uint32_t queue, uint32_t sender, uint32_t receiver, const char *from,
		       const char *to, uint32_t capacity)
{
	struct nvtx *nvtx = self;

	(void)sender, (void)capacity;
	if (wr_grow(&nvtx->queues, &nvtx->queue_room, (size_t)queue + 1, sizeof nvtx->queues[0]))
		return;
	nvtx->queues[queue].receiver = receiver;
	nvtx->queues[queue].counter =
		counter_register(nvtx->domain, wr_format("queue %s -> %s", from, to), "messages");
}

static void nvtx_pool(void *self, uint32_t pool, const char *name, uint64_t size, const char *unit)
{
	struct nvtx *nvtx = self;

	(void)size;
	if (wr_grow(&nvtx->pools, &nvtx->pool_room, (size_t)pool + 1, sizeof nvtx->pools[0]))
		return;
	nvtx->pools[pool] = counter_register(nvtx->domain, wr_format("pool %s", name), unit);
}

static void nvtx_worker(void *self, unsigned worker)
{
	char name[24];

	(void)self;
	snprintf(name, sizeof name, "weir:%u", worker);
	nvtxNameOsThreadA((uint32_t)gettid(), name);
}

#ifdef WEIR_WITH_CUDA
static void nvtx_stream(void *self, void *native, const char *owner)
{
	char *name = native ? wr_format("weir:%s", owner) : NULL;

	(void)self;
	if (name)
		nvtxNameCudaStreamA(native, name);
	wr_free(name);
}
#endif

/* Sets the payload field by field: the header's macro for it lacks a ')' in some releases. */
static nvtxEventAttributes_t attributes(enum category category, nvtxStringHandle_t name, uint64_t payload)
{
	return (nvtxEventAttributes_t){
		.version = NVTX_VERSION,
		.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE,
		.category = category,
		.payloadType = NVTX_PAYLOAD_TYPE_UNSIGNED_INT64,
		.payload.ullValue = payload,
		.messageType = name ? NVTX_MESSAGE_TYPE_REGISTERED : NVTX_MESSAGE_UNKNOWN,
		.message.registered = name,
	};
}

static uint64_t payload_of(uint32_t entity, uint64_t tick)
{
	return (uint64_t)entity << TICK_BITS | (tick & ((UINT64_C(1) << TICK_BITS) - 1));
}

/* --- ranges and marks of entities --- */

/* NULL: there was no memory for it. */
static struct entity_marks *marks_of(const struct nvtx *nvtx, uint32_t entity)
{
	return entity < nvtx->entity_room ? &nvtx->entities[entity] : NULL;
}

static nvtxStringHandle_t name_of(const struct nvtx *nvtx, uint32_t entity)
{
	const struct entity_marks *marks = marks_of(nvtx, entity);

	return marks ? marks->registered : NULL;
}

static void push(const struct nvtx *nvtx, enum category category, nvtxStringHandle_t name, uint64_t payload)
{
	nvtxEventAttributes_t range = attributes(category, name, payload);

	nvtxDomainRangePushEx(nvtx->domain, &range);
}

static void mark(const struct nvtx *nvtx, enum category category, nvtxStringHandle_t name, uint64_t payload)
{
	nvtxEventAttributes_t event = attributes(category, name, payload);

	nvtxDomainMarkEx(nvtx->domain, &event);
}

/* Ends the open range of the entity's signal, whatever its token is. */
static void signal_end(const struct nvtx *nvtx, struct entity_marks *marks)
{
	nvtxRangeId_t open = wr_load(&marks->signal_range) ? wr_exchange(&marks->signal_range, 0) : 0;

	if (open)
		nvtxDomainRangeEnd(nvtx->domain, open);
}

/*
 * Ends the range if it is that of the token. The range is read before the token, which changes while no range
 * is open, so a range that is still there at the CAS belongs to the token that was read.
 */
static void signal_end_of(const struct nvtx *nvtx, struct entity_marks *marks, uint64_t token)
{
	uint64_t open = wr_load(&marks->signal_range);

	if (open && wr_load(&marks->signal_token) == token && wr_cas(&marks->signal_range, &open, 0))
		nvtxDomainRangeEnd(nvtx->domain, open);
}

static void nvtx_tick_begin(void *self, int64_t at, unsigned lane, uint32_t entity, uint64_t tick)
{
	struct nvtx *nvtx = self;
	struct entity_marks *marks = marks_of(nvtx, entity);

	(void)at, (void)lane;
	if (marks) {
		signal_end(nvtx, marks);
		marks->marked = 0;
	}
	push(nvtx, CATEGORY_TICK, marks ? marks->registered : NULL, payload_of(entity, tick));
}

static void nvtx_tick_end(void *self, int64_t at, unsigned lane, uint32_t entity, uint64_t tick)
{
	struct nvtx *nvtx = self;

	(void)at, (void)lane, (void)entity, (void)tick;
	nvtxDomainRangePop(nvtx->domain);
}

static void nvtx_ready(void *self, int64_t at, unsigned lane, uint32_t entity)
{
	struct nvtx *nvtx = self;

	(void)at, (void)lane;
	mark(nvtx, CATEGORY_READY, name_of(nvtx, entity), payload_of(entity, 0));
}

/* Returns its number from 1, or 0 without memory. */
static size_t reason_find(struct nvtx *nvtx, struct entity_marks *marks, const char *of, const char *why)
{
	for (size_t i = 0; i < marks->reason_count; i++)
		if (marks->reasons[i].of == of && marks->reasons[i].why == why)
			return i + 1;
	if (wr_grow(&marks->reasons, &marks->reason_room, marks->reason_count + 1, sizeof *marks->reasons))
		return 0;
	marks->reasons[marks->reason_count++] =
		(struct reason){of, why,
				text_register(nvtx, wr_format("%s waits: %s: %s", marks->name, of ? of : "?",
							      why ? why : "?"))};
	return marks->reason_count;
}

static void nvtx_wait(void *self, int64_t at, unsigned lane, uint32_t entity, weir_cause cause, uint32_t on,
		      const char *of, const char *why)
{
	struct nvtx *nvtx = self;
	struct entity_marks *marks = marks_of(nvtx, entity);
	size_t reason = marks ? reason_find(nvtx, marks, of, why) : 0;

	(void)at, (void)lane, (void)cause, (void)on;
	if (!reason || reason == marks->marked)
		return;
	marks->marked = reason;
	mark(nvtx, CATEGORY_WAIT, marks->reasons[reason - 1].text, payload_of(entity, 0));
}

static void nvtx_arm(void *self, int64_t at, unsigned lane, uint32_t entity, uint64_t token,
		     enum wr_trace_signal kind)
{
	struct nvtx *nvtx = self;
	struct entity_marks *marks = marks_of(nvtx, entity);
	nvtxEventAttributes_t range;

	(void)at, (void)lane, (void)kind;
	if (!marks)
		return;
	signal_end(nvtx, marks);
	range = attributes(CATEGORY_SIGNAL, marks->signal, payload_of(entity, 0));
	wr_store(&marks->signal_token, token);
	wr_store(&marks->signal_range, nvtxDomainRangeStartEx(nvtx->domain, &range));
	/* Either this sees that it has fired already, or the thread that tells so sees the range. */
	if (wr_load(&marks->fired_token) == token)
		signal_end_of(nvtx, marks, token);
}

static void nvtx_fire(void *self, int64_t at, unsigned lane, uint32_t entity, uint64_t token)
{
	struct nvtx *nvtx = self;
	struct entity_marks *marks = marks_of(nvtx, entity);

	(void)at, (void)lane;
	if (!marks)
		return;
	wr_store(&marks->fired_token, token);
	signal_end_of(nvtx, marks, token);
}

static void nvtx_entity_done(void *self, int64_t at, unsigned lane, uint32_t entity)
{
	struct nvtx *nvtx = self;
	struct entity_marks *marks = marks_of(nvtx, entity);

	(void)at, (void)lane;
	if (marks)
		signal_end(nvtx, marks);
	for (size_t i = 0; i < nvtx->queue_room; i++) {
		struct queue_counter *queue = &nvtx->queues[i];

		if (queue->receiver != entity || !queue->counter)
			continue;
		wr_store(&queue->closed, true);
		counter_sample(nvtx->domain, queue->counter, 0);
	}
}

static void nvtx_replay_begin(void *self, int64_t at, unsigned lane, uint32_t entity, bool capture)
{
	struct nvtx *nvtx = self;
	const struct entity_marks *marks = marks_of(nvtx, entity);
	nvtxStringHandle_t name = marks ? capture ? marks->capture : marks->replay : NULL;

	(void)at, (void)lane;
	push(nvtx, CATEGORY_REPLAY, name, payload_of(entity, 0));
}

static void nvtx_replay_end(void *self, int64_t at, unsigned lane, uint32_t entity)
{
	struct nvtx *nvtx = self;

	(void)at, (void)lane, (void)entity;
	nvtxDomainRangePop(nvtx->domain);
}

static void nvtx_steal(void *self, int64_t at, unsigned lane, uint32_t entity)
{
	struct nvtx *nvtx = self;

	(void)at, (void)lane;
	mark(nvtx, CATEGORY_STEAL, name_of(nvtx, entity), payload_of(entity, 0));
}

/* --- the run and its workers --- */

static void nvtx_run_begin(void *self, int64_t at, unsigned workers)
{
	struct nvtx *nvtx = self;
	nvtxEventAttributes_t range = attributes(CATEGORY_RUN, nvtx->run, workers);

	(void)at;
	for (size_t i = 0; i < nvtx->queue_room; i++) {
		wr_store(&nvtx->queues[i].pushed, 0);
		wr_store(&nvtx->queues[i].left, 0);
		wr_store(&nvtx->queues[i].closed, false);
	}
	nvtx->run_range = nvtxDomainRangeStartEx(nvtx->domain, &range);
}

static void nvtx_run_end(void *self, int64_t at, unsigned workers)
{
	struct nvtx *nvtx = self;

	(void)at, (void)workers;
	for (size_t i = 0; i < nvtx->entity_room; i++)
		signal_end(nvtx, &nvtx->entities[i]);
	nvtxDomainRangeEnd(nvtx->domain, nvtx->run_range);
}

static void sleepers_change(const struct nvtx *nvtx, int change)
{
	int64_t now = wr_fetch_add(&sleepers, change) + change;

	counter_sample(nvtx->domain, sleepers_counter, now);
}

static void nvtx_sleep_begin(void *self, int64_t at, unsigned lane)
{
	struct nvtx *nvtx = self;

	(void)at;
	push(nvtx, CATEGORY_SLEEP, nvtx->sleep, lane);
	sleepers_change(nvtx, 1);
}

static void nvtx_sleep_end(void *self, int64_t at, unsigned lane)
{
	struct nvtx *nvtx = self;

	(void)at, (void)lane;
	sleepers_change(nvtx, -1);
	nvtxDomainRangePop(nvtx->domain);
}

/* --- counters --- */

static void queue_change(const struct nvtx *nvtx, uint32_t number, unsigned pushes, unsigned leaves)
{
	struct queue_counter *queue = number < nvtx->queue_room ? &nvtx->queues[number] : NULL;
	uint64_t pushed, gone;

	if (!queue || !queue->counter || wr_load(&queue->closed))
		return;
	pushed = wr_fetch_add(&queue->pushed, pushes) + pushes;
	gone = wr_fetch_add(&queue->left, leaves) + leaves;
	counter_sample(nvtx->domain, queue->counter, (int64_t)(pushed - gone));
}

static void nvtx_deliver(void *self, int64_t at, unsigned lane, uint32_t queue, uint64_t message)
{
	(void)at, (void)lane, (void)message;
	queue_change(self, queue, 1, 0);
}

static void nvtx_leave_queue(void *self, int64_t at, unsigned lane, uint32_t queue, uint64_t message)
{
	(void)at, (void)lane, (void)message;
	queue_change(self, queue, 0, 1);
}

/* The counter is made at the first tick in flight: entities without device work need none. */
static void nvtx_flight(void *self, int64_t at, unsigned lane, uint32_t entity, uint64_t ticks)
{
	struct nvtx *nvtx = self;
	struct entity_marks *marks = marks_of(nvtx, entity);

	(void)at, (void)lane;
	if (!marks)
		return;
	if (!marks->in_flight)
		marks->in_flight =
			counter_register(nvtx->domain, wr_format("%s in flight", marks->name), "ticks");
	counter_sample(nvtx->domain, marks->in_flight, (int64_t)ticks);
}

static void nvtx_pool_used(void *self, int64_t at, unsigned lane, uint32_t pool, uint64_t used)
{
	struct nvtx *nvtx = self;

	(void)at, (void)lane;
	if (pool < nvtx->pool_room)
		counter_sample(nvtx->domain, nvtx->pools[pool], (int64_t)used);
}

const struct wr_observer wr_nvtx = {
	.name = "nvtx",
	.open = nvtx_open,
	.close = nvtx_close,
	.entity = nvtx_entity,
	.part = nvtx_part,
	.queue = nvtx_queue,
	.pool = nvtx_pool,
	.worker = nvtx_worker,
#ifdef WEIR_WITH_CUDA /* tools do not know streams of other backends */
	.stream = nvtx_stream,
#endif
	.run_begin = nvtx_run_begin,
	.run_end = nvtx_run_end,
	.tick_begin = nvtx_tick_begin,
	.tick_end = nvtx_tick_end,
	.ready = nvtx_ready,
	.wait = nvtx_wait,
	.arm = nvtx_arm,
	.fire = nvtx_fire,
	.entity_done = nvtx_entity_done,
	.replay_begin = nvtx_replay_begin,
	.replay_end = nvtx_replay_end,
	.steal = nvtx_steal,
	.deliver = nvtx_deliver,
	.take = nvtx_leave_queue,
	.drop = nvtx_leave_queue,
	.unmatched = nvtx_leave_queue,
	.flight = nvtx_flight,
	.pool_used = nvtx_pool_used,
	.sleep_begin = nvtx_sleep_begin,
	.sleep_end = nvtx_sleep_end,
};

#else

static weir_status nvtx_open(const struct wr_trace_options *options, void **self)
{
	(void)options, (void)self;
	return WEIR_OK;
}

const struct wr_observer wr_nvtx = {.name = "nvtx", .open = nvtx_open};

#endif
