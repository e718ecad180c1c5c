/*
 * A coroutine: a function with a stack of its own, and the switch between two of them. Private to base.
 * Stacks have a guard page below and are kept for the next coroutine of the process: tests make millions.
 */
#ifndef WR_BASE_COROUTINE_H
#define WR_BASE_COROUTINE_H

#include <stddef.h>

#include "weir.h"

#if defined(__SANITIZE_ADDRESS__)
#define WR_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WR_ASAN 1
#endif
#endif
#if defined(__SANITIZE_THREAD__)
#define WR_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define WR_TSAN 1
#endif
#endif

/*
 * The plain switch is for x86-64; elsewhere, or if WR_UCONTEXT is
 * defined, the one of libc (two system calls a switch).
 */
#if !defined(__x86_64__) && !defined(WR_UCONTEXT)
#define WR_UCONTEXT 1
#endif
#ifdef WR_UCONTEXT
#include <ucontext.h>
#endif

struct wr_coroutine {
	void (*fn)(void *arg);		/* never returns */
	void *arg;
	void *stack;			/* its mapping; NULL: a thread's own stack */
	struct wr_coroutine *from;	/* who switched here last */
#ifdef WR_UCONTEXT
	ucontext_t context;
#else
	void *top;			/* of the stack while it rests: the saved registers */
#endif
#ifdef WR_ASAN
	void *fake;			/* the sanitizer's stack beside the stack */
	const void *bottom;
	size_t bytes;
#endif
#ifdef WR_TSAN
	void *shadow;			/* the sanitizer's idea of a thread */
#endif
};

void wr_coroutine_here(struct wr_coroutine *coroutine);	/* stands for the caller, whatever stack it is on */
weir_status wr_coroutine_init(struct wr_coroutine *coroutine, void (*fn)(void *arg), void *arg);
/* Returns when somebody switches back. `ends`: nobody ever will. */
void wr_coroutine_switch(struct wr_coroutine *from, struct wr_coroutine *to, bool ends);
/* Its stack may be another's at once: not by itself; a zeroed one is taken too. */
void wr_coroutine_finish(struct wr_coroutine *coroutine);

#endif
