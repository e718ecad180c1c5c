/*
 * Compares the ticks of an entity with `aligned` with the sets that there are (C12), found by another way
 * than the library's: from the keys of all that was pushed, not of what a review sees. Which messages a set
 * is about is the same then, whenever the reviews came; without `nearest`, which of several that are near it
 * has depends on what had come, and lies between what was visible and what had arrived.
 */
#include "dst_joins.h"

struct port {
	unsigned p, count, at; /* pushed; the next message */
	unsigned capacity;
	unsigned kept; /* the one that is given again, from 1; 0: none */
	uint64_t unmatched, reused;
	const struct dst_joins_sent *sent;
};

struct sets {
	const struct dst_joins_entity *entity;
	const struct dst_joins_found *found;
	unsigned id, ports, number; /* of the tick */
	struct port port[PORTS];
};

static uint64_t key(const struct sets *sets, const struct port *port, unsigned i)
{
	return sets->entity->by_tag ? port->sent[i].stamp.tag : (uint64_t)port->sent[i].stamp.time;
}

static bool is_far(const struct sets *sets, uint64_t later, uint64_t earlier)
{
	return later > earlier && later - earlier > sets->entity->within;
}

/* Of the messages from `from` to `end` whose keys are not beyond p, the first one with the last such key. */
static unsigned last_up_to(const struct sets *sets, const struct port *port, unsigned from, unsigned end,
			   uint64_t p)
{
	unsigned best = from;

	for (unsigned i = from; i < end && key(sets, port, i) <= p; i++)
		if (key(sets, port, i) != key(sets, port, best))
			best = i;
	return best;
}

/* With `wait`: the heads that are left once each that is too far before the latest head is gone. */
static uint64_t drop_far(const struct sets *sets, unsigned *heads, const unsigned *ends)
{
	uint64_t p = 0;

	for (bool moved = true; moved;) {
		moved = false;
		for (unsigned i = 0; i < sets->ports; i++)
			if (heads[i] < ends[i] && key(sets, &sets->port[i], heads[i]) > p)
				p = key(sets, &sets->port[i], heads[i]);
		for (unsigned i = 0; i < sets->ports; i++)
			for (; heads[i] < ends[i] && is_far(sets, p, key(sets, &sets->port[i], heads[i]));
			     moved = true)
				heads[i]++;
	}
	return p;
}

/*
 * The messages of a set that is about p, if of each port those before `ends` are known, and `in` are the
 * ports that it has.
 */
static void choose(const struct sets *sets, unsigned *chosen, const unsigned *ends, unsigned in, uint64_t p)
{
	uint64_t least = p;

	for (unsigned i = 0; i < sets->ports; i++) {
		const struct port *port = &sets->port[i];
		uint64_t head;
		if (!(in >> i & 1))
			continue;
		if (!sets->entity->empty)
			chosen[i] = last_up_to(sets, port, chosen[i], ends[i], p);
		head = key(sets, port, chosen[i]);
		least = head < least ? head : least;
	}
	for (unsigned i = 0; i < sets->ports; i++) {
		const struct port *port = &sets->port[i];
		unsigned best, next;
		if (!(in >> i & 1))
			continue;
		best = next = last_up_to(sets, port, chosen[i], ends[i], p);
		while (next < ends[i] && key(sets, port, next) <= p)
			next++;
		if (next < ends[i] && !is_far(sets, key(sets, port, next), least) &&
		    key(sets, port, next) - p < p - key(sets, port, best))
			best = next;
		chosen[i] = best;
	}
}

static unsigned all_in(const struct sets *sets)
{
	return (1U << sets->ports) - 1;
}

/* What the set is about, by all that was pushed. */
struct about {
	uint64_t p;
	unsigned in;
	bool none;
	unsigned heads[PORTS];
};

static struct about about_of(const struct sets *sets)
{
	struct about about = {.in = 0};
	unsigned ends[PORTS] = {0};
	uint64_t from = UINT64_MAX;

	for (unsigned i = 0; i < sets->ports; i++) {
		about.heads[i] = sets->port[i].at;
		ends[i] = sets->port[i].count;
	}
	if (!sets->entity->empty) {
		about.p = drop_far(sets, about.heads, ends);
		about.in = all_in(sets);
		for (unsigned i = 0; i < sets->ports; i++)
			about.none |= about.heads[i] == ends[i];
		return about;
	}
	about.none = true;
	for (unsigned i = 0; i < sets->ports; i++)
		if (about.heads[i] < ends[i] && key(sets, &sets->port[i], about.heads[i]) < from)
			from = key(sets, &sets->port[i], about.heads[i]);
	for (unsigned i = 0; i < sets->ports; i++) {
		if (about.heads[i] == ends[i] ||
		    is_far(sets, key(sets, &sets->port[i], about.heads[i]), from))
			continue;
		about.in |= 1U << i;
		about.none = false;
		if (key(sets, &sets->port[i], about.heads[i]) > about.p)
			about.p = key(sets, &sets->port[i], about.heads[i]);
	}
	return about;
}

/* --- a set --- */

