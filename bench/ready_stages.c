/*
 * Part e: three stages of 50 us in 16 independent lines, one frame in flight in each: at most 16 frames in
 * 150 us. First without weir: what the GPU can do, and threads that launch a line's next frame when they
 * see the end of the last one. Then as a graph: each line has three entities that launch and one that
 * returns the token to the first. What is not gated is ordered by the device.
 */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "ready.h"

enum { LINES = 16, STAGES = 3 };
#define LIMIT (LINES * 1e9 / (double)(STAGES * KERNEL_NS)) /* frames a second */

static void print_rate(const char *what, const char *signal, const char *rests, unsigned threads, double rate,
		       double cores)
{
	printf("%-38s%-16s%-9s%8u%12.0f%8.2f%8.2f\n", what, signal, rests, threads, rate, rate / LIMIT,
	       cores);
}

/* --- without weir --- */

struct launcher {
	unsigned first, step; /* the thread's lines */
	void **streams;
	int64_t end;     /* polling: when to stop; otherwise 0 */
	uint32_t frames; /* completed; for launch_ahead: to launch, per line */
	int error;
};

/* Frame 0 stores no word: nothing waits for it. */
static int launch_frame(void *stream, unsigned line, uint32_t frame)
{
	struct ready_work work = {.ns = KERNEL_NS};
	int error = 0;

	for (int stage = 0; stage < STAGES && !error; stage++) {
		if (frame && stage == STAGES - 1) {
			work.flag = ready_flag(line);
			work.value = frame;
		}
		error = ready_gpu_launch(stream, &work);
	}
	return error;
}

static void *launch_ahead(void *arg)
{
	struct launcher *self = arg;
	uint32_t frames = 0;

	for (uint32_t frame = 0; frame < self->frames && !self->error; frame++)
		for (unsigned i = self->first; i < LINES && !self->error; i += self->step, frames++)
			self->error = launch_frame(self->streams[i], i, 0);
	for (unsigned i = self->first; i < LINES && !self->error; i += self->step)
		self->error = ready_gpu_wait(self->streams[i]);
	self->frames = frames;
	return NULL;
}

static void *launch_when_done(void *arg)
{
	struct launcher *self = arg;
	uint32_t launched[LINES] = {0};

	self->frames = 0;
	while (ready_now() < self->end && !self->error)
		for (unsigned i = self->first; i < LINES && !self->error; i += self->step)
			if (*(volatile uint32_t *)ready_flag(i) == launched[i]) {
				self->frames += launched[i] != 0;
				self->error = launch_frame(self->streams[i], i, ++launched[i]);
			}
	return NULL;
}

static void plain(const char *name, void *(*way)(void *arg), void **streams, unsigned threads)
{
	struct launcher launchers[LINES];
	pthread_t ids[LINES];
	int64_t begin, cpu, took, end;
	uint32_t frames = 0;

	watchdog_point(30 + ready_settings.seconds, "%s, %u threads", name, threads);
	for (unsigned i = 0; i < LINES; i++)
		*(volatile uint32_t *)ready_flag(i) = 0;
	cpu = ready_cpu();
	begin = ready_now();
	end = begin + ready_point_ns();
	for (unsigned i = 0; i < threads; i++) {
		launchers[i] = (struct launcher){
			i, threads, streams, end, (uint32_t)(ready_settings.seconds * LIMIT / LINES), 0};
		if (pthread_create(&ids[i], NULL, way, &launchers[i]))
			ready_fail("a thread", 0);
	}
	for (unsigned i = 0; i < threads; i++) {
		pthread_join(ids[i], NULL);
		frames += launchers[i].frames;
		if (launchers[i].error)
			ready_fail("a kernel", launchers[i].error);
	}
	took = ready_now() - begin;
	print_rate(name, "", "", threads, frames * 1e9 / (double)took,
		   (double)(ready_cpu() - cpu) / (double)took);
	for (unsigned i = 0; i < LINES; i++)
		ready_gpu_wait(streams[i]);
}

static void without_weir(void)
{
	static const unsigned threads[] = {1, 2, 4};
	void *streams[LINES];

	for (unsigned i = 0; i < LINES; i++) {
		int error = ready_gpu_stream(&streams[i]);

		if (error)
			ready_fail("a stream", error);
	}
	for (size_t i = 0; i < 3; i++)
		plain("no weir: all launched ahead", launch_ahead, streams, threads[i]);
	for (size_t i = 0; i < 3; i++)
		plain("no weir: next launched when seen done", launch_when_done, streams, threads[i]);
}

/* --- the graph --- */

enum form { GATE_ALL, GATE_SINK, SYNC };
static const char *const forms[] = {"a gate before each", "a gate before the sink",
				    "a synchronisation in each"};

static bool one_stream_a_line = true; /* until refused */

/* A pool of one stream per line: a stage that finds it empty works on the stream that its message carries. */
static void add_pool(struct ready_rig *rig, unsigned line)
{
	char pointer[40];

	snprintf(pointer, sizeof pointer, "/resources/line%u", line);
	if (one_stream_a_line)
		ready_rig_put(rig, pointer,
			      "{\"type\": \"stream_pool\", \"reserved_size\": 1, \"max_size\": 1}");
}

static void add_stage(struct ready_rig *rig, enum form form, unsigned line, int stage)
{
	char name[32], pool[32];

	snprintf(name, sizeof name, "s%u_%d", line, stage);
	snprintf(pool, sizeof pool, "\"line%u\"", line);
	ready_rig_add(rig, name, form == SYNC ? "ready_sync" : "ready_filter", -1, KERNEL_NS);
	if (one_stream_a_line)
		ready_rig_of_last(rig, "resources/-", pool);
	if (form == GATE_ALL && stage)
		ready_rig_gate(rig);
}

