#include "rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/simulation.h"
#include "base/thread.h"

_Thread_local const char *rig_backend = "sim";
_Thread_local const char *rig_resources;
const weir_condition *const *rig_conditions;
static _Thread_local struct rig *current_rig; /* the rig whose start functions run on this thread */

#define PARAMETER .size = sizeof(weir_parameter)
#define PORT      .size = sizeof(weir_port)
#define OPERATOR  .size = sizeof(weir_operator)

void rig_break(struct rig *rig)
{
	wr_fetch_add(&rig->broken, 1);
}

/* --- messages, which hold one number each --- */

weir_message *rig_number(weir_context *context, int64_t number)
{
	weir_message *message = NULL;

	if (!weir_message_bytes(&message, weir_context_graph(context), sizeof number))
		*(int64_t *)weir_message_data(message) = number;
	return message;
}

weir_message *rig_message(struct rig *rig, int64_t number)
{
	weir_message *message = NULL;

	assert_int_equal(weir_message_bytes(&message, rig->graph, sizeof number), WEIR_OK);
	*(int64_t *)weir_message_data(message) = number;
	return message;
}

int64_t rig_value(const weir_message *message)
{
	return weir_message_size(message) == sizeof(int64_t) ? *(int64_t *)weir_message_data(message) : -9;
}

struct work {
	int64_t *to, value, ns;
	bool fault;
};

static int write_number(const void *arguments)
{
	const struct work *work = arguments;

	weir_sleep(work->ns);
	if (!work->fault)
		*work->to = work->value;
	return work->fault;
}

static const weir_kernel writer = {sizeof(weir_kernel), "rig", write_number, NULL};

/* A tensor that a kernel on the entity's stream writes; it holds -1 until then. */
static weir_status number_by_kernel(weir_context *context, int64_t number, int64_t ns, bool fault,
				    weir_message **out)
{
	static const int64_t one = 1;
	static const weir_tensor like = {sizeof(weir_tensor), NULL, 0, 1, &one, NULL, 0, 64, 1};
	weir_status status = weir_context_alloc(context, &like, false, out);
	struct work work = {NULL, number, ns, fault};
	weir_stream *stream;

	if (status)
		return status;
	work.to = weir_message_data(*out);
	*work.to = -1;
	stream = weir_context_stream(context);
	return stream ? weir_stream_launch(stream, &writer, &work, sizeof work) : WEIR_E_DEVICE;
}

/* --- operators --- */

struct node {
	struct rig *rig;
	struct rig_entity *entity;
	int64_t ticks, first, emits, work, delay;
	bool fault, device;
};

static weir_status start(weir_context *context, void *state, const weir_values *values)
{
	struct node *node = state;
	const char *kind = weir_entity_operator(weir_context_entity(context))->name;

	*node = (struct node){
		.rig = current_rig,
		.entity = rig_entity(current_rig, weir_entity_name(weir_context_entity(context)))};
	wr_fetch_add(&current_rig->started, 1);
	if (!strcmp(kind, "call") || !strcmp(kind, "host"))
		return node->entity->start ? node->entity->start(current_rig, context) : WEIR_OK;
	node->delay = weir_values_int(values, "delay");
	if (!strcmp(kind, "end"))
		return WEIR_OK;
	node->work = weir_values_int(values, "work");
	node->fault = weir_values_bool(values, "fault");
	node->device = node->work || node->fault;
	if (!strcmp(kind, "pass"))
		return WEIR_OK;
	node->ticks = weir_values_int(values, "ticks");
	node->first = weir_values_int(values, "first");
	node->emits = weir_values_int(values, "emits");
	return WEIR_OK;
}

static void stop(weir_context *context, void *state)
{
	struct node *node = state;

	wr_fetch_add(&node->rig->stopped, 1);
	if (node->entity->stop)
		node->entity->stop(node->rig, context);
}

static void add_text(struct rig_entity *entity, const char *text)
{
	size_t length = strlen(text);

	if (entity->length + length + 1 > RIG_TEXT)
		return;
	memcpy(entity->text + entity->length, text, length + 1);
	entity->length += length;
}

void rig_note(struct rig *rig, weir_context *context, const char *word)
{
	struct rig_entity *entity = rig_entity(rig, weir_entity_name(weir_context_entity(context)));

	add_text(entity, entity->length ? " " : "");
	add_text(entity, word);
}

