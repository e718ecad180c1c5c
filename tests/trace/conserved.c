/*
 * Runs small random graphs on `sim`, one per seed, and writes the timeline of each and what the scheduler
 * counted, for conserved.py.
 *
 * usage: conserved FOLDER FIRST SEEDS
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "weir.h"

static uint64_t random_state;

/* A number below `bound`. */
static unsigned draw(unsigned bound)
{
	random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (unsigned)(random_state >> 33) % bound;
}

static void must(weir_status status, const char *what, uint64_t seed)
{
	if (!status)
		return;
	fprintf(stderr, "seed %" PRIu64 ": %s: %s: %s\n", seed, what, weir_status_text(status),
		weir_last_error());
	exit(1);
}

struct drawing {
	char entities[4000], connections[2000];
	const char *comma;
	unsigned senders; /* entities 0 to senders - 1 can send */
};

WEIR_PRINTF(3, 4) static void add(char *text, size_t room, const char *format, ...)
{
	size_t length = strlen(text);
	va_list list;

	va_start(list, format);
	vsnprintf(text + length, room - length, format, list);
	va_end(list);
}

/* Of the entity that is drawn: it ticks that often at most. */
static void draw_count(struct drawing *drawing, unsigned count, bool periodic)
{
	add(drawing->entities, sizeof drawing->entities,
	    ", \"conditions\": [{\"type\": \"count\", \"count\": %u}%s]", count,
	    periodic ? ", {\"type\": \"periodic\", \"period\": \"3us\"}" : "");
}

static void draw_entity(struct drawing *drawing, unsigned id, const char *operator)
{
	add(drawing->entities, sizeof drawing->entities, "%s{\"name\": \"e%u\", \"operator\": %s",
	    drawing->comma, id, operator);
	drawing->comma = ", ";
}

static void draw_source(struct drawing *drawing)
{
	bool last = !draw(3);

	draw_entity(drawing, drawing->senders++, "\"ping\"");
	draw_count(drawing, 1 + draw(20), last);
	add(drawing->entities, sizeof drawing->entities, "}");
}

static void connect(struct drawing *drawing, unsigned from, unsigned to, unsigned initial)
{
	add(drawing->connections, sizeof drawing->connections, "%s{\"from\": \"e%u.out\", \"to\": \"e%u.in\"",
	    *drawing->connections ? ", " : "", from, to);
	if (initial)
		add(drawing->connections, sizeof drawing->connections, ", \"initial_messages\": %u", initial);
	add(drawing->connections, sizeof drawing->connections, "}");
}

/* A receiver with a random queue from one or two senders; `forwards`: it sends, too. */
static void draw_receiver(struct drawing *drawing, unsigned id, bool forwards)
{
	static const char *const filters[] = {"\"spin\", \"parameters\": {\"duration\": \"7us\"}",
					      "\"delay\", \"parameters\": {\"duration\": \"2us\"}"};
	static const char *const policies[] = {"block", "pop", "reject"};
	unsigned capacity = 1 + draw(3), sender = draw(drawing->senders);

	draw_entity(drawing, id, forwards ? filters[draw(2)] : "\"sink\"");
	add(drawing->entities, sizeof drawing->entities,
	    ", \"ports\": {\"in\": {\"capacity\": %u, \"policy\": \"%s\"}}", capacity, policies[draw(3)]);
	if (!draw(4))
		draw_count(drawing, 1 + draw(6), false);
	add(drawing->entities, sizeof drawing->entities, "}");
	connect(drawing, sender, id, draw(3) ? 0 : draw(capacity + 1));
	if (!draw(2) && sender + 1 < drawing->senders)
		connect(drawing, sender + 1, id, 0);
	drawing->senders += forwards;
}

/* Every source needs a receiver, so the last entity, a sink, has a connection from each. */
static char *draw_graph(uint64_t seed)
{
	struct drawing drawing = {.comma = ""};
	unsigned sources, filters, id;
	char *text = malloc(8000);

	random_state = seed * 2 + 1;
	draw(2);
	sources = 1 + draw(3);
	filters = draw(4);
	for (unsigned i = 0; i < sources; i++)
		draw_source(&drawing);
	for (id = sources; id < sources + filters; id++)
		draw_receiver(&drawing, id, true);
	draw_receiver(&drawing, id++, false);
	draw_entity(&drawing, id, "\"sink\"}");
	for (unsigned i = 0; i < sources; i++)
		connect(&drawing, i, id, 0);
	if (text)
		snprintf(text, 8000,
			 "{\"weir\": 1, \"scheduler\": {\"workers\": %u}, \"entities\": [%s], "
			 "\"connections\": [%s]}",
			 1 + draw(4), drawing.entities, drawing.connections);
	return text;
}

static void write_counts(weir_scheduler *scheduler, const char *path)
{
	weir_entity_counts entity = {.size = sizeof entity};
	weir_queue_counts queue = {.size = sizeof queue};
	FILE *file = fopen(path, "w");

	if (!file)
		exit(1);
	fputs("{\"entities\": [", file);
	for (size_t i = 0; !weir_scheduler_entity_counts(scheduler, i, &entity); i++)
		fprintf(file, "%s{\"name\": \"%s\", \"ticks\": %" PRIu64 "}", i ? ", " : "", entity.entity,
			entity.ticks);
	fputs("], \"queues\": [", file);
	for (size_t i = 0; !weir_scheduler_queue_counts(scheduler, i, &queue); i++)
		fprintf(file,
			"%s{\"name\": \"%s -> %s\", \"pushed\": %" PRIu64 ", \"delivered\": %" PRIu64
			", \"dropped\": %" PRIu64 "}",
			i ? ", " : "", queue.from, queue.to, queue.pushed, queue.delivered, queue.dropped);
	fputs("]}\n", file);
	fclose(file);
}

static void run_seed(const char *folder, uint64_t seed)
{
	const weir_scheduler_options options = {
		.size = sizeof options,
		.backend = "sim",
		.seed = seed ? seed : (uint64_t)WEIR_NONE,
		.observe = WEIR_OBSERVE_TRACE,
		.trace_events = 1 << 14,
	};
	char *text = draw_graph(seed), path[500];
	weir_description *description = NULL;
	weir_scheduler *scheduler = NULL;
	weir_graph *graph = NULL;

	if (!text)
		exit(1);
	must(weir_description_parse(text, strlen(text), NULL, NULL, &description), text, seed);
	must(weir_graph_create(NULL, description, &graph), text, seed);
	must(weir_scheduler_create(graph, &options, &scheduler), "create", seed);
	must(weir_scheduler_run(scheduler), text, seed);
	snprintf(path, sizeof path, "%s/%" PRIu64 ".json", folder, seed);
	must(weir_scheduler_write_trace(scheduler, path, NULL), "write", seed);
	snprintf(path, sizeof path, "%s/%" PRIu64 ".counts", folder, seed);
	write_counts(scheduler, path);
	weir_scheduler_destroy(scheduler);
	weir_graph_destroy(graph);
	weir_description_destroy(description);
	free(text);
}

int main(int argc, char **argv)
{
	uint64_t first = argc > 2 ? strtoull(argv[2], NULL, 10) : 0;
	uint64_t seeds = argc > 3 ? strtoull(argv[3], NULL, 10) : 0;

	if (argc != 4) {
		fprintf(stderr, "usage: conserved FOLDER FIRST SEEDS\n");
		return 2;
	}
	for (uint64_t seed = first; seed < first + seeds; seed++)
		run_seed(argv[1], seed);
	return 0;
}
