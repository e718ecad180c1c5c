/*
 * Determines how a run has ended. Deadlock (S6): at quiescence an entity that is not DONE has messages in an
 * inbox or a front, or waits for room. Otherwise the run has finished: the entities that are left wait for
 * messages that no entity can send any more.
 */
#include "base/memory.h"
#include "base/status.h"
#include "graphs/text.h"
#include "scheduler/standstill.h"

struct report {
	struct wr_text text;
	const char *last; /* name of the entity added last; NULL: none yet */
};

static bool is_done(weir_entity *entity)
{
	return wr_load(&entity->state) & WR_DONE;
}

static bool is_stuck(weir_entity *entity)
{
	return !is_done(entity) &&
	       (wr_entity_held(entity) || (entity->receivers && wr_entity_lacks_room(entity)));
}

static const char *add_waiting(struct report *report, weir_entity *entity)
{
	const char *condition, *why;

	if (!wr_entity_waits_outside(entity, &condition, &why))
		return report->last;
	wr_text_add(&report->text, "%s%s (%s: ", report->last ? ", " : "", entity->plan->name, condition);
	wr_text_shown(&report->text, why ? why : "not ready");
	wr_text_add(&report->text, ")");
	return entity->plan->name;
}

char *wr_outside_waits_text(weir_scheduler *scheduler, bool stuck_too)
{
	weir_graph *graph = scheduler->graph;
	struct report report = {{0}, NULL};

	for (size_t i = 0; i < graph->entity_count; i++)
		if (!is_done(&graph->entities[i]) && (stuck_too || !is_stuck(&graph->entities[i])))
			report.last = add_waiting(&report, &graph->entities[i]);
	if (report.text.status) {
		wr_text_finish(&report.text);
		return NULL; /* the text is optional in the outcome */
	}
	return report.text.text;
}

bool wr_deadlocked(weir_scheduler *scheduler, char **text, uint64_t *leftover)
{
	weir_graph *graph = scheduler->graph;
	struct wr_standstill standstill;
	struct wr_text line = {0};
	bool found = false;

	for (size_t i = 0; i < wr_graph_all(graph); i++) {
		weir_entity *entity = wr_graph_at(graph, i);
		if (is_done(entity))
			continue;
		*leftover += wr_entity_held(entity);
		found |= is_stuck(entity);
	}
	if (!found)
		return false;
	wr_standstill_collect(&standstill, scheduler, false);
	wr_standstill_text(&standstill, is_stuck, &line);
	wr_standstill_finish(&standstill);
	if (!line.status && !line.length)
		wr_text_add(&line, "messages are queued that no condition waits for");
	if (line.status)
		wr_text_finish(&line);
	*text = line.text ? line.text : wr_strdup("entities wait for each other");
	return true;
}

/* Adds one entity that was not DONE at the end of a drain, and the reason. */
static void add_undrained(struct report *report, weir_entity *entity)
{
	size_t held = wr_entity_held(entity);

	wr_text_add(&report->text, "%s%s", report->last ? ", " : "", entity->plan->name);
	report->last = entity->plan->name;
	if (held)
		wr_text_add(&report->text, " (%zu message%s)", held, held == 1 ? "" : "s");
	else if (!wr_system_failed(entity->graph->system) && !wr_entity_idle(entity))
		wr_text_add(&report->text, " (its stream has work)");
}

char *wr_undrained_text(weir_scheduler *scheduler)
{
	weir_graph *graph = scheduler->graph;
	struct report report = {{0}, NULL};

	if (scheduler->options.drain_ns > 0)
		wr_text_add(&report.text, "the drain took longer than %g s; left behind: ",
			    (double)scheduler->options.drain_ns / 1e9);
	else
		wr_text_add(&report.text, "the drain was given no time; left behind: ");
	for (size_t i = 0; i < graph->entity_count; i++)
		if (!is_done(&graph->entities[i]))
			add_undrained(&report, &graph->entities[i]);
	for (size_t i = graph->entity_count; i < wr_graph_all(graph); i++)
		if (wr_entity_held(wr_graph_at(graph, i))) /* else the text names its sender only */
			add_undrained(&report, wr_graph_at(graph, i));
	if (!report.last)
		wr_text_add(&report.text, "work on the device");
	if (report.text.status) {
		wr_text_finish(&report.text);
		return NULL; /* the outcome still has its status */
	}
	return report.text.text;
}

static weir_status check_queue_counts(weir_graph *graph, const struct wr_connection *connection)
{
	struct wr_connection *own = (struct wr_connection *)connection;
	const weir_entity *receiver = connection->receiver;

	if (wr_counts_conserved(&connection->queue.counters, wr_queue_count(&own->queue)))
		return WEIR_OK;
	return wr_fail(WEIR_E_FAILED,
		       "%s: messages were lost on connection %u into %s (pushed %llu, delivered %llu)",
		       graph->plan->name, connection->queue.id, receiver ? receiver->plan->name : "an outlet",
		       (unsigned long long)wr_read(&connection->queue.counters.pushed),
		       (unsigned long long)wr_read(&connection->queue.counters.delivered));
}

static weir_status check_output_counts(const weir_entity *entity, const struct wr_output *output)
{
	uint64_t pushed = 0;

	for (size_t i = 0; i < output->count; i++) {
		struct wr_connection *connection = output->connections[i];
		pushed += wr_read(&connection->queue.counters.pushed) - connection->initial;
	}
	if (pushed == output->total * output->count)
		return WEIR_OK;
	return wr_fail(WEIR_E_FAILED, "%s.%s: emitted %llu to %zu connections, pushed %llu",
		       entity->plan->name, output->plan->port->name, (unsigned long long)output->total,
		       output->count, (unsigned long long)pushed);
}

weir_status wr_conservation(weir_scheduler *scheduler)
{
	weir_graph *graph = scheduler->graph;
	weir_status status = WEIR_OK;

	for (size_t i = 0; !status && i < graph->connection_count; i++)
		status = check_queue_counts(graph, graph->connections[i]);
	for (size_t i = 0; !status && i < graph->entity_count; i++)
		for (size_t k = 0; !status && k < graph->entities[i].output_count; k++)
			status = check_output_counts(&graph->entities[i], &graph->entities[i].outputs[k]);
	return status;
}
