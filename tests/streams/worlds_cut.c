/*
 * Many simulated worlds of one hard moment each: a run is cut short, the system fails while flags are armed,
 * another thread looks at a stream between the begin of a tick and its record.
 */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "rig.h"
#include "sim/simulation.h"
#include "test.h"
#include "tests/bugs/bug.h"

#define US 1000
enum { BOUND = 2, CUT_SEEDS = 3000, TICK_SEEDS = 1000 };

struct cut {
	struct wr_sim *sim;
	struct wr_system *system;
	weir_stream *streams[3];
	struct rig_payload payloads[3];
	struct wr_random random;
	uint64_t seed;
	_Atomic bool over;
	int run, live; /* live: not 0 if a run left references or dropped too many */
};

/* In every other world nothing takes time, so that a cut can come at any step of a callback. */
static int64_t draw_time(struct cut *cut, uint64_t most)
{
	return cut->seed % 2 ? (int64_t)wr_random_below(&cut->random, most) * US : 0;
}

/* Failures are expected once the device has failed. */
static void enqueue_something(struct cut *cut, int i, weir_fence *fence)
{
	weir_stream *stream = cut->streams[i];
	const struct rig_work nothing = {NULL, draw_time(cut, 100), 0};

	wr_stream_begin_tick(stream);
	weir_stream_launch(stream, &rig_sleep, &nothing, sizeof nothing);
	if (weir_stream_record(stream, fence))
		*fence = (weir_fence){0, 0};
	else
		wr_flag_write(stream, WR_FLAGS_ALL);
}

static void retire_as_worker(struct cut *cut, const weir_fence *fences)
{
	struct rig_payload *payload = &cut->payloads[cut->run++];

	memcpy(payload->fences, fences, sizeof payload->fences);
	payload->retired = (struct wr_deferred_free){
		.fences = payload->fences, .count = 2, .release = rig_count_release, .destructor = true};
	wr_thread_set_local(cut);
	if (wr_defer_free(cut->system, &payload->retired))
		rig_count_release(&payload->retired);
	wr_thread_set_local(NULL);
}

/* Calls from outside while the run is cut short. Sleeps in between, as detach may have to wait for it. */
static void look_from_outside(void *arg)
{
	struct cut *cut = arg;

	for (int i = 1; !wr_load(&cut->over); i++) {
		wr_system_run_deferred_frees(cut->system, false);
		for (int k = 0; k < 3; k++)
			wr_stream_idle(cut->streams[k]);
		if (cut->seed % 2 || i % 100 == 0)
			wr_thread_sleep(cut->seed % 2 ? 5 * US : 1);
		else
			wr_thread_yield();
	}
}

static void run_and_cut(struct cut *cut)
{
	struct rig_waker *waker = wr_alloc(1, sizeof *waker);
	struct wr_thread onlooker;
	weir_fence fences[3];
	wr_token token;

	assert_non_null(waker);
	rig_fill_waker(waker);
	wr_system_attach(cut->system, &waker->waker);
	for (int i = 0; i < 3; i++) {
		enqueue_something(cut, i, &fences[i]);
		wr_signal_inline(cut->system, 1, &fences[i], 1, &token);
	}
	for (uint32_t i = 0; i < 3; i++)
		if (!wr_signal_arm(cut->system, 2 + i, fences, 3, &token) && i == 1)
			wr_signal_cancel(cut->system, token);
	for (uint32_t i = 0; i < 3; i++)
		if (!wr_flag_arm(cut->system, 5 + i, fences, 3, &token) && i == 1)
			wr_signal_cancel(cut->system, token);
	wr_flags_poll(cut->system, wr_now());
	if (!wr_flag_arm(cut->system, 8, fences, 3, &token) && cut->seed % 4 < 2)
		wr_signal_cancel(cut->system, token);
	retire_as_worker(cut, fences);
	wr_store(&cut->over, false);
	assert_int_equal(wr_thread_start(&onlooker, "onlooker", look_from_outside, cut), WEIR_OK);
	wr_thread_sleep(draw_time(cut, 200));
	for (uint64_t i = wr_random_below(&cut->random, 60); i > 0; i--)
		wr_switch();
	wr_system_collect(cut->system);
	wr_system_detach(cut->system);
	cut->live |= wr_load(&waker->live);
	memset(waker, 0, sizeof *waker); /* a call through it would crash */
	wr_free(waker);
	wr_store(&cut->over, true);
	wr_thread_join(&onlooker);
}

