/*
 * One graph on one worker of `host`, for a tool that counts instructions; prints the number of ticks. Two
 * runs of different length differ only in ticks, so their difference excludes the start and the end.
 *
 * instructions chain ENTITIES CAPACITY MESSAGES
 * instructions fan_in SENDERS CAPACITY MESSAGES	each sender's
 * instructions fan_out RECEIVERS CAPACITY MESSAGES	the sender's
 * instructions gated 0 CAPACITY MESSAGES		a kernel's, before a gate
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "weir.h"
#include "../calls.h"

static void check(weir_status status, const char *what)
{
	if (!status)
		return;
	fprintf(stderr, "instructions: %s: %s\n", what, weir_last_error());
	exit(1);
}

/* --- the operators --- */

static uint64_t messages;

static weir_status source_start(weir_context *context, void *state, const weir_values *values)
{
	(void)context;
	(void)values;
	*(uint64_t *)state = messages;
	return WEIR_OK;
}

static weir_status source_compute(weir_context *context, void *state)
{
	weir_message *message;
	weir_status status = weir_message_create_empty(weir_context_graph(context), &message);

	if (status)
		return status;
	if (--*(uint64_t *)state == 0)
		weir_context_finish(context);
	return weir_context_emit(context, 0, message);
}

/* Long enough for the worker to arm the signal and sleep, so that each gated tick takes the same path. */
static int pause_kernel(const void *arguments)
{
	(void)arguments;
	weir_sleep(2000000);
	return 0;
}

static const weir_kernel kernel = {sizeof(weir_kernel), "pause", pause_kernel, NULL};

static weir_status device_compute(weir_context *context, void *state)
{
	weir_stream *stream = current_stream(context);

	if (!stream || weir_stream_launch(stream, &kernel, NULL, 0))
		return WEIR_E_DEVICE;
	return source_compute(context, state);
}

static weir_status pass_compute(weir_context *context, void *state)
{
	(void)state;
	return weir_context_forward(context, 0, 0, 0);
}

static weir_status sink_compute(weir_context *context, void *state)
{
	*(uint64_t *)state += weir_context_count(context, 0);
	return WEIR_OK;
}

static const weir_port in[] = {{.size = sizeof(weir_port), .name = "in"}, {.name = NULL}};
static const weir_port out[] = {{.size = sizeof(weir_port), .name = "out"}, {.name = NULL}};

static const weir_operator operators[] = {
	{.size = sizeof(weir_operator),
	 .name = "make",
	 .help = "makes empty messages",
	 .state_size = sizeof(uint64_t),
	 .outputs = out,
	 .start = source_start,
	 .compute = source_compute},
	{.size = sizeof(weir_operator),
	 .name = "launch",
	 .help = "likewise, after a kernel",
	 .state_size = sizeof(uint64_t),
	 .flags = WEIR_OPERATOR_STREAM,
	 .outputs = out,
	 .start = source_start,
	 .compute = device_compute},
	{.size = sizeof(weir_operator),
	 .name = "hand_on",
	 .help = "hands its message on",
	 .inputs = in,
	 .outputs = out,
	 .compute = pass_compute},
	{.size = sizeof(weir_operator),
	 .name = "count_in",
	 .help = "counts",
	 .state_size = sizeof(uint64_t),
	 .inputs = in,
	 .compute = sink_compute},
};

/* --- the graphs --- */

static void add(weir_description *description, size_t index, const char *operator_name, unsigned capacity)
{
	char name[32], pointer[80], value[16];

	snprintf(name, sizeof name, "e%zu", index);
	check(weir_description_add_entity(description, name, operator_name), "add");
	if (strcmp(operator_name, "hand_on") && strcmp(operator_name, "count_in"))
		return;
	snprintf(pointer, sizeof pointer, "/entities/%zu/ports/in/capacity", index);
	snprintf(value, sizeof value, "%u", capacity);
	check(weir_description_put(description, pointer, value), "capacity");
}

static void connect(weir_description *description, size_t from, size_t to)
{
	char out_name[40], in_name[40];

	snprintf(out_name, sizeof out_name, "e%zu.out", from);
	snprintf(in_name, sizeof in_name, "e%zu.in", to);
	check(weir_description_connect(description, out_name, in_name), "connect");
}

static void chain(weir_description *description, size_t entities, unsigned capacity)
{
	for (size_t i = 0; i < entities; i++)
		add(description, i, !i ? "make" : i + 1 < entities ? "hand_on" : "count_in", capacity);
	for (size_t i = 1; i < entities; i++)
		connect(description, i - 1, i);
}

static void fan_in(weir_description *description, size_t senders, unsigned capacity)
{
	add(description, 0, "count_in", capacity);
	for (size_t i = 1; i <= senders; i++) {
		add(description, i, "make", capacity);
		connect(description, i, 0);
	}
}

static void fan_out(weir_description *description, size_t receivers, unsigned capacity)
{
	add(description, 0, "make", capacity);
	for (size_t i = 1; i <= receivers; i++) {
		add(description, i, "count_in", capacity);
		connect(description, 0, i);
	}
}

static void gated(weir_description *description, size_t unused, unsigned capacity)
{
	(void)unused;
	add(description, 0, "launch", capacity);
	add(description, 1, "count_in", capacity);
	connect(description, 0, 1);
	check(weir_description_put(description, "/entities/1/conditions/-",
				   "{\"type\": \"cuda_stream\", \"port\": \"in\"}"),
	      "gate");
}

static const struct {
	const char *name;
	void (*describe)(weir_description *description, size_t size, unsigned capacity);
} shapes[] = {{"chain", chain}, {"fan_in", fan_in}, {"fan_out", fan_out}, {"gated", gated}};

static void run(weir_graph *graph)
{
	const weir_scheduler_options options = {.size = sizeof options, .workers = 1, .backend = "host"};
	weir_outcome outcome = {.size = sizeof outcome};
	weir_scheduler *scheduler;

	check(weir_scheduler_create(graph, &options, &scheduler), "scheduler");
	check(weir_scheduler_start(scheduler), "start");
	check(weir_scheduler_wait(scheduler, -1, &outcome), "wait");
	check(weir_scheduler_destroy(scheduler), "destroy");
	printf("%llu\n", (unsigned long long)outcome.ticks);
}

static void run_shape(size_t shape, size_t size, unsigned capacity)
{
	weir_registry *registry;
	weir_description *description;
	weir_graph *graph;

	check(weir_registry_create(&registry), "registry");
	for (size_t i = 0; i < sizeof operators / sizeof *operators; i++)
		check(weir_registry_add_operator(registry, &operators[i]), operators[i].name);
	check(weir_description_create(&description), "description");
	shapes[shape].describe(description, size, capacity);
	check(weir_graph_create(registry, description, &graph), "graph");
	run(graph);
	check(weir_graph_destroy(graph), "destroy");
	weir_description_destroy(description);
	weir_registry_destroy(registry);
}

int main(int argc, char **argv)
{
	size_t shape = 0, count = sizeof shapes / sizeof *shapes;

	while (argc == 5 && shape < count && strcmp(argv[1], shapes[shape].name))
		shape++;
	if (argc != 5 || shape == count) {
		fprintf(stderr, "usage: instructions chain|fan_in|fan_out|gated SIZE CAPACITY MESSAGES\n");
		return 2;
	}
	messages = strtoull(argv[4], NULL, 10);
	run_shape(shape, strtoul(argv[2], NULL, 10), (unsigned)strtoul(argv[3], NULL, 10));
	return 0;
}
