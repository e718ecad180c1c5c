/*
 * The operators of handles.c: they enqueue on native streams, and check the results of the calls about
 * streams.
 */
#include <cuda_runtime_api.h>
#include <inttypes.h>
#include <string.h>

#include "handles.h"
#include "../calls.h"

#define STEP 7919 /* difference between frames, so that an older frame's numbers are wrong */

weir_stream *handles_stream;
void *handles_given;
void *handles_native;
uint32_t *handles_flag, *handles_word;

/* --- fill --- */

struct fill {
	const char *on, *how;
	int64_t count, duration, broken;
	bool carry;
};

static const weir_parameter fill_parameters[] = {
	{.size = sizeof(weir_parameter),
	 .name = "on",
	 .type = WEIR_TYPE_CHOICE,
	 .fallback = "\"internal\"",
	 .choices = "internal|wrapped|default|named",
	 .help = "its stream"},
	{.size = sizeof(weir_parameter),
	 .name = "how",
	 .type = WEIR_TYPE_CHOICE,
	 .fallback = "\"native\"",
	 .choices = "native|weir|elsewhere|capture|open",
	 .help = "by whose launch; on another stream, so that this one is only fenced; by a graph; by one "
		 "left open"},
	{.size = sizeof(weir_parameter),
	 .name = "carry",
	 .type = WEIR_TYPE_BOOL,
	 .fallback = "true",
	 .help = "set_stream"},
	{.size = sizeof(weir_parameter),
	 .name = "count",
	 .type = WEIR_TYPE_INT,
	 .fallback = "16384",
	 .min = 1,
	 .max = 1 << 24,
	 .help = "numbers"},
	{.size = sizeof(weir_parameter),
	 .name = "duration",
	 .type = WEIR_TYPE_DURATION,
	 .fallback = "\"1ms\"",
	 .help = "before they are written"},
	{.size = sizeof(weir_parameter),
	 .name = "broken",
	 .type = WEIR_TYPE_INT,
	 .fallback = "-1",
	 .min = -1,
	 .max = 1 << 24,
	 .help = "destroys the wrapped native stream in this tick"},
	{.name = NULL},
};
static const weir_port out_port[] = {{.size = sizeof(weir_port), .name = "out", .kinds = WEIR_KIND_TENSOR},
				     {.name = NULL}};

static weir_status fill_start(weir_context *context, void *state, const weir_values *values)
{
	struct fill *self = state;

	(void)context;
	self->on = weir_values_string(values, "on");
	self->how = weir_values_string(values, "how");
	self->carry = weir_values_bool(values, "carry");
	self->count = weir_values_int(values, "count");
	self->duration = weir_values_int(values, "duration");
	self->broken = weir_values_int(values, "broken");
	return WEIR_OK;
}

static weir_status made(weir_context *context, weir_stream *stream)
{
	return stream ? WEIR_OK : weir_context_fail(context, "no stream: %s", weir_last_error());
}

static weir_status choose(weir_context *context, const struct fill *self, weir_stream **out)
{
	weir_status status;

	if (!strcmp(self->on, "internal")) {
		*out = current_stream(context);
		return made(context, *out);
	}
	if (!strcmp(self->on, "named"))
		status = weir_context_allocate_stream(context, "by name", out);
	else
		*out = !strcmp(self->on, "wrapped") ? handles_stream : device_stream(context);
	status = made(context, *out);
	return status || !self->carry ? status : weir_context_set_stream(context, 0, *out);
}

static weir_status numbers(weir_context *context, int64_t count, bool on_host, weir_message **out)
{
	const weir_tensor like = {
		.size = sizeof like, .dimensions = 1, .shape = &count, .code = 1, .bits = 32};

	return weir_context_create_tensor(context, &like, on_host ? WEIR_TENSOR_HOST : 0, out);
}

/*
 * Captures a graph of one kernel on the stream. The graph is destroyed at once, but lives until it has run.
 */
