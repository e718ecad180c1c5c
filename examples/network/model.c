/*
 * Reading, checking and compiling a network. The file is opened by weir_context_open and handed to OpenVINO
 * as bytes, so that --root holds for it, too; the weights of OpenVINO's own format (.xml) are in a .bin
 * beside it.
 */
#include "model.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- texts --- */

/* OpenVINO's texts have several lines, which begin with the place in its source that raised them. */
static bool names_source(const char *line)
{
	return !strncmp(line, "Exception from ", 15) || !strncmp(line, "Check '", 7);
}

const char *model_error(ov_status_e status, char text[OPENVINO_TEXT])
{
	const char *lines = ov_get_last_err_msg(), *from, *end;
	size_t at = 0;

	text[0] = 0;
	for (from = lines; from && *from; from = *end ? end + 1 : end) {
		from += strspn(from, " \t\n");
		end = from + strcspn(from, "\n");
		if (from == end || (names_source(from) && *end && end[1]) || at >= OPENVINO_TEXT - 3)
			continue;
		at += (size_t)snprintf(text + at, OPENVINO_TEXT - at, "%s%.*s", at ? "; " : "",
				       (int)(end - from), from);
	}
	ov_free(lines);
	if (!text[0])
		snprintf(text, OPENVINO_TEXT, "%s", ov_get_error_info(status));
	return text;
}

struct type_name {
	ov_element_type_e type;
	uint8_t code, bits;
	const char *name;
};

static const struct type_name types[] = {
	{F32, 2, 32, "float32"}, {F16, 2, 16, "float16"}, {BF16, 4, 16, "bfloat16"}, {F64, 2, 64, "float64"},
	{U8, 1, 8, "uint8"},     {I8, 0, 8, "int8"},      {U16, 1, 16, "uint16"},    {I16, 0, 16, "int16"},
	{U32, 1, 32, "uint32"},  {I32, 0, 32, "int32"},   {U64, 1, 64, "uint64"},    {I64, 0, 64, "int64"},
};
enum { TYPES = sizeof types / sizeof *types };

static size_t add_type(char text[PORT_TEXT], uint8_t code, uint8_t bits)
{
	for (size_t i = 0; i < TYPES; i++)
		if (types[i].code == code && types[i].bits == bits)
			return (size_t)snprintf(text, PORT_TEXT, "%s", types[i].name);
	return (size_t)snprintf(text, PORT_TEXT, "type %d of %d bits", code, bits);
}

static size_t add_shape(char text[PORT_TEXT], size_t at, const int64_t *shape, int32_t dimensions)
{
	for (int32_t i = 0; i < dimensions && at < PORT_TEXT - 24; i++)
		at += (size_t)snprintf(text + at, PORT_TEXT - at, "%s%lld", i ? ", " : " [",
				       (long long)shape[i]);
	return at + (size_t)snprintf(text + at, PORT_TEXT - at, dimensions ? "]" : " scalar");
}

const char *model_port_text(const struct model_port *port, int64_t frames, char text[PORT_TEXT])
{
	int64_t shape[WEIR_DIMENSIONS_MAX];

	memcpy(shape, port->shape, sizeof shape);
	shape[0] = frames;
	add_shape(text, add_type(text, port->code, port->bits), shape, port->dimensions);
	return text;
}

static bool is_dense(const weir_tensor *tensor)
{
	int64_t stride = 1;

	for (int32_t i = tensor->dimensions - 1; tensor->strides && i >= 0; stride *= tensor->shape[i--])
		if (tensor->shape[i] > 1 && tensor->strides[i] != stride)
			return false;
	return true;
}

const char *model_tensor_text(const weir_tensor *tensor, char text[PORT_TEXT])
{
	size_t at = add_shape(text, add_type(text, tensor->code, tensor->bits), tensor->shape,
			      tensor->dimensions);

	if (tensor->device != WEIR_DEVICE_HOST)
		snprintf(text + at, PORT_TEXT - at, " on device %d", tensor->device);
	else if (!is_dense(tensor))
		snprintf(text + at, PORT_TEXT - at, " that is not dense");
	return text;
}

bool model_port_fits(const struct model_port *port, const weir_tensor *tensor)
{
	int32_t frame = port->dimensions - 1, leading = tensor->dimensions - frame;

	if (tensor->code != port->code || tensor->bits != port->bits || tensor->lanes > 1)
		return false;
	if (leading < 0 || leading > 1 || (leading && tensor->shape[0] != 1))
		return false;
	return tensor->device == WEIR_DEVICE_HOST && is_dense(tensor) &&
	       !memcmp(tensor->shape + leading, port->shape + 1, (size_t)frame * sizeof *port->shape);
}

/* --- the file --- */

struct bytes {
	char *data;
	size_t size;
};

static weir_status refuse_file(weir_context *context, const char *path)
{
	const char *why = errno == EXDEV ? "it is outside of the root" : strerror(errno);

	return weir_context_fail(context, "cannot read the network '%s': %s", path, why);
}

