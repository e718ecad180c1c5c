/*
 * Positions are 64 bits wide and never wrap; position & mask is the slot. head <= front_end <= tail: the
 * front is [head, front_end), the inbox [front_end, tail).
 *
 * `block`, `reject` and `fault`: the sender writes the slot at tail, then tail (release); the receiver that
 * reads tail (acquire) sees the slot. The receiver empties slots, then writes head (release); the sender
 * that reads head (acquire) may fill them again. Only the receiver uses `front_end`. Each side caches the
 * other's position and reads it again only when the cached one does not suffice; wr_queue_room() always reads
 * it, since the sender may park on the answer.
 *
 * `pop`: the sender moves head, front_end and slots, too, so every access takes the lock. Messages are
 * unreferenced after the lock was released, since that may run a user's destructor. To evict the oldest
 * message of the inbox, the shorter of front and inbox moves by one slot.
 *
 * `latest`: likewise. A push that replaces takes the slot of the message that it removes, and its number.
 */
#include "scheduler/queue.h"

#include <stddef.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/stack.h"
#include "base/status.h"
#include "scheduler/graph.h"
#include "weir.h"

_Static_assert(offsetof(struct wr_queue, tail) == 64, "the sender's fields begin a cache line");
_Static_assert(offsetof(struct wr_queue, counters.delivered) == 128, "the receiver's begin another one");

weir_status wr_queue_init(struct wr_queue *queue, uint32_t id, uint32_t capacity, weir_policy policy)
{
	uint32_t slots = 1;
	weir_status status = WEIR_OK;

	if (capacity == 0 || capacity > WR_CAPACITY_MAX)
		return wr_fail(WEIR_E_INVALID, "capacity is %u, must be 1 to %u", capacity, WR_CAPACITY_MAX);
	if (policy == WEIR_POLICY_LATEST)
		capacity = WR_LATEST_PLACES;
	*queue = (struct wr_queue){.id = id, .capacity = capacity, .policy = policy};
	queue->shows = queue->again = policy == WEIR_POLICY_LATEST;
	while (slots < capacity + (policy == WEIR_POLICY_POP))
		slots *= 2;
	queue->mask = slots - 1;
	if (wr_queue_evicts(queue)) {
		status = wr_mutex_init(&queue->lock);
		queue->locked = !status;
	}
	if (status)
		return status;
	queue->slots = wr_alloc((size_t)queue->mask + 1, sizeof(*queue->slots));
	if (!queue->slots || (policy == WEIR_POLICY_LATEST && wr_queue_keep_times(queue))) {
		if (queue->locked)
			wr_mutex_finish(&queue->lock);
		wr_free(queue->slots);
		*queue = (struct wr_queue){0};
		return WEIR_E_NOMEM;
	}
	return WEIR_OK;
}

weir_status wr_queue_keep_times(struct wr_queue *queue)
{
	weir_status status = queue->locked ? WEIR_OK : wr_mutex_init(&queue->lock);

	if (status || queue->pushed_at)
		return status;
	queue->locked = true;
	queue->pushed_at = wr_alloc((size_t)queue->mask + 1, sizeof *queue->pushed_at);
	return queue->pushed_at ? WEIR_OK : WEIR_E_NOMEM;
}

/*
 * For any thread, so it writes nothing (tail_seen is the receiver's). Reads head first: head never exceeds a
 * tail that is read later.
 */
size_t wr_queue_snapshot(const struct wr_queue *queue)
{
	struct wr_queue *self = (struct wr_queue *)queue;
	uint64_t head = wr_load_acquire(&self->head), filled = wr_load_acquire(&self->tail) - head;
	size_t most = (size_t)queue->capacity + (queue->policy == WEIR_POLICY_POP);

	return filled < most ? (size_t)filled : most; /* messages may pass between the two loads */
}

void wr_queue_forget_shown(struct wr_queue *queue)
{
	struct weir_message *shown = queue->shown;

	queue->shown = NULL;
	if (shown)
		weir_message_unref(shown);
}

