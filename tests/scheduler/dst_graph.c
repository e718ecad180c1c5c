/*
 * Two operators make all graphs of the simulation. `source` emits payloads {source, number, mark}, written by the host or by a kernel that
 * takes its time. `node` receives them, by a kernel that reads them when the device gets there, or on the host behind a gate; it passes
 * them on, or makes new ones from them. Every reader checks that a payload is whole (its writer was done, nobody has
 * reused its memory) and that numbers of one source grow along one connection.
 */
#include "dst_graph.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "graphs/graph.h"

static _Thread_local struct dst *here;

void dst_break(struct dst *dst, const char *format, ...)
{
	va_list list;

	if (dst->broken[0])
		return;
	va_start(list, format);
	vsnprintf(dst->broken, sizeof dst->broken, format, list);
	va_end(list);
}

struct payload {
	uint32_t source, number;
	uint64_t mark;
};

static uint64_t mark_of(uint32_t source, uint32_t number)
{
	return ((uint64_t)source << 32 | number) * 0x9e3779b97f4a7c15u + 1;
}

/* The last number of each source that came by one connection. */
struct seen {
	uint32_t next[DST_ENTITIES];
};

static void check(const struct payload *payload, struct seen *seen, const char *who)
{
	if (payload->source >= DST_ENTITIES || payload->mark != mark_of(payload->source, payload->number)) {
		dst_break(here, "%s read a payload that is not whole", who);
		return;
	}
	if (payload->number < seen->next[payload->source])
		dst_break(here, "%s: number %u of source %u after %u", who, payload->number, payload->source,
			  seen->next[payload->source]);
	if (here->strict && payload->number != seen->next[payload->source])
		dst_break(here, "%s: number %u of source %u came, %u was due", who, payload->number, payload->source,
			  seen->next[payload->source]);
	seen->next[payload->source] = payload->number + 1;
}

struct work {
	struct payload *to;
	const struct payload *from;
	struct payload value;
	struct seen *seen;
	const char *who;
	int64_t ns;
};

static int run_work(const void *arguments)
{
	const struct work *work = arguments;

	weir_sleep(work->ns);
	if (work->from)
		check(work->from, work->seen, work->who);
	if (work->to)
		*work->to = work->value;
	return 0;
}

static const weir_kernel kernel = {sizeof(weir_kernel), "dst", run_work, NULL};
static const int64_t one = sizeof(struct payload);
static const weir_tensor like = {sizeof(weir_tensor), NULL, 0, 1, &one, NULL, 1, 8, 1};

struct node {
	bool busy, device, gated, passes;
	uint32_t id, number;
	int64_t ns;
	struct seen seen[2][DST_ENTITIES];
	struct dst *dst;
};

static weir_status start(weir_context *context, void *state, const weir_values *values)
{
	struct node *node = state;

	(void)context;
	node->dst = here;
	node->id = (uint32_t)weir_values_int(values, "id");
	node->device = weir_values_bool(values, "device");
	node->gated = weir_values_bool(values, "gated");
	node->passes = weir_values_bool(values, "passes");
	node->ns = weir_values_int(values, "work");
	return WEIR_OK;
}

/* S3, C4: a queue never holds more than its capacity; `pop` one more. */
static void check_bounds(struct node *node, const weir_entity *entity)
{
	for (size_t i = 0; i < entity->output_count; i++) {
		for (size_t k = 0; k < entity->outputs[i].count; k++) {
			struct wr_queue *queue = &entity->outputs[i].connections[k]->queue;
			uint64_t held = wr_read(&queue->tail) - wr_read(&queue->head);
			if (held > queue->capacity + (queue->policy == WEIR_POP))
				dst_break(node->dst, "a queue of %u behind %s holds %llu", queue->capacity,
					  weir_entity_name(entity), (unsigned long long)held);
		}
	}
}

static void enter(struct node *node, weir_context *context)
{
	const weir_entity *entity = weir_context_entity(context);

	if (node->busy)
		dst_break(node->dst, "%s runs twice at once", weir_entity_name(entity));
	node->busy = true;
	check_bounds(node, entity);
}

/* A new payload on output 0, written by the device or here. */
static weir_status produce(weir_context *context, struct node *node, const struct payload *from, struct seen *seen)
{
	struct work work = {.from = from, .seen = seen, .ns = node->ns,
			    .who = weir_entity_name(weir_context_entity(context))};
	weir_message *message = NULL;
	weir_status status = weir_context_alloc(context, &like, !node->device, &message);

	if (status)
		return status;
	work.value = (struct payload){node->id, node->number, mark_of(node->id, node->number)};
	node->number++;
	work.to = weir_message_data(message);
	if (node->device) {
		weir_stream *stream = weir_context_stream(context);
		status = stream ? weir_stream_launch(stream, &kernel, &work, sizeof work) : WEIR_E_DEVICE;
	} else {
		*work.to = work.value;
	}
	if (status) {
		weir_message_unref(message);
		return status;
	}
	return weir_context_emit(context, 0, message);
}

