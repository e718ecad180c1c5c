/*
 * The operator `network` runs a network by OpenVINO, with several requests in flight; the condition
 * `inference` (inference.c) says when it ticks.
 *
 * Requests are a ring. A tick emits the results of the oldest request, if that is done, and starts the next
 * free one with the messages that it received; so results come in the order of the frames, and no tick waits.
 * Each change of the ring tells the condition what may happen next, and so does the callback of a request.
 *
 * Threads: OpenVINO calls `finished` on a thread of its own. It shares `done`, `oldest` and `in_flight` with
 * the ticks, under one lock, and the word is told under that lock, so that it always states the newest state.
 * A request and its messages belong to the ticks before it is started and after it is done, and to OpenVINO
 * between. `stop` cancels what is in flight and waits for it: afterwards OpenVINO calls nothing.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inference.h"
#include "model.h"

enum { REQUESTS_MAX = 256, BATCH_MAX = 1024 };

struct request {
	struct network *network;
	ov_infer_request_t *infer;
	ov_callback_t callback; /* OpenVINO keeps its address */
	uint8_t *batch;         /* where frames are copied together; NULL: a batch of one is not copied */
	weir_message **frames;  /* held while OpenVINO reads them, and for their stamps */
	size_t frame_count;
	weir_message *result; /* OpenVINO writes it */
	bool done;            /* guarded by the lock */
};

struct network {
	struct model model;
	weir_entity *entity;
	size_t batch, request_count;
	struct request *requests;
	pthread_mutex_t lock;
	size_t oldest, in_flight; /* guarded by the lock; only ticks change them */
};

/* --- what the condition is told --- */

/* Called with the lock held, after each change of what it reads. */
static weir_status tell_locked(const struct network *network)
{
	weir_told told = WEIR_TOLD_READY;

	if (network->in_flight && network->requests[network->oldest].done)
		told = WEIR_TOLD_EVENT_DONE;
	else if (network->in_flight == network->request_count)
		told = WEIR_TOLD_WAIT;
	else if (network->in_flight)
		told = WEIR_TOLD_EVENT_WAITING;
	return weir_entity_tell(network->entity, "inference", told);
}

/* Runs on a thread of OpenVINO's, also if the request failed or was cancelled. */
static void finished(void *arg)
{
	struct request *request = arg;
	struct network *network = request->network;

	pthread_mutex_lock(&network->lock);
	request->done = true;
	(void)tell_locked(network);
	pthread_mutex_unlock(&network->lock);
}

/* Ticks alone call this, so they read both numbers without the lock. */
static void set_ring(struct network *network, size_t oldest, size_t in_flight)
{
	pthread_mutex_lock(&network->lock);
	network->oldest = oldest;
	network->in_flight = in_flight;
	(void)tell_locked(network);
	pthread_mutex_unlock(&network->lock);
}

static struct request *oldest_done(struct network *network)
{
	struct request *request = &network->requests[network->oldest];
	bool done;

	pthread_mutex_lock(&network->lock);
	done = network->in_flight && request->done;
	pthread_mutex_unlock(&network->lock);
	return done ? request : NULL;
}

/* --- a request --- */

static weir_status refuse_openvino(weir_context *context, const char *what, ov_status_e status)
{
	char text[OPENVINO_TEXT];

	return weir_context_fail(context, "%s: %s", what, model_error(status, text));
}

static void drop_messages(struct request *request)
{
	for (size_t i = 0; i < request->frame_count; i++)
		weir_message_unref(request->frames[i]);
	weir_message_unref(request->result);
	request->frame_count = 0;
	request->result = NULL;
}

/* The memory of a message as a tensor of the request, which keeps it until it gets another one. */
static weir_status set_tensor(weir_context *context, struct request *request, const struct model_port *port,
			      void *data, ov_status_e (*set)(ov_infer_request_t *, const ov_tensor_t *))
{
	ov_shape_t shape = {port->dimensions, (int64_t *)port->shape};
	ov_tensor_t *tensor = NULL;
	ov_status_e status = ov_tensor_create_from_host_ptr(port->type, shape, data, &tensor);

	if (status == OK)
		status = set(request->infer, tensor);
	ov_tensor_free(tensor);
	return status == OK ? WEIR_OK : refuse_openvino(context, "OpenVINO refuses a tensor", status);
}

static weir_status refuse_frame(weir_context *context, const struct model_port *port,
				const weir_tensor *tensor)
{
	char found[PORT_TEXT], wanted[PORT_TEXT];

	return weir_context_fail(context,
				 "input 'in' received %s, and the network takes dense %s in host memory",
				 model_tensor_text(tensor, found), model_port_text(port, 1, wanted));
}

