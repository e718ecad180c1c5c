/*
 * A program beside its graph, and no thread waits for the device. The program uploads frames on its own
 * stream and pushes them before the upload is finished. `model` works on the same stream, behind the upload,
 * and emits its result while a slower kernel of the same tick still runs. `watch` has no input: it ticks when
 * the device has reached a fence that the program tells it, here the last upload.
 *
 * The kernels have forms for the host only; examples/streams has both. With CUDA the stream could be a
 * cudaStream_t of the program's: weir_stream_wrap.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <weir.h>

enum { FRAMES = 5, NUMBERS = 1024 };

/* --- kernels --- */

struct fill {
	float *to;
	float value;
};

struct scale {
	const float *from;
	float *to;
};

static int fill_on_host(const void *arguments)
{
	const struct fill *work = arguments;

	weir_sleep(1000000); /* a slow upload */
	for (int i = 0; i < NUMBERS; i++)
		work->to[i] = work->value;
	return 0;
}

static int scale_on_host(const void *arguments)
{
	const struct scale *work = arguments;

	for (int i = 0; i < NUMBERS; i++)
		work->to[i] = 2 * work->from[i];
	return 0;
}

static int study_on_host(const void *arguments)
{
	(void)arguments;
	weir_sleep(5000000); /* statistics that no receiver of the result waits for */
	return 0;
}

static const weir_kernel fill = {.size = sizeof(weir_kernel), .name = "fill", .host = fill_on_host};
static const weir_kernel scale = {.size = sizeof(weir_kernel), .name = "scale", .host = scale_on_host};
static const weir_kernel study = {.size = sizeof(weir_kernel), .name = "study", .host = study_on_host};

/* --- operators --- */

static weir_status model_compute(weir_context *context, void *state)
{
	weir_message *in = weir_context_message(context, 0, 0), *out = NULL;
	weir_stream *stream;
	weir_status status = weir_context_stream(context, &stream);
	struct scale work = {.from = weir_message_data(in)};
	weir_fence finished;

	(void)state;
	if (!status)
		status = weir_context_create_tensor(context, weir_message_tensor(in), 0, &out);
	if (status)
		return status;
	work.to = weir_message_data(out);
	status = weir_stream_launch(stream, &scale, &work, sizeof work);
	if (!status)
		status = weir_stream_record(stream, &finished);
	if (status) {
		weir_message_unref(out);
		return status;
	}
	status = weir_context_emit_at(context, 0, out, finished);
	return status ? status : weir_stream_launch(stream, &study, "", 1);
}

static weir_status watch_compute(weir_context *context, void *state)
{
	(void)context;
	(void)state;
	printf("the last upload has ended\n");
	return WEIR_OK;
}

static const weir_port in[] = {
	{.size = sizeof *in, .name = "in", .kinds = WEIR_KIND_TENSOR, .capacity = FRAMES}, {.name = NULL}};
static const weir_port out[] = {{.size = sizeof *out, .name = "out", .kinds = WEIR_KIND_TENSOR},
				{.name = NULL}};
static const weir_operator model = {.size = sizeof model,
				    .name = "model",
				    .help = "twice the numbers",
				    .flags = WEIR_OPERATOR_STREAM,
				    .inputs = in,
				    .outputs = out,
				    .compute = model_compute};
static const weir_operator watch = {
	.size = sizeof watch, .name = "watch", .help = "prints a line", .compute = watch_compute};

static const char graph_text[] =
	"{\"weir\": 1, \"entities\": [{\"name\": \"model\", \"operator\": \"model\"},"
	"{\"name\": \"watch\", \"operator\": \"watch\","
	" \"conditions\": [{\"type\": \"fence\"}]}]}";

/* --- the program --- */

struct program {
	weir_registry *registry;
	weir_description *description;
	weir_graph *graph;
	weir_inlet *in;
	weir_outlet *out;
	weir_scheduler *scheduler;
	weir_stream *stream;
};

