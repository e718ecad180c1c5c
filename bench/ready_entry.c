/*
 * Entry times of the library's host functions: the linker redirects its calls of cudaLaunchHostFunc here
 * (--wrap), to take a stamp before the function itself. Costs one read of the clock, only while watching:
 * with one callback outstanding at a time.
 */
#include "ready.h"

enum { SLOTS = 4096 }; /* many more than outstanding signals */

typedef void host_function(void *arg);
int __real_cudaLaunchHostFunc(void *stream, host_function *fn, void *arg);
int __wrap_cudaLaunchHostFunc(void *stream, host_function *fn, void *arg);

static struct slot {
	host_function *fn;
	void *arg;
} slots[SLOTS];
static atomic_uint next_slot;
static atomic_bool watching;
static _Atomic int64_t entered;

static void call_stamped(void *arg)
{
	struct slot slot = *(struct slot *)arg;

	atomic_store_explicit(&entered, ready_now(), memory_order_release);
	slot.fn(slot.arg);
}

int __wrap_cudaLaunchHostFunc(void *stream, host_function *fn, void *arg)
{
	struct slot *slot;

	if (!atomic_load_explicit(&watching, memory_order_relaxed))
		return __real_cudaLaunchHostFunc(stream, fn, arg);
	slot = &slots[atomic_fetch_add(&next_slot, 1) % SLOTS];
	*slot = (struct slot){fn, arg};
	return __real_cudaLaunchHostFunc(stream, call_stamped, slot);
}

void ready_entry_watch(bool on)
{
	atomic_store(&entered, 0);
	atomic_store(&watching, on);
}

int64_t ready_entry_last(void)
{
	return atomic_load_explicit(&entered, memory_order_acquire);
}
