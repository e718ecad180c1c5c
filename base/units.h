/* Durations and sizes with units, in graph files and on the command line: "10ms", "60Hz", "16MiB". */
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

/* Exact, in the largest unit that leaves no fraction ("250us", "64MiB"). */
struct wr_shown wr_duration_shown(int64_t ns);
struct wr_shown wr_size_shown(int64_t bytes);

#endif
