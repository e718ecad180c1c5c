#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/words.h"
#include "cli/cli.h"

const struct cli_python *cli_python;
static const char *subcommand = "";
static bool python_lost; /* what Python code printed could not be written */

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

void cli_flush_python(void)
{
	if (cli_python && !cli_python->flush())
		python_lost = true;
}

void cli_say(const char *format, ...)
{
	char *line = NULL;
	va_list list;

	cli_flush_python();
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

int cli_flush(int code)
{
	struct pollfd out = {.fd = STDOUT_FILENO, .events = POLLOUT};
	bool lost = ferror(stdout);

	cli_flush_python();
	if (python_lost && !code)
		code = CLI_FAILED;
	errno = 0; /* do not report the error of an earlier write */
	lost |= fflush(stdout) != 0;
	if (!lost)
		return code;
	if (poll(&out, 1, 0) > 0 && out.revents & (POLLERR | POLLHUP))
		return code; /* a reader that closed its end of stdout is no failure */
	if (code == CLI_FAILED && !errno)
		return code; /* an operator's write failed, which ended the run and was reported */
	cli_say("cannot write to stdout%s%s", errno ? ": " : "", errno ? strerror(errno) : "");
	return code ? code : CLI_FAILED;
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
	case WEIR_E_STATE:
	case WEIR_E_UNSUPPORTED:
	case WEIR_E_IO:
	case WEIR_E_FAILED:
		break;
	}
	return CLI_FAILED;
}
