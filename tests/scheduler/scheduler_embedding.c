/* weir inside another program: the program's loops, threads, signals and plugins (B1, B4 to B6, F45, F46). */
#include <dirent.h>
#include <event2/event.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/thread.h"
#include "rig.h"
#include "tests/calls.h"

static const char *plugin_path;

/* Calls `fn` with a line's value in /proc/self/task/ID/status of
 * each thread whose name begins so; returns how many. */
static int each_thread(const char *name, const char *line, void (*fn)(const char *value))
{
	DIR *folder = opendir("/proc/self/task");
	int count = 0;

	assert_non_null(folder);
	for (struct dirent *entry = readdir(folder); entry; entry = readdir(folder)) {
		char path[320], text[256], own[64] = "";
		snprintf(path, sizeof path, "/proc/self/task/%s/status", entry->d_name);
		FILE *file = fopen(path, "r");
		while (file && fgets(text, sizeof text, file)) {
			sscanf(text, "Name: %63s", own);
			if (!strncmp(own, name, strlen(name)) && !strncmp(text, line, strlen(line))) {
				count++;
				if (fn)
					fn(text + strlen(line));
			}
		}
		if (file)
			fclose(file);
	}
	closedir(folder);
	return count;
}

/* --- B1 --- */

static void count_beat(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	++*(int *)arg;
}

static void b01_a_base_of_the_callers_runs_it_beside_the_callers_own_events(void **state)
{
	struct rig *rig = rig_of("source period=1ms -> end");
	struct event_base *base = event_base_new();
	struct timeval beat = {0, 2000};
	int beats = 0;
	struct event *own = event_new(base, -1, EV_PERSIST, count_beat, &beats);

	(void)state;
	event_add(own, &beat);
	rig->options.backend = "host";
	rig->options.event_base = base;
	rig_start(rig);
	assert_int_equal(each_thread("weir:loop", "Name:", NULL), 0);
	while (weir_scheduler_wait(rig->scheduler, 0, NULL) == WEIR_E_TIMEOUT) {
		assert_int_equal(event_base_loop(base, EVLOOP_ONCE), 0);
		if (rig_ticks(rig, "end") >= (beats < 3 ? 20000 : 30))
			weir_scheduler_stop(rig->scheduler, WEIR_STOP_DRAIN);
	}
	assert_int_equal(rig_wait(rig), WEIR_OK);
	assert_true(rig_ticks(rig, "end") >= 30);
	assert_true(beats >= 3);
	rig_destroy(rig);
	event_free(own);
	event_base_free(base);
}

static void b01_a_descriptor_to_poll_and_a_turn_to_take(void **state)
{
	struct rig *rig = rig_of("source period=1ms count=30 work=100us -> end gate=in");
	struct pollfd fd = {.events = POLLIN};
	unsigned turns = 0;

	(void)state;
	rig->options.backend = "host";
	rig->options.own_loop = true;
	rig_start(rig);
	assert_int_equal(each_thread("weir:loop", "Name:", NULL), 0);
	fd.fd = scheduler_fd(rig->scheduler);
	do {
		assert_true(poll(&fd, 1, 5000) == 1); /* the descriptor is readable when something is due */
		assert_int_equal(weir_scheduler_turn(rig->scheduler), WEIR_OK);
		turns++;
	} while (weir_scheduler_wait(rig->scheduler, 0, NULL) == WEIR_E_TIMEOUT);
	assert_int_equal(rig_wait(rig), WEIR_OK);
	assert_int_equal(rig_ticks(rig, "end"), 30);
	assert_true(turns < 2000); /* it does not spin */
	rig_destroy(rig);
}

static void b01_without_own_loop_there_is_nothing_to_turn(void **state)
{
	struct rig *rig = rig_of("source ticks=1 -> end");

	(void)state;
	rig->options.backend = "host";
	rig_make(rig);
	assert_int_equal(scheduler_fd(rig->scheduler), -1);
	assert_int_equal(weir_scheduler_turn(rig->scheduler), WEIR_E_INVALID);
	rig_destroy(rig);
}

