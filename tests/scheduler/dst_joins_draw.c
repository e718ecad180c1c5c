/*
 * Draws the worlds of dst_joins.c. The graph is a tree, from its sources to the last join: what reaches two
 * ports of a join comes of different sources, so that none of them can starve the other. Beside it there are
 * sinks, which take all that comes.
 */
#include <string.h>

#include "dst_joins.h"

uint64_t dst_joins_random(uint64_t n)
{
	return wr_random_below(&joins.shape, n);
}

static unsigned draw(unsigned n)
{
	return (unsigned)dst_joins_random(n);
}

static struct dst_joins_entity *add(enum dst_role role)
{
	struct dst_joins_entity *entity = &joins.entity[joins.entities++];

	*entity = (struct dst_joins_entity){.role = role, .device = !draw(3), .work = 200 + draw(3000)};
	for (unsigned i = 0; i < PORTS; i++)
		entity->port[i] = (struct dst_joins_port){.from = NONE, .capacity = 1 + draw(3), .take = 1};
	entity->bound = draw(3) ? 0 : 1 + draw(3);
	return entity;
}

static unsigned id_of(const struct dst_joins_entity *entity)
{
	return (unsigned)(entity - joins.entity);
}

static int add_source(void)
{
	struct dst_joins_entity *source = add(SOURCE);

	source->count = draw(8) ? 1 + draw(8) : 8 + draw(16);
	source->period = draw(2) ? 0 : 100 + draw(3000);
	source->promises = !source->device && !draw(3);
	source->jump = draw(2) ? 0 : 2 + draw(4);
	source->loss = draw(2) ? 0 : 2 + draw(3);
	source->blocks = draw(3) ? 0 : 1;
	return (int)id_of(source);
}

static void draw_instances(struct dst_joins_entity *entity)
{
	bool likely = joins_shape == INSTANCES_SHAPE;

	if (likely ? draw(4) > 0 : !draw(4))
		entity->instances = 2 + draw(3);
}

static int add_relay(int from)
{
	struct dst_joins_entity *relay = add(RELAY);

	relay->port[0].from = from;
	relay->skips = !draw(3);
	draw_instances(relay);
	relay->forwards = draw(relay->instances ? 4 : 2) == 1;
	if (!relay->instances && !draw(6)) {
		relay->port[0].policy = draw(2) ? WEIR_POLICY_POP : WEIR_POLICY_REJECT;
		relay->port[0].take = 1;
	} else if (!draw(5)) {
		relay->port[0].take = draw(2) ? 0 : 1 + draw(relay->port[0].capacity);
	}
	relay->blocks = relay->forwards || (!relay->instances && draw(2)) ? 0 : 1;
	return (int)id_of(relay);
}

static int add_chain(void)
{
	int last = add_source();

	return draw(2) ? add_relay(last) : last;
}

/* Instances alone, with a pool: their sets are finished in any order, and there are no others. */
static int add_few(void)
{
	struct dst_joins_entity *source, *relay;

	source = &joins.entity[add_source()];
	source->device = false;
	source->blocks = 0;
	source->promises = draw(4) > 0;
	source->period = 0;
	source->count = 8 + draw(16);
	relay = &joins.entity[add_relay((int)id_of(source))];
	relay->instances = 3 + draw(2);
	relay->blocks = 1;
	relay->forwards = relay->skips = false;
	relay->port[0].policy = WEIR_POLICY_BLOCK;
	relay->port[0].capacity = relay->port[0].take = 1;
	return (int)id_of(relay);
}

/* --- joins --- */

static void draw_aligned(struct dst_joins_entity *join)
{
	join->by_tag = joins.by_tag;
	join->within = draw(3) ? draw(4) * (join->by_tag ? 1 : 500) : 0;
	join->empty = draw(2);
	join->nearest = draw(2);
	join->timeout = join->empty && draw(2) ? 500 + draw(20000) : 0;
	join->reuse = join->empty && draw(2);
	join->oldest = draw(2) ? (1 + draw(8)) * (join->by_tag ? 1 : 500) : UINT64_MAX;
	for (unsigned i = 0; i < PORTS; i++)
		if (join->nearest && join->port[i].capacity < 2)
			join->port[i].capacity = 2;
}

