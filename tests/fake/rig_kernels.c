/* The kernels of tests/streams/cuda.c for the fake. */
#include <cuda_runtime_api.h>
#include <stdatomic.h>

#include "base/clock.h"
#include "fake.h"
#include "weir.h"

#define ARGUMENT(type, i) (*(type *)parameters[i])

static int work(void *const *parameters, const struct fake_place *place)
{
	unsigned *to = ARGUMENT(unsigned *, 0);

	(void)place;
	weir_sleep(ARGUMENT(int64_t, 1));
	if (!to)
		return cudaErrorIllegalAddress;
	*to = ARGUMENT(unsigned, 2) + *to * ARGUMENT(unsigned, 3);
	return 0;
}

static int meet(void *const *parameters, const struct fake_place *place)
{
	_Atomic int *met = ARGUMENT(_Atomic int *, 0);
	int64_t until = wr_now() + ARGUMENT(int64_t, 1);

	(void)place;
	atomic_fetch_add(met, 1); /* orders those that meet, as on a device */
	while (atomic_load(met) < ARGUMENT(int, 2)) {
		if (wr_now() < until) {
			weir_sleep(100000);
			continue;
		}
		atomic_fetch_sub(met, 1000);
		break;
	}
	return 0;
}

static int places(void *const *parameters, const struct fake_place *place)
{
	for (int i = 0; i < FAKE_SM_WORDS; i++)
		ARGUMENT(uint32_t *, 0)[i] |= place->sms[i];
	return 0;
}

static const struct fake_kernel kernels[] = {
	{"work", work, {sizeof(void *), sizeof(int64_t), sizeof(int), sizeof(int)}},
	{"meet", meet, {sizeof(void *), sizeof(int64_t), sizeof(int)}},
	{"places", places, {sizeof(void *)}},
};

__attribute__((constructor)) static void add_kernels(void)
{
	for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++)
		fake_kernel_add(&kernels[i]);
}