static void b01_the_callers_loop_serves_many_runs(void **state)
{
	struct rig *rig = rig_of("source count=5 -> end");

	(void)state;
	rig->options.backend = "host";
	rig->options.own_loop = true;
	for (int i = 0; i < 50; i++) {
		assert_int_equal(rig_run(rig), WEIR_OK);
		assert_int_equal(rig_ticks(rig, "end"), 5);
	}
	rig_destroy(rig);
}

/* --- a simulated run, and threads outside of its world --- */

struct stranger {
	struct rig *rig;
	struct wr_thread thread;
};

static void poke_from_outside(void *arg)
{
	weir_entity *idle = weir_graph_entity(((struct stranger *)arg)->rig->graph, "idle");

	for (int i = 0; i < 20000; i++)
		weir_entity_poke(idle);
	weir_entity_tell(idle, "boolean", WEIR_TOLD_READY);
}

static weir_status until_told(struct rig *rig, weir_context *context)
{
	weir_sleep(US);
	if (wr_load(&rig->told))
		weir_context_finish(context);
	return WEIR_OK;
}

static weir_status tell_all(struct rig *rig, weir_context *context)
{
	wr_store(&rig->told, 1);
	return weir_context_finish(context);
}

/* One thread drives the world; it finds what other threads have set or pushed. */
static void s01_pokes_from_other_threads_leave_a_simulated_world_whole(void **state)
{
	struct rig *rig = rig_of("c:call; idle:call enabled=false");
	struct stranger stranger = {.rig = rig};

	(void)state;
	rig_on(rig, "c", until_told);
	rig_on(rig, "idle", tell_all);
	rig_start(rig);
	assert_int_equal(wr_thread_start(&stranger.thread, "stranger", poke_from_outside, &stranger),
			 WEIR_OK);
	assert_int_equal(rig_wait(rig), WEIR_OK);
	wr_thread_join(&stranger.thread);
	assert_int_equal(rig_ticks(rig, "idle"), 1);
	rig_destroy(rig);
}

/* --- B4 --- */

static uint64_t mask_of(const char *hex)
{
	return strtoull(hex, NULL, 16);
}

static uint64_t caught;

static void note_caught(const char *value)
{
	caught = mask_of(value);
}

static void assert_blocked(const char *value)
{
	const int wanted[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGCHLD, SIGALRM, SIGUSR1, SIGUSR2, SIGWINCH};

	for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
		assert_true(mask_of(value) >> (wanted[i] - 1) & 1);
}

static void b04_threads_block_all_posix_signals_and_no_handler_is_installed(void **state)
{
	struct rig *rig = rig_of("source period=1ms -> end");
	uint64_t before;
	sigset_t own;

	(void)state;
	each_thread("", "SigCgt:", note_caught);
	before = caught;
	rig->options.backend = "host";
	rig_start(rig);
	for (int i = 0; i < 5000 && each_thread("weir", "Name:", NULL) < 3; i++)
		weir_sleep(MS); /* until the threads have set their names */
	assert_true(each_thread("weir", "SigBlk:", assert_blocked) >= 3);
	each_thread("", "SigCgt:", note_caught);
	assert_true(caught == before);
	pthread_sigmask(SIG_BLOCK, NULL, &own);
	assert_false(sigismember(&own, SIGINT));
	weir_scheduler_stop(rig->scheduler, WEIR_STOP_DRAIN);
	assert_int_equal(rig_wait(rig), WEIR_OK);
	rig_destroy(rig);
}

/* All that could be reported: a deadlock, a failure, a fault, an abandoned drain. */
static void say_much(const char *backend)
{
	const char *const graphs[] = {"source ticks=2 -> end enabled=false",
				      "source ticks=1 work=1ms fault=true -> end gate=in",
				      "source period=1ms -> end policy=fault enabled=false"};

	for (int i = 0; i < 3; i++) {
		struct rig *rig = rig_of(graphs[i]);
		rig->options.backend = backend;
		assert_int_not_equal(rig_run(rig), WEIR_OK);
		rig_destroy(rig);
	}
}

