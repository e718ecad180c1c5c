/*
 * Many simulated worlds, each under its own schedule: a few producers and readers with streams, a loop, a
 * device with delays, duplicate callbacks and slow enqueueing. In all of them an entity that is poked for an
 * armed signal finds its fences complete, no wait lasts for ever, memory is not reused while a kernel still
 * uses it, and references balance. Each seeded bug of streams/ must be found.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bug.h"
#include "base/clock.h"
#include "base/memory.h"
#include "sim/simulation.h"
#include "rig.h"
#include "test.h"

#define US 1000
enum {
	WORKERS = 3,
	ROUNDS = 4,
	WORDS = 64,
	BOUND = 2,
	SEEDS = 3000,
	BUG_SEEDS = 1000,
	CUT_SEEDS = 3000,
	TICK_SEEDS = 1000,
	ENTITIES = WORKERS * ROUNDS,
	DONE = 1000
};

struct world;

/* One block of memory, written by one stream, read by another, freed when both are complete. */
struct payload {
	struct wr_deferred_free retired;
	struct world *world;
	uint32_t *words;
	uint32_t value;
	weir_fence fences[2];
};

struct worker {
	struct world *world;
	struct wr_thread thread;
	struct wr_parker parker;
	weir_stream *stream, *reader;
	uint32_t index;
};

struct world {
	struct wr_waker waker;
	struct wr_sim *sim;
	struct wr_system *system;
	struct worker workers[WORKERS];
	struct wr_parker loop;
	struct wr_thread poller;
	struct payload payloads[ENTITIES];
	_Atomic int live, working, poked[ENTITIES];
	_Atomic int torn, early; /* memory changed under a reader; poked before the fences were complete */
	_Atomic int released;
	uint64_t seed;
};

/* --- the waker --- */

static struct world *world_of(struct wr_waker *waker)
{
	return (struct world *)waker;
}

static void kick(struct wr_waker *waker)
{
	wr_unpark(&world_of(waker)->loop);
}

static void take(struct wr_waker *waker)
{
	wr_fetch_add(&world_of(waker)->live, 1);
}

static void drop(struct wr_waker *waker)
{
	if (wr_fetch_sub(&world_of(waker)->live, 1) == 1)
		kick(waker);
}

/* As in the scheduler: each poke takes a reference, unless the entity is DONE. */
static void poke(struct wr_waker *waker, uint32_t entity)
{
	struct world *world = world_of(waker);

	take(waker);
	if (wr_fetch_add(&world->poked[entity], 1) >= DONE)
		drop(waker);
	else
		wr_unpark(&world->workers[entity / ROUNDS].parker);
}

static void drop_many(struct world *world, int n)
{
	while (n-- > 0)
		drop(&world->waker);
}

/* --- kernels --- */

static int fill(const void *arguments)
{
	struct payload *payload = *(struct payload *const *)arguments;

	for (int i = 0; i < WORDS; i++)
		payload->words[i] = payload->value;
	weir_sleep(20 * US);
	return 0;
}

static int check(const void *arguments)
{
	struct payload *payload = *(struct payload *const *)arguments;

	for (int i = 0; i < WORDS; i++) {
		if (payload->words[i] != payload->value)
			wr_store(&payload->world->torn, 1);
		if (i % 16 == 0)
			weir_sleep(10 * US);
	}
	return 0;
}

static int rest(const void *arguments)
{
	weir_sleep(((const struct rig_work *)arguments)->ns);
	return 0;
}

static const weir_kernel sleep_kernel = {.size = sizeof(weir_kernel), .name = "sleep", .host = rest};
static const weir_kernel fill_kernel = {.size = sizeof(weir_kernel), .name = "fill", .host = fill};
static const weir_kernel check_kernel = {.size = sizeof(weir_kernel), .name = "check", .host = check};

static void launch(weir_stream *stream, const weir_kernel *kernel, struct payload *payload)
{
	assert_int_equal(weir_stream_launch(stream, kernel, &payload, sizeof payload), WEIR_OK);
}

/* --- a worker --- */

static void release(struct wr_deferred_free *retired)
{
	struct payload *payload = (struct payload *)retired;

	wr_system_free(payload->world->system, 0, payload->words, WORDS * sizeof *payload->words);
	wr_fetch_add(&payload->world->released, 1);
}

/* Some worlds signal by flag. */
static bool uses_flags(const struct world *world)
{
	return world->seed % 4 == 1;
}

static weir_fence record(struct world *world, weir_stream *stream)
{
	weir_fence fence = rig_record(stream);

	if (uses_flags(world))
		assert_int_equal(wr_flag_write(stream), WEIR_OK);
	return fence;
}

static weir_status arm(struct world *world, uint32_t entity, const weir_fence *fences, wr_token *token)
{
	return uses_flags(world) ? wr_flag_arm(world->system, entity, fences, 2, token)
				 : wr_signal_arm(world->system, entity, fences, 2, token);
}