static weir_status capture(weir_context *context, weir_stream *stream, const struct handles_fill *work,
			   bool open)
{
	cudaStream_t native = weir_stream_native(stream);
	cudaGraph_t graph = NULL;
	cudaGraphExec_t ready = NULL;
	int error = open ? handles_fill_cuda(native, work) : cudaSuccess; /* the tick has work that runs */

	if (!error)
		error = cudaStreamBeginCapture(native, cudaStreamCaptureModeGlobal);
	if (!error)
		error = handles_fill_cuda(native, work);
	if (error || open)
		return handles_failed(context, error, "cudaStreamBeginCapture");
	error = cudaStreamEndCapture(native, &graph);
	if (!error)
		error = cudaGraphInstantiate(&ready, graph, 0);
	if (!error)
		error = cudaGraphLaunch(ready, native);
	if (ready)
		cudaGraphExecDestroy(ready);
	if (graph)
		cudaGraphDestroy(graph);
	return handles_failed(context, error, "a captured kernel");
}

/* The stream chosen also travels with the message. */
static weir_status enqueue_elsewhere(weir_context *context, const struct handles_fill *work)
{
	weir_stream *own = current_stream(context);
	weir_status status = made(context, own);

	if (!status)
		status = weir_context_set_stream(context, 0, own);
	return status ? status : handles_launch(context, own, &handles_fill_kernel, work, sizeof *work);
}

static weir_status enqueue(weir_context *context, const struct fill *self, weir_stream *stream,
			   const struct handles_fill *work)
{
	if (!strcmp(self->how, "elsewhere"))
		return enqueue_elsewhere(context, work);
	if (!strcmp(self->how, "capture") || !strcmp(self->how, "open"))
		return capture(context, stream, work, !strcmp(self->how, "open"));
	if (!strcmp(self->how, "weir"))
		return weir_stream_launch(stream, &handles_fill_kernel, work, sizeof *work);
	return handles_launch(context, stream, &handles_fill_kernel, work, sizeof *work);
}

/* A stream cannot be unwrapped during a run. */
static weir_status stays_wrapped(weir_context *context)
{
	weir_status status = weir_stream_unwrap(handles_stream);

	if (status == WEIR_E_STATE)
		return WEIR_OK;
	return weir_context_fail(context, "unwrapped in a run: %s", weir_status_text(status));
}

static weir_status fill_compute(weir_context *context, void *state)
{
	const struct fill *self = state;
	struct handles_fill work = {.count = self->count, .ns = self->duration};
	weir_stream *stream = NULL;
	weir_message *out = NULL;
	weir_status status = WEIR_OK;

	if (self->broken >= 0 && weir_context_tick(context) == (uint64_t)self->broken)
		status = handles_failed(context, cudaStreamDestroy(handles_native), "cudaStreamDestroy");
	if (!status)
		status = choose(context, self, &stream);
	if (!status && self->broken < 0)
		status = handles_look(context, stream);
	if (!status)
		__atomic_store_n(&handles_given, weir_stream_native(stream), __ATOMIC_SEQ_CST);
	if (!status && stream == handles_stream)
		status = stays_wrapped(context);
	if (!status)
		status = numbers(context, self->count, false, &out);
	if (status)
		return status;
	work.first = (uint32_t)weir_context_tick(context) * STEP;
	work.to = weir_message_data(out);
	status = enqueue(context, self, stream, &work);
	if (!status)
		return weir_context_emit(context, 0, out);
	weir_message_unref(out);
	return status;
}

static const weir_operator fill = {
	.size = sizeof(weir_operator),
	.name = "fill",
	.help = "numbers, on a stream of choice",
	.state_size = sizeof(struct fill),
	.parameters = fill_parameters,
	.outputs = out_port,
	.start = fill_start,
	.compute = fill_compute,
};

/* --- triple --- */

struct triple {
	bool copy, looks;
	const char *sync;
};

