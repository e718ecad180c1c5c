/* Ends a benchmark that hangs: with status 3, and a line that names the point. Thread: the main one. */
#ifndef BENCH_WATCHDOG_H
#define BENCH_WATCHDOG_H

#include "weir.h"

void watchdog_begin(const char *program); /* starts the thread; program: kept, begins the line */
/* Begins a part, which has no point yet. The process ends if it, or a point, takes longer than `seconds`. */
void watchdog_part(const char *part, double seconds);
void watchdog_point(double seconds, const char *format, ...) WEIR_PRINTF(2, 3);

#endif
