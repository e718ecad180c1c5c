/*
 * The view, which a condition reads, and the verdict, by which it answers (C1). A view names one entity and
 * one of its conditions during one call. It reads fields that other threads write (ends of queues, `told`,
 * receiver_done) and writes none of them.
 */
#include "base/clock.h"
#include "base/memory.h"
#include "scheduler/ask.h"

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

static inline bool has_output(weir_view *view, unsigned output)
{
	if (__builtin_expect(output < view->entity->output_count, 1))
		return true;
	wr_view_misuse(view, "asked about an output that the entity does not have: "
			     "take the index from weir_values_int");
	return false;
}

static size_t count_messages(const struct wr_input *input)
{
	size_t count = 0;

	if (input->set)
		return wr_fan_in_messages(input->set);
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
static bool queue_ended(struct wr_queue *queue, size_t needed)
{
	return wr_queue_closed(queue) && wr_queue_count(queue) < needed;
}

static bool all_ended(const struct wr_input *port, size_t needed)
{
	return all_closed(port) && count_messages(port) < needed;
}

/* Returns true if the port can never again hold `needed` messages. */
static bool input_ended(const struct wr_input *port, size_t needed)
{
	if (!port->any_size)
		return all_ended(port, needed);
	if (port->set)
		return wr_fan_in_ended(port->set, needed);
	for (size_t i = 0; i < port->count; i++)
		if (queue_ended(&port->connections[i]->queue, needed))
			return true;
	return false;
}

bool weir_view_ended(weir_view *view, unsigned input, size_t needed)
{
	if (!has_input(view, input))
		return false;
	const struct wr_input *port = &view->entity->inputs[input];

	return input_ended(port, needed ? needed : port->need);
}

/* It asks whether the port has ended last: a message that came after the count pokes. */
enum wr_answer wr_view_messages(weir_view *view, unsigned input, size_t needed)
{
	const struct wr_input *port = &view->entity->inputs[input];

	needed = needed ? needed : port->need;
	if (!port->count || wr_input_holds(port, needed))
		return WR_READY;
	return input_ended(port, needed) ? WR_NEVER : WR_WAIT;
}

bool wr_output_is_blocked(struct wr_output *output, size_t at)
{
	if (wr_connection_is_free(output->connections[at]))
		return false;
	output->fullest = at;
	return true;
}

/* Begins with the connection that was full the last time, as wr_output_has_room does. */
size_t weir_view_room(weir_view *view, unsigned output)
{
	if (!has_output(view, output))
		return 0;
	struct wr_output *port = &view->entity->outputs[output];
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

bool wr_view_has_room(weir_view *view, unsigned output, size_t needed)
{
	struct wr_output *port = &view->entity->outputs[output];

	return wr_output_has_room(port, needed ? needed : port->max_emits);
}

static size_t count_front(const struct wr_input *port)
{
	size_t front = 0;

	if (port->set)
		return port->set->front_messages;
	for (size_t i = 0; i < port->count; i++)
		front += wr_queue_front(&port->connections[i]->queue);
	return front;
}

/* Returns NULL if the front has no i-th message. */
static inline const weir_message *front_message(const struct wr_input *port, size_t i)
{
	if (port->set)
		return wr_fan_in_at(port->set, i);
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
	return has_input(view, input) ? front_message(&view->entity->inputs[input], i) : NULL;
}

/* Reads until all fences fit: another holder of the message may add one between two reads. */
static bool read_fences(weir_entity *entity, const weir_message *message, size_t at, size_t *n)
{
	*n = 1;
	do {
		if (wr_grow(&entity->fetched, &entity->fetched_room, at + *n, sizeof *entity->fetched)) {
			entity->verdict.failed = WEIR_E_NOMEM;
			return false;
		}
		*n = wr_message_fences(message, entity->fetched + at, entity->fetched_room - at);
	} while (*n > entity->fetched_room - at);
	return true;
}

/* Reads the message's fences behind the `count` that were found before, and adds the incomplete ones to
 * those. */
static size_t add_pending_fences(weir_entity *entity, const weir_message *message, size_t count)
{
	size_t n, from = count;

	if (!read_fences(entity, message, from, &n))
		return count;
	for (size_t i = from; i < from + n; i++) {
		weir_fence fence = entity->fetched[i];
		weir_status status = wr_fence_query(entity->graph->system, fence);
		/* A lost device counts as complete: compute then fails. Arming reports other failures. */
		if (status && status != WEIR_E_DEVICE)
			count = wr_fences_add(entity->fetched, count, fence);
	}
	return count;
}

/* Reads the incomplete fences of the port's front into entity->fetched. */
static size_t fetch_pending(weir_entity *entity, const struct wr_input *port)
{
	size_t count = 0;

	for (size_t i = 0, front = count_front(port); i < front; i++) {
		const weir_message *message = front_message(port, i);
		if (wr_message_has_fences(message))
			count = add_pending_fences(entity, message, count);
	}
	return count;
}

size_t weir_view_pending(weir_view *view, unsigned input, size_t room, weir_fence *out)
{
	weir_entity *entity = view->entity;
	size_t count;

	if (!has_input(view, input))
		return 0;
	count = fetch_pending(entity, &entity->inputs[input]);
	for (size_t i = 0; i < count && i < room; i++)
		out[i] = entity->fetched[i];
	return count;
}

enum { FENCES = 64 }; /* of one port in one wait; further ones are waited for when these are complete */

bool wr_view_wait_for_device(weir_view *view, unsigned input, weir_verdict *verdict, const char *why)
{
	weir_entity *entity = view->entity;
	size_t pending = fetch_pending(entity, &entity->inputs[input]);

	if (!pending)
		return false;
	weir_verdict_wait(verdict, why);
	weir_verdict_set_cause(verdict, WEIR_CAUSE_DEVICE, (int)input, 0);
	for (size_t i = 0; i < pending && i < FENCES; i++)
		weir_verdict_fence(verdict, entity->fetched[i]);
	return true;
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

void weir_verdict_set_cause(weir_verdict *verdict, weir_cause cause, int port, size_t needed)
{
	verdict->cause = cause;
	verdict->on = port < 0 ? WR_NO_SUBJECT : (uint32_t)port;
	verdict->needed = needed;
}
