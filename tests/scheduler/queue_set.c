/* The set of queues with new messages (scheduler/queue.h), under many orders of its atomics. */
#include "base/memory.h"
#include "queue_rig.h"
#include "sim/simulation.h"
#include "tests/bugs/bug.h"

#define SEEDS    1000
#define SENDERS  3
#define MESSAGES 4

/* A fiber records the fault; the test checks it after the simulation has stopped. */
struct world {
	struct rig rig;
	struct wr_sim *sim;
	struct wr_fan_in *set;
	struct wr_connection *connections[SENDERS];
	bool each, closes; /* each: an any-size port; closes: the senders close */
	_Atomic bool poked;
	_Atomic unsigned next_sender, ended;
	uint64_t received[SENDERS];
	const char *fault;
};

static void note(struct world *world, bool holds, const char *fault)
{
	if (!holds && !world->fault)
		world->fault = fault;
}

static void send(void *arg)
{
	struct world *world = arg;
	struct wr_local local;
	unsigned own = wr_fetch_add(&world->next_sender, 1);
	struct wr_connection *connection = world->connections[own];

	work_for(&local, 1 + own, world->rig.pool);
	for (uint64_t i = 1; i <= MESSAGES; i++) {
		note(world, wr_connection_push(connection, numbered(world->rig.pool, i)) == WR_PUSHED,
		     "no room");
		wr_exchange(&world->poked, true);
	}
	if (world->closes) {
		wr_connection_close(connection);
		wr_exchange(&world->poked, true);
	}
	wr_fetch_add(&world->ended, 1);
	be_foreign();
}

static void take(struct world *world, uint32_t place)
{
	weir_message *taken[MESSAGES + 1];
	size_t n = wr_queue_take(&world->connections[place]->queue, taken);

	for (size_t i = 0; i < n; i++) {
		note(world, number_of(taken[i]) == ++world->received[place], "out of order");
		weir_message_unref(taken[i]);
	}
}

/* Like a review and a tick. */
static void tick(struct world *world)
{
	size_t n = 1 + wr_random_below(wr_sim_random(world->sim), 3), before = wr_fan_in_messages(world->set),
	       seen = 0;

	wr_fan_in_close_fronts(world->set, world->each ? 1 : n);
	for (; wr_fan_in_at(world->set, seen); seen++)
		;
	note(world, seen == world->set->front_messages && seen > 0, "not all of the fronts is seen");
	note(world, wr_fan_in_messages(world->set) >= before, "what was held is gone");
	for (size_t i = 0; i < world->set->front_count; i++)
		take(world, world->set->fronts[i]);
	wr_fan_in_taken(world->set);
}

static bool enough(struct world *world)
{
	return world->each ? wr_fan_in_least(world->set) > 0 : wr_fan_in_messages(world->set) > 0;
}

static bool got_all(const struct world *world)
{
	for (size_t i = 0; i < SENDERS; i++)
		if (world->received[i] != MESSAGES)
			return false;
	return true;
}

/* Ticks while there are enough messages. Returns true for NEVER. */
static bool review(struct world *world)
{
	for (;;) {
		bool closed = wr_fan_in_closed(world->set);

		if (enough(world)) {
			tick(world);
			continue;
		}
		if (world->each ? !wr_fan_in_ended(world->set, 1) : !closed || enough(world))
			return false;
		note(world, got_all(world), "NEVER, and there are messages");
		return true;
	}
}

/* Every poke is followed by a review, so everything that was pushed is received. */
static void receive(void *arg)
{
	struct world *world = arg;
	struct wr_local local;
	bool over = false, poked = true;

	work_for(&local, 0, world->rig.pool);
	while (poked || !over) {
		over = wr_load(&world->ended) == SENDERS;
		poked = wr_exchange(&world->poked, false);
		if (poked && review(world))
			break;
		if (!poked)
			wr_thread_yield();
	}
	note(world, got_all(world), "a message was not seen");
	be_foreign();
}

static void all(void *arg)
{
	struct wr_thread threads[SENDERS + 1] = {{0}};

	note(arg, !wr_thread_start(&threads[SENDERS], "receiver", receive, arg), "no fiber");
	for (size_t i = 0; i < SENDERS; i++)
		note(arg, !wr_thread_start(&threads[i], "sender", send, arg), "no fiber");
	for (size_t i = 0; i <= SENDERS; i++)
		wr_thread_join(&threads[i]);
}

static void make_connections(struct world *world)
{
	for (size_t i = 0; i < SENDERS; i++) {
		world->connections[i] = wr_alloc_aligned(64, sizeof *world->connections[i]);
		assert_int_equal(wr_queue_init(&world->connections[i]->queue, (uint32_t)i, MESSAGES,
					       WEIR_POLICY_BLOCK),
				 WEIR_OK);
	}
	world->set = wr_fan_in_make(SENDERS);
	assert_non_null(world->set);
	wr_fan_in_reset(world->set, world->connections, world->each);
}

/* Runs the simulation of a seed. Returns the fault, or NULL. */
static const char *run(uint64_t seed)
{
	struct world world = {.each = seed % 4 == 3, .closes = seed % 2};

	assert_int_equal(wr_sim_create(&world.sim, seed, WR_SIM_PAUSES), WEIR_OK);
	assert_int_equal(wr_pool_create(&world.rig.pool), WEIR_OK);
	make_connections(&world);
	if (wr_sim_call(world.sim, all, &world))
		return "no fiber can run"; /* fibers that hold messages remain: leaked */
	for (size_t i = 0; i < SENDERS; i++) {
		wr_queue_finish(&world.connections[i]->queue);
		wr_free(world.connections[i]);
	}
	wr_fan_in_destroy(world.set);
	note(&world, !wr_pool_live(world.rig.pool), "a message lives on");
	wr_pool_destroy(world.rig.pool);
	wr_sim_destroy(world.sim);
	return world.fault;
}

static void xb25_nothing_new_is_overlooked_under_many_orders(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		const char *fault = run(seed);

		if (fault)
			fail_msg("seed %lu: %s", (unsigned long)seed, fault);
	}
}

static bool found(enum wr_bug bug)
{
	bool broken = false;

	wr_bug_active = bug;
	for (uint64_t seed = 1; !broken && seed <= SEEDS; seed++)
		broken = run(seed) != NULL;
	wr_bug_active = WR_BUG_NONE;
	return broken;
}

static void xb25_a_mark_before_the_push_is_found(void **state)
{
	(void)state;
	assert_true(found(WR_BUG_MARKED_BEFORE_PUSH));
}

static void xb25_a_look_before_the_mark_is_found(void **state)
{
	(void)state;
	assert_true(found(WR_BUG_LOOKED_BEFORE_MARK));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(xb25_nothing_new_is_overlooked_under_many_orders),
		cmocka_unit_test(xb25_a_mark_before_the_push_is_found),
		cmocka_unit_test(xb25_a_look_before_the_mark_is_found),
	};

	return cmocka_run_group_tests_name("fan-in", tests, NULL, NULL);
}
