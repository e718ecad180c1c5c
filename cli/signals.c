/*
 * SIGINT, SIGTERM and SIGHUP (unless it is ignored: nohup) are blocked in all threads from the first line of
 * main. While `run` reads the graph they end the process at once; after that, until the run starts, they stay
 * pending and `run` polls for them. During the run they are unblocked in the main thread, which only waits:
 * the first one drains the run and prints a line, the second one exits at once. Commands that run nothing
 * unblock them with their original handling.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/cli.h"

/* State of the handler. */
static struct {
	weir_scheduler *scheduler;
	const char *line;
	volatile sig_atomic_t first;
	struct sigaction before[3];
} draining;

static const int numbers[3] = {SIGINT, SIGTERM, SIGHUP};
static int count = 3; /* 2: SIGHUP is ignored */

static sigset_t stop_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	for (int i = 0; i < count; i++)
		sigaddset(&set, numbers[i]);
	return set;
}

static void unblock(bool on)
{
	sigset_t set = stop_signals();

	sigprocmask(on ? SIG_UNBLOCK : SIG_BLOCK, &set, NULL);
}

void cli_signals_block(void)
{
	struct sigaction hangup;

	if (!sigaction(SIGHUP, NULL, &hangup) && hangup.sa_handler == SIG_IGN)
		count = 2;
	unblock(false);
}

void cli_signals_unblock(void)
{
	if (draining.scheduler)
		for (int i = 0; i < count; i++)
			sigaction(numbers[i], &draining.before[i], NULL);
	unblock(true);
}

/* Nothing has to be shut down yet, and a read that blocks on a pipe must not delay the exit. */
static void on_early_signal(int number)
{
	static const char line[] = "weir run: stopped before the run began\n";

	(void)!write(STDERR_FILENO, line, sizeof line - 1);
	_exit(128 + number);
}

void cli_signals_reading(bool on)
{
	static struct sigaction before[3];
	struct sigaction action = {.sa_handler = on_early_signal};

	if (!on)
		unblock(false);
	for (int i = 0; i < count; i++)
		if (on)
			sigaction(numbers[i], &action, &before[i]);
		else
			sigaction(numbers[i], &before[i], NULL);
	if (on)
		unblock(true);
}

int cli_signals_take(void)
{
	sigset_t set = stop_signals();
	int number = sigtimedwait(&set, NULL, &(struct timespec){0});

	return number > 0 ? number : 0;
}

/* Skipped if it would block: the end of the run must not wait for the reader of stderr. */
static void say_line(void)
{
	struct pollfd err = {.fd = STDERR_FILENO, .events = POLLOUT};

	if (poll(&err, 1, 0) > 0 && err.revents & POLLOUT)
		(void)!write(STDERR_FILENO, draining.line, strlen(draining.line));
}

static void on_signal(int number)
{
	int kept = errno;

	if (draining.first && number == SIGHUP)
		return; /* where a terminal is closed the kernel and the shell may each send one */
	if (draining.first)
		_exit(128 + number);
	draining.first = number;
	weir_scheduler_stop(draining.scheduler, WEIR_STOP_DRAIN);
	say_line();
	errno = kept;
}

void cli_signals_drain(weir_scheduler *scheduler, const char *line)
{
	struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART | SA_NODEFER};

	draining.scheduler = scheduler;
	draining.line = line;
	sigemptyset(&action.sa_mask);
	for (int i = 0; i < count; i++)
		sigaction(numbers[i], &action, &draining.before[i]);
	unblock(true);
}

int cli_signals_drained(void)
{
	unblock(false);
	if (draining.first)
		unblock(true); /* a second one still exits at once */
	return draining.first;
}
