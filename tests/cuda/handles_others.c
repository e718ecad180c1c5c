/* Native handles of pool streams, and green contexts: what is rejected, and which stream works where. */
#include <string.h>

#include "handles.h"

static void t07_handles_of_named_streams_are_known(void)
{
	struct handles_rig rig;

	handles_begin(&rig, handles_three);
	handles_put(&rig, "/entities/0/parameters/on", "\"named\"");
	if (handles_open(&rig))
		handles_runs(&rig, (uint64_t)handles_settings.frames);
	handles_close(&rig);
}

/* --- green contexts --- */

static void green_three(struct handles_rig *rig)
{
	handles_begin(rig, handles_three);
	handles_put(rig, "/resources/parts",
		    "{\"type\": \"green_context_pool\", \"sms_per_partition\": [8, 8]}");
	handles_put(rig, "/resources/left",
		    "{\"type\": \"green_context\", \"pool\": \"parts\", \"index\": 0}");
	handles_put(rig, "/entities/0/resources", "[\"left\"]");
	handles_put(rig, "/entities/1/resources", "[\"parts\"]");
}

static void t05_entities_work_in_a_context_and_in_a_pool_of_them(void)
{
	struct handles_rig rig;

	green_three(&rig);
	if (handles_open(&rig))
		handles_runs(&rig, (uint64_t)handles_settings.frames);
	handles_close(&rig);
}

/* Creating the graph or the scheduler fails with this text. */
static void refused(struct handles_rig *rig, const char *text)
{
	handles_expect(!handles_open(rig), "it was not refused");
	handles_expect(strstr(rig->why, text) != NULL, "without the words '%s': %s", text, rig->why);
	handles_print_note("%s", rig->why);
	rig->status = WEIR_OK;
	handles_close(rig);
}

static void e06_a_partition_larger_than_the_device_says_what_goes(void)
{
	struct handles_rig rig;

	green_three(&rig);
	handles_put(&rig, "/resources/parts/sms_per_partition", "[8, 4096]");
	refused(&rig, "sizes there are multiples of");
}

static void e06_blocking_streams_in_a_green_context_are_refused(void)
{
	struct handles_rig rig;

	green_three(&rig);
	handles_put(&rig, "/resources/streams",
		    "{\"type\": \"stream_pool\", \"green_context\": \"left\", \"flags\": \"blocking\"}");
	handles_put(&rig, "/entities/0/resources", "[\"streams\"]");
	refused(&rig, "streams of a green context are always non_blocking");
}

const struct handles_check handles_others[] = {
	{"t07_handles_of_named_streams_are_known", t07_handles_of_named_streams_are_known, 0},
	{"t05_entities_work_in_a_context_and_in_a_pool_of_them",
	 t05_entities_work_in_a_context_and_in_a_pool_of_them, 0},
	{"e06_a_partition_larger_than_the_device_says_what_goes",
	 e06_a_partition_larger_than_the_device_says_what_goes, HANDLES_CUDA},
	{"e06_blocking_streams_in_a_green_context_are_refused",
	 e06_blocking_streams_in_a_green_context_are_refused, 0},
	{.name = NULL},
};
