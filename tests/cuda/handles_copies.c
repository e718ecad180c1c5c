/* Lists of copies, pageable memory, strided tensors, and scratch memory on several streams. */
#include <cuda_runtime_api.h>
#include <stdlib.h>
#include <string.h>

#include "handles.h"
#include "../calls.h"

static bool went(weir_status status, const char *call)
{
	return handles_expect(!status, "%s: %s", call, weir_last_error());
}

/* --- pageable memory --- */

enum { NUMBERS = 16384, BYTES = NUMBERS * (int)sizeof(uint32_t) };

static const char one_sink[] = "{\"weir\": 1, \"name\": \"copies\", \"entities\": ["
			       "{\"name\": \"source\", \"operator\": \"fill\","
			       " \"conditions\": [{\"type\": \"count\", \"count\": 1}]},"
			       "{\"name\": \"end\", \"operator\": \"sink\"}],"
			       " \"connections\": [[\"source.out\", \"end.in\"]]}";

struct memory {
	uint32_t *pageable, *pinned, *device, *managed;
};

static bool memory_open(struct memory *memory)
{
	memory->pageable = malloc(BYTES);
	return handles_expect(memory->pageable, "no memory") &&
	       handles_expect_cuda(cudaMallocHost((void **)&memory->pinned, BYTES), "cudaMallocHost") &&
	       handles_expect_cuda(cudaMalloc((void **)&memory->device, BYTES), "cudaMalloc") &&
	       handles_expect_cuda(cudaMallocManaged((void **)&memory->managed, BYTES, cudaMemAttachGlobal),
				   "cudaMallocManaged");
}

static void memory_close(struct memory *memory)
{
	free(memory->pageable);
	handles_expect_cuda(cudaFreeHost(memory->pinned), "cudaFreeHost");
	handles_expect_cuda(cudaFree(memory->device), "cudaFree");
	handles_expect_cuda(cudaFree(memory->managed), "cudaFree");
}

static weir_copy whole(void *to, const void *from)
{
	return (weir_copy){.size = sizeof(weir_copy), .to = to, .from = from, .row_bytes = BYTES};
}

static bool refused(weir_stream *stream, const weir_copy *copies, size_t count, const char *text)
{
	weir_status status = weir_stream_copies(stream, copies, count, WEIR_COPY_ASYNC, NULL);

	return handles_expect(status == WEIR_E_UNSUPPORTED && strstr(weir_last_error(), text),
			      "instead of '%s': %s: %s", text, weir_status_text(status), weir_last_error());
}

/* Copies at once, in both directions, and compares. */
static bool copied(weir_graph *graph, weir_stream *stream, const struct memory *memory, uint32_t *back,
		   unsigned flags)
{
	const weir_copy copies[] = {whole(memory->device, memory->pinned),
				    whole(memory->managed, memory->device), whole(back, memory->managed)};
	weir_fence fence;

	return went(weir_stream_copies(stream, copies, 3, flags, &fence), "copies") &&
	       went(weir_fence_wait(graph, fence, 10 * SECOND), "wait") &&
	       handles_expect(!memcmp(back, memory->pinned, BYTES), "the bytes differ");
}

static void check_pageable(weir_graph *graph, weir_stream *stream, const struct memory *memory)
{
	const weir_copy up[] = {whole(memory->device, memory->pinned),
				whole(memory->device, memory->pageable)};
	const weir_copy down = whole(memory->pageable, memory->device);

	for (uint32_t i = 0; i < NUMBERS; i++)
		memory->pinned[i] = 7 * i + 1;
	if (!refused(stream, up, 2,
		     "copies[1].from is pageable memory: use memory of weir_context_create_tensor") ||
	    !refused(stream, &down, 1, "copies[0].to is pageable memory") ||
	    !copied(graph, stream, memory, memory->pageable, 0))
		return;
	memset(memory->pageable, 0, BYTES);
	if (!handles_expect_cuda(cudaHostRegister(memory->pageable, BYTES, cudaHostRegisterPortable),
				 "cudaHostRegister"))
		return;
	copied(graph, stream, memory, memory->pageable, WEIR_COPY_ASYNC);
	handles_expect_cuda(cudaHostUnregister(memory->pageable), "cudaHostUnregister");
	refused(stream, &down, 1, "copies[0].to is pageable memory");
}

static void t01_pageable_memory_is_refused_until_it_is_registered(void)
{
	struct handles_rig rig;
	struct memory memory = {0};
	weir_stream *stream = NULL;

	handles_begin(&rig, one_sink);
	if (handles_open(&rig) && memory_open(&memory) &&
	    went(weir_graph_add_stream(rig.graph, 0, &stream), "stream"))
		check_pageable(rig.graph, stream, &memory);
	handles_close(&rig);
	memory_close(&memory);
}

/* --- strided tensors --- */

enum { HIGH = 64, WIDE = 48, EVERY = 3 };

