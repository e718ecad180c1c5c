/*
 * The witness: a thread that polls the words into which kernels store last, and records when it saw each
 * store. That time counts as the kernel's end. The thread needs a core of its own; where that matters, its
 * CPU time is subtracted.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ready.h"

struct ready_line ready_lines[READY_LINES];
static volatile uint32_t *flags; /* pinned, one per line, adjacent: one cache line holds sixteen */
static pthread_t thread;
static unsigned watched;
static atomic_bool over;

static void make_flags(void)
{
	void *memory = NULL;
	int error = ready_settings.gpu ? ready_gpu_pinned(&memory, READY_LINES * sizeof *flags) : 0;

	if (error)
		ready_fail("pinned memory", error);
	flags = memory ? memory : calloc(READY_LINES, sizeof *flags);
	if (!flags)
		ready_fail("memory", 0);
}

uint32_t *ready_flag(unsigned line)
{
	if (!flags)
		make_flags();
	return (uint32_t *)&flags[line];
}

static void look(unsigned i, uint32_t *last)
{
	uint32_t value = flags[i];
	int64_t now;

	if (value == *last)
		return;
	now = ready_now();
	*last = value;
	if (value && value <= READY_FRAMES)
		ready_lines[i].ended_at[value - 1] = now;
}

static void *watch(void *arg)
{
	uint32_t last[READY_LINES] = {0};

	(void)arg;
	while (!atomic_load_explicit(&over, memory_order_relaxed)) {
		for (unsigned i = 0; i < watched; i++)
			look(i, &last[i]);
		ready_relax();
	}
	return NULL;
}

void ready_witness_begin(unsigned lines)
{
	for (unsigned i = 0; i < lines; i++) {
		memset(&ready_lines[i], 0, sizeof ready_lines[i]); /* also touches all pages */
		*(volatile uint32_t *)ready_flag(i) = 0;
	}
	watched = lines;
	atomic_store(&over, false);
	if (pthread_create(&thread, NULL, watch, NULL))
		ready_fail("a thread", 0);
}

int64_t ready_witness_cpu(void)
{
	struct timespec time = {0};
	clockid_t clock;

	if (!pthread_getcpuclockid(thread, &clock))
		clock_gettime(clock, &time);
	return time.tv_sec * SECOND + time.tv_nsec;
}

void ready_witness_end(void)
{
	atomic_store(&over, true);
	pthread_join(thread, NULL);
}
