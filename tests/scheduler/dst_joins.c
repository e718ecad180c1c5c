/*
 * What joins messages, and what deals them out, under seeded schedules (C4, C11, C12, C13, S3 to S7, E5):
 * random trees of sources, relays, joins and sinks, on `sim`, in the build whose atomics are switching
 *points.
 *
 *	dst_joins [--bug NAME] [--seeds N] [--start S] [--rate]
 *		[--shape any|aligned|trees|batches|latest|instances]
 *
 * A join has a condition `aligned`, a tree of alternatives, a batch, or what it has by default; perhaps a
 * `latest` port; and, as relays, perhaps instances. Entities work on the device or on the host, or leave the
 * work to the program; some have small pools, or lose messages; stamps jump and repeat. The program's threads
 * take, tell, poke and stop. Every run must end as it has to; then each tick of each entity is compared with
 * what it had to receive (dst_joins_check.c, dst_joins_sets.c), and each count with what came of these ticks.
 */
#include "dst_joins.h"

#include <stdio.h>
#include <string.h>

enum { RUNS = 2 };
#define PATIENCE (20 * INT64_C(1000) * MS)

struct dst_joins_world joins;
unsigned joins_shape;

/* --- promises --- */

/* A lost alternative's beat, 100 s after the start, holds nothing open. */
static void check_end(weir_status status, const weir_outcome *outcome)
{
	if (outcome->duration_ns > 1000 * MS)
		dst_fails("the run took %lld ms", (long long)(outcome->duration_ns / MS));
	if (status && !(joins.failed && status == WEIR_E_FAILED))
		dst_fails("%s: %s", weir_status_text(status),
			  outcome->text ? outcome->text : weir_last_error());
	if (!status && joins.failed && !joins.stop_after)
		dst_fails("a failure was not told");
}

/* Returns true if the entity ends by its inputs alone: none of its receivers may end before. */
static bool ends_by_inputs(unsigned id)
{
	bool sinks = true;

	for (unsigned i = 0; i < joins.entities; i++)
		for (unsigned p = 0; p < PORTS; p++)
			sinks &= joins.entity[i].port[p].from != (int)id || joins.entity[i].role == SINK;
	return sinks || joins.entity[id].effects;
}

static weir_queue_counts counts_of(unsigned id, unsigned p)
{
	weir_queue_counts counts = {.size = sizeof counts};
	char from[16], to[16];

	snprintf(from, sizeof from, "e%d.out", joins.entity[id].port[p].from);
	snprintf(to, sizeof to, "e%u.%c", id, 'a' + p);
	for (size_t i = 0; !weir_scheduler_queue_counts(joins.scheduler, i, &counts); i++)
		if (!strcmp(counts.from, from) && !strcmp(counts.to, to))
			return counts;
	dst_fails("no connection from %s to %s", from, to);
	return counts;
}

static void check_entity(unsigned id, bool cut)
{
	const struct dst_joins_entity *entity = &joins.entity[id];
	struct dst_joins_found found = {.whole = !cut && ends_by_inputs(id), .cut = cut};

	for (unsigned p = 0; p < PORTS; p++) {
		weir_queue_counts counts;
		if (entity->port[p].from == NONE)
			continue;
		counts = counts_of(id, p);
		found.pushed[p] = counts.pushed;
		found.delivered[p] = counts.delivered;
		found.dropped[p] = counts.dropped;
		found.unmatched[p] = counts.unmatched;
		found.reused[p] = counts.reused;
		/* An entity that is shown nothing ends when nothing can come there. */
		found.whole &= entity->port[p].policy != WEIR_POLICY_LATEST || counts.pushed;
		/* What instances have made is not pushed if all receivers have ended. */
		if (!cut &&
		    ends_by_inputs((unsigned)entity->port[p].from) |
			    !joins.entity[entity->port[p].from].instances &&
		    counts.pushed != joins.log[entity->port[p].from].sent_count)
			dst_fails("e%d sent %u, and %llu were pushed to e%u.%c", entity->port[p].from,
				  joins.log[entity->port[p].from].sent_count,
				  (unsigned long long)counts.pushed, id, 'a' + p);
		if (found.whole && counts.abandoned + counts.queued)
			dst_fails("e%u.%c: %llu are left", id, 'a' + p,
				  (unsigned long long)(counts.abandoned + counts.queued));
	}
	if (entity->role != SOURCE && !dst_said.broken[0])
		dst_joins_check(id, &found);
}

