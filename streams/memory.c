/*
 * The memory of a system: arenas, and payloads that wait for the device before they are freed.
 *
 * An arena: blocks in size classes, four per power of two, carved from large chunks. A freed block goes to
 * its class's free list; chunks are returned to the backend with the system. Nothing is written into device
 * memory: free blocks are linked by separate nodes, and each block in use has left its node in `spare`.
 *
 * When the backend has no memory left, a free block of a larger class is lent. It keeps its class, or small
 * sizes would use up the large blocks: its node is in `lent`, and is found by the address when it is freed.
 */
#include "streams/memory.h"

#include <assert.h>

#include "base/memory.h"
#include "base/status.h"
#include "streams/system.h"

enum { SMALLEST = 1024, CHUNK = 4 << 20 }; /* with 1024 all sizes are multiples of 256, the alignment */

/* --- classes: 1024, 1280, 1536, 1792, 2048, 2560, ... --- */

static size_t class_size(unsigned class)
{
	return (size_t)(SMALLEST / 4 * (4 + class % 4)) << class / 4;
}

static unsigned class_of(size_t bytes)
{
	unsigned class = 0;

	while (class < WR_MEMORY_CLASSES - 4 && class_size(class + 4) <= bytes)
		class += 4;
	while (class < WR_MEMORY_CLASSES && class_size(class) < bytes)
		class ++;
	return class;
}

/* --- under the lock --- */

static struct wr_arena *arena_of(struct wr_system *system, int device)
{
	return &system->arenas[device + 1];
}

static bool arena_carve_locked(struct wr_arena *arena, unsigned class, void **out)
{
	size_t size = class_size(class);

	for (struct wr_chunk *chunk = arena->chunks; chunk; chunk = chunk->next) {
		if (chunk->size - chunk->used < size)
			continue;
		*out = (char *)chunk->data + chunk->used;
		chunk->used += size;
		return true;
	}
	return false;
}

/* Takes a free block, or carves one, which uses *node. */
static bool arena_take_locked(struct wr_arena *arena, unsigned class, void **out, struct wr_block **node)
{
	struct wr_block *block = arena->free[class];

	if (!block) {
		if (!*node || !arena_carve_locked(arena, class, out))
			return false;
		block = *node;
		*node = NULL;
	} else {
		arena->free[class] = block->next;
		*out = block->data;
	}
	block->next = arena->spare;
	arena->spare = block;
	return true;
}

/* Returns a node for a block that is freed; *class is set to the block's own class if it was lent. */
static struct wr_block *block_node_locked(struct wr_arena *arena, const void *data, unsigned *class)
{
	struct wr_block **at = &arena->lent, *block;

	while (*at && (*at)->data != data)
		at = &(*at)->next;
	if (*at)
		*class = (*at)->class;
	else
		at = &arena->spare;
	block = *at;
	assert(block); /* else the memory is not of this arena */
	*at = block->next;
	return block;
}

/* Lends the smallest free block that is large enough. */
static bool arena_lend(struct wr_arena *arena, unsigned class, void **out)
{
	struct wr_block *block = NULL;

	wr_mutex_lock(&arena->lock);
	while (class < WR_MEMORY_CLASSES && !arena->free[class])
		class ++;
	if (class < WR_MEMORY_CLASSES) {
		block = arena->free[class];
		arena->free[class] = block->next;
		block->class = class;
		block->next = arena->lent;
		arena->lent = block;
		*out = block->data;
	}
	wr_mutex_unlock(&arena->lock);
	return block != NULL;
}

static bool arena_take(struct wr_arena *arena, unsigned class, void **out, struct wr_block **node)
{
	bool taken;

	wr_mutex_lock(&arena->lock);
	taken = arena_take_locked(arena, class, out, node);
	wr_mutex_unlock(&arena->lock);
	return taken;
}

/* --- growing: the backend is called without the lock --- */

/* `used` bytes of the chunk are not for blocks. */
static weir_status arena_add_chunk(struct wr_system *system, int device, size_t bytes, size_t used,
				   void **out)
{
	struct wr_arena *arena = arena_of(system, device);
	struct wr_chunk *chunk = wr_alloc(1, sizeof *chunk);
	weir_status status;

	if (!chunk)
		return WEIR_E_NOMEM;
	status = wr_device_alloc(system, device, bytes, &chunk->data);
	if (status) {
		wr_free(chunk);
		return status;
	}
	chunk->size = bytes;
	chunk->used = used;
	*out = chunk->data;
	wr_mutex_lock(&arena->lock);
	chunk->next = arena->chunks;
	arena->chunks = chunk;
	wr_mutex_unlock(&arena->lock);
	return WEIR_OK;
}

