/*
 * Green contexts: disjoint partitions of a device's multiprocessors (SMs).
 *
 * SMs are given out in grains, the smallest group that a split yields (8 on compute capability 9.0). The
 * device is split once, into as many grains as all partitions together need, and a partition is a context
 * over some of them: resources of one split may be joined, but not split again. A partition that needs more
 * than the grains left, but not more than the SMs left, also gets the rest that fills no grain.
 */
#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "streams/cuda/cuda.h"

struct pool {
	const struct wr_cuda_driver *driver;
	const struct wr_partitions_spec *spec;
	CUdevice device;
	CUdevResource whole, rest; /* rest: the SMs that were not split off */
	CUdevResource *grains;     /* split off, in order; then the rest, if a partition uses it */
	unsigned grain, most;      /* SMs in a grain; grains of the device */
	unsigned *counts;          /* grains of each partition; the rest counts as one */
	unsigned used;             /* grains */
	bool rest_used;
	const char *call; /* the call that failed with `error` */
	CUresult error;
};

static bool call_failed(struct pool *pool, CUresult error, const char *call)
{
	pool->error = error;
	pool->call = call;
	return error != CUDA_SUCCESS;
}

/* --- measuring --- */

static void pool_measure(struct pool *pool)
{
	const struct wr_cuda_driver *driver = pool->driver;
	CUdevResource one;
	unsigned groups = 1;

	if (call_failed(pool, driver->device(&pool->device, pool->spec->device), "cuDeviceGet") ||
	    call_failed(pool, driver->resource(pool->device, &pool->whole, CU_DEV_RESOURCE_TYPE_SM),
			"cuDeviceGetDevResource") ||
	    call_failed(pool, driver->split(&one, &groups, &pool->whole, NULL, 0, 1),
			"cuDevSmResourceSplitByCount"))
		return;
	pool->grain = groups && one.sm.smCount ? one.sm.smCount : pool->whole.sm.smCount;
	call_failed(pool, driver->split(NULL, &pool->most, &pool->whole, NULL, 0, pool->grain),
		    "cuDevSmResourceSplitByCount");
}

/* --- assigning grains --- */

static weir_status fail_too_large(const struct pool *pool, size_t i, unsigned left)
{
	return wr_fail(WEIR_E_INVALID,
		       "green_context_pool '%s': partition %zu wants %u SMs, but only %u of device %d's %u "
		       "are left; sizes there are multiples of %u",
		       pool->spec->name, i, pool->spec->sizes[i], left, pool->spec->device,
		       pool->whole.sm.smCount, pool->grain);
}

static weir_status fail_too_small(const struct pool *pool, size_t i)
{
	const struct wr_partitions_spec *spec = pool->spec;

	return wr_fail(WEIR_E_INVALID,
		       "green_context_pool '%s': partition %zu has %u SMs, the least is %u (of device %d's "
		       "%u; sizes there are multiples of %u)",
		       spec->name, i, spec->sizes[i], spec->minimum ? spec->minimum : 1, spec->device,
		       pool->whole.sm.smCount, pool->grain);
}

static weir_status partition_place(struct pool *pool, size_t i)
{
	unsigned size = pool->spec->sizes[i], all = pool->whole.sm.smCount;
	unsigned left = pool->rest_used ? 0 : all - pool->used * pool->grain;
	unsigned count = size / pool->grain + (size % pool->grain != 0);

	if (!size || size < pool->spec->minimum)
		return fail_too_small(pool, i);
	if (size > left)
		return fail_too_large(pool, i, left);
	if (count > pool->most - pool->used) {
		count = pool->most - pool->used;
		pool->rest_used = true;
	}
	pool->used += count;
	pool->counts[i] = count + (pool->rest_used ? 1 : 0);
	return WEIR_OK;
}

static weir_status partitions_place(struct pool *pool)
{
	weir_status status = WEIR_OK;

	for (size_t i = 0; i < pool->spec->count && !status; i++)
		status = partition_place(pool, i);
	return status;
}

/* --- creating the contexts --- */

static void pool_split(struct pool *pool)
{
	unsigned groups = pool->used;

	if (!groups) {
		pool->rest = pool->whole;
	} else {
		if (call_failed(pool,
				pool->driver->split(pool->grains, &groups, &pool->whole, &pool->rest, 0,
						    pool->grain),
				"cuDevSmResourceSplitByCount"))
			return;
		if (groups < pool->used)
			call_failed(pool, CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION,
				    "cuDevSmResourceSplitByCount");
	}
	if (pool->rest_used)
		pool->grains[pool->used] = pool->rest;
}

static void green_context_make(struct pool *pool, CUdevResource *resources, unsigned count, void **out,
			       uint32_t *sms)
{
	CUdevResourceDesc description;
	CUgreenCtx context;

	if (call_failed(pool, pool->driver->describe(&description, resources, count),
			"cuDevResourceGenerateDesc") ||
	    call_failed(pool,
			pool->driver->green_create(&context, description, pool->device,
						   CU_GREEN_CTX_DEFAULT_STREAM),
			"cuGreenCtxCreate"))
		return;
	*out = context;
	*sms = 0;
	for (unsigned i = 0; i < count; i++)
		*sms += resources[i].sm.smCount;
}

