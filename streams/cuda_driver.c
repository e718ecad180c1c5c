/*
 * What only the driver's own interface has: where its
 * functions are, and the write of a word in stream order.
 */
#include <stddef.h>
#include <string.h>

#include "base/status.h"
#include "streams/cuda.h"

static const struct {
	const char *name;
	unsigned version; /* whose meaning of the name we know */
	size_t place;
} functions[] = {
	{"cuStreamWriteValue32", 11070, offsetof(struct wr_cuda_driver, write)},
	{"cuDeviceGet", 2000, offsetof(struct wr_cuda_driver, device)},
	{"cuDeviceGetDevResource", 12040, offsetof(struct wr_cuda_driver, resource)},
	{"cuDevSmResourceSplitByCount", 12040, offsetof(struct wr_cuda_driver, split)},
	{"cuDevResourceGenerateDesc", 12040, offsetof(struct wr_cuda_driver, describe)},
	{"cuGreenCtxCreate", 12040, offsetof(struct wr_cuda_driver, green_create)},
	{"cuGreenCtxDestroy", 12040, offsetof(struct wr_cuda_driver, green_destroy)},
	{"cuGreenCtxStreamCreate", 12050, offsetof(struct wr_cuda_driver, green_stream)},
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
 * By default the write comes when all earlier ones of its stream are visible to the host; pinned memory has
 * one address on both sides.
 */
static cudaError_t write_word(struct wr_cuda *cuda, void *stream, _Atomic uint32_t *word, uint32_t value)
{
	return (cudaError_t)cuda->driver.write(stream, (CUdeviceptr)(uintptr_t)word, value,
					       CU_STREAM_WRITE_VALUE_DEFAULT);
}

weir_status wr_cuda_write_flag(void *self, int device, void *stream, _Atomic uint32_t *word, uint32_t value)
{
	struct wr_cuda *cuda = self;
	struct wr_cuda_around around;
	cudaError_t error;
	weir_status status;

	if (!cuda->driver.write)
		return wr_cuda_can_write_flag(self, device);
	around = wr_cuda_enter(cuda, device);
	error = write_word(cuda, stream, word, value);
	/* no context is current: this thread has called nothing yet, or a user something */
	if (error == cudaErrorDeviceUninitialized) {
		cudaSetDevice(device);
		error = write_word(cuda, stream, word, value);
	}
	status = wr_cuda_judge(cuda, error, "cuStreamWriteValue32");
	wr_cuda_leave(around);
	return status;
}

/* --- can it? --- */

static cudaError_t try_on(struct wr_cuda *cuda, cudaStream_t stream, _Atomic uint32_t *word)
{
	cudaError_t error = write_word(cuda, stream, word, 1);

	if (!error)
		error = cudaStreamSynchronize(stream);
	/* it said yes, and wrote nothing */
	return error || wr_load(word) == 1 ? error : cudaErrorNotSupported;
}

/* Between enter and leave. */
static cudaError_t try_flag(struct wr_cuda *cuda)
{
	cudaStream_t stream;
	void *memory;
	cudaError_t error = cudaHostAlloc(&memory, sizeof(uint32_t), cudaHostAllocPortable);

	if (error)
		return error;
	memset(memory, 0, sizeof(uint32_t));
	error = cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
	if (!error) {
		error = try_on(cuda, stream, memory);
		cudaStreamDestroy(stream);
	}
	cudaFreeHost(memory);
	return error;
}

static weir_status refuse(const struct wr_cuda *cuda, int device)
{
	return wr_fail(WEIR_E_UNSUPPORTED,
		       "cuda: device %d cannot write flags from a stream (driver %d.%d %s): use signal 'callback'",
		       device, cuda->driver.version / 1000, cuda->driver.version % 1000 / 10,
		       cuda->driver.write ? "refuses cuStreamWriteValue32 there"
					  : "has no cuStreamWriteValue32");
}

static weir_status try_once(struct wr_cuda *cuda, int device)
{
	struct wr_cuda_around around = wr_cuda_enter_driver(cuda, device);
	cudaError_t error = try_flag(cuda);
	weir_status status = wr_cuda_judge(cuda, error, "cuStreamWriteValue32");

	wr_cuda_leave(around);
	if (status == WEIR_E_DEVICE || status == WEIR_E_NOMEM)
		return status; /* says nothing about flags */
	wr_store(&cuda->devices[device].writes_flags, status ? WR_CUDA_WRITES_NO_FLAGS : WR_CUDA_WRITES_FLAGS);
	return status ? refuse(cuda, device) : WEIR_OK;
}

/* Two threads may try at once, and find the same. */
weir_status wr_cuda_can_write_flag(void *self, int device)
{
	struct wr_cuda *cuda = self;
	weir_status status = wr_cuda_ready(cuda, device);

	if (status)
		return status;
	if (!cuda->driver.write)
		return refuse(cuda, device);
	switch ((enum wr_cuda_writes_flags)wr_load(&cuda->devices[device].writes_flags)) {
	case WR_CUDA_FLAGS_UNKNOWN:
		break;
	case WR_CUDA_WRITES_FLAGS:
		return WEIR_OK;
	case WR_CUDA_WRITES_NO_FLAGS:
		return refuse(cuda, device);
	}
	return try_once(cuda, device);
}
