/*
 * Many simulated worlds, each under its own schedule: a few producers and readers with streams, a loop, a
 * device with delays, duplicate callbacks and slow enqueueing. In all of them an entity that is poked for an
 * armed signal finds its fences complete, no wait lasts for ever, memory is not reused while a kernel still
 * uses it, and references balance. Each seeded bug of streams/ must be found.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "rig.h"
#include "sim/simulation.h"
#include "test.h"
#include "tests/bugs/bug.h"

#define US 1000
enum {
	WORKERS = 3,
	ROUNDS = 4,
	WORDS = 64,
	BOUND = 2,
	SEEDS = 3000,
	BUG_SEEDS = 1000,
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
static void poke(struct wr_waker *waker, uint32_t entity, uint64_t token)
{
	struct world *world = world_of(waker);

	(void)token;
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
		assert_int_equal(wr_flag_write(stream, WR_FLAGS_ALL), WEIR_OK);
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
			assert_int_equal(wr_system_arm_kicks(world->system, true, true), WEIR_OK);
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

	world->waker = (struct wr_waker){poke, kick, take, drop, take};
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
		cmocka_unit_test(t4_a_payload_that_returns_early_is_found),
		cmocka_unit_test(g1_a_token_without_generation_is_found),
	};
	const char *found = argc > 1 ? broken_promise(strtoull(argv[1], NULL, 10)) : NULL;

	if (argc > 1)
		return found ? fprintf(stderr, "%s\n", found), 1 : 0;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
