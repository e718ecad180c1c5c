/*
 * Preloaded: the FAIL_AT-th allocation of the process fails (counted from 0), and with FAIL_ALL every later
 * one, too. The number of allocations is written to FAIL_COUNT=FILE at the end. A program calls fail_at().
 * Allocations of pthread_getattr_np are not counted: AddressSanitizer calls it when a thread starts, outside
 * of weir's code, and ends the process if it fails.
 */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *(*real_malloc)(size_t bytes);
static void *(*real_calloc)(size_t count, size_t bytes);
static void *(*real_realloc)(void *memory, size_t bytes);
static int (*real_posix_memalign)(void **out, size_t alignment, size_t bytes);
static void *(*real_aligned_alloc)(size_t alignment, size_t bytes);
static int (*real_pthread_getattr_np)(pthread_t thread, pthread_attr_t *out);

static _Atomic long made;
static long fails_at = -1;
static bool all, on, one_thread;
static const char *count_file;
static char early[65536]; /* for dlsym, which allocates while calloc is being looked up */
static size_t early_used;
static _Thread_local bool counted __attribute__((tls_model("initial-exec")));
static _Thread_local bool passed_over __attribute__((tls_model("initial-exec")));

__attribute__((constructor(101))) static void look_up(void)
{
	const char *at = getenv("FAIL_AT");

	*(void **)&real_malloc = dlsym(RTLD_NEXT, "malloc");
	*(void **)&real_calloc = dlsym(RTLD_NEXT, "calloc");
	*(void **)&real_realloc = dlsym(RTLD_NEXT, "realloc");
	*(void **)&real_posix_memalign = dlsym(RTLD_NEXT, "posix_memalign");
	*(void **)&real_aligned_alloc = dlsym(RTLD_NEXT, "aligned_alloc");
	fails_at = at ? atol(at) : -1;
	all = getenv("FAIL_ALL");
	count_file = getenv("FAIL_COUNT");
	on = true;
}

long fail_at(long n);

/*
 * From now on the n-th one of the calling thread fails (counted from 0; negative: none). Returns how many
 * there were since the last call.
 */
long fail_at(long n)
{
	one_thread = counted = true;
	fails_at = n;
	return atomic_exchange(&made, 0);
}

static bool fails(void)
{
	long n = on && !passed_over && (!one_thread || counted) ? atomic_fetch_add(&made, 1) : -1;

	if (n < 0 || fails_at < 0 || (n != fails_at && !(all && n > fails_at)))
		return false;
	errno = ENOMEM;
	return true;
}

void *malloc(size_t bytes)
{
	if (!real_malloc)
		*(void **)&real_malloc = dlsym(RTLD_NEXT, "malloc");
	return fails() ? NULL : real_malloc(bytes);
}

void *calloc(size_t count, size_t bytes)
{
	static bool looking;

	if (looking) { /* called by dlsym */
		void *memory = early + early_used;

		early_used += (count * bytes + 15) & ~(size_t)15;
		return early_used <= sizeof early ? memory : NULL;
	}
	if (!real_calloc) {
		looking = true;
		*(void **)&real_calloc = dlsym(RTLD_NEXT, "calloc");
		looking = false;
	}
	return fails() ? NULL : real_calloc(count, bytes);
}

void *realloc(void *memory, size_t bytes)
{
	if (!real_realloc)
		*(void **)&real_realloc = dlsym(RTLD_NEXT, "realloc");
	return fails() ? NULL : real_realloc(memory, bytes);
}

int posix_memalign(void **out, size_t alignment, size_t bytes)
{
	return fails() ? ENOMEM : real_posix_memalign(out, alignment, bytes);
}

void *aligned_alloc(size_t alignment, size_t bytes)
{
	return fails() ? NULL : real_aligned_alloc(alignment, bytes);
}

int pthread_getattr_np(pthread_t thread, pthread_attr_t *out)
{
	int error;

	if (!real_pthread_getattr_np) /* called for the first thread before any constructor */
		*(void **)&real_pthread_getattr_np = dlsym(RTLD_NEXT, "pthread_getattr_np");
	passed_over = true;
	error = real_pthread_getattr_np(thread, out);
	passed_over = false;
	return error;
}

__attribute__((destructor)) static void write_count(void)
{
	FILE *file;

	on = false;
	file = count_file ? fopen(count_file, "w") : NULL;
	if (!file)
		return;
	fprintf(file, "%ld\n", (long)made);
	fclose(file);
}
