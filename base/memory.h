/*
 * All allocations of the library, so that a test can make any one of them fail (F40). Memory is
 * zeroed; products are checked for overflow; if NULL is returned the last error is "out of memory".
 */
#ifndef WR_BASE_MEMORY_H
#define WR_BASE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "weir.h"

void *wr_alloc(size_t count, size_t size);
void *wr_alloc_aligned(size_t alignment, size_t bytes); /* zeroed; freed by wr_free */
char *wr_strdup(const char *text);
/* Returns a new string, or NULL. */
char *wr_format(const char *format, ...) __attribute__((format(printf, 1, 2)));
void wr_free(void *memory);

weir_status wr_grow_now(void *array, size_t *room, size_t need, size_t size); /* of wr_grow alone */
/*
 * Makes room for `need` elements in a growing array: *array of *room elements of `size` bytes.
 * New elements are zeroed. Fails: WEIR_E_NOMEM (the array is untouched). Inline: ticks call it, and
 * nearly always there is room.
 */
static inline weir_status wr_grow(void *array, size_t *room, size_t need, size_t size)
{
	return need <= *room ? WEIR_OK : wr_grow_now(array, room, need, size);
}

/*
 * For the out-of-memory sweep of the tests: the n-th allocation from now on (0 = the next) fails, and with
 * `all` every later one. A negative n switches it off. Process-wide.
 */
void wr_memory_fail_at(int64_t n, bool all);
/* Counts as one allocation, for what the C library or the kernel allocates. Returns true if it must fail. */
bool wr_memory_fails(void);
int64_t wr_memory_count(void); /* allocations since the process started: the bound of the sweep */

#endif
