/*
 * The library's atomics: C11's, named by their order. In the seam build (WR_SEAM) each is a switching point
 * of the seeded fiber scheduler (sim/simulation.h), so that the real scheduler code runs under many
 * interleavings; in other builds the switching point is nothing (or a delay: base/delays.h). No stand-alone
 * fences, which ThreadSanitizer does not support.
 */
#ifndef WR_BASE_ATOMIC_H
#define WR_BASE_ATOMIC_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/delays.h"

#ifdef WR_SEAM
void wr_switch(void); /* base/thread.c; returns at once when the caller is no fiber */
#else
#define wr_switch() wr_delays_here(WR_DELAY_ATOMIC)
#endif

/* Sequentially consistent: the protocol words (entity state, token, live counter, announcements). */
#define wr_load(p)        (wr_switch(), atomic_load_explicit((p), memory_order_seq_cst))
#define wr_store(p, v)    (wr_switch(), atomic_store_explicit((p), (v), memory_order_seq_cst))
#define wr_exchange(p, v) (wr_switch(), atomic_exchange_explicit((p), (v), memory_order_seq_cst))
#define wr_cas(p, expected, v)                                                                               \
	(wr_switch(), atomic_compare_exchange_strong_explicit((p), (expected), (v), memory_order_seq_cst,    \
							      memory_order_seq_cst))
#define wr_fetch_add(p, v) (wr_switch(), atomic_fetch_add_explicit((p), (v), memory_order_seq_cst))
#define wr_fetch_sub(p, v) (wr_switch(), atomic_fetch_sub_explicit((p), (v), memory_order_seq_cst))
#define wr_fetch_or(p, v)  (wr_switch(), atomic_fetch_or_explicit((p), (v), memory_order_seq_cst))
#define wr_fetch_and(p, v) (wr_switch(), atomic_fetch_and_explicit((p), (v), memory_order_seq_cst))

/* Weaker orders; the comment at each use says why the order is enough. */
#define wr_load_acquire(p)     (wr_switch(), atomic_load_explicit((p), memory_order_acquire))
#define wr_load_relaxed(p)     (wr_switch(), atomic_load_explicit((p), memory_order_relaxed))
#define wr_store_release(p, v) (wr_switch(), atomic_store_explicit((p), (v), memory_order_release))
#define wr_store_relaxed(p, v) (wr_switch(), atomic_store_explicit((p), (v), memory_order_relaxed))
#define wr_add_relaxed(p, v)   (wr_switch(), atomic_fetch_add_explicit((p), (v), memory_order_relaxed))
#define wr_sub_acq_rel(p, v)   (wr_switch(), atomic_fetch_sub_explicit((p), (v), memory_order_acq_rel))

/* A counter with one writer needs no locked instruction; any thread may read it. */
#define wr_count(p, v)                                                                                       \
	atomic_store_explicit((p), atomic_load_explicit((p), memory_order_relaxed) + (v),                    \
			      memory_order_relaxed)
/* Values for reports and statistics; they order nothing. */
#define wr_note(p, v) atomic_store_explicit((p), (v), memory_order_relaxed)
#define wr_read(p)    atomic_load_explicit((p), memory_order_relaxed)

#endif
