/*
 * Claims of memory pools under seeded schedules (S3): two pools of 1 to 3 blocks, 2 to 6 entities that claim
 * one or both, on `sim`, in the build whose atomics are switching points.
 *
 *	dst_claims [--bug NAME] [--seeds N] [--start S] [--rate] [--shape any|drained|wide|keeping]
 *
 * Each tick takes some of what it claimed, now and then more, and emits, drops or gives to the device what it
 * took; an outlet's taker holds messages for a while; computes fail, runs are stopped. A run must end as it
 * has to. A deadlock is right only if every refused entity lacks blocks: then they are in full queues.
 *
 * Shapes: `drained` worlds have few blocks, and sources that are drained while they are refused. In `wide`
 * ones an entity claims all blocks of three and uses few of them, the others wait for one each. In both no
 * outsider repairs a lost wake-up, and there is a bound on how often entities are refused between two ticks.
 *In `keeping` ones one or two entities make messages ahead, and keep claims for them.
 */
#include <stdio.h>
#include <string.h>

#include "dst_claims.h"
#include "rest.h"

enum { REFUSALS_MOST = 8 * ENTITIES, RUNS = 4, POKES = 12, KEPT = 3, TELLS = 20, OUTSIDERS = 4 };

struct dst_claims_world world;
unsigned shape;

/* --- what the entities do --- */

struct node {
	struct wr_random random;
	uint64_t id;
};
static weir_status node_start(weir_context *context, void *state, const weir_values *values)
{
	struct node *node = state;

	(void)context;
	node->id = (uint64_t)weir_values_int(values, "id");
	wr_random_seed(&node->random, world.seed, 500 + node->id);
	return WEIR_OK;
}

/* More than was claimed may be refused, and the tick goes on; what was claimed is there. */
static weir_status take_some(weir_context *context, struct node *node, const struct wr_claim *claim,
			     weir_message **last)
{
	bool on_host = wr_memory_pool_of(claim)->plan->device == WEIR_DEVICE_HOST;
	uint64_t count = wr_random_below(&node->random, claim->units + 1), more = 0;

	if (!wr_random_below(&node->random, 8))
		count += more = 1;
	for (uint64_t i = 0; i < count; i++) {
		weir_message *message = NULL;
		weir_status status = dst_make_block(context, &node->random, on_host,
						    world.device[node->id] && !on_host, &message);

		if (status == WEIR_E_BUSY && i < count - more)
			dst_fails("e%u was refused what it had claimed", (unsigned)node->id);
		if (status)
			return status == WEIR_E_BUSY ? WEIR_OK : status;
		weir_message_unref(*last);
		*last = message;
	}
	return WEIR_OK;
}

/* Claims in different orders are refused again and again, each by the other's. */
static void count_refusals(void)
{
	uint64_t refusals = 0;

	for (size_t i = 0; i < world.graph->memory_pool_count; i++)
		refusals += world.graph->memory_pools[i].shared.refusals;
	if ((shape == DRAINED || shape == WIDE) && refusals > world.refusals + REFUSALS_MOST)
		dst_fails("%llu refusals between two ticks", (unsigned long long)(refusals - world.refusals));
	world.refusals = refusals;
}

static weir_status node_compute(weir_context *context, void *state)
{
	struct node *node = state;
	const weir_entity *entity = weir_context_entity(context);
	weir_message *message = NULL;
	weir_status status = WEIR_OK;

	count_refusals();
	for (size_t i = 0; !status && i < entity->claim_count; i++)
		if (wr_random_below(&node->random, 3))
			status = take_some(context, node, &entity->claims[i], &message);
	if (wr_random_below(&node->random, 2))
		weir_sleep(1 + (int64_t)wr_random_below(&node->random, 1500));
	if (weir_context_tick(context) + 1 == world.fails_at[node->id]) {
		world.failed = true;
		status = weir_context_fail(context, "told to fail");
	}
	if (status || !message) {
		weir_message_unref(message);
		return status;
	}
	return weir_context_emit(context, 0, message);
}

/* --- one that makes messages ahead --- */

struct keeper {
	struct node node;
	weir_message *made[AHEAD]; /* and not emitted */
};

