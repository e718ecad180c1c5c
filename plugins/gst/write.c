/*
 * gst_write: messages become the buffers of a pipeline. Each tick pushes one into an appsrc, which does not
 * block: how many wait there is counted, by a probe behind it, and with `queue` of them the entity sleeps. At
 * the end of the input a tick sends the end of the stream, and the entity sleeps until all sinks have it, so
 * that files are complete and their errors fail the run (condition gst_output).
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <gst/app/gstappsrc.h>

#include "gst.h"

struct gst_write {
	weir_entity *entity;
	const char *description;
	const struct format *format; /* NULL: by the channels */
	bool by_rate;                /* frames are 1 / rate apart, whatever their stamps say */
	int rate, per;               /* frames per so many seconds; rate 0: not known */
	int64_t patience;            /* ns, for the end */
	unsigned queue;
	bool simulated; /* GStreamer's threads may drop no messages */
	struct pipeline pipeline;
	int timer; /* of the end; -1: none */

	struct monitor monitor;
	/* guarded by monitor */
	unsigned waiting;   /* buffers in the appsrc */
	bool ending, ended; /* the end was sent; all sinks have it */
	char *lost;
	weir_told told;

	/* the owner's */
	GstCaps *caps;
	GstVideoInfo info;
	size_t bytes; /* of a message */
	int bits;     /* of a value */
	uint64_t frames, copied, reversed;
	int64_t first; /* the stamp of the first frame */
	GstClockTime last;
};

static const weir_parameter parameters[] = {
	{
		.size = sizeof(weir_parameter),
		.name = "pipeline",
		.type = WEIR_TYPE_STRING,
		.help = "as gst-launch-1.0 takes it, without a source: \"videoconvert ! autovideosink\"",
	},
	{
		.size = sizeof(weir_parameter),
		.name = "format",
		.type = WEIR_TYPE_CHOICE,
		.fallback = "\"auto\"",
		.choices = "auto|" FORMATS,
		.help = "of the frames, in memory; auto: gray, rgb or rgba, by the channels",
	},
	{
		.size = sizeof(weir_parameter),
		.name = "fps",
		.type = WEIR_TYPE_STRING,
		.fallback = "\"\"",
		.help = "frames per second, \"30\" or \"30000/1001\", for encoders, and for frames without a "
			"stamp; \"\": "
			"not known",
	},
	{
		.size = sizeof(weir_parameter),
		.name = "times",
		.type = WEIR_TYPE_CHOICE,
		.fallback = "\"stamps\"",
		.choices = "stamps|fps",
		.help = "the time of a frame: since the first one's stamp, or by its number and fps",
	},
	{
		.size = sizeof(weir_parameter),
		.name = "queue",
		.type = WEIR_TYPE_INT,
		.fallback = "4",
		.min = 1,
		.max = 1024,
		.help = "frames that may wait for the pipeline",
	},
	{
		.size = sizeof(weir_parameter),
		.name = "finish",
		.type = WEIR_TYPE_DURATION,
		.fallback = "\"10s\"",
		.min = 1000000,
		.max = INT64_C(3600000000000),
		.help = "time that the pipeline has, after the last frame, to finish its work",
	},
	{.name = NULL},
};

static const weir_port inputs[] = {
	{
		.size = sizeof(weir_port),
		.name = "in",
		.help = "dense pictures of one shape: [height, width] or [height, width, channels]; nv12, "
			"i420: "
			"[height * 3 / 2, width]",
		.dtype = "uint8|uint16",
		.place = "host",
		.shape = "[H, W] | [H, W, 1] | [H, W, 3..4]",
	},
	{.name = NULL},
};

static const char *const conditions[] = {"{\"type\": \"gst_output\", \"port\": \"in\"}", NULL};

/* --- GStreamer's threads --- */

static void tell_locked(struct gst_write *self)
{
	weir_told told = WEIR_TOLD_READY;

	if (self->lost || self->ended)
		told = WEIR_TOLD_EVENT_DONE;
	else if (self->ending || self->waiting >= self->queue)
		told = WEIR_TOLD_WAIT;
	if (told != self->told)
		(void)weir_entity_tell(self->entity, "gst_output", told);
	self->told = told;
}

static GstPadProbeReturn on_taken(GstPad *pad, GstPadProbeInfo *info, gpointer arg)
{
	struct gst_write *self = arg;

	(void)pad;
	(void)info;
	pthread_mutex_lock(&self->monitor.lock);
	if (self->waiting)
		self->waiting--;
	tell_locked(self);
	pthread_mutex_unlock(&self->monitor.lock);
	return GST_PAD_PROBE_OK;
}

