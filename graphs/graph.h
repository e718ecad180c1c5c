/* A graph: its plan, entities, connections and messages, and the system that was opened for it. */
#ifndef WR_GRAPHS_GRAPH_H
#define WR_GRAPHS_GRAPH_H

#include "graphs/entity.h"
#include "graphs/plan/names.h"

struct wr_sim;

/* Memory that stays until the graph goes. */
struct wr_kept {
	struct wr_kept *next;
	void *memory;
};

struct weir_graph {
	struct wr_plan *plan;
	struct wr_pool *pool;
	struct wr_system *system;	/* NULL until a scheduler was made (graphs/place.c) */
	struct wr_sim *world;		/* of a simulated run */
	int64_t started_at;		/* the run that is on, or the last one */
	const weir_entity *blamed;	/* whose fault it is that a run could not begin; NULL: nobody's */
	bool owns_world;
	struct wr_stream_pool **pools;	/* the plan's, in its order; the system's (graphs/resources.c) */
	size_t max_in_flight;		/* of entities that say nothing (T8); set by the scheduler */
	bool leaks;			/* what an entity fences pending was never fenced: the pool stays */
	char *backend;			/* as it was asked for */
	weir_entity *entities;
	size_t entity_count;
	struct wr_names names;		/* of the entities */
	struct wr_finisher **hidden;	/* entities of outlets; their ids come after the plan's (finisher.h) */
	size_t hidden_count, hidden_room;
	struct wr_connection **connections;	/* the plan's, in its order, then inlets' and outlets' */
	size_t connection_count, connection_room;
	weir_inlet *inlets;
	weir_outlet *outlets;
	weir_scheduler *scheduler;	/* the one that has it */
	struct wr_kept *kept;		/* destroyed schedulers: a poke on its way may still look at one */
};

struct wr_pool *wr_graph_pool(weir_graph *graph);
/* All that the scheduler runs: the plan's entities, then the hidden ones. Getter: by id. */
size_t wr_graph_all(const weir_graph *graph);
weir_entity *wr_graph_at(const weir_graph *graph, size_t id);
/* Every required port is connected: inlets and outlets have come by now. Fails: WEIR_E_INVALID. */
weir_status wr_graph_ready(weir_graph *graph);
/* Before a run: all entities, conditions and queues anew, initial messages in. Adds up what it discards. */
weir_status wr_graph_reset(weir_graph *graph, size_t *discarded);
/* The queues were emptied: nobody knows of any message. Nobody works. */
void wr_graph_forget_queued(weir_graph *graph);
void wr_graph_forget_told(weir_graph *graph);	/* at the end of a run */
/*
 * Gives every condition its signal and marks the connections whose receiver is gated by flag; `signal`:
 * enum wr_signal_kind where a condition names none.
 */
void wr_graph_bind(weir_graph *graph, int signal);
/* One more connection; an inlet's has no sender, an outlet's no receiver. */
weir_status wr_graph_connect(weir_graph *graph, weir_entity *sender, uint32_t output, weir_entity *receiver,
			     uint32_t input, uint32_t capacity, struct wr_connection **out);
/* One into an input alone: without a sender, in no list of the graph's, the caller's to destroy. */
weir_status wr_connection_aside(weir_entity *receiver, uint32_t input, uint32_t capacity,
				struct wr_connection **out);
/* Gives it a system, or keeps its own, if that is what is asked for. Fails as wr_system_create does. */
weir_status wr_graph_place(weir_graph *graph, const char *backend, uint64_t seed);
/* Fails with WEIR_E_BUSY if the program still holds messages of it. Leftovers of the last run go. */
weir_status wr_graph_released(weir_graph *graph);
/* WEIR_E_ABANDONED: a hung GPU; what it may touch was leaked (E4). */
weir_status wr_graph_displace(weir_graph *graph);
/*
 * The pools and partitions that the plan names, in the graph's system. Fails as they do, naming the
 * resource; the system is to be destroyed then.
 */
weir_status wr_resources_make(weir_graph *graph);
void wr_resources_forget(weir_graph *graph);	/* the system is gone */
/* Whose streams the entity takes; NULL: none. */
struct wr_stream_pool *wr_graph_stream_pool(const weir_entity *entity);
/* At the end of a run: what an entity still withholds keeps its streams. */
void wr_graph_close_streams(weir_graph *graph);
/* "name.port": finds both. Fails: WEIR_E_INVALID, naming the nearest. */
weir_status wr_graph_find_input(weir_graph *graph, const char *text, weir_entity **entity, uint32_t *input);
weir_status wr_graph_find_output(weir_graph *graph, const char *text, weir_entity **entity, uint32_t *output);

#endif
