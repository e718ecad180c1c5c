#include "plugins/onnx/model.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* What a file of a network can be at most: a limit of its format. */
#define BYTES_MOST (((int64_t)1 << 31) - 1)

static const struct model_dtype dtypes[] = {
	{ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, "float32", 2, 32},
	{ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16, "float16", 2, 16},
	{ONNX_TENSOR_ELEMENT_DATA_TYPE_DOUBLE, "float64", 2, 64},
	{ONNX_TENSOR_ELEMENT_DATA_TYPE_BFLOAT16, "bfloat16", 4, 16},
	{ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT8, "uint8", 1, 8},
	{ONNX_TENSOR_ELEMENT_DATA_TYPE_INT8, "int8", 0, 8},
	{ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT16, "uint16", 1, 16},
	{ONNX_TENSOR_ELEMENT_DATA_TYPE_INT16, "int16", 0, 16},
	{ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT32, "uint32", 1, 32},
	{ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32, "int32", 0, 32},
	{ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT64, "uint64", 1, 64},
	{ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64, "int64", 0, 64},
	{ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL, "bool", 6, 8},
};

static bool no(char why[RUNTIME_WHY], const char *format, ...) WEIR_PRINTF(2, 3);

static bool no(char why[RUNTIME_WHY], const char *format, ...)
{
	va_list list;

	va_start(list, format);
	vsnprintf(why, RUNTIME_WHY, format, list);
	va_end(list);
	return false;
}

/* --- the file --- */

/* Into memory of its own, since a file that is cut short while it is mapped would end the process. */
static bool read_file(int fd, char **bytes, size_t *length, char why[RUNTIME_WHY])
{
	struct stat status;

	if (fstat(fd, &status))
		return no(why, "%s", strerror(errno));
	if (!S_ISREG(status.st_mode))
		return no(why, "is not a regular file");
	if (!status.st_size || status.st_size > BYTES_MOST)
		return no(why, "has %lld bytes: a model has 1 to %lld", (long long)status.st_size,
			  (long long)BYTES_MOST);
	*bytes = malloc((size_t)status.st_size);
	if (!*bytes)
		return no(why, "out of memory");
	while (*length < (size_t)status.st_size) {
		ssize_t got = read(fd, *bytes + *length, (size_t)status.st_size - *length);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return no(why, "%s", got ? strerror(errno) : "was cut short while it was read");
		*length += (size_t)got;
	}
	return true;
}

/* --- ports --- */

static int find_symbol(struct model *model, const char *name)
{
	int i = 0;

	while (*name && i < model->symbol_count && strcmp(model->symbols[i], name) != 0)
		i++;
	if (*name && i < model->symbol_count)
		return i;
	if (model->symbol_count == MODEL_SYMBOLS || !(model->symbols[model->symbol_count] = strdup(name)))
		return -1;
	return model->symbol_count++;
}

/* Converters (Paddle2ONNX) write "?" for each size that they do not know: two of them are not one size. */
static bool is_named(const char *name)
{
	return name && strcmp(name, "?") != 0;
}

/* A size of 0 or less is one that the model leaves open. With too many names the shape is left open. */
static bool read_shape(struct model *model, struct model_port *port, const OrtTensorTypeAndShapeInfo *info,
		       char why[RUNTIME_WHY])
{
	const OrtApi *ort = model->ort;
	const char *names[WEIR_DIMENSIONS_MAX] = {NULL};
	size_t rank = 0;

	if (!runtime_good(ort, ort->GetDimensionsCount(info, &rank), port->name, why))
		return false;
	if (rank > WEIR_DIMENSIONS_MAX)
		return no(why, "'%s' has %zu dimensions: a tensor of weir has at most %d", port->name, rank,
			  WEIR_DIMENSIONS_MAX);
	port->rank = rank ? (int)rank : -1; /* the runtime does not tell one value from no shape */
	if (!rank)
		return true;
	if (!runtime_good(ort, ort->GetDimensions(info, port->sizes, rank), port->name, why) ||
	    !runtime_good(ort, ort->GetSymbolicDimensions(info, names, rank), port->name, why))
		return false;
	for (size_t i = 0; i < rank; i++) {
		port->symbols[i] = -1;
		if (port->sizes[i] > 0)
			continue;
		port->sizes[i] = -1;
		port->symbols[i] = find_symbol(model, is_named(names[i]) ? names[i] : "");
		if (port->symbols[i] < 0)
			port->rank = -1;
	}
	return true;
}

static bool read_type(struct model *model, struct model_port *port, const OrtTypeInfo *type,
		      char why[RUNTIME_WHY])
{
	const OrtApi *ort = model->ort;
	const OrtTensorTypeAndShapeInfo *info = NULL; /* the type's */
	ONNXTensorElementDataType element = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;

	if (!runtime_good(ort, ort->CastTypeInfoToTensorInfo(type, &info), port->name, why))
		return false;
	if (!info)
		return no(why, "'%s' is no tensor: weir has tensors only", port->name);
	if (!runtime_good(ort, ort->GetTensorElementType(info, &element), port->name, why))
		return false;
	for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++)
		if (dtypes[i].type == element)
			port->dtype = &dtypes[i];
	if (!port->dtype)
		return no(why, "'%s' has elements of a type that weir has not (ONNX's number %d)", port->name,
			  (int)element);
	return read_shape(model, port, info, why);
}

