/*
 * A message that is emitted at an earlier point of its tick: how soon its reader begins after the first
 * kernel, while the second one still runs, which waits for the reader. The program's thread watches the word
 * that the first kernel writes; so the figure has that thread's latency in it, on both ends of the same
 * clock.
 */
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "handles.h"
#include "../calls.h"

enum { TICKS = 100 };

/* What the device, the reader and the program's thread share. */
static struct {
	uint32_t *first; /* pinned: the tick, from 1, whose first kernel has ended */
	uint32_t *reading,
		*stays; /* pinned, of each tick: 1: its reader has begun; how its second kernel ended */
	int64_t ended[TICKS], began[TICKS];
	uint32_t read;
} seen;

static int64_t time_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * SECOND + now.tv_nsec;
}

static weir_status launch_first(weir_stream *stream, uint64_t tick)
{
	const struct handles_fill work = {seen.first, 1, 200000, (uint32_t)tick + 1};

	return weir_stream_launch(stream, &handles_fill_kernel, &work, sizeof work);
}

/* It runs until the reader of this tick has begun: a gate that waits for it would wait for all of `most`. */
static weir_status launch_second(weir_stream *stream, uint64_t tick)
{
	const struct handles_stay work = {&seen.reading[tick], &seen.stays[tick], SECOND};

	return weir_stream_launch(stream, &handles_stay_kernel, &work, sizeof work);
}

static weir_status emit_both(weir_context *context, void *state)
{
	weir_stream *stream = current_stream(context);
	uint64_t tick = weir_context_tick(context);
	weir_message *early = NULL, *late = NULL;
	weir_fence fence = {0, 0};
	weir_status status = launch_first(stream, tick);

	(void)state;
	if (!status)
		status = weir_stream_record(stream, &fence);
	if (!status)
		status = weir_message_create_empty(weir_context_graph(context), &early);
	if (!status)
		status = weir_context_emit_at(context, 0, early, fence);
	if (!status)
		status = launch_second(stream, tick);
	if (!status)
		status = weir_message_create_empty(weir_context_graph(context), &late);
	return status ? status : weir_context_emit(context, 1, late);
}

static weir_status note_begin(weir_context *context, void *state)
{
	uint64_t tick = weir_context_tick(context);

	(void)state;
	if (__atomic_load_n(seen.first, __ATOMIC_RELAXED) <= tick)
		return weir_context_fail(context, "the first kernel of tick %llu has not ended",
					 (unsigned long long)tick);
	seen.began[tick] = weir_context_now(context);
	__atomic_store_n(&seen.reading[tick], 1, __ATOMIC_RELAXED); /* a kernel reads it */
	seen.read++;
	return WEIR_OK;
}

static const weir_port outputs[] = {{.size = sizeof *outputs, .name = "first"},
				    {.size = sizeof *outputs, .name = "second"},
				    {.name = NULL}};
static const weir_port inputs[] = {{.size = sizeof *inputs, .name = "in"}, {.name = NULL}};
static const weir_operator sender = {.size = sizeof sender,
				     .name = "sender",
				     .flags = WEIR_OPERATOR_STREAM,
				     .outputs = outputs,
				     .compute = emit_both};
static const weir_operator reader = {
	.size = sizeof reader, .name = "reader", .inputs = inputs, .compute = note_begin};

static const char graph[] =
	"{\"weir\": 1, \"name\": \"early\", \"entities\": ["
	"{\"name\": \"send\", \"operator\": \"sender\", \"conditions\": [{\"type\": \"count\", \"count\": "
	"100}]},"
	"{\"name\": \"read\", \"operator\": \"reader\"}, {\"name\": \"sink\", \"operator\": \"sink\","
	" \"conditions\": [{\"type\": \"cuda_stream\", \"port\": \"in\"}]}],"
	" \"connections\": [[\"send.first\", \"read.in\"], [\"send.second\", \"sink.in\"]]}";

static bool make_words(struct handles_rig *rig, weir_message **words)
{
	static const int64_t count = 1 + 2 * TICKS;
	const weir_tensor like = {.size = sizeof like,
				  .device = WEIR_DEVICE_HOST,
				  .dimensions = 1,
				  .shape = &count,
				  .code = 1,
				  .bits = 32};

	if (!handles_expect(!weir_message_create_tensor(rig->graph, &like, words), "the words: %s",
			    weir_last_error()))
		return false;
	seen.first = weir_message_data(*words);
	seen.reading = seen.first + 1;
	seen.stays = seen.reading + TICKS;
	memset(seen.first, 0, (size_t)count * sizeof *seen.first);
	return true;
}

static void watch_first_kernels(void)
{
	int64_t until = time_now() + 30 * SECOND;

	for (uint32_t tick = 0; tick < TICKS && time_now() < until;) {
		if (__atomic_load_n(seen.first, __ATOMIC_RELAXED) > tick) /* a kernel writes it */
			seen.ended[tick++] = time_now();
		else
			sched_yield();
	}
}

static int by_size(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

static void print_figures(void)
{
	int64_t after[TICKS];

	for (int i = 0; i < TICKS; i++)
		after[i] = seen.began[i] - seen.ended[i];
	qsort(after, TICKS, sizeof *after, by_size);
	handles_print_note(
		"a reader begins %.1f us after the first kernel (median of %d; 9 of 10 within %.1f "
		"us, the last after %.1f us)",
		(double)after[TICKS / 2] / 1e3, TICKS, (double)after[TICKS * 9 / 10] / 1e3,
		(double)after[TICKS - 1] / 1e3);
}

static void t12_a_reader_begins_before_the_second_kernel_ends(void)
{
	struct handles_rig rig;
	weir_message *words = NULL;
	bool real_time = strcmp(handles_settings.backend, "sim"); /* else this thread runs the graph */

	handles_begin(&rig, graph);
	handles_expect(!weir_registry_add_operator(rig.registry, &sender) &&
			       !weir_registry_add_operator(rig.registry, &reader),
		       "the operators: %s", weir_last_error());
	rig.workers = 2;
	if (handles_open(&rig) && make_words(&rig, &words) && handles_start(&rig)) {
		if (real_time)
			watch_first_kernels();
		handles_wait(&rig, 30 * SECOND);
		handles_expect(seen.read == TICKS, "%u of %d messages were read", seen.read, TICKS);
		for (int i = 0; i < TICKS; i++)
			handles_expect(seen.stays[i] == 1, "reader %d began after the second kernel", i);
		if (real_time)
			print_figures();
	}
	weir_message_unref(words);
	handles_close(&rig);
}

const struct handles_check handles_early[] = {
	{"t12_a_reader_begins_before_the_second_kernel_ends",
	 t12_a_reader_begins_before_the_second_kernel_ends, 0},
	{.name = NULL},
};
