/* How the command writes the library's log: it never blocks, and never ends when its reader does. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../base/test.h"
#include "cli/cli.h"

enum { READ, WRITE };

/* stderr, replaced during a test by one end of a pipe, socket or terminal. */
struct rig {
	int saved, ends[2];
	char seen[4096];
};

static struct rig rig;

static void stderr_is_end(bool socket)
{
	assert_int_equal(socket ? socketpair(AF_UNIX, SOCK_STREAM, 0, rig.ends) : pipe(rig.ends), 0);
	rig.saved = dup(STDERR_FILENO);
	dup2(rig.ends[WRITE], STDERR_FILENO);
	close(rig.ends[WRITE]);
}

static void reader_goes(void)
{
	close(rig.ends[READ]);
	rig.ends[READ] = -1;
}

static const char *read_all(void)
{
	ssize_t got;

	fcntl(rig.ends[READ], F_SETFL, O_NONBLOCK);
	got = read(rig.ends[READ], rig.seen, sizeof(rig.seen) - 1);
	rig.seen[got < 0 ? 0 : got] = '\0';
	return rig.seen;
}

static void fill(void)
{
	static const char bytes[4096];

	fcntl(STDERR_FILENO, F_SETFL, O_NONBLOCK);
	while (write(STDERR_FILENO, bytes, sizeof(bytes)) > 0)
		;
	fcntl(STDERR_FILENO, F_SETFL, 0); /* blocking, as stderr usually is */
}

static void empty(void)
{
	fcntl(rig.ends[READ], F_SETFL, O_NONBLOCK);
	while (read(rig.ends[READ], rig.seen, sizeof(rig.seen)) > 0)
		;
}

static int put_stderr_back(void **state)
{
	(void)state;
	dup2(rig.saved, STDERR_FILENO);
	close(rig.saved);
	if (rig.ends[READ] >= 0)
		close(rig.ends[READ]);
	return 0;
}

static int with_weir_log(void **state)
{
	(void)state;
	setenv("WEIR_LOG", "info", 1);
	cli_log_open();
	return 0;
}

static int without_weir_log(void **state)
{
	(void)state;
	unsetenv("WEIR_LOG");
	cli_log_open();
	return 0;
}

static int wanted = WEIR_LOG_INFO;

static void tell(weir_log_level level, const char *text)
{
	cli_log_line(level, 1500000, text, &wanted);
}

static void b04_only_what_was_asked_for_is_written(void **state)
{
	(void)state;
	stderr_is_end(false);
	tell(WEIR_LOG_DEBUG, "not asked for");
	assert_string_equal(read_all(), "");
	tell(WEIR_LOG_INFO, "asked for");
	assert_string_equal(read_all(), "weir 0.001500 info: asked for\n");
}

static void warnings_are_lines_of_the_command_unless_a_log_was_asked_for(void **state)
{
	(void)state;
	cli_say_for("run");
	stderr_is_end(false);
	tell(WEIR_LOG_WARN, "read: has waited");
	tell(WEIR_LOG_ERROR, "read: failed");
	assert_string_equal(read_all(), "weir run: warning: read: has waited\nweir run: read: failed\n");
}

static void a_line_replaces_the_progress_line(void **state)
{
	(void)state;
	stderr_is_end(false);
	cli_log_over_progress(true);
	tell(WEIR_LOG_INFO, "a");
	cli_log_over_progress(false);
	tell(WEIR_LOG_INFO, "b");
	assert_string_equal(read_all(), CLI_CLEAR_LINE "weir 0.001500 info: a\nweir 0.001500 info: b\n");
}

static void a_long_line_is_cut_and_still_ends(void **state)
{
	char text[3000] = "";
	const char *seen;

	(void)state;
	stderr_is_end(false);
	memset(text, 'x', sizeof text - 1);
	tell(WEIR_LOG_ERROR, text);
	seen = read_all();
	assert_in_range(strlen(seen), 1000, 1024);
	assert_int_equal(seen[strlen(seen) - 1], '\n');
}

static void full_stderr_loses_lines_and_says_so(bool socket)
{
	stderr_is_end(socket);
	fill();
	tell(WEIR_LOG_ERROR, "lost");
	tell(WEIR_LOG_ERROR, "lost too");
	empty();
	tell(WEIR_LOG_ERROR, "after");
	assert_non_null(strstr(read_all(), "error: (2 lines lost) after\n"));
	assert_null(strstr(rig.seen, "lost too"));
}

static void f51_a_full_pipe_never_blocks_and_losses_are_told(void **state)
{
	(void)state;
	full_stderr_loses_lines_and_says_so(false);
}

static void f51_a_full_socket_never_blocks_either(void **state)
{
	(void)state;
	full_stderr_loses_lines_and_says_so(true);
}

static void closed_stderr_is_survived(bool socket)
{
	sigset_t pending;

	stderr_is_end(socket);
	reader_goes();
	errno = 12345;
	tell(WEIR_LOG_ERROR, "to nobody");
	assert_int_equal(errno, 12345);
	sigpending(&pending);
	assert_false(sigismember(&pending, SIGPIPE));
}

static void f51_a_closed_pipe_does_not_kill(void **state)
{
	(void)state;
	closed_stderr_is_survived(false);
}

static void f51_a_closed_socket_does_not_kill(void **state)
{
	(void)state;
	closed_stderr_is_survived(true);
}

static void f51_no_stderr_at_all_is_fine(void **state)
{
	(void)state;
	stderr_is_end(false);
	close(STDERR_FILENO);
	tell(WEIR_LOG_ERROR, "nowhere");
	assert_string_equal(read_all(), "");
}

#define LOGGED(test) cmocka_unit_test_setup_teardown(test, with_weir_log, put_stderr_back)

int main(void)
{
	const struct CMUnitTest tests[] = {
		LOGGED(b04_only_what_was_asked_for_is_written),
		cmocka_unit_test_setup_teardown(warnings_are_lines_of_the_command_unless_a_log_was_asked_for,
						without_weir_log, put_stderr_back),
		LOGGED(a_line_replaces_the_progress_line),
		LOGGED(a_long_line_is_cut_and_still_ends),
		LOGGED(f51_a_full_pipe_never_blocks_and_losses_are_told),
		LOGGED(f51_a_full_socket_never_blocks_either),
		LOGGED(f51_a_closed_pipe_does_not_kill),
		LOGGED(f51_a_closed_socket_does_not_kill),
		LOGGED(f51_no_stderr_at_all_is_fine),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
