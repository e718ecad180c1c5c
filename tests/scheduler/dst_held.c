/*
 * Who holds memory, under seeded schedules (S3, S4, B2): chains of entities share two pools of 1 to 3 blocks;
 * the program's threads take from outlets, keep what they took, drop it on other threads, push, tell and
 * poke, on `sim`, in the build whose atomics are switching points.
 *
 *	dst_held [--bug NAME] [--seeds N] [--start S] [--rate] [--shape flowing|stuck|tight]
 *
 * No chain needs memory of a later one, and the program drops all that it takes, so a run that is not stopped
 * must end with all ticks made, and no message missing, whoever held the memory meanwhile. In `stuck` worlds
 * a disabled receiver keeps what the program was handed as well: the run must end as a deadlock, after
 * exactly the ticks that there was memory and room for. In `tight` ones each tick needs the whole pool, all
 * of which the program gets, and no grace time covers anything: there what is wrong at the edge shows
 * soonest. In some of both the program's threads never sleep, so what they drop meets the loop's look.
 */
#include <stdio.h>
#include <string.h>

#include "dst_held.h"

#define PATIENCE (3000 * MS) /* for a run: more than the longest grace time, and than the watch sleeps */

enum { RUNS = 2 };

struct dst_held_world held;
unsigned held_shape;

/* --- what the entities do --- */

struct node {
	struct wr_random random;
	const struct dst_chain *chain;
};

static weir_status node_start(weir_context *context, void *state, const weir_values *values)
{
	struct node *node = state;
	uint64_t number = (uint64_t)weir_values_int(values, "chain");

	node->chain = &held.chain[number];
	wr_random_seed(&node->random, held.seed, 500 + 10 * number + weir_context_entity(context)->id);
	return WEIR_OK;
}

static void pause_some(struct node *node)
{
	if (!wr_random_below(&node->random, 3))
		weir_sleep(1 + (int64_t)wr_random_below(&node->random, 1500));
}

static weir_status head_compute(weir_context *context, void *state)
{
	struct node *node = state;
	const struct dst_chain *chain = node->chain;
	weir_part parts[BLOCKS] = {{sizeof(weir_part), "a", NULL},
				   {sizeof(weir_part), "b", NULL},
				   {sizeof(weir_part), "c", NULL}};
	weir_message *pack = NULL;
	weir_status status = WEIR_OK;

	pause_some(node);
	for (unsigned i = 0; !status && i < chain->blocks; i++)
		status = dst_make_block(context, &node->random, !chain->pool, chain->device,
					&parts[i].message);
	if (!status && chain->messages < chain->blocks)
		status = weir_message_pack(weir_context_graph(context), parts, chain->blocks, &pack);
	if (pack)
		return weir_context_emit(context, 0, pack);
	for (unsigned i = 0; !status && i < chain->blocks; i++)
		status = weir_context_emit(context, 0, parts[i].message);
	return status;
}

static weir_status pass_compute(weir_context *context, void *state)
{
	pause_some(state);
	if (weir_context_tick(context) % 2)
		return weir_context_forward(context, 0, 0, 0);
	return weir_context_emit(context, 0, weir_message_ref(weir_context_message(context, 0, 0)));
}

static weir_status receive_compute(weir_context *context, void *state)
{
	(void)context;
	pause_some(state);
	return WEIR_OK;
}

static weir_status nothing_compute(weir_context *context, void *state)
{
	(void)context;
	(void)state;
	dst_fails("a disabled entity ticked");
	return WEIR_OK;
}

static const weir_parameter parameters[] = {
	{.size = sizeof(weir_parameter), .name = "chain", .type = WEIR_TYPE_INT, .help = "its number"},
	{0},
};
static const weir_port in[] = {{.size = sizeof(weir_port), .name = "in", .flags = WEIR_PORT_DEVICE}, {0}};
static const weir_port fed[] = {
	{.size = sizeof(weir_port), .name = "in", .flags = WEIR_PORT_OPTIONAL | WEIR_PORT_DEVICE}, {0}};
