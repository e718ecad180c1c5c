/*
 * Draws a graph as JSON. Where several paths meet, each must bring as many messages as the others, or the
 * join starves and the graph rightly deadlocks: there all queues are `block` and every tick takes one. A knot
 * is drawn to deadlock.
 */
#include "dst.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* --- text --- */

struct text {
	char *at, *begin, *end;
};

static void put(struct text *text, const char *format, ...) WEIR_PRINTF(2, 3);
static void put(struct text *text, const char *format, ...)
{
	va_list list;

	va_start(list, format);
	text->at += vsnprintf(text->at, (size_t)(text->end - text->at), format, list);
	va_end(list);
}

static uint64_t draw(struct dst *dst, uint64_t n)
{
	return wr_random_below(&dst->random, n);
}

static bool chance(struct dst *dst, uint64_t one_in)
{
	return !draw(dst, one_in);
}

/* Draws for streams have a generator of their own. */
static uint64_t draw_streams(struct dst *dst, uint64_t n)
{
	return wr_random_below(&dst->streams, n);
}

/* Draws for gates: likewise. */
static uint64_t draw_gates(struct dst *dst, uint64_t n)
{
	return wr_random_below(&dst->gates, n);
}

static const char *yes(bool is)
{
	return is ? "true" : "false";
}

/* --- entities --- */

struct entity {
	unsigned id;
	bool source, last, device, gated, passes, counted;
	enum gate { OFF, EXPLICIT, IMPLIED } gate;
	bool in2;       /* the second port is connected */
	bool latest;    /* and shows the newest message again */
	bool joined;    /* paths meet somewhere */
	unsigned take;  /* 0: drawn */
	bool notes;     /* notes its last work, for conditions that name it */
	unsigned bound; /* max_in_flight; 0: none */
};

/* Small, so that it is reached within few ticks. */
static unsigned draw_bound(struct dst *dst)
{
	static const unsigned bounds[] = {0, 1, 1, 2, 3, 4, 5};

	return bounds[draw_streams(dst, sizeof bounds / sizeof *bounds)];
}

/* "signal":"NAME", or nothing. */
static const char *draw_signal(struct dst *dst)
{
	static const char *const signals[] = {
		"",
		",\"signal\":\"callback\"",
		",\"signal\":\"callback_inline\"",
		",\"signal\":\"flag\"",
	};

	return signals[draw_streams(dst, sizeof signals / sizeof *signals)];
}

/* Its stream pool. `few` has fewer streams than users; an entity
 * that gets none works on its inputs' streams. */
static void put_streams(struct text *text, struct dst *dst)
{
	static const char *const from[] = {
		"",
		"",
		"",
		"\"resources\":[\"few\"],",
		"\"resources\":[\"few\"],",
		"\"resources\":[\"far\"],",
		"\"resources\":[\"part\"],",
		"\"default_stream_pool\":false,",
		"\"use_default_stream\":true,",
	};

	put(text, "%s", from[draw_streams(dst, sizeof from / sizeof *from)]);
}

static void put_resources(struct text *text, struct dst *dst)
{
	/* Drawn one after another here and below: the order of arguments is the compiler's, and a seed is to
	 * mean one world. */
	unsigned index = (unsigned)draw_streams(dst, 2), reserved = (unsigned)draw_streams(dst, 3);
	bool blocking = draw_streams(dst, 2);
	unsigned most = 1 + (unsigned)draw_streams(dst, 2);

	put(text,
	    "\"resources\":{\"few\":{\"type\":\"stream_pool\",\"max_size\":%u},"
	    "\"far\":{\"type\":\"stream_pool\",\"device\":1,\"flags\":\"%s\",\"reserved_size\":%u},"
	    "\"parts\":{\"type\":\"green_context_pool\",\"sms_per_partition\":[2,4]},"
	    "\"part\":{\"type\":\"green_context\",\"pool\":\"parts\",\"index\":%u}},",
	    most, blocking ? "blocking" : "non_blocking", reserved, index);
}

