/*
 * The only allocator calls of the library, so that a test can make any one of them fail (F40).
 * Results are zeroed; products are checked for overflow; NULL sets the last error to "out of memory".
 */
#ifndef WR_BASE_MEMORY_H
#define WR_BASE_MEMORY_H

#include <stddef.h>
#include <stdint.h>

#include "weir.h"

void *wr_alloc(size_t count, size_t size);
void *wr_alloc_aligned(size_t alignment, size_t bytes);		/* zeroed; freed by wr_free */
char *wr_strdup(const char *text);
/* Gives a new string, NULL: no memory. */
char *wr_format(const char *format, ...) __attribute__((format(printf, 1, 2)));
void wr_free(void *memory);

/*
 * Makes room for `need` elements in a growing array: *array of *room elements of `size` bytes.
 * New elements are zeroed. Fails: WEIR_E_NOMEM (the array is untouched).
 */
weir_status wr_grow(void *array, size_t *room, size_t need, size_t size);

/*
 * Test hook: the n-th allocation from now on (0 = the next) fails; `all`: every later one too. Negative n:
 * off. Process-wide, for the out-of-memory sweep alone.
 */
void wr_memory_fail_at(int64_t n, bool all);
int64_t wr_memory_count(void);	/* allocations since the start of the process, for the sweep's bounds */

#endif