/* When the run is over and the program holds nothing, all memory is back but what queues still hold. */
static void check_returned(void)
{
	uint64_t left = dst_left_over(joins.scheduler);

	weir_sleep(MS);
	wr_system_run_deferred_frees(joins.graph->system, true);
	for (size_t i = 0; i < joins.graph->memory_pool_count; i++) {
		const struct wr_memory_pool *pool = &joins.graph->memory_pools[i];

		if (!joins.failed && !joins.stop_after && (left || pool->shared.used))
			dst_fails("%s: %llu blocks are in use after the run", pool->plan->name,
				  (unsigned long long)pool->shared.used);
	}
	if (wr_live_count(&joins.scheduler->live))
		dst_fails("references are left after the run");
}

/* --- a world --- */

static void forget_run(void)
{
	memset(joins.log, 0, sizeof joins.log);
	for (unsigned id = 0; id < joins.entities; id++)
		for (unsigned p = 0; p < PORTS; p++)
			if (joins.entity[id].port[p].from != NONE)
				joins.log[id].base[p] = wr_read(
					&joins.graph->entities[id].inputs[p].connections[0]->queue.tail);
	dst_joins_forget();
	joins.failed = false;
	wr_store(&joins.over, false);
	wr_store(&joins.opened, false);
}

static void run_once(void)
{
	struct wr_thread threads[DST_JOINS_THREADS];
	weir_outcome outcome = {.size = sizeof outcome};
	weir_status status;
	unsigned n;

	forget_run();
	n = dst_joins_send(threads);
	status = weir_scheduler_start(joins.scheduler);
	wr_store(&joins.opened, !status);
	if (!status)
		status = weir_scheduler_wait(joins.scheduler, PATIENCE, &outcome);
	check_end(status, &outcome);
	wr_store(&joins.over, true);
	for (unsigned i = 0; i < n && !dst_said.broken[0]; i++)
		wr_thread_join(&threads[i]);
	if (dst_said.broken[0])
		return;
	dst_joins_complete_rest();
	for (unsigned id = 0; id < joins.entities && !dst_said.broken[0]; id++)
		check_entity(id, status || joins.stop_after);
	if (!dst_said.broken[0])
		check_returned();
}

/* What is refused says how many blocks the pool must have: it gets as many, and no run may stand still. */
static bool raise_pool(const char *text)
{
	const char *pool = strstr(text, "pool 'p"), *with = strstr(text, ": with ");
	unsigned id, blocks;

	if (!pool || !with || sscanf(pool, "pool 'p%u'", &id) != 1 ||
	    sscanf(with, ": with %u blocks", &blocks) != 1)
		return false;
	joins.entity[id].blocks = blocks;
	return true;
}

static weir_status make_graph(weir_registry *registry)
{
	weir_status status;

	do {
		weir_description *description = NULL;

		dst_joins_put();
		status = weir_description_parse(dst_said.json, strlen(dst_said.json), NULL, NULL,
						&description);
		if (!status)
			status = weir_graph_create(registry, description, &joins.graph);
		weir_description_destroy(description);
	} while (status && raise_pool(weir_last_error()));
	return status;
}

static weir_status make(weir_registry *registry)
{
	weir_scheduler_options options = {.seed = joins.seed,
					  .workers = joins.workers,
					  .deadlock_grace_ns =
						  100 * MS, /* what is disabled is enabled before */
					  .drain_ns = 1000 * MS};
	weir_status status = make_graph(registry);
	char port[16];

	snprintf(port, sizeof port, "e%d.out", joins.outlet);
	if (!status && joins.outlet != NONE)
		status = weir_graph_add_outlet(joins.graph, port, 1 + (uint32_t)dst_joins_random(3),
					       joins.early ? WEIR_OUTLET_EARLY : 0, &joins.taken_from);
	return status ? status : dst_make_scheduler(joins.graph, options, &joins.scheduler);
}

static void run(void)
{
	weir_registry *registry = NULL;

	if (weir_registry_create(&registry) || dst_joins_register(registry) || make(registry)) {
		dst_fails("setting up: %s", weir_last_error());
		return;
	}
	for (int i = 0; i < RUNS && !dst_said.broken[0]; i++)
		run_once();
	if (dst_said.broken[0])
		return; /* abandoned */
	weir_scheduler_destroy(joins.scheduler);
	joins.scheduler = NULL;
	if (weir_graph_destroy(joins.graph))
		dst_fails("destroy: %s", weir_last_error());
	weir_registry_destroy(registry);
}

int main(int argc, char **argv)
{
	static const struct dst_command command = {
		.name = "dst_joins",
		.shapes = {"any", "aligned", "trees", "batches", "latest", "instances"},
		.shape = &joins_shape,
		.draw = dst_joins_draw,
		.run = run,
		.look = dst_check_pools,
		.scheduler = &joins.scheduler,
	};

	return dst_command(&command, argc, argv);
}