/* Takes the text; the first one is kept. */
static void lose(struct gst_write *self, char *text)
{
	pthread_mutex_lock(&self->monitor.lock);
	if (!self->lost) {
		self->lost = text;
		text = NULL;
	}
	tell_locked(self);
	pthread_cond_signal(&self->monitor.changed);
	pthread_mutex_unlock(&self->monitor.lock);
	g_free(text);
}

static void hear(void *arg, GstMessage *message)
{
	struct gst_write *self = arg;

	if (GST_MESSAGE_TYPE(message) == GST_MESSAGE_ERROR)
		lose(self, pipeline_error_text(message));
	if (GST_MESSAGE_TYPE(message) != GST_MESSAGE_EOS)
		return;
	pthread_mutex_lock(&self->monitor.lock);
	self->ended = true;
	tell_locked(self);
	pthread_cond_signal(&self->monitor.changed);
	pthread_mutex_unlock(&self->monitor.lock);
}

/* --- the end of the stream --- */

/* Other sources of the description, as a sound, end too. */
static void end_source(const GValue *item, gpointer end)
{
	GstElement *source = g_value_get_object(item);

	if (source != end)
		gst_element_send_event(source, gst_event_new_eos());
}

static void send_end(struct gst_write *self)
{
	GstIterator *sources = gst_bin_iterate_sources(GST_BIN(self->pipeline.bin));

	gst_app_src_end_of_stream(GST_APP_SRC(self->pipeline.end));
	(void)gst_iterator_foreach(sources, end_source, self->pipeline.end);
	gst_iterator_free(sources);
}

static weir_status set_timer(weir_context *context, struct gst_write *self)
{
	const struct itimerspec when = {
		.it_value = {.tv_sec = self->patience / 1000000000, .tv_nsec = self->patience % 1000000000},
	};

	self->timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	if (self->timer < 0 || timerfd_settime(self->timer, 0, &when, NULL))
		return weir_context_fail(context, "timerfd: %s", strerror(errno));
	return weir_entity_watch(self->entity, "gst_output", self->timer, WEIR_WATCH_READ);
}

/*
 * A pipeline that got no frame has nothing to finish, and many elements take that for an error. The input,
 * which is closed, is held, so that a drain waits for the end of the stream, too.
 */
static weir_status begin_end(weir_context *context, struct gst_write *self)
{
	weir_status status;

	if (!self->frames)
		return weir_context_finish(context);
	pthread_mutex_lock(&self->monitor.lock);
	self->ending = true;
	tell_locked(self);
	pthread_mutex_unlock(&self->monitor.lock);
	send_end(self);
	status = set_timer(context, self);
	return status ? status : weir_context_hold(context, 0, 0);
}

/* --- start and stop --- */

/* Of a run that was cut short: what it wrote is finished, if that does not take long. */
static void finish_late(weir_context *context, struct gst_write *self)
{
	const int64_t late = 2000000000;
	struct timespec until = monitor_deadline(self->patience < late ? self->patience : late);
	int waited = 0;
	bool ended;

	send_end(self);
	pthread_mutex_lock(&self->monitor.lock);
	while (!self->ended && !self->lost && !waited)
		waited = pthread_cond_timedwait(&self->monitor.changed, &self->monitor.lock, &until);
	ended = self->ended;
	pthread_mutex_unlock(&self->monitor.lock);
	if (!ended)
		weir_context_log(context, WEIR_LOG_WARN, "the pipeline could not finish: %s",
				 self->lost ? self->lost : "it takes too long; its files may be incomplete");
}

static void gst_write_stop(weir_context *context, void *state)
{
	struct gst_write *self = state;
	bool unfinished = self->pipeline.bin && self->frames && !self->ending && !self->ended && !self->lost;

	if (unfinished)
		finish_late(context, self);
	pipeline_end(&self->pipeline);
	if (self->copied)
		weir_context_log(context, WEIR_LOG_INFO,
				 "%" PRIu64 " of %" PRIu64
				 " frames were copied: GStreamer wants gaps between the "
				 "rows",
				 self->copied, self->frames);
	if (self->reversed)
		weir_context_log(context, WEIR_LOG_WARN,
				 "%" PRIu64 " of %" PRIu64
				 " frames had a stamp before that of the frame before: "
				 "they got its time",
				 self->reversed, self->frames);
	if (self->timer >= 0)
		close(self->timer);
	g_clear_pointer(&self->caps, gst_caps_unref);
	g_clear_pointer(&self->lost, g_free);
	monitor_end(&self->monitor);
}

