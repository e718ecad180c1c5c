/*
 * The operator `onnx` runs a network by ONNX Runtime. Its ports are the model's inputs and outputs.
 *
 * On the CPU a tick makes the messages of the results, emits them with a fence and starts the run
 * (RunAsync), which reads the received messages and writes the emitted ones in place: weir keeps both until
 * the fence is completed, which the runtime's callback does. So no worker waits, and results leave in the
 * order of the inputs, whichever run is done first. At most `requests` runs are under way; others wait in a
 * list, and the callback of one that is done starts the next. A model with an output whose shape the inputs
 * do not tell is run within the tick (`run_now`), since a message cannot be made without its shape.
 *
 * On CUDA a tick enqueues the run on the entity's stream (cuda.h), and messages carry that stream.
 *
 * Threads: `finished` is called on a thread of the runtime's. It shares `running` and the list with ticks
 * and `stop`, under one lock. A request belongs to its tick until it is started or in the list, and
 * then to whoever finishes it. `stop` waits until none is left; then the session is released, which joins the
 * runtime's threads.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "plugins/onnx/cuda.h"

enum { REQUESTS_MAX = 256, BATCH_MAX = 1024, THREADS_MAX = 256, SHAPE_TEXT = 320 };

struct onnx {
	struct model model;
	struct cuda cuda;
	bool on_cuda, shapes_known; /* of the outputs, once those of the inputs are */
	size_t batch;          /* messages of a run at most; 1: the model's shapes are those of messages */
	OrtMemoryInfo *memory; /* of tensors in host memory */
	OrtRunOptions *run_options;
	const char *input_names[MODEL_PORTS], *output_names[MODEL_PORTS];
	size_t request_count;
	pthread_mutex_t lock;
	pthread_cond_t idle;
	size_t running;                /* guarded by the lock; so is the list */
	struct request *first, **last; /* those that wait to be started */
};

/* One run. */
struct request {
	struct request *next;
	struct onnx *onnx;
	weir_graph *graph;
	weir_fence fence;
	OrtValue *inputs[MODEL_PORTS], *outputs[MODEL_PORTS];
};

/* What a tick finds out. */
struct tick {
	weir_context *context;
	struct onnx *onnx;
	int64_t sizes[MODEL_SYMBOLS]; /* of the names; -1: not known so far */
	int by[MODEL_SYMBOLS];        /* the input that told it */
	size_t count;                 /* messages of each input */
	int64_t rows;                 /* of a batch */
	weir_message *results[MODEL_PORTS];
};

/* --- requests --- */

static void free_request(struct request *request)
{
	const struct model *model = &request->onnx->model;

	for (size_t i = 0; i < model->input_count; i++)
		model->ort->ReleaseValue(request->inputs[i]);
	for (size_t i = 0; i < model->output_count; i++)
		model->ort->ReleaseValue(request->outputs[i]);
	free(request);
}

/* `why`: a line if it failed, else NULL. Frees it. */
static void complete(struct request *request, const char *why)
{
	weir_graph *graph = request->graph;
	weir_fence fence = request->fence;

	free_request(request); /* the values stand for memory that receivers may have from now on */
	(void)weir_fence_complete(graph, fence, why ? WEIR_E_FAILED : WEIR_OK, why);
}

static void finished(void *arg, OrtValue **outputs, size_t count, OrtStatusPtr status);

static bool start_run(struct request *request, char why[RUNTIME_WHY])
{
	struct onnx *onnx = request->onnx;
	const OrtApi *ort = onnx->model.ort;

	return runtime_good(ort,
			    ort->RunAsync(onnx->model.session, onnx->run_options, onnx->input_names,
					  (const OrtValue *const *)request->inputs, onnx->model.input_count,
					  onnx->output_names, onnx->model.output_count, request->outputs,
					  finished, request),
			    "a run does not start", why);
}

/*
 * The place of a run that is over goes to the oldest request that waits, if there is one. Its start can fail,
 * which frees the place again.
 */
