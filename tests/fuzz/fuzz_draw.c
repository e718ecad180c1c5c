/*
 * Draws a graph. Sources come first; every other entity receives from earlier ones, and in some graphs a
 * late entity's messages let an early one go on (`initial_messages`). Sources end, so every graph ends, if
 * only in a deadlock because a tick needs messages that arrive in unequal numbers.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "fuzz_api.h"

static uint32_t draw(struct fz *fz, uint32_t n)
{
	return fz_below(&fz->random, n);
}

static bool chance(struct fz *fz, uint32_t one_in)
{
	return fz_chance(&fz->random, one_in);
}

static bool may(const struct fz *fz, unsigned what)
{
	return !(fz->options->without & what);
}

static bool simulated(const struct fz *fz)
{
	return !strcmp(fz->backend, "sim");
}

bool fz_alone(const struct fz *fz)
{
	return simulated(fz) && !fz->inside;
}

/* --- wires --- */

static bool listens_already(const struct fz *fz, unsigned from, unsigned output, unsigned to, unsigned port)
{
	for (unsigned i = 0; i < fz->connection_count; i++) {
		const struct fz_connection *one = &fz->connections[i];
		if (one->from == from && one->output == output && one->to == to && one->port == port)
			return true;
	}
	return false;
}

static void wire(struct fz *fz, unsigned from, unsigned output, unsigned to, unsigned port, unsigned initial)
{
	struct fz_connection *connection = &fz->connections[fz->connection_count];
	struct fz_port *into = &fz->entities[to].ports[port];

	if (fz->connection_count == FZ_CONNECTIONS || listens_already(fz, from, output, to, port))
		return;
	*connection = (struct fz_connection){.from = from,
					     .output = output,
					     .to = to,
					     .port = port,
					     .initial_messages = initial,
					     .index = into->connections++};
	fz->entities[from].wired[output] = true;
	fz->connection_count++;
}

static unsigned draw_port(struct fz *fz)
{
	unsigned n = draw(fz, fz->tame ? 4 : 8);

	return n < 4 ? 0 : n < 6 ? 1 : 2;
}

static void draw_wires(struct fz *fz, unsigned sources)
{
	for (unsigned to = sources; to < fz->entity_count; to++) {
		unsigned n = 1 + (chance(fz, 3) ? draw(fz, 3) : 0);

		while (n--) { /* one after another: the order of arguments is the compiler's */
			unsigned port = draw_port(fz), output = chance(fz, 4), from = draw(fz, to);

			wire(fz, from, output, to, port, 0);
		}
	}
	if (!fz->tame && fz->entity_count > sources + 1 && chance(fz, 3)) { /* sometimes a cycle */
		unsigned early = sources + draw(fz, fz->entity_count - sources - 1);
		unsigned late = early + 1 + draw(fz, fz->entity_count - early - 1);

		if (!fz->entities[early].ports[1].connections) /* the cycle ends with the other inputs */
			wire(fz, late, chance(fz, 4), early, 1, 1 + draw(fz, 2));
	}
}

/* Sometimes connects many outputs to one input. */
static void draw_fan_in(struct fz *fz, unsigned sources)
{
	unsigned to = fz->entity_count - 1;

	if (to < sources || !chance(fz, 6))
		return;
	for (unsigned from = 0; from < to; from++)
		for (unsigned output = 0; output < FZ_OUTPUTS; output++)
			wire(fz, from, output, to, fz->tame || chance(fz, 2) ? 0 : 2, 0);
}

/* --- entities --- */

static void draw_stream(struct fz *fz, struct fz_entity *entity)
{
	static const char *const uses[] = {"",
					   "",
					   "",
					   "",
					   "\"resources\":[\"few\"],",
					   "\"resources\":[\"few\"],",
					   "\"resources\":[\"part\"],",
					   "\"default_stream_pool\":false,",
					   "\"use_default_stream\":true,"};

	entity->way = chance(fz, 2) ? FZ_INTERNAL : (enum fz_way)draw(fz, FZ_WAYS);
	entity->attaches = !may(fz, FZ_LOOSE) || chance(fz, 2);
	if (entity->device || entity->tells || entity->own_fence || entity->told_fence)
		snprintf(entity->uses, sizeof entity->uses, "%s", uses[draw(fz, sizeof uses / sizeof *uses)]);
}

