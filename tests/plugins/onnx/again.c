/*
 * One graph, run again and again: each run of a network ends in another way, with requests in flight, and the
 * next one begins as if it were the first.
 *
 *     again ONNX_PLUGIN TENSORS_PLUGIN MODEL
 */
#include "../again.h"

static const char graph_text[] =
	"{\"weir\": 1, \"entities\": ["
	"{\"name\": \"read\", \"operator\": \"tensor_read\","
	" \"parameters\": {\"path\": \"/dev/zero\", \"shape\": \"1,8,64,64\", \"count\": 30}},"
	"{\"name\": \"network\", \"operator\": \"onnx\", \"parameters\": {\"model\": \"\", \"requests\": 3},"
	" \"ports\": {\"x\": {\"capacity\": 2}}},"
	"{\"name\": \"write\", \"operator\": \"tensor_write\", \"parameters\": {\"path\": \"/dev/null\"},"
	" \"ports\": {\"in\": {\"capacity\": 5}}}],"
	"\"connections\": [[\"read.out\", \"network.x\"], [\"network.y\", \"write.in\"]]}";

/* tensor_write fails if a result is not the next one. */
int main(int count, char **arguments)
{
	const weir_scheduler_options options = {.size = sizeof options, .backend = "host"};
	weir_registry *registry = NULL;
	weir_description *description = NULL;
	weir_graph *graph = NULL;
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
	again_run(graph, &options);
	weir_description_destroy(description);
	weir_registry_destroy(registry);
	return 0;
}