static bool is_taken(const struct model *model, const char *name)
{
	for (size_t i = 0; i < model->input_count; i++)
		if (!strcmp(model->inputs[i].port, name))
			return true;
	for (size_t i = 0; i < model->output_count; i++)
		if (!strcmp(model->outputs[i].port, name))
			return true;
	return false;
}

/* A name of weir's: letters, digits, '_' and '-', at most 63; unlike those before it. */
static void name_port(const struct model *model, struct model_port *port)
{
	char name[64];
	size_t used = 0;

	if (!isalpha((unsigned char)*port->name) && *port->name != '_')
		name[used++] = '_';
	for (const char *at = port->name; *at && used < sizeof name - 1; at++)
		name[used++] = (char)(isalnum((unsigned char)*at) || *at == '-' ? *at : '_');
	name[used] = '\0';
	strcpy(port->port, name);
	for (unsigned char i = 2; is_taken(model, port->port); i++) /* there are at most 128 ports */
		snprintf(port->port, sizeof port->port, "%.59s_%hhu", name, i);
}

typedef OrtStatus *(ORT_API_CALL *name_fn)(const OrtSession *, size_t, OrtAllocator *, char **);
typedef OrtStatus *(ORT_API_CALL *type_fn)(const OrtSession *, size_t, OrtTypeInfo **);

static bool read_ports(struct model *model, struct model_port *ports, size_t total, size_t *count,
		       name_fn name, type_fn info, char why[RUNTIME_WHY])
{
	const OrtApi *ort = model->ort;

	if (total > MODEL_PORTS)
		return no(why, "the model has %zu inputs or outputs: at most %d", total, MODEL_PORTS);
	for (size_t i = 0; i < total; i++) {
		struct model_port *port = &ports[i];
		OrtTypeInfo *type = NULL;
		bool good = runtime_good(ort, name(model->session, i, model->allocator, &port->name), "names",
					 why);

		if (!good)
			return false;
		name_port(model, port);
		*count = i + 1;
		good = runtime_good(ort, info(model->session, i, &type), port->name, why) &&
		       read_type(model, port, type, why);
		ort->ReleaseTypeInfo(type);
		if (!good)
			return false;
	}
	return true;
}

/* --- opening --- */

bool model_tells_shapes(const struct model *model, bool batches)
{
	bool told[MODEL_SYMBOLS] = {false};

	for (size_t i = 0; i < model->input_count; i++)
		for (int k = 0; k < model->inputs[i].rank; k++)
			if (model->inputs[i].symbols[k] >= 0)
				told[model->inputs[i].symbols[k]] = true;
	for (size_t i = 0; i < model->output_count; i++) {
		const struct model_port *port = &model->outputs[i];

		if (port->rank < 0)
			return false;
		for (int k = batches; k < port->rank; k++)
			if (port->symbols[k] < 0 ? port->sizes[k] < 0 : !told[port->symbols[k]])
				return false;
	}
	return true;
}

static bool has_sizes(const struct model_port *ports, size_t count)
{
	for (size_t i = 0; i < count; i++)
		for (int k = 0; k < ports[i].rank || ports[i].rank < 0; k++)
			if (ports[i].rank < 0 || ports[i].sizes[k] < 0)
				return false;
	return true;
}

bool model_has_sizes(const struct model *model)
{
	return has_sizes(model->inputs, model->input_count) && has_sizes(model->outputs, model->output_count);
}

/*
 * The threads of the runtime's pool are one fewer than it is told: it counts the one that starts a run. While
 * they have nothing to do they sleep: spinning, as is the runtime's default, takes cores from weir's workers
 * and from the networks of other entities.
 */
static bool set_options(const OrtApi *ort, OrtSessionOptions *options, int threads, bool only_looks,
			char why[RUNTIME_WHY])
{
	GraphOptimizationLevel level = only_looks ? ORT_DISABLE_ALL : ORT_ENABLE_ALL;

	/*
	 * Weights must lie in the model's file: the runtime would open others by itself, wherever the model
	 * says. In a folder that is none it finds none.
	 */
	return runtime_good(ort, ort->SetIntraOpNumThreads(options, threads), "threads", why) &&
	       runtime_good(ort, ort->SetInterOpNumThreads(options, 1), "threads", why) &&
	       runtime_good(ort, ort->AddSessionConfigEntry(options, "session.intra_op.allow_spinning", "0"),
			    "threads", why) &&
	       runtime_good(ort, ort->SetSessionGraphOptimizationLevel(options, level), "options", why) &&
	       runtime_good(ort,
			    ort->AddSessionConfigEntry(options,
						       "session.model_external_initializers_file_folder_path",
						       "/dev/null"),
			    "options", why);
}

