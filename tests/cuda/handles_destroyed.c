/*
 * The caller destroys its stream while weir uses it. Between runs, and if it is unwrapped before the next
 * one, the stream is not used any more. During a run CUDA defines nothing: a destroyed handle may be
 * rejected, may name another stream by now, may crash the process. The test requires that the run ends by
 * itself and, if it ends with an error, that other graphs go on.
 */
#include <cuda_runtime_api.h>

#include "handles.h"

enum { BEFORE = 5 }; /* ticks before the stream is destroyed */

static bool wrap_new(struct handles_rig *rig)
{
	return handles_expect_cuda(
		       cudaStreamCreateWithFlags((cudaStream_t *)&handles_native, cudaStreamNonBlocking),
		       "cudaStreamCreate") &&
	       handles_expect(!weir_stream_wrap(rig->graph, 0, handles_native, &handles_stream), "wrap: %s",
			      weir_last_error());
}

static void f68_a_stream_destroyed_between_runs_is_unwrapped(void)
{
	struct handles_rig rig;

	handles_begin(&rig, handles_three);
	handles_put(&rig, "/entities/0/parameters/on", "\"wrapped\"");
	handles_open(&rig);
	for (int round = 0; round < 3 && !rig.status && wrap_new(&rig); round++) {
		handles_runs(&rig, (uint64_t)handles_settings.frames);
		handles_expect_cuda(cudaStreamDestroy(handles_native), "cudaStreamDestroy");
		handles_expect(!weir_stream_unwrap(handles_stream), "unwrap of a destroyed one: %s",
			       weir_last_error());
	}
	handles_close(&rig);
}

/* The run ended with an error that names the stream, or all numbers were right. */
static void judge(struct handles_rig *rig)
{
	bool well = handles_wait(rig, 20 * SECOND);

	handles_expect(!rig->hung, "the run hangs: %s", rig->why);
	if (well)
		handles_print_note("CUDA let it pass, %llu frames were right",
				   (unsigned long long)handles_ticks(rig, "sink"));
	else
		handles_print_note("ended: %s: %s", weir_status_text(rig->status), rig->why);
	handles_expect(well || rig->why[0], "an error without a text");
}

/* A lost device affects every graph; an error of one call does not. */
static void judge_other(struct handles_rig *other, const struct handles_rig *broken)
{
	bool well = handles_wait(other, 20 * SECOND);

	handles_expect(!other->hung, "the other graph hangs: %s", other->why);
	if (broken->status == WEIR_E_DEVICE && !well)
		handles_print_note("the other graph ended, too: %s", other->why);
	else
		handles_expect(well && handles_ticks(other, "sink") == (uint64_t)handles_settings.frames,
			       "the other graph did not go on: %s", other->why);
}

static void destroyed_in_a_run(const char *how)
{
	struct handles_rig broken, other;

	handles_begin(&broken, handles_three);
	handles_put(&broken, "/entities/0/parameters",
		    "{\"on\": \"wrapped\", \"how\": \"%s\", \"broken\": %d}", how, BEFORE);
	handles_begin(&other, handles_three);
	if (handles_open(&broken) && handles_open(&other) && wrap_new(&broken) && handles_start(&other) &&
	    handles_start(&broken)) {
		judge(&broken);
		judge_other(&other, &broken);
		handles_print_note("unwrap: %s", weir_status_text(weir_stream_unwrap(handles_stream)));
		broken.status = other.status = WEIR_OK;
	}
	broken.broken = other.broken = true;
	handles_close(&broken);
	handles_close(&other);
}

static void f68_destroyed_in_a_run_then_used_by_the_caller(void)
{
	destroyed_in_a_run("native");
}

static void f68_destroyed_in_a_run_then_used_by_weir(void)
{
	destroyed_in_a_run("weir");
}

static void f68_destroyed_in_a_run_then_only_fenced(void)
{
	destroyed_in_a_run("elsewhere");
}

const struct handles_check handles_destroyed[] = {
	{"f68_a_stream_destroyed_between_runs_is_unwrapped", f68_a_stream_destroyed_between_runs_is_unwrapped,
	 HANDLES_CUDA},
	{"f68_destroyed_in_a_run_then_used_by_the_caller", f68_destroyed_in_a_run_then_used_by_the_caller,
	 HANDLES_CUDA | HANDLES_UNDEFINED},
	{"f68_destroyed_in_a_run_then_used_by_weir", f68_destroyed_in_a_run_then_used_by_weir,
	 HANDLES_CUDA | HANDLES_UNDEFINED},
	{"f68_destroyed_in_a_run_then_only_fenced", f68_destroyed_in_a_run_then_only_fenced,
	 HANDLES_CUDA | HANDLES_UNDEFINED},
	{.name = NULL},
};
