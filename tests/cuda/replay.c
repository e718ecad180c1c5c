/*
 * Replay on a GPU (T13). Prints one line of JSON per part; replay.py checks it.
 *
 *   replay cost      a tick of 10 empty kernels: enqueued, replayed, and a graph launched by hand
 *   replay keys      addresses that alternate over 4 x 4 blocks: 16 captures, then none
 *   replay captures  --ticks N: N captures on one worker, while others allocate, copy, launch and arm signals
 *   replay refused   allocations and synchronizations in enqueue: the result is right, the key FAILED; and a
 *                    replay on a stream that the operator captures
 *   replay forgets   a key without the addresses; WEIR_DEBUG_REPLAY=1 finds it
 *   replay fault     a replayed kernel stores to NULL: the run ends and names the entity
 *   replay many      --ticks N: as many replays; memory in use after each tenth of them
 *   replay evicted   16 keys, of which 8 are kept, each captured, used twice, evicted, and so on
 *   replay stops     --ticks N: as many runs, each stopped at some instant, drained or not, and begun again
 */
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "replay.h"
#include "weir.h"
#include "../calls.h"

enum { KERNELS = 10, SIDE = 4, NUMBERS = 256, SAMPLES = 1 << 17, TENTHS = 10, HAND_EACH = 100 };

static const weir_kernel add = {sizeof(weir_kernel), "replay_add", NULL, replay_add_cuda};
static const weir_kernel nothing = {sizeof(weir_kernel), "replay_nothing", NULL, replay_nothing_cuda};

static struct {
	const char *part;
	uint64_t ticks;
	_Atomic uint64_t wrong, checked, refused, captured;
	char said[256];                      /* the first line of the log that has FAILED */
	struct replay_memory memory[TENTHS]; /* of `many`: after each tenth of the ticks */
	int64_t began[SAMPLES];
	struct replay_hand *hand; /* of `cost`, in the replayed run */
} state;

static int64_t now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

static bool part_is(const char *part)
{
	return !strcmp(state.part, part);
}

/* --- cost --- */

static weir_status enqueue_nothing(weir_context *context, weir_stream *stream, void *arg)
{
	weir_status status = WEIR_OK;

	(void)context, (void)arg;
	for (int i = 0; !status && i < KERNELS; i++)
		status = weir_stream_launch(stream, &nothing, NULL, 0);
	return status;
}

/* Only `cost` takes times: their pages would count as memory of `many`. */
static void note_tick(uint64_t tick)
{
	uint64_t tenth = state.ticks / TENTHS;

	if (part_is("cost") && tick < SAMPLES)
		state.began[tick] = now();
	if (part_is("many") && (tick + 1) % tenth == 0 && tick / tenth < TENTHS)
		replay_memory(&state.memory[tick / tenth]);
}

static weir_status tick_of_nothing(weir_context *context, void *own)
{
	uint64_t tick = weir_context_tick(context);

	(void)own;
	note_tick(tick);
	if (tick + 1 >= state.ticks)
		weir_context_finish(context);
	/* on the worker and between its ticks, so that both meet the same core and clock */
	if (state.hand && tick % HAND_EACH == HAND_EACH - 1 && !replay_hand_burst(state.hand))
		return weir_context_fail(context, "a launch by hand failed");
	return weir_context_replay(context, "nothing", 7, enqueue_nothing, NULL);
}

/* --- keys, captures, refused, fault: out = in + 1, or a counter --- */

struct job {
	struct replay_add work;
	uint64_t variant; /* part of the key */
};

struct own {
	weir_message *block[2][SIDE]; /* the counters and their copies */
};

static weir_status enqueue_add(weir_context *context, weir_stream *stream, void *arg)
{
	const struct job *job = arg;
	weir_stream *side = NULL;
	weir_status status = weir_context_allocate_stream(context, "side", &side);

	if (part_is("refused") &&
	    (job->variant ? replay_allocate() : replay_synchronize(weir_stream_native(stream))))
		atomic_fetch_add(&state.refused, 1);
	if (!status)
		status = weir_context_synchronize_streams(context, &stream, 1, side);
	if (!status)
		status = weir_stream_launch(side, &add, &job->work, sizeof job->work);
	return status ? status : weir_context_synchronize_streams(context, &side, 1, stream);
}

static const int64_t shape[] = {NUMBERS};
static const weir_tensor numbers = {sizeof(weir_tensor), NULL, 0, 1, shape, NULL, 0, 64, 1};

static weir_status allocate_blocks(weir_context *context, struct own *own)
{
	weir_status status = WEIR_OK;

	for (int i = 0; !status && i < 2 * SIDE; i++)
		status = weir_context_create_tensor(context, &numbers, 0, &own->block[i / SIDE][i % SIDE]);
	return status;
}

