/*
 * Explains why an entity is not ready (C5): asks each condition once more and reports those that do not hold,
 * with a detail. Of the entity only the verdict changes, which every review overwrites. The fronts do not
 * change, so content conditions are asked only if a review has closed the fronts.
 */
#include <stdio.h>

#include "base/clock.h"
#include "base/status.h"
#include "base/words.h"
#include "scheduler/ask.h"
#include "scheduler/memory_pool.h"
#include "scheduler/run.h"

/* "1 fence pending, oldest 1.2 ms, producer blur" */
static void detail_fences(const weir_entity *entity, char *text, size_t room)
{
	const weir_verdict *verdict = &entity->verdict;
	const char *producer = "?";
	int64_t oldest = 0;

	for (size_t i = 0; i < verdict->fence_count; i++) {
		int64_t age = 0;
		const char *name = wr_fence_producer(entity->graph->system, verdict->fences[i], &age);
		if (!i || age > oldest) {
			oldest = age;
			producer = name;
		}
	}
	snprintf(text, room, "%zu fence%s pending, oldest %.1f ms, producer %s", verdict->fence_count,
		 verdict->fence_count == 1 ? "" : "s", (double)oldest / 1e6, producer);
}

/* "64 of 64 ticks in flight, oldest 1.2 s, on stream of 'spin'". */
static void detail_in_flight(const weir_entity *entity, char *text, size_t room)
{
	const struct wr_flight *flight = &entity->flight;
	int64_t age = 0;
	const char *owner = wr_fence_producer(entity->graph->system, flight->ends[flight->first].fence, &age);
	bool long_ago = age >= 1000000000;

	snprintf(text, room, "%llu of %zu ticks in flight, oldest %.1f %s, on stream of '%s'",
		 (unsigned long long)(flight->ticks - flight->completed), wr_flight_limit(flight),
		 (double)age / (long_ago ? 1e9 : 1e6), long_ago ? "s" : "ms", owner);
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

/* Adds verdict and detail to what is unmet, and reports it. */
static void explain_verdict(weir_entity *entity, struct wr_unmet *unmet, wr_unmet_fn *fn, void *arg)
{
	const weir_verdict *verdict = &entity->verdict;
	int64_t told_at = unmet->asked && verdict->fence_count == 1
				  ? wr_told_fence_at(unmet->asked, verdict->fences[0])
				  : 0;
	char detail[200], fences[160];

	unmet->says = verdict_says(verdict);
	unmet->cause = verdict->cause;
	unmet->on = verdict->on;
	unmet->needed = verdict->needed;
	unmet->detail = detail;
	if (told_at) {
		detail_fences(entity, fences, sizeof fences);
		snprintf(detail, sizeof detail, "told %.1f ms ago: %s", (double)(wr_now() - told_at) / 1e6,
			 fences);
	} else if (verdict->fence_count && verdict->cause == WEIR_CAUSE_BOUND)
		detail_in_flight(entity, detail, sizeof detail);
	else if (verdict->fence_count)
		detail_fences(entity, detail, sizeof detail);
	else if (!(verdict->external & WR_DESCRIPTOR) || !unmet->asked ||
		 !wr_descriptor_describe(unmet->asked, detail, sizeof detail))
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

static bool some_gate_is_shut(weir_view *view)
{
	weir_entity *entity = view->entity;
	bool shut = false;

	for (unsigned i = 0; i < entity->input_count; i++) {
		entity->verdict.fence_count = 0;
		shut |= entity->inputs[i].gate && wr_gate_ask(view, i);
	}
	return shut;
}

static void explain_gates(weir_view *view, bool *met, wr_unmet_fn *fn, void *arg)
{
	weir_entity *entity = view->entity;
	char name[80], fences[160], detail[256];

	for (unsigned i = 0; i < entity->input_count; i++) {
		const char *port = entity->inputs[i].plan->port->name;
		entity->verdict.fence_count = 0;
		if (!entity->inputs[i].gate || !wr_gate_ask(view, i))
			continue;
		*met = false;
		snprintf(name, sizeof name, "gate on %s", port);
		detail_fences(entity, fences, sizeof fences);
		snprintf(detail, sizeof detail, "waits for device work on '%s': %s", port, fences);
		fn(&(struct wr_unmet){.condition = name,
				      .says = WR_SAYS_EVENT,
				      .cause = WEIR_CAUSE_DEVICE,
				      .on = i,
				      .detail = detail,
				      .input = &entity->inputs[i]},
		   arg);
	}
}

/* WAIT without a source: only a poke can change it. */
static bool waits_for_a_poke(const weir_verdict *verdict)
{
	return verdict->answer == WR_WAIT && !verdict->external && !verdict->fence_count &&
	       verdict->at == INT64_MAX;
}

/* Drops the fences of other conditions first. */
static void ask_condition(weir_view *view, struct wr_condition *condition)
{
	view->entity->verdict.fence_count = 0;
	wr_condition_ask(view, condition);
	wr_verdict_check_cause(view, condition);
}

static bool names_unknown_fence(weir_view *view, struct wr_condition *condition)
{
	weir_entity *entity = view->entity;

	ask_condition(view, condition);
	for (size_t i = 0; i < entity->verdict.fence_count; i++)
		if (wr_fence_query(entity->graph->system, entity->verdict.fences[i]) == WEIR_E_INVALID)
			return true;
	return false;
}

weir_status wr_entity_refuse_fence(weir_entity *entity)
{
	size_t count = entity->fronts_closed ? entity->condition_count : entity->gathering_count;
	const char *name = wr_load_relaxed(&entity->why_of);
	weir_view view = {.entity = entity};

	for (size_t i = 0; i < count; i++) {
		if (!names_unknown_fence(&view, &entity->conditions[i]))
			continue;
		name = entity->conditions[i].plan->name;
		break;
	}
	return wr_fail_in(WEIR_E_INVALID, entity->plan->name,
			  "condition '%s' waits for a fence that was never recorded in this graph: name one "
			  "that weir_stream_record or weir_message_fences gave",
			  name ? name : "?");
}

static bool find_outside_wait(weir_view *view, size_t from, size_t to, const char **name, const char **why)
{
	weir_entity *entity = view->entity;

	for (size_t i = from; i < to; i++) {
		struct wr_condition *condition = &entity->conditions[i];
		struct wr_unmet unmet = {.plan = condition->plan};
		ask_condition(view, condition);
		if (!waits_for_a_poke(&entity->verdict) ||
		    (wr_cause_is_of_queue(entity->verdict.cause) && find_port(entity, &unmet)))
			continue;
		*name = condition->plan->name;
		*why = entity->verdict.why;
		return true;
	}
	return false;
}

bool wr_entity_waits_outside(weir_entity *entity, const char **condition, const char **why)
{
	weir_view view = {.entity = entity};

	if (find_outside_wait(&view, 0, entity->gathering_count, condition, why))
		return true;
	if (!entity->fronts_closed || some_gate_is_shut(&view))
		return false;
	return find_outside_wait(&view, entity->gathering_count, entity->condition_count, condition, why);
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
		if (find_port(entity, &unmet))
			port = unmet.output ? unmet.output->plan->port : unmet.input->plan->port;
		snprintf(name, sizeof name, "%s%s%s", unmet.plan->name, port ? " on " : "",
			 port ? port->name : "");
		explain_verdict(entity, &unmet, fn, arg);
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
		explain_verdict(entity, &unmet, fn, arg);
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
	weir_view view = {.entity = entity};
	bool met = true;

	explain_phase(&view, 0, entity->gathering_count, &met, fn, arg);
	explain_content_ports(&view, &met, fn, arg);
	if (met && entity->fronts_closed)
		explain_gates(&view, &met, fn, arg);
	if (met && entity->fronts_closed)
		explain_phase(&view, entity->gathering_count, entity->condition_count, &met, fn, arg);
	if (met && entity->fronts_closed)
		explain_claims(entity, fn, arg);
	if (met && draining && entity->root)
		fn(&(struct wr_unmet){.condition = "drain",
				      .says = WR_SAYS_NEVER,
				      .cause = WEIR_CAUSE_DRAIN,
				      .on = WR_NO_SUBJECT,
				      .detail = "draining"},
		   arg);
}