static void give_place(struct onnx *onnx)
{
	char why[RUNTIME_WHY];
	struct request *next;

	do {
		pthread_mutex_lock(&onnx->lock);
		next = onnx->first;
		if (next) {
			onnx->first = next->next;
			if (!onnx->first)
				onnx->last = &onnx->first;
		} else if (!--onnx->running)
			pthread_cond_broadcast(&onnx->idle);
		pthread_mutex_unlock(&onnx->lock); /* without a next one, the last touch */
		if (!next || start_run(next, why))
			return;
		complete(next, why);
	} while (true);
}

/* Called by the runtime; `outputs` is the request's array, or NULL after a failure. */
static void finished(void *arg, OrtValue **outputs, size_t count, OrtStatusPtr status)
{
	struct request *request = arg;
	struct onnx *onnx = request->onnx;
	char why[RUNTIME_WHY];
	bool good = runtime_good(onnx->model.ort, status, "the network failed", why);

	(void)outputs;
	(void)count;
	complete(request, good ? NULL : why);
	give_place(onnx);
}

/* Returns false if there is no place: then the request is in the list. */
static bool take_place(struct onnx *onnx, struct request *request)
{
	bool taken;

	pthread_mutex_lock(&onnx->lock);
	taken = onnx->running < onnx->request_count;
	if (taken)
		onnx->running++;
	else {
		*onnx->last = request;
		onnx->last = &request->next;
	}
	pthread_mutex_unlock(&onnx->lock);
	return taken;
}

/* --- what a tick received --- */

static size_t bytes_of(const struct model_port *port, const int64_t *shape, int rank)
{
	size_t bytes = port->dtype->bits / 8;

	for (int i = 0; i < rank; i++)
		bytes *= (size_t)shape[i];
	return bytes;
}

static bool is_dense(const weir_tensor *tensor)
{
	int64_t step = 1;

	for (int i = tensor->dimensions - 1; tensor->strides && i >= 0; i--) {
		if (tensor->shape[i] > 1 && tensor->strides[i] != step)
			return false;
		step *= tensor->shape[i];
	}
	return true;
}

static const char *symbol_text(const struct model *model, int symbol)
{
	return *model->symbols[symbol] ? model->symbols[symbol] : "a size without a name";
}

/* Ports are typed, so each tensor fits its own; what names say between them is left. */
static weir_status check_tensor(struct tick *tick, size_t input, const weir_tensor *tensor)
{
	const struct model *model = &tick->onnx->model;
	const struct model_port *port = &model->inputs[input];

	if (!is_dense(tensor))
		return weir_context_fail(tick->context, "input '%s' wants dense tensors: copy it before",
					 port->port);
	for (int i = tick->onnx->batch > 1; i < port->rank; i++) {
		int symbol = port->symbols[i];
		if (symbol < 0)
			continue;
		if (tick->sizes[symbol] < 0) {
			tick->sizes[symbol] = tensor->shape[i];
			tick->by[symbol] = (int)input;
		} else if (tick->sizes[symbol] != tensor->shape[i])
			return weir_context_fail(
				tick->context,
				"input '%s' has %" PRId64 " at dimension %d, but '%s' has %" PRId64
				": the model says '%s' for both",
				port->port, tensor->shape[i], i, model->inputs[tick->by[symbol]].port,
				tick->sizes[symbol], symbol_text(model, symbol));
	}
	return WEIR_OK;
}

static weir_status wrap(struct tick *tick, const struct model_port *port, void *data, const int64_t *shape,
			int rank, OrtValue **out)
{
	struct onnx *onnx = tick->onnx;
	const OrtApi *ort = onnx->model.ort;
	char why[RUNTIME_WHY];
	OrtStatus *status = ort->CreateTensorWithDataAsOrtValue(
		onnx->on_cuda ? onnx->cuda.memory : onnx->memory, data, bytes_of(port, shape, rank), shape,
		(size_t)rank, port->dtype->type, out);

	return runtime_good(ort, status, port->port, why) ? WEIR_OK
							  : weir_context_fail(tick->context, "%s", why);
}

static weir_status receive_one(struct tick *tick, size_t input, OrtValue **out)
{
	weir_message *message = weir_context_message(tick->context, (unsigned)input, 0);
	const weir_tensor *tensor = weir_message_tensor(message);
	weir_status status = check_tensor(tick, input, tensor);

	return status ? status
		      : wrap(tick, &tick->onnx->model.inputs[input], weir_message_data(message),
			     tensor->shape, tensor->dimensions, out);
}

