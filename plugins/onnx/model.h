/*
 * A model that the runtime has loaded: its inputs and outputs, in weir's terms. Sizes that the model leaves
 * open have a name; equal names are equal sizes, at all inputs and outputs.
 */
#ifndef ONNX_MODEL_H
#define ONNX_MODEL_H

#include <weir.h>

#include "plugins/onnx/runtime.h"

enum {
	MODEL_PORTS = 64,  /* inputs, and outputs, of a model */
	MODEL_SYMBOLS = 60 /* names of sizes; weir allows 64 at an entity */
};

struct model_dtype {
	ONNXTensorElementDataType type;
	const char *name; /* weir's */
	uint8_t code, bits;
};

struct model_port {
	char *name;    /* the model's; the runtime's memory */
	char port[64]; /* of the entity: the same, with '_' for what weir does not allow */
	const struct model_dtype *dtype;
	int rank;                           /* -1: the model does not say */
	int64_t sizes[WEIR_DIMENSIONS_MAX]; /* -1: a symbol */
	int symbols[WEIR_DIMENSIONS_MAX];
};

struct model {
	const OrtApi *ort;
	OrtEnv *env;
	OrtAllocator *allocator; /* the runtime's own */
	OrtSession *session;
	size_t input_count, output_count;
	struct model_port inputs[MODEL_PORTS], outputs[MODEL_PORTS];
	int symbol_count;
	char *symbols[MODEL_SYMBOLS]; /* names in the model, owned; "": it has none */
};

/* Sets what the session needs; NULL: nothing. Returns false if it cannot. */
typedef bool model_options_fn(const OrtApi *ort, OrtSessionOptions *options, void *arg,
			      char why[RUNTIME_WHY]);

struct model_wanted {
	int threads;               /* that compute a run; 0: none will, it only looks, as fast as it can */
	bool batches;              /* the first size of what it gives is that of what it receives */
	model_options_fn *options; /* NULL: none */
	void *arg;
};

/*
 * Reads the model from the descriptor, which stays the caller's, and checks it. Returns false, with a line,
 * if it cannot be; the model is then to be closed all the same. The pool of the runtime has `threads`
 * threads, or, if only a run tells the shapes of the outputs, so that it is waited for, one less.
 */
bool model_open(struct model *model, int fd, const struct model_wanted *wanted, char why[RUNTIME_WHY]);
/* The shapes of the outputs are known once those of the inputs are. */
bool model_tells_shapes(const struct model *model, bool batches);
/* The model tells all sizes of all inputs and outputs. */
bool model_has_sizes(const struct model *model);
void model_close(struct model *model); /* half-open ones, too */

/*
 * "[1, 3, H, W]" into `out`, "" if the rank is not known; `rows`: 1 in place of the first size.
 */
void model_shape_text(const struct model *model, const struct model_port *port, bool rows, size_t room,
		      char *out);

#endif
