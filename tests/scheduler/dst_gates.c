/*
 * Receivers that wait for a gate alone, which their senders review (S2, C8), under seeded schedules: on
 *`sim`, in the build whose atomics are switching points.
 *
 *	dst_gates [--bug NAME] [--seeds N] [--start S] [--rate] [--shape flowing|stopped]
 *
 * A chain: each entity but the last emits one message a tick, which a kernel of its stream writes, or, in
 *some ticks, it itself. Each but the first takes messages by an implied gate or a `cuda_stream`, in queues of
 *few places, and finds each whole and in order. A thread pokes them meanwhile. In some worlds few signals are
 *free at a time (G2). In a flowing world all messages arrive; in a stopped one the run is drained or cut
 *short at any moment.
 */
#include <stdio.h>
#include <string.h>

#include "dst_command.h"
#include "tests/calls.h"

enum { FLOWING, STOPPED };
enum { RUNS = 2, MOST = 5 };
#define PATIENCE (3000 * MS)

static struct world {
	struct wr_random shape;
	uint64_t seed;
	unsigned count, entities, workers, bound, rarely; /* one tick in `rarely` enqueues nothing */
	int64_t stop_after, longest;
	weir_graph *graph;
	weir_scheduler *scheduler;
	_Atomic unsigned received[MOST];
	_Atomic bool over;
} world;
static unsigned shape;

struct node {
	struct wr_random random;
	unsigned number;
};

static weir_status node_start(weir_context *context, void *state, const weir_values *values)
{
	struct node *node = state;

	(void)values;
	node->number = weir_context_entity(context)->id;
	wr_random_seed(&node->random, world.seed, 500 + node->number);
	return WEIR_OK;
}

struct writing {
	uint64_t *to, value;
	int64_t ns;
};

static int write_value(const void *arguments)
{
	const struct writing *writing = arguments;

	weir_sleep(writing->ns);
	*writing->to = writing->value;
	return 0;
}

static const weir_kernel write_kernel = {sizeof(weir_kernel), "write_value", write_value, NULL};

static weir_status make_compute(weir_context *context, void *state)
{
	static const int64_t words = 1;
	const weir_tensor like = {sizeof like, NULL, 0, 1, &words, NULL, 1, 64, 1};
	struct node *node = state;
	struct writing writing = {.value = weir_context_tick(context),
				  .ns = 1 + (int64_t)wr_random_below(&node->random, (uint64_t)world.longest)};
	weir_message *message = NULL;
	weir_status status = weir_context_create_tensor(context, &like, WEIR_TENSOR_HOST, &message);

	if (status)
		return status;
	writing.to = weir_message_data(message);
	*writing.to = UINT64_MAX;
	if (!wr_random_below(&node->random, world.rarely))
		*writing.to = writing.value;
	else
		status = weir_stream_launch(current_stream(context), &write_kernel, &writing, sizeof writing);
	if (!wr_random_below(&node->random, 3)) /* it may be done before the message is sent */
		weir_sleep(1 + (int64_t)wr_random_below(&node->random, 2 * (uint64_t)world.longest));
	if (!status)
		return weir_context_emit(context, 0, message);
	weir_message_unref(message);
	return status;
}

static weir_status receive_compute(weir_context *context, void *state)
{
	struct node *node = state;
	const uint64_t *data = weir_message_data(weir_context_message(context, 0, 0));
	unsigned should = wr_fetch_add(&world.received[node->number], 1);

	if (weir_context_count(context, 0) != 1 || *data != should)
		dst_fails("e%u received %lld, not %u", node->number, (long long)*data, should);
	if (!wr_random_below(&node->random, 4))
		weir_sleep(1 + (int64_t)wr_random_below(&node->random, 1500));
	return WEIR_OK;
}

static weir_status relay_compute(weir_context *context, void *state)
{
	weir_status status = receive_compute(context, state);

	return status ? status : make_compute(context, state);
}

static const weir_port in[] = {{.size = sizeof(weir_port), .name = "in"}, {0}};
static const weir_port out[] = {{.size = sizeof(weir_port), .name = "out"}, {0}};
#define NODE(named, ...)                                                                                     \
	{                                                                                                    \
		.size = sizeof(weir_operator), .name = named, .help = "of a world",                          \
		.state_size = sizeof(struct node), .start = node_start, __VA_ARGS__                          \
	}
static const weir_operator operators[] = {
	NODE("make", .outputs = out, .compute = make_compute),
	NODE("relay", .inputs = in, .outputs = out, .compute = relay_compute),
	NODE("receive", .inputs = in, .compute = receive_compute),
};

static void poke(void *arg)
{
	struct wr_random random;
	char name[8];

	(void)arg;
	wr_random_seed(&random, world.seed, 700);
	for (int i = 0; i < 30 && !wr_load(&world.over); i++) {
		wr_thread_sleep(1 + (int64_t)wr_random_below(&random, 1000));
		snprintf(name, sizeof name, "e%u", (unsigned)wr_random_below(&random, world.entities));
		weir_entity_poke(weir_graph_entity(world.graph, name));
	}
}

