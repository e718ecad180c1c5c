/*
 * Stream pools: up to `max` streams of one kind. The pool counts the streams in use; the streams are in the
 * system's table, and a closed one is reused for the same pool.
 */
#include "base/memory.h"
#include "base/status.h"
#include "streams/system.h"

struct wr_stream_pool {
	struct wr_stream_pool *next;
	struct wr_system *system;
	struct wr_stream_pool_spec spec;
	_Atomic uint32_t taken;
};

static bool pool_count_in(struct wr_stream_pool *pool)
{
	uint32_t taken = wr_load(&pool->taken);

	do
		if (pool->spec.max && taken >= pool->spec.max)
			return false;
	while (!wr_cas(&pool->taken, &taken, taken + 1));
	return true;
}

void wr_stream_pool_gave_back(struct wr_stream_pool *pool)
{
	wr_fetch_sub(&pool->taken, 1);
}

weir_status wr_stream_pool_take(struct wr_stream_pool *pool, const char *owner, weir_stream **out)
{
	weir_status status;

	if (!pool_count_in(pool))
		return wr_fail(WEIR_E_BUSY,
			       "stream pool '%s' is exhausted: of %u stream%s none is left; raise max_size",
			       pool->spec.name, pool->spec.max, pool->spec.max == 1 ? "" : "s");
	status = wr_stream_open_in(pool->system, &pool->spec.streams, pool, owner, out);
	if (status)
		wr_stream_pool_gave_back(pool);
	return status;
}

size_t wr_stream_pool_taken(const struct wr_stream_pool *pool)
{
	return wr_load(&((struct wr_stream_pool *)pool)->taken);
}

static weir_status pool_open_reserved(struct wr_stream_pool *pool)
{
	uint32_t most = pool->spec.max, want = pool->spec.reserved, made = 0;
	uint32_t count = most && want > most ? most : want;
	weir_stream **streams = wr_alloc(count, sizeof *streams);
	weir_status status = streams ? WEIR_OK : WEIR_E_NOMEM;

	for (; !status && made < count; made += !status)
		status = wr_stream_pool_take(pool, pool->spec.name, &streams[made]);
	for (uint32_t i = 0; i < made; i++)
		wr_stream_close(streams[i]);
	wr_free(streams);
	return status;
}

static void system_own_pool(struct wr_system *system, struct wr_stream_pool *pool)
{
	struct wr_stream_pool *head = wr_load(&system->pools);

	do
		pool->next = head;
	while (!wr_cas(&system->pools, &head, pool));
}

/* The system owns the pool even if opening its streams failed, since those that were opened refer to it. */
weir_status wr_stream_pool_create(struct wr_system *system, const struct wr_stream_pool_spec *spec,
				  struct wr_stream_pool **out)
{
	struct wr_stream_pool *pool = wr_alloc(1, sizeof *pool);
	weir_status status = WEIR_OK;

	if (!pool)
		return WEIR_E_NOMEM;
	pool->system = system;
	pool->spec = *spec;
	system_own_pool(system, pool);
	if (spec->reserved)
		status = pool_open_reserved(pool);
	if (!status)
		*out = pool;
	return status;
}

void wr_stream_pools_finish(struct wr_system *system)
{
	struct wr_stream_pool *pool = wr_load(&system->pools);

	while (pool) {
		struct wr_stream_pool *next = pool->next;

		wr_free(pool);
		pool = next;
	}
}
