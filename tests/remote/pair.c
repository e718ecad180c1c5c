/*
 * Two graphs of one process, joined by the plugin: an inlet before remote_send, an outlet behind
 * remote_receive. What comes out is what went in, of any kind and size.
 */
#include <arpa/inet.h>
#include <dirent.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <weir.h>

#include "port.h"

static const char *plugin;

struct half {
	weir_registry *registry;
	weir_graph *graph;
	weir_scheduler *scheduler;
};

struct pair {
	struct half sender, receiver;
	weir_inlet *inlet;
	weir_outlet *outlet;
};

#define WELL(call)                                                                                           \
	do {                                                                                                 \
		if (call)                                                                                    \
			fail_msg("%s: %s", #call, weir_last_error());                                        \
	} while (0)

static void make_half(struct half *half, const char *format, int port)
{
	weir_description *description;
	char json[1000];

	snprintf(json, sizeof json, format, port);
	WELL(weir_registry_create(&half->registry));
	WELL(weir_registry_load(half->registry, plugin));
	WELL(weir_description_parse(json, strlen(json), NULL, NULL, &description));
	WELL(weir_graph_create(half->registry, description, &half->graph));
	weir_description_destroy(description);
}

static void start_on(const char *backend, struct half *half)
{
	const weir_scheduler_options options = {.size = sizeof options, .backend = backend, .workers = 1};

	WELL(weir_scheduler_create(half->graph, &options, &half->scheduler));
	WELL(weir_scheduler_start(half->scheduler));
}

static void start_half(struct half *half)
{
	start_on("host", half);
}

static void begin(struct pair *pair)
{
	int port = free_port();

	*pair = (struct pair){.inlet = NULL};
	make_half(&pair->receiver,
		  "{\"weir\": 1, \"outlets\": [{\"port\": \"receive.out\", \"capacity\": 4}], \"entities\": "
		  "[{\"name\": \"receive\","
		  " \"operator\": \"remote_receive\", \"parameters\": {\"listen\": \"127.0.0.1:%d\", "
		  "\"credits\": 3}}]}",
		  port);
	make_half(&pair->sender,
		  "{\"weir\": 1, \"inlets\": [\"send.in\"], \"entities\": [{\"name\": \"send\", "
		  "\"operator\": \"remote_send\","
		  " \"parameters\": {\"to\": \"127.0.0.1:%d\"}, \"ports\": {\"in\": {\"capacity\": 4}}}]}",
		  port);
	WELL(weir_graph_add_outlet(pair->receiver.graph, "receive.out", 4, 0, &pair->outlet));
	WELL(weir_graph_add_inlet(pair->sender.graph, "send.in", &pair->inlet));
	start_half(&pair->sender);
	start_half(&pair->receiver);
}

static void end_half(struct half *half)
{
	weir_outcome outcome = {.size = sizeof outcome};

	if (weir_scheduler_wait(half->scheduler, INT64_C(60000000000), &outcome))
		fail_msg("%s", outcome.text ? outcome.text : "it does not end");
	WELL(weir_scheduler_destroy(half->scheduler));
	WELL(weir_graph_destroy(half->graph));
	weir_registry_destroy(half->registry);
}

static void end(struct pair *pair)
{
	weir_message *message;

	weir_inlet_close(pair->inlet);
	assert_int_equal(weir_outlet_take(pair->outlet, -1, &message), WEIR_E_CLOSED);
	end_half(&pair->sender);
	end_half(&pair->receiver);
}

/* --- messages that a number decides --- */

static weir_message *tensor_of(weir_graph *graph, unsigned n)
{
	static const struct {
		uint8_t code, bits;
	} types[] = {{0, 8}, {1, 8}, {0, 64}, {1, 16}, {2, 32}, {2, 64}, {4, 16}, {6, 8}};
	int64_t shape[WEIR_DIMENSIONS_MAX];
	weir_tensor like = {
		.size = sizeof like,
		.device = WEIR_DEVICE_HOST,
		.dimensions = (int32_t)(n % (WEIR_DIMENSIONS_MAX + 1)),
		.shape = shape,
		.code = types[n % 8].code,
		.bits = types[n % 8].bits,
		.lanes = 1,
	};
	weir_message *message;

	for (int i = 0; i < like.dimensions; i++)
		shape[i] = i ? 1 + (n + (unsigned)i) % 3 : n % 7 * n; /* also 0, and up to 1 MiB */
	WELL(weir_message_create_tensor(graph, &like, &message));
	return message;
}

static weir_message *plain(weir_graph *graph, unsigned n)
{
	weir_message *message;

	if (n % 5 == 0)
		WELL(weir_message_create_empty(graph, &message));
	else if (n % 5 == 1)
		WELL(weir_message_create_bytes(graph, n % 50 ? n : n * 3000, &message));
	else
		message = tensor_of(graph, n);
	for (size_t i = 0; i < weir_message_size(message); i++)
		((uint8_t *)weir_message_data(message))[i] = (uint8_t)(i * 7 + n);
	if (n % 3)
		WELL(weir_message_set_stamp(message, (weir_stamp){(int64_t)n + 1, n * UINT64_C(1000003)}));
	return message;
}

static weir_message *made(weir_graph *graph, unsigned n)
{
	weir_part parts[WEIR_PARTS_MAX];
	char names[WEIR_PARTS_MAX][16];
	unsigned count = n % 90 == 6 ? WEIR_PARTS_MAX : 1 + n % 5;
	weir_message *message;

	if (n % 6)
		return plain(graph, n);
	for (unsigned i = 0; i < count; i++) {
		snprintf(names[i], sizeof names[i], "part %u", i + n);
		parts[i] = (weir_part){sizeof(weir_part), names[i], plain(graph, n + i)};
	}
	WELL(weir_message_pack(graph, parts, count, &message));
	WELL(weir_message_set_stamp(message, (weir_stamp){(int64_t)n + 5, n}));
	return message;
}

static void assert_like(const weir_message *got, const weir_message *sent)
{
	const weir_tensor *a = weir_message_tensor(got), *b = weir_message_tensor(sent);

	assert_int_equal(weir_message_kind(got), weir_message_kind(sent));
	assert_int_equal(weir_message_size(got), weir_message_size(sent));
	if (weir_message_size(sent))
		assert_memory_equal(weir_message_data(got), weir_message_data(sent), weir_message_size(sent));
	assert_int_equal(weir_message_stamp(got).time, weir_message_stamp(sent).time);
	assert_int_equal(weir_message_stamp(got).tag, weir_message_stamp(sent).tag);
	if (a && b) {
		assert_int_equal(a->dimensions, b->dimensions);
		assert_int_equal(a->code, b->code);
		assert_int_equal(a->bits, b->bits);
		assert_memory_equal(a->shape, b->shape, (size_t)b->dimensions * sizeof *b->shape);
	}
	assert_int_equal(weir_message_parts(got), weir_message_parts(sent));
	for (size_t i = 0; i < weir_message_parts(sent); i++) {
		assert_string_equal(weir_message_part_name(got, i), weir_message_part_name(sent, i));
		assert_like(weir_message_part_at(got, i), weir_message_part_at(sent, i));
	}
}

static void t10_r02_what_comes_is_what_was_sent(void **unused)
{
	enum { COUNT = 400 };
	struct pair pair;

	(void)unused;
	begin(&pair);
	for (unsigned n = 0; n < COUNT; n++) {
		weir_message *sent = made(pair.sender.graph, n), *got;

		WELL(weir_inlet_push(pair.inlet, weir_message_ref(sent), -1));
		WELL(weir_outlet_take(pair.outlet, -1, &got));
		assert_like(got, sent);
		weir_message_unref(got);
		weir_message_unref(sent);
	}
	end(&pair);
}

/* What the receiver has no credit for stays before the sender: 4 of the outlet, 3 credits, 1 of a tick, 4 of
 * the inlet. */
static void r01_no_more_is_sent_than_there_are_credits(void **unused)
{
	enum { PLACES = 4 + 3 + 4 };
	weir_queue_counts before = {.size = sizeof before}, behind = {.size = sizeof behind};
	weir_message *message;
	struct pair pair;
	unsigned pushed;

	(void)unused;
	begin(&pair);
	for (pushed = 0; pushed < PLACES; pushed++) {
		WELL(weir_message_create_bytes(pair.sender.graph, 100, &message));
		WELL(weir_inlet_push(pair.inlet, message, -1));
	}
	WELL(weir_message_create_bytes(pair.sender.graph, 100, &message));
	assert_int_equal(weir_inlet_push(pair.inlet, message, INT64_C(200000000)), WEIR_E_TIMEOUT);
	weir_message_unref(message);
	WELL(weir_scheduler_queue_counts(pair.sender.scheduler, 0, &before));
	WELL(weir_scheduler_queue_counts(pair.receiver.scheduler, 0, &behind));
	assert_int_equal(behind.pushed, 4);
	assert_int_equal(before.delivered, 4 + 3);
	for (; pushed; pushed--) {
		WELL(weir_outlet_take(pair.outlet, -1, &message));
		weir_message_unref(message);
	}
	end(&pair);
}

static void e05_r02_messages_under_way_together_come_in_order(void **unused)
{
	enum { COUNT = 20000, WINDOW = 8 };
	struct pair pair;
	unsigned pushed = 0;

	(void)unused;
	begin(&pair);
	for (unsigned taken = 0; taken < COUNT; taken++) {
		weir_message *message;

		for (; pushed < COUNT && pushed < taken + WINDOW; pushed++) {
			WELL(weir_message_create_bytes(pair.sender.graph, pushed % 7 ? 40 : 40000, &message));
			memcpy(weir_message_data(message), &pushed, sizeof pushed);
			WELL(weir_inlet_push(pair.inlet, message, -1));
		}
		WELL(weir_outlet_take(pair.outlet, -1, &message));
		assert_memory_equal(weir_message_data(message), &taken, sizeof taken);
		weir_message_unref(message);
	}
	end(&pair);
}

/* The engine would install handlers of SIGSEGV and the like, and put a jump into mmap. The first test: it
 * loads the engine. */
static void b04_the_engine_leaves_the_process_alone(void **unused)
{
	static const int signals[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT};
	struct pair pair;
	uint8_t code[2][16];
	struct sigaction before[sizeof signals / sizeof signals[0]], now;

	(void)unused;
	memcpy(code[0], (const void *)(uintptr_t)mmap, sizeof code[0]);
	memcpy(code[1], (const void *)(uintptr_t)munmap, sizeof code[1]);
	for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++)
		assert_false(sigaction(signals[i], NULL, &before[i]));
	begin(&pair);
	for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++) {
		assert_false(sigaction(signals[i], NULL, &now));
		assert_true(now.sa_handler == before[i].sa_handler); /* cmocka's */
	}
	assert_memory_equal(code[0], (const void *)(uintptr_t)mmap, sizeof code[0]);
	assert_memory_equal(code[1], (const void *)(uintptr_t)munmap, sizeof code[1]);
	end(&pair);
}

