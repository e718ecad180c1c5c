/*
 * Runs a graph to its end: the smallest program around weir.
 *
 *	cmake -S examples/hello -B build-hello && cmake --build build-hello
 *	build-hello/hello examples/hello/ping.json
 */
#include <stdio.h>
#include <weir.h>

int main(int argc, char **argv)
{
	weir_graph *graph = NULL;
	weir_scheduler *scheduler = NULL;
	weir_status status = weir_graph_open(argc > 1 ? argv[1] : "ping.json", &graph);

	if (!status)
		status = weir_scheduler_create(graph, NULL, &scheduler); /* NULL: all defaults */
	if (!status)
		status = weir_scheduler_run(scheduler);
	if (status)
		fprintf(stderr, "%s: %s\n", weir_status_text(status), weir_last_error());

	weir_scheduler_destroy(scheduler);
	weir_graph_destroy(graph);
	return status ? 1 : 0;
}
