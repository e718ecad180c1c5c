/*
 * Three operators around streams. `numbers` works on a stream that it takes from a pool by name, and passes
 * that stream on to its receivers; `combine` has two inputs and works after the streams of both; `check` is
 * host code: the default gate of its input makes it run only when the numbers are finished. No thread
 * waits.
 */
#include "streams.h"

#include <inttypes.h>
#include <stdio.h>

/* --- the kernels: host forms; the CUDA forms are in streams.cu --- */

#ifdef STREAMS_WITH_CUDA
#define CUDA_FORM(function) (function)
#else
#define CUDA_FORM(function) NULL
#endif

static int count_up_on_host(const void *arguments)
{
	const struct count_up *work = arguments;

	weir_sleep(work->duration);
	for (int64_t i = 0; i < work->count; i++)
		work->to[i] = work->first + (float)i;
	return 0;
}

static int scale_add_on_host(const void *arguments)
{
	const struct scale_add *work = arguments;

	for (int64_t i = 0; i < work->count; i++)
		work->to[i] = work->a * work->x[i] + work->y[i];
	return 0;
}

static int reverse_on_host(const void *arguments)
{
	const struct reverse *work = arguments;

	for (int64_t i = 0; i < work->count; i++)
		work->to[i] = work->from[work->count - 1 - i];
	return 0;
}

static const weir_kernel count_up = {
	.size = sizeof(weir_kernel),
	.name = "count_up",
	.host = count_up_on_host,
	.cuda = CUDA_FORM(count_up_on_cuda),
};
static const weir_kernel scale_add = {
	.size = sizeof(weir_kernel),
	.name = "scale_add",
	.host = scale_add_on_host,
	.cuda = CUDA_FORM(scale_add_on_cuda),
};
static const weir_kernel reverse = {
	.size = sizeof(weir_kernel),
	.name = "reverse",
	.host = reverse_on_host,
	.cuda = CUDA_FORM(reverse_on_cuda),
};

/* --- numbers: a source on a stream that it chooses --- */

struct numbers {
	const char *stream;
	int64_t count, first, duration;
};

static const weir_parameter numbers_parameters[] = {
	{
		.size = sizeof(weir_parameter),
		.name = "stream",
		.type = WEIR_TYPE_STRING,
		.fallback = "\"numbers\"",
		.help = "name under which it takes its stream from the pool; "
			"\"\": its internal stream",
	},
	{
		.size = sizeof(weir_parameter),
		.name = "count",
		.type = WEIR_TYPE_INT,
		.fallback = "65536",
		.min = 1,
		.max = 1 << 20,
		.help = "numbers per frame",
	},
	{
		.size = sizeof(weir_parameter),
		.name = "first",
		.type = WEIR_TYPE_INT,
		.fallback = "1",
		.max = 1 << 20,
		.help = "number i of frame n is first + n + i",
	},
	{
		.size = sizeof(weir_parameter),
		.name = "duration",
		.type = WEIR_TYPE_DURATION,
		.fallback = "\"1ms\"",
		.help = "how long the kernel runs before it writes: a reader that does not wait finds "
			"other numbers",
	},
	{.name = NULL},
};

static const weir_port numbers_outputs[] = {
	{.size = sizeof(weir_port),
	 .name = "out",
	 .kinds = WEIR_KIND_TENSOR,
	 .help = "float32 [count] on the device"},
	{.name = NULL},
};

static weir_status numbers_start(weir_context *context, void *state, const weir_values *values)
{
	struct numbers *self = state;

	(void)context;
	self->stream = weir_values_string(values, "stream");
	self->count = weir_values_int(values, "count");
	self->first = weir_values_int(values, "first");
	self->duration = weir_values_int(values, "duration");
	return WEIR_OK;
}

/*
 * A stream from the pool, which then travels with the message: allocated by the first call with that name,
 * kept for the run. Or the internal stream, which travels without a call.
 */
static weir_status choose_stream(weir_context *context, const char *name, weir_stream **out)
{
	weir_status status;

	if (!*name)
		return weir_context_stream(context, out);
	status = weir_context_allocate_stream(context, name, out);
	return status ? status : weir_context_set_stream(context, 0, *out);
}

static weir_status numbers_compute(weir_context *context, void *state)
{
	const struct numbers *self = state;
	const weir_tensor like = {
		.size = sizeof like,
		.dimensions = 1,
		.shape = &self->count,
		.code = 2, /* float */
		.bits = 32,
	};
	struct count_up work = {.count = self->count, .duration = self->duration};
	weir_stream *stream = NULL;
	weir_message *out = NULL;
	weir_status status = choose_stream(context, self->stream, &stream);

	if (!status)
		status = weir_context_create_tensor(context, &like, 0, &out);
	if (status)
		return status;
	work.first = (float)(self->first + (int64_t)weir_context_tick(context));
	work.to = weir_message_data(out);
	status = weir_stream_launch(stream, &count_up, &work, sizeof work); /* returns at once */
	if (!status)
		return weir_context_emit(context, 0, out); /* takes it */
	weir_message_unref(out);
	return status;
}

