/* Tensors in DLPack's terms: what shape and type mean in bytes. */
#ifndef WR_GRAPHS_TENSOR_H
#define WR_GRAPHS_TENSOR_H

#include "weir.h"

/*
 * Checks type and shape (not data, device, size). Writes one stride per dimension: the tensor's, or dense
 * row-major ones where it has none or `dense` is set; *bytes: from the first to the last element. Fails:
 * WEIR_E_INVALID, naming the field.
 */
weir_status wr_tensor_measure(const weir_tensor *tensor, bool dense, int64_t *strides, size_t *bytes);

#endif