static weir_status arena_grow_and_take(struct wr_system *system, int device, unsigned class, void **out)
{
	struct wr_arena *arena = arena_of(system, device);
	size_t size = class_size(class);
	struct wr_block *node = wr_alloc(1, sizeof *node);
	weir_status status = node ? WEIR_OK : WEIR_E_NOMEM;
	bool grown;

	while (!status && !arena_take(arena, class, out, &node)) {
		/*
		 * One thread at a time; others yield, then find its chunk.
		 * No lock is held, since the backend may take long.
		 */
		if (wr_exchange(&arena->growing, true)) {
			wr_thread_yield();
			continue;
		}
		grown = arena_take(arena, class, out, &node);
		if (!grown)
			status = arena_add_chunk(system, device, size > CHUNK / 4 ? size : CHUNK, 0,
						 &(void *){NULL});
		wr_store(&arena->growing, false);
		if (grown)
			break;
	}
	wr_free(node); /* not NULL if no block was carved */
	return status == WEIR_E_NOMEM && arena_lend(arena, class, out) ? WEIR_OK : status;
}

/* --- the functions of streams.h --- */

static weir_status arena_check_size(struct wr_system *system, int device, size_t bytes, unsigned *class)
{
	if (wr_system_failed(system))
		return wr_system_failure_status(system);
	if (device < WEIR_DEVICE_HOST || device >= system->devices)
		return wr_fail(WEIR_E_INVALID, "device %d: this machine has %d", device, system->devices);
	*class = class_of(bytes);
	return *class < WR_MEMORY_CLASSES ? WEIR_OK : wr_fail(WEIR_E_NOMEM, "no %zu bytes of memory", bytes);
}

weir_status wr_system_alloc(struct wr_system *system, int device, size_t bytes, void **out)
{
	struct wr_block *none = NULL;
	unsigned class;
	weir_status status = arena_check_size(system, device, bytes, &class);

	if (status)
		return status;
	if (arena_take(arena_of(system, device), class, out, &none))
		return WEIR_OK;
	wr_system_run_deferred_frees(system, false);
	return arena_grow_and_take(system, device, class, out);
}

void wr_system_free(struct wr_system *system, int device, void *data, size_t bytes)
{
	struct wr_arena *arena = arena_of(system, device);
	unsigned class = class_of(bytes);
	struct wr_block *block;

	if (!data)
		return;
	wr_mutex_lock(&arena->lock);
	block = block_node_locked(arena, data, &class);
	block->data = data;
	block->next = arena->free[class];
	arena->free[class] = block;
	wr_mutex_unlock(&arena->lock);
}

weir_status wr_system_open_arena(struct wr_system *system, int device)
{
	return wr_system_reserve(system, device, CHUNK);
}

/* Blocks in use count, too: they are freed, and the next run allocates as much again. */
weir_status wr_system_reserve(struct wr_system *system, int device, size_t bytes)
{
	struct wr_arena *arena;
	size_t present = 0;
	unsigned class;
	weir_status status = arena_check_size(system, device, bytes, &class);

	if (status)
		return status;
	arena = arena_of(system, device);
	wr_mutex_lock(&arena->lock);
	for (struct wr_chunk *chunk = arena->chunks; chunk; chunk = chunk->next)
		present += chunk->size;
	wr_mutex_unlock(&arena->lock);
	return present >= bytes ? WEIR_OK : arena_add_chunk(system, device, bytes, 0, &(void *){NULL});
}

weir_status wr_system_alloc_region(struct wr_system *system, int device, size_t bytes, void **out)
{
	if (wr_system_failed(system))
		return wr_system_failure_status(system);
	if (device < WEIR_DEVICE_HOST || device >= system->devices)
		return wr_fail(WEIR_E_INVALID, "device %d: this machine has %d", device, system->devices);
	return arena_add_chunk(system, device, bytes, bytes, out);
}

/* --- life --- */

weir_status wr_memory_init(struct wr_system *system)
{
	weir_status status = WEIR_OK;

	system->arenas = wr_alloc((size_t)system->devices + 1, sizeof *system->arenas);
	if (!system->arenas)
		return WEIR_E_NOMEM;
	for (int i = 0; i <= system->devices && !status; i++)
		status = wr_mutex_init(&system->arenas[i].lock);
	return status;
}

static void blocks_free(struct wr_block *block)
{
	while (block) {
		struct wr_block *next = block->next;

		wr_free(block);
		block = next;
	}
}

