/*
 * Replay (T13). An entity keeps up to `keys` keys; the least recently used one is evicted. A key is COLD
 * until `warm_up` ticks have enqueued its work as usual (modules are loaded lazily, libraries allocate at
 * their first call), then WARM. The next tick captures the work: the key is READY, and each later
 * tick launches it. If the capture fails the key is FAILED and its work is enqueued as usual, in
 * that tick, too: nothing of a capture has run. So `enqueue` may be called twice in a tick.
 *
 * WEIR_DEBUG_REPLAY=1 captures the work of a READY key again in each CHECKED-th of its ticks, and
 * compares. The number is a prime: addresses alternate with small periods, and must not come in step with it.
 * Libraries pass structures with padding that they never write, which holds what the stack held: so that it
 * is the same in each capture, the stack below enqueue is filled with one byte before.
 */
#include "scheduler/replay.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/status.h"
#include "scheduler/graph.h"
#include "scheduler/scheduler.h"

/*
 * === what an entity keeps of its keys ===
 *
 * The keys of an entity's replays (T13), and the executables that belong to them. Thread, for all functions:
 * the entity's owner.
 */

enum { WR_REPLAY_STACKS = 8 }; /* of scratch memory; an entity with more does not capture */

/* A stack of scratch memory (T11): what the addresses of requests depend on. */
struct wr_replay_stack {
	size_t index; /* of the entity's streams */
	struct wr_scratch_place place;
};

/* What the operator passed, then the stacks. */
enum { WR_REPLAY_KEY_ROOM = WEIR_REPLAY_KEY_MAX + WR_REPLAY_STACKS * sizeof(struct wr_replay_stack) };

enum wr_replay_state { WR_REPLAY_COLD, WR_REPLAY_WARM, WR_REPLAY_READY, WR_REPLAY_FAILED };

struct wr_replay {
	struct wr_replay *next;          /* of its bucket */
	struct wr_replay *newer, *older; /* by their last ticks */
	enum wr_replay_state state;
	uint32_t runs;  /* ticks that enqueued the work as usual */
	uint64_t tick;  /* 1 + number of its last tick */
	uint64_t ticks; /* since it is READY */
	struct wr_executable *executable;
	uint64_t hash;
	size_t bytes, own; /* of the key; of what the operator passed */
	size_t stack_count;
	struct wr_replay_stack stacks[WR_REPLAY_STACKS]; /* after its requests */
	unsigned char key[WR_REPLAY_KEY_ROOM];
};

struct wr_replays {
	struct wr_replay **buckets;
	size_t mask, count, most;
	struct wr_replay *newest, *oldest;
	struct wr_executable **dying;
	size_t dying_count, dying_room;
	struct wr_capture *capture;
	weir_stream **streams; /* of a capture */
	size_t stream_room;
	bool off;       /* the work is always enqueued as usual */
	bool crowded;   /* it was said that there are too many stacks of scratch memory */
	bool checked;   /* WEIR_DEBUG_REPLAY */
	char said[160]; /* the last reason that was logged */
};

/* At the first replay of a run: entity->replays. Fails: WEIR_E_NOMEM. */
weir_status wr_replays_make(weir_entity *entity);
/*
 * The key, which is from now on the most recently used one; a new one is COLD and may evict the oldest. Its
 * first `own` bytes are the operator's. Fails: WEIR_E_INVALID: these were taken in this tick already;
 * WEIR_E_NOMEM.
 */
weir_status wr_replay_take(weir_entity *entity, const void *key, size_t bytes, size_t own,
			   struct wr_replay **out);
/* Destroys the executable once a fence behind its launches is complete. */
void wr_replays_retire(struct wr_replays *replays, struct wr_executable *executable);

/*
 * === keys ===
 *
 * Keys: found by their hash, listed by their last use. An executable may be destroyed once a fence behind its
 * launches is complete. That fence is recorded at the end of the tick; executables that are not needed any
 * more wait for it in `dying`.
 */

/* --- making and forgetting --- */

static void replays_free(struct wr_replays *replays)
{
	wr_free((void *)replays->buckets);
	wr_free((void *)replays->dying);
	wr_free((void *)replays->streams);
	wr_free(replays);
}

