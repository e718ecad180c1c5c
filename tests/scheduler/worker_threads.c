/* Threads in unusual places: compute ends its thread, two threads start at once, a forked child; and how soon
 * a stop is obeyed. */
#include <pthread.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/thread.h"
#include "rig_parts.h"
#include "tests/calls.h"

#define TEST(name) static void name(void **state_)

/* AddressSanitizer does not notice that a cancellation unwinds the stack, and then reports a false error. */
#ifdef __has_feature
#define CANCELS !__has_feature(address_sanitizer)
#elif defined(__SANITIZE_ADDRESS__)
#define CANCELS false
#else
#define CANCELS true
#endif

/* --- compute ends its thread --- */

static weir_status exit_thread(struct rig *rig, weir_context *context)
{
	if (weir_context_tick(context) == 2) {
		weir_message *emitted = rig_number(context, 9);
		rig_entity(rig, "a")->computing = 0;
		weir_context_emit(context, 0, emitted);
		pthread_exit(NULL);
	}
	return weir_context_emit(context, 0, rig_number(context, 1));
}

static weir_status cancel_thread(struct rig *rig, weir_context *context)
{
	(void)context;
	rig_entity(rig, "a")->computing = 0;
	pthread_cancel(pthread_self());
	pthread_testcancel();
	return WEIR_OK;
}

static void ends_its_thread(rig_fn *compute, unsigned workers)
{
	struct rig *rig = rig_of("a:call -> p:pass -> end; source -> other:end");

	rig->options.workers = workers;
	rig_on(rig, "a", compute);
	assert_int_equal(rig_run(rig), WEIR_E_FAILED);
	assert_string_equal(rig->outcome.entity, "a");
	assert_string_equal(rig->outcome.text,
			    "compute ended its thread (pthread_exit or pthread_cancel): the "
			    "thread is a worker of weir, return from compute");
	rig_on(rig, "a", NULL); /* the next run has all its workers again */
	rig->options.max_duration_ns = 0;
	rig_start(rig);
	weir_scheduler_stop(rig->scheduler, WEIR_STOP_DRAIN);
	assert_int_equal(rig_wait(rig), WEIR_OK);
	rig_destroy(rig);
}

static void both_ways(void)
{
	for (unsigned workers = 1; workers <= 3; workers++) {
		ends_its_thread(exit_thread, workers);
		if (CANCELS)
			ends_its_thread(cancel_thread, workers);
	}
}

TEST(xb27_f48_a_compute_that_ends_its_thread_fails_the_run_by_name)
{
	(void)state_;
	rig_on_host(both_ways);
}

static weir_status note_running(struct rig *rig, weir_context *context)
{
	(void)context;
	HOLDS(rig, !strcmp(weir_running_entity(), "a"));
	return WEIR_OK;
}

static void running_entity(void)
{
	struct rig *rig = rig_of("a:call count=3");

	rig_on(rig, "a", note_running);
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_null(weir_running_entity());
	rig_destroy(rig);
}

TEST(xb27_the_running_entity_is_known_within_compute_alone)
{
	(void)state_;
	rig_everywhere(running_entity);
}

/* --- two threads, two processes --- */

static weir_status run_from_another_thread(struct rig *rig, weir_context *context)
{
	(void)context;
	HOLDS(rig, weir_scheduler_start(rig->scheduler) == WEIR_E_STATE);
	return WEIR_OK;
}

struct starter {
	struct rig *rig;
	weir_status status;
};

static void start_too(void *arg)
{
	struct starter *starter = arg;

	starter->status = weir_scheduler_start(starter->rig->scheduler);
}

/* The second start comes while the first is in an operator's start function. */
static weir_status start_meanwhile(struct rig *rig, weir_context *context)
{
	struct starter starter = {rig, WEIR_OK};
	struct wr_thread thread;

	(void)context;
	HOLDS(rig, !wr_thread_start(&thread, "second", start_too, &starter));
	wr_thread_join(&thread);
	HOLDS(rig, starter.status == WEIR_E_STATE);
	return WEIR_OK;
}

