#include <stdarg.h>
#include <stdlib.h>

#include "base/words.h"
#include "cli/cli.h"

static const char *subcommand = "";

void cli_say_for(const char *command)
{
	subcommand = command;
}

const char *cli_said_for(void)
{
	return subcommand;
}

void cli_print_escaped(FILE *to, const char *text)
{
	char shown[256];

	while (*text) {
		wr_shown_part(shown, sizeof shown, &text);
		fputs(shown, to);
	}
}

void cli_say(const char *format, ...)
{
	char *line = NULL;
	va_list list;

	fflush(stdout); /* keeps the order of the two streams */
	va_start(list, format);
	if (vasprintf(&line, format, list) < 0)
		line = NULL;
	va_end(list);
	fprintf(stderr, "weir%s%s: ", *subcommand ? " " : "", subcommand);
	cli_print_escaped(stderr, line ? line : "out of memory");
	fputc('\n', stderr);
	free(line);
}

void cli_say_error(weir_status status, const char *path)
{
	if (status == WEIR_E_NOMEM && path)
		cli_say("%s: %s", path, weir_last_error());
	else
		cli_say("%s", weir_last_error());
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
