#include "tests/bugs/bug.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum wr_bug wr_bug_active = WR_BUG_NONE;
enum wr_bug wr_bug_chosen = WR_BUG_NONE;
bool wr_nets = true;
bool wr_worth_drawn = true;
size_t wr_fan_in_few = 8;

#define NAME(number, name) name,
static const char *const names[] = {WR_BUGS(NAME)};
#undef NAME

enum wr_bug wr_bug_named(const char *name)
{
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (!strcmp(names[i], name))
			return (enum wr_bug)(i + 1);
	fprintf(stderr, "no seeded bug '%s'\n", name);
	exit(2);
}

__attribute__((constructor)) static void choose(void)
{
	const char *name = getenv("WEIR_MUTANT");

	if (name)
		wr_bug_chosen = wr_bug_named(name);
}