/* From where the tensors of messages are, to there. */
static weir_status copy(struct tick *tick, void *to, const void *from, size_t bytes)
{
	const weir_copy whole = {sizeof whole, to, from, .row_bytes = bytes};
	weir_stream *stream = NULL;
	weir_status status;

	if (!bytes) /* a dimension of 0: there may be no memory at all */
		return WEIR_OK;
	if (!tick->onnx->on_cuda) {
		memcpy(to, from, bytes);
		return WEIR_OK;
	}
	status = weir_context_stream(tick->context, &stream);
	return status ? status : weir_stream_copies(stream, &whole, 1, 0, NULL);
}

static weir_status like(struct tick *tick, const struct model_port *port, const int64_t *shape, int rank,
			weir_message **out)
{
	const weir_tensor tensor = {.size = sizeof tensor,
				    .dimensions = rank,
				    .shape = shape,
				    .code = port->dtype->code,
				    .bits = port->dtype->bits};

	return weir_context_create_tensor(tick->context, &tensor, tick->onnx->on_cuda ? 0 : WEIR_TENSOR_HOST,
					  out);
}

/*
 * The messages of the only input, one row each. Rows that a model with a fixed number has beyond them stay as
 * they are in the block: their results are dropped. The block lives until the work of this tick is done.
 */
static weir_status receive_rows(struct tick *tick, OrtValue **out)
{
	const struct model_port *port = &tick->onnx->model.inputs[0];
	const weir_tensor *first = weir_message_tensor(weir_context_message(tick->context, 0, 0));
	int64_t shape[WEIR_DIMENSIONS_MAX];
	weir_message *all = NULL;
	weir_status status = WEIR_OK;

	memcpy(shape, first->shape, sizeof *shape * (size_t)first->dimensions);
	shape[0] = tick->rows;
	for (size_t i = 0; !status && i < tick->count; i++)
		status =
			check_tensor(tick, 0, weir_message_tensor(weir_context_message(tick->context, 0, i)));
	if (!status)
		status = like(tick, port, shape, first->dimensions, &all);
	if (!status && !tick->onnx->on_cuda && (size_t)tick->rows > tick->count)
		memset(weir_message_data(all), 0, weir_message_size(all));
	for (size_t i = 0; !status && i < tick->count; i++) {
		weir_message *row = weir_context_message(tick->context, 0, i);
		status = copy(tick, (char *)weir_message_data(all) + i * weir_message_size(row),
			      weir_message_data(row), weir_message_size(row));
	}
	if (!status)
		status = wrap(tick, port, weir_message_data(all), shape, first->dimensions, out);
	weir_message_unref(all);
	return status;
}

/* --- what it emits --- */

/* Returns false if the inputs do not tell the shape. */
static bool output_shape(const struct tick *tick, const struct model_port *port, int64_t *shape)
{
	for (int i = 0; i < port->rank; i++) {
		int symbol = port->symbols[i];

		shape[i] = symbol < 0 ? port->sizes[i] : tick->sizes[symbol];
		if (!i && tick->onnx->batch > 1)
			shape[i] = tick->rows;
		if (shape[i] < 0)
			return false;
	}
	return port->rank >= 0;
}

static weir_status create_result(struct tick *tick, size_t output, const int64_t *shape, int rank,
				 OrtValue **out)
{
	const struct model_port *port = &tick->onnx->model.outputs[output];
	weir_status status = like(tick, port, shape, rank, &tick->results[output]);

	return status ? status : wrap(tick, port, weir_message_data(tick->results[output]), shape, rank, out);
}

static void drop(void *whole)
{
	weir_message_unref(whole);
}

