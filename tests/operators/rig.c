#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/words.h"
#include "tests/operators/rig.h"

struct weir_values {
	const weir_operator *kind;
	const char *text;
};

static size_t alive;
static struct weir_context *running;
static int stream_; /* its address is the stream's handle */

/* ---- parameters ---- */

static const char *value_of(const weir_values *values, const char *name)
{
	size_t length = strlen(name);

	for (const char *at = values->text; *at; at += strcspn(at, " "), at += strspn(at, " "))
		if (!strncmp(at, name, length) && at[length] == '=')
			return at + length + 1;
	for (const weir_parameter *p = values->kind->parameters; p->name; p++)
		if (!strcmp(p->name, name) && p->fallback)
			return p->fallback;
	fail_msg("no parameter %s in '%s'", name, values->text);
	return "";
}

bool weir_values_bool(const weir_values *values, const char *name)
{
	return !strncmp(value_of(values, name), "true", 4);
}

int64_t weir_values_int(const weir_values *values, const char *name)
{
	const char *at = value_of(values, name);
	char *end;
	int64_t value = strtoll(at + (*at == '"'), &end, 10);

	return strncmp(end, "MiB", 3) ? value : value << 20;
}

double weir_values_number(const weir_values *values, const char *name)
{
	return strtod(value_of(values, name), NULL);
}

/* A list is written without spaces: "mean=[1,2.5]". Returns its length; writes the i-th number if it exists.
 */
static size_t list_of(const weir_values *values, const char *name, size_t wanted, double *out)
{
	const char *at = value_of(values, name);
	size_t count = 0;
	char *end;

	at += *at == '[';
	for (;; at = end + 1) {
		double number = strtod(at, &end);

		if (end == at)
			return count;
		if (count++ == wanted)
			*out = number;
		if (*end != ',')
			return count;
	}
}

size_t weir_values_count(const weir_values *values, const char *name)
{
	return list_of(values, name, SIZE_MAX, NULL);
}

double weir_values_number_at(const weir_values *values, const char *name, size_t i)
{
	double number = 0;

	list_of(values, name, i, &number);
	return number;
}

const char *weir_values_string(const weir_values *values, const char *name)
{
	static char texts[4][512]; /* borrowed while the graph lives */
	static unsigned next;
	char *text = texts[next++ % 4];
	const char *value = value_of(values, name);

	value += *value == '"';
	snprintf(text, sizeof texts[0], "%.*s", (int)strcspn(value, " \""), value);
	return text;
}

/* ---- messages ---- */

static weir_message *message_new(unsigned kind, size_t bytes)
{
	weir_message *message = calloc(1, sizeof *message);

	assert_non_null(message);
	message->references = 1;
	message->kind = kind;
	message->bytes = bytes;
	message->data = bytes ? malloc(bytes) : NULL;
	assert_true(!bytes || message->data);
	alive++;
	return message;
}

weir_status weir_message_create_empty(weir_graph *graph, weir_message **out)
{
	(void)graph;
	*out = message_new(WEIR_KIND_EMPTY, 0);
	return WEIR_OK;
}

weir_status weir_message_create_bytes(weir_graph *graph, size_t bytes, weir_message **out)
{
	(void)graph;
	*out = message_new(WEIR_KIND_BYTES, bytes);
	return WEIR_OK;
}

weir_message *weir_message_ref(weir_message *message)
{
	message->references++;
	return message;
}

void weir_message_unref(weir_message *message)
{
	if (!message || --message->references)
		return;
	for (size_t i = 0; message->packed[i].message; i++)
		weir_message_unref(message->packed[i].message);
	free(message->data);
	free(message);
	alive--;
}

weir_status weir_message_pack(weir_graph *graph, const weir_part *parts, size_t count, weir_message **out)
{
	(void)graph;
	if (running->fails_to_pack)
		return WEIR_E_NOMEM;
	*out = message_new(WEIR_KIND_PARTS, 0);
	assert_in_range(count, 1, 7);
	memcpy((*out)->packed, parts, count * sizeof *parts);
	(*out)->parts = (*out)->packed;
	(*out)->part_count = count;
	return WEIR_OK;
}

