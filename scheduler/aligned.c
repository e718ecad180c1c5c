/*
 * Reviews of the condition `aligned` (C12): reads the keys of what is queued, lets scheduler/align.c choose,
 * drops what has no partner.
 *
 * A set is chosen in one review and stays until the tick, whatever comes meanwhile: only then the fronts are
 * closed, when the other conditions hold. What a port gives again is the queue's `shown`, outside of front
 * and inbox. The review drops by the receiver's end of the queue, as a tick takes: the room is freed, then
 * the sender is poked.
 */
#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "base/status.h"
#include "scheduler/align.h"
#include "scheduler/ends.h"
#include "scheduler/graph.h"
#include "scheduler/scheduler.h"
#include "scheduler/view.h"

/* Times may be negative; as keys they have the same order. */
static uint64_t key_of(const weir_message *message, bool by_tag)
{
	weir_stamp stamp = weir_message_stamp(message);

	return by_tag ? stamp.tag : (uint64_t)stamp.time ^ (UINT64_C(1) << 63);
}

static uint64_t time_key(const void *queue, size_t i)
{
	return key_of(wr_queue_at((struct wr_queue *)queue, i), false);
}

static uint64_t tag_key(const void *queue, size_t i)
{
	return key_of(wr_queue_at((struct wr_queue *)queue, i), true);
}

static weir_status fail_key(const struct wr_align *align, const weir_view *view,
			    const struct wr_align_known *known, weir_stamp stamp)
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
static weir_status check_keys(struct wr_align *align, weir_view *view, struct wr_align_known *known,
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
		struct wr_align_known *known = &align->known[i];
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
		port->has_kept = input->connections[0]->queue.shown;
		port->kept = port->has_kept ? key_of(input->connections[0]->queue.shown, align->by_tag) : 0;
		if (!view->looks)
			status = check_keys(align, view, known, port);
		port->last = known->last;
	}
	return status;
}

/* When the longest seen of all heads has waited for long enough; INT64_MAX: there is none, or no timeout. */
static int64_t late_at(const struct wr_align *align)
{
	int64_t since = INT64_MAX;

	for (size_t i = 0; align->timeout && i < align->count; i++) {
		const struct wr_align_known *known = &align->known[i];
		struct wr_queue *queue = (struct wr_queue *)align->ports[i].queue;
		uint64_t head = wr_align_has_head(&align->ports[i]) ? wr_read(&queue->head) : known->checked;

		/* A look may find one that no review has seen. */
		if (head < known->checked && known->seen[head % known->room] < since)
			since = known->seen[head % known->room];
	}
	return since == INT64_MAX ? since : wr_time_add(since, align->timeout);
}

/*
 * A drop frees its room at once, then pokes the sender: else a full queue would hold it for ever (S3). The
 * ports that a set lacks give its tick what they gave last, or nothing.
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

		if (align->chosen && connection && connection->queue.shows)
			connection->queue.again = port->again;
		if (align->chosen && !port->out && !port->in) {
			align->known[i].left_out = true;
			input->take = input->need = 0;
			if (!port->again) /* too old for this set, and so for those that follow */
				wr_queue_forget_shown(&connection->queue);
		}
		if (!port->drop)
			continue;
		wr_queue_drop_unmatched(&connection->queue, port->drop, scheduler->trace, lane);
		if (!connection->sender)
			wr_inlet_wake_waiting(connection->inlet);
		else if (connection->queue.policy == WEIR_POLICY_BLOCK && worker)
			wr_poke_room(worker, connection->sender, scheduler->trace);
	}
}

void wr_view_align(weir_view *view, weir_verdict *verdict)
{
	struct wr_align *align = view->condition->align;
	struct wr_align_choice choice = {WR_ALIGN_WAIT, 0, 1};
	weir_status status;

	if (align->chosen) {
		weir_verdict_ready(verdict);
		return;
	}
	status = read_ports(align, view);
	if (status) {
		verdict->failed = status;
	} else {
		choice = wr_align_choose(&align->rules, align->ports, align->count,
					 align->timeout && weir_view_now(view) >= late_at(align));
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
		if (!status && align->timeout)
			weir_verdict_until(verdict, late_at(align));
	}
	weir_verdict_set_cause(verdict, WEIR_CAUSE_MESSAGES, (int)align->known[choice.lacks].input,
			       choice.needed);
}

void wr_view_align_ticked(weir_view *view)
{
	struct wr_align *align = view->condition->align;

	align->chosen = false;
	for (size_t i = 0; i < align->count; i++) {
		struct wr_align_known *known = &align->known[i];
		struct wr_input *input = &view->entity->inputs[known->input];

		if (known->left_out && !input->held)
			wr_input_hold(input, false);
		if (input->plan->reused && input->count)
			input->connections[0]->queue.again = false; /* the next set says it anew */
		known->left_out = false;
	}
}