/* A message around the i-th row of a result, with the stamp of its input. */
static weir_status cut_row(struct tick *tick, weir_message *whole, size_t i, weir_message **out)
{
	weir_message *from = weir_context_message(tick->context, 0, i);
	weir_tensor row = *weir_message_tensor(whole);
	int64_t shape[WEIR_DIMENSIONS_MAX];
	weir_status status;

	memcpy(shape, row.shape, sizeof *shape * (size_t)row.dimensions);
	row.data = (char *)weir_message_data(whole) + i * (weir_message_size(whole) / (size_t)shape[0]);
	row.strides = NULL;
	row.shape = shape;
	shape[0] = 1;
	status = weir_message_wrap_tensor(weir_context_graph(tick->context), &row, drop,
					  weir_message_ref(whole), out);
	if (status) {
		weir_message_unref(whole);
		return status;
	}
	status = weir_message_set_stamp(*out, weir_message_stamp(from));
	if (status)
		weir_message_unref(*out);
	return status;
}

static weir_status emit(struct tick *tick, size_t output, weir_message *message, const weir_fence *fence)
{
	return fence ? weir_context_emit_at(tick->context, (unsigned)output, message, *fence)
		     : weir_context_emit(tick->context, (unsigned)output, message);
}

/* Emits all results; `fence`: they are finished when it is completed. */
static weir_status emit_results(struct tick *tick, const weir_fence *fence)
{
	struct onnx *onnx = tick->onnx;
	weir_status status = WEIR_OK;

	for (size_t k = 0; !status && k < onnx->model.output_count; k++) {
		weir_message *whole = tick->results[k], *row = NULL;

		if (onnx->batch == 1)
			status = emit(tick, k, weir_message_ref(whole), fence);
		for (size_t i = 0; !status && onnx->batch > 1 && i < tick->count; i++) {
			status = cut_row(tick, whole, i, &row);
			if (!status)
				status = emit(tick, k, row, fence);
		}
	}
	return status;
}

/* --- a run --- */

static weir_status create_known(struct tick *tick, struct request *request)
{
	const struct model *model = &tick->onnx->model;
	int64_t shape[WEIR_DIMENSIONS_MAX];
	weir_status status = WEIR_OK;

	for (size_t i = 0; !status && i < model->output_count; i++)
		if (output_shape(tick, &model->outputs[i], shape))
			status = create_result(tick, i, shape, model->outputs[i].rank, &request->outputs[i]);
	return status;
}

/* Takes the request, which is finished by the callback, here or, if it waits in the list, by another's. */
static weir_status run_later(struct tick *tick, struct request *request)
{
	struct onnx *onnx = tick->onnx;
	char why[RUNTIME_WHY];
	weir_status status = weir_graph_create_fence(request->graph, &request->fence);

	if (status) {
		free_request(request);
		return status;
	}
	status = emit_results(tick, &request->fence);
	if (status) {
		complete(request, NULL); /* nothing leaves the tick */
		return status;
	}
	if (!take_place(onnx, request) || start_run(request, why))
		return WEIR_OK;
	complete(request, NULL);
	give_place(onnx);
	return weir_context_fail(tick->context, "%s", why);
}

/* What the runtime has made becomes a message, by one copy. */
static weir_status copy_unknown(struct tick *tick, size_t output, OrtValue *value)
{
	const struct model *model = &tick->onnx->model;
	const struct model_port *port = &model->outputs[output];
	const OrtApi *ort = model->ort;
	OrtTensorTypeAndShapeInfo *info = NULL;
	int64_t shape[WEIR_DIMENSIONS_MAX];
	char why[RUNTIME_WHY];
	void *data = NULL;
	size_t rank = 0;
	weir_status status = WEIR_OK;
	bool good = runtime_good(ort, ort->GetTensorTypeAndShape(value, &info), port->port, why) &&
		    runtime_good(ort, ort->GetDimensionsCount(info, &rank), port->port, why);

	if (good && rank > WEIR_DIMENSIONS_MAX) {
		snprintf(why, sizeof why, "output '%s' has %zu dimensions: weir has at most %d", port->port,
			 rank, WEIR_DIMENSIONS_MAX);
		good = false;
	}
	good = good && runtime_good(ort, ort->GetDimensions(info, shape, rank), port->port, why) &&
	       runtime_good(ort, ort->GetTensorMutableData(value, &data), port->port, why);
	if (info)
		ort->ReleaseTensorTypeAndShapeInfo(info);
	if (!good)
		return weir_context_fail(tick->context, "%s", why);
	if (tick->onnx->batch > 1 && (!rank || shape[0] != tick->rows))
		return weir_context_fail(tick->context,
					 "output '%s' has not one row for each message: \"batch\" must be 1",
					 port->port);
	status = like(tick, port, shape, (int)rank, &tick->results[output]);
	return status ? status
		      : copy(tick, weir_message_data(tick->results[output]), data,
			     weir_message_size(tick->results[output]));
}