/* Returns false if device work on the message is pending. The host must not read it then and notes "?"; a
 * gated entity never gets one. */
static bool is_complete(weir_context *context, const weir_message *message)
{
	weir_fence fences[8];
	size_t count = weir_message_fences(message, fences, 8);

	for (size_t i = 0; i < count; i++)
		if (weir_fence_query(weir_context_graph(context), fences[i]))
			return false;
	return true;
}

static void note_message(struct node *node, weir_context *context, const char *before,
			 const weir_message *message)
{
	char number[32] = "?";

	if (is_complete(context, message))
		snprintf(number, sizeof number, "%lld", (long long)rig_value(message));
	add_text(node->entity, before);
	add_text(node->entity, number);
}

static void note_received(struct node *node, weir_context *context)
{

	add_text(node->entity, node->entity->length ? " " : "");
	for (unsigned input = 0; input < 3; input++) {
		for (size_t i = 0; i < weir_context_count(context, input); i++) {
			const char *before = i ? "," : input ? "|" : "";
			note_message(node, context, before, weir_context_message(context, input, i));
		}
	}
}

static weir_status emit_number(struct node *node, weir_context *context, unsigned output, int64_t number)
{
	weir_message *message = NULL;
	weir_status status = WEIR_OK;

	if (node->device)
		status = number_by_kernel(context, number, node->work, node->fault, &message);
	else
		message = rig_number(context, number);
	if (status || !message) {
		weir_message_unref(message);
		return status ? status : WEIR_E_NOMEM;
	}
	return weir_context_emit(context, output, message);
}

static weir_status source_compute(weir_context *context, void *state)
{
	struct node *node = state;
	int64_t tick = (int64_t)weir_context_tick(context);
	weir_status status = WEIR_OK;

	if (wr_fetch_add(&node->entity->computing, 1))
		rig_break(node->rig);
	weir_sleep(node->delay);
	for (int64_t i = 0; !status && i < node->emits; i++)
		status = emit_number(node, context, 0, node->first + tick * node->emits + i);
	if (node->ticks && tick + 1 == node->ticks)
		weir_context_finish(context);
	wr_fetch_sub(&node->entity->computing, 1);
	return status;
}

static weir_status pass_on(struct node *node, weir_context *context)
{
	weir_status status = WEIR_OK;

	for (size_t i = 0; !status && i < weir_context_count(context, 0); i++) {
		weir_message *message = weir_context_message(context, 0, i);
		for (unsigned output = 0; !status && output < 2; output++) {
			if (node->device)
				status = emit_number(node, context, output,
						     (int64_t)weir_context_tick(context));
			else
				status = weir_context_emit(context, output, weir_message_ref(message));
		}
	}
	return status;
}

static weir_status pass_compute(weir_context *context, void *state)
{
	struct node *node = state;
	weir_status status;

	if (wr_fetch_add(&node->entity->computing, 1))
		rig_break(node->rig);
	if (!node->device)
		note_received(node, context);
	weir_sleep(node->delay);
	status = pass_on(node, context);
	wr_fetch_sub(&node->entity->computing, 1);
	return status;
}

static weir_status end_compute(weir_context *context, void *state)
{
	struct node *node = state;

	if (wr_fetch_add(&node->entity->computing, 1))
		rig_break(node->rig);
	note_received(node, context);
	weir_sleep(node->delay);
	wr_fetch_sub(&node->entity->computing, 1);
	return WEIR_OK;
}

static weir_status call_compute(weir_context *context, void *state)
{
	struct node *node = state;
	weir_status status = WEIR_OK;

	if (wr_fetch_add(&node->entity->computing, 1))
		rig_break(node->rig);
	if (node->entity->compute)
		status = node->entity->compute(node->rig, context);
	wr_fetch_sub(&node->entity->computing, 1);
	return status;
}

#define INT(text, value, about)                                                                              \
	{                                                                                                    \
		PARAMETER, .name = text, .type = WEIR_INT, .fallback = value, .help = about                  \
	}
#define TIME(text, about)                                                                                    \
	{                                                                                                    \
		PARAMETER, .name = text, .type = WEIR_DURATION, .fallback = "0", .max = INT64_MAX,           \
			   .help = about                                                                     \
	}
