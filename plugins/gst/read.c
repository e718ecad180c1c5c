/*
 * gst_read: frames of a pipeline become messages. GStreamer's streaming thread leaves samples in an appsink
 * and marks an eventfd, for which the entity sleeps (condition file_descriptor); each tick takes one sample.
 * The eventfd is readable while a tick has something to do: a sample, the end, a loss. Frames that wait are
 * bounded: where the pipeline waits, by the appsink, which blocks the streaming thread; where it drops, by
 * the callback, which takes the oldest and counts it.
 *
 * A lost pipeline that is to be tried again is ended and made anew by a thread of its own, since that takes
 * as long as the elements like. The pipeline belongs to that thread until it marks the eventfd, or its frames
 * do.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <gst/app/gstappsink.h>

#include "gst.h"

struct gst_read {
	const char *description;
	const struct format *format;
	GstCaps *wanted;
	unsigned queue;
	bool sync, reconnect, wait, drop; /* neither wait nor drop: by the pipeline */
	int64_t retry;
	int fd;
	struct pipeline pipeline;
	pthread_t thread, before; /* that makes the pipeline anew; the last one, which it joins */
	bool has_thread, has_before;

	struct monitor monitor;
	/* guarded by monitor */
	unsigned ready; /* samples that a tick may take */
	uint64_t dropped;
	char *lost; /* why the pipeline ended */
	bool ended, drops, live, marked, stopping;
	bool deaf; /* the pipeline is lost: what else it says and gives does not count */

	/* the owner's */
	GstCaps *caps; /* of the last sample */
	GstVideoInfo info;
	uint64_t frames, copied, tries;
	int64_t lost_at, epoch; /* epoch: the time of the run at which frames without a pace begin */
	bool over, paced;       /* paced: live, as far as ticks know */
};

static const weir_parameter parameters[] = {
	{
		.size = sizeof(weir_parameter),
		.name = "pipeline",
		.type = WEIR_TYPE_STRING,
		.help = "as gst-launch-1.0 takes it, without a sink: \"v4l2src ! videoconvert\"",
	},
	{
		.size = sizeof(weir_parameter),
		.name = "format",
		.type = WEIR_TYPE_CHOICE,
		.fallback = "\"rgb\"",
		.choices = FORMATS,
		.help = "of the frames, in memory; the pipeline must give it: append \"! videoconvert\"",
	},
	{
		.size = sizeof(weir_parameter),
		.name = "queue",
		.type = WEIR_TYPE_INT,
		.fallback = "4",
		.min = 1,
		.max = 1024,
		.help = "frames that may wait for a tick",
	},
	{
		.size = sizeof(weir_parameter),
		.name = "full",
		.type = WEIR_TYPE_CHOICE,
		.fallback = "\"auto\"",
		.choices = "auto|wait|drop",
		.help = "when so many wait: the pipeline waits, or drops the oldest; auto: a live one drops",
	},
	{
		.size = sizeof(weir_parameter),
		.name = "sync",
		.type = WEIR_TYPE_BOOL,
		.fallback = "false",
		.help = "frames of a file come at their own times, as in a player",
	},
	{
		.size = sizeof(weir_parameter),
		.name = "on_lost",
		.type = WEIR_TYPE_CHOICE,
		.fallback = "\"fail\"",
		.choices = "fail|reconnect",
		.help = "an error of the pipeline fails the run, or the pipeline is made anew, also after "
			"the "
			"end of a live one",
	},
	{
		.size = sizeof(weir_parameter),
		.name = "retry",
		.type = WEIR_TYPE_DURATION,
		.fallback = "\"1s\"",
		.min = 1000000,
		.max = INT64_C(3600000000000),
		.help = "time before a lost pipeline is made anew",
	},
	{.name = NULL},
};

static const weir_port outputs[] = {
	{
		.size = sizeof(weir_port),
		.name = "out",
		.help = "a frame: [height, width, channels]; nv12, i420: [height * 3 / 2, width, 1]",
		.dtype = "uint8|uint16",
		.place = "host",
		.shape = "[H, W, 1] | [H, W, 3..4]",
	},
	{.name = NULL},
};

