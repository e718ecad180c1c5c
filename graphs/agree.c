/*
 * Types over connections: the two ports of each must have a tensor in common. Places and dtypes are compared
 * alone. Shapes go on: what a connection leaves of the alternatives of a port, and of the sizes that its
 * names may be, holds for the other connections of that entity, so the shapes are compared until nothing
 * changes. That refuses nothing that could work, and does not find every graph that cannot: several
 * alternatives of several ports are not tried together.
 */
#include <inttypes.h>
#include <string.h>

#include "base/atomic.h"
#include "base/memory.h"
#include "base/status.h"
#include "base/struct.h"
#include "graphs/build.h"
#include "graphs/description.h"

#define ROUNDS_MAX 64 /* a long chain that is listed backwards stays unfinished: less is found */

/*
 * What an output that is like an input sends is what another entity has sent, so connections from there are
 * compared with that one's port: by entity, the connection that brings it; WR_NO_CONNECTION: not known. Only
 * where one connection leads to the input, and no inlet.
 */
#define WR_NO_CONNECTION UINT32_MAX
struct brought {
	const struct wr_plan *plan;
	uint32_t *by;
};

/* One end of a connection. */
struct end {
	struct wr_port_type *type;
	struct wr_scope *scope;
	bool alone; /* an input with any number of connections: what one of them leaves holds for it alone */
	uint8_t fits;                                /* mask of the shapes that meet one of the other end's */
	struct wr_interval names[WR_SIZE_NAMES_MAX]; /* that they leave */
};

struct ends {
	struct end from, to;
	uint8_t places; /* of the sender's own port */
};

static bool is_like(const struct brought *brought, const struct wr_plan_connection *c)
{
	return brought->plan->entities[c->from].outputs[c->output].port->like &&
	       brought->by[c->from] != WR_NO_CONNECTION;
}

/* The connection whose sender says what travels on this one. Ways are shortened for those that ask later. */
static const struct wr_plan_connection *source_of(const struct brought *brought, size_t i)
{
	const struct wr_plan_connection *all = brought->plan->connections, *c = &all[i];
	size_t steps = 0;

	while (is_like(brought, c)) {
		uint32_t entity = c->from;

		c = &all[brought->by[entity]];
		if (steps++ > brought->plan->entity_count)
			return &all[i]; /* a circle */
		if (is_like(brought, c))
			brought->by[entity] = brought->by[c->from];
	}
	return c;
}

static bool leads_to_like(const struct wr_plan_entity *to, uint32_t input)
{
	for (size_t i = 0; i < to->output_count; i++)
		if (to->outputs[i].port->like &&
		    !strcmp(to->outputs[i].port->like, to->inputs[input].port->name))
			return to->inputs[input].connections == 1 && !to->inputs[input].inlet;
	return false;
}

static weir_status find_brought(struct brought *brought)
{
	const struct wr_plan *plan = brought->plan;

	brought->by = wr_alloc(plan->entity_count, sizeof *brought->by);
	if (!brought->by)
		return WEIR_E_NOMEM;
	for (size_t i = 0; i < plan->entity_count; i++)
		brought->by[i] = WR_NO_CONNECTION;
	for (size_t i = 0; i < plan->connection_count; i++)
		if (leads_to_like(&plan->entities[plan->connections[i].to], plan->connections[i].input))
			brought->by[plan->connections[i].to] = (uint32_t)i;
	return WEIR_OK;
}

static void find_ends(struct wr_build *build, const struct brought *brought, size_t i, struct ends *ends)
{
	const struct wr_plan_connection *c = &build->plan->connections[i], *source = source_of(brought, i);
	struct wr_plan_entity *from = &build->plan->entities[source->from],
			      *to = &build->plan->entities[c->to];
	struct wr_plan_input *input = &to->inputs[c->input];

	ends->places = build->plan->entities[c->from].outputs[c->output].type.places;
	ends->from.type = &from->outputs[source->output].type;
	ends->from.scope = &from->scope;
	ends->from.alone = false;
	ends->to.type = &input->type;
	ends->to.scope = &to->scope;
	ends->to.alone = input->port->flags & WEIR_PORT_ANY_SIZE;
}

/* --- shapes --- */

static void copy_names(const struct end *end, struct wr_interval *names)
{
	for (size_t i = 0; i < end->scope->count; i++)
		names[i] = end->alone ? (struct wr_interval){0, INT64_MAX} : end->scope->names[i].in;
}

static void add_pair(struct end *end, int shape, const struct wr_interval *names)
{
	for (size_t i = 0; i < end->scope->count; i++) {
		struct wr_interval *all = &end->names[i];
		if (!end->fits || names[i].least < all->least)
			all->least = names[i].least;
		if (!end->fits || names[i].most > all->most)
			all->most = names[i].most;
	}
	end->fits = (uint8_t)(end->fits | 1u << shape);
}