static weir_status open_program(struct program *program)
{
	const weir_scheduler_options options = {.size = sizeof options, .backend = "host"};
	weir_status status = weir_registry_create(&program->registry);

	if (!status)
		status = weir_registry_add_operator(program->registry, &model);
	if (!status)
		status = weir_registry_add_operator(program->registry, &watch);
	if (!status)
		status = weir_description_parse(graph_text, strlen(graph_text), NULL, NULL,
						&program->description);
	if (!status)
		status = weir_graph_create(program->registry, program->description, &program->graph);
	if (!status)
		status = weir_graph_add_inlet(program->graph, "model.in", &program->in);
	if (!status)
		status = weir_graph_add_outlet(program->graph, "model.out", FRAMES, 0, &program->out);
	if (!status)
		status = weir_scheduler_create(program->graph, &options, &program->scheduler);
	if (!status)
		status = weir_graph_add_stream(program->graph, 0, &program->stream);
	if (!status) /* before the start: model works on the program's stream */
		status = weir_entity_use_stream(weir_graph_entity(program->graph, "model"), program->stream);
	return status ? status : weir_scheduler_start(program->scheduler);
}

/* Enqueues the upload of a frame and pushes the frame at once. *uploaded: the fence behind the upload. */
static weir_status push_frame(struct program *program, float value, weir_fence *uploaded)
{
	static const int64_t shape = NUMBERS;
	static const weir_tensor like = {
		.size = sizeof like, .dimensions = 1, .shape = &shape, .code = 2, .bits = 32};
	weir_message *message = NULL;
	weir_status status = weir_message_create_tensor(program->graph, &like, &message);
	struct fill work = {NULL, value};

	if (status)
		return status;
	work.to = weir_message_data(message);
	status = weir_stream_launch(program->stream, &fill, &work, sizeof work);
	if (!status)
		status = weir_stream_record(program->stream, uploaded);
	if (!status)
		status = weir_message_add_producer(message, *uploaded);
	if (!status)
		status = weir_inlet_push(program->in, message, -1);
	if (status)
		weir_message_unref(message);
	return status;
}

/* The outlet gives results that are finished, while the kernel `study` still runs. */
static weir_status take_result(struct program *program, float expected)
{
	weir_message *message = NULL;
	weir_status status = weir_outlet_take(program->out, -1, &message);
	const float *numbers = status ? NULL : weir_message_data(message);

	if (numbers)
		printf("result %.0f, expected %.0f\n", (double)numbers[NUMBERS - 1], (double)expected);
	if (numbers && numbers[NUMBERS - 1] != expected)
		status = WEIR_E_FAILED;
	weir_message_unref(message);
	return status;
}

static weir_status run(struct program *program)
{
	weir_entity *watcher = weir_graph_entity(program->graph, "watch");
	weir_fence uploaded = {0, 0};
	weir_status status = WEIR_OK;

	for (int i = 0; !status && i < FRAMES; i++)
		status = push_frame(program, (float)i, &uploaded);
	if (!status)
		status = weir_entity_tell_fence(watcher, "fence", uploaded);
	if (!status) /* it ends after that tick */
		status = weir_entity_tell(watcher, "fence", WEIR_TOLD_NEVER);
	weir_inlet_close(program->in);
	for (int i = 0; !status && i < FRAMES; i++)
		status = take_result(program, 2 * (float)i);
	if (status)
		weir_scheduler_stop(program->scheduler, 0);
	return status ? status : weir_scheduler_wait(program->scheduler, -1, NULL);
}

int main(void)
{
	struct program program = {.graph = NULL};
	weir_status status = open_program(&program);

	if (!status)
		status = run(&program);
	if (status)
		fprintf(stderr, "%s: %s\n", weir_status_text(status), weir_last_error());
	weir_scheduler_destroy(program.scheduler);
	weir_graph_destroy(program.graph);
	weir_description_destroy(program.description);
	weir_registry_destroy(program.registry);
	return status ? 1 : 0;
}
