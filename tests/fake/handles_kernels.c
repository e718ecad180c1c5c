/* The kernels of tests/cuda/handles.cu for the fake. */
#include <cuda_runtime_api.h>
#include <stdatomic.h>

#include "fake.h"
#include "tests/cuda/handles.h"

enum { STEP = 20000 }; /* ns */

static int fill(void *const *parameters, const struct fake_place *place)
{
	const struct handles_fill *work = parameters[0];

	(void)place;
	weir_sleep(work->ns);
	for (int64_t i = 0; i < work->count; i++)
		atomic_store_explicit((_Atomic uint32_t *)&work->to[i], work->first + (uint32_t)i,
				      memory_order_relaxed); /* the host may look meanwhile */
	return 0;
}

static int triple(void *const *parameters, const struct fake_place *place)
{
	const struct handles_triple *work = parameters[0];

	(void)place;
	for (int64_t i = 0; i < work->count; i++)
		work->to[i] = 3 * work->from[i] + 1;
	return 0;
}

static int stay(void *const *parameters, const struct fake_place *place)
{
	const struct handles_stay *work = parameters[0];
	const _Atomic uint32_t *flag = (const _Atomic uint32_t *)work->flag;
	(void)place;
	for (int64_t left = work->most; !atomic_load(flag) && left > 0; left -= STEP)
		weir_sleep(STEP);
	atomic_store((_Atomic uint32_t *)work->told, atomic_load(flag) ? 1 : 2);
	return 0;
}

static const struct fake_kernel fill_kernel = {"fill", fill, {sizeof(struct handles_fill)}};
static const struct fake_kernel triple_kernel = {"triple", triple, {sizeof(struct handles_triple)}};
static const struct fake_kernel stay_kernel = {"stay", stay, {sizeof(struct handles_stay)}};

int handles_fill_cuda(void *native, const void *arguments)
{
	return fake_launch(native, &fill_kernel, arguments);
}

int handles_triple_cuda(void *native, const void *arguments)
{
	return fake_launch(native, &triple_kernel, arguments);
}

int handles_stay_cuda(void *native, const void *arguments)
{
	return fake_launch(native, &stay_kernel, arguments);
}

int handles_load(int device)
{
	return cudaSetDevice(device);
}
