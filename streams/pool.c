/*
 * What streams are opened from: stream pools, and partitions of a device's multiprocessors.
 *
 * A pool has up to `max` streams of one kind. It counts the streams in use; the streams are in the system's
 * table, and a closed one is reused for the same pool. Partitions are created by the backend; the system owns
 * them and destroys them after its streams.
 */
#include "base/memory.h"
#include "base/stack.h"
#include "base/status.h"
#include "streams/device.h"
#include "streams/system.h"

/* --- stream pools --- */

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

void wr_stream_pool_uncount(struct wr_stream_pool *pool)
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
		wr_stream_pool_uncount(pool);
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
	wr_stack_push(&system->pools, pool, next);
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

/* --- partitions --- */

struct wr_partition {
	struct wr_partition *next;
	void *native;
};

void *wr_partition_native(const struct wr_partition *partition)
{
	return partition ? partition->native : NULL;
}

/* Allocated before the backend is called, so that no partition is lost for lack of memory. */
static bool partitions_make_handles(struct wr_partition **out, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		out[i] = wr_alloc(1, sizeof *out[i]);
		if (!out[i])
			return false;
	}
	return true;
}

static void partitions_free_handles(struct wr_partition **out, size_t count)
{
	for (size_t i = 0; i < count; i++)
		wr_free(out[i]);
}

/* The remainder may be NULL. */
static void partitions_return(struct wr_system *system, struct wr_partition **handles, void *const *natives,
			      size_t count, struct wr_partition **out)
{
	for (size_t i = 0; i < count; i++) {
		handles[i]->native = natives[i];
		out[i] = natives[i] ? handles[i] : NULL;
		if (natives[i])
			wr_stack_push(&system->partitions, handles[i], next);
		else
			wr_free(handles[i]);
	}
}

static weir_status partitions_check_spec(struct wr_system *system, const struct wr_partitions_spec *spec)
{
	if (wr_system_failed(system))
		return wr_system_failure_status(system);
	if (spec->device < 0 || spec->device >= system->devices)
		return wr_fail(WEIR_E_INVALID, "green context pool '%s': device %d: this machine has %d",
			       spec->name, spec->device, system->devices);
	if (!system->backend->partitions_create)
		return wr_fail(WEIR_E_UNSUPPORTED,
			       "green context pool '%s': the %s backend has no partitions", spec->name,
			       system->backend->name);
	return WEIR_OK;
}

weir_status wr_partitions_create(struct wr_system *system, const struct wr_partitions_spec *spec,
				 struct wr_partition **out, uint32_t *sms)
{
	size_t count = spec->count + 1;
	void **natives = wr_alloc(count, sizeof *natives);
	struct wr_partition **handles = wr_alloc(count, sizeof *handles);
	weir_status status = natives && handles ? partitions_check_spec(system, spec) : WEIR_E_NOMEM;

	if (!status && !partitions_make_handles(handles, count))
		status = WEIR_E_NOMEM;
	if (!status)
		status = wr_device_partitions_create(system, spec, natives, sms);
	if (!status)
		partitions_return(system, handles, natives, count, out);
	else if (handles)
		partitions_free_handles(handles, count);
	wr_free(handles);
	wr_free(natives);
	return status;
}

void wr_partitions_finish(struct wr_system *system)
{
	struct wr_partition *partition = wr_load(&system->partitions);

	while (partition) {
		struct wr_partition *next = partition->next;

		wr_device_partition_destroy(system, partition->native);
		wr_free(partition);
		partition = next;
	}
}
