#include "operators/operators.h"
#include "operators/pixel.h"
#include "operators/tensor.h"

static int sobel_on_host(const void *arguments)
{
	const struct wr_sobel_arguments *edges = arguments;
	uint8_t *to = edges->to;

	for (int32_t y = 0; y < edges->image.height; y++)
		for (int32_t x = 0; x < edges->image.width; x++)
			*to++ = wr_pixel_sobel(edges->from, edges->image, x, y);
	return 0;
}

static const weir_kernel kernel = {
	.size = sizeof(weir_kernel),
	.name = "sobel",
	.host = sobel_on_host,
	.cuda = WR_CUDA_FORM(wr_sobel_cuda),
};

static const weir_port outputs[] = {
	{
		.size = sizeof(weir_port),
		.name = "out",
		.kinds = WEIR_KIND_TENSOR,
		.help = "its edges, one channel",
		.dtype = "uint8",
		.place = "device",
		.shape = "[H, W, 1]",
	},
	{.name = NULL},
};

static weir_status alloc_edges(weir_context *context, struct wr_image image, weir_message **out)
{
	const int64_t shape[] = {image.height, image.width, 1};
	const weir_tensor like = {
		.size = sizeof(weir_tensor),
		.dimensions = 3,
		.shape = shape,
		.code = 1,
		.bits = 8,
	};

	return weir_context_create_tensor(context, &like, 0, out);
}

static weir_status sobel_message(weir_context *context, void *state, weir_message *message)
{
	struct wr_sobel_arguments edges;
	weir_message *out = NULL;
	weir_status status = wr_image_on_device(context, message, &edges.image);

	(void)state;
	if (!status)
		status = alloc_edges(context, edges.image, &out);
	if (status)
		return status;
	edges.from = weir_message_data(message);
	edges.to = weir_message_data(out);
	status = wr_launch(context, &kernel, &edges, sizeof edges);
	return wr_message_written(context, out, status);
}

static weir_status sobel_compute(weir_context *context, void *state)
{
	return wr_messages_each(context, state, sobel_message);
}

const weir_operator wr_sobel = {
	.size = sizeof(weir_operator),
	.name = "sobel",
	.help = "edges of a uint8 image (Sobel on its luma), in integers: the same bytes on every backend",
	.flags = WEIR_OPERATOR_STREAM,
	.inputs = wr_image_inputs,
	.outputs = outputs,
	.compute = sobel_compute,
};