static void b04_the_library_prints_nothing(void **state)
{
	char text[200] = "";
	int ends[2], out = dup(1), err = dup(2);
	ssize_t length;

	(void)state;
	assert_int_equal(pipe(ends), 0);
	fflush(stdout);
	dup2(ends[1], 1);
	dup2(ends[1], 2);
	say_much("sim");
	say_much("host");
	fflush(stdout);
	dup2(out, 1);
	dup2(err, 2);
	close(ends[1]);
	length = read(ends[0], text, sizeof text - 1);
	close(ends[0]);
	close(out);
	close(err);
	assert_int_equal(length, 0);
}

/* --- B5 --- */

static void run_often(void *arg)
{
	rig_backend = arg;
	for (int i = 0; i < 20; i++) {
		struct rig *rig = rig_of("source count=20 work=10us -> p:pass -> end gate=in");
		assert_int_equal(rig_run(rig), WEIR_OK);
		assert_int_equal(rig_ticks(rig, "end"), 20);
		rig_destroy(rig);
	}
}

static void b05_schedulers_of_many_threads_do_not_know_of_each_other(void **state)
{
	const char *const places[] = {"host", "host", "sim", "sim"};
	struct wr_thread threads[4] = {{0}};

	(void)state;
	for (int i = 0; i < 4; i++)
		assert_int_equal(
			wr_thread_start(&threads[i], "one of four", run_often, (void *)(uintptr_t)places[i]),
			WEIR_OK);
	for (int i = 0; i < 4; i++)
		wr_thread_join(&threads[i]);
}

static void b05_two_graphs_run_at_once(void **state)
{
	struct rig *a = rig_of("source period=1ms count=20 -> end"),
		   *b = rig_of("source period=1ms count=20 work=100us -> end gate=in");

	(void)state;
	a->options.backend = b->options.backend = "host";
	rig_start(a);
	rig_start(b);
	assert_int_equal(rig_wait(a), WEIR_OK);
	assert_int_equal(rig_wait(b), WEIR_OK);
	assert_true(a->outcome.duration_ns < 10 * SECOND);
	rig_destroy(a);
	rig_destroy(b);
}

/* --- B6 --- */

static void b06_operators_and_conditions_come_from_plugins(void **state)
{
	static const char text[] = "{\"weir\": 1, \"entities\": [{\"name\": \"a\", \"operator\": \"source\"},"
				   "{\"name\": \"b\", \"operator\": \"doubler\", \"conditions\": [{\"type\": "
				   "\"thrice\"}]}, {\"name\": \"end\", \"operator\": \"end\"}],"
				   "\"connections\": [[\"a.out\", \"b.in\"], [\"b.out\", \"end.in\"]]}";
	weir_description *description = NULL;
	struct rig *rig = rig_of("a:source -> b:call -> end");

	(void)state;
	assert_int_equal(weir_graph_destroy(rig->graph), WEIR_OK);
	assert_int_equal(weir_registry_load(rig->registry, plugin_path), WEIR_OK);
	assert_int_equal(weir_description_parse(text, strlen(text), NULL, NULL, &description), WEIR_OK);
	assert_int_equal(weir_graph_create(rig->registry, description, &rig->graph), WEIR_OK);
	weir_description_destroy(description);
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_string_equal(rig_text(rig, "end"), "0 2 4");
	rig_destroy(rig);
}

/* --- F45, F46: in processes of their own --- */