/* A beat is longer than a tick: what is always due goes before all others. With one nothing may stand behind
 * a queue that no alternative can empty: the queues hold all. */
static void draw_tree(struct dst_joins_entity *join, unsigned ports)
{
	unsigned all = (1U << ports) - 1, named = 0;

	join->alternatives = 2 + draw(2);
	for (unsigned i = 0; i < join->alternatives; i++) {
		join->alternative[i].ports = 1 + draw(all);
		join->alternative[i].told = !draw(6);
		named |= join->alternative[i].ports;
	}
	if (named != all && joins.entities < ENTITIES)
		join->alternative[0].ports |= all & ~named;
	if (draw(2)) {
		join->alternative[join->alternatives - 1] =
			(struct dst_joins_alternative){.period = draw(2) ? FAR : 50000 + draw(50000)};
		named = 0;
		for (unsigned i = 0; i + 1 < join->alternatives; i++)
			named |= join->alternative[i].ports;
		join->alternative[0].ports |= all & ~named;
		for (unsigned i = 0; i < ports; i++)
			join->port[i].capacity = SENT;
	}
	for (unsigned i = 0; i < join->alternatives; i++)
		join->told |= join->alternative[i].told;
	for (unsigned i = 0; i < ports; i++)
		join->port[i].take = draw(2);
}

static void draw_batch(struct dst_joins_entity *join, unsigned ports)
{
	unsigned least = join->port[0].capacity, most = 0;

	for (unsigned i = 0; i < ports; i++) {
		join->port[i].take = 0;
		join->port[i].size = 1 + draw(join->port[i].capacity);
		least = join->port[i].capacity < least ? join->port[i].capacity : least;
		most += join->port[i].capacity;
	}
	join->timeout = draw(2) ? 0 : 500 + draw(20000);
	/* Else a port may be full while the others will get nothing. */
	join->sum = 1 + draw(join->timeout ? most : least);
	if (join->kind != EXPIRING)
		return;
	join->timeout = 500 + draw(20000);
	join->sum = 1 + draw(join->port[0].capacity);
}

static enum dst_kind draw_kind(void)
{
	switch (joins_shape) {
	case ALIGNED_SHAPE:
		return ALIGNED;
	case TREES_SHAPE:
		return TREE;
	case BATCHES_SHAPE:
		return SUM + draw(3);
	case LATEST_SHAPE:
		return PLAIN;
	default:
		return PLAIN + draw(6);
	}
}

static void draw_latest(struct dst_joins_entity *join, unsigned ports)
{
	struct dst_joins_port *port = &join->port[ports];
	struct dst_joins_entity *source;

	if (ports == PORTS || join->instances || (joins_shape == LATEST_SHAPE ? !draw(8) : draw(4)))
		return;
	port->policy = WEIR_POLICY_LATEST;
	port->from = draw(4) ? add_source() : add_chain();
	source = &joins.entity[port->from];
	if (source->role != SOURCE)
		return;
	source->count = 1 + draw(40);
	source->period = draw(4) ? 100 + draw(1000) : 0;
	source->promises = !source->device && draw(2);
}

