/*
 * Latency until a program has a result: from before the push into an inlet until the program holds the
 * result, one at a time, for a thread blocked in weir_outlet_take, and for a thread that runs a libevent
 * base with the outlet's descriptor and weir's own loop in it. Neither uses a timer.
 */
#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <weir.h>

#include "program.h"

enum { WARM_UP = 200 };

/* --- a graph of one entity --- */

static const weir_port inputs[] = {{.size = sizeof(weir_port), .name = "in"}, {.name = NULL}};
static const weir_port outputs[] = {{.size = sizeof(weir_port), .name = "out"}, {.name = NULL}};

static weir_status compute(weir_context *context, void *state)
{
	(void)state;
	return weir_context_forward(context, 0, 0, 0);
}

static const weir_operator echo = {.size = sizeof(weir_operator),
				   .name = "echo",
				   .inputs = inputs,
				   .outputs = outputs,
				   .compute = compute};

struct rig {
	weir_registry *registry;
	weir_graph *graph;
	weir_scheduler *scheduler;
	weir_inlet *in;
	weir_outlet *out;
	struct event_base *base;
	struct event *event;
	int64_t *samples, begun;
	size_t count, wanted;
};

static void make_rig(struct rig *rig, size_t count, struct event_base *base)
{
	static const char json[] =
		"{\"weir\": 1, \"entities\": [{\"name\": \"echo\", \"operator\": \"echo\"}]}";
	weir_scheduler_options options = {
		.size = sizeof options, .workers = 1, .backend = "host", .event_base = base};
	weir_description *description = NULL;

	*rig = (struct rig){.base = base, .wanted = count + WARM_UP};
	rig->samples = malloc(rig->wanted * sizeof *rig->samples);
	must(rig->samples ? WEIR_OK : WEIR_E_NOMEM, "samples");
	must(weir_registry_create(&rig->registry), "registry");
	must(weir_registry_add_operator(rig->registry, &echo), "echo");
	must(weir_description_parse(json, strlen(json), NULL, NULL, &description), "graph");
	must(weir_graph_create(rig->registry, description, &rig->graph), "graph");
	weir_description_destroy(description);
	must(weir_graph_add_inlet(rig->graph, "echo.in", &rig->in), "inlet");
	must(weir_graph_add_outlet(rig->graph, "echo.out", 1, 0, &rig->out), "outlet");
	must(weir_scheduler_create(rig->graph, &options, &rig->scheduler), "scheduler");
	must(weir_scheduler_start(rig->scheduler), "start");
}

static void push(struct rig *rig)
{
	weir_message *message = NULL;

	must(weir_message_create_empty(rig->graph, &message), "message");
	rig->begun = now();
	must(weir_inlet_push(rig->in, message, 0), "push");
}

static void note(struct rig *rig, weir_message *result)
{
	rig->samples[rig->count++] = now() - rig->begun;
	weir_message_unref(result);
}

/* --- the two --- */

static void wait_in_take(struct rig *rig)
{
	while (rig->count < rig->wanted) {
		weir_message *result = NULL;
		push(rig);
		must(weir_outlet_take(rig->out, -1, &result), "take");
		note(rig, result);
	}
	weir_inlet_close(rig->in);
}

static void on_outlet(evutil_socket_t fd, short what, void *arg)
{
	struct rig *rig = arg;
	weir_message *result = NULL;
	weir_status status = weir_outlet_take(rig->out, 0, &result);

	(void)fd;
	(void)what;
	if (status == WEIR_E_CLOSED)
		event_del(rig->event);
	if (status)
		return;
	note(rig, result);
	if (rig->count < rig->wanted)
		push(rig);
	else
		weir_inlet_close(rig->in);
}

static void serve_a_base(struct rig *rig)
{
	int fd;

	must(weir_outlet_fd(rig->out, &fd), "outlet");
	rig->event = event_new(rig->base, fd, EV_READ | EV_PERSIST, on_outlet, rig);
	must(rig->event && !event_add(rig->event, NULL) ? WEIR_OK : WEIR_E_NOMEM, "event");
	push(rig);
	event_base_dispatch(rig->base);
	event_free(rig->event);
}

static int compare(const void *a, const void *b)
{
	int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;

	return left < right ? -1 : left > right;
}

/* Returns p50 and p99 in microseconds. */
static void measure(size_t count, bool with_base, double out[2])
{
	struct event_base *base = with_base ? event_base_new() : NULL;
	struct rig rig;

	make_rig(&rig, count, base);
	if (with_base)
		serve_a_base(&rig);
	else
		wait_in_take(&rig);
	must(weir_scheduler_wait(rig.scheduler, -1, NULL), "run");
	qsort(rig.samples + WARM_UP, count, sizeof *rig.samples, compare);
	out[0] = (double)rig.samples[WARM_UP + count / 2] / 1e3;
	out[1] = (double)rig.samples[WARM_UP + count * 99 / 100] / 1e3;
	free(rig.samples);
	weir_scheduler_destroy(rig.scheduler);
	weir_graph_destroy(rig.graph);
	weir_registry_destroy(rig.registry);
	if (base)
		event_base_free(base);
}

/* Medians of several alternating rounds: other load disturbs single ones. */
enum { ROUNDS = 7 };

static double median(double *values)
{
	for (int i = 1; i < ROUNDS; i++)
		for (int k = i; k && values[k] < values[k - 1]; k--) {
			double value = values[k];
			values[k] = values[k - 1];
			values[k - 1] = value;
		}
	return values[ROUNDS / 2];
}

int main(int argc, char **argv)
{
	size_t count = argc > 1 && !strcmp(argv[1], "--quick") ? 200 : 5000;
	double half[2][ROUNDS], most[2][ROUNDS];

	for (int round = 0; round < ROUNDS; round++)
		for (int with_base = 0; with_base < 2; with_base++) {
			double out[2];
			measure(count, with_base, out);
			half[with_base][round] = out[0];
			most[with_base][round] = out[1];
		}
	printf("%-32s %9s %9s\n", "push -> result, us", "p50", "p99");
	printf("%-32s %9.1f %9.1f\n", "a blocking take", median(half[0]), median(most[0]));
	printf("%-32s %9.1f %9.1f\n", "the callback of an event_base", median(half[1]), median(most[1]));
	printf("%-32s %9.2f %9.2f\n", "ratio", half[1][ROUNDS / 2] / half[0][ROUNDS / 2],
	       most[1][ROUNDS / 2] / most[0][ROUNDS / 2]);
	return 0;
}