static weir_status read_rate(weir_context *context, struct gst_write *self, const char *text)
{
	int end = 0, slash = 0;

	self->per = 1;
	if (!*text && self->by_rate)
		return weir_context_fail(context, "times is fps: set fps, as \"30\"");
	if (!*text)
		return WEIR_OK;
	if (sscanf(text, "%9d%n/%9d%n", &self->rate, &end, &self->per, &slash) < 1 ||
	    text[slash ? slash : end] || self->rate < 1 || self->per < 1)
		return weir_context_fail(
			context, "fps '%.40s': write a number or a fraction, as 30 or 30000/1001", text);
	return WEIR_OK;
}

static weir_status read_values(weir_context *context, struct gst_write *self, const weir_values *values)
{
	self->description = weir_values_string(values, "pipeline");
	self->format = format_named(weir_values_string(values, "format"));
	self->by_rate = !strcmp(weir_values_string(values, "times"), "fps");
	self->queue = (unsigned)weir_values_int(values, "queue");
	self->patience = weir_values_int(values, "finish");
	return read_rate(context, self, weir_values_string(values, "fps"));
}

static bool make_and_play(struct gst_write *self)
{
	char *text = NULL;
	GstPad *pad;

	if (!pipeline_make(&self->pipeline, END_SOURCE, self->description, hear, self, &text)) {
		lose(self, text);
		return false;
	}
	g_object_set(self->pipeline.end, "format", GST_FORMAT_TIME, "max-bytes", (guint64)0, "block", FALSE,
		     NULL);
	pad = gst_element_get_static_pad(self->pipeline.end, "src");
	gst_pad_add_probe(pad, GST_PAD_PROBE_TYPE_BUFFER, on_taken, self, NULL);
	gst_object_unref(pad);
	if (gst_element_set_state(self->pipeline.bin, GST_STATE_PLAYING) != GST_STATE_CHANGE_FAILURE)
		return true;
	lose(self, g_strdup("the pipeline does not start, and none of its elements says why"));
	return false;
}

static weir_status gst_write_start(weir_context *context, void *state, const weir_values *values)
{
	struct gst_write *self = state;
	weir_status status = gst_begin(context);

	self->timer = -1;
	self->entity = weir_context_entity(context);
	self->simulated = weir_context_backend(context) == WEIR_BACKEND_SIM;
	if (!status)
		status = gst_check_root(context);
	if (!status)
		status = read_values(context, self, values);
	if (status)
		return status;
	monitor_make(&self->monitor);
	if (make_and_play(self)) {
		pthread_mutex_lock(&self->monitor.lock);
		tell_locked(self);
		pthread_mutex_unlock(&self->monitor.lock);
		return WEIR_OK;
	}
	weir_context_fail(context, "%s", self->lost);
	gst_write_stop(context, state);
	return WEIR_E_IO;
}

/* --- a frame --- */

/* "[480, 640, 3]" */
static const char *shape_text(const weir_tensor *tensor, char text[64])
{
	int at = 0;

	for (int i = 0; i < tensor->dimensions; i++)
		at += snprintf(text + at, 64 - (size_t)at, "%s%" PRId64, i ? ", " : "[", tensor->shape[i]);
	snprintf(text + at, 64 - (size_t)at, "]");
	return text;
}

static bool is_dense(const weir_tensor *tensor)
{
	int64_t stride = 1;

	for (int i = tensor->dimensions; tensor->strides && i--; stride *= tensor->shape[i])
		if (tensor->strides[i] != stride && tensor->shape[i] > 1)
			return false;
	return true;
}

