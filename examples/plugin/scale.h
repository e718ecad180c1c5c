/* Shared by the C and the CUDA side of the operator. */
#ifndef SCALE_H
#define SCALE_H

#include <stdint.h>

#ifdef __CUDACC__
#define SCALE_BOTH __host__ __device__
#else
#define SCALE_BOTH
#endif

/* A kernel's arguments: copied at the launch, at most WEIR_ARGUMENTS_MAX bytes. */
struct scale_arguments {
	const uint8_t *from;
	uint8_t *to;
	int64_t count; /* bytes of each */
	int32_t percent;
};

/* In integers, halves rounded up: gives the same bytes on the host and on the device. */
static inline SCALE_BOTH uint8_t scale_one(uint8_t value, int32_t percent)
{
	int32_t scaled = (value * percent + 50) / 100;

	return (uint8_t)(scaled < 255 ? scaled : 255);
}

#ifdef __cplusplus
extern "C"
#endif
	int
	scale_on_cuda(void *native_stream, const void *arguments);

#endif
