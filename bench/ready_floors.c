/*
 * Part a: what the machine needs without weir. A kernel ends when the witness sees its last store, so the
 * bus transfer of that store is not in these times; it is the same for the word that stream memory
 * operations write.
 */
#include <linux/futex.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "ready.h"

enum { DROPPED = 3, HOPS = 1000, TIMERS = 500, BUSY_MAX = 24 };

struct ready_floors ready_floors = {
	.call = {{0, NAN, NAN, NAN}, {0, NAN, NAN, NAN}, {0, NAN, NAN, NAN}, {0, NAN, NAN, NAN}},
	.word = {{0, NAN, NAN, NAN}, {0, NAN, NAN, NAN}, {0, NAN, NAN, NAN}, {0, NAN, NAN, NAN}},
	.hop_warm = NAN,
	.hop_idle = NAN,
	.late = NAN,
};

/* --- from the end of a kernel to the host --- */

static struct {
	void *stream, *side;
	volatile uint32_t *word;
	int64_t kernel_ns;
} gpu = {.kernel_ns = KERNEL_NS};
static _Atomic int64_t entered;

static void enter(void *arg)
{
	(void)arg;
	atomic_store_explicit(&entered, ready_now(), memory_order_release);
}

static void must(const char *what, int error)
{
	if (error)
		ready_fail(what, error);
}

static void launch(uint32_t frame)
{
	struct ready_work work = {gpu.kernel_ns, ready_flag(0), frame + 1};

	must("a kernel", ready_gpu_launch(gpu.stream, &work));
}

static int64_t wait_for_entry(void)
{
	int64_t at;

	while (!(at = atomic_load_explicit(&entered, memory_order_acquire)))
		ready_relax();
	return at;
}

static int64_t by_call(uint32_t frame)
{
	atomic_store(&entered, 0);
	launch(frame);
	must("a host function", ready_gpu_call(gpu.stream, enter, NULL));
	return wait_for_entry();
}

static int64_t by_side_call(uint32_t frame)
{
	atomic_store(&entered, 0);
	launch(frame);
	must("an event", ready_gpu_follow(gpu.side, gpu.stream));
	must("a host function", ready_gpu_call(gpu.side, enter, NULL));
	return wait_for_entry();
}

static int64_t write_and_poll(void *stream, uint32_t frame)
{
	must("a stream memory operation", ready_gpu_write(stream, (uint32_t *)gpu.word, frame + 1));
	while (*gpu.word != frame + 1)
		ready_relax();
	return ready_now();
}

static int64_t by_word(uint32_t frame)
{
	launch(frame);
	return write_and_poll(gpu.stream, frame);
}

/* As a tick of weir enqueues it: the record of the fence's event, then the flag on the same stream. */
static int64_t by_marked_word(uint32_t frame)
{
	launch(frame);
	must("an event", ready_gpu_mark(gpu.stream));
	return write_and_poll(gpu.stream, frame);
}

static int64_t by_side_word(uint32_t frame)
{
	launch(frame);
	must("an event", ready_gpu_follow(gpu.side, gpu.stream));
	return write_and_poll(gpu.side, frame);
}

static void begin_frames(void)
{
	ready_witness_begin(1);
	*gpu.word = 0;
}

/* Kernel end -> computed_at of so many frames. */
static struct ready_stats end_frames(uint32_t frames)
{
	must("the stream", ready_gpu_wait(gpu.stream));
	ready_spin_until(ready_now() + MS); /* until the witness has seen the last one, too */
	ready_witness_end();
	ready_samples_begin();
	for (uint32_t i = DROPPED; i < frames; i++)
		if (ready_lines[0].ended_at[i])
			ready_sample(ready_lines[0].computed_at[i] - ready_lines[0].ended_at[i]);
	return ready_samples_end();
}

static struct ready_stats measure(int64_t (*way)(uint32_t frame), int64_t gap, int64_t for_ns)
{
	int64_t end = ready_now() + for_ns;
	uint32_t frames = 0;

	begin_frames();
	while (frames < READY_FRAMES && (frames <= DROPPED || ready_now() < end)) {
		int64_t at = way(frames);

		ready_lines[0].computed_at[frames++] = at;
		ready_spin_until(at + gap);
	}
	return end_frames(frames);
}

static struct ready_stats print_way(const char *name, int64_t (*way)(uint32_t frame), size_t gap)
{
	int64_t for_ns = ready_point_ns() * (ready_gaps[gap] > 10 * MS ? 4 : 1);
	struct ready_stats stats;

