/*
 * Fences that the program completes, under seeded schedules (T17, T04, T08, S4, S7): threads of the program
 * write payloads and complete their fences, in any order, before or after the message is emitted, twice at
 * once, after the run; on `sim`, in the build whose atomics are switching points.
 *
 *	dst_promises [--bug NAME] [--seeds N] [--start S] [--rate] [--shape flowing|failing|stopped]
 *
 * `m` makes messages, of one pool of few blocks in some worlds, and gives each to `p`, which passes it on, to
 * `q`, which emits another one with a fence of its own for each, and so uses what it took until that is
 * completed, to receivers with and without gates, and to an outlet. In a flowing world all ticks are made and
 * each payload is whole when it is received; in some, `m` waits for a fence that is told, and perhaps
 * completed, before the run begins. In a failing one a fence fails, and the run by the name of its
 * entity; in a stopped one the run is drained or cut short at any moment. After each run the rest is
 * completed, and nothing is left over.
 */
#include <stdio.h>
#include <string.h>

#include "dst_command.h"
#include "tests/calls.h"

enum { FLOWING, FAILING, STOPPED };
enum { RUNS = 2, TOLD = 1000, JOBS = 64, COMPLETERS = 3, RECEIVERS = 3, OPEN = 1, TAKEN, ENDED };
#define PATIENCE (3000 * MS)

/* A payload that a thread of the program is to write. */
struct job {
	weir_fence fence;
	uint64_t *to, value;
	const uint64_t *from; /* what its tick took, which has `value`; or NULL */
	_Atomic unsigned state;
};

static struct world {
	struct wr_random shape;
	uint64_t seed;
	unsigned count, emits, in_flight, blocks, receivers, workers, completers, relays, passes, places;
	unsigned fails; /* 1 + the value that fails; 0: none */
	bool device, early, told, gated[RECEIVERS];
	uint64_t told_payload;
	int64_t delay, stop_after;
	weir_graph *graph;
	weir_scheduler *scheduler;
	weir_outlet *outlet;
	struct job job[JOBS];
	_Atomic unsigned jobs, next[RECEIVERS], taken, open;
	_Atomic bool opened, over, failed;
} world;
static unsigned shape;

/* --- what the entities do --- */

struct node {
	struct wr_random random;
	int64_t number;
};

static weir_status node_start(weir_context *context, void *state, const weir_values *values)
{
	struct node *node = state;

	node->number = weir_values_int(values, "number");
	wr_random_seed(&node->random, world.seed, 500 + weir_context_entity(context)->id);
	return WEIR_OK;
}

static void finish_job(struct job *job)
{
	bool fails = world.fails && job->value == world.fails - 1;
	weir_status status, again;

	if (fails)
		wr_store(&world.failed, true);
	*job->to = job->value;
	if (job->from && *job->from != job->value)
		dst_fails("what a tick took was freed before its fence was completed");
	if (!job->from)
		wr_fetch_sub(&world.open, 1);
	status = weir_fence_complete(world.graph, job->fence, fails ? WEIR_E_IO : WEIR_OK, "it is gone");
	again = weir_fence_complete(world.graph, job->fence, WEIR_OK, NULL);
	if (status || again != WEIR_E_INVALID)
		dst_fails("a fence was completed %s: %s", again ? "not at all" : "twice", weir_last_error());
	wr_store(&job->state, ENDED);
}

static struct job *add_job(uint64_t *to, uint64_t value, const uint64_t *from)
{
	unsigned number = wr_fetch_add(&world.jobs, 1);
	struct job *job = &world.job[number % JOBS];

	if (number >= JOBS || weir_graph_create_fence(world.graph, &job->fence))
		dst_fails("no fence: %s", weir_last_error());
	*to = UINT64_MAX;
	job->to = to;
	job->value = value;
	job->from = from;
	if (!from && wr_fetch_add(&world.open, 1) >= world.in_flight * world.emits && world.in_flight)
		dst_fails("more than max_in_flight of its ticks are in flight");
	wr_store(&job->state, OPEN);
	return job;
}

/* What the device writes to the second word, behind the one of the program. */
struct writing {
	uint64_t *to, value;
	int64_t ns;
};

static int write_second(const void *arguments)
{
	const struct writing *writing = arguments;

	weir_sleep(writing->ns);
	*writing->to = writing->value;
	return 0;
}