/* One whose first port takes what `from` emits; NONE: it has sources of its own alone. */
static int add_join(int from)
{
	struct dst_joins_entity *join = add(JOIN);
	unsigned ports;

	join->kind = draw_kind();
	ports = join->kind == EXPIRING || (joins_shape == LATEST_SHAPE && draw(2)) ? 1 : 2 + !draw(4);
	if (join->kind == PLAIN)
		for (unsigned i = 0; i < ports; i++)
			join->port[i].take = draw(3) ? 1 : draw(join->port[i].capacity + 1);
	if (join->kind == ALIGNED)
		draw_aligned(join);
	if (join->kind == TREE)
		draw_tree(join, ports);
	if (join->kind >= SUM)
		draw_batch(join, ports);
	join->effects = draw(4);
	join->forwards = join->kind == PLAIN && draw(2);
	join->blocks = join->forwards || draw(3) ? 0 : 1;
	draw_instances(join);
	join->reuse &= !join->instances; /* an instance does not see what its set was given again */
	if (join->kind == TREE && join->alternative[join->alternatives - 1].period)
		join->instances = 0;
	for (unsigned i = 0; i < ports; i++)
		join->port[i].from = !i && from != NONE ? from : add_chain();
	draw_latest(join, ports);
	return (int)id_of(join);
}

/*
 * Stamps must not go back where `aligned` reads them; those of an aligned set do not by themselves,
 * but after a timeout.
 */
static void draw_stamps(void)
{
	for (unsigned i = 0; i < joins.entities; i++) {
		struct dst_joins_entity *entity = &joins.entity[i];
		bool feeds = false;

		if (entity->role != JOIN || (entity->kind == ALIGNED && !entity->timeout))
			continue;
		for (unsigned k = 0; k < joins.entities; k++)
			feeds |= k != i && joins.entity[k].role == JOIN && joins.entity[k].kind == ALIGNED;
		if (feeds && entity->kind != PLAIN)
			entity->instances = 0;
		entity->stamps = !entity->instances && !entity->forwards && (feeds || draw(2));
	}
}

static bool instances_behind(unsigned id)
{
	bool some = joins.entity[id].instances > 0;

	for (unsigned i = 0; i < joins.entities; i++)
		for (unsigned p = 0; p < PORTS; p++)
			some |= joins.entity[i].port[p].from == (int)id &&
				(joins.entity[i].instances ||
				 (joins.entity[i].forwards && instances_behind(i)));
	return some;
}

/* As many as may lie behind an entity, and one for its tick. */
static unsigned places_behind(unsigned id)
{
	unsigned places = joins.outlet == (int)id ? 4 : 0;

	for (unsigned i = 0; i < joins.entities; i++)
		for (unsigned p = 0; p < PORTS; p++) {
			const struct dst_joins_entity *to = &joins.entity[i];
			if (to->port[p].from != (int)id)
				continue;
			places += to->port[p].policy == WEIR_POLICY_LATEST ? 4 : to->port[p].capacity;
			places += to->reuse; /* the one that it keeps */
			places += to->forwards ? 1 + places_behind(i) : 0;
		}
	return places;
}

static void add_sink(int from)
{
	struct dst_joins_entity *sink = add(SINK);

	sink->port[0].from = from;
	if (!draw(4))
		sink->port[0].take = 0;
}

void dst_joins_draw(uint64_t seed)
{
	static const char *const signals[] = {"auto", "flag", "callback", "callback_inline"};
	unsigned before;
	int last;

	memset(&joins, 0, sizeof joins);
	joins.seed = seed;
	wr_random_seed(&joins.shape, seed, 51);
	joins.by_tag = !draw(3);
	last = joins_shape == INSTANCES_SHAPE && draw(2) ? add_few() : add_join(NONE);
	last = draw(3) ? last : add_relay(last);
	if (!draw(3) && joins.entities <= 8)
		last = add_join(last);
	last = draw(joins_shape == INSTANCES_SHAPE ? 2 : 3) ? last : add_relay(last);
	draw_stamps();
	before = joins.entities;
	joins.outlet = draw(3) ? NONE : last;
	if (joins.outlet == NONE || draw(2))
		add_sink(last);
	if (!draw(3) && joins.entities < ENTITIES)
		add_sink((int)draw(before));
	if (!draw(12))
		joins.entity[draw(joins.entities)].fails_at = 1 + draw(6);
	joins.signal = signals[draw(4)];
	joins.workers = 1 + draw(joins_shape == INSTANCES_SHAPE ? 5 : 3);
	joins.stop_after = draw(5) ? 0 : 1 + draw(30000);
	joins.drain = draw(3);
	joins.pokes = !draw(6);
	joins.early = draw(2);
	joins.delay = (int64_t)1 << (4 + draw(9));
	for (unsigned i = 0; i < joins.entities;
	     i++) /* beside instances as few as are accepted (make_graph) */
		joins.entity[i].blocks +=
			joins.entity[i].blocks && !instances_behind(i) ? places_behind(i) : 0;
}