#define FAULT                                                                                                \
	{                                                                                                    \
		PARAMETER, .name = "fault", .type = WEIR_BOOL, .fallback = "false",                          \
			   .help = "the kernel faults"                                                       \
	}

static const weir_parameter source_parameters[] = {
	INT("ticks", "0", "then it finishes; 0: never"),
	INT("first", "0", "number"),
	INT("emits", "1", "messages a tick"),
	TIME("work", "of the kernel that writes the number; 0: the host does"),
	TIME("delay", "of a tick"),
	FAULT,
	{.name = NULL}};
static const weir_parameter pass_parameters[] = {
	TIME("work", "of a kernel"), TIME("delay", "of a tick"), FAULT, {.name = NULL}};
static const weir_parameter end_parameters[] = {TIME("delay", "of a tick"), {.name = NULL}};
static const weir_port two_outputs[] = {
	{PORT, .name = "out"}, {PORT, .name = "out2", .flags = WEIR_PORT_OPTIONAL}, {.name = NULL}};
/* No implied gates: these entities wait on the device, or note "?". */
static const weir_port two_inputs[] = {{PORT, .name = "in", .flags = WEIR_PORT_DEVICE},
				       {PORT, .name = "in2", .flags = WEIR_PORT_OPTIONAL | WEIR_PORT_DEVICE},
				       {.name = NULL}};
static const weir_port device_inputs[] = {
	{PORT, .name = "in", .flags = WEIR_PORT_OPTIONAL | WEIR_PORT_DEVICE},
	{PORT, .name = "in2", .flags = WEIR_PORT_OPTIONAL | WEIR_PORT_DEVICE},
	{PORT, .name = "any", .flags = WEIR_PORT_OPTIONAL | WEIR_PORT_ANY_SIZE | WEIR_PORT_DEVICE},
	{.name = NULL}};
static const weir_port three_inputs[] = {
	{PORT, .name = "in", .flags = WEIR_PORT_OPTIONAL},
	{PORT, .name = "in2", .flags = WEIR_PORT_OPTIONAL},
	{PORT, .name = "any", .flags = WEIR_PORT_OPTIONAL | WEIR_PORT_ANY_SIZE},
	{.name = NULL}};
static const weir_port optional_outputs[] = {{PORT, .name = "out", .flags = WEIR_PORT_OPTIONAL},
					     {PORT, .name = "out2", .flags = WEIR_PORT_OPTIONAL},
					     {.name = NULL}};

static const weir_operator kinds[] = {
	{OPERATOR, .name = "source", .state_size = sizeof(struct node), .parameters = source_parameters,
	 .outputs = two_outputs, .start = start, .compute = source_compute, .stop = stop},
	{OPERATOR, .name = "pass", .state_size = sizeof(struct node), .parameters = pass_parameters,
	 .inputs = two_inputs, .outputs = two_outputs, .start = start, .compute = pass_compute, .stop = stop},
	{OPERATOR, .name = "end", .state_size = sizeof(struct node), .parameters = end_parameters,
	 .inputs = three_inputs, .start = start, .compute = end_compute, .stop = stop},
	{OPERATOR, .name = "call", .state_size = sizeof(struct node), .inputs = device_inputs,
	 .outputs = optional_outputs, .start = start, .compute = call_compute, .stop = stop},
	{OPERATOR, .name = "host", .state_size = sizeof(struct node), .inputs = three_inputs,
	 .outputs = optional_outputs, .start = start, .compute = call_compute, .stop = stop},
};

void rig_add_kinds(weir_registry *registry)
{
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
		assert_int_equal(weir_registry_add_operator(registry, &kinds[i]), WEIR_OK);
	for (const weir_condition *const *condition = rig_conditions; condition && *condition; condition++)
		assert_int_equal(weir_registry_add_condition(registry, *condition), WEIR_OK);
}

/* --- the text that describes a graph --- */

struct parser {
	struct rig *rig;
	weir_description *description;
	char from[130], name[64], port[64]; /* what the arrow comes from; the item */
	bool item, arrow;
	int initial;
};

static void set_json(struct parser *parser, const char *pointer, const char *json)
{
	if (weir_description_put(parser->description, pointer, json))
		fail_msg("%s: %s", pointer, weir_last_error());
}

