/*
 * Shared by the files of the CUDA backend: cuda.c (the table), call.c (around each call), device.c
 * (contexts), graph.c (captures), green.c (green contexts), timer.c (timers), driver.c (functions of the
 * driver API). Only these include CUDA's headers.
 *
 * Driver functions are looked up through the runtime: nothing links to libcuda, and an older driver may lack
 * some of them. A CUresult has the number of the matching cudaError_t.
 */
#ifndef WR_STREAMS_CUDA_CUDA_H
#define WR_STREAMS_CUDA_CUDA_H

#include <cuda.h>
#include <cudaTypedefs.h>
#include <cuda_runtime_api.h>

#include "base/thread.h"
#include "streams/backend.h"

/* A function is NULL if this driver lacks it. */
struct wr_cuda_driver {
	int version; /* 13000 is 13.0 */
	PFN_cuStreamWriteValue32_v11070 write;
	PFN_cuPointerGetAttributes_v7000 attributes;
	PFN_cuDeviceGet_v2000 device;
	PFN_cuDeviceGetDevResource_v12040 resource;
	PFN_cuDevSmResourceSplitByCount_v12040 split;
	PFN_cuDevResourceGenerateDesc_v12040 describe;
	PFN_cuGreenCtxCreate_v12040 green_create;
	PFN_cuGreenCtxDestroy_v12040 green_destroy;
	PFN_cuGreenCtxStreamCreate_v12050 green_stream;
	PFN_cuGraphKernelNodeGetParams_v12000 kernel_node;
	PFN_cuFuncGetParamInfo_v12040 function_parameter;
	PFN_cuKernelGetParamInfo_v12040 kernel_parameter;
	PFN_cuFuncGetName_v12030 function_name;
	PFN_cuKernelGetName_v12030 kernel_name;
};

enum wr_cuda_writes_flags { WR_CUDA_FLAGS_UNKNOWN, WR_CUDA_WRITES_FLAGS, WR_CUDA_WRITES_NO_FLAGS };

/* timer.c */
struct wr_cuda_clock {
	_Atomic int state;   /* enum clock_state */
	cudaStream_t stream; /* of the anchors alone */
	cudaEvent_t anchors[2];
	_Atomic int64_t anchored_at[2]; /* when the stream reached them, on the host's clock */
	_Atomic uint32_t phase;         /* 2 g: anchors[g % 2] serves; 2 g + 1: the other one is recorded */
	_Atomic bool renewing;          /* the right to do what follows */
	int64_t recorded_at;            /* the return of the last record of an anchor */
	int64_t latency, overhead;      /* measured once: until an idle stream reaches an anchor; of a pair */
};

struct wr_cuda_device {
	_Atomic bool ready;
	_Atomic int writes_flags; /* enum wr_cuda_writes_flags */
	cudaEvent_t probe;        /* never recorded */
	struct wr_cuda_clock clock;
};

struct wr_cuda {
	int count;
	_Atomic bool lost;
	/* a thread creates a stream of a green context: CUDA allows one at a time per context */
	struct wr_spin creating_green_stream;
	struct wr_mutex lock; /* serializes making contexts; callers hold no other lock */
	struct wr_cuda_driver driver;
	struct wr_cuda_device devices[];
};

struct wr_cuda_scope {
	enum cudaStreamCaptureMode mode;
	int before;   /* the device to restore, or -1 */
	bool restore; /* restore the mode */
};

/* What a thread was before a capture. */
struct wr_cuda_mode {
	enum cudaStreamCaptureMode native;
	int thread; /* enum thread_mode of call.c */
};

/* --- call.c --- */
/* Brackets a CUDA call: sets capture mode and current device. device < 0: the call does not depend on it. */
struct wr_cuda_scope wr_cuda_enter(struct wr_cuda *cuda, int device);
/*
 * The same for driver calls: they need a current context, which
 * a runtime call would set by itself.
 */
struct wr_cuda_scope wr_cuda_enter_driver(struct wr_cuda *cuda, int device);
/* Brackets the user's code: in a capture, what it must not call fails. */
struct wr_cuda_scope wr_cuda_enter_launcher(struct wr_cuda *cuda, int device);
void wr_cuda_leave(struct wr_cuda_scope scope);
/*
 * From begin to end the calling thread is in mode THREAD_LOCAL where no call of weir's is made: calls that a
 * capture must not contain fail.
 */
struct wr_cuda_mode wr_cuda_begin_capture_mode(void);
void wr_cuda_end_capture_mode(struct wr_cuda_mode before);
/* Turns the result of a call into a status; asks the devices if it is sticky. Between enter and leave. */
weir_status wr_cuda_check(struct wr_cuda *cuda, cudaError_t error, const char *what);
/* Fails for an error that concerns one call alone. */
weir_status wr_cuda_fail(cudaError_t error, const char *what);
bool wr_cuda_lost(struct wr_cuda *cuda);

/* --- device.c --- */
weir_status wr_cuda_open(void **out, const struct wr_system_options *options, char *where, size_t room);
void wr_cuda_close(void *self);
/*
 * Makes the device's context if it has none: a context costs time
 * and memory. Thread: any that holds no lock.
 */
weir_status wr_cuda_ready(struct wr_cuda *cuda, int device);

/* --- driver.c --- */
void wr_cuda_driver_find(struct wr_cuda_driver *driver);
weir_status wr_cuda_write_flag(void *self, int device, void *stream, _Atomic uint32_t *word, uint32_t value);
weir_status wr_cuda_can_write_flag(void *self, int device);

/* --- graph.c: captures and graphs, see backend.h --- */
weir_status wr_cuda_capture_begin(void *self, int device, void *stream, void **out);
weir_status wr_cuda_capture_order(void *self, void *capture, void *before, void *after);
weir_status wr_cuda_capture_end(void *self, void *capture, void **out);
size_t wr_cuda_graph_items(const void *graph);
weir_status wr_cuda_graph_launch(void *self, int device, void *stream, void *graph);
void wr_cuda_graph_destroy(void *self, void *graph);
bool wr_cuda_graph_differs(void *self, const void *graph, const void *other, char *what, size_t room);

/* --- timer.c, see backend.h --- */
weir_status wr_cuda_timer_create(void *self, int device, void **out);
weir_status wr_cuda_timer_read(void *self, int device, void *begin, void *end, int64_t *begun,
			       int64_t *ended);
void wr_cuda_clock_finish(struct wr_cuda_clock *clock); /* the device is not lost */

/* green.c: a partition is a CUgreenCtx. */
weir_status wr_cuda_partitions_create(void *self, const struct wr_partitions_spec *spec, void **out,
				      uint32_t *sms);
void wr_cuda_partition_destroy(void *self, void *partition);
weir_status wr_cuda_green_stream(struct wr_cuda *cuda, int device, unsigned flags, int priority,
				 void *partition, void **out);

/* --- streams whose handle was given out --- */

/* They stay usable until the process exits (kept.c). Returns false if there is no memory. Thread: any. */
bool wr_cuda_keep_stream(int device, unsigned flags, int priority, cudaStream_t stream);
/* One that was kept, which is the caller's now; NULL: there is none of this kind. */
cudaStream_t wr_cuda_kept_stream(int device, unsigned flags, int priority);

#endif
