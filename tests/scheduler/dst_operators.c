/*
 * Nearly all graphs of the simulation consist of two operators. `source` emits payloads {source, number,
 * mark}, written by the host or by a slow kernel. `node` receives them by a kernel, or on the host behind a
 * gate; it passes them on, may then write in place or keep them, or makes new ones from them. Every reader
 * checks that a payload is whole (written completely, its memory not reused) and that the numbers of one
 * source grow along one connection.
 */
#include "dst.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "tests/calls.h"

static _Thread_local struct dst *graphs[DST_GRAPHS];

void dst_use(struct dst *dst, unsigned number)
{
	dst->graph = number;
	graphs[number] = dst;
}

void dst_break(struct dst *dst, const char *format, ...)
{
	va_list list;

	if (dst->broken[0])
		return;
	va_start(list, format);
	vsnprintf(dst->broken, sizeof dst->broken, format, list);
	va_end(list);
}

static uint64_t mark_of(uint32_t source, uint32_t number)
{
	return ((uint64_t)source << 32 | number) * 0x9e3779b97f4a7c15u + 1;
}

struct dst_payload dst_payload_of(uint32_t source, uint32_t number)
{
	return (struct dst_payload){source, number, mark_of(source, number)};
}

void dst_check(struct dst *dst, const struct dst_payload *payload, struct dst_seen *seen, const char *reader)
{
	uint32_t due;

	if (payload->source >= DST_ENTITIES || payload->mark != mark_of(payload->source, payload->number)) {
		dst_break(dst, "%s read a payload that is not whole", reader);
		return;
	}
	due = seen->next[payload->source];
	if (payload->number < due && !(seen->again && payload->number + 1 == due))
		dst_break(dst, "%s: number %u of source %u after %u", reader, payload->number,
			  payload->source, due);
	if (dst->strict && !seen->gaps && payload->number != due)
		dst_break(dst, "%s: number %u of source %u came, %u was due", reader, payload->number,
			  payload->source, due);
	seen->next[payload->source] = payload->number + 1;
}

struct work {
	struct dst_payload *to;
	const struct dst_payload *from;
	struct dst_payload value;
	bool in_place; /* `to` is written twice: a reader that does not wait finds it not whole */
	struct dst_seen *seen;
	struct dst *dst;
	const char *reader;
	int64_t ns;
	uint64_t *scratch; /* holds a pattern while the kernel runs */
	size_t words;      /* 0: none */
	uint64_t mark;     /* of the pattern */
};

/* A kernel that got the same memory too early has written its own pattern. */
static void keep_pattern(const struct work *work, bool begin)
{
	for (size_t i = 0; i < work->words; i++)
		if (begin)
			work->scratch[i] = work->mark + i;
		else if (work->scratch[i] != work->mark + i)
			dst_break(work->dst, "another kernel wrote the scratch memory of %s", work->reader);
}

static int run_work(const void *arguments)
{
	const struct work *work = arguments;
	struct dst_payload value = work->in_place ? *work->from : work->value;
	keep_pattern(work, true);
	weir_sleep(work->ns);
	keep_pattern(work, false);
	if (work->from)
		dst_check(work->dst, work->from, work->seen, work->reader);
	if (work->in_place) {
		work->to->mark = 0;
		weir_sleep(work->ns);
	}
	if (work->to)
		*work->to = value;
	return 0;
}

static const weir_kernel kernel = {sizeof(weir_kernel), "dst", run_work, NULL};
static const int64_t one = sizeof(struct dst_payload);
static const weir_tensor like = {sizeof(weir_tensor), NULL, 0, 1, &one, NULL, 1, 8, 1};

enum { DST_TICKS = 64 };

struct node {
	bool busy, device, gated, passes, last, in_place, keeps, notes;
	uint32_t id, number, since;
	unsigned way;
	int64_t ns, bound;
	weir_fence ends[DST_TICKS]; /* what its ticks recorded, if it notes its work: for T8 */
	uint64_t ended;
	bool noted; /* in this tick */
	struct dst_seen seen[2][DST_ENTITIES];
	struct dst *dst;
};