static size_t index_of(struct parser *parser, const char *name)
{
	size_t i = 0;

	while (i < parser->rig->entity_count && strcmp(parser->rig->entities[i].name, name))
		i++;
	return i;
}

/* The item's settings are complete: adds it, and connects it to the item before it. */
static void end_item(struct parser *parser)
{
	char json[400];
	const char *port = parser->port[0] && strncmp(parser->port, "out", 3) ? parser->port : "in";

	if (!parser->item)
		return;
	if (parser->arrow) {
		snprintf(json, sizeof json, "{\"from\":\"%s\",\"to\":\"%s.%s\",\"initial\":%d}", parser->from,
			 parser->name, port, parser->initial);
		set_json(parser, "/connections/-", json);
	}
	parser->item = parser->arrow = false;
	parser->initial = 0;
}

static void begin_item(struct parser *parser, char *word)
{
	char *kind = strchr(word, ':'), *port = strchr(word, '.');

	end_item(parser);
	if (port)
		*port++ = 0;
	if (kind)
		*kind++ = 0;
	snprintf(parser->name, sizeof parser->name, "%s", word);
	snprintf(parser->port, sizeof parser->port, "%s", port ? port : "");
	if (index_of(parser, word) == parser->rig->entity_count) {
		struct rig_entity *entity = &parser->rig->entities[parser->rig->entity_count++];
		snprintf(entity->name, sizeof entity->name, "%s", word);
		assert_int_equal(weir_description_add(parser->description, word, kind ? kind : word),
				 WEIR_OK);
	}
	parser->item = true;
}

static void begin_arrow(struct parser *parser)
{
	const char *port = !strncmp(parser->port, "out", 3) ? parser->port : "out";

	end_item(parser);
	snprintf(parser->from, sizeof parser->from, "%s.%s", parser->name, port);
	parser->arrow = true;
}

static const char *quoted(const char *value, char *room, size_t size)
{
	char *end;

	strtod(value, &end);
	if (!*end || !strcmp(value, "true") || !strcmp(value, "false"))
		return value;
	snprintf(room, size, "\"%s\"", value);
	return room;
}

static bool add_condition(struct parser *parser, const char *key, const char *value)
{
	char pointer[80], json[200] = "", *comma = strchr(value, ',');

	if (!strcmp(key, "count"))
		snprintf(json, sizeof json, "{\"type\":\"count\",\"count\":%s}", value);
	else if (!strcmp(key, "period") && comma)
		snprintf(json, sizeof json, "{\"type\":\"periodic\",\"period\":\"%.*s\",\"policy\":\"%s\"}",
			 (int)(comma - value), value, comma + 1);
	else if (!strcmp(key, "period"))
		snprintf(json, sizeof json, "{\"type\":\"periodic\",\"period\":\"%s\"}", value);
	else if (!strcmp(key, "enabled"))
		snprintf(json, sizeof json, "{\"type\":\"boolean\",\"enable_tick\":%s}", value);
	else if (!strcmp(key, "asynchronous"))
		snprintf(json, sizeof json, "{\"type\":\"asynchronous\"}");
	else if (!strcmp(key, "gate") && comma)
		snprintf(json, sizeof json, "{\"type\":\"cuda_stream\",\"port\":\"%.*s\",\"signal\":\"%s\"}",
			 (int)(comma - value), value, comma + 1);
	else if (!strcmp(key, "gate"))
		snprintf(json, sizeof json, "{\"type\":\"cuda_stream\",\"port\":\"%s\"}", value);
	else if (!strcmp(key, "min"))
		snprintf(json, sizeof json,
			 "{\"type\":\"message_available\",\"port\":\"%s\",\"min_size\":%s}",
			 parser->port[0] ? parser->port : "in", value);
	else if (!strcmp(key, "condition"))
		snprintf(json, sizeof json, "{\"type\":\"%s\"}", value);
	snprintf(pointer, sizeof pointer, "/entities/%zu/conditions/-", index_of(parser, parser->name));
	if (json[0])
		set_json(parser, pointer, json);
	return json[0];
}