bool weir_message_unique(const weir_message *message)
{
	return message->references == 1;
}

unsigned weir_message_kind(const weir_message *message)
{
	return message->kind;
}

const weir_tensor *weir_message_tensor(const weir_message *message)
{
	return message->kind == WEIR_KIND_TENSOR ? &message->tensor : NULL;
}

void *weir_message_data(const weir_message *message)
{
	return message->data;
}

size_t weir_message_size(const weir_message *message)
{
	return message->bytes;
}

size_t weir_message_fences(const weir_message *message, size_t room, weir_fence *out)
{
	if (message->unfinished && room)
		*out = (weir_fence){1, 1};
	return message->unfinished;
}

weir_status weir_fence_query(weir_graph *graph, weir_fence fence)
{
	(void)graph;
	return fence.stream ? WEIR_E_BUSY : WEIR_OK;
}

size_t weir_message_parts(const weir_message *message)
{
	return message->part_count;
}

weir_message *weir_message_part_at(const weir_message *message, size_t i)
{
	return i < message->part_count ? message->parts[i].message : NULL;
}

const char *weir_message_part_name(const weir_message *message, size_t i)
{
	return i < message->part_count ? message->parts[i].name : NULL;
}

weir_message *weir_message_part(const weir_message *message, const char *name)
{
	for (size_t i = 0; i < message->part_count; i++)
		if (!strcmp(message->parts[i].name, name))
			return message->parts[i].message;
	return NULL;
}

size_t weir_text_escape(const char **text, size_t room, char *out)
{
	return wr_shown_part(out, room, text);
}

weir_stamp weir_message_stamp(const weir_message *message)
{
	return message->stamp;
}

/* ---- the stream ---- */

weir_status weir_stream_launch(weir_stream *stream, const weir_kernel *kernel, const void *arguments,
			       size_t bytes)
{
	assert_ptr_equal(stream, &stream_);
	assert_in_range(bytes, 1, WEIR_ARGUMENTS_MAX);
	if (running->fails_to_launch)
		return WEIR_E_DEVICE;
	memcpy(running->launched, arguments, bytes);
	running->faults += kernel->host(arguments) != 0;
	return WEIR_OK;
}

weir_status weir_stream_copies(weir_stream *stream, const weir_copy *copies, size_t count, unsigned flags,
			       weir_fence *out)
{
	assert_ptr_equal(stream, &stream_);
	assert_null(out);
	if (running->fails_to_launch)
		return WEIR_E_DEVICE;
	for (size_t i = 0; i < count; i++) {
		assert_int_equal(copies[i].size, sizeof *copies);
		for (size_t row = 0; row < (copies[i].rows ? copies[i].rows : 1); row++)
			memcpy((char *)copies[i].to + row * copies[i].to_stride,
			       (const char *)copies[i].from + row * copies[i].from_stride,
			       copies[i].row_bytes);
	}
	running->copies += count;
	running->copy_flags = flags;
	return WEIR_OK;
}

int weir_stream_device(const weir_stream *stream)
{
	(void)stream;
	return RIG_DEVICE;
}

/* No graph is checked here. */
weir_status weir_ports_add_output(weir_ports *ports, const weir_port *port)
{
	(void)ports;
	(void)port;
	return WEIR_E_STATE;
}

void weir_sleep(int64_t ns)
{
	running->slept += ns;
}

/* ---- the context ---- */

weir_graph *weir_context_graph(weir_context *context)
{
	(void)context;
	return NULL;
}

weir_entity *weir_context_entity(weir_context *context)
{
	(void)context;
	return NULL;
}

const char *weir_entity_name(const weir_entity *entity)
{
	(void)entity;
	return "me";
}

