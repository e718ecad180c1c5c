/*
 * T13 under many schedules: chains of entities that replay their work, with few or many keys, work on one
 * stream or two, and calls that a capture refuses or that the device fails: what arrives is what enqueueing
 * in each tick gives. Arguments: the number of seeds, the first seed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "rig_inside.h"
#include "rig_streams.h"
#include "sim/simulation.h"
#include "tests/calls.h"

enum { MOST = 4, MESSAGES = 50 };

static struct {
	uint64_t seed;
	struct wr_random random;
	unsigned refused_of_100, failed_of_100; /* chances of calls in enqueue, and of the device's */
	size_t count;
	struct entity {
		int64_t plus, scratch[3];
		bool on_side, long_key;
	} entities[MOST];
	uint64_t hits, captures, evictions, failures;
} world;

static bool chance(unsigned of_100)
{
	return wr_random_below(&world.random, 100) < of_100;
}

/* --- the device fails --- */

static const struct wr_backend *real;

static weir_status may_fail(const char *call)
{
	if (!chance(world.failed_of_100))
		return WEIR_OK;
	return wr_fail(chance(50) ? WEIR_E_NOMEM : WEIR_E_FAILED, "%s fails", call);
}

static weir_status failing_begin(void *self, int device, void *stream, void **capture)
{
	weir_status status = may_fail("capture_begin");

	return status ? status : real->capture_begin(self, device, stream, capture);
}

static weir_status failing_order(void *self, void *capture, void *before, void *after)
{
	weir_status status = may_fail("capture_order");

	return status ? status : real->capture_order(self, capture, before, after);
}

static weir_status failing_end(void *self, void *capture, void **graph)
{
	weir_status failure = may_fail("capture_end"),
		    status = real->capture_end(self, capture, failure ? NULL : graph);

	return failure ? failure : status;
}

static weir_status failing_launch(void *self, int device, void *stream, void *graph)
{
	weir_status status = may_fail("graph_launch");

	return status ? status : real->graph_launch(self, device, stream, graph);
}

/* --- the entities --- */

struct step {
	struct entity *entity;
	int64_t *to;
	const int64_t *from;
};

static weir_status add_to(weir_stream *stream, int64_t *to, const int64_t *from, int64_t plus)
{
	struct rig_sum sum = {to, {from, NULL}, plus, (int64_t)wr_random_below(&world.random, 20) * US};

	return weir_stream_launch(stream, &rig_adder, &sum, sizeof sum);
}

/* A call that a capture refuses and that changes nothing. */
static void call_refused(weir_context *context, weir_stream *stream)
{
	weir_message *message = NULL;
	weir_fence fence;

	if (chance(50))
		(void)weir_stream_record(stream, &fence);
	else if (!weir_context_create_tensor(context, &rig_one_number, 0, &message))
		weir_message_unref(message);
}

static weir_status enqueue_step(weir_context *context, weir_stream *stream, void *arg)
{
	const struct step *step = arg;
	struct entity *entity = step->entity;
	weir_stream *side = stream;
	weir_status status = WEIR_OK;

	if (entity->on_side)
		status = weir_context_allocate_stream(context, "side", &side);
	if (!status)
		status = add_to(stream, &entity->scratch[0], step->from, entity->plus);
	if (!status && side != stream)
		status = weir_context_synchronize_streams(context, &stream, 1, side);
	if (!status)
		status = add_to(side, &entity->scratch[1], &entity->scratch[0], 0);
	if (chance(world.refused_of_100))
		call_refused(context, stream);
	if (!status && side != stream)
		status = weir_context_synchronize_streams(context, &side, 1, stream);
	if (!status)
		status = copy_bytes(stream, &entity->scratch[2], &entity->scratch[1], sizeof(int64_t));
	return status ? status : add_to(stream, step->to, &entity->scratch[2], 0);
}

static weir_status replay_step(struct rig *rig, weir_context *context)
{
	size_t i = (size_t)(*weir_entity_name(weir_context_entity(context)) - 'a');
	weir_message *message = NULL;
	weir_status status = weir_context_create_tensor(context, &rig_one_number, 0, &message);
	struct step step = {&world.entities[i], status ? NULL : weir_message_data(message),
			    rig_data_of(context, 0)};
	const void *key[] = {step.to, step.from, NULL};

	(void)rig;
	if (status)
		return status;
	*step.to = -1;
	status = weir_context_replay(context, key, step.entity->long_key ? sizeof key : sizeof key - 8,
				     enqueue_step, &step);
	if (!status)
		return weir_context_emit(context, 0, message);
	weir_message_unref(message);
	return status;
}

