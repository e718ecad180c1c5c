#include "rig_inside.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "scheduler/ends.h"
#include "scheduler/graph.h"
#include "scheduler/message.h"
#include "scheduler/scheduler.h"
#include "streams/system.h"
#include "trace/statistics.h"

/* --- the device --- */

struct wr_backend *rig_own_backend(struct rig *rig)
{
	struct wr_backend *own = malloc(sizeof *own);

	assert_non_null(own);
	assert_null(rig->own_backend);
	rig->real_backend = rig->graph->system->backend;
	*own = *rig->real_backend;
	rig->graph->system->backend = rig->own_backend = own;
	return own;
}

const struct wr_backend *rig_real_backend(struct rig *rig)
{
	return rig->real_backend;
}

void rig_restore_backend(struct rig *rig)
{
	rig->graph->system->backend = rig->real_backend;
}

void rig_set_knobs(struct rig *rig, struct wr_sim_knobs knobs)
{
	wr_system_set_knobs(rig->graph->system, &knobs);
}

void rig_with_knobs(struct rig *rig, const char *signal, struct wr_sim_knobs knobs)
{
	rig->options.signal = signal;
	rig_make(rig);
	rig_set_knobs(rig, knobs);
}

bool rig_has_no_system(struct rig *rig)
{
	return !rig->graph->system && !rig->graph->pools;
}

/* --- signals --- */

static void count_signal(struct wr_signal *signal, void *arg)
{
	struct rig_armed *found = arg;

	if (!wr_signal_pending(wr_load(&signal->token)))
		return;
	found->armed += signal->entity != WR_NO_ENTITY;
	found->inlined += !signal->signal_stream;
}

struct rig_armed rig_armed(struct rig *rig)
{
	struct rig_armed found = {0, 0};

	wr_signals_each(rig->graph->system, count_signal, &found);
	return found;
}

uint64_t rig_outstanding(struct rig *rig)
{
	return wr_system_outstanding(rig->graph->system);
}

void rig_bound_signals(struct rig *rig, uint32_t bound)
{
	rig->graph->system->signals.bound = bound;
}

weir_entity *rig_first_refused(struct rig *rig, size_t n)
{
	struct wr_signals *signals = &rig->graph->system->signals;
	size_t count = 0;

	for (struct wr_refused *refused = signals->first; refused; refused = refused->next)
		count++;
	assert_true(count >= n);
	return &rig->graph->entities[signals->first->entity];
}

uint64_t rig_token(struct rig *rig, const char *entity)
{
	return weir_graph_entity(rig->graph, entity)->wait.armed.token;
}

size_t rig_pending(struct rig *rig, const char *entity)
{
	return weir_graph_entity(rig->graph, entity)->verdict.fence_count;
}

uint32_t rig_waits_on(struct rig *rig, const char *entity)
{
	return wr_subject_of_word(wr_load(&weir_graph_entity(rig->graph, entity)->cause));
}

size_t rig_waits_for(struct rig *rig, const char *entity)
{
	return weir_graph_entity(rig->graph, entity)->wait.armed.fence_count;
}

size_t rig_promise_places(struct rig *rig)
{
	return wr_load(&rig->graph->system->promises.count);
}

int64_t rig_fence_age(struct rig *rig, weir_fence fence)
{
	int64_t age = -1;

	wr_fence_producer(rig->graph->system, fence, &age);
	return age;
}

weir_status rig_arm_in_vain(struct rig *rig, const weir_fence *promises, size_t n)
{
	struct wr_system *system = rig->graph->system;
	wr_token token = 0;
	weir_status status = wr_promise_arm(system, 0, promises, n, &token);

	wr_signal_cancel(system, token);
	return status;
}

size_t rig_promise_waits(struct rig *rig, weir_fence promise)
{
	struct wr_promises *promises = &rig->graph->system->promises;
	uint64_t index = promise.stream & UINT32_MAX;

	return wr_load(&promises->pages[index / WR_PROMISES_PAGE])->at[index % WR_PROMISES_PAGE].wait_count;
}

