/*
 * Keys: found by their hash, listed by their last use. An executable may be destroyed once a fence behind its
 * launches is complete. That fence is recorded at the end of the tick; executables that are not needed any
 * more wait for it in `dying`.
 */
#include "scheduler/replay_keys.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/status.h"

/* --- making and forgetting --- */

static bool is_off(const weir_entity *entity)
{
	if (!entity->plan->replay_keys)
		return true;
	if (wr_system_captures(entity->graph->system))
		return false;
	wr_log(WEIR_LOG_WARN, "%s: replay: %s has no graphs: its work is enqueued in each tick",
	       entity->plan->name, wr_system_where(entity->graph->system));
	return true;
}

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
	replays->off = is_off(entity);
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

static struct wr_replay *replay_find(const struct wr_replays *replays, uint64_t hash, const void *key,
				     size_t bytes)
{
	struct wr_replay *replay = *bucket_of(replays, hash);

	while (replay &&
	       (replay->hash != hash || replay->bytes != bytes || memcmp(replay->key, key, bytes) != 0))
		replay = replay->next;
	return replay;
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

/* Those of this tick come first. */
static bool taken_in_tick(const struct wr_replays *replays, uint64_t tick, const void *key, size_t own)
{
	for (const struct wr_replay *at = replays->newest; at && at->tick == tick; at = at->older)
		if (at->own == own && !memcmp(at->key, key, own))
			return true;
	return false;
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
	uint64_t hash = key_hash(key, bytes), tick = entity->context.tick + 1;
	struct wr_replay *replay = replay_find(entity->replays, hash, key, bytes);
	weir_status status = WEIR_OK;

	if (taken_in_tick(entity->replays, tick, key, own))
		return wr_fail_in(WEIR_E_INVALID, entity->plan->name,
				  "replay: this key was replayed in this tick already: put what differs into "
				  "the key");
	if (!replay)
		status = replay_add(entity, hash, key, bytes, own, &replay);
	if (status)
		return status;
	replay->tick = tick;
	if (replay != entity->replays->newest) {
		unlink_by_use(entity->replays, replay);
		link_newest(entity->replays, replay);
	}
	*out = replay;
	return WEIR_OK;
}
