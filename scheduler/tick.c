/*
 * A tick, and the end of an entity. A tick takes the inputs (which frees room and pokes their senders), runs
 * compute, fences the streams that it used, calls the conditions' `ticked`, delivers the outputs and only
 * then drops the references to the inputs (T4).
 *
 * Delivery pushes each emitted message to all connections of its output and pokes the receiver after each
 * push. The references for all connections are taken before the first push (T4). Before a push to a receiver
 * that is gated by flag, a write of the flag is enqueued right after the message's fence (G4). A receiver
 * that is DONE when it is poked does not touch its queue again: from then on the sender owns the queue (S5),
 * and what is pushed there counts as closed.
 *
 * The end (S5): the entity closes its outputs after its last push, drops its input messages and leaves by CAS
 * RUNNING -> DONE; if it was poked meanwhile, it drops its inputs again and retries. Then it pokes its
 * neighbours: receivers see `closed`, senders see receiver_done.
 */
#include "base/clock.h"
#include "base/status.h"
#include "scheduler/ends.h"
#include "scheduler/gpu_time.h"
#include "scheduler/graph.h"
#include "scheduler/memory.h"
#include "scheduler/ready.h"
#include "scheduler/run.h"
#include "scheduler/work.h"
#include "sim/simulation.h"

#define SIM_TICK_NS  2000  /* the longest simulated compute */
#define FAST_TICK_NS 20000 /* a shorter tick sets fast_last_tick */

/* Also pokes the sender blocked on the queue. Returns true if the caller must still call wr_wake_one(). */
static inline bool front_take(struct wr_worker *worker, weir_entity *entity, struct wr_input *input, size_t k)
{
	struct wr_connection *connection = input->connections[k];
	size_t n;

	if (worker->scheduler->trace)
		wr_queue_tell_take(&connection->queue, worker->scheduler->trace, worker->local.index);
	n = wr_queue_take(&connection->queue, input->taken + input->taken_count);
	input->taken_by[k] = n;
	input->taken_count += n;
	if (n && connection->queue.policy == WEIR_POLICY_FAULT && !connection->sender)
		wr_inlet_wake_waiting(connection->inlet);
	if (!n || connection->queue.policy != WEIR_POLICY_BLOCK)
		return false;
	if (!connection->sender)
		wr_inlet_wake_waiting(connection->inlet);
	else if (entity->fast_last_tick)
		return wr_poke_room_no_wake(worker, connection->sender);
	else
		wr_poke_room(worker, connection->sender);
	return false;
}

/*
 * The fronts become the tick's inputs. Returns true if a wake-up is owed. Waking takes longer than a short
 * compute, so after a fast tick it is put off until compute has returned.
 */
static bool inputs_take(struct wr_worker *worker, weir_entity *entity)
{
	bool owed = false;
	size_t held = 0;

	for (size_t i = 0; i < entity->input_count; i++) {
		struct wr_input *input = &entity->inputs[i];
		input->taken_count = 0;
		for (size_t k = 0; input->set && k < input->set->front_count; k++)
			owed |= front_take(worker, entity, input, input->set->fronts[k]);
		if (input->set)
			wr_fan_in_taken(input->set);
		for (size_t k = 0; !input->set && k < input->count; k++)
			owed |= front_take(worker, entity, input, k);
		held += input->taken_count;
		wr_count(&entity->counters.received, input->taken_count);
	}
	entity->context.references = held;
	entity->fronts_closed = false;
	return owed;
}

/* --- compute --- */

/* These two are not inlined: a tick that is not observed pays a branch for each of them. */

__attribute__((noinline)) static void tell_begin(struct wr_worker *worker, weir_entity *entity)
{
	struct wr_trace *trace = worker->scheduler->trace;
	unsigned lane = worker->local.index;

	if (entity->gpu_time)
		wr_gpu_time_begin_tick(entity, lane);
	wr_trace_tick_begin(trace, lane, entity->id, entity->context.tick);
}

__attribute__((noinline)) static void tell_end(struct wr_worker *worker, weir_entity *entity,
					       weir_status status)
{
	struct wr_trace *trace = worker->scheduler->trace;

	wr_entity_trace_streams(entity, trace);
	wr_trace_tick_end(trace, worker->local.index, entity->id, entity->context.tick);
	if (!status)
		wr_trace_computed(trace, entity->id, entity->context.tick, wr_entity_has_device_work(entity));
}

