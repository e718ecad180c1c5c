/*
 * May the entity tick? Its owner asks all its conditions (C2): first the gathering ones, which look at
 * inboxes; when all of them hold, the fronts are closed and the content ones look at those (C4).
 *
 * AND over verdicts: any NEVER is NEVER; all READY is READY; else one unmet condition is chosen, whose
 * sources are armed. A condition that only a poke can change is preferred (no source is needed, and none
 * could help before that poke), then one from outside, then fences (those of several conditions are joined:
 * one signal), then the latest of the times.
 */
#include "graphs/ask.h"

#include <string.h>

#include "base/bug.h"
#include "base/status.h"

enum rank { RANK_READY, RANK_TIME, RANK_FENCES, RANK_EXTERNAL, RANK_POKE };

static enum rank rank_of(const weir_verdict *verdict)
{
	if (verdict->answer == WR_READY)
		return RANK_READY;
	if (verdict->external)
		return RANK_EXTERNAL;
	if (verdict->fence_count > verdict->fences_from)
		return RANK_FENCES;
	return verdict->at == INT64_MAX ? RANK_POKE : RANK_TIME;
}

/*
 * What the conditions asked so far come to. Fences lie in the entity's verdict: those of a child that is not
 * chosen are cut off again.
 */
struct sum {
	enum rank rank;
	int64_t at;
	bool external;
	size_t fences;
	int signal;			/* of the conditions that named the fences */
	const char *why, *of;
};

/* A later child is chosen: the fences of those before it would be armed for nothing. */
static void cut_off_before(weir_verdict *verdict, size_t fences)
{
	if (!fences)
		return;
	verdict->fence_count -= fences;
	memmove(verdict->fences, verdict->fences + fences, verdict->fence_count * sizeof *verdict->fences);
}

/* Two conditions that wait for one stream make one wait: for the later point. */
static void join_fences(weir_verdict *verdict)
{
	size_t kept = verdict->fences_from;

	for (size_t i = kept; i < verdict->fence_count; i++)
		kept = wr_note_fence(verdict->fences, kept, verdict->fence_room, verdict->fences[i]);
	verdict->fence_count = kept;
}

/* Of joined waits: a flag arms what it can and leaves the rest to callback; inline must be all's wish. */
static int join_signals(int a, int b)
{
	if (a == WR_SIGNAL_FLAG || b == WR_SIGNAL_FLAG)
		return WR_SIGNAL_FLAG;
	return a == b ? a : WR_SIGNAL_CALLBACK;
}

__attribute__((noinline)) static void add(struct sum *sum, weir_verdict *child, int signal, const char *of)
{
	enum rank rank = rank_of(child);
	bool join = rank == RANK_FENCES && sum->rank == RANK_FENCES;

	if (join)
		join_fences(child);
	if (rank > RANK_FENCES && rank > sum->rank)
		cut_off_before(child, sum->fences);
	if (rank > sum->rank || join || (rank == RANK_TIME && rank == sum->rank && child->at > sum->at)) {
		sum->at = join && sum->at < child->at ? sum->at : child->at;
		/* Of the chosen one alone: a message that is missing may never come. */
		sum->external = child->external;
		sum->fences = child->fence_count;
		sum->signal = join ? join_signals(sum->signal, signal) : signal;
		sum->rank = rank;
		sum->why = child->why;
		sum->of = of;
	} else {
		child->fence_count = sum->fences;
	}
}

__attribute__((noinline)) static bool refuse_verdict(const weir_view *view)
{
	bool silent = view->entity->verdict.answer == WR_SILENT;

	wr_view_fault(view, silent ? "gave no verdict: each ask calls one of weir_verdict_..."
				   : "said READY or NEVER beside another verdict: one ask gives one answer");
	return false;
}

weir_status wr_entity_verdict_failure(const weir_entity *entity)
{
	const weir_verdict *verdict = &entity->verdict;

	if (!verdict->fault)
		return verdict->failed;
	return wr_fail(verdict->failed, "condition '%s' %s", verdict->fault_of, verdict->fault);
}