static bool open_session(struct model *model, const struct model_wanted *wanted, const char *bytes,
			 size_t length, int threads, char why[RUNTIME_WHY])
{
	const OrtApi *ort = model->ort;
	OrtSessionOptions *options = NULL;
	bool good =
		runtime_good(ort, ort->CreateSessionOptions(&options), "options", why) &&
		set_options(ort, options, threads, !wanted->threads, why) &&
		(!wanted->options || wanted->options(ort, options, wanted->arg, why)) &&
		runtime_good(ort,
			     ort->CreateSessionFromArray(model->env, bytes, length, options, &model->session),
			     "ONNX Runtime refuses it", why);

	ort->ReleaseSessionOptions(options);
	return good;
}

/* Where the thread that starts a run computes as well, the pool has one thread less. */
static bool open_again(struct model *model, const struct model_wanted *wanted, const char *bytes,
		       size_t length, char why[RUNTIME_WHY])
{
	if (!wanted->threads || wanted->options || model_tells_shapes(model, wanted->batches))
		return true;
	model->ort->ReleaseSession(model->session);
	model->session = NULL;
	return open_session(model, wanted, bytes, length, wanted->threads, why);
}

bool model_open(struct model *model, int fd, const struct model_wanted *wanted, char why[RUNTIME_WHY])
{
	size_t length = 0, inputs = 0, outputs = 0;
	char *bytes = NULL;
	const OrtApi *ort;
	bool good;

	*model = (struct model){.ort = runtime_open(why)};
	ort = model->ort;
	if (!ort)
		return false;
	/* What fails is returned, so nothing is printed. The runtime has one environment per process,
	 * counted.
	 */
	good = read_file(fd, &bytes, &length, why) &&
	       runtime_good(ort, ort->CreateEnv(ORT_LOGGING_LEVEL_FATAL, "weir", &model->env), "environment",
			    why) &&
	       open_session(model, wanted, bytes, length, wanted->threads + 1, why) &&
	       runtime_good(ort, ort->GetAllocatorWithDefaultOptions(&model->allocator), "memory", why) &&
	       runtime_good(ort, ort->SessionGetInputCount(model->session, &inputs), "inputs", why) &&
	       runtime_good(ort, ort->SessionGetOutputCount(model->session, &outputs), "outputs", why) &&
	       read_ports(model, model->inputs, inputs, &model->input_count, ort->SessionGetInputName,
			  ort->SessionGetInputTypeInfo, why) &&
	       read_ports(model, model->outputs, outputs, &model->output_count, ort->SessionGetOutputName,
			  ort->SessionGetOutputTypeInfo, why) &&
	       open_again(model, wanted, bytes, length, why);
	free(bytes);
	return good;
}

void model_close(struct model *model)
{
	const OrtApi *ort = model->ort;

	if (!ort)
		return;
	for (size_t i = 0; i < model->input_count; i++)
		(void)runtime_good(ort, ort->AllocatorFree(model->allocator, model->inputs[i].name), "",
				   (char[RUNTIME_WHY]){0});
	for (size_t i = 0; i < model->output_count; i++)
		(void)runtime_good(ort, ort->AllocatorFree(model->allocator, model->outputs[i].name), "",
				   (char[RUNTIME_WHY]){0});
	for (int i = 0; i < model->symbol_count; i++)
		free(model->symbols[i]);
	ort->ReleaseSession(model->session);
	ort->ReleaseEnv(model->env);
	*model = (struct model){0};
}

/* --- texts --- */

static bool is_plain(const char *name)
{
	if (!isalpha((unsigned char)*name) && *name != '_')
		return false;
	while (isalnum((unsigned char)*name) || *name == '_')
		name++;
	return !*name;
}

void model_shape_text(const struct model *model, const struct model_port *port, bool rows, size_t room,
		      char *out)
{
	size_t used = 0;

	*out = '\0';
	for (int i = 0; i < port->rank && used < room; i++) {
		const char *name = port->symbols[i] < 0 ? "" : model->symbols[port->symbols[i]];
		const char *before = i ? ", " : "[";

		if (rows && !i)
			used += (size_t)snprintf(out + used, room - used, "%s1", before);
		else if (port->symbols[i] < 0)
			used += (size_t)snprintf(out + used, room - used, "%s%lld", before,
						 (long long)port->sizes[i]);
		else if (is_plain(name) && strlen(name) < 32)
			used += (size_t)snprintf(out + used, room - used, "%s%s", before, name);
		else
			used += (size_t)snprintf(out + used, room - used, "%sany%d", before,
						 port->symbols[i]);
	}
	if (port->rank > 0 && used < room)
		snprintf(out + used, room - used, "]");
}