static weir_status run_compute(struct wr_worker *worker, weir_entity *entity)
{
	const weir_graph *graph = entity->graph;
	weir_context *context = &entity->context;
	weir_status status;

	if (entity->gated && wr_system_wait_failed(graph->system))
		return wr_fail(WEIR_E_DEVICE, "%s", wr_system_failure(graph->system));
	if (graph->owns_world) /* a simulated compute takes a random time: deadlines pass and other workers
				  run meanwhile */
		wr_thread_sleep(1 + (int64_t)wr_random_below(wr_sim_random(graph->world), SIM_TICK_NS));
	wr_entity_enter(entity);
	context->computing = true;
	wr_error_clear(worker->error);
	worker->local.context = context;
	if (worker->scheduler->trace)
		tell_begin(worker, entity);
	status = entity->compute(context, entity->operator_state);
	if (worker->scheduler->trace)
		tell_end(worker, entity, status);
	context->computing = false;
	return status ? wr_failure_explain(status, "compute") : WEIR_OK;
}

static void call_ticked(weir_entity *entity)
{
	weir_view view = {.entity = entity};

	for (size_t i = 0; i < entity->condition_count; i++) {
		const weir_condition *kind = entity->conditions[i].plan->kind;
		view.condition = &entity->conditions[i];
		if (kind->ticked)
			kind->ticked(entity->conditions[i].state, &view);
	}
}

static weir_status take_and_compute(struct wr_worker *worker, weir_entity *entity)
{
	bool gated = entity->gated; /* it may become so in a review only */
	int64_t begin = gated || worker->scheduler->trace ? wr_now() : 1;
	bool owed = inputs_take(worker, entity);
	weir_status status;

	wr_note(&entity->computing_since, begin);
	status = run_compute(worker, entity);
	wr_note(&entity->computing_since, 0);
	if (gated)
		entity->fast_last_tick = wr_now() - begin < FAST_TICK_NS;
	if (owed)
		wr_wake_one(worker->scheduler);
	return status;
}

/* --- delivery --- */

static weir_status fail_full_queue(const struct wr_connection *connection, weir_message *message)
{
	const weir_entity *receiver = connection->receiver;
	struct wr_queue_counters *counters = &((struct wr_connection *)connection)->queue.counters;

	wr_count(&counters->pushed, 1); /* counted as pushed and dropped, so the counts add up (E5) */
	wr_count(&counters->dropped, 1);
	weir_message_unref(message);
	return wr_fail_port(WEIR_E_FAILED, receiver->plan->name,
			    receiver->inputs[connection->input].plan->port->name,
			    "the queue of %u is full and its policy is '%s'", connection->queue.capacity,
			    connection->queue.policy == WEIR_POLICY_FAULT ? "fault" : "block");
}

#define FLAGS 8 /* fences of one message; a message with more is armed by callback */

/*
 * The receiver is gated by flag: lets the device write the flag of each stream right after the message's
 * fence. The receiver's review arms them; fences without a flag it arms by callback.
 */
static void write_flags(weir_entity *sender, const weir_message *message)
{
	weir_fence fences[FLAGS];
	size_t count = wr_message_has_fences(message) ? wr_message_fences(message, fences, FLAGS) : 0;

	for (size_t i = 0; i < count && count <= FLAGS; i++) {
		weir_stream *stream = wr_entity_stream_of(sender, fences[i]);
		if (stream)
			wr_flag_write(stream);
	}
}

/*
 * Ends the sender's row of ticks (S2) if its next message would drop one that the receiver, queued or idle,
 * has not yet been able to look at: the receiver runs first.
 */
static void end_row_if_full(struct wr_worker *worker, struct wr_connection *connection, uint32_t receiver)
{
	struct wr_queue *queue = &connection->queue;

	if (receiver == WR_IDLE)
		worker->row_woke = connection->receiver; /* so it is in this worker's own queue */
	if (receiver & WR_RUNNING || wr_queue_newest_room(queue, wr_read(&queue->tail)))
		return;
	worker->row = WR_TICKS_MAX;
	worker->row_yields |= receiver == WR_POKED && worker->row_woke != connection->receiver;
}

