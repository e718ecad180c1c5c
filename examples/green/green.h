/* What the C and the CUDA side share. */
#ifndef GREEN_H
#define GREEN_H

#include <stdint.h>

/* What the host form of the kernel writes: it runs on no multiprocessor. */
#define NOWHERE UINT32_MAX

struct note {
	uint32_t *to; /* one number a block: the multiprocessor that it ran on */
	int64_t blocks;
	int64_t duration; /* ns that a block takes */
};

#ifdef __cplusplus
extern "C"
#endif
	int
	note_on_cuda(void *native_stream, const void *arguments);

#endif
