/*
 * SIGINT and SIGTERM are blocked in all threads, from the first line of main on. While `run` reads the graph they end
 * it at once; from then on, until a run is on, they stay pending, and `run` looks for them itself. While it is on, the main thread, which only waits, lets them
 * through to a handler: the first one drains the run and says so, the second one exits at once. Commands that
 * run nothing let them through as they are.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/cli.h"

/* What the handler knows of the run. */
static struct {
	weir_scheduler *scheduler;
	const char *line;
	volatile sig_atomic_t first;
	struct sigaction before[2];
} draining;

static const int numbers[2] = {SIGINT, SIGTERM};

static sigset_t stopping(void)
{
	sigset_t set;

	sigemptyset(&set);
	for (int i = 0; i < 2; i++)
		sigaddset(&set, numbers[i]);
	return set;
}

static void let_through(bool on)
{
	sigset_t set = stopping();

	sigprocmask(on ? SIG_UNBLOCK : SIG_BLOCK, &set, NULL);
}

void cli_signals_block(void)
{
	let_through(false);
}

void cli_signals_unblock(void)
{
	if (draining.scheduler)
		for (int i = 0; i < 2; i++)
			sigaction(numbers[i], &draining.before[i], NULL);
	let_through(true);
}

/* Nothing is there yet that would have to end: a reader that waits for a pipe must not hold it up. */
static void on_early_signal(int number)
{
	static const char line[] = "weir run: stopped before the run began\n";

	(void)!write(STDERR_FILENO, line, sizeof line - 1);
	_exit(128 + number);
}

void cli_signals_reading(bool on)
{
	static struct sigaction before[2];
	struct sigaction action = {.sa_handler = on_early_signal};

	if (!on)
		let_through(false);
	for (int i = 0; i < 2; i++)
		if (on)
			sigaction(numbers[i], &action, &before[i]);
		else
			sigaction(numbers[i], &before[i], NULL);
	if (on)
		let_through(true);
}

int cli_signals_take(void)
{
	sigset_t set = stopping();
	int number = sigtimedwait(&set, NULL, &(struct timespec){0});

	return number > 0 ? number : 0;
}

/* Not where it would have to wait for who reads stderr: the end of the run must not hang on that. */
static void say_line(void)
{
	struct pollfd err = {.fd = STDERR_FILENO, .events = POLLOUT};

	if (poll(&err, 1, 0) > 0 && err.revents & POLLOUT)
		(void)!write(STDERR_FILENO, draining.line, strlen(draining.line));
}

static void on_signal(int number)
{
	int kept = errno;

	if (draining.first)
		_exit(128 + number);
	draining.first = number;
	weir_scheduler_stop(draining.scheduler, true);
	say_line();
	errno = kept;
}

void cli_signals_drain(weir_scheduler *scheduler, const char *line)
{
	struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART | SA_NODEFER};

	draining.scheduler = scheduler;
	draining.line = line;
	sigemptyset(&action.sa_mask);
	for (int i = 0; i < 2; i++)
		sigaction(numbers[i], &action, &draining.before[i]);
	let_through(true);
}

int cli_signals_drained(void)
{
	let_through(false);
	if (draining.first)
		let_through(true);	/* the second one still exits at once, whatever the end takes */
	return draining.first;
}