static const weir_kernel write_kernel = {sizeof(weir_kernel), "write_second", write_second, NULL};

static weir_status emit_job(weir_context *context, struct node *node, uint64_t value, const uint64_t *from)
{
	static const int64_t words = 2;
	const weir_tensor like = {sizeof like, NULL, 0, 1, &words, NULL, 1, 64, 1};
	struct writing writing = {.value = value, .ns = 1 + (int64_t)wr_random_below(&node->random, 1500)};
	bool launches = world.device && wr_random_below(&node->random, 2);
	weir_message *message = NULL;
	weir_status status = weir_context_create_tensor(context, &like, WEIR_TENSOR_HOST, &message);
	struct job *job;
	weir_fence fence;

	if (status)
		return status;
	writing.to = (uint64_t *)weir_message_data(message) + 1;
	*writing.to = launches ? UINT64_MAX : value;
	job = add_job(weir_message_data(message), value, from);
	fence = job->fence;
	if (launches)
		status = weir_stream_launch(current_stream(context), &write_kernel, &writing, sizeof writing);
	if (!wr_random_below(&node->random, 4)) {
		unsigned open = OPEN;
		if (wr_cas(&job->state, &open, TAKEN))
			finish_job(job);
	}
	if (!wr_random_below(&node->random, 3))
		weir_sleep(1 + (int64_t)wr_random_below(&node->random, 2000));
	if (status) {
		weir_message_unref(message);
		return status;
	}
	return weir_context_emit_at(context, 0, message, fence);
}

static weir_status make_compute(weir_context *context, void *state)
{
	struct node *node = state;
	uint64_t first = weir_context_tick(context) * world.emits;
	weir_status status = WEIR_OK;

	for (unsigned i = 0; !status && i < world.emits; i++)
		status = emit_job(context, node, first + i, NULL);
	return status;
}

/* gated: the work of the device is done, too. */
static void check_value(const weir_message *message, uint64_t should, bool gated)
{
	const uint64_t *data = weir_message_data(message);

	for (int i = 0; i < 1 + gated; i++)
		if (!dst_said.broken[0] && data[i] != should)
			dst_fails("received %lld of the %s, not %llu", (long long)data[i],
				  i ? "device" : "program", (unsigned long long)should);
}

static weir_status relay_compute(weir_context *context, void *state)
{
	const weir_message *taken = weir_context_message(context, 0, 0);
	uint64_t tick = weir_context_tick(context);

	check_value(taken, tick, true);
	return emit_job(context, state, tick, weir_message_data(taken));
}

static weir_status pass_compute(weir_context *context, void *state)
{
	(void)state;
	if (weir_context_tick(context) % 2)
		return weir_context_forward(context, 0, 0, 0);
	return weir_context_emit(context, 0, weir_message_ref(weir_context_message(context, 0, 0)));
}

static weir_status receive_compute(weir_context *context, void *state)
{
	struct node *node = state;

	if (!wr_random_below(&node->random, 3))
		weir_sleep(1 + (int64_t)wr_random_below(&node->random, 1500));
	check_value(weir_context_message(context, 0, 0), wr_fetch_add(&world.next[node->number], 1),
		    world.gated[node->number]);
	return WEIR_OK;
}

static const weir_parameter parameters[] = {
	{.size = sizeof(weir_parameter),
	 .name = "number",
	 .type = WEIR_TYPE_INT,
	 .fallback = "0",
	 .help = "its number"},
	{0},
};
static const weir_port in[] = {{.size = sizeof(weir_port), .name = "in", .flags = WEIR_PORT_DEVICE}, {0}};
static const weir_port host[] = {{.size = sizeof(weir_port), .name = "in"}, {0}};
static const weir_port out[] = {{.size = sizeof(weir_port), .name = "out", .flags = WEIR_PORT_OPTIONAL}, {0}};
#define NODE(named, ...)                                                                                     \
	{                                                                                                    \
		.size = sizeof(weir_operator), .name = named, .help = "of a world",                          \
		.state_size = sizeof(struct node), .parameters = parameters, .start = node_start,            \
		__VA_ARGS__                                                                                  \
	}
static const weir_operator operators[] = {
	NODE("make", .outputs = out, .compute = make_compute),
	NODE("relay", .inputs = host, .outputs = out, .compute = relay_compute),
	NODE("hand_on", .inputs = in, .outputs = out, .compute = pass_compute),
	NODE("receive", .inputs = in, .compute = receive_compute),
};

