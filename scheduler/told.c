/*
 * What the program tells the conditions of an entity (C6): a word (weir_told), or fences. Each call stores,
 * then pokes the entity.
 *
 * Of the fences two are kept: `next`, the oldest that no tick has used, and `last`. While `next` is waited
 * for, further ones replace `last` alone. If only the last were kept, a program that tells faster than the
 * device works would never let the entity tick, since the last fence would never be complete. A fence is used
 * by the tick that a review of it led to: the review notes its number, so a fence that is told while the tick
 * runs is not lost.
 */
#include <string.h>

#include "base/clock.h"
#include "base/nearest.h"
#include "base/status.h"
#include "scheduler/graph.h"
#include "scheduler/ready.h"

weir_status wr_entity_refuse_null(void)
{
	return wr_fail(WEIR_E_INVALID,
		       "an entity is needed, NULL was given: weir_graph_entity gives NULL for a "
		       "name that the graph does not have");
}

static weir_status refuse_condition(const weir_entity *entity, const char *name)
{
	struct wr_nearest nearest = {.wanted = name};

	for (size_t i = 0; i < entity->condition_count; i++)
		wr_nearest_try(&nearest, entity->conditions[i].plan->name);
	if (nearest.best)
		return wr_fail(WEIR_E_INVALID, "%s has no condition '%s' (did you mean '%s'?)",
			       entity->plan->name, wr_shown(name).text, nearest.best);
	return wr_fail(WEIR_E_INVALID, "%s has no condition '%s': add it to \"conditions\" of the entity",
		       entity->plan->name, wr_shown(name).text);
}

weir_status wr_condition_find(weir_entity *entity, const char *name, struct wr_condition **out)
{
	if (!entity)
		return wr_entity_refuse_null();
	for (size_t i = 0; i < entity->condition_count; i++)
		if (!strcmp(entity->conditions[i].plan->name, name)) {
			*out = &entity->conditions[i];
			return WEIR_OK;
		}
	return refuse_condition(entity, name);
}

/* --- words --- */

weir_status weir_entity_tell(weir_entity *entity, const char *condition, weir_told told)
{
	struct wr_condition *found = NULL;
	weir_status status = wr_condition_find(entity, condition, &found);

	if (status)
		return status;
	wr_store(&found->told, told);
	wr_poke(entity); /* refused between runs: the value stays for the next run */
	return WEIR_OK;
}

weir_told weir_view_told(weir_view *view)
{
	return (weir_told)wr_load(&view->condition->told);
}

/* --- fences --- */

/* Held for a few stores. */
static void fences_lock(struct wr_told_fences *fences)
{
	while (wr_exchange(&fences->lock, 1))
		wr_thread_yield();
}

static void fences_unlock(struct wr_told_fences *fences)
{
	wr_store(&fences->lock, 0);
}

static weir_status check_fence(const weir_entity *entity, const struct wr_condition *condition,
			       weir_fence fence)
{
	weir_graph *graph = entity->graph;

	if (strcmp(condition->plan->kind->name, "fence") != 0)
		return wr_fail(WEIR_E_INVALID, "%s: condition '%s' takes no fences: add one of type 'fence'",
			       entity->plan->name, condition->plan->name);
	if (!fence.stream && !fence.value)
		return WEIR_OK;
	if (graph->system)
		return wr_fence_check(graph->system, fence);
	return wr_fail(WEIR_E_INVALID, "graph %s: there are no fences of it before a scheduler is created",
		       graph->plan->name);
}

weir_status weir_entity_tell_fence(weir_entity *entity, const char *condition, weir_fence fence)
{
	struct wr_condition *found = NULL;
	weir_status status = wr_condition_find(entity, condition, &found);
	struct wr_told_fences *fences;

	if (!status)
		status = check_fence(entity, found, fence);
	if (status)
		return status;
	fences = &found->fences;
	fences_lock(fences);
	fences->last = (struct wr_told_fence){fence, wr_now(), ++fences->count};
	if (!fences->next.number)
		fences->next = fences->last;
	fences_unlock(fences);
	wr_poke(entity); /* refused between runs: the fence stays for the next run */
	return WEIR_OK;
}

static struct wr_told_fences *fences_of(weir_view *view)
{
	return &view->condition->fences;
}

const weir_fence *wr_view_fence_told(weir_view *view)
{
	struct wr_told_fences *fences = fences_of(view);
	bool told;

	fences_lock(fences);
	told = fences->last.number;
	fences->last_seen = fences->last.fence;
	fences_unlock(fences);
	return told ? &fences->last_seen : NULL;
}

const weir_fence *wr_view_fence_next(weir_view *view)
{
	struct wr_told_fences *fences = fences_of(view);

	fences_lock(fences);
	fences->seen = fences->next.number;
	fences->next_seen = fences->next.fence;
	fences_unlock(fences);
	return fences->seen ? &fences->next_seen : NULL;
}

void wr_view_fence_use(weir_view *view)
{
	struct wr_told_fences *fences = fences_of(view);
	static const struct wr_told_fence none;

	fences_lock(fences);
	if (fences->next.number == fences->seen)
		fences->next = fences->last.number > fences->seen ? fences->last : none;
	fences_unlock(fences);
}

/* A lost device counts as complete: compute then fails, since the entity counts as gated (E2). */
bool weir_view_fence_complete(weir_view *view, weir_fence fence)
{
	weir_entity *entity = view->entity;
	weir_status status;

	if (!fence.stream && !fence.value)
		return true;
	if (!entity->graph->system)
		return false;
	entity->gated = true;
	status = wr_fence_query(entity->graph->system, fence);
	return !status || status == WEIR_E_DEVICE;
}

int64_t wr_told_fence_at(struct wr_condition *condition, weir_fence fence)
{
	struct wr_told_fences *fences = &condition->fences;
	int64_t at = 0;

	fences_lock(fences);
	if (fences->last.number && fences->last.fence.stream == fence.stream &&
	    fences->last.fence.value == fence.value)
		at = fences->last.at;
	if (fences->next.number && fences->next.fence.stream == fence.stream &&
	    fences->next.fence.value == fence.value)
		at = fences->next.at;
	fences_unlock(fences);
	return at;
}

/* --- the end of a run --- */

static void forget_fences(struct wr_told_fences *fences)
{
	fences_lock(fences);
	fences->next.number = fences->last.number = 0;
	fences_unlock(fences);
}

void wr_graph_forget_told(weir_graph *graph)
{
	for (size_t i = 0; i < graph->entity_count; i++) {
		for (size_t k = 0; k < graph->entities[i].condition_count; k++) {
			struct wr_condition *condition = &graph->entities[i].conditions[k];
			if (wr_read(&condition->told) != WEIR_TOLD_NOTHING)
				wr_store(&condition->told, WEIR_TOLD_NOTHING);
			forget_fences(&condition->fences);
		}
	}
}
