/*
 * Path times against a model that is told the same events: it carries, per message and path, the sum of the
 * slices that the message has been through (compute, delivery, queue, the way from the take to compute), and
 * of several messages that one tick took on one path the one whose origin is the oldest. What a path takes is
 * the sum of its slices.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "rig_inside.h"

enum { WAYS = 24, ENTITIES = 16, QUEUES = 24, MESSAGES = 512, DONE = 64 };

struct way {
	char entities[ENTITIES]; /* ids, from 1 on; a string */
	int64_t origin, slices;
};

struct ways {
	struct way list[WAYS];
	size_t count;
	int64_t at; /* up to which the slices count */
};

struct sum {
	char entities[ENTITIES];
	uint64_t count;
	int64_t sum, min, max;
};

static struct ways ticks[ENTITIES], messages[QUEUES][MESSAGES];
static uint32_t senders[QUEUES], receivers[QUEUES];
static struct sum done[DONE];
static size_t done_count;
static bool has_outputs[ENTITIES], has_inputs[ENTITIES];
static const char *names[ENTITIES];

/* --- the model --- */

static void keep_way(struct ways *ways, const struct way *way)
{
	for (size_t i = 0; i < ways->count; i++) {
		if (strcmp(ways->list[i].entities, way->entities))
			continue;
		if (way->origin < ways->list[i].origin)
			ways->list[i] = *way;
		return;
	}
	assert_true(ways->count < WAYS);
	ways->list[ways->count++] = *way;
}

static void add_slice(struct ways *ways, int64_t at)
{
	for (size_t i = 0; i < ways->count; i++)
		ways->list[i].slices += at - ways->at;
	ways->at = at;
}

static void on_entity(void *self, uint32_t entity, const char *name)
{
	(void)self;
	assert_true(entity < ENTITIES);
	names[entity] = name;
	has_outputs[entity] = has_inputs[entity] = false;
}

static void on_queue(void *self, uint32_t queue, uint32_t sender, uint32_t receiver, const char *from,
		     const char *to, uint32_t capacity)
{
	(void)self, (void)from, (void)to, (void)capacity;
	assert_true(queue < QUEUES);
	senders[queue] = sender;
	receivers[queue] = receiver;
	has_outputs[sender] = has_inputs[receiver] = true;
}

static void on_run_begin(void *self, int64_t at, unsigned workers)
{
	(void)self, (void)at, (void)workers;
	memset(ticks, 0, sizeof ticks);
	memset(messages, 0, sizeof messages);
	memset(done, 0, sizeof done);
	done_count = 0;
}

static void on_take(void *self, int64_t at, unsigned lane, uint32_t queue, uint64_t sequence)
{
	struct ways *message = &messages[queue][sequence], *tick = &ticks[receivers[queue]];
	char own[2] = {(char)(receivers[queue] + 1), '\0'};

	(void)self, (void)lane;
	add_slice(message, at);
	for (size_t i = 0; i < message->count; i++) {
		struct way way = message->list[i];

		if (strchr(way.entities, own[0]))
			continue;
		assert_true(strlen(way.entities) + 1 < ENTITIES);
		strcat(way.entities, own);
		/* The tick's takes follow each other: one time for all. */
		way.slices -= tick->count ? at - tick->at : 0;
		keep_way(tick, &way);
		tick->at = tick->count > 1 || i ? tick->at : at;
	}
}

static void on_tick_begin(void *self, int64_t at, unsigned lane, uint32_t entity, uint64_t number)
{
	struct ways *tick = &ticks[entity];

	(void)self, (void)lane, (void)number;
	if (!has_inputs[entity]) {
		*tick = (struct ways){.count = 1};
		tick->list[0] = (struct way){.entities = {(char)(entity + 1)}, .origin = at};
		tick->at = at;
	}
	add_slice(tick, at);
}

static void path_ended(const struct way *way)
{
	size_t i = 0;

	while (i < done_count && strcmp(done[i].entities, way->entities))
		i++;
	assert_true(i < DONE);
	if (i == done_count) {
		done[done_count++] = (struct sum){.min = INT64_MAX};
		memcpy(done[i].entities, way->entities, sizeof way->entities);
	}
	done[i].count++;
	done[i].sum += way->slices;
	done[i].min = way->slices < done[i].min ? way->slices : done[i].min;
	done[i].max = way->slices > done[i].max ? way->slices : done[i].max;
}

static void on_tick_end(void *self, int64_t at, unsigned lane, uint32_t entity, uint64_t number)
{
	struct ways *tick = &ticks[entity];

	(void)self, (void)lane, (void)number;
	add_slice(tick, at);
	for (size_t i = 0; !has_outputs[entity] && i < tick->count; i++)
		path_ended(&tick->list[i]);
	if (!has_outputs[entity])
		tick->count = 0;
}

static void on_ready(void *self, int64_t at, unsigned lane, uint32_t entity)
{
	(void)self, (void)at, (void)lane;
	ticks[entity].count = 0; /* all that the last tick emitted was delivered */
}

