/* A user's program: runs a graph of two entities. Exits with 0 if the library's version is the header's. */
#include <stdio.h>
#include <string.h>

#include <weir.h>

int main(void)
{
	static const char text[] = "{\"weir\": 1, \"entities\": ["
				   "{\"name\": \"tick\", \"operator\": \"ping\", \"conditions\": [{\"type\": "
				   "\"count\", \"count\": 3}]},"
				   "{\"name\": \"sink\", \"operator\": \"sink\"}],"
				   "\"connections\": [[\"tick.out\", \"sink.in\"]]}";
	weir_description *description = NULL;
	weir_scheduler *scheduler = NULL;
	weir_graph *graph = NULL;
	weir_status status = weir_description_parse(text, sizeof(text) - 1, NULL, NULL, &description);

	if (!status)
		status = weir_graph_create(NULL, description, &graph);
	if (!status)
		status = weir_scheduler_create(graph, NULL, &scheduler);
	if (!status)
		status = weir_scheduler_run(scheduler);
	printf("weir %s: %s\n", weir_version(), weir_status_text(status));
	weir_scheduler_destroy(scheduler);
	weir_graph_destroy(graph);
	weir_description_destroy(description);
	return status || strcmp(weir_version(), WEIR_VERSION);
}