/* At the first replay of a run. */
weir_status wr_replays_make(weir_entity *entity)
{
	struct wr_replays *replays = wr_alloc(1, sizeof *replays);
	const char *debug = getenv("WEIR_DEBUG_REPLAY");
	size_t buckets = 1;
	weir_status status;

	if (!replays)
		return WEIR_E_NOMEM;
	replays->most = entity->plan->replay_keys ? entity->plan->replay_keys : WR_REPLAY_KEYS;
	while (buckets < replays->most)
		buckets *= 2;
	replays->mask = buckets - 1;
	replays->buckets = wr_alloc(buckets, sizeof(*replays->buckets));
	replays->checked = debug && *debug && strcmp(debug, "0") != 0;
	status =
		replays->buckets ? wr_capture_create(entity->graph->system, &replays->capture) : WEIR_E_NOMEM;
	if (status) {
		replays_free(replays);
		return status;
	}
	replays->off = !entity->plan->replay_keys || !wr_system_captures(entity->graph->system);
	if (replays->off && entity->plan->replay_keys)
		wr_log(WEIR_LOG_WARN, "%s: replay: %s has no graphs: its work is enqueued in each tick",
		       entity->plan->name, wr_system_where(entity->graph->system));
	entity->replays = replays;
	return WEIR_OK;
}

void wr_replays_close(weir_entity *entity)
{
	struct wr_replays *replays = entity->replays;

	if (!replays)
		return;
	while (replays->newest) {
		struct wr_replay *replay = replays->newest;

		replays->newest = replay->older;
		if (replay->executable)
			wr_executable_drop(replay->executable);
		wr_free(replay);
	}
	while (replays->dying_count)
		wr_executable_drop(replays->dying[--replays->dying_count]);
	wr_capture_destroy(replays->capture);
	replays_free(replays);
	entity->replays = NULL;
}

/* --- executables that are not needed any more --- */

/* Without memory it lives as long as the system. */
void wr_replays_retire(struct wr_replays *replays, struct wr_executable *executable)
{
	if (wr_executable_try_destroy(executable))
		return;
	if (wr_grow(&replays->dying, &replays->dying_room, replays->dying_count + 1, sizeof(*replays->dying)))
		wr_executable_drop(executable);
	else
		replays->dying[replays->dying_count++] = executable;
}

static void dying_note_fence(struct wr_replays *replays, const weir_fence *fence)
{
	size_t left = 0;

	for (size_t i = 0; i < replays->dying_count; i++) {
		struct wr_executable *executable = replays->dying[i];

		if (fence)
			wr_executable_note_fence(executable, *fence);
		if (!wr_executable_try_destroy(executable))
			replays->dying[left++] = executable;
	}
	replays->dying_count = left;
}

/* Without a fence (its record failed) they stay until a later tick has one. */
void wr_replays_end_tick(weir_entity *entity)
{
	const struct wr_entity_streams *streams = &entity->streams;
	const struct wr_entity_stream *current =
		streams->current ? &streams->items[streams->current - 1] : NULL;
	struct wr_replays *replays = entity->replays;
	const weir_fence *fence = current && current->ended ? &current->last : NULL;

	for (struct wr_replay *replay = replays->newest;
	     fence && replay && replay->tick > entity->context.tick; replay = replay->older)
		if (replay->executable)
			wr_executable_note_fence(replay->executable, *fence);
	if (replays->dying_count)
		dying_note_fence(replays, fence);
}

/* --- keys --- */

static uint64_t key_hash(const unsigned char *key, size_t bytes)
{
	uint64_t hash = bytes, word;

	for (; bytes; key += sizeof word, bytes -= bytes < sizeof word ? bytes : sizeof word) {
		word = 0;
		memcpy(&word, key, bytes < sizeof word ? bytes : sizeof word);
		hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
		hash ^= hash >> 32;
	}
	return hash;
}

static void unlink_by_use(struct wr_replays *replays, struct wr_replay *replay)
{
	*(replay->newer ? &replay->newer->older : &replays->newest) = replay->older;
	*(replay->older ? &replay->older->newer : &replays->oldest) = replay->newer;
}

static void link_newest(struct wr_replays *replays, struct wr_replay *replay)
{
	replay->newer = NULL;
	replay->older = replays->newest;
	*(replays->newest ? &replays->newest->newer : &replays->oldest) = replay;
	replays->newest = replay;
}