static void on_deliver(void *self, int64_t at, unsigned lane, uint32_t queue, uint64_t sequence)
{
	(void)self, (void)lane;
	assert_true(sequence < MESSAGES);
	if (senders[queue] == UINT32_MAX)
		return;
	messages[queue][sequence] = ticks[senders[queue]];
	add_slice(&messages[queue][sequence], at);
}

static weir_status open_model(const struct wr_trace_options *options, void **self)
{
	(void)options;
	*self = done;
	return WEIR_OK;
}

static const struct wr_observer model = {
	.name = "model",
	.open = open_model,
	.entity = on_entity,
	.queue = on_queue,
	.run_begin = on_run_begin,
	.ready = on_ready,
	.tick_begin = on_tick_begin,
	.tick_end = on_tick_end,
	.deliver = on_deliver,
	.take = on_take,
};

/* --- comparing --- */

static uint32_t id_of(const char *name)
{
	for (uint32_t i = 0; i < ENTITIES; i++)
		if (names[i] && !strcmp(names[i], name))
			return i;
	fail_msg("no entity %s", name);
	return 0;
}

static const struct sum *model_of(const struct rig_path *path)
{
	static const struct sum none;
	char entities[ENTITIES] = "";

	for (size_t i = 0; i < path->entity_count; i++)
		entities[i] = (char)(id_of(path->entities[i]) + 1);
	for (size_t i = 0; i < done_count; i++)
		if (!strcmp(done[i].entities, entities))
			return &done[i];
	return &none;
}

static void assert_times_are_those_of_the_model(struct rig *rig)
{
	struct rig_path path;
	size_t found = 0;

	for (size_t i = 0; rig_path(rig->scheduler, i, &path); i++) {
		const struct sum *sum = model_of(&path);

		found += sum->count != 0;
		assert_int_equal(path.count, sum->count);
		assert_int_equal(path.latency.count, sum->count);
		assert_int_equal(path.latency.sum_ns, sum->sum);
		if (sum->count) {
			assert_int_equal(path.latency.min_ns, sum->min);
			assert_int_equal(path.latency.max_ns, sum->max);
		}
	}
	assert_int_equal(found, done_count);
}

static const char *text;

static void compare_one(void)
{
	struct rig *rig = rig_of(text);

	rig->options.workers = 3;
	rig->options.observe = WEIR_OBSERVE_STATISTICS;
	rig_make(rig);
	assert_int_equal(rig_observe_beside(rig, &model), WEIR_OK);
	if (rig_run(rig))
		fail_msg("%s", rig->outcome.text);
	assert_times_are_those_of_the_model(rig);
	assert_int_equal(rig_run(rig), WEIR_OK); /* counts anew */
	assert_times_are_those_of_the_model(rig);
	rig_destroy(rig);
}

static void compare(const char *graph)
{
	text = graph;
	rig_in_worlds(60, compare_one);
}

static void t16_a_path_takes_the_sum_of_its_slices(void **state)
{
	(void)state;
	compare("source ticks=9 -> a:pass -> b:pass -> end");
}

static void t16_each_way_through_a_diamond_is_a_path(void **state)
{
	(void)state;
	compare("source ticks=9 emits=1 -> a:pass -> end capacity=4; source -> b:pass -> c:pass -> end.in "
		"capacity=4");
}

static void t16_what_a_tick_takes_counts_from_the_oldest(void **state)
{
	(void)state;
	compare("source ticks=12 -> a:pass capacity=6 take=3 -> end capacity=8; s2:source ticks=5 -> end.in; "
		"a.out max_emits=3; a.out2 max_emits=3");
}

static void t16_dropped_messages_end_no_path(void **state)
{
	(void)state;
	compare("source ticks=20 -> a:pass capacity=1 policy=pop -> end capacity=2 policy=reject");
}

static void t16_a_tick_keeps_the_ways_that_its_messages_came_and_no_others(void **state)
{
	(void)state;
	compare("x:source ticks=7 -> p:pass -> end; y:source ticks=4 -> p.in");
}

/* `in` has the newest message, `in2` the oldest, on the same way. */
static void t16_of_two_connections_between_the_same_entities_the_oldest_counts(void **state)
{
	(void)state;
	compare("source ticks=12 -> a:pass -> end capacity=1 policy=pop delay=3ms; a.out2 -> end.in2 "
		"capacity=8");
}

static void t16_a_way_does_not_go_around_a_cycle(void **state)
{
	(void)state;
	compare("source ticks=6 -> a:pass -> b:pass -> end; b.out2 -> a.in2 initial_messages=1 capacity=2");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(t16_a_path_takes_the_sum_of_its_slices),
		cmocka_unit_test(t16_each_way_through_a_diamond_is_a_path),
		cmocka_unit_test(t16_what_a_tick_takes_counts_from_the_oldest),
		cmocka_unit_test(t16_dropped_messages_end_no_path),
		cmocka_unit_test(t16_a_tick_keeps_the_ways_that_its_messages_came_and_no_others),
		cmocka_unit_test(t16_of_two_connections_between_the_same_entities_the_oldest_counts),
		cmocka_unit_test(t16_a_way_does_not_go_around_a_cycle),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