/* The first frame says what all of them are. */
static weir_status set_format(weir_context *context, struct gst_write *self, const weir_tensor *tensor)
{
	int64_t channels = tensor->dimensions == 3 ? tensor->shape[2] : 1;
	const struct format *format = self->format ? self->format : format_of(channels, tensor->bits);
	int64_t height = tensor->shape[0];
	char shape[64];

	if (!format || format->channels != channels || format->bits != tensor->bits)
		return weir_context_fail(context, "input 'in' is uint%d %s, which is not %s: see 'format'",
					 tensor->bits, shape_text(tensor, shape),
					 format ? format->name : "a picture of weir's");
	if (format->planes && (height % 3 || tensor->shape[1] % 2))
		return weir_context_fail(
			context,
			"input 'in' is %s, but %s has height * 3 / 2 rows of an even number of "
			"pixels",
			shape_text(tensor, shape), format->name);
	if (format->planes)
		height = height / 3 * 2;
	if (height < 1 || tensor->shape[1] < 1 || height > 32768 || tensor->shape[1] > 32768)
		return weir_context_fail(context, "input 'in' is %s: a side of a picture is 1 to 32768",
					 shape_text(tensor, shape));
	gst_video_info_set_format(&self->info, format->video, (guint)tensor->shape[1], (guint)height);
	GST_VIDEO_INFO_FPS_N(&self->info) = self->rate;
	GST_VIDEO_INFO_FPS_D(&self->info) = self->per;
	self->caps = gst_video_info_to_caps(&self->info);
	self->bytes = format_dense_bytes(&self->info);
	self->bits = format->bits;
	gst_app_src_set_caps(GST_APP_SRC(self->pipeline.end), self->caps);
	return WEIR_OK;
}

static struct layout layout_in(const GstVideoInfo *info, uint8_t *data)
{
	struct layout layout = {{NULL}, {0}};

	for (guint plane = 0; plane < GST_VIDEO_INFO_N_PLANES(info); plane++) {
		layout.planes[plane] = data + GST_VIDEO_INFO_PLANE_OFFSET(info, plane);
		layout.strides[plane] = GST_VIDEO_INFO_PLANE_STRIDE(info, plane);
	}
	return layout;
}

/* A shape other than that of the first frame. */
static weir_status check_shape(weir_context *context, struct gst_write *self, const weir_tensor *tensor)
{
	int64_t width = GST_VIDEO_INFO_WIDTH(&self->info), height = GST_VIDEO_INFO_HEIGHT(&self->info);
	int64_t rows = GST_VIDEO_INFO_N_PLANES(&self->info) > 1 ? height * 3 / 2 : height;
	int64_t channels = (int64_t)self->bytes / (self->bits / 8) / (rows * width);
	char shape[64];

	if (tensor->bits == self->bits && tensor->shape[0] == rows && tensor->shape[1] == width &&
	    (tensor->dimensions == 2 ? 1 : tensor->shape[2]) == channels)
		return WEIR_OK;
	return weir_context_fail(context,
				 "the frames change from uint%d [%" PRId64 ", %" PRId64 ", %" PRId64
				 "] to uint%d %s: a pipeline takes one shape; put a 'resize' before it",
				 self->bits, rows, width, channels, tensor->bits, shape_text(tensor, shape));
}

static weir_status check_tensor(weir_context *context, struct gst_write *self, const weir_tensor *tensor)
{
	if (!is_dense(tensor))
		return weir_context_fail(context, "input 'in' expects dense tensors, got one with strides");
	return self->caps ? check_shape(context, self, tensor) : set_format(context, self, tensor);
}

/* On GStreamer's threads. */
static void drop_message(gpointer message)
{
	weir_message_unref(message);
}

static GstBuffer *copy_frame(struct gst_write *self, weir_message *message)
{
	GstBuffer *buffer = gst_buffer_new_allocate(NULL, GST_VIDEO_INFO_SIZE(&self->info), NULL);
	GstMapInfo map;
	struct layout from, to;

	if (!buffer || !gst_buffer_map(buffer, &map, GST_MAP_WRITE)) {
		gst_clear_buffer(&buffer);
		return NULL;
	}
	memset(map.data, 0, map.size); /* the gaps, too, go into files */
	from = format_dense(&self->info, weir_message_data(message));
	to = layout_in(&self->info, map.data);
	format_copy(&self->info, &to, &from);
	gst_buffer_unmap(buffer, &map);
	self->copied += !self->simulated;
	return buffer;
}

/* A buffer around the message, which lives until GStreamer has freed that, or with a copy of its rows. */
static GstBuffer *make_buffer(struct gst_write *self, weir_message *message)
{
	uint8_t *data = weir_message_data(message);
	struct layout wanted = layout_in(&self->info, data), dense = format_dense(&self->info, data);

	if (self->simulated || memcmp(&wanted, &dense, sizeof wanted))
		return copy_frame(self, message);
	return gst_buffer_new_wrapped_full(GST_MEMORY_FLAG_READONLY, data, self->bytes, 0, self->bytes,
					   weir_message_ref(message), drop_message);
}