static void second_start(void)
{
	struct rig *rig = rig_of("a:call count=1");

	rig_entity(rig, "a")->start = start_meanwhile;
	rig_on(rig, "a", run_from_another_thread);
	assert_int_equal(rig_run(rig), WEIR_OK);
	rig_destroy(rig);
}

TEST(s08_a_second_thread_that_starts_the_same_run_is_refused)
{
	(void)state_;
	rig_everywhere(second_start);
}

/* Runs checks in a forked child. Returns a bit for each that held. The child runs no exit
 * functions of the parent. */
static int checks_in_child(struct rig *rig)
{
	pid_t child = fork();
	int code = 0, status;

	if (!child) {
		status = weir_scheduler_run(rig->scheduler) == WEIR_E_INVALID;
		status |= (strstr(weir_last_error(), "after the fork") != NULL) << 1;
		status |= (weir_scheduler_wait(rig->scheduler, -1, NULL) == WEIR_E_INVALID) << 2;
		status |= (weir_scheduler_destroy(rig->scheduler) == WEIR_E_INVALID) << 3;
		_exit(status);
	}
	assert_true(child > 0 && waitpid(child, &code, 0) == child && WIFEXITED(code));
	return WEXITSTATUS(code);
}

static void forked(void)
{
	struct rig *rig = rig_of("source ticks=3 -> end");

	rig_make(rig);
	assert_int_equal(checks_in_child(rig), 15);
	assert_int_equal(rig_run(rig), WEIR_OK); /* the parent's scheduler still works */
	rig_destroy(rig);
}

TEST(s08_a_scheduler_is_refused_in_a_forked_child)
{
	(void)state_;
	rig_on_host(forked);
}

TEST(s08_a_poke_outside_a_run_is_refused_with_words)
{
	struct rig *rig = rig_of("a:call count=1");

	(void)state_;
	assert_int_equal(weir_entity_poke(weir_graph_entity(rig->graph, "a")), WEIR_E_CLOSED);
	assert_string_equal(weir_last_error(), "a: no run is on: poke it after the start");
	rig_destroy(rig);
}

/* --- a stop is obeyed by the next review of each worker --- */

static bool drain;
static _Atomic uint64_t after;

static weir_status stop_at_100(struct rig *rig, weir_context *context)
{
	if (weir_context_tick(context) == 100) {
		weir_scheduler_stop(rig->scheduler, drain ? WEIR_STOP_DRAIN : 0);
		wr_store(&rig->told, 1);
	}
	weir_sleep(US);
	return WEIR_OK;
}

static weir_status count_after(struct rig *rig, weir_context *context)
{
	(void)context;
	wr_fetch_add(&after, wr_load(&rig->told));
	weir_sleep(US);
	return WEIR_OK;
}

static void stops_soon(void)
{
	struct rig *rig = rig_of("a:call; b:call; c:call; d:call");

	wr_store(&after, 0);
	rig_on(rig, "a", stop_at_100);
	rig_on(rig, "b", count_after);
	rig_on(rig, "c", count_after);
	rig_on(rig, "d", count_after);
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_int_equal(rig_ticks(rig, "a"), 101);
	assert_in_range(wr_load(&after), 0, 2); /* a tick that the other worker had begun */
	rig_destroy(rig);
}

TEST(s07_a_stop_within_compute_is_obeyed_before_the_next_tick)
{
	(void)state_;
	for (int i = 0; i < 2; i++) {
		drain = i;
		rig_everywhere(stops_soon);
	}
}

/* --- what a drain does not wait for --- */

struct clock {
	int64_t next;
};

/* Depends on the time only: no end of a sender makes it NEVER. */
static void each_millisecond(const void *state, weir_view *view, weir_verdict *verdict)
{
	const struct clock *self = state;

	if (weir_view_now(view) >= self->next)
		weir_verdict_ready(verdict);
	else
		weir_verdict_until(verdict, self->next);
}

