/*
 * Timers of the CUDA backend: events with timing, put on the clock of the host.
 *
 * CUDA gives the time between two events of a device, as a float of milliseconds, which has seven digits. So
 * each device has an anchor: an event on a stream of its own, idle but for anchors, whose time on the host's
 * clock is known. A time of the device is the anchor's plus the time since the anchor, which is kept shorter
 * than about a second: its error is below 0.1 us, and the two clocks drift by less.
 *
 * A reader that finds the anchor a second old records the other one and looks for it, for at most LOOK_NS; if
 * it was not reached by then, a later reader publishes it. `phase` counts both steps. A reader uses the
 * anchor of its phase and then checks that this one was not recorded again meanwhile, which is so while the
 * phase has not passed the next even one. The thread that has `renewing` alone changes the phase.
 *
 * When the stream reached an anchor: an idle stream reaches an event within a few us of the call. That
 * latency, and what two timers with nothing between them read, are measured when the first timer of a
 * device is made, which is before a run. (Measured on H100: a pair reads 3.5 to 4.3 us too long.)
 */
#include <stdlib.h>

#include "base/clock.h"
#include "base/status.h"
#include "streams/cuda/cuda.h"

enum clock_state { CLOCK_NONE, CLOCK_MEASURES, CLOCK_READY };

#define ANCHOR_NS INT64_C(1000000000) /* the age at which an anchor is renewed */
#define LOOK_NS   20000
enum { TRIES = 33 }; /* of each measurement; the first one is not used */

static int64_t ns_of(float ms)
{
	return (int64_t)((double)ms * 1e6);
}

/* --- measuring, once per device --- */

static cudaError_t wait_for(cudaEvent_t event)
{
	cudaError_t error;

	while ((error = cudaEventQuery(event)) == cudaErrorNotReady)
		;
	return error;
}

/* *out: from the return of the record until the stream has reached the anchor, as the host sees it. */
static cudaError_t measure_latency(struct wr_cuda_clock *clock, int64_t *out)
{
	cudaError_t error = cudaEventRecord(clock->anchors[0], clock->stream);
	int64_t since = wr_now();

	if (!error)
		error = wait_for(clock->anchors[0]);
	*out = wr_now() - since;
	clock->recorded_at = since;
	return error;
}

static cudaError_t measure_overhead(struct wr_cuda_clock *clock, int64_t *out)
{
	float ms = 0;
	cudaError_t error = cudaEventRecord(clock->anchors[0], clock->stream);

	if (!error)
		error = cudaEventRecord(clock->anchors[1], clock->stream);
	if (!error)
		error = wait_for(clock->anchors[1]);
	if (!error)
		error = cudaEventElapsedTime(&ms, clock->anchors[0], clock->anchors[1]);
	*out = ns_of(ms);
	return error;
}

static int compare(const void *a, const void *b)
{
	int64_t one = *(const int64_t *)a, two = *(const int64_t *)b;

	return (one > two) - (one < two);
}

/* *out: the median. */
static cudaError_t measure(struct wr_cuda_clock *clock,
			   cudaError_t (*once)(struct wr_cuda_clock *clock, int64_t *out), int64_t *out)
{
	int64_t times[TRIES] = {0};
	cudaError_t error = cudaSuccess;

	for (int i = 0; !error && i < TRIES; i++)
		error = once(clock, &times[i]);
	qsort(times + 1, TRIES - 1, sizeof times[0], compare);
	*out = times[TRIES / 2];
	return error;
}

/* The host sees an event some time after the stream has reached it: half of the latency is taken for each. */
static void anchor_set(struct wr_cuda_clock *clock, unsigned slot)
{
	wr_store(&clock->anchored_at[slot], clock->recorded_at + clock->latency / 2);
}

static cudaError_t clock_make(struct wr_cuda_clock *clock)
{
	int64_t last;
	cudaError_t error = cudaStreamCreateWithFlags(&clock->stream, cudaStreamNonBlocking);

	for (int i = 0; !error && i < 2; i++)
		error = cudaEventCreateWithFlags(&clock->anchors[i], cudaEventDefault);
	if (!error)
		error = measure(clock, measure_overhead, &clock->overhead);
	if (!error)
		error = measure(clock, measure_latency, &clock->latency);
	if (!error)
		error = measure_latency(clock, &last);
	anchor_set(clock, 0);
	return error;
}

void wr_cuda_clock_finish(struct wr_cuda_clock *clock)
{
	for (int i = 0; i < 2; i++)
		if (clock->anchors[i])
			cudaEventDestroy(clock->anchors[i]);
	if (clock->stream)
		cudaStreamDestroy(clock->stream);
	clock->anchors[0] = clock->anchors[1] = NULL;
	clock->stream = NULL;
}