/* Unrefs all messages and returns their number. No other thread uses the queue. */
static size_t queue_discard(struct wr_queue *queue)
{
	uint64_t head = wr_read(&queue->head), tail = wr_load_acquire(&queue->tail);
	size_t n = (size_t)(tail - head);

	for (; head != tail; head++)
		weir_message_unref(*wr_queue_slot(queue, head));
	queue->tail_seen = tail;
	wr_store_relaxed(&queue->front_end, tail);
	wr_store_release(&queue->head, tail);
	wr_queue_forget_shown(queue);
	return n;
}

void wr_queue_finish(struct wr_queue *queue)
{
	if (!queue->slots)
		return;
	queue_discard(queue);
	if (queue->locked)
		wr_mutex_finish(&queue->lock);
	wr_free(queue->slots);
	wr_free(queue->pushed_at);
	queue->slots = NULL;
	queue->pushed_at = NULL;
}

size_t wr_queue_reset(struct wr_queue *queue)
{
	size_t n = queue_discard(queue);
	struct wr_queue_counters *counters = &queue->counters;

	wr_store_relaxed(&counters->pushed, 0);
	wr_store_relaxed(&counters->dropped, 0);
	wr_store_relaxed(&counters->taken_back, 0);
	wr_store_relaxed(&counters->delivered, 0);
	wr_store_relaxed(&counters->closed, 0);
	wr_store_relaxed(&counters->abandoned, 0);
	wr_store_relaxed(&counters->unmatched, 0);
	wr_store_relaxed(&counters->reused, 0);
	wr_store_release(&queue->closed, false);
	return n;
}

/* Removes and returns the oldest message; NULL: empty. */
static struct weir_message *queue_take_oldest(struct wr_queue *queue)
{
	struct weir_message *message = NULL;
	uint64_t head;

	wr_queue_lock(queue);
	head = wr_read(&queue->head);
	if (wr_queue_newest_tail(queue) != head) {
		message = *wr_queue_slot(queue, head);
		if (wr_read(&queue->front_end) == head)
			wr_store_relaxed(&queue->front_end, head + 1);
		wr_store_release(&queue->head, head + 1);
	}
	wr_queue_unlock(queue);
	return message;
}

/* --- sender --- */

static void count_dropped(struct wr_queue *queue)
{
	wr_count(&queue->counters.pushed, 1);
	wr_count(&queue->counters.dropped, 1);
}

enum wr_pushed wr_queue_push_full(struct wr_queue *queue, struct weir_message *message)
{
	if (queue->policy == WEIR_POLICY_BLOCK)
		return WR_PUSH_FULL;
	if (queue->policy == WEIR_POLICY_FAULT)
		return WR_PUSH_FAULT;
	count_dropped(queue);
	weir_message_unref(message);
	return WR_PUSH_DROPPED;
}

static void slot_move_locked(struct wr_queue *queue, uint64_t to, uint64_t from)
{
	*wr_queue_slot(queue, to) = *wr_queue_slot(queue, from);
	if (queue->pushed_at)
		queue->pushed_at[to & queue->mask] = queue->pushed_at[from & queue->mask];
}

/* Removes the oldest message of the inbox, which is not empty, and closes the gap from the shorter side. */
static struct weir_message *queue_evict_locked(struct wr_queue *queue)
{
	uint64_t head = wr_read(&queue->head), front_end = wr_read(&queue->front_end),
		 tail = wr_read(&queue->tail);
	struct weir_message *oldest = *wr_queue_slot(queue, front_end);

	queue->evicted = front_end + queue->moved;
	if (front_end - head < tail - front_end) {
		for (uint64_t i = front_end; i != head; i--)
			slot_move_locked(queue, i, i - 1);
		wr_store_relaxed(&queue->head, head + 1);
		wr_store_relaxed(&queue->front_end, front_end + 1);
	} else {
		for (uint64_t i = front_end; i + 1 != tail; i++)
			slot_move_locked(queue, i, i + 1);
		wr_store_relaxed(&queue->tail, tail - 1);
		queue->moved++;
	}
	return oldest;
}

/*
 * `latest`. Returns the message that it replaces, or NULL. Observers are told inside the lock: only there it
 * is known which number the message has.
 */
