/*
 * A program that uses GStreamer itself, and a graph that is run again and again: each run ends in another
 * way, with frames in flight, and the next one begins as if it were the first. Frames that the program took
 * outlive their pipelines, and frames that it gives are released by GStreamer.
 *
 *     again PLUGIN
 */
#include "../again.h"

#include <gst/gst.h>

enum { WIDTH = 64, HEIGHT = 48 };

static const char loop_text[] =
	"{\"weir\": 1, \"entities\": ["
	"{\"name\": \"read\", \"operator\": \"gst_read\", \"parameters\": {\"pipeline\": "
	"\"videotestsrc num-buffers=30 ! video/x-raw,width=64,height=48,framerate=30/1\"}},"
	"{\"name\": \"write\", \"operator\": \"gst_write\", \"parameters\": {\"pipeline\": "
	"\"videoconvert ! jpegenc ! matroskamux ! fakesink\"}}],"
	"\"connections\": [[\"read.out\", \"write.in\"]]}";
static const char ends_text[] =
	"{\"weir\": 1, \"entities\": ["
	"{\"name\": \"read\", \"operator\": \"gst_read\", \"parameters\": {\"pipeline\": "
	"\"videotestsrc num-buffers=3 pattern=white ! video/x-raw,width=64,height=48,framerate=30/1\"}},"
	"{\"name\": \"write\", \"operator\": \"gst_write\", \"parameters\": {\"pipeline\": \"fakesink\"}}],"
	"\"connections\": []}";

static weir_registry *registry;

static weir_graph *make_graph(const char *text)
{
	weir_description *description = NULL;
	weir_graph *graph = NULL;

	must(weir_description_parse(text, strlen(text), NULL, NULL, &description));
	must(weir_graph_create(registry, description, &graph));
	weir_description_destroy(description);
	return graph;
}

/* A frame that the program makes; stamped or not. */
static weir_message *make_frame(weir_graph *graph, int64_t time)
{
	const int64_t shape[] = {HEIGHT, WIDTH, 3};
	const weir_tensor like = {.size = sizeof like,
				  .device = WEIR_DEVICE_HOST,
				  .dimensions = 3,
				  .shape = shape,
				  .code = 1,
				  .bits = 8};
	weir_message *message = NULL;

	must(weir_message_create_tensor(graph, &like, &message));
	memset(weir_message_data(message), 7, weir_message_size(message));
	if (time)
		must(weir_message_set_stamp(message, (weir_stamp){time, 0}));
	return message;
}

/* Gives the frames that the graph emits, and pushes one of ours for which it fails if it has no stamp. */
static void ends_are_the_programs(const weir_scheduler_options *options, bool stamped)
{
	weir_graph *graph = make_graph(ends_text);
	weir_message *frames[3] = {NULL};
	weir_scheduler *scheduler = NULL;
	weir_outlet *outlet = NULL;
	weir_inlet *inlet = NULL;

	must(weir_graph_add_outlet(graph, "read.out", 8, 0, &outlet));
	must(weir_graph_add_inlet(graph, "write.in", &inlet));
	must(weir_scheduler_create(graph, options, &scheduler));
	must(weir_scheduler_start(scheduler));
	must(weir_inlet_push(inlet, make_frame(graph, stamped ? weir_scheduler_now(scheduler) : 0), -1));
	for (int i = 0; stamped && i < 3; i++)
		must(weir_outlet_take(outlet, -1, &frames[i]));
	weir_inlet_close(inlet);
	if (stamped)
		must(weir_scheduler_wait(scheduler, -1, NULL));
	else
		must_be(weir_scheduler_wait(scheduler, -1, NULL) && strstr(weir_last_error(), "has no stamp"),
			"a frame without a stamp passes");
	for (int i = 0; stamped && i < 3; i++) { /* their pipeline is gone */
		const weir_tensor *tensor = weir_message_tensor(frames[i]);
		must_be(tensor->shape[0] == HEIGHT && tensor->shape[1] == WIDTH, "a frame has another shape");
		must_be(*(uint8_t *)weir_message_data(frames[i]) == 255, "a frame is not white");
		must_be(weir_message_stamp(frames[i]).tag == (uint64_t)i, "a frame has another number");
		weir_message_unref(frames[i]);
	}
	must(weir_scheduler_destroy(scheduler));
	must(weir_graph_destroy(graph));
}

int main(int count, char **arguments)
{
	const weir_scheduler_options options = {.size = sizeof options, .backend = "host"};
	GstElement *own;

	if (count != 2)
		return 2;
	gst_init(NULL, NULL);
	own = gst_parse_launch("videotestsrc ! fakesink sync=true", NULL);
	gst_element_set_state(own, GST_STATE_PLAYING);
	must(weir_registry_create(&registry));
	must(weir_registry_load(registry, arguments[1]));
	again_run(make_graph(loop_text), &options);
	ends_are_the_programs(&options, true);
	ends_are_the_programs(&options, false);
	weir_registry_destroy(registry);
	must_be(gst_element_get_state(own, NULL, NULL, GST_SECOND) == GST_STATE_CHANGE_SUCCESS,
		"the program's own pipeline has stopped");
	gst_element_set_state(own, GST_STATE_NULL);
	gst_object_unref(own);
	gst_deinit();
	return 0;
}