/* Whether the thread takes a signal that the program may send itself. */
static bool takes_signals(const char *thread)
{
	static const int sent[] = {SIGHUP,  SIGINT,  SIGTERM, SIGUSR1, SIGUSR2,
				   SIGALRM, SIGCHLD, SIGPIPE, SIGIO};
	char path[300], line[200];
	unsigned long long blocked = 0;
	FILE *status;

	snprintf(path, sizeof path, "/proc/self/task/%s/status", thread);
	status = fopen(path, "re");
	assert_non_null(status);
	while (fgets(line, sizeof line, status))
		sscanf(line, "SigBlk: %llx", &blocked);
	fclose(status);
	for (size_t i = 0; i < sizeof sent / sizeof sent[0]; i++)
		if (!(blocked >> (sent[i] - 1) & 1))
			return true;
	return false;
}

static void b04_no_thread_but_the_program_s_takes_signals(void **unused)
{
	struct dirent *thread;
	struct pair pair;
	unsigned taking = 0, threads = 0;
	DIR *threads_of;

	(void)unused;
	begin(&pair);
	threads_of = opendir("/proc/self/task");
	assert_non_null(threads_of);
	while ((thread = readdir(threads_of)))
		if (thread->d_name[0] != '.') {
			threads++;
			taking += takes_signals(thread->d_name);
		}
	closedir(threads_of);
	end(&pair);
	assert_true(threads > 3);
	assert_int_equal(taking, 1);
}

