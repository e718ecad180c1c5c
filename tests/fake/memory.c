/*
 * Memory: the heap's, so that the sanitizers know it, and a table of what is where.
 *
 * Memory that was freed is known by its row. The program must not get it from the heap while that stands
 * there, or its use would be told as one after the end: the address sanitizer keeps it and tells whether it
 * does; without it the row does, for KEPT bytes in all, overwritten.
 */
#include <stdlib.h>
#include <string.h>

#include "inside.h"

/* In the address sanitizer's runtime. */
int __asan_address_is_poisoned(const volatile void *at) __attribute__((weak));

/* A row is found by looking at all: they are few, and no lock orders the threads that look. */
enum { ROWS = 1 << 14, FEW = 256, KEPT = 64 << 20 };
enum { NONE, LIVE, FREED, FORGOTTEN };

static struct {
	_Atomic unsigned state; /* NONE: is being filled, or was never used */
	_Atomic uintptr_t at;
	_Atomic size_t bytes;
	_Atomic uint64_t id; /* of this allocation alone */
	_Atomic int kind, device;
	_Atomic bool registered; /* the program's own memory */
	_Atomic bool kept;       /* released and acquired: the heap's free() is a use of the memory */
	_Atomic(const char *) made_by, ended_by;
	_Atomic(void *) made_at, ended_at;
} rows[ROWS];
static _Atomic unsigned used, next; /* rows that were ever used; where to look for one that is free */
static _Atomic uint64_t ids;
static _Atomic size_t allocated[16];
static _Atomic size_t kept;   /* bytes */
static struct fake_lock lock; /* of taking a row */

enum { TOTAL_MIB = 16384 };
static const size_t total = (size_t)TOTAL_MIB << 20;

/* --- the table --- */

/* Rows of freed memory are used again late, so that its use is told with the place where it was freed. */
static unsigned take_row(void)
{
	unsigned at = ROWS;

	fake_lock(&lock);
	if (fake_get(&used) >= FEW)
		for (unsigned i = 0; i < fake_get(&used) && at == ROWS; i++) {
			unsigned place = fake_add(&next, 1) % fake_get(&used);

			if (fake_get(&rows[place].state) >= FREED)
				at = place;
		}
	if (at == ROWS && fake_get(&used) < ROWS)
		at = fake_add(&used, 1);
	if (at < ROWS)
		fake_set(&rows[at].state, NONE);
	fake_unlock(&lock);
	if (at < ROWS && atomic_load_explicit(&rows[at].kept, memory_order_acquire)) {
		fake_set(&rows[at].kept, false);
		fake_add(&kept, -fake_get(&rows[at].bytes));
		free((void *)fake_get(&rows[at].at));
	}
	return at;
}

/* The end of a row, and of its memory or some time before it. */
static void end_row(unsigned at)
{
	void *memory = (void *)fake_get(&rows[at].at);
	size_t bytes = fake_get(&rows[at].bytes);
	bool own = !fake_get(&rows[at].registered), keeps = own && !__asan_address_is_poisoned;

	if (keeps && fake_add(&kept, bytes) + bytes > KEPT) {
		fake_add(&kept, -bytes);
		keeps = false;
	}
	if (keeps)
		memset(memory, 0xdb, bytes);
	atomic_store_explicit(&rows[at].kept, keeps, memory_order_release);
	fake_set(&rows[at].ended_by, fake_call_name());
	fake_set(&rows[at].ended_at, fake_call_from());
	fake_set(&rows[at].state, keeps || (own && __asan_address_is_poisoned) ? FREED : FORGOTTEN);
	if (own && !keeps)
		free(memory);
}