static void draw_times(struct fz *fz, struct fz_entity *entity, bool slow)
{
	entity->pause = 1 + draw(fz, 200) * FZ_US;
	if (!slow)
		return;
	entity->work = chance(fz, 2) ? draw(fz, 80) * FZ_US : 0;
	entity->delay = chance(fz, 3) ? draw(fz, 40) * FZ_US : 0;
}

static void draw_sends(struct fz *fz, struct fz_entity *entity)
{
	for (unsigned output = 0; output < FZ_OUTPUTS; output++) {
		bool passes = !entity->source && entity->ports[0].connections && chance(fz, 2);

		entity->send[output] = passes                                   ? FZ_PASS
				       : entity->wired[output] || chance(fz, 8) ? FZ_PRODUCE
										: FZ_NOTHING;
		entity->max_emits[output] = chance(fz, 4) ? 1 + draw(fz, 3) : 1;
	}
}

static void draw_port_settings(struct fz *fz, struct fz_port *port, bool passes)
{
	static const weir_policy policies[] = {WEIR_POLICY_BLOCK, WEIR_POLICY_BLOCK, WEIR_POLICY_BLOCK,
					       WEIR_POLICY_BLOCK, WEIR_POLICY_POP,   WEIR_POLICY_REJECT};
	static const char *const gates[] = {NULL, NULL, "true", "false"};

	port->capacity = chance(fz, 3) ? 1 : 1 + draw(fz, 8);
	port->policy =
		chance(fz, 60) ? WEIR_POLICY_FAULT : policies[draw(fz, sizeof policies / sizeof *policies)];
	port->gate = gates[draw(fz, sizeof gates / sizeof *gates)];
	fz->overflows |= port->policy == WEIR_POLICY_FAULT && port->connections;
	port->take = chance(fz, 3) ? 1 + draw(fz, port->capacity) : 1;
	if (!passes && chance(fz, 6))
		port->take = 0;
}

static int draw_max_in_flight(struct fz *fz)
{
	static const int bounds[] = {0, 1, 2, 3, 5, 16};

	return chance(fz, 3) ? bounds[draw(fz, sizeof bounds / sizeof *bounds)] : -1;
}

/* By a generator of their own: the rest of the graph is as without them. */
static void draw_parts(struct fz *fz, struct fz_entity *entity)
{
	struct fz_random random = {fz->seed * 1000003 + entity->id};

	fz_next(&random);
	entity->parts = fz_chance(&random, 3) ? 1 + fz_below(&random, FZ_PARTS) : 0;
	entity->passes = fz_chance(&random, 2) ? fz_below(&random, FZ_SHAPES) : FZ_AS_IT_IS;
	if (entity->passes == FZ_COPIED && !entity->device)
		entity->passes = FZ_AS_IT_IS;
	entity->stamps = fz_below(&random, 3);
	entity->told_fence = may(fz, FZ_OWN_FENCES) && fz_chance(&random, 8);
	entity->once = fz_chance(&random, 2);
}

static void draw_entity(struct fz *fz, unsigned id, bool source, bool slow)
{
	struct fz_entity *entity = &fz->entities[id];

	entity->source = source;
	entity->effects = chance(fz, 6);
	entity->max_in_flight = draw_max_in_flight(fz);
	entity->device = chance(fz, 2);
	entity->keeps = chance(fz, 6);
	entity->wraps = !entity->device && chance(fz, 4);
	entity->boolean = chance(fz, 10);
	entity->asynchronous = chance(fz, 10);
	entity->tells = (entity->boolean || entity->asynchronous) && chance(fz, 2);
	entity->own_fence = may(fz, FZ_OWN_FENCES) && chance(fz, 8);
	draw_parts(fz, entity);
	draw_stream(fz, entity);
	draw_times(fz, entity, slow);
	draw_sends(fz, entity);
	entity->ticks = source ? 1 + draw(fz, simulated(fz) ? 40 : slow ? 150 : 1500) : 0;
	for (unsigned port = 0; port < FZ_PORTS; port++)
		draw_port_settings(fz, &entity->ports[port],
				   !port && (entity->send[0] == FZ_PASS || entity->send[1] == FZ_PASS));
}

