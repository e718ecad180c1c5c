/*
 * Parts b and f: from the end of a kernel to the first instruction of the compute that a cuda_stream
 * condition gates on it.
 *
 * Each line is an entity that launches one kernel per tick, and a gated one behind it. Either a thread of
 * the benchmark pushes each frame's message a fixed time (gap) after the end of the frame before, or a
 * periodic condition sets the pace. The lines are independent.
 */
#include <stdio.h>
#include <string.h>

#include "ready.h"

enum { DROPPED = 3 };
#define BUSY_NS (150 * MS)

struct point {
	struct ready_run run;
	const char *pace;     /* "60Hz"; NULL: pushed, with gap_ns */
	unsigned lines, busy; /* busy: additional streams, each with kernels of 150 ms back to back */
	int64_t kernel_ns, gap_ns, for_ns;
	bool entries; /* record when the library's callbacks are entered */
};

/* Frames for which the witness was late, or saw nothing. */
static size_t early, unseen;

struct result {
	bool good;
	struct ready_stats ready; /* kernel end -> compute */
	struct ready_stats entry; /* callback entry -> compute */
	double cores;             /* used by the process, without the witness */
};

/* --- the graph --- */

static void add_line(struct ready_rig *rig, const struct point *point, unsigned i)
{
	char from[16], to[16], json[64];

	snprintf(from, sizeof from, "p%u", i);
	snprintf(to, sizeof to, "g%u", i);
	ready_rig_add(rig, from, "ready_source", (int)i, point->kernel_ns);
	if (point->pace) {
		snprintf(json, sizeof json, "{\"type\": \"periodic\", \"period\": \"%s\"}", point->pace);
		ready_rig_of_last(rig, "conditions/-", json);
	}
	ready_rig_add(rig, to, "ready_gated", (int)i, 0);
	ready_rig_gate(rig);
	snprintf(from, sizeof from, "p%u.out", i);
	snprintf(to, sizeof to, "g%u.in", i);
	ready_rig_connect(rig, from, to, 0);
}

static void add_busy(struct ready_rig *rig, unsigned i)
{
	char from[16], to[16];

	snprintf(from, sizeof from, "b%u", i);
	snprintf(to, sizeof to, "e%u", i);
	ready_rig_add(rig, from, "ready_source", -1, BUSY_NS);
	ready_rig_add(rig, to, "ready_gated", -1, 0);
	ready_rig_gate(rig);
	snprintf(from, sizeof from, "b%u.out", i);
	snprintf(to, sizeof to, "e%u.in", i);
	ready_rig_connect(rig, from, to, 0);
}

/* --- the driver: pushes a line's next frame when its gap has passed --- */

static int64_t computed_at(const struct ready_line *line, uint32_t done)
{
	return done && done <= READY_FRAMES ? line->computed_at[done - 1] : 0;
}

/* Returns true if a frame of this line is under way. */
static bool drive_line(struct ready_rig *rig, const struct point *point, unsigned i, uint32_t *pushed,
		       int64_t end)
{
	struct ready_line *line = &ready_lines[i];
	uint32_t done = atomic_load_explicit(&line->done, memory_order_acquire);
	int64_t now;

	if (done < *pushed)
		return true;
	now = ready_now();
	if (now >= end || *pushed == READY_FRAMES)
		return false;
	if (now < computed_at(line, done) + point->gap_ns)
		return true;
	ready_rig_push(rig, i);
	++*pushed;
	return true;
}

static void drive_lines(struct ready_rig *rig, const struct point *point)
{
	uint32_t pushed[READY_LINES] = {0};
	int64_t end = ready_now() + point->for_ns, give_up = end + 3 * SECOND;
	bool going = true;

	while (going && !rig->status && ready_now() < give_up && weir_scheduler_running(rig->scheduler)) {
		going = false;
		for (unsigned i = 0; i < point->lines; i++)
			going |= drive_line(rig, point, i, &pushed[i], end);
		ready_relax();
	}
}

