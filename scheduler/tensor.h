/* Tensors in DLPack's terms: the strides and bytes of a shape and type. */
#ifndef WR_GRAPHS_TENSOR_H
#define WR_GRAPHS_TENSOR_H

#include "weir.h"

/*
 * Checks type and shape, but not data, device and size. Writes one stride per dimension: those of the tensor,
 * or dense row-major ones if it has none or `dense` is set. *bytes: from the first to the last element.
 * Fails: WEIR_E_INVALID, naming the field.
 */
weir_status wr_tensor_measure(const weir_tensor *tensor, bool dense, int64_t *strides, size_t *bytes);

#endif
