/*
 * Delivers what a tick has emitted: pushes each message to all connections of its output and pokes the
 * receiver after each push. The references for all connections are taken before the first push (T4). Before
 * a push to a receiver that is gated by flag, a write of the flag is enqueued right after the message's
 * fence (G4).
 *
 * A receiver that is DONE when it is poked does not touch its queue again: from then on the sender owns the
 * queue (S5), and what is pushed there counts as closed.
 */
#include "base/bug.h"
#include "base/status.h"
#include "scheduler/finisher.h"
#include "scheduler/scheduler.h"

static weir_status fail_full_queue(const struct wr_connection *connection, weir_message *message)
{
	const weir_entity *receiver = connection->receiver;
	struct wr_queue_counters *counters = &((struct wr_connection *)connection)->queue.counters;

	wr_count(&counters->pushed, 1); /* counted as pushed and dropped, so the counts add up (E5) */
	wr_count(&counters->dropped, 1);
	weir_message_unref(message);
	return wr_fail(WEIR_E_FAILED, "%s.%s: the queue of %u is full and its policy is '%s'",
		       receiver->plan->name, receiver->inputs[connection->input].plan->port->name,
		       connection->queue.capacity,
		       connection->queue.policy == WEIR_FAULT ? "fault" : "block");
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

static void take_over_queue(struct wr_connection *connection)
{
	wr_queue_take_back(&connection->queue);
	connection->taken_over = true;
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

static weir_status push_and_poke(struct wr_worker *worker, struct wr_connection *connection,
				 weir_message *message)
{
	/* Seeded bug: as if the push's relaxed store became visible only after this load. */
	bool skip = WR_BUG(POKE_SKIPS) && wr_load(&connection->receiver->state) & WR_POKED;
	enum wr_pushed pushed;
	uint32_t before;

	if (connection->flagged)
		write_flags(connection->sender, message);
	pushed = wr_connection_push(connection, message);

	wr_trace_deliver(worker->scheduler->trace, connection->queue.id, connection->sender->id);
	switch (pushed) {
	case WR_PUSHED:
		before = skip ? WR_POKED : wr_poke_fetch(worker, connection->receiver);
		if (before & WR_DONE)
			take_over_queue(connection);
		else if (connection->queue.policy != WEIR_BLOCK)
			end_row_if_full(worker, connection, before);
		return WEIR_OK;
	case WR_PUSH_DROPPED:
		wr_trace_drop(worker->scheduler->trace, connection->queue.id);
		end_row_if_full(worker, connection, wr_load(&connection->receiver->state));
		return WEIR_OK;
	case WR_PUSH_FULL:
	case WR_PUSH_FAULT:
		break;
	}
	return fail_full_queue(connection, message);
}

/*
 * The receiver is DONE and the sender knows it: counts the message as pushed and taken back, so that all
 * connections of an output have the same count (E5).
 */
static void push_to_done(struct wr_connection *connection, weir_message *message)
{
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
		wr_connection_announce(output->connections[i]);
}

static weir_status deliver_message(struct wr_worker *worker, struct wr_output *output, weir_message *message)
{
	weir_status status = WEIR_OK;
	bool fenced = wr_message_has_fences(message);

	wr_message_deliver(message);
	if (fenced && !WR_BUG(GATE_AFTER_PUSH))
		announce_fences(output);
	if (output->count > 1) /* all before the first push (T4) */
		wr_message_ref_many(message, (uint32_t)output->count - 1);
	for (size_t i = 0; i < output->count; i++) {
		struct wr_connection *connection = output->connections[i];
		weir_status one = WEIR_OK;
		if (connection->taken_over)
			push_to_done(connection, message);
		else if (connection->outlet)
			push_to_outlet(worker, connection, message);
		else
			one = push_and_poke(worker, connection, message);
		status = status ? status : one;
	}
	if (fenced && WR_BUG(GATE_AFTER_PUSH))
		announce_fences(output);
	return status;
}

weir_status wr_deliver(struct wr_worker *worker, weir_entity *entity)
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
