/*
 * A message that carries the work of a kernel and a fence that a thread of the program completes (T17),
 * before the kernel has ended or after it: its reader finds what both have written.
 */
#include <pthread.h>
#include <time.h>

#include "handles.h"
#include "../calls.h"

enum { TICKS = 100 };

static struct job {
	pthread_t thread;
	weir_graph *graph;
	weir_fence fence;
	uint32_t *to, value;
	bool begun;
} jobs[TICKS];
static uint32_t read_count;

static void *work(void *arg)
{
	struct job *job = arg;
	const struct timespec pause = {.tv_nsec = job->value % 2 ? 1000000 : 0};

	nanosleep(&pause, NULL);
	*job->to = job->value;
	if (weir_fence_complete(job->graph, job->fence, WEIR_OK, NULL))
		handles_expect(false, "complete: %s", weir_last_error());
	return NULL;
}

static weir_status begin_both(weir_context *context, weir_message *message)
{
	uint64_t tick = weir_context_tick(context);
	uint32_t *words = weir_message_data(message);
	const struct handles_fill kernel = {words, 1, 200000, (uint32_t)tick};
	struct job *job = &jobs[tick];
	weir_status status = weir_graph_create_fence(weir_context_graph(context), &job->fence);

	if (status)
		return status;
	words[0] = words[1] = UINT32_MAX;
	job->graph = weir_context_graph(context);
	job->to = &words[1];
	job->value = (uint32_t)tick;
	status = weir_stream_launch(current_stream(context), &handles_fill_kernel, &kernel, sizeof kernel);
	job->begun = !pthread_create(&job->thread, NULL, work, job);
	return job->begun ? status : weir_context_fail(context, "no thread");
}

static weir_status send_compute(weir_context *context, void *state)
{
	static const int64_t shape = 2;
	const weir_tensor like = {
		.size = sizeof like, .dimensions = 1, .shape = &shape, .code = 1, .bits = 32};
	weir_message *message = NULL;
	weir_status status = weir_context_create_tensor(context, &like, WEIR_TENSOR_HOST, &message);

	(void)state;
	if (!status)
		status = begin_both(context, message);
	if (!status)
		return weir_context_emit_at(context, 0, message, jobs[weir_context_tick(context)].fence);
	weir_message_unref(message);
	return status;
}

static weir_status read_compute(weir_context *context, void *state)
{
	const uint32_t *words = weir_message_data(weir_context_message(context, 0, 0));
	uint32_t tick = (uint32_t)weir_context_tick(context);

	(void)state;
	if (words[0] != tick || words[1] != tick)
		return weir_context_fail(context, "tick %u reads %u of the kernel, %u of the thread", tick,
					 words[0], words[1]);
	read_count++;
	return WEIR_OK;
}

static const weir_port outputs[] = {{.size = sizeof *outputs, .name = "out"}, {.name = NULL}};
static const weir_port inputs[] = {{.size = sizeof *inputs, .name = "in", .capacity = 8}, {.name = NULL}};
static const weir_operator sends = {.size = sizeof sends,
				    .name = "send_both",
				    .flags = WEIR_OPERATOR_STREAM,
				    .outputs = outputs,
				    .compute = send_compute};
static const weir_operator reads = {
	.size = sizeof reads, .name = "read_both", .inputs = inputs, .compute = read_compute};

static const char graph[] = "{\"weir\": 1, \"name\": \"promises\", \"entities\": ["
			    "{\"name\": \"send\", \"operator\": \"send_both\", \"max_in_flight\": 4,"
			    " \"conditions\": [{\"type\": \"count\", \"count\": 100}]},"
			    "{\"name\": \"read\", \"operator\": \"read_both\"},"
			    "{\"name\": \"also\", \"operator\": \"read_both\","
			    " \"conditions\": [{\"type\": \"cuda_stream\", \"port\": \"in\"}]}],"
			    " \"connections\": [[\"send.out\", \"read.in\"], [\"send.out\", \"also.in\"]]}";

static void t17_a_reader_finds_what_a_kernel_and_a_thread_wrote(void)
{
	struct handles_rig rig;

	handles_begin(&rig, graph);
	handles_expect(!weir_registry_add_operator(rig.registry, &sends) &&
			       !weir_registry_add_operator(rig.registry, &reads),
		       "the operators: %s", weir_last_error());
	rig.workers = 1; /* read_count has one writer at a time */
	if (handles_open(&rig) && handles_start(&rig)) {
		handles_wait(&rig, 30 * SECOND);
		handles_expect(read_count == 2 * TICKS, "%u of %d messages were read", read_count, 2 * TICKS);
	}
	for (int i = 0; i < TICKS; i++)
		if (jobs[i].begun)
			pthread_join(jobs[i].thread, NULL);
	handles_close(&rig);
}

const struct handles_check handles_promises[] = {
	{"t17_a_reader_finds_what_a_kernel_and_a_thread_wrote",
	 t17_a_reader_finds_what_a_kernel_and_a_thread_wrote, 0},
	{.name = NULL},
};