static void next_millisecond(void *state, weir_view *view)
{
	((struct clock *)state)->next = weir_view_began(view) + MS;
}

static const weir_parameter in_port[] = {{.size = sizeof(weir_parameter),
					  .name = "port",
					  .type = WEIR_TYPE_INPUT,
					  .fallback = "\"in\"",
					  .help = "port"},
					 {.name = NULL}};
static const weir_condition clocked = {.size = sizeof(weir_condition),
				       .name = "clocked",
				       .help = "of a test",
				       .parameters = in_port,
				       .state_size = sizeof(struct clock),
				       .ask = each_millisecond,
				       .ticked = next_millisecond};
static void ask_and_exit(const void *state, weir_view *view, weir_verdict *verdict)
{
	(void)state;
	(void)view;
	(void)verdict;
	pthread_exit(NULL);
}

static const weir_condition exits = {.size = sizeof exits, .name = "exits", .ask = ask_and_exit};
static const weir_condition *const conditions[] = {&clocked, &exits, NULL};

static void drains(void)
{
	struct rig *rig = rig_of("source ticks=5 -> c:call condition=clocked");

	rig_start(rig);
	weir_scheduler_wait(rig->scheduler, 20 * MS, NULL);
	weir_scheduler_stop(rig->scheduler, WEIR_STOP_DRAIN);
	assert_int_equal(rig_wait(rig), WEIR_OK);
	assert_true(rig_done(rig, "c"));
	assert_in_range(rig->outcome.duration_ns, 20 * MS, 100 * MS);
	rig_destroy(rig);
}

TEST(s07_a_drain_ends_an_entity_that_waits_for_a_time_without_input_left)
{
	(void)state_;
	rig_in_worlds(5, drains);
}

/* --- virtual time stands still between runs --- */

static void other_seed(void)
{
	struct rig *rig = rig_of("source work=50ms -> end");

	rig->options.drain_ns = -1;
	rig->options.max_duration_ns = MS;
	for (rig->options.seed = 1; rig->options.seed <= 3; rig->options.seed++) {
		assert_int_equal(rig_run(rig), WEIR_E_ABANDONED);
		assert_int_equal(weir_scheduler_destroy(rig->scheduler), WEIR_OK);
		rig->scheduler = NULL;
	}
	rig_destroy(rig);
}

TEST(t04_after_an_abandoned_run_the_next_simulated_scheduler_of_another_seed_is_made)
{
	(void)state_;
	other_seed();
}

/* --- user code on a worker, outside of compute --- */

static void condition_ends_its_thread(void)
{
	struct rig *rig = rig_of("source ticks=1 condition=exits -> end; other:source period=10ms -> e:end");

	assert_int_equal(rig_run(rig), WEIR_E_FAILED);
	assert_null(rig->outcome.entity);
	assert_says(rig->outcome.text, "user code ended its thread (pthread_exit or pthread_cancel)");
	rig_destroy(rig);
}

static void end_thread(void *arg)
{
	(void)arg;
	pthread_exit(NULL);
}

/* The device still works on the message when compute has dropped it: a worker destroys it later. */
static weir_status drop_what_ends_its_thread(struct rig *rig, weir_context *context)
{
	static int64_t numbers[8];
	int64_t *number = &numbers[rig_tick(context)];
	weir_tensor tensor = rig_one_number;
	struct rig_sum sum = {number, {NULL, NULL}, 1, MS};
	weir_fence fence = {0, 0};
	weir_message *message = NULL;
	weir_status status = weir_stream_launch(current_stream(context), &rig_adder, &sum, sizeof sum);

	tensor.device = WEIR_DEVICE_HOST;
	tensor.data = number;
	if (!status)
		status = weir_stream_record(current_stream(context), &fence);
	if (!status)
		status = weir_message_wrap_tensor(rig->graph, &tensor,
						  rig_tick(context) == 4 ? end_thread : NULL, NULL, &message);
	if (!status)
		status = weir_message_add_reader(message, fence);
	weir_message_unref(message);
	return status;
}

