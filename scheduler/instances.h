/*
 * Entities with instances while they run (graphs/instances.c): the computes of dealers and joiners, and what
 * these and instances wait for.
 */
#ifndef WR_SCHEDULER_INSTANCES_H
#define WR_SCHEDULER_INSTANCES_H

#include "scheduler/entity.h"

/* What the parts of an entity tell an instance, and it them. */
struct wr_dealt {
	_Atomic uint64_t
		last; /* 1 + its tick that is the entity's last one; 0: none. By its owner, before `turn` */
	uint64_t numbers[]; /* of the messages that it gets: instances.c */
};

/* What a dealer, an instance and a joiner wait for, each by its role. */
extern const weir_condition wr_instances_condition;

/* NULL: that of the operator. */
weir_status (*wr_instances_compute(enum wr_role role))(weir_context *context, void *state);

/* Returns true if the condition above says all of the ports of that side that no other condition names. */
static inline bool wr_instances_watch(enum wr_role role, bool input)
{
	return role == WR_INSTANCE || role == (input ? WR_JOINER : WR_DEALER);
}

/* Returns true if the functions of its operator are called for it. */
static inline bool wr_instances_operates(const weir_entity *entity)
{
	return entity->plan->role == WR_PLAIN || entity->plan->role == WR_INSTANCE;
}

/* Of an entity that the graph shows: with those of its instances and its joiner. Thread: any. */
void wr_instances_count(weir_entity *entity, weir_entity_counts *out);
/* Of a connection that the graph shows: what waits for an instance is queued (E5). Thread: any. */
void wr_instances_count_queue(const struct wr_connection *connection, weir_queue_counts *out);
/* Returns true if the input's messages are no one's: they say whose turn it is. */
static inline bool wr_instances_turn(const weir_entity *entity, size_t input)
{
	size_t each = entity->input_count / (entity->plan->role == WR_JOINER ? entity->plan->instances : 1);

	return (entity->plan->role == WR_INSTANCE || entity->plan->role == WR_JOINER) &&
	       input % each == each - 1;
}
/* The k-th instance of a dealer; NULL: there is none. */
weir_entity *wr_instance_at(const weir_entity *entity, uint32_t k);
/* What an entity of the graph is made of: itself (0), its instances, its joiner; NULL after the last. */
weir_entity *wr_instances_part(weir_entity *entity, uint32_t k);
/* The one that sends what the entity emits: the joiner of a dealer, or itself. */
weir_entity *wr_instances_sender(weir_entity *entity);
/* Connections to what receives of the entity; a dealer's instances do not count. */
size_t wr_instances_receivers(const weir_entity *entity);
/* Returns true if the queue lies between two parts of one entity. */
static inline bool wr_instances_inside(const struct wr_connection *connection)
{
	const weir_entity *one = connection->sender, *other = connection->receiver;

	return one && other && one->plan->role != WR_PLAIN && other->plan->role != WR_PLAIN &&
	       one->plan->dealer == other->plan->dealer;
}
/* Makes the tick of an instance the last one of its entity: what the sets before it emit is sent, and nothing
 * behind it. Thread: its owner, in compute. */
void wr_instances_end(weir_context *context);
/* Its bound of ticks in flight (T8): an instance has a part of the dealer's. 0: unbounded. */
size_t wr_instances_bound(const weir_entity *entity);
/* Before a run, after the ports were reset. */
void wr_instances_reset(weir_entity *entity);

#endif
