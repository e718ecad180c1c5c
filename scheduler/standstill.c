/*
 * Collects what each entity waits for. A condition that only a poke can change and that names a port waits
 * for the queues of that port: an input waits for the sender of its emptiest queue, an output for the
 * receiver of its fullest one. Everything else (a time, fences, what is told from outside, a compute that
 * runs) is a root cause.
 *
 * While a run is on (C5) the calling thread takes a live reference, then ownership of an entity (CAS IDLE ->
 * RUNNING), then asks its conditions. A busy entity shows its last published verdict. Between two runs one
 * thread at a time asks, and start waits for it. All answers are collected before any is printed or passed
 * to the caller's function: no entity is owned while that function runs.
 */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/words.h"
#include "scheduler/ask.h"
#include "scheduler/finisher.h"
#include "scheduler/holders.h"
#include "scheduler/inlet.h"
#include "scheduler/memory_pool.h"
#include "scheduler/outlet.h"
#include "scheduler/ready.h"
#include "scheduler/run.h"
#include "scheduler/standstill.h"

enum { LOOKS = 3 }; /* looks again before an entity counts as parked without a reason */
#define LOOK_NS 1000000

struct collecting {
	struct wr_standstill *standstill;
	weir_entity *entity;
	bool room; /* a condition named an output */
};

static void add_cause(struct wr_standstill *standstill, const struct wr_cause *cause)
{
	struct wr_cause *added;

	if (!standstill->status)
		standstill->status = wr_grow(&standstill->list, &standstill->room, standstill->count + 1,
					     sizeof *standstill->list);
	if (standstill->status)
		return;
	added = &standstill->list[standstill->count];
	*added = *cause;
	added->condition = wr_strdup(cause->condition);
	added->detail = wr_strdup(cause->detail);
	standstill->count++;
	if (!added->condition || !added->detail)
		standstill->status = WEIR_E_NOMEM;
}

static uint32_t index_of(const weir_entity *entity)
{
	return wr_load((_Atomic uint32_t *)&entity->state) & WR_DONE ? WR_NO_ENTITY : entity->id;
}

/* Blames the sender of the emptiest queue that may still be filled. */
static void blame_sender(const struct wr_input *input, size_t wanted, struct wr_cause *cause)
{
	size_t held = 0;

	for (size_t i = 0; i < input->count; i++) {
		struct wr_connection *connection = input->connections[i];
		size_t count = wr_queue_count(&connection->queue);

		held += count;
		if (wr_queue_closed(&connection->queue) || (cause->connection && count >= cause->held))
			continue;
		cause->connection = connection;
		cause->held = count;
		cause->inlet = connection->inlet && wr_inlet_is_open(connection->inlet);
		cause->blames = connection->sender ? index_of(connection->sender) : WR_NO_ENTITY;
	}
	if (!input->any_size)
		cause->held = held;
	cause->wanted = wanted;
}

/* The outlet's finisher if no message is finished; else no entity: the program takes nothing. */
static uint32_t blamed_by_outlet(const struct wr_connection *connection)
{
	weir_outlet *outlet = connection->outlet;
	bool readable;

	if (!outlet->finisher)
		return WR_NO_ENTITY;
	wr_mutex_lock(&outlet->lock);
	readable = outlet->readable;
	wr_mutex_unlock(&outlet->lock);
	return readable ? WR_NO_ENTITY : outlet->finisher->entity.id;
}

/* Blames the receiver whose queue has the least room, of those with less than is needed. */
static void blame_receiver(const struct wr_output *output, size_t needed, struct wr_cause *cause)
{
	size_t least = SIZE_MAX;

	cause->full = true;
	for (size_t i = 0; i < output->count; i++) {
		struct wr_connection *connection = output->connections[i];
		size_t room;

		if (wr_connection_is_free(connection))
			continue;
		room = wr_queue_room(&connection->queue);
		if (room >= needed || room >= least)
			continue;
		least = room;
		cause->connection = connection;
		cause->wanted = connection->queue.capacity;
		cause->held = cause->wanted > room ? cause->wanted - room : 0;
		cause->blames =
			connection->receiver ? index_of(connection->receiver) : blamed_by_outlet(connection);
	}
}

static void blame_by_port(struct collecting *collecting, const struct wr_unmet *unmet, struct wr_cause *cause)
{
	if (unmet->input)
		blame_sender(unmet->input, unmet->needed ? unmet->needed : unmet->input->need, cause);
	if (!unmet->output)
		return;
	blame_receiver(unmet->output, unmet->needed ? unmet->needed : unmet->output->max_emits, cause);
	collecting->room = true;
}

static struct wr_cause cause_of(const struct collecting *collecting, const struct wr_unmet *unmet)
{
	return (struct wr_cause){.entity = collecting->entity->id,
				 .blames = WR_NO_ENTITY,
				 .says = unmet->says,
				 .cause = unmet->cause,
				 .on = unmet->on,
				 .condition = (char *)unmet->condition};
}

