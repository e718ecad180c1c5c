/*
 * bench/pipeline: frames/s and latency of upload -> compute -> download, by weir and by plain CUDA. What its
 * files share. A frame begins when its source writes the input and ends when a host thread has seen its
 * result.
 */
#ifndef BENCH_PIPELINE_H
#define BENCH_PIPELINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { PIPELINE_FRAMES_MAX = 1 << 16 };

/* What a frame needs; all sizes in bytes. The first word of the input is the frame's number. */
struct pipeline_work {
	const char *name;
	size_t input, output, hidden; /* host to device; device to host; what compute uses in between */
	int64_t compute_ns;           /* synthetic: how long the kernel runs */
	int32_t height, width;        /* upscale: the frame's size; 0: synthetic */
};

/* One frame's memory; input and output also on the device. */
struct pipeline_buffers {
	void *input, *output; /* pinned */
	void *device_input, *device_output, *hidden;
};

/* When each frame began and ended, ns; and whether all results were right. */
struct pipeline_run {
	int frames, ahead; /* ahead: frames in flight */
	int64_t *begin, *end;
	int64_t *computed_from, *computed_to; /* synthetic: when its kernel ran, by the device's clock */
	int wrong;
	uint64_t hits, captures; /* weir: of the compute step */
};

/* What a synthetic kernel writes; pipeline_end reads it. */
struct pipeline_result {
	uint32_t frame, unused; /* the input's first word plus 1 */
	uint64_t from, to;      /* ns */
};

int64_t pipeline_now(void);
/* The source's part: the input, with the frame's number in its first word. The end's: the time, and the check
 * of the result. */
void pipeline_begin(struct pipeline_run *run, int frame, const struct pipeline_work *work, void *input);
void pipeline_end(struct pipeline_run *run, int frame, const struct pipeline_work *work, const void *output);

/* --- plain CUDA, pipeline_plain.cu. Each returns 0 or a cudaError_t --- */
int pipeline_open(char *name, size_t room); /* device 0, its name */
const char *pipeline_text(int error);
/* Bytes that the device copies in `ns` from the host (or to it). */
int pipeline_calibrate(int64_t ns, bool to_host, size_t *out);
/* How long a copy of the work's size takes while the other direction copies, too: ns, [0] up, [1] down. */
int pipeline_copies_at_once(const struct pipeline_work *work, int64_t out[2]);
/* Enqueues a frame's compute on a cudaStream_t. */
int pipeline_compute(void *stream, const struct pipeline_work *work, const struct pipeline_buffers *buffers);
/* one stream, a wait after each step */
int pipeline_synchronous(const struct pipeline_work *work, struct pipeline_run *run);
/* a stream for each step, ordered by events; one thread, `ahead` sets of buffers */
int pipeline_three_streams(const struct pipeline_work *work, struct pipeline_run *run);
/* a stream, a set of buffers and a CUDA graph of all steps for each frame in flight */
int pipeline_graphs(const struct pipeline_work *work, struct pipeline_run *run);

/* --- weir, pipeline_weir.c --- */
struct pipeline_weir {
	const char *signal;
	unsigned workers;
	int64_t worker_spin_ns;
	bool replay;
};
void pipeline_weir(const struct pipeline_work *work, struct pipeline_run *run,
		   const struct pipeline_weir *how);

/* --- figures of a run, pipeline_figures.c --- */

enum { PIPELINE_WARM_UP = 50 }; /* frames that do not count */
struct pipeline_figures {
	double rate, half, most;        /* frames/s; p50 and p99 of the latency, ms */
	double interval, late, longest; /* between the ends of frames: p50; what those above 1.5 x p50 have
					   beyond it, in all; the longest: ms */
	int late_count;                 /* intervals above 1.5 x p50 */
	double kernel, between, idle;   /* p50 of the kernels and between two of them, us; part of the time
					   that no kernel ran. 0: not known */
	uint64_t hits, captures;
};
struct pipeline_figures pipeline_figures_of(const struct pipeline_run *run);
double pipeline_median(double *values, int count); /* sorts them */

#ifdef __cplusplus
}
#endif

#endif
