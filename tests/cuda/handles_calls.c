/* What the operators of handles.c call: kernels, launches on native streams, checks of handles and devices.
 */
#include <cuda_runtime_api.h>
#include <string.h>

#include "handles.h"

/* --- kernels --- */

static int fill_on_host(const void *arguments)
{
	const struct handles_fill *work = arguments;

	weir_sleep(work->ns);
	for (int64_t i = 0; i < work->count; i++)
		work->to[i] = work->first + (uint32_t)i;
	return 0;
}

static int triple_on_host(const void *arguments)
{
	const struct handles_triple *work = arguments;

	for (int64_t i = 0; i < work->count; i++)
		work->to[i] = 3 * work->from[i] + 1;
	return 0;
}

static int stay_on_host(const void *arguments)
{
	const struct handles_stay *work = arguments;
	int64_t left = work->most;

	for (; !__atomic_load_n(work->flag, __ATOMIC_RELAXED) && left > 0; left -= 20000)
		weir_sleep(20000);
	*work->told = left > 0 ? 1 : 2;
	return 0;
}

const weir_kernel handles_fill_kernel = {
	.size = sizeof(weir_kernel), .name = "fill", .host = fill_on_host, .cuda = handles_fill_cuda};
const weir_kernel handles_triple_kernel = {
	.size = sizeof(weir_kernel), .name = "triple", .host = triple_on_host, .cuda = handles_triple_cuda};
const weir_kernel handles_stay_kernel = {
	.size = sizeof(weir_kernel), .name = "stay", .host = stay_on_host, .cuda = handles_stay_cuda};

weir_status handles_failed(weir_context *context, int error, const char *call)
{
	if (!error)
		return WEIR_OK;
	return weir_context_fail(context, "%s: %s (%s)", call, cudaGetErrorString(error),
				 cudaGetErrorName(error));
}

/* On the native stream, if there is one; else by weir_stream_launch. */
weir_status handles_launch(weir_context *context, weir_stream *stream, const weir_kernel *kernel,
			   const void *arguments, size_t bytes)
{
	void *native = weir_stream_native(stream);

	if (!native)
		return weir_stream_launch(stream, kernel, arguments, bytes);
	return handles_failed(context, kernel->cuda(native, arguments), kernel->name);
}

/* --- checks of handles and devices --- */

static weir_status has_handle(weir_context *context, weir_stream *stream)
{
	if (!weir_stream_native(stream))
		return weir_context_fail(context, "stream %llu has no native handle",
					 (unsigned long long)weir_stream_id(stream));
	return WEIR_OK;
}

static weir_status device_is_current(weir_context *context)
{
	int current = -1;
	weir_status status = handles_failed(context, cudaGetDevice(&current), "cudaGetDevice");

	if (!status && current != weir_context_device(context))
		return weir_context_fail(context, "the current device is %d in an entity of device %d",
					 current, weir_context_device(context));
	return status;
}

weir_status handles_look(weir_context *context, weir_stream *stream)
{
	weir_status status = WEIR_OK;

	if (!handles_settings.cuda)
		return WEIR_OK;
	status = device_is_current(context);
	return status ? status : has_handle(context, stream);
}

/* The streams that the messages of input 0 carry. */
weir_status handles_look_at_received(weir_context *context)
{
	weir_stream *streams[4];
	size_t count = weir_context_receive_streams(context, 0, 0, 4, streams);
	weir_status status = WEIR_OK;

	for (size_t i = 0; i < count && i < 4 && !status && handles_settings.cuda; i++)
		status = has_handle(context, streams[i]);
	return status;
}