/* pool=NAME, pool=none, or pool=default: no pool, the device's default stream is its current one. */
static bool use_streams(struct parser *parser, const char *key, const char *value)
{
	char pointer[80], json[100];
	const char *what = strcmp(value, "none") ? "use_default_stream" : "default_stream_pool";
	bool named = strcmp(value, "none") && strcmp(value, "default");

	if (strcmp(key, "pool"))
		return false;
	snprintf(pointer, sizeof pointer, "/entities/%zu/%s", index_of(parser, parser->name),
		 named ? "resources/-" : what);
	if (named)
		snprintf(json, sizeof json, "\"%s\"", value);
	else
		snprintf(json, sizeof json, "%s", strcmp(value, "none") ? "true" : "false");
	set_json(parser, pointer, json);
	return true;
}

static void apply_setting(struct parser *parser, char *word)
{
	char pointer[200], room[200], *value = strchr(word, '=');
	size_t i = index_of(parser, parser->name);
	bool input = !parser->port[0] || strncmp(parser->port, "out", 3);

	*value++ = 0;
	if (!strcmp(word, "initial")) {
		parser->initial = atoi(value);
		return;
	}
	if (add_condition(parser, word, value) || use_streams(parser, word, value))
		return;
	if (!strcmp(word, "effects")) {
		snprintf(pointer, sizeof pointer, "/entities/%zu/effects", i);
		set_json(parser, pointer, value);
		return;
	}
	if (!strcmp(word, "gated"))
		snprintf(pointer, sizeof pointer, "/entities/%zu/ports/%s/gate", i,
			 parser->port[0] ? parser->port : "in");
	else if (!strcmp(word, "capacity") || !strcmp(word, "take") || !strcmp(word, "policy"))
		snprintf(pointer, sizeof pointer, "/entities/%zu/ports/%s/%s", i,
			 input && parser->port[0] ? parser->port : "in", word);
	else if (!strcmp(word, "in_flight"))
		snprintf(pointer, sizeof pointer, "/entities/%zu/max_in_flight", i);
	else if (!strcmp(word, "max_emits"))
		snprintf(pointer, sizeof pointer, "/entities/%zu/ports/%s/%s", i,
			 input ? "out" : parser->port, word);
	else
		snprintf(pointer, sizeof pointer, "/entities/%zu/parameters/%s", i, word);
	set_json(parser, pointer, quoted(value, room, sizeof room));
}