static const char *const conditions[] = {"{\"type\": \"file_descriptor\", \"warn_after\": \"10s\"}", NULL};

/* --- GStreamer's threads --- */

static void mark_locked(struct gst_read *self)
{
	const uint64_t one = 1;

	if (!self->marked)
		self->marked = write(self->fd, &one, sizeof one) == sizeof one;
}

static GstFlowReturn on_sample(GstAppSink *sink, gpointer arg)
{
	struct gst_read *self = arg;
	GstSample *oldest = NULL;

	pthread_mutex_lock(&self->monitor.lock);
	if (self->drops && self->ready == self->queue && !self->deaf) {
		oldest = gst_app_sink_try_pull_sample(sink, 0);
		self->dropped++;
	} else if (!self->deaf) {
		self->ready++;
		mark_locked(self);
	}
	pthread_mutex_unlock(&self->monitor.lock);
	g_clear_pointer(&oldest, gst_sample_unref);
	return GST_FLOW_OK;
}

/* Takes the text. The first loss is the cause of those that follow. */
static void lose(struct gst_read *self, char *text)
{
	pthread_mutex_lock(&self->monitor.lock);
	if (!self->lost && !self->deaf) {
		self->lost = text;
		text = NULL;
		mark_locked(self);
	}
	pthread_mutex_unlock(&self->monitor.lock);
	g_free(text);
}

/* The end is that of all sinks, so that a branch of the pipeline that ends in a file is complete, too. */
static void hear(void *arg, GstMessage *message)
{
	struct gst_read *self = arg;

	if (GST_MESSAGE_TYPE(message) == GST_MESSAGE_ERROR)
		lose(self, pipeline_error_text(message));
	if (GST_MESSAGE_TYPE(message) != GST_MESSAGE_EOS)
		return;
	pthread_mutex_lock(&self->monitor.lock);
	if (!self->deaf) {
		self->ended = true;
		mark_locked(self);
	}
	pthread_mutex_unlock(&self->monitor.lock);
}

/* --- making and starting the pipeline: the thread that starts the run, or our own --- */

static char *other_caps_text(const struct gst_read *self)
{
	char *caps = pipeline_other_caps(&self->pipeline, self->wanted), *text;

	if (!caps)
		return NULL;
	if (g_str_has_prefix(caps, "video/x-raw,") || !strcmp(caps, "video/x-raw"))
		text = g_strdup_printf("the pipeline gives '%s', but format is %s: append ! videoconvert",
				       caps, self->format->name);
	else
		text = g_strdup_printf(
			"the pipeline gives '%s', but gst_read takes video/x-raw in the memory of "
			"the host: append a decoder, as ! decodebin ! videoconvert",
			caps);
	g_free(caps);
	return text;
}

static void set_sink(struct gst_read *self)
{
	GstAppSinkCallbacks callbacks = {.new_sample = on_sample};
	GstAppSink *sink = GST_APP_SINK(self->pipeline.end);

	g_object_set(sink, "caps", self->wanted, "sync", self->sync, "max-buffers", self->queue,
		     "enable-last-sample", FALSE, NULL);
	gst_app_sink_set_callbacks(sink, &callbacks, self, NULL);
}

/* A live pipeline gives no frames before it plays, so what is decided after the pause comes in time. */
static bool play(struct gst_read *self)
{
	struct pipeline *pipeline = &self->pipeline;
	GstStateChangeReturn paused = gst_element_set_state(pipeline->bin, GST_STATE_PAUSED);
	bool drops;

	pthread_mutex_lock(&self->monitor.lock);
	self->live = paused == GST_STATE_CHANGE_NO_PREROLL;
	self->drops = drops = self->drop || (!self->wait && self->live);
	pthread_mutex_unlock(&self->monitor.lock);
	if (drops)
		gst_app_sink_set_max_buffers(GST_APP_SINK(pipeline->end), 0); /* on_sample bounds them */
	return paused != GST_STATE_CHANGE_FAILURE &&
	       gst_element_set_state(pipeline->bin, GST_STATE_PLAYING) != GST_STATE_CHANGE_FAILURE;
}

