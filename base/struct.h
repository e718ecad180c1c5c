/*
 * Structs that grow between versions: the caller's begins with its size, as the caller's header defines it. A
 * field that only one side knows is zero, its default.
 */
#ifndef WR_BASE_STRUCT_H
#define WR_BASE_STRUCT_H

#include <stddef.h>

#include "base/status.h"

/* Fails: WEIR_E_INVALID, naming the type: the size is below that of its first version, or absurd. */
weir_status wr_struct_check(const char *type, size_t size, size_t first);
/*
 * For a struct that is read where it is: one of own_size bytes, or a larger one whose further fields are
 * zero. Fails: WEIR_E_INVALID: no size, or a smaller one; WEIR_E_UNSUPPORTED: a field is set that this
 * library does not know.
 */
weir_status wr_struct_known(const char *type, const void *given, size_t own_size);
/*
 * Copies the caller's struct into `own` of own_size bytes. Fails: WEIR_E_INVALID: no size;
 * WEIR_E_UNSUPPORTED: a field is set that this library does not know.
 */
weir_status wr_struct_read(void *own, size_t own_size, const void *given, const char *type);
/*
 * Copies `own` to the caller's struct, as far as it goes, and sets its size to that. Fails: WEIR_E_INVALID:
 * no size.
 */
weir_status wr_struct_fill(void *given, const void *own, size_t own_size, const char *type);

weir_status wr_flags_refuse(const char *call, unsigned flags, unsigned known);

/* Refuses flags that the call does not know. */
static inline weir_status wr_flags_check(const char *call, unsigned flags, unsigned known)
{
	return flags & ~known ? wr_flags_refuse(call, flags, known) : WEIR_OK;
}

#endif