static void arena_finish(struct wr_system *system, int device)
{
	struct wr_arena *arena = arena_of(system, device);
	struct wr_chunk *chunk = arena->chunks;

	while (chunk) {
		struct wr_chunk *next = chunk->next;

		wr_device_release(system, device, chunk->data);
		wr_free(chunk);
		chunk = next;
	}
	for (unsigned i = 0; i < WR_MEMORY_CLASSES; i++)
		blocks_free(arena->free[i]);
	blocks_free(arena->spare);
	blocks_free(arena->lent);
	wr_mutex_finish(&arena->lock);
}

void wr_memory_finish(struct wr_system *system)
{
	if (!system->arenas)
		return;
	for (int device = WEIR_DEVICE_HOST; device < system->devices; device++)
		arena_finish(system, device);
	wr_free(system->arenas);
}

/*
 * === deferred frees ===
 *
 * Payloads without references that the device may still use (T4).
 *
 * To process the list a thread takes all of it, queries the device without a lock, releases the entries that
 * are complete and puts the others back, those with user destructors into the list of ready ones. The list is
 * in the order in which entries were listed, and so is what one pass releases; what is complete when its last
 * reference is dropped is never listed, and may come before older entries. An entry
 * holds a live reference only if a worker of the run added it: the worker holds one itself, while a foreign
 * thread or a worker of another run must not take one. If references are dropped (`ref_drops`) while the
 * entries are off the list, the thread that puts them back sees the changed count and drops theirs.
 *
 * Memory that an entity was refused (`refused` of an entry is not 0) comes back at the fence of its last
 * reader: the loop keeps a signal armed for the next fence of each stream that such entries wait for. It
 * processes the list, collects these fences, arms the signals, in one turn. An entity is counted as refused
 * before it processes the list itself. Any thread but the loop that lists an entry, or puts one back, looks
 * at `refused` after that, and kicks the loop if it is not 0. So either the loop finds the entry and the
 * refused entity together, or it is kicked (all seq_cst, or under the lock).
 */

weir_status wr_deferred_frees_init(struct wr_system *system)
{
	return wr_mutex_init(&system->deferred_frees.lock);
}

void wr_deferred_frees_finish(struct wr_system *system)
{
	wr_mutex_finish(&system->deferred_frees.lock);
}

static bool entry_complete(struct wr_system *system, const struct wr_deferred_free *entry)
{
	for (size_t i = 0; i < entry->count; i++)
		if (!wr_fence_may_free(system, entry->fences[i]))
			return false;
	return true;
}

static bool entry_known_complete(struct wr_system *system, const struct wr_deferred_free *entry)
{
	for (size_t i = 0; i < entry->count; i++) {
		weir_fence fence = entry->fences[i];
		bool over = wr_fence_is_promise(fence) ? wr_promise_over(system, fence)
						       : wr_fence_known_complete(system, fence);
		if (!over)
			return false;
	}
	return true;
}

static void list_append(struct wr_deferred_list *list, struct wr_deferred_free *entry)
{
	entry->next = NULL;
	if (list->last)
		list->last->next = entry;
	else
		list->first = entry;
	list->last = entry;
}

static struct wr_deferred_free *list_pop(struct wr_deferred_list *list)
{
	struct wr_deferred_free *entry = list->first;

	if (!entry)
		return NULL;
	list->first = entry->next;
	if (!list->first)
		list->last = NULL;
	return entry;
}

static bool is_before(const struct wr_deferred_free *entry, const struct wr_deferred_free *other)
{
	return (int32_t)(entry->number - other->number) < 0;
}

/* Both are in order. What a pass has left is nearly always older than all that came meanwhile. */
static void list_merge(struct wr_deferred_list *list, struct wr_deferred_list *added)
{
	struct wr_deferred_free **at = &list->first, *entry;

	if (!added->first)
		return;
	if (list->first && is_before(added->last, list->first)) {
		added->last->next = list->first;
		list->first = added->first;
		return;
	}
	while ((entry = added->first)) {
		while (*at && is_before(*at, entry))
			at = &(*at)->next;
		if (!*at) {
			*at = entry;
			list->last = added->last;
			return;
		}
		list_pop(added);
		entry->next = *at;
		*at = entry;
		at = &entry->next;
	}
}

bool wr_defer_free(struct wr_system *system, struct wr_deferred_free *entry)
{
	struct wr_waker *waker;

	entry->referenced = false;
	if (entry_known_complete(system, entry) || entry_complete(system, entry))
		return true;
	waker = wr_thread_local() && !entry->foreign ? wr_load(&system->waker) : NULL;
	if (waker)
		waker->take(waker);
	entry->referenced = waker != NULL;
	wr_mutex_lock(&system->deferred_frees.lock);
	entry->number = system->deferred_frees.numbers++;
	list_append(&system->deferred_frees.listed, entry);
	wr_fetch_add(&system->deferred_frees.count, 1);
	wr_mutex_unlock(&system->deferred_frees.lock);
	wr_watch_wake(system);
	return false;
}