/* --- measuring --- */

static void pace(struct ready_rig *rig, const struct point *point, struct result *result)
{
	int64_t begin, cpu, witness;

	ready_rig_run_for(rig, 50 * MS); /* until the streams exist and the first frames are over */
	begin = ready_now();
	cpu = ready_cpu();
	witness = ready_witness_cpu();
	ready_rig_run_for(rig, point->for_ns);
	cpu = ready_cpu() - cpu;
	witness = ready_witness_cpu() - witness;
	result->cores = (double)(cpu - witness) / (double)(ready_now() - begin);
}

static uint32_t frames_of(const struct ready_line *line)
{
	uint32_t done = atomic_load(&line->done);

	return done < READY_FRAMES ? done : READY_FRAMES;
}

static struct ready_stats line_latency(unsigned lines)
{
	ready_samples_begin();
	for (unsigned i = 0; i < lines; i++)
		for (uint32_t k = DROPPED; k < frames_of(&ready_lines[i]); k++)
			if (ready_lines[i].ended_at[k]) {
				early += ready_lines[i].computed_at[k] < ready_lines[i].ended_at[k];
				ready_sample(ready_lines[i].computed_at[k] - ready_lines[i].ended_at[k]);
			} else {
				unseen++;
			}
	return ready_samples_end();
}

/* Only frames whose callback came after the launch: one whose review finds it complete needs none. */
static struct ready_stats entry_latency(void)
{
	const struct ready_line *line = &ready_lines[0];

	ready_samples_begin();
	for (uint32_t k = DROPPED; k < frames_of(line); k++)
		if (line->entered_at[k] > line->launched_at[k])
			ready_sample(line->computed_at[k] - line->entered_at[k]);
	return ready_samples_end();
}

static void run(struct ready_rig *rig, const struct point *point, struct result *result)
{
	if (!ready_rig_start(rig))
		return;
	if (point->busy)
		ready_rig_run_for(rig, 100 * MS); /* until all streams are busy */
	if (point->pace)
		pace(rig, point, result);
	else
		drive_lines(rig, point);
	result->good = ready_rig_stop(rig, true);
}

static void measure(const struct point *point, struct result *result)
{
	struct ready_rig rig;

	*result = (struct result){false, ready_no_stats, ready_no_stats, NAN};
	ready_rig_begin(&rig);
	for (unsigned i = 0; i < point->lines; i++)
		add_line(&rig, point, i);
	for (unsigned i = 0; i < point->busy; i++)
		add_busy(&rig, i);
	ready_witness_begin(point->lines);
	ready_entry_watch(point->entries);
	if (ready_rig_open(&rig, &point->run))
		run(&rig, point, result);
	ready_witness_end();
	ready_rig_close(&rig);
	ready_entry_watch(false);
	if (!result->good)
		return;
	result->ready = line_latency(point->lines);
	if (point->entries)
		result->entry = entry_latency();
}

static struct point point_of(const char *signal, int64_t worker_spin_ns)
{
	return (struct point){
		.run = {.signal = signal,
			.worker_spin_ns = worker_spin_ns,
			.workers = ready_settings.workers},
		.lines = 1,
		.kernel_ns = KERNEL_NS,
		.for_ns = ready_point_ns(),
	};
}

static const char *workers_word(int64_t worker_spin_ns)
{
	return worker_spin_ns ? "spinning" : "sleeping";
}

static double larger(double a, double b)
{
	return isnan(a) || a < b ? b : a; /* NAN: no figure yet */
}

static void print_witness(void)
{
	printf("(the witness missed %zu kernels; %zu times compute began before it saw the end)\n", unseen,
	       early);
	unseen = early = 0;
}

/* --- b: pushed frames --- */

/* The figures behind a signal's aims: one line, by gap. */
struct row {
	struct result at[READY_GAPS];
};

