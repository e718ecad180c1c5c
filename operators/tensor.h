/*
 * What several operators ask of tensors. Everything that fails has said why by weir_context_fail: its result
 * is returned.
 */
#ifndef WR_OPERATORS_TENSOR_H
#define WR_OPERATORS_TENSOR_H

#include "operators/kernels.h"
#include "weir.h"

enum { WR_TENSOR_TEXT = 160, WR_CHANNELS_MAX = 4, WR_IMAGE_SIDE_MAX = 1 << 20 };

/* "uint8 [512, 512, 3] in host memory". Returns text. */
const char *wr_tensor_text(const weir_tensor *tensor, char text[WR_TENSOR_TEXT]);

/* The tensor is a dense uint8 image: [height, width] or [height, width, 1..4]. */
weir_status wr_tensor_image(weir_context *context, const weir_tensor *tensor, struct wr_image *out);

/* A tensor's place: on the host, or on the device that the entity works on (whose stream there is then). */
weir_status wr_tensor_on_host(weir_context *context, const weir_tensor *tensor);
weir_status wr_tensor_on_device(weir_context *context, const weir_tensor *tensor);

/* Both: what the message holds is an image that the entity's stream can read. */
weir_status wr_image_on_device(weir_context *context, const weir_message *message, struct wr_image *out);

/* Device work that writes the message may still run: the host must not look yet. Other failures of the fences
 * pass through. */
weir_status wr_message_finished(weir_context *context, const weir_message *message);

/*
 * Takes a new message, and what came of enqueueing the work that writes it: emits it at output 0, or drops it
 * and returns the failure.
 */
weir_status wr_message_written(weir_context *context, weir_message *message, weir_status written);

/*
 * Emits, at output 0, a copy that the entity's stream makes: in host memory, or on the device. What is there
 * already is passed on.
 */
weir_status wr_tensor_copy(weir_context *context, weir_message *from, bool to_host);

/* Calls tick for each message that the tick received at input 0, until one fails. */
typedef weir_status wr_message_fn(weir_context *context, void *state, weir_message *message);
weir_status wr_messages_each(weir_context *context, void *state, wr_message_fn *tick);

#endif