static weir_status receive(weir_context *context, struct network *network, struct request *request)
{
	const struct model_port *port = &network->model.in;
	size_t count = weir_context_count(context, 0);

	if (count > network->batch)
		return weir_context_fail(
			context,
			"a tick received %zu frames, and 'batch' is %zu: \"take\" of 'in' must not be larger",
			count, network->batch);
	for (size_t i = 0; i < count; i++) {
		weir_message *frame = weir_context_message(context, 0, i);
		if (!model_port_fits(port, weir_message_tensor(frame)))
			return refuse_frame(context, port, weir_message_tensor(frame));
		request->frames[request->frame_count++] = weir_message_ref(frame);
		if (request->batch)
			memcpy(request->batch + i * port->frame_bytes, weir_message_data(frame),
			       port->frame_bytes);
	}
	if (request->batch)
		return WEIR_OK;
	return set_tensor(context, request, port, weir_message_data(request->frames[0]),
			  ov_infer_request_set_input_tensor);
}

static weir_status create_result(weir_context *context, struct network *network, struct request *request)
{
	const struct model_port *port = &network->model.out;
	const weir_tensor like = {.size = sizeof like,
				  .dimensions = port->dimensions,
				  .shape = port->shape,
				  .code = port->code,
				  .bits = port->bits};
	weir_status status = weir_context_create_tensor(context, &like, WEIR_TENSOR_HOST, &request->result);

	return status ? status
		      : set_tensor(context, request, port, weir_message_data(request->result),
				   ov_infer_request_set_output_tensor);
}

/* Starts a free request with what the tick received. If it fails, stop drops what the request holds. */
static weir_status start_request(weir_context *context, struct network *network)
{
	size_t at = (network->oldest + network->in_flight) % network->request_count;
	struct request *request = &network->requests[at];
	weir_status status = receive(context, network, request);
	ov_status_e started;

	if (!status)
		status = create_result(context, network, request);
	if (status)
		return status;
	request->done = false; /* no callback of it is due: the lock is not needed */
	set_ring(network, network->oldest, network->in_flight + 1); /* before the callback can come */
	started = ov_infer_request_start_async(request->infer);
	if (started == OK)
		return WEIR_OK;
	set_ring(network, network->oldest, network->in_flight - 1);
	return refuse_openvino(context, "a request does not start", started);
}

/* --- results --- */

static void drop_whole(void *whole)
{
	weir_message_unref(whole);
}

/* The i-th row of a result: a message of its own around the same memory. */
static weir_status cut_row(weir_context *context, const struct model_port *port, weir_message *whole,
			   size_t i, weir_message **out)
{
	weir_tensor row = *weir_message_tensor(whole);
	int64_t shape[WEIR_DIMENSIONS_MAX];
	weir_status status;

	memcpy(shape, port->shape, sizeof shape);
	shape[0] = 1;
	row.shape = shape;
	row.data = (uint8_t *)weir_message_data(whole) + i * port->frame_bytes;
	status = weir_message_wrap_tensor(weir_context_graph(context), &row, drop_whole,
					  weir_message_ref(whole), out);
	if (status)
		weir_message_unref(whole);
	return status;
}

/* Each result has the stamp of its frame. */
static weir_status emit_row(weir_context *context, struct network *network, struct request *request, size_t i)
{
	weir_message *row = NULL;
	weir_status status = WEIR_OK;

	if (network->batch == 1)
		row = weir_message_ref(request->result);
	else
		status = cut_row(context, &network->model.out, request->result, i, &row);
	if (!status)
		status = weir_message_set_stamp(row, weir_message_stamp(request->frames[i]));
	if (!status)
		return weir_context_emit(context, 0, row);
	weir_message_unref(row);
	return status;
}

/*
 * Frees the oldest request, which is done. The wait returns its error; it only waits for the end of the
 * callback, which has told us that the request is done.
 */
static weir_status emit_oldest(weir_context *context, struct network *network, struct request *request)
{
	ov_status_e inferred = ov_infer_request_wait(request->infer);
	weir_status status = WEIR_OK;

	if (inferred != OK)
		return refuse_openvino(context, "the network failed", inferred);
	for (size_t i = 0; !status && i < request->frame_count; i++)
		status = emit_row(context, network, request, i);
	drop_messages(request);
	set_ring(network, (network->oldest + 1) % network->request_count, network->in_flight - 1);
	return status;
}

static weir_status network_compute(weir_context *context, void *state)
{
	struct network *network = state;
	struct request *done = oldest_done(network);
	weir_status status = done ? emit_oldest(context, network, done) : WEIR_OK;

	if (!status && weir_context_count(context, 0))
		status = start_request(context, network);
	return status;
}

/* --- start, stop --- */

/* Frames of a batch are copied into the request's own tensor; rows that a smaller batch leaves are computed,
 * too. */
static ov_status_e open_batch(struct network *network, struct request *request)
{
	ov_tensor_t *tensor = NULL;
	void *data = NULL;
	ov_status_e status = ov_infer_request_get_input_tensor(request->infer, &tensor);

	if (status == OK)
		status = ov_tensor_data(tensor, &data);
	if (status == OK)
		memset(data, 0, network->batch * network->model.in.frame_bytes);
	request->batch = data;
	ov_tensor_free(tensor); /* the request has it, too */
	return status;
}

