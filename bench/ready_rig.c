/* The operators of bench/ready, and graphs of them, built through the C API. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ready.h"

static _Atomic int64_t first_launch, last_gated;
static unsigned failures;

/* --- operators --- */

struct stage {
	int line;
	int64_t kernel_ns;
};

static int work_on_host(const void *arguments)
{
	const struct ready_work *work = arguments;

	weir_sleep(work->ns);
	if (work->flag)
		*(volatile uint32_t *)work->flag = work->value;
	return 0;
}

static const weir_kernel kernel = {
	.size = sizeof(weir_kernel),
	.name = "ready_work",
	.host = work_on_host,
	.cuda = ready_gpu_launch,
};

static weir_status stage_start(weir_context *context, void *state, const weir_values *values)
{
	struct stage *self = state;

	(void)context;
	self->line = (int)weir_values_int(values, "line");
	self->kernel_ns = weir_values_int(values, "duration");
	return WEIR_OK;
}

static weir_status launch(weir_context *context, const struct stage *self, weir_stream **out)
{
	uint64_t frame = weir_context_tick(context);
	struct ready_work work = {.ns = self->kernel_ns};
	weir_stream *stream;
	weir_status status = weir_context_stream(context, &stream);

	if (status)
		return status;
	if (!frame)
		atomic_store(&first_launch, ready_now());
	if (self->line >= 0) {
		struct ready_line *line = &ready_lines[self->line];

		work.flag = ready_flag((unsigned)self->line);
		work.value = (uint32_t)frame + 1;
		if (frame < READY_FRAMES)
			line->launched_at[frame] = ready_now();
		atomic_fetch_add_explicit(&line->launched, 1, memory_order_relaxed);
	}
	*out = stream;
	return weir_stream_launch(stream, &kernel, &work, sizeof work);
}

static weir_status emit_empty(weir_context *context)
{
	weir_message *message;
	weir_status status = weir_message_create_empty(weir_context_graph(context), &message);

	return status ? status : weir_context_emit(context, 0, message);
}

static weir_status stage_compute(weir_context *context, void *state)
{
	weir_stream *stream;
	weir_status status = launch(context, state, &stream);

	return status ? status : emit_empty(context);
}

/* Waits for the stream, which gates avoid. */
static weir_status sync_compute(weir_context *context, void *state)
{
	weir_stream *stream;
	weir_status status = launch(context, state, &stream);
	int error = status ? 0 : ready_gpu_wait(weir_stream_native(stream));

	if (error)
		return weir_context_fail(context, "cudaStreamSynchronize: %s", ready_gpu_text(error));
	return status ? status : emit_empty(context);
}

static weir_status gated_compute(weir_context *context, void *state)
{
	int64_t now = ready_now(); /* first, before anything else */
	const struct stage *self = state;
	uint64_t frame = weir_context_tick(context);
	struct ready_line *line;

	atomic_store_explicit(&last_gated, now, memory_order_relaxed);
	if (self->line < 0)
		return WEIR_OK;
	line = &ready_lines[self->line];
	if (frame < READY_FRAMES) {
		line->computed_at[frame] = now;
		line->entered_at[frame] = ready_entry_last();
	}
	atomic_fetch_add_explicit(&line->done, 1, memory_order_release);
	return WEIR_OK;
}

static weir_status return_compute(weir_context *context, void *state)
{
	const struct stage *self = state;

	atomic_fetch_add_explicit(&ready_lines[self->line].done, 1, memory_order_relaxed);
	return emit_empty(context);
}

static const weir_parameter parameters[] = {
	{.size = sizeof(weir_parameter),
	 .name = "line",
	 .type = WEIR_TYPE_INT,
	 .fallback = "-1",
	 .help = "whose frames"},
	{.size = sizeof(weir_parameter),
	 .name = "duration",
	 .type = WEIR_TYPE_DURATION,
	 .fallback = "0",
	 .help = "of its kernel"},
	{.name = NULL},
};
static const weir_port in[] = {{.size = sizeof(weir_port), .name = "in"}, {.name = NULL}};
static const weir_port perhaps_in[] = {{.size = sizeof(weir_port), .name = "in", .flags = WEIR_PORT_OPTIONAL},
				       {.name = NULL}};
static const weir_port out[] = {{.size = sizeof(weir_port), .name = "out"}, {.name = NULL}};

#define OPERATOR(called, does)                                                                               \
	.size = sizeof(weir_operator), .name = called, .help = does, .state_size = sizeof(struct stage),     \
	.parameters = parameters, .start = stage_start
static const weir_operator operators[] = {
	{OPERATOR("ready_source", "launches a kernel"), .inputs = perhaps_in, .outputs = out,
	 .compute = stage_compute, .flags = WEIR_OPERATOR_STREAM},
	{OPERATOR("ready_filter", "launches a kernel"), .inputs = in, .outputs = out,
	 .compute = stage_compute, .flags = WEIR_OPERATOR_STREAM},
	{OPERATOR("ready_sync", "launches a kernel, waits for it"), .inputs = in, .outputs = out,
	 .compute = sync_compute, .flags = WEIR_OPERATOR_STREAM},
	{OPERATOR("ready_gated", "notes when it runs"), .inputs = in, .compute = gated_compute},
	{OPERATOR("ready_return", "counts frames"), .inputs = in, .outputs = out, .compute = return_compute},
};
#undef OPERATOR

/* --- graphs --- */

/* Records the first failure. Returns true while there is none. */
static bool record(struct ready_rig *rig, weir_status status)
{
	if (!rig->status && status) {
		rig->status = status;
		snprintf(rig->why, sizeof rig->why, "%s", weir_last_error());
	}
	return !rig->status;
}

