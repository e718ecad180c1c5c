/*
 * How an entity becomes DONE (S5). It closes its outputs after its last push, drops its input messages and
 * leaves by CAS RUNNING -> DONE; if it was poked meanwhile, it drops its inputs again and retries. Then it
 * pokes its neighbours: receivers see `closed`, senders see `gone`.
 */
#include "scheduler/scheduler.h"

static void close_outputs(weir_entity *entity)
{
	for (size_t i = 0; i < entity->output_count; i++)
		for (size_t k = 0; k < entity->outputs[i].count; k++)
			wr_connection_close(entity->outputs[i].connections[k]);
}

static void drop_inputs(weir_entity *entity)
{
	for (size_t i = 0; i < entity->input_count; i++)
		for (size_t k = 0; k < entity->inputs[i].count; k++)
			wr_queue_drop(&entity->inputs[i].connections[k]->queue);
}

/* Before the CAS to DONE: a thread that pushes without pause could make that CAS fail for ever. */
static void end_inlets(weir_entity *entity)
{
	for (size_t i = 0; i < entity->input_count; i++)
		for (size_t k = 0; k < entity->inputs[i].count; k++)
			if (entity->inputs[i].connections[k]->inlet)
				wr_inlet_end(entity->inputs[i].connections[k]->inlet);
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

static void poke_receivers(struct wr_worker *worker, weir_entity *entity)
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
}

static void poke_senders(struct wr_worker *worker, weir_entity *entity)
{
	for (size_t i = 0; i < entity->input_count; i++) {
		for (size_t k = 0; k < entity->inputs[i].count; k++) {
			struct wr_connection *connection = entity->inputs[i].connections[k];
			wr_store(&connection->gone, true);
			if (!connection->sender)
				continue; /* an inlet: end_inlets() has closed it */
			wr_fetch_sub(&connection->sender->listeners, 1);
			wr_poke_by_worker(worker, connection->sender);
		}
	}
}

void wr_entity_end(struct wr_worker *worker, weir_entity *entity)
{
	weir_scheduler *scheduler = worker->scheduler;

	wr_wait_disarm(worker, entity);
	close_outputs(entity);
	end_inlets(entity);
	wr_trace_retire(scheduler->trace, entity->id);
	set_done(entity);
	poke_receivers(worker, entity);
	poke_senders(worker, entity);
	/* All are DONE: the loop arms a signal for each stream that still has work (E2). */
	if (wr_fetch_sub(&scheduler->undone, 1) == 1)
		wr_loop_kick(&scheduler->loop);
}
