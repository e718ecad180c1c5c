/*
 * What the fake's threads share without an order that the thread sanitizer could see: a lock, and a bell, on
 * which a thread waits until another one has rung it. A waiting thread looks at its condition itself, by an
 * acquiring load where CUDA orders.
 */
#ifndef TESTS_FAKE_QUIET_H
#define TESTS_FAKE_QUIET_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#ifdef __clang__
#define FAKE_UNSEEN __attribute__((disable_sanitizer_instrumentation, noinline))
#else
#define FAKE_UNSEEN __attribute__((no_sanitize("thread"), noinline))
#endif

#define fake_get(place)        atomic_load_explicit(place, memory_order_relaxed)
#define fake_set(place, value) atomic_store_explicit(place, value, memory_order_relaxed)
#define fake_add(place, value) atomic_fetch_add_explicit(place, value, memory_order_relaxed)

struct fake_lock {
	_Atomic unsigned held;
};

struct fake_bell {
	_Atomic uint32_t rung;
};

void fake_lock(struct fake_lock *lock);
void fake_unlock(struct fake_lock *lock);
void fake_ring(struct fake_bell *bell);
/* Until it rings after `seen` was read, or some ms are over. */
void fake_listen(struct fake_bell *bell, uint32_t seen);

#endif