	watchdog_point(20 + (double)for_ns / 1e9, "%s, gap %s", name, ready_gap_names[gap]);
	stats = measure(way, ready_gaps[gap], for_ns);
	printf("%-44s %8s", name, ready_gap_names[gap]);
	ready_print_stats(&stats);
	printf("\n");
	return stats;
}

static void open_gpu(void)
{
	void *word = NULL;

	if (gpu.word)
		return;
	must("a stream", ready_gpu_stream(&gpu.stream));
	must("a stream", ready_gpu_stream(&gpu.side));
	must("pinned memory", ready_gpu_pinned(&word, 64));
	gpu.word = word;
}

static void word_floors(size_t gap)
{
	ready_floors.word[gap] = print_way("polled word: floor, one stream", by_word, gap);
	print_way("polled word: floor, one stream, by an event", by_marked_word, gap);
	print_way("polled word: by an event and a second stream", by_side_word, gap);
}

static void kernel_floors(void)
{
	open_gpu();
	printf("\na. kernel of 50 us, its end -> host, without weir\n%-44s %8s%s\n", "", "gap",
	       READY_STATS_HEADER);
	for (size_t gap = 0; gap < READY_GAPS; gap++) {
		struct ready_stats straight = print_way("host function on its stream: entry", by_call, gap);
		struct ready_stats side =
			print_way("host function behind an event, 2nd stream", by_side_call, gap);

		ready_floors.call[gap] = side.p50 < straight.p50 ? side : straight;
		if (ready_settings.device.can_write)
			word_floors(gap);
	}
	if (!ready_settings.device.can_write)
		printf("cuStreamWriteValue32: not available\n");
}

/* --- at a steady pace --- */

static bool sleep_until(int64_t at)
{
	const struct timespec until = {.tv_sec = at / SECOND, .tv_nsec = at % SECOND};

	return !clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
}

/* It sleeps until its next frame is due, as weir's worker without slack, and polls until that is over. */
static uint32_t run_paced(int64_t period, int64_t for_ns)
{
	int64_t due = ready_now(), end = due + for_ns;
	uint32_t frames = 0;

	prctl(PR_SET_TIMERSLACK, 1UL);
	for (; frames < READY_FRAMES && due < end; due += period) {
		sleep_until(due);
		ready_lines[0].computed_at[frames] = by_word(frames);
		frames++;
	}
	prctl(PR_SET_TIMERSLACK, 0UL); /* the thread's default */
	return frames;
}

struct ready_stats ready_floor_paced(int64_t period, int64_t kernel_ns, int64_t for_ns, double *cores)
{
	int64_t begin, cpu;
	uint32_t frames;

	*cores = NAN;
	if (!ready_settings.gpu || !ready_settings.device.can_write)
		return ready_no_stats;
	open_gpu();
	gpu.kernel_ns = kernel_ns;
	begin_frames();
	begin = ready_now();
	cpu = ready_cpu() - ready_witness_cpu();
	frames = run_paced(period, for_ns);
	cpu = ready_cpu() - ready_witness_cpu() - cpu;
	*cores = (double)cpu / (double)(ready_now() - begin);
	gpu.kernel_ns = KERNEL_NS;
	return end_frames(frames);
}

/* --- beside busy streams --- */

/* Enqueues work for this long on each of them: kernels, each with a write, as those of weir. */
static void keep_busy(void *const *streams, unsigned busy, int64_t busy_ns, int64_t for_ns)
{
	static void *words;
	const struct ready_work work = {.ns = busy_ns};

	if (!words)
		must("pinned memory", ready_gpu_pinned(&words, BUSY_MAX * sizeof(uint32_t)));
	for (int64_t ns = 0; ns < for_ns; ns += busy_ns)
		for (unsigned i = 0; i < busy; i++) {
			must("a kernel", ready_gpu_launch(streams[i], &work));
			must("a stream memory operation",
			     ready_gpu_write(streams[i], (uint32_t *)words + i, 1));
		}
}

/*
 * Streams share queues of the hardware if there are many, and what is enqueued behind the write of a busy one
 * then waits for its kernel. Streams that are made in a row have different queues, so the measured one is
 * made with the others and not taken from part a.
 */