static void try_pair(struct ends *ends, int i, int k)
{
	struct end *from = &ends->from, *to = &ends->to;
	struct wr_interval of_from[WR_SIZE_NAMES_MAX], of_to[WR_SIZE_NAMES_MAX];

	if (!(from->type->alive & 1u << i) || !(to->type->alive & 1u << k))
		return;
	copy_names(from, of_from);
	copy_names(to, of_to);
	if (!wr_shapes_meet(&from->type->shapes[i], of_from, &to->type->shapes[k], of_to))
		return;
	add_pair(from, i, of_from);
	add_pair(to, k, of_to);
}

/* Returns true if some shape of both ends is the same; an end that says nothing has any. */
static bool shapes_agree(struct ends *ends)
{
	ends->from.fits = ends->to.fits = 0;
	for (int i = 0; i < ends->from.type->count; i++)
		for (int k = 0; k < ends->to.type->count; k++)
			try_pair(ends, i, k);
	return ends->from.fits || !ends->from.type->count || !ends->to.type->count;
}

/* Returns true if the end had more alternatives, or its names more sizes. */
static bool keep(struct end *end, size_t connection)
{
	bool changed = false;

	if (end->alone)
		return false;
	changed = end->type->alive != end->fits;
	end->type->alive = end->fits;
	for (size_t i = 0; i < end->scope->count; i++) {
		struct wr_size_name *name = &end->scope->names[i];
		if (!memcmp(&name->in, &end->names[i], sizeof(name->in)))
			continue;
		name->in = end->names[i];
		name->by = connection;
		changed = true;
	}
	return changed;
}

/* --- reports --- */

static void say_interval(struct wr_words *words, struct wr_interval in)
{
	if (in.least == in.most)
		wr_words_add(words, "is %" PRId64, in.least);
	else if (in.most == INT64_MAX)
		wr_words_add(words, "is at least %" PRId64, in.least);
	else
		wr_words_add(words, "is %" PRId64 " to %" PRId64, in.least, in.most);
}

/* " (H is 3, W is 4 by a.out -> b.in)", of the names of the end's shapes that one connection has narrowed. */
static void say_names(const struct wr_plan *plan, const struct end *end, struct wr_words *words)
{
	const struct wr_plan_connection *c;
	size_t by = WR_NO_INDEX;
	uint64_t said = 0; /* WR_SIZE_NAMES_MAX bits */

	for (int i = 0; i < end->type->count && !end->alone; i++)
		for (int k = 0; k < end->type->shapes[i].rank; k++) {
			int index = end->type->shapes[i].sizes[k].name;
			const struct wr_size_name *name = index < 0 ? NULL : &end->scope->names[index];

			if (!name || name->by == WR_NO_INDEX || said >> index & 1 || (said && name->by != by))
				continue;
			by = name->by;
			wr_words_add(words, "%s%.*s ", said ? ", " : " (", (int)name->length, name->text);
			say_interval(words, name->in);
			said |= UINT64_C(1) << index;
		}
	if (!said)
		return;
	c = &plan->connections[by];
	wr_words_add(words, " by %s.%s -> %s.%s)", plan->entities[c->from].name,
		     plan->entities[c->from].outputs[c->output].port->name, plan->entities[c->to].name,
		     plan->entities[c->to].inputs[c->input].port->name);
}

static void say_remedy(const struct ends *ends, bool shapes, struct wr_words *words)
{
	enum { UINT8 = 1 << 4, FLOATS = 1 << 8 | 1 << 9 | 1 << 11 }; /* dtypes of type.c, in its order */
	const struct wr_port_type *from = ends->from.type, *to = ends->to.type;
	bool floats = from->dtypes == UINT8 && !(to->dtypes & ~FLOATS);
	const char *and = "";

	if (!(ends->places & to->places)) {
		wr_words_add(words, ends->places == WR_PLACE_DEVICE ? "a 'download'" : "an 'upload'");
		and = " and ";
	}
	if (!(from->dtypes & to->dtypes)) {
		wr_words_add(words, "%s%s", and, floats ? "a 'normalize'" : "a conversion of the dtype");
		and = " and ";
	}
	if (!shapes && !floats) /* normalize changes the shape, too */
		wr_words_add(words, "%sa change of the shape%s", and,
			     from->dtypes & to->dtypes & UINT8 ? ", such as 'convert' or 'resize'," : "");
}

static void report_types(struct wr_build *build, size_t connection, const struct ends *ends, bool shapes)
{
	char from_text[160], to_text[160], remedy_text[160];
	struct wr_words from = wr_words_in(from_text, sizeof(from_text));
	struct wr_words to = wr_words_in(to_text, sizeof(to_text));
	struct wr_words remedy = wr_words_in(remedy_text, sizeof(remedy_text));
	struct wr_port_type sent = *ends->from.type;

	sent.places = ends->places;
	if (!shapes) {
		say_names(build->plan, &ends->from, &from);
		say_names(build->plan, &ends->to, &to);
	}
	say_remedy(ends, shapes, &remedy);
	wr_build_report_connection(build, WR_W_PORT_TYPES, connection,
				   "sends %s%s, but the input takes %s%s: put %s between them",
				   wr_port_type_text(&sent).text, from_text,
				   wr_port_type_text(ends->to.type).text, to_text, remedy_text);
}

