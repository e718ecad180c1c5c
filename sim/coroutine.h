/*
 * A coroutine: a function with a stack of its own, and the switch between two of them. Private to sim, but
 * for the macros WR_ASAN and WR_TSAN. Stacks have a guard page below and are pooled in the process, since
 * tests make millions of coroutines.
 */
#ifndef WR_SIM_COROUTINE_H
#define WR_SIM_COROUTINE_H

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
 * x86-64 and aarch64 have switches of their own. Other machines, or a build that defines
 * WR_UCONTEXT, use libc's (three system calls per switch).
 */
#if !defined(__x86_64__) && !defined(__aarch64__) && !defined(WR_UCONTEXT)
#define WR_UCONTEXT 1
#endif
#ifdef WR_UCONTEXT
#include <ucontext.h>
#endif

struct wr_coroutine {
	void (*fn)(void *arg); /* never returns */
	void *arg;
	void *stack;               /* its mapping; NULL: a thread's own stack */
	struct wr_coroutine *from; /* that switched here last */
#ifdef WR_UCONTEXT
	ucontext_t context;
#else
	void *top; /* of the stack while it is suspended: the saved registers */
#endif
#ifdef WR_ASAN
	void *fake; /* the sanitizer's fake stack */
	const void *bottom;
	size_t bytes;
#endif
#ifdef WR_TSAN
	void *shadow; /* the sanitizer's fiber handle */
#endif
};

/* makes it stand for the caller, on its current stack */
void wr_coroutine_here(struct wr_coroutine *coroutine);
weir_status wr_coroutine_init(struct wr_coroutine *coroutine, void (*fn)(void *arg), void *arg);
/* Returns when another coroutine switches back to `from`; never, if it `ends`. */
void wr_coroutine_switch(struct wr_coroutine *from, struct wr_coroutine *to, bool ends);
/* Not called on its own stack, which may be reused at once. A zeroed coroutine is fine. */
void wr_coroutine_finish(struct wr_coroutine *coroutine);

#endif
