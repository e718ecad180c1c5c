/*
 * Cost of a message into a port with many senders: N senders into one port, beside N pairs of one sender
 * and one receiver, on one worker of `host`. Two runs of different length alternate; their difference
 * excludes starts and ends.
 *
 * fan_in [CAPACITY | --quick]
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <weir.h>

#include "program.h"

enum { ROUNDS = 5, SIZES = 5, LEAST = 20 /* messages per sender */ };

static uint64_t messages; /* per sender, in the next run */
static const char *capacity = "1";

/* --- the operators --- */

static weir_status send_start(weir_context *context, void *state, const weir_values *values)
{
	(void)context;
	(void)values;
	*(uint64_t *)state = messages;
	return WEIR_OK;
}

static weir_status send_compute(weir_context *context, void *state)
{
	weir_message *message;
	weir_status status = weir_message_create_empty(weir_context_graph(context), &message);

	if (status)
		return status;
	if (--*(uint64_t *)state == 0)
		weir_context_finish(context);
	return weir_context_emit(context, 0, message);
}

static weir_status receive_compute(weir_context *context, void *state)
{
	*(uint64_t *)state += weir_context_count(context, 0);
	return WEIR_OK;
}

static const weir_port in[] = {{.size = sizeof(weir_port), .name = "in"}, {.name = NULL}};
static const weir_port out[] = {{.size = sizeof(weir_port), .name = "out"}, {.name = NULL}};
static const weir_operator sender = {.size = sizeof(weir_operator),
				     .name = "send",
				     .state_size = sizeof(uint64_t),
				     .outputs = out,
				     .start = send_start,
				     .compute = send_compute};
static const weir_operator receiver = {.size = sizeof(weir_operator),
				       .name = "receive",
				       .state_size = sizeof(uint64_t),
				       .inputs = in,
				       .compute = receive_compute};

/* --- a graph --- */

struct graph {
	weir_registry *registry;
	weir_graph *graph;
	weir_scheduler *scheduler;
	size_t senders;
};

static void add_receiver(weir_description *description, size_t index, size_t number)
{
	char name[32], pointer[64];

	snprintf(name, sizeof name, "r%zu", number);
	snprintf(pointer, sizeof pointer, "/entities/%zu/ports/in/capacity", index);
	must(weir_description_add_entity(description, name, "receive"), "receiver");
	must(weir_description_put(description, pointer, capacity), "capacity");
}

static void add_sender(weir_description *description, size_t number, size_t to)
{
	char name[32], from_port[40], to_port[40];

	snprintf(name, sizeof name, "s%zu", number);
	snprintf(from_port, sizeof from_port, "s%zu.out", number);
	snprintf(to_port, sizeof to_port, "r%zu.in", to);
	must(weir_description_add_entity(description, name, "send"), "sender");
	must(weir_description_connect(description, from_port, to_port), "connection");
}

static void describe(weir_description *description, size_t senders, bool pairs)
{
	for (size_t i = 0; i < (pairs ? senders : 1); i++)
		add_receiver(description, i, i);
	for (size_t i = 0; i < senders; i++)
		add_sender(description, i, pairs ? i : 0);
}

static void make(struct graph *graph, size_t senders, bool pairs)
{
	const weir_scheduler_options options = {.size = sizeof options, .workers = 1, .backend = "host"};
	weir_description *description = NULL;

	*graph = (struct graph){.senders = senders};
	must(weir_registry_create(&graph->registry), "registry");
	must(weir_registry_add_operator(graph->registry, &sender), "send");
	must(weir_registry_add_operator(graph->registry, &receiver), "receive");
	must(weir_description_create(&description), "description");
	describe(description, senders, pairs);
	must(weir_graph_create(graph->registry, description, &graph->graph), "graph");
	weir_description_destroy(description);
	must(weir_scheduler_create(graph->graph, &options, &graph->scheduler), "scheduler");
}

static void destroy(struct graph *graph)
{
	weir_scheduler_destroy(graph->scheduler);
	weir_graph_destroy(graph->graph);
	weir_registry_destroy(graph->registry);
}

/* --- measuring --- */

static int64_t cpu(void)
{
	struct timespec time;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
	return time.tv_sec * 1000000000 + time.tv_nsec;
}

static int64_t run(struct graph *graph, uint64_t count)
{
	int64_t begun = cpu();

	messages = count;
	must(weir_scheduler_start(graph->scheduler), "start");
	must(weir_scheduler_wait(graph->scheduler, -1, NULL), "run");
	return cpu() - begun;
}

static int compare(const void *a, const void *b)
{
	double left = *(const double *)a, right = *(const double *)b;

	return left < right ? -1 : left > right;
}

/* Returns ns per message: the median of the rounds, in CPU time, since other load disturbs the clock. */
static double measure(size_t senders, bool pairs, uint64_t total)
{
	uint64_t few = total / senders < LEAST ? LEAST : total / senders;
	double rounds[ROUNDS];
	struct graph graph;

	make(&graph, senders, pairs);
	run(&graph, few);
	for (int i = 0; i < ROUNDS; i++) {
		int64_t shorter = run(&graph, few);
		rounds[i] = (double)(run(&graph, 3 * few) - shorter) / (double)(2 * few * senders);
	}
	destroy(&graph);
	qsort(rounds, ROUNDS, sizeof *rounds, compare);
	return rounds[ROUNDS / 2];
}

int main(int argc, char **argv)
{
	static const size_t sizes[SIZES] = {10, 100, 1000, 10000, 100000};
	bool quick = argc > 1 && !strcmp(argv[1], "--quick");
	double first[2] = {0, 0};

	if (argc > 1 && !quick)
		capacity = argv[1];
	printf("%8s %12s %12s %10s %10s %10s\n", "senders", "one port", "pairs", "/ first", "/ first",
	       "port/pairs");
	for (int i = 0; i < (quick ? 2 : SIZES); i++) {
		uint64_t total = quick ? 2000 : 200000;
		double port = measure(sizes[i], false, total), pairs = measure(sizes[i], true, total);
		first[0] = i ? first[0] : port;
		first[1] = i ? first[1] : pairs;
		printf("%8zu %9.0f ns %9.0f ns %10.2f %10.2f %10.2f\n", sizes[i], port, pairs,
		       port / first[0], pairs / first[1], port / pairs);
	}
	return 0;
}
