/*
 * The prefixes that statistics_paths.c makes when messages come, against a naive enumeration: every simple
 * path from every source, by recursion.
 */
#include "trace/statistics.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "sim/random.h"
#include "test.h"

enum { ENTITIES = 7, CONNECTIONS = 14, FOUND = 60000, STEPS = 7 };
#define NOBODY UINT32_MAX /* an inlet or an outlet is there */

struct ends {
	uint32_t sender, receiver;
};

struct drawn {
	struct ends ends[CONNECTIONS];
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
			drawn.ends[i] = (struct ends){NOBODY, end};
		else if (kind == 1)
			drawn.ends[i] = (struct ends){end, NOBODY};
		else if (kind < 8) /* mostly forward */
			drawn.ends[i] = end < other ? (struct ends){end, other} : (struct ends){other, end};
		else
			drawn.ends[i] = (struct ends){end, other};
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
		if (drawn->ends[i].sender == entity && drawn->ends[i].receiver != NOBODY)
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
			if (drawn->ends[i].sender == NOBODY)
				follow(drawn, (struct way){.inlet = i}, entity);
		}
		if (!fed)
			follow(drawn, (struct way){.inlet = UINT32_MAX}, entity);
	}
}

static size_t naive_count_at(uint32_t entity)
{
	size_t count = 0;

	for (size_t i = 0; i < found_count; i++)
		count += found[i].entities[found[i].length - 1] == entity;
	return count;
}

/* --- runs: all entities tick in turn, take all that lies in their queues and emit to all --- */

struct run {
	const struct ends *ends;
	size_t count;
	uint32_t entity_count;
	struct wr_statistics *statistics;
	uint64_t *head, *tail; /* of each queue */
	int64_t at;
};

static const struct wr_observer *const see = &wr_statistics;

/* Returns false if memory ran out. */
static bool begin(struct run *run, const struct ends *ends, size_t count, uint32_t entity_count)
{
	const struct wr_trace_options options = {
		.workers = 1, .observe = WEIR_OBSERVE_STATISTICS, .entities = entity_count, .queues = count};
	void *self = NULL;

	*run = (struct run){.ends = ends, .count = count, .entity_count = entity_count};
	if (see->open(&options, &self))
		return false;
	run->statistics = self;
	run->head = calloc(2 * count + 1, sizeof *run->head);
	run->tail = run->head + count;
	for (uint32_t i = 0; i < count; i++)
		see->queue(self, i, ends[i].sender, ends[i].receiver, "", "", 2);
	see->run_begin(self, ++run->at, 1);
	return true;
}

static void finish(struct run *run)
{
	see->close(run->statistics);
	free(run->head);
}

static void push(struct run *run, uint32_t queue)
{
	see->deliver(run->statistics, ++run->at, 0, queue, run->tail[queue]++);
}

static void tick(struct run *run, uint32_t entity, uint64_t number)
{
	for (uint32_t i = 0; i < run->count; i++)
		for (; run->ends[i].receiver == entity && run->head[i] < run->tail[i]; run->head[i]++)
			see->take(run->statistics, ++run->at, 0, i, run->head[i]);
	see->tick_begin(run->statistics, ++run->at, 0, entity, number);
	see->tick_end(run->statistics, ++run->at, 0, entity, number);
	see->computed(run->statistics, entity, number, false);
	for (uint32_t i = 0; i < run->count; i++)
		if (run->ends[i].sender == entity)
			push(run, i);
}

/* So long that each way was gone to its end. */
static void go(struct run *run)
{
	for (uint64_t round = 0; round <= run->entity_count; round++) {
		for (uint32_t i = 0; i < run->count; i++)
			if (run->ends[i].sender == NOBODY && run->ends[i].receiver != NOBODY)
				push(run, i);
		for (uint32_t entity = 0; entity < run->entity_count; entity++)
			tick(run, entity, round);
	}
}

static const struct wr_entity_paths *paths_of(const struct run *run, uint32_t entity)
{
	return &run->statistics->paths.entities[entity];
}

/* --- comparing --- */