static const char there_and_back[] = "{\"weir\": 1, \"name\": \"copies\", \"entities\": ["
				     "{\"name\": \"up\", \"operator\": \"upload\"},"
				     "{\"name\": \"down\", \"operator\": \"download\"}],"
				     " \"connections\": [[\"up.out\", \"down.in\"]]}";

/* Every third column of a picture, its lines and columns exchanged. */
static weir_tensor view_of(uint32_t *data, int device)
{
	static const int64_t shape[] = {WIDE / EVERY, HIGH}, strides[] = {EVERY, WIDE};

	return (weir_tensor){.size = sizeof(weir_tensor),
			     .data = data,
			     .device = device,
			     .dimensions = 2,
			     .shape = shape,
			     .strides = strides,
			     .code = 1,
			     .bits = 32};
}

static bool is_dense_view(const weir_message *message, const uint32_t *picture)
{
	const uint32_t *numbers = weir_message_data(message);

	for (int64_t column = 0; column < WIDE / EVERY; column++)
		for (int64_t line = 0; line < HIGH; line++)
			if (!handles_expect(numbers[column * HIGH + line] ==
						    picture[line * WIDE + column * EVERY],
					    "line %d, column %d is wrong", (int)line, (int)column))
				return false;
	return true;
}

/* A view of device memory; `whole` is dropped with it. */
static bool push_view(struct handles_rig *rig, weir_inlet *inlet, weir_stream *stream,
		      const uint32_t *picture)
{
	static const int64_t count = HIGH * WIDE;
	const weir_tensor like = {
		.size = sizeof like, .dimensions = 1, .shape = &count, .code = 1, .bits = 32};
	weir_message *all = NULL, *view = NULL;
	weir_copy copy = {.size = sizeof copy, .from = picture, .row_bytes = HIGH * WIDE * 4};
	weir_tensor tensor;
	weir_fence fence;

	if (!went(weir_message_create_tensor(rig->graph, &like, &all), "tensor"))
		return false;
	copy.to = weir_message_data(all);
	tensor = view_of(copy.to, 0);
	return went(weir_stream_copies(stream, &copy, 1, 0, &fence), "copies") &&
	       went(weir_message_wrap_tensor(rig->graph, &tensor, (void (*)(void *))weir_message_unref, all,
					     &view),
		    "view") &&
	       went(weir_message_add_producer(view, fence), "producer") &&
	       went(weir_inlet_push(inlet, view, 10 * SECOND), "push");
}

static bool push_host_view(struct handles_rig *rig, weir_inlet *inlet, uint32_t *picture)
{
	weir_tensor tensor = view_of(picture, WEIR_DEVICE_HOST);
	weir_message *view = NULL;

	return went(weir_message_wrap_tensor(rig->graph, &tensor, NULL, NULL, &view), "view") &&
	       went(weir_inlet_push(inlet, view, 10 * SECOND), "push");
}

static bool take_view(weir_outlet *outlet, const uint32_t *picture)
{
	weir_message *message = NULL;
	bool right = went(weir_outlet_take(outlet, 10 * SECOND, &message), "take") &&
		     is_dense_view(message, picture);

	weir_message_unref(message);
	return right;
}

static void pass_views(struct handles_rig *rig, weir_inlet *inlet, weir_outlet *outlet)
{
	static uint32_t picture[HIGH * WIDE];
	weir_stream *stream = NULL;

	for (uint32_t i = 0; i < HIGH * WIDE; i++)
		picture[i] = 11 * i + 5;
	if (!went(weir_graph_add_stream(rig->graph, 0, &stream), "stream") || !handles_start(rig))
		return;
	for (int i = 0; i < 10; i++) {
		if (!push_view(rig, inlet, stream, picture) || !take_view(outlet, picture) ||
		    !push_host_view(rig, inlet, picture) || !take_view(outlet, picture))
			break;
	}
	weir_inlet_close(inlet);
	handles_wait(rig, 30 * SECOND);
}

/* upload passes on what is on the device: download gets the view as it is. */
static void t01_strided_tensors_arrive_dense(void)
{
	struct handles_rig rig;
	weir_inlet *inlet = NULL;
	weir_outlet *outlet = NULL;
	const weir_scheduler_options options = {.size = sizeof options,
						.workers = 2,
						.backend = handles_settings.backend,
						.signal = handles_settings.signal};

	handles_begin(&rig, there_and_back);
	if (went(rig.status, "the graph") &&
	    went(weir_graph_create(rig.registry, rig.description, &rig.graph), "graph") &&
	    went(weir_graph_add_inlet(rig.graph, "up.in", &inlet), "inlet") &&
	    went(weir_graph_add_outlet(rig.graph, "down.out", 1, 0, &outlet), "outlet") &&
	    went(weir_scheduler_create(rig.graph, &options, &rig.scheduler), "scheduler"))
		pass_views(&rig, inlet, outlet);
	handles_close(&rig);
}

/* --- scratch memory --- */

enum { FRAMES = 60, COUNT = 4096, GROWTH = 512, SLOTS = 4 };

