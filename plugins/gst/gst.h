/*
 * What gst_read and gst_write share: one pipeline of GStreamer's with weir's own element at one end, what its
 * bus says, and the formats of pictures. Nothing here calls weir but the checks that get a context, so that
 * GStreamer's threads may run it.
 */
#ifndef GST_GST_H
#define GST_GST_H

#include <pthread.h>
#include <stdbool.h>
#include <time.h>

#include <gst/gst.h>
#include <gst/video/video.h>
#include <weir.h>

/* --- formats: weir's names for the layouts of pictures (docs/operators.md, convert) --- */

#define FORMATS "rgb|bgr|rgba|bgra|gray|gray16|nv12|i420"

struct format {
	const char *name;
	GstVideoFormat video;
	int channels; /* of a tensor [height, width, channels] */
	int bits;
	bool planes; /* [height * 3 / 2, width, 1], of an even height and width */
};

/* A name of FORMATS. */
const struct format *format_named(const char *name);
/* The format of dense images with so many channels; NULL: none has. */
const struct format *format_of(int64_t channels, int bits);
/*
 * Copies the rows of all planes between two layouts of one picture, whose rows may have other lengths in
 * memory. Each layout: the first byte of each plane and the bytes from row to row.
 */
struct layout {
	uint8_t *planes[GST_VIDEO_MAX_PLANES];
	int strides[GST_VIDEO_MAX_PLANES];
};
void format_copy(const GstVideoInfo *info, const struct layout *to, const struct layout *from);
/* The layout without gaps, as tensors have it, that begins at `data`. */
struct layout format_dense(const GstVideoInfo *info, uint8_t *data);
size_t format_dense_bytes(const GstVideoInfo *info);

/* --- the process --- */

/* Before anything else: gst_init, once, unless the program has called it. */
weir_status gst_begin(weir_context *context);
/* A pipeline opens files by itself: fails if the run is confined to a folder (--root). */
weir_status gst_check_root(weir_context *context);

/* --- a lock that GStreamer's threads take, too; waits are timed by CLOCK_MONOTONIC --- */

struct monitor {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool made;
};

void monitor_make(struct monitor *monitor);
void monitor_end(struct monitor *monitor); /* also of one that was not made */
/* The time in so many ns, for pthread_cond_timedwait. */
struct timespec monitor_deadline(int64_t ns);

/* --- a pipeline --- */

/* Which end of the description is open for weir's element. */
enum end { END_SINK, END_SOURCE };

struct pipeline {
	GstElement *bin; /* NULL: there is none */
	GstElement *end; /* its appsink or appsrc, with a reference */
};

/*
 * Makes the pipeline, in the state NULL. false: *text says why in one line, which the caller frees (g_free).
 * hear is called on the thread that has posted the message, also during state changes. Takes no lock.
 */
bool pipeline_make(struct pipeline *pipeline, enum end end, const char *description,
		   void (*hear)(void *arg, GstMessage *message), void *arg, char **text);
/* Ends all threads of the pipeline; hear is not called any more. May take as long as its elements do. */
void pipeline_end(struct pipeline *pipeline);
/*
 * Why the pad of weir's element and the pipeline agree on nothing: the first of the caps that the other pad
 * may have; g_free. NULL: they agree, or it is not known. Does not wait.
 */
char *pipeline_other_caps(const struct pipeline *pipeline, GstCaps *wanted);
/* The line for a message of an error: the element, what it says, its debug text. g_free. */
char *pipeline_error_text(GstMessage *message);

/* --- the operators --- */

extern const weir_operator gst_read_operator, gst_write_operator;
extern const weir_condition gst_output_condition;

#endif