static weir_status source_compute(weir_context *context, void *state)
{
	struct node *node = state;
	weir_status status;

	enter(node, context);
	status = produce(context, node, NULL, NULL);
	node->busy = false;
	return status;
}

/* One message: read by a kernel, or here if a gate, or its maker, has seen to it; then passed on, copied, or swallowed. */
static weir_status receive(weir_context *context, struct node *node, weir_message *message, struct seen *seen, bool emits)
{
	const struct payload *payload = weir_message_data(message);
	const char *who = weir_entity_name(weir_context_entity(context));
	weir_status status = WEIR_OK;

	if (emits && !node->passes && node->device)
		return produce(context, node, payload, seen);
	if (node->device) {
		struct work work = {.from = payload, .seen = seen, .who = who, .ns = node->ns};
		weir_stream *stream = weir_context_stream(context);
		status = stream ? weir_stream_launch(stream, &kernel, &work, sizeof work) : WEIR_E_DEVICE;
	} else if (node->gated || !weir_message_fences(message, NULL, 0)) {
		check(payload, seen, who);
	}
	if (status || !emits)
		return status;
	return node->passes ? weir_context_emit(context, 0, weir_message_ref(message)) : produce(context, node, NULL, NULL);
}

static weir_status node_compute(weir_context *context, void *state)
{
	struct node *node = state;
	bool emitted = false;
	weir_status status = WEIR_OK;

	enter(node, context);
	for (unsigned input = 0; input < 2; input++) {
		size_t i = 0;
		for (size_t k = 0; k < DST_ENTITIES; k++) {
			for (size_t n = weir_context_queue_count(context, input, k); !status && n; n--) {
				weir_message *message = weir_context_message(context, input, i++);
				status = receive(context, node, message, &node->seen[input][k], !emitted);
				emitted = true;
			}
		}
	}
	node->busy = false;
	return status;
}

#define PARAMETERS                                                                                        \
	{sizeof(weir_parameter), "id", WEIR_INT, "0", "its number", 0, 0, NULL},                          \
	{sizeof(weir_parameter), "device", WEIR_BOOL, "false", "works on the device", 0, 0, NULL},        \
	{sizeof(weir_parameter), "gated", WEIR_BOOL, "false", "its inputs are gated", 0, 0, NULL},        \
	{sizeof(weir_parameter), "passes", WEIR_BOOL, "false", "passes messages on", 0, 0, NULL},         \
	{sizeof(weir_parameter), "work", WEIR_DURATION, "0", "how long its kernels take", 0, 0, NULL},    \
	{0}

static const weir_parameter parameters[] = {PARAMETERS};
static const weir_port out[] = {{.size = sizeof(weir_port), .name = "out", .flags = WEIR_PORT_OPTIONAL}, {0}};
static const weir_port in[] = {
	{.size = sizeof(weir_port), .name = "in", .flags = WEIR_PORT_OPTIONAL},
	{.size = sizeof(weir_port), .name = "in2", .flags = WEIR_PORT_OPTIONAL},
	{0},
};
static const weir_operator source_operator = {
	.size = sizeof(weir_operator), .name = "dst_source", .help = "emits numbered payloads", .state_size = sizeof(struct node),
	.parameters = parameters, .outputs = out, .start = start, .compute = source_compute,
};
static const weir_operator node_operator = {
	.size = sizeof(weir_operator), .name = "dst_node", .help = "receives payloads", .state_size = sizeof(struct node),
	.parameters = parameters, .inputs = in, .outputs = out, .start = start, .compute = node_compute,
};

weir_status dst_register(weir_registry *registry)
{
	weir_status status = weir_registry_add_operator(registry, &source_operator);

	return status ? status : weir_registry_add_operator(registry, &node_operator);
}

/* --- drawing a graph --- */

struct text {
	char *at;
	size_t room;
};

static void put(struct text *text, const char *format, ...) WEIR_PRINTF(2, 3);
static void put(struct text *text, const char *format, ...)
{
	va_list list;
	int n;

	va_start(list, format);
	n = vsnprintf(text->at, text->room, format, list);
	va_end(list);
	text->at += n;
	text->room -= (size_t)n;
}

static uint64_t draw(struct dst *dst, uint64_t n)
{
	return wr_random_below(&dst->random, n);
}

static const char *yes(bool is)
{
	return is ? "true" : "false";
}

