/* Functions of the driver API: looking them up, and writing a flag in stream order. */
#include <stddef.h>
#include <string.h>

#include "base/status.h"
#include "streams/cuda/cuda.h"

static const struct {
	const char *name;
	unsigned version; /* the CUDA version that defined this signature */
	size_t place;
} functions[] = {
	{"cuStreamWriteValue32", 11070, offsetof(struct wr_cuda_driver, write)},
	{"cuPointerGetAttributes", 7000, offsetof(struct wr_cuda_driver, attributes)},
	{"cuDeviceGet", 2000, offsetof(struct wr_cuda_driver, device)},
	{"cuDeviceGetDevResource", 12040, offsetof(struct wr_cuda_driver, resource)},
	{"cuDevSmResourceSplitByCount", 12040, offsetof(struct wr_cuda_driver, split)},
	{"cuDevResourceGenerateDesc", 12040, offsetof(struct wr_cuda_driver, describe)},
	{"cuGreenCtxCreate", 12040, offsetof(struct wr_cuda_driver, green_create)},
	{"cuGreenCtxDestroy", 12040, offsetof(struct wr_cuda_driver, green_destroy)},
	{"cuGreenCtxStreamCreate", 12050, offsetof(struct wr_cuda_driver, green_stream)},
	{"cuGraphKernelNodeGetParams", 12000, offsetof(struct wr_cuda_driver, kernel_node)},
	{"cuFuncGetParamInfo", 12040, offsetof(struct wr_cuda_driver, function_parameter)},
	{"cuKernelGetParamInfo", 12040, offsetof(struct wr_cuda_driver, kernel_parameter)},
	{"cuFuncGetName", 12030, offsetof(struct wr_cuda_driver, function_name)},
	{"cuKernelGetName", 12030, offsetof(struct wr_cuda_driver, kernel_name)},
};

void wr_cuda_driver_find(struct wr_cuda_driver *driver)
{
	cudaDriverGetVersion(&driver->version);
	for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
		enum cudaDriverEntryPointQueryResult found;
		void *function = NULL;

		if (cudaGetDriverEntryPointByVersion(functions[i].name, &function, functions[i].version,
						     cudaEnableLegacyStream, &found) ||
		    found != cudaDriverEntryPointSuccess)
			function = NULL;
		memcpy((char *)driver + functions[i].place, &function, sizeof function);
	}
	cudaGetLastError();
}

/*
 * The default flags make the write follow all earlier writes of the stream in the host's view. Pinned memory
 * has the same address on host and device.
 */
static cudaError_t word_write(struct wr_cuda *cuda, void *stream, _Atomic uint32_t *word, uint32_t value)
{
	return (cudaError_t)cuda->driver.write(stream, (CUdeviceptr)(uintptr_t)word, value,
					       CU_STREAM_WRITE_VALUE_DEFAULT);
}

weir_status wr_cuda_write_flag(void *self, int device, void *stream, _Atomic uint32_t *word, uint32_t value)
{
	struct wr_cuda *cuda = self;
	struct wr_cuda_scope scope;
	cudaError_t error;
	weir_status status;

	if (!cuda->driver.write)
		return wr_cuda_can_write_flag(self, device);
	scope = wr_cuda_enter(cuda, device);
	error = word_write(cuda, stream, word, value);
	/* no context is current: the thread has made no CUDA call yet, or a user's call unset it */
	if (error == cudaErrorDeviceUninitialized) {
		cudaSetDevice(device);
		error = word_write(cuda, stream, word, value);
	}
	status = wr_cuda_check(cuda, error, "cuStreamWriteValue32");
	wr_cuda_leave(scope);
	return status;
}

/* --- probing for support --- */

static cudaError_t flag_try_on(struct wr_cuda *cuda, cudaStream_t stream, _Atomic uint32_t *word)
{
	cudaError_t error = word_write(cuda, stream, word, 1);

	if (!error)
		error = cudaStreamSynchronize(stream);
	/* some drivers report success and write nothing */
	return error || wr_load(word) == 1 ? error : cudaErrorNotSupported;
}

/* Between enter and leave. */
static cudaError_t flag_try(struct wr_cuda *cuda)
{
	cudaStream_t stream;
	void *memory;
	cudaError_t error = cudaHostAlloc(&memory, sizeof(uint32_t), cudaHostAllocPortable);

	if (error)
		return error;
	memset(memory, 0, sizeof(uint32_t));
	error = cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
	if (!error) {
		error = flag_try_on(cuda, stream, memory);
		cudaStreamDestroy(stream);
	}
	cudaFreeHost(memory);
	return error;
}

static weir_status fail_no_flags(const struct wr_cuda *cuda, int device)
{
	return wr_fail(
		WEIR_E_UNSUPPORTED,
		"cuda: device %d cannot write flags from a stream (driver %d.%d %s): use signal 'callback'",
		device, cuda->driver.version / 1000, cuda->driver.version % 1000 / 10,
		cuda->driver.write ? "refuses cuStreamWriteValue32 there" : "has no cuStreamWriteValue32");
}

static weir_status flag_try_once(struct wr_cuda *cuda, int device)
{
	struct wr_cuda_scope scope = wr_cuda_enter_driver(cuda, device);
	cudaError_t error = flag_try(cuda);
	weir_status status = wr_cuda_check(cuda, error, "cuStreamWriteValue32");

	wr_cuda_leave(scope);
	if (status == WEIR_E_DEVICE || status == WEIR_E_NOMEM)
		return status; /* not an answer about flags */
	wr_store(&cuda->devices[device].writes_flags,
		 status ? WR_CUDA_WRITES_NO_FLAGS : WR_CUDA_WRITES_FLAGS);
	return status ? fail_no_flags(cuda, device) : WEIR_OK;
}

/* Two threads may try at once; both get the same result. */
weir_status wr_cuda_can_write_flag(void *self, int device)
{
	struct wr_cuda *cuda = self;
	weir_status status = wr_cuda_ready(cuda, device);

	if (status)
		return status;
	if (!cuda->driver.write)
		return fail_no_flags(cuda, device);
	switch ((enum wr_cuda_writes_flags)wr_load(&cuda->devices[device].writes_flags)) {
	case WR_CUDA_FLAGS_UNKNOWN:
		break;
	case WR_CUDA_WRITES_FLAGS:
		return WEIR_OK;
	case WR_CUDA_WRITES_NO_FLAGS:
		return fail_no_flags(cuda, device);
	}
	return flag_try_once(cuda, device);
}