/* Each tick fills a block, adds 7 by a replay into another, and emits a copy of the sum. */
static weir_status add_by_replay(weir_context *context, struct own *own, uint64_t variant)
{
	uint64_t tick = weir_context_tick(context), i = tick % SIDE;
	uint64_t j = (part_is("evicted") ? tick / (SIDE * SIDE) : tick / SIDE) % SIDE;
	int64_t *from = weir_message_data(own->block[0][i]), *to = weir_message_data(own->block[1][j]);
	weir_stream *stream = current_stream(context);
	struct replay_add fill = {from, NULL, NUMBERS, (int64_t)tick, 0};
	struct job job;
	weir_message *out = NULL;
	weir_status status = weir_context_create_tensor(context, &numbers, WEIR_TENSOR_HOST, &out);

	memset(&job, 0, sizeof job);
	job.work = (struct replay_add){to, from, NUMBERS, 7, part_is("fault") ? 50 : 0};
	job.variant = variant;
	if (!status)
		status = weir_stream_launch(stream, &add, &fill, sizeof fill);
	if (!status)
		status = part_is("forgets")
				 ? weir_context_replay(context, &job.variant, sizeof job.variant, enqueue_add,
						       &job)
				 : weir_context_replay(context, &job, sizeof job, enqueue_add, &job);
	if (!status)
		status = copy_bytes(stream, weir_message_data(out), to, NUMBERS * sizeof *to);
	if (!status)
		return weir_context_emit(context, 0, out);
	weir_message_unref(out);
	return status;
}

/* A replay cannot be part of a capture of the operator's own. */
static void replay_while_captured(weir_context *context)
{
	void *native = weir_stream_native(current_stream(context));
	weir_status status;

	if (replay_capture_begin(native))
		return;
	status = weir_context_replay(context, "captured", 8, enqueue_nothing, NULL);
	if (!replay_capture_end(native) && status == WEIR_E_UNSUPPORTED &&
	    strstr(weir_last_error(), "is being captured"))
		atomic_fetch_add(&state.captured, 1);
}

static weir_status replay_compute(weir_context *context, void *memory)
{
	uint64_t tick = weir_context_tick(context);
	struct own *own = memory;
	weir_status status = own->block[0][0] ? WEIR_OK : allocate_blocks(context, own);

	if (tick + 1 >= state.ticks)
		weir_context_finish(context);
	if (status)
		return status;
	if (part_is("refused") && tick % 8 == 7)
		replay_while_captured(context);
	/* each key of `captures` comes twice: the first tick warms up, the second captures */
	return add_by_replay(context, own, part_is("captures") ? tick / 32 : tick % 2);
}

static void replay_stop(weir_context *context, void *memory)
{
	struct own *own = memory;

	(void)context;
	for (int i = 0; i < 2 * SIDE; i++)
		weir_message_unref(own->block[i / SIDE][i % SIDE]);
}

static weir_status check_compute(weir_context *context, void *own)
{
	const int64_t *sums = weir_message_data(weir_context_message(context, 0, 0));
	int64_t expected = (int64_t)weir_context_tick(context) + 7;

	(void)own;
	atomic_fetch_add(&state.wrong, sums[0] != expected || sums[NUMBERS - 1] != expected);
	atomic_fetch_add(&state.checked, 1);
	return WEIR_OK;
}

/* Beside the captures: CUDA's own calls and weir's, until the others are done. */
static weir_status disturb_compute(weir_context *context, void *own)
{
	weir_stream *stream = current_stream(context);
	weir_message *message = NULL;
	weir_status status = weir_context_create_tensor(context, &numbers, 0, &message);
	struct replay_add fill = {message ? weir_message_data(message) : NULL, NULL, NUMBERS, 1, 0};

	(void)own;
	if (!status && weir_context_tick(context) % 64 == 0 && replay_allocate())
		status = weir_context_fail(context, "cudaMalloc failed beside a capture");
	if (!status)
		status = weir_stream_launch(stream, &add, &fill, sizeof fill);
	if (atomic_load(&state.checked) >= state.ticks)
		weir_context_finish(context);
	return status ? status : weir_context_emit(context, 0, message);
}

static weir_status take_compute(weir_context *context, void *own)
{
	(void)context, (void)own;
	return WEIR_OK;
}

/* --- the graph --- */

