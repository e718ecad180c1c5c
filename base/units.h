/*
 * Values with a grammar of their own, in graph files and on the command line: durations and sizes with units
 * ("10ms", "60Hz", "16MiB"), and which ticks are measured ("sample:64").
 */
#ifndef WR_BASE_UNITS_H
#define WR_BASE_UNITS_H

#include "base/words.h"

/*
 * Gives nanoseconds or bytes. Returns NULL, or a literal that says what is wrong with the text. A period may
 * also be given as a frequency.
 */
const char *wr_duration_read(const char *text, int64_t *out);
const char *wr_period_read(const char *text, int64_t *out);
const char *wr_size_read(const char *text, int64_t *out);

/* Formats of the error; arguments: the text, what is wrong with it. */
#define WR_DURATION_WRONG "'%s' %s: write a number and its unit, like \"10ms\", \"1.5s\", \"5min\""
#define WR_PERIOD_WRONG   "'%s' %s: write a number and its unit, like \"10ms\", \"1.5s\", \"60Hz\""
#define WR_SIZE_WRONG     "'%s' %s: write bytes as an integer, or a text like \"16MiB\", \"4k\""

#define WR_SAMPLING_MAX 1000000
/* *out: one tick of so many, up to WR_SAMPLING_MAX: 0 for "off", 1 for "all", 64 for "sample:64". */
const char *wr_sampling_read(const char *text, int *out);
struct wr_shown wr_sampling_shown(int every);
#define WR_SAMPLING_WRONG "'%s' %s: use \"off\", \"all\", or \"sample:64\" for one tick of 64"

/* Exact, in the largest unit that leaves no fraction ("250us", "64MiB"). */
struct wr_shown wr_duration_shown(int64_t ns);
struct wr_shown wr_size_shown(int64_t bytes);
/* A measured time: three digits and a unit ("1.23 s", "12.3 ms", "4.5 us"). */
struct wr_shown wr_time_shown(int64_t ns);

#endif
