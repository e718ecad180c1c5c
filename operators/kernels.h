/*
 * The kernels of the built-in operators: their arguments, and the launchers that the .cu files define.
 * Included by C and by CUDA.
 */
#ifndef WR_OPERATORS_KERNELS_H
#define WR_OPERATORS_KERNELS_H

#include <stdint.h>

/* A dense image of bytes: [height][width][channels]. */
struct wr_image {
	int32_t height, width, channels;
};

struct wr_blur_arguments {
	const uint8_t *from;
	uint8_t *to;
	struct wr_image image; /* of both */
	int32_t radius;
};

struct wr_sobel_arguments {
	const uint8_t *from;
	uint8_t *to;           /* one channel */
	struct wr_image image; /* of `from` */
};

/* Weights of a matrix, in 65536ths. */
struct wr_convert_matrix {
	int32_t r_to_y, g_to_y, b_to_y;
	int32_t to_u[3], to_v[3];
	int32_t y_scale, v_to_r, u_to_g, v_to_g, u_to_b;
	int32_t gray[3]; /* 256ths */
};

struct wr_convert_arguments {
	const uint8_t *from;
	uint8_t *to;
	int32_t height, width;
	int32_t from_format, to_format; /* enum wr_pixel_format */
	struct wr_convert_matrix matrix;
};

enum wr_float_type { WR_FLOAT32, WR_FLOAT16, WR_BFLOAT16 };

struct wr_normalize_arguments {
	const uint8_t *from;
	void *to; /* float32, or the bits of 16: [1, channels, height, width] */
	struct wr_image image;
	int32_t type; /* enum wr_float_type */
	double range, mean[4], std[4];
	const void *table; /* of the host form */
};

/* The picture fills a rectangle of `to`; the rest is filled. */
struct wr_resize_arguments {
	const uint8_t *from;
	uint8_t *to;
	struct wr_image image; /* of `from` */
	int32_t height, width; /* of `to` */
	int32_t left, top, inner_height, inner_width;
	uint8_t fill[4];
};

struct wr_spin_arguments {
	uint64_t *to; /* 16 bytes: the tick, the duration */
	uint64_t tick;
	int64_t duration; /* ns */
	int32_t fault;
};

/* Launchers for weir_kernel.cuda: enqueue on a cudaStream_t and return a cudaError_t. */
#ifdef __cplusplus
extern "C" {
#endif
int wr_blur_cuda(void *stream, const void *arguments);
int wr_convert_cuda(void *stream, const void *arguments);
int wr_normalize_cuda(void *stream, const void *arguments);
int wr_resize_cuda(void *stream, const void *arguments);
int wr_sobel_cuda(void *stream, const void *arguments);
int wr_spin_cuda(void *stream, const void *arguments);
#ifdef __cplusplus
}
#endif

#ifdef WEIR_WITH_CUDA
#define WR_CUDA_FORM(launcher) (launcher)
#else
#define WR_CUDA_FORM(launcher) NULL
#endif

#endif