static void put_parameters(struct text *text, struct dst *dst, const struct entity *entity, unsigned beat)
{
	unsigned since = dst->tiny ? (unsigned)draw_gates(dst, 4) : 0;
	bool keeps = !draw_streams(dst, 3), in_place = entity->device && draw_streams(dst, 2);
	unsigned work = (unsigned)draw(dst, 3) * beat,
		 way = entity->device ? (unsigned)draw_streams(dst, DST_WAYS) : 0;

	put(text,
	    "\"parameters\":{\"id\":%u,\"graph\":%u,\"device\":%s,\"gated\":%s,\"passes\":%s,\"last\":%s,"
	    "\"way\":%u,\"work\":\"%uns\","
	    "\"in_place\":%s,\"keeps\":%s,\"notes\":%s,\"since\":%u,\"bound\":%u,\"latest\":%s},"
	    "\"max_in_flight\":%u,",
	    entity->id, dst->graph, yes(entity->device), yes(entity->gated), yes(entity->passes),
	    yes(entity->last), way, work, yes(in_place), yes(keeps), yes(entity->notes), since, entity->bound,
	    yes(entity->latest), entity->bound);
	if (entity->device)
		put_streams(text, dst);
}

/* Waits for device work that no message carries: its own, or that of another entity. */
static void put_own_fences(struct text *text, struct dst *dst, const struct entity *entity, const char *comma)
{
	unsigned beat = draw_streams(dst, 2) ? 0 : 800 + (unsigned)draw_streams(dst, 3000);
	bool own = entity->source || draw_streams(dst, 2);

	put(text, "%s{\"type\":\"%s\",\"id\":%u,\"graph\":%u,\"beat\":\"%uns\"}", comma,
	    own ? "dst_own_work" : "dst_work_of_another",
	    own ? entity->id : (unsigned)draw_streams(dst, entity->id), dst->graph, beat);
}

static void put_fence(struct text *text, const struct dst *dst, const struct entity *entity,
		      const char *comma)
{
	if (entity->id == dst->fenced)
		put(text, "%s{\"type\":\"fence\",\"once\":%s}", comma, yes(dst->fence_once));
}

static void put_source(struct text *text, struct dst *dst, unsigned id, bool last)
{
	unsigned count = 1 + (dst->knot || dst->tiny) + (unsigned)draw(dst, dst->tiny ? 3 : 6);
	struct entity source = {
		.id = id, .source = true, .last = last, .device = !dst->tiny && chance(dst, 2)};

	source.device |= dst->tiny && draw_gates(dst, 2);
	source.notes = source.device && !draw_streams(dst, 2);
	source.bound = draw_bound(dst);
	put(text, "{\"name\":\"e%u\",\"operator\":\"dst_source\",", id);
	put_parameters(text, dst, &source, 700);
	put(text, "\"conditions\":[{\"type\":\"count\",\"count\":%u}", count);
	if (dst->tiny ? !chance(dst, 5) : chance(dst, 3))
		put(text, ",{\"type\":\"periodic\",\"period\":\"%uns\"}",
		    DST_BEAT + (dst->tiny ? 0 : (unsigned)draw(dst, 3000)));
	if (source.notes && draw_streams(dst, 2))
		put_own_fences(text, dst, &source, ",");
	put_fence(text, dst, &source, ",");
	put(text, "]}");
	dst->beats = id ? dst->beats : count;
}

/* An explicit gate names the connected ports only. */
static const char *const gate_words[] = {[OFF] = ",\"gate\":false", [EXPLICIT] = "", [IMPLIED] = ""};