static struct wr_replay **bucket_of(const struct wr_replays *replays, uint64_t hash)
{
	return &replays->buckets[hash & replays->mask];
}

/* Returns the memory of the least recently used key. */
static struct wr_replay *replay_evict(weir_entity *entity)
{
	struct wr_replays *replays = entity->replays;
	struct wr_replay *oldest = replays->oldest, **at = bucket_of(replays, oldest->hash);

	while (*at != oldest)
		at = &(*at)->next;
	*at = oldest->next;
	unlink_by_use(replays, oldest);
	replays->count--;
	if (oldest->executable)
		wr_replays_retire(replays, oldest->executable);
	wr_count(&entity->counters.replay_evictions, 1);
	return oldest;
}

static weir_status replay_add(weir_entity *entity, uint64_t hash, const void *key, size_t bytes, size_t own,
			      struct wr_replay **out)
{
	struct wr_replays *replays = entity->replays;
	struct wr_replay *replay =
		replays->count < replays->most ? wr_alloc(1, sizeof *replay) : replay_evict(entity);

	if (!replay)
		return WEIR_E_NOMEM;
	memset(replay, 0, sizeof *replay);
	replay->hash = hash;
	replay->bytes = bytes;
	replay->own = own;
	memcpy(replay->key, key, bytes);
	replay->next = *bucket_of(replays, hash);
	*bucket_of(replays, hash) = replay;
	link_newest(replays, replay);
	replays->count++;
	*out = replay;
	return WEIR_OK;
}

weir_status wr_replay_take(weir_entity *entity, const void *key, size_t bytes, size_t own,
			   struct wr_replay **out)
{
	struct wr_replays *replays = entity->replays;
	uint64_t hash = key_hash(key, bytes), tick = entity->context.tick + 1;
	struct wr_replay *replay = *bucket_of(replays, hash);
	weir_status status = WEIR_OK;

	/* Those of this tick come first. */
	for (const struct wr_replay *at = replays->newest; at && at->tick == tick; at = at->older)
		if (at->own == own && !memcmp(at->key, key, own))
			return wr_fail_in(WEIR_E_INVALID, entity->plan->name,
					  "replay: this key was replayed in this tick already: put what "
					  "differs into the key");
	while (replay &&
	       (replay->hash != hash || replay->bytes != bytes || memcmp(replay->key, key, bytes) != 0))
		replay = replay->next;
	if (!replay)
		status = replay_add(entity, hash, key, bytes, own, &replay);
	if (status)
		return status;
	replay->tick = tick;
	if (replay != replays->newest) {
		unlink_by_use(replays, replay);
		link_newest(replays, replay);
	}
	*out = replay;
	return WEIR_OK;
}

/* === replays === */

enum { CHECKED = 61, FILLED_STACK = 1 << 15, FRAME = 512, FILL = 0xA5 };

/* A call of weir_context_replay. */
struct call {
	weir_context *context;
	weir_entity *entity;
	weir_stream *stream;
	weir_enqueue_fn *enqueue;
	void *arg;
	size_t stack_count;
	struct wr_replay_stack stacks[WR_REPLAY_STACKS]; /* before its requests */
};

/* --- scratch memory --- */

/*
 * A stack grows at its first request of a tick, which a launched executable does not make: without this the
 * stacks would keep their heights while a key is READY, and what compute requests behind it would not fit.
 */
static weir_status stacks_grow(weir_entity *entity)
{
	weir_status status = WEIR_OK;
	void *top;

	for (size_t i = 0; !status && i < entity->streams.count; i++) {
		struct wr_scratch_place place = wr_scratch_place(entity, i);

		if (!place.asked && entity->streams.items[i].scratch.wanted > place.height)
			status = wr_scratch_take(entity, i, 0, &top);
	}
	return status;
}

/* Lists the stacks that there are. Returns false if there are too many. */
static bool stacks_list(const weir_entity *entity, struct wr_replay_stack *stacks, size_t *count)
{
	*count = 0;
	for (size_t i = 0; i < entity->streams.count; i++) {
		struct wr_scratch_place place = wr_scratch_place(entity, i);

		if (!place.base && !place.asked)
			continue;
		if (*count == WR_REPLAY_STACKS)
			return false;
		stacks[(*count)++] = (struct wr_replay_stack){i, place};
	}
	return true;
}

