/* The legacy default stream: work on it, and its implicit order with other streams. */
#include <cuda_runtime_api.h>

#include "handles.h"

static uint64_t frames(void)
{
	return (uint64_t)handles_settings.frames;
}

static void f71_all_work_on_the_default_stream(void)
{
	struct handles_rig rig;

	handles_begin(&rig, handles_three);
	handles_put(&rig, "/use_default_stream", "true");
	if (handles_open(&rig))
		handles_runs(&rig, frames());
	handles_close(&rig);
}

static void f71_t07_the_default_stream_travels_if_it_is_set(void)
{
	struct handles_rig rig;

	handles_begin(&rig, handles_three);
	handles_put(&rig, "/entities/0/parameters/on", "\"default\"");
	if (handles_open(&rig))
		handles_runs(&rig, frames());
	handles_close(&rig);
}

static void f71_t07_what_it_does_not_carry_is_waited_for_if_that_is_said(void)
{
	struct handles_rig rig;

	handles_begin(&rig, handles_three);
	handles_put(&rig, "/entities/0/parameters", "{\"on\": \"default\", \"carry\": false}");
	handles_put(&rig, "/entities/1/parameters/sync", "\"from_default\"");
	if (handles_open(&rig))
		handles_runs(&rig, frames());
	handles_close(&rig);
}

static void f71_t07_sync_to_default_has_the_default_stream_come_after(void)
{
	struct handles_rig rig;

	handles_begin(&rig, handles_three);
	handles_put(&rig, "/entities/1/parameters/sync", "\"to_default\"");
	if (handles_open(&rig))
		handles_runs(&rig, frames());
	handles_close(&rig);
}

static const char two[] =
	"{\"weir\": 1, \"name\": \"handles\","
	" \"scheduler\": {\"device_memory\": \"8MiB\", \"host_memory\": \"8MiB\"},"
	" \"resources\": {\"streams\": {\"type\": \"stream_pool\", \"max_size\": 2, \"default\": true}},"
	" \"entities\": ["
	"{\"name\": \"both\", \"operator\": \"implicit\","
	" \"conditions\": [{\"type\": \"count\", \"count\": 1}]},"
	"{\"name\": \"sink\", \"operator\": \"compare\","
	" \"conditions\": [{\"type\": \"cuda_stream\", \"port\": \"in\"}]}],"
	" \"connections\": [[\"both.out\", \"sink.in\"]]}";

static void implicit(bool blocking, bool default_first)
{
	struct handles_rig rig;

	handles_begin(&rig, two);
	handles_put(&rig, "/entities/0/conditions/0/count", "%lld", (long long)handles_settings.frames);
	handles_put(&rig, "/resources/streams/flags", "\"%s\"", blocking ? "blocking" : "non_blocking");
	handles_put(&rig, "/entities/0/parameters", "{\"default_first\": %s, \"sync\": %s}",
		    default_first ? "true" : "false", blocking ? "false" : "true");
	if (handles_open(&rig))
		handles_runs(&rig, frames());
	handles_close(&rig);
}

static void f71_blocking_streams_wait_for_the_default_one(void)
{
	implicit(true, true);
}

static void f71_the_default_stream_waits_for_blocking_ones(void)
{
	implicit(true, false);
}

static void f71_non_blocking_streams_wait_if_they_are_told(void)
{
	implicit(false, true);
	implicit(false, false);
}

/*
 * A kernel holds the default stream until the numbers of another stream were seen: a stream that waited for
 * it would never produce them.
 */
static void f71_non_blocking_streams_go_on_without_the_default_one(void)
{
	struct handles_rig rig;
	bool well = handles_expect_cuda(
		cudaHostAlloc((void **)&handles_flag, 2 * sizeof *handles_flag, cudaHostAllocPortable),
		"cudaHostAlloc");

	if (!well)
		return;
	handles_word = handles_flag + 1;
	*handles_flag = *handles_word = 0;
	handles_begin(&rig, two);
	handles_put(&rig, "/entities/0/operator", "\"apart\"");
	handles_put(&rig, "/entities/1/operator", "\"release\"");
	if (handles_open(&rig) && handles_runs(&rig, 1))
		handles_expect(*handles_word == 1, "the other stream waited for the default one: %u",
			       (unsigned)*handles_word);
	handles_close(&rig);
	handles_expect_cuda(cudaFreeHost(handles_flag), "cudaFreeHost");
}

const struct handles_check handles_default[] = {
	{"f71_all_work_on_the_default_stream", f71_all_work_on_the_default_stream, 0},
	{"f71_t07_the_default_stream_travels_if_it_is_set", f71_t07_the_default_stream_travels_if_it_is_set,
	 0},
	{"f71_t07_what_it_does_not_carry_is_waited_for_if_that_is_said",
	 f71_t07_what_it_does_not_carry_is_waited_for_if_that_is_said, 0},
	{"f71_t07_sync_to_default_has_the_default_stream_come_after",
	 f71_t07_sync_to_default_has_the_default_stream_come_after, 0},
	{"f71_blocking_streams_wait_for_the_default_one", f71_blocking_streams_wait_for_the_default_one, 0},
	{"f71_the_default_stream_waits_for_blocking_ones", f71_the_default_stream_waits_for_blocking_ones, 0},
	{"f71_non_blocking_streams_wait_if_they_are_told", f71_non_blocking_streams_wait_if_they_are_told, 0},
	{"f71_non_blocking_streams_go_on_without_the_default_one",
	 f71_non_blocking_streams_go_on_without_the_default_one, HANDLES_CUDA},
	{.name = NULL},
};
