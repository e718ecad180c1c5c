/* Finds the name that a misspelled word probably means. */
#include <string.h>

#include "cli/cli.h"

enum { LONGEST = 64 }; /* length of a name that is compared */

static unsigned least(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

static char lower(char c)
{
	return (char)(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
}

/* Levenshtein distance, ignoring case, one row at a time. */
static unsigned distance(const char *a, const char *b)
{
	unsigned row[LONGEST + 1];
	size_t length = strlen(b);

	for (unsigned j = 0; j <= length; j++)
		row[j] = j;
	for (; *a; a++) {
		unsigned diagonal = row[0]++;

		for (size_t j = 1; j <= length; j++) {
			unsigned changed = diagonal + (lower(*a) != lower(b[j - 1]));

			diagonal = row[j];
			row[j] = least(changed, least(row[j], row[j - 1]) + 1);
		}
	}
	return row[length];
}

const char *cli_nearest(const char *word, const char *(*next)(size_t i, const void *arg), const void *arg)
{
	const char *nearest = NULL, *name;
	unsigned best = (unsigned)strlen(word) / 3 + 1;

	if (strlen(word) > LONGEST)
		return NULL;
	for (size_t i = 0; (name = next(i, arg)); i++) {
		unsigned d = strlen(name) > LONGEST ? best : distance(word, name);

		if (d < best || (d == best && !nearest)) {
			best = d;
			nearest = name;
		}
	}
	return nearest;
}