static void tell_push(struct wr_worker *worker, struct wr_connection *connection)
{
	if (worker->scheduler->trace)
		wr_queue_tell_push(&connection->queue, worker->scheduler->trace, worker->local.index);
}

static void tell_drop(struct wr_worker *worker, struct wr_connection *connection, enum wr_pushed pushed)
{
	if (worker->scheduler->trace)
		wr_queue_tell_drop(&connection->queue, worker->scheduler->trace, worker->local.index, pushed);
}

static weir_status push_and_poke(struct wr_worker *worker, struct wr_connection *connection,
				 weir_message *message)
{
	enum wr_pushed pushed;
	uint32_t before;

	if (connection->flagged)
		write_flags(connection->sender, message);
	tell_push(worker, connection);
	pushed = wr_connection_push(connection, message);
	switch (pushed) {
	case WR_PUSH_EVICTED:
		tell_drop(worker, connection, pushed);
		/* fallthrough */
	case WR_PUSHED:
		before = wr_poke_fetch(worker, connection->receiver);
		if (before & WR_DONE) {
			wr_queue_take_back(&connection->queue);
			connection->sender_owns = true;
		} else if (connection->queue.policy != WEIR_POLICY_BLOCK) {
			end_row_if_full(worker, connection, before);
		}
		return WEIR_OK;
	case WR_PUSH_DROPPED:
		tell_drop(worker, connection, pushed);
		end_row_if_full(worker, connection, wr_load(&connection->receiver->state));
		return WEIR_OK;
	case WR_PUSH_FULL:
	case WR_PUSH_FAULT:
		tell_drop(worker, connection, pushed);
		break;
	}
	return fail_full_queue(connection, message);
}

/*
 * The receiver is DONE and the sender knows it: counts the message as pushed and taken back, so that all
 * connections of an output have the same count (E5).
 */
static void push_to_done(struct wr_worker *worker, struct wr_connection *connection, weir_message *message)
{
	tell_push(worker, connection);
	wr_count(&connection->queue.counters.pushed, 1);
	wr_count(&connection->queue.counters.taken_back, 1);
	weir_message_unref(message);
}

/* Fences of the message are signalled to the outlet's finisher, as to any other receiver. */
static void push_to_outlet(struct wr_worker *worker, struct wr_connection *connection, weir_message *message)
{
	const struct wr_finisher *finisher = connection->outlet->finisher;

	if (finisher && finisher->connection->flagged)
		write_flags(connection->sender, message);
	wr_outlet_push(worker, connection->outlet, message);
}

/* From now on the receivers' implied gates are asked (C8). */
__attribute__((noinline)) static void announce_fences(const struct wr_output *output)
{
	for (size_t i = 0; i < output->count; i++)
		wr_connection_announce_fences(output->connections[i]);
}

static weir_status deliver_message(struct wr_worker *worker, struct wr_output *output, weir_message *message)
{
	weir_status status = WEIR_OK;
	bool fenced = wr_message_mark_delivered(message);

	if (fenced)
		announce_fences(output);
	if (output->count > 1) /* all before the first push (T4) */
		wr_message_ref_many(message, (uint32_t)output->count - 1);
	for (size_t i = 0; i < output->count; i++) {
		struct wr_connection *connection = output->connections[i];
		weir_status one = WEIR_OK;
		if (connection->sender_owns)
			push_to_done(worker, connection, message);
		else if (connection->outlet)
			push_to_outlet(worker, connection, message);
		else
			one = push_and_poke(worker, connection, message);
		status = status ? status : one;
	}
	return status;
}

static weir_status entity_deliver(struct wr_worker *worker, weir_entity *entity)
{
	weir_status status = WEIR_OK;

	for (size_t i = 0; i < entity->output_count; i++) {
		struct wr_output *output = &entity->outputs[i];
		size_t count = output->emitted_count;
		output->emitted_count = 0;
		wr_count(&entity->counters.emitted, count);
		if (!output->count)
			wr_count(&entity->counters.unconnected, count);
		else
			output->total += count;
		for (size_t k = 0; k < count; k++) {
			weir_status one = WEIR_OK;
			if (output->count)
				one = deliver_message(worker, output, output->emitted[k]);
			else
				weir_message_unref(output->emitted[k]);
			status = status ? status : one;
		}
	}
	return status;
}