static weir_status open_request(weir_context *context, struct network *network, struct request *request)
{
	ov_status_e status;

	request->network = network;
	request->callback = (ov_callback_t){finished, request};
	request->frames = calloc(network->batch, sizeof *request->frames);
	if (!request->frames)
		return WEIR_E_NOMEM;
	status = ov_compiled_model_create_infer_request(network->model.compiled, &request->infer);
	if (status == OK)
		status = ov_infer_request_set_callback(request->infer, &request->callback);
	if (status == OK && network->batch > 1)
		status = open_batch(network, request);
	return status == OK ? WEIR_OK : refuse_openvino(context, "OpenVINO makes no request", status);
}

/* Half-started ones are allowed. */
static void close_network(struct network *network)
{
	for (size_t i = 0; network->requests && i < network->request_count; i++)
		if (network->requests[i].infer)
			(void)ov_infer_request_cancel(network->requests[i].infer);
	for (size_t i = 0; network->requests && i < network->request_count; i++) {
		struct request *request = &network->requests[i];
		if (request->infer)
			(void)ov_infer_request_wait(request->infer);
		ov_infer_request_free(request->infer);
		drop_messages(request);
		free(request->frames);
	}
	free(network->requests);
	model_close(&network->model);
	pthread_mutex_destroy(&network->lock);
}

static weir_status open_network(weir_context *context, struct network *network, const weir_values *values)
{
	const struct model_options options = {
		.path = weir_values_string(values, "model"),
		.device = weir_values_string(values, "device"),
		.batch = weir_values_int(values, "batch"),
		.requests = weir_values_int(values, "requests"),
		.properties = weir_values_string(values, "properties"),
	};
	weir_status status = model_open(&network->model, context, &options);

	network->batch = (size_t)options.batch;
	network->request_count = (size_t)options.requests;
	network->requests = calloc(network->request_count, sizeof *network->requests);
	if (!status && !network->requests)
		status = WEIR_E_NOMEM;
	for (size_t i = 0; !status && i < network->request_count; i++)
		status = open_request(context, network, &network->requests[i]);
	return status;
}

static weir_status network_start(weir_context *context, void *state, const weir_values *values)
{
	struct network *network = state;
	weir_status status;

	pthread_mutex_init(&network->lock, NULL);
	network->entity = weir_context_entity(context);
	status = open_network(context, network, values);
	if (!status) /* forgets what cancelled requests of the run before told */
		status = weir_entity_tell(network->entity, "inference", WEIR_TOLD_READY);
	if (status)
		close_network(network);
	return status;
}

static void network_stop(weir_context *context, void *state)
{
	(void)context;
	close_network(state);
}

static const weir_parameter parameters[] = {
	{
		.size = sizeof(weir_parameter),
		.name = "model",
		.type = WEIR_TYPE_STRING,
		.help = "file of the network: ONNX, or OpenVINO's .xml with its .bin",
	},
	{
		.size = sizeof(weir_parameter),
		.name = "device",
		.type = WEIR_TYPE_STRING,
		.fallback = "\"CPU\"",
		.help = "OpenVINO's name of the device that computes",
	},
	{
		.size = sizeof(weir_parameter),
		.name = "requests",
		.type = WEIR_TYPE_INT,
		.fallback = "2",
		.min = 1,
		.max = REQUESTS_MAX,
		.help = "how many inferences may be in flight at once",
	},
	{
		.size = sizeof(weir_parameter),
		.name = "batch",
		.type = WEIR_TYPE_INT,
		.fallback = "1",
		.min = 1,
		.max = BATCH_MAX,
		.help = "frames of one inference; set \"take\" of 'in' and \"max_emits\" of 'out' to the "
			"same number",
	},
	{
		.size = sizeof(weir_parameter),
		.name = "properties",
		.type = WEIR_TYPE_STRING,
		.fallback = "\"\"",
		.help = "OpenVINO's properties of the device, \"KEY=VALUE KEY=VALUE\"",
	},
	{.name = NULL},
};

static const weir_port inputs[] = {
	{
		.size = sizeof(weir_port),
		.name = "in",
		.kinds = WEIR_KIND_TENSOR,
		.help = "frames: tensors with the type and shape of the network's input, for one frame",
	},
	{.name = NULL},
};

static const weir_port outputs[] = {
	{
		.size = sizeof(weir_port),
		.name = "out",
		.kinds = WEIR_KIND_TENSOR,
		.help = "the results, one for each frame, in the order of the frames, with their stamps",
	},
	{.name = NULL},
};

static const char *const conditions[] = {"{\"type\": \"inference\", \"port\": \"in\"}", NULL};

static const weir_operator network = {
	.size = sizeof(weir_operator),
	.name = "network",
	.help = "runs a network by OpenVINO, with several requests in flight",
	.state_size = sizeof(struct network),
	.parameters = parameters,
	.inputs = inputs,
	.outputs = outputs,
	.start = network_start,
	.compute = network_compute,
	.stop = network_stop,
	.conditions = conditions,
};

/* --- the plugin --- */

static weir_status add(weir_registry *registry)
{
	weir_status status = weir_registry_add_condition(registry, &inference);

	return status ? status : weir_registry_add_operator(registry, &network);
}

WEIR_PLUGIN(add);