int64_t weir_context_now(const weir_context *context)
{
	(void)context;
	return RIG_NOW;
}

weir_status weir_context_set_stamp(weir_context *context, weir_stamp stamp)
{
	context->stamp = stamp;
	return WEIR_OK;
}

uint64_t weir_context_tick(const weir_context *context)
{
	return context->tick;
}

uint64_t weir_context_received(const weir_context *context, unsigned input)
{
	assert_int_equal(input, 0);
	return context->received;
}

size_t weir_context_count(const weir_context *context, unsigned input)
{
	return !input ? context->in_count : context->side[input - 1] != NULL;
}

int64_t weir_context_age(const weir_context *context, unsigned input)
{
	return context->latest >> input & 1 ? 0 : -1;
}

weir_message *weir_context_message(weir_context *context, unsigned input, size_t i)
{
	assert_true(i < weir_context_count(context, input));
	return !input ? context->in[i] : context->side[input - 1];
}

weir_status weir_context_emit(weir_context *context, unsigned output, weir_message *message)
{
	assert_int_equal(output, 0);
	assert_true(context->out_count < RIG_MESSAGES);
	context->out[context->out_count++] = message;
	return WEIR_OK;
}

weir_status weir_context_forward(weir_context *context, unsigned input, size_t i, unsigned output)
{
	return weir_context_emit(context, output, weir_message_ref(weir_context_message(context, input, i)));
}

weir_status weir_context_stream(weir_context *context, weir_stream **out)
{
	if (context->has_no_stream)
		return WEIR_E_DEVICE;
	*out = (weir_stream *)&stream_;
	return WEIR_OK;
}

int weir_context_device(const weir_context *context)
{
	(void)context;
	return RIG_DEVICE;
}

weir_status weir_context_create_tensor(weir_context *context, const weir_tensor *like, unsigned flags,
				       weir_message **out)
{
	size_t bytes = like->bits / 8;
	weir_message *message;

	if (context->fails_to_allocate)
		return WEIR_E_NOMEM;
	for (int32_t i = 0; i < like->dimensions; i++)
		bytes *= (size_t)like->shape[i];
	message = message_new(WEIR_KIND_TENSOR, bytes);
	memcpy(message->shape, like->shape, (size_t)like->dimensions * sizeof *like->shape);
	message->tensor = *like;
	message->tensor.shape = message->shape;
	message->tensor.strides = NULL;
	message->tensor.data = message->data;
	message->tensor.device = (flags & WEIR_TENSOR_HOST) ? WEIR_DEVICE_HOST : RIG_DEVICE;
	*out = message;
	return WEIR_OK;
}

weir_status weir_message_create_tensor(weir_graph *graph, const weir_tensor *like, weir_message **out)
{
	(void)graph;
	return weir_context_create_tensor(running, like,
					  like->device == WEIR_DEVICE_HOST ? WEIR_TENSOR_HOST : 0, out);
}

weir_status weir_context_open(weir_context *context, const char *path, int flags, unsigned mode, int *out)
{
	int fd = open(path, flags | O_CLOEXEC, mode);

	(void)context;
	if (fd < 0)
		return WEIR_E_IO;
	*out = fd;
	return WEIR_OK;
}

void weir_context_drain(weir_context *context, const char *format, ...)
{
	(void)format;
	context->drained = true;
}

/* No operator of these tests waits for a descriptor. */
weir_status weir_context_hold(weir_context *context, unsigned input, unsigned flags)
{
	(void)context;
	(void)input;
	(void)flags;
	return WEIR_E_UNSUPPORTED;
}

weir_status weir_entity_watch(weir_entity *entity, const char *condition, int fd, unsigned events)
{
	(void)entity;
	(void)condition;
	(void)fd;
	(void)events;
	return WEIR_E_UNSUPPORTED;
}

weir_status weir_context_finish(weir_context *context)
{
	context->finished = true;
	return WEIR_OK;
}

