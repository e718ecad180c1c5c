#include "kinds.h"

#include <string.h>

#include "graphs/plan.h"
#include "graphs/registry.h"

#define PARAMETER .size = sizeof(weir_parameter)
#define PORT      .size = sizeof(weir_port)
#define OPERATOR  .size = sizeof(weir_operator)

static const weir_parameter source_parameters[] = {
	{PARAMETER, .name = "path", .type = WEIR_TYPE_STRING, .fallback = "\"images\"", .help = "a folder"},
	{PARAMETER, .name = "repeat", .type = WEIR_TYPE_INT, .fallback = "1", .min = 1, .max = 1000},
	{PARAMETER, .name = "loop", .type = WEIR_TYPE_BOOL, .fallback = "false"},
	{.name = NULL},
};
static const weir_port source_outputs[] = {{PORT, .name = "out", .kinds = WEIR_KIND_TENSOR}, {.name = NULL}};
static const weir_operator source = {OPERATOR, .name = "source", .parameters = source_parameters,
				     .outputs = source_outputs};
static const weir_operator camera = {OPERATOR, .name = "camera", .flags = WEIR_OPERATOR_STREAM,
				     .outputs = source_outputs};

static const weir_parameter filter_parameters[] = {
	{PARAMETER, .name = "radius", .type = WEIR_TYPE_INT, .help = "pixels", .min = 1, .max = 64},
	{PARAMETER, .name = "gain", .type = WEIR_TYPE_NUMBER, .fallback = "1.5"},
	{PARAMETER, .name = "delay", .type = WEIR_TYPE_DURATION, .fallback = "\"10ms\"", .max = 1000000000},
	{PARAMETER, .name = "memory", .type = WEIR_TYPE_SIZE, .fallback = "\"16MiB\""},
	{PARAMETER, .name = "edge", .type = WEIR_TYPE_CHOICE, .fallback = "\"clamp\"",
	 .choices = "clamp|wrap|zero"},
	{PARAMETER, .name = "weights", .type = WEIR_TYPE_NUMBERS, .fallback = "[1, 0.5]", .min = 1, .max = 4},
	{.name = NULL},
};
static const weir_port filter_inputs[] = {{PORT, .name = "in", .kinds = WEIR_KIND_TENSOR}, {.name = NULL}};
static const weir_operator filter = {OPERATOR,
				     .name = "filter",
				     .flags = WEIR_OPERATOR_STREAM | WEIR_OPERATOR_INSTANCES,
				     .parameters = filter_parameters,
				     .inputs = filter_inputs,
				     .outputs = source_outputs};

static const weir_port spinner_inputs[] = {{PORT, .name = "in", .flags = WEIR_PORT_OPTIONAL}, {.name = NULL}};
static const weir_operator spinner = {OPERATOR, .name = "spinner", .flags = WEIR_OPERATOR_STREAM,
				      .inputs = spinner_inputs, .outputs = source_outputs};

static const weir_port sink_inputs[] = {{PORT, .name = "in"}, {.name = NULL}};
static const weir_operator sink = {OPERATOR, .name = "sink", .inputs = sink_inputs};

static const weir_port bytes_inputs[] = {{PORT, .name = "in", .kinds = WEIR_KIND_BYTES | WEIR_KIND_EMPTY},
					 {.name = NULL}};
static const weir_operator bytes_sink = {OPERATOR, .name = "bytes_sink", .inputs = bytes_inputs};

static const weir_port relay_inputs[] = {
	{PORT, .name = "in"},
	{PORT, .name = "side", .flags = WEIR_PORT_OPTIONAL, .capacity = 4, .take = 2},
	{.name = NULL}};
static const weir_port relay_outputs[] = {
	{PORT, .name = "out"}, {PORT, .name = "extra", .flags = WEIR_PORT_OPTIONAL}, {.name = NULL}};
static const weir_operator relay = {OPERATOR, .name = "relay", .inputs = relay_inputs,
				    .outputs = relay_outputs};

