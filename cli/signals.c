/*
 * SIGINT and SIGTERM are blocked in all threads; while a run is on, the scheduler takes them (handle_signals). Before it exists they
 * stay pending and `run` looks for them itself. Commands that run nothing let them through.
 */
#include <signal.h>
#include <time.h>

#include "cli/cli.h"

static sigset_t stopping(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	return set;
}

void cli_signals_block(void)
{
	sigset_t set = stopping();

	sigprocmask(SIG_BLOCK, &set, NULL);
}

void cli_signals_unblock(void)
{
	sigset_t set = stopping();

	sigprocmask(SIG_UNBLOCK, &set, NULL);
}

int cli_signals_take(void)
{
	sigset_t set = stopping();
	int number = sigtimedwait(&set, NULL, &(struct timespec){0});

	return number > 0 ? number : 0;
}