/* A rest that is too small for a context of its own counts as no remainder. */
static void remainder_make(struct pool *pool, void **out, uint32_t *sms)
{
	bool any = !pool->rest_used && pool->rest.type == CU_DEV_RESOURCE_TYPE_SM && pool->rest.sm.smCount;

	*out = NULL;
	*sms = 0;
	if (!any)
		return;
	green_context_make(pool, &pool->rest, 1, out, sms);
	if (pool->error && pool->rest.sm.smCount < pool->grain)
		pool->error = CUDA_SUCCESS;
}

static void partitions_make(struct pool *pool, void **out, uint32_t *sms)
{
	size_t count = pool->spec->count, made = 0;
	unsigned at = 0;

	pool_split(pool);
	for (; made < count && !pool->error; made++) {
		green_context_make(pool, pool->grains + at, pool->counts[made], &out[made], &sms[made]);
		at += pool->counts[made];
	}
	if (!pool->error)
		remainder_make(pool, &out[count], &sms[count]);
	else if (made)
		made--; /* the one that failed */
	for (size_t i = 0; pool->error && i < made; i++)
		pool->driver->green_destroy(out[i]);
}

/* Between enter and leave. */
static weir_status pool_divide(struct wr_cuda *cuda, struct pool *pool, void **out, uint32_t *sms)
{
	weir_status status;

	pool_measure(pool);
	if (pool->error)
		return wr_cuda_check(cuda, (cudaError_t)pool->error, pool->call);
	status = partitions_place(pool);
	if (status)
		return status;
	pool->grains = wr_alloc(pool->used + 1, sizeof *pool->grains);
	if (!pool->grains)
		return WEIR_E_NOMEM;
	partitions_make(pool, out, sms);
	return wr_cuda_check(cuda, (cudaError_t)pool->error, pool->call);
}

/* --- the table --- */

static weir_status fail_no_green(const struct wr_cuda *cuda, const char *name)
{
	return wr_fail(WEIR_E_UNSUPPORTED,
		       "green_context_pool '%s': driver %d.%d has no green contexts; use 12.5 or later", name,
		       cuda->driver.version / 1000, cuda->driver.version % 1000 / 10);
}

static bool has_green(const struct wr_cuda_driver *driver)
{
	return driver->device && driver->resource && driver->split && driver->describe &&
	       driver->green_create && driver->green_destroy && driver->green_stream;
}

weir_status wr_cuda_partitions_create(void *self, const struct wr_partitions_spec *spec, void **out,
				      uint32_t *sms)
{
	struct wr_cuda *cuda = self;
	struct pool pool = {.driver = &cuda->driver, .spec = spec};
	weir_status status = wr_cuda_ready(cuda, spec->device);

	if (status)
		return status;
	if (!has_green(&cuda->driver))
		return fail_no_green(cuda, spec->name);
	pool.counts = wr_alloc(spec->count + 1, sizeof *pool.counts);
	if (!pool.counts)
		return WEIR_E_NOMEM;
	struct wr_cuda_scope scope = wr_cuda_enter_driver(cuda, spec->device);
	status = pool_divide(cuda, &pool, out, sms);
	wr_cuda_leave(scope);
	wr_free(pool.grains);
	wr_free(pool.counts);
	return status;
}

void wr_cuda_partition_destroy(void *self, void *partition)
{
	struct wr_cuda *cuda = self;

	if (wr_cuda_lost(cuda))
		return;
	struct wr_cuda_scope scope = wr_cuda_enter(cuda, -1);
	cuda->driver.green_destroy(partition);
	wr_cuda_leave(scope);
}

/*
 * CUDA allows one thread at a time here. A spin instead of a lock: the
 * driver may block (S11), and streams are rarely created at once.
 */
static CUresult green_stream_make(struct wr_cuda *cuda, CUstream *stream, CUgreenCtx context, int priority)
{
	CUresult error;

	wr_spin_lock(&cuda->creating_green_stream);
	error = cuda->driver.green_stream(stream, context, CU_STREAM_NON_BLOCKING, priority);
	wr_spin_unlock(&cuda->creating_green_stream);
	return error;
}

/* The driver clamps a priority outside the device's range. */
weir_status wr_cuda_green_stream(struct wr_cuda *cuda, int device, unsigned flags, int priority,
				 void *partition, void **out)
{
	CUstream stream = NULL;
	weir_status status;

	if (flags & WR_STREAM_BLOCKING)
		return wr_fail(
			WEIR_E_INVALID,
			"the streams of a green context are always non-blocking: remove flag 'blocking'");
	struct wr_cuda_scope scope = wr_cuda_enter_driver(cuda, device);
	status = wr_cuda_check(cuda, (cudaError_t)green_stream_make(cuda, &stream, partition, priority),
			       "cuGreenCtxStreamCreate");
	wr_cuda_leave(scope);
	if (!status)
		*out = stream;
	return status;
}
