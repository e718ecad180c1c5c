/*
 * What the files of the CUDA backend share: cuda.c (the table), cuda_device.c (contexts), cuda_green.c (green
 * contexts), cuda_driver.c (what only the driver's own interface has). They alone see CUDA's headers.
 *
 * The driver's functions are looked up by the runtime: nothing links to libcuda, and an older driver lacks
 * them one by one. Their results have the numbers of cudaError_t.
 */
#ifndef WR_STREAMS_CUDA_H
#define WR_STREAMS_CUDA_H

#include <cuda.h>
#include <cudaTypedefs.h>
#include <cuda_runtime_api.h>

#include "base/thread.h"
#include "streams/backend.h"

/* NULL: this driver has none. */
struct wr_cuda_driver {
	int version;			/* 13000 is 13.0 */
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
	_Atomic int writes_flags;		/* enum wr_cuda_writes_flags */
	cudaEvent_t probe;		/* never recorded */
};

struct wr_cuda {
	int count;
	_Atomic bool lost;
	/* somebody makes a stream of a green context: its handle is one thread's at a time */
	_Atomic bool greening;
	struct wr_mutex lock;	/* making contexts, one at a time: held by callers of nobody else's locks */
	struct wr_cuda_driver driver;
	struct wr_cuda_device devices[];
};

struct wr_cuda_around {
	enum cudaStreamCaptureMode mode;
	int before;			/* device; -1: not changed */
	bool restore;			/* the mode */
};

/* cuda.c. device < 0: the call does not depend on the current one. */
struct wr_cuda_around wr_cuda_enter(struct wr_cuda *cuda, int device);
/*
 * The same for calls of the driver's interface, which need a
 * current context where the runtime would make one so.
 */
struct wr_cuda_around wr_cuda_enter_driver(struct wr_cuda *cuda, int device);
void wr_cuda_leave(struct wr_cuda_around around);
/* Between enter and leave. */
weir_status wr_cuda_judge(struct wr_cuda *cuda, cudaError_t error, const char *what);
/* Puts what concerns one call alone into words. */
weir_status wr_cuda_refused(cudaError_t error, const char *what);
bool wr_cuda_lost(struct wr_cuda *cuda);

/* cuda_device.c */
weir_status wr_cuda_open(void **out, const struct wr_system_options *options, char *where, size_t room);
void wr_cuda_close(void *self);
/*
 * A context costs time and memory: a device gets one when it
 * is first used. Thread: any that holds no lock.
 */
weir_status wr_cuda_ready(struct wr_cuda *cuda, int device);

/* cuda_driver.c */
void wr_cuda_driver_find(struct wr_cuda_driver *driver);
weir_status wr_cuda_write_flag(void *self, int device, void *stream, _Atomic uint32_t *word, uint32_t value);
weir_status wr_cuda_can_write_flag(void *self, int device);

/* cuda_green.c: a partition is a CUgreenCtx. */
weir_status wr_cuda_partitions_create(void *self, const struct wr_partitions_spec *spec, void **out,
				      uint32_t *sms);
void wr_cuda_partition_destroy(void *self, void *partition);
weir_status wr_cuda_green_stream(struct wr_cuda *cuda, int device, unsigned flags, int priority,
				 void *partition, void **out);

#endif
