/* A pipeline made of a description, with weir's element at its open end; its bus; the plugin itself. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "gst.h"

/* --- the process --- */

static pthread_once_t once = PTHREAD_ONCE_INIT;
static GError *begin_error; /* written by `once` alone */

static void begin(void)
{
	/* Else GStreamer resets the handler of SIGSEGV, which is the program's, whenever it loads a plugin.
	 */
	if (!gst_is_initialized())
		gst_segtrap_set_enabled(FALSE);
	gst_init_check(NULL, NULL, &begin_error);
}

weir_status gst_begin(weir_context *context)
{
	pthread_once(&once, begin);
	if (begin_error)
		return weir_context_fail(context, "GStreamer does not start: %s", begin_error->message);
	return WEIR_OK;
}

weir_status gst_check_root(weir_context *context)
{
	int fd = -1;

	if (!weir_context_open(context, "/", O_PATH | O_DIRECTORY, 0, &fd)) {
		close(fd);
		return WEIR_OK;
	}
	if (errno == EXDEV)
		return weir_context_fail(context, "a pipeline of GStreamer may open any file, which --root "
						  "cannot prevent: run it without --root");
	return WEIR_OK;
}

/* --- the lock --- */

void monitor_make(struct monitor *monitor)
{
	pthread_condattr_t monotonic;

	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&monitor->changed, &monotonic);
	pthread_condattr_destroy(&monotonic);
	pthread_mutex_init(&monitor->lock, NULL);
	monitor->made = true;
}

void monitor_end(struct monitor *monitor)
{
	if (!monitor->made)
		return;
	pthread_cond_destroy(&monitor->changed);
	pthread_mutex_destroy(&monitor->lock);
	monitor->made = false;
}

struct timespec monitor_deadline(int64_t ns)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	ns += time.tv_nsec;
	time.tv_sec += ns / 1000000000;
	time.tv_nsec = ns % 1000000000;
	return time;
}

/* --- texts --- */

/* GStreamer's texts may have several lines; a line of weir's has one. */
static char *one_line(char *text)
{
	g_strdelimit(text, "\n\r\t", ' ');
	return text;
}

char *pipeline_error_text(GstMessage *message)
{
	GError *error = NULL;
	gchar *debug = NULL;
	const char *detail;
	char *text;

	gst_message_parse_error(message, &error, &debug);
	detail = debug ? strchr(debug, '\n') : NULL; /* what is before it says where in GStreamer's source */
	detail = detail ? detail + 1 : NULL;
	text = g_strdup_printf("%s: %s%s%s%s", GST_MESSAGE_SRC_NAME(message), error->message,
			       detail && *detail ? " (" : "", detail ? detail : "",
			       detail && *detail ? ")" : "");
	g_clear_error(&error);
	g_free(debug);
	return one_line(text);
}

/* Debian's packages of elements that are often missing; a '*' stands for any end. */
static const char *package_of(const char *element)
{
	static const struct {
		const char *pattern, *package;
	} known[] = {
		{"av*", "gstreamer1.0-libav"},
		{"x264enc", "gstreamer1.0-plugins-ugly"},
		{"autovideo*", "gstreamer1.0-plugins-good"},
		{"v4l2*", "gstreamer1.0-plugins-good"},
		{"rtsp*", "gstreamer1.0-plugins-good"},
		{"rtp*", "gstreamer1.0-plugins-good"},
		{"udp*", "gstreamer1.0-plugins-good"},
		{"vp?*", "gstreamer1.0-plugins-good"},
		{"jpeg*", "gstreamer1.0-plugins-good"},
		{"png*", "gstreamer1.0-plugins-good"},
		{"y4menc", "gstreamer1.0-plugins-good"},
		{"matroska*", "gstreamer1.0-plugins-good"},
		{"webm*", "gstreamer1.0-plugins-good"},
		{"mp4*", "gstreamer1.0-plugins-good"},
		{"qt*", "gstreamer1.0-plugins-good"},
		{"video*", "gstreamer1.0-plugins-base"},
		{"*decodebin*", "gstreamer1.0-plugins-base"},
		{"theora*", "gstreamer1.0-plugins-base"},
		{"ogg*", "gstreamer1.0-plugins-base"},
		{"ximagesink", "gstreamer1.0-x"},
		{"xvimagesink", "gstreamer1.0-x"},
		{"gl*", "gstreamer1.0-gl"},
		{"h26*", "gstreamer1.0-plugins-bad"},
		{"nv*", "gstreamer1.0-plugins-bad"},
		{"va*", "gstreamer1.0-plugins-bad"},
		{"x265enc", "gstreamer1.0-plugins-bad"},
	};

	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		if (g_pattern_match_simple(known[i].pattern, element))
			return known[i].package;
	return NULL;
}

