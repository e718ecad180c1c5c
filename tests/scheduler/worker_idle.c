/*
 * No worker sleeps while work waits: random graphs whose computes take virtual time, on the build whose
 * atomics are switching points, checked whenever the world is at rest.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "sim/random.h"
#include "sim/simulation.h"
#include "rest.h"
#include "rig.h"
#include "tests/calls.h"

static uint64_t seeds = 3000, start = 1; /* unless the arguments say otherwise */

enum { TEXT = 1000 };

static struct {
	uint64_t seed;
	struct wr_random random;
	weir_scheduler *scheduler; /* NULL: none to check */
	const char *broken;
	char text[TEXT];
	size_t length;
} world;

static unsigned draw(unsigned n)
{
	return (unsigned)wr_random_below(&world.random, n);
}

static void check_at_rest(void *arg)
{
	(void)arg;
	if (world.scheduler && !world.broken)
		world.broken = rest_broken(world.scheduler);
}

/* --- graphs --- */

static void put(const char *format, ...) WEIR_PRINTF(1, 2);
static void put(const char *format, ...)
{
	va_list list;

	va_start(list, format);
	world.length += (size_t)vsnprintf(world.text + world.length, TEXT - world.length, format, list);
	va_end(list);
	assert_in_range(world.length, 1, TEXT - 1);
}

/* Many computes take the same time, so that they end at one instant. */
static unsigned delay_us(void)
{
	static const unsigned delays[] = {0, 0, 10, 10, 20, 50, 300};

	return delays[draw(sizeof delays / sizeof *delays)];
}

/* Some have so many ticks that their worker polls the flags between ticks. */
static void put_sender(int chain, bool device)
{
	bool many = !draw(8);
	unsigned delay = many ? 10 * draw(2) : delay_us(), ticks = many ? 200 : 3 + draw(10);

	put("%ss%d:source ticks=%u delay=%uus", chain ? "; " : "", chain, ticks, delay);
	if (!draw(4))
		put(" period=%uus", 10 + 10 * draw(5));
	if (device && draw(2))
		put(" work=%uus", 5 + 20 * draw(3));
}

static void put_gate(const char *port)
{
	static const char *const signals[] = {"", ",flag", ",flag", ",callback_inline"};

	if (draw(2))
		put(" gate=%s%s", port, signals[draw(4)]);
}

/* A chain; it may join the last entity of the chain before, which then has several senders. */
static void put_chain(int chain)
{
	unsigned capacity;

	put_sender(chain, true);
	for (unsigned i = 0, n = draw(3); i < n; i++) {
		capacity = 1 + draw(3);
		put(" -> c%dp%u:pass delay=%uus capacity=%u", chain, i, delay_us(), capacity);
	}
	if (chain && draw(2)) {
		put(" -> e0.in capacity=%u", 1 + draw(2));
		return;
	}
	capacity = 1 + draw(2);
	put(" -> e%d:end delay=%uus capacity=%u take=1", chain, delay_us(), capacity);
	put_gate("in");
}

/* A tick that frees room for all of its blocked senders at once. */
static void put_gathering(void)
{
	bool device = draw(2);

	for (int chain = 0, n = 3 + (int)draw(3); chain < n; chain++) {
		put_sender(chain, device);
		put(" -> e.any");
		if (!chain) {
			put(":end delay=%uus capacity=1", draw(2) * 10);
			put_gate("any");
		}
	}
}

/* Periods and computes on one grid: workers go to sleep at the instants at which timers and pokers push. */
static void put_grid(void)
{
	for (int chain = 0, n = 2 + (int)draw(4); chain < n; chain++) {
		unsigned last = 10 + 10 * draw(2), delay = 10 + 10 * draw(2), period = 20 + 10 * draw(3);

		put("%ss%d:source ticks=%u period=%uus delay=%uus -> e%d:end delay=%uus", chain ? "; " : "",
		    chain, 5 + draw(25), period, delay, chain, last);
	}
}

static void put_chains(void)
{
	for (int chain = 0, n = 1 + (int)draw(5); chain < n; chain++)
		put_chain(chain);
}

static struct rig *draw_graph(void)
{
	static void (*const shapes[])(void) = {put_chains, put_chains, put_gathering, put_grid, put_grid};
	struct rig *rig;

	world.length = 0;
	shapes[draw(5)]();
	rig = rig_of(world.text);
	rig->options.workers = 2 + draw(3);
	rig->options.seed = world.seed;
	rig->options.signal = draw(2) ? "flag" : "callback";
	rig->options.worker_spin_ns = draw(4) ? 0 : 20 * US;
	return rig;
}

/* --- pokes from outside, several at one instant --- */

enum { POKERS = 2, POKES = 10 };

struct poker {
	struct rig *rig;
	struct wr_thread thread;
	struct wr_random random;
};

static void poke(void *arg)
{
	struct poker *self = arg;

	for (int i = 0; i < POKES; i++) {
		weir_sleep(10 * US * (int64_t)wr_random_below(&self->random, 6));
		weir_entity_poke(
			&self->rig->graph
				 ->entities[wr_random_below(&self->random, self->rig->graph->entity_count)]);
	}
}

static void run(struct rig *rig)
{
	struct poker pokers[POKERS];
	unsigned n = draw(POKERS + 1);

	rig_make(rig);
	world.scheduler = rig->scheduler;
	rig_start(rig);
	for (unsigned i = 0; i < n; i++) {
		pokers[i] = (struct poker){.rig = rig};
		wr_random_seed(&pokers[i].random, world.seed, 10 + i);
		assert_int_equal(wr_thread_start(&pokers[i].thread, "poker", poke, &pokers[i]), WEIR_OK);
	}
	assert_int_equal(rig_wait(rig), WEIR_OK);
	world.scheduler = NULL;
	for (unsigned i = 0; i < n; i++)
		wr_thread_join(&pokers[i].thread);
	rig_destroy(rig);
}