static struct weir_message *queue_push_latest(struct wr_queue *queue, struct weir_message *message,
					      int64_t now)
{
	struct weir_message *replaced = NULL;
	uint64_t at;

	wr_mutex_lock(&queue->lock);
	at = wr_read(&queue->tail);
	if (at - wr_read(&queue->front_end) == WR_LATEST_PLACES - 1)
		replaced = *wr_queue_slot(queue, --at);
	if (queue->told && replaced)
		wr_trace_drop(queue->told, queue->told_lane, queue->id, at);
	if (queue->told)
		wr_trace_deliver(queue->told, queue->told_lane, queue->id, at);
	queue->told = NULL;
	*wr_queue_slot(queue, at) = message;
	queue->pushed_at[at & queue->mask] = now;
	wr_store_release(&queue->tail, at + 1);
	wr_count(&queue->counters.dropped, replaced != NULL); /* the receiver counts here, too */
	wr_mutex_unlock(&queue->lock);
	wr_count(&queue->counters.pushed, 1);
	return replaced;
}

/* Returns the evicted message or NULL. */
static struct weir_message *queue_push_evicting(struct wr_queue *queue, struct weir_message *message)
{
	int64_t now = queue->pushed_at ? wr_now() : 0;
	struct weir_message *evicted = NULL;
	uint64_t tail;

	if (queue->policy == WEIR_POLICY_LATEST)
		return queue_push_latest(queue, message, now);
	wr_mutex_lock(&queue->lock);
	tail = wr_read(&queue->tail);
	if (tail - wr_read(&queue->head) >= queue->capacity && tail != wr_read(&queue->front_end))
		evicted = queue_evict_locked(queue);
	tail = wr_read(&queue->tail); /* evicting may have moved it */
	*wr_queue_slot(queue, tail) = message;
	if (queue->pushed_at)
		queue->pushed_at[tail & queue->mask] = now;
	wr_store_release(&queue->tail, tail + 1);
	wr_mutex_unlock(&queue->lock);
	wr_count(&queue->counters.pushed, 1);
	if (evicted)
		wr_count(&queue->counters.dropped, 1);
	return evicted;
}

/* The sender only adds; the lock is for the times. */
static enum wr_pushed queue_push_timed(struct wr_queue *queue, struct weir_message *message)
{
	int64_t now = wr_now();
	uint64_t tail = wr_read(&queue->tail);

	if (!wr_queue_newest_room(queue, tail))
		return wr_queue_push_full(queue, message);
	wr_mutex_lock(&queue->lock);
	*wr_queue_slot(queue, tail) = message;
	queue->pushed_at[tail & queue->mask] = now;
	wr_store_release(&queue->tail, tail + 1);
	wr_mutex_unlock(&queue->lock);
	wr_count(&queue->counters.pushed, 1);
	return WR_PUSHED;
}

enum wr_pushed wr_queue_push_locked(struct wr_queue *queue, struct weir_message *message)
{
	struct weir_message *evicted;

	if (!wr_queue_evicts(queue))
		return queue_push_timed(queue, message);
	evicted = queue_push_evicting(queue, message);
	if (evicted)
		weir_message_unref(evicted);
	return evicted ? WR_PUSH_EVICTED : WR_PUSHED;
}

enum wr_pushed wr_queue_push_out(struct wr_queue *queue, struct weir_message *message,
				 struct weir_message **left)
{
	*left = NULL;
	if (wr_queue_evicts(queue)) {
		*left = queue_push_evicting(queue, message);
		return *left ? WR_PUSH_EVICTED : WR_PUSHED;
	}
	if (queue->policy == WEIR_POLICY_REJECT && !wr_queue_newest_room(queue, wr_read(&queue->tail))) {
		count_dropped(queue);
		*left = message;
		return WR_PUSH_DROPPED;
	}
	return wr_queue_push(queue, message);
}

void wr_queue_push_to_done(struct wr_queue *queue, struct weir_message *message)
{
	if (queue->told) /* `latest`: no push will tell it */
		wr_trace_deliver(queue->told, queue->told_lane, queue->id, wr_read(&queue->tail));
	queue->told = NULL;
	wr_count(&queue->counters.pushed, 1);
	wr_count(&queue->counters.taken_back, 1);
	weir_message_unref(message);
}

void wr_queue_close(struct wr_queue *queue)
{
	wr_store_release(&queue->closed, true);
}