static weir_status start(weir_context *context, void *state, const weir_values *values)
{
	struct node *node = state;

	node->dst = graphs[weir_values_int(values, "graph")];
	node->id = (uint32_t)weir_values_int(values, "id");
	node->device = weir_values_bool(values, "device");
	node->gated = weir_values_bool(values, "gated");
	node->passes = weir_values_bool(values, "passes");
	node->ns = weir_values_int(values, "work");
	node->way = (unsigned)weir_values_int(values, "way");
	node->last = weir_values_bool(values, "last");
	node->in_place = weir_values_bool(values, "in_place");
	node->keeps = weir_values_bool(values, "keeps");
	node->notes = weir_values_bool(values, "notes");
	node->since = (uint32_t)weir_values_int(values, "since");
	node->bound = weir_values_int(values, "bound");
	for (size_t i = 0; i < DST_ENTITIES; i++)
		node->seen[1][i].again = weir_values_bool(values, "latest");
	if (!node->last || !node->dst->bad_starts)
		return WEIR_OK;
	node->dst->bad_starts--;
	return weir_context_fail(context, "start was told to fail");
}

/* S3, C4: a queue never holds more than its capacity, with `pop` one more. Each tick checks all queues. */
static void check_bounds(struct node *node, const weir_graph *graph)
{
	for (size_t i = 0; i < graph->connection_count; i++) {
		const struct wr_connection *connection = graph->connections[i];
		const struct wr_queue *queue = &connection->queue;
		uint64_t held = wr_read(&queue->tail) - wr_read(&queue->head);
		if (held > queue->capacity + (queue->policy == WEIR_POLICY_POP))
			dst_break(node->dst, "the queue from %s to %s is for %u and holds %llu",
				  connection->from, connection->to, queue->capacity,
				  (unsigned long long)held);
	}
}

/* T8: no tick before the last `bound` ones is still on the device. */
static void check_flight(struct node *node, const weir_entity *entity)
{
	if (!node->bound || node->ended < (uint64_t)node->bound)
		return;
	if (weir_fence_query(entity->graph, node->ends[(node->ended - (uint64_t)node->bound) % DST_TICKS]) ==
	    WEIR_E_BUSY)
		dst_break(node->dst, "%s has more than %lld ticks in flight", weir_entity_name(entity),
			  (long long)node->bound);
}

weir_status dst_tell_fence(struct dst *dst, weir_entity *entity, weir_fence fence)
{
	dst->fence = fence;
	return weir_entity_tell_fence(entity, "fence", fence);
}

/* C6: each told fence lets one tick through, when it is complete. Outsiders may tell others meanwhile. */
static void check_told(const struct node *node, weir_entity *entity)
{
	struct dst *dst = node->dst;

	if (node->id == dst->fenced && dst->fence_once &&
	    weir_fence_query(entity->graph, dst->fence) == WEIR_E_BUSY)
		dst_break(dst, "%s was called before the told fence", weir_entity_name(entity));
}

/* The next tick waits for work of this or of another entity. */
static weir_status tell_next(const struct node *node, weir_context *context)
{
	struct dst *dst = node->dst;

	if (node->id != dst->fenced || !dst->fence_once)
		return WEIR_OK;
	return dst_tell_fence(dst, weir_context_entity(context),
			      dst->work[(node->id + weir_context_tick(context)) % dst->entities]);
}

static void enter(struct node *node, weir_context *context)
{
	weir_entity *entity = weir_context_entity(context);

	check_flight(node, entity);
	check_told(node, entity);
	node->noted = false;

	if (node->busy)
		dst_break(node->dst, "%s runs twice at once", weir_entity_name(entity));
	node->busy = true;
	check_bounds(node, entity->graph);
}

/* Only of the last entity: the failure or stop that was drawn for this tick. */
static weir_status mishap(weir_context *context, const struct node *node)
{
	struct dst *dst = node->dst;

	if (!node->last)
		return WEIR_OK;
	if (weir_context_tick(context) + 1 == dst->stops_at) {
		dst->stopped = true;
		weir_scheduler_stop(dst->scheduler, WEIR_STOP_DRAIN);
	}
	if (weir_context_tick(context) + 1 != dst->fails_at)
		return WEIR_OK;
	dst->failed = true;
	return weir_context_fail(context, "compute was told to fail");
}

/* Every third message is emitted before the rest of its tick's work (T12). */
static bool emits_early(const struct node *node)
{
	return node->device && !node->notes && node->number % 3 == 2;
}

