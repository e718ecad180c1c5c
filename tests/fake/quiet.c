#include "quiet.h"

#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

FAKE_UNSEEN void fake_lock(struct fake_lock *lock)
{
	while (atomic_exchange_explicit(&lock->held, 1, memory_order_acquire))
		sched_yield();
}

FAKE_UNSEEN void fake_unlock(struct fake_lock *lock)
{
	atomic_store_explicit(&lock->held, 0, memory_order_release);
}

FAKE_UNSEEN void fake_ring(struct fake_bell *bell)
{
	atomic_fetch_add(&bell->rung, 1);
	syscall(SYS_futex, &bell->rung, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

FAKE_UNSEEN void fake_listen(struct fake_bell *bell, uint32_t seen)
{
	const struct timespec limit = {0, 5000000};

	syscall(SYS_futex, &bell->rung, FUTEX_WAIT_PRIVATE, seen, &limit, NULL, 0);
}
