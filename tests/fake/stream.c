/* Streams: each is a thread, which performs what is in its ring, in order. */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "inside.h"

/* --- operations --- */

struct fake_operation *fake_operation_new(enum fake_work work)
{
	struct fake_operation *operation = calloc(1, sizeof *operation);

	if (!operation)
		abort();
	operation->work = work;
	return operation;
}

void fake_operation_free(struct fake_operation *operation)
{
	if (operation->work == FAKE_COPY)
		free(operation->copy.staged);
	for (int i = 0; operation->work == FAKE_KERNEL && i < FAKE_PARAMETERS; i++)
		free(operation->run.parameters[i]);
	free(operation);
}

static void copy_rows(const struct fake_copy *copy)
{
	enum fake_memory kind;
	int device;

	for (size_t row = 0; row < copy->rows; row++) {
		char *to = (char *)copy->to + row * copy->to_stride;
		const char *from = copy->staged ? (char *)copy->staged + row * copy->bytes
						: (const char *)copy->from + row * copy->from_stride;

		if (!fake_memory_of(to, copy->bytes, "the stream writes", &kind, &device) ||
		    (!copy->staged && !fake_memory_of(from, copy->bytes, "the stream reads", &kind, &device)))
			return;
		memmove(to, from, copy->bytes);
	}
}

static void fill(const struct fake_fill *fill)
{
	enum fake_memory kind;
	int device;

	if (fake_memory_of(fill->to, fill->bytes, "the stream writes", &kind, &device))
		memset(fill->to, fill->value, fill->bytes);
}

static void run_kernel(const struct fake_run *run, const struct fake_place *place)
{
	int error = run->kernel->run(run->parameters, place);

	if (error)
		fake_lose((cudaError_t)error);
}

void fake_perform(const struct fake_operation *operation, const struct fake_place *place)
{
	switch (operation->work) {
	case FAKE_CALL:
		fake_enter_host_function(true);
		operation->call.fn(operation->call.arg);
		fake_enter_host_function(false);
		break;
	case FAKE_COPY:
		copy_rows(&operation->copy);
		break;
	case FAKE_FILL:
		fill(&operation->fill);
		break;
	case FAKE_KERNEL:
		run_kernel(&operation->run, place);
		break;
	case FAKE_WRITE: /* after all earlier writes of the stream, in the host's view */
		atomic_store_explicit(operation->write.word, operation->write.value, memory_order_release);
		break;
	case FAKE_RECORD:
		fake_record_finish(operation->event.event, operation->event.number);
		break;
	case FAKE_WAIT:
		fake_record_wait(operation->event.event, operation->event.number);
		break;
	case FAKE_LAUNCH:
		fake_exec_run(operation->exec, place);
		break;
	case FAKE_END:
		break;
	}
}

/* --- the thread --- */

static struct fake_operation *take(struct fake_stream *stream, uint64_t number)
{
	_Atomic(struct fake_operation *) *place = &stream->ring[number % FAKE_RING];
	struct fake_operation *operation;

	for (;;) {
		uint32_t seen = fake_get(&stream->work.rung);

		atomic_signal_fence(memory_order_seq_cst);
		operation = atomic_load_explicit(place, memory_order_acquire);
		if (operation)
			break;
		fake_listen(&stream->work, seen);
	}
	fake_set(place, NULL);
	return operation;
}

void fake_place_of(struct fake_stream *stream, struct fake_place *out)
{
	for (int i = 0; i < FAKE_SM_WORDS; i++)
		out->sms[i] = fake_get(&stream->sms[i]);
}

/* On a lost device nothing is performed, and nothing ends. */
static bool perform_next(struct fake_stream *stream, uint64_t number)
{
	struct fake_operation *operation = take(stream, number);
	enum fake_work work = operation->work;
	struct fake_place place;

	fake_place_of(stream, &place);
	fake_be_late(number * 4096 + fake_row_of(FAKE_STREAM, stream), 4);
	for (size_t i = 0; i < operation->points_count; i++)
		fake_point_wait(operation->points[i]);
	if (!fake_lost())
		fake_perform(operation, &place);
	fake_operation_free(operation);
	if (fake_lost() && work != FAKE_END)
		return true;
	atomic_store_explicit(&stream->finished, number + 1, memory_order_release);
	fake_ring(&stream->done);
	return work != FAKE_END;
}

static void *perform_all(void *arg)
{
	struct fake_stream *stream = arg;
	uint64_t number = fake_get(&stream->finished);

	while (perform_next(stream, number))
		number++;
	fake_set(&stream->object.state, FAKE_GONE);
	return NULL;
}

