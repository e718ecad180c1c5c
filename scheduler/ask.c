/*
 * Decides whether an entity may tick. Its owner asks all conditions (C2): first the gathering ones, which
 * look at inboxes; if all of them hold, it closes the fronts and asks the content ones, which look at the
 * fronts (C4).
 *
 * The verdicts are combined by AND. If any is NEVER, the result is NEVER; if all are READY, it is READY.
 * Otherwise one unmet condition is chosen and its sources are armed. The order of preference: a condition
 * that only a poke can change (no source could help before that poke), an external one, fences (those of
 * several conditions are joined to one signal), the latest time.
 *
 * Implied gates (C8): messages of a host port reach compute only when they are finished. A gate belongs to
 * its port. It requires no number of messages and is asked after the front was closed, before content
 * conditions. If no message with fences was pushed in this run, no gate is asked (weir_entity.front_checks).
 */
#include "scheduler/ask.h"

#include <string.h>

#include "base/status.h"

enum rank { RANK_READY, RANK_TIME, RANK_FENCES, RANK_EXTERNAL, RANK_POKE };

/* Of a WAIT. */
static enum rank verdict_rank(const weir_verdict *verdict)
{
	if (verdict->external)
		return RANK_EXTERNAL;
	if (verdict->fence_count > verdict->fences_from)
		return RANK_FENCES;
	return verdict->at == INT64_MAX ? RANK_POKE : RANK_TIME;
}

/*
 * The combined result of the conditions asked so far. Fences are collected in the entity's verdict; those of
 * a condition that is not chosen are removed again.
 */
struct sum {
	enum rank rank;
	int64_t at;
	uint8_t external;
	size_t fences;
	int signal; /* of the conditions that named the fences */
	weir_cause cause;
	uint32_t on; /* its subject, as in wr_cause_word */
	const char *why, *of;
};

/* A later condition is chosen, so the fences of the earlier ones must not be armed. */
static void drop_earlier_fences(weir_verdict *verdict, size_t fences)
{
	if (!fences)
		return;
	verdict->fence_count -= fences;
	memmove(verdict->fences, verdict->fences + fences, verdict->fence_count * sizeof *verdict->fences);
}

/* Two waits for one stream become one, for the later timeline value. */
static void verdict_join_fences(weir_verdict *verdict)
{
	size_t kept = verdict->fences_from;

	for (size_t i = kept; i < verdict->fence_count; i++)
		kept = wr_fences_add(verdict->fences, kept, verdict->fences[i]);
	verdict->fence_count = kept;
}

/*
 * A flag signal arms what it can and leaves the rest to a callback. Inline is used only if both ask for it.
 */
static int join_signals(int a, int b)
{
	if (a == WR_SIGNAL_FLAG || b == WR_SIGNAL_FLAG)
		return WR_SIGNAL_FLAG;
	return a == b ? a : WR_SIGNAL_CALLBACK;
}

/* Of the chosen condition only: a missing message may never come. */
static inline void sum_choose(struct sum *sum, const weir_verdict *child, enum rank rank, int signal,
			      const char *of)
{
	sum->at = child->at;
	sum->external = child->external;
	sum->fences = child->fence_count;
	sum->signal = signal;
	sum->rank = rank;
	sum->cause = child->cause;
	sum->on = child->on;
	sum->why = child->why;
	sum->of = of;
}

/* One condition waits already, and not for a poke. */
__attribute__((noinline)) static void add_another(struct sum *sum, weir_verdict *child, int signal,
						  const char *of)
{
	enum rank rank = verdict_rank(child);
	int64_t at = sum->at;

	if (rank == RANK_FENCES && sum->rank == RANK_FENCES) {
		verdict_join_fences(child);
		sum_choose(sum, child, rank, join_signals(sum->signal, signal), of);
		sum->at = at < child->at ? at : child->at;
		return;
	}
	if (rank > RANK_FENCES && rank > sum->rank)
		drop_earlier_fences(child, sum->fences);
	if (rank > sum->rank || (rank == RANK_TIME && rank == sum->rank && child->at > at))
		sum_choose(sum, child, rank, signal, of);
	else
		child->fence_count = sum->fences;
}