/* --- capacities --- */

static unsigned most(unsigned a, unsigned b)
{
	return a > b ? a : b;
}

/*
 * A tick that passes messages on emits as many as it takes; a queue holds the messages of one tick of
 * either end, and the initial ones.
 */
static void fit_capacities(struct fz *fz)
{
	for (unsigned i = 0; i < fz->entity_count; i++)
		for (unsigned output = 0; output < FZ_OUTPUTS; output++)
			if (fz->entities[i].send[output] == FZ_PASS)
				fz->entities[i].max_emits[output] = fz->entities[i].ports[0].take;
	for (unsigned i = 0; i < fz->connection_count; i++) {
		const struct fz_connection *connection = &fz->connections[i];
		struct fz_port *port = &fz->entities[connection->to].ports[connection->port];
		unsigned emits = fz->entities[connection->from].max_emits[connection->output];

		port->capacity = most(port->capacity,
				      most(emits + port->take - !!port->take, connection->initial_messages));
	}
}

/* --- which numbers must arrive in order and without a gap --- */

struct leaving {
	unsigned ways[FZ_ORIGINS];
	bool whole[FZ_ORIGINS];
};

/* Returns true if its policy blocks, or fails the run. */
static bool keeps_all(const struct fz_port *port)
{
	return port->policy == WEIR_POLICY_BLOCK || port->policy == WEIR_POLICY_FAULT;
}

static void leave(const struct fz *fz, unsigned id, unsigned output,
		  struct leaving leaving[FZ_ENTITIES + 1][FZ_OUTPUTS])
{
	const struct fz_entity *entity = &fz->entities[id];
	struct leaving *out = &leaving[id][output];

	if (entity->send[output] == FZ_PRODUCE) {
		out->ways[id] = 1;
		out->whole[id] = entity->send[!output] != FZ_PRODUCE;
	}
	if (entity->send[output] != FZ_PASS)
		return;
	for (unsigned i = 0; i < fz->connection_count; i++) {
		const struct fz_connection *connection = &fz->connections[i];
		const struct leaving *in = &leaving[connection->from][connection->output];
		if (connection->to != id || connection->port)
			continue;
		for (unsigned origin = 0; origin < FZ_ORIGINS; origin++) {
			out->ways[origin] += in->ways[origin];
			out->whole[origin] |= in->whole[origin] && keeps_all(&entity->ports[0]) &&
					      entity->passes != FZ_FIRST_PART;
		}
	}
}

static void arrive(struct fz_connection *connection, const struct leaving *in, bool blocks)
{
	for (unsigned origin = 0; origin < FZ_ORIGINS; origin++) {
		connection->ordered[origin] = in->ways[origin] == 1;
		connection->whole[origin] = in->ways[origin] == 1 && in->whole[origin] && blocks;
	}
}

static void follow(struct fz *fz)
{
	struct leaving leaving[FZ_ENTITIES + 1][FZ_OUTPUTS] = {0};

	leaving[FZ_INLET][0].ways[FZ_INLET] = 1;
	leaving[FZ_INLET][0].whole[FZ_INLET] = true;
	for (unsigned id = 0; id < fz->entity_count; id++)
		for (unsigned output = 0; output < FZ_OUTPUTS; output++)
			leave(fz, id, output, leaving);
	for (unsigned i = 0; i < fz->connection_count; i++) {
		struct fz_connection *connection = &fz->connections[i];
		arrive(connection, &leaving[connection->from][connection->output],
		       keeps_all(&fz->entities[connection->to].ports[connection->port]));
	}
	if (fz->takers == 1) /* else no thread sees them all, or in order */
		arrive(&fz->outlet_way, &leaving[fz->outlet_from][0], true);
}