/* On the device, between values of the same sizes. */
static weir_status copy_values(struct tick *tick, const struct model_port *ports, size_t count,
			       OrtValue *const *to, OrtValue *const *from)
{
	const OrtApi *ort = tick->onnx->model.ort;
	weir_status status = WEIR_OK;
	char why[RUNTIME_WHY];

	for (size_t i = 0; !status && i < count; i++) {
		void *target = NULL, *source = NULL;

		if (!runtime_good(ort, ort->GetTensorMutableData(to[i], &target), ports[i].port, why) ||
		    !runtime_good(ort, ort->GetTensorMutableData(from[i], &source), ports[i].port, why))
			return weir_context_fail(tick->context, "%s", why);
		status = copy(tick, target, source, bytes_of(&ports[i], ports[i].sizes, ports[i].rank));
	}
	return status;
}

static weir_status run_on_cuda(struct tick *tick, struct request *request)
{
	const struct model *model = &tick->onnx->model;
	struct cuda *cuda = &tick->onnx->cuda;
	weir_status status = WEIR_OK;
	char why[RUNTIME_WHY];

	if (cuda->graph)
		status = copy_values(tick, model->inputs, model->input_count, cuda->inputs, request->inputs);
	if (status)
		return status;
	if (!cuda_run(cuda, model, request->inputs, request->outputs, why))
		return weir_context_fail(tick->context, "%s", why);
	return cuda->graph ? copy_values(tick, model->outputs, model->output_count, request->outputs,
					 cuda->outputs)
			   : WEIR_OK;
}

static weir_status run_on_worker(struct tick *tick, struct request *request)
{
	struct onnx *onnx = tick->onnx;
	const struct model *model = &onnx->model;
	const OrtApi *ort = model->ort;
	char why[RUNTIME_WHY];

	return runtime_good(ort,
			    ort->Run(model->session, onnx->run_options, onnx->input_names,
				     (const OrtValue *const *)request->inputs, model->input_count,
				     onnx->output_names, model->output_count, request->outputs),
			    "the network failed", why)
		       ? WEIR_OK
		       : weir_context_fail(tick->context, "%s", why);
}

/* Takes the request. */
static weir_status run_now(struct tick *tick, struct request *request)
{
	const struct onnx *onnx = tick->onnx;
	const struct model *model = &onnx->model;
	weir_status status = onnx->on_cuda ? run_on_cuda(tick, request) : run_on_worker(tick, request);

	for (size_t i = 0; !status && i < model->output_count; i++)
		if (!tick->results[i])
			status = copy_unknown(tick, i, request->outputs[i]);
	free_request(request);
	return status ? status : emit_results(tick, NULL);
}

/* The session works on one stream. */
static weir_status check_stream(const struct tick *tick)
{
	weir_stream *stream = NULL;
	weir_status status = weir_context_stream(tick->context, &stream);

	if (status)
		return status;
	return weir_stream_native(stream) == tick->onnx->cuda.stream
		       ? WEIR_OK
		       : weir_context_fail(tick->context,
					   "the entity has got another stream than at its start: "
					   "give its stream pool one for each entity");
}

/* A graph file may let a tick receive something else than the ports say. */
static weir_status check_counts(const struct tick *tick)
{
	const struct onnx *onnx = tick->onnx;

	for (size_t i = 0; i < onnx->model.input_count; i++) {
		size_t count = weir_context_count(tick->context, (unsigned)i);
		if (!count || count > onnx->batch)
			return weir_context_fail(
				tick->context,
				"input '%s' received %zu messages in a tick, and a run takes at "
				"least 1 and at most %zu: change its \"take\", or \"batch\"",
				onnx->model.inputs[i].port, count, onnx->batch);
	}
	return WEIR_OK;
}