/* Asks the conditions from one to another: those of one phase lie together. False: one of them is NEVER. */
__attribute__((always_inline))
static inline bool ask_phase(weir_view *view, size_t from, size_t to, struct sum *sum)
{
	weir_entity *entity = view->entity;

	for (size_t i = from; i < to; i++) {
		const struct wr_condition *condition = &entity->conditions[i];
		wr_condition_ask(view, condition);
		if (entity->verdict.answer == WR_READY)
			continue;
		if (entity->verdict.answer >= WR_SILENT)
			return refuse_verdict(view);
		if (entity->verdict.answer == WR_NEVER) {
			sum->of = condition->plan->name;
			return false;
		}
		add(sum, &entity->verdict, condition->signal, condition->plan->name);
	}
	return true;
}

/* What was seen before is enough if it is enough: messages leave an inbox by its receiver alone. */
static inline bool holds_enough(struct wr_queue *queue, size_t need)
{
	uint64_t head = wr_read(&queue->head);

	return queue->tail_seen - head >= need || wr_queue_newest_tail(queue) - head >= need;
}

/* Mostly of one queue that needs no lock. */
static inline bool holds_its_need(const weir_view *view, unsigned i)
{
	const struct wr_input *input = &view->entity->inputs[i];

	if (input->count == 1 && !input->set && !wr_queue_evicts(&input->connections[0]->queue))
		return holds_enough(&input->connections[0]->queue, input->need);
	return wr_view_held(view, i) >= input->need;
}

/* A content condition implies that its port holds `need` messages (C4). False: it never will again. */
static bool ask_content_ports(weir_view *view, struct sum *sum)
{
	weir_entity *entity = view->entity;

	for (unsigned i = 0; i < entity->input_count; i++) {
		if (!entity->inputs[i].content || !entity->inputs[i].count)
			continue;
		if (holds_its_need(view, i))
			continue;
		wr_verdict_clear(&entity->verdict);
		weir_verdict_wait(&entity->verdict, "too few messages");
		add(sum, &entity->verdict, WR_SIGNAL_CALLBACK, entity->inputs[i].plan->port->name);
		if (weir_view_ended(view, i, 0))
			return false;
	}
	return true;
}

bool wr_entity_lacks_room(weir_entity *entity)
{
	weir_view view = {.entity = entity};

	for (unsigned i = 0; i < entity->output_count; i++)
		if (weir_view_room(&view, i) < entity->outputs[i].max_emits)
			return true;
	return false;
}

/* Outputs whose room no default condition watches: a `block` queue must have it all the same (S3). */
static void ask_room(weir_entity *entity, struct sum *sum)
{
	if (!wr_entity_lacks_room(entity))
		return;
	wr_verdict_clear(&entity->verdict);
	weir_verdict_wait(&entity->verdict, "no room behind an output");
	add(sum, &entity->verdict, WR_SIGNAL_CALLBACK, "room");
}

/* It has connected receivers, all are DONE, and what it does is for them alone (S5). */
static bool unheard(weir_entity *entity)
{
	return entity->receivers && !wr_load_acquire(&entity->listeners) && !entity->plan->effects;
}

/* Moves one message of each connection in turn, until n have moved or nobody has more. */
static void close_in_turn(struct wr_input *input, size_t n)
{
	size_t idle = 0;

	while (n && idle < input->count) {
		struct wr_queue *queue = &input->connections[input->turn]->queue;
		size_t before = wr_queue_front(queue);
		wr_queue_close_front(queue, 1);
		bool moved = wr_queue_front(queue) > before;
		idle = moved ? 0 : idle + 1;
		n -= moved;
		input->turn = input->turn + 1 == input->count ? 0 : input->turn + 1;
	}
}