/* --- a world --- */

static struct rig *draw_rig(void)
{
	char text[600];
	int length = snprintf(text, sizeof text, "source ticks=%d work=3us", MESSAGES);
	struct rig *rig;

	world.count = 1 + wr_random_below(&world.random, MOST);
	world.refused_of_100 = chance(30) ? 20 : 0;
	world.failed_of_100 = chance(50) ? 10 : 0;
	for (size_t i = 0; i < world.count; i++) {
		world.entities[i] = (struct entity){.plus = (int64_t)wr_random_below(&world.random, 1000),
						    .on_side = chance(50),
						    .long_key = chance(50)};
		int most[4]; /* drawn one after another: the order of arguments is the compiler's */
		for (int k = 3; k >= 0; k--)
			most[k] = 1 + (int)wr_random_below(&world.random, (uint64_t[]){3, 24, 2, 8}[k]);
		length += snprintf(text + length, sizeof text - (size_t)length,
				   " -> %c:call capacity=%d replay=%d,%d in_flight=%d", 'a' + (int)i, most[0],
				   most[1], most[2], most[3]);
	}
	snprintf(text + length, sizeof text - (size_t)length, " -> end");
	rig = rig_of(text);
	for (size_t i = 0; i < world.count; i++)
		rig_on(rig, (char[]){(char)('a' + i), 0}, replay_step);
	return rig;
}

static void count_entity(struct rig *rig, size_t i)
{
	weir_entity_counts counts = rig_counts(rig, (char[]){(char)('a' + i), 0});

	world.hits += counts.replay_hits;
	world.captures += counts.replay_captures;
	world.evictions += counts.replay_evictions;
	world.failures += counts.replay_failures;
}

static void assert_sums(struct rig *rig)
{
	int64_t plus = 0;
	char expected[RIG_TEXT];
	size_t length = 0;

	for (size_t i = 0; i < world.count; i++)
		plus += world.entities[i].plus;
	for (int64_t n = 0; n < MESSAGES; n++)
		length += (size_t)snprintf(expected + length, sizeof expected - length, "%s%lld",
					   n ? " " : "", (long long)(n + plus));
	if (strcmp(rig_text(rig, "end"), expected))
		fail_msg("seed %llu: %s, not %s", (unsigned long long)world.seed, rig_text(rig, "end"),
			 expected);
}

static void run_world(void)
{
	struct rig *rig = draw_rig();
	struct wr_backend *backend;

	rig->options.signal = rig_signals[wr_random_below(&world.random, 3)];
	rig_make(rig);
	backend = rig_own_backend(rig);
	real = rig_real_backend(rig);
	backend->capture_begin = failing_begin;
	backend->capture_order = failing_order;
	backend->capture_end = failing_end;
	backend->graph_launch = failing_launch;
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_sums(rig);
	for (size_t i = 0; i < world.count; i++)
		count_entity(rig, i);
	rig_restore_backend(rig);
	rig_destroy(rig);
}

#ifdef WR_ASAN
#define SEEDS 500
#else
#define SEEDS 5000
#endif
static uint64_t seeds = SEEDS, first = 1;

static void t13_s07_e05_what_is_replayed_is_what_would_be_enqueued(void **state)
{
	(void)state;
	for (world.seed = first; world.seed < first + seeds; world.seed++) {
		wr_random_seed(&world.random, world.seed, 3);
		rig_in_world(world.seed, run_world);
	}
	print_message("%llu worlds: %llu replayed, %llu captured, %llu evicted, %llu failed\n",
		      (unsigned long long)seeds, (unsigned long long)world.hits,
		      (unsigned long long)world.captures, (unsigned long long)world.evictions,
		      (unsigned long long)world.failures);
	assert_true(world.hits && world.captures && world.evictions && world.failures);
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(t13_s07_e05_what_is_replayed_is_what_would_be_enqueued),
	};

	seeds = argc > 1 ? strtoull(argv[1], NULL, 10) : seeds;
	first = argc > 2 ? strtoull(argv[2], NULL, 10) : first;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
