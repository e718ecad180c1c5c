/*
 * Chooses sets of messages that belong together, for the condition `aligned` (C12).
 *
 * With all ports in a set, p is the latest of the heads' keys. No message that comes later at that port has a
 * lesser key, so a head that is further before p than `within` has no partner there: it is dropped. Of
 * several messages of one port up to p only the nearest can be chosen, now or for a later p: the older ones
 * are dropped, too, also while other ports are empty. So of what fills a queue all but one has gone when
 * another port is waited for. One that is later than p is nearer at times; it is chosen if it is within of
 * all heads that are left, else the set would be wider than that.
 *
 * With `empty`, a set begins with the earliest head, and has the ports whose heads are within; p is the
 * latest of these. A port takes no part once its next key is known to be further away, or there is none. Only
 * what the chosen messages replace is dropped. `reuse` is the same; to a set that lacks a port it adds what
 * that port gave last.
 */
#include "scheduler/align.h"

#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "graphs/parameter.h"
#include "scheduler/graph.h"

/* --- the choice --- */

static bool is_beyond(uint64_t key, uint64_t from, uint64_t within)
{
	return key > from && key - from > within;
}

static uint64_t key_at(const struct wr_align_port *port, size_t i)
{
	return port->key(port->queue, i);
}

/* The message that is nearest to p, of those up to `limit`; of two that are as near the older one. */
static size_t nearest_to(const struct wr_align_port *port, uint64_t p, uint64_t limit)
{
	size_t best = port->drop;
	uint64_t least = UINT64_MAX;

	for (size_t i = port->drop; i < port->count; i++) {
		uint64_t key = key_at(port, i), far = key > p ? key - p : p - key;

		if (i > port->drop && (key > limit || (key > p && far >= least)))
			break;
		if (i == port->drop || far < least) {
			best = i;
			least = far;
		}
	}
	return best;
}

/* The set has all ports that are `in`. */
static struct wr_align_choice choose_nearest(const struct wr_align_rules *rules, struct wr_align_port *ports,
					     size_t count, uint64_t p)
{
	uint64_t least = p, limit; /* beyond it a key is too far from the least of the heads */

	for (size_t i = 0; i < count; i++)
		if (ports[i].in && key_at(&ports[i], ports[i].drop) < least)
			least = key_at(&ports[i], ports[i].drop);
	limit = rules->within > UINT64_MAX - least ? UINT64_MAX : least + rules->within;
	for (size_t i = 0; rules->nearest && i < count; i++) {
		const struct wr_align_port *port = &ports[i];
		uint64_t best = port->in ? key_at(port, nearest_to(port, p, limit)) : p;
		bool full = port->full && !port->drop;

		/* Only a greater key proves that no nearer one will come; to a full queue none does. */
		if (best < p && !port->closed && !full && key_at(port, port->count - 1) == best)
			return (struct wr_align_choice){WR_ALIGN_WAIT, i, port->count - port->drop + 1};
	}
	for (size_t i = 0; i < count; i++)
		if (ports[i].in)
			ports[i].drop = nearest_to(&ports[i], p, limit);
	return (struct wr_align_choice){WR_ALIGN_SET, 0, 0};
}

/* Drops heads without a partner. Returns p. */
static uint64_t drop_lonely(const struct wr_align_rules *rules, struct wr_align_port *ports, size_t count)
{
	uint64_t p = 0, before;

	do {
		before = p;
		for (size_t i = 0; i < count; i++)
			if (wr_align_has_head(&ports[i]) && key_at(&ports[i], ports[i].drop) > p)
				p = key_at(&ports[i], ports[i].drop);
		for (size_t i = 0; i < count; i++)
			while (wr_align_has_head(&ports[i]) &&
			       is_beyond(p, key_at(&ports[i], ports[i].drop), rules->within))
				ports[i].drop++;
	} while (p != before);
	return p;
}

static struct wr_align_choice choose_all(const struct wr_align_rules *rules, struct wr_align_port *ports,
					 size_t count)
{
	struct wr_align_choice choice = {WR_ALIGN_SET, 0, 1};
	uint64_t p = drop_lonely(rules, ports, count);

	for (size_t i = 0; i < count; i++) {
		struct wr_align_port *port = &ports[i];

		port->in = !port->out;
		if (wr_align_has_head(port)) {
			port->drop = nearest_to(port, p, p);
		} else if (!port->out && choice.says != WR_ALIGN_NEVER) {
			choice.says = port->closed ? WR_ALIGN_NEVER : WR_ALIGN_WAIT;
			choice.lacks = i;
		}
	}
	return choice.says == WR_ALIGN_SET ? choose_nearest(rules, ports, count, p) : choice;
}

/* The port whose head is the earliest; `count`: all are empty. */
static size_t earliest_of(const struct wr_align_port *ports, size_t count)
{
	size_t earliest = count;

	for (size_t i = 0; i < count; i++)
		if (wr_align_has_head(&ports[i]) &&
		    (earliest == count ||
		     key_at(&ports[i], ports[i].drop) < key_at(&ports[earliest], ports[earliest].drop)))
			earliest = i;
	return earliest;
}

