/* Two devices in one graph: copies, direct reads, fences and gates from one to the other. */
#include <cuda_runtime_api.h>
#include <stdio.h>

#include "handles.h"

enum { LINES = 4 };

/* How a line's numbers get from the device of its source to the other one. */
enum way { COPY, UPLOAD, DIRECT };

static void add(struct handles_rig *rig, unsigned *count, const char *name, unsigned line,
		const char *operator_name, int device, const char *parameters)
{
	char pointer[48];

	snprintf(pointer, sizeof pointer, "/entities/%u", (*count)++);
	handles_put(
		rig, pointer,
		"{\"name\": \"%s%u\", \"operator\": \"%s\", \"resources\": [\"pool%d\"], \"parameters\": %s}",
		name, line, operator_name, device, parameters);
}

static void of_last(struct handles_rig *rig, unsigned count, const char *key, const char *json)
{
	char pointer[64];

	snprintf(pointer, sizeof pointer, "/entities/%u/%s", count - 1, key);
	handles_put(rig, pointer, "%s", json);
}

static void connect(struct handles_rig *rig, const char *from, const char *to, const char *port,
		    unsigned line)
{
	handles_put(rig, "/connections/-", "[\"%s%u.out\", \"%s%u.%s\"]", from, line, to, line, port);
}

/*
 * A source on one device; an entity on each device triples its numbers; a sink waits for both. `across`
 * only copies.
 */
static void add_line(struct handles_rig *rig, unsigned *count, unsigned line, enum way way)
{
	int here = line % 2, there = !here;
	char limit[64];

	snprintf(limit, sizeof limit, "[{\"type\": \"count\", \"count\": %lld}]",
		 (long long)handles_settings.frames);
	add(rig, count, "source", line, "fill", here, "{}");
	of_last(rig, *count, "conditions", limit);
	if (way == UPLOAD) {
		add(rig, count, "across", line, "upload", there, "{}");
		of_last(rig, *count, "ports/in/capacity", "4");
	}
	add(rig, count, "near", line, "triple", here, "{}");
	of_last(rig, *count, "ports/in/capacity", "4");
	add(rig, count, "far", line, "triple", there, way == COPY ? "{\"copy\": true}" : "{}");
	of_last(rig, *count, "ports/in/capacity", "4");
	add(rig, count, "sink", line, "compare", line / 2 % 2 ? here : there, "{}");
	of_last(rig, *count, "conditions", "[{\"type\": \"cuda_stream\", \"port\": [\"in\", \"also\"]}]");
	connect(rig, "source", "near", "in", line);
	if (way == UPLOAD)
		connect(rig, "source", "across", "in", line);
	connect(rig, way == UPLOAD ? "across" : "source", "far", "in", line);
	connect(rig, "near", "sink", "in", line);
	connect(rig, "far", "sink", "also", line);
}

static void add_pools(struct handles_rig *rig)
{
	handles_put(rig, "/name", "\"handles\"");
	handles_put(rig, "/weir", "1");
	handles_put(rig, "/scheduler", "{\"device_memory\": \"16MiB\", \"host_memory\": \"16MiB\"}");
	handles_put(rig, "/resources/pool0", "{\"type\": \"stream_pool\", \"device\": 0}");
	handles_put(rig, "/resources/pool1", "{\"type\": \"stream_pool\", \"device\": 1}");
}

static void lines(enum way way)
{
	struct handles_rig rig;
	unsigned count = 0;

	handles_begin(&rig, NULL);
	add_pools(&rig);
	for (unsigned line = 0; line < LINES; line++)
		add_line(&rig, &count, line, way);
	if (handles_open(&rig))
		handles_runs(&rig, LINES * (uint64_t)handles_settings.frames);
	handles_close(&rig);
}

static void f70_t03_copies_from_device_to_device(void)
{
	lines(COPY);
}

static void f70_t03_upload_copies_across(void)
{
	lines(UPLOAD);
}

static bool can_reach(int device, int other)
{
	int can = 0;

	return !handles_settings.cuda || (!cudaDeviceCanAccessPeer(&can, device, other) && can);
}

static void f70_t03_a_kernel_reads_the_other_device_directly(void)
{
	if (can_reach(0, 1) && can_reach(1, 0))
		lines(DIRECT);
	else
		handles_print_note("these devices do not reach each other's memory");
}

static void f70_a_graph_on_the_second_device_alone(void)
{
	struct handles_rig rig;

	handles_begin(&rig, handles_three);
	handles_put(&rig, "/resources/second",
		    "{\"type\": \"stream_pool\", \"device\": 1, \"default\": true}");
	if (handles_open(&rig))
		handles_runs(&rig, (uint64_t)handles_settings.frames);
	handles_close(&rig);
}

/* The native stream is created there, too; its numbers are tripled on the first device. */
static void f70_t06_a_wrapped_stream_of_the_second_device(void)
{
	struct handles_rig rig;
	bool well = handles_expect_cuda(cudaSetDevice(1), "cudaSetDevice") &&
		    handles_expect_cuda(
			    cudaStreamCreateWithFlags((cudaStream_t *)&handles_native, cudaStreamNonBlocking),
			    "cudaStreamCreate");

	cudaSetDevice(0);
	handles_begin(&rig, handles_three);
	handles_put(&rig, "/resources/first", "{\"type\": \"stream_pool\", \"device\": 0}");
	handles_put(&rig, "/resources/second", "{\"type\": \"stream_pool\", \"device\": 1}");
	handles_put(&rig, "/entities/0/resources", "[\"second\"]");
	handles_put(&rig, "/entities/0/parameters/on", "\"wrapped\"");
	handles_put(&rig, "/entities/1/resources", "[\"first\"]");
	handles_put(&rig, "/entities/1/parameters/copy", "true");
	if (well && handles_open(&rig) &&
	    handles_expect(!weir_stream_wrap(rig.graph, 1, handles_native, &handles_stream), "wrap: %s",
			   weir_last_error())) {
		handles_runs(&rig, (uint64_t)handles_settings.frames);
		handles_expect(!weir_stream_unwrap(handles_stream), "unwrap: %s", weir_last_error());
		handles_expect_cuda(cudaStreamDestroy(handles_native), "cudaStreamDestroy");
	}
	handles_close(&rig);
}

const struct handles_check handles_devices[] = {
	{"f70_t03_copies_from_device_to_device", f70_t03_copies_from_device_to_device, HANDLES_TWO},
	{"f70_t03_upload_copies_across", f70_t03_upload_copies_across, HANDLES_TWO},
	{"f70_t03_a_kernel_reads_the_other_device_directly", f70_t03_a_kernel_reads_the_other_device_directly,
	 HANDLES_TWO},
	{"f70_a_graph_on_the_second_device_alone", f70_a_graph_on_the_second_device_alone, HANDLES_TWO},
	{"f70_t06_a_wrapped_stream_of_the_second_device", f70_t06_a_wrapped_stream_of_the_second_device,
	 HANDLES_CUDA | HANDLES_TWO},
	{.name = NULL},
};