static cudaError_t enter(const void *memory, size_t bytes, enum fake_memory kind, bool registered)
{
	unsigned at = take_row();

	if (at == ROWS) {
		fake_problem("more than %d blocks of memory live", ROWS);
		return cudaErrorMemoryAllocation;
	}
	fake_set(&rows[at].at, (uintptr_t)memory);
	fake_set(&rows[at].bytes, bytes);
	fake_set(&rows[at].id, fake_add(&ids, 1) + 1);
	fake_set(&rows[at].kind, (int)kind);
	fake_set(&rows[at].device, fake_device());
	fake_set(&rows[at].registered, registered);
	fake_set(&rows[at].made_by, fake_call_name());
	fake_set(&rows[at].made_at, fake_call_from());
	atomic_signal_fence(memory_order_seq_cst);
	fake_set(&rows[at].state, LIVE);
	return cudaSuccess;
}

/* The row of this state that has the byte; ROWS: none. */
static unsigned find(const void *memory, unsigned state)
{
	uintptr_t at = (uintptr_t)memory;

	if (state == FREED && __asan_address_is_poisoned && !__asan_address_is_poisoned(memory))
		return ROWS; /* the heap gave it out again */
	for (unsigned i = fake_get(&used); i-- > 0;)
		if (fake_get(&rows[i].state) == state &&
		    at - fake_get(&rows[i].at) < fake_get(&rows[i].bytes))
			return i;
	return ROWS;
}

static void tell_freed(const void *memory, unsigned row, const char *what)
{
	char from[300];

	fake_address_text(fake_get(&rows[row].ended_at), from, sizeof from);
	fake_problem("%s %p, which was freed by %s, called from %s", what, memory,
		     fake_get(&rows[row].ended_by), from);
}

bool fake_memory_of(const void *memory, size_t bytes, const char *what, enum fake_memory *kind, int *device)
{
	unsigned row = find(memory, LIVE);

	*kind = FAKE_PAGEABLE;
	*device = -1;
	if (!bytes)
		return true;
	if (row == ROWS) {
		row = find(memory, FREED);
		if (row == ROWS)
			return true;
		tell_freed(memory, row, what);
		return false;
	}
	*kind = (enum fake_memory)fake_get(&rows[row].kind);
	*device = fake_get(&rows[row].device);
	if ((uintptr_t)memory + bytes <= fake_get(&rows[row].at) + fake_get(&rows[row].bytes))
		return true;
	fake_problem("%s %zu bytes at %p, beyond the end of %zu bytes at %p", what, bytes, memory,
		     fake_get(&rows[row].bytes), (void *)fake_get(&rows[row].at));
	return false;
}

void fake_memory_range(const void *memory, struct fake_range *out)
{
	unsigned row = find(memory, LIVE);

	if (row == ROWS || fake_get(&rows[row].kind) != FAKE_ON_DEVICE)
		return;
	out->id = fake_get(&rows[row].id);
	out->at = fake_get(&rows[row].at);
	out->bytes = fake_get(&rows[row].bytes);
}

unsigned fake_memory_left(void (*each)(const void *memory, size_t bytes, const char *call, void *from))
{
	unsigned left = 0;

	for (unsigned i = 0; i < fake_get(&used); i++)
		if (fake_get(&rows[i].state) == LIVE) {
			left++;
			each((void *)fake_get(&rows[i].at), fake_get(&rows[i].bytes),
			     fake_get(&rows[i].made_by), fake_get(&rows[i].made_at));
		}
	return left;
}

/* --- allocating --- */

static cudaError_t allocate(void **out, size_t bytes, enum fake_memory kind)
{
	_Atomic size_t *sum = &allocated[kind == FAKE_PINNED ? 15 : fake_device()];
	void *memory;
	cudaError_t error;

	if (!out)
		return cudaErrorInvalidValue;
	*out = NULL;
	if (!bytes)
		return cudaSuccess;
	if (bytes > total || fake_get(sum) + bytes > total || posix_memalign(&memory, 256, bytes))
		return cudaErrorMemoryAllocation;
	error = enter(memory, bytes, kind, false);
	if (error) {
		free(memory);
		return error;
	}
	fake_add(sum, bytes);
	*out = memory;
	return cudaSuccess;
}

