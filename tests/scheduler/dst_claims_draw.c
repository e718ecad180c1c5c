/* Draws the worlds of dst_claims.c: pools, entities, connections, and when a run is stopped. */
#include <string.h>

#include "dst_claims.h"

enum { QUEUED = 2 }; /* capacity of an input, at most */

uint64_t dst_claims_random(uint64_t n)
{
	return wr_random_below(&world.shape, n);
}

/* Of a pool; what makes messages ahead has no memory_available, which implies one block each. */
static void put_claim(unsigned id, unsigned p, const char *before)
{
	unsigned units = shape == KEEPING ? 1
			 : !world.greedy  ? 1 + (unsigned)dst_claims_random(world.blocks[p])
			 : id             ? 1
					  : world.blocks[p];

	dst_put("%s{\"type\":\"memory_available\",\"pool\":\"m%u\",\"min_blocks\":%u}", before, p, units);
}

/* Pool 0 is of the host, pool 1 of the device; most entities claim of both. */
static void put_memory(unsigned id)
{
	static const char *const names[] = {"m0", "m1"};
	unsigned uses = world.uses[id];
	const char *before = "";

	dst_put("\"resources\":[");
	for (unsigned p = 0; p < POOLS; p++)
		if (uses >> p & 1) {
			dst_put("%s\"%s\"", before, names[p]);
			before = ",";
		}
	dst_put("],\"conditions\":[");
	before = "";
	for (unsigned p = 0; p < POOLS; p++)
		if (uses >> p & 1 && !world.keeps[id]) {
			put_claim(id, p, before);
			before = ",";
		}
}

static void put_entity(unsigned id)
{
	world.source[id] = !id || shape == WIDE || !dst_claims_random(3);
	world.device[id] = !dst_claims_random(3);
	world.fails_at[id] = shape != ANY || dst_claims_random(24) ? 0 : 1 + (uint32_t)dst_claims_random(4);
	dst_put("%s{\"name\":\"e%u\",\"operator\":\"%s\",\"parameters\":{\"id\":%u},", id ? "," : "", id,
		world.keeps[id] ? "keeper" : "node", id);
	dst_put("\"ports\":{\"in\":{\"capacity\":%u}},", 1 + (unsigned)dst_claims_random(QUEUED));
	put_memory(id);
	if (world.source[id] || world.keeps[id] || !dst_claims_random(3)) {
		dst_put("%s{\"type\":\"count\",\"count\":%u}",
			dst_said.json[strlen(dst_said.json) - 1] == '[' ? "" : ",",
			shape == ANY || shape == KEEPING ? 1 + (unsigned)dst_claims_random(5) : 30);
		if (!world.keeps[id] && !dst_claims_random(3))
			dst_put(",{\"type\":\"periodic\",\"period\":\"%uns\"}",
				300 + (unsigned)dst_claims_random(2000));
	}
	/* One that keeps has no other reason to wait: whenever it is reviewed, it takes what it lacks. */
	world.told[id] = (shape == ANY || (shape == KEEPING && !world.keeps[id])) && !dst_claims_random(3);
	if (world.told[id])
		dst_put("%s{\"type\":\"boolean\"}",
			dst_said.json[strlen(dst_said.json) - 1] == '[' ? "" : ",");
	dst_put("]}");
}

/* As many as the graph's check wants: what is kept, what the others claim, and what the queues hold. */
static void draw_kept(void)
{
	unsigned keepers = 1 + (unsigned)dst_claims_random(2);

	memset(world.blocks, 0, sizeof world.blocks);
	for (unsigned id = 0; id < world.entities; id++) {
		world.keeps[id] = id < keepers;
		for (unsigned p = 0; p < POOLS; p++)
			world.blocks[p] += (world.uses[id] >> p & 1 ? world.keeps[id] ? AHEAD : 1 : 0) +
					   (id ? QUEUED : 0);
	}
	for (unsigned p = 0; p < POOLS; p++)
		world.blocks[p] += !world.blocks[p];
}

void dst_claims_draw(uint64_t seed)
{
	const char *before = "";

	memset(&world, 0, sizeof world);
	world.seed = seed;
	wr_random_seed(&world.shape, seed, 31);
	world.entities = 2 + (unsigned)dst_claims_random(ENTITIES - 1);
	world.greedy = dst_claims_random(2);
	for (unsigned p = 0; p < POOLS; p++)
		world.blocks[p] =
			shape == WIDE ? 3 : 1 + (unsigned)dst_claims_random(shape == DRAINED ? 2 : 3);
	if (shape != ANY)
		world.greedy = shape == WIDE;
	for (unsigned id = 0; id < world.entities; id++)
		world.uses[id] = dst_claims_random(3) ? 3 : (unsigned)dst_claims_random(4);
	if (shape == KEEPING)
		draw_kept();
	dst_put("{\"weir\":1,\"resources\":{"
		"\"m0\":{\"type\":\"memory_pool\",\"place\":\"host\",\"block_size\":64,\"blocks\":%u},"
		"\"m1\":{\"type\":\"memory_pool\",\"block_size\":64,\"blocks\":%u}},\"entities\":[",
		world.blocks[0], world.blocks[1]);
	for (unsigned id = 0; id < world.entities; id++)
		put_entity(id);
	dst_put("],\"connections\":[");
	for (unsigned id = 1; id < world.entities; id++)
		if (!world.source[id]) {
			dst_put("%s[\"e%u.out\",\"e%u.in\"]", before, (unsigned)dst_claims_random(id), id);
			before = ",";
		}
	dst_put("]}");
	world.outlet = (shape == ANY || shape == KEEPING) && !dst_claims_random(3);
	world.stop_after = dst_claims_random(2) ? 0 : 1 + (int64_t)dst_claims_random(5 * (uint64_t)US);
	world.drain = dst_claims_random(4);
	if (shape == DRAINED) {
		world.stop_after = 1 + (int64_t)dst_claims_random(60 * (uint64_t)US);
		world.drain = true;
	}
}