size_t wr_queue_take_back(struct wr_queue *queue)
{
	size_t n = queue_discard(queue);

	wr_count(&queue->counters.taken_back, n);
	return n;
}

struct weir_message *wr_queue_take_one_back(struct wr_queue *queue)
{
	struct weir_message *message = queue_take_oldest(queue);

	wr_count(&queue->counters.taken_back, message != NULL);
	return message;
}

/* --- receiver --- */

size_t wr_queue_inbox(struct wr_queue *queue)
{
	uint64_t tail, front_end;

	wr_queue_lock(queue);
	tail = wr_queue_newest_tail(queue);
	front_end = wr_load_relaxed(&queue->front_end);
	wr_queue_unlock(queue);
	return (size_t)(tail - front_end);
}

/* Messages of a front are closed at once, so the numbers of one follow each other. */
void wr_queue_close_front_locked(struct wr_queue *queue, size_t n)
{
	uint64_t front_end, tail;

	if (queue->policy == WEIR_POLICY_LATEST)
		return; /* the review does it, when the message is finished */
	wr_mutex_lock(&queue->lock);
	front_end = wr_read(&queue->front_end);
	tail = wr_queue_newest_tail(queue);
	tail = tail - front_end < n ? tail : front_end + n;
	if (wr_read(&queue->head) == front_end)
		queue->front_first = front_end + queue->moved;
	wr_store_relaxed(&queue->front_end, tail);
	if (queue->trace && queue->id != UINT32_MAX && wr_queue_evicts(queue))
		wr_trace_front(queue->trace, queue->id, front_end + queue->moved, tail - front_end);
	wr_mutex_unlock(&queue->lock);
}

void wr_queue_reopen_front(struct wr_queue *queue)
{
	wr_queue_lock(queue);
	wr_store_relaxed(&queue->front_end, wr_read(&queue->head));
	wr_queue_unlock(queue);
}

size_t wr_queue_take_locked(struct wr_queue *queue, struct weir_message **out)
{
	struct weir_message *before = NULL;
	uint64_t head;
	size_t n;

	if (queue->held)
		return 0;
	wr_mutex_lock(&queue->lock);
	head = wr_read(&queue->head);
	n = wr_queue_take_front(queue, out);
	if (queue->shows && n) {
		before = queue->shown;
		queue->shown = out[0];
		queue->shown_since = queue->pushed_at[head & queue->mask];
	}
	wr_mutex_unlock(&queue->lock);
	wr_count(&queue->counters.delivered, n);
	if (before)
		weir_message_unref(before);
	if (!queue->shows || !queue->shown || !(n || queue->again))
		return n;
	wr_count(&queue->counters.reused, !n && queue->policy != WEIR_POLICY_LATEST);
	wr_message_ref_many(queue->shown, 1);
	out[0] = queue->shown;
	return 1;
}

void wr_queue_drop_unmatched(struct wr_queue *queue, size_t n, struct wr_trace *trace, unsigned lane)
{
	uint64_t head = wr_read(&queue->head);

	for (size_t i = 0; i < n; i++) {
		struct weir_message *message = *wr_queue_slot(queue, head);
		if (trace && queue->id != UINT32_MAX)
			wr_trace_unmatched(trace, lane, queue->id, head);
		wr_store_relaxed(&queue->front_end, ++head);
		/* Release: the slot is read before the sender may fill it again. */
		wr_store_release(&queue->head, head);
		weir_message_unref(message);
	}
	wr_count(&queue->counters.unmatched, n);
}

int64_t wr_queue_oldest_at(struct wr_queue *queue)
{
	int64_t at = INT64_MAX;
	uint64_t head;

	wr_mutex_lock(&queue->lock);
	head = wr_read(&queue->head);
	if (wr_queue_newest_tail(queue) != head)
		at = queue->pushed_at[head & queue->mask];
	wr_mutex_unlock(&queue->lock);
	return at;
}

struct weir_message *wr_queue_oldest(struct wr_queue *queue)
{
	struct weir_message *oldest = NULL;

	wr_mutex_lock(&queue->lock);
	if (wr_queue_newest_tail(queue) != wr_read(&queue->front_end))
		oldest = *wr_queue_slot(queue, wr_read(&queue->front_end));
	wr_mutex_unlock(&queue->lock);
	return oldest;
}

