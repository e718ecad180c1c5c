/*
 * Where a program feeds the graph and takes from it (B2): inlets, then outlets.
 *
 * An inlet is a connection of its own into an input port, which any thread may fill: its lock
 * makes these threads one sender. An open inlet holds one live reference, which the first close drops.
 */
#include "scheduler/ends.h"

#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/status.h"
#include "base/words.h"
#include "graphs/parameter.h"
#include "graphs/registry.h"
#include "scheduler/graph.h"
#include "scheduler/scheduler.h"
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
	if (receiver->inputs[input].plan->policy == WEIR_POLICY_LATEST && receiver->inputs[input].count)
		return wr_fail(WEIR_E_INVALID,
			       "%s: the port has a sender, and 'latest' gives what came last by one", port);
	inlet = wr_alloc(1, sizeof *inlet);
	if (!inlet)
		return WEIR_E_NOMEM;
	inlet->graph = graph;
	inlet->fd = -1;
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

/* Once. Returns 0, or what eventfd fails with. */
static int fd_open(int *fd, bool readable)
{
	if (*fd < 0)
		*fd = eventfd(readable, EFD_NONBLOCK | EFD_CLOEXEC);
	return *fd < 0 ? errno : 0;
}

static void fd_set_readable(int fd, bool readable)
{
	uint64_t count = 1;

	if (readable)
		while (write(fd, &count, sizeof count) < 0 && errno == EINTR)
			;
	else
		while (read(fd, &count, sizeof count) < 0 && errno == EINTR)
			;
}

static void inlet_disarm_locked(weir_inlet *inlet)
{
	if (!inlet->armed)
		return;
	inlet->armed = false;
	wr_fetch_sub(&inlet->waiting, 1);
	fd_set_readable(inlet->fd, true);
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
	inlet_disarm_locked(inlet);
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
	inlet_disarm_locked(inlet);
	wr_mutex_unlock(&inlet->lock);
	wr_cond_broadcast(&inlet->changed);
}

/* With `fault` a push is refused at once, so that room is asked for anew. */
static bool lacks_room_locked(weir_inlet *inlet)
{
	struct wr_queue *queue = &inlet->connection->queue;

	if (queue->policy == WEIR_POLICY_FAULT)
		return !wr_queue_newest_room(queue, wr_read(&queue->tail));
	return queue->policy == WEIR_POLICY_BLOCK && !wr_queue_room(queue);
}

static bool is_full_locked(weir_inlet *inlet)
{
	return inlet->open && inlet->connection->queue.policy == WEIR_POLICY_BLOCK &&
	       lacks_room_locked(inlet);
}

/*
 * Clears the descriptor, which then counts as a waiting thread does. Returns true if there is room by now:
 * look again.
 */
static bool arm_locked(weir_inlet *inlet)
{
	if (inlet->fd < 0 || inlet->armed)
		return false;
	fd_set_readable(inlet->fd, false);
	inlet->armed = true;
	wr_fetch_add(&inlet->waiting, 1);
	if (inlet->open && lacks_room_locked(inlet))
		return false;
	inlet_disarm_locked(inlet);
	return true;
}

static weir_status wait_for_room_locked(weir_inlet *inlet, int64_t until)
{
	bool in_time = true;

	while (in_time && is_full_locked(inlet)) {
		if (until == INT64_MIN && !arm_locked(inlet))
			return WEIR_E_BUSY;
		if (until == INT64_MIN)
			continue;
		wr_fetch_add(&inlet->waiting, 1); /* then looks for room again (see wr_inlet_wake_waiting) */
		in_time = !is_full_locked(inlet) || wr_cond_wait(&inlet->changed, &inlet->lock, until);
		wr_fetch_sub(&inlet->waiting, 1);
	}
	if (!in_time)
		return WEIR_E_TIMEOUT;
	return inlet->open ? WEIR_OK : WEIR_E_CLOSED;
}

/*
 * Policy `fault`. Checked before the message counts as delivered: a refused message stays the caller's. With
 * timeout 0 the descriptor is cleared, as for a queue that blocks: a loop that waits for it does not spin.
 */