/* Most entities wait for one condition, or for several pokes, of which the first is as good as any. */
__attribute__((noinline)) static void add_to_sum(struct sum *sum, weir_verdict *child, int signal,
						 const char *of)
{
	if (sum->rank == RANK_READY)
		sum_choose(sum, child, verdict_rank(child), signal, of);
	else if (sum->rank == RANK_POKE)
		child->fence_count = sum->fences;
	else
		add_another(sum, child, signal, of);
}

__attribute__((noinline)) static bool refuse_verdict(weir_view *view)
{
	bool silent = view->entity->verdict.answer == WR_SILENT;

	wr_view_misuse(view,
		       silent ? "gave no verdict: each ask must call one of weir_verdict_..."
			      : "said READY or NEVER beside another verdict: each ask gives one answer");
	return false;
}

weir_status wr_entity_verdict_failure(const weir_entity *entity)
{
	const weir_verdict *verdict = &entity->verdict;

	if (!verdict->misuse)
		return verdict->failed;
	return wr_fail(verdict->failed, "condition '%s' %s", verdict->misuse_of, verdict->misuse);
}

/* The first port that a parameter of the condition names, if it is an input. */
static uint32_t named_input(const struct wr_condition *condition)
{
	bool input = false;
	unsigned port = 0;

	return wr_condition_port(condition->plan, &port, &input) && input ? port : WR_NO_SUBJECT;
}

static bool is_cause(weir_cause cause)
{
	switch (cause) {
#define CAUSE_CASE(name, value, text) case name:
		WEIR_CAUSE_TABLE(CAUSE_CASE)
#undef CAUSE_CASE
		return true;
	}
	return false;
}

__attribute__((noinline)) void wr_verdict_check_new_cause(weir_view *view, struct wr_condition *condition)
{
	const weir_entity *entity = view->entity;
	weir_verdict *verdict = &view->entity->verdict;
	size_t ports = verdict->cause == WEIR_CAUSE_ROOM ? entity->output_count : entity->input_count;
	uint64_t given = wr_cause_word(verdict->cause, verdict->on);

	if (!verdict->cause)
		wr_verdict_give_cause(verdict, WEIR_CAUSE_OWN, named_input(condition));
	else if (!is_cause(verdict->cause))
		wr_view_misuse(view, "gave a cause that is none of weir_cause");
	else if (verdict->on != WR_NO_SUBJECT && verdict->on >= ports)
		wr_view_misuse(view, "gave its cause a port that the entity does not have: "
				     "take the index from weir_values_int");
	if (verdict->on >= ports ||
	    verdict->cause == WEIR_CAUSE_MEMORY) /* only the scheduler numbers pools */
		verdict->on = WR_NO_SUBJECT;
	if (!entity->verdict.failed && given == wr_cause_word(verdict->cause, verdict->on))
		condition->cause_checked = given;
}

/* Asks conditions [from, to), which are of one phase. Returns false if one of them is NEVER. */
__attribute__((always_inline)) static inline bool ask_phase(weir_view *view, size_t from, size_t to,
							    struct sum *sum)
{
	weir_entity *entity = view->entity;

	for (size_t i = from; i < to; i++) {
		struct wr_condition *condition = &entity->conditions[i];
		wr_condition_ask(view, condition);
		if (entity->verdict.answer == WR_READY)
			continue;
		if (entity->verdict.answer >= WR_SILENT)
			return refuse_verdict(view);
		wr_verdict_check_cause(view, condition);
		if (entity->verdict.answer == WR_NEVER) {
			sum->of = condition->plan->name;
			return false;
		}
		add_to_sum(sum, &entity->verdict, condition->signal, condition->plan->name);
	}
	return true;
}

enum wr_answer wr_content_port_lacks(weir_view *view, unsigned input)
{
	weir_verdict *verdict = &view->entity->verdict;
	enum wr_answer answer = wr_view_messages(view, input, 0);

	if (answer == WR_READY)
		return WR_READY;
	wr_verdict_clear(verdict);
	weir_verdict_wait(verdict, "too few messages");
	wr_verdict_give_cause(verdict, WEIR_CAUSE_MESSAGES, input);
	return answer;
}

