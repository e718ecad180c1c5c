#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"

static const char *speaker = "";

void cli_say_for(const char *command)
{
	speaker = command;
}

void cli_say(const char *format, ...)
{
	char *line = NULL;
	va_list list;

	fflush(stdout);	/* in the order in which it was said */
	va_start(list, format);
	if (vasprintf(&line, format, list) < 0)
		line = NULL;
	va_end(list);
	for (char *at = line; at && *at; at++)	/* what a stranger wrote stays in one line */
		if ((unsigned char)*at < ' ' || *at == 127)
			*at = '?';
	fprintf(stderr, "weir%s%s: %s\n", *speaker ? " " : "", speaker, line ? line : "out of memory");
	free(line);
}

int cli_code_of(weir_status status)
{
	switch (status) {
	case WEIR_OK:
		return CLI_OK;
	case WEIR_E_DEADLOCK:
		return CLI_DEADLOCK;
	case WEIR_E_ABANDONED:
		return CLI_ABANDONED;
	case WEIR_E_INVALID:
	case WEIR_E_NOMEM:
	case WEIR_E_DEVICE:
	case WEIR_E_CLOSED:
	case WEIR_E_TIMEOUT:
	case WEIR_E_BUSY:
	case WEIR_E_UNSUPPORTED:
	case WEIR_E_IO:
	case WEIR_E_FAILED:
		break;
	}
	return CLI_FAILED;
}

const char *cli_duration(char text[24], int64_t ns)
{
	static const struct {
		double ns;
		const char *name;
	} units[] = {{1e9, "s"}, {1e6, "ms"}, {1e3, "us"}};
	size_t unit = 0;

	while (unit < 2 && (double)ns < units[unit].ns)
		unit++;
	snprintf(text, 24, "%.3g %s", (double)ns / units[unit].ns, units[unit].name);
	if ((double)ns >= 1e12)
		snprintf(text, 24, "%.0f s", (double)ns / 1e9);
	return text;
}

enum { LONGEST = 64 };	/* of a name that is worth a guess */

static unsigned least(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

/* Levenshtein's distance, one row at a time. */
static unsigned distance(const char *a, const char *b)
{
	unsigned row[LONGEST + 1];
	size_t length = strlen(b);

	for (unsigned j = 0; j <= length; j++)
		row[j] = j;
	for (; *a; a++) {
		unsigned diagonal = row[0]++;

		for (size_t j = 1; j <= length; j++) {
			unsigned changed = diagonal + (*a != b[j - 1]);

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
