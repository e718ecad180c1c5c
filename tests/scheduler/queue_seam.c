/*
 * Queues and messages under many orders of their atomics: in the seam build, each atomic is a switching
 * point.
 */
#include "base/memory.h"
#include "queue_rig.h"
#include "sim/simulation.h"
#include "tests/bugs/bug.h"

#define SEEDS    1000
#define MESSAGES 12

/*
 * One connection in one simulation. A fiber records the fault; the test checks it after the simulation has
 * stopped.
 */
struct world {
	struct rig rig;
	struct wr_sim *sim;
	weir_policy policy;
	uint32_t capacity;
	uint64_t last;       /* number received last */
	uint64_t done_after; /* the receiver becomes DONE after so many messages */
	_Atomic bool done;
	const char *fault;
};

static void note(struct world *world, bool holds, const char *fault)
{
	if (!holds && !world->fault)
		world->fault = fault;
}

/* Like a poke that finds the receiver DONE. */
static void take_back_if_done(struct world *world)
{
	if (wr_load(&world->done))
		wr_queue_take_back(world->rig.queue);
}

static void send(void *arg)
{
	struct world *world = arg;
	struct wr_local local;

	work_for(&local, 1, world->rig.pool);
	for (uint64_t i = 1; i <= MESSAGES; i++) {
		while (push(&world->rig, i) == WR_PUSH_FULL) {
			wr_thread_yield();
			take_back_if_done(world);
		}
		take_back_if_done(world);
	}
	wr_queue_close(world->rig.queue);
	take_back_if_done(world);
	be_foreign();
}

static size_t count(struct world *world)
{
	size_t n = wr_queue_count(world->rig.queue);

	note(world, n <= world->capacity + (world->policy == WEIR_POLICY_POP), "more than the capacity");
	return n;
}

/* Like a review and a tick: closes a front, looks at it, takes it. Returns the number of messages taken. */
static uint64_t tick(struct world *world)
{
	struct wr_queue *queue = world->rig.queue;
	weir_message *taken[8];
	struct weir_message *first = NULL;
	size_t n;

	wr_queue_close_front(queue, 1 + wr_random_below(wr_sim_random(world->sim), world->capacity));
	if (wr_queue_front(queue) > 0)
		first = wr_queue_at(queue, 0);
	wr_thread_yield();
	count(world);
	n = wr_queue_take(queue, taken);
	note(world, n == 0 || taken[0] == first, "not what was looked at");
	for (size_t i = 0; i < n; i++) {
		bool next = world->policy == WEIR_POLICY_BLOCK ? number_of(taken[i]) == world->last + 1
							       : number_of(taken[i]) > world->last;

		note(world, next, "out of order");
		world->last = number_of(taken[i]);
		weir_message_unref(taken[i]);
	}
	return n;
}

static void receive(void *arg)
{
	struct world *world = arg;
	uint64_t received = 0;
	struct wr_local local;
	bool more = true;

	work_for(&local, 2, world->rig.pool);
	while (more && received < world->done_after) {
		bool closed = wr_queue_closed(world->rig.queue);

		more = count(world) > 0 || !closed;
		received += tick(world);
		wr_thread_yield();
	}
	note(world, more || world->policy == WEIR_POLICY_REJECT || world->last == MESSAGES,
	     "the last message is missing");
	if (more) {
		size_t dropped = wr_queue_drop(world->rig.queue);
		note(world, dropped <= world->capacity + (world->policy == WEIR_POLICY_POP),
		     "dropped what came meanwhile, without end");
		wr_store(&world->done, true);
	}
	be_foreign();
}

static void both(void *arg)
{
	struct wr_thread threads[2] = {{0}};

	note(arg, !wr_thread_start(&threads[0], "sender", send, arg), "no fiber");
	note(arg, !wr_thread_start(&threads[1], "receiver", receive, arg), "no fiber");
	wr_thread_join(&threads[0]);
	wr_thread_join(&threads[1]);
}