/* On scratch memory of the stream: now more, now less of it. */
static weir_status launch_on_scratch(weir_context *context, const struct node *node, weir_stream *stream,
				     const struct work *work)
{
	static _Thread_local uint64_t marks;
	struct work own = *work;
	void *memory = NULL;
	weir_status status = stream ? WEIR_OK : WEIR_E_DEVICE;

	own.words = 1 + (weir_context_tick(context) * 5 + node->id * 3) % 11 * 500;
	own.mark = ++marks << 16;
	if (!status)
		status = weir_context_scratch(context, stream, own.words * sizeof *own.scratch, &memory);
	own.scratch = memory;
	return status ? status : weir_stream_launch(stream, &kernel, &own, sizeof own);
}

/* The current stream may be another one: its kernel works beside the others. */
static weir_status launch_beside(weir_context *context, const struct node *node, const struct work *work)
{
	const struct work beside = {.ns = 3 * node->ns, .dst = work->dst, .reader = work->reader};

	return launch_on_scratch(context, node, current_stream(context), &beside);
}

static weir_status launch_work(weir_context *context, const struct node *node, weir_stream *stream,
			       const struct work *work)
{
	bool odd = weir_context_tick(context) % 2;
	weir_status status = WEIR_OK;

	if (!stream || !node->dst->scratch)
		return stream ? weir_stream_launch(stream, &kernel, work, sizeof *work) : WEIR_E_DEVICE;
	if (odd)
		status = launch_beside(context, node, work);
	status = status ? status : launch_on_scratch(context, node, stream, work);
	return status || odd ? status : launch_beside(context, node, work);
}

static weir_status launch_rest(weir_context *context, const struct node *node, weir_stream *stream,
			       weir_message *message, weir_fence fence)
{
	const struct work rest = {.ns = node->ns};
	weir_status status = dst_emit(node->dst, context, message, &fence);

	return status ? status : weir_stream_launch(stream, &kernel, &rest, sizeof rest);
}

static weir_status launch_and_emit_early(weir_context *context, struct node *node, const struct work *work,
					 weir_message *message)
{
	weir_stream *stream = dst_stream(node->dst, context, node->way);
	weir_status status = launch_work(context, node, stream, work);
	weir_fence fence = {0, 0};

	if (!status)
		status = weir_stream_record(stream, &fence);
	if (!status)
		return launch_rest(context, node, stream, message, fence);
	weir_message_unref(message);
	return status;
}

static weir_status launch(weir_context *context, struct node *node, const struct work *work)
{
	weir_stream *stream = dst_stream(node->dst, context, node->way);
	weir_status status = launch_work(context, node, stream, work);

	if (status || !node->notes)
		return status;
	status = weir_stream_record(stream, &node->dst->work[node->id]);
	node->ended += !node->noted;
	node->noted = true;
	node->ends[(node->ended - 1) % DST_TICKS] = node->dst->work[node->id];
	return status;
}

/* A new payload on output 0, written by the device or here. */
static weir_status produce(weir_context *context, struct node *node, const struct dst_payload *from,
			   struct dst_seen *seen)
{
	struct work work = {.from = from,
			    .seen = seen,
			    .ns = node->ns,
			    .dst = node->dst,
			    .reader = weir_entity_name(weir_context_entity(context))};
	bool device = node->device && weir_context_tick(context) >= node->since;
	weir_message *message = NULL;
	weir_status status =
		weir_context_create_tensor(context, &like, device ? 0 : WEIR_TENSOR_HOST, &message);

	if (status)
		return status;
	work.value = dst_payload_of(node->id, node->number);
	work.to = weir_message_data(message);
	if (device && emits_early(node)) {
		node->number++;
		return launch_and_emit_early(context, node, &work, message);
	}
	node->number++;
	if (device)
		status = launch(context, node, &work);
	else
		*work.to = work.value;
	if (status) {
		weir_message_unref(message);
		return status;
	}
	return dst_emit(node->dst, context, message, NULL);
}

static weir_status source_compute(weir_context *context, void *state)
{
	struct node *node = state;
	weir_status status;

	enter(node, context);
	status = mishap(context, node);
	status = status ? status : dst_stamp(node->dst, context, node->id, node->number);
	status = status ? status : produce(context, node, NULL, NULL);
	status = status ? status : tell_next(node, context);
	node->busy = false;
	return status;
}

/* A gate holds compute back until the producers' work is complete. */
static void check_gate(weir_context *context, struct node *node, const weir_message *message)
{
	weir_fence fences[DST_ENTITIES];
	size_t n = weir_message_fences(message, DST_ENTITIES, fences);

	for (size_t i = 0; i < n && i < DST_ENTITIES; i++)
		if (weir_fence_query(weir_context_graph(context), fences[i]) == WEIR_E_BUSY)
			dst_break(node->dst, "%s was called before its fences",
				  weir_entity_name(weir_context_entity(context)));
}