static const weir_operator numbers = {
	.size = sizeof(weir_operator),
	.name = "numbers",
	.help = "counts up by a kernel, on a stream that it takes from its pool by name",
	.state_size = sizeof(struct numbers),
	.parameters = numbers_parameters,
	.outputs = numbers_outputs,
	.start = numbers_start,
	.compute = numbers_compute,
};

/* --- combine: two inputs, one stream after both --- */

enum { IN1, IN2 };

struct combine {
	int64_t a;
};

static const weir_parameter combine_parameters[] = {
	{.size = sizeof(weir_parameter),
	 .name = "a",
	 .type = WEIR_TYPE_INT,
	 .fallback = "3",
	 .max = 8,
	 .help = "a factor"},
	{.name = NULL},
};

static const weir_port combine_inputs[] = {
	{.size = sizeof(weir_port),
	 .name = "in1",
	 .kinds = WEIR_KIND_TENSOR,
	 .help = "float32 [count] on the device"},
	{.size = sizeof(weir_port), .name = "in2", .kinds = WEIR_KIND_TENSOR, .help = "likewise"},
	{.name = NULL},
};

static const weir_port combine_outputs[] = {
	{
		.size = sizeof(weir_port),
		.name = "out",
		.kinds = WEIR_KIND_TENSOR,
		.help = "a * in1 + in2, last number first, in host memory",
	},
	{.name = NULL},
};

static weir_status combine_start(weir_context *context, void *state, const weir_values *values)
{
	struct combine *self = state;

	(void)context;
	self->a = weir_values_int(values, "a");
	return WEIR_OK;
}

static bool are_numbers(const weir_tensor *tensor)
{
	return tensor && tensor->code == 2 && tensor->bits == 32 && tensor->dimensions == 1;
}

static weir_status combine_check(weir_context *context, const weir_tensor *x, const weir_tensor *y,
				 int device)
{
	if (!are_numbers(x) || !are_numbers(y) || x->shape[0] != y->shape[0])
		return weir_context_fail(
			context, "in1 and in2 expect float32 tensors of one dimension and the same length");
	if (x->device != device || y->device != device)
		return weir_context_fail(context, "in1 or in2 is not on device %d, where this entity works",
					 device);
	return WEIR_OK;
}

/* Prints with the first frame how many streams there are: those of the two inputs, and the entity's own. */
static weir_status print_streams(weir_context *context, weir_stream *own)
{
	weir_stream *streams[3] = {NULL, NULL, own};
	int different = 0;

	if (!weir_context_receive_streams(context, IN1, 0, 1, &streams[0]) ||
	    !weir_context_receive_streams(context, IN2, 0, 1, &streams[1]))
		return weir_context_fail(context, "the messages of in1 and in2 carry no streams");
	for (int i = 0; i < 3; i++) {
		bool is_new = true;

		for (int k = 0; k < i; k++)
			is_new = is_new && !weir_stream_same(streams[i], streams[k]);
		different += is_new;
	}
	printf("%s: in1, in2 and this entity: %d stream%s\n", weir_entity_name(weir_context_entity(context)),
	       different, different == 1 ? "" : "s");
	return WEIR_OK;
}

/* One kernel into device memory, and one that reads its result and writes to pinned host memory. */
static weir_status enqueue(weir_context *context, weir_stream *stream, struct scale_add *first,
			   const weir_tensor *like, weir_message **out)
{
	struct reverse second = {.count = first->count};
	weir_message *sums = NULL;
	weir_status status = weir_context_create_tensor(context, like, 0, &sums);

	if (!status)
		status = weir_context_create_tensor(context, like, WEIR_TENSOR_HOST, out);
	if (!status) {
		second.from = first->to = weir_message_data(sums);
		second.to = weir_message_data(*out);
		status = weir_stream_launch(stream, &scale_add, first, sizeof *first);
	}
	if (!status)
		status = weir_stream_launch(stream, &reverse, &second, sizeof second);
	weir_message_unref(sums); /* its memory lives until the kernels are done */
	return status;
}