static const weir_port forward_outputs[] = {{PORT, .name = "out", .like = "in"}, {.name = NULL}};
static const weir_operator forward = {OPERATOR, .name = "forward", .inputs = sink_inputs,
				      .outputs = forward_outputs};
static const weir_port no_inputs[] = {{.name = NULL}}; /* means the same as no list */
static const weir_operator idle = {OPERATOR, .name = "idle", .inputs = no_inputs};

static const weir_port talker_outputs[] = {{PORT, .name = "out", .kinds = WEIR_KIND_BYTES, .max_emits = 2},
					   {.name = NULL}};
static const weir_parameter talker_parameters[] = {
	{PARAMETER, .name = "level", .type = WEIR_TYPE_NUMBER, .fallback = "0.5", .max = 1},
	{PARAMETER, .name = "least", .type = WEIR_TYPE_NUMBER, .fallback = "1", .min = 1, .max = INT64_MAX},
	{.name = NULL}};
static const weir_operator talker = {OPERATOR, .name = "talker", .parameters = talker_parameters,
				     .outputs = talker_outputs};

static const weir_parameter copier_parameters[] = {
	{PARAMETER, .name = "from", .type = WEIR_TYPE_READ_FILE, .fallback = "\"\""},
	{PARAMETER, .name = "to", .type = WEIR_TYPE_WRITE_FILE, .fallback = "\"\""},
	{PARAMETER, .name = "input", .type = WEIR_TYPE_READ_DESCRIPTOR, .fallback = "-1"},
	{PARAMETER, .name = "output", .type = WEIR_TYPE_WRITE_DESCRIPTOR, .fallback = "-1"},
	{PARAMETER, .name = "folder", .type = WEIR_TYPE_WRITE_FILE, .fallback = "\"\"", .choices = "prefix"},
	{PARAMETER, .name = "prefix", .type = WEIR_TYPE_STRING, .fallback = "\"a\""},
	{PARAMETER, .name = "quiet", .type = WEIR_TYPE_BOOL, .fallback = "true"},
	{.name = NULL},
};
static const weir_operator copier = {OPERATOR, .name = "copier", .flags = WEIR_OPERATOR_PRINTS,
				     .parameters = copier_parameters};

/* With types. */
static const weir_port image_outputs[] = {
	{PORT, .name = "out", .dtype = "uint8", .place = "host", .shape = "[H, W, 3]"}, {.name = NULL}};
static const weir_operator image = {OPERATOR, .name = "image", .flags = WEIR_OPERATOR_INSTANCES,
				    .outputs = image_outputs};
static const weir_port network_inputs[] = {
	{PORT, .name = "in", .dtype = "float32", .place = "device", .shape = "[1, 3, N, N]"}, {.name = NULL}};
static const weir_port network_outputs[] = {
	{PORT, .name = "out", .dtype = "float32", .place = "device", .shape = "[N] | [N, 4]"},
	{.name = NULL}};
static const weir_operator network = {OPERATOR, .name = "network", .inputs = network_inputs,
				      .outputs = network_outputs};
static const weir_port pair_inputs[] = {{PORT, .name = "left", .dtype = "float32|float16", .shape = "[N]"},
					{PORT, .name = "right", .dtype = "float32|float16", .shape = "[N]"},
					{.name = NULL}};
static const weir_operator pair = {OPERATOR, .name = "pair", .inputs = pair_inputs};
static const weir_port painter_inputs[] = {{PORT, .name = "in", .dtype = "uint8", .shape = "[H, W, 3]"},
					   {.name = NULL}};
static const weir_operator painter = {OPERATOR, .name = "painter", .inputs = painter_inputs};
static const weir_port gather_inputs[] = {
	{PORT, .name = "in", .flags = WEIR_PORT_ANY_SIZE, .dtype = "float32", .shape = "[N]"},
	{.name = NULL}};
static const weir_operator gather = {OPERATOR, .name = "gather", .flags = WEIR_OPERATOR_INSTANCES,
				     .inputs = gather_inputs};
