/*
 * Many short runs: 16 lines of three kernels of 50 us each, one frame in flight per line, 20 frames per
 * line. Each run has 5 s, about a thousand times what it needs; one that is not over by then has lost a
 * wake-up.
 */
#include <stdio.h>
#include <time.h>

#include "handles.h"

enum { LINES = 16, STAGES = 3, FRAMES = 20, RUNS_A_GRAPH = 10 };

struct shape {
	bool gate_all;   /* before each stage; otherwise before the last entity only */
	bool one_stream; /* one stream per line */
	unsigned workers;
	int64_t worker_spin_ns;
};

static void add(struct handles_rig *rig, const struct shape *shape, unsigned line, unsigned stage)
{
	char pointer[64];

	snprintf(pointer, sizeof pointer, "/entities/%u", line * (STAGES + 1) + stage);
	handles_put(rig, pointer, "{\"name\": \"%s%u_%u\", \"operator\": \"%s\"}",
		    stage == STAGES ? "sink" : "stage", line, stage, stage == STAGES ? "hand_back" : "stage");
	snprintf(pointer, sizeof pointer, "/entities/%u/conditions", line * (STAGES + 1) + stage);
	if (stage == STAGES) /* the sink ends after the frames of its line */
		handles_put(rig, pointer,
			    "[{\"type\": \"cuda_stream\", \"port\": \"in\"}, {\"type\": \"count\", "
			    "\"count\": %d}]",
			    FRAMES);
	else if (stage && shape->gate_all)
		handles_put(rig, pointer, "[{\"type\": \"cuda_stream\", \"port\": \"in\"}]");
	snprintf(pointer, sizeof pointer, "/entities/%u/resources", line * (STAGES + 1) + stage);
	if (shape->one_stream)
		handles_put(rig, pointer, "[\"line%u\"]", line);
}

static void add_line(struct handles_rig *rig, const struct shape *shape, unsigned line)
{
	char pointer[32];

	snprintf(pointer, sizeof pointer, "/resources/line%u", line);
	if (shape->one_stream)
		handles_put(rig, pointer, "{\"type\": \"stream_pool\", \"max_size\": 1}");
	for (unsigned stage = 0; stage <= STAGES; stage++)
		add(rig, shape, line, stage);
	for (unsigned stage = 0; stage < STAGES; stage++)
		handles_put(rig, "/connections/-", "[\"stage%u_%u.out\", \"%s%u_%u.in\"]", line, stage,
			    stage + 1 == STAGES ? "sink" : "stage", line, stage + 1);
	handles_put(rig, "/connections/-",
		    "{\"from\": \"sink%u_%d.out\", \"to\": \"stage%u_0.in\", \"initial_messages\": 1}", line,
		    STAGES, line);
}

/* Returns how many runs stalled; stops at the first. */
static unsigned runs(const struct shape *shape, unsigned count)
{
	struct handles_rig rig;
	unsigned stalls = 0;

	handles_begin(&rig, NULL);
	rig.workers = shape->workers;
	rig.worker_spin_ns = shape->worker_spin_ns;
	handles_put(&rig, "/weir", "1");
	handles_put(&rig, "/name", "\"stalls\"");
	handles_put(&rig, "/scheduler", "{\"device_memory\": \"1MiB\", \"host_memory\": \"1MiB\"}");
	for (unsigned line = 0; line < LINES; line++)
		add_line(&rig, shape, line);
	handles_open(&rig);
	for (unsigned i = 0; i < count && !rig.status; i++)
		if (handles_start(&rig) && handles_wait(&rig, 5 * SECOND))
			handles_expect(handles_ticks(&rig, "sink") == LINES * FRAMES, "%llu frames",
				       (unsigned long long)handles_ticks(&rig, "sink"));
	stalls = rig.hung;
	handles_close(&rig);
	return stalls;
}

static double seconds(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void s09_g04_short_runs_never_stall(void)
{
	static const unsigned workers[5] = {4, 1, 16, 2, 8};
	unsigned done = 0, stalls = 0;
	double begin = seconds();

	for (unsigned graph = 0; done < handles_settings.runs && !stalls; graph++) {
		const struct shape shape = {graph % 2, graph / 2 % 2, workers[graph % 5],
					    graph % 3 == 2 ? MS / 5 : 0};
		unsigned left = handles_settings.runs - done,
			 some = left < RUNS_A_GRAPH ? left : RUNS_A_GRAPH;

		stalls += runs(&shape, some);
		done += some;
	}
	handles_expect(!stalls, "%u of at most %u runs stalled (%s)", stalls, done, handles_settings.signal);
	handles_print_note("%u runs by %s, %u stalls, %.1f s", done, handles_settings.signal, stalls,
			   seconds() - begin);
}

const struct handles_check handles_stalls[] = {
	{"s09_g04_short_runs_never_stall", s09_g04_short_runs_never_stall, HANDLES_RUNS},
	{.name = NULL},
};