static void put_source(struct text *text, struct dst *dst, unsigned id)
{
	unsigned count = 1 + (unsigned)draw(dst, dst->tiny ? 2 : 6);

	put(text, "{\"name\":\"e%u\",\"operator\":\"dst_source\",\"parameters\":{\"id\":%u,\"device\":%s,\"work\":%u},", id, id,
	    yes(!dst->tiny && draw(dst, 2)), (unsigned)draw(dst, 3) * 700);
	put(text, "\"conditions\":[{\"type\":\"count\",\"count\":%u}", count);
	if (!draw(dst, 3))
		put(text, ",{\"type\":\"periodic\",\"period\":%u}", DST_BEAT + (dst->tiny ? 0 : (unsigned)draw(dst, 3000)));
	put(text, "]}");
	dst->beats = id ? dst->beats : count;
}

/* In a graph with a join every path must pass on as much as the others, or the join starves and the graph deadlocks by right. */
static void put_ports(struct text *text, struct dst *dst, bool joined)
{
	static const char *const policies[] = {"block", "block", "block", "block", "pop", "reject"};
	unsigned capacity = 1 + (unsigned)draw(dst, 3), take = joined ? 1 : 1 + (unsigned)draw(dst, capacity);
	const char *policy = policies[joined ? 0 : draw(dst, 6)];
	bool all = !joined && !draw(dst, 5);

	if (strcmp(policy, "block"))
		dst->strict = false;
	put(text, "\"ports\":{\"in\":{\"capacity\":%u,\"policy\":\"%s\",\"take\":", capacity, policy);
	if (take > 1 || (all && capacity > 1))
		dst->strict = false;	/* a node sends one message a tick; the last ones may be too few */
	put(text, all ? "\"all\"}}" : "%u}}", take);
}

static void put_node(struct text *text, struct dst *dst, unsigned id, bool merges, bool second, bool joined)
{
	bool device = !dst->tiny && draw(dst, 2), gated = !dst->tiny && (!device || draw(dst, 2)), counted = !dst->plain && !draw(dst, 6);

	put(text, "{\"name\":\"e%u\",\"operator\":\"dst_node\",\"parameters\":{\"id\":%u,\"device\":%s,\"gated\":%s,\"passes\":%s,\"work\":%u},",
	    id, id, yes(device), yes(gated), yes(!merges && draw(dst, 2)), (unsigned)draw(dst, 3) * 900);
	put_ports(text, dst, joined);
	put(text, ",\"conditions\":[");
	if (gated)
		put(text, "{\"type\":\"cuda_stream\",\"port\":%s}", second ? "[\"in\",\"in2\"]" : "\"in\"");
	if (counted)
		put(text, "%s{\"type\":\"count\",\"count\":%u}", gated ? "," : "", 1 + (unsigned)draw(dst, 4));
	put(text, "]}");
	dst->strict = dst->strict && !counted;
}

weir_status dst_graph(struct dst *dst, weir_registry *registry, weir_graph **result)
{
	static const char *const signals[] = {"callback", "callback_inline"};
	unsigned n = 2 + (unsigned)draw(dst, dst->tiny ? 1 : 3);
	bool plain = dst->tiny || draw(dst, 2), joined = plain || draw(dst, 2);	/* plain: a chain in which every message must arrive */
	unsigned from[DST_ENTITIES] = {0}, second[DST_ENTITIES] = {0};
	char connections[512];
	struct text text = {dst->text, sizeof dst->text}, wires = {connections, sizeof connections};
	weir_description *description = NULL;
	weir_status status;

	unsigned sources = !plain && n > 2 && !draw(dst, 3) ? 2 : 1;

	here = dst;
	dst->plain = plain;
	dst->strict = sources == 1;
	put(&text, "{\"weir\":1,\"scheduler\":{\"signal\":\"%s\"},\"entities\":[", signals[draw(dst, 2)]);
	for (unsigned id = 0; id < n; id++) {
		put(&text, id ? "," : "");
		if (id < sources) {
			put_source(&text, dst, id);
			continue;
		}
		from[id] = plain ? id - 1 : id == n - 1 && sources == 2 && !draw(dst, 2) ? 1 : (unsigned)draw(dst, id);
		second[id] = !plain && id > 1 && !draw(dst, 3) ? (unsigned)draw(dst, id) : id;
		if (!joined && second[id] == from[id])
			second[id] = id;
		if (second[id] != id || from[id] != id - 1)
			dst->strict = false;
		bool port2 = second[id] != id && (second[id] == from[id] || joined);
		put_node(&text, dst, id, second[id] != id, port2, joined);
		put(&wires, "%s[\"e%u.out\",\"e%u.in\"]", wires.at == connections ? "" : ",", from[id], id);
		if (second[id] != id)
			put(&wires, ",[\"e%u.out\",\"e%u.in%s\"]", second[id], id, port2 ? "2" : "");
	}
	put(&text, "],\"connections\":[%s]}", connections);
	status = weir_description_parse(&description, dst->text, strlen(dst->text), NULL, NULL);
	if (!status)
		status = weir_graph_create(result, registry, description);
	weir_description_destroy(description);
	return status;
}
