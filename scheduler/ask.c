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
#include "scheduler/entity.h"

#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/nearest.h"
#include "base/status.h"
#include "scheduler/graph.h"
#include "scheduler/scheduler.h"

/*
 * The combined result of the conditions asked so far. Fences are collected in the entity's verdict; those of
 * a condition that is not chosen are removed again.
 */
struct sum {
	enum wr_rank rank;
	int64_t at;
	uint8_t external;
	bool passed_over; /* a content condition was not asked */
	size_t fences;
	int signal; /* of the conditions that named the fences */
	weir_cause cause;
	uint32_t on; /* its subject, as in wr_cause_word */
	const char *why, *of;
};

/* Of the chosen condition only: a missing message may never come. */
static inline void sum_choose(struct sum *sum, const weir_verdict *child, enum wr_rank rank, int signal,
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
	enum wr_rank rank = wr_verdict_rank(child);
	int64_t at = sum->at;

	if (rank == WR_RANK_FENCES && sum->rank == WR_RANK_FENCES) {
		/* Flags are armed where they were written; what has none is left to a callback. */
		bool flag = wr_flagging_of(sum->signal) || wr_flagging_of(signal);
		int joined = flag ? WR_SIGNAL_FLAG : sum->signal == signal ? signal : WR_SIGNAL_CALLBACK;
		size_t kept = child->fences_from;
		/* Two waits for one stream become one, for the later timeline value. */
		for (size_t i = kept; i < child->fence_count; i++)
			kept = wr_fences_add(child->fences, kept, child->fences[i]);
		child->fence_count = kept;
		sum_choose(sum, child, rank, joined, of);
		sum->at = at < child->at ? at : child->at;
		return;
	}
	if (rank > WR_RANK_FENCES && rank > sum->rank && sum->fences) { /* which must not be armed then */
		child->fence_count -= sum->fences;
		memmove(child->fences, child->fences + sum->fences,
			child->fence_count * sizeof *child->fences);
	}
	if (rank > sum->rank || (rank == WR_RANK_TIME && rank == sum->rank && child->at > at))
		sum_choose(sum, child, rank, signal, of);
	else
		child->fence_count = sum->fences;
}

/* Most entities wait for one condition, or for several pokes, of which the first is as good as any. */
__attribute__((noinline)) static void add_to_sum(struct sum *sum, weir_verdict *child, int signal,
						 const char *of)
{
	if (sum->rank == WR_RANK_READY)
		sum_choose(sum, child, wr_verdict_rank(child), signal, of);
	else if (sum->rank == WR_RANK_POKE)
		child->fence_count = sum->fences;
	else
		add_another(sum, child, signal, of);
}

__attribute__((noinline)) void wr_verdict_refuse(weir_view *view)
{
	bool silent = view->entity->verdict.answer == WR_SILENT;

	wr_view_misuse(view,
		       silent ? "gave no verdict: each ask must call one of weir_verdict_..."
			      : "said READY or NEVER beside another verdict: each ask gives one answer");
}

weir_status wr_entity_verdict_failure(const weir_entity *entity)
{
	const weir_verdict *verdict = &entity->verdict;

	if (!verdict->misuse)
		return verdict->failed;
	return wr_fail(verdict->failed, "condition '%s' %s", verdict->misuse_of, verdict->misuse);
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
	bool named, input = false;
	unsigned port = 0; /* the first that a parameter of the condition names */

	if (!verdict->cause) {
		named = wr_condition_port(condition->plan, &port, &input) && input;
		wr_verdict_give_cause(verdict, WEIR_CAUSE_OWN, named ? port : WR_NO_SUBJECT);
	} else if (!is_cause(verdict->cause))
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
		if (entity->verdict.answer >= WR_SILENT) {
			wr_verdict_refuse(view);
			return false;
		}
		wr_verdict_check_cause(view, condition);
		if (entity->verdict.answer == WR_NEVER) {
			sum->of = condition->plan->name;
			return false;
		}
		if (wr_verdict_rank(&entity->verdict) == WR_RANK_POKE &&
		    condition->cause_checked == wr_cause_word(entity->verdict.cause, entity->verdict.on))
			condition->poke_why = entity->verdict.why;
		add_to_sum(sum, &entity->verdict, condition->signal, condition->plan->name);
	}
	return true;
}

#define LACKS_MESSAGES "too few messages"

enum wr_answer wr_content_port_lacks(weir_view *view, unsigned input)
{
	weir_verdict *verdict = &view->entity->verdict;
	enum wr_answer answer = wr_view_messages(view, input, 0);

	if (answer == WR_READY)
		return WR_READY;
	wr_verdict_clear(verdict);
	weir_verdict_wait(verdict, LACKS_MESSAGES);
	wr_verdict_give_cause(verdict, WEIR_CAUSE_MESSAGES, input);
	return answer;
}

static bool latest_over(weir_view *view);

