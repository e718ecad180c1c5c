/* Shared by the operators, their kernels and the program. */
#ifndef STREAMS_H
#define STREAMS_H

#include <stdint.h>
#include <weir.h>

/* Arguments of the kernels: copied at the launch, at most WEIR_ARGUMENTS_MAX bytes. */
struct count_up {
	float *to;
	int64_t count;
	float first;
	int64_t duration; /* ns that the kernel runs before it writes */
};

struct scale_add {
	const float *x, *y;
	float *to; /* a * x + y */
	int64_t count;
	float a;
};

struct reverse {
	const float *from;
	float *to;
	int64_t count;
};

#ifdef __cplusplus
extern "C" {
#endif
int count_up_on_cuda(void *native_stream, const void *arguments);
int scale_add_on_cuda(void *native_stream, const void *arguments);
int reverse_on_cuda(void *native_stream, const void *arguments);

/* Adds the operators `numbers`, `combine` and `check`. The plugin calls it when loaded. */
weir_status streams_add(weir_registry *registry);
#ifdef __cplusplus
}
#endif

#endif
