/*
 * The payload of a message: makes messages with bytes, a tensor or the caller's memory as payload, and frees
 * the payload. Tensors are described in DLPack's terms; the message keeps a copy of the description.
 */
#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "base/struct.h"
#include "scheduler/graph.h"
#include "scheduler/memory_pool.h"
#include "scheduler/pool.h"

/* --- tensors: strides and bytes of a shape and type --- */

enum { CODE_INT = 0, CODE_UINT = 1, CODE_FLOAT = 2, CODE_BFLOAT = 4 };

static bool known_type(const weir_tensor *tensor)
{
	switch (tensor->bits) {
	case 8:
		return tensor->code == CODE_INT || tensor->code == CODE_UINT;
	case 16:
		return tensor->code <= CODE_FLOAT || tensor->code == CODE_BFLOAT;
	case 32:
	case 64:
		return tensor->code <= CODE_FLOAT;
	}
	return false;
}

/* *out = a * b + c, all of them not negative. Returns false on overflow. */
static bool multiply_add(int64_t a, int64_t b, int64_t c, int64_t *out)
{
	if (a != 0 && b > (INT64_MAX - c) / a)
		return false;
	*out = a * b + c;
	return true;
}

static weir_status refuse_too_large(void)
{
	return wr_fail(WEIR_E_INVALID, "tensor: shape times element size does not fit in 63 bits");
}

static weir_status check_tensor(const weir_tensor *tensor, bool dense)
{
	weir_status status = wr_struct_known("weir_tensor", tensor, sizeof(*tensor));

	if (status)
		return status;
	if (!known_type(tensor))
		return wr_fail(WEIR_E_INVALID,
			       "tensor: no type of code %d with %d bits "
			       "(int, uint: 8 to 64; float: 16 to 64; bfloat: 16)",
			       tensor->code, tensor->bits);
	if (tensor->dimensions < 0 || tensor->dimensions > WEIR_DIMENSIONS_MAX)
		return wr_fail(WEIR_E_INVALID, "tensor: dimensions is %d, must be 0 to %d",
			       (int)tensor->dimensions, WEIR_DIMENSIONS_MAX);
	if (tensor->dimensions > 0 && !tensor->shape)
		return wr_fail(WEIR_E_INVALID, "tensor: shape is NULL for %d dimensions",
			       (int)tensor->dimensions);
	for (int i = 0; i < tensor->dimensions; i++) {
		if (tensor->shape[i] < 0)
			return wr_fail(WEIR_E_INVALID, "tensor: shape[%d] is %lld, must not be negative", i,
				       (long long)tensor->shape[i]);
		if (!dense && tensor->strides[i] < 0)
			return wr_fail(WEIR_E_INVALID,
				       "tensor: strides[%d] is %lld; data must point to "
				       "the lowest address",
				       i, (long long)tensor->strides[i]);
	}
	return WEIR_OK;
}

/* An extent of 0 counts as 1, so that the strides of an empty tensor stay meaningful. */
static bool dense_strides(const weir_tensor *tensor, int64_t *strides)
{
	int64_t step = 1;

	for (int i = tensor->dimensions - 1; i >= 0; i--) {
		strides[i] = step;
		if (!multiply_add(step, tensor->shape[i] ? tensor->shape[i] : 1, 0, &step))
			return false;
	}
	return true;
}

/*
 * Checks type and shape, but not data, device and size. Writes one stride per dimension: those of the tensor,
 * or dense row-major ones if it has none or `dense` is set. *bytes: from the first to the last element.
 * Fails: WEIR_E_INVALID, naming the field.
 */
static weir_status measure_tensor(const weir_tensor *tensor, bool dense, int64_t *strides, size_t *bytes)
{
	int64_t last = 0, size, element = tensor->bits / 8 * (tensor->lanes ? tensor->lanes : 1);
	bool empty = false;
	weir_status status;

	dense = dense || !tensor->strides;
	status = check_tensor(tensor, dense);
	if (status)
		return status;
	if (dense && !dense_strides(tensor, strides))
		return refuse_too_large();
	for (int i = 0; i < tensor->dimensions; i++) {
		if (!dense)
			strides[i] = tensor->strides[i];
		if (tensor->shape[i] == 0)
			empty = true;
		else if (!multiply_add(strides[i], tensor->shape[i] - 1, last, &last))
			return refuse_too_large();
	}
	if (!multiply_add(last, element, element, &size))
		return refuse_too_large();
	*bytes = empty ? 0 : (size_t)size;
	return WEIR_OK;
}

/* --- making and freeing --- */