static void close_front(struct wr_input *input)
{
	if (input->set) {
		wr_fan_in_close_fronts(input->set, input->take);
		return;
	}
	if (input->count > 1 && input->take != SIZE_MAX && !input->any_size) {
		close_in_turn(input, input->take);
		return;
	}
	for (size_t i = 0; i < input->count; i++)
		wr_queue_close_front(&input->connections[i]->queue, input->take);
}

static void close_fronts(weir_entity *entity)
{
	if (entity->fronts_closed)
		return;
	for (size_t i = 0; i < entity->input_count; i++)
		close_front(&entity->inputs[i]);
	entity->fronts_closed = true;
}

/* True: some gate is shut. */
static bool ask_gates(weir_view *view, struct sum *sum)
{
	weir_entity *entity = view->entity;
	bool shut = false;

	entity->gated = true;
	for (unsigned i = 0; i < entity->input_count; i++) {
		struct wr_input *input = &entity->inputs[i];
		input->shut = input->gate && wr_gate_ask(view, i);
		if (input->shut)
			add(sum, &entity->verdict, entity->gate_signal, input->plan->port->name);
		shut |= input->shut;
	}
	return shut;
}

/* Content conditions look at what is behind no shut gate. False: one of them is NEVER. */
static bool ask_beside_gates(weir_view *view, struct sum *sum)
{
	weir_entity *entity = view->entity;
	bool goes_on = true;

	for (size_t i = entity->gathering_count; goes_on && i < entity->condition_count; i++)
		if (wr_gate_lets_ask(entity, &entity->conditions[i]))
			goes_on = ask_phase(view, i, i + 1, sum);
	return goes_on;
}

/* After the fronts were closed: whoever pushed what they hold has said before that it has fences (C8). */
static inline uint32_t looks_of(weir_entity *entity)
{
	uint32_t looks = wr_load_relaxed(&entity->looks), before = entity->looked;

	if (!WR_BUG(GATE_BEFORE_FRONT))
		return looks;
	entity->looked = looks;
	return before | (looks & WR_LOOKS_CONTENT);
}

/* What the fronts hold: the gates first (C8). False: NEVER. */
__attribute__((noinline)) static bool ask_fronts(weir_view *view, uint32_t looks, struct sum *sum)
{
	weir_entity *entity = view->entity;

	if (looks & WR_LOOKS_FENCED && ask_gates(view, sum))
		return ask_beside_gates(view, sum);
	return ask_phase(view, entity->gathering_count, entity->condition_count, sum);
}

/*
 * A time that has come is not READY: it is asked again once, at once. The same answer then would be given for
 * ever, in no time on `sim` and as fast as a core can on a real clock.
 */
__attribute__((noinline)) static bool stands_still(const weir_view *view, int64_t at)
{
	weir_entity *entity = view->entity;
	bool past = at <= weir_view_now(view);
	bool again = past && at == entity->past && entity->context.tick == entity->past_tick;

	entity->past = past ? at : INT64_MAX;
	entity->past_tick = entity->context.tick;
	return again;
}

/* The same; mostly no time is named. */
static inline bool stands(const weir_view *view, int64_t at)
{
	if (at != INT64_MAX)
		return stands_still(view, at);
	view->entity->past = INT64_MAX;
	return false;
}

/*
 * During a drain: all that it could receive has come, and it has it not. Who waits for a time alone would go
 * on for ever, for its conditions look at no sender (S7).
 */
static bool outlives_its_senders(const weir_view *view)
{
	const weir_entity *entity = view->entity;

	for (unsigned i = 0; i < entity->input_count; i++) {
		if (!entity->inputs[i].count)
			continue;
		if (!weir_view_closed(view, i) || weir_view_count(view, i))	/* in this order (S5) */
			return false;
	}
	return true;
}

static enum wr_answer settle(const weir_view *view, enum wr_answer answer, const struct sum *sum)
{
	weir_entity *entity = view->entity;
	weir_verdict *verdict = &entity->verdict;

