/* The ports of an operator's table. */
#ifndef WR_GRAPHS_PORT_NAMES_H
#define WR_GRAPHS_PORT_NAMES_H

#include "graphs/report.h"

#define WR_PORT_CAPACITY_MAX 65536u

size_t wr_port_count(const weir_port *ports);                /* NULL: none */
int wr_port_index(const weir_port *ports, const char *name); /* -1: no port of that name */
/* Returns the index of an input or output; -1 if there is none of that name or it has the other direction,
 * which is reported. */
int wr_port_find(struct wr_reports *reports, const struct wr_at *at, struct wr_place place,
		 const weir_operator *kind, const char *name, bool input);

#endif