static weir_status combine_compute(weir_context *context, void *state)
{
	const struct combine *self = state;
	weir_message *in1 = weir_context_message(context, IN1, 0), *out = NULL;
	weir_message *in2 = weir_context_message(context, IN2, 0);
	const weir_tensor *x = weir_message_tensor(in1), *y = weir_message_tensor(in2);
	struct scale_add work = {.x = weir_message_data(in1), .y = weir_message_data(in2)};
	weir_stream *stream = NULL;
	weir_status status;

	/* Our own stream, ordered after that of in1; then the same stream, ordered also after that of in2. */
	status = weir_context_receive_stream(context, IN1, 0, &stream);
	if (!status)
		status = weir_context_receive_stream(context, IN2, 0, &stream);
	if (!status)
		status = combine_check(context, x, y, weir_stream_device(stream));
	if (!status && !weir_context_tick(context))
		status = print_streams(context, stream);
	if (status)
		return status;
	work.count = x->shape[0];
	work.a = (float)self->a;
	status = enqueue(context, stream, &work, x, &out);
	if (!status)
		return weir_context_emit(context, 0, out); /* our stream travels with it without a call */
	weir_message_unref(out);
	return status;
}

static const weir_operator combine = {
	.size = sizeof(weir_operator),
	.name = "combine",
	.help = "a * in1 + in2, reversed: two kernels, ordered after the producers of the inputs",
	.flags = WEIR_OPERATOR_STREAM,
	.state_size = sizeof(struct combine),
	.parameters = combine_parameters,
	.inputs = combine_inputs,
	.outputs = combine_outputs,
	.start = combine_start,
	.compute = combine_compute,
};

/* --- check: host code, gated --- */

struct check {
	int64_t a, first1, first2;
	uint64_t frames, numbers; /* compared so far */
};

static const weir_parameter check_parameters[] = {
	{.size = sizeof(weir_parameter),
	 .name = "a",
	 .type = WEIR_TYPE_INT,
	 .fallback = "3",
	 .help = "as in combine"},
	{.size = sizeof(weir_parameter),
	 .name = "first1",
	 .type = WEIR_TYPE_INT,
	 .help = "`first` of the source of in1"},
	{.size = sizeof(weir_parameter),
	 .name = "first2",
	 .type = WEIR_TYPE_INT,
	 .help = "`first` of the source of in2"},
	{.name = NULL},
};

static const weir_port check_inputs[] = {
	{
		.size = sizeof(weir_port),
		.name = "in",
		.kinds = WEIR_KIND_TENSOR,
		.help = "numbers from combine",
	},
	{.name = NULL},
};

static weir_status check_start(weir_context *context, void *state, const weir_values *values)
{
	struct check *self = state;

	(void)context;
	*self = (struct check){
		.a = weir_values_int(values, "a"),
		.first1 = weir_values_int(values, "first1"),
		.first2 = weir_values_int(values, "first2"),
	};
	return WEIR_OK;
}

/* Computed in integers from the sources' parameters, independently of the kernels. */
static int64_t expected(const struct check *self, int64_t frame, int64_t i)
{
	return self->a * (self->first1 + frame + i) + self->first2 + frame + i;
}

static weir_status check_compute(weir_context *context, void *state)
{
	struct check *self = state;
	const weir_message *in = weir_context_message(context, 0, 0);
	const weir_tensor *tensor = weir_message_tensor(in);
	const float *found = weir_message_data(in);
	int64_t frame = (int64_t)weir_context_tick(context), count;

	if (!are_numbers(tensor) || tensor->device != WEIR_DEVICE_HOST)
		return weir_context_fail(context, "input 'in' expects float32 numbers in host memory");
	count = tensor->shape[0];
	for (int64_t i = 0; i < count; i++)
		if (found[i] != (float)expected(self, frame, count - 1 - i))
			return weir_context_fail(
				context, "frame %" PRId64 ": number %" PRId64 " is %.9g instead of %" PRId64,
				frame, i, (double)found[i], expected(self, frame, count - 1 - i));
	self->frames++;
	self->numbers += (uint64_t)count;
	return WEIR_OK;
}

static void check_stop(weir_context *context, void *state)
{
	const struct check *self = state;

	printf("%s: %" PRIu64 " frames, %" PRIu64 " numbers are right\n",
	       weir_entity_name(weir_context_entity(context)), self->frames, self->numbers);
}

static const weir_operator check = {
	.size = sizeof(weir_operator),
	.name = "check",
	.help = "compares every number with the expected one; ends the run at the first wrong one",
	.state_size = sizeof(struct check),
	.parameters = check_parameters,
	.inputs = check_inputs,
	.start = check_start,
	.compute = check_compute,
	.stop = check_stop,
};

/* --- the plugin --- */

weir_status streams_add(weir_registry *registry)
{
	weir_status status = weir_registry_add_operator(registry, &numbers);

	if (!status)
		status = weir_registry_add_operator(registry, &combine);
	if (!status)
		status = weir_registry_add_operator(registry, &check);
	return status;
}

WEIR_PLUGIN(streams_add);