/* Where the pool's memory is; blames the receiver whose queues hold the most of it. */
static void collect_claim(struct collecting *collecting, const struct wr_unmet *unmet)
{
	struct wr_text detail = {0};
	struct wr_cause cause = cause_of(collecting, unmet);
	weir_entity *holder;

	cause.claim = unmet->claim;
	wr_text_add(&detail, "%s", unmet->detail);
	holder = wr_holders_describe(wr_memory_pool_of(unmet->claim), collecting->entity,
				     collecting->standstill->at_end, &detail);
	cause.blames = holder ? index_of(holder) : WR_NO_ENTITY;
	cause.detail = detail.status ? (char *)unmet->detail : detail.text;
	add_cause(collecting->standstill, &cause);
	wr_text_finish(&detail);
}

struct time_text {
	char text[24];
};

static struct time_text time_text(int64_t ns)
{
	struct time_text time;

	if (ns < 1000000000)
		snprintf(time.text, sizeof time.text, "%.4g ms", (double)ns / 1e6);
	else
		snprintf(time.text, sizeof time.text, "%.4g s", (double)ns / 1e9);
	return time;
}

static void collect_condition(const struct wr_unmet *unmet, void *arg)
{
	struct collecting *collecting = arg;
	struct wr_cause cause = cause_of(collecting, unmet);
	char text[256];
	int64_t left = collecting->entity->verdict.at;

	if (unmet->claim) {
		collect_claim(collecting, unmet);
		return;
	}
	snprintf(text, sizeof text, "%s", unmet->detail);
	if (unmet->says == WR_SAYS_TIME) {
		left -= wr_now();
		snprintf(text, sizeof text, "%s, due in %s", unmet->detail,
			 time_text(left > 0 ? left : 0).text);
	}
	cause.detail = text;
	if (unmet->says == WR_SAYS_WAIT && wr_cause_is_of_queue(unmet->cause))
		blame_by_port(collecting, unmet, &cause);
	add_cause(collecting->standstill, &cause);
}

/* A tick needs room on every output, also where no condition watches it. */
static void collect_room(struct collecting *collecting)
{
	weir_entity *entity = collecting->entity;

	for (size_t i = 0; i < entity->output_count; i++) {
		char condition[80];
		struct wr_cause cause = {.entity = entity->id,
					 .blames = WR_NO_ENTITY,
					 .says = WR_SAYS_WAIT,
					 .cause = WEIR_CAUSE_ROOM,
					 .on = (uint32_t)i,
					 .condition = condition,
					 .detail = "no room behind the output"};

		blame_receiver(&entity->outputs[i], entity->outputs[i].max_emits, &cause);
		snprintf(condition, sizeof condition, "room on %s", entity->outputs[i].plan->port->name);
		if (cause.connection)
			add_cause(collecting->standstill, &cause);
	}
}

void wr_standstill_add_owned(struct wr_standstill *standstill, weir_entity *entity, bool draining)
{
	struct collecting collecting = {standstill, entity, false};

	wr_entity_explain(entity, draining, collect_condition, &collecting);
	if (!(draining && entity->root) && !collecting.room && wr_entity_lacks_room(entity))
		collect_room(&collecting);
}

/*
 * A busy entity: how long it has been computing, if that is measured, or the text of its last published
 * verdict: it waits for a worker to ask again.
 */
static void collect_published(struct wr_standstill *standstill, weir_entity *entity)
{
	const char *why = wr_load_relaxed(&entity->why), *of = wr_load_relaxed(&entity->why_of);
	int64_t since = wr_read(&entity->computing_since);
	struct wr_cause cause = {.entity = entity->id,
				 .blames = WR_NO_ENTITY,
				 .says = WR_SAYS_BUSY,
				 .cause = since ? WEIR_CAUSE_COMPUTE : WEIR_CAUSE_WORKER,
				 .on = WR_NO_SUBJECT};
	char detail[160];

	cause.condition = since || !of ? "compute" : (char *)of;
	if (since > 1)
		snprintf(detail, sizeof detail, "runs for %s", time_text(wr_now() - since).text);
	else
		wr_shown_cut(detail, sizeof detail, since || !why ? "runs now" : why);
	cause.detail = detail;
	add_cause(standstill, &cause);
}

/* What the loop should have woken a parked entity for. */
struct due {
	int64_t at; /* INT64_MAX: no time */
	bool watches;
};

/* Returns true if the entity was parked, was not poked meanwhile and has no unmet condition. */
static bool collect_running(struct wr_standstill *standstill, weir_scheduler *scheduler, weir_entity *entity,
			    struct due *due)
{
	size_t before = standstill->count;

	if (wr_entity_own_parked(scheduler, entity)) {
		*due = (struct due){entity->wait.at, entity->wait.watches};
		wr_standstill_add_owned(standstill, entity, wr_load(&scheduler->stop_asked) & WR_STOP_DRAIN);
		return wr_entity_leave_parked(scheduler, entity) && standstill->count == before &&
		       !standstill->status;
	}
	/* A run that is being closed makes no reviews: it waits only for entities that still compute. */
	if (!(wr_load(&entity->state) & WR_DONE) &&
	    (!wr_live_closed(&scheduler->live) || wr_read(&entity->computing_since)))
		collect_published(standstill, entity);
	return false;
}

