/* A graph: its plan, its entities and connections, its messages, and the system that its scheduler opened for it. */
#ifndef WR_GRAPHS_GRAPH_H
#define WR_GRAPHS_GRAPH_H

#include "graphs/entity.h"

struct weir_graph {
	struct wr_plan *plan;
	struct wr_pool *pool;
	struct wr_system *system;	/* NULL until a scheduler was made; then kept until the graph goes or another backend is asked for */
	weir_entity *entities;
	size_t entity_count;
	struct wr_connection **connections;	/* the plan's, in its order, then inlets' and outlets' */
	size_t connection_count, connection_room;
	weir_inlet *inlets;
	weir_outlet *outlets;
	weir_scheduler *scheduler;	/* the one that has it */
	bool inline_default;		/* the scheduler's signal is callback_inline */
};

struct wr_pool *wr_graph_pool(weir_graph *graph);
/* Every required port is connected (a graph that inlets complete is checked when it is given to a scheduler). Fails: WEIR_E_INVALID. */
weir_status wr_graph_ready(const weir_graph *graph);
/* Before a run: resets entities, conditions, ports and queues, pushes initial messages. Counts what it discards. */
weir_status wr_graph_reset(weir_graph *graph, size_t *discarded);
void wr_graph_bind(weir_graph *graph, bool inline_default);	/* marks the connections whose receiver is gated by callback_inline */
/* "name.port": finds both. Fails: WEIR_E_INVALID, naming the nearest. */
weir_status wr_graph_find_input(weir_graph *graph, const char *text, weir_entity **entity, uint32_t *input);
weir_status wr_graph_find_output(weir_graph *graph, const char *text, weir_entity **entity, uint32_t *output);

#endif