static void run_cuts(void *arg)
{
	struct cut *cut = arg;
	struct wr_system_options options = {.backend = "sim", .seed = cut->seed, .sim = cut->sim};
	struct wr_sim_knobs knobs = {
		.work_max = 50 * US, .call_max = 100 * US, .fault = 30, .inside = 200, .after_fault = true};

	assert_int_equal(wr_system_create(&cut->system, &options), WEIR_OK);
	if (cut->seed % 2 == 0)
		knobs = (struct wr_sim_knobs){.fault = 30};
	wr_system_set_knobs(cut->system, &knobs);
	cut->system->signals.bound = BOUND;
	for (int i = 0; i < 3; i++)
		assert_int_equal(
			wr_stream_open(cut->system, &(struct wr_stream_spec){0}, "s", &cut->streams[i]),
			WEIR_OK);
	for (int i = 0; i < 3; i++)
		run_and_cut(cut);
	assert_int_equal(wr_system_outstanding(cut->system), 0);
	assert_int_equal(wr_system_destroy(cut->system), WEIR_OK);
	for (int i = 0; i < 3; i++)
		assert_int_equal(cut->payloads[i].released, 1); /* each was freed once */
}

static void s4_f08_a_run_that_is_cut_short_leaves_nothing_behind(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= CUT_SEEDS; seed++) {
		struct cut cut = {.seed = seed};

		wr_tokens_forget();
		wr_random_seed(&cut.random, seed, 5);
		assert_int_equal(wr_sim_create(&cut.sim, seed, WR_SIM_BY_SEED), WEIR_OK);
		if (wr_sim_call(cut.sim, run_cuts, &cut) || cut.live)
			fail_msg("seed %llu: %d references, %s", (unsigned long long)seed, cut.live,
				 weir_last_error());
		wr_sim_destroy(cut.sim);
	}
}

/* --- flags are armed while the system fails: each is fired or refused --- */

enum { FLAGS = 4 };

struct failing {
	struct rig_waker waker;
	struct wr_system *system;
	weir_fence fence;
	_Atomic bool over, armed[FLAGS];
};

static void arm_flags(void *arg)
{
	struct failing *failing = arg;
	wr_token token;

	for (uint32_t i = 0; i < FLAGS; i++)
		wr_store(&failing->armed[i], !wr_flag_arm(failing->system, i, &failing->fence, 1, &token));
}

static void fail_all(void *arg)
{
	wr_system_fail(((struct failing *)arg)->system, "the device is gone");
}

static void look_meanwhile(void *arg)
{
	struct failing *failing = arg;

	while (!wr_load(&failing->over)) {
		wr_flags_poll(failing->system, wr_now());
		wr_thread_yield();
	}
}

static void arm_and_fail(struct failing *failing)
{
	static void (*const parts[])(void *arg) = {look_meanwhile, arm_flags, fail_all};
	struct wr_thread threads[3] = {{0}};

	for (int i = 0; i < 3; i++)
		assert_int_equal(wr_thread_start(&threads[i], "part", parts[i], failing), WEIR_OK);
	wr_thread_join(&threads[1]);
	wr_thread_join(&threads[2]);
	wr_store(&failing->over, true);
	wr_thread_join(&threads[0]);
	wr_flags_poll(failing->system, wr_now());
}

static void run_failing(void *arg)
{
	struct cut *cut = arg;
	struct wr_system_options options = {.backend = "sim", .seed = cut->seed, .sim = cut->sim};
	const struct rig_work second = {NULL, 1000000 * (int64_t)US, 0};
	struct failing failing = {.system = NULL};
	weir_stream *stream;

	assert_int_equal(wr_system_create(&failing.system, &options), WEIR_OK);
	rig_fill_waker(&failing.waker);
	wr_system_attach(failing.system, &failing.waker.waker);
	assert_int_equal(wr_stream_open(failing.system, &(struct wr_stream_spec){0}, "s", &stream), WEIR_OK);
	assert_int_equal(weir_stream_launch(stream, &rig_sleep, &second, sizeof second), WEIR_OK);
	failing.fence = rig_record(stream);
	assert_int_equal(wr_flag_write(stream, WR_FLAGS_ALL), WEIR_OK);
	arm_and_fail(&failing);
	assert_int_equal(wr_flags_armed(failing.system), 0);
	for (int i = 0; i < FLAGS; i++)
		assert_in_range(wr_load(&failing.waker.poked[i]), wr_load(&failing.armed[i]), 1);
	wr_system_detach(failing.system);
	assert_int_equal(wr_system_destroy(failing.system), WEIR_OK);
}

