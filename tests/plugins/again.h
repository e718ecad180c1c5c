/* A graph of a plugin that runs again and again: each run ends in another way, with work in flight. `write`
 * is its sink. */
#ifndef TESTS_PLUGINS_AGAIN_H
#define TESTS_PLUGINS_AGAIN_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <weir.h>

enum { AGAIN_RUNS = 9, AGAIN_FRAMES = 30 };

static void must(weir_status status)
{
	if (!status)
		return;
	fprintf(stderr, "again: %s: %s\n", weir_status_text(status), weir_last_error());
	exit(1);
}

static void must_be(bool right, const char *what)
{
	if (right)
		return;
	fprintf(stderr, "again: %s\n", what);
	exit(1);
}

static uint64_t again_written(weir_scheduler *scheduler)
{
	weir_entity_counts counts = {.size = sizeof counts};

	for (size_t i = 0; !weir_scheduler_entity_counts(scheduler, i, &counts); i++)
		if (!strcmp(counts.entity, "write"))
			return counts.received;
	return 0;
}

/* Of three runs one ends, one is cut short and one drains. */
static void again_run(weir_graph *graph, const weir_scheduler_options *options)
{
	weir_scheduler *scheduler = NULL;

	must(weir_scheduler_create(graph, options, &scheduler));
	for (int i = 0; i < AGAIN_RUNS; i++) {
		must(weir_scheduler_start(scheduler));
		while (i % 3 && !again_written(scheduler)) /* work is in flight */
			usleep(100);
		if (i % 3)
			weir_scheduler_stop(scheduler, i % 3 == 2 ? WEIR_STOP_DRAIN : 0);
		must(weir_scheduler_wait(scheduler, -1, NULL));
		printf("run %d: %d results\n", i, (int)again_written(scheduler));
		must_be(i % 3 || again_written(scheduler) == AGAIN_FRAMES,
			"a run to its end has other results");
	}
	must(weir_scheduler_destroy(scheduler));
	must(weir_graph_destroy(graph)); /* refused while a message of it is held */
}

#endif
