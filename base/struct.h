/*
 * Structs that grow: the caller's begins with its size, as its header has it. A field that only one side
 * knows is zero, which is its default.
 */
#ifndef WR_BASE_STRUCT_H
#define WR_BASE_STRUCT_H

#include <stddef.h>

#include "base/status.h"

/* Fails with WEIR_E_INVALID, naming the type, if the size is less than that of its first version, or absurd. */
weir_status wr_struct_check(const char *type, size_t size, size_t first);
/*
 * Reads what the caller filled into `own` of own_size bytes. Fails with WEIR_E_INVALID: no size, or a field
 * set that this library does not know.
 */
weir_status wr_struct_read(void *own, size_t own_size, const void *given, const char *type);
/* Fills the caller's from `own`, as far as it goes; its size becomes what was filled. Fails: no size. */
weir_status wr_struct_fill(void *given, const void *own, size_t own_size, const char *type);

#endif
