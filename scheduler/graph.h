/* A graph: its plan, entities, connections, messages, and the system opened for it. */
#ifndef WR_SCHEDULER_GRAPH_H
#define WR_SCHEDULER_GRAPH_H

#include "scheduler/entity.h"

struct wr_sim;

/* Memory that stays until the graph is destroyed. */
struct wr_kept {
	struct wr_kept *next;
	void *memory;
};

struct weir_graph {
	struct wr_plan *plan;
	const weir_registry *registry; /* borrowed; NULL: the built-in kinds */
	struct wr_pool *pool;
	struct wr_system *system; /* NULL until a scheduler is made */
	struct wr_sim *world;     /* of a simulated run */
	int64_t started_at;       /* start of the current or the last run */
	bool owns_world;
	struct wr_stream_pool **pools;       /* in plan order; owned by the system */
	struct wr_memory_pool *memory_pools; /* in plan order: ascending for claims */
	size_t memory_pool_count;
	size_t max_in_flight;        /* default of the entities (T8); set by the scheduler */
	bool leaks;                  /* some payloads could never be fenced: the message pool is leaked */
	char *backend;               /* as requested */
	bool strict;                 /* its device memory is closed to the host */
	struct wr_mutex record_lock; /* of `record` of all entities */
	weir_entity *entities;
	size_t entity_count;
	struct wr_finisher **finishers; /* entities of outlets; their ids follow the plan's */
	size_t finisher_count, finisher_room;
	struct wr_connection **connections; /* of the plan, in its order, then of inlets and outlets */
	size_t connection_count, connection_room;
	weir_inlet *inlets;
	weir_outlet *outlets;
	struct wr_descriptor *_Atomic descriptors; /* of all conditions that ever watched one: a stack */
	weir_scheduler *scheduler;                 /* the one that uses this graph, or NULL */
	struct wr_kept *kept;                      /* destroyed schedulers: a late poke may still read one */
};

/* All entities that the scheduler runs: those of the plan, then the finishers. */
static inline size_t wr_graph_count_all(const weir_graph *graph)
{
	return graph->entity_count + graph->finisher_count;
}
/* The index of the i-th connection without those of instances, which are the last ones of the plan. */
static inline size_t wr_graph_shown_connection(const weir_graph *graph, size_t i)
{
	return i < graph->plan->shown_connections
		       ? i
		       : i + graph->plan->connection_count - graph->plan->shown_connections;
}
weir_entity *wr_graph_entity_at(const weir_graph *graph, size_t id); /* id < wr_graph_count_all() */
/*
 * Checks, after all inlets and outlets were made, that required ports are connected. Fails: WEIR_E_INVALID.
 */
weir_status wr_graph_check_ports(weir_graph *graph);
/* The main sink, and how many messages its first connected input gave to computes; NULL: there is no sink.
 * Thread: any. */
const weir_entity *wr_graph_main(const weir_graph *graph, uint64_t *frames);
/*
 * Before a run: resets all entities, conditions and queues and queues the initial messages. Adds the number
 * of messages that it discards to *discarded.
 */
weir_status wr_graph_reset(weir_graph *graph, size_t *discarded);
/* After the queues were emptied: resets what the fan-in sets know of messages. No worker runs. */
void wr_graph_forget_queued(weir_graph *graph);
void wr_graph_forget_told(weir_graph *graph); /* at the end of a run: clears `told` of all conditions */
/*
 * Gives every condition its signal kind and marks the connections whose receiver waits by completion flag.
 * `signal`: enum wr_signal_kind, for conditions that name none. Returns the largest mark.
 */
enum wr_flagging wr_graph_bind_signals(weir_graph *graph, int signal);
/* Adds a connection; that of an inlet has no sender, that of an outlet no receiver. */
weir_status wr_graph_connect(weir_graph *graph, weir_entity *sender, uint32_t output, weir_entity *receiver,
			     uint32_t input, uint32_t capacity, struct wr_connection **out);
/* Makes a connection without a sender that the graph does not list; the caller destroys it. */
weir_status wr_connection_create_unlisted(weir_entity *receiver, uint32_t input, uint32_t capacity,
					  struct wr_connection **out);
/*
 * Creates a system on this backend; keeps the present one if it is suitable. Fails as wr_system_create does.
 */
weir_status wr_graph_place(weir_graph *graph, const char *backend, uint64_t seed, int strict);
/* At the end of a run. Entities with fences_pending or stop_owed keep their streams. */
void wr_graph_close_streams(weir_graph *graph);
/* Finds the entity and the port of "entity.port". Fails: WEIR_E_INVALID. */
weir_status wr_graph_find_input(weir_graph *graph, const char *text, weir_entity **entity, uint32_t *input);
weir_status wr_graph_find_output(weir_graph *graph, const char *text, weir_entity **entity, uint32_t *output);

#endif
