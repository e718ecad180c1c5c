/*
 * Why a run stands still: what one entity waits for and why, then what all of them wait for, then the text.
 *
 * A condition that only a poke can change and that names a port waits
 * for the queues of that port: an input waits for the sender of its emptiest queue, an output for the
 * receiver of its fullest one. Everything else (a time, fences, what is told from outside, a compute that
 * runs) is a root cause.
 *
 * While a run is on (C5) the calling thread takes a live reference, then ownership of an entity (CAS IDLE ->
 * RUNNING), then asks its conditions. A busy entity shows its last published verdict. Between two runs one
 * thread at a time asks, and start waits for it. All answers are collected before any is printed or passed
 * to the caller's function: no entity is owned while that function runs.
 */
#include "scheduler/standstill.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/status.h"
#include "base/units.h"
#include "base/words.h"
#include "scheduler/entity.h"
#include "scheduler/ends.h"
#include "scheduler/graph.h"
#include "scheduler/holders.h"
#include "scheduler/instances.h"
#include "scheduler/memory.h"
#include "scheduler/scheduler.h"
#include "scheduler/run.h"

/*
 * === what one entity waits for ===
 *
 * Why an entity is not ready (C5): asks each condition once more and reports those that do not hold,
 * with a detail. Of the entity only the verdict changes, which every review overwrites. The fronts do not
 * change, so content conditions are asked only if a review has closed the fronts.
 */

/*
 * "1 fence pending, oldest 1.2 ms, producer blur"; "waits for a fence that the program completes: " before
 * it, if one is a promise.
 */
static void detail_fences(const weir_entity *entity, char *text, size_t room)
{
	const weir_verdict *verdict = &entity->verdict;
	const char *producer = "?";
	bool told = false;
	int64_t oldest = 0;

	for (size_t i = 0; i < verdict->fence_count; i++) {
		int64_t age = 0;
		const char *name = wr_fence_producer(entity->graph->system, verdict->fences[i], &age);
		told |= wr_fence_is_promise(verdict->fences[i]);
		if (!i || age > oldest) {
			oldest = age;
			producer = name;
		}
	}
	snprintf(text, room, "%s%zu fence%s pending, oldest %s, producer %s",
		 told ? "waits for a fence that the program completes: " : "", verdict->fence_count,
		 verdict->fence_count == 1 ? "" : "s", wr_time_shown(oldest).text, producer);
}

/* "64 of 64 ticks in flight, oldest 1.2 s, on stream of 'spin'". */
static void detail_in_flight(const weir_entity *entity, char *text, size_t room)
{
	const struct wr_flight *flight = &entity->flight;
	int64_t age = 0;
	weir_fence oldest = flight->ends[flight->first].fence;
	const char *owner = wr_fence_producer(entity->graph->system, oldest, &age);

	snprintf(text, room, "%llu of %zu ticks in flight, oldest %s, %s of '%s'",
		 (unsigned long long)(flight->ticks - flight->completed), wr_flight_limit(flight),
		 wr_time_shown(age).text,
		 wr_fence_is_promise(oldest) ? "waits for a fence that the program completes," : "on stream",
		 owner);
}

/* Drops the fences of other conditions first. */
static void ask_condition(weir_view *view, struct wr_condition *condition)
{
	view->entity->verdict.fence_count = 0;
	wr_condition_ask(view, condition);
	wr_verdict_check_cause(view, condition);
}

/* "message_available on in: too few messages or (boolean: holds and periodic: the period is not over)" */
static void detail_tree(weir_view *view, const struct wr_condition *tree, char *text, size_t room)
{
	const weir_verdict *verdict = &view->entity->verdict;
	struct wr_words words = wr_words_in(text, room);
	size_t last = 0; /* of the all_of that the condition is in; 0: it is in none */
	unsigned port;
	bool input;

	for (size_t i = 0; i < tree->plan->span; i++) {
		struct wr_condition *condition = &tree->inside[i];
		bool named = wr_condition_port(condition->plan, &port, &input) && input;

		wr_words_add(&words, "%s", !i ? "" : last ? " and " : " or ");
		if (condition->plan->span) {
			last = i + condition->plan->span;
			wr_words_add(&words, "(");
			condition = &tree->inside[++i];
			named = wr_condition_port(condition->plan, &port, &input) && input;
		}
		ask_condition(view, condition);
		wr_words_add(&words, "%s%s%s: %s%s", condition->plan->name, named ? " on " : "",
			     named ? view->entity->inputs[port].plan->port->name : "",
			     verdict->answer == WR_READY ? "holds"
			     : verdict->why              ? verdict->why
							 : "not ready",
			     last && i == last ? ")" : "");
		last = i == last ? 0 : last;
	}
}