static void destructor_ends_its_thread(void)
{
	struct rig *rig = rig_of("a:call count=8; other:source period=10ms -> e:end");

	rig_on(rig, "a", drop_what_ends_its_thread);
	assert_int_equal(rig_run(rig), WEIR_E_FAILED);
	assert_null(rig->outcome.entity);
	assert_says(rig->outcome.text, "user code ended its thread (pthread_exit or pthread_cancel)");
	rig_destroy(rig);
}

TEST(xb27_t04_a_destructor_that_ends_its_thread_fails_the_run)
{
	(void)state_;
	rig_on_host(destructor_ends_its_thread);
}

static void count_call(void *calls)
{
	++*(int *)calls;
}

static weir_message *wrapped(struct rig *rig, void (*destroy)(void *arg), void *arg)
{
	weir_message *message = NULL;

	assert_int_equal(weir_message_wrap_user(rig->graph, arg, destroy, &message), WEIR_OK);
	return message;
}

static weir_message *pack_of_three(struct rig *rig, weir_message *first, void (*second)(void *arg),
				   int *calls)
{
	const weir_part parts[] = {rig_part("first", first), rig_part("second", wrapped(rig, second, calls)),
				   rig_part("third", wrapped(rig, count_call, calls))};
	weir_message *pack = NULL;

	assert_int_equal(weir_message_pack(rig->graph, parts, 3, &pack), WEIR_OK);
	return pack;
}

static int calls_of_parts;

static void drop_pack(void *pack)
{
	weir_message_unref(pack);
}

/* A part's destructor drops another pack, whose second part ends the thread; so does the part behind it. */
static weir_status drop_packs_that_end_their_thread(struct rig *rig, weir_context *context)
{
	weir_message *inner =
		pack_of_three(rig, wrapped(rig, count_call, &calls_of_parts), end_thread, &calls_of_parts);

	(void)context;
	weir_message_unref(pack_of_three(rig, wrapped(rig, drop_pack, inner), end_thread, &calls_of_parts));
	return WEIR_OK;
}

static void part_ends_its_thread(void)
{
	struct rig *rig = rig_of("a:call count=8; other:source period=10ms -> e:end");

	calls_of_parts = 0;
	rig_on(rig, "a", drop_packs_that_end_their_thread);
	assert_int_equal(rig_run(rig), WEIR_E_FAILED);
	assert_string_equal(rig->outcome.entity, "a");
	rig_destroy(rig); /* no message is left */
	assert_int_equal(calls_of_parts, 3);
}

TEST(xb27_t09_a_part_whose_destructor_ends_the_thread_loses_no_other_part_and_no_pack)
{
	(void)state_;
	rig_on_host(part_ends_its_thread);
}

/* The sink's tick drops three messages: the destructor of the second ends the thread. */
static weir_status emit_three(struct rig *rig, weir_context *context)
{
	weir_status status = weir_context_emit(context, 0, wrapped(rig, count_call, &calls_of_parts));

	status = status ? status : weir_context_emit(context, 0, wrapped(rig, end_thread, NULL));
	return status ? status : weir_context_emit(context, 0, wrapped(rig, count_call, &calls_of_parts));
}

static weir_status take_three(struct rig *rig, weir_context *context)
{
	HOLDS(rig, weir_context_count(context, 0) == 3);
	return WEIR_OK;
}

static void input_ends_its_thread(void)
{
	struct rig *rig = rig_of("a:call count=1 max_emits=3 -> b:call capacity=3 take=3");

	calls_of_parts = 0;
	rig_on(rig, "a", emit_three);
	rig_on(rig, "b", take_three);
	assert_int_equal(rig_run(rig), WEIR_E_FAILED);
	assert_string_equal(rig->outcome.entity, "b");
	rig_destroy(rig); /* no message is left */
	assert_int_equal(calls_of_parts, 2);
}

