/*
 * The host form of one operator's kernel, alone: makes a graph source -> operator -> sink on `host`, and in
 * the launch of its kernel calls the form again and again, on the thread that launches. The linker (--wrap)
 * sends the launch through this program. Prints the median of the calls in µs of that thread's CPU time.
 *
 * usage: operators OPERATOR PARAMETERS HEIGHT WIDTH CHANNELS [CALLS], as: operators blur '{"radius": 3}' 480
 * 640 3
 */
#include <string.h>

#include "program.h"

enum { CALLS_MAX = 10000 };

static int64_t shape[3];
static size_t calls = 50;
static double times[CALLS_MAX];

/* --- the launch --- */

weir_status __real_weir_stream_launch(weir_stream *stream, const weir_kernel *kernel, const void *arguments,
				      size_t bytes);
weir_status __wrap_weir_stream_launch(weir_stream *stream, const weir_kernel *kernel, const void *arguments,
				      size_t bytes);

static double cpu_now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
	return (double)time.tv_sec * 1e6 + (double)time.tv_nsec / 1e3;
}

weir_status __wrap_weir_stream_launch(weir_stream *stream, const weir_kernel *kernel, const void *arguments,
				      size_t bytes)
{
	for (size_t i = 0; i < calls + 3; i++) { /* the first touch the memory */
		double begin = cpu_now();

		if (kernel->host(arguments))
			return WEIR_E_FAILED;
		times[i < 3 ? 0 : i - 3] = cpu_now() - begin;
	}
	return __real_weir_stream_launch(stream, kernel, arguments, bytes);
}

/* --- the graph --- */

static weir_status picture_compute(weir_context *context, void *state)
{
	const weir_tensor like = {
		.size = sizeof(weir_tensor), .dimensions = 3, .shape = shape, .code = 1, .bits = 8};
	weir_message *message = NULL;
	weir_status status = weir_context_create_tensor(context, &like, 0, &message);
	uint8_t *pixels;
	uint32_t random = 1;

	(void)state;
	if (status)
		return status;
	pixels = weir_message_data(message); /* the device of `host` is the host */
	for (size_t i = 0; i < weir_message_size(message); i++)
		pixels[i] = (uint8_t)((random = random * 1664525 + 1013904223) >> 24);
	weir_context_finish(context);
	return weir_context_emit(context, 0, message);
}

static const weir_port outputs[] = {{.size = sizeof(weir_port), .name = "out"}, {.name = NULL}};

static const weir_operator picture = {
	.size = sizeof(weir_operator),
	.name = "picture",
	.help = "makes an image of random bytes",
	.flags = WEIR_OPERATOR_STREAM,
	.outputs = outputs,
	.compute = picture_compute,
};

static void run(const char *name, const char *parameters)
{
	weir_scheduler_options options = {.size = sizeof options, .backend = "host", .workers = 1};
	weir_registry *registry = NULL;
	weir_description *description = NULL;
	weir_scheduler *scheduler = NULL;
	weir_graph *graph = NULL;

	must(weir_registry_create(&registry), "registry");
	must(weir_registry_add_operator(registry, &picture), "picture");
	must(weir_description_create(&description), "description");
	must(weir_description_add_entity(description, "picture", "picture"), "picture");
	must(weir_description_add_entity(description, "operator", name), name);
	must(weir_description_put(description, "/entities/1/parameters", parameters), parameters);
	must(weir_description_add_entity(description, "sink", "sink"), "sink");
	must(weir_description_connect(description, "picture.out", "operator.in"), "connect");
	must(weir_description_connect(description, "operator.out", "sink.in"), "connect");
	must(weir_graph_create(registry, description, &graph), "graph");
	weir_description_destroy(description);
	must(weir_scheduler_create(graph, &options, &scheduler), "scheduler");
	must(weir_scheduler_run(scheduler), "run");
	must(weir_scheduler_destroy(scheduler), "destroy");
	must(weir_graph_destroy(graph), "destroy");
	weir_registry_destroy(registry);
}

static int by_size(const void *a, const void *b)
{
	double one = *(const double *)a, other = *(const double *)b;

	return (one > other) - (one < other);
}

int main(int count, char **arguments)
{
	for (int i = 0; i < 3 && count > 3 + i; i++)
		shape[i] = strtol(arguments[3 + i], NULL, 10);
	if (count > 6)
		calls = strtoul(arguments[6], NULL, 10);
	if (count < 6 || calls < 1 || calls > CALLS_MAX) {
		fprintf(stderr,
			"usage: operators OPERATOR PARAMETERS HEIGHT WIDTH CHANNELS [CALLS, up to %d]\n",
			CALLS_MAX);
		return 2;
	}
	run(arguments[1], arguments[2]);
	qsort(times, calls, sizeof *times, by_size);
	printf("%.2f\n", times[calls / 2]);
	return 0;
}
