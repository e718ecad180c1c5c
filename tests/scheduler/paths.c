/* The prefixes of drawn graphs against a naive enumeration: every simple path from every source, by
 * recursion. */
#include "scheduler/paths.h"

#include <string.h>

#include "base/memory.h"
#include "rig.h"
#include "sim/random.h"

enum { ENTITIES = 7, CONNECTIONS = 14, FOUND = 60000 };

struct drawn {
	struct wr_ends ends[CONNECTIONS];
	size_t entity_count, count;
};

struct way {
	uint32_t inlet, entities[ENTITIES];
	size_t length;
};

static struct drawn draw_graph(uint64_t seed)
{
	struct wr_random random;
	struct drawn drawn = {0};

	wr_random_seed(&random, seed, 0);
	drawn.entity_count = 1 + wr_random_below(&random, ENTITIES);
	drawn.count = wr_random_below(&random, CONNECTIONS + 1);
	for (size_t i = 0; i < drawn.count; i++) {
		uint32_t end = (uint32_t)wr_random_below(&random, drawn.entity_count);
		uint32_t other = (uint32_t)wr_random_below(&random, drawn.entity_count);
		uint64_t kind = wr_random_below(&random, 10);

		if (kind == 0 || other == end)
			drawn.ends[i] = (struct wr_ends){WR_NO_ENTITY, end};
		else if (kind == 1)
			drawn.ends[i] = (struct wr_ends){end, WR_NO_ENTITY};
		else if (kind < 8) /* mostly forward */
			drawn.ends[i] =
				end < other ? (struct wr_ends){end, other} : (struct wr_ends){other, end};
		else
			drawn.ends[i] = (struct wr_ends){end, other};
	}
	return drawn;
}

/* --- the naive enumeration --- */

static struct way found[FOUND];
static size_t found_count;

static bool visits(const struct way *way, uint32_t entity)
{
	for (size_t i = 0; i < way->length; i++)
		if (way->entities[i] == entity)
			return true;
	return false;
}

static bool is_same_way(const struct way *a, const struct way *b)
{
	return a->inlet == b->inlet && a->length == b->length &&
	       !memcmp(a->entities, b->entities, a->length * sizeof *a->entities);
}

static bool is_known(const struct way *way)
{
	for (size_t i = 0; i < found_count; i++)
		if (is_same_way(&found[i], way))
			return true;
	return false;
}

static void follow(const struct drawn *drawn, struct way way, uint32_t entity)
{
	if (visits(&way, entity))
		return;
	way.entities[way.length++] = entity;
	if (is_known(&way))
		return;
	assert_true(found_count < FOUND);
	found[found_count++] = way;
	for (size_t i = 0; i < drawn->count; i++)
		if (drawn->ends[i].sender == entity && drawn->ends[i].receiver != WR_NO_ENTITY)
			follow(drawn, way, drawn->ends[i].receiver);
}

static void enumerate_naively(const struct drawn *drawn)
{
	found_count = 0;
	for (uint32_t entity = 0; entity < drawn->entity_count; entity++) {
		bool fed = false;

		for (uint32_t i = 0; i < drawn->count; i++) {
			if (drawn->ends[i].receiver != entity)
				continue;
			fed = true;
			if (drawn->ends[i].sender == WR_NO_ENTITY)
				follow(drawn, (struct way){.inlet = i}, entity);
		}
		if (!fed)
			follow(drawn, (struct way){.inlet = UINT32_MAX}, entity);
	}
}

static struct way way_of(const struct wr_paths *paths, uint32_t prefix)
{
	size_t length = wr_prefix_length(paths, prefix);
	struct way way = {.length = length};

	assert_true(length <= ENTITIES);
	for (; prefix != UINT32_MAX; prefix = paths->prefixes[prefix].before) {
		way.entities[--length] = paths->prefixes[prefix].entity;
		way.inlet = paths->prefixes[prefix].inlet;
	}
	return way;
}

static size_t naive_count_at(uint32_t entity)
{
	size_t count = 0;

	for (size_t i = 0; i < found_count; i++)
		count += found[i].entities[found[i].length - 1] == entity;
	return count;
}

/* --- comparing --- */