/* Of those that it may make ahead. */
static size_t not_made(const struct keeper *keeper)
{
	size_t count = 0;

	for (size_t i = 0; i < AHEAD; i++)
		count += !keeper->made[i];
	return count;
}

/* Uses what it keeps in any order; all of that is there. */
static weir_status make_ahead(weir_context *context, struct keeper *keeper, size_t kept)
{
	const weir_entity *entity = weir_context_entity(context);
	struct wr_random *random = &keeper->node.random;

	for (size_t i = 0; i < AHEAD && kept; i++) {
		const struct wr_claim *claim;
		weir_status status;
		bool on_host;

		if (keeper->made[i] || !entity->claim_count || !wr_random_below(random, 3))
			continue;
		claim = &entity->claims[wr_random_below(random, entity->claim_count)];
		on_host = wr_memory_pool_of(claim)->plan->device == WEIR_DEVICE_HOST;
		status = dst_make_block(context, random, on_host, false, &keeper->made[i]);
		if (status == WEIR_E_BUSY)
			dst_fails("e%u was refused what it keeps", (unsigned)keeper->node.id);
		if (status)
			return status;
		kept--;
	}
	return WEIR_OK;
}

static weir_status keeper_compute(weir_context *context, void *state)
{
	struct keeper *keeper = state;
	struct wr_random *random = &keeper->node.random;
	size_t most = (size_t)wr_random_below(random, not_made(keeper) + 1);
	weir_status status = make_ahead(context, keeper, weir_context_reserve(context, most));
	bool has = false, emitted = false;

	for (size_t i = 0; !status && i < AHEAD; i++) {
		if (keeper->made[i] && !emitted && wr_random_below(random, 2)) {
			status = weir_context_emit(context, 0, keeper->made[i]);
			keeper->made[i] = NULL;
			emitted = true;
		}
		has |= keeper->made[i] != NULL;
	}
	if (wr_random_below(random, 2))
		weir_sleep(1 + (int64_t)wr_random_below(random, 1500));
	if (weir_context_tick(context) + 1 == world.fails_at[keeper->node.id]) {
		world.failed = true;
		return weir_context_fail(context, "told to fail");
	}
	most = not_made(keeper);
	has |= weir_context_reserve(context, most - (size_t)wr_random_below(random, most > 1 ? 2 : 1)) > 0;
	return status ? status
		      : weir_entity_tell(weir_context_entity(context), "keeps",
					 has ? WEIR_TOLD_READY : WEIR_TOLD_WAIT);
}

static void keeper_stop(weir_context *context, void *state)
{
	struct keeper *keeper = state;

	(void)context;
	for (size_t i = 0; i < AHEAD; i++)
		weir_message_unref(keeper->made[i]);
}

static void keeps_ask(const void *state, weir_view *view, weir_verdict *verdict)
{
	(void)state;
	if (weir_view_told(view) != WEIR_TOLD_WAIT || weir_view_reserved(view)) {
		weir_verdict_ready(verdict);
		return;
	}
	weir_verdict_wait(verdict, "nothing to emit, and no memory for more");
	weir_verdict_set_cause(verdict, WEIR_CAUSE_MEMORY, -1, false);
}

static const weir_condition keeps = {
	.size = sizeof(weir_condition),
	.name = "keeps",
	.help = "has a message, or memory for one",
	.phase = WEIR_PHASE_GATHERING,
	.ask = keeps_ask,
};

static const weir_parameter parameters[] = {
	{.size = sizeof(weir_parameter), .name = "id", .type = WEIR_TYPE_INT, .help = "its number"},
	{0},
};
static const weir_port in[] = {
	{.size = sizeof(weir_port), .name = "in", .flags = WEIR_PORT_OPTIONAL | WEIR_PORT_DEVICE}, {0}};
static const weir_port out[] = {{.size = sizeof(weir_port), .name = "out", .flags = WEIR_PORT_OPTIONAL}, {0}};
static const weir_operator node_operator = {
	.size = sizeof(weir_operator),
	.name = "node",
	.help = "takes memory, emits some of it",
	.state_size = sizeof(struct node),
	.parameters = parameters,
	.inputs = in,
	.outputs = out,
	.start = node_start,
	.compute = node_compute,
};