static struct way way_of(const struct wr_prefix *prefix)
{
	struct way way = {.inlet = UINT32_MAX};

	for (const struct wr_prefix *at = prefix; at; at = at->before)
		way.length++;
	assert_true(way.length <= ENTITIES);
	for (size_t i = way.length; prefix; prefix = prefix->before) {
		way.entities[--i] = prefix->entity;
		way.inlet = prefix->inlet;
	}
	return way;
}

static bool is_folded(const struct run *run)
{
	return wr_read(&run->statistics->paths.folded);
}

static void assert_prefixes_are_the_naive_ones(const struct run *run)
{
	size_t all = 0;

	for (uint32_t e = 0; e < run->entity_count; e++) {
		struct wr_prefix *prefix = wr_read(&run->statistics->paths.entities[e].prefixes);
		size_t count = 0;

		for (; prefix; prefix = wr_read(&prefix->next), count++) {
			struct way way = way_of(prefix);

			assert_int_equal(prefix->entity, e);
			assert_int_equal(prefix->index, count);
			assert_true(is_known(&way));
		}
		assert_int_equal(count, naive_count_at(e));
		all += count;
	}
	assert_int_equal(all, found_count);
}

static void t16_prefixes_are_all_simple_paths_from_sources(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 400; seed++) {
		struct drawn drawn = draw_graph(seed);
		struct run run;

		enumerate_naively(&drawn);
		assert_true(begin(&run, drawn.ends, drawn.count, (uint32_t)drawn.entity_count));
		go(&run);
		if (!is_folded(&run))
			assert_prefixes_are_the_naive_ones(&run);
		finish(&run);
	}
}

static void add_path(const struct wr_prefix *prefix, struct wr_path *path, void *arg)
{
	const struct ends *ends = ((struct run *)arg)->ends;
	bool outlet = path->outlet != WR_NO_QUEUE;

	assert_true(wr_read(&path->count) > 0);
	assert_int_equal(wr_read(&path->count), wr_read(&path->latency.count));
	if (outlet)
		assert_int_equal(ends[path->outlet].sender, prefix->entity);
	for (size_t i = 0; !outlet && i < ((struct run *)arg)->count; i++)
		assert_int_not_equal(ends[i].sender, prefix->entity);
}

static void t16_paths_end_at_sinks_and_outlets(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 100; seed++) {
		struct drawn drawn = draw_graph(seed);
		struct run run;

		assert_true(begin(&run, drawn.ends, drawn.count, (uint32_t)drawn.entity_count));
		go(&run);
		wr_paths_each(&run.statistics->paths, add_path, &run);
		finish(&run);
	}
}

/* --- a `pop` queue --- */

static void assert_the_first_source(const struct wr_prefix *prefix, struct wr_path *path, void *arg)
{
	assert_int_equal(prefix->before->before->entity, 0);
	*(int64_t *)arg += wr_histogram_summary(&path->latency).sum_ns;
}

/* The front is closed, then pushes that came another way evict so often that all places are used again. */
static void t16_the_front_of_a_pop_queue_keeps_its_origins(void **state)
{
	static const struct ends ends[] = {{0, 2}, {1, 2}, {2, 3}};
	struct run run;
	int64_t sum = 0;

	(void)state;
	assert_true(begin(&run, ends, 3, 4));
	run.at = 100;
	tick(&run, 0, 0);
	tick(&run, 2, 0);
	see->front(run.statistics, 2, 0, 1);
	for (uint64_t i = 1; i < 9; i++) {
		tick(&run, 1, i);
		tick(&run, 2, i);
	}
	run.head[2] = 0;
	run.tail[2] = 1;
	run.at = 1000;
	tick(&run, 3, 0);
	wr_paths_each(&run.statistics->paths, assert_the_first_source, &sum);
	assert_int_equal(sum, 1003 - 101);
	finish(&run);
}

/* --- bounds --- */