static bool read_all(int fd, struct bytes *bytes)
{
	size_t at = 0;

	while (at < bytes->size) {
		ssize_t got = read(fd, bytes->data + at, bytes->size - at);
		if (got < 0 && errno == EINTR)
			continue;
		if (!got)
			errno = EIO; /* it has become shorter */
		if (got <= 0)
			return false;
		at += (size_t)got;
	}
	return true;
}

static weir_status read_file(weir_context *context, const char *path, struct bytes *bytes)
{
	struct stat status;
	bool right;
	int fd;

	if (weir_context_open(context, path, O_RDONLY | O_NONBLOCK, 0, &fd)) /* a FIFO would block */
		return refuse_file(context, path);
	if (fstat(fd, &status) || !S_ISREG(status.st_mode) || !status.st_size) {
		close(fd);
		return weir_context_fail(context, "'%s' is no network: it is no file, or empty", path);
	}
	bytes->size = (size_t)status.st_size;
	bytes->data = malloc(bytes->size);
	right = bytes->data && read_all(fd, bytes);
	close(fd);
	return right ? WEIR_OK : refuse_file(context, path);
}

/* The weights of model.xml: model.bin. A file of another kind has none beside it. */
static weir_status read_weights(weir_context *context, const char *path, struct bytes *bytes)
{
	size_t length = strlen(path);
	char *beside;
	weir_status status;

	if (length < 4 || strcmp(path + length - 4, ".xml"))
		return WEIR_OK;
	beside = strdup(path);
	if (!beside)
		return WEIR_E_NOMEM;
	memcpy(beside + length - 4, ".bin", 4);
	status = read_file(context, beside, bytes);
	free(beside);
	return status;
}

static ov_status_e parse(const struct model *model, const struct bytes *text, const struct bytes *weights,
			 ov_model_t **out)
{
	int64_t bytes = (int64_t)weights->size;
	ov_shape_t shape = {1, &bytes};
	ov_tensor_t *tensor = NULL;
	ov_status_e status = OK;

	if (weights->data)
		status = ov_tensor_create_from_host_ptr(U8, shape, weights->data, &tensor);
	if (status == OK)
		status = ov_core_read_model_from_memory_buffer(model->core, text->data, text->size, tensor,
							       out);
	ov_tensor_free(tensor);
	return status;
}

static weir_status read_model(struct model *model, weir_context *context, const char *path, ov_model_t **out)
{
	struct bytes text = {NULL, 0}, weights = {NULL, 0};
	weir_status status = read_file(context, path, &text);
	char why[OPENVINO_TEXT];
	ov_status_e read;

	if (!status)
		status = read_weights(context, path, &weights);
	model->weights = weights.data;
	if (!status) {
		read = parse(model, &text, &weights, out);
		if (read != OK)
			status = weir_context_fail(context, "'%s' is no network that OpenVINO reads: %s",
						   path, model_error(read, why));
	}
	free(text.data);
	return status;
}

/* --- the ports --- */

static bool read_type(struct model_port *port)
{
	for (size_t i = 0; i < TYPES; i++)
		if (types[i].type == port->type) {
			port->code = types[i].code;
			port->bits = types[i].bits;
			return true;
		}
	return false;
}

/* The first dimension may be open, and stays 0 then. */
static bool read_shape(struct model_port *port, const ov_partial_shape_t *shape)
{
	int64_t rank = shape->rank.max;

	if (shape->rank.min != rank || rank < 1 || rank > WEIR_DIMENSIONS_MAX)
		return false;
	port->dimensions = (int32_t)rank;
	port->frame_bytes = port->bits / 8;
	for (int64_t i = 0; i < rank; i++) {
		bool open = shape->dims[i].min != shape->dims[i].max;
		if (i && (open || shape->dims[i].min < 1))
			return false;
		port->shape[i] = open ? 0 : shape->dims[i].min;
		port->frame_bytes *= i ? (size_t)port->shape[i] : 1;
	}
	return true;
}

static weir_status read_port(struct model_port *port, weir_context *context,
			     const ov_output_const_port_t *from, const char *path, const char *which)
{
	ov_partial_shape_t shape = {.dims = NULL};
	weir_status status = WEIR_OK;

	if (ov_port_get_element_type(from, &port->type) != OK || !read_type(port))
		return weir_context_fail(context, "the network '%s' has an %s of a type that no message has",
					 path, which);
	if (ov_port_get_partial_shape(from, &shape) != OK || !read_shape(port, &shape)) {
		const char *text = ov_partial_shape_to_string(shape);
		status = weir_context_fail(
			context, "the network '%s' has the %s %s: each dimension but the first must be fixed",
			path, which, text);
		ov_free(text);
	}
	ov_partial_shape_free(&shape);
	return status;
}