static void stop(void *arg)
{
	(void)arg;
	wr_thread_sleep(world.stop_after);
	weir_scheduler_stop(world.scheduler, world.seed % 3 ? WEIR_STOP_DRAIN : 0);
}

static void run_once(void)
{
	struct wr_thread threads[2];
	weir_outcome outcome = {.size = sizeof outcome};
	weir_status status;

	for (unsigned i = 0; i < MOST; i++)
		wr_store(&world.received[i], 0);
	wr_store(&world.over, false);
	status = weir_scheduler_start(world.scheduler);
	wr_thread_start(&threads[0], "poke", poke, NULL);
	if (world.stop_after)
		wr_thread_start(&threads[1], "stop", stop, NULL);
	if (!status)
		status = weir_scheduler_wait(world.scheduler, PATIENCE, &outcome);
	if (status)
		dst_fails("%s: %s", weir_status_text(status), weir_last_error());
	wr_store(&world.over, true);
	for (int i = 0; i < 1 + (world.stop_after > 0) && !dst_said.broken[0]; i++)
		wr_thread_join(&threads[i]);
	if (dst_said.broken[0])
		return;
	if (!world.stop_after)
		dst_check_over(world.scheduler);
	for (unsigned i = 1; i < world.entities && !world.stop_after; i++)
		if (wr_load(&world.received[i]) != world.count)
			dst_fails("e%u received %u of %u", i, wr_load(&world.received[i]), world.count);
	(void)dst_left_over(world.scheduler);
	wr_thread_sleep(MS); /* a late callback's poke is refused: it has a reference meanwhile */
	if (wr_live_count(&world.scheduler->live))
		dst_fails("references are left after the run");
}

static void run(void)
{
	weir_scheduler_options options = {
		.seed = world.seed, .workers = world.workers, .drain_ns = 1000 * MS};
	weir_registry *registry = NULL;
	weir_description *description = NULL;
	weir_status status = weir_registry_create(&registry);

	for (size_t i = 0; i < sizeof operators / sizeof *operators && !status; i++)
		status = weir_registry_add_operator(registry, &operators[i]);
	if (!status)
		status = weir_description_parse(dst_said.json, strlen(dst_said.json), NULL, NULL,
						&description);
	if (!status)
		status = weir_graph_create(registry, description, &world.graph);
	weir_description_destroy(description);
	if (status || dst_make_scheduler(world.graph, options, &world.scheduler)) {
		dst_fails("setting up: %s", weir_last_error());
		return;
	}
	if (world.bound)
		world.graph->system->signals.bound = world.bound;
	for (int i = 0; i < RUNS && !dst_said.broken[0]; i++)
		run_once();
	if (dst_said.broken[0])
		return; /* abandoned */
	weir_scheduler_destroy(world.scheduler);
	world.scheduler = NULL;
	if (weir_graph_destroy(world.graph))
		dst_fails("destroy: %s", weir_last_error());
	weir_registry_destroy(registry);
}

/* --- the world of a seed --- */

static unsigned draw(unsigned n)
{
	return (unsigned)wr_random_below(&world.shape, n);
}

static void put_entity(unsigned i)
{
	static const char *const signals[] = {"callback", "callback_inline", "flag"};
	unsigned kind = draw(4);

	dst_put(",{\"name\":\"e%u\",\"operator\":\"%s\",\"resources\":[\"s\"],\"ports\":{\"in\":{"
		"\"capacity\":%u}}",
		i, i + 1 < world.entities ? "relay" : "receive", 1 + draw(3));
	if (kind)
		dst_put(",\"conditions\":[{\"type\":\"cuda_stream\",\"port\":\"in\",\"signal\":\"%s\"}]",
			signals[kind - 1]);
	dst_put("}");
}

static void draw_world(uint64_t seed)
{
	memset(&world, 0, sizeof world);
	world.seed = seed;
	wr_random_seed(&world.shape, seed, 47);
	world.entities = 2 + draw(MOST - 1);
	world.count = 1 + draw(8);
	world.workers = 1 + draw(3);
	world.bound = draw(3) ? 0 : 1 + draw(2);
	world.rarely = 2 + draw(8);
	world.longest = (int64_t)1 << (4 + draw(9));
	world.stop_after = shape == STOPPED ? 1 + draw(20000) : 0;
	dst_put("{\"weir\":1,\"resources\":{\"s\":{\"type\":\"stream_pool\"}},\"entities\":[{\"name\":\"e0\","
		"\"operator\":\"make\",\"resources\":[\"s\"],\"conditions\":[{\"type\":\"count\",\"count\":%"
		"u}]}",
		world.count);
	for (unsigned i = 1; i < world.entities; i++)
		put_entity(i);
	dst_put("],\"connections\":[");
	for (unsigned i = 1; i < world.entities; i++)
		dst_put("%s[\"e%u.out\",\"e%u.in\"]", i > 1 ? "," : "", i - 1, i);
	dst_put("]}");
}

int main(int argc, char **argv)
{
	static const struct dst_command command = {
		.name = "dst_gates",
		.shapes = {"flowing", "stopped"},
		.shape = &shape,
		.draw = draw_world,
		.run = run,
		.look = dst_check_pools,
		.scheduler = &world.scheduler,
	};

	return dst_command(&command, argc, argv);
}
