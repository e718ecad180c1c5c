/*
 * Stream pools: streams of one kind, so many at most. The pool counts who has one; the streams themselves lie
 * in the system's table, and one that was given back serves the same pool again.
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

static bool count_in(struct wr_stream_pool *pool)
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

	if (!count_in(pool))
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

static weir_status make_reserved(struct wr_stream_pool *pool)
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

static void own(struct wr_system *system, struct wr_stream_pool *pool)
{
	struct wr_stream_pool *head = wr_load(&system->pools);

	do
		pool->next = head;
	while (!wr_cas(&system->pools, &head, pool));
}

/* Owned even if its streams could not be made: those that were made name it. */
weir_status wr_stream_pool_create(struct wr_system *system, const struct wr_stream_pool_spec *spec,
				  struct wr_stream_pool **out)
{
	struct wr_stream_pool *pool = wr_alloc(1, sizeof *pool);
	weir_status status = WEIR_OK;

	if (!pool)
		return WEIR_E_NOMEM;
	pool->system = system;
	pool->spec = *spec;
	own(system, pool);
	if (spec->reserved)
		status = make_reserved(pool);
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