/* Sets of descriptors in sets: the system allows few levels, and the engine ends the process beyond them. */
static void b06_r04_a_program_s_loop_may_hold_the_descriptor_in_its_sets(void **unused)
{
	weir_scheduler_options options = {
		.size = sizeof options, .backend = "host", .workers = 1, .own_loop = 1};
	struct epoll_event event = {.events = EPOLLIN};
	struct half half = {.graph = NULL};
	int inner = -1, sets[2];

	(void)unused;
	make_half(
		&half,
		"{\"weir\": 1, \"entities\": [{\"name\": \"source\", \"operator\": \"ping\", \"conditions\": "
		"[{\"type\": \"count\", \"count\": 50}]}, {\"name\": \"send\", \"operator\": "
		"\"remote_send\", "
		"\"parameters\": {\"to\": \"127.0.0.1:%1$d\"}}, {\"name\": \"receive\", \"operator\": "
		"\"remote_receive\", \"parameters\": {\"listen\": \"127.0.0.1:%1$d\"}}, {\"name\": \"end\", "
		"\"operator\": \"sink\"}], \"connections\": [[\"source.out\", \"send.in\"], "
		"[\"receive.out\", "
		"\"end.in\"]]}",
		free_port());
	WELL(weir_scheduler_create(half.graph, &options, &half.scheduler));
	WELL(weir_scheduler_fd(half.scheduler, &inner));
	for (int i = 0; i < 2; inner = sets[i++]) {
		sets[i] = epoll_create1(EPOLL_CLOEXEC);
		assert_false(epoll_ctl(sets[i], EPOLL_CTL_ADD, inner, &event));
	}
	WELL(weir_scheduler_start(half.scheduler));
	while (weir_scheduler_running(half.scheduler)) {
		struct pollfd set = {inner, POLLIN, 0};

		poll(&set, 1, 1000);
		WELL(weir_scheduler_turn(half.scheduler));
	}
	end_half(&half);
	close(sets[0]);
	close(sets[1]);
}

