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
