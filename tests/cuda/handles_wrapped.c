/*
 * A stream of the caller's works for entities, travels with messages and comes back; it may be captured in
 * a tick.
 */
#include <cuda_runtime_api.h>
#include <string.h>

#include "handles.h"

static void wrapped_three(struct handles_rig *rig)
{
	handles_begin(rig, handles_three);
	handles_put(rig, "/entities/0/parameters/on", "\"wrapped\"");
}

/* From creation to destruction. NULL flags: the legacy default stream. */
static bool wrap_run_unwrap(struct handles_rig *rig, const unsigned *flags)
{
	bool well = true;

	handles_native = NULL;
	if (flags)
		well = handles_expect_cuda(cudaStreamCreateWithFlags((cudaStream_t *)&handles_native, *flags),
					   "cudaStreamCreate");
	if (!well || !handles_expect(!weir_stream_wrap(rig->graph, 0, handles_native, &handles_stream),
				     "wrap: %s", weir_last_error()))
		return false;
	well = handles_runs(rig, (uint64_t)handles_settings.frames);
	if (!handles_expect(!weir_stream_unwrap(handles_stream), "unwrap after the run: %s",
			    weir_last_error()))
		return false;
	handles_stream = NULL;
	return (!flags || handles_expect_cuda(cudaStreamDestroy(handles_native), "cudaStreamDestroy")) &&
	       well;
}

/*
 * Two runs of one graph, each with a stream of its own; the second stream may have the first one's address.
 */
static void a_wrapped_stream(const unsigned *flags, const char *how)
{
	struct handles_rig rig;

	wrapped_three(&rig);
	handles_put(&rig, "/entities/0/parameters/how", "\"%s\"", how);
	if (handles_open(&rig) && wrap_run_unwrap(&rig, flags))
		wrap_run_unwrap(&rig, flags);
	handles_close(&rig);
}

static const unsigned non_blocking = cudaStreamNonBlocking, blocking = cudaStreamDefault;

static void t06_t07_a_wrapped_stream_works_and_travels(void)
{
	a_wrapped_stream(&non_blocking, "native");
}

static void t06_weir_launches_on_a_wrapped_stream(void)
{
	a_wrapped_stream(&non_blocking, "weir");
}

static void t06_a_wrapped_stream_may_be_blocking(void)
{
	a_wrapped_stream(&blocking, "native");
}

static void f71_the_default_stream_may_be_wrapped(void)
{
	a_wrapped_stream(NULL, "native");
}

/* --- the caller's stream is an entity's current one --- */

static void use_until_refused(struct handles_rig *rig, void *native)
{
	weir_entity *entity = weir_graph_entity(rig->graph, "process");
	weir_stream *stream = NULL;

	if (!handles_expect(!weir_stream_wrap(rig->graph, 0, native, &stream), "wrap: %s",
			    weir_last_error()) ||
	    !handles_expect(!weir_entity_use_stream(entity, stream), "use: %s", weir_last_error()))
		return;
	handles_runs(rig, (uint64_t)handles_settings.frames);
	handles_expect(weir_stream_unwrap(stream) == WEIR_E_STATE, "a used stream was unwrapped");
	handles_expect(!weir_entity_use_stream(entity, NULL), "taking it back: %s", weir_last_error());
	handles_expect(!weir_stream_unwrap(stream), "unwrap: %s", weir_last_error());
}

static void t14_an_entity_works_on_the_callers_stream(void)
{
	struct handles_rig rig;
	cudaStream_t native = NULL;

	handles_begin(&rig, handles_three);
	if (handles_open(&rig) &&
	    handles_expect_cuda(cudaStreamCreateWithFlags(&native, cudaStreamNonBlocking),
				"cudaStreamCreate"))
		use_until_refused(&rig, native);
	if (native)
		handles_expect_cuda(cudaStreamDestroy(native), "cudaStreamDestroy");
	handles_close(&rig);
}

/* --- captures: work enqueued on the stream becomes a graph of the caller's --- */

static void captured(const char *on)
{
	struct handles_rig rig;

	handles_begin(&rig, handles_three);
	handles_put(&rig, "/entities/0/parameters", "{\"on\": \"%s\", \"how\": \"capture\"}", on);
	handles_put(&rig, "/entities/1/parameters/looks", "false"); /* no other use during a capture */
	if (handles_open(&rig) && strcmp(on, "wrapped"))
		handles_runs(&rig, (uint64_t)handles_settings.frames);
	else if (!rig.status)
		wrap_run_unwrap(&rig, &non_blocking);
	handles_close(&rig);
}

