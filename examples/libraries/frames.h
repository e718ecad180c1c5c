/*
 * Shared by the plugins around cuBLAS and NPP: a source of square matrices, and a sink that computes what
 * the library should have produced.
 */
#ifndef FRAMES_H
#define FRAMES_H

#include <stdbool.h>
#include <weir.h>

extern const weir_operator frames;  /* a source: float32 [side, side] in host memory, new numbers each tick */
extern const weir_operator compare; /* a sink: host code, gated */

/* Fails by weir_context_fail unless the tensor is a square float32 matrix on this device. */
weir_status frames_check(weir_context *context, const weir_tensor *tensor, int device);
/* Returns the stream's cudaStream_t. Fails unless the backend is cuda. */
weir_status frames_native(weir_context *context, weir_stream *stream, void **out);
/* Registers a plugin's operators: the one around its library, and the two above. */
weir_status frames_add(weir_registry *registry, const weir_operator *around);

#endif
