/*
 * The choice of what belongs together, without a run: random streams of 30 and 60 messages a second, with
 * jitter, 2 % lost, whose messages arrive in any order of the ports, against a reference that knows all of
 * both streams from the beginning.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "scheduler/align.h"

enum { PORTS = 3, MOST = 64, SETS = 3 * MOST, ABSENT = MOST };

struct stream {
	uint64_t keys[MOST];
	size_t count, begin, arrived; /* of those before `begin` the fate is known */
	bool dropped[MOST];
};

struct world {
	struct stream streams[PORTS];
	size_t count, set_count;
	uint8_t sets[SETS][PORTS];  /* index in the stream, or ABSENT */
	uint8_t again[SETS][PORTS]; /* likewise, of what a port gives again */
	uint8_t kept[PORTS];        /* likewise, of what it could */
	struct wr_align_rules rules;
};

static uint64_t seed;

static uint64_t below(uint64_t n)
{
	seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (seed >> 33) % n;
}

static uint64_t far(uint64_t a, uint64_t b)
{
	return a > b ? a - b : b - a;
}

/* --- the reference: all is known --- */

static bool left(const struct stream *stream)
{
	return stream->begin < stream->count;
}

static void lose(struct stream *stream)
{
	stream->dropped[stream->begin++] = true;
}

/* The stream's message that is nearest to p, of those whose key is at the most `upto`. */
static size_t nearest(const struct stream *stream, uint64_t p, uint64_t upto)
{
	size_t best = stream->begin;

	for (size_t i = best; i < stream->count && stream->keys[i] <= upto; i++)
		if (far(stream->keys[i], p) < far(stream->keys[best], p))
			best = i;
	return best;
}

/*
 * The latest key that the next set may have. One of all ports begins with the earliest of those that are the
 * nearest up to p.
 */
static uint64_t limit_of(const struct world *world, uint64_t p, bool all, uint64_t first)
{
	uint64_t least = p;

	if (world->rules.empty)
		return first + world->rules.within;
	for (size_t i = 0; all && i < world->count; i++) {
		const struct stream *stream = &world->streams[i];
		uint64_t key = stream->keys[nearest(stream, p, p)];
		least = key < least ? key : least;
	}
	return all ? least + world->rules.within : p;
}

/* What ports that the last set lacks give again. */
static void refer_again(struct world *world)
{
	const uint8_t *set = world->sets[world->set_count - 1];
	uint8_t *again = world->again[world->set_count - 1];
	uint64_t key = UINT64_MAX;

	for (size_t i = 0; i < world->count; i++)
		if (set[i] != ABSENT && world->streams[i].keys[set[i]] < key)
			key = world->streams[i].keys[set[i]];
	for (size_t i = 0; i < world->count; i++) {
		bool old = world->kept[i] != ABSENT &&
			   key > world->streams[i].keys[world->kept[i]] + world->rules.oldest;
		if (set[i] != ABSENT || old)
			world->kept[i] = set[i];
		again[i] = set[i] == ABSENT && world->rules.reuse ? world->kept[i] : ABSENT;
	}
}

/* Returns false if no set follows. */
static bool refer_next(struct world *world)
{
	uint64_t first = UINT64_MAX, p = 0, lonely = 0, limit;
	struct stream *streams = world->streams;
	bool all = true, any = false;

	for (size_t i = 0; i < world->count; i++) {
		all &= left(&streams[i]);
		any |= left(&streams[i]);
		if (left(&streams[i]) && streams[i].keys[streams[i].begin] < first)
			first = streams[i].keys[streams[i].begin];
	}
	for (size_t i = 0; i < world->count; i++)
		if (left(&streams[i])) {
			uint64_t key = streams[i].keys[streams[i].begin];
			if (key > p && (!world->rules.empty || key - first <= world->rules.within))
				p = key;
		}
	for (size_t i = 0; !world->rules.empty && i < world->count; i++)
		if (left(&streams[i]) && streams[i].keys[streams[i].begin] + world->rules.within < p) {
			lose(&streams[i]);
			lonely++;
		}
	if (lonely)
		return true;
	limit = limit_of(world, p, all, first);
	for (size_t i = 0; i < world->count; i++) {
		bool in = left(&streams[i]) &&
			  (!world->rules.empty ||
			   streams[i].keys[streams[i].begin] - first <= world->rules.within);
		size_t chosen = in ? nearest(&streams[i], p, limit) : 0;
		while (in && streams[i].begin < chosen)
			lose(&streams[i]);
		world->sets[world->set_count][i] = in ? (uint8_t)chosen : ABSENT;
		if (in && (all || world->rules.empty))
			streams[i].begin++;
	}
	if (!(world->rules.empty ? any : all))
		return false;
	world->set_count++;
	refer_again(world);
	return true;
}

