/*
 * Memory that code may touch only where it is opened, as host code must not touch a device's. An access
 * elsewhere ends the process with SIGSEGV. It consists of whole pages; zeroed.
 */
#ifndef WR_BASE_CLOSED_H
#define WR_BASE_CLOSED_H

#include <stddef.h>

#include "weir.h"

struct wr_closed_region;

struct wr_closed_memory {
	struct wr_closed_region *regions; /* guarded by wr_global_lock, and `opened` */
	unsigned opened;                  /* how often it was opened, and not closed */
	int key; /* the protection key of its pages; WR_CLOSED_TO_ALL: they have none */
};

/* All its pages are opened and closed at once: for memory that one thread uses, such as a simulated world's.
 */
#define WR_CLOSED_TO_ALL (-1)
#define WR_CLOSED_MEMORY ((struct wr_closed_memory){.key = WR_CLOSED_TO_ALL})
/*
 * Each thread opens them for itself, by wr_closed_open_thread. Fails: WEIR_E_UNSUPPORTED: this processor or
 * system has no protection keys.
 */
weir_status wr_closed_init_by_thread(struct wr_closed_memory *memory);
void wr_closed_finish(struct wr_closed_memory *memory); /* its memory has been freed */

weir_status wr_closed_alloc(struct wr_closed_memory *memory, size_t bytes, void **out);
void wr_closed_free(struct wr_closed_memory *memory, void *data);

/* Returns true if the address is of this memory. Takes no lock, for a POSIX signal handler. */
bool wr_closed_holds(const struct wr_closed_memory *memory, const void *address);

/* They nest. Nothing happens if each thread opens it for itself. */
void wr_closed_open(struct wr_closed_memory *memory);
void wr_closed_close(struct wr_closed_memory *memory);
void wr_closed_open_thread(const struct wr_closed_memory *memory);

#endif