/* Returns false if some port will never hold what a tick takes. */
static bool ask_content_ports(weir_view *view, struct sum *sum)
{
	weir_entity *entity = view->entity;

	for (unsigned i = 0; i < entity->input_count; i++) {
		enum wr_answer answer = wr_content_port_ask(view, i);
		if (answer != WR_READY)
			add_to_sum(sum, &entity->verdict, WR_SIGNAL_CALLBACK,
				   entity->inputs[i].plan->port->name);
		if (answer == WR_NEVER)
			return false;
	}
	return true;
}

/* The first output that lacks room; WR_NO_SUBJECT: none does. */
static uint32_t output_without_room(weir_entity *entity)
{
	for (uint32_t i = 0; i < entity->output_count; i++)
		if (!wr_output_has_room(&entity->outputs[i], entity->outputs[i].max_emits))
			return i;
	return WR_NO_SUBJECT;
}

bool wr_entity_lacks_room(weir_entity *entity)
{
	return output_without_room(entity) != WR_NO_SUBJECT;
}

/* For outputs that no default condition watches: a `block` queue must have room all the same (S3). */
static void ask_output_room(weir_entity *entity, struct sum *sum)
{
	uint32_t output = output_without_room(entity);

	if (output == WR_NO_SUBJECT)
		return;
	wr_verdict_clear(&entity->verdict);
	weir_verdict_wait(&entity->verdict, "no room behind an output");
	wr_verdict_give_cause(&entity->verdict, WEIR_CAUSE_ROOM, output);
	add_to_sum(sum, &entity->verdict, WR_SIGNAL_CALLBACK, "room");
}

/* Returns true if all its receivers (at least one) are DONE and it has no effects of its own (S5). */
static bool receivers_done(weir_entity *entity)
{
	return entity->receivers && !wr_load_acquire(&entity->receivers_left) && !entity->plan->effects;
}

/* Moves one message of each connection in turn, until n have moved or all inboxes are empty. */
static void input_close_front_in_turn(struct wr_input *input, size_t n)
{
	size_t idle = 0;

	while (n && idle < input->count) {
		struct wr_queue *queue = &input->connections[input->next_served]->queue;
		size_t before = wr_queue_front(queue);
		wr_queue_close_front(queue, 1);
		bool moved = wr_queue_front(queue) > before;
		idle = moved ? 0 : idle + 1;
		n -= moved;
		input->next_served = input->next_served + 1 == input->count ? 0 : input->next_served + 1;
	}
}

static void input_close_front(struct wr_input *input)
{
	if (input->set) {
		wr_fan_in_close_fronts(input->set, input->take);
		return;
	}
	if (input->count > 1 && input->take != SIZE_MAX && !input->any_size) {
		input_close_front_in_turn(input, input->take);
		return;
	}
	for (size_t i = 0; i < input->count; i++)
		wr_queue_close_front(&input->connections[i]->queue, input->take);
}

static void entity_close_fronts(weir_entity *entity)
{
	if (entity->fronts_closed)
		return;
	for (size_t i = 0; i < entity->input_count; i++)
		input_close_front(&entity->inputs[i]);
	entity->fronts_closed = true;
}

/* --- implied gates --- */

bool wr_gate_ask(weir_view *view, unsigned input)
{
	weir_verdict *verdict = &view->entity->verdict;

	wr_verdict_clear(verdict);
	return wr_view_wait_for_device(view, input, verdict, "waits for device work");
}

/*
 * Returns true if the condition names a port and no port that it names has a waiting gate. A condition that
 * names no port may read any of them, so it waits for all gates.
 */
static bool gate_lets_ask(const weir_entity *entity, const struct wr_condition *condition)
{
	bool names = false, waits = false;

	for (unsigned i = 0; i < entity->input_count; i++) {
		bool here = wr_condition_names(condition->plan, i, true);
		names |= here;
		waits |= here && entity->inputs[i].gate_waits;
	}
	return names && !waits;
}

