/* Shared by the files of the fake. */
#ifndef TESTS_FAKE_INSIDE_H
#define TESTS_FAKE_INSIDE_H

#include <cuda.h>
#include <cuda_runtime_api.h>

#include "fake.h"
#include "quiet.h"

/* --- check.c: handles, and what is wrong with them --- */

enum fake_kind { FAKE_STREAM, FAKE_EVENT, FAKE_GRAPH, FAKE_EXEC, FAKE_GREEN, FAKE_KINDS };
enum fake_state { FAKE_FREE, FAKE_LIVE, FAKE_LEAVING, FAKE_GONE }; /* leaving: a stream with work left */

/* The first member of what has a handle. A handle has its kind, row and generation: an old one is known. */
struct fake_object {
	_Atomic unsigned state, generation;
	_Atomic(const char *) ended_by; /* the call; and the address that it returned to */
	_Atomic(void *) ended_at;
};

void *fake_object_new(enum fake_kind kind); /* NULL: there are too many, which was told */
void fake_object_end(struct fake_object *object, enum fake_state state);
void *fake_object_of(enum fake_kind kind, const void *handle); /* NULL: it is not alive, which was told */
void *fake_handle_of(enum fake_kind kind, const void *object);
unsigned fake_row_of(enum fake_kind kind, const void *object);
void fake_problem(const char *format, ...) __attribute__((format(printf, 1, 2)));
void fake_address_text(void *address, char *text, size_t room);

/* --- fault.c: what every call begins and ends with --- */

enum fake_call {
	FAKE_PLAIN = 0,
	FAKE_UNSAFE = 1,     /* a capture prohibits it */
	FAKE_ENDS = 2,       /* it ends an object, or waits for the device, also if it is to fail */
	FAKE_NO_CONTEXT = 4, /* makes no context current */
	FAKE_ALWAYS = 8,     /* works on a lost device, and in a host function */
};

cudaError_t fake_begin_call(const char *name, void *from, unsigned flags);
cudaError_t fake_end_call(cudaError_t error);
#define fake_begin(flags) fake_begin_call(__func__, __builtin_return_address(0), flags)
#define fake_end(error)   fake_end_call(error)

void fake_lose(cudaError_t error); /* for good */
cudaError_t fake_lost(void);
const char *fake_call_name(void); /* of this thread */
void *fake_call_from(void);
bool fake_has_context(void);
void fake_enter_host_function(bool inside);
void fake_be_late(uint64_t what, unsigned of); /* one of that many times, if it is asked for */
extern _Thread_local cudaError_t fake_last_error;

/* --- device.c --- */
int fake_devices(void);
int fake_device(void); /* the thread's current one */

/* --- memory.c --- */
enum fake_memory { FAKE_PAGEABLE, FAKE_PINNED, FAKE_ON_DEVICE, FAKE_MANAGED };
/* What is there. Tells of memory that was freed, and of bytes beyond its end; `what`: what is done to it. */
bool fake_memory_of(const void *memory, size_t bytes, const char *what, enum fake_memory *kind, int *device);
/* The allocation on a device that has the byte; else it is left alone. */
struct fake_range {
	uint64_t id;
	uintptr_t at;
	size_t bytes;
};
void fake_memory_range(const void *memory, struct fake_range *out);
unsigned fake_memory_left(void (*each)(const void *memory, size_t bytes, const char *call, void *from));

/* --- stream.c --- */

enum fake_work {
	FAKE_END,
	FAKE_CALL,
	FAKE_COPY,
	FAKE_FILL,
	FAKE_KERNEL,
	FAKE_RECORD,
	FAKE_WAIT,
	FAKE_WRITE,
	FAKE_LAUNCH
};

struct fake_event;
struct fake_exec;
struct fake_stream;

/* A place in a stream's order. */
struct fake_point {
	struct fake_stream *stream;
	uint64_t number;
};

struct fake_copy {
	void *to;
	const void *from;
	size_t to_stride, from_stride, bytes, rows;
	void *staged; /* own memory: what pageable memory held at the call */
};

struct fake_fill {
	void *to;
	int value;
	size_t bytes;
};

struct fake_run {
	const struct fake_kernel *kernel;
	dim3 grid, block;
	size_t shared;
	void *parameters[FAKE_PARAMETERS]; /* own memory */
};

struct fake_operation {
	enum fake_work work;
	union {
		struct {
			cudaHostFn_t fn;
			void *arg;
		} call;
		struct fake_copy copy;
		struct fake_fill fill;
		struct fake_run run;
		struct {
			struct fake_event *event;
			uint64_t number;
		} event; /* FAKE_RECORD, FAKE_WAIT */
		struct {
			_Atomic uint32_t *word;
			uint32_t value;
		} write;
		struct fake_exec *exec;
	};
	size_t points_count;
	struct fake_point points[64]; /* what it waits for besides its stream */
};

