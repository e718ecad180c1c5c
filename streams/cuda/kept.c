/*
 * Streams that outlive their graph. A library that was given the handle of a stream may still use it when the
 * graph is gone: torch records an event on each stream that used a block of pinned memory when that block is
 * freed. So such a stream is not destroyed: the next stream of an entity of the same kind is this one. There
 * are never more than were open at once. At exit they are destroyed, by the process that made them.
 */
#include <stdlib.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/thread.h"
#include "streams/cuda/cuda.h"

struct kept {
	struct kept *next;
	cudaStream_t stream;
	int device, priority;
	unsigned flags;
};

static struct kept_streams {
	struct kept *first;    /* under the global lock, as what it leads to */
	_Atomic pid_t process; /* 0: nothing was kept yet */
} all;

/* In a child of fork there is no CUDA, and the lock may be held for ever. */
static void destroy_all(void)
{
	struct kept *kept;

	if (wr_load(&all.process) != getpid())
		return;
	wr_global_lock();
	kept = all.first;
	all.first = NULL;
	wr_global_unlock();
	while (kept) {
		struct kept *next = kept->next;
		cudaStreamDestroy(kept->stream);
		wr_free(kept);
		kept = next;
	}
}

bool wr_cuda_keep_stream(int device, unsigned flags, int priority, cudaStream_t stream)
{
	struct kept *kept = wr_alloc(1, sizeof *kept);

	if (!kept)
		return false;
	wr_global_lock();
	*kept = (struct kept){all.first, stream, device, priority, flags};
	all.first = kept;
	wr_global_unlock();
	if (!wr_exchange(&all.process, getpid()))
		(void)atexit(destroy_all);
	return true;
}

cudaStream_t wr_cuda_kept_stream(int device, unsigned flags, int priority)
{
	struct kept **link = &all.first, *found;
	cudaStream_t stream = NULL;

	wr_global_lock();
	while (*link &&
	       ((*link)->device != device || (*link)->flags != flags || (*link)->priority != priority))
		link = &(*link)->next;
	found = *link;
	if (found) {
		*link = found->next;
		stream = found->stream;
	}
	wr_global_unlock();
	wr_free(found);
	return stream;
}