/* --- JSON --- */

static const char *const port_names[] = {"in", "in2", "any"}, *const output_names[] = {"out", "out2"};
static const char *const signal_names[] = {"callback", "callback_inline", "flag"};

static void append(char *text, size_t size, const char *format, ...) WEIR_PRINTF(3, 4);

static void append(char *text, size_t size, const char *format, ...)
{
	size_t length = strlen(text);
	va_list list;

	va_start(list, format);
	vsnprintf(text + length, size - length, format, list);
	va_end(list);
}

#define ADD(...)       append(fz->text, sizeof fz->text, __VA_ARGS__)
#define CONDITION(...) append(entity->conditions, sizeof entity->conditions, __VA_ARGS__)

static const char *comma(const char *text)
{
	return text[0] ? "," : "";
}

static void put_signal(struct fz *fz, struct fz_entity *entity)
{
	if (may(fz, FZ_MIXED) && chance(fz, 2))
		CONDITION(",\"signal\":\"%s\"", signal_names[draw(fz, 3)]);
	CONDITION("}");
}

static void gate(struct fz *fz, struct fz_entity *entity, unsigned i)
{
	struct fz_port *port = &entity->ports[i];
	uint32_t kind = draw(fz, entity->device ? 12 : 6);

	if (kind < 3)
		CONDITION("%s{\"type\":\"cuda_stream\",\"port\":\"%s\"", comma(entity->conditions),
			  port_names[i]);
	else if (kind < 5)
		CONDITION("%s{\"type\":\"fz_%s\",\"slot\":%u,\"id\":%u,\"port\":\"%s\"",
			  comma(entity->conditions), kind == 3 ? "pending" : "either", fz->slot, entity->id,
			  port_names[i]);
	else
		kind = 12;
	/* A cuda_stream condition or the port's gate: host code only reads finished messages. */
	if (kind < 3)
		port->gate = NULL; /* the cuda_stream condition replaces it */
	port->gated = kind < 4 || (port->gate ? !strcmp(port->gate, "true") : !entity->device);
	if (kind == 12)
		return;
	if (kind < 3)
		put_signal(fz, entity);
	else
		CONDITION("}");
}

static void conditions(struct fz *fz, struct fz_entity *entity)
{
	for (unsigned i = 0; i < FZ_PORTS; i++)
		if (entity->ports[i].connections)
			gate(fz, entity, i);
	if (chance(fz, 8))
		CONDITION("%s{\"type\":\"count\",\"count\":%u}", comma(entity->conditions), 1 + draw(fz, 30));
	if (chance(fz, 8))
		CONDITION("%s{\"type\":\"periodic\",\"period\":\"%uus\"}", comma(entity->conditions),
			  1 + draw(fz, 100));
	if (entity->boolean)
		CONDITION("%s{\"type\":\"boolean\"}", comma(entity->conditions));
	if (entity->asynchronous)
		CONDITION("%s{\"type\":\"asynchronous\"}", comma(entity->conditions));
	if (entity->claims)
		CONDITION("%s{\"type\":\"memory_available\",\"min_blocks\":%u}", comma(entity->conditions),
			  entity->claims);
	if (entity->own_fence)
		CONDITION("%s{\"type\":\"fz_own%s\",\"slot\":%u,\"id\":%u}", comma(entity->conditions),
			  entity->source || chance(fz, 2) ? "" : "_late", fz->slot, entity->id);
	if (entity->told_fence)
		CONDITION("%s{\"type\":\"fence\",\"once\":%s}", comma(entity->conditions),
			  entity->once ? "true" : "false");
	if (chance(fz, 12))
		CONDITION("%s{\"type\":\"fz_pause\",\"slot\":%u,\"id\":%u}", comma(entity->conditions),
			  fz->slot, entity->id);
}