static const weir_port three_outputs[] = {{PORT, .name = "out", .dtype = "float32", .shape = "[3]"},
					  {.name = NULL}};
static const weir_operator three = {OPERATOR, .name = "three", .outputs = three_outputs};
static const weir_port four_outputs[] = {{PORT, .name = "out", .dtype = "float32", .shape = "[4] | [5]"},
					 {.name = NULL}};
static const weir_operator four = {OPERATOR, .name = "four", .outputs = four_outputs};

static const weir_port overlay_inputs[] = {
	{PORT, .name = "in"},
	{PORT, .name = "last", .flags = WEIR_PORT_OPTIONAL, .policy = WEIR_POLICY_LATEST},
	{PORT, .name = "all", .flags = WEIR_PORT_OPTIONAL, .take = WEIR_TAKE_ALL},
	{.name = NULL}};
static const weir_port overlay_outputs[] = {{PORT, .name = "out", .flags = WEIR_PORT_OPTIONAL},
					    {.name = NULL}};
static const weir_operator overlay = {OPERATOR, .name = "overlay", .flags = WEIR_OPERATOR_INSTANCES,
				      .inputs = overlay_inputs, .outputs = overlay_outputs};

/* Its shape is a parameter; "": it has none. */
static const weir_parameter shaped_parameters[] = {
	{PARAMETER, .name = "shape", .type = WEIR_TYPE_STRING, .fallback = "\"[3]\""},
	{PARAMETER, .name = "more", .type = WEIR_TYPE_BOOL, .fallback = "false"},
	{.name = NULL},
};
static weir_status shaped_describe(const weir_values *values, weir_ports *ports)
{
	const char *shape = weir_values_string(values, "shape");
	char text[64] = "";
	const weir_port out = {PORT, .name = "out", .dtype = "uint8", .shape = text};
	const weir_port more = {PORT, .name = "more", .flags = WEIR_PORT_OPTIONAL};

	if (!*shape)
		return weir_ports_fail(ports, "shape '': say one, such as \"[3]\"");
	strncpy(text, shape, sizeof text - 1);
	if (weir_values_bool(values, "more"))
		return weir_ports_add_output(ports, &more);
	return weir_ports_add_output(ports, &out); /* text ends with the call */
}
static const weir_operator shaped = {OPERATOR, .name = "shaped", .parameters = shaped_parameters,
				     .outputs = source_outputs, .describe = shaped_describe};

const weir_operator *const wr_builtin_operators[] = {
	&bytes_sink, &camera, &copier,  &filter,  &forward, &four,  &gather,
	&idle,       &image,  &network, &overlay, &painter, &pair,  &relay,
	&shaped,     &sink,   &source,  &spinner, &talker,  &three, NULL};

static void ask(const void *state, weir_view *view, weir_verdict *verdict)
{
	(void)state;
	(void)view;
	(void)verdict;
}

#define CONDITION .size = sizeof(weir_condition), .ask = ask

static const weir_parameter input_parameters[] = {
	{PARAMETER, .name = "port", .type = WEIR_TYPE_INPUT},
	{PARAMETER, .name = "min_size", .type = WEIR_TYPE_INT, .fallback = "0", .max = INT64_MAX},
	{.name = NULL},
};
static const weir_condition message_available = {CONDITION, .name = "message_available",
						 .parameters = input_parameters};

static const weir_parameter output_parameters[] = {
	{PARAMETER, .name = "port", .type = WEIR_TYPE_OUTPUT},
	{PARAMETER, .name = "min_size", .type = WEIR_TYPE_INT, .fallback = "0", .max = INT64_MAX},
	{.name = NULL},
};
static const weir_condition downstream = {CONDITION, .name = "downstream_message_affordable",
					  .parameters = output_parameters};

static const weir_parameter count_parameters[] = {
	{PARAMETER, .name = "count", .type = WEIR_TYPE_INT, .fallback = "1"}, {.name = NULL}};
