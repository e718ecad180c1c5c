/*
 * Raw tensors from and to files, for the tests of plugins/onnx: `tensor_read` emits one tensor after the
 * other from a file, stamped with its number; `tensor_write` appends what it receives.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir.h>

struct reader {
	FILE *file;
	weir_tensor like;
	int64_t shape[WEIR_DIMENSIONS_MAX];
	uint64_t count, limit;
};

/* "1,3,224,224" */
static weir_status read_shape(weir_context *context, struct reader *reader, const char *text)
{
	char *end;

	while (*text && reader->like.dimensions < WEIR_DIMENSIONS_MAX) {
		reader->shape[reader->like.dimensions++] = strtoll(text, &end, 10);
		text = *end ? end + 1 : end;
	}
	return *text ? weir_context_fail(context, "too many dimensions") : WEIR_OK;
}

static weir_status reader_start(weir_context *context, void *state, const weir_values *values)
{
	struct reader *reader = state;

	reader->file = fopen(weir_values_string(values, "path"), "rb");
	if (!reader->file)
		return weir_context_fail(context, "cannot read '%s'", weir_values_string(values, "path"));
	reader->limit = (uint64_t)weir_values_int(values, "count");
	reader->like = (weir_tensor){.size = sizeof reader->like,
				     .shape = reader->shape,
				     .code = (uint8_t)weir_values_int(values, "code"),
				     .bits = (uint8_t)weir_values_int(values, "bits")};
	return read_shape(context, reader, weir_values_string(values, "shape"));
}

static weir_status reader_compute(weir_context *context, void *state)
{
	struct reader *reader = state;
	weir_message *message = NULL;
	weir_status status = weir_context_create_tensor(context, &reader->like, WEIR_TENSOR_HOST, &message);

	if (status)
		return status;
	if (!fread(weir_message_data(message), weir_message_size(message), 1, reader->file)) {
		rewind(reader->file); /* `count` may be larger than the file */
		if (!fread(weir_message_data(message), weir_message_size(message), 1, reader->file)) {
			weir_message_unref(message);
			return weir_context_fail(context, "the file holds no tensor");
		}
	}
	if (++reader->count == reader->limit)
		weir_context_finish(context);
	weir_context_set_stamp(context, (weir_stamp){weir_context_now(context), reader->count});
	return weir_context_emit(context, 0, message);
}

static void reader_stop(weir_context *context, void *state)
{
	struct reader *reader = state;

	(void)context;
	fclose(reader->file);
}

struct writer {
	FILE *file;
	uint64_t tag;
};

static weir_status writer_start(weir_context *context, void *state, const weir_values *values)
{
	struct writer *writer = state;

	writer->file = fopen(weir_values_string(values, "path"), "wb");
	return writer->file ? WEIR_OK : weir_context_fail(context, "cannot write");
}

static weir_status writer_compute(weir_context *context, void *state)
{
	struct writer *writer = state;

	for (size_t i = 0; i < weir_context_count(context, 0); i++) {
		weir_message *message = weir_context_message(context, 0, i);
		uint64_t tag = weir_message_stamp(message).tag;
		if (tag != ++writer->tag)
			return weir_context_fail(context, "result %llu has the tag %llu",
						 (unsigned long long)writer->tag, (unsigned long long)tag);
		size_t bytes = weir_message_size(message);

		if (bytes && !fwrite(weir_message_data(message), bytes, 1, writer->file))
			return weir_context_fail(context, "cannot write");
	}
	return WEIR_OK;
}

static void writer_stop(weir_context *context, void *state)
{
	struct writer *writer = state;

	(void)context;
	fclose(writer->file);
}

static const weir_parameter reader_parameters[] = {
	{.size = sizeof(weir_parameter), .name = "path", .type = WEIR_TYPE_STRING, .help = "the file"},
	{.size = sizeof(weir_parameter),
	 .name = "shape",
	 .type = WEIR_TYPE_STRING,
	 .help = "\"1,3,224,224\""},
	{.size = sizeof(weir_parameter),
	 .name = "count",
	 .type = WEIR_TYPE_INT,
	 .fallback = "0",
	 .help = "tensors to emit, from the file again and again; 0: without end"},
	{.size = sizeof(weir_parameter),
	 .name = "code",
	 .type = WEIR_TYPE_INT,
	 .fallback = "2",
	 .help = "DLPack's code of the type"},
	{.size = sizeof(weir_parameter),
	 .name = "bits",
	 .type = WEIR_TYPE_INT,
	 .fallback = "32",
	 .help = "of the type"},
	{.name = NULL},
};

static const weir_parameter writer_parameters[] = {
	{.size = sizeof(weir_parameter), .name = "path", .type = WEIR_TYPE_STRING, .help = "the file"},
	{.name = NULL},
};

static const weir_port in[] = {
	{.size = sizeof(weir_port), .name = "in", .kinds = WEIR_KIND_TENSOR, .help = "a tensor"},
	{.name = NULL}};
static const weir_port out[] = {
	{.size = sizeof(weir_port), .name = "out", .kinds = WEIR_KIND_TENSOR, .help = "a tensor"},
	{.name = NULL}};

static const weir_operator reader = {.size = sizeof(weir_operator),
				     .name = "tensor_read",
				     .help = "emits the tensors of a file",
				     .state_size = sizeof(struct reader),
				     .parameters = reader_parameters,
				     .outputs = out,
				     .start = reader_start,
				     .compute = reader_compute,
				     .stop = reader_stop};
static const weir_operator writer = {.size = sizeof(weir_operator),
				     .name = "tensor_write",
				     .help = "writes tensors to a file and checks their tags",
				     .flags = WEIR_OPERATOR_EFFECTS,
				     .state_size = sizeof(struct writer),
				     .parameters = writer_parameters,
				     .inputs = in,
				     .start = writer_start,
				     .compute = writer_compute,
				     .stop = writer_stop};

static weir_status add(weir_registry *registry)
{
	weir_status status = weir_registry_add_operator(registry, &reader);

	return status ? status : weir_registry_add_operator(registry, &writer);
}

WEIR_PLUGIN(add);