static void print_entry(const struct result *result)
{
	if (!result->entry.count)
		return;
	printf("%-42s", "  of it from the callback's entry");
	ready_print_stats(&result->entry);
	printf("\n");
}

static void pushed(const char *signal, int64_t worker_spin_ns, unsigned lines, struct row *row)
{
	size_t gaps = lines == 1 ? READY_GAPS : READY_GAPS - 1; /* the last takes long: for one stream only */

	for (size_t gap = 0; gap < gaps; gap++) {
		struct point point = point_of(signal, worker_spin_ns);

		point.lines = lines;
		point.run.inlets = lines;
		point.gap_ns = ready_gaps[gap];
		point.entries = lines == 1 && !strncmp(signal, "callback", 8);
		if (point.gap_ns > 10 * MS)
			point.for_ns *= 8; /* a hundred frames */
		watchdog_point(30 + (double)point.for_ns / 1e9, "%s, %s, %u streams, gap %s", signal,
			       workers_word(worker_spin_ns), lines, ready_gap_names[gap]);
		measure(&point, &row->at[gap]);
		printf("%-16s%-9s%8u %8s", signal, workers_word(worker_spin_ns), lines, ready_gap_names[gap]);
		ready_print_stats(&row->at[gap].ready);
		printf("\n");
		print_entry(&row->at[gap]);
	}
}

static void aim_entry(const struct row *spinning, const struct row *sleeping)
{
	double p50 = NAN, p99 = NAN;

	for (size_t gap = 0; gap < READY_GAPS; gap++) {
		p50 = larger(p50, spinning->at[gap].entry.p50);
		p99 = larger(p99, spinning->at[gap].entry.p99);
	}
	ready_aim_most("callback entry -> compute, spinning, worst gap, p50", p50, 1, "us");
	ready_aim_most("callback entry -> compute, spinning, worst gap, p99", p99, 3, "us");
	ready_aim_most("callback entry -> compute, sleeping, no gap, p50 (1.2 hops)",
		       sleeping->at[0].entry.p50, 1.2 * ready_floors.hop_warm, "us");
	ready_aim_most("callback entry -> compute, sleeping, gap 1 ms, p50 (1.2 hops)",
		       sleeping->at[2].entry.p50, 1.2 * ready_floors.hop_idle, "us");
}

/* After a gap of 1 ms or more, a hop to a thread that slept long. */
static void aim_callback(const struct row *spinning, const struct row *sleeping)
{
	char figure[72];

	for (size_t gap = 0; gap < READY_GAPS; gap++) {
		const struct ready_stats *floor = &ready_floors.call[gap];
		double hop = ready_gaps[gap] < MS ? ready_floors.hop_warm : ready_floors.hop_idle;

		snprintf(figure, sizeof figure, "callback, spinning, gap %s, p50 (floor + 1)",
			 ready_gap_names[gap]);
		ready_aim_most(figure, spinning->at[gap].ready.p50, floor->p50 + 1, "us");
		snprintf(figure, sizeof figure, "callback, spinning, gap %s, p99 (floor + 3)",
			 ready_gap_names[gap]);
		ready_aim_most(figure, spinning->at[gap].ready.p99, floor->p99 + 3, "us");
		snprintf(figure, sizeof figure, "callback, sleeping, gap %s, p50 (floor + 1.2 hops)",
			 ready_gap_names[gap]);
		ready_aim_most(figure, sleeping->at[gap].ready.p50, floor->p50 + 1.2 * hop, "us");
	}
}

static bool polls_flags(const char *signal)
{
	return !strcmp(signal, "flag") || !strcmp(signal, "auto");
}

