#include "report/times.h"

#include "scheduler/instances.h"

static struct wr_histogram *times_of(const weir_entity *entity, struct wr_statistics *statistics,
				     size_t offset)
{
	return (struct wr_histogram *)((char *)&statistics->entities[entity->id] + offset);
}

void wr_entity_times(const weir_entity *entity, struct wr_statistics *statistics, size_t offset,
		     struct wr_histogram *into)
{
	const weir_entity *instance = wr_instance_at(entity, 0);

	if (!instance)
		wr_histogram_merge(into, times_of(entity, statistics, offset));
	for (uint32_t k = 0; (instance = wr_instance_at(entity, k)); k++)
		wr_histogram_merge(into, times_of(instance, statistics, offset));
}

bool wr_wait_is_shown(const weir_entity *part, const struct wr_wait_for *what)
{
	bool subject = what->on == WR_NO_SUBJECT || wr_entity_subject(part, what->cause, what->on);

	switch (part->plan->role) {
	case WR_PLAIN:
		return true;
	case WR_DEALER:
		return subject;
	case WR_JOINER:
		return what->cause == WEIR_CAUSE_ROOM;
	case WR_INSTANCE:
		return subject && (what->cause == WEIR_CAUSE_MEMORY || what->cause == WEIR_CAUSE_BOUND ||
				   what->cause == WEIR_CAUSE_DEVICE || what->cause == WEIR_CAUSE_TOLD);
	}
	return false;
}

struct wr_wait_times *wr_wait_alike(struct wr_wait_times *wait, const struct wr_wait_for *what)
{
	while (wait && (wait->what.cause != what->cause || wait->what.on != what->on))
		wait = wr_load_acquire(&wait->next);
	return wait;
}