static const weir_parameter triple_parameters[] = {
	{.size = sizeof(weir_parameter),
	 .name = "copy",
	 .type = WEIR_TYPE_BOOL,
	 .fallback = "false",
	 .help = "copies the numbers to its device first"},
	{.size = sizeof(weir_parameter),
	 .name = "looks",
	 .type = WEIR_TYPE_BOOL,
	 .fallback = "true",
	 .help = "asks for the native handles of the streams that came: then they are fenced here, too"},
	{.size = sizeof(weir_parameter),
	 .name = "sync",
	 .type = WEIR_TYPE_CHOICE,
	 .fallback = "\"no\"",
	 .choices = "no|to_default|from_default",
	 .help = "to: sync_to_default, and works on the default stream; from: has its own one come after "
		 "that"},
	{.name = NULL},
};
static const weir_port in_port[] = {{.size = sizeof(weir_port), .name = "in", .kinds = WEIR_KIND_TENSOR},
				    {.name = NULL}};

static weir_status triple_start(weir_context *context, void *state, const weir_values *values)
{
	struct triple *self = state;

	(void)context;
	self->copy = weir_values_bool(values, "copy");
	self->looks = weir_values_bool(values, "looks");
	self->sync = weir_values_string(values, "sync");
	return WEIR_OK;
}

/*
 * Returns the stream to work on, ordered after the producer of the message even if the message does not
 * carry it.
 */
static weir_status triple_stream(weir_context *context, const struct triple *self, weir_stream **out)
{
	bool to = !strcmp(self->sync, "to_default"), from = !strcmp(self->sync, "from_default");
	weir_status status = weir_context_receive_stream(context, 0, to ? WEIR_RECEIVE_SYNC_DEFAULT : 0, out);
	weir_stream *standard;

	if (status || (!to && !from))
		return status;
	standard = device_stream(context);
	status = made(context, standard);
	if (!status && from)
		return weir_context_synchronize_streams(context, &standard, 1, *out);
	*out = standard;
	return status ? status : weir_context_set_stream(context, 0, standard);
}

/* The message is dropped at once: its memory lives until the tick's work is done. */
static weir_status copy_here(weir_context *context, weir_stream *stream, const weir_message *in,
			     struct handles_triple *work)
{
	weir_message *here = NULL;
	weir_status status = numbers(context, work->count, false, &here);

	if (!status)
		status = copy_bytes(stream, weir_message_data(here), work->from, weir_message_size(in));
	if (!status)
		work->from = weir_message_data(here);
	weir_message_unref(here);
	return status;
}

static weir_status triple_compute(weir_context *context, void *state)
{
	const struct triple *self = state;
	weir_message *in = weir_context_message(context, 0, 0), *out = NULL;
	struct handles_triple work = {.from = weir_message_data(in),
				      .count = weir_message_tensor(in)->shape[0]};
	weir_stream *stream = NULL;
	weir_status status = triple_stream(context, self, &stream);

	if (!status)
		status = handles_look(context, stream);
	if (!status && self->looks)
		status = handles_look_at_received(context);
	if (!status && self->copy)
		status = copy_here(context, stream, in, &work);
	if (!status)
		status = numbers(context, work.count, true, &out);
	if (!status) {
		work.to = weir_message_data(out);
		status = handles_launch(context, stream, &handles_triple_kernel, &work, sizeof work);
	}
	if (!status)
		return weir_context_emit(context, 0, out);
	weir_message_unref(out);
	return status;
}

static const weir_operator triple = {
	.size = sizeof(weir_operator),
	.name = "triple",
	.help = "3 x + 1, into pinned host memory, behind the producer's stream",
	.flags = WEIR_OPERATOR_STREAM,
	.state_size = sizeof(struct triple),
	.parameters = triple_parameters,
	.inputs = in_port,
	.outputs = out_port,
	.start = triple_start,
	.compute = triple_compute,
};

/* --- compare --- */