static void connect_line(struct ready_rig *rig, unsigned line)
{
	char from[40], to[40];

	for (int stage = 0; stage + 1 < STAGES; stage++) {
		snprintf(from, sizeof from, "s%u_%d.out", line, stage);
		snprintf(to, sizeof to, "s%u_%d.in", line, stage + 1);
		ready_rig_connect(rig, from, to, 0);
	}
	snprintf(from, sizeof from, "s%u_%d.out", line, STAGES - 1);
	snprintf(to, sizeof to, "r%u.in", line);
	ready_rig_connect(rig, from, to, 0);
	snprintf(from, sizeof from, "r%u.out", line);
	snprintf(to, sizeof to, "s%u_0.in", line);
	ready_rig_connect(rig, from, to, 1);
}

static void add_line(struct ready_rig *rig, enum form form, unsigned line)
{
	char name[32];

	add_pool(rig, line);
	for (int stage = 0; stage < STAGES; stage++)
		add_stage(rig, form, line, stage);
	snprintf(name, sizeof name, "r%u", line);
	ready_rig_add(rig, name, "ready_return", (int)line, 0);
	if (form != SYNC)
		ready_rig_gate(rig);
	else
		ready_rig_never_gate(rig);
	connect_line(rig, line);
}

static bool open_lines(struct ready_rig *rig, enum form form, const struct ready_run *run)
{
	ready_rig_begin(rig);
	for (unsigned i = 0; i < LINES; i++)
		add_line(rig, form, i);
	return ready_rig_open(rig, run);
}

/* The library or its backend may not support pools. */
static bool open_either_way(struct ready_rig *rig, enum form form, const struct ready_run *run)
{
	if (open_lines(rig, form, run))
		return true;
	if (!one_stream_a_line)
		return false;
	printf("  (no pool of one stream for each line: %s)\n", rig->why);
	rig->status = WEIR_OK;
	ready_rig_close(rig);
	one_stream_a_line = false;
	return open_lines(rig, form, run);
}

static uint32_t frames_done(void)
{
	uint32_t frames = 0;

	for (unsigned i = 0; i < LINES; i++)
		frames += atomic_load(&ready_lines[i].done);
	return frames;
}

struct rate {
	double frames, cores;
};

static struct rate stages(enum form form, const struct ready_run *run)
{
	struct rate rate = {NAN, NAN};
	struct ready_rig rig;

	watchdog_point(30 + ready_settings.seconds, "%s, %s, %u workers", forms[form],
		       run->signal ? run->signal : "", run->workers);
	for (unsigned i = 0; i < LINES; i++)
		atomic_store(&ready_lines[i].done, 0);
	if (open_either_way(&rig, form, run) && ready_rig_start(&rig)) {
		ready_rig_run_for(&rig, 50 * MS);
		int64_t begin = ready_now(), cpu = ready_cpu(), took;
		uint32_t frames = frames_done();

		ready_rig_run_for(&rig, ready_point_ns());
		took = ready_now() - begin;
		rate.frames = (double)(frames_done() - frames) * 1e9 / (double)took;
		rate.cores = (double)(ready_cpu() - cpu) / (double)took;
		if (!ready_rig_stop(&rig, true))
			rate = (struct rate){NAN, NAN};
	}
	ready_rig_close(&rig);
	return rate;
}

/* --- the part --- */

static const unsigned workers[] = {1, 2, 4, 16};

/* Returns the best rate that needs no more than two cores. */
static struct rate with_workers(enum form form, const char *signal, int64_t worker_spin_ns)
{
	struct rate best = {NAN, NAN};

	for (size_t i = 0; i < sizeof workers / sizeof *workers; i++) {
		const struct ready_run run = {
			.signal = signal, .worker_spin_ns = worker_spin_ns, .workers = workers[i]};
		struct rate rate = stages(form, &run);

		print_rate(forms[form], signal ? signal : "", worker_spin_ns ? "spinning" : "sleeping",
			   workers[i], rate.frames, rate.cores);
		if (rate.cores <= 2 && !(rate.frames <= best.frames))
			best = rate;
	}
	return best;
}

static void stages_by(const char *signal)
{
	struct rate sleeping = with_workers(GATE_SINK, signal, 0), best = sleeping;
	bool literal = !strcmp(signal, "callback_inline");
	char figure[72];

	if (!literal) {
		struct rate spinning = with_workers(GATE_SINK, signal, SPIN_NS);

		best = spinning.frames > sleeping.frames || isnan(sleeping.frames) ? spinning : sleeping;
	}
	with_workers(GATE_ALL, signal, 0);
	if (literal)
		return;
	with_workers(GATE_ALL, signal, SPIN_NS);
	snprintf(figure, sizeof figure, "frames/s, gate at the sink, %s, <= 2 cores / limit", signal);
	ready_aim_least(figure, best.frames / LIMIT, 0.85, "of limit");
}

void ready_part_stages(void)
{
	const char *signal;

	printf("\ne. 3 stages of 50 us, %d lines with one frame in flight each: limit %.0f frames/s\n", LINES,
	       LIMIT);
	printf("%-38s%-16s%-9s%8s%12s%8s%8s\n", "", "signal", "workers", "threads", "frames/s", "/limit",
	       "cores");
	if (ready_settings.gpu) {
		without_weir();
		with_workers(SYNC, NULL, 0);
	}
	for (size_t i = 0; (signal = ready_signal(i)); i++)
		stages_by(signal);
	printf("(weir's lines: %s)\n",
	       one_stream_a_line ? "each on one stream" : "each stage on a stream of its own");
}