static weir_status onnx_compute(weir_context *context, void *state)
{
	struct onnx *onnx = state;
	const struct model *model = &onnx->model;
	struct tick tick = {.context = context, .onnx = onnx};
	struct request *request;
	weir_status status = WEIR_OK;

	memset(tick.sizes, -1, sizeof tick.sizes);
	tick.count = weir_context_count(context, 0);
	status = check_counts(&tick);
	if (status)
		return status;
	request = calloc(1, sizeof *request);
	if (!request)
		return WEIR_E_NOMEM;
	request->onnx = onnx;
	request->graph = weir_context_graph(context);
	if (onnx->batch > 1)
		tick.rows = model->inputs[0].sizes[0] > 0 ? model->inputs[0].sizes[0] : (int64_t)tick.count;
	if (onnx->on_cuda)
		status = check_stream(&tick);
	if (!status && onnx->batch > 1)
		status = receive_rows(&tick, &request->inputs[0]);
	for (size_t i = 0; !status && onnx->batch == 1 && i < model->input_count; i++)
		status = receive_one(&tick, i, &request->inputs[i]);
	if (!status)
		status = create_known(&tick, request);
	if (status)
		free_request(request);
	else
		status = onnx->on_cuda || !onnx->shapes_known ? run_now(&tick, request)
							      : run_later(&tick, request);
	for (size_t i = 0; i < model->output_count; i++)
		weir_message_unref(tick.results[i]);
	return status;
}

/* --- start, stop --- */

static int threads_of(const weir_values *values)
{
	int64_t given = weir_values_int(values, "threads");
	cpu_set_t cores;

	if (given)
		return (int)given;
	return sched_getaffinity(0, sizeof cores, &cores) ? 1 : CPU_COUNT(&cores);
}

static bool is_cuda(const weir_values *values)
{
	return !strcmp(weir_values_string(values, "provider"), "cuda");
}

/* What can be said of the model and `cuda_graph` without a message. */
static bool check_graph(const struct model *model, const weir_values *values, char why[RUNTIME_WHY])
{
	if (!weir_values_bool(values, "cuda_graph") || (is_cuda(values) && model_has_sizes(model)))
		return true;
	snprintf(why, RUNTIME_WHY, "%s",
		 is_cuda(values) ? "\"cuda_graph\": the model leaves sizes open, and a graph has the same "
				   "ones at each launch: export it with fixed sizes"
				 : "\"cuda_graph\" is for the provider 'cuda'");
	return false;
}

/* What can be said of the model and `batch` without a message. */
static bool check_batch(const struct model *model, int64_t batch, char why[RUNTIME_WHY])
{
	if (batch == 1)
		return true;
	if (model->input_count != 1)
		snprintf(why, RUNTIME_WHY,
			 "\"batch\" %" PRId64 ": the model has %zu inputs, and a batch is for one", batch,
			 model->input_count);
	for (size_t i = 0; i < model->input_count + model->output_count; i++) {
		const struct model_port *port =
			i < model->input_count ? &model->inputs[i] : &model->outputs[i - model->input_count];
		char shape[SHAPE_TEXT];

		if (model->input_count != 1)
			return false;
		model_shape_text(model, port, false, sizeof shape, shape);
		if (port->rank < 1 || (port->sizes[0] > 0 && port->sizes[0] != batch)) {
			snprintf(why, RUNTIME_WHY,
				 "\"batch\" %" PRId64 ": the first size of '%s' must be open, or %" PRId64
				 ", but it is %.160s",
				 batch, port->port, batch, *shape ? shape : "of no known shape");
			return false;
		}
	}
	return true;
}

static void close_onnx(struct onnx *onnx)
{
	const OrtApi *ort = onnx->model.ort;

	cuda_close(&onnx->cuda);
	if (ort) {
		ort->ReleaseRunOptions(onnx->run_options);
		ort->ReleaseMemoryInfo(onnx->memory);
	}
	model_close(&onnx->model); /* joins the runtime's threads */
	pthread_cond_destroy(&onnx->idle);
	pthread_mutex_destroy(&onnx->lock);
}

