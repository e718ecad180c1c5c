/* Durations and sizes in words: "10ms", "60Hz", "16MiB". */
#ifndef WR_GRAPHS_PLAN_UNITS_H
#define WR_GRAPHS_PLAN_UNITS_H

#include "graphs/plan/text.h"

/*
 * Gives nanoseconds or bytes. Returns NULL, or what is wrong with the text (a literal). A period may also be
 * said by its frequency.
 */
const char *wr_duration_read(const char *text, int64_t *out);
const char *wr_period_read(const char *text, int64_t *out);
const char *wr_size_read(const char *text, int64_t *out);

/* How a report says it: the text, what is wrong. */
#define WR_DURATION_WRONG "'%s' %s: write a number and its unit, like \"10ms\", \"1.5s\", \"5min\""
#define WR_PERIOD_WRONG	  "'%s' %s: write a number and its unit, like \"10ms\", \"1.5s\", \"60Hz\""
#define WR_SIZE_WRONG     "'%s' %s: write bytes as an integer, or a text like \"16MiB\", \"4k\""

/* For people: exact, in the largest unit that leaves no fraction ("250us", "64MiB"). */
struct wr_shown wr_duration_shown(int64_t ns);
struct wr_shown wr_size_shown(int64_t bytes);

#endif
