#ifndef WR_GRAPHS_DESCRIPTION_H
#define WR_GRAPHS_DESCRIPTION_H

#include "base/file.h"
#include "graphs/plan.h"
#include "graphs/report.h"
#include "graphs/value.h"

/* A graph as data: the tree, and the file that it was read from. */
struct weir_description {
	struct wr_value root;
	char *file; /* NULL: not from a file */
	struct wr_root confined;
	bool from_stdin;
	struct wr_given_memory *given; /* blocks of the caller's, by the name of their pool */
	/* The plan of the last check, until the description changes or a graph is made of it; exchanged as a
	 * whole. */
	struct wr_plan *_Atomic checked;
};

/*
 * Gives the plan of the description: the one of its last check, or a new one in which ports may be
 * unconnected. The caller owns it. Thread: any, as long as no other thread changes the description.
 */
weir_status wr_description_plan(struct wr_plan **out, const weir_registry *registry,
				const weir_description *description);
/*
 * Copies the caller's blocks into the plan, which was made of the description; reports pools that are
 * described otherwise by now. Fails: WEIR_E_NOMEM.
 */
weir_status wr_description_give_memory(const weir_description *description, struct wr_plan *plan,
				       struct wr_reports *reports);
void wr_description_forget_memory(weir_description *description); /* frees the list of blocks */
/* Keeps the plan, which was made of the description, for the next call of wr_description_plan. */
void wr_description_keep(const weir_description *description, struct wr_plan *plan);

#endif