void rig_poller_sleeps(struct rig *rig)
{
	rig->graph->system->poller.spins = true;
	assert_int_equal(
		wr_flags_use(rig->graph->system, wr_graph_bind_signals(rig->graph, rig->scheduler->signal)),
		WEIR_OK);
}

/* --- entities --- */

struct rig_gate rig_gate(struct rig *rig, const char *name)
{
	const weir_entity *entity = weir_graph_entity(rig->graph, name);

	return (struct rig_gate){entity->inputs[0].gate,
				 wr_load(&((weir_entity *)entity)->front_checks) & WR_CHECK_GATES,
				 entity->gated};
}

weir_graph *rig_view_graph(weir_view *view)
{
	return view->entity->graph;
}

uint64_t rig_flight_ticks(struct rig *rig, const char *entity)
{
	return weir_graph_entity(rig->graph, entity)->flight.ticks;
}

static struct rig_age age_of(struct wr_latencies *latencies)
{
	return (struct rig_age){wr_read(&latencies->count), wr_read(&latencies->sum),
				wr_read(&latencies->max)};
}

struct rig_age rig_age(struct rig *rig, const char *entity)
{
	return age_of(&weir_graph_entity(rig->graph, entity)->counters.latencies);
}

struct rig_age rig_age_at(struct rig *rig, const char *to)
{
	for (size_t i = 0; i < rig->graph->connection_count; i++)
		if (!strcmp(rig->graph->connections[i]->to, to) && rig->graph->connections[i]->outlet)
			return age_of(&rig->graph->connections[i]->outlet->latencies);
	return (struct rig_age){0};
}

bool rig_times(weir_scheduler *scheduler, size_t i, struct rig_times *out)
{
	struct wr_statistics *statistics = wr_statistics_in(scheduler->trace);
	struct wr_entity_statistics *entity;
	struct wr_histogram waited = {0};

	if (!statistics || i >= scheduler->graph->entity_count)
		return false;
	entity = &statistics->entities[i];
	(void)wr_statistics_waited(statistics, i, NULL, &waited);
	*out = (struct rig_times){
		.entity = scheduler->graph->entities[i].plan->name,
		.submit = wr_histogram_summary(&entity->submit),
		.blocked = wr_histogram_summary(&entity->blocked),
		.ready_to_compute = wr_histogram_summary(&entity->queued),
		.waited = wr_histogram_summary(&waited),
		.gpu_span = wr_histogram_summary(&entity->gpu_span),
		.done_latency = wr_histogram_summary(&entity->done_latency),
		.done_source = wr_statistics_source(entity),
	};
	wr_histogram_finish(&waited);
	return true;
}

struct nth_path {
	const weir_graph *graph;
	size_t skip;
	struct rig_path *out;
	bool found;
};

static const char *end_name(const char *what, const char *port)
{
	static _Thread_local char names[8][64];
	static _Thread_local unsigned next;
	char *name = names[next++ % 8];

	snprintf(name, sizeof names[0], "%s%s", what, port);
	return name;
}

static void add_entities(struct nth_path *nth, const struct wr_prefix *prefix)
{
	struct rig_path *out = nth->out;

	if (prefix->before)
		add_entities(nth, prefix->before);
	if (prefix->inlet != WR_NO_QUEUE)
		out->entities[out->entity_count++] =
			end_name("inlet:", nth->graph->connections[prefix->inlet]->to);
	out->entities[out->entity_count++] = nth->graph->entities[prefix->entity].plan->name;
}

static void note_nth(const struct wr_prefix *prefix, struct wr_path *path, void *arg)
{
	struct nth_path *nth = arg;
	struct rig_path *out = nth->out;

	if (nth->found || nth->skip--)
		return;
	nth->found = true;
	out->entity_count = 0;
	add_entities(nth, prefix);
	if (path->outlet != WR_NO_QUEUE)
		out->entities[out->entity_count++] =
			end_name("outlet:", nth->graph->connections[path->outlet]->from);
	out->other = prefix->other;
	out->count = wr_read(&path->count);
	out->latency = wr_histogram_summary(&path->latency);
}

