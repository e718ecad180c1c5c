/*
 * The built-in conditions: one kind a file, one const table each, written against weir.h alone.
 *
 * Which waits hold a run open? Those whose end is known to somebody: a time (periodic), a fence
 * (cuda_stream, in_flight), and EVENT_WAITING of asynchronous, where somebody outside has promised to call. A plain
 * wait does not: too few messages, no room, disabled, told WAIT.
 */
#ifndef WR_CONDITIONS_CONDITIONS_H
#define WR_CONDITIONS_CONDITIONS_H

#include "weir.h"

extern const weir_condition wr_asynchronous;
extern const weir_condition wr_boolean;
extern const weir_condition wr_count;
extern const weir_condition wr_cuda_stream;
extern const weir_condition wr_downstream_message_affordable;
extern const weir_condition wr_in_flight;
extern const weir_condition wr_message_available;
extern const weir_condition wr_periodic;

extern const weir_condition *const wr_builtin_conditions[]; /* by name; ends with NULL */

#endif
