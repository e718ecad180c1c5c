/*
 * What several operators check and do with tensors. A function that fails has called weir_context_fail; the
 * operator returns its result.
 */
#ifndef WR_OPERATORS_TENSOR_H
#define WR_OPERATORS_TENSOR_H

#include "operators/kernels.h"
#include "weir.h"

enum { WR_TENSOR_TEXT = 160, WR_CHANNELS_MAX = 4, WR_IMAGE_SIDE_MAX = 1 << 20 };

/* "uint8 [512, 512, 3] in host memory". Returns text. */
const char *wr_tensor_text(const weir_tensor *tensor, char text[WR_TENSOR_TEXT]);

/* Returns true if the elements lie one after another, in the order of rows. */
bool wr_tensor_is_dense(const weir_tensor *tensor);

/* Fails unless the tensor is a dense uint8 image: [height, width] or [height, width, 1..4]. */
weir_status wr_tensor_image(weir_context *context, const weir_tensor *tensor, struct wr_image *out);

/* Fails unless the tensor is on the host. */
weir_status wr_tensor_on_host(weir_context *context, const weir_tensor *tensor);

/* Enqueues the kernel on the current stream of the tick. */
weir_status wr_launch(weir_context *context, const weir_kernel *kernel, const void *arguments, size_t bytes);

/* The inputs of an operator that takes such images on the device: one port, 'in'. */
extern const weir_port wr_image_inputs[];

/* Both: fails unless the message holds an image that the entity's stream can read. */
weir_status wr_image_on_device(weir_context *context, const weir_message *message, struct wr_image *out);

/* A parameter of one number for all channels, or one for each. */
struct wr_per_channel {
	const char *name;
	int32_t count;
	double values[WR_CHANNELS_MAX];
};

/* The parameter, of WEIR_TYPE_NUMBERS with 1 to WR_CHANNELS_MAX numbers; `name` is borrowed. */
struct wr_per_channel wr_per_channel_read(const weir_values *values, const char *name);

/* The number of a channel; 0 beyond the last of several. */
double wr_per_channel_at(const struct wr_per_channel *numbers, int32_t channel);

/* Fails unless all are integers from 0 to 255. */
weir_status wr_per_channel_check_levels(weir_context *context, const struct wr_per_channel *numbers);

/* Gives one number for each channel of the image. Fails if there are several, but not as many. */
weir_status wr_per_channel_fit(weir_context *context, const struct wr_per_channel *numbers,
			       const weir_tensor *tensor, struct wr_image image, double out[WR_CHANNELS_MAX]);

/*
 * Fails if device work may still write the message, so that the host must not read it yet. Other failures
 * of the fences are returned as they are.
 */
weir_status wr_message_finished(weir_context *context, const weir_message *message);
/* Likewise of another port than 'in'. */
weir_status wr_port_finished(weir_context *context, const char *port, const weir_message *message);

/*
 * Takes a new message and the result of enqueueing the work that writes it: emits the message at output 0,
 * or drops it and returns the failure.
 */
weir_status wr_message_written(weir_context *context, weir_message *message, weir_status written);

/*
 * copy.c. Of each tensor received at input 0 emits at output 0 a dense copy, in host memory or on the device,
 * made by the entity's stream. A tensor that is on that device already is passed on.
 */
weir_status wr_tensors_copy(weir_context *context, bool to_host);

/* Calls tick for each message that the tick received at input 0; stops at the first failure. */
typedef weir_status wr_message_fn(weir_context *context, void *state, weir_message *message);
weir_status wr_messages_each(weir_context *context, void *state, wr_message_fn *tick);

#endif