static unsigned received(const struct sets *sets, const struct dst_joins_tick *tick)
{
	unsigned in = 0;

	for (unsigned i = 0; i < sets->ports; i++)
		in |= tick->count[sets->port[i].p] ? 1U << i : 0;
	return in;
}

/* With a timeout: a head may have been seen for so long. */
static bool may_be_late(const struct sets *sets, const struct dst_joins_tick *tick)
{
	for (unsigned i = 0; sets->entity->timeout && i < sets->ports; i++) {
		const struct port *port = &sets->port[i];
		if (port->at < tick->arrived[port->p] && port->at < port->count &&
		    tick->now >= port->sent[port->at].at + sets->entity->timeout)
			return true;
	}
	return false;
}

/* A set that was taken as it was: it has all that belongs to it and was visible. */
static void take_late(const struct sets *sets, const struct dst_joins_tick *tick, struct about *about)
{
	uint64_t from = UINT64_MAX;

	about->in = received(sets, tick);
	about->p = 0;
	for (unsigned i = 0; i < sets->ports; i++) {
		uint64_t head = about->in >> i & 1 ? key(sets, &sets->port[i], sets->port[i].at) : 0;
		from = about->in >> i & 1 && head < from ? head : from;
		about->p = head > about->p ? head : about->p;
	}
	for (unsigned i = 0; i < sets->ports; i++) {
		const struct port *port = &sets->port[i];
		if (!(about->in >> i & 1) && port->at < tick->visible[port->p] &&
		    !is_far(sets, key(sets, port, port->at), from))
			dst_fails("tick %u of e%u lacks message %u of '%c', which belongs to it",
				  sets->number, sets->id, port->at, 'a' + port->p);
	}
}

/*
 * `nearest` waits for a later key, unless the queue is full before, of what its own review leaves there, or
 * what comes is at its end.
 */
static bool is_certain(const struct sets *sets, const struct port *port, unsigned best)
{
	unsigned from = port->at, next;

	if (!sets->entity->nearest)
		return false;
	for (next = from; next < port->count && key(sets, port, next) <= key(sets, port, best); next++) {
		if (!sets->entity->empty && key(sets, port, next) != key(sets, port, from))
			from = next;
		if (next + 1 - from >= port->capacity && next + 1 < port->count)
			return false;
	}
	return true;
}

static void check_width(const struct sets *sets, const struct dst_joins_tick *tick, unsigned in)
{
	uint64_t least = UINT64_MAX, most = 0;

	for (unsigned i = 0; i < sets->ports; i++) {
		const struct port *port = &sets->port[i];
		uint64_t is;
		if (!(in >> i & 1))
			continue;
		if (tick->count[port->p] != 1)
			dst_fails("tick %u of e%u has %u messages at '%c'", sets->number, sets->id,
				  tick->count[port->p], 'a' + port->p);
		is = key(sets, port, tick->first[port->p]);
		least = is < least ? is : least;
		most = is > most ? is : most;
	}
	if (!in || is_far(sets, most, least))
		dst_fails("the set of tick %u of e%u is wider than within", sets->number, sets->id);
}

/* What a port that the set lacks gave last, if that is not too old beside the earliest that is new. */
static void check_again(struct sets *sets, const struct dst_joins_tick *tick, unsigned in)
{
	uint64_t earliest = UINT64_MAX;

	for (unsigned i = 0; i < sets->ports; i++) {
		const struct port *port = &sets->port[i];
		if (in >> i & 1 && key(sets, port, tick->first[port->p]) < earliest)
			earliest = key(sets, port, tick->first[port->p]);
	}
	for (unsigned i = 0; i < sets->ports; i++) {
		struct port *port = &sets->port[i];
		uint64_t kept = port->kept ? key(sets, port, port->kept - 1) : 0;
		if (in >> i & 1) {
			port->kept = tick->first[port->p] + 1;
			continue;
		}
		if (!sets->entity->reuse || (earliest > kept && earliest - kept > sets->entity->oldest))
			port->kept = 0;
		if (tick->again[port->p] != port->kept)
			dst_fails("tick %u of e%u is given message %d of '%c' again, not %d", sets->number,
				  sets->id, (int)tick->again[port->p] - 1, 'a' + port->p,
				  (int)port->kept - 1);
		port->reused += port->kept > 0;
	}
}