static enum wr_says verdict_says(const weir_verdict *verdict)
{
	switch (verdict->answer) {
	case WR_READY:
	case WR_WAIT:
		if (verdict->external || verdict->fence_count)
			return WR_SAYS_EVENT;
		return verdict->at != INT64_MAX ? WR_SAYS_TIME : WR_SAYS_WAIT;
	case WR_NEVER:
		return WR_SAYS_NEVER;
	case WR_SILENT:
		return WR_SAYS_NOTHING;
	case WR_MISUSED:
		break;
	}
	return WR_SAYS_TWO;
}

/* "no room yet: has waited 1.2 s for descriptor 7 (readable)": the reason is the kind's, if it gives one. */
static bool detail_descriptor(struct wr_condition *condition, const char *why, char *text, size_t room)
{
	char waited[128];

	if (!condition || !wr_descriptor_describe(condition, waited, sizeof waited))
		return false;
	snprintf(text, room, "%.120s%s%s", why ? why : "", why ? ": " : "", waited);
	return true;
}

/* Adds verdict and detail to what is unmet, and reports it. */
static void explain_verdict(weir_view *view, struct wr_unmet *unmet, wr_unmet_fn *fn, void *arg)
{
	weir_entity *entity = view->entity;
	const weir_verdict *verdict = &entity->verdict;
	int64_t told_at = unmet->asked && verdict->fence_count == 1
				  ? wr_told_fence_at(unmet->asked, verdict->fences[0])
				  : 0;
	char detail[280], fences[160];

	unmet->says = verdict_says(verdict);
	unmet->cause = verdict->cause;
	unmet->on = verdict->on;
	unmet->needed = verdict->needed;
	unmet->detail = detail;
	if (unmet->asked && unmet->asked->inside) {
		detail_tree(view, unmet->asked, detail, sizeof detail);
	} else if (told_at) {
		detail_fences(entity, fences, sizeof fences);
		snprintf(detail, sizeof detail, "told %s ago: %s",
			 wr_time_shown(wr_system_now(entity->graph->system) - told_at).text, fences);
	} else if (verdict->fence_count && verdict->cause == WEIR_CAUSE_BOUND)
		detail_in_flight(entity, detail, sizeof detail);
	else if (verdict->fence_count)
		detail_fences(entity, detail, sizeof detail);
	else if (!(verdict->external & (WR_DESCRIPTOR | WR_MEANWHILE)) ||
		 !detail_descriptor(unmet->asked, verdict->why, detail, sizeof detail))
		wr_shown_cut(detail, sizeof detail,
			     verdict->why               ? verdict->why
			     : verdict->at != INT64_MAX ? "waits for its time"
							: "not ready");
	fn(unmet, arg);
}

/* Finds the port of the cause, else the first one that a parameter names. Returns false if there is none. */
static bool find_port(const weir_entity *entity, struct wr_unmet *unmet)
{
	const weir_verdict *verdict = &entity->verdict;
	bool input = verdict->cause != WEIR_CAUSE_ROOM;
	unsigned port = verdict->on;

	if (port == WR_NO_SUBJECT && !wr_condition_port(unmet->plan, &port, &input))
		return false;
	if (input)
		unmet->input = &entity->inputs[port];
	else
		unmet->output = &entity->outputs[port];
	return true;
}

static void explain_gates(weir_view *view, bool *met, wr_unmet_fn *fn, void *arg)
{
	weir_entity *entity = view->entity;
	char name[80], fences[160], detail[256];

	for (unsigned i = 0; i < entity->input_count; i++) {
		const char *port = entity->inputs[i].plan->port->name;
		entity->verdict.fence_count = 0;
		if (entity->inputs[i].untaken || !wr_gate_ask(view, i))
			continue;
		*met = false;
		snprintf(name, sizeof name, "gate on %s", port);
		detail_fences(entity, fences, sizeof fences);
		if (entity->verdict.cause == WEIR_CAUSE_TOLD)
			snprintf(detail, sizeof detail, "%s", fences);
		else
			snprintf(detail, sizeof detail, "waits for device work on '%s': %s", port, fences);
		fn(&(struct wr_unmet){.condition = name,
				      .says = WR_SAYS_EVENT,
				      .cause = entity->verdict.cause,
				      .on = i,
				      .detail = detail,
				      .input = &entity->inputs[i]},
		   arg);
	}
}