static char *missing_text(const char *element)
{
	const char *package = package_of(element);

	if (package)
		return g_strdup_printf("GStreamer has no element '%s': install the package that has it "
				       "(Debian: %s)",
				       element, package);
	return g_strdup_printf("GStreamer has no element '%s': correct its name (gst-inspect-1.0 lists "
			       "them), or install the plugin that has it",
			       element);
}

/* --- open ends --- */

/* The first pad of that direction that is always there and not linked; NULL: none. Gives a reference. */
static GstPad *open_pad(GstElement *element, GstPadDirection direction)
{
	GstPad *found = NULL;

	GST_OBJECT_LOCK(element);
	for (GList *at = direction == GST_PAD_SRC ? element->srcpads : element->sinkpads; at && !found;
	     at = at->next) {
		GstPadTemplate *template = GST_PAD_PAD_TEMPLATE(at->data);
		bool always = !template || GST_PAD_TEMPLATE_PRESENCE(template) == GST_PAD_ALWAYS;
		if (always && !GST_PAD_IS_LINKED(GST_PAD(at->data)))
			found = gst_object_ref(at->data);
	}
	GST_OBJECT_UNLOCK(element);
	return found;
}

/* Pads that come while the pipeline runs, as those of a decodebin, are linked then. */
static bool has_later_pads(GstElement *element)
{
	for (const GList *at = gst_element_get_pad_template_list(element); at; at = at->next)
		if (GST_PAD_TEMPLATE_DIRECTION(at->data) == GST_PAD_SRC &&
		    GST_PAD_TEMPLATE_PRESENCE(at->data) == GST_PAD_SOMETIMES)
			return true;
	return false;
}

/* Names an element by what is left over of the description; NULL: nothing is. */
static char *leftover_text(GstElement *bin, const GstElement *end)
{
	bool later = false;
	char *text = NULL;

	GST_OBJECT_LOCK(bin);
	for (GList *at = GST_BIN_CHILDREN(bin); at && !later; at = at->next)
		later = has_later_pads(at->data);
	for (GList *at = GST_BIN_CHILDREN(bin); at && !text; at = at->next) {
		GstElement *element = at->data;
		GstPad *from = element == end ? NULL : open_pad(element, GST_PAD_SRC);
		GstPad *to = element == end || from || later ? NULL : open_pad(element, GST_PAD_SINK);
		if (from)
			text = g_strdup_printf("the output of '%s' is open: link it, or end it in a sink, as "
					       "! fakesink",
					       GST_OBJECT_NAME(element));
		else if (to)
			text = g_strdup_printf("the input of '%s' is open: link it to something",
					       GST_OBJECT_NAME(element));
		g_clear_object(&from);
		g_clear_object(&to);
	}
	GST_OBJECT_UNLOCK(bin);
	return text;
}

/* --- making --- */

/* The sink at the end of a description that has one there; g_free. NULL: there is none, or no such element.
 */
static char *own_end(const char *description, enum end end)
{
	const GstElementFlags flag = end == END_SINK ? GST_ELEMENT_FLAG_SINK : GST_ELEMENT_FLAG_SOURCE;
	GstElement *alone = gst_parse_launch_full(description, NULL, GST_PARSE_FLAG_PLACE_IN_BIN, NULL);
	char *name = NULL;

	if (!alone)
		return NULL;
	gst_object_ref_sink(alone);
	if (GST_IS_BIN(alone))
		for (GList *at = GST_BIN_CHILDREN(alone); at && !name; at = at->next)
			if (GST_OBJECT_FLAG_IS_SET(at->data, flag))
				name = g_strdup(GST_OBJECT_NAME(at->data));
	gst_object_unref(alone);
	return name;
}

static char *refused_text(GError *error, GstParseContext *context, const char *description, enum end end)
{
	gchar **missing = gst_parse_context_get_missing_elements(context);
	bool link = g_error_matches(error, GST_PARSE_ERROR, GST_PARSE_ERROR_LINK);
	char *name = link ? own_end(description, end) : NULL, *text;

	if (g_error_matches(error, GST_PARSE_ERROR, GST_PARSE_ERROR_NO_SUCH_ELEMENT) && missing && *missing)
		text = missing_text(*missing);
	else if (name && end == END_SINK)
		text = g_strdup_printf("the pipeline ends in the sink '%s': leave it out, since gst_read "
				       "is the end",
				       name);
	else if (name)
		text = g_strdup_printf("the pipeline begins with the source '%s': leave it out, since "
				       "gst_write is the beginning",
				       name);
	else
		text = g_strdup_printf("pipeline: %s%s", error ? error->message : "not one of GStreamer's",
				       !link             ? ""
				       : end == END_SINK ? ", which is gst_read"
							 : ", where weir_source is gst_write");
	g_strfreev(missing);
	g_free(name);
	return one_line(text);
}

