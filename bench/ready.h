/* What the parts of bench/ready share. ready.c has the command line; each part has a file. */
#ifndef BENCH_READY_H
#define BENCH_READY_H

#include <math.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ready_gpu.h"
#include "watchdog.h"
#include "weir.h"

#define US        INT64_C(1000)
#define MS        INT64_C(1000000)
#define SECOND    INT64_C(1000000000)
#define SPIN_NS   (50 * MS) /* workers that spin do so for this long: scheduler option worker_spin_ns */
#define KERNEL_NS (50 * US)

/* --- the command line and the machine: ready.c --- */
struct ready_settings {
	const char *backend; /* "cuda" or "host" */
	bool gpu;            /* cuda */
	double seconds;      /* per point */
	unsigned workers;
	int cores;
	bool crowded; /* too few cores for spinning threads: they yield */
	struct ready_gpu device;
};
extern struct ready_settings ready_settings;
int64_t ready_point_ns(void);                                           /* settings.seconds */
void ready_fail(const char *what, int error) __attribute__((noreturn)); /* our CUDA calls */
/* The i-th requested signal that the library supports, NULL after the last. */
const char *ready_signal(size_t i);

/* --- time and samples: ready_samples.c --- */
struct ready_stats {
	size_t count;         /* 0: the others are NAN */
	double p50, p90, p99; /* us */
};
extern const struct ready_stats ready_no_stats;
int64_t ready_now(void); /* ns, CLOCK_MONOTONIC */
int64_t ready_cpu(void); /* CPU time of all threads of the process, in ns */
void ready_relax(void);  /* one iteration of a spin loop */
void ready_spin_until(int64_t at);
void ready_samples_begin(void);
void ready_sample(int64_t ns);
struct ready_stats ready_samples_end(void);
/* " p50 p90 p99 count" in columns of 9, no newline */
void ready_print_stats(const struct ready_stats *stats);
#define READY_STATS_HEADER "   p50/us   p90/us   p99/us  samples"

/* --- frames, and the thread that observes the ends of kernels: ready_witness.c --- */
enum { READY_LINES = 32, READY_FRAMES = 8192 };
struct ready_line {
	/* In frames; done is incremented after compute_at is written. */
	_Alignas(64) _Atomic uint32_t launched, done;
	int64_t launched_at[READY_FRAMES]; /* 0 everywhere: not observed */
	int64_t ended_at[READY_FRAMES];    /* the witness saw the kernel's last store */
	int64_t entered_at[READY_FRAMES];  /* entry of the library's last host function before it */
	int64_t computed_at[READY_FRAMES]; /* first instruction of the gated compute */
};
extern struct ready_line ready_lines[READY_LINES];
uint32_t *ready_flag(unsigned line);      /* the kernel of frame k of a line stores k + 1 there */
void ready_witness_begin(unsigned lines); /* clears these lines, starts the thread */
int64_t ready_witness_cpu(void);          /* CPU time of the thread, in ns */
void ready_witness_end(void);

/* --- when the library's host functions are entered: ready_entry.c --- */
void ready_entry_watch(bool on); /* call it while the library is idle */
int64_t ready_entry_last(void);

/* --- a graph of the benchmark's operators: ready_rig.c --- */
struct ready_rig {
	weir_registry *registry;
	weir_description *description;
	weir_graph *graph;
	weir_scheduler *scheduler;
	weir_inlet *inlets[READY_LINES];
	size_t entities;
	weir_status status; /* the first failure; later calls do nothing */
	char why[256];
};
struct ready_run {
	const char *signal; /* NULL: the default */
	int64_t worker_spin_ns;
	unsigned workers;
	unsigned inlets; /* into "p0.in", "p1.in", ... */
};
void ready_rig_begin(struct ready_rig *rig);
/*
 * kinds: ready_source (kernel; out), ready_filter (the same with an input), ready_sync (a filter that waits
 * for its stream), ready_gated (in; stamps), ready_return (in, out: counts its line's frames). line < 0:
 * neither the entity nor its kernel stamps. kernel_ns: for the kinds that launch one.
 */
void ready_rig_add(struct ready_rig *rig, const char *name, const char *kind, int line, int64_t kernel_ns);
void ready_rig_put(struct ready_rig *rig, const char *pointer, const char *json);
/* pointer is relative to the last entity. */
void ready_rig_of_last(struct ready_rig *rig, const char *pointer, const char *json);
void ready_rig_gate(struct ready_rig *rig);       /* the last entity waits for the device work behind `in` */
void ready_rig_never_gate(struct ready_rig *rig); /* removes the default gate too */
void ready_rig_connect(struct ready_rig *rig, const char *from, const char *to, unsigned initial);
bool ready_rig_open(struct ready_rig *rig, const struct ready_run *run);
bool ready_rig_start(struct ready_rig *rig);
int64_t ready_rig_first_launch(void);                      /* of the source that started last */
int64_t ready_rig_last_gated(void);                        /* of any ready_gated */
bool ready_rig_run_for(struct ready_rig *rig, int64_t ns); /* lets it run; false: it has ended */
void ready_rig_push(struct ready_rig *rig, unsigned inlet);
/* drain: stop it; otherwise it ends by itself. Returns false if it failed. */
bool ready_rig_stop(struct ready_rig *rig, bool ask);
void ready_rig_close(struct ready_rig *rig); /* prints and counts a failure */
unsigned ready_rig_failures(void);

/* --- aims: ready_aims.c --- */
void ready_aim_most(const char *figure, double measured, double aim, const char *unit);
void ready_aim_least(const char *figure, double measured, double aim, const char *unit);
/* The aim of a p50 by a flag: 1.2 x that of the floor + 0.7 us. */
void ready_aim_floor(const char *figure, double p50, double floor);
void ready_aims_print(void);

/* --- the parts --- */
enum { READY_GAPS = 4 };
extern const int64_t ready_gaps[READY_GAPS];
extern const char *const ready_gap_names[READY_GAPS];
struct ready_floors {
	struct ready_stats call[READY_GAPS]; /* kernel end -> host function, faster way */
	struct ready_stats word[READY_GAPS]; /* kernel end -> polled word, one stream */
	double hop_warm, hop_idle;           /* us, p50 */
	double late;                         /* of a timer, us, p99 */
};
extern struct ready_floors ready_floors; /* NAN if part a did not run */
/* Kernel end -> polled word beside busy streams with kernels of busy_ns, 1 ms between frames. */
struct ready_stats ready_floor_beside(unsigned busy, int64_t busy_ns);
/* The same with a frame each `period`, between which the thread sleeps. *cores: the CPU time it takes. */
struct ready_stats ready_floor_paced(int64_t period, int64_t kernel_ns, int64_t for_ns, double *cores);
void ready_part_floors(void);   /* a: ready_floors.c */
void ready_part_latency(void);  /* b: ready_latency.c */
void ready_part_producer(void); /* c: ready_cost.c */
void ready_part_waiting(void);  /* d: ready_cost.c */
void ready_part_stages(void);   /* e: ready_stages.c */
void ready_part_beside(void);   /* f: ready_latency.c */

#endif