static void stacks_return_to(weir_entity *entity, const struct wr_replay_stack *stacks, size_t count)
{
	for (size_t i = 0; i < count; i++)
		wr_scratch_return_to(entity, stacks[i].index, stacks[i].place);
	entity->streams.scratch_used |= count > 0;
}

/* The launch is work of the current stream: it waits for what the streams of the stacks did before. */
static weir_status stacks_begin(const struct call *call, const struct wr_replay_stack *stacks, size_t count)
{
	const struct wr_entity_stream *items = call->entity->streams.items;
	weir_status status = WEIR_OK;

	for (size_t i = 0; !status && i < count; i++) {
		status = wr_scratch_begin_tick(call->entity, stacks[i].index);
		if (!status && items[stacks[i].index].last.value)
			status = weir_stream_wait(call->stream, items[stacks[i].index].last);
	}
	return status;
}

/* --- the states --- */

static weir_status enqueue_as_usual(const struct call *call, struct wr_replay *replay)
{
	weir_status status = call->enqueue(call->context, call->stream, call->arg);

	if (status || replay->state > WR_REPLAY_WARM)
		return status;
	replay->runs++;
	replay->state = replay->runs >= call->entity->plan->replay_warm_up ? WR_REPLAY_WARM : WR_REPLAY_COLD;
	return WEIR_OK;
}

/* From now on FAILED. A reason that several keys have in common is logged once. */
static void replay_fail(const struct call *call, struct wr_replay *replay, weir_log_level level,
			const char *why)
{
	struct wr_replays *replays = call->entity->replays;

	replay->state = WR_REPLAY_FAILED;
	if (replay->executable)
		wr_replays_retire(replays, replay->executable);
	replay->executable = NULL;
	wr_count(&call->entity->counters.replay_failures, 1);
	if (!strncmp(replays->said, why, sizeof replays->said - 1))
		return;
	snprintf(replays->said, sizeof replays->said, "%s", why);
	wr_log(level, "%s: replay FAILED: %s: its work is enqueued in each tick from now on",
	       call->entity->plan->name, why);
}

/* The current stream, then the others. */
static weir_status list_streams(const struct call *call, size_t *count)
{
	const struct wr_entity_streams *streams = &call->entity->streams;
	struct wr_replays *replays = call->entity->replays;
	weir_status status =
		wr_grow(&replays->streams, &replays->stream_room, streams->count, sizeof(*replays->streams));

	if (status)
		return status;
	*count = 0;
	replays->streams[(*count)++] = call->stream;
	for (size_t i = 0; i < streams->count; i++)
		if (streams->items[i].stream != call->stream)
			replays->streams[(*count)++] = streams->items[i].stream;
	return WEIR_OK;
}

/* Volatile, so that the writes stay; not inlined, so that they lie where the next call's frames do. */
static __attribute__((noinline)) void fill_stack(void)
{
	volatile unsigned char stack[FILLED_STACK];

	for (size_t i = 0; i < sizeof stack; i++)
		stack[i] = FILL;
}

/* Its frame covers what fill_stack's has above the array, so that enqueue's begins within what was filled. */
static __attribute__((noinline)) weir_status enqueue_on_filled_stack(const struct call *call)
{
	volatile unsigned char above[FRAME];
	weir_status status;

	above[0] = FILL;
	status = call->enqueue(call->context, call->stream, call->arg);
	(void)above[0]; /* it is in use until here: no tail call */
	return status;
}

/* Calls `enqueue` in a capture, in which the context refuses what cannot be replayed. */
static void enqueue_captured(const struct call *call, struct wr_capture *capture)
{
	weir_context *context = call->context;
	weir_status status;

	context->capture = capture;
	context->computing = false;
	wr_scratch_fix(call->entity, true);
	wr_error_clear(wr_error_here());
	if (call->entity->replays->checked) {
		fill_stack();
		status = enqueue_on_filled_stack(call);
	} else {
		status = call->enqueue(context, call->stream, call->arg);
	}
	wr_scratch_fix(call->entity, false);
	context->computing = true;
	context->capture = NULL;
	if (!status)
		return;
	(void)wr_failure_explain(status, "enqueue");
	(void)wr_capture_refuse(capture, "%s", wr_error_text(wr_error_here()));
}

