/*
 * What frames_read and frames_write do at the edges of the system's calls: calls that a signal interrupts,
 * pending signals, pipes that are smaller than a frame, readers that are gone; and frames that differ. The
 * rest: tests/cli/frames.py.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "operators/frames.h"

/* --- system calls that fail as the test says --- */

static int refused; /* errno of each call below; 0: they are the real ones */

ssize_t __real_read(int fd, void *to, size_t bytes);
ssize_t __wrap_read(int fd, void *to, size_t bytes);
ssize_t __wrap_read(int fd, void *to, size_t bytes)
{
	errno = refused;
	return refused ? -1 : __real_read(fd, to, bytes);
}

ssize_t __real_send(int fd, const void *from, size_t bytes, int flags);
ssize_t __wrap_send(int fd, const void *from, size_t bytes, int flags);
ssize_t __wrap_send(int fd, const void *from, size_t bytes, int flags)
{
	errno = refused;
	return refused ? -1 : __real_send(fd, from, bytes, flags);
}

static void a_call_that_a_signal_interrupts_is_made_again_later(void **state)
{
	struct wr_channel channel = {.file = true}; /* it is not asked whether it is ready */
	char byte;

	(void)state;
	refused = EINTR;
	assert_int_equal(wr_channel_read(&channel, &byte, 1), -1);
	assert_int_equal(errno, EAGAIN);
	refused = EIO;
	assert_int_equal(wr_channel_read(&channel, &byte, 1), -1);
	assert_int_equal(errno, EIO);
	refused = 0;
}

/* --- pipes --- */

static bool is_pending(void)
{
	sigset_t pending;

	sigpending(&pending);
	return sigismember(&pending, SIGPIPE);
}

static void write_without_reader(void)
{
	struct wr_channel channel = {.fd = -1};
	int ends[2];

	assert_int_equal(pipe2(ends, O_NONBLOCK | O_CLOEXEC), 0);
	close(ends[0]);
	channel.fd = ends[1];
	assert_int_equal(wr_channel_write(&channel, "x", 1), -1);
	assert_int_equal(errno, EPIPE);
	close(ends[1]);
}

static void a_signal_that_was_pending_before_a_write_is_pending_after_it(void **state)
{
	sigset_t pipe_only, before;
	int number;

	(void)state;
	sigemptyset(&pipe_only);
	sigaddset(&pipe_only, SIGPIPE);
	pthread_sigmask(SIG_BLOCK, &pipe_only, &before);
	write_without_reader();
	assert_false(is_pending());
	raise(SIGPIPE);
	write_without_reader();
	assert_true(is_pending());
	sigwait(&pipe_only, &number);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void a_pipe_is_widened_for_frames_that_do_not_fit(void **state)
{
	struct wr_channel channel = {.fd = -1};
	int ends[2], bytes;

	(void)state;
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	channel.fd = ends[1];
	bytes = fcntl(ends[1], F_SETPIPE_SZ, 4096);
	assert_true(bytes > 0);
	wr_channel_widen(&channel, (size_t)bytes);
	assert_int_equal(fcntl(ends[1], F_GETPIPE_SZ), bytes);
	wr_channel_widen(&channel, (size_t)bytes + 1);
	assert_true(fcntl(ends[1], F_GETPIPE_SZ) > bytes);
	close(ends[0]);
	close(ends[1]);
}

/* --- runs: a source whose frames have these rows, into a socket --- */

static int64_t rows[2];

static weir_status emit_frame(weir_context *context, void *state)
{
	const int64_t shape[] = {rows[weir_context_tick(context)], 2};
	const weir_tensor like = {sizeof like, NULL, 0, 2, shape, NULL, 1, 8, 1};
	weir_message *message = NULL;
	weir_status status = weir_context_create_tensor(context, &like, WEIR_TENSOR_HOST, &message);

	(void)state;
	if (status)
		return status;
	memset(weir_message_data(message), 1, weir_message_size(message));
	if (weir_context_tick(context) == 1)
		weir_context_finish(context);
	return weir_context_emit(context, 0, message);
}

static const weir_port outputs[] = {{.size = sizeof(weir_port), .name = "out"}, {.name = NULL}};
static const weir_operator source = {
	.size = sizeof(weir_operator), .name = "frames", .outputs = outputs, .compute = emit_frame};

static weir_graph *graph_writing_to(const weir_registry *registry, int descriptor)
{
	weir_description *description = NULL;
	weir_graph *graph = NULL;
	char text[400];
	int length = snprintf(
		text, sizeof text,
		"{\"weir\": 1, \"entities\": [{\"name\": \"s\", \"operator\": \"frames\"}, "
		"{\"name\": \"w\", \"operator\": \"frames_write\", \"parameters\": {\"descriptor\": %d}}], "
		"\"connections\": [[\"s.out\", \"w.in\"]]}",
		descriptor);

	assert_int_equal(weir_description_parse(text, (size_t)length, NULL, NULL, &description), WEIR_OK);
	assert_int_equal(weir_graph_create(registry, description, &graph), WEIR_OK);
	weir_description_destroy(description);
	return graph;
}

static weir_outcome written_to(int descriptor)
{
	static char text[400]; /* of the outcome */
	const weir_scheduler_options options = {.size = sizeof options, .backend = "host"};
	weir_outcome outcome = {.size = sizeof outcome};
	weir_scheduler *scheduler = NULL;
	weir_registry *registry = NULL;
	weir_graph *graph;

	assert_int_equal(weir_registry_create(&registry), WEIR_OK);
	assert_int_equal(weir_registry_add_operator(registry, &source), WEIR_OK);
	graph = graph_writing_to(registry, descriptor);
	assert_int_equal(weir_scheduler_create(graph, &options, &scheduler), WEIR_OK);
	assert_int_equal(weir_scheduler_start(scheduler), WEIR_OK);
	(void)weir_scheduler_wait(scheduler, -1, &outcome);
	snprintf(text, sizeof text, "%s", outcome.text ? outcome.text : "");
	outcome.text = text;
	assert_int_equal(weir_scheduler_destroy(scheduler), WEIR_OK);
	assert_int_equal(weir_graph_destroy(graph), WEIR_OK);
	weir_registry_destroy(registry);
	return outcome;
}

static weir_outcome written(int64_t first, int64_t second, int error)
{
	weir_outcome outcome;
	int ends[2];

	rows[0] = first;
	rows[1] = second;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	refused = error;
	outcome = written_to(ends[0]);
	refused = 0;
	close(ends[0]);
	close(ends[1]);
	return outcome;
}

static void a_frame_that_differs_from_the_first_fails_the_run(void **state)
{
	weir_outcome outcome = written(3, 4, 0);

	(void)state;
	assert_int_equal(outcome.status, WEIR_E_FAILED);
	assert_non_null(strstr(outcome.text, "all must be alike"));
	assert_int_equal(written(3, 3, 0).status, WEIR_OK);
}

static void a_reader_that_resets_its_connection_has_left(void **state)
{
	(void)state;
	assert_int_equal(written(3, 3, ECONNRESET).status, WEIR_OK);
	assert_int_equal(written(3, 3, EIO).status, WEIR_E_IO);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_call_that_a_signal_interrupts_is_made_again_later),
		cmocka_unit_test(a_signal_that_was_pending_before_a_write_is_pending_after_it),
		cmocka_unit_test(a_pipe_is_widened_for_frames_that_do_not_fit),
		cmocka_unit_test(a_frame_that_differs_from_the_first_fails_the_run),
		cmocka_unit_test(a_reader_that_resets_its_connection_has_left),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
