/* Shared by the C and the CUDA side. */
#ifndef GREEN_H
#define GREEN_H

#include <stdint.h>

/* Written by the host form of the kernel, which runs on no multiprocessor. */
#define NOWHERE UINT32_MAX

struct note {
	uint32_t *to; /* one number per block: the multiprocessor that it ran on */
	int64_t blocks;
	int64_t duration; /* ns that a block runs */
};

#ifdef __cplusplus
extern "C"
#endif
	int
	note_on_cuda(void *native_stream, const void *arguments);

#endif
