#include "ask_rig.h"

#include "scheduler/graph.h"

enum { BASE = 100 }; /* the position of all queues' fronts */

/* --- graphs --- */

static weir_status compute(weir_context *context, void *state)
{
	(void)context;
	(void)state;
	return WEIR_OK;
}

#define PORT .size = sizeof(weir_port)

static const weir_port in[] = {{PORT, .name = "in"}, {.name = NULL}};
static const weir_port any[] = {{PORT, .name = "in", .flags = WEIR_PORT_ANY_SIZE}, {.name = NULL}};
static const weir_port out[] = {{PORT, .name = "out", .flags = WEIR_PORT_OPTIONAL}, {.name = NULL}};
static const weir_operator kinds[] = {
	{.size = sizeof(weir_operator), .name = "one", .inputs = in, .outputs = out, .compute = compute},
	{.size = sizeof(weir_operator), .name = "any", .inputs = any, .outputs = out, .compute = compute},
	{.size = sizeof(weir_operator), .name = "src", .outputs = out, .compute = compute},
	{.size = sizeof(weir_operator), .name = "end", .inputs = in, .compute = compute},
};

static size_t write_entities(const struct shape *shape, char *text, size_t room)
{
	char take[16];
	size_t at;

	snprintf(take, sizeof take, "%u", shape->take);
	at = (size_t)snprintf(
		text, room,
		"{\"weir\": 1, \"resources\": {\"pool\": {\"type\": \"memory_pool\", \"block_size\": 64,"
		" \"blocks\": 4}}, \"entities\": [{\"name\": \"x\", \"operator\": \"%s\","
		" \"conditions\": [%s], \"resources\": [\"pool\"], \"ports\": {\"in\":"
		" {\"capacity\": %u, \"take\": %s, \"policy\": \"%s\"},"
		" \"out\": {\"max_emits\": %u}}}",
		shape->kind, shape->conditions ? shape->conditions : "", shape->capacity,
		shape->take ? take : "\"all\"", shape->policy, shape->emits);
	for (unsigned i = 0; i < shape->senders; i++)
		at += (size_t)snprintf(text + at, room - at, ", {\"name\": \"src%u\", \"operator\": \"src\"}",
				       i);
	for (unsigned i = 0; i < shape->receivers; i++)
		at += (size_t)snprintf(text + at, room - at,
				       ", {\"name\": \"end%u\", \"operator\": \"end\", \"ports\": {\"in\":"
				       " {\"capacity\": %u, \"policy\": \"%s\"}}}",
				       i, shape->room, shape->receivers_policy);
	return at;
}

static void write_graph(const struct shape *shape, char *text, size_t room)
{
	size_t at = write_entities(shape, text, room);
	const char *comma = "";

	at += (size_t)snprintf(text + at, room - at, "], \"connections\": [");
	for (unsigned i = 0; i < shape->senders; i++, comma = ", ")
		at += (size_t)snprintf(text + at, room - at, "%s[\"src%u.out\", \"x.in\"]", comma, i);
	for (unsigned i = 0; i < shape->receivers; i++, comma = ", ")
		at += (size_t)snprintf(text + at, room - at, "%s[\"x.out\", \"end%u.in\"]", comma, i);
	snprintf(text + at, room - at, "]}");
}

void must(weir_status status)
{
	if (status)
		fail_msg("%s: %s", weir_status_text(status), weir_last_error());
}

void reset_graph(weir_graph *graph)
{
	size_t discarded = 0;

	must(wr_graph_reset(graph, &discarded));
}

struct world make_world(struct shape shape, bool device)
{
	struct world world = {.shape = shape};
	weir_description *description = NULL;
	weir_scheduler_options options = {.size = sizeof options, .backend = "host", .workers = 1};
	char text[4096];

	write_graph(&shape, text, sizeof text);
	must(weir_registry_create(&world.registry));
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
		must(weir_registry_add_operator(world.registry, &kinds[i]));
	must(weir_description_parse(text, strlen(text), NULL, NULL, &description));
	must(weir_graph_create(world.registry, description, &world.graph));
	weir_description_destroy(description);
	if (device)
		must(weir_scheduler_create(world.graph, &options, &world.scheduler));
	reset_graph(world.graph);
	world.x = weir_graph_entity(world.graph, "x");
	return world;
}

void destroy_world(struct world *world)
{
	if (world->scheduler)
		must(weir_scheduler_destroy(world->scheduler));
	weir_graph_destroy(world->graph);
	weir_registry_destroy(world->registry);
}

/* --- states --- */

static void set_queue(struct wr_connection *connection, const struct state *state)
{
	struct wr_queue *queue = &connection->queue;
	uint64_t tail = BASE + state->count;

	wr_store(&queue->head, BASE);
	wr_store(&queue->front_end, BASE);
	wr_store(&queue->tail, tail);
	queue->tail_seen = state->stale ? BASE : tail;
	queue->head_seen = state->stale ? tail - queue->capacity : BASE;
	wr_store(&queue->closed, false);
	wr_store(&connection->receiver_done, state->end == DONE);
	connection->sender_owns = state->end == OWNED;
}

void set_states(const struct world *world, const struct states *states)
{
	struct wr_input *input = &world->x->inputs[0];
	struct wr_output *output = &world->x->outputs[0];

	for (size_t i = 0; i < input->count; i++)
		set_queue(input->connections[i], &states->inputs[i]);
	for (size_t i = 0; i < output->count; i++)
		set_queue(output->connections[i], &states->outputs[i]);
	if (input->set)
		wr_fan_in_reset(input->set, input->connections, input->any_size);
	for (size_t i = 0; i < input->count; i++)
		if (states->inputs[i].closed)
			wr_connection_close(input->connections[i]);
	world->x->fronts_closed = false;
}

void clear_states(const struct world *world)
{
	struct states none;

	memset(&none, 0, sizeof none);
	set_states(world, &none);
}

/* --- asking --- */

struct answer ask(const struct world *world)
{
	enum wr_answer answer = wr_entity_ask(world->x, false);

	return (struct answer){answer, answer == WR_READY ? WEIR_CAUSE_NONE : world->x->verdict.cause};
}

struct answer ask_kind(const struct world *world, const char *kind)
{
	const weir_verdict *verdict = &world->x->verdict;
	weir_view view = {.entity = world->x};

	for (size_t i = 0; i < world->x->condition_count; i++) {
		struct wr_condition *condition = &world->x->conditions[i];
		if (strcmp(condition->plan->kind->name, kind) != 0)
			continue;
		world->x->verdict.fence_count = 0;
		wr_condition_ask(&view, condition);
		return (struct answer){verdict->answer,
				       verdict->answer == WR_READY ? WEIR_CAUSE_NONE : verdict->cause};
	}
	fail_msg("no condition %s", kind);
	return (struct answer){WR_SILENT, WEIR_CAUSE_NONE};
}

struct answer ask_content(const struct world *world)
{
	weir_view view = {.entity = world->x};
	enum wr_answer answer;

	world->x->inputs[0].content = true;
	answer = wr_content_port_ask(&view, 0);
	world->x->inputs[0].content = false;
	return (struct answer){answer, answer == WR_READY ? WEIR_CAUSE_NONE : world->x->verdict.cause};
}

struct answer ask_each(const struct world *world)
{
	bool default_only = world->x->default_only;
	struct answer answer;

	world->x->default_only = false;
	answer = ask(world);
	world->x->default_only = default_only;
	return answer;
}

bool same(struct answer a, struct answer b)
{
	return a.answer == b.answer && a.cause == b.cause;
}
