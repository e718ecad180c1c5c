/*
 * The host as a device: the executor, its pools and their memory. There is one pool with a few workers per
 * device, and one per partition with as many workers as the partition has SMs. Device memory is host memory.
 *
 * A pool lives as long as the executor. In a simulation all workers are started at once, since only a fiber
 * can start a fiber; threads are started when the first stream of their pool is opened.
 */
#include "streams/host/host.h"

#include <stdio.h>

#include "base/memory.h"
#include "base/status.h"

enum { THREADS = 4, ALIGNMENT = 256, WORKERS_MAX = 64, PARTITION_MAX = 1024 };

weir_status wr_host_pool_start(struct wr_host_pool *pool)
{
	weir_status status = WEIR_OK;
	bool some;

	wr_spin_lock(&pool->executor->lock);
	some = pool->started; /* fewer are enough, and a later caller may be no fiber */
	for (unsigned i = 0; !some && i < pool->size && !status; i++) {
		status = wr_host_worker_start(pool, i);
		pool->started += !status;
	}
	if (pool->started)
		status = WEIR_OK;
	wr_spin_unlock(&pool->executor->lock);
	return status;
}

static weir_status pool_make(struct wr_executor *executor, unsigned size, unsigned room,
			     struct wr_host_pool **out)
{
	struct wr_host_pool *pool = wr_alloc(1, sizeof *pool + room * sizeof *pool->workers);

	if (!pool)
		return WEIR_E_NOMEM;
	pool->executor = executor;
	pool->size = size;
	pool->room = room;
	pool->ready_end = &pool->ready;
	pool->default_stream.executor = executor;
	pool->default_stream.pool = pool;
	wr_spin_lock(&executor->lock);
	pool->next = executor->pools;
	executor->pools = pool;
	wr_spin_unlock(&executor->lock);
	*out = pool;
	return executor->rules ? wr_host_pool_start(pool) : WEIR_OK;
}

/* Sizes that a device would refuse are refused here too, and sizes that make no sense as threads. */
static weir_status partitions_check(const struct wr_partitions_spec *spec)
{
	for (size_t i = 0; i < spec->count; i++) {
		if (!spec->sizes[i] || spec->sizes[i] < spec->minimum)
			return wr_fail(WEIR_E_INVALID,
				       "green_context_pool '%s': partition %zu has %u SMs, the least is %u",
				       spec->name, i, spec->sizes[i], spec->minimum ? spec->minimum : 1);
		if (spec->sizes[i] > PARTITION_MAX)
			return wr_fail(WEIR_E_INVALID,
				       "green_context_pool '%s': partition %zu wants %u SMs; "
				       "on the host an SM is a thread, at most %d",
				       spec->name, i, spec->sizes[i], PARTITION_MAX);
	}
	return WEIR_OK;
}

weir_status wr_host_partitions_create(void *self, const struct wr_partitions_spec *spec, void **out,
				      uint32_t *sms)
{
	struct wr_executor *executor = self;
	struct wr_host_pool *remainder = executor->device[spec->device];
	weir_status status = partitions_check(spec);

	for (size_t i = 0; i < spec->count && !status; i++) {
		struct wr_host_pool *pool = NULL;

		status = pool_make(executor, spec->sizes[i], spec->sizes[i], &pool);
		out[i] = pool;
		sms[i] = spec->sizes[i];
	}
	out[spec->count] = remainder;
	sms[spec->count] = remainder->size;
	return status;
}

/* The partition's workers end with the device. */
void wr_host_partition_destroy(void *self, void *partition)
{
	(void)self;
	(void)partition;
}

/* --- life --- */

static weir_status device_pools_make(struct wr_executor *executor, int devices, unsigned size)
{
	unsigned room = executor->rules ? WORKERS_MAX : size;
	weir_status status = WEIR_OK;

	for (; executor->devices < devices && !status; executor->devices++)
		status = pool_make(executor, size, room, &executor->device[executor->devices]);
	return status ? status : wr_host_pool_start(executor->device[0]);
}

