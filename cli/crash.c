/*
 * Prints one line, which names the entity in compute, before a fatal POSIX signal ends the process. The
 * interrupted code may hold any lock, so the handler calls only write and functions that read
 * (weir_running_entity, names in tables) or fill a buffer. It runs on an alternate stack, so that a stack
 * overflow is reported too: weir's threads have one each, the main thread gets its own here.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/words.h"
#include "cli/cli.h"

static const struct {
	int number;
	const char *name;
} fatal[] = {{SIGSEGV, "SIGSEGV"},
	     {SIGABRT, "SIGABRT"},
	     {SIGBUS, "SIGBUS"},
	     {SIGFPE, "SIGFPE"},
	     {SIGILL, "SIGILL"}};
enum { FATAL = sizeof fatal / sizeof fatal[0], LINE = 512 };

static weir_graph *graph; /* of the current run, or NULL */

static const char *signal_name(int number)
{
	for (int i = 0; i < FATAL; i++)
		if (fatal[i].number == number)
			return fatal[i].name;
	return "a fatal signal";
}

static void put_entity(struct wr_words *line)
{
	const char *name = weir_running_entity();
	weir_entity *entity = name && graph ? weir_graph_entity(graph, name) : NULL;

	if (!name) {
		wr_words_put(line, " outside of compute");
		return;
	}
	wr_words_put(line, " in compute of '");
	wr_words_put(line, name);
	wr_words_put(line, "'");
	if (!entity)
		return;
	wr_words_put(line, " (operator ");
	wr_words_put(line, weir_entity_operator(entity)->name);
	wr_words_put(line, ")");
}

/* Adds a newline, for which the buffer has room. */
static void write_line(struct wr_words *line)
{
	line->text[line->length++] = '\n';
	(void)!write(STDERR_FILENO, line->text, line->length);
}

/* What lies at the address, if it is device memory that is closed to the host. */
static void put_device_memory(struct wr_words *line, const void *address)
{
	weir_device_memory found = {.size = sizeof found};

	if (!weir_running_device_memory(address, &found))
		return;
	wr_words_put(line, ": it touches device memory on the host");
	if (found.port) {
		wr_words_put(line, ", the message in '");
		wr_words_put(line, found.port);
		wr_words_put(line, "' from ");
		wr_words_put(line, found.sender);
	}
	if (found.pool) {
		wr_words_put(line, ", pool '");
		wr_words_put(line, found.pool);
		wr_words_put(line, "'");
	}
	wr_words_put(line, found.port ? "; add a 'download' before it, or read it in a kernel"
				      : "; make it on the host, or write it in a kernel");
}

static void on_fatal(int number, siginfo_t *info, void *context)
{
	char text[LINE];
	struct wr_words line = wr_words_in(text, sizeof text - 1); /* room for the newline */

	(void)context;

	wr_words_put(&line, "weir run: ");
	wr_words_put(&line, signal_name(number));
	put_entity(&line);
	if (number == SIGSEGV)
		put_device_memory(&line, info->si_addr);
	write_line(&line);
	raise(number); /* SA_RESETHAND: takes the default action when this handler returns */
}

/*
 * The process exits during a run: compute called exit, or ended its own thread on `sim`, where that is the
 * main thread. Without this line it would look like a run that finished.
 */
static void on_exit_in_run(void)
{
	char text[LINE];
	struct wr_words line = wr_words_in(text, sizeof text - 1);

	if (!graph)
		return;
	wr_words_put(&line, "weir run: the process was ended");
	put_entity(&line);
	wr_words_put(&line, " by exit, pthread_exit or pthread_cancel; compute must return instead");
	fflush(stdout);
	write_line(&line);
	_exit(CLI_FAILED);
}

void cli_crash_tell(weir_graph *of)
{
	static _Alignas(16) char stack[65536];
	stack_t own = {.ss_sp = stack, .ss_size = sizeof stack};
	struct sigaction action = {.sa_sigaction = on_fatal,
				   .sa_flags = SA_ONSTACK | SA_RESETHAND | SA_SIGINFO};

	graph = of;
	if (!of)
		return;
	(void)!atexit(on_exit_in_run); /* once: a process has one run */
	sigaltstack(&own, NULL);
	sigemptyset(&action.sa_mask);
	for (int i = 0; i < FATAL; i++) {
		struct sigaction before;

		/* Keep a sanitizer's handler: it reports more. */
		if (!sigaction(fatal[i].number, NULL, &before) && before.sa_handler == SIG_DFL)
			sigaction(fatal[i].number, &action, NULL);
	}
}