static void *const *open_beside(void)
{
	static void *streams[BUSY_MAX + 1];

	for (unsigned i = 0; i <= BUSY_MAX && !streams[BUSY_MAX]; i++)
		must("a stream", ready_gpu_stream(&streams[i]));
	gpu.stream = streams[BUSY_MAX];
	return streams;
}

struct ready_stats ready_floor_beside(unsigned busy, int64_t busy_ns)
{
	int64_t before = busy ? 100 * MS : 0; /* until all streams are busy */
	struct ready_stats stats;
	void *const *streams;

	if (!ready_settings.gpu || !ready_settings.device.can_write)
		return ready_no_stats;
	if (busy > BUSY_MAX)
		ready_fail("a floor beside so many streams", 0);
	open_gpu();
	streams = open_beside();
	keep_busy(streams, busy, busy_ns, ready_point_ns() + before);
	ready_spin_until(ready_now() + before);
	stats = measure(by_word, MS, ready_point_ns());
	for (unsigned i = 0; i < busy; i++)
		must("a busy stream", ready_gpu_wait(streams[i]));
	return stats;
}

/* --- from thread to thread --- */

static struct {
	_Atomic uint32_t word;
	_Atomic int64_t woken_at;
	uint32_t rounds;
} hop;

static long futex(int operation, uint32_t value)
{
	return syscall(SYS_futex, (uint32_t *)&hop.word, operation | FUTEX_PRIVATE_FLAG, value, NULL, NULL,
		       0);
}

static void *sleeper(void *arg)
{
	(void)arg;
	for (uint32_t round = 0; round < hop.rounds; round++) {
		while (atomic_load(&hop.word) == round)
			futex(FUTEX_WAIT, round);
		atomic_store_explicit(&hop.woken_at, ready_now(), memory_order_release);
	}
	return NULL;
}

/* Only a wake that found the thread asleep counts. */
static void wake(uint32_t round, int64_t pause)
{
	int64_t at, woken_at;
	long woken;

	ready_spin_until(ready_now() + pause);
	atomic_store(&hop.woken_at, 0);
	at = ready_now();
	atomic_store(&hop.word, round + 1);
	woken = futex(FUTEX_WAKE, 1);
	while (!(woken_at = atomic_load_explicit(&hop.woken_at, memory_order_acquire)))
		ready_relax();
	if (woken == 1 && round >= DROPPED)
		ready_sample(woken_at - at);
}

static double hops(const char *name, int64_t pause, uint32_t rounds)
{
	struct ready_stats stats;
	pthread_t thread;

	watchdog_point(20, "%s", name);
	atomic_store(&hop.word, 0);
	hop.rounds = rounds;
	ready_samples_begin();
	if (pthread_create(&thread, NULL, sleeper, NULL))
		ready_fail("a thread", 0);
	for (uint32_t round = 0; round < rounds; round++)
		wake(round, pause);
	pthread_join(thread, NULL);
	stats = ready_samples_end();
	printf("%-44s %8s", name, "");
	ready_print_stats(&stats);
	printf("\n");
	return stats.p50;
}

/* --- from a time to a thread --- */

/* How late a thread without slack, as weir's, wakes that sleeps until a time. Returns the p99 in us. */
static double timers(const char *name, int64_t asleep, uint32_t rounds)
{
	struct ready_stats stats;

	watchdog_point(20, "%s", name);
	prctl(PR_SET_TIMERSLACK, 1UL);
	ready_samples_begin();
	for (uint32_t round = 0; round < rounds; round++) {
		int64_t at = ready_now() + asleep;

		if (sleep_until(at) && round >= DROPPED)
			ready_sample(ready_now() - at);
	}
	stats = ready_samples_end();
	prctl(PR_SET_TIMERSLACK, 0UL);
	printf("%-44s %8s", name, "");
	ready_print_stats(&stats);
	printf("\n");
	return stats.p99;
}

void ready_part_floors(void)
{
	if (ready_settings.gpu)
		kernel_floors();
	else
		printf("\na. without weir (what ends kernels needs a GPU)\n%-53s%s\n", "",
		       READY_STATS_HEADER);
	ready_floors.hop_warm = hops("futex: wake -> woken, 30 us asleep", 30 * US, HOPS);
	ready_floors.hop_idle = hops("futex: wake -> woken, 1 ms asleep", MS, HOPS / 2);
	ready_floors.late = timers("timer: time -> woken, 1 ms asleep", MS, TIMERS);
}
