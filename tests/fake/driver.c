/* Functions of the driver: found by name, through the runtime. */
#include <cudaTypedefs.h>
#include <string.h>

#include "inside.h"

static CUresult ended(cudaError_t error)
{
	return (CUresult)fake_end(error);
}

/* --- flags --- */

static cudaError_t write_value(CUstream handle, CUdeviceptr at, uint32_t value)
{
	struct fake_stream *stream;
	struct fake_operation *operation;
	enum fake_memory kind;
	int device;

	if (!fake_has_context())
		return cudaErrorDeviceUninitialized;
	stream = fake_stream_of((cudaStream_t)handle);
	if (!stream)
		return cudaErrorInvalidResourceHandle;
	if (!fake_memory_of((void *)(uintptr_t)at, sizeof value, "writes", &kind, &device) ||
	    kind == FAKE_PAGEABLE || at % sizeof value)
		return cudaErrorInvalidValue;
	operation = fake_operation_new(FAKE_WRITE);
	operation->write.word = (_Atomic uint32_t *)(uintptr_t)at;
	operation->write.value = value;
	return fake_enqueue(stream, operation);
}

static CUresult CUDAAPI fake_write(CUstream stream, CUdeviceptr at, cuuint32_t value, unsigned flags)
{
	cudaError_t error =
		fake_begin_call("cuStreamWriteValue32", __builtin_return_address(0), FAKE_NO_CONTEXT);

	(void)flags;
	return ended(error ? error : write_value(stream, at, value));
}

/* --- memory --- */

/* Those that weir asks for. All memory of the fake that is a device's is as of cudaMalloc. */
static CUresult CUDAAPI fake_attributes(unsigned count, CUpointer_attribute *attributes, void **out,
					CUdeviceptr at)
{
	cudaError_t error =
		fake_begin_call("cuPointerGetAttributes", __builtin_return_address(0), FAKE_NO_CONTEXT);
	struct fake_range range = {0};

	if (!error)
		fake_memory_range((void *)(uintptr_t)at, &range);
	for (unsigned i = 0; i < count && !error; i++)
		switch ((int)attributes[i]) {
		case CU_POINTER_ATTRIBUTE_BUFFER_ID:
			memcpy(out[i], &range.id, sizeof range.id);
			break;
		case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
			memcpy(out[i], &range.at, sizeof range.at);
			break;
		case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
			memcpy(out[i], &range.bytes, sizeof range.bytes);
			break;
		case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
			memcpy(out[i], &(unsigned){range.id != 0}, sizeof(unsigned));
			break;
		default:
			error = cudaErrorInvalidValue;
		}
	return ended(error);
}

/* --- green contexts: multiprocessors are given out in groups of GRAIN, as by compute capability 9.0 --- */

enum { GRAIN = 8, RANGES = 64 };

/* Multiprocessors first to first + count, in a resource: the first one is in its padding. */
static unsigned first_of(const CUdevResource *resource)
{
	unsigned first;

	memcpy(&first, resource->_internal_padding, sizeof first);
	return first;
}

static void make_resource(CUdevResource *out, unsigned first, unsigned count)
{
	memset(out, 0, sizeof *out);
	out->type = CU_DEV_RESOURCE_TYPE_SM;
	out->sm.smCount = count;
	memcpy(out->_internal_padding, &first, sizeof first);
}

static CUresult CUDAAPI fake_device_get(CUdevice *out, int ordinal)
{
	cudaError_t error = fake_begin_call("cuDeviceGet", __builtin_return_address(0), FAKE_NO_CONTEXT);

	if (!error && (ordinal < 0 || ordinal >= fake_devices()))
		error = cudaErrorInvalidDevice;
	if (!error)
		*out = ordinal;
	return ended(error);
}

static CUresult CUDAAPI fake_resource(CUdevice device, CUdevResource *out, CUdevResourceType type)
{
	cudaError_t error =
		fake_begin_call("cuDeviceGetDevResource", __builtin_return_address(0), FAKE_NO_CONTEXT);

	(void)device;
	if (!error && type != CU_DEV_RESOURCE_TYPE_SM)
		error = cudaErrorInvalidValue;
	if (!error)
		make_resource(out, 0, FAKE_SMS);
	return ended(error);
}

static CUresult CUDAAPI fake_split(CUdevResource *out, unsigned *groups, const CUdevResource *input,
				   CUdevResource *rest, unsigned flags, unsigned least)
{
	cudaError_t error =
		fake_begin_call("cuDevSmResourceSplitByCount", __builtin_return_address(0), FAKE_NO_CONTEXT);
	unsigned size = (least + GRAIN - 1) / GRAIN * GRAIN, most, count;

	(void)flags;
	if (error)
		return ended(error);
	most = input->sm.smCount / (size ? size : GRAIN);
	count = out && *groups < most ? *groups : most;
	for (unsigned i = 0; out && i < count; i++)
		make_resource(&out[i], first_of(input) + i * size, size);
	if (rest)
		make_resource(rest, first_of(input) + count * size, input->sm.smCount - count * size);
	*groups = count;
	return ended(cudaSuccess);
}