/* --- what the program holds at the ends --- */

static void destroy_half(struct half *half)
{
	WELL(weir_scheduler_destroy(half->scheduler));
	WELL(weir_graph_destroy(half->graph));
	weir_registry_destroy(half->registry);
}

/* Ten fill the outlet, the receiver's credits and the sender's queue, or nearly so. */
static void push_numbers(struct pair *pair, unsigned count)
{
	for (unsigned n = 0; n < count; n++) {
		weir_message *message;

		WELL(weir_message_create_bytes(pair->sender.graph, 100000, &message));
		memset(weir_message_data(message), (int)n, 100000);
		WELL(weir_inlet_push(pair->inlet, message, -1));
	}
}

static void r03_what_the_program_took_outlives_the_run_not_the_graph(void **unused)
{
	weir_message *taken[3];
	struct pair pair;

	(void)unused;
	begin(&pair);
	push_numbers(&pair, 3);
	for (unsigned i = 0; i < 3; i++)
		WELL(weir_outlet_take(pair.outlet, -1, &taken[i]));
	weir_inlet_close(pair.inlet);
	end_half(&pair.sender);
	WELL(weir_scheduler_destroy(pair.receiver.scheduler));
	assert_int_equal(weir_graph_destroy(pair.receiver.graph), WEIR_E_STATE);
	for (unsigned i = 0; i < 3; i++) {
		const unsigned char *bytes = weir_message_data(taken[i]);

		assert_true(bytes[0] == i && bytes[99999] == i);
		weir_message_unref(taken[i]);
	}
	WELL(weir_graph_destroy(pair.receiver.graph));
	weir_registry_destroy(pair.receiver.registry);
}

static void r03_either_side_may_be_destroyed_while_messages_are_under_way(void **unused)
{
	(void)unused;
	for (int receiver_first = 0; receiver_first < 2; receiver_first++) {
		weir_message *taken;
		struct pair pair;

		begin(&pair);
		push_numbers(&pair, 10);
		WELL(weir_outlet_take(pair.outlet, -1, &taken));
		weir_message_unref(taken);
		destroy_half(receiver_first ? &pair.receiver : &pair.sender);
		destroy_half(receiver_first ? &pair.sender : &pair.receiver);
	}
}

static void r06_the_same_graphs_run_again(void **unused)
{
	weir_message *taken;
	struct pair pair;

	(void)unused;
	begin(&pair);
	for (int run = 0; run < 3; run++) {
		push_numbers(&pair, 1);
		WELL(weir_outlet_take(pair.outlet, -1, &taken));
		weir_message_unref(taken);
		if (run % 2)
			push_numbers(&pair, 5); /* which are left behind */
		weir_scheduler_stop(pair.sender.scheduler, 0);
		(void)weir_scheduler_wait(pair.sender.scheduler, -1, NULL);
		weir_scheduler_stop(pair.receiver.scheduler, 0);
		(void)weir_scheduler_wait(pair.receiver.scheduler, -1, NULL);
		while (!weir_outlet_take(pair.outlet, 0, &taken))
			weir_message_unref(taken);
		WELL(weir_scheduler_start(pair.sender.scheduler));
		WELL(weir_scheduler_start(pair.receiver.scheduler));
	}
	end(&pair);
}