uint64_t wr_system_deferred_frees(const struct wr_system *system)
{
	struct wr_system *own = (struct wr_system *)system;

	return wr_load(&own->deferred_frees.count) + wr_load(&own->deferred_frees.ready_count);
}

bool wr_system_deferred_frees_ready(const struct wr_system *system)
{
	return wr_load(&((struct wr_system *)system)->deferred_frees.ready_count) > 0;
}

static struct wr_deferred_free *ready_pop(struct wr_system *system)
{
	struct wr_deferred_free *entry;

	wr_mutex_lock(&system->deferred_frees.lock);
	entry = list_pop(&system->deferred_frees.ready);
	if (entry)
		wr_fetch_sub(&system->deferred_frees.ready_count, 1);
	wr_mutex_unlock(&system->deferred_frees.lock);
	return entry;
}

static void entry_drop_ref(struct wr_deferred_free *entry, struct wr_waker *waker)
{
	bool referenced = entry->referenced;

	entry->referenced = false;
	if (referenced && waker)
		waker->drop(waker);
}

/* An entity waits for its memory. */
static bool entry_wanted(const struct wr_deferred_free *entry)
{
	return entry->refused && wr_load(entry->refused);
}

/* Entries that are off the list, and what was put back of them. */
struct pass {
	struct wr_deferred_list incomplete, ready; /* ready: complete, with a destructor */
	uint64_t incomplete_count, ready_count;
	uint64_t ref_drops;
};

struct left {
	bool incomplete, wanted, destructors; /* wanted: an entity waits for memory that is incomplete */
};

static struct left pass_put_back(struct wr_system *system, struct pass *pass, struct wr_waker *waker)
{
	struct left left = {pass->incomplete.first, false, pass->ready.first};
	struct wr_deferred_free *entry;

	if (!left.incomplete && !left.destructors)
		return left;
	wr_mutex_lock(&system->deferred_frees.lock);
	if (pass->ref_drops != system->deferred_frees.ref_drops) {
		wr_mutex_unlock(&system->deferred_frees.lock);
		for (entry = pass->incomplete.first; entry; entry = entry->next)
			entry_drop_ref(entry, waker);
		for (entry = pass->ready.first; entry; entry = entry->next)
			entry_drop_ref(entry, waker);
		wr_mutex_lock(&system->deferred_frees.lock);
	}
	wr_fetch_add(&system->deferred_frees.count, pass->incomplete_count);
	wr_fetch_add(&system->deferred_frees.ready_count, pass->ready_count);
	for (entry = pass->incomplete.first; entry && !left.wanted; entry = entry->next)
		left.wanted = entry_wanted(entry);
	list_merge(&system->deferred_frees.listed, &pass->incomplete);
	while ((entry = list_pop(&pass->ready)))
		list_append(&system->deferred_frees.ready, entry);
	wr_mutex_unlock(&system->deferred_frees.lock);
	return left;
}

static struct left list_process(struct wr_system *system)
{
	struct pass pass = {.ref_drops = 0};
	struct wr_deferred_list list;
	struct wr_deferred_free *entry;
	struct wr_waker *waker;

	wr_mutex_lock(&system->deferred_frees.lock);
	pass.ref_drops = system->deferred_frees.ref_drops;
	list = system->deferred_frees.listed;
	system->deferred_frees.listed = (struct wr_deferred_list){NULL, NULL};
	wr_store(&system->deferred_frees.count, 0);
	wr_mutex_unlock(&system->deferred_frees.lock);
	/* Here, not before: a run that began meanwhile may hold references of what was taken. */
	waker = wr_load(&system->waker);
	while ((entry = list_pop(&list))) {
		bool done = entry_complete(system, entry), referenced = entry->referenced;

		if (done && !entry->destructor) {
			entry->release(entry); /* the payload, which embeds it; the reference after it (S4) */
			if (referenced && waker)
				waker->drop(waker);
			continue;
		}
		list_append(done ? &pass.ready : &pass.incomplete, entry);
		pass.ready_count += done;
		pass.incomplete_count += !done;
	}
	return pass_put_back(system, &pass, waker);
}

static void ref_drop(struct wr_system *system)
{
	struct wr_waker *waker = wr_waker_enter(system);

	if (waker)
		waker->drop(waker);
	wr_waker_leave(system);
}

