/* A compute of a known length: a loop of arithmetic, timed on as many threads at once as will run it. */
#include "cores.h"

#include <pthread.h>
#include <time.h>

#include "program.h"

enum { PIECES = 21, PIECE = 50000 /* iterations */, THREADS_MOST = 64 };

uint64_t cores_iterations;

void cores_work(uint64_t iterations)
{
	uint64_t x = iterations;

	for (uint64_t i = 0; i < iterations; i++)
		x = x * 6364136223846793005u + 1442695040888963407u;
	__asm__ volatile("" : : "r"(x)); /* the compiler keeps the loop */
}

int64_t cores_cpu(void)
{
	struct timespec time;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
	return time.tv_sec * 1000000000 + time.tv_nsec;
}

struct timing {
	pthread_t thread;
	pthread_barrier_t *begin;
	int64_t ns; /* of the median piece: others may take the core for some */
};

static int by_length(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

static void *time_pieces(void *arg)
{
	struct timing *timing = arg;
	int64_t pieces[PIECES];

	pthread_barrier_wait(timing->begin);
	for (int i = 0; i < PIECES; i++) {
		int64_t begun = now();

		cores_work(PIECE);
		pieces[i] = now() - begun;
	}
	qsort(pieces, PIECES, sizeof *pieces, by_length);
	timing->ns = pieces[PIECES / 2];
	return NULL;
}

double cores_work_ns(unsigned threads)
{
	struct timing timings[THREADS_MOST] = {0};
	pthread_barrier_t begin;
	double sum = 0;

	pthread_barrier_init(&begin, NULL, threads);
	for (unsigned i = 0; i < threads; i++) {
		timings[i].begin = &begin;
		must(pthread_create(&timings[i].thread, NULL, time_pieces, &timings[i]) ? WEIR_E_NOMEM
											: WEIR_OK,
		     "thread");
	}
	for (unsigned i = 0; i < threads; i++) {
		pthread_join(timings[i].thread, NULL);
		sum += (double)timings[i].ns;
	}
	pthread_barrier_destroy(&begin);
	return sum / threads / PIECE;
}