bool rig_path(weir_scheduler *scheduler, size_t i, struct rig_path *out)
{
	struct wr_statistics *statistics = wr_statistics_in(scheduler->trace);
	struct nth_path nth = {scheduler->graph, i, out, false};

	if (statistics)
		wr_paths_each(&statistics->paths, note_nth, &nth);
	return nth.found;
}

bool rig_uses_no_stream(struct rig *rig, const char *name)
{
	const weir_entity *entity = weir_graph_entity(rig->graph, name);

	return !entity->context.stream_used && !entity->current_stream;
}

/* --- streams --- */

uint32_t rig_stream_count(struct rig *rig)
{
	return wr_load(&rig->graph->system->count);
}

size_t rig_pool_count(struct rig *rig)
{
	return rig->graph->pools ? rig->graph->plan->stream_pool_count : 0;
}

size_t rig_taken(struct rig *rig, size_t pool)
{
	return wr_stream_pool_taken(rig->graph->pools[pool]);
}

weir_stream *rig_pool_take(struct rig *rig, size_t pool)
{
	weir_stream *stream = NULL;

	assert_int_equal(wr_stream_pool_take(rig->graph->pools[pool], "test", &stream), WEIR_OK);
	return stream;
}

void rig_put_back(weir_stream *stream)
{
	wr_stream_close(stream);
}

uint32_t rig_stream_flags(const weir_stream *stream)
{
	return stream->spec.flags;
}

int rig_stream_priority(const weir_stream *stream)
{
	return stream->spec.priority;
}

const void *rig_partition(const weir_stream *stream)
{
	return stream->spec.partition;
}

bool rig_has_flag(weir_stream *stream, weir_fence fence)
{
	return wr_stream_has_flag(stream, fence.value);
}

void rig_give_native(weir_stream *stream)
{
	wr_store(&wr_load(&stream->root)->native_given, true);
}

bool rig_keeps_streams(struct rig *rig, const char *name)
{
	const weir_entity *entity = weir_graph_entity(rig->graph, name);

	return entity->fences_pending || entity->stop_owed;
}

uint64_t rig_highest_index(weir_context *context)
{
	const struct wr_entity_streams *own = &weir_context_entity(context)->streams;
	uint64_t last = 0;

	for (size_t i = 0; i < own->count; i++) {
		uint64_t index =
			weir_stream_id(own->items[i].stream) & 0xffff; /* the lower 16 bits of an id */
		last = index > last ? index : last;
	}
	return last;
}

void rig_scratch_fix(weir_context *context, bool fixed)
{
	wr_scratch_fix(context->entity, fixed);
}

static size_t current_index(const weir_context *context)
{
	return context->entity->streams.current - 1;
}

void rig_scratch_return(weir_context *context)
{
	struct wr_scratch_place begin = wr_scratch_place(context->entity, current_index(context));

	begin.used = begin.asked = 0;
	wr_scratch_return_to(context->entity, current_index(context), begin);
}

size_t rig_scratch_height(weir_context *context)
{
	struct wr_scratch_place place = wr_scratch_place(context->entity, current_index(context));

	return place.base ? place.height : 0;
}

size_t rig_scratch_blocks(weir_context *context)
{
	const struct wr_entity_streams *streams = &context->entity->streams;
	size_t count = 0;

	for (size_t i = 0; i < streams->count; i++)
		count += (streams->items[i].scratch.stack != NULL) + (streams->items[i].scratch.own != NULL);
	return count;
}

size_t rig_own_stream_count(weir_context *context)
{
	return weir_context_entity(context)->streams.count;
}

/* --- messages --- */

size_t rig_uses(const weir_message *message)
{
	return message->uses.count;
}