cudaError_t cudaMalloc(void **out, size_t bytes)
{
	cudaError_t error = fake_begin(FAKE_UNSAFE);

	return fake_end(error ? error : allocate(out, bytes, FAKE_ON_DEVICE));
}

cudaError_t cudaHostAlloc(void **out, size_t bytes, unsigned flags)
{
	cudaError_t error = fake_begin(FAKE_UNSAFE);

	(void)flags;
	return fake_end(error ? error : allocate(out, bytes, FAKE_PINNED));
}

cudaError_t cudaMallocHost(void **out, size_t bytes)
{
	cudaError_t error = fake_begin(FAKE_UNSAFE);

	return fake_end(error ? error : allocate(out, bytes, FAKE_PINNED));
}

cudaError_t cudaMallocManaged(void **out, size_t bytes, unsigned flags)
{
	cudaError_t error = fake_begin(FAKE_UNSAFE);

	(void)flags;
	return fake_end(error ? error : allocate(out, bytes, FAKE_MANAGED));
}

cudaError_t cudaHostRegister(void *memory, size_t bytes, unsigned flags)
{
	cudaError_t error = fake_begin(FAKE_UNSAFE);

	(void)flags;
	if (!error && find(memory, LIVE) != ROWS)
		error = cudaErrorHostMemoryAlreadyRegistered;
	return fake_end(error ? error : enter(memory, bytes, FAKE_PINNED, true));
}

static cudaError_t release(void *memory, bool pinned, bool registered)
{
	unsigned row = memory ? find(memory, LIVE) : ROWS;

	if (!memory)
		return cudaSuccess;
	if (row == ROWS || fake_get(&rows[row].at) != (uintptr_t)memory ||
	    (fake_get(&rows[row].kind) == FAKE_PINNED) != pinned ||
	    fake_get(&rows[row].registered) != registered) {
		unsigned freed = find(memory, FREED);

		if (row == ROWS && freed != ROWS)
			tell_freed(memory, freed, "frees");
		else
			fake_problem("%p is no memory that this call could free", memory);
		return cudaErrorInvalidValue;
	}
	if (!registered)
		fake_add(&allocated[pinned ? 15 : fake_get(&rows[row].device)], -fake_get(&rows[row].bytes));
	end_row(row);
	return cudaSuccess;
}

/* Does not wait for the device: fake.h says why. */
cudaError_t cudaFree(void *memory)
{
	cudaError_t error = fake_begin(FAKE_UNSAFE | FAKE_ENDS);

	return fake_end(error ? error : release(memory, false, false));
}

cudaError_t cudaFreeHost(void *memory)
{
	cudaError_t error = fake_begin(FAKE_UNSAFE | FAKE_ENDS);

	return fake_end(error ? error : release(memory, true, false));
}

cudaError_t cudaHostUnregister(void *memory)
{
	cudaError_t error = fake_begin(FAKE_UNSAFE | FAKE_ENDS);

	return fake_end(error ? error : release(memory, true, true));
}

cudaError_t cudaMemGetInfo(size_t *left, size_t *all)
{
	cudaError_t error = fake_begin(FAKE_PLAIN);

	*all = total;
	*left = total - fake_get(&allocated[fake_device()]);
	return fake_end(error);
}

cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *out, const void *memory)
{
	static const enum cudaMemoryType types[] = {
		[FAKE_PAGEABLE] = cudaMemoryTypeUnregistered,
		[FAKE_PINNED] = cudaMemoryTypeHost,
		[FAKE_ON_DEVICE] = cudaMemoryTypeDevice,
		[FAKE_MANAGED] = cudaMemoryTypeManaged,
	};
	cudaError_t error = fake_begin(FAKE_PLAIN);
	enum fake_memory kind;
	int device;

	if (error)
		return fake_end(error);
	if (!fake_memory_of(memory, 1, "asks about", &kind, &device))
		return fake_end(cudaErrorInvalidValue);
	memset(out, 0, sizeof *out);
	out->type = types[kind];
	out->device = device < 0 ? fake_device() : device;
	out->devicePointer = kind == FAKE_PAGEABLE ? NULL : (void *)(uintptr_t)memory;
	out->hostPointer = kind == FAKE_PINNED || kind == FAKE_MANAGED ? (void *)(uintptr_t)memory : NULL;
	return fake_end(cudaSuccess);
}