void wr_queue_show(struct wr_queue *queue, struct wr_trace *trace, unsigned lane)
{
	struct weir_message *unseen = NULL;
	uint64_t head, front_end;

	wr_mutex_lock(&queue->lock);
	head = wr_read(&queue->head);
	front_end = wr_read(&queue->front_end);
	if (front_end != head) {
		unseen = *wr_queue_slot(queue, head);
		if (trace)
			wr_trace_drop(trace, lane, queue->id, head);
		wr_store_release(&queue->head, front_end);
		wr_count(&queue->counters.dropped, 1);
	}
	wr_store_relaxed(&queue->front_end, front_end + 1);
	wr_mutex_unlock(&queue->lock);
	if (unseen)
		weir_message_unref(unseen);
	else
		wr_queue_forget_shown(queue);
}

struct weir_message *wr_queue_shown(struct wr_queue *queue, int64_t *since)
{
	struct weir_message *shown = queue->shown;
	uint64_t head;

	if (since)
		*since = queue->shown_since;
	wr_mutex_lock(&queue->lock);
	head = wr_read(&queue->head);
	if (wr_read(&queue->front_end) != head) {
		shown = *wr_queue_slot(queue, head);
		if (since)
			*since = queue->pushed_at[head & queue->mask];
	}
	wr_mutex_unlock(&queue->lock);
	return shown;
}

/* Drops at most the messages present at the call: the sender may still push, and takes back the rest. */
size_t wr_queue_drop(struct wr_queue *queue)
{
	size_t seen = wr_queue_count(queue), n = 0;
	struct weir_message *message;

	while (n < seen && (message = queue_take_oldest(queue))) {
		weir_message_unref(message);
		n++;
	}
	wr_queue_forget_shown(queue);
	wr_count(&queue->counters.closed, n);
	return n;
}

size_t wr_queue_abandon(struct wr_queue *queue)
{
	size_t n = queue_discard(queue);

	wr_count(&queue->counters.abandoned, n);
	return n;
}

struct weir_message *wr_queue_abandon_one(struct wr_queue *queue)
{
	struct weir_message *message = queue_take_oldest(queue);

	wr_count(&queue->counters.abandoned, message != NULL);
	return message;
}

/* --- observers --- */

void wr_queue_tell_push(struct wr_queue *queue, struct wr_trace *trace, unsigned lane)
{
	if (queue->policy == WEIR_POLICY_LATEST) {
		queue->told = queue->id != UINT32_MAX ? trace : NULL;
		queue->told_lane = lane;
	} else if (queue->id != UINT32_MAX) {
		wr_trace_deliver(trace, lane, queue->id, wr_read(&queue->tail) + queue->moved);
	}
}

void wr_queue_tell_drop(struct wr_queue *queue, struct wr_trace *trace, unsigned lane, enum wr_pushed pushed)
{
	bool evicted = pushed == WR_PUSH_EVICTED;

	if (queue->id != UINT32_MAX && queue->policy != WEIR_POLICY_LATEST) /* which has told it */
		wr_trace_drop(trace, lane, queue->id,
			      evicted ? queue->evicted : wr_read(&queue->tail) + queue->moved);
}

void wr_queue_tell_take(struct wr_queue *queue, struct wr_trace *trace, unsigned lane)
{
	size_t count = queue->id != UINT32_MAX ? wr_queue_front(queue) : 0;
	uint64_t first = queue->policy == WEIR_POLICY_POP ? queue->front_first : wr_read(&queue->head);

	for (size_t i = 0; i < count; i++)
		wr_trace_take(trace, lane, queue->id, first + i);
}

/* === connections: between two ports, or between a port and an inlet or outlet === */

static weir_status append_connection(struct wr_connection ***list, size_t *count,
				     struct wr_connection *connection)
{
	size_t room = *count; /* grows by one: connections are made once, before the run */
	weir_status status = wr_grow(list, &room, *count + 1, sizeof **list);

	if (!status)
		(*list)[(*count)++] = connection;
	return status;
}