static const weir_port compare_inputs[] = {
	{.size = sizeof(weir_port), .name = "in", .kinds = WEIR_KIND_TENSOR, .capacity = 4},
	{.size = sizeof(weir_port),
	 .name = "also",
	 .kinds = WEIR_KIND_TENSOR,
	 .capacity = 4,
	 .flags = WEIR_PORT_OPTIONAL},
	{.name = NULL},
};

static weir_status compare(weir_context *context, weir_message *message)
{
	const uint32_t *found = weir_message_data(message);
	uint32_t first = (uint32_t)weir_context_tick(context) * STEP;
	int64_t count = weir_message_tensor(message)->shape[0];

	for (int64_t i = 0; i < count; i++)
		if (found[i] != 3 * (first + (uint32_t)i) + 1)
			return weir_context_fail(
				context,
				"frame %" PRIu64 ": number %" PRId64 " is %" PRIu32 " instead of %" PRIu32,
				weir_context_tick(context), i, found[i], 3 * (first + (uint32_t)i) + 1);
	return WEIR_OK;
}

static weir_status compare_compute(weir_context *context, void *state)
{
	weir_status status = WEIR_OK;

	(void)state;
	for (unsigned input = 0; input < 2; input++)
		for (size_t i = 0; i < weir_context_count(context, input) && !status; i++)
			status = compare(context, weir_context_message(context, input, i));
	return status;
}

static const weir_operator compare_operator = {
	.size = sizeof(weir_operator),
	.name = "compare",
	.help = "every number is 3 x + 1",
	.inputs = compare_inputs,
	.compute = compare_compute,
};

/* --- implicit: one kernel on the default stream, one on its own, with no declared order --- */

struct implicit {
	bool default_first, sync;
};

static const weir_parameter implicit_parameters[] = {
	{.size = sizeof(weir_parameter),
	 .name = "default_first",
	 .type = WEIR_TYPE_BOOL,
	 .fallback = "true",
	 .help = "or its own"},
	{.size = sizeof(weir_parameter),
	 .name = "sync",
	 .type = WEIR_TYPE_BOOL,
	 .fallback = "false",
	 .help = "synchronize_streams between them"},
	{.name = NULL},
};

static weir_status implicit_start(weir_context *context, void *state, const weir_values *values)
{
	struct implicit *self = state;

	(void)context;
	self->default_first = weir_values_bool(values, "default_first");
	self->sync = weir_values_bool(values, "sync");
	return WEIR_OK;
}

static weir_status one_after_other(weir_context *context, const struct implicit *self, weir_stream *first,
				   weir_stream *second, weir_message **out)
{
	enum { COUNT = 16384 };
	struct handles_fill work = {
		.count = COUNT, .ns = MS, .first = (uint32_t)weir_context_tick(context) * STEP};
	struct handles_triple after = {.count = COUNT};
	weir_message *between = NULL;
	weir_status status = numbers(context, COUNT, false, &between);

	if (!status)
		status = numbers(context, COUNT, true, out);
	if (!status) {
		after.from = work.to = weir_message_data(between);
		after.to = weir_message_data(*out);
		status = handles_launch(context, first, &handles_fill_kernel, &work, sizeof work);
	}
	if (!status && self->sync)
		status = weir_context_synchronize_streams(context, &first, 1, second);
	if (!status)
		status = handles_launch(context, second, &handles_triple_kernel, &after, sizeof after);
	weir_message_unref(between);
	return status;
}

static weir_status implicit_compute(weir_context *context, void *state)
{
	const struct implicit *self = state;
	weir_stream *own = current_stream(context), *standard = device_stream(context);
	weir_stream *second = self->default_first ? own : standard;
	weir_message *out = NULL;
	weir_status status = made(context, own);

	if (!status)
		status = made(context, standard);
	if (!status)
		status = handles_look(context, standard);
	if (!status)
		status = one_after_other(context, self, self->default_first ? standard : own, second, &out);
	if (!status)
		status = weir_context_set_stream(context, 0, second);
	if (!status)
		return weir_context_emit(context, 0, out);
	weir_message_unref(out);
	return status;
}