/* Each of `steps` entities has two ways to the next: 2^steps paths. */
static size_t make_ladder(struct ends *ends, uint32_t steps)
{
	size_t count = 0;

	for (uint32_t i = 0; i < steps; i++) {
		uint32_t from = 3 * i, left = from + 1, right = from + 2, to = from + 3;

		ends[count++] = (struct ends){from, left};
		ends[count++] = (struct ends){from, right};
		ends[count++] = (struct ends){left, to};
		ends[count++] = (struct ends){right, to};
	}
	return count;
}

static void t16_beyond_the_bound_the_rest_is_one_prefix(void **state)
{
	enum { MANY = 20, LAST = 3 * MANY };
	struct ends ends[4 * MANY];
	size_t count = make_ladder(ends, MANY);
	struct run run;

	(void)state;
	assert_true(begin(&run, ends, count, LAST + 1));
	go(&run);
	assert_true(is_folded(&run));
	assert_int_equal(paths_of(&run, 3 * 6)->named, 64); /* 2^6: just fits */
	assert_null(paths_of(&run, 3 * 6)->other);
	assert_int_equal(paths_of(&run, LAST)->named, WR_PREFIXES);
	assert_non_null(paths_of(&run, LAST)->other);
	assert_int_equal(paths_of(&run, LAST)->origins.count, WR_PREFIXES + 1); /* no origin is lost */
	finish(&run);
}

static void t16_sources_beyond_the_bound_of_all_are_folded(void **state)
{
	enum { SOURCES = WR_PREFIXES_ALL + 100 };
	static struct ends ends[SOURCES];
	struct run run;

	(void)state;
	for (uint32_t i = 0; i < SOURCES; i++)
		ends[i] = (struct ends){i, SOURCES};
	assert_true(begin(&run, ends, SOURCES, SOURCES + 1));
	for (uint32_t i = 0; i < SOURCES; i++) {
		see->tick_begin(run.statistics, ++run.at, 0, i, 0);
		push(&run, i);
	}
	tick(&run, SOURCES, 0);
	assert_int_equal(wr_read(&run.statistics->paths.named), WR_PREFIXES_ALL);
	assert_int_equal(paths_of(&run, SOURCES - 1)->named, 0);
	assert_int_equal(paths_of(&run, SOURCES)->named, 0);
	assert_int_equal(paths_of(&run, SOURCES)->origins.count, 1);
	finish(&run);
}

static void t16_what_is_folded_does_not_go_around_a_cycle(void **state)
{
	enum { LAST = 3 * STEPS, BACK, OUT };
	struct ends ends[4 * STEPS + 3];
	size_t count = make_ladder(ends, STEPS);
	struct run run;

	(void)state;
	ends[count++] = (struct ends){LAST, BACK};
	ends[count++] = (struct ends){BACK, LAST};
	ends[count++] = (struct ends){LAST, OUT};
	assert_true(begin(&run, ends, count, OUT + 1));
	go(&run);
	assert_non_null(paths_of(&run, LAST)->other);
	assert_non_null(paths_of(&run, OUT)->other);
	assert_null(paths_of(&run, BACK)->other);
	finish(&run);
}

static void f40_paths_survive_any_failed_malloc(void **state)
{
	struct drawn drawn = draw_graph(5);

	(void)state;
	for (int64_t n = 0; n < 300; n++) {
		struct run run;

		wr_memory_fail_at(n, false);
		if (begin(&run, drawn.ends, drawn.count, (uint32_t)drawn.entity_count)) {
			go(&run);
			wr_memory_fail_at(-1, false);
			finish(&run);
		}
		wr_memory_fail_at(-1, false);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(t16_prefixes_are_all_simple_paths_from_sources),
		cmocka_unit_test(t16_paths_end_at_sinks_and_outlets),
		cmocka_unit_test(t16_the_front_of_a_pop_queue_keeps_its_origins),
		cmocka_unit_test(t16_beyond_the_bound_the_rest_is_one_prefix),
		cmocka_unit_test(t16_sources_beyond_the_bound_of_all_are_folded),
		cmocka_unit_test(t16_what_is_folded_does_not_go_around_a_cycle),
		cmocka_unit_test(f40_paths_survive_any_failed_malloc),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
