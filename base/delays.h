/*
 * Delays on real threads, in a build for tests (CMake option WEIR_DELAYS): before atomics, and above all
 * after mutexes are unlocked, a thread yields now and then, or sleeps for up to 100 us. Two steps that nearly
 * always follow each other at once, such as an unlock and a poke, are then far apart often enough to show
 * what happens in between. The numbers are drawn from WEIR_DELAYS_SEED of the environment (1). In other
 * builds it is nothing.
 */
#ifndef WR_BASE_DELAYS_H
#define WR_BASE_DELAYS_H

#ifdef WR_DELAYS
void wr_delays_here(unsigned in); /* at one of `in` calls, on average. Not in simulated worlds. errno stays */
#else
#define wr_delays_here(in) ((void)0)
#endif

enum { WR_DELAY_UNLOCK = 8, WR_DELAY_ATOMIC = 512 };

#endif