/* --- the same by wr_align_choose, as messages arrive --- */

static uint64_t key_of(const void *queue, size_t i)
{
	const struct stream *stream = queue;

	assert_true(stream->begin + i < stream->arrived);
	return stream->keys[stream->begin + i];
}

static bool choose_next(struct world *world, bool closed)
{
	struct wr_align_port ports[PORTS] = {{0}};
	struct wr_align_choice choice;

	for (size_t i = 0; i < world->count; i++) {
		struct stream *stream = &world->streams[i];
		ports[i] = (struct wr_align_port){
			.queue = stream,
			.key = key_of,
			.count = stream->arrived - stream->begin,
			.last = stream->arrived ? stream->keys[stream->arrived - 1] : 0,
			.closed = closed || (stream->arrived == stream->count && below(2)),
			.has_kept = world->kept[i] != ABSENT,
			.kept = world->kept[i] == ABSENT ? 0 : stream->keys[world->kept[i]],
		};
	}
	choice = wr_align_choose(&world->rules, ports, world->count, false);
	for (size_t i = 0; i < world->count; i++)
		for (size_t k = 0; k < ports[i].drop; k++)
			lose(&world->streams[i]);
	for (size_t i = 0; choice.says == WR_ALIGN_SET && i < world->count; i++) {
		bool stays = ports[i].in || ports[i].again;
		world->again[world->set_count][i] = ports[i].again ? world->kept[i] : ABSENT;
		world->sets[world->set_count][i] = ports[i].in ? (uint8_t)world->streams[i].begin++ : ABSENT;
		world->kept[i] = ports[i].in ? world->sets[world->set_count][i]
				 : stays     ? world->kept[i]
					     : ABSENT;
	}
	world->set_count += choice.says == WR_ALIGN_SET;
	if (closed)
		assert_int_not_equal(choice.says, WR_ALIGN_WAIT);
	return choice.says == WR_ALIGN_SET;
}

static void arrive(struct world *world)
{
	size_t all = 0, next;

	for (size_t i = 0; i < world->count; i++)
		all += world->streams[i].count;
	while (all) {
		next = below(world->count);
		if (world->streams[next].arrived == world->streams[next].count)
			continue;
		world->streams[next].arrived++;
		all--;
		while (choose_next(world, false))
			;
	}
	while (choose_next(world, true))
		;
}

/* --- random streams --- */

static void draw_stream(struct stream *stream, uint64_t period, size_t count, uint64_t grain)
{
	uint64_t jitter = below(period), at = 1 + below(period), before = 1;

	for (size_t i = 0; i < count; i++, at += period) {
		uint64_t key = (at + below(jitter + 1)) / grain + 1;
		if (!below(50))
			continue;
		before = key > before ? key : before;
		stream->keys[stream->count++] = before;
	}
}

enum missing { WAIT, EMPTY, REUSE };

static void draw(struct world *world, size_t count, enum missing missing)
{
	uint64_t grain = below(2) ? 1 : 16667; /* coarse ones are often equal */

	*world = (struct world){.count = count};
	memset(world->kept, ABSENT, sizeof world->kept);
	for (size_t i = 0; i < count; i++) {
		bool fast = below(2);
		draw_stream(&world->streams[i], fast ? 16667 : 33333, fast ? 48 : 24, grain);
	}
	world->rules = (struct wr_align_rules){.within = below(4) ? below(25000) / grain : 0,
					       .nearest = true,
					       .empty = missing != WAIT,
					       .reuse = missing == REUSE,
					       .oldest = 1 + below(150000) / grain};
}

static void check(const struct world *chosen, const struct world *expected)
{
	assert_int_equal(chosen->set_count, expected->set_count);
	assert_memory_equal(chosen->sets, expected->sets, chosen->set_count * sizeof *chosen->sets);
	assert_memory_equal(chosen->again, expected->again, chosen->set_count * sizeof *chosen->again);
	for (size_t i = 0; i < chosen->count; i++) {
		assert_int_equal(chosen->streams[i].begin, expected->streams[i].begin);
		assert_memory_equal(chosen->streams[i].dropped, expected->streams[i].dropped, MOST);
	}
}

static size_t reused; /* in all sets */

static void compare(size_t count, enum missing missing, size_t times)
{
	struct world chosen, expected;
	size_t sets = 0;

	reused = 0;
	for (size_t i = 0; i < times; i++) {
		draw(&chosen, count, missing);
		expected = chosen;
		while (refer_next(&expected))
			;
		arrive(&chosen);
		check(&chosen, &expected);
		sets += chosen.set_count;
		for (size_t k = 0; k < chosen.set_count; k++)
			for (size_t port = 0; port < count; port++)
				reused += chosen.again[k][port] != ABSENT;
	}
	assert_true(sets > 5 * times);
}