static void put_ports(struct text *text, struct dst *dst, const struct entity *entity)
{
	static const char *const policies[] = {"block", "block", "block", "block", "pop", "reject"};
	unsigned capacity = 1 + (unsigned)draw(dst, dst->tiny ? 2 : 3),
		 take = entity->joined ? 1 : 1 + (unsigned)draw(dst, capacity);
	const char *policy = policies[entity->joined ? 0 : draw(dst, 6)];
	bool all = !entity->joined && chance(dst, 5);

	if (entity->take)
		take = capacity = entity->take;
	if (strcmp(policy, "block") || take > 1 || (all && capacity > 1))
		dst->strict = false; /* the last messages may be too few for a tick */
	put(text, "\"ports\":{\"in\":{\"capacity\":%u,\"policy\":\"%s\",\"take\":", capacity, policy);
	put(text, all ? "\"all\"" : "%u", take);
	put(text, "%s}", gate_words[entity->gate]);
	if (entity->latest)
		put(text, ",\"in2\":{\"policy\":\"latest\"}");
	else if (entity->in2)
		put(text, ",\"in2\":{\"capacity\":%u%s}", dst->cycle ? 1 + (unsigned)draw(dst, 2) : 1,
		    gate_words[entity->gate]);
	put(text, "}");
}

static void put_conditions(struct text *text, struct dst *dst, const struct entity *entity)
{
	const char *comma = "";

	put(text, ",\"conditions\":[");
	if (entity->gate == EXPLICIT) {
		put(text, "{\"type\":\"cuda_stream\",\"port\":%s%s}",
		    entity->in2 && !entity->latest ? "[\"in\",\"in2\"]" : "\"in\"", draw_signal(dst));
		comma = ",";
	}
	if (entity->id && !dst->tiny && !draw_streams(dst, 4)) {
		put_own_fences(text, dst, entity, comma);
		comma = ",";
	}
	if (entity->counted) {
		put(text, "%s{\"type\":\"count\",\"count\":%u}", comma, 1 + (unsigned)draw(dst, 4));
		comma = ",";
	}
	if (entity->last && dst->told)
		put(text, "%s{\"type\":\"%s\"}", comma, dst->told);
	put_fence(text, dst, entity, entity->last && dst->told ? "," : comma);
	put(text, "]}");
	dst->strict = dst->strict && !entity->counted;
}

static void put_node(struct text *text, struct dst *dst, struct entity *entity, const char *kind, bool merges)
{
	entity->device = !dst->tiny && chance(dst, 2);
	entity->notes = entity->device && !draw_streams(dst, 2);
	entity->bound = draw_bound(dst);
	entity->gated = !dst->tiny && (!entity->device || chance(dst, 2));
	entity->gate = dst->tiny ? IMPLIED : entity->gated ? EXPLICIT + draw_gates(dst, 2) : OFF;
	if (!draw_gates(dst, 8))
		entity->gate = OFF; /* an ungated host node reads no message that has fences */
	entity->gated = entity->gate != OFF;
	entity->counted = !dst->plain && !dst->gather && chance(dst, 6);
	entity->passes = !merges && chance(dst, 2);
	put(text, "{\"name\":\"e%u\",\"operator\":\"%s\",", entity->id, kind);
	put_parameters(text, dst, entity, 900);
	put_ports(text, dst, entity);
	put_conditions(text, dst, entity);
}

/* --- wires --- */

static void wire(struct text *wires, unsigned from, unsigned to, const char *port)
{
	put(wires, "%s[\"e%u.out\",\"e%u.%s\"]", wires->at == wires->begin ? "" : ",", from, to, port);
}

/* e0 -> e1, e0 -> e2, both -> e3, which receives one of each at a time. */
static void put_diamond(struct text *text, struct text *wires, struct dst *dst)
{
	for (unsigned id = 1; id < 4; id++) {
		struct entity entity = {.id = id, .joined = true, .last = id == 3};

		put(text, ",");
		put_node(text, dst, &entity, id == 3 ? "dst_gather" : "dst_node", id == 3);
	}
	wire(wires, 0, 1, "in");
	wire(wires, 0, 2, "in");
	wire(wires, 1, 3, "in");
	wire(wires, 2, 3, "in");
}

/* In a cycle messages of the last entity let e1 go on; in a knot
 * e2 waits for two, but e1 may send only one. */