static const weir_port outputs[] = {{.size = sizeof(weir_port), .name = "out"}, {.name = NULL}};
static const weir_port inputs[] = {{.size = sizeof(weir_port), .name = "in", .capacity = 4}, {.name = NULL}};
static const weir_operator operators[] = {
	{.size = sizeof(weir_operator),
	 .name = "nothing",
	 .help = "launches nothing",
	 .compute = tick_of_nothing},
	{.size = sizeof(weir_operator),
	 .name = "replays",
	 .help = "adds by a replay",
	 .state_size = sizeof(struct own),
	 .outputs = outputs,
	 .compute = replay_compute,
	 .stop = replay_stop},
	{.size = sizeof(weir_operator),
	 .name = "checks",
	 .help = "checks sums",
	 .inputs = inputs,
	 .compute = check_compute},
	{.size = sizeof(weir_operator),
	 .name = "disturbs",
	 .help = "works beside captures",
	 .outputs = outputs,
	 .compute = disturb_compute},
	{.size = sizeof(weir_operator),
	 .name = "takes",
	 .help = "takes",
	 .inputs = inputs,
	 .compute = take_compute},
};

static const char *graph_of(bool replays)
{
	static char text[1200];
	const char *key = replays ? "{\"keys\": 64}" : "false";

	if (part_is("cost") || part_is("many"))
		snprintf(text, sizeof text,
			 "{\"weir\": 1, \"entities\": [{\"name\": \"a\", \"operator\": \"nothing\", "
			 "\"replay\": %s}]}",
			 key);
	else
		snprintf(text, sizeof text,
			 "{\"weir\": 1, \"entities\": ["
			 "{\"name\": \"a\", \"operator\": \"replays\", \"replay\": {\"keys\": %d}},"
			 "{\"name\": \"check\", \"operator\": \"checks\"}%s], \"connections\": [[\"a.out\", "
			 "\"check.in\"]%s]}",
			 part_is("evicted") ? 8 : 64,
			 part_is("captures")
				 ? ", {\"name\": \"b\", \"operator\": \"disturbs\"}, {\"name\": \"c\", "
				   "\"operator\": \"takes\"}, {\"name\": \"d\", \"operator\": \"disturbs\"}, "
				   "{\"name\": \"e\", \"operator\": \"takes\"}"
				 : "",
			 part_is("captures") ? ", [\"b.out\", \"c.in\"], [\"d.out\", \"e.in\"]" : "");
	return text;
}

static weir_status make_graph(const weir_registry *registry, bool replays, weir_graph **out)
{
	const char *text = graph_of(replays);
	weir_description *description = NULL;
	weir_status status = weir_description_parse(text, strlen(text), NULL, NULL, &description);

	if (!status)
		status = weir_graph_create(registry, description, out);
	weir_description_destroy(description);
	return status;
}

static void print_memory(uint64_t hits)
{
	printf("{\"hits\": %" PRIu64 ", \"memory\": [", hits);
	for (int i = 0; i < TENTHS; i++)
		printf("%s[%zu, %zu]", i ? ", " : "", state.memory[i].host, state.memory[i].device);
	printf("]}\n");
}

static void print_counts(weir_scheduler *scheduler, const weir_outcome *outcome)
{
	weir_entity_counts counts = {.size = sizeof counts};

	weir_scheduler_entity_counts(scheduler, 0, &counts);
	printf("{\"part\": \"%s\", \"status\": \"%s\", \"text\": \"%s\", \"entity\": \"%s\", \"seconds\": "
	       "%.3f, "
	       "\"ticks\": %" PRIu64 ", \"hits\": %" PRIu64 ", \"captures\": %" PRIu64
	       ", \"evictions\": %" PRIu64 ", \"failures\": %" PRIu64 ", \"checked\": %" PRIu64
	       ", \"wrong\": %" PRIu64 ", \"refused\": %" PRIu64 ", \"captured\": %" PRIu64
	       ", \"said\": \"%s\"}\n",
	       state.part, weir_status_text(outcome->status), outcome->text ? outcome->text : "",
	       outcome->entity ? outcome->entity : "", (double)outcome->duration_ns / 1e9, counts.ticks,
	       counts.replay_hits, counts.replay_captures, counts.replay_evictions, counts.replay_failures,
	       (uint64_t)state.checked, (uint64_t)state.wrong, (uint64_t)state.refused,
	       (uint64_t)state.captured, state.said);
	if (part_is("many"))
		print_memory(counts.replay_hits);
}

static weir_status run(const weir_registry *registry, bool replays, bool prints)
{
	weir_scheduler_options options = {
		.size = sizeof options, .backend = "cuda", .workers = part_is("captures") ? 4 : 1};
	weir_outcome outcome = {.size = sizeof outcome};
	weir_scheduler *scheduler = NULL;
	weir_graph *graph = NULL;
	weir_status status = make_graph(registry, replays, &graph);

	if (!status)
		status = weir_scheduler_create(graph, &options, &scheduler);
	if (!status)
		status = weir_scheduler_start(scheduler);
	if (!status) {
		status = weir_scheduler_wait(scheduler, -1, &outcome);
		if (prints)
			print_counts(scheduler, &outcome);
	}
	weir_scheduler_destroy(scheduler);
	weir_graph_destroy(graph);
	return status;
}

