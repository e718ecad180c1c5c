/* The benchmark's chain in three forms: each measures one repetition and returns nanoseconds per tick. */
#ifndef BENCH_CHAIN_H
#define BENCH_CHAIN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Builds a graph that can run repeatedly. Returns NULL if memory ran out. */
void *tbb_chain_create(size_t entities);
double tbb_chain_run(void *chain, uint64_t messages);
void tbb_chain_destroy(void *chain);

/* The same by Taskflow (chain_peers.py). */
void *taskflow_chain_create(size_t entities);
double taskflow_chain_run(void *chain, uint64_t messages);
void taskflow_chain_destroy(void *chain);

#ifdef __cplusplus
}
#endif

#endif
