#include "plugins/onnx/cuda.h"

#include <stdio.h>

bool cuda_set_options(const OrtApi *ort, OrtSessionOptions *options, void *arg, char why[RUNTIME_WHY])
{
	struct cuda *cuda = arg;
	OrtCUDAProviderOptionsV2 *own = NULL;
	const char *const keys[] = {"device_id"};
	char device[16];
	const char *const values[] = {device};
	bool good;

	snprintf(device, sizeof device, "%d", cuda->device);
	/* The stream is a value, not a text; given one, the runtime makes none. */
	good = runtime_good(ort, ort->CreateCUDAProviderOptions(&own), "provider 'cuda'", why) &&
	       runtime_good(ort, ort->UpdateCUDAProviderOptions(own, keys, values, 1), "provider 'cuda'",
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
	       runtime_good(ort, ort->CreateIoBinding(model->session, &cuda->binding), "binding", why);
}

void cuda_close(struct cuda *cuda)
{
	if (!cuda->ort)
		return;
	cuda->ort->ReleaseIoBinding(cuda->binding);
	cuda->ort->ReleaseRunOptions(cuda->run_options);
	cuda->ort->ReleaseMemoryInfo(cuda->memory);
	*cuda = (struct cuda){0};
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
	bool good = bind(cuda, model, inputs, outputs, why) &&
		    runtime_good(ort, ort->RunWithBinding(model->session, cuda->run_options, cuda->binding),
				 "the network failed", why) &&
		    take_outputs(cuda, model, outputs, why);

	ort->ClearBoundInputs(cuda->binding);
	ort->ClearBoundOutputs(cuda->binding);
	return good;
}