static weir_status open_stream(weir_context *context, struct onnx *onnx)
{
	weir_stream *stream = NULL;
	weir_status status = weir_context_stream(context, &stream);

	if (status)
		return status;
	onnx->cuda.device = weir_context_device(context);
	onnx->cuda.stream = weir_stream_native(stream);
	return onnx->cuda.stream ? WEIR_OK
				 : weir_context_fail(context, "provider 'cuda' needs the backend 'cuda': use "
							      "provider 'cpu', or --backend cuda");
}

static weir_status open_model(weir_context *context, struct onnx *onnx, const weir_values *values)
{
	const char *path = weir_values_string(values, "model");
	int fd = -1;
	weir_status opened = weir_context_open(context, path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0, &fd);
	struct model *model = &onnx->model;
	struct model_wanted wanted = {
		.threads = threads_of(values),
		.batches = onnx->batch > 1,
		.options = onnx->on_cuda ? cuda_set_options : NULL,
		.arg = &onnx->cuda,
	};
	char why[RUNTIME_WHY];
	bool good;

	if (opened)
		return opened; /* the line names the file */
	good = model_open(model, fd, &wanted, why) && check_batch(model, (int64_t)onnx->batch, why) &&
	       check_graph(model, values, why) &&
	       runtime_good(
		       model->ort,
		       model->ort->CreateCpuMemoryInfo(OrtDeviceAllocator, OrtMemTypeDefault, &onnx->memory),
		       "memory", why) &&
	       runtime_good(model->ort, model->ort->CreateRunOptions(&onnx->run_options), "options", why) &&
	       (!onnx->on_cuda || cuda_open(&onnx->cuda, model, why));
	close(fd);
	return good ? WEIR_OK : weir_context_fail(context, "model '%s': %s", path, why);
}

static weir_status onnx_start(weir_context *context, void *state, const weir_values *values)
{
	struct onnx *onnx = state;
	weir_status status = WEIR_OK;

	pthread_mutex_init(&onnx->lock, NULL);
	pthread_cond_init(&onnx->idle, NULL);
	onnx->last = &onnx->first;
	onnx->batch = (size_t)weir_values_int(values, "batch");
	onnx->request_count = (size_t)weir_values_int(values, "requests");
	onnx->on_cuda = is_cuda(values);
	onnx->cuda.graph = weir_values_bool(values, "cuda_graph");
	if (onnx->on_cuda)
		status = open_stream(context, onnx);
	if (!status)
		status = open_model(context, onnx, values);
	if (status) {
		close_onnx(onnx);
		return status;
	}
	for (size_t i = 0; i < onnx->model.input_count; i++)
		onnx->input_names[i] = onnx->model.inputs[i].name;
	for (size_t i = 0; i < onnx->model.output_count; i++)
		onnx->output_names[i] = onnx->model.outputs[i].name;
	onnx->shapes_known = model_tells_shapes(&onnx->model, onnx->batch > 1);
	if (!onnx->shapes_known && !onnx->on_cuda)
		weir_context_log(context, WEIR_LOG_WARN,
				 "the inputs do not tell the shapes of all outputs: each tick computes on "
				 "its worker until they are known");
	return WEIR_OK;
}

/* A run that was cut short leaves requests; a run of the runtime ends between two of its nodes. */
static void onnx_stop(weir_context *context, void *state)
{
	struct onnx *onnx = state;
	const OrtApi *ort = onnx->model.ort;
	struct request *waiting;
	char why[RUNTIME_WHY];

	(void)context;
	pthread_mutex_lock(&onnx->lock);
	waiting = onnx->first;
	onnx->first = NULL;
	onnx->last = &onnx->first;
	if (onnx->running)
		(void)runtime_good(ort, ort->RunOptionsSetTerminate(onnx->run_options), "stop", why);
	while (onnx->running)
		pthread_cond_wait(&onnx->idle, &onnx->lock);
	pthread_mutex_unlock(&onnx->lock);
	while (waiting) {
		struct request *next = waiting->next;
		complete(waiting, "the run was stopped");
		waiting = next;
	}
	close_onnx(onnx);
}

/* --- ports --- */

