/* Events: each record has a number and a place, which the stream's thread releases and a wait acquires. */
#include <stdlib.h>
#include <time.h>

#include "inside.h"

static int64_t now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

/* --- records --- */

/* Acquires only what the record released: the look before does not order. */
bool fake_record_done(struct fake_event *event, uint64_t number)
{
	_Atomic uint64_t *place = &event->done[number % FAKE_RECORDS];

	return fake_get(place) >= number && atomic_load_explicit(place, memory_order_acquire) >= number;
}

void fake_record_finish(struct fake_event *event, uint64_t number)
{
	_Atomic uint64_t *place = &event->done[number % FAKE_RECORDS];

	fake_set(&event->at[number % FAKE_RECORDS], now());
	if (fake_get(place) < number)
		atomic_store_explicit(place, number, memory_order_release);
	fake_ring(&event->bell);
}

cudaError_t fake_record_wait(struct fake_event *event, uint64_t number)
{
	for (;;) {
		uint32_t seen = fake_get(&event->bell.rung);

		atomic_signal_fence(memory_order_seq_cst);
		if (fake_record_done(event, number) || fake_lost())
			return fake_lost();
		fake_listen(&event->bell, seen);
	}
}

/* --- the calls --- */

static cudaError_t create(cudaEvent_t *out, unsigned flags)
{
	struct fake_event *event;

	if (!out || flags & ~(unsigned)(cudaEventDisableTiming | cudaEventBlockingSync))
		return cudaErrorInvalidValue;
	event = fake_object_new(FAKE_EVENT);
	if (!event)
		return cudaErrorMemoryAllocation;
	fake_set(&event->timed, !(flags & cudaEventDisableTiming));
	fake_set(&event->first, fake_get(&event->recorded));
	fake_set(&event->frontier, NULL);
	*out = fake_handle_of(FAKE_EVENT, event);
	return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t *out)
{
	cudaError_t error = fake_begin(FAKE_PLAIN);

	return fake_end(error ? error : create(out, cudaEventDefault));
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *out, unsigned flags)
{
	cudaError_t error = fake_begin(FAKE_PLAIN);

	return fake_end(error ? error : create(out, flags));
}

/* A record or a wait that is pending goes on with its number. */
static cudaError_t destroy(cudaEvent_t handle)
{
	struct fake_event *event = fake_object_of(FAKE_EVENT, handle);

	if (!event)
		return cudaErrorInvalidResourceHandle;
	fake_event_forget(event);
	fake_object_end(&event->object, FAKE_GONE);
	return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t handle)
{
	cudaError_t error = fake_begin(FAKE_ENDS);

	return fake_end(error ? error : destroy(handle));
}

static cudaError_t enqueue(struct fake_stream *stream, enum fake_work work, struct fake_event *event,
			   uint64_t number)
{
	struct fake_operation *operation = fake_operation_new(work);

	operation->event.event = event;
	operation->event.number = number;
	return fake_enqueue(stream, operation);
}

static cudaError_t record(cudaEvent_t handle, struct fake_stream *stream)
{
	struct fake_event *event = fake_object_of(FAKE_EVENT, handle);
	uint64_t number;
	cudaError_t error;

	if (!event || !stream)
		return cudaErrorInvalidResourceHandle;
	if (fake_stream_captured(stream))
		return fake_capture_record(stream, event);
	if (fake_capture_implicit(stream))
		return cudaErrorStreamCaptureImplicit;
	fake_event_forget(event);
	fake_lock(&event->lock);
	number = fake_add(&event->recorded, 1) + 1;
	if (number - fake_get(&event->first) > FAKE_RECORDS)
		fake_record_wait(event, number - FAKE_RECORDS);
	error = enqueue(stream, FAKE_RECORD, event, number);
	fake_unlock(&event->lock);
	return error;
}

cudaError_t cudaEventRecord(cudaEvent_t handle, cudaStream_t stream)
{
	cudaError_t error = fake_begin(FAKE_PLAIN);

	return fake_end(error ? error : record(handle, fake_stream_of(stream)));
}

static cudaError_t wait(struct fake_stream *stream, cudaEvent_t handle)
{
	struct fake_event *event = fake_object_of(FAKE_EVENT, handle);
	uint64_t number;
	cudaError_t error = cudaSuccess;

	if (!event || !stream)
		return cudaErrorInvalidResourceHandle;
	if (fake_get(&event->frontier) || fake_stream_captured(stream))
		return fake_capture_wait(stream, event);
	fake_lock(&event->lock);
	number = fake_get(&event->recorded);
	if (number != fake_get(&event->first))
		error = enqueue(stream, FAKE_WAIT, event, number);
	fake_unlock(&event->lock);
	return error;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t handle, unsigned flags)
{
	cudaError_t error = fake_begin(FAKE_PLAIN);

	(void)flags;
	return fake_end(error ? error : wait(fake_stream_of(stream), handle));
}

static cudaError_t query(cudaEvent_t handle)
{
	struct fake_event *event = fake_object_of(FAKE_EVENT, handle);
	uint64_t number;

	if (!event)
		return cudaErrorInvalidResourceHandle;
	if (fake_get(&event->frontier))
		return cudaErrorCapturedEvent;
	number = fake_get(&event->recorded);
	return number == fake_get(&event->first) || fake_record_done(event, number) ? fake_lost()
										    : cudaErrorNotReady;
}

/* One that was never recorded is complete. */
cudaError_t cudaEventQuery(cudaEvent_t handle)
{
	cudaError_t error = fake_begin(FAKE_UNSAFE);

	return fake_end(error ? error : query(handle));
}

static cudaError_t synchronize(cudaEvent_t handle)
{
	struct fake_event *event = fake_object_of(FAKE_EVENT, handle);
	uint64_t number;

	if (!event)
		return cudaErrorInvalidResourceHandle;
	number = fake_get(&event->recorded);
	return number == fake_get(&event->first) ? cudaSuccess : fake_record_wait(event, number);
}

cudaError_t cudaEventSynchronize(cudaEvent_t handle)
{
	cudaError_t error = fake_begin(FAKE_UNSAFE | FAKE_ENDS);

	return fake_end(error ? error : synchronize(handle));
}

static cudaError_t elapsed(float *ms, cudaEvent_t begin, cudaEvent_t end)
{
	struct fake_event *events[] = {fake_object_of(FAKE_EVENT, begin), fake_object_of(FAKE_EVENT, end)};
	int64_t at[2];

	for (int i = 0; i < 2; i++) {
		uint64_t number = events[i] ? fake_get(&events[i]->recorded) : 0;

		if (!events[i] || !fake_get(&events[i]->timed) || number == fake_get(&events[i]->first))
			return cudaErrorInvalidResourceHandle;
		if (!fake_record_done(events[i], number))
			return cudaErrorNotReady;
		at[i] = fake_get(&events[i]->at[number % FAKE_RECORDS]);
	}
	*ms = (float)((double)(at[1] - at[0]) / 1e6);
	return cudaSuccess;
}

cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t begin, cudaEvent_t end)
{
	cudaError_t error = fake_begin(FAKE_PLAIN);

	return fake_end(error ? error : elapsed(ms, begin, end));
}
