/*
 * Inlets (B2): a connection of its own into an input port, filled by any thread; its lock makes them one
 * sender. An open inlet holds one live reference; closing, whoever does it, gives it back once.
 */
#include "base/bug.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/status.h"
#include "scheduler/scheduler.h"
#include "scheduler/world.h"

weir_status weir_graph_inlet(weir_graph *graph, const char *port, weir_inlet **out)
{
	weir_entity *receiver;
	uint32_t input;
	weir_inlet *inlet;
	weir_status status = wr_graph_find_input(graph, port, &receiver, &input);

	if (status)
		return status;
	if (graph->scheduler)
		return wr_fail(WEIR_E_BUSY, "%s: make inlets before the scheduler", port);
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

void wr_inlet_end(weir_inlet *inlet)
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
	wr_drop_live(inlet->graph->scheduler);
}

void weir_inlet_close(weir_inlet *inlet)
{
	wr_inlet_end(inlet);
}

/*
 * Mostly no thread waits for room, and the lock is not taken: the thread that pushes holds it while it wakes this
 * worker, which would go to sleep again for it. The room was freed before; so of two read-modify-writes of
 * `waiting` the later one's thread sees what the other has done before its own.
 */
void wr_inlet_room(weir_inlet *inlet)
{
	if (!wr_fetch_add(&inlet->waiting, 0))
		return;
	wr_mutex_lock(&inlet->lock);	/* it waits, or is past that: not in between */
	wr_mutex_unlock(&inlet->lock);
	wr_cond_broadcast(&inlet->changed);
}

static bool full(weir_inlet *inlet)
{
	struct wr_queue *queue = &inlet->connection->queue;

	return inlet->open && queue->policy == WEIR_BLOCK && !wr_queue_room(queue);
}

/* Counted as waiting, then looks again: see wr_inlet_room. */
static bool wait_for_change_locked(weir_inlet *inlet, int64_t until)
{
	bool in_time;

	wr_fetch_add(&inlet->waiting, 1);
	in_time = (!full(inlet) && !WR_BUG(INLET_WAITS_UNSEEN)) || wr_cond_wait(&inlet->changed, &inlet->lock, until);
	wr_fetch_sub(&inlet->waiting, 1);
	return in_time;
}

/* Waits for room. */
static weir_status wait_locked(weir_inlet *inlet, int64_t until)
{
	while (full(inlet)) {
		if (until == INT64_MIN)
			return WEIR_E_BUSY;
		if (!wait_for_change_locked(inlet, until))
			return WEIR_E_TIMEOUT;
	}
	return inlet->open ? WEIR_OK : WEIR_E_CLOSED;
}

/* What is refused stays the caller's alone, so it is asked before the message counts as delivered. */
static weir_status refuse_locked(const weir_inlet *inlet)
{
	struct wr_connection *connection = inlet->connection;
	struct wr_queue *queue = &connection->queue;

	if (queue->policy != WEIR_FAULT || wr_queue_newest_room(queue, wr_read(&queue->tail)))
		return WEIR_OK;
	return wr_fail(WEIR_E_BUSY, "%s.%s: the queue is full", connection->receiver->plan->name,
		       connection->receiver->inputs[connection->input].plan->port->name);
}

/*
 * There is room: only its sender fills a queue, and that is who holds the lock. left: what the push drove out, handed out
 * with the lock still held: its destructor may push here (S11).
 */
static void push_locked(weir_inlet *inlet, weir_message *message, weir_message *left[2])
{
	struct wr_connection *connection = inlet->connection;

	wr_message_deliver(message);
	if (wr_message_has_fences(message))
		wr_connection_announce(connection);
	if (wr_queue_push_out(&connection->queue, message, &left[0]) == WR_PUSHED)
		wr_connection_arrived(connection);
	/*
	 * Under the lock: the receiver, on becoming DONE, ends the inlet, and waits for it. A refused poke
	 * says nothing of the receiver: the run is being cut short, and it may still be looking; what was
	 * pushed is abandoned with the rest. So after DONE there is no more here than this push, or, in a run
	 * that is cut short, some whose poke was refused.
	 */
	wr_poke(connection->receiver);
	if (wr_load(&connection->receiver->state) & WR_DONE)
		left[1] = wr_queue_take_one_back(&connection->queue);
}

static weir_status push(weir_inlet *inlet, weir_message *message, int64_t timeout_ns)
{
	int64_t until = timeout_ns < 0 ? WR_FOREVER
			: timeout_ns   ? wr_time_add(wr_now(), timeout_ns)
				       : INT64_MIN;
	weir_message *left[2] = {NULL, NULL};
	weir_status status;

	wr_mutex_lock(&inlet->lock);
	status = wait_locked(inlet, until);
	if (status)
		wr_fail(status, "inlet of %s: %s", inlet->connection->receiver->plan->name,
			status == WEIR_E_CLOSED ? "closed" : "no room");
	else
		status = refuse_locked(inlet);
	if (!status)
		push_locked(inlet, message, left);
	wr_mutex_unlock(&inlet->lock);
	weir_message_unref(left[0]);
	weir_message_unref(left[1]);
	return status;
}

struct pushing {
	weir_inlet *inlet;
	weir_message *message;
	int64_t timeout_ns;
	weir_status status;
};

static void push_inside(void *arg)
{
	struct pushing *pushing = arg;

	pushing->status = push(pushing->inlet, pushing->message, pushing->timeout_ns);
}

static bool takes_kind(const weir_inlet *inlet, unsigned kind)
{
	const struct wr_connection *connection = inlet->connection;
	unsigned kinds = connection->receiver->inputs[connection->input].plan->port->kinds;

	return !kinds || kinds & kind;
}

weir_status weir_inlet_push(weir_inlet *inlet, weir_message *message, int64_t timeout_ns)
{
	struct pushing pushing = {inlet, message, timeout_ns, WEIR_OK};
	weir_status status;

	if (!message || wr_message_pool(message) != inlet->graph->pool)
		return wr_fail(WEIR_E_INVALID, "inlet: the message belongs to another graph");
	if (!takes_kind(inlet, weir_message_kind(message)))
		return wr_fail(WEIR_E_INVALID, "inlet of %s: the port does not take messages of this kind",
			       inlet->connection->to);
	if (!inlet->graph->scheduler)
		return wr_fail(WEIR_E_CLOSED, "inlet: no run is on");
	if (timeout_ns && wr_thread_local())
		return wr_fail(WEIR_E_INVALID, "inlet: a worker must not wait for room; push with timeout 0");
	status = wr_in_world(inlet->graph->scheduler, push_inside, &pushing);
	return status ? status : pushing.status;
}
