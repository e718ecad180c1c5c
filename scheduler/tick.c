/*
 * One tick: takes the inputs (which frees room and pokes their senders), runs compute, fences the streams
 * that it used, calls the conditions' `ticked`, delivers the outputs (deliver.c) and only then drops the
 * references to the inputs (T4).
 */
#include "base/clock.h"
#include "sim/simulation.h"
#include "base/status.h"
#include "scheduler/scheduler.h"

#define SIM_TICK_NS  2000  /* the longest simulated compute */
#define FAST_TICK_NS 20000 /* a shorter tick sets fast_last_tick */

/* Pokes the sender blocked on this queue. Returns true if the caller must still call wr_wake_one(). */
static bool poke_blocked_sender(struct wr_worker *worker, struct wr_connection *connection,
				bool fast_last_tick)
{
	if (connection->queue.policy != WEIR_BLOCK)
		return false;
	if (!connection->sender)
		wr_inlet_room(connection->inlet);
	else if (fast_last_tick)
		return wr_poke_room_no_wake(worker, connection->sender);
	else
		wr_poke_room(worker, connection->sender);
	return false;
}

static inline bool front_take(struct wr_worker *worker, weir_entity *entity, struct wr_input *input, size_t k)
{
	struct wr_connection *connection = input->connections[k];
	size_t n = wr_queue_take(&connection->queue, input->taken + input->taken_count);

	input->taken_by[k] = n;
	input->taken_count += n;
	return n && poke_blocked_sender(worker, connection, entity->fast_last_tick);
}

static bool fan_in_take(struct wr_worker *worker, weir_entity *entity, struct wr_input *input)
{
	struct wr_fan_in *set = input->set;
	bool owed = false;

	for (size_t i = 0; i < set->front_count; i++)
		owed |= front_take(worker, entity, input, set->fronts[i]);
	wr_fan_in_taken(set);
	return owed;
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
		if (input->set)
			owed |= fan_in_take(worker, entity, input);
		for (size_t k = 0; !input->set && k < input->count; k++)
			owed |= front_take(worker, entity, input, k);
		held += input->taken_count;
		wr_count(&entity->counters.received, input->taken_count);
	}
	entity->context.held = held;
	entity->fronts_closed = false;
	return owed;
}

/* --- compute --- */

/* A simulated compute takes a random time, so that deadlines pass and other workers run meanwhile. */
static void sleep_simulated(const weir_graph *graph)
{
	if (graph->owns_world)
		wr_thread_sleep(1 + (int64_t)wr_random_below(wr_sim_random(graph->world), SIM_TICK_NS));
}

static weir_status run_compute(struct wr_worker *worker, weir_entity *entity)
{
	weir_context *context = &entity->context;
	weir_status status = WEIR_OK;

	if (entity->gated && entity->graph->system && wr_system_wait_failed(entity->graph->system))
		return wr_fail(WEIR_E_DEVICE, "%s", wr_system_failure(entity->graph->system));
	sleep_simulated(entity->graph);
	if (!entity->compute)
		return WEIR_OK;
	wr_entity_enter(entity);
	context->computing = true;
	*worker->error = 0;
	worker->local.context = context;
	wr_trace_tick_begin(worker->scheduler->trace, entity->id, context->tick);
	status = entity->compute(context, entity->operator_state);
	if (worker->scheduler->trace)
		wr_trace_new_streams(worker->scheduler, entity);
	wr_trace_tick_end(worker->scheduler->trace, entity->id, context->tick);
	context->computing = false;
	return status ? wr_settle_failure(status, "compute") : WEIR_OK;
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

static weir_status fail_tick(weir_scheduler *scheduler, weir_entity *entity, weir_status status)
{
	wr_fail_run(scheduler, entity, status);
	wr_entity_settle(entity); /* also fences what compute enqueued before it failed */
	return status;
}

static weir_status take_and_compute(struct wr_worker *worker, weir_entity *entity)
{
	bool measure = worker->scheduler->options.measure, timed = measure || entity->gated;
	int64_t begin = timed ? wr_now() : 0, spent;
	bool owed = inputs_take(worker, entity);
	weir_status status;

	wr_note(&entity->computes_since, measure ? begin : 1);
	status = run_compute(worker, entity);
	wr_note(&entity->computes_since, 0);
	if (timed) {
		spent = wr_now() - begin;
		entity->fast_last_tick = entity->gated && spent < FAST_TICK_NS;
		if (measure)
			wr_count(&entity->counters.compute_ns, spent);
	}
	if (owed)
		wr_wake_one(worker->scheduler);
	return status;
}

weir_status wr_tick(struct wr_worker *worker, weir_entity *entity)
{
	weir_scheduler *scheduler = worker->scheduler;
	weir_status status;

	if (wr_wait_armed(&entity->wait))
		wr_wait_disarm(worker, entity);
	entity->context.stopping = wr_load_relaxed(&scheduler->asked) & WR_STOP_DRAIN;
	status = take_and_compute(worker, entity);
	if (!status && entity->own.count) {
		status = wr_entity_fence(entity);
		if (!status)
			status = wr_entity_note_flight(entity);
	}
	if (status) {
		status = fail_tick(scheduler, entity, status);
		worker->local.context = NULL;
		return status;
	}
	wr_count(&entity->counters.ticks, 1);
	entity->context.tick++;
	if (entity->wants_ticked)
		call_ticked(entity);
	status = wr_deliver(worker, entity);
	wr_entity_release(entity);
	worker->local.context = NULL;
	if (status)
		wr_fail_run(scheduler, entity, status);
	return status;
}