weir_status wr_entity_refuse_fence(weir_entity *entity)
{
	size_t count = entity->fronts_closed ? entity->asked_count : entity->gathering_count;
	const char *name = wr_load_relaxed(&entity->why_of);
	weir_view view = {.entity = entity, .looks = true};
	bool found = false;

	for (size_t i = 0; i < count && !found; i++) {
		ask_condition(&view, &entity->conditions[i]);
		for (size_t k = 0; k < entity->verdict.fence_count && !found; k++)
			found = wr_fence_query(entity->graph->system, entity->verdict.fences[k]) ==
				WEIR_E_INVALID;
		if (found)
			name = entity->conditions[i].plan->name;
	}
	if (!found && wr_system_has_promises(entity->graph->system)) { /* stale since the review (T17) */
		wr_poke(entity);
		return WEIR_OK;
	}
	return wr_fail_in(WEIR_E_INVALID, entity->plan->name,
			  "condition '%s' waits for a fence that was never recorded in this graph: name one "
			  "that weir_stream_record or weir_message_fences gave",
			  name ? name : "?");
}

/* WAIT without a source, of no queue: only a poke can change it. */
static bool find_outside_wait(weir_view *view, size_t from, size_t to, const char **name, const char **why)
{
	weir_entity *entity = view->entity;
	const weir_verdict *verdict = &entity->verdict;

	for (size_t i = from; i < to; i++) {
		struct wr_condition *condition = &entity->conditions[i];
		struct wr_unmet unmet = {.plan = condition->plan};
		ask_condition(view, condition);
		if (verdict->answer != WR_WAIT || verdict->external || verdict->fence_count ||
		    verdict->at != INT64_MAX ||
		    (wr_cause_is_of_queue(verdict->cause) && find_port(entity, &unmet)))
			continue;
		*name = condition->plan->name;
		*why = verdict->why;
		return true;
	}
	return false;
}

bool wr_entity_waits_outside(weir_entity *entity, const char **condition, const char **why)
{
	weir_view view = {.entity = entity, .looks = true};

	if (find_outside_wait(&view, 0, entity->gathering_count, condition, why))
		return true;
	if (!entity->fronts_closed)
		return false;
	for (unsigned i = 0; i < entity->input_count; i++) {
		entity->verdict.fence_count = 0;
		if (!entity->inputs[i].untaken && wr_gate_ask(&view, i))
			return false;
	}
	return find_outside_wait(&view, entity->gathering_count, entity->asked_count, condition, why);
}

static void explain_phase(weir_view *view, size_t from, size_t to, bool *met, wr_unmet_fn *fn, void *arg)
{
	weir_entity *entity = view->entity;
	char name[160]; /* "cuda_stream on in", or the condition's name alone if it names no port */

	for (size_t i = from; i < to; i++) {
		struct wr_condition *condition = &entity->conditions[i];
		struct wr_unmet unmet = {.plan = condition->plan, .asked = condition, .condition = name};
		const weir_port *port = NULL;
		ask_condition(view, condition);
		if (entity->verdict.answer == WR_READY)
			continue;
		*met = false;
		if (find_port(entity, &unmet) && unmet.plan->kind != &wr_instances_condition)
			port = unmet.output ? unmet.output->plan->port : unmet.input->plan->port;
		snprintf(name, sizeof name, "%s%s%s", unmet.plan->name, port ? " on " : "",
			 port ? port->name : "");
		explain_verdict(view, &unmet, fn, arg);
	}
}

static void explain_content_ports(weir_view *view, bool *met, wr_unmet_fn *fn, void *arg)
{
	weir_entity *entity = view->entity;

	for (unsigned i = 0; i < entity->input_count; i++) {
		const struct wr_input *input = &entity->inputs[i];
		struct wr_unmet unmet = {.condition = input->plan->port->name, .input = input};
		entity->verdict.fence_count = 0;
		if (wr_content_port_ask(view, i) == WR_READY)
			continue;
		*met = false;
		explain_verdict(view, &unmet, fn, arg);
	}
}

