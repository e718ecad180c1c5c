/*
 * The keys of an entity's replays (T13), and the executables that belong to them. Thread, for all functions:
 * the entity's owner.
 */
#ifndef WR_SCHEDULER_REPLAY_KEYS_H
#define WR_SCHEDULER_REPLAY_KEYS_H

#include "scheduler/graph.h"

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

#endif