static const weir_port ahead[] = {
	{.size = sizeof(weir_port), .name = "out", .flags = WEIR_PORT_OPTIONAL, .ahead = AHEAD}, {0}};
static const char *const keeps_alone[] = {"{\"type\": \"keeps\"}", NULL};
static const weir_operator keeper_operator = {
	.size = sizeof(weir_operator),
	.name = "keeper",
	.help = "makes messages ahead",
	.state_size = sizeof(struct keeper),
	.parameters = parameters,
	.inputs = in,
	.outputs = ahead,
	.conditions = keeps_alone,
	.start = node_start,
	.compute = keeper_compute,
	.stop = keeper_stop,
};

/* --- outsiders --- */

/* Every poke repairs a wake-up that was lost before it: few worlds have some. */
static void poke_about(void *arg)
{
	struct wr_random random;

	(void)arg;
	wr_random_seed(&random, world.seed, 71);
	if (shape != ANY || wr_random_below(&random, 4))
		return;
	for (int i = 0; i < POKES && !wr_load(&world.over); i++) {
		weir_sleep((int64_t)wr_random_below(&random, 900));
		weir_entity_poke(&world.graph->entities[wr_random_below(&random, world.entities)]);
	}
}

static void stop(void *arg)
{
	(void)arg;
	weir_sleep(world.stop_after);
	if (world.stop_after)
		weir_scheduler_stop(world.scheduler, world.drain ? WEIR_STOP_DRAIN : 0);
}

/* An entity that waits for another reason meanwhile must pass on what it is offered. Each is enabled at the
 * end. */
static void tell(void *arg)
{
	struct wr_random random;

	(void)arg;
	wr_random_seed(&random, world.seed, 73);
	for (int i = 0; i < TELLS && !wr_load(&world.over); i++) {
		unsigned id = (unsigned)wr_random_below(&random, world.entities);

		if (!world.told[id])
			continue;
		weir_entity_tell(&world.graph->entities[id], "boolean", WEIR_TOLD_WAIT);
		weir_sleep((int64_t)wr_random_below(&random, 3000));
		weir_entity_tell(&world.graph->entities[id], "boolean", WEIR_TOLD_READY);
		weir_sleep((int64_t)wr_random_below(&random, 600));
	}
}

/* Holds a few messages, and drops them in any order. */
static void take(void *arg)
{
	weir_message *kept[KEPT] = {NULL};
	struct wr_random random;
	weir_status status = WEIR_OK;

	(void)arg;
	wr_random_seed(&random, world.seed, 72);
	while (!wr_load(&world.opened) && !wr_load(&world.over))
		weir_sleep(100);
	while (world.outlet && wr_load(&world.opened) && status != WEIR_E_CLOSED) {
		weir_message **place = &kept[wr_random_below(&random, KEPT)];

		weir_message_unref(*place);
		*place = NULL;
		status = weir_outlet_take(world.taken_from, (int64_t)wr_random_below(&random, 3000), place);
		if (status == WEIR_E_TIMEOUT) /* else it may hold what all others wait for */
			for (int i = 0; i < KEPT; i++) {
				weir_message_unref(kept[i]);
				kept[i] = NULL;
			}
	}
	for (int i = 0; i < KEPT; i++)
		weir_message_unref(kept[i]);
}

/* --- promises --- */

/* "0 of 2 blocks of pool 'm0' are free, a tick needs 1": returns true if every one needs more than is free.
 */
static bool all_lack(const char *text)
{
	const char *at = text;
	bool some = false;

	while ((at = strstr(at, "memory_available: "))) {
		unsigned long long free = 0, size = 0, units = 0;
		char pool[8];

		at += strlen("memory_available: ");
		if (sscanf(at, "%llu of %llu blocks of pool '%7[^']' are free, a %*s needs %llu", &free,
			   &size, pool, &units) != 4 ||
		    free >= units)
			return false;
		some = true;
	}
	return some;
}