/* --- copying --- */

/* Pageable memory is read at the call, behind the stream's work, which does not order the caller. */
static cudaError_t stage(struct fake_stream *stream, struct fake_copy *copy)
{
	char *staged = malloc(copy->bytes * copy->rows);
	cudaError_t error = fake_point_pass(fake_stream_end(stream));

	if (!staged)
		abort();
	for (size_t row = 0; row < copy->rows; row++)
		memcpy(staged + row * copy->bytes, (const char *)copy->from + row * copy->from_stride,
		       copy->bytes);
	copy->staged = staged;
	return error;
}

static cudaError_t copy(cudaStream_t handle, struct fake_copy copy)
{
	struct fake_stream *stream = fake_stream_of(handle);
	struct fake_operation *operation;
	enum fake_memory to, from;
	cudaError_t error = cudaSuccess;
	bool captured;
	int device;

	if (!stream)
		return cudaErrorInvalidResourceHandle;
	if (!copy.bytes || !copy.rows)
		return cudaSuccess;
	if (!fake_memory_of(copy.to, copy.bytes, "writes", &to, &device) ||
	    !fake_memory_of(copy.from, copy.bytes, "reads", &from, &device))
		return cudaErrorInvalidValue;
	captured = fake_stream_captured(stream);
	operation = fake_operation_new(FAKE_COPY);
	if (!captured && from == FAKE_PAGEABLE)
		error = stage(stream, &copy);
	operation->copy = copy;
	if (!error)
		error = fake_enqueue(stream, operation);
	else
		fake_operation_free(operation);
	return error || captured || to != FAKE_PAGEABLE ? error : fake_point_wait(fake_stream_end(stream));
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind,
			    cudaStream_t stream)
{
	cudaError_t error = fake_begin(FAKE_PLAIN);

	(void)kind;
	return fake_end(error ? error
			      : copy(stream, (struct fake_copy){to, from, bytes, bytes, bytes, 1, NULL}));
}

cudaError_t cudaMemcpy2DAsync(void *to, size_t to_stride, const void *from, size_t from_stride, size_t bytes,
			      size_t rows_count, enum cudaMemcpyKind kind, cudaStream_t stream)
{
	cudaError_t error = fake_begin(FAKE_PLAIN);

	(void)kind;
	if (!error && (to_stride < bytes || from_stride < bytes))
		error = cudaErrorInvalidPitchValue;
	return fake_end(error ? error
			      : copy(stream, (struct fake_copy){to, from, to_stride, from_stride, bytes,
								rows_count, NULL}));
}

cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind)
{
	cudaError_t error = fake_begin(FAKE_UNSAFE);

	(void)kind;
	if (!error)
		error = copy(cudaStreamLegacy, (struct fake_copy){to, from, bytes, bytes, bytes, 1, NULL});
	return fake_end(error ? error : fake_point_wait(fake_stream_end(fake_stream_of(cudaStreamLegacy))));
}

static cudaError_t fill(struct fake_stream *stream, void *to, int value, size_t bytes)
{
	struct fake_operation *operation;
	enum fake_memory kind;
	int device;

	if (!stream)
		return cudaErrorInvalidResourceHandle;
	if (!fake_memory_of(to, bytes, "writes", &kind, &device))
		return cudaErrorInvalidValue;
	operation = fake_operation_new(FAKE_FILL);
	operation->fill = (struct fake_fill){to, value, bytes};
	return fake_enqueue(stream, operation);
}

cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t stream)
{
	cudaError_t error = fake_begin(FAKE_PLAIN);

	return fake_end(error ? error : fill(fake_stream_of(stream), to, value, bytes));
}