static void assert_prefixes_are_the_naive_ones(const struct wr_paths *paths)
{
	for (uint32_t e = 0; e < paths->entity_count; e++) {
		const struct wr_entity_prefixes *own = &paths->entities[e];

		assert_int_equal(own->named, naive_count_at(e));
		for (uint32_t i = 0; i < own->named; i++) {
			struct way way = way_of(paths, own->prefixes[i]);

			assert_int_equal(way.entities[way.length - 1], e);
			assert_int_equal(paths->prefixes[own->prefixes[i]].at, i);
			assert_true(is_known(&way));
			for (uint32_t k = 0; k < i; k++) {
				struct way other = way_of(paths, own->prefixes[k]);
				assert_false(is_same_way(&way, &other));
			}
		}
	}
}

static void assert_map_continues(const struct wr_paths *paths, const struct wr_ends *ends, const uint8_t *map,
				 uint32_t i)
{
	const struct wr_entity_prefixes *sender = &paths->entities[ends->sender];
	const struct wr_entity_prefixes *receiver = &paths->entities[ends->receiver];
	struct way way = way_of(paths, sender->prefixes[i]), after;

	if (visits(&way, ends->receiver)) {
		assert_int_equal(map[i], WR_NO_PREFIX);
		return;
	}
	assert_true(map[i] < receiver->named);
	after = way_of(paths, receiver->prefixes[map[i]]);
	way.entities[way.length++] = ends->receiver;
	assert_true(is_same_way(&way, &after));
}

static void assert_maps_continue_ways(const struct wr_paths *paths, const struct drawn *drawn)
{
	for (size_t c = 0; c < drawn->count; c++) {
		const struct wr_ends *ends = &drawn->ends[c];

		if (ends->receiver == WR_NO_ENTITY)
			continue;
		if (ends->sender == WR_NO_ENTITY) {
			uint32_t number = paths->entities[ends->receiver].prefixes[paths->maps[c][0]];
			assert_int_equal(paths->prefixes[number].inlet, c);
			continue;
		}
		for (uint32_t i = 0; i < paths->entities[ends->sender].named; i++)
			assert_map_continues(paths, ends, paths->maps[c], i);
	}
}

static void t16_prefixes_are_all_simple_paths_from_sources(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 400; seed++) {
		struct drawn drawn = draw_graph(seed);
		struct wr_paths *paths = NULL;

		enumerate_naively(&drawn);
		assert_int_equal(wr_paths_enumerate(drawn.ends, drawn.count, drawn.entity_count, &paths),
				 WEIR_OK);
		if (!paths->folded) {
			assert_int_equal(paths->prefix_count, found_count);
			assert_prefixes_are_the_naive_ones(paths);
			assert_maps_continue_ways(paths, &drawn);
		}
		wr_paths_destroy(paths);
	}
}

/* --- bounds --- */

/* Each of `steps` entities has two ways to the next: 2^steps paths. */
static size_t make_ladder(struct wr_ends *ends, uint32_t steps)
{
	size_t count = 0;

	for (uint32_t i = 0; i < steps; i++) {
		uint32_t from = 3 * i, left = from + 1, right = from + 2, to = from + 3;

		ends[count++] = (struct wr_ends){from, left};
		ends[count++] = (struct wr_ends){from, right};
		ends[count++] = (struct wr_ends){left, to};
		ends[count++] = (struct wr_ends){right, to};
	}
	return count;
}

static void t16_beyond_the_bound_the_rest_is_one_prefix(void **state)
{
	enum { STEPS = 20, LAST = 3 * STEPS };
	struct wr_ends ends[4 * STEPS];
	struct wr_paths *paths = NULL;
	size_t count = make_ladder(ends, STEPS);

	(void)state;
	assert_int_equal(wr_paths_enumerate(ends, count, LAST + 1, &paths), WEIR_OK);
	assert_true(paths->folded);
	assert_int_equal(paths->entities[3 * 6].count, 64); /* 2^6: just fits */
	assert_false(paths->entities[3 * 6].other);
	assert_int_equal(paths->entities[LAST].named, WR_PREFIXES);
	assert_int_equal(paths->entities[LAST].count, WR_PREFIXES + 1);
	for (size_t c = 0; c < count; c++) {
		const struct wr_entity_prefixes *sender = &paths->entities[ends[c].sender];
		const struct wr_entity_prefixes *receiver = &paths->entities[ends[c].receiver];
		for (uint32_t i = 0; i < sender->count; i++) /* no origin is lost */
			assert_true(paths->maps[c][i] < receiver->count);
		if (sender->other)
			assert_int_equal(paths->maps[c][sender->named], receiver->named);
	}
	wr_paths_destroy(paths);
}