/* Adds it to the lists of both ends, or to none. */
static weir_status attach_ends(struct wr_connection *connection)
{
	weir_entity *sender = connection->sender, *receiver = connection->receiver;
	struct wr_output *output = sender ? &sender->outputs[connection->output] : NULL;
	struct wr_input *input = receiver ? &receiver->inputs[connection->input] : NULL;
	weir_status status = WEIR_OK;

	if (input) {
		status = append_connection(&input->connections, &input->count, connection);
		input->lone = false; /* until the next run begins */
	}
	if (status || !output)
		return status;
	status = append_connection(&output->connections, &output->count, connection);
	if (!status)
		sender->receivers++;
	else if (input)
		input->count--;
	return status;
}

void wr_connection_destroy(struct wr_connection *connection)
{
	wr_queue_finish(&connection->queue);
	wr_free(connection->from);
	wr_free(connection->to);
	wr_free(connection);
}

weir_status wr_graph_connect(weir_graph *graph, weir_entity *sender, uint32_t output, weir_entity *receiver,
			     uint32_t input, uint32_t capacity, struct wr_connection **out)
{
	struct wr_connection *connection = wr_alloc_aligned(64, sizeof *connection);
	const weir_port *from = sender ? sender->outputs[output].plan->port : NULL;
	const weir_port *to = receiver ? receiver->inputs[input].plan->port : NULL;
	weir_policy policy = receiver ? receiver->inputs[input].plan->policy : WEIR_POLICY_BLOCK;
	weir_status status;

	if (!connection)
		return WEIR_E_NOMEM;
	status = wr_queue_init(&connection->queue, (uint32_t)graph->connection_count, capacity, policy);
	if (!status && receiver &&
	    (receiver->inputs[input].plan->timed || receiver->inputs[input].plan->reused))
		status = wr_queue_keep_times(&connection->queue);
	connection->queue.shows |= receiver && receiver->inputs[input].plan->reused;
	connection->sender = sender;
	connection->receiver = receiver;
	connection->output = output;
	connection->input = input;
	connection->from = from ? wr_format("%s.%s", sender->plan->name, from->name) : wr_strdup("inlet");
	connection->to = to ? wr_format("%s.%s", receiver->plan->name, to->name) : wr_strdup("outlet");
	if (!connection->from || !connection->to)
		status = status ? status : WEIR_E_NOMEM;
	if (!status)
		status = wr_grow(&graph->connections, &graph->connection_room, graph->connection_count + 1,
				 sizeof connection);
	if (!status)
		status = attach_ends(connection);
	if (status) {
		wr_connection_destroy(connection);
		return status;
	}
	graph->connections[graph->connection_count++] = connection;
	*out = connection;
	return WEIR_OK;
}

weir_status wr_connection_create_unlisted(weir_entity *receiver, uint32_t input, uint32_t capacity,
					  struct wr_connection **out)
{
	struct wr_connection *connection = wr_alloc_aligned(64, sizeof *connection);
	weir_status status;

	if (!connection)
		return WEIR_E_NOMEM;
	status =
		wr_queue_init(&connection->queue, UINT32_MAX, capacity, receiver->inputs[input].plan->policy);
	connection->receiver = receiver;
	connection->input = input;
	if (!status)
		status = attach_ends(connection);
	if (status) {
		wr_connection_destroy(connection);
		return status;
	}
	*out = connection;
	return WEIR_OK;
}

void wr_connection_announce_fences(struct wr_connection *connection)
{
	weir_entity *receiver = connection->receiver;

	/* Relaxed would suffice: the push that follows releases it, closing the front acquires that push. */
	if (receiver &&
	    (receiver->inputs[connection->input].gate || wr_system_has_promises(receiver->graph->system)) &&
	    !(wr_load_relaxed(&receiver->front_checks) & WR_CHECK_GATES))
		wr_fetch_or(&receiver->front_checks, WR_CHECK_GATES);
}

weir_status wr_connection_reset(struct wr_connection *connection, struct wr_pool *pool, size_t *discarded)
{
	weir_status status = WEIR_OK;

	*discarded += wr_queue_reset(&connection->queue);
	connection->sender_owns = false;
	wr_store(&connection->receiver_done, false);
	for (uint32_t i = 0; i < connection->initial_messages; i++) {
		weir_message *message = NULL;
		status = wr_message_empty(pool, &message);
		if (status)
			break;
		wr_queue_push(&connection->queue, message);
	}
	return status;
}