/* If it fails, self->lost says why. */
static bool make_and_play(struct gst_read *self)
{
	char *text = NULL;

	if (!pipeline_make(&self->pipeline, END_SINK, self->description, hear, self, &text)) {
		lose(self, text);
		return false;
	}
	text = other_caps_text(self);
	if (text) {
		lose(self, text);
		return false;
	}
	set_sink(self);
	if (play(self))
		return true;
	lose(self, g_strdup("the pipeline does not start, and none of its elements says why"));
	return false;
}

/* --- start and stop --- */

static void end_thread(struct gst_read *self)
{
	if (!self->has_thread)
		return;
	pthread_mutex_lock(&self->monitor.lock);
	self->stopping = true;
	pthread_cond_signal(&self->monitor.changed);
	pthread_mutex_unlock(&self->monitor.lock);
	pthread_join(self->thread, NULL);
	self->has_thread = false;
}

static void gst_read_stop(weir_context *context, void *state)
{
	struct gst_read *self = state;

	end_thread(self);
	pipeline_end(&self->pipeline);
	if (self->dropped)
		weir_context_log(context, WEIR_LOG_WARN,
				 "%" PRIu64 " of %" PRIu64
				 " frames were dropped: what follows was slower than "
				 "they came",
				 self->dropped, self->dropped + self->ready + self->frames);
	if (self->copied)
		weir_context_log(context, WEIR_LOG_INFO,
				 "%" PRIu64 " of %" PRIu64
				 " frames were copied: their rows had gaps between them",
				 self->copied, self->frames);
	if (self->fd >= 0)
		close(self->fd);
	g_clear_pointer(&self->wanted, gst_caps_unref);
	g_clear_pointer(&self->caps, gst_caps_unref);
	g_clear_pointer(&self->lost, g_free);
	monitor_end(&self->monitor);
}

static void read_values(struct gst_read *self, const weir_values *values)
{
	const char *full = weir_values_string(values, "full");

	self->description = weir_values_string(values, "pipeline");
	self->format = format_named(weir_values_string(values, "format"));
	self->queue = (unsigned)weir_values_int(values, "queue");
	self->wait = !strcmp(full, "wait");
	self->drop = !strcmp(full, "drop");
	self->sync = weir_values_bool(values, "sync");
	self->reconnect = !strcmp(weir_values_string(values, "on_lost"), "reconnect");
	self->retry = weir_values_int(values, "retry");
	self->wanted = gst_caps_new_simple("video/x-raw", "format", G_TYPE_STRING,
					   gst_video_format_to_string(self->format->video), NULL);
}

/* What is tried again later is no failure, unless nothing of it could be made. */
static weir_status begin_pipeline(weir_context *context, struct gst_read *self)
{
	if (make_and_play(self) || (self->reconnect && self->pipeline.bin && !other_caps_text(self)))
		return WEIR_OK;
	weir_context_fail(context, "%s", self->lost);
	return WEIR_E_IO;
}

static weir_status gst_read_start(weir_context *context, void *state, const weir_values *values)
{
	struct gst_read *self = state;
	weir_status status = gst_begin(context);

	self->fd = -1;
	if (!status)
		status = gst_check_root(context);
	if (status)
		return status;
	monitor_make(&self->monitor);
	read_values(self, values);
	self->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (self->fd < 0)
		status = weir_context_fail(context, "eventfd: %s", strerror(errno));
	if (!status)
		status = weir_entity_watch(weir_context_entity(context), "file_descriptor", self->fd,
					   WEIR_WATCH_READ);
	if (!status)
		status = begin_pipeline(context, self);
	if (status) {
		weir_entity_watch(weir_context_entity(context), "file_descriptor", -1, 0);
		gst_read_stop(context, state);
	}
	return status;
}