/* Sets the time of the frame. */
static weir_status set_time(weir_context *context, struct gst_write *self, int64_t stamp, GstBuffer *buffer)
{
	GstClockTime apart =
		self->rate ? gst_util_uint64_scale(GST_SECOND, (guint64)self->per, (guint64)self->rate)
			   : GST_CLOCK_TIME_NONE;
	GstClockTime time;

	if (!self->frames)
		self->first = stamp;
	if (self->by_rate)
		time = gst_util_uint64_scale(self->frames, GST_SECOND * (guint64)self->per,
					     (guint64)self->rate);
	else if (stamp && self->first)
		time = stamp > self->first ? (GstClockTime)(stamp - self->first) : 0;
	else if (self->rate)
		time = self->frames ? self->last + apart : 0;
	else
		return weir_context_fail(context, "a frame has no stamp: set fps, as \"30\"");
	if (self->frames && time < self->last) {
		time = self->last;
		self->reversed++;
	}
	self->last = time;
	GST_BUFFER_PTS(buffer) = time;
	GST_BUFFER_DURATION(buffer) = apart;
	return WEIR_OK;
}

/* Why the pipeline failed, in one line; status: what the failure is. */
static weir_status fail_pipeline(weir_context *context, struct gst_write *self, const char *lost)
{
	char *caps = self->caps ? pipeline_other_caps(&self->pipeline, self->caps) : NULL;

	if (caps)
		weir_context_fail(
			context,
			"the pipeline takes '%s', but the frames are %s: begin it with videoconvert !", caps,
			gst_video_format_to_string(GST_VIDEO_INFO_FORMAT(&self->info)));
	else
		weir_context_fail(context, "%s", lost);
	g_free(caps);
	return WEIR_E_IO;
}

static weir_status push(weir_context *context, struct gst_write *self, weir_message *message)
{
	weir_status status = check_tensor(context, self, weir_message_tensor(message));
	GstBuffer *buffer = status ? NULL : make_buffer(self, message);
	GstFlowReturn flow;

	if (status)
		return status;
	if (!buffer)
		return weir_context_fail(context, "GStreamer has no memory for a frame");
	status = set_time(context, self, weir_message_stamp(message).time, buffer);
	if (status) {
		gst_buffer_unref(buffer);
		return status;
	}
	self->frames++;
	pthread_mutex_lock(&self->monitor.lock);
	self->waiting++;
	tell_locked(self);
	pthread_mutex_unlock(&self->monitor.lock);
	flow = gst_app_src_push_buffer(GST_APP_SRC(self->pipeline.end), buffer);
	if (flow == GST_FLOW_OK)
		return WEIR_OK;
	if (flow == GST_FLOW_EOS) { /* it takes no more: `ended` comes once all of its sinks have ended */
		pthread_mutex_lock(&self->monitor.lock);
		self->waiting -= self->waiting > 0;
		tell_locked(self);
		pthread_mutex_unlock(&self->monitor.lock);
		return WEIR_OK;
	}
	return fail_pipeline(context, self, gst_flow_get_name(flow));
}

/* A pipeline that wants no more, as one whose window was closed or that counts its frames, ends the run. */
static weir_status end(weir_context *context, bool by_itself)
{
	if (by_itself)
		weir_context_drain(context, "the pipeline takes no more frames");
	return weir_context_finish(context);
}

static weir_status gst_write_compute(weir_context *context, void *state)
{
	struct gst_write *self = state;
	size_t count = weir_context_count(context, 0);
	weir_status status = WEIR_OK;
	bool ended, ending;
	char *lost;

	pthread_mutex_lock(&self->monitor.lock);
	lost = self->lost; /* which is kept until stop */
	ended = self->ended;
	ending = self->ending;
	pthread_mutex_unlock(&self->monitor.lock);
	if (lost)
		return fail_pipeline(context, self, lost);
	if (ended)
		return end(context, !ending);
	if (ending)
		return weir_context_fail(context,
					 "the pipeline has not finished %" PRId64 " ms after the last frame: "
					 "see 'finish'",
					 self->patience / 1000000);
	if (!count)
		return begin_end(context, self);
	for (size_t i = 0; i < count && !status; i++)
		status = push(context, self, weir_context_message(context, 0, i));
	return status;
}

const weir_operator gst_write_operator = {
	.size = sizeof(weir_operator),
	.name = "gst_write",
	.help = "gives frames to a pipeline of GStreamer's (encoders, files, displays, network streams), "
		"mostly "
		"without a copy; sleeps while it takes none",
	.flags = WEIR_OPERATOR_EFFECTS,
	.state_size = sizeof(struct gst_write),
	.parameters = parameters,
	.inputs = inputs,
	.start = gst_write_start,
	.compute = gst_write_compute,
	.stop = gst_write_stop,
	.conditions = conditions,
};