/* Returns true if some gate waits. */
static bool ask_gates(weir_view *view, struct sum *sum)
{
	weir_entity *entity = view->entity;
	bool waits = false;

	entity->gated = true;
	for (unsigned i = 0; i < entity->input_count; i++) {
		struct wr_input *input = &entity->inputs[i];
		input->gate_waits = input->gate && wr_gate_ask(view, i);
		if (input->gate_waits)
			add_to_sum(sum, &entity->verdict, entity->gate_signal, input->plan->port->name);
		waits |= input->gate_waits;
	}
	return waits;
}

/* Asks the content conditions of ports without a waiting gate. Returns false if one of them is NEVER. */
static bool ask_beside_gates(weir_view *view, struct sum *sum)
{
	weir_entity *entity = view->entity;
	bool met = true;

	for (size_t i = entity->gathering_count; met && i < entity->condition_count; i++)
		if (gate_lets_ask(entity, &entity->conditions[i]))
			met = ask_phase(view, i, i + 1, sum);
	return met;
}

/* Call after closing the fronts: a sender sets FENCED before it pushes a message with fences (C8). */
static inline uint32_t entity_front_checks(weir_entity *entity)
{
	return wr_load_relaxed(&entity->front_checks);
}

/* Asks the gates, then the content conditions (C8). Returns false if one of them is NEVER. */
__attribute__((noinline)) static bool ask_fronts(weir_view *view, uint32_t checks, struct sum *sum)
{
	weir_entity *entity = view->entity;

	if (checks & WR_CHECK_GATES && ask_gates(view, sum))
		return ask_beside_gates(view, sum);
	return ask_phase(view, entity->gathering_count, entity->condition_count, sum);
}

/*
 * A condition that names a past time instead of READY is asked again at once. If it names one again, be it
 * another, it would do so for ever: in no time on `sim`, in a busy loop on a real clock. So the run fails.
 * Neither review ended in a tick, and the view has one time for all conditions of a review, so one that
 * compares its time with that of the view is never taken for one of these.
 */
__attribute__((noinline)) static bool repeats_past_time(weir_view *view, int64_t at, const char *of)
{
	weir_entity *entity = view->entity;
	bool past = at <= weir_view_now(view);
	bool again = past && of == entity->past_of && entity->context.tick == entity->past_tick;

	entity->past_of = past ? of : NULL;
	entity->past_tick = entity->context.tick;
	return again;
}

/* The inline part: mostly no time is named. */
static inline bool time_repeats(weir_view *view, int64_t at, const char *of)
{
	if (at != INT64_MAX)
		return repeats_past_time(view, at, of);
	view->entity->past_of = NULL;
	return false;
}

/*
 * Returns true if all connected inputs are closed and empty, and none is held, by a compute that has not
 * finished with what it took. During a drain such an entity that waits for a
 * time only must end: its conditions look at no sender, so it would go on for ever (S7).
 */
static bool inputs_closed_and_empty(weir_view *view)
{
	const weir_entity *entity = view->entity;

	for (unsigned i = 0; i < entity->input_count; i++) {
		if (!entity->inputs[i].count)
			continue;
		if (!entity->inputs[i].take)
			return false;
		if (!weir_view_closed(view, i) || weir_view_count(view, i)) /* in this order (S5) */
			return false;
	}
	return true;
}

/* What the entity waits for may come again and again, for ever. */
static bool drain_ends_wait(const struct sum *sum)
{
	return sum->rank == RANK_TIME || sum->external & WR_DESCRIPTOR;
}

/* Literals and a word. A reader that sees a mixed set shows an outdated reason, nothing worse. */
static inline void publish_reason(weir_entity *entity, const char *of)
{
	const weir_verdict *verdict = &entity->verdict;

	wr_store_relaxed(&entity->why, verdict->why);
	wr_store_relaxed(&entity->why_of, of);
	wr_store_relaxed(&entity->cause, wr_cause_word(verdict->cause, verdict->on));
}

static inline void sum_to_verdict(const struct sum *sum, weir_verdict *verdict)
{
	verdict->at = sum->at;
	verdict->external = sum->external;
	verdict->signal = sum->signal;
}