/* Its signals are blocked: the program's handlers run on the program's threads. */
void fake_thread_start(void *(*run)(void *arg), void *arg)
{
	pthread_attr_t attributes;
	sigset_t all, before;
	pthread_t thread;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	pthread_attr_init(&attributes);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	if (pthread_create(&thread, &attributes, run, arg))
		abort();
	pthread_attr_destroy(&attributes);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

struct fake_stream *fake_stream_new(int device, bool blocking, const uint32_t *sms)
{
	struct fake_stream *stream = fake_object_new(FAKE_STREAM);

	if (!stream)
		return NULL;
	fake_set(&stream->device, device);
	fake_set(&stream->blocking, blocking);
	fake_set(&stream->legacy, false);
	fake_set(&stream->capture, NULL);
	for (int i = 0; i < FAKE_SM_WORDS; i++)
		fake_set(&stream->sms[i], sms ? sms[i] : i < FAKE_SMS / 32 ? ~0u : (1u << FAKE_SMS % 32) - 1);
	/* a stream that was lost with its device has left what it never finished */
	fake_set(&stream->finished, fake_get(&stream->enqueued));
	fake_thread_start(perform_all, stream);
	return stream;
}

/* --- the default stream --- */

enum { DEVICES = 16 };
static _Atomic(struct fake_stream *) legacy[DEVICES];
static struct fake_lock legacy_lock[DEVICES]; /* held while an operation gets its place among those that wait
						 for each other */

static struct fake_stream *legacy_of(int device)
{
	fake_lock(&legacy_lock[device]);
	if (!fake_get(&legacy[device])) {
		struct fake_stream *stream = fake_stream_new(device, false, NULL);

		fake_set(&stream->legacy, true);
		fake_set(&legacy[device], stream);
	}
	fake_unlock(&legacy_lock[device]);
	return fake_get(&legacy[device]);
}

struct fake_stream *fake_stream_of(cudaStream_t handle)
{
	if (!handle || handle == cudaStreamLegacy)
		return legacy_of(fake_device());
	if (handle == cudaStreamPerThread) {
		fake_problem("the fake has no cudaStreamPerThread");
		return NULL;
	}
	return fake_object_of(FAKE_STREAM, handle);
}

/* --- enqueueing --- */

struct fake_point fake_stream_end(struct fake_stream *stream)
{
	return (struct fake_point){stream, fake_get(&stream->enqueued)};
}

cudaError_t fake_point_pass(struct fake_point point)
{
	while (fake_get(&point.stream->finished) < point.number) {
		uint32_t seen = fake_get(&point.stream->done.rung);

		atomic_signal_fence(memory_order_seq_cst);
		if (fake_lost())
			return fake_lost();
		if (fake_get(&point.stream->finished) < point.number)
			fake_listen(&point.stream->done, seen);
	}
	return fake_lost();
}

cudaError_t fake_point_wait(struct fake_point point)
{
	fake_point_pass(point);
	(void)atomic_load_explicit(&point.stream->finished, memory_order_acquire);
	return fake_lost();
}

static void wait_for(struct fake_operation *operation, struct fake_stream *stream)
{
	struct fake_point point = fake_stream_end(stream);

	if (!point.number)
		return;
	if (operation->points_count == sizeof operation->points / sizeof *operation->points)
		fake_problem("more than %zu blocking streams are busy", operation->points_count);
	else
		operation->points[operation->points_count++] = point;
}

static bool is_live(const struct fake_stream *stream)
{
	unsigned state = fake_get(&stream->object.state);

	return state == FAKE_LIVE || state == FAKE_LEAVING;
}

static void wait_for_others(struct fake_operation *operation, struct fake_stream *stream)
{
	int device = fake_get(&stream->device);
	struct fake_stream *other;

	if (fake_get(&stream->blocking) && fake_get(&legacy[device]))
		wait_for(operation, fake_get(&legacy[device]));
	for (unsigned i = 0; fake_get(&stream->legacy) && (fake_stream_row(i, &other), other); i++)
		if (is_live(other) && fake_get(&other->blocking) && fake_get(&other->device) == device)
			wait_for(operation, other);
}

static void put(struct fake_stream *stream, struct fake_operation *operation)
{
	_Atomic(struct fake_operation *) *place;

	fake_lock(&stream->lock);
	place = &stream->ring[fake_get(&stream->enqueued) % FAKE_RING];
	while (fake_get(place) && !fake_lost()) {
		fake_unlock(&stream->lock);
		nanosleep(&(struct timespec){0, 50000}, NULL);
		fake_lock(&stream->lock);
		place = &stream->ring[fake_get(&stream->enqueued) % FAKE_RING];
	}
	atomic_store_explicit(place, operation, memory_order_release);
	fake_add(&stream->enqueued, 1);
	fake_unlock(&stream->lock);
	fake_ring(&stream->work);
}

cudaError_t fake_enqueue(struct fake_stream *stream, struct fake_operation *operation)
{
	bool ordered = fake_get(&stream->legacy) || fake_get(&stream->blocking);
	int device = fake_get(&stream->device);

	if (fake_stream_captured(stream))
		return fake_capture_add(stream, operation);
	if (fake_capture_implicit(stream)) {
		fake_operation_free(operation);
		return cudaErrorStreamCaptureImplicit;
	}
	if (ordered)
		fake_lock(&legacy_lock[device]);
	if (ordered)
		wait_for_others(operation, stream);
	put(stream, operation);
	if (ordered)
		fake_unlock(&legacy_lock[device]);
	return cudaSuccess;
}

cudaError_t fake_streams_wait(void)
{
	struct fake_stream *stream;
	cudaError_t error = cudaSuccess;

	for (unsigned i = 0; !error && (fake_stream_row(i, &stream), stream); i++)
		if (is_live(stream) && fake_get(&stream->device) == fake_device())
			error = fake_point_wait(fake_stream_end(stream));
	return error;
}

/* --- the calls --- */

static cudaError_t create(cudaStream_t *out, unsigned flags)
{
	struct fake_stream *stream;

	if (!out || flags & ~(unsigned)cudaStreamNonBlocking)
		return cudaErrorInvalidValue;
	stream = fake_stream_new(fake_device(), !(flags & cudaStreamNonBlocking), NULL);
	if (!stream)
		return cudaErrorMemoryAllocation;
	*out = fake_handle_of(FAKE_STREAM, stream);
	return cudaSuccess;
}

cudaError_t cudaStreamCreate(cudaStream_t *out)
{
	cudaError_t error = fake_begin(FAKE_PLAIN);

	return fake_end(error ? error : create(out, cudaStreamDefault));
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *out, unsigned flags)
{
	cudaError_t error = fake_begin(FAKE_PLAIN);

	return fake_end(error ? error : create(out, flags));
}

/* A priority outside the range is clamped; the fake has no use for it. */
cudaError_t cudaStreamCreateWithPriority(cudaStream_t *out, unsigned flags, int priority)
{
	cudaError_t error = fake_begin(FAKE_PLAIN);

	(void)priority;
	return fake_end(error ? error : create(out, flags));
}

static cudaError_t destroy(cudaStream_t handle)
{
	struct fake_stream *stream = fake_object_of(FAKE_STREAM, handle);
	struct fake_operation *end;

	if (!stream)
		return cudaErrorInvalidResourceHandle;
	fake_capture_leave(stream);
	end = fake_operation_new(FAKE_END);
	fake_object_end(&stream->object, FAKE_LEAVING);
	put(stream, end);
	return cudaSuccess;
}

/* Returns at once; what is enqueued is performed all the same. */
cudaError_t cudaStreamDestroy(cudaStream_t handle)
{
	cudaError_t error = fake_begin(FAKE_ENDS);

	return fake_end(error ? error : destroy(handle));
}

static cudaError_t synchronize(struct fake_stream *stream)
{
	if (!stream)
		return cudaErrorInvalidResourceHandle;
	if (fake_stream_captured(stream)) {
		fake_capture_spoil(stream);
		return cudaErrorStreamCaptureUnsupported;
	}
	return fake_capture_implicit(stream) ? cudaErrorStreamCaptureImplicit
					     : fake_point_wait(fake_stream_end(stream));
}

cudaError_t cudaStreamSynchronize(cudaStream_t handle)
{
	cudaError_t error = fake_begin(FAKE_UNSAFE | FAKE_ENDS);

	return fake_end(error ? error : synchronize(fake_stream_of(handle)));
}

static cudaError_t query(struct fake_stream *stream)
{
	struct fake_point end;

	if (!stream)
		return cudaErrorInvalidResourceHandle;
	if (fake_stream_captured(stream)) {
		fake_capture_spoil(stream);
		return cudaErrorStreamCaptureUnsupported;
	}
	end = fake_stream_end(stream);
	return fake_get(&stream->finished) < end.number ? cudaErrorNotReady : fake_point_wait(end);
}

cudaError_t cudaStreamQuery(cudaStream_t handle)
{
	cudaError_t error = fake_begin(FAKE_UNSAFE);

	return fake_end(error ? error : query(fake_stream_of(handle)));
}

static cudaError_t launch_host_function(struct fake_stream *stream, cudaHostFn_t fn, void *arg)
{
	struct fake_operation *operation;

	if (!stream)
		return cudaErrorInvalidResourceHandle;
	operation = fake_operation_new(FAKE_CALL);
	operation->call.fn = fn;
	operation->call.arg = arg;
	return fake_enqueue(stream, operation);
}

cudaError_t cudaLaunchHostFunc(cudaStream_t handle, cudaHostFn_t fn, void *arg)
{
	cudaError_t error = fake_begin(FAKE_PLAIN);

	return fake_end(error ? error : launch_host_function(fake_stream_of(handle), fn, arg));
}

cudaError_t cudaDeviceSynchronize(void)
{
	cudaError_t error = fake_begin(FAKE_UNSAFE | FAKE_ENDS);

	return fake_end(error ? error : fake_streams_wait());
}