void ready_rig_begin(struct ready_rig *rig)
{
	*rig = (struct ready_rig){0};
	record(rig, weir_registry_create(&rig->registry));
	for (size_t i = 0; !rig->status && i < sizeof operators / sizeof *operators; i++)
		record(rig, weir_registry_add_operator(rig->registry, &operators[i]));
	if (!rig->status)
		record(rig, weir_description_create(&rig->description));
	ready_rig_put(rig, "/scheduler/device_memory", "\"1MiB\""); /* empty messages need none */
	ready_rig_put(rig, "/scheduler/host_memory", "\"1MiB\"");
}

void ready_rig_put(struct ready_rig *rig, const char *pointer, const char *json)
{
	if (!rig->status)
		record(rig, weir_description_put(rig->description, pointer, json));
}

void ready_rig_of_last(struct ready_rig *rig, const char *pointer, const char *json)
{
	char whole[128];

	snprintf(whole, sizeof whole, "/entities/%zu/%s", rig->entities - 1, pointer);
	ready_rig_put(rig, whole, json);
}

void ready_rig_add(struct ready_rig *rig, const char *name, const char *kind, int line, int64_t kernel_ns)
{
	char value[32];

	if (rig->status || !record(rig, weir_description_add_entity(rig->description, name, kind)))
		return;
	rig->entities++;
	snprintf(value, sizeof value, "%d", line);
	ready_rig_of_last(rig, "parameters/line", value);
	snprintf(value, sizeof value, "\"%" PRId64 "ns\"", kernel_ns);
	ready_rig_of_last(rig, "parameters/duration", value);
}

void ready_rig_gate(struct ready_rig *rig)
{
	ready_rig_of_last(rig, "conditions/-", "{\"type\": \"cuda_stream\", \"port\": \"in\"}");
}

void ready_rig_never_gate(struct ready_rig *rig)
{
	ready_rig_of_last(rig, "ports/in/gate", "false");
}

void ready_rig_connect(struct ready_rig *rig, const char *from, const char *to, unsigned initial)
{
	char json[160];

	if (rig->status)
		return;
	if (!initial) {
		record(rig, weir_description_connect(rig->description, from, to));
		return;
	}
	snprintf(json, sizeof json, "{\"from\": \"%s\", \"to\": \"%s\", \"initial_messages\": %u}", from, to,
		 initial);
	ready_rig_put(rig, "/connections/-", json);
}

static void make_inlets(struct ready_rig *rig, unsigned count)
{
	char port[32];

	for (unsigned i = 0; i < count && !rig->status; i++) {
		snprintf(port, sizeof port, "p%u.in", i);
		record(rig, weir_graph_add_inlet(rig->graph, port, &rig->inlets[i]));
	}
}

bool ready_rig_open(struct ready_rig *rig, const struct ready_run *run)
{
	const weir_scheduler_options options = {
		.size = sizeof options,
		.workers = run->workers,
		.backend = ready_settings.backend,
		.signal = run->signal,
		.worker_spin_ns = run->worker_spin_ns,
	};

	if (!rig->status)
		record(rig, weir_graph_create(rig->registry, rig->description, &rig->graph));
	make_inlets(rig, run->inlets);
	return !rig->status && record(rig, weir_scheduler_create(rig->graph, &options, &rig->scheduler));
}

bool ready_rig_start(struct ready_rig *rig)
{
	return !rig->status && record(rig, weir_scheduler_start(rig->scheduler));
}

int64_t ready_rig_first_launch(void)
{
	return atomic_load(&first_launch);
}

int64_t ready_rig_last_gated(void)
{
	return atomic_load(&last_gated);
}

bool ready_rig_run_for(struct ready_rig *rig, int64_t ns)
{
	return !rig->status && weir_scheduler_wait(rig->scheduler, ns, NULL) == WEIR_E_TIMEOUT;
}

void ready_rig_push(struct ready_rig *rig, unsigned inlet)
{
	weir_message *message = NULL;
	weir_status status = weir_message_create_empty(rig->graph, &message);

	if (!status)
		status = weir_inlet_push(rig->inlets[inlet], message, 0);
	if (status)
		weir_message_unref(message);
	record(rig, status);
}

bool ready_rig_stop(struct ready_rig *rig, bool ask)
{
	weir_outcome outcome = {.size = sizeof outcome};
	weir_status status;

	if (!rig->scheduler)
		return false;
	if (ask)
		weir_scheduler_stop(rig->scheduler, WEIR_STOP_DRAIN);
	status = weir_scheduler_wait(rig->scheduler, 10 * SECOND, &outcome);
	if (weir_scheduler_running(rig->scheduler)) {
		weir_scheduler_stop(rig->scheduler, 0);
		weir_scheduler_wait(rig->scheduler, 5 * SECOND, &outcome);
	}
	if (status && !rig->status) {
		rig->status = status;
		snprintf(rig->why, sizeof rig->why, "%s", outcome.text ? outcome.text : weir_last_error());
	}
	return !rig->status;
}

unsigned ready_rig_failures(void)
{
	return failures;
}

void ready_rig_close(struct ready_rig *rig)
{
	if (rig->status) {
		printf("  failed: %s: %s\n", weir_status_text(rig->status), rig->why);
		failures++;
	}
	weir_scheduler_destroy(rig->scheduler);
	weir_graph_destroy(rig->graph);
	weir_description_destroy(rig->description);
	weir_registry_destroy(rig->registry);
}
