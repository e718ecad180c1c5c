/* The chain of the benchmark, three times: what each measures is one repetition, in nanoseconds per tick. */
#ifndef BENCH_CHAIN_H
#define BENCH_CHAIN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A graph that was built and runs again and again. NULL: no memory. */
void *tbb_chain_create(size_t entities);
double tbb_chain_run(void *chain, uint64_t messages);
void tbb_chain_destroy(void *chain);

#ifdef __cplusplus
}
#endif

#endif
