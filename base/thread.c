/*
 * Each call first checks whether the caller is a fiber; if x. While a fiber owns a mutex,
 * or waits on a condition variable or parker, the object points to it (or to its world), so that the thread
 * that drives the world finds it. Among real threads these pointers stay NULL and are only read.
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

enum { NAME_BYTES = 16 }; /* the kernel's limit for a thread's name */
enum { HANDLER_STACK = 1 << 15 };

_Atomic unsigned wr_worlds;
const struct wr_world_calls *_Atomic wr_world_table;

#ifdef WR_SEAM
_Thread_local struct wr_here wr_here_of_thread __attribute__((tls_model("initial-exec")));
#else
static _Thread_local struct wr_here of_thread;

__attribute__((noinline)) struct wr_here *wr_here_find(void)
{
	__asm__ volatile(""); /* or the compiler finds that the result is constant, and calls it once */
	return &of_thread;
}
#endif

void wr_world_open(const struct wr_world_calls *calls)
{
	wr_note(&wr_world_table, calls);
	wr_fetch_add(&wr_worlds, 1);
}

void wr_world_close(void)
{
	wr_fetch_sub(&wr_worlds, 1);
}

#ifdef WR_SEAM
void wr_switch(void)
{
	struct wr_fiber *self = WR_HERE.fiber;

	if (self)
		wr_world()->point(self);
}
#endif

/* --------------------------------------------------------------------------------------------- threads -- */

struct start {
	void (*fn)(void *arg);
	void *arg;
	void (*died)(void *arg); /* or NULL */
	char name[NAME_BYTES];
};

/*
 * Gives the thread a signal stack, so that a handler of the program's (SA_ONSTACK) can report a stack
 * overflow. Not if there is one already, for instance a sanitizer's.
 */
static void signal_stack_set(char *bytes, size_t size)
{
	stack_t now;

	if (!sigaltstack(NULL, &now) && now.ss_flags & SS_DISABLE)
		sigaltstack(&(stack_t){.ss_sp = bytes, .ss_size = size}, NULL);
}

static void signal_stack_reset(const char *bytes)
{
	stack_t now;

	if (!sigaltstack(NULL, &now) && now.ss_sp == bytes)
		sigaltstack(&(stack_t){.ss_flags = SS_DISABLE}, NULL);
}

static void thread_run_watched(const struct start *start)
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
	signal_stack_set(handlers, sizeof handlers);
	pthread_setname_np(pthread_self(), start.name);
	prctl(PR_SET_TIMERSLACK, 1UL); /* so that sleeps end in time, not up to 50 us later */
	if (start.died)
		thread_run_watched(&start);
	else
		start.fn(start.arg);
	signal_stack_reset(handlers);
	return NULL;
}

/*
 * A new thread inherits the mask, so POSIX signals are blocked before it is created: it can never receive
 * one. Its own faults are not blocked, or the kernel would end the process without calling the program's
 * handler.
 */
static int thread_create_blocked(pthread_t *handle, struct start *start)
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

static weir_status start_posix(struct wr_thread *thread, const char *name, struct start what)
{
	struct start *start = wr_alloc(1, sizeof(*start));
	int error;

	if (!start)
		return WEIR_E_NOMEM;
	*start = what;
	snprintf(start->name, sizeof(start->name), "%s", name);
	error = thread_create_blocked(&thread->handle, start);
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
	status = wr_fiber_here()
			 ? wr_world()->start(&thread->fiber, name, fn, arg)
			 : start_posix(thread, name, (struct start){.fn = fn, .arg = arg, .died = died});
	thread->started = status == WEIR_OK;
	return status;
}

void wr_thread_join(struct wr_thread *thread)
{
	if (!thread->started)
		return;
	thread->started = false;
	if (thread->fiber)
		wr_world()->join(thread->fiber);
	else
		pthread_join(thread->handle, NULL);
	thread->fiber = NULL;
}