static void g03_a_capture_that_ends_in_the_tick_works(void)
{
	captured("internal");
}

static void g03_a_capture_on_a_wrapped_stream_works(void)
{
	captured("wrapped");
}

static void g03_a_capture_that_is_left_open_is_refused(void)
{
	enum cudaStreamCaptureStatus capture = cudaStreamCaptureStatusActive;
	struct handles_rig rig;

	handles_begin(&rig, handles_three);
	handles_put(&rig, "/entities/0/parameters/how", "\"open\"");
	if (handles_open(&rig) && handles_start(&rig) && !handles_wait(&rig, 20 * SECOND) && !rig.hung) {
		bool named = strstr(rig.why, "is being captured: end the capture before the fence") &&
			     strstr(rig.why, "source");

		handles_expect(rig.status == WEIR_E_UNSUPPORTED && named, "it ended otherwise: %s: %s",
			       weir_status_text(rig.status), rig.why);
		handles_expect(!cudaStreamIsCapturing(handles_given, &capture) &&
				       capture == cudaStreamCaptureStatusNone,
			       "the capture is still open, so its tick has no fence");
		rig.status = WEIR_OK;
	} else {
		handles_expect(rig.status != WEIR_OK, "the open capture was let pass");
	}
	handles_close(&rig);
}

/* --- a stream of weir's whose handle was given out --- */

static bool handle_is_good(cudaEvent_t event)
{
	return !cudaEventRecord(event, handles_given) && !cudaEventSynchronize(event);
}

/* As a library does that frees memory which it used on the stream. */
static void t06_a_stream_whose_handle_was_given_outlives_its_graph(void)
{
	cudaEvent_t event = NULL;
	struct handles_rig rig;

	handles_begin(&rig, handles_three);
	if (handles_open(&rig))
		handles_runs(&rig, (uint64_t)handles_settings.frames);
	handles_close(&rig);
	handles_expect(!cudaEventCreate(&event) && handle_is_good(event), "the handle went with the graph");
	handles_begin(&rig, handles_three);
	if (handles_open(&rig))
		handles_runs(&rig, (uint64_t)handles_settings.frames);
	handles_close(&rig);
	handles_expect(handle_is_good(event), "the handle went with a later graph");
	handles_begin(&rig, handles_three); /* which does not give it out */
	handles_put(&rig, "/entities/0/parameters/how", "\"weir\"");
	handles_put(&rig, "/entities/1/parameters/looks", "false");
	if (handles_open(&rig))
		handles_runs(&rig, (uint64_t)handles_settings.frames);
	handles_close(&rig);
	handles_expect(handle_is_good(event), "the handle went with a graph that did not give it out");
	cudaEventDestroy(event);
}

const struct handles_check handles_wrapped[] = {
	{"t06_t07_a_wrapped_stream_works_and_travels", t06_t07_a_wrapped_stream_works_and_travels,
	 HANDLES_CUDA},
	{"t06_weir_launches_on_a_wrapped_stream", t06_weir_launches_on_a_wrapped_stream, HANDLES_CUDA},
	{"t06_a_wrapped_stream_may_be_blocking", t06_a_wrapped_stream_may_be_blocking, HANDLES_CUDA},
	{"t14_an_entity_works_on_the_callers_stream", t14_an_entity_works_on_the_callers_stream,
	 HANDLES_CUDA},
	{"f71_the_default_stream_may_be_wrapped", f71_the_default_stream_may_be_wrapped, HANDLES_CUDA},
	{"t06_a_stream_whose_handle_was_given_outlives_its_graph",
	 t06_a_stream_whose_handle_was_given_outlives_its_graph, HANDLES_CUDA},
	{"g03_a_capture_that_ends_in_the_tick_works", g03_a_capture_that_ends_in_the_tick_works,
	 HANDLES_CUDA},
	{"g03_a_capture_on_a_wrapped_stream_works", g03_a_capture_on_a_wrapped_stream_works, HANDLES_CUDA},
	{"g03_a_capture_that_is_left_open_is_refused", g03_a_capture_that_is_left_open_is_refused,
	 HANDLES_CUDA},
	{.name = NULL},
};
