/* The observer of the timeline: keeps names, and makes a record of each event. */
#include "trace/timeline.h"

#include "base/memory.h"

static weir_status timeline_open(const struct wr_trace_options *options, void **self)
{
	struct wr_timeline *timeline;
	weir_status status;

	if (!(options->observe & WEIR_OBSERVE_TRACE))
		return WEIR_OK;
	timeline = wr_alloc(1, sizeof *timeline);
	if (!timeline)
		return WEIR_E_NOMEM;
	timeline->workers = options->workers;
	status = wr_rings_init(&timeline->rings, options->workers,
			       options->events ? options->events : WR_TIMELINE_EVENTS, options->simulated);
	if (status)
		wr_free(timeline);
	else
		*self = timeline;
	return status;
}

static void timeline_close(void *self)
{
	struct wr_timeline *timeline = self;

	wr_rings_finish(&timeline->rings);
	wr_free(timeline->entities);
	wr_free(timeline->parts);
	wr_free(timeline->queues);
	wr_free(timeline->pools);
	wr_free(timeline);
}

/* --- declarations: if memory runs out a name is missing; a timeline must not fail a run --- */

/* Returns false if there is no room for the element `index`. */
static bool make_room(void *array, size_t *room, size_t *count, size_t index, size_t size)
{
	if (wr_grow(array, room, index + 1, size))
		return false;
	if (*count <= index)
		*count = index + 1;
	return true;
}

static void timeline_entity(void *self, uint32_t entity, const char *name)
{
	struct wr_timeline *own = self;

	if (!entity) /* the declarations precede a run: the last one is forgotten */
		wr_rings_clear(&own->rings);
	if (make_room(&own->entities, &own->entity_room, &own->entity_count, entity, sizeof *own->entities))
		own->entities[entity] = name;
}

static void timeline_part(void *self, uint32_t entity, enum wr_trace_part part, uint32_t of, uint32_t number,
			  uint32_t instances)
{
	struct wr_timeline *own = self;

	if (make_room(&own->parts, &own->part_room, &own->part_count, entity, sizeof *own->parts))
		own->parts[entity] = (struct wr_timeline_part){part, of, number, instances};
}

static void timeline_queue(void *self, uint32_t queue, uint32_t sender, uint32_t receiver, const char *from,
			   const char *to, uint32_t capacity)
{
	struct wr_timeline *own = self;

	(void)capacity;
	if (make_room(&own->queues, &own->queue_room, &own->queue_count, queue, sizeof *own->queues))
		own->queues[queue] = (struct wr_timeline_queue){from, to, sender, receiver};
}

static void timeline_pool(void *self, uint32_t pool, const char *name, uint64_t size, const char *unit)
{
	struct wr_timeline *own = self;

	(void)size;
	if (make_room(&own->pools, &own->pool_room, &own->pool_count, pool, sizeof *own->pools))
		own->pools[pool] = (struct wr_timeline_pool){name, unit};
}

/* --- events --- */

static void add(void *self, struct wr_record record)
{
	struct wr_timeline *timeline = self;

	wr_rings_add(&timeline->rings, &record, 1);
}

/* Of no worker: WR_RING_OUTSIDE. */
static struct wr_record record_of(enum wr_record_kind kind, int64_t at, unsigned lane, uint32_t subject,
				  uint64_t value)
{
	return (struct wr_record){
		.at = at,
		.value = value,
		.subject = subject,
		.kind = (uint8_t)kind,
		.lane = lane < WR_RING_OUTSIDE ? (uint16_t)lane : WR_RING_OUTSIDE,
	};
}

static void timeline_run_begin(void *self, int64_t at, unsigned workers)
{
	struct wr_timeline *timeline = self;

	(void)workers;
	timeline->begun_at = at;
	timeline->ended_at = at;
}

static void timeline_run_end(void *self, int64_t at, unsigned workers)
{
	struct wr_timeline *timeline = self;

	(void)workers;
	timeline->ended_at = at;
}

/* Rows whose arguments are a subject and, some of them, a number. */
#define SUBJECT_ROW(row, kind)                                                                               \
	static void timeline_##row(void *self, int64_t at, unsigned lane, uint32_t subject)                  \
	{                                                                                                    \
		add(self, record_of(kind, at, lane, subject, 0));                                            \
	}