void dst_drop_kept(struct dst *dst)
{
	for (unsigned i = 0; i < DST_ENTITIES; i++) {
		weir_message_unref(dst->kept[i]);
		dst->kept[i] = NULL;
	}
}

static weir_status pass(weir_context *context, struct node *node, unsigned input, size_t i)
{
	weir_message *message = weir_context_message(context, input, i);
	weir_message **kept = &node->dst->kept[node->id];
	weir_message *copy = NULL;

	if (node->dst->copies && node->device && weir_message_data(dst_part(message))) {
		weir_status status = dst_copy(context, dst_stream(node->dst, context, node->way),
					      dst_part(message), &copy);
		return status ? status : dst_emit(node->dst, context, copy, NULL);
	}
	if (node->keeps) {
		weir_message_unref(*kept);
		*kept = weir_message_ref(message);
	}
	if (weir_context_tick(context) % 3 == 1)
		return weir_context_forward(context, input, i, 0);
	return dst_emit(node->dst, context,
			weir_message_ref(weir_context_tick(context) % 3 ? message : dst_part(message)), NULL);
}

/* One message: read by a kernel, or here if it is complete by a gate or from the start; then passed on,
 * copied or dropped. */
static weir_status receive(weir_context *context, struct node *node, unsigned input, size_t i,
			   struct dst_seen *seen, bool emits)
{
	weir_message *whole = weir_context_message(context, input, i);
	weir_message *message = dst_part(whole);
	const struct dst_payload *payload = weir_message_data(message);
	const char *reader = weir_entity_name(weir_context_entity(context));
	weir_status status = WEIR_OK;

	if (node->gated)
		check_gate(context, node, message);
	if (emits && !node->passes && node->device)
		return produce(context, node, payload, seen);
	if (node->device) {
		struct work work = {
			.from = payload, .seen = seen, .reader = reader, .ns = node->ns, .dst = node->dst};
		work.in_place = payload && emits && node->in_place && weir_message_unique(whole);
		work.to = work.in_place ? weir_message_data(message) : NULL;
		status = launch(context, node, &work);
	} else if (payload && (node->gated || !weir_message_fences(message, 0, NULL))) {
		dst_check(node->dst, payload, seen, reader);
		dst_check_stamp(node->dst, message, reader);
	} else {
		seen->gaps = true;
	}
	if (status || !emits)
		return status;
	return node->passes ? pass(context, node, input, i) : produce(context, node, NULL, NULL);
}

static weir_status node_compute(weir_context *context, void *state)
{
	struct node *node = state;
	bool emitted = false;
	weir_status status;

	enter(node, context);
	if (node->seen[1][0].again && weir_context_count(context, 1) != 1)
		dst_break(node->dst, "%s was called, and nothing is shown",
			  weir_entity_name(weir_context_entity(context)));
	status = mishap(context, node);
	for (unsigned input = 0; input < 2; input++) {
		size_t i = 0;
		for (size_t k = 0; !status && k < DST_ENTITIES; k++) {
			for (size_t n = weir_context_queue_count(context, input, k); !status && n; n--) {
				status = receive(context, node, input, i++, &node->seen[input][k], !emitted);
				emitted = true;
			}
		}
	}
	status = status ? status : tell_next(node, context);
	node->busy = false;
	return status;
}

#define FLAG(name, help)                                                                                     \
	{                                                                                                    \
		sizeof(weir_parameter), name, WEIR_TYPE_BOOL, "false", help, 0, 0, NULL                      \
	}
#define NUMBER(name, help)                                                                                   \
	{                                                                                                    \
		sizeof(weir_parameter), name, WEIR_TYPE_INT, "0", help, 0, 0, NULL                           \
	}