static void run_drawn(void *arg)
{
	(void)arg;
	run(draw_graph());
}

/*
 * The receiver becomes READY when its last sender has delivered, and that sender's worker ticks it. Another
 * worker was woken for it, finds nothing, and goes to sleep while the tick frees room for all senders: one
 * wake-up for several entities.
 */
static void run_gathering(void *arg)
{
	struct rig *rig;

	(void)arg;
	world.length = 0;
	put("s0:source ticks=30 delay=10us -> e.any:end capacity=1 gate=any");
	for (unsigned i = 1, n = 3 + draw(3); i < n; i++)
		put("; s%u:source ticks=30 delay=%uus -> e.any", i, 10 + 10 * draw(2));
	rig = rig_of(world.text);
	rig->options.workers = 3 + draw(2);
	rig->options.seed = world.seed;
	run(rig);
}

static void run_world(uint64_t seed, void (*body)(void *arg))
{
	struct wr_sim *sim = NULL;

	world.seed = seed;
	world.broken = NULL;
	wr_random_seed(&world.random, seed, 3);
	assert_int_equal(wr_sim_create(&sim, seed, WR_SIM_PAUSES), WEIR_OK);
	wr_sim_at_rest(sim, check_at_rest, NULL);
	wr_sim_set_limit(sim, 100000000); /* a spinning worker takes 20 points per 50 ns */
	if (wr_sim_call(sim, body, NULL))
		fail_msg("seed %llu: %s", (unsigned long long)seed, weir_last_error());
	wr_sim_destroy(sim);
	if (world.broken)
		fail_msg("seed %llu: %s: %s", (unsigned long long)seed, world.broken, world.text);
}

static void s09_g04_no_worker_sleeps_while_work_waits(void **state)
{
	(void)state;
	for (uint64_t seed = start; seed < start + seeds; seed++)
		run_world(seed, run_drawn);
}

static void s09_what_one_wake_up_stands_for_is_passed_on(void **state)
{
	(void)state;
	for (uint64_t seed = start; seed < start + seeds; seed++)
		run_world(seed, run_gathering);
}

/* --- streams that still have work when all workers sleep --- */

static int rest(const void *arguments)
{
	weir_sleep(*(const int64_t *)arguments);
	return 0;
}

static const weir_kernel resting = {sizeof(weir_kernel), "rest", rest, NULL};

/* No message: no deferred free makes the watch come back. */
static weir_status launch(weir_context *context, int64_t ns)
{
	weir_stream *stream = current_stream(context);

	return stream ? weir_stream_launch(stream, &resting, &ns, sizeof ns) : WEIR_E_DEVICE;
}

static weir_status launch_short(struct rig *rig, weir_context *context)
{
	(void)rig;
	return launch(context, 5 * MS);
}

static weir_status launch_long(struct rig *rig, weir_context *context)
{
	(void)rig;
	return launch(context, 300 * MS);
}

static weir_status compute_long(struct rig *rig, weir_context *context)
{
	(void)rig;
	(void)context;
	weir_sleep(200 * MS);
	return WEIR_OK;
}

/*
 * Then a signal queries each stream, not the next watch: also if that check ran before the last worker
 * slept, while work was long, or at the instant at which more was enqueued.
 */
static const struct {
	const char *text;
	int64_t ms;
} sleepy[] = {
	{"source ticks=1 work=5ms -> c:call; other:source enabled=false -> late:end", 5},
	{"source ticks=1 work=5ms -> c:call", 5},
	{"short:call count=11 period=10ms; other:source enabled=false -> late:end", 105},
	{"long:call count=1; busy:call count=1; other:source enabled=false -> late:end", 300},
};

static void set_roles(struct rig *rig)
{
	static const struct {
		const char *name;
		rig_fn *compute;
	} roles[] = {
		{"short", launch_short},
		{"long", launch_long},
		{"busy", compute_long},
	};

	for (size_t i = 0; i < rig->entity_count; i++)
		for (size_t k = 0; k < sizeof roles / sizeof *roles; k++)
			if (!strcmp(rig->entities[i].name, roles[k].name))
				rig_on(rig, roles[k].name, roles[k].compute);
}

static void run_asleep(void *arg)
{
	unsigned which = draw(4);
	struct rig *rig;

	(void)arg;
	world.length = 0;
	put("%s", sleepy[which].text);
	rig = rig_of(world.text);
	rig->options.workers = 2 + draw(2);
	set_roles(rig);
	rig_make(rig);
	world.scheduler = rig->scheduler;
	assert_int_equal(rig_run(rig), WEIR_OK);
	world.scheduler = NULL;
	assert_in_range(rig->outcome.duration_ns, sleepy[which].ms * MS, (sleepy[which].ms + 3) * MS);
	rig_destroy(rig);
}

static void xb26_e02_the_last_worker_to_sleep_has_the_streams_asked(void **state)
{
	(void)state;
	for (uint64_t seed = start; seed < start + seeds; seed++)
		run_world(seed, run_asleep);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(s09_g04_no_worker_sleeps_while_work_waits),
		cmocka_unit_test(s09_what_one_wake_up_stands_for_is_passed_on),
		cmocka_unit_test(xb26_e02_the_last_worker_to_sleep_has_the_streams_asked),
	};

	if (argc > 1)
		seeds = strtoull(argv[1], NULL, 0);
	if (argc > 2)
		start = strtoull(argv[2], NULL, 0);

	return cmocka_run_group_tests(tests, NULL, NULL);
}