static void put_chain(struct text *text, struct text *wires, struct dst *dst, unsigned n)
{
	for (unsigned id = 1; id < n; id++) {
		bool root = dst->cycle && id == 1;
		struct entity entity = {.id = id,
					.joined = true,
					.last = id == n - 1,
					.in2 = root,
					.take = dst->knot && id == 2 ? 2 : 0};

		put(text, ",");
		put_node(text, dst, &entity, "dst_node", root);
		wire(wires, id - 1, id, "in");
	}
	if (!dst->cycle)
		return;
	put(wires, ",{\"from\":\"e%u.out\",\"to\":\"e1.in2\",\"initial_messages\":1}", n - 1);
	dst->strict = false; /* when e1 is DONE the last entity need not tick any more */
}

/* Any acyclic graph of one or two sources; a node may have a second input. */
static void put_any(struct text *text, struct text *wires, struct dst *dst, unsigned n, unsigned sources)
{
	bool joined = chance(dst, 2);

	for (unsigned id = sources; id < n; id++) {
		unsigned from = id == n - 1 && sources == 2 && chance(dst, 2) ? 1 : (unsigned)draw(dst, id);
		unsigned second = id > 1 && chance(dst, 3) ? (unsigned)draw(dst, id) : id;
		struct entity entity = {.id = id, .joined = joined, .last = id == n - 1};

		if (!joined && second == from)
			second = id;
		entity.in2 = second != id && (second == from || joined);
		entity.latest = entity.in2 && wr_random_below(&dst->joins, 2);
		if (second != id || from != id - 1)
			dst->strict = false;
		put(text, ",");
		put_node(text, dst, &entity, "dst_node", second != id);
		wire(wires, from, id, "in");
		if (second != id)
			wire(wires, second, id, entity.in2 ? "in2" : "in");
	}
}

static void put_first(struct text *text, struct dst *dst, unsigned n)
{
	struct entity entity = {.id = 0, .joined = true, .last = n == 1};

	if (dst->inlet)
		put_node(text, dst, &entity, "dst_node", false);
	else
		put_source(text, dst, 0, n == 1);
}

static void put_graph(struct text *text, struct text *wires, struct dst *dst)
{
	unsigned n = dst->gather ? 4
		     : dst->tiny ? 2
				 : (dst->cycle ? 3 : 2) + (unsigned)draw(dst, dst->cycle ? 2 : 3);
	unsigned sources = !dst->plain && !dst->gather && n > 2 && chance(dst, 3) ? 2 : 1;

	dst->strict = sources == 1;
	dst->entities = n;
	dst->fenced = dst->knot ? DST_ENTITIES : dst->fenced; /* that must stand still */
	put_first(text, dst, n);
	if (sources == 2) {
		put(text, ",");
		put_source(text, dst, 1, false);
	}
	if (dst->gather)
		put_diamond(text, wires, dst);
	else if (dst->plain)
		put_chain(text, wires, dst, n);
	else
		put_any(text, wires, dst, n, sources);
}

weir_status dst_graph(struct dst *dst, weir_registry *registry, weir_graph **out)
{
	static const char *const signals[] = {"callback", "callback_inline"}, *const flags[] = {"flag",
												"auto"};
	unsigned drawn = (unsigned)draw(dst, 2);
	const char *signal = draw_streams(dst, 3) ? signals[drawn] : flags[dst_signals_lost ? 1 : drawn];
	char connections[512] = "";
	struct text text = {dst->text, dst->text, dst->text + sizeof dst->text};
	struct text wires = {connections, connections, connections + sizeof connections};
	weir_description *description = NULL;
	weir_status status;

	put(&text, "{\"weir\":1,\"scheduler\":{\"signal\":\"%s\"},", signal);
	put_resources(&text, dst);
	put(&text, "\"entities\":[");
	put_graph(&text, &wires, dst);
	put(&text, "],\"connections\":[%s]}", connections);
	status = weir_description_parse(dst->text, strlen(dst->text), NULL, NULL, &description);
	if (!status)
		status = weir_graph_create(registry, description, out);
	weir_description_destroy(description);
	return status;
}
