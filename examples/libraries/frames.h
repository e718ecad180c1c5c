/*
 * What the plugins around cuBLAS and NPP share: a source of square matrices, and a sink that computes on its
 * own what the library should have made of them.
 */
#ifndef FRAMES_H
#define FRAMES_H

#include <stdbool.h>
#include <weir.h>

extern const weir_operator frames;  /* a source: float32 [side, side] in host memory, new numbers each tick */
extern const weir_operator compare; /* a sink: host code, to be gated */

/* A square float32 matrix on this device, or the reason why it is not, as weir_context_fail says it. */
weir_status frames_check(weir_context *context, const weir_tensor *tensor, int device);
/* The stream's cudaStream_t. Fails where there is none: the backend is not cuda. */
weir_status frames_native(weir_context *context, weir_stream *stream, void **out);
/* What a plugin adds: the operator around its library, and the two above. */
weir_status frames_add(weir_registry *registry, const weir_operator *around);

#endif
