/* The operators of a rig's graph: source, pass, end, call, host. */
#include <stdio.h>
#include <string.h>

#include "rig.h"
#include "tests/calls.h"

#define PARAMETER .size = sizeof(weir_parameter)
#define PORT      .size = sizeof(weir_port)
#define OPERATOR  .size = sizeof(weir_operator)

const weir_condition *const *rig_conditions;
static _Thread_local struct rig *current_rig; /* the rig whose start functions run on this thread */

void rig_here(struct rig *rig)
{
	current_rig = rig;
}

/* --- kernels --- */

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
	weir_status status = weir_context_create_tensor(context, &like, 0, out);
	struct work work = {NULL, number, ns, fault};
	weir_stream *stream;

	if (status)
		return status;
	work.to = weir_message_data(*out);
	*work.to = -1;
	stream = current_stream(context);
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
	if (!strcmp(kind, "rig_pass"))
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
	enum { MOST = 128 };
	weir_fence fences[MOST];
	size_t count = weir_message_fences(message, MOST, fences);

	if (count > MOST)
		return false;
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

static void call_progress(const void *state, size_t room, char *out)
{
	const struct node *node = state;

	if (node->entity->progress)
		node->entity->progress(room, out);
}

#define INT(text, value, about)                                                                              \
	{                                                                                                    \
		PARAMETER, .name = text, .type = WEIR_TYPE_INT, .fallback = value, .help = about             \
	}
#define TIME(text, about)                                                                                    \
	{                                                                                                    \
		PARAMETER, .name = text, .type = WEIR_TYPE_DURATION, .fallback = "0", .max = INT64_MAX,      \
			   .help = about                                                                     \
	}
#define FAULT                                                                                                \
	{                                                                                                    \
		PARAMETER, .name = "fault", .type = WEIR_TYPE_BOOL, .fallback = "false",                     \
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
	{OPERATOR, .name = "rig_pass", .state_size = sizeof(struct node), .parameters = pass_parameters,
	 .inputs = two_inputs, .outputs = two_outputs, .start = start, .compute = pass_compute, .stop = stop},
	{OPERATOR, .name = "end", .state_size = sizeof(struct node), .parameters = end_parameters,
	 .inputs = three_inputs, .start = start, .compute = end_compute, .stop = stop},
	{OPERATOR, .name = "call", .state_size = sizeof(struct node), .inputs = device_inputs,
	 .outputs = optional_outputs, .start = start, .compute = call_compute, .stop = stop,
	 .progress = call_progress},
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