static weir_status check_fault_locked(weir_inlet *inlet, int64_t until)
{
	struct wr_connection *connection = inlet->connection;
	bool full = connection->queue.policy == WEIR_POLICY_FAULT && lacks_room_locked(inlet);

	while (full && until == INT64_MIN && arm_locked(inlet))
		full = lacks_room_locked(inlet);
	if (!full)
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
		status = check_fault_locked(inlet, until);
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

static weir_status inlet_open_fd(weir_scheduler *scheduler, void *arg)
{
	weir_inlet *inlet = arg;
	int error;

	(void)scheduler;
	wr_mutex_lock(&inlet->lock);
	error = fd_open(&inlet->fd, true);
	wr_mutex_unlock(&inlet->lock);
	if (!error)
		return WEIR_OK;
	return wr_fail(WEIR_E_IO, "the descriptor of the inlet of %s: %s", inlet->connection->to,
		       wr_errno_words(error));
}

weir_status weir_inlet_fd(weir_inlet *inlet, int *out)
{
	weir_scheduler *scheduler = inlet->graph->scheduler;
	weir_status status =
		scheduler ? wr_world_call(scheduler, inlet_open_fd, inlet) : inlet_open_fd(NULL, inlet);

	if (!status)
		*out = inlet->fd;
	return status;
}

/*
 * === outlets ===
 *
 * An outlet is a queue from which any thread may take: its lock makes these threads one
 * receiver and guards the sender's side, too. A non-empty outlet holds one live reference, so the run does
 * not end before its messages have been taken.
 *
 * `readable` is true while a take would return at once, with a message or with WEIR_E_CLOSED. A program's own
 * loop need not poll: the outlet's descriptor is readable meanwhile.
 */

/* Returns true if the oldest message may be taken. */
static bool has_finished(weir_outlet *outlet)
{
	return outlet->holding && wr_queue_count(&outlet->connection->queue) > outlet->unfinished;
}

/* Call after each change. */
static void update_readable_locked(weir_outlet *outlet)
{
	bool over = (outlet->ended && !outlet->holding) || outlet->closed;
	bool show = over || has_finished(outlet), before = outlet->readable;

	outlet->readable = show;
	if (show != before && outlet->fd >= 0)
		fd_set_readable(outlet->fd, show);
}

/* --- finishers --- */

static const weir_port outlet_ports[] = {{.size = sizeof(weir_port), .name = "in"}, {.name = NULL}};

/*
 * The compute function of the finisher. It drops its reference before the message can be taken: the taker may
 * call weir_message_unique().
 */
static weir_status finisher_compute(weir_context *context, void *state)
{
	struct wr_finisher *finisher = (struct wr_finisher *)(void *)context->entity;
	weir_outlet *outlet = finisher->outlet;
	struct wr_input *input = &finisher->entity.inputs[0];

	(void)state;
	weir_message_unref(input->taken[0]);
	input->taken_count = 0;
	wr_mutex_lock(&outlet->lock);
	outlet->unfinished--;
	update_readable_locked(outlet);
	wr_cond_broadcast(&outlet->changed);
	wr_mutex_unlock(&outlet->lock);
	return WEIR_OK;
}

static const weir_operator outlet_operator = {
	.size = sizeof(weir_operator), .name = "outlet", .inputs = outlet_ports, .compute = finisher_compute};

/* {"type": "cuda_stream", "port": "in"}, with the scheduler's signal. */
static weir_status plan_condition(struct wr_plan_condition *condition)
{
	const weir_condition *gate = wr_registry_find_condition(NULL, "cuda_stream");
	weir_values *values = wr_alloc(1, sizeof *values + sizeof values->settings[0]);
	unsigned *ports = wr_alloc(1, sizeof *ports);

	*condition =
		(struct wr_plan_condition){.kind = gate, .values = values, .implied = true, .signal = -1};
	condition->name = wr_strdup(gate->name);
	if (values) {
		values->count = 1;
		values->settings[0] = (struct wr_setting){
			.parameter = &gate->parameters[0], .ports = ports, .port_count = 1};
	}
	if (!values)
		wr_free(ports);
	return values && ports && condition->name ? WEIR_OK : WEIR_E_NOMEM;
}

static weir_status make_plan(struct wr_finisher *finisher, const char *port, uint32_t capacity)
{
	/* `reject` wakes no sender for room. It never rejects: it holds at most what the outlet holds. */
	finisher->input = (struct wr_plan_input){.port = outlet_ports,
						 .capacity = capacity,
						 .take = 1,
						 .policy = WEIR_POLICY_REJECT,
						 .connections = 1};
	finisher->plan = (struct wr_plan_entity){.kind = &outlet_operator,
						 .stream_pool = WR_NO_POOL,
						 .inputs = &finisher->input,
						 .input_count = 1,
						 .conditions = &finisher->condition,
						 .condition_count = 1};
	finisher->plan.name = wr_format("outlet of '%s'", port);
	return finisher->plan.name ? plan_condition(&finisher->condition) : WEIR_E_NOMEM;
}

/* The graph runs it only after finisher_give. */
static weir_status finisher_make(weir_graph *graph, const char *port, uint32_t capacity,
				 struct wr_finisher **out)
{
	struct wr_finisher *finisher = wr_alloc_aligned(64, sizeof *finisher);
	weir_status status;

	if (!finisher)
		return WEIR_E_NOMEM;
	status = make_plan(finisher, port, capacity);
	if (!status)
		status = wr_entity_fill(&finisher->entity, graph, (uint32_t)wr_graph_count_all(graph),
					&finisher->plan);
	if (!status)
		status = wr_connection_create_unlisted(&finisher->entity, 0, capacity, &finisher->connection);
	if (!status)
		status = wr_grow(&graph->finishers, &graph->finisher_room, graph->finisher_count + 1,
				 sizeof *graph->finishers);
	if (status) {
		wr_finisher_destroy(finisher);
		return status;
	}
	*out = finisher;
	return WEIR_OK;
}

/* To the outlet's graph; it is the one that was made last, so there is room. */
static void finisher_give(struct wr_finisher *finisher, weir_outlet *outlet)
{
	weir_graph *graph = outlet->graph;

	finisher->outlet = outlet;
	outlet->finisher = finisher;
	graph->finishers[graph->finisher_count++] = finisher;
}

void wr_finisher_destroy(struct wr_finisher *finisher)
{
	if (!finisher)
		return;
	if (finisher->connection)
		wr_connection_destroy(finisher->connection);
	wr_entity_finish(&finisher->entity);
	wr_values_destroy(finisher->condition.values);
	wr_free(finisher->condition.name);
	wr_free(finisher->plan.name);
	wr_free(finisher);
}

/* --- adding one --- */

/* Checks the arguments of weir_graph_add_outlet(). *capacity: 0 is replaced by the plan's, or by 1. */
static weir_status check_outlet(const weir_graph *graph, const char *port, const struct wr_output *output,
				unsigned flags, uint32_t *capacity)
{
	if (graph->scheduler)
		return wr_fail(WEIR_E_STATE, "%s: create outlets before the scheduler", port);
	if (flags & ~(unsigned)WEIR_OUTLET_EARLY)
		return wr_fail(WEIR_E_INVALID, "%s: an outlet's flags are 0 or WEIR_OUTLET_EARLY, not %#x",
			       port, flags);
	if (*capacity > WR_CAPACITY_MAX)
		return wr_fail(WEIR_E_INVALID, "%s: an outlet's capacity is at most %u", port,
			       WR_CAPACITY_MAX);
	*capacity = *capacity ? *capacity : output->plan->outlet;
	*capacity = *capacity ? *capacity : 1;
	if (*capacity < output->needs) /* the entity could never tick */
		return wr_fail(WEIR_E_INVALID,
			       "%s: one tick may emit %zu, but only %u fit: raise the outlet's capacity",
			       port, output->needs, *capacity);
	return WEIR_OK;
}

weir_status weir_graph_add_outlet(weir_graph *graph, const char *port, uint32_t capacity, unsigned flags,
				  weir_outlet **out)
{
	struct wr_finisher *finisher = NULL;
	weir_entity *sender;
	uint32_t output;
	weir_outlet *outlet;
	weir_status status = wr_graph_find_output(graph, port, &sender, &output);

	if (!status)
		status = check_outlet(graph, port, &sender->outputs[output], flags, &capacity);
	if (status)
		return status;
	outlet = wr_alloc(1, sizeof *outlet);
	if (!outlet)
		return WEIR_E_NOMEM;
	outlet->graph = graph;
	outlet->ended = true;
	outlet->fd = -1;
	status = wr_mutex_init(&outlet->lock);
	if (!status)
		status = wr_cond_init(&outlet->changed);
	if (!status && !(flags & WEIR_OUTLET_EARLY))
		status = finisher_make(graph, port, capacity, &finisher);
	if (!status)
		status = wr_graph_connect(graph, sender, output, NULL, 0, capacity, &outlet->connection);
	if (status) {
		wr_finisher_destroy(finisher);
		wr_cond_finish(&outlet->changed);
		wr_mutex_finish(&outlet->lock);
		wr_free(outlet);
		return status;
	}
	if (finisher)
		finisher_give(finisher, outlet);
	outlet->connection->outlet = outlet;
	outlet->next = graph->outlets;
	graph->outlets = outlet;
	*out = outlet;
	return WEIR_OK;
}

/* --- descriptor and function for a program's loop --- */

static weir_status outlet_open_fd(weir_scheduler *scheduler, void *arg)
{
	weir_outlet *outlet = arg;
	int error;

	(void)scheduler;
	wr_mutex_lock(&outlet->lock);
	error = fd_open(&outlet->fd, outlet->readable);
	wr_mutex_unlock(&outlet->lock);
	if (!error)
		return WEIR_OK;
	return wr_fail(WEIR_E_IO, "the descriptor of the outlet of %s: %s", outlet->connection->from,
		       wr_errno_words(error));
}

weir_status weir_outlet_fd(weir_outlet *outlet, int *out)
{
	weir_scheduler *scheduler = outlet->graph->scheduler;
	weir_status status =
		scheduler ? wr_world_call(scheduler, outlet_open_fd, outlet) : outlet_open_fd(NULL, outlet);

	if (!status)
		*out = outlet->fd;
	return status;
}

/* --- the run's side --- */

void wr_outlets_open(weir_graph *graph)
{
	for (weir_outlet *outlet = graph->outlets; outlet; outlet = outlet->next) {
		wr_mutex_lock(&outlet->lock);
		outlet->ended = outlet->holding = outlet->closed = false;
		outlet->unfinished = 0;
		wr_latencies_clear(&outlet->latencies);
		update_readable_locked(outlet);
		wr_mutex_unlock(&outlet->lock);
	}
}

enum { FEW = 8 };

/* Does not query the device, which has hardly begun what was just enqueued. */
static bool message_is_finished(struct wr_system *system, const weir_message *message)
{
	weir_fence fences[FEW];
	size_t count = wr_message_has_fences(message) ? wr_message_fences(message, fences, FEW) : 0;

	for (size_t i = 0; i < count; i++)
		if (count > FEW || !wr_fence_known_complete(system, fences[i]))
			return false;
	return true;
}

void wr_outlet_push(struct wr_worker *worker, weir_outlet *outlet, weir_message *message)
{
	bool was_holding, unfinished;

	wr_mutex_lock(&outlet->lock);
	if (outlet->closed) {
		if (worker->scheduler->trace)
			wr_queue_tell_push(&outlet->connection->queue, worker->scheduler->trace,
					   worker->local.index);
		wr_count(&outlet->connection->queue.counters.pushed, 1);
		wr_count(&outlet->connection->queue.counters.closed, 1);
		wr_mutex_unlock(&outlet->lock);
		wr_message_unref(message);
		return;
	}
	/* Not finished, or behind such a one: messages are taken in order. */
	unfinished = outlet->finisher &&
		     (outlet->unfinished || !message_is_finished(outlet->graph->system, message));
	if (unfinished) {
		wr_connection_push(outlet->finisher->connection, weir_message_ref(message));
		outlet->unfinished++;
	}
	if (worker->scheduler->trace)
		wr_queue_tell_push(&outlet->connection->queue, worker->scheduler->trace, worker->local.index);
	wr_queue_push(&outlet->connection->queue, message); /* there is room: the review saw it */
	was_holding = outlet->holding;
	outlet->holding = true;
	if (!was_holding)
		wr_live_take(&worker->scheduler->live);
	update_readable_locked(outlet);
	wr_cond_broadcast(&outlet->changed);
	wr_mutex_unlock(&outlet->lock);
	if (unfinished)
		wr_poke_by_worker(worker, &outlet->finisher->entity);
}

void wr_outlet_end(weir_outlet *outlet, bool abandon)
{
	bool drop;

	wr_mutex_lock(&outlet->lock);
	outlet->ended = true;
	drop = outlet->holding && abandon;
	outlet->holding = outlet->holding && !abandon;
	update_readable_locked(outlet);
	wr_cond_broadcast(&outlet->changed);
	wr_mutex_unlock(&outlet->lock);
	if (drop)
		wr_run_drop_live(outlet->graph->scheduler);
}

void wr_outlet_done(struct wr_worker *worker, weir_outlet *outlet)
{
	wr_outlet_end(outlet, false);
	if (!outlet->finisher)
		return;
	wr_connection_close(outlet->finisher->connection);
	wr_poke_by_worker(worker, &outlet->finisher->entity);
}

/* --- the taker's side --- */

/* *drop: the outlet is empty now: the caller must drop its live reference after the lock. */
static weir_status outlet_take_locked(weir_outlet *outlet, weir_message **out, int64_t until, bool *drop)
{
	struct wr_queue *queue = &outlet->connection->queue;
	int64_t now = 0;

	/* `holding` is false after a cut: the messages that are left are abandoned, not taken. */
	while (!has_finished(outlet)) {
		if ((outlet->ended && !outlet->holding) || outlet->closed)
			return wr_fail(WEIR_E_CLOSED, "outlet: it is empty and no more messages will come");
		if (until == INT64_MIN || !wr_cond_wait(&outlet->changed, &outlet->lock, until))
			return wr_fail(WEIR_E_TIMEOUT, "outlet: no message came in time");
	}
	wr_queue_close_front(queue, 1);
	if (outlet->graph->scheduler && outlet->graph->scheduler->trace)
		wr_queue_tell_take(queue, outlet->graph->scheduler->trace, WR_LANE_OUTSIDE);
	wr_queue_take(queue, out);
	wr_message_note_outside(*out);
	if (wr_pool_has(outlet->graph->pool, WR_POOL_STAMPS))
		wr_latencies_add(&outlet->latencies, *out, &now);
	*drop = !wr_queue_count(queue);
	if (*drop)
		outlet->holding = false;
	update_readable_locked(outlet);
	return WEIR_OK;
}

struct take {
	weir_outlet *outlet;
	int64_t timeout_ns;
	weir_message **out;
};

/* scheduler: NULL if the graph has none. */
static weir_status outlet_take(weir_scheduler *scheduler, void *arg)
{
	const struct take *take = arg;
	weir_outlet *outlet = take->outlet;
	int64_t until = take->timeout_ns < 0 ? WR_FOREVER
			: take->timeout_ns   ? wr_time_add(wr_now(), take->timeout_ns)
					     : INT64_MIN;
	bool drop = false;
	weir_status status;

	wr_mutex_lock(&outlet->lock);
	status = outlet_take_locked(outlet, take->out, until, &drop);
	wr_mutex_unlock(&outlet->lock);
	if (status)
		return status;
	/* There is room again. The poke comes first: the live reference keeps the run open for it. */
	wr_poke(outlet->connection->sender);
	if (drop)
		wr_run_drop_live(scheduler);
	return WEIR_OK;
}

weir_status weir_outlet_take(weir_outlet *outlet, int64_t timeout_ns, weir_message **out)
{
	struct take take = {outlet, timeout_ns, out};

	if (wr_thread_local())
		return wr_fail(WEIR_E_INVALID, "outlet: a worker must not take from an outlet");
	if (outlet->graph->scheduler)
		return wr_world_call(outlet->graph->scheduler, outlet_take, &take);
	take.timeout_ns = 0;
	return outlet_take(NULL, &take);
}

/* One message that a closed outlet still holds, whether it is finished or not. */
static weir_status outlet_drop_one(weir_scheduler *scheduler, void *arg)
{
	weir_outlet *outlet = arg;
	struct wr_queue *queue = &outlet->connection->queue;
	weir_message *message = NULL;
	bool last = false;

	wr_mutex_lock(&outlet->lock);
	outlet->closed = outlet->graph->system && wr_system_running(outlet->graph->system);
	if (outlet->holding) {
		wr_queue_close_front(queue, 1);
		if (scheduler && scheduler->trace)
			wr_queue_tell_take(queue, scheduler->trace, WR_LANE_OUTSIDE);
		wr_queue_take(queue, &message);
		last = !wr_queue_count(queue);
		outlet->holding = !last;
	}
	update_readable_locked(outlet);
	wr_cond_broadcast(&outlet->changed);
	wr_mutex_unlock(&outlet->lock);
	if (!message)
		return WEIR_E_CLOSED;
	weir_message_unref(message);
	wr_poke(outlet->connection->sender);
	if (last)
		wr_run_drop_live(scheduler);
	return WEIR_OK;
}

void weir_outlet_close(weir_outlet *outlet)
{
	weir_scheduler *scheduler = outlet->graph->scheduler;

	if (wr_thread_local())
		return;
	while (!(scheduler ? wr_world_call(scheduler, outlet_drop_one, outlet)
			   : outlet_drop_one(NULL, outlet)))
		;
}