static const weir_condition count = {CONDITION, .name = "count", .parameters = count_parameters};

static const weir_parameter periodic_parameters[] = {
	{PARAMETER, .name = "period", .type = WEIR_TYPE_DURATION, .min = 1, .max = INT64_MAX},
	{.name = NULL}};
static const weir_condition periodic = {CONDITION, .name = "periodic", .parameters = periodic_parameters};

static const weir_parameter cuda_parameters[] = {{PARAMETER, .name = "port", .type = WEIR_TYPE_INPUTS},
						 {.name = NULL}};
static const weir_condition cuda_stream = {CONDITION, .name = "cuda_stream", .parameters = cuda_parameters,
					   .phase = WEIR_PHASE_CONTENT};

static const weir_parameter aligned_parameters[] = {
	{PARAMETER, .name = "ports", .type = WEIR_TYPE_INPUTS},
	{PARAMETER, .name = "by", .type = WEIR_TYPE_CHOICE, .choices = "time|tag"},
	{PARAMETER, .name = "within", .type = WEIR_TYPE_DURATION, .fallback = "0", .max = INT64_MAX},
	{PARAMETER, .name = "within_tags", .type = WEIR_TYPE_INT, .fallback = "0", .max = INT64_MAX},
	{PARAMETER, .name = "missing", .type = WEIR_TYPE_CHOICE, .fallback = "\"wait\"",
	 .choices = "wait|empty|reuse"},
	{PARAMETER, .name = "nearest", .type = WEIR_TYPE_BOOL, .fallback = "false"},
	{PARAMETER, .name = "timeout", .type = WEIR_TYPE_DURATION, .fallback = "0", .max = INT64_MAX},
	{PARAMETER, .name = "max_age", .type = WEIR_TYPE_DURATION, .fallback = "-1", .min = -1,
	 .max = INT64_MAX},
	{PARAMETER, .name = "max_age_tags", .type = WEIR_TYPE_INT, .fallback = "-1", .min = -1,
	 .max = INT64_MAX},
	{.name = NULL}};
static const weir_condition aligned = {CONDITION, .name = "aligned", .parameters = aligned_parameters};

static const weir_parameter memory_parameters[] = {
	{PARAMETER, .name = "pool", .type = WEIR_TYPE_STRING, .fallback = "\"\""},
	{PARAMETER, .name = "min_blocks", .type = WEIR_TYPE_INT, .fallback = "0", .max = INT64_MAX},
	{PARAMETER, .name = "min_bytes", .type = WEIR_TYPE_SIZE, .fallback = "0"},
	{.name = NULL}};
static const weir_condition memory_available = {.size = sizeof(weir_condition), /* without ask */
						.name = "memory_available",
						.parameters = memory_parameters};

static const weir_condition any_of = {CONDITION, .name = "any_of"}, all_of = {CONDITION, .name = "all_of"},
			    boolean = {CONDITION, .name = "boolean"};

const weir_condition *const wr_builtin_conditions[] = {
	&aligned,     &all_of,     &any_of,           &boolean,           &count,
	&cuda_stream, &downstream, &memory_available, &message_available, &periodic,
	NULL};