/* === the fan-in set: the owner's side, and the slow path of the senders === */

struct wr_fan_in *wr_fan_in_make(size_t connections)
{
	struct wr_fan_in *set = wr_alloc_aligned(64, sizeof *set);

	if (!set)
		return NULL;
	*set = (struct wr_fan_in){.count = connections};
	set->known = wr_alloc(connections, sizeof *set->known);
	set->ring = wr_alloc(connections, sizeof *set->ring);
	set->fronts = wr_alloc(connections, sizeof *set->fronts);
	if (set->known && set->ring && set->fronts)
		return set;
	wr_fan_in_destroy(set);
	return NULL;
}

void wr_fan_in_destroy(struct wr_fan_in *set)
{
	if (!set)
		return;
	wr_free(set->known);
	wr_free(set->ring);
	wr_free(set->fronts);
	wr_free(set);
}

void wr_fan_in_forget(struct wr_fan_in *set)
{
	set->messages = set->ring_first = set->ring_count = 0;
	set->front_count = set->front_messages = set->at_front = set->at_message = set->taken_count = 0;
	set->least_count = 0;
	set->ended = SIZE_MAX;
	for (size_t i = 0; i < set->count; i++)
		set->known[i] = (struct wr_known){.closed = set->known[i].closed};
}

void wr_fan_in_reset(struct wr_fan_in *set, struct wr_connection **connections, bool each)
{
	wr_store(&set->news, NULL);
	wr_store(&set->open_senders, set->count);
	set->connections = connections;
	set->any_size = each;
	wr_fan_in_forget(set);
	for (size_t i = 0; i < set->count; i++) {
		struct wr_connection *connection = connections[i];
		set->known[i].closed = false;
		connection->set = set;
		connection->index = (uint32_t)i;
		wr_store(&connection->marked, false);
		if (wr_queue_count(&connection->queue))
			wr_connection_arrived(connection);
	}
}

/* --- senders --- */

/*
 * Many threads push, one takes the whole list: if `first` was taken and inserted again meanwhile, the link is
 * right.
 */
void wr_fan_in_insert(struct wr_connection *connection)
{
	struct wr_fan_in *set = connection->set;
	wr_stack_push(&set->news, connection, next_news);
}

void wr_connection_close(struct wr_connection *connection)
{
	wr_queue_close(&connection->queue);
	if (!connection->set)
		return;
	wr_connection_arrived(connection);
	wr_fetch_sub(&connection->set->open_senders, 1);
}

/* --- owner: what is new --- */

static void ring_add(struct wr_fan_in *set, uint32_t index)
{
	size_t at = set->ring_first + set->ring_count++;

	set->ring[at < set->count ? at : at - set->count] = index;
}

static uint32_t ring_take(struct wr_fan_in *set)
{
	uint32_t index = set->ring[set->ring_first];

	set->ring_first = set->ring_first + 1 == set->count ? 0 : set->ring_first + 1;
	set->ring_count--;
	return index;
}

static void fan_in_read_queue(struct wr_fan_in *set, struct wr_connection *connection)
{
	struct wr_known *known = &set->known[connection->index];
	size_t before = (size_t)known->inbox + known->front;
	size_t inbox, now;

	wr_exchange(&connection->marked, false);
	known->closed = wr_queue_closed(&connection->queue); /* before the count (S5) */
	inbox = wr_queue_inbox(&connection->queue);
	if (!known->inbox && inbox)
		ring_add(set, connection->index);
	set->messages += inbox - known->inbox;
	known->inbox = (uint32_t)inbox;
	if (!set->any_size)
		return;
	now = inbox + known->front; /* more than before, or the queue is now known to be closed */
	if (set->least_count && before == set->least && now > before)
		set->least_count--;
	if (known->closed && now < set->ended)
		set->ended = now;
}

static void fan_in_read_news(struct wr_fan_in *set)
{
	struct wr_connection *newest, *oldest = NULL, *next;

	if (!wr_load_acquire(&set->news))
		return;
	/* The oldest shall be the first. While a connection is marked, no other thread writes its link. */
	for (newest = wr_exchange(&set->news, NULL); newest; newest = next) {
		next = newest->next_news;
		newest->next_news = oldest;
		oldest = newest;
	}
	for (; oldest; oldest = next) {
		next = oldest->next_news; /* before its mark is reset */
		fan_in_read_queue(set, oldest);
	}
}

