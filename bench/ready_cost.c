/* Parts c and d: what a signal costs the stream that it watches, and what waiting for it costs the CPU. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ready.h"

#define SHORT_NS (5 * US)
#define LONG_NS  (100 * MS)

/* --- c: kernels of 5 us back to back --- */

static int64_t kernels(void)
{
	return (int64_t)(ready_settings.seconds * (ready_settings.gpu ? 80000 : 8000)) + 100;
}

static double per_kernel(int64_t begin, int64_t end)
{
	return (double)(end - begin) / 1e3 / (double)kernels();
}

static void print_cost(const char *name, const char *workers, double us, double plain)
{
	printf("%-34s%-9s%12.2f%12.2f\n", name, workers, us, us / plain);
}

/* The best of three; the first one warms up. */
static double plain_kernels(void)
{
	struct ready_work work = {.ns = SHORT_NS};
	double best = NAN;
	void *stream;
	int error = ready_gpu_stream(&stream);

	watchdog_point(30, "kernels only");
	for (int round = 0; round < 3 && !error; round++) {
		int64_t begin = ready_now();

		for (int64_t i = 0; i < kernels() && !error; i++)
			error = ready_gpu_launch(stream, &work);
		if (!error)
			error = ready_gpu_wait(stream);
		double us = per_kernel(begin, ready_now());
		best = !round || us < best ? us : best;
	}
	if (error)
		ready_fail("a kernel", error);
	return best;
}

/*
 * From the first launch to the gated compute behind the last kernel. signal NULL: ungated, to the end of
 * the run, which waits for the last kernel.
 */
static double through_weir(const char *signal, int64_t worker_spin_ns)
{
	const struct ready_run run = {.signal = signal, .worker_spin_ns = worker_spin_ns, .workers = 2};
	struct ready_rig rig;
	double us = NAN;
	char json[64];

	watchdog_point(60 + (double)kernels() * 1e-4, "%s%s", signal ? signal : "not gated",
		       worker_spin_ns ? ", spinning" : "");
	ready_rig_begin(&rig);
	ready_rig_add(&rig, "p0", "ready_source", -1, SHORT_NS);
	snprintf(json, sizeof json, "{\"type\": \"count\", \"count\": %" PRId64 "}", kernels());
	ready_rig_of_last(&rig, "conditions/-", json);
	ready_rig_add(&rig, "g0", "ready_gated", -1, 0);
	ready_rig_of_last(&rig, "ports/in/capacity", "8");
	if (signal)
		ready_rig_gate(&rig);
	else
		ready_rig_never_gate(&rig);
	ready_rig_connect(&rig, "p0.out", "g0.in", 0);
	if (ready_rig_open(&rig, &run) && ready_rig_start(&rig) && ready_rig_stop(&rig, false))
		us = per_kernel(ready_rig_first_launch(), signal ? ready_rig_last_gated() : ready_now());
	ready_rig_close(&rig);
	return us;
}

static void producer_by(const char *signal, double plain)
{
	double sleeping = through_weir(signal, 0), spinning = through_weir(signal, SPIN_NS);
	char figure[72];

	print_cost(signal, "sleeping", sleeping, plain);
	print_cost(signal, "spinning", spinning, plain);
	if (!strcmp(signal, "callback_inline"))
		return;
	snprintf(figure, sizeof figure, "producer gated by %s, sleeping / kernels only", signal);
	ready_aim_most(figure, sleeping / plain, 1.5, "times");
	snprintf(figure, sizeof figure, "producer gated by %s, spinning / kernels only", signal);
	ready_aim_most(figure, spinning / plain, 1.5, "times");
}

void ready_part_producer(void)
{
	double plain = ready_settings.gpu ? plain_kernels() : NAN;
	const char *signal;

	printf("\nc. %" PRId64 " kernels of 5 us back to back, capacity 8, 2 workers\n", kernels());
	printf("%-34s%-9s%12s%12s\n", "", "workers", "us a kernel", "x plain");
	print_cost("kernels only, no weir", "", plain, plain);
	print_cost("through weir, not gated", "sleeping", through_weir(NULL, 0), plain);
	for (size_t i = 0; (signal = ready_signal(i)); i++)
		producer_by(signal, plain);
}

/* --- d: waiting --- */

/* The share of a core that the process uses while it waits for kernels of 100 ms, one after the other. */
static double cores_waiting(const char *signal, int64_t worker_spin_ns)
{
	const struct ready_run run = {.signal = signal, .worker_spin_ns = worker_spin_ns, .workers = 2};
	double cores = NAN;
	struct ready_rig rig;
	int64_t begin, cpu;

	watchdog_point(30 + ready_settings.seconds, "%s%s", signal, worker_spin_ns ? ", spinning" : "");
	ready_rig_begin(&rig);
	ready_rig_add(&rig, "p0", "ready_source", -1, LONG_NS);
	ready_rig_add(&rig, "g0", "ready_gated", -1, 0);
	ready_rig_gate(&rig);
	ready_rig_connect(&rig, "p0.out", "g0.in", 0);
	if (ready_rig_open(&rig, &run) && ready_rig_start(&rig)) {
		ready_rig_run_for(&rig, 250 * MS);
		begin = ready_now();
		cpu = ready_cpu();
		ready_rig_run_for(&rig, 2 * ready_point_ns());
		cores = (double)(ready_cpu() - cpu) / (double)(ready_now() - begin);
		if (!ready_rig_stop(&rig, true))
			cores = NAN;
	}
	ready_rig_close(&rig);
	return cores;
}

void ready_part_waiting(void)
{
	const char *signal;

	printf("\nd. CPU while kernels of 100 ms are waited for, "
	       "2 workers (spinning: for 50 ms at a time)\n");
	printf("%-34s%-9s%12s\n", "signal", "workers", "% of core");
	for (size_t i = 0; (signal = ready_signal(i)); i++) {
		double sleeping = 100 * cores_waiting(signal, 0);
		double spinning = 100 * cores_waiting(signal, SPIN_NS);

		printf("%-34s%-9s%12.2f\n%-34s%-9s%12.2f\n", signal, "sleeping", sleeping, signal, "spinning",
		       spinning);
		if (!strcmp(signal, "callback"))
			ready_aim_most("CPU while waiting, callback, sleeping", sleeping, 1, "% of core");
	}
}