static void explain_claims(weir_entity *entity, wr_unmet_fn *fn, void *arg)
{
	char detail[200];

	for (size_t i = 0; i < entity->claim_count; i++) {
		if (!wr_claim_is_refused(&entity->claims[i]))
			continue;
		wr_claim_describe(&entity->claims[i], detail, sizeof detail);
		fn(&(struct wr_unmet){.condition = "memory_available",
				      .says = WR_SAYS_WAIT,
				      .cause = WEIR_CAUSE_MEMORY,
				      .on = entity->claims[i].from->id,
				      .detail = detail,
				      .claim = &entity->claims[i]},
		   arg);
	}
}

void wr_entity_explain(weir_entity *entity, bool draining, wr_unmet_fn *fn, void *arg)
{
	weir_view view = {.entity = entity, .looks = true, .draining = draining};
	bool met = true;

	explain_phase(&view, 0, entity->gathering_count, &met, fn, arg);
	explain_content_ports(&view, &met, fn, arg);
	if (met && entity->fronts_closed)
		explain_gates(&view, &met, fn, arg);
	if (met && entity->fronts_closed)
		explain_phase(&view, entity->gathering_count, entity->asked_count, &met, fn, arg);
	if ((met && entity->fronts_closed) || wr_claims_kept(entity))
		explain_claims(entity, fn, arg);
	if (met && draining && entity->root)
		fn(&(struct wr_unmet){.condition = "drain",
				      .says = WR_SAYS_NEVER,
				      .cause = WEIR_CAUSE_DRAIN,
				      .on = WR_NO_SUBJECT,
				      .detail = "draining"},
		   arg);
}

/* === collecting === */

enum { LOOKS = 3 }; /* looks again before an entity counts as parked without a reason */
#define LOOK_NS 1000000

struct collecting {
	struct wr_standstill *standstill;
	weir_entity *entity;
	bool room; /* a condition named an output */
	bool aged; /* a cause of it says how old messages are */
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

/* ", 'boxes' shows a message of 1.2 s ago": once for an entity, of ports that give a message again. */
static void detail_ages(struct collecting *collecting, char *text, size_t room)
{
	weir_entity *entity = collecting->entity;

	for (size_t i = 0; !collecting->aged && i < entity->input_count; i++) {
		const struct wr_input *input = &entity->inputs[i];
		size_t used = strlen(text);
		int64_t since;

		if (!input->count || !input->connections[0]->queue.shows ||
		    !wr_queue_shown(&input->connections[0]->queue, &since))
			continue;
		snprintf(text + used, room - used, ", '%s' shows a message of %s ago",
			 input->plan->port->name, wr_time_shown(wr_now() - since).text);
	}
	collecting->aged = true;
}

static void collect_condition(const struct wr_unmet *unmet, void *arg)
{
	struct collecting *collecting = arg;
	struct wr_cause cause = cause_of(collecting, unmet);
	char text[400];
	int64_t left = collecting->entity->verdict.at;
	bool of_queue;

	if (unmet->claim) {
		collect_claim(collecting, unmet);
		return;
	}
	snprintf(text, sizeof text, "%s", unmet->detail);
	if (unmet->says == WR_SAYS_TIME) {
		left -= wr_now();
		snprintf(text, sizeof text, "%s, due in %s", unmet->detail,
			 wr_time_shown(left > 0 ? left : 0).text);
	}
	detail_ages(collecting, text, sizeof text);
	cause.detail = text;
	of_queue = unmet->says == WR_SAYS_WAIT && wr_cause_is_of_queue(unmet->cause);
	if (of_queue && unmet->input)
		blame_sender(unmet->input, unmet->needed ? unmet->needed : unmet->input->need, &cause);
	if (of_queue && unmet->output) {
		blame_receiver(unmet->output, unmet->needed ? unmet->needed : unmet->output->needs, &cause);
		collecting->room = true;
	}
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

		blame_receiver(&entity->outputs[i], entity->outputs[i].needs, &cause);
		snprintf(condition, sizeof condition, "room on %s", entity->outputs[i].plan->port->name);
		if (cause.connection)
			add_cause(collecting->standstill, &cause);
	}
}

