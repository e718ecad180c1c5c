/* Who looks at the doorbells (G4, S9), by the time it takes: a world's, so the same again for a seed. */
#include "base/clock.h"
#include "base/coroutine.h"
#include "base/thread.h"
#include "rig.h"

#ifdef WR_TSAN
#define SEEDS 2		/* worlds are one thread: nothing for it to see, and fibers are slow under it */
#else
#define SEEDS 40
#endif

enum { TICKS = 30 };

static int rest(const void *arguments)
{
	(void)arguments;
	weir_sleep(5 * MS);
	return 0;
}

static const weir_kernel resting = {sizeof(weir_kernel), "rest", rest, NULL};
static const int64_t one = 1;
static const weir_tensor like = {sizeof(weir_tensor), NULL, 0, 1, &one, NULL, 0, 64, 1};

static weir_status produce(struct rig *rig, weir_context *context)
{
	weir_message *message = NULL;
	weir_status status = weir_context_alloc(context, &like, false, &message);

	(void)rig;
	if (!status)
		status = weir_stream_launch(weir_context_stream(context), &resting, "", 1);
	if (!status && weir_context_tick(context) % 5 == 4)
		status = weir_context_emit(context, 1, weir_message_ref(message));
	return status ? status : weir_context_emit(context, 0, message);
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

/* Each message is taken soon after its work has ended: not when the watch looks, every 50 ms. */
static void run_of(const char *text, unsigned workers)
{
	struct rig *rig = rig_of(text);
	int64_t began;

	rig->options.signal = "doorbell";
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

/* One worker at least is always there. */
static void beside_long_work(void)
{
	run_of("a:call count=30 -> end:call gate=in; b_:call count=5 period=25ms", 2);
	run_of("a:call count=30 -> end:call gate=in; b_:call count=7 period=23ms; "
	       "c_:call count=7 period=21ms", 3);
	run_of("a:call count=30 -> end:call gate=in; a.out2 -> b_:call", 2);
	run_of("a:call count=30 -> end:call gate=in; a.out2 -> b_:call; c_:call count=7 period=21ms", 3);
}

static void g04_what_has_rung_is_seen_at_once(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= SEEDS; seed++)
		rig_in_world(seed, alone);
}

static void g04_s09_somebody_looks_while_others_compute(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= SEEDS; seed++)
		rig_in_world(seed, beside_long_work);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(g04_what_has_rung_is_seen_at_once),
		cmocka_unit_test(g04_s09_somebody_looks_while_others_compute),
	};

	return cmocka_run_group_tests_name("scheduler/pollers", tests, NULL, NULL);
}
