/*
 * What a popped entity does: it is reviewed, and then ticks, parks or ends. From top to bottom: the tick, the
 * end, the wait of a parked entity, the review.
 *
 * A tick takes the inputs (which frees room and pokes their senders), runs compute, fences the streams that
 * it used, calls the conditions' `ticked`, delivers the outputs and only then drops the references to the
 * inputs (T4).
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
 *
 * A review decides what the entity does next (S2). It may be made at any time: at worst its answer is the
 * same again.
 *
 * The entity's state: a popped entity goes from QUEUED to RUNNING by exchange, before its conditions are
 * asked. If it was poked meanwhile (NOTIFIED), it is exchanged to RUNNING and reviewed again. It goes to
 * IDLE only by CAS, after a review that did not end in a tick. It goes back to QUEUED by exchange after a
 * row of ticks: after 8, when a timer is due, or when the next tick would drop a message. Each exchange
 * acquires what the pokers published.
 *
 * What a parked entity waits for, beside pokes: a time, a signal for its fences, something from outside.
 * While its verdict names any of these, the entity holds one live reference for its current wait (S4). Only
 * its owner sets and clears it, here. A cancelled timer or signal holds no reference: if it fires, the poke
 * is useless.
 */
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/status.h"
#include "scheduler/ends.h"
#include "scheduler/gpu_time.h"
#include "scheduler/graph.h"
#include "scheduler/memory.h"
#include "scheduler/scheduler.h"
#include "scheduler/run.h"
#include "scheduler/work.h"
#include "sim/simulation.h"

#define SIM_TICK_NS 2000 /* the longest simulated compute */

/* Also pokes the sender blocked on the queue. */
__attribute__((always_inline)) static inline void front_take(struct wr_worker *worker, struct wr_input *input,
							     size_t k, struct wr_trace *trace)
{
	struct wr_connection *connection = input->connections[k];
	size_t n;

	if (trace)
		wr_queue_tell_take(&connection->queue, trace, worker->local.index);
	n = wr_queue_take(&connection->queue, input->taken + input->taken_count);
	input->taken_by[k] = n;
	input->taken_count += n;
	if (!n || connection->queue.again)
		return; /* what is given again has left its place before */
	if (connection->queue.policy == WEIR_POLICY_FAULT && !connection->sender)
		wr_inlet_wake_waiting(connection->inlet);
	if (connection->queue.policy != WEIR_POLICY_BLOCK)
		return;
	if (!connection->sender)
		wr_inlet_wake_waiting(connection->inlet);
	else
		wr_poke_room(worker, connection->sender, trace);
}

/* The fronts become the tick's inputs. */
__attribute__((always_inline)) static inline void inputs_take(struct wr_worker *worker, weir_entity *entity,
							      struct wr_trace *trace)
{
	size_t held = 0;

	for (size_t i = 0; i < entity->input_count; i++) {
		struct wr_input *input = &entity->inputs[i];
		input->taken_count = 0;
		if (input->untaken) {
			memset(input->taken_by, 0, input->count * sizeof *input->taken_by);
			continue;
		}
		for (size_t k = 0; input->set && k < input->set->front_count; k++)
			front_take(worker, input, input->set->fronts[k], trace);
		if (input->set)
			wr_fan_in_taken(input->set);
		for (size_t k = 0; !input->set && k < input->count; k++)
			front_take(worker, input, k, trace);
		held += input->taken_count;
		wr_count(&entity->counters.received, input->taken_count);
	}
	entity->context.references = held;
	entity->fronts_closed = entity->has_trees;
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

__attribute__((always_inline)) static inline weir_status
run_compute(struct wr_worker *worker, weir_entity *entity, struct wr_trace *trace)
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
	if (trace)
		tell_begin(worker, entity);
	status = entity->compute(context, entity->operator_state);
	if (trace)
		tell_end(worker, entity, status);
	context->computing = false;
	return status ? wr_failure_explain(status, "compute") : WEIR_OK;
}