static const char *late_loop(const weir_scheduler *scheduler)
{
	if (scheduler->options.own_loop)
		return "weir_scheduler_turn was not called";
	return scheduler->options.event_base ? "the event base did not call weir"
					     : "the loop's thread did not run";
}

/*
 * The entity is parked and nothing is unmet. The loop is late; else the entity has missed a poke: a bug in
 * weir, or a condition that changes without one.
 */
static void add_parked(struct wr_standstill *standstill, const weir_scheduler *scheduler,
		       const weir_entity *entity, const struct due *due)
{
	int64_t late = due->at == INT64_MAX ? 0 : wr_now() - due->at;
	char detail[160] = "parked, though nothing is unmet: a condition became READY without a poke "
			   "(weir_entity_poke), or weir has a bug: report it";
	struct wr_cause cause = {.entity = entity->id,
				 .blames = WR_NO_ENTITY,
				 .says = WR_SAYS_PARKED,
				 .cause = WEIR_CAUSE_NONE,
				 .on = WR_NO_SUBJECT,
				 .condition = "poke",
				 .detail = detail};

	if (late > 0) {
		cause.cause = WEIR_CAUSE_TIME;
		cause.condition = "timer";
		snprintf(detail, sizeof detail, "its timer has been due for %s: %s", time_text(late).text,
			 late_loop(scheduler));
	} else if (due->watches) {
		cause.cause = WEIR_CAUSE_DESCRIPTOR;
		cause.condition = "descriptor";
		snprintf(detail, sizeof detail, "its descriptor is ready: %s", late_loop(scheduler));
	}
	add_cause(standstill, &cause);
}

/* Between a push and its poke an entity is parked with nothing unmet, for a moment: it is looked at again. */
static void collect_patiently(struct wr_standstill *standstill, weir_scheduler *scheduler,
			      weir_entity *entity)
{
	struct due due;

	for (int look = 0; collect_running(standstill, scheduler, entity, &due); look++) {
		if (look == LOOKS) {
			add_parked(standstill, scheduler, entity, &due);
			return;
		}
		wr_thread_sleep(LOOK_NS);
	}
}

void wr_standstill_init(struct wr_standstill *standstill, weir_graph *graph)
{
	*standstill = (struct wr_standstill){.graph = graph};
	standstill->first = wr_alloc(wr_graph_count_all(graph) + 1, sizeof *standstill->first);
	standstill->marks = wr_alloc(wr_graph_count_all(graph) + 1, 1);
	if (!standstill->first || !standstill->marks)
		standstill->status = WEIR_E_NOMEM;
}

static void collect_all(struct wr_standstill *standstill, weir_scheduler *scheduler, bool running)
{
	weir_graph *graph = scheduler->graph;

	wr_standstill_init(standstill, graph);
	standstill->at_end = !running;
	for (size_t i = 0; i < wr_graph_count_all(graph) && !standstill->status; i++) {
		weir_entity *entity = wr_graph_entity_at(graph, i);

		standstill->first[i] = standstill->count;
		if (i >= graph->entity_count && !wr_queue_snapshot(&entity->inputs[0].connections[0]->queue))
			continue; /* every message in the outlet is finished */
		if (running)
			collect_patiently(standstill, scheduler, entity);
		else if (entity->askable && !(wr_load(&entity->state) & WR_DONE))
			wr_standstill_add_owned(standstill, entity, false);
	}
	if (!standstill->status)
		standstill->first[wr_graph_count_all(graph)] = standstill->count;
}

/*
 * Returns true between two runs: then the caller is the only thread that asks, and no run starts before
 * `explaining` is false again.
 */
static bool begin_asking(weir_scheduler *scheduler)
{
	bool ended;

	wr_mutex_lock(&scheduler->lock);
	while (scheduler->explaining)
		wr_cond_wait(&scheduler->changed, &scheduler->lock, WR_FOREVER);
	ended = wr_load(&scheduler->phase) == WR_ENDED && !scheduler->starting;
	scheduler->explaining = ended;
	wr_mutex_unlock(&scheduler->lock);
	return ended;
}

void wr_standstill_collect(struct wr_standstill *standstill, weir_scheduler *scheduler)
{
	bool ended = begin_asking(scheduler);

	collect_all(standstill, scheduler, !ended);
	if (!ended)
		return;
	wr_mutex_lock(&scheduler->lock);
	scheduler->explaining = false;
	wr_cond_broadcast(&scheduler->changed);
	wr_mutex_unlock(&scheduler->lock);
}

void wr_standstill_collect_at_end(struct wr_standstill *standstill, weir_scheduler *scheduler)
{
	collect_all(standstill, scheduler, false);
}

void wr_standstill_finish(struct wr_standstill *standstill)
{
	for (size_t i = 0; i < standstill->count; i++) {
		wr_free(standstill->list[i].condition);
		wr_free(standstill->list[i].detail);
	}
	wr_free(standstill->list);
	wr_free(standstill->first);
	wr_free(standstill->marks);
	*standstill = (struct wr_standstill){0};
}