__attribute__((noinline)) static enum wr_answer publish_never(weir_entity *entity, const struct sum *sum)
{
	sum_to_verdict(sum, &entity->verdict);
	entity->verdict.answer = WR_NEVER;
	publish_reason(entity, sum->of);
	return WR_NEVER;
}

static inline enum wr_answer publish_wait(weir_view *view, const struct sum *sum)
{
	weir_verdict *verdict = &view->entity->verdict;

	sum_to_verdict(sum, verdict);
	verdict->answer = WR_WAIT;
	verdict->cause = sum->cause;
	verdict->on = sum->on;
	verdict->why = sum->why;
	verdict->repeats_past = time_repeats(view, sum->at, sum->of);
	publish_reason(view->entity, sum->of);
	return WR_WAIT;
}

/*
 * Returns true if the answers of all gathering conditions are READY, without asking them: fewer ticks than
 * the bound are in flight, and of a default_only entity (entity.c) the ports have what its other conditions
 * need. Otherwise they are asked, so that they name their sources or answer NEVER.
 */
static inline bool gathering_conditions_hold(const weir_entity *entity)
{
	if (entity->flight_full || !entity->default_only)
		return false;
	for (size_t i = 0; i < entity->input_count; i++) /* each is `lone` */
		if (!wr_queue_holds(&entity->inputs[i].connections[0]->queue, entity->inputs[i].need))
			return false;
	for (size_t i = 0; i < entity->output_count; i++)
		if (!wr_output_has_room(&entity->outputs[i], entity->outputs[i].max_emits))
			return false;
	return true;
}

/* Returns false if one of them is NEVER. */
__attribute__((always_inline)) static inline bool ask_gathering(weir_view *view, struct sum *sum)
{
	const weir_entity *entity = view->entity;

	if (gathering_conditions_hold(entity))
		return true;
	return ask_phase(view, entity->in_flight && !entity->flight_full, entity->gathering_count, sum);
}

/* What ends the entity is none of its conditions. */
__attribute__((noinline)) static enum wr_answer never_again(weir_entity *entity, bool draining)
{
	bool done = entity->finished || !draining;

	wr_verdict_give_cause(&entity->verdict, done ? WEIR_CAUSE_DONE : WEIR_CAUSE_DRAIN, WR_NO_SUBJECT);
	entity->verdict.why = entity->finished ? "finished"
			      : draining       ? "draining"
					       : "all receivers are done";
	return WR_NEVER;
}

/* Returns the combined answer; NEVER: its cause and reason are in the verdict. */
__attribute__((always_inline)) static inline enum wr_answer ask_all(weir_view *view, bool draining,
								    struct sum *sum)
{
	weir_entity *entity = view->entity;
	uint32_t checks;

	if (entity->finished || (draining && entity->root) || receivers_done(entity))
		return never_again(entity, draining);
	if (!ask_gathering(view, sum))
		return WR_NEVER;
	if (entity->has_content && !ask_content_ports(view, sum))
		return WR_NEVER;
	if (entity->output_unwatched)
		ask_output_room(entity, sum);
	if (draining && drain_ends_wait(sum) && inputs_closed_and_empty(view))
		return never_again(entity, draining);
	if (sum->rank != RANK_READY)
		return WR_WAIT;
	entity_close_fronts(entity);
	checks = entity_front_checks(entity);
	if (!checks)
		return WR_READY;
	if (!ask_fronts(view, checks, sum))
		return WR_NEVER;
	return sum->rank == RANK_READY ? WR_READY : WR_WAIT;
}

enum wr_answer wr_entity_ask(weir_entity *entity, bool draining)
{
	struct sum sum = {.rank = RANK_READY, .at = INT64_MAX};
	weir_view view = {.entity = entity};

	entity->verdict.fence_count = 0;
	switch (ask_all(&view, draining, &sum)) {
	case WR_NEVER:
		return publish_never(entity, &sum);
	case WR_WAIT:
		return publish_wait(&view, &sum);
	case WR_READY:
	case WR_SILENT:
	case WR_MISUSED:
		break;
	}
	if (entity->timed)
		entity->ready_at = weir_view_now(&view);
	entity->verdict.answer = WR_READY;
	return WR_READY;
}
