/* Words of the fake's own tests. */
#ifndef TESTS_FAKE_TEST_H
#define TESTS_FAKE_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <cuda_runtime_api.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "fake.h"

#define OK(call) assert_int_equal(call, cudaSuccess)

static inline cudaStream_t a_stream(unsigned flags)
{
	cudaStream_t stream;

	OK(cudaStreamCreateWithFlags(&stream, flags));
	return stream;
}

static inline cudaEvent_t an_event(void)
{
	cudaEvent_t event;

	OK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
	return event;
}

/* A door that a host function waits at: what is behind it on the stream is pending until it is opened. */
struct door {
	atomic_bool open;
};

static void CUDART_CB wait_at_door(void *arg)
{
	struct door *door = arg;

	while (!atomic_load_explicit(&door->open, memory_order_relaxed))
		;
}

static inline void close_door(struct door *door, cudaStream_t stream)
{
	atomic_store_explicit(&door->open, false, memory_order_relaxed);
	OK(cudaLaunchHostFunc(stream, wait_at_door, door));
}

static inline void open_door(struct door *door)
{
	atomic_store_explicit(&door->open, true, memory_order_relaxed);
}

/* Of this program with an argument; what it prints is dropped. */
static inline int exit_code_of(const char *program, const char *part)
{
	char command[400];
	int ended;

	snprintf(command, sizeof command, "'%s' %s >/dev/null 2>&1", program, part);
	ended = system(command);
	return WIFEXITED(ended) ? WEXITSTATUS(ended) : -1;
}

#endif