static void put_ports(struct fz *fz, const struct fz_entity *entity)
{
	static const char *const policies[] = {[WEIR_POLICY_BLOCK] = "block",
					       [WEIR_POLICY_POP] = "pop",
					       [WEIR_POLICY_REJECT] = "reject",
					       [WEIR_POLICY_FAULT] = "fault"};
	const char *before = "";

	ADD("\"ports\":{");
	for (unsigned i = 0; i < FZ_PORTS; i++) {
		const struct fz_port *port = &entity->ports[i];
		if (!port->connections)
			continue;
		ADD("%s\"%s\":{\"capacity\":%u,\"policy\":\"%s\",\"take\":", before, port_names[i],
		    port->capacity, policies[port->policy]);
		ADD(port->take ? "%u" : "\"all\"", port->take);
		if (port->gate)
			ADD(",\"gate\":%s", port->gate);
		ADD("}");
		before = ",";
	}
	for (unsigned i = 0; i < FZ_OUTPUTS; i++, before = ",")
		ADD("%s\"%s\":{\"max_emits\":%u}", before, output_names[i],
		    entity->max_emits[i] ? entity->max_emits[i] : 1);
	ADD("},");
}

static void put_entity(struct fz *fz, struct fz_entity *entity)
{
	conditions(fz, entity);
	ADD("%s{\"name\":\"%s\",\"operator\":\"%s\",\"parameters\":{\"slot\":%u,\"id\":%u},",
	    entity->id ? ",\n" : "", entity->name,
	    entity->source   ? "fz_source"
	    : entity->device ? "fz_device"
			     : "fz_node",
	    fz->slot, entity->id);
	ADD("%s%s", entity->uses, entity->effects ? "\"effects\":true," : "");
	if (entity->max_in_flight >= 0)
		ADD("\"max_in_flight\":%d,", entity->max_in_flight);
	put_ports(fz, entity);
	ADD("\"conditions\":[%s]}", entity->conditions);
}

static void put_connections(struct fz *fz)
{
	const char *before = "";

	for (unsigned i = 0; i < fz->connection_count; i++) {
		const struct fz_connection *connection = &fz->connections[i];
		if (connection->from == FZ_INLET)
			continue;
		ADD("%s{\"from\":\"%s.%s\",\"to\":\"%s.%s\",\"initial_messages\":%u}", before,
		    fz->entities[connection->from].name, output_names[connection->output],
		    fz->entities[connection->to].name, port_names[connection->port],
		    connection->initial_messages);
		before = ",\n";
	}
}

static void put_graph(struct fz *fz)
{
	int bound = draw_max_in_flight(fz);
	unsigned index = draw(fz, 2), most = 1 + draw(fz, 3);

	fz->bound = bound < 0 ? 64 : (unsigned)bound;
	ADD("{\"weir\":1,\"scheduler\":{\"signal\":\"%s\",\"max_in_flight\":%d},\n\"resources\":{\"few\":{"
	    "\"type\":\"stream_pool\",\"max_size\":%u},"
	    "\"parts\":{\"type\":\"green_context_pool\",\"sms_per_partition\":[2,4]},"
	    "\"part\":{\"type\":\"green_context\",\"pool\":\"parts\",\"index\":%u}",
	    fz->signal, fz->bound, most, index);
	if (fz->blocks)
		ADD(",\"m\":{\"type\":\"memory_pool\",\"block_size\":4096,\"blocks\":%u}", fz->blocks);
	ADD("},\n\"entities\":[\n");
	for (unsigned i = 0; i < fz->entity_count; i++)
		put_entity(fz, &fz->entities[i]);
	ADD("],\n\"connections\":[\n");
	put_connections(fz);
	ADD("]}\n");
}

/* --- the whole --- */

/* The last entity, if it emits nothing, has long device work when it stops the run. */
static void draw_drag(struct fz *fz)
{
	struct fz_entity *last = &fz->entities[fz->entity_count - 1];

	if (!chance(fz, simulated(fz) ? 8 : 40) || last->wired[0] || last->wired[1] ||
	    (fz->outlet && fz->outlet_from == last->id))
		return;
	last->drags_at = last->stops_at = 1 + draw(fz, 4);
}

