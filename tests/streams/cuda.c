/* The rig's kernels for CUDA, as PTX, so that no nvcc is needed. They spin on the device
 * for their duration. */
#include <cuda_runtime_api.h>

#include "rig.h"

static const char ptx[] =
	".version 7.0\n.target sm_70\n.address_size 64\n"
	".visible .entry work(.param .u64 to, .param .u64 ns, .param .u32 value, .param .u32 old)\n{\n"
	"	.reg .u64 %t, %e, %n, %p;\n	.reg .u32 %v, %o, %k;\n	.reg .pred %q;\n"
	"	ld.param.u64 %n, [ns];\n	ld.param.u64 %p, [to];\n"
	"	ld.param.u32 %v, [value];\n	ld.param.u32 %k, [old];\n"
	"	mov.u64 %t, %globaltimer;\n	add.u64 %e, %t, %n;\n"
	"again:\n	mov.u64 %t, %globaltimer;\n	setp.lt.u64 %q, %t, %e;\n	@%q bra again;\n"
	"	ld.volatile.global.u32 %o, [%p];\n	mul.lo.u32 %o, %o, %k;\n	add.u32 %v, %v, %o;\n"
	"	st.volatile.global.u32 [%p], %v;\n	ret;\n}\n"
	".visible .entry meet(.param .u64 met, .param .u64 ns, .param .u32 count)\n{\n"
	"	.reg .u64 %t, %e, %n, %p;\n	.reg .u32 %o, %k;\n	.reg .pred %q;\n"
	"	ld.param.u64 %n, [ns];\n	ld.param.u64 %p, [met];\n	ld.param.u32 %k, [count];\n"
	"	red.global.add.u32 [%p], 1;\n	mov.u64 %t, %globaltimer;\n	add.u64 %e, %t, %n;\n"
	"again:\n	ld.volatile.global.u32 %o, [%p];\n	setp.ge.u32 %q, %o, %k;\n	@%q bra "
	"done;\n"
	"	mov.u64 %t, %globaltimer;\n	setp.lt.u64 %q, %t, %e;\n	@%q bra again;\n"
	"	red.global.add.u32 [%p], -1000;\ndone:\n	ret;\n}\n"
	".visible .entry places(.param .u64 to)\n{\n"
	"	.reg .u64 %t, %e, %p, %d;\n	.reg .u32 %s, %w, %b;\n	.reg .pred %q;\n"
	"	ld.param.u64 %p, [to];\n	mov.u32 %s, %smid;\n"
	"	shr.u32 %w, %s, 5;\n	mul.wide.u32 %d, %w, 4;\n	add.u64 %p, %p, %d;\n"
	"	and.b32 %s, %s, 31;\n	mov.u32 %b, 1;\n	shl.b32 %b, %b, %s;\n"
	"	red.global.or.b32 [%p], %b;\n"
	"	mov.u64 %t, %globaltimer;\n	add.u64 %e, %t, 20000;\n"
	"again:\n	mov.u64 %t, %globaltimer;\n	setp.lt.u64 %q, %t, %e;\n	@%q bra "
	"again;\n	ret;\n}\n";

/* Loaded once for all devices, never unloaded. */
static cudaError_t find_kernel(const char *name, cudaKernel_t *kernel)
{
	static cudaLibrary_t library;
	cudaError_t error = cudaSuccess;

	if (!library)
		error = cudaLibraryLoadData(&library, ptx, NULL, NULL, 0, NULL, NULL, 0);
	return error ? error : cudaLibraryGetKernel(kernel, library, name);
}

static int launch(void *stream, int *to, int64_t ns, int value, int old)
{
	static cudaKernel_t kernel;
	void *parameters[] = {&to, &ns, &value, &old};
	cudaError_t error = kernel ? cudaSuccess : find_kernel("work", &kernel);

	if (!error)
		error = cudaLaunchKernel(kernel, (dim3){1, 1, 1}, (dim3){1, 1, 1}, parameters, 0, stream);
	return error;
}

/* Enough blocks that each multiprocessor the stream may use gets one. */
int rig_cuda_places(void *stream, const void *arguments)
{
	uint32_t *to = *(uint32_t *const *)arguments;
	void *parameters[] = {&to};
	cudaKernel_t kernel;
	cudaError_t error = find_kernel("places", &kernel);

	if (!error)
		error = cudaLaunchKernel(kernel, (dim3){20000, 1, 1}, (dim3){1, 1, 1}, parameters, 0, stream);
	return error;
}

int rig_cuda_store(void *stream, const void *arguments)
{
	const struct rig_work *work = arguments;

	return launch(stream, work->cell, work->ns, work->value, 0);
}

int rig_cuda_add(void *stream, const void *arguments)
{
	const struct rig_work *work = arguments;

	return launch(stream, work->cell, work->ns, work->value, 1);
}

int rig_cuda_meet(void *stream, const void *arguments)
{
	const struct rig_work *work = arguments;
	int *met = work->cell, count = work->value;
	int64_t ns = work->ns;
	void *parameters[] = {&met, &ns, &count};
	cudaKernel_t kernel;
	cudaError_t error = find_kernel("meet", &kernel);

	if (!error)
		error = cudaLaunchKernel(kernel, (dim3){1, 1, 1}, (dim3){1, 1, 1}, parameters, 0, stream);
	return error;
}

bool rig_cuda_capture(void *stream, bool begin)
{
	cudaGraph_t graph = NULL;
	cudaError_t error = begin ? cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal)
				  : cudaStreamEndCapture(stream, &graph);

	if (graph)
		cudaGraphDestroy(graph);
	return !error;
}

/* A store to NULL. */
int rig_cuda_break(void *stream, const void *arguments)
{
	(void)arguments;
	return launch(stream, NULL, 0, 1, 0);
}