static void check_end(struct world *world)
{
	struct wr_queue *queue = world->rig.queue;
	size_t queued = wr_queue_count(queue);

	note(world, wr_counts_conserved(&queue->counters, queued), "not conserved");
	note(world, wr_read(&queue->counters.pushed) == MESSAGES, "not all were pushed");
	note(world, wr_pool_live(world->rig.pool) == queued, "a message is lost or lives twice");
}

/* Runs the simulation of a seed. Returns the fault, or NULL; *hash is of the order of its switches. */
static const char *run(uint64_t seed, weir_policy policy, uint64_t *hash)
{
	struct world world = {.policy = policy, .done_after = UINT64_MAX};

	assert_int_equal(wr_sim_create(&world.sim, seed, WR_SIM_BY_SEED), WEIR_OK);
	assert_int_equal(wr_pool_create(&world.rig.pool), WEIR_OK);
	world.capacity = 1 + (uint32_t)wr_random_below(wr_sim_random(world.sim), 3);
	if (wr_random_below(wr_sim_random(world.sim), 3) == 0)
		world.done_after = wr_random_below(wr_sim_random(world.sim), MESSAGES);
	queue_of(&world.rig, world.capacity, policy, UINT32_MAX - 5);
	if (wr_sim_call(world.sim, both, &world))
		return "no fiber can run"; /* fibers that hold messages remain: leaked */
	check_end(&world);
	*hash = wr_sim_hash(world.sim);
	wr_queue_finish(world.rig.queue);
	wr_free(world.rig.queue);
	wr_pool_destroy(world.rig.pool);
	wr_sim_destroy(world.sim);
	return world.fault;
}

static void all_seeds_hold(weir_policy policy)
{
	uint64_t hash = 0, before = 0;
	size_t distinct = 0;

	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		const char *fault = run(seed, policy, &hash);

		if (fault)
			fail_msg("seed %lu: %s", (unsigned long)seed, fault);
		distinct += hash != before;
		before = hash;
	}
	assert_true(distinct > SEEDS / 2);
}

static void c04_e05_block_under_many_orders(void **state)
{
	(void)state;
	all_seeds_hold(WEIR_POLICY_BLOCK);
}

static void c04_e05_pop_under_many_orders(void **state)
{
	(void)state;
	all_seeds_hold(WEIR_POLICY_POP);
}

static void c04_e05_reject_under_many_orders(void **state)
{
	(void)state;
	all_seeds_hold(WEIR_POLICY_REJECT);
}

static const char *found(enum wr_bug bug, weir_policy policy)
{
	const char *fault = NULL;
	uint64_t hash;

	wr_bug_active = bug;
	for (uint64_t seed = 1; !fault && seed <= SEEDS; seed++)
		fault = run(seed, policy, &hash);
	wr_bug_active = WR_BUG_NONE;
	return fault;
}

static void c04_room_freed_by_looking_is_found(void **state)
{
	(void)state;
	assert_string_equal(found(WR_BUG_ROOM_BY_LOOKING, WEIR_POLICY_BLOCK), "more than the capacity");
}

static void c04_ready_not_bound_to_the_front_is_found(void **state)
{
	(void)state;
	assert_string_equal(found(WR_BUG_READY_NOT_BOUND, WEIR_POLICY_BLOCK), "not what was looked at");
	assert_string_equal(found(WR_BUG_READY_NOT_BOUND, WEIR_POLICY_POP), "not what was looked at");
}

/* --- the use set of a message with several references --- */

#define HOLDERS 3u
#define STREAMS 5u

struct sharing {
	struct wr_pool *pool;
	struct wr_system system;
	weir_message *message;
	_Atomic uint32_t next;
};