static void c12_sets_of_all_ports_are_those_of_the_reference(void **state)
{
	(void)state;
	seed = 1;
	compare(2, WAIT, 100000);
	compare(3, WAIT, 100000);
	assert_int_equal(reused, 0);
}

static void c12_sets_of_some_ports_are_those_of_the_reference(void **state)
{
	(void)state;
	seed = 2;
	compare(2, EMPTY, 100000);
	compare(3, EMPTY, 100000);
	assert_int_equal(reused, 0);
}

static void c12_what_is_given_again_is_that_of_the_reference(void **state)
{
	(void)state;
	seed = 5;
	for (size_t count = 2; count <= PORTS; count++) {
		compare(count, REUSE, 50000);
		assert_true(reused > 50000);
	}
}

/* --- the earliest complete set --- */

/* Each set is one of a review that knows what has arrived and drops nothing but what has no partner. */
static void earliest(size_t count)
{
	struct world chosen, expected;

	draw(&chosen, count, WAIT);
	chosen.rules.nearest = false;
	expected = chosen;
	for (size_t i = 0; i < count; i++)
		expected.streams[i].count = 0;
	for (bool all = false; !all;) {
		size_t next = below(count);
		all = true;
		for (size_t i = 0; i < count; i++)
			all &= chosen.streams[i].arrived == chosen.streams[i].count;
		if (all || chosen.streams[next].arrived == chosen.streams[next].count)
			continue;
		expected.streams[next].count = ++chosen.streams[next].arrived;
		while (refer_next(&expected))
			;
		while (choose_next(&chosen, false))
			;
		check(&chosen, &expected);
	}
}

static void c12_the_earliest_complete_set_is_chosen_of_what_has_arrived(void **state)
{
	(void)state;
	seed = 3;
	for (int i = 0; i < 10000; i++)
		earliest(2 + (size_t)(i % 2));
}

/* --- tables --- */

/* Sets of keys, "1,1 0,2": 0: none; "1+": of a message that is given again. */
static void expect(struct wr_align_rules rules, const uint64_t a[], const uint64_t b[], const char *sets)
{
	struct world world = {.count = 2, .rules = rules, .kept = {ABSENT, ABSENT}};
	char text[200] = "";
	size_t length = 0;

	for (; a[world.streams[0].count]; world.streams[0].count++)
		world.streams[0].keys[world.streams[0].count] = a[world.streams[0].count];
	for (; b[world.streams[1].count]; world.streams[1].count++)
		world.streams[1].keys[world.streams[1].count] = b[world.streams[1].count];
	seed = 4;
	arrive(&world);
	for (size_t i = 0; i < world.set_count; i++)
		for (size_t k = 0; k < 2; k++) {
			bool again = world.again[i][k] != ABSENT;
			uint8_t at = again ? world.again[i][k] : world.sets[i][k];
			uint64_t key = at == ABSENT ? 0 : world.streams[k].keys[at];
			length += (size_t)snprintf(text + length, sizeof text - length, "%s%u%s",
						   k        ? ","
						   : length ? " "
							    : "",
						   (unsigned)key, again ? "+" : "");
		}
	assert_string_equal(text, sets);
}

#define KEYS(...) ((const uint64_t[]){__VA_ARGS__, 0})

/* The default input policy of MediaPipe: equal times; a tick at each time that any stream has. */
static void c12_cases_of_mediapipes_default_policy(void **state)
{
	const struct wr_align_rules rules = {.within = 0, .empty = true};

	(void)state;
	expect(rules, KEYS(10, 20, 30), KEYS(10, 20, 30), "10,10 20,20 30,30");
	expect(rules, KEYS(10, 20, 30), KEYS(20), "10,0 20,20 30,0");
	expect(rules, KEYS(10, 30), KEYS(20, 40), "10,0 0,20 30,0 0,40");
	expect(rules, KEYS(5), KEYS(1, 2, 5, 6), "0,1 0,2 5,5 0,6");
}

/* A slow stream beside a fast one; each value until there is a newer one, or it is too old. */
static void c12_cases_of_reuse(void **state)
{
	struct wr_align_rules rules = {.empty = true, .reuse = true, .oldest = UINT64_MAX};

	(void)state;
	expect(rules, KEYS(10, 20, 30, 40), KEYS(20), "10,0 20,20 30,20+ 40,20+");
	expect(rules, KEYS(10, 30), KEYS(20, 40), "10,0 10+,20 30,20+ 30+,40");
	rules.oldest = 10;
	expect(rules, KEYS(10, 20, 30, 31), KEYS(10, 31), "10,10 20,10+ 30,0 31,31");
	rules.within = 3; /* the age is that of the earliest message of the set, not of the latest */
	expect(rules, KEYS(10, 20, 40), KEYS(10, 43), "10,10 20,10+ 40,43");
	expect(rules, KEYS(14, 20, 24), KEYS(17), "14,17 20,17+ 24,17+");
	rules.oldest = 6;
	expect(rules, KEYS(14, 20, 24), KEYS(17), "14,17 20,17+ 24,0");
	rules.oldest = 7;
	expect(rules, KEYS(14, 24), KEYS(17), "14,17 24,17+");
}

