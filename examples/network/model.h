/*
 * A network that OpenVINO has read and compiled: its one input, its one output, and what a frame of each is.
 * Everything but the requests of network.c: what can be wrong with a file is found here, before the first
 * tick.
 */
#ifndef NETWORK_MODEL_H
#define NETWORK_MODEL_H

#include <openvino/c/openvino.h>
#include <weir.h>

/* The tensor of a port of the network. shape[0] counts the frames of a batch; the rest is one frame. */
struct model_port {
	ov_element_type_e type;
	uint8_t code, bits; /* the same, as weir_tensor has them */
	int32_t dimensions;
	int64_t shape[WEIR_DIMENSIONS_MAX];
	size_t frame_bytes;
};

struct model {
	ov_core_t *core;
	ov_compiled_model_t *compiled;
	struct model_port in, out;
	void *weights; /* of a .xml; the compiled model may read them */
};

struct model_options {
	const char *path, *device;
	int64_t batch, requests;
	const char *properties; /* "KEY=VALUE KEY=VALUE", for OpenVINO */
};

/*
 * Reads and compiles a network, with `batch` frames in the first dimension. Thread: owner, in start. Fails:
 * the file cannot be read or is no model, it has several inputs or outputs, a shape that is open, a type that
 * a message cannot have, a batch that OpenVINO refuses; the text names the file.
 */
weir_status model_open(struct model *model, weir_context *context, const struct model_options *options);
/* Half-opened ones are allowed. No request of the model is left. */
void model_close(struct model *model);

enum { PORT_TEXT = 160 };
/* "float32 [1, 3, 224, 224]"; returns text. frames: the first dimension. */
const char *model_port_text(const struct model_port *port, int64_t frames, char text[PORT_TEXT]);
/* Likewise of a message's tensor; with its device, if that is none of the host's. */
const char *model_tensor_text(const weir_tensor *tensor, char text[PORT_TEXT]);
/* Returns true if the tensor is one frame: dense, in host memory, its shape with or without a leading 1. */
bool model_port_fits(const struct model_port *port, const weir_tensor *tensor);

enum { OPENVINO_TEXT = 400 };
/* OpenVINO's last error of this thread, in one line; returns text. */
const char *model_error(ov_status_e status, char text[OPENVINO_TEXT]);

#endif
