/*
 * Inlets (B2). An inlet is a connection of its own into an input port, which any thread may fill: its lock
 * makes these threads one sender. An open inlet holds one live reference, which the first close drops.
 */
#include "base/clock.h"
#include "base/memory.h"
#include "base/status.h"
#include "scheduler/inlet.h"
#include "scheduler/ready.h"
#include "scheduler/run.h"

weir_status weir_graph_add_inlet(weir_graph *graph, const char *port, weir_inlet **out)
{
	weir_entity *receiver;
	uint32_t input;
	weir_inlet *inlet;
	weir_status status = wr_graph_find_input(graph, port, &receiver, &input);

	if (status)
		return status;
	if (graph->scheduler)
		return wr_fail(WEIR_E_STATE, "%s: create inlets before the scheduler", port);
	inlet = wr_alloc(1, sizeof *inlet);
	if (!inlet)
		return WEIR_E_NOMEM;
	inlet->graph = graph;
	status = wr_mutex_init(&inlet->lock);
	if (!status)
		status = wr_cond_init(&inlet->changed);
	if (!status)
		status = wr_graph_connect(graph, NULL, 0, receiver, input,
					  receiver->inputs[input].plan->capacity, &inlet->connection);
	if (status) {
		wr_cond_finish(&inlet->changed);
		wr_mutex_finish(&inlet->lock);
		wr_free(inlet);
		return status;
	}
	inlet->connection->inlet = inlet;
	inlet->next = graph->inlets;
	graph->inlets = inlet;
	*out = inlet;
	return WEIR_OK;
}

size_t wr_inlets_count(const weir_graph *graph)
{
	size_t count = 0;

	for (const weir_inlet *inlet = graph->inlets; inlet; inlet = inlet->next)
		count++;
	return count;
}

void wr_inlets_open(weir_graph *graph)
{
	for (weir_inlet *inlet = graph->inlets; inlet; inlet = inlet->next) {
		wr_mutex_lock(&inlet->lock);
		inlet->open = true;
		wr_mutex_unlock(&inlet->lock);
	}
}

bool wr_inlet_is_open(weir_inlet *inlet)
{
	bool open;

	wr_mutex_lock(&inlet->lock);
	open = inlet->open;
	wr_mutex_unlock(&inlet->lock);
	return open;
}

void weir_inlet_close(weir_inlet *inlet)
{
	bool was_open;

	wr_mutex_lock(&inlet->lock);
	was_open = inlet->open;
	inlet->open = false;
	if (was_open)
		wr_connection_close(inlet->connection);
	wr_cond_broadcast(&inlet->changed);
	wr_mutex_unlock(&inlet->lock);
	if (!was_open)
		return;
	wr_poke(inlet->connection->receiver);
	wr_run_drop_live(inlet->graph->scheduler);
}

/*
 * Mostly no thread waits for room, and then the lock is not taken: the pushing thread holds it while it
 * wakes this worker, which would go back to sleep on it. The room is freed before the read-modify-write of
 * `waiting` here; a waiter increments `waiting` and then looks for room. So either the waiter sees the room,
 * or this function sees the waiter.
 */
void wr_inlet_wake_waiting(weir_inlet *inlet)
{
	if (!wr_fetch_add(&inlet->waiting, 0))
		return;
	wr_mutex_lock(&inlet->lock); /* so that no waiter is between its look for room and its wait */
	wr_mutex_unlock(&inlet->lock);
	wr_cond_broadcast(&inlet->changed);
}

static bool is_full_locked(weir_inlet *inlet)
{
	struct wr_queue *queue = &inlet->connection->queue;

	return inlet->open && queue->policy == WEIR_POLICY_BLOCK && !wr_queue_room(queue);
}

/* Increments `waiting`, then looks for room again (see wr_inlet_wake_waiting). Returns false on a timeout. */
static bool wait_for_change_locked(weir_inlet *inlet, int64_t until)
{
	bool in_time;

	wr_fetch_add(&inlet->waiting, 1);
	in_time = !is_full_locked(inlet) || wr_cond_wait(&inlet->changed, &inlet->lock, until);
	wr_fetch_sub(&inlet->waiting, 1);
	return in_time;
}

static weir_status wait_for_room_locked(weir_inlet *inlet, int64_t until)
{
	while (is_full_locked(inlet)) {
		if (until == INT64_MIN)
			return WEIR_E_BUSY;
		if (!wait_for_change_locked(inlet, until))
			return WEIR_E_TIMEOUT;
	}
	return inlet->open ? WEIR_OK : WEIR_E_CLOSED;
}

/* Policy `fault`. Checked before the message counts as delivered: a refused message stays the caller's. */
static weir_status check_fault_locked(const weir_inlet *inlet)
{
	struct wr_connection *connection = inlet->connection;
	struct wr_queue *queue = &connection->queue;

	if (queue->policy != WEIR_POLICY_FAULT || wr_queue_newest_room(queue, wr_read(&queue->tail)))
		return WEIR_OK;
	return wr_fail_port(WEIR_E_BUSY, connection->receiver->plan->name,
			    connection->receiver->inputs[connection->input].plan->port->name,
			    "the queue is full");
}