	verdict->answer = answer;
	verdict->at = sum->at;
	verdict->external = sum->external;
	verdict->signal = sum->signal;
	if (answer == WR_WAIT) {
		verdict->why = sum->why;
		verdict->stands = stands(view, sum->at);
	}
	/* Literals: whoever reads an old pair shows an old reason. */
	wr_store_relaxed(&entity->why, verdict->why);
	wr_store_relaxed(&entity->why_of, sum->of);
	return answer;
}

/* --- entities that have default conditions alone --- */

/* Likewise: room shrinks by its sender alone. */
static inline bool has_room(struct wr_queue *queue, size_t need)
{
	uint64_t tail = wr_read(&queue->tail);

	return queue->policy != WEIR_BLOCK || tail - queue->head_seen + need <= queue->capacity ||
	       wr_queue_newest_room(queue, tail) >= need;
}

/* Begins as weir_view_room does. */
static inline bool has_room_everywhere(struct wr_output *output)
{
	size_t at = output->fullest;

	for (size_t i = 0; i < output->count; i++, at++) {
		at = at < output->count ? at : 0;
		if (!has_room(&output->connections[at]->queue, output->max_emits)) {
			output->fullest = at;
			return false;
		}
	}
	return true;
}

/*
 * True if all gathering conditions of a plain entity hold (reset.c), in_flight apart. Then they need not be asked; what they
 * wait for otherwise, and whether it will ever come, they say themselves.
 */
static inline bool plainly_holds(const weir_entity *entity)
{
	for (size_t i = 0; i < entity->input_count; i++)
		if (!holds_enough(&entity->inputs[i].connections[0]->queue, entity->inputs[i].need))
			return false;
	for (size_t i = 0; i < entity->output_count; i++)
		if (!has_room_everywhere(&entity->outputs[i]))
			return false;
	return true;
}

__attribute__((noinline)) static void ask_in_flight(weir_view *view, struct sum *sum)
{
	ask_phase(view, 0, 1, sum);	/* it is never NEVER */
}

/* False: one of them is NEVER. */
__attribute__((always_inline))
static inline bool ask_gathering(weir_view *view, struct sum *sum)
{
	const weir_entity *entity = view->entity;

	if (entity->flight_full)
		ask_in_flight(view, sum);
	if (entity->plain && plainly_holds(entity))
		return true;
	return ask_phase(view, entity->in_flight ? 1 : 0, entity->gathering_count, sum);
}

enum wr_answer wr_entity_ask(weir_entity *entity, bool draining)
{
	struct sum sum = {.rank = RANK_READY, .at = INT64_MAX};
	weir_view view = {.entity = entity};
	uint32_t looks;

	entity->verdict.fence_count = 0;
	if (entity->finished || (draining && entity->root) || unheard(entity)) {
		const char *why = draining ? "draining" : "all receivers are done";
		entity->verdict.why = entity->finished ? "finished" : why;
		return settle(&view, WR_NEVER, &sum);
	}
	if (!ask_gathering(&view, &sum))
		return settle(&view, WR_NEVER, &sum);
	if (entity->has_content && !ask_content_ports(&view, &sum))
		return settle(&view, WR_NEVER, &sum);
	if (entity->unguarded)
		ask_room(entity, &sum);
	if (draining && sum.rank == RANK_TIME && outlives_its_senders(&view)) {
		entity->verdict.why = "draining";
		return settle(&view, WR_NEVER, &sum);
	}
	if (sum.rank != RANK_READY)
		return settle(&view, WR_WAIT, &sum);
	close_fronts(entity);
	looks = looks_of(entity);
	if (looks && !ask_fronts(&view, looks, &sum))
		return settle(&view, WR_NEVER, &sum);
	if (looks && sum.rank != RANK_READY)
		return settle(&view, WR_WAIT, &sum);
	if (entity->timed)
		entity->began = weir_view_now(&view);
	entity->verdict.answer = WR_READY;
	return WR_READY;
}