const char good_graph[] =
	"{\"weir\": 1, \"name\": \"edges\",\n"
	" \"scheduler\": {\"workers\": 4, \"signal\": \"callback_inline\", \"backend\": \"sim\", \"seed\": "
	"7, \"drain\": \"3s\",\n"
	"  \"deadlock_grace\": -1, \"max_duration\": \"1min\", \"worker_spin\": \"20us\", \"device_memory\": "
	"\"1GiB\", \"host_memory\": 0},\n"
	" \"resources\": {},\n"
	" \"entities\": [\n"
	"  {\"name\": \"read\", \"operator\": \"source\", \"parameters\": {\"path\": \"a \\\"b\\\" "
	"\\u00e9\\n\", \"repeat\": 3},\n"
	"   \"conditions\": [{\"type\": \"count\", \"name\": \"frames\", \"count\": 9}, {\"type\": "
	"\"periodic\", \"period\": \"60Hz\"}]},\n"
	"  {\"name\": \"blur\", \"operator\": \"filter\", \"parameters\": {\"radius\": 3, \"gain\": 1e-3, "
	"\"memory\": \"4k\"},\n"
	"   \"ports\": {\"in\": {\"capacity\": 4, \"take\": 2, \"policy\": \"pop\"}}},\n"
	"  {\"name\": \"write\", \"operator\": \"sink\",\n"
	"   \"conditions\": [{\"type\": \"cuda_stream\", \"port\": \"in\", \"signal\": \"callback\"}]},\n"
	"  {\"name\": \"show\", \"operator\": \"sink\", \"ports\": {\"in\": {\"capacity\": 8, \"take\": "
	"\"all\"}}},\n"
	"  {\"name\": \"ring\", \"operator\": \"relay\", \"conditions\": [{\"type\": \"count\", \"count\": "
	"-1}]},\n"
	"  {\"name\": \"back\", \"operator\": \"relay\"}],\n"
	" \"connections\": [[\"read.out\", \"blur.in\"], {\"from\": \"blur.out\", \"to\": [\"write.in\", "
	"\"show.in\"]},\n"
	"  {\"from\": \"ring.out\", \"to\": \"back.in\", \"initial_messages\": 1}, [\"back.out\", "
	"\"ring.in\"], "
	"[\"back.extra\", \"show.in\"]]}\n";

const char resource_graph[] =
	"{\"weir\": 1, \"use_default_stream\": true, \"scheduler\": {\"signal\": \"flag\"},\n"
	" \"resources\": {\n"
	"  \"fast\": {\"type\": \"stream_pool\", \"priority\": -3, \"reserved_size\": 0, \"max_size\": 4, "
	"\"green_context\": \"left\"},\n"
	"  \"far\": {\"type\": \"stream_pool\", \"device\": 2, \"flags\": \"blocking\", \"default\": true},\n"
	"  \"rest\": {\"type\": \"stream_pool\", \"green_context\": \"parts\"},\n"
	"  \"left\": {\"type\": \"green_context\", \"pool\": \"parts\", \"index\": 0},\n"
	"  \"usual\": {\"type\": \"green_context\", \"pool\": \"even\"},\n"
	"  \"parts\": {\"type\": \"green_context_pool\", \"device\": 1, \"sms_per_partition\": [8, 16], "
	"\"num_partitions\": 2},\n"
	"  \"even\": {\"type\": \"green_context_pool\", \"num_partitions\": 3, \"sms_per_partition\": 4, "
	"\"min_sm_size\": 4, \"default_context_index\": 1}},\n"
	" \"entities\": [\n"
	"  {\"name\": \"read\", \"operator\": \"source\", \"default_stream_pool\": false},\n"
	"  {\"name\": \"a\", \"operator\": \"filter\", \"parameters\": {\"radius\": 1}, \"resources\": "
	"[\"fast\"], \"use_default_stream\": false},\n"
	"  {\"name\": \"b\", \"operator\": \"filter\", \"parameters\": {\"radius\": 1}, \"resources\": "
	"[\"left\"], \"use_default_stream\": false},\n"
	"  {\"name\": \"c\", \"operator\": \"filter\", \"parameters\": {\"radius\": 1}, \"resources\": "
	"[\"usual\"], \"default_stream_pool\": false},\n"
	"  {\"name\": \"d\", \"operator\": \"filter\", \"parameters\": {\"radius\": 1}, \"resources\": "
	"[\"even\"]},\n"
	"  {\"name\": \"e\", \"operator\": \"filter\", \"parameters\": {\"radius\": 1}, \"resources\": "
	"[\"left\"]},\n"
	"  {\"name\": \"f\", \"operator\": \"filter\", \"parameters\": {\"radius\": 1}, \"resources\": "
	"[\"rest\"]},\n"
	"  {\"name\": \"write\", \"operator\": \"sink\",\n"
	"   \"conditions\": [{\"type\": \"cuda_stream\", \"port\": \"in\", \"signal\": \"flag\"}]}],\n"
	" \"connections\": [[\"read.out\", \"a.in\"], [\"a.out\", \"b.in\"], [\"b.out\", \"c.in\"], "
	"[\"c.out\", \"d.in\"],\n"
	"  [\"d.out\", \"e.in\"], [\"e.out\", \"f.in\"], [\"f.out\", \"write.in\"]]}\n";