/* --- the program's threads --- */

struct member {
	struct wr_random random;
};

static struct member members[COMPLETERS + 4];

static void complete_some(void *arg)
{
	struct member *self = arg;
	int64_t idle = world.delay;

	while (!wr_load(&world.over)) {
		unsigned jobs = wr_load(&world.jobs),
			 at = jobs ? (unsigned)wr_random_below(&self->random, jobs) : 0;

		for (unsigned i = 0; i < jobs && i < JOBS; i++) {
			struct job *job = &world.job[(at + i) % (jobs < JOBS ? jobs : JOBS)];
			unsigned open = OPEN;
			if (wr_cas(&job->state, &open, TAKEN)) {
				if (wr_random_below(&self->random, 2))
					wr_thread_sleep(1 + (int64_t)wr_random_below(&self->random, 1000));
				finish_job(job);
				idle = world.delay;
				break;
			}
		}
		wr_thread_sleep(1 + (int64_t)wr_random_below(&self->random, (uint64_t)idle));
		idle += idle / 8 + 1; /* so that time passes while nothing is open */
	}
}

static void complete_rest(void)
{
	for (unsigned i = 0; i < wr_load(&world.jobs) && i < JOBS; i++)
		if (wr_load(&world.job[i].state) == OPEN)
			finish_job(&world.job[i]);
}

static bool wait_for_opening(void)
{
	while (!wr_load(&world.opened) && !wr_load(&world.over))
		wr_thread_sleep(100);
	return wr_load(&world.opened);
}

static void take(void *arg)
{
	weir_message *message, *kept[JOBS] = {NULL};
	weir_status status;

	(void)arg;
	if (!wait_for_opening())
		return;
	while ((status = weir_outlet_take(world.outlet, -1, &message)) != WEIR_E_CLOSED) {
		if (status) {
			dst_fails("take: %s", weir_last_error());
			return;
		}
		unsigned number = wr_fetch_add(&world.taken, 1);
		if (!world.early)
			check_value(message, number, true);
		if (world.early && !world.blocks) /* then the message alone does not hold the run open */
			kept[number] = message;
		else
			weir_message_unref(message);
	}
	while (!wr_load(&world.over))
		wr_thread_sleep(10 * US);
	for (unsigned i = 0; i < JOBS; i++)
		weir_message_unref(kept[i]);
}

static void stop(void *arg)
{
	(void)arg;
	wr_thread_sleep(world.stop_after);
	weir_scheduler_stop(world.scheduler, world.seed % 3 ? WEIR_STOP_DRAIN : 0);
}

static void poke(void *arg)
{
	struct member *self = arg;

	for (int i = 0; i < 20 && !wr_load(&world.over); i++) {
		wr_thread_sleep(1 + (int64_t)wr_random_below(&self->random, 1000));
		weir_entity_poke(weir_graph_entity(world.graph, "r0"));
	}
}

static unsigned send(struct wr_thread *threads, unsigned n, void (*fn)(void *arg), unsigned count)
{
	for (; count; count--, n++) {
		wr_random_seed(&members[n].random, world.seed, 700 + n);
		wr_thread_start(&threads[n], "member", fn, &members[n]);
	}
	return n;
}

/* --- promises --- */

static void check_run(weir_status status, const weir_outcome *outcome)
{
	uint64_t messages = (uint64_t)world.count * world.emits;
	const char *owner = NULL;
	int64_t age;

	if (world.stop_after || (wr_load(&world.failed) && status == WEIR_E_IO)) {
		if (status == WEIR_E_IO && strcmp(outcome->entity ? outcome->entity : "?", "m") &&
		    strcmp(outcome->entity ? outcome->entity : "?", "q"))
			dst_fails("the failure is that of '%s'", outcome->entity ? outcome->entity : "none");
		if (status && status != WEIR_E_IO && status != WEIR_E_ABANDONED)
			dst_fails("%s: %s", weir_status_text(status), outcome->text);
		return;
	}
	if (!status && wr_system_promises_of_run(world.graph->system, &owner, &age))
		dst_fails("the run has ended, and a fence of '%s' is open", owner);
	if (status)
		dst_fails("%s: %s", weir_status_text(status),
			  outcome->text ? outcome->text : weir_last_error());
	if (wr_load(&world.failed))
		dst_fails("a failure ended no run");
	for (unsigned i = 0; i < world.receivers; i++)
		if (wr_load(&world.next[i]) != messages)
			dst_fails("receiver %u got %u of %llu", i, wr_load(&world.next[i]),
				  (unsigned long long)messages);
}