/* Of ports that the set lacks. What comes late may be earlier than what was kept before: that is young. */
static void choose_again(const struct wr_align_rules *rules, struct wr_align_port *ports, size_t count)
{
	uint64_t key = UINT64_MAX;

	for (size_t i = 0; i < count; i++)
		if (ports[i].in && key_at(&ports[i], ports[i].drop) < key)
			key = key_at(&ports[i], ports[i].drop);
	for (size_t i = 0; i < count; i++)
		ports[i].again = !ports[i].in && !ports[i].out && ports[i].has_kept &&
				 !is_beyond(key, ports[i].kept, rules->oldest);
}

static struct wr_align_choice choose_some(const struct wr_align_rules *rules, struct wr_align_port *ports,
					  size_t count, bool late)
{
	struct wr_align_rules now = {.within = rules->within, .nearest = rules->nearest && !late};
	struct wr_align_choice choice = {WR_ALIGN_SET, 0, 1};
	size_t earliest = earliest_of(ports, count);
	uint64_t from, p;

	for (size_t i = 0; earliest == count && i < count; i++) /* all are empty */
		if (!ports[i].out && choice.says != WR_ALIGN_WAIT) {
			choice.says = ports[i].closed ? WR_ALIGN_NEVER : WR_ALIGN_WAIT;
			choice.lacks = i;
		}
	if (earliest == count)
		return choice;
	from = p = key_at(&ports[earliest], 0);
	for (size_t i = 0; i < count; i++) {
		struct wr_align_port *port = &ports[i];
		uint64_t next = wr_align_has_head(port) ? key_at(port, 0) : port->last;

		port->in = wr_align_has_head(port) && !is_beyond(next, from, rules->within);
		if (port->in && next > p)
			p = next;
		if (!port->out && !wr_align_has_head(port) && !port->closed && !late &&
		    !is_beyond(next, from, rules->within))
			return (struct wr_align_choice){WR_ALIGN_WAIT, i, 1};
	}
	choice = choose_nearest(&now, ports, count, p);
	if (choice.says == WR_ALIGN_SET && rules->reuse)
		choose_again(rules, ports, count);
	return choice;
}

struct wr_align_choice wr_align_choose(const struct wr_align_rules *rules, struct wr_align_port *ports,
				       size_t count, bool late)
{
	for (size_t i = 0; i < count; i++) {
		ports[i].drop = 0;
		ports[i].in = ports[i].again = false;
	}
	return rules->empty ? choose_some(rules, ports, count, late) : choose_all(rules, ports, count);
}

/* --- a condition --- */

weir_status wr_align_create(struct wr_align **out, weir_entity *entity, const struct wr_plan_condition *plan)
{
	const weir_values *values = plan->values;
	const char *missing = weir_values_string(values, "missing");
	size_t count = weir_values_count(values, "ports");
	int64_t oldest;
	struct wr_align *align = wr_alloc(1, sizeof *align);

	*out = align;
	if (!align)
		return WEIR_E_NOMEM;
	align->count = count;
	align->known = wr_alloc(count + 1, sizeof *align->known);
	align->ports = wr_alloc(count + 1, sizeof *align->ports);
	if (!align->known || !align->ports)
		return WEIR_E_NOMEM;
	align->by_tag = !strcmp(weir_values_string(values, "by"), "tag");
	oldest = weir_values_int(values, align->by_tag ? "max_age_tags" : "max_age");
	align->rules = (struct wr_align_rules){
		.within = (uint64_t)weir_values_int(values, align->by_tag ? "within_tags" : "within"),
		.nearest = weir_values_bool(values, "nearest"),
		.empty = strcmp(missing, "wait") != 0,
		.reuse = !strcmp(missing, "reuse"),
		.oldest = oldest < 0 ? UINT64_MAX : (uint64_t)oldest,
	};
	align->timeout = weir_values_int(values, "timeout");
	for (size_t i = 0; i < count; i++) {
		align->known[i].input = weir_values_at(values, "ports", i);
		entity->inputs[align->known[i].input].aligned = true;
		entity->inputs[align->known[i].input].by_tag = align->by_tag;
	}
	return WEIR_OK;
}

void wr_align_destroy(struct wr_align *align)
{
	if (!align)
		return;
	for (size_t i = 0; align->known && i < align->count; i++)
		wr_free(align->known[i].seen);
	wr_free(align->known);
	wr_free(align->ports);
	wr_free(align);
}

weir_status wr_align_reset(struct wr_align *align, weir_entity *entity)
{
	align->chosen = false;
	for (size_t i = 0; i < align->count; i++) {
		struct wr_align_known *known = &align->known[i];
		const struct wr_input *input = &entity->inputs[known->input];
		size_t room;

		if (input->count > 1)
			return wr_fail_in(WEIR_E_INVALID, entity->plan->name,
					  "'%s' has %zu connections, and an aligned port has one: make no "
					  "inlet there",
					  input->plan->port->name, input->count);
		room = align->timeout && input->count ? input->connections[0]->queue.capacity : 0;
		if (room > known->room) {
			wr_free(known->seen);
			known->room = 0;
			known->seen = wr_alloc(room, sizeof *known->seen);
			if (!known->seen)
				return WEIR_E_NOMEM;
			known->room = room;
		}
		*known = (struct wr_align_known){
			.input = known->input, .seen = known->seen, .room = known->room};
		if (!input->count)
			continue;
		known->checked = wr_read(&input->connections[0]->queue.head);
		if (input->plan->reused)
			input->connections[0]->queue.again = false; /* the tick of a failed run left it */
	}
	return WEIR_OK;
}