#define NUMBER_ROW(row, kind)                                                                                \
	static void timeline_##row(void *self, int64_t at, unsigned lane, uint32_t subject, uint64_t number) \
	{                                                                                                    \
		add(self, record_of(kind, at, lane, subject, number));                                       \
	}
SUBJECT_ROW(ready, WR_RECORD_READY)
SUBJECT_ROW(entity_done, WR_RECORD_ENTITY_DONE)
SUBJECT_ROW(replay_end, WR_RECORD_REPLAY_END)
SUBJECT_ROW(steal, WR_RECORD_STEAL)
NUMBER_ROW(tick_begin, WR_RECORD_TICK_BEGIN)
NUMBER_ROW(tick_end, WR_RECORD_TICK_END)
NUMBER_ROW(deliver, WR_RECORD_DELIVER)
NUMBER_ROW(drop, WR_RECORD_DROP)
NUMBER_ROW(take, WR_RECORD_TAKE)
NUMBER_ROW(fire, WR_RECORD_FIRE)
NUMBER_ROW(complete, WR_RECORD_COMPLETE)
NUMBER_ROW(flight, WR_RECORD_FLIGHT)
NUMBER_ROW(pool_used, WR_RECORD_POOL)

static void timeline_wait(void *self, int64_t at, unsigned lane, uint32_t entity, weir_cause cause,
			  uint32_t on, const char *of, const char *why)
{
	struct wr_record record = record_of(WR_RECORD_WAIT, at, lane, entity, (uintptr_t)of);

	(void)on; /* `of` names it */
	record.more = (uintptr_t)why;
	record.cause = (uint8_t)cause;
	add(self, record);
}

static void timeline_arm(void *self, int64_t at, unsigned lane, uint32_t entity, uint64_t token,
			 enum wr_trace_signal kind)
{
	struct wr_record record = record_of(WR_RECORD_ARM, at, lane, entity, token);

	record.more = kind;
	add(self, record);
}

static void timeline_replay_begin(void *self, int64_t at, unsigned lane, uint32_t entity, bool capture)
{
	add(self, record_of(WR_RECORD_REPLAY_BEGIN, at, lane, entity, capture));
}

static void timeline_sleep_begin(void *self, int64_t at, unsigned lane)
{
	add(self, record_of(WR_RECORD_SLEEP_BEGIN, at, lane, 0, 0));
}

static void timeline_sleep_end(void *self, int64_t at, unsigned lane)
{
	add(self, record_of(WR_RECORD_SLEEP_END, at, lane, 0, 0));
}

static void timeline_device_work(void *self, int64_t at, unsigned lane, uint32_t entity, uint64_t tick,
				 const char *stream, uint32_t queue, int64_t begin, int64_t end,
				 enum wr_trace_source source)
{
	struct wr_timeline *timeline = self;
	struct wr_record pair[2] = {
		record_of(WR_RECORD_DEVICE, at, lane, entity, tick),
		record_of(WR_RECORD_SPAN, begin, lane, entity, (uint64_t)end),
	};

	(void)queue;
	pair[0].more = (uintptr_t)stream;
	pair[1].more = source;
	wr_rings_add(&timeline->rings, pair, 2);
}

const struct wr_observer wr_timeline = {
	.name = "timeline",
	.open = timeline_open,
	.close = timeline_close,
	.entity = timeline_entity,
	.part = timeline_part,
	.queue = timeline_queue,
	.pool = timeline_pool,
	.run_begin = timeline_run_begin,
	.run_end = timeline_run_end,
	.tick_begin = timeline_tick_begin,
	.tick_end = timeline_tick_end,
	.ready = timeline_ready,
	.wait = timeline_wait,
	.entity_done = timeline_entity_done,
	.deliver = timeline_deliver,
	.drop = timeline_drop,
	.unmatched = timeline_drop,
	.take = timeline_take,
	.arm = timeline_arm,
	.fire = timeline_fire,
	.complete = timeline_complete,
	.device_work = timeline_device_work,
	.flight = timeline_flight,
	.pool_used = timeline_pool_used,
	.replay_begin = timeline_replay_begin,
	.replay_end = timeline_replay_end,
	.sleep_begin = timeline_sleep_begin,
	.sleep_end = timeline_sleep_end,
	.steal = timeline_steal,
};