/*
 * There is room, as only the holder of the lock fills the queue. left: messages that the push evicted or took
 * back; the caller drops them after the lock, since a destructor may push here (S11).
 */
static void push_locked(weir_inlet *inlet, weir_message *message, weir_message *left[2])
{
	struct wr_connection *connection = inlet->connection;
	struct wr_trace *trace = inlet->graph->scheduler->trace;
	enum wr_pushed pushed;

	if (wr_pool_has(inlet->graph->pool, WR_POOL_STAMPS))
		wr_message_stamp_parts(message);
	wr_message_mark_delivered(message);
	if (wr_message_has_fences(message))
		wr_connection_announce_fences(connection);
	if (trace)
		wr_queue_tell_push(&connection->queue, trace, WR_LANE_OUTSIDE);
	pushed = wr_queue_push_out(&connection->queue, message, &left[0]);
	if (trace && pushed != WR_PUSHED)
		wr_queue_tell_drop(&connection->queue, trace, WR_LANE_OUTSIDE, pushed);
	if (pushed <= WR_PUSH_EVICTED)
		wr_connection_arrived(connection);
	/*
	 * Under the lock, which a receiver that becomes DONE takes to end the inlet. So once it is DONE the
	 * queue holds no more than this push, or, in a run that is cut short, pushes whose poke was refused.
	 * A refused poke says nothing about the receiver, which may still be looking at the queue: then the
	 * message stays and is abandoned with the rest.
	 */
	wr_poke(connection->receiver);
	if (wr_load(&connection->receiver->state) & WR_DONE)
		left[1] = wr_queue_take_one_back(&connection->queue);
}

static const struct wr_plan_input *input_of(const weir_inlet *inlet)
{
	const struct wr_connection *connection = inlet->connection;

	return connection->receiver->inputs[connection->input].plan;
}

static weir_status check_type_locked(weir_inlet *inlet, const weir_message *message)
{
	const struct wr_port_type *type = &input_of(inlet)->type;
	const weir_tensor *tensor = wr_port_type_says(type) ? weir_message_tensor(message) : NULL;

	if (!tensor || wr_passed_is(&inlet->passed, tensor))
		return WEIR_OK;
	if (!wr_port_type_takes(type, tensor))
		return wr_fail(WEIR_E_INVALID, "inlet of %s: %s was pushed, but the port takes %s",
			       inlet->connection->to, wr_tensor_words(tensor).text,
			       wr_port_type_text(type).text);
	wr_passed_set(&inlet->passed, tensor);
	return WEIR_OK;
}

struct push {
	weir_inlet *inlet;
	weir_message *message;
	int64_t timeout_ns;
};

#define NO_RUN     "no run is on: push after the start"
#define CLOSED_WHY "it is closed, by the program, a drain, or since its receiver is done"

static weir_status inlet_push(weir_scheduler *scheduler, void *arg)
{
	const struct push *push = arg;
	weir_inlet *inlet = push->inlet;
	int64_t until = push->timeout_ns < 0 ? WR_FOREVER
			: push->timeout_ns   ? wr_time_add(wr_now(), push->timeout_ns)
					     : INT64_MIN;
	weir_message *left[2] = {NULL, NULL};
	weir_status status;

	wr_mutex_lock(&inlet->lock);
	status = check_type_locked(inlet, push->message);
	if (status) {
		wr_mutex_unlock(&inlet->lock);
		return status;
	}
	status = wait_for_room_locked(inlet, until);
	if (status)
		wr_fail(status, "inlet of %s: %s", inlet->connection->to,
			status != WEIR_E_CLOSED             ? "no room in the queue"
			: weir_scheduler_running(scheduler) ? CLOSED_WHY
							    : NO_RUN);
	else
		status = check_fault_locked(inlet);
	if (!status)
		push_locked(inlet, push->message, left);
	wr_mutex_unlock(&inlet->lock);
	weir_message_unref(left[0]);
	weir_message_unref(left[1]);
	return status;
}

weir_status weir_inlet_push(weir_inlet *inlet, weir_message *message, int64_t timeout_ns)
{
	struct push push = {inlet, message, timeout_ns};

	if (!message || wr_message_pool(message) != inlet->graph->pool)
		return wr_fail(WEIR_E_INVALID, "inlet of %s: %s", inlet->connection->to,
			       message ? "the message belongs to another graph"
				       : "a message is needed, NULL was given");
	if (!(weir_message_kind(message) & input_of(inlet)->kinds))
		return wr_fail(WEIR_E_INVALID, "inlet of %s: the port does not take messages of this kind",
			       inlet->connection->to);
	if (!inlet->graph->scheduler)
		return wr_fail(WEIR_E_CLOSED, "inlet of %s: %s", inlet->connection->to, NO_RUN);
	if (timeout_ns && wr_thread_local())
		return wr_fail(WEIR_E_INVALID,
			       "inlet of %s: a worker must not wait for room: push with timeout 0",
			       inlet->connection->to);
	return wr_world_call(inlet->graph->scheduler, inlet_push, &push);
}