/* For the line about a source that stalls. */
static void gst_read_progress(const void *state, size_t room, char *out)
{
	const struct gst_read *self = state;

	snprintf(out, room,
		 self->lost_at ? "the pipeline is lost and tried again: %" PRIu64 " frames came"
			       : "the pipeline gives nothing: %" PRIu64 " frames came",
		 self->frames);
}

/* --- a lost pipeline --- */

/* Waits for the time of the next try. Returns true if the run stops. */
static bool sleep_to_retry(struct gst_read *self)
{
	struct timespec until = monitor_deadline(self->retry);
	bool stopping;
	int waited = 0;

	pthread_mutex_lock(&self->monitor.lock);
	while (!self->stopping && !waited)
		waited = pthread_cond_timedwait(&self->monitor.changed, &self->monitor.lock, &until);
	stopping = self->stopping;
	pthread_mutex_unlock(&self->monitor.lock);
	return stopping;
}

/* What the old pipeline has said or left is forgotten. */
static void *restart(void *arg)
{
	struct gst_read *self = arg;

	if (self->has_before)
		pthread_join(self->before, NULL);
	pipeline_end(&self->pipeline);
	if (sleep_to_retry(self))
		return NULL;
	pthread_mutex_lock(&self->monitor.lock);
	self->deaf = self->ended = false;
	self->ready = 0;
	g_clear_pointer(&self->lost, g_free);
	pthread_mutex_unlock(&self->monitor.lock);
	make_and_play(self);
	return NULL;
}

static weir_status try_again(weir_context *context, struct gst_read *self, char *why)
{
	pthread_t thread;
	int error;

	weir_context_log(context, self->lost_at ? WEIR_LOG_DEBUG : WEIR_LOG_WARN,
			 "%s; it is tried again every %" PRId64 " ms", why, self->retry / 1000000);
	g_free(why);
	if (!self->lost_at)
		self->lost_at = weir_context_now(context);
	self->tries++;
	self->epoch = 0;
	self->has_before = self->has_thread;
	self->before = self->thread;
	error = pthread_create(&thread, NULL, restart, self);
	if (!error) {
		self->thread = thread;
		self->has_thread = true;
	}
	return error ? weir_context_fail(context, "no thread for a new try: %s", strerror(error)) : WEIR_OK;
}

static weir_status fail_input(weir_context *context, struct gst_read *self, const char *why)
{
	self->over = true;
	return weir_context_fail_after_drain(context, WEIR_E_IO, "%s", why);
}

/* All frames were taken: the pipeline has ended, well or not. */
static weir_status end_input(weir_context *context, struct gst_read *self, char *why)
{
	bool again = self->reconnect && (why || self->paced);
	char *caps = why && !self->caps && self->pipeline.bin ? other_caps_text(self) : NULL;
	weir_status status;

	if (again && !caps)
		return try_again(context, self, why ? why : g_strdup("the stream has ended"));
	self->over = true;
	status = why ? fail_input(context, self, caps ? caps : why) : weir_context_finish(context);
	g_free(caps);
	g_free(why);
	return status;
}

/* --- a frame --- */

/* Its shape is that of all frames, or the run fails. */
static weir_status take_caps(weir_context *context, struct gst_read *self, GstCaps *caps)
{
	GstVideoInfo info;
	char why[200];
	int width, height;

	if (caps == self->caps)
		return WEIR_OK;
	if (!caps || !gst_video_info_from_caps(&info, caps))
		return fail_input(context, self, "a frame comes without caps that say its size");
	width = GST_VIDEO_INFO_WIDTH(&info), height = GST_VIDEO_INFO_HEIGHT(&info);
	if (self->format->planes && (width % 2 || height % 2)) {
		snprintf(why, sizeof why, "frames of %d x %d: %s needs an even width and height", width,
			 height, self->format->name);
		return fail_input(context, self, why);
	}
	if (self->caps &&
	    (width != GST_VIDEO_INFO_WIDTH(&self->info) || height != GST_VIDEO_INFO_HEIGHT(&self->info))) {
		snprintf(why, sizeof why,
			 "the frames change from %d x %d to %d x %d: append ! videoscale ! "
			 "video/x-raw,width=%d,height=%d",
			 GST_VIDEO_INFO_WIDTH(&self->info), GST_VIDEO_INFO_HEIGHT(&self->info), width, height,
			 GST_VIDEO_INFO_WIDTH(&self->info), GST_VIDEO_INFO_HEIGHT(&self->info));
		return fail_input(context, self, why);
	}
	gst_caps_replace(&self->caps, caps);
	self->info = info;
	return WEIR_OK;
}

