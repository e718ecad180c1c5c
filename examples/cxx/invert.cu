/*
 * A plugin in one CUDA C++ file: `invert` makes negatives. The kernel has two forms: the host form runs on
 * the backends `host` and `sim`, the CUDA form on a GPU. nvcc compiles C++17, which has no designated
 * initializers, so a function fills the tables.
 */
#include <weir.h>

namespace
{

struct work {
	const uint8_t *from;
	uint8_t *to;
	int64_t count;
};

int on_host(const void *arguments)
{
	const work *todo = static_cast<const work *>(arguments);

	for (int64_t i = 0; i < todo->count; i++)
		todo->to[i] = static_cast<uint8_t>(255 - todo->from[i]);
	return 0;
}

__global__ void invert(work todo)
{
	int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;

	if (i < todo.count)
		todo.to[i] = static_cast<uint8_t>(255 - todo.from[i]);
}

int on_cuda(void *native, const void *arguments)
{
	const work *todo = static_cast<const work *>(arguments);
	const unsigned threads = 256;

	invert<<<static_cast<unsigned>((todo->count + threads - 1) / threads), threads, 0,
		 static_cast<cudaStream_t>(native)>>>(*todo);
	return cudaGetLastError();
}

weir_status launch(weir_context *context, const weir_message *from, weir_message *to, weir_stream *stream)
{
	static const weir_kernel kernel = {sizeof(weir_kernel), "invert", on_host, on_cuda};
	work todo = {static_cast<const uint8_t *>(weir_message_data(from)),
		     static_cast<uint8_t *>(weir_message_data(to)),
		     static_cast<int64_t>(weir_message_size(from))};
	weir_status status = weir_stream_launch(stream, &kernel, &todo, sizeof todo);

	return status ? weir_context_fail(context, "%s", weir_last_error()) : WEIR_OK;
}

weir_status compute(weir_context *context, void *)
{
	weir_message *from = weir_context_message(context, 0, 0), *to = nullptr;
	const weir_tensor *picture = weir_message_tensor(from);
	weir_stream *stream = nullptr;
	weir_status status = weir_context_stream(context, &stream);

	if (status)
		return status;
	if (picture->code != 1 || picture->bits != 8 || picture->device != weir_stream_device(stream))
		return weir_context_fail(
			context,
			"input 'in' expects a tensor of uint8 on the device: put an 'upload' before it");
	status = weir_context_create_tensor(context, picture, 0, &to);
	if (!status)
		status = launch(context, from, to, stream);
	if (!status)
		return weir_context_emit(context, 0, to);
	weir_message_unref(to);
	return status;
}

weir_port inputs[2], outputs[2];
weir_operator table;

weir_status add(weir_registry *registry)
{
	inputs[0].size = outputs[0].size = sizeof(weir_port);
	inputs[0].name = "in";
	outputs[0].name = "out";
	inputs[0].kinds = outputs[0].kinds = WEIR_KIND_TENSOR;
	inputs[0].help = "uint8, any dense shape, on the device";
	outputs[0].help = "its negative";
	table.size = sizeof table;
	table.name = "invert";
	table.help = "the negative of a uint8 picture";
	table.flags = WEIR_OPERATOR_STREAM;
	table.inputs = inputs;
	table.outputs = outputs;
	table.compute = compute;
	return weir_registry_add_operator(registry, &table);
}

} // namespace

WEIR_PLUGIN(add);