/* A description: a set of multiprocessors. CUDA has no call that frees one. */
struct fake_description {
	uint32_t sms[FAKE_SM_WORDS];
};

static CUresult CUDAAPI fake_describe(CUdevResourceDesc *out, CUdevResource *resources, unsigned count)
{
	static _Thread_local struct fake_description
		descriptions[RANGES]; /* each serves until as many were made */
	static _Thread_local unsigned next;
	cudaError_t error =
		fake_begin_call("cuDevResourceGenerateDesc", __builtin_return_address(0), FAKE_NO_CONTEXT);
	struct fake_description *description = &descriptions[next++ % RANGES];

	memset(description, 0, sizeof *description);
	for (unsigned i = 0; !error && i < count; i++)
		for (unsigned sm = first_of(&resources[i]);
		     sm < first_of(&resources[i]) + resources[i].sm.smCount; sm++)
			description->sms[sm / 32] |= 1u << sm % 32;
	if (!error)
		*out = (CUdevResourceDesc)description;
	return ended(error);
}

static CUresult CUDAAPI fake_green_create(CUgreenCtx *out, CUdevResourceDesc description, CUdevice device,
					  unsigned flags)
{
	cudaError_t error = fake_begin_call("cuGreenCtxCreate", __builtin_return_address(0), FAKE_NO_CONTEXT);
	struct fake_green *green = error ? NULL : fake_object_new(FAKE_GREEN);

	(void)flags;
	if (!green)
		return ended(error ? error : cudaErrorMemoryAllocation);
	fake_set(&green->device, device);
	for (int i = 0; i < FAKE_SM_WORDS; i++)
		fake_set(&green->sms[i], ((struct fake_description *)description)->sms[i]);
	*out = fake_handle_of(FAKE_GREEN, green);
	return ended(cudaSuccess);
}

static CUresult CUDAAPI fake_green_destroy(CUgreenCtx handle)
{
	cudaError_t error = fake_begin_call("cuGreenCtxDestroy", __builtin_return_address(0),
					    FAKE_NO_CONTEXT | FAKE_ENDS);
	struct fake_green *green = error ? NULL : fake_object_of(FAKE_GREEN, handle);

	if (green)
		fake_object_end(&green->object, FAKE_GONE);
	return ended(error || green ? error : cudaErrorInvalidResourceHandle);
}

static CUresult CUDAAPI fake_green_stream(CUstream *out, CUgreenCtx handle, unsigned flags, int priority)
{
	cudaError_t error =
		fake_begin_call("cuGreenCtxStreamCreate", __builtin_return_address(0), FAKE_NO_CONTEXT);
	struct fake_green *green = error ? NULL : fake_object_of(FAKE_GREEN, handle);
	struct fake_stream *stream;
	uint32_t sms[FAKE_SM_WORDS];

	(void)priority;
	if (!green || flags != CU_STREAM_NON_BLOCKING)
		return ended(error ? error : cudaErrorInvalidValue);
	for (int i = 0; i < FAKE_SM_WORDS; i++)
		sms[i] = fake_get(&green->sms[i]);
	stream = fake_stream_new(fake_get(&green->device), false, sms);
	if (stream)
		*out = (CUstream)fake_handle_of(FAKE_STREAM, stream);
	return ended(stream ? cudaSuccess : cudaErrorMemoryAllocation);
}

/* --- kernels of nodes --- */

static CUresult CUDAAPI fake_kernel_node(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS *out)
{
	cudaError_t error =
		fake_begin_call("cuGraphKernelNodeGetParams", __builtin_return_address(0), FAKE_NO_CONTEXT);
	const struct fake_operation *operation = ((const struct fake_node *)node)->operation;

	if (!error && operation->work != FAKE_KERNEL)
		error = cudaErrorInvalidValue;
	if (error)
		return ended(error);
	memset(out, 0, sizeof *out);
	out->kern = (CUkernel)(uintptr_t)operation->run.kernel;
	out->gridDimX = operation->run.grid.x;
	out->gridDimY = operation->run.grid.y;
	out->gridDimZ = operation->run.grid.z;
	out->blockDimX = operation->run.block.x;
	out->blockDimY = operation->run.block.y;
	out->blockDimZ = operation->run.block.z;
	out->sharedMemBytes = (unsigned)operation->run.shared;
	out->kernelParams = (void **)(uintptr_t)operation->run.parameters;
	return ended(cudaSuccess);
}

