/*
 * One line before a fatal POSIX signal ends the process: whose compute it was. What runs in it may be anything, so it
 * calls write and what only reads: weir_running_entity, names of tables. It runs on a stack of its own, so that one
 * that has overflowed is told, too: weir's threads have one each, the main thread gets it here.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"

static const struct {
	int number;
	const char *name;
} fatal[] = {{SIGSEGV, "SIGSEGV"}, {SIGABRT, "SIGABRT"}, {SIGBUS, "SIGBUS"}, {SIGFPE, "SIGFPE"}, {SIGILL, "SIGILL"}};
enum { FATAL = sizeof fatal / sizeof fatal[0], LINE = 256 };

static weir_graph *graph;	/* whose entities run; NULL: none */

static void add(char line[LINE], const char *text)
{
	size_t at = strlen(line);

	while (*text && at + 2 < LINE)
		line[at++] = *text++;
	line[at] = '\0';
}

static const char *name_of(int number)
{
	for (int i = 0; i < FATAL; i++)
		if (fatal[i].number == number)
			return fatal[i].name;
	return "a fatal signal";
}

static void say_where(char line[LINE])
{
	const char *name = weir_running_entity();
	weir_entity *entity = name && graph ? weir_graph_entity(graph, name) : NULL;

	if (!name) {
		add(line, " outside of compute");
		return;
	}
	add(line, " in compute of '");
	add(line, name);
	add(line, "'");
	if (!entity)
		return;
	add(line, " (operator ");
	add(line, weir_entity_operator(entity)->name);
	add(line, ")");
}

static void on_fatal(int number)
{
	char line[LINE] = "weir run: ";

	add(line, name_of(number));
	say_where(line);
	line[strlen(line)] = '\n';
	(void)!write(STDERR_FILENO, line, strnlen(line, LINE));
	raise(number);	/* SA_RESETHAND: the default action, as soon as this returns */
}

/*
 * The process exits in the middle of a run: compute called exit, or, on `sim`, where it runs on the main thread, ended its
 * thread. Without a word that would look like a run that came to its end.
 */
static void on_exit_in_run(void)
{
	char line[LINE] = "weir run: the process was ended";

	if (!graph)
		return;
	say_where(line);
	add(line, ", by exit, pthread_exit or pthread_cancel: compute returns");
	line[strlen(line)] = '\n';
	fflush(stdout);
	(void)!write(STDERR_FILENO, line, strnlen(line, LINE));
	_exit(CLI_FAILED);
}

void cli_crash_tell(weir_graph *of)
{
	static _Alignas(16) char stack[65536];
	stack_t own = {.ss_sp = stack, .ss_size = sizeof stack};
	struct sigaction action = {.sa_handler = on_fatal, .sa_flags = SA_ONSTACK | SA_RESETHAND};

	graph = of;
	if (!of)
		return;
	(void)!atexit(on_exit_in_run);	/* once, for there is one run */
	sigaltstack(&own, NULL);
	sigemptyset(&action.sa_mask);
	for (int i = 0; i < FATAL; i++) {
		struct sigaction before;

		/* A sanitizer's own handler says more. */
		if (!sigaction(fatal[i].number, NULL, &before) && before.sa_handler == SIG_DFL)
			sigaction(fatal[i].number, &action, NULL);
	}
}
