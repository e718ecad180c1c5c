/*
 * What the tests of streams/ share: a system on any backend with a waker that counts. On sim each test body
 * is a fiber of a world of its own.
 */
#ifndef TESTS_STREAMS_RIG_H
#define TESTS_STREAMS_RIG_H

#include "base/atomic.h"
#include "streams/flag.h"
#include "streams/host/sim.h"
#include "streams/memory.h"
#include "streams/signal.h"
#include "streams/system.h"

enum { RIG_ENTITIES = 1024 };

struct rig_waker {
	struct wr_waker waker;
	_Atomic int poked[RIG_ENTITIES], kicked, live;
	_Atomic uint64_t fired[RIG_ENTITIES]; /* the last token that poked it */
};

struct rig {
	struct wr_system *system;
	struct wr_sim *sim;
	struct rig_waker waker;
	weir_stream *a, *b, *c;
	int *cell;                 /* on the device; two more cells follow */
	int *copy;                 /* of the cell, in host memory */
	struct wr_backend backend; /* rig_own_backend */
};

extern const char *rig_backend; /* set once, before the tests */
bool rig_is(const char *backend);
bool rig_on_gpu(void);         /* cuda, and no fake one: its times are those of a device */
bool rig_device_answers(void); /* true if there is a device to test */

void rig_run(void (*body)(struct rig *rig), uint64_t seed); /* on an attached system */
void rig_fill_waker(struct rig_waker *waker);
struct wr_backend *rig_own_backend(struct rig *rig); /* a copy of its backend, which it uses from now on */

/* All of these assert success. */
weir_stream *rig_stream(struct rig *rig, const char *owner);
void rig_store(struct rig *rig, weir_stream *stream, int value, int64_t ns); /* after ns; a kernel */
void rig_add(struct rig *rig, weir_stream *stream, int value, int64_t ns);   /* likewise */
/* A kernel that adds 1 to the cell and ends when that is the count; after 5 s it gives up and subtracts 1000.
 */
void rig_meet(struct rig *rig, weir_stream *stream, int count);
weir_fence rig_record(weir_stream *stream);
void rig_wait(struct rig *rig, weir_fence fence);
int rig_read(struct rig *rig, weir_stream *stream); /* the cell after the work on the stream */
void rig_until_poked(struct rig *rig, uint32_t entity);
void rig_until_kicked(struct rig *rig, int kicks); /* a stream that becomes busy may kick, too */
void rig_until_none_outstanding(struct rig *rig);  /* signals; a callback pokes before it counts as fired */
void rig_collect_until_poked(struct rig *rig,
			     uint32_t entity); /* as the loop: whenever something has fired */

/* rig_calls.c. They assert success, too. */
wr_token rig_arm(struct rig *rig, uint32_t entity, weir_fence fence);           /* by a callback */
weir_status rig_arm_inline(struct rig *rig, uint32_t entity, weir_fence fence); /* does not assert */
wr_token rig_arm_flag(struct rig *rig, uint32_t entity, weir_fence fence);
wr_token rig_arm_flags(struct rig *rig, uint32_t entity, const weir_fence *fences, size_t n);
weir_fence rig_record_flag(weir_stream *stream); /* and enqueues the write of its flag */
void rig_poll_until_idle(struct rig *rig);       /* as the poller does, until nothing is armed */
void rig_count_from(struct rig *rig, weir_stream *stream, uint64_t point);
struct wr_stream_pool *rig_pool(struct rig *rig, const char *name, uint32_t reserved, uint32_t max);
weir_stream *rig_take(struct wr_stream_pool *pool);
weir_stream *rig_share(weir_stream *stream);
uint32_t rig_stream_count(struct rig *rig);

struct rig_payload {
	struct wr_deferred_free retired;
	weir_fence fences[2];
	int released;
};

void rig_count_release(struct wr_deferred_free *retired); /* of a rig_payload */
/* Lists it among the deferred frees. Returns true if it was released at once. */
bool rig_defer(struct rig *rig, struct rig_payload *payload, weir_fence fence, bool destructor);

extern const weir_kernel rig_sleep;  /* does nothing for the ns of a rig_work */
extern const weir_kernel rig_broken; /* loses the device */
extern const weir_kernel rig_places; /* cuda: marks the multiprocessors that run it in a uint32_t[8] */

/* cuda.c: the rig's kernels for CUDA. */
int rig_cuda_store(void *stream, const void *arguments);
int rig_cuda_add(void *stream, const void *arguments);
int rig_cuda_meet(void *stream, const void *arguments);
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
