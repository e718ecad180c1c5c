/*
 * NPP on weir's streams: `addc` adds a constant to an image. NPP takes the stream and the properties of the
 * device in a NppStreamContext; start fills in the constant part once.
 */
#include <cuda_runtime_api.h>
#include <nppi_arithmetic_and_logical_operations.h>
#include <weir.h>

#include "frames.h"

struct addc {
	float constant;
	NppStreamContext npp;
};

static const weir_parameter parameters[] = {
	{
		.size = sizeof(weir_parameter),
		.name = "constant",
		.type = WEIR_TYPE_INT,
		.fallback = "100",
		.max = 1 << 20,
		.help = "the constant to add",
	},
	{.name = NULL},
};

static const weir_port inputs[] = {
	{.size = sizeof(weir_port),
	 .name = "in",
	 .kinds = WEIR_KIND_TENSOR,
	 .help = "float32 [side, side] on the device"},
	{.name = NULL},
};

static const weir_port outputs[] = {
	{.size = sizeof(weir_port), .name = "out", .kinds = WEIR_KIND_TENSOR, .help = "in plus the constant"},
	{.name = NULL},
};

static weir_status add_constant(weir_context *context, const struct addc *self, const NppStreamContext *npp,
				const float *from, float *to, int side)
{
	const NppiSize whole = {.width = side, .height = side};
	const int step = side * (int)sizeof *from; /* bytes per row */
	NppStatus status = nppiAddC_32f_C1R_Ctx(from, step, self->constant, to, step, whole, *npp);

	return status == NPP_SUCCESS
		       ? WEIR_OK
		       : weir_context_fail(context, "nppiAddC_32f_C1R_Ctx: NPP status %d", (int)status);
}

static cudaError_t query_device(NppStreamContext *npp, int device)
{
	const struct {
		enum cudaDeviceAttr what;
		int *to;
	} attributes[] = {
		{cudaDevAttrMultiProcessorCount, &npp->nMultiProcessorCount},
		{cudaDevAttrMaxThreadsPerMultiProcessor, &npp->nMaxThreadsPerMultiProcessor},
		{cudaDevAttrMaxThreadsPerBlock, &npp->nMaxThreadsPerBlock},
		{cudaDevAttrComputeCapabilityMajor, &npp->nCudaDevAttrComputeCapabilityMajor},
		{cudaDevAttrComputeCapabilityMinor, &npp->nCudaDevAttrComputeCapabilityMinor},
	};
	int shared = 0;
	cudaError_t error = cudaDeviceGetAttribute(&shared, cudaDevAttrMaxSharedMemoryPerBlock, device);

	for (size_t i = 0; i < sizeof attributes / sizeof *attributes && error == cudaSuccess; i++)
		error = cudaDeviceGetAttribute(attributes[i].to, attributes[i].what, device);
	npp->nCudaDeviceId = device;
	npp->nSharedMemPerBlock = (size_t)shared;
	return error;
}

/* The first call loads kernels, which the driver may have to wait for: do it in start. */
static weir_status warm_up(weir_context *context, const struct addc *self)
{
	enum { SIDE = 128, BYTES = SIDE * SIDE * sizeof(float) };
	float *memory = NULL;
	weir_status status;

	if (cudaMalloc((void **)&memory, BYTES) != cudaSuccess || cudaMemset(memory, 0, BYTES) != cudaSuccess)
		return weir_context_fail(context, "no device memory for the first call");
	status = add_constant(context, self, &self->npp, memory, memory, SIDE);
	if (!status && cudaDeviceSynchronize() != cudaSuccess)
		status = weir_context_fail(context, "nppiAddC failed on device %d",
					   weir_context_device(context));
	cudaFree(memory);
	return status;
}

static weir_status start(weir_context *context, void *state, const weir_values *values)
{
	struct addc *self = state;
	int device = weir_context_device(context);
	cudaError_t error = cudaSetDevice(device);

	*self = (struct addc){.constant = (float)weir_values_int(values, "constant")};
	if (error == cudaSuccess)
		error = query_device(&self->npp, device);
	if (error != cudaSuccess)
		return weir_context_fail(context, "NPP needs a GPU: %s", cudaGetErrorString(error));
	return warm_up(context, self);
}

/* What the work of one tick depends on: the key of its replay, without padding that is not set. */
struct sum {
	const struct addc *self;
	const float *from;
	float *to;
	int64_t side, flags; /* of the stream */
};

/* NPP is given the stream here: in a capture it is another one than in the tick. */
static weir_status enqueue(weir_context *context, weir_stream *stream, void *arg)
{
	const struct sum *sum = arg;
	NppStreamContext npp = sum->self->npp;
	void *native = NULL;
	weir_status status = frames_native(context, stream, &native);

	npp.hStream = (cudaStream_t)native;
	npp.nStreamFlags = (unsigned)sum->flags;
	return status ? status : add_constant(context, sum->self, &npp, sum->from, sum->to, (int)sum->side);
}

/* Before the replay: CUDA refuses most questions about a stream that is captured, and the capture is lost. */
static weir_status query_flags(weir_context *context, int64_t *out)
{
	weir_stream *stream;
	unsigned flags = 0;
	void *native = NULL;
	weir_status status = weir_context_stream(context, &stream);

	if (!status)
		status = frames_native(context, stream, &native);
	if (!status && cudaStreamGetFlags((cudaStream_t)native, &flags) != cudaSuccess)
		status = weir_context_fail(context, "cudaStreamGetFlags failed");
	*out = flags;
	return status;
}

static weir_status compute(weir_context *context, void *state)
{
	weir_message *from = weir_context_message(context, 0, 0), *to = NULL;
	const weir_tensor *tensor = weir_message_tensor(from);
	struct sum sum = {.self = state, .from = weir_message_data(from)};
	weir_status status = frames_check(context, tensor, weir_context_device(context));

	if (!status)
		status = query_flags(context, &sum.flags);
	if (!status)
		status = weir_context_create_tensor(context, tensor, 0, &to);
	if (!status) {
		sum.to = weir_message_data(to);
		sum.side = tensor->shape[0];
		/* Ordered after the producer of the input; the device is the thread's current one. */
		status = weir_context_replay(context, &sum, sizeof sum, enqueue, &sum);
	}
	if (!status)
		return weir_context_emit(context, 0, to);
	weir_message_unref(to);
	return status;
}

static const weir_operator addc = {
	.size = sizeof(weir_operator),
	.name = "addc",
	.help = "adds a constant to an image, by NPP",
	.flags = WEIR_OPERATOR_STREAM,
	.state_size = sizeof(struct addc),
	.parameters = parameters,
	.inputs = inputs,
	.outputs = outputs,
	.start = start,
	.compute = compute,
};

static weir_status add(weir_registry *registry)
{
	return frames_add(registry, &addc);
}

WEIR_PLUGIN(add);