static const weir_parameter parameters[] = {
	NUMBER("id", "its number"),
	FLAG("device", "works on the device"),
	FLAG("gated", "its inputs are gated"),
	FLAG("passes", "passes messages on"),
	NUMBER("graph", "of the world's graphs"),
	NUMBER("way", "how it comes to its stream"),
	FLAG("in_place", "writes what it alone holds"),
	NUMBER("since", "works on the device from this tick on"),
	FLAG("keeps", "holds on to what it passed on"),
	FLAG("notes", "notes what it enqueued last"),
	NUMBER("bound", "its max_in_flight"),
	FLAG("last", "mishaps are its own"),
	FLAG("latest", "its second input shows messages again"),
	{sizeof(weir_parameter), "work", WEIR_TYPE_DURATION, "0", "how long its kernels take", 0, 0, NULL},
	{0},
};
static const weir_port out[] = {{.size = sizeof(weir_port), .name = "out", .flags = WEIR_PORT_OPTIONAL}, {0}};
static const weir_port in[] = {
	{.size = sizeof(weir_port), .name = "in", .flags = WEIR_PORT_OPTIONAL},
	{.size = sizeof(weir_port), .name = "in2", .flags = WEIR_PORT_OPTIONAL},
	{0},
};
static const weir_port many[] = {
	{.size = sizeof(weir_port), .name = "in", .flags = WEIR_PORT_ANY_SIZE},
	{0},
};
static const weir_operator source_operator = {
	.size = sizeof(weir_operator),
	.name = "dst_source",
	.help = "emits numbered payloads",
	.state_size = sizeof(struct node),
	.parameters = parameters,
	.outputs = out,
	.start = start,
	.compute = source_compute,
};
static const weir_operator node_operator = {
	.size = sizeof(weir_operator),
	.name = "dst_node",
	.help = "receives payloads",
	.state_size = sizeof(struct node),
	.parameters = parameters,
	.inputs = in,
	.outputs = out,
	.start = start,
	.compute = node_compute,
};

static const weir_operator gather_operator = {
	.size = sizeof(weir_operator),
	.name = "dst_gather",
	.help = "receives from all at once",
	.state_size = sizeof(struct node),
	.parameters = parameters,
	.inputs = many,
	.outputs = out,
	.start = start,
	.compute = node_compute,
};

/* --- a condition with a fence that no message carries, with or without a time beside it --- */

struct own_work {
	struct dst *dst;
	int64_t id, beat;
};

static weir_status own_start(void *state, const weir_values *values)
{
	struct own_work *self = state;

	self->dst = graphs[weir_values_int(values, "graph")];
	self->id = weir_values_int(values, "id");
	self->beat = weir_values_int(values, "beat");
	self->dst->work[self->id] = (weir_fence){0, 0};
	return WEIR_OK;
}

static void own_ask(const void *state, weir_view *view, weir_verdict *verdict)
{
	const struct own_work *self = state;
	weir_fence fence = self->dst->work[self->id];

	if (!fence.value || weir_fence_query(view->entity->graph, fence) != WEIR_E_BUSY) {
		weir_verdict_ready(verdict);
		return;
	}
	weir_verdict_wait(verdict, "its own work is not finished");
	weir_verdict_fence(verdict, fence);
	if (self->beat)
		weir_verdict_until(verdict, weir_view_now(view) + self->beat);
}

static const weir_parameter own_parameters[] = {
	{sizeof(weir_parameter), "id", WEIR_TYPE_INT, "0", "whose work", 0, 0, NULL},
	{sizeof(weir_parameter), "graph", WEIR_TYPE_INT, "0", "of the world's graphs", 0, 0, NULL},
	{sizeof(weir_parameter), "beat", WEIR_TYPE_DURATION, "0", "asks again after so long", 0, 0, NULL},
	{0}};

static const weir_condition own_work = {
	.size = sizeof(weir_condition),
	.name = "dst_own_work",
	.help = "what it enqueued last is complete",
	.state_size = sizeof(struct own_work),
	.parameters = own_parameters,
	.phase = WEIR_PHASE_GATHERING,
	.start = own_start,
	.ask = own_ask,
};

static const weir_condition work_of_another = {
	.size = sizeof(weir_condition),
	.name = "dst_work_of_another",
	.help = "what another enqueued last is complete",
	.state_size = sizeof(struct own_work),
	.parameters = own_parameters,
	.phase = WEIR_PHASE_CONTENT,
	.start = own_start,
	.ask = own_ask,
};

weir_status dst_register(weir_registry *registry)
{
	weir_status status = weir_registry_add_operator(registry, &source_operator);

	status = status ? status : weir_registry_add_condition(registry, &own_work);
	status = status ? status : weir_registry_add_condition(registry, &work_of_another);
	status = status ? status : weir_registry_add_operator(registry, &node_operator);
	return status ? status : weir_registry_add_operator(registry, &gather_operator);
}
