/*
 * Each call asks one word of the thread first: does a fiber run here? If so base/sim.c answers. A mutex,
 * condition variable or parker that a world uses carries a pointer to it while somebody owns or waits, so
 * that the thread that drives the world finds the fibers, too; among real threads these pointers stay NULL
 * and are only read.
 */
#include "base/thread.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fiber.h"
#include "base/memory.h"

enum { NAME_BYTES = 16 };	/* what the kernel keeps of a thread's name */
enum { HANDLER_STACK = 1 << 15 };

_Atomic unsigned wr_worlds;

#ifdef WR_SEAM
_Thread_local struct wr_here wr_here_of_thread __attribute__((tls_model("initial-exec")));
#else
static _Thread_local struct wr_here of_thread;

__attribute__((noinline)) struct wr_here *wr_here_find(void)
{
	__asm__ volatile("");	/* or the compiler sees that the answer is a constant, and asks once */
	return &of_thread;
}
#endif

/* --------------------------------------------------------------------------------------------- threads -- */

struct start {
	void (*fn)(void *arg);
	void *arg;
	void (*died)(void *arg);	/* or NULL */
	char name[NAME_BYTES];
};

/*
 * A handler of the program's (SA_ONSTACK) can tell of a stack that has overflowed: it runs at the far end of it. A
 * sanitizer gives its own.
 */
static void give_handler_stack(char *bytes, size_t size)
{
	stack_t now;

	if (!sigaltstack(NULL, &now) && now.ss_flags & SS_DISABLE)
		sigaltstack(&(stack_t){.ss_sp = bytes, .ss_size = size}, NULL);
}

static void take_handler_stack(const char *bytes)
{
	stack_t now;

	if (!sigaltstack(NULL, &now) && now.ss_sp == bytes)
		sigaltstack(&(stack_t){.ss_flags = SS_DISABLE}, NULL);
}

static void run_watched(const struct start *start)
{
	pthread_cleanup_push(start->died, start->arg);
	start->fn(start->arg);
	pthread_cleanup_pop(0);
}

static void *thread_main(void *argument)
{
	struct start start = *(struct start *)argument;
	char handlers[HANDLER_STACK];

	wr_free(argument);
	give_handler_stack(handlers, sizeof handlers);
	pthread_setname_np(pthread_self(), start.name);
	prctl(PR_SET_TIMERSLACK, 1UL);	/* sleeps until a time end then, not up to 50 us later */
	if (start.died)
		run_watched(&start);
	else
		start.fn(start.arg);
	take_handler_stack(handlers);
	return NULL;
}

/*
 * The mask is inherited: blocked before, there is no moment in
 * which the new thread could be given a POSIX signal. A fault of its
 * own is not blocked: the kernel would end the process past its handler.
 */
static int create_blocked(pthread_t *handle, struct start *start)
{
	static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS};
	sigset_t all, before;
	int error;

	sigfillset(&all);
	for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++)
		sigdelset(&all, faults[i]);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	error = pthread_create(handle, NULL, thread_main, start);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return error;
}

static weir_status start_thread(struct wr_thread *thread, const char *name, struct start what)
{
	struct start *start = wr_alloc(1, sizeof(*start));
	int error;

	if (!start)
		return WEIR_E_NOMEM;
	*start = what;
	snprintf(start->name, sizeof(start->name), "%s", name);
	error = create_blocked(&thread->handle, start);
	if (!error)
		return WEIR_OK;
	wr_free(start);
	return wr_fail(error == EAGAIN ? WEIR_E_NOMEM : WEIR_E_IO, "thread '%s' cannot be started: %s", name,
		       strerror(error));
}

weir_status wr_thread_start(struct wr_thread *thread, const char *name, void (*fn)(void *arg), void *arg)
{
	return wr_thread_start_watched(thread, name, fn, arg, NULL);
}