/* --- connections --- */

/* Connections of two shapes that are still compared. */
struct compared {
	size_t *list, count, room;
};

static weir_status check_first(struct wr_build *build, const struct brought *brought, size_t i,
			       struct compared *compared)
{
	const struct wr_plan_connection *c = &build->plan->connections[i];
	unsigned kinds = build->plan->entities[c->from].outputs[c->output].kinds &
			 build->plan->entities[c->to].inputs[c->input].kinds;
	weir_status status = WEIR_OK;
	struct ends ends;

	find_ends(build, brought, i, &ends);
	if ((!wr_port_type_says(ends.from.type) && ends.places == WR_PLACE_ANY) ||
	    !wr_port_type_says(ends.to.type) ||
	    kinds != WEIR_KIND_TENSOR) /* others, which both ends may have in common, have no type */
		return WEIR_OK;
	if (!(ends.places & ends.to.type->places) || !(ends.from.type->dtypes & ends.to.type->dtypes))
		report_types(build, i, &ends, shapes_agree(&ends));
	else if (ends.from.type->count && ends.to.type->count) {
		status = wr_grow(&compared->list, &compared->room, compared->count + 1,
				 sizeof(*compared->list));
		if (!status)
			compared->list[compared->count++] = i;
	}
	return status;
}

/* Returns true if something has changed. A connection that cannot be is reported and compared no more. */
static bool check_round(struct wr_build *build, const struct brought *brought, struct compared *compared)
{
	size_t count = compared->count;
	bool changed = false;

	compared->count = 0;
	for (size_t i = 0; i < count; i++) {
		size_t connection = compared->list[i];
		struct ends ends;

		find_ends(build, brought, connection, &ends);
		if (!shapes_agree(&ends)) {
			report_types(build, connection, &ends, false);
			continue;
		}
		changed |= keep(&ends.from, connection);
		changed |= keep(&ends.to, connection);
		compared->list[compared->count++] = connection;
	}
	return changed;
}

weir_status wr_build_check_types(struct wr_build *build)
{
	struct brought brought = {.plan = build->plan};
	struct compared compared = {0};
	weir_status status = find_brought(&brought);
	bool changed = true;

	for (size_t i = 0; i < build->plan->connection_count && !status; i++)
		status = check_first(build, &brought, i, &compared);
	for (int i = 0; i < ROUNDS_MAX && changed && !status; i++)
		changed = check_round(build, &brought, &compared);
	wr_free(brought.by);
	wr_free(compared.list);
	return status;
}

/* --- what an input gets --- */

/* Widens *all by what the connection brings. */
static void add_bytes(const struct brought *brought, size_t connection, struct wr_interval *all)
{
	const struct wr_plan_connection *source = source_of(brought, connection);
	const struct wr_plan_entity *from = &brought->plan->entities[source->from];
	struct wr_interval bytes = {0, INT64_MAX};

	if (from->outputs[source->output].kinds == WEIR_KIND_TENSOR)
		wr_port_type_bytes(&from->outputs[source->output].type, &from->scope, &bytes.least,
				   &bytes.most);
	all->least = bytes.least < all->least ? bytes.least : all->least;
	all->most = bytes.most > all->most ? bytes.most : all->most;
}

static weir_status find_bytes(const struct wr_plan *plan, uint32_t entity, uint32_t input,
			      weir_sent_bytes *out)
{
	struct wr_interval all = {INT64_MAX, 0};
	struct brought brought = {.plan = plan};
	weir_status status = find_brought(&brought);

	for (size_t i = 0; i < plan->connection_count && !status; i++)
		if (plan->connections[i].to == entity && plan->connections[i].input == input)
			add_bytes(&brought, i, &all);
	wr_free(brought.by);
	if (!all.most || plan->entities[entity].inputs[input].inlet) /* none, or the program, too */
		all = (struct wr_interval){0, INT64_MAX};
	*out = (weir_sent_bytes){sizeof *out, all.least, all.most};
	return status;
}

weir_status weir_description_sent_bytes(const weir_description *description, const char *input,
					weir_sent_bytes *out)
{
	const struct wr_plan *plan = wr_load(&((weir_description *)description)->checked);
	weir_sent_bytes found;

	if (!plan)
		return wr_fail(WEIR_E_INVALID, "what an input gets is known after weir_description_check");
	for (uint32_t e = 0; e < plan->entity_count; e++) {
		const struct wr_plan_entity *entity = &plan->entities[e];
		size_t length = strlen(entity->name);

		if (strncmp(input, entity->name, length) || input[length] != '.')
			continue;
		for (uint32_t i = 0; i < entity->input_count; i++)
			if (!strcmp(entity->inputs[i].port->name, input + length + 1)) {
				weir_status status = find_bytes(plan, e, i, &found);

				return status ? status
					      : wr_struct_fill(out, &found, sizeof found, "weir_sent_bytes");
			}
	}
	return wr_fail(WEIR_E_INVALID, "there is no input '%s'", wr_shown(input).text);
}