static void hold(void *arg)
{
	struct sharing *sharing = arg;
	unsigned self = wr_fetch_add(&sharing->next, 1);
	struct wr_local local;

	work_for(&local, self, sharing->pool);
	for (uint64_t i = 0; i < STREAMS; i++)
		if (wr_message_add_fence(sharing->message,
					 (weir_fence){.stream = 1 + (self + i) % 7, .value = i}, i % 2))
			break;
	weir_message_unref(sharing->message);
	be_foreign();
}

static void share(void *arg)
{
	struct sharing *sharing = arg;
	struct wr_thread threads[HOLDERS] = {{0}};

	if (weir_message_create_bytes(graph_of(sharing->pool), 1000, &sharing->message))
		return;
	wr_message_ref_many(sharing->message, HOLDERS - 1);
	for (unsigned i = 0; i < HOLDERS; i++)
		if (wr_thread_start(&threads[i], "holder", hold, sharing))
			weir_message_unref(sharing->message);
	for (unsigned i = 0; i < HOLDERS; i++)
		wr_thread_join(&threads[i]);
}

static void t04_the_last_of_several_holders_lists_the_whole_use_set(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		struct sharing sharing = {0};
		struct wr_sim *sim = NULL;

		assert_int_equal(wr_sim_create(&sim, seed, WR_SIM_BY_SEED), WEIR_OK);
		assert_int_equal(wr_pool_create(&sharing.pool), WEIR_OK);
		wr_pool_bind(sharing.pool, &sharing.system);
		assert_int_equal(wr_sim_call(sim, share, &sharing), WEIR_OK);
		assert_int_equal(sharing.system.listed, 1);
		assert_int_equal(sharing.system.deferred->count, HOLDERS + STREAMS - 1);
		complete(&sharing.system);
		assert_int_equal(sharing.system.allocations, 0);
		assert_int_equal(wr_pool_live(sharing.pool), 0);
		wr_pool_destroy(sharing.pool);
		wr_sim_destroy(sim);
	}
}

static void take_one(void *arg)
{
	const struct sharing *sharing = arg;

	weir_message_ref(sharing->message);
}

/* The one reference is the program's, and its threads know that it stays. */
static void take_at_once(void *arg)
{
	struct sharing *sharing = arg;
	struct wr_thread threads[HOLDERS] = {{0}};

	if (weir_message_create_empty(graph_of(sharing->pool), &sharing->message))
		return;
	for (unsigned i = 0; i < HOLDERS; i++)
		if (!wr_thread_start(&threads[i], "taker", take_one, sharing))
			sharing->next++;
	for (unsigned i = 0; i < HOLDERS; i++)
		wr_thread_join(&threads[i]);
}

static void t04_threads_take_references_beside_one_that_they_share(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		struct sharing sharing = {0};
		struct wr_sim *sim = NULL;

		assert_int_equal(wr_sim_create(&sim, seed, WR_SIM_BY_SEED), WEIR_OK);
		assert_int_equal(wr_pool_create(&sharing.pool), WEIR_OK);
		assert_int_equal(wr_sim_call(sim, take_at_once, &sharing), WEIR_OK);
		assert_int_equal(sharing.next, HOLDERS);
		assert_int_equal(wr_message_references(sharing.message), 1 + HOLDERS);
		for (unsigned i = 0; i <= HOLDERS; i++)
			weir_message_unref(sharing.message);
		wr_pool_destroy(sharing.pool);
		wr_sim_destroy(sim);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(c04_e05_block_under_many_orders),
		cmocka_unit_test(c04_e05_pop_under_many_orders),
		cmocka_unit_test(c04_e05_reject_under_many_orders),
		cmocka_unit_test(c04_room_freed_by_looking_is_found),
		cmocka_unit_test(c04_ready_not_bound_to_the_front_is_found),
		cmocka_unit_test(t04_the_last_of_several_holders_lists_the_whole_use_set),
		cmocka_unit_test(t04_threads_take_references_beside_one_that_they_share),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