static CUresult CUDAAPI fake_kernel_parameter(CUkernel handle, size_t index, size_t *offset, size_t *size)
{
	cudaError_t error =
		fake_begin_call("cuKernelGetParamInfo", __builtin_return_address(0), FAKE_NO_CONTEXT);
	const struct fake_kernel *kernel = error ? NULL : fake_kernel_of(handle);

	if (!kernel || index >= FAKE_PARAMETERS || !kernel->sizes[index])
		return ended(error ? error : cudaErrorInvalidValue);
	*offset = 0;
	*size = kernel->sizes[index];
	return ended(cudaSuccess);
}

static CUresult CUDAAPI fake_kernel_name(const char **out, CUkernel handle)
{
	cudaError_t error = fake_begin_call("cuKernelGetName", __builtin_return_address(0), FAKE_NO_CONTEXT);
	const struct fake_kernel *kernel = error ? NULL : fake_kernel_of(handle);

	if (kernel)
		*out = kernel->name;
	return ended(error || kernel ? error : cudaErrorInvalidResourceHandle);
}

/* The fake has kernels of libraries alone, no functions of modules. */
static CUresult CUDAAPI fake_function_parameter(CUfunction function, size_t index, size_t *offset,
						size_t *size)
{
	(void)function, (void)index, (void)offset, (void)size;
	return CUDA_ERROR_INVALID_HANDLE;
}

static CUresult CUDAAPI fake_function_name(const char **out, CUfunction function)
{
	(void)out, (void)function;
	return CUDA_ERROR_INVALID_HANDLE;
}

/* --- finding them: through their types in the toolkit's headers, which so check the signatures --- */

union function {
	PFN_cuStreamWriteValue32_v11070 write;
	PFN_cuPointerGetAttributes_v7000 attributes;
	PFN_cuDeviceGet_v2000 device;
	PFN_cuDeviceGetDevResource_v12040 resource;
	PFN_cuDevSmResourceSplitByCount_v12040 split;
	PFN_cuDevResourceGenerateDesc_v12040 describe;
	PFN_cuGreenCtxCreate_v12040 green_create;
	PFN_cuGreenCtxDestroy_v12040 green_destroy;
	PFN_cuGreenCtxStreamCreate_v12050 green_stream;
	PFN_cuGraphKernelNodeGetParams_v12000 kernel_node;
	PFN_cuFuncGetParamInfo_v12040 function_parameter;
	PFN_cuKernelGetParamInfo_v12040 kernel_parameter;
	PFN_cuFuncGetName_v12030 function_name;
	PFN_cuKernelGetName_v12030 kernel_name;
	void *any;
};

static const struct {
	const char *name;
	union function function;
} functions[] = {
	{"cuStreamWriteValue32", {.write = fake_write}},
	{"cuPointerGetAttributes", {.attributes = fake_attributes}},
	{"cuDeviceGet", {.device = fake_device_get}},
	{"cuDeviceGetDevResource", {.resource = fake_resource}},
	{"cuDevSmResourceSplitByCount", {.split = fake_split}},
	{"cuDevResourceGenerateDesc", {.describe = fake_describe}},
	{"cuGreenCtxCreate", {.green_create = fake_green_create}},
	{"cuGreenCtxDestroy", {.green_destroy = fake_green_destroy}},
	{"cuGreenCtxStreamCreate", {.green_stream = fake_green_stream}},
	{"cuGraphKernelNodeGetParams", {.kernel_node = fake_kernel_node}},
	{"cuFuncGetParamInfo", {.function_parameter = fake_function_parameter}},
	{"cuKernelGetParamInfo", {.kernel_parameter = fake_kernel_parameter}},
	{"cuFuncGetName", {.function_name = fake_function_name}},
	{"cuKernelGetName", {.kernel_name = fake_kernel_name}},
};

cudaError_t cudaGetDriverEntryPointByVersion(const char *name, void **out, unsigned version,
					     unsigned long long flags,
					     enum cudaDriverEntryPointQueryResult *found)
{
	cudaError_t error = fake_begin(FAKE_NO_CONTEXT);

	(void)version, (void)flags;
	*out = NULL;
	*found = cudaDriverEntryPointSymbolNotFound;
	if (error)
		return fake_end(error);
	for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
		if (!strcmp(functions[i].name, name)) {
			*out = functions[i].function.any;
			*found = cudaDriverEntryPointSuccess;
			return fake_end(cudaSuccess);
		}
	fake_problem("the fake has no function of the driver '%s': add it to driver.c", name);
	return fake_end(cudaSuccess);
}