static const weir_port out[] = {{.size = sizeof(weir_port), .name = "out", .flags = WEIR_PORT_OPTIONAL}, {0}};
static const weir_operator operators[] = {
	{.size = sizeof(weir_operator),
	 .name = "head",
	 .help = "claims memory and emits it",
	 .state_size = sizeof(struct node),
	 .parameters = parameters,
	 .inputs = fed,
	 .outputs = out,
	 .start = node_start,
	 .compute = head_compute},
	{.size = sizeof(weir_operator),
	 .name = "hand_on",
	 .help = "passes on",
	 .state_size = sizeof(struct node),
	 .parameters = parameters,
	 .inputs = in,
	 .outputs = out,
	 .start = node_start,
	 .compute = pass_compute},
	{.size = sizeof(weir_operator),
	 .name = "receive",
	 .help = "takes time",
	 .state_size = sizeof(struct node),
	 .parameters = parameters,
	 .inputs = in,
	 .start = node_start,
	 .compute = receive_compute},
	{.size = sizeof(weir_operator), .name = "nothing", .help = "is disabled", .compute = nothing_compute},
};

/* --- promises --- */

static uint64_t ticks_of(char kind, unsigned c)
{
	char name[8] = {kind, (char)('0' + c), 0};
	const weir_entity *entity = weir_graph_entity(held.graph, name);

	return entity ? wr_read(&entity->counters.ticks) : 0;
}

/* Each tick of a stuck chain leaves its messages, and their memory, in the queue of the disabled receiver. */
static unsigned ticks_until_stuck(const struct dst_chain *chain)
{
	unsigned by_memory = (held.blocks[chain->pool] - chain->units) / chain->blocks + 1;
	unsigned by_room = (chain->passes ? 2 : 1) * chain->room / chain->messages;
	unsigned least = by_memory < by_room ? by_memory : by_room;

	return least < chain->count ? least : chain->count;
}

static void expect(const char *what, unsigned c, uint64_t is, uint64_t should)
{
	if (is != should)
		dst_fails("chain %u: %s: %llu, not %llu", c, what, (unsigned long long)is,
			  (unsigned long long)should);
}

static void check_flowing(weir_status status, const char *text)
{
	if (status)
		dst_fails("%s: %s", weir_status_text(status), text);
	for (unsigned c = 0; c < held.chains && !held.stop_after; c++) {
		const struct dst_chain *chain = &held.chain[c];
		unsigned messages = chain->count * chain->messages;

		expect("ticks of the head", c, ticks_of('h', c), chain->count);
		expect("ticks of the passer", c, ticks_of('p', c), chain->passes ? messages : 0);
		expect("ticks of the receiver", c, ticks_of('r', c), chain->receives ? messages : 0);
	}
}

static void check_stuck(weir_status status, const char *text)
{
	if (status != WEIR_E_DEADLOCK)
		dst_fails("%s, not a deadlock: %s", weir_status_text(status), text);
	expect("ticks of the head", 0, ticks_of('h', 0), ticks_until_stuck(&held.chain[0]));
}

/* After the program's threads have ended. */
static void check_taken(void)
{
	for (unsigned c = 0; c < held.chains; c++) {
		const struct dst_chain *chain = &held.chain[c];
		uint64_t messages = (chain->passes ? ticks_of('p', c) : ticks_of('h', c) * chain->messages);

		if (chain->outlet && !held.stop_after)
			expect("messages taken", c, wr_read(&held.chain[c].taken), messages);
	}
}

/* When the run is over and the program holds nothing, all memory is back but what queues still hold. */
static void check_returned(void)
{
	uint64_t left = dst_left_over(held.scheduler);

	wr_thread_sleep(MS);
	wr_system_run_deferred_frees(held.graph->system, true);
	for (size_t i = 0; i < held.graph->memory_pool_count; i++) {
		const struct wr_memory_pool *pool = &held.graph->memory_pools[i];

		if (pool->shared.used > left * BLOCKS || (!left && pool->shared.used))
			dst_fails("%s: %llu blocks are in use after the run", pool->plan->name,
				  (unsigned long long)pool->shared.used);
	}
	if (wr_live_count(&held.scheduler->live))
		dst_fails("references are left after the run");
}

