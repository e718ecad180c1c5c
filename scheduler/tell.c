/* Tells a condition from outside (C6): stores an atomic, then pokes the entity. */
#include <string.h>

#include "base/status.h"
#include "scheduler/scheduler.h"

weir_status weir_entity_tell(weir_entity *entity, const char *condition, weir_told told)
{
	for (size_t i = 0; i < entity->condition_count; i++) {
		if (strcmp(entity->conditions[i].plan->name, condition))
			continue;
		wr_store(&entity->conditions[i].told, told);
		wr_poke(entity); /* refused between runs: the value stays for the next run */
		return WEIR_OK;
	}
	return wr_fail(WEIR_E_INVALID, "%s has no condition '%s'", entity->plan->name, condition);
}

weir_status weir_entity_enable(weir_entity *entity, bool on)
{
	for (size_t i = 0; i < entity->condition_count; i++)
		if (!strcmp(entity->conditions[i].plan->kind->name, "boolean"))
			return weir_entity_tell(entity, entity->conditions[i].plan->name,
						on ? WEIR_TOLD_READY : WEIR_TOLD_WAIT);
	return wr_fail(WEIR_E_INVALID, "%s has no 'boolean' condition: add one to enable or disable it",
		       entity->plan->name);
}