/* A tick: allocates memory, launches a kernel that writes it and one on another stream that reads it. */
static void produce(struct worker *self, struct payload *payload, uint32_t entity)
{
	void *memory;

	assert_int_equal(wr_system_alloc(self->world->system, 0, WORDS * sizeof *payload->words, &memory),
			 WEIR_OK);
	*payload = (struct payload){.world = self->world, .words = memory, .value = entity + 1};
	wr_stream_begin_tick(self->stream);
	wr_stream_begin_tick(self->reader);
	launch(self->stream, &fill_kernel, payload);
	payload->fences[0] = record(self->world, self->stream);
	assert_int_equal(weir_stream_wait(self->reader, payload->fences[0]), WEIR_OK);
	launch(self->reader, &check_kernel, payload);
	payload->fences[1] = record(self->world, self->reader);
	payload->retired =
		(struct wr_deferred_free){.fences = payload->fences, .count = 2, .release = release};
}

static bool complete(struct world *world, const weir_fence *fences)
{
	return !wr_fence_query(world->system, fences[0]) && !wr_fence_query(world->system, fences[1]);
}

/* As a gated entity does: queries, arms, waits for the poke, queries again. */
static void wait_for_fences(struct worker *self, const weir_fence *fences, uint32_t entity)
{
	struct world *world = self->world;
	wr_token token;

	while (!complete(world, fences)) {
		weir_status status = arm(world, entity, fences, &token);

		assert_true(status == WEIR_OK || status == WEIR_E_BUSY);
		if (status == WEIR_E_BUSY)
			drop(&world->waker); /* the place in the FIFO held it */
		while (!wr_load(&world->poked[entity]))
			wr_park(&self->parker, WR_FOREVER);
		drop_many(world, wr_exchange(&world->poked[entity], 0) - (status == WEIR_E_BUSY));
		if (status == WEIR_OK && !complete(world, fences))
			wr_store(&world->early, 1);
	}
}

static void cancel(struct worker *self, const weir_fence *fences, uint32_t entity)
{
	wr_token token = 0;

	if (!arm(self->world, entity, fences, &token))
		wr_signal_cancel(self->world->system, token);
	wr_signal_leave_fifo(self->world->system, entity);
}

static void run_worker(void *arg)
{
	struct worker *self = arg;
	struct world *world = self->world;

	wr_thread_set_local(self);
	for (uint32_t round = 0; round < ROUNDS; round++) {
		uint32_t entity = self->index * ROUNDS + round;
		struct payload *payload = &world->payloads[entity];
		weir_fence fences[2];

		produce(self, payload, entity);
		memcpy(fences, payload->fences, sizeof fences);
		if (wr_defer_free(world->system, &payload->retired))
			release(&payload->retired);
		if ((world->seed + entity) % 3 == 0)
			cancel(self, fences, entity);
		else
			wait_for_fences(self, fences, entity);
		drop_many(world, wr_exchange(&world->poked[entity], DONE));
	}
	wr_fetch_sub(&world->working, 1);
	drop(&world->waker);
}

/* Polls at the times that wr_flags_poll names, and at once when something is armed meanwhile. */
static void run_poller(void *arg)
{
	struct world *world = arg;

	while (wr_load(&world->working)) {
		int64_t now = wr_now(), next = wr_flags_poll(world->system, now);

		wr_thread_sleep(next <= now ? 1 : next - now < 20 * US ? next - now : 20 * US);
	}
}

/* --- the loop, on the world's main fiber --- */

static void run_loop(struct world *world)
{
	int64_t next;

	while (wr_load(&world->live)) {
		wr_system_collect(world->system);
		assert_int_equal(wr_system_watch(world->system, wr_now(), &next), WEIR_OK);
		if (!wr_load(&world->working))
			assert_int_equal(wr_system_arm_kicks(world->system), WEIR_OK);
		if (wr_load(&world->live))
			wr_park(&world->loop, next);
	}
}

static void draw_knobs(struct world *world)
{
	struct wr_random random;
	struct wr_sim_knobs knobs = {.work_max = 50 * US, .twice = 200};

	wr_random_seed(&random, world->seed, 99);
	knobs.call_max = (int64_t)wr_random_below(&random, 300) * US;
	knobs.inside = wr_random_below(&random, 2) ? 300 : 0;
	knobs.blocked = wr_random_below(&random, 4) ? 0 : 100;
	wr_system_set_knobs(world->system, &knobs);
}

static void open_world(struct world *world)
{
	struct wr_system_options options = {.backend = "sim", .seed = world->seed, .sim = world->sim};

	world->waker = (struct wr_waker){poke, kick, take, drop};
	assert_int_equal(wr_system_create(&world->system, &options), WEIR_OK);
	draw_knobs(world);
	world->system->signals.bound = BOUND;
	wr_system_attach(world->system, &world->waker);
	wr_store(&world->live, WORKERS);
	wr_store(&world->working, WORKERS);
	for (uint32_t i = 0; i < WORKERS; i++) {
		struct worker *worker = &world->workers[i];

		worker->world = world;
		worker->index = i;
		assert_int_equal(
			wr_stream_open(world->system, &(struct wr_stream_spec){0}, "writer", &worker->stream),
			WEIR_OK);
		assert_int_equal(
			wr_stream_open(world->system, &(struct wr_stream_spec){0}, "reader", &worker->reader),
			WEIR_OK);
	}
}

