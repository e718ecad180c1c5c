/* Kernels: functions of the program, which it has added by name. They are constant: no use needs an order. */
#include <stdlib.h>
#include <string.h>

#include "inside.h"

enum { KERNELS = 128 };
static _Atomic(const struct fake_kernel *) kernels[KERNELS];

void fake_kernel_add(const struct fake_kernel *kernel)
{
	for (int i = 0; i < KERNELS; i++) {
		const struct fake_kernel *none = NULL;

		if (atomic_compare_exchange_strong_explicit(&kernels[i], &none, kernel, memory_order_relaxed,
							    memory_order_relaxed) ||
		    none == kernel)
			return;
	}
	fake_problem("more than %d kernels", KERNELS);
}

const struct fake_kernel *fake_kernel_of(const void *handle)
{
	for (int i = 0; i < KERNELS; i++)
		if (handle && fake_get(&kernels[i]) == handle)
			return handle;
	fake_problem("%p is no kernel that was added by fake_kernel_add", handle);
	return NULL;
}

cudaError_t cudaLibraryLoadData(cudaLibrary_t *library, const void *code, enum cudaJitOption *options,
				void **values, unsigned options_count,
				enum cudaLibraryOption *library_options, void **library_values,
				unsigned library_options_count)
{
	cudaError_t error = fake_begin(FAKE_PLAIN);

	(void)code, (void)options, (void)values, (void)options_count;
	(void)library_options, (void)library_values, (void)library_options_count;
	if (!error)
		*library = (cudaLibrary_t)(uintptr_t)kernels;
	return fake_end(error);
}

cudaError_t cudaLibraryGetKernel(cudaKernel_t *out, cudaLibrary_t library, const char *name)
{
	cudaError_t error = fake_begin(FAKE_PLAIN);

	(void)library;
	if (error)
		return fake_end(error);
	for (int i = 0; i < KERNELS; i++) {
		const struct fake_kernel *kernel = fake_get(&kernels[i]);

		if (kernel && !strcmp(kernel->name, name)) {
			*out = (cudaKernel_t)(uintptr_t)kernel;
			return fake_end(cudaSuccess);
		}
	}
	fake_problem("no form for the fake of the kernel '%s': fake_kernel_add", name);
	return fake_end(cudaErrorSymbolNotFound);
}

static cudaError_t launch(const struct fake_kernel *kernel, struct fake_run run, void **parameters,
			  struct fake_stream *stream)
{
	struct fake_operation *operation;

	if (!kernel || !stream)
		return cudaErrorInvalidResourceHandle;
	operation = fake_operation_new(FAKE_KERNEL);
	operation->run = run;
	operation->run.kernel = kernel;
	for (int i = 0; i < FAKE_PARAMETERS && kernel->sizes[i]; i++) {
		operation->run.parameters[i] = malloc(kernel->sizes[i]);
		if (!operation->run.parameters[i])
			abort();
		memcpy(operation->run.parameters[i], parameters[i], kernel->sizes[i]);
	}
	return fake_enqueue(stream, operation);
}

cudaError_t cudaLaunchKernel(const void *function, dim3 grid, dim3 block, void **parameters, size_t shared,
			     cudaStream_t stream)
{
	cudaError_t error = fake_begin(FAKE_PLAIN);
	const struct fake_run run = {.grid = grid, .block = block, .shared = shared};

	return fake_end(error ? error
			      : launch(fake_kernel_of(function), run, parameters, fake_stream_of(stream)));
}

int fake_launch(void *stream, const struct fake_kernel *kernel, const void *arguments)
{
	void *parameters[] = {(void *)(uintptr_t)arguments};

	fake_kernel_add(kernel);
	return cudaLaunchKernel(kernel, (dim3){1, 1, 1}, (dim3){1, 1, 1}, parameters, 0, stream);
}