/* --- the text --- */

static void put_pools(void)
{
	const char *before = "";

	for (unsigned i = 0; i < joins.entities; i++) {
		const struct dst_joins_entity *entity = &joins.entity[i];

		if (!entity->blocks)
			continue;
		dst_put("%s\"p%u\":{\"type\":\"memory_pool\",%s\"block_size\":64,\"blocks\":%u}", before, i,
			entity->device ? "" : "\"place\":\"host\",", entity->blocks);
		before = ",";
	}
}

static void put_ports(const struct dst_joins_entity *entity)
{
	static const char *const policies[] = {"block", "pop", "reject", "fault", "latest"};
	const char *before = "";

	dst_put(",\"ports\":{");
	for (unsigned p = 0; p < PORTS; p++) {
		const struct dst_joins_port *port = &entity->port[p];
		if (port->from == NONE)
			continue;
		dst_put("%s\"%c\":{", before, 'a' + p);
		before = ",";
		if (port->policy == WEIR_POLICY_LATEST) {
			dst_put("\"policy\":\"latest\"}");
			continue;
		}
		dst_put("\"capacity\":%u,\"policy\":\"%s\",\"take\":", port->capacity,
			policies[port->policy]);
		dst_put(port->take ? "%u}" : "\"all\"}", port->take);
	}
	dst_put("}");
}

static void put_names(const struct dst_joins_entity *entity, unsigned ports)
{
	const char *before = "";

	dst_put("\"ports\":[");
	for (unsigned p = 0; p < PORTS; p++) {
		if (!(ports >> p & 1) || entity->port[p].from == NONE ||
		    entity->port[p].policy == WEIR_POLICY_LATEST)
			continue;
		dst_put("%s\"%c\"", before, 'a' + p);
		before = ",";
	}
	dst_put("]");
}

static void put_aligned(const struct dst_joins_entity *entity)
{
	dst_put("{\"type\":\"aligned\",");
	put_names(entity, 7);
	dst_put(",\"by\":\"%s\",", entity->by_tag ? "tag" : "time");
	if (entity->by_tag)
		dst_put("\"within_tags\":%u,", (unsigned)entity->within);
	else
		dst_put("\"within\":\"%uns\",", (unsigned)entity->within);
	dst_put("\"missing\":\"%s\",\"nearest\":%s",
		entity->reuse   ? "reuse"
		: entity->empty ? "empty"
				: "wait",
		entity->nearest ? "true" : "false");
	if (entity->reuse && entity->oldest != UINT64_MAX)
		dst_put(entity->by_tag ? ",\"max_age_tags\":%u" : ",\"max_age\":\"%uns\"",
			(unsigned)entity->oldest);
	if (entity->timeout)
		dst_put(",\"timeout\":\"%lldns\"", (long long)entity->timeout);
	dst_put("}");
}

static void put_alternative(const struct dst_joins_alternative *alternative, unsigned number)
{
	const char *before = "";
	bool several = alternative->told || (alternative->ports & (alternative->ports - 1));

	if (alternative->period) {
		dst_put("{\"type\":\"periodic\",\"period\":\"%lldns\",\"offset\":\"%lldns\"}",
			(long long)alternative->period, (long long)alternative->period);
		return;
	}
	if (several)
		dst_put("{\"type\":\"all_of\",\"conditions\":[");
	for (unsigned p = 0; p < PORTS; p++)
		if (alternative->ports >> p & 1) {
			dst_put("%s{\"type\":\"message_available\",\"port\":\"%c\"}", before, 'a' + p);
			before = ",";
		}
	if (alternative->told)
		dst_put("%s{\"type\":\"boolean\",\"name\":\"t%u\"}", before, number);
	if (several)
		dst_put("]}");
}

