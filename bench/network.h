/*
 * bench/network: frames/s of resize -> normalize -> network -> top, by weir and by a loop written by hand.
 * What its files share. Both forms read the same pictures and give the same results, which are compared.
 */
#ifndef BENCH_NETWORK_H
#define BENCH_NETWORK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

enum { NETWORK_SIDE = 224, NETWORK_PICTURES = 8, NETWORK_TOP = 5, NETWORK_NAME = 1024 };

struct network_work {
	const char *model, *plugin;
	const char *properties; /* "KEY=VALUE KEY=VALUE", for OpenVINO, beside one stream for each request */
	int frames, requests, width, height;
	bool pipe; /* the loop alone: pictures from standard input, what the network gives to standard output
		    */
	uint8_t *
		pictures[NETWORK_PICTURES]; /* height x width x 3; frame i is picture i modulo their number */
};

/* Of one run, from its first frame to its last result: time, CPU time of the process; and the best classes.
 */
struct network_run {
	int64_t ns, cpu_ns;
	int32_t (*top)[NETWORK_TOP];
};

/* Called before the first frame and after the last result. */
void network_begin(struct network_run *run);
void network_end(struct network_run *run);
/* The camera: a frame's picture is copied, or read, into memory of the form's own. */
void network_camera(const struct network_work *work, int frame, uint8_t *to);
/* The classes with the largest values, the largest first. */
void network_top(const float *values, size_t count, int32_t top[NETWORK_TOP]);
/* What is done with a result of the loop: its classes, or it is written. */
void network_result(const struct network_work *work, int frame, const float *values, size_t count,
		    struct network_run *run);

/* network_plain.c. One thread: wait for the oldest request, its top, the next frame's stages, start. */
void network_plain(const struct network_work *work, struct network_run *run);
/* network_weir.c */
void network_weir(const struct network_work *work, struct network_run *run);

static inline void *network_allocate(size_t bytes)
{
	void *memory = aligned_alloc(64, (bytes + 63) / 64 * 64);

	return memory ? memory : (abort(), memory);
}

#endif