static void tensor_of(const struct gst_read *self, int64_t shape[3], weir_tensor *out)
{
	int64_t height = GST_VIDEO_INFO_HEIGHT(&self->info);

	shape[0] = self->format->planes ? height * 3 / 2 : height;
	shape[1] = GST_VIDEO_INFO_WIDTH(&self->info);
	shape[2] = self->format->channels;
	*out = (weir_tensor){
		.size = sizeof *out,
		.device = WEIR_DEVICE_HOST,
		.dimensions = 3,
		.shape = shape,
		.code = 1,
		.bits = (uint8_t)self->format->bits,
	};
}

static struct layout layout_of(const GstVideoFrame *frame)
{
	struct layout layout = {{NULL}, {0}};

	for (guint plane = 0; plane < GST_VIDEO_FRAME_N_PLANES(frame); plane++) {
		layout.planes[plane] = GST_VIDEO_FRAME_PLANE_DATA(frame, plane);
		layout.strides[plane] = GST_VIDEO_FRAME_PLANE_STRIDE(frame, plane);
	}
	return layout;
}

/* On a worker, or a thread of the program's: GStreamer takes its buffers back from any. */
static void release(void *arg)
{
	GstVideoFrame *frame = arg;
	GstBuffer *buffer = frame->buffer;

	gst_video_frame_unmap(frame);
	gst_buffer_unref(buffer);
	g_free(frame);
}

/* Wraps the frame, which the message takes, or, if its rows have gaps, copies it. */
static weir_status wrap_frame(weir_context *context, struct gst_read *self, GstVideoFrame *frame, bool ours,
			      weir_message **out)
{
	struct layout from = layout_of(frame), dense = format_dense(&self->info, from.planes[0]);
	int64_t shape[3];
	weir_tensor tensor;
	weir_status status;

	tensor_of(self, shape, &tensor);
	if (!memcmp(&from, &dense, sizeof from)) {
		tensor.data = from.planes[0];
		status = weir_message_wrap_tensor(weir_context_graph(context), &tensor, release, frame, out);
		if (status)
			release(frame);
		else if (!ours)
			weir_message_lend(*out);
		return status;
	}
	status = weir_context_create_tensor(context, &tensor, WEIR_TENSOR_HOST, out);
	if (!status) {
		dense = format_dense(&self->info, weir_message_data(*out));
		format_copy(&self->info, &dense, &from);
		self->copied++;
	}
	release(frame);
	return status;
}

/*
 * When the frame came to be, on the run's clock. Of a live pipeline that is its time on the pipeline's clock,
 * whatever that is; else frames are as far apart as the pipeline says, from the first one on, which is now.
 */
static int64_t time_of(weir_context *context, struct gst_read *self, GstSample *sample)
{
	GstClockTime pts = GST_BUFFER_PTS(gst_sample_get_buffer(sample));
	GstClockTime running =
		gst_segment_to_running_time(gst_sample_get_segment(sample), GST_FORMAT_TIME, pts);
	int64_t now = weir_context_now(context), time = now;
	GstClock *clock = self->paced ? gst_element_get_clock(self->pipeline.bin) : NULL;

	if (GST_CLOCK_TIME_IS_VALID(running) && clock) {
		GstClockTime base = gst_element_get_base_time(self->pipeline.bin);
		time = now - GST_CLOCK_DIFF(base + running, gst_clock_get_time(clock));
	} else if (GST_CLOCK_TIME_IS_VALID(running) && !self->paced) {
		if (!self->epoch)
			self->epoch = (now > 0 ? now : 1) - (int64_t)running;
		time = self->epoch + (int64_t)running;
	}
	g_clear_object(&clock);
	return time > 0 ? time : 1;
}

