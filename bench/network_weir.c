/* The form of bench/network in weir: the built-in operators, and the plugin of examples/network. */
#include <string.h>

#include "network.h"
#include "program.h"

static const struct network_work *the_work; /* one run at a time */
static struct network_run *the_run;

/* --- camera, end --- */

static weir_status camera_compute(weir_context *context, void *state)
{
	const int64_t shape[] = {the_work->height, the_work->width, 3};
	const weir_tensor like = {.size = sizeof like, .dimensions = 3, .shape = shape, .code = 1, .bits = 8};
	weir_message *message = NULL;
	weir_status status = weir_context_create_tensor(context, &like, 0, &message);
	uint64_t frame = weir_context_tick(context);

	(void)state;
	if (status)
		return status;
	if (!frame)
		network_begin(the_run);
	network_camera(the_work, (int)frame, weir_message_data(message));
	if ((int)frame + 1 == the_work->frames)
		weir_context_finish(context);
	weir_context_set_stamp(context, (weir_stamp){weir_context_now(context), frame});
	return weir_context_emit(context, 0, message);
}

static weir_status end_compute(weir_context *context, void *state)
{
	weir_message *message = weir_context_message(context, 0, 0);
	uint64_t frame = weir_message_stamp(message).tag;

	(void)state;
	network_top(weir_message_data(message), weir_message_size(message) / sizeof(float),
		    the_run->top[frame]);
	if ((int)frame + 1 == the_work->frames)
		network_end(the_run);
	return WEIR_OK;
}

static const weir_port in[] = {
	{.size = sizeof *in, .name = "in", .kinds = WEIR_KIND_TENSOR, .help = "results"}, {.name = NULL}};
static const weir_port out[] = {
	{.size = sizeof *out, .name = "out", .kinds = WEIR_KIND_TENSOR, .help = "pictures"}, {.name = NULL}};
static const weir_operator camera = {.size = sizeof camera,
				     .name = "camera",
				     .help = "pictures",
				     .outputs = out,
				     .compute = camera_compute};
static const weir_operator end = {
	.size = sizeof end, .name = "end", .help = "the best classes", .inputs = in, .compute = end_compute};

/* --- the graph --- */

/* The camera's memory is the device's, which is the host: no copy is needed before resize. */
static const char graph_text[] =
	"{\"weir\": 1, \"entities\": ["
	"{\"name\": \"camera\", \"operator\": \"camera\"},"
	"{\"name\": \"resize\", \"operator\": \"resize\", \"parameters\": {\"width\": 224, \"height\": 224}},"
	"{\"name\": \"normalize\", \"operator\": \"normalize\","
	" \"parameters\": {\"mean\": [0.485, 0.456, 0.406], \"std\": [0.229, 0.224, 0.225]}},"
	"{\"name\": \"download\", \"operator\": \"download\"},"
	"{\"name\": \"network\", \"operator\": \"network\", \"parameters\": {\"model\": \"\"},"
	" \"ports\": {\"in\": {\"capacity\": 2}}},"
	"{\"name\": \"end\", \"operator\": \"end\", \"ports\": {\"in\": {\"capacity\": 2}}}],"
	"\"connections\": [[\"camera.out\", \"resize.in\"],"
	"[\"resize.out\", \"normalize.in\"], [\"normalize.out\", \"download.in\"],"
	"[\"download.out\", \"network.in\"], [\"network.out\", \"end.in\"]]}";

static void set(weir_description *description, const char *name, const char *value)
{
	char text[2 * NETWORK_NAME];

	snprintf(text, sizeof text, "network.%s=%s", name, value);
	must(weir_description_set(description, text), name);
}

static weir_description *describe(const struct network_work *work)
{
	weir_description *description = NULL;
	char requests[24];

	snprintf(requests, sizeof requests, "%d", work->requests);
	must(weir_description_parse(graph_text, strlen(graph_text), NULL, NULL, &description), "description");
	set(description, "model", work->model);
	set(description, "requests", requests);
	set(description, "properties", work->properties);
	return description;
}

void network_weir(const struct network_work *work, struct network_run *run)
{
	const weir_scheduler_options options = {.size = sizeof options, .backend = "host"};
	weir_description *description = describe(work);
	weir_registry *registry = NULL;
	weir_graph *graph = NULL;
	weir_scheduler *scheduler = NULL;

	the_work = work;
	the_run = run;
	must(weir_registry_create(&registry), "registry");
	must(weir_registry_add_operator(registry, &camera), "camera");
	must(weir_registry_add_operator(registry, &end), "end");
	must(weir_registry_load(registry, work->plugin), work->plugin);
	must(weir_graph_create(registry, description, &graph), "graph");
	must(weir_scheduler_create(graph, &options, &scheduler), "scheduler");
	must(weir_scheduler_start(scheduler), "start");
	must(weir_scheduler_wait(scheduler, -1, NULL), "run");
	must(weir_scheduler_destroy(scheduler), "destroy");
	must(weir_graph_destroy(graph), "destroy");
	weir_description_destroy(description);
	weir_registry_destroy(registry);
}
