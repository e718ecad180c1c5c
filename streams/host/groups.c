/*
 * Host pools: one with a few workers per device, and one per partition with as many workers as the partition
 * has SMs; and creating and destroying the fifo that owns them.
 *
 * A pool lives as long as the fifo. In a simulation all workers are started at once, since only a fiber can
 * start a fiber; threads are started when the first stream of their pool is opened.
 */
#include "streams/host/runners.h"

#include "base/memory.h"
#include "base/status.h"

enum { RUNNERS_MAX = 64, PARTITION_MAX = 1024 };

static weir_status pool_start_locked(struct wr_host_pool *pool)
{
	weir_status status = WEIR_OK;

	for (unsigned i = 0; i < pool->size && !status; i++) {
		status = wr_host_worker_start(pool, i);
		pool->started += !status;
	}
	return pool->started ? WEIR_OK : status; /* fewer are enough */
}

weir_status wr_host_pool_start(struct wr_host_pool *pool)
{
	weir_status status = WEIR_OK;

	wr_mutex_lock(&pool->fifo->lock);
	if (!pool->started)
		status = pool_start_locked(pool);
	wr_mutex_unlock(&pool->fifo->lock);
	return status;
}

static weir_status pool_make(struct wr_fifo *fifo, unsigned size, unsigned room, struct wr_host_pool **out)
{
	struct wr_host_pool *pool = wr_alloc(1, sizeof *pool + room * sizeof *pool->runners);

	if (!pool)
		return WEIR_E_NOMEM;
	pool->fifo = fifo;
	pool->size = size;
	pool->room = room;
	pool->ready_end = &pool->ready;
	pool->standing.fifo = fifo;
	pool->standing.group = pool;
	wr_mutex_lock(&fifo->lock);
	pool->next = fifo->groups;
	fifo->groups = pool;
	wr_mutex_unlock(&fifo->lock);
	*out = pool;
	return fifo->rules ? wr_host_pool_start(pool) : WEIR_OK;
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

weir_status wr_fifo_split(struct wr_fifo *fifo, const struct wr_partitions_spec *spec, void **out,
			  uint32_t *sms)
{
	struct wr_host_pool *remainder = fifo->device[spec->device];
	weir_status status = partitions_check(spec);

	for (size_t i = 0; i < spec->count && !status; i++) {
		struct wr_host_pool *pool = NULL;

		status = pool_make(fifo, spec->sizes[i], spec->sizes[i], &pool);
		out[i] = pool;
		sms[i] = spec->sizes[i];
	}
	out[spec->count] = remainder;
	sms[spec->count] = remainder->size;
	return status;
}

/* --- life --- */

static weir_status device_pools_make(struct wr_fifo *fifo, int devices, unsigned size)
{
	unsigned room = fifo->rules ? RUNNERS_MAX : size;
	weir_status status = WEIR_OK;

	for (; fifo->devices < devices && !status; fifo->devices++)
		status = pool_make(fifo, size, room, &fifo->device[fifo->devices]);
	return status ? status : wr_host_pool_start(fifo->device[0]);
}

weir_status wr_fifo_create(struct wr_fifo **out, int devices, unsigned workers,
			   const struct wr_fifo_rules *rules, void *arg)
{
	struct wr_fifo *fifo;
	weir_status status;

	if (devices < 1 || devices > WR_FIFO_DEVICES)
		return wr_fail(WEIR_E_INVALID, "%d devices: ask for 1 to %d", devices, WR_FIFO_DEVICES);
	fifo = wr_alloc(1, sizeof *fifo);
	if (!fifo)
		return WEIR_E_NOMEM;
	fifo->rules = rules;
	fifo->arg = arg;
	status = wr_mutex_init(&fifo->lock);
	if (!status)
		status = wr_cond_init(&fifo->returned);
	if (status) {
		wr_mutex_finish(&fifo->lock);
		wr_free(fifo);
		return status;
	}
	status = device_pools_make(fifo, devices, workers < RUNNERS_MAX ? workers : RUNNERS_MAX);
	if (status) {
		wr_fifo_destroy(fifo);
		return status;
	}
	*out = fifo;
	return WEIR_OK;
}

static void workers_join(struct wr_fifo *fifo)
{
	wr_mutex_lock(&fifo->lock);
	fifo->stopping = true;
	wr_mutex_unlock(&fifo->lock);
	for (struct wr_host_pool *pool = fifo->groups; pool; pool = pool->next)
		for (unsigned i = 0; i < pool->started; i++)
			wr_unpark(&pool->runners[i].parker);
	for (struct wr_host_pool *pool = fifo->groups; pool; pool = pool->next)
		for (unsigned i = 0; i < pool->started; i++)
			wr_thread_join(&pool->runners[i].thread);
}

void wr_fifo_destroy(struct wr_fifo *fifo)
{
	if (!fifo)
		return;
	workers_join(fifo);
	for (struct wr_host_pool *pool = fifo->groups, *next; pool; pool = next) {
		next = pool->next;
		wr_tasks_free(pool->standing.first);
		wr_free(pool);
	}
	wr_tasks_free(fifo->spare);
	wr_cond_finish(&fifo->returned);
	wr_mutex_finish(&fifo->lock);
	wr_free(fifo);
}

int wr_fifo_devices(const struct wr_fifo *fifo)
{
	return fifo->devices;
}
