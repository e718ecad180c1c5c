/* remote/near.c: which processes share memory with this one, and that an end that was told is seen. */
#include <arpa/inet.h>
#include <setjmp.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "remote/near.h"

/* Both ends of a connection. */
static void join(int ends[2])
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof at;
	int listener = socket(AF_INET, SOCK_STREAM, 0);

	assert_int_equal(bind(listener, (struct sockaddr *)&at, size), 0);
	assert_int_equal(listen(listener, 1), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&at, &size), 0);
	ends[1] = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(connect(ends[1], (struct sockaddr *)&at, size), 0);
	ends[0] = accept(listener, NULL, NULL);
	assert_true(ends[0] >= 0);
	close(listener);
}

static void part(const int ends[2])
{
	close(ends[0]);
	close(ends[1]);
}

/* A process that has said what it is at its end, and lives until it is killed. */
static pid_t speaker(int end, struct near *said)
{
	int pipes[2];
	pid_t child;

	assert_int_equal(pipe(pipes), 0);
	child = fork();
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (!near_say(said, end) || write(pipes[1], said, sizeof *said) != sizeof *said)
			_exit(1);
		for (;;)
			pause();
	}
	close(pipes[1]);
	assert_int_equal(read(pipes[0], said, sizeof *said), sizeof *said);
	close(pipes[0]);
	return child;
}

static void r03_who_can_be_read_at_the_other_end_is_near(void **unused)
{
	struct near said, other;
	int ends[2], others[2];
	pid_t child;

	(void)unused;
	join(ends);
	join(others);
	child = speaker(ends[1], &said);
	assert_true(near_is(&said, ends[0]));
	assert_false(near_is(&said, others[0])); /* as behind a relay */
	other = said;
	other.place++; /* another user, or machine */
	assert_false(near_is(&other, ends[0]));
	other = said;
	other.sign++; /* it is not what is in that memory */
	assert_false(near_is(&other, ends[0]));
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, NULL, 0), child);
	assert_false(near_is(&said, ends[0]));
	part(ends);
	part(others);
}

static void r03_an_end_that_was_told_is_seen(void **unused)
{
	int ends[2];

	(void)unused;
	for (int i = 0; i < 1000; i++) {
		join(ends);
		assert_true(near_is_open(ends[0]));
		while (!near_end(ends[1]))
			sched_yield();
		assert_false(near_is_open(ends[0]));
		part(ends);
	}
	assert_false(near_is_open(-1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(r03_who_can_be_read_at_the_other_end_is_near),
		cmocka_unit_test(r03_an_end_that_was_told_is_seen),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