/* A set that was chosen late may be followed by one of an earlier key. */
static void c12_what_is_later_than_the_set_is_young(void **state)
{
	struct stream one = {.keys = {7}, .count = 1, .arrived = 1}, none = {0};
	struct wr_align_rules rules = {.empty = true, .reuse = true, .oldest = 1};
	struct wr_align_port ports[2] = {
		{.queue = &one, .key = key_of, .count = 1},
		{.queue = &none, .key = key_of, .last = 9, .has_kept = true, .kept = 9}};

	(void)state;
	assert_int_equal(wr_align_choose(&rules, ports, 2, false).says, WR_ALIGN_SET);
	assert_true(ports[0].in && !ports[0].again && !ports[1].in && ports[1].again);
	ports[1].kept = 6;
	wr_align_choose(&rules, ports, 2, false);
	assert_true(ports[1].again);
	ports[1].kept = 5;
	wr_align_choose(&rules, ports, 2, false);
	assert_false(ports[1].again);
	ports[1].kept = 9;
	ports[1].out = true; /* held: it gives nothing */
	wr_align_choose(&rules, ports, 2, false);
	assert_false(ports[1].again);
}

/* Each set is around the latest head, its pivot, and has what is nearest to it. */
static void c12_cases_of_ros_approximate_time(void **state)
{
	const struct wr_align_rules rules = {.within = 10, .nearest = true};

	(void)state;
	expect(rules, KEYS(100, 133, 166), KEYS(101, 134, 167), "100,101 133,134 166,167");
	expect(rules, KEYS(100, 200), KEYS(92, 99, 103, 201), "100,99 200,201");
	expect(rules, KEYS(100, 120), KEYS(95, 105), "100,95");
	expect(rules, KEYS(100, 200, 300), KEYS(150, 205, 290), "200,205 300,290");
	expect(rules, KEYS(100), KEYS(89), "");
}

/* --- bounds --- */

static void c12_keys_at_the_ends_of_their_range(void **state)
{
	static const uint64_t a[] = {1, UINT64_MAX - 5}, b[] = {UINT64_MAX};
	struct world world = {.count = 2, .rules = {.within = 5}, .kept = {ABSENT, ABSENT}};

	(void)state;
	memcpy(world.streams[0].keys, a, sizeof a);
	memcpy(world.streams[1].keys, b, sizeof b);
	world.streams[0].count = world.streams[0].arrived = 2;
	world.streams[1].count = world.streams[1].arrived = 1;
	assert_true(choose_next(&world, true));
	assert_true(world.streams[0].dropped[0]);
	assert_int_equal(world.sets[0][0], 1);
	assert_false(choose_next(&world, true));
}

static void c12_a_late_set_waits_for_nothing(void **state)
{
	struct stream one = {.keys = {7}, .count = 1, .arrived = 1}, none = {0};
	struct wr_align_rules rules = {.within = 3, .nearest = true, .empty = true};
	struct wr_align_port ports[2] = {{.queue = &one, .key = key_of, .count = 1},
					 {.queue = &none, .key = key_of}};

	(void)state;
	assert_int_equal(wr_align_choose(&rules, ports, 2, false).says, WR_ALIGN_WAIT);
	assert_int_equal(wr_align_choose(&rules, ports, 2, true).says, WR_ALIGN_SET);
	assert_true(ports[0].in && !ports[1].in);
	ports[1].last = 11; /* so what follows there comes too late */
	assert_int_equal(wr_align_choose(&rules, ports, 2, false).says, WR_ALIGN_SET);
	ports[1].last = 10;
	assert_int_equal(wr_align_choose(&rules, ports, 2, false).says, WR_ALIGN_WAIT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(c12_sets_of_all_ports_are_those_of_the_reference),
		cmocka_unit_test(c12_sets_of_some_ports_are_those_of_the_reference),
		cmocka_unit_test(c12_what_is_given_again_is_that_of_the_reference),
		cmocka_unit_test(c12_the_earliest_complete_set_is_chosen_of_what_has_arrived),
		cmocka_unit_test(c12_cases_of_mediapipes_default_policy),
		cmocka_unit_test(c12_cases_of_reuse),
		cmocka_unit_test(c12_what_is_later_than_the_set_is_young),
		cmocka_unit_test(c12_cases_of_ros_approximate_time),
		cmocka_unit_test(c12_keys_at_the_ends_of_their_range),
		cmocka_unit_test(c12_a_late_set_waits_for_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
