/*
 * One graph, run again and again: each run of a network ends in another way, with requests in flight, and the
 * next one begins as if it were the first.
 *
 *     again ONNX_PLUGIN TENSORS_PLUGIN MODEL
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <weir.h>

enum { RUNS = 9, FRAMES = 30 };

static const char graph_text[] =
	"{\"weir\": 1, \"entities\": ["
	"{\"name\": \"read\", \"operator\": \"tensor_read\","
	" \"parameters\": {\"path\": \"/dev/zero\", \"shape\": \"1,8,64,64\", \"count\": 30}},"
	"{\"name\": \"network\", \"operator\": \"onnx\", \"parameters\": {\"model\": \"\", \"requests\": 3},"
	" \"ports\": {\"x\": {\"capacity\": 2}}},"
	"{\"name\": \"write\", \"operator\": \"tensor_write\", \"parameters\": {\"path\": \"/dev/null\"},"
	" \"ports\": {\"in\": {\"capacity\": 5}}}],"
	"\"connections\": [[\"read.out\", \"network.x\"], [\"network.y\", \"write.in\"]]}";

static void must(weir_status status)
{
	if (!status)
		return;
	fprintf(stderr, "again: %s: %s\n", weir_status_text(status), weir_last_error());
	exit(1);
}

static uint64_t written(weir_scheduler *scheduler)
{
	weir_entity_counts counts = {.size = sizeof counts};

	for (size_t i = 0; !weir_scheduler_entity_counts(scheduler, i, &counts); i++)
		if (!strcmp(counts.entity, "write"))
			return counts.received;
	return 0;
}

/* Of three runs one ends, one is cut short and one drains. tensor_write fails if a result is not the next
 * one. */
static void run(weir_scheduler *scheduler, int i)
{
	must(weir_scheduler_start(scheduler));
	while (i % 3 && !written(scheduler)) /* requests are in flight */
		usleep(100);
	if (i % 3)
		weir_scheduler_stop(scheduler, i % 3 == 2 ? WEIR_STOP_DRAIN : 0);
	must(weir_scheduler_wait(scheduler, -1, NULL));
	printf("run %d: %d results\n", i, (int)written(scheduler));
	if (i % 3 == 0 && written(scheduler) != FRAMES)
		exit(1);
}

int main(int count, char **arguments)
{
	const weir_scheduler_options options = {.size = sizeof options, .backend = "host"};
	weir_registry *registry = NULL;
	weir_description *description = NULL;
	weir_graph *graph = NULL;
	weir_scheduler *scheduler = NULL;
	char model[4096];

	if (count != 4)
		return 2;
	snprintf(model, sizeof model, "network.model=%s", arguments[3]);
	must(weir_registry_create(&registry));
	must(weir_registry_load(registry, arguments[1]));
	must(weir_registry_load(registry, arguments[2]));
	must(weir_description_parse(graph_text, strlen(graph_text), NULL, NULL, &description));
	must(weir_description_set(description, model));
	must(weir_graph_create(registry, description, &graph));
	must(weir_scheduler_create(graph, &options, &scheduler));
	for (int i = 0; i < RUNS; i++)
		run(scheduler, i);
	must(weir_scheduler_destroy(scheduler));
	must(weir_graph_destroy(graph)); /* refused while a message of it is held */
	weir_description_destroy(description);
	weir_registry_destroy(registry);
	return 0;
}