static const weir_operator implicit = {
	.size = sizeof(weir_operator),
	.name = "implicit",
	.help = "two kernels on two streams",
	.state_size = sizeof(struct implicit),
	.parameters = implicit_parameters,
	.outputs = out_port,
	.start = implicit_start,
	.compute = implicit_compute,
};

/* --- apart, release: a kernel on the default stream runs until one of another stream has completed --- */

static weir_status apart_compute(weir_context *context, void *state)
{
	const struct handles_stay work = {.flag = handles_flag, .told = handles_word, .most = 5 * SECOND};
	weir_stream *own = current_stream(context), *standard = device_stream(context);
	const struct implicit apart = {.default_first = false};
	weir_message *out = NULL;
	weir_status status = made(context, own);

	(void)state;
	if (!status)
		status = made(context, standard);
	if (!status)
		status = handles_launch(context, standard, &handles_stay_kernel, &work, sizeof work);
	if (!status)
		status = one_after_other(context, &apart, own, own, &out);
	if (!status) /* otherwise the default stream's fence would travel, too, and be waited for */
		status = weir_context_set_stream(context, 0, own);
	if (!status)
		return weir_context_emit(context, 0, out);
	weir_message_unref(out);
	return status;
}

static weir_status release_compute(weir_context *context, void *state)
{
	(void)state;
	__atomic_store_n(handles_flag, 1, __ATOMIC_SEQ_CST); /* a kernel polls it */
	return compare(context, weir_context_message(context, 0, 0));
}

static const weir_operator apart = {
	.size = sizeof(weir_operator),
	.name = "apart",
	.help = "holds the default stream, works on its own",
	.outputs = out_port,
	.compute = apart_compute,
};
static const weir_operator release = {
	.size = sizeof(weir_operator),
	.name = "release",
	.help = "lets the default stream go",
	.inputs = in_port,
	.compute = release_compute,
};

/* --- stage, pass_on: of many short runs --- */

static const weir_port token_in[] = {{.size = sizeof(weir_port), .name = "in", .capacity = 2},
				     {.name = NULL}};
static const weir_port token_out[] = {{.size = sizeof(weir_port), .name = "out"}, {.name = NULL}};

static weir_status pass_on(weir_context *context, void *state)
{
	weir_message *message = NULL;
	weir_status status = weir_message_create_empty(weir_context_graph(context), &message);

	(void)state;
	return status ? status : weir_context_emit(context, 0, message);
}

static weir_status stage_compute(weir_context *context, void *state)
{
	const struct handles_fill work = {.ns = MS / 20};
	weir_stream *stream = current_stream(context);
	weir_status status = made(context, stream);

	(void)state;
	if (!status)
		status = weir_stream_launch(stream, &handles_fill_kernel, &work, sizeof work);
	return status ? status : pass_on(context, NULL);
}

static const weir_operator stage = {
	.size = sizeof(weir_operator),
	.name = "stage",
	.help = "a kernel of 50 us",
	.flags = WEIR_OPERATOR_STREAM,
	.inputs = token_in,
	.outputs = token_out,
	.compute = stage_compute,
};
static const weir_operator hand_back = {
	.size = sizeof(weir_operator),
	.name = "hand_back",
	.help = "passes a token on",
	.inputs = token_in,
	.outputs = token_out,
	.compute = pass_on,
};

weir_status handles_add(weir_registry *registry)
{
	const weir_operator *const all[] = {&fill,    &triple, &compare_operator, &implicit, &apart,
					    &release, &stage,  &hand_back};
	weir_status status = WEIR_OK;

	for (size_t i = 0; i < sizeof all / sizeof *all && !status; i++)
		status = weir_registry_add_operator(registry, all[i]);
	return status;
}