__attribute__((always_inline)) static inline weir_message *message_new(struct wr_pool *pool, unsigned kind)
{
	weir_message *message = wr_pool_get(pool);

	if (!message)
		return NULL;
	wr_store_relaxed(&message->references, 1); /* no other thread has it yet */
	message->kind = (uint8_t)kind;
	message->payload = WR_PAYLOAD_NONE;
	wr_store_relaxed(&message->stamped, WR_STAMPED_NOT);
	wr_store_relaxed(&message->delivered, false);
	message->data = NULL;
	if (wr_pool_has(pool, WR_POOL_COUNTED))
		wr_message_note_kept(1);
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
	} else if (device != WEIR_DEVICE_HOST) {
		status = wr_fail(WEIR_E_INVALID,
				 "tensor: no device %d before a scheduler was created: "
				 "use WEIR_DEVICE_HOST",
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

static void free_to_memory_pool(struct wr_memory_pool *memory, weir_message *message)
{
	bool outside = wr_load_relaxed(&message->outside);

	wr_store_relaxed(&message->outside, false);
	memory->calls->free(memory, message->data, message->size, outside);
	if (outside)
		wr_pool_let_go(message->pool);
}

void wr_payload_free(weir_message *message)
{
	int device = message->kind == WEIR_KIND_TENSOR ? message->of.tensor.device : WEIR_DEVICE_HOST;

	switch ((enum wr_payload)message->payload) {
	case WR_PAYLOAD_NONE:
	case WR_PAYLOAD_INLINE:
	case WR_PAYLOAD_DESTROY: /* message.c calls the user's function */
		break;
	case WR_PAYLOAD_OWN:
		wr_free(message->data);
		break;
	case WR_PAYLOAD_SYSTEM:
		wr_system_free(message->system, device, message->data, message->size);
		break;
	case WR_PAYLOAD_POOL:
		free_to_memory_pool(message->arg, message);
		break;
	case WR_PAYLOAD_PARTS:
		wr_pack_free(message);
		break;
	}
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

weir_status wr_message_empty(struct wr_pool *pool, weir_message **out)
{
	weir_message *message = message_new(pool, WEIR_KIND_EMPTY);

	if (!message)
		return WEIR_E_NOMEM;
	*out = message;
	return WEIR_OK;
}

weir_status weir_message_create_empty(weir_graph *graph, weir_message **out)
{
	return wr_message_empty(graph->pool, out);
}

weir_status weir_message_create_bytes(weir_graph *graph, size_t bytes, weir_message **out)
{
	weir_message *message = message_new(graph->pool, WEIR_KIND_BYTES);

	if (!message)
		return WEIR_E_NOMEM;
	if (bytes > WR_SMALL)
		return message_hand_out(out, message, allocate_payload(message, WEIR_DEVICE_HOST, bytes));
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

static weir_status take_from_memory_pool(weir_message *message, struct wr_claim *claim, size_t bytes)
{
	struct wr_memory_pool *memory = wr_memory_pool_of(claim);
	weir_status status = memory->calls->take(claim, bytes, &message->data);

	if (status)
		return status;
	message->payload = WR_PAYLOAD_POOL;
	message->arg = memory;
	message->size = bytes;
	return WEIR_OK;
}

/* From the system's arena, or from the memory pool that the claim is of. */
static weir_status create_tensor(struct wr_pool *pool, const weir_tensor *like, int device,
				 struct wr_claim *claim, weir_message **out)
{
	int64_t strides[WEIR_DIMENSIONS_MAX];
	size_t bytes;
	weir_message *message;
	weir_status status = measure_tensor(like, true, strides, &bytes);

	if (status)
		return status;
	message = message_new(pool, WEIR_KIND_TENSOR);
	if (!message)
		return WEIR_E_NOMEM;
	message->size = 0;
	if (bytes > 0)
		status = claim ? take_from_memory_pool(message, claim, bytes)
			       : allocate_payload(message, device, bytes);
	message_describe(message, like, device, strides);
	return message_hand_out(out, message, status);
}

weir_status wr_message_tensor(struct wr_pool *pool, const weir_tensor *like, int device, weir_message **out)
{
	return create_tensor(pool, like, device, NULL, out);
}

weir_status wr_message_pooled_tensor(struct wr_pool *pool, const weir_tensor *like, struct wr_claim *claim,
				     weir_message **out)
{
	return create_tensor(pool, like, wr_memory_pool_of(claim)->plan->device, claim, out);
}

weir_status weir_message_create_tensor(weir_graph *graph, const weir_tensor *like, weir_message **out)
{
	return wr_message_tensor(graph->pool, like, like->device, out);
}

static weir_status check_wrapped(struct wr_pool *pool, const weir_tensor *tensor, size_t bytes)
{
	struct wr_system *system = wr_pool_system(pool);

	if (!tensor->data && bytes > 0)
		return wr_fail(WEIR_E_INVALID, "tensor: data is NULL for %zu bytes", bytes);
	if (tensor->device < WEIR_DEVICE_HOST || (system && tensor->device >= wr_system_devices(system)))
		return wr_fail(WEIR_E_INVALID, "tensor: there is no device %d", (int)tensor->device);
	return WEIR_OK;
}

static void message_set_destroy(weir_message *message, void (*destroy)(void *), void *arg)
{
	message->payload = destroy ? WR_PAYLOAD_DESTROY : WR_PAYLOAD_NONE;
	message->destroy = destroy;
	message->arg = arg;
}

weir_status weir_message_wrap_tensor(weir_graph *graph, const weir_tensor *tensor, void (*destroy)(void *),
				     void *arg, weir_message **out)
{
	int64_t strides[WEIR_DIMENSIONS_MAX];
	size_t bytes;
	weir_message *message;
	weir_status status = measure_tensor(tensor, false, strides, &bytes);

	if (!status)
		status = check_wrapped(graph->pool, tensor, bytes);
	if (status)
		return status;
	message = message_new(graph->pool, WEIR_KIND_TENSOR);
	if (!message)
		return WEIR_E_NOMEM;
	message->data = tensor->data;
	message->size = bytes;
	message_set_destroy(message, destroy, arg);
	message_describe(message, tensor, tensor->device, strides);
	return message_hand_out(out, message, WEIR_OK);
}

weir_status weir_message_wrap_user(weir_graph *graph, void *pointer, void (*destroy)(void *),
				   weir_message **out)
{
	weir_message *message = message_new(graph->pool, WEIR_KIND_USER);

	if (!message)
		return WEIR_E_NOMEM;
	message->data = pointer;
	message_set_destroy(message, destroy, pointer);
	return message_hand_out(out, message, WEIR_OK);
}