/* --- a world --- */

static void run_once(void)
{
	struct wr_thread threads[DST_HELD_THREADS];
	weir_outcome outcome = {.size = sizeof outcome};
	weir_status status;
	unsigned n;

	for (unsigned c = 0; c < held.chains; c++) {
		wr_store(&held.chain[c].taken, 0);
		wr_store(&held.chain[c].pushed, 0);
	}
	wr_store(&held.over, false);
	wr_store(&held.opened, false);
	n = dst_held_send(threads);
	status = weir_scheduler_start(held.scheduler);
	wr_store(&held.opened, !status);
	if (!status)
		status = weir_scheduler_wait(held.scheduler, PATIENCE, &outcome);
	if (!held.stop_after && status != WEIR_E_TIMEOUT)
		dst_check_over(held.scheduler);
	(held_shape == DST_HELD_STUCK ? check_stuck : check_flowing)(
		status, outcome.text ? outcome.text : weir_last_error());
	wr_store(&held.over, true);
	for (unsigned i = 0; i < n && !dst_said.broken[0]; i++)
		wr_thread_join(&threads[i]);
	if (dst_said.broken[0])
		return;
	check_taken();
	if (held.carries)
		return;
	dst_held_clear_shelf();
	check_returned();
}

static weir_status add_ends(void)
{
	weir_status status = WEIR_OK;

	for (unsigned c = 0; c < held.chains && !status; c++) {
		struct dst_chain *chain = &held.chain[c];
		char port[24];

		snprintf(port, sizeof port, "%c%u.out", chain->passes ? 'p' : 'h', c);
		if (chain->places)
			status = weir_graph_add_outlet(held.graph, port, chain->places,
						       chain->early ? WEIR_OUTLET_EARLY : 0, &chain->outlet);
		snprintf(port, sizeof port, "h%u.in", c);
		if (!status && chain->pushers)
			status = weir_graph_add_inlet(held.graph, port, &chain->inlet);
	}
	return status;
}

static weir_status make(weir_registry *registry)
{
	weir_scheduler_options options = {.seed = held.seed,
					  .workers = held.workers,
					  .deadlock_grace_ns = held.grace,
					  .drain_ns = 1000 * MS};
	weir_description *description = NULL;
	weir_status status =
		weir_description_parse(dst_said.json, strlen(dst_said.json), NULL, NULL, &description);

	if (!status)
		status = weir_graph_create(registry, description, &held.graph);
	weir_description_destroy(description);
	if (!status)
		status = add_ends();
	return status ? status : dst_make_scheduler(held.graph, options, &held.scheduler);
}

static weir_status add_operators(weir_registry *registry)
{
	weir_status status = WEIR_OK;

	for (size_t i = 0; i < sizeof operators / sizeof *operators && !status; i++)
		status = weir_registry_add_operator(registry, &operators[i]);
	return status;
}

static void run(void)
{
	weir_registry *registry = NULL;

	if (weir_registry_create(&registry) || add_operators(registry) || make(registry)) {
		dst_fails("setting up: %s", weir_last_error());
		return;
	}
	for (int i = 0; i < RUNS && !dst_said.broken[0]; i++) {
		held.carries &= i + 1 < RUNS;
		run_once();
	}
	if (dst_said.broken[0])
		return; /* abandoned */
	weir_scheduler_destroy(held.scheduler);
	held.scheduler = NULL;
	if (weir_graph_destroy(held.graph))
		dst_fails("destroy: %s", weir_last_error());
	weir_registry_destroy(registry);
}

int main(int argc, char **argv)
{
	static const struct dst_command command = {
		.name = "dst_held",
		.shapes = {"flowing", "stuck", "tight"},
		.shape = &held_shape,
		.draw = dst_held_draw,
		.run = run,
		.look = dst_check_pools,
		.scheduler = &held.scheduler,
	};

	return dst_command(&command, argc, argv);
}