size_t wr_fan_in_messages(struct wr_fan_in *set)
{
	fan_in_read_news(set);
	return set->messages;
}

/* --- owner: the emptiest queue of an any-size port --- */

/*
 * Called after a tick, or when no queue is at `least` any more: not more often than each queue got a message.
 */
static void fan_in_find_least(struct wr_fan_in *set)
{
	set->least = SIZE_MAX;
	set->ended = SIZE_MAX;
	for (size_t i = 0; i < set->count; i++) {
		size_t now = (size_t)set->known[i].inbox + set->known[i].front;
		if (now < set->least) {
			set->least = now;
			set->least_count = 0;
		}
		set->least_count += now == set->least;
		if (set->known[i].closed && now < set->ended)
			set->ended = now;
	}
}

size_t wr_fan_in_least(struct wr_fan_in *set)
{
	fan_in_read_news(set);
	if (!set->least_count || !set->any_size) /* other ports do not maintain it */
		fan_in_find_least(set);
	return set->least;
}

bool wr_fan_in_ended(struct wr_fan_in *set, size_t needed)
{
	wr_fan_in_least(set);
	return set->ended < needed;
}

/* --- owner: fronts --- */

static size_t move_to_front(struct wr_fan_in *set, uint32_t index, size_t n)
{
	struct wr_known *known = &set->known[index];

	n = n < known->inbox ? n : known->inbox;
	wr_queue_close_front(&set->connections[index]->queue, n);
	if (!known->front)
		set->fronts[set->front_count++] = index;
	known->front += (uint32_t)n;
	known->inbox -= (uint32_t)n;
	set->front_messages += n;
	if (known->inbox)
		ring_add(set, index);
	return n;
}

static int compare_indices(const void *a, const void *b)
{
	uint32_t first = *(const uint32_t *)a, second = *(const uint32_t *)b;

	return (first > second) - (first < second);
}

/*
 * Compute receives the fronts in connection order. If many queues have one, a walk is cheaper than sorting.
 */
static void fan_in_sort_fronts(struct wr_fan_in *set)
{
	if (set->front_count < set->count / 8) {
		qsort(set->fronts, set->front_count, sizeof *set->fronts, compare_indices);
		return;
	}
	set->front_count = 0;
	for (size_t i = 0; i < set->count; i++)
		if (set->known[i].front)
			set->fronts[set->front_count++] = (uint32_t)i;
}

void wr_fan_in_close_fronts(struct wr_fan_in *set, size_t n)
{
	fan_in_read_news(set);
	for (size_t i = 0; i < set->taken_count; i++) /* the counts of the last tick */
		set->known[set->fronts[i]].taken = 0;
	set->taken_count = 0;
	if (!n)
		return; /* held */
	if (set->any_size || n == SIZE_MAX)
		for (size_t i = set->ring_count; i; i--)
			move_to_front(set, ring_take(set), n);
	else
		while (n && set->ring_count)
			n -= move_to_front(set, ring_take(set), 1);
	if (set->front_count > 1)
		fan_in_sort_fronts(set);
}

struct weir_message *wr_fan_in_at(struct wr_fan_in *set, size_t i)
{
	if (i >= set->front_messages)
		return NULL;
	if (i < set->at_message)
		set->at_front = set->at_message = 0;
	while (i - set->at_message >= set->known[set->fronts[set->at_front]].front)
		set->at_message += set->known[set->fronts[set->at_front++]].front;
	return wr_queue_at(&set->connections[set->fronts[set->at_front]]->queue, i - set->at_message);
}

void wr_fan_in_taken(struct wr_fan_in *set)
{
	for (size_t i = 0; i < set->front_count; i++) {
		struct wr_known *known = &set->known[set->fronts[i]];
		known->taken = known->front;
		known->front = 0;
	}
	set->taken_count = set->front_count;
	set->messages -= set->front_messages;
	set->front_count = set->front_messages = set->at_front = set->at_message = 0;
	set->least_count = 0;
}
