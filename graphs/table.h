/* The tables of operators and conditions. */
#ifndef WR_GRAPHS_TABLE_H
#define WR_GRAPHS_TABLE_H

#include "graphs/report.h"

/* Checks a table of this library's layout (layout.h) before it is added. Fails: WEIR_E_INVALID, WEIR_E_NOMEM.
 */
weir_status wr_operator_check(const weir_operator *table);
weir_status wr_condition_check(const weir_condition *table);
/* Checks the conditions that the operator brings: brought.c. Fails: WEIR_E_INVALID, WEIR_E_NOMEM. */
weir_status wr_brought_check(const weir_registry *registry, const weir_operator *table);

#define WR_PORT_CAPACITY_MAX 65536u

size_t wr_port_count(const weir_port *ports);                /* NULL: none */
int wr_port_index(const weir_port *ports, const char *name); /* -1: no port of that name */
/* Returns the index of an input or output; -1 if there is none of that name or it has the other direction,
 * which is reported. */
int wr_port_find(struct wr_reports *reports, const struct wr_at *at, struct wr_place place,
		 const weir_operator *kind, const char *name, bool input);

#endif