/* --- stops --- */

/* Stops at an instant between the first capture and many launches. Each run but the last is cut short. */
static weir_status run_and_stop(weir_scheduler *scheduler, uint64_t number)
{
	const struct timespec while_it_works = {0, (long)(number * 7919 % 20000) * 1000};
	weir_status status = weir_scheduler_start(scheduler);

	if (status)
		return status;
	nanosleep(&while_it_works, NULL);
	weir_scheduler_stop(scheduler, number % 2 == 0 ? WEIR_STOP_DRAIN : 0);
	return weir_scheduler_wait(scheduler, -1, NULL);
}

static weir_status stop_runs(const weir_registry *registry)
{
	weir_scheduler_options options = {.size = sizeof options, .backend = "cuda", .workers = 2};
	uint64_t runs = state.ticks;
	weir_status status = WEIR_OK;

	state.ticks = UINT64_MAX;
	for (uint64_t i = 0; !status && i < runs; i += 2) {
		weir_scheduler *scheduler = NULL;
		weir_graph *graph = NULL;

		status = make_graph(registry, true, &graph);
		if (!status)
			status = weir_scheduler_create(graph, &options, &scheduler);
		if (!status)
			status = run_and_stop(scheduler, i);
		if (!status)
			status = run_and_stop(scheduler, i + 1);
		weir_scheduler_destroy(scheduler);
		weir_graph_destroy(graph);
	}
	printf("{\"part\": \"stops\", \"runs\": %" PRIu64 ", \"checked\": %" PRIu64 ", \"wrong\": %" PRIu64
	       "}\n",
	       runs, (uint64_t)state.checked, (uint64_t)state.wrong);
	return status;
}

/* --- the cost of a tick --- */

static int compare(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

/* The median time from one tick to the next: half of the ticks come in a row, while others work on the
 * device. */
static double tick_ns(void)
{
	uint64_t ticks = state.ticks < SAMPLES ? state.ticks : SAMPLES;
	int64_t *between = calloc(ticks, sizeof *between);
	double median;

	for (uint64_t i = 1; i < ticks; i++)
		between[i - 1] = state.began[i] - state.began[i - 1];
	qsort(between, ticks - 1, sizeof *between, compare);
	median = (double)between[(ticks - 1) / 2];
	free(between);
	return median;
}

static weir_status measure_cost(const weir_registry *registry)
{
	double raw, replayed, enqueued;
	weir_status status;

	state.hand = replay_hand_open(KERNELS);
	if (!state.hand)
		return WEIR_E_DEVICE;
	status = run(registry, true, false);
	replayed = tick_ns();
	raw = replay_hand_close(state.hand);
	state.hand = NULL;
	if (!status)
		status = run(registry, false, false);
	enqueued = tick_ns();
	printf("{\"part\": \"cost\", \"raw_ns\": %.0f, \"replayed_ns\": %.0f, \"enqueued_ns\": %.0f}\n", raw,
	       replayed, enqueued);
	return status;
}

static void keep_failure(weir_log_level level, int64_t at, const char *line, void *arg)
{
	(void)level, (void)at, (void)arg;
	if (!*state.said && strstr(line, "FAILED"))
		snprintf(state.said, sizeof state.said, "%s", line);
}

int main(int argc, char **argv)
{
	weir_registry *registry = NULL;
	weir_status status;

	if (argc < 2) {
		fprintf(stderr, "usage: replay cost|keys|captures|refused|forgets|fault|many|evicted|stops "
				"[ticks]\n");
		return 2;
	}
	setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
	state.part = argv[1];
	state.ticks = argc > 2 ? strtoull(argv[2], NULL, 10) : 1000;
	if (state.ticks < TENTHS)
		state.ticks = TENTHS;
	weir_log_set(keep_failure, NULL);
	status = weir_registry_create(&registry);
	for (size_t i = 0; !status && i < sizeof operators / sizeof *operators; i++)
		status = weir_registry_add_operator(registry, &operators[i]);
	if (!status)
		status = part_is("cost")    ? measure_cost(registry)
			 : part_is("stops") ? stop_runs(registry)
					    : run(registry, true, true);
	if (status)
		fprintf(stderr, "replay: %s: %s\n", weir_status_text(status), weir_last_error());
	weir_registry_destroy(registry);
	return status ? 1 : 0;
}