/* Returns false if some port will never hold what a tick takes, or nothing new will be shown. */
static bool ask_ports(weir_view *view, struct sum *sum)
{
	weir_entity *entity = view->entity;

	if (entity->only_latest && latest_over(view)) {
		wr_verdict_clear(&entity->verdict);
		weir_verdict_never(&entity->verdict,
				   "all senders are closed, and what they sent last was received");
		wr_verdict_give_cause(&entity->verdict, WEIR_CAUSE_MESSAGES, WR_NO_SUBJECT);
		sum->of = "latest";
		return false;
	}
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
		if (!wr_output_has_room(&entity->outputs[i], wr_output_needs(&entity->outputs[i])))
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

static inline void input_close_front(struct wr_input *input)
{
	if (input->set)
		wr_fan_in_close_fronts(input->set, input->take);
	else if (input->count > 1 && input->take != SIZE_MAX && !input->any_size)
		input_close_front_in_turn(input, input->take);
	else
		for (size_t k = 0; k < input->count; k++)
			wr_queue_close_front(&input->connections[k]->queue, input->take);
}

/*
 * What the next tick does not take is an inbox again, and so is a front that was closed for an alternative
 * that holds no longer: it may have fewer messages than those that hold now need.
 */
void wr_entity_close_chosen(weir_entity *entity)
{
	for (unsigned i = 0; i < entity->input_count; i++) {
		struct wr_input *input = &entity->inputs[i];
		bool taken = !input->chosen, lost = false;
		bool closed = input->set && input->set->front_messages;
		for (size_t k = entity->asked_count; input->chosen && k < entity->condition_count; k++) {
			const struct wr_condition *condition = &entity->conditions[k];
			if (!(condition->held || condition->closed) ||
			    !wr_condition_names(condition->plan, i, true))
				continue;
			taken |= condition->held && input->take;
			lost |= !condition->held;
		}
		input->untaken = !taken;
		for (size_t k = 0; (lost || !taken) && k < input->count; k++)
			wr_queue_reopen_front(&input->connections[k]->queue);
		/* One that was closed for another review stays as it is, for the tick that takes it. */
		for (size_t k = 0; !input->set && k < input->count; k++)
			closed |= wr_queue_front(&input->connections[k]->queue) > 0;
		if (taken && !closed)
			input_close_front(input);
	}
	for (size_t i = entity->asked_count; i < entity->condition_count; i++)
		entity->conditions[i].closed = entity->conditions[i].held;
}

/* --- implied gates --- */

static bool wait_for_front(weir_view *view, unsigned input, bool all, weir_verdict *verdict, const char *why);

static size_t add_pending(weir_entity *entity, const weir_message *message, size_t count, bool all);
static bool wait_for_fetched(const weir_entity *entity, size_t pending, unsigned input, weir_verdict *verdict,
			     const char *why);

static struct wr_queue *latest_queue(const struct wr_input *input)
{
	return &input->connections[0]->queue;
}

/* Reads the incomplete fences of the oldest message that is not shown; false: there is none. */
static bool fetch_oldest(weir_entity *entity, const struct wr_input *input, size_t *pending)
{
	const weir_message *oldest = wr_queue_oldest(latest_queue(input));

	*pending = oldest ? add_pending(entity, oldest, 0, true) : 0;
	return oldest != NULL;
}

bool wr_gate_ask(weir_view *view, unsigned input)
{
	weir_entity *entity = view->entity;
	const struct wr_input *from = &entity->inputs[input];
	size_t pending = 0;

	wr_verdict_clear(&entity->verdict);
	if (from->latest) { /* a look: shows nothing */
		if (from->take && !wr_queue_shown(latest_queue(from), NULL))
			fetch_oldest(entity, from, &pending);
		return wait_for_fetched(entity, pending, input, &entity->verdict,
					"waits for device work of the first message");
	}
	if (!from->gate && !wr_system_has_promises(entity->graph->system))
		return false;
	return wait_for_front(view, input, from->gate, &entity->verdict, "waits for device work");
}

/* --- `latest` ports --- */

static bool some_fetched_failed(const weir_entity *entity, size_t pending);

/*
 * What is finished moves on, two messages at the most: after one alone a message that was finished before
 * this review would not be shown; without a bound a fast sender would keep the owner here for ever. Returns
 * true if the port waits: nothing is shown, or, so that it is told, a fence of the next message has failed.
 */
static bool latest_ask(weir_view *view, unsigned input)
{
	weir_entity *entity = view->entity;
	const weir_scheduler *scheduler = entity->graph->scheduler;
	struct wr_queue *queue = latest_queue(&entity->inputs[input]);
	unsigned lane = scheduler->trace ? wr_lane_here(scheduler) : 0;
	size_t pending = 0;

	wr_verdict_clear(&entity->verdict);
	if (!entity->inputs[input].take)
		return false;
	for (int moved = 0; moved < 2; moved++) {
		if (!fetch_oldest(entity, &entity->inputs[input], &pending) || pending)
			break;
		wr_queue_show(queue, scheduler->trace, lane);
	}
	if (!pending || (wr_queue_shown(queue, NULL) && !some_fetched_failed(entity, pending)))
		return false;
	return wait_for_fetched(entity, pending, input, &entity->verdict,
				"waits for device work of the first message");
}

/* Of an entity with such ports alone. No other input would ever end it. */
static bool latest_over(weir_view *view)
{
	const weir_entity *entity = view->entity;

	for (unsigned i = 0; i < entity->input_count; i++) {
		const struct wr_input *input = &entity->inputs[i];
		if (!input->latest)
			continue;
		if (!input->take || !weir_view_closed(view, i) || wr_queue_count(latest_queue(input)))
			return false; /* `closed` is read before the count (S5) */
	}
	return true;
}

/*
 * In a drain an entity with such ports alone ticks for messages that no tick has received (S7): what is shown
 * could be taken for ever.
 */
static void ask_unseen(weir_entity *entity, struct sum *sum)
{
	bool unseen = false;

	for (size_t i = 0; i < entity->input_count; i++) {
		const struct wr_input *input = &entity->inputs[i];
		unseen |= input->latest && (!input->take || wr_queue_front(latest_queue(input)));
	}
	if (unseen)
		return;
	wr_verdict_clear(&entity->verdict);
	weir_verdict_wait(&entity->verdict, "draining, and what it shows was received");
	wr_verdict_give_cause(&entity->verdict, WEIR_CAUSE_MESSAGES, WR_NO_SUBJECT);
	add_to_sum(sum, &entity->verdict, WR_SIGNAL_CALLBACK, "latest");
}

/*
 * What waits for a poke may wait for a newer message to be shown: its fences are armed. One that has finished
 * since this review looked has no fence that would wake the entity: it is reviewed again.
 */
static void arm_oldest(weir_entity *entity, struct sum *sum)
{
	weir_verdict *verdict = &entity->verdict;

	verdict->fence_count = verdict->fences_from = 0;
	for (size_t i = 0; i < entity->input_count; i++) {
		const struct wr_input *input = &entity->inputs[i];
		size_t pending = 0;

		if (input->latest && input->take && fetch_oldest(entity, input, &pending) && !pending)
			wr_poke(entity);
		for (size_t k = 0; k < pending; k++)
			weir_verdict_fence(verdict, entity->fetched[k]);
	}
	sum->fences = verdict->fence_count;
	sum->signal = entity->gate_signal;
	if (sum->fences)
		sum->rank = WR_RANK_FENCES;
}

/* Returns true if some gate waits. */
__attribute__((noinline)) static bool ask_gates(weir_view *view, struct sum *sum)
{
	weir_entity *entity = view->entity;
	bool waits = false;

	for (unsigned i = 0; i < entity->input_count; i++) {
		struct wr_input *input = &entity->inputs[i];
		input->gate_waits =
			input->latest ? latest_ask(view, i) : !input->untaken && wr_gate_ask(view, i);
		if (input->gate_waits)
			add_to_sum(sum, &entity->verdict, entity->gate_signal, input->plan->port->name);
		waits |= input->gate_waits;
	}
	/* After what is shown was chosen (C8). */
	entity->gated |= (wr_load_relaxed(&entity->front_checks) & WR_CHECK_GATES) != 0;
	return waits;
}

/*
 * Asks the content conditions of ports without a waiting gate. One that names no port may read any of them,
 * so it waits for all gates. Returns false if one of them is NEVER.
 */
__attribute__((noinline)) static bool ask_beside_gates(weir_view *view, struct sum *sum)
{
	weir_entity *entity = view->entity;
	bool met = true;

	for (size_t i = entity->gathering_count; met && i < entity->asked_count; i++) {
		bool names = false, waits = false;
		for (unsigned k = 0; k < entity->input_count; k++) {
			bool here = wr_condition_names(entity->conditions[i].plan, k, true);
			names |= here;
			waits |= here && entity->inputs[k].gate_waits;
		}
		if (names && !waits)
			met = ask_phase(view, i, i + 1, sum);
		else
			sum->passed_over = true;
	}
	return met;
}

/* Asks the gates, then the content conditions (C8). Returns false if one of them is NEVER. */
static inline bool ask_fronts(weir_view *view, uint32_t checks, bool draining, struct sum *sum)
{
	weir_entity *entity = view->entity;
	bool waits, met;

	if (checks & WR_CHECK_TREES) {
		wr_entity_close_chosen(entity);
		checks |= wr_load_relaxed(&entity->front_checks); /* after that (C8) */
	}
	waits = checks & (WR_CHECK_GATES | WR_CHECK_LATEST) && ask_gates(view, sum);
	if (waits)
		met = ask_beside_gates(view, sum);
	else
		met = ask_phase(view, entity->gathering_count, entity->asked_count, sum);
	if (!met || !(checks & WR_CHECK_LATEST))
		return met;
	if (draining && entity->only_latest && sum->rank == WR_RANK_READY)
		ask_unseen(entity, sum);
	if (sum->rank == WR_RANK_POKE)
		arm_oldest(entity, sum);
	return true;
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

/*
 * During a drain such an entity that waits for a time only must end: its conditions look at no sender, so it
 * would go on for ever (S7).
 */
bool wr_view_inputs_over(weir_view *view, bool but_chosen)
{
	const weir_entity *entity = view->entity;

	for (unsigned i = 0; i < entity->input_count; i++) {
		const struct wr_input *input = &entity->inputs[i];
		bool kept;
		if (!input->count)
			continue;
		if (!input->take)
			return false;
		if (!weir_view_closed(view, i)) /* before the count (S5) */
			return false;
		/* No alternative names a `latest` port: what comes there makes no tick due beside other
		 * inputs. */
		kept = input->latest ? entity->only_latest && wr_queue_count(latest_queue(input))
				     : weir_view_count(view, i);
		if (!kept || (but_chosen && input->chosen))
			continue;
		/* No tick takes it if only alternatives name it that are NEVER. */
		kept = !input->chosen;
		for (size_t k = entity->asked_count; !kept && k < entity->condition_count; k++)
			kept = !entity->conditions[k].never &&
			       wr_condition_names(entity->conditions[k].plan, i, true);
		if (kept)
			return false;
	}
	return true;
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
	verdict->repeats_past = sum->at != INT64_MAX && repeats_past_time(view, sum->at, sum->of);
	if (sum->at == INT64_MAX) /* mostly */
		view->entity->past_of = NULL;
	publish_reason(view->entity, sum->of);
	return WR_WAIT;
}

/* The port of a default_only entity that keeps it from ticking: one of these, or none. */
struct lacking {
	const struct wr_condition *condition; /* its default condition, which waited for a poke when asked */
	const struct wr_input *content;       /* an input that content conditions name */
};

static inline enum wr_answer publish_lacking(weir_entity *entity, const struct lacking *lacks)
{
	const struct wr_condition *condition = lacks->condition;
	weir_view view = {.entity = entity};
	struct sum sum = {.at = INT64_MAX};

	if (condition) {
		sum.cause = wr_cause_of_word(condition->cause_checked);
		sum.on = wr_subject_of_word(condition->cause_checked);
		sum.why = condition->poke_why;
		sum.of = condition->plan->name;
	} else {
		sum.cause = WEIR_CAUSE_MESSAGES;
		sum.on = (uint32_t)(lacks->content - entity->inputs);
		sum.why = LACKS_MESSAGES;
		sum.of = lacks->content->plan->port->name;
	}
	return publish_wait(&view, &sum);
}

/*
 * Returns true if it is known what the gathering conditions say, without asking them: fewer ticks than the
 * bound are in flight, and the entity is a default_only one (entity.c), whose other conditions say whether
 * its ports have what a tick takes or may emit, as content conditions imply of theirs. The first port that
 * lacks something is chosen. A condition is asked for its first reason, and where it may answer NEVER: a
 * queue that is open after its messages were counted was open before, so `closed` may be read second here.
 * All ports were looked at, so ask_ports and ask_output_room would find nothing more.
 */
static inline bool gathering_conditions_known(const weir_entity *entity, struct lacking *lacks)
{
	const struct wr_condition *waits = NULL;

	if (entity->flight_full || entity->awaits_fences || !entity->default_only)
		return false;
	for (size_t i = 0; i < entity->input_count; i++) {
		const struct wr_input *input = &entity->inputs[i];
		if (!input->lone || wr_queue_holds(&input->connections[0]->queue, input->need))
			continue; /* one that is not `lone` has no connection */
		if (wr_queue_closed(&input->connections[0]->queue) || !(input->implied || input->content))
			return false;
		waits = waits ? waits : input->implied;
		lacks->content = input;
	}
	for (size_t i = 0; !waits && !lacks->content && i < entity->output_count; i++) {
		if (wr_output_has_room(&entity->outputs[i], wr_output_needs(&entity->outputs[i])))
			continue;
		waits = entity->outputs[i].implied;
		if (!waits)
			return false;
	}
	lacks->condition = waits;
	return !waits || waits->poke_why;
}

/* What ends the entity is none of its conditions. */
__attribute__((noinline)) static enum wr_answer never_again(weir_entity *entity, bool draining,
							    const struct sum *sum)
{
	bool done = entity->finished || !draining;

	wr_verdict_give_cause(&entity->verdict, done ? WEIR_CAUSE_DONE : WEIR_CAUSE_DRAIN, WR_NO_SUBJECT);
	entity->verdict.why = entity->finished ? "finished"
			      : draining       ? "draining"
					       : "all receivers are done";
	return publish_never(entity, sum ? sum : &(struct sum){.at = INT64_MAX});
}

/* Asks the gathering conditions, and for what a tick needs besides. Returns false if one of them is NEVER. */
static inline bool ask_gathering(weir_view *view, struct sum *sum)
{
	weir_entity *entity = view->entity;

	if (!ask_phase(view, entity->in_flight && !entity->flight_full, entity->gathering_count, sum))
		return false;
	if (entity->asks_ports && !ask_ports(view, sum))
		return false;
	if (entity->output_unwatched)
		ask_output_room(entity, sum);
	return true;
}

/* Returns what a review does with the fronts: read after they are closed, since a sender sets FENCED before
 * it pushes a message with fences (C8). */
static inline uint32_t close_fronts(weir_entity *entity)
{
	for (size_t i = 0; !entity->fronts_closed && i < entity->input_count; i++)
		input_close_front(&entity->inputs[i]);
	entity->fronts_closed = true;
	return wr_load_relaxed(&entity->front_checks);
}

/*
 * awaits_fences: the tick waits for fences of its fronts, and for nothing else. What was found to hold stays
 * so: room only grows, and a front that is closed does not change (C4), nor do the producers of its messages,
 * which this entity holds as well. So a review that finds those complete that were armed knows the answer.
 * (Not those of the verdict, which wr_entity_explain overwrites.) It waits for more than these if a
 * `cuda_stream` was passed over, since a promise of its port was open.
 */
static inline bool awaited_complete(const weir_entity *entity)
{
	const struct wr_armed *armed = &entity->wait.armed;

	for (size_t i = 0; i < armed->fence_count; i++)
		if (!wr_fence_known_complete(entity->graph->system, armed->fences[i]))
			return false;
	return armed->fence_count > 0;
}

enum { FENCES = 64 }; /* of one port in one wait; further ones are waited for when these are complete */

/* checks: what to do with the fronts, if the gathering conditions are known to hold; else 0. */
__attribute__((noinline)) static enum wr_answer ask_all(weir_entity *entity, bool draining, uint32_t checks)
{
	struct sum sum = {.rank = WR_RANK_READY, .at = INT64_MAX};
	weir_view view = {.entity = entity, .draining = draining};
	bool closed = draining;

	/* Before the conditions look, of which one may want a tick for the end (S7). */
	for (unsigned i = 0; closed && i < entity->input_count; i++)
		closed = !entity->inputs[i].count || weir_view_closed(&view, i);
	if (!checks) {
		if (!ask_gathering(&view, &sum))
			return publish_never(entity, &sum);
		/* What the entity waits for may come again and again, for ever. */
		if (closed && (sum.rank == WR_RANK_TIME || sum.external & (WR_DESCRIPTOR | WR_MEANWHILE)) &&
		    wr_view_inputs_over(&view, false))
			return never_again(entity, draining, &sum);
		if (sum.rank == WR_RANK_READY)
			checks = close_fronts(entity);
	}
	if (checks && !ask_fronts(&view, checks, draining, &sum))
		return publish_never(entity, &sum);
	entity->awaits_fences = checks && entity->gates_only && !sum.passed_over &&
				!(checks & WR_CHECK_LATEST) && sum.rank == WR_RANK_FENCES &&
				entity->verdict.fence_count < FENCES;
	if (sum.rank != WR_RANK_READY)
		return publish_wait(&view, &sum);
	if (entity->timed)
		entity->ready_at = weir_view_now(&view);
	entity->verdict.answer = WR_READY;
	return WR_READY;
}

enum wr_answer wr_entity_ask(weir_entity *entity, bool draining)
{
	struct lacking lacks = {NULL, NULL};
	/* All its receivers (at least one) are DONE and it has no effects of its own (S5). */
	bool over = entity->receivers && !wr_load_acquire(&entity->receivers_left) && !entity->plan->effects;
	uint32_t checks;

	entity->verdict.fence_count = 0;
	if (over || entity->finished || (draining && entity->root))
		return never_again(entity, draining, NULL);
	if (!gathering_conditions_known(entity, &lacks)) {
		if (!entity->awaits_fences || !awaited_complete(entity))
			return ask_all(entity, draining, 0);
		entity->awaits_fences = false;
		entity->verdict.answer = WR_READY;
		return WR_READY;
	}
	if (lacks.condition || lacks.content)
		return publish_lacking(entity, &lacks);
	checks = close_fronts(entity);
	if (checks)
		return ask_all(entity, draining, checks);
	entity->verdict.answer = WR_READY; /* default conditions and gates read no time: it is not `timed` */
	return WR_READY;
}

bool wr_entity_ask_pushed(weir_entity *entity, const weir_message *message, bool *arms)
{
	weir_verdict *verdict = &entity->verdict;
	const struct wr_input *input = &entity->inputs[0];
	bool alone; /* nothing but the gate of this message may keep the entity from ticking */
	weir_fence fence;

	*arms = !entity->awaits_fences; /* else what it waits for stays the same */
	if (!*arms)
		return true;
	alone = !entity->fronts_closed && !entity->flight_full && !entity->finished && input->take == 1 &&
		wr_queue_at(&input->connections[0]->queue, 0) == message &&
		(!entity->receivers || wr_load_acquire(&entity->receivers_left) || entity->plan->effects) &&
		!wr_entity_lacks_room(entity);
	if (!alone || !wr_message_lone_fence(message, &fence) || wr_fence_is_promise(fence) ||
	    wr_fence_query(entity->graph->system, fence) != WEIR_E_BUSY ||
	    wr_grow(&verdict->fences, &verdict->fence_room, 1, sizeof fence))
		return false;
	wr_queue_close_front(&input->connections[0]->queue, 1);
	entity->fronts_closed = entity->awaits_fences = entity->gated = true;
	verdict->fences[0] = fence;
	verdict->fence_count = 1;
	verdict->answer = WR_WAIT;
	verdict->at = INT64_MAX;
	verdict->external = 0;
	verdict->repeats_past = false;
	verdict->signal = entity->gate ? entity->gate->signal : entity->gate_signal;
	verdict->why = "work on the device is not finished";
	wr_verdict_give_cause(verdict, WEIR_CAUSE_DEVICE, 0);
	entity->past_of = NULL;
	publish_reason(entity, entity->gate ? entity->gate->plan->name : input->plan->port->name);
	return true;
}

/*
 * === what a condition may look at ===
 *
 * The view, which a condition reads, and the verdict, by which it answers (C1). A view names one entity and
 * one of its conditions during one call. It reads fields that other threads write (ends of queues, `told`,
 * receiver_done) and writes none of them.
 */

/* The clock is read once per review, on demand (C3). */
int64_t weir_view_now(weir_view *view)
{
	if (!view->has_now) {
		view->now = wr_now();
		view->has_now = true;
	}
	return view->now;
}

int64_t weir_view_began(weir_view *view)
{
	return view->condition->plan->kind->flags & WEIR_CONDITION_TIMELESS ? 0 : view->entity->ready_at;
}

int64_t weir_view_started(weir_view *view)
{
	return view->entity->graph->started_at;
}

void wr_view_add_lost(weir_view *view, uint64_t ticks)
{
	wr_count(&view->entity->counters.lost, ticks);
}

/* Returns false if the entity has no such port; that fails the run and names the condition. */
static inline bool has_input(weir_view *view, unsigned input)
{
	if (__builtin_expect(input < view->entity->input_count, 1))
		return true;
	wr_view_misuse(view, "asked about an input that the entity does not have: "
			     "take the index from weir_values_int");
	return false;
}

static size_t count_messages(const struct wr_input *input)
{
	size_t count = 0;

	if (input->set)
		return wr_fan_in_messages(input->set);
	if (input->latest)
		return wr_queue_count(&input->connections[0]->queue) ||
		       wr_queue_shown(&input->connections[0]->queue, NULL);
	if (input->count == 1) /* nearly always */
		return wr_queue_count(&input->connections[0]->queue);
	for (size_t i = 0; i < input->count; i++)
		count += wr_queue_count(&input->connections[i]->queue);
	return count;
}

size_t weir_view_count(weir_view *view, unsigned input)
{
	if (!has_input(view, input))
		return 0;
	return count_messages(&view->entity->inputs[input]);
}

/* Any-size ports are few: the others pay nothing for its loop. */
__attribute__((noinline)) static size_t count_least(const struct wr_input *port)
{
	size_t least = port->count ? SIZE_MAX : 0;

	if (port->set)
		return wr_fan_in_least(port->set);
	for (size_t i = 0; i < port->count; i++) {
		size_t count = wr_queue_count(&port->connections[i]->queue);
		least = count < least ? count : least;
	}
	return least;
}

bool wr_input_holds_in_all(const struct wr_input *input, size_t needed)
{
	return (input->any_size ? count_least(input) : count_messages(input)) >= needed;
}

size_t weir_view_take(weir_view *view, unsigned input)
{
	return has_input(view, input) ? view->entity->inputs[input].need : 0;
}

bool wr_view_any_size(weir_view *view, unsigned input)
{
	return view->entity->inputs[input].any_size;
}

int64_t wr_view_oldest_at(weir_view *view, unsigned input)
{
	const struct wr_input *port = &view->entity->inputs[input];
	int64_t oldest = INT64_MAX, at;

	for (size_t i = 0; i < port->count; i++) {
		at = wr_queue_oldest_at(&port->connections[i]->queue);
		oldest = at < oldest ? at : oldest;
	}
	return oldest;
}

bool weir_view_connected(weir_view *view, unsigned input)
{
	return has_input(view, input) && view->entity->inputs[input].count > 0;
}

static bool all_closed(const struct wr_input *port)
{
	if (port->set)
		return wr_fan_in_closed(port->set);
	for (size_t i = 0; i < port->count; i++)
		if (!wr_queue_closed(&port->connections[i]->queue))
			return false;
	return port->count > 0;
}

bool weir_view_closed(weir_view *view, unsigned input)
{
	if (!has_input(view, input))
		return false;
	return all_closed(&view->entity->inputs[input]);
}

/* Reads `closed` before the count (S5): the last message may arrive between the two. */
bool wr_input_ended(const struct wr_input *port, size_t needed)
{
	if (!port->any_size)
		return all_closed(port) && count_messages(port) < needed;
	if (port->set)
		return wr_fan_in_ended(port->set, needed);
	for (size_t i = 0; i < port->count; i++) {
		struct wr_queue *queue = &port->connections[i]->queue;
		if (wr_queue_closed(queue) && wr_queue_count(queue) < needed)
			return true;
	}
	return false;
}

bool weir_view_ended(weir_view *view, unsigned input, size_t needed)
{
	if (!has_input(view, input))
		return false;
	const struct wr_input *port = &view->entity->inputs[input];

	return wr_input_ended(port, needed ? needed : port->need);
}

/* It asks whether the port has ended last: a message that came after the count pokes. */
enum wr_answer wr_view_messages(weir_view *view, unsigned input, size_t needed)
{
	const struct wr_input *port = &view->entity->inputs[input];

	needed = needed && port->take ? needed : port->need; /* held: none */
	if (!port->count || wr_input_holds(port, needed))
		return WR_READY;
	return wr_input_ended(port, needed) ? WR_NEVER : WR_WAIT;
}

bool wr_output_is_blocked(struct wr_output *output, size_t at)
{
	if (wr_connection_is_free(output->connections[at]))
		return false;
	output->fullest = at;
	return true;
}

/* Begins with the connection that was full the last time, as wr_output_has_room does. */
size_t wr_output_room(struct wr_output *port)
{
	size_t least = SIZE_MAX, at = port->fullest;

	for (size_t i = 0; i < port->count && least; i++, at++) {
		at = at < port->count ? at : 0;
		struct wr_connection *connection = port->connections[at];
		size_t room =
			wr_connection_is_free(connection) ? SIZE_MAX : wr_queue_room(&connection->queue);
		if (room >= least)
			continue;
		least = room;
		port->fullest = at;
	}
	return least;
}

bool wr_output_receivers_done(const struct wr_output *port)
{
	for (size_t i = 0; i < port->count; i++)
		if (port->connections[i]->outlet || !wr_load_acquire(&port->connections[i]->receiver_done))
			return false;
	return port->count;
}

/* Returns false if the entity has no such port; that fails the run and names the condition. */
static inline bool has_output(weir_view *view, unsigned output)
{
	if (__builtin_expect(output < view->entity->output_count, 1))
		return true;
	wr_view_misuse(view, "asked about an output that the entity does not have: "
			     "take the index from weir_values_int");
	return false;
}

size_t weir_view_room(weir_view *view, unsigned output)
{
	return has_output(view, output) ? wr_output_room(&view->entity->outputs[output]) : 0;
}

bool weir_view_stopping(weir_view *view)
{
	return view->draining;
}

bool weir_view_receivers_done(weir_view *view, unsigned output)
{
	return has_output(view, output) && wr_output_receivers_done(&view->entity->outputs[output]);
}

bool wr_view_has_room(weir_view *view, unsigned output, size_t needed)
{
	struct wr_output *port = &view->entity->outputs[output];

	return wr_output_has_room(port, needed ? needed : port->needs);
}

/* Returns NULL if the front has no i-th message. */
static inline const weir_message *front_message(const struct wr_input *port, size_t i)
{
	if (port->set)
		return wr_fan_in_at(port->set, i);
	if (port->latest || (port->aligned && port->count && port->connections[0]->queue.again))
		return i ? NULL : wr_queue_shown(&port->connections[0]->queue, NULL);
	for (size_t k = 0; k < port->count; k++) {
		struct wr_queue *queue = &port->connections[k]->queue;
		size_t front = wr_queue_front(queue);
		if (i < front)
			return wr_queue_at(queue, i);
		i -= front;
	}
	return NULL;
}

const weir_message *weir_view_message(weir_view *view, unsigned input, size_t i)
{
	if (!has_input(view, input) || view->entity->inputs[input].untaken)
		return NULL;
	return front_message(&view->entity->inputs[input], i);
}

/* Without `all`: of promises alone. */
static inline bool is_pending(const weir_entity *entity, weir_fence fence, bool all)
{
	weir_status status =
		all || wr_fence_is_promise(fence) ? wr_fence_query(entity->graph->system, fence) : WEIR_OK;

	/* A stale promise was completed: one that failed is not forgotten while a message names it. */
	if (status == WEIR_E_INVALID && wr_fence_is_promise(fence))
		return false;
	/* A lost device counts as complete: compute then fails. Arming reports other failures. */
	return status && status != WEIR_E_DEVICE;
}

/* Reads the message's fences behind the `count` that were found before. */
__attribute__((noinline)) static size_t add_pending_of_many(weir_entity *entity, const weir_message *message,
							    size_t count, bool all)
{
	size_t n = 1, from = count;

	do { /* until all fit: another holder of the message may add one between two reads */
		if (wr_grow(&entity->fetched, &entity->fetched_room, from + n, sizeof *entity->fetched)) {
			entity->verdict.failed = WEIR_E_NOMEM;
			return count;
		}
		n = wr_message_fences(message, entity->fetched + from, entity->fetched_room - from);
	} while (n > entity->fetched_room - from);
	for (size_t i = from; i < from + n; i++)
		if (is_pending(entity, entity->fetched[i], all))
			count = wr_fences_add(entity->fetched, count, entity->fetched[i]);
	return count;
}

/* Adds the message's incomplete fences to the `count` that were found before. */
static size_t add_pending(weir_entity *entity, const weir_message *message, size_t count, bool all)
{
	weir_fence fence;

	if (!wr_message_lone_fence(message, &fence))
		return wr_message_has_fences(message) ? add_pending_of_many(entity, message, count, all)
						      : count;
	if (!is_pending(entity, fence, all))
		return count;
	if (!wr_grow(&entity->fetched, &entity->fetched_room, count + 1, sizeof fence))
		return wr_fences_add(entity->fetched, count, fence);
	entity->verdict.failed = WEIR_E_NOMEM;
	return count;
}

/* Reads the incomplete fences of the port's front, all or promises alone, into entity->fetched. */
static inline size_t fetch_pending(weir_entity *entity, const struct wr_input *port, bool all)
{
	size_t count = 0;

	if (port->set) {
		const weir_message *message;
		for (size_t i = 0; (message = wr_fan_in_at(port->set, i)); i++)
			count = add_pending(entity, message, count, all);
		return count;
	}
	for (size_t k = 0; k < port->count; k++) {
		struct wr_queue *queue = &port->connections[k]->queue;
		size_t front = wr_queue_front(queue);
		for (size_t i = 0; i < front; i++)
			count = add_pending(entity, wr_queue_at(queue, i), count, all);
	}
	return count;
}

size_t weir_view_pending(weir_view *view, unsigned input, size_t room, weir_fence *out)
{
	weir_entity *entity = view->entity;
	size_t count;

	if (!has_input(view, input) || entity->inputs[input].untaken)
		return 0;
	count = fetch_pending(entity, &entity->inputs[input], true);
	for (size_t i = 0; i < count && i < room; i++)
		out[i] = entity->fetched[i];
	return count;
}

/* The verdict becomes a wait for the fences that were fetched. Returns false if there are none. */
static bool wait_for_fetched(const weir_entity *entity, size_t pending, unsigned input, weir_verdict *verdict,
			     const char *why)
{
	bool told = false;

	if (!pending)
		return false;
	for (size_t i = 0; i < pending; i++) {
		bool promise = wr_fence_is_promise(entity->fetched[i]);
		told |= promise;
		if (i < FENCES || promise) /* a failure of any is to be seen */
			weir_verdict_fence(verdict, entity->fetched[i]);
	}
	weir_verdict_wait(verdict, told ? "waits for a fence that the program completes" : why);
	weir_verdict_set_cause(verdict, told ? WEIR_CAUSE_TOLD : WEIR_CAUSE_DEVICE, (int)input, 0);
	return true;
}

/* A fence that was never recorded, or one that the program completed by a failure: arming it says so. */
static bool some_fetched_failed(const weir_entity *entity, size_t pending)
{
	bool failed = false;

	for (size_t i = 0; i < pending && !failed; i++) {
		weir_status status = wr_fence_query(entity->graph->system, entity->fetched[i]);
		failed = status && status != WEIR_E_BUSY && status != WEIR_E_DEVICE;
	}
	return failed;
}

/* Without `all`: for promises alone. */
static bool wait_for_front(weir_view *view, unsigned input, bool all, weir_verdict *verdict, const char *why)
{
	size_t pending = fetch_pending(view->entity, &view->entity->inputs[input], all);

	return wait_for_fetched(view->entity, pending, input, verdict, why);
}

bool wr_view_wait_for_device(weir_view *view, unsigned input, weir_verdict *verdict, const char *why)
{
	return wait_for_front(view, input, true, verdict, why);
}

/* --- the verdict --- */

/* The sources of a wait add up; a wait together with READY or NEVER is misuse. */
static void verdict_add_wait(weir_verdict *verdict)
{
	if (verdict->answer != WR_WAIT)
		verdict->answer = verdict->answer == WR_SILENT ? WR_WAIT : WR_MISUSED;
}

void weir_verdict_ready(weir_verdict *verdict)
{
	verdict->answer = verdict->answer == WR_SILENT ? WR_READY : WR_MISUSED;
}

void weir_verdict_never(weir_verdict *verdict, const char *why)
{
	verdict->answer = verdict->answer == WR_SILENT ? WR_NEVER : WR_MISUSED;
	verdict->why = why;
}

void weir_verdict_wait(weir_verdict *verdict, const char *why)
{
	verdict_add_wait(verdict);
	verdict->why = why;
}

void weir_verdict_until(weir_verdict *verdict, int64_t at)
{
	verdict_add_wait(verdict);
	verdict->at = at < verdict->at ? at : verdict->at;
}

void weir_verdict_fence(weir_verdict *verdict, weir_fence fence)
{
	size_t from = verdict->fences_from;

	verdict_add_wait(verdict);
	if (wr_grow(&verdict->fences, &verdict->fence_room, verdict->fence_count + 1, sizeof fence))
		verdict->failed = WEIR_E_NOMEM;
	else /* merges only with fences of this condition: those of others may not be armed in the end */
		verdict->fence_count =
			from + wr_fences_add(verdict->fences + from, verdict->fence_count - from, fence);
}

void weir_verdict_external(weir_verdict *verdict)
{
	verdict_add_wait(verdict);
	verdict->external |= WR_OUTSIDE;
}

void weir_verdict_watched(weir_verdict *verdict)
{
	verdict_add_wait(verdict);
	verdict->external |= WR_DESCRIPTOR;
}

void weir_verdict_watched_meanwhile(weir_verdict *verdict)
{
	verdict_add_wait(verdict);
	verdict->external |= WR_MEANWHILE;
}

void weir_verdict_set_cause(weir_verdict *verdict, weir_cause cause, int port, size_t needed)
{
	verdict->cause = cause;
	verdict->on = port < 0 ? WR_NO_SUBJECT : (uint32_t)port;
	verdict->needed = needed;
}

/*
 * === what a program tells conditions ===
 *
 * What the program tells the conditions of an entity (C6): a word (weir_told), or fences. Each call stores,
 * then pokes the entity.
 *
 * Of the fences two are kept: `next`, the oldest that no tick has used, and `last`. While `next` is waited
 * for, further ones replace `last` alone. If only the last were kept, a program that tells faster than the
 * device works would never let the entity tick, since the last fence would never be complete. A fence is used
 * by the tick that a review of it led to: the review notes its number, so a fence that is told while the tick
 * runs is not lost.
 */

weir_status wr_entity_refuse_null(void)
{
	return wr_fail(WEIR_E_INVALID,
		       "an entity is needed, NULL was given: weir_graph_entity gives NULL for a "
		       "name that the graph does not have");
}

weir_status wr_condition_find(weir_entity *entity, const char *name, struct wr_condition **out)
{
	struct wr_nearest nearest = {.wanted = name};

	if (!entity)
		return wr_entity_refuse_null();
	for (size_t i = 0; i < entity->condition_count; i++)
		if (!strcmp(entity->conditions[i].plan->name, name)) {
			*out = &entity->conditions[i];
			return WEIR_OK;
		}
	for (size_t i = 0; i < entity->condition_count; i++)
		wr_nearest_try(&nearest, entity->conditions[i].plan->name);
	if (nearest.best)
		return wr_fail(WEIR_E_INVALID, "%s has no condition '%s' (did you mean '%s'?)",
			       entity->plan->name, wr_shown(name).text, nearest.best);
	return wr_fail(WEIR_E_INVALID, "%s has no condition '%s': add it to \"conditions\" of the entity",
		       entity->plan->name, wr_shown(name).text);
}

/* --- words --- */

weir_status weir_entity_tell(weir_entity *entity, const char *condition, weir_told told)
{
	struct wr_condition *found = NULL;
	weir_status status = wr_condition_find(entity, condition, &found);

	if (status)
		return status;
	wr_store(&found->told, told);
	wr_poke(entity); /* refused between runs: the value stays for the next run */
	return WEIR_OK;
}

weir_told weir_view_told(weir_view *view)
{
	return (weir_told)wr_load(&view->condition->told);
}

/* --- fences --- */

static weir_status check_fence(const weir_entity *entity, const struct wr_condition *condition,
			       weir_fence fence)
{
	weir_graph *graph = entity->graph;

	if (strcmp(condition->plan->kind->name, "fence") != 0)
		return wr_fail(WEIR_E_INVALID, "%s: condition '%s' takes no fences: add one of type 'fence'",
			       entity->plan->name, condition->plan->name);
	if (!fence.stream && !fence.value)
		return WEIR_OK;
	if (graph->system)
		return wr_fence_check(graph->system, fence);
	return wr_fail(WEIR_E_INVALID, "graph %s: there are no fences of it before a scheduler is created",
		       graph->plan->name);
}

weir_status weir_entity_tell_fence(weir_entity *entity, const char *condition, weir_fence fence)
{
	struct wr_condition *found = NULL;
	weir_status status = wr_condition_find(entity, condition, &found);
	struct wr_told_fences *fences;
	int64_t now;

	if (!status)
		status = check_fence(entity, found, fence);
	if (status)
		return status;
	fences = &found->fences;
	now = entity->graph->system ? wr_system_now(entity->graph->system) : wr_now();
	wr_spin_lock(&fences->lock);
	fences->last = (struct wr_told_fence){fence, now, ++fences->count};
	if (!fences->next.number)
		fences->next = fences->last;
	wr_spin_unlock(&fences->lock);
	wr_poke(entity); /* refused between runs: the fence stays for the next run */
	return WEIR_OK;
}

static struct wr_told_fences *fences_of(weir_view *view)
{
	return &view->condition->fences;
}

const weir_fence *wr_view_fence_told(weir_view *view)
{
	struct wr_told_fences *fences = fences_of(view);
	bool told;

	wr_spin_lock(&fences->lock);
	told = fences->last.number;
	fences->last_seen = fences->last.fence;
	wr_spin_unlock(&fences->lock);
	return told ? &fences->last_seen : NULL;
}

const weir_fence *wr_view_fence_next(weir_view *view)
{
	struct wr_told_fences *fences = fences_of(view);

	wr_spin_lock(&fences->lock);
	fences->seen = fences->next.number;
	fences->next_seen = fences->next.fence;
	wr_spin_unlock(&fences->lock);
	return fences->seen ? &fences->next_seen : NULL;
}

void wr_view_fence_done(weir_view *view, weir_fence fence)
{
	struct wr_told_fences *fences = fences_of(view);

	if (!wr_fence_is_promise(fence))
		return;
	wr_spin_lock(&fences->lock);
	for (struct wr_told_fence *told = &fences->last; told;
	     told = told == &fences->last ? &fences->next : NULL)
		if (told->fence.stream == fence.stream && told->fence.value == fence.value)
			told->fence = (weir_fence){0, 0};
	wr_spin_unlock(&fences->lock);
}

bool wr_view_is_promise(weir_fence fence)
{
	return wr_fence_is_promise(fence);
}

void wr_view_fence_use(weir_view *view)
{
	struct wr_told_fences *fences = fences_of(view);
	static const struct wr_told_fence none;

	wr_spin_lock(&fences->lock);
	if (fences->next.number == fences->seen)
		fences->next = fences->last.number > fences->seen ? fences->last : none;
	wr_spin_unlock(&fences->lock);
}

/* A lost device counts as complete: compute then fails, since the entity counts as gated (E2). */
bool weir_view_fence_complete(weir_view *view, weir_fence fence)
{
	weir_entity *entity = view->entity;
	weir_status status;

	if (!fence.stream && !fence.value)
		return true;
	if (!entity->graph->system)
		return false;
	entity->gated = true;
	status = wr_fence_query(entity->graph->system, fence);
	return !status || status == WEIR_E_DEVICE;
}

int64_t wr_told_fence_at(struct wr_condition *condition, weir_fence fence)
{
	struct wr_told_fences *fences = &condition->fences;
	int64_t at = 0;

	wr_spin_lock(&fences->lock);
	if (fences->last.number && fences->last.fence.stream == fence.stream &&
	    fences->last.fence.value == fence.value)
		at = fences->last.at;
	if (fences->next.number && fences->next.fence.stream == fence.stream &&
	    fences->next.fence.value == fence.value)
		at = fences->next.at;
	wr_spin_unlock(&fences->lock);
	return at;
}

/* --- the end of a run --- */

void wr_graph_forget_told(weir_graph *graph)
{
	for (size_t i = 0; i < graph->entity_count; i++) {
		for (size_t k = 0; k < graph->entities[i].condition_count; k++) {
			struct wr_condition *condition = &graph->entities[i].conditions[k];
			if (wr_read(&condition->told) != WEIR_TOLD_NOTHING)
				wr_store(&condition->told, WEIR_TOLD_NOTHING);
			wr_spin_lock(&condition->fences.lock);
			condition->fences.next.number = condition->fences.last.number = 0;
			wr_spin_unlock(&condition->fences.lock);
		}
	}
}
