/* Connections: between two ports, or between a port and an inlet or outlet. */
#include "scheduler/connection.h"

#include "base/memory.h"
#include "scheduler/graph.h"

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

static weir_status name_ends(struct wr_connection *connection)
{
	const weir_entity *sender = connection->sender, *receiver = connection->receiver;
	const weir_port *output = sender ? sender->outputs[connection->output].plan->port : NULL;
	const weir_port *input = receiver ? receiver->inputs[connection->input].plan->port : NULL;

	connection->from = output ? wr_format("%s.%s", sender->plan->name, output->name) : wr_strdup("inlet");
	connection->to = input ? wr_format("%s.%s", receiver->plan->name, input->name) : wr_strdup("outlet");
	return connection->from && connection->to ? WEIR_OK : WEIR_E_NOMEM;
}

void wr_connection_destroy(struct wr_connection *connection)
{
	wr_queue_finish(&connection->queue);
	wr_free(connection->from);
	wr_free(connection->to);
	wr_free(connection);
}

static weir_status list_connection(weir_graph *graph, struct wr_connection *connection)
{
	size_t count = graph->connection_count;
	weir_status status =
		wr_grow(&graph->connections, &graph->connection_room, count + 1, sizeof connection);

	if (!status)
		status = attach_ends(connection);
	if (status)
		return status;
	graph->connections[count] = connection;
	graph->connection_count++;
	return WEIR_OK;
}

weir_status wr_graph_connect(weir_graph *graph, weir_entity *sender, uint32_t output, weir_entity *receiver,
			     uint32_t input, uint32_t capacity, struct wr_connection **out)
{
	struct wr_connection *connection = wr_alloc_aligned(64, sizeof *connection);
	weir_policy policy = receiver ? receiver->inputs[input].plan->policy : WEIR_POLICY_BLOCK;
	weir_status status;

	if (!connection)
		return WEIR_E_NOMEM;
	status = wr_queue_init(&connection->queue, (uint32_t)graph->connection_count, capacity, policy);
	connection->sender = sender;
	connection->receiver = receiver;
	connection->output = output;
	connection->input = input;
	if (!status)
		status = name_ends(connection);
	if (!status)
		status = list_connection(graph, connection);
	if (status) {
		wr_connection_destroy(connection);
		return status;
	}
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
	if (receiver && receiver->inputs[connection->input].gate &&
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
