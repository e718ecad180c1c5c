/*
 * Shared by the files of the CUDA backend: cuda.c (the table), device.c (contexts), green.c (green
 * contexts), driver.c (functions of the driver API). Only these include CUDA's headers.
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
	PFN_cuDeviceGet_v2000 device;
	PFN_cuDeviceGetDevResource_v12040 resource;
	PFN_cuDevSmResourceSplitByCount_v12040 split;
	PFN_cuDevResourceGenerateDesc_v12040 describe;
	PFN_cuGreenCtxCreate_v12040 green_create;
	PFN_cuGreenCtxDestroy_v12040 green_destroy;
	PFN_cuGreenCtxStreamCreate_v12050 green_stream;
};

enum wr_cuda_writes_flags { WR_CUDA_FLAGS_UNKNOWN, WR_CUDA_WRITES_FLAGS, WR_CUDA_WRITES_NO_FLAGS };

struct wr_cuda_device {
	_Atomic bool ready;
	_Atomic int writes_flags; /* enum wr_cuda_writes_flags */
	cudaEvent_t probe;        /* never recorded */
};

struct wr_cuda {
	int count;
	_Atomic bool lost;
	/* a thread creates a stream of a green context: CUDA allows one at a time per context */
	_Atomic bool creating_green_stream;
	struct wr_mutex lock; /* serializes making contexts; callers hold no other lock */
	struct wr_cuda_driver driver;
	struct wr_cuda_device devices[];
};

struct wr_cuda_scope {
	enum cudaStreamCaptureMode mode;
	int before;   /* the device to restore, or -1 */
	bool restore; /* restore the mode */
};

/* --- cuda.c --- */
/* Brackets a CUDA call: sets capture mode and current device. device < 0: the call does not depend on it. */
struct wr_cuda_scope wr_cuda_enter(struct wr_cuda *cuda, int device);
/*
 * The same for driver calls: they need a current context, which
 * a runtime call would set by itself.
 */
struct wr_cuda_scope wr_cuda_enter_driver(struct wr_cuda *cuda, int device);
void wr_cuda_leave(struct wr_cuda_scope scope);
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

/* green.c: a partition is a CUgreenCtx. */
weir_status wr_cuda_partitions_create(void *self, const struct wr_partitions_spec *spec, void **out,
				      uint32_t *sms);
void wr_cuda_partition_destroy(void *self, void *partition);
weir_status wr_cuda_green_stream(struct wr_cuda *cuda, int device, unsigned flags, int priority,
				 void *partition, void **out);

#endif
