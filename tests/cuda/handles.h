/*
 * Shared by handles.c and its files: a program that embeds weir and uses CUDA itself, with handles of its
 * own. A check is a function in one of the tables below; handles_expect prints and counts what is wrong.
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
	bool gpu;  /* and on a device: elsewhere kernels and entities share the cores of this machine */
};
extern struct handles_settings handles_settings;

enum { HANDLES_CUDA = 1, HANDLES_TWO = 2, HANDLES_UNDEFINED = 4, HANDLES_RUNS = 8 };
struct handles_check {
	const char *name;
	void (*run)(void);
	unsigned needs; /* UNDEFINED in CUDA: may crash; RUNS: many short ones */
};
/* Each table ends with a NULL name. */
extern const struct handles_check handles_wrapped[], handles_default[], handles_destroyed[], handles_others[],
	handles_devices[], handles_stalls[], handles_programs[], handles_first[], handles_early[],
	handles_promises[], handles_copies[], handles_joins[], handles_allocations[];

bool handles_expect(bool right, const char *format, ...) WEIR_PRINTF(2, 3); /* returns right */
bool handles_expect_cuda(int error,
			 const char *call); /* a CUDA call of the program; returns true on success */
void handles_print_note(const char *format, ...) WEIR_PRINTF(1, 2); /* prints a note for the reader */

/* --- kernels: their forms for CUDA, handles.cu; for the host, handles_calls.c --- */

/* After a while, number i is first + i. */
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
/* Runs until *flag is 1, at most `most` ns; then sets *told to 1, or to 2 after a timeout. */
struct handles_stay {
	const uint32_t *flag;
	uint32_t *told;
	int64_t most;
};
int handles_fill_cuda(void *native, const void *arguments);
int handles_triple_cuda(void *native, const void *arguments);
int handles_stay_cuda(void *native, const void *arguments);
extern const weir_kernel handles_fill_kernel, handles_triple_kernel, handles_stay_kernel;
/* Loads each kernel, since loading one later would wait for those that run. Returns a cudaError_t. */
int handles_load(int device);

/* --- what operators call: handles_calls.c --- */

weir_status handles_failed(weir_context *context, int error, const char *call); /* OK if the error is 0 */
/* On the native stream, if there is one; else by weir_stream_launch. */
weir_status handles_launch(weir_context *context, weir_stream *stream, const weir_kernel *kernel,
			   const void *arguments, size_t bytes);
/* Fail if the stream's handle, an unknown one, or the current device is not what the context says. */
weir_status handles_look(weir_context *context, weir_stream *stream);
weir_status handles_look_at_received(weir_context *context);

/* --- operators: handles_operators.c --- */

extern weir_stream *handles_stream; /* the wrapped one, which the operator `fill` uses with "on": "wrapped" */
extern void *handles_native;        /* its native handle */
extern void *handles_given;         /* the native stream that `fill` used last */
extern uint32_t *handles_flag, *handles_word; /* pinned; used by the operators `apart` and `release` */
weir_status handles_add(weir_registry *registry);

/* --- graphs: handles_rig.c. After a failure nothing more is done until handles_close --- */

struct handles_rig {
	weir_registry *registry;
	weir_description *description;
	weir_graph *graph;
	weir_scheduler *scheduler;
	weir_outcome outcome;
	weir_status status;
	char why[512];
	unsigned workers; /* 0: 4 */
	int64_t worker_spin_ns;
	bool hung;
	bool broken; /* the run may end with an error */
};

extern const char handles_three[];                             /* source -> process -> sink */
void handles_begin(struct handles_rig *rig, const char *json); /* NULL: an empty description */
void handles_put(struct handles_rig *rig, const char *pointer, const char *format, ...) WEIR_PRINTF(3, 4);
bool handles_open(struct handles_rig *rig);
bool handles_start(struct handles_rig *rig);
/*
 * Waits that long for the end. Returns false if the run did not end (which is counted as wrong) or ended
 * with an error.
 */
bool handles_wait(struct handles_rig *rig, int64_t ns);
uint64_t handles_ticks(const struct handles_rig *rig, const char *prefix);
/*
 * Opens the graph and runs it to its end; the entities named "sink..." must see that many frames, all
 * right.
 */
bool handles_runs(struct handles_rig *rig, uint64_t sinks_ticks);
void handles_close(struct handles_rig *rig); /* prints a failure */

#ifdef __cplusplus
}
#endif

#endif
