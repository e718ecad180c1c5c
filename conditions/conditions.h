/*
 * The built-in conditions: one file and one const table each, written against weir.h and scheduler/view.h.
 *
 * A wait keeps the run from ending if its end is certain: a time (periodic), a fence (cuda_stream,
 * in_flight, fence), or the program promises a call (EVENT_WAITING of asynchronous, fence) or watches a
 * descriptor (file_descriptor). A plain wait does not: too few messages, no room, disabled, told WAIT.
 */
#ifndef WR_CONDITIONS_CONDITIONS_H
#define WR_CONDITIONS_CONDITIONS_H

#include "weir.h"

extern const weir_condition wr_aligned;
extern const weir_condition wr_all_of;
extern const weir_condition wr_any_of;
extern const weir_condition wr_asynchronous;
extern const weir_condition wr_boolean;
extern const weir_condition wr_count;
extern const weir_condition wr_cuda_stream;
extern const weir_condition wr_downstream_message_affordable;
extern const weir_condition wr_expiring_message_available;
extern const weir_condition wr_fence;
extern const weir_condition wr_file_descriptor;
extern const weir_condition wr_in_flight;
extern const weir_condition wr_memory_available;
extern const weir_condition wr_message_available;
extern const weir_condition wr_multi_message_available;
extern const weir_condition wr_periodic;

extern const weir_condition *const wr_builtin_conditions[]; /* ends with NULL */

#endif