/* The name of weir's element: GStreamer's own messages have it. */
#define SINK   "weir_sink"
#define SOURCE "weir_source"

static char *whole_text(const char *description, enum end end)
{
	if (end == END_SINK)
		return g_strdup_printf("%s ! appsink name=" SINK, description);
	return g_strdup_printf("appsrc name=" SOURCE " ! %s", description);
}

struct listener {
	void (*hear)(void *arg, GstMessage *message);
	void *arg;
};

/* All that the owner needs it takes here: nothing waits on the bus. */
static GstBusSyncReply on_bus(GstBus *bus, GstMessage *message, gpointer arg)
{
	struct listener *listener = arg;

	(void)bus;
	listener->hear(listener->arg, message);
	gst_message_unref(message);
	return GST_BUS_DROP;
}

static void listen_to(GstElement *bin, void (*hear)(void *arg, GstMessage *message), void *arg)
{
	struct listener *listener = g_new(struct listener, 1);
	GstBus *bus = gst_element_get_bus(bin);

	*listener = (struct listener){hear, arg};
	gst_bus_set_sync_handler(bus, on_bus, listener, g_free);
	gst_object_unref(bus);
}

/* A description of one element is that element, one of several a pipeline. Gives a reference. */
static GstElement *parse(const char *description, enum end end, char **text)
{
	GstParseContext *context = gst_parse_context_new();
	char *whole = whole_text(description, end);
	GError *error = NULL;
	GstElement *bin = gst_parse_launch_full(whole, context, GST_PARSE_FLAG_FATAL_ERRORS, &error);

	if (bin)
		gst_object_ref_sink(bin);
	if (bin && (error || !GST_IS_PIPELINE(bin)))
		g_clear_pointer(&bin, gst_object_unref);
	if (!bin)
		*text = refused_text(error, context, description, end);
	g_clear_error(&error);
	gst_parse_context_free(context);
	g_free(whole);
	return bin;
}

bool pipeline_make(struct pipeline *pipeline, enum end end, const char *description,
		   void (*hear)(void *arg, GstMessage *message), void *arg, char **text)
{
	GstElement *bin = parse(description, end, text);

	if (!bin)
		return false;
	*pipeline = (struct pipeline){.bin = bin};
	pipeline->end = gst_bin_get_by_name(GST_BIN(bin), end == END_SINK ? SINK : SOURCE);
	*text = leftover_text(bin, pipeline->end);
	if (*text) {
		pipeline_end(pipeline);
		return false;
	}
	listen_to(bin, hear, arg);
	return true;
}

void pipeline_end(struct pipeline *pipeline)
{
	if (!pipeline->bin)
		return;
	gst_element_set_state(pipeline->bin, GST_STATE_NULL);
	gst_object_unref(pipeline->end);
	gst_object_unref(pipeline->bin);
	*pipeline = (struct pipeline){.bin = NULL};
}

char *pipeline_other_caps(const struct pipeline *pipeline, GstCaps *wanted)
{
	GstPad *pad = pipeline->end->pads->data; /* the only one, which is always there */
	GstCaps *caps = gst_pad_peer_query_caps(pad, NULL);
	char *text = NULL;

	if (!gst_caps_is_any(caps) && gst_caps_get_size(caps) && !gst_caps_can_intersect(caps, wanted))
		text = gst_structure_to_string(gst_caps_get_structure(caps, 0));
	enum { CAPS_TEXT = 160 };
	if (text && strlen(text) > CAPS_TEXT)
		strcpy(text + CAPS_TEXT - 3, "...");
	gst_caps_unref(caps);
	return text;
}

/* --- the plugin --- */

static weir_status add(weir_registry *registry)
{
	weir_status status = weir_registry_add_condition(registry, &gst_output_condition);

	if (!status)
		status = weir_registry_add_operator(registry, &gst_read_operator);
	return status ? status : weir_registry_add_operator(registry, &gst_write_operator);
}

WEIR_PLUGIN(add);