static void g4_f10_a_flag_that_is_armed_while_the_system_fails_is_told(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= TICK_SEEDS; seed++) {
		struct cut cut = {.seed = seed};

		wr_tokens_forget();
		assert_int_equal(wr_sim_create(&cut.sim, seed, WR_SIM_BY_SEED), WEIR_OK);
		if (wr_sim_call(cut.sim, run_failing, &cut))
			fail_msg("seed %llu: %s", (unsigned long long)seed, weir_last_error());
		wr_sim_destroy(cut.sim);
	}
}

/* --- a tick whose stream another thread looks at between its begin and its record --- */

struct ticking {
	struct rig_waker waker;
	struct wr_system *system;
	weir_stream *stream;
	_Atomic bool over, unreferenced; /* unreferenced: had work without a reference */
};

/* The only reference beside the stream's is the worker's, which it drops after the tick. */
static void tick(struct ticking *ticking)
{
	const struct rig_work nothing = {NULL, 500 * US, 0};

	wr_fetch_add(&ticking->waker.live, 1);
	wr_stream_begin_tick(ticking->stream);
	wr_switch();
	assert_int_equal(weir_stream_launch(ticking->stream, &rig_sleep, &nothing, sizeof nothing), WEIR_OK);
	rig_record(ticking->stream);
	wr_fetch_sub(&ticking->waker.live, 1);
}

static void look_at_tick(void *arg)
{
	struct ticking *ticking = arg;
	int64_t next;

	for (int i = 1; !wr_load(&ticking->over); i++) {
		assert_int_equal(wr_system_watch(ticking->system, wr_now(), &next), WEIR_OK);
		if (i % 8 == 0)
			wr_thread_sleep(50 * US);
	}
}

static void run_ticks(void *arg)
{
	struct ticking *ticking = arg;
	struct wr_system_options options = {.backend = "sim", .sim = wr_sim_current()};
	struct wr_sim_knobs knobs = {0};
	struct wr_thread looker;

	assert_int_equal(wr_system_create(&ticking->system, &options), WEIR_OK);
	wr_system_set_knobs(ticking->system, &knobs);
	rig_fill_waker(&ticking->waker);
	wr_system_attach(ticking->system, &ticking->waker.waker);
	assert_int_equal(wr_stream_open(ticking->system, &(struct wr_stream_spec){0}, "s", &ticking->stream),
			 WEIR_OK);
	assert_int_equal(wr_thread_start(&looker, "looker", look_at_tick, ticking), WEIR_OK);
	for (int i = 0; i < 4; i++) {
		tick(ticking);
		while (!wr_stream_idle(ticking->stream)) {
			if (!wr_load(&ticking->waker.live) && !wr_stream_idle(ticking->stream))
				wr_store(&ticking->unreferenced, true);
			wr_thread_sleep(50 * US);
		}
	}
	wr_store(&ticking->over, true);
	wr_thread_join(&looker);
	wr_system_detach(ticking->system);
	assert_int_equal(wr_system_destroy(ticking->system), WEIR_OK);
}

static void s4_e2_a_stream_with_work_holds_a_reference(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= TICK_SEEDS; seed++) {
		struct wr_sim *sim;
		struct ticking ticking = {.system = NULL};

		wr_tokens_forget();
		assert_int_equal(wr_sim_create(&sim, seed, WR_SIM_BY_SEED), WEIR_OK);
		if (wr_sim_call(sim, run_ticks, &ticking) || wr_load(&ticking.unreferenced) ||
		    wr_load(&ticking.waker.live))
			fail_msg("seed %llu: %d references, %s", (unsigned long long)seed,
				 wr_load(&ticking.waker.live), weir_last_error());
		wr_sim_destroy(sim);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(s4_f08_a_run_that_is_cut_short_leaves_nothing_behind),
		cmocka_unit_test(g4_f10_a_flag_that_is_armed_while_the_system_fails_is_told),
		cmocka_unit_test(s4_e2_a_stream_with_work_holds_a_reference),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
