/* A program beside the graph: it works on its own CUDA streams, pushes what it computes and takes results. */
#include <cuda_runtime_api.h>

#include "handles.h"

enum { NUMBERS = 16384, BYTES = NUMBERS * (int)sizeof(uint32_t), FRAMES = 20 };

struct program {
	struct handles_rig rig;
	weir_inlet *in;
	weir_outlet *out;
	weir_stream *stream; /* weir's, used by the program alone */
	cudaStream_t own;
	cudaEvent_t event;
	uint32_t *copy; /* pinned */
};

static bool went(weir_status status, const char *call)
{
	return handles_expect(!status, "%s: %s", call, weir_last_error());
}

static const char triple_alone[] = "{\"weir\": 1, \"name\": \"program\", \"entities\": ["
				   "{\"name\": \"process\", \"operator\": \"triple\"}]}";

static bool open_graph(struct program *program, unsigned flags)
{
	struct handles_rig *rig = &program->rig;
	const weir_scheduler_options options = {.size = sizeof options,
						.workers = 2,
						.backend = handles_settings.backend,
						.signal = handles_settings.signal};

	handles_begin(rig, triple_alone);
	return went(rig->status, "the graph") &&
	       went(weir_graph_create(rig->registry, rig->description, &rig->graph), "graph") &&
	       went(weir_graph_add_inlet(rig->graph, "process.in", &program->in), "inlet") &&
	       went(weir_graph_add_outlet(rig->graph, "process.out", 2, flags, &program->out), "outlet") &&
	       went(weir_scheduler_create(rig->graph, &options, &rig->scheduler), "scheduler") &&
	       went(weir_graph_add_stream(rig->graph, 0, &program->stream), "stream") && handles_start(rig);
}

static bool open_own(struct program *program)
{
	return handles_expect_cuda(cudaStreamCreateWithFlags(&program->own, cudaStreamNonBlocking),
				   "cudaStreamCreate") &&
	       handles_expect_cuda(cudaEventCreateWithFlags(&program->event, cudaEventDisableTiming),
				   "cudaEventCreate") &&
	       handles_expect_cuda(cudaMallocHost((void **)&program->copy, BYTES), "cudaMallocHost");
}

static void close_program(struct program *program)
{
	weir_inlet_close(program->in);
	handles_wait(&program->rig, 30 * SECOND);
	handles_expect_cuda(cudaStreamDestroy(program->own), "cudaStreamDestroy");
	handles_expect_cuda(cudaEventDestroy(program->event), "cudaEventDestroy");
	handles_expect_cuda(cudaFreeHost(program->copy), "cudaFreeHost");
	handles_close(&program->rig);
}

/*
 * Pushes a message that the program's kernel writes on its own stream; weir's stream is ordered after it,
 * and its fence travels with the message.
 */
static bool push(struct program *program, uint32_t first)
{
	static const int64_t count = NUMBERS;
	static const weir_tensor like = {
		.size = sizeof like, .dimensions = 1, .shape = &count, .code = 1, .bits = 32};
	struct handles_fill work = {.count = NUMBERS, .ns = 2 * MS, .first = first};
	weir_message *message = NULL;
	weir_fence fence;

	if (!went(weir_message_create_tensor(program->rig.graph, &like, &message), "tensor"))
		return false;
	work.to = weir_message_data(message);
	return handles_expect_cuda(handles_fill_cuda(program->own, &work), "fill") &&
	       handles_expect_cuda(cudaEventRecord(program->event, program->own), "cudaEventRecord") &&
	       handles_expect_cuda(
		       cudaStreamWaitEvent(weir_stream_native(program->stream), program->event, 0),
		       "cudaStreamWaitEvent") &&
	       went(weir_stream_record(program->stream, &fence), "record") &&
	       went(weir_message_add_producer(message, fence), "produced") &&
	       went(weir_inlet_push(program->in, message, 10 * SECOND), "push");
}

static bool right(const uint32_t *numbers, uint32_t first)
{
	for (uint32_t i = 0; i < NUMBERS; i++)
		if (numbers[i] != 3 * (first + i) + 1)
			return handles_expect(false, "number %u of the frame %u is %u", i, first, numbers[i]);
	return true;
}

/* The message is finished: the host reads it at once. */
static bool take_finished(struct program *program, uint32_t first)
{
	weir_message *message = NULL;
	bool well = went(weir_outlet_take(program->out, 10 * SECOND, &message), "take") &&
		    right(weir_message_data(message), first);

	weir_message_unref(message);
	return well;
}

/* The program's own stream waits for the producer, then copies. */
static bool take_early(struct program *program, uint32_t first)
{
	weir_message *message = NULL;
	weir_fence fences[4];
	size_t count;
	bool well = went(weir_outlet_take(program->out, 10 * SECOND, &message), "take");

	count = well ? weir_message_fences(message, 4, fences) : 0;
	for (size_t i = 0; well && i < count && i < 4; i++)
		well = went(weir_fence_enqueue(program->rig.graph, fences[i], 0, program->own),
			    "fence_enqueue");
	well = well &&
	       handles_expect_cuda(cudaMemcpyAsync(program->copy, weir_message_data(message), BYTES,
						   cudaMemcpyDefault, program->own),
				   "cudaMemcpyAsync") &&
	       handles_expect_cuda(cudaStreamSynchronize(program->own), "cudaStreamSynchronize") &&
	       right(program->copy, first);
	weir_message_unref(message);
	return well;
}

static void go_round(unsigned flags, bool (*take)(struct program *program, uint32_t first))
{
	struct program program = {.own = NULL};
	bool well = open_own(&program) && open_graph(&program, flags);

	for (uint32_t i = 0; well && i < FRAMES; i++)
		well = push(&program, i * 7919) && take(&program, i * 7919);
	close_program(&program);
}

static void xb24_a_graph_waits_for_the_programs_own_work(void)
{
	go_round(0, take_finished);
}

static void xb24_a_programs_own_stream_waits_for_the_graphs_work(void)
{
	go_round(WEIR_OUTLET_EARLY, take_early);
}

const struct handles_check handles_programs[] = {
	{"xb24_a_graph_waits_for_the_programs_own_work", xb24_a_graph_waits_for_the_programs_own_work,
	 HANDLES_CUDA},
	{"xb24_a_programs_own_stream_waits_for_the_graphs_work",
	 xb24_a_programs_own_stream_waits_for_the_graphs_work, HANDLES_CUDA},
	{.name = NULL},
};
