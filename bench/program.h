/* What the small benchmark programs share. */
#ifndef BENCH_PROGRAM_H
#define BENCH_PROGRAM_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <weir.h>

/* In ns, on CLOCK_MONOTONIC. */
static inline int64_t now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1000000000 + time.tv_nsec;
}

/* Ends the program with status 1 and a line if the call failed. */
static inline void must(weir_status status, const char *what)
{
	if (!status)
		return;
	fprintf(stderr, "%s: %s: %s\n", what, weir_status_text(status), weir_last_error());
	exit(1);
}

#endif