weir_status weir_context_fail(weir_context *context, const char *format, ...)
{
	va_list list;

	va_start(list, format);
	vsnprintf(context->text, sizeof context->text, format, list);
	va_end(list);
	assert_null(strchr(context->text, '\n'));
	return WEIR_E_FAILED;
}

void weir_context_log(weir_context *context, weir_log_level level, const char *format, ...)
{
	(void)context;
	(void)level;
	(void)format;
}

weir_status weir_context_fail_after_drain(weir_context *context, weir_status failure, const char *format, ...)
{
	va_list list;

	va_start(list, format);
	vsnprintf(context->text, sizeof context->text, format, list);
	va_end(list);
	assert_null(strchr(context->text, '\n'));
	context->failed = failure;
	context->drained = context->finished = true;
	return WEIR_OK;
}

bool weir_context_stopping(const weir_context *context)
{
	return context->drained;
}

const char *weir_last_error(void)
{
	return "";
}

/* ---- the rig ---- */

weir_message *rig_image(int device, int64_t height, int64_t width, int64_t channels)
{
	struct weir_context context = {0};
	const int64_t shape[] = {height, width, channels};
	const weir_tensor like = {.size = sizeof like, .dimensions = 3, .shape = shape, .code = 1, .bits = 8};
	weir_message *message = NULL;
	uint32_t random = 1;

	weir_context_create_tensor(&context, &like, device == WEIR_DEVICE_HOST ? WEIR_TENSOR_HOST : 0,
				   &message);
	for (size_t i = 0; i < message->bytes; i++) {
		random = random * 1664525u + 1013904223u;
		((uint8_t *)message->data)[i] = (uint8_t)(random >> 24);
	}
	return message;
}

weir_message *rig_bytes(size_t bytes)
{
	weir_message *message = message_new(WEIR_KIND_BYTES, bytes);

	for (size_t i = 0; i < bytes; i++)
		((uint8_t *)message->data)[i] = (uint8_t)i;
	return message;
}

weir_message *rig_parts(const weir_part *parts, size_t count)
{
	weir_message *message = message_new(WEIR_KIND_PARTS, 0);

	message->parts = parts;
	message->part_count = count;
	return message;
}

void rig_start(struct rig *rig, const weir_operator *kind, const char *parameters)
{
	weir_values values = {kind, parameters};

	*rig = (struct rig){.context = {.kind = kind, .state = calloc(1, kind->state_size + 1)}};
	running = &rig->context;
	rig->started = kind->start ? kind->start(running, running->state, &values) : WEIR_OK;
}

static void release_messages(weir_message **messages, size_t *count)
{
	while (*count)
		weir_message_unref(messages[--*count]);
}

void rig_give(struct rig *rig, weir_message *message)
{
	rig->context.in[rig->context.in_count++] = message;
}

void rig_give_side(struct rig *rig, unsigned input, weir_message *message)
{
	assert_null(rig->context.side[input - 1]);
	rig->context.side[input - 1] = message;
}

static void release_inputs(struct weir_context *context)
{
	release_messages(context->in, &context->in_count);
	for (size_t i = 0; i < 2; i++) {
		weir_message_unref(context->side[i]);
		context->side[i] = NULL;
	}
}

weir_status rig_tick(struct rig *rig)
{
	struct weir_context *context = &rig->context;
	weir_status status = WEIR_OK;

	release_messages(context->out, &context->out_count);
	if (context->kind->compute)
		status = context->kind->compute(context, context->state);
	if (!status)
		status = context->failed;
	context->tick++;
	context->received += context->in_count;
	release_inputs(context);
	return status;
}

void rig_stop(struct rig *rig)
{
	struct weir_context *context = &rig->context;

	if (!rig->started && context->kind->stop)
		context->kind->stop(context, context->state);
	release_inputs(context);
	release_messages(context->out, &context->out_count);
	free(context->state);
}

size_t rig_messages(void)
{
	return alive;
}