/* Runs the body in a process. Returns its exit status, or 1000 + the signal that killed it. */
static int in_a_process(void (*body)(void))
{
	int status;
	pid_t child = fork();

	assert_true(child >= 0);
	if (!child) {
		body();
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

static struct rig *with_signals(const char *text)
{
	struct rig *rig = rig_of(text);

	rig->options.backend = "host";
	rig->options.handle_signals = true;
	rig->options.drain_ns = 60 * SECOND;
	rig_make(rig);
	return rig;
}

/* Exits with the status of the outcome. */
static void interrupt(int number, bool before)
{
	struct rig *rig = with_signals("source period=1ms -> end");

	if (before)
		kill(getpid(), number);
	rig_start(rig);
	if (!before)
		kill(getpid(), number);
	if (weir_scheduler_wait(rig->scheduler, 10 * SECOND, &rig->outcome) || rig->outcome.abandoned)
		_exit(1);
	_exit(100 + rig->outcome.posix_signal);
}

static void interrupt_in_the_run(void)
{
	interrupt(SIGINT, false);
}

static void interrupt_before_the_run(void)
{
	interrupt(SIGINT, true);
}

static void terminate_in_the_run(void)
{
	interrupt(SIGTERM, false);
}

/* The drain would take a minute: the entity waits for an outside condition. */
static void interrupt_twice(void)
{
	struct rig *rig = with_signals("source -> end asynchronous=");

	weir_entity_tell(weir_graph_entity(rig->graph, "end"), "asynchronous", WEIR_TOLD_EVENT_WAITING);
	rig_start(rig);
	while (!rig_queue(rig, "end.in").queued)
		weir_sleep(MS); /* until the entity waits */
	kill(getpid(), SIGINT);
	while (!weir_scheduler_stopping(rig->scheduler))
		weir_sleep(MS);
	kill(getpid(), SIGTERM);
	weir_scheduler_wait(rig->scheduler, 40 * SECOND, NULL);
	_exit(1);
}

static void f45_f46_sigint_and_sigterm_drain_when_asked_to(void **state)
{
	(void)state;
	assert_int_equal(in_a_process(interrupt_in_the_run), 100 + SIGINT);
	assert_int_equal(in_a_process(interrupt_before_the_run), 100 + SIGINT);
	assert_int_equal(in_a_process(terminate_in_the_run), 100 + SIGTERM);
}

static void f45_s07_a_second_signal_exits_at_once(void **state)
{
	(void)state;
	assert_int_equal(in_a_process(interrupt_twice), 128 + SIGTERM);
}

static void unasked(void)
{
	struct rig *rig = rig_of("source period=1ms -> end");

	signal(SIGINT, SIG_DFL); /* a shell starts with SIGINT ignored what shall run in the background */
	rig->options.backend = "host";
	rig_start(rig);
	kill(getpid(), SIGINT);
	weir_scheduler_wait(rig->scheduler, 3 * SECOND, NULL);
	_exit(1);
}

static void b04_f45_unasked_a_signal_is_the_programs_own_affair(void **state)
{
	(void)state;
	assert_int_equal(in_a_process(unasked), 1000 + SIGINT);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(b01_a_base_of_the_callers_runs_it_beside_the_callers_own_events),
		cmocka_unit_test(b01_a_descriptor_to_poll_and_a_turn_to_take),
		cmocka_unit_test(b01_without_own_loop_there_is_nothing_to_turn),
		cmocka_unit_test(b01_the_callers_loop_serves_many_runs),
		cmocka_unit_test(s01_pokes_from_other_threads_leave_a_simulated_world_whole),
		cmocka_unit_test(b04_threads_block_all_posix_signals_and_no_handler_is_installed),
		cmocka_unit_test(b04_the_library_prints_nothing),
		cmocka_unit_test(b05_schedulers_of_many_threads_do_not_know_of_each_other),
		cmocka_unit_test(b05_two_graphs_run_at_once),
		cmocka_unit_test(b06_operators_and_conditions_come_from_plugins),
		cmocka_unit_test(f45_f46_sigint_and_sigterm_drain_when_asked_to),
		cmocka_unit_test(f45_s07_a_second_signal_exits_at_once),
		cmocka_unit_test(b04_f45_unasked_a_signal_is_the_programs_own_affair),
	};

	plugin_path = argc > 1 ? argv[1] : "plugin.so";
	return cmocka_run_group_tests(tests, NULL, NULL);
}