static weir_status clock_ready(struct wr_cuda *cuda, struct wr_cuda_clock *clock)
{
	int state = CLOCK_NONE;
	weir_status status;

	if (wr_load(&clock->state) == CLOCK_READY)
		return WEIR_OK;
	if (!wr_cas(&clock->state, &state, CLOCK_MEASURES))
		return state == CLOCK_READY ? WEIR_OK : WEIR_E_BUSY;
	status = wr_cuda_check(cuda, clock_make(clock), "measuring timers");
	if (status && !wr_cuda_lost(cuda))
		wr_cuda_clock_finish(clock);
	wr_store(&clock->state, status ? CLOCK_NONE : CLOCK_READY);
	return status;
}

weir_status wr_cuda_timer_create(void *self, int device, void **out)
{
	struct wr_cuda *cuda = self;
	weir_status status = wr_cuda_ready(cuda, device);
	cudaEvent_t timer = NULL;

	if (status)
		return status;
	struct wr_cuda_scope scope = wr_cuda_enter(cuda, device);
	status = clock_ready(cuda, &cuda->devices[device].clock);
	if (!status)
		status = wr_cuda_check(cuda, cudaEventCreateWithFlags(&timer, cudaEventDefault),
				       "cudaEventCreateWithFlags");
	wr_cuda_leave(scope);
	if (!status)
		*out = timer;
	return status;
}

/* --- anchors --- */

/* With the right to renew. A record that fails leaves the old anchor, which serves on. */
static void anchor_record(struct wr_cuda_clock *clock, uint32_t phase)
{
	wr_store(&clock->phase, phase + 1); /* before: a reader of the old anchor sees it */
	if (cudaEventRecord(clock->anchors[(phase / 2 + 1) % 2], clock->stream)) {
		cudaGetLastError();
		wr_store(&clock->phase, phase);
	}
	clock->recorded_at = wr_now();
}

static bool anchor_publish(struct wr_cuda_clock *clock, uint32_t phase)
{
	unsigned slot = (phase / 2 + 1) % 2;
	cudaError_t error = cudaEventQuery(clock->anchors[slot]);

	if (error) {
		cudaGetLastError();
		return false;
	}
	anchor_set(clock, slot);
	wr_store(&clock->phase, phase + 1);
	return true;
}

static void anchor_renew(struct wr_cuda_clock *clock)
{
	uint32_t phase;
	int64_t until;

	if (wr_exchange(&clock->renewing, true))
		return;
	if (!(wr_load(&clock->phase) % 2) && wr_now() - clock->recorded_at >= ANCHOR_NS)
		anchor_record(clock, wr_load(&clock->phase));
	phase = wr_load(&clock->phase);
	until = clock->recorded_at + LOOK_NS;
	while (phase % 2 && !anchor_publish(clock, phase) && wr_now() < until)
		;
	wr_store(&clock->renewing, false);
}

/* *out: when the event was reached. BUSY: the anchor was recorded again meanwhile. */
static weir_status host_time(struct wr_cuda *cuda, struct wr_cuda_clock *clock, cudaEvent_t event,
			     int64_t *out)
{
	uint32_t phase = wr_load(&clock->phase);
	unsigned slot = phase / 2 % 2;
	float ms = 0;
	weir_status status = wr_cuda_check(cuda, cudaEventElapsedTime(&ms, clock->anchors[slot], event),
					   "cudaEventElapsedTime");

	*out = wr_load(&clock->anchored_at[slot]) + ns_of(ms);
	if (!status && wr_load(&clock->phase) > (phase / 2 + 1) * 2)
		return WEIR_E_BUSY;
	return status;
}

/* --- reading --- */

static weir_status timer_read(struct wr_cuda *cuda, struct wr_cuda_clock *clock, cudaEvent_t begin,
			      cudaEvent_t end, int64_t *begun, int64_t *ended)
{
	cudaError_t error = cudaEventQuery(end);
	float ms = 0;
	int64_t span, at = 0;
	weir_status status;

	if (!error)
		error = cudaEventElapsedTime(&ms, begin, end);
	if (error == cudaErrorNotReady) {
		cudaGetLastError();
		return WEIR_E_BUSY;
	}
	status = wr_cuda_check(cuda, error, "cudaEventElapsedTime");
	if (status)
		return status;
	anchor_renew(clock);
	status = host_time(cuda, clock, end, &at);
	if (status)
		return status;
	span = ns_of(ms) - clock->overhead;
	*ended = at;
	*begun = at - (span > 0 ? span : 0);
	return WEIR_OK;
}

weir_status wr_cuda_timer_read(void *self, int device, void *begin, void *end, int64_t *begun, int64_t *ended)
{
	struct wr_cuda *cuda = self;
	struct wr_cuda_scope scope = wr_cuda_enter(cuda, device);
	weir_status status = timer_read(cuda, &cuda->devices[device].clock, begin, end, begun, ended);

	wr_cuda_leave(scope);
	return status;
}