static weir_status add_port(weir_ports *ports, const struct model *model, const struct model_port *from,
			    bool input, const weir_values *values)
{
	uint32_t batch = (uint32_t)weir_values_int(values, "batch");
	bool cuda = is_cuda(values);
	char shape[SHAPE_TEXT], help[160];
	weir_port port = {.size = sizeof port, .name = from->port, .help = help, .dtype = from->dtype->name};

	model_shape_text(model, from, batch > 1, sizeof shape, shape);
	snprintf(help, sizeof help, "'%.100s' of the model", from->name);
	port.shape = *shape ? shape : NULL;
	port.place = cuda ? "device" : "host";
	if (!input) {
		port.flags = WEIR_PORT_OPTIONAL;
		port.max_emits = batch;
		return weir_ports_add_output(ports, &port);
	}
	port.flags = cuda ? WEIR_PORT_DEVICE : 0;
	port.capacity = batch;
	port.take = batch > 1 ? WEIR_TAKE_ALL : 1; /* what is there, also less at the end */
	return weir_ports_add_input(ports, &port);
}

/* On the CPU in any case, since a check opens no device. */
static weir_status onnx_describe(const weir_values *values, weir_ports *ports)
{
	const char *path = weir_values_string(values, "model");
	struct model *model = calloc(1, sizeof *model);
	char why[RUNTIME_WHY];
	weir_status status = WEIR_OK;
	int fd = -1;

	if (!model)
		return WEIR_E_NOMEM;
	if (weir_ports_open(ports, path, &fd)) {
		status = weir_ports_fail(ports, "model %s", weir_last_error());
		free(model);
		return status;
	}
	if (!model_open(model, fd, &(struct model_wanted){0}, why) ||
	    !check_batch(model, weir_values_int(values, "batch"), why) || !check_graph(model, values, why))
		status = weir_ports_fail(ports, "model '%s': %s", path, why);
	for (size_t i = 0; !status && i < model->input_count; i++)
		status = add_port(ports, model, &model->inputs[i], true, values);
	for (size_t i = 0; !status && i < model->output_count; i++)
		status = add_port(ports, model, &model->outputs[i], false, values);
	model_close(model);
	free(model);
	close(fd);
	return status;
}

#define PARAMETER .size = sizeof(weir_parameter)

static const weir_parameter parameters[] = {
	{PARAMETER, .name = "model", .type = WEIR_TYPE_READ_FILE,
	 .help = "ONNX file, with its weights inside"},
	{PARAMETER, .name = "provider", .type = WEIR_TYPE_CHOICE, .choices = "cpu|cuda",
	 .fallback = "\"cpu\"",
	 .help = "where it computes; cuda: on the entity's stream, with tensors on its device"},
	{PARAMETER, .name = "cuda_graph", .type = WEIR_TYPE_BOOL, .fallback = "false",
	 .help = "with cuda: the runtime captures its work, once on each worker, and launches that; all "
		 "sizes "
		 "are the model's"},
	{PARAMETER, .name = "requests", .type = WEIR_TYPE_INT, .fallback = "2", .min = 1, .max = REQUESTS_MAX,
	 .help = "runs under way at once, on the CPU"},
	{PARAMETER, .name = "batch", .type = WEIR_TYPE_INT, .fallback = "1", .min = 1, .max = BATCH_MAX,
	 .help = "messages of one run at most, each a row of the model's first dimension"},
	{PARAMETER, .name = "threads", .type = WEIR_TYPE_INT, .fallback = "0", .min = 0, .max = THREADS_MAX,
	 .help = "of the runtime's, which compute; 0: one for each core that the process may use"},
	{.name = NULL},
};

static const weir_operator onnx = {
	.size = sizeof(weir_operator),
	.name = "onnx",
	.help = "runs a network by ONNX Runtime; its ports are the model's inputs and outputs",
	.state_size = sizeof(struct onnx),
	.flags = WEIR_OPERATOR_INSTANCES,
	.parameters = parameters,
	.start = onnx_start,
	.compute = onnx_compute,
	.stop = onnx_stop,
	.describe = onnx_describe,
};

static weir_status add(weir_registry *registry)
{
	return weir_registry_add_operator(registry, &onnx);
}

WEIR_PLUGIN(add);