/* A process that has copies of all descriptors of this one, until the pipe ends. */
static pid_t fork_beside(int ends[2])
{
	char byte;
	pid_t child;

	assert_int_equal(pipe(ends), 0);
	child = fork();
	if (!child) {
		close(ends[1]);
		_exit(read(ends[0], &byte, 1) ? 1 : 0);
	}
	assert_true(child > 0);
	return child;
}

static void r03_r06_a_process_forked_meanwhile_keeps_nothing_open(void **unused)
{
	weir_message *taken;
	struct pair pair;
	int ends[2], code;
	pid_t child;

	(void)unused;
	begin(&pair);
	push_numbers(&pair, 1);
	WELL(weir_outlet_take(pair.outlet, -1, &taken));
	weir_message_unref(taken);
	child = fork_beside(ends);
	weir_scheduler_stop(pair.receiver.scheduler, 0);
	(void)weir_scheduler_wait(pair.receiver.scheduler, -1, NULL);
	/* Within keepalive, 10 s: by the end of the connection. */
	assert_int_equal(weir_scheduler_wait(pair.sender.scheduler, INT64_C(5000000000), NULL),
			 WEIR_E_FAILED);
	WELL(weir_scheduler_start(pair.receiver.scheduler)); /* it listens again */
	WELL(weir_scheduler_start(pair.sender.scheduler));
	end(&pair);
	close(ends[1]);
	close(ends[0]);
	assert_int_equal(waitpid(child, &code, 0), child);
	assert_int_equal(code, 0);
}

/* --- on sim --- */

/* docs/distributed.md: a run there goes on only while a thread waits for it. */
static void b05_r06_one_thread_that_waits_by_turns_drives_two_simulated_runs(void **state)
{
	struct pair pair = {.inlet = NULL};
	int port = free_port();

	(void)state;
	make_half(&pair.receiver,
		  "{\"weir\": 1, \"entities\": [{\"name\": \"receive\", \"operator\": \"remote_receive\", "
		  "\"parameters\": {\"listen\": \"127.0.0.1:%d\"}}, {\"name\": \"end\", \"operator\": "
		  "\"sink\"}], \"connections\": [[\"receive.out\", \"end.in\"]]}",
		  port);
	make_half(
		&pair.sender,
		"{\"weir\": 1, \"entities\": [{\"name\": \"begin\", \"operator\": \"ping\", \"conditions\": "
		"[{\"type\": \"count\", \"count\": 20}]}, {\"name\": \"send\", \"operator\": "
		"\"remote_send\", "
		"\"parameters\": {\"to\": \"127.0.0.1:%d\"}}], \"connections\": [[\"begin.out\", "
		"\"send.in\"]]}",
		port);
	start_on("sim", &pair.sender);
	start_on("sim", &pair.receiver);
	while (weir_scheduler_running(pair.sender.scheduler) ||
	       weir_scheduler_running(pair.receiver.scheduler)) {
		(void)weir_scheduler_wait(pair.sender.scheduler, INT64_C(10000000), NULL);
		(void)weir_scheduler_wait(pair.receiver.scheduler, INT64_C(10000000), NULL);
	}
	end_half(&pair.sender);
	end_half(&pair.receiver);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(b04_the_engine_leaves_the_process_alone),
		cmocka_unit_test(b04_no_thread_but_the_program_s_takes_signals),
		cmocka_unit_test(b06_r04_a_program_s_loop_may_hold_the_descriptor_in_its_sets),
		cmocka_unit_test(t10_r02_what_comes_is_what_was_sent),
		cmocka_unit_test(r01_no_more_is_sent_than_there_are_credits),
		cmocka_unit_test(e05_r02_messages_under_way_together_come_in_order),
		cmocka_unit_test(r03_what_the_program_took_outlives_the_run_not_the_graph),
		cmocka_unit_test(r03_either_side_may_be_destroyed_while_messages_are_under_way),
		cmocka_unit_test(r06_the_same_graphs_run_again),
		cmocka_unit_test(b05_r06_one_thread_that_waits_by_turns_drives_two_simulated_runs),
		cmocka_unit_test(r03_r06_a_process_forked_meanwhile_keeps_nothing_open),
	};

	if (argc != 2)
		return 2;
	plugin = argv[1];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
