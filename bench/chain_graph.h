/* A chain source -> pass -> ... -> sink of empty messages. */
#ifndef BENCH_CHAIN_GRAPH_H
#define BENCH_CHAIN_GRAPH_H

#include <weir.h>

enum { CHAIN_SOURCE, CHAIN_PASS, CHAIN_SINK, CHAIN_KINDS };

extern uint64_t chain_messages; /* that the source makes in a run */
extern const weir_operator chain_operators[CHAIN_KINDS];

/* Their compute functions, for operators that do more. */
weir_status chain_source_compute(weir_context *context, void *state);
weir_status chain_pass_compute(weir_context *context, void *state);
weir_status chain_sink_compute(weir_context *context, void *state);

/* Either ends the program if it fails. */
void chain_register(weir_registry *registry, const weir_operator operators[CHAIN_KINDS]);
weir_description *chain_describe(size_t entities, unsigned capacity);

#endif