uint32_t rig_references(const weir_message *message)
{
	return wr_message_references(message);
}

size_t rig_carried_fences(const weir_message *message, weir_fence *fences, size_t room)
{
	return wr_message_carried(message, fences, room);
}

uint32_t rig_messages_made(struct rig *rig)
{
	return rig->graph->pool->total;
}

/* --- threads and the loop --- */

uint64_t rig_live(weir_scheduler *scheduler)
{
	return wr_live_count(&scheduler->live);
}

bool rig_all_asleep(weir_scheduler *scheduler)
{
	return wr_load(&scheduler->sleepers) == scheduler->all_asleep;
}

bool rig_one_asleep(weir_scheduler *scheduler)
{
	return wr_load(&scheduler->sleepers);
}

void rig_unpark(struct rig *rig, size_t worker)
{
	wr_unpark(&rig->scheduler->workers[worker].parker);
}

void rig_lock_outlet(weir_outlet *outlet, bool lock)
{
	if (lock)
		wr_mutex_lock(&outlet->lock);
	else
		wr_mutex_unlock(&outlet->lock);
}

void rig_lock_inlet(weir_inlet *inlet, bool lock)
{
	if (lock)
		wr_mutex_lock(&inlet->lock);
	else
		wr_mutex_unlock(&inlet->lock);
}

bool rig_fill_wake(struct rig *rig)
{
	static const uint64_t most[] = {UINT64_MAX - 1, UINT64_MAX - 2, 1};
	ssize_t wrote = 0;

	for (int i = 0; i < 3; i++)
		wrote = write(rig->scheduler->loop.wake, &most[i], sizeof most[i]);
	wr_store(&rig->scheduler->loop.kicked, false);
	return wrote == -1;
}

int64_t rig_kept_until(struct rig *rig)
{
	return wr_load(&rig->scheduler->kept_until);
}

int64_t rig_loop_until(struct rig *rig)
{
	return wr_load(&rig->scheduler->loop.until);
}

void rig_poke_late(weir_scheduler *scheduler, int fd)
{
	scheduler->waker.poke(&scheduler->waker, 0, 0);
	scheduler->loop.wake = fd;
	wr_loop_kick(&scheduler->loop);
}

void rig_lose_message(struct rig *rig, const char *to)
{
	for (size_t i = 0; i < rig->graph->connection_count; i++)
		if (!strcmp(rig->graph->connections[i]->to, to))
			wr_count(&rig->graph->connections[i]->queue.counters.pushed, 1);
}

void rig_lose_emission(struct rig *rig, const char *entity)
{
	weir_graph_entity(rig->graph, entity)->outputs[0].total++;
}

weir_status rig_observe(struct rig *rig, const struct wr_observer *observer)
{
	struct wr_trace_options options = {.workers = rig->scheduler->worker_asked};

	return wr_trace_open_with(&options, &observer, 1, &rig->scheduler->trace);
}

weir_status rig_observe_beside(struct rig *rig, const struct wr_observer *observer)
{
	const struct wr_observer *const both[] = {&wr_statistics, observer};
	weir_scheduler *scheduler = rig->scheduler;
	struct wr_trace_options options = {
		.workers = scheduler->worker_asked,
		.observe = WEIR_OBSERVE_STATISTICS,
		.entities = wr_graph_count_all(rig->graph),
		.queues = rig->graph->connection_count,
	};

	wr_trace_close(scheduler->trace);
	scheduler->trace = NULL;
	return wr_trace_open_with(&options, both, 2, &scheduler->trace);
}

void rig_ignore_work(void *self, int64_t at, unsigned lane, uint32_t entity, uint64_t tick,
		     const char *stream, uint32_t queue, int64_t begin, int64_t end,
		     enum wr_trace_source source)
{
	(void)self, (void)at, (void)lane, (void)entity, (void)tick;
	(void)stream, (void)queue, (void)begin, (void)end, (void)source;
}