static void check_end(weir_status status, const char *text)
{
	if (world.failed ? status != WEIR_E_FAILED && !world.stop_after && status != WEIR_E_DEADLOCK
			 : status && !(status == WEIR_E_DEADLOCK && all_lack(text)))
		dst_fails("%s: %s", weir_status_text(status), text);
}

/* When the run is over and the taker has dropped what it held, all memory comes back. */
static void check_returned(void)
{
	uint64_t left = dst_left_over(world.scheduler);

	weir_sleep(MS);
	wr_system_run_deferred_frees(world.graph->system, true);
	for (size_t i = 0; i < world.graph->memory_pool_count; i++) {
		const struct wr_memory_pool *pool = &world.graph->memory_pools[i];

		if (left ? pool->shared.used > left
			 : pool->shared.used || pool->outside ||
				    wr_blocks_free(&pool->blocks) != pool->shared.size)
			dst_fails("%s: %llu blocks are in use after the run, %llu outside", pool->plan->name,
				  (unsigned long long)pool->shared.used, (unsigned long long)pool->outside);
	}
	if (wr_live_count(&world.scheduler->live))
		dst_fails("references are left after the run");
}

static void run_once(void)
{
	static void (*const outsiders[OUTSIDERS])(void *) = {poke_about, stop, take, tell};
	struct wr_thread threads[OUTSIDERS];
	weir_outcome outcome = {.size = sizeof outcome};
	weir_status status;

	world.failed = false;
	world.refusals = 0;
	wr_store(&world.over, false);
	wr_store(&world.opened, false);
	for (int i = 0; i < OUTSIDERS; i++)
		wr_thread_start(&threads[i], "outsider", outsiders[i], NULL);
	status = weir_scheduler_start(world.scheduler);
	if (status)
		dst_fails("start: %s", weir_last_error());
	wr_store(&world.opened, !status);
	if (!status) {
		status = weir_scheduler_wait(world.scheduler, 20 * INT64_C(1000) * MS, &outcome);
		check_end(status, outcome.text ? outcome.text : weir_last_error());
		if (!world.failed && !world.stop_after)
			dst_check_over(world.scheduler);
	}
	wr_store(&world.over, true);
	for (int i = 0; i < OUTSIDERS && !dst_said.broken[0]; i++)
		wr_thread_join(&threads[i]);
	if (!dst_said.broken[0])
		check_returned();
}

static weir_status make(weir_registry *registry)
{
	weir_scheduler_options options = {.seed = world.seed,
					  .workers = 1 + (unsigned)dst_claims_random(3),
					  .deadlock_grace_ns =
						  10 * MS, /* disabled entities are enabled before */
					  .drain_ns = 1000 * MS};
	weir_description *description = NULL;
	char last[16];
	weir_status status =
		weir_description_parse(dst_said.json, strlen(dst_said.json), NULL, NULL, &description);

	if (!status)
		status = weir_graph_create(registry, description, &world.graph);
	weir_description_destroy(description);
	snprintf(last, sizeof last, "e%u.out", world.entities - 1);
	if (!status && world.outlet)
		status = weir_graph_add_outlet(world.graph, last, 1 + (uint32_t)dst_claims_random(2), 0,
					       &world.taken_from);
	if (!status)
		status = dst_make_scheduler(world.graph, options, &world.scheduler);
	if (!status && world.seed % 2)
		rest_look_often(world.scheduler, (1 + (int64_t)(world.seed / 2 % 10)) * 5 * US);
	return status;
}

static void run(void)
{
	weir_registry *registry = NULL;

	if (weir_registry_create(&registry) || weir_registry_add_operator(registry, &node_operator) ||
	    weir_registry_add_condition(registry, &keeps) ||
	    weir_registry_add_operator(registry, &keeper_operator) || make(registry)) {
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

int main(int argc, char **argv)
{
	static const struct dst_command command = {
		.name = "dst_claims",
		.shapes = {"any", "drained", "wide", "keeping"},
		.shape = &shape,
		.draw = dst_claims_draw,
		.run = run,
		.look = dst_check_pools,
		.scheduler = &world.scheduler,
	};

	return dst_command(&command, argc, argv);
}
