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
 * what the chosen messages replace is dropped.
 *
 * A set is chosen in one review and stays until the tick, whatever comes meanwhile: only then the fronts are
 * closed, when the other conditions hold. The review drops by the receiver's end of the queue, as a tick
 * takes: the room is freed, then the sender is poked.
 */
#include "scheduler/align.h"

#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/status.h"
#include "graphs/parameter.h"
#include "scheduler/ends.h"
#include "scheduler/graph.h"
#include "scheduler/scheduler.h"

/* --- the choice --- */

static bool is_beyond(uint64_t key, uint64_t from, uint64_t within)
{
	return key > from && key - from > within;
}

static bool has_head(const struct wr_align_port *port)
{
	return !port->out && port->drop < port->count;
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

/* No later key can be in the set: it would be too far from the least of its heads. */
static uint64_t limit_of(const struct wr_align_port *ports, size_t count, uint64_t p, uint64_t within)
{
	uint64_t least = p;

	for (size_t i = 0; i < count; i++)
		if (ports[i].in && key_at(&ports[i], ports[i].drop) < least)
			least = key_at(&ports[i], ports[i].drop);
	return within > UINT64_MAX - least ? UINT64_MAX : least + within;
}

/* The set has all ports that are `in`. */
static struct wr_align_choice choose_nearest(const struct wr_align_rules *rules, struct wr_align_port *ports,
					     size_t count, uint64_t p)
{
	uint64_t limit = limit_of(ports, count, p, rules->within);

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
			if (has_head(&ports[i]) && key_at(&ports[i], ports[i].drop) > p)
				p = key_at(&ports[i], ports[i].drop);
		for (size_t i = 0; i < count; i++)
			while (has_head(&ports[i]) &&
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
		if (has_head(port)) {
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
		if (has_head(&ports[i]) &&
		    (earliest == count ||
		     key_at(&ports[i], ports[i].drop) < key_at(&ports[earliest], ports[earliest].drop)))
			earliest = i;
	return earliest;
}

static struct wr_align_choice choose_some(const struct wr_align_rules *rules, struct wr_align_port *ports,
					  size_t count, bool late)
{
	struct wr_align_rules now = {rules->within, rules->nearest && !late, true};
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
		uint64_t next = has_head(port) ? key_at(port, 0) : port->last;

		port->in = has_head(port) && !is_beyond(next, from, rules->within);
		if (port->in && next > p)
			p = next;
		if (!port->out && !has_head(port) && !port->closed && !late &&
		    !is_beyond(next, from, rules->within))
			return (struct wr_align_choice){WR_ALIGN_WAIT, i, 1};
	}
	return choose_nearest(&now, ports, count, p);
}

struct wr_align_choice wr_align_choose(const struct wr_align_rules *rules, struct wr_align_port *ports,
				       size_t count, bool late)
{
	for (size_t i = 0; i < count; i++) {
		ports[i].drop = 0;
		ports[i].in = false;
	}
	return rules->empty ? choose_some(rules, ports, count, late) : choose_all(rules, ports, count);
}

/* --- a condition --- */

/* What is known of a port between two reviews. */
struct known {
	unsigned input;
	uint64_t checked; /* messages before this position were looked at */
	uint64_t last;    /* key of the last of them */
	bool left_out;    /* of the chosen set */
	/* with a timeout: when the message of this position, modulo `room`, was seen first */
	int64_t *seen;
	size_t room;
};

struct wr_align {
	struct wr_align_rules rules;
	bool by_tag;
	int64_t timeout; /* 0: none */
	size_t count;    /* of the ports */
	struct known *known;
	struct wr_align_port *ports; /* while it chooses */
	bool chosen;                 /* the heads are a set, for the next tick */
};

weir_status wr_align_create(struct wr_align **out, weir_entity *entity, const struct wr_plan_condition *plan)
{
	const weir_values *values = plan->values;
	size_t count = weir_values_count(values, "ports");
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
	align->rules = (struct wr_align_rules){
		.within = (uint64_t)weir_values_int(values, align->by_tag ? "within_tags" : "within"),
		.nearest = weir_values_bool(values, "nearest"),
		.empty = !strcmp(weir_values_string(values, "missing"), "empty"),
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

static weir_status known_reset(struct known *known, const struct wr_input *input, bool times)
{
	size_t room = times && input->count ? input->connections[0]->queue.capacity : 0;

	if (room > known->room) {
		wr_free(known->seen);
		known->room = 0;
		known->seen = wr_alloc(room, sizeof *known->seen);
		if (!known->seen)
			return WEIR_E_NOMEM;
		known->room = room;
	}
	*known = (struct known){.input = known->input, .seen = known->seen, .room = known->room};
	if (input->count)
		known->checked = wr_read(&input->connections[0]->queue.head);
	return WEIR_OK;
}

weir_status wr_align_reset(struct wr_align *align, weir_entity *entity)
{
	align->chosen = false;
	for (size_t i = 0; i < align->count; i++) {
		struct known *known = &align->known[i];
		const struct wr_input *input = &entity->inputs[known->input];

		if (input->count > 1)
			return wr_fail_in(WEIR_E_INVALID, entity->plan->name,
					  "'%s' has %zu connections, and an aligned port has one: make no "
					  "inlet there",
					  input->plan->port->name, input->count);
		if (known_reset(known, input, align->timeout))
			return WEIR_E_NOMEM;
	}
	return WEIR_OK;
}

/* Times may be negative; as keys they have the same order. */
static uint64_t time_key(const void *queue, size_t i)
{
	const weir_message *message = wr_queue_at((struct wr_queue *)queue, i);

	return (uint64_t)weir_message_stamp(message).time ^ (UINT64_C(1) << 63);
}

static uint64_t tag_key(const void *queue, size_t i)
{
	return weir_message_stamp(wr_queue_at((struct wr_queue *)queue, i)).tag;
}

static weir_status fail_key(const struct wr_align *align, const weir_view *view, const struct known *known,
			    weir_stamp stamp)
{
	const struct wr_input *input = &view->entity->inputs[known->input];
	const struct wr_connection *connection = input->connections[0];
	const char *name = view->condition->plan->name;

	if (!stamp.time && !(align->by_tag && stamp.tag))
		return wr_fail(WEIR_E_INVALID,
			       "condition '%s': a message of %s has no %s at '%s': its sender sets it by "
			       "weir_context_set_stamp or weir_message_set_stamp",
			       name, connection->from, align->by_tag ? "stamp" : "time",
			       input->plan->port->name);
	if (align->by_tag)
		return wr_fail(WEIR_E_INVALID,
			       "condition '%s': tags of %s -> %s go back, from %" PRIu64 " to %" PRIu64
			       ": they must not descend",
			       name, connection->from, connection->to, known->last, stamp.tag);
	return wr_fail(WEIR_E_INVALID,
		       "condition '%s': times of %s -> %s go back, from %" PRId64 " to %" PRId64
		       " ns: they must not descend",
		       name, connection->from, connection->to, (int64_t)(known->last ^ (UINT64_C(1) << 63)),
		       stamp.time);
}

/* Looks at the messages that have come since the last review. */
static weir_status check_keys(struct wr_align *align, weir_view *view, struct known *known,
			      const struct wr_align_port *port)
{
	struct wr_queue *queue = (struct wr_queue *)port->queue;
	uint64_t head = wr_read(&queue->head), end = head + port->count;

	for (; known->checked != end; known->checked++) {
		size_t i = (size_t)(known->checked - head);
		weir_stamp stamp = weir_message_stamp(wr_queue_at(queue, i));
		uint64_t key = port->key(queue, i);

		if ((!stamp.time && !(align->by_tag && stamp.tag)) || key < known->last)
			return fail_key(align, view, known, stamp);
		known->last = key;
		if (align->timeout)
			known->seen[known->checked % known->room] = weir_view_now(view);
	}
	return WEIR_OK;
}

/* A look notes nothing. */
static weir_status read_ports(struct wr_align *align, weir_view *view)
{
	weir_status status = WEIR_OK;

	for (size_t i = 0; !status && i < align->count; i++) {
		struct known *known = &align->known[i];
		struct wr_input *input = &view->entity->inputs[known->input];
		struct wr_align_port *port = &align->ports[i];

		*port = (struct wr_align_port){.out = !input->count || !input->take};
		if (port->out)
			continue;
		port->queue = &input->connections[0]->queue;
		port->key = align->by_tag ? tag_key : time_key;
		port->closed = weir_view_closed(view, known->input); /* before the count (S5) */
		port->count = weir_view_count(view, known->input);
		port->full = port->count >= input->connections[0]->queue.capacity;
		if (!view->looks)
			status = check_keys(align, view, known, port);
		port->last = known->last;
	}
	return status;
}

static uint64_t head_position(const void *queue)
{
	return wr_read(&((struct wr_queue *)queue)->head);
}

/* When the longest seen of all heads has waited for long enough; INT64_MAX: there is none, or no timeout. */
static int64_t late_at(const struct wr_align *align)
{
	int64_t since = INT64_MAX;

	for (size_t i = 0; align->timeout && i < align->count; i++) {
		const struct known *known = &align->known[i];
		uint64_t head =
			has_head(&align->ports[i]) ? head_position(align->ports[i].queue) : known->checked;

		/* A look may find one that no review has seen. */
		if (head < known->checked && known->seen[head % known->room] < since)
			since = known->seen[head % known->room];
	}
	return since == INT64_MAX ? since : wr_time_add(since, align->timeout);
}

/*
 * A drop frees its room at once, then pokes the sender: else a full queue would hold it for ever (S3). The
 * ports that a set lacks give nothing to its tick.
 */
static void apply_choice(struct wr_align *align, weir_entity *entity, const struct wr_align_choice *choice)
{
	weir_scheduler *scheduler = entity->graph->scheduler;
	struct wr_worker *worker = wr_worker_here(scheduler);
	unsigned lane = scheduler->trace ? wr_lane_here(scheduler) : 0;

	align->chosen = choice->says == WR_ALIGN_SET;
	for (size_t i = 0; i < align->count; i++) {
		const struct wr_align_port *port = &align->ports[i];
		struct wr_input *input = &entity->inputs[align->known[i].input];
		struct wr_connection *connection = input->count ? input->connections[0] : NULL;

		if (align->chosen && !port->out && !port->in) {
			align->known[i].left_out = true;
			input->take = input->need = 0;
		}
		if (!port->drop)
			continue;
		wr_queue_drop_unmatched(&connection->queue, port->drop, scheduler->trace, lane);
		if (!connection->sender)
			wr_inlet_wake_waiting(connection->inlet);
		else if (connection->queue.policy == WEIR_POLICY_BLOCK && worker)
			wr_poke_room(worker, connection->sender);
	}
}

void wr_view_align(weir_view *view, weir_verdict *verdict)
{
	struct wr_align *align = view->condition->align;
	struct wr_align_choice choice = {WR_ALIGN_WAIT, 0, 1};
	int64_t late = INT64_MAX;
	weir_status status;

	if (align->chosen) {
		weir_verdict_ready(verdict);
		return;
	}
	status = read_ports(align, view);

	if (status) {
		verdict->failed = status;
	} else {
		late = late_at(align);
		choice = wr_align_choose(&align->rules, align->ports, align->count,
					 late < INT64_MAX && weir_view_now(view) >= late);
		if (!view->looks)
			apply_choice(align, view->entity, &choice);
	}
	if (choice.says == WR_ALIGN_SET) {
		weir_verdict_ready(verdict);
		return;
	}
	if (choice.says == WR_ALIGN_NEVER) {
		weir_verdict_never(verdict, "no message will come that belongs to the others");
	} else {
		weir_verdict_wait(verdict, "no messages that belong together");
		if (late < INT64_MAX)
			weir_verdict_until(verdict, late);
	}
	weir_verdict_set_cause(verdict, WEIR_CAUSE_MESSAGES, (int)align->known[choice.lacks].input,
			       choice.needed);
}

void wr_view_align_ticked(weir_view *view)
{
	struct wr_align *align = view->condition->align;

	align->chosen = false;
	for (size_t i = 0; i < align->count; i++) {
		struct known *known = &align->known[i];
		struct wr_input *input = &view->entity->inputs[known->input];

		if (known->left_out && !input->held)
			wr_input_hold(input, false);
		known->left_out = false;
	}
}
