#include "scheduler/pool.h"

#include <assert.h>
#include <string.h>

#include "base/memory.h"
#include "base/status.h"

#define SLAB_LEAST 64u
#define SLAB_MOST  4096u

struct wr_slab {
	struct wr_slab *next;
	size_t count;
	_Alignas(WR_LINE) weir_message messages[];
};

weir_status wr_pool_create(struct wr_pool **out)
{
	struct wr_pool *pool = wr_alloc_aligned(WR_LINE, sizeof(*pool));
	weir_status status;

	if (!pool)
		return WEIR_E_NOMEM;
	status = wr_mutex_init(&pool->lock);
	if (status) {
		wr_free(pool);
		return status;
	}
	*out = pool;
	return WEIR_OK;
}

void wr_pool_mark(struct wr_pool *pool, enum wr_pool_mark mark)
{
	if (!wr_pool_has(pool, mark))
		wr_fetch_or(&pool->marks.bits, mark);
}

void wr_pool_clear(struct wr_pool *pool, enum wr_pool_mark mark)
{
	wr_fetch_and(&pool->marks.bits, ~(uint32_t)mark);
}

void wr_pool_bind(struct wr_pool *pool, struct wr_system *system)
{
	wr_store_release(&pool->system, system);
}

struct wr_system *wr_pool_system(const struct wr_pool *pool)
{
	return wr_load_acquire(&((struct wr_pool *)pool)->system);
}

/* Allocates a slab of n messages and puts all of them into the shared array. */
static weir_status pool_grow_locked(struct wr_pool *pool, size_t n)
{
	struct wr_slab *slab;

	if (wr_grow(&pool->free, &pool->room, pool->total + n, sizeof(*pool->free)))
		return WEIR_E_NOMEM;
	slab = wr_alloc_aligned(WR_LINE, sizeof(*slab) + n * sizeof(weir_message));
	if (!slab)
		return WEIR_E_NOMEM;
	slab->count = n;
	slab->next = pool->slabs;
	pool->slabs = slab;
	pool->total += n;
	for (size_t i = n; i-- > 0;) {
		weir_message *message = &slab->messages[i];

		message->pool = pool;
		message->uses.items = message->few_uses;
		message->producers.items = message->few_producers;
		message->uses.room = message->producers.room = WR_FEW;
		pool->free[pool->count++] = message;
	}
	return WEIR_OK;
}

/* The total doubles, so that a graph with many messages has few slabs. */
static size_t slab_size(size_t total)
{
	return total < SLAB_LEAST ? SLAB_LEAST : total > SLAB_MOST ? SLAB_MOST : total;
}

weir_status wr_pool_reserve(struct wr_pool *pool, size_t messages)
{
	weir_status status = WEIR_OK;

	wr_mutex_lock(&pool->lock);
	if (pool->count < messages)
		status = pool_grow_locked(pool, messages - pool->count);
	wr_mutex_unlock(&pool->lock);
	return status;
}

weir_message *wr_pool_refill(struct wr_pool *pool, struct wr_cache *cache)
{
	weir_message *message = NULL;
	uint32_t n = 0;

	wr_mutex_lock(&pool->lock);
	if (pool->count > 0 || !pool_grow_locked(pool, slab_size(pool->total))) {
		message = pool->free[--pool->count];
		n = !cache ? 0 : pool->count < WR_BATCH ? (uint32_t)pool->count : WR_BATCH;
		pool->count -= n;
		if (n > 0)
			memcpy(cache->free, pool->free + pool->count, n * sizeof(*cache->free));
	}
	if (n > 0)
		wr_count(&cache->count, n);
	wr_mutex_unlock(&pool->lock);
	return message;
}

void wr_pool_spill(struct wr_pool *pool, struct wr_cache *cache, weir_message *message)
{
	wr_mutex_lock(&pool->lock);
	if (cache) {
		memcpy(pool->free + pool->count, cache->free + WR_BATCH, WR_BATCH * sizeof(*cache->free));
		pool->count += WR_BATCH;
		wr_count(&cache->count, -(uint32_t)WR_BATCH);
	}
	pool->free[pool->count++] = message;
	wr_mutex_unlock(&pool->lock);
}

uint64_t wr_pool_live(const struct wr_pool *pool)
{
	struct wr_pool *self = (struct wr_pool *)pool;
	uint64_t live;

	wr_mutex_lock(&self->lock);
	live = self->total - self->count;
	for (unsigned i = 0; i < WR_WORKERS_MAX; i++)
		live -= wr_read(&self->caches[i].count);
	wr_mutex_unlock(&self->lock);
	return live;
}

static void free_grown_fences(const struct wr_fences *fences)
{
	if (fences->room > WR_FEW)
		wr_free(fences->items);
}

void wr_pool_destroy(struct wr_pool *pool)
{
	if (!pool)
		return;
	assert(wr_pool_live(pool) == 0);
	for (struct wr_slab *slab = pool->slabs, *next; slab; slab = next) {
		next = slab->next;
		for (size_t i = 0; i < slab->count; i++) {
			free_grown_fences(&slab->messages[i].uses);
			free_grown_fences(&slab->messages[i].producers);
		}
		wr_free(slab);
	}
	wr_free(pool->free);
	wr_mutex_finish(&pool->lock);
	wr_free(pool);
}