/* p50 beside the floor; p99 spinning beside a constant, sleeping beside what a timer is late. */
static void aim_flag(const char *signal, const struct row *row, int64_t worker_spin_ns)
{
	double late = worker_spin_ns ? 0 : ready_floors.late;
	char figure[72];

	for (size_t gap = 0; gap < READY_GAPS; gap++) {
		snprintf(figure, sizeof figure, "%s, %s, gap %s, p50 (1.2 floors + 0.7)", signal,
			 workers_word(worker_spin_ns), ready_gap_names[gap]);
		ready_aim_floor(figure, row->at[gap].ready.p50, ready_floors.word[gap].p50);
		snprintf(figure, sizeof figure, "%s, %s, gap %s, p99%s", signal, workers_word(worker_spin_ns),
			 ready_gap_names[gap], worker_spin_ns ? "" : " (a timer's + 6)");
		ready_aim_most(figure, row->at[gap].ready.p99, late + 6, "us");
	}
}

static void pushed_by(const char *signal)
{
	static const unsigned lines[] = {8, 32};
	struct row spinning, sleeping, other;

	pushed(signal, SPIN_NS, 1, &spinning);
	pushed(signal, 0, 1, &sleeping);
	for (size_t i = 0; i < 2; i++) {
		pushed(signal, SPIN_NS, lines[i], &other);
		pushed(signal, 0, lines[i], &other);
	}
	if (!strcmp(signal, "callback")) {
		aim_entry(&spinning, &sleeping);
		aim_callback(&spinning, &sleeping);
	} else if (polls_flags(signal)) {
		aim_flag(signal, &spinning, SPIN_NS);
		aim_flag(signal, &sleeping, 0);
	}
}

/* --- b: at a steady pace --- */

enum { BEATS = 4 };
static const struct beat {
	const char *pace;
	int64_t period, kernel_ns;
	const char *kernel;
	int points; /* of time */
} beats[BEATS] = {
	{"60Hz", SECOND / 60, KERNEL_NS, "50 us", 5},
	{"240Hz", SECOND / 240, KERNEL_NS, "50 us", 3},
	{"1kHz", MS, KERNEL_NS, "50 us", 2},
	{"60Hz", SECOND / 60, 5 * MS, "5 ms", 5},
};

static void print_paced(const char *name, const char *workers, const struct beat *beat,
			const struct ready_stats *stats, double cores, double plain)
{
	printf("%-16s%-9s%8s %8s", name, workers, beat->pace, beat->kernel);
	ready_print_stats(stats);
	printf("%10.2f%10.2f\n", 100 * cores, cores / plain);
}

/* *cores: by beat, of a loop that polls. */
static void measure_floors_paced(double cores[BEATS])
{
	for (size_t i = 0; i < BEATS; i++) {
		int64_t for_ns = beats[i].points * ready_point_ns();
		struct ready_stats stats;

		watchdog_point(30 + (double)for_ns / 1e9, "floor, %s", beats[i].pace);
		stats = ready_floor_paced(beats[i].period, beats[i].kernel_ns, for_ns, &cores[i]);
		print_paced("floor, no weir", "polling", &beats[i], &stats, cores[i], cores[i]);
	}
}

static void paced_by(const char *signal, const double plain[BEATS])
{
	double p50 = NAN, cores = NAN;
	struct result result;
	char figure[72];

	for (size_t i = 0; i < BEATS; i++) {
		struct point point = point_of(signal, 0);

		point.pace = beats[i].pace;
		point.kernel_ns = beats[i].kernel_ns;
		point.for_ns *= beats[i].points;
		watchdog_point(30 + (double)point.for_ns / 1e9, "%s, %s", signal, beats[i].pace);
		measure(&point, &result);
		print_paced(signal, "sleeping", &beats[i], &result.ready, result.cores, plain[i]);
		p50 = larger(p50, result.ready.p50);
		cores = larger(cores, result.cores);
	}
	if (!polls_flags(signal))
		return;
	snprintf(figure, sizeof figure, "%s, learned sleep, 60 Hz to 1 kHz, worst p50", signal);
	ready_aim_most(figure, p50, 5, "us");
	snprintf(figure, sizeof figure, "%s, learned sleep, 60 Hz to 1 kHz, most CPU", signal);
	ready_aim_most(figure, 100 * cores, 10, "% of core");
}