const char memory_graph[] =
	"{\"weir\": 1, \"use_default_stream\": false, \"scheduler\": {\"max_in_flight\": 0},\n"
	" \"resources\": {\n"
	"  \"frames\": {\"type\": \"memory_pool\", \"place\": \"host\", \"block_size\": \"1MiB\", "
	"\"blocks\": 1},\n"
	"  \"near\": {\"type\": \"memory_pool\", \"block_size\": 64, \"blocks\": 12},\n"
	"  \"bound\": {\"type\": \"memory_pool\", \"max_size\": \"4MiB\"},\n"
	"  \"spare\": {\"type\": \"memory_pool\", \"device\": 1, \"block_size\": 64, \"blocks\": 2}},\n"
	" \"inlets\": [\"fed.in\"],\n"
	" \"outlets\": [\"fed.out\", {\"port\": \"b.out\", \"capacity\": 3}],\n"
	" \"entities\": [\n"
	"  {\"name\": \"a\", \"operator\": \"source\", \"resources\": [\"frames\", \"near\"]},\n"
	"  {\"name\": \"b\", \"operator\": \"relay\", \"resources\": [\"bound\"],\n"
	"   \"conditions\": [{\"type\": \"memory_available\", \"min_bytes\": \"1k\"}, {\"type\": "
	"\"cuda_stream\", \"port\": [\"in\", \"side\"]}]},\n"
	"  {\"name\": \"write\", \"operator\": \"sink\", \"effects\": true, \"ports\": {\"in\": "
	"{\"capacity\": 2}}},\n"
	"  {\"name\": \"fed\", \"operator\": \"relay\", \"resources\": [\"near\"]},\n"
	"  {\"name\": \"hears\", \"operator\": \"bytes_sink\", \"ports\": {\"in\": {\"capacity\": 4}}},\n"
	"  {\"name\": \"alone\", \"operator\": \"idle\", \"default_stream_pool\": true},\n"
	"  {\"name\": \"says\", \"operator\": \"talker\", \"resources\": [\"frames\"]}],\n"
	" \"connections\": [[\"a.out\", \"b.in\"], [\"a.out\", \"b.side\"], [\"says.out\", \"write.in\"], "
	"{\"from\": \"says.out\", \"to\": \"hears.in\", \"initial_messages\": 1}, "
	"[\"b.extra\", \"write.in\"]]}\n";

weir_description *kinds_read(const char *text)
{
	weir_description *description = NULL;

	assert_int_equal(weir_description_parse(text, strlen(text), NULL, NULL, &description), WEIR_OK);
	return description;
}

char *kinds_print(const weir_description *description, weir_format format)
{
	char *text = NULL;
	weir_status status = weir_description_print(description, NULL, format, &text);

	if (status)
		fail_msg("%s", weir_last_error());
	return text;
}

struct wr_plan *kinds_plan(const char *text, bool open_ports)
{
	weir_description *description = kinds_read(text);
	struct wr_plan *plan = NULL;

	if (wr_plan_create(&plan, NULL, description, open_ports, NULL, NULL))
		fail_msg("%s", weir_last_error());
	weir_description_destroy(description); /* the plan owns what it needs */
	return plan;
}

char *kinds_print_text(const char *text, weir_format format)
{
	weir_description *description = kinds_read(text);
	char *out = kinds_print(description, format);

	weir_description_destroy(description);
	return out;
}
