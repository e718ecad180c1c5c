/*
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
#include "streams/device.h"
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

/* Lends the smallest free block that is large enough. */
static bool arena_lend_locked(struct wr_arena *arena, unsigned class, void **out)
{
	struct wr_block *block;

	while (class < WR_MEMORY_CLASSES && !arena->free[class])
		class ++;
	if (class == WR_MEMORY_CLASSES)
		return false;
	block = arena->free[class];
	arena->free[class] = block->next;
	block->class = class;
	block->next = arena->lent;
	arena->lent = block;
	*out = block->data;
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

static bool arena_lend(struct wr_arena *arena, unsigned class, void **out)
{
	bool lent;

	wr_mutex_lock(&arena->lock);
	lent = arena_lend_locked(arena, class, out);
	wr_mutex_unlock(&arena->lock);
	return lent;
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

static size_t arena_bytes(struct wr_arena *arena)
{
	size_t bytes = 0;

	wr_mutex_lock(&arena->lock);
	for (struct wr_chunk *chunk = arena->chunks; chunk; chunk = chunk->next)
		bytes += chunk->size;
	wr_mutex_unlock(&arena->lock);
	return bytes;
}

weir_status wr_system_open_arena(struct wr_system *system, int device)
{
	return wr_system_reserve(system, device, CHUNK);
}

/* Blocks in use count, too: they are freed, and the next run allocates as much again. */
weir_status wr_system_reserve(struct wr_system *system, int device, size_t bytes)
{
	unsigned class;
	weir_status status = arena_check_size(system, device, bytes, &class);

	if (status || arena_bytes(arena_of(system, device)) >= bytes)
		return status;
	return arena_add_chunk(system, device, bytes, 0, &(void *){NULL});
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