void wr_standstill_add_owned(struct wr_standstill *standstill, weir_entity *entity, bool draining)
{
	struct collecting collecting = {.standstill = standstill, .entity = entity};

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
		snprintf(detail, sizeof detail, "runs for %s", wr_time_shown(wr_now() - since).text);
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
		snprintf(detail, sizeof detail, "its timer has been due for %s: %s", wr_time_shown(late).text,
			 scheduler->workers_keep_time ? "weir's threads did not run" : late_loop(scheduler));
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

void wr_standstill_collect(struct wr_standstill *standstill, weir_scheduler *scheduler)
{
	bool ended;

	wr_mutex_lock(&scheduler->lock);
	while (scheduler->explaining)
		wr_cond_wait(&scheduler->changed, &scheduler->lock, WR_FOREVER);
	ended = wr_load(&scheduler->phase) == WR_ENDED && !scheduler->starting;
	/* Between two runs the caller is the only thread that asks, and no run starts before this is false.
	 */
	scheduler->explaining = ended;
	wr_mutex_unlock(&scheduler->lock);
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

/*
 * === the text ===
 *
 * The answer to "why does the run stand still?". Each entity is followed along one of its causes: a root
 * cause if it has one, else to the entity that could change the cause. Each such path ends at a root cause
 * or in a circular wait. Those are printed, and the number of the other entities.
 */

enum { PRINTED_MOST = 8 }; /* root causes and circular waits */

const char *wr_says_text(enum wr_says says)
{
	static const char *const words[] = {
		[WR_SAYS_WAIT] = "WAIT",      [WR_SAYS_TIME] = "WAIT_TIME", [WR_SAYS_EVENT] = "WAIT_EVENT",
		[WR_SAYS_NEVER] = "NEVER",    [WR_SAYS_BUSY] = "BUSY",      [WR_SAYS_PARKED] = "PARKED",
		[WR_SAYS_NOTHING] = "SILENT", [WR_SAYS_TWO] = "MISUSED",
	};

	return words[says];
}

/* At the end a time that an entity waits for beside other causes would not have helped: it is no root cause.
 */
static bool is_root(const struct wr_standstill *s, const struct wr_cause *cause)
{
	return cause->blames == WR_NO_ENTITY && !(s->at_end && cause->says == WR_SAYS_TIME);
}

/* The cause that the entity is followed along; NULL: it waits for nothing. */
static const struct wr_cause *followed_cause(const struct wr_standstill *s, size_t entity)
{
	const struct wr_cause *found = NULL;

	for (size_t i = s->first[entity]; i < s->first[entity + 1]; i++)
		if (is_root(s, &s->list[i]))
			return &s->list[i];
		else if (!found || found->says == WR_SAYS_TIME)
			found = &s->list[i];
	return found;
}

void wr_cause_print_queue(const struct wr_cause *cause, struct wr_text *text)
{
	const struct wr_connection *connection = cause->connection;

	if (cause->full) {
		wr_text_add(text, "%s -> %s is full (%zu of %zu)", connection->from, connection->to,
			    cause->held, cause->wanted);
		if (cause->blames == WR_NO_ENTITY && connection->outlet)
			wr_text_add(text, ": nothing takes from the outlet");
		return;
	}
	wr_text_add(text, "%s has %zu of %zu messages", connection->to, cause->held, cause->wanted);
	if (cause->inlet)
		wr_text_add(text, ": its inlet is open and nothing is pushed");
	else
		wr_text_add(text, " from %s", connection->from);
}

static void print_cause(const struct wr_standstill *s, const struct wr_cause *cause, struct wr_text *text)
{
	const char *name = wr_graph_entity_at(s->graph, cause->entity)->plan->name;

	if (cause->connection && wr_instances_inside(cause->connection))
		wr_text_add(text, "%s waits: %s (%s)", name, wr_instances_condition.name,
			    wr_says_text(cause->says));
	else if (cause->connection)
		wr_cause_print_queue(cause, text);
	else
		wr_text_add(text, "%s waits: %s: %s (%s)", name, cause->condition, cause->detail,
			    wr_says_text(cause->says));
}

/* All root causes of one entity. */
static void print_roots(const struct wr_standstill *s, size_t entity, struct wr_text *text)
{
	const char *between = "";

	for (size_t i = s->first[entity]; i < s->first[entity + 1]; i++) {
		if (!is_root(s, &s->list[i]) && &s->list[i] != followed_cause(s, entity))
			continue;
		wr_text_add(text, "%s", between);
		print_cause(s, &s->list[i], text);
		between = ", ";
	}
}

static void print_circle(struct wr_standstill *s, size_t begin, struct wr_text *text)
{
	const struct wr_cause *cause = followed_cause(s, begin), *full = NULL, *claim = NULL;
	const char *between = "";
	size_t entity = begin;

	wr_text_add(text, "circular wait: ");
	do {
		cause = followed_cause(s, entity);
		s->marks[entity] = WR_ROOT;
		entity = cause->blames;
		/* Between its parts an entity is one place. */
		if (cause->connection && wr_instances_inside(cause->connection))
			continue;
		full = full || !cause->full ? full : cause;
		claim = claim || !cause->claim ? claim : cause;
		wr_text_add(text, "%s", between);
		print_cause(s, cause, text);
		between = ", ";
	} while (entity != begin);
	if (claim)
		wr_text_add(text, "; raise the size of pool '%s', or wait for fewer messages at once",
			    wr_memory_pool_of(claim->claim)->plan->name);
	else if (full)
		wr_text_add(text, "; raise the capacity of %s, or wait for fewer messages at once",
			    full->connection->to);
	else
		wr_text_add(text, "; each waits for a message from the next: give one of these connections "
				  "\"initial_messages\"");
}

/*
 * Follows one entity to its root cause or circular wait and marks the entities on the path as waiting behind
 * it. Returns true if the root or circle was not found before.
 */
static bool follow_entity(struct wr_standstill *s, size_t from, struct wr_text *text, bool print)
{
	size_t entity = from;
	const struct wr_cause *cause;
	bool found = false;

	while (s->marks[entity] == WR_UNSEEN && (cause = followed_cause(s, entity)) &&
	       cause->blames != WR_NO_ENTITY) {
		s->marks[entity] = WR_WALKED;
		entity = cause->blames;
	}
	if (s->marks[entity] == WR_WALKED) {
		struct wr_text ignored = {0};

		print_circle(s, entity, print ? text : &ignored);
		wr_text_finish(&ignored);
		found = true;
	} else if (s->marks[entity] == WR_UNSEEN && followed_cause(s, entity)) {
		s->marks[entity] = WR_ROOT;
		if (print)
			print_roots(s, entity, text);
		found = true;
	}
	for (entity = from; s->marks[entity] == WR_WALKED; entity = followed_cause(s, entity)->blames)
		s->marks[entity] = WR_BEHIND;
	return found;
}

/* Of an entity with instances some part is, and none is a root; its parts are not counted. */
static bool is_behind(const struct wr_standstill *s, weir_entity *entity)
{
	bool behind = false;
	weir_entity *part;

	if (entity->plan->role > WR_DEALER)
		return false;
	for (uint32_t k = 0; (part = wr_instances_part(entity, k)); k++) {
		if (s->marks[part->id] == WR_ROOT)
			return false;
		behind |= s->marks[part->id] == WR_BEHIND;
	}
	return behind;
}

static void follow_all(struct wr_standstill *s, bool (*from)(weir_entity *entity), struct wr_text *text)
{
	size_t found = 0, behind = 0;

	for (size_t i = 0; i < wr_graph_count_all(s->graph); i++) {
		struct wr_text one = {0};

		if (from && !from(wr_graph_entity_at(s->graph, i)))
			continue;
		if (follow_entity(s, i, &one, found < PRINTED_MOST) && found++ < PRINTED_MOST) {
			wr_text_add(text, "%s%s", found > 1 ? "; " : "", one.text ? one.text : "");
			text->status = text->status ? text->status : one.status;
		}
		wr_text_finish(&one);
	}
	for (size_t i = 0; i < wr_graph_count_all(s->graph); i++)
		behind += is_behind(s, wr_graph_entity_at(s->graph, i));
	if (found > PRINTED_MOST)
		wr_text_add(text, "; and %zu more causes", found - PRINTED_MOST);
	if (behind)
		wr_text_add(text, "; %zu other%s wait%s behind %s", behind, behind == 1 ? "" : "s",
			    behind == 1 ? "s" : "", found == 1 ? "it" : "them");
}

void wr_standstill_text(struct wr_standstill *standstill, bool (*from)(weir_entity *entity),
			struct wr_text *text)
{
	if (standstill->status) {
		text->status = standstill->status;
		return;
	}
	memset(standstill->marks, WR_UNSEEN, wr_graph_count_all(standstill->graph));
	wr_text_bytes(text, "", 0);
	follow_all(standstill, from, text);
}

const struct wr_cause *wr_standstill_root(const struct wr_standstill *standstill)
{
	const struct wr_cause *inside = NULL; /* what parts of an entity wait for among themselves */

	for (size_t i = 0; !standstill->status && i < standstill->count; i++) {
		const struct wr_cause *cause = followed_cause(standstill, standstill->list[i].entity);

		if (standstill->marks[cause->entity] != WR_ROOT)
			continue;
		if (!cause->connection || !wr_instances_inside(cause->connection))
			return cause;
		inside = inside ? inside : cause;
	}
	return inside;
}