TEST(xb27_t04_an_input_whose_destructor_ends_the_thread_is_dropped_once_and_the_others_too)
{
	(void)state_;
	rig_on_host(input_ends_its_thread);
}

TEST(xb27_f48_a_condition_that_ends_its_thread_fails_the_run)
{
	(void)state_;
	rig_on_host(condition_ends_its_thread);
}

/* --- two graphs --- */

static weir_status poke_other(struct rig *rig, weir_context *context)
{
	struct rig *other = rig->own;
	weir_message *message = NULL;

	HOLDS(rig, !weir_message_create_bytes(other->graph, 8, &message));
	HOLDS(rig, !weir_entity_tell(weir_graph_entity(other->graph, "source"), "boolean", WEIR_TOLD_READY));
	weir_message_unref(message); /* a worker of one graph drops what is of another */
	return weir_context_finish(context);
}

static void one_wakes_the_other(void)
{
	struct rig *other = rig_of("source ticks=1 enabled=false -> end"), *rig = rig_of("a:call");

	other->options.deadlock_grace_ns = 60 * SECOND;
	rig_start(other);
	rig->own = other;
	rig_on(rig, "a", poke_other);
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_int_equal(rig_wait(other), WEIR_OK);
	assert_string_equal(rig_text(other, "end"), "0");
	rig_destroy(rig);
	rig_destroy(other);
}

TEST(b05_an_operator_of_one_graph_wakes_an_entity_of_another)
{
	(void)state_;
	rig_on_host(one_wakes_the_other);
}

/* --- as many workers as can be --- */

static void run_with_64_workers(void)
{
	struct rig *rig = rig_of("source ticks=40 work=1us -> p:pass -> end gate=in");

	rig->options.workers = 64;
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_int_equal(rig_ticks(rig, "end"), 40);
	assert_true(rig->outcome.duration_ns < 20 * SECOND);
	rig_destroy(rig);
}

TEST(s09_64_workers_are_as_many_as_can_be_and_all_of_them_sleep)
{
	struct rig *rig = rig_of("source ticks=1 -> end");

	(void)state_;
	rig->options.workers = 65;
	assert_int_equal(weir_scheduler_create(rig->graph, &rig->options, &rig->scheduler), WEIR_E_INVALID);
	assert_string_equal(weir_last_error(), "65 workers: use at most 64");
	rig_destroy(rig);
	rig_in_worlds(3, run_with_64_workers);
	rig_on_host(run_with_64_workers);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(xb27_f48_a_compute_that_ends_its_thread_fails_the_run_by_name),
		cmocka_unit_test(xb27_the_running_entity_is_known_within_compute_alone),
		cmocka_unit_test(s08_a_second_thread_that_starts_the_same_run_is_refused),
		cmocka_unit_test(s08_a_scheduler_is_refused_in_a_forked_child),
		cmocka_unit_test(s08_a_poke_outside_a_run_is_refused_with_words),
		cmocka_unit_test(s07_a_stop_within_compute_is_obeyed_before_the_next_tick),
		cmocka_unit_test(s07_a_drain_ends_an_entity_that_waits_for_a_time_without_input_left),
		cmocka_unit_test(
			t04_after_an_abandoned_run_the_next_simulated_scheduler_of_another_seed_is_made),
		cmocka_unit_test(xb27_t04_a_destructor_that_ends_its_thread_fails_the_run),
		cmocka_unit_test(
			xb27_t09_a_part_whose_destructor_ends_the_thread_loses_no_other_part_and_no_pack),
		cmocka_unit_test(
			xb27_t04_an_input_whose_destructor_ends_the_thread_is_dropped_once_and_the_others_too),
		cmocka_unit_test(xb27_f48_a_condition_that_ends_its_thread_fails_the_run),
		cmocka_unit_test(b05_an_operator_of_one_graph_wakes_an_entity_of_another),
		cmocka_unit_test(s09_64_workers_are_as_many_as_can_be_and_all_of_them_sleep),
	};

	rig_conditions = conditions;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
