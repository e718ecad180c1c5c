#include "scheduler/tensor.h"

#include "base/status.h"
#include "base/struct.h"

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
	weir_status status = wr_struct_check("weir_tensor", tensor->size, sizeof(*tensor));

	if (status)
		return status;
	if (!known_type(tensor))
		return wr_fail(WEIR_E_INVALID,
			       "tensor: no type of code %d with %d bits "
			       "(int, uint: 8 to 64; float: 16 to 64; bfloat: 16)",
			       tensor->code, tensor->bits);
	if (tensor->dimensions < 0 || tensor->dimensions > WEIR_DIMENSIONS)
		return wr_fail(WEIR_E_INVALID, "tensor: dimensions is %d, must be 0 to %d",
			       (int)tensor->dimensions, WEIR_DIMENSIONS);
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

weir_status wr_tensor_measure(const weir_tensor *tensor, bool dense, int64_t *strides, size_t *bytes)
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
