/* What every call begins and ends with: calls that are to fail, the device's loss, delays. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "inside.h"

_Thread_local cudaError_t fake_last_error;

static _Thread_local struct {
	const char *name;
	void *from;
	bool context, host_function;
	cudaError_t later; /* what the call will return, though it did its work */
} call;

static _Atomic int lost;

/* --- calls that are to fail --- */

enum { CALLS = 256, FAULTS = 16 };

static struct {
	_Atomic(const char *) name;
	_Atomic unsigned count;
} calls[CALLS];

static struct {
	char name[48]; /* "*": any */
	_Atomic unsigned left;
	int code;
} faults[FAULTS];
static _Atomic unsigned faults_count;

static _Atomic unsigned *counter_of(const char *name)
{
	for (unsigned i = 0; i < CALLS; i++) {
		const char *there = fake_get(&calls[i].name);

		if (!there &&
		    atomic_compare_exchange_strong_explicit(&calls[i].name, &there, name,
							    memory_order_relaxed, memory_order_relaxed))
			return &calls[i].count;
		if (there && !strcmp(there, name))
			return &calls[i].count;
	}
	abort();
}

unsigned fake_count(const char *name)
{
	for (unsigned i = 0; i < CALLS && fake_get(&calls[i].name); i++)
		if (!strcmp(fake_get(&calls[i].name), name))
			return fake_get(&calls[i].count);
	return 0;
}

void fake_fail(const char *name, unsigned nth, int code)
{
	unsigned at = fake_get(&faults_count);

	if (!name) {
		fake_set(&faults_count, 0);
		return;
	}
	if (at == FAULTS || strlen(name) >= sizeof faults->name) {
		fprintf(stderr, "fake CUDA: too many calls are to fail, or too long a name: %s\n", name);
		abort();
	}
	strcpy(faults[at].name, name);
	faults[at].code = code;
	fake_set(&faults[at].left, nth);
	fake_set(&faults_count, at + 1);
}

__attribute__((constructor)) static void read_environment(void)
{
	const char *text = getenv("FAKE_CUDA_FAIL");

	for (; text && *text; text += strcspn(text, ","), text += *text == ',') {
		char name[48];
		unsigned nth;
		int code;

		if (sscanf(text, "%47[^:,]:%u:%d", name, &nth, &code) != 3) {
			fprintf(stderr, "fake CUDA: FAKE_CUDA_FAIL=%s: not CALL:N:CODE\n", text);
			exit(2);
		}
		fake_fail(name, nth, code);
	}
}

__attribute__((destructor)) static void write_counts(void)
{
	const char *path = getenv("FAKE_CUDA_COUNT");
	FILE *file = path ? fopen(path, "w") : NULL;

	for (unsigned i = 0; file && i < CALLS && fake_get(&calls[i].name); i++)
		fprintf(file, "%s %u\n", fake_get(&calls[i].name), fake_get(&calls[i].count));
	if (file)
		fclose(file);
}

static cudaError_t fault_of(const char *name)
{
	for (unsigned i = 0; i < fake_get(&faults_count); i++)
		if (!strcmp(faults[i].name, "*") || !strcmp(faults[i].name, name))
			if (fake_get(&faults[i].left) && fake_add(&faults[i].left, -1u) == 1)
				return (cudaError_t)faults[i].code;
	return cudaSuccess;
}

/* --- the loss of the device: of all of them, for the process --- */

static bool sticks(cudaError_t error)
{
	switch ((int)error) {
	case cudaErrorECCUncorrectable:
	case cudaErrorIllegalAddress:
	case cudaErrorLaunchTimeout:
	case cudaErrorAssert:
	case cudaErrorHardwareStackError:
	case cudaErrorIllegalInstruction:
	case cudaErrorMisalignedAddress:
	case cudaErrorLaunchFailure:
		return true;
	default:
		return false;
	}
}

void fake_lose(cudaError_t error)
{
	int none = 0;

	atomic_compare_exchange_strong_explicit(&lost, &none, (int)error, memory_order_relaxed,
						memory_order_relaxed);
}

cudaError_t fake_lost(void)
{
	return (cudaError_t)fake_get(&lost);
}

/* --- delays --- */

void fake_be_late(uint64_t what, unsigned of)
{
	static _Atomic int state; /* 0: not known, 1: no, 2: yes */
	static _Atomic uint64_t seed;
	struct timespec time = {0, 0};
	uint64_t draw;

	if (!fake_get(&state)) {
		const char *text = getenv("FAKE_CUDA_LATE");

		fake_set(&seed, text ? strtoull(text, NULL, 10) : 0);
		fake_set(&state, text && *text ? 2 : 1);
	}
	if (fake_get(&state) == 1)
		return;
	draw = (what + 1) * 0x9e3779b97f4a7c15u ^ (fake_get(&seed) + 1) * 0xbf58476d1ce4e5b9u;
	draw = (draw ^ draw >> 31) * 0x94d049bb133111ebu;
	draw ^= draw >> 29;
	if (draw % of)
		return;
	time.tv_nsec = (long)(draw / of % 300000);
	nanosleep(&time, NULL);
}

/* --- around a call --- */

const char *fake_call_name(void)
{
	return call.name ? call.name : "the device";
}

void *fake_call_from(void)
{
	return call.from;
}

bool fake_has_context(void)
{
	return call.context;
}

void fake_enter_host_function(bool inside)
{
	call.host_function = inside;
}

cudaError_t fake_begin_call(const char *name, void *from, unsigned flags)
{
	_Atomic unsigned *count = counter_of(name);
	cudaError_t fault;

	call.name = name;
	call.from = from;
	call.later = cudaSuccess;
	fake_be_late(fake_add(count, 1) * 64 + (uintptr_t)(count - &calls[0].count), 32);
	if (flags & FAKE_ALWAYS)
		return cudaSuccess;
	if (call.host_function)
		return cudaErrorNotPermitted;
	if (fake_lost())
		return fake_lost();
	call.context |= !(flags & FAKE_NO_CONTEXT);
	if (flags & FAKE_UNSAFE && fake_capture_prohibits())
		return cudaErrorStreamCaptureUnsupported;
	fault = fault_of(name);
	if (sticks(fault))
		fake_lose(fault);
	else if (fault && flags & FAKE_ENDS)
		call.later = fault;
	else
		return fault;
	return fake_lost();
}

cudaError_t fake_end_call(cudaError_t error)
{
	if (!error)
		error = call.later;
	if (error)
		fake_last_error = error;
	return error;
}