static void call_ticked(weir_entity *entity)
{
	weir_view view = {.entity = entity};

	for (size_t i = 0; i < entity->asked_count; i++) {
		const weir_condition *kind = entity->conditions[i].plan->kind;
		view.condition = &entity->conditions[i];
		if (kind->ticked)
			kind->ticked(entity->conditions[i].state, &view);
	}
}

__attribute__((always_inline)) static inline weir_status
take_and_compute(struct wr_worker *worker, weir_entity *entity, struct wr_trace *trace)
{
	bool sampled = worker->scheduler->costs && wr_cost_is_sampled(entity->context.tick);
	bool told = entity->gated || trace; /* gated: it may become so in a review only */
	weir_status status;
	int64_t begin;

	inputs_take(worker, entity, trace);
	begin = sampled || told ? wr_now() : 1; /* what is taken costs more the more workers share it */
	wr_note(&entity->computing_since, told ? begin : 1);
	status = run_compute(worker, entity, trace);
	wr_note(&entity->computing_since, 0);
	if (sampled)
		wr_cost_learn(entity, wr_now() - begin);
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
static void write_flags(weir_entity *sender, const weir_message *message, enum wr_flagging flagging)
{
	weir_fence fences[FLAGS];
	size_t count = wr_message_has_fences(message) ? wr_message_fences(message, fences, FLAGS) : 0;

	for (size_t i = 0; i < count && count <= FLAGS; i++) {
		weir_stream *stream = wr_entity_stream_of(sender, fences[i]);
		if (stream)
			wr_flag_write(stream, flagging);
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

static inline void tell_push(struct wr_worker *worker, struct wr_connection *connection,
			     struct wr_trace *trace)
{
	if (trace)
		wr_queue_tell_push(&connection->queue, trace, worker->local.index);
}

static void tell_drop(struct wr_worker *worker, struct wr_connection *connection, enum wr_pushed pushed)
{
	if (worker->scheduler->trace)
		wr_queue_tell_drop(&connection->queue, worker->scheduler->trace, worker->local.index, pushed);
}

static void wait_set_live(weir_scheduler *scheduler, struct wr_wait *wait, bool hold);
static weir_status arm_group(struct wr_worker *worker, weir_entity *entity, struct wr_armed *group,
			     const weir_fence *fences, size_t count);
static void trace_park(struct wr_worker *worker, weir_entity *entity);

/*
 * A receiver that waits for nothing but the fence of this message is not queued for that: if it is parked the
 * sender's worker owns it, and arms the gate (S2). Returns false if it is to be poked.
 */
__attribute__((noinline)) static bool review_receiver(struct wr_worker *worker, weir_entity *receiver,
						      const weir_message *message, struct wr_trace *trace)
{
	uint32_t idle = WR_IDLE, running = WR_RUNNING;
	struct wr_wait *wait = &receiver->wait; /* of a parked one: armed for fences, or not at all */
	weir_status status;
	bool arms;

	if (wr_load(&receiver->state) != WR_IDLE || wr_load_acquire(&worker->scheduler->stop_asked) ||
	    !wr_cas(&receiver->state, &idle, WR_RUNNING))
		return false;
	if (wr_entity_ask_pushed(receiver, message, &arms)) {
		if (arms) {
			wait_set_live(worker->scheduler, wait, true);
			status = arm_group(worker, receiver, &wait->armed, receiver->verdict.fences, 1);
			if (status)
				wr_run_fail(worker->scheduler, receiver, WEIR_CAUSE_DEVICE, status);
		}
		if (arms && trace)
			trace_park(worker, receiver);
		if (wr_cas(&receiver->state, &running, WR_IDLE))
			return true;
	}
	wr_exchange(&receiver->state, WR_POKED); /* READY, or poked meanwhile */
	wr_trace_poke(trace, worker->local.index, receiver->id);
	wr_ready_push_next(worker, receiver);
	return true;
}

__attribute__((always_inline)) static inline weir_status push_and_poke(struct wr_worker *worker,
								       struct wr_connection *connection,
								       weir_message *message, bool fenced,
								       struct wr_trace *trace)
{
	enum wr_pushed pushed;
	uint32_t before;

	if (connection->flagged)
		write_flags(connection->sender, message, connection->flagged);
	/* Before the push (C8). It is sticky: mostly it is there. */
	if (fenced && !(wr_load_relaxed(&connection->receiver->front_checks) & WR_CHECK_GATES))
		wr_connection_announce_fences(connection);
	tell_push(worker, connection, trace);
	pushed = wr_connection_push(connection, message);
	switch (pushed) {
	case WR_PUSH_EVICTED:
		tell_drop(worker, connection, pushed);
		/* fallthrough */
	case WR_PUSHED:
		if (fenced && connection->reviewed &&
		    review_receiver(worker, connection->receiver, message, trace))
			return WEIR_OK;
		before = wr_poke_fetch(worker, connection->receiver, trace);
		if (before & WR_DONE) {
			wr_queue_take_back(&connection->queue);
			connection->sender_owns = true;
		} else if (connection->queue.policy != WEIR_POLICY_BLOCK &&
			   connection->queue.policy != WEIR_POLICY_LATEST) {
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
	tell_push(worker, connection, worker->scheduler->trace);
	wr_queue_push_to_done(&connection->queue, message);
}

/* Fences of the message are signalled to the outlet's finisher, as to any other receiver. */
static void push_to_outlet(struct wr_worker *worker, struct wr_connection *connection, weir_message *message)
{
	const struct wr_finisher *finisher = connection->outlet->finisher;

	if (finisher && finisher->connection->flagged)
		write_flags(connection->sender, message, finisher->connection->flagged);
	wr_outlet_push(worker, connection->outlet, message);
}

__attribute__((always_inline)) static inline weir_status deliver_message(struct wr_worker *worker,
									 struct wr_output *output,
									 weir_message *message,
									 struct wr_trace *trace)
{
	weir_status status = WEIR_OK;
	bool fenced = wr_message_mark_delivered(message);

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
			one = push_and_poke(worker, connection, message, fenced, trace);
		status = status ? status : one;
	}
	return status;
}

__attribute__((always_inline)) static inline weir_status
entity_deliver(struct wr_worker *worker, weir_entity *entity, struct wr_trace *trace)
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
				one = deliver_message(worker, output, output->emitted[k], trace);
			else
				weir_message_unref(output->emitted[k]);
			status = status ? status : one;
		}
	}
	return status;
}

/* --- the tick --- */

__attribute__((always_inline)) static inline weir_status tick(struct wr_worker *worker, weir_entity *entity,
							      struct wr_trace *trace)
{
	weir_scheduler *scheduler = worker->scheduler;
	weir_status status = take_and_compute(worker, entity, trace);

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
	if (entity->context.forwarded) /* once delivered, they may be gone */
		wr_entity_leave_forwarded(entity);
	status = entity_deliver(worker, entity, trace);
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

/* All are DONE: the loop arms a signal for each stream that still has work (E2). */
static void count_done(weir_scheduler *scheduler)
{
	if (wr_fetch_sub(&scheduler->not_done, 1) == 1)
		wr_loop_kick(&scheduler->loop);
}

static void end_entity(struct wr_worker *worker, weir_entity *entity)
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
	if (entity->claim_count)
		wr_claims_end(entity);
	poke_neighbours(worker, entity);
	count_done(scheduler);
}

/* --- the wait of a parked entity --- */

static void wait_set_live(weir_scheduler *scheduler, struct wr_wait *wait, bool hold)
{
	if (hold && !wait->holds_live) /* the worker has its own, so the count is not 0 */
		wr_live_take(&scheduler->live);
	if (!hold && wait->holds_live)
		wr_run_drop_live(scheduler);
	wait->holds_live = hold;
}

/* An entity that waits for nothing but what may come while the run goes on holds no run open (S4). */
static void wait_set_meanwhile(weir_scheduler *scheduler, struct wr_wait *wait, bool meanwhile)
{
	if (meanwhile && !wait->meanwhile)
		count_done(scheduler);
	if (!meanwhile && wait->meanwhile)
		wr_fetch_add(&scheduler->not_done, 1);
	wait->meanwhile = meanwhile;
}

/*
 * Returns true if the armed token fires when the last of the verdict's fences completes: it covers all of
 * them, and its other fences are complete. So a new token is armed when the set gains a fence, not each time
 * one of many completes (G2). A token that has fired is of no use, even if a fence is not yet seen complete:
 * it will not fire again.
 */
static bool token_covers(struct wr_system *system, const struct wr_armed *armed, const weir_fence *fences,
			 size_t count)
{
	size_t found = 0;

	if (!wr_signal_pending(armed->token))
		return false;
	for (size_t i = 0; i < armed->fence_count; i++) {
		weir_fence fence = armed->fences[i];

		if (found < count && fence.stream == fences[found].stream &&
		    fence.value == fences[found].value)
			found++; /* both sets are in the order of the fronts */
		else if (!wr_fence_known_complete(system, fence))
			return false;
	}
	return found == count;
}

static void cancel_token(weir_scheduler *scheduler, struct wr_armed *armed)
{
	if (armed->token)
		wr_signal_cancel(scheduler->graph->system, armed->token);
	armed->token = 0;
	armed->fence_count = 0;
}

/* Those of the alternatives from `first` on. */
__attribute__((noinline)) static void cancel_others(weir_scheduler *scheduler, struct wr_wait *wait,
						    size_t first)
{
	for (size_t i = first; i < wait->other_count; i++)
		cancel_token(scheduler, &wait->others[i]);
	wait->more = first > 0;
}

static void leave_fifo(weir_scheduler *scheduler, weir_entity *entity)
{
	if (entity->wait.in_fifo)
		wr_signal_leave_fifo(scheduler->graph->system, entity->id);
	entity->wait.in_fifo = false;
}

static void cancel_signal(weir_scheduler *scheduler, weir_entity *entity)
{
	cancel_token(scheduler, &entity->wait.armed);
	if (entity->wait.more)
		cancel_others(scheduler, &entity->wait, 0);
	leave_fifo(scheduler, entity);
}

/*
 * Of fences that the program completes arms the newest open one alone (T17): the review that follows arms the
 * rest. Else arms every fence of the verdict: by flag if a flag write was enqueued for each of them, or by a
 * callback on their common stream (callback_inline). What these two do not support is armed by callback,
 * which takes any fence.
 */
static weir_status arm_by_kind(struct wr_worker *worker, weir_entity *entity, struct wr_armed *wait,
			       const weir_fence *fences, size_t count, enum wr_trace_signal *armed)
{
	struct wr_system *system = worker->scheduler->graph->system;
	const weir_verdict *verdict = &entity->verdict;
	wr_token *token = &wait->token;
	weir_status status = WEIR_E_UNSUPPORTED;

	*armed = WR_TRACE_CALLBACK;
	if (wr_system_has_promises(system)) {
		status = wr_promise_arm(system, entity->id, fences, count, token);
		wait->promised = !status;
		if (!status && entity->wait.in_fifo)
			wr_signal_leave_fifo(system, entity->id);
		if (status != WEIR_E_UNSUPPORTED)
			return status;
	}
	if (wr_flagging_of(verdict->signal)) {
		*armed = WR_TRACE_FLAG;
		status = wr_flag_arm(system, entity->id, fences, count, token);
		if (!status)
			wr_wake_poller(worker);
	} else if (verdict->signal == WR_SIGNAL_INLINE) {
		*armed = WR_TRACE_INLINE;
		status = wr_signal_inline(system, entity->id, fences, count, token);
	}
	if (status != WEIR_E_UNSUPPORTED)
		return status;
	*armed = WR_TRACE_CALLBACK;
	return wr_signal_arm(system, entity->id, fences, count, token);
}

/* One signal, for all of the fences. */
static weir_status arm_group(struct wr_worker *worker, weir_entity *entity, struct wr_armed *group,
			     const weir_fence *fences, size_t count)
{
	weir_scheduler *scheduler = worker->scheduler;
	struct wr_wait *wait = &entity->wait;
	enum wr_trace_signal armed;
	weir_status status;

	if (token_covers(scheduler->graph->system, group, fences, count))
		return WEIR_OK;
	/* A refused entity keeps its place in the FIFO until it has a token: a poke must not cost it (G2). */
	cancel_token(scheduler, group);
	status = wr_grow(&group->fences, &group->fence_room, count, sizeof *group->fences);
	if (status)
		return status;
	status = arm_by_kind(worker, entity, group, fences, count, &armed);
	if (status == WEIR_E_INVALID)
		return wr_entity_refuse_fence(entity);
	if (status == WEIR_E_BUSY) {
		wait->in_fifo = true;
		return WEIR_OK;
	}
	if (status)
		return status;
	wait->in_fifo = false;
	for (size_t i = 0; i < count; i++) /* mostly one */
		group->fences[i] = fences[i];
	group->fence_count = count;
	if (scheduler->trace && !group->promised) /* no signal of the device */
		wr_trace_arm(scheduler->trace, worker->local.index, entity->id, group->token, armed);
	return WEIR_OK;
}

static struct wr_armed *group_at(struct wr_wait *wait, size_t i)
{
	return i ? &wait->others[i - 1] : &wait->armed;
}

/*
 * Arms each group. *refused: one of them was. Returns true if one that was armed after that took the entity
 * out of the FIFO.
 */
static bool arm_each(struct wr_worker *worker, weir_entity *entity, const struct wr_condition *tree,
		     bool *refused, weir_status *status)
{
	struct wr_system *system = worker->scheduler->graph->system;
	struct wr_wait *wait = &entity->wait;
	bool left = false;

	*refused = false;
	for (size_t i = 0, from = 0; i < tree->groups && !*status; from = tree->ends[i++]) {
		const weir_fence *fences = entity->verdict.fences + from;
		struct wr_armed *group = group_at(wait, i), kept = *group;
		size_t count = tree->ends[i] - from, at = i;
		wr_token before;

		/* A token that covers these fences comes here, from the place of a later alternative. */
		while (at <= wait->other_count && !token_covers(system, group_at(wait, at), fences, count))
			at++;
		if (at > i && at <= wait->other_count) {
			*group = *group_at(wait, at);
			*group_at(wait, at) = kept;
		}
		before = group->token;
		*status = arm_group(worker, entity, group, fences, count);
		left |= *refused && group->token && group->token != before;
		*refused |= !group->token;
	}
	return left;
}

/*
 * A signal for each alternative (C11). While one is refused, the entity is in the FIFO: an arming that
 * succeeds takes it out, so what was refused before is then tried again. A token that fires meanwhile pokes.
 */
__attribute__((noinline)) static weir_status arm_alternatives(struct wr_worker *worker, weir_entity *entity)
{
	const struct wr_condition *tree = entity->conditions;
	struct wr_wait *wait = &entity->wait;
	weir_status status = WEIR_OK;
	bool refused, again = true;

	while (tree->groups < 2) /* the first tree of the list that has some was chosen (C2) */
		tree++;
	for (size_t i = 0; i <= tree->groups && again && !status; i++)
		again = arm_each(worker, entity, tree, &refused, &status);
	cancel_others(worker->scheduler, wait, tree->groups - 1);
	wait->more = true;
	if (!refused)
		leave_fifo(worker->scheduler, entity);
	return status;
}

static inline bool verdict_arms(const weir_verdict *verdict)
{
	return verdict->external || verdict->fence_count || verdict->at != INT64_MAX;
}

/* Arms what the verdict names. Not inlined: a tick without device work does not come here. */
__attribute__((noinline)) static void wait_arm(struct wr_worker *worker, weir_entity *entity)
{
	weir_scheduler *scheduler = worker->scheduler;
	const weir_verdict *verdict = &entity->verdict;
	const unsigned watches = verdict->external & (WR_DESCRIPTOR | WR_MEANWHILE);
	bool meanwhile =
		verdict->external == WR_MEANWHILE && !verdict->fence_count && verdict->at == INT64_MAX;
	weir_status status = WEIR_OK;

	wait_set_live(scheduler, &entity->wait, verdict_arms(verdict) && !meanwhile);
	wait_set_meanwhile(scheduler, &entity->wait, meanwhile);
	entity->wait.at = verdict->at;
	entity->wait.watches = watches;
	if (!verdict->fence_count) {
		cancel_signal(scheduler, entity);
	} else if (verdict->external & WR_ALTERNATIVES) {
		status = arm_alternatives(worker, entity);
	} else {
		if (entity->wait.more)
			cancel_others(scheduler, &entity->wait, 0);
		status =
			arm_group(worker, entity, &entity->wait.armed, verdict->fences, verdict->fence_count);
		if (entity->wait.armed.token)
			leave_fifo(scheduler, entity); /* where another wait had entered it */
	}
	if (verdict->at != INT64_MAX)
		wr_timers_request(worker, entity, verdict->at);
	if (!status && watches)
		status = wr_descriptors_arm(scheduler, entity);
	if (status)
		wr_run_fail(scheduler, entity, verdict->cause, status);
}

/* Whatever is armed holds the run open, but for a descriptor alone that is watched meanwhile. */
static inline bool wait_armed(const struct wr_wait *wait)
{
	return wait->holds_live || wait->meanwhile;
}

void wr_wait_disarm(weir_scheduler *scheduler, weir_entity *entity)
{
	if (!wait_armed(&entity->wait))
		return;
	cancel_signal(scheduler, entity);
	entity->wait.at = INT64_MAX;
	entity->wait.watches = false;
	wait_set_live(scheduler, &entity->wait, false);
	wait_set_meanwhile(scheduler, &entity->wait, false);
}

/* --- the review --- */

enum step { STEP_TICK, STEP_PARK, STEP_DONE, STEP_LEAVE };

/* The condition would be asked again at once, for ever. */
static enum step fail_past_time(weir_scheduler *scheduler, weir_entity *entity)
{
	wr_run_fail(scheduler, entity, entity->verdict.cause,
		    wr_fail(WEIR_E_INVALID,
			    "condition '%s' waits until a time that has come, twice in a row: "
			    "it must say READY when now >= that time",
			    wr_load_relaxed(&entity->why_of)));
	return STEP_LEAVE;
}

static inline enum step review_entity(struct wr_worker *worker, weir_scheduler *scheduler,
				      weir_entity *entity)
{
	unsigned asked = wr_load_acquire(&scheduler->stop_asked);
	enum wr_answer answer;

	if (asked & (WR_STOP_NOW | WR_STOP_FAILED))
		return STEP_LEAVE; /* the loop closes the run and drops this entity's references */
	answer = wr_entity_ask(entity, asked);
	if (entity->verdict.failed) {
		wr_run_fail(scheduler, entity, WEIR_CAUSE_OWN, wr_entity_verdict_failure(entity));
		return STEP_LEAVE;
	}
	switch (answer) {
	case WR_READY:
		return STEP_TICK;
	case WR_WAIT:
		if (entity->verdict.repeats_past)
			return fail_past_time(scheduler, entity);
		if (wait_armed(&entity->wait) || verdict_arms(&entity->verdict))
			wait_arm(worker, entity);
		return STEP_PARK;
	case WR_NEVER:
	case WR_SILENT: /* answers of a single condition, never of an entity */
	case WR_MISUSED:
		break;
	}
	return STEP_DONE;
}

/*
 * Claims for a tick what its resources must give (S3). If one refuses, the entity parks with its fronts
 * closed and nothing armed: the poke that offers it what comes back wakes it. What the device is done with by
 * now comes back at once, and the poke finds this entity RUNNING; for the rest the loop is kicked (T4).
 */
static bool claim_for_tick(weir_scheduler *scheduler, weir_entity *entity)
{
	weir_verdict *verdict = &entity->verdict;
	struct wr_shared *lacks = wr_claims_take(entity);

	if (!lacks)
		return true;
	wr_wait_disarm(scheduler, entity);
	wr_system_run_deferred_frees(scheduler->graph->system, false);
	entity->past_of = NULL; /* all conditions held */
	verdict->answer = WR_WAIT;
	verdict->why = "too little is free of what it claims";
	verdict->cause = WEIR_CAUSE_MEMORY;
	verdict->on = lacks->id;
	wr_store_relaxed(&entity->why, verdict->why);
	wr_store_relaxed(&entity->why_of, "memory_available");
	wr_store_relaxed(&entity->cause, wr_cause_word(WEIR_CAUSE_MEMORY, lacks->id));
	return false;
}

/* Of an entity with claims. Not inlined: the others pay one branch for claims. */
__attribute__((noinline)) static enum step review_claims(struct wr_worker *worker, weir_scheduler *scheduler,
							 weir_entity *entity)
{
	enum step step;

	wr_claims_note_owed(entity);
	step = review_entity(worker, scheduler, entity);
	if (step == STEP_TICK && !claim_for_tick(scheduler, entity))
		step = STEP_PARK;
	if (step == STEP_PARK)
		wr_claims_pass_on(entity);
	return step;
}

/* Not inlined: a park that is not observed pays one branch. */
__attribute__((noinline)) static void trace_park(struct wr_worker *worker, weir_entity *entity)
{
	if (entity->gpu_time)
		wr_gpu_time_read(entity, worker->local.index);
	wr_trace_wait(worker->scheduler->trace, worker->local.index, entity->id, entity->verdict.cause,
		      entity->verdict.on, wr_load_relaxed(&entity->why_of), entity->verdict.why);
}

__attribute__((always_inline)) static inline void run_entity(struct wr_worker *worker, weir_entity *entity,
							     struct wr_trace *trace)
{
	weir_scheduler *scheduler = worker->scheduler; /* in a register over all ticks of the row */
	enum step step;
	uint32_t running;

	wr_exchange(&entity->state, WR_RUNNING);
	wr_store_relaxed(&worker->running_cost, wr_load_relaxed(&entity->cost));
	if (worker->local.undecided & WR_UNDECIDED_ENTRIES)
		wr_ready_decide(worker);
	worker->row = 0;
	worker->row_woke = NULL;
	worker->row_yields = false;
	while (!wr_live_closed(&scheduler->live)) {
		step = entity->claim_count ? review_claims(worker, scheduler, entity)
					   : review_entity(worker, scheduler, entity);
		switch (step) {
		case STEP_TICK:
			if (trace)
				wr_trace_ready(trace, worker->local.index, entity->id);
			if (wait_armed(&entity->wait))
				wr_wait_disarm(scheduler, entity);
			if (worker->local.undecided & WR_UNDECIDED_ENTRIES)
				wr_ready_decide(worker);
			if (tick(worker, entity, trace))
				return; /* the run has failed: this entity is not reviewed again */
			if (++worker->row >= WR_TICKS_MAX || wr_ready_due_holds(scheduler)) {
				/* A store would break the release sequence of the pokers. */
				wr_exchange(&entity->state, WR_POKED);
				wr_trace_poke(trace, worker->local.index, entity->id);
				wr_ready_push_behind(worker, entity);
				return;
			}
			break;
		case STEP_PARK:
			running = WR_RUNNING;
			if (trace)
				trace_park(worker, entity);
			if (wr_cas(&entity->state, &running, WR_IDLE))
				return;
			wr_exchange(&entity->state, WR_RUNNING); /* it was poked meanwhile */
			break;
		case STEP_DONE:
			wr_wait_disarm(scheduler, entity);
			end_entity(worker, entity);
			return;
		case STEP_LEAVE:
			return;
		}
	}
}

/* Of a run that is observed. */
__attribute__((noinline)) static void run_observed(struct wr_worker *worker, weir_entity *entity)
{
	run_entity(worker, entity, worker->scheduler->trace);
}

/* Compiled twice: what is only for observers costs nothing in a run without them. */
void wr_run_entity(struct wr_worker *worker, weir_entity *entity)
{
	if (worker->scheduler->trace)
		run_observed(worker, entity);
	else
		run_entity(worker, entity, NULL);
}
