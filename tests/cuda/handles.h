/*
 * What handles.c and its files share: a program that embeds weir and uses CUDA by itself, with handles of its
 * own. A check is a function of handles_checks; whatever is wrong is printed by handles_is, and counted.
 */
#ifndef TESTS_CUDA_HANDLES_H
#define TESTS_CUDA_HANDLES_H

#include <stdbool.h>
#include <stdint.h>

#include "weir.h"

#define MS     INT64_C(1000000)
#define SECOND INT64_C(1000000000)

#ifdef __cplusplus
extern "C" {
#endif

struct handles_settings {
	const char *backend, *signal;
	int64_t frames;
	unsigned runs;
	bool cuda; /* the backend is cuda */
};
extern struct handles_settings handles_settings;

enum { HANDLES_CUDA = 1, HANDLES_TWO = 2, HANDLES_UNDEFINED = 4, HANDLES_RUNS = 8 };
struct handles_check {
	const char *name;
	void (*run)(void);
	unsigned
		needs; /* UNDEFINED: CUDA does not say what happens: a crash is fine; RUNS: many short ones */
};
/* Each ends with a NULL name. */
extern const struct handles_check handles_wrapped[], handles_default[], handles_destroyed[], handles_others[],
	handles_devices[], handles_stalls[], handles_programs[], handles_first[];

bool handles_is(bool right, const char *format, ...) WEIR_PRINTF(2, 3); /* returns right */
bool handles_called(int error, const char *call); /* a CUDA call of ours; returns whether it was fine */
void handles_told(const char *format, ...) WEIR_PRINTF(1, 2); /* what a reader may want to know */

/* --- kernels: their forms for CUDA, handles.cu; for the host, handles_operators.c --- */

/* Takes its time, then: number i is first + i. */
struct handles_fill {
	uint32_t *to;
	int64_t count, ns;
	uint32_t first;
};
/* Number i is 3 * from[i] + 1. */
struct handles_triple {
	const uint32_t *from;
	uint32_t *to;
	int64_t count;
};
/* Stays until *flag is 1, at most `most` ns; *told is 1 then, else 2. */
struct handles_stay {
	const uint32_t *flag;
	uint32_t *told;
	int64_t most;
};
int handles_fill_cuda(void *native, const void *arguments);
int handles_triple_cuda(void *native, const void *arguments);
int handles_stay_cuda(void *native, const void *arguments);
extern const weir_kernel handles_fill_kernel, handles_triple_kernel;
/* Each kernel is loaded there: loading one waits for those that run. Returns a cudaError_t. */
int handles_load(int device);

/* --- operators: handles_operators.c --- */

extern weir_stream
	*handles_stream;     /* the wrapped one, of which the operator `fill` makes use by "on": "wrapped" */
extern void *handles_native; /* it */
extern uint32_t *handles_flag, *handles_word; /* of the operators `apart` and `release`: pinned */
weir_status handles_add(weir_registry *registry);

/* --- graphs: handles_rig.c. After a failure nothing more is done, until close --- */

struct handles_rig {
	weir_registry *registry;
	weir_description *description;
	weir_graph *graph;
	weir_scheduler *scheduler;
	weir_outcome outcome;
	weir_status status;
	char why[512];
	unsigned workers; /* 0: 4 */
	int64_t spin_ns;
	bool hung;
	bool broken; /* its end may be an error */
};

extern const char handles_three[];                             /* source -> process -> sink */
void handles_begin(struct handles_rig *rig, const char *json); /* NULL: an empty description */
void handles_put(struct handles_rig *rig, const char *pointer, const char *format, ...) WEIR_PRINTF(3, 4);
bool handles_open(struct handles_rig *rig);
bool handles_start(struct handles_rig *rig);
/* Waits so long for the end. False: it did not come, which is wrong, or with an error. */
bool handles_wait(struct handles_rig *rig, int64_t ns);
uint64_t handles_ticks(const struct handles_rig *rig, const char *prefix);
/* Opened; runs to its end: all that entities of the name "sink..." have to see, and all of it right. */
bool handles_runs(struct handles_rig *rig, uint64_t sinks_ticks);
void handles_close(struct handles_rig *rig); /* tells a failure */

#ifdef __cplusplus
}
#endif

#endif