weir_status wr_executor_create(struct wr_executor **out, int devices, unsigned workers, bool strict,
			       const struct wr_executor_rules *rules, void *arg)
{
	struct wr_executor *executor;
	weir_status status;

	if (devices < 1 || devices > WR_EXECUTOR_DEVICES)
		return wr_fail(WEIR_E_INVALID, "%d devices: ask for 1 to %d", devices, WR_EXECUTOR_DEVICES);
	executor = wr_alloc(1, sizeof *executor);
	if (!executor)
		return WEIR_E_NOMEM;
	executor->rules = rules;
	executor->arg = arg;
	executor->strict = strict;
	executor->memory = WR_CLOSED_MEMORY;
	status = strict && !rules ? wr_closed_init_by_thread(&executor->memory) : WEIR_OK;
	if (status) {
		wr_closed_finish(&executor->memory);
		wr_free(executor);
		return status;
	}
	status = device_pools_make(executor, devices, workers < WORKERS_MAX ? workers : WORKERS_MAX);
	if (status) {
		wr_executor_destroy(executor);
		return status;
	}
	*out = executor;
	return WEIR_OK;
}

static void workers_join(struct wr_executor *executor)
{
	wr_spin_lock(&executor->lock);
	executor->stopping = true;
	wr_spin_unlock(&executor->lock);
	for (struct wr_host_pool *pool = executor->pools; pool; pool = pool->next)
		for (unsigned i = 0; i < pool->started; i++)
			wr_unpark(&pool->workers[i].parker);
	for (struct wr_host_pool *pool = executor->pools; pool; pool = pool->next)
		for (unsigned i = 0; i < pool->started; i++)
			wr_thread_join(&pool->workers[i].thread);
}

void wr_executor_destroy(struct wr_executor *executor)
{
	if (!executor)
		return;
	workers_join(executor);
	for (struct wr_host_pool *pool = executor->pools, *next; pool; pool = next) {
		next = pool->next;
		wr_tasks_free(pool->default_stream.first);
		wr_free(pool);
	}
	wr_tasks_free(executor->spare);
	wr_closed_finish(&executor->memory);
	wr_free(executor);
}

/* --- memory --- */

weir_status wr_host_alloc(void *self, int device, size_t bytes, void **out)
{
	struct wr_executor *executor = self;
	void *memory;

	if (executor->strict && device >= 0)
		return wr_closed_alloc(&executor->memory, bytes, out);
	memory = wr_alloc_aligned(ALIGNMENT, bytes);
	if (!memory)
		return wr_fail(WEIR_E_NOMEM, "no %zu bytes of host memory", bytes);
	*out = memory;
	return WEIR_OK;
}

void wr_host_release(void *self, int device, void *memory)
{
	struct wr_executor *executor = self;

	if (executor->strict && device >= 0)
		wr_closed_free(&executor->memory, memory);
	else
		wr_free(memory);
}

bool wr_host_is_closed(void *self, const void *address)
{
	const struct wr_executor *executor = self;

	return executor->strict && wr_closed_holds(&executor->memory, address);
}

int wr_host_devices(void *self)
{
	return ((const struct wr_executor *)self)->devices;
}

/* --- the table of host --- */

static weir_status host_open(void **out, const struct wr_system_options *options, char *where, size_t room)
{
	unsigned threads = options->host_threads ? options->host_threads : THREADS;
	int devices = options->devices ? options->devices : 1;
	struct wr_executor *executor;
	weir_status status = wr_executor_create(&executor, devices, threads, options->strict, NULL, NULL);

	if (status)
		return status;
	if (devices > 1)
		snprintf(where, room, "host: %d devices", devices);
	else
		snprintf(where, room, "host");
	*out = executor;
	return WEIR_OK;
}

static void host_close(void *self)
{
	wr_executor_destroy(self);
}

const struct wr_backend wr_backend_host = {
	.name = "host",
	.kind = WEIR_BACKEND_HOST,
	.open = host_open,
	.close = host_close,
	.partitions_create = wr_host_partitions_create,
	.signal = wr_host_signal,
	WR_HOST_ENTRIES,
};