enum { FAKE_RING = 1024 }; /* a launch behind as many operations blocks its thread, as in CUDA */

struct fake_stream {
	struct fake_object object;
	_Atomic int device;
	_Atomic bool blocking, legacy;
	_Atomic uint32_t sms[FAKE_SM_WORDS];
	_Atomic uint64_t enqueued, finished; /* finished: released by the stream's thread */
	_Atomic(struct fake_operation *) ring[FAKE_RING];
	struct fake_lock lock;
	struct fake_bell work, done;
	_Atomic(struct fake_capture *) capture;
};

void fake_thread_start(void *(*run)(void *arg), void *arg); /* detached: the process may end while it works */
struct fake_stream *fake_stream_new(int device, bool blocking, const uint32_t *sms);
struct fake_stream *fake_stream_of(cudaStream_t handle);
void fake_stream_row(unsigned row, struct fake_stream **out);
/* Takes the operation. Into the capture, if the stream has one. */
cudaError_t fake_enqueue(struct fake_stream *stream, struct fake_operation *operation);
struct fake_operation *fake_operation_new(enum fake_work work);
void fake_operation_free(struct fake_operation *operation);
struct fake_point fake_stream_end(struct fake_stream *stream);
cudaError_t fake_point_wait(struct fake_point point); /* blocks the caller; also a stream's thread */
cudaError_t fake_point_pass(struct fake_point point); /* the same, but what precedes it is not ordered */
cudaError_t fake_streams_wait(void);
void fake_perform(const struct fake_operation *operation, const struct fake_place *place);
void fake_place_of(struct fake_stream *stream, struct fake_place *out);

/* --- event.c --- */

enum { FAKE_RECORDS = 32 }; /* of one event that may be pending at once */

struct fake_event {
	struct fake_object object;
	struct fake_lock lock; /* the latest record is the last one in its stream's ring, too */
	_Atomic bool timed;
	_Atomic uint64_t first, recorded;    /* records are numbered; none of this event if they are equal */
	_Atomic uint64_t done[FAKE_RECORDS]; /* by number; released by the stream's thread */
	_Atomic int64_t at[FAKE_RECORDS];
	struct fake_bell bell;
	_Atomic(struct fake_frontier *) frontier; /* if the latest record was captured */
};

bool fake_record_done(struct fake_event *event, uint64_t number);
void fake_record_finish(struct fake_event *event, uint64_t number);
cudaError_t fake_record_wait(struct fake_event *event, uint64_t number);

/* --- capture.c, graph.c --- */

struct fake_node {
	struct fake_operation *operation;
	unsigned lane; /* what one stream captured is in one lane, in order */
	size_t count, *before;
};

struct fake_nodes {
	size_t count, room;
	struct fake_node **items;
	unsigned lanes;
};

struct fake_graph {
	struct fake_object object;
	_Atomic(struct fake_nodes *) nodes;
};

struct fake_exec {
	struct fake_object object;
	_Atomic(struct fake_nodes *) nodes;
	_Atomic unsigned users; /* launches that are not complete, and the handle */
	_Atomic(struct fake_stream *)
		stream; /* of the latest launch: launches of one executable follow each other */
	_Atomic uint64_t number;
};

struct fake_green {
	struct fake_object object;
	_Atomic int device;
	_Atomic uint32_t sms[FAKE_SM_WORDS];
};

bool fake_capture_prohibits(void); /* what is unsafe; it invalidates the capture */
bool fake_stream_captured(struct fake_stream *stream);
void fake_capture_spoil(struct fake_stream *stream);
void fake_capture_leave(struct fake_stream *stream);    /* it is destroyed */
bool fake_capture_implicit(struct fake_stream *stream); /* it would wait for a stream that captures */
cudaError_t fake_capture_add(struct fake_stream *stream, struct fake_operation *operation);
cudaError_t fake_capture_record(struct fake_stream *stream, struct fake_event *event);
cudaError_t fake_capture_wait(struct fake_stream *stream, struct fake_event *event);
void fake_event_forget(struct fake_event *event);     /* that it was captured */
cudaGraph_t fake_graph_new(struct fake_nodes *nodes); /* takes them; NULL: there are too many graphs */
void fake_nodes_free(struct fake_nodes *nodes);
struct fake_node *fake_nodes_add(struct fake_nodes *nodes, struct fake_operation *operation, unsigned lane);
void fake_exec_run(struct fake_exec *exec, const struct fake_place *place);

/* --- kernel.c --- */
const struct fake_kernel *fake_kernel_of(const void *handle);

#endif
