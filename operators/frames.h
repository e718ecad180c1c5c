/*
 * What frames_read and frames_write share: the descriptor, and what a frame is. A function that returns a
 * status has called weir_context_fail if it fails.
 */
#ifndef WR_OPERATORS_FRAMES_H
#define WR_OPERATORS_FRAMES_H

#include <sys/types.h>

#include "weir.h"

enum { WR_FRAMES_TEXT = 128, WR_FRAMES_SIDE_MAX = 1 << 15, WR_FRAMES_BYTES_MAX = 1 << 30 };

/* Parameters of both operators. use: READ or WRITE. */
#define WR_FRAMES_PARAMETERS(use, what)                                                                      \
	{                                                                                                    \
		.size = sizeof(weir_parameter),                                                              \
		.name = "path",                                                                              \
		.type = WEIR_TYPE_##use##_FILE,                                                              \
		.fallback = "\"-\"",                                                                         \
		.help = what,                                                                                \
	},                                                                                                   \
		{                                                                                            \
			.size = sizeof(weir_parameter),                                                      \
			.name = "descriptor",                                                                \
			.type = WEIR_TYPE_##use##_DESCRIPTOR,                                                \
			.fallback = "-1",                                                                    \
			.help = "a descriptor that the process was started with, instead of the path; -1: "  \
				"none",                                                                      \
		},                                                                                           \
	{                                                                                                    \
		.size = sizeof(weir_parameter), .name = "format", .type = WEIR_TYPE_CHOICE,                  \
		.fallback = "\"raw\"", .choices = "raw|y4m",                                                 \
		.help = "raw: frames without headers; y4m: YUV4MPEG2, planes of uint8",                      \
	}

/* One end of a pipe, a socket, a file or a terminal. Its flags are as they were, unless it is our own. */
struct wr_channel {
	int fd;                         /* -1: not open */
	bool own, socket, file, blocks; /* blocks: a write of more than PIPE_BUF may block */
	bool old;                       /* the path's file has its old content, to the first write */
	bool made;                      /* the file is new */
	char name[WR_FRAMES_TEXT];      /* "'clip.y4m'", "standard input" */
};

/* Of the entity while it waits for the other end. */
#define WR_FRAMES_CONDITION "{\"type\": \"file_descriptor\", \"warn_after\": \"10s\"}"

/* Opens what `path` and `descriptor` name and lets the entity wait for it. */
weir_status wr_channel_open(weir_context *context, struct wr_channel *channel, const weir_values *values,
			    bool write);
void wr_channel_close(weir_context *context, struct wr_channel *channel); /* logs a failure */
/*
 * The end of what is written, before closing. A file that nothing was written to is emptied if the run has
 * come to its end by itself; else it is as it was, and one that was made is removed.
 */
void wr_channel_end(weir_context *context, struct wr_channel *channel, const char *path);
/* Bytes up to the end of a regular file; -1: it is none. */
int64_t wr_channel_left(const struct wr_channel *channel);
/* More bytes at once in a pipe whose frames are larger; done as far as the system allows it. */
void wr_channel_widen(const struct wr_channel *channel, size_t frame);
/* As read and write, but never block, whatever the flags of the descriptor: -1 and EAGAIN. No SIGPIPE. */
ssize_t wr_channel_read(const struct wr_channel *channel, void *to, size_t bytes);
ssize_t wr_channel_write(struct wr_channel *channel, const void *from, size_t bytes);

/* --- Y4M: the planes of a frame are one below the other: [rows, width, 1] --- */

#define WR_Y4M_PLANES "420|422|444|mono"
#define WR_Y4M_MAGIC  "YUV4MPEG2"
enum { WR_Y4M_LINE = 1024 }; /* longest header */

/* Rows of all planes of that colour space (of WR_Y4M_PLANES); 0: not of this size. */
int64_t wr_y4m_rows(const char *planes, int64_t width, int64_t height);
/* The height of frames with so many rows; 0: none has. */
int64_t wr_y4m_height(const char *planes, int64_t width, int64_t rows);

#endif
