/*
 * cuBLAS on weir's streams: `gemm` multiplies a matrix by itself. What allocates or waits (the handle, the
 * workspace, loading the kernel) is done in start; compute only enqueues, so a CUDA graph can replay it.
 */
#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <weir.h>

#include "frames.h"

/*
 * Bytes, as NVIDIA recommends for Hopper. Without a workspace of our own cuBLAS may allocate during a
 * frame.
 */
#define WORKSPACE ((size_t)32 << 20)

struct gemm {
	cublasHandle_t handle;
	void *workspace;
};

static const weir_port inputs[] = {
	{.size = sizeof(weir_port),
	 .name = "in",
	 .kinds = WEIR_KIND_TENSOR,
	 .help = "float32 [side, side] on the device"},
	{.name = NULL},
};

static const weir_port outputs[] = {
	{.size = sizeof(weir_port), .name = "out", .kinds = WEIR_KIND_TENSOR, .help = "in times in"},
	{.name = NULL},
};

static weir_status succeeded(weir_context *context, const char *what, cublasStatus_t status)
{
	if (status == CUBLAS_STATUS_SUCCESS)
		return WEIR_OK;
	return weir_context_fail(context, "%s: %s", what, cublasGetStatusString(status));
}

/*
 * cuBLAS is column-major, weir row-major: cuBLAS squares the transposed matrix, which read by rows is the
 * square again. cublasSetStream resets the workspace to cuBLAS's own, so ours is set after it.
 */
static weir_status square(weir_context *context, const struct gemm *self, void *native, const float *from,
			  float *to, int side)
{
	const float one = 1, zero = 0;
	weir_status status =
		succeeded(context, "cublasSetStream", cublasSetStream(self->handle, (cudaStream_t)native));

	if (!status)
		status = succeeded(context, "cublasSetWorkspace",
				   cublasSetWorkspace(self->handle, self->workspace, WORKSPACE));
	if (!status)
		status = succeeded(context, "cublasSgemm",
				   cublasSgemm(self->handle, CUBLAS_OP_N, CUBLAS_OP_N, side, side, side, &one,
					       from, side, from, side, &zero, to, side));
	return status;
}

/* The first call of a kind loads kernels, which the driver may have to wait for: do it in start. */
static weir_status warm_up(weir_context *context, const struct gemm *self)
{
	enum { SIDE = 128, BYTES = 2 * SIDE * SIDE * sizeof(float) };
	float *memory = NULL;
	weir_status status;

	if (cudaMalloc((void **)&memory, BYTES) != cudaSuccess || cudaMemset(memory, 0, BYTES) != cudaSuccess)
		return weir_context_fail(context, "no device memory for the first call");
	status = square(context, self, NULL, memory, memory + SIDE * SIDE, SIDE);
	if (!status && cudaDeviceSynchronize() != cudaSuccess)
		status = weir_context_fail(context, "cublasSgemm failed on device %d",
					   weir_context_device(context));
	cudaFree(memory);
	return status;
}

static void stop(weir_context *context, void *state)
{
	struct gemm *self = state;

	(void)context;
	if (self->handle)
		cublasDestroy(self->handle);
	cudaFree(self->workspace);
	*self = (struct gemm){0};
}

static weir_status make_handle(weir_context *context, struct gemm *self)
{
	cudaError_t error = cudaSetDevice(weir_context_device(context));
	weir_status status;

	if (error == cudaSuccess)
		error = cudaMalloc(&self->workspace, WORKSPACE);
	if (error != cudaSuccess)
		return weir_context_fail(context, "cuBLAS needs a GPU: %s", cudaGetErrorString(error));
	status = succeeded(context, "cublasCreate", cublasCreate(&self->handle));
	return status ? status : warm_up(context, self);
}

static weir_status start(weir_context *context, void *state, const weir_values *values)
{
	weir_status status = make_handle(context, state);

	(void)values;
	if (status)
		stop(context, state); /* weir calls stop only after a successful start */
	return status;
}

/* What the work of one tick depends on: the key of its replay, without padding that is not set. */
struct product {
	const struct gemm *self;
	const float *from;
	float *to;
	int64_t side;
};

/* The handle is given the stream here: in a capture it is another one than in the tick. */
static weir_status enqueue(weir_context *context, weir_stream *stream, void *arg)
{
	const struct product *product = arg;
	void *native = NULL;
	weir_status status = frames_native(context, stream, &native);

	return status ? status
		      : square(context, product->self, native, product->from, product->to,
			       (int)product->side);
}

static weir_status compute(weir_context *context, void *state)
{
	weir_message *from = weir_context_message(context, 0, 0), *to = NULL;
	const weir_tensor *tensor = weir_message_tensor(from);
	struct product product = {.self = state, .from = weir_message_data(from)};
	weir_status status = frames_check(context, tensor, weir_context_device(context));

	if (!status)
		status = weir_context_create_tensor(context, tensor, 0, &to);
	if (!status) {
		product.to = weir_message_data(to);
		product.side = tensor->shape[0];
		/* Ordered after the producer of the input; the device is the thread's current one. */
		status = weir_context_replay(context, &product, sizeof product, enqueue, &product);
	}
	if (!status)
		return weir_context_emit(context, 0, to);
	weir_message_unref(to);
	return status;
}

static const weir_operator gemm = {
	.size = sizeof(weir_operator),
	.name = "gemm",
	.help = "a matrix times itself, by cuBLAS",
	.flags = WEIR_OPERATOR_STREAM,
	.state_size = sizeof(struct gemm),
	.inputs = inputs,
	.outputs = outputs,
	.start = start,
	.compute = compute,
	.stop = stop,
};

static weir_status add(weir_registry *registry)
{
	return frames_add(registry, &gemm);
}

WEIR_PLUGIN(add);