static void t16_sources_beyond_the_bound_of_all_are_folded(void **state)
{
	enum { SOURCES = WR_PREFIXES_ALL + 100 };
	static struct wr_ends ends[SOURCES];
	struct wr_paths *paths = NULL;

	(void)state;
	for (uint32_t i = 0; i < SOURCES; i++)
		ends[i] = (struct wr_ends){i, SOURCES};
	assert_int_equal(wr_paths_enumerate(ends, SOURCES, SOURCES + 1, &paths), WEIR_OK);
	assert_int_equal(paths->prefix_count, WR_PREFIXES_ALL);
	assert_int_equal(paths->entities[SOURCES - 1].count, 1); /* its other */
	assert_int_equal(paths->entities[SOURCES].count, 1);
	assert_int_equal(paths->maps[0][0], 0);
	assert_int_equal(paths->maps[SOURCES - 1][0], 0);
	wr_paths_destroy(paths);
}

static void t16_what_is_folded_does_not_go_around_a_cycle(void **state)
{
	enum { STEPS = 7, LAST = 3 * STEPS, BACK, OUT };
	struct wr_ends ends[4 * STEPS + 3];
	struct wr_paths *paths = NULL;
	size_t count = make_ladder(ends, STEPS);

	(void)state;
	ends[count++] = (struct wr_ends){LAST, BACK};
	ends[count++] = (struct wr_ends){BACK, LAST};
	ends[count++] = (struct wr_ends){LAST, OUT};
	assert_int_equal(wr_paths_enumerate(ends, count, OUT + 1, &paths), WEIR_OK);
	assert_true(paths->entities[LAST].other);
	assert_true(paths->entities[OUT].other);
	assert_int_equal(paths->maps[count - 3][WR_PREFIXES], WR_NO_PREFIX);
	assert_int_equal(paths->maps[count - 1][WR_PREFIXES], WR_PREFIXES);
	wr_paths_destroy(paths);
}

/* Messages around a cycle and out of it: none of them is folded into what the cycle began with. */
static void t16_what_is_folded_passes_no_connection_back_into_its_own_cycle(void **state)
{
	enum { STEPS = 7, LAST = 3 * STEPS, NEXT = LAST + 1, END = NEXT + 1 };
	struct wr_ends ends[8 * STEPS + 3];
	struct wr_paths *paths = NULL;
	size_t count = make_ladder(ends, STEPS);

	(void)state;
	for (size_t i = 0; i < 4 * STEPS; i++, count++) { /* another ladder, to NEXT */
		ends[count].sender = ends[i].sender + END;
		ends[count].receiver = ends[i].receiver == LAST ? NEXT : ends[i].receiver + END;
	}
	ends[count++] = (struct wr_ends){LAST, NEXT};
	ends[count++] = (struct wr_ends){NEXT, LAST};
	ends[count++] = (struct wr_ends){LAST, WR_NO_ENTITY};
	assert_int_equal(wr_paths_enumerate(ends, count, END + LAST, &paths), WEIR_OK);
	assert_true(paths->entities[LAST].other);
	assert_true(paths->entities[NEXT].other);
	assert_int_equal(paths->maps[count - 3][WR_PREFIXES], WR_NO_PREFIX);
	assert_int_equal(paths->maps[count - 2][WR_PREFIXES], WR_NO_PREFIX);
	assert_null(paths->maps[count - 1]); /* an outlet */
	wr_paths_destroy(paths);
}

static void f40_enumerating_survives_any_failed_malloc(void **state)
{
	struct drawn drawn = draw_graph(5);
	weir_status status = WEIR_E_NOMEM;

	(void)state;
	for (int64_t n = 0; status; n++) {
		struct wr_paths *paths = NULL;

		wr_memory_fail_at(n, false);
		status = wr_paths_enumerate(drawn.ends, drawn.count, drawn.entity_count, &paths);
		wr_memory_fail_at(-1, false);
		assert_int_equal(!paths, !!status);
		wr_paths_destroy(paths);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(t16_prefixes_are_all_simple_paths_from_sources),
		cmocka_unit_test(t16_beyond_the_bound_the_rest_is_one_prefix),
		cmocka_unit_test(t16_sources_beyond_the_bound_of_all_are_folded),
		cmocka_unit_test(t16_what_is_folded_does_not_go_around_a_cycle),
		cmocka_unit_test(t16_what_is_folded_passes_no_connection_back_into_its_own_cycle),
		cmocka_unit_test(f40_enumerating_survives_any_failed_malloc),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
