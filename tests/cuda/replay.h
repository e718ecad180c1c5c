/* The kernels of replay.c: see replay.cu. */
#ifndef TESTS_CUDA_REPLAY_H
#define TESTS_CUDA_REPLAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* to[i] = from[i] + plus for count numbers; from NULL: plus. faults_at > 0: stores to NULL once from[0] is
 * that. */
struct replay_add {
	int64_t *to;
	const int64_t *from;
	int64_t count, plus, faults_at;
};

int replay_add_cuda(void *native, const void *arguments);
int replay_nothing_cuda(void *native, const void *arguments);

/* Calls of CUDA's that a capture cannot contain; 0: it succeeded. */
int replay_allocate(void);
int replay_synchronize(void *native);

/* A capture that holds nothing. 0: it succeeded. */
int replay_capture_begin(void *native);
int replay_capture_end(void *native);

/* Bytes in use: resident ones of the process; those of the device. */
struct replay_memory {
	size_t host, device;
};
void replay_memory(struct replay_memory *out);

/* By hand, on the thread that calls: launches of a graph of `kernels` empty kernels, each with an event
 * record. */
struct replay_hand;
struct replay_hand *replay_hand_open(int kernels);  /* NULL: a call of CUDA's failed */
bool replay_hand_burst(struct replay_hand *hand);   /* some of them, then waits for their end */
double replay_hand_close(struct replay_hand *hand); /* the median of one, in ns */

#ifdef __cplusplus
}
#endif

#endif
