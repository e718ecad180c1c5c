/*
 * What a tick has emitted leaves: each message to all connections of its output, with all of their references
 * taken before the first push (T4), and the receiver poked after each push. Before a push to a receiver that
 * is gated by flag the device is told to write, right after the message's fence (G4).
 *
 * A receiver that is DONE when it is poked touches its queue no more: from then on the queue is this sender's
 * alone (S5), and what is pushed there counts as closed.
 */
#include "base/bug.h"
#include "base/status.h"
#include "graphs/finisher.h"
#include "scheduler/scheduler.h"

static weir_status overflow(const struct wr_connection *connection, weir_message *message)
{
	const weir_entity *receiver = connection->receiver;
	struct wr_queue_counters *counters = &((struct wr_connection *)connection)->queue.counters;

	wr_count(&counters->pushed, 1);		/* it came, and is dropped: the law holds (E5) */
	wr_count(&counters->dropped, 1);
	weir_message_unref(message);
	return wr_fail(WEIR_E_FAILED, "%s.%s: the queue of %u is full and its policy is '%s'",
		       receiver->plan->name, receiver->inputs[connection->input].plan->port->name,
		       connection->queue.capacity,
		       connection->queue.policy == WEIR_FAULT ? "fault" : "block");
}

#define FLAGS 8		/* producers of one message; one with more is armed by callback */

/*
 * The receiver is gated by flag: the device writes, right after the fence, that it has come there. Its
 * review arms the rest.
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

static void taken_over(struct wr_connection *connection)
{
	wr_queue_take_back(&connection->queue);
	connection->taken_over = true;
}

/*
 * The next message would drop one that the receiver, queued or idle, has had no turn to look at: the sender's
 * row of ticks ends, and the receiver comes first (S2).
 */
static void end_row(struct wr_worker *worker, struct wr_connection *connection, uint32_t receiver)
{
	struct wr_queue *queue = &connection->queue;

	if (receiver == WR_IDLE)
		worker->row_woke = connection->receiver;	/* so it lies in this worker's own queue */
	if (receiver & WR_RUNNING || wr_queue_newest_room(queue, wr_read(&queue->tail)))
		return;
	worker->row = WR_TICKS_MAX;
	worker->row_yields |= receiver == WR_POKED && worker->row_woke != connection->receiver;
}

static weir_status push_one(struct wr_worker *worker, struct wr_connection *connection, weir_message *message)
{
	/* The seeded bug: as if the push's relaxed store landed after this look. */
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
			taken_over(connection);
		else if (connection->queue.policy != WEIR_BLOCK)
			end_row(worker, connection, before);
		return WEIR_OK;
	case WR_PUSH_DROPPED:
		wr_trace_drop(worker->scheduler->trace, connection->queue.id);
		end_row(worker, connection, wr_load(&connection->receiver->state));
		return WEIR_OK;
	case WR_PUSH_FULL:
	case WR_PUSH_FAULT:
		break;
	}
	return overflow(connection, message);
}

/*
 * The receiver is DONE and the sender knows it: pushed and taken back, so that every connection of an output
 * counts alike (E5).
 */
static void push_closed(struct wr_connection *connection, weir_message *message)
{
	wr_count(&connection->queue.counters.pushed, 1);
	wr_count(&connection->queue.counters.taken_back, 1);
	weir_message_unref(message);
}

/* What the outlet waits for is signalled to its finisher as to every receiver. */
static void push_out(struct wr_worker *worker, struct wr_connection *connection, weir_message *message)
{
	const struct wr_finisher *finisher = connection->outlet->finisher;

	if (finisher && finisher->connection->flagged)
		write_flags(connection->sender, message);
	wr_outlet_push(worker, connection->outlet, message);
}

/* From now on their gates are asked (C8). */
__attribute__((noinline)) static void announce(const struct wr_output *output)
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
		announce(output);
	if (output->count > 1)	/* all before the first push (T4) */
		wr_message_ref_many(message, (uint32_t)output->count - 1);
	for (size_t i = 0; i < output->count; i++) {
		struct wr_connection *connection = output->connections[i];
		weir_status one = WEIR_OK;
		if (connection->taken_over)
			push_closed(connection, message);
		else if (connection->outlet)
			push_out(worker, connection, message);
		else
			one = push_one(worker, connection, message);
		status = status ? status : one;
	}
	if (fenced && WR_BUG(GATE_AFTER_PUSH))
		announce(output);
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