static void check_set(struct sets *sets, const struct dst_joins_tick *tick)
{
	struct about about = about_of(sets);
	bool late = may_be_late(sets, tick), certain = !late;
	unsigned in = received(sets, tick), least[PORTS], most[PORTS], all[PORTS];
	unsigned visible[PORTS], arrived[PORTS], pushed[PORTS];

	if (late)
		take_late(sets, tick, &about);
	if (about.none || in != about.in) {
		dst_fails("tick %u of e%u has the inputs %x, and the set %x", sets->number, sets->id, in,
			  about.none ? 0 : about.in);
		return;
	}
	check_width(sets, tick, in);
	for (unsigned i = 0; i < sets->ports; i++) {
		const struct port *port = &sets->port[i];
		least[i] = most[i] = all[i] = about.heads[i];
		visible[i] =
			tick->visible[port->p] > about.heads[i] ? tick->visible[port->p] : about.heads[i] + 1;
		arrived[i] = tick->arrived[port->p] < port->count ? tick->arrived[port->p] : port->count;
		visible[i] = visible[i] < port->count ? visible[i] : port->count;
		pushed[i] = port->count;
	}
	choose(sets, least, visible, in, about.p);
	choose(sets, most, arrived, in, about.p);
	choose(sets, all, pushed, in, about.p);
	for (unsigned i = 0; certain && i < sets->ports; i++)
		certain &= !(in >> i & 1) || is_certain(sets, &sets->port[i], all[i]);
	for (unsigned i = 0; i < sets->ports; i++) {
		struct port *port = &sets->port[i];
		unsigned is = tick->first[port->p], from = certain ? all[i] : least[i],
			 to = certain ? all[i] : most[i];
		if (!(in >> i & 1))
			continue;
		if (is < from || is > to)
			dst_fails("tick %u of e%u has message %u of '%c', not %u to %u", sets->number,
				  sets->id, is, 'a' + port->p, from, to);
		port->unmatched += is - port->at;
		port->at = is + 1;
	}
	check_again(sets, tick, in);
}

/* --- the end --- */

/* What a review drops while it waits, if it sees the messages before `ends`. */
static void drop_waiting(const struct sets *sets, const unsigned *ends, unsigned *dropped)
{
	unsigned heads[PORTS];
	uint64_t p;

	for (unsigned i = 0; i < sets->ports; i++)
		heads[i] = sets->port[i].at;
	p = drop_far(sets, heads, ends);
	for (unsigned i = 0; i < sets->ports; i++) {
		if (heads[i] < ends[i])
			heads[i] = last_up_to(sets, &sets->port[i], heads[i], ends[i], p);
		dropped[i] = heads[i] - sets->port[i].at;
	}
}

/* Of what is left at the end a review may have dropped some; of a run that was cut also for a last set. */
static void check_rest(const struct sets *sets, const unsigned *visible)
{
	unsigned pushed[PORTS], least[PORTS], most[PORTS], chosen[PORTS];
	struct about about = about_of(sets);

	for (unsigned i = 0; i < sets->ports; i++) {
		pushed[i] = sets->port[i].count;
		least[i] = most[i] = 0;
		chosen[i] = about.heads[i];
	}
	if (!sets->entity->empty) {
		drop_waiting(sets, visible, least);
		drop_waiting(sets, pushed, most);
	}
	if (sets->found->whole && !about.none)
		dst_fails("e%u has ended, and there is a set", sets->id);
	if (!about.none)
		choose(sets, chosen, pushed, about.in, about.p);
	for (unsigned i = 0; i < sets->ports; i++) {
		const struct port *port = &sets->port[i];
		uint64_t is = sets->found->unmatched[port->p], from = port->unmatched, to = port->unmatched;
		from += sets->found->whole ? least[i] : 0;
		to += chosen[i] - port->at > most[i] ? chosen[i] - port->at : most[i];
		if (sets->entity->timeout && !sets->found->whole)
			to += port->count - port->at; /* a set that came too late for a tick */
		if (is < from || is > to)
			dst_fails("e%u.%c: %llu are unmatched, not %llu to %llu", sets->id, 'a' + port->p,
				  (unsigned long long)is, (unsigned long long)from, (unsigned long long)to);
		if (sets->found->dropped[port->p])
			dst_fails("e%u.%c drops", sets->id, 'a' + port->p);
	}
}

void dst_joins_check_sets(unsigned id, const struct dst_joins_found *found)
{
	const struct dst_joins_log *log = &joins.log[id];
	struct sets sets = {.entity = &joins.entity[id], .found = found, .id = id};
	unsigned visible[PORTS] = {0};

	for (unsigned p = 0; p < PORTS; p++) {
		const struct dst_joins_port *port = &sets.entity->port[p];
		if (port->from == NONE || port->policy == WEIR_POLICY_LATEST)
			continue;
		sets.port[sets.ports++] = (struct port){.p = p,
							.count = (unsigned)found->pushed[p],
							.capacity = port->capacity,
							.sent = joins.log[port->from].sent};
	}
	for (; sets.number < log->ticks && !dst_said.broken[0]; sets.number++) {
		if (!log->tick[sets.number].now)
			return; /* of instances, which ended before */
		check_set(&sets, &log->tick[sets.number]);
	}
	for (unsigned i = 0; i < sets.ports; i++) {
		if (found->reused[sets.port[i].p] != sets.port[i].reused && !dst_said.broken[0])
			dst_fails("e%u.%c: %llu are reused, not %llu", id, 'a' + sets.port[i].p,
				  (unsigned long long)found->reused[sets.port[i].p],
				  (unsigned long long)sets.port[i].reused);
		visible[i] = sets.entity->instances ? 0 : log->visible[sets.port[i].p];
		visible[i] = visible[i] > sets.port[i].at ? visible[i] : sets.port[i].at;
		visible[i] = visible[i] < sets.port[i].count ? visible[i] : sets.port[i].count;
	}
	if (!dst_said.broken[0] && (found->whole || !sets.entity->instances))
		check_rest(&sets, visible);
}
