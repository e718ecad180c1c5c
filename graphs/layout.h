/* Tables whose structs have the sizes of another header. */
#ifndef WR_GRAPHS_LAYOUT_H
#define WR_GRAPHS_LAYOUT_H

#include <stddef.h>

#include "weir.h"

/* What the first header of this ABI had; a field that a table is too small for is zero. */
#define WR_OPERATOR_FIRST  offsetof(weir_operator, conditions)
#define WR_PORT_FIRST      offsetof(weir_port, dtype)
#define WR_PARAMETER_FIRST offsetof(weir_parameter, choices)

/*
 * Checks the sizes in a table and its lists. Gives a copy with this library's structs if one of them has
 * another size, else NULL; the copy, one allocation, borrows the texts. Fails: WEIR_E_INVALID: a size that
 * cannot be, or that differs within a list; WEIR_E_UNSUPPORTED: a field is set that this library does not
 * know; WEIR_E_NOMEM.
 */
weir_status wr_layout_operator(const weir_operator *table, weir_operator **out);
/* Copies one port into a struct of this library's size; fails as above. */
weir_status wr_layout_port(const weir_port *port, const char *kind, weir_port *out);
weir_status wr_layout_condition(const weir_condition *table, weir_condition **out);

#endif