weir_status wr_thread_start_watched(struct wr_thread *thread, const char *name, void (*fn)(void *arg),
				    void *arg, void (*died)(void *arg))
{
	weir_status status;

	*thread = (struct wr_thread){0};
	status = wr_fiber_here() ? wr_fiber_start(&thread->fiber, name, fn, arg)
			       : start_thread(thread, name, (struct start){.fn = fn, .arg = arg, .died = died});
	thread->started = status == WEIR_OK;
	return status;
}

void wr_thread_join(struct wr_thread *thread)
{
	if (!thread->started)
		return;
	thread->started = false;
	if (thread->fiber)
		wr_fiber_join(thread->fiber);
	else
		pthread_join(thread->handle, NULL);
	thread->fiber = NULL;
}

void wr_thread_yield(void)
{
	if (wr_fiber_here())
		wr_fiber_yield();
	else
		sched_yield();
}

static void pause_core(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

/*
 * Now and then others get the core: there may be more threads than cores. One pause alone: some machines take
 * many in a row for a guest that waits for a lock, and stop it.
 */
void wr_thread_relax(void)
{
	enum { TURNS = 256, WORLD_NS = 50 };

	/* a turn takes time there, too; where all others wait a yield would jump to whatever comes next */
	if (wr_fiber_here()) {
		wr_thread_sleep(WORLD_NS);
		return;
	}
	pause_core();
	if (++WR_HERE.relaxed % TURNS == 0)
		sched_yield();
}

static struct timespec timespec_of(int64_t at)
{
	if (at < 0)
		at = 0;	/* the kernel refuses times before its own zero; they have passed */
	return (struct timespec){.tv_sec = at / 1000000000, .tv_nsec = at % 1000000000};
}

void wr_thread_sleep(int64_t ns)
{
	struct timespec until;

	if (wr_fiber_here()) {
		wr_fiber_sleep(ns);
		return;
	}
	if (ns <= 0)
		return;
	until = timespec_of(wr_time_add(wr_now(), ns));
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
		;
}

void weir_sleep(int64_t ns)
{
	wr_thread_sleep(ns);
}

uintptr_t wr_thread_self(void)
{
	struct wr_here *here = &WR_HERE;
	struct wr_fiber *fiber = here->fiber;

	return fiber ? (uintptr_t)fiber : (uintptr_t)here;
}

void *wr_thread_local(void)
{
	return WR_HERE.local;
}

void wr_thread_set_local(void *value)
{
	WR_HERE.local = value;
}

/* --------------------------------------------------------------------------------------------- mutexes -- */

/* Not inlined: a fiber that waited for a mutex may go on in another thread, where WR_HERE lies elsewhere. */
static __attribute__((noinline)) void count_held(int by)
{
#ifndef NDEBUG
	WR_HERE.held += by;
#else
	(void)by;
#endif
}

int wr_mutex_held(void)
{
	return WR_HERE.held;
}

weir_status wr_mutex_init(struct wr_mutex *mutex)
{
	int error = pthread_mutex_init(&mutex->handle, NULL);

	mutex->owner = NULL;
	return error ? wr_fail(WEIR_E_NOMEM, "mutex cannot be made: %s", strerror(error)) : WEIR_OK;
}

void wr_mutex_finish(struct wr_mutex *mutex)
{
	int error = pthread_mutex_destroy(&mutex->handle);

	assert(!error);		/* somebody holds it */
	(void)error;
}

/* What may go wrong with a plain mutex is a fault of the caller. */
static void must(int error)
{
	assert(!error);
	(void)error;
}

static __attribute__((noinline)) void lock_beside_worlds(struct wr_mutex *mutex)
{
	bool real = !wr_fiber_here();

	if (!real || mutex->owner)
		wr_fiber_lock(mutex);
	if (real)
		must(pthread_mutex_lock(&mutex->handle));
}

static __attribute__((noinline)) void unlock_beside_worlds(struct wr_mutex *mutex)
{
	if (wr_fiber_here())
		wr_fiber_unlock(mutex);
	else
		must(pthread_mutex_unlock(&mutex->handle));
}

void wr_mutex_lock(struct wr_mutex *mutex)
{
	if (wr_read(&wr_worlds))
		lock_beside_worlds(mutex);
	else
		must(pthread_mutex_lock(&mutex->handle));
	count_held(1);
}

void wr_mutex_unlock(struct wr_mutex *mutex)
{
	count_held(-1);
	if (wr_read(&wr_worlds))
		unlock_beside_worlds(mutex);
	else
		must(pthread_mutex_unlock(&mutex->handle));
}

static pthread_mutex_t global = PTHREAD_MUTEX_INITIALIZER;

void wr_global_lock(void)
{
	must(pthread_mutex_lock(&global));
	WR_HERE.pinned++;
}

void wr_global_unlock(void)
{
	WR_HERE.pinned--;
	must(pthread_mutex_unlock(&global));
}

/* --------------------------------------------------------------------------------- condition variables -- */

weir_status wr_cond_init(struct wr_cond *cond)
{
	pthread_condattr_t attributes;
	int error = pthread_condattr_init(&attributes);

	cond->sim = NULL;
	if (!error) {
		pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
		error = pthread_cond_init(&cond->handle, &attributes);
		pthread_condattr_destroy(&attributes);
	}
	return error ? wr_fail(WEIR_E_NOMEM, "condition variable cannot be made: %s", strerror(error))
		     : WEIR_OK;
}

void wr_cond_finish(struct wr_cond *cond)
{
	must(pthread_cond_destroy(&cond->handle));
}

bool wr_cond_wait(struct wr_cond *cond, struct wr_mutex *mutex, int64_t until)
{
	struct timespec at;
	int error;

	if (wr_fiber_here())
		return wr_fiber_wait(cond, mutex, until);
	at = timespec_of(until);
	error = until == WR_FOREVER ? pthread_cond_wait(&cond->handle, &mutex->handle)
				    : pthread_cond_timedwait(&cond->handle, &mutex->handle, &at);
	assert(!error || error == ETIMEDOUT);
	return error != ETIMEDOUT;
}

void wr_cond_broadcast(struct wr_cond *cond)
{
	if (wr_fiber_here() || cond->sim)
		wr_fiber_broadcast(cond);
	else
		must(pthread_cond_broadcast(&cond->handle));
}

/* --------------------------------------------------------------------------------------------- parkers -- */

enum { EMPTY, TOKEN, WAITS };

/* False: `until` has passed. True says nothing: woken, interrupted (F44), or the word was no longer WAITS. */
static bool futex_wait(_Atomic uint32_t *word, int64_t until)
{
	struct timespec at = timespec_of(until);

	return !syscall(SYS_futex, word, FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG, WAITS,
			until == WR_FOREVER ? NULL : &at, NULL, FUTEX_BITSET_MATCH_ANY) ||
	       errno != ETIMEDOUT;
}

bool wr_park(struct wr_parker *parker, int64_t until)
{
	uint32_t seen;

	if (wr_fiber_here())
		return wr_fiber_park(parker, until);
	do {
		seen = TOKEN;
		if (wr_cas(&parker->word, &seen, EMPTY))
			return true;
		/*
		 * EMPTY or, after a wake-up without token, still WAITS; a
		 * token that comes now makes the next round.
		 */
		if (seen == EMPTY && !wr_cas(&parker->word, &seen, WAITS))
			continue;
	} while (futex_wait(&parker->word, until));
	return wr_exchange(&parker->word, EMPTY) == TOKEN;
}

/*
 * After the exchange the parker may be gone, if its owner was awake and took the token: the wake-up then goes
 * to an address where nobody waits, which the kernel ignores.
 */
void wr_unpark(struct wr_parker *parker)
{
	int error;

	if (wr_fiber_here() || parker->waiter) {
		wr_fiber_unpark(parker);
		return;
	}
	if (wr_exchange(&parker->word, TOKEN) != WAITS)
		return;
	error = errno;	/* in a POSIX signal handler, errno belongs to the code that was interrupted */
	syscall(SYS_futex, &parker->word, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, 1);
	errno = error;
}