/*
 * One at a time, with nothing held: a user's destructor may end its thread, and then the others stay listed.
 * For the same reason a worker drops the entry's reference first; it has one of its own until it sleeps.
 */
static void destructors_run(struct wr_system *system)
{
	struct wr_deferred_free *entry;

	while ((entry = ready_pop(system))) {
		bool referenced = entry->referenced, is_worker = wr_thread_local() != NULL;

		if (referenced && is_worker)
			ref_drop(system);
		entry->release(entry);
		if (referenced && !is_worker)
			ref_drop(system);
	}
}

static struct left lists_process(struct wr_system *system, bool destructors)
{
	struct wr_waker *waker;
	struct left left = {false, false, false};

	if (wr_load(&system->deferred_frees.count)) {
		(void)wr_waker_enter(system); /* whichever is attached by then stays until leave */
		left = list_process(system);
		waker = wr_load(&system->waker); /* after they were put back: a run that begins later looks */
		/* The loop makes a worker run the destructors. */
		if (left.destructors && !destructors && waker && wr_system_deferred_frees_ready(system))
			waker->kick(waker);
		wr_waker_leave(system);
	}
	if (destructors && wr_system_deferred_frees_ready(system))
		destructors_run(system);
	return left;
}

void wr_deferred_frees_process(struct wr_system *system)
{
	(void)lists_process(system, false);
}

/* The watch may have stopped because it found the list empty while it was taken: restart it. */
void wr_system_run_deferred_frees(struct wr_system *system, bool destructors)
{
	struct left left = lists_process(system, destructors);

	if (left.wanted)
		wr_system_kick(system);
	else if (left.incomplete)
		wr_watch_wake(system);
}

/* A destructor that drops references must not begin anew for each of them. */
static _Thread_local bool collecting;

void wr_system_collect_between_runs(struct wr_system *system)
{
	if (collecting || wr_load(&system->running) || !wr_system_deferred_frees(system))
		return;
	collecting = true;
	wr_system_run_deferred_frees(system, true);
	collecting = false;
}

static bool nothing_is_deferred(void *system)
{
	wr_system_run_deferred_frees(system, true);
	return !wr_system_deferred_frees(system);
}

bool wr_system_wait_deferred_frees(struct wr_system *system, int64_t until)
{
	if (!nothing_is_deferred(system))
		wr_system_sleep_until(system, nothing_is_deferred, system, until);
	return !wr_system_deferred_frees(system);
}

/* Returns true if it is known to be complete by now: then no signal of a fence will come for it. */
static bool entry_note_wanted(struct wr_system *system, const struct wr_deferred_free *entry)
{
	bool complete = true;

	for (size_t i = 0; i < entry->count; i++) {
		weir_fence fence = entry->fences[i];
		weir_stream *stream;

		if (wr_fence_is_promise(fence)) {
			complete &= !wr_promise_kick_at(system, fence);
			continue;
		}
		if (wr_fence_find(system, fence, &stream) || !stream ||
		    fence.value <= wr_load(&stream->completed))
			continue;
		complete = false;
		if (!stream->wanted.value || fence.value < stream->wanted.value)
			stream->wanted = fence;
	}
	return complete;
}

bool wr_deferred_frees_note_wanted(struct wr_system *system)
{
	bool complete = false;

	wr_mutex_lock(&system->deferred_frees.lock);
	for (struct wr_deferred_free *entry = system->deferred_frees.listed.first; entry; entry = entry->next)
		if (entry_wanted(entry))
			complete |= entry_note_wanted(system, entry);
	wr_mutex_unlock(&system->deferred_frees.lock);
	return complete;
}

bool wr_deferred_frees_any_complete(struct wr_system *system)
{
	const struct wr_deferred_free *entry;

	wr_mutex_lock(&system->deferred_frees.lock);
	entry = system->deferred_frees.listed.first;
	while (entry && !entry_known_complete(system, entry))
		entry = entry->next;
	wr_mutex_unlock(&system->deferred_frees.lock);
	return entry;
}

static size_t drop_refs_locked(struct wr_deferred_free *entry)
{
	size_t n = 0;

	for (; entry; entry = entry->next) {
		n += entry->referenced;
		entry->referenced = false;
	}
	return n;
}

void wr_deferred_frees_drop_refs(struct wr_system *system, struct wr_waker *waker)
{
	size_t n;

	wr_mutex_lock(&system->deferred_frees.lock);
	system->deferred_frees.ref_drops++;
	n = drop_refs_locked(system->deferred_frees.listed.first) +
	    drop_refs_locked(system->deferred_frees.ready.first);
	wr_mutex_unlock(&system->deferred_frees.lock);
	while (n--)
		waker->drop(waker);
}
