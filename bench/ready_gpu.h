/*
 * What bench/ready itself does with CUDA: the kernel of all its measurements, and the plain ways from its
 * end to the host that weir is compared with. Functions return 0 or a cudaError_t. Thread: any.
 */
#ifndef BENCH_READY_GPU_H
#define BENCH_READY_GPU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * One thread polls the GPU's clock; its last instruction stores `value` at `flag` (pinned host memory;
 * NULL: no store).
 */
struct ready_work {
	int64_t ns; /* at most a second */
	uint32_t *flag;
	uint32_t value;
};

struct ready_gpu {
	char name[256];
	int driver, runtime; /* as CUDA counts: 13000 is 13.0 */
	int processors;
	bool can_write; /* ready_gpu_write works */
};

int ready_gpu_open(struct ready_gpu *out); /* device 0; launches the kernel once to load it */
const char *ready_gpu_text(int error);
int ready_gpu_pinned(void **out, size_t bytes);                     /* zeroed; kept until the process exits */
int ready_gpu_stream(void **out);                                   /* kept likewise */
int ready_gpu_launch(void *stream, const void *work);               /* also the CUDA form of a weir_kernel */
int ready_gpu_call(void *stream, void (*fn)(void *arg), void *arg); /* a host function */
/* Later work on the stream waits for what is on the other one now. */
int ready_gpu_follow(void *stream, void *before);
int ready_gpu_mark(void *stream); /* records an event that no stream waits for */
int ready_gpu_write(void *stream, uint32_t *word, uint32_t value); /* a stream memory operation */
int ready_gpu_wait(void *stream);                                  /* cudaStreamSynchronize */

#ifdef __cplusplus
}
#endif

#endif