static weir_status read_ports(struct model *model, weir_context *context, const ov_model_t *from,
			      const char *path)
{
	ov_output_const_port_t *in = NULL, *out = NULL;
	size_t inputs = 0, outputs = 0;
	weir_status status;

	if (ov_model_inputs_size(from, &inputs) != OK || ov_model_outputs_size(from, &outputs) != OK ||
	    inputs != 1 || outputs != 1 || ov_model_const_input(from, &in) != OK ||
	    ov_model_const_output(from, &out) != OK) {
		status = weir_context_fail(
			context, "the network '%s' has %zu inputs and %zu outputs: one of each can be used",
			path, inputs, outputs);
	} else {
		status = read_port(&model->in, context, in, path, "input");
		if (!status)
			status = read_port(&model->out, context, out, path, "output");
	}
	ov_output_const_port_free(in);
	ov_output_const_port_free(out);
	return status;
}

/* --- the batch, the compiler --- */

/* Networks often have a first dimension of 1 or an open one; OpenVINO carries another one through all layers.
 */
static weir_status set_batch(struct model *model, weir_context *context, const ov_model_t *to,
			     const struct model_options *options)
{
	ov_partial_shape_t shape = {.dims = NULL};
	char why[OPENVINO_TEXT], text[PORT_TEXT];
	ov_status_e status;

	if (model->in.shape[0] == options->batch)
		return WEIR_OK;
	model->in.shape[0] = options->batch;
	status = ov_partial_shape_create_static(model->in.dimensions, model->in.shape, &shape);
	if (status == OK)
		status = ov_model_reshape_single_input(to, shape);
	ov_partial_shape_free(&shape);
	return status == OK
		       ? read_ports(model, context, to, options->path)
		       : weir_context_fail(context, "the network '%s' cannot have the input %s: %s",
					   options->path, model_port_text(&model->in, options->batch, text),
					   model_error(status, why));
}

static weir_status check_batch(const struct model *model, weir_context *context,
			       const struct model_options *options)
{
	char text[PORT_TEXT];

	if (model->out.shape[0] == options->batch)
		return WEIR_OK;
	return weir_context_fail(context,
				 "the network '%s' has the output %s, and so no row for each of %lld frames",
				 options->path, model_port_text(&model->out, model->out.shape[0], text),
				 (long long)options->batch);
}

static weir_status set_property(struct model *model, weir_context *context, const char *device,
				const char *key, const char *value)
{
	char why[OPENVINO_TEXT];
	ov_status_e status = ov_core_set_property(model->core, device, key, value);

	return status == OK ? WEIR_OK
			    : weir_context_fail(context, "device '%s' refuses the property %s=%s: %s", device,
						key, value, model_error(status, why));
}

/* "KEY=VALUE KEY=VALUE". As many streams as requests, if they say nothing else: OpenVINO runs one request on
 * each. */
static weir_status set_properties(struct model *model, weir_context *context,
				  const struct model_options *options)
{
	char *text = strdup(options->properties), streams[24], *rest = text;
	weir_status status;

	if (!text)
		return WEIR_E_NOMEM;
	snprintf(streams, sizeof streams, "%lld", (long long)options->requests);
	status = set_property(model, context, options->device, ov_property_key_num_streams, streams);
	for (char *key; !status && (key = strtok_r(rest, " ", &rest));) {
		char *equals = strchr(key, '=');
		if (equals)
			*equals = 0;
		status = equals ? set_property(model, context, options->device, key, equals + 1)
				: weir_context_fail(context, "property '%s' is not KEY=VALUE", key);
	}
	free(text);
	return status;
}

static weir_status compile(struct model *model, weir_context *context, const ov_model_t *from,
			   const struct model_options *options)
{
	char why[OPENVINO_TEXT];
	weir_status status = set_properties(model, context, options);
	ov_status_e compiled;

	if (status)
		return status;
	compiled = ov_core_compile_model(model->core, from, options->device, 0, &model->compiled);
	if (compiled != OK)
		return weir_context_fail(context, "the network '%s' does not run on device '%s': %s",
					 options->path, options->device, model_error(compiled, why));
	return WEIR_OK;
}

weir_status model_open(struct model *model, weir_context *context, const struct model_options *options)
{
	ov_model_t *read = NULL;
	char why[OPENVINO_TEXT];
	ov_status_e status = ov_core_create(&model->core);
	weir_status result;

	if (status != OK)
		return weir_context_fail(context, "OpenVINO does not start: %s", model_error(status, why));
	result = read_model(model, context, options->path, &read);
	if (!result)
		result = read_ports(model, context, read, options->path);
	if (!result)
		result = set_batch(model, context, read, options);
	if (!result)
		result = check_batch(model, context, options);
	if (!result)
		result = compile(model, context, read, options);
	ov_model_free(read);
	return result;
}

void model_close(struct model *model)
{
	ov_compiled_model_free(model->compiled);
	ov_core_free(model->core);
	free(model->weights);
}