static void run_world(void *arg)
{
	struct world *world = arg;

	open_world(world);
	for (int i = 0; i < WORKERS; i++)
		assert_int_equal(
			wr_thread_start(&world->workers[i].thread, "worker", run_worker, &world->workers[i]),
			WEIR_OK);
	if (uses_flags(world))
		assert_int_equal(wr_thread_start(&world->poller, "poller", run_poller, world), WEIR_OK);
	run_loop(world);
	wr_thread_join(&world->poller);
	for (int i = 0; i < WORKERS; i++)
		wr_thread_join(&world->workers[i].thread);
	wr_system_detach(world->system);
	assert_int_equal(wr_load(&world->live), 0);
	assert_int_equal(wr_system_destroy(world->system), WEIR_OK);
	world->system = NULL;
}

/* Runs one world. Returns what went wrong, or NULL. */
static const char *broken_promise(uint64_t seed)
{
	struct world *world = wr_alloc(1, sizeof *world);
	const char *found = NULL;
	weir_status status;

	assert_non_null(world);
	wr_tokens_forget(); /* so that a seed does not depend on the worlds before */
	world->seed = seed;
	assert_int_equal(wr_sim_create(&world->sim, seed, WR_SIM_BY_SEED), WEIR_OK);
	status = wr_sim_call(world->sim, run_world, world);
	if (status)
		found = weir_last_error();
	else if (wr_load(&world->torn))
		found = "memory changed under its reader";
	else if (wr_load(&world->early))
		found = "poked before the fences were complete";
	else if (wr_load(&world->released) != ENTITIES)
		found = "memory did not come back";
	wr_sim_destroy(world->sim);
	wr_free(world);
	return found;
}

static void s4_g1_g2_t4_hold_in_all_worlds(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		const char *found = broken_promise(seed);

		if (found)
			fail_msg("seed %llu: %s", (unsigned long long)seed, found);
	}
}

/* --- a series of runs that are cut short, on a device that may fail --- */

struct cut {
	struct wr_sim *sim;
	struct wr_system *system;
	weir_stream *streams[3];
	struct payload payloads[3];
	struct wr_random random;
	uint64_t seed;
	_Atomic bool over;
	int run, live; /* live: not 0 if a run left references or dropped too many */
};

static void count_release(struct wr_deferred_free *retired)
{
	((struct payload *)retired)->value++;
}

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
	weir_stream_launch(stream, &sleep_kernel, &nothing, sizeof nothing);
	if (weir_stream_record(stream, fence))
		*fence = (weir_fence){0, 0};
	else
		wr_flag_write(stream);
}

static void retire_as_worker(struct cut *cut, const weir_fence *fences)
{
	struct payload *payload = &cut->payloads[cut->run++];

	memcpy(payload->fences, fences, sizeof payload->fences);
	payload->retired = (struct wr_deferred_free){
		.fences = payload->fences, .count = 2, .release = count_release, .destructor = true};
	wr_thread_set_local(cut);
	if (wr_defer_free(cut->system, &payload->retired))
		count_release(&payload->retired);
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
		assert_int_equal(cut->payloads[i].value, 1); /* each was freed once */
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
	assert_int_equal(weir_stream_launch(stream, &sleep_kernel, &second, sizeof second), WEIR_OK);
	failing.fence = rig_record(stream);
	assert_int_equal(wr_flag_write(stream), WEIR_OK);
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
	assert_int_equal(weir_stream_launch(ticking->stream, &sleep_kernel, &nothing, sizeof nothing),
			 WEIR_OK);
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

static void assert_found(enum wr_bug bug)
{
	uint64_t seed = 1;

	wr_bug_active = bug;
	while (seed <= BUG_SEEDS && !broken_promise(seed))
		seed++;
	wr_bug_active = WR_BUG_NONE;
	assert_true(seed <= BUG_SEEDS);
}

static void t4_a_payload_that_returns_early_is_found(void **state)
{
	(void)state;
	assert_found(WR_BUG_PAYLOAD_EARLY);
}

static void g1_a_token_without_generation_is_found(void **state)
{
	(void)state;
	assert_found(WR_BUG_TOKEN_WITHOUT_GENERATION);
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(s4_g1_g2_t4_hold_in_all_worlds),
		cmocka_unit_test(s4_f08_a_run_that_is_cut_short_leaves_nothing_behind),
		cmocka_unit_test(g4_f10_a_flag_that_is_armed_while_the_system_fails_is_told),
		cmocka_unit_test(s4_e2_a_stream_with_work_holds_a_reference),
		cmocka_unit_test(t4_a_payload_that_returns_early_is_found),
		cmocka_unit_test(g1_a_token_without_generation_is_found),
	};
	const char *found = argc > 1 ? broken_promise(strtoull(argv[1], NULL, 10)) : NULL;

	if (argc > 1)
		return found ? fprintf(stderr, "%s\n", found), 1 : 0;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