static void draw_mishaps(struct fz *fz)
{
	struct fz_entity *entity = &fz->entities[draw(fz, fz->entity_count)];

	if (!chance(fz, 4))
		return;
	switch (draw(fz, 4)) {
	case 0:
		entity->fails_at = 1 + draw(fz, 40);
		break;
	case 1:
		entity->stops_at = 1 + draw(fz, 40);
		break;
	case 2:
		entity->faults_at = chance(fz, 3) ? 1 + draw(fz, 40) : 0;
		break;
	case 3:
		entity->start_fails = true;
		break;
	}
}

static void draw_options(struct fz *fz)
{
	weir_scheduler_options *options = &fz->scheduler_options;

	options->size = sizeof *options;
	options->backend = fz->backend;
	options->strict = WEIR_NONE; /* its computes look at device memory, to see what is early */
	options->workers = 1 + draw(fz, chance(fz, 3) ? 8 : 3);
	options->seed = fz->seed;
	options->drain_ns = 600 * 1000 * FZ_MS;
	options->worker_spin_ns = chance(fz, 4) ? 20 * FZ_US : 0;
	options->observe = chance(fz, 4) ? WEIR_OBSERVE_COMPUTE : 0u;
	if (chance(fz, 12))
		options->max_duration_ns = 1 + draw(fz, 5000) * FZ_US;
	fz->runs = 1 + draw(fz, 3);
}

/*
 * Draws an inlet into a port of its own and an outlet after an output, each with a thread. No inlet if the
 * table of connections is full: its messages could not be checked.
 */
static void draw_doors(struct fz *fz, unsigned sources)
{
	fz->outlet_from = draw(fz, fz->entity_count);
	fz->inlet_to = sources + draw(fz, fz->entity_count - sources);
	fz->outlet = !fz_alone(fz) && chance(fz, 3);
	fz->inlet = !fz_alone(fz) && chance(fz, 3) && fz->connection_count < FZ_CONNECTIONS;
	fz->early = chance(fz, 3);
	fz->takers = fz->seed % 4 ? 1 : 2;
	fz->pushes = draw(fz, 200);
	if (fz->inlet)
		wire(fz, FZ_INLET, 0, fz->inlet_to, 0, 0);
}

void fz_draw(struct fz *fz)
{
	unsigned sources = 1 + draw(fz, 3);
	bool slow = chance(fz, 2), sim = chance(fz, 4);

	/* Drawn even if the backend is given, so that the rest of the graph is the same. */
	fz->backend = fz->options->backend ? fz->options->backend : sim ? "sim" : "host";
	fz->inside = simulated(fz) && fz->seed % 2;
	fz->signal = signal_names[draw(fz, 3)];
	fz->tame = chance(fz, 2);
	fz->entity_count = sources + 1 + draw(fz, FZ_ENTITIES - sources);
	for (unsigned id = 0; id < fz->entity_count; id++) {
		fz->entities[id].id = id;
		fz->entities[id].fz = fz;
		snprintf(fz->entities[id].name, sizeof fz->entities[id].name, "e%02u", id);
	}
	fz->entities[FZ_INLET] = (struct fz_entity){.id = FZ_INLET, .fz = fz, .name = "inlet"};
	draw_wires(fz, sources);
	draw_fan_in(fz, sources);
	draw_doors(fz, sources);
	for (unsigned id = 0; id < fz->entity_count; id++)
		draw_entity(fz, id, id < sources, slow);
	fit_capacities(fz);
	fz_draw_memory(fz);
	fz->outlet_capacity = most(fz->entities[fz->outlet_from].max_emits[0], 1 + draw(fz, 4));
	follow(fz);
	put_graph(fz);
	draw_mishaps(fz);
	draw_drag(fz);
	draw_options(fz);
}