static void put_tree(const struct dst_joins_entity *entity)
{
	dst_put("{\"type\":\"any_of\",\"conditions\":[");
	for (unsigned i = 0; i < entity->alternatives; i++) {
		dst_put("%s", i ? "," : "");
		put_alternative(&entity->alternative[i], i);
	}
	dst_put("]}");
}

static void put_batch(const struct dst_joins_entity *entity)
{
	const char *before = "";

	if (entity->kind == EXPIRING) {
		dst_put("{\"type\":\"expiring_message_available\",\"port\":\"a\",\"max_batch\":%u,\"max_"
			"delay\":\"%lldns\"}",
			entity->sum, (long long)entity->timeout);
		return;
	}
	dst_put("{\"type\":\"multi_message_available\",");
	put_names(entity, 7);
	if (entity->kind == SUM) {
		dst_put(",\"min_sum\":%u", entity->sum);
	} else {
		dst_put(",\"min_sizes\":[");
		for (unsigned p = 0; p < PORTS; p++)
			if (entity->port[p].from != NONE && entity->port[p].policy != WEIR_POLICY_LATEST) {
				dst_put("%s%u", before, entity->port[p].size);
				before = ",";
			}
		dst_put("]");
	}
	if (entity->timeout)
		dst_put(",\"timeout\":\"%lldns\"", (long long)entity->timeout);
	dst_put("}");
}

static void put_conditions(const struct dst_joins_entity *entity)
{
	dst_put(",\"conditions\":[");
	if (entity->role == SOURCE) {
		dst_put("{\"type\":\"count\",\"count\":%u}", entity->count);
		if (entity->period)
			dst_put(",{\"type\":\"periodic\",\"period\":\"%lldns\"}", (long long)entity->period);
	}
	if (entity->kind == ALIGNED)
		put_aligned(entity);
	if (entity->kind == TREE)
		put_tree(entity);
	if (entity->kind >= SUM)
		put_batch(entity);
	dst_put("]");
}

static void put_entity(unsigned id)
{
	const struct dst_joins_entity *entity = &joins.entity[id];

	dst_put("%s{\"name\":\"e%u\",\"operator\":\"%s\",\"parameters\":{\"id\":%u}", id ? "," : "", id,
		entity->role == SOURCE ? "start"
		: entity->device       ? "on_device"
				       : "on_host",
		id);
	if (entity->blocks)
		dst_put(",\"resources\":[\"p%u\"]", id);
	if (entity->role != SOURCE)
		put_ports(entity);
	if (entity->role == JOIN || entity->role == SOURCE)
		put_conditions(entity);
	if (entity->instances)
		dst_put(",\"instances\":%u", entity->instances);
	if (entity->effects)
		dst_put(",\"effects\":true");
	if (entity->bound)
		dst_put(",\"max_in_flight\":%u", entity->bound);
	dst_put("}");
}

void dst_joins_put(void)
{
	const char *before = "";

	dst_said.json[0] = 0;
	dst_put("{\"weir\":1,\"scheduler\":{\"signal\":\"%s\"},\"resources\":{", joins.signal);
	put_pools();
	dst_put("},\"entities\":[");
	for (unsigned id = 0; id < joins.entities; id++)
		put_entity(id);
	dst_put("],\"connections\":[");
	for (unsigned id = 0; id < joins.entities; id++)
		for (unsigned p = 0; p < PORTS; p++)
			if (joins.entity[id].port[p].from != NONE) {
				dst_put("%s[\"e%d.out\",\"e%u.%c\"]", before, joins.entity[id].port[p].from,
					id, 'a' + p);
				before = ",";
			}
	dst_put("]}");
}
