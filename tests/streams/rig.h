/*
 * What the tests of streams/ share: a system on any backend with a waker that counts. On sim each test body
 * is a fiber of a world of its own.
 */
#ifndef TESTS_STREAMS_RIG_H
#define TESTS_STREAMS_RIG_H

#include "base/atomic.h"
#include "streams/device.h"
#include "streams/host/sim.h"
#include "streams/system.h"

enum { RIG_ENTITIES = 1024 };

struct rig_waker {
	struct wr_waker waker;
	_Atomic int poked[RIG_ENTITIES], kicked, live;
};

struct rig {
	struct wr_system *system;
	struct wr_sim *sim;
	struct rig_waker waker;
	weir_stream *a, *b, *c;
	int *cell; /* on the device; two more cells follow */
	int *copy; /* of the cell, in host memory */
};

extern const char *rig_backend; /* set once, before the tests */
bool rig_is(const char *backend);
bool rig_device_answers(void); /* true if there is a device to test */

void rig_run(void (*body)(struct rig *rig), uint64_t seed); /* on an attached system */
void rig_fill_waker(struct rig_waker *waker);

/* All of these assert success. */
weir_stream *rig_stream(struct rig *rig, const char *owner);
void rig_store(struct rig *rig, weir_stream *stream, int value, int64_t ns); /* after ns; a kernel */
void rig_add(struct rig *rig, weir_stream *stream, int value, int64_t ns);   /* likewise */
weir_fence rig_record(weir_stream *stream);
void rig_wait(struct rig *rig, weir_fence fence);
int rig_read(struct rig *rig, weir_stream *stream); /* the cell after the work on the stream */
void rig_until_poked(struct rig *rig, uint32_t entity);
void rig_until_kicked(struct rig *rig, int kicks);

extern const weir_kernel rig_broken; /* loses the device */
extern const weir_kernel rig_places; /* cuda: marks the multiprocessors that run it in a uint32_t[8] */

/* cuda.c: the rig's kernels for CUDA. */
int rig_cuda_store(void *stream, const void *arguments);
int rig_cuda_add(void *stream, const void *arguments);
int rig_cuda_break(void *stream, const void *arguments);
int rig_cuda_places(void *stream, const void *arguments);
bool rig_cuda_capture(void *stream, bool begin); /* in global mode; false: it was invalidated */

struct rig_work {
	int *cell;
	int64_t ns;
	int value;
};

/* A test is a body that gets a rig. The seed matters on sim only. */
#define RIG_BODY(name)                                                                                       \
	static void name##_body(struct rig *);                                                               \
	static void name(void **state)                                                                       \
	{                                                                                                    \
		(void)state;                                                                                 \
		rig_run(name##_body, 7);                                                                     \
	}                                                                                                    \
	static void name##_body(struct rig *rig)

/* For a backend whose streams are all being captured. */
bool rig_in_capture(void *self, int device, void *stream);

#endif
