/*
 * Makes messages: takes one from the pool and adds the payload and, for a tensor, a copy of its description.
 */
#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "scheduler/pool.h"
#include "scheduler/tensor.h"

static weir_message *message_new(struct wr_pool *pool, unsigned kind)
{
	weir_message *message = wr_pool_get(pool);

	if (!message)
		return NULL;
	wr_store_relaxed(&message->references, 1); /* no other thread has it yet */
	message->kind = (uint8_t)kind;
	message->payload = WR_PAYLOAD_NONE;
	wr_store_relaxed(&message->delivered, false);
	message->data = NULL;
	return message;
}

/* Allocates pinned or device memory from the system; without a system, host memory. */
static weir_status allocate_payload(weir_message *message, int device, size_t bytes)
{
	struct wr_system *system = wr_pool_system(message->pool);
	weir_status status = WEIR_OK;

	if (system) {
		status = wr_system_alloc(system, device, bytes, &message->data);
		message->system = system;
		message->payload = WR_PAYLOAD_SYSTEM;
	} else if (device != WEIR_HOST) {
		status = wr_fail(WEIR_E_INVALID,
				 "tensor: no device %d before a scheduler was created: "
				 "use WEIR_HOST",
				 device);
	} else {
		message->data = wr_alloc_aligned(WR_LINE, bytes);
		message->payload = WR_PAYLOAD_OWN;
		status = message->data ? WEIR_OK : WEIR_E_NOMEM;
	}
	message->size = bytes;
	if (status)
		message->payload = WR_PAYLOAD_NONE;
	return status;
}

/* Stores a new message in *out, or returns it to the pool if status is a failure. */
static weir_status message_hand_out(weir_message **out, weir_message *message, weir_status status)
{
	if (status)
		wr_pool_put(message->pool, message);
	else
		*out = message;
	return status;
}

weir_status wr_message_empty(weir_message **out, struct wr_pool *pool)
{
	weir_message *message = message_new(pool, WEIR_EMPTY);

	if (!message)
		return WEIR_E_NOMEM;
	*out = message;
	return WEIR_OK;
}

weir_status wr_message_bytes(weir_message **out, struct wr_pool *pool, size_t bytes)
{
	weir_message *message = message_new(pool, WEIR_BYTES);

	if (!message)
		return WEIR_E_NOMEM;
	if (bytes > WR_SMALL)
		return message_hand_out(out, message, allocate_payload(message, WEIR_HOST, bytes));
	message->payload = WR_PAYLOAD_INLINE;
	message->data = message->small;
	message->size = bytes;
	return message_hand_out(out, message, WEIR_OK);
}

/* Copies the description, with shape and strides, into the message. */
static void message_describe(weir_message *message, const weir_tensor *tensor, int device,
			     const int64_t *strides)
{
	size_t n = (size_t)tensor->dimensions * sizeof(*strides);

	message->of.tensor = *tensor;
	message->of.tensor.size = sizeof(weir_tensor);
	message->of.tensor.device = device;
	message->of.tensor.data = message->data;
	message->of.tensor.lanes = tensor->lanes ? tensor->lanes : 1;
	message->of.tensor.shape = message->of.shape;
	message->of.tensor.strides = message->of.strides;
	if (n > 0) {
		memcpy(message->of.shape, tensor->shape, n);
		memcpy(message->of.strides, strides, n);
	}
}

weir_status wr_message_tensor(weir_message **out, struct wr_pool *pool, const weir_tensor *like, int device)
{
	int64_t strides[WEIR_DIMENSIONS];
	size_t bytes;
	weir_message *message;
	weir_status status = wr_tensor_measure(like, true, strides, &bytes);

	if (status)
		return status;
	message = message_new(pool, WEIR_TENSOR);
	if (!message)
		return WEIR_E_NOMEM;
	message->size = 0;
	if (bytes > 0)
		status = allocate_payload(message, device, bytes);
	message_describe(message, like, device, strides);
	return message_hand_out(out, message, status);
}

static weir_status check_wrapped(struct wr_pool *pool, const weir_tensor *tensor, size_t bytes)
{
	struct wr_system *system = wr_pool_system(pool);

	if (!tensor->data && bytes > 0)
		return wr_fail(WEIR_E_INVALID, "tensor: data is NULL for %zu bytes", bytes);
	if (tensor->device < WEIR_HOST || (system && tensor->device >= wr_system_devices(system)))
		return wr_fail(WEIR_E_INVALID, "tensor: there is no device %d", (int)tensor->device);
	return WEIR_OK;
}

static void message_set_destroy(weir_message *message, void (*destroy)(void *), void *arg)
{
	message->payload = destroy ? WR_PAYLOAD_DESTROY : WR_PAYLOAD_NONE;
	message->destroy = destroy;
	message->arg = arg;
}

weir_status wr_message_wrap(weir_message **out, struct wr_pool *pool, const weir_tensor *tensor,
			    void (*destroy)(void *), void *arg)
{
	int64_t strides[WEIR_DIMENSIONS];
	size_t bytes;
	weir_message *message;
	weir_status status = wr_tensor_measure(tensor, false, strides, &bytes);

	if (!status)
		status = check_wrapped(pool, tensor, bytes);
	if (status)
		return status;
	message = message_new(pool, WEIR_TENSOR);
	if (!message)
		return WEIR_E_NOMEM;
	message->data = tensor->data;
	message->size = bytes;
	message_set_destroy(message, destroy, arg);
	message_describe(message, tensor, tensor->device, strides);
	return message_hand_out(out, message, WEIR_OK);
}

weir_status wr_message_user(weir_message **out, struct wr_pool *pool, void *pointer, void (*destroy)(void *))
{
	weir_message *message = message_new(pool, WEIR_USER);

	if (!message)
		return WEIR_E_NOMEM;
	message->data = pointer;
	message_set_destroy(message, destroy, pointer);
	return message_hand_out(out, message, WEIR_OK);
}

/* --- public calls --- */

weir_status weir_message_empty(weir_message **out, weir_graph *graph)
{
	return wr_message_empty(out, wr_graph_pool(graph));
}

weir_status weir_message_bytes(weir_message **out, weir_graph *graph, size_t bytes)
{
	return wr_message_bytes(out, wr_graph_pool(graph), bytes);
}

weir_status weir_message_tensor_new(weir_message **out, weir_graph *graph, const weir_tensor *like)
{
	return wr_message_tensor(out, wr_graph_pool(graph), like, like->device);
}

weir_status weir_message_wrap(weir_message **out, weir_graph *graph, const weir_tensor *tensor,
			      void (*destroy)(void *), void *arg)
{
	return wr_message_wrap(out, wr_graph_pool(graph), tensor, destroy, arg);
}

weir_status weir_message_user(weir_message **out, weir_graph *graph, void *pointer, void (*destroy)(void *))
{
	return wr_message_user(out, wr_graph_pool(graph), pointer, destroy);
}