/* --- events --- */

static void trace_begin(const struct call *call, bool capture)
{
	const weir_scheduler *scheduler = wr_load_acquire(&call->entity->scheduler);

	if (scheduler->trace)
		wr_trace_replay_begin(scheduler->trace, wr_lane_here(scheduler), call->entity->id, capture);
}

static void trace_end(const struct call *call)
{
	const weir_scheduler *scheduler = wr_load_acquire(&call->entity->scheduler);

	if (scheduler->trace)
		wr_trace_replay_end(scheduler->trace, wr_lane_here(scheduler), call->entity->id);
}

static weir_status executable_launch(const struct call *call, struct wr_executable *executable)
{
	weir_status status;

	trace_begin(call, false);
	status = wr_executable_launch(executable, call->stream);
	trace_end(call);
	return status;
}

/* --- the capture --- */

/* *out is NULL if nothing was enqueued. */
static weir_status capture_work(const struct call *call, struct wr_executable **out)
{
	struct wr_replays *replays = call->entity->replays;
	size_t count = 0;
	weir_status status = list_streams(call, &count);

	if (!status)
		status = stacks_begin(call, call->stacks, call->stack_count);
	if (!status)
		status = wr_capture_begin(replays->capture, replays->streams, count);
	if (status)
		return status;
	trace_begin(call, true);
	enqueue_captured(call, replays->capture);
	status = wr_capture_end(replays->capture, out);
	trace_end(call);
	if (!status && *out)
		wr_count(&call->entity->counters.replay_captures, 1);
	else
		stacks_return_to(call->entity, call->stacks, call->stack_count);
	return status;
}

static weir_status capture_and_launch(const struct call *call, struct wr_replay *replay)
{
	struct wr_executable *executable = NULL;
	weir_status status = capture_work(call, &executable);

	if (!status && !executable) {
		/* If enqueue used a handle of its own, that work runs: it is not called again in this tick.
		 */
		replay_fail(
			call, replay, WEIR_LOG_WARN,
			"enqueue put nothing on the streams of the capture: in enqueue, give libraries the "
			"native handle of its stream");
		return WEIR_OK;
	}
	if (!status)
		status = executable_launch(call, replay->executable = executable);
	if (!status) {
		replay->state = WR_REPLAY_READY;
		(void)stacks_list(call->entity, replay->stacks, &replay->stack_count);
	}
	if (!status || status == WEIR_E_DEVICE)
		return status;
	stacks_return_to(call->entity, call->stacks, call->stack_count);
	if (executable || !wr_capture_postponed(call->entity->replays->capture))
		replay_fail(call, replay, WEIR_LOG_WARN, wr_error_text(wr_error_here()));
	return enqueue_as_usual(call, replay);
}

static weir_status launch_ready(const struct call *call, struct wr_replay *replay)
{
	weir_status status = stacks_begin(call, replay->stacks, replay->stack_count);

	if (status)
		return status;
	status = executable_launch(call, replay->executable);
	if (!status) /* what compute requests from here on lies behind it */
		stacks_return_to(call->entity, replay->stacks, replay->stack_count);
	if (!status)
		wr_count(&call->entity->counters.replay_hits, 1);
	if (!status || status == WEIR_E_DEVICE)
		return status;
	replay_fail(call, replay, WEIR_LOG_WARN, wr_error_text(wr_error_here()));
	return enqueue_as_usual(call, replay);
}

/* WEIR_DEBUG_REPLAY: captures the work again and compares it with what would be launched. */
static weir_status check_and_launch(const struct call *call, struct wr_replay *replay)
{
	struct wr_executable *again = NULL;
	char what[160] = "it is enqueued no more", why[240];
	weir_status status = capture_work(call, &again);
	bool same = !status && again && !wr_executable_differs(replay->executable, again, what, sizeof what);

	if (again)
		wr_replays_retire(call->entity->replays, again);
	stacks_return_to(call->entity, call->stacks, call->stack_count);
	if (same || (status && wr_capture_postponed(call->entity->replays->capture)))
		return launch_ready(call, replay);
	if (status == WEIR_E_DEVICE)
		return status;
	snprintf(why, sizeof why, "its key leaves out what the work depends on: %s",
		 status ? wr_error_text(wr_error_here()) : what);
	replay_fail(call, replay, WEIR_LOG_ERROR, why);
	return enqueue_as_usual(call, replay);
}

