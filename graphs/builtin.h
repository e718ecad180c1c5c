/* The built-in kinds, defined in operators/table.c and conditions/table.c. Unsorted; NULL ends each list. */
#ifndef WR_GRAPHS_BUILTIN_H
#define WR_GRAPHS_BUILTIN_H

#include "weir.h"

extern const weir_operator *const wr_builtin_operators[];
extern const weir_condition *const wr_builtin_conditions[];

#endif
