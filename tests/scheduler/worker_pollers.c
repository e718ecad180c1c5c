/* Which worker polls the flags (G4, S9), shown by virtual time, which is the same for each run of a seed. */
#include <string.h>

#include "base/clock.h"
#include "sim/coroutine.h"
#include "base/thread.h"
#include "rig_inside.h"
#include "tests/calls.h"

#ifdef WR_TSAN
#define SEEDS 2 /* ThreadSanitizer: worlds are single-threaded, and their fibers slow */
#else
#define SEEDS 40
#endif

enum { TICKS = 30 };

static int rest(const void *arguments)
{
	const int64_t *ns = arguments;

	weir_sleep(*ns);
	return 0;
}

static const weir_kernel resting = {sizeof(weir_kernel), "rest", rest, NULL};
static const int64_t one = 1;
static const weir_tensor like = {sizeof(weir_tensor), NULL, 0, 1, &one, NULL, 0, 64, 1};

static weir_status work_for(weir_context *context, int64_t ns)
{
	weir_message *message = NULL;
	weir_status status = weir_context_create_tensor(context, &like, 0, &message);

	if (!status)
		status = weir_stream_launch(current_stream(context), &resting, &ns, sizeof ns);
	if (!status && weir_context_tick(context) % 5 == 4)
		status = weir_context_emit(context, 1, weir_message_ref(message));
	return status ? status : weir_context_emit(context, 0, message);
}

static weir_status produce(struct rig *rig, weir_context *context)
{
	(void)rig;
	return work_for(context, 5 * MS);
}

static weir_status produce_early(struct rig *rig, weir_context *context)
{
	(void)rig;
	return work_for(context, 3 * MS);
}

static weir_status produce_late(struct rig *rig, weir_context *context)
{
	(void)rig;
	return work_for(context, 10 * MS);
}

static weir_status produce_slowly(struct rig *rig, weir_context *context)
{
	(void)rig;
	return work_for(context, 40 * MS);
}

/* Asserts a tick every 10 ms from the first one on. */
static weir_status be_on_time(struct rig *rig, weir_context *context)
{
	int64_t tick = (int64_t)weir_context_tick(context), now = wr_now(), *first = rig->own;

	if (!tick)
		*first = now;
	if (now - *first - tick * 10 * MS > 2 * MS)
		rig_break(rig);
	return WEIR_OK;
}

static weir_status nothing(struct rig *rig, weir_context *context)
{
	(void)rig;
	(void)context;
	return WEIR_OK;
}

static weir_status compute_long(struct rig *rig, weir_context *context)
{
	(void)rig;
	(void)context;
	wr_thread_sleep(20 * MS);
	return WEIR_OK;
}

static int64_t armed_at[TICKS];

/* The work of a tick ends while the next one computes. */
static weir_status compute_and_produce(struct rig *rig, weir_context *context)
{
	weir_status status;

	(void)rig;
	wr_thread_sleep(23 * MS); /* not with the loop's looks, every 10 ms */
	status = work_for(context, 3 * MS);
	armed_at[weir_context_tick(context)] = wr_now();
	return status;
}

static weir_status be_soon(struct rig *rig, weir_context *context)
{
	if (wr_now() - armed_at[weir_context_tick(context)] > 5 * MS)
		rig_break(rig);
	return WEIR_OK;
}

/* Each message is taken soon after its work has ended, not at the next watch, every 50 ms. */
static void run_of(const char *text, unsigned workers)
{
	struct rig *rig = rig_of(text);
	int64_t began;

	rig->options.signal = "flag";
	rig->options.workers = workers;
	rig_on(rig, "a", produce);
	rig_on(rig, "end", nothing);
	for (size_t i = 0; i < rig->entity_count; i++)
		if (rig->entities[i].name[1] == '_')
			rig_on(rig, rig->entities[i].name, compute_long);
	rig_make(rig);
	began = wr_now();
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_int_equal(rig_ticks(rig, "end"), TICKS);
	assert_in_range(wr_now() - began, TICKS * 5 * MS, TICKS * 7 * MS);
	rig_destroy(rig);
}

static void alone(void)
{
	for (unsigned workers = 1; workers <= 3; workers++)
		run_of("a:call count=30 -> end:call gate=in", workers);
}

