#include "plugins/onnx/cuda.h"

#include <stdio.h>

bool cuda_set_options(const OrtApi *ort, OrtSessionOptions *options, void *arg, char why[RUNTIME_WHY])
{
	struct cuda *cuda = arg;
	OrtCUDAProviderOptionsV2 *own = NULL;
	const char *const keys[] = {"device_id", "enable_cuda_graph"};
	char device[16];
	const char *const values[] = {device, cuda->graph ? "1" : "0"};
	bool good;

	snprintf(device, sizeof device, "%d", cuda->device);
	/* The stream is a value, not a text; given one, the runtime makes none. */
	good = runtime_good(ort, ort->CreateCUDAProviderOptions(&own), "provider 'cuda'", why) &&
	       runtime_good(ort, ort->UpdateCUDAProviderOptions(own, keys, values, 2), "provider 'cuda'",
			    why) &&
	       runtime_good(ort,
			    ort->UpdateCUDAProviderOptionsWithValue(own, "user_compute_stream", cuda->stream),
			    "provider 'cuda'", why) &&
	       runtime_good(ort, ort->SessionOptionsAppendExecutionProvider_CUDA_V2(options, own),
			    "provider 'cuda'", why);
	if (own)
		ort->ReleaseCUDAProviderOptions(own);
	return good;
}

static bool make_values(struct cuda *cuda, const struct model_port *ports, size_t count, OrtValue **values,
			char why[RUNTIME_WHY])
{
	for (size_t i = 0; i < count; i++)
		if (!runtime_good(cuda->ort,
				  cuda->ort->CreateTensorAsOrtValue(cuda->allocator, ports[i].sizes,
								    (size_t)ports[i].rank,
								    ports[i].dtype->type, &values[i]),
				  ports[i].port, why))
			return false;
	return true;
}

static bool bind(struct cuda *cuda, const struct model *model, OrtValue *const *inputs,
		 OrtValue *const *outputs, char why[RUNTIME_WHY])
{
	const OrtApi *ort = cuda->ort;

	for (size_t i = 0; i < model->input_count; i++)
		if (!runtime_good(ort, ort->BindInput(cuda->binding, model->inputs[i].name, inputs[i]),
				  model->inputs[i].port, why))
			return false;
	for (size_t i = 0; i < model->output_count; i++) {
		const char *name = model->outputs[i].name;
		OrtStatus *status = outputs[i] ? ort->BindOutput(cuda->binding, name, outputs[i])
					       : ort->BindOutputToDevice(cuda->binding, name, cuda->memory);

		if (!runtime_good(ort, status, model->outputs[i].port, why))
			return false;
	}
	return true;
}

/* A graph is launched with the addresses of its capture. */
static bool open_graph(struct cuda *cuda, const struct model *model, char why[RUNTIME_WHY])
{
	return runtime_good(cuda->ort,
			    cuda->ort->CreateAllocator(model->session, cuda->memory, &cuda->allocator),
			    "memory", why) &&
	       make_values(cuda, model->inputs, model->input_count, cuda->inputs, why) &&
	       make_values(cuda, model->outputs, model->output_count, cuda->outputs, why) &&
	       bind(cuda, model, cuda->inputs, cuda->outputs, why);
}

bool cuda_open(struct cuda *cuda, const struct model *model, char why[RUNTIME_WHY])
{
	const OrtApi *ort = cuda->ort = model->ort;

	return runtime_good(ort,
			    ort->CreateMemoryInfo("Cuda", OrtDeviceAllocator, cuda->device, OrtMemTypeDefault,
						  &cuda->memory),
			    "memory", why) &&
	       runtime_good(ort, ort->CreateRunOptions(&cuda->run_options), "options", why) &&
	       runtime_good(ort,
			    ort->AddRunConfigEntry(cuda->run_options,
						   "disable_synchronize_execution_providers", "1"),
			    "options", why) &&
	       runtime_good(ort, ort->CreateIoBinding(model->session, &cuda->binding), "binding", why) &&
	       (!cuda->graph || open_graph(cuda, model, why));
}

void cuda_close(struct cuda *cuda)
{
	if (!cuda->ort)
		return;
	cuda->ort->ReleaseIoBinding(cuda->binding);
	for (size_t i = 0; i < MODEL_PORTS; i++) {
		cuda->ort->ReleaseValue(cuda->inputs[i]);
		cuda->ort->ReleaseValue(cuda->outputs[i]);
	}
	cuda->ort->ReleaseAllocator(cuda->allocator);
	cuda->ort->ReleaseRunOptions(cuda->run_options);
	cuda->ort->ReleaseMemoryInfo(cuda->memory);
	*cuda = (struct cuda){0};
}

/* Those that the runtime has made take their place; the others are the caller's already. */
static bool take_outputs(struct cuda *cuda, const struct model *model, OrtValue **outputs,
			 char why[RUNTIME_WHY])
{
	const OrtApi *ort = cuda->ort;
	OrtValue **values = NULL;
	size_t count = 0;

	if (!runtime_good(ort, ort->GetBoundOutputValues(cuda->binding, model->allocator, &values, &count),
			  "results", why))
		return false;
	for (size_t i = 0; i < count; i++) {
		if (i < model->output_count && !outputs[i])
			outputs[i] = values[i];
		else
			ort->ReleaseValue(values[i]);
	}
	return !values || runtime_good(ort, ort->AllocatorFree(model->allocator, values), "results", why);
}

bool cuda_run(struct cuda *cuda, const struct model *model, OrtValue *const *inputs, OrtValue **outputs,
	      char why[RUNTIME_WHY])
{
	const OrtApi *ort = cuda->ort;
	bool good = cuda->graph || bind(cuda, model, inputs, outputs, why);

	good = good &&
	       runtime_good(ort, ort->RunWithBinding(model->session, cuda->run_options, cuda->binding),
			    "the network failed", why);
	if (cuda->graph)
		return good;
	good = good && take_outputs(cuda, model, outputs, why);
	ort->ClearBoundInputs(cuda->binding);
	ort->ClearBoundOutputs(cuda->binding);
	return good;
}