/* It is completed before the run begins, or while it begins, or later. */
static void tell_job(void)
{
	static const uint64_t value = TOLD;
	struct job *job = add_job(&world.told_payload, value, &value);

	if (weir_entity_tell_fence(weir_graph_entity(world.graph, "m"), "fence", job->fence))
		dst_fails("tell: %s", weir_last_error());
}

static void run_once(void)
{
	struct wr_thread threads[COMPLETERS + 4];
	weir_outcome outcome = {.size = sizeof outcome};
	weir_status status;
	unsigned n;

	memset(world.job, 0, sizeof world.job);
	wr_store(&world.jobs, 0);
	wr_store(&world.taken, 0);
	wr_store(&world.open, 0);
	for (unsigned i = 0; i < RECEIVERS; i++)
		wr_store(&world.next[i], 0);
	wr_store(&world.over, false);
	wr_store(&world.opened, false);
	wr_store(&world.failed, false);
	if (world.told)
		tell_job();
	n = send(threads, 0, complete_some, world.completers);
	n = send(threads, n, take, world.outlet ? 1 : 0);
	n = send(threads, n, poke, 1);
	n = send(threads, n, stop, world.stop_after ? 1 : 0);
	status = weir_scheduler_start(world.scheduler);
	wr_store(&world.opened, !status);
	if (!status)
		status = weir_scheduler_wait(world.scheduler, PATIENCE, &outcome);
	if (!status && !world.stop_after)
		dst_check_over(world.scheduler);
	if (outcome.duration_ns > 40 * MS)
		dst_fails("the run took %lld us", (long long)outcome.duration_ns / 1000);
	check_run(status, &outcome);
	wr_store(&world.over, true);
	for (unsigned i = 0; i < n && !dst_said.broken[0]; i++)
		wr_thread_join(&threads[i]);
	if (dst_said.broken[0])
		return;
	if (!status && world.outlet && !world.stop_after &&
	    wr_load(&world.taken) != world.count * world.emits)
		dst_fails("%u of %u were taken", wr_load(&world.taken), world.count * world.emits);
	complete_rest();
	(void)dst_left_over(world.scheduler);
	wr_thread_sleep(MS); /* a late callback's poke is refused: it has a reference meanwhile */
	if (wr_live_count(&world.scheduler->live))
		dst_fails("references are left after the run");
	if (wr_system_open_promises(world.graph->system))
		dst_fails("fences are open that were all completed");
	if (weir_graph_collect(world.graph, 100 * MS))
		dst_fails("memory is left after the run: %s", weir_last_error());
}

static weir_status make(weir_registry *registry)
{
	weir_scheduler_options options = {.seed = world.seed,
					  .workers = world.workers,
					  .drain_ns = world.seed % 2 ? 1000 * MS : 2 * US};
	weir_description *description = NULL;
	weir_status status =
		weir_description_parse(dst_said.json, strlen(dst_said.json), NULL, NULL, &description);

	if (!status)
		status = weir_graph_create(registry, description, &world.graph);
	weir_description_destroy(description);
	if (!status && world.places)
		status = weir_graph_add_outlet(world.graph, world.relays ? "q.out" : "m.out", world.places,
					       world.early ? WEIR_OUTLET_EARLY : 0, &world.outlet);
	return status ? status : dst_make_scheduler(world.graph, options, &world.scheduler);
}

