/*
 * The calls that say why a run stands still (C5): as one line, or cause by cause, root causes first.
 */
#include "base/status.h"
#include "scheduler/ends.h"
#include "scheduler/instances.h"
#include "scheduler/run.h"
#include "scheduler/standstill.h"

/* The detail of a cause that is a queue includes its counts. */
static void explain_cause(const struct wr_standstill *s, const struct wr_cause *cause, weir_unmet_fn *fn,
			  void *arg)
{
	const weir_entity *entity = wr_graph_entity_at(s->graph, cause->entity);
	const weir_entity *blames =
		cause->blames == WR_NO_ENTITY ? NULL : wr_graph_entity_at(s->graph, cause->blames);
	struct wr_text detail = {0};
	weir_unmet unmet = {.size = sizeof unmet,
			    .entity = entity->plan->name,
			    .cause = cause->cause,
			    .on = wr_entity_subject(entity, cause->cause, cause->on),
			    .condition = cause->condition,
			    .verdict = wr_says_text(cause->says)};

	if (cause->connection && wr_instances_inside(cause->connection))
		return; /* it is shown as one: what its parts wait for among themselves is not told */
	wr_text_add(&detail, "%s", cause->detail);
	if (cause->connection) {
		wr_text_add(&detail, ": ");
		wr_cause_print_queue(cause, &detail);
	}
	unmet.detail = detail.status ? cause->detail : detail.text;
	if (blames)
		unmet.blames = blames->plan->name;
	fn(&unmet, arg);
	wr_text_finish(&detail);
}

/*
 * Open inlets keep the run from ending, also if nothing but pokes is waited for: names up to 3 of them. Adds
 * nothing if none is open.
 */
static void inlets_text(const struct wr_standstill *s, struct wr_text *text)
{
	size_t open = 0;

	for (size_t i = 0; i < s->count; i++)
		if (s->list[i].says != WR_SAYS_WAIT && s->list[i].says != WR_SAYS_NEVER)
			return;
	for (weir_inlet *inlet = s->count ? s->graph->inlets : NULL; inlet; inlet = inlet->next) {
		if (!wr_inlet_is_open(inlet))
			continue;
		if (++open <= 3)
			wr_text_add(text, "%s%s",
				    open == 1 ? "; no deadlock is reported while inlets are open: " : ", ",
				    inlet->connection->to);
	}
	if (open > 3)
		wr_text_add(text, " and %zu more", open - 3);
}

static weir_status explain_in_text(weir_scheduler *scheduler, void *arg)
{
	struct wr_text *text = arg;
	struct wr_standstill standstill;

	wr_standstill_collect(&standstill, scheduler);
	wr_standstill_text(&standstill, NULL, text);
	inlets_text(&standstill, text);
	wr_standstill_finish(&standstill);
	return text->status;
}

static weir_status refuse_worker(void)
{
	return wr_fail(WEIR_E_INVALID, "a worker must not ask why its own run stands still");
}

weir_status weir_scheduler_explain_line(weir_scheduler *scheduler, char **out)
{
	struct wr_text text = {0};
	weir_status status;

	if (wr_worker_here(scheduler))
		return refuse_worker();
	status = wr_world_call(scheduler, explain_in_text, &text);
	if (status)
		wr_text_finish(&text);
	else
		*out = text.text;
	return status;
}

struct explain {
	weir_unmet_fn *fn;
	void *arg;
};

static weir_status explain_to_caller(weir_scheduler *scheduler, void *arg)
{
	const struct explain *explain = arg;
	struct wr_standstill standstill;
	struct wr_text text = {0};

	wr_standstill_collect(&standstill, scheduler);
	wr_standstill_text(&standstill, NULL, &text); /* marks the roots */
	wr_text_finish(&text);
	for (int roots = 1; roots >= 0 && !standstill.status; roots--)
		for (size_t i = 0; i < standstill.count; i++)
			if ((standstill.marks[standstill.list[i].entity] == WR_ROOT) == roots)
				explain_cause(&standstill, &standstill.list[i], explain->fn, explain->arg);
	wr_standstill_finish(&standstill);
	return WEIR_OK;
}

weir_status weir_scheduler_explain(weir_scheduler *scheduler, weir_unmet_fn *fn, void *arg)
{
	struct explain explain = {fn, arg};

	if (wr_worker_here(scheduler))
		return refuse_worker();
	return wr_world_call(scheduler, explain_to_caller, &explain);
}