void ready_part_latency(void)
{
	double plain[BEATS];
	const char *signal;

	printf("\nb. kernel of 50 us, its end -> gated compute, %u workers, each line a stream of its own\n",
	       ready_settings.workers);
	printf("%-16s%-9s%8s %8s%s\n", "signal", "workers", "streams", "gap", READY_STATS_HEADER);
	for (size_t i = 0; (signal = ready_signal(i)); i++)
		pushed_by(signal);
	printf("\nb. the same at a steady pace (CPU: the process without the witness)\n");
	printf("%-16s%-9s%8s %8s%s%10s%10s\n", "signal", "workers", "pace", "kernel", READY_STATS_HEADER,
	       "% of core", "x floor");
	measure_floors_paced(plain);
	for (size_t i = 0; (signal = ready_signal(i)); i++)
		paced_by(signal, plain);
	print_witness();
}

/* --- f --- */

enum { BESIDE = 4 };
static const unsigned busy[BESIDE] = {0, 1, 8, 24};

static void print_beside(const char *name, const char *workers, size_t i, const struct ready_stats *stats,
			 double alone)
{
	printf("%-16s%-9s%8u %8s", name, workers, busy[i], "1 ms");
	ready_print_stats(stats);
	printf("%10.2f\n", stats->p50 / alone);
}

/* The plain loop of one thread: by how many streams are busy. */
static void measure_floors_beside(double floors[BESIDE])
{
	for (size_t i = 0; i < BESIDE; i++) {
		struct ready_stats stats;

		watchdog_point(30 + ready_settings.seconds, "floor, %u busy", busy[i]);
		stats = ready_floor_beside(busy[i], BUSY_NS);
		floors[i] = stats.p50;
		print_beside("floor, no weir", "polling", i, &stats, floors[0]);
	}
}

static void aim_beside(const char *signal, int64_t worker_spin_ns, size_t i, double p50, double alone,
		       double floor)
{
	char figure[72];

	if (polls_flags(signal)) {
		snprintf(figure, sizeof figure, "%s, %s, beside %u busy, p50 (1.2 floors there + 0.7)",
			 signal, workers_word(worker_spin_ns), busy[i]);
		ready_aim_floor(figure, p50, floor);
	} else if (i) {
		snprintf(figure, sizeof figure, "%s, %s, p50 beside %u busy streams / beside none", signal,
			 workers_word(worker_spin_ns), busy[i]);
		ready_aim_most(figure, p50 / alone, 2, "times");
	}
}

static void measure_beside(const char *signal, int64_t worker_spin_ns, const double floors[BESIDE])
{
	double alone = NAN;
	struct result result;

	for (size_t i = 0; i < BESIDE; i++) {
		struct point point = point_of(signal, worker_spin_ns);

		point.run.inlets = 1;
		point.gap_ns = MS;
		point.busy = busy[i];
		watchdog_point(30 + (double)point.for_ns / 1e9, "%s, %s, %u busy", signal,
			       workers_word(worker_spin_ns), busy[i]);
		measure(&point, &result);
		alone = i ? alone : result.ready.p50;
		print_beside(signal, workers_word(worker_spin_ns), i, &result.ready, alone);
		aim_beside(signal, worker_spin_ns, i, result.ready.p50, alone, floors[i]);
	}
}

void ready_part_beside(void)
{
	double floors[BESIDE];
	const char *signal;

	printf("\nf. the same while other streams are busy with kernels of 150 ms, gated, too\n");
	printf("%-16s%-9s%8s %8s%s%10s\n", "signal", "workers", "busy", "gap", READY_STATS_HEADER, "x alone");
	measure_floors_beside(floors);
	for (size_t i = 0; (signal = ready_signal(i)); i++)
		measure_beside(signal, SPIN_NS, floors);
	print_witness();
}