static uint32_t (*results)[SLOTS][COUNT]; /* pinned, by tick */

static uint32_t first_of(uint64_t tick, int slot)
{
	return (uint32_t)(tick * 7919 + (uint64_t)slot * 104729);
}

/* Fills scratch memory of `on` there, slowly; then goes on with it on `then`. */
static weir_status use_scratch(weir_context *context, weir_stream *on, weir_stream *then, int slot)
{
	uint64_t tick = weir_context_tick(context);
	int64_t count = COUNT + (int64_t)tick * GROWTH;
	struct handles_fill fill = {NULL, count, 300000, first_of(tick, slot)};
	struct handles_triple triple = {NULL, NULL, count};
	weir_copy copy = {.size = sizeof copy, .to = results[tick][slot], .row_bytes = COUNT * 4};
	void *from = NULL, *to = NULL;
	weir_status status = weir_context_scratch(context, on, (size_t)count * 4, &from);

	if (!status)
		status = weir_context_scratch(context, on, (size_t)count * 4, &to);
	fill.to = from;
	triple.from = from;
	triple.to = to;
	copy.from = to;
	if (!status)
		status = handles_launch(context, on, &handles_fill_kernel, &fill, sizeof fill);
	if (!status && then != on)
		status = weir_context_synchronize_streams(context, &on, 1, then);
	if (!status)
		status = handles_launch(context, then, &handles_triple_kernel, &triple, sizeof triple);
	return status ? status : weir_stream_copies(then, &copy, 1, WEIR_COPY_ASYNC, NULL);
}

/* Two named streams and the current one, in turn as the first; the last slot begins on one and ends on
 * another. */
static weir_status scratch_compute(weir_context *context, void *state)
{
	uint64_t tick = weir_context_tick(context);
	weir_stream *streams[3] = {current_stream(context), NULL, NULL};
	weir_status status = weir_context_allocate_stream(context, "one", &streams[1]);

	(void)state;
	if (!status)
		status = weir_context_allocate_stream(context, "two", &streams[2]);
	for (int i = 0; i < 3 && !status; i++) {
		weir_stream *stream = streams[((uint64_t)i + tick) % 3];

		status = use_scratch(context, stream, stream, i);
	}
	return status ? status : use_scratch(context, streams[tick % 3], streams[(tick + 1) % 3], 3);
}

static const weir_operator scratch_user = {
	.size = sizeof(weir_operator),
	.name = "scratch_user",
	.help = "works on scratch memory of three streams",
	.compute = scratch_compute,
};

static const char scratch_alone[] = "{\"weir\": 1, \"name\": \"scratch\", \"entities\": ["
				    "{\"name\": \"user\", \"operator\": \"scratch_user\","
				    " \"conditions\": [{\"type\": \"count\", \"count\": 60}]}]}";

static void check_results(void)
{
	for (uint64_t tick = 0; tick < FRAMES; tick++)
		for (int slot = 0; slot < SLOTS; slot++)
			for (uint32_t i = 0; i < COUNT; i++)
				if (!handles_expect(results[tick][slot][i] ==
							    3 * (first_of(tick, slot) + i) + 1,
						    "tick %d, slot %d: number %u is %u", (int)tick, slot, i,
						    results[tick][slot][i]))
					return;
}

static bool results_open(void)
{
	size_t bytes = FRAMES * sizeof *results;

	if (handles_settings.cuda)
		return handles_expect_cuda(cudaMallocHost((void **)&results, bytes), "cudaMallocHost");
	results = malloc(bytes);
	return handles_expect(results, "no memory");
}

static void t11_scratch_memory_of_streams_that_overlap_keeps_its_contents(void)
{
	struct handles_rig rig;
	weir_entity_counts counts = {.size = sizeof counts};

	handles_begin(&rig, scratch_alone);
	if (!results_open())
		return;
	if (went(rig.status, "the graph") &&
	    went(weir_registry_add_operator(rig.registry, &scratch_user), "operator") && handles_open(&rig) &&
	    handles_start(&rig) && handles_wait(&rig, 60 * SECOND))
		check_results();
	if (rig.scheduler && !weir_scheduler_entity_counts(rig.scheduler, 0, &counts))
		handles_print_note("most scratch memory of a tick: %llu bytes",
				   (unsigned long long)counts.most_scratch);
	handles_close(&rig);
	if (handles_settings.cuda)
		handles_expect_cuda(cudaFreeHost(results), "cudaFreeHost");
	else
		free(results);
}

const struct handles_check handles_copies[] = {
	{"t01_pageable_memory_is_refused_until_it_is_registered",
	 t01_pageable_memory_is_refused_until_it_is_registered, HANDLES_CUDA},
	{"t01_strided_tensors_arrive_dense", t01_strided_tensors_arrive_dense, 0},
	{"t11_scratch_memory_of_streams_that_overlap_keeps_its_contents",
	 t11_scratch_memory_of_streams_that_overlap_keeps_its_contents, 0},
	{.name = NULL},
};