void wr_thread_yield(void)
{
	if (wr_fiber_here())
		wr_world()->yield();
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
 * Yields the core from time to time, since there may be more threads than cores. One pause per call: some
 * hypervisors take many in a row for a guest that waits for a lock, and suspend it.
 */
void wr_thread_relax(void)
{
	enum { TURNS = 256, WORLD_NS = 50 };

	/* a spin takes time in a world, too: if all others wait, a yield would jump to the next event */
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
		at = 0; /* the kernel refuses negative times; they have passed */
	return (struct timespec){.tv_sec = at / 1000000000, .tv_nsec = at % 1000000000};
}

void wr_thread_sleep(int64_t ns)
{
	struct timespec until;

	if (wr_fiber_here()) {
		wr_world()->sleep(ns);
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

#ifdef WR_SEAM
void *wr_thread_local(void)
{
	return WR_HERE.local;
}
#else
/* As wr_here_find, without the call: each message that is made or freed asks. */
__attribute__((noinline)) void *wr_thread_local(void)
{
	__asm__ volatile("");
	return of_thread.local;
}
#endif

void wr_thread_set_local(void *value)
{
	WR_HERE.local = value;
}

/* --------------------------------------------------------------------------------------------- mutexes -- */

/* Not inlined: a fiber that waited for a mutex may go on in another thread, which has another WR_HERE. */
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
	int error = wr_memory_fails() ? ENOMEM : pthread_mutex_init(&mutex->handle, NULL);

	mutex->owner = NULL;
	return error ? wr_fail(WEIR_E_NOMEM, "mutex cannot be made: %s", strerror(error)) : WEIR_OK;
}

void wr_mutex_finish(struct wr_mutex *mutex)
{
	int error = pthread_mutex_destroy(&mutex->handle);

	assert(!error); /* it is locked */
	(void)error;
}

/* Errors of a plain mutex are programming errors. */
static void check_no_error(int error)
{
	assert(!error);
	(void)error;
}

static __attribute__((noinline)) void lock_beside_worlds(struct wr_mutex *mutex)
{
	bool real = !wr_fiber_here();

	if (!real || mutex->owner)
		wr_world()->lock(mutex);
	if (real)
		check_no_error(pthread_mutex_lock(&mutex->handle));
}

static __attribute__((noinline)) void unlock_beside_worlds(struct wr_mutex *mutex)
{
	if (wr_fiber_here())
		wr_world()->unlock(mutex);
	else
		check_no_error(pthread_mutex_unlock(&mutex->handle));
}

void wr_mutex_lock(struct wr_mutex *mutex)
{
	if (wr_read(&wr_worlds))
		lock_beside_worlds(mutex);
	else
		check_no_error(pthread_mutex_lock(&mutex->handle));
	count_held(1);
}

void wr_mutex_unlock(struct wr_mutex *mutex)
{
	count_held(-1);
	if (wr_read(&wr_worlds))
		unlock_beside_worlds(mutex);
	else
		check_no_error(pthread_mutex_unlock(&mutex->handle));
	wr_delays_here(WR_DELAY_UNLOCK);
}

static pthread_mutex_t global = PTHREAD_MUTEX_INITIALIZER;

void wr_global_lock(void)
{
	check_no_error(pthread_mutex_lock(&global));
	WR_HERE.pinned++;
}

void wr_global_unlock(void)
{
	WR_HERE.pinned--;
	check_no_error(pthread_mutex_unlock(&global));
}

/* --------------------------------------------------------------------------------- condition variables -- */

weir_status wr_cond_init(struct wr_cond *cond)
{
	pthread_condattr_t attributes;
	int error = wr_memory_fails() ? ENOMEM : pthread_condattr_init(&attributes);

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
	check_no_error(pthread_cond_destroy(&cond->handle));
}

bool wr_cond_wait(struct wr_cond *cond, struct wr_mutex *mutex, int64_t until)
{
	struct timespec at;
	int error;

	if (wr_fiber_here())
		return wr_world()->wait(cond, mutex, until);
	at = timespec_of(until);
	error = until == WR_FOREVER ? pthread_cond_wait(&cond->handle, &mutex->handle)
				    : pthread_cond_timedwait(&cond->handle, &mutex->handle, &at);
	assert(!error || error == ETIMEDOUT);
	return error != ETIMEDOUT;
}

void wr_cond_broadcast(struct wr_cond *cond)
{
	if (wr_fiber_here() || cond->sim)
		wr_world()->broadcast(cond);
	else
		check_no_error(pthread_cond_broadcast(&cond->handle));
}

unsigned wr_cores(void)
{
	cpu_set_t set; /* 1024 cores: with more, sched_getaffinity fails */
	long cores = sched_getaffinity(0, sizeof set, &set) ? sysconf(_SC_NPROCESSORS_ONLN) : CPU_COUNT(&set);

	return cores < 1 ? 1 : (unsigned)cores;
}

/* --------------------------------------------------------------------------------------------- parkers -- */

enum { EMPTY, TOKEN, WAITS };

/* Returns false if `until` has passed; true if woken, interrupted (F44), or the word was no longer WAITS. */
static bool futex_wait(_Atomic uint32_t *word, int64_t until)
{
	struct timespec at, *end = NULL;

	if (until != WR_FOREVER) {
		at = timespec_of(until);
		end = &at;
	}
	return !syscall(SYS_futex, word, FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG, WAITS, end, NULL,
			FUTEX_BITSET_MATCH_ANY) ||
	       errno != ETIMEDOUT;
}

bool wr_park(struct wr_parker *parker, int64_t until)
{
	uint32_t seen;

	if (wr_fiber_here())
		return wr_world()->park(parker, until);
	do {
		seen = TOKEN;
		if (wr_cas(&parker->word, &seen, EMPTY))
			return true;
		/*
		 * The word is EMPTY or, after a spurious wake-up, still WAITS.
		 * If it becomes TOKEN now, the next iteration takes it.
		 */
		if (seen == EMPTY && !wr_cas(&parker->word, &seen, WAITS))
			continue;
	} while (futex_wait(&parker->word, until));
	return wr_exchange(&parker->word, EMPTY) == TOKEN;
}

#define AWAY 5000 /* ns between two looks: another thread had the core */

bool wr_park_awake(struct wr_parker *parker, int64_t until)
{
	int64_t now = wr_now(), before;
	uint32_t seen;

	if (wr_fiber_here())
		return false;
	do {
		seen = TOKEN;
		if (wr_load_relaxed(&parker->word) == TOKEN && wr_cas(&parker->word, &seen, EMPTY))
			return true;
		wr_thread_relax();
		before = now;
		now = wr_now();
	} while (now < until && now - before < AWAY);
	return false;
}

/*
 * After the exchange the parker may be gone, if its owner was awake and took the token. The wake-up then goes
 * to an address without a waiter, and the kernel ignores it.
 */
void wr_unpark(struct wr_parker *parker)
{
	int error;

	if (wr_fiber_here() || parker->waiter) {
		wr_world()->unpark(parker);
		return;
	}
	if (wr_exchange(&parker->word, TOKEN) != WAITS)
		return;
	error = errno; /* in a POSIX signal handler, errno belongs to the code that was interrupted */
	syscall(SYS_futex, &parker->word, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, 1);
	errno = error;
}