/* At least one worker is always free. */
static void beside_long_work(void)
{
	run_of("a:call count=30 -> end:call gate=in; b_:call count=5 period=25ms", 2);
	run_of("a:call count=30 -> end:call gate=in; b_:call count=7 period=23ms; "
	       "c_:call count=7 period=21ms",
	       3);
	run_of("a:call count=30 -> end:call gate=in; a.out2 -> b_:call", 2);
	run_of("a:call count=30 -> end:call gate=in; a.out2 -> b_:call; c_:call count=7 period=21ms", 3);
}

/* Entities get their compute functions by name. */
static void in_time(const char *text)
{
	static const struct {
		const char *name;
		rig_fn *compute;
	} roles[] = {
		{"early", produce_early}, {"mid", produce},      {"late", produce_late},
		{"slow", produce_slowly}, {"timed", be_on_time}, {"b_", compute_long},
		{"end", nothing},
	};
	struct rig *rig = rig_of(text);
	int64_t first = 0;

	rig->own = &first;
	rig->options.signal = "flag";
	rig->options.workers = 2;
	for (size_t i = 0; i < rig->entity_count; i++)
		for (size_t k = 0; k < sizeof roles / sizeof *roles; k++)
			if (!strcmp(rig->entities[i].name, roles[k].name))
				rig_on(rig, roles[k].name, roles[k].compute);
	rig_make(rig);
	rig_poller_sleeps(rig);
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_int_equal(rig_ticks(rig, "timed"), TICKS);
	rig_destroy(rig);
}

/* The poller runs the entity whose flag it saw written; another worker must take over the
 * polling before that. */
static void handing_over(void)
{
	in_time("mid:call count=30 period=10ms -> timed:call gate=in; early:call count=10 period=30ms -> "
		"b_:call gate=in");
}

/* The poller sleeps until shortly before the next flag that it expects; one armed
 * meanwhile may be due earlier. */
static void arming_beside_a_sleep(void)
{
	in_time("mid:call count=30 period=10ms -> timed:call gate=in; slow:call count=7 -> end:call gate=in");
}

static void flags_beside_their_sender(void)
{
	struct rig *rig = rig_of("s:source ticks=30 -> a:call capacity=32 -> end:call gate=in capacity=32");

	rig->options.signal = "flag";
	rig->options.workers = 2;
	rig_on(rig, "a", compute_and_produce);
	rig_on(rig, "end", be_soon);
	rig_make(rig);
	rig_poller_sleeps(rig);
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_int_equal(rig_ticks(rig, "end"), TICKS);
	rig_destroy(rig);
}

/* A pusher skipped its wake-up because a worker was spinning, and that worker then started a long compute. */
static void relying_on_a_spinner(void)
{
	in_time("late:call count=30 period=10ms -> end:call gate=in; b_:call count=10 period=30ms; "
		"timed:call count=30 period=10ms");
}

static void g04_a_poller_that_gets_work_hands_over(void **state)
{
	(void)state;
	rig_in_worlds(SEEDS, handing_over);
}

static void g04_an_armed_flag_wakes_a_poller_that_sleeps_for_a_later_one(void **state)
{
	(void)state;
	rig_in_worlds(SEEDS, arming_beside_a_sleep);
}

static void s09_work_left_to_a_spinner_is_passed_on_when_it_computes(void **state)
{
	(void)state;
	rig_in_worlds(SEEDS, relying_on_a_spinner);
}

static void g04_a_written_flag_is_seen_at_once(void **state)
{
	(void)state;
	rig_in_worlds(SEEDS, alone);
}

static void g04_s09_a_flag_is_seen_while_the_next_tick_of_its_sender_computes(void **state)
{
	(void)state;
	rig_in_worlds(SEEDS, flags_beside_their_sender);
}

static void g04_s09_one_worker_polls_while_others_compute(void **state)
{
	(void)state;
	rig_in_worlds(SEEDS, beside_long_work);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(g04_a_written_flag_is_seen_at_once),
		cmocka_unit_test(g04_s09_one_worker_polls_while_others_compute),
		cmocka_unit_test(g04_s09_a_flag_is_seen_while_the_next_tick_of_its_sender_computes),
		cmocka_unit_test(g04_a_poller_that_gets_work_hands_over),
		cmocka_unit_test(g04_an_armed_flag_wakes_a_poller_that_sleeps_for_a_later_one),
		cmocka_unit_test(s09_work_left_to_a_spinner_is_passed_on_when_it_computes),
	};

	return cmocka_run_group_tests_name("scheduler/pollers", tests, NULL, NULL);
}