static void run(void)
{
	weir_registry *registry = NULL;
	weir_status status = weir_registry_create(&registry);

	for (size_t i = 0; i < sizeof operators / sizeof *operators && !status; i++)
		status = weir_registry_add_operator(registry, &operators[i]);
	if (status || make(registry)) {
		dst_fails("setting up: %s", weir_last_error());
		return;
	}
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

static void put_receiver(unsigned i, const char *from)
{
	static const char *const signals[] = {"callback", "callback_inline", "flag"};
	unsigned kind = draw(5), capacity = 1 + draw(3) + (strcmp(from, "q") ? world.emits : 0);

	dst_put(",{\"name\":\"r%u\",\"operator\":\"receive\",\"parameters\":{\"number\":%u},"
		"\"ports\":{\"in\":{\"capacity\":%u%s}}",
		i, i, capacity, kind == 0 ? ",\"gate\":true" : "");
	world.gated[i] = kind != 1;
	if (kind > 1)
		dst_put(",\"conditions\":[{\"type\":\"cuda_stream\",\"port\":\"in\",\"signal\":\"%s\"}]",
			signals[kind - 2]);
	dst_put("}");
}

static void draw_world(uint64_t seed)
{
	memset(&world, 0, sizeof world);
	world.seed = seed;
	wr_random_seed(&world.shape, seed, 43);
	world.emits = 1 + (draw(3) == 0);
	world.relays = world.emits == 1 && draw(2);
	world.count = 1 + draw(world.relays ? 10 : 14);
	world.in_flight = draw(4);
	world.blocks = draw(2) ? world.emits + draw(3) + world.relays : 0;
	world.receivers = 1 + draw(RECEIVERS);
	world.passes = draw(2);
	world.places = draw(3) ? 0 : world.emits + draw(3);
	world.workers = 1 + draw(3);
	world.completers = 1 + draw(COMPLETERS);
	world.device = draw(2);
	world.early = !draw(4);
	world.told = seed % 3 == 1;
	if (world.early && world.places && draw(2)) /* nothing but the promise holds the run open */
		world.receivers = world.passes = world.relays = 0;
	world.delay = (int64_t)1 << (4 + draw(9));
	world.fails = shape == FAILING ? 1 + draw(world.count * world.emits) : 0;
	world.stop_after = shape == STOPPED ? 1 + draw(20000) : 0;
	if (shape == STOPPED && !draw(4))
		world.fails = 1 + draw(world.count * world.emits);
	dst_put("{\"weir\":1,\"resources\":{\"s\":{\"type\":\"stream_pool\"}%s", world.blocks ? "," : "");
	if (world.blocks)
		dst_put("\"b\":{\"type\":\"memory_pool\",\"place\":\"host\",\"block_size\":64,\"blocks\":%u}",
			world.blocks);
	dst_put("},\"entities\":[{\"name\":\"m\",\"operator\":\"make\",\"resources\":[\"s\"%s],\"ports\":{"
		"\"out\":"
		"{\"max_emits\":%u}},\"conditions\":[{\"type\":\"count\",\"count\":%u}",
		world.blocks ? ",\"b\"" : "", world.emits, world.count);
	if (world.told)
		dst_put(",{\"type\":\"fence\",\"once\":false}");
	if (world.blocks)
		dst_put(",{\"type\":\"memory_available\",\"pool\":\"b\",\"min_blocks\":%u}", world.emits);
	dst_put("]");
	if (world.in_flight)
		dst_put(",\"max_in_flight\":%u", world.in_flight);
	dst_put("}");
	if (world.relays)
		dst_put(",{\"name\":\"q\",\"operator\":\"relay\",\"resources\":[\"s\"],\"ports\":{\"in\":{"
			"\"capacity\":%u}}}",
			1 + draw(2));
	if (world.passes)
		dst_put(",{\"name\":\"p\",\"operator\":\"hand_on\",\"ports\":{\"in\":{\"capacity\":%u}}}",
			world.emits + draw(2));
	for (unsigned i = 0; i < world.receivers; i++)
		put_receiver(i, i == 1 && world.relays ? "q" : "m");
	dst_put("],\"connections\":[");
	if (world.passes)
		dst_put("[\"m.out\",\"p.in\"],");
	if (world.relays)
		dst_put("[\"m.out\",\"q.in\"],");
	for (unsigned i = 0; i < world.receivers; i++)
		dst_put("%s[\"%s.out\",\"r%u.in\"]", i ? "," : "",
			i == 1 && world.relays   ? "q"
			: i == 0 && world.passes ? "p"
						 : "m",
			i);
	dst_put("]}");
}

int main(int argc, char **argv)
{
	static const struct dst_command command = {
		.name = "dst_promises",
		.shapes = {"flowing", "failing", "stopped"},
		.shape = &shape,
		.draw = draw_world,
		.run = run,
		.look = dst_check_pools,
		.scheduler = &world.scheduler,
	};

	return dst_command(&command, argc, argv);
}