static void parse(struct parser *parser, const char *text)
{
	char *copy = strdup(text), *rest = NULL;

	assert_non_null(copy);
	for (char *word = strtok_r(copy, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
		size_t length = strlen(word);
		bool last = word[length - 1] == ';';
		if (last)
			word[length - 1] = 0;
		if (!strcmp(word, "->"))
			begin_arrow(parser);
		else if (strchr(word, '='))
			apply_setting(parser, word);
		else if (*word)
			begin_item(parser, word);
		if (last)
			end_item(parser);
	}
	end_item(parser);
	free(copy);
}

struct rig *rig_of(const char *text)
{
	struct rig *rig = calloc(1, sizeof *rig);
	struct parser parser = {.rig = rig};

	assert_non_null(rig);
	rig->options = (weir_scheduler_options){
		.size = sizeof rig->options, .backend = rig_backend, .workers = 2, .seed = 1};
	rig->outcome.size = sizeof rig->outcome;
	assert_int_equal(weir_registry_create(&rig->registry), WEIR_OK);
	rig_add_kinds(rig->registry);
	assert_int_equal(weir_description_create(&parser.description), WEIR_OK);
	if (rig_resources)
		set_json(&parser, "/resources", rig_resources);
	parse(&parser, text);
	if (weir_graph_create(&rig->graph, rig->registry, parser.description))
		fail_msg("%s: %s", text, weir_last_error());
	weir_description_destroy(parser.description);
	return rig;
}

/* --- running --- */

struct rig_entity *rig_entity(struct rig *rig, const char *name)
{
	for (size_t i = 0; i < rig->entity_count; i++)
		if (!strcmp(rig->entities[i].name, name))
			return &rig->entities[i];
	fail_msg("the rig has no entity %s", name);
	return NULL;
}

void rig_on(struct rig *rig, const char *entity, rig_fn *compute)
{
	rig_entity(rig, entity)->compute = compute;
}

void rig_make(struct rig *rig)
{
	if (weir_scheduler_create(&rig->scheduler, rig->graph, &rig->options))
		fail_msg("%s", weir_last_error());
}

void rig_here(struct rig *rig)
{
	current_rig = rig;
}

void rig_start(struct rig *rig)
{
	if (!rig->scheduler)
		rig_make(rig);
	current_rig = rig;
	if (weir_scheduler_start(rig->scheduler))
		fail_msg("%s", weir_last_error());
}

static void assert_conserved(struct rig *rig)
{
	weir_queue_counts counts = {.size = sizeof counts};

	for (size_t i = 0; weir_scheduler_queue_counts(rig->scheduler, i, &counts); i++)
		assert_int_equal(counts.pushed, counts.delivered + counts.dropped + counts.closed +
							counts.queued + counts.abandoned);
}

weir_status rig_wait(struct rig *rig)
{
	weir_status status;

	rig->outcome.size = sizeof rig->outcome;
	status = weir_scheduler_wait(rig->scheduler, 60 * SECOND, &rig->outcome);
	assert_int_not_equal(status, WEIR_E_TIMEOUT);
	assert_int_equal(status, rig->outcome.status);
	assert_int_equal(wr_load(&rig->broken), 0);
	assert_conserved(rig);
	return status;
}

weir_status rig_run(struct rig *rig)
{
	rig_start(rig);
	return rig_wait(rig);
}

void rig_destroy(struct rig *rig)
{
	assert_int_equal(weir_scheduler_destroy(rig->scheduler), WEIR_OK);
	assert_int_equal(weir_graph_destroy(rig->graph), WEIR_OK);
	weir_registry_destroy(rig->registry);
	free(rig->explained);
	free(rig);
}

/* --- results --- */

const char *rig_text(struct rig *rig, const char *entity)
{
	return rig_entity(rig, entity)->text;
}

static weir_entity_counts counts_of(struct rig *rig, const char *entity)
{
	weir_entity_counts counts = {.size = sizeof counts};

	for (size_t i = 0; weir_scheduler_entity_counts(rig->scheduler, i, &counts); i++)
		if (!strcmp(counts.entity, entity))
			return counts;
	fail_msg("no counts of %s", entity);
	return counts;
}

uint64_t rig_ticks(struct rig *rig, const char *entity)
{
	return counts_of(rig, entity).ticks;
}

bool rig_done(struct rig *rig, const char *entity)
{
	return counts_of(rig, entity).done;
}

weir_queue_counts rig_queue(struct rig *rig, const char *to)
{
	weir_queue_counts counts = {.size = sizeof counts};

	for (size_t i = 0; weir_scheduler_queue_counts(rig->scheduler, i, &counts); i++)
		if (!strcmp(counts.to, to))
			return counts;
	fail_msg("no queue into %s", to);
	return counts;
}

static void explain_line(const char *entity, const char *condition, const char *verdict, const char *detail,
			 void *arg)
{
	char **text = arg, *longer = NULL;
	size_t room =
		strlen(*text) + strlen(entity) + strlen(condition) + strlen(verdict) + strlen(detail) + 10;

	longer = malloc(room);
	if (!longer)
		return;
	snprintf(longer, room, "%s%s: %s: %s (%s)\n", *text, entity, condition, verdict, detail);
	free(*text);
	*text = longer;
}

const char *rig_explain(struct rig *rig)
{
	free(rig->explained);
	rig->explained = calloc(1, 1);
	weir_scheduler_explain(rig->scheduler, explain_line, &rig->explained);
	return rig->explained;
}

/* --- backends and worlds --- */

static void run_body(void *arg)
{
	void (**body)(void) = arg;

	(*body)();
}

void rig_in_world(uint64_t seed, void (*body)(void))
{
	struct wr_sim *sim = NULL;

	rig_backend = "sim";
	assert_int_equal(wr_sim_create(&sim, seed, WR_SIM_BY_SEED), WEIR_OK);
	if (wr_sim_call(sim, run_body, &body))
		fail_msg("seed %llu: %s", (unsigned long long)seed, weir_last_error());
	wr_sim_destroy(sim);
}

void rig_on_host(void (*body)(void))
{
	rig_backend = "host";
	body();
	rig_backend = "sim";
}

void rig_everywhere(void (*body)(void))
{
	for (uint64_t seed = 1; seed <= 5; seed++)
		rig_in_world(seed, body);
	rig_on_host(body);
}
