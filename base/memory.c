#include "base/memory.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/status.h"

enum { LARGE_BYTES = 1 << 20 };
enum hook { HOOK_OFF, HOOK_ONCE, HOOK_ALL };

/* The hook orders nothing, so it is relaxed and no switching point of the seam build. */
static _Atomic int hook = HOOK_OFF;
static _Atomic int64_t left; /* allocations until the one that fails; below 0 afterwards */
static _Atomic int64_t made;

bool wr_memory_fails(void)
{
	int how = wr_read(&hook);
	int64_t before;

	atomic_fetch_add_explicit(&made, 1, memory_order_relaxed);
	if (how == HOOK_OFF)
		return false;
	before = atomic_fetch_sub_explicit(&left, 1, memory_order_relaxed);
	return before == 0 || (before < 0 && how == HOOK_ALL);
}

void wr_memory_fail_at(int64_t n, bool all)
{
	atomic_store_explicit(&hook, HOOK_OFF, memory_order_relaxed);
	atomic_store_explicit(&left, n, memory_order_relaxed);
	if (n >= 0)
		atomic_store_explicit(&hook, all ? HOOK_ALL : HOOK_ONCE, memory_order_relaxed);
}

int64_t wr_memory_count(void)
{
	return wr_read(&made);
}

static void *check_allocated(void *memory)
{
	if (!memory)
		wr_fail(WEIR_E_NOMEM, "out of memory");
	return memory;
}

void *wr_alloc(size_t count, size_t size)
{
	if (wr_memory_fails() || (size && count > PTRDIFF_MAX / size))
		return check_allocated(NULL);
	return check_allocated(count && size ? calloc(count, size) : calloc(1, 1));
}

/*
 * Zeroes memory. Large memory is not written: its pages are dropped by madvise, so that they read as zeros
 * and are allocated at the first touch. If that fails (locked pages) it is written.
 */
static void memory_clear(char *memory, size_t bytes)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	size_t before = (page - (uintptr_t)memory % page) % page;
	size_t whole = bytes > before ? (bytes - before) / page * page : 0;

	if (bytes < LARGE_BYTES || madvise(memory + before, whole, MADV_DONTNEED)) {
		memset(memory, 0, bytes);
		return;
	}
	memset(memory, 0, before);
	memset(memory + before + whole, 0, bytes - before - whole);
}

void *wr_alloc_aligned(size_t alignment, size_t bytes)
{
	void *memory = NULL;

	if (alignment < sizeof(void *))
		alignment = sizeof(void *);
	if (wr_memory_fails() || bytes > PTRDIFF_MAX || posix_memalign(&memory, alignment, bytes ? bytes : 1))
		return check_allocated(NULL);
	memory_clear(memory, bytes);
	return memory;
}

char *wr_strdup(const char *text)
{
	size_t bytes = strlen(text) + 1;
	char *copy = wr_alloc(bytes, 1);

	return copy ? memcpy(copy, text, bytes) : NULL;
}

char *wr_format(const char *format, ...)
{
	va_list list, again;
	char *text = NULL;
	int length;

	va_start(list, format);
	va_copy(again, list);
	length = vsnprintf(NULL, 0, format, list);
	va_end(list);
	if (length >= 0)
		text = wr_alloc((size_t)length + 1, 1);
	else
		check_allocated(NULL);
	if (text)
		vsnprintf(text, (size_t)length + 1, format, again);
	va_end(again);
	return text;
}

void wr_free(void *memory)
{
	free(memory);
}

weir_status wr_grow_now(void *array, size_t *room, size_t need, size_t size)
{
	char *memory = NULL; /* *array has its own type: read and written as bytes */
	size_t most = size ? PTRDIFF_MAX / size : 0, next;

	if (!size || need > most)
		return wr_fail(WEIR_E_NOMEM, "out of memory");
	memcpy(&memory, array, sizeof(memory));
	next = *room > most / 2 ? most : *room + *room / 2; /* by half, so that n appends cost O(n) */
	if (next < 8)
		next = 8 < most ? 8 : most;
	next = next < need ? need : next;
	memory = wr_memory_fails() ? NULL : realloc(memory, next * size);
	if (!memory)
		return wr_fail(WEIR_E_NOMEM, "out of memory");
	memset(memory + *room * size, 0, (next - *room) * size);
	memcpy(array, &memory, sizeof(memory));
	*room = next;
	return WEIR_OK;
}