static void tell_recovery(weir_context *context, struct gst_read *self)
{
	if (!self->lost_at)
		return;
	weir_context_log(context, WEIR_LOG_WARN,
			 "frames come again, after %" PRId64 " ms and %" PRIu64 " tries",
			 (weir_context_now(context) - self->lost_at) / 1000000, self->tries);
	self->lost_at = 0;
	self->tries = 0;
}

/* Takes the sample. A buffer that nothing else of the pipeline has may be written in place. */
static weir_status emit_sample(weir_context *context, struct gst_read *self, GstSample *sample,
			       uint64_t number)
{
	weir_status status = take_caps(context, self, gst_sample_get_caps(sample));
	weir_stamp stamp = {time_of(context, self, sample), number};
	GstVideoFrame *frame = g_new(GstVideoFrame, 1);
	GstBuffer *buffer = gst_buffer_ref(gst_sample_get_buffer(sample));
	weir_message *message = NULL;
	bool ours;

	gst_sample_unref(sample);
	ours = gst_buffer_is_writable(buffer) && gst_buffer_is_all_memory_writable(buffer);
	if (status || self->over ||
	    !gst_video_frame_map(frame, &self->info, buffer,
				 (GstMapFlags)((ours ? GST_MAP_READWRITE : GST_MAP_READ) |
					       GST_VIDEO_FRAME_MAP_FLAG_NO_REF))) {
		gst_buffer_unref(buffer);
		g_free(frame);
		return status || self->over
			       ? status
			       : fail_input(context, self,
					    "a frame cannot be read: its buffer is too small, or not in "
					    "the memory of the host");
	}
	status = wrap_frame(context, self, frame, ours, &message);
	if (status)
		return status;
	self->frames++;
	tell_recovery(context, self);
	weir_context_set_stamp(context, stamp);
	return weir_context_emit(context, 0, message);
}

/* A tick: one sample, or what ended them. */
static weir_status gst_read_compute(weir_context *context, void *state)
{
	struct gst_read *self = state;
	GstSample *sample = NULL;
	uint64_t number, none;
	bool ended = false, took;
	char *lost = NULL;

	pthread_mutex_lock(&self->monitor.lock);
	took = self->ready > 0;
	number = self->frames + self->dropped;
	self->paced = self->live;
	if (took) {
		sample = gst_app_sink_try_pull_sample(GST_APP_SINK(self->pipeline.end), 0);
		self->ready--;
	} else if (!self->over && !self->deaf) {
		lost = g_strdup(self->lost);
		ended = self->ended;
		self->deaf =
			lost ||
			ended; /* from here on the pipeline may belong to the thread that makes it anew */
	}
	if (!self->ready && ((!self->lost && !self->ended) || !took) && self->marked)
		self->marked = read(self->fd, &none, sizeof none) != sizeof none;
	pthread_mutex_unlock(&self->monitor.lock);
	if (sample)
		return emit_sample(context, self, sample, number);
	return lost || ended ? end_input(context, self, lost) : WEIR_OK;
}

const weir_operator gst_read_operator = {
	.size = sizeof(weir_operator),
	.name = "gst_read",
	.help = "emits the frames of a pipeline of GStreamer's (files, cameras, network streams, decoders), "
		"mostly "
		"without a copy; sleeps while none comes",
	.state_size = sizeof(struct gst_read),
	.parameters = parameters,
	.outputs = outputs,
	.start = gst_read_start,
	.compute = gst_read_compute,
	.stop = gst_read_stop,
	.progress = gst_read_progress,
	.conditions = conditions,
};
