/*
 * The CUDA provider: the runtime enqueues on the entity's stream, reads and writes weir's blocks in place,
 * and is asked not to wait for the device. What it does wait for is its own: copies to host memory of nodes
 * that it runs on the CPU.
 */
#ifndef ONNX_CUDA_H
#define ONNX_CUDA_H

#include "plugins/onnx/model.h"

struct cuda {
	const OrtApi *ort;
	int device;
	void *stream; /* cudaStream_t, of the session */
	OrtMemoryInfo *memory;
	OrtRunOptions *run_options;
	OrtIoBinding *binding;
	bool graph; /* the runtime captures the run, on these values, which are bound for good */
	OrtAllocator *allocator;
	OrtValue *inputs[MODEL_PORTS], *outputs[MODEL_PORTS];
};

model_options_fn cuda_set_options; /* arg: struct cuda, with its device, its stream, and `graph` */
/* After model_open. Returns false with a line; cuda_close is called all the same. */
bool cuda_open(struct cuda *cuda, const struct model *model, char why[RUNTIME_WHY]);
void cuda_close(struct cuda *cuda);
/*
 * Enqueues a run. An output that is NULL becomes the runtime's, on the device; the values are the caller's to
 * release. With a graph the values are cuda's own: what is passed is not looked at.
 */
bool cuda_run(struct cuda *cuda, const struct model *model, OrtValue *const *inputs, OrtValue **outputs,
	      char why[RUNTIME_WHY]);

#endif