/* --- the tick --- */

weir_status wr_tick(struct wr_worker *worker, weir_entity *entity)
{
	weir_scheduler *scheduler = worker->scheduler;
	weir_status status = take_and_compute(worker, entity);

	if (entity->claim_count)
		wr_claims_release(entity);
	if (!status && (entity->streams.count || entity->streams.promised_count)) {
		bool pending; /* then it fails, and wr_entity_drop_tick tries again */
		status = wr_entity_fence_tick(entity, &pending);
		if (!status)
			status = wr_flight_note_tick(entity);
		if (!status)
			entity->streams.promised_count = 0;
	}
	if (status) {
		wr_run_fail(scheduler, entity, WEIR_CAUSE_COMPUTE, status);
		wr_entity_drop_tick(entity); /* also fences what compute enqueued before it failed */
		worker->local.context = NULL;
		return status;
	}
	/* Before delivery, so that a single receiver is the only holder. */
	if (entity->context.made_count)
		wr_context_unref_made(&entity->context);
	wr_count(&entity->counters.ticks, 1);
	entity->context.tick++;
	if (wr_pool_has(worker->local.pool, WR_POOL_STAMPS))
		wr_entity_stamp_tick(entity);
	if (entity->wants_ticked)
		call_ticked(entity);
	status = entity_deliver(worker, entity);
	wr_entity_unref_inputs(entity);
	worker->local.context = NULL;
	if (status)
		wr_run_fail(scheduler, entity, WEIR_CAUSE_COMPUTE, status);
	return status;
}

/* --- the end of an entity --- */

static void drop_inputs(weir_entity *entity)
{
	for (size_t i = 0; i < entity->input_count; i++)
		for (size_t k = 0; k < entity->inputs[i].count; k++)
			wr_queue_drop(&entity->inputs[i].connections[k]->queue);
}

static void set_done(weir_entity *entity)
{
	uint32_t running = WR_RUNNING;

	drop_inputs(entity);
	while (!wr_cas(&entity->state, &running, WR_DONE)) {
		wr_exchange(&entity->state, WR_RUNNING);
		drop_inputs(entity);
		running = WR_RUNNING;
	}
}

static void poke_neighbours(struct wr_worker *worker, weir_entity *entity)
{
	for (size_t i = 0; i < entity->output_count; i++) {
		for (size_t k = 0; k < entity->outputs[i].count; k++) {
			struct wr_connection *connection = entity->outputs[i].connections[k];
			if (connection->outlet)
				wr_outlet_done(worker, connection->outlet);
			else
				wr_poke_by_worker(worker, connection->receiver);
		}
	}
	for (size_t i = 0; i < entity->input_count; i++) {
		for (size_t k = 0; k < entity->inputs[i].count; k++) {
			struct wr_connection *connection = entity->inputs[i].connections[k];
			wr_store(&connection->receiver_done, true);
			if (!connection->sender)
				continue; /* an inlet: it was closed before */
			wr_fetch_sub(&connection->sender->receivers_left, 1);
			wr_poke_by_worker(worker, connection->sender);
		}
	}
}

void wr_entity_end(struct wr_worker *worker, weir_entity *entity)
{
	weir_scheduler *scheduler = worker->scheduler;

	for (size_t i = 0; i < entity->output_count; i++)
		for (size_t k = 0; k < entity->outputs[i].count; k++)
			wr_connection_close(entity->outputs[i].connections[k]);
	/* Before the CAS to DONE: a thread that pushes without pause could make that CAS fail for ever. */
	for (size_t i = 0; i < entity->input_count; i++)
		for (size_t k = 0; k < entity->inputs[i].count; k++)
			if (entity->inputs[i].connections[k]->inlet)
				weir_inlet_close(entity->inputs[i].connections[k]->inlet);
	wr_trace_entity_done(scheduler->trace, worker->local.index, entity->id);
	set_done(entity);
	wr_claims_end(entity);
	poke_neighbours(worker, entity);
	/* All are DONE: the loop arms a signal for each stream that still has work (E2). */
	if (wr_fetch_sub(&scheduler->not_done, 1) == 1)
		wr_loop_kick(&scheduler->loop);
}
