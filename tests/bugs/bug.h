/*
 * Seeded bugs: run-time switches of the seam build, and of all builds of the preset `mutants`, by which CI
 * proves that the tests find them. bugs.txt and mutants.txt name them, and say what each one does to the
 * source.
 */
#ifndef TESTS_BUGS_BUG_H
#define TESTS_BUGS_BUG_H

#include <stdbool.h>
#include <stddef.h>

#include "bug_names.h" /* by seed.py */

#define WR_BUG_NUMBER(number, name) WR_BUG_##number,
enum wr_bug { WR_BUG_NONE, WR_BUGS(WR_BUG_NUMBER) };
#undef WR_BUG_NUMBER

extern enum wr_bug wr_bug_active; /* a test chooses it */
extern enum wr_bug wr_bug_chosen; /* WEIR_MUTANT of the environment names it */
#define WR_BUG(name) (wr_bug_active == WR_BUG_##name || wr_bug_chosen == WR_BUG_##name)

/* The bug of this name; ends the process if there is none. */
enum wr_bug wr_bug_named(const char *name);

/* A safety net would hide what a protocol loses, so some worlds run without nets. */
extern bool wr_nets;
/* Half of what is not worth a wake-up or a steal is done in a simulated world. */
extern bool wr_worth_drawn;
/* A port of up to this many connections has no set (WR_FAN_IN_FEW); random, so that small graphs have sets,
 * too. */
extern size_t wr_fan_in_few;

#endif
