/*
 * A CUDA for tests, without a GPU: the runtime and driver calls that weir makes, on threads of the CPU,
 * compiled against the headers of the real toolkit and linked instead of its runtime. CONTRIBUTING.md says
 * how to run it and how to add a call.
 *
 * It orders what CUDA orders, and nothing else: each stream is a thread, and one happens before the other
 * only from the host to what it enqueues, along a stream, at events, at the calls that wait for the device,
 * in a graph along its edges, and between the legacy default stream and blocking ones. Its own state is in
 * atomics that order nothing and under locks that the thread sanitizer does not see (quiet.h), so that a
 * missing order of the program is a race there. Memory of the device is the heap's, so the address sanitizer
 * sees what a kernel or a copy does wrong. cudaFree does not wait for the device: a program that frees memory
 * in use is seen, even where the driver would have waited.
 *
 * What ends the process with one line: the use of a handle or of memory after its end, a second destroy, a
 * wrong handle, a call that the fake lacks. What is left at its end is listed, and makes its exit code 86.
 * After an error that sticks nothing is checked.
 *
 * The environment:
 *
 *	FAKE_CUDA_DEVICES=N    that many devices; 2 otherwise
 *	FAKE_CUDA_FAIL=LIST    CALL:N:CODE,...: the N-th call of that name (*: of any) returns the code
 *	FAKE_CUDA_LATE=SEED    streams and calls are late, by up to 300 us, now and then
 *	FAKE_CUDA_COUNT=FILE   at the end: "CALL N" for each call that was made
 */
#ifndef TESTS_FAKE_FAKE_H
#define TESTS_FAKE_FAKE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { FAKE_PARAMETERS = 8, FAKE_SM_WORDS = 5, FAKE_SMS = 132, FAKE_LEFT_OVER = 86 };

/* What a kernel may use of the device. */
struct fake_place {
	uint32_t sms[FAKE_SM_WORDS]; /* a bit for each multiprocessor */
};

/* A kernel's form for the fake. Returns 0, or the error (a cudaError_t) by which the device is lost. */
struct fake_kernel {
	const char *name;
	int (*run)(void *const *parameters, const struct fake_place *place);
	size_t sizes[FAKE_PARAMETERS]; /* of the parameters; 0 ends them */
};

/* Borrows it for ever: cudaLibraryGetKernel finds it by its name, cudaLaunchKernel by its address. */
void fake_kernel_add(const struct fake_kernel *kernel);

/* For weir_kernel.cuda: adds the kernel and enqueues it with one parameter. Returns a cudaError_t. */
int fake_launch(void *stream, const struct fake_kernel *kernel, const void *arguments);

/* The N-th call of that name from now on returns the code; NULL takes all back. While none makes calls. */
void fake_fail(const char *call, unsigned nth, int code);
unsigned fake_count(const char *call); /* how often it was called in this process */

/* For tests of the fake: problems are written here, not told; the call returns an error. NULL: told again. */
void fake_catch(char *line, size_t room);
unsigned fake_left_over(void); /* objects that live now */

#endif