static weir_status replay_run(const struct call *call, struct wr_replay *replay)
{
	const struct wr_replays *replays = call->entity->replays;

	switch (replay->state) {
	case WR_REPLAY_COLD:
	case WR_REPLAY_FAILED:
		break;
	case WR_REPLAY_WARM:
		if (replays->off)
			break;
		return capture_and_launch(call, replay);
	case WR_REPLAY_READY:
		if (replays->checked && ++replay->ticks % CHECKED == 0)
			return check_and_launch(call, replay);
		return launch_ready(call, replay);
	}
	return enqueue_as_usual(call, replay);
}

/* --- the call --- */

static weir_status check_call(const weir_context *context, const void *key, size_t bytes,
			      weir_enqueue_fn *enqueue)
{
	const char *name = context->entity->plan->name;

	if (context->capture)
		return wr_capture_refuse(context->capture, "a replay within a replay");
	if (context->replaying)
		return wr_fail_in(WEIR_E_INVALID, name, "replay was called within enqueue");
	if (!context->computing)
		return wr_fail_in(WEIR_E_INVALID, name, "replay is for compute only");
	if (!key)
		return wr_fail_in(WEIR_E_INVALID, name, "replay needs a key, NULL was given");
	if (!bytes || bytes > WEIR_REPLAY_KEY_MAX)
		return wr_fail_in(WEIR_E_INVALID, name, "replay: a key of %zu bytes: give 1 to %d", bytes,
				  WEIR_REPLAY_KEY_MAX);
	if (!enqueue)
		return wr_fail_in(WEIR_E_INVALID, name, "replay needs a function");
	return WEIR_OK;
}

static weir_status replay_key(const struct call *call, const void *key, size_t bytes)
{
	unsigned char full[WR_REPLAY_KEY_ROOM]; /* the operator's key, then the stacks of scratch memory */
	size_t stacks = call->stack_count * sizeof *call->stacks;
	struct wr_replay *replay = NULL;
	weir_status status;

	memcpy(full, key, bytes);
	memcpy(full + bytes, call->stacks, stacks);
	status = wr_replay_take(call->entity, full, bytes + stacks, bytes, &replay);
	if (status)
		return status;
	call->context->replaying = true;
	status = replay_run(call, replay);
	call->context->replaying = false;
	return status;
}

/* Said and counted once a run: the work is never captured. */
static weir_status enqueue_crowded(const struct call *call)
{
	weir_entity *entity = call->entity;
	weir_status status;

	if (!entity->replays->crowded) {
		entity->replays->crowded = true;
		wr_count(&entity->counters.replay_failures, 1);
		wr_log(WEIR_LOG_WARN,
		       "%s: replay FAILED: it has scratch memory on more than %d streams: its work is "
		       "enqueued in each tick",
		       entity->plan->name, WR_REPLAY_STACKS);
	}
	call->context->replaying = true;
	status = call->enqueue(call->context, call->stream, call->arg);
	call->context->replaying = false;
	return status;
}

weir_status weir_context_replay(weir_context *context, const void *key, size_t bytes,
				weir_enqueue_fn *enqueue, void *arg)
{
	struct call call = {.context = context, .entity = context->entity, .enqueue = enqueue, .arg = arg};
	weir_status status = check_call(context, key, bytes, enqueue);

	if (!status)
		status = weir_context_stream(context, &call.stream);
	if (!status && wr_stream_capturing(call.stream))
		status = wr_fail_in(WEIR_E_UNSUPPORTED, call.entity->plan->name,
				    "replay: its stream is being captured: end that capture first");
	if (!status && !call.entity->replays)
		status = wr_replays_make(call.entity);
	if (!status)
		status = stacks_grow(call.entity);
	if (status)
		return status;
	if (!stacks_list(call.entity, call.stacks, &call.stack_count))
		return enqueue_crowded(&call);
	return replay_key(&call, key, bytes);
}
